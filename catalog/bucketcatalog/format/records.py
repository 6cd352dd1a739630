"""Small values that transactions and checkpoints carry, as messages.

Cuts, links, voids, what is set aside, which definitions were witnessed, entries of tags and of pins, boundaries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..model.cuts import UNPUBLISHED, Cut, Head, OnTimeline, OnTimelineOf, Ref, Stamp
from ..v1 import log_pb2
from .bounds import digest_of, heads_of, name_of, revision_of, tag_name_of, time_of, uuid_of


@dataclass(frozen=True, slots=True)
class Link(OnTimeline):
    """Names a transaction of the same timeline and fixes its content by its digest."""

    revision: int
    uuid: bytes
    digest: bytes


class Linked(OnTimelineOf):
    """The same of a transaction, which also tells its ``parents`` and what it had read of other writers."""

    __slots__ = ()
    parents: tuple[Link, ...]
    reads: Cut

    @property
    def parent_refs(self) -> tuple[Ref, ...]:
        """The transactions of its own timeline that it comes after."""
        return tuple(Ref(self.writer, link.head) for link in self.parents)

    @property
    def built_on(self) -> tuple[Ref, ...]:
        """These, and what it had read."""
        return (*self.parent_refs, *self.reads.refs())


@dataclass(frozen=True, slots=True)
class Void:
    """Names a transaction of any timeline that readers treat as absent."""

    writer: str
    link: Link

    @property
    def ref(self) -> Ref:
        """Whose transaction it is, and where it stands."""
        return Ref(self.writer, self.link.head)


@dataclass(frozen=True, slots=True)
class SetAside(Linked):
    """What one transaction says of a transaction of any timeline: that it counts as one without events, or with ``taken_in`` as what it is.

    ``parents``, whose digests are empty, and ``reads`` are all that it is taken for. ``stamp`` is what the stamps of the transaction's
    events begin with.
    """

    writer: str
    revision: int
    uuid: bytes
    parents: tuple[Link, ...] = ()
    reads: Cut = field(default_factory=Cut)
    taken_in: bool = False
    stamp: Stamp = UNPUBLISHED


def cut_message(cut: Cut) -> Any:
    """The cut as a message."""
    message = log_pb2.Cut()
    for writer, heads in cut.heads.items():
        message.writers.add(writer=writer, heads=[log_pb2.Head(revision=head.revision, uuid=head.uuid) for head in heads])
    return message


def cut_of(writers: Any) -> Cut:
    """The cut that repeated WriterHeads hold; ``ValueError`` where a name or a head is none."""
    return Cut.of((name_of(entry.writer), head_of(head)) for entry in writers for head in heads_of(entry))


def head_of(message: Any) -> Head:
    """The head that a message holds, or anything that has a revision and a uuid; ``ValueError`` where these are none."""
    return Head(revision_of(message.revision), uuid_of(message))


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
    """The stamp that a message holds; ``ValueError`` where a part of it is none."""
    return Stamp(time_of(message.commit_time), name_of(message.writer), revision_of(message.revision), uuid_of(message))


def tag_message(entry: TagEntry, *, with_stamp: bool) -> Any:
    """The entry as a message, with its stamp where nothing around it tells that."""
    message = log_pb2.Tag(name=entry.name, cut=cut_message(entry.cut), dropped=entry.dropped, created=entry.created)
    if with_stamp:
        message.carried_by.CopyFrom(stamp_message(entry.stamp))
    return message


def tag_of(message: Any, stamp: Stamp | None = None) -> TagEntry:
    """The entry that a message holds, of the transaction with this stamp or else of the one that the message names."""
    own = stamp if stamp is not None else stamp_of(message.carried_by)
    return TagEntry(tag_name_of(message.name), cut_of(message.cut.writers), message.dropped, time_of(message.created), own)


@dataclass(frozen=True, slots=True)
class PinEntry:
    """What one transaction says of a pin of its writer: that it needs all that is committed after ``cut``, or with ``dropped`` nothing.

    ``stamp`` is what the stamps of the transaction's events begin with.
    """

    name: str
    cut: Cut = field(default_factory=Cut)
    dropped: bool = False
    stamp: Stamp = UNPUBLISHED

    @property
    def key(self) -> tuple[str, str]:
        """Whose pin it is, and what it is called: each writer speaks of its own."""
        return self.stamp.writer, self.name


def pin_message(entry: PinEntry, *, with_stamp: bool) -> Any:
    """The entry as a message, with its stamp where nothing around it tells that."""
    message = log_pb2.Pin(name=entry.name, dropped=entry.dropped)
    if entry.cut.heads:
        message.cut.CopyFrom(cut_message(entry.cut))
    if with_stamp:
        message.carried_by.CopyFrom(stamp_message(entry.stamp))
    return message


def pin_of(message: Any, stamp: Stamp | None = None) -> PinEntry:
    """The entry that a message holds, of the transaction with this stamp or else of the one that the message names."""
    own = stamp if stamp is not None else stamp_of(message.carried_by)
    return PinEntry(name_of(message.name), cut_of(message.cut.writers), message.dropped, own)


@dataclass(frozen=True, slots=True)
class CheckpointLink(OnTimelineOf):
    """Names a checkpoint of any writer and fixes its content by its digest."""

    writer: str
    revision: int
    uuid: bytes
    digest: bytes


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
        checkpoint=CheckpointLink(name_of(link.writer), revision_of(link.revision), uuid_of(link), digest_of(link.digest))
        if message.HasField("checkpoint")
        else None,
        data=time_of(message.data),
        settled=time_of(message.settled),
        first=cut_of(message.first.writers),
        floors={name_of(floor.writer): revision_of(floor.revision) for floor in message.floors},
        stamp=stamp if stamp is not None else stamp_of(message.carried_by),
    )


def aside_message(entry: SetAside, *, with_stamp: bool) -> Any:
    """The entry as a message, with its stamp where nothing around it tells that."""
    message = log_pb2.SetAside(writer=entry.writer, revision=entry.revision, uuid=entry.uuid, taken_in=entry.taken_in)
    for link in entry.parents:
        message.parents.add(writer=entry.writer, revision=link.revision, uuid=link.uuid, digest=link.digest)
    if entry.reads.heads:
        message.reads.extend(cut_message(entry.reads).writers)
    if with_stamp:
        message.carried_by.CopyFrom(stamp_message(entry.stamp))
    return message


def aside_of(message: Any, stamp: Stamp | None = None) -> SetAside:
    """The entry that a message holds, of the transaction with this stamp or else of the one that the message names."""
    return SetAside(
        writer=message.writer,
        revision=message.revision,
        uuid=uuid_of(message),
        parents=tuple(map(link_of, message.parents)),
        reads=cut_of(message.reads),
        taken_in=message.taken_in,
        stamp=stamp if stamp is not None else stamp_of(message.carried_by),
    )


@dataclass(frozen=True, slots=True)
class Witness:
    """What one transaction says of a definition of a table: that it had read the one of this ``digest`` that ``defined_by`` carries.

    ``stamp`` is what the stamps of the transaction's events begin with.
    """

    table: str
    digest: bytes
    defined_by: Stamp
    stamp: Stamp = UNPUBLISHED

    @property
    def of(self) -> Ref:
        """The transaction that carries the definition."""
        _, writer, revision, uuid = self.defined_by
        return Ref(writer, Head(revision, uuid))


def witness_message(witness: Witness, *, with_stamp: bool) -> Any:
    """The witness as a message, with its stamp where nothing around it tells that."""
    message = log_pb2.Witness(table=witness.table, definition=witness.digest, defined_by=stamp_message(witness.defined_by))
    if with_stamp:
        message.carried_by.CopyFrom(stamp_message(witness.stamp))
    return message


def witness_of(message: Any, stamp: Stamp | None = None) -> Witness:
    """The witness that a message holds, of the transaction with this stamp or else of the one that the message names."""
    own = stamp if stamp is not None else stamp_of(message.carried_by)
    digest = digest_of(message.definition)
    if not digest:
        raise ValueError("it names a definition by an empty digest")
    return Witness(message.table, digest, stamp_of(message.defined_by), own)


def void_message(void: Void) -> Any:
    """The void as a message."""
    link = void.link
    return log_pb2.TransactionLink(writer=void.writer, revision=link.revision, uuid=link.uuid, digest=link.digest)


def void_of(message: Any) -> Void:
    """The void that a message holds."""
    return Void(name_of(message.writer), link_of(message))


def link_of(message: Any) -> Link:
    """The link that a message holds; ``ValueError`` where a part of it is none."""
    return Link(revision_of(message.revision), uuid_of(message), digest_of(message.digest))


@dataclass(frozen=True, slots=True)
class Retirement:
    """What a checkpoint says of a writer: that it commits no more once it has seen this; and once it is ``sealed`` nothing can arrive.

    ``since`` is the store's time in microseconds at which the first checkpoint that says so had been published, 0 in that one.
    """

    writer: str
    since: int = 0
    sealed: bool = False


def retirement_message(retirement: Retirement) -> Any:
    """The retirement as a message."""
    return log_pb2.Retirement(writer=retirement.writer, since=retirement.since, sealed=retirement.sealed)


def retirement_of(message: Any) -> Retirement:
    """The retirement that a message holds."""
    return Retirement(name_of(message.writer), time_of(message.since), message.sealed)
