"""Rows of a block changed within Arrow's stream: columns that are not what they were, and buffers whose words are not."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from .fields import flipped

_TYPES = [pa.int64(), pa.uint8(), pa.string(), pa.binary(), pa.binary(16), pa.float64(), pa.bool_(), pa.large_string(), pa.null()]


def changed(stream: bytes, random: Random) -> tuple[bytes, str]:
    """The bytes of a stream with something else in it, and what."""
    rows = read(stream)
    if rows is None or not rows.num_columns:
        return flipped(stream, random), "a byte of what is no stream"
    way = random.random()
    if way < 0.5:
        plain = written(rows, random.choice([None, None, None, "zstd", "lz4"]))
        data = plain
        times = random.choice([1, 1, 1, 3, 10])
        for _ in range(times):
            data = flipped(data, random)
        return data, f"{times} words of a stream of {len(data)} bytes"
    rows, what = _other_columns(rows, random)
    return written(rows, "zstd"), what


def read(stream: bytes) -> pa.Table | None:
    """The rows of a stream; None where it has been changed before, and is none any more."""
    try:
        with pa.ipc.open_stream(stream) as reader:
            rows = reader.read_all()
        rows.validate(full=True)
    except (pa.ArrowException, ValueError, OSError, MemoryError):
        return None
    return rows


def written(rows: pa.Table, compression: str | None) -> bytes:
    """Rows as a stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


def _other_columns(rows: pa.Table, random: Random) -> tuple[pa.Table, str]:
    """The same rows with a column fewer, called otherwise, of another type, or with other values; or other rows."""
    at = random.randrange(rows.num_columns)
    name, column = rows.column_names[at], rows.column(at)
    way = random.randrange(9)
    if way == 0:
        return rows.remove_column(at), f"without {name}"
    if way == 1:
        other = random.choice([*rows.column_names, "", "x", "9999", "_txn", "_end_txn", "_kind", "\x00"])
        return rows.rename_columns(
            [other if n == at else each for n, each in enumerate(rows.column_names)]
        ), f"{name} as {other!r}"
    if way == 2:
        kind = random.choice(_TYPES)
        return rows.set_column(at, name, pa.nulls(len(rows), kind)), f"{name} as nulls of {kind}"
    if way == 3:
        other = random.randrange(rows.num_columns)
        return rows.set_column(at, name, rows.column(other)), f"{name} with what {rows.column_names[other]} has"
    if way == 4:
        return rows.slice(0, random.choice([0, 1, len(rows) // 2])), "fewer rows"
    if way == 5:
        return pa.concat_tables([rows] * random.choice([2, 50])).combine_chunks(), "rows again"
    if way == 6:
        order = list(range(len(rows)))
        random.shuffle(order)
        return rows.take(pa.array(order, pa.int64())), "rows in another order"
    return rows.set_column(at, name, _values(column, random)), f"other values of {name}"


def _values(column: pa.ChunkedArray, random: Random) -> pa.Array:
    """Values of the same type that are least, most, null, or another row's."""
    kind, values = column.type, column.to_pylist()
    extremes: list[object] = [None, *values[:3]]
    if pa.types.is_integer(kind):
        bits = kind.bit_width
        extremes += [
            0,
            1,
            (1 << (bits - 1)) - 1,
            *([-(1 << (bits - 1)), -1] if pa.types.is_signed_integer(kind) else [(1 << bits) - 1]),
        ]
    elif pa.types.is_string(kind):
        extremes += ["", "\x00", "x" * 3000]
    elif pa.types.is_binary(kind):
        extremes += [b"", b"\xff" * 16, bytes(3)]
    for row in range(len(values)):
        if random.random() < random.choice([0.05, 1.0]):
            values[row] = random.choice(extremes)
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return pa.nulls(len(values), kind)
