"""Blocks and the events of transactions: whether they can be decoded, and whether they are what their headers say."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import BucketCatalogError, CorruptionError, UnsupportedFormat
from ...format.blocks import BlockClass, block_header
from ...format.evolution import Definitions
from ...format.losses import held_in_block
from ...format.segments import BlockPlace
from ...log.segments import read_block
from ...model.arrays import one_chunk
from ...model.facts import Facts, Kind
from ...model.keydecoding import shown_key
from ...model.keys import encode_keys
from ...model.tables import Table
from ...state import orders, sums
from ...store.base import Store
from .findings import Finding, unreadable


def check_block(store: Store, place: BlockPlace, definitions: Definitions) -> Iterator[Finding]:
    """Read a block and compare its rows with what its header says of them."""
    name, held = place.header.table, held_in_block(place)
    owner, is_beside, _ = name.partition("#")
    if owner not in definitions:
        yield Finding("UNDEFINED_TABLE", place.name, f"It holds rows of table {name!r}, which nothing defines.", (held,))
        return
    if definitions.contradiction(owner) is not None:
        return  # which is a finding of its own
    table = _shape_beside(definitions[owner], name) if is_beside else definitions[owner]
    if table is None:
        return  # sums or orders that nobody declares any more, and nobody reads
    held = held_in_block(place, table)
    try:
        facts = read_block(store, place, table)
        problems = list(_problems(facts, place, table, stamped=not is_beside))
    except (CorruptionError, UnsupportedFormat) as error:
        yield unreadable(error, "BLOCK", place.name, held)
        return
    except (BucketCatalogError, pa.ArrowException, ValueError, IndexError) as error:
        yield Finding("WRONG_BLOCK", place.name, f"Its rows are none of table {table.name!r}: {error}.", (held,))
        return
    for problem in problems:
        yield Finding("WRONG_BLOCK", place.name, f"A block {problem}.", (held,))


def _shape_beside(table: Table, name: str) -> Table | None:
    """The table of blocks of that name beside those of a table's rows; None where nothing of the kind is declared."""
    return sums.shape_of_blocks(table, name) or orders.shape_of_blocks(table, name)


def _problems(facts: Facts, place: BlockPlace, table: Table, *, stamped: bool) -> Iterator[str]:
    """What a block's rows are that they should not be, each as the end of a sentence about the block. ``stamped``: they have stamps."""
    said = place.header
    found = block_header(facts, table, said.block_class)
    for field in ("rows", "first_key", "last_key", "oldest", "newest", "expectations", "late_updates"):
        is_, should = getattr(found, field), getattr(said, field)
        if is_ != should:
            show = partial(shown_key, table) if field.endswith("_key") else repr
            yield f"says {field} {show(should)} in its header and holds {show(is_)}"
    keys = one_chunk(encode_keys(table, facts.rows))
    if len(keys) > 1:
        if pc.any(pc.less(keys[1:], keys[:-1])).as_py():
            yield "has rows that are not in the order of their keys"
        elif stamped and (_out_of_order(facts, said.block_class) & np.asarray(pc.equal(keys[1:], keys[:-1]))).any():
            yield "has rows of one key that are not in the order of their stamps"
    strange = _strange(facts, said.block_class)
    if strange.any():
        yield f"of class {said.block_class.name.lower()} has {int(strange.sum())} rows that are not"


def _out_of_order(facts: Facts, block_class: BlockClass) -> npt.NDArray[np.bool_]:
    """For each row but the first whether it should not come after the one before it, were they of one key."""
    if block_class is BlockClass.EVENTS:
        return np.zeros(len(facts) - 1, dtype=bool)  # numbers of events without a stamp of their own stand elsewhere
    named = facts.numbers("_kind") == Kind.NAMED
    stamps = facts.stamps()
    wrong: npt.NDArray[np.bool_] = (named[:-1] & ~named[1:]) | (~named[:-1] & ~named[1:] & (stamps[:-1] >= stamps[1:]))
    return wrong


def _strange(facts: Facts, block_class: BlockClass) -> npt.NDArray[np.bool_]:
    """Which rows do not belong to the class."""
    if block_class is BlockClass.EVENTS:
        return np.zeros(len(facts), dtype=bool)
    is_version = facts.numbers("_kind") == Kind.VERSION
    ended = facts.numbers("_end_kind") > 0
    purged = ended & (facts.numbers("_purged") > 0)
    belongs: npt.NDArray[np.bool_] = {
        BlockClass.LIVE: is_version & ~ended,
        BlockClass.ENDED: is_version & ended & ~purged,
        BlockClass.SUPERSEDED: is_version & ended & ~purged,
        BlockClass.STUBS: ~is_version | purged,
    }[block_class]
    return ~belongs
