"""Judging: which versions collection may forget, and whose data is needed. Pure functions of the state's rows.

A version is a *candidate* if it has an end that counts, is not purged, and no tag has it live. It *needs* its data if it has no such end,
is pinned by a tag, or belongs to somebody else (an external parent's); whether it is purged makes no difference, for whoever purged it by
hand has not waited. Data that some candidate names and nothing needs is garbage.

An end counts if it lies at or before the table's limit, and if it and the version's PUT were there when the boundary was published: what
arrives later may have any commit time, and nobody has waited for it.

A version is live at a cut if the cut has its PUT and nothing that ends it. Of the events that end it the state knows the earliest, so what
is said here is at least what is live there: the earliest end may be one that the cut lacks while it has a later one, or lie at a forked
revision of which the heads alone do not say whether the cut has it. Then a version is kept longer than it had to be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ... import limits
from ...log.entries import tags_of, tags_that_hold
from ...log.view import LogView
from ...model.arrays import Mask, one_chunk
from ...model.cuts import Cut
from ...model.facts import NO_STAMP, Facts, Kind
from ...model.tables import UUID_BYTES


@dataclass(frozen=True)
class Forked:
    """The revisions at which several transactions are known, or may have been: a cut's heads alone do not tell which of them it has."""

    places: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def of(cls, view: LogView) -> Forked:
        """Those of a view."""
        return cls(_forked(view))

    @cached_property
    def _index(self) -> tuple[pa.Array, pa.Array, pa.Array]:
        """The forked writers, the revisions, and the pairs of their positions as one number each."""
        writers = pa.array(sorted({writer for writer, _ in self.places}), pa.string())
        revisions = pa.array(sorted({revision for _, revision in self.places}), pa.int64())
        pairs = pa.table({"writer": [w for w, _ in self.places], "revision": [r for _, r in self.places]}, schema=_PLACES)
        return writers, revisions, _paired(pairs, writers, revisions)

    def has(self, transactions: pa.Table) -> Mask:
        """Which of the transactions lie at a forked revision."""
        writers, revisions, pairs = self._index
        return np.asarray(pc.is_in(_paired(transactions, writers, revisions), value_set=pairs))


@dataclass(frozen=True)
class Held:
    """What a cut holds: the transactions up to its heads, and of those at forked revisions only the ones that are ``known`` to be in it."""

    cut: Cut
    forked: Forked = field(default_factory=Forked)
    known: frozenset[bytes] = frozenset()

    def has(self, transactions: pa.Table) -> Mask:
        """Which of the transactions the cut certainly has."""
        named = [*(head.uuid for _, head in self.cut.refs()), *self.known]
        sure: Mask = ~self.forked.has(transactions) | _are(transactions, named)
        held: Mask = _may_have(transactions, self.cut) & sure
        return held


@dataclass(frozen=True)
class Ends:
    """Which ends of versions count: those up to a ``limit`` in microseconds that ``held`` has, with the version; None has everything."""

    limit: int
    held: Held | None = None

    def count(self, facts: Facts) -> Mask:
        """Which of the rows are versions with an end that counts."""
        ended: Mask = (
            (facts.numbers("_kind") == Kind.VERSION) & (facts.numbers("_end_kind") > 0) & (facts.end_times() <= self.limit)
        )
        if self.held is None or not ended.any():
            return ended
        has, put, end = self.held.has(facts.transactions), facts.numbers("_txn", NO_STAMP), facts.numbers("_end_txn", NO_STAMP)
        counted: Mask = ended & (put != NO_STAMP) & has[put] & has[end]
        return counted


@dataclass(frozen=True)
class Pins:
    """The cuts that tags hold, and where timelines are forked."""

    cuts: tuple[Cut, ...] = ()
    forked: Forked = field(default_factory=Forked)

    @classmethod
    def of(cls, view: LogView, earlier: LogView | None = None, longest: int = limits.PLAIN_PIN_AGE) -> Pins:
        """What tags hold that the view knows or an ``earlier`` one knew, those of who is no maintainer for the ``longest`` time."""
        looks = [known for known in (view, earlier) if known is not None]
        pins = [pin for known in looks for pin in tags_that_hold(tags_of(known).values(), known.observed, longest)]
        return cls(tuple(dict.fromkeys(pin.cut for pin in pins)), Forked.of(view))

    def live(self, facts: Facts) -> Mask:
        """Which of the versions may be live at one of the cuts."""
        found = np.zeros(len(facts), dtype=bool)
        if not len(facts) or not self.cuts:
            return found
        put, end = facts.numbers("_txn", NO_STAMP), facts.numbers("_end_txn", NO_STAMP)
        unsure = self.forked.has(facts.transactions)
        for cut in self.cuts:
            may_have = _may_have(facts.transactions, cut)
            has = may_have & (~unsure | _are(facts.transactions, [head.uuid for _, head in cut.refs()]))
            found |= (put != NO_STAMP) & may_have[put] & ~((end != NO_STAMP) & has[end])
        return found


_PLACES = pa.schema([("writer", pa.string()), ("revision", pa.int64())])


def _paired(places: pa.Table, writers: pa.Array, revisions: pa.Array) -> pa.Array:
    """The places' positions among writers and revisions as one number, -1 where one of them is not among these."""
    of_writer = pc.index_in(one_chunk(places["writer"]), value_set=writers).cast(pa.int64())
    of_revision = pc.index_in(one_chunk(places["revision"]), value_set=revisions).cast(pa.int64())
    return pc.fill_null(pc.add(pc.multiply(of_writer, len(revisions)), of_revision), -1)


def _may_have(transactions: pa.Table, cut: Cut) -> Mask:
    """Which of the transactions the cut may have: those up to the newest head of their timeline."""
    writers, revisions = one_chunk(transactions["writer"]), np.asarray(one_chunk(transactions["revision"]))
    known = list(cut.heads)
    at = pc.fill_null(pc.index_in(writers, value_set=pa.array(known, pa.string())), len(known))
    newest = np.array([*(cut.newest_revision(writer) for writer in known), -1], dtype=np.int64)
    may_have: Mask = revisions <= newest[np.asarray(at)]
    return may_have


def _are(transactions: pa.Table, uuids: Sequence[bytes]) -> Mask:
    """Which of the transactions have one of these uuids."""
    return np.asarray(pc.is_in(one_chunk(transactions["uuid"]), value_set=pa.array(uuids, UUID_BYTES)))


def _forked(view: LogView) -> frozenset[tuple[str, int]]:
    """Where several transactions are known, or where one is that may have had a sibling.

    The forks that a view shows are too few: one behind the horizon is history there, and of its branches a tag may have one. So it is asked
    what checkpoints name. A branch had a sibling, known or not; before the floor of the horizon a sibling may have been deleted; and what
    no checkpoint covers though it lies below a head of one has one there.
    """
    covered = [(writer, coverage) for checkpoint in view.checkpoints for writer, coverage in checkpoint.coverage.items()]
    named = {(writer, head) for writer, coverage in covered for head in coverage.recent | coverage.branches}
    known = Counter((writer, head.revision) for writer, head in named | {t.ref for t in view.tail})
    branches = {(writer, head.revision) for writer, coverage in covered for head in coverage.branches}
    late = {
        (t.writer, t.revision) for t in view.tail if any(t.revision <= c.cut.newest_revision(t.writer) for c in view.checkpoints)
    }
    floor = view.horizon.floor if view.horizon is not None else lambda _: 0
    return frozenset({at for at, count in known.items() if count > 1 or at[1] < floor(at[0])} | branches | late)


FACT_NAMES = ("_kind", "_txn", "_seq", "_end_txn", "_end_seq", "_end_kind", "_purged")
"""What is read of a version beside the columns of its row."""


@dataclass(frozen=True, slots=True)
class Judged:
    """For each row of some state whether it is a candidate, whether it needs its data, and whether a tag alone keeps it."""

    candidates: Mask
    needs: Mask
    pinned: Mask


def judge(facts: Facts, *, ends: Ends, pins: Pins, external: Mask, unheard: Mask) -> Judged:
    """Judge the rows of a state by the ends that count.

    ``external`` says which rows have an external parent, ``unheard`` which were ended by who has no say in their data.
    """
    versions: Mask = facts.numbers("_kind") == Kind.VERSION
    old = ends.count(facts) & ~unheard
    tagged = old & pins.live(facts)
    there = old & (facts.numbers("_purged") == 0)
    return Judged(there & ~tagged, versions & (~old | tagged | external), there & tagged)


def masked(values: pa.Array, mask: Mask) -> pa.Array:
    """The values where the mask is true, without nulls, each once."""
    return values.filter(pa.array(mask)).drop_null().unique()
