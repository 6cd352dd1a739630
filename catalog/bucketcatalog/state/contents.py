"""The contents of a database at one cut: its tables' definitions, and for each the blocks and the tail that its state is made from."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import IncompatibleTable, UnknownTable
from ..format.authority import Definitions
from ..format.checkpoints import Checkpoint
from ..format.headers import BlockClass, BlockPlace, Side
from ..format.held import Held
from ..format.runs import Run, StoredPart
from ..log.blocks import Blocks
from ..log.files import LogFiles
from ..log.view import LogView
from ..log.witnesses import definitions_of
from ..model.cuts import Cut
from ..model.facts import NO_TRANSACTIONS, Facts, SortedFacts, concat
from ..model.keys import EVERYTHING, KeyRange
from ..model.paths import checkpoint as checkpoint_path
from ..model.paths import transaction as transaction_path
from ..model.tables import Table
from .indexes import LOOKED_UP_KEYS, IndexCache, StoredRun, WantedKeys
from .plan import SLICE_ROWS, EventBlock, Levels, Part, Slice, for_keys, plan_slices
from .read import empty_rows, read_slice
from .tail import InlineEvent, event_blocks, fitting, inline_events, inline_facts, misfitting, unknown_misfit

_KEYS_OF_A_SLICE = 8_192
"""Few keys are looked for one by one, more of them together: a block that holds several is read once."""


class TableState:
    """The blocks and the tail of one table; ``parts`` are the runs of each checkpoint, of rows and beside them."""

    def __init__(
        self,
        blocks: Blocks,
        table: Table,
        parts: Sequence[Sequence[StoredPart]],
        indexes: IndexCache,
        tail: Facts | None,
        events: Sequence[EventBlock],
    ) -> None:
        self.blocks = blocks
        self.table = table
        self.events = events
        self._parts = parts
        self._stored = [[part for part in each if part.run.is_of_rows] for each in parts]
        self._indexes = indexes
        self._tail = tail

    def above(self, level: int) -> TableState:
        """The same without the runs below a level: what is new over them."""
        return self.of_parts([[part for part in each if part.run.level >= level] for each in self._parts])

    def of_parts(self, parts: Sequence[Sequence[StoredPart]]) -> TableState:
        """The same with these runs of each checkpoint in place of its own."""
        return TableState(self.blocks, self.table, parts, self._indexes, self._tail, self.events)

    @property
    def reads_past_damage(self) -> bool:
        """Whether what cannot be read is left out, rather than an error."""
        return self._indexes.on_damage.reads_on

    @property
    def parts_by_checkpoint(self) -> Sequence[Sequence[StoredPart]]:
        """The runs of rows that each checkpoint has."""
        return self._stored

    def places(self, part: StoredPart) -> tuple[BlockPlace, ...]:
        """The blocks of a run, in the order of their keys; reads the index of its segment."""
        return self._indexes.run(part).places

    @cached_property
    def tail(self) -> SortedFacts | None:
        """The uncovered events that transactions carry one by one, by key."""
        return SortedFacts.of(self._tail, self.table) if self._tail is not None and len(self._tail) else None

    @property
    def new_rows(self) -> int:
        """How many events no checkpoint covers."""
        return (len(self._tail) if self._tail is not None else 0) + sum(block.place.header.rows for block in self.events)

    @property
    def level_rows(self) -> list[int]:
        """The rows of each level, from the lowest on, of all checkpoints together."""
        rows: Counter[int] = Counter()
        for each in self._stored:
            for part in each:
                rows[part.run.level] += part.run.rows
        return [rows[level] for level in range(max(rows, default=-1) + 1)]

    def folded_rows(self, classes: Collection[BlockClass]) -> int | None:
        """How many rows of the classes there are, where one fold holds them all; None where there is an overlay."""
        if self.new_rows or self.checkpoints > 1 or len(self.level_rows) > 1:
            return None
        return sum(part.run.rows for each in self._stored for part in each if part.run.block_class in classes)

    def lowest_rows(self, classes: Collection[BlockClass]) -> int:
        """How many rows of the classes the lowest level of the checkpoints holds."""
        runs = [part.run for each in self._stored for part in each]
        return sum(run.rows for run in runs if not run.level and run.block_class in classes)

    def lowest_places(self, classes: Collection[BlockClass]) -> list[BlockPlace]:
        """The blocks of the classes that the lowest level holds; reads the index of every segment."""
        lowest = self.blocks_by_level()[:1]
        return [place for places in lowest for place in places if place.header.block_class in classes]

    def beside(self, side: Side) -> list[StoredRun]:
        """The stored parts of a side run beside the lowest level.

        There are none to use of several checkpoints, whose rows overlap, or where rows may be left out for damage.
        """
        if self._indexes.on_damage.reads_on:
            return []
        found = [part for each in self._parts for part in each if not part.run.level]
        return [
            StoredRun(part.run, partial(self._indexes.run, part))
            for part in found
            if (part.run.purpose, part.run.name) == (side.purpose, side.name) and len(self._parts) == 1
        ]

    @property
    def checkpoints(self) -> int:
        """How many checkpoints hold rows of the table."""
        return sum(1 for each in self._stored if each)

    def parts_by_level(self) -> list[list[StoredPart]]:
        """The runs of each level, from the lowest on, of all checkpoints together."""
        found: dict[int, dict[StoredPart, None]] = {}
        for each in self._stored:
            for part in each:
                found.setdefault(part.run.level, {})[part] = None
        return [list(found.get(level, {})) for level in range(max(found, default=-1) + 1)]

    def blocks_by_level(self) -> list[list[BlockPlace]]:
        """The blocks of each level likewise; reads the index of every segment."""
        return [
            list({place: None for part in parts for place in self._indexes.run(part).places}) for parts in self.parts_by_level()
        ]

    def plan(
        self,
        ranges: Iterable[KeyRange] = (EVERYTHING,),
        *,
        only_live: bool = False,
        target: int = SLICE_ROWS,
        wanted: WantedKeys | None = None,
    ) -> list[Slice]:
        """The slices that cover the ranges, or of these the ``wanted`` keys, in key order; see ``plan_slices``."""
        ranges = list(ranges)
        levels = self.levels(ranges, wanted)
        left = self._indexes.on_damage.without_withheld(self.table.name, ranges)
        return plan_slices(levels, self.events, self.tail, left, only_live=only_live, target=target)

    def plan_keys(self, keys: pa.Array, *, only_live: bool = False, filtered: bool = True) -> list[Slice]:
        """The slices that can hold these keys, which are sorted, distinct and at least one; ``filtered`` by the filters of segments.

        Who knows that most of the keys are there leaves the filters unread.
        """
        look_up = len(keys) <= LOOKED_UP_KEYS
        step = 1 if look_up else _KEYS_OF_A_SLICE
        parts = [keys[at : at + step] for at in range(0, len(keys), step)]
        ranges = [KeyRange.closed(part[0].as_py(), part[-1].as_py()) for part in parts]
        plan = self.plan(ranges, only_live=only_live, target=sys.maxsize, wanted=WantedKeys(keys) if filtered else None)
        return list(for_keys(plan, keys, look_up=look_up))

    def levels(self, ranges: Iterable[KeyRange] = (EVERYTHING,), wanted: WantedKeys | None = None) -> list[Levels]:
        """For each checkpoint the runs of the table that can hold keys of the ranges, or of these the ``wanted`` alone.

        The index of a segment is read when a run in it is asked for its blocks. Who reads on past damage reads all indexes at once, for
        what is lost decides what can be answered, and uses no filters: every question is answered from the same rows.
        """
        ranges = list(ranges)
        if self._indexes.on_damage.reads_on:
            wanted = None
            for part in (part for each in self._stored for part in each if _overlaps(part.run, ranges)):
                self._indexes.run(part)
        return [
            Levels(
                [self._run(part, wanted) for part in each if not part.run.level and _overlaps(part.run, ranges)],
                [self._run(part, wanted) for part in each if part.run.level and _overlaps(part.run, ranges)],
            )
            for each in self._stored
        ]

    def _run(self, part: StoredPart, wanted: WantedKeys | None) -> StoredRun:
        if wanted is None:
            return StoredRun(part.run, partial(self._indexes.run, part))
        return StoredRun(part.run, partial(self._indexes.holding, part, wanted, self.blocks.holds))


def _overlaps(run: Run, ranges: Iterable[KeyRange]) -> bool:
    return any(keys.overlaps(run.first_key, run.last_key) for keys in ranges)


class Contents:
    """What a view of the log holds. Nothing is read before it is asked for, and nothing again later."""

    def __init__(self, files: LogFiles, view: LogView, definitions: Definitions | None = None) -> None:
        self.files = files.aware(view.asides)
        self.view = view
        self._definitions = definitions
        self._blocks = Blocks(files.store, files.on_damage)
        self._indexes = IndexCache(files.store, files.database, files.on_damage)
        self._states: dict[str, TableState] = {}

    @property
    def database(self) -> str:
        """The database's name."""
        return self.view.database

    @property
    def cut(self) -> Cut:
        """The cut."""
        return self.view.cut

    @cached_property
    def definitions(self) -> Definitions:
        """The tables by name: those given, else the core's and those that the log and the checkpoints define."""
        if self._definitions is not None:
            return self._definitions
        return definitions_of(self.view)

    @cached_property
    def names(self) -> list[str]:
        """The names of all tables that are defined or that the log has rows of, sorted."""
        return sorted({*self.definitions, *self._inline, *self._events})

    def table(self, name: str) -> Table:
        """The definition of a table, or ``UnknownTable``."""
        if name in self.definitions:
            return self.definitions[name]
        if name in self._inline or name in self._events:
            inline = self._inline.get(name)
            first = transaction_path(inline[0][0].writer, self.database, inline[0][0].head) if inline else None
            file = first or self._events[name][0].place.name
            raise UnknownTable(
                f"Database {self.database!r} has rows of table {name!r}, which nothing defines, in {file}.",
                next_step="Restore the transactions of its writer from a copy of the store, or let a maintainer set that file aside.",
            )
        raise UnknownTable(
            f"There is no table {name!r} in database {self.database!r}.",
            next_step=f"Choose one of {', '.join(sorted(self.definitions))}, or see the snapshot's tables.",
        )

    def whole(self, name: str) -> Table:
        """The same for who deletes: ``IncompatibleTable`` too where rows by a definition that is left out may name what would go."""
        table = self.table(name)
        if table.misfits:
            self.state(name)
        return table

    def contradiction(self, name: str) -> str | None:
        """Why a table cannot be read, or None: definitions contradict each other, or it has rows by one that does not fit."""
        why = self.definitions.contradiction(name)
        if why is None and self.definitions[name].misfits:
            try:
                self.state(name)
            except IncompatibleTable as error:
                why = error.message
        return why

    def usable(self) -> list[Table]:
        """The tables that can be read, by name."""
        return [self.definitions[name] for name in sorted(self.definitions) if self.contradiction(name) is None]

    def state(self, name: str) -> TableState:
        """The blocks and the tail of a table."""
        if name not in self._states:
            self._states[name] = self.state_as(self.table(name))
        return self._states[name]

    def state_as(self, table: Table) -> TableState:
        """The same by a definition of the table that need not be the one of this cut: a later one shows what it has of the columns."""
        tail = inline_facts(self._inline.get(table.name, []), table, self.files.on_damage)
        events = fitting(self._events.get(table.name, ()), table, self.files.on_damage)
        stored = [self._parts(checkpoint, table) for checkpoint in self.view.checkpoints]
        self.files.on_damage.tell()
        return TableState(self._blocks, table, stored, self._indexes, tail, events)

    def _parts(self, checkpoint: Checkpoint, table: Table) -> list[StoredPart]:
        """The runs that a checkpoint has of a table, but none where it folded them by a definition that is left out of the table now."""
        parts = [part for part in checkpoint.parts if part.run.table == table.name]
        misfit = unknown_misfit(checkpoint, table, self.definitions.left_out(table.name)) if parts and table.misfits else None
        if misfit is None:
            return parts
        name = checkpoint_path(checkpoint.writer, checkpoint.database, checkpoint.head)
        held = [Held(run.table, run.rows, run.first_key, run.last_key) for run in (part.run for part in parts)]
        self.files.on_damage.add(name, misfitting(name, table.name, misfit), held)
        return []

    @cached_property
    def _inline(self) -> Mapping[str, list[InlineEvent]]:
        return inline_events(self.view.tail)

    @cached_property
    def _events(self) -> Mapping[str, Sequence[EventBlock]]:
        return event_blocks(self.files.store, self.view.tail, self.files.on_damage)

    def find(self, table: str, keys: pa.Array, part: Part) -> Facts:
        """The state rows of ``part`` under these encoded keys."""
        state = self.state(table)
        distinct = pc.unique(keys)
        plan = state.plan_keys(distinct.take(pc.sort_indices(distinct)), only_live=part is Part.LIVE) if len(keys) else []
        batches = [read_slice(state.blocks, state.table, slice_, part) for slice_ in plan]
        return concat(batches) if batches else Facts(NO_TRANSACTIONS, empty_rows(state.table))

    def find_of(self, table: Table, keys: pa.Array, part: Part) -> Facts:
        """The same for whoever declares the table: nothing where it is not there yet."""
        return self.find(table.name, keys, part) if table.name in self.names else Facts(NO_TRANSACTIONS, empty_rows(table))
