"""Collecting in one process: a boundary is published, waited out, looked at again; then data is deleted and versions are forgotten.

One run does one step of that: it collects by the boundary that an earlier run has published long enough ago, and publishes the next one
for the run after it. Only what a deleter reports as gone is purged, so a run that dies anywhere is finished by the next, and runs at the
same time do the same work twice. At most ``AT_ONCE`` candidates are in memory; each so many read the table's references once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ... import limits
from ...errors import InvalidOption
from ...format.records import Boundary
from ...log.entries import boundaries_of
from ...log.view import LogView
from ...model.arrays import one_chunk
from ...model.tables import Table
from ...model.times import shown_age
from ...query.snapshot import Snapshot
from ...state.contents import Contents
from ...write.writer import Writer
from .candidates import (
    EXTERNAL,
    ID,
    REFERENCE,
    VERSION,
    Rules,
    candidates_in,
    count_waiting,
    ended_rows,
    in_batches,
    needed,
    read_columns,
    with_children,
)
from .data import NOBODY, Deleter, Deleters, Deletions
from .spaces import Space, spaces


@dataclass(frozen=True, slots=True)
class DataBoundary:
    """The latest boundary that a look has shown: how far it reaches, and when it was published. Both 0 where there is none.

    A boundary B says that data may be deleted of which every version ended at or before B. From the moment it can be seen no writer takes
    that data for a new version, and what was taken before has landed a maximum snapshot age later: then nothing that is not seen can name
    that data.
    """

    data: int = 0
    published: int = 0

    @property
    def usable_from(self) -> int:
        """The store's time from which data may be deleted by it: it can be seen by then, and whoever had not seen it has landed."""
        return self.published + limits.BOUNDARY_WAIT

    def is_usable(self, now: int) -> bool:
        """Whether data may be deleted by it at a time of the store."""
        return self.data > 0 and now >= self.usable_from


def settled(view: LogView) -> int:
    """Nothing with an earlier commit time, or this one, can still arrive."""
    return view.observed - max(view.lateness_bound, limits.LATENESS_BOUND) - 1


def grace_of(table: Table, grace: int) -> int:
    """For how long the table's tombstones are kept at least."""
    return table.tombstone_retention_seconds * 1_000_000 or grace


def next_boundary(view: LogView, grace: int) -> int:
    """How far a boundary may reach that is published now."""
    return min(settled(view), view.observed - grace)


def check_grace(grace: int, *, force: bool) -> None:
    """``InvalidOption`` for a grace period that readers and writers may need, unless forced."""
    if grace < limits.SAFE_COLLECTION_GRACE and not force:
        safe = shown_age(limits.SAFE_COLLECTION_GRACE)
        raise InvalidOption(
            f"What ended {shown_age(grace)} ago may be in use: readers and writers count on {safe}.",
            next_step=f"Give an age of {safe} or more, or --force where nobody reads or writes.",
        )


AT_ONCE = 1 << 19
"""Candidates that are held at a time."""
BATCH = 1 << 14
"""References that a deleter is given at a time, and versions that a transaction purges."""
OPERATION = "gc"
_FEW = 10


@dataclass(frozen=True, slots=True)
class Collected:
    """What a run did, or in a dry run what it would do once its boundary has been waited out. Times are in microseconds.

    ``boundary`` is up to when versions must have ended that this run collected; ``published`` the boundary that it published for a later
    one, which may collect from ``usable_from`` on. Counts of tombstones: ``waiting`` ended long enough ago, be the boundary waited out
    or not; ``purged`` were forgotten, of these ``shared`` while their data stays for another version, ``external`` while it is
    somebody else's; ``tagged`` are kept by a tag, ``owners`` because rows belong to them. Counts of references: ``garbage`` is needed by
    nothing, ``deleted`` of it is gone, ``failed`` is not, ``left`` is what nobody deletes. ``problems`` are what deleters said, the first
    few, ``why_left`` why data was left.
    """

    database: str
    dry_run: bool
    boundary: int = 0
    published: int = 0
    usable_from: int = 0
    waiting: int = 0
    purged: int = 0
    shared: int = 0
    external: int = 0
    tagged: int = 0
    owners: int = 0
    garbage: int = 0
    deleted: int = 0
    failed: int = 0
    left: int = 0
    problems: tuple[str, ...] = ()
    why_left: tuple[str, ...] = ()

    def plus(self, **counts: int) -> Collected:
        """With these counts added."""
        return replace(self, **{name: getattr(self, name) + count for name, count in counts.items()})

    def with_answers(self, problems: Iterable[str], reasons: Iterable[str]) -> Collected:
        """With what deleters said was wrong, and why they left data; the first few, each once."""
        both = ((*self.problems, *problems), (*self.why_left, *reasons))
        problems, reasons = (tuple(dict.fromkeys(said))[:_FEW] for said in both)
        return replace(self, problems=problems, why_left=reasons)


HeldRows: TypeAlias = list[tuple[Table, pa.Table]]
"""Candidates of several tables of one space."""


def known_boundary(view: LogView) -> DataBoundary:
    """The boundary that collection goes by: of all that the view knows the one that reaches farthest."""
    boundary = boundaries_of(view).data
    return DataBoundary() if boundary is None else DataBoundary(boundary.data, boundary.stamp.commit_time)


def limits_of(snapshot: Snapshot, grace: int, boundary: int) -> dict[str, int]:
    """For each table up to when its versions must have ended; an error where a table is not defined, for it may name any data."""
    tables = [snapshot.table(name) for name in snapshot.names]
    return {table.name: min(boundary, snapshot.view.observed - grace_of(table, grace)) for table in tables}


def reach(snapshot: Snapshot, grace: int) -> int:
    """How far a boundary may reach that is published now: as far as the table needs that keeps its tombstones the shortest."""
    shortest = min([grace, *(grace_of(snapshot.table(name), grace) for name in snapshot.names)])
    return next_boundary(snapshot.view, shortest)


class GcWorkers(Protocol):
    """Does the work of a run that grows with the tables: in this process, or on executors."""

    def waiting(self, snapshot: Snapshot, limits: Mapping[str, int], boundary: int) -> tuple[int, int]:
        """How many tombstones ended at or before the tables' limits, and how many of these after the boundary."""
        ...

    def collect(self, snapshot: Snapshot, rules: Rules, writer: Writer | None, done: Collected) -> Collected:
        """Collect everything at a cut by these rules; without a writer nothing is done but counting."""
        ...


def dry_run_of(snapshot: Snapshot, workers: GcWorkers, grace: int) -> Collected:
    """What collection would do by the boundary that could be published now. No deleter is asked; what there is is taken to succeed."""
    known, boundary = known_boundary(snapshot.view), reach(snapshot, grace)
    rules = Rules.of(snapshot, limits_of(snapshot, grace, boundary))
    begun = Collected(snapshot.database, True, boundary=boundary, usable_from=known.usable_from if known.data else 0)
    return workers.collect(snapshot, rules, None, begun)


def collect(look: Callable[[], Snapshot], writer: Writer, workers: GcWorkers, grace: int, *, force: bool) -> Collected:
    """One run; see ``Collected``. ``force`` publishes a boundary and does not wait: for where nobody else reads or writes."""
    snapshot = look()
    known, boundary = known_boundary(snapshot.view), reach(snapshot, grace)
    done = Collected(snapshot.database, False)
    if force and boundary > known.data:
        _publish(writer, snapshot, boundary)
        snapshot = look()
        known = known_boundary(snapshot.view)
        done = replace(done, published=boundary)
    if force or known.is_usable(snapshot.view.observed):
        # A listing is of no one moment: it may show that a tag was dropped, and not the one that whoever restores has given before.
        earlier, snapshot = snapshot.view, look()
        rules = Rules.of(snapshot, limits_of(snapshot, grace, known.data), earlier)
        done = workers.collect(snapshot, rules, writer, replace(done, boundary=known.data))
    waiting, beyond = workers.waiting(snapshot, limits_of(snapshot, grace, boundary), known.data)
    done = replace(done, waiting=waiting)
    if beyond and not force and (not known.data or done.boundary):
        return replace(done, published=boundary, usable_from=_publish(writer, snapshot, boundary).usable_from)
    return done if force else replace(done, usable_from=known.usable_from if known.data else 0)


def _publish(writer: Writer, snapshot: Snapshot, boundary: int) -> DataBoundary:
    """Publish how far collection will reach."""
    published = writer.bound(OPERATION, Boundary(data=boundary, settled=settled(snapshot.view)))
    return DataBoundary(boundary, published.stamp.commit_time)


@dataclass(frozen=True)
class InProcess:
    """Does the work in this process."""

    deleters: Deleters = NOBODY

    def waiting(self, snapshot: Snapshot, limits: Mapping[str, int], boundary: int) -> tuple[int, int]:
        """See ``GcWorkers``."""
        states = [(snapshot.state(name), limit) for name, limit in limits.items()]
        counts = [count_waiting(facts, limit, boundary) for state, limit in states for facts in ended_rows(state, limit, ())]
        return sum(waiting for waiting, _ in counts), sum(beyond for _, beyond in counts)

    def collect(self, snapshot: Snapshot, rules: Rules, writer: Writer | None, done: Collected) -> Collected:
        """See ``GcWorkers``."""
        return _Run(snapshot, rules, writer, self.deleters, done).all()


@dataclass
class _Run:
    """The work of one run by one boundary, on one cut. Without a writer nothing is done but counting."""

    contents: Contents
    rules: Rules
    writer: Writer | None
    deleters: Deleters
    done: Collected

    def all(self) -> Collected:
        """Collect every table."""
        tables = [self.contents.table(name) for name in self.rules.limits]
        for space in spaces(tables, self.deleters):
            for held in self._held(space):
                self._collect(space, held)
        return self.done

    def _held(self, space: Space) -> Iterator[HeldRows]:
        """The candidates of the space's tables, at most ``AT_ONCE`` and those of a slice at a time."""
        held: HeldRows = []
        for table in space.tables:
            for facts in ended_rows(self.contents.state(table.name), self.rules.limits[table.name], read_columns(table)):
                rows, tagged = candidates_in(facts, table, self.rules, space)
                self.done = self.done.plus(tagged=tagged, waiting=len(rows) + tagged)
                held += [(table, rows)] if len(rows) else []
                if sum(len(rows) for _, rows in held) >= AT_ONCE:
                    yield held
                    held = []
        if held:
            yield held

    def _collect(self, space: Space, held: HeldRows) -> None:
        """Purge what has no data that could be deleted, then batch by batch what has, as it goes."""
        held = [(table, self._without_parents(table, rows)) for table, rows in _by_table(held)]
        wanted = _distinct(held)
        needs = needed(self.contents, self.rules, space, wanted) if len(wanted) else np.zeros(0, dtype=bool)
        kept, garbage = wanted.filter(pa.array(needs)), wanted.filter(pa.array(~needs))
        for table, rows in held:
            shared = pc.and_(pc.is_in(rows[REFERENCE], value_set=kept), pc.invert(rows[EXTERNAL]))
            nobodys = pc.or_(rows[EXTERNAL], pc.is_null(rows[REFERENCE]))
            self.done = self.done.plus(shared=_count(shared), external=_count(rows[EXTERNAL]))
            for some in in_batches(rows.filter(pc.or_(shared, nobodys)), BATCH):
                self._purge([(table, some)])
        self.done = self.done.plus(garbage=len(garbage))
        deleter = self.deleters.of(space.tables)
        for start in range(0, len(garbage), BATCH):
            self._delete(deleter, space.tables[0], garbage.slice(start, BATCH), held)

    def _without_parents(self, table: Table, rows: pa.Table) -> pa.Table:
        """The candidates without those that rows still belong to: a parent is forgotten after its children."""
        if table.name not in self.rules.children:
            return rows
        parents = with_children(self.contents, self.rules, table, one_chunk(rows[ID]).drop_null().unique())
        kept = pc.is_in(rows[ID], value_set=parents)
        self.done = self.done.plus(owners=_count(kept))
        return rows.filter(pc.invert(kept))

    def _delete(self, deleter: Deleter, table: Table, garbage: pa.Array, held: HeldRows) -> None:
        """Have the data of some references deleted, and purge the versions whose data is gone."""
        columns = list(table.data_reference)
        rows = [(table, rows.filter(pc.is_in(rows[REFERENCE], value_set=garbage))) for table, rows in held]
        named = pa.concat_tables([some.select([*columns, REFERENCE]) for _, some in rows]).combine_chunks()
        first = pc.index_in(garbage, value_set=one_chunk(named[REFERENCE]))
        deletions: Deletions = deleter.delete(named.select(columns).take(first), dry_run=self.writer is None)
        self.done = self.done.plus(**deletions.counts).with_answers(deletions.problems, deletions.reasons)
        gone = garbage.filter(pa.array(deletions.gone))
        self._purge([(t, some.filter(pc.is_in(some[REFERENCE], value_set=gone))) for t, some in rows])

    def _purge(self, rows: HeldRows) -> None:
        """Forget versions, in one transaction."""
        count = sum(len(some) for _, some in rows)
        self.done = self.done.plus(purged=count)
        if self.writer is None or not count:
            return
        with self.writer.transaction(operation=OPERATION) as tx:
            for table, some in rows:
                if len(some):
                    tx.purge(table.name, some.select([*table.key, VERSION]))


def _by_table(held: HeldRows) -> HeldRows:
    """The candidates of each table in one, taken from the list."""
    found: dict[str, tuple[Table, list[pa.Table]]] = {}
    for table, rows in held:
        found.setdefault(table.name, (table, []))[1].append(rows)
    held.clear()  # each is there once
    return [(table, pa.concat_tables(parts).combine_chunks()) for table, parts in found.values()]


def _distinct(held: HeldRows) -> pa.Array:
    """The references of candidates whose data is ours, each once."""
    parts = [one_chunk(rows.filter(pc.invert(rows[EXTERNAL]))[REFERENCE]).drop_null() for _, rows in held]
    return pa.concat_arrays([*parts, pa.array([], pa.binary())]).unique()


def _count(mask: pa.ChunkedArray | pa.Array) -> int:
    return int(pc.sum(mask, min_count=0).as_py())
