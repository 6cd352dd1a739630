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
from ...model.arrays import one_chunk
from ...model.tables import Table
from ...query.snapshot import Snapshot
from ...state.contents import Contents
from ...write.writer import Writer
from .boundaries import DataBoundary, KnownBoundaries, known_boundary, limits_of, next_boundary, publish
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
from .judge import Pins
from .spaces import Space, spaces

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


class GcWorkers(Protocol):
    """Does the work of a run that grows with the tables: in this process, or on executors."""

    def waiting(self, snapshot: Snapshot, limits: Mapping[str, int], known: DataBoundary) -> tuple[int, int]:
        """How many tombstones ended at or before the tables' limits, and how many of these the boundary does not reach."""
        ...

    def collect(self, snapshot: Snapshot, rules: Rules, writer: Writer | None, done: Collected) -> Collected:
        """Collect everything at a cut by these rules; without a writer nothing is done but counting."""
        ...


def dry_run_of(snapshot: Snapshot, workers: GcWorkers, grace: int, pin_age: int = limits.PLAIN_PIN_AGE) -> Collected:
    """What collection would do by the boundary that could be published now. No deleter is asked; what there is is taken to succeed."""
    known, reach = known_boundary(snapshot.view), next_boundary(snapshot.view, grace)
    rules = Rules.of(snapshot, limits_of(snapshot, grace, reach), Pins.of(snapshot.view, longest=pin_age))
    begun = Collected(snapshot.database, True, boundary=reach, usable_from=known.usable_from)
    return workers.collect(snapshot, rules, None, begun)


def collect(
    look: Callable[[], Snapshot],
    writer: Writer,
    workers: GcWorkers,
    grace: int,
    pin_age: int = limits.PLAIN_PIN_AGE,
    *,
    force: bool,
) -> Collected:
    """One run; see ``Collected``. Tags of who is no maintainer hold what they name for ``pin_age``.

    ``force`` publishes a boundary and does not wait: for where nobody else reads or writes.
    """
    snapshot = look()
    reach, done = next_boundary(snapshot.view, grace), Collected(snapshot.database, False)
    if force:
        done = replace(done, published=publish(writer, OPERATION, snapshot.view, reach).data)
        snapshot = look()
    # A listing is of no one moment: it may show that a tag was dropped, and not the one that whoever restores has given before.
    earlier, boundaries = snapshot.view, KnownBoundaries.of(snapshot.view)
    known = DataBoundary()
    if boundaries.can_be_used(waited=not force):
        snapshot = look()
        known = boundaries.used(snapshot, waited=not force)
    if known.data:
        pins = Pins.of(snapshot.view, earlier, pin_age)
        rules = Rules.of(snapshot, limits_of(snapshot, grace, known.data), pins, known.held)
        done = workers.collect(snapshot, rules, writer, replace(done, boundary=known.data))
    waiting, beyond = workers.waiting(snapshot, limits_of(snapshot, grace, reach), known)
    done = replace(done, waiting=waiting)
    if beyond and not force and not boundaries.waits:
        published = publish(writer, OPERATION, snapshot.view, reach)
        return replace(done, published=published.data, usable_from=published.usable_from)
    return done if force else replace(done, usable_from=boundaries.farthest.usable_from)


@dataclass(frozen=True)
class InProcess:
    """Does the work in this process."""

    deleters: Deleters = NOBODY

    def waiting(self, snapshot: Snapshot, limits: Mapping[str, int], known: DataBoundary) -> tuple[int, int]:
        """See ``GcWorkers``."""
        states = [(snapshot.state(name), limit) for name, limit in limits.items()]
        counts = [count_waiting(facts, limit, known) for state, limit in states for facts in ended_rows(state, limit, ())]
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
