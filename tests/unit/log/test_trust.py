"""What a plain writer's transaction can say, and what it cannot: each thing forged below its own prefix, with every checksum right."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from bucketcatalog import CorruptionError, DataCollected, InvalidOption, InvalidVersion, TagExists
from bucketcatalog.log.entries import tags_of, tags_that_hold
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model.cuts import Head, Ref
from bucketcatalog.model.names import COMPACTOR_PREFIX

from ...kit.spec_reader import message, new_transaction, seal
from ...kit.spec_reader.writing import name_of_file
from ...kit.world import DAY, HOUR, MINUTE, World, names, obj, stored, version

Change = Callable[[Any, World], None]


@pytest.fixture
def world() -> World:
    """Alice and mallory have each put an object; a maintainer has named the state of then."""
    world = World()
    for name in ("alice", "mallory"):
        with world.writer(name) as writer:
            world.commit(writer, ("put", "objects", obj(name)))
    with world.writer("maintainer-1") as maintainer:
        maintainer.tag("release")
    world.clock.tick(MINUTE)
    return world


def last(world: World, writer: str) -> Any:
    name = [name for name in stored(world, ".txn") if name.startswith(f"{writer}/")][-1]
    return message("Transaction").FromString(world.store.get(name))


def link(transaction: Any) -> dict[str, Any]:
    return {
        "writer": transaction.writer,
        "revision": transaction.revision,
        "uuid": transaction.uuid,
        "digest": transaction.checksum,
    }


def forged(world: World, change: Change, *, time: int | None = None, writer: str = "mallory") -> str:
    """Puts the next transaction of mallory, changed; returns its file's name."""
    before = last(world, writer)
    made = new_transaction(writer, before.revision + 1, world.clock.tick() if time is None else time)
    made.parents.add(**link(before))
    change(made, world)
    name = name_of_file(made, "txn")
    world.store.put(name, seal(made.SerializeToString()))
    return name


def bound(made: Any, world: World) -> None:
    """A boundary of the history and of data that lets go of everything."""
    for writer in ("alice", "mallory"):
        read = last(world, writer)
        made.boundary.horizon.writers.add(writer=writer).heads.add(revision=read.revision, uuid=read.uuid)
    made.boundary.data = made.boundary.settled = made.commit_time
    made.required_features.append("boundary")


def void(made: Any, world: World) -> None:
    made.voids.add(**link(last(world, "alice")))
    made.required_features.append("voids")


def tag(made: Any, world: World, *, dropped: bool = False) -> None:
    read = last(world, "mallory")
    entry = made.tags.add(name="release", created=made.commit_time, dropped=dropped)
    entry.cut.writers.add(writer="mallory").heads.add(revision=read.revision, uuid=read.uuid)


def drop(made: Any, world: World) -> None:
    tag(made, world, dropped=True)


@pytest.mark.parametrize("change", [bound, void, tag, drop], ids=lambda change: change.__name__)
def test_what_is_about_more_than_its_own_timeline_counts_for_nothing(world: World, change: Change) -> None:
    before = world.snapshot(version="release")
    forged(world, change)
    snapshot = world.snapshot()
    assert names(snapshot) == ["alice", "mallory"] and names(world.snapshot(version="release")) == names(before)
    assert snapshot.view.horizon is None and not snapshot.view.voids
    assert names(world.snapshot(version="alice@0")) == ["alice"]
    with world.writer("alice") as writer:
        world.commit(writer, ("put", "objects", obj("alice 2")))
    assert "alice 2" in names(world.snapshot())


@pytest.mark.parametrize("change", [bound, void], ids=lambda change: change.__name__)
def test_what_was_left_out_of_a_file_is_named(world: World, change: Change) -> None:
    forged(world, change)
    files = LogFiles(world.store, "default")
    made = last(world, "mallory")
    assert files.transaction("mallory", Head(made.revision, made.uuid)).ignored == ({bound: "boundary", void: "voids"}[change],)
    assert files.transaction(*ref_of(last(world, "maintainer-1"))).ignored == ()


def ref_of(transaction: Any) -> Ref:
    return Ref(transaction.writer, Head(transaction.revision, transaction.uuid))


def alices_uuid(made: Any, world: World) -> None:
    read = last(world, "alice")
    made.uuid, made.commit_time = read.uuid, read.commit_time


def alices_segment(made: Any, world: World) -> None:
    world.commit(world.writer("alice"), ("put", "objects", [obj(f"x{n:05}") for n in range(20_000)]))
    made.segments.extend(last(world, "alice").segments)


def folded_rows(made: Any, world: World) -> None:
    """A segment of its own checkpoint's rows, which bring stamps."""
    with world.writer("mallory") as writer:
        world.commit(writer, ("put", "objects", [obj(f"y{n:05}") for n in range(20_000)]))
        writer.checkpoint()
    made.revision += 1
    del made.parents[:]
    made.parents.add(**link(last(world, "mallory")))
    name = next(name for name in stored(world, ".ckpt") if name.startswith("mallory/"))
    made.segments.extend(message("Checkpoint").FromString(world.store.get(name)).segments)


REFUSED = {alices_uuid: "uuid", alices_segment: "segments of 'alice'", folded_rows: "not of events"}


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_what_would_pass_for_somebody_elses_is_refused_by_its_name(world: World, change: Change) -> None:
    expected = [*names(world.snapshot())]
    name = forged(world, change)
    others = [row for row in names(LogWithout(world, name).snapshot()) if row not in expected]
    with pytest.raises(CorruptionError, match=REFUSED[change]) as error:
        names(world.snapshot())
    assert name in error.value.message
    with pytest.warns(match=name):
        assert names(world.snapshot(ignore_corruption=True)) == sorted([*expected, *others])


class LogWithout(World):
    """The same catalog as it would be without one file."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__()
        for info in world.store.list(""):
            if info.name != name:
                self.store.put(info.name, world.store.get(info.name))
        self.clock.now = world.clock.now


def test_who_has_read_what_was_committed_later_is_refused_and_no_past_changes(world: World) -> None:
    early = world.clock.now
    world.clock.tick(HOUR)
    with world.writer("alice") as writer:
        world.commit(writer, ("put", "objects", obj("later")))

    def read_later(made: Any, world: World) -> None:
        read = last(world, "alice")
        made.reads.add(writer="alice").heads.add(revision=read.revision, uuid=read.uuid)

    name = forged(world, read_later, time=early)
    for options in ({}, {"timestamp": f"@{early + 1}"}):
        with pytest.raises(CorruptionError, match="committed after it") as error:
            world.snapshot(**options)
        assert name in error.value.message


def test_what_it_dates_back_is_shown_at_times_of_the_past_and_by_no_version_that_was_read(world: World) -> None:
    with world.writer("mallory") as writer:
        name, data = world.under_way(writer, obj("dated back"))
    early, read = world.clock.now, world.snapshot().version
    world.clock.tick(DAY)
    world.store.put(name, data)
    assert names(world.snapshot(version=read)) == ["alice", "mallory"]
    assert names(world.snapshot(timestamp=f"@{early}")) == ["alice", "dated back", "mallory"]


def test_a_file_that_its_writer_replaces_changes_its_own_past_and_no_row_that_a_checkpoint_has(world: World) -> None:
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    made = last(world, "mallory")
    assert names(world.snapshot(version="mallory@0")) == ["mallory"]
    name = name_of_file(made, "txn")
    made.ClearField("checksum")
    del made.actions[:]
    world.store.delete(name)
    world.store.put(name, seal(made.SerializeToString()))
    assert names(world.snapshot()) == ["alice", "mallory"] and names(world.snapshot(version="mallory@0")) == []
    found = [finding.message for finding in world.catalog().verify(deep=True) if finding.code == "DIFFERENT_STATE"]
    assert found and all("with events of 'mallory'" in message for message in found)


class TestTags:
    def test_a_name_that_a_maintainer_gave_is_neither_moved_nor_dropped_by_others(self, world: World) -> None:
        with world.writer("mallory") as writer:
            with pytest.raises(TagExists, match="maintainer-1"):
                writer.tag("release", version="mallory@0", replace=True)
            with pytest.raises(TagExists, match="maintainer-1"):
                writer.drop_tag("release")
        assert names(world.snapshot(version="release")) == ["alice", "mallory"]

    def test_a_maintainer_takes_a_name_that_somebody_else_gave(self, world: World) -> None:
        with world.writer("mallory") as writer:
            writer.tag("mine", version="mallory@0")
        with world.writer("maintainer-1") as maintainer:
            maintainer.tag("mine", version="alice@0", replace=True)
        assert names(world.snapshot(version="mine")) == ["alice"]
        with world.writer("maintainer-1") as maintainer:
            maintainer.drop_tag("mine")
        with pytest.raises(InvalidVersion, match="was dropped"):
            world.snapshot(version="mine")

    @pytest.mark.parametrize("covered", [False, True])
    def test_what_others_name_holds_for_a_week_and_at_most_sixteen_at_once(self, world: World, covered: bool) -> None:
        with world.writer("mallory") as writer:
            for number in range(18):
                world.clock.tick(HOUR)
                writer.tag(f"t{number:02}", version="mallory@0")
            if covered:
                writer.checkpoint()
        tags = tags_of(world.snapshot().view)
        assert len(tags) == 19

        def pinned(at: int) -> list[str]:
            return [entry.name for entry in tags_that_hold(tags.values(), at)]

        now = world.clock.now
        assert pinned(now) == ["release", *(f"t{number:02}" for number in range(2, 18))]
        assert pinned(now + 7 * DAY - 2 * HOUR) == ["release", *(f"t{number:02}" for number in range(15, 18))]
        assert pinned(now + 7 * DAY + 1) == ["release"]
        assert pinned(now - 2 * HOUR) == ["release", *(f"t{number:02}" for number in range(16))]
        assert names(world.snapshot(version="t00")) == ["mallory"]


def test_a_checkpoint_of_everybody_is_refused_to_who_is_neither_compactor_nor_maintainer(world: World) -> None:
    with world.writer("mallory") as writer, pytest.raises(InvalidOption, match="mallory") as error:
        writer.checkpoint(scope="all")
    assert COMPACTOR_PREFIX in error.value.next_step and not stored(world, ".ckpt")


def test_a_maintainers_transaction_says_all_of_that(world: World) -> None:
    forged(world, void, writer="maintainer-1")
    assert names(world.snapshot()) == ["mallory"]


def test_what_a_plain_writer_has_purged_is_read_at_versions_before_and_is_left_out_by_a_restore(world: World) -> None:
    purged = obj("alice") | {"_version": version(obj("alice"), world.snapshot())}
    with world.writer("mallory") as mallory:
        world.commit(mallory, ("delete", "objects", obj("alice")))
        assert names(world.snapshot(), "deleted_objects") == ["alice"]
        world.commit(mallory, ("purge", "objects", [purged]))
    world.clock.tick(HOUR)
    assert names(world.snapshot(), "deleted_objects") == [] and "alice" in names(world.snapshot(version="release"))
    with pytest.raises(DataCollected):
        world.catalog().restore("objects", version="release", dry_run=False)
    assert world.catalog().restore("objects", version="release", skip_collected=True, dry_run=False).skipped == 1


def test_who_reads_trusted_checkpoints_alone_does_so_in_another_process_too(world: World) -> None:
    with world.writer("mallory") as writer:
        writer.checkpoint()
    files = LogFiles(world.store, "default")
    assert list(files.checkpoints("mallory")) and not list(files.of_trusted().checkpoints("mallory"))
    assert not list(pickle.loads(pickle.dumps(files.of_trusted())).checkpoints("mallory"))
    assert list(pickle.loads(pickle.dumps(files)).checkpoints("mallory"))
