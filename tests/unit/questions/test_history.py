"""``growth`` against the states as they were: at any time what ``du`` would have said then."""

from __future__ import annotations

from datetime import timedelta
from itertools import count, pairwise
from typing import Any

import pytest

from bucketcatalog import CatalogWarning, InvalidOption
from bucketcatalog.questions import du, growth
from bucketcatalog.questions.history import _MOST_TIMES

from ...kit.pruning import GRACE, keep_time, old_history, prune
from ...kit.world import BUCKET, DAY, HOUR, MINUTE, OTHER, SECOND, START, World, bucket, obj, time_at
from .conftest import NAME_OF, Past, objects_of, prefix_of


def counted(past: Past, at: int, place: dict[str, Any], depth: int | None) -> dict[tuple[str, ...], tuple[int, int]]:
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    start = place.get("prefix") or ""
    for key, row in objects_of(past.state(at)[0], **place).items():
        deep = () if depth is None else (prefix_of(key[2], start, depth),)
        group = (key[0], NAME_OF[key[1]], *deep)
        objects, size = found.get(group, (0, 0))
        found[group] = objects + 1, size + (row["content_length"] or 0)
    return found


def told(rows: list[dict[str, Any]], at: Any) -> dict[tuple[str, ...], tuple[int, int]]:
    return {
        tuple(row[name] for name in ("owner", "bucket", "prefix") if name in row): (row["objects"], row["bytes"])
        for row in rows
        if row["time"] == at and row["objects"]
    }


@pytest.mark.parametrize(
    ("place", "depth"),
    [({}, None), ({"bucket": "pets", "owner": OTHER}, None), ({}, 1), ({"bucket": "logs"}, 2), ({"prefix": "a"}, 0)],
    ids=str,
)
@pytest.mark.parametrize("every", ["1d", "5h"])
def test_each_time_has_what_there_was_then(past: Past, place: dict[str, Any], depth: int | None, every: str) -> None:
    rows = growth(past.catalog, every=every, depth=depth, **place).to_pylist()
    times = sorted({row["time"] for row in rows})
    assert len(times) > 5
    for at in times:
        micros = (at - time_at(0)) // (time_at(1) - time_at(0))
        assert told(rows, at) == counted(past, micros, place, depth)
    assert {row["bytes"] for row in rows if not row["objects"]} <= {0}


@pytest.mark.parametrize("ago", [None, 4 * DAY])
def test_the_last_time_is_the_end_and_the_first_the_start(past: Past, ago: int | None) -> None:
    now = past.world.clock()
    end = now - (ago or 0)
    start = end - 3 * DAY
    rows = growth(past.catalog, start=f"@{start}", end=None if ago is None else f"@{end}", every="1d").to_pylist()
    assert sorted({row["time"] for row in rows}) == [time_at(start + n * DAY) for n in range(4)]
    assert told(rows, time_at(end)) == counted(past, end, {}, None)
    assert told(rows, time_at(start)) == counted(past, start, {}, None)


def test_without_a_start_times_are_whole_multiples_and_the_first_is_before_the_first_commit(past: Past) -> None:
    times = sorted({row["time"] for row in growth(past.catalog, every="12h").to_pylist()})
    assert all(time.hour in (0, 12) and time.minute == 0 for time in times[:-1])
    assert times[0] < time_at(START + SECOND) <= times[1] and times[-1] == time_at(past.world.clock())


def test_a_snapshot_grows_up_to_its_newest_commit(past: Past) -> None:
    snapshot = past.snapshot(past.world.clock() - 3 * DAY)
    rows = growth(snapshot).to_pylist()
    newest = snapshot.cut.newest_commit_time
    assert max(row["time"] for row in rows) == time_at(newest)
    assert told(rows, time_at(newest)) == counted(past, newest, {}, None)
    by_version = growth(past.catalog, end=snapshot.version)
    assert by_version.to_pylist() == rows


def test_a_bucket_that_has_ended_can_be_looked_back_at(fresh: Past) -> None:
    before = fresh.world.clock()
    key = (OTHER, "33333333-3333-4333-8333-000000000003")
    expected = counted(fresh, before, {"owner": OTHER}, None)
    with fresh.world.writer("z") as writer:
        rows = [dict(zip(("owner", "bucket_id", "name"), each, strict=True)) for each in fresh.live if each[:2] == key]
        fresh.world.commit(writer, ("delete", "objects", rows), ("delete", "buckets", {"owner": OTHER, "name": "pets"}))
    rows = growth(fresh.catalog, bucket="pets", owner=OTHER, start=f"@{before}").to_pylist()
    assert told(rows, time_at(before)) == expected
    assert [row["objects"] for row in rows][-1] == 0


def test_what_was_collected_was_there(fresh: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    world = fresh.world
    expected = growth(fresh.catalog, every="1d", end=f"@{world.clock()}").to_pylist()
    end = world.clock()
    tombstones = fresh.snapshot().scan("deleted_objects", columns=["name"]).count()
    gone = fresh.snapshot().scan("deleted_objects", columns=["owner", "bucket_id", "name", "_version"]).to_arrow()
    with world.writer("z") as writer:
        world.commit(writer, ("purge", "objects", gone))
    fresh.checkpoint()
    assert fresh.snapshot().scan("deleted_objects").count() == 0 < tombstones
    assert growth(fresh.catalog, every="1d", end=f"@{end}").to_pylist() == expected
    assert told(growth(fresh.catalog).to_pylist(), time_at(world.clock())) == counted(fresh, end, {}, None)


def test_where_the_history_is_pruned_it_begins_there_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    keep_time(world, monkeypatch)
    with world.writer("a") as writer:
        world.commit(writer, ("put", "buckets", bucket("b", id=BUCKET)))
    old_history(world)
    everything = growth(world.catalog(), every="1h").to_pylist()
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    horizon = world.snapshot().view.horizon
    assert horizon is not None
    for start in (None, "2023-11-01"):
        with pytest.warns(CatalogWarning, match=r"The history before 2023-.* was pruned: growth begins there"):
            found = growth(world.catalog(), every="1h", start=start).to_pylist()
        assert found[0]["time"] == time_at(horizon.time) and found[0]["objects"] == 10
        then = {row["time"]: row["objects"] for row in everything}
        both = [(row["objects"], then[row["time"]]) for row in found if row["time"] in then]
        assert len(both) > 20 and all(now == before for now, before in both)
    later = growth(world.catalog(), every="1h", start=f"@{horizon.time + HOUR}").to_pylist()
    assert later[0]["time"] == time_at(horizon.time + HOUR)


def test_groups_that_come_and_go_between_times_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    keep_time(world, monkeypatch)
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj("a/x", content_length=1), obj("b/x", content_length=2)]))
        world.commit(writer, ("delete", "objects", obj("b/x")))
    world.clock.tick(MINUTE)
    rows = growth(world.catalog(), every="1d", depth=1).to_pylist()
    assert [(row["prefix"], row["objects"], row["bytes"]) for row in rows] == [("a/", 0, 0), ("a/", 1, 1)]


def test_an_update_that_came_too_late_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    keep_time(world, monkeypatch)
    with world.writer() as writer:
        put = world.commit(writer, ("put", "objects", [obj("a", content_length=1), obj("b", content_length=2)]))
        world.commit(writer, ("delete", "objects", obj("a")))
        late = obj("a", content_length=100, _version=f"{put.uuid}:0")
        world.commit(writer, ("update", "objects", late), ("delete", "objects", obj("nothing")))
    rows = growth(world.catalog(), every="1s", start=f"@{START}").to_pylist()
    assert [(row["objects"], row["bytes"]) for row in rows] == [(0, 0), (2, 3), (1, 2), (1, 2)]


def test_sums_that_64_bits_do_not_hold_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    keep_time(world, monkeypatch)
    largest = (1 << 63) - 1
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj("a", content_length=largest), obj("b", content_length=largest)]))
        world.clock.tick(HOUR)
        world.commit(writer, ("delete", "objects", obj("a")))
    rows = growth(world.catalog(), every="1h", start=f"@{START}").to_pylist()
    assert [row["bytes"] for row in rows] == [0, 2 * largest, largest]
    assert du(world.catalog())["bytes"].to_pylist() == [largest]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": "0s"}, "Every 0s there is no next time"),
        ({"every": "often"}, "'often' is not an age"),
        ({"start": "1h", "end": "2h"}, "The start lies after the end"),
        ({"every": "1s"}, f"There are more than {_MOST_TIMES:,} times"),
        ({"depth": -1}, "depth is -1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(past: Past, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        growth(past.catalog, **options)


def test_too_many_groups_at_too_many_times_are_refused(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.questions.history._MOST_CELLS", 10)
    with pytest.raises(InvalidOption, match=r"4 groups at .* times are too many to show"):
        growth(past.catalog)


def test_times_that_count_from_now_count_from_one_now(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.clock.now_us", count(past.world.clock() + SECOND).__next__)
    for ago in ("2 days ago", "48h"):
        times = sorted(set(growth(past.catalog, every="1d", start=ago)["time"].to_pylist()))
        assert [later - earlier for earlier, later in pairwise(times)] == [timedelta(days=1)] * 2
