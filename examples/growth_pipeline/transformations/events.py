"""What the pipeline reads of a catalog: ``spark.growth.catalog`` says which, ``spark.growth.database`` which of its databases."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()
CATALOG, DATABASE = spark.conf.get("spark.growth.catalog"), spark.conf.get("spark.growth.database", "default")
EVENT = ["_change_type", "_version", "_stamp", "_commit_timestamp", "_writer", "_revision"]
ROW = ["owner", "bucket_id", "name", "content_length"]


@dp.table(comment="What happened to objects: a run appends what has been committed since the last one.")
def object_events() -> DataFrame:
    """Every event once, late ones too, in no particular order."""
    events = spark.readStream.format("bucketcatalog").options(database=DATABASE, readChangeFeed=True)
    return events.load(CATALOG).select(*EVENT, *ROW)


@dp.temporary_view(comment="The buckets that there are, by name.")
def named_buckets() -> DataFrame:
    """As they are when a run begins."""
    buckets = spark.read.format("bucketcatalog").options(database=DATABASE, table="buckets", columns="id,name")
    return buckets.load(CATALOG)
