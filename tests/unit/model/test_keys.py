"""Encoded keys sort as rows do, field by field, and no two of them are equal; prefixes are ranges. Checked against brute force.

They are taken apart into what they were made of.
"""

from __future__ import annotations

import datetime
import itertools
import random
import uuid
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog.errors import InvalidRows
from bucketcatalog.format.definitions import core_tables, table_of
from bucketcatalog.model.keys import (
    EVERYTHING,
    KeyRange,
    after_prefix,
    decode_key,
    encode_array,
    encode_key,
    encode_keys,
    encode_value,
    key_at,
    prefix_range,
)
from bucketcatalog.model.tables import Column, DataType, Table
from bucketcatalog.model.uuids import uuid_text

from ...kit.world import EPOCH, messages, proto

TEXTS = [
    "",
    "\x00",
    "\x00\x00",
    "\x00\x01",
    "\x00\xff",
    "\x01",
    "a",
    "a\x00",
    "a\x00b",
    "a\x01",
    "ab",
    "b",
    "\x7f",
    "é",
    "\uffff",
    "😀",
    "~",
]
BLOBS = [b"", b"\x00", b"\x00\x00", b"\x00\x01", b"\x00\xff", b"\x01", b"\x80", b"\xff", b"\xff\x00", b"\xff\xff", b"a", b"a\x00"]
INTEGERS = {
    DataType.INT32: [-(2**31), -2, -1, 0, 1, 255, 256, 2**31 - 1],
    DataType.INT64: [-(2**63), -(2**32), -1, 0, 1, 2**32, 2**63 - 1],
    DataType.UINT32: [0, 1, 255, 256, 2**31, 2**32 - 1],
    DataType.UINT64: [0, 1, 2**32, 2**63, 2**64 - 1],
    DataType.TIMESTAMP: [-(2**62), -1, 0, 1, 1_700_000_000_000_000],
}
UUIDS = [str(uuid.UUID(int=number)) for number in (0, 1, 1 << 120, int("7f" * 16, 16), int("80" * 16, 16), (1 << 128) - 1)]
VALUES: dict[DataType, list[Any]] = {DataType.STRING: TEXTS, DataType.BYTES: BLOBS, DataType.UUID: UUIDS, **INTEGERS}
SHAPES = [
    (DataType.STRING,),
    (DataType.BYTES,),
    (DataType.UUID, DataType.STRING),
    (DataType.STRING, DataType.STRING),
    (DataType.BYTES, DataType.BYTES),
    (DataType.STRING, DataType.INT64),
    (DataType.BYTES, DataType.UUID),
    (DataType.INT32, DataType.STRING),
    (DataType.UINT32, DataType.UINT64),
    (DataType.TIMESTAMP, DataType.BYTES),
    (DataType.STRING, DataType.BYTES, DataType.STRING),
]


def table(*types: DataType) -> Table:
    columns = tuple(Column(number, f"k{number}", kind) for number, kind in enumerate(types, start=1))
    return Table("t", columns, tuple(column.name for column in columns))


def key(of: Table, values: tuple[Any, ...]) -> bytes:
    return encode_key(of, dict(zip(of.key, values, strict=True)))


def rank(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """What bytes compare as, field by field; UTF-16 or code points would order some of the texts otherwise."""
    return tuple(value.encode() if isinstance(value, str) else value for value in values)


def every(types: tuple[DataType, ...]) -> list[tuple[Any, ...]]:
    rows = list(itertools.product(*(VALUES[kind] for kind in types)))
    return random.Random(7).sample(rows, 400) if len(rows) > 400 else rows


@pytest.mark.parametrize("types", SHAPES, ids=lambda types: "-".join(t.value for t in types))
def test_encoded_keys_sort_as_their_fields_do_and_differ(types: tuple[DataType, ...]) -> None:
    of, rows = table(*types), every(types)

    assert sorted(rows, key=rank) == sorted(rows, key=lambda row: key(of, row))
    assert len({key(of, row) for row in rows}) == len(rows)


@pytest.mark.parametrize("types", SHAPES, ids=lambda types: "-".join(t.value for t in types))
def test_arrays_encode_as_their_values_do(types: tuple[DataType, ...]) -> None:
    of, rows = table(*types), every(types)
    columns = {c.field_name: pa.array([row[i] for row in rows], c.storage_type) for i, c in enumerate(of.columns)}

    assert encode_keys(of, columns).to_pylist() == [key(of, row) for row in rows]


@pytest.mark.parametrize("types", SHAPES, ids=lambda types: "-".join(t.value for t in types))
def test_slices_and_empty_arrays_encode_too(types: tuple[DataType, ...]) -> None:
    of, rows = table(*types), every(types)
    columns = {c.field_name: pa.array([row[i] for row in rows], c.storage_type) for i, c in enumerate(of.columns)}

    assert encode_keys(of, {n: a.slice(3, 4) for n, a in columns.items()}).to_pylist() == [key(of, row) for row in rows[3:7]]
    assert encode_keys(of, {n: a.slice(0, 0) for n, a in columns.items()}).to_pylist() == []


@pytest.mark.parametrize("types", SHAPES, ids=lambda types: "-".join(t.value for t in types))
def test_rows_that_share_leading_values_encode_as_any_others(types: tuple[DataType, ...]) -> None:
    of = table(*types)
    for shared in range(len(types)):
        same = [random.Random(shared).choice(VALUES[kind]) for kind in types[:shared]]
        rows = [(*same, *(VALUES[kind][at] for kind in types[shared:])) for at in (0, 2, 3, 4, 0)]
        columns = {c.field_name: pa.array([row[i] for row in rows], c.storage_type) for i, c in enumerate(of.columns)}
        assert encode_keys(of, columns).to_pylist() == [key(of, row) for row in rows]
        assert [key_at(of, columns, at) for at in range(len(rows))] == [key(of, row) for row in rows]


def test_known_encodings_do_not_change() -> None:
    two = table(DataType.STRING, DataType.STRING)

    assert key(two, ("a\x00b", "c\x00")) == b"a\x00\xffb\x00\x01c\x00"
    assert key(table(DataType.INT32, DataType.UINT64), (-1, 2)) == b"\x7f\xff\xff\xff" + (2).to_bytes(8, "big")
    assert key(table(DataType.UUID, DataType.BYTES), (uuid_text(bytes(range(16))), b"\x00\xff")) == bytes(range(16)) + b"\x00\xff"


@pytest.mark.parametrize(
    "types", [shape for shape in SHAPES if len(shape) > 1], ids=lambda types: "-".join(t.value for t in types)
)
def test_leading_fields_are_exactly_one_range(types: tuple[DataType, ...]) -> None:
    of, rows = table(*types), every(types)

    for width in range(1, len(types) + 1):
        for leading in {row[:width] for row in rows}:
            within = prefix_range(of, leading)
            assert {row for row in rows if holds(within, key(of, row))} == {row for row in rows if row[:width] == leading}


@pytest.mark.parametrize(
    "types",
    [s for s in SHAPES if DataType.STRING in s or DataType.BYTES in s],
    ids=lambda types: "-".join(t.value for t in types),
)
def test_a_prefix_of_the_next_field_is_exactly_one_range(types: tuple[DataType, ...]) -> None:
    of, rows = table(*types), every(types)
    at = next(i for i, kind in enumerate(types) if kind in (DataType.STRING, DataType.BYTES))

    for leading in {row[:at] for row in rows}:
        for prefix in VALUES[types[at]]:
            within = prefix_range(of, leading, prefix)
            wanted = {row for row in rows if row[:at] == leading and rank(row)[at].startswith(rank((prefix,))[0])}
            assert {row for row in rows if holds(within, key(of, row))} == wanted


def holds(within: KeyRange, encoded: bytes) -> bool:
    return within.start <= encoded and (within.stop is None or encoded < within.stop)


@pytest.mark.parametrize("prefix", BLOBS)
def test_after_prefix_is_the_least_bytes_behind_all_that_begin_so(prefix: bytes) -> None:
    behind = after_prefix(prefix)

    assert all((behind is None or blob < behind) == (blob.startswith(prefix) or blob < prefix) for blob in BLOBS)


def test_a_closed_range_ends_with_its_last_key() -> None:
    for first, last in itertools.product(BLOBS, BLOBS):
        assert {blob for blob in BLOBS if holds(KeyRange.closed(first, last), blob)} == {b for b in BLOBS if first <= b <= last}


def test_ranges_overlap_and_intersect_as_sets_do() -> None:
    points = [bytes([n]) for n in range(6)]
    ranges = [KeyRange(a, b) for a in points for b in (*points, None) if b is None or a < b]
    members = {r: {p for p in points if holds(r, p)} for r in ranges}

    for one, two in itertools.product(ranges, ranges):
        common = one.intersect(two)
        assert (members[one] & members[two]) == ({p for p in points if holds(common, p)} if common else set())
    for one in ranges:
        for first, last in itertools.combinations_with_replacement(points, 2):
            assert one.overlaps(first, last) == any(holds(one, p) for p in points if first <= p <= last)
    assert EVERYTHING.intersect(ranges[0]) == ranges[0]


def test_null_key_fields_are_refused() -> None:
    of = table(DataType.STRING, DataType.STRING)

    with pytest.raises(InvalidRows, match=r"k2.*1 rows"):
        encode_keys(of, {"1": pa.array(["a", "b"]), "2": pa.array(["a", None])})
    with pytest.raises(InvalidRows, match=r"k2.*1 rows"):
        key_at(of, {"1": pa.array(["a", "b"]), "2": pa.array(["a", None])}, 1)


def test_a_uuid_is_encoded_as_its_bytes() -> None:
    column = Column(1, "id", DataType.UUID)
    value = uuid.UUID(int=5)

    assert encode_value(column, str(value), last=False) == value.bytes
    assert encode_array(column, pa.array([str(value)]), last=False).to_pylist() == [value.bytes]


KINDS = {
    "a": ("string", "", st.text(st.characters(codec="utf-8"), max_size=5)),
    "b": ("bytes", "", st.binary(max_size=5)),
    "c": ("bytes", "LOGICAL_TYPE_UUID", st.uuids().map(str)),
    "d": ("int64", "LOGICAL_TYPE_TIMESTAMP_MICROS", st.integers(-(10**15), 10**15)),
    "e": ("int32", "", st.integers(-(2**31), 2**31 - 1)),
    "f": ("uint32", "", st.integers(0, 2**32 - 1)),
    "g": ("int64", "", st.integers(-(2**63), 2**63 - 1)),
    "h": ("uint64", "", st.integers(0, 2**64 - 1)),
}


def declared(order: str) -> Any:
    fields = [
        f"{kind} {name} = {number}{f' [(column) = {{type: {logical}}}]' if logical else ''};"
        for number, (name, (kind, logical, _)) in enumerate(KINDS.items(), 1)
    ]
    key = " ".join(f'key: "{name}"' for name in order)
    body = f'message Row {{ option (table) = {{ name: "my.rows" {key} }}; {" ".join(fields)} }}'
    return table_of(messages(proto(body))["Row"])


def shown(name: str, value: Any) -> Any:
    return EPOCH + datetime.timedelta(microseconds=value) if name == "d" else value


@pytest.mark.parametrize("order", ["abcdefgh", "hgfedcba", "bca"])
def test_a_key_is_taken_apart_into_what_it_was_made_of(order: str) -> None:
    table = declared(order)

    @given(st.fixed_dictionaries({name: KINDS[name][2] for name in order}))
    def check(row: dict[str, Any]) -> None:
        assert decode_key(table, encode_key(table, row)) == {name: shown(name, value) for name, value in row.items()}

    check()


@given(st.lists(st.sampled_from(["\0", "\x01", "\xff", "a"])).map("".join))
def test_nuls_inside_of_names_stay(name: str) -> None:
    for table in (core_tables()["buckets"], core_tables()["object_versions"]):
        row = {column.name: name if column.type.value == "string" else UUIDS[0] for column in table.key_columns}
        assert decode_key(table, encode_key(table, row))["name"] == name
