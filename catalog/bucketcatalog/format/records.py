"""Entries of tags between messages and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..model.cuts import Cut
from ..v1 import log_pb2
from .cuts import cut_message, cut_of, uuid_of

Stamp = tuple[int, str, int, bytes]
UNPUBLISHED: Stamp = (0, "", 0, b"")
"""Of what no transaction has carried yet."""


@dataclass(frozen=True, slots=True)
class TagEntry:
    """What one transaction says of a name: that it is given to ``cut``, or with ``dropped`` that it is taken back from there.

    ``created`` is when the name was given to the cut, ``stamp`` is what the stamps of the transaction's events begin with.
    """

    name: str
    cut: Cut
    dropped: bool = False
    created: int = 0
    stamp: Stamp = UNPUBLISHED


def stamp_message(stamp: Stamp) -> Any:
    """What a transaction's stamps begin with, as a message."""
    commit_time, writer, revision, uuid = stamp
    return log_pb2.TransactionStamp(commit_time=commit_time, writer=writer, revision=revision, uuid=uuid)


def stamp_of(message: Any) -> Stamp:
    """The stamp that a message holds; ``ValueError`` where its uuid is none."""
    return (message.commit_time, message.writer, message.revision, uuid_of(message))


def tag_message(entry: TagEntry, *, with_stamp: bool) -> Any:
    """The entry as a message, with its stamp where nothing around it tells that."""
    message = log_pb2.Tag(name=entry.name, cut=cut_message(entry.cut), dropped=entry.dropped, created=entry.created)
    if with_stamp:
        message.carried_by.CopyFrom(stamp_message(entry.stamp))
    return message


def tag_of(message: Any, stamp: Stamp | None = None) -> TagEntry:
    """The entry that a message holds, of the transaction with this stamp or else of the one that the message names."""
    own = stamp if stamp is not None else stamp_of(message.carried_by)
    return TagEntry(message.name, cut_of(message.cut.writers), message.dropped, message.created, own)
