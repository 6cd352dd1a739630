"""How much each bucket has grown, hour by hour: from the stream of change events to a table.

Which catalog, and which of its databases, is said by ``spark.growth.catalog`` and ``spark.growth.database``.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as f

spark = SparkSession.active()
CATALOG, DATABASE = spark.conf.get("spark.growth.catalog"), spark.conf.get("spark.growth.database", "default")
KEPT = ["_stamp", "_commit_timestamp", "_change_type", "_version", "owner", "bucket_id", "name", "content_length"]


def effects(events: DataFrame) -> DataFrame:
    """What each event added and removed, which it does not say: a delete has no size, and a put does not say what it replaces.

    A version lives from its put to the next put of its key, or the first delete that is blind or names it. Events of versions that
    have ended change nothing.
    """
    key = ["owner", "bucket_id", "name"]
    in_order = Window.partitionBy(*key).orderBy("_stamp")
    is_put = f.col("_change_type") == "put"
    versions = (
        events.where("_change_type <> 'purge'")  # which forgets what has ended already
        .withColumn("put", f.last(f.when(is_put, f.col("_version")), ignorenulls=True).over(in_order))
        .where("put = coalesce(_version, put)")
    )
    before_it = Window.partitionBy(*key, "put").orderBy("_stamp").rowsBetween(Window.unboundedPreceding, -1)
    ended = f.coalesce(f.max(f.col("_change_type") == "delete").over(before_it), f.lit(False))
    changing = versions.withColumn("ended", ended).where("NOT ended")

    lives = f.col("_change_type") != "delete"
    sized = changing.withColumn("size", f.when(lives, f.coalesce("content_length", f.lit(0))).otherwise(0)).withColumn(
        "lives", lives.cast("long")
    )
    compared = sized.withColumns(
        {"old_size": f.lag("size", 1, 0).over(in_order), "lived": f.lag("lives", 1, 0).over(in_order)}
    )
    is_update = f.col("_change_type") == "update"
    both = f.when(is_update, f.least("size", "old_size")).otherwise(0)  # an update adds and removes the difference alone
    return compared.select(
        "bucket_id",
        f.date_trunc("hour", "_commit_timestamp").alias("hour"),
        f.when(is_put, 1).otherwise(0).alias("added"),
        f.when(is_update, 0).otherwise(f.col("lived")).alias("removed"),
        (f.col("size") - both).alias("bytes_added"),
        (f.col("old_size") - both).alias("bytes_removed"),
    )


@dp.table(comment="What happened to objects; each run appends what has been committed since the last one.")
def object_events() -> DataFrame:
    events = spark.readStream.format("bucketcatalog").options(database=DATABASE, readChangeFeed=True).load(CATALOG)
    return events.select(*KEPT)


@dp.materialized_view(comment="Objects and bytes that came and went, by bucket and hour; computed anew in each run.")
def growth() -> DataFrame:
    buckets = spark.read.format("bucketcatalog").options(database=DATABASE, table="buckets", columns="id,name").load(CATALOG)
    hours = effects(spark.read.table("object_events")).groupBy("bucket_id", "hour").agg(
        f.sum("added").alias("objects_added"),
        f.sum("removed").alias("objects_removed"),
        f.sum("bytes_added").alias("bytes_added"),
        f.sum("bytes_removed").alias("bytes_removed"),
    )
    so_far = Window.partitionBy("bucket_id").orderBy("hour")
    return hours.join(buckets.withColumnsRenamed({"id": "bucket_id", "name": "bucket"}), "bucket_id", "left").select(
        "bucket_id",
        "bucket",
        "hour",
        "objects_added",
        "objects_removed",
        "bytes_added",
        "bytes_removed",
        f.sum(f.expr("objects_added - objects_removed")).over(so_far).alias("objects"),
        f.sum(f.expr("bytes_added - bytes_removed")).over(so_far).alias("bytes"),
    )
