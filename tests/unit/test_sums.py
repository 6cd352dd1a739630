"""Sums over live rows by group: what they are after any event, what they cost, and what tables may declare."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog
from bucketcatalog.snapshot import Snapshot
from bucketcatalog.store.faults import Counting

from .helpers import BUCKET, OWNER, World, messages, obj, rows

TABLE = """
syntax = "proto3";
import "bucketcatalog/v1/options.proto";
message Reading {
  option (bucketcatalog.v1.table) = {
    name: "lab.readings" key: "room" key: "at"
    sums: {name: "readings"}
    sums: {name: "per room" field: "count" group: "room"}
    sums: {name: "per kind" field: "count" group: "kind"}
  };
  bytes room = 1;
  uint32 at = 2;
  optional int32 count = 3;
  string kind = 4;
}
"""


def sums(snapshot: Snapshot, table: str = "objects") -> dict[tuple[str, ...], int]:
    found = snapshot.scan("sums", where={"table": table}).to_arrow().to_pylist()
    return {(row["name"], *dict(row["group"]).values()): row["value"] for row in found}


@pytest.fixture
def world() -> World:
    return World.counting()


def counted(world: World, call: Any) -> tuple[int, Any]:
    store = world.store
    assert isinstance(store, Counting)
    store.reset()
    found = call()
    return store.requests["get_range"], found


def test_sums_follow_every_event_and_every_checkpoint(world: World) -> None:
    with world.writer() as writer:
        steps: list[tuple[Any, ...]] = [
            ("put", "objects", [obj(f"n{n:04}", content_length=n) for n in range(3_000)]),
            ("put", "objects", [obj(f"n{n:04}", content_length=0) for n in range(0, 3_000, 100)]),
            ("delete", "objects", [obj(f"n{n:04}") for n in range(50, 3_000, 100)]),
            ("put", "objects", [obj("n0050", content_length=7), obj("new")]),
        ]
        for step in steps:
            world.commit(writer, step)
            for _ in range(2):
                snapshot = world.snapshot()
                lengths = [row["content_length"] or 0 for row in rows(snapshot)]
                group = (OWNER, BUCKET)
                assert sums(snapshot) == {("objects", *group): len(lengths), ("bytes", *group): sum(lengths)}
                writer.checkpoint()
        world.commit(
            writer, ("delete", "objects", [{k: row[k] for k in ("owner", "bucket_id", "name")} for row in rows(snapshot)])
        )
        assert sums(world.snapshot()) == {}


def test_kept_sums_are_read_instead_of_rows(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", pa.Table.from_pylist([obj(f"n{n:06}", content_length=1) for n in range(60_000)])))
        before, found = counted(world, lambda: sums(world.snapshot()))
        writer.checkpoint()
        after, same = counted(world, lambda: sums(world.snapshot()))
        assert found == same == {("objects", OWNER, BUCKET): 60_000, ("bytes", OWNER, BUCKET): 60_000}
        assert (before, after) == (8, 3)  # an index, and a block a sum

        world.commit(writer, ("put", "objects", [obj(f"n{n:06}", content_length=3) for n in range(10)]))
        writer.checkpoint()
        near, found = counted(world, lambda: sums(world.snapshot()))
        assert found["bytes", OWNER, BUCKET] == 60_020
        assert near < 12  # only the blocks of keys that something lies over


def test_sums_of_users_tables_have_groups_of_any_kind(world: World) -> None:
    catalog = Catalog(world.store)
    catalog.register(messages(TABLE)["Reading"])
    given = [
        {"room": b"\x00\xff", "at": 1, "count": 5, "kind": "a"},
        {"room": b"\x00\xff", "at": 2, "count": -7},
        {"room": b"", "at": 3, "kind": "a"},
    ]
    expected = {
        ("readings",): 3,
        ("per room", ""): 0,
        ("per room", "00ff"): -2,
        ("per kind", ""): -7,
        ("per kind", "a"): 5,
    }
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "lab.readings", given))
        assert sums(world.snapshot(), "lab.readings") == expected
        writer.checkpoint()
        assert sums(world.snapshot(), "lab.readings") == expected
        world.commit(writer, ("delete", "lab.readings", {"room": b"", "at": 3}))
        del expected["per room", ""]
        assert sums(world.snapshot(), "lab.readings") == expected | {("readings",): 2}


def test_a_sum_that_is_declared_anew_is_not_answered_from_what_was_kept(world: World) -> None:
    catalog = Catalog(world.store)
    catalog.register(messages(TABLE)["Reading"])
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "lab.readings", [{"room": b"a", "at": n, "count": n} for n in range(4)]))
        writer.checkpoint()
    other = Catalog(world.store)
    other.register(messages(TABLE.replace('field: "count" group: "room"', 'field: "at" group: "room" group: "at"'))["Reading"])
    with world.writer("v", catalog=other) as writer:
        world.commit(writer, ("put", "lab.readings", {"room": b"b", "at": 9, "count": 1}))
    found = sums(world.snapshot(), "lab.readings")
    assert {key: value for key, value in found.items() if key[0] == "per room"} == {
        **{("per room", "61", str(n)): n for n in range(4)},
        ("per room", "62", "9"): 9,
    }


def test_sums_of_several_writers_checkpoints_count_each_row_once(world: World) -> None:
    with world.writer("a") as one, world.writer("b") as two:
        for writer in (one, two):
            world.commit(writer, ("put", "objects", [obj(f"n{n:03}", content_length=1) for n in range(2_000)]))
            writer.checkpoint()
    assert sums(world.snapshot()) == {("objects", OWNER, BUCKET): 1_000 * 2, ("bytes", OWNER, BUCKET): 2_000}
