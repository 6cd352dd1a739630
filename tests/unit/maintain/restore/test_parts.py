"""Restoring what a bucket, an owner or a prefix has of a table: that is what it was, and all else stays what it is."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog import InvalidOption, NotFound, ParentEnded
from bucketcatalog.query.named import Place

from ....kit.restoring import restore
from ....kit.world import OTHER, OWNER, World, bucket, rows

IDS = {(OWNER, "photos"): "a1" * 16, (OWNER, "logs"): "b2" * 16, (OTHER, "photos"): "c3" * 16}
NAMES = ["2023/a", "2024/a", "2024/b", "2024"]


def of(place: tuple[str, str], name: str, **more: Any) -> dict[str, Any]:
    return {"owner": place[0], "bucket_id": IDS[place], "name": name, **more}


@pytest.fixture
def first(world: World) -> str:
    """Three buckets with the same names in them; since then in each a name was deleted, one overwritten, one is new."""
    with world.writer() as w:
        world.commit(w, ("put", "buckets", [{"owner": owner, "name": name, "id": id_} for (owner, name), id_ in IDS.items()]))
        done = world.commit(w, ("put", "objects", [of(place, name, content_length=1) for place in IDS for name in NAMES]))
        world.commit(
            w,
            ("delete", "objects", [of(place, name) for place in IDS for name in NAMES if name.endswith("a")]),
            ("put", "objects", [of(place, name, content_length=2) for place in IDS for name in ("2024/b", "2024", "2024/c")]),
        )
    return done.version


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place("photos", OWNER), {(OWNER, "photos")}),
        (Place("photos", OTHER, "2024/"), {(OTHER, "photos")}),
        (Place("logs", prefix="2024/"), {(OWNER, "logs")}),
        (Place(IDS[OTHER, "photos"]), {(OTHER, "photos")}),
        (Place(owner=OWNER), {(OWNER, "photos"), (OWNER, "logs")}),
        (Place(prefix="2024/"), set(IDS)),
        (Place("logs", prefix="nothing"), set()),
    ],
    ids=lambda each: str(each) if isinstance(each, Place) else "",
)
def test_what_is_there_is_what_it_was_and_all_else_is_as_it_is(
    world: World, first: str, place: Place, expected: set[tuple[str, str]]
) -> None:
    then, now = rows(world.snapshot(version=first)), rows(world.snapshot())
    chosen = {IDS[each] for each in expected}

    def is_meant(row: dict[str, Any]) -> bool:
        return row["bucket_id"].replace("-", "") in chosen and row["name"].startswith(place.prefix or "")

    key = lambda row: (row["owner"], row["bucket_id"], row["name"])  # noqa: E731
    wanted = sorted([*filter(is_meant, then), *(row for row in now if not is_meant(row))], key=key)
    planned = restore(world, first, place=place, dry_run=True)
    assert rows(world.snapshot()) == now
    done = restore(world, first, place=place)
    assert rows(world.snapshot()) == wanted
    assert (done.put, done.updated, done.deleted) == (planned.put, planned.updated, planned.deleted)
    assert (done.committed is None) == (not expected)
    assert restore(world, first, place=place).committed is None


def test_the_commit_says_what_was_restored(world: World, first: str) -> None:
    done = restore(world, first, place=Place("photos", OWNER, "2024/"))
    (entry,) = world.snapshot().scan("log", where={"operation": "restore"}).to_arrow().to_pylist()
    told = {"table": "objects", "version": done.version, "bucket": "photos", "owner": OWNER, "prefix": "2024/"}
    assert dict(entry["metadata"]) == told
    assert repr(done) == f"Restored('objects', as of {done.version}, put 2, update 0, delete 1: {done.committed})"


def test_a_bucket_comes_back_and_then_what_it_held(world: World, first: str) -> None:
    with world.writer(catalog=world.catalog()) as w:
        world.commit(w, ("delete", "buckets", [bucket("logs")]))
    with pytest.raises(ParentEnded) as refused:
        restore(world, first, place=Place("logs"))
    assert refused.value.next_step == f"Restore 'buckets' with bucket='logs', owner='{OWNER}' to the same state first."
    assert restore(world, first, "buckets", place=Place("logs")).put == 1
    assert restore(world, first, place=Place("logs", prefix="2023/")).put == 1


@pytest.mark.parametrize(
    ("place", "error", "text"),
    [
        (Place("photos"), InvalidOption, "2 owners have a bucket 'photos'"),
        (Place("phtos"), NotFound, "There is no bucket 'phtos'"),
        (Place(owner="me"), InvalidOption, "me"),
    ],
)
def test_what_names_nothing_or_too_much_is_refused(
    world: World, first: str, place: Place, error: type[Exception], text: str
) -> None:
    for dry_run in (True, False):
        with pytest.raises(error, match=text):
            restore(world, first, place=place, dry_run=dry_run)
    assert world.snapshot().scan("log", where={"operation": "restore"}).count() == 0
