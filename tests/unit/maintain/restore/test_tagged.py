"""Restoring what a tag keeps: collection has passed it and left it, and goes on while it is put again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bucketcatalog import AccessDenied, Catalog, CatalogWarning, DataCollected
from bucketcatalog.maintain.restore import Restored, plan_restore, restore
from bucketcatalog.store.base import ObjectInfo
from bucketcatalog.store.faults import Failing, SimulatedCrash
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.writer import Writer

from ....kit.collecting import Yard, thing
from ....kit.world import HOUR, Intervening, World, names, obj, rows, version


def tagged_and_ended(yard: Yard) -> Writer:
    """Two objects whose data a tag keeps, deleted, and a collection that has passed; one more was deleted before a tag was given to it."""
    writer = yard.world.writer()
    yard.put(writer, thing("a"), thing("b"), thing("c"))
    late = yard.world.snapshot().version
    yard.world.commit(writer, ("delete", "objects", obj("c")))
    with yard.world.writer("maintainer-2") as held:
        held.tag("release")
        held.tag("late", version=late)
    yard.world.commit(writer, ("delete", "objects", [obj("a"), obj("b")]))
    yard.world.clock.tick(25 * HOUR)
    assert yard.collected().tagged == 3
    return writer


def restored(
    yard: Yard,
    to: str,
    *,
    catalog: Catalog | None = None,
    writer: str = "maintainer-1",
    skip: bool = False,
    with_purged: bool = False,
) -> Restored:
    yard.world.clock.tick()
    catalog = catalog or yard.world.catalog()
    with yard.world.writer(writer, catalog=catalog) as held:
        database = catalog.database("default")
        return restore(database, held, "objects", None, to, skip_collected=skip, with_purged=with_purged)


def tags(yard: Yard) -> dict[str, bool]:
    """Whether each tag is dropped."""
    return {row["name"]: row["dropped"] for row in rows(yard.world.snapshot(), "tags")}


def test_what_a_tag_keeps_is_restored_though_a_boundary_has_passed_it_and_needs_no_tag_then(yard: Yard) -> None:
    tagged_and_ended(yard)
    planned = plan_restore(yard.world.catalog().database("default"), "objects", None, "release")
    done = restored(yard, "release")
    assert (planned.put, planned.skipped) == (done.put, done.skipped) == (2, 0) and done.committed is not None
    assert names(yard.world.snapshot()) == ["a", "b"]
    (own,) = [name for name in tags(yard) if name.startswith("restore-")]
    assert tags(yard) == {"release": False, "late": False, own: True}
    with yard.world.writer("maintainer-2") as held:
        held.drop_tag("release")
        held.drop_tag("late")
    yard.world.clock.tick(25 * HOUR)
    yard.collected()
    assert names(yard.world.snapshot(), "deleted_objects") == [], "their tombstones are forgotten"
    assert yard.has("a") and yard.has("b") and not yard.has("c")
    assert restored(yard, yard.world.snapshot().version).committed is None


def test_what_ended_before_its_tag_was_given_may_be_gone_and_is_left_out(yard: Yard) -> None:
    tagged_and_ended(yard)
    with pytest.raises(DataCollected):
        restored(yard, "late")
    assert not any(name.startswith("restore-") for name in tags(yard))
    done = restored(yard, "late", skip=True)
    assert (done.put, done.skipped) == (2, 1) and names(yard.world.snapshot()) == ["a", "b"]


def test_what_was_purged_is_left_out_whatever_tag_keeps_it(yard: Yard) -> None:
    writer = tagged_and_ended(yard)
    purged = version(obj("a"), yard.world.snapshot(version="release"))
    yard.world.commit(writer, ("purge", "objects", obj("a", _version=purged)))
    assert (restored(yard, "release", skip=True).skipped, names(yard.world.snapshot())) == (1, ["b"])
    assert restored(yard, "release", with_purged=True).skipped == 0
    assert names(yard.world.snapshot()) == ["a", "b"], "no boundary counts for what a tag keeps"


def test_only_a_maintainer_keeps_what_a_tag_keeps(yard: Yard) -> None:
    tagged_and_ended(yard)
    with pytest.raises(DataCollected):
        restored(yard, "release", writer="v")


def test_a_tag_that_is_dropped_before_the_restore_has_its_own_stops_it(yard: Yard) -> None:
    tagged_and_ended(yard)

    def drop() -> None:
        with yard.world.writer("maintainer-3") as held:
            held.drop_tag("release")

    catalog = Catalog(Intervening(yard.world.store, "maintainer-1/default/transactions/", drop))
    with pytest.raises(DataCollected, match=r"'release'.*dropped by 'maintainer-3'"):
        restored(yard, "release", catalog=catalog)
    assert (
        all(dropped for name, dropped in tags(yard).items() if name.startswith("restore-")) and names(yard.world.snapshot()) == []
    )


def test_a_restore_that_dies_anywhere_is_finished_by_the_next_one_which_drops_the_tag_that_is_left(yard: Yard) -> None:
    tagged_and_ended(yard)
    content = {info.name: yard.world.store.get(info.name) for info in yard.world.store.list("")}
    for at, after in itertools.product(range(3), (False, True)):
        world = World()
        world.clock.now = yard.world.clock.now
        for name, data in content.items():
            world.store.put(name, data)
        again = replace(yard, world=world)
        with pytest.raises(SimulatedCrash):
            restored(again, "release", catalog=Catalog(Failing(world.store, at=at, after=after, methods=["put"])))
        left = [name for name, dropped in tags(again).items() if name.startswith("restore-") and not dropped]
        assert len(left) == ((at, after) not in ((0, False), (2, True)))
        world.clock.tick(HOUR)
        assert restored(again, "release").put == (0 if (at, after) >= (1, True) else 2)
        assert names(world.snapshot()) == ["a", "b"]
        assert all(dropped for name, dropped in tags(again).items() if name.startswith("restore-"))


def test_a_tag_of_a_restore_that_cannot_be_dropped_is_told(yard: Yard) -> None:
    tagged_and_ended(yard)
    failing = Failing(yard.world.store, at=2, methods=["put"], error=AccessDenied("no"))
    with pytest.warns(CatalogWarning, match="restore-"):
        assert restored(yard, "release", catalog=Catalog(failing)).committed is not None
    assert names(yard.world.snapshot()) == ["a", "b"]


@pytest.mark.parametrize("number", range(2))
def test_a_collection_that_lists_the_drop_of_a_tag_and_not_the_tag_given_before_it_deletes_nothing(
    yard: Yard, number: int
) -> None:
    """It lists the timeline of whoever restores; then that one gives its tag, and somebody who has not seen it drops the first one."""
    tagged_and_ended(yard)
    with yard.world.writer("maintainer-2") as held:
        held.drop_tag("late")
    yard.world.clock.tick(7 * HOUR)
    store = yard.world.store

    def own_tag() -> None:
        yard.world.clock.tick()
        with yard.world.writer("maintainer-1") as held:
            held.tag("own", version="release")

    def drop() -> None:
        with yard.world.writer("maintainer-2", catalog=Catalog(Intervening(store, "maintainer-2/", own_tag))) as held:
            held.drop_tag("release")

    class Listing(Wrapped):
        """Something happens right before the listing of a timeline that has this number."""

        listed = 0

        def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
            if prefix == "maintainer-2/default/transactions/":
                self.listed += 1
                if self.listed == number + 1:
                    drop()
            return super().list(prefix, after=after, limit=limit)

    listing = Listing(store)
    done = yard.collect(catalog=Catalog(listing), writer="maintainer-9")
    assert listing.listed > number and done.boundary and (done.tagged, done.deleted) == (2, 1)
    assert yard.has("a") and yard.has("b") and not yard.has("c")
