"""Reaping: the rows of parents that have ended are ended, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import InvalidOption, StaleRead
from bucketcatalog.format.records import Link, Void
from bucketcatalog.maintain.gc import parents
from bucketcatalog.maintain.gc.parents import Distinct
from bucketcatalog.maintain.gc.reap import Find, orphaned, reap
from bucketcatalog.model.tables import Table
from bucketcatalog.query.snapshot import Snapshot

from ....kit import collecting
from ....kit.collecting import reaped
from ....kit.world import BUCKET, HOUR, OTHER, OWNER, World, bucket, messages, names, obj, proto, rows


def test_objects_of_a_bucket_that_ended_a_day_ago_are_ended_and_no_others(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "buckets", [bucket("cats", id=BUCKET), bucket("dogs", id=OTHER)]))
    world.commit(writer, ("put", "objects", [obj("a"), obj("b"), obj("dog", bucket_id=OTHER), obj("wild", bucket_id=OWNER)]))
    world.commit(writer, ("delete", "buckets", bucket("cats")))
    assert reaped(world).rows["objects"] == 0
    world.clock.tick(24 * HOUR)
    told = collecting.reap(world, dry_run=True)
    assert (told.dry_run, told.rows["objects"], told.parents) == (True, 2, 1)
    assert len(names(world.snapshot())) == 4
    assert reaped(world).rows["objects"] == 2
    assert names(world.snapshot()) == ["wild", "dog"], "a bucket that never was has not ended"
    assert names(world.snapshot(), "deleted_objects") == ["a", "b"]
    assert reaped(world).rows["objects"] == 0


def test_a_bucket_of_which_another_version_is_live_has_not_ended(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)), ("put", "objects", obj("a")))
    world.commit(writer, ("delete", "buckets", bucket("cats")))
    world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET, region="here")))
    world.clock.tick(25 * HOUR)
    assert reaped(world).parents == 0 and names(world.snapshot()) == ["a"]


def test_a_bucket_of_which_a_version_ended_lately_is_left(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)), ("put", "objects", obj("a")))
    world.commit(writer, ("delete", "buckets", bucket("cats")))
    world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)))
    world.clock.tick(25 * HOUR)
    world.commit(writer, ("delete", "buckets", bucket("cats")))
    assert reaped(world).parents == 0 and names(world.snapshot()) == ["a"]
    world.clock.tick(25 * HOUR)
    assert reaped(world).rows["objects"] == 1


def test_a_new_bucket_under_the_name_of_one_that_ended_keeps_its_objects(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "buckets", bucket("cats")))
    (old,) = world.snapshot().scan("buckets").to_arrow()["id"].to_pylist()
    world.commit(writer, ("put", "objects", obj("old", bucket_id=old)), ("delete", "buckets", bucket("cats")))
    world.commit(writer, ("put", "buckets", bucket("cats")))
    (new,) = world.snapshot().scan("buckets").to_arrow()["id"].to_pylist()
    world.commit(writer, ("put", "objects", obj("new", bucket_id=new)))
    world.clock.tick(25 * HOUR)
    assert reaped(world).rows["objects"] == 1 and names(world.snapshot()) == ["new"]


def test_objects_of_a_bucket_that_was_forgotten_are_ended_too(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)))
    (version,) = world.snapshot().scan("buckets", columns=["_version"]).to_arrow()["_version"].to_pylist()
    world.commit(writer, ("delete", "buckets", bucket("cats")))
    world.commit(writer, ("purge", "buckets", bucket("cats", _version=version)))
    world.clock.tick(25 * HOUR)
    world.commit(writer, ("put", "objects", obj("late")))
    assert reaped(world).rows["objects"] == 1


def test_a_row_that_is_overwritten_meanwhile_is_not_ended(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)), ("put", "objects", obj("a", content_length=1)))
    world.commit(writer, ("delete", "buckets", bucket("cats")))
    world.clock.tick(25 * HOUR)
    collecting.reap(world)
    world.clock.tick(7 * HOUR)
    world.commit(writer, ("put", "objects", obj("b")))
    stale = world.snapshot()
    world.commit(writer, ("put", "objects", obj("a", content_length=2)))
    with world.writer("maintainer-1") as held:
        assert reap(lambda: stale, held, 24 * HOUR).rows["objects"] == 2
    assert rows(world.snapshot(), columns=["name", "content_length"]) == [{"name": "a", "content_length": 2}]
    assert rows(world.snapshot(), "conflicts") == []


@pytest.mark.parametrize("later", ["int32", "int64"])
def test_rows_are_ended_with_a_parent_whose_id_was_declared_wider_since(world: World, later: str) -> None:
    for name, kind in (("u", "int32"), ("v", later)):
        declared = messages(
            proto(f"""
            message Box {{ option (table) = {{ name: "own.box" key: "name" id: "id" }}; string name = 1; optional {kind} id = 2; }}
            message Piece {{
              option (table) = {{ name: "own.piece" key: "name" parent: {{ table: "own.box" field: "box" }} }};
              string name = 1; optional int32 box = 2;
            }}""")
        )
        catalog = world.catalog()
        catalog.register(list(declared.values()))
        writer = world.writer(name, catalog=catalog)
        boxes = [{"name": f"{name}{at}", "id": at} for at in (1, -2, 3)]
        world.commit(writer, ("put", "own.box", boxes), ("put", "own.piece", {"name": name, "box": -2 if name == "u" else 3}))
        world.commit(writer, ("delete", "own.box", [{"name": box["name"]} for box in boxes if box["id"] < 0]))
    world.clock.tick(25 * HOUR)
    assert reaped(world).rows["own.piece"] == 1 and names(world.snapshot(), "own.piece") == ["v"]


def meanwhile(world: World, happens: Callable[[], object]) -> Find:
    """Finds rows, which takes a while, in which something happens."""

    def find(snapshot: Snapshot, table: Table, ended: pa.Array) -> Iterator[pa.Table]:
        found = list(orphaned(snapshot, table, ended))
        world.clock.tick(HOUR)
        if found:
            happens()
        world.clock.tick()
        yield from found

    return find


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_rows_of_a_parent_that_is_put_back_while_they_are_looked_for_stay(world: World, is_checkpointed: bool) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "buckets", [bucket("cats", id=BUCKET), bucket("dogs", id=OTHER)]))
    world.commit(writer, ("put", "objects", [obj("a"), obj("b"), obj("dog", bucket_id=OTHER)]))
    world.commit(writer, ("delete", "buckets", [bucket("cats"), bucket("dogs")]))
    world.clock.tick(25 * HOUR)

    def put_back() -> None:
        world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)))
        if is_checkpointed:
            with world.writer("compactor-1") as compactor:
                compactor.checkpoint(scope="all")

    done = reaped(world, find=meanwhile(world, put_back))
    assert (done.rows["objects"], done.parents) == (1, 1)
    assert names(world.snapshot()) == ["a", "b"] and names(world.snapshot(), "deleted_objects") == ["dog"]


def test_rows_of_a_parent_whose_end_is_voided_while_they_are_looked_for_stay(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)), ("put", "objects", obj("a")))
    world.commit(writer, ("delete", "buckets", bucket("cats")))
    (ended,) = [t for t in world.snapshot().view.tail if t.revision == 1]
    world.clock.tick(25 * HOUR)

    def void() -> None:
        with world.writer("maintainer-2") as held:
            held.void([Void("w", Link(ended.revision, ended.uuid, ended.digest))])

    assert reaped(world, find=meanwhile(world, void)).rows["objects"] == 0
    assert names(world.snapshot(), "buckets") == ["cats"] and names(world.snapshot()) == ["a"]


def test_rows_are_not_ended_by_whoever_looked_long_ago(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)), ("put", "objects", obj("a")))
    world.commit(writer, ("delete", "buckets", bucket("cats")))
    world.clock.tick(25 * HOUR)
    collecting.reap(world)
    world.clock.tick(7 * HOUR)
    catalog = world.catalog()

    def look() -> Snapshot:
        found = catalog.snapshot()
        world.clock.tick(6 * HOUR)  # the process sleeps
        return found

    with world.writer("maintainer-1", catalog=catalog) as held, pytest.raises(StaleRead):
        reap(look, held, 24 * HOUR)
    assert names(world.snapshot()) == ["a"]


def test_the_rows_of_any_table_that_declares_a_parent_are_reaped(world: World) -> None:
    declared = proto(
        """message Upload {
          option (table) = {name: "s3.upload" key: "upload" id: "upload" parent: {table: "buckets" field: "bucket_id"}};
          string upload = 1;
          optional bytes bucket_id = 2 [(column) = {type: LOGICAL_TYPE_UUID}];
        }""",
        """message Part {
          option (table) = {name: "s3.part" key: "upload" key: "number" parent: {table: "s3.upload" field: "upload"}};
          string upload = 1;
          int32 number = 2;
        }""",
    )
    catalog = world.catalog()
    catalog.register(messages(declared).values())
    writer = world.writer(catalog=catalog)
    world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)))
    world.commit(
        writer,
        ("put", "s3.upload", [{"upload": "mine", "bucket_id": BUCKET}, {"upload": "nobody's"}]),
        ("put", "s3.part", [{"upload": "mine", "number": 1}, {"upload": "nobody's", "number": 2}]),
        ("delete", "buckets", bucket("cats")),
    )
    for uploads, parts in ((1, 0), (0, 1), (0, 0)):
        world.clock.tick(25 * HOUR)
        told = reaped(world)
        assert (told.rows["s3.upload"], told.rows["s3.part"]) == (uploads, parts)
    assert names_of(world, "s3.part") == [2]


def names_of(world: World, table: str) -> list[Any]:
    return world.snapshot().scan(table, columns=["number"]).to_arrow()["number"].to_pylist()


def test_reaping_refuses_an_age_that_readers_may_need(world: World) -> None:
    world.commit(world.writer(), ("put", "objects", obj("a")))
    with pytest.raises(InvalidOption, match="may be in use"):
        reaped(world, older_than="1h")
    assert reaped(world, older_than="1h", force=True).parents == 0


class Counted(Distinct):
    """Counts how often what came so far is joined."""

    joins = 0

    def values(self) -> pa.Array:
        self.joins += 1
        return super().values()


def test_ids_of_many_slices_are_joined_a_few_times_and_each_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parents, "_AT_ONCE", 0)
    found = Counted()
    for number in range(1_000):
        found.add(pa.array([b"%d" % number, b"%d" % (number // 3)]).unique())
    assert found.joins < 20
    assert sorted(found.values().to_pylist()) == sorted(b"%d" % number for number in range(1_000))
