"""Rows as people see them (spec/tables.md)."""

from __future__ import annotations

from typing import Any

from .fold import Version
from .stamps import name_of, text_of, time_of
from .tables import Column, Table, zero


def shown(table: Table, version: Version) -> dict[str, Any]:
    """A row as people see it (spec/tables.md), with what every table shows on request."""
    commit_time, writer, revision = version.stamp[:3]
    row = {}
    for column in sorted(table.columns, key=lambda column: column.number):
        value = version.row.get(column.number)
        if value is None and column.default in (1, 2):
            value = commit_time if column.default == 1 else version.row_stamp[0]
        row[column.name] = _surface(column, value)
    return row | {
        "_version": text_of(name_of(version.stamp)),
        "_commit_timestamp": time_of(commit_time),
        "_writer": writer,
        "_revision": revision,
    }


def _surface(column: Column, value: Any) -> Any:
    if value is None:
        return _surface(column, zero(column)) if column.implicit else None
    if column.shape == "map":
        return [(_surface_one(column.children[0], key), _surface_one(column.children[1], item)) for key, item in value]
    return [_surface_one(column, item) for item in value] if column.shape == "list" else _surface_one(column, value)


def _surface_one(column: Column, value: Any) -> Any:
    if column.type == "timestamp":
        return time_of(value)
    if column.type == "enum":
        return column.symbols.get(value, str(value))
    if column.type == "message":
        return {child.name: _surface(child, value.get(child.number)) for child in column.children}
    return value
