"""Which transactions the chosen checkpoints cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..codec.checkpoints import Checkpoint, Coverage
from ..cut import Head
from .files import LogFiles


class Covered:
    """The union of what some checkpoints cover.

    From a coverage's ``list_from`` on, it names every covered transaction. Before that it names those at revisions where several were
    known, and every other revision had one: a transaction there is it, unless the store now holds several.
    """

    def __init__(self, files: LogFiles, checkpoints: Sequence[Checkpoint]) -> None:
        self.checkpoints = tuple(checkpoints)
        self.files = files
        self._timelines: dict[str, tuple[int, dict[int, set[Head]]]] = {}

    def know(self, writer: str, listed: Iterable[Head], first: int = 0) -> None:
        """Take the timeline as listed from revision ``first`` on, so that revisions need not be listed one by one."""
        by_revision: dict[int, set[Head]] = {}
        for head in listed:
            by_revision.setdefault(head.revision, set()).add(head)
        self._timelines[writer] = (first, by_revision)

    def list_from(self, writer: str) -> int:
        """The first revision from which a reader must list the writer's timeline."""
        known = [c.coverage[writer].list_from for c in self.checkpoints if writer in c.coverage]
        return min(known, default=0)

    def holds(self, writer: str, head: Head) -> bool:
        """Whether one of the checkpoints covers the transaction."""
        return any(self._one_holds(c, writer, head) for c in self.checkpoints)

    def unaware(self, voided: Iterable[tuple[str, Head]]) -> list[Checkpoint]:
        """The checkpoints that cover one of these voided transactions and do not know it: what they hold is not the state."""
        voided = list(voided)
        known = {c.uuid: {void.ref for void in c.voids} for c in self.checkpoints} if voided else {}
        return [c for c in self.checkpoints if any(ref not in known[c.uuid] and self._one_holds(c, *ref) for ref in voided)]

    def heads(self, writer: str) -> set[Head]:
        """The heads of what is covered of the writer's timeline."""
        candidates = {head for c in self.checkpoints for head in c.cut.of_writer(writer)}
        return {head for head in candidates if not self._is_behind(writer, head)}

    def writers(self) -> set[str]:
        """The writers of whom something is covered."""
        return {writer for c in self.checkpoints for writer in c.cut.heads}

    def _is_behind(self, writer: str, head: Head) -> bool:
        return any(
            head not in c.cut.of_writer(writer) and self._one_holds(c, writer, head)
            for c in self.checkpoints
            if writer in c.coverage
        )

    def _one_holds(self, checkpoint: Checkpoint, writer: str, head: Head) -> bool:
        coverage = checkpoint.coverage.get(writer)
        if coverage is None or head.revision > checkpoint.cut.newest_revision(writer):
            return False
        if head in coverage.recent or head in coverage.branches or head in checkpoint.cut.of_writer(writer):
            return True
        if head.revision >= coverage.list_from or any(known.revision == head.revision for known in coverage.branches):
            return False
        return self._is_the_covered_one(checkpoint, coverage, writer, head)

    def _is_the_covered_one(self, checkpoint: Checkpoint, coverage: Coverage, writer: str, head: Head) -> bool:
        """Of the transactions at an old revision that had only one, whether ``head`` is that one: a covered child names it."""
        at_revision = self._listed(writer, head.revision)
        if len(at_revision) == 1:
            return head in at_revision
        children = [child for child in self._listed(writer, head.revision + 1) if self._one_holds(checkpoint, writer, child)]
        return any(link.uuid == head.uuid for child in children for link in self.files.transaction(writer, child).parents)

    def _listed(self, writer: str, revision: int) -> set[Head]:
        first, by_revision = self._timelines.get(writer, (revision + 1, {}))
        if revision >= first:
            return by_revision.get(revision, set())
        return set(self.files.at_revision(writer, revision))


def choose(checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
    """The checkpoints to read from: the one that covers most, and others that save more than they cost.

    A checkpoint is worth reading beside another where the transactions that it alone covers would be more to read than the rows that
    both hold. Checkpoints that have forgotten something are never combined.
    """
    ranked = sorted(checkpoints, key=lambda c: (-sum(cov.transactions for cov in c.coverage.values()), c.uuid))
    if not ranked:
        return []
    chosen = [ranked[0]]
    if ranked[0].forgotten_before:
        return chosen
    for candidate in ranked[1:]:
        alone, shared = _gain(candidate, chosen)
        size = sum(segment.size for segment in candidate.segments)
        if alone and not candidate.forgotten_before and alone * _TRANSACTION_COST > size * shared / (alone + shared):
            chosen.append(candidate)
    return chosen


_TRANSACTION_COST = 16 << 10


def _gain(candidate: Checkpoint, chosen: Sequence[Checkpoint]) -> tuple[int, int]:
    alone = shared = 0
    for writer, coverage in candidate.coverage.items():
        known = max((c.coverage[writer].transactions for c in chosen if writer in c.coverage), default=0)
        alone += max(coverage.transactions - known, 0)
        shared += min(coverage.transactions, known)
    return alone, shared
