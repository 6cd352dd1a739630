"""What one commit is to say, from whoever wants it said: the events of a user's transaction, or what a maintainer says of the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from .. import clock
from ..errors import InvalidOption
from ..format.records import Boundary, PinEntry, SetAside, TagEntry, Void, Witness
from ..format.runs import SegmentReference
from ..format.transactions import Application, Transaction
from ..log.segments import RunWriter
from ..log.timeline import Timeline
from ..model.cuts import Cut, Stamp
from ..model.tables import Table
from ..model.uuids import writer_mark
from .staging import Encoded


class Staged(Protocol):
    """The events of a commit, checked and numbered, and what they rest on.

    ``tables`` are their tables' definitions. They come after the commit time ``named_after``, since they name versions up to there, of
    which those up to ``unread_after`` may be of transactions that nobody here ``has_read``, 0 where there is none;
    ``read_at`` is the store's time in microseconds at which they were looked up, or data that they name began to be written, None where
    nothing was.
    """

    @property
    def tables(self) -> Mapping[str, Table]: ...

    @property
    def named_after(self) -> int: ...

    @property
    def read_at(self) -> int | None: ...

    def unread_after(self, has_read: Callable[[bytes], bool]) -> int:
        """The commit time up to which they name versions of transactions that have not been read, by their uuids."""
        ...

    def encoded(self, runs: Callable[[], RunWriter]) -> Encoded:
        """The events as the transaction carries them; those that are too many for it go into segments, put by ``runs`` of its writer."""
        ...


@dataclass(frozen=True)
class NoEvents:
    """Of a commit that says something of the catalog alone."""

    named_after: int = 0
    read_at: int | None = None
    tables: Mapping[str, Table] = field(default_factory=dict)

    def unread_after(self, has_read: Callable[[bytes], bool]) -> int:
        """All that is named."""
        return self.named_after

    def encoded(self, runs: Callable[[], RunWriter]) -> Encoded:
        """Nothing."""
        return Encoded()


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit made: ``version`` names the causal cut of it, ``writer@revision``."""

    revision: int
    uuid: str
    commit_time: int
    version: str


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One commit: its operation with metadata and metrics, its events, the application's own number of it, and what it says of the catalog.

    ``declares`` are tables of which it says what they are, whether or not it has events of them. A tag, a pin, a boundary, what is set
    aside and what is witnessed have their stamps, and a tag its time, from the transaction that carries them. It comes ``after`` a commit
    time without having read what was committed then.
    """

    operation: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)
    events: Staged = field(default_factory=NoEvents)
    application: Application | None = None
    declares: tuple[Table, ...] = ()
    tag: TagEntry | None = None
    pin: PinEntry | None = None
    voids: tuple[Void, ...] = ()
    asides: tuple[SetAside, ...] = ()
    witnessed: tuple[Witness, ...] = ()
    after: int = 0
    boundary: Boundary | None = None

    def stamped(self, stamp: Stamp) -> Commit:
        """As the transaction with this stamp carries it."""
        tag, pin, boundary = self.tag, self.pin, self.boundary
        return replace(
            self,
            tag=None if tag is None else replace(tag, created=tag.created or stamp.commit_time, stamp=stamp),
            pin=None if pin is None else replace(pin, stamp=stamp),
            asides=tuple(replace(entry, stamp=stamp) for entry in self.asides),
            witnessed=tuple(replace(witness, stamp=stamp) for witness in self.witnessed),
            boundary=None if boundary is None else replace(boundary, stamp=stamp),
        )

    def placed(
        self,
        timeline: Timeline,
        commit_time: int,
        *,
        reads: Cut,
        tables: Sequence[Table],
        declared: frozenset[str],
        segments: tuple[SegmentReference, ...],
    ) -> Transaction:
        """The transaction as it stands in the log, at the next place of its writer's timeline."""
        uuid = clock.uuid7(commit_time, writer_mark(timeline.writer)).bytes
        said = self.stamped(Stamp(commit_time, timeline.writer, timeline.next_revision, uuid))
        return Transaction(
            writer=timeline.writer,
            database=timeline.files.database,
            revision=timeline.next_revision,
            uuid=uuid,
            commit_time=commit_time,
            lateness_bound=timeline.limits.lateness_bound,
            parents=timeline.parents,
            operation=said.operation,
            metadata=dict(said.metadata),
            metrics=dict(said.metrics),
            application=said.application,
            reads=reads,
            tables=tuple(tables),
            declared=declared,
            segments=segments,
            tags=() if said.tag is None else (said.tag,),
            pin=said.pin,
            voids=said.voids,
            asides=said.asides,
            witnessed=said.witnessed,
            boundary=said.boundary,
        )


def check_options(operation: object, metadata: object, app_id: object, app_version: object) -> None:
    """``InvalidOption`` where an option cannot be written down: text has a UTF-8 form, numbers have 64 bits."""
    if not isinstance(metadata, Mapping):
        raise InvalidOption(f"metadata cannot be {metadata!r}.", next_step="Give a mapping of text to text.")
    words = [("operation", operation), ("app_id", "" if app_id is None else app_id)]
    words += [("metadata", word) for pair in metadata.items() for word in pair]
    for name, word in words:
        if not isinstance(word, str) or word.encode(errors="replace").decode() != word:
            raise InvalidOption(f"{name} cannot hold {word!r}.", next_step="Give text; metadata maps text to text.")
    is_number = isinstance(app_version, int) and not isinstance(app_version, bool) and -(1 << 63) <= app_version < 1 << 63
    if app_version is not None and not is_number:
        raise InvalidOption(f"app_version cannot be {app_version!r}.", next_step="Give an integer of 64 bits.")
