"""A catalog that Spark changes and follows: rows are written, updated and deleted, and events, differences and a stream say so.

python examples/spark_changes.py [CATALOG]
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import pyspark_bucketcatalog as bcs

OWNER = "8f3f1d6e-6a53-4b0c-9d3c-0d9a8d2b7c11"
BUCKET = "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"


def append(rows: DataFrame, path: str, table: str) -> None:
    """Write the rows as one commit."""
    rows.write.format("bucketcatalog").options(database="photos", table=table, writer="etl").mode("append").save(path)


def counted(changes: DataFrame) -> dict[str, int]:
    """How many changes of each type there are."""
    return {
        row["_change_type"]: row["count"] for row in changes.groupBy("_change_type").count().orderBy("_change_type").collect()
    }


def receive(spark: SparkSession, path: str, folder: str) -> int:
    """Bring the events that have come since the last time into a folder of Parquet files; returns how many are there."""
    events = spark.readStream.format("bucketcatalog").options(database="photos", readChangeFeed=True).load(path)
    query = (
        events.select("_change_type", "name", "content_length", "_stamp")
        .writeStream.format("parquet")
        .options(path=folder, checkpointLocation=f"{folder}-state")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return spark.read.parquet(folder).count()


def main(path: str) -> None:
    """Two days of work, and then what they were."""
    spark = SparkSession.builder.appName("bucketcatalog").getOrCreate()
    received = f"{Path(path).absolute()}-received"

    append(spark.createDataFrame([(OWNER, "numbers", BUCKET)], "owner string, name string, id string"), path, "buckets")
    numbers = spark.range(1_000).select(
        f.lit(OWNER).alias("owner"),
        f.lit(BUCKET).alias("bucket_id"),
        f.format_string("2024/%04d", "id").alias("name"),
        f.uuid().alias("id"),  # what the data is called
        f.col("id").alias("content_length"),
    )
    append(numbers, path, "objects")
    print("received:", receive(spark, path, received), "events")

    cold = bcs.update(spark, path, "photos", set={"storage_class": "'COLD'"}, where="content_length >= 900", writer="etl")
    gone = bcs.delete(spark, path, "photos", where="content_length < 10", writer="etl")
    others = numbers.where("name BETWEEN '2024/0500' AND '2024/0519'").withColumns({"content_length": f.lit(7), "id": f.uuid()})
    append(others, path, "objects")
    print("updated:", cold.rows, "deleted:", gone.rows)

    print("events since then:", counted(bcs.changes(spark, path, "photos", start=cold.read)))
    print("difference:", counted(bcs.diff(spark, path, "photos", start=cold.read)))
    print("received:", receive(spark, path, received), "events")

    largest = bcs.read(spark, path, "photos").groupBy("storage_class").agg(f.max("content_length").alias("largest"))
    bcs.create_table(path, "reports.largest", largest, key=["storage_class"], database="photos", writer="etl")
    append(largest.fillna("STANDARD"), path, "reports.largest")
    print("reported:", [tuple(row) for row in bcs.read(spark, path, "photos", "reports.largest").collect()])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else f"{mkdtemp()}/lake")
