"""The files of a log as messages, and messages as files again, with every checksum right; segments the same, and structs within these."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError, Message

from bucketcatalog.format.sealing import SEALED_BYTES, digest, seal, seal_block
from bucketcatalog.v1 import log_pb2

from ..forging import Forgery, Page
from ..thrift import BINARY, I16, I32, I64, LIST, STRUCT, List, Struct, Value, varint
from . import streams
from .fields import Pool, change, flipped

_CHECKSUM = "checksum"
_BLOCKS_TAG = varint(log_pb2.Transaction.BLOCKS_FIELD_NUMBER << 3 | 2)
_DEFINITION, _REPETITION = 5, 6
_HUGE = 2_000_000


def opened(name: str, data: bytes) -> Any:
    """The transaction or checkpoint that a file holds."""
    kind = log_pb2.Transaction if name.endswith(".txn") else log_pb2.Checkpoint
    return kind.FromString(data[:-SEALED_BYTES])


def closed(message: Any) -> bytes:
    """The bytes of a file, every block in it with the right checksum."""
    copy = type(message)()
    copy.CopyFrom(message)
    copy.ClearField(_CHECKSUM)
    if isinstance(message, log_pb2.Checkpoint):
        return seal(copy.SerializeToString(deterministic=True))
    blocks = [block_bytes(block) for block in copy.blocks]
    del copy.blocks[:]
    parts = [copy.SerializeToString(deterministic=True)]
    for block in blocks:
        parts += [_BLOCKS_TAG, varint(len(block)), block]
    return seal(b"".join(parts))


def block_bytes(block: Any) -> bytes:
    """A block as it stands in a file."""
    copy = log_pb2.Block()
    copy.CopyFrom(block)
    copy.ClearField(_CHECKSUM)
    return seal_block(copy.SerializeToString(deterministic=True))[0]


def change_block(message: Any, random: Random, pool: Pool) -> str | None:
    """Change one of the blocks of a transaction, or of the runs of a checkpoint; None where it has none."""
    if isinstance(message, log_pb2.Transaction):
        if not message.blocks:
            return None
        at = random.randrange(len(message.blocks))
        return f"block {at}: {_change_one(message.blocks[at], random, pool)}"
    runs = [run for run in message.runs if run.blocks]
    if not runs:
        return None
    run = random.choice(runs)
    at = random.randrange(len(run.blocks))
    block = _block(run.blocks[at])
    if block is None:
        run.blocks[at] = flipped(run.blocks[at], random)
        return f"a byte of block {at}"
    what = _change_one(block, random, pool)
    run.blocks[at] = block_bytes(block)
    if random.random() < 0.5:
        run.run.rows = sum(found.header.rows for each in run.blocks if (found := _block(each)) is not None) % (1 << 64)
    return f"block {at} of a run of {run.run.table}: {what}"


def _block(data: bytes) -> Any:
    """A block; None where it has been changed before, and is none any more."""
    try:
        return log_pb2.Block.FromString(data)
    except DecodeError:
        return None


def _change_one(block: Any, random: Random, pool: Pool) -> str:
    way = random.random()
    if way < 0.15:
        return change(block.header, random, pool)
    before = streams.read(block.rows)
    if way < 0.16 and before is not None and len(before):
        return _huge(block, before)
    block.rows, what = streams.changed(block.rows, random)
    if random.random() < 0.7 and (after := streams.read(block.rows)) is not None:
        block.header.rows = len(after)
    return what


def _huge(block: Any, rows: pa.Table) -> str:
    """A row so many times that memory would be short, in a few kilobytes."""
    schema = pa.schema(list(rows.schema)[:3])
    columns = {name: pa.repeat(rows.column(name)[0], _HUGE) for name in schema.names}
    block.rows = streams.written(pa.table(columns, schema), "zstd")
    block.header.rows = _HUGE
    return f"{_HUGE} rows of one"


def change_segment(forgery: Forgery, random: Random, pool: Pool) -> str:
    """Change something in a segment that was taken apart: its index, footer, filters, or a page."""
    way = random.random()
    if way < 0.25:
        return f"index.{change(forgery.index, random, pool)}"
    if way < 0.35:
        seed = random.getrandbits(32)
        forgery.last.append(lambda: change(forgery.index, Random(seed), pool))
        return f"index, once it was in its place: {seed}"
    if way < 0.5:
        return f"footer.{change_struct(forgery.footer, random)}"
    if way < 0.6:
        seed = random.getrandbits(32)
        forgery.last.append(lambda: change_struct(forgery.footer, Random(seed)))
        return f"footer, once it was in its place: {seed}"
    if way < 0.65 and forgery.filters:
        filters = log_pb2.KeyFilters.FromString(forgery.filters[:-SEALED_BYTES])
        what = change(filters, random, pool)
        filters.ClearField(_CHECKSUM)
        forgery.filters = seal(filters.SerializeToString(deterministic=True))
        forgery.index.filters_digest = digest(forgery.filters)
        return f"filters.{what}"
    group = random.choice(forgery.chunks)
    chunk = random.choice(group)
    if way < 0.68:
        group[group.index(chunk)] = random.choice(random.choice(forgery.chunks))
        return f"{chunk.name} is another chunk"
    if way < 0.7:
        chunk.pages = chunk.pages * random.choice([0, 2, 100])
        return f"{chunk.name} has {len(chunk.pages)} pages"
    if not chunk.pages:
        return "nothing"
    page = random.choice(chunk.pages)
    if way < 0.8:
        return f"{chunk.name}, a page's header.{change_struct(page.header, random)}"
    return f"{chunk.name}, a page's {_change_page(page, random)}"


def _change_page(page: Page, random: Random) -> str:
    levels = 0 if page.is_dictionary else sum(page.of_kind.get_value(number, 0) for number in (_DEFINITION, _REPETITION))
    repeated = 0 if page.is_dictionary else page.of_kind.get_value(_REPETITION, 0)
    packed = page.data[levels:]
    try:
        size = page.header.get_value(2) - levels
        content = bytes(pa.decompress(packed, size, "zstd", asbytes=True)) if packed else b""
    except (pa.ArrowException, OSError, ValueError):
        page.data = flipped(page.data, random)
        return "bytes"
    repetition, definition = page.data[:repeated], page.data[repeated:levels]
    if random.random() < 0.25 and levels:
        definition = flipped(definition, random)
    else:
        content = flipped(content, random) if random.random() < 0.8 else content[: random.randrange(len(content) + 1)]
    if page.is_dictionary:
        page.hold(content)
    else:
        page.hold_values(definition, content, repetition)
    return "values"


def change_struct(struct: Struct, random: Random) -> str:
    """Change one field of a struct or of one within it."""
    if not struct:
        return "nothing"
    number = random.choice(list(struct))
    kind, value = struct[number]
    if kind == STRUCT and random.random() < 0.9:
        return f"{number}.{change_struct(value, random)}"
    if kind == LIST and value and random.random() < 0.85:
        return f"{number}[]{_change_list(value, random)}"
    if random.random() < 0.15:
        del struct[number]
        return f"{number} dropped"
    if kind in (I16, I32, I64):
        most = {I16: 1 << 15, I32: 1 << 31, I64: 1 << 63}[kind]
        value = random.choice([0, 1, -1, most - 1, -most, value + 1, value - 1, value * 2, 10_000_000])
        struct[number] = Value(kind, min(max(value, -most), most - 1))
    elif kind == BINARY:
        struct[number] = Value(kind, random.choice([b"", b"\xff", value + b"x", flipped(value, random), b"x" * 100_000]))
    elif kind in (1, 2):
        struct[number] = Value(3 - kind, None)
    elif kind == LIST:
        value.claims = random.choice([0, 1, len(value) + 1, (1 << 31) - 1, 10_000_000])
    return f"{number} = {str(struct[number].value)[:40]}"


def _change_list(items: List, random: Random) -> str:
    way = random.random()
    at = random.randrange(len(items))
    if way < 0.08:
        del items[at]
        return f"[{at}] dropped"
    if way < 0.16:
        items.extend([items[at]] * random.choice([1, 1000]))
        return f"[{at}] again"
    if way < 0.2:
        random.shuffle(items)
        return " shuffled"
    if items.kind == STRUCT:
        return f"[{at}].{change_struct(items[at], random)}"
    items[at] = random.choice([0, 1, 5, 8, -1, 1 << 30]) if isinstance(items[at], int) else b"zz"
    return f"[{at}] = {items[at]}"


def collect(message: Message, pool: Pool) -> None:
    """Add the messages within one, and its bytes, to a pool."""
    said: Any = message.ListFields()
    for field, value in said:
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            continue
        for item in value if field.is_repeated else [value]:
            if isinstance(item, Message):
                kept = pool.messages.setdefault(field.message_type.full_name, [])
                if len(kept) < 200:
                    kept.append(item)
                if not field.message_type.full_name.startswith("google."):
                    collect(item, pool)
            elif isinstance(item, bytes) and len(pool.blobs) < 3000:
                pool.blobs.append(item)  # type: ignore[attr-defined]
