"""Cuts between messages and values, and the uuids that messages name files by."""

from __future__ import annotations

from typing import Any

from ..model.cuts import Cut, Head
from ..v1 import log_pb2


def cut_message(cut: Cut) -> Any:
    """The cut as a message."""
    message = log_pb2.Cut()
    for writer, heads in cut.heads.items():
        message.writers.add(writer=writer, heads=[log_pb2.Head(revision=head.revision, uuid=head.uuid) for head in heads])
    return message


def cut_of(writers: Any) -> Cut:
    """The cut that repeated WriterHeads hold; ``ValueError`` where a uuid is none."""
    return Cut.of((entry.writer, head_of(head)) for entry in writers for head in entry.heads)


def head_of(message: Any) -> Head:
    """The head that a message holds, or anything that has a revision and a uuid; ``ValueError`` where the uuid is none."""
    return Head(message.revision, uuid_of(message))


def uuid_of(message: Any) -> bytes:
    """The uuid of a message; ``ValueError`` where it is none."""
    uuid: bytes = message.uuid
    if len(uuid) != 16:
        raise ValueError(f"it names something by {len(uuid)} bytes where a uuid has 16")
    return uuid
