"""One table from several definitions, by which rows of older and newer schemas are read together.

Fields are matched by number. The newer definition decides names and options; what only the older declares is kept, with the types that it
needs, and the wider type carries what both declare. What cannot be read together is an error that names the table, never a silent cast:
that is for ``merge`` to say, before ``union`` makes one message of several, and after. Which definition counts as newer says ``authority``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from google.protobuf import descriptor_pb2

from ..errors import IncompatibleTable
from ..model.tables import Column, DataType, Table
from ..v1 import log_pb2, options_pb2
from .definitions import is_external, usable_definition, walk_types, walk_within
from .reserved import Reserved, release, reserves

_Field = descriptor_pb2.FieldDescriptorProto
WIDER: dict[int, int] = {
    _Field.TYPE_INT32: _Field.TYPE_INT64,
    _Field.TYPE_UINT32: _Field.TYPE_UINT64,
    _Field.TYPE_SINT32: _Field.TYPE_SINT64,
}
"""Types that a field may change to, or from, without its bytes meaning anything else."""


def union(older: Iterable[bytes], newer: bytes) -> bytes:
    """The serialised definition that holds what all of these hold: one message class reads and writes the rows of each.

    Of the ``older`` ones the first that has something decides. A field that one of them says to mark somebody else's data does so, and
    rows that belong to others by one of them do so. What the newer one has reserved the number of is removed, but for these two.
    It takes what they are long, however many they are.
    """
    definition = log_pb2.TableDefinition.FromString(newer)
    merging = _Union(definition)
    for one in older:
        merging.add(log_pb2.TableDefinition.FromString(one))
    merging.finish()
    return definition.SerializeToString(deterministic=True)


class _Fields:
    """The fields of a message by number, and their names."""

    def __init__(self, message: Any) -> None:
        self.by_number = {field.number: field for field in message.field}
        self.names = {field.name for field in message.field}


class _Union:
    """Adds to ``newer`` what only older definitions have, one after the other.

    Types that lie in each other, or lead to each other, may be very many: what is left to do waits in lists, and nothing calls itself.
    """

    def __init__(self, newer: Any) -> None:
        self._newer = newer
        self._new = {name: (file, item) for file in newer.files.file for name, item in walk_types(file)}
        self._files = {file.name: file for file in newer.files.file}
        self._needs = {file.name: set(file.dependency) for file in newer.files.file}
        self._fields: dict[str, _Fields] = {}
        self._removed = Reserved(self._row)
        self._reserving = [item for _, item in self._new.values() if reserves(item)]
        self._old: dict[str, tuple[Any, Any]] = {}
        self._done: set[tuple[str, str]] = set()
        self._pairs: list[tuple[str, str]] = []
        self._wanted: list[tuple[str, Any]] = []

    def add(self, older: Any) -> None:
        """Add what only this one has."""
        self._old = {name: (file, item) for file in older.files.file for name, item in walk_types(file)}
        self._done = set()
        self._pairs = [(older.message, self._newer.message)]
        while self._pairs or self._wanted:
            if self._pairs:
                self._merge(*self._pairs.pop())
            else:
                self._bring(*self._wanted.pop())
        self._keep_external(older.message)
        self._keep_parent(older.message)

    @property
    def _row(self) -> Any:
        return self._new[self._newer.message][1]

    def _fields_of(self, name: str) -> _Fields:
        """Those of a message of the newer definition, as it is by now."""
        if name not in self._fields:
            self._fields[name] = _Fields(self._new[name][1])
        return self._fields[name]

    def _merge(self, old_name: str, new_name: str) -> None:
        """Merge one message; what lies in it waits."""
        if (old_name, new_name) in self._done:
            return
        self._done.add((old_name, new_name))
        old, (file, new) = self._old[old_name][1], self._new[new_name]
        if type(old) is not type(new):
            raise _two_kinds(new_name)
        if isinstance(new, descriptor_pb2.EnumDescriptorProto):
            _add_symbols(old, new)
            return
        known = self._fields_of(new_name)
        for field in old.field:
            same = known.by_number.get(field.number)
            if same is not None:
                same.type = field.type if WIDER.get(same.type) == field.type else same.type
                if field.type_name:
                    self._pairs.append((field.type_name.lstrip("."), same.type_name.lstrip(".")))
            else:
                self._add_field(field, file, new, known)

    def _keep_external(self, old_name: str) -> None:
        """What the older definition says to mark somebody else's data stays that, whatever the newer calls it or says of it."""
        merged = self._fields_of(self._newer.message).by_number
        for field in self._old[old_name][1].field:
            if is_external(field) and not is_external(merged[field.number]):
                _column_of(merged[field.number]).external = True
                _column_of(merged[field.number]).ClearField("removed")

    def _keep_parent(self, old_name: str) -> None:
        """Rows that have a parent by the older definition keep it where the newer names none, by what their column is called there."""
        old, new = self._old[old_name][1], self._row
        known, parent = (message.options.Extensions[options_pb2.table].parent for message in (old, new))
        if known.table and not parent.table:
            number = next(field.number for field in old.field if field.name == known.field)
            kept = self._fields_of(self._newer.message).by_number[number]
            parent.table, parent.field = known.table, kept.name
            _column_of(kept).ClearField("removed")

    def _add_field(self, field: Any, file: Any, message: Any, known: _Fields) -> None:
        added = message.field.add()
        added.CopyFrom(field)
        while added.name in known.names:
            added.name = f"{added.name}_{field.number}"
            added.ClearField("json_name")
        known.by_number[added.number] = added
        known.names.add(added.name)
        if message is self._row and added.number in self._removed and not is_external(added):
            _column_of(added).removed = True
        if added.HasField("oneof_index"):
            added.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{added.name}")
        if field.type_name:
            self._wanted.append((field.type_name.lstrip("."), file))

    def _bring(self, name: str, file: Any) -> None:
        """Make a type of the older definition known where ``file`` can name it, within the message of that name that it lies in."""
        if name not in self._new:
            outermost, around = name, name.rpartition(".")[0]
            while around in self._old and around not in self._new:  # which comes with all that lies in it
                outermost, around = around, around.rpartition(".")[0]
            self._copy(outermost, around, file)
        elif name in self._old:
            self._pairs.append((name, name))
        home = self._new[name][0]
        if home.name != file.name and home.name not in self._needs[file.name]:
            file.dependency.append(home.name)
            self._needs[file.name].add(home.name)

    def _copy(self, name: str, around: str, file: Any) -> None:
        """Copy a type into the message ``around`` it, or into a file; what its fields need waits."""
        old_file, item = self._old[name]
        home, message = self._new.get(around, (None, None))
        if home is None:
            home = file if old_file.package == file.package else self._file_for(old_file)
            messages, enums = home.message_type, home.enum_type
        elif isinstance(message, descriptor_pb2.DescriptorProto):
            messages, enums = message.nested_type, message.enum_type
        else:
            raise _two_kinds(around)
        brought = (messages if isinstance(item, descriptor_pb2.DescriptorProto) else enums).add()
        brought.CopyFrom(item)
        below = list(walk_within([(name.removesuffix(item.name), brought)]))
        self._new |= {found: (home, each) for found, each in below}
        fields = (inner for _, each in below for inner in getattr(each, "field", ()) if inner.type_name)
        self._wanted += [(inner.type_name.lstrip("."), home) for inner in fields]

    def _file_for(self, old: Any) -> Any:
        name = f"older/{old.name}"
        if name not in self._files:
            self._files[name] = self._newer.files.file.add(name=name, package=old.package, syntax=old.syntax)
            self._needs[name] = set()
        return self._files[name]

    def finish(self) -> None:
        """Leave nothing reserved that there is after all, and put every file behind those that it depends on."""
        for message in self._reserving:
            release(message)
        self._sort_files()

    def _sort_files(self) -> None:
        """Put every file behind those that it depends on."""
        every = list(self._newer.files.file)
        names = {file.name for file in every}
        needed_by: dict[str, list[Any]] = {}
        missing = {file.name: len(self._needs[file.name] & names) for file in every}
        for file in every:
            for name in self._needs[file.name] & names:
                needed_by.setdefault(name, []).append(file)
        ordered = [file for file in every if not missing[file.name]]
        for file in ordered:  # which grows meanwhile
            for other in needed_by.get(file.name, ()):
                missing[other.name] -= 1
                if not missing[other.name]:
                    ordered.append(other)
        if len(ordered) < len(every):
            raise IncompatibleTable(
                f"The files of a definition of table {self._newer.name!r} need each other.",
                next_step="Put what needs each other into one file.",
            )
        copies = [type(file).FromString(file.SerializeToString()) for file in ordered]
        del self._newer.files.file[:]
        self._newer.files.file.extend(copies)


def _column_of(field: Any) -> Any:
    return field.options.Extensions[options_pb2.column]


def _two_kinds(name: str) -> IncompatibleTable:
    return IncompatibleTable(
        f"The type {name!r} is a message in one definition of a table and an enumeration in another.",
        next_step="Give the new type a name of its own.",
    )


def _add_symbols(old: Any, new: Any) -> None:
    numbers, names = {value.number for value in new.value}, {value.name for value in new.value}
    for value in old.value:
        if value.number not in numbers and value.name not in names:
            new.value.add().CopyFrom(value)


_INTEGERS = {DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64}
_TEXTS = {DataType.STRING, DataType.JSON, DataType.CUT}


def merge(older: Table, newer: Table) -> Table:
    """``newer`` with what only ``older`` declares; ``IncompatibleTable`` where the two contradict."""
    return merge_all([older], newer)


def merge_all(older: Sequence[Table], newer: Table) -> Table:
    """``newer`` with what only the ``older`` ones declare, the first of them that does; ``IncompatibleTable`` where any two contradict.

    The same as if they were merged one after the other, but in time that grows with what they say and not with their number as well.
    """
    parent = newer
    for each in older:
        _check_key(each, newer)
        _check_fixed(each, newer)
        _check_parent(each, parent)
        _check_columns(newer.name, each.columns, newer.by_number)
        parent = each if parent.parent is None else parent
    try:
        merged = usable_definition(union((each.definition for each in older), newer.definition))
    except ValueError as error:
        raise IncompatibleTable(
            f"What is defined of table {newer.name!r} makes no message together: {error}.",
            next_step="Give new types, columns and symbols names of their own.",
        ) from None
    for part in (*older, newer):  # a message that both have may mean another thing where only one has a column of it
        _check_columns(newer.name, part.columns, merged.by_number)
    return merged


def _check_key(older: Table, newer: Table) -> None:
    def shape(table: Table) -> list[tuple[int, DataType]]:
        return [(column.number, column.type) for column in table.key_columns]

    if shape(older) != shape(newer):
        raise IncompatibleTable(
            f"Table {newer.name!r} is defined with two keys: {', '.join(older.key)} and {', '.join(newer.key)}.",
            next_step="Give the new definition a name of its own.",
        )


def _check_fixed(older: Table, newer: Table) -> None:
    """What a fold has forgotten cannot be had back, so what UPDATEs leave alone, and what becomes of ended versions, cannot change.

    Nor can where data lies: what a row named by the older definition would be garbage by the newer.
    """
    if _identity(older) != _identity(newer):
        raise IncompatibleTable(
            f"Table {newer.name!r} is defined with two ids: {older.id or 'none'} and {newer.id or 'none'}.",
            next_step="Give the new definition a name of its own.",
        )
    if _reference(older) != _reference(newer):
        said = [", ".join(table.data_reference) or "none" for table in (older, newer)]
        raise IncompatibleTable(
            f"Table {newer.name!r} is defined with two data references: {' and '.join(said)}.",
            next_step="Give the new definition a name of its own.",
        )
    if older.keeps_tombstones != newer.keeps_tombstones:
        raise IncompatibleTable(
            f"Table {newer.name!r} is defined to keep tombstones, and to drop them.",
            next_step="Give the new definition a name of its own.",
        )


def _check_parent(older: Table, newer: Table) -> None:
    """Whose a row's data is says its parent: by another one, somebody else's data would be ours to delete.

    A definition that names no parent contradicts none: one may be declared while others still write without it.
    """
    parents = [_parent(table) for table in (older, newer)]
    if None not in parents and parents[0] != parents[1]:
        said = [f"{parent[0]!r} by field {parent[1]}" for parent in parents if parent is not None]
        raise IncompatibleTable(
            f"Table {newer.name!r} is defined with two parents: {' and '.join(said)}.",
            next_step="Give the new definition a name of its own.",
        )


def _parent(table: Table) -> tuple[str, int] | None:
    return (table.parent.table, table.by_name[table.parent.column].number) if table.parent is not None else None


def _identity(table: Table) -> int | None:
    return table.by_name[table.id].number if table.id is not None else None


def _reference(table: Table) -> list[tuple[int, str, DataType]]:
    """Tables that have the same columns here, by name and type, in the same order, name each other's data."""
    columns = [table.by_name[name] for name in table.data_reference]
    return [(column.number, column.name, column.type) for column in columns]


def _check_columns(table: str, older: Iterable[Column], newer: Mapping[str, Column]) -> None:
    """``newer`` are by number, as they are named in storage."""
    for other in older:
        column = newer.get(other.field_name)
        if column is None:
            continue
        if other.shape is not column.shape or not _same_bytes(other, column) or not _same_meaning(other, column):
            raise IncompatibleTable(
                f"Column {column.name!r} (field {column.number}) of table {table!r} is defined in two ways: "
                f"as {_described(other)} and as {_described(column)}.",
                next_step="Give the new column a field number of its own.",
            )
        _check_unset(table, other, column)
        _check_columns(table, other.children, {child.field_name: child for child in column.children})


def _check_unset(table: str, older: Column, newer: Column) -> None:
    """Checkpoints hold what unset columns stand for, times and zeros: what rows had not said before cannot be had back."""
    if older.implicit is not newer.implicit:
        presence = [f"with{'out' if column.implicit else ''} presence" for column in (older, newer)]
        raise IncompatibleTable(
            f"Column {newer.name!r} (field {newer.number}) of table {table!r} is defined {' and '.join(presence)}.",
            next_step="Keep it optional or not as it is, or give the new column a field number of its own.",
        )
    if older.default is not newer.default and (older.default.is_of_a_stamp or newer.default.is_of_a_stamp):
        raise IncompatibleTable(
            f"Column {newer.name!r} (field {newer.number}) of table {table!r} is defined with two defaults: "
            f"{older.default.value} and {newer.default.value}.",
            next_step="Give the new column a field number of its own.",
        )


def _same_bytes(one: Column, other: Column) -> bool:
    wires = (one.wire_type, other.wire_type)
    return wires[0] == wires[1] or WIDER.get(wires[0]) == wires[1] or WIDER.get(wires[1]) == wires[0]


def _same_meaning(one: Column, other: Column) -> bool:
    wide = one.wire_type != other.wire_type and {one.type, other.type} <= _INTEGERS
    return one.type is other.type or wide or {one.type, other.type} <= _TEXTS


def _described(column: Column) -> str:
    return f"{column.shape.value} {column.type.value} (protobuf type {column.wire_type})"
