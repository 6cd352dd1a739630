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
from ..model.render import texts_of, version_names
from ..model.tables import TIMESTAMP, Table
from .fold import fold

CONFLICTS = pa.schema(
    [
        pa.field("kind", pa.string(), False),
        pa.field("table", pa.string(), False),
        pa.field("key", pa.map_(pa.string(), pa.string()), False),
        pa.field("version", pa.string()),
        pa.field("event", pa.string(), False),
        pa.field("commit_timestamp", TIMESTAMP, False),
        pa.field("writer", pa.string(), False),
        pa.field("expected", pa.string()),
        pa.field("found", pa.string()),
        pa.field("other_version", pa.string()),
        pa.field("other_writer", pa.string()),
    ]
)
"""``key`` has the columns of the key with their values as text. The other version is the event that was in the way, and whose it was: what
ended the version before an update of it came, or what was put where something else was expected."""
LATE_UPDATE, EXPECTATION, ABSENT = "late_update", "expectation", "absent"


def conflicts(facts: Facts, table: Table) -> pa.Table:
    """The conflicts in facts about whole keys, with the columns of ``CONFLICTS``."""
    if not len(facts):
        return CONFLICTS.empty_table()
    state = fold(facts, table)
    keys = one_chunk(encode_keys(table, state.rows))
    return pa.concat_tables([_late_updates(state, table), _puts(state, table, keys), _deletes(state, table)])


def _late_updates(state: Facts, table: Table) -> pa.Table:
    end, row = state.stamps("end"), state.stamps("row")
    at = np.flatnonzero((state.numbers("_kind") == Kind.VERSION) & (end != NO_STAMP) & (row > end))
    nothing = pa.nulls(len(at), pa.string())
    return _shown(state, table, LATE_UPDATE, at, row[at], _names(state, state.stamps()[at]), nothing, nothing, end[at])


def _puts(state: Facts, table: Table, keys: pa.Array) -> pa.Table:
    expects = state.numbers("_expects")
    is_version = state.numbers("_kind") == Kind.VERSION
    at = np.flatnonzero(is_version & (expects != Expects.NOTHING_SAID))
    stamps = state.stamps()
    before = np.maximum(at - 1, 0)
    same_key = np.asarray(pc.equal(keys.take(pa.array(at)), keys.take(pa.array(before)))) if len(at) else np.zeros(0, dtype=bool)
    replaced = (at > 0) & same_key & is_version[before] & (state.stamps("end")[before] == stamps[at])
    found = np.where(replaced, stamps[before], NO_STAMP)
    return _unmet(state, table, at, stamps[at], _names(state, stamps[at]), _expected(state, "_expects", at), found)


def _deletes(state: Facts, table: Table) -> pa.Table:
    kinds, stamps = state.numbers("_kind"), state.stamps()
    stubs = np.flatnonzero((kinds == Kind.DELETE) & (state.numbers("_expects") != Expects.NOTHING_SAID))
    ended = (kinds == Kind.VERSION) & (state.numbers("_end_kind") == End.DELETE)
    ends = np.flatnonzero(ended & (state.numbers("_end_expects") != Expects.NOTHING_SAID))
    nothing = np.full(len(stubs), NO_STAMP)
    blank = pa.nulls(len(stubs), pa.string())
    of_stubs = _unmet(state, table, stubs, stamps[stubs], blank, _expected(state, "_expects", stubs), nothing)
    blank = pa.nulls(len(ends), pa.string())
    event = state.stamps("end")[ends]
    return pa.concat_tables(
        [of_stubs, _unmet(state, table, ends, event, blank, _expected(state, "_end_expects", ends), stamps[ends])]
    )


def _unmet(
    state: Facts, table: Table, at: Stamps, event: Stamps, version: pa.Array, expected: pa.Array, found: Stamps
) -> pa.Table:
    """Those that have found something else than they expected: a version, or ``NO_STAMP`` for nothing."""
    shown = _shown(state, table, EXPECTATION, at, event, version, expected, _name_or_absent(state, found), found)
    return shown.filter(pc.not_equal(shown["expected"], shown["found"]))


def _shown(
    state: Facts,
    table: Table,
    kind: str,
    at: Stamps,
    event: Stamps,
    version: pa.Array,
    expected: pa.Array,
    found: pa.Array,
    other: Stamps,
) -> pa.Table:
    position, theirs = pa.array(positions_of(event)), pa.array(positions_of(other), mask=other == NO_STAMP)
    transactions = state.transactions
    key = [state.meant_column(column).take(pa.array(at)) for column in table.key_columns]
    columns = [
        pa.repeat(pa.scalar(kind), len(at)),
        pa.repeat(pa.scalar(table.name), len(at)),
        texts_of(table.key_columns, key),
        version,
        _names(state, event),
        one_chunk(transactions["commit_time"]).take(position).cast(TIMESTAMP),
        one_chunk(transactions["writer"]).take(position),
        expected,
        found,
        _names(state, other),
        one_chunk(transactions["writer"]).take(theirs),
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
