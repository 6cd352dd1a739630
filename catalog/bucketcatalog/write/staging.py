"""The events of one transaction in the making, in their order: held as facts, or as segments where they may be any number.

What a later event of the same transaction means by a row's id depends on the earlier ones, which no snapshot shows yet.

A few thousand of them go into the transaction itself. More go into segments that are put before it and that it refers to, so a transaction
of any size is one commit, and its file small; segments that no transaction refers to, as after a crash, are part of nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows
from ..format.blocks import EncodedBlock, encode_blocks
from ..format.headers import BlockClass
from ..format.runs import SegmentReference
from ..format.segments import RunRows
from ..format.sizes import is_surely_given
from ..format.transactions import MAX_ACTIONS, action_of
from ..log.files import LogFiles
from ..log.segments import RunWriter
from ..model.arrays import one_chunk
from ..model.events import Event, EventKind, Expectation, facts_of_events
from ..model.facts import FACT_COLUMNS, LAST_SEQUENCE, NO_TRANSACTIONS, End, EventNames, Expects, Facts, Kind, concat
from ..model.keys import encode_keys
from ..model.tables import Table
from .given import Given, GivenColumns, GivenRows

INLINE_ROWS = 16_384
INLINE_BYTES = 8 << 20
"""As many events as the transaction carries itself, and as many bytes of them in memory: about a row group."""


@dataclass(frozen=True)
class Encoded:
    """The events of a transaction as it carries them: one by one, as blocks, or in segments that were put before.

    ``put_from`` is the store's time before the first of these was, None where none was put for it.
    """

    actions: Sequence[Any] = ()
    blocks: Sequence[EncodedBlock] = ()
    segments: tuple[SegmentReference, ...] = ()
    put_from: int | None = None


@dataclass(frozen=True)
class WrittenShare:
    """What a process has written: events of the ``table`` in ``segments``, which come after the commit time ``named_after``.

    ``began`` is the store's time in microseconds before anything of it was looked up or put.
    """

    table: Table
    segments: tuple[SegmentReference, ...]
    events: int
    named_after: int
    began: int


@dataclass(frozen=True)
class Left:
    """What its own PUTs and blind DELETEs leave of some keys: for each whether they touch it, whether it is live, and its row's id."""

    touched: pa.Array
    live: pa.Array
    ids: pa.Array


@dataclass(frozen=True)
class Said:
    """What the events of one call say beside their rows and the versions that they name."""

    kind: EventKind
    has_expectation: bool
    expects: Expectation
    moved: bool

    def events(self, given: GivenRows) -> list[Event]:
        """The events of these rows one by one."""
        return [
            Event(given.table.name, self.kind, row, name, self.has_expectation, self.expects, self.moved and name is not None)
            for row, name in zip(given.rows, given.versions, strict=True)
        ]

    def facts(self, given: GivenColumns, first: int) -> pa.Table:
        """The events of these rows as facts, numbered from ``first`` on."""
        said = {"_seq": pa.array(np.arange(first, first + len(given), dtype=np.int32))}
        if self.kind is not EventKind.PUT:
            said |= self._of_versions(given.versions, said["_seq"])
        if self.has_expectation:
            said |= self._of_expectation(len(given))
        facts = given.columns
        for name, values in said.items():
            facts = facts.append_column(name, values)
        return facts

    def _of_versions(self, names: EventNames | None, numbers: pa.Array) -> dict[str, pa.Array]:
        if names is None:
            return {"_kind": _repeated("_kind", int(Kind.DELETE), len(numbers))}
        named = names.uuids.is_valid()
        said = {
            "_kind": pc.if_else(named, pa.scalar(int(Kind.NAMED), pa.uint8()), pa.scalar(int(Kind.DELETE), pa.uint8())),
            "_name_uuid": names.uuids,
            "_name_seq": names.sequences,
        }
        if self.kind is EventKind.UPDATE:
            return {**said, "_row_seq": numbers}
        if self.kind is EventKind.PURGE:
            return {**said, "_purged": _repeated("_purged", True, len(numbers))}
        end = _repeated("_end_kind", int(End.MOVED if self.moved else End.NAMED_DELETE), len(numbers))
        ends = {"_end_seq": numbers, "_end_kind": end}
        return said | {name: pc.if_else(named, values, pa.scalar(None, values.type)) for name, values in ends.items()}

    def _of_expectation(self, count: int) -> dict[str, pa.Array]:
        if self.expects is None:
            return {"_expects": _repeated("_expects", int(Expects.ABSENT), count)}
        return {
            "_expects": _repeated("_expects", int(Expects.VERSION), count),
            "_expects_uuid": _repeated("_expects_uuid", self.expects.uuid, count),
            "_expects_seq": _repeated("_expects_seq", self.expects.sequence, count),
        }


def _repeated(name: str, value: Any, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, FACT_COLUMNS[name]), count)


def refuse_many(events: int) -> None:
    """``InvalidRows`` for more events than one transaction can number."""
    if events > LAST_SEQUENCE:
        raise InvalidRows("One transaction cannot hold 2^31 events.", next_step="Change fewer rows at once.")


@dataclass
class StagedEvents:
    """Events one by one and as columns, numbered through.

    What they leave of a table's keys is noted once somebody asks, and then of those that are new: a call costs what it adds.
    """

    count: int = 0
    _events: list[tuple[int, Event]] = field(default_factory=list)
    _columns: list[tuple[str, Facts]] = field(default_factory=list)
    _new: dict[str, list[tuple[Given, EventKind]]] = field(default_factory=dict)
    _left: dict[str, dict[bytes, tuple[bool, Any]]] = field(default_factory=dict)

    def add(self, given: Given, said: Said) -> None:
        """Add an event for each row."""
        if isinstance(given, GivenRows):
            self._events += enumerate(said.events(given), self.count)
        else:
            self._columns.append((given.table.name, Facts(NO_TRANSACTIONS, said.facts(given, self.count))))
        if said.kind in (EventKind.PUT, EventKind.DELETE):
            self._new.setdefault(given.table.name, []).append((given, said.kind))
        self.count += len(given)

    def left(self, table: Table, keys: pa.Array) -> Left | None:
        """What the events so far leave of these encoded keys; None where they touch none of them."""
        known = self._left.setdefault(table.name, {})
        for given, kind in self._new.pop(table.name, ()):
            known |= _ends(given) if kind is EventKind.DELETE else _puts(given)
        found = [known.get(key) for key in keys.to_pylist()] if known else []
        if not any(found):
            return None
        live, ids = zip(*(each or (False, None) for each in found), strict=True)
        kind_of_id = pa.null() if table.id is None else table.by_name[table.id].storage_type
        return Left(pa.array([each is not None for each in found]), pa.array(live), pa.array(ids, kind_of_id))

    def put_into(self, runs: RunWriter, tables: Mapping[str, Table]) -> None:
        """Put all events as segments, however few they are."""
        for table in tables.values():
            if (facts := self._facts(table)) is not None:
                runs.add(RunRows(_by_key(facts, table), table, BlockClass.EVENTS))

    def encoded(self, tables: Mapping[str, Table], runs: Callable[[], RunWriter], *, one_by_one: bool = True) -> Encoded:
        """The events as actions, or as blocks where they are more than a transaction carries one by one, or not to be carried so.

        Where they are more than it carries at all, those of the tables that have most are put as segments into ``runs``.
        """
        if one_by_one and self.count <= MAX_ACTIONS and not self._columns:
            actions = [action_of(event, tables[event.table]) for _, event in self._events]
            if _is_carried(len(actions), sum(action.ByteSize() for action in actions)) and _are_surely_given(actions, tables):
                return Encoded(actions=actions)
        found = [(table, facts) for _, table in sorted(tables.items()) if (facts := self._facts(table)) is not None]
        found.sort(key=lambda each: int(each[1].rows.nbytes))
        blocks: list[EncodedBlock] = []
        rows = size = carried = 0
        for table, facts in found:
            rows, size = rows + len(facts), size + int(facts.rows.nbytes)
            if not _is_carried(rows, size):
                break
            blocks += encode_blocks(_by_key(facts, table), table, BlockClass.EVENTS)
            carried += 1
        if carried == len(found):
            return Encoded(blocks=blocks)
        into = runs()
        for table, facts in found[carried:]:
            into.add(RunRows(_by_key(facts, table), table, BlockClass.EVENTS))
        into.finish()
        return Encoded(blocks=blocks, segments=tuple(into.segments), put_from=into.began)

    def _facts(self, table: Table) -> Facts | None:
        placed = [(0, sequence, event) for sequence, event in self._events if event.table == table.name]
        parts = [facts_of_events(table, placed, NO_TRANSACTIONS)] if placed else []
        parts += [facts for name, facts in self._columns if name == table.name and len(facts)]
        return concat(parts) if parts else None


def _puts(given: Given) -> dict[bytes, tuple[bool, Any]]:
    """What rows that are put leave of their keys."""
    column = given.table.by_name[given.table.id] if given.table.id is not None else None
    ids = [None] * len(given) if column is None else given.values(column)
    unset = column.zero if column is not None and column.implicit else None
    return {key: (True, unset if id_ is None else id_) for key, id_ in zip(given.key_list, ids, strict=True)}


def _ends(given: Given) -> dict[bytes, tuple[bool, Any]]:
    """What deletes leave of their keys: those that name a version say nothing of what is live."""
    return {key: (False, None) for key, is_named in zip(given.key_list, given.by_version, strict=True) if not is_named}


def _by_key(facts: Facts, table: Table) -> Facts:
    order = pc.sort_indices(
        pa.table({"key": one_chunk(encode_keys(table, facts.rows)), "seq": facts.column("_seq")}),
        sort_keys=[("key", "ascending"), ("seq", "ascending")],
    )
    return facts.take(order)


def _is_carried(rows: int, size: int) -> bool:
    """Whether a transaction carries so many events itself, of so many bytes."""
    return rows <= INLINE_ROWS and size <= INLINE_BYTES


def _are_surely_given(actions: Sequence[Any], tables: Mapping[str, Table]) -> bool:
    """Whether no row of these can be too large, whatever stands in it; blocks are refused where one is."""
    largest: dict[str, int] = {}
    for action in actions:
        largest[action.table] = max(largest.get(action.table, 0), len(action.row))
    return all(is_surely_given(tables[name], size) for name, size in largest.items())


class StagedSegments:
    """Events of one table, given in the order of their keys. ``began`` is the store's time before the work, and what it has read, began.

    A few thousand wait for the transaction to carry them itself; as soon as there are more, all go into segments. ``add`` puts one whenever
    one is full, ``finish`` the last one; ``encoded`` is what the transaction carries then.
    """

    def __init__(self, files: LogFiles, writer: str, table: Table, *, began: int) -> None:
        self.tables = {table.name: table}
        self.named_after = 0
        self.read_at: int | None = began
        self.count = 0
        self._table = table
        self._waiting: list[Facts] = []
        self._bytes = 0
        self._runs = RunWriter(files.store, writer, files.database, cut=None, began=began)

    def add(self, events: pa.Table) -> None:
        """Add events, whose keys come after all before: columns of facts, numbered from ``count`` on."""
        refuse_many(self.count + len(events))
        if len(events):
            self._waiting.append(Facts(NO_TRANSACTIONS, events))
            self.count += len(events)
            self._bytes += events.nbytes
        if not _is_carried(self.count, self._bytes):
            for facts in self._waiting:
                self._runs.add(RunRows(facts, self._table, BlockClass.EVENTS))
            self._waiting = []

    def unread_after(self, has_read: Callable[[bytes], bool]) -> int:
        """All that is named."""
        return self.named_after

    def finish(self) -> None:
        """No more is added: what the transaction cannot carry is put."""
        self._runs.finish()

    def encoded(self, runs: Callable[[], RunWriter]) -> Encoded:
        """The events as the transaction carries them; nothing is put into ``runs``, for that was done."""
        waiting = concat(self._waiting)
        return Encoded(
            blocks=tuple(encode_blocks(waiting, self._table, BlockClass.EVENTS)) if len(waiting) else (),
            segments=tuple(self._runs.segments),
        )
