"""Clocks that are wrong: a commit is refused where it could not be ordered, and nobody's clock is dragged along."""

from __future__ import annotations

import pytest

from bucketcatalog import CatalogWarning, ClockSkew, CommitUnknown
from bucketcatalog.limits import Limits
from bucketcatalog.model.times import shown_age
from bucketcatalog.store.faults import LostResponses
from bucketcatalog.store.memory import MemoryStore

from ...kit.world import MINUTE, SECOND, Clock, World, names, obj


def skewed(world: World, by: int) -> World:
    """A process over the same store whose clock is off by so much."""
    other = World(world.store)
    other.clock = Clock(world.clock.now + by)
    return other


@pytest.mark.parametrize("by", [-MINUTE - 1, MINUTE + 1, -3600 * SECOND, 3600 * SECOND])
def test_a_clock_too_far_from_the_stores_commits_nothing(by: int) -> None:
    world = World()
    other = skewed(world, by)
    writer = other.writer()
    with pytest.raises(ClockSkew, match="ahead of" if by > 0 else "behind") as error, writer.transaction() as tx:
        tx.put("objects", obj("a"))
    assert shown_age(abs(by)) in error.value.message and error.value.next_step
    assert list(world.store.list("")) == []
    other.clock.now = world.clock.now
    with writer.transaction() as tx:
        tx.put("objects", obj("b"))
    assert names(world.snapshot()) == ["b"]


@pytest.mark.parametrize("by", [-MINUTE, -SECOND, SECOND, MINUTE])
def test_a_clock_within_the_bound_commits(by: int) -> None:
    world = World()
    with skewed(world, by).writer() as writer, writer.transaction() as tx:
        tx.put("objects", obj("a"))
    assert names(world.snapshot()) == ["a"]


def test_commits_come_after_everything_that_was_read_whatever_the_clock_says() -> None:
    world = World()
    ahead, behind = skewed(world, 50 * SECOND), skewed(world, -50 * SECOND)
    with ahead.writer("ahead") as writer, writer.transaction() as tx:
        tx.put("objects", obj("k", content_length=1))
    assert tx.committed is not None
    catalog = behind.catalog()
    catalog.snapshot()
    with behind.writer("behind", catalog=catalog) as writer, writer.transaction() as later:
        later.put("objects", obj("k", content_length=2))
    assert later.committed is not None
    assert later.committed.commit_time == tx.committed.commit_time + 1
    assert world.snapshot().get("objects", **obj("k"))["content_length"] == 2  # type: ignore[index]


def test_naming_a_version_counts_as_having_read_it() -> None:
    world = World()
    ahead, behind = skewed(world, 50 * SECOND), skewed(world, -50 * SECOND)
    with ahead.writer("ahead") as writer, writer.transaction() as tx:
        tx.put("objects", obj("k"))
    assert tx.committed is not None
    with behind.writer("behind") as writer, writer.transaction() as later:
        later.delete("objects", obj("k", _version=f"{tx.committed.uuid}:0"))
    assert later.committed is not None and later.committed.commit_time == tx.committed.commit_time + 1
    assert names(world.snapshot()) == []


def future(by: int = 3600 * SECOND) -> World:
    """A catalog that holds a transaction from the future, by a writer whose store was wrong too."""
    wrong = World(MemoryStore(clock=Clock(World().clock.now + by)))
    wrong.clock = Clock(World().clock.now + by)
    with wrong.writer("future") as writer, writer.transaction() as tx:
        tx.put("objects", obj("k", content_length=1))
    world = World()
    for info in wrong.store.list(""):
        world.store.put(info.name, wrong.store.get(info.name))
    return world


def test_a_transaction_from_the_future_is_shown_with_a_warning_and_advances_nobody() -> None:
    world = future()
    catalog = world.catalog()
    with pytest.warns(CatalogWarning, match="'future'"):
        assert names(catalog.snapshot()) == ["k"]
    with world.writer("now", catalog=catalog) as writer:
        committed = world.commit(writer, ("put", "objects", obj("mine")))
        assert committed.commit_time == world.clock.now
        writer.checkpoint()
        world.writer("compactor-1").checkpoint(scope="all")
    with pytest.warns(CatalogWarning, match="'future'"):
        snapshot = world.snapshot()
    assert names(snapshot) == ["k", "mine"]
    assert all("future" not in checkpoint.cut.heads for checkpoint in snapshot.view.checkpoints)
    assert names(world.snapshot(timestamp=f"@{world.clock.now}")) == ["mine"]


def test_a_writer_that_would_have_to_come_after_the_future_fails_by_name() -> None:
    world = future()
    with (
        pytest.raises(ClockSkew, match=r"'future'.*in the future") as error,
        world.writer("future") as writer,
        writer.transaction() as tx,
    ):
        tx.put("objects", obj("x"))
    assert "Wait" in error.value.next_step
    with pytest.warns(CatalogWarning):
        uuid = world.snapshot().scan("log").to_arrow()["uuid"][0].as_py()
    with pytest.raises(ClockSkew), world.writer("now") as writer, writer.transaction() as tx:
        tx.delete("objects", obj("k", _version=f"{uuid}:0"))


def test_the_future_becomes_the_present() -> None:
    world = future(10 * MINUTE)
    world.clock.tick(11 * MINUTE)
    assert names(world.snapshot()) == ["k"]
    with world.writer("future") as writer:
        assert world.commit(writer, ("put", "objects", obj("x"))).revision == 1


def test_a_commit_that_cannot_be_published_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        world.clock.tick(int(seconds * SECOND))

    monkeypatch.setattr("bucketcatalog.clock.sleep", sleep)
    flaky = World(LostResponses(world.store, landed=False))
    flaky.clock = world.clock
    start = world.clock.now
    with pytest.raises(CommitUnknown) as error, flaky.writer().transaction() as tx:
        tx.put("objects", obj("a"))
    assert "again" in error.value.next_step
    assert 5 * MINUTE <= world.clock.now - start <= 6 * MINUTE
    assert len(pauses) > 60 and 4.0 < max(pauses) <= 5.0  # of random length, up to a limit that doubles from 0.05 s to 5 s
    assert all(pause <= 0.05 * 2**number for number, pause in enumerate(pauses[:7]))
    assert list(world.store.list("")) == []


def test_a_writers_limits_are_its_own() -> None:
    world = World()
    writer = world.catalog().writer("w", clock=Clock(world.clock.now + 5 * SECOND), limits=Limits(clock_skew=SECOND))
    with pytest.raises(ClockSkew), writer.transaction() as tx:
        tx.put("objects", obj("a"))
