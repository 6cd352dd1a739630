"""Cuts between messages and values."""

from __future__ import annotations

from typing import Any

from ..cut import Cut, Head
from ..v1 import log_pb2


def cut_message(cut: Cut) -> Any:
    """The cut as a message."""
    message = log_pb2.Cut()
    for writer, heads in cut.heads.items():
        message.writers.add(writer=writer, heads=[log_pb2.Head(revision=head.revision, uuid=head.uuid) for head in heads])
    return message


def cut_of(writers: Any) -> Cut:
    """The cut that repeated WriterHeads hold."""
    return Cut.of((entry.writer, Head(head.revision, head.uuid)) for entry in writers for head in entry.heads)
