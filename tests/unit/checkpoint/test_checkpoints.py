"""Checkpoints are only an optimisation: whatever there are, every answer is the one from the transactions alone."""

from __future__ import annotations

import io
import itertools
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog, InvalidOption, clock
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.store.faults import Counting
from bucketcatalog.write.writer import Writer

from ...kit.world import ID_1, MINUTE, OWNER, World, bucket, messages, names, obj, proto, rows, version
from .conftest import answers, without_checkpoints


def step(world: World, writer: Writer, number: int) -> None:
    """Every kind of event, on keys that other steps touch too."""
    key = f"{number % 3}/k"
    match number % 6:
        case 0:
            world.commit(
                writer,
                ("put", "objects", [obj(key, id=ID_1, content_length=number), obj(f"n/{number}")]),
                ("put", "buckets", bucket("b")),
            )
        case 1:
            world.commit(writer, ("put", "objects", [obj(f"c/{n:02}", content_length=n * number) for n in range(66)]))
        case 2:
            world.commit(
                writer, ("delete", "objects", [obj("c/03"), obj("nothing"), obj(key)]), ("delete", "buckets", bucket("b"))
            )
        case 3:
            world.commit(
                writer, ("put", "objects", obj(key, id=ID_1), {"expect": "absent"}), ("put", "objects", obj(key, id=ID_1))
            )
        case 4:
            name = version(obj("c/05"), world.snapshot())
            world.commit(
                writer, ("put", "objects", obj("c/05")), ("update", "objects", obj("c/05", content_length=77, _version=name))
            )
        case _:
            ended = world.snapshot().scan("deleted_objects", columns=["name", "_version"]).to_arrow().to_pylist()
            world.commit(writer, ("purge", "objects", [obj(row["name"], _version=row["_version"]) for row in ended[:1]]))


@pytest.mark.parametrize(("scope", "every"), [("own", 3), ("all", 1), ("mixed", 1), ("mixed", 3)])
def test_answers_equal_those_from_transactions_alone_now_and_then(world: World, scope: str, every: int) -> None:
    writers = [world.writer(name) for name in ("u", "v", "w")]
    compactor = world.writer("compactor-1")
    moments = []
    for number in range(12):
        step(world, writers[number % 3], number)
        if number % every == 0:
            if scope != "all":
                writers[number // every % 3].checkpoint()
            if scope != "own" and (scope == "all" or number % 2):
                compactor.checkpoint(scope="all")
        moments.append((world.clock.now, world.snapshot().version))
    plain = without_checkpoints(world)
    assert answers(world) == answers(plain)
    for time, cut in moments[1::4]:
        assert answers(world, timestamp=f"@{time}") == answers(plain, timestamp=f"@{time}")
        assert answers(world, version=cut) == answers(plain, version=cut)
    for (_, one), (_, two) in itertools.pairwise(moments[::4]):
        for method in ("changes", "diff"):
            found = [getattr(at.catalog(), method)(start=one, end=two).to_arrow() for at in (world, plain)]
            assert found[0].equals(found[1])


def test_an_own_checkpoint_covers_what_its_writer_wrote(world: World, writer: Writer) -> None:
    other = world.writer("v")
    world.commit(other, ("put", "objects", obj("theirs")))
    world.commit(writer, ("put", "objects", obj("ours")))
    result = writer.checkpoint()
    assert result is not None and (result.rows, result.revision) == (1, 0) and result.version.startswith("w@0:")
    assert {t.writer for t in world.snapshot().view.tail} == {"v"}
    assert names(world.snapshot()) == ["ours", "theirs"]


def test_a_checkpoint_of_all_covers_every_writers_cut(world: World) -> None:
    for name in ("one", "two"):
        world.commit(world.writer(name), ("put", "objects", obj(name)))
    result = world.writer("compactor-1").checkpoint(scope="all")
    assert result is not None and result.rows == 2
    assert world.snapshot().view.tail == ()
    assert names(world.snapshot()) == ["one", "two"]


def many(world: World, writer: Writer, count: int) -> None:
    folder = world.clock.now
    world.commit(writer, ("put", "objects", [obj(f"{folder}/{n * 7919:09}", content_length=n**4) for n in range(count)]))


def stored(world: World) -> tuple[int, list[object]]:
    """The live rows and the tombstones; asking for each by its key would take long."""
    found = [rows(world.snapshot(), table, ["name", "content_length", "_version"]) for table in ("objects", "deleted_objects")]
    return len(found[0]), found


@pytest.mark.parametrize("scopes", [("all", "all", "all"), ("own", "all", "own"), ("all", "own", "all")])
def test_a_lone_compactors_checkpoint_of_either_scope_refers_again_to_what_has_not_changed(
    world: World, scopes: tuple[Literal["own", "all"], ...]
) -> None:
    writer = world.writer("compactor-1")
    many(world, writer, 8_000)
    first = writer.checkpoint(scope=scopes[0])
    assert first is not None and first.bytes > 80_000
    for scope in scopes[1:]:
        many(world, writer, 10)
        result = writer.checkpoint(scope=scope)
        assert result is not None and result.reused_bytes > first.bytes // 2 > result.bytes
        assert writer.checkpoint(scope=scope) is None
    assert stored(world) == stored(without_checkpoints(world))


def test_the_first_checkpoint_of_all_refers_again_to_its_compactors_own_though_others_have_written(world: World) -> None:
    writer, other = world.writer("compactor-1"), world.writer("v")
    many(world, writer, 8_000)
    own, first = writer.checkpoint(), names(world.snapshot())[0]
    many(world, writer, 10)
    many(world, other, 10)
    for _ in range(2):
        world.commit(other, ("delete", "objects", [obj(first), obj("none")]))
        result = writer.checkpoint(scope="all")
        assert own is not None and result is not None and result.reused_bytes > own.bytes // 2 > result.bytes
    assert {*world.snapshot().view.checkpoints[0].cut.heads} == {"v", "compactor-1"}
    assert stored(world) == stored(without_checkpoints(world))


def test_the_first_checkpoint_of_all_refers_to_no_segment_of_anothers_that_covers_more(world: World) -> None:
    writer = world.writer("compactor-2")
    many(world, writer, 8_000)
    assert world.writer("compactor-1").checkpoint(scope="all") is not None
    many(world, writer, 10)
    result = writer.checkpoint(scope="all")
    assert result is not None and result.reused_bytes == 0
    (read,) = world.snapshot().view.checkpoints
    assert read.writer == writer.id and {segment.writer for segment in read.segments} == {writer.id}


def test_a_checkpoint_of_all_refers_to_no_segment_of_a_plain_writers_own(world: World, writer: Writer) -> None:
    """What lies below a plain writer's prefix may be another file tomorrow: its rows are written once more."""
    many(world, writer, 8_000)
    own = writer.checkpoint()
    result = world.writer("compactor-1").checkpoint(scope="all")
    assert own is not None and result is not None
    assert result.reused_bytes == 0 and result.rows == own.rows == 8_000
    (read,) = world.snapshot().view.checkpoints
    assert {segment.writer for segment in read.segments} == {"compactor-1"}
    assert stored(world) == stored(without_checkpoints(world))


def test_who_is_no_compactor_writes_no_checkpoint_of_all(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "objects", obj("a")))
    before = [info.name for info in world.store.list("")]
    with pytest.raises(InvalidOption, match="'w' cannot write a checkpoint of every writer") as caught:
        writer.checkpoint(scope="all")
    assert "compactor-" in str(caught.value.next_step) and "scope own" in str(caught.value.next_step)
    assert [info.name for info in world.store.list("")] == before
    assert writer.checkpoint() is not None


def test_own_checkpoints_and_one_of_all_are_read_together(world: World) -> None:
    one, two = world.writer("one"), world.writer("two")
    for n in range(3):
        world.commit(one, ("put", "objects", obj("shared", content_length=n)))
        world.commit(two, ("put", "objects", obj("shared", content_length=10 + n)), ("put", "objects", obj(f"two{n}")))
        if n == 0:
            world.writer("compactor-1").checkpoint(scope="all")
    one.checkpoint()
    two.checkpoint()
    world.commit(one, ("delete", "objects", obj("two0")))
    assert answers(world) == answers(without_checkpoints(world))
    assert names(world.snapshot()) == ["shared", "two1", "two2"]


def test_nothing_new_is_no_checkpoint(world: World, writer: Writer) -> None:
    assert writer.checkpoint() is None
    world.commit(writer, ("put", "objects", obj("a")))
    assert writer.checkpoint() is not None
    before = len(list(world.store.list("")))
    assert writer.checkpoint() is None
    assert len(list(world.store.list(""))) == before
    compactor = world.writer("compactor-1")
    assert compactor.checkpoint(scope="all") is not None, "it reads no plain writer's own"
    assert compactor.checkpoint(scope="all") is None
    world.commit(world.writer("v"), ("put", "objects", obj("b")))
    assert compactor.checkpoint(scope="all") is not None
    before = len(list(world.store.list("")))
    assert compactor.checkpoint(scope="all") is None
    assert len(list(world.store.list(""))) == before


def test_checkpoints_have_no_other_scopes(world: World, writer: Writer) -> None:
    with pytest.raises(InvalidOption):
        writer.checkpoint(scope="some")  # type: ignore[arg-type]


def test_time_travel_picks_the_newest_checkpoint_within(world: World, writer: Writer) -> None:
    cuts = []
    for n in range(4):
        world.commit(writer, ("put", "objects", obj(str(n))))
        if n % 2 == 0:
            writer.checkpoint()
        cuts.append((world.clock.now, world.snapshot().version))
    for number, (time, cut) in enumerate(cuts):
        for options in ({"timestamp": f"@{time}"}, {"version": cut}, {"version": number}):
            snapshot = world.snapshot(**options)
            assert [c.revision for c in snapshot.view.checkpoints] == [number - number % 2]
            assert [t.revision for t in snapshot.view.tail] == ([number] if number % 2 else [])
            assert names(snapshot) == [str(n) for n in range(number + 1)]


def test_reading_behind_a_checkpoint_reads_no_transactions(world: World, writer: Writer) -> None:
    for n in range(20):
        world.commit(writer, ("put", "objects", obj(str(n))))
    writer.checkpoint()
    world.clock.tick(60 * MINUTE)
    counting = Counting(world.store)
    assert len(names(Catalog(counting).snapshot(database="default"))) == 20
    assert not any(name.endswith(".txn") for method, name in counting.names if method == "get")
    assert counting.requests["list_prefixes"] == 1 and counting.requests["list"] <= 2 and counting.requests["get_range"] <= 3


def test_a_crashed_checkpoint_leaves_files_that_nobody_minds(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "objects", obj("a")))
    writer.checkpoint()
    marker = next(info.name for info in world.store.list("") if "/newest/" in info.name)
    world.store.delete(marker)
    assert names(world.snapshot()) == ["a"] and world.snapshot().view.checkpoints == ()
    again = writer.checkpoint()
    assert again is not None and names(world.snapshot()) == ["a"]


def test_the_state_a_checkpoint_holds_is_its_cut_not_the_history(world: World, writer: Writer) -> None:
    for n in range(50):
        world.commit(writer, ("put", "harvest_errors", {"source": "s", "path": "p", "message": str(n)}))
    result = writer.checkpoint()
    assert result is not None
    assert [r["message"] for r in rows(world.snapshot(), "harvest_errors")] == ["49"]


def test_a_checkpoint_of_stubs_without_stamps_can_be_written_again(world: World, writer: Writer) -> None:
    """A purge of a version that the checkpoint does not cover has no stamp of its own: its block says so by leaving the columns out."""
    world.commit(writer, ("put", "objects", obj("a")))
    purger = world.writer("purger")
    world.commit(purger, ("purge", "objects", {**obj("a"), "_version": version(obj("a"), world.snapshot())}))
    for number in range(2):
        purger.checkpoint()
        world.commit(purger, ("put", "buckets", bucket(f"b{number}")))
    purger.checkpoint()
    world.commit(writer, ("delete", "objects", obj("a")))

    assert rows(world.snapshot(), "deleted_objects") == rows(without_checkpoints(world).snapshot(), "deleted_objects") == []


def test_purge_of_a_version_that_has_not_arrived_survives_two_checkpoints() -> None:
    """The first keeps a stub that has no stamp at all; the second cannot write it and raises ``ValueError``."""
    world = World()
    writer = world.writer()
    world.commit(writer, ("purge", "buckets", {"owner": OWNER, "name": "b", "_version": f"{clock.uuid7(world.clock.now)}:0"}))
    writer.checkpoint()
    world.commit(writer, ("put", "objects", obj("a")))
    writer.checkpoint()
    assert names(world.snapshot()) == ["a"]


def test_a_merge_of_what_is_merged_tells_tombstones_of_live_keys_from_the_others_again() -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(name) for name in "abcd"]))
        world.commit(writer, ("put", "objects", [obj("a"), obj("c")]), ("delete", "objects", [obj("b"), obj("d")]))
        for name in ("one", "two"):  # the second merge reads a slice of objects without an overlay
            world.commit(writer, ("put", "buckets", bucket(name)))
            writer.checkpoint(full=True)
            (levels,) = world.snapshot().state("objects").levels()
            assert {run.block_class: sum(place.header.rows for place in run.places) for run in levels.lowest} == {
                BlockClass.LIVE: 2,
                BlockClass.ENDED: 2,
                BlockClass.SUPERSEDED: 2,
            }
            assert names(world.snapshot(), "deleted_objects") == ["a", "b", "c", "d"]


def test_a_full_merge_writes_the_zeros_of_columns_that_came_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of rows over which nothing lies."""
    monkeypatch.setattr("bucketcatalog.checkpoint.merge.MERGE_SLICE_ROWS", 1_000)
    world = World()
    for fields, first, count in (("", 0, 20_000), ("int64 n = 3; string t = 4;", 20_000, 10)):
        body = f'message R {{ option (table) = {{ name: "lab.r" key: "k" }}; int64 k = 1; optional string s = 2; {fields} }}'
        catalog = world.catalog()
        catalog.register(messages(proto(body))["R"])
        with world.writer(catalog=catalog) as writer:
            world.commit(writer, ("put", "lab.r", [{"k": n, "s": f"{n * 7919:08}"} for n in range(first, first + count)]))
            writer.checkpoint(full=True)
    (levels,) = world.snapshot().state("lab.r").levels()
    files = {place.name for run in levels.lowest for place in run.places}
    found = pa.concat_tables(pq.read_table(io.BytesIO(world.store.get(name)), columns=["n", "t"]) for name in sorted(files))
    assert (len(found), found["n"].null_count, found["t"].null_count) == (20_010, 0, 0)
