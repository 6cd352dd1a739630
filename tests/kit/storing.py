"""Facts of tables of every type, stored as segments and blocks in a test's hands; values that show every bit."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa

from bucketcatalog import limits
from bucketcatalog.format.blocks import decode_block, encode_blocks
from bucketcatalog.format.definitions import tables_of
from bucketcatalog.format.footers import footer_start
from bucketcatalog.format.headers import BlockClass, BlockPlace
from bucketcatalog.format.parquet import RowGroup, read_row_groups
from bucketcatalog.format.runs import SegmentReference
from bucketcatalog.format.segments import RunBuilder, RunRows, decode_end
from bucketcatalog.log.blocks import read_block
from bucketcatalog.model import paths
from bucketcatalog.model.facts import FACT_COLUMNS, LAST_SEQUENCE, POSITIONS, TRANSACTIONS, Facts, SortedFacts, transaction_table
from bucketcatalog.model.tables import Column, DataType, Shape, Table
from bucketcatalog.model.times import FIRST_TIME, LAST_TIME
from bucketcatalog.model.uuids import uuid_text
from bucketcatalog.store.memory import MemoryStore

from .world import START, messages, proto

UUID = bytes.fromhex("018bcfe56800700089abcdef01234567")
# Bits that a float has room for too.
NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_2000_0000))[0]
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0001_4000_0000))[0]
FRACTIONS = [0.0, -0.0, NAN, OTHER_NAN, float("inf"), float("-inf"), 1.5]
TEXTS = ["", "\x00", "a\x00b", "\U0001f4a9", "é\U0010ffff", "plain", "plain "]
VALUES: dict[DataType, list[Any]] = {
    DataType.STRING: TEXTS,
    DataType.JSON: ["{}", '"\U0001f4a9"', "null"],
    DataType.CUT: ["", "w@0:00000000000000000000000000000000"],
    DataType.BYTES: [b"", b"\x00", b"\x00\xff\xfe", b"\xf0\x9f"],
    DataType.UUID: [uuid_text(bytes(16)), uuid_text(b"\xff" * 16), uuid_text(UUID)],
    DataType.TIMESTAMP: [FIRST_TIME, -1, 0, START, LAST_TIME],
    DataType.BOOL: [False, True],
    DataType.INT32: [-(2**31), -1, 0, 2**31 - 1],
    DataType.INT64: [-(2**63), -1, 0, 2**63 - 1],
    DataType.UINT32: [0, 1, 2**31 - 1, 2**31, 2**32 - 1],
    DataType.UINT64: [0, 1, 2**63 - 1, 2**63, 2**64 - 1],
    DataType.FLOAT: [*FRACTIONS, 2.0**-149, (2 - 2**-23) * 2.0**127],
    DataType.DOUBLE: [*FRACTIONS, 5e-324, 1.7976931348623157e308],
    DataType.ENUM: [-(2**31), -2, 0, 1, 2**31 - 1],
}
"""In storage form, with what is least and most of each type, and what is easily taken for something else."""

_INTEGERS = [f"{kind}{bits}" for kind in ("int", "sint", "uint") for bits in (32, 64)]
_FIXED = ["fixed32", "fixed64", "sfixed32", "sfixed64"]
_PLAIN = ["string", "bytes", "bool", *_INTEGERS, *_FIXED, "float", "double", "Mode"]
_LOGICAL = {
    "uuid": ("bytes", "LOGICAL_TYPE_UUID"),
    "time": ("int64", "LOGICAL_TYPE_TIMESTAMP_MICROS"),
    "json": ("string", "LOGICAL_TYPE_JSON"),
    "cut": ("string", "LOGICAL_TYPE_CUT"),
}


def _fields(start: int) -> str:
    """One value, a list and a map of each type, numbered from ``start`` on, and not one after the other."""
    logical = {kind: (of, f" [(column) = {{type: {option}}}]") for kind, (of, option) in _LOGICAL.items()}
    kinds = {kind: (kind, "") for kind in _PLAIN} | logical
    declared = [f"optional {of} a_{kind} = NUMBER{option};" for kind, (of, option) in kinds.items()]
    declared += [f"repeated {of} several_{kind} = NUMBER{option};" for kind, (of, option) in kinds.items()]
    declared += [f"map<string, {kind}> {kind}_by_name = NUMBER;" for kind in _PLAIN]
    declared += [f"map<{kind}, string> by_{kind} = NUMBER;" for kind in ("bool", *_INTEGERS, *_FIXED)]
    return "\n".join(line.replace("NUMBER", str(start + 3 * at)) for at, line in enumerate(declared))


SOURCE = proto(
    "enum Mode { MODE_UNSPECIFIED = 0; MODE_FAST = 1; MODE_SLOW = -2; }",
    "message Deep { optional string text = 9; repeated double ratios = 2; }",
    f"""
    message Inner {{
      {_fields(7)}
      Deep deep = 1;
      repeated Deep deeps = 2;
      map<int64, Deep> by_number = 3;
    }}
    message Everything {{
      option (table) = {{ name: "all.types" key: "number" key: "name" }};
      Inner inner = 3;
      repeated Inner inners = 1;
      map<string, Inner> by_name = 1000;
      string name = 2000;
      int64 number = 2001;
      {_fields(10)}
    }}
    """,
)


@cache
def everything() -> Table:
    """A table with columns of every type, alone, in lists, in maps and in messages, and these in lists and maps."""
    (table,) = tables_of(messages(SOURCE)["Everything"])
    return table


def bits(value: Any) -> Any:
    """A value in which what differs in a bit is not equal."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return {name: bits(item) for name, item in value.items()}
    return [bits(item) for item in value] if isinstance(value, (list, tuple)) else value


def choices(column: Column) -> list[Any]:
    """Values of a column, null first: everything that its type can hold and null within, each at least once."""
    if column.shape is Shape.MAP:
        key, item = column.children
        keys, items = choices(key)[1:], choices(item)
        pairs = [(keys[at % len(keys)], item) for at, item in enumerate(items)]
        return [None, [], *[[pair] for pair in pairs], [(one, items[-1]) for one in keys]]
    if column.shape is Shape.LIST:
        items = choices(column.one)
        return [None, [], [None], items, items[1:][::-1]]
    if column.type is DataType.MESSAGE:
        below = {child.field_name: choices(child) for child in column.children}
        most = max(map(len, below.values()))
        return [None, {}, *({name: of[at % len(of)] for name, of in below.items()} for at in range(most))]
    return [None, *VALUES[column.type]]


def rows_of(table: Table, count: int) -> list[dict[str, Any]]:
    """Rows in storage form that have distinct keys, and take turns with what their columns can hold, each in a turn of its own."""
    keys = {name: choices(table.by_name[name])[1:] for name in table.key}
    others = {column.field_name: choices(column) for column in table.columns if column.name not in keys}
    made = []
    for n in range(count):
        row, left = {}, n
        for name, of in keys.items():
            row[table.by_name[name].field_name] = of[left % len(of)]
            left //= len(of)
        assert not left  # there are so many keys
        made.append(row | {name: of[(n + at) % len(of)] for at, (name, of) in enumerate(others.items())})
    return made


STAMPS = [
    (FIRST_TIME, "a", 0, b"\x00" * 16),
    (START, "w", limits.REVISIONS - 1, UUID),
    (START, "w.-_w", 5, b"\x80" * 16),
    (LAST_TIME, "w", 6, b"\xff" * 16),
]
_NUMBERS = [0, None, LAST_SEQUENCE]
_FACTS: dict[str, list[Any]] = {
    "_kind": [0, None],
    "_txn": [2, 1, 3, 0],
    "_seq": [0, 1, LAST_SEQUENCE],
    "_row_txn": [None, 3, 1],
    "_row_seq": _NUMBERS,
    "_end_txn": [None, None, 0],
    "_end_seq": _NUMBERS,
    "_end_kind": [None, 0, 1, 2, 3, 4],
    "_name_uuid": [None, UUID, bytes(16)],
    "_name_seq": _NUMBERS,
    "_expects": [None, 0, 1, 2],
    "_expects_uuid": [UUID, None],
    "_expects_seq": _NUMBERS,
    "_end_expects": [None, 0, 1, 2],
    "_end_expects_uuid": [None, b"\xff" * 16],
    "_end_expects_seq": _NUMBERS,
    "_purged": [None, False, True],
}
_ENDS = ("_end_txn", "_end_seq", "_end_kind", "_end_expects", "_end_expects_uuid", "_end_expects_seq")
_NAMES = ("_name_uuid", "_name_seq")
UNSAID = {
    BlockClass.EVENTS: POSITIONS,
    BlockClass.LIVE: (*_ENDS, *_NAMES),
    BlockClass.ENDED: _NAMES,
    BlockClass.SUPERSEDED: _NAMES,
    BlockClass.STUBS: (),
}
"""What is not known, or not meant, of rows of a class."""


def facts_with(
    table: Table,
    rows: Iterable[dict[str, Any]],
    block_class: BlockClass = BlockClass.LIVE,
    stamps: Sequence[tuple[int, str, int, bytes]] = STAMPS,
) -> Facts:
    """Facts with these rows, in storage form, and with all that the rows of the class can say; sorted by key."""
    given = list(rows)
    columns = {c.field_name: pa.array([row.get(c.field_name) for row in given], c.storage_type) for c in table.columns}
    for name, values in _FACTS.items():
        if name not in UNSAID[block_class]:
            said = [values[n % len(values)] for n in range(len(given))]
            if name in POSITIONS:
                said = [None if at is None else at % len(stamps) for at in said]
            columns[name] = pa.array(said, FACT_COLUMNS[name])
    return SortedFacts.of(Facts(transaction_table(stamps), pa.table(columns)), table).facts


def contents(facts: Facts, table: Table, columns: Collection[str] | None = None) -> dict[str, list[Any]]:
    """What facts say, bit for bit, in a form in which what is absent is null and stamps are what their transactions are."""
    wanted = [column for column in table.columns if columns is None or column.field_name in columns]
    said = {column.field_name: bits(facts.stored_column(column).to_pylist()) for column in wanted}
    if columns is not None:
        return said
    stamps = list(zip(*(facts.transactions.column(name).to_pylist() for name in TRANSACTIONS.names), strict=True))
    for name in FACT_COLUMNS:
        values = facts.column(name).to_pylist()
        said[name] = [None if at is None else stamps[at] for at in values] if name in POSITIONS else values
    return said


@dataclass
class Written:
    """A segment: its bytes and what refers to it, with the ranges that were read of it since it was last asked."""

    data: bytes
    reference: SegmentReference
    places: tuple[BlockPlace, ...]
    ranges: list[tuple[int, int]] = field(default_factory=list)

    @property
    def groups(self) -> list[RowGroup]:
        """Its row groups."""
        return [place.row_group for place in self.places if place.row_group is not None]

    @property
    def footer(self) -> bytes:
        """Its footer with what is behind it."""
        return self.data[footer_start(self.data[-8:], len(self.data), "file") :]

    def fetch(self, offset: int, length: int) -> bytes:
        """A range of it, as a store gives it."""
        self.ranges.append((offset, offset + length))
        return self.data[offset : offset + length]

    def read(self, number: int, columns: Sequence[str], *, whole: bool = False) -> pa.Table:
        """Columns of a row group by their names in the file."""
        return read_row_groups([self.groups[number]], columns, self.fetch, lambda: "rows", whole=whole)

    def was_read(self) -> list[tuple[int, int]]:
        """What was read, from where to where, since this was last asked."""
        ranges, self.ranges = self.ranges, []
        return ranges

    def facts(self, table: Table, columns: Collection[str] | None = None) -> list[Facts]:
        """The facts of each row group, as they are read from a store."""
        store = MemoryStore()
        for place in self.places:
            store.put(place.name, self.data)
            break
        return [read_block(store, place, table, columns) for place in self.places]


def written(*rows: RunRows) -> Written:
    """A segment of these rows, all of one run."""
    builder = RunBuilder(rows[0])
    assert all(builder.add(more.facts) for more in rows[1:])
    data, reference = builder.segment(writer="w", database="db", uuid=UUID)
    places = decode_end(data[reference.index_offset :], paths.segment("w", "db", UUID), reference).places
    return Written(data, reference, places)


def through_segment(facts: Facts, table: Table, block_class: BlockClass, read_as: Table | None = None) -> Facts:
    """The facts once they have been a segment of one row group."""
    (found,) = written(RunRows(facts, table, block_class)).facts(read_as or table)
    return found


def through_block(facts: Facts, table: Table, block_class: BlockClass, read_as: Table | None = None) -> Facts:
    """The facts once they have been a block within a message."""
    (block,) = encode_blocks(facts, table, block_class)
    return decode_block(block.data, read_as or table, "file")
