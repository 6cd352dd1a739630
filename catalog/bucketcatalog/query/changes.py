"""Every event of a table between two cuts: those of the transactions in the later cut and not in the earlier one.

They are read from the transactions themselves, and from the segments that these refer to. What is read, and by how many processes,
follows from the transactions alone; what events ended or replaced also from the state that they start from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import pyarrow as pa

from ..errors import InvalidOption, SetAsideError
from ..format.transactions import Transaction
from ..log.between import transactions_between
from ..log.blocks import Blocks
from ..log.entries import without_voided
from ..log.files import LogFiles
from ..model.cuts import Cut, Ref
from ..model.paths import transaction as transaction_path
from ..model.public import public
from ..model.tables import Table
from ..parallel import in_order
from ..state.contents import TableState
from ..state.feed import FeedPart, Find
from ..state.keyed import key_conditions
from ..where.conditions import Where
from ..where.given import Condition
from ..wording import either, how_to_take_in
from .events import EventsAsked, changes_schema, columns_before, events_tasks
from .looked_up import LookedUp, Lookup, asks_for, with_lookups
from .metadata import METADATA_TABLES
from .named import ANYWHERE, Place, narrowed
from .operations import Operations
from .pre_images import RANGES_AT_ONCE, BeforeTask, before_tasks
from .reads import InBatches, ReadTask
from .snapshot import DELETED_PREFIX, Snapshot, check_table_name

_NOT_OF_THE_KEY = "deletes and purges carry their key alone, so nobody could say which of them to show."


def changed_table(snapshot: Snapshot, name: str) -> Table:
    """The definition of a table that can change; ``InvalidOption`` for what is derived, ``UnknownTable`` for what is not there."""
    check_table_name(name)
    kept = name if name in snapshot.definitions else name.removeprefix(DELETED_PREFIX)
    if name in METADATA_TABLES or (kept != name and kept in snapshot.definitions):
        kind = "shows tombstones" if name not in METADATA_TABLES else "is about the catalog"
        rows = [kept] if kept in snapshot.definitions else sorted(snapshot.definitions)
        raise InvalidOption(
            f"The table {name!r} {kind}: only tables of rows have changes.", next_step=f"Ask for those of {', '.join(rows)}."
        )
    return snapshot.table(name)


@public("available", "table", "transactions")
@dataclass(frozen=True, repr=False)
class Changes(InBatches):
    """The events between two cuts of one table.

    ``_change_type`` is put, update, delete or purge; ``_version`` the version concerned, null for a blind delete; ``_stamp`` names the
    event itself. Row columns are those of the event: deletes and purges have only the key, and every other column is null there. Puts and
    updates carry whole rows; times that their defaults stand for are those that the table shows.

    Transactions come in the order of their stamps, and the events of each in their own where they are at most 65,536 of the table, and
    32 MiB. Those of a larger one come in the order in which it was written: what its file carries first, then segment after segment, of
    each in the order of keys; so events of one key are in their order there too. ``tasks``, one after the other, give the same.
    """

    files: LogFiles
    transactions: Sequence[Transaction]
    asked: EventsAsked
    start: TableState | None = None
    lookups: tuple[Lookup, ...] = ()

    def _of_what(self) -> str:
        return f"{self.table.name!r}, {len(self.transactions):,} transactions, "

    @property
    def table(self) -> Table:
        """Whose events they are."""
        return self.asked.table

    @property
    def schema(self) -> pa.Schema:
        """The event columns, then the table's; or those of them that are asked for."""
        return self.asked.schema

    @property
    def available(self) -> pa.Schema:
        """The columns that can be asked for."""
        return with_lookups(self.asked.available, self.lookups)

    def only(self, columns: Sequence[str]) -> Changes | LookedUp:
        """The same events with these of their columns alone: of what lies in blocks no others are read. ``InvalidOption`` as for a scan.

        On request there are also the name of what the row belongs to, such as its ``bucket``, and of the transaction ``_operation`` and
        ``_metadata``.
        """
        if asks_for(self.lookups, columns, {}):
            return LookedUp(self.table, self._of, self.asked.available, self.lookups, columns, {}, self.files.store)
        return self._of(columns)

    def _of(self, columns: Sequence[str], _: Where | None = None) -> Changes:
        asked = replace(self.asked, columns=tuple(columns))
        _ = asked.schema
        return replace(self, asked=asked)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The events in batches of at most 65,536; memory does not grow with their number."""
        if self.start is not None and self.asked.with_before:
            read = partial(_read_with, files=self.files, blocks=self.start.blocks, find=self._find)
            tasks = before_tasks(self.start, self.files, self.asked, self._parts, self._find, None)
            for tables in in_order(read, tasks, threads=RANGES_AT_ONCE):
                for rows in tables:
                    yield from rows.combine_chunks().to_batches()
            return
        yield from self.asked.shown(self.asked.feed(self.files).read(self._parts, self._find))

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """The read in parts of about so many events, for other processes; none where there is nothing to read.

        They follow from the transactions, and nothing is read for them but, with what was before, the keys of many events. A transaction
        of at most 65,536 events is read by one process, or by ranges of keys.
        """
        if self.start is not None and self.asked.with_before:
            return list(before_tasks(self.start, self.files, self.asked, self._parts, self._find, most_rows))
        return events_tasks(self.files, self.asked, self._parts, most_rows)

    def _find(self, refs: Sequence[Ref]) -> list[Transaction]:
        return [self._known[ref] for ref in refs]

    @cached_property
    def _known(self) -> dict[Ref, Transaction]:
        return {transaction.ref: transaction for transaction in self.transactions}

    @cached_property
    def _parts(self) -> list[FeedPart]:
        return self.asked.parts(self.transactions)


def _read_with(task: BeforeTask, files: LogFiles, blocks: Blocks, find: Find) -> list[pa.Table]:
    return list(task.read_with(files, blocks, find))


def changes_of(files: LogFiles, table: Table, transactions: Sequence[Transaction], where: Condition | None = None) -> Changes:
    """The events of a table in these transactions, which are in the order of their stamps.

    ``where`` has conditions on columns of its key, in the forms that a scan takes; ``InvalidOption`` for others.
    """
    conditions = key_conditions(table, where, changes_schema(table), _NOT_OF_THE_KEY)
    return Changes(files, transactions, EventsAsked(table, conditions))


def changes_between(
    start: Snapshot,
    end: Snapshot,
    name: str,
    *,
    where: Condition | None = None,
    place: Place = ANYWHERE,
    pre_images: bool | Sequence[str] = False,
    ignore_set_aside: bool = False,
) -> Changes:
    """Every event of a table in the cut of ``end`` and not in that of ``start``; ``InvalidOption`` where the end is the earlier one.

    ``SetAsideError`` where one of the transactions between them was set aside, unless that is ignored: nobody knows its events. Where the
    snapshots read past damage, what cannot be read is left out, with a warning.
    """
    table = changed_table(end, name)
    where = narrowed([end, start], table, place, where, ended=True)
    lost = {t.ref: t for t in end.view.tail if t.lost}  # also what can be read and is not what follows it says
    between = (lost.get(t.ref, t) for t in transactions_between(end.files, start.view, end.cut))
    transactions = list(without_voided(between, end.view.voids))
    end.files.on_damage.tell(called_from=3)
    aside = next((t for t in transactions if t.set_aside), None)
    if aside is not None and not ignore_set_aside:
        name_of_aside = transaction_path(aside.writer, aside.database, aside.head)
        raise SetAsideError(
            f"{name_of_aside} was set aside: what happened in it is not known.",
            next_step=f"Begin behind it, or leave its events out: {either('ignore_set_aside=True', '--ignore-set-aside')}. "
            f"Once the file is whole again it can be taken in: {how_to_take_in(name_of_aside)}.",
        )
    found = changes_of(end.files, table, transactions, where)
    _refuse_reversed(found, start.cut, end.cut)
    before = columns_before(table, pre_images)
    return replace(
        found,
        asked=replace(found.asked, before=before),
        start=None if before is None else start.state_as(table),
        lookups=(*end.lookups(table), Operations.of_events(end.database)),
    )


def _refuse_reversed(found: Changes, start: Cut, end: Cut) -> None:
    """``InvalidOption`` where there are no events after ``start`` and up to ``end`` because ``end`` is the earlier of the two.

    Cuts of which neither is the earlier one can be compared: each has what the other lacks.
    """
    past = [w for w in start.heads if start.newest_revision(w) > end.newest_revision(w)]
    if past and not found.transactions:
        ends = end.newest_revision(past[0])
        raise InvalidOption(
            f"The start lies after the end: of writer {past[0]!r} it has revision {start.newest_revision(past[0])}, "
            f"and the end {'nothing' if ends < 0 else f'revision {ends}'}.",
            next_step="Exchange the two; a difference can be taken either way.",
        )
