"""The state of a range of keys from a folded base and what lies over it, in the order of keys.

Only keys that something lies over are folded; all other rows pass as they are. Rows that pass are found by hashing and keep their order, so
that the cost of a read follows what lies over the base, beside one copy of the rows.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import one_chunk
from .facts import Facts, Kind, concat
from .keys import encode_keys, lower_bound
from .replay.fold import fold
from .sortedfacts import SortedFacts
from .tables import Table

_FEW = 64
"""Keys that are looked for one by one; more of them are sorted into the others."""


class Part(Enum):
    """Which rows of the state a reader wants."""

    LIVE = "live"
    TOMBSTONES = "tombstones"
    EVERYTHING = "everything"


def merged(base: Facts, over: SortedFacts | None, table: Table, part: Part, newest: int) -> Facts:
    """The rows of ``part`` of the base, which is folded and in order, and of what lies over it.

    No stamp of the base has a commit time later than ``newest``.
    """
    if over is None:
        return _pick(base, part)
    keys = one_chunk(encode_keys(table, base.rows)) if len(base) else pa.array([], pa.binary())
    touched = np.asarray(pc.is_in(keys, value_set=over.keys))
    new = _folded(base, keys, touched, over, table, part, newest)
    passed = np.flatnonzero(~touched & _mask(base, part))
    if not len(new) or not len(passed):
        return new.facts if len(new) else base.take(pa.array(passed))
    before = np.searchsorted(passed, _places(keys, touched, new.keys))
    order = np.insert(passed, before, len(base) + np.arange(len(new)))
    return concat([base, new.facts]).take(pa.array(order))


def _folded(
    base: Facts, keys: pa.Array, touched: npt.NDArray[np.bool_], over: SortedFacts, table: Table, part: Part, newest: int
) -> SortedFacts:
    """The rows of ``part`` of the keys that something lies over.

    Where a single PUT or blind DELETE lies over a key, later than all of the base, nothing has to be folded to know what is live.
    """
    alone = _alone(over, newest) if part is Part.LIVE else np.zeros(len(over), dtype=bool)
    live = over.filter(alone & _mask(over.facts, part))
    if alone.all():
        return live
    rest = over.filter(~alone)
    concerned = touched if not alone.any() else np.asarray(pc.is_in(keys, value_set=rest.keys))
    below = [base.filter(pa.array(concerned))] if concerned.any() else []
    folded = _pick(fold(concat([*below, rest.facts]), table), part)
    if not len(folded):
        return live
    found = SortedFacts(folded, one_chunk(encode_keys(table, folded.rows)))
    return SortedFacts.joined([live, found]) if len(live) else found


def _alone(over: SortedFacts, newest: int) -> npt.NDArray[np.bool_]:
    """Which facts are PUTs and blind DELETEs later than ``newest`` that have their key for themselves."""
    facts = over.facts
    differs = np.ones(len(over) + 1, dtype=bool)
    differs[1:-1] = np.asarray(pc.not_equal(over.keys[1:], over.keys[:-1]))
    stamped: npt.NDArray[np.bool_] = facts.numbers("_kind") != Kind.NAMED
    if not stamped.any():
        return stamped
    commit_time = np.asarray(one_chunk(facts.transactions.column("commit_time")))
    later: npt.NDArray[np.bool_] = commit_time[np.where(stamped, facts.numbers("_txn"), 0)] > newest
    by_itself: npt.NDArray[np.bool_] = differs[1:] & differs[:-1] & stamped & later
    return by_itself


def _places(keys: pa.Array, touched: npt.NDArray[np.bool_], new: pa.Array) -> npt.NDArray[np.int64]:
    """For each of the sorted new keys the number of the sorted ``keys`` that are smaller; those among them are ``touched``."""
    known = np.flatnonzero(touched)
    at = np.asarray(pc.fill_null(pc.index_in(new, value_set=keys.filter(pa.array(touched))), -1)).astype(np.int64)
    strange = np.flatnonzero(at < 0)
    places = known[at] if len(known) else np.zeros(len(new), dtype=np.int64)
    if len(strange) <= _FEW:
        places[strange] = [lower_bound(keys, new[int(number)].as_py()) for number in strange]
        return places
    both = pa.concat_arrays([new.take(pa.array(strange)), keys])
    order = np.asarray(pc.sort_indices(both))
    is_new = order < len(strange)
    places[strange[order[is_new]]] = np.cumsum(~is_new)[is_new]
    return places


def _pick(facts: Facts, part: Part) -> Facts:
    if part is Part.EVERYTHING or not len(facts):
        return facts
    return facts.filter(pa.array(_mask(facts, part)))


def _mask(facts: Facts, part: Part) -> npt.NDArray[np.bool_]:
    """Which rows are of the part."""
    if part is Part.EVERYTHING:
        return np.ones(len(facts), dtype=bool)
    is_version: npt.NDArray[np.bool_] = facts.numbers("_kind") == Kind.VERSION
    ended: npt.NDArray[np.bool_] = facts.numbers("_end_kind") > 0
    kept: npt.NDArray[np.bool_] = ~ended if part is Part.LIVE else ended & (facts.numbers("_purged") == 0)
    return is_version & kept
