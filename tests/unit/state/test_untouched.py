"""Which rows of the lowest level stand in its files as they are: put together with what lies over them they are what a scan reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from bucketcatalog import between, prefix
from bucketcatalog.log import segments
from bucketcatalog.query.files import Files
from bucketcatalog.query.reads import Read
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.state import untouched
from bucketcatalog.store.faults import Counting

from ...kit.natively import in_some_order, native_rows, put_together
from ...kit.world import BUCKET, OWNER, World, names, obj, version

NAMES = [f"{number:04}" for number in range(1_000)]


@pytest.fixture(autouse=True)
def _everything_in_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small a run is."""
    monkeypatch.setattr(segments, "INLINE_RUN_BYTES", 0)


@pytest.fixture
def world() -> World:
    """A thousand objects, of which the first ten were overwritten and the last ten deleted, merged."""
    made = World()
    with made.writer() as writer:
        made.commit(writer, ("put", "objects", [obj(name, content_length=1) for name in NAMES]))
        made.commit(writer, ("put", "objects", [obj(name, content_length=2) for name in NAMES[:10]]))
        made.commit(writer, ("delete", "objects", [obj(name) for name in NAMES[-10:]]))
    merge(made)
    return made


def merge(world: World, writer: str = "compactor-1") -> None:
    with world.writer(writer) as compactor:
        compactor.checkpoint(scope="all", full=True)


def files(snapshot: Snapshot, table: str = "objects", **options: Any) -> Files:
    read = snapshot.scan(table, **options)
    assert isinstance(read, Read)
    return read.files()


def is_the_same(snapshot: Snapshot, table: str = "objects", **options: Any) -> bool:
    """Whether the files and what lies over them are what a scan reads."""
    read = snapshot.scan(table, **options)
    assert isinstance(read, Read)
    return in_some_order(put_together(read, snapshot.files.store)) == in_some_order(read.to_arrow())


def left_out(found: Files) -> int:
    return sum(len(file.left_out) for file in found.native)


def test_of_what_is_merged_every_row_stands_in_files(world: World) -> None:
    snapshot = world.snapshot()
    live, ended = files(snapshot), files(snapshot, "deleted_objects")

    assert (live.why, live.touched, left_out(live)) == (None, 0, 0) and (ended.why, ended.touched, left_out(ended)) == (
        None,
        0,
        0,
    )
    assert [file.rows for file in live.native] == [990] and sum(file.rows for file in ended.native) == 20
    assert live.overlay.to_arrow().num_rows == 0
    (rows,) = native_rows(live, world.store)
    assert rows.equals(snapshot.scan("objects").to_arrow())
    assert is_the_same(snapshot, "deleted_objects")


CHANGES: dict[str, Callable[[Snapshot], tuple[Any, ...]]] = {
    "put": lambda _: ("put", "objects", [obj(name, content_length=3) for name in ("0005", "0500", "new")]),
    "update": lambda now: ("update", "objects", [{**obj("0500"), "content_length": 4, "_version": version(obj("0500"), now)}]),
    "blind delete": lambda _: ("delete", "objects", [obj("0005"), obj("0500"), obj("9999")]),
    "named delete": lambda now: ("delete", "objects", [{**obj("0500"), "_version": version(obj("0500"), now)}]),
    "purge": lambda now: (
        "purge",
        "objects",
        now.scan("deleted_objects", columns=["owner", "bucket_id", "name", "_version"]).to_arrow(),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("covered", ["", "by a checkpoint"])
def test_what_lies_over_files_is_left_out_of_them_and_shown_beside(
    world: World, change: str, covered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketcatalog.checkpoint.plan.lowest_merged", lambda levels, new: len(levels))
    with world.writer() as writer:
        world.commit(writer, CHANGES[change](world.snapshot()))
    if covered:
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
    snapshot = world.snapshot()
    found = [files(snapshot, table) for table in ("objects", "deleted_objects")]

    assert all(each.native and each.touched for each in found)
    assert left_out(found[0]) + left_out(found[1]) > 0
    assert is_the_same(snapshot) and is_the_same(snapshot, "deleted_objects")
    assert is_the_same(snapshot, columns=["name", "_version", "_commit_timestamp", "_writer", "_revision"])


@pytest.mark.parametrize(
    "where",
    [
        {"owner": OWNER, "bucket_id": BUCKET, "name": prefix("05")},
        {"owner": OWNER, "bucket_id": [BUCKET, OWNER], "name": between("0490", "0510")},
        {"content_length": 3},
        {"content_length": [1, None]},
        {"content_type": None},
        {"_writer": "w", "name": prefix("0")},
    ],
    ids=str,
)
def test_conditions_hold_for_native_rows_and_for_those_beside_them(world: World, where: dict[str, Any]) -> None:
    with world.writer() as writer:
        world.commit(writer, CHANGES["put"](world.snapshot()))
    snapshot = world.snapshot()

    assert files(snapshot, where=where).native
    assert is_the_same(snapshot, where=where, columns=["name", "content_length"])


def test_a_read_of_named_keys_looks_them_up(world: World) -> None:
    where = {"owner": OWNER, "bucket_id": BUCKET, "name": ["0005", "0500"]}
    found = files(world.snapshot(), where=where)

    assert not found.native and found.why == "its conditions name keys, which are looked up"
    assert found.overlay.to_arrow().num_rows == 2


def test_only_files_and_row_groups_that_can_hold_touched_keys_are_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "ROW_GROUP_ROWS", 100)
    monkeypatch.setattr("bucketcatalog.format.segments.ROW_GROUP_ROWS", 100)
    world = World.counting()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(name) for name in NAMES]))
        merge(world)
        world.commit(writer, ("put", "objects", obj("0500")))
    snapshot, store = world.snapshot(), world.store
    assert isinstance(store, Counting)
    files(snapshot)  # indexes are read once
    store.reset()
    found = files(snapshot)

    assert [file.left_out.to_pylist() for file in found.native] == [[500]]
    assert store.requests["head"] == 1 and store.requests["get_range"] == 2  # its footer, and the names of one row group


def test_the_files_of_one_checkpoint_are_the_base_and_what_another_has_lies_over_them(world: World) -> None:
    with world.writer("v") as writer:
        world.commit(writer, ("put", "objects", [obj("0007", content_length=9), obj("other")]))
        writer.checkpoint()
    snapshot = world.snapshot()
    found = files(snapshot)

    assert snapshot.state("objects").checkpoints == 2
    assert [file.rows for file in found.native] == [990] and found.touched == 2 and left_out(found) == 1
    assert is_the_same(snapshot) and is_the_same(snapshot, "deleted_objects")


def test_no_segment_of_a_plain_writer_is_read_natively() -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(name) for name in NAMES]))
        writer.checkpoint()
    found = files(world.snapshot())

    assert not found.native and found.why == "its lowest level is in no segment of a compactor or maintainer"
    assert names(world.snapshot()) == NAMES == found.overlay.to_arrow()["name"].to_pylist()


def test_without_a_checkpoint_nothing_is_read_natively() -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("a")))
    found = files(world.snapshot())

    assert not found.native and found.why == "no checkpoint holds its lowest level"
    assert found.overlay.to_arrow()["name"].to_pylist() == ["a"]


def test_small_runs_that_lie_in_a_checkpoint_itself_are_shown_beside_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "INLINE_RUN_BYTES", 16 << 10)
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(name) for name in NAMES]))
        world.commit(writer, ("put", "objects", [obj(name, content_length=2) for name in NAMES[:3]]))
        world.commit(writer, ("delete", "objects", obj(NAMES[-1])))
    merge(world)
    snapshot = world.snapshot()

    assert files(snapshot).native and not files(snapshot, "deleted_objects").native
    assert is_the_same(snapshot) and is_the_same(snapshot, "deleted_objects")


def test_who_reads_past_damage_reads_nothing_natively(world: World) -> None:
    found = files(world.snapshot(ignore_corruption=True))

    assert not found.native and found.why == "what is damaged is read past, row by row"


def test_more_touched_keys_than_anybody_holds_at_once_are_not_left_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untouched, "MOST_TOUCHED", 4)
    monkeypatch.setattr(untouched, "_MOST_OVER", 7)
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(name) for name in NAMES[:4]]))
        assert files(world.snapshot()).touched == 4
        world.commit(writer, ("put", "objects", [obj(name) for name in NAMES[1:4]]))
        assert files(world.snapshot()).touched == 4
        world.commit(writer, ("put", "objects", obj("more")))
        found = files(world.snapshot())
        assert not found.native and found.why == "8 rows lie over the lowest level: more than 7 are not looked through"
        monkeypatch.setattr(untouched, "_MOST_OVER", 8)
        found = files(world.snapshot())
        assert not found.native and found.why == "something lies over more than 4 keys of the lowest level"
        assert is_the_same(world.snapshot())
        monkeypatch.setattr(untouched, "MOST_TOUCHED", 8)
        monkeypatch.setattr(untouched, "MOST_KEY_BYTES", 100)
        assert files(world.snapshot()).why == "something lies over keys of more than 100 bytes"


def test_more_rows_than_anybody_is_told_of_one_by_one_are_not_left_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untouched, "MOST_CONCERNED", 989)
    assert files(world.snapshot()).native, "where nothing is left out nobody is told of any"
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("0005")))

    assert files(world.snapshot()).why == "something lies over files with 990 rows: they may have 989"


def segment_of(world: World) -> str:
    (file,) = files(world.snapshot()).native
    return file.name


def changed(world: World, name: str, change: Callable[[bytes], bytes]) -> None:
    """A file replaced by something else of its name."""
    data = change(world.store.get(name))
    world.store.delete(name)
    world.store.put(name, data)


def test_a_file_of_another_size_is_not_read_natively_and_named(world: World) -> None:
    name = segment_of(world)
    changed(world, name, lambda data: data[:-8] + b"more" + data[-8:])
    snapshot = world.snapshot()
    found = files(snapshot)

    assert not found.native and found.why is not None and name in found.why


def test_a_footer_that_is_damaged_while_a_snapshot_is_open_is_not_read_natively_and_named(world: World) -> None:
    snapshot, name = world.snapshot(), segment_of(world)
    assert files(snapshot).native
    changed(world, name, lambda data: data[:-30] + bytes([data[-30] ^ 1]) + data[-29:])
    found = files(snapshot)

    assert not found.native and found.why == f"{name} is damaged: its footer is not the one that its index names"


@pytest.mark.parametrize("seen", [False, True])
def test_a_file_that_is_gone_is_not_read_natively_and_named(world: World, seen: bool) -> None:
    snapshot, name = world.snapshot(), segment_of(world)
    assert not seen or files(snapshot).native
    world.store.delete(name)
    found = files(snapshot)

    assert not found.native and found.why is not None and found.why.startswith(f"{name} is gone. It held ")


def test_files_have_a_name_in_the_store_and_a_url(world: World) -> None:
    (file,) = files(world.snapshot()).native
    writer, database, folder, name = file.name.split("/")

    assert (writer, database, folder) == ("compactor-1", "default", "segments") and UUID(
        name.removesuffix(".parquet")
    ).version == 7
    assert file.url == f"{world.store.url.rstrip('/')}/{file.name}"
    assert file.size == world.store.head(file.name).size


def test_where_a_fold_has_no_such_rows_those_of_touched_keys_are_all() -> None:
    made = World()
    with made.writer() as writer:
        made.commit(writer, ("put", "objects", [obj(name) for name in NAMES]))
        merge(made)
        made.commit(writer, ("delete", "objects", [obj("0001"), obj("0002")]))
    found = files(made.snapshot(), "deleted_objects")

    assert (found.why, found.native, found.touched) == (None, (), 2)
    assert found.overlay.to_arrow()["name"].to_pylist() == ["0001", "0002"]
