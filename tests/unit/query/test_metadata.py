"""The tables about the catalog itself say what is in it."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from bucketcatalog import InvalidOption
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.uuids import uuid_bytes
from bucketcatalog.query.info import describe
from bucketcatalog.write.writer import Writer

from ...kit.world import World, bucket, obj, rows, time_at


def test_the_log_is_every_commit_also_behind_checkpoints(world: World, writer: Writer) -> None:
    world.commit(
        writer, ("put", "objects", [obj("a"), obj("b")]), operation="upload", metadata={"k": "v"}, app_id="job", app_version=3
    )
    first = world.clock.now
    writer.checkpoint()
    world.commit(writer, ("put", "objects", [obj(str(n)) for n in range(70)]))
    world.commit(world.writer("v"), ("delete", "objects", obj("nothing")))

    found = rows(world.snapshot(), "log")
    assert [(r["writer"], r["revision"], r["events"], r["version"]) for r in found] == [
        ("w", 0, 2, "w@0"),
        ("w", 1, 70, "w@1"),
        ("v", 0, 1, "v@0"),
    ]
    assert (found[0]["operation"], found[0]["metadata"], found[0]["app_id"], found[0]["app_version"]) == (
        "upload",
        [("k", "v")],
        "job",
        3,
    )
    assert found[0]["commit_timestamp"] == time_at(first)
    assert found[0]["parents"] in ([], None) and found[1]["parents"] == [found[0]["uuid"]]
    sizes = {info.size for info in world.store.list("") if info.name.endswith(".txn")}
    assert {row["bytes"] for row in found} == sizes


def test_writers_have_their_role_head_and_tail(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "objects", obj("a")))
    world.commit(writer, ("put", "objects", obj("b")))
    compactor, maintainer = world.writer("compactor-1"), world.writer("maintainer-1")
    compactor.checkpoint(scope="all")
    world.commit(maintainer, ("put", "buckets", bucket("x")))
    world.commit(writer, ("put", "objects", obj("c")))

    found = {row["writer"]: row for row in rows(world.snapshot(), "writers")}
    assert {name: (r["role"], r["revision"], r["heads"], r["uncovered"]) for name, r in found.items()} == {
        "w": ("writer", 2, 1, 1),
        "compactor-1": ("compactor", 0, 1, 0),
        "maintainer-1": ("maintainer", 0, 1, 1),
    }
    assert found["w"]["last_commit_timestamp"] == time_at(world.clock.now)


def test_checkpoints_and_segments_are_those_in_the_store(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "objects", [obj("a"), obj("b")]), ("put", "buckets", bucket("x")))
    result = writer.checkpoint()
    world.commit(writer, ("delete", "objects", obj("a")), ("delete", "objects", obj("z")))
    writer.checkpoint()
    assert result is not None

    found = rows(world.snapshot(), "checkpoints")
    assert sorted((r["writer"], r["revision"], r["rows"], r["in_use"]) for r in found) == [("w", 0, 3, False), ("w", 1, 4, True)]
    assert result.version in {row["version"] for row in found} and result.bytes in {row["bytes"] for row in found}
    segments = rows(world.snapshot(), "segments")
    assert {row["name"] for row in segments} == {i.name for i in world.store.list("") if i.name.endswith((".parquet", ".ckpt"))}
    newest = max(row["checkpoint"] for row in segments)
    assert {(r["table"], r["run"], r["rows"]) for r in segments if r["checkpoint"] == newest and r["purpose"] == "sums"} == {
        ("objects", "objects(;1,2)", 1),
        ("objects", "bytes(8;1,2)", 1),
    }
    kept = [r for r in segments if r["checkpoint"] == newest and r["purpose"] == "rows"]
    assert sorted((r["table"], r["class"], r["rows"]) for r in kept) == [
        ("buckets", "live", 1),
        ("objects", "ended", 1),
        ("objects", "live", 1),
        ("objects", "stubs", 1),
    ]


def test_an_older_snapshot_shows_the_tables_as_they_were(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "objects", obj("a")))
    version = world.snapshot().version
    world.commit(writer, ("put", "objects", obj("b")))
    writer.checkpoint()
    then = world.snapshot(version=version)
    assert [row["revision"] for row in rows(then, "log")] == [0]
    assert rows(then, "checkpoints") == []


def test_tables_are_described(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "buckets", bucket("x")))
    found = {row["table"]: row for row in rows(world.snapshot(), "tables")}
    assert found["objects"]["key"] == ["owner", "bucket_id", "name"] and found["objects"]["parent"] == "buckets"
    assert "etag" in found["objects"]["columns"] and not found["harvest_errors"]["tombstones"]


def test_columns_and_conditions_apply(world: World, writer: Writer) -> None:
    for name in "ab":
        world.commit(writer, ("put", "objects", obj(name)))
    snapshot = world.snapshot()
    assert snapshot.scan("log", columns=["revision", "writer"]).to_arrow().column_names == ["revision", "writer"]
    assert snapshot.scan("log", where={"revision": 1}).to_arrow()["revision"].to_pylist() == [1]
    assert snapshot.scan("log", where={"revision": [0, 1], "writer": "w"}).to_arrow().num_rows == 2
    assert snapshot.scan("log", where={"app_id": None}).to_arrow().num_rows == 2
    for options in (
        {"columns": ["strange"]},
        {"where": {"strange": 1}},
        {"where": {"revision": "x"}},
        {"where": {"metadata": "x"}},
        {"columns": ["writer", "writer"]},
    ):
        with pytest.raises(InvalidOption):
            snapshot.scan("log", **options).to_arrow()


def test_checkpoints_and_segments_add_up_over_several_of_them(world: World, writer: Writer) -> None:
    """What a checkpoint wrote and what it referred to again is what it told when it was made, whoever else makes some meanwhile."""
    compactor = world.writer("compactor-1")
    made: dict[str, tuple[int, int, int]] = {}
    for number in range(9):
        first, size = (0, 6_000) if number == 0 else (number * 500, 300)
        columns = [obj(f"{n:05}", content_length=number) for n in range(first, first + size)]
        world.commit(writer, ("put", "objects", pa.Table.from_pylist(columns)), ("put", "buckets", bucket(str(number))))
        results = [compactor.checkpoint(scope="all")] if number % 2 else []
        for result in (*results, writer.checkpoint()):
            assert result is not None
            made[result.name] = (result.bytes, result.reused_bytes, result.segments)
    snapshot = world.snapshot()
    checkpoints = rows(snapshot, "checkpoints")
    told = {
        paths.checkpoint(r["writer"], "default", Head(r["revision"], uuid_bytes(r["uuid"]))): (
            r["bytes_written"],
            r["bytes_reused"],
            r["segments"],
        )
        for r in checkpoints
    }
    assert told == made and sum(reused > 0 for _, reused, _ in made.values()) > 6
    assert all(r["bytes"] == r["bytes_written"] + r["bytes_reused"] for r in checkpoints)
    stored = {info.name: info.size for info in world.store.list("") if info.name.endswith((".parquet", ".ckpt"))}
    assert sum(r["bytes_written"] for r in checkpoints) == sum(stored.values())
    segments = [row for row in rows(snapshot, "segments") if row["purpose"] == "rows"]
    held = {n: size for n, size in stored.items() if n.endswith(".parquet")}
    assert {row["name"] for row in rows(snapshot, "segments")} == stored.keys()
    for row in checkpoints:
        of_each: Counter[str] = Counter()
        for segment in rows(snapshot, "segments"):
            of_each[segment["name"]] += segment["bytes"] if segment["checkpoint"] == row["uuid"] else 0
        own = {name: size for name, size in of_each.items() if size}
        assert all(size == held[name] if name in held else size < stored[name] for name, size in own.items())
        assert len(own.keys() & held.keys()) == row["segments"]
    used = {row["uuid"] for row in checkpoints if row["in_use"]}
    lengths = {table.table: sum(level.bytes for level in table.levels) for table in describe(snapshot, "here").tables}
    for table, length in lengths.items():
        assert sum(s["bytes"] for s in segments if s["table"] == table and s["checkpoint"] in used) == length
    for row in checkpoints:
        own = [segment for segment in segments if segment["checkpoint"] == row["uuid"]]
        assert sum(segment["rows"] for segment in own) == row["rows"]
        levels = {segment["level"] for segment in own if segment["table"] == "objects"}
        assert levels == set(range(len(levels)))
    assert max(segment["level"] for segment in segments) >= 2
