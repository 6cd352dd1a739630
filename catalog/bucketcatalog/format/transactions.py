"""Transactions between bytes and values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .. import limits
from ..errors import CorruptionError, UnsupportedFormat
from ..model.cuts import Cut, Stamp
from ..model.events import Event, EventKind, VersionName
from ..model.facts import LAST_SEQUENCE
from ..model.names import is_maintainer
from ..model.tables import Table
from ..v1 import log_pb2
from .authority import Definition
from .blocks import EncodedBlock, block_place
from .bounds import UNDECODABLE, check_size, check_transaction, refuse_unreadable, uuid_of, why
from .definitions import definitions_of
from .headers import BlockPlace
from .records import (
    Boundary,
    Link,
    Linked,
    PinEntry,
    SetAside,
    TagEntry,
    Void,
    Witness,
    aside_message,
    aside_of,
    boundary_message,
    boundary_of,
    cut_message,
    cut_of,
    link_of,
    pin_message,
    pin_of,
    tag_message,
    tag_of,
    void_message,
    void_of,
    witness_message,
    witness_of,
)
from .rows import decode_row, encode_row
from .runs import SegmentReference, known_segments, segment_message
from .sealing import ASIDES, BOUNDARY, FORMAT_VERSION, PINS, SEQUENCES, VOIDS, check_format, digest, field_spans, seal, unseal

MAX_ACTIONS = limits.ACTIONS
_BLOCKS_FIELD = log_pb2.Transaction.BLOCKS_FIELD_NUMBER
_NO_OPERATION, _NOTHING_READ = log_pb2.Operation(), Cut()
_NAMING = {EventKind.UPDATE: "an update", EventKind.PURGE: "a purge"}
"""What has to name the version that it is about."""
_WIRE_KINDS = {
    EventKind.PUT: log_pb2.EVENT_KIND_PUT,
    EventKind.UPDATE: log_pb2.EVENT_KIND_UPDATE,
    EventKind.DELETE: log_pb2.EVENT_KIND_DELETE,
    EventKind.PURGE: log_pb2.EVENT_KIND_PURGE,
}


@dataclass(frozen=True, slots=True)
class Application:
    """An application's own number of a commit."""

    id: str
    version: int


@dataclass(frozen=True, slots=True)
class Transaction(Linked):
    """One commit as its file tells it.

    Its events are ``actions`` (rows still encoded, decoded with ``event_of`` once the table is known), ``blocks`` of its file, or segments;
    ``reads`` is what it had read of other writers beyond what its parents had. ``declared`` are those of its ``tables`` that a maintainer
    says what they are. ``digest`` is the file's checksum field. One that is ``lost`` stands in for a file that could not be read, and has
    only its name; one that was ``set_aside`` for a file that nobody reads, and has its links; one that is ``voided`` has no events for
    readers. What its writer cannot say is left out, and named in ``ignored``.
    """

    writer: str
    database: str
    revision: int
    uuid: bytes
    commit_time: int
    lateness_bound: int
    parents: tuple[Link, ...] = ()
    operation: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)
    application: Application | None = None
    reads: Cut = field(default_factory=Cut)
    tables: tuple[Table, ...] = ()
    declared: frozenset[str] = frozenset()
    actions: tuple[Any, ...] = ()
    blocks: tuple[BlockPlace, ...] = ()
    segments: tuple[SegmentReference, ...] = ()
    tags: tuple[TagEntry, ...] = ()
    pin: PinEntry | None = None
    voids: tuple[Void, ...] = ()
    asides: tuple[SetAside, ...] = ()
    boundary: Boundary | None = None
    witnessed: tuple[Witness, ...] = ()
    digest: bytes = b""
    size: int = 0
    lost: bool = False
    set_aside: bool = False
    voided: bool = False
    ignored: tuple[str, ...] = ()

    @property
    def stamp(self) -> Stamp:
        """What its events' stamps begin with."""
        return Stamp(self.commit_time, self.writer, self.revision, self.uuid)

    def without_events(self) -> Transaction:
        """The same with what it says of the log alone: what it is built on, and who has it."""
        return replace(self, actions=(), blocks=(), segments=())

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """What it says of tables."""
        return tuple(Definition(self.stamp, table, declared=table.name in self.declared) for table in self.tables)

    @property
    def holds(self) -> frozenset[str]:
        """The tables of which it has events."""
        named = {*(action.table for action in self.actions), *(place.header.table for place in self.blocks)}
        return frozenset(named.union(segment.run.table for segment in self.segments))

    @property
    def events(self) -> int:
        """How many events it holds."""
        in_segments = sum(segment.run.rows for segment in self.segments)
        return len(self.actions) + sum(place.header.rows for place in self.blocks) + in_segments


def action_of(event: Event, table: Table) -> Any:
    """The event as a message."""
    action = log_pb2.Action(table=event.table, kind=_WIRE_KINDS[event.kind], row=encode_row(table, event.row), moved=event.moved)
    if event.version is not None:
        action.version.uuid, action.version.sequence = event.version.uuid, event.version.sequence
    if event.has_expectation:
        if event.expects is None:
            action.expects.absent = True
        else:
            action.expects.version.uuid, action.expects.version.sequence = event.expects.uuid, event.expects.sequence
    return action


def event_of(action: Any, table: Table, name: str) -> Event:
    """The event that a message of file ``name`` holds; ``CorruptionError`` where it names no version and has to, or by what is no name."""
    try:
        kind = EventKind(action.kind)
    except ValueError:
        raise UnsupportedFormat(
            f"{name} holds an event of the unknown kind {action.kind}.",
            next_step="Read it with a newer release of bucketcatalog.",
        ) from None
    version = _version_name(action.version, name) if action.HasField("version") else None
    if version is None and kind in _NAMING:
        raise CorruptionError(
            f"{name} holds {_NAMING[kind]} that names no version: nobody can tell what it is about.",
        )
    what = action.expects.WhichOneof("what") if action.HasField("expects") else None
    return Event(
        table=action.table,
        kind=kind,
        row=decode_row(table, action.row, name),
        version=version,
        has_expectation=what is not None,
        expects=_version_name(action.expects.version, name) if what == "version" else None,
        moved=action.moved,
    )


def _version_name(message: Any, name: str) -> VersionName:
    """The version that a message of file ``name`` names."""
    if len(message.uuid) != 16 or message.sequence > LAST_SEQUENCE:
        raise CorruptionError(
            f"{name} holds an event that names the version {message.uuid.hex()}:{message.sequence}, which can be none.",
        )
    return VersionName(message.uuid, message.sequence)


def encode_transaction(transaction: Transaction, actions: Sequence[Any], blocks: Sequence[EncodedBlock]) -> bytes:
    """The sealed bytes of a transaction with these events."""
    message = log_pb2.Transaction(
        format_version=FORMAT_VERSION,
        required_features=[VOIDS] if transaction.voids else [],
        writer=transaction.writer,
        database=transaction.database,
        revision=transaction.revision,
        uuid=transaction.uuid,
        commit_time=transaction.commit_time,
        lateness_bound=transaction.lateness_bound,
        actions=actions,
    )
    for link in transaction.parents:
        message.parents.add(writer=transaction.writer, revision=link.revision, uuid=link.uuid, digest=link.digest)
    if transaction.operation or transaction.metadata or transaction.metrics:
        message.operation.name = transaction.operation
        message.operation.metadata.update(transaction.metadata)
        message.operation.metrics.update(transaction.metrics)
    if transaction.application is not None:
        message.application.id, message.application.version = transaction.application.id, transaction.application.version
    if transaction.reads.heads:
        message.reads.extend(cut_message(transaction.reads).writers)
    for table in transaction.tables:
        defined = message.tables.add()
        defined.MergeFromString(table.definition)
        defined.declared = table.name in transaction.declared
    for block in blocks:
        message.blocks.add().MergeFromString(block.data)
    message.segments.extend(segment_message(reference) for reference in transaction.segments)
    if any(reference.first_sequence for reference in transaction.segments):
        message.required_features.append(SEQUENCES)
    message.tags.extend(tag_message(entry, with_stamp=False) for entry in transaction.tags)
    if transaction.pin is not None:
        message.required_features.append(PINS)
        message.pin.CopyFrom(pin_message(transaction.pin, with_stamp=False))
    message.voids.extend(map(void_message, transaction.voids))
    if transaction.asides:
        message.required_features.append(ASIDES)
        message.asides.extend(aside_message(entry, with_stamp=False) for entry in transaction.asides)
    if transaction.boundary is not None:
        message.required_features.append(BOUNDARY)
        message.boundary.CopyFrom(boundary_message(transaction.boundary, with_stamp=False))
    message.witnessed.extend(witness_message(witness, with_stamp=False) for witness in transaction.witnessed)
    sealed = seal(message.SerializeToString(deterministic=True))
    refuse_unreadable(message, lambda: _transaction_of(message, iter, sealed, "it"), len(sealed))
    return sealed


def decode_transaction(data: bytes, name: str) -> Transaction:
    """The transaction that the file ``name`` holds, its checksum checked."""
    check_size(len(data), name, "a transaction")
    body = unseal(data, name, "a transaction")
    try:
        message = log_pb2.Transaction.FromString(body)
        check_format(message, name)
        return _transaction_of(message, lambda blocks: _block_places(body, blocks, name), data, name)
    except UNDECODABLE as error:
        raise CorruptionError(f"{name} is not a transaction: {why(error)}.") from None


def _transaction_of(
    message: log_pb2.Transaction, places: Callable[[Any], Iterator[BlockPlace]], data: bytes, name: str
) -> Transaction:
    """The transaction that a message holds, its blocks at these ``places``; ``ValueError`` where it says what nobody may."""
    check_transaction(message)
    application = Application(message.application.id, message.application.version) if message.HasField("application") else None
    operation = message.operation if message.HasField("operation") else _NO_OPERATION
    stamp = Stamp(message.commit_time, message.writer, message.revision, message.uuid)
    declared = frozenset(table.name for table in message.tables if table.declared and is_maintainer(message.writer))
    return Transaction(
        writer=message.writer,
        database=message.database,
        revision=message.revision,
        uuid=uuid_of(message),
        commit_time=message.commit_time,
        lateness_bound=message.lateness_bound,
        parents=tuple(map(link_of, message.parents)),
        operation=operation.name,
        metadata=dict(operation.metadata),
        metrics=dict(operation.metrics),
        application=application,
        reads=cut_of(message.reads) if message.reads else _NOTHING_READ,
        tables=definitions_of(message.tables),
        declared=declared,
        actions=tuple(message.actions),
        blocks=tuple(places(message.blocks)),
        segments=known_segments(message.segments, name) if message.segments else (),
        tags=tuple(tag_of(entry, stamp) for entry in message.tags) if message.tags else (),
        pin=pin_of(message.pin, stamp) if message.HasField("pin") else None,
        voids=tuple(map(void_of, message.voids)) if message.voids else (),
        asides=tuple(aside_of(entry, stamp) for entry in message.asides) if message.asides else (),
        boundary=boundary_of(message.boundary, stamp) if message.HasField("boundary") else None,
        witnessed=tuple(witness_of(witness, stamp) for witness in message.witnessed),
        digest=digest(data),
        size=len(data),
    )


def _block_places(body: bytes, blocks: Any, name: str) -> Iterator[BlockPlace]:
    """Where the blocks lie in the file: their rows are read by range when they are needed, and not kept."""
    if not blocks:  # as mostly: nothing is looked for
        return
    for (offset, length), block in zip(field_spans(body, _BLOCKS_FIELD), blocks, strict=True):
        yield replace(block_place(name, body[offset : offset + length], offset, block.header), data=None)
