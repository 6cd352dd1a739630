"""Several processes write one catalog without knowing of each other, and what comes of it where they disagree.

python examples/many_writers.py [CATALOG]
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from tempfile import mkdtemp

from bucketcatalog import Catalog

OWNER = "8f3f1d6e-6a53-4b0c-9d3c-0d9a8d2b7c11"
BUCKET = "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"
WRITERS = 3


def key(name: str) -> dict[str, str]:
    """The key of an object."""
    return {"owner": OWNER, "bucket_id": BUCKET, "name": name}


def work(path: str, number: int) -> str:
    """What one process does: objects of its own, and one that all of them want to be the first to create."""
    with Catalog(path).writer(f"node-{number}") as writer:
        for batch in range(5):
            with writer.transaction() as tx:
                tx.put("objects", [{**key(f"{number}/{batch}-{n}"), "content_length": n} for n in range(20)])
        with writer.transaction() as tx:
            tx.put("objects", {**key("leader"), "etag": f"node-{number}"}, expect="absent")
        return tx.committed.version


def main(path: str) -> None:
    """Run the processes, then merge what they wrote."""
    with ProcessPoolExecutor(WRITERS) as pool:
        print("committed:", *pool.map(work, [path] * WRITERS, range(WRITERS)))

    catalog = Catalog(path)
    with catalog.writer("compactor-1") as compactor:
        print("checkpoint:", compactor.checkpoint(scope="all").rows, "rows of every writer")
    snapshot = catalog.snapshot()
    print("objects:", snapshot.scan("objects").to_arrow().num_rows)
    print("leader:", snapshot.get("objects", **key("leader"))["etag"])
    for row in snapshot.scan("conflicts").to_arrow().to_pylist():
        print(f"conflict: {row['writer']} expected {row['expected']}, found {row['found']}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else mkdtemp())
