"""Following a database: what lies between a cut that a reader has reached and now, in portions that are cuts themselves.

A reader that goes on from where it stopped is given each transaction once: those in the cut of a portion's end and not in its start's.
Which come first is decided by what they rest on: each after its parents and all that it had read, else by stamp. So every end is a closed
cut, and a transaction that arrives late, of a new writer, or on a branch of a fork, comes with some later portion, since it lies in no
earlier one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from .. import clock, limits
from ..errors import IncompatibleTable, InvalidVersion, MissingObject, SetAsideError
from ..format.transactions import Transaction
from ..log.ancestry import version_view
from ..log.between import transactions_between
from ..log.entries import voids_of
from ..log.versions import telling_to_begin_anew
from ..log.view import LogView
from ..model.cuts import Cut, Ref, Stamp
from ..model.paths import transaction as transaction_path
from ..model.render import REQUESTED
from ..model.tables import Table
from ..store.base import Store
from ..wording import how_to_take_in
from .database import Database
from .events import EventsAsked, changes_schema, events_tasks
from .reads import ReadTask
from .scan import Scan
from .snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Portion:
    """How much is taken at once: at most so many transactions with events of the table and bytes of their files, but one at least.

    None is no bound.
    """

    transactions: int | None = None
    bytes: int | None = None


ALL = Portion()
PAUSE = 0.5
"""Seconds between two looks at the store, of which each costs a request a writer."""
_STEPPED_OVER = limits.HOUR


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A transaction that is yet to be taken, without its events."""

    ref: Ref
    parents: tuple[Ref, ...]
    built_on: tuple[Ref, ...]
    voids: frozenset[Ref]
    tables: frozenset[str]
    bytes: int

    @classmethod
    def of(cls, t: Transaction) -> _Ahead:
        of_segments = sum(segment.size for segment in t.segments)
        return cls(t.ref, t.parent_refs, t.built_on, frozenset(voids_of([t], ())), t.holds, t.size + of_segments)


@dataclass(frozen=True, slots=True)
class _Backlog:
    """What is ahead of a cut, in the order in which it is taken, up to the view ``known``; ``voids`` is what is voided at the cut."""

    cut: Cut
    ahead: tuple[_Ahead, ...]
    known: LogView
    voids: frozenset[Ref]

    def concerns(self, table: str) -> bool:
        """Whether any of it has events of a table."""
        return any(table in each.tables for each in self.ahead)

    def count(self, portion: Portion, table: str) -> int:
        """How many of the transactions are the next portion, with those between that have no events of the table, which cost nothing."""
        concerned = size = 0
        for at, each in enumerate(self.ahead):
            if table in each.tables:
                size += each.bytes
                over = portion.bytes is not None and size > portion.bytes
                if concerned and (over or concerned == portion.transactions):
                    return at
                concerned += 1
        return len(self.ahead)

    def after(self, count: int) -> _Backlog:
        """What is left once so many of the transactions have been taken."""
        taken, left = self.ahead[:count], self.ahead[count:]
        voids = self.voids.union(*(each.voids for each in taken))
        return replace(self, cut=_cut_after(self.cut, taken), ahead=left, voids=voids)


def _cut_after(cut: Cut, taken: Iterable[_Ahead]) -> Cut:
    """The cut with these transactions, which come after nothing that is not in it."""
    heads, followed = set(cut.refs()), set[Ref]()
    for each in taken:
        heads.add(each.ref)
        followed.update(each.parents)
    return Cut.of(heads - followed)


def _in_order(found: Sequence[_Ahead]) -> Iterator[_Ahead]:
    """Each after all that it is built on, else by stamp, as they come.

    Stamps alone say the same but where a commit time was voided that lay in the future: who follows that comes before it.
    """
    waiting = {each.ref: each for each in found}
    for one in found:
        pending = [one.ref]
        while pending:
            each = waiting.get(pending[-1])
            first = None if each is None else [ref for ref in each.built_on if ref in waiting]
            if first:
                pending += first
                continue
            pending.pop()
            if each is not None:
                yield waiting.pop(each.ref)


class Follower:
    """Follows one table of a database from cut to cut, for one reader at a time.

    What it knows only spares it to read the log again: its answers are functions of cuts, and a reader that begins anew elsewhere gets the
    same transactions between the same two. ``table`` is the definition by which events are read, for as long as it is followed.
    """

    def __init__(self, database: Database, table: Table) -> None:
        self._database = database
        self._table = table
        self._backlog: _Backlog | None = None
        self._last: LogView | None = None
        self._looked = 0.0
        self._handed: tuple[Cut, Cut, tuple[Ref, ...]] | None = None

    def newest(self) -> LogView:
        """The view of now."""
        self._looked = clock.monotonic()
        return self._database.view()

    def stop_at(self, last: LogView) -> None:
        """Go no further than this view."""
        self._last = last

    def end_of(self, start: Cut, portion: Portion = ALL) -> Cut:
        """Where the next portion after a cut ends: at ``start`` where nothing ahead concerns the table.

        What is ahead is looked for twice a second at most. What concerns other tables is stepped over once it is an hour old, so that
        who follows a table that rarely changes does not fall behind the horizon. ``HistoryPruned`` where what comes next may be deleted.
        """
        backlog = self._backlog
        if backlog is None or backlog.cut != start:
            backlog = self._begun(start, self._last or self.newest())
        if not backlog.concerns(self._table.name) and self._is_due(backlog):
            backlog = self._extended(backlog, self._last or self.newest())
        self._backlog = backlog
        if not backlog.concerns(self._table.name) and not _is_old(backlog):
            return start
        count = backlog.count(portion, self._table.name)
        self._backlog = left = backlog.after(count)
        self._handed = start, left.cut, _not_voided(backlog.ahead[:count], left.voids)
        return left.cut

    def _is_due(self, backlog: _Backlog) -> bool:
        return self._last is not backlog.known and clock.monotonic() - self._looked >= PAUSE

    def _begun(self, start: Cut, end: LogView) -> _Backlog:
        """What is ahead of a cut that nothing is known of, up to a view."""
        if start.heads:
            with telling_to_begin_anew():
                view = self._database.snapshot(None, str(start), strict=False).view
        else:
            view = replace(version_view(self._database.files, start), horizon=end.horizon)
        if view.cut != start:
            raise InvalidVersion(
                f"The version {start} leaves out what it is built on: nobody can go on from there.",
                next_step="Begin anew from a version that a snapshot gave.",
            )
        return self._extended(_Backlog(start, (), view, frozenset(view.voids)), end)

    def _extended(self, backlog: _Backlog, end: LogView) -> _Backlog:
        if end.cut == backlog.known.cut:
            return backlog
        try:
            met: dict[Ref, _Ahead] = {}
            found = transactions_between(
                self._database.files, backlog.known, end.cut, lambda t: met.update({t.ref: _Ahead.of(t)})
            )
        except MissingObject:
            if not backlog.ahead and backlog.known.observed == end.observed:
                raise
            return self._begun(backlog.cut, end)  # which says what was pruned meanwhile
        return replace(backlog, ahead=(*backlog.ahead, *_in_order([met[t.ref] for t in found])), known=end)

    def transactions(self, start: Cut, end: Cut, *, ignore_set_aside: bool = False) -> Iterator[Transaction]:
        """The transactions between two cuts that have events for readers, by stamp, one after the other.

        What maintainers have voided by ``end`` has none. ``SetAsideError`` where one was set aside, unless that is ignored;
        ``IncompatibleTable`` where one adds columns to the table.
        """
        if self._handed is not None and self._handed[:2] == (start, end):
            refs = self._handed[2]
        else:
            last = self._database.snapshot(None, str(end), strict=False).view
            backlog = self._begun(start, last)
            refs = _not_voided(backlog.ahead, backlog.after(len(backlog.ahead)).voids)
        passed_over: set[frozenset[int]] = set()
        for t in self._database.files.in_turn(sorted(refs, key=_stamp_of)):
            self._refuse_more_columns(t, passed_over)
            if not t.set_aside:
                yield t
            elif not ignore_set_aside:
                name = transaction_path(t.writer, t.database, t.head)
                raise SetAsideError(
                    f"{name} was set aside: what happened in it is not known.",
                    next_step="Begin anew behind it, or go on without its events, with ignoreCorruption. Once the file is whole again it "
                    f"can be taken in: {how_to_take_in(name)}.",
                )

    def _refuse_more_columns(self, t: Transaction, passed_over: set[frozenset[int]]) -> None:
        """``IncompatibleTable`` where a transaction's rows have columns that nobody who follows could be shown, now or later.

        Those that do not count are ``passed_over``: the database is not asked for them again.
        """
        known = {column.number for column in self._table.columns}
        said = next((table for table in t.tables if table.name == self._table.name), None)
        numbers = frozenset(column.number for column in said.columns) if said is not None else frozenset[int]()
        if numbers <= known or numbers in passed_over:
            return
        passed_over.add(numbers)
        now = self._database.look().definitions.get(self._table.name)  # what one writer says need not count
        more = [] if now is None else [column.name for column in now.columns if column.number not in known]
        if more:
            raise IncompatibleTable(
                f"Table {self._table.name!r} has got the columns {', '.join(more)} with {t.writer}@{t.revision}.",
                next_step="Start the query again: it goes on from where it is, with all columns that there are then.",
            )

    def tasks(self, transactions: Iterable[Transaction], columns: Sequence[str], most_rows: int) -> list[ReadTask]:
        """What reads these columns of the table's events in transactions that come by stamp, in parts of about so many rows.

        Of each transaction no more than its parts is kept.
        """
        asked = EventsAsked(self._table, columns=tuple(columns))
        return events_tasks(self._database.files, asked, asked.parts(transactions), most_rows)


def _is_old(backlog: _Backlog) -> bool:
    return any(each.ref.head.commit_time < backlog.known.observed - _STEPPED_OVER for each in backlog.ahead)


def _stamp_of(ref: Ref) -> Stamp:
    return Stamp(ref.head.commit_time, ref.writer, ref.head.revision, ref.head.uuid)


def _not_voided(ahead: Iterable[_Ahead], voids: Collection[Ref]) -> tuple[Ref, ...]:
    return tuple(each.ref for each in ahead if each.ref not in voids)


@dataclass(frozen=True)
class StateTask:
    """A part of a table's live rows, as if each had just been put: what a reader begins with who goes on from there with events."""

    table: Table
    task: ReadTask

    @property
    def rows(self) -> int:
        """See ``ReadTask``."""
        return self.task.rows

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The rows with the columns of events: the stamp is that of the version's PUT, the row the one that it has by now."""
        schema = changes_schema(self.table)
        for rows in self.task.read(store):
            about = {"_change_type": "put", "_table": self.table.name}
            columns = [
                pa.repeat(pa.scalar(about[name]), len(rows))
                if name in about
                else pc.cast(rows.column("_version" if name == "_stamp" else name), schema.field(name).type)
                for name in schema.names
            ]
            yield pa.table(columns, schema=schema)


def state_tasks(snapshot: Snapshot, table: Table, most_rows: int) -> list[ReadTask]:
    """What reads the live rows of a table as puts, in parts of about so many, with the columns of this definition of it."""
    columns = [*(column.name for column in table.shown_columns), *REQUESTED]
    scan = Scan(snapshot.state_as(table), tombstones=False, columns=columns, where={})
    return [StateTask(table, task) for task in scan.tasks(most_rows)]
