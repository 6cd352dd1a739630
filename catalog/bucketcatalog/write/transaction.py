"""One transaction as its user fills it: events, and what they are for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Protocol, Self

from ..errors import ClosedWriter
from ..format.transactions import Application
from ..model.events import EventKind
from ..model.public import public
from ..query.snapshot import Snapshot
from .commit import Commit, Committed
from .draft import Draft
from .given import GivenRows
from .intake import Rows
from .staging import WrittenShare


class TakesRows(Protocol):
    """Who takes the rows that are put under one name, which is no table."""

    def put(self, rows: Rows, *, into: WriteTransaction, draft: Draft) -> None:
        """Write the rows, and put what is to be said of them into the transaction."""
        ...

    def refuse(self, what: str) -> None:
        """``UnknownTable`` for what can be done with rows of tables alone."""
        ...


@public("application", "committed", "delete", "metadata", "metrics", "operation", "purge", "put", "rests_on", "update")
class WriteTransaction:
    """The events of one transaction; committed when its ``with`` block ends, unless that raises.

    ``committed`` is set by the commit. It stays None where there is nothing to commit, and where an application's older version made the
    transaction do nothing.
    """

    def __init__(
        self,
        commit: Callable[[Commit], Committed | None],
        draft: Callable[[], Draft],
        taken: Callable[[str], TakesRows | None],
        *,
        operation: str,
        metadata: Mapping[str, str],
        application: Application | None,
    ) -> None:
        self.committed: Committed | None = None
        self.operation = operation
        self.metadata = dict(metadata)
        self.metrics: dict[str, int] = {}
        self.application = application
        self._commit = commit
        self._begin = draft
        self._taken = taken
        self._draft: Draft | None = None
        self._begun = False

    def __repr__(self) -> str:
        done = "has not begun" if not self._begun else "is open" if self._draft is not None else "has ended"
        events = f", {len(self._draft):,} events" if self._draft is not None else ""
        return f"Transaction({self.operation!r}, {done if self.committed is None else self.committed.version}{events})"

    def put(self, table: str, rows: Rows | GivenRows, *, expect: str | None = None, data_of: Rows | None = None) -> None:
        """Begin a new version of each row's key. ``expect``: ``absent`` or a version; if it was something else, a conflict shows it.

        Rows that name existing data (of a rename, a copy, a row that is put back) say so with ``data_of``: for each row the key and
        ``_version`` of the version whose data it is. ``DataCollected`` where that data may be deleted.

        Where a system takes rows for the name of a table of its own making, they are written here, and named by the commit.
        """
        if (taken := self._taken(table)) is not None:
            draft = self._open_draft()
            if expect is not None or data_of is not None:
                taken.refuse("put them under conditions")
            taken.put(rows, into=self, draft=draft)
            return
        self._open_draft().add(EventKind.PUT, table, rows, expect=expect, has_expect=expect is not None, data_of=data_of)

    def update(self, table: str, rows: Rows) -> None:
        """Replace the whole row of the version that each row names by ``_version``, or of the live one with its id."""
        self._change(EventKind.UPDATE, table, rows)

    def delete(self, table: str, keys: Rows, *, expect: str | None = None, moved: bool = False) -> None:
        """End the live version of each key, or the one named by ``_version`` or by the live one's id.

        ``moved`` marks the naming delete as one half of a move.
        """
        self._change(EventKind.DELETE, table, keys, expect, has_expect=expect is not None, moved=moved)

    def purge(self, table: str, versions: Rows) -> None:
        """Forget ended versions: rows with the key columns and ``_version``."""
        self._change(EventKind.PURGE, table, versions)

    def rests_on(self, snapshot: Snapshot | None = None, *, written_from: int | None = None) -> None:
        """Say what the events come from: a ``snapshot``, in which alone things are looked up from now on, and data that they name and that
        was written from a time of the store's on, in microseconds. ``StaleRead`` where that is too long ago when they are committed.
        """
        draft = self._open_draft()
        if snapshot is not None:
            draft.looks_in(snapshot)
        if written_from is not None:
            draft.writes_from(written_from)

    def adopt(self, shares: Iterable[WrittenShare]) -> None:
        """Add the rows that other processes have written for this transaction (``write.shares``), in this order, after all others."""
        self._open_draft().adopt(shares)

    def _change(
        self, kind: EventKind, table: str, rows: Rows, expect: str | None = None, *, has_expect: bool = False, moved: bool = False
    ) -> None:
        if (taken := self._taken(table)) is not None:
            taken.refuse(f"{kind.name.lower()} them")
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
        self._begun, self._draft = True, self._begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        draft, self._draft = self._draft, None
        # What an application numbers is said although nothing comes of it: whoever repeats it has to know that it was done.
        if kind is None and draft is not None and (len(draft) or self.application is not None):
            self.committed = self._commit(
                Commit(
                    operation=self.operation,
                    metadata=self.metadata,
                    metrics=self.metrics,
                    events=draft,
                    application=self.application,
                )
            )
