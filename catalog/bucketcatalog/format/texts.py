"""Rows as people see them, as lines of text: JSON, and columns that CSV can hold.

JSON is that of ``model.json_values``, byte for byte, made of whole columns: only text with characters that have to be escaped, and numbers
with a fraction, are looked at one by one. CSV has the same words for times and bytes, and the JSON of lists, maps and messages; what is
null is an empty field without quotes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import convert_list, convert_map, hexadecimal
from ..model.arrays import plain as without_dictionary
from ..model.json_values import UNSAFE_IN_JSON, plain, to_json

_ESCAPED = f'["\\\\\x00-\x1f{UNSAFE_IN_JSON}]'
_AT_ONCE = 32 << 20
"""Bytes of rows that become text at once: an array of text holds 2 GiB, and what has to be escaped has six times the characters."""


def json_lines(rows: pa.RecordBatch) -> Iterator[bytes]:
    """The rows as lines of JSON, each an object of all columns, in a few pieces."""
    count = max(1, len(rows) * _AT_ONCE // max(rows.nbytes, _AT_ONCE))
    for start in range(0, len(rows), count):
        part = rows.slice(start, count)
        yield _bytes_of(pc.binary_join_element_wise(_objects(part.schema, part.columns), "\n", ""))


def csv_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of rows that have this one, as CSV can have it."""
    return csv_rows(pa.RecordBatch.from_pylist([], schema=schema)).schema


def csv_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with text in place of what CSV has no words for."""
    return pa.RecordBatch.from_arrays(
        [_csv_column(values) for values in map(without_dictionary, rows.columns)], rows.schema.names
    )


def scalar_texts(values: pa.Array) -> pa.Array:
    """Single values as JSON has them, without the quotes of text; null stays null. Numbers with a fraction are none of these."""
    kind = values.type
    if pa.types.is_timestamp(kind):
        micros = values.cast(pa.timestamp("us", "UTC"), safe=False)
        return pc.replace_substring(micros.cast(pa.string()), " ", "T", max_replacements=1)
    return hexadecimal(values) if _is_bytes(kind) else values.cast(pa.string())


def _csv_column(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_nested(kind):
        return pc.if_else(values.is_valid(), _json(values), pa.scalar(None, pa.string()))
    is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return values if is_plain else scalar_texts(values)


def _json(values: pa.Array) -> pa.Array:
    """The JSON of each value, without nulls."""
    values = without_dictionary(values)
    kind = values.type
    if pa.types.is_map(kind):
        made = convert_map(values, _names, _json)
        entries = pc.binary_join_element_wise(made.keys, made.items, ":")
        found = _enclosed("{", pc.binary_join(_lists(made.offsets, entries, values), ","), "}")
    elif pa.types.is_list(kind):
        found = _enclosed("[", pc.binary_join(convert_list(values, _json), ","), "]")
    elif pa.types.is_struct(kind):
        fields = pa.schema(list(kind))
        objects = (
            _objects(fields, [values.field(at) for at in range(kind.num_fields)]) if len(fields) else _all("{}", len(values))
        )
        found = pc.if_else(values.is_valid(), objects, pa.scalar(None, pa.string()))
    elif pa.types.is_floating(kind):
        return pa.array(map(to_json, map(plain, values.to_pylist())), pa.string())
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        found = _quoted(values)
    elif pa.types.is_timestamp(kind) or _is_bytes(kind):
        found = _enclosed('"', scalar_texts(values), '"')
    else:
        found = scalar_texts(values)
    return pc.fill_null(found, "null")


def _names(keys: pa.Array) -> pa.Array:
    """The keys of maps as names of JSON objects."""
    keys = without_dictionary(keys)
    if pa.types.is_string(keys.type):
        return _quoted(keys)
    return pa.array([to_json(str(key)) for key in keys.to_pylist()], pa.string())


def _objects(schema: pa.Schema, columns: list[pa.Array]) -> pa.Array:
    """Objects of these columns."""
    pieces: list[pa.Array | str] = []
    for name, values in zip(schema.names, columns, strict=True):
        pieces += [f"{',' if pieces else '{'}{to_json(name)}:", _json(values)]
    return pc.binary_join_element_wise(*pieces, "}", "")


def _quoted(values: pa.Array) -> pa.Array:
    """Text as strings of JSON; null stays null."""
    values = values.cast(pa.string())
    escaped = pc.fill_null(pc.match_substring_regex(values, _ESCAPED), False)
    found = _enclosed('"', values, '"')
    if not pc.any(escaped).as_py():
        return found
    return pc.replace_with_mask(found, escaped, pa.array(map(to_json, values.filter(escaped).to_pylist()), pa.string()))


def _enclosed(begin: str, values: pa.Array, end: str) -> pa.Array:
    return pc.binary_join_element_wise(begin, values, end, "")


def _lists(offsets: pa.Array, items: pa.Array, like: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(offsets, items, mask=like.is_null() if like.null_count else None)


def _all(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text), count)


def _is_bytes(kind: pa.DataType) -> bool:
    return any(is_one(kind) for is_one in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary))


def _bytes_of(texts: pa.Array) -> bytes:
    """What all texts, none of which is null, are one after the other."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return bytes(memoryview(texts.buffers()[2])[offsets[0] : offsets[-1]])
