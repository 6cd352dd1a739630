"""All interleavings of a collection with what may race it: no live version ever loses its data.

A collection is six steps: it looks, publishes its boundary, waits (in two parts), looks again, deletes, purges. The steps of the others
fall between these in every possible way, none is sampled; time passes in the two waits, and where a step lets it. The deleter is real: it
takes data out of a store. After every step from the deletion on a new reader asks for all live versions, whose data must be there. Now and
then later collections follow, which must leave no other data, so that keeping all would not pass.

A second model does the same for reaping. Each rule is then broken in turn, and the same check has to find the loss.
"""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, CommitUnknown, DataCollected, InvalidVersion, OutcomeUnknown, StaleRead
from bucketcatalog.limits import DEFAULT_LIMITS
from bucketcatalog.log.entries import Boundaries
from bucketcatalog.log.timeline import Timeline
from bucketcatalog.maintain.gc.collect import InProcess, Known, collect
from bucketcatalog.maintain.gc.data import Calling
from bucketcatalog.maintain.gc.reap import reap
from bucketcatalog.maintain.restore import Hold, restore
from bucketcatalog.model.names import writer_id
from bucketcatalog.store import Store
from bucketcatalog.store.faults import DelayedArrival
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.commit import Commit, Committed
from bucketcatalog.write.writer import Writer

MINUTE = 60_000_000
HOUR = 60 * MINUTE
START = 1_700_000_000_000_000
OWNER, BUCKET = (str(uuid.uuid5(uuid.NAMESPACE_OID, name)) for name in ("owner", "bucket"))
WAITS = 2
"""Ticks that a boundary is waited out in: with a little less than half of the time between them."""
TICK = 3 * HOUR + 10 * MINUTE
Step = Callable[["Yard"], None]


class Lost(AssertionError):
    """A live version has no data."""


class Hooked(Wrapped):
    """Calls ``before`` ahead of each transaction that is put."""

    def __init__(self, inner: Store, before: Callable[[], None]) -> None:
        super().__init__(inner)
        self.before = before

    def put(self, name: str, data: bytes) -> None:
        begun = self.now_us()
        if name.endswith(".txn"):
            self.before()
        if self.now_us() > begun + 5 * MINUTE:  # a put that is under way for so long does not arrive any more
            raise OutcomeUnknown("The put took too long.")
        self.inner.put(name, data)


def an_id(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def key(name: str) -> dict[str, Any]:
    return {"owner": OWNER, "bucket_id": BUCKET, "name": name}


@dataclass
class Yard:
    """The world of one interleaving: the time, the catalog's store, the data, and what the actors have in hand."""

    now: int = START
    held: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = MemoryStore(clock=self.clock)
        self.data = MemoryStore(clock=self.clock)
        self.deleted = False
        self.uploads = 0

    def clock(self) -> int:
        return self.now

    def writer(self, name: str, store: Store | None = None) -> Writer:
        return Catalog(self.store if store is None else store).writer(name, database="default", clock=self.clock)

    def commit(self, name: str, *calls: tuple[Any, ...]) -> None:
        """One transaction of a process that has read nothing before."""
        self.now += 1_000_000
        with self.writer(name) as writer, writer.transaction() as tx:
            for method, *arguments in calls:
                getattr(tx, method)("objects", *arguments)

    def upload(self, name: str, bucket: str = BUCKET) -> None:
        """New data, and the object that names it. A name that is put again gets data of its own."""
        self.uploads += 1
        row = {
            **key(name),
            "bucket_id": bucket,
            "id": an_id(name if self.uploads == 1 or bucket != BUCKET else f"{name} {self.uploads}"),
        }
        self.data.put(f"{bucket}/{row['id']}", b"data")
        self.commit("w", ("put", row))

    def rows(self, table: str) -> list[dict[str, Any]]:
        columns = ["owner", "bucket_id", "name", "id", "_version"]
        return list(Catalog(self.store).snapshot().scan(table, columns=columns).to_arrow().to_pylist())

    def version(self, name: str, table: str = "objects") -> dict[str, Any]:
        """Key and version of the latest row of a name."""
        row = [row for row in self.rows(table) if row["name"] == name][-1]
        return {column: row[column] for column in ("owner", "bucket_id", "name", "_version")}

    def named(self) -> set[str]:
        """The data that live versions name."""
        return {f"{row['bucket_id']}/{row['id']}" for row in self.rows("objects")}

    def there(self) -> set[str]:
        return {info.name for info in self.data.list("")}

    def check(self) -> None:
        lost = self.named() - self.there()
        if lost:
            raise Lost(f"the data of {len(lost)} live versions is gone")

    def deleter(self, batch: pa.Table) -> list[bool]:
        for row in batch.to_pylist():
            self.data.delete(f"{row['bucket_id']}/{row['id']}")
        self.deleted = True
        return [True] * len(batch)

    def collect(self, store: Store | None = None, deleter: Callable[[pa.Table], Any] | None = None) -> None:
        self.now += 1_000_000
        catalog = Catalog(self.store if store is None else store)
        with suppress(CommitUnknown), catalog.writer("maintainer-1", clock=self.clock) as writer:
            collect(catalog.database("default").look, writer, InProcess(Calling(deleter or self.deleter)), 0, force=False)


# What races a collection: each actor is a list of steps, which happen in this order.


def naming(actor: str, name: str, *, source: str, table: str = "objects", move: bool = False, slow: bool = False) -> Step:
    """Begin to put an object that names the data of another one, and with ``move`` to end that one; ``slow``: over a slow network."""

    def step(yard: Yard) -> None:
        with suppress(IndexError, DataCollected):  # it is not there any more, or its data may not be
            of = yard.version(source, table)
            store = DelayedArrival(yard.store, acknowledge=True, picks=lambda name: name.endswith(".txn")) if slow else yard.store
            tx = yard.writer(actor, store).transaction(operation=actor)
            tx.__enter__()
            tx.put("objects", {**key(name), "id": an_id("a")}, data_of=of)
            if move:
                tx.delete("objects", of, moved=True)
            yard.held[actor] = (tx, store)

    return step


def commit(actor: str) -> Step:
    """Commit what the actor holds open, unless that was refused, or is by now."""

    def step(yard: Yard) -> None:
        tx, store = yard.held.pop(actor, (None, None))
        if tx is not None:
            yard.now += 1_000_000
            with suppress(StaleRead):
                tx.__exit__(None, None, None)
                yard.held[actor] = (yard.now, store)

    return step


def arrive(actor: str) -> Step:
    """What was sent over a slow network arrives, if it is not later than its writer has promised."""

    def step(yard: Yard) -> None:
        sent, store = yard.held.pop(actor, (0, None))
        if store is not None and yard.now <= sent + 6 * MINUTE:
            store.deliver()

    return step


class Stepwise:
    """Work in a thread of its own that stops where it pauses; what it does until then is one step."""

    def __init__(self, work: Callable[[Callable[[], None]], None]) -> None:
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._error: BaseException | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._run, args=[work], daemon=True)
        self._thread.start()

    def _run(self, work: Callable[[Callable[[], None]], None]) -> None:
        self._go.acquire()
        try:
            work(self._pause)
        except BaseException as error:
            self._error = error
        self._ended = True
        self._stopped.release()

    def _pause(self) -> None:
        self._stopped.release()
        self._go.acquire()

    def step(self) -> None:
        """Go on until the next pause, or the end."""
        if not self._ended:
            self._go.release()
            self._stopped.acquire()
        if self._error is not None:
            raise self._error


class Pausing(Writer):
    """Pauses before it gives a tag, and before it puts rows."""

    pause: Callable[[], None]

    def commit(self, commit: Commit) -> Committed | None:
        if commit.operation != "drop tag":
            self.pause()
        return super().commit(commit)


def restore_tagged(yard: Yard) -> None:
    """Go on with a restore to the tag: it looks; it gives its own tag and looks again; it puts the rows and drops its tag."""

    def work(pause: Callable[[], None]) -> None:
        database = Catalog(yard.store).database("default")
        with Pausing(database, writer_id("maintainer-3"), yard.clock, DEFAULT_LIMITS) as writer:
            writer.pause = pause
            with suppress(DataCollected, StaleRead, InvalidVersion):
                restore(database, writer, "objects", None, "kept", skip_collected=True)

    if "restore" not in yard.held:
        yard.held["restore"] = Stepwise(work)
    yard.now += 1_000_000
    yard.held["restore"].step()


def drop_tag(yard: Yard) -> None:
    """Somebody drops the tag."""
    yard.now += 1_000_000
    with yard.writer("maintainer-2") as writer:
        writer.drop_tag("kept")


def tagged(yard: Yard) -> None:
    """An object that has ended, of which a tag has a live version, and whose boundary was waited out long ago."""
    yard.upload("a")
    with yard.writer("maintainer-2") as writer:
        writer.tag("kept")
    yard.commit("w", ("delete", key("a")))


def delete(name: str, *, minutes: int = 0) -> Step:
    """End an object, blindly, as another process does; then time passes."""

    def step(yard: Yard) -> None:
        yard.commit("d", ("delete", key(name)))
        yard.now += minutes * MINUTE

    return step


def passing(minutes: int) -> Step:
    """Time passes."""

    def step(yard: Yard) -> None:
        yard.now += minutes * MINUTE

    return step


def both(first: Step, second: Step) -> Step:
    """Two steps at once."""

    def step(yard: Yard) -> None:
        first(yard)
        second(yard)

    return step


def recreate(yard: Yard) -> None:
    """Create the bucket again: it is another one by now."""
    yard.now += 1_000_000
    with yard.writer("b") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": OWNER, "name": "cats"})


def upload_into_new(yard: Yard) -> None:
    """Put an object into the bucket of that name, if it is there, with an id that was used in the old one."""
    for bucket in Catalog(yard.store).snapshot().scan("buckets").to_arrow().to_pylist():
        yard.upload("a", bucket["id"])


def dead(yard: Yard) -> None:
    """An object that has ended, so that a collection may take its data."""
    yard.upload("a")
    yard.commit("w", ("delete", key("a")))


def dead_bucket(yard: Yard) -> None:
    """A bucket that has ended, with all that was in it."""
    with yard.writer("b") as writer:
        with writer.transaction() as tx:
            tx.put("buckets", {"owner": OWNER, "name": "cats"})
        (old,) = Catalog(yard.store).snapshot().scan("buckets").to_arrow()["id"].to_pylist()
        yard.upload("a", old)
        yard.now += 1_000_000
        with writer.transaction() as tx:
            tx.delete("buckets", {"owner": OWNER, "name": "cats"})
            tx.delete("objects", {**key("a"), "bucket_id": old})


def live(yard: Yard) -> None:
    """An object that is live."""
    yard.upload("a")


def begun(step: Step) -> Step:
    """An object that somebody has begun to name while it was live, and that has ended."""

    def setup(yard: Yard) -> None:
        yard.upload("a")
        step(yard)
        yard.commit("w", ("delete", key("a")))

    return setup


SLOTS = 8
"""Where steps of others can fall: before and after each of seven steps, the waits counting as two."""
rename = naming("n", "new", source="a", move=True)
slowly = naming("n", "late", source="a", slow=True)
restoring = [naming("r", "a", source="a", table="deleted_objects"), commit("r")]
copying = [naming("c", "copy", source="a", table="deleted_objects"), commit("c")]
CASES: dict[str, tuple[Step, list[list[Step]]]] = {
    "restore": (dead, [restoring]),
    "restore and end again": (dead, [[*restoring, delete("a")]]),
    "copy of a tombstone": (dead, [copying]),
    "copy of a copy": (dead, [[both(*restoring), naming("c", "copy", source="a"), commit("c")]]),
    "rename of what is deleted": (live, [[rename, commit("n")], [delete("a", minutes=7)]]),
    "rename begun while it was live": (begun(rename), [[commit("n")]]),
    "rename begun while it was live, with time": (begun(rename), [[commit("n")], [passing(190)]]),
    "put on its way": (begun(slowly), [[commit("n"), arrive("n")]]),
    "put on its way, with time": (begun(slowly), [[commit("n"), passing(5), arrive("n")]]),
    "put and delete of a name": (dead, [[lambda yard: yard.upload("a"), delete("a")]]),
    "restore to a tag that is dropped before it has its own": (
        tagged,
        [[restore_tagged, drop_tag, both(restore_tagged, restore_tagged)]],
    ),
    "restore to a tag that is dropped once it has its own": (
        tagged,
        [[restore_tagged, restore_tagged, drop_tag, restore_tagged]],
    ),
    "restore to a tag that is dropped in the end": (tagged, [[restore_tagged, restore_tagged, both(restore_tagged, drop_tag)]]),
    "bucket created again": (dead_bucket, [[recreate, upload_into_new]]),
}


def interleavings(actors: Sequence[int], slots: int) -> Iterator[list[list[int]]]:
    """Every way in which the steps of actors, so many each, fall into the slots: for each slot the actors whose turn it is, in order."""
    for order in sorted(set(itertools.permutations([number for number, steps in enumerate(actors) for _ in range(steps)]))):
        for places in itertools.combinations_with_replacement(range(slots), len(order)):
            yield [[actor for actor, place in zip(order, places, strict=True) if place == slot] for slot in range(slots)]


def race(begin: Step, actors: Sequence[Sequence[Step]], slots: Sequence[Sequence[int]]) -> Yard:
    """Run one interleaving; ``Lost`` where a live version has lost its data."""
    yard, todo = Yard(), list(slots)
    left = [list(steps) for steps in actors]
    begin(yard)
    yard.now += 7 * MINUTE

    def others() -> None:
        for actor in todo.pop(0) if todo else ():
            left[actor].pop(0)(yard)
            if yard.deleted:
                yard.check()

    def deleter(batch: pa.Table) -> list[bool]:
        others()
        gone = yard.deleter(batch)
        yard.check()
        return gone

    others()
    yard.collect(Hooked(yard.store, others))  # others come between its look and its boundary
    others()
    for _ in range(WAITS):
        yard.now += TICK
        others()
    yard.collect(Hooked(yard.store, others), deleter)  # before its deletion, and between that and its purge
    while todo:
        others()
    yard.check()
    return yard


def tidy(yard: Yard) -> None:
    """Collect what is left; in the end there is the data that live versions name, and no other."""
    for hours in (1, 7, 7):
        yard.now += hours * HOUR
        yard.collect()
    yard.check()
    assert yard.there() == yard.named()


def run_all(case: str) -> int:
    """Run every interleaving of a case; in how many of them something was deleted while others were under way."""
    begin, actors = CASES[case]
    deleted = 0
    for number, slots in enumerate(interleavings([len(steps) for steps in actors], SLOTS)):
        yard = race(begin, actors, slots)
        deleted += yard.deleted
        if number % 10 == 0:
            tidy(yard)
    return deleted


@pytest.mark.parametrize("case", sorted(CASES))
def test_no_live_version_loses_its_data(case: str) -> None:
    assert run_all(case) > 0, "a case in which nothing is deleted shows nothing"


# Rules, each broken in turn.


def ignore_boundaries(patch: pytest.MonkeyPatch) -> None:
    """Whoever names existing data does not look at boundaries."""
    patch.setattr("bucketcatalog.write.references.boundaries_of", lambda view: Boundaries())


def commit_whenever(patch: pytest.MonkeyPatch) -> None:
    """Transactions land however long ago they looked."""
    patch.setattr(Timeline, "refuse_stale", lambda *_: None)


def wait_for_nobody(patch: pytest.MonkeyPatch) -> None:
    """Data is deleted as soon as the boundary is there, half of the time after it was published."""
    patch.setattr(f"{__name__}.WAITS", 1)
    patch.setattr(Known, "is_usable", lambda known, now: known.data > 0)


def trust_the_first_tag(patch: pytest.MonkeyPatch) -> None:
    """A restore to a tag gives no tag of its own."""
    patch.setattr(Hold, "take", lambda _: None)


def look_once(patch: pytest.MonkeyPatch) -> None:
    """A restore to a tag does not look again whether that is still there."""

    def take(hold: Hold) -> None:
        if hold.tag is not None and not hold.is_there:
            hold.writer.tag(hold.name, version=str(hold.tag.cut))
            hold.is_there = True

    patch.setattr(Hold, "take", take)


BROKEN = {
    ignore_boundaries: "restore",
    commit_whenever: "rename begun while it was live",
    wait_for_nobody: "rename begun while it was live",
    trust_the_first_tag: "restore to a tag that is dropped before it has its own",
    look_once: "restore to a tag that is dropped before it has its own",
}


@pytest.mark.parametrize("breaking", BROKEN, ids=lambda breaking: breaking.__name__)
def test_each_rule_is_needed(breaking: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    breaking(monkeypatch)
    with pytest.raises(Lost):
        run_all(BROKEN[breaking])


def test_half_of_the_wait_is_not_enough_to_delete_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.WAITS", 1)
    assert run_all("rename begun while it was live") == 0


# Reaping, which looks and commits, while a bucket is put again by somebody who has seen it live.


def begin_to_put_again(yard: Yard) -> None:
    """Somebody looks for the bucket, to put it again under its id."""
    tx = yard.writer("p").transaction()
    tx.__enter__()
    tx.put("buckets", {"owner": OWNER, "name": "cats", "region": "elsewhere"})
    yard.held["p"] = (tx, yard.store)


def reap_race(begin: Step, steps: Sequence[Step], slots: Sequence[Sequence[int]]) -> bool:
    """Run one interleaving of a reaping that looks after two waits; whether it has ended anything."""
    yard, todo, left = Yard(), list(slots), list(steps)
    with yard.writer("b") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": OWNER, "name": "cats"})
    (bucket,) = Catalog(yard.store).snapshot().scan("buckets").to_arrow()["id"].to_pylist()
    yard.upload("a", bucket)
    begin(yard)
    yard.now += 1_000_000
    with yard.writer("d") as writer, writer.transaction() as tx:
        tx.delete("buckets", {"owner": OWNER, "name": "cats"})

    def others() -> None:
        for _ in todo.pop(0) if todo else ():
            left.pop(0)(yard)

    others()
    for _ in range(WAITS):
        yard.now += TICK
        others()
    catalog = Catalog(Hooked(yard.store, others))
    with suppress(CommitUnknown), catalog.writer("maintainer-1", clock=yard.clock) as held:
        reap(catalog.database("default").look, held, 6 * HOUR)
    while todo:
        others()
    snapshot = Catalog(yard.store).snapshot()
    buckets = set(snapshot.scan("buckets").to_arrow()["id"].to_pylist())
    if bucket in buckets and not snapshot.scan("objects").to_arrow().num_rows:
        raise Lost("an object was ended whose bucket is live")
    return not snapshot.scan("objects").to_arrow().num_rows


def reap_all(steps: Sequence[Step]) -> int:
    """Every interleaving; in how many the object was ended."""
    return sum(reap_race(begin_to_put_again, steps, slots) for slots in interleavings([len(steps)], 5))


@pytest.mark.parametrize(
    "steps", [[commit("p")], [commit("p"), passing(4)], [passing(170), commit("p")], [recreate, commit("p")]]
)
def test_no_object_of_a_live_bucket_is_reaped(steps: Sequence[Step]) -> None:
    assert reap_all(steps) > 0


def test_a_bucket_put_again_by_whoever_looked_long_ago_would_lose_its_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    commit_whenever(monkeypatch)
    with pytest.raises(Lost):
        reap_all([commit("p")])
