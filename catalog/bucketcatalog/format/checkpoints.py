"""Checkpoints between bytes and values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from .. import limits
from ..clock import uuid7_time
from ..errors import CorruptionError
from ..model.cuts import Cut, Head, OnTimelineOf
from ..model.names import is_maintainer
from ..v1 import log_pb2
from .authority import Definition
from .bounds import (
    UNDECODABLE,
    check_checkpoint,
    check_definitions,
    check_size,
    count_of,
    digest_of,
    name_of,
    refuse_unreadable,
    revision_of,
    time_of,
    uuid_of,
    why,
)
from .definitions import shape_of, usable_definition
from .records import (
    Boundary,
    Link,
    PinEntry,
    Retirement,
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
    head_of,
    pin_message,
    pin_of,
    retirement_message,
    retirement_of,
    stamp_of,
    tag_message,
    tag_of,
    void_message,
    void_of,
    witness_message,
    witness_of,
)
from .runs import (
    InlineRun,
    Run,
    SegmentReference,
    StoredPart,
    inline_message,
    inline_runs,
    known_segments,
    segment_message,
)
from .sealing import ASIDES, BOUNDARY, FORMAT_VERSION, PARTIAL, PINS, VOIDS, check_format, digest, seal, unseal

_RUNS_FIELD = log_pb2.Checkpoint.RUNS_FIELD_NUMBER


@dataclass(frozen=True, slots=True)
class Coverage:
    """How a checkpoint covers one timeline: every covered transaction from ``list_from`` on, before it only where several are known.

    Before ``first_revision`` it covers what is in ``branches`` alone: the horizon's checkpoint holds the rest.
    """

    list_from: int
    recent: frozenset[Head]
    branches: frozenset[Head] = frozenset()
    newest_commit_time: int = 0
    transactions: int = 0
    first_revision: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """How many rows of each sort a table has at a checkpoint's cut."""

    live: int = 0
    tombstones: int = 0
    stubs: int = 0


@dataclass(frozen=True, slots=True)
class ApplicationResult:
    """What the last version of an application committed."""

    writer: str
    id: str
    version: int
    link: Link
    commit_time: int


@dataclass(frozen=True, slots=True)
class Checkpoint(OnTimelineOf):
    """The state at ``cut``, as runs: in ``segments``, and ``inline`` those that it holds itself.

    Of writers that are ``retired`` and sealed, who reads from it need not list the timelines. What its writer cannot say is left out, and
    named in ``ignored``.
    """

    writer: str
    database: str
    revision: int
    uuid: bytes
    cut: Cut
    coverage: Mapping[str, Coverage]
    created: int
    lateness_bound: int
    definitions: tuple[Definition, ...] = ()
    totals: Mapping[str, Totals] = field(default_factory=dict)
    applications: tuple[ApplicationResult, ...] = ()
    segments: tuple[SegmentReference, ...] = ()
    inline: tuple[InlineRun, ...] = ()
    tags: tuple[TagEntry, ...] = ()
    pins: tuple[PinEntry, ...] = ()
    voids: tuple[Void, ...] = ()
    asides: tuple[SetAside, ...] = ()
    boundaries: tuple[Boundary, ...] = ()
    witnessed: tuple[Witness, ...] = ()
    reads: Cut = field(default_factory=Cut)
    forgotten_before: int = 0
    retired: tuple[Retirement, ...] = ()
    features: frozenset[str] = frozenset()
    digest: bytes = b""
    size: int = 0
    ignored: tuple[str, ...] = ()

    @property
    def as_of(self) -> int:
        """The largest commit time in the cut, of what is not voided: its uuid holds it."""
        return uuid7_time(self.uuid)

    @property
    def sealed(self) -> frozenset[str]:
        """The writers of whom nothing can arrive that it does not cover."""
        return frozenset(each.writer for each in self.retired if each.sealed)

    @property
    def parts(self) -> tuple[StoredPart, ...]:
        """Its runs, wherever they are."""
        return (*self.segments, *self.inline)

    @property
    def runs(self) -> tuple[Run, ...]:
        """What each of them is."""
        return tuple(part.run for part in self.parts)


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    """The sealed bytes of a checkpoint."""
    message = log_pb2.Checkpoint(
        format_version=FORMAT_VERSION,
        required_features=sorted(
            checkpoint.features
            | ({BOUNDARY} if checkpoint.boundaries else set())
            | ({VOIDS} if checkpoint.voids else set())
            | ({ASIDES} if checkpoint.asides else set())
            | ({PINS} if checkpoint.pins else set())
            | ({PARTIAL} if any(coverage.first_revision for coverage in checkpoint.coverage.values()) else set())
        ),
        writer=checkpoint.writer,
        database=checkpoint.database,
        revision=checkpoint.revision,
        uuid=checkpoint.uuid,
        cut=cut_message(checkpoint.cut),
        created=checkpoint.created,
        lateness_bound=checkpoint.lateness_bound,
        segments=[segment_message(reference) for reference in checkpoint.segments],
        runs=[inline_message(inline) for inline in checkpoint.inline],
        tags=[tag_message(entry, with_stamp=True) for entry in checkpoint.tags],
        pins=[pin_message(entry, with_stamp=True) for entry in checkpoint.pins],
        voids=map(void_message, checkpoint.voids),
        asides=[aside_message(entry, with_stamp=True) for entry in checkpoint.asides],
        boundaries=[boundary_message(boundary, with_stamp=True) for boundary in checkpoint.boundaries],
        witnessed=[witness_message(witness, with_stamp=True) for witness in checkpoint.witnessed],
        reads=cut_message(checkpoint.reads),
        forgotten_before=checkpoint.forgotten_before,
        retired=[retirement_message(each) for each in checkpoint.retired],
    )
    message.coverage.extend(_coverage_message(writer, coverage) for writer, coverage in sorted(checkpoint.coverage.items()))
    message.tables.extend(_definition_messages(checkpoint.definitions))
    for name, totals in sorted(checkpoint.totals.items()):
        message.totals.add(table=name, live=totals.live, tombstones=totals.tombstones, stubs=totals.stubs)
    for result in checkpoint.applications:
        link = log_pb2.TransactionLink(revision=result.link.revision, uuid=result.link.uuid, digest=result.link.digest)
        message.applications.add(
            writer=result.writer, id=result.id, version=result.version, commit_time=result.commit_time, transaction=link
        )
    sealed = seal(message.SerializeToString(deterministic=True))
    refuse_unreadable(message, lambda: _checkpoint_of(message, sealed, sealed, "it"), len(sealed))
    return sealed


def _coverage_message(writer: str, coverage: Coverage) -> log_pb2.TimelineCoverage:
    return log_pb2.TimelineCoverage(
        writer=writer,
        list_from=coverage.list_from,
        newest_commit_time=coverage.newest_commit_time,
        transactions=coverage.transactions,
        recent=[log_pb2.Head(revision=head.revision, uuid=head.uuid) for head in sorted(coverage.recent)],
        branches=[log_pb2.Head(revision=head.revision, uuid=head.uuid) for head in sorted(coverage.branches)],
        first_revision=coverage.first_revision,
    )


def _definition_messages(definitions: Iterable[Definition]) -> Iterator[log_pb2.TableDefinition]:
    """Each definition once, with who made it and when."""
    together: dict[tuple[str, bytes], list[Definition]] = {}
    for definition in definitions:
        together.setdefault((definition.table.name, definition.table.definition), []).append(definition)
    for (_, serialized), same in together.items():
        message = log_pb2.TableDefinition.FromString(serialized)
        message.defined_by.CopyFrom(_stamp_message(max(definition.stamp for definition in same)))
        for definition in same:
            latest = _stamp_message(definition.stamp) if definition.stamp != definition.first else None
            message.definers.add(first=_stamp_message(definition.first), latest=latest, declared=definition.declared)
        yield message


def _stamp_message(stamp: tuple[int, str, int, bytes]) -> log_pb2.TransactionStamp:
    commit_time, writer, revision, uuid = stamp
    return log_pb2.TransactionStamp(commit_time=commit_time, writer=writer, revision=revision, uuid=uuid)


def decode_checkpoint(data: bytes, name: str) -> Checkpoint:
    """The checkpoint that the file ``name`` holds, its checksum checked."""
    check_size(len(data), name, "a checkpoint")
    body = unseal(data, name, "a checkpoint")
    try:
        message = log_pb2.Checkpoint.FromString(body)
        check_format(message, name)
        return _checkpoint_of(message, body, data, name)
    except UNDECODABLE as error:
        raise CorruptionError(f"{name} is not a checkpoint: {why(error)}.") from None


def _checkpoint_of(message: log_pb2.Checkpoint, body: bytes, data: bytes, name: str) -> Checkpoint:
    """The checkpoint that a message holds; ``ValueError`` where it says what nobody may."""
    check_checkpoint(message)
    check_definitions(message.tables, limits.CHECKPOINT_DEFINITIONS, limits.CHECKPOINT_DEFINITION_BYTES)
    segments = known_segments(message.segments, name)
    return Checkpoint(
        writer=message.writer,
        database=message.database,
        revision=message.revision,
        uuid=uuid_of(message),
        cut=cut_of(message.cut.writers),
        coverage={name_of(entry.writer): _coverage(entry) for entry in message.coverage},
        created=message.created,
        lateness_bound=message.lateness_bound,
        definitions=tuple(chain.from_iterable(map(_definitions, message.tables))),
        totals={entry.table: Totals(*map(count_of, (entry.live, entry.tombstones, entry.stubs))) for entry in message.totals},
        applications=tuple(_application(entry) for entry in message.applications),
        segments=segments,
        inline=tuple(inline_runs(message.runs, body, _RUNS_FIELD, name)),
        tags=tuple(map(tag_of, message.tags)),
        pins=tuple(map(pin_of, message.pins)),
        voids=tuple(map(void_of, message.voids)),
        asides=tuple(map(aside_of, message.asides)),
        boundaries=tuple(map(boundary_of, message.boundaries)),
        witnessed=tuple(map(witness_of, message.witnessed)),
        reads=cut_of(message.reads.writers),
        forgotten_before=message.forgotten_before,
        retired=tuple(map(retirement_of, message.retired)),
        features=frozenset(message.required_features),
        digest=digest(data),
        size=len(data),
    )


def _definitions(entry: log_pb2.TableDefinition) -> Iterator[Definition]:
    """A definition as each of its writers made it; who wrote before these were told apart says who made it last."""
    latest, definers = stamp_of(entry.defined_by), list(entry.definers)
    table = usable_definition(shape_of(entry))
    if not definers:
        yield Definition(latest, table)
    for definer in definers:
        first = stamp_of(definer.first)
        own = stamp_of(definer.latest) if definer.HasField("latest") else first
        if own.writer != first.writer:
            raise ValueError(f"the table {table.name!r} has a definer that is two writers")
        yield Definition(own, table, first, definer.declared and is_maintainer(own.writer))


def _coverage(entry: log_pb2.TimelineCoverage) -> Coverage:
    recent = frozenset(map(head_of, entry.recent))
    branches = frozenset(map(head_of, entry.branches))
    return Coverage(
        revision_of(entry.list_from),
        recent,
        branches,
        time_of(entry.newest_commit_time),
        count_of(entry.transactions),
        revision_of(entry.first_revision),
    )


def _application(entry: log_pb2.ApplicationResult) -> ApplicationResult:
    link = entry.transaction
    of = Link(revision_of(link.revision), uuid_of(link), digest_of(link.digest))
    return ApplicationResult(name_of(entry.writer), entry.id, entry.version, of, time_of(entry.commit_time))
