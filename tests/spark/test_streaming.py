"""Streams of change events: every committed event once, across restarts and whatever the batches are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.model.cuts import Cut, Head
from bucketcatalog.store.local import LocalStore
from bucketcatalog.write.writer import Writer
from pyspark_bucketcatalog.given import NAMES_OF_READ, NAMES_OF_STREAM
from pyspark_bucketcatalog.options import StreamOptions
from pyspark_bucketcatalog.reading.streaming import ChangesStreamReader, cut_of, offset_of, open_stream
from pyspark_bucketcatalog.types import spark_schema

from .sample import OWNER

BUCKET = "0b6a2a0e-9d0f-5a53-8a4e-3f1e0c7d9b22"
LIMITED = pytest.mark.once
"""Of what PySpark 4.1 has not: bounds of a batch."""


def put(writer: Writer, *names: str, **more: Any) -> None:
    with writer.transaction() as tx:
        tx.put("objects", [{"owner": OWNER, "bucket_id": BUCKET, "name": name, **more} for name in names])


def stamps(path: Path, **between: Any) -> list[str]:
    return Catalog(path).changes(**between).to_arrow()["_stamp"].to_pylist()


def stream(spark: SparkSession, path: Path, **options: Any) -> DataFrame:
    return spark.readStream.format("bucketcatalog").options(**options).load(str(path))


class Sink:
    """Rows as batches brought them, by the number of the batch; a query that goes on from where the last one stopped."""

    def __init__(self, spark: SparkSession, folder: Path, catalog: Path) -> None:
        self._spark, self._folder, self._catalog = spark, folder, catalog
        self.batches: list[tuple[int, list[str]]] = []
        self.rows: list[dict[str, Any]] = []
        self.fail: Callable[[int], None] = lambda number: None

    def take(self, **options: Any) -> list[list[str]]:
        """The stamps of each batch with rows that a run until now brings."""
        first = len(self.batches)

        def received(rows: DataFrame, number: int) -> None:
            found = [row.asDict() for row in rows.collect()]
            self.batches.append((number, sorted(row["_stamp"] for row in found)))
            self.rows += found
            self.fail(number)

        frame = stream(self._spark, self._catalog, **options)
        query = (
            frame.writeStream.option("checkpointLocation", str(self._folder)).foreachBatch(received).trigger(availableNow=True)
        )
        running = query.start()
        try:
            running.awaitTermination()
        finally:
            running.stop()
        return [found for _, found in self.batches[first:] if found]

    @property
    def received(self) -> list[str]:
        return sorted(stamp for _, found in self.batches for stamp in found)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog"


@pytest.fixture
def sink(spark: SparkSession, tmp_path: Path, path: Path) -> Sink:
    return Sink(spark, tmp_path / "checkpoint", path)


def test_every_event_comes_once_across_restarts(sink: Sink, path: Path) -> None:
    with Catalog(path).writer("one") as one, Catalog(path).writer("two") as two:
        put(one, "a", "b")
        put(two, "c")
        assert sum(map(len, sink.take(readChangeFeed=True))) == 3
        assert sink.take(readChangeFeed=True) == []
        put(one, "d")
        one.checkpoint()
        put(two, "a")
        with one.transaction() as tx:
            tx.delete("objects", {"owner": OWNER, "bucket_id": BUCKET, "name": "b"})
        with Catalog(path).writer("three") as three:
            put(three, *(f"n{number}" for number in range(100)))
        sink.take(readChangeFeed=True)
    expected = Catalog(path).changes().to_arrow().to_pylist()
    assert sink.received == sorted(row["_stamp"] for row in expected)
    by_stamp = {row["_stamp"]: row for row in sink.rows}
    assert [by_stamp[row["_stamp"]] | {"_commit_timestamp": None} for row in expected if row["name"] in "abcd"] == [
        {
            **row,
            "_commit_timestamp": None,
            "created": by_stamp[row["_stamp"]]["created"],
            "modified": by_stamp[row["_stamp"]]["modified"],
        }
        | {name: dict(value) for name, value in row.items() if isinstance(value, list) and name in ("tags", "user_metadata")}
        for row in expected
        if row["name"] in "abcd"
    ]


@LIMITED
@pytest.mark.parametrize(
    "limit", [{"maxFilesPerTrigger": 3}, {"maxBytesPerTrigger": 1}, {"maxFilesPerTrigger": 9, "maxBytesPerTrigger": 1}]
)
def test_p24_available_now_catches_up_wholly_in_batches_as_large_as_allowed(
    sink: Sink, path: Path, limit: dict[str, int]
) -> None:
    with Catalog(path).writer("one") as one:
        for number in range(7):
            put(one, f"n{number}")
        most = 1 if "maxBytesPerTrigger" in limit else limit["maxFilesPerTrigger"]
        found = sink.take(readChangeFeed=True, **limit)
        assert [len(each) for each in found] == ([3, 3, 1] if most == 3 else [1] * 7)
        assert sink.received == sorted(stamps(path))


@pytest.mark.once
def test_a_stream_starts_after_a_version_or_a_time(spark: SparkSession, sink: Sink, path: Path, tmp_path: Path) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")
        version = Catalog(path).snapshot().version
        put(one, "b")
        assert sink.take(startingVersion=version) == [stamps(path, start=version)]
        at = Catalog(path).snapshot(version=version).cut.newest_commit_time
        assert Sink(spark, tmp_path / "other", path).take(startingTimestamp=f"@{at}") == [stamps(path, start=version)]
        put(one, "c")
        assert sum(map(len, sink.take(startingVersion="one@0"))) == 1  # what has been received decides


def test_a_stream_begins_with_the_state_of_its_start(spark: SparkSession, sink: Sink, path: Path, tmp_path: Path) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a", "b")
        put(one, "a")
        with one.transaction() as tx:
            tx.delete("objects", {"owner": OWNER, "bucket_id": BUCKET, "name": "b"})
        version = Catalog(path).snapshot().version
        put(one, "c")
        sink.take(startingVersion=version, startingState=True)
        now = Sink(spark, tmp_path / "now", path)
        now.take(startingState=True)
        put(one, "d")
        for each in (sink, now):
            each.take(startingVersion=version, startingState=True) if each is sink else each.take(startingState=True)
            assert [(row["_change_type"], row["name"]) for row in each.rows] == [("put", "a"), ("put", "c"), ("put", "d")]
            assert all(row["_version"] == row["_stamp"] and row["_writer"] == "one" for row in each.rows)
        assert set(sink.received) <= set(stamps(path))


def test_p23_a_batch_that_is_done_again_has_the_same_events(sink: Sink, path: Path) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")

        def fail(number: int) -> None:
            raise RuntimeError("the sink is away")

        sink.fail = fail
        with pytest.raises(StreamingQueryException, match="the sink is away"):
            sink.take(startingVersion="one@0", startingState=True)
        put(one, "b")
        sink.fail = lambda number: None
        for _ in range(2):  # before 4.2 a run that does a batch again does no other
            sink.take(startingVersion="one@0", startingState=True)
    (first, second, *rest) = sink.batches
    assert first == second and first[0] == 0
    assert [row["name"] for row in sink.rows] == ["a", "a", "b"] and len(rest) == 1


@pytest.mark.once
def test_a_stream_goes_on_though_what_it_started_from_is_pruned(sink: Sink, path: Path) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")
        put(one, "b")
        for options in ({"startingVersion": "one@0"}, {"startingVersion": "one@0", "readChangeFeed": True}):
            sink.take(**options)
        with Catalog(path).writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        put(one, "c")
        sink.take(startingVersion="one@0")
        time.sleep(1.5)
        done = Catalog(path).prune("1s", grace="0s", dry_run=False, force=True)
        assert done.horizon is not None and "maintainer" not in done.horizon
        with pytest.raises(PySparkException, match=r"\[PRUNED\]"):
            sink._spark.read.format("bucketcatalog").options(startingVersion="one@0", readChangeFeed=True).load(str(path)).count()
        sink.take(startingVersion="one@0", readChangeFeed=True)
        put(one, "d")
        sink.take(startingVersion="one@0")
    assert [row["name"] for row in sink.rows] == ["b", "c", "d"]


def pins(path: Path) -> list[tuple[str, str, str]]:
    found = Catalog(path).snapshot().scan("pins", columns=["writer", "name", "version"]).to_arrow().to_pylist()
    return [tuple(pin.values()) for pin in found]


@LIMITED
def test_p25_a_pin_holds_what_a_stream_has_yet_to_receive(path: Path, sink: Sink) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")
        first = Catalog(path).snapshot().version
        for cut in (":", first):  # where each run begins
            sink.take(readChangeFeed=True, pin="nightly", maxFilesPerTrigger=1)
            assert pins(path) == [("spark-pin-nightly", "nightly", cut)]
        put(one, "b")
        with Catalog(path).writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        put(one, "c")
        time.sleep(1.5)
        done = Catalog(path).prune("1s", grace="0s", dry_run=False, force=True)
        assert done.horizon is None and [pin.name for pin in done.pins] == ["nightly"]
        sink.take(readChangeFeed=True, pin="nightly", writer="spark-pin-nightly")
        assert [row["name"] for row in sink.rows] == ["a", "b", "c"]
        assert pins(path)[0][2] == first


@LIMITED
def test_a_pin_that_cannot_be_given_stops_no_stream(spark: SparkSession, path: Path, sink: Sink) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")
    (path / "spark-pin-nightly" / "default").mkdir(parents=True)
    (path / "spark-pin-nightly" / "default" / "transactions").write_text("in the way")
    sink.take(readChangeFeed=True, pin="nightly")
    assert [row["name"] for row in sink.rows] == ["a"]


@pytest.mark.once
def test_only_columns_that_are_asked_for_come(spark: SparkSession, path: Path, tmp_path: Path) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a", content_length=7)
    frame = stream(spark, path, readChangeFeed=True).select("name", "content_length", "_change_type")
    running = frame.writeStream.format("memory").queryName("narrow").trigger(availableNow=True).start()
    running.awaitTermination()
    assert [tuple(row) for row in spark.table("narrow").collect()] == [("a", 7, "put")]
    wanted = "_stamp string, name string"
    given = spark.readStream.format("bucketcatalog").schema(wanted).options(readChangeFeed=True).load(str(path))
    running = given.writeStream.format("memory").queryName("given").trigger(availableNow=True).start()
    running.awaitTermination()
    assert [tuple(row) for row in spark.table("given").collect()] == [(*stamps(path), "a")]


def test_p26_offsets_name_each_writers_newest_transaction_and_stay_small() -> None:
    cut = Cut({f"node-{number:04d}.{'r' * 65}": (Head(10**12 + number, bytes([number % 256] * 16)),) for number in range(1_000)})
    offset = json.loads(json.dumps(offset_of(cut, "photos/objects")))
    assert cut_of(offset, "photos/objects") == cut and len(json.dumps(offset)) < 128 << 10
    forked = Cut({"w": (Head(1, b"a" * 16), Head(2, b"b" * 16))})
    kept = offset_of(forked, "d/t")
    assert kept == {"of table": "d/t", "w": f"1:{(b'a' * 16).hex()} 2:{(b'b' * 16).hex()}"} and cut_of(kept, "d/t") == forked
    assert cut_of(offset_of(Cut(), "d/t"), "d/t") == cut_of({}, "d/t") == Cut()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"\[INVALID_OPTION\] A stream is one of change events.*Next: Set readChangeFeed to true"),
        ({"readChangeFeed": False, "startingVersion": 0}, r"\[INVALID_OPTION\] The option startingVersion is about events"),
        (
            {"readChangeFeed": True, "endingVersion": 0},
            r"\[INVALID_OPTION\] A stream has no end: endingVersion is about batches. Next: Use spark.read, or trigger\(",
        ),
        (
            {"startingVersion": 0, "versionAsOf": 0},
            r"\[INVALID_OPTION\] .*: versionAsOf is about batches. Next: Give startingVersion with startingState",
        ),
        (
            {"timestampAsOf": "24h"},
            r"\[INVALID_OPTION\] .*: timestampAsOf is about batches. Next: Give startingTimestamp with startingState",
        ),
        (
            {"readDifference": True},
            r"\[INVALID_OPTION\] .* no differences: readDifference is about batches. Next: Set readChangeFeed",
        ),
        (
            {"readChangeFeed": True, "preImages": True},
            r"\[INVALID_OPTION\] .* without what they ended: preImages is about batches. Next: Read them by spark.read",
        ),
        (
            {"readChangeFeed": True, "where": "name = 'x'"},
            r"\[INVALID_OPTION\] A stream has all events of a table: where is about batches. Next: .*where\(\) and select\(\)",
        ),
        ({"startingState": True, "bucket": "cats"}, r"\[INVALID_OPTION\] .*: bucket is about batches. Next: Take all events"),
        ({"startingState": True, "columns": "name"}, r"\[INVALID_OPTION\] .*: columns is about batches. Next: Take all events"),
        ({"startingState": True, "strict": True}, r"\[INVALID_OPTION\] .*: strict is about batches. Next: .*table forks"),
        ({"startingState": True, "nonsense": 1}, r"\[INVALID_OPTION\] There is no option 'nonsense' of a stream"),
        ({"startingVersion": 0, "startingTimestamp": "@0"}, r"\[INVALID_OPTION\] A stream starts after a version or a time"),
        ({"startingState": True, "maxFilesPerTrigger": 0}, r"\[INVALID_OPTION\] The option maxFilesPerTrigger is '0'"),
        ({"startingState": True, "table": "cows"}, r"\[UNKNOWN_TABLE\]"),
        ({"startingState": True, "table": "log"}, r"\[INVALID_OPTION\] The table 'log' is about the catalog"),
        ({"startingState": True, "writer": "etl"}, r"\[INVALID_OPTION\] A stream writes nothing but its pin"),
        ({"startingState": True, "pin": "a/b"}, r"\[INVALID_NAME\] .*a/b"),
        ({"startingVersion": "nowhere"}, r"\[INVALID_VERSION\] There is no tag 'nowhere'"),
    ],
)
def test_what_no_stream_can_be_of_is_said(sink: Sink, path: Path, options: dict[str, Any], message: str) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")
    with pytest.raises(PySparkException, match=message):
        sink.take(**options)


def test_what_a_stream_does_not_take_is_told_before_anything_else(sink: Sink, path: Path) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")
    with pytest.raises(PySparkException) as error:
        sink.take(readChangeFeed=True, prefix="a")
    assert "bucketcatalog.errors.InvalidOption: [INVALID_OPTION] A stream has all events" in str(error.value).splitlines()[0]
    assert not {"Traceback", "UnboundLocalError"} & set(str(error.value).replace(":", " ").split())


def test_every_option_of_a_batch_is_one_of_a_stream_or_is_refused_with_the_way_round() -> None:
    for name in sorted(set(NAMES_OF_READ) - set(NAMES_OF_STREAM)):
        with pytest.raises(InvalidOption, match=rf": {name} is about batches\. Next: ."):
            StreamOptions.parse({"path": "lake", name.lower(): "true"})


@pytest.mark.parametrize("option", ["maxFilesPerTrigger", "maxBytesPerTrigger", "startingState"])
def test_an_option_of_streams_is_an_error_of_a_batch(spark: SparkSession, path: Path, option: str) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")
    with pytest.raises(PySparkException, match=rf"\[INVALID_OPTION\] The option '{option.lower()}' is about streams"):
        spark.read.format("bucketcatalog").options(readChangeFeed=True, **{option: option == "startingState" or 1}).load(
            str(path)
        ).count()


@LIMITED
def test_nothing_is_asked_of_the_store_more_than_twice_a_second(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")
    stream = open_stream({"path": str(path), "startingVersion": "one@0"})
    reader = ChangesStreamReader(stream, spark_schema(stream.schema))
    begun = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
    assert reader.latestOffset(begun, reader.getDefaultReadLimit()) == begun
    asked: list[str] = []
    monkeypatch.setattr(Catalog, "snapshot", lambda *_, **options: asked.append("snapshot"))
    monkeypatch.setattr(LocalStore, "list", lambda *_, **options: asked.append("list"))
    for _ in range(20):  # within half a second
        assert reader.latestOffset(begun, reader.getDefaultReadLimit()) == begun
    assert asked == []


def test_another_sources_offset_is_refused() -> None:
    with pytest.raises(Exception, match=r"is no offset of a stream of change events.*checkpointLocation of its own"):
        cut_of({"partition-1": {"index": 3}}, "d/t")


def test_a_state_that_may_still_change_is_no_start(sink: Sink, path: Path) -> None:
    with Catalog(path).writer("one") as one:
        put(one, "a")
    now = Catalog(path).snapshot().cut.newest_commit_time
    with pytest.raises(PySparkException, match=r"\[INVALID_TIME\] The state of .* is not settled.*startingVersion: one@0"):
        sink.take(startingTimestamp=f"@{now}", startingState=True)
