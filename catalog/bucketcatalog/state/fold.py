"""The fold: facts in, state out, whatever their order, overlap or origin.

The state of a key is a function of the set of its events (docs/spec/fold.md):

1. A version ends at the first of: the next PUT of the key, the next blind DELETE, a later DELETE that names it.
2. Its row is the latest among its PUT and the UPDATEs that name it; key, id and data reference stay the PUT's. An UPDATE or DELETE that
   names a version has an effect only if it comes after it: with a later commit time, or later in the same transaction.
3. It is live if it has not ended, a tombstone if it has and is not purged.

Folding is idempotent, and folding folded parts again equals folding their events at once: ends only come earlier and rows only later, and
a blind DELETE that an earlier end displaces becomes a stub again. All steps are array operations over the facts sorted by key, and each
column of the outcome is taken once, from where the fold says it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import Mask, one_chunk
from ..model.facts import (
    FACT_COLUMNS,
    NEVER,
    NO_STAMP,
    End,
    Facts,
    Kind,
    Stamps,
    commit_times,
    positions_of,
    sequences_of,
    stamps_of,
)
from ..model.keys import encode_keys
from ..model.tables import Table

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
        f"_{infix}txn": pa.array(positions_of(stamps).astype(np.int32), mask=missing),
        f"_{infix}seq": pa.array(sequences_of(stamps).astype(np.int32), mask=missing),
    }


def fold(facts: Facts, table: Table) -> Facts:
    """The state that the facts make, sorted by key and stamp; NAMED facts without their version come last within a key."""
    if not len(facts):
        return facts
    groups = key_ranks(facts, table)
    versions, named = _join(facts, groups)
    deletes = _blind_deletes(facts, groups)
    _end_by_next(versions, deletes)
    return assemble(facts, table, versions, named, deletes)


def key_ranks(facts: Facts, table: Table) -> Stamps:
    """For each fact the rank of its key."""
    keys = one_chunk(encode_keys(table, facts.rows))
    order = pc.sort_indices(keys)
    ordered = keys.take(order)
    changed = np.zeros(len(keys), dtype=np.int64)
    changed[1:] = np.asarray(pc.not_equal(ordered[1:], ordered[:-1]))
    groups = np.empty(len(keys), dtype=np.int64)
    groups[np.asarray(order)] = np.cumsum(changed)
    return groups


def stamps_about(facts: Facts, named: Mask) -> Stamps:
    """For each fact a number for the version it is about: the stamp where the transaction is known, else a number beyond all stamps."""
    about = facts.stamps()
    if named.any():
        uuids = facts.column("_name_uuid").filter(pa.array(named))
        position = pc.index_in(uuids, value_set=facts.uuids)
        codes = np.asarray(pc.fill_null(position, NO_STAMP)).astype(np.int64)
        unknown = codes < 0
        if unknown.any():
            others = uuids.filter(pa.array(unknown))
            codes[unknown] = np.asarray(pc.index_in(others, value_set=pc.unique(others))) + len(facts.uuids)
        about[named] = stamps_of(codes, facts.numbers("_name_seq")[named])
    return about


def _join(facts: Facts, groups: Stamps) -> tuple[Versions, Versions]:
    """VERSION facts, each with everything that names it; and what names versions that are not here, joined per name."""
    kinds = facts.numbers("_kind")
    picked = np.flatnonzero(kinds != Kind.DELETE)
    about = stamps_about(facts, kinds == Kind.NAMED)[picked]
    order = np.lexsort((about, groups[picked]))
    picked, about, group = picked[order], about[order], groups[picked][order]
    first = _first_of_each(group, about)
    starts = np.flatnonzero(first)
    if not len(starts):
        empty = np.empty(0, dtype=np.int64)
        nothing = Versions(empty, empty, empty, empty, empty, empty, empty, empty, empty.astype(bool))
        return nothing, nothing
    run = np.cumsum(first) - 1

    is_version = kinds[picked] == Kind.VERSION
    stamp = np.where(is_version, facts.stamps()[picked], NO_STAMP)
    row_stamp = facts.stamps("row")[picked]
    row_stamp = np.where(is_version & (row_stamp == NO_STAMP), stamp, row_stamp)
    end = facts.stamps("end")[picked]
    end = np.where(end == NO_STAMP, NEVER, end)
    row_stamp, end = _effective(facts, picked, ~is_version, row_stamp, end)
    born = np.maximum.reduceat(stamp, starts)

    newest_row = np.maximum.reduceat(row_stamp, starts)
    first_end = np.minimum.reduceat(end, starts)
    has_version = np.maximum.reduceat(is_version.astype(np.int8), starts) > 0
    end_at = _first_where(end == first_end[run], run, starts)
    entries = Versions(
        source=picked[_first_where(is_version | ~has_version[run], run, starts)],
        row_source=picked[_first_where(row_stamp == newest_row[run], run, starts)],
        group=group[starts],
        stamp=born,
        row_stamp=newest_row,
        end=first_end,
        end_kind=np.where(first_end == NEVER, End.NONE, facts.numbers("_end_kind")[picked][end_at]),
        end_source=picked[end_at],
        purged=np.maximum.reduceat(facts.numbers("_purged")[picked], starts) > 0,
    )
    says_something = (entries.row_stamp != NO_STAMP) | (entries.end != NEVER) | entries.purged
    return entries.where(has_version), entries.where(~has_version & says_something)


def _effective(facts: Facts, picked: Stamps, named: Mask, row_stamp: Stamps, end: Stamps) -> tuple[Stamps, Stamps]:
    """``row_stamp`` and ``end`` without those of UPDATEs and DELETEs that do not come after the version that they name.

    A name holds its version's commit time, so this is known before the version is.
    """
    if not named.any() or not len(facts.transactions):  # a lone PURGE says of no transaction when it was
        return row_stamp, end
    who = picked[named]
    uuids = facts.column("_name_uuid").take(pa.array(who))
    times = commit_times(uuids)
    known = np.asarray(pc.fill_null(pc.index_in(uuids, value_set=facts.uuids), NO_STAMP)).astype(np.int64)
    own = np.where(known < 0, NO_STAMP, stamps_of(known, facts.numbers("_name_seq")[who]))
    commit_time = np.asarray(one_chunk(facts.transactions.column("commit_time")))
    void = {}
    for what, stamps in (("row", row_stamp[named]), ("end", end[named])):
        said = (stamps != NO_STAMP) & (stamps != NEVER)
        position = np.where(said, positions_of(stamps), 0)
        same = (position == known) & (stamps > own)
        void[what] = said & ~same & (commit_time[position] <= times)
    row_stamp, end = row_stamp.copy(), end.copy()
    row_stamp[named] = np.where(void["row"], NO_STAMP, row_stamp[named])
    end[named] = np.where(void["end"], NEVER, end[named])
    return row_stamp, end


def _first_of_each(group: Stamps, what: Stamps) -> Mask:
    """Where a pair differs from the one before it; equal ones lie together."""
    first = np.ones(len(group), dtype=bool)
    first[1:] = (group[1:] != group[:-1]) | (what[1:] != what[:-1])
    return first


def _first_where(mask: Mask, run: Stamps, starts: Stamps) -> Stamps:
    """For each run the position of its first entry where ``mask`` holds; every run has one."""
    hits = np.flatnonzero(mask)
    _, first = np.unique(run[hits], return_index=True)
    assert len(first) == len(starts)
    return hits[first]


def _blind_deletes(facts: Facts, groups: Stamps) -> Deletes:
    """Every blind DELETE: the stubs, and those that ended a version in one of the folded parts."""
    stubs = np.flatnonzero(facts.numbers("_kind") == Kind.DELETE)
    ends = np.flatnonzero(facts.numbers("_end_kind") == End.DELETE)
    source = np.concatenate([stubs, ends])
    stamp = np.concatenate([facts.stamps()[stubs], facts.stamps("end")[ends]])
    from_end = np.arange(len(source)) >= len(stubs)
    group = groups[source]
    order = np.lexsort((stamp, group))
    source, stamp, from_end, group = source[order], stamp[order], from_end[order], group[order]
    first = _first_of_each(group, stamp)
    return Deletes(source[first], group[first], stamp[first], from_end[first], np.zeros(int(first.sum()), dtype=bool))


def _end_by_next(versions: Versions, deletes: Deletes) -> None:
    """Rule 1: the next PUT or blind DELETE of the key ends a version that has not ended before it."""
    count = len(versions.stamp)
    group = np.concatenate([versions.group, deletes.group])
    stamp = np.concatenate([versions.stamp, deletes.stamp])
    order = np.lexsort((stamp, group))
    before, after = order[:-1], order[1:]
    pair = (group[before] == group[after]) & (before < count)
    before, after = before[pair], after[pair]
    ends = stamp[after] < versions.end[before]
    before, after = before[ends], after[ends]
    versions.end[before] = stamp[after]
    is_delete = after >= count
    versions.end_kind[before] = np.where(is_delete, End.DELETE, End.PUT)
    _absorb(versions, deletes)


def _absorb(versions: Versions, deletes: Deletes) -> None:
    """Mark the blind DELETEs that are some version's end, and let the end's expectation be theirs."""
    ended = np.flatnonzero(versions.end_kind == End.DELETE)
    if not len(ended):
        return
    width = len(deletes.stamp)
    group = np.concatenate([deletes.group, versions.group[ended]])
    stamp = np.concatenate([deletes.stamp, versions.end[ended]])
    order = np.lexsort((np.arange(len(group)), stamp, group))
    same = (group[order][1:] == group[order][:-1]) & (stamp[order][1:] == stamp[order][:-1])
    hit = order[:-1][same]
    deletes.ended_one[hit] = True
    versions.end_source[ended[order[1:][same] - width]] = hit
