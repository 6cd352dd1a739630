"""Tables as their definitions say, and the bytes that their keys are ordered by (spec/tables.md, spec/keys.md)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from google.protobuf import descriptor_pool, message_factory

from .sealing import extension

_WIDTHS = {"int32": (4, True), "uint32": (4, False), "int64": (8, True), "uint64": (8, False)}
_CARRIED = {1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "uint64", 7: "uint32", 8: "bool", 9: "string"}
_CARRIED |= {11: "message", 12: "bytes", 13: "uint32", 14: "enum", 15: "int32", 16: "int64", 17: "int32", 18: "int64"}
_ZERO = {"string": "", "bytes": b"", "uuid": str(UUID(int=0)), "bool": False, "float": 0.0, "double": 0.0}


@dataclass(frozen=True)
class Column:
    """A field of a row message (spec/tables.md)."""

    number: int
    name: str
    type: str
    shape: str
    implicit: bool
    default: int
    children: tuple[Column, ...]
    symbols: dict[int, str] = field(hash=False)


@dataclass(frozen=True)
class Table:
    """A table as its definition says."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[Column, ...]
    fixed: frozenset[int]
    drops_tombstones: bool
    row: Any


def table_of(definition: Any) -> Table:
    """The table of a TableDefinition."""
    types: dict[str, Any] = {}
    pool = descriptor_pool.DescriptorPool()
    for file in definition.files.file:
        pool.AddSerializedFile(file.SerializeToString())
        for item in (*file.message_type, *file.enum_type):
            _collect(types, f".{file.package}" if file.package else "", item)
    found = types[f".{definition.message}"]
    options = found.options.Extensions[extension("table")]
    columns = tuple(_column(item, types, set(options.key)) for item in found.field)
    by_name = {column.name: column for column in columns}
    fixed = {*options.key, *options.data_reference, *([options.id] if options.id else [])}
    row = message_factory.GetMessageClass(pool.FindMessageTypeByName(definition.message))
    return Table(
        name=options.name,
        columns=columns,
        key=tuple(by_name[name] for name in options.key),
        fixed=frozenset(by_name[name].number for name in fixed),
        drops_tombstones=options.tombstones == 2,
        row=row,
    )


def _collect(types: dict[str, Any], prefix: str, item: Any) -> None:
    types[f"{prefix}.{item.name}"] = item
    for nested in (*getattr(item, "nested_type", ()), *getattr(item, "enum_type", ())):
        _collect(types, f"{prefix}.{item.name}", nested)


def _column(item: Any, types: dict[str, Any], key: set[str]) -> Column:
    options = item.options.Extensions[extension("column")]
    logical = {1: "uuid", 2: "timestamp", 3: "string", 4: "string"}.get(options.type)
    carried = _CARRIED[item.type]
    target = types.get(item.type_name)
    repeated = item.label == 3
    is_map = item.type == 11 and target.options.map_entry
    return Column(
        number=item.number,
        name=item.name,
        type=logical or carried,
        shape="map" if is_map else "list" if repeated else "one",
        implicit=not repeated and item.type != 11 and not item.proto3_optional and item.name not in key,
        default=options.default,
        children=tuple(_column(child, types, set()) for child in target.field) if item.type == 11 else (),
        symbols={value.number: value.name for value in target.value} if item.type == 14 else {},
    )


def merged(older: Table, newer: Table) -> Table:
    """``newer`` with the columns that only ``older`` has."""
    numbers = {column.number for column in newer.columns}
    return replace(newer, columns=(*newer.columns, *(column for column in older.columns if column.number not in numbers)))


def zero(column: Column) -> Any:
    return _ZERO.get(column.type, 0)


def encoded_key(table: Table, row: dict[int, Any]) -> bytes:
    """The bytes that keys are ordered by (spec/keys.md)."""
    parts = []
    for column in table.key:
        value, last = row[column.number], column is table.key[-1]
        if column.type == "timestamp" or column.type in _WIDTHS:
            width, signed = _WIDTHS["int64" if column.type == "timestamp" else column.type]
            parts.append((value + (1 << 8 * width - 1 if signed else 0)).to_bytes(width, "big"))
            continue
        raw = UUID(value).bytes if column.type == "uuid" else value.encode() if isinstance(value, str) else value
        parts.append(raw if last or column.type == "uuid" else raw.replace(b"\x00", b"\x00\xff") + b"\x00\x01")
    return b"".join(parts)
