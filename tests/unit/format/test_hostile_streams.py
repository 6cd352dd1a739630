"""Blocks whose Arrow streams come to more than their bytes: known before anything of them is decoded, in little memory and at once."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from bucketcatalog import limits
from bucketcatalog.errors import CorruptionError
from bucketcatalog.format.blocks import decode_block, encode_blocks, stream_of
from bucketcatalog.format.definitions import core_tables
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.format.sealing import seal_block
from bucketcatalog.format.streams import check_stream
from bucketcatalog.v1 import log_pb2

from ...kit.limited import MEBI, Limited
from ...kit.storing import facts_with

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what a process takes is asked of Linux")

WORDS = core_tables()["harvest_errors"]
NUMBERED = [
    pa.field(name, pa.string(), metadata={b"PARQUET:field_id": number}) for name, number in (("source", b"1"), ("path", b"2"))
]
"""Columns of the key."""


def block(stream: bytes, rows: int) -> bytes:
    header = log_pb2.BlockHeader(table=WORDS.name, rows=rows, **{"class": BlockClass.EVENTS})  # type: ignore[arg-type]
    return seal_block(log_pb2.Block(header=header, rows=stream).SerializeToString(deterministic=True))[0]


def rows(count: int, text: str = "", **more: pa.Array) -> pa.Table:
    """So many rows of one text, which compress to next to nothing."""
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), pa.array([text])).cast(pa.string())
    fields = [*NUMBERED, pa.field("_seq", pa.int32()), *(pa.field(name, values.type) for name, values in more.items())]
    return pa.table([same, same, pa.array(np.arange(count, dtype=np.int32)), *more.values()], schema=pa.schema(fields))


def read(data: bytes) -> int:
    return len(decode_block(data, WORDS, "file"))


@pytest.fixture(scope="module")
def limited() -> Iterator[Limited]:
    with Limited() as limited:
        limited.prepare(read, block(stream_of(rows(1_000)), 1_000))
        yield limited


def batches(*parts: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, parts[0].schema) as writer:
        for part in parts:
            writer.write_table(part)
    return bytes(sink.getvalue())


def dictionaries() -> bytes:
    return batches(rows(10, x=pa.array(["a"] * 10).dictionary_encode()))


def nothing_of_much() -> bytes:
    """Lists of 2^30 nulls, which need no bytes."""
    offsets = pa.array([0] * 10 + [1 << 30], pa.int32())
    return batches(rows(10, x=pa.ListArray.from_arrays(offsets, pa.nulls(1 << 30))))


HOSTILE = {
    "ten million rows": (lambda: stream_of(rows(10_000_000)), 10_000_000, "claims 10000000 rows"),
    "ten million rows that are said to be ten": (lambda: stream_of(rows(10_000_000)), 10, "has 10000000 rows, and not 10"),
    "a text of 8 KiB in each row": (lambda: stream_of(rows(20_000, "x" * 8_192)), 20_000, "comes to 32"),
    "values of no bytes": (nothing_of_much, 10, "comes to 4"),
    "two batches": (lambda: batches(rows(10), rows(10)), 10, "not of one batch"),
    "no batch": (lambda: batches(rows(0)), 1, "not of one batch|not made of messages|ends within"),
    "dictionaries": (dictionaries, 10, "not of one batch"),
    "no stream": (lambda: b"\xff" * 100, 10, "not made of messages|ends within"),
}


@pytest.mark.parametrize(("stream", "count", "said"), HOSTILE.values(), ids=HOSTILE)
def test_streams_that_come_to_much_are_refused_at_once(limited: Limited, stream: object, count: int, said: str) -> None:
    assert callable(stream)
    outcome = limited.call(read, block(stream(), count))
    assert isinstance(outcome.error, CorruptionError), outcome
    assert re.match(rf"file holds a block of table 'harvest_errors' that cannot be read: it.* ({said})", outcome.error.message)
    assert outcome.grown < 64 * MEBI and outcome.seconds < 5


def test_as_many_rows_as_a_block_has_are_read(limited: Limited) -> None:
    assert limited.call(read, block(stream_of(rows(limits.BLOCK_ROWS)), limits.BLOCK_ROWS)).value == limits.BLOCK_ROWS
    outcome = limited.call(read, block(stream_of(rows(limits.BLOCK_ROWS + 1)), limits.BLOCK_ROWS + 1))
    assert isinstance(outcome.error, CorruptionError)


def test_a_buffer_that_claims_more_than_it_is_costs_nothing(limited: Limited) -> None:
    """What stands before a compressed buffer is how long it is without compression."""
    stream = stream_of(rows(1_000, "some text"))
    at = stream.index((9_000).to_bytes(8, "little"))
    for claimed in (1 << 40, (1 << 63) - 1, -2):
        forged = stream[:at] + claimed.to_bytes(8, "little", signed=True) + stream[at + 8 :]
        outcome = limited.call(read, block(forged, 1_000))
        assert isinstance(outcome.error, CorruptionError) and outcome.grown < 64 * MEBI, outcome


def test_whatever_bytes_a_stream_has_it_is_checked_without_any_other_error() -> None:
    facts = facts_with(WORDS, [{"1": "s", "2": f"{n}"} for n in range(100)], BlockClass.EVENTS)
    (encoded,) = encode_blocks(facts, WORDS, BlockClass.EVENTS)
    stream = bytearray(log_pb2.Block.FromString(encoded.data).rows)
    check_stream(bytes(stream), 100)
    chance = np.random.default_rng(7)
    for _ in range(3_000):
        forged = stream.copy()
        for at in chance.integers(0, len(forged), 3):
            forged[at] = chance.integers(0, 256)
        forged = forged[: chance.integers(1, len(forged) + 1)] if chance.random() < 0.3 else forged
        try:
            check_stream(bytes(forged), 100)
        except ValueError as error:
            assert str(error).startswith("its stream")  # noqa: PT017
