"""Histories beside a forger, who writes only below her own prefix, at any moment of what others do.

The model is the same catalogue with what counts of hers, and nothing else of her files: every step is taken in both, at the same time and
by the same chance, and comes to the same there: rows, tombstones, tags and forks, errors, and which files of others are deleted. While a
file of hers makes readers stop, they say so by its name, or leave it out if they are asked to; then a maintainer sets it aside.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from bucketcatalog import BucketCatalogError, Catalog, InvalidOption
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write.writer import Writer

from ..collecting import noting, thing
from ..world import HOUR, Clock, World, bucket, obj
from .comparing import check
from .forgeries import FORGER, PREFIX, Forgery, Seen, any_forgery
from .setting_aside import Checkpoint, Commit
from .sides import Side, a_side

WRITERS = ("alice", "bob", FORGER)
NAMES = ("x", "y", "z")
TABLES = ("objects", "deleted_objects", "buckets", "deleted_buckets", "conflicts", "forks", "tags")
ROWS = TABLES[:2]


@dataclass(frozen=True, slots=True)
class Fork:
    """Two processes of one writer commit, neither of which has seen the other's."""

    writer: int


@dataclass(frozen=True, slots=True)
class Join:
    """A maintainer repairs what there is to repair, and joins forks."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A maintainer gives the name to what is now."""


@dataclass(frozen=True, slots=True)
class Prune:
    """A maintainer prunes what it may, or what is older than two hours."""

    old: bool


@dataclass(frozen=True, slots=True)
class Collect:
    """A maintainer collects the data of what has ended."""


@dataclass(frozen=True, slots=True)
class Clone:
    """A maintainer clones what is now."""


@dataclass(frozen=True, slots=True)
class Restore:
    """A maintainer makes a table what it was in a version that was noted down."""

    past: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Hours pass."""

    hours: int


@dataclass(frozen=True, slots=True)
class Forge:
    """She forges something, of any number."""

    number: int


@dataclass(frozen=True, slots=True)
class During:
    """She forges something after so many requests of a step, or after it."""

    number: int
    requests: int
    step: Any


Taken = Commit | Fork | Join | Checkpoint | Tag | Prune | Collect | Clone | Restore
Step = Taken | Wait | Forge | During


class Forging:
    """One history. ``trace`` tells in words what has happened."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.trace: list[str] = []
        self.forged, self.fair = a_side(self.clock), a_side(self.clock)
        self.follower = self.forged.world.catalog()
        self.aside: set[str] = set()
        self.stops = ""
        self.remembered: list[str] = []
        self.times: list[int] = []
        self._chance = random.Random(0)
        self._turn = 0
        self._misfits = self._spoils = False

    def run(self, steps: Iterable[Step]) -> None:
        """Take every step, with others' rows compared after each; in the end verify finds nothing but what she forged."""
        first = [Commit(0, 0, None, False), Commit(1, 1, None, True), Commit(2, 2, None, False), Tag(), Checkpoint(0)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("bucketcatalog.clock.now_us", self.clock)
            patch.setattr("bucketcatalog.clock.sleep", lambda seconds: None)
            patch.setattr("os.urandom", lambda size: self._chance.randbytes(size))
            for step in [*first, *steps]:
                self.trace.append(f"{step}")
                self.clock.tick()
                self._take(step)
                self._compare_now()
            self._compare()
            if self.stops:
                self._set_aside()
                self._compare()
            errors = [it for it in self.forged.world.catalog().verify(deep=True) if it.severity is not Severity.INFO]
            others = [it for it in errors if PREFIX not in (it.file or "") and it.code != "OPEN_FORK"]
            check("findings in the end about others' files", [], [str(it) for it in others])

    def _take(self, step: Step) -> None:
        match step:
            case Wait(hours):
                self.clock.tick(hours * HOUR)
            case Forge(number):
                self._forge(number)
            case During(number, requests, taken):
                by_her = isinstance(taken, Commit | Fork) and WRITERS[taken.writer % 3] == FORGER
                self._both(Tag() if by_her else taken, number, requests)
            case Commit(writer) | Fork(writer) if self._misfits and WRITERS[writer % 3] == FORGER:
                pass  # what needs a definition of hers that does not fit would stop readers, as is right
            case _:
                self._both(step)

    # What others do.

    def _both(self, step: Taken, number: int | None = None, requests: int = 0) -> None:
        """Take the step in both catalogues. Where she makes one stop who takes it, it is said by the file's name."""
        began, before = self.clock.now, (self.forged.files(), self.fair.files())
        meddle = number is not None and not self.stops
        forgery = self._drawn(number) if meddle and number is not None else None
        found = self._in(self.forged, step, None if forgery is None else forgery.put, requests)
        ended, self.clock.now = self.clock.now, began
        if isinstance(found, BucketCatalogError) and self._is_stopped(str(found)):
            self._stopped(step, found, before, None if forgery is None else forgery.counts, requests)
            self.clock.now = max(ended, self.clock.now)
            self._set_aside()
            return
        expected = self._in(self.fair, step, None if forgery is None else forgery.counts, requests)
        self.clock.now = max(ended, self.clock.now)
        told = [it if not isinstance(it, BucketCatalogError) else f"{type(it).__name__}: {it}" for it in (expected, found)]
        if isinstance(expected, BucketCatalogError) and isinstance(found, BucketCatalogError):
            check("the error of both", type(expected).__name__, type(found).__name__)
        else:
            check(f"what {step} comes to", *told)
        gone = [
            {name for name in was if not name.startswith(PREFIX)} - set(side.files())
            for side, was in ((self.fair, before[1]), (self.forged, before[0]))
        ]
        check("files of others that are deleted", *gone)
        self.trace += [f"    {name} is deleted" for name in sorted(gone[0])]

    def _in(self, side: Side, step: Taken, files: dict[str, bytes] | None, requests: int) -> Any:
        self._chance.seed(self.clock.now)
        if files is not None:
            side.store.act, side.store.after = (lambda: self._put(side, files)), requests
        try:
            return self._do(side.world, step)
        except BucketCatalogError as error:
            return error
        finally:
            side.store.happen()

    def _stopped(
        self,
        step: Taken,
        error: BucketCatalogError,
        before: tuple[dict[str, bytes], dict[str, bytes]],
        counts: dict[str, bytes] | None,
        requests: int,
    ) -> None:
        """Who was stopped has deleted nothing that it would not have deleted without her; what it has put counts in both."""
        self.trace.append(f"    {error}")
        blind = isinstance(step, Commit) and not step.reads and WRITERS[step.writer % 3] != FORGER
        assert not blind, f"a blind commit of another is stopped: {error}"
        gone = {name for name in before[0] if not name.startswith(PREFIX)} - set(self.forged.files())
        if gone:
            self._in(self.fair, step, counts, requests)
            check("deleted where it was stopped, and not without her", set(), gone & set(self.fair.files()))
        elif counts is not None:
            self._put(self.fair, counts)
        self._same_files()

    def _same_files(self) -> None:
        """Let the files of others be the same in both."""
        here, there = self.forged.files(), self.fair.files()
        for name in {*here, *there}:
            if not name.startswith(PREFIX):
                if name not in here:
                    self.fair.store.inner.delete(name)
                elif there.get(name) != here[name]:
                    self.fair.store.inner.put(name, here[name])

    def _do(self, world: World, step: Taken) -> Any:
        match step:
            case Commit():
                return self._commit(world, step)
            case Fork(writer):
                with _alone(world, WRITERS[writer % 3]) as first, _alone(world, WRITERS[writer % 3]) as second:
                    for number, held in enumerate((first, second)):
                        world.commit(held, ("put", "objects", obj(f"fork {number}")))
            case Join():
                world.catalog().repair(
                    writer="maintainer-1", clock=world.clock, dry_run=False, join=list(WRITERS), force=True
                ) if self._forked(world) else None
            case Checkpoint(maker):
                name = (*WRITERS, "compactor-1")[maker % 4]
                with world.writer(name) as held:
                    held.checkpoint(scope="own" if name in WRITERS else "all")
            case Tag():
                with world.writer("maintainer-1") as held:
                    held.tag("release", replace=True)
            case Prune(old):
                world.catalog().prune(
                    "2h" if old else "0s", grace="0s", writer="maintainer-1", dry_run=False, force=True, clock=world.clock
                )
            case Collect():
                asked: list[str] = []
                given: dict[str, Any] = {"deleter": noting(asked, "id"), "writer": "maintainer-1", "clock": world.clock}
                world.catalog().collect(older_than="1h", dry_run=False, force=True, **given)
                return sorted(asked)
            case Clone():
                target = MemoryStore(clock=world.clock)
                world.catalog().clone(target, writer="maintainer-1")
                return _shown(Catalog(target).snapshot(), ("objects", "deleted_objects", "buckets", "deleted_buckets"))
            case Restore(past):
                version = self.remembered[past % len(self.remembered)]
                done = world.catalog().restore("objects", version=version, writer="maintainer-1", dry_run=False)
                return done.put, done.updated, done.deleted
        return None

    def _forked(self, world: World) -> bool:
        return bool(len(world.snapshot().scan("forks").to_arrow()))

    def _commit(self, world: World, step: Commit) -> None:
        calls: list[tuple[Any, ...]] = [("put", "objects", thing(NAMES[step.put % len(NAMES)], f"{world.clock()}"))]
        if step.delete is not None:
            calls.append(("delete", "objects", obj(NAMES[step.delete % len(NAMES)])))
        if step.reads:  # or it would look for the bucket's id
            calls.append(("put", "buckets", bucket(NAMES[step.put % len(NAMES)])))
        with world.writer(WRITERS[step.writer % 3]) as held:
            if step.reads:
                held._database.look()
            made = world.commit(held, *calls)
        self.times.append(made.commit_time)

    # What she does, and what is done about it.

    def _drawn(self, number: int) -> Forgery | None:
        """What she forges, once: the same file is there for both."""
        self._chance.seed(self.clock.now + number)
        forgery = any_forgery(number)(Seen(self.forged.files(), self.fair.files(), frozenset(self.aside), self.clock.now))
        if forgery is not None:
            self.trace += [f"    she puts {name}" for name in forgery.put]
            self.stops = forgery.stops
            self._misfits = self._misfits or forgery.misfits
            self._spoils = forgery.spoils
        return forgery

    def _forge(self, number: int) -> None:
        if self.stops:
            return
        if (forgery := self._drawn(number)) is not None:
            self._put(self.forged, forgery.put)
            self._put(self.fair, forgery.counts)

    def _put(self, side: Side, files: dict[str, bytes]) -> None:
        for name, data in files.items():
            side.store.inner.put(name, data)

    def _set_aside(self) -> None:
        self.trace.append(f"    {self.stops} is set aside")
        self.clock.tick()
        aside = [self.stops] if self.stops.endswith(".txn") else []  # what leads to no checkpoint is dropped unasked
        try:
            self.forged.world.catalog().repair(writer="maintainer-1", clock=self.clock, dry_run=False, set_aside=aside)
            self.aside |= set(aside)
        except InvalidOption:
            assert self._spoils, "only what a checkpoint covers that it says something else of need not be set aside"
        self.stops = ""
        self._same_files()

    def _is_stopped(self, error: str) -> bool:
        """Whether this is how it is told that a file of hers stops somebody."""
        return bool(self.stops) and PREFIX in error

    # What readers see.

    def _compare_now(self) -> None:
        """Compare the rows of now, as who has read nothing sees them and who has followed, in turns."""
        self._turn += 1
        reader = self.follower if self._turn % 2 else self.forged.world.catalog()
        self._check(reader, self.fair.world.catalog(), {}, ROWS)
        if not self.stops:
            self.remembered.append(str(reader.snapshot().version))

    def _compare(self) -> None:
        """Compare everything, of now and of the past."""
        fresh, fair = self.forged.world.catalog(), self.fair.world.catalog()
        self._check(self.follower, fair, {}, TABLES)
        for options in ({}, {"timestamp": f"@{self.times[-1]}"}, {"timestamp": f"@{self.times[len(self.times) // 2]}"}):
            self._check(fresh, fair, options, TABLES)
        for version in ("release", *self.remembered[:: max(1, len(self.remembered) // 3)]):
            self._check(fresh, fair, {"version": version}, ROWS)

    def _check(self, reader: Catalog, fair: Catalog, options: dict[str, Any], tables: tuple[str, ...]) -> None:
        expected, found = _answer(fair, options, tables), _answer(reader, options, tables)
        if isinstance(found, str) and self._is_stopped(found):
            found = _answer(reader, {**options, "ignore_corruption": True}, ROWS)
            wanted = {name: expected[name] for name in ROWS} if isinstance(expected, dict) else expected
            if not self._spoils:
                check(f"{options}, read past {self.stops}", wanted, found)
        elif isinstance(expected, str) and isinstance(found, str):
            check(f"the error of {options}", expected.partition(":")[0], found.partition(":")[0])
        else:
            check(f"{options}", expected, found)


@contextmanager
def _alone(world: World, name: str) -> Iterator[Writer]:
    with world.writer(name) as held:
        held._database.look()
        yield held


def _answer(catalog: Catalog, options: dict[str, Any], tables: Iterable[str]) -> Any:
    try:
        return _shown(catalog.snapshot(**options), tables)
    except BucketCatalogError as error:
        return f"{type(error).__name__}: {error}"


def _shown(snapshot: Any, tables: Iterable[str]) -> dict[str, Any]:
    return {table: sorted(map(repr, snapshot.scan(table).to_arrow().to_pylist())) for table in tables}
