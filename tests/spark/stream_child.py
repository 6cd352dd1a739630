"""A stream of events that runs until it is killed: ``stream_child.py CATALOG FOLDER OPTIONS``, with options as JSON.

Each batch becomes a file of ``FOLDER`` that is named by its number. One that is done again has to be what it was.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

CATALOG, FOLDER, OPTIONS = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
STAMP = "_stamp"


def received(rows: DataFrame, number: int) -> None:
    found = rows.toArrow().sort_by(STAMP)
    file = FOLDER / f"{number:06}.parquet"
    if file.exists() and not pq.read_table(file).equals(found):
        (FOLDER / "differs").write_text(f"batch {number}")
    if len(found):
        pq.write_table(found, file.with_suffix(".part"))
        file.with_suffix(".part").rename(file)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    stream = session.readStream.format("bucketcatalog").options(**OPTIONS).load(CATALOG)
    narrow = stream.select(STAMP, "_writer", "_revision", "_change_type", "name")
    query = narrow.writeStream.option("checkpointLocation", str(FOLDER / "checkpoint")).foreachBatch(received).start()
    query.awaitTermination()
