"""Rows that cannot be put again: those whose parent has ended, and those whose data may be gone."""

from __future__ import annotations

import pytest

from bucketcatalog import DataCollected, ParentEnded
from bucketcatalog.format.records import Boundary
from bucketcatalog.write.commit import Committed

from ....kit.restoring import ID, MAINTAINER, full, restore
from ....kit.world import BUCKET, World, bucket, messages, names, obj, proto, rows, version


def test_rows_of_a_bucket_that_has_ended_need_the_bucket_first(world: World) -> None:
    with world.writer() as w:
        world.commit(w, ("put", "buckets", bucket("b", id=BUCKET)))
        past = world.commit(w, ("put", "objects", obj("x", id=ID.format(1))))
        world.commit(w, ("delete", "objects", obj("x")), ("delete", "buckets", bucket("b")))
    planned = restore(world, past.version, dry_run=True)
    assert (planned.parent, planned.ended_parents, planned.put) == ("buckets", 1, 1)
    with pytest.raises(ParentEnded, match=f"{BUCKET}.*Restore 'buckets'"):
        restore(world, past.version)
    assert [info.name for info in world.store.list(f"{MAINTAINER}/")] == []
    restore(world, past.version, table="buckets")
    assert restore(world, past.version).ended_parents == 0
    assert names(world.snapshot()) == ["x"] and rows(world.snapshot(), "buckets")[0]["id"] == BUCKET


@pytest.mark.parametrize(
    "kinds", [("int32", "int32"), ("int64", "int32"), ("uint32", "int64"), ("string", "string"), ("bytes", "bytes")]
)
def test_rows_of_a_parent_that_has_ended_need_it_first_whatever_its_id_is(world: World, kinds: tuple[str, str]) -> None:
    declared = messages(
        proto(f"""
        message Box {{ option (table) = {{ name: "own.box" key: "name" id: "id" }}; string name = 1; optional {kinds[0]} id = 2; }}
        message Piece {{
          option (table) = {{ name: "own.piece" key: "name" parent: {{ table: "own.box" field: "box" }} }};
          string name = 1; optional {kinds[1]} box = 2;
        }}""")
    )
    catalog = world.catalog()
    catalog.register(list(declared.values()))
    one, two = {"string": ("7", "8"), "bytes": (b"7", b"8")}.get(kinds[0], (7, 8))
    with world.writer(catalog=catalog) as w:
        world.commit(w, ("put", "own.box", [{"name": "stays", "id": one}, {"name": "ends", "id": two}]))
        pieces = [{"name": "a", "box": one}, {"name": "b", "box": two}, {"name": "c", "box": two}, {"name": "wild"}]
        past = world.commit(w, ("put", "own.piece", pieces))
        world.commit(w, ("delete", "own.piece", [{"name": piece["name"]} for piece in pieces]))
        world.commit(w, ("delete", "own.box", {"name": "ends"}))
    planned = restore(world, past.version, "own.piece", dry_run=True)
    assert (planned.parent, planned.ended_parents, planned.put) == ("own.box", 1, 4)
    with pytest.raises(ParentEnded, match=f"with the id {two}[.] Next: Restore 'own.box'"):
        restore(world, past.version, "own.piece")
    restore(world, past.version, "own.box")
    assert restore(world, past.version, "own.piece").ended_parents == 0
    assert names(world.snapshot(), "own.piece") == ["a", "b", "c", "wild"]


def test_rows_whose_data_may_be_gone_are_refused_or_left_out(world: World, past: Committed) -> None:
    ended = world.snapshot(version=past.version)
    with world.writer() as w:
        world.commit(w, ("purge", "objects", obj("gone", _version=version(obj("gone"), ended))))
    assert restore(world, past.version, dry_run=True).skipped == 1
    files = [info.name for info in world.store.list("")]
    with pytest.raises(DataCollected):
        restore(world, past.version)
    assert [info.name for info in world.store.list("")] == files
    done = restore(world, past.version, skip=True)
    assert (done.skipped, done.put) == (1, 2)
    assert names(world.snapshot()) == ["again", "kept", "new row", "over"]


@pytest.mark.parametrize("covered", [False, True])
def test_what_somebody_has_purged_is_put_again_where_that_is_asked_for_and_no_boundary_has_reached_its_end(
    world: World, covered: bool
) -> None:
    """Whoever deletes a row can purge it too; its data stays until collection comes to it."""
    with world.writer() as w:
        past = world.commit(w, ("put", "objects", [full("one", 1), full("two", 2)]))
    with world.writer("mallory") as mallory:
        then = world.snapshot()
        ends = [world.commit(mallory, ("delete", "objects", obj(name))) for name in ("one", "two")]
        gone = [obj(name, _version=version(obj(name), then)) for name in ("one", "two")]
        world.commit(mallory, ("purge", "objects", gone))
    with world.writer(MAINTAINER) as held:
        held.bound("collect", Boundary(data=ends[0].commit_time, settled=ends[0].commit_time))
        if covered:
            held.checkpoint(scope="all")
    assert names(world.snapshot(), "deleted_objects") == []
    assert (restore(world, past.version, dry_run=True).put, restore(world, past.version, dry_run=True).skipped) == (0, 2)
    planned = restore(world, past.version, dry_run=True, with_purged=True)
    assert (planned.put, planned.skipped) == (1, 1)
    with pytest.raises(DataCollected, match="may be gone") as refused:
        restore(world, past.version, with_purged=True)
    assert "with_purged=True" in refused.value.next_step
    restore(world, past.version, with_purged=True, skip=True)
    (row,) = rows(world.snapshot(), "objects")
    assert (row["name"], row["content_length"], row["tags"]) == ("two", 2, [("a", "b")])


@pytest.mark.parametrize(("from_end", "gone"), [(-1, False), (0, True), (1, True)])
@pytest.mark.parametrize("covered", [False, True])
def test_data_is_gone_from_the_boundary_at_which_its_version_ended(
    world: World, from_end: int, gone: bool, covered: bool
) -> None:
    with world.writer() as w, world.writer(MAINTAINER) as held:
        past = world.commit(w, ("put", "objects", [full("gone", 1), full("later", 2)]))
        end = world.commit(w, ("delete", "objects", obj("gone")))
        world.commit(w, ("put", "objects", full("later", 3)))
        world.clock.tick()
        held.bound("collect", Boundary(data=end.commit_time + from_end, settled=end.commit_time + from_end))
        if covered:
            held.checkpoint(scope="all")
    planned = restore(world, past.version, dry_run=True)
    assert (planned.put, planned.skipped) == ((1, 1) if gone else (2, 0))
    if gone:
        with pytest.raises(DataCollected):
            restore(world, past.version)
    restore(world, past.version, skip=True)
    assert names(world.snapshot()) == (["later"] if gone else ["gone", "later"])
