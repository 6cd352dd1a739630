"""The tail: the events of transactions that no checkpoint covers, by table.

Events that transactions carry one by one are decoded into facts at once. Those in blocks are only located: they are read by range, by
whoever needs their keys, so that what a reader holds grows with the number of blocks and not with that of their rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ..codec.blocks import facts_of_blocks
from ..codec.segments import BlockPlace, read_block, read_index
from ..codec.transactions import Transaction, event_of
from ..errors import UnknownTable
from ..events import Placed, facts_of_events
from ..facts import Facts, concat, transaction_table
from ..keys import EVERYTHING, KeyRange
from ..paths import transaction as transaction_path
from ..planning import EventBlock
from ..store.base import Store
from ..tables import Table


def inline_facts(transactions: Sequence[Transaction], tables: Mapping[str, Table]) -> dict[str, Facts]:
    """The facts of every event that the transactions carry one by one, by table, in no particular order."""
    carrying = [t for t in transactions if t.actions]
    stamps = transaction_table(t.stamp for t in carrying)
    position = {uuid: index for index, uuid in enumerate(stamps.column("uuid").to_pylist())}
    placed: dict[str, list[Placed]] = {}
    for transaction in carrying:
        name = transaction_path(transaction.writer, transaction.database, transaction.revision, transaction.uuid)
        for sequence, action in enumerate(transaction.actions):
            event = event_of(action, _known(tables, action.table, name), name)
            placed.setdefault(action.table, []).append((position[transaction.uuid], sequence, event))
    return {table: facts_of_events(tables[table], events, stamps) for table, events in placed.items()}


def event_blocks(store: Store, transactions: Sequence[Transaction], tables: Mapping[str, Table]) -> dict[str, list[EventBlock]]:
    """The blocks of events that the transactions hold or refer to, by table."""
    found: dict[str, list[EventBlock]] = {}
    for transaction in transactions:
        for place in _places(store, transaction):
            table = _known(tables, place.header.table, place.name)
            found.setdefault(table.name, []).append(EventBlock(place, transaction.stamp))
    return found


def _places(store: Store, transaction: Transaction) -> Iterator[BlockPlace]:
    yield from transaction.blocks
    for segment in transaction.segments:
        yield from read_index(store, transaction.database, segment)


def read_events(
    store: Store, block: EventBlock, table: Table, columns: Collection[str] | None = None, keys: KeyRange = EVERYTHING
) -> Facts:
    """The facts of a block of events, or those of ``keys`` and ``columns`` alone: one range read."""
    return facts_of_blocks(read_block(store, block.place, table, columns, keys), transaction_table([block.stamp]))


def every_event(store: Store, transactions: Sequence[Transaction], tables: Mapping[str, Table], table: str) -> Facts | None:
    """The facts of all events of one table in the transactions, or None."""
    pieces = [facts for name, facts in inline_facts(transactions, tables).items() if name == table]
    pieces += [read_events(store, block, tables[table]) for block in event_blocks(store, transactions, tables).get(table, ())]
    return concat(pieces) if pieces else None


def _known(tables: Mapping[str, Table], name: str, file: str) -> Table:
    table = tables.get(name)
    if table is None:
        raise UnknownTable(
            f"{file} holds rows of table {name!r}, which nothing defines.",
            next_step="Restore the transactions of that writer from a copy of the store.",
        )
    return table
