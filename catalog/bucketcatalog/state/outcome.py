"""The outcome of a fold as facts: the rows of the state, each column taken once from where the fold says it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import one_chunk
from ..model.facts import FACT_COLUMNS, NEVER, NO_STAMP, SEQUENCE_BITS, End, Facts, Kind, Stamps
from ..model.tables import Table

Mask = npt.NDArray[np.bool_]
_NUMBER = (1 << SEQUENCE_BITS) - 1
_EXPECTED = ("_expects", "_expects_uuid", "_expects_seq")
_END_EXPECTED = ("_end_expects", "_end_expects_uuid", "_end_expects_seq")


@dataclass
class Versions:
    """One entry a version (or unseen version that facts name): where its parts come from, and how it ends."""

    source: Stamps
    row_source: Stamps
    group: Stamps
    stamp: Stamps
    row_stamp: Stamps
    end: Stamps
    end_kind: Stamps
    end_source: Stamps
    purged: Mask

    def where(self, mask: Mask) -> Versions:
        return Versions(**{name: values[mask] for name, values in vars(self).items()})


@dataclass
class Deletes:
    """One entry a distinct blind DELETE; ``from_end`` says that its expectation stands with the end of its source."""

    source: Stamps
    group: Stamps
    stamp: Stamps
    from_end: Mask
    ended_one: Mask


@dataclass
class _State:
    """The state's rows: where each comes from and what the fold made of it. All arrays have one entry a row."""

    kind: Stamps
    source: Stamps
    row_source: Stamps
    group: Stamps
    stamp: Stamps
    row_stamp: Stamps
    end: Stamps
    end_kind: Stamps
    purged: Mask
    from_end: Mask
    end_source: Stamps
    end_from_end: Mask
    by_delete: Mask

    def ordered(self) -> _State:
        """By key, then stamp; names of unseen versions come last within a key."""
        order = np.lexsort((self.stamp, self.kind == Kind.NAMED, self.group))
        return _State(**{name: values[order] for name, values in vars(self).items()})


def assemble(facts: Facts, table: Table, versions: Versions, named: Versions, deletes: Deletes) -> Facts:
    """The state that versions, names of unseen versions and the blind DELETEs that ended nothing make."""
    state = _state(versions, named, deletes).ordered()
    if not table.keeps_tombstones:
        state.purged |= (state.kind == Kind.VERSION) & (state.end != NEVER)
    columns = dict(_row_columns(facts, table, state))
    columns |= _fact_columns(facts, state)
    return Facts(facts.transactions, pa.table(columns))


def _state(versions: Versions, named: Versions, deletes: Deletes) -> _State:
    stubs = ~deletes.ended_one
    counts = (len(versions.stamp), len(named.stamp), int(stubs.sum()))
    total, first_stub = sum(counts), counts[0] + counts[1]
    state = _State(
        kind=np.repeat([Kind.VERSION, Kind.NAMED, Kind.DELETE], counts),
        source=np.concatenate([versions.source, named.source, deletes.source[stubs]]),
        row_source=np.concatenate([versions.row_source, named.row_source, deletes.source[stubs]]),
        group=np.concatenate([versions.group, named.group, deletes.group[stubs]]),
        stamp=np.concatenate([versions.stamp, np.full(counts[1], NO_STAMP), deletes.stamp[stubs]]),
        row_stamp=np.concatenate([versions.row_stamp, named.row_stamp, np.full(counts[2], NO_STAMP)]),
        end=np.concatenate([versions.end, named.end, np.full(counts[2], NEVER)]),
        end_kind=np.concatenate([versions.end_kind, named.end_kind, np.zeros(counts[2], dtype=np.int64)]),
        purged=np.concatenate([versions.purged, named.purged, np.zeros(counts[2], dtype=bool)]),
        from_end=np.zeros(total, dtype=bool),
        end_source=np.zeros(total, dtype=np.int64),
        end_from_end=np.zeros(total, dtype=bool),
        by_delete=np.zeros(total, dtype=bool),
    )
    state.from_end[first_stub:] = deletes.from_end[stubs]
    ended = np.flatnonzero(versions.end_kind == End.DELETE)
    delete = versions.end_source[ended]
    state.end_source[ended], state.end_from_end[ended], state.by_delete[ended] = (
        deletes.source[delete],
        deletes.from_end[delete],
        True,
    )
    return state


def _row_columns(facts: Facts, table: Table, state: _State) -> Iterator[tuple[str, pa.Array]]:
    """The rows: of a version what no UPDATE changes from the PUT, the rest from the latest row, and nothing once it is forgotten.

    A name has the row of its latest UPDATE as that has it, for what no UPDATE changes is the PUT's; else it has the key alone, as a stub
    has. So it does not matter which facts were folded before.
    """
    is_version = state.kind == Kind.VERSION
    forgotten = np.where(is_version, state.purged & (state.end != NEVER), state.row_stamp == NO_STAMP)
    key = pa.array(state.source)
    fixed = latest = key
    if not is_version.all():
        fixed = pa.array(np.where(is_version, state.source, state.row_source), mask=~is_version & forgotten)
    if forgotten.any() or not np.array_equal(state.source, state.row_source):
        latest = pa.array(state.row_source, mask=forgotten)
    places = dict.fromkeys(table.fixed_columns, fixed) | {column.field_name: key for column in table.key_columns}
    for name, values in zip(facts.rows.column_names, facts.rows.columns, strict=True):
        if name not in FACT_COLUMNS:
            yield name, one_chunk(values).take(places.get(name, latest))


def _fact_columns(facts: Facts, state: _State) -> dict[str, pa.Array]:
    """The fact columns that say something; ``_txn`` and ``_seq`` always."""
    columns = _stamp_columns("", state.stamp)
    if (state.kind != Kind.VERSION).any():
        columns["_kind"] = pa.array(state.kind, pa.uint8())
    row_stamp = np.where(state.row_stamp == state.stamp, NO_STAMP, state.row_stamp)
    if (row_stamp != NO_STAMP).any():
        columns |= _stamp_columns("row_", row_stamp)
    if (state.end != NEVER).any():
        columns |= _stamp_columns("end_", np.where(state.end == NEVER, NO_STAMP, state.end))
        columns["_end_kind"] = pa.array(state.end_kind, pa.uint8())
    if state.purged.any():
        columns["_purged"] = pa.array(state.purged)
    is_named = state.kind == Kind.NAMED
    if is_named.any():
        for name in ("_name_uuid", "_name_seq"):
            columns[name] = facts.column(name).take(pa.array(state.source, mask=~is_named))
    return columns | _expectations(facts, state)


def _expectations(facts: Facts, state: _State) -> dict[str, pa.Array]:
    """What PUTs and blind DELETEs expected, and what the DELETEs that ended versions did."""
    columns = {}
    present = set(facts.rows.column_names)
    source = pa.array(state.source, mask=state.kind == Kind.NAMED)
    end_source = pa.array(state.end_source, mask=~state.by_delete)
    for own, end in zip(_EXPECTED, _END_EXPECTED, strict=True):
        if own in present or end in present:
            own_values, end_values = facts.column(own), facts.column(end)
            columns[own] = _choose(state.from_end, end_values, own_values, source)
            columns[end] = _choose(state.end_from_end, end_values, own_values, end_source)
    return columns


def _choose(mask: Mask, yes: pa.Array, no: pa.Array, at: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(mask), yes.take(at), no.take(at)) if mask.any() else no.take(at)


def _stamp_columns(infix: str, stamps: Stamps) -> dict[str, pa.Array]:
    missing = stamps == NO_STAMP
    return {
        f"_{infix}txn": pa.array((stamps >> SEQUENCE_BITS).astype(np.int32), mask=missing),
        f"_{infix}seq": pa.array((stamps & _NUMBER).astype(np.int32), mask=missing),
    }
