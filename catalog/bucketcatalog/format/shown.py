"""How an engine that reads a segment by itself shows its columns: each column that people see as made of stored ones.

What is stored at the lowest level is what people see, with few exceptions: columns that a file has not or has under another name,
integers of another width, enumerations, and what is shown of stamps. Engines differ in how they say that, and not in what they say.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

import pyarrow as pa

from ..model.render import ENDED_BY
from ..model.tables import Column, DataType, Shape, Table
from .columns import SHOWN_OF_STAMPS, STAMPS_OF, Meaning, meaning_of, number_of
from .footers import Layout

MOST_SYMBOLS = 256
"""Symbols that an engine chooses from, each a case of an expression."""
_JOINED = {
    "_version": (Meaning("_txn", "uuid"), Meaning("_seq")),
    "_end_version": (Meaning("_end_txn", "uuid"), Meaning("_end_seq")),
}
"""What names an event, made of two columns."""
_END_KIND = Meaning("_end_kind")


@dataclass(frozen=True)
class Shown:
    """A column of that ``type`` that people see: of the ``stored`` ones the first that is not null, else ``otherwise``.

    ``otherwise`` is in storage form, and None where nothing stands for null. Where the column has ``symbols`` the number found is shown as
    its symbol, or as text where it has none. ``is_joined``: instead, all of the stored ones as text, with a colon between.
    """

    type: pa.DataType
    stored: tuple[str, ...]
    otherwise: object = None
    symbols: tuple[tuple[int, str], ...] = ()
    is_joined: bool = False


def shown_columns(
    stored: pa.Schema, may_be_null: Callable[[str], bool], table: Table, wanted: pa.Schema
) -> dict[str, Shown] | str:
    """How each of the ``wanted`` columns, as ``output_schema`` has them, is made of stored ones; or why none but this package can say.

    Of a stored column that has no parts ``may_be_null`` says whether it can hold nulls.
    """
    found = {means: field for field in stored if (means := meaning_of(field, table)) is not None}
    columns: dict[str, Shown] = {}
    for field in wanted:
        column = table.by_name.get(field.name)
        made = _of_stamp(field, found) if column is None else _of_row(column, found, may_be_null)
        if isinstance(made, str):
            return made
        columns[field.name] = made
    needed = {name for made in columns.values() for name in made.stored}
    if alike := next(differing_in_case(stored, needed), None):
        return f"{alike} are called alike but for case"
    return columns


def differing_in_case(fields: Iterable[pa.Field], needed: Set[str] | None = None) -> Iterator[str]:
    """Names that stand side by side and differ in case alone, of those that are needed, or within: engines do not tell them apart."""
    first: dict[str, str] = {}
    fields = list(fields)
    for field in fields:
        other = first.setdefault(field.name.casefold(), field.name)
        if other != field.name and (needed is None or not needed.isdisjoint((other, field.name))):
            yield f"{other!r} and {field.name!r}"
    for field in fields:
        if needed is None or field.name in needed:
            yield from _alike_within(field.type)


def _alike_within(kind: pa.DataType) -> Iterator[str]:
    if pa.types.is_map(kind):
        yield from (*_alike_within(kind.key_type), *_alike_within(kind.item_type))
    elif pa.types.is_list(kind):
        yield from _alike_within(kind.value_type)
    elif pa.types.is_struct(kind):
        yield from differing_in_case(kind)


def is_read_alike(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every engine reads a column of any file's as it was stored, and can make the wanted type of it without loss."""
    if stored == wanted:
        return _is_common(stored)
    if pa.types.is_nested(stored) or not (_is_common(stored) and _is_common(wanted)):
        return False
    widens = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_timestamp)
    return any(kind(stored) and kind(wanted) for kind in widens) or (pa.types.is_integer(stored) and pa.types.is_floating(wanted))


def _is_common(kind: pa.DataType) -> bool:
    """Whether engines have the type: finer moments than microseconds, times of day, durations and halves not all of them do."""
    if pa.types.is_struct(kind):
        return all(_is_common(field.type) for field in kind)
    if pa.types.is_map(kind):
        return _is_common(kind.key_type) and _is_common(kind.item_type)
    if pa.types.is_list(kind):
        return _is_common(kind.value_type)
    if pa.types.is_timestamp(kind):
        return bool(kind.unit != "ns")
    simple = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_string, pa.types.is_binary, pa.types.is_decimal128)
    return kind in (pa.float32(), pa.float64(), pa.date32()) or any(known(kind) for known in simple)


def _of_stamp(field: pa.Field, found: Mapping[Meaning, pa.Field]) -> Shown | str:
    if field.name == "_ended_by":
        kind = found.get(_END_KIND)
        symbols = tuple((int(number), word) for number, word in ENDED_BY.items())
        return "the file does not say what ended its rows" if kind is None else Shown(field.type, (kind.name,), None, symbols)
    means = _JOINED.get(field.name) or (SHOWN_OF_STAMPS[field.name],)
    if missing := [each for each in means if each not in found]:
        return f"the file has no column for {missing[0].column}"
    return Shown(field.type, tuple(found[each].name for each in means), is_joined=len(means) > 1)


def _of_row(column: Column, found: Mapping[Meaning, pa.Field], may_be_null: Callable[[str], bool]) -> Shown | str:
    field = found.get(Meaning(column.field_name))
    otherwise = column.zero if column.implicit and column.shape is Shape.ONE else None
    if field is None:
        return Shown(column.surface_type, _times(column, found), otherwise, column.symbols if otherwise is not None else ())
    if not _is_as_shown(field.type, column):
        return f"the column {column.name!r} is stored as {field.type}, which has to be converted"
    symbols = column.symbols if column.type is DataType.ENUM else ()
    if len(symbols) > MOST_SYMBOLS:
        return f"the column {column.name!r} has {len(symbols):,} symbols"
    stands_for_something = column.default in STAMPS_OF or otherwise is not None
    if not stands_for_something or not may_be_null(field.name):
        return Shown(column.surface_type, (field.name,), None, symbols)
    return Shown(column.surface_type, (field.name, *_times(column, found)), otherwise, symbols)


def _times(column: Column, found: Mapping[Meaning, pa.Field]) -> tuple[str, ...]:
    """The stored columns with the times that an unset column stands for."""
    means = (Meaning(stamp, "commit_time") for stamp in STAMPS_OF.get(column.default, ()))
    return tuple(found[each].name for each in means if each in found)


def _is_as_shown(kind: pa.DataType, column: Column) -> bool:
    """Whether an engine can show a stored column: as it is, an integer of another width, or an enumeration that is one value."""
    if column.shape is Shape.ONE and pa.types.is_integer(column.storage_type):
        return pa.types.is_integer(kind) and bool(
            pa.types.is_signed_integer(kind) == pa.types.is_signed_integer(column.storage_type)
        )
    return _is_of(kind, column)


def _is_of(kind: pa.DataType, column: Column) -> bool:
    """Whether a stored type is the one in which people see the column, with the same fields in its messages."""
    if column.shape is Shape.MAP:
        key, item = column.children
        return pa.types.is_map(kind) and _is_of(kind.key_type, key) and _is_of(kind.item_type, item)
    if column.shape is Shape.LIST:
        return pa.types.is_list(kind) and _is_of(kind.value_type, column.one)
    if column.type is not DataType.MESSAGE:
        return column.type is not DataType.ENUM and bool(kind == column.surface_type)
    fields = list(kind) if pa.types.is_struct(kind) else []
    return [(field.name, number_of(field)) for field in fields] == [(c.name, c.field_name) for c in column.children] and all(
        _is_of(field.type, child) for field, child in zip(fields, column.children, strict=True)
    )


def unchecked(layout: Layout, columns: Collection[str]) -> str | None:
    """What of these columns engines would choose rows by that may leave out rows; None where there is nothing.

    Page indexes have no checksum (docs/spec/segments.md), and bounds of numbers with a fraction leave out what is no number.
    """
    fractions = {leaf.path for leaf in layout.leaves if leaf.kind is not None and pa.types.is_floating(leaf.kind)}
    wanted = [at for at, leaf in enumerate(layout.leaves) if leaf.column in columns]
    for number in range(layout.metadata.num_row_groups):
        group = layout.metadata.row_group(number)
        for at in wanted:
            chunk = group.column(at)
            if chunk.has_column_index or chunk.has_offset_index:
                return "it has page indexes, which nobody checks"
            if chunk.path_in_schema in fractions and chunk.statistics is not None and chunk.statistics.has_min_max:
                return "it has bounds of numbers with a fraction, which leave out what is no number"
    return None
