"""Table definitions between protobuf descriptors and ``Table`` values.

A definition travels in the log as the row message's name and the descriptor files it needs, so that any reader can show tables that it
was not built with. Only what the row message reaches goes along, and nothing of the options' own files: options stay readable as
extensions of the messages they stand on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import ModuleType
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import DecodeError, Message

from ..errors import CorruptionError, IncompatibleTable, UnsupportedFormat
from ..model.contradictions import problems, unfillable
from ..model.tables import Column, DataType, Default, Parent, SecondaryOrder, Shape, Sum, Table
from ..v1 import log_pb2, options_pb2, tables_pb2
from .bounds import check_definitions
from .extents import Types, cannot_be, is_map, refuse_too_large

_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    _Field.TYPE_STRING: DataType.STRING,
    _Field.TYPE_BYTES: DataType.BYTES,
    _Field.TYPE_BOOL: DataType.BOOL,
    _Field.TYPE_INT32: DataType.INT32,
    _Field.TYPE_SINT32: DataType.INT32,
    _Field.TYPE_SFIXED32: DataType.INT32,
    _Field.TYPE_INT64: DataType.INT64,
    _Field.TYPE_SINT64: DataType.INT64,
    _Field.TYPE_SFIXED64: DataType.INT64,
    _Field.TYPE_UINT32: DataType.UINT32,
    _Field.TYPE_FIXED32: DataType.UINT32,
    _Field.TYPE_UINT64: DataType.UINT64,
    _Field.TYPE_FIXED64: DataType.UINT64,
    _Field.TYPE_FLOAT: DataType.FLOAT,
    _Field.TYPE_DOUBLE: DataType.DOUBLE,
    _Field.TYPE_ENUM: DataType.ENUM,
    _Field.TYPE_MESSAGE: DataType.MESSAGE,
}
_LOGICAL = {
    options_pb2.LOGICAL_TYPE_UUID: DataType.UUID,
    options_pb2.LOGICAL_TYPE_TIMESTAMP_MICROS: DataType.TIMESTAMP,
    options_pb2.LOGICAL_TYPE_JSON: DataType.JSON,
    options_pb2.LOGICAL_TYPE_CUT: DataType.CUT,
}
_CARRIED_BY = {
    options_pb2.LOGICAL_TYPE_UUID: _Field.TYPE_BYTES,
    options_pb2.LOGICAL_TYPE_TIMESTAMP_MICROS: _Field.TYPE_INT64,
    options_pb2.LOGICAL_TYPE_JSON: _Field.TYPE_STRING,
    options_pb2.LOGICAL_TYPE_CUT: _Field.TYPE_STRING,
}
_DEFAULTS = {
    options_pb2.COLUMN_DEFAULT_UNSPECIFIED: Default.NONE,
    options_pb2.COLUMN_DEFAULT_CREATED: Default.CREATED,
    options_pb2.COLUMN_DEFAULT_MODIFIED: Default.MODIFIED,
    options_pb2.COLUMN_DEFAULT_INCARNATION: Default.INCARNATION,
}
_OPTION_FILES = frozenset({"bucketcatalog/v1/options.proto", "google/protobuf/descriptor.proto"})
_EXTERNAL = "external"


def core_tables() -> dict[str, Table]:
    """The tables that the package declares, by name."""
    return dict(_core_tables())


@lru_cache(maxsize=1)
def _core_tables() -> tuple[tuple[str, Table], ...]:
    return tuple((table.name, table) for table in tables_of(tables_pb2))


def tables_of(source: Any) -> list[Table]:
    """The tables of a compiled ``.proto``: a module, a message class, a descriptor, or several of these.

    ``IncompatibleTable`` where a message is not a table or its options contradict its fields.
    """
    if isinstance(source, ModuleType) and not hasattr(source, "DESCRIPTOR"):
        raise IncompatibleTable(
            f"The module {source.__name__!r} declares no tables.",
            next_step="Give a module that protoc generated, or its messages.",
        )
    if isinstance(source, ModuleType):
        file: FileDescriptor = source.DESCRIPTOR
        return [table_of(d) for d in file.message_types_by_name.values() if _is_table(d)]
    if isinstance(source, Descriptor):
        return [table_of(source)]
    if isinstance(source, type) and issubclass(source, Message):
        descriptor: Any = source.DESCRIPTOR
        return [table_of(descriptor)]
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        return [table for item in source for table in tables_of(item)]
    raise IncompatibleTable(f"{source!r} declares no tables.", next_step="Give a module that protoc generated, or its messages.")


def table_of(descriptor: Descriptor) -> Table:
    """The table that a row message declares; ``IncompatibleTable`` where it declares none that a writer can fill."""
    name = _options(_proto(descriptor)).name
    if not name:
        raise IncompatibleTable(
            f"The message {descriptor.full_name!r} is {'a table without a name' if _is_table(descriptor) else 'no table'}.",
            next_step="Give it a name and a key: option (bucketcatalog.v1.table) = {name: ..., key: ...}.",
        )
    definition = log_pb2.TableDefinition(message=descriptor.full_name, files=_needed_files(descriptor), name=name)
    table = parse_definition(definition.SerializeToString(deterministic=True))
    _refuse(table, unfillable(table))
    return table


@lru_cache(maxsize=256)
def parse_definition(serialized: bytes) -> Table:
    """The table of a serialised TableDefinition."""
    definition = log_pb2.TableDefinition.FromString(serialized)
    types = {name: message for file in definition.files.file for name, message in walk_types(file)}
    message = types.get(definition.message)
    if message is None or not _options(message).name:
        raise IncompatibleTable(
            f"The definition of table {definition.name!r} has no message {definition.message!r} that is a table.",
            next_step="Put the option (bucketcatalog.v1.table) with a name and a key on the row message.",
        )
    options, parent = _options(message), _options(message).parent
    for file in definition.files.file:
        if file.syntax != "proto3":
            raise cannot_be(options.name, f"{file.name!r} is written in {file.syntax or 'proto2'}, and only proto3 is read")
    refuse_too_large(definition.message, types, options.name)
    within = _Within(types, options)
    table = Table(
        name=options.name,
        columns=tuple(
            _column(field, within, options, is_own=True) for field in sorted(message.field, key=lambda field: field.number)
        ),
        key=tuple(options.key),
        id=options.id or None,
        data_reference=tuple(options.data_reference),
        parent=Parent(parent.table, parent.field, parent.must_exist) if parent.table else None,
        sums=tuple(Sum(total.name, total.field or None, tuple(total.group)) for total in options.sums),
        orders=tuple(
            SecondaryOrder(order.name, tuple(order.fields), order.of_tombstones, order.covering) for order in options.orders
        ),
        keeps_tombstones=options.tombstones != options_pb2.TOMBSTONES_DROPPED,
        tombstone_retention_seconds=options.tombstone_retention_seconds,
        definition=serialized,
    )
    _refuse(table, problems(table))
    return table


def definitions_of(messages: Any) -> tuple[Table, ...]:
    """The tables that a file defines; ``ValueError`` where these are more than a file has, errors as ``usable_definition``."""
    if not messages:
        return ()
    check_definitions(messages)
    return tuple(usable_definition(shape_of(message)) for message in messages)


def shape_of(message: Any) -> bytes:
    """What a definition says of its table, serialised, without who made it and when."""
    for name in ("defined_by", "definers", "declared"):
        message.ClearField(name)
    serialized: bytes = message.SerializeToString(deterministic=True)
    return serialized


@lru_cache(maxsize=256)
def usable_definition(serialized: bytes) -> Table:
    """The table of a serialised TableDefinition whose rows can be read; ``IncompatibleTable`` or ``ValueError`` where there is none."""
    table = parse_definition(serialized)
    try:
        row_class(serialized)
    except CorruptionError as error:
        raise ValueError(error.message.rstrip(".")) from None
    return table


@lru_cache(maxsize=256)
def row_class(definition: bytes) -> type[Message]:
    """The message class of a table's rows, made from its serialised definition."""
    parsed = log_pb2.TableDefinition.FromString(definition)
    pool = descriptor_pool.DescriptorPool()
    try:
        for file in parsed.files.file:
            pool.Add(file)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(parsed.message))
    except (TypeError, KeyError, DecodeError) as error:
        raise CorruptionError(
            f"The definition of table {parsed.name!r} cannot be used: {error}.",
            next_step="Write the table's definition again with a newer transaction.",
        ) from None


def _refuse(table: Table, problems: Iterable[str]) -> None:
    for problem in problems:
        raise cannot_be(table.name, problem)


class _Within:
    """The columns of messages that lie in a row, each made once: few messages can lie in each other in very many places."""

    def __init__(self, types: Types, options: Any) -> None:
        self.types = types
        self._options = options
        self._columns: dict[str, tuple[Column, ...]] = {}
        self._symbols: dict[str, tuple[tuple[int, str], ...]] = {}

    def columns(self, field: Any) -> tuple[Column, ...]:
        """Those of the message that a field is of."""
        name = field.type_name.lstrip(".")
        if name not in self._columns:
            children = sorted(self.types[name].field, key=lambda child: child.number)
            self._columns[name] = tuple(_column(child, self, self._options) for child in children)
        return self._columns[name]

    def symbols(self, field: Any) -> tuple[tuple[int, str], ...]:
        """Numbers and names of the enumeration that a field is of."""
        name = field.type_name.lstrip(".")
        if name not in self._symbols:
            self._symbols[name] = tuple((value.number, value.name) for value in self.types[name].value)
        return self._symbols[name]


def _column(field: Any, within: _Within, options: Any, *, is_own: bool = False) -> Column:
    """The column of a field of the row message, whose own it is, or of a message that lies in it."""
    column = field.options.Extensions[options_pb2.column]
    is_key = is_own and field.name in options.key
    _check_field(field, column.type, options.name)
    repeated = field.label == _Field.LABEL_REPEATED
    is_message = field.type == _Field.TYPE_MESSAGE
    if field.type not in _TYPES:
        raise cannot_be(options.name, f"its field {field.name!r} is of the type {field.type}, which no column has")
    return Column(
        number=field.number,
        name=field.name,
        type=_LOGICAL.get(column.type, _TYPES[field.type]),
        shape=Shape.MAP if is_map(field, within.types) else Shape.LIST if repeated else Shape.ONE,
        implicit=not repeated and not is_message and not field.proto3_optional and not is_key,
        wire_type=field.type,
        default=_default(column.default, options.name),
        sensitive=column.sensitive,
        max_bytes=column.max_bytes,
        minimum=column.minimum if column.HasField("minimum") else None,
        maximum=column.maximum if column.HasField("maximum") else None,
        allowed=tuple(column.allowed),
        external=is_external(field) if is_own else column.external,
        removed=is_own and column.removed,
        children=within.columns(field) if is_message else (),
        symbols=within.symbols(field) if field.type == _Field.TYPE_ENUM else (),
    )


def is_external(field: Any) -> bool:
    """Whether a field of a row message says that the data of the row's children is somebody else's.

    Definitions that are older than the option said so by the field's name. Unset it still goes by that, so that nothing is deleted that
    was not before.
    """
    column = field.options.Extensions[options_pb2.column]
    if column.HasField("external"):
        return bool(column.external)
    is_bool: bool = field.type == _Field.TYPE_BOOL and field.label != _Field.LABEL_REPEATED
    return is_bool and field.name == _EXTERNAL


def _default(number: Any, table: str) -> Default:
    if number not in _DEFAULTS:
        raise UnsupportedFormat(
            f"Table {table!r} has a column default of the unknown kind {number}.",
            next_step="Read it with a newer release of bucketcatalog.",
        )
    return _DEFAULTS[number]


def _check_field(field: Any, logical: Any, table: str) -> None:
    """``IncompatibleTable`` where a field is nothing that a column can be."""
    if field.HasField("oneof_index") and not field.proto3_optional:
        raise cannot_be(table, f"its field {field.name!r} is part of a oneof")
    if logical in _CARRIED_BY and field.type != _CARRIED_BY[logical]:
        raise cannot_be(table, f"the type of its field {field.name!r} cannot hold a {_LOGICAL[logical].value}")


def _is_table(descriptor: Descriptor) -> bool:
    return bool(_proto(descriptor).options.HasExtension(options_pb2.table))


def _options(message: Any) -> Any:
    return message.options.Extensions[options_pb2.table]


def _proto(descriptor: Descriptor) -> Any:
    proto = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(proto)
    return proto


def walk_types(file: Any) -> Iterator[tuple[str, Any]]:
    """Every message and enumeration of a file by its full name."""
    package = f"{file.package}." if file.package else ""
    return walk_within([(package, item) for item in (*file.message_type, *file.enum_type)])


def walk_within(pending: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Messages and enumerations, each given with what its full name begins with, and all that lie in them, by their full names."""
    while pending:
        prefix, item = pending.pop()
        yield prefix + item.name, item
        if isinstance(item, descriptor_pb2.DescriptorProto):
            pending.extend((f"{prefix}{item.name}.", nested) for nested in (*item.nested_type, *item.enum_type))


def _needed_files(descriptor: Descriptor) -> Any:
    """The descriptor files that ``descriptor`` needs, each with the top-level types that it reaches, dependencies first."""
    reached: dict[str, set[str]] = {}
    pending = [descriptor]
    seen: set[str] = set()
    while pending:
        current = pending.pop()
        if current.full_name in seen:
            continue
        seen.add(current.full_name)
        reached.setdefault(current.file.name, set()).add(_top_level(current))
        for field in current.fields:
            if field.message_type is not None:
                pending.append(field.message_type)
            elif field.enum_type is not None:
                reached.setdefault(field.enum_type.file.name, set()).add(_top_level(field.enum_type))
    files = descriptor_pb2.FileDescriptorSet()
    _add_file(descriptor.file, reached, files, set())
    return files


def _top_level(descriptor: Any) -> str:
    while descriptor.containing_type is not None:
        descriptor = descriptor.containing_type
    return str(descriptor.name)


def _add_file(file: FileDescriptor, reached: dict[str, set[str]], files: Any, done: set[str]) -> None:
    if file.name in done or file.name in _OPTION_FILES or file.name not in reached:
        return
    done.add(file.name)
    for dependency in file.dependencies:
        _add_file(dependency, reached, files, done)
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    kept = descriptor_pb2.FileDescriptorProto(name=proto.name, package=proto.package, syntax=proto.syntax)
    kept.dependency.extend(name for name in proto.dependency if name in reached and name not in _OPTION_FILES)
    wanted = reached[file.name]
    kept.message_type.extend(message for message in proto.message_type if message.name in wanted)
    kept.enum_type.extend(enum for enum in proto.enum_type if enum.name in wanted)
    files.file.append(kept)
