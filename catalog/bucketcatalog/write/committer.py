"""Committers: a timeline that a process holds open, and its transactions, published one after the other.

One commit is one PUT. Nothing is listed or read for it, unless an event has to look something up (an id, a bucket's incarnation) or names
a version that another process may have written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Self

from ..cache import LruCache
from ..errors import BucketCatalogError, ClosedWriter, ForeignBranch
from ..format.checkpoints import ApplicationResult
from ..format.records import Link
from ..format.transactions import encode_transaction
from ..limits import Limits
from ..log.entries import latest_results
from ..log.segments import RunWriter
from ..log.timeline import Timeline, refuse_retired
from ..model.cuts import Cut, Stamp
from ..model.names import is_maintainer
from ..model.public import public
from ..model.uuids import uuid_bytes, uuid_text
from ..query.database import Database
from ..store.retry import retry
from .commit import Commit, Committed

_OWN_KNOWN = 1 << 14
"""Of so many of its latest commits a writer knows without a look that they have been read."""


@public("check", "close", "database", "has_committed", "id")
class Committer:
    """A writer id in one database, held open by this process alone: what it commits takes turns. A context manager; ``close`` ends it."""

    def __init__(self, database: Database, writer: str, now: Callable[[], int], limits: Limits, *, joins: bool = False) -> None:
        self.id = writer
        self._database = database
        self._timeline: Timeline | None = Timeline(database.files, writer, now, limits, joins=joins)
        self._read = Cut()
        self._own: LruCache[bytes, bool] = LruCache(_OWN_KNOWN, int)  # each counts as one
        self._defined: dict[str, bytes] = {}
        self._applications: dict[str, ApplicationResult] | None = None
        self._why_closed = f"The writer {writer!r} was closed."
        self._turn = threading.RLock()

    @property
    def database(self) -> str:
        """The name of the database that the writer commits to."""
        return self._database.name

    def commit(self, commit: Commit) -> Committed | None:
        """Publish a transaction; None where an application has committed a later version of its own already."""
        with self._turn:
            timeline = self._open_timeline()
            gives_up = timeline.patience()
            with self._ending_in_doubt(timeline):
                done = retry(lambda: self._already_done(timeline, commit), gives_up)
                if done is None:
                    return self._publish(timeline, commit, gives_up)
                is_repeated = commit.application is not None and commit.application.version == done.version
                return self._committed(done.link, done.commit_time) if is_repeated else None

    def _already_done(self, timeline: Timeline, commit: Commit) -> ApplicationResult | None:
        """What the application has committed already, at this version or a later one; else everything is read that a commit has to.

        It can be called again from the start: a store that is away for a while ends no commit, whichever request it is that meets it.
        """
        if timeline.is_ahead:  # which a maintainer may have voided, with what it says of applications
            self._database.look()
            self._applications = None
        if commit.application is not None:
            last = self._application_results().get(commit.application.id)
            if last is not None and commit.application.version <= last.version:
                return last
        unread = commit.events.unread_after(self._has_read)
        if unread and not self._database.has_seen(unread):
            self._database.look()
        timeline.look()
        timeline.meet(self._database.seen.of_writer(self.id))
        refuse_retired(self.id, self.database, self._database.retired)
        return None

    def _has_read(self, transaction: bytes) -> bool:
        """Whether a transaction is one of this writer's latest commits, or has certainly been read."""
        return transaction in self._own or self._database.has_read(transaction)

    @contextmanager
    def _ending_in_doubt(self, timeline: Timeline) -> Iterator[None]:
        """Ends the writer where the timeline has a foreign branch, or where nobody knows whether a put took place."""
        try:
            yield
        except BaseException as error:  # also an interrupt: the put may have taken place
            if timeline.doubtful or isinstance(error, ForeignBranch):
                why = error.message if isinstance(error, BucketCatalogError) else f"A commit of {self.id!r} was interrupted."
                self._end(why)
            raise

    def _publish(self, timeline: Timeline, commit: Commit, gives_up: Callable[[], bool]) -> Committed:
        seen, staged = self._database.seen, commit.events
        said = {table.name: table for table in commit.declares}
        used = {name: table for name, table in staged.tables.items() if self._defined.get(name) != table.definition}
        undefined = [table for _, table in sorted((used | said).items())]
        after = max(seen.newest_commit_time, staged.named_after, commit.after)
        timeline.pardon(self._database.voids)

        def time_of_now(*rests_on: int | None) -> int:
            """The commit time; ``StaleRead`` where what the transaction rests on would be too old when it lands."""
            time = retry(lambda: timeline.commit_time(after), gives_up)
            for since in rests_on:
                timeline.refuse_stale(time, since)
            return time

        def runs() -> RunWriter:
            """Where events go that are too many for the transaction; nothing is put for one that would be refused."""
            time_of_now(staged.read_at)
            files = self._database.files
            began = retry(lambda: files.time_for(self.id), gives_up)
            return RunWriter(files.store, self.id, files.database, cut=None, began=began, stopped=lambda: timeline.closed)

        events = staged.encoded(runs)
        if events.put_from is not None:  # which may have taken any time
            gives_up = timeline.patience()
            retry(timeline.look, gives_up)
        commit_time = time_of_now(staged.read_at, events.put_from)
        others = Cut({writer: heads for writer, heads in seen.heads.items() if writer != self.id})
        reads = others.changed_since(self._read)
        own = (t.name for t in undefined if is_maintainer(self.id) and (t.name in said or self._database.declares(t.name)))
        declared = frozenset(own)
        placing = partial(commit.placed, timeline, commit_time, reads=reads, tables=undefined, declared=declared)
        transaction = placing(segments=events.segments)
        committed = timeline.publish(transaction, encode_transaction(transaction, events.actions, events.blocks))
        self._read = others
        self._own.put(committed.uuid, True)
        self._defined |= {table.name: table.definition for table in undefined}
        link = timeline.parents[0]
        if commit.application is not None:
            result = ApplicationResult(self.id, commit.application.id, commit.application.version, link, commit_time)
            self._application_results()[commit.application.id] = result
        return self._committed(link, committed.commit_time)

    def _committed(self, link: Link, commit_time: int) -> Committed:
        head = link.head
        return Committed(head.revision, uuid_text(head.uuid), commit_time, f"{self.id}@{head.revision}")

    def _application_results(self) -> dict[str, ApplicationResult]:
        """The last version of each application on this timeline."""
        if self._applications is None:
            latest = latest_results(self._database.view())
            self._applications = {id_: result for (writer, id_), result in latest.items() if writer == self.id}
        return self._applications

    def has_committed(self, app_id: str, app_version: int) -> bool:
        """Whether an application has committed that version here, or a later one: a transaction of it adds nothing any more."""
        with self._turn:
            self._open_timeline()
            last = self._application_results().get(app_id)
            return last is not None and app_version <= last.version

    def _say(self, commit: Commit) -> Stamp:
        """Publish what no application numbers, so that it is committed; returns what its stamps begin with."""
        committed = self.commit(commit)
        assert committed is not None
        return Stamp(committed.commit_time, self.id, committed.revision, uuid_bytes(committed.uuid))

    def _say_in_full(self, commit: Commit) -> Stamp:
        """The same, in a transaction that names all that was read, also what an earlier one has named, which may be pruned."""
        self._read = Cut()
        return self._say(commit)

    def check(self) -> None:
        """Look whether another process has written under this id: ``ForeignBranch`` if so, and the writer is closed.

        A commit looks too, but at most every 30 s.
        """
        with self._turn:
            timeline = self._open_timeline()
            with self._ending_in_doubt(timeline):
                timeline.look(force=True)

    def close(self) -> None:
        """End the writer. What was committed stays; an open transaction commits nothing.

        A commit that is under way in another thread ends with its next failure, and does not go on until its deadline; a checkpoint ends
        at its next slice.
        """
        timeline, self._timeline = self._timeline, None
        if timeline is not None:
            timeline.closed = True

    def _end(self, why: str) -> None:
        self._timeline = None
        self._why_closed = why

    def _open_timeline(self) -> Timeline:
        if self._timeline is None:
            raise ClosedWriter(self._why_closed, next_step="Open it again with catalog.writer().")
        return self._timeline

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
