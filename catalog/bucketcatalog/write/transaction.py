"""One transaction as its user fills it: events, what it is for, and what it says of the catalog itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self

from .. import clock
from ..errors import ClosedWriter, InvalidOption
from ..format.records import Boundary, TagEntry, Void
from ..format.segment_refs import SegmentReference
from ..format.transactions import Application, Transaction
from ..log.timeline import OwnTimeline
from ..model.cuts import Cut, Stamp
from ..model.events import EventKind
from ..model.tables import Table
from .draft import Draft, Rows


@dataclass(frozen=True, slots=True)
class Committed:
    """What a commit made: ``version`` names the causal cut of it, ``writer@revision``."""

    revision: int
    uuid: str
    commit_time: int
    version: str


class Committer(Protocol):
    """Who publishes transactions."""

    def draft(self) -> Draft:
        """An empty draft of a transaction."""
        ...

    def commit(self, tx: WriteTransaction, draft: Draft) -> Committed | None:
        """Publish a transaction; None where it had nothing to do."""
        ...


class WriteTransaction:
    """The events of one transaction; committed when its ``with`` block ends, unless that raises.

    ``committed`` is set by the commit; it stays None where an application's older version made the transaction do nothing.
    """

    def __init__(self, writer: Committer, operation: str, metadata: Mapping[str, str], application: Application | None) -> None:
        self.committed: Committed | None = None
        self.operation = operation
        self.metadata = dict(metadata)
        self.metrics: dict[str, int] = {}
        self.application = application
        self.tag: TagEntry | None = None
        self.voids: tuple[Void, ...] = ()
        self.boundary: Boundary | None = None
        self._writer = writer
        self._draft: Draft | None = None
        self._begun = False

    def put(self, table: str, rows: Rows, *, expect: str | None = None, data_of: Rows | None = None) -> None:
        """Begin a new version of each row's key. ``expect``: ``absent`` or a version; if it was something else, a conflict shows it.

        Rows that name existing data (of a rename, a copy, a row that is put back) say so with ``data_of``: for each row the key and
        ``_version`` of the version whose data it is. ``DataCollected`` where that data may be deleted.
        """
        if data_of is not None:
            self._open_draft().share(table, rows, data_of)
        self._add(EventKind.PUT, table, rows, expect, has_expect=expect is not None)

    def update(self, table: str, rows: Rows) -> None:
        """Replace the whole row of the version that each row names by ``_version``, or of the live one with its id."""
        self._add(EventKind.UPDATE, table, rows)

    def delete(self, table: str, keys: Rows, *, expect: str | None = None, moved: bool = False) -> None:
        """End the current version of each key, or the one named by ``_version`` or by the live one's id.

        ``moved`` marks the naming delete as one half of a move.
        """
        self._add(EventKind.DELETE, table, keys, expect, has_expect=expect is not None, moved=moved)

    def purge(self, table: str, versions: Rows) -> None:
        """Forget ended versions: rows with the key columns and ``_version``."""
        self._add(EventKind.PURGE, table, versions)

    def _add(
        self, kind: EventKind, table: str, rows: Rows, expect: str | None = None, *, has_expect: bool = False, moved: bool = False
    ) -> None:
        self._open_draft().add(kind, table, rows, expect=expect, has_expect=has_expect, moved=moved)

    def _open_draft(self) -> Draft:
        if self._draft is None:
            raise ClosedWriter(
                "The transaction has ended, or has not begun.", next_step="Use it within `with writer.transaction() as tx:`."
            )
        return self._draft

    def __enter__(self) -> Self:
        if self._begun:
            raise ClosedWriter("The transaction has begun already.", next_step="Begin another with writer.transaction().")
        self._begun, self._draft = True, self._writer.draft()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        draft, self._draft = self._draft, None
        if kind is None and draft is not None:
            self.committed = self._writer.commit(self, draft)


def placed(
    tx: WriteTransaction,
    timeline: OwnTimeline,
    commit_time: int,
    *,
    reads: Cut,
    tables: Sequence[Table],
    segments: tuple[SegmentReference, ...],
) -> Transaction:
    """The transaction as it stands in the log, at the next place of its writer's timeline."""
    uuid = clock.uuid7(commit_time).bytes
    stamp = Stamp(commit_time, timeline.writer, timeline.next_revision, uuid)
    return Transaction(
        writer=timeline.writer,
        database=timeline.files.database,
        revision=timeline.next_revision,
        uuid=uuid,
        commit_time=commit_time,
        lateness_bound=timeline.limits.lateness_bound,
        parents=timeline.parents,
        operation=tx.operation,
        metadata=tx.metadata,
        metrics=tx.metrics,
        application=tx.application,
        reads=reads,
        tables=tuple(tables),
        segments=segments,
        tags=() if tx.tag is None else (replace(tx.tag, created=tx.tag.created or commit_time, stamp=stamp),),
        voids=tx.voids,
        boundary=None if tx.boundary is None else replace(tx.boundary, stamp=stamp),
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
