"""Spark: a deletion of one object in a hundred of ten million by a condition on a column, against Delta's DELETE.

The condition is a time of creation, which has nothing to do with the order of names, so that every file has some of the rows. Each
deletion runs in a fresh process with a session of its own, which a deletion from a small table warms up. Both sides run on the PySpark
that Delta is made for; the peer's jars are fetched by Spark. Its DELETE rewrites files, or with deletion vectors marks rows in them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from .fresh import run_fresh
from .measuring import fastest, in_turns, seconds
from .native_states import MERGED, catalog, parquet
from .native_states import build as build_catalog
from .results import Goal, Group, Measure, Sample
from .sessions import spark_session
from .world import World, stored_bytes

RUNS = 3
WARM_PARTS, WARM_ROWS = 1, 20_000
DELTA = "4.4.0"
SPARK = "4.1"
PYSPARK = Path(sys.prefix) / f"pyspark-{SPARK}"
SETTINGS = {
    "spark.jars.packages": f"io.delta:delta-spark_{SPARK}_2.13:{DELTA}",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # by default 50, for which a log on one machine is too small
}
WHERE = "created < timestamp '2025-01-04 15:36:00'"
"""A hundredth of the year in which objects were created."""
OURS = "ours"
PEERS = {"delta": "Delta's DELETE", "vectors": "Delta's DELETE, deletion vectors"}


def run(world: World) -> Group:
    """The group."""
    if not PYSPARK.is_dir():
        raise FileNotFoundError(f"PySpark {SPARK} is missing: run make pyspark-{SPARK}")
    parts = world.scale.native_parts
    rows = parts * world.scale.native_part_rows
    warm = world.empty("warm-catalog")
    build_catalog(str(warm), WARM_PARTS, WARM_ROWS)
    plain = str(parquet(world, MERGED, parts) / "objects")
    places = {OURS: (catalog(world, MERGED, parts), warm)}
    for side in PEERS:
        table, small = world.empty("delta"), world.empty("warm-delta")
        _fresh("make_tables", parquet=plain, target=str(table), small=str(small), vectors=side == "vectors")
        places[side] = table, small
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in places}

    def once(side: str) -> float:
        path, small = (world.copy(place) for place in places[side])
        before = stored_bytes(path)
        one = _fresh("delete", path=str(path), warm=str(small), delta=side != OURS)
        found[side].append(one | {"bytes": stored_bytes(path) - before})
        return float(one["seconds"])

    samples = in_turns({side: partial(once, side) for side in places}, min(RUNS, world.scale.rounds))
    counts = {one["rows"] for each in found.values() for one in each}
    if len(counts) != 1:
        raise ValueError(f"the sides did not delete the same rows: {counts}")
    sizes = {side: Sample(tuple(float(one["bytes"]) for one in each), "bytes") for side, each in found.items()}
    settings = {
        "condition": f"{WHERE}, which is true of {counts.pop():,} objects, spread evenly over the names",
        "session": f"PySpark {SPARK} for both, all cores, a fresh process each; a deletion from {WARM_ROWS:,} rows to warm up",
        "ours": "bcs.delete(spark, path, where=...), of a merged catalog",
        "peer": f"delta-spark {DELTA}, the 14 columns in the order of names, files as Spark writes them by default",
        "runs": f"median of {RUNS}, in turns, each on a copy",
    }
    return Group(list(measures_of(samples, sizes, rows)), settings)


def measures_of(samples: Mapping[str, Sample], sizes: Mapping[str, Sample], rows: int) -> Iterator[Measure]:
    """The measures, from the seconds and the bytes by side: goals against the peer's faster way, and the other way."""
    name = f"Spark delete of 1 % of {rows:,} objects by a condition"
    faster = fastest({side: samples[side] for side in PEERS})
    for side in (faster, *(side for side in PEERS if side != faster)):
        goal = Goal("ours / other", "at most", 0.5) if side == faster else None
        yield Measure(name, samples[OURS], samples[side], PEERS[side], goal)
        yield Measure(f"{name}, bytes written", sizes[OURS], sizes[side], PEERS[side], goal)


def _fresh(function: str, **arguments: Any) -> dict[str, Any]:
    return run_fresh("spark_deletes", function, packages=PYSPARK, **arguments)


def make_tables(parquet: str, target: str, small: str, vectors: bool) -> dict[str, Any]:
    """A table of the peer's of the rows of Parquet files, and a small one of some of them."""
    with spark_session(Path(target).parent, more=SETTINGS) as spark:
        rows = spark.read.parquet(parquet)
        for path, some in ((target, rows), (small, rows.limit(WARM_ROWS))):
            write = some.write.format("delta").option("delta.enableDeletionVectors", str(vectors).lower())
            write.save(path)
    return {}


def delete(path: str, warm: str, delta: bool) -> dict[str, Any]:
    """Delete by the condition from a small table, and then from the one whose ``seconds`` and rows come back."""
    with spark_session(Path(path).parent, more=SETTINGS if delta else None) as spark:
        deleted = _peer_deletes if delta else _ours_deletes
        deleted(spark, warm)
        rows: list[int] = []
        took = seconds(lambda: rows.append(deleted(spark, path)))
    return {"seconds": took, "rows": rows[0]}


def _ours_deletes(spark: SparkSession, path: str) -> int:
    import pyspark_bucketcatalog as bcs

    return bcs.delete(spark, path, where=WHERE).rows


def _peer_deletes(spark: SparkSession, path: str) -> int:
    (row,) = spark.sql(f"DELETE FROM delta.`{path}` WHERE {WHERE}").collect()
    return int(row.num_affected_rows)
