"""The state of a range of keys from a folded base and its overlay, in the order of keys.

Only the keys of the overlay are folded; all other rows pass as they are. Rows that pass are found by hashing and keep their order, so that
the cost of a read follows the overlay, beside one copy of the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import Mask, Positions, one_chunk
from ..model.facts import NO_STAMP, Facts, Kind, SortedFacts, concat
from ..model.keys import encode_keys, lower_bound
from ..model.tables import Table
from .fold import fold
from .plan import Part

_FEW = 64
_AMONG = 256
"""Keys that are looked for one by one: a few, or one among so many others. More of them are sorted into these."""


@dataclass(frozen=True)
class Overlay:
    """The overlay of a base, split: ``keys`` are those of all of it, sorted, as the table ``by`` gives them.

    ``known`` are the rows of keys that need no base to be known, ``rest`` the facts that have to be folded with the base's of their keys.
    """

    by: Table
    keys: pa.Array
    known: SortedFacts
    rest: SortedFacts


def split(overlay: SortedFacts, by: Table, part: Part, newest: int) -> Overlay:
    """The overlay of a base of which no stamp has a commit time later than ``newest``; its keys are those that ``by`` gives.

    A key of which the overlay holds only PUTs and blind DELETEs, all later than the base, is known: the last of them says what is live.
    """
    if part is not Part.LIVE or not len(overlay):
        return Overlay(by, overlay.keys, overlay.filter(np.zeros(len(overlay), dtype=bool)), overlay)
    first = np.ones(len(overlay), dtype=bool)
    first[1:] = np.asarray(pc.not_equal(overlay.keys[1:], overlay.keys[:-1]))
    later, last = _later(overlay.facts, newest), first
    if not first.all():
        last, sure = _last(overlay.facts, first)
        later = np.logical_and.reduceat(later, np.flatnonzero(first))[np.cumsum(first) - 1] & sure
    return Overlay(by, overlay.keys, overlay.filter(later & last & _mask(overlay.facts, part)), overlay.filter(~later))


def _last(facts: Facts, first: Mask) -> tuple[Mask, Mask]:
    """Which facts are the last of their key, and of which it is sure that nothing else of their key has ended the last.

    ``first`` says where keys begin. What ended an earlier version may be a DELETE that comes after the last PUT, and what is there twice,
    as in two checkpoints, may have ended in one of them alone.
    """
    starts, group = np.flatnonzero(first), np.cumsum(first) - 1
    stamps = facts.stamps()
    newest = np.maximum.reduceat(stamps, starts)
    last: Mask = stamps == newest[group]
    ends = np.maximum.reduceat(np.where(last, NO_STAMP, facts.stamps("end")), starts)
    sure: Mask = (ends <= newest) & (np.add.reduceat(last, starts, dtype=np.int64) == 1)
    return last, sure[group]


def _later(facts: Facts, newest: int) -> Mask:
    """Which facts are PUTs and blind DELETEs later than ``newest``."""
    stamped: Mask = facts.numbers("_kind") != Kind.NAMED
    if not stamped.any():
        return stamped
    commit_time = np.asarray(one_chunk(facts.transactions.column("commit_time")))
    later: Mask = commit_time[np.where(stamped, facts.numbers("_txn"), 0)] > newest
    return stamped & later


@dataclass(frozen=True)
class Arranged:
    """Some ``rows`` of facts, by their positions and in this order, or all as they are, to be taken once it is known which go where."""

    facts: Facts
    rows: Positions | None = None

    @property
    def among(self) -> Mask:
        """Which of the facts they are."""
        if self.rows is None:
            return np.ones(len(self.facts), dtype=bool)
        found = np.zeros(len(self.facts), dtype=bool)
        found[self.rows] = True
        return found

    def where(self, mask: Mask) -> Facts:
        """Those of them of which a mask over the facts is true."""
        if self.rows is None:
            return self.facts if mask.all() else self.facts.filter(pa.array(mask))
        return self.facts.take(pa.array(self.rows[mask[self.rows]]))


def arranged(base: Facts, overlay: Overlay | None, table: Table) -> Arranged:
    """All rows of the base, which is folded and in order, and of its overlay."""
    if overlay is None:
        return Arranged(base)
    facts, rows, _ = _joined(base, overlay, table, Part.EVERYTHING)
    return Arranged(facts, rows)


def apply(base: Facts, overlay: Overlay | None, table: Table, part: Part) -> Facts:
    """The rows of ``part`` of the base, which is folded and in order, and of its overlay."""
    if overlay is None:
        return _pick(base, part)
    facts, rows, has_same_keys = _joined(base, overlay, table, part)
    if rows is None:
        return facts
    return _replaced(base, facts, rows, table) if has_same_keys else facts.take(pa.array(rows))


def apart(base: Facts, overlay: Overlay, table: Table, part: Part) -> Iterator[Facts]:
    """The same rows, those that the overlay leaves as they are before its own: to put them in order costs more than to find them."""
    keys, touched = _touched(base, overlay)
    new = _folded(base, keys, touched, overlay, table, part)
    passed = ~touched & _mask(base, part)
    yield from (facts for facts in (base.filter(pa.array(passed)), new.facts) if len(facts))


def under(base: Facts, overlay: Overlay) -> Facts:
    """The rows of the base whose keys the overlay names."""
    _, touched = _touched(base, overlay)
    return base.filter(pa.array(touched))


def _touched(base: Facts, overlay: Overlay) -> tuple[pa.Array, Mask]:
    """The keys of the base, and which of them the overlay names."""
    keys = one_chunk(encode_keys(overlay.by, base.rows)) if len(base) else pa.array([], pa.binary())
    return keys, np.asarray(pc.is_in(keys, value_set=overlay.keys))


def _joined(base: Facts, overlay: Overlay, table: Table, part: Part) -> tuple[Facts, Positions | None, bool]:
    """The base and what the overlay makes of its keys, which of these rows there are then, and whether their keys are those of the base."""
    keys, touched = _touched(base, overlay)
    new = _folded(base, keys, touched, overlay, table, part)
    passed = np.flatnonzero(~touched & _mask(base, part))
    if not len(new) or not len(passed):
        return (new.facts, None, False) if len(new) else (base, passed, False)
    joined, behind = concat([base, new.facts]), len(base) + np.arange(len(new))
    if len(passed) + len(new) == len(base) and new.keys.equals(keys.filter(pa.array(touched))):
        rows = np.arange(len(base))
        rows[touched] = behind
        return joined, rows, True
    before = np.searchsorted(passed, _places(keys, touched, new.keys))
    return joined, np.insert(passed, before, behind), False


def _replaced(base: Facts, joined: Facts, rows: Positions, table: Table) -> Facts:
    """These rows of ``joined``, whose keys are those of the base, one by one: they stay as they are."""
    names = joined.rows.column_names
    same = {column.field_name for column in table.key_columns}.intersection(names)
    taken = joined.rows.select([name for name in names if name not in same]).take(pa.array(rows))
    columns = {name: base.rows.column(name) if name in same else taken.column(name) for name in names}
    return Facts(joined.transactions, pa.table(columns))


def _folded(base: Facts, keys: pa.Array, touched: Mask, overlay: Overlay, table: Table, part: Part) -> SortedFacts:
    """The rows of ``part`` of the keys of the overlay."""
    if not len(overlay.rest):
        return overlay.known
    concerned = touched if len(overlay.rest) == len(overlay.keys) else np.asarray(pc.is_in(keys, value_set=overlay.rest.keys))
    below = [base.filter(pa.array(concerned))] if concerned.any() else []
    folded = _pick(fold(concat([*below, overlay.rest.facts]), table), part)
    if not len(folded):
        return overlay.known
    found = SortedFacts(folded, one_chunk(encode_keys(overlay.by, folded.rows)))
    return SortedFacts.joined([overlay.known, found]) if len(overlay.known) else found


def _places(keys: pa.Array, touched: Mask, new: pa.Array) -> npt.NDArray[np.int64]:
    """For each of the sorted new keys the number of the sorted ``keys`` that are smaller; those among them are ``touched``."""
    at_touched = np.flatnonzero(touched)
    at = np.asarray(pc.fill_null(pc.index_in(new, value_set=keys.filter(pa.array(touched))), -1)).astype(np.int64)
    others = np.flatnonzero(at < 0)
    places = at_touched[at] if len(at_touched) else np.zeros(len(new), dtype=np.int64)
    if len(others) <= max(_FEW, len(keys) // _AMONG):
        places[others] = [lower_bound(keys, new[int(number)].as_py()) for number in others]
        return places
    both = pa.concat_arrays([new.take(pa.array(others)), keys])
    order = np.asarray(pc.sort_indices(both))
    is_new = order < len(others)
    places[others[order[is_new]]] = np.cumsum(~is_new)[is_new]
    return places


def _pick(facts: Facts, part: Part) -> Facts:
    if part is Part.EVERYTHING or not len(facts):
        return facts
    return facts.filter(pa.array(_mask(facts, part)))


def _mask(facts: Facts, part: Part) -> Mask:
    """Which rows are of the part."""
    if part is Part.EVERYTHING:
        return np.ones(len(facts), dtype=bool)
    is_version: Mask = facts.numbers("_kind") == Kind.VERSION
    ended: Mask = facts.numbers("_end_kind") > 0
    kept: Mask = ~ended if part is Part.LIVE else ended & (facts.numbers("_purged") == 0)
    return is_version & kept
