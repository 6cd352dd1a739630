"""Views of a cut that somebody names, and what lies between two: followed from its heads, parent by parent."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from ..codec.checkpoints import Checkpoint
from ..codec.transactions import Transaction
from ..cut import Cut, Head
from ..errors import InvalidVersion, MissingObject
from .coverage import Covered, choose
from .files import LogFiles
from .gathering import Gathering, Ref
from .view import View, view_of


def version_view(files: LogFiles, cut: Cut, *, closed_reads: bool = True) -> View:
    """The view of exactly this cut; ``InvalidVersion`` where it names what is not there.

    Without ``closed_reads`` it may be one that is closed under parents only, as of one writer's checkpoint.
    """
    observed = files.store.now_us()
    within = {writer: _checkpoints_within(files, writer, cut) for writer in files.writers()}
    newest = {writer: checkpoint for writer, rest in within.items() if (checkpoint := next(rest, None))}
    while True:
        gathering = Gathering(files, Covered(files, choose(newest.values())), closed_reads=closed_reads)
        strange = _walk(gathering, cut) or gathering.covered.unaware(gathering.voids())
        if not strange:
            return view_of(files, gathering, observed, cut)
        for checkpoint in strange:
            older = next(within[checkpoint.writer], None)
            newest.pop(checkpoint.writer) if older is None else newest.update({checkpoint.writer: older})


def _checkpoints_within(files: LogFiles, writer: str, cut: Cut) -> Iterator[Checkpoint]:
    """The writer's checkpoints that may lie within the cut, newest first; where timelines are forked the walk decides."""
    for head in files.checkpoints(writer):
        if head.commit_time <= cut.newest_commit_time:
            checkpoint = files.usable_checkpoint(writer, head)
            if checkpoint is not None and all(
                checkpoint.cut.newest_revision(w) <= cut.newest_revision(w) for w in checkpoint.cut.heads
            ):
                yield checkpoint


def _walk(gathering: Gathering, cut: Cut) -> list[Checkpoint]:
    """Fetch the uncovered ancestors of a cut; returns the chosen checkpoints that turn out not to lie within it."""
    checkpoints = gathering.covered.checkpoints
    for writer in cut.heads:
        _read_ahead(gathering.covered, writer, gathering.covered.list_from(writer), cut.newest_revision(writer))
    tops = {(writer, head) for c in checkpoints for writer, heads in c.cut.heads.items() for head in heads}
    named = {(writer, head) for writer, heads in cut.heads.items() for head in heads}
    reached: set[Ref] = set()
    pending = list(named)
    while pending:
        ref = pending.pop()
        if ref in gathering.found or ref in reached:
            continue
        if ref in tops or gathering.covered.holds(*ref):
            reached.add(ref)
            continue
        transaction = _named_transaction(gathering.files, ref, named)
        gathering.found[ref] = transaction
        pending += [(ref[0], Head(link.revision, link.uuid)) for link in transaction.parents]
    return [c for c in checkpoints if not _lies_within(c, reached, gathering.covered)]


def _read_ahead(covered: Covered, writer: str, first: int, last: int) -> None:
    """Read the transactions at these revisions that are not covered, where many at once pay."""
    if covered.files.concurrency > 1 and last - first > 1:
        heads = list(takewhile(lambda head: head.revision <= last + 1, covered.files.transactions(writer, first)))
        covered.know(writer, heads, first)
        covered.files.read_ahead([(writer, h) for h in heads if h.revision <= last and not covered.holds(writer, h)])


def _lies_within(checkpoint: Checkpoint, reached: set[Ref], covered: Covered) -> bool:
    refs = [(writer, head) for writer, heads in checkpoint.cut.heads.items() for head in heads]
    others = Covered(covered.files, [c for c in covered.checkpoints if c is not checkpoint])
    return all(ref in reached or others.holds(*ref) for ref in refs)


def _named_transaction(files: LogFiles, ref: Ref, named: set[Ref]) -> Transaction:
    try:
        return files.transaction(*ref)
    except MissingObject:
        if ref not in named:
            raise
        raise InvalidVersion(
            f"The version names revision {ref[1].revision} of writer {ref[0]!r}, which is not in this database.",
            next_step="Use a version that a snapshot of this catalog gave.",
        ) from None


def between(files: LogFiles, start: View, end: Cut) -> list[Transaction]:
    """The transactions in the cut ``end`` and not in the view ``start``, by stamp."""
    tail = {(t.writer, t.head) for t in start.tail}
    covered = Covered(files, start.checkpoints)
    for writer in end.heads:
        _read_ahead(covered, writer, start.cut.newest_revision(writer) + 1, end.newest_revision(writer))
    found: dict[Ref, Transaction] = {}
    pending = [(writer, head) for writer, heads in end.heads.items() for head in heads]
    while pending:
        ref = pending.pop()
        if ref in found or ref in tail or covered.holds(*ref):
            continue
        found[ref] = files.transaction(*ref)
        pending += [(ref[0], Head(link.revision, link.uuid)) for link in found[ref].parents]
    return sorted(found.values(), key=lambda transaction: transaction.stamp)
