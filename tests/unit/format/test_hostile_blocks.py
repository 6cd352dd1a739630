"""Blocks within messages whose checksums are right and whose Arrow streams are forged: refused by name, and no process ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pytest

from bucketcatalog.errors import CorruptionError
from bucketcatalog.format.blocks import block_header, decode_block
from bucketcatalog.format.columns import rows_of_message, stored_rows
from bucketcatalog.format.definitions import core_tables
from bucketcatalog.format.headers import BlockClass, header_message
from bucketcatalog.format.sealing import seal_block
from bucketcatalog.v1 import log_pb2

from ...kit.fuzzing import streams
from ...kit.limited import MEBI, Limited
from ...kit.storing import facts_with

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what a process takes is asked of Linux")

WORDS = core_tables()["harvest_errors"]
ROWS = 1_000
OFFSETS = np.arange(0, 4 * ROWS + 1, 4, dtype=np.int32)
"""Of the column of texts of four bytes."""


def forged(change: Callable[[np.ndarray], None] = lambda offsets: None, text: str = "text") -> bytes:
    """A block, and its stream, whose offsets of texts were changed."""
    rows = [{"1": "s", "2": f"{n:06}", "4": text} for n in range(ROWS)]
    facts = facts_with(WORDS, rows)
    sink = pa.BufferOutputStream()
    stored = rows_of_message(stored_rows(facts, WORDS, BlockClass.LIVE))
    with pa.ipc.new_stream(sink, stored.schema) as writer:
        writer.write_batch(stored.combine_chunks().to_batches()[0])
    stream = sink.getvalue().to_pybytes()
    offsets = OFFSETS.copy()
    change(offsets)
    assert stream.count(OFFSETS.tobytes()) == 1
    header = block_header(facts, WORDS, BlockClass.LIVE)
    message = log_pb2.Block(header=header_message(header), rows=stream.replace(OFFSETS.tobytes(), offsets.tobytes()))
    return seal_block(message.SerializeToString(deterministic=True))[0]


def named(names: Callable[[list[str]], list[str]]) -> bytes:
    """A block whose columns have other names."""
    message = log_pb2.Block.FromString(forged())
    rows = streams.read(message.rows)
    assert rows is not None
    message.rows = streams.written(rows.rename_columns(names(rows.column_names)), "zstd")
    return seal_block(message.SerializeToString(deterministic=True))[0]


def read(data: bytes) -> list[str]:
    """The texts, as people see them."""
    texts: list[str] = decode_block(data, WORDS, "file").rows["4"].to_pylist()
    return texts


@pytest.fixture(scope="module")
def limited() -> Iterator[Limited]:
    with Limited() as limited:
        limited.prepare(read, forged())
        yield limited


def at(place: int, value: int) -> Callable[[np.ndarray], None]:
    return lambda offsets: offsets.__setitem__(place, value)


FORGED = {
    "a text that ends beyond its buffer": at(-1, 2**31 - 1),
    "one that ends a little beyond it": at(-1, 4 * ROWS + 64),
    "one that begins before it": at(0, -4_096),
    "one that begins after its end": at(500, 0),
    "one in the middle that is elsewhere": at(500, 2**30),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_wrong_offsets_are_refused_and_read_no_memory_of_the_process(
    limited: Limited, change: Callable[[np.ndarray], None]
) -> None:
    outcome = limited.call(read, forged(change))
    assert isinstance(outcome.error, CorruptionError), outcome
    assert outcome.error.message.startswith("file holds a block of table 'harvest_errors' that cannot be read")
    assert outcome.grown < 64 * MEBI


def test_text_that_is_no_utf8_is_refused(limited: Limited) -> None:
    """The offsets are right, and cut letters of two bytes in halves."""
    assert limited.call(read, forged(text="éé")).value == ["éé"] * ROWS
    outcome = limited.call(read, forged(lambda offsets: offsets.__setitem__(slice(1, -1), OFFSETS[1:-1] + 1), text="éé"))
    assert isinstance(outcome.error, CorruptionError), outcome


@pytest.mark.parametrize("columns", [None, ["1", "2"]])
def test_columns_of_one_name_are_refused(columns: list[str] | None) -> None:
    """They say which field each of them is, and are read by their names."""
    assert decode_block(named(lambda names: names), WORDS, "file", columns).rows.num_rows == ROWS
    with pytest.raises(CorruptionError, match="file holds rows of table 'harvest_errors' in which several columns"):
        decode_block(named(lambda names: ["", "", *names[2:]]), WORDS, "file", columns)
