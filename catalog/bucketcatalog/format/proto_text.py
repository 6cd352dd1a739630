"""A ``.proto`` file as text, from its descriptor: what a compiler makes the same descriptor of.

It writes what ``schemas`` declares: messages of proto3 with what lies in them, and no enumerations, services or extensions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf import descriptor_pb2, text_format

from ..v1 import options_pb2

_Field = descriptor_pb2.FieldDescriptorProto
_NAMES = {
    _Field.TYPE_STRING: "string",
    _Field.TYPE_BYTES: "bytes",
    _Field.TYPE_BOOL: "bool",
    _Field.TYPE_INT32: "int32",
    _Field.TYPE_SINT32: "sint32",
    _Field.TYPE_SFIXED32: "sfixed32",
    _Field.TYPE_INT64: "int64",
    _Field.TYPE_SINT64: "sint64",
    _Field.TYPE_SFIXED64: "sfixed64",
    _Field.TYPE_UINT32: "uint32",
    _Field.TYPE_FIXED32: "fixed32",
    _Field.TYPE_UINT64: "uint64",
    _Field.TYPE_FIXED64: "fixed64",
    _Field.TYPE_FLOAT: "float",
    _Field.TYPE_DOUBLE: "double",
}
_INDENT = "  "


def proto_text(file: Any, comment: Iterable[str]) -> str:
    """The text of a file, below lines of comment."""
    lines = [f"// {line}".rstrip() for line in comment]
    lines += [f'syntax = "{file.syntax}";', "", f"package {file.package};", ""]
    lines += [f'import "{name}";' for name in file.dependency]
    for message in file.message_type:
        lines += ["", *_message(message)]
    return "\n".join(lines) + "\n"


def _message(message: Any) -> Iterator[str]:
    yield f"message {message.name} {{"
    if message.options.HasExtension(options_pb2.table):
        yield f"{_INDENT}option (bucketcatalog.v1.table) = {_aggregate(message.options.Extensions[options_pb2.table])};"
        yield ""
    if reserved := list(_reserved(message)):
        yield from (f"{_INDENT}{line}" for line in reserved)
        yield ""
    entries = {nested.name: nested for nested in message.nested_type if nested.options.map_entry}
    for nested in message.nested_type:
        if nested.name not in entries:
            yield from (f"{_INDENT}{line}" if line else "" for line in _message(nested))
            yield ""
    for field in message.field:
        yield f"{_INDENT}{_field(field, entries)}"
    yield "}"


def _reserved(message: Any) -> Iterator[str]:
    spans = [(span.start, span.end - 1) for span in message.reserved_range]
    if spans:
        numbers = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in spans)
        yield f"reserved {numbers};"
    if message.reserved_name:
        names = ", ".join(f'"{name}"' for name in message.reserved_name)
        yield f"reserved {names};"


def _field(field: Any, entries: dict[str, Any]) -> str:
    entry = entries.get(field.type_name.rpartition(".")[2])
    if entry is not None:
        key, item = entry.field
        label, kind = "", f"map<{_type(key)}, {_type(item)}>"
    else:
        is_list = field.label == _Field.LABEL_REPEATED
        label, kind = "repeated " if is_list else "optional " if field.proto3_optional else "", _type(field)
    options = ""
    if field.options.HasExtension(options_pb2.column):
        options = f" [(bucketcatalog.v1.column) = {_aggregate(field.options.Extensions[options_pb2.column])}]"
    return f"{label}{kind} {field.name} = {field.number}{options};"


def _type(field: Any) -> str:
    """What a field's type is called. A message lies in the one that has the field, so the last part of its name is enough."""
    return str(field.type_name.rpartition(".")[2]) if field.type == _Field.TYPE_MESSAGE else _NAMES[field.type]


def _aggregate(options: Any) -> str:
    return "{" + text_format.MessageToString(options, as_one_line=True).strip() + "}"
