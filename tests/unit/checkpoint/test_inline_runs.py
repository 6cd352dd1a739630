"""Runs that a checkpoint holds itself: what they save, what stays as it is, and that they are not lost with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from bucketcatalog.checkpoint import plan
from bucketcatalog.format.blocks import block_place
from bucketcatalog.format.checkpoints import Checkpoint, encode_checkpoint
from bucketcatalog.format.runs import InlineRun
from bucketcatalog.format.sealing import seal_block
from bucketcatalog.log.segments import INLINE_RUN_BYTES
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model import paths
from bucketcatalog.query.difference import live_sides
from bucketcatalog.store.faults import Counting
from bucketcatalog.v1 import log_pb2
from bucketcatalog.write.writer import Writer

from ...kit.world import DAY, World, bucket, names, obj, rows

TABLES = ("buckets", "objects", "object_versions", "deleted_buckets", "deleted_objects", "deleted_object_versions", "sums")


def newest(world: World) -> Checkpoint:
    (checkpoint,) = world.snapshot().view.checkpoints
    return checkpoint


def touch(world: World, writer: Writer, first: int, count: int = 3) -> None:
    """Put and end rows of three tables, so that each has live rows, tombstones of both kinds and stubs."""
    numbers = range(first, first + count)
    version = {"version_id": "v", "ordinal": 1}
    world.commit(
        writer,
        ("put", "buckets", [bucket(f"b{n}") for n in numbers]),
        ("put", "objects", [obj(f"o{n}", content_length=n) for n in numbers]),
        ("put", "object_versions", [obj(f"o{n}", **version) for n in numbers]),
    )
    world.commit(
        writer,
        ("put", "objects", obj(f"o{first}", content_length=7)),
        ("delete", "objects", [obj(f"o{first + 1}"), obj("never")]),
        ("delete", "buckets", bucket(f"b{first}")),
        ("delete", "object_versions", obj(f"o{first}", version_id="v")),
    )


def answers(world: World) -> dict[str, list[dict[str, object]]]:
    return {table: rows(world.snapshot(), table) for table in TABLES}


def puts(world: World) -> list[str]:
    assert isinstance(world.store, Counting)
    return sorted(name for (method, name), count in world.store.names.items() if method == "put" for _ in range(count))


def test_a_checkpoint_of_many_tables_puts_itself_its_marker_and_one_segment() -> None:
    world = World.counting()
    with world.writer() as writer:
        touch(world, writer, 0)
        expected = answers(world)
        world.store.reset()
        writer.checkpoint()
        assert len(puts(world)) == 3
        made = newest(world)
        assert len(made.segments) == 1 and len(made.runs) > 10
        assert {run.table for run in made.runs} == {"buckets", "objects", "object_versions"}
        assert answers(world) == expected
    assert list(world.catalog().verify(deep=True)) == []


def test_what_lies_in_the_checkpoint_is_read_without_a_request() -> None:
    world = World.counting()
    with world.writer() as writer:
        touch(world, writer, 0)
        writer.checkpoint()
    made, snapshot = newest(world), world.snapshot()
    inside = {inline.run.table for inline in made.inline if inline.run.is_of_rows} - {s.run.table for s in made.segments}
    assert inside
    table = min(inside)
    scan = snapshot.scan(table)
    world.store.reset()
    scan.to_arrow()
    assert sum(world.store.requests.values()) == 0
    assert scan.explain().splitlines()[-1].startswith("requests: 0 (0 blocks, 0 indexes")


def test_later_checkpoints_hold_it_again_until_it_is_merged() -> None:
    world = World.counting()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(f"n{n:05}") for n in range(3_000)]), ("put", "buckets", bucket("b")))
        writer.checkpoint()
        (before,) = (inline for inline in newest(world).inline if inline.run.table == "buckets")
        for number in range(6):
            world.commit(writer, ("put", "objects", obj(f"n{number:05}", content_length=number)))
            world.store.reset()
            writer.checkpoint()
            assert len(puts(world)) == 3
            (again,) = (inline for inline in newest(world).inline if inline.run.table == "buckets")
            assert again.run == before.run and [b.data for b in again.blocks] == [b.data for b in before.blocks]
            assert list(world.catalog().verify(deep=True)) == []
        world.commit(writer, ("put", "buckets", bucket("c")))
        writer.checkpoint(full=True)
        assert names(world.snapshot(), "buckets") == ["b", "c"]
    lengths = [row["content_length"] for row in rows(world.snapshot(), "objects")]
    assert lengths[:6] == list(range(6)) and len(lengths) == 3_000


def test_large_runs_lie_in_segments_and_the_others_as_far_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(f"n{n:05}", etag=f"{n * 7919 % 99991:032}") for n in range(3_000)]))
        touch(world, writer, 0)
        writer.checkpoint()
        made = newest(world)
        assert max(segment.size for segment in made.segments) > INLINE_RUN_BYTES
        assert all(inline.size <= INLINE_RUN_BYTES for inline in made.inline)
        sizes = sorted(inline.size for inline in made.inline)
        monkeypatch.setattr(plan, "INLINE_BYTES", sum(sizes[:4]))
        touch(world, writer, 10)
        writer.checkpoint(full=True)
        held = newest(world).inline
        assert 0 < len(held) < len(sizes) and sum(inline.size for inline in held) <= sum(sizes[:4])
    assert list(world.catalog().verify(deep=True)) == []


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_lost_checkpoint_is_made_again_with_what_it_held(rounds: int) -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(f"n{n:05}") for n in range(3_000)]))
        writer.checkpoint()
        for number in range(rounds):
            touch(world, writer, 10 * number)
            writer.checkpoint()
    expected, made = answers(world), newest(world)
    assert made.inline and any(run.level for run in made.runs)
    for info in list(world.store.list("")):
        if info.name.endswith(".ckpt") or (info.name.endswith(".txn") and f"{made.revision:020}" not in info.name):
            world.store.delete(info.name)
    world.clock.tick(DAY)
    done = world.catalog().repair(dry_run=False, clock=world.clock)
    assert "rebuild" in {action.what for action in done.actions if action.done}
    assert answers(world) == expected


def rewritten(world: World, change: Callable[[InlineRun], InlineRun]) -> None:
    """The newest checkpoint with another run of live buckets in it, and nothing else."""
    made = newest(world)
    inline = tuple(change(one) if (one.run.table, one.run.name) == ("buckets", "") else one for one in made.inline)
    assert inline != made.inline or any(a.blocks[0].data != b.blocks[0].data for a, b in zip(inline, made.inline, strict=True))
    world.store.put(paths.checkpoint(made.writer, "default", made.head), encode_checkpoint(replace(made, inline=inline)))


def resealed(inline: InlineRun, change: Callable[[bytes], bytes]) -> InlineRun:
    """The run with its only block changed and sealed again."""
    (place,) = inline.blocks
    assert place.data is not None
    data, _ = seal_block(change(place.data[:-6]))  # without its checksum
    placed = block_place("", data, 0, log_pb2.Block.FromString(data).header)
    return replace(inline, blocks=(placed,), run=replace(inline.run, newest=placed.header.newest))


def few(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(f"n{n:05}") for n in range(100)]), ("put", "buckets", bucket("b")))
        writer.checkpoint()


def test_a_block_of_a_later_release_is_held_again_byte_for_byte() -> None:
    """It may have fields that this release does not know, which protobuf would write behind the checksum."""
    world = World()
    few(world)
    rewritten(world, lambda one: resealed(one, lambda body: body + b"\x50\x01"))
    assert list(world.catalog().verify()) == []
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("z")))
        writer.checkpoint()
    assert names(world.snapshot(), "buckets") == ["b"] and list(world.catalog().verify(deep=True)) == []


def later(body: bytes) -> bytes:
    """A block whose header says that it holds something newer than it does."""
    message = log_pb2.Block.FromString(body)
    message.header.newest += 1
    return message.SerializeToString(deterministic=True)


@pytest.mark.parametrize("more", [0, 2])
def test_a_wrong_run_makes_repair_do_without_every_checkpoint_that_holds_it(more: int) -> None:
    world = World()
    few(world)
    rewritten(world, lambda one: resealed(one, later))
    holders = [paths.checkpoint("w", "default", newest(world).head)]
    for number in range(more):
        with world.writer() as writer:
            world.commit(writer, ("put", "objects", obj(f"more{number}")))
            writer.checkpoint()
        holders.append(paths.checkpoint("w", "default", newest(world).head))
    found = sorted((finding.code, finding.file) for finding in world.catalog().verify())
    assert found == sorted(("WRONG_BLOCK", name) for name in holders)
    world.clock.tick(DAY)
    done = world.catalog().repair(dry_run=False, clock=world.clock)
    assert sorted(action.subject for action in done.actions if action.what == "drop" and action.done) == sorted(holders)
    assert done.lost == ()
    assert [f for f in world.catalog().verify() if f.severity is Severity.ERROR] == []
    assert names(world.snapshot(), "buckets") == ["b"]


def test_a_difference_reads_nothing_of_a_table_whose_runs_stay() -> None:
    world = World.counting()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(f"n{n:06}") for n in range(20_000)]))
        writer.checkpoint()
        objects = [obj(name, content_length=1) for name in ("n000000", "n019999")]
        world.commit(writer, ("put", "objects", objects), ("put", "buckets", [bucket(f"b{n:03}") for n in range(100)]))
        writer.checkpoint()
        before = world.snapshot()
        world.commit(writer, ("put", "buckets", bucket("c")))
        writer.checkpoint()
        after = world.snapshot()
    kept = [one for one in newest(world).inline if one.run.table == "objects" and one.run.level]
    assert kept and kept[0].blocks[0].name not in {info.name for info in world.store.list("w/default/segments/")}
    assert list(live_sides(before, after, after.table("objects"))) == []
