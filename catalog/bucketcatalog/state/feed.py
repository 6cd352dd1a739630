"""The events of transactions for who asks for events and not for the state: in parts that any process reads, so many at a time.

What parts there are follows from what transactions say of themselves, so that nobody has to look into a segment to divide the work.
Events of transactions with few of a table are put into the order of their stamps. Those of one with more stand in its file and its
segments, sorted by key: to put them into their order, all of them would have to be held. They come as they stand there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..errors import UNREADABLE
from ..format.blocks import facts_of_blocks
from ..format.headers import BlockPlace
from ..format.held import held_in_block
from ..format.losses import OnDamage
from ..format.runs import SegmentReference
from ..format.transactions import Transaction
from ..log.blocks import read_blocks, side_by_side
from ..log.pruned import telling_of_prunes
from ..log.segments import read_index
from ..model.cuts import Ref, Stamp
from ..model.facts import Facts, concat, transaction_table
from ..model.paths import segment as segment_path
from ..parallel import in_order
from ..store.base import Store
from .keyed import OfKeys
from .plan import EventBlock
from .tail import fitting, inline_events, inline_facts

ORDERED_ROWS = 65_536
"""As many events of a table a transaction may have for them to be put into their order, and about as many are held at a time."""
_MOST_FILES = 4_096
"""As many transactions are held at a time, however few events they have."""
_BYTES_A_ROW = 512
"""Bytes that an event may have in its file; wider ones count as several."""
_AT_ONCE = 4
"""The most reads of blocks that are under way at once."""

Find = Callable[[Sequence[Ref]], Sequence[Transaction]]
"""Gives the transactions of these names, in their order."""


@dataclass(frozen=True)
class Stretch:
    """Blocks of a segment with a transaction's events, from number ``start`` on and before ``stop``."""

    stamp: Stamp
    segment: SegmentReference
    start: int
    stop: int

    @property
    def rows(self) -> int:
        """How many events it has if all blocks have as many; over all stretches of a segment exactly as many as that."""
        run = self.segment.run
        return run.rows * self.stop // run.blocks - run.rows * self.start // run.blocks

    @property
    def weight(self) -> int:
        """As how many ordinary events it counts."""
        return _weight(self.rows, self.segment.size * (self.stop - self.start) // self.segment.run.blocks)

    def divided(self) -> Iterator[Stretch]:
        """Stretches of about as many events as are held at a time, and of at least one block."""
        blocks = self.stop - self.start
        count = min(-(-self.weight // ORDERED_ROWS), blocks)
        for at in range(count):
            yield replace(self, start=self.start + at * blocks // count, stop=self.start + (at + 1) * blocks // count)


@dataclass(frozen=True)
class FeedPart:
    """Events of one transaction: those that its file carries, where any ``is_carried``, and those in ``stretches``.

    They are at most ``rows``, and take as much memory as ``weight`` ordinary ones. ``is_sorted``: they are put into their order; else they
    come block by block, of each in the order of keys.
    """

    ref: Ref
    is_carried: bool
    stretches: tuple[Stretch, ...]
    rows: int
    weight: int
    is_sorted: bool

    def joined(self, after: FeedPart) -> FeedPart | None:
        """The two in one where the other goes on in the same segment, else None."""
        if self.is_sorted or after.is_sorted:
            return None
        ours, theirs = self.stretches[-1], after.stretches[0]
        if (ours.stamp, ours.segment, ours.stop) != (theirs.stamp, theirs.segment, theirs.start):
            return None
        stretch, rows, weight = replace(ours, stop=theirs.stop), self.rows + after.rows, self.weight + after.weight
        return replace(self, stretches=(stretch,), rows=rows, weight=weight)


def feed_parts(transactions: Iterable[Transaction], keys: OfKeys) -> list[FeedPart]:
    """The parts in which the events of some keys can be read, in the order of the transactions; none where there are no such events.

    A transaction of many events is of several parts, by its segments and the number of their blocks: nothing is read.
    """
    return [part for transaction in transactions for part in _parts(transaction, keys)]


def _parts(transaction: Transaction, keys: OfKeys) -> Iterator[FeedPart]:
    table = keys.table.name
    actions = sum(action.table == table for action in transaction.actions)
    blocks = [place for place in transaction.blocks if place.header.table == table]
    segments = [segment for segment in transaction.segments if segment.run.table == table]
    in_file = _weight(actions + sum(place.header.rows for place in blocks), transaction.size)
    weight = in_file + sum(_weight(segment.run.rows, segment.size) for segment in segments)
    carried = actions + sum(place.header.rows for place in blocks if _may_hold(keys, place))
    wanted = [segment for segment in segments if keys.may_hold(segment.run.first_key, segment.run.last_key)]
    stretches = tuple(Stretch(transaction.stamp, segment, 0, segment.run.blocks) for segment in wanted)
    if weight <= ORDERED_ROWS:  # also where few of many are asked for: conditions change no order
        rows = carried + sum(segment.run.rows for segment in wanted)
        if rows:
            yield FeedPart(transaction.ref, carried > 0, stretches, rows, weight, is_sorted=True)
        return
    if carried:
        yield FeedPart(transaction.ref, True, (), carried, in_file, is_sorted=True)
    for whole in stretches:
        for stretch in whole.divided():
            yield FeedPart(transaction.ref, False, (stretch,), stretch.rows, stretch.weight, is_sorted=False)


def joined(parts: Iterable[FeedPart]) -> tuple[FeedPart, ...]:
    """The parts, those in one that follow each other in a segment: its index is read once."""
    found: list[FeedPart] = []
    for part in parts:
        both = found[-1].joined(part) if found else None
        if both is None:
            found.append(part)
        else:
            found[-1] = both
    return tuple(found)


@dataclass(frozen=True)
class Feed:
    """How parts are read: the events of some keys, with these storage columns (None: all of them)."""

    store: Store
    database: str
    keys: OfKeys
    columns: frozenset[str] | None
    on_damage: OnDamage

    def read(self, parts: Sequence[FeedPart], find: Find) -> Iterator[Facts]:
        """The events of the parts, in their order, so many at a time that they fit into memory however many there are.

        What cannot be read is an error, or is left out where ``on_damage`` notes it.
        """
        for portion in _portions(parts):
            with telling_of_prunes(self.store):
                if portion[0].is_sorted:
                    yield from self._sorted(portion, find)
                else:
                    yield from self._read([each for part in portion for each in self._in_segments(part)])
            self.on_damage.tell()

    def _sorted(self, parts: Sequence[FeedPart], find: Find) -> Iterator[Facts]:
        """The events of parts in the order of their stamps, at once."""
        table = self.keys.table
        transactions = find([part.ref for part in parts if part.is_carried])
        inline = inline_facts(inline_events(transactions).get(table.name, []), table, self.on_damage)
        blocks = [EventBlock(p, t.stamp) for t in transactions for p in t.blocks if p.header.table == table.name]
        each = [[block] for block in self._asked(blocks)] + [some for part in parts for some in self._in_segments(part)]
        found = ([] if inline is None else [self.keys.of(inline)]) + list(self._read(each))
        facts = concat(found)
        if len(facts):
            yield facts.take(pa.array(np.argsort(facts.stamps(), kind="stable")))

    def _in_segments(self, part: FeedPart) -> Iterator[list[EventBlock]]:
        """The blocks of its stretches that can hold what is asked for, those together that are read at once."""
        for stretch in part.stretches:
            of, segment = stretch.stamp, stretch.segment
            try:
                places = read_index(self.store, self.database, segment)[stretch.start : stretch.stop]
            except UNREADABLE as error:
                self.on_damage.lose_segment(segment_path(segment.writer, self.database, segment.uuid), error, segment)
                continue
            blocks = self._asked([EventBlock(place, of, segment.first_sequence) for place in places])
            for together in side_by_side([block.place for block in blocks], self.keys.hull):
                yield [EventBlock(place, of, segment.first_sequence) for place in together]

    def _asked(self, blocks: Sequence[EventBlock]) -> Sequence[EventBlock]:
        """The blocks that can hold what is asked for."""
        return fitting([each for each in blocks if _may_hold(self.keys, each.place)], self.keys.table, self.on_damage)

    def _read(self, blocks: Sequence[Sequence[EventBlock]]) -> Iterator[Facts]:
        ahead = min(_AT_ONCE, self.store.concurrency // pa.cpu_count())
        for found in in_order(self._facts, blocks, threads=ahead):
            yield from found

    def _facts(self, together: Sequence[EventBlock]) -> list[Facts]:
        """What is asked for of blocks of one segment, or of one block; without those that cannot be read."""
        first = together[0]
        try:
            places = [block.place for block in together]
            read = read_blocks(self.store, places, self.keys.table, self.columns, self.keys.hull)
            return [self.keys.of(facts_of_blocks(read, transaction_table([first.stamp]), first.first_sequence))]
        except UNREADABLE as error:
            if len(together) > 1 and self.on_damage.reads_on:
                return [facts for block in together for facts in self._facts([block])]
            self.on_damage.add(first.place.name, error, [held_in_block(first.place.header, self.keys.table)])
            return []


def _may_hold(keys: OfKeys, place: BlockPlace) -> bool:
    return keys.may_hold(place.header.first_key, place.header.last_key)


def _weight(rows: int, size: int) -> int:
    """The rows, or as many as the bytes would make of ordinary ones."""
    return max(rows, size // _BYTES_A_ROW)


def _portions(parts: Iterable[FeedPart]) -> Iterator[list[FeedPart]]:
    """Parts that are read at once: about as many events as are held at a time, or one part that is not to be sorted."""
    portion: list[FeedPart] = []
    weight = 0
    for part in parts:
        is_full = weight + part.weight > ORDERED_ROWS or len(portion) == _MOST_FILES
        if portion and (is_full or not (part.is_sorted and portion[0].is_sorted)):
            yield portion
            portion, weight = [], 0
        portion.append(part)
        weight += part.weight
    if portion:
        yield portion
