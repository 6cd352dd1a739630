"""A compaction that goes on: when a checkpoint is due, what it survives, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bucketcatalog import AccessDenied, Catalog, ForeignBranch, InvalidName, InvalidOption, StoreUnreachable
from bucketcatalog.maintain.compactor import Compactor, Policy, Round, Waiting
from bucketcatalog.store import ObjectInfo, Store
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.writer import Writer

from ...kit.world import MINUTE, World, names, obj


@pytest.mark.parametrize(
    ("policy", "waiting", "due"),
    [
        (Policy(), Waiting(), None),
        (Policy(), Waiting(1, 10, 0), "transactions"),
        (Policy(transactions=3), Waiting(2, 10**9, 10**12), None),
        (Policy(transactions=3), Waiting(3, 1, 1), "transactions"),
        (Policy(bytes=100), Waiting(50, 99, 10**12), None),
        (Policy(bytes=100), Waiting(1, 100, 1), "bytes"),
        (Policy(age=MINUTE), Waiting(50, 10**9, MINUTE - 1), None),
        (Policy(age=MINUTE), Waiting(1, 1, MINUTE), "age"),
        (Policy(transactions=3, age=MINUTE), Waiting(1, 1, MINUTE), "age"),
        (Policy(transactions=3, bytes=100, age=MINUTE), Waiting(2, 99, MINUTE - 1), None),
        (Policy(age=1), Waiting(0, 0, 10**12), None),
    ],
)
def test_a_checkpoint_is_due_at_the_first_limit_that_is_reached(policy: Policy, waiting: Waiting, due: str | None) -> None:
    assert policy.due(waiting) == due


@pytest.mark.parametrize("limits", [{"transactions": 0}, {"bytes": -1}, {"age": 0}])
def test_a_limit_below_one_is_refused(limits: dict[str, int]) -> None:
    with pytest.raises(InvalidOption):
        Policy(**limits)


def test_a_name_that_no_writer_can_have_is_refused_before_the_first_round() -> None:
    with pytest.raises(InvalidName):
        Compactor(World().catalog(), "default", policy=Policy(), every=1, writer="../x")


class Timed(Catalog):
    """A catalog whose writers have the world's clock."""

    def __init__(self, world: World) -> None:
        super().__init__(world.store)
        self.world_clock = world.clock

    def writer(self, writer: str, **options: Any) -> Writer:
        return super().writer(writer, clock=self.world_clock, **options)


def compactor(world: World, **options: Any) -> Compactor:
    given = {"policy": Policy(), "every": 0.2, "writer": "compactor-1", "sleep": lambda _: None} | options
    return Compactor(Timed(world), "default", **given)


def played(compaction: Compactor, steps: list[Callable[[], Any]]) -> list[Round]:
    """A round after each of the steps; then it is stopped."""
    found = []
    rounds = compaction.rounds()
    for step in steps:
        step()
        found.append(next(rounds))
    compaction.stop()
    assert list(rounds) == []
    return found


def test_what_waits_is_counted_and_covered_once_it_is_due() -> None:
    world = World()
    writer = world.writer()

    def commit(count: int) -> Callable[[], None]:
        return lambda: [world.commit(writer, ("put", "objects", obj(f"{n}"))) for n in range(count)] and None

    first, second, third, fourth = played(
        compactor(world, policy=Policy(transactions=3)), [commit(2), commit(1), commit(0), commit(3)]
    )
    assert (first.waiting.transactions, first.due, first.result) == (2, None, None)
    assert (second.waiting.transactions, second.due) == (3, "transactions")
    assert second.result is not None and second.result.rows > 0 and second.waiting.bytes > 0
    assert (third.waiting, third.due) == (Waiting(), None)
    assert fourth.result is not None and fourth.result.reused_bytes == 0
    assert [r.number for r in (first, second, third, fourth)] == [1, 2, 3, 4]
    assert world.snapshot().view.tail == ()


def test_what_waits_gets_older_by_the_stores_clock() -> None:
    world = World()
    world.commit(world.writer(), ("put", "objects", obj("a")))
    early, late = played(compactor(world, policy=Policy(age=MINUTE)), [lambda: None, lambda: world.clock.tick(MINUTE)])
    assert early.waiting.age == 0 and early.result is None
    assert (late.waiting.age, late.due) == (MINUTE, "age") and late.result is not None


class Hooked(Wrapped):
    """Calls something before a put, once: the first of a name that has ``part`` in it, or that with a number."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.part: str | None = None
        self.countdown = 0
        self.hook: Callable[[], Any] = lambda: None

    def put(self, name: str, data: bytes) -> None:
        if self.part is not None and self.part in name:
            self.countdown -= 1
            if self.countdown < 0:
                self.part = None
                self.hook()
        self.inner.put(name, data)


def test_two_compactions_in_step_do_not_keep_each_other_busy() -> None:
    plain = World()
    hooked = Hooked(plain.store)
    world = World(hooked)
    world.commit(world.writer(), ("put", "objects", obj("a")))
    one, two = (compactor(world, writer=f"compactor-{n}") for n in range(2))
    outcome: list[Any] = []
    hooked.part, hooked.hook = "/segments/", lambda: outcome.append(two._round(1))
    (first,) = played(one, [lambda: None])
    assert first.result is not None and outcome[0].result is not None  # neither had seen what the other wrote

    for each in (compactor(world, writer="compactor-0"), two):
        (idle,) = played(each, [lambda: None]) if each is not two else [two._round(2)]
        assert (idle.waiting.transactions, idle.due) == (0, None)
    assert names(world.snapshot()) == ["a"]


class Away(Wrapped):
    """A store that is away while it is told to be, or refuses."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.error: Exception | None = None

    def put(self, name: str, data: bytes) -> None:
        if self.error is not None:
            raise self.error
        self.inner.put(name, data)

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        if self.error is not None:
            raise self.error
        return self.inner.list(prefix, after=after, limit=limit)


def test_a_store_that_is_away_for_a_while_ends_rounds_and_not_the_compaction() -> None:
    away = Away(World().store)
    world = World(away)
    writer = world.writer()
    world.commit(writer, ("put", "objects", obj("a")))

    def leave() -> None:
        away.error = StoreUnreachable("the store is away.")

    def come_back() -> None:
        away.error = None

    first, gone, still, back = played(compactor(world), [lambda: None, leave, leave, come_back])
    assert first.result is not None
    assert gone.error is away.error or isinstance(gone.error, StoreUnreachable)
    assert isinstance(still.error, StoreUnreachable)
    assert back.error is None and back.due is None

    come_back()
    world.commit(writer, ("put", "objects", obj("b")))
    (after,) = played(compactor(world), [lambda: None])
    assert after.result is not None
    assert names(world.snapshot()) == ["a", "b"]


def test_what_will_not_pass_ends_the_compaction() -> None:
    away = Away(World().store)
    world = World(away)
    world.commit(world.writer(), ("put", "objects", obj("a")))
    away.error = AccessDenied("no right to list.")
    with pytest.raises(AccessDenied):
        next(compactor(world).rounds())


def test_somebody_else_under_its_id_ends_a_round_and_the_next_joins_him() -> None:
    world = World()
    writer = world.writer()
    world.commit(writer, ("put", "objects", obj("a")))
    compaction = compactor(world)

    def both() -> None:
        world.commit(writer, ("put", "objects", obj("b")))
        world.writer("compactor-1").checkpoint(scope="all")
        world.commit(writer, ("put", "objects", obj("c")))

    first, met, joined = played(compaction, [lambda: None, both, lambda: None])
    assert first.result is not None
    assert isinstance(met.error, ForeignBranch)
    assert joined.result is not None
    assert names(world.snapshot()) == ["a", "b", "c"]


@pytest.mark.parametrize("at", range(4))
def test_it_can_be_stopped_at_any_put_and_nothing_is_lost(at: int) -> None:
    """The signal's handler runs in the middle of a checkpoint: that is given up before its publication, or finished."""
    hooked = Hooked(World().store)
    world = World(hooked)
    writer = world.writer()
    world.commit(writer, ("put", "objects", obj("a")))
    compaction = compactor(world)
    hooked.part, hooked.countdown, hooked.hook = "/", at, compaction.stop
    rounds = list(compaction.rounds())

    published = list(world.store.list("compactor-1/default/newest/"))
    assert (len(rounds), len(published)) == ((1, 1) if at >= 2 else (0, 0))
    assert names(world.snapshot()) == ["a"]
    world.commit(writer, ("put", "objects", obj("b")))
    (after,) = played(compactor(world), [lambda: None])
    assert after.result is not None and names(world.snapshot()) == ["a", "b"]


def test_between_rounds_it_waits_as_long_as_it_was_told_and_no_longer_than_until_it_is_stopped() -> None:
    world = World()
    world.commit(world.writer(), ("put", "objects", obj("a")))
    slept: list[float] = []
    compaction = compactor(world, every=1.0, sleep=slept.append)
    rounds = compaction.rounds()
    next(rounds)
    next(rounds)
    assert sum(slept) == pytest.approx(1.0)

    def stop_soon(seconds: float) -> None:
        slept.append(seconds)
        compaction.stop()

    compaction._sleep = stop_soon
    slept.clear()
    assert list(rounds) == [] and len(slept) == 1
