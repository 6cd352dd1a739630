"""The tail: the events of transactions that no checkpoint covers, by table.

Events that transactions carry one by one are decoded into facts at once. Those in blocks are only located: they are read by range, by
whoever needs their keys, so that what a reader holds grows with the number of blocks and not with that of their rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UNREADABLE, IncompatibleTable, can_be_set_aside
from ..format.blocks import facts_of_blocks
from ..format.checkpoints import Checkpoint
from ..format.held import held_in_block, revision
from ..format.losses import STRICT, OnDamage
from ..format.transactions import Transaction, event_of
from ..log.blocks import Blocks
from ..log.pruned import telling_of_prunes
from ..log.segments import read_index
from ..log.witnesses import definitions_within
from ..model.events import Placed, facts_of_events
from ..model.facts import Facts, SortedFacts, concat, transaction_table
from ..model.keys import EVERYTHING, KeyRange
from ..model.misfits import Misfit, misfit_at
from ..model.paths import segment as segment_path
from ..model.paths import transaction as transaction_path
from ..model.tables import Table
from ..store.base import Store
from ..wording import either, how_to_set_aside
from .plan import EventBlock

InlineEvent = tuple[Transaction, int, Any]
"""An event that a transaction carries, its number in there, and its message."""


def inline_events(transactions: Iterable[Transaction]) -> dict[str, list[InlineEvent]]:
    """Every event that the transactions carry one by one, by table, undecoded."""
    found: dict[str, list[InlineEvent]] = {}
    for transaction in transactions:
        for sequence, action in enumerate(transaction.actions):
            found.setdefault(action.table, []).append((transaction, sequence, action))
    return found


def inline_facts(actions: Sequence[InlineEvent], table: Table, on_damage: OnDamage = STRICT) -> Facts | None:
    """The facts of events of one table, in no particular order; None where there are none."""
    if table.misfits:
        actions = [action for action in actions if _fits(action[0], table, on_damage)]
    if on_damage.reads_on:
        actions = [action for action in actions if _is_readable(action, table, on_damage)]
    if not actions:
        return None
    stamps = transaction_table({transaction.stamp for transaction, _, _ in actions})
    position = {uuid: index for index, uuid in enumerate(stamps.column("uuid").to_pylist())}
    names = {transaction.uuid: _file_name(transaction) for transaction, _, _ in actions}
    placed: list[Placed] = [
        (position[transaction.uuid], sequence, event_of(action, table, names[transaction.uuid]))
        for transaction, sequence, action in actions
    ]
    return facts_of_events(table, placed, stamps)


def _is_readable(action: InlineEvent, table: Table, on_damage: OnDamage) -> bool:
    """Whether an event can be decoded; if not, it is noted as lost."""
    transaction, _, message = action
    try:
        event_of(message, table, _file_name(transaction))
    except UNREADABLE as error:
        on_damage.add(_file_name(transaction), error, [revision(transaction.writer, transaction.revision)])
        return False
    return True


def _fits(transaction: Transaction, table: Table, on_damage: OnDamage) -> bool:
    """Whether the transaction's events were written by a definition that the table has; if not, they are noted as lost."""
    misfit = misfit_at(table.misfits, transaction.stamp)
    if misfit is not None:
        name = _file_name(transaction)
        on_damage.add(name, misfitting(name, table.name, misfit), [revision(transaction.writer, transaction.revision)])
    return misfit is None


def fitting(events: Sequence[EventBlock], table: Table, on_damage: OnDamage = STRICT) -> Sequence[EventBlock]:
    """The blocks whose rows were written by a definition that the table has; the others are noted as lost."""
    if not table.misfits:
        return events
    left = []
    for event in events:
        misfit = misfit_at(table.misfits, event.stamp)
        if misfit is None:
            left.append(event)
        else:
            name = event.place.name
            on_damage.add(name, misfitting(name, table.name, misfit), [held_in_block(event.place.header)])
    return left


def unknown_misfit(checkpoint: Checkpoint, table: Table, left_out: Mapping[bytes, str]) -> Misfit | None:
    """A misfit of the table whose definition the checkpoint has and did not leave out itself: it has folded rows by it."""
    try:
        known = definitions_within(checkpoint).left_out(table.name)
    except (IncompatibleTable, KeyError):
        known = {}
    for definition in checkpoint.definitions:
        said = definition.table.definition
        if definition.table.name == table.name and said in left_out and said not in known:
            decided_by = next((misfit.decided_by for misfit in table.misfits), "")
            return Misfit(definition.writer, definition.first, left_out[said], decided_by)
    return None


def misfitting(name: str, table: str, misfit: Misfit) -> IncompatibleTable:
    """That a file holds rows which were written by a definition that the table has not."""
    why, aside, other = misfit.why, f": {how_to_set_aside(name)}" if can_be_set_aside(name) else "", ""
    if misfit.decided_by:
        why = f"{why} It counts as {misfit.decided_by} has defined it first."
        other = f" Or, where that one is wrong: {how_to_set_aside(misfit.decided_by, force=True)}."
    return IncompatibleTable(
        f"{name} holds rows of table {table!r} by a definition of writer {misfit.writer!r} that does not fit it: {why}",
        next_step=f"Let a maintainer set the file aside{aside}.{other} Or read without what does not fit: "
        + either('ignore_corruption=True, in Spark option("ignoreCorruption", "true").', "--ignore-corruption."),
    )


def _file_name(transaction: Transaction) -> str:
    return transaction_path(transaction.writer, transaction.database, transaction.head)


def event_blocks(store: Store, transactions: Iterable[Transaction], on_damage: OnDamage = STRICT) -> dict[str, list[EventBlock]]:
    """The blocks of events that the transactions hold or refer to, by table."""
    found: dict[str, list[EventBlock]] = {}
    for transaction in transactions:
        for block in _blocks(store, transaction, on_damage):
            found.setdefault(block.place.header.table, []).append(block)
    return found


def _blocks(store: Store, transaction: Transaction, on_damage: OnDamage) -> Iterator[EventBlock]:
    for place in transaction.blocks:
        yield EventBlock(place, transaction.stamp)
    for segment in transaction.segments:
        try:
            with telling_of_prunes(store):  # the snapshot may have been taken long ago
                places = read_index(store, transaction.database, segment)
        except UNREADABLE as error:
            on_damage.lose_segment(segment_path(segment.writer, transaction.database, segment.uuid), error, segment)
            continue
        for place in places:
            yield EventBlock(place, transaction.stamp, segment.first_sequence)


def read_events(
    blocks: Blocks,
    block: EventBlock,
    table: Table,
    columns: Collection[str] | None = None,
    keys: KeyRange = EVERYTHING,
    *,
    look_up: bool = False,
) -> SortedFacts:
    """The facts of a block of events, or those of ``keys`` and ``columns`` alone: at most one range read."""
    made = _Placed(block.stamp, block.first_sequence)
    return blocks.shared(block.place, table, columns, keys, look_up=look_up, made=made)


@dataclass(frozen=True, slots=True)
class _Placed:
    """Events of a block as those of a transaction, from a number on: several transactions may refer to one block."""

    stamp: tuple[int, str, int, bytes]
    first_sequence: int

    def __call__(self, facts: Facts) -> Facts:
        return facts_of_blocks(facts, transaction_table([self.stamp]), self.first_sequence)


def every_event(store: Store, transactions: Sequence[Transaction], table: Table, on_damage: OnDamage = STRICT) -> Facts | None:
    """The facts of all events of one table in the transactions, or None."""
    inline = inline_facts(inline_events(transactions).get(table.name, []), table, on_damage)
    parts = [] if inline is None else [inline]
    blocks = Blocks(store)
    for block in fitting(event_blocks(store, transactions, on_damage).get(table.name, ()), table, on_damage):
        try:
            parts.append(read_events(blocks, block, table).facts)
        except UNREADABLE as error:
            on_damage.add(block.place.name, error, [held_in_block(block.place.header, table)])
    on_damage.tell()
    return concat(parts) if parts else None
