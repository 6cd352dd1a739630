"""Candidates: the tombstones that may be forgotten, as rows that say all that is asked of them later, and who needs their data.

Only these rows are held, so many at a time; what may need their data is read past them, slice by slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...model.arrays import Mask
from ...model.facts import Facts, Kind
from ...model.render import output_schema, render
from ...model.tables import Column, Table
from ...state.contents import Contents, TableState
from ...state.orders import plan_ended
from ...state.plan import Part
from ...write.references import ids
from .authority import of_others, unheard
from .boundaries import DataBoundary
from .judge import Ends, Held, Pins, judge, masked
from .parents import Distinct, ParentIds, parent_ids, says_external, state_rows
from .spaces import Space

VERSION = "_version"
REFERENCE = "_reference"
ID = "_id"
EXTERNAL = "_external"


@dataclass(frozen=True)
class Rules:
    """What rows are judged by, at one cut: up to when versions must have ended, by table, and what pins them. Picklable.

    ``held`` is what an earlier cut holds of it, in which they must have ended already; None asks for no such thing. ``parents`` are the
    ids of each parent table's rows; ``children`` the tables whose rows belong to rows of each parent table.
    """

    limits: Mapping[str, int]
    pins: Pins
    held: Held | None = None
    parents: Mapping[str, ParentIds] = field(default_factory=dict)
    children: Mapping[str, list[Table]] = field(default_factory=dict)

    @classmethod
    def of(cls, contents: Contents, limits: Mapping[str, int], pins: Pins, held: Held | None = None) -> Rules:
        """The rules for a cut; reads its parent tables."""
        tables = contents.definitions.usable()
        children: dict[str, list[Table]] = {}
        for table in tables:
            if table.parent is not None and table.parent.table in contents.definitions:
                children.setdefault(table.parent.table, []).append(table)
        parents = {name: parent_ids(contents, name, Ends(limits.get(name, 0), held)) for name in children}
        return cls(limits, pins, held, parents, children)

    def ends(self, table: Table) -> Ends:
        """The ends of the table's versions that count."""
        return Ends(self.limits[table.name], self.held)

    def external(self, facts: Facts, table: Table) -> Mask:
        """Which rows have an external parent."""
        parents = self.parents.get(table.parent.table) if table.parent is not None else None
        return parents.of_external(facts, table) if parents is not None else np.zeros(len(facts), dtype=bool)


def ended_rows(state: TableState, until: int, columns: Iterable[Column]) -> Iterator[Facts]:
    """Tombstones of a table, with these row columns: at least all that ended at or before a commit time."""
    yield from state_rows(state, Part.TOMBSTONES, columns, plan_ended(state, until))


def read_columns(table: Table) -> list[Column]:
    """The row columns that judging a table's versions takes: key, data reference, id, parent's id, and whether it is external."""
    names = {
        *table.key,
        *table.data_reference,
        *([table.id] if table.id else []),
        *([table.parent.column] if table.parent else []),
    }
    names |= {column.name for column in table.external_columns}
    return [table.by_name[name] for name in sorted(names)]


def candidate_schema(table: Table) -> pa.Schema:
    """The columns of a candidate: key and data reference as people see them, its version, and what it is judged by."""
    names = [*dict.fromkeys([*table.key, *table.data_reference]), VERSION]
    judged = [(REFERENCE, pa.binary()), (ID, pa.binary()), (EXTERNAL, pa.bool_())]
    return pa.schema([*output_schema(table, columns=names), *(pa.field(name, kind) for name, kind in judged)])


def candidates_in(facts: Facts, table: Table, rules: Rules, space: Space) -> tuple[pa.Table, int]:
    """The candidates among the rows of a state of a table in the space, and how many more a tag alone keeps.

    A row that says that its children's data is somebody else's is none: nobody is to forget that.
    """
    nobody = np.zeros(len(facts), dtype=bool)
    judged = judge(facts, ends=rules.ends(table), pins=rules.pins, external=nobody, unheard=unheard(facts, table))
    chosen = judged.candidates
    if table.name in rules.children:
        chosen = chosen & ~says_external(facts, table)
    found = facts.filter(pa.array(chosen))
    schema = candidate_schema(table)
    shown = render(found, table, output_schema(table, columns=schema.names[:-3]))
    own = ids(found, table.by_name[table.id]) if table.id is not None else pa.nulls(len(found), pa.binary())
    external = rules.external(found, table) | of_others(found, table)
    columns = [*shown.columns, space.references(found, table), own, pa.array(external)]
    return pa.table(columns, schema=schema), int(judged.pinned.sum())


def count_waiting(facts: Facts, limit: int, known: DataBoundary) -> tuple[int, int]:
    """How many of a state's tombstones ended at or before the limit, and how many of these ends do not count by the boundary."""
    waiting = Ends(limit).count(facts) & (facts.numbers("_purged") == 0)
    return int(waiting.sum()), int((waiting & ~known.ends(limit).count(facts)).sum())


def needed_in(facts: Facts, table: Table, rules: Rules, space: Space) -> pa.Array:
    """The references in a space that versions among the rows of a state need, or may, each once."""
    external = rules.external(facts, table)
    judged = judge(facts, ends=rules.ends(table), pins=rules.pins, external=external, unheard=unheard(facts, table))
    return space.named(facts.filter(pa.array(judged.needs)), table).drop_null().unique()


def needed(contents: Contents, rules: Rules, space: Space, wanted: pa.Array) -> Mask:
    """Which of the wanted references of a space some version needs: the anti-join, a slice of keys after the other."""
    found = np.zeros(len(wanted), dtype=bool)
    for table in space.named_by:
        for facts in state_rows(contents.state(table.name), Part.EVERYTHING, needing_columns(table)):
            found |= np.asarray(pc.is_in(wanted, value_set=needed_in(facts, table, rules, space)))
    return found


def with_children(contents: Contents, rules: Rules, table: Table, wanted: pa.Array) -> pa.Array:
    """Those of the wanted ids of a parent table's rows that rows belong to which are not purged, while no live row carries the id."""
    ended = wanted.filter(pc.invert(pc.is_in(wanted, value_set=rules.parents[table.name].live)))
    found = Distinct()
    for child in rules.children[table.name] if len(ended) else ():
        for facts in state_rows(contents.state(child.name), Part.EVERYTHING, [parent_column(child)]):
            values = parents_in(facts, child)
            found.add(values.filter(pc.is_in(values, value_set=ended)))
    return found.values()


def parents_in(facts: Facts, child: Table) -> pa.Array:
    """The ids of the parents of a state's rows that are not purged, each once."""
    there = (facts.numbers("_kind") == Kind.VERSION) & (facts.numbers("_purged") == 0)
    return masked(ids(facts, parent_column(child)), there)


def parent_column(child: Table) -> Column:
    """The column that holds the id of a row's parent."""
    assert child.parent is not None
    return child.by_name[child.parent.column]


def needing_columns(table: Table) -> list[Column]:
    """The row columns that say what data a version needs."""
    names = {*table.data_reference, *([table.parent.column] if table.parent else [])}
    return [table.by_name[name] for name in sorted(names)]


def in_batches(rows: pa.Table, size: int) -> Iterator[pa.Table]:
    """The rows, so many at a time."""
    for start in range(0, len(rows), size):
        yield rows.slice(start, size)
