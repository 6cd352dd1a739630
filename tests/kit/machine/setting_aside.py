"""Histories in which writers' files go bad, a maintainer sets them aside, and they come back and are taken in.

The model is small: a transaction ends and begins versions of a few names, and a cut's state is that of its transactions but for those that
are set aside. Wherever a bad file stands that is not, an answer is the one with its events, or an error that names the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bucketcatalog import BucketCatalogError, Catalog, HistoryPruned, InvalidOption, SetAsideError
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model import paths

from ..spoiling import SPOILT
from ..world import World, obj

WRITERS = ("a", "b")
MAKERS = (*WRITERS, "compactor-1")
NAMES = ("x", "y", "z")
LOST = "lost"
UNKNOWN = {"a byte", "an unknown feature", LOST}
"""What a file can be of which nobody can tell what it followed and had read."""
KINDS = (LOST, *(kind for kind in SPOILT if kind != "another parent's digest"))


@dataclass(frozen=True, slots=True)
class Commit:
    """A writer puts a name and ends another, having read everything or nothing."""

    writer: int
    put: int
    delete: int | None
    reads: bool


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Of a writer's own timeline, or by the compactor of everybody's."""

    maker: int


@dataclass(frozen=True, slots=True)
class Spoil:
    """A writer's file goes bad, so many before the last."""

    writer: int
    back: int
    kind: int


@dataclass(frozen=True, slots=True)
class SetAside:
    """A maintainer sets a bad file aside, or, where there is none, one that is sound if it ``forces`` that."""

    number: int
    who: int
    forces: bool = False


@dataclass(frozen=True, slots=True)
class TakeIn:
    """A file that is set aside comes back, and is taken in."""

    number: int
    who: int


@dataclass(frozen=True, slots=True)
class Prune:
    """A maintainer prunes what it may."""

    who: int


@dataclass(frozen=True, slots=True)
class Compare:
    """Everything that can be asked is compared, by a reader that has followed or by one that has read nothing; now is noted down."""

    fresh: bool


Step = Commit | Checkpoint | Spoil | SetAside | TakeIn | Prune | Compare


@dataclass(slots=True)
class Transaction:
    """A transaction of the model, with the bytes that its file had; ``reads`` are what it names itself."""

    writer: str
    revision: int
    uuid: str
    time: int
    parents: frozenset[str]
    reads: frozenset[str] = frozenset()
    puts: tuple[str, ...] = ()
    deletes: tuple[str, ...] = ()
    name: str = ""
    data: bytes = b""
    bad: str = ""
    aside: bool = False

    @property
    def links(self) -> frozenset[str]:
        """What is in each cut with it: of one that is set aside and of which nothing is known its timeline alone."""
        return self.parents if self.aside and self.bad in UNKNOWN else self.parents | self.reads


@dataclass(slots=True)
class Remembered:
    """A version as somebody saw it, and its transactions."""

    version: str
    cut: frozenset[str]


@dataclass
class SettingAside:
    """One history. ``trace`` tells in words what has happened."""

    world: World = field(default_factory=World)
    trace: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known: dict[str, Transaction] = {}
        self.remembered: list[Remembered] = []
        self.horizon: frozenset[str] = frozenset()
        self.follower = self.world.catalog()

    def run(self, steps: Iterable[Step]) -> None:
        """Take every step and compare; then everything that is bad is set aside, and comes back."""
        for step in [Commit(0, 0, None, False), Commit(1, 1, None, False), *steps, Compare(False), Compare(True)]:
            self.trace.append(f"{step}")
            self.world.clock.tick()
            self._take(step)
        for each in list(self._outstanding()):
            self._say(each, 0, aside=True)
        self._compare(self.world.catalog())
        errors = [it for it in self.world.catalog().verify(deep=True) if it.severity is not Severity.INFO]
        spoilt = [t.name for t in self.known.values() if t.bad]
        assert [text for it in errors if not any(name in (text := str(it)) for name in spoilt)] == []

    def _take(self, step: Step) -> None:
        match step:
            case Commit():
                self._commit(step)
            case Checkpoint(maker):
                self._checkpoint(MAKERS[maker % len(MAKERS)])
            case Spoil():
                self._spoil(step)
            case SetAside(number, who, forces):
                found = list(self._outstanding()) or ([t for t in self._data() if not t.aside] if forces else [])
                if found:
                    self._say(found[number % len(found)], who, aside=True)
            case TakeIn(number, who):
                if found := [t for t in self._data() if t.aside]:
                    self._say(found[number % len(found)], who, aside=False)
            case Prune(who):
                self._prune(who)
            case Compare(fresh):
                self._compare(self.world.catalog() if fresh else self.follower)

    # What processes do.

    def _data(self) -> list[Transaction]:
        """The transactions of writers of rows, and of the compactor."""
        return [t for t in self.known.values() if t.writer in MAKERS]

    def _outstanding(self) -> Iterator[Transaction]:
        """What is bad and not set aside, and what readers may still need."""
        return (t for t in self.known.values() if t.bad and not t.aside and t.uuid not in self.horizon)

    @contextmanager
    def _past_bad_files(self) -> Iterator[list[str]]:
        """What is done here may end with an error that names a bad file: then the list has it."""
        names: list[str] = []
        try:
            yield names
        except BucketCatalogError as error:
            bad = [t for t in self.known.values() if t.bad and not t.aside]
            places = {t.name: f"{t.writer}/default/transactions/" for t in bad}  # where its own checkpoint lies too
            names += [name for name, place in places.items() if place in str(error)]
            if not names:
                raise
            self.trace.append(f"    {error}")

    def _commit(self, step: Commit) -> None:
        writer = WRITERS[step.writer % len(WRITERS)]
        own = [t for t in self._outstanding() if t.writer == writer]
        if any(t.bad and t.bad not in UNKNOWN for t in self.known.values() if t.writer == writer):
            return  # which would be written after what the file is by now, and no other could come back
        calls: list[tuple[Any, ...]] = [("put", "objects", obj(NAMES[step.put % len(NAMES)]))]
        deletes = () if step.delete is None else (NAMES[step.delete % len(NAMES)],)
        calls += [("delete", "objects", obj(name)) for name in deletes]
        with self._past_bad_files() as met:
            before = frozenset(self.known)
            with self.world.writer(writer) as held:
                if step.reads:
                    held._database.look()
                self.world.commit(held, *calls)
            reads = frozenset(t.uuid for t in self._heads(before) if t.writer != writer) if step.reads else frozenset()
            self._learn(reads=reads, puts=(NAMES[step.put % len(NAMES)],), deletes=deletes)
        assert not met or step.reads or own, "a blind commit goes on beside the bad file of another"

    def _checkpoint(self, maker: str) -> None:
        before = self._heads(frozenset(self.known))
        with self._past_bad_files(), self.world.writer(maker) as held:
            held.checkpoint(scope="own" if maker in WRITERS else "all")
        self._learn(reads=frozenset(t.uuid for t in before if t.writer != maker))

    def _prune(self, who: int) -> None:
        before = self._heads(frozenset(self.known))
        with self._past_bad_files():
            self.world.catalog().prune(
                "0s", grace="0s", writer=f"maintainer-{who}", dry_run=False, force=True, clock=self.world.clock
            )
        self._learn(reads=frozenset(t.uuid for t in before))
        told = None
        with self._past_bad_files():
            told = self.world.snapshot().view.horizon
        if told is not None:
            heads = [self.known[uuid] for uuid in self._uuids(str(told.cut))]
            self.horizon |= self._closed(heads, lambda t: t.parents)

    def _learn(self, *, reads: frozenset[str], **content: Any) -> None:
        """Note what has been committed since somebody looked, by its names."""
        for info in self.world.store.list(""):
            found = paths.parse(info.name)
            if found is None or found.log_file is None or not found.log_file.is_transaction:
                continue
            head = found.log_file.head
            uuid = head.uuid.hex()
            if uuid in self.known:
                continue
            parents = [t for t in self.known.values() if t.writer == found.writer]
            last = max(parents, key=lambda t: t.revision, default=None)
            self.known[uuid] = Transaction(
                found.writer,
                head.revision,
                uuid,
                head.commit_time,
                frozenset() if last is None else frozenset({last.uuid}),
                frozenset(other for other in reads if self.known[other].writer != found.writer),
                name=info.name,
                data=self.world.store.get(info.name),
                **content,
            )
            self.trace.append(f"    {info.name}")

    def _heads(self, cut: Iterable[str]) -> list[Transaction]:
        newest: dict[str, Transaction] = {}
        for t in sorted((self.known[uuid] for uuid in cut), key=lambda t: t.revision):
            newest[t.writer] = t
        return list(newest.values())

    # Files go bad, and maintainers say what counts.

    def _spoil(self, step: Spoil) -> None:
        own = sorted((t for t in self.known.values() if t.writer == WRITERS[step.writer % 2]), key=lambda t: t.revision)
        own = [t for t in own if not t.aside and not t.bad and t.uuid not in self.horizon]
        if not own:
            return
        t, kind = own[-1 - step.back % len(own)], KINDS[step.kind % len(KINDS)]
        is_last = all(other.revision <= t.revision for other in self.known.values() if other.writer == t.writer)
        if not is_last:
            kind = LOST if kind == LOST else "a byte"  # with anything else its follower's digest is wrong too
        elif (
            kind == LOST
            or (kind == "parents that are not there" and not t.parents)
            or (kind == "an unknown event" and not t.puts)
        ):
            kind = "a byte"
        after = [other for other in self.known.values() if other.writer == t.writer and other.revision == t.revision + 1]
        before = [other for other in self.known.values() if other.writer == t.writer and other.revision == t.revision - 1]
        if kind == LOST and any(other.bad for other in after):
            kind = "a byte"
        if kind in UNKNOWN and any(other.bad == LOST and not other.aside for other in before):
            return  # nothing would be left that names what is lost
        t.bad = kind
        self.trace.append(f"    {t.name}: {kind}")
        self.world.store.delete(t.name)
        if kind != LOST:
            self.world.store.put(t.name, SPOILT[kind](t.data))

    def _say(self, t: Transaction, who: int, *, aside: bool) -> None:
        self.trace.append(f"    {t.name}: {'set aside' if aside else 'taken in'}")
        options: dict[str, Any] = {"set_aside" if aside else "take_in": [t.name], "force": aside and not t.bad}
        if not aside and t.bad:
            if t.bad != LOST:
                self.world.store.delete(t.name)
            self.world.store.put(t.name, t.data)
        why = ""
        try:
            self.world.catalog().repair(writer=f"maintainer-{who}", clock=self.world.clock, dry_run=False, **options)
        except InvalidOption as error:
            why = error.message
        assert ("horizon" in why) is (t.uuid in self.horizon), why
        assert t.uuid in self.horizon or not why, why
        if not why:
            t.aside = aside
        if not aside:
            t.bad = ""
        self._learn(reads=frozenset())

    # What readers see.

    def _closed(self, heads: Iterable[Transaction], links: Callable[[Transaction], Iterable[str]]) -> frozenset[str]:
        found: dict[str, Transaction] = {}
        pending = list(heads)
        while pending:
            t = pending.pop()
            if t.uuid not in found:
                found[t.uuid] = t
                pending += [self.known[uuid] for uuid in links(t)]
        return frozenset(found)

    def _uuids(self, version: str) -> list[str]:
        return [] if version == ":" else [part.rpartition(":")[2] for part in version.split(",")]

    def _state(self, cut: Iterable[str]) -> tuple[dict[str, str], dict[str, int]]:
        """The live version of each name, and when those ended that have."""
        live: dict[str, str] = {}
        ended: dict[str, int] = {}
        for t in sorted((self.known[uuid] for uuid in cut), key=lambda t: (t.time, t.writer)):
            for number, name in enumerate((*t.puts, *t.deletes) if not t.aside else ()):
                if name in live:
                    ended[live.pop(name)] = t.time
                if number < len(t.puts):
                    live[name] = f"{t.uuid}:{number}"
        return live, ended

    def _compare(self, reader: Catalog) -> None:
        everything = frozenset(self.known)
        self._check("now", everything, lambda: reader.snapshot())
        for past in self.remembered[-4:]:
            self._check(f"the version {past.version}", past.cut, lambda version=past.version: reader.snapshot(version=version))
            self._check_changes(past, everything, reader)
        rows = [t for t in self.known.values() if t.puts]
        for t in rows[-3:]:
            cut = self._closed([t], lambda each: each.links)
            self._check(f"{t.writer}@{t.revision}", cut, lambda t=t: reader.snapshot(version=f"{t.writer}@{t.revision}"))
            until = frozenset(each.uuid for each in self.known.values() if each.time <= t.time)
            self._check(f"the time of {t.name}", until, lambda t=t: reader.snapshot(timestamp=f"@{t.time}"))
        with self._past_bad_files():
            self.remembered.append(Remembered(reader.snapshot().version, everything))

    def _check(self, what: str, cut: frozenset[str], ask: Callable[[], Any]) -> None:
        with self._past_bad_files():
            try:
                snapshot = ask()
                live = snapshot.scan("objects", columns=["name", "_version"]).to_arrow().to_pylist()
                ended = snapshot.scan("deleted_objects", columns=["_version", "deleted_at"]).to_arrow().to_pylist()
            except HistoryPruned:
                assert self.horizon and not self.horizon <= cut, what
                return
            found = {row["name"]: _plain(row["_version"]) for row in live}
            gone = {_plain(row["_version"]): _micros(row["deleted_at"]) for row in ended}
            assert (found, gone) == self._state(cut), f"{what}: {(found, gone)} and not {self._state(cut)}"

    def _check_changes(self, start: Remembered, end: frozenset[str], reader: Catalog) -> None:
        between = [self.known[uuid] for uuid in end - start.cut]
        expected = sorted(event for t in between if not t.aside for event in ((t.time, name) for name in (*t.puts, *t.deletes)))
        with self._past_bad_files():
            unknown = ""
            try:
                reader.changes(start=start.version).to_arrow()
            except SetAsideError as error:
                unknown = error.message
            except HistoryPruned:
                assert self.horizon and not self.horizon <= start.cut
                return
            aside = [t.name for t in between if t.aside]
            assert any(name in unknown for name in aside) if aside else not unknown
            found = reader.changes(start=start.version, ignore_set_aside=True).to_arrow().to_pylist()
            assert sorted((_micros(row["_commit_timestamp"]), row["name"]) for row in found) == expected


def _plain(version: str) -> str:
    return version.replace("-", "")


def _micros(time: Any) -> int:
    return round(time.timestamp() * 1_000_000)
