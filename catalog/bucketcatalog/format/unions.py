"""One table definition from two: every field that either declares, so that one message class reads and writes the rows of both.

Fields are matched by number. Where both declare one, the newer names it and the wider type carries it; what only the older declares is
added to the newer's message, with the types that it needs. Whether the two can be read together at all is for ``schema`` to say.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2

from ..v1 import log_pb2
from .definitions import walk_types

_Field = descriptor_pb2.FieldDescriptorProto
WIDER: dict[int, int] = {
    _Field.TYPE_INT32: _Field.TYPE_INT64,
    _Field.TYPE_UINT32: _Field.TYPE_UINT64,
    _Field.TYPE_SINT32: _Field.TYPE_SINT64,
}
"""Types that a field may change to, or from, without its bytes meaning anything else."""


def union(older: bytes, newer: bytes) -> bytes:
    """The serialised definition that holds what both of these hold."""
    definition = log_pb2.TableDefinition.FromString(newer)
    known = log_pb2.TableDefinition.FromString(older)
    merging = _Union(known, definition)
    merging.messages(known.message, definition.message)
    merging.sort_files()
    return definition.SerializeToString(deterministic=True)


class _Union:
    """Adds to ``newer`` what only ``older`` has."""

    def __init__(self, older: Any, newer: Any) -> None:
        self._newer = newer
        self._old = {name: (file, item) for file in older.files.file for name, item in walk_types(file)}
        self._new = {name: (file, item) for file in newer.files.file for name, item in walk_types(file)}
        self._done: set[tuple[str, str]] = set()

    def messages(self, old_name: str, new_name: str) -> None:
        """Merge one message, and all that lies in it."""
        if (old_name, new_name) in self._done:
            return
        self._done.add((old_name, new_name))
        old, (file, new) = self._old[old_name][1], self._new[new_name]
        if isinstance(new, descriptor_pb2.EnumDescriptorProto):
            _add_symbols(old, new)
            return
        by_number = {field.number: field for field in new.field}
        names = {field.name for field in new.field}
        for field in old.field:
            same = by_number.get(field.number)
            if same is not None:
                same.type = field.type if WIDER.get(same.type) == field.type else same.type
                if field.type_name:
                    self.messages(field.type_name.lstrip("."), same.type_name.lstrip("."))
            else:
                self._add_field(field, file, new, names)

    def _add_field(self, field: Any, file: Any, message: Any, names: set[str]) -> None:
        added = message.field.add()
        added.CopyFrom(field)
        if added.name in names:
            added.name = f"{field.name}_{field.number}"
            added.ClearField("json_name")
        if added.HasField("oneof_index"):
            added.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{added.name}")
        if field.type_name:
            self._bring(field.type_name.lstrip("."), file)

    def _bring(self, name: str, file: Any) -> None:
        """Make a type of the older definition known where ``file`` can name it."""
        if name not in self._new:
            old_file, _ = self._old[name]
            top = _top_level(name, old_file.package)
            home = file if old_file.package == file.package else self._file_for(old_file)
            container = self._old[top][1]
            target = home.message_type if isinstance(container, descriptor_pb2.DescriptorProto) else home.enum_type
            target.add().CopyFrom(container)
            self._new |= {found: (home, item) for found, item in walk_types(home)}
            for _, item in walk_types(home):
                for inner in getattr(item, "field", ()):
                    if inner.type_name and inner.type_name.lstrip(".") not in self._new:
                        self._bring(inner.type_name.lstrip("."), home)
        elif name in self._old:
            self.messages(name, name)
        home = self._new[name][0]
        if home.name != file.name and home.name not in file.dependency:
            file.dependency.append(home.name)

    def _file_for(self, old: Any) -> Any:
        name = f"older/{old.name}"
        for file in self._newer.files.file:
            if file.name == name:
                return file
        return self._newer.files.file.add(name=name, package=old.package, syntax=old.syntax)

    def sort_files(self) -> None:
        """Put every file behind those that it depends on."""
        waiting = list(self._newer.files.file)
        ordered: list[Any] = []
        while waiting:
            names = {file.name for file in waiting}
            ready = [file for file in waiting if not names.intersection(file.dependency)] or waiting[:1]
            ordered += ready
            waiting = [file for file in waiting if file not in ready]
        copies = [type(file).FromString(file.SerializeToString()) for file in ordered]
        del self._newer.files.file[:]
        self._newer.files.file.extend(copies)


def _add_symbols(old: Any, new: Any) -> None:
    numbers, names = {value.number for value in new.value}, {value.name for value in new.value}
    for value in old.value:
        if value.number not in numbers and value.name not in names:
            new.value.add().CopyFrom(value)


def _top_level(name: str, package: str) -> str:
    prefix = f"{package}." if package else ""
    return prefix + name.removeprefix(prefix).partition(".")[0]
