"""Events with what they ended or replaced, which is found in the state that they start from and in the events before them.

Both are read by ranges of keys: of a range all events are at hand, and what the state has of their keys. Of few events, which is what is
asked for most, there is one range, and they come in the order of their stamps; of many they come range by range, in each in that order.
Where to divide many is known from their own keys, which are read for that alone: the state may have none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..format.losses import STRICT, Losses
from ..log.blocks import Blocks
from ..log.files import LogFiles
from ..log.salvage import SalvagingFiles
from ..model.arrays import one_chunk
from ..model.facts import FACT_COLUMNS, NO_TRANSACTIONS, Facts, concat
from ..model.keys import EVERYTHING, KeyRange, encode_keys, lies_within, span
from ..model.render import storage_columns, version_names
from ..model.tables import Table
from ..state.contents import TableState
from ..state.feed import FeedPart, Find, joined
from ..state.plan import Part, for_keys
from ..state.pre_images import before
from ..state.read import empty_rows, read_slice
from ..state.shares import PackedSlice, share_count
from ..store.base import Store
from ..store.obstacles import PastObstacles
from .events import BEFORE, VERSION_BEFORE, EventsAsked, fetched, row_before, shown_events, struct_of
from .reads import BATCH_ROWS

EVENTS_OF_A_RANGE, RANGES_AT_ONCE = 1 << 18, 2
"""About as many events a range has; so many ranges are read at once, and one more may wait to be taken, with the rows that events ended."""
_SAMPLES = 1_024
"""So many keys tell of those of a range."""


@dataclass(frozen=True)
class BeforeTask:
    """The events of a range of keys, of transactions that are read again by their names, and what the state has of the range.

    ``rows`` is about how many they are. ``table`` is the table as that state is read; of the keys in ``lost`` it lacks rows.
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
    state: TableState, files: LogFiles, asked: EventsAsked, parts: Sequence[FeedPart], find: Find, most_rows: int | None
) -> list[BeforeTask]:
    """What reads the events after a state with what they ended, for about so many events each, or as many as are held at a time.

    The state is planned from indexes alone. The keys of events are read first where they are of several ranges.
    """
    most = EVENTS_OF_A_RANGE if most_rows is None else min(most_rows, EVENTS_OF_A_RANGE)
    keys = asked.keys()
    tasks: list[BeforeTask] = []
    for each in _ranges(files, asked, parts, find, partial(_count, most=most, is_shared=most_rows is not None)):
        slices = state.plan([part for wanted in keys.ranges if (part := wanted.intersect(each.keys)) is not None])
        tasks.append(
            BeforeTask(
                files.database,
                asked,
                each.keys,
                each.parts,
                state.table,
                tuple(packed for slice_ in slices if (packed := PackedSlice.of(slice_, state.table, Part.EVERYTHING)).rows),
                each.rows,
                files.on_damage.reads_on,
                tuple(files.on_damage.lost_keys(state.table.name)),
            )
        )
    return tasks


def _count(rows: int, most: int, *, is_shared: bool) -> int:
    """How many ranges to make of so many events: where processes share them, also enough for each to have some."""
    return share_count(rows, most) if is_shared else -(-rows // most)


class _Range(NamedTuple):
    """A range of keys, the parts that may hold events of it, and about how many these are."""

    keys: KeyRange
    parts: tuple[FeedPart, ...]
    rows: int


def _ranges(
    files: LogFiles, asked: EventsAsked, parts: Sequence[FeedPart], find: Find, count: Callable[[int], int]
) -> list[_Range]:
    """All keys in about so many ranges as ``count`` says of so many events, with about as many events each; none without events.

    All events of a key are in one, which has more of them where one key does.
    """
    rows = sum(part.rows for part in parts)
    if not rows:
        return []
    if count(rows) == 1:
        return [_Range(EVERYTHING, tuple(parts), rows)]
    step = max(rows // count(rows) // _SAMPLES, 1)
    held = _HeldKeys.of(replace(asked, columns=asked.table.key, before=None).feed(files).read(parts, find), asked.table, step)
    ranges = []
    for keys in held.divided(count(held.rows)):
        within = joined(part for part in parts if held.may_have(part, keys))
        first, stop = span(held.samples, keys)
        if within:
            ranges.append(_Range(keys, within, max((stop - first) * step, 1)))
    return ranges


@dataclass(frozen=True)
class _HeldKeys:
    """Which keys events have: how many ``rows`` there are, a sorted sample of them, and by transaction the first key and the last."""

    rows: int
    samples: pa.Array
    bounds: Mapping[bytes, tuple[bytes, bytes]]

    @classmethod
    def of(cls, events: Iterable[Facts], table: Table, step: int) -> _HeldKeys:
        """Those of events, of which every ``step``-th of those that come together, by key, is in the sample."""
        rows, samples, bounds = 0, [pa.array([], pa.binary())], dict[bytes, tuple[bytes, bytes]]()
        for facts in events:
            keys = one_chunk(encode_keys(table, facts.rows))
            order = pc.sort_indices(keys)
            keys, owners = keys.take(order), np.asarray(facts.column("_txn"))[np.asarray(order)]
            samples.append(keys.take(pa.array(np.arange((step // 2 - rows) % step, len(keys), step))))
            rows += len(keys)
            used, first = np.unique(owners, return_index=True)
            last = len(owners) - 1 - np.unique(owners[::-1], return_index=True)[1]
            uuids = one_chunk(facts.transactions["uuid"]).take(pa.array(used))
            for uuid, *ends in zip(*(found.to_pylist() for found in (uuids, keys.take(first), keys.take(last))), strict=True):
                known = bounds.get(uuid, ends)
                bounds[uuid] = min(known[0], ends[0]), max(known[1], ends[1])
        found = pa.concat_arrays(samples)
        return cls(rows, found.take(pc.sort_indices(found)), bounds)

    def divided(self, count: int) -> list[KeyRange]:
        """All keys in at most so many ranges that have about as many of the rows each."""
        at = [len(self.samples) * number // count for number in range(1, count)]
        cuts = sorted({*self.samples.take(pa.array(at, pa.int64())).to_pylist()} - {b""})
        return [KeyRange(start, stop) for start, stop in zip([b"", *cuts], [*cuts, None], strict=True)]

    def may_have(self, part: FeedPart, within: KeyRange) -> bool:
        """Whether events of a range can be among those of a part."""
        bounds = self.bounds.get(part.ref.head.uuid)
        if bounds is None or not within.overlaps(*bounds):
            return False
        runs = (stretch.segment.run for stretch in part.stretches)
        return part.is_carried or any(within.overlaps(run.first_key, run.last_key) for run in runs)


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
