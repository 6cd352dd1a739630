"""Which transactions the chosen checkpoints cover."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from itertools import takewhile

from ..format.checkpoints import Checkpoint
from ..model.cuts import Head, Ref
from .aside import set_aside
from .files import LogFiles
from .horizon import Horizon
from .trust import is_trusted


class Covered:
    """The union of what some checkpoints cover.

    From a coverage's ``list_from`` on, it names every covered transaction, and so it does before its ``first_revision``. Between these it
    names those at revisions where several were known, and every other revision had one: a transaction there is it, unless the store now
    holds several.

    Where transactions may have been deleted, before the floor of the ``horizon``, a transaction that is alone at its revision may be one
    that came later. There one that is gone is covered by what reaches the horizon, since nothing else is deleted; and one that is there, if
    it is named or a covered one follows it.
    """

    def __init__(self, files: LogFiles, checkpoints: Sequence[Checkpoint], horizon: Horizon | None = None) -> None:
        self.checkpoints = tuple(checkpoints)
        self.files = files
        self.horizon = horizon
        self._reaching: dict[Ref, bool] = {}
        self._begun: dict[str, bool] = {}
        self._followed: dict[tuple[Ref, str], set[Head]] = {}
        self._covered_at: dict[tuple[Ref, str], dict[int, set[Head]]] = {}
        self._timelines: dict[str, tuple[int, dict[int, set[Head]]]] = {}
        self._branching: dict[tuple[Ref, str], set[int]] = {}
        self._revisions: dict[tuple[str, int], set[Head]] = {}

    def of_another(self, checkpoint: Checkpoint) -> Covered:
        """What another checkpoint alone covers, by the timelines as they are known here: nothing is listed twice for it."""
        other = copy(self)
        other.checkpoints = (checkpoint,)
        return other

    def know(self, writer: str, listed: Iterable[Head], first: int = 0) -> None:
        """Take the timeline as listed from revision ``first`` on, so that revisions need not be listed one by one."""
        by_revision: dict[int, set[Head]] = {}
        for head in listed:
            by_revision.setdefault(head.revision, set()).add(head)
        self._timelines[writer] = (first, by_revision)
        for key in [key for key in self._covered_at if key[1] == writer]:
            del self._covered_at[key]

    def ahead(self, writer: str, first: int, last: int) -> list[Ref]:
        """The transactions at these revisions that are not covered, where it pays to ask for many at once; else none."""
        if self.files.concurrency < 2 or last - first < 2:
            return []
        heads = list(takewhile(lambda head: head.revision <= last + 1, self.files.transactions(writer, first)))
        self.know(writer, heads, first)
        return [Ref(writer, head) for head in heads if head.revision <= last and not self.holds(writer, head)]

    def read_ahead(self, writer: str, first: int, last: int) -> None:
        """Read these, so that they are at hand for a while."""
        self.files.read_ahead(self.ahead(writer, first, last))

    def list_from(self, writer: str) -> int:
        """The first revision from which a reader must list the writer's timeline."""
        known = [c.coverage[writer].list_from for c in self.checkpoints if writer in c.coverage]
        return min(known, default=0)

    def is_gone(self, writer: str, head: Head) -> bool:
        """Whether the transaction is not there, and may have been deleted."""
        return self._may_be_gone(writer, head.revision) and head not in self._listed(writer, head.revision)

    def holds(self, writer: str, head: Head) -> bool:
        """Whether one of the checkpoints covers the transaction."""
        return any(self._one_holds(c, writer, head) for c in self.checkpoints)

    def unaware(self, voided: Iterable[Ref]) -> list[Checkpoint]:
        """The checkpoints that cover one of these voided transactions and do not know it: what they hold is not the state."""
        voided = list(voided)
        known = {c.ref: {void.ref for void in c.voids} for c in self.checkpoints} if voided else {}
        return [c for c in self.checkpoints if any(ref not in known[c.ref] and self._one_holds(c, *ref) for ref in voided)]

    def disagreeing(self) -> list[Checkpoint]:
        """The checkpoints that hold events of something that is set aside, as the files know, or lack those of something that is not."""
        now = set_aside(self.files.asides.values())
        then = {c.ref: set_aside(c.asides) for c in self.checkpoints}
        return [c for c in self.checkpoints if any(self._one_holds(c, *ref) for ref in sorted(now ^ then[c.ref]))]

    def heads(self, writer: str) -> set[Head]:
        """The heads of what is covered of the writer's timeline."""
        candidates = {head for c in self.checkpoints for head in c.cut.of_writer(writer)}
        return {head for head in candidates if not self._is_behind(writer, head)}

    def writers(self) -> set[str]:
        """The writers of whom something is covered."""
        return {writer for c in self.checkpoints for writer in c.cut.heads}

    @property
    def sealed(self) -> frozenset[str]:
        """The writers of whom nothing can arrive that one of the checkpoints does not cover."""
        return frozenset[str]().union(*(checkpoint.sealed for checkpoint in self.checkpoints))

    def _is_behind(self, writer: str, head: Head) -> bool:
        return any(
            not c.cut.has(writer, head) and self._comes_after(c, writer, head) for c in self.checkpoints if writer in c.coverage
        )

    def comes_after(self, writer: str, head: Head) -> bool:
        """Whether one of the checkpoints covers the transaction, or begins behind it."""
        return any(self._comes_after(c, writer, head) for c in self.checkpoints if writer in c.coverage)

    def _comes_after(self, checkpoint: Checkpoint, writer: str, head: Head) -> bool:
        is_before = head.revision < checkpoint.coverage[writer].first_revision
        return self._one_holds(checkpoint, writer, head) or (is_before and self._is_followed(checkpoint, writer, head))

    def _one_holds(self, checkpoint: Checkpoint, writer: str, head: Head) -> bool:
        coverage = checkpoint.coverage.get(writer)
        if coverage is None or head.revision > checkpoint.cut.newest_revision(writer):
            return False
        if _names(checkpoint, writer, head):
            return True
        if head.revision < coverage.first_revision:
            return False
        if self._may_be_gone(writer, head.revision):
            if head not in self._listed(writer, head.revision):
                return self.reaches(checkpoint) or self._is_followed(checkpoint, writer, head)
            return head in self._followed_below(checkpoint, writer)
        if self._names_all(checkpoint, writer, head.revision):
            return False
        at_revision = self._listed(writer, head.revision)
        if len(at_revision) == 1:
            return head in at_revision
        return head in self._covered_ones(checkpoint, writer, head.revision)

    def _names_all(self, checkpoint: Checkpoint, writer: str, revision: int) -> bool:
        """Whether what is covered of a revision is named, each of it."""
        coverage, key = checkpoint.coverage[writer], (checkpoint.ref, writer)
        if not coverage.first_revision <= revision < coverage.list_from:
            return True
        if key not in self._branching:
            self._branching[key] = {known.revision for known in coverage.branches}
        return revision in self._branching[key]

    def _covered_ones(self, checkpoint: Checkpoint, writer: str, revision: int) -> set[Head]:
        """Of the transactions at an old revision that had only one and has several now, the covered one: a covered child names it."""
        known = self._covered_at.setdefault((checkpoint.ref, writer), {})
        above = revision
        while above not in known and not self._names_all(checkpoint, writer, above) and len(self._listed(writer, above)) > 1:
            above += 1
        if above not in known:
            known[above] = {head for head in self._listed(writer, above) if self._one_holds(checkpoint, writer, head)}
        for below in range(above - 1, revision - 1, -1):
            parents = self._parents(writer, known[below + 1])
            known[below] = {h for h in self._listed(writer, below) if h in parents or _names(checkpoint, writer, h)}
        return known[revision]

    def _parents(self, writer: str, children: Iterable[Head]) -> set[Head]:
        """The transactions that these follow on the writer's timeline."""
        return {link.head for child in children for link in self.files.transaction(writer, child).parents}

    def _is_followed(self, checkpoint: Checkpoint, writer: str, head: Head) -> bool:
        children = (child for child in self._listed(writer, head.revision + 1) if self._one_holds(checkpoint, writer, child))
        return head in self._parents(writer, children)

    def reaches(self, checkpoint: Checkpoint) -> bool:
        """Whether the checkpoint certainly holds all that the horizon's does."""
        if self.horizon is None:
            return True
        if checkpoint.ref not in self._reaching:
            self._reaching[checkpoint.ref] = False  # while this is found out, what is gone counts as not covered
            self._reaching[checkpoint.ref] = self._reaches(checkpoint, self.horizon)
        return self._reaching[checkpoint.ref]

    def _reaches(self, checkpoint: Checkpoint, horizon: Horizon) -> bool:
        """Whoever has seen the boundary has seen what it names, and a maker's later checkpoint of everyone holds its earlier ones."""
        named, cut = horizon.boundary.checkpoint, horizon.cut
        if horizon.is_own(checkpoint):
            return True
        if not is_trusted(checkpoint.writer):
            return False
        if any(checkpoint.cut.newest_revision(writer) < cut.newest_revision(writer) for writer in cut.heads):
            return False
        if any(boundary.horizon.heads and boundary.stamp >= horizon.boundary.stamp for boundary in checkpoint.boundaries):
            return True
        of_everyone = all(set(heads) != {checkpoint.writer} for heads in (cut.heads, checkpoint.cut.heads))
        if of_everyone and named is not None and checkpoint.writer == named.writer and checkpoint.revision > named.revision:
            return True
        return all(self._one_holds(checkpoint, writer, head) for writer, head in cut.refs())

    def _may_be_gone(self, writer: str, revision: int) -> bool:
        """Whether transactions of that revision may have been deleted."""
        if self.horizon is None or revision > self.horizon.cut.newest_revision(writer) or revision >= self.horizon.floor(writer):
            return False
        first = self.horizon.boundary.first.of_writer(writer)
        if not first or revision < first[0].revision:
            return True
        if writer not in self._begun:
            self._begun[writer] = not set(first) <= self._listed(writer, first[0].revision)
        return self._begun[writer]

    def _followed_below(self, checkpoint: Checkpoint, writer: str) -> set[Head]:
        """Of the transactions before the floor that are still there those that are named, or that covered ones follow."""
        key = checkpoint.ref, writer
        if key not in self._followed:
            self._followed[key] = self._follow(checkpoint, writer)
        return self._followed[key]

    def _follow(self, checkpoint: Checkpoint, writer: str) -> set[Head]:
        assert self.horizon is not None
        top = min(self.horizon.floor(writer), checkpoint.coverage[writer].list_from)
        if self._timelines.get(writer, (1, {}))[0] > 0:
            self.know(writer, self.files.transactions(writer))
        there = self._timelines[writer][1]
        is_named = top >= checkpoint.coverage[writer].list_from  # as all are that it covers from there on
        level = {
            head
            for head in there.get(top, ())
            if (_names(checkpoint, writer, head) if is_named else self._one_holds(checkpoint, writer, head))
        }
        followed: set[Head] = set()
        for revision in sorted((r for r in there if r < top), reverse=True):
            named = self._parents(writer, level)
            level = {head for head in there[revision] if head in named or _names(checkpoint, writer, head)}
            followed |= level
        return followed

    def _listed(self, writer: str, revision: int) -> set[Head]:
        first, by_revision = self._timelines.get(writer, (revision + 1, {}))
        if revision >= first:
            return by_revision.get(revision, set())
        if (writer, revision) not in self._revisions:
            self._revisions[writer, revision] = set(self.files.at_revision(writer, revision))
        return self._revisions[writer, revision]


def may_be_deleted(checkpoint: Checkpoint, horizon: Horizon | None) -> bool:
    """Whether a checkpoint may be deleted, with its segments: all of its cut lies within the horizon, and it is not the horizon's own."""
    if horizon is None or any(checkpoint.cut.newest_revision(w) > horizon.cut.newest_revision(w) for w in checkpoint.cut.heads):
        return False
    if horizon.is_own(checkpoint) or not horizon.is_readable:
        return False
    covered = Covered(horizon.files, [horizon.checkpoint], horizon)
    return all(covered.holds(writer, head) for writer, head in checkpoint.cut.refs())


def _names(checkpoint: Checkpoint, writer: str, head: Head) -> bool:
    """Whether the checkpoint says of this very transaction that it covers it."""
    coverage = checkpoint.coverage.get(writer)
    named = coverage is not None and (head in coverage.recent or head in coverage.branches)
    return named or checkpoint.cut.has(writer, head)


def is_partial(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint begins behind a horizon, and is read beside one that holds what that does."""
    return any(coverage.first_revision for coverage in checkpoint.coverage.values())


def choose(checkpoints: Iterable[Checkpoint], horizon: Horizon | None = None) -> list[Checkpoint]:
    """The checkpoints to read from: the one that covers most, and others that save more than they cost.

    With a ``horizon`` the first one reaches that, or is its own: what was deleted cannot be read from transactions. Beside that one, and
    nowhere else, one that begins behind an earlier horizon can be read.

    A checkpoint is worth reading beside another where the transactions that it alone covers would be more to read than the rows that
    both hold. Checkpoints that have forgotten something are never combined.
    """
    ranked = sorted(
        checkpoints, key=lambda c: (not is_trusted(c.writer), -sum(cov.transactions for cov in c.coverage.values()), c.ref)
    )
    if horizon is None:
        ranked = [checkpoint for checkpoint in ranked if not is_partial(checkpoint)]
        chosen = ranked[:1]
    else:
        reaching = Covered(horizon.files, (), horizon)
        chosen = [next(filter(reaching.reaches, ranked), None) or horizon.checkpoint]
    if not chosen or chosen[0].forgotten_before:
        return chosen
    for candidate in (c for c in ranked if c.ref != chosen[0].ref):
        alone, shared = _gain(candidate, chosen)
        size = sum(segment.size for segment in candidate.segments)
        if alone and not candidate.forgotten_before and alone * _TRANSACTION_COST > size * shared / (alone + shared):
            chosen.append(candidate)
    return chosen


_TRANSACTION_COST = 16 << 10


def _gain(candidate: Checkpoint, chosen: Sequence[Checkpoint]) -> tuple[int, int]:
    alone = shared = 0
    for writer, coverage in candidate.coverage.items():
        beside = [c for c in chosen if writer in c.coverage]
        if coverage.first_revision:
            newest = max((c.cut.newest_revision(writer) for c in beside), default=-1)
            alone += max(candidate.cut.newest_revision(writer) - max(newest, coverage.first_revision - 1), 0)
            continue
        known = max((c.coverage[writer].transactions for c in beside), default=0)
        alone += max(coverage.transactions - known, 0)
        shared += min(coverage.transactions, known)
    return alone, shared
