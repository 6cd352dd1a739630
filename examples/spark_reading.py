"""A catalog as Spark DataFrames: now, then, what ended, what happened, and SQL over all of it.

python examples/spark_reading.py [CATALOG]
"""

import sys
from tempfile import mkdtemp

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog

OWNER = "8f3f1d6e-6a53-4b0c-9d3c-0d9a8d2b7c11"


def fill(path: str) -> str:
    """Two commits; returns the version of the first."""
    catalog = Catalog(path)
    with catalog.writer("node-1", database="photos") as writer:
        with writer.transaction() as tx:
            tx.put("buckets", [{"owner": OWNER, "name": name} for name in ("cats", "dogs")])
        buckets = catalog.snapshot(database="photos").scan("buckets", columns=["id", "name"]).to_arrow().to_pylist()
        keys = [{"owner": OWNER, "bucket_id": bucket["id"], "name": f"2024/{n:03}"} for bucket in buckets for n in range(100)]
        with writer.transaction() as first:
            first.put("objects", [{**key, "content_length": n} for n, key in enumerate(keys)])
        with writer.transaction() as tx:
            tx.delete("objects", keys[:10])
    return first.committed.version


def main(path: str) -> None:
    """Read what ``fill`` wrote, in five ways."""
    version = fill(path)
    spark = SparkSession.builder.appName("bucketcatalog").getOrCreate()
    objects = spark.read.format("bucketcatalog").option("database", "photos").load(path)
    print("now:", objects.count())
    print("then:", spark.read.format("bucketcatalog").option("versionAsOf", version).load(path).count())

    cats = spark.read.format("bucketcatalog").option("bucket", "cats").option("prefix", "2024/09").load(path)
    print("cats below 2024/09:", cats.agg(f.sum("content_length")).first()[0], "bytes")

    events = spark.read.format("bucketcatalog").option("readChangeFeed", True).option("startingVersion", version).load(path)
    print("since then:", {row["_change_type"]: row["count"] for row in events.groupBy("_change_type").count().collect()})

    bcs.attach(spark, path, database="photos")
    query = """
        SELECT b.name AS bucket, count(*) AS ended, min(o.deleted_at) = max(o.deleted_at) AS at_once
        FROM deleted_objects o JOIN buckets b ON b.id = o.bucket_id GROUP BY b.name
    """
    spark.sql(query).show()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else mkdtemp())
