"""A read as plain pyarrow puts it together from the files that it says: nothing of this package reads the native ones."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bucketcatalog.query.reads import Read
from bucketcatalog.store.base import Store


def put_together(read: Read, store: Store) -> pa.Table:
    """The rows of the native files and of the overlay, in no particular order."""
    files = read.files()
    return pa.concat_tables([*native_rows(files, store), files.overlay.to_arrow()])


def native_rows(files: Any, store: Store) -> Iterator[pa.Table]:
    """The rows of each native file."""
    for file in files.native:
        data = io.BytesIO(store.get(file.name))
        yield file.rows_of(pq.read_table(data, columns=file.stored, page_checksum_verification=True))


def in_some_order(rows: pa.Table) -> list[str]:
    """The rows in an order that does not depend on who has read them."""
    return sorted(map(repr, rows.to_pylist()))
