"""What writers check of a table that is made of a schema, and what such a table keeps of it: in the message that declares its rows."""

from __future__ import annotations

from typing import Any

from ..errors import IncompatibleTable
from ..model.tables import Column, Table
from ..v1 import options_pb2
from .wanted import Limits, Wanted


def keep_limits(field: Any, known: Column) -> None:
    """Say of a field what its column has said of its values."""
    if known.max_bytes:
        _column_of(field).max_bytes = known.max_bytes
    if known.minimum is not None:
        _column_of(field).minimum = known.minimum
    if known.maximum is not None:
        _column_of(field).maximum = known.maximum
    if known.allowed:
        _column_of(field).allowed.extend(known.allowed)


def say_limits(row: Any, limits: Limits) -> None:
    """Say what a row's own columns may hold, in place of what they could so far."""
    fields = {field.name: field for field in row.field}
    said = {"minimum": limits.minimum, "maximum": limits.maximum, "allowed": limits.allowed}
    for what, name, limit in ((what, name, limit) for what, by_name in said.items() for name, limit in by_name.items()):
        column = _column_of(fields[name])
        column.ClearField(what)
        if isinstance(limit, int):
            setattr(column, what, limit)
        elif limit is not None:
            column.allowed.extend(limit)
        if not column.ByteSize():
            fields[name].ClearField("options")


def _column_of(field: Any) -> Any:
    return field.options.Extensions[options_pb2.column]


def say_parent(row: Any, wanted: Wanted, known: Table | None) -> None:
    """Say whose the rows are: a parent stays, and whether it must exist stays as it is where nothing else is said."""
    before = None if known is None else known.parent
    if wanted.parent is None and before is None:
        if wanted.parent_must_exist is not None:
            raise IncompatibleTable(
                f"Table {wanted.name!r} has no parent that could have to exist.",
                next_step='Name it, and the column with its id: parent=("jobs.runs", "run_id").',
            )
        return
    parent = row.options.Extensions[options_pb2.table].parent
    if wanted.parent is not None:
        parent.table, parent.field = wanted.parent
    elif before is not None:
        parent.table, parent.field = before.table, wanted.renamed.get(before.column, before.column)
    must_exist = wanted.parent_must_exist
    parent.must_exist = must_exist if must_exist is not None else before is not None and before.must_exist
