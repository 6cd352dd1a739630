"""Views: a cut of the log, the checkpoints that cover part of it, and the transactions that they do not.

A raw listing taken while others commit is not causally closed: a transaction may be listed whose parent, or what it had read of
another writer, is not. So a view is completed until nothing that it refers to is missing (DESIGN.md, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ..codec.checkpoints import Checkpoint
from ..codec.transactions import Transaction
from ..cut import Cut, Head
from ..errors import CorruptionError, InvalidVersion, MissingObject
from ..paths import transaction as transaction_path
from .coverage import Covered, choose
from .files import LogFiles

Ref = tuple[str, Head]
DEFAULT_LATENESS_BOUND = 6 * 60 * 1_000_000
"""Five minutes of commit delay and one of clock skew, in microseconds."""


@dataclass(frozen=True, slots=True)
class Fork:
    """A revision at which a timeline has several transactions; ``open`` while no later one has joined the branches."""

    writer: str
    revision: int
    uuids: tuple[bytes, ...]
    open: bool


@dataclass(frozen=True)
class View:
    """A cut and what it is made from.

    Invariants: ``cut`` is closed under parents and reads; every transaction in it is covered by ``checkpoints`` or in ``tail``, which is
    sorted by stamp. ``observed`` is the store's time before the first listing.
    """

    database: str
    cut: Cut
    checkpoints: tuple[Checkpoint, ...]
    tail: tuple[Transaction, ...]
    forks: tuple[Fork, ...]
    observed: int
    lateness_bound: int = field(default=DEFAULT_LATENESS_BOUND)

    @property
    def watermark(self) -> int:
        """Microseconds: no transaction with an earlier commit time can still arrive."""
        return self.observed - self.lateness_bound


class _Gathering:
    """The transactions found so far that no chosen checkpoint covers."""

    def __init__(self, files: LogFiles, covered: Covered, wanted: Callable[[Head], bool], *, closed_reads: bool = True) -> None:
        self.files = files
        self.covered = covered
        self.found: dict[Ref, Transaction] = {}
        self._wanted = wanted
        self._closed_reads = closed_reads

    def gather(self, writer: str, *, everything: bool = False) -> None:
        """Fetch what the writer's timeline holds beyond the checkpoints."""
        first = 0 if everything else self.covered.list_from(writer)
        listed = list(self.files.transactions(writer, first))
        self.covered.know(writer, listed, first)
        for head in listed:
            if self._wanted(head):
                self._add(writer, head)

    def _add(self, writer: str, head: Head) -> None:
        if (writer, head) not in self.found and not self.covered.holds(writer, head):
            self.found[writer, head] = self.files.transaction(writer, head)

    def complete(self) -> None:
        """Fetch what is referred to and missing, until nothing is; ``MissingObject`` names what is gone.

        It is fetched by name: what somebody has read may lie below where readers list from.
        """
        done: set[Ref] = set()
        while missing := self._missing(done):
            for writer, head in missing:
                try:
                    self.found[writer, head] = self.files.transaction(writer, head)
                except MissingObject as error:
                    raise MissingObject(f"{error.message} Later transactions build on it.", next_step=error.next_step) from None

    def _missing(self, done: set[Ref]) -> list[Ref]:
        refs: set[Ref] = set()
        for ref, transaction in self.found.items():
            if ref not in done:
                refs |= {(ref[0], Head(link.revision, link.uuid)) for link in transaction.parents}
                if self._closed_reads:
                    refs |= {(writer, head) for writer, heads in transaction.reads.heads.items() for head in heads}
                done.add(ref)
        for checkpoint in self.covered.checkpoints if self._closed_reads else ():
            refs |= {(writer, head) for writer, heads in checkpoint.reads.heads.items() for head in heads}
        return sorted(ref for ref in refs if ref not in self.found and not self.covered.holds(*ref))

    def cut(self) -> Cut:
        """The heads of everything covered and found."""
        followed = {(ref[0], Head(link.revision, link.uuid)) for ref, t in self.found.items() for link in t.parents}
        covered = {(writer, head) for writer in self.covered.writers() for head in self.covered.heads(writer)}
        return Cut.of((covered | set(self.found)) - followed)


def newest_view(
    files: LogFiles, *, everything: bool = False, ahead_of: int | None = None, before: int | None = None, only: str | None = None
) -> View:
    """The view of now, or with ``before`` that of every transaction whose commit time is at most that.

    With ``everything`` timelines are listed from their start, so that strays below the checkpoints are found too. With ``ahead_of``
    each timeline stops before its first transaction with a later commit time, and so does what has read such a one. With ``only`` the
    view is of one writer's own timeline: closed under parents, not under reads.
    """
    observed = files.store.now_us()
    limit = before if before is not None else ahead_of
    writers = files.writers() if only is None else [only]
    usable = _usable_checkpoints(files, writers, limit)
    if only is not None:
        usable = [checkpoint for checkpoint in usable if set(checkpoint.cut.heads) == {only}]
    covered = Covered(files, choose(usable))
    gathering = _Gathering(files, covered, lambda head: limit is None or head.commit_time <= limit, closed_reads=only is None)
    for writer in sorted({*writers, *covered.writers()}):
        gathering.gather(writer, everything=everything)
    if ahead_of is not None:
        _drop_unfounded(gathering, ahead_of)
    gathering.complete()
    return _view(files, gathering, observed)


def _drop_unfounded(gathering: _Gathering, limit: int) -> None:
    """Leave out what builds on a transaction that was left out, however far removed."""
    while late := [ref for ref, t in gathering.found.items() if any(head.commit_time > limit for head in _builds_on(t))]:
        for ref in late:
            del gathering.found[ref]
        limit = min(limit, *(head.commit_time - 1 for _, head in late))


def _builds_on(transaction: Transaction) -> Iterator[Head]:
    yield from (Head(link.revision, link.uuid) for link in transaction.parents)
    for heads in transaction.reads.heads.values():
        yield from heads


def _usable_checkpoints(files: LogFiles, writers: Iterable[str], limit: int | None) -> list[Checkpoint]:
    """Of each writer the newest checkpoint whose whole cut lies at or before the limit; its uuid tells."""
    return [checkpoint for writer in writers if (checkpoint := _newest_usable(files, writer, limit)) is not None]


def _newest_usable(files: LogFiles, writer: str, limit: int | None) -> Checkpoint | None:
    """Of several checkpoints beside one transaction, the one that covers most: it was written when more had arrived."""
    found: list[Checkpoint] = []
    for head in files.checkpoints(writer):
        if found and head.revision < found[0].revision:
            break
        if limit is None or head.commit_time <= limit:
            found.append(files.checkpoint(writer, head))
    return max(found, key=lambda c: (sum(coverage.transactions for coverage in c.coverage.values()), c.uuid), default=None)


def version_view(files: LogFiles, cut: Cut) -> View:
    """The view of exactly this cut; ``InvalidVersion`` where it names what is not there."""
    observed = files.store.now_us()
    within = {writer: _checkpoints_within(files, writer, cut) for writer in files.writers()}
    newest = {writer: checkpoint for writer, rest in within.items() if (checkpoint := next(rest, None))}
    while True:
        gathering = _Gathering(files, Covered(files, choose(newest.values())), lambda _: True)
        strange = _walk(gathering, cut)
        if not strange:
            return _view(files, gathering, observed, cut)
        for checkpoint in strange:
            older = next(within[checkpoint.writer], None)
            newest.pop(checkpoint.writer) if older is None else newest.update({checkpoint.writer: older})


def _checkpoints_within(files: LogFiles, writer: str, cut: Cut) -> Iterator[Checkpoint]:
    """The writer's checkpoints that may lie within the cut, newest first; where timelines are forked the walk decides."""
    for head in files.checkpoints(writer):
        if head.commit_time <= cut.newest_commit_time:
            checkpoint = files.checkpoint(writer, head)
            if all(checkpoint.cut.newest_revision(w) <= cut.newest_revision(w) for w in checkpoint.cut.heads):
                yield checkpoint


def _walk(gathering: _Gathering, cut: Cut) -> list[Checkpoint]:
    """Fetch the uncovered ancestors of a cut; returns the chosen checkpoints that turn out not to lie within it."""
    checkpoints = gathering.covered.checkpoints
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


def _view(files: LogFiles, gathering: _Gathering, observed: int, cut: Cut | None = None) -> View:
    _check_links(gathering)
    tail = sorted(gathering.found.values(), key=lambda transaction: transaction.stamp)
    checkpoints = gathering.covered.checkpoints
    bounds = [t.lateness_bound for t in tail] + [c.lateness_bound for c in checkpoints]
    cut = gathering.cut() if cut is None else cut
    return View(
        database=files.database,
        cut=cut,
        checkpoints=checkpoints,
        tail=tuple(tail),
        forks=_forks(gathering, cut),
        observed=observed,
        lateness_bound=max(bounds, default=DEFAULT_LATENESS_BOUND),
    )


def _check_links(gathering: _Gathering) -> None:
    """``CorruptionError`` where a transaction is not the one that its child was written after."""
    for (writer, _), transaction in gathering.found.items():
        for link in transaction.parents:
            parent = gathering.found.get((writer, Head(link.revision, link.uuid)))
            if parent is not None and parent.digest != link.digest:
                name = transaction_path(writer, gathering.files.database, link.revision, link.uuid)
                raise CorruptionError(
                    f"{name} is not the transaction that revision {transaction.revision} was written after: its digest differs.",
                    next_step="Restore the file from a copy of the store.",
                )


def _forks(gathering: _Gathering, cut: Cut) -> tuple[Fork, ...]:
    known: dict[tuple[str, int], set[bytes]] = {}
    for writer, head in gathering.found:
        known.setdefault((writer, head.revision), set()).add(head.uuid)
    for checkpoint in gathering.covered.checkpoints:
        for writer, coverage in checkpoint.coverage.items():
            for head in coverage.recent | coverage.branches:
                known.setdefault((writer, head.revision), set()).add(head.uuid)
    several = sorted((writer, revision, uuids) for (writer, revision), uuids in known.items() if len(uuids) > 1)
    return tuple(Fork(w, r, tuple(sorted(us)), open=not _joined(gathering, cut.of_writer(w), r, (w, us))) for w, r, us in several)


def _joined(gathering: _Gathering, heads: tuple[Head, ...], revision: int, branches: tuple[str, set[bytes]]) -> bool:
    """Whether one transaction follows all that lie at the revision."""
    writer, uuids = branches
    return len(heads) == 1 or any(uuids <= _followed(gathering, writer, head, revision) for head in heads)


def _followed(gathering: _Gathering, writer: str, head: Head, revision: int) -> set[bytes]:
    """The transactions at a revision that ``head`` follows."""
    pending, reached = [head], set()
    while pending:
        at = pending.pop()
        if at in reached or at.revision < revision:
            continue
        reached.add(at)
        if at.revision > revision:
            transaction = gathering.found.get((writer, at)) or gathering.files.transaction(writer, at)
            pending += [Head(link.revision, link.uuid) for link in transaction.parents]
    return {at.uuid for at in reached if at.revision == revision}


def between(files: LogFiles, start: View, end: Cut) -> list[Transaction]:
    """The transactions in the cut ``end`` and not in the view ``start``, by stamp."""
    tail = {(t.writer, t.head) for t in start.tail}
    covered = Covered(files, start.checkpoints)
    found: dict[Ref, Transaction] = {}
    pending = [(writer, head) for writer, heads in end.heads.items() for head in heads]
    while pending:
        ref = pending.pop()
        if ref in found or ref in tail or covered.holds(*ref):
            continue
        found[ref] = files.transaction(*ref)
        pending += [(ref[0], Head(link.revision, link.uuid)) for link in found[ref].parents]
    return sorted(found.values(), key=lambda transaction: transaction.stamp)
