"""What questions are asked of in the benchmarks: a catalog of several buckets, and the same rows as Parquet and as a table of the peer's.

The objects of a bucket are one transaction, all of them are covered by a checkpoint, and then comes an upsert a day, half of it over
objects that are there, of which no checkpoint has anything. One object in ten is a copy of the one before it.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bucketcatalog import Catalog
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.memory import MemoryStore

from . import dataset, peer
from .world import World

BUCKETS = 4
UPSERTS = 20
WRITER, OPERATION = "bench", "upsert"
FIRST_SEED = 600
DAY = 86_400_000_000
FIRST_DAY = 20_500 * DAY
CLASSES = ("STANDARD", "STANDARD_IA", "GLACIER")
COLUMNS = (*dataset.COLUMNS, "storage_class")
ENDS = ("deleted_at", "_ended_by", "_end_writer", "_end_operation")
BEGUN = "_commit_timestamp"
BY = ("pyarrow", "DuckDB")
"""Who has written a Parquet file."""


def bucket_id(number: int) -> bytes:
    """The id of a bucket."""
    return uuid.UUID(int=uuid.UUID(bytes=dataset.BUCKET).int + number).bytes


def objects(number: int, count: int, *, seed: int) -> pa.Table:
    """New objects of a bucket; every tenth has the size and the MD5 of the one before it."""
    return _of_bucket(dataset.objects(count, seed=seed), number, seed)


def upserts(existing: list[pa.Table], count: int, *, seed: int) -> pa.Table:
    """As many objects, spread evenly over the buckets, half of them under names that exist."""
    parts = (dataset.upserts(rows, count // BUCKETS, seed=seed * BUCKETS + number) for number, rows in enumerate(existing))
    return pa.concat_tables(_of_bucket(rows, number, seed) for number, rows in enumerate(parts))


def _of_bucket(rows: pa.Table, number: int, seed: int) -> pa.Table:
    at = np.arange(len(rows))
    at[9::10] -= 1
    for name in ("content_length", "content_md5"):
        rows = rows.set_column(rows.column_names.index(name), name, rows[name].take(pa.array(at)))
    ids = pa.repeat(pa.scalar(bucket_id(number), pa.binary(16)), len(rows))
    rows = rows.set_column(rows.column_names.index("bucket_id"), "bucket_id", ids)
    drawn = np.random.default_rng(seed).choice(len(CLASSES), len(rows), p=(0.7, 0.2, 0.1))
    return rows.append_column("storage_class", pa.array(CLASSES).take(pa.array(drawn)))


def base(count: int) -> list[pa.Table]:
    """The objects of each bucket before any upsert."""
    return [objects(number, count // BUCKETS, seed=FIRST_SEED + number) for number in range(BUCKETS)]


def later(existing: list[pa.Table], each: int) -> Iterator[pa.Table]:
    """The upserts."""
    for number in range(UPSERTS):
        yield upserts(existing, each, seed=7_000 + number)


def build(path: str, count: int, each: int) -> dict[str, Any]:
    """The catalog. It is made in memory, whose clock may go by days, and put down as it is."""
    now = [FIRST_DAY]
    store, parts = MemoryStore(clock=lambda: now[0]), base(count)
    with Catalog(store).writer(WRITER, clock=lambda: now[0]) as writer:
        with writer.transaction() as tx:
            tx.put("buckets", [{"id": bucket_id(n), "owner": dataset.OWNER, "name": f"bench-{n}"} for n in range(BUCKETS)])
        for rows in parts:
            with writer.transaction(operation="load") as tx:
                tx.put("objects", rows)
        writer.checkpoint()
        for rows in later(parts, each):
            now[0] += DAY
            with writer.transaction(operation=OPERATION) as tx:
                tx.put("objects", rows)
    kept = LocalStore(path)
    for info in store.list(""):
        kept.put(info.name, store.get(info.name))
    return {"rows": Catalog(path).snapshot().scan("objects", columns=["name"]).count()}


def cover(path: str, target: str) -> dict[str, Any]:
    """A copy of the catalog whose writer has merged the upserts into one level, as a peer's files have merged them."""
    shutil.copytree(path, target)
    later = FIRST_DAY + (UPSERTS + 1) * DAY
    with Catalog(target).writer(WRITER, clock=lambda: later) as writer:
        writer.checkpoint(full=True)
    return {}


def build_delta(path: str, count: int, each: int) -> dict[str, Any]:
    """The peer's table of the same rows: written in the order of keys, with its change data feed, and then a MERGE for each upsert."""
    parts = base(count)
    first = pa.concat_tables(dataset.as_text(rows).sort_by("name") for rows in parts)
    deltalake.write_deltalake(path, first, configuration={"delta.enableChangeDataFeed": "true"})
    said = deltalake.CommitProperties(custom_metadata={"by.writer": WRITER, "by.operation": OPERATION})
    for rows in later(parts, each):
        peer.merge(deltalake.DeltaTable(path), dataset.as_text(rows), said)
    return {"rows": deltalake.DeltaTable(path).to_pyarrow_dataset().count_rows()}


def export(path: str, target: str) -> dict[str, Any]:
    """The live objects of a catalog, its tombstones and its buckets as Parquet with zstd, each of pyarrow and of DuckDB."""
    snapshot = Catalog(path).snapshot()
    for by in BY:
        Path(target, by).mkdir(parents=True)
    scans = {
        "objects": snapshot.scan("objects", columns=[*COLUMNS, BEGUN]),
        "deleted": snapshot.scan("deleted_objects", columns=[*COLUMNS, BEGUN, *ENDS]),
        "buckets": snapshot.scan("buckets", columns=["owner", "id", "name"]),
    }
    with duckdb.connect() as connection:
        for name, scan in scans.items():
            file, other = (str(Path(target, by, f"{name}.parquet")) for by in BY)
            with pq.ParquetWriter(file, scan.schema, compression="zstd") as writer:
                for batch in scan.to_batches():
                    writer.write_batch(batch)
            connection.read_parquet(file).write_parquet(other, compression="zstd")
    return {}


def make_tree(path: Path, files: int) -> Path:
    """A tree of so many small files in 100 directories of 10."""
    for number in range(files):
        directory = path / f"{number % 10}" / f"{number // 10 % 10}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"file-{number:07}").write_bytes(b"x" * (number % 7))
    return path


def catalog(world: World) -> tuple[Path, Path, Path, Path]:
    """The catalog, the same under one checkpoint, the Parquet files and the peer's table; not to be written to."""
    from .fresh import run_fresh

    made = {"count": world.scale.questions_objects, "each": world.scale.questions_upserts}
    lake = world.once("questions", lambda path: run_fresh("questions_data", "build", path=str(path), **made))
    covered = world.once("questions-covered", lambda path: run_fresh("questions_data", "cover", path=str(lake), target=str(path)))
    plain = world.once("questions-parquet", lambda path: run_fresh("questions_data", "export", path=str(lake), target=str(path)))
    delta = world.once("questions-delta", lambda path: run_fresh("questions_data", "build_delta", path=str(path), **made))
    return lake, covered, plain, delta
