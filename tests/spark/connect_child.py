"""What users do with Spark, on a server of Spark Connect that it starts: ``connect_child.py reads|calls|examples CATALOG``.

Prints what it finds as JSON. In a process of its own: a session of Connect and one of the other kind do not stand each other in one.
"""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import BucketCatalogError
from pyspark_bucketcatalog.reading import frames

Found = dict[str, Any]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OBJECT = "owner string, bucket_id string, name string, content_length long"
OWNER, BUCKET = "8f1a1c3e-52f3-4f0e-9d8b-0a4c5b6d7e8f", "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"


def reads(session: SparkSession, path: str) -> Found:
    """The number and size of all objects, in every way of reading them."""
    found: Found = {}
    for keys in (0, 131_072):
        frames.LOCAL_KEYS = keys
        frame = bcs.read(session, path, native=True)
        found[f"natively {keys}"] = [frame.count(), frame.agg({"content_length": "sum"}).first()[0]]
    whole = bcs.read(session, path, native=False)
    found["through python"] = [whole.count(), whole.agg({"content_length": "sum"}).first()[0]]
    bcs.attach(session, path)
    found["attached"] = session.sql("SELECT count(*), sum(content_length) FROM objects").first()[:]
    found["elsewhere"] = bcs.read(session, path, native_root="file:///nowhere").count()
    return found


def calls(session: SparkSession, path: str) -> Found:
    """What each call of the package does to a catalog that is made here, and how what is wrong is told."""
    given = session.createDataFrame([(OWNER, BUCKET, f"{n:04}", n) for n in range(1_000)], OBJECT)
    found: Found = {"appended": _append(given, path)}
    version = f"etl@{found['appended']}"
    found["updated"] = bcs.update(session, path, "photos", set={"storage_class": "'COLD'"}, where="name >= '0990'", writer="etl").rows
    found["deleted"] = bcs.delete(session, path, "photos", where=bcs.read(session, path).name < "0005", writer="etl").rows
    found["events"] = _kinds(bcs.changes(session, path, start=version))
    found["difference"] = _kinds(bcs.diff(session, path, start=version))
    found["then"] = session.read.format("bucketcatalog").option("versionAsOf", version).load(path).count()

    made = bcs.create_table(path, "lab.scores", session.createDataFrame([("a", 0.5)], "run string, score double"), key=["run"], database="photos")
    session.createDataFrame([("a", 0.5)], "run string, score double").write.format("bucketcatalog").options(
        database="photos", table="lab.scores", writer="etl"
    ).mode("append").save(path)
    found["own table"] = [made.name, [row[:] for row in bcs.read(session, path, table="lab.scores").collect()]]

    session.sql(f"CREATE TABLE inventory USING bucketcatalog OPTIONS (path '{path}', database 'photos', table 'objects')")
    session.sql(f"CREATE TABLE past USING bucketcatalog OPTIONS (path '{path}', versionAsOf '{version}')")
    bcs.attach(session, path, view_prefix="now_")
    found["sql"] = session.sql(
        "SELECT (SELECT count(*) FROM inventory), (SELECT count(*) FROM past), (SELECT count(*) FROM now_deleted_objects),"
        " (SELECT count(*) FROM now_log WHERE writer = 'etl'), (SELECT score FROM now_lab_scores)"
    ).first()[:]

    folder = Path(path).parent
    found["streamed"] = [_stream(session, path, folder) for _ in range(2)]
    found["checkpoint"] = bcs.jobs.checkpoint(session, path).rows > 0
    found["natively"] = bcs.read(session, path, native=True).count()
    tree = folder / "tree"
    tree.mkdir()
    (tree / "file").write_text("text")
    found["harvested"] = bcs.jobs.harvest(session, tree, path, database="files").put
    found["collected"] = type(bcs.jobs.gc(session, path, database="photos", deleter=_Deleter(), dry_run=True)).__name__
    found["errors"] = _errors(session, path)
    return found


def _append(rows: DataFrame, path: str) -> int:
    from bucketcatalog import Catalog

    rows.write.format("bucketcatalog").options(database="photos", writer="etl").mode("append").save(path)
    return int(Catalog(path).snapshot(database="photos").scan("log", columns=["revision"]).to_arrow()["revision"].to_pylist()[-1])


def _kinds(changes: DataFrame) -> dict[str, int]:
    return {row["_change_type"]: row["count"] for row in changes.groupBy("_change_type").count().collect()}


def _stream(session: SparkSession, path: str, folder: Path) -> int:
    """Copy the events that are new into another catalog, as rows; returns how many rows are there."""
    events = session.readStream.format("bucketcatalog").options(database="photos", readChangeFeed=True).load(path)
    rows = events.where("_change_type = 'put'").select("owner", "bucket_id", "name", "content_length")
    sink = rows.writeStream.format("bucketcatalog").option("checkpointLocation", str(folder / "state"))
    sink.trigger(availableNow=True).start(str(folder / "copy")).awaitTermination()
    return bcs.read(session, folder / "copy").count()


def _errors(session: SparkSession, path: str) -> dict[str, str]:
    reader = session.read.format("bucketcatalog")
    wrong: dict[str, Callable[[], object]] = {
        "no such table": lambda: reader.option("table", "nothing").load(path).collect(),
        "no such column": lambda: bcs.delete(session, path, "photos", where="nonsense = 1"),
        "overwrite": lambda: bcs.read(session, path).write.format("bucketcatalog").mode("overwrite").save(path),
        "native": lambda: bcs.read(session, path, table="log", native=True),
    }
    return {name: _error(call) for name, call in wrong.items()}


def _error(call: Callable[[], object]) -> str:
    try:
        call()
    except BucketCatalogError as error:
        return error.code
    except (AnalysisException, StreamingQueryException, PySparkException) as error:
        return next(iter(str(error).splitlines()), "")
    return "none"
