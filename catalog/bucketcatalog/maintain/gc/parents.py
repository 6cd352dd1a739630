"""Parents: which rows that own others are live, which have ended, and whose data is somebody else's.

A parent has ended when versions carry its id and none of them is live. An id that no version ever carried belongs to no parent: rows that
name it are nobody's children. A parent's data is *external* where the column says so that its table declares for it, or where its own
parent is external.

Writers refuse tables whose rows could not be told to be a parent's, but a log may have them: such rows are never ended with a parent, and
somebody else's where any of the parents is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...log.blocks import Blocks
from ...model.arrays import Mask
from ...model.facts import Facts, Kind
from ...model.parents import is_comparable
from ...model.tables import Column, Table
from ...parallel import in_order
from ...state.contents import Contents, TableState
from ...state.plan import Part, Slice
from ...state.read import Selection, read_batches
from ...write.references import ids
from .judge import FACT_NAMES, Ends, masked

NO_IDS = pa.nulls(0, pa.binary())
"""None, of ids as they compare."""
_AT_ONCE = 1 << 16
"""So many values are joined at least."""


@dataclass(frozen=True)
class ParentIds:
    """Ids of a table's rows: of live versions, of those that ended at or before a time and are not live, and of external ones.

    ``has_external`` is whether there are any of these, ``is_known`` whether their ids can be told at all.
    """

    live: pa.Array = field(default_factory=lambda: NO_IDS)
    ended: pa.Array = field(default_factory=lambda: NO_IDS)
    external: pa.Array = field(default_factory=lambda: NO_IDS)
    has_external: bool = False
    is_known: bool = True

    def of_external(self, facts: Facts, table: Table) -> Mask:
        """Which rows of a child table have an external parent, or may have one."""
        if table.parent is None or not self.has_external:
            return np.zeros(len(facts), dtype=bool)
        column = table.by_name[table.parent.column]
        if not self.is_known or not is_comparable(column):
            return np.asarray(facts.meant_column(column).is_valid())
        return np.asarray(pc.is_in(ids(facts, column), value_set=self.external))


def says_external(facts: Facts, table: Table) -> Mask:
    """Which rows say themselves that the data of their children is somebody else's."""
    found = np.zeros(len(facts), dtype=bool)
    for column in table.external_columns:
        found |= np.asarray(pc.fill_null(facts.stored_column(column), False))
    return found


def state_rows(state: TableState, part: Part, columns: Iterable[Column], plan: Sequence[Slice] | None = None) -> Iterator[Facts]:
    """The state of a table, a slice after the other, with these row columns; what is held does not grow with the table.

    With a ``plan`` it is that of its slices alone.
    """
    wanted = list(columns)

    def read(slice_: Slice) -> list[Facts]:
        return list(slice_states(state.blocks, state.table, part, slice_, wanted))

    for found in in_order(read, state.plan(only_live=part is Part.LIVE) if plan is None else plan):
        yield from found


def slice_states(blocks: Blocks, table: Table, part: Part, slice_: Slice, columns: Iterable[Column]) -> Iterator[Facts]:
    """The state of a slice, with these row columns, a few thousand rows at a time; none is empty."""
    wanted = {*FACT_NAMES, *(column.field_name for column in columns)}
    return (facts for facts in read_batches(blocks, table, slice_, Selection(part, wanted)) if len(facts))


def parent_ids(contents: Contents, name: str, ends: Ends, *, below: Sequence[str] = ()) -> ParentIds:
    """The ids of a parent table's rows; ``ended`` are those of which every version has an end that counts.

    Held in memory: 16 bytes and some an id. Nothing where the table is not there or has no id. ``below`` are the tables on the way here.
    """
    if name not in contents.definitions or contents.definitions[name].id is None or name in below:
        return ParentIds()
    table = contents.table(name)
    assert table.id is not None
    own = table.by_name[table.id]
    above = parent_ids(contents, table.parent.table, ends, below=(*below, name)) if table.parent is not None else ParentIds()
    columns = [own, *table.external_columns, *([table.by_name[table.parent.column]] if table.parent else [])]
    live, ended, late, external, has_external = Distinct(), Distinct(), Distinct(), Distinct(), False
    for facts in state_rows(contents.state(name), Part.EVERYTHING, columns):
        versions: Mask = facts.numbers("_kind") == Kind.VERSION
        has_ended, is_late = facts.numbers("_end_kind") > 0, ~ends.count(facts)
        is_external = above.of_external(facts, table) | says_external(facts, table)
        values = ids(facts, own)
        live.add(masked(values, versions & ~has_ended))
        ended.add(masked(ids(facts, own, surely=True) if own.implicit else values, versions & has_ended))
        late.add(masked(values, versions & has_ended & is_late))
        external.add(masked(values, versions & is_external))
        has_external |= bool((versions & is_external).any())
    only_ended = without(without(ended.values(), live.values()), late.values())
    return ParentIds(live.values(), only_ended, external.values(), has_external, is_comparable(own))


class Distinct:
    """Values that come chunk by chunk, each once.

    Chunks are joined when there are as many values in them as are known, so each value is joined a few times, however many chunks there
    are, and at most twice as many as are distinct are held.
    """

    def __init__(self) -> None:
        self._known = NO_IDS
        self._chunks: list[pa.Array] = []
        self._waiting = 0

    def add(self, chunk: pa.Array) -> None:
        """Take in some more."""
        if len(chunk):
            self._chunks.append(chunk)
            self._waiting += len(chunk)
        if self._waiting > max(len(self._known), _AT_ONCE):
            self.values()

    def values(self) -> pa.Array:
        """All that came so far."""
        if self._chunks:
            self._known = pa.concat_arrays([self._known, *self._chunks]).unique()
            self._chunks, self._waiting = [], 0
        return self._known


def without(values: pa.Array, others: pa.Array) -> pa.Array:
    """The values that are not among the others."""
    return values.filter(pc.invert(pc.is_in(values, value_set=others)))
