"""Owning a timeline: opening it, publishing transactions on it, and noticing somebody else who does.

There is one writer for a writer id and database at a time. No listing is made for a commit: foreign transactions are looked for when
the timeline is opened, before each checkpoint, and when the last look is older than 30 s (docs/spec/writing.md).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import replace

from .. import limits
from ..errors import (
    UNREADABLE,
    ClockSkew,
    CommitUnknown,
    ForeignBranch,
    MissingObject,
    OutcomeUnknown,
    StaleRead,
    StoreError,
    WriterRetired,
    next_step_for,
)
from ..format.checkpoints import Checkpoint
from ..format.held import shown_heads
from ..format.records import Link
from ..format.sealing import digest
from ..format.transactions import Transaction
from ..limits import Limits
from ..model import paths
from ..model.cuts import Head, Ref
from ..model.names import is_compactor
from ..model.times import shown_age
from ..model.uuids import uuid_text
from ..store.learnt import Moment
from ..store.retry import for_seconds, put_retrying
from ..wording import how_to_join, how_to_repair
from .aside import set_aside
from .files import LogFiles
from .salvage import asides_of, horizon_beside_damage


class Timeline:
    """One writer's timeline, held open for commits.

    Invariants: ``parents`` are the heads that the next transaction follows, one but where it joins a predecessor's stray;
    ``next_revision`` is larger than every revision known; commit times rise. Once a put was interrupted the timeline is ``doubtful``:
    what it put may be there, so nothing may be published behind it before it was opened again. Once it is ``closed`` no request of a
    commit that is under way in another thread is tried again. One that ``joins`` is opened whatever branches it has, and follows them all.
    """

    def __init__(self, files: LogFiles, writer: str, now: Callable[[], int], limits: Limits, *, joins: bool = False) -> None:
        self.files = files
        self.writer = writer
        self.limits = limits
        self._now = now
        self._known: set[Head] = set()
        self.parents: tuple[Link, ...] = ()
        self.next_revision = 0
        self.last_commit_time = 0
        self.doubtful = False
        self.closed = False
        self._joins = joins
        began = Moment.now()
        trusted = [] if joins else files.trusted()
        self._refuse_retired(trusted)
        covering = [] if joins else self._covering(trusted)
        self._list_from = max((self._list_from_of(checkpoint) for checkpoint in covering), default=0)
        self._covered = max((head for checkpoint in covering for head in checkpoint.cut.of_writer(writer)), default=None)
        self._floor = 0
        try:
            self._open()
        except UNREADABLE:
            self.files = files.aware(asides_of(files.store, files.database))
            if not any(ref.writer == writer for ref in set_aside(self.files.asides.values())):
                raise
            self._open()
        self._looked = began

    def _covering(self, trusted: Sequence[str]) -> list[Checkpoint]:
        """The newest checkpoints of the writer itself and of each compactor that cover some of the timeline."""
        makers = [self.writer, *(name for name in trusted if is_compactor(name) and name != self.writer)]
        found = self.files.map(lambda files, maker: self._newest_of(maker), makers)
        return [checkpoint for checkpoint in found if checkpoint is not None and self.writer in checkpoint.coverage]

    def _refuse_retired(self, makers: Sequence[str]) -> None:
        """``WriterRetired`` where the newest checkpoint of everybody that can be read, of any of these, says so."""
        found = self.files.map(LogFiles.newest_of_everybody, makers)
        said = {each.writer for checkpoint in found if checkpoint is not None for each in checkpoint.retired}
        refuse_retired(self.writer, self.files.database, said)

    def _newest_of(self, maker: str) -> Checkpoint | None:
        """The maker's newest checkpoint that counts."""
        found = (self.files.usable_checkpoint(maker, head) for head in self.files.checkpoints(maker))
        return next((checkpoint for checkpoint in found if checkpoint is not None), None)

    def _list_from_of(self, checkpoint: Checkpoint) -> int:
        """Where to list from: from there on strays can be found that the checkpoint does not cover, and the newest that it does."""
        return min(checkpoint.coverage[self.writer].list_from, checkpoint.cut.newest_revision(self.writer))

    def _open(self) -> None:
        listed = list(self.files.transactions(self.writer, self._list_from))
        self._refuse_shortened(listed)
        if listed and not self._is_chain(listed):
            listed = self._not_pruned(listed)
        self._known = set(listed)
        heads = self._heads(listed)
        self._refuse_forks(heads, listed)
        # What lies before the first that is left was pruned. This process may have read it all the same, and it is nobody else's.
        self._list_from = max(self._list_from, listed[0].revision if listed else 0)
        self.parents = tuple(
            sorted((Link(t.revision, t.uuid, t.digest) for t in heads), key=lambda link: (link.revision, link.uuid))
        )
        self.next_revision = max((t.revision for t in heads), default=-1) + 1
        self.last_commit_time = max((t.commit_time for t in heads), default=0)

    def _is_chain(self, listed: list[Head]) -> bool:
        """Whether each of these follows the one before; where branches are joined, what is set aside may follow nothing."""
        return _is_plain(listed) and not (self._joins and any(self.files.is_aside(self.writer, head) for head in listed))

    def _not_pruned(self, listed: list[Head]) -> list[Head]:
        """Those of the transactions that lie where nothing was deleted: of one before that nobody can tell what it follows."""
        horizon = horizon_beside_damage(self.files)
        if horizon is not None:
            self._floor = horizon.floor(self.writer)
            self._list_from = max(self._list_from, min(self._floor, horizon.cut.newest_revision(self.writer)))
        return [head for head in listed if head.revision >= self._list_from]

    def _refuse_shortened(self, listed: list[Head]) -> None:
        """``MissingObject`` where the timeline ends before what a checkpoint covers: its revisions would be given a second time."""
        if self._covered is not None and self._covered.revision > max(listed, default=Head(-1, b"")).revision:
            name = paths.transaction(self.writer, self.files.database, self._covered)
            raise MissingObject(
                f"{name} is gone, with which the timeline of {self.writer!r} ended.",
                next_step=f"{next_step_for(name)} Or write under another writer id.",
            )

    def _heads(self, listed: list[Head]) -> list[Transaction]:
        if not listed:
            return []
        if self._is_chain(listed):
            return [self.files.transaction(self.writer, listed[-1])]
        every = {head: self.files.transaction(self.writer, head) for head in listed}
        followed = {link.head for t in every.values() for link in t.parents}
        while aside := {head for head in followed - every.keys() if self.files.is_aside(self.writer, head)}:  # which is gone
            every |= {head: self.files.transaction(self.writer, head) for head in aside}
            followed |= {link.head for head in aside for link in every[head].parents}
        gone = sorted(head for head in followed - every.keys() if head.revision >= max(self._list_from, self._floor))
        if gone:
            name = paths.transaction(self.writer, self.files.database, gone[0])
            raise MissingObject(f"{name} is gone. Later transactions follow it.")
        return [t for head, t in every.items() if head not in followed]

    def _refuse_forks(self, heads: list[Transaction], listed: list[Head]) -> None:
        """One stray transaction of a crashed predecessor is joined; anything more is refused."""
        if len(heads) <= 1 or self._joins:
            return
        every = {head: self.files.transaction(self.writer, head) for head in listed}
        if len(heads) == 2 and any(_is_stray(stray, heads, every) for stray in heads):
            return
        raise ForeignBranch(
            f"The timeline of writer {self.writer!r} in database {self.files.database!r} is forked: it ends in "
            f"{shown_heads([t.head for t in heads])}.",
            next_step="Write under another writer id from now on: what was acknowledged on every branch is kept and read. A maintainer can "
            f"join the branches: {how_to_join(self.writer)}.",
        )

    @property
    def is_ahead(self) -> bool:
        """Whether what the next transaction follows lies in the future, so that others must be asked whether it is voided."""
        return self.last_commit_time > self._now() + self.limits.clock_skew  # by this machine's clock: no commit asks for it

    def pardon(self, voided: Container[Ref]) -> None:
        """Let the commit times of voided transactions bind no longer: what the next one follows is what lies before them.

        What lies before one that was pruned is not later than the horizon, which is all that is known of it.
        """
        times, pending = [0], [link.head for link in self.parents]
        while pending:
            head = pending.pop()
            if (self.writer, head) not in voided:
                times.append(head.commit_time)
                continue
            try:
                pending += [link.head for link in self.files.transaction(self.writer, head).parents]
            except MissingObject:
                horizon = horizon_beside_damage(self.files)
                if horizon is None or head.revision >= horizon.floor(self.writer):
                    raise
                times.append(horizon.time)
        self.last_commit_time = max(times)

    def look(self, *, force: bool = False) -> None:
        """``ForeignBranch`` where the timeline holds what this process did not write or follow; at most every 30 s unless forced.

        ``WriterRetired`` where somebody who can say so has retired the writer.
        """
        if not force and self._looked.is_within(limits.LOOK_WITHIN):
            return
        began = Moment.now()
        listed = list(self.files.transactions(self.writer, self._list_from))
        self._refuse_retired(self.files.trusted())
        self._looked = began
        self.meet(listed)
        self._forget_settled()

    def meet(self, heads: Iterable[Head]) -> None:
        """``ForeignBranch`` where one of these transactions of the timeline is not known."""
        foreign = sorted(head for head in heads if head.revision >= self._list_from and head not in self._known)
        if foreign:
            raise ForeignBranch(
                f"Another process writes as {self.writer!r} in database {self.files.database!r}: revision {foreign[0].revision} "
                f"({uuid_text(foreign[0].uuid)}) is not ours. What was acknowledged on either branch is kept.",
                next_step="Give each process a writer id of its own, none of them this one.",
            )

    def _forget_settled(self) -> None:
        """Stop listing revisions that are too old for strays."""
        oldest = self._now() - 2 * self.limits.lateness_bound
        recent = [head.revision for head in self._known if head.commit_time >= oldest]
        self._list_from = max(self._list_from, min(recent, default=self.next_revision - 1))
        self._known = {head for head in self._known if head.revision >= self._list_from}

    def patience(self) -> Callable[[], bool]:
        """Gives up once what precedes a put has taken as long as a put may take, or the timeline was closed."""
        is_over = for_seconds(self.limits.commit_delay / 1e6)
        return lambda: self.closed or is_over()

    def commit_time(self, after: int) -> int:
        """The commit time of the next transaction, which comes after the time ``after`` of all that it has read.

        ``ClockSkew`` where the machine's clock and the store's differ too much, or where the time would lie ahead of the store's.
        """
        # The store may have let us wait: nothing may come in between.
        store_now, now = self.files.time_for(self.writer), self._now()
        if abs(now - store_now) > self.limits.clock_skew:
            raise ClockSkew(
                f"This machine's clock is {shown_age(abs(now - store_now))} {'ahead of' if now > store_now else 'behind'} the store's.",
                next_step=f"Set the clock right; {shown_age(self.limits.clock_skew)} are allowed.",
            )
        time = max(now, self.last_commit_time + 1, after + 1)
        if time > store_now + self.limits.clock_skew:
            raise ClockSkew(
                f"The next transaction of {self.writer!r} would have to come after one whose commit time lies "
                f"{shown_age(time - store_now)} in the future.",
                next_step=f"Wait until then, or have it voided: {how_to_repair()}.",
            )
        return time

    def refuse_stale(self, commit_time: int, read_at: int | None) -> None:
        """``StaleRead`` where a transaction might land more than the maximum snapshot age after ``read_at``.

        From then on it read what it rests on, or wrote data that it names. That may have been collected since, as may an id that it goes
        on using.
        """
        longest = self.limits.usable_for
        if read_at is not None and commit_time - read_at > longest:
            age = shown_age(commit_time - read_at)
            raise StaleRead(
                f"What the transaction rests on was read, or began to be written, {age} ago, and may be gone.",
                next_step=f"Begin again from the start, and be done within {shown_age(longest)}.",
            )

    def publish(self, transaction: Transaction, data: bytes) -> Transaction:
        """Put the transaction; returns it as committed. ``CommitUnknown`` where that is not known within the commit delay."""
        name = paths.transaction(self.writer, self.files.database, transaction.head)
        self.doubtful = True
        self._put(name, data, transaction.commit_time + self.limits.commit_delay)
        self.doubtful = False
        committed = replace(transaction, digest=digest(data), size=len(data))
        self._known.add(committed.head)
        self.parents = (Link(committed.revision, committed.uuid, committed.digest),)
        self.next_revision = committed.revision + 1
        self.last_commit_time = committed.commit_time
        return committed

    def _put(self, name: str, data: bytes, deadline: int) -> None:
        """Put until it is certain. No put is begun behind the deadline, and one that ends behind it does not count."""
        why = "no time was left to try"
        if self._now() <= deadline:
            try:
                put_retrying(self.files.store, name, data, lambda: self.closed or self._now() > deadline)
            except OutcomeUnknown as error:
                why = error.message
            except StoreError:
                self.doubtful = False  # refused each time: nothing is there
                raise
            else:
                if self._now() <= deadline:
                    return
                why = "the store took too long"
        raise CommitUnknown(
            f"It is not known whether {name} was published in time: {why.rstrip('.')}.",
            next_step="Open the writer again: it finds the transaction if it is there.",
        )


def refuse_retired(writer: str, database: str, retired: Container[str]) -> None:
    """``WriterRetired`` for a writer that is: readers would not look for what it commits."""
    if writer in retired:
        raise WriterRetired(
            f"The writer {writer!r} was retired in database {database!r}: it commits no more.",
            next_step="Write under another writer id.",
        )


def _is_plain(listed: list[Head]) -> bool:
    """Whether every revision from the first to the last has one transaction."""
    return len({head.revision for head in listed}) == len(listed) == listed[-1].revision - listed[0].revision + 1


def _is_stray(stray: Transaction, heads: list[Transaction], every: dict[Head, Transaction]) -> bool:
    """Whether everything that ``stray`` follows is among the ancestors of the other head."""
    (other,) = (t for t in heads if t is not stray)
    ancestors: set[Head] = set()
    pending = [other.head]
    while pending:
        head = pending.pop()
        if head not in ancestors:
            ancestors.add(head)
            pending += [link.head for link in every[head].parents] if head in every else []
    return all(link.head in ancestors for link in stray.parents)
