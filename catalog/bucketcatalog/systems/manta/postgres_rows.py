"""Rows of the RFD's tables on their way from PostgreSQL into the core's: shaped into JSON by the server, parsed and converted by Arrow.

``from_postgres`` asks for them by ``selection``, and puts what ``to_core`` makes of them. What PostgreSQL's types allow and the core's do
not is found by the server, row by row, and refused before anything of a batch is committed. Source: RFD 149, the four tables.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from ...errors import InvalidRows
from ...model.arrays import one_chunk
from ...wording import either
from .postgres import TYPES, RfdTable, shown_key

EMPTY, NULL_VALUES = "empty lists and maps", "NULL values of headers"
"""What is mapped: the first to nothing, the others to empty text."""
_TEXT, _TEXTS = pa.string(), pa.list_(pa.string())
_ARROW = {
    **dict.fromkeys(("roles", "sharks", "header_keys", "header_values"), _TEXTS),
    "content_length": pa.int64(),
}
_TIME = pa.timestamp("us", "UTC")
_LIST = "CASE WHEN array_ndims({0}) > 1 THEN NULL ELSE {0} END"
_SHAPED = {"content_md5": "encode({0}, 'hex')", "properties": "{0}::text", "roles": _LIST, "sharks": _LIST}
"""What makes JSON of columns that are no JSON by themselves; lists of lists are refused, and would be none of text."""
_HEADERS = {
    "hstore": ("akeys(headers)", "avals(headers)"),
    "jsonb": (
        "CASE WHEN headers IS NOT NULL THEN coalesce(h.keys, ARRAY[]::text[]) END",
        "CASE WHEN headers IS NOT NULL THEN coalesce(h.items, ARRAY[]::text[]) END",
    ),
}
_JSON_HEADERS = """
LEFT JOIN LATERAL (
    SELECT array_agg(key) AS keys, array_agg(value #>> ARRAY[]::text[]) AS items,
           bool_or(jsonb_typeof(value) NOT IN ('string', 'null')) AS odd
    FROM jsonb_each(CASE WHEN jsonb_typeof(headers::jsonb) = 'object' THEN headers::jsonb END)
) h ON true
"""
_LISTS_ARE_PLAIN = (
    ("array_ndims({0}) > 1 OR array_lower({0}, 1) <> 1", "is no list that begins at 1"),
    ("array_position({0}, NULL) IS NOT NULL", "has a NULL element"),
)
_OUTSIDE = "NOT isfinite({0}) OR {0} < timestamptz '0001-01-01 00:00:00+00' OR {0} >= timestamptz '10000-01-01 00:00:00+00'"
_WRONG = {
    "timestamptz": ((_OUTSIDE, "lies outside of the years 1 to 9999"),),
    "uuid[]": _LISTS_ARE_PLAIN,
    "text[]": _LISTS_ARE_PLAIN,
}
"""Of columns of these types what the core's cannot hold, and what is said of it."""


def selection(table: RfdTable, types: Mapping[str, str], *, nulls_are_empty: bool) -> str:
    """The query that gives rows as ``parsed`` takes them, without a condition; ``types`` are the server's names of those of the columns.

    Its column ``wrong`` says what the core cannot hold of a row, and is NULL where that is nothing.
    """
    names = [name for name in table.columns if name in types]
    shaped = {name: _SHAPED.get(name, "{0}").format(name) for name in names if name != "headers"}
    wrong = [(condition.format(name), f"{name} {why}") for name in names for condition, why in _WRONG.get(TYPES[name], ())]
    wrong += [("octet_length(convert_to(name, 'UTF8')) NOT BETWEEN 1 AND 1024", "name has not 1 to 1,024 bytes")]
    joined = ""
    if "headers" in types:
        shaped["header_keys"], shaped["header_values"] = _HEADERS["hstore" if types["headers"] == "hstore" else "jsonb"]
        if types["headers"] != "hstore":
            joined = _JSON_HEADERS
            wrong.append(("h.odd OR jsonb_typeof(headers::jsonb) <> 'object'", "headers is no object of texts"))
        if not nulls_are_empty:
            wrong.append((f"array_position({shaped['header_values']}, NULL) IS NOT NULL", "headers has a NULL value"))
    if "content_length" in types:
        wrong.append(("content_length < 0", "content_length is negative"))
    cases = " ".join(f"WHEN {condition} THEN '{why}'" for condition, why in wrong)
    shaped["wrong"] = f"CASE {cases} END"
    return f"SELECT {', '.join(f'{value} AS {name}' for name, value in shaped.items())} FROM {table.name} {joined}"


def parsed(data: bytes, types: Mapping[str, str]) -> pa.Table:
    """Rows that the server has given as lines of JSON: numbers and lists as such, all else as text."""
    names = [name for name in types if name != "headers"] + ["wrong"]
    names += ["header_keys", "header_values"] if "headers" in types else []
    schema = pa.schema([(name, _ARROW.get(name, _TEXT)) for name in names])
    if not data:
        return schema.empty_table()
    whole = pj.ReadOptions(use_threads=False, block_size=len(data))  # a row may be of any length
    options = pj.ParseOptions(explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="error")
    return pj.read_json(pa.BufferReader(data), read_options=whole, parse_options=options)


def refuse(table: RfdTable, rows: pa.Table) -> None:
    """``InvalidRows`` names the first row that the core cannot hold."""
    at = pc.index(rows["wrong"].is_valid(), True).as_py()
    if at < 0:
        return
    row = rows.slice(at, 1).to_pylist()[0]
    why = row["wrong"]
    empty = either('hstore_nulls="empty"', "--empty-nulls")
    others = f", or give {empty}, which makes empty text of it" if why.endswith("NULL value") else ""
    raise InvalidRows(
        f"A row of {table.name} is none that a catalog can hold: its {why} ({shown_key(table, row)}).",
        next_step=f"Change or remove it there with SQL{others}; an import that is run again goes on where this one ended.",
    )


def mapped(rows: pa.Table) -> dict[str, int]:
    """How much of the rows becomes something else."""
    lists = [rows[name] for name in ("roles", "sharks", "header_keys") if name in rows.column_names]
    empty = sum(pc.sum(pc.equal(pc.list_value_length(values), 0)).as_py() or 0 for values in lists)
    values = pc.list_flatten(rows["header_values"]).null_count if "header_values" in rows.column_names else 0
    return {EMPTY: empty, NULL_VALUES: values}


def to_core(table: RfdTable, rows: pa.Table) -> pa.Table:
    """The rows as the core's table takes them; the time at which one was deleted is kept beside it."""
    columns = {name: one_chunk(rows[name]) for name in rows.column_names if name != "wrong"}
    for name in ("created", "modified", "deleted_at"):
        if name in columns:
            columns[name] = columns[name].cast(_TIME)
    if "content_md5" in columns:
        columns["content_md5"] = _from_hexadecimal(columns["content_md5"])
    if "header_keys" in columns:
        columns["headers"] = _as_maps(columns.pop("header_keys"), columns.pop("header_values"))
    if table.live is not None:
        deleted_at = iso_texts(columns.pop("deleted_at"))
        if table.of == "objects":
            once = pa.array(np.arange(len(rows) + 1, dtype=np.int32))
            columns["user_metadata"] = pa.MapArray.from_arrays(once, pa.repeat("deleted_at", len(rows)), deleted_at)
        else:
            columns["properties"] = pc.binary_join_element_wise('{"deleted_at":"', deleted_at, '"}', "")
    return pa.table(columns)


def iso_texts(times: pa.Array) -> pa.Array:
    """Times as every output shows them: UTC, to the microsecond."""
    return pc.utf8_replace_slice(times.cast(_TIME).cast(_TEXT), 10, 11, "T")


def _from_hexadecimal(digits: pa.Array) -> pa.Array:
    """Two digits a byte as binary values; null stays null."""
    text = pc.fill_null(digits, "")
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int32, count=len(text) + 1, offset=4 * text.offset)
    data = binascii.unhexlify(memoryview(text.buffers()[2] or b"")[offsets[0] : offsets[-1]])
    starts = np.ascontiguousarray((offsets - offsets[0]) // 2)
    values = pa.Array.from_buffers(pa.binary(), len(text), [None, pa.py_buffer(starts), pa.py_buffer(data)])
    return pc.if_else(digits.is_valid(), values, pa.scalar(None, pa.binary()))


def _as_maps(keys: pa.Array, values: pa.Array) -> pa.Array:
    """Lists of keys and of their values as maps; null and empty ones have no entries."""
    sizes = np.asarray(pc.fill_null(pc.list_value_length(keys), 0))
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    return pa.MapArray.from_arrays(offsets, pc.list_flatten(keys), pc.fill_null(pc.list_flatten(values), ""))
