"""A table from an Arrow schema: the ``.proto`` that its user would have written, and what that declares.

Columns are matched with those that the table has by their names, and keep their numbers. What is new has the next number that nothing has
had; what is left out is removed, and its number and name are reserved; what was removed and is there again, as what it was, is taken back.
A schema says which columns there are, of which types; their limits and a parent are said beside it, and stay where nobody says them anew.
What is not said so (sums, orders, defaults, enumerations) is for tables whose ``.proto`` their users write.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool

from ..errors import IncompatibleTable, InvalidName
from ..model.tables import Column, DataType, Default, Shape, Table
from ..v1 import log_pb2, options_pb2
from .arrow_types import kind_of, type_with
from .checks import keep_limits, say_limits, say_parent
from .definitions import table_of, walk_types
from .evolution import WIDER
from .proto_text import proto_text
from .reserved import Reserved
from .wanted import Wanted, refuse_left_out, renamed

_Field = descriptor_pb2.FieldDescriptorProto
_WIRE = {
    DataType.STRING: _Field.TYPE_STRING,
    DataType.JSON: _Field.TYPE_STRING,
    DataType.CUT: _Field.TYPE_STRING,
    DataType.BYTES: _Field.TYPE_BYTES,
    DataType.UUID: _Field.TYPE_BYTES,
    DataType.TIMESTAMP: _Field.TYPE_INT64,
    DataType.BOOL: _Field.TYPE_BOOL,
    DataType.INT32: _Field.TYPE_INT32,
    DataType.INT64: _Field.TYPE_INT64,
    DataType.UINT32: _Field.TYPE_UINT32,
    DataType.UINT64: _Field.TYPE_UINT64,
    DataType.FLOAT: _Field.TYPE_FLOAT,
    DataType.DOUBLE: _Field.TYPE_DOUBLE,
    DataType.MESSAGE: _Field.TYPE_MESSAGE,
}
_LOGICAL = {
    DataType.UUID: options_pb2.LOGICAL_TYPE_UUID,
    DataType.TIMESTAMP: options_pb2.LOGICAL_TYPE_TIMESTAMP_MICROS,
    DataType.JSON: options_pb2.LOGICAL_TYPE_JSON,
    DataType.CUT: options_pb2.LOGICAL_TYPE_CUT,
}
_OPTIONS: Any = options_pb2.DESCRIPTOR
_TABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)+", re.ASCII)
_COLUMN = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_LONGEST_NAME = 128
_NOT_OURS = ("bucketcatalog.", "google.")
_OF_PROTOBUF = range(19_000, 20_000)
"""Numbers that no field may have."""


@dataclass(frozen=True)
class Made:
    """A table that was made of a schema, the text of its ``.proto``, and the file that it belongs into, below a ``--proto_path``."""

    table: Table
    proto: str
    file: str


def make_table(wanted: Wanted, known: Table | None) -> Made:
    """The table as it is wanted, with the numbers of what is ``known`` of it.

    ``InvalidName`` for what a table or a column cannot be called; ``IncompatibleTable`` for a type that no column has, which names the
    column, and for what the known table does not allow.
    """
    check_name(wanted.name)
    for what, name in _named(wanted):
        if name not in wanted.schema.names:
            raise IncompatibleTable(
                f"The schema for table {wanted.name!r} has no column {name!r} for its {what}.",
                next_step=f"Name columns of it: {', '.join(wanted.schema.names) or 'there are none'}.",
            )
    if known is not None:
        _refuse_unsayable(known)
    before = _Before.of(known) if known is not None else _NOTHING
    *package, last = wanted.name.split(".")
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{wanted.name.replace('.', '/')}.proto", package=".".join(package), syntax="proto3", dependency=[_OPTIONS.name]
    )
    row = file.message_type.add(name=_camel(last))
    scope = f"{file.package}.{row.name}"
    columns = renamed(wanted, {column.name: column for column in before.columns})
    refuse_left_out(wanted, columns)
    unset = {wanted.id, wanted.parent[1] if wanted.parent is not None else None} - {*wanted.key}
    _Message(wanted.name, row, scope, before).fill(wanted.schema, columns, key={*wanted.key}, optional=unset)
    say_limits(row, wanted.limits)
    _say_options(row, wanted, known)
    say_parent(row, wanted, known)
    comment = [f"The table {wanted.name!r}, made of a schema by bucketcatalog. A number is never used for something else."]
    return Made(_compiled(file, scope), proto_text(file, comment), file.name)


def _named(wanted: Wanted) -> Iterator[tuple[str, str]]:
    """What names a column that the schema has to have, and the column."""
    yield from (("key", name) for name in wanted.key)
    yield from (("id", name) for name in (wanted.id,) if name)
    yield from (("parent", name) for name in (wanted.parent or ())[1:])
    limits = {"minimum": wanted.limits.minimum, "maximum": wanted.limits.maximum, "allowed values": wanted.limits.allowed}
    yield from ((what, name) for what, by_name in limits.items() for name in by_name)


def check_name(name: str) -> None:
    """``InvalidName`` for what no table that is made of a schema can be called: its ``.proto`` takes package and message from the name."""
    is_fit = isinstance(name, str) and _TABLE.fullmatch(name) is not None and len(name) <= _LONGEST_NAME
    if not is_fit or name.startswith(_NOT_OURS):
        raise InvalidName(
            f"{name!r} cannot be the name of a table of your own.",
            next_step=f"Call it SYSTEM.TABLE, such as jobs.runs: at most {_LONGEST_NAME} letters, digits and _.",
        )


@dataclass(frozen=True)
class _Before:
    """What is known of a message: its columns, also those that were removed, its descriptor, and those of all types beside."""

    columns: tuple[Column, ...]
    message: Any
    types: Mapping[str, Any]

    @classmethod
    def of(cls, table: Table) -> _Before:
        """Of the rows of a table."""
        definition = log_pb2.TableDefinition.FromString(table.definition)
        types = {name: item for file in definition.files.file for name, item in walk_types(file)}
        return cls(table.columns, types[definition.message], types)

    def within(self, column: Column) -> _Before:
        """Of the message that a column holds, or of those that its list or map holds."""
        message = self._type_of(self.message, column.number)
        if column.shape is Shape.MAP:
            return _Before(column.children[1].children, self._type_of(message, 2), self.types)
        return _Before(column.children, message, self.types)

    def _type_of(self, message: Any, number: int) -> Any:
        (described,) = (each for each in message.field if each.number == number)
        return self.types[described.type_name.lstrip(".")]

    @property
    def reserved(self) -> Reserved:
        """The numbers that were reserved, beside those of columns that were removed."""
        return Reserved(self.message)

    @property
    def last(self) -> int:
        """The largest number that anything has had."""
        return max([0, *(column.number for column in self.columns), *(end - 1 for _, end in self.reserved.spans)])


_NOTHING = _Before((), descriptor_pb2.DescriptorProto(), {})


@dataclass(frozen=True)
class _Message:
    """A message that is being made, for the rows of a table or within these; ``scope`` is its full name, ``path`` what leads to it."""

    table: str
    made: Any
    scope: str
    before: _Before
    path: str = ""

    def fill(
        self,
        schema: Iterable[pa.Field],
        known: Mapping[str, Column],
        *,
        key: Collection[Any] = (),
        optional: Collection[Any] = (),
    ) -> None:
        """Add the fields of a schema, in the order of their numbers, and reserve what is left out.

        ``known`` are columns by what they are called from now on. Those of the ``key`` cannot be unset, and the ``optional`` ones can;
        a new column can where it may be null, and one that is there stays as it is.
        """
        schema = list(schema)
        self._check_names(each.name for each in schema)
        last, taken = self.before.last, list[tuple[int, pa.Field, Column | None]]()
        for each in schema:
            column = known.get(each.name)
            if column is not None and column.removed and not self._is_same(each, column):
                column = None  # something else that is called so
            if column is None:
                last = _OF_PROTOBUF.stop if last + 1 in _OF_PROTOBUF else last + 1
            taken.append((last if column is None else column.number, each, column))
        for number, each, column in sorted(taken, key=lambda one: one[0]):
            has_presence = each.nullable if column is None else not column.implicit
            self._add(number, each, column, has_presence=(has_presence or each.name in optional) and each.name not in key)
        self._refuse_types_called_alike()
        self._reserve({number for number, *_ in taken})
        self.made.nested_type.sort(
            key=lambda each: each.options.map_entry
        )  # as compilers have them, who make those of maps themselves

    def _check_names(self, names: Iterable[str]) -> None:
        alike: dict[str, str] = {}
        for name in names:
            if _COLUMN.fullmatch(name) is None:
                raise InvalidName(
                    f"{self.path + name!r} cannot be the name of a column of table {self.table!r}.",
                    next_step="Rename it to a letter, then letters, digits and _.",
                )
            if _in_json(name) in alike:
                both = f"{self.path + alike[_in_json(name)]!r} and {self.path + name!r}"
                raise InvalidName(
                    f"Two columns of table {self.table!r} are {both}, one name to compilers of .proto files.",
                    next_step="Rename one.",
                )
            alike[_in_json(name)] = name

    def _is_same(self, given: pa.Field, column: Column) -> bool:
        kind = kind_of(self.table, self.path + given.name, given.type)
        try:
            type_with(self.table, column.name, kind, column)
        except IncompatibleTable:
            return False
        return True

    def _add(self, number: int, given: pa.Field, known: Column | None, *, has_presence: bool) -> None:
        path = self.path + given.name
        kind = kind_of(self.table, path, given.type)
        type_ = kind.type if known is None else type_with(self.table, path, kind, known)
        made = self.made.field.add(name=given.name, number=number, label=_Field.LABEL_OPTIONAL)
        holder = made
        if kind.shape is Shape.MAP:
            entry = self.made.nested_type.add(name=f"{_camel(given.name)}Entry")
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=_WIRE[kind.key or DataType.STRING])
            holder = entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL)
            made.type, made.type_name = _Field.TYPE_MESSAGE, f".{self.scope}.{entry.name}"
        if kind.shape is not Shape.ONE:
            made.label = _Field.LABEL_REPEATED
        elif has_presence and type_ is not DataType.MESSAGE:
            made.proto3_optional, made.oneof_index = True, len(self.made.oneof_decl)
            self.made.oneof_decl.add(name=f"_{given.name}")
        held = known.children[1] if known is not None and kind.shape is Shape.MAP else known
        holder.type = _wire(type_, held)
        if type_ is DataType.MESSAGE:
            self._add_within(holder, f"{_camel(given.name)}{number}", path, kind.fields, known)
        elif type_ in _LOGICAL:
            holder.options.Extensions[options_pb2.column].type = _LOGICAL[type_]
        if known is not None:
            keep_limits(made, known)

    def _add_within(self, holder: Any, name: str, path: str, fields: Iterable[pa.Field], known: Column | None) -> None:
        """Add the message that a field, or what a map maps to, holds.

        It is called after the column and its number: what another column was of that was called the same is another message.
        """
        holder.type_name = f".{self.scope}.{name}"
        before = _NOTHING if known is None else self.before.within(known)
        inner = _Message(self.table, self.made.nested_type.add(name=name), f"{self.scope}.{name}", before, f"{path}.")
        inner.fill(fields, {column.name: column for column in before.columns})

    def _refuse_types_called_alike(self) -> None:
        """``InvalidName`` where a message that a column needs is called as another column, or as what another one needs."""
        taken = {field.name for field in self.made.field}
        for nested in self.made.nested_type:
            if nested.name in taken:
                raise InvalidName(
                    f"A column of table {self.table!r} needs the name {self.path + nested.name!r} for what lies in it, and another has it.",
                    next_step="Rename one that is called like that but for its case, or for what stands behind it.",
                )
            taken.add(nested.name)

    def _reserve(self, used: Collection[int]) -> None:
        """Reserve what anything has had that nothing has now: its numbers, and its names where nothing else is called so."""
        gone = [column for column in self.before.columns if column.number not in used]
        every = descriptor_pb2.DescriptorProto(reserved_range=self.before.message.reserved_range)
        for column in gone:
            every.reserved_range.add(start=column.number, end=column.number + 1)
        for start, end in Reserved(every).without(used):
            self.made.reserved_range.add(start=start, end=end)
        names = {*self.before.message.reserved_name, *(column.name for column in gone)}
        self.made.reserved_name.extend(sorted(names - {field.name for field in self.made.field}))


def _wire(type_: DataType, known: Column | None) -> Any:
    """How a type is encoded: as it is by now, or as the wider of that is."""
    if known is None:
        return _WIRE[type_]
    return known.wire_type if known.type is type_ else WIDER.get(known.wire_type, _WIRE[type_])


def _refuse_unsayable(known: Table) -> None:
    """``IncompatibleTable`` for a table that has what no schema says: that would be gone."""
    for what in _unsayable(known):
        raise IncompatibleTable(
            f"Table {known.name!r} has {what}, which no schema says.",
            next_step="Change the .proto that it was declared by, and register that.",
        )


def _unsayable(known: Table) -> Iterator[str]:
    if known.sums or known.orders:
        yield "sums or orders"
    if known.data_reference:
        yield "a data reference"
    for column in known.shown_columns:
        if column.external or column.sensitive or column.default is not Default.NONE:
            yield f"a column {column.name!r} with a default or a meaning of its own"
        yield from _unsayable_within(column, column.name)


def _unsayable_within(column: Column, path: str) -> Iterator[str]:
    if column.type is DataType.ENUM:
        yield f"an enumeration, {path!r},"
    for child in column.children:
        yield from _unsayable_within(child, f"{path}.{child.name}")


def _say_options(row: Any, wanted: Wanted, known: Table | None) -> None:
    options = row.options.Extensions[options_pb2.table]
    keeps = wanted.keep_tombstones
    if keeps is None:
        keeps = known is None or known.keeps_tombstones
    retention = wanted.tombstone_retention_seconds
    if retention is None:
        retention = 0 if known is None else known.tombstone_retention_seconds
    options.name = wanted.name
    options.key.extend(wanted.key)
    options.id = wanted.id or _known_id(known, wanted.renamed) or ""
    if not keeps:
        options.tombstones = options_pb2.TOMBSTONES_DROPPED
    options.tombstone_retention_seconds = retention


def _known_id(known: Table | None, renamed: Mapping[str, str]) -> str | None:
    return None if known is None or known.id is None else renamed.get(known.id, known.id)


def _compiled(file: Any, message: str) -> Table:
    pool = descriptor_pool.DescriptorPool()
    for needed in (*_OPTIONS.dependencies, _OPTIONS):
        pool.AddSerializedFile(needed.serialized_pb)
    pool.Add(file)
    return table_of(pool.FindMessageTypeByName(message))


def _camel(name: str) -> str:
    """A name as protobuf makes that of a map's entries of it."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _in_json(name: str) -> str:
    """A name as protobuf has it in JSON: the next letter is upper case instead of a ``_`` before it."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
