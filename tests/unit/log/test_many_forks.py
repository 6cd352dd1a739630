"""Timelines that fork at every revision: what became of each fork is known by one look at each transaction, however many there are."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from time import perf_counter

import pytest

from bucketcatalog import CorruptionError
from bucketcatalog.clock import uuid7
from bucketcatalog.format.records import Link
from bucketcatalog.format.sealing import digest
from bucketcatalog.format.transactions import Transaction, encode_transaction
from bucketcatalog.limits import LATENESS_BOUND
from bucketcatalog.log.discovery import newest_view, view_at
from bucketcatalog.log.files import LogFiles
from bucketcatalog.log.view import LogView
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.uuids import writer_mark

from ...kit.world import DAY, START, World, names, obj

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


class Forger:
    """Puts sealed transactions without events below a writer's own prefix."""

    def __init__(self, world: World, writer: str = "evil") -> None:
        self._world, self._writer, self._time = world, writer, START
        world.clock.now = START + DAY

    def put(self, revision: int, parents: Iterable[Link] = (), *, time: int | None = None) -> Link:
        self._time = self._time + 1_000 if time is None else time
        uuid = uuid7(self._time, writer_mark(self._writer)).bytes
        given = Transaction(self._writer, "default", revision, uuid, self._time, LATENESS_BOUND, parents=tuple(parents))
        data = encode_transaction(given, (), ())
        self._world.store.put(paths.transaction(self._writer, "default", given.head), data)
        return Link(revision, uuid, digest(data))

    def put_none(self, revision: int) -> None:
        """Puts what is no transaction under the name of one."""
        self._time += 1_000
        head = Head(revision, uuid7(self._time, writer_mark(self._writer)).bytes)
        self._world.store.put(paths.transaction(self._writer, "default", head), b"x")


def ladder(forger: Forger, count: int) -> None:
    """Two chains from the start on."""
    one, other = forger.put(0), forger.put(0)
    for revision in range(1, count // 2):
        one, other = forger.put(revision, [one]), forger.put(revision, [other])


def crossed(forger: Forger, count: int) -> None:
    """Two transactions at each revision, of which each follows both before."""
    level: list[Link] = []
    for revision in range(count // 2):
        level = [forger.put(revision, level), forger.put(revision, level)]


def chain(forger: Forger, count: int) -> None:
    """As many that are sound."""
    last: list[Link] = []
    for revision in range(count):
        last = [forger.put(revision, last)]


def viewed(world: World) -> LogView:
    return world.catalog().database("default").view()


@pytest.mark.parametrize("shape", [ladder, crossed], ids=lambda shape: shape.__name__)
def test_thousands_of_forks_cost_what_as_many_sound_transactions_do(shape: Callable[[Forger, int], None]) -> None:
    def seconds(make: Callable[[Forger, int], None]) -> float:
        world = World()
        world.commit(world.writer(), ("put", "objects", obj("a")))
        make(Forger(world), 4_000)
        began = perf_counter()
        assert names(world.snapshot()) == ["a"]
        return perf_counter() - began

    sound, forked = seconds(chain), seconds(shape)
    assert forked < 5 * sound + 1, (sound, forked)  # it was forty times as long, and grew with the square


def reached(head: Head, parents: Mapping[Head, set[Head]]) -> set[Head]:
    return {head}.union(*(reached(parent, parents) for parent in parents[head]))


def test_what_became_of_each_fork_is_what_following_every_head_tells() -> None:
    """Random timelines, and for each fork whether one head follows all of its transactions, found by walking from each."""
    for seed in range(60):
        chance, world = random.Random(seed), World()
        world.commit(world.writer(), ("put", "objects", obj("a")))
        forger = Forger(world)
        links: list[Link] = []
        for revision in range(chance.randint(2, 6)):
            before = [link for link in links if link.revision == revision - 1]
            earlier = [link for link in links if link.revision < revision - 1]
            for _ in range(chance.choice((1, 1, 2, 3))):
                others = chance.sample(before + earlier, min(len(before + earlier), chance.randint(0, 1)))
                links.append(forger.put(revision, dict.fromkeys([*chance.sample(before, min(len(before), 1)), *others])))
        view = viewed(world)
        parents = {t.head: {link.head for link in t.parents} for t in view.tail if t.writer == "evil"}

        heads = view.cut.of_writer("evil")
        follows = [reached(head, parents) for head in heads]
        for fork in view.forks:
            branches = {head for head in parents if head.revision == fork.revision}
            is_joined = any(branches <= each for each in follows) and not (len(heads) > 1 and branches & set(heads))
            assert fork.open is not is_joined, seed


@pytest.mark.parametrize("levels", [1, 2, 4_000])
def test_thousands_of_files_that_are_none_are_read_past_for_what_as_many_sound_ones_cost(levels: int) -> None:
    """However many lie at a revision, and before one: each stands after what is before it."""

    def garbage(forger: Forger, count: int) -> None:
        for number in range(count):
            forger.put_none(1 + number % levels)

    def seconds(make: Callable[[Forger, int], None]) -> float:
        world = World()
        world.commit(world.writer(), ("put", "objects", obj("a")))
        make(Forger(world), 4_000)
        began = perf_counter()
        assert names(world.snapshot(ignore_corruption=True)) == ["a"]
        return perf_counter() - began

    sound, bad = seconds(chain), seconds(garbage)
    assert bad < 10 * sound + 1, (sound, bad)  # it grew with the square


def falling(world: World, count: int) -> list[Link]:
    """A chain of which each transaction is stamped before the one that it follows."""
    forger, links = Forger(world), list[Link]()
    for revision in range(count):
        links.append(forger.put(revision, links[-1:], time=START + DAY - 1_000 * revision))
    return links


def test_a_chain_that_is_found_name_by_name_costs_by_its_length(world: World) -> None:
    """At the time of the last one alone each of the others is known by the one that follows it, which says that it had read the future."""
    world.commit(world.writer(), ("put", "objects", obj("a")))
    links = falling(world, 2_000)
    began = perf_counter()
    with pytest.raises(CorruptionError, match="which was committed after it"):
        view_at(LogFiles(world.store, "default"), links[-1].head.commit_time, world.clock.now, horizon=None, writers=["evil"])
    assert perf_counter() - began < 5


def test_what_builds_on_what_lies_ahead_is_left_out_however_far_removed_and_at_once(world: World) -> None:
    """Only the first one lies ahead: that the others do too is known of each by the one before it."""
    world.commit(world.writer("w"), ("put", "objects", obj("a")))
    links = falling(world, 2_000)
    files, began = LogFiles(world.store, "default"), perf_counter()
    assert {t.writer for t in newest_view(files, ahead_of=links[0].head.commit_time - 1).tail} == {"w"}
    with pytest.raises(CorruptionError, match="which was committed after it"):
        newest_view(files, ahead_of=links[0].head.commit_time)
    assert perf_counter() - began < 5
