"""Deep verification: each checkpoint's state against the one that its transactions make, and what is kept beside it against its rows.

What a checkpoint is compared with starts from the newest checkpoint within it that was found right, so that each transaction is replayed
about once; the first is compared with a replay from the beginning. It goes by ranges of keys, so that memory does not grow with a table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import UNREADABLE, IncompatibleTable, InvalidVersion, UnknownTable
from ...format.authority import Definitions
from ...format.checkpoints import Checkpoint
from ...format.held import Held
from ...log.ancestry import version_view
from ...log.between import back_to
from ...log.coverage import Covered, is_partial
from ...log.entries import latest_results, overtaken, tags_of, without_events
from ...log.files import ChosenFiles, LogFiles
from ...log.pins import pins_in
from ...log.view import LogView
from ...log.witnesses import witnessed_in
from ...model import paths
from ...model.arrays import one_chunk, same_values
from ...model.cuts import Ref
from ...model.facts import FACT_COLUMNS, NO_STAMP, NO_TRANSACTIONS, POSITIONS, End, Facts, Kind, concat
from ...model.keys import KeyRange, encode_keys
from ...model.tables import UUID_BYTES, Table
from ...parallel import in_order
from ...state.contents import Contents, TableState
from ...state.plan import Part
from ...state.read import empty_rows, read_slice
from ...state.side_runs import side_runs
from .findings import Finding

_DEFAULTS = {"_kind": 0, "_end_kind": 0, "_expects": 0, "_end_expects": 0, "_purged": False}


def differing_keys(one: Facts, other: Facts, table: Table) -> pa.Array:
    """The keys, sorted and distinct, of which two folded states of one table say different things.

    Bit for bit, whatever order their lists of transactions have. Facts can be written in more ways than one, all of which every reader
    takes for the same: a VERSION may say whose its row is where that is its own, and rows may have columns that mean nothing there.
    """
    left, right = _identified(_meant(one, table), table), _identified(_meant(other, table), table)
    missing = [
        a["key"].filter(pc.invert(pc.is_in(a["name"], value_set=one_chunk(b["name"])))) for a, b in ((left, right), (right, left))
    ]
    at = pc.index_in(left["name"], value_set=one_chunk(right["name"]))
    both = left.filter(pc.is_valid(at))
    same = right.take(one_chunk(at.drop_null()))
    differs = np.zeros(len(both), dtype=bool)
    for name in both.column_names:
        differs |= ~same_values(one_chunk(both.column(name)), _column(same, name, both.schema.field(name).type))
    for name in set(same.column_names) - set(both.column_names):
        differs |= np.asarray(one_chunk(same.column(name)).is_valid())
    found = pa.chunked_array(
        [*(c for part in missing for c in _chunks(part)), both["key"].filter(pa.array(differs)).combine_chunks()]
    )
    distinct = pc.unique(found)
    return distinct.take(pc.sort_indices(distinct))


def _meant(facts: Facts, table: Table) -> Facts:
    """The same facts in the one way in which the fold writes them."""
    if not len(facts):
        return facts
    kinds, row = facts.numbers("_kind"), facts.stamps("row")
    is_version, ended = kinds == Kind.VERSION, facts.stamps("end") != NO_STAMP
    purged = facts.numbers("_purged") > 0
    if not table.keeps_tombstones:
        purged |= is_version & ended
    own_row = is_version & (row == facts.stamps())
    bare = np.where(is_version, ended & purged, row == NO_STAMP)
    unsaid = {
        **dict.fromkeys(("_row_txn", "_row_seq"), own_row),
        **dict.fromkeys(("_expects", "_expects_uuid", "_expects_seq"), kinds == Kind.NAMED),
        **dict.fromkeys(("_end_expects", "_end_expects_uuid", "_end_expects_seq"), facts.numbers("_end_kind") != End.DELETE),
        **{c.field_name: bare & ~(is_version & (c.field_name in table.fixed_columns)) for c in table.columns},
        **dict.fromkeys((column.field_name for column in table.key_columns), np.zeros(len(facts), dtype=bool)),
    }
    own = np.arange(len(facts))
    columns = {
        name: one_chunk(values).take(pa.array(own, mask=unsaid[name])) if name in unsaid else one_chunk(values)
        for name, values in zip(facts.rows.column_names, facts.rows.columns, strict=True)
    }
    says_something = (kinds != Kind.NAMED) | ~bare | ended | purged
    return Facts(facts.transactions, pa.table(columns | {"_purged": pa.array(purged)})).filter(pa.array(says_something))


def _chunks(values: Any) -> list[pa.Array]:
    return list(values.chunks) if isinstance(values, pa.ChunkedArray) else [values]


def _column(rows: pa.Table, name: str, kind: pa.DataType) -> pa.Array:
    return one_chunk(rows.column(name)) if name in rows.column_names else pa.nulls(len(rows), kind)


def _identified(facts: Facts, table: Table) -> pa.Table:
    """The rows with their key, a name of their own, and stamps that do not depend on a list of transactions."""
    if not len(facts):
        return pa.table({"key": pa.array([], pa.binary()), "name": pa.array([], pa.binary())})
    keys = one_chunk(encode_keys(table, facts.rows))
    columns = {name: one_chunk(facts.rows.column(name)) for name in facts.rows.column_names if name not in FACT_COLUMNS}
    for name, kind in FACT_COLUMNS.items():
        values = facts.column(name)
        if name in POSITIONS:
            values = facts.uuids.take(values) if len(facts.uuids) else pa.nulls(len(facts), UUID_BYTES)
        columns[name] = pc.fill_null(values, pa.scalar(_DEFAULTS[name], kind)) if name in _DEFAULTS else values
    about = facts.numbers("_kind") == Kind.NAMED
    parts = [
        pa.array(facts.numbers("_kind")).cast(pa.string()).cast(pa.binary()),
        pc.if_else(pa.array(about), columns["_name_uuid"].cast(pa.binary()), columns["_txn"].cast(pa.binary())),
        pc.if_else(pa.array(about), columns["_name_seq"], columns["_seq"]).cast(pa.string()).cast(pa.binary()),
    ]
    names = pc.binary_join_element_wise(keys, *(pc.fill_null(part, b"") for part in parts), b"\x00")
    return pa.table({"key": keys, "name": names, **columns})


def not_compared(database: str, checkpoints: Sequence[Checkpoint]) -> Iterator[Finding]:
    """Names these checkpoints of a database as not looked at, if there are any: each was read, and compared with nothing else."""
    if checkpoints:
        rows = sum(run.rows for checkpoint in checkpoints for run in checkpoint.runs if run.is_of_rows)
        blocks = sum(run.blocks for checkpoint in checkpoints for run in checkpoint.runs)
        of = "1 checkpoint" if len(checkpoints) == 1 else f"{len(checkpoints):,} checkpoints"
        text = f"Not compared with what transactions say: {of}, of {rows:,} rows, and {blocks:,} blocks of rows, sums and orders."
        yield Finding("NOT_COMPARED", database, text)


def differences(
    files: LogFiles,
    checkpoints: Sequence[Checkpoint],
    definitions: Definitions,
    voided: Set[Ref],
    left_out: Callable[[Checkpoint], None] = lambda _: None,
) -> Iterator[Finding]:
    """What each checkpoint says that its transactions do not, where these and the checkpoint can all be read; the others are ``left_out``.

    One that begins behind a horizon says nothing of tables that were defined before, nor of who ``voided`` what: the ``definitions`` and
    that are everybody's.
    """
    trusted: dict[Ref, Checkpoint] = {}
    trusting = ChosenFiles(files.store, files.database, trusted.__contains__).aware(files.asides)
    size = {c.ref: sum(coverage.transactions for coverage in c.coverage.values()) for c in checkpoints}
    agreeing = [c for c in checkpoints if not Covered(files, [c]).disagreeing()]  # the others hold what was set aside since
    for checkpoint in sorted(agreeing, key=lambda c: (size[c.ref], c.ref)):
        try:
            if is_partial(checkpoint):
                view = _behind_horizon(trusting, checkpoint, trusted.values(), voided)
                found = list(_compared(trusting, checkpoint, view, definitions))
            else:
                found = list(_compared(trusting, checkpoint, version_view(trusting, checkpoint.cut, closed_reads=False)))
        except (*UNREADABLE, InvalidVersion, IncompatibleTable, UnknownTable):
            left_out(checkpoint)  # something of it cannot be read, which is a finding of its own unless it was pruned
            continue
        if not found:
            trusted[checkpoint.ref] = checkpoint
        yield from found


def _behind_horizon(files: LogFiles, checkpoint: Checkpoint, trusted: Iterable[Checkpoint], voided: Set[Ref]) -> LogView:
    """The view of those of its writer's transactions alone that a checkpoint covers beside the horizon's."""
    covered = Covered(files, [checkpoint])
    alike = [c for c in trusted if is_partial(c) and c.writer == checkpoint.writer and c.revision <= checkpoint.revision]
    within = [c for c in alike if all(covered.holds(*ref) for ref in c.cut.refs()) and _begins(c) == _begins(checkpoint)]
    before = Covered(files, sorted(within, key=lambda c: c.revision)[-1:])

    def is_before(ref: Ref) -> bool:
        return before.holds(*ref) or (ref.head.revision < _begins(checkpoint) and not covered.holds(*ref))

    tail = back_to(files, checkpoint.cut, is_before)
    voids = {void.ref: void for c in before.checkpoints for void in c.voids} | overtaken({t.ref: t for t in tail})
    voids |= {void.ref: void for void in checkpoint.voids if void.ref in voided}
    voids = {ref: void for ref, void in voids.items() if covered.holds(*ref)}
    if before.unaware(voids):
        return _behind_horizon(files, checkpoint, (), voided)
    counted = tuple(without_events(t) if t.ref in voids else t for t in tail)
    return LogView(files.database, checkpoint.cut, before.checkpoints, counted, (), files.store.now_us(), voids=voids)


def _begins(checkpoint: Checkpoint) -> int:
    return checkpoint.coverage[checkpoint.writer].first_revision


def _compared(
    files: LogFiles, checkpoint: Checkpoint, view: LogView, definitions: Definitions | None = None
) -> Iterator[Finding]:
    """What a checkpoint says that the view of its transactions does not."""
    name = paths.checkpoint(checkpoint.writer, files.database, checkpoint.head)
    made_without = {void.ref: void for void in checkpoint.voids}
    alone = LogView(files.database, checkpoint.cut, (checkpoint,), (), (), view.observed, voids=made_without)
    derived = Contents(files, view, definitions)
    stored = Contents(files, alone, derived.definitions)
    for table in sorted({*derived.names, *(run.table for run in checkpoint.runs)}):
        keys, writers = _differing(derived.state(table), stored.state(table))
        if len(keys):
            of = f"with events of {' and '.join(map(repr, sorted(writers)))}"
            text = f"Its state of table {table} differs from what its transactions say, in {len(keys)} keys, {of}."
            held = Held(table, len(keys), keys[0].as_py(), keys[-1].as_py()).shown_by(derived.table(table))
            yield Finding("DIFFERENT_STATE", name, text, (held,))
        yield from _beside(stored.state(table), name)
    for what, is_same in (
        ("tags", tags_of(view) == tags_of(alone)),
        ("pins", pins_in(view) == pins_in(alone)),
        ("voids", view.voids == alone.voids),
        ("witnesses of definitions", witnessed_in(view) == witnessed_in(alone)),
        ("results of applications", latest_results(view) == latest_results(alone)),
    ):
        if not is_same:
            yield Finding("DIFFERENT_STATE", name, f"Its {what} differ from what its transactions say.")


def _beside(state: TableState, name: str) -> Iterator[Finding]:
    """What is kept beside the lowest level of a table and is not what its rows make."""
    for run in side_runs(state.table):
        if run.differs(state):
            text = f"Its {run.described} of table {state.table.name} is not what the rows of its lowest level make."
            yield Finding("DIFFERENT_STATE", name, text)


def _differing(one: TableState, other: TableState) -> tuple[pa.Array, set[str]]:
    """The keys of which two states of a table say different things, range by range, and whose events there are of them."""
    starts = sorted({b"", *(slice_.keys.start for state in (one, other) for slice_ in state.plan())})
    ranges = [KeyRange(start, stop) for start, stop in zip(starts, [*starts[1:], None], strict=True)]
    found = list(in_order(partial(_differing_within, one, other), ranges))
    return pa.concat_arrays([keys for keys, _ in found]), {writer for _, writers in found for writer in writers}


def _differing_within(one: TableState, other: TableState, keys: KeyRange) -> tuple[pa.Array, set[str]]:
    both, table = (_within(one, keys), _within(other, keys)), one.table
    differing = differing_keys(*both, table)
    return differing, {writer for facts in both for writer in _writers(facts, table, differing)} if len(differing) else set()


def _writers(facts: Facts, table: Table, keys: pa.Array) -> list[str]:
    """Whose events the facts of these keys are."""
    if not len(facts):
        return []
    of = facts.filter(pc.is_in(one_chunk(encode_keys(table, facts.rows)), value_set=keys))
    positions = pc.unique(pa.chunked_array([of.column(name).drop_null() for name in POSITIONS]))
    found: list[str] = pc.unique(facts.transactions["writer"].take(positions)).to_pylist()
    return found


def _within(state: TableState, keys: KeyRange) -> Facts:
    plan = state.plan([keys], target=sys.maxsize)
    batches = [read_slice(state.blocks, state.table, slice_, Part.EVERYTHING) for slice_ in plan]
    return concat(batches) if batches else Facts(NO_TRANSACTIONS, empty_rows(state.table))
