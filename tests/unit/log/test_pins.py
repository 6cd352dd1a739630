"""Pins say from which cut on a writer needs what is committed: of each writer's the latest entry counts, whatever checkpoints there are."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from bucketcatalog import Catalog, CorruptionError, UnsupportedFormat
from bucketcatalog.format import sealing
from bucketcatalog.format.records import PinEntry
from bucketcatalog.format.sealing import seal, unseal
from bucketcatalog.format.transactions import decode_transaction
from bucketcatalog.log.pins import holds_until, latest_pins, pins_in, pins_that_hold
from bucketcatalog.model.cuts import Cut, Stamp
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.v1 import log_pb2
from bucketcatalog.write.writer import Writer

from ...kit.cloning import clone
from ...kit.pinning import pins
from ...kit.tagging import put
from ...kit.world import DAY, HOUR, START, World, names, stored


def carrying(world: World, writer: str) -> tuple[str, Any]:
    """The newest transaction of a writer: the name of its file, and the message."""
    name = stored(world, ".txn")[-1] if writer == "" else [n for n in stored(world, ".txn") if n.startswith(f"{writer}/")][-1]
    return name, log_pb2.Transaction.FromString(unseal(world.store.get(name), name, "a transaction"))


def last_stamp(world: World) -> Stamp:
    return world.snapshot().view.tail[-1].stamp


class TestEntries:
    def test_a_pin_is_written_and_read_as_it_was_given_and_needs_the_feature(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        pin = writer.pin("stream")
        name, message = carrying(world, "w")
        assert list(message.required_features) == ["pins"] and not message.pin.HasField("carried_by")
        entry = decode_transaction(world.store.get(name), name).pin
        assert entry is not None
        assert (entry.name, str(entry.cut), entry.dropped, entry.key) == ("stream", pin.version, False, ("w", "stream"))
        writer.unpin("stream")
        name, message = carrying(world, "w")
        assert list(message.required_features) == ["pins"] and not message.pin.HasField("cut")
        assert decode_transaction(world.store.get(name), name).pin == PinEntry("stream", dropped=True, stamp=last_stamp(world))

    def test_who_does_not_know_pins_refuses_files_that_have_them_and_reads_the_others(
        self, world: World, writer: Writer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(world, writer, "a")
        version = world.snapshot().version
        writer.pin("stream")
        world.writer("compactor-1").checkpoint(scope="all")
        for name in (carrying(world, "w")[0], stored(world, ".ckpt")[0]):
            monkeypatch.setattr(sealing, "KNOWN_FEATURES", sealing.KNOWN_FEATURES - {"pins"})
            assert names(world.snapshot(version=version)) == ["a"]
            with pytest.raises(UnsupportedFormat, match="'pins'"):
                world.snapshot()
            monkeypatch.undo()
            world.store.delete(name)  # then the other one of the two is met
        assert sealing.PINS in sealing.KNOWN_FEATURES

    @pytest.mark.parametrize(
        "change",
        [
            lambda pin: setattr(pin, "name", "a/b"),
            lambda pin: setattr(pin, "name", ""),
            lambda pin: setattr(pin.cut.writers[0], "writer", "."),
            lambda pin: setattr(pin.cut.writers[0].heads[0], "uuid", b"short"),
        ],
        ids=["its name", "no name", "a writer", "a head"],
    )
    def test_an_entry_that_nobody_may_write_makes_the_file_a_damaged_one(self, world: World, writer: Writer, change: Any) -> None:
        put(world, writer, "a")
        writer.pin("stream")
        name, message = carrying(world, "w")
        change(message.pin)
        message.ClearField("checksum")
        with pytest.raises(CorruptionError, match="is not a transaction"):
            decode_transaction(seal(message.SerializeToString(deterministic=True)), name)

    def test_catalogs_without_pins_have_none_and_need_nothing(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        writer.checkpoint()
        (checkpoint,) = world.snapshot().view.checkpoints
        assert pins(world) == {} and "pins" in world.snapshot().tables and "pins" not in checkpoint.features


@pytest.mark.parametrize("scope", ["own", "all"])
def test_what_counts_is_the_same_through_any_checkpoints_and_what_moved_is_not_kept(
    world: World, writer: Writer, scope: Any
) -> None:
    held = {name: world.writer(name) for name in ("v", "maintainer-1", "compactor-1")}
    by = [writer, held["v"], held["maintainer-1"]]
    for round_ in range(4):
        put(world, writer, f"x{round_}")
        for one in by:
            one.pin("a")
            if round_ != 1:
                one.pin("b", version=":")
        held["v"].pin("gone")
        held["v"].unpin("gone")
        shown = pins(world)
        assert len(shown) == 6 and {row["version"] for (_, name), row in shown.items() if name == "b"} == {":"}
        for one in by if scope == "own" else [held["compactor-1"]]:
            one.checkpoint(scope=scope)
        assert pins(world) == shown
    for checkpoint in world.snapshot().view.checkpoints:
        entries = [entry.key for entry in checkpoint.pins]
        assert entries == sorted(set(entries)) and "pins" in checkpoint.features
    assert pins_in(world.snapshot().view)["v", "gone"] == PinEntry(
        "gone", dropped=True, stamp=pins_in(world.snapshot().view)["v", "gone"].stamp
    )
    assert list(world.catalog().verify(deep=True)) == []


def test_each_writer_speaks_of_its_own_pins(world: World, writer: Writer) -> None:
    put(world, writer, "a")
    world.writer("v").pin("stream", version=":")
    version = writer.pin("stream").version
    world.writer("maintainer-1").pin("stream", version=":")
    world.writer("v").unpin("stream")
    shown = pins(world)
    assert {key: row["version"] for key, row in shown.items()} == {("maintainer-1", "stream"): ":", ("w", "stream"): version}


@pytest.mark.parametrize("hides_its_own", [False, True])
def test_a_plain_writers_checkpoint_tells_of_its_own_pins_alone(world: World, writer: Writer, hides_its_own: bool) -> None:
    put(world, writer, "a")
    world.writer("v").pin("stream")
    writer.pin("stream")
    assert writer.checkpoint() is not None
    (name,) = stored(world, ".ckpt")
    message = log_pb2.Checkpoint.FromString(unseal(world.store.get(name), name, "a checkpoint"))
    forged = message.pins.add(name="stream", dropped=True)
    forged.carried_by.CopyFrom(message.pins[0].carried_by)
    forged.carried_by.writer, forged.carried_by.commit_time = "v", world.clock.now + HOUR
    if hides_its_own:
        del message.pins[0]
    message.ClearField("checksum")
    world.store.put(name, seal(message.SerializeToString(deterministic=True)))
    assert ("v", "stream") in pins(world), "nobody drops another's"
    assert (("w", "stream") in pins(world)) is not hides_its_own
    assert [finding.code for finding in world.catalog().verify() if finding.code == "IGNORED_FIELDS"]


def test_a_pin_of_a_voided_transaction_is_none(world: World, writer: Writer) -> None:
    put(world, writer, "a")
    writer.pin("stream", version=":")
    ahead = world.catalog().writer("v", clock=world.clock)
    world.clock.tick(DAY)
    ahead.pin("later", version=":")
    world.clock.tick(-DAY)
    world.catalog().repair(void=["v@0"], dry_run=False, writer="maintainer-1", clock=world.clock)
    assert set(pins(world)) == {("w", "stream")}


class TestWhatHolds:
    NOW = START + 30 * DAY

    def entry(self, writer: str, name: str, age: int, *, dropped: bool = False) -> PinEntry:
        return PinEntry(name, Cut(), dropped, Stamp(self.NOW - age, writer, age, bytes(16)))

    def holding(self, *entries: PinEntry, **options: Any) -> list[tuple[str, str]]:
        return [entry.key for entry in pins_that_hold(latest_pins(entries).values(), self.NOW, **options)]

    def test_a_maintainers_pin_holds_until_it_is_dropped_and_another_for_a_week_after_it_was_last_given(self) -> None:
        kept, old, young = (
            self.entry("maintainer-1", "a", 29 * DAY),
            self.entry("w", "b", 7 * DAY + 1),
            self.entry("w", "c", 7 * DAY),
        )
        assert self.holding(kept, old, young) == [("maintainer-1", "a"), ("w", "c")]
        assert self.holding(kept, old, self.entry("w", "b", DAY)) == [("maintainer-1", "a"), ("w", "b")]
        assert (
            self.holding(kept, self.entry("maintainer-1", "a", DAY, dropped=True), self.entry("w", "c", 1, dropped=True), young)
            == []
        )
        assert self.holding(kept, young, longest=DAY) == [("maintainer-1", "a")]
        assert self.holding(self.entry("w", "ahead", -2 * HOUR)) == [], "what lies in the future is not so yet"
        assert (holds_until(kept), holds_until(young)) == (None, self.NOW)

    def test_of_a_plain_writers_pins_the_sixteen_latest_hold(self) -> None:
        entries = [self.entry("w", f"p{number:02}", 40 - number) for number in range(20)]
        entries += [self.entry("v", "other", 50), self.entry("maintainer-1", "kept", 60)]
        assert self.holding(*entries) == [
            ("maintainer-1", "kept"),
            ("v", "other"),
            *(("w", f"p{number:02}") for number in range(4, 20)),
        ]

    def test_of_a_plain_writers_names_those_with_the_latest_entries_count_and_of_a_maintainers_all(self) -> None:
        entries = [self.entry(writer, f"p{n:02}", 99 - n, dropped=n > 66) for writer in ("w", "maintainer-1") for n in range(70)]
        counting = latest_pins(entries)
        assert [name for writer, name in counting if writer == "w"] == [f"p{number:02}" for number in range(6, 70)]
        assert len([name for writer, name in counting if writer == "maintainer-1"]) == 70
        holding = [name for writer, name in self.holding(*entries) if writer == "w"]
        assert holding == [f"p{number:02}" for number in range(51, 67)]

    @pytest.mark.parametrize("names", [1, 2, 64])
    def test_what_counts_of_some_entries_is_what_counts_of_what_counts_of_parts_of_them(
        self, monkeypatch: pytest.MonkeyPatch, names: int
    ) -> None:
        """So checkpoints may overlap and be combined: none has to hold more than the latest entry of each pin, nor those of more names."""
        monkeypatch.setattr("bucketcatalog.limits.PLAIN_PIN_NAMES", names)
        said = (
            ("w", "a", 9),
            ("w", "b", 8),
            ("w", "c", 7),
            ("w", "a", 6),
            ("w", "c", 5),
            ("w", "b", 4),
            ("v", "a", 3),
            ("v", "b", 2),
        )
        entries = [self.entry(writer, name, age, dropped=age % 3 == 0) for writer, name, age in said]
        whole = latest_pins(entries)
        for size in range(len(entries) + 1):
            for part in combinations(entries, size):
                rest = [entry for entry in entries if entry not in part]
                assert latest_pins([*latest_pins(part).values(), *latest_pins(rest).values()]) == whole


def test_pins_are_no_tags_and_no_versions(world: World, writer: Writer) -> None:
    put(world, writer, "a")
    writer.pin("stream")
    assert world.snapshot().scan("tags").to_arrow().num_rows == 0
    world.writer("maintainer-1").tag("stream", version=":")
    assert names(world.snapshot(version="stream")) == []


def test_a_clone_has_none_of_its_sources_pins(world: World, writer: Writer) -> None:
    put(world, writer, "a")
    writer.pin("stream")
    target = MemoryStore(clock=world.clock)
    clone(world, target)
    there = Catalog(target).snapshot()
    assert names(there) == ["a"] and there.scan("pins").to_arrow().num_rows == 0 and len(pins(world)) == 1
