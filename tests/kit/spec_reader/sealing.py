"""The messages of the log, and their seals (spec/sealing.md). They are compiled from proto/ each time."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PROTO = Path(__file__).resolve().parents[3] / "proto"


@cache
def pool() -> Any:
    """The messages of the log, compiled now, in a pool of their own."""
    tools = Path(sys.prefix) / "protoc"
    environment = os.environ | ({"PYTHONPATH": str(tools)} if (tools / "grpc_tools").is_dir() else {})
    with TemporaryDirectory() as folder:
        out = Path(folder, "log.binpb")
        command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTO}", "--include_imports"]
        command += [f"--descriptor_set_out={out}", "bucketcatalog/v1/log.proto", "bucketcatalog/v1/options.proto"]
        subprocess.run(command, env=environment, check=True, cwd=PROTO)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes()).file
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.Add(file)
    return pool


def message(name: str) -> Any:
    """The class of a message of the log."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(f"bucketcatalog.v1.{name}"))


def option(described: Any, name: str) -> Any:
    """An option of ours, of a message or a field in any pool."""
    extension = pool().FindExtensionByName(f"bucketcatalog.v1.{name}")
    options = message_factory.GetMessageClass(extension.containing_type)
    return options.FromString(described.GetOptions().SerializeToString()).Extensions[extension]


def unsealed(data: bytes, kind: str) -> Any:
    """A sealed message, its checksum checked before anything else (spec/sealing.md)."""
    body, tag, checksum = data[:-35], data[-35:-32], data[-32:]
    assert tag == b"\xfa\x7f\x20"
    assert hashlib.sha256(body).digest() == checksum
    parsed = message(kind).FromString(data)
    if kind == "KeyFilters":
        return parsed
    assert parsed.format_version == 1
    known = {
        "Checkpoint": {"asides", "runs", "boundary", "voids", "partial", "pins"},
        "Transaction": {"asides", "boundary", "voids", "pins"},
    }
    assert set(parsed.required_features) <= known.get(kind, set())
    return parsed


def seal(body: bytes) -> bytes:
    """A message's bytes with the checksum as their last field."""
    return body + b"\xfa\x7f\x20" + hashlib.sha256(body).digest()
