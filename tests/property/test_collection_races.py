"""All interleavings of a collection with what may race it: no live version ever loses its data.

A collection is six steps: it looks, publishes its boundary, waits (in two parts), looks again, deletes, purges. The steps of the others
fall between these in every possible way, none is sampled; time passes in the two waits, and where a step lets it. The deleter is real: it
takes data out of a store. After every step from the deletion on a new reader asks for all live versions, whose data must be there. Now and
then later collections follow, which must leave no other data, so that keeping all would not pass.

Each rule is then broken in turn, and the same check has to find the loss.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, DataCollected, InvalidVersion, StaleRead
from bucketcatalog.limits import DEFAULT_LIMITS
from bucketcatalog.log.entries import Boundaries
from bucketcatalog.maintain.gc.boundaries import DataBoundary
from bucketcatalog.maintain.holding import Hold
from bucketcatalog.maintain.restore import restore
from bucketcatalog.model.names import writer_id
from bucketcatalog.write.commit import Commit, Committed
from bucketcatalog.write.writer import Writer

from . import racing
from .racing import (
    HOUR,
    MINUTE,
    OWNER,
    Hooked,
    Lost,
    Step,
    Yard,
    arrive,
    both,
    commit,
    commit_whenever,
    delete,
    interleavings,
    key,
    naming,
    passing,
    recreate,
    wait,
)


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
        [[restore_tagged, both(restore_tagged, drop_tag), restore_tagged]],
    ),
    "restore to a tag that is dropped in the end": (tagged, [[restore_tagged, restore_tagged, both(restore_tagged, drop_tag)]]),
    "bucket created again": (dead_bucket, [[recreate, upload_into_new]]),
}


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
    wait(yard, others)
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


def wait_for_nobody(patch: pytest.MonkeyPatch) -> None:
    """Data is deleted as soon as the boundary is there, half of the time after it was published."""
    patch.setattr(racing, "WAITS", 1)
    patch.setattr(DataBoundary, "is_usable", lambda known, now: known.data > 0)


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
    monkeypatch.setattr(racing, "WAITS", 1)
    assert run_all("rename begun while it was live") == 0
