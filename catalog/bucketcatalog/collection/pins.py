"""Pins: which versions a tag's cut has live, told by stamps alone, without reading that cut.

A version is live at a cut if the cut has its PUT and nothing that ends it. Of the events that end it the state knows the earliest, so what
is said here is at least what is live there: the earliest end may be one that the cut lacks while it has a later one, or lie at a forked
revision of which it cannot be told from the heads alone whether the cut has it. Then a version is kept longer than it had to be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import one_chunk
from ..cut import Cut
from ..facts import NO_STAMP, Facts
from ..log.tags import tags_of
from ..log.view import View

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Pins:
    """The cuts that tags name, and the revisions at which more than one transaction is known."""

    cuts: tuple[Cut, ...] = ()
    forked: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def of(cls, view: View) -> Pins:
        """The tags that the view knows, without those that were dropped."""
        cuts = dict.fromkeys(tag.latest.cut for tag in tags_of(view).values() if not tag.latest.dropped)
        return cls(tuple(cuts), frozenset((fork.writer, fork.revision) for fork in view.forks))

    def live(self, facts: Facts) -> Mask:
        """Which of the versions may be live at one of the cuts."""
        found = np.zeros(len(facts), dtype=bool)
        if not len(facts):
            return found
        put, end = facts.numbers("_txn", NO_STAMP), facts.numbers("_end_txn", NO_STAMP)
        for cut in self.cuts:
            may_have, has = self._within(facts.transactions, cut)
            found |= (put != NO_STAMP) & may_have[put] & ~((end != NO_STAMP) & has[end])
        return found

    def _within(self, transactions: pa.Table, cut: Cut) -> tuple[Mask, Mask]:
        """Which of the transactions the cut may have, and which it has for certain."""
        writers, revisions = one_chunk(transactions["writer"]), np.asarray(one_chunk(transactions["revision"]))
        known = list(cut.heads)
        at = pc.fill_null(pc.index_in(writers, value_set=pa.array(known, pa.string())), len(known))
        newest = np.array([*(cut.newest_revision(writer) for writer in known), -1], dtype=np.int64)
        may_have: Mask = revisions <= newest[np.asarray(at)]
        heads = pa.array([head.uuid for of_writer in cut.heads.values() for head in of_writer], pa.binary(16))
        unsure = np.zeros(len(transactions), dtype=bool)
        for writer, revision in self.forked:
            unsure |= np.asarray(pc.equal(writers, writer)) & (revisions == revision)
        return may_have, may_have & (~unsure | np.asarray(pc.is_in(one_chunk(transactions["uuid"]), value_set=heads)))
