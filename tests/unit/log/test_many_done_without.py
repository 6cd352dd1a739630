"""Many checkpoints of a plain writer that nobody can use: a look asks for each once, and lists nothing again however many they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from time import process_time

import pytest

from bucketcatalog.format.checkpoints import Checkpoint, encode_checkpoint
from bucketcatalog.format.records import Link, Void
from bucketcatalog.log.files import LogFiles
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Cut, Head
from bucketcatalog.store.faults import Counting

from ...kit.aside import set_aside
from ...kit.spoiling import NOWHERE, newest, spoil
from ...kit.world import HOUR, World, names, obj

REVISIONS = 5
"""How many of mallory's transactions there are after ``m0``, each with its share of checkpoints."""


def build(spoilt: str, count: int) -> tuple[World, list[str]]:
    """Alice's ``a0`` to ``a2``, mallory's ``m0`` to ``m5``, and so many of her checkpoints that are ``spoilt``; and what is to be read.

    Her only good one covers ``m0``.
    """
    world = World.counting()
    with world.writer("alice") as alice:
        for n in range(3):
            world.commit(alice, ("put", "objects", obj(f"a{n}")))
    made: list[Checkpoint] = []
    with world.writer("mallory") as mallory:
        for n in range(REVISIONS + 1):
            world.commit(mallory, ("put", "objects", obj(f"m{n}")))
            mallory.checkpoint()
            made.append(own(world))
    for checkpoint in made[1:]:
        world.store.delete(paths.checkpoint("mallory", "default", checkpoint.head))
        world.store.delete(paths.newest_marker("mallory", "default", checkpoint.head))
    for n in range(count):
        put_again(world, made[1 + n % REVISIONS], n, is_unclosed=spoilt == "unclosed")
    there = [f"a{n}" for n in range(3)] + [f"m{n}" for n in range(REVISIONS + 1)]
    world.clock.tick(HOUR)
    if spoilt == "set aside":
        set_aside(world, newest(world, "mallory", REVISIONS - 1), force=True)
        there.remove("m1")
    elif spoilt == "voided":
        files = LogFiles(world.store, "default")
        first = next(files.transaction("mallory", head) for head in files.transactions("mallory", 1))
        with world.writer("maintainer-1") as maintainer:
            maintainer.void([Void("mallory", Link(first.revision, first.uuid, first.digest))])
        there.remove("m1")
    return world, there


def own(world: World) -> Checkpoint:
    files = LogFiles(world.store, "default")
    return files.checkpoint("mallory", next(files.checkpoints("mallory")))


def put_again(world: World, made: Checkpoint, number: int, *, is_unclosed: bool) -> Checkpoint:
    """Another checkpoint like the one that was made, which may name what is nowhere as read; of each number there is one."""
    uuid = bytearray(made.uuid)
    uuid[9:11] = number.to_bytes(2, "big")
    again = replace(made, uuid=bytes(uuid))
    if is_unclosed:
        again = replace(again, reads=made.reads.joined(Cut.of([("alice", Head(10**9 + number, NOWHERE))])))
    world.store.put(paths.checkpoint("mallory", "default", again.head), encode_checkpoint(again))
    world.store.put(paths.newest_marker("mallory", "default", again.head), b"")
    return again


def asked(world: World, call: Callable[[], list[str]], there: list[str]) -> Counter[str]:
    """What is asked of the store for a call that reads what is there."""
    store = world.store
    assert isinstance(store, Counting)
    store.reset()
    assert call() == there
    return Counter(store.requests)


WAYS: dict[str, Callable[[World], list[str]]] = {
    "now": lambda world: names(world.snapshot()),
    "at a time": lambda world: names(world.snapshot(timestamp=f"@{world.clock.now}")),
    "a version": lambda world: names(world.snapshot(version=world.snapshot().version)),
    "past damage": lambda world: names(world.snapshot(ignore_corruption=True)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("spoilt", ["unclosed", "set aside", "voided"])
def test_each_costs_two_requests_at_most_and_nothing_is_listed_again(spoilt: str, way: str) -> None:
    few, many = (
        asked(world, lambda world=world: WAYS[way](world), there) for world, there in (build(spoilt, n) for n in (50, 200))
    )
    looks = 2 if way == "a version" else 1
    assert (many["list"], many["list_prefixes"]) == (few["list"], few["list_prefixes"])
    assert many["get"] - few["get"] <= 150 * looks and many["head"] - few["head"] <= 150 * looks
    assert few["list"] <= 40


@pytest.mark.parametrize("spoilt", ["unclosed", "set aside", "voided"])
def test_an_older_one_that_is_good_is_used(spoilt: str) -> None:
    world, there = build(spoilt, 20)
    used = {c.revision for c in world.snapshot().view.checkpoints if c.writer == "mallory"}
    assert used == {0}
    by_version = world.snapshot(version=world.snapshot().version)
    assert {c.revision for c in by_version.view.checkpoints if c.writer == "mallory"} == {0} and names(by_version) == there


def test_a_good_one_among_many_that_say_they_cover_more_is_used() -> None:
    world, there = build("unclosed", 0)
    with world.writer("mallory") as mallory:
        world.commit(mallory, ("put", "objects", obj("m6")))
        mallory.checkpoint()
    made = own(world)
    said = made.coverage["mallory"]
    more = replace(made, coverage={"mallory": replace(said, transactions=said.transactions + 9)})

    def listed(numbers: range) -> int:
        for number in numbers:
            put_again(world, more, number, is_unclosed=True)
        return asked(world, lambda: names(world.snapshot()), [*there, "m6"])["list"]

    assert listed(range(20)) == listed(range(20, 100))
    assert [c.uuid for c in world.snapshot().view.checkpoints if c.writer == "mallory"] == [made.uuid]


@pytest.mark.parametrize("spoilt", ["unclosed", "set aside", "voided"])
def test_who_looks_again_asks_for_none_of_them(spoilt: str) -> None:
    world, there = build(spoilt, 50)
    catalog = world.catalog()
    catalog.snapshot()
    again = asked(world, lambda: names(catalog.snapshot()), there)
    assert again["get"] == 0 and again["list"] <= 3


@pytest.mark.parametrize("spoilt", ["unclosed", "set aside", "voided"])
def test_one_without_a_marker_makes_nobody_judge_them_again(spoilt: str) -> None:
    listed: list[int] = []
    for count in (50, 200):
        world, there = build(spoilt, count)
        with world.writer("mallory") as mallory:
            world.commit(mallory, ("put", "objects", obj("m6")))
            mallory.checkpoint()
        world.store.delete(paths.newest_marker("mallory", "default", own(world).head))
        catalog = world.catalog()
        requests = asked(world, lambda catalog=catalog: names(catalog.snapshot()), [*there, "m6"])
        listed.append(requests["list"])
        assert (
            requests["get"] < count + 60
            and asked(world, lambda catalog=catalog: names(catalog.snapshot()), [*there, "m6"])["get"] == 0
        )
    assert listed[0] == listed[1]


def test_verify_lists_as_much_for_many_as_for_few() -> None:
    few, many = (
        asked(world, lambda world=world: [f.code for f in world.catalog().verify()], expected)
        for world, expected in ((build("unclosed", n)[0], ["WRONG_CHECKPOINT"] * n) for n in (50, 200))
    )
    assert many["list"] == few["list"]


def naming_thousands(world: World) -> str:
    """Let mallory's checkpoint name 20,000 transactions as read that are nowhere; gives its name."""
    made = own(world)
    nowhere = Cut.of(("alice", Head(10**6 + n, NOWHERE)) for n in range(20_000))
    name = paths.checkpoint("mallory", "default", made.head)
    world.store.delete(name)
    world.store.put(name, encode_checkpoint(replace(made, reads=made.reads.joined(nowhere))))
    return name


@pytest.mark.parametrize("way", WAYS)
def test_one_that_names_thousands_as_read_is_asked_about_the_first(way: str) -> None:
    world, there = build("unclosed", 0)
    naming_thousands(world)
    requests = asked(world, lambda: WAYS[way](world), there)
    assert requests["get"] + requests["head"] < 60


@pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")
def test_past_damage_it_keeps_nobody_from_what_others_checkpoints_hold() -> None:
    world, there = build("unclosed", 0)
    with world.writer("alice") as alice:
        alice.checkpoint()
    naming_thousands(world)
    spoil(world, newest(world, "alice", 1))
    requests = asked(world, lambda: names(world.snapshot(ignore_corruption=True)), there)
    assert requests["get"] + requests["head"] < 60


def test_verify_of_one_that_names_thousands_asks_for_none_of_them_and_takes_seconds() -> None:
    world, _ = build("unclosed", 0)
    name = naming_thousands(world)
    began = process_time()
    requests = asked(
        world,
        lambda: [f"{f.code} {f.file}" for f in world.catalog().verify() if f.severity is Severity.ERROR],
        [f"WRONG_CHECKPOINT {name}"],
    )
    assert requests["get"] + requests["head"] < 120 and process_time() - began < 10


def test_those_that_lie_not_within_a_version_are_tried_a_few_times_and_its_transactions_are_read_then() -> None:
    def asked(count: int) -> int:
        world = World.counting()
        with world.writer("alice") as alice:
            world.commit(alice, ("put", "objects", obj("a")))
        with world.writer("mallory") as mallory:
            world.commit(mallory, ("put", "objects", obj("m")))
            mallory.checkpoint()
        version, made = world.snapshot().version, own(world)
        (head,) = made.cut.of_writer("mallory")
        for number in range(count):
            uuid, other = bytearray(made.uuid), bytearray(head.uuid)
            uuid[9:11], other[8], other[9] = number.to_bytes(2, "big"), other[8] ^ 1, number
            elsewhere = Head(head.revision, bytes(other))
            coverage = replace(made.coverage["mallory"], recent=frozenset([elsewhere]), transactions=9)
            forged = replace(made, uuid=bytes(uuid), cut=Cut.of([("mallory", elsewhere)]), coverage={"mallory": coverage})
            world.store.put(paths.checkpoint("mallory", "default", forged.head), encode_checkpoint(forged))
            world.store.put(paths.newest_marker("mallory", "default", forged.head), b"")
        assert isinstance(world.store, Counting)
        world.store.reset()
        assert names(world.snapshot(version=version)) == ["a", "m"]
        return world.store.requests["get"]

    assert asked(20) == asked(100) < 20
