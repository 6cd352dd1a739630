"""Rows that name what they belong to: the bucket's name becomes its id, and its owner where the row says none.

A name means the bucket that is live by what the transaction has put itself, and else by what it has read, in one cut. Whoever ends it at
the same time is not seen, as with every condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows, NotFound
from ..model.arrays import one_chunk
from ..model.coerce import storage_array, storage_value
from ..model.keys import encode_key
from ..model.parents import name_column
from ..model.tables import Column, Table
from ..query.named import ByName, called, named_in, several_owners
from ..query.snapshot import Snapshot
from .given import Given, GivenRows
from .intake import Rows, as_list, as_table
from .staging import StagedEvents

Resolve = Callable[[Table, Sequence[ByName]], Sequence[Mapping[str, Any]]]
"""Gives for each bucket that is asked for the columns of a row that it stands for; the table is that of the buckets."""


class _Columns(NamedTuple):
    """The columns of rows by which they name what they belong to, as the table of that has them."""

    bucket: Column
    owner: Column | None


def with_ids(table: Table, rows: Rows | GivenRows, parent_of: Callable[[Table], Table], resolve: Resolve) -> Rows | GivenRows:
    """The rows without the names of what they belong to, and with what these stand for; those that have none as they are."""
    name = name_column(table)
    if name is None or isinstance(rows, GivenRows):
        return rows
    columns = as_table(rows)
    each = as_list(f"table {table.name!r}", rows) if columns is None else []
    if columns is None and not any(isinstance(row, Mapping) and name in row for row in each):
        return each
    if columns is not None and (name not in columns.column_names or len({*columns.column_names}) < len(columns.column_names)):
        return columns  # one that is there twice is refused as in any rows
    parent = parent_of(table)
    by = _Columns(replace(parent.key_columns[-1], name=name), parent.key_columns[0] if len(parent.key) > 1 else None)
    answer = partial(resolve, parent)
    return _rows(table, each, by, answer) if columns is None else _columns(table, columns, by, answer)


def columns_with_ids(table: Table, columns: pa.Table, parent_of: Callable[[Table], Table]) -> pa.Table:
    """Columns of no rows as ``with_ids`` makes them, whatever buckets there are; ``InvalidRows`` where a name is of no fitting type."""
    name = name_column(table)
    if name is None or columns.column_names.count(name) != 1:
        return columns
    assert table.parent is not None
    parent = parent_of(table)
    _stored_column(table, replace(parent.key_columns[-1], name=name), columns[name])
    made = columns.drop_columns([name])
    for each in (*(column for column in parent.key[:-1] if column in table.by_name), table.parent.column):
        if each not in made.column_names:
            made = made.append_column(each, pa.nulls(len(made), table.by_name[each].storage_type))
    return made


def _rows(
    table: Table, rows: Sequence[Any], by: _Columns, resolve: Callable[[Sequence[ByName]], Sequence[Mapping[str, Any]]]
) -> list[Any]:
    asked: dict[int, ByName] = {}
    for number, row in enumerate(rows):
        if isinstance(row, Mapping) and row.get(by.bucket.name) is not None:
            owner = row.get(by.owner.name) if by.owner is not None else None
            asked[number] = ByName(
                _stored(table, by.bucket, row[by.bucket.name], number),
                None if by.owner is None or owner is None else _stored(table, by.owner, owner, number),
            )
    distinct = list(dict.fromkeys(asked.values()))
    known = dict(zip(distinct, resolve(distinct), strict=True))
    found = list(rows)
    for number, each in asked.items():
        rest = {key: value for key, value in rows[number].items() if key != by.bucket.name}
        found[number] = _filled(table, rest, known[each], number)
    return found


def _stored(table: Table, column: Column, value: Any, number: int) -> Any:
    """A value of a row in storage form; ``InvalidRows`` names row and column where it does not fit."""
    try:
        return storage_value(column, value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRows(
            f"Row {number} for table {table.name!r}, column {column.name!r}: {error}.",
            next_step=f"Give a value of its type: {column.type_name}.",
        ) from None


def _filled(table: Table, row: dict[str, Any], found: Mapping[str, Any], number: int) -> dict[str, Any]:
    """A row with the columns that a name stands for; ``InvalidRows`` where it says one of them as well, and otherwise."""
    stands_for = {}
    for name, value in found.items():
        column, said = table.by_name[name], row.get(name)
        stands_for[name] = None if value is None else _stored(table, column, value, number)
        if said is not None and _stored(table, column, said, number) != stands_for[name]:
            raise InvalidRows(
                f"A row for table {table.name!r} says {name} {str(said)!r}, and the bucket that it names has {str(value)!r}.",
                next_step="Give the name, or the id.",
            )
    return {**row, **stands_for}


def _columns(
    table: Table, rows: pa.Table, by: _Columns, resolve: Callable[[Sequence[ByName]], Sequence[Mapping[str, Any]]]
) -> pa.Table:
    names = _stored_column(table, by.bucket, rows[by.bucket.name])
    owner = by.owner if by.owner is not None and by.owner.name in rows.column_names else None
    owners = None if owner is None else _stored_column(table, owner, rows[owner.name])
    numbers = _numbered(names, owners)
    distinct = pc.unique(numbers.drop_null())
    first = pc.index_in(distinct, value_set=numbers)
    whose = pa.nulls(len(first)) if owners is None else owners.take(first)
    said = zip(names.take(first).to_pylist(), whose.to_pylist(), strict=True)
    asked = [ByName(_in_storage(by.bucket, name), _in_storage(by.owner, of)) for name, of in said]
    found = [_filled(table, {}, each, row) for each, row in zip(resolve(asked), first.to_pylist(), strict=True)]
    at = pc.index_in(numbers, value_set=distinct)
    made = rows.drop_columns([by.bucket.name])
    for name in dict.fromkeys(key for each in found for key in each):
        column = table.by_name[name]
        values = pa.array([each.get(name) for each in found], column.storage_type).take(at)
        if name in made.column_names:
            given = _stored_column(table, column, made[name])
            _refuse_other(table, column, given, values)
            made = made.set_column(made.schema.get_field_index(name), name, pc.coalesce(values, given))
        else:
            made = made.append_column(name, values)
    return made


def _stored_column(table: Table, column: Column, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of rows in storage form; ``InvalidRows`` names it where it does not fit."""
    return pa.chunked_array([storage_array(table, column, chunk) for chunk in values.chunks], column.storage_type)


def _in_storage(column: Column | None, value: Any) -> Any:
    """A value of an array, or of a bucket that was found, as keys have it."""
    return None if column is None or value is None else storage_value(column, value)


def _numbered(names: pa.ChunkedArray, owners: pa.ChunkedArray | None) -> pa.Array:
    """For each row a number, which it shares with those that name the same; null where it names nothing."""
    numbers = one_chunk(pc.index_in(names, value_set=pc.unique(names.drop_null()))).cast(pa.int64())
    if owners is None:
        return numbers
    known = pc.unique(owners.drop_null())
    of = pc.fill_null(one_chunk(pc.index_in(owners, value_set=known)).cast(pa.int64()), len(known))
    return pc.add(pc.multiply(numbers, len(known) + 1), of)


def _refuse_other(table: Table, column: Column, said: pa.ChunkedArray, values: pa.Array) -> None:
    other = pc.index(pc.fill_null(pc.not_equal(said, values), False), True).as_py()
    if other >= 0:
        _filled(table, {column.name: said[other].as_py()}, {column.name: values[other].as_py()}, other)


def resolved(
    table: Table, parent: Table, asked: Sequence[ByName], *, own: StagedEvents, puts: Sequence[Given], now: Callable[[], Snapshot]
) -> list[dict[str, Any]]:
    """What buckets' names stand for: of those that a transaction has put, ``puts``, and those that it leaves of what is there ``now``.

    All are looked for at once. ``NotFound`` where none is live, ``InvalidOption`` where several owners have one.
    """
    assert table.parent is not None
    if not asked:
        return []
    names = list(dict.fromkeys(each.bucket for each in asked))
    cut = now()
    rows = called(cut, parent, asked)
    there = {_key(parent, row): row[parent.id or parent.key[-1]] for row in rows.to_pylist()}
    live = _left(parent, there, own, _put(parent, puts, names))
    there_of, live_of = _by_name(there), _by_name(live)
    made = []
    for each in asked:
        of_cut, keys = ([key for key in of.get(each.bucket, ()) if each.owner in (None, key[0])] for of in (there_of, live_of))
        if len(of_cut) > 1 or not (of_cut or keys):  # an error, or an id in place of the name
            named = named_in([cut], table, each, ended=False)
            leading, id_ = named.leading, named.ids[0]
        elif not keys:
            raise NotFound(f"The bucket {each.bucket!r} is ended by the same transaction.", next_step="Put it again first.")
        elif len(keys) > 1:
            raise several_owners(each.bucket, [_leading(parent, key) for key in keys])
        else:
            leading, id_ = _leading(parent, keys[0]), live[keys[0]]
        shared = {column: value for column, value in leading.items() if column in table.by_name}
        made.append({**shared, table.parent.column: id_})
    return made


def _key(parent: Table, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(_in_storage(column, row[column.name]) for column in parent.key_columns)


def _leading(parent: Table, key: Sequence[Any]) -> dict[str, Any]:
    return dict(zip(parent.key[:-1], key, strict=False))


def _by_name(keys: Iterable[tuple[Any, ...]]) -> dict[Any, list[tuple[Any, ...]]]:
    found: dict[Any, list[tuple[Any, ...]]] = {}
    for key in keys:
        found.setdefault(key[-1], []).append(key)
    return found


def _put(parent: Table, puts: Sequence[Given], names: Sequence[Any]) -> set[tuple[Any, ...]]:
    """The keys of the rows of these names that were put."""
    columns, wanted = parent.key_columns, {*names}
    last = columns[-1]
    own = [given for given in puts if given.table.name == parent.name]
    found = [row for given in own if isinstance(given, GivenRows) for row in given.rows if row[last.field_name] in wanted]
    whole = [given.columns for given in own if not isinstance(given, GivenRows)]
    parts = {c.field_name: [chunk for each in whole for chunk in each[c.field_name].chunks] for c in columns}
    rows = pa.table({c.field_name: pa.chunked_array(parts[c.field_name], c.storage_type) for c in columns})
    found += rows.filter(pc.is_in(rows[last.field_name], value_set=pa.array(names, last.storage_type))).to_pylist()
    return {tuple(_in_storage(column, row[column.field_name]) for column in columns) for row in found}


def _left(
    parent: Table, there: Mapping[tuple[Any, ...], Any], own: StagedEvents, put: Iterable[tuple[Any, ...]]
) -> Mapping[tuple[Any, ...], Any]:
    """The ids by their keys of what the transaction leaves live of rows that are there, and of those that it has put."""
    keys = list(dict.fromkeys([*there, *put]))
    encoded = [encode_key(parent, dict(zip(parent.key, key, strict=True))) for key in keys]
    left = own.left(parent, pa.array(encoded, pa.binary())) if keys else None
    if left is None:
        return there
    live = dict(there)
    for key, touched, is_live, id_ in zip(keys, *(each.to_pylist() for each in (left.touched, left.live, left.ids)), strict=True):
        if touched and not is_live:
            live.pop(key, None)
        elif touched:
            live[key] = key[-1] if parent.id is None else id_
    return live
