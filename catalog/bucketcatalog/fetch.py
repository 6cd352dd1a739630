"""Ranges of segments and transactions from the store: indexes and blocks, each with one request and checked before it is decoded."""

from __future__ import annotations

from collections.abc import Callable, Collection

from .codec.blocks import decode_block
from .codec.segments import BlockPlace, SegmentReference, check_block, decode_index, held_by_block, held_by_segment
from .errors import MissingObject, ObjectNotFound
from .facts import Facts
from .keys import EVERYTHING, KeyRange
from .paths import segment as segment_path
from .store.base import Store
from .tables import Table


def read_index(store: Store, database: str, reference: SegmentReference) -> tuple[BlockPlace, ...]:
    """The places of a segment's blocks: one range read, checked against the reference's digest."""
    name = segment_path(reference.writer, database, reference.uuid)
    sealed = _range(store, name, reference.index_offset, reference.index_length, lambda: held_by_segment(reference))
    return decode_index(sealed, name, reference)


def read_block(
    store: Store, place: BlockPlace, table: Table, columns: Collection[str] | None = None, keys: KeyRange = EVERYTHING
) -> Facts:
    """The facts of one block, or those of ``keys`` and ``columns`` alone: one range read, checked against the block's place."""
    data = _range(store, place.name, place.offset, place.length, lambda: held_by_block(place))
    check_block(data, place)
    return decode_block(data, table, place.name, columns, keys)


def _range(store: Store, name: str, offset: int, length: int, held: Callable[[], str]) -> bytes:
    try:
        return store.get_range(name, offset, length)
    except ObjectNotFound:
        raise MissingObject(
            f"{name} is gone. It held {held()}.", next_step="Restore the file from a copy of the store."
        ) from None
