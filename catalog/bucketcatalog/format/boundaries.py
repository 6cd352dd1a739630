"""Boundaries of what may be deleted, between messages and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..model.cuts import Cut, Head
from ..v1 import log_pb2
from .cuts import cut_message, cut_of, uuid_of
from .records import UNPUBLISHED, Stamp, stamp_message, stamp_of


@dataclass(frozen=True, slots=True)
class CheckpointLink:
    """Names a checkpoint of any writer and fixes its content by its digest."""

    writer: str
    revision: int
    uuid: bytes
    digest: bytes

    @property
    def head(self) -> Head:
        """The checkpoint's place on its writer's timeline."""
        return Head(self.revision, self.uuid)


@dataclass(frozen=True, slots=True)
class Boundary:
    """What one transaction allows to be deleted: what no cut that contains ``horizon`` needs, and data that ended up to ``data``.

    With an empty horizon it says nothing of the history, with ``data`` 0 nothing of data. ``checkpoint`` is the horizon's. ``settled``
    is the time up to which no transaction can arrive any more that the boundary did not know of. ``first`` are the first transactions of
    the timelines that it allows to be deleted, ``floors`` the revisions before which anything is. Times are in microseconds; ``stamp`` is
    what the stamps of its transaction's events begin with.
    """

    horizon: Cut = field(default_factory=Cut)
    checkpoint: CheckpointLink | None = None
    data: int = 0
    settled: int = 0
    first: Cut = field(default_factory=Cut)
    floors: Mapping[str, int] = field(default_factory=dict)
    stamp: Stamp = UNPUBLISHED


def boundary_message(boundary: Boundary, *, with_stamp: bool) -> Any:
    """The boundary as a message, with its stamp where nothing around it tells that."""
    message = log_pb2.Boundary(data=boundary.data, settled=boundary.settled)
    if boundary.horizon.heads:
        message.horizon.CopyFrom(cut_message(boundary.horizon))
    if boundary.first.heads:
        message.first.CopyFrom(cut_message(boundary.first))
    if (link := boundary.checkpoint) is not None:
        message.checkpoint.CopyFrom(
            log_pb2.TransactionLink(writer=link.writer, revision=link.revision, uuid=link.uuid, digest=link.digest)
        )
    for writer, revision in sorted(boundary.floors.items()):
        message.floors.add(writer=writer, revision=revision)
    if with_stamp:
        message.carried_by.CopyFrom(stamp_message(boundary.stamp))
    return message


def boundary_of(message: Any, stamp: Stamp | None = None) -> Boundary:
    """The boundary that a message holds, of the transaction with this stamp or else of the one that the message names."""
    link = message.checkpoint
    return Boundary(
        horizon=cut_of(message.horizon.writers),
        checkpoint=CheckpointLink(link.writer, link.revision, uuid_of(link), link.digest)
        if message.HasField("checkpoint")
        else None,
        data=message.data,
        settled=message.settled,
        first=cut_of(message.first.writers),
        floors={floor.writer: floor.revision for floor in message.floors},
        stamp=stamp if stamp is not None else stamp_of(message.carried_by),
    )
