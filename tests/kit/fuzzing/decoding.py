"""The forged files decoded one by one, and every block in them, without any look at the log: what costs a reader least to ask.

So many cases of what is within a block, a page or an index are seen in the time of one whole look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bucketcatalog import Catalog
from bucketcatalog.errors import BucketCatalogError
from bucketcatalog.format.checkpoints import decode_checkpoint
from bucketcatalog.format.definitions import core_tables
from bucketcatalog.format.headers import BlockPlace
from bucketcatalog.format.transactions import decode_transaction
from bucketcatalog.log.blocks import read_block
from bucketcatalog.log.segments import read_index_and_filters, read_segment_file
from bucketcatalog.model.tables import Table
from bucketcatalog.store import Store

from .base import DATABASE, declared


def decode(changed: Sequence[str], folder: Path) -> None:
    """Decode all of it; what is refused by a typed error is passed over."""
    store, tables = Catalog(folder).store, {**core_tables(), **{table.name: table for table in declared()}}
    for name in changed:
        if (folder / name).exists():
            for read in list(_reads(store, name, (folder / name).read_bytes(), tables)):
                with suppress(BucketCatalogError):
                    read()


def _reads(store: Store, name: str, data: bytes, tables: dict[str, Table]) -> Iterator[Callable[[], Any]]:
    places: list[BlockPlace] = []
    with suppress(BucketCatalogError):
        if name.endswith(".parquet"):
            places += read_segment_file(store, name, len(data)).places
        elif name.endswith((".txn", ".ckpt")):
            found: Any = decode_transaction(data, name) if name.endswith(".txn") else decode_checkpoint(data, name)
            places += found.blocks if name.endswith(".txn") else [place for run in found.inline for place in run.blocks]
            for reference in found.segments:
                with suppress(BucketCatalogError):
                    places += read_index_and_filters(store, DATABASE, reference)[0]
    for place in places[:20]:
        table = tables.get(place.header.table)
        if table is not None:
            yield lambda place=place, table=table: read_block(store, place, table)  # type: ignore[misc]
            yield lambda place=place, table=table: read_block(store, place, table, columns=["name", "_txn"])  # type: ignore[misc]
