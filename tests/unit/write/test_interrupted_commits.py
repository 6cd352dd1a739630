"""Commits that are interrupted, late or shared by threads: nothing is forked, and nothing late is acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, ClosedWriter, CommitUnknown, ForeignBranch, InvalidOption, clock
from bucketcatalog.errors import OutcomeUnknown
from bucketcatalog.limits import Limits
from bucketcatalog.store.wrappers import Wrapped

from ...kit.world import MINUTE, SECOND, World, names, obj


class During(Wrapped):
    """Calls ``before`` and ``after`` around each put of a transaction."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None

    def put(self, name: str, data: bytes) -> None:
        self.before()
        self.inner.put(name, data)
        self.after()


def interrupt(error: type[BaseException]) -> Callable[[], None]:
    def interrupt() -> None:
        raise error

    return interrupt


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, SystemExit])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupted_put_ends_the_writer_and_forks_nothing(error: type[BaseException], when: str) -> None:
    world = World()
    store = During(world.store)
    writer = Catalog(store).writer("w", clock=world.clock)
    world.commit(writer, ("put", "objects", obj("a")))
    setattr(store, when, interrupt(error))
    with pytest.raises(error):
        world.commit(writer, ("put", "objects", obj("b")))
    setattr(store, when, lambda: None)
    with pytest.raises(ClosedWriter, match="interrupted"):
        world.commit(writer, ("put", "objects", obj("c")))

    world.commit(Catalog(store).writer("w", clock=world.clock), ("put", "objects", obj("c")))
    snapshot = world.snapshot()
    assert names(snapshot) == (["a", "b", "c"] if when == "after" else ["a", "c"])
    assert snapshot.scan("forks").to_arrow().num_rows == 0


def test_an_interrupt_while_rows_are_collected_costs_that_transaction_alone() -> None:
    world = World()
    writer = world.writer()
    with pytest.raises(KeyboardInterrupt), writer.transaction() as tx:
        tx.put("objects", (interrupt(KeyboardInterrupt)() for _ in range(1)))  # type: ignore[arg-type]
    world.commit(writer, ("put", "objects", obj("b")))
    assert names(world.snapshot()) == ["b"]


def test_a_put_that_took_longer_than_the_commit_delay_is_not_acknowledged() -> None:
    world = World()
    store = During(world.store)
    writer = Catalog(store).writer("w", clock=world.clock)
    world.commit(writer, ("put", "objects", obj("a")))
    store.before = lambda: world.clock.tick(20 * MINUTE) and None
    with pytest.raises(CommitUnknown, match="too long"):
        world.commit(writer, ("put", "objects", obj("b")))
    store.before = lambda: None
    with pytest.raises(ClosedWriter):
        world.commit(writer, ("put", "objects", obj("c")))
    world.commit(Catalog(store).writer("w", clock=world.clock), ("put", "objects", obj("c")))
    assert names(world.snapshot()) == ["a", "b", "c"]  # it arrived: opening again found it


def test_no_put_is_begun_behind_the_commit_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    store = During(world.store)
    writer = Catalog(store).writer("w", clock=world.clock)
    begun: list[int] = []

    def lose() -> None:
        begun.append(world.clock.now)
        world.clock.tick(5 * MINUTE - 2 * SECOND if len(begun) == 1 else 0)
        raise OutcomeUnknown("The answer was lost.", next_step="-")

    store.before = lose
    monkeypatch.setattr(clock, "sleep", lambda seconds: world.clock.tick(SECOND))
    start = world.clock.now + SECOND
    with pytest.raises(CommitUnknown, match="was lost"):
        world.commit(writer, ("put", "objects", obj("a")))
    assert len(begun) > 1 and max(begun) <= start + 5 * MINUTE


def test_threads_take_turns_on_one_writer(tmp_path: Path) -> None:
    writer = Catalog(tmp_path).writer("compactor-1")
    failed: list[BaseException] = []

    def commit(thread: int) -> None:
        try:
            for number in range(15):
                with writer.transaction() as tx:
                    tx.put("objects", obj(f"{thread}-{number:02}"))
                if number == 7:
                    writer.checkpoint(scope="all" if thread % 2 else "own")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=commit, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    snapshot = Catalog(tmp_path).snapshot()
    assert names(snapshot) == sorted(f"{thread}-{number:02}" for thread in range(4) for number in range(15))
    assert snapshot.scan("forks").to_arrow().num_rows == 0
    Catalog(tmp_path).writer("compactor-1").close()


def test_a_writer_can_be_asked_whether_it_is_alone() -> None:
    world = World()
    first, second = world.writer(), world.writer()
    first.check()
    world.commit(second, ("put", "objects", obj("a")))
    with pytest.raises(ForeignBranch):
        first.check()
    with pytest.raises(ClosedWriter):
        first.check()
    second.check()


@pytest.mark.parametrize("limits", [{"commit_delay": 6 * MINUTE}, {"clock_skew": 2 * MINUTE}, {"commit_delay": -1}])
def test_limits_wider_than_what_others_count_on_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(InvalidOption):
        Limits(**limits)
