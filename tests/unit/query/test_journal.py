"""The journal tells the story: what each event ended or replaced, and who ended what, by which operation."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.query import pre_images
from bucketcatalog.query.changes import Changes
from bucketcatalog.query.difference import Diff
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.wrappers import Wrapped

from ...kit.world import BUCKET, World, bucket, obj

ENDS = ["name", "_ended_by", "_end_writer", "_end_revision", "_end_version", "_end_operation", "_end_metadata"]


class Noting(Wrapped):
    """A store that notes what is read."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.names: list[str] = []

    def get(self, name: str, *, most: int | None = None) -> bytes:
        self.names.append(name)
        return super().get(name, most=most)


@pytest.fixture
def world() -> World:
    """Objects that are put, overwritten, updated, deleted in every way and purged, by two writers."""
    found = World()
    with found.writer("w") as w, found.writer("x") as x:
        found.commit(w, ("put", "buckets", bucket("pets", id=BUCKET)), operation="setup")
        put = found.commit(
            w,
            (
                "put",
                "objects",
                [obj(name, content_length=size) for name, size in zip("abcdef", (1, 2, 4, 8, 16, 32), strict=True)],
            ),
        )
        found.commit(x, ("put", "objects", obj("a", content_length=100)), operation="upload", metadata={"job": "7"})
        found.commit(w, ("update", "objects", obj("b", content_length=3, _version=f"{put.uuid}:1")))
        found.commit(w, ("update", "objects", obj("b", content_length=5, _version=f"{put.uuid}:1")))
        found.commit(x, ("delete", "objects", [obj("b"), obj("c")]), operation="expire", metadata={"rule": "30 days"})
        found.commit(w, ("delete", "objects", obj("d", _version=f"{put.uuid}:3")))
        found.commit(w, ("delete", "objects", obj("d", _version=f"{put.uuid}:3")), ("delete", "objects", obj("nothing")))
        found.commit(w, ("delete", "objects", obj("e", _version=f"{put.uuid}:4"), {"moved": True}), operation="rename")
        found.commit(w, ("purge", "objects", obj("c", _version=f"{put.uuid}:2")))
    return found


def told(world: World, **options: Any) -> list[tuple[Any, ...]]:
    """What each event is of, and the length of the row before it."""
    rows = world.catalog().changes(pre_images=["content_length"], **options).to_arrow().to_pylist()
    return [
        (row["_change_type"], row["name"], row["content_length"], row["_before"] and row["_before"]["content_length"])
        for row in rows
    ]


LATER = [
    ("put", "a", 100, 1),
    ("update", "b", 3, 2),
    ("update", "b", 5, 3),
    ("delete", "b", None, 5),
    ("delete", "c", None, 4),
    ("delete", "d", None, 8),
    ("delete", "d", None, None),  # it had ended
    ("delete", "nothing", None, None),
    ("delete", "e", None, 16),
    ("purge", "c", None, None),  # as this had
]


@pytest.mark.parametrize("start", [None, "w@1"])
@pytest.mark.parametrize("merged", [False, True])
def test_what_was_deleted_can_be_summed(world: World, start: str | None, merged: bool) -> None:
    if merged:
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all", full=True)
    first = (
        [("put", name, size, None) for name, size in zip("abcdef", (1, 2, 4, 8, 16, 32), strict=True)] if start is None else []
    )
    assert told(world, start=start) == first + LATER
    deleted = [before for kind, _, _, before in told(world, start=start) if kind == "delete" and before is not None]
    assert sum(deleted) == 5 + 4 + 8 + 16


def test_the_version_before_is_named_and_all_columns_of_its_row_are_there(world: World) -> None:
    found = world.catalog().changes(start="w@1", pre_images=True)
    assert isinstance(found, Changes)
    row = next(row for row in found.to_arrow().to_pylist() if row["name"] == "a")
    ended = (
        world.snapshot()
        .scan("deleted_objects", where={"name": "a"}, columns=[*row["_before"], "_version"])
        .to_arrow()
        .to_pylist()
    )
    assert [{**row["_before"], "_version": row["_version_before"]}] == ended
    assert found.schema.names[-2:] == ["_version_before", "_before"]


def test_they_can_be_narrowed_asked_for_by_column_and_read_elsewhere(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(world, start="w@1", bucket="pets", prefix="b") == [row for row in LATER if row[1] == "b"]
    found = world.catalog().changes(start="w@1", pre_images=True, columns=["name", "bucket", "_operation", "_before"])
    rows = found.to_arrow().to_pylist()
    assert [(row["name"], row["bucket"], row["_operation"]) for row in rows[:1]] == [("a", "pets", "upload")]
    for most in (1, 1_000):
        monkeypatch.setattr(pre_images, "EVENTS_OF_A_RANGE", most)
        tasks = pickle.loads(pickle.dumps(found.tasks(most)))
        read = [row for task in tasks for part in task.read(world.store) for row in part.to_pylist()]
        assert sorted(read, key=repr) == sorted(rows, key=repr)
    with pytest.raises(InvalidOption, match="no column 'size'"):
        world.catalog().changes(pre_images=["size"])


def test_without_the_rows_before_nothing_of_the_state_is_read(world: World) -> None:
    counting = Counting(world.store)
    found = Catalog(counting).changes(start="w@1", pre_images=True)
    counting.reset()
    plain = found.only(["name", "_change_type"]).to_arrow()
    assert not counting.requests and len(plain) == len(LATER)


def test_a_difference_has_the_earlier_rows_too(world: World) -> None:
    found = world.catalog().diff(start="w@1", pre_images=["content_length"])
    assert isinstance(found, Diff)
    rows = found.to_arrow().to_pylist()
    assert [(row["_change_type"], row["name"], row["_before"]["content_length"]) for row in rows] == [
        ("overwritten", "a", 1),
        ("deleted", "b", 2),
        ("deleted", "c", 4),
        ("deleted", "d", 8),
        ("deleted", "e", 16),
    ]
    created = world.catalog().diff(start="w@0", pre_images=True, columns=["name", "_before", "bucket"]).to_arrow()
    assert created["_before"].null_count == len(created) and set(created["bucket"].to_pylist()) == {"pets"}


@pytest.mark.parametrize("merged", [False, True])
def test_a_tombstone_says_who_ended_it_and_by_what(world: World, merged: bool) -> None:
    if merged:
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all", full=True)
    rows = world.snapshot().scan("deleted_objects", columns=ENDS).to_arrow().to_pylist()
    ended = {row["name"]: tuple(row.values())[1:] for row in rows}
    events = {row["name"]: row["_stamp"] for row in world.catalog().changes(start="w@1").to_arrow().to_pylist()}
    assert ended == {
        "a": ("put", "x", 0, events["a"], "upload", [("job", "7")]),
        "b": ("delete", "x", 1, events["b"], "expire", [("rule", "30 days")]),
        "d": ("delete", "w", 4, ended["d"][3], None, None),
        "e": ("move", "w", 6, events["e"], "rename", None),
    }


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ({"_ended_by": "put"}, "a"),
        ({"_ended_by": ["put", "move"]}, "ae"),
        ({"_end_writer": "x"}, "ab"),
        ({"_end_operation": "expire"}, "b"),
        ({"_end_operation": None}, "d"),
        ({"_end_writer": "x", "_end_operation": "upload", "bucket": "pets"}, "a"),
        ({"_end_writer": "nobody"}, ""),
    ],
)
@pytest.mark.parametrize("merged", [False, True])
def test_tombstones_are_found_by_who_ended_them(world: World, where: dict[str, Any], names: str, merged: bool) -> None:
    if merged:
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all", full=True)
    scan = world.snapshot().scan("deleted_objects", columns=["name", "_end_operation"], where=where)
    assert scan.to_arrow()["name"].to_pylist() == list(names)
    assert scan.count() == len(names)


def test_each_transaction_is_asked_for_once_and_what_is_gone_is_null(world: World) -> None:
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all", full=True)
    noting = Noting(world.store)
    scan = Catalog(noting).snapshot().scan("deleted_objects", columns=ENDS)
    noting.names.clear()
    scan.to_arrow()
    asked = [name for name in noting.names if name.endswith(".txn")]
    assert len(asked) == len(set(asked)) == 4
    for name in asked:
        world.store.delete(name)
    rows = Catalog(world.store).snapshot().scan("deleted_objects", columns=ENDS).to_arrow().to_pylist()
    assert [row["_end_operation"] for row in rows] == [None] * 4 and [row["_end_writer"] for row in rows] == ["x", "x", "w", "w"]


def test_live_rows_have_no_end_and_the_error_says_what_there_is(world: World) -> None:
    with pytest.raises(InvalidOption, match="no column '_end_writer'"):
        world.snapshot().scan("objects", columns=["_end_writer"])
    assert "_end_writer" in world.snapshot().scan("deleted_objects").available.names


def test_a_row_that_the_start_has_forgotten_is_unknown_and_its_version_is_not() -> None:
    """A late delete finds a version whose row a later update, which the start has, has replaced."""
    world = World()
    with world.writer("w") as w:
        put = world.commit(w, ("put", "objects", obj("a", content_length=1)))
        name, data = world.under_way(world.writer("late"), obj("a", content_length=9))
        world.commit(w, ("update", "objects", obj("a", content_length=2, _version=f"{put.uuid}:0")))
        world.store.put(name, data)
    rows = world.catalog().changes(start="w@1", pre_images=True).to_arrow().to_pylist()
    assert [(row["_before"], row["_version_before"]) for row in rows] == [(None, f"{put.uuid}:0")]
    assert pa.types.is_struct(world.catalog().changes(pre_images=True).schema.field("_before").type)
    assert {row["_change_type"] for row in rows} == {"put"}


def test_more_transactions_than_are_kept_say_what_they_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.cache.LruCache.put", lambda *_: None)  # nothing is kept
    world = World()
    with world.writer("w") as w:
        for number in range(12):
            world.commit(w, ("put", "objects", obj(str(number))), operation=f"op-{number}", metadata={"why": "x" * 50})
    found = world.catalog().changes(columns=["name", "_operation"]).to_arrow().to_pylist()
    assert [row["_operation"] for row in found] == [f"op-{row['name']}" for row in found]
