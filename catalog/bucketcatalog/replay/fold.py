"""The fold: facts in, state out, whatever their order, overlap or origin.

The state of a key is a function of the set of its events (DESIGN.md, section 2):

1. A version ends at the first of: the next PUT of the key, the next blind DELETE, a later DELETE that names it.
2. Its row is the latest among its PUT and the UPDATEs that name it; key, id and data reference stay the PUT's. An UPDATE or DELETE that
   names a version has an effect only if it comes after it: with a later commit time, or later in the same transaction.
3. It is live if it has not ended, a tombstone if it has and is not purged.

Folding is idempotent, and folding folded parts again equals folding their events at once: ends only come earlier and rows only later, and
a blind DELETE that an earlier end displaces becomes a stub again. All steps are array operations over the facts sorted by key.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..facts import FACT_COLUMNS, NO_STAMP, SEQUENCE_BITS, End, Facts, Kind, Stamps, commit_times, one_chunk
from ..keys import encode_keys
from ..tables import Table

_NEVER = np.iinfo(np.int64).max
_NUMBER = (1 << SEQUENCE_BITS) - 1
Mask = npt.NDArray[np.bool_]
_EXPECTED = ("_expects", "_expects_uuid", "_expects_seq")
_END_EXPECTED = ("_end_expects", "_end_expects_uuid", "_end_expects_seq")


def fold(facts: Facts, table: Table) -> Facts:
    """The state that the facts make, sorted by key and stamp; NAMED facts without their version come last within a key."""
    if not len(facts):
        return facts
    groups = _groups(facts, table)
    versions, named = _join(facts, groups)
    deletes = _blind_deletes(facts, groups)
    _end_by_next(versions, deletes)
    return _assemble(facts, table, versions, named, deletes)


def _groups(facts: Facts, table: Table) -> Stamps:
    """For each fact the rank of its key."""
    keys = one_chunk(encode_keys(table, facts.rows))
    order = np.asarray(pc.sort_indices(keys))
    ordered = keys.take(pa.array(order))
    changed = np.zeros(len(keys), dtype=np.int64)
    changed[1:] = np.asarray(pc.not_equal(ordered[1:], ordered[:-1]))
    groups = np.empty(len(keys), dtype=np.int64)
    groups[order] = np.cumsum(changed)
    return groups


@dataclass
class _Versions:
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

    def where(self, mask: Mask) -> _Versions:
        return _Versions(**{name: values[mask] for name, values in vars(self).items()})


@dataclass
class _Deletes:
    """One entry a distinct blind DELETE; ``from_end`` says that its expectation stands with the end of its source."""

    source: Stamps
    group: Stamps
    stamp: Stamps
    from_end: Mask
    ended_one: Mask


def _names(facts: Facts, named: Mask) -> Stamps:
    """For each fact a number for the version it is about: the stamp where the transaction is known, else a number beyond all stamps."""
    about = facts.stamps()
    if named.any():
        uuids = facts.column("_name_uuid").filter(pa.array(named))
        position = pc.index_in(uuids, value_set=facts.uuids)
        codes = np.asarray(pc.fill_null(position, NO_STAMP)).astype(np.int64)
        unknown = codes < 0
        if unknown.any():
            strange = uuids.filter(pa.array(unknown))
            codes[unknown] = np.asarray(pc.index_in(strange, value_set=pc.unique(strange))) + len(facts.uuids)
        about[named] = codes << SEQUENCE_BITS | facts.numbers("_name_seq")[named]
    return about


def _join(facts: Facts, groups: Stamps) -> tuple[_Versions, _Versions]:
    """VERSION facts, each with everything that names it; and what names versions that are not here, joined per name."""
    kinds = facts.numbers("_kind")
    picked = np.flatnonzero(kinds != Kind.DELETE)
    about = _names(facts, kinds == Kind.NAMED)[picked]
    order = np.lexsort((about, groups[picked]))
    picked, about, group = picked[order], about[order], groups[picked][order]
    first = np.ones(len(picked), dtype=bool)
    first[1:] = (group[1:] != group[:-1]) | (about[1:] != about[:-1])
    starts = np.flatnonzero(first)
    if not len(starts):
        empty = np.empty(0, dtype=np.int64)
        nothing = _Versions(empty, empty, empty, empty, empty, empty, empty, empty, empty.astype(bool))
        return nothing, nothing
    run = np.cumsum(first) - 1

    is_version = kinds[picked] == Kind.VERSION
    stamp = np.where(is_version, facts.stamps()[picked], NO_STAMP)
    row_stamp = facts.stamps("row")[picked]
    row_stamp = np.where(is_version & (row_stamp == NO_STAMP), stamp, row_stamp)
    end = facts.stamps("end")[picked]
    end = np.where(end == NO_STAMP, _NEVER, end)
    row_stamp, end = _effective(facts, picked, ~is_version, row_stamp, end)
    born = np.maximum.reduceat(stamp, starts)

    newest_row = np.maximum.reduceat(row_stamp, starts)
    first_end = np.minimum.reduceat(end, starts)
    has_version = np.maximum.reduceat(is_version.astype(np.int8), starts) > 0
    end_at = _first_where(end == first_end[run], run, starts)
    entries = _Versions(
        source=picked[_first_where(is_version | ~has_version[run], run, starts)],
        row_source=picked[_first_where(row_stamp == newest_row[run], run, starts)],
        group=group[starts],
        stamp=born,
        row_stamp=newest_row,
        end=first_end,
        end_kind=np.where(first_end == _NEVER, End.NONE, facts.numbers("_end_kind")[picked][end_at]),
        end_source=picked[end_at],
        purged=np.maximum.reduceat(facts.numbers("_purged")[picked], starts) > 0,
    )
    return entries.where(has_version), entries.where(~has_version)


def _effective(facts: Facts, picked: Stamps, named: Mask, row_stamp: Stamps, end: Stamps) -> tuple[Stamps, Stamps]:
    """``row_stamp`` and ``end`` without those of UPDATEs and DELETEs that do not come after the version that they name.

    A name holds its version's commit time, so this is known before the version is.
    """
    if not named.any():
        return row_stamp, end
    who = picked[named]
    uuids = facts.column("_name_uuid").take(pa.array(who))
    times = commit_times(uuids)
    known = np.asarray(pc.fill_null(pc.index_in(uuids, value_set=facts.uuids), NO_STAMP)).astype(np.int64)
    own = np.where(known < 0, NO_STAMP, known << SEQUENCE_BITS | facts.numbers("_name_seq")[who])
    commit_time = np.asarray(one_chunk(facts.transactions.column("commit_time")))
    void = {}
    for what, stamps in (("row", row_stamp[named]), ("end", end[named])):
        said = (stamps != NO_STAMP) & (stamps != _NEVER)
        position = np.where(said, stamps >> SEQUENCE_BITS, 0)
        same = (position == known) & (stamps > own)
        void[what] = said & ~same & (commit_time[position] <= times)
    row_stamp, end = row_stamp.copy(), end.copy()
    row_stamp[named] = np.where(void["row"], NO_STAMP, row_stamp[named])
    end[named] = np.where(void["end"], _NEVER, end[named])
    return row_stamp, end


def _first_where(mask: Mask, run: Stamps, starts: Stamps) -> Stamps:
    """For each run the position of its first entry where ``mask`` holds; every run has one."""
    hits = np.flatnonzero(mask)
    _, first = np.unique(run[hits], return_index=True)
    assert len(first) == len(starts)
    return hits[first]


def _blind_deletes(facts: Facts, groups: Stamps) -> _Deletes:
    """Every blind DELETE: the stubs, and those that ended a version in one of the folded parts."""
    stubs = np.flatnonzero(facts.numbers("_kind") == Kind.DELETE)
    ends = np.flatnonzero(facts.numbers("_end_kind") == End.DELETE)
    source = np.concatenate([stubs, ends])
    stamp = np.concatenate([facts.stamps()[stubs], facts.stamps("end")[ends]])
    from_end = np.arange(len(source)) >= len(stubs)
    group = groups[source]
    order = np.lexsort((stamp, group))
    source, stamp, from_end, group = source[order], stamp[order], from_end[order], group[order]
    first = np.ones(len(source), dtype=bool)
    first[1:] = (group[1:] != group[:-1]) | (stamp[1:] != stamp[:-1])
    return _Deletes(source[first], group[first], stamp[first], from_end[first], np.zeros(int(first.sum()), dtype=bool))


def _end_by_next(versions: _Versions, deletes: _Deletes) -> None:
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


def _absorb(versions: _Versions, deletes: _Deletes) -> None:
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


def _assemble(facts: Facts, table: Table, versions: _Versions, named: _Versions, deletes: _Deletes) -> Facts:
    """The state's rows: versions and stubs by key and stamp, then names of unseen versions."""
    stubs = ~deletes.ended_one
    entries = [versions, named]
    source = np.concatenate([*(e.source for e in entries), deletes.source[stubs]])
    row_source = np.concatenate([*(e.row_source for e in entries), deletes.source[stubs]])
    group = np.concatenate([*(e.group for e in entries), deletes.group[stubs]])
    stamp = np.concatenate([versions.stamp, np.full(len(named.stamp), NO_STAMP), deletes.stamp[stubs]])
    counts = (len(versions.stamp), len(named.stamp), int(stubs.sum()))
    kind = np.repeat([Kind.VERSION, Kind.NAMED, Kind.DELETE], counts)
    none = np.full(counts[2], NO_STAMP)
    row_stamp = np.concatenate([versions.row_stamp, named.row_stamp, none])
    end = np.concatenate([versions.end, named.end, np.full(counts[2], _NEVER)])
    end_kind = np.concatenate([versions.end_kind, named.end_kind, np.zeros(counts[2], dtype=np.int64)])
    purged = np.concatenate([versions.purged, named.purged, np.zeros(counts[2], dtype=bool)])
    if not table.keeps_tombstones:
        purged |= (kind == Kind.VERSION) & (end != _NEVER)

    columns = dict(_row_columns(facts, table, source, row_source, purged, kind))
    columns["_kind"] = pa.array(kind, pa.uint8())
    columns |= _stamp_columns("", stamp)
    columns |= _stamp_columns("row_", np.where(row_stamp == stamp, NO_STAMP, row_stamp))
    columns |= _stamp_columns("end_", np.where(end == _NEVER, NO_STAMP, end))
    columns["_end_kind"] = pa.array(end_kind, pa.uint8())
    columns["_purged"] = pa.array(purged)
    is_named = kind == Kind.NAMED
    for name in ("_name_uuid", "_name_seq"):
        columns[name] = _only_where(facts.column(name).take(pa.array(source)), is_named)
    columns |= _expectations(facts, versions, deletes, source, kind)
    order = np.lexsort((stamp, is_named, group))
    rows = pa.table({name: values.take(pa.array(order)) for name, values in columns.items()})
    return Facts(facts.transactions, _without_defaults(rows))


def _row_columns(
    facts: Facts, table: Table, source: Stamps, row_source: Stamps, purged: Mask, kind: Stamps
) -> list[tuple[str, pa.Array]]:
    """The rows: what no UPDATE changes from the PUT, the rest from the latest row, nothing but the fixed part of what is purged."""
    origin, latest = pa.array(source), pa.array(row_source)
    moved = not np.array_equal(source, row_source)
    bare = purged & (kind != Kind.NAMED)
    columns = []
    for name in facts.rows.column_names:
        if name in FACT_COLUMNS:
            continue
        values = one_chunk(facts.rows.column(name))
        fixed = name in table.fixed_columns
        taken = values.take(origin if fixed or not moved else latest)
        if bare.any() and not fixed:
            taken = _only_where(taken, ~bare)
        columns.append((name, taken))
    return columns


def _expectations(facts: Facts, versions: _Versions, deletes: _Deletes, source: Stamps, kind: Stamps) -> dict[str, pa.Array]:
    """What PUTs and blind DELETEs expected, and what the DELETEs that ended versions did."""
    columns = {}
    stub_from_end = np.zeros(len(source), dtype=bool)
    stub_from_end[kind == Kind.DELETE] = deletes.from_end[~deletes.ended_one]
    ended = np.flatnonzero(versions.end_kind == End.DELETE)
    delete = versions.end_source[ended]
    end_source = np.zeros(len(source), dtype=np.int64)
    end_from_end = np.zeros(len(source), dtype=bool)
    by_delete = np.zeros(len(source), dtype=bool)
    end_source[ended], end_from_end[ended], by_delete[ended] = deletes.source[delete], deletes.from_end[delete], True
    for own, end in zip(_EXPECTED, _END_EXPECTED, strict=True):
        if own not in facts.rows.column_names and end not in facts.rows.column_names:
            continue
        own_values, end_values = facts.column(own), facts.column(end)
        columns[own] = _choose(stub_from_end, end_values.take(pa.array(source)), own_values.take(pa.array(source)))
        at = pa.array(end_source)
        columns[end] = _only_where(_choose(end_from_end, end_values.take(at), own_values.take(at)), by_delete)
    return columns


def _choose(mask: Mask, yes: pa.Array, no: pa.Array) -> pa.Array:
    return pc.if_else(pa.array(mask), yes, no) if mask.any() else no


def _only_where(values: pa.Array, mask: Mask) -> pa.Array:
    """``values`` with null where the mask does not hold; works for nested types too."""
    if mask.all():
        return values
    return values.take(pa.array(np.arange(len(values)), mask=~mask))


def _stamp_columns(infix: str, stamps: Stamps) -> dict[str, pa.Array]:
    missing = stamps == NO_STAMP
    return {
        f"_{infix}txn": pa.array((stamps >> SEQUENCE_BITS).astype(np.int32), mask=missing),
        f"_{infix}seq": pa.array((stamps & _NUMBER).astype(np.int32), mask=missing),
    }


def _without_defaults(rows: pa.Table) -> pa.Table:
    """``rows`` without the fact columns that say nothing: all null, zero or false."""
    idle = [
        name for name in rows.column_names if name in FACT_COLUMNS and name not in ("_txn", "_seq") and _says_nothing(rows[name])
    ]
    return rows.drop_columns(idle)


def _says_nothing(values: pa.ChunkedArray) -> bool:
    if values.null_count == len(values):
        return True
    if values.type in (pa.uint8(), pa.bool_()):
        return not pc.any(values.cast(pa.bool_())).as_py()
    return False
