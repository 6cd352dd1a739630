"""The events of one transaction in the making, in their order: as facts, and what they leave of some keys.

What a later event of the same transaction means by a row's id depends on the earlier ones, which no snapshot shows yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..format.blocks import BlockClass, EncodedBlock, encode_blocks
from ..format.segment_refs import SegmentReference
from ..format.transactions import MAX_ACTIONS, action_of
from ..model.arrays import one_chunk
from ..model.events import Event, facts_of_events
from ..model.facts import NO_TRANSACTIONS, Facts, Kind, concat
from ..model.keys import encode_keys
from ..model.tables import Table


@dataclass(frozen=True)
class Encoded:
    """The events of a transaction as it carries them: one by one, as blocks, or in segments that were put before."""

    actions: Sequence[Any] = ()
    blocks: Sequence[EncodedBlock] = ()
    segments: tuple[SegmentReference, ...] = ()


@dataclass(frozen=True)
class Left:
    """What a transaction's own PUTs and blind DELETEs leave of the keys that they touch: by key the row's id, None where it is ended."""

    keys: pa.Array
    live: pa.Array
    ids: pa.Array

    def of(self, key: bytes) -> tuple[bool, Any] | None:
        """Whether the key is live and the id of its row; None where no event touched it."""
        at = pc.index(self.keys, key).as_py()
        return None if at < 0 else (self.live[at].as_py(), self.ids[at].as_py())


@dataclass
class OwnEvents:
    """Events one by one and as columns, numbered through."""

    count: int = 0
    _events: list[tuple[int, Event]] = field(default_factory=list)
    _columns: list[tuple[str, Facts]] = field(default_factory=list)

    def add(self, events: Iterable[Event]) -> None:
        """Add events one by one."""
        for event in events:
            self._events.append((self.count, event))
            self.count += 1

    def add_columns(self, table: Table, rows: pa.Table) -> None:
        """Add facts that are numbered from ``count`` on."""
        self._columns.append((table.name, Facts(NO_TRANSACTIONS, rows)))
        self.count += len(rows)

    def left(self, table: Table, keys: pa.Array) -> Left | None:
        """What the events so far leave of these encoded keys; None where they touch none of them."""
        facts = self._facts(table)
        if facts is None:
            return None
        own = one_chunk(encode_keys(table, facts.rows))
        kinds = facts.numbers("_kind")
        concerned = np.flatnonzero(np.asarray(pc.is_in(own, value_set=keys)) & (kinds != Kind.NAMED))
        if not len(concerned):
            return None
        newest_first = concerned[np.argsort(-facts.numbers("_seq")[concerned], kind="stable")]
        distinct = pc.index_in(own.take(pa.array(newest_first)), value_set=pc.unique(own.take(pa.array(newest_first))))
        _, first = np.unique(np.asarray(distinct), return_index=True)
        last = pa.array(newest_first[first])
        name = table.by_name[table.id].field_name if table.id is not None else ""
        known = name in facts.rows.column_names
        ids = one_chunk(facts.rows.column(name)).take(last) if known else pa.nulls(len(last))
        return Left(own.take(last), pa.array(kinds == Kind.VERSION).take(last), ids)

    def encoded(self, tables: Mapping[str, Table]) -> Encoded:
        """The events as actions, or as blocks where they are more than a transaction carries one by one."""
        if self.count <= MAX_ACTIONS and not self._columns:
            return Encoded(actions=[action_of(event, tables[event.table]) for _, event in self._events])
        blocks: list[EncodedBlock] = []
        for _, table in sorted(tables.items()):
            facts = self._facts(table)
            if facts is not None:
                blocks += encode_blocks(_by_key(facts, table), table, BlockClass.EVENTS)
        return Encoded(blocks=blocks)

    def _facts(self, table: Table) -> Facts | None:
        placed = [(0, sequence, event) for sequence, event in self._events if event.table == table.name]
        pieces = [facts_of_events(table, placed, NO_TRANSACTIONS)] if placed else []
        pieces += [facts for name, facts in self._columns if name == table.name and len(facts)]
        return concat(pieces) if pieces else None


def _by_key(facts: Facts, table: Table) -> Facts:
    order = pc.sort_indices(
        pa.table({"key": one_chunk(encode_keys(table, facts.rows)), "seq": facts.column("_seq")}),
        sort_keys=[("key", "ascending"), ("seq", "ascending")],
    )
    return facts.take(order)
