"""What follows what on a timeline, and what a commit had read of others, however long ago."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..errors import MissingObject
from ..model.cuts import Cut, Head
from .files import LogFiles
from .horizon import Horizon


def causal_cut(files: LogFiles, writer: str, head: Head, horizon: Horizon | None = None) -> Cut:
    """A transaction and everything that it and its ancestors had read, as far as they are there.

    Ancestors before the ``horizon`` that are gone had read nothing beyond it: a cut that contains it misses nothing without them.

    A checkpoint that lies beside an ancestor knows what that one had read, so that not every ancestor is fetched.
    """
    by_revision = {at.revision: at for at in files.checkpoints(writer) if at.revision <= head.revision}
    reads = Cut()
    done: set[Head] = set()
    pending = [head]
    while pending:
        at = pending.pop()
        if at in done:
            continue
        done.add(at)
        known = by_revision.get(at.revision)
        checkpoint = files.usable_checkpoint(writer, known) if known is not None else None
        if checkpoint is not None and checkpoint.cut.of_writer(writer) == (at,):
            reads = reads.joined(checkpoint.cut).joined(checkpoint.reads)
            continue
        try:
            transaction = files.transaction(writer, at)
        except MissingObject:
            if horizon is None or at == head or at.revision >= horizon.floor(writer):
                raise
            continue
        reads = reads.joined(transaction.reads)
        pending += [Head(link.revision, link.uuid) for link in transaction.parents]
    others = Cut({name: heads for name, heads in reads.heads.items() if name != writer})
    return Cut.of([(writer, head)]).joined(without_ancestors(files, others))


def without_ancestors(files: LogFiles, cut: Cut) -> Cut:
    """The same cut without the heads that other heads of it follow."""
    return Cut.of((writer, head) for writer, heads in cut.heads.items() for head in _tops(files, writer, heads))


def _tops(files: LogFiles, writer: str, heads: tuple[Head, ...]) -> Iterable[Head]:
    if len(heads) == 1:
        return heads
    between = (head.revision for head in files.transactions(writer, heads[0].revision) if head.revision <= heads[-1].revision)
    if all(count == 1 for count in Counter(between).values()):
        return heads[-1:]
    followed: set[Head] = set()
    pending = list(heads)
    while pending:
        try:
            parents = [Head(link.revision, link.uuid) for link in files.transaction(writer, pending.pop()).parents]
        except MissingObject:
            continue  # pruned: a head before it that it follows is named without need, which changes no cut
        new = {parent for parent in parents if parent.revision >= heads[0].revision} - followed
        followed |= new
        pending += new
    return [head for head in heads if head not in followed]
