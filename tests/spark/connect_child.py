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

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody calls it

import pyspark_bucketcatalog as bcs
from bucketcatalog import BucketCatalogError, Catalog
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
    """What the calls of the package do to a catalog that is made here."""
    given = session.createDataFrame([(OWNER, BUCKET, f"{n:04}", n) for n in range(1_000)], OBJECT)
    _append(given, path)
    version = Catalog(path).snapshot(database="photos").version
    found: Found = {}
    found["updated"] = bcs.update(
        session, path, "photos", set={"storage_class": "'COLD'"}, where="name >= '0990'", writer="etl"
    ).rows
    found["deleted"] = bcs.delete(session, path, "photos", where=F.col("name") < "0005", writer="etl").rows
    found["events"] = _kinds(bcs.changes(session, path, "photos", start=version))
    found["difference"] = _kinds(bcs.diff(session, path, "photos", start=version))
    found["then"] = session.read.format("bucketcatalog").option("versionAsOf", version).load(path).count()

    scores = session.createDataFrame([("a", 0.5)], "run string, score double")
    found["declared"] = bcs.create_table(path, "lab.scores", scores, key=["run"], database="photos", writer="etl").name
    _append(scores, path, table="lab.scores")

    session.sql(f"CREATE TABLE inventory USING bucketcatalog OPTIONS (path '{path}', database 'photos', table 'objects')")
    session.sql(f"CREATE TABLE past USING bucketcatalog OPTIONS (path '{path}', versionAsOf '{version}')")
    bcs.attach(session, path, view_prefix="now_")
    counts = ("inventory", "past", "now_deleted_objects", "now_lab_scores", "now_log WHERE writer = 'etl'")
    found["sql"] = [session.sql(f"SELECT count(*) FROM {source}").first()[0] for source in counts]
    session.sql("DROP TABLE inventory")
    session.sql("DROP TABLE past")

    folder = Path(path).parent
    found["streamed"] = [_copied(session, path, folder)]
    _append(given.withColumn("name", F.concat("name", F.lit("-again"))), path)
    found["streamed"].append(_copied(session, path, folder))
    bcs.jobs.checkpoint(session, path, database="photos")
    found["merged"] = bcs.read(session, path, "photos", native=True).count()
    runs = [bcs.jobs.gc(session, folder / "ended", deleter=_all_gone, dry_run=False, force=force) for force in (False, True)]
    found["collected"] = [[run.purged, run.deleted, *run.problems] for run in runs]
    (folder / "tree").mkdir()
    (folder / "tree" / "file").write_text("text")
    found["harvested"] = bcs.jobs.harvest(session, folder / "tree", path, "files").created
    found["errors"] = _errors(session, path)
    return found


def examples(session: SparkSession, path: str) -> Found:
    """What each example of Spark prints, that of the demo last, for it ends the session."""
    files = [file for file in sorted(EXAMPLES.glob("*.py")) if "pyspark" in file.read_text() and not file.name.startswith("demo")]
    said = {file.name: _printed(file, f"{path}-{file.stem}") for file in files}
    changed = f"{path}-spark_changes"
    log = Catalog(changed).snapshot(database="photos").scan("log", columns=["commit_timestamp"]).to_arrow()
    before = sorted(log["commit_timestamp"].to_pylist())[1].isoformat()  # when all objects were there
    return said | {"demo_spark.py": _printed(EXAMPLES / "demo_spark.py", changed, before)}


def _printed(file: Path, *arguments: str) -> str:
    sys.argv = [str(file), *arguments]
    with redirect_stdout(StringIO()) as printed:
        runpy.run_path(str(file), run_name="__main__")
    return printed.getvalue()


def _append(rows: DataFrame, path: str, **options: str) -> None:
    rows.write.format("bucketcatalog").options(database="photos", writer="etl", **options).mode("append").save(path)


def _kinds(changes: DataFrame) -> dict[str, int]:
    return {row["_change_type"]: row["count"] for row in changes.groupBy("_change_type").count().collect()}


def _copied(session: SparkSession, path: str, folder: Path) -> int:
    """Put what was put into another catalog, by a stream; returns how many rows are there."""
    events = session.readStream.format("bucketcatalog").options(database="photos", readChangeFeed=True).load(path)
    rows = events.where("_change_type = 'put'").select("owner", "bucket_id", "name", "content_length")
    sink = rows.writeStream.format("bucketcatalog").option("checkpointLocation", str(folder / "state"))
    sink.trigger(availableNow=True).start(str(folder / "copy")).awaitTermination()
    return bcs.read(session, folder / "copy").count()


def _all_gone(references: pa.Table) -> list[bool]:
    return [True] * len(references)


def _errors(session: SparkSession, path: str) -> dict[str, str]:
    """How wrong calls end."""
    reader = session.read.format("bucketcatalog").option("database", "photos")
    wrong: dict[str, Callable[[], object]] = {
        "read": lambda: reader.option("table", "nothing").load(path).collect(),
        "delete": lambda: bcs.delete(session, path, "photos", where="nonsense = 1"),
        "update": lambda: bcs.update(session, path, "photos", set={"etag": "nonsense"}, where="true"),
        "write": lambda: _append(session.range(1), path),
        "overwrite": lambda: bcs.read(session, path, "photos").write.format("bucketcatalog").mode("overwrite").save(path),
        "native": lambda: bcs.changes(session, path, "photos", native=True),
    }
    return {name: _said(call) for name, call in wrong.items()}


def _said(call: Callable[[], object]) -> str:
    try:
        call()
    except BucketCatalogError as error:
        return error.code
    except PySparkException as error:
        return str(error)
    return "nothing"


if __name__ == "__main__":
    what, place = sys.argv[1:]
    connected = SparkSession.builder.getOrCreate()  # SPARK_REMOTE says that it is one of Connect
    module = type(connected).__module__
    print(json.dumps({"module": module} | {"reads": reads, "calls": calls, "examples": examples}[what](connected, place)))
    connected.stop()
