"""What events ended or replaced: for each the row that was live under its key just before it, where it changed that.

A version was live just before a stamp if it began before it and had not ended before it, and what ended it is the event of that stamp: ends
follow from the events up to there, whatever comes after. Its row then is the latest of those that its PUT and UPDATEs with earlier stamps
have given it. So a DELETE that ends nothing, a PUT of what was not there, an UPDATE that comes too late and a PURGE have no row before.

The state that events start from may know less than they do: of a version that was forgotten, or that a later UPDATE has changed, the row
as it was is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..model.arrays import Mask, one_chunk
from ..model.facts import NO_STAMP, End, Facts, Kind, Stamps, concat, positions_of, sequences_of
from ..model.keys import encode_keys
from ..model.tables import Table
from .fold import fold, key_ranks, stamps_about

_NONE = -1


@dataclass(frozen=True)
class Before:
    """What was before each of some events: ``versions`` names the versions that they ended or changed, null where there was none.

    ``rows`` are state rows of versions, and ``at`` is for each event the number of its own among them, null where nobody knows it.
    """

    versions: tuple[pa.Array, pa.Array]
    rows: Facts
    at: pa.Array


def before(state: Facts, events: Facts, table: Table) -> Before:
    """What was before the ``events``, which are all of the keys that they are about after the ``state`` of these keys; in their order."""
    every = concat([state, events])
    first = len(every) - len(events)
    if _is_plain(every):
        latest = begun = _put_before(every, table, first)
        versions = np.where(begun == _NONE, NO_STAMP, every.stamps()[begun])
    else:
        about = _about(every, table)
        versions = _touched(fold(every, table), every, about, first)
        latest, begun = _as_of(every, about, versions, every.stamps()[first:])
    known = np.flatnonzero(latest != _NONE)
    at = np.full(len(events), _NONE)
    at[known] = np.arange(len(known))
    found = _rows(every, table, versions[known], latest[known], begun[known])
    names = every.event_names(versions)
    return Before((names.uuids, names.sequences), found, pa.array(at, mask=at == _NONE))


def _is_plain(every: Facts) -> bool:
    """Whether every version has the row of its PUT, and was ended, if at all, by what ends whatever is live: a PUT or a blind DELETE.

    What names the version that it ends has no say in what came between the two.
    """
    names = {*every.rows.column_names}
    no_update = "_row_txn" not in names or every.column("_row_txn").null_count == len(every)
    names_none = not (every.numbers("_kind") == Kind.NAMED).any() and not (every.numbers("_end_kind") > End.DELETE).any()
    return names_none and no_update and not every.numbers("_purged").any()


def _put_before(every: Facts, table: Table, first: int) -> Stamps:
    """For each event from ``first`` on of ``_is_plain`` facts the PUT that was the last of its key before it; ``_NONE`` without one.

    Nothing is folded for that: what lies between the two would have ended it, as what ends versions of the state does.
    """
    keys = one_chunk(encode_keys(table, every.rows)).dictionary_encode().indices
    end = every.stamps("end")
    ended = np.flatnonzero(end != NO_STAMP)
    key = np.asarray(keys).astype(np.int64)
    key, stamp = np.concatenate([key, key[ended]]), np.concatenate([every.stamps(), end[ended]])
    is_end = np.arange(len(key)) >= len(every)
    order = np.lexsort((~is_end, stamp, key))
    last, this = order[:-1], order[1:]
    is_put = np.append(every.numbers("_kind") == Kind.VERSION, np.zeros(len(ended), dtype=bool))
    fits = (key[last] == key[this]) & is_put[last] & (this >= first) & (this < len(every))
    found = np.full(len(every), _NONE)
    found[this[fits]] = last[fits]
    return found[first:]


def _about(every: Facts, table: Table) -> Stamps:
    """For each fact the stamp of the version that it is about; ``NO_STAMP`` where it names one that is not of its key, or not there."""
    kinds = every.numbers("_kind")
    about = stamps_about(every, kinds == Kind.NAMED)
    if not (kinds == Kind.NAMED).any():
        return about
    puts, ranks = np.flatnonzero(kinds == Kind.VERSION), key_ranks(every, table)
    of_its_key = _looked_up(about[puts], ranks[puts], about) == ranks
    return np.where((kinds == Kind.NAMED) & ~of_its_key, NO_STAMP, about)


def _touched(state: Facts, every: Facts, about: Stamps, first: int) -> Stamps:
    """For each event the stamp of the version that it ended, or whose row it replaced while that was live; ``NO_STAMP`` for none."""
    is_version = state.numbers("_kind") == Kind.VERSION
    begun, ended = state.stamps()[is_version], state.stamps("end")[is_version]
    own = every.stamps()[first:]
    found = _looked_up(ended, begun, own)
    is_update = (every.stamps("row")[first:] != NO_STAMP) & (every.numbers("_kind")[first:] == Kind.NAMED)
    end_of = _looked_up(begun, np.where(ended == NO_STAMP, np.iinfo(np.int64).max, ended), about[first:])
    is_live = is_update & (end_of != NO_STAMP) & (about[first:] < own) & (own <= end_of)
    return np.where(is_live, about[first:], found)


def _looked_up(keys: Stamps, values: Stamps, wanted: Stamps) -> Stamps:
    """For each of the ``wanted`` the value of its key, ``NO_STAMP`` where it is none of the keys or none itself."""
    if not len(keys):
        return np.full(len(wanted), NO_STAMP)
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    found = order[place]
    return np.where((keys[found] == wanted) & (wanted != NO_STAMP), values[found], NO_STAMP)


class _Rows(NamedTuple):
    """For each event the facts that have the row before it: its ``latest`` and the PUT's, or a state's of it; ``_NONE`` without."""

    latest: Stamps
    begun: Stamps


def _as_of(every: Facts, about: Stamps, versions: Stamps, before: Stamps) -> _Rows:
    """The rows of versions as they were before stamps."""
    kinds, row = every.numbers("_kind"), every.row_stamps()
    is_version = kinds == Kind.VERSION
    forgotten = is_version & (every.numbers("_purged") > 0) & (every.stamps("end") != NO_STAMP)
    has_row = (is_version & ~forgotten) | ((kinds == Kind.NAMED) & (every.stamps("row") != NO_STAMP) & (row > about))
    facts = np.flatnonzero(has_row)
    # Candidates and questions in one order: by version, then by stamp, a question before the row of the same stamp.
    version = np.concatenate([about[facts], versions])
    stamp = np.concatenate([row[facts], before])
    is_question = np.arange(len(version)) >= len(facts)
    order = np.lexsort((~is_question, stamp, version))
    place = np.where(is_question[order], _NONE, np.arange(len(order)))
    last = np.maximum.accumulate(place) if len(place) else place
    fits = (last != _NONE) & (version[order][last] == version[order]) & (version[order] != NO_STAMP)
    latest = np.full(len(version), _NONE)
    latest[order] = np.where(fits, order[last], _NONE)
    found = latest[len(facts) :]
    found = np.where(found == _NONE, _NONE, facts[np.maximum(found, 0)] if len(facts) else _NONE)
    puts = np.flatnonzero(is_version & ~forgotten)
    begun = _looked_up(about[puts], puts, versions) if len(puts) else np.full(len(versions), _NONE)
    return _Rows(np.where(begun == _NONE, _NONE, found), begun)


def _rows(every: Facts, table: Table, versions: Stamps, latest: Stamps, begun: Stamps) -> Facts:
    """State rows: what no UPDATE changes from the PUT, the rest from the latest row, with the stamps of both."""
    row = every.row_stamps()[latest]
    columns = {
        "_txn": pa.array(positions_of(versions).astype(np.int32)),
        "_seq": pa.array(sequences_of(versions).astype(np.int32)),
        "_row_txn": _of(positions_of(row), row == versions),
        "_row_seq": _of(sequences_of(row), row == versions),
    }
    for name, values in zip(every.rows.column_names, every.rows.columns, strict=True):
        if not name.startswith("_"):
            columns[name] = one_chunk(values).take(pa.array(begun if name in table.fixed_columns else latest))
    return Facts(every.transactions, pa.table(columns))


def _of(values: Stamps, missing: Mask) -> pa.Array:
    return pa.array(values.astype(np.int32), mask=missing)
