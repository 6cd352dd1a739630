"""Log views of a cut that somebody names: followed from its heads, parent by parent.

What follows what on a timeline, and what a commit had read of others, however long ago.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ..errors import UNREADABLE, InvalidVersion, MissingObject
from ..format.checkpoints import Checkpoint
from ..format.transactions import Transaction
from ..model.cuts import Cut, Head, Ref
from .coverage import Covered, choose, is_partial
from .files import LogFiles
from .horizon import Horizon
from .pruned import KeptCheckpoints
from .trust import is_trusted
from .view import Gathering, LogView, missed, view_of

_TRIED = 8
"""So many checkpoints of a plain writer, each of which takes another walk, are tried for a version: its transactions say the same."""


def causal_cut(files: LogFiles, writer: str, head: Head, horizon: Horizon | None = None) -> Cut:
    """A transaction and everything that it and its ancestors had read, as far as they are there.

    Ancestors before the ``horizon`` that are gone had read nothing beyond it: where the others had read all of it, nothing is missed.

    A checkpoint that lies beside an ancestor may know what that one had read, so that not every ancestor is fetched: one that covers this
    timeline alone does, and one that covers others too where the ancestor says that it had read all of that. Else the checkpoint covers
    what no transaction of the timeline need have read, as in a clone the one that lies beside its maintainer's first transaction.
    """
    by_revision = {at.revision: at for at in files.checkpoints(writer) if at.revision <= head.revision}
    reads, are_gone = Cut(), False
    done: set[Head] = set()
    met: dict[Ref, Transaction] = {}
    pending = [head]
    while pending:
        at = pending.pop()
        if at in done:
            continue
        done.add(at)
        known = by_revision.get(at.revision)
        checkpoint = files.usable_checkpoint(writer, known) if known is not None else None
        if checkpoint is not None and (checkpoint.cut.of_writer(writer) != (at,) or is_partial(checkpoint)):
            checkpoint = None
        if checkpoint is not None and Covered(files, [checkpoint], horizon).disagreeing():
            checkpoint = None
        if checkpoint is not None and set(checkpoint.cut.heads) == {writer}:
            reads = reads.joined(checkpoint.reads)
            continue
        try:
            transaction = files.transaction(writer, at)
        except MissingObject as error:
            if horizon is None or at == head or at.revision >= horizon.floor(writer):
                raise missed(error, met) from None
            are_gone = True
            continue
        met[transaction.ref] = transaction
        reads = reads.joined(transaction.reads)
        if checkpoint is not None and _had_read(transaction, checkpoint.cut):
            reads = reads.joined(checkpoint.reads)
            continue
        pending += [link.head for link in transaction.parents]
    if are_gone and horizon is not None and _reaches(files, reads, horizon):
        reads = reads.joined(horizon.cut)
    others = Cut({name: heads for name, heads in reads.heads.items() if name != writer})
    return Cut.of([(writer, head)]).joined(without_ancestors(files, others))


def _had_read(transaction: Transaction, cut: Cut) -> bool:
    """Whether a transaction says that it had read all of a cut, as far as that is other writers'."""
    read = set(transaction.reads.refs())
    return all(ref in read for ref in cut.refs() if ref.writer != transaction.writer)


def _reaches(files: LogFiles, reads: Cut, horizon: Horizon) -> bool:
    """Whether who had read this had read all of the horizon: the transaction that its checkpoint lies beside, which says that it had.

    Such a one stays while the horizon counts. Where it is another, nobody can tell; nor in a clone, whose writers name all that they find
    there before they go on.
    """
    link = horizon.boundary.checkpoint
    if link is None:
        return False
    beside = [Ref(link.writer, head) for head in horizon.cut.of_writer(link.writer) if head.revision == link.revision]
    read = [ref for ref in reads.refs() if ref.writer == link.writer]
    if len(beside) != 1 or without_ancestors(files, Cut.of([*read, *beside])) != without_ancestors(files, Cut.of(read)):
        return False
    try:
        return _had_read(files.transaction(*beside[0]), horizon.cut)
    except MissingObject:
        return False


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
            parents = [link.head for link in files.transaction(writer, pending.pop()).parents]
        except MissingObject:
            continue  # pruned: a head before it that it follows is named without need, which changes no cut
        new = {parent for parent in parents if parent.revision >= heads[0].revision} - followed
        followed |= new
        pending += new
    return [head for head in heads if head not in followed]


def version_view(
    files: LogFiles,
    cut: Cut,
    horizon: Horizon | None = None,
    writers: Sequence[str] | None = None,
    *,
    closed_reads: bool = True,
    observed: int | None = None,
    had_tag: bool = True,
    named: Cut | None = None,
) -> LogView:
    """The view of this cut, completed until it is closed; ``InvalidVersion`` where it names what is not there.

    ``HistoryPruned`` where it does not contain the ``horizon``, unless a checkpoint of exactly this cut was kept for a tag; ``had_tag``
    says whether one names it, or named it. Of what was ``named``, all of the cut where nothing else is said, it is the version that is
    wrong if it is not there. ``writers`` are those that were listed after ``observed``. Without ``closed_reads`` the view
    is of exactly this cut, which may be closed under parents only, as of one writer's checkpoint.
    """
    observed = files.store.now_us() if observed is None else observed
    listed = files.writers() if writers is None else writers
    whole, found = cut, dict[Ref, Transaction]()
    while True:
        try:
            gathering, contains_horizon = _gathered(
                files, whole, cut if named is None else named, horizon, listed, closed_reads=closed_reads
            )
        except MissingObject as error:
            raise missed(error, found) from None
        found = gathering.found
        missing = gathering.missing(of_covered=contains_horizon) if closed_reads else []
        if not missing:
            break
        whole = _with_what_was_read(gathering, whole, missing)
    if not contains_horizon and horizon is not None:
        return _kept_view(files, cut, horizon, observed, had_tag=had_tag)
    return view_of(files, gathering, observed, cut if whole == cut else without_ancestors(files, whole))


def _gathered(
    files: LogFiles, cut: Cut, named: Cut, horizon: Horizon | None, listed: Sequence[str], *, closed_reads: bool
) -> tuple[Gathering, bool]:
    """What a cut is made from, of which somebody ``named`` a part, and whether it contains the ``horizon``.

    Only parents are followed: what had been read is in the cut where that is closed.
    """
    within = {writer: _checkpoints_within(files, writer, cut) for writer in listed}
    newest = {writer: checkpoint for writer, rest in within.items() if (checkpoint := next(rest, None))}
    tried: Counter[str] = Counter()
    while True:
        try:
            covered = Covered(files, choose(newest.values(), horizon), horizon)
        except UNREADABLE:  # of the horizon's own
            if horizon is None or all(horizon.cut.newest_revision(w) <= cut.newest_revision(w) for w in horizon.cut.heads):
                raise
            return Gathering(files, Covered(files, ())), False
        gathering = Gathering(files, covered, closed_reads=closed_reads)
        unusable = _walk(gathering, cut, named)
        if horizon is not None and len(unusable) == 1 and horizon.is_own(unusable[0]):
            return gathering, False
        unusable = unusable or gathering.unaware()
        if not unusable:
            return gathering, True
        is_aware = gathering.aware_ones()
        for checkpoint in (c for c in unusable if newest.get(c.writer) is c):
            tried[checkpoint.writer] += 1
            rest = within[checkpoint.writer] if is_trusted(checkpoint.writer) or tried[checkpoint.writer] < _TRIED else iter(())
            older = next((c for c in rest if is_trusted(c.writer) or is_aware(c)), None)
            newest.pop(checkpoint.writer) if older is None else newest.update({checkpoint.writer: older})


def _with_what_was_read(gathering: Gathering, cut: Cut, missing: Sequence[Ref]) -> Cut:
    """The cut with what it is ``missing``, and with what that had read, and so on, where nothing later of the same timeline is in it.

    What is not covered is read to the end here, for to gather lists the checkpoints of all writers. What is gone is left to it:
    checkpoints within the whole cut may cover it.
    """
    pending = missing
    while pending:
        cut = cut.joined(Cut.of(pending))
        read = {
            ref
            for reads in gathering.files.map(_reads_of, pending)
            for ref in reads.refs()
            if ref.head.revision > cut.newest_revision(ref.writer)
        }
        pending = sorted(ref for ref in read if not gathering.covered.holds(*ref))
    return cut


def _reads_of(files: LogFiles, ref: Ref) -> Cut:
    """What a transaction names as read, as far as it can be read itself."""
    try:
        return files.transaction(*ref).reads
    except UNREADABLE:
        return Cut()


def _kept_view(files: LogFiles, cut: Cut, horizon: Horizon, observed: int, *, had_tag: bool) -> LogView:
    """The view of a cut behind the horizon, of which a checkpoint was kept."""
    kept = KeptCheckpoints.listed(files).of(cut, had_tag=had_tag)
    if kept is None:
        raise horizon.refusal(f"The version {cut}")
    return view_of(files, Gathering(files, Covered(files, [kept], horizon)), observed, cut)


def _checkpoints_within(files: LogFiles, writer: str, cut: Cut) -> Iterator[Checkpoint]:
    """The writer's checkpoints that may lie within the cut, newest first; where timelines are forked the walk decides."""
    for head in files.checkpoints(writer):
        if head.commit_time <= cut.newest_commit_time:
            checkpoint = files.usable_checkpoint(writer, head)
            if checkpoint is not None and all(
                checkpoint.cut.newest_revision(w) <= cut.newest_revision(w) for w in checkpoint.cut.heads
            ):
                yield checkpoint


def _walk(gathering: Gathering, cut: Cut, asked: Cut) -> list[Checkpoint]:
    """Fetch the uncovered ancestors of a cut, part of which was ``asked`` for; returns the chosen checkpoints that lie not within it."""
    checkpoints = gathering.covered.checkpoints
    for writer in cut.heads:
        gathering.covered.read_ahead(writer, gathering.covered.list_from(writer), cut.newest_revision(writer))
    tops = {ref for c in checkpoints for ref in c.cut.refs()}
    named = set(asked.refs())
    reached: set[Ref] = set()
    gone: MissingObject | None = None
    pending = list(cut.refs())
    while pending:
        ref = pending.pop()
        if ref in gathering.found or ref in reached:
            continue
        if ref in tops or gathering.covered.holds(*ref):
            reached.add(ref)
            continue
        try:
            transaction = _named_transaction(gathering.files, ref, named)
        except MissingObject as error:
            gone = gone or error  # who builds on it may come later
            continue
        gathering.found[ref] = transaction
        pending += transaction.parent_refs
    if gone is not None:
        raise missed(gone, gathering.found)
    return [c for c in checkpoints if not _lies_within(c, reached, gathering.covered)]


def _lies_within(checkpoint: Checkpoint, reached: set[Ref], covered: Covered) -> bool:
    refs = list(checkpoint.cut.refs())
    others = Covered(covered.files, [c for c in covered.checkpoints if c is not checkpoint], covered.horizon)
    return all(ref in reached or others.comes_after(*ref) for ref in refs)


def _named_transaction(files: LogFiles, ref: Ref, named: set[Ref]) -> Transaction:
    try:
        return files.transaction(*ref)
    except MissingObject:
        if ref not in named:
            raise
        raise InvalidVersion(
            f"The version names revision {ref.head.revision} of writer {ref.writer!r}, which is not in this database.",
            next_step="Use a version that a snapshot of this catalog gave.",
        ) from None


def lies_within(files: LogFiles, checkpoint: Checkpoint, cut: Cut, horizon: Horizon | None) -> bool:
    """Whether a cut contains all that a checkpoint covers, as it must of the next horizon's so that what comes after it can be read.

    Nothing is read where the newest revisions tell that it does not. Else the cut's ancestors are walked back to what is covered, so that
    of a fork, be it joined or not, it is known which branches the cut has.
    """
    if any(cut.newest_revision(writer) < checkpoint.cut.newest_revision(writer) for writer in checkpoint.cut.heads):
        return False
    return not _walk(Gathering(files, Covered(files, [checkpoint], horizon)), cut, Cut())
