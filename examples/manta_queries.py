"""The eleven queries of RFD 149, once in Python and once as Spark SQL: they answer the same.

    python examples/manta_queries.py lake

Spark has no SQL here for what ends or forgets rows: that is ``bcs.delete`` and ``bcs.purge``.
"""

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog
from bucketcatalog.systems.manta.operations import Manta

OWNER = "14aafd84-a57f-11e8-8706-4fc23c74c5e7"
ID, OTHER_ID = "06d40bb8-a581-11e8-84b2-93ddb053d02b", "0bb1b2f4-a581-11e8-9a5c-3b8fd8e1a1a3"
MD5 = "xzY5jJbR9rcrMRhlcmi/8g=="
OBJECT = (
    "id, owner, bucket_id, name, created, modified, creator, content_length, content_md5, content_type, "
    "headers, roles, sharks, properties"
)


def in_python(lake: str) -> dict[str, list[str]]:
    """Each query by an operation; returns what the reads found, and what is left in the end."""
    with Manta(Catalog(lake), writer="node-1", database="python") as manta:
        # 3. Write a bucket. 1. Read a bucket.
        manta.createbucket(owner=OWNER, name="mybucket")
        bucket = manta.getbucket(owner=OWNER, name="mybucket")
        place = {"owner": OWNER, "bucket_id": bucket["id"]}

        # 4. Write an object, twice: what is overwritten is recorded. 2. Read an object.
        for id_ in (ID, OTHER_ID):
            manta.createobject(
                **place,
                name="myobject",
                id=id_,
                content_length=14917,
                content_md5=MD5,
                content_type="text/plain",
                headers={"m-custom-header1": "value1", "m-custom-header2": "value2"},
                sharks=["dc1:1.stor", "dc2:7.stor"],
            )
        assert manta.getobject(**place, name="myobject")["id"] == OTHER_ID

        # 7. List a bucket's contents, a batch of at most 250 after the other.
        names, marker = [], None
        while True:
            page = manta.listobjects(**place, marker=marker, limit=250)
            names += [row["name"] for row in page.rows]
            if (marker := page.next_marker) is None:
                break

        # 6. Delete an object. 5. Delete a bucket. Both are recorded.
        manta.deleteobject(**place, name="myobject")
        manta.deletebucket(owner=OWNER, name="mybucket")

        # 9. The deleted objects of which garbage collection is next, 8. and the buckets. The RFD takes those of more than 24 hours.
        garbage = manta.deletedobjects(older_than="0s", limit=100)

        # 11. Remove a deleted object's record, 10. and once there are no more of a deleted bucket's, that bucket's.
        for row in garbage:
            manta.removedeletedobject(**place, name=row["name"], id=row["id"])
        for row in manta.deletedbuckets(older_than="0s", limit=25):
            manta.removedeletedbucket(owner=OWNER, name=row["name"], id=row["id"])
        left = [*manta.deletedobjects(older_than="0s"), *manta.deletedbuckets(older_than="0s")]
        return {"objects": names, "garbage": [row["id"] for row in garbage], "left": [row["name"] for row in left]}


def in_sql(spark: SparkSession, lake: str) -> dict[str, list[str]]:
    """Each query as SQL, on views of one moment, which are attached again to see what has changed."""
    Catalog(lake).declare(["manta.placement"], database="spark")  # an empty database that is a Manta's
    for table in ("buckets", "objects"):
        spark.sql(f"DROP TABLE IF EXISTS write_{table}")
        options = f"path '{lake}', database 'spark', table '{table}'"
        spark.sql(f"CREATE TABLE write_{table} USING bucketcatalog OPTIONS ({options})")

    def look() -> None:
        bcs.attach(spark, lake, "spark")

    # 3. Write a bucket. 1. Read a bucket.
    spark.sql(f"INSERT INTO write_buckets (owner, name) VALUES ('{OWNER}', 'mybucket')")
    look()
    bucket = spark.sql(f"SELECT id, owner, name, created FROM manta_bucket WHERE owner = '{OWNER}' AND name = 'mybucket'").first()
    place = f"owner = '{OWNER}' AND bucket_id = '{bucket.id}'"

    # 4. Write an object, twice: what is overwritten is recorded by itself. 2. Read an object.
    for id_ in (ID, OTHER_ID):
        spark.sql(
            "INSERT INTO write_objects (owner, bucket_id, name, id, content_length, content_md5, content_type, headers, sharks) "
            f"VALUES ('{OWNER}', '{bucket.id}', 'myobject', '{id_}', 14917, unbase64('{MD5}'), 'text/plain', "
            "map('m-custom-header1', 'value1', 'm-custom-header2', 'value2'), array('dc1:1.stor', 'dc2:7.stor'))"
        )
    look()
    assert spark.sql(f"SELECT {OBJECT} FROM manta_bucket_object WHERE {place} AND name = 'myobject'").first().id == OTHER_ID

    # 7. List a bucket's contents, a batch of at most 250 after the other.
    names, marker = [], ""
    while True:
        listing = f"SELECT {OBJECT} FROM manta_bucket_object WHERE {place} AND name > :marker ORDER BY name LIMIT 250"
        page = [row.name for row in spark.sql(listing, args={"marker": marker}).collect()]
        if not page:
            break
        names, marker = names + page, page[-1]

    # 6. Delete an object. 5. Delete a bucket. Both are recorded.
    bcs.delete(spark, lake, "spark", table="objects", where=f"{place} AND name = 'myobject'", writer="node-2")
    bcs.delete(spark, lake, "spark", table="buckets", where=f"owner = '{OWNER}' AND name = 'mybucket'", writer="node-2")

    # 9. The deleted objects of which garbage collection is next, 8. and the buckets. The RFD takes those of more than 24 hours.
    look()
    age = "deleted_at < current_timestamp() - INTERVAL 0 HOURS"
    garbage = spark.sql(f"SELECT {OBJECT} FROM manta_bucket_deleted_object WHERE {age} ORDER BY deleted_at LIMIT 100").collect()
    buckets = spark.sql(
        f"SELECT id, owner, name, created FROM manta_bucket_deleted_bucket WHERE {age} ORDER BY deleted_at LIMIT 25"
    )
    ended = buckets.collect()

    # 11. Remove a deleted object's record, 10. and once there are no more of a deleted bucket's, that bucket's.
    for row in garbage:
        named = F.expr(place) & (F.col("name") == row.name) & (F.col("id") == row.id)
        bcs.purge(spark, lake, "spark", table="objects", where=named, writer="node-2")
    look()
    for row in ended:
        kept = " UNION ALL ".join(
            f"SELECT name FROM {table} WHERE owner = '{row.owner}' AND bucket_id = '{row.id}'"
            for table in ("manta_bucket_object", "manta_bucket_deleted_object")
        )
        assert spark.sql(kept).count() == 0, "the records of a bucket's objects are removed before its own"
        named = (F.col("owner") == OWNER) & (F.col("name") == row.name) & (F.col("id") == row.id)
        bcs.purge(spark, lake, "spark", table="buckets", where=named, writer="node-2")
    look()
    left = spark.sql(
        "SELECT name FROM manta_bucket_deleted_object UNION ALL SELECT name FROM manta_bucket_deleted_bucket"
    ).collect()
    for table in ("buckets", "objects"):
        spark.sql(f"DROP TABLE write_{table}")
    return {"objects": names, "garbage": [row.id for row in garbage], "left": [row.name for row in left]}


if __name__ == "__main__":
    LAKE = sys.argv[1] if len(sys.argv) > 1 else "lake"
    by_operations, by_sql = in_python(LAKE), in_sql(SparkSession.builder.getOrCreate(), LAKE)
    print("python:", by_operations)
    print("spark: ", by_sql)
    assert by_operations == by_sql == {"objects": ["myobject"], "garbage": [ID, OTHER_ID], "left": []}
