"""Filters over keys: the hash that they are made of, that no key is ever missed, and what they save a look-up."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bucketcatalog import CorruptionError
from bucketcatalog.model import bloom
from bucketcatalog.model.bloom import KeyFilter, hash_keys, may_hold_any
from bucketcatalog.model.paths import segment
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore

from ...kit.world import BUCKET, OWNER, Clock, World, obj

COUNT = 20_000
LOOK = {"owner": OWNER, "bucket_id": BUCKET}
PRIMES = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261)
WORD = 1 << 64


def turned(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) % WORD


def mixed(lane: int, word: int) -> int:
    return turned((lane + word * PRIMES[1]) % WORD, 31) * PRIMES[0] % WORD


def xxh64(data: bytes) -> int:
    """XXH64 with seed 0, one value at a time."""
    one, two, three, four, five = PRIMES
    at, value = 0, five
    if len(data) >= 32:
        lanes = [(one + two) % WORD, two, 0, -one % WORD]
        while at + 32 <= len(data):
            lanes = [mixed(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at), strict=True)]
            at += 32
        value = sum(turned(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) % WORD
        for lane in lanes:
            value = ((value ^ mixed(0, lane)) * one + four) % WORD
    value = (value + len(data)) % WORD
    while at + 8 <= len(data):
        value = (turned(value ^ mixed(0, struct.unpack_from("<Q", data, at)[0]), 27) * one + four) % WORD
        at += 8
    if at + 4 <= len(data):
        value = (turned(value ^ struct.unpack_from("<I", data, at)[0] * one % WORD, 23) * two + three) % WORD
        at += 4
    for byte in data[at:]:
        value = turned(value ^ byte * five % WORD, 11) * one % WORD
    for shift, prime in ((33, two), (29, three)):
        value = (value ^ value >> shift) * prime % WORD
    return value ^ value >> 32


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_hashes_are_those_that_xxh64_is_known_by(text: bytes, expected: int) -> None:
    assert xxh64(text) == expected
    assert hash_keys(pa.array([text], pa.binary())).tolist() == [expected]


@given(st.lists(st.binary(max_size=120), max_size=20), st.integers(0, 5))
@settings(max_examples=200)
def test_hashes_of_many_are_those_of_each(keys: list[bytes], skipped: int) -> None:
    assert hash_keys(pa.array(keys, pa.binary())[skipped:]).tolist() == [xxh64(key) for key in keys[skipped:]]


@pytest.mark.parametrize("lengths", [range(64, 68), range(96, 130), range(30, 130), [72] * 3], ids=str)
def test_hashes_of_long_keys_are_those_of_each(lengths: Sequence[int]) -> None:
    keys = [bytes(7 * length % 251 + at % 5 for at in range(length)) for length in lengths]
    assert hash_keys(pa.array(keys, pa.binary())).tolist() == [xxh64(key) for key in keys]


@given(st.sets(st.binary(max_size=40), min_size=1, max_size=300), st.sets(st.binary(max_size=40), max_size=50))
@settings(max_examples=100)
def test_a_filter_misses_no_key_and_is_the_same_from_its_bytes(keys: set[bytes], others: set[bytes]) -> None:
    made = KeyFilter.of(hash_keys(pa.array(sorted(keys), pa.binary())))
    asked = hash_keys(pa.array(sorted(keys | others), pa.binary()))
    parsed = KeyFilter.parse(made.data)
    assert made.may_hold(hash_keys(pa.array(sorted(keys), pa.binary()))).all()
    assert parsed.may_hold(asked).tolist() == made.may_hold(asked).tolist()


@given(
    st.lists(st.sets(st.binary(max_size=9), min_size=1, max_size=90), max_size=8),
    st.lists(st.binary(max_size=9), max_size=6),
    st.integers(0, 3),
    st.sampled_from([1, 7, 1 << 14]),
)
@settings(max_examples=100)
def test_many_filters_say_at_once_what_each_says(made: list[set[bytes]], asked: list[bytes], skipped: int, at_once: int) -> None:
    filters = [KeyFilter.of(hash_keys(pa.array(sorted(keys), pa.binary()))) for keys in made]
    hashes = hash_keys(pa.array(asked, pa.binary()))
    stored = pa.array([*(each.data for each in filters), None, b"", bytes(33)], pa.binary())[skipped:]
    expected = [*(bool(each.may_hold(hashes).any()) for each in filters), True, True, True][skipped:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bloom, "_AT_ONCE", at_once)
        assert may_hold_any(stored, hashes).tolist() == expected


def test_of_absent_keys_one_in_a_hundred_passes_at_most() -> None:
    present = pa.array([f"objects/{n}" for n in range(100_000)]).cast(pa.binary())
    absent = pa.array([f"objects/{n}.jpg" for n in range(100_000)]).cast(pa.binary())
    assert KeyFilter.of(hash_keys(present)).may_hold(hash_keys(absent)).mean() < 0.01


@pytest.mark.parametrize("data", [b"", bytes(31), bytes(33)])
def test_words_that_are_no_blocks_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not blocks of a filter"):
        KeyFilter.parse(data)


@pytest.fixture
def world() -> World:
    """20,000 objects in a checkpoint, and two levels over it: a few that were put again, a few that were deleted."""
    clock = Clock()
    world = World(Counting(MemoryStore(clock=clock)))
    world.clock = clock
    with world.writer() as writer:
        table = pa.Table.from_pylist([obj(f"n{n:06}", content_length=n) for n in range(COUNT)])
        world.commit(writer, ("put", "objects", table))
        writer.checkpoint()
        world.commit(writer, ("put", "objects", [obj(f"n{n:06}", content_length=COUNT + n) for n in range(100, COUNT, 1_000)]))
        writer.checkpoint()
        world.commit(writer, ("delete", "objects", [obj(f"n{n:06}") for n in range(200, COUNT, 1_000)]))
        writer.checkpoint()
    return world


def requests(world: World, call: Any) -> tuple[int, Any]:
    store = world.store
    assert isinstance(store, Counting)
    store.reset()
    found = call()
    return sum(store.requests.values()), found


@pytest.mark.parametrize(
    ("number", "expected", "cold", "warm"),
    [
        (10_005, 10_005, 4, 0),  # the filters of three levels, and a block of the lowest, which is kept
        (10_100, COUNT + 10_100, 4, 0),  # a block of the level that has put it
        (10_200, None, 5, 0),  # a block of the level that has ended it, and one of the lowest
    ],
)
def test_a_look_up_asks_for_the_blocks_that_hold_the_key(
    world: World, number: int, expected: int | None, cold: int, warm: int
) -> None:
    snapshot = world.snapshot()
    first, found = requests(world, lambda: snapshot.get("objects", **LOOK, name=f"n{number:06}"))
    again, same = requests(world, lambda: snapshot.get("objects", **LOOK, name=f"n{number:06}"))
    assert found == same
    assert (found and found["content_length"]) == expected
    assert (first, again) == (cold, warm)


def test_a_look_up_of_an_absent_key_asks_for_no_block(world: World) -> None:
    snapshot = world.snapshot()
    first, found = requests(world, lambda: snapshot.get("objects", **LOOK, name="n010005x"))
    absent = [
        requests(world, lambda n=n: snapshot.get("objects", **LOOK, name=f"n{n:06}x")) for n in range(150, COUNT - 1_000, 200)
    ]
    assert (first, found) == (3, None)  # a filter a level
    assert all(row is None for _, row in absent)
    assert sum(count for count, _ in absent) <= 3


def test_keys_that_a_filter_lets_pass_are_found_with_those_it_keeps_back(world: World) -> None:
    snapshot = world.snapshot()
    wanted = [f"n{n:06}" for n in range(1_050, 1_250)] + [f"n{n:06}x" for n in range(1_050, 1_250)]
    found = snapshot.scan("objects", columns=["content_length"], where={**LOOK, "name": wanted}).to_arrow()
    expected = [COUNT + n if n == 1_100 else n for n in range(1_050, 1_250) if n != 1_200]
    assert found["content_length"].to_pylist() == expected


@pytest.mark.parametrize("at", [0, 10, -40])
def test_a_damaged_filter_is_told_by_its_file(world: World, at: int) -> None:
    snapshot = world.snapshot()
    reference = snapshot.view.checkpoints[0].segments[0]
    name = segment(reference.writer, snapshot.database, reference.uuid)
    data = bytearray(world.store.get(name))
    data[reference.filters_offset + (at if at >= 0 else reference.filters_length + at)] ^= 1
    world.store.delete(name)
    world.store.put(name, bytes(data))
    with pytest.raises(CorruptionError, match=r"filters") as caught:
        snapshot.get("objects", **LOOK, name="n010005")
    assert name in str(caught.value)
    assert len(world.snapshot().scan("objects").to_arrow()) == COUNT - 20  # who reads all needs none
