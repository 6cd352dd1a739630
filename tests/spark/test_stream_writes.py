"""Streams into a catalog: each batch is one commit, whoever commits it and however often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from bucketcatalog import Catalog, CatalogWarning, CommitUnknown, ForeignBranch, StaleBatch
from bucketcatalog.store.base import Store
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.writer import Writer
from pyspark_bucketcatalog.writing.batch import StreamWriter, Written
from pyspark_bucketcatalog.writing.write import Write, application_writer, plan_write

from ..kit.lost_writes import NoAnswers, Place
from ..kit.world import World
from .sample import OWNER

CATS = "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"
OF_OBJECTS = "owner string, bucket_id string, name string, content_length long"


def log(path: Path) -> list[dict[str, Any]]:
    """What was committed, but for what makes the database known."""
    return sorted(Catalog(path).snapshot().scan("log").to_arrow().to_pylist(), key=lambda each: each["commit_timestamp"])


def names(path: Path) -> list[str]:
    return Catalog(path).snapshot().scan("objects", columns=["name"]).to_arrow()["name"].to_pylist()


@dataclass
class Files:
    """A folder of Parquet files as a stream, and a query of it into a catalog."""

    spark: SparkSession
    folder: Path

    @property
    def catalog(self) -> Path:
        return self.folder / "catalog"

    def add(self, *given: str) -> None:
        rows = self.spark.createDataFrame([(OWNER, CATS, name, 1) for name in given], OF_OBJECTS)
        rows.coalesce(1).write.mode("append").parquet(str(self.folder / "in"))

    def run(self, checkpoint: str = "checkpoint", mode: str = "append", **options: Any) -> None:
        rows = self.spark.readStream.schema(OF_OBJECTS).option("maxFilesPerTrigger", 1).parquet(str(self.folder / "in"))
        if mode == "complete":
            rows = rows.groupBy("owner", "bucket_id", "name").count().select("owner", "bucket_id", "name")
        query = rows.writeStream.format("bucketcatalog").options(checkpointLocation=str(self.folder / checkpoint), **options)
        running = query.outputMode(mode).trigger(availableNow=True).start(str(self.catalog))
        try:
            running.awaitTermination()
        finally:
            running.stop()

    def forget_last_batch(self) -> None:
        """As if Spark had died after its last commit and before it knew: the next run does that batch again."""
        done = sorted((self.folder / "checkpoint" / "commits").glob("[0-9]*"), key=lambda file: int(file.name))
        done[-1].unlink()
        (done[-1].parent / f".{done[-1].name}.crc").unlink(missing_ok=True)


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Files:
    return Files(spark, tmp_path)


def test_p22_each_batch_is_one_commit_also_when_it_is_done_again(files: Files) -> None:
    files.add("a", "b")
    files.add("c")
    files.run()
    files.forget_last_batch()
    files.run()
    files.add("d")
    files.run()
    assert names(files.catalog) == ["a", "b", "c", "d"]
    commits = log(files.catalog)
    assert [each["events"] for each in commits] in ([2, 1, 1], [1, 2, 1])
    (writer,) = {each["writer"] for each in commits}
    (application,) = {each["app_id"] for each in commits}
    assert f"spark-{application}" == f"{writer}:objects" and writer.startswith("spark-") and len(writer) == 6 + 36
    assert [each["app_version"] for each in commits] == [0, 1, 2]


@pytest.mark.once
def test_an_application_of_the_users_own_names_the_batches(files: Files) -> None:
    files.add("a")
    files.run(txnAppId="nightly", writer="etl", operation="put")
    (only,) = log(files.catalog)
    assert (only["writer"], only["app_id"], only["app_version"]) == ("etl", "nightly:objects", 0)
    files.add("b")
    with pytest.raises(PySparkException, match=r"\[INVALID_OPTION\] A stream numbers its batches itself"):
        files.run(txnAppId="nightly", txnVersion=3)


@pytest.mark.once
def test_a_checkpoint_that_was_deleted_is_said_and_nothing_is_left_out_in_silence(files: Files) -> None:
    files.add("a")
    files.add("b")
    files.run(txnAppId="nightly")
    with pytest.raises(StreamingQueryException, match=r"\[STALE_BATCH\] Batch 0 of 'nightly' comes after a later one"):
        files.run("another", txnAppId="nightly")
    assert names(files.catalog) == ["a", "b"] and len(log(files.catalog)) == 2


@pytest.mark.once
def test_what_a_stream_cannot_do_to_a_table_is_said(files: Files) -> None:
    files.add("a")
    with pytest.raises(PySparkException, match=r"\[INVALID_OPTION\].*cannot be overwritten as a whole"):
        files.run(mode="complete")
    with pytest.raises(PySparkException, match=r"\[UNKNOWN_TABLE\]"):
        files.run("other", table="cows")
    assert not files.catalog.exists()


@pytest.mark.once
def test_events_of_one_table_become_rows_of_another_of_the_same_database(files: Files) -> None:
    with Catalog(files.catalog).writer("one") as one, one.transaction() as tx:
        tx.put("objects", [{"owner": OWNER, "bucket_id": CATS, "name": name} for name in ("a", "b")])
    events = files.spark.readStream.format("bucketcatalog").option("readChangeFeed", True).load(str(files.catalog))
    versions = events.selectExpr("owner", "bucket_id", "name", "'v1' AS version_id")
    query = versions.writeStream.format("bucketcatalog").option("table", "object_versions")
    running = query.option("checkpointLocation", str(files.folder / "c")).start(str(files.catalog))
    try:
        running.processAllAvailable()
        before = running.lastProgress["batchId"]
        running.processAllAvailable()
        assert running.lastProgress["batchId"] <= before + 1  # what it commits itself is no news for it
    finally:
        running.stop()
    assert [row["name"] for row in Catalog(files.catalog).snapshot().scan("object_versions").to_arrow().to_pylist()] == ["a", "b"]
    assert len(log(files.catalog)) == 2


@pytest.mark.once
def test_one_number_of_an_application_is_of_one_table(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(OWNER, CATS, "a")], "owner string, bucket_id string, name string")
    numbered = {"txnAppId": "nightly", "txnVersion": 4}
    for _ in range(2):
        for table, frame in (("objects", rows), ("object_versions", rows.selectExpr("*", "'v' AS version_id"))):
            frame.write.format("bucketcatalog").options(table=table, **numbered).mode("append").save(str(tmp_path))
    assert [(each["writer"], each["app_id"]) for each in log(tmp_path)] == [
        ("spark-nightly", "nightly:objects"),
        ("spark-nightly", "nightly:object_versions"),
    ]


@pytest.mark.parametrize(
    ("name", "writer"), [("job", "spark-job"), ("spark-job", "spark-spark-job"), ("a b/c", None), ("x" * 200, None)]
)
def test_an_application_has_a_writer_of_its_own_everywhere(name: str, writer: str | None) -> None:
    found = application_writer(name)
    assert found == (writer or found) and len(found) <= 128 and found == application_writer(name)
    assert writer is not None or len(found) == 6 + 32


def write(spark: SparkSession, store: Store, **options: str) -> Write:
    """A write of objects to a store of this process."""
    schema = spark.createDataFrame([], OF_OBJECTS).schema
    place: Any = Place(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pyspark_bucketcatalog.writing.write.CatalogPlace.of", lambda path, storage: place)
        return plan_write({"path": "memory://x", **options}, schema)


def put(to: Write, *given: str) -> Written:
    """Rows that a task of the query q has put."""
    columns = {"owner": [OWNER] * len(given), "bucket_id": [CATS] * len(given), "name": list(given)}
    return Written(to.put(pa.table(columns).to_batches()), "q")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A store in this process, whose clock all go by."""
    world = World()
    monkeypatch.setitem(Catalog.writer.__kwdefaults__ or {}, "clock", world.clock)
    return world


def test_a_zombie_of_a_query_commits_nothing(spark: SparkSession, world: World) -> None:
    zombie, living = (StreamWriter(write(spark, world.store).of_application("q")) for _ in range(2))
    late = put(zombie._write, "late")
    for number in range(3):
        living.commit([put(living._write, f"n{number}")], number)
    zombie.commit([late], 2)  # which is done, so that this changes nothing
    with pytest.raises(StaleBatch, match=r"Batch 1 of 'q'.*Stop this query where another has taken its place"):
        zombie.commit([late], 1)
    living.commit([put(living._write, "n3")], 3)
    found = Catalog(world.store).snapshot().scan("objects", columns=["name"]).to_arrow()["name"].to_pylist()
    assert found == ["n0", "n1", "n2", "n3"]


class Late(Wrapped):
    """A store where something happens between a writer's look and its first commit, as on another machine."""

    def __init__(self, inner: Store, meanwhile: Callable[[], object]) -> None:
        super().__init__(inner)
        self._meanwhile = [meanwhile]

    def put(self, name: str, data: bytes) -> None:
        if name.endswith(".txn") and self._meanwhile:
            self._meanwhile.pop()()
        super().put(name, data)


def test_two_drivers_at_the_very_moment_both_commit_and_the_fork_is_shown(world: World) -> None:
    def commit(store: Store) -> Writer:
        world.clock.tick()
        writer = Catalog(store).writer("spark-q", clock=world.clock)
        with writer.transaction(app_id="q:objects", app_version=0) as tx:
            tx.put("objects", [{"owner": OWNER, "bucket_id": CATS, "name": "a"}])
        return writer

    one = commit(Late(world.store, lambda: commit(world.store)))
    with pytest.warns(CatalogWarning, match="forked"):
        snapshot = Catalog(world.store).snapshot()
    (fork,) = snapshot.scan("forks").to_arrow().to_pylist()
    assert fork["writer"] == "spark-q" and len(snapshot.scan("log").to_arrow()) == 2
    assert len(snapshot.scan("objects").to_arrow()) == len(snapshot.scan("deleted_objects").to_arrow()) == 1
    with pytest.raises(ForeignBranch, match="spark-q"):
        one.check()


@pytest.mark.parametrize(("landed", "covered"), [(True, False), (True, True), (False, False)])
def test_p20_a_commit_whose_answer_was_lost_is_looked_for(spark: SparkSession, world: World, landed: bool, covered: bool) -> None:
    to = write(spark, NoAnswers(world.store, world.clock, landed=landed, covered=covered))
    shares = put(to, "a").shares
    if landed:
        committed = to.commit(shares)
        assert committed is not None and committed.version == f"{to.writer}@0"
        assert len(Catalog(world.store).snapshot().scan("objects").to_arrow()) == 1
    else:
        with pytest.raises(CommitUnknown, match="Open the writer again"):
            to.commit(shares)
        assert Catalog(world.store).databases() == []
