"""What a user wants of a table: its schema, and what becomes of the columns that it has and the schema has not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ..errors import IncompatibleTable
from ..model.tables import Column


@dataclass(frozen=True)
class Limits:
    """What columns of a table may hold, by name: the least value, the largest, or those that are allowed; None takes the limit away.

    Allowed integers are in decimal. Columns that have no entry keep what they have.
    """

    minimum: Mapping[str, int | None] = field(default_factory=dict)
    maximum: Mapping[str, int | None] = field(default_factory=dict)
    allowed: Mapping[str, Sequence[str] | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a user says of a table; what is None is as the table has it.

    ``parent`` is a table and the column that has the id of a row of it.
    ``renamed`` maps names of columns to what they are from now on; ``removed`` are those that the schema leaves out because they are to go.
    """

    name: str
    schema: pa.Schema
    key: tuple[str, ...]
    id: str | None = None
    keep_tombstones: bool | None = None
    tombstone_retention_seconds: int | None = None
    limits: Limits = Limits()
    parent: tuple[str, str] | None = None
    parent_must_exist: bool | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    removed: tuple[str, ...] = ()


def renamed(wanted: Wanted, known: Mapping[str, Column]) -> Mapping[str, Column]:
    """The known columns by what they are called from now on, also those that were removed. What has been renamed before stays so."""
    shown = {name for name, column in known.items() if not column.removed}
    moved: dict[str, str] = {}
    for old, new in wanted.renamed.items():
        if new not in wanted.schema.names or new in moved.values():
            raise _not_renamed(
                wanted, old, new, f"{'two columns' if new in moved.values() else 'no column of the schema'} would be that"
            )
        if old in shown and new in shown and new not in wanted.renamed:
            raise _not_renamed(wanted, old, new, "the table has both")
        if old not in shown and new not in shown:
            raise _not_renamed(wanted, old, new, "the table has neither")
        if old in shown:
            moved[old] = new
    stay = {name: column for name, column in known.items() if name not in moved}
    return stay | {new: known[old] for old, new in moved.items()}


def refuse_left_out(wanted: Wanted, columns: Mapping[str, Column]) -> None:
    """``IncompatibleTable`` where the schema leaves out columns that are not said to go, or has one that is; what went before may be."""
    left_out = [name for name, column in columns.items() if not column.removed and name not in wanted.schema.names]
    unsaid = [name for name in left_out if name not in wanted.removed]
    if unsaid:
        raise IncompatibleTable(
            f"The schema for table {wanted.name!r} leaves out its columns {', '.join(unsaid)}.",
            next_step=f"Add them to it, or have them removed: remove={unsaid}.",
        )
    kept = [name for name in wanted.removed if name in wanted.schema.names or name not in columns]
    if kept:
        why = "is in its schema" if kept[0] in wanted.schema.names else "is none of its columns"
        raise IncompatibleTable(
            f"Column {kept[0]!r} of table {wanted.name!r} cannot be removed: it {why}.",
            next_step="Name in remove what the schema leaves out.",
        )


def _not_renamed(wanted: Wanted, old: str, new: str, why: str) -> IncompatibleTable:
    return IncompatibleTable(
        f"Column {old!r} of table {wanted.name!r} cannot be renamed to {new!r}: {why}.",
        next_step="Map what a column is called in the table to what the schema calls it.",
    )
