"""A catalog with something of everything, and how to compare what Spark reads with what the engine reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader

from bucketcatalog import Catalog
from pyspark_bucketcatalog.reading.reader import make_reader
from pyspark_bucketcatalog.reading.relation import open_relation
from pyspark_bucketcatalog.types import spark_schema

OWNER = "8f1a1c3e-52f3-4f0e-9d8b-0a4c5b6d7e8f"
OTHER = "b5d0c1aa-1111-4222-8333-c0ffee000001"
PER_BUCKET = 9_000
"""More than a block of a checkpoint holds."""

HOSTILE_NAMES = [
    " ",
    "nul\x00inside",
    "..",
    "../../etc/passwd",
    "/leading",
    "trailing/",
    "//",
    "line\nbreak\r\ttab",
    "quote'\"`\\;--",
    "%2F%00?&=#",
    "caf\u00e9",
    "cafe\u0301",
    "\ufeffbom",
    "\u202eright to left",
    "\uffff after the surrogates in UTF-16",
    "\U0001f408 before the above in UTF-16, after it in UTF-8",
    "\u0100" * 512,
    "\U0010ffff" * 256,
]


@dataclass(frozen=True)
class Sample:
    """The catalog at ``path``: ``before`` and ``before_time`` name the state before its last changes."""

    path: str
    before: str
    before_time: str
    buckets: Mapping[str, str]

    @property
    def catalog(self) -> Catalog:
        """The catalog, opened anew."""
        return Catalog(self.path)


def objects(bucket_id: str, names: list[str], *, owner: str = OWNER, **columns: Any) -> pa.Table:
    """Rows of objects."""
    count = len(names)
    given = {name: pa.repeat(pa.scalar(value), count) for name, value in columns.items()}
    ids = {"owner": pa.repeat(pa.scalar(owner), count), "bucket_id": pa.repeat(pa.scalar(bucket_id), count)}
    return pa.table({**ids, "name": pa.array(names), "content_length": pa.array(range(count), pa.int64()), **given})


def build(path: Path) -> Sample:
    """Two owners, five buckets of 9,000 objects in a checkpoint, and changes of two writers after it."""
    catalog = Catalog(path)
    with catalog.writer("node-1", database="photos") as first, catalog.writer("node-2", database="photos") as second:
        with first.transaction(operation="create") as tx:
            tx.put("buckets", [{"owner": OWNER, "name": name} for name in ("cats", "dogs", "empty", "shared", "weird")])
            tx.put("buckets", {"owner": OTHER, "name": "shared", "tags": {"team": "blue"}})
        shown = catalog.snapshot().scan("buckets").to_arrow().to_pylist()
        buckets = {row["name"] if row["owner"] == OWNER else f"other {row['name']}": row["id"] for row in shown}
        names = [f"{2020 + number % 5}/{number:05d}.jpg" for number in range(PER_BUCKET)]
        with first.transaction(operation="load") as tx:
            for name in ("cats", "dogs", "shared"):
                tx.put("objects", objects(buckets[name], names, content_type="image/jpeg"))
            tx.put("objects", objects(buckets["other shared"], names, owner=OTHER))
        with first.transaction() as tx:
            tx.put("objects", [_full_row(buckets["weird"], name) for name in HOSTILE_NAMES])
        first.checkpoint()
        with first.transaction() as tx:
            tx.put("objects", objects(buckets["cats"], names[:10], content_type="image/png"))
        before = catalog.snapshot()
        before_time = f"@{before.cut.newest_commit_time}"
        with second.transaction(operation="clean", metadata={"ticket": "42"}) as tx:
            tx.delete("objects", objects(buckets["cats"], names[:5]).select(["owner", "bucket_id", "name"]))
            tx.put("objects", objects(buckets["dogs"], [f"new/{number}" for number in range(100)]))
            tx.delete("buckets", {"owner": OWNER, "name": "empty"})
    return Sample(str(path), before.version, before_time, buckets)


def _full_row(bucket_id: str, name: str) -> dict[str, Any]:
    return {
        "owner": OWNER,
        "bucket_id": bucket_id,
        "name": name,
        "id": OTHER,
        "content_md5": bytes(range(16)),
        "headers": {"x-a": "1", "x-b": name},
        "roles": [OWNER, OTHER],
        "sharks": ["east:1", "west:2"],
        "properties": '{"a":1}',
        "legal_hold": True,
        "parts": 3,
    }


def read(spark: SparkSession, path: str, **options: Any) -> DataFrame:
    """What ``load`` returns."""
    return spark.read.format("bucketcatalog").options(**options).load(path)


def reader(path: str, columns: list[str] | None = None, **options: Any) -> DataSourceReader:
    """The reader that Spark would get, in this process."""
    relation = open_relation({"path": path, **{name: str(value) for name, value in options.items()}})
    schema = spark_schema(relation.available if columns else relation.schema)
    return make_reader(relation, type(schema)([schema[name] for name in columns]) if columns else schema)


def rows(data: DataFrame | pa.Table) -> list[dict[str, Any]]:
    """The rows in an order that does not depend on who read them."""
    table = data.toArrow() if isinstance(data, DataFrame) else data
    return sorted(table.to_pylist(), key=repr)


def plan(frame: DataFrame) -> str:
    """What Spark says that it does."""
    return str(frame._jdf.queryExecution().executedPlan().toString())
