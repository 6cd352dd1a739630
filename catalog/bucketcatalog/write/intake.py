"""Rows as users give them, a dict, a list of dicts or Arrow data: checked against their table and brought into storage form.

Whatever does not fit is refused here. What the rows mean, where they name no version, is for those that come after.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows, InvalidVersion
from ..model.allowed import refuse_column
from ..model.arrays import one_chunk, plain
from ..model.coerce import storage_array, storage_row, storage_value
from ..model.events import EventKind, VersionName
from ..model.facts import EventNames
from ..model.keys import encode_keys
from ..model.parents import never_unset
from ..model.tables import Column, Table
from ..model.uuids import from_text
from .given import Given, GivenColumns, GivenRows


class Frame(Protocol):
    """A frame of pandas, Polars or somebody else's, which gives its rows as Arrow data."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Lazy(Protocol):
    """A frame of Polars that is computed once it is asked for."""

    def collect(self) -> Any:
        """The frame."""
        ...


Rows: TypeAlias = Mapping[str, Any] | Sequence[Mapping[str, Any]] | pa.Table | pa.RecordBatch | Frame | Lazy
VERSION_COLUMN = "_version"
_VERSION = "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}:(0|[1-9][0-9]*)$"
_KEY_ONLY = (EventKind.DELETE, EventKind.PURGE)


def checked(table: Table, kind: EventKind, rows: Rows | GivenRows) -> Given:
    """The rows of a call that makes events of this kind; ``InvalidRows`` names row and column of what does not fit the table.

    A row means the version that its ``_version`` names, else the live one with its id, if it has one; what is null is not given.
    Rows that were checked before are taken as they are, to be put and for nothing else.
    """
    if isinstance(rows, GivenRows) and kind is EventKind.PUT:
        if rows.table.definition == table.definition:
            return rows
        rows = rows.named_by(table)  # which may be another by now
    columns = as_table(rows)
    given: Given = _rows(table, kind, as_list(_named(table), rows)) if columns is None else _columns(table, kind, columns)
    if kind not in _KEY_ONLY:
        _refuse_unsaid(table, kind, given)
    return given


def checked_rows(table: Table, rows: Sequence[Mapping[str, Any]]) -> GivenRows:
    """Rows that are to be put, checked ahead of the call that puts them: ``checked`` takes them as they are, if the table is still that."""
    given = _rows(table, EventKind.PUT, rows)
    _refuse_unsaid(table, EventKind.PUT, given)
    return given


def _refuse_unsaid(table: Table, kind: EventKind, given: Given) -> None:
    """``InvalidRows`` where a row leaves out what cannot be unset: it would have a zero that nobody said. An UPDATE leaves ids alone."""
    for what, column in never_unset(table):
        at = pc.index(given.array(column).is_valid(), False).as_py()
        if at >= 0 and (kind is EventKind.PUT or column.field_name not in table.fixed_columns):
            raise InvalidRows(
                f"Row {at} for table {table.name!r} lacks the column {column.name!r}, which cannot be unset: "
                f"it would have the {what} of every such row.",
                next_step="Give it, or declare a field of another number that is optional.",
            )


def naming_versions(table: Table, rows: Rows) -> Given:
    """Rows that have the table's key and ``_version``, whatever else they have; ``InvalidRows`` where one does not."""
    kept = (*table.key, VERSION_COLUMN)
    columns = as_table(rows)
    if columns is not None:
        known = [at for at, name in enumerate(columns.column_names) if name in kept]
        given: Given = _columns(table, EventKind.PURGE, columns.select(known))
    else:
        each = [_mapping(_named(table), row, number) for number, row in enumerate(as_list(_named(table), rows))]
        given = _rows(table, EventKind.PURGE, [{name: row[name] for name in kept if name in row} for row in each])
    says = given.by_version
    if not says.all():
        raise nameless(table, int(np.argmin(says)), by_id=False)
    return given


def as_arrow(name: str, rows: Rows) -> pa.Table:
    """Rows under a name that is no table as Arrow data, with the columns that any of them has; ``InvalidRows`` where they make none."""
    target, columns = repr(name), as_table(rows)
    if columns is None:
        given = [_mapping(target, row, number) for number, row in enumerate(as_list(target, rows))]
        names = list(dict.fromkeys(column for row in given for column in row))
        columns = pa.table([_inferred(target, column, given) for column in names], names=names)
        count = len(given)
    else:
        _refuse_twice(target, columns)
        count = len(columns)
    if count and not columns.column_names:
        raise InvalidRows(f"{count} rows for {target} have no columns.", next_step="Give each row what it holds.")
    return columns


def _inferred(target: str, column: Any, rows: Sequence[Mapping[str, Any]]) -> pa.Array:
    """A column of rows, of whatever type its values have."""
    if not isinstance(column, str):
        raise InvalidRows(f"Rows for {target} have the column {column!r}, which is no name.", next_step="Name it with text.")
    try:
        column.encode()
        return pa.array([row.get(column) for row in rows])
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidRows(
            f"Column {column!r} for {target}: {str(error).splitlines()[0]}.",
            next_step="Give values of one type, or Arrow data.",
        ) from None


def nameless(table: Table, number: int, *, by_id: bool) -> InvalidRows:
    """Of a row that has to mean a version and does not; ``by_id`` it could mean a live one."""
    return InvalidRows(
        f"Row {number} for table {table.name!r} does not say which version it means.",
        next_step=f"Give its {VERSION_COLUMN}" + (f", or the live one's {table.id}." if by_id else "."),
    )


def as_table(rows: Any) -> pa.Table | None:
    """Arrow data, streams of it, and frames, which say what they are in Arrow, as a table; None for anything else.

    All of a stream is taken at once: either all of its rows are refused, or none, and a transaction holds them anyway.
    """
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    module = type(rows).__module__.partition(".")[0]
    if module == "polars" and type(rows).__name__ == "LazyFrame":
        rows = rows.collect()
    if not hasattr(rows, "__arrow_c_stream__"):
        return None
    try:
        if module == "pandas":
            return _of_pandas(pa.Table.from_pandas(rows, preserve_index=False)).replace_schema_metadata()
        return pa.table(rows).replace_schema_metadata()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidRows(
            f"The {type(rows).__name__} is no Arrow data: {str(error).splitlines()[0]}.",
            next_step="Give its columns one type each, or Arrow data.",
        ) from None


def _of_pandas(rows: pa.Table) -> pa.Table:
    """What pandas had to make of integers some of which are missing, as integers again; columns of fractions take these too."""
    for at, column in enumerate(rows.columns):
        if pa.types.is_floating(column.type) and column.null_count and _are_whole(column):
            whole = pa.nulls(len(column)) if column.null_count == len(column) else column.cast(pa.int64())
            rows = rows.set_column(at, rows.column_names[at], whole)
    return rows


def _are_whole(values: pa.ChunkedArray) -> bool:
    limit = float(1 << 53)  # above, a fraction may have been lost
    is_whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less_equal(pc.abs(values), limit))
    return bool(pc.all(is_whole, min_count=0).as_py())


def _named(table: Table) -> str:
    """What rows are for, in messages."""
    return f"table {table.name!r}"


def as_list(target: str, rows: Any) -> list[Any]:
    """Rows that are no Arrow data one by one; ``InvalidRows`` for what is no rows."""
    if isinstance(rows, Mapping):
        return [rows]
    if not isinstance(rows, Iterable):
        raise InvalidRows(f"{rows!r} is no row for {target}.", next_step="Give a dict, a list of dicts, Arrow data, or a frame.")
    return list(rows)


def _mapping(target: str, row: Any, number: int) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        raise InvalidRows(f"Row {number} for {target} is no mapping.", next_step="Give dicts, or Arrow data.")
    return row


def _id_apart(table: Table, kind: EventKind) -> Column | None:
    """The column of the id, where rows that are keys have it beside the key."""
    return table.by_name[table.id] if kind in _KEY_ONLY and table.id is not None and table.id not in table.key else None


def _id_within(table: Table, kind: EventKind) -> Column | None:
    """The column of the id, where it is one of the row's own and says which version is meant."""
    is_within = kind is EventKind.UPDATE or (kind is EventKind.DELETE and table.id in table.key)
    return table.by_name[table.id] if is_within and table.id is not None else None


def _rows(table: Table, kind: EventKind, rows: Sequence[Any]) -> GivenRows:
    apart, within = _id_apart(table, kind), _id_within(table, kind)
    stored: list[dict[str, Any]] = []
    named: list[VersionName | None] = []
    ids: list[Any] = []
    for number, row in enumerate(rows):
        rest = _mapping(_named(table), row, number)
        version = id_ = None
        if kind is not EventKind.PUT:
            rest = dict(rest)
            version = rest.pop(VERSION_COLUMN, None)
            id_ = rest.pop(apart.name, None) if apart is not None else None
        stored.append(storage_row(table, rest, key_only=kind in _KEY_ONLY, number=number))
        named.append(None if version is None else VersionName.parse(version))
        if version is not None or kind is EventKind.PURGE:
            ids.append(None)
        elif within is not None:
            ids.append(stored[-1].get(within.field_name))
        else:
            ids.append(None if apart is None or id_ is None else _stored_id(table, apart, id_, number))
    return GivenRows(table, stored, named, ids)


def _stored_id(table: Table, column: Column, value: Any, number: int) -> Any:
    try:
        return storage_value(column, value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRows(
            f"Row {number} for table {table.name!r}, column {column.name!r}: {error}.",
            next_step=f"Give a value of its type: {column.type_name}.",
        ) from None


def _columns(table: Table, kind: EventKind, rows: pa.Table) -> GivenColumns:
    _refuse_twice(_named(table), rows)
    apart, within = _id_apart(table, kind), _id_within(table, kind)
    named = rows.column(VERSION_COLUMN) if kind is not EventKind.PUT and VERSION_COLUMN in rows.column_names else None
    beside = set() if named is None else {VERSION_COLUMN}
    if apart is not None and apart.name in rows.column_names:
        beside.add(apart.name)
    stored = _stored_columns(table, rows.drop_columns(list(beside)), key_only=kind in _KEY_ONLY)
    keys = one_chunk(encode_keys(table, stored))
    versions = None if named is None else _or_none(parse_versions(_whole(table, VERSION_COLUMN, named)))
    ids = None
    if kind is not EventKind.PURGE and (versions is None or versions.uuids.null_count):
        if within is not None and within.field_name in stored.column_names:
            ids = _unless_named(one_chunk(stored.column(within.field_name)), versions)
        elif apart is not None and apart.name in beside:
            ids = storage_array(table, apart, _unless_named(_whole(table, apart.name, rows.column(apart.name)), versions))
    return GivenColumns(table, stored, keys, versions, None if ids is None or ids.null_count == len(ids) else ids)


def _refuse_twice(target: str, rows: pa.Table) -> None:
    for column in rows.column_names:
        if rows.column_names.count(column) > 1:
            raise InvalidRows(f"Rows for {target} have the column {column!r} twice.", next_step="Give it once.")


def _or_none(versions: EventNames) -> EventNames | None:
    return None if versions.uuids.null_count == len(versions.uuids) else versions


def _unless_named(values: pa.Array, versions: EventNames | None) -> pa.Array:
    """The values of the rows that name no version, null of the others."""
    if versions is None:
        return values
    return values.take(pa.array(np.arange(len(values)), mask=np.asarray(versions.uuids.is_valid())))


def _stored_columns(table: Table, rows: pa.Table, *, key_only: bool) -> pa.Table:
    allowed = table.key if key_only else tuple(table.by_name)
    for name in rows.column_names:
        if name not in allowed:
            raise InvalidRows(
                f"Rows for table {table.name!r} have the column {name!r}, which it does not take.",
                next_step=f"Its {'key columns' if key_only else 'columns'} are {', '.join(allowed)}.",
            )
    for name in table.key:
        if name not in rows.column_names:
            raise InvalidRows(
                f"Rows for table {table.name!r} lack the key column {name!r}.", next_step=f"Give {', '.join(table.key)}."
            )
    stored = {}
    for name in rows.column_names:
        column = table.by_name[name]
        stored[column.field_name] = _stored_column(table, column, rows.column(name))
        if not key_only:
            refuse_column(table, column, stored[column.field_name])
    return pa.table(stored)


def _stored_column(table: Table, column: Column, values: pa.ChunkedArray) -> pa.Array:
    """A column in storage form. Lists, maps and structs have it before they are one array: they may have dictionaries within."""
    if pa.types.is_nested(values.type):
        return _joined(table, column.name, [storage_array(table, column, chunk) for chunk in _chunks(values)])
    return storage_array(table, column, _whole(table, column.name, values))


def _whole(table: Table, name: str, values: pa.ChunkedArray) -> pa.Array:
    """A column as one array, without dictionaries: Arrow joins none that hold nulls, or that are too long for their indices together."""
    return _joined(table, name, [plain(chunk) for chunk in _chunks(values)])


def _chunks(values: pa.ChunkedArray) -> list[pa.Array]:
    """At least one."""
    return values.chunks or [pa.nulls(0, values.type)]


def _joined(table: Table, name: str, parts: list[pa.Array]) -> pa.Array:
    """``InvalidRows`` where a column holds more than one array can."""
    try:
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
    except pa.ArrowInvalid as error:
        raise InvalidRows(
            f"Column {name!r} for table {table.name!r}: {str(error).splitlines()[0].removesuffix('.')}.",
            next_step="Give fewer rows at once.",
        ) from None


def parse_versions(values: pa.Array) -> EventNames:
    """The versions that ``_version`` values name, null of nulls; ``InvalidVersion`` names the first that is none."""
    try:
        values = _text(values)
        text = pc.utf8_slice_codeunits(values, 0, 36)
        number = pc.utf8_slice_codeunits(values, 37)
        if not pc.all(pc.match_substring_regex(values, _VERSION), min_count=0).as_py():
            raise ValueError("a version is a uuid, a colon and a number")
        return EventNames(from_text(text), number.cast(pa.int32()))
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidVersion(
            f"The column {VERSION_COLUMN} holds what names no version: {error}.", next_step="Give values of that column."
        ) from None


def _text(values: pa.Array) -> pa.Array:
    """Text as Arrow's functions take it."""
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if pa.types.is_null(values.type):
        return values.cast(pa.string())
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        raise TypeError(f"text is expected, not {values.type}")
    return values
