"""Events of which there may be any number: the transaction carries so many, and of more it refers to segments that were put before it."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pyarrow as pa
import pytest

from bucketcatalog.format.blocks import MAX_BYTES, decode_block
from bucketcatalog.format.definitions import core_tables
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.log.blocks import read_block
from bucketcatalog.log.files import LogFiles
from bucketcatalog.log.segments import read_index
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write.staging import INLINE_BYTES, INLINE_ROWS, Encoded, StagedSegments

from ...kit.world import START

WORDS = core_tables()["harvest_errors"]


def rows(start: int, stop: int, text: bytes = b"") -> pa.Table:
    """Events that put rows, numbered from ``start`` on, all with this text."""
    paths = [f"{n:06}" for n in range(start, stop)]
    texts = [text.hex()] * len(paths)
    return pa.table({"1": ["s"] * len(paths), "2": paths, "4": texts, "_seq": pa.array(range(start, stop), pa.int32())})


def staged(store: MemoryStore, parts: Iterable[pa.Table]) -> Encoded:
    events = StagedSegments(LogFiles(store, "db"), "w", WORDS, began=START)
    for part in parts:
        events.add(part)
    events.finish()
    return events.encoded(pytest.fail)


def paths(store: MemoryStore, encoded: Encoded) -> list[str]:
    """The paths of the rows that are put, in the order in which they lie in the blocks or the segments."""
    found = [decode_block(block.data, WORDS, "file", {"2"}) for block in encoded.blocks]
    for reference in encoded.segments:
        found += [read_block(store, place, WORDS, {"2"}) for place in read_index(store, "db", reference)]
    return [path for facts in found for path in facts.rows["2"].to_pylist()]


def parts_of(count: int, step: int) -> list[pa.Table]:
    return [rows(start, min(start + step, count)) for start in range(0, count, step)]


@pytest.mark.parametrize("step", [1_000, 10_000, 50_000])
@pytest.mark.parametrize("more", [-1, 0, 1, 20_000])
def test_the_transaction_carries_so_many_events_and_of_more_none(more: int, step: int) -> None:
    store, count = MemoryStore(), INLINE_ROWS + more
    encoded = staged(store, parts_of(count, step))
    stored = [info.name for info in store.list("")]
    if more <= 0:
        assert (encoded.segments, stored) == ((), [])
        assert sum(block.header.rows for block in encoded.blocks) == count
        assert all(len(block.data) <= MAX_BYTES for block in encoded.blocks)
    else:
        (reference,) = encoded.segments
        assert (encoded.blocks, len(stored)) == ((), 1)
        assert (reference.run.rows, reference.run.block_class, reference.run.table) == (count, BlockClass.EVENTS, WORDS.name)
        assert reference.run.blocks == -(-count // INLINE_ROWS)
    assert paths(store, encoded) == [f"{n:06}" for n in range(count)]


def test_few_events_with_much_in_them_go_into_segments_too() -> None:
    size = 50_000
    text = random.Random(1).randbytes(size // 2)
    most = INLINE_BYTES // size
    for count, is_carried in ((most - 1, True), (most + 1, False)):
        store = MemoryStore()
        encoded = staged(store, [rows(n, n + 1, text) for n in range(count)])
        assert (bool(encoded.blocks), bool(encoded.segments)) == (is_carried, not is_carried)
        assert len(list(store.list(""))) == len(encoded.segments)
        assert paths(store, encoded) == [f"{n:06}" for n in range(count)]


def test_no_events_are_nothing() -> None:
    store = MemoryStore()
    for parts in ([], [rows(0, 0)]):
        assert staged(store, parts) == Encoded(blocks=(), segments=())
    assert list(store.list("")) == []
