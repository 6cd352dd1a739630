"""Reading a slice: blocks and tail in, the state of the slice's keys out, in key order.

The overlay, of higher levels, other checkpoints and the tail, is folded with the base's rows of the same keys; all other rows
pass as they are, for the base is folded already. Reading what is live reads the base's blocks of live versions alone, unless a PUT lies
over it that is not newer than what an overlapping block of ended versions or stubs holds: only such a PUT can be ended by, or updated by,
what waits there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UNREADABLE
from ..format.headers import TOMBSTONES, BlockClass, BlockPlace
from ..format.held import held_in_block
from ..log.blocks import Blocks, read_block, read_blocks, side_by_side
from ..log.pruned import telling_of_prunes
from ..model.arrays import Mask, one_chunk
from ..model.facts import FACT_COLUMNS, NEVER, NO_STAMP, NO_TRANSACTIONS, Facts, Kind, SortedFacts, concat
from ..model.keys import KeyRange, encode_keys, shared_columns, span, without_leading
from ..model.render import with_defaults
from ..model.tables import Table
from ..parallel import in_order
from .indexes import holds_one
from .overlay import Arranged, Overlay, apart, apply, arranged, split, under
from .plan import Part, Slice, for_keys, narrowed
from .tail import read_events

_AT_ONCE = 4
"""The most blocks of a slice that are read at once."""


def read_slice(blocks: Blocks, table: Table, slice_: Slice, part: Part, columns: Collection[str] | None = None) -> Facts:
    """``read_batches`` in one."""
    batches = list(read_batches(blocks, table, slice_, Selection(part, columns)))
    return concat(batches) if batches else Facts(NO_TRANSACTIONS, empty_rows(table))


def read_arranged(blocks: Blocks, table: Table, slice_: Slice) -> Arranged:
    """``read_slice`` of everything as rows of what was read, defaults not filled in: who parts them by class copies each once."""
    if slice_.settled or blocks.on_damage.reads_on:
        return Arranged(read_slice(blocks, table, slice_, Part.EVERYTHING))
    with telling_of_prunes(blocks.store):
        overlay = _overlay(blocks, table, slice_, None, Part.EVERYTHING)
        places = _places(slice_, Part.EVERYTHING, overlay)
        parted = _split(overlay, places, table, Part.EVERYTHING) if overlay is not None else None
        return arranged(_in_order(list(_read(blocks, table, slice_, places, None)), places, table), parted, table)


@dataclass(frozen=True)
class Selection:
    """What is wanted of the state rows of a slice: those of ``part``, with ``columns`` by their storage names, without these all.

    ``meets`` tells which rows meet the reader's conditions; without it all are wanted. ``by_key``: in the order of keys and stamps. Who
    counts and sums does without it.
    """

    part: Part
    columns: Collection[str] | None = None
    meets: Callable[[Facts], pa.Array] | None = None
    by_key: bool = True

    def of(self, facts: Facts) -> Facts:
        """The facts that meet the conditions."""
        return facts if self.meets is None or not len(facts) else facts.filter(self.meets(facts))


def read_batches(blocks: Blocks, table: Table, slice_: Slice, selection: Selection) -> Iterator[Facts]:
    """The state rows of a slice that are selected, a few thousand at a time, by key and stamp; of ``EVERYTHING`` the live ones first.

    A damaged block is an error, or where ``blocks.on_damage`` notes it all rows of its key range are left out; of events that are damaged
    these alone.
    """
    if not blocks.on_damage.reads_on:
        with telling_of_prunes(blocks.store):
            yield from _batches(blocks, table, slice_, selection)
        return
    try:
        yield from list(_batches(blocks, table, slice_, selection))
    except UNREADABLE:
        ranges, events = _unreadable(blocks, table, slice_)
        parts = [replace(slice_, events=tuple(event for event in slice_.events if event.place not in events))]
        for lost in ranges:
            parts = [p for whole in parts for keys in whole.keys.without(lost) if (p := narrowed(whole, keys)) is not None]
        for part_left in parts:
            yield from _batches(blocks, table, part_left, selection)


def _unreadable(blocks: Blocks, table: Table, slice_: Slice) -> tuple[list[KeyRange], set[BlockPlace]]:
    """The key ranges of the slice's blocks that cannot be read, and those that are of events, each noted as lost."""
    ranges: list[KeyRange] = []
    events: set[BlockPlace] = set()
    for place in (*slice_.live, *slice_.rest, *slice_.upper, *(event.place for event in slice_.events)):
        try:
            read_block(blocks.store, place, table)
        except UNREADABLE as error:
            if place.header.block_class is BlockClass.EVENTS:
                events.add(place)
            else:
                ranges.append(KeyRange.closed(place.header.first_key, place.header.last_key))
                blocks.on_damage.lose_keys(table.name, ranges[-1])
            blocks.on_damage.add(place.name, error, [held_in_block(place.header, table)])
            blocks.on_damage.tell()
    return ranges, events


def _batches(blocks: Blocks, table: Table, slice_: Slice, selection: Selection) -> Iterator[Facts]:
    part, columns = selection.part, selection.columns
    if slice_.settled:
        yield from map(selection.of, _settled(blocks, table, slice_, part, columns))
        return
    plain = None if columns is None else {*columns, *_of_key(table)}
    needed = None if plain is None else {*plain, *FACT_COLUMNS}
    overlay = _overlay(blocks, table, slice_, needed, part)
    places = _places(slice_, part, overlay)
    parted = _split(overlay, places, table, part) if overlay is not None else None
    if slice_.unmatched:
        places = _without_unmatched(slice_, places, parted, table)
    if parted is not None and not len(parted.rest):  # then a row is as it stands in its block, and needs no stamps
        parted = replace(parted, known=_met(_selected(parted.known, plain), selection))
        base = _in_order([selection.of(facts) for facts in _read(blocks, table, slice_, places, plain)], places, table)
        yield from _over(base, parted, table, selection)
        return
    base = _in_order(list(_read(blocks, table, slice_, places, needed)), places, table)
    for state in _over(base, parted, table, selection):
        yield selection.of(state if parted is None else with_defaults(state, table, plain))


def _met(facts: SortedFacts, selection: Selection) -> SortedFacts:
    return facts if selection.meets is None or not len(facts) else facts.filter(np.asarray(selection.meets(facts.facts)))


def _over(base: Facts, parted: Overlay | None, table: Table, selection: Selection) -> Iterator[Facts]:
    if parted is None or selection.by_key:
        yield apply(base, parted, table, selection.part)
    else:
        yield from apart(base, parted, table, selection.part)


def _of_key(table: Table) -> set[str]:
    return {column.field_name for column in table.key_columns}


def _without_unmatched(slice_: Slice, places: Sequence[BlockPlace], parted: Overlay | None, table: Table) -> list[BlockPlace]:
    """The blocks without those that hold neither a row that is asked for nor a key that has to be folded."""
    folded = pa.array([], pa.binary()) if parted is None else parted.rest.keyed(table).keys
    return [place for place in places if place not in slice_.unmatched or holds_one(place, folded)]


def _split(overlay: SortedFacts, places: Sequence[BlockPlace], table: Table, part: Part) -> Overlay:
    """The overlay of these blocks, by as much of the key as tells their rows apart: often a slice is of one owner and bucket."""
    first = min([overlay.keys[0].as_py(), *(place.header.first_key for place in places)])
    last = max([overlay.keys[-1].as_py(), *(place.header.last_key for place in places)])
    by = without_leading(table, shared_columns(table, first, last))
    return split(overlay.keyed(by), by, part, max((place.header.newest for place in places), default=-1))


def _selected(facts: SortedFacts, columns: Collection[str] | None) -> SortedFacts:
    """The facts with these columns of theirs alone."""
    names = [name for name in facts.facts.rows.column_names if columns is None or name in columns]
    return replace(facts, facts=replace(facts.facts, rows=facts.facts.rows.select(names)))


def _settled(blocks: Blocks, table: Table, slice_: Slice, part: Part, columns: Collection[str] | None) -> Iterator[Facts]:
    """The rows of a slice without an overlay: tombstones of one class after the other's are put in order, all else is so already."""
    places = [place for place in (*slice_.live, *slice_.rest) if holds_rows_of(place, part)]
    mixed = part is Part.TOMBSTONES and len({place.header.block_class for place in places}) > 1
    keys = {column.field_name for column in table.key_columns}
    needed = None if columns is None else {*columns, *(keys if mixed or slice_.wanted is not None else ())}
    read = _read(blocks, table, slice_, places, needed)
    if mixed:
        yield _in_order(list(read), places, table)
    else:
        yield from read


def _read(
    blocks: Blocks, table: Table, slice_: Slice, places: Sequence[BlockPlace], needed: Collection[str] | None
) -> Iterator[Facts]:
    """What is wanted of each of the blocks, in their order.

    Where requests take their time the next blocks are fetched while one is decoded, or waits to be taken: a few, since as many slices are
    read as there are cores.
    """

    def wanted(together: Sequence[BlockPlace]) -> Facts:
        if slice_.look_up:
            facts = blocks.looked_up(together[0], table, needed, slice_.keys)
        else:
            facts = read_blocks(blocks.store, together, table, needed, slice_.keys)
        return _wanted(facts, table, slice_)

    ahead = min(_AT_ONCE, blocks.store.concurrency // pa.cpu_count())
    is_each = slice_.look_up or ahead > 1
    return in_order(wanted, [[place] for place in places] if is_each else list(side_by_side(places, slice_.keys)), threads=ahead)


def _in_order(read: Sequence[Facts], places: Collection[BlockPlace], table: Table) -> Facts:
    """What was read of some blocks, by key: each class is a run of its own."""
    joined = concat(read) if read else Facts(NO_TRANSACTIONS, empty_rows(table))
    return SortedFacts.of(joined, table).facts if len({place.header.block_class for place in places}) > 1 else joined


def touched_keys(blocks: Blocks, table: Table, slice_: Slice) -> pa.Array:
    """The encoded keys of a slice that its overlay names, sorted and distinct."""
    overlay = _overlay(blocks, table, slice_, {column.field_name for column in table.key_columns}, Part.EVERYTHING)
    return pc.unique(overlay.keys) if overlay is not None else pa.array([], pa.binary())


def read_touched(blocks: Blocks, table: Table, slice_: Slice, columns: Collection[str]) -> tuple[Facts, Facts]:
    """The live rows of the keys that the overlay names, as the base has them and as they are: both and their difference in one pass.

    The overlay is read once, and of the base nothing but the blocks that may hold those keys. Damage is an error.
    """
    plain = {*columns, *_of_key(table)}
    nothing = Facts(NO_TRANSACTIONS, empty_rows(table))
    with telling_of_prunes(blocks.store):
        overlay = _overlay(blocks, table, slice_, {*plain, *FACT_COLUMNS}, Part.LIVE)
        if overlay is None:
            return nothing, nothing
        (asked,) = for_keys([slice_], pc.unique(overlay.keys))
        places = _places(asked, Part.LIVE, overlay)
        parted = _split(overlay, [*asked.live, *places], table, Part.LIVE)
        live = list(_read(blocks, table, replace(asked, wanted=None), asked.live, plain))
        before = under(concat(live), parted) if live else nothing
        if not len(parted.rest):
            return before, _selected(parted.known, plain).facts
        folded = _in_order(list(_read(blocks, table, asked, places, {*plain, *FACT_COLUMNS})), places, table)
        return before, with_defaults(apply(folded, parted, table, Part.LIVE), table, plain)


def ending_keys(blocks: Blocks, table: Table, slice_: Slice, before: int | None) -> tuple[pa.Array, pa.Array]:
    """The encoded keys of a slice that its overlay names, and those of them that may have a version for it that ended before a time.

    Both are sorted and distinct. The overlay makes a version end before a commit time only if it holds that version, or what
    ends it, with a stamp from before that time. Without a time any key may have one.
    """
    overlay = overlay_of(blocks, table, slice_)
    if overlay is None:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    return pc.unique(overlay.keys), pc.unique(overlay.keys.filter(pa.array(may_end(overlay, before))))


def overlay_of(blocks: Blocks, table: Table, slice_: Slice) -> SortedFacts | None:
    """What lies over the base of a slice: what it says of keys and their versions, without their rows."""
    columns = {*FACT_COLUMNS, *(column.field_name for column in table.key_columns)}
    return _overlay(blocks, table, slice_, columns, Part.EVERYTHING)


def may_end(overlay: SortedFacts, before: int | None) -> Mask:
    """Which facts of an overlay are such that a version may have ended by them before a time; without one all are."""
    facts = overlay.facts
    times = np.append(np.asarray(one_chunk(facts.transactions.column("commit_time"))), NEVER)  # the last is that of no stamp
    own = np.where(facts.numbers("_kind") == Kind.NAMED, facts.numbers("_end_txn", NO_STAMP), facts.numbers("_txn"))
    return times[own] < before if before is not None else np.ones(len(overlay), dtype=bool)


def _wanted(facts: Facts, table: Table, slice_: Slice) -> Facts:
    if slice_.wanted is None or slice_.is_of_one_key:
        return facts
    return facts.filter(pc.is_in(one_chunk(encode_keys(table, facts.rows)), value_set=slice_.wanted))


def _overlay(blocks: Blocks, table: Table, slice_: Slice, needed: Collection[str] | None, part: Part) -> SortedFacts | None:
    """The overlay, of the keys asked for: for ``LIVE`` without versions that a later PUT over them has ended."""
    parts = [read_events(blocks, block, table, needed, slice_.keys, look_up=slice_.look_up) for block in slice_.events]
    if slice_.tail is not None:
        parts.append(_selected(slice_.tail, needed))
    for place in sorted(slice_.upper, key=lambda place: place.header.newest, reverse=True):
        above = parts if part is Part.LIVE and place.header.block_class is BlockClass.LIVE else []
        parts.append(_without_ended(blocks, table, slice_, place, needed, above))
    parts = [part if slice_.wanted is None or slice_.is_of_one_key else part.of_keys(slice_.wanted) for part in parts]
    parts = [part for part in parts if len(part)]
    if not parts:
        return None
    joined = SortedFacts.joined(parts)
    return replace(joined, facts=with_defaults(joined.facts, table, needed))


def _without_ended(
    blocks: Blocks, table: Table, slice_: Slice, place: BlockPlace, needed: Collection[str] | None, above: Sequence[SortedFacts]
) -> SortedFacts:
    """The facts of a block of live versions but for those over whose key a PUT from ``above`` lies that is later than the whole block.

    Where the same objects are overwritten again and again that is all of them, and then no more than their keys are unpacked.
    """
    later = [part.keys.filter(pa.array(_put_times(part) > place.header.newest)) for part in above]
    if not any(len(keys) for keys in later):
        return blocks.shared(place, table, needed, slice_.keys, look_up=slice_.look_up)
    of_key = [column.field_name for column in table.key_columns]
    alone = blocks.shared(place, table, of_key, slice_.keys, again=True, look_up=slice_.look_up)
    left = ~np.asarray(pc.is_in(alone.keys, value_set=pa.concat_arrays(later)))
    if not left.any():
        return alone.filter(left)
    facts = blocks.shared(place, table, needed, slice_.keys, look_up=slice_.look_up)
    return facts if left.all() else facts.filter(left)


def places_read(slice_: Slice, part: Part) -> tuple[BlockPlace, ...]:
    """The blocks of checkpoints that a slice is read from; which of them can be left out is sometimes known only when others are read."""
    if slice_.settled:
        return tuple(place for place in (*slice_.live, *slice_.rest) if holds_rows_of(place, part))
    return (*slice_.live, *(() if part is Part.LIVE else slice_.rest), *slice_.upper)


def holds_rows_of(place: BlockPlace, part: Part) -> bool:
    """Whether a block of the base holds rows of the part."""
    wanted = {Part.LIVE: frozenset({BlockClass.LIVE}), Part.TOMBSTONES: TOMBSTONES}.get(part)
    return wanted is None or place.header.block_class in wanted


def _places(slice_: Slice, part: Part, overlay: SortedFacts | None) -> list[BlockPlace]:
    """The blocks of the base that can say something about what is asked for.

    Those of ended versions and stubs concern a live row only if a PUT lies over them that is not newer than what they hold. Where keys are
    asked for, blocks that are all older than the PUTs over their keys concern none.
    """
    if part is not Part.LIVE:
        return [*slice_.live, *slice_.rest]
    if overlay is None:
        return [*slice_.live]
    puts = _put_times(overlay)
    rest = [p for p in slice_.rest if _oldest_put(overlay, puts, p) <= p.header.newest]
    if slice_.wanted is None:
        return [*slice_.live, *rest]
    newest = _newest_puts(overlay, puts, slice_.wanted)
    return [p for p in (*slice_.live, *rest) if (newest[slice(*_span(slice_.wanted, p))] <= p.header.newest).any()]


def _put_times(overlay: SortedFacts) -> npt.NDArray[np.int64]:
    """The commit times of the overlay's PUTs, -1 for other facts."""
    puts = overlay.facts.numbers("_kind") == Kind.VERSION
    if not puts.any():
        return np.full(len(overlay), -1, dtype=np.int64)
    commit_time = np.asarray(one_chunk(overlay.facts.transactions.column("commit_time")))
    return np.where(puts, commit_time[np.where(puts, overlay.facts.numbers("_txn"), 0)], -1)


def _oldest_put(overlay: SortedFacts, puts: npt.NDArray[np.int64], place: BlockPlace) -> int:
    """The commit time of the oldest PUT of a key of the block."""
    own = puts[slice(*_span(overlay.keys, place))]
    return int(own[own >= 0].min(initial=np.iinfo(np.int64).max))


def _newest_puts(overlay: SortedFacts, puts: npt.NDArray[np.int64], keys: pa.Array) -> npt.NDArray[np.int64]:
    """For each of the keys the commit time of its newest PUT, -1 where there is none over the base."""
    newest = np.full(len(keys), -1, dtype=np.int64)
    np.maximum.at(newest, np.asarray(pc.index_in(overlay.keys, value_set=keys)), puts)
    return newest


def _span(keys: pa.Array, place: BlockPlace) -> tuple[int, int]:
    return span(keys, KeyRange.closed(place.header.first_key, place.header.last_key))


def empty_rows(table: Table) -> pa.Table:
    """No rows, with the key's columns."""
    return pa.table({c.field_name: pa.array([], c.storage_type) for c in table.key_columns})
