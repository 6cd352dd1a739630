"""Compiled ``.proto`` files as compilers write them down: sets of descriptors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError

from ..errors import IncompatibleTable
from ..v1 import options_pb2

_OPTIONS: Any = options_pb2.DESCRIPTOR
_OWN = "bucketcatalog/v1/"


def options_set() -> bytes:
    """What declares the options of tables and columns, as a set of descriptors: what a compiler needs to compile a table."""
    files = descriptor_pb2.FileDescriptorSet()
    for file in (*_OPTIONS.dependencies, _OPTIONS):
        file.CopyToProto(files.file.add())
    return files.SerializeToString()


def include_path() -> Path:
    """The folder below which ``bucketcatalog/v1/options.proto`` is, which a ``.proto`` of tables imports: a ``--proto_path`` of compilers.

    A wheel has it in the package; who runs from the source tree has it there, in ``proto``.
    """
    package = Path(options_pb2.__file__).resolve().parents[2]
    return package if (package / _OPTIONS.name).is_file() else package.parent / "proto"


def tables_in(serialized: bytes, name: str) -> list[Descriptor]:
    """The row messages of the tables that a set of descriptors declares, which people call ``name``; those of this package are no news.

    ``IncompatibleTable`` where it is no such set, lacks a file that it needs, or declares no table.
    """
    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(serialized).file
        names = {file.name for file in files}
        for own in (*_OPTIONS.dependencies, _OPTIONS):  # which a set without its imports lacks
            if own.name not in names:
                pool.AddSerializedFile(own.serialized_pb)
        for file in files:
            _drop_json_names(file.message_type)
            pool.Add(file)
        opened = [pool.FindFileByName(file.name) for file in files if not file.name.startswith(_OWN)]
    except (TypeError, KeyError, DecodeError) as error:
        raise IncompatibleTable(
            f"{name} is no set of descriptors with all that they need: {str(error).splitlines()[0]}.",
            next_step="Make one with protoc --include_imports --descriptor_set_out=FILE, or with buf build -o FILE.binpb.",
        ) from None
    found = [message for file in opened for message in file.message_types_by_name.values() if _is_table(message)]
    if not found:
        raise IncompatibleTable(
            f"{name} declares no table.",
            next_step="Put the option (bucketcatalog.v1.table) with a name and a key on a message.",
        )
    return found


def _drop_json_names(messages: Any) -> None:
    """What a field is called in JSON, which these sets say and generated code does not: the same ``.proto`` is the same definition."""
    pending = list(messages)
    while pending:
        message = pending.pop()
        for field in message.field:
            field.ClearField("json_name")
        pending += message.nested_type


def _is_table(message: Descriptor) -> bool:
    described: Any = descriptor_pb2.DescriptorProto()
    message.CopyToProto(described)
    return bool(described.options.HasExtension(options_pb2.table))
