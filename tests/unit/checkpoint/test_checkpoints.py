"""Checkpoints are only an optimisation: whatever there are, every answer is the one from the transactions alone."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write.writer import Writer

from ...kit.world import BUCKET, MINUTE, OWNER, World, bucket, names, obj, rows, version

ID = "aaaaaaaa-0000-4000-8000-000000000001"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def writer(world: World) -> Writer:
    return world.writer()


def without_checkpoints(world: World) -> World:
    """The same store with its transactions only."""
    plain = World()
    plain.clock.now = world.clock.now
    for info in world.store.list(""):
        if info.name.endswith(".txn"):
            plain.store.put(info.name, world.store.get(info.name))
    return plain


def answers(world: World, **options: Any) -> dict[str, Any]:
    """Everything that a user can ask of a snapshot."""
    snapshot = world.snapshot(**options)
    wide = ["name", "id", "content_length", "created", "modified", "_version", "_commit_timestamp", "_writer", "_revision"]
    found: dict[str, Any] = {
        "version": snapshot.version,
        "objects": rows(snapshot, "objects", wide),
        "deleted": rows(snapshot, "deleted_objects", [*wide, "deleted_at"]),
        "buckets": rows(snapshot, "buckets"),
        "deleted buckets": rows(snapshot, "deleted_buckets"),
        "conflicts": sorted(map(str, rows(snapshot, "conflicts"))),
        "forks": rows(snapshot, "forks"),
        "log": rows(snapshot, "log"),
        "list": snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, delimiter="/").groups,
    }
    found["get"] = {row["name"]: snapshot.get("objects", **obj(row["name"])) for row in found["objects"]}
    return found


def step(world: World, writer: Writer, number: int) -> None:
    """Every kind of event, on keys that other steps touch too."""
    key = f"{number % 3}/k"
    match number % 6:
        case 0:
            world.commit(
                writer,
                ("put", "objects", [obj(key, id=ID, content_length=number), obj(f"n/{number}")]),
                ("put", "buckets", bucket("b")),
            )
        case 1:
            world.commit(writer, ("put", "objects", [obj(f"c/{n:02}", content_length=n * number) for n in range(66)]))
        case 2:
            world.commit(
                writer, ("delete", "objects", [obj("c/03"), obj("nothing"), obj(key)]), ("delete", "buckets", bucket("b"))
            )
        case 3:
            world.commit(writer, ("put", "objects", obj(key, id=ID), {"expect": "absent"}), ("put", "objects", obj(key, id=ID)))
        case 4:
            name = version(obj("c/05"), world.snapshot())
            world.commit(
                writer, ("put", "objects", obj("c/05")), ("update", "objects", obj("c/05", content_length=77, _version=name))
            )
        case _:
            ended = world.snapshot().scan("deleted_objects", columns=["name", "_version"]).to_arrow().to_pylist()
            world.commit(writer, ("purge", "objects", [obj(row["name"], _version=row["_version"]) for row in ended[:1]]))


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("scope", ["own", "all", "mixed"])
def test_answers_equal_those_from_transactions_alone_now_and_then(world: World, every: int, scope: str) -> None:
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


def test_late_transactions_below_a_checkpoint_are_read(world: World) -> None:
    slow, fast = world.writer("slow"), world.writer("fast")
    hidden = MemoryStore(clock=world.clock)
    late = Catalog(hidden).writer("late", clock=world.clock)
    world.commit(slow, ("put", "objects", obj("k", content_length=1)))
    world.clock.tick()
    with late.transaction() as tx:
        tx.put("objects", obj("k", content_length=2))
        tx.put("objects", obj("late"))
    world.commit(fast, ("put", "objects", obj("k", content_length=3)))
    world.commit(fast, ("delete", "objects", obj("k")))
    world.writer("compactor-1").checkpoint(scope="all")
    for info in hidden.list(""):
        world.store.put(info.name, hidden.get(info.name))
    for again in range(3):
        snapshot = world.snapshot()
        assert names(snapshot) == ["late"]
        ended = [row for row in rows(snapshot, "deleted_objects") if row["name"] == "k"]
        assert [row["content_length"] for row in ended] == [1, 2, 3]
        assert [row["deleted_at"] for row in ended] == sorted(row["deleted_at"] for row in ended)
        assert answers(world) == answers(without_checkpoints(world))
        world.commit(fast, ("put", "objects", obj(f"again{again}")))
        world.writer("compactor-1").checkpoint(scope="all")
        world.commit(fast, ("delete", "objects", obj(f"again{again}")))


def test_late_transactions_of_the_same_writer_are_found_after_its_checkpoint(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "objects", obj("a")))
    crashed = World(MemoryStore(clock=world.clock))
    crashed.clock = world.clock
    for info in world.store.list(""):
        crashed.store.put(info.name, world.store.get(info.name))
    crashed.commit(crashed.writer(), ("put", "objects", obj("stray")))
    world.commit(writer, ("put", "objects", obj("b")))
    writer.checkpoint()
    for info in crashed.store.list(""):
        if info.name.endswith(".txn"):
            world.store.put(info.name, crashed.store.get(info.name))
    with pytest.warns(match="forked"):
        assert names(world.snapshot()) == ["a", "b", "stray"]
    world.clock.tick(60 * MINUTE)
    with world.writer() as joining:
        world.commit(joining, ("put", "objects", obj("c")))
        joining.checkpoint()
    assert names(world.snapshot()) == ["a", "b", "c", "stray"]
    assert answers(world) == answers(without_checkpoints(world))


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
