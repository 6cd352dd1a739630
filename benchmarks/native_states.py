"""Catalogs that other engines read natively, in each state that there is between two merges, and plain Parquet of the same rows.

A compactor puts the objects and merges everything, as one does at night. Later it puts some of the objects once more, in one transaction,
and writes a checkpoint, which lies over the merged one. Every catalog has one bucket, whose id is that of all objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bucketcatalog import Catalog, prefix
from bucketcatalog.query.reads import Read

from . import dataset
from .fresh import run_fresh
from .sessions import spark_session
from .world import World

WRITER = "compactor-bench"
FIRST_SEED = 300
PREFIX = "projects/50/"
"""One object in a hundred has a name that begins so."""


@dataclass(frozen=True)
class State:
    """What was overwritten since the merge: each so-many-th object in order of names, of those whose names begin with ``within``."""

    name: str
    shown: str
    every: int | None = None
    within: str = ""


MERGED = State("merged", "merged")
WITHIN = State("within", "1 % overwritten within a prefix", 1, PREFIX)
SPREAD = State("spread", "1 % overwritten, spread evenly", 100)
TENTH = State("tenth", "a tenth overwritten, spread evenly", 10)
STATES = (MERGED, WITHIN, SPREAD, TENTH)


def catalog(world: World, state: State, parts: int) -> Path:
    """A catalog of so many parts; not to be written to."""

    def build_merged(path: Path) -> None:
        run_fresh("native_states", "build", path=str(path), parts=parts, rows=world.scale.native_part_rows)

    def build_overwritten(path: Path) -> None:
        copied = world.copy(merged)
        run_fresh("native_states", "overwrite", path=str(copied), every=state.every, within=state.within)
        copied.rename(path)

    merged = world.once(f"native-merged-{parts}", build_merged)
    return merged if state.every is None else world.once(f"native-{state.name}-{parts}", build_overwritten)


def parquet(world: World, state: State, parts: int) -> Path:
    """The directories ``objects`` and ``buckets`` with Parquet of the catalog's rows, as Spark writes it."""

    def write(path: Path) -> None:
        run_fresh("native_states", "write_parquet", path=str(catalog(world, state, parts)), target=str(path))

    return world.once(f"native-{state.name}-{parts}-parquet", write)


def read_natively(path: Path) -> dict[str, Any]:
    """What a read of all objects consists of; ``ValueError`` where no file of theirs is read natively."""
    scan = Catalog(path).snapshot().scan("objects")
    assert isinstance(scan, Read)
    read = scan.files()
    if read.why is not None or not read.native:
        raise ValueError(f"the objects of {path.name} are not read natively: {read.why}")
    return {
        "native files": len(read.native),
        "bytes": sum(file.size for file in read.native),
        "rows": sum(file.rows for file in read.native),
        "left out": sum(len(file.left_out) for file in read.native),
        "keys in the overlay": read.touched,
    }


def build(path: str, parts: int, rows: int) -> dict[str, Any]:
    """A catalog of so many parts of the data set, each of another seed, in a merged checkpoint."""
    with Catalog(path).writer(WRITER) as writer:
        with writer.transaction() as tx:
            tx.put("buckets", [{"id": dataset.BUCKET, "owner": dataset.OWNER, "name": "bench"}])
        for part in range(parts):
            with writer.transaction() as tx:
                tx.put("objects", dataset.objects(rows, seed=FIRST_SEED + part))
        writer.checkpoint(scope="all", full=True)
    return {}


def overwrite(path: str, every: int, within: str) -> dict[str, Any]:
    """Put each so-many-th object again, of those whose names begin with ``within``."""
    where = {"name": prefix(within)} if within else {}
    names = Catalog(path).snapshot().scan("objects", columns=["name"], where=where).to_arrow()["name"].combine_chunks()[::every]
    fresh = dataset.objects(len(names), seed=50_000)
    with Catalog(path).writer(WRITER) as writer:
        with writer.transaction(operation="upsert") as tx:
            tx.put("objects", fresh.set_column(fresh.column_names.index("name"), "name", names))
        writer.checkpoint(scope="all")
    return {}


def write_parquet(path: str, target: str) -> dict[str, Any]:
    """What ``parquet`` promises; of the objects the columns of the data set."""
    import pyspark_bucketcatalog as bcs

    columns: dict[str, Sequence[str]] = {"objects": dataset.COLUMNS, "buckets": ("id", "name")}
    with spark_session(Path(target).parent) as spark:
        for table, names in columns.items():
            bcs.read(spark, path, table=table, columns=names).write.parquet(f"{target}/{table}")
    return {}
