"""The tail as facts: the events of transactions that no checkpoint covers, by table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from ..codec.blocks import decode_block, facts_of_blocks
from ..codec.segments import SegmentReference, read_block, read_index
from ..codec.transactions import Transaction, event_of
from ..errors import UnknownTable
from ..events import Placed, facts_of_events
from ..facts import Facts, concat, transaction_table
from ..paths import transaction as transaction_path
from ..store.base import Store
from ..tables import Table


def tail_facts(store: Store, transactions: Sequence[Transaction], tables: Mapping[str, Table]) -> dict[str, Facts]:
    """The facts of every event in the transactions, by table, in no particular order."""
    stamps = transaction_table(t.stamp for t in transactions)
    position = {uuid: index for index, uuid in enumerate(stamps.column("uuid").to_pylist())}
    placed: dict[str, list[Placed]] = {}
    pieces: dict[str, list[Facts]] = {}
    for transaction in transactions:
        name = _name(transaction)
        for sequence, action in enumerate(transaction.actions):
            event = event_of(action, _known(tables, action.table, name), name)
            placed.setdefault(action.table, []).append((position[transaction.uuid], sequence, event))
        for table, facts in _columnar(store, transaction, tables):
            pieces.setdefault(table, []).append(facts)
    for table, events in placed.items():
        pieces.setdefault(table, []).append(facts_of_events(tables[table], events, stamps))
    return {table: concat(facts) for table, facts in pieces.items()}


def _columnar(store: Store, transaction: Transaction, tables: Mapping[str, Table]) -> Iterable[tuple[str, Facts]]:
    name = _name(transaction)
    if not transaction.blocks and not transaction.segments:
        return
    own = transaction_table([transaction.stamp])
    for block in transaction.blocks:
        table = _known(tables, block.table, name)
        yield block.table, facts_of_blocks(decode_block(block.data, table, name), own)
    for segment in transaction.segments:
        yield from _segment_events(store, transaction, segment, own, tables)


def _segment_events(
    store: Store, transaction: Transaction, segment: SegmentReference, own: pa.Table, tables: Mapping[str, Table]
) -> Iterable[tuple[str, Facts]]:
    for place in read_index(store, transaction.database, segment):
        table = _known(tables, place.header.table, place.name)
        yield table.name, facts_of_blocks(read_block(store, place, table), own)


def _name(transaction: Transaction) -> str:
    return transaction_path(transaction.writer, transaction.database, transaction.revision, transaction.uuid)


def _known(tables: Mapping[str, Table], name: str, file: str) -> Table:
    table = tables.get(name)
    if table is None:
        raise UnknownTable(f"{file} holds rows of table {name!r}, which nothing defines.", next_step="Verify the catalog.")
    return table
