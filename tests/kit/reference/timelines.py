"""Writers, their timelines and cuts: which sets of events a reader can see.

A transaction exists from the moment its stamp is fixed, but is visible only once it has arrived in the store. Everything that a
reader may look at is a **cut**: a set of transactions that contains, with each of them, its parents and whatever it had read.
Checkpoints do not occur here at all, because they change no answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from .model import Event, Key, Op, Row, Stamp, State, VersionName, state

Uuid = str
Cut = frozenset[Uuid]
Application = tuple[str, int]
"""An application's id, and the version that it gives to a transaction."""

EMPTY: Cut = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An event before its commit has given it a stamp; the fields mean what they mean in ``Event``."""

    op: Op
    table: str
    key: Key
    row: Row | None = None
    version: VersionName | None = None
    expect: VersionName | None = None
    moved: bool = False

    def stamped(self, stamp: Stamp) -> Event:
        """The event."""
        return Event(
            stamp=stamp,
            op=self.op,
            table=self.table,
            key=self.key,
            row=self.row,
            version=self.version,
            expect=self.expect,
            moved=self.moved,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One commit: a place on its writer's timeline, what it follows and had read, its events in their order, and what it voids."""

    writer: str
    revision: int
    uuid: Uuid
    commit_time: int
    parents: Cut = EMPTY
    reads: Cut = EMPTY
    events: tuple[Event, ...] = ()
    application: Application | None = None
    voids: Cut = EMPTY

    def stamp(self, seq: int) -> Stamp:
        """The stamp of the event with that sequence number."""
        return Stamp(self.commit_time, self.writer, self.revision, self.uuid, seq)


@dataclass(slots=True)
class Process:
    """One process that holds a writer open: what its next commit follows, and everything it has read so far.

    ``applications`` is what it knows of each: the last version, and the transactions that have it. It looks when it is first asked.
    """

    writer: str
    parents: Cut
    next_revision: int
    last_commit_time: int
    read: Cut = EMPTY
    applications: dict[str, tuple[int, Cut]] | None = None

    def earliest_commit_time(self, *, now: int, read_times: Iterable[int]) -> int:
        """``max(now, own last + 1, largest read + 1)``; ``read_times`` are the commit times of what it has read."""
        return max([now, self.last_commit_time + 1, *(time + 1 for time in read_times)])


@dataclass(slots=True)
class Timelines:
    """Every transaction that exists, and which of them have arrived in the store."""

    transactions: dict[Uuid, Transaction] = field(default_factory=dict)
    arrived: set[Uuid] = field(default_factory=set)

    def add(self, transaction: Transaction, *, arrived: bool = True) -> None:
        """A transaction that exists from now on, and is in the store unless it is late. The same one again changes nothing."""
        known = self.transactions.setdefault(transaction.uuid, transaction)
        assert known == transaction, "a uuid names one transaction"
        if arrived:
            self.arrive(transaction.uuid)

    def arrive(self, uuid: Uuid) -> None:
        """A late transaction reaches the store; again changes nothing."""
        transaction = self.transactions[uuid]
        assert transaction.parents | transaction.reads <= self.arrived, "nobody follows or reads what has not arrived"
        self.arrived.add(uuid)

    # What readers see.

    def visible(self) -> Cut:
        """The cut of a reader that looks now."""
        return frozenset(self.arrived)

    def at(self, time: int) -> Cut:
        """The cut of a timestamp: every arrived transaction with a commit time up to it, and what these follow or had read.

        That is never later than they are, but where a transaction from the future was voided.
        """
        return self.causal(*(uuid for uuid in self.arrived if self.transactions[uuid].commit_time <= time))

    def causal(self, *uuids: Uuid) -> Cut:
        """The smallest cut with these transactions: they, their parents and reads, and those of these."""
        found: set[Uuid] = set()
        wanted = list(uuids)
        while wanted:
            uuid = wanted.pop()
            if uuid not in found:
                found.add(uuid)
                wanted.extend(self.transactions[uuid].parents | self.transactions[uuid].reads)
        return frozenset(found)

    def is_cut(self, uuids: Iterable[Uuid]) -> bool:
        """Whether the set contains everything that its members follow or had read."""
        members = frozenset(uuids)
        return self.causal(*members) == members

    def events(self, cut: Cut) -> list[Event]:
        """The events of a cut's transactions, without those that the cut voids."""
        return [event for uuid in cut - self.voided(cut) for event in self.transactions[uuid].events]

    def voided(self, cut: Cut) -> Cut:
        """The transactions that some transaction of the cut says are to be treated as absent."""
        return frozenset(uuid for voider in cut for uuid in self.transactions[voider].voids)

    def state(self, cut: Cut, pinned: Mapping[str, Iterable[str]] | None = None, dropping: Collection[str] = ()) -> State:
        """The state at a cut."""
        return state(self.events(cut), pinned, dropping)

    # Timelines.

    def ancestors(self, uuids: Iterable[Uuid]) -> Cut:
        """The transactions and all that their timelines hold before them."""
        found: set[Uuid] = set()
        wanted = list(uuids)
        while wanted:
            uuid = wanted.pop()
            if uuid not in found:
                found.add(uuid)
                wanted.extend(self.transactions[uuid].parents)
        return frozenset(found)

    def of_writer(self, writer: str) -> Cut:
        """What has arrived of one writer."""
        return frozenset(uuid for uuid in self.arrived if self.transactions[uuid].writer == writer)

    def heads(self, writer: str) -> Cut:
        """The arrived transactions of the writer that no other arrived one follows: several while the timeline is forked."""
        own = self.of_writer(writer)
        followed = {parent for uuid in own for parent in self.transactions[uuid].parents}
        return own - followed

    def branches(self, writer: str) -> dict[int, Cut]:
        """The revisions at which more than one transaction of the writer has arrived, and these."""
        return {revision: uuids for (its_writer, revision), uuids in self.forks(self.visible()).items() if its_writer == writer}

    def forks(self, cut: Cut) -> dict[tuple[str, int], Cut]:
        """The writers and revisions of which a cut holds more than one transaction, and these."""
        places: dict[tuple[str, int], set[Uuid]] = {}
        for uuid in cut:
            transaction = self.transactions[uuid]
            places.setdefault((transaction.writer, transaction.revision), set()).add(uuid)
        return {place: frozenset(uuids) for place, uuids in places.items() if len(uuids) > 1}

    def is_joined(self, uuids: Cut, cut: Cut) -> bool:
        """Whether some transaction in the cut comes after all of these on their timeline."""
        return any(uuids <= self.ancestors([later]) for later in cut)

    # Processes.

    def open(self, writer: str) -> Process | None:
        """A process that opens the writer, or None where only ``repair`` can join what it finds.

        One head is followed. Of two, one may be the stray of a crashed predecessor: a single transaction that nothing follows, on
        a history that the other head shares. Then the next commit names both as its parents.
        """
        heads = self.heads(writer)
        if len(heads) > 2 or (len(heads) == 2 and not any(self._is_stray(head, heads) for head in heads)):
            return None
        binding = self.ancestors(heads) - self.voided(self.visible())
        return Process(
            writer=writer,
            parents=heads,
            next_revision=max((self.transactions[head].revision for head in heads), default=-1) + 1,
            last_commit_time=max((self.transactions[uuid].commit_time for uuid in binding), default=0),
        )

    def _is_stray(self, head: Uuid, heads: Cut) -> bool:
        return self.ancestors([head]) - self.ancestors(heads - {head}) == {head}

    def foreign(self, process: Process) -> Cut:
        """The arrived transactions of the process's own writer that it does not follow: what makes it stop when it looks."""
        return self.of_writer(process.writer) - self.ancestors(process.parents)

    def read(self, process: Process, cut: Cut) -> None:
        """The process has seen a cut; everything that it commits from now on comes after it.

        What is voided may count as read or not.
        """
        process.read |= cut - self.voided(cut)

    def applications(self, uuids: Iterable[Uuid]) -> dict[str, tuple[int, Cut]]:
        """For each application its last version among these transactions, and which of them have it: several on a forked timeline."""
        versions: dict[str, dict[int, set[Uuid]]] = {}
        for uuid in uuids:
            if (application := self.transactions[uuid].application) is not None:
                versions.setdefault(application[0], {}).setdefault(application[1], set()).add(uuid)
        return {name: (max(by_version), frozenset(by_version[max(by_version)])) for name, by_version in versions.items()}

    def answer(self, process: Process, application: Application) -> Cut | None:
        """None where the application's transaction is to be committed; else one of these answers it, or nothing does if it is older."""
        if process.applications is None:
            process.applications = self.applications(self.of_writer(process.writer))
        name, version = application
        last, uuids = process.applications.get(name, (version - 1, EMPTY))
        if version > last:
            return None
        return uuids if version == last else EMPTY

    def commit(
        self,
        process: Process,
        drafts: Iterable[Draft],
        *,
        uuid: Uuid,
        commit_time: int,
        arrived: bool = True,
        application: Application | None = None,
        voids: Cut = EMPTY,
    ) -> Transaction:
        """The transaction that the process commits now, which its next one follows."""
        bare = Transaction(
            writer=process.writer,
            revision=process.next_revision,
            uuid=uuid,
            commit_time=commit_time,
            parents=process.parents,
            reads=process.read,
            application=application,
            voids=voids,
        )
        events = (draft.stamped(bare.stamp(seq)) for seq, draft in enumerate(drafts))
        transaction = replace(bare, events=tuple(events))
        self.add(transaction, arrived=arrived)
        process.parents = frozenset({uuid})
        process.next_revision += 1
        process.last_commit_time = commit_time
        if application is not None and process.applications is not None:
            process.applications[application[0]] = (application[1], frozenset({uuid}))
        return transaction
