"""Tables at random: their declarations, rows of extreme values, and what is shown of these, as plainly as they can be said.

Nothing here is shared with the engine. One seed makes one table, whoever asks; so Spark's tests can have the same.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor

from bucketcatalog.v1 import options_pb2

NAME, PARENTS = "lab.random", "lab.parents"
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)
LARGEST = (2 - 2**-23) * 2.0**127
SYMBOLS = {0: "NOUGHT", 1: "ONE", -5: "LESS", (1 << 31) - 1: "MOST", -(1 << 31): "LEAST"}
_Field = descriptor_pb2.FieldDescriptorProto


def single(value: float) -> float:
    """The float of 32 bits that is nearest."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def from_bits(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


@dataclass(frozen=True)
class Kind:
    """What a value is: its type on the wire, extreme values, and more of them; ``orders``: whether it can be in a key, and in ranges."""

    wire: int
    values: tuple[Any, ...]
    logical: int = 0
    keys: bool = False
    orders: bool = False
    prefixes: bool = False
    more: Callable[[Random], Any] | None = None


def _integers(wire: int, bits: int, signed: bool) -> Kind:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    values = {low, low + 1, high - 1, high, 0, 1, 255, 256, *((-1, -2) if signed else ())}
    return Kind(wire, tuple(sorted(values)), keys=True, orders=True, more=lambda random: random.randint(low, high))


_TEXTS = (
    "",
    "a",
    "b",
    "ab",
    "a\x00b",
    "\x00",
    "\x7f",
    "\x80",
    "\u00e9",
    "e\u0301",
    "\uffff",
    "\U0001f600",
    "\U0010ffff",
    "x" * 10_000,
)
_BYTES = (b"", b"\x00", b"\x00\xff", b"a", b"ab", b"\x80", b"\xff", b"\xff\xff", b"x" * 10_000)
_NO_NUMBERS = (from_bits(0x7FF8_0000_2000_0000), from_bits(0xFFF8_0001_4000_0000))  # bits that a float has room for too
_BOTH = (0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), 2.0**-149, -(2.0**-149), 2.0**-126, LARGEST, -LARGEST, *_NO_NUMBERS)
_TIMES = (
    datetime.datetime.min.replace(tzinfo=datetime.UTC),
    EPOCH - MICROSECOND,
    EPOCH,
    EPOCH + MICROSECOND,
    datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC),
    datetime.datetime.max.replace(tzinfo=datetime.UTC),
)
_text = {"keys": True, "orders": True, "prefixes": True}
KINDS = {
    "int32": _integers(_Field.TYPE_INT32, 32, True),
    "sint32": _integers(_Field.TYPE_SINT32, 32, True),
    "sfixed32": _integers(_Field.TYPE_SFIXED32, 32, True),
    "int64": _integers(_Field.TYPE_INT64, 64, True),
    "sint64": _integers(_Field.TYPE_SINT64, 64, True),
    "sfixed64": _integers(_Field.TYPE_SFIXED64, 64, True),
    "uint32": _integers(_Field.TYPE_UINT32, 32, False),
    "fixed32": _integers(_Field.TYPE_FIXED32, 32, False),
    "uint64": _integers(_Field.TYPE_UINT64, 64, False),
    "fixed64": _integers(_Field.TYPE_FIXED64, 64, False),
    "string": Kind(_Field.TYPE_STRING, _TEXTS, **_text, more=lambda random: "".join(random.choices("ab\x00\u00e9", k=4))),
    "bytes": Kind(_Field.TYPE_BYTES, _BYTES, **_text, more=lambda random: random.randbytes(random.randint(0, 3))),
    "bool": Kind(_Field.TYPE_BOOL, (False, True)),
    "float": Kind(_Field.TYPE_FLOAT, (*_BOTH, single(0.1)), orders=True),
    "double": Kind(_Field.TYPE_DOUBLE, (*_BOTH, 0.1, 5e-324, 1.7976931348623157e308), orders=True),
    "enum": Kind(_Field.TYPE_ENUM, (*SYMBOLS.values(), 77)),
    "uuid": Kind(
        _Field.TYPE_BYTES,
        tuple(str(UUID(int=number)) for number in (0, 1, 1 << 127, (1 << 128) - 1)),
        options_pb2.LOGICAL_TYPE_UUID,
        keys=True,
        orders=True,
        more=lambda random: str(UUID(int=random.getrandbits(128))),
    ),
    "time": Kind(
        _Field.TYPE_INT64,
        _TIMES,
        options_pb2.LOGICAL_TYPE_TIMESTAMP_MICROS,
        keys=True,
        orders=True,
        more=lambda random: EPOCH + random.randint(-(1 << 50), 1 << 50) * MICROSECOND,
    ),
    "json": Kind(_Field.TYPE_STRING, ("{}", "null", '"\u00e9"', "[1e400]", " 1 "), options_pb2.LOGICAL_TYPE_JSON, prefixes=True),
    "cut": Kind(_Field.TYPE_STRING, ("", "w@0", "\u00e9"), options_pb2.LOGICAL_TYPE_CUT),
}
INTEGERS = tuple(name for name, kind in KINDS.items() if kind.keys and isinstance(kind.values[0], int))
MAP_KEYS = ("string", "bool", *INTEGERS)
_UNSET: dict[str, Any] = {
    **dict.fromkeys(("string", "json", "cut"), ""),
    "bytes": b"",
    "bool": False,
    "enum": SYMBOLS[0],
    "uuid": str(UUID(int=0)),
    "time": EPOCH,
    "float": 0.0,
    "double": 0.0,
}


@dataclass(frozen=True)
class Column:
    """A field: ``form`` is key, plain (no presence), optional, list or map; a message has ``children``. ``default``: created, modified."""

    number: int
    kind: str
    form: str
    children: tuple[Column, ...] = ()
    map_key: str = ""
    default: int = 0

    @property
    def name(self) -> str:
        return f"f{self.number}"

    @property
    def is_single(self) -> bool:
        """Whether it can be compared with values."""
        return self.form in ("key", "plain", "optional") and self.kind != "message"

    def draw(self, random: Random) -> Any:
        """A value to give, or None."""
        if self.form == "map":
            keys = {random.choice(KINDS[self.map_key].values) for _ in range(random.randint(0, 3))}
            return [(key, self._one(random)) for key in keys]
        if self.form == "list":
            return [self._one(random) for _ in range(random.randint(0, 3))]
        return None if self.form != "key" and random.random() < 0.25 else self._one(random)

    def _one(self, random: Random) -> Any:
        if self.kind == "message":
            return {child.name: value for child in self.children if (value := child.draw(random)) is not None}
        kind = KINDS[self.kind]
        return kind.more(random) if self.form == "key" and kind.more and random.random() < 0.5 else random.choice(kind.values)

    def shown(self, value: Any) -> Any:
        """What people see of a given value."""
        if self.form == "map":
            return sorted(((key, self._shown(item)) for key, item in value), key=lambda pair: pair[0]) if value else None
        if self.form == "list":
            return [self._shown(item) for item in value] if value else None
        if value is None:
            return _UNSET.get(self.kind, 0) if self.form == "plain" and self.kind != "message" else None
        return self._shown(value)

    def _shown(self, value: Any) -> Any:
        if self.kind == "message":
            return {child.name: child.shown(value.get(child.name)) for child in self.children}
        return str(value) if self.kind == "enum" else value


@dataclass(frozen=True)
class Sum:
    """A declared sum."""

    name: str
    column: Column | None
    group: tuple[Column, ...]


@dataclass(frozen=True)
class Declared:
    """A table at random. Its first column behind the key is an ``int64`` without extremes, for tests to tell rows apart by."""

    descriptor: Descriptor
    columns: tuple[Column, ...]
    key: tuple[Column, ...]
    serial: Column
    fixed: tuple[Column, ...] = ()
    sums: tuple[Sum, ...] = ()
    keeps_tombstones: bool = True
    by_name: Mapping[str, Column] = field(default_factory=dict)

    @property
    def descriptors(self) -> list[Descriptor]:
        """The table's, and that of its parent where it has one."""
        return list(self.descriptor.file.message_types_by_name.values())

    def keys(self, random: Random, count: int) -> list[dict[str, Any]]:
        """Up to so many different keys, in order."""
        drawn = {self.order(key): key for key in ({c.name: c.draw(random) for c in self.key} for _ in range(count))}
        return [drawn[order] for order in sorted(drawn)]

    def order(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """What rows are ordered by."""
        return tuple(rank(row[column.name]) for column in self.key)

    def row(self, random: Random, key: Mapping[str, Any], serial: int) -> dict[str, Any]:
        """A row to put under a key."""
        drawn = {column.name: column.draw(random) for column in self.columns if column.name not in key}
        return {**key, **{name: value for name, value in drawn.items() if value is not None}, self.serial.name: serial}

    def shown(self, row: Mapping[str, Any], created: Any = None, modified: Any = None) -> dict[str, Any]:
        """What people see of a row whose PUT and last event were at these times."""
        times = {options_pb2.COLUMN_DEFAULT_CREATED: created, options_pb2.COLUMN_DEFAULT_MODIFIED: modified}
        found = {}
        for column in self.columns:
            value = row.get(column.name)
            found[column.name] = column.shown(times.get(column.default) if value is None else value)
        return found


def declared(seed: int) -> Declared:
    """The table of a seed."""
    random = Random(seed)
    numbers = iter(random.sample(range(1, 400), 60))
    key = tuple(
        Column(next(numbers), random.choice([name for name, kind in KINDS.items() if kind.keys]), "key")
        for _ in range(random.choice((1, 1, 2, 3)))
    )
    serial = Column(next(numbers), "int64", "optional")
    others = [_column(numbers, random, 2) for _ in range(random.randint(3, 10))]
    times = [
        Column(next(numbers), "time", "optional", default=default)
        for default in (options_pb2.COLUMN_DEFAULT_CREATED, options_pb2.COLUMN_DEFAULT_MODIFIED)
        if random.random() < 0.3
    ]
    columns = sorted((*key, serial, *others, *times), key=lambda column: column.number)
    fixed = [column for column in others if column.is_single and KINDS[column.kind].keys and random.random() < 0.15]
    summed = [column for column in columns if column.is_single and column.kind in INTEGERS]
    groups = [c for c in columns if c.is_single and c.kind not in ("float", "double") and not c.default]
    sums = tuple(
        Sum(
            f"sum {at}",
            random.choice([None, *summed]) if at else serial,
            tuple(
                random.sample(list(key), random.randint(1, len(key)))
                if at % 2
                else random.sample(groups, min(len(groups), at // 2))
            ),
        )
        for at in range(random.randint(0, 5))
    )
    drops = random.random() < 0.15
    options = options_pb2.TableOptions(
        name=NAME,
        key=[column.name for column in key],
        data_reference=[column.name for column in fixed],
        sums=[
            options_pb2.Sum(name=s.name, field=s.column.name if s.column else "", group=[c.name for c in s.group]) for s in sums
        ],
        tombstones=options_pb2.TOMBSTONES_DROPPED if drops else options_pb2.TOMBSTONES_UNSPECIFIED,
    )
    if random.random() < 0.5:
        before = [column.name for column in key if random.random() < 0.3]
        options.orders.add(name="ended", fields=[*before, "deleted_at"], of_tombstones=True)
    if random.random() < 0.3:
        options.parent.table, options.parent.field = PARENTS, random.choice(key).name
    return Declared(
        descriptor=_descriptor(columns, options),
        columns=tuple(columns),
        key=key,
        serial=serial,
        fixed=tuple(fixed),
        sums=sums,
        keeps_tombstones=not drops,
        by_name={column.name: column for column in columns},
    )


def _column(numbers: Any, random: Random, depth: int) -> Column:
    form = random.choice(("plain", "plain", "optional", "optional", "list", "map"))
    kinds = [name for name, kind in KINDS.items() if form != "map" or not kind.logical]  # no option says what a map's values are
    kind = random.choice([*kinds, *(["message"] * 3 if depth else [])])
    children = tuple(_column(numbers, random, depth - 1) for _ in range(random.randint(1, 3))) if kind == "message" else ()
    return Column(next(numbers), kind, form, children, random.choice(MAP_KEYS) if form == "map" else "")


def _descriptor(columns: Sequence[Column], options: Any) -> Descriptor:
    pool = descriptor_pool.DescriptorPool()
    for known in (descriptor_pb2.DESCRIPTOR, options_pb2.DESCRIPTOR):
        pool.AddSerializedFile(known.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(name="random.proto", package="lab", syntax="proto3")
    file.dependency.append("bucketcatalog/v1/options.proto")
    kind = file.enum_type.add(name="Kind")
    for number, symbol in SYMBOLS.items():
        kind.value.add(name=symbol, number=number)
    row = file.message_type.add(name="Row")
    row.options.Extensions[options_pb2.table].CopyFrom(options)
    _add_fields(row, ".lab.Row", columns)
    for column in (column for column in columns if column.name == options.parent.field):
        parent = file.message_type.add(name="Parent")
        parent.options.Extensions[options_pb2.table].CopyFrom(options_pb2.TableOptions(name=PARENTS, key=["f1"], id="f1"))
        _add_fields(parent, ".lab.Parent", [Column(1, column.kind, "key")])
    pool.AddSerializedFile(file.SerializeToString())
    return pool.FindMessageTypeByName("lab.Row")


def _add_fields(message: Any, path: str, columns: Sequence[Column]) -> None:
    for column in columns:
        added = message.field.add(name=column.name, number=column.number, label=_Field.LABEL_OPTIONAL)
        if column.form in ("list", "map"):
            added.label = _Field.LABEL_REPEATED
        if column.form == "optional":
            added.proto3_optional, added.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{column.name}")
        kind = KINDS.get(column.kind)
        said = added.options.Extensions[options_pb2.column]
        said.default = column.default
        if column.form != "map":
            said.type = kind.logical if kind else 0
            _set_type(added, message, path, column)
            continue
        entry = message.nested_type.add(name=f"F{column.number}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=KINDS[column.map_key].wire)
        value = entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL)
        _set_type(value, message, path, column)
        added.type, added.type_name = _Field.TYPE_MESSAGE, f"{path}.{entry.name}"


def _set_type(added: Any, message: Any, path: str, column: Column) -> None:
    if column.kind == "message":
        inner = message.nested_type.add(name=f"M{column.number}")
        _add_fields(inner, f"{path}.{inner.name}", column.children)
        added.type, added.type_name = _Field.TYPE_MESSAGE, f"{path}.{inner.name}"
        return
    added.type = KINDS[column.kind].wire
    if column.kind == "enum":
        added.type_name = ".lab.Kind"


def bits(value: Any) -> Any:
    """A value in which what differs in a bit is not equal, and a number never equals a truth."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, Mapping):
        return {name: bits(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [bits(item) for item in value]
    return (type(value).__name__, value) if isinstance(value, (bool, int)) else value


def rank(value: Any) -> Any:
    """What values of one column are compared by."""
    if isinstance(value, float):
        return (1, 0.0) if value != value else (0, value)
    return value.encode() if isinstance(value, str) else value
