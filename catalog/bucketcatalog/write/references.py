"""Data references: where a version's data lies, as bytes that are equal where the data is the same, and who may name it again.

A reference is the values of its columns, in the order of their names. One with an unset column names no data. In a column without presence
a zero is a value, for it may have been said, but an empty text is unset. Where another table's columns have other types, references are
compared as they are spelled in the name of an object.

Data is deleted once all versions that name it have ended long enough ago (docs/spec/collection.md), so that a PUT may name the data of a
version only while that cannot have begun: the version is known, is not purged, and has not ended in the reach of a data boundary.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataCollected, InvalidRows
from ..log.entries import boundaries_of
from ..model.arrays import one_chunk
from ..model.facts import NO_TRANSACTIONS, Facts, Kind
from ..model.keys import encode_array, encode_keys
from ..model.parents import is_comparable
from ..model.render import surface_array, version_names
from ..model.tables import Column, DataType, Table
from ..model.times import shown_time
from ..query.snapshot import Snapshot
from ..state.plan import Part

_NUMBER = pa.decimal128(20)
"""Holds every integer of 64 bits, with a sign and without."""


def references(facts: Facts, table: Table, *, is_spelled: bool = False) -> pa.Array:
    """The data reference of each row as bytes, null where a column of it is unset or the table has none.

    They compare with those of tables whose columns have the same types, or spelled, as text, with those of as many columns.
    """
    columns = [table.by_name[name] for name in sorted(table.data_reference)]
    if not columns:
        return pa.nulls(len(facts), pa.binary())
    if is_spelled:
        stored = {table.by_name[name].field_name: values for name, values in spelled(facts, table).items()}
        columns = [replace(column, type=DataType.STRING) for column in columns]
    else:
        stored = {column.field_name: _named(facts, column) for column in columns}
    valid = one_chunk(pa.chunked_array([pa.repeat(pa.scalar(True), len(facts))]))
    for values in stored.values():
        valid = pc.and_(valid, values.is_valid()) if values.null_count else valid
    shape = replace(table, columns=tuple(columns), key=tuple(column.name for column in columns))
    if pc.all(valid, min_count=0).as_py():
        return one_chunk(encode_keys(shape, stored))
    encoded = one_chunk(encode_keys(shape, {name: values.filter(valid) for name, values in stored.items()}))
    position = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    return encoded.take(pc.if_else(valid, position, pa.scalar(None, pa.int64())))


def spelled(facts: Facts, table: Table) -> dict[str, pa.Array]:
    """The columns of the rows' references as they stand in names of objects, null where they are unset: text, be it of bytes or not."""
    found = {}
    for name in sorted(table.data_reference):
        column = table.by_name[name]
        shown = surface_array(replace(column, implicit=False), _named(facts, column))
        found[name] = shown.cast(pa.string(), safe=False)  # bytes need not be UTF-8
    return found


def _named(facts: Facts, column: Column) -> pa.Array:
    """A column of references, null where it is unset."""
    if column.implicit and column.type in (DataType.STRING, DataType.BYTES):
        return _without_zeros(facts, column)
    return facts.meant_column(column)


def _without_zeros(facts: Facts, column: Column) -> pa.Array:
    """A column, null where it is zero."""
    values = facts.stored_column(column)
    zero = pa.scalar(column.zero, values.type)
    return pc.if_else(pc.equal(values, zero), pa.scalar(None, values.type), values)


def ids(facts: Facts, column: Column, *, surely: bool = False) -> pa.Array:
    """The values of an id's column as bytes, null where it is unset: ids of parents and of their children compare as these.

    Integers are equal as numbers, whatever the types of the two columns: a definition may make one of them wider. Those of a column that is
    not comparable are null, and ``surely`` so are the zeros of one without presence: nobody can tell whether they were said.
    """
    if not is_comparable(column):
        return pa.nulls(len(facts), pa.binary())
    values = _without_zeros(facts, column) if surely and column.implicit else facts.meant_column(column)
    if pa.types.is_integer(values.type):
        wide = values.cast(_NUMBER)
        return pa.Array.from_buffers(pa.binary(16), len(wide), wide.buffers(), offset=wide.offset).cast(pa.binary())
    if not values.null_count:
        return one_chunk(encode_array(column, values, last=True))
    valid = values.is_valid()
    encoded = one_chunk(encode_array(column, values.filter(valid), last=True))
    position = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
    return encoded.take(pc.if_else(valid, position, pa.scalar(None, pa.int64())))


def refuse_collected(snapshot: Snapshot, table: Table, keys: pa.Array, versions: pa.Array, rows: pa.Table) -> None:
    """``DataCollected`` where the data of a version may be deleted, ``InvalidRows`` where a row does not name the data of its version.

    ``versions``, as ``_version`` shows them, stand under the encoded ``keys``; ``rows`` are in storage form, one for each.
    """
    if len(keys) != len(rows):
        raise InvalidRows(
            f"{len(rows)} rows for table {table.name!r} share the data of {len(keys)} versions.",
            next_step="Give the version that each row shares its data with, in the order of the rows.",
        )
    known, at, gone = known_versions(snapshot, table, keys, versions)
    if pc.any(gone, min_count=0).as_py():
        raise _collected(table, versions[pc.index(gone, True).as_py()].as_py(), _reach(snapshot))
    same = pc.equal(references(known, table).take(at), references(Facts(NO_TRANSACTIONS, rows), table))
    wrong = pc.index(pc.fill_null(same, False), False).as_py()
    if wrong >= 0:
        raise InvalidRows(
            f"Row {wrong} for table {table.name!r} does not name the data of the version {versions[wrong].as_py()}.",
            next_step=f"Give it the same {', '.join(table.data_reference) or 'data'}, or put it without data_of.",
        )


def known_versions(
    snapshot: Snapshot, table: Table, keys: pa.Array, versions: pa.Array, *, with_purged: bool = False
) -> tuple[Facts, pa.Array, pa.Array]:
    """The versions under these encoded keys, where among them each of the ``versions`` is, and whether the data of each may be gone.

    It may be where the version is not known, is purged, or has ended in the reach of a data boundary. Who knows that nobody has deleted
    the data of what was purged asks ``with_purged``: collection deletes none of it before a boundary has reached it.
    """
    facts = snapshot.find_of(table, keys, Part.EVERYTHING)
    known = facts.filter(pa.array(facts.numbers("_kind") == Kind.VERSION))
    names = version_names(*known.own_names())
    at = pc.index_in(versions, value_set=names)
    ended = known.end_times() <= _reach(snapshot)
    if not with_purged:
        ended |= known.numbers("_purged") > 0
    return known, at, pc.or_(at.is_null(), pc.fill_null(pa.array(ended).take(at), True))


def _reach(snapshot: Snapshot) -> int:
    """Microseconds: data of versions that ended by then may be deleted."""
    boundary = boundaries_of(snapshot.view).data
    return boundary.data if boundary is not None else 0


def _collected(table: Table, version: str, boundary: int) -> DataCollected:
    reach = f": what ended by {shown_time(boundary)} may be deleted" if boundary else ", for the version is not there"
    return DataCollected(
        f"The data of version {version} of table {table.name!r} cannot be used again{reach}.",
        next_step="Name a version that is live or ended later, or write the data anew under an id of its own.",
    )
