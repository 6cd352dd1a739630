"""The rows of a call in storage form, with how each says which version it means: as rows, or as whole columns.

They come in two forms and mean the same in both: what comes after asks either form the same questions, so that every rule of what rows mean
stands once. Dicts stay rows, as which a transaction carries them: to make columns of one, and a row of these again, would cost half as much
as the rest of its commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import Mask, Positions, one_chunk
from ..model.events import VersionName, version_list
from ..model.facts import EventNames
from ..model.keys import encode_key
from ..model.tables import UUID_BYTES, Column, DataType, Shape, Table


@dataclass(frozen=True)
class GivenRows:
    """Rows one by one, as dicts of what is set, each with the version that it means, else the id of the live one, else neither."""

    table: Table
    rows: Sequence[dict[str, Any]]
    versions: Sequence[VersionName | None]
    row_ids: Sequence[Any]

    def __len__(self) -> int:
        return len(self.rows)

    def named_by(self, table: Table) -> list[dict[str, Any]]:
        """The rows as they may be given again, by the names that a later definition has for their columns; they mean no versions."""
        return [_surface(row, table.shown_columns, self.table.columns) for row in self.rows]

    @property
    def columns(self) -> pa.Table:
        """The row columns that any row has."""
        names = {name for row in self.rows for name in row}
        wanted = [column for column in self.table.columns if column.field_name in names]
        return pa.table({c.field_name: pa.array(self.values(c), c.storage_type) for c in wanted})

    @property
    def key_list(self) -> list[bytes]:
        """The encoded keys."""
        columns = self.table.key_columns
        return [encode_key(self.table, {c.name: row[c.field_name] for c in columns}) for row in self.rows]

    @property
    def keys(self) -> pa.Array:
        """The encoded keys as an array."""
        return pa.array(self.key_list, pa.binary())

    @property
    def ids(self) -> pa.Array:
        """The ids by which rows mean the live version, null of the others; nulls without a type in a table that has none."""
        return pa.array(self.row_ids, None if self.table.id is None else self.table.by_name[self.table.id].storage_type)

    @property
    def by_version(self) -> Mask:
        """Which rows name their version."""
        return np.array([name is not None for name in self.versions], dtype=bool)

    @property
    def by_id(self) -> Mask:
        """Which rows mean the live version with their id."""
        return np.array([id_ is not None for id_ in self.row_ids], dtype=bool)

    @property
    def version_list(self) -> Sequence[VersionName | None]:
        """The versions that the rows mean, one by one, None where one means none."""
        return self.versions

    @property
    def names(self) -> EventNames:
        """The versions that the rows mean, null where one means none."""
        uuids = pa.array([None if name is None else name.uuid for name in self.versions], UUID_BYTES)
        return EventNames(uuids, pa.array([None if name is None else name.sequence for name in self.versions], pa.int32()))

    @property
    def named(self) -> Iterable[bytes]:
        """The transactions of the versions that the rows mean."""
        return {name.uuid for name in self.versions if name is not None}

    def values(self, column: Column) -> list[Any]:
        """The rows' values of a column, None where it is unset."""
        return [row.get(column.field_name) for row in self.rows]

    def array(self, column: Column) -> pa.Array:
        """The same in storage form."""
        return pa.array(self.values(column), column.storage_type)

    def filled(self, column: Column, values: Sequence[Any]) -> GivenRows:
        """The same with these values of a column."""
        rows = [{**row, column.field_name: value} for row, value in zip(self.rows, values, strict=True)]
        return replace(self, rows=rows)

    def meaning(self, found: EventNames, rows: Positions, kept: Mask) -> GivenRows:
        """The same where these rows mean what was found of them, null where that has no name; without the rows that are not kept."""
        versions = list(self.versions)
        for row, name in zip(rows.tolist(), version_list(found), strict=True):
            versions[row] = name
        at = np.flatnonzero(kept).tolist()
        ids = [self.row_ids[row] for row in at]
        return GivenRows(self.table, [self.rows[row] for row in at], [versions[row] for row in at], ids)


def _surface(row: Mapping[str, Any], columns: Sequence[Column], before: Sequence[Column]) -> dict[str, Any]:
    """The fields of a row or message by the names of their columns; those that there are no more by the ones that they had ``before``."""
    known = {column.field_name: column for column in (*before, *columns)}
    return {known[field].name: _surface_value(value, known[field]) for field, value in row.items()}


def _surface_value(value: Any, column: Column) -> Any:
    if column.shape is Shape.MAP:
        return [(key, _surface_value(item, column.children[1])) for key, item in value or ()]
    if column.type is not DataType.MESSAGE or value is None:
        return value
    if column.shape is Shape.LIST:
        return [_surface(item, column.children, ()) for item in value]
    return _surface(value, column.children, ())


@dataclass(frozen=True)
class GivenColumns:
    """The same as whole columns, where there may be any number of rows; ``versions`` and ``ids`` are None where no row has any."""

    table: Table
    columns: pa.Table
    keys: pa.Array
    versions: EventNames | None
    ids: pa.Array | None

    def __len__(self) -> int:
        return int(self.columns.num_rows)

    @property
    def key_list(self) -> list[bytes]:
        """The encoded keys, one by one."""
        return list(self.keys.to_pylist())

    @property
    def by_version(self) -> Mask:
        """Which rows name their version."""
        return _known(None if self.versions is None else self.versions.uuids, len(self))

    @property
    def by_id(self) -> Mask:
        """Which rows mean the live version with their id."""
        return _known(self.ids, len(self))

    @property
    def version_list(self) -> Sequence[VersionName | None]:
        """The versions that the rows mean, one by one, None where one means none."""
        return [None] * len(self) if self.versions is None else version_list(self.versions)

    @property
    def names(self) -> EventNames:
        """The versions that the rows mean, null where one means none."""
        return self.versions or EventNames(pa.nulls(len(self), UUID_BYTES), pa.nulls(len(self), pa.int32()))

    @property
    def named(self) -> Iterable[bytes]:
        """The transactions of the versions that the rows mean."""
        return () if self.versions is None else pc.unique(self.versions.uuids.drop_null()).to_pylist()

    def values(self, column: Column) -> list[Any]:
        """The rows' values of a column, None where it is unset."""
        name = column.field_name
        return self.columns.column(name).to_pylist() if name in self.columns.column_names else [None] * len(self)

    def array(self, column: Column) -> pa.Array:
        """The same in storage form."""
        name = column.field_name
        is_given = name in self.columns.column_names
        return one_chunk(self.columns.column(name)) if is_given else pa.nulls(len(self), column.storage_type)

    def filled(self, column: Column, values: Sequence[Any]) -> GivenColumns:
        """The same with these values of a column."""
        name = column.field_name
        others = self.columns.drop_columns([name] if name in self.columns.column_names else [])
        return replace(self, columns=others.append_column(name, pa.array(values, column.storage_type)))

    def meaning(self, found: EventNames, rows: Positions, kept: Mask) -> GivenColumns:
        """The same where these rows mean what was found of them, null where that has no name; without the rows that are not kept."""
        versions = found if len(rows) == len(self) else self._with(found, rows)
        if kept.all():
            return replace(self, versions=versions)
        mask = pa.array(kept)
        ids = None if self.ids is None else self.ids.filter(mask)
        return GivenColumns(self.table, self.columns.filter(mask), self.keys.filter(mask), versions.filter(mask), ids)

    def _with(self, found: EventNames, rows: Positions) -> EventNames:
        place = np.arange(len(self))
        place[rows] = len(self) + np.arange(len(rows))
        both = (pa.concat_arrays([mine.cast(theirs.type), theirs]) for mine, theirs in zip(self.names, found, strict=True))
        return EventNames(*both).take(pa.array(place))


def _known(values: pa.Array | None, count: int) -> Mask:
    return np.zeros(count, dtype=bool) if values is None else np.asarray(values.is_valid())


Given: TypeAlias = GivenRows | GivenColumns
