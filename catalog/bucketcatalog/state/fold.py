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

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import one_chunk
from ..model.facts import NEVER, NO_STAMP, SEQUENCE_BITS, End, Facts, Kind, Stamps, commit_times
from ..model.keys import encode_keys
from ..model.tables import Table
from .outcome import Deletes, Mask, Versions, assemble


def fold(facts: Facts, table: Table) -> Facts:
    """The state that the facts make, sorted by key and stamp; NAMED facts without their version come last within a key."""
    if not len(facts):
        return facts
    groups = _groups(facts, table)
    versions, named = _join(facts, groups)
    deletes = _blind_deletes(facts, groups)
    _end_by_next(versions, deletes)
    return assemble(facts, table, versions, named, deletes)


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


def _join(facts: Facts, groups: Stamps) -> tuple[Versions, Versions]:
    """VERSION facts, each with everything that names it; and what names versions that are not here, joined per name."""
    kinds = facts.numbers("_kind")
    picked = np.flatnonzero(kinds != Kind.DELETE)
    about = _names(facts, kinds == Kind.NAMED)[picked]
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
    own = np.where(known < 0, NO_STAMP, known << SEQUENCE_BITS | facts.numbers("_name_seq")[who])
    commit_time = np.asarray(one_chunk(facts.transactions.column("commit_time")))
    void = {}
    for what, stamps in (("row", row_stamp[named]), ("end", end[named])):
        said = (stamps != NO_STAMP) & (stamps != NEVER)
        position = np.where(said, stamps >> SEQUENCE_BITS, 0)
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
