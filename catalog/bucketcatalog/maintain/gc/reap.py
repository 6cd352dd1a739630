"""Reaping: rows whose parent has ended are ended, each by a DELETE that names its version.

A row that has been overwritten meanwhile is not touched, for its version has ended; reaping it twice ends nothing more. A parent must have
ended a grace period ago, as a boundary of data has seen that was waited out: when an end has arrived its commit time does not tell. Finding
rows may take long, so each batch is looked over again before it is ended: the rows of a parent that was put back meanwhile stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ...log.between import transactions_between
from ...model.events import EventKind
from ...model.facts import Facts
from ...model.render import output_schema, render
from ...model.tables import Table
from ...query.snapshot import Snapshot
from ...state.plan import Part
from ...state.tail import every_event
from ...write.commit import Commit
from ...write.references import ids
from ...write.writer import Writer
from .boundaries import DataBoundary, KnownBoundaries, next_boundary, publish
from .candidates import VERSION, in_batches, parent_column
from .judge import Ends
from .parents import parent_ids, state_rows, without

BATCH = 1 << 16
"""Versions that a transaction ends."""
OPERATION = "reap"
PARENT = "_parent"


@dataclass(frozen=True, slots=True)
class Reaped:
    """What reaping did, or in a dry run would do once its boundary has been waited out. Times are in microseconds.

    ``rows`` that were ended, by table, and how many ``parents`` have ended that these belonged to or that own none. ``boundary`` is up to
    when these must have ended; ``published`` the boundary that this run has published for a later one, which may go by it from
    ``usable_from`` on.
    """

    database: str
    dry_run: bool
    rows: dict[str, int]
    parents: int
    boundary: int = 0
    published: int = 0
    usable_from: int = 0


Find: TypeAlias = Callable[[Snapshot, Table, pa.Array], Iterable[pa.Table]]
"""Finds the table's live rows whose parents have these ids, with the columns of ``orphan_schema``, so many at a time."""


def reap(
    look: Callable[[], Snapshot], writer: Writer | None, grace: int, find: Find | None = None, *, force: bool = False
) -> Reaped:
    """End the rows of every table whose parents ended at least ``grace`` microseconds ago; without a writer, count them.

    As ``collect`` it goes by a boundary that an earlier run has published, and publishes the next one where none waits; ``force`` publishes
    one and does not wait. ``find`` finds rows, by default in this process.
    """
    snapshot, published = look(), DataBoundary()
    reach = next_boundary(snapshot.view, grace)
    if writer is not None and force:
        published = publish(writer, OPERATION, snapshot.view, reach)
        snapshot = look()
    boundaries = KnownBoundaries.of(snapshot.view)
    by = (lambda _: Ends(reach)) if writer is None else _ends(boundaries, reach, waited=not force)
    ended = _Ended(look, snapshot, by)
    rows = {}
    for table in children_of(snapshot):
        rows[table.name] = 0
        for some in (find or orphaned)(snapshot, table, ended.of_parents(table)):
            if writer is not None:
                ended.look_again()
                some = some.filter(pc.is_in(some[PARENT], value_set=ended.of_parents(table)))
                _end(writer, ended.seen, table, some)
            rows[table.name] += len(some)
    if writer is not None and not force and not boundaries.waits and ended.are_more(Ends(reach)):
        published = publish(writer, OPERATION, snapshot.view, reach)
    usable_from = published.usable_from or boundaries.farthest.usable_from
    parents = sum(len(found) for found in ended.ids.values())
    return Reaped(snapshot.database, writer is None, rows, parents, ended.limit, published.data, 0 if force else usable_from)


def _ends(boundaries: KnownBoundaries, reach: int, *, waited: bool) -> Callable[[Snapshot], Ends]:
    """Which ends count in what somebody sees later on."""
    return lambda seen: boundaries.used(seen, waited=waited).ends(reach)


def _end(writer: Writer, seen: Snapshot, table: Table, rows: pa.Table) -> None:
    """End rows of parents that had ended in what was ``seen``; ``StaleRead`` where that is too long ago."""
    if len(rows):
        draft = writer.draft()
        draft.looks_in(seen)
        draft.add(EventKind.DELETE, table.name, rows.drop_columns([PARENT]))
        writer.commit(Commit(operation=OPERATION, events=draft))


@dataclass
class _Ended:
    """The ids of the parents of which every version has an end that counts ``by`` what was ``seen`` last, by table."""

    look: Callable[[], Snapshot]
    seen: Snapshot
    by: Callable[[Snapshot], Ends]
    ids: dict[str, pa.Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._ends = self.by(self.seen)

    @property
    def limit(self) -> int:
        """Up to when they must have ended."""
        return max(self._ends.limit, 0)

    def of_parents(self, table: Table) -> pa.Array:
        """The ids of ended rows of the table that this one's rows have their parents in."""
        assert table.parent is not None
        name = table.parent.table
        if name not in self.ids:
            self.ids[name] = parent_ids(self.seen, name, self._ends).ended
        return self.ids[name]

    def are_more(self, ends: Ends) -> bool:
        """Whether more parents would have ended by other ends."""
        return any(len(without(parent_ids(self.seen, name, ends).ended, known)) for name, known in self.ids.items())

    def look_again(self) -> None:
        """Leave out what has been put since the last look; read everything again where that was changed by what is voided."""
        before, self.seen = self.seen, self.look()
        if self.seen.view.voids.keys() != before.view.voids.keys():
            self._ends = self.by(self.seen)
            self.ids = {name: parent_ids(self.seen, name, self._ends).ended for name in self.ids}
            return
        new = transactions_between(self.seen.files, before.view, self.seen.cut)
        for name, known in self.ids.items():
            table = self.seen.table(name) if len(known) and new else None
            facts = every_event(self.seen.files.store, new, table) if table is not None else None
            if table is not None and facts is not None and table.id is not None:
                self.ids[name] = without(known, ids(facts, table.by_name[table.id]))


def children_of(snapshot: Snapshot) -> list[Table]:
    """The tables whose rows have parents."""
    return [table for table in snapshot.definitions.usable() if table.parent is not None]


def orphan_schema(table: Table) -> pa.Schema:
    """The columns of what is found: the key as people see it, the version, and the parent's id as ids compare."""
    return output_schema(table, columns=[*table.key, VERSION]).append(pa.field(PARENT, pa.binary()))


def orphaned(snapshot: Snapshot, table: Table, ended: pa.Array) -> Iterator[pa.Table]:
    """The table's live rows whose parent is one of these, as ``orphan_schema`` has them."""
    if len(ended):
        for facts in state_rows(snapshot.state(table.name), Part.LIVE, [parent_column(table), *table.key_columns]):
            found = orphaned_in(facts, table, ended)
            yield from in_batches(found, BATCH)


def orphaned_in(facts: Facts, table: Table, ended: pa.Array) -> pa.Table:
    """The live rows among these whose parent is certainly one of these, as ``orphan_schema`` has them."""
    found = facts.filter(pc.is_in(ids(facts, parent_column(table), surely=True), value_set=ended))
    shown = render(found, table, output_schema(table, columns=[*table.key, VERSION]))
    return pa.table([*shown.columns, ids(found, parent_column(table))], schema=orphan_schema(table))
