"""Write, read, look back, compare: a catalog in a directory, from Python alone.

python examples/basics.py [CATALOG]
"""

import sys
from tempfile import mkdtemp

from bucketcatalog import Catalog, prefix

OWNER = "8f3f1d6e-6a53-4b0c-9d3c-0d9a8d2b7c11"


def main(path: str) -> None:
    """Two days in the life of a bucket, and then questions about the first."""
    catalog = Catalog(path)
    with catalog.writer("node-1", database="photos") as writer:
        with writer.transaction(operation="create") as tx:
            tx.put("buckets", {"owner": OWNER, "name": "cats"})
        bucket = catalog.snapshot(database="photos").get("buckets", owner=OWNER, name="cats")
        key = {"owner": OWNER, "bucket_id": bucket["id"]}

        with writer.transaction(operation="upload") as tx:
            tx.put("objects", [{**key, "name": f"2024/{n:02}.jpg", "content_length": 1000 + n} for n in range(5)])
        monday = catalog.snapshot(database="photos")

        with writer.transaction(operation="tidy up") as tx:
            tx.put("objects", {**key, "name": "2024/00.jpg", "content_length": 7})
            tx.delete("objects", [{**key, "name": "2024/01.jpg"}, {**key, "name": "2024/02.jpg"}])
            tx.put("objects", {**key, "name": "index.html"})

    tuesday = catalog.snapshot(database="photos")
    pictures = tuesday.scan("objects", columns=["name", "content_length"], where={"name": prefix("2024/")}).to_arrow()
    print("now:", dict(zip(*pictures.to_pydict().values(), strict=True)))
    print("groups:", tuesday.list("objects", **key, delimiter="/").groups)

    for row in tuesday.scan("deleted_objects", columns=["name", "deleted_at"]).to_arrow().to_pylist():
        print("ended:", row["name"], row["deleted_at"].isoformat())

    again = catalog.snapshot(database="photos", version=monday.version)  # a version can be read for good
    print("then:", again.scan("objects").to_arrow().num_rows, "objects")

    changed = catalog.diff(database="photos", start=monday.version, end=tuesday.version).to_arrow()
    for row in changed.select(["_change_type", "name"]).to_pylist():
        print("since then:", row["_change_type"], row["name"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else mkdtemp())
