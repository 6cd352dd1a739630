"""Reads on Spark Connect, on a server that it starts: ``connect_child.py CATALOG``. Prints what it finds as JSON.

In a process of its own: a session of Connect and one of the other kind do not stand each other in one.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from pyspark_bucketcatalog.reading import frames

PATH = sys.argv[1]

if __name__ == "__main__":
    session = SparkSession.builder.remote("local[2]").getOrCreate()
    found: dict[str, object] = {"module": type(session).__module__}
    for keys in (0, 131_072):
        frames.LOCAL_KEYS = keys
        frame = bcs.read(session, PATH, native=True)
        found[f"natively {keys}"] = [frame.count(), frame.agg({"content_length": "sum"}).first()[0]]
    whole = bcs.read(session, PATH, native=False)
    found["through python"] = [whole.count(), whole.agg({"content_length": "sum"}).first()[0]]
    bcs.attach(session, PATH)
    found["attached"] = session.sql("SELECT count(*), sum(content_length) FROM objects").first()[:]
    found["elsewhere"] = bcs.read(session, PATH, native_root="file:///nowhere").count()
    print(json.dumps(found))
    session.stop()
