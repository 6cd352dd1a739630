"""Two processes with one writer id: both branches are kept and read, the fork is reported, and one stray is joined at open."""

from __future__ import annotations

import warnings

import pytest

from bucketcatalog import CatalogWarning, ClosedWriter, ForeignBranch, ForkDetected
from bucketcatalog.format.transactions import Transaction
from bucketcatalog.log.coverage import Covered
from bucketcatalog.log.discovery import newest_view
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model.cuts import Head
from bucketcatalog.write.writer import Writer

from ...kit.world import MINUTE, SECOND, World, names, obj, rows

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


def fork(world: World, left: int = 1, right: int = 1) -> tuple[Writer, Writer]:
    """A common first commit, then so many of two processes each."""
    world.commit(world.writer(), ("put", "objects", obj("base")))
    one, two = world.writer(), world.writer()
    for n in range(left):
        world.commit(one, ("put", "objects", obj(f"one{n}")))
    for n in range(right):
        world.commit(two, ("put", "objects", obj(f"two{n}")))
    return one, two


def test_both_branches_are_read_and_the_fork_is_reported(world: World) -> None:
    fork(world)
    with pytest.warns(CatalogWarning, match="'w' is forked at revision 1"):
        snapshot = world.snapshot()
    assert names(snapshot) == ["base", "one0", "two0"]
    (found,) = rows(snapshot, "forks")
    assert (found["writer"], found["revision"], len(found["uuids"]), found["open"]) == ("w", 1, 2, True)
    assert rows(snapshot, "writers")[0]["heads"] == 2
    assert len(snapshot.version.split(",")) == 2
    assert names(world.snapshot(version=snapshot.version)) == ["base", "one0", "two0"]


def test_strict_makes_a_fork_an_error(world: World) -> None:
    fork(world)
    with pytest.raises(ForkDetected, match="'w'"):
        world.snapshot(strict=True)


def test_without_a_fork_strict_reads_and_nothing_warns(world: World) -> None:
    world.commit(world.writer(), ("put", "objects", obj("a")))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert names(world.snapshot(strict=True)) == ["a"]
    assert rows(world.snapshot(), "forks") == []


def test_a_stray_of_a_crashed_predecessor_is_joined_by_naming_both_parents(world: World) -> None:
    fork(world, left=2, right=1)
    with world.writer() as writer:
        joined = world.commit(writer, ("put", "objects", obj("joined")))
    assert joined.revision == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        snapshot = world.snapshot(strict=True)
    log = {row["uuid"]: row for row in rows(snapshot, "log")}
    parents = {(log[uuid]["revision"]) for uuid in log[joined.uuid]["parents"]}
    assert parents == {2, 1} and len(log[joined.uuid]["parents"]) == 2
    assert names(snapshot) == ["base", "joined", "one0", "one1", "two0"]
    assert [(f["revision"], f["open"]) for f in rows(snapshot, "forks")] == [(1, False)]
    assert rows(snapshot, "writers")[0]["heads"] == 1
    assert names(world.snapshot(version="w@3")) == names(snapshot)


def test_two_first_commits_are_joined_too(world: World) -> None:
    one, two = world.writer(), world.writer()
    world.commit(one, ("put", "objects", obj("one")))
    world.commit(two, ("put", "objects", obj("two")))
    with world.writer() as writer:
        assert world.commit(writer, ("put", "objects", obj("joined"))).revision == 1
    assert names(world.snapshot(strict=True)) == ["joined", "one", "two"]


@pytest.mark.parametrize("process", [0, 1])
def test_a_writer_that_meets_a_foreign_branch_stops(world: World, process: int) -> None:
    writers = fork(world)
    with pytest.raises(ForeignBranch) as error:
        writers[process].checkpoint()
    assert "revision 1" in error.value.message and error.value.next_step
    for attempt in (writers[process].transaction, writers[process].checkpoint):
        with pytest.raises(ClosedWriter, match="Another process"):
            attempt()
    with pytest.warns(CatalogWarning):
        assert names(world.snapshot()) == ["base", "one0", "two0"]


def test_a_writer_looks_for_foreign_branches_every_30_seconds(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [0.0]
    monkeypatch.setattr("bucketcatalog.clock.monotonic", lambda: seconds[0])
    monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: int(seconds[0] * SECOND))
    one, _ = fork(world)
    seconds[0] = 29.0
    world.commit(one, ("put", "objects", obj("unseen")))
    seconds[0] = 31.0
    with pytest.raises(ForeignBranch):
        world.commit(one, ("put", "objects", obj("stopped")))
    with pytest.warns(CatalogWarning):
        assert names(world.snapshot()) == ["base", "one0", "two0", "unseen"]


@pytest.mark.parametrize(("left", "right"), [(2, 2), (3, 2)])
def test_branches_beyond_one_stray_are_refused(world: World, left: int, right: int) -> None:
    fork(world, left, right)
    before = [info.name for info in world.store.list("")]
    with pytest.raises(ForeignBranch, match="forked") as error:
        world.writer()
    assert "another writer id" in error.value.next_step
    assert [info.name for info in world.store.list("")] == before


def test_three_branches_are_refused(world: World) -> None:
    world.commit(world.writer(), ("put", "objects", obj("base")))
    for name, writer in zip("xyz", [world.writer() for _ in range(3)], strict=True):
        world.commit(writer, ("put", "objects", obj(name)))
    with pytest.raises(ForeignBranch):
        world.writer()
    with pytest.warns(CatalogWarning):
        assert names(world.snapshot()) == ["base", "x", "y", "z"]


def test_a_fork_of_one_writer_does_not_stop_another(world: World) -> None:
    fork(world, 2, 2)
    with world.writer("v") as writer:
        world.commit(writer, ("put", "objects", obj("theirs")))
        writer.checkpoint()
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    for _ in range(2):
        with pytest.warns(CatalogWarning):
            snapshot = world.snapshot()
        assert names(snapshot) == ["base", "one0", "one1", "theirs", "two0", "two1"]
        assert {(f["revision"], f["open"]) for f in rows(snapshot, "forks")} == {(1, True), (2, True)}
        world.clock.tick(60 * 60 * 1_000_000)


def test_a_causal_version_where_a_revision_has_two_commits_is_refused(world: World) -> None:
    from bucketcatalog import InvalidVersion

    fork(world)
    with pytest.raises(InvalidVersion, match="several commits"):
        world.snapshot(version="w@1")


def test_a_fork_with_the_same_name_in_another_database_is_none(world: World) -> None:
    for database in ("one", "two"):
        world.commit(world.writer(database=database), ("put", "objects", obj("a")))
    for database in ("one", "two"):
        assert names(world.snapshot(database=database, strict=True)) == ["a"]


class CountingFiles(LogFiles):
    """Counts how often somebody asks for a transaction."""

    asked = 0

    def transaction(self, writer: str, head: Head) -> Transaction:
        self.asked += 1
        return super().transaction(writer, head)


def test_a_long_branch_beside_what_is_covered_is_told_from_it_by_asking_for_each_transaction_a_few_times(world: World) -> None:
    count = 24
    world.commit(world.writer(), ("put", "objects", obj("base")))
    one, two = world.writer(), world.writer()
    for n in range(count + 3):
        world.commit(one, ("put", "objects", obj(f"one{n}")))
    world.clock.tick(60 * MINUTE)
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    for n in range(count):
        with two.transaction() as tx:  # a process that has slept since
            tx.put("objects", obj(f"two{n}"))
    files = CountingFiles(world.store, "default")
    (checkpoint,) = newest_view(files).checkpoints
    listed = list(files.transactions("w"))
    covered, files.asked = Covered(files, [checkpoint]), 0
    held = [head for head in listed if covered.holds("w", head)]
    assert (len(listed), len(held)) == (1 + count + 3 + count, 1 + count + 3)
    assert files.asked <= 4 * len(listed)
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    assert len(names(world.snapshot())) == len(listed)
