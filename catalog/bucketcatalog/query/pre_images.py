"""Events with what they ended or replaced, which is found in the state that they start from and in the events before them.

Both are read by ranges of keys: of a range all events are at hand, and what the state has of their keys. Of few events, which is what is
asked for most, there is one range, and they come in the order of their stamps; of many they come range by range, in each in that order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..format.losses import STRICT, Losses
from ..log.blocks import Blocks
from ..log.files import LogFiles
from ..log.salvage import SalvagingFiles
from ..model.arrays import one_chunk
from ..model.facts import FACT_COLUMNS, NO_TRANSACTIONS, Facts, concat
from ..model.keys import EVERYTHING, KeyRange, encode_keys, lies_within
from ..model.render import storage_columns, version_names
from ..model.tables import Table
from ..state.contents import TableState
from ..state.feed import FeedPart, Find
from ..state.plan import Part, for_keys
from ..state.pre_images import before
from ..state.read import empty_rows, read_slice
from ..state.shares import PackedSlice, share_count
from ..store.base import Store
from ..store.obstacles import PastObstacles
from .events import BEFORE, VERSION_BEFORE, EventsAsked, fetched, row_before, shown_events, struct_of
from .reads import BATCH_ROWS

EVENTS_OF_A_RANGE = 1 << 19
"""About as many events of a range are held at a time, with the rows that they ended."""


@dataclass(frozen=True)
class BeforeTask:
    """The events of a range of keys, of transactions that are read again by their names, and what the state has of the range.

    ``table`` is the table as that state is read; of the keys in ``lost`` it lacks rows.
    """

    database: str
    asked: EventsAsked
    keys: KeyRange
    parts: tuple[FeedPart, ...]
    table: Table
    state: tuple[PackedSlice, ...]
    rows: int
    ignore_corruption: bool = False
    lost: tuple[KeyRange, ...] = ()

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The events in the order of their stamps."""
        past, losses = self.ignore_corruption, Losses()
        files = SalvagingFiles(store, self.database, past_obstacles=True) if past else LogFiles(store, self.database)
        blocks = Blocks(PastObstacles(store, losses.add), losses) if past else Blocks(store, STRICT)
        yield from self.read_with(files, blocks, partial(fetched, files))

    def read_with(self, files: LogFiles, blocks: Blocks, find: Find) -> Iterator[pa.Table]:
        """The same for who has the log at hand."""
        feed = self.asked.feed(files, self.keys)
        found = [facts for facts in feed.read(self.parts, find) if len(facts)]
        if not found:
            return
        events = concat(found)
        events = events.take(pa.array(np.argsort(events.stamps(), kind="stable")))
        state = self._state_of(blocks, events)
        lost = [*self.lost, *blocks.on_damage.lost_keys(self.table.name)]
        shown = _shown(state, events, self.asked, lost)
        for start in range(0, len(shown), BATCH_ROWS):
            yield shown.slice(start, BATCH_ROWS)

    def _state_of(self, blocks: Blocks, events: Facts) -> Facts:
        """What the state has of the keys of events."""
        table = self.table
        if not self.state:
            return Facts(NO_TRANSACTIONS, empty_rows(table))
        keys = pc.unique(one_chunk(encode_keys(self.asked.table, events.rows)))
        wanted = keys.take(pc.sort_indices(keys))
        columns = None if self.asked.before is None else {*self._stored, *FACT_COLUMNS}
        slices = for_keys((each.unpacked(table) for each in self.state), wanted)
        rows = [read_slice(blocks, table, slice_, Part.EVERYTHING, columns) for slice_ in slices]
        return concat(rows) if rows else Facts(NO_TRANSACTIONS, empty_rows(table))

    @property
    def _stored(self) -> set[str]:
        wanted = [name for name in self.asked.before or () if name in self.table.by_name]
        return storage_columns(self.table, [*self.table.key, *wanted])


def before_tasks(
    state: TableState, files: LogFiles, asked: EventsAsked, parts: Sequence[FeedPart], most_rows: int
) -> list[BeforeTask]:
    """What reads the events after a state with what they ended, for about so many events each; it is planned from indexes alone."""
    rows, keys = sum(part.rows for part in parts), asked.keys()
    count = max(share_count(rows, min(most_rows, EVENTS_OF_A_RANGE)), 1) if rows else 0
    tasks: list[BeforeTask] = []
    for within in _ranges(state, keys.ranges, count):
        slices = state.plan([part for each in keys.ranges if (part := each.intersect(within)) is not None])
        tasks.append(
            BeforeTask(
                files.database,
                asked,
                within,
                tuple(part for part in parts if _may_hold(part, within)),
                state.table,
                tuple(packed for slice_ in slices if (packed := PackedSlice.of(slice_, state.table, Part.EVERYTHING)).rows),
                -(-rows // count),
                files.on_damage.reads_on,
                tuple(files.on_damage.lost_keys(state.table.name)),
            )
        )
    return tasks


def _may_hold(part: FeedPart, within: KeyRange) -> bool:
    """Whether events of a range can be among those of a part: of what a transaction carries nobody knows before it is read."""
    return part.is_carried or any(within.overlaps(s.segment.run.first_key, s.segment.run.last_key) for s in part.stretches)


def _ranges(state: TableState, keys: Sequence[KeyRange], count: int) -> list[KeyRange]:
    """All keys in at most about so many ranges, that hold as much of the state each."""
    if count <= 1:
        return [EVERYTHING] * count
    starts = sorted({slice_.keys.start for slice_ in state.plan(keys)} - {b""})
    cuts = [starts[len(starts) * at // count] for at in range(1, count)] if len(starts) >= count else starts
    return [KeyRange(start, stop) for start, stop in zip([b"", *cuts], [*cuts, None], strict=True)]


def _shown(state: Facts, events: Facts, asked: EventsAsked, lost: Sequence[KeyRange]) -> pa.Table:
    """Events, which are all of their keys after a state, as people see them, with what they ended or replaced."""
    table, schema = asked.table, asked.schema
    known = before(state, events, table)
    at, versions = known.at, version_names(*known.versions)
    if lost:
        keys = one_chunk(encode_keys(table, events.rows))
        unknown = np.logical_or.reduce([np.asarray(lies_within(keys, each)) for each in lost])
        at = pc.if_else(pa.array(unknown), pa.scalar(None, at.type), at)
    struct = struct_of(known.rows, at, table, row_before(table, asked.before or ()))
    plain = pa.schema([field for field in schema if field.name not in (BEFORE, VERSION_BEFORE)])
    columns = dict(zip(plain.names, shown_events(events, table, plain).columns, strict=True))
    columns |= {BEFORE: struct, VERSION_BEFORE: versions}
    return pa.table([columns[name] for name in schema.names], schema=schema)
