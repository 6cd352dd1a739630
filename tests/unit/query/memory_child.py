"""Builds or scans a large catalog in a process of its own, so that its peak memory says something: ``memory_child.py DO FOLDER ROWS``."""

from __future__ import annotations

import resource
import sys

import pyarrow as pa
import pyarrow.compute as pc

from bucketcatalog import Catalog

OWNER, BUCKET = "11111111-1111-4111-8111-111111111111", "33333333-3333-4333-8333-333333333333"
PART = 500_000


def build(folder: str, rows: int) -> None:
    """So many objects in few transactions, half of each overwritten by the next; a checkpoint over all but the last."""
    with Catalog(folder).writer("w") as writer:
        for start in range(0, rows, PART):
            first = max(0, start - PART // 2)
            count = min(start + PART, rows) - first
            numbers = pa.array(range(first, first + count), pa.int64())
            names = pc.binary_join_element_wise("directory", pc.utf8_lpad(numbers.cast(pa.string()), 12, "0"), "/")
            owner = pa.repeat(OWNER, count)
            table = pa.table({"owner": owner, "bucket_id": pa.repeat(BUCKET, count), "name": names, "content_length": numbers})
            with writer.transaction() as tx:
                tx.put("objects", table)
        writer.checkpoint()
        with writer.transaction() as tx:
            tx.put("objects", table.slice(0, 1_000))


def scan(folder: str, rows: int) -> None:
    """Every row once, in batches that are thrown away."""
    found = total = 0
    for batch in Catalog(folder).snapshot().scan("objects").to_batches():
        found += batch.num_rows
        total += pc.sum(batch["content_length"]).as_py()
    assert (found, total) == (rows, rows * (rows - 1) // 2)


def scan_deleted(folder: str, rows: int) -> None:
    """The versions that were overwritten: half of every full transaction but the last, and what the tail overwrote."""
    found = sum(batch.num_rows for batch in Catalog(folder).snapshot().scan("deleted_objects").to_batches())
    assert found == (rows - 1) // PART * (PART // 2) + min(1_000, rows)


if __name__ == "__main__":
    {"build": build, "scan": scan, "scan_deleted": scan_deleted, "import": lambda *_: None}[sys.argv[1]](
        sys.argv[2], int(sys.argv[3])
    )
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
