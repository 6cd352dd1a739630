"""Giving, moving, renewing and dropping pins: what is committed for it, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from bucketcatalog import (
    Catalog,
    ClosedWriter,
    HistoryPruned,
    InvalidName,
    InvalidOption,
    InvalidVersion,
    NotFound,
)
from bucketcatalog.limits import PIN_RENEWAL
from bucketcatalog.model.cuts import Cut
from bucketcatalog.write.writer import Writer

from ...kit.pinning import pins
from ...kit.pruning import GRACE, checkpoint, keep_time, prune
from ...kit.tagging import put
from ...kit.world import DAY, HOUR, MINUTE, START, World, obj, stored, time_at


class TestGiving:
    def test_a_pin_stands_at_the_version_of_now_a_time_or_a_version(self, world: World, writer: Writer) -> None:
        first = put(world, writer, "a")
        between = world.clock.tick()
        second = put(world, writer, "b")
        assert writer.pin("x", version=first).version == first
        assert writer.pin("y", timestamp=time_at(between)).version == first
        assert writer.pin("z", version="w@1").version == second
        pin = world.writer("v").pin("1-of-another_writer.s")
        assert pin.version == world.snapshot(version="w@4").version and (pin.writer, pin.revision, pin.dropped) == ("v", 0, False)
        assert pin.commit_time > START
        shown = pins(world)["w", "x"]
        assert (shown["version"], shown["holds"], shown["until"] - shown["commit_timestamp"]) == (
            first,
            True,
            time_at(7 * DAY) - time_at(0),
        )

    def test_moving_costs_one_small_commit_and_the_same_again_none(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        follower = world.writer("v")
        before = set(stored(world))
        given = follower.pin("x")
        assert follower.pin("x") == given == follower.pin("x", version=given.version)
        (new,) = set(stored(world)) - before
        assert new.startswith("v/default/transactions/") and len(world.store.get(new)) < 1_000
        put(world, writer, "b")
        before = set(stored(world))
        moved = follower.pin("x")
        assert moved.version != given.version and moved.revision == given.revision + 1
        assert len(set(stored(world)) - before) == 1
        assert pins(world)["v", "x"]["version"] == moved.version

    def test_who_follows_a_catalog_in_which_nothing_happens_commits_only_to_renew(self, world: World, writer: Writer) -> None:
        """Its own commits, those of compactors and of other pins are no reason to move: they would keep each other busy."""
        put(world, writer, "a")
        follower, other = world.writer("v"), world.writer("u")
        given = follower.pin("x")
        for _ in range(5):
            world.clock.tick(MINUTE)
            assert follower.pin("x") == given
            other.pin("y")
            world.writer("compactor-1").checkpoint(scope="all")
        world.clock.tick(PIN_RENEWAL)
        renewed = follower.pin("x")
        assert renewed.revision == given.revision + 1 and "compactor-1" in Cut.parse(renewed.version).heads
        world.clock.tick(PIN_RENEWAL)
        again = follower.pin("x", version=renewed.version)
        assert (again.revision, again.version) == (renewed.revision + 1, renewed.version), "its time begins anew"

    def test_a_maintainers_pin_needs_no_renewal_but_goes_with_what_has_no_events(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        maintainer = world.writer("maintainer-1")
        given = maintainer.pin("x")
        world.clock.tick(30 * DAY)
        assert maintainer.pin("x", version=given.version) == given
        checkpoint(world)
        assert "compactor-1" in Cut.parse(maintainer.pin("x").version).heads
        assert pins(world)["maintainer-1", "x"]["until"] is None

    def test_a_pin_can_go_back_as_long_as_what_it_needs_is_there(self, world: World, writer: Writer) -> None:
        first = put(world, writer, "a")
        put(world, writer, "b")
        writer.pin("x")
        assert writer.pin("x", version=first).version == first == pins(world)["w", "x"]["version"]

    def test_another_process_of_the_same_writer_goes_on_with_its_pins(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        given = writer.pin("x")
        writer.close()
        again = world.writer("w")
        assert again.pin("x") == given and again.unpin("x").dropped

    def test_whoever_sees_a_pin_sees_what_it_stands_at(self, world: World, writer: Writer) -> None:
        version = put(world, writer, "a")
        world.writer("v").pin("x", version=version)
        assert world.snapshot(version="v@0").cut.of_writer("w") == Cut.parse(version).of_writer("w")


class TestRefused:
    @pytest.mark.parametrize("name", ["", ".", ".a", "a/b", "a b", "a\n", "é", "a" * 129, "../x"])
    def test_a_name_that_no_writer_could_have_is_none_of_a_pin(self, world: World, writer: Writer, name: str) -> None:
        put(world, writer, "a")
        for call in (writer.pin, writer.unpin, world.catalog().pin, world.catalog().unpin):
            with pytest.raises(InvalidName, match="a pin"):
                call(name)
        assert pins(world) == {}

    def test_what_names_no_version_is_refused_and_nothing_committed(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        before = stored(world)
        with pytest.raises(InvalidOption):
            writer.pin("x", version="w@0", timestamp=world.clock.now)
        with pytest.raises(InvalidVersion):
            writer.pin("x", version="w@7")
        writer.close()
        for call in (writer.pin, writer.unpin):
            with pytest.raises(ClosedWriter):
                call("x")
        assert stored(world) == before

    def test_a_pin_that_is_not_there_cannot_be_dropped_and_it_is_said_who_has_one(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        world.writer("v").pin("x")
        with pytest.raises(NotFound, match="'w' has no pin 'x'") as error:
            writer.unpin("x")
        assert "'v'" in error.value.next_step
        world.writer("v").unpin("x")
        with pytest.raises(NotFound) as error:
            world.writer("v").unpin("x")
        assert "snapshot.scan('pins')" in error.value.next_step

    def test_a_cut_behind_the_horizon_is_refused_also_one_that_a_tag_keeps(
        self, world: World, writer: Writer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keep_time(world, monkeypatch)
        first = put(world, writer, "a")
        with world.writer("maintainer-2") as maintainer:
            maintainer.tag("kept")
        world.clock.tick(HOUR)
        put(world, writer, "b")
        world.clock.tick(HOUR)
        horizon = checkpoint(world)
        world.clock.tick(2 * DAY)
        put(world, writer, "c")
        prune(world)  # published, and nothing deleted yet
        for _ in range(2):
            for version in (first, "kept", ":"):
                with pytest.raises(HistoryPruned) as error:
                    writer.pin("x", version=version)
                assert error.value.next_step.startswith("Begin anew") and "Writer.pin" in error.value.next_step
            assert pins(world) == {}
            assert writer.pin("y", version=horizon).version == horizon, "what comes after the horizon is there"
            writer.unpin("y")
            world.clock.tick(GRACE)
            prune(world, "999d")


class TestOfACatalog:
    def test_this_machines_maintainer_gives_it_and_drops_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("bucketcatalog.clock.host_name", lambda: "here")
        catalog = Catalog(tmp_path)
        with catalog.writer("w") as writer, writer.transaction() as tx:
            tx.put("objects", obj("a"))
        pin = catalog.pin("x", database="default")
        assert (pin.writer, pin.name) == ("maintainer-here", "x") and catalog.info().pins == 1
        assert catalog.pin("x", writer="maintainer-there", version="w@0").writer == "maintainer-there"
        assert catalog.info().pins == 2
        assert catalog.unpin("x").dropped and catalog.unpin("x", writer="maintainer-there").dropped
        assert catalog.info().pins == 0

    def test_a_pin_can_be_pickled_and_looked_at(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        pin = writer.pin("x")
        assert pickle.loads(pickle.dumps(pin)) == pin and pin.version in pin._repr_html_()
        assert "dropped by" in writer.unpin("x")._repr_html_()


def test_the_clock_that_pins_go_by_is_the_stores(world: World, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_time(world, monkeypatch)
    put(world, writer, "a")
    writer.pin("x")
    assert pins(world)["w", "x"]["holds"]
    world.clock.tick(7 * DAY + MINUTE)
    assert not pins(world)["w", "x"]["holds"] and world.catalog().info().pins == 0
