"""Writers and their transactions: the way into the catalog.

What a writer can say is here, what of it has to be said is decided by the modules before, and a committer publishes it. The store is asked
who takes a name where rows are put under one that a system takes, and for nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from ..checkpoint.merge import Alone, MergeWorkers
from ..checkpoint.plan import prepare
from ..checkpoint.publish import CheckpointResult, publish
from ..errors import InvalidOption
from ..format.checkpoints import Checkpoint
from ..format.records import Boundary, PinEntry, SetAside, Void, Witness
from ..format.transactions import Application
from ..limits import Limits
from ..log.trust import is_trusted
from ..log.versions import Version
from ..model.cuts import Cut, Stamp
from ..model.names import COMPACTOR_PREFIX, MAINTAINER_PREFIX, is_compactor, is_maintainer, names_given
from ..model.public import public
from ..model.tables import Table
from ..model.times import Time
from ..query.database import Database
from ..query.snapshot import Snapshot
from .commit import Commit, Committed, NoEvents, check_options
from .committer import Committer
from .declaring import declaring
from .draft import Draft
from .parts import Taken, WritePlace, Writes
from .pins import Pin, pinning, unpinning
from .tags import Decided, Tag, giving, taking_back
from .transaction import WriteTransaction


@public("checkpoint", "declare", "drop_tag", "pin", "tag", "transaction", "unpin")
class Writer(Committer):
    """A writer id in one database, held open by this process alone. A context manager; ``close`` ends it.

    Threads may share it: their commits take turns, and so do their checkpoints. A transaction belongs to one thread.
    """

    def __init__(
        self,
        database: Database,
        writer: str,
        now: Callable[[], int],
        limits: Limits,
        *,
        joins: bool = False,
        takes: Callable[[str], Writes | None] = lambda name: None,
    ) -> None:
        super().__init__(database, writer, now, limits, joins=joins)
        self._takes = takes
        self._tables: frozenset[str] | None = None
        self._work_began: int | None = None
        self._merging = threading.Lock()

    def __repr__(self) -> str:
        return f"Writer({self.id!r}, {self.database!r}{'' if self._timeline is not None else ', closed'})"

    def transaction(
        self,
        *,
        operation: str = "",
        metadata: Mapping[str, str] | None = None,
        app_id: str | None = None,
        app_version: int | None = None,
    ) -> WriteTransaction:
        """Begin a transaction. With ``app_id`` and ``app_version`` a repeated commit is answered from the log and an older one ignored."""
        self._open_timeline()
        if (app_id is None) != (app_version is None):
            raise InvalidOption("app_id and app_version go together.", next_step="Give both or neither.")
        application = Application(app_id, app_version) if app_id is not None and app_version is not None else None
        metadata = {} if metadata is None else metadata
        check_options(operation, metadata, app_id, app_version)
        return WriteTransaction(
            self.commit, self.draft, self.taken, operation=operation, metadata=metadata, application=application
        )

    def taken(self, name: str) -> Taken | None:
        """Who takes rows for a name that is no table, if anybody does; tables of the database come first.

        Names without a dot are the core's, and nobody is asked for them. The database is looked at once, before the writer hands rows to
        anybody. ``ClosedWriter`` where no commit can name what would be written.
        """
        writes = self._takes(name) if isinstance(name, str) and "." in name else None
        if writes is None:
            return None
        self._open_timeline()
        if self._tables is None:
            self._tables = frozenset(self._database.look().definitions)
        if name in self._tables:
            return None
        files = self._database.files
        place = WritePlace(files.store, self.id, self.database, self._database.look)
        return Taken(name, writes, place, partial(files.time_for, self.id))

    def draft(self) -> Draft:
        """An empty draft of a transaction."""
        database = self._database
        find_table = partial(database.definition, by=self.id)
        draft = Draft(find_table, database.look, lambda table: database.name if database.keeps_data(table) else None)
        if self._work_began is not None:
            draft.writes_from(self._work_began)
        return draft

    def begin_work(self) -> Snapshot:
        """A snapshot of now, for work that reads it, writes data and names that in events: all that begin from now on rest on both.

        So a transaction of them is refused with ``StaleRead`` where, when it lands, the work would have begun too long ago.
        """
        self._work_began = self._database.files.time_for(self.id)
        return self._database.look()

    def checkpoint(
        self,
        *,
        scope: Literal["own", "all"] = "own",
        full: bool = False,
        workers: MergeWorkers | None = None,
        instead: Sequence[Checkpoint] = (),
        retire: Collection[str] = (),
        progress: Callable[[int], None] = lambda _: None,
    ) -> CheckpointResult | None:
        """Write a checkpoint of this writer's timeline, or with ``all`` of every writer's; None where there is nothing new to cover.

        ``InvalidOption`` for ``all`` of who is neither a compactor nor a maintainer.

        ``full`` merges and writes everything again, which leaves readers the least to do. The merge is done by ``workers``, by default in
        this process, which tells ``progress`` how many rows were merged so far; other threads may commit meanwhile. It starts from the
        checkpoints ``instead`` of those in the store, where given. ``ClosedWriter`` where the writer is closed before it is done.

        A compactor can ``retire`` other writers with one of ``all``: see ``Catalog.retire``.
        """
        if scope not in ("own", "all"):
            raise InvalidOption(f"A checkpoint cannot have the scope {scope!r}.", next_step="Use own or all.")
        if scope == "all" and not is_trusted(self.id):
            raise InvalidOption(
                f"The writer {self.id!r} cannot write a checkpoint of every writer: nobody would read it.",
                next_step=f"Use one whose id begins with {COMPACTOR_PREFIX}, or the scope own.",
            )
        retire = names_given(retire, "writers", "retire=['node-a']")
        if retire and (scope != "all" or not is_compactor(self.id)):
            raise InvalidOption(
                f"A checkpoint of {self.id!r} cannot retire {min(retire)!r}.",
                next_step=f"Have one of all written by a writer whose id begins with {COMPACTOR_PREFIX}.",
            )
        files = self._database.files
        with self._merging:
            with self._turn:
                self.check()
                timeline = self._open_timeline()
                here = Alone(files.store, lambda: self._timeline is not timeline, progress)
                by = here if workers is None else workers
                prepared = prepare(
                    files,
                    timeline,
                    self._note if scope == "all" else None,
                    full=full,
                    most=by.most,
                    instead=instead,
                    retire=retire,
                )
            if prepared is None:
                return None
            merged = list(by.run(prepared.tasks))
            with self._turn:
                self._open_timeline()
                return publish(files, prepared, merged)

    def _note(self, reads: Cut, witnessed: tuple[Witness, ...]) -> Stamp:
        """Commit a transaction without events that has read ``reads``, and these definitions: what a checkpoint of every cut lies beside.

        It names all of that, also what an earlier transaction has named, which may be pruned: it alone tells that the cut had been read.
        """
        self._database.remember(reads)
        return self._say_in_full(Commit(operation="checkpoint", witnessed=witnessed))

    def declare(self, tables: Iterable[str | Table]) -> Committed | None:
        """Say what tables are, those that were made known to the catalog by name: every reader of the database knows them from then on.

        They need no rows for it. None, and no commit, where the database has them exactly so. ``IncompatibleTable`` where one does not
        fit what is there, or others decide what it is to be; then none is declared.
        """
        with self._turn:
            self._open_timeline()
            commit = declaring(self._database, self.id, tables)
            return None if commit is None else self.commit(commit)

    def tag(self, name: str, *, timestamp: Time | None = None, version: Version | None = None, replace: bool = False) -> Tag:
        """Give a name to the cut of now, of a time, or of a version. Nothing is committed where it names that cut already.

        ``TagExists`` where the name is another cut's, or was; ``replace`` gives it to this one all the same.
        """
        with self._turn:
            self._open_timeline()
            decided = giving(self._database, self.id, name, timestamp, version, replace=replace)
            return self._say_of_tag("tag", decided) if decided.is_new else Tag.of(decided.entry)

    def drop_tag(self, name: str) -> Tag:
        """Take a name back from its cut; ``NotFound`` where it names none. The name stays known, with what it named."""
        with self._turn:
            self._open_timeline()
            return self._say_of_tag("drop tag", taking_back(self._database, self.id, name))

    def _say_of_tag(self, operation: str, decided: Decided) -> Tag:
        """Commit a transaction without events that carries the entry."""
        # What lies in the future counts as seen only where it is named.
        named_after = decided.after if decided.after > self._database.seen.newest_commit_time else 0
        commit = Commit(
            operation=operation, metadata={"tag": decided.entry.name}, tag=decided.entry, events=NoEvents(named_after=named_after)
        )
        carried = commit.stamped(self._say(commit)).tag
        assert carried is not None
        return Tag.of(carried)

    def pin(self, name: str, *, timestamp: Time | None = None, version: Version | None = None) -> Pin:
        """Keep what is committed after the cut of now, of a time, or of a version from being pruned: gives this writer's pin, or moves it.

        Of a plain writer it holds for ``limits.PLAIN_PIN_AGE`` from the last call, of a maintainer until it is dropped. Where no event
        lies between pin and cut it is committed again after ``limits.PIN_RENEWAL`` only. ``HistoryPruned`` where some may be deleted.
        """
        return self._pin("pin", lambda: pinning(self._database, self.id, name, timestamp, version))

    def unpin(self, name: str) -> Pin:
        """Drop a pin of this writer; ``NotFound`` where it has none of that name."""
        return self._pin("unpin", lambda: (unpinning(self._database, self.id, name), True))

    def _pin(self, operation: str, decide: Callable[[], tuple[PinEntry, bool]]) -> Pin:
        with self._turn:
            self._open_timeline()
            entry, is_new = decide()
            said = Commit(operation=operation, metadata={"pin": entry.name}, pin=entry)
            return Pin.of(replace(entry, stamp=self._say(said)) if is_new else entry)

    def join(self) -> Stamp:
        """Commit a transaction without events that follows every branch of the timeline, which was opened to be joined."""
        with self._turn:
            self._open_timeline()
            return self._say(Commit(operation="join"))

    def void(self, transactions: Iterable[Void]) -> Stamp:
        """Say that every reader treats these transactions as absent, from the cuts on that this commit is in. A maintainer's."""
        self._require_maintainer("void transactions")
        with self._turn:
            self._open_timeline()
            return self._say(Commit(operation="void", voids=tuple(transactions)))

    def set_aside(self, entries: Sequence[SetAside], *, after: int = 0) -> Stamp:
        """Say what counts as without events from now on, or again as what it is, in every cut. A maintainer's.

        It comes ``after`` what was said of the same transactions before; nothing else has to be read for it.
        """
        self._require_maintainer("set files aside")
        with self._turn:
            self._open_timeline()
            operation = "take in" if all(entry.taken_in for entry in entries) else "set aside"
            return self._say(Commit(operation=operation, asides=tuple(entries), after=after))

    def _require_maintainer(self, to: str) -> None:
        if not is_maintainer(self.id):
            raise InvalidOption(f"The writer {self.id!r} cannot {to}.", next_step=f"Use one called {MAINTAINER_PREFIX}NAME.")

    def bound(self, operation: str, boundary: Boundary, *, seen: Cut | None = None) -> Boundary:
        """Commit a transaction without events that publishes what may be deleted; returns the boundary as published.

        This process has read the cut that the boundary names, and the one that was ``seen``: whoever sees the transaction has to see that
        too. It names all that was read, also what an earlier transaction has named, for what it frees is asked of that alone.
        """
        with self._turn:
            self._open_timeline()
            if seen is not None:
                self._database.remember(seen)
            return replace(boundary, stamp=self._say_in_full(Commit(operation=operation, boundary=boundary)))
