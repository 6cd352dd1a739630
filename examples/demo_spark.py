"""What a catalog answers in Spark: the largest directories, what was deleted, what differs from before, one object's history.

Usage: demo_spark.py CATALOG BEFORE    BEFORE is a time, such as 2024-05-01T12:00:00Z
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession

import pyspark_bucketcatalog as bcs


def session() -> SparkSession:
    """Spark on this machine, quiet, unless SPARK_REMOTE names a server."""
    builder = SparkSession.builder.appName("bucketcatalog demo")
    return (
        builder.config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def largest_directories(spark: SparkSession) -> DataFrame:
    """Live objects by bucket and the first two parts of their names."""
    return spark.sql(
        """
        SELECT b.name AS bucket, substring_index(o.name, '/', 2) AS directory, count(*) AS objects,
               round(sum(o.content_length) / 1e6, 1) AS megabytes
        FROM objects o JOIN buckets b ON o.bucket_id = b.id
        GROUP BY ALL ORDER BY megabytes DESC LIMIT 8
        """
    )


def deleted_by_directory(spark: SparkSession) -> DataFrame:
    """Tombstones whose name is not live again."""
    return spark.sql(
        """
        SELECT substring_index(d.name, '/', 1) AS directory, count(*) AS deleted, max(d.deleted_at) AS last_deleted_at
        FROM deleted_objects d LEFT ANTI JOIN objects o ON d.bucket_id = o.bucket_id AND d.name = o.name
        GROUP BY ALL ORDER BY deleted DESC, directory LIMIT 5
        """
    )


def differences(before: DataFrame, now: DataFrame) -> DataFrame:
    """How many objects were created, overwritten and deleted between two states."""
    key = ["owner", "bucket_id", "name"]
    old = before.select(*key, before.id.alias("old_id"))
    new = now.select(*key, now.id.alias("new_id"))
    change = "CASE WHEN old_id IS NULL THEN 'created' WHEN new_id IS NULL THEN 'deleted' ELSE 'overwritten' END AS change"
    joined = old.join(new, key, "full_outer").where("NOT old_id <=> new_id")
    return joined.selectExpr(change).groupBy("change").count().orderBy("change")


def name_with_a_past(spark: SparkSession) -> str:
    """An object that was overwritten."""
    return str(
        spark.sql(
            "SELECT o.name FROM objects o JOIN deleted_objects d ON d.bucket_id = o.bucket_id AND d.name = o.name ORDER BY 1 LIMIT 1"
        ).collect()[0][0]
    )


def history(spark: SparkSession, catalog: str, name: str) -> DataFrame:
    """Every event of one object, from the change feed."""
    events = spark.read.format("bucketcatalog").option("readChangeFeed", True).load(catalog)
    shown = ["_commit_timestamp", "_change_type", "_writer", "_revision", "content_length", "modified"]
    return events.where(events.name == name).select(*shown).orderBy("_commit_timestamp")


def show(title: str, rows: DataFrame) -> None:
    """A titled table."""
    print(f"{title}:", flush=True)
    rows.show(20, truncate=70)


def main(catalog: str, before: str) -> None:
    """Answer the demo's questions."""
    spark = session()
    bcs.attach(spark, catalog)
    show("The largest directories", largest_directories(spark))
    show("What was deleted, by directory", deleted_by_directory(spark))
    then = spark.read.format("bucketcatalog").option("timestampAsOf", before).load(catalog)
    show(f"How {before} differs from now", differences(then, spark.table("objects")))
    name = name_with_a_past(spark)
    show(f"The history of {name!r}", history(spark, catalog, name))
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
