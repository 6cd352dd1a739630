"""Conflicts: what the events of a key contradict each other in, derived from its folded state.

There are two: a version whose row is later than its end (its latest UPDATE came too late), and a PUT or blind DELETE that expected to
replace something else than it did. Nothing is dropped for a conflict; it is shown (docs/spec/fold.md, rule 4).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import one_chunk
from ..model.facts import NO_STAMP, End, Expects, Facts, Kind, Stamps, positions_of
from ..model.keys import encode_keys
from ..model.render import version_names
from ..model.tables import TIMESTAMP, Table
from .fold import fold

CONFLICTS = pa.schema(
    [
        pa.field("kind", pa.string(), False),
        pa.field("table", pa.string(), False),
        pa.field("key", pa.binary(), False),
        pa.field("version", pa.string()),
        pa.field("event", pa.string(), False),
        pa.field("commit_timestamp", TIMESTAMP, False),
        pa.field("writer", pa.string(), False),
        pa.field("expected", pa.string()),
        pa.field("found", pa.string()),
    ]
)
LATE_UPDATE, EXPECTATION, ABSENT = "late_update", "expectation", "absent"


def conflicts(facts: Facts, table: Table) -> pa.Table:
    """The conflicts in facts about whole keys, with the columns of ``CONFLICTS``."""
    if not len(facts):
        return CONFLICTS.empty_table()
    state = fold(facts, table)
    keys = one_chunk(encode_keys(table, state.rows))
    return pa.concat_tables([_late_updates(state, table, keys), _puts(state, table, keys), _deletes(state, table, keys)])


def _late_updates(state: Facts, table: Table, keys: pa.Array) -> pa.Table:
    end, row = state.stamps("end"), state.stamps("row")
    at = np.flatnonzero((state.numbers("_kind") == Kind.VERSION) & (end != NO_STAMP) & (row > end))
    nothing = pa.nulls(len(at), pa.string())
    return _shown(state, table, keys, LATE_UPDATE, at, row[at], _names(state, state.stamps()[at]), nothing, nothing)


def _puts(state: Facts, table: Table, keys: pa.Array) -> pa.Table:
    expects = state.numbers("_expects")
    is_version = state.numbers("_kind") == Kind.VERSION
    at = np.flatnonzero(is_version & (expects != Expects.NOTHING_SAID))
    stamps = state.stamps()
    before = np.maximum(at - 1, 0)
    same_key = np.asarray(pc.equal(keys.take(pa.array(at)), keys.take(pa.array(before)))) if len(at) else np.zeros(0, dtype=bool)
    replaced = (at > 0) & same_key & is_version[before] & (state.stamps("end")[before] == stamps[at])
    found = _name_or_absent(state, np.where(replaced, stamps[before], NO_STAMP))
    return _unmet(state, table, keys, at, stamps[at], _names(state, stamps[at]), _expected(state, "_expects", at), found)


def _deletes(state: Facts, table: Table, keys: pa.Array) -> pa.Table:
    kinds, stamps = state.numbers("_kind"), state.stamps()
    stubs = np.flatnonzero((kinds == Kind.DELETE) & (state.numbers("_expects") != Expects.NOTHING_SAID))
    ended = (kinds == Kind.VERSION) & (state.numbers("_end_kind") == End.DELETE)
    ends = np.flatnonzero(ended & (state.numbers("_end_expects") != Expects.NOTHING_SAID))
    nothing = _name_or_absent(state, np.full(len(stubs), NO_STAMP))
    blank = pa.nulls(len(stubs), pa.string())
    of_stubs = _unmet(state, table, keys, stubs, stamps[stubs], blank, _expected(state, "_expects", stubs), nothing)
    found = _names(state, stamps[ends])
    blank = pa.nulls(len(ends), pa.string())
    event = state.stamps("end")[ends]
    return pa.concat_tables(
        [of_stubs, _unmet(state, table, keys, ends, event, blank, _expected(state, "_end_expects", ends), found)]
    )


def _unmet(
    state: Facts, table: Table, keys: pa.Array, at: Stamps, event: Stamps, version: pa.Array, expected: pa.Array, found: pa.Array
) -> pa.Table:
    shown = _shown(state, table, keys, EXPECTATION, at, event, version, expected, found)
    return shown.filter(pc.not_equal(shown["expected"], shown["found"]))


def _shown(
    state: Facts,
    table: Table,
    keys: pa.Array,
    kind: str,
    at: Stamps,
    event: Stamps,
    version: pa.Array,
    expected: pa.Array,
    found: pa.Array,
) -> pa.Table:
    position = pa.array(positions_of(event))
    transactions = state.transactions
    columns = [
        pa.repeat(pa.scalar(kind), len(at)),
        pa.repeat(pa.scalar(table.name), len(at)),
        keys.take(pa.array(at)),
        version,
        _names(state, event),
        one_chunk(transactions["commit_time"]).take(position).cast(TIMESTAMP),
        one_chunk(transactions["writer"]).take(position),
        expected,
        found,
    ]
    return pa.table(columns, schema=CONFLICTS)


def _names(state: Facts, stamps: Stamps) -> pa.Array:
    """The names of the events with these stamps, null where there is none."""
    return version_names(*state.event_names(stamps))


def _name_or_absent(state: Facts, stamps: Stamps) -> pa.Array:
    return pc.fill_null(_names(state, stamps), ABSENT)


def _expected(state: Facts, column: str, at: Stamps) -> pa.Array:
    """What the events expected: a version's name, or ``absent``."""
    rows = pa.array(at)
    uuids, sequences = state.column(f"{column}_uuid").take(rows), state.column(f"{column}_seq").take(rows)
    return pc.fill_null(version_names(uuids, sequences), ABSENT)
