"""Rows that name what they belong to: the bucket's name becomes its id, and its owner where the row says none.

A name means the bucket that is live by what the transaction has put itself, and else by what it has read, in one cut. Whoever ends it at
the same time is not seen, as with every condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows, NotFound
from ..model.arrays import one_chunk
from ..model.keys import encode_key
from ..model.tables import Table
from ..query.named import Named, Place, name_column, named_in, several_owners
from ..query.snapshot import Snapshot
from .given import Given, GivenRows
from .intake import Rows, as_list, as_table
from .staging import StagedEvents

Resolve = Callable[[Table, Any, Any], Mapping[str, Any]]
"""Gives the columns of a row that a bucket's name, and its owner or None, stand for; the table is that of the buckets."""


def with_ids(table: Table, rows: Rows | GivenRows, parent_of: Callable[[Table], Table], resolve: Resolve) -> Rows | GivenRows:
    """The rows without the names of what they belong to, and with what these stand for; those that have none as they are."""
    name = name_column(table)
    if name is None or isinstance(rows, GivenRows):
        return rows
    columns = as_table(rows)
    each = as_list(f"table {table.name!r}", rows) if columns is None else []
    if columns is None and not any(isinstance(row, Mapping) and name in row for row in each):
        return each
    if columns is not None and name not in columns.column_names:
        return columns
    parent = parent_of(table)
    owner = parent.key[0] if len(parent.key) > 1 else None
    if columns is not None:
        return _columns(table, columns, name, owner, partial(resolve, parent))
    known: dict[tuple[Any, Any], Mapping[str, Any]] = {}
    found = []
    for row in each:
        if isinstance(row, Mapping) and row.get(name) is not None:
            asked = row[name], row.get(owner) if owner is not None else None
            if asked not in known:
                known[asked] = resolve(parent, *asked)
            row = _filled(table, {key: value for key, value in row.items() if key != name}, known[asked])
        found.append(row)
    return found


def _filled(table: Table, row: dict[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the columns that a name stands for; ``InvalidRows`` where it says one of them as well, and otherwise."""
    for column, value in found.items():
        said = row.get(column)
        if said is not None and str(said) != str(value):
            raise InvalidRows(
                f"A row for table {table.name!r} says {column} {str(said)!r}, and the bucket that it names has {str(value)!r}.",
                next_step="Give the name, or the id.",
            )
    return {**row, **found}


def _columns(
    table: Table, rows: pa.Table, name: str, owner: str | None, resolve: Callable[[Any, Any], Mapping[str, Any]]
) -> pa.Table:
    asked = [name, *([owner] if owner is not None and owner in rows.column_names else [])]
    distinct = rows.select(asked).group_by(asked).aggregate([])
    found = [resolve(*[*row.values(), None][:2]) if row[name] is not None else {} for row in distinct.to_pylist()]
    numbers = distinct.append_column("#", pa.array(range(len(distinct)), pa.int64()))
    at = _numbered(rows.select(asked), numbers)
    made = rows.drop_columns([name])
    for column in dict.fromkeys(key for each in found for key in each):
        kind = table.by_name[column].surface_type
        values = pa.array([each.get(column) for each in found], kind).take(at)
        if column in made.column_names:
            said = one_chunk(made[column].cast(kind))
            _refuse_other(table, column, said, values)
            made = made.set_column(made.schema.get_field_index(column), column, pc.coalesce(values, said))
        else:
            made = made.append_column(column, values)
    return made


def _numbered(rows: pa.Table, distinct: pa.Table) -> pa.Array:
    """For each row the number of the distinct one that is equal to it."""
    columns = [pc.fill_null(one_chunk(rows[each]).cast(pa.string()), "") for each in rows.column_names]
    among = [pc.fill_null(one_chunk(distinct[each]).cast(pa.string()), "") for each in rows.column_names]
    joined, values = (pc.binary_join_element_wise(*each, "\x00") if len(each) > 1 else each[0] for each in (columns, among))
    return pc.index_in(joined, value_set=values)


def _refuse_other(table: Table, column: str, said: pa.Array, values: pa.Array) -> None:
    other = pc.index(pc.fill_null(pc.not_equal(said, values), False), True).as_py()
    if other >= 0:
        _filled(table, {column: said[other].as_py()}, {column: values[other].as_py()})


def resolved(
    table: Table,
    parent: Table,
    bucket: Any,
    owner: Any,
    own: StagedEvents,
    puts: Sequence[Given],
    now: Callable[[], Snapshot],
) -> Mapping[str, Any]:
    """What a bucket's name stands for: of those that a transaction has put, ``puts``, and those that it leaves of what is there ``now``.

    ``NotFound`` where none is live, ``InvalidOption`` where several owners have one.
    """
    assert table.parent is not None
    found = [each for given in puts if given.table.name == parent.name for each in _named(given, bucket, owner, own)]
    try:
        there = named_in([now()], table, Place(bucket, owner), ended=False)
    except NotFound:
        if not found:
            raise
    else:
        key = {**there.leading, parent.key[-1]: bucket}
        left = own.left(parent, pa.array([encode_key(parent, key)], pa.binary())) if key.keys() >= {*parent.key} else None
        if left is None:
            found.append(there)
    if not found:
        raise NotFound(f"The bucket {bucket!r} is ended by the same transaction.", next_step="Put it again first.")
    if len({tuple(each.leading.items()) for each in found}) > 1:
        raise several_owners(bucket, [each.leading for each in found])
    shared = {column: value for column, value in found[-1].leading.items() if column in table.by_name}
    return {**shared, table.parent.column: found[-1].ids[0]}


def _named(given: Given, bucket: Any, owner: Any, own: StagedEvents) -> list[Named]:
    """Of rows that were put those of that name that the transaction leaves live."""
    table = given.table
    keys = [dict(zip(table.key, row, strict=True)) for row in zip(*(given.values(c) for c in table.key_columns), strict=True)]
    wanted = [key for key in keys if key[table.key[-1]] == bucket and (owner is None or str(key[table.key[0]]) == str(owner))]
    left = own.left(table, pa.array([encode_key(table, key) for key in wanted], pa.binary())) if wanted else None
    if left is None:
        return []
    found = zip(wanted, left.live.to_pylist(), left.ids.to_pylist(), strict=True)
    return [Named({name: key[name] for name in table.key[:-1]}, [id_]) for key, is_live, id_ in found if is_live]
