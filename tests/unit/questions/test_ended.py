"""``who`` against what was noted when it was done; and what is asked of the store for it."""

from __future__ import annotations

from collections import defaultdict
from fnmatch import fnmatchcase
from typing import Any

import pytest

from bucketcatalog import InvalidOption, prefix
from bucketcatalog.query.operations import Operations
from bucketcatalog.questions import find, who
from bucketcatalog.store.faults import Counting

from ...kit.world import BUCKET, DAY, OTHER, World, bucket, obj, time_at
from .conftest import NAME_OF, Ended, Past


def among(past: Past, since: int | None, until: int | None, place: dict[str, str]) -> list[Ended]:
    return [
        each
        for each in past.ended
        if (since is None or since <= each.at)
        and (until is None or each.at <= until)
        and place.get("bucket") in (None, NAME_OF[each.key[1]])
        and place.get("owner") in (None, each.key[0])
    ]


@pytest.mark.parametrize("place", [{}, {"bucket": "pets", "owner": OTHER}], ids=str)
@pytest.mark.parametrize(("since", "until"), [(None, None), (5 * DAY, None), (6 * DAY, 2 * DAY)])
def test_writers_and_operations_have_what_they_ended(
    past: Past, place: dict[str, str], since: int | None, until: int | None
) -> None:
    now = past.world.clock()
    times = [None if ago is None else now - ago for ago in (since, until)]
    expected: dict[tuple[str, str | None, str], list[Ended]] = defaultdict(list)
    for each in among(past, times[0], times[1], place):
        expected[each.writer, each.operation, each.did].append(each)
    given = [None if time is None else f"@{time}" for time in times]
    found = who(past.catalog, since=given[0], until=given[1], **place)
    assert {tuple(row[name] for name in ("writer", "operation", "did")): row for row in found.to_pylist()} == {
        key: {
            "writer": key[0],
            "operation": key[1],
            "did": key[2],
            "objects": len(some),
            "bytes": sum(each.row["content_length"] or 0 for each in some),
            "first": time_at(min(each.at for each in some)),
            "last": time_at(max(each.at for each in some)),
        }
        for key, some in expected.items()
    }
    last = found["last"].to_pylist()
    assert last == sorted(last, reverse=True)


def ended_rows(past: Past, at: int | None) -> list[dict[str, Any]]:
    found = past.snapshot(at).scan("deleted_objects", columns=["_version", "_end_revision"]).to_arrow()
    return found.rename_columns(["version", "_end_revision"]).to_pylist()


@pytest.mark.parametrize("ago", [None, 6 * DAY])
def test_object_by_object_each_version_is_told_with_who_ended_it(past: Past, ago: int | None) -> None:
    at = None if ago is None else past.world.clock() - ago
    found = who(past.catalog, by="object", as_of=None if at is None else f"@{at}").to_pylist()
    expected = [
        (time_at(e.at), e.did, e.writer, e.operation, e.key[0], NAME_OF[e.key[1]], e.key[2], e.row["content_length"])
        for e in past.state(at)[1]
    ]
    revisions = {row["version"]: row["_end_revision"] for row in ended_rows(past, at)}
    assert all(row.pop("revision") == revisions[row["version"]] for row in found)
    assert sorted((tuple(row.values())[:-1] for row in found), key=str) == sorted(expected, key=str)
    times = [row["deleted_at"] for row in found]
    assert times == sorted(times, reverse=True) and len({row["version"] for row in found}) == len(found)


def test_an_incident_is_one_call_and_its_versions_can_be_put_back(past: Past) -> None:
    lost = next(each for each in reversed(past.ended) if each.did == "deleted" and each.key not in past.live)
    owner, bucket_id, name = lost.key
    rows = who(past.catalog, name=name, bucket=bucket_id, owner=owner).to_pylist()
    row = next(row for row in rows if row["name"] == name)
    assert (row["did"], row["writer"], row["deleted_at"]) == ("deleted", lost.writer, time_at(lost.at))
    assert row["content_length"] == lost.row["content_length"]
    found = past.snapshot().scan("deleted_objects", where={"_version": row["version"]}).to_arrow().to_pylist()
    assert [each["name"] for each in found] == [name]
    assert {r["name"] for r in who(past.catalog, by="object", prefix="a").to_pylist()} == {
        *past.snapshot().scan("deleted_objects", where={"name": prefix("a")}).to_arrow()["name"].to_pylist()
    }


@pytest.mark.parametrize(
    ("glob", "prefix"),
    [("*.jpg", None), ("a", None), ("a", "b/"), ("a/*", None), ("b/*a", "b/"), ("b/c.jpg", "a"), ("[ab] b", None)],
)
def test_names_are_globs_as_in_find(past: Past, glob: str, prefix: str | None) -> None:
    meant = [e for e in past.ended if fnmatchcase(e.key[2] if "/" in glob else e.key[2].rpartition("/")[2], glob)]
    meant = [e for e in meant if e.key[2].startswith(prefix or "")]
    found = who(past.catalog, name=glob, prefix=prefix).to_pylist()
    assert sorted(row["name"] for row in found) == sorted(e.key[2] for e in meant)
    assert sorted(find(past.catalog, name=glob, prefix=prefix, deleted=True).to_arrow()["name"].to_pylist()) == sorted(
        e.key[2] for e in meant
    )
    by_writer = who(past.catalog, name=glob, prefix=prefix, by="writer").to_pylist()
    assert sum(row["objects"] for row in by_writer) == len(meant)
    assert sum(row["bytes"] for row in by_writer) == sum(e.row["content_length"] or 0 for e in meant)


def test_each_transaction_is_asked_for_once_however_many_rows_it_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World.counting()
    store = world.store
    assert isinstance(store, Counting)
    with world.writer() as writer:
        world.commit(writer, ("put", "buckets", bucket("b", id=BUCKET)))
        world.commit(writer, ("put", "objects", [obj(f"{n:04}", content_length=n) for n in range(300)]))
        world.commit(writer, ("delete", "objects", [obj(f"{n:04}") for n in range(200)]), operation="expire")
        world.commit(writer, ("put", "objects", [obj(f"{n:04}") for n in range(200, 300)]))
    snapshot = world.snapshot()
    snapshot.scan("deleted_objects").to_arrow()
    asked_of: list[int] = []
    made = Operations.made

    def noting(self: Operations, rows: Any, store: Any) -> Any:
        asked_of.append(len(rows))
        return made(self, rows, store)

    monkeypatch.setattr(Operations, "made", noting)
    store.reset()
    found = who(snapshot).to_pylist()
    assert store.requests["get"] <= 2
    assert asked_of == [2]
    assert [(row["operation"], row["did"], row["objects"], row["bytes"]) for row in found] == [
        (None, "overwrote", 100, sum(range(200, 300))),
        ("expire", "deleted", 200, sum(range(200))),
    ]


def test_what_moved_is_told_apart() -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("a", content_length=1)))
        version = world.snapshot().get_all("objects", [obj("a")], columns=["_version"])[0]
        assert version is not None
        world.commit(writer, ("delete", "objects", obj("a", **version), {"moved": True}))
    assert who(world.catalog())["did"].to_pylist() == ["moved"]


def test_without_tombstones_nobody_did_anything() -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("a")))
    for by in ("writer", "object"):
        assert who(world.catalog(), by=by).num_rows == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "bucket"}, "cannot be told by 'bucket'"),
        ({"name": 5}, "name is 5"),
    ],
)
def test_what_cannot_be_told_is_refused(past: Past, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        who(past.catalog, **options)


def test_a_reversed_span_is_refused(past: Past) -> None:
    with pytest.raises(InvalidOption, match="The start lies after the end"):
        who(past.catalog, since="1h", until="2h")
