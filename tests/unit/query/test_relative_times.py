"""Times that count from now, at every entry of Python: each is settled once, when a read is made, and the read stays what it is."""

from __future__ import annotations

import datetime
import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidName, InvalidOption, InvalidTime, InvalidVersion, between
from bucketcatalog.format.records import TagEntry
from bucketcatalog.model.tables import Table
from bucketcatalog.query.reads import ReadTask
from bucketcatalog.query.views import Computed, View, Views
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.commit import Commit

from ...kit.world import DAY, HOUR, START, World, messages, obj, proto, time_at

MIDNIGHT = START // DAY * DAY
VISIT = """message Visit { option (table) = { name: "own.visits" key: "at" };
  int64 at = 1 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}]; string who = 2; }"""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """An object of each of the last days, put then; the one of four days ago was deleted yesterday. Now is noon."""
    world = World()
    monkeypatch.setattr("bucketcatalog.clock.now_us", world.clock)
    world.clock.now = MIDNIGHT - 4 * DAY + 12 * HOUR
    with world.writer() as writer:
        for day in (4, 3, 2, 1, 0):
            world.clock.now = MIDNIGHT - day * DAY + 11 * HOUR
            world.commit(writer, ("put", "objects", obj(f"of {day}", modified=time_at(world.clock.now))))
            if day == 1:
                world.commit(writer, ("delete", "objects", obj("of 4")))
    world.clock.now = MIDNIGHT + 12 * HOUR
    return world


def names(rows: Any) -> list[str]:
    return sorted(rows.to_arrow()["name"].to_pylist())


@pytest.mark.parametrize(
    ("time", "found"),
    [
        ("now", ["of 0", "of 1", "of 2", "of 3"]),
        ("today", ["of 1", "of 2", "of 3"]),
        ("yesterday", ["of 2", "of 3", "of 4"]),
        ("24h", ["of 1", "of 2", "of 3"]),
        ("2 days ago", ["of 2", "of 3", "of 4"]),
        (time_at(MIDNIGHT - 2 * DAY).date(), ["of 3", "of 4"]),
    ],
    ids=str,
)
def test_a_snapshot_of_a_time_is_of_what_was_committed_up_to_then(world: World, time: Any, found: list[str]) -> None:
    assert names(world.snapshot(timestamp=time).scan("objects")) == found


def test_times_and_versions_are_starts_and_ends_of_changes_and_differences(world: World) -> None:
    catalog = world.catalog()
    middle = catalog.snapshot(timestamp="yesterday").version
    for method in (catalog.changes, catalog.diff):
        expected = method(start=middle).to_arrow()
        day = time_at(MIDNIGHT - DAY)
        for start in ("yesterday", "1d12h", day, day.date(), day.isoformat(), f"@{MIDNIGHT - DAY}", middle, "w@2", 2):
            for end in (None, "now", "0s ago", catalog.snapshot().version):
                assert method(start=start, end=end).to_arrow() == expected
    assert names(catalog.changes(start="2d", end="today")) == ["of 1", "of 4"]
    assert catalog.diff(start="now", end="yesterday").to_arrow()["_change_type"].to_pylist() == ["deleted", "deleted", "created"]


def test_changes_between_reversed_times_are_refused_and_differences_are_not(world: World) -> None:
    for start, end in (("now", "yesterday"), ("2d", "3d"), (datetime.date(2023, 11, 13), "2023-11-12")):
        with pytest.raises(InvalidOption, match="The start lies after the end"):
            world.catalog().changes(start=start, end=end)
        world.catalog().diff(start=start, end=end)
    assert len(world.catalog().changes(start="now", end="now").to_arrow()) == 0


def test_changes_from_now_on_are_none_though_somebody_commits_meanwhile(world: World) -> None:
    with world.writer("other") as other:
        catalog = world.catalog()
        looked = catalog.snapshot

        def snapshot(**options: Any) -> Any:
            found = looked(**options)
            world.commit(other, ("put", "objects", obj(f"at {world.clock.now}")))
            return found

        catalog.snapshot = snapshot  # type: ignore[method-assign]
        found = catalog.changes(start="now", end="now").to_arrow()
    assert len(found) == 0


def test_a_time_is_no_version_and_the_error_says_where_it_belongs(world: World) -> None:
    for version in ("yesterday", "now", "24h", "2 days ago", "2024-05-01", "2024-05-01T12:00:00Z"):
        with pytest.raises(InvalidVersion, match=r"it is a time|is a time, and no version.*timestamp=.*timestampAsOf"):
            world.snapshot(version=version)


def test_a_name_that_is_a_time_is_given_to_no_new_tag_or_pin(world: World) -> None:
    catalog = world.catalog()
    for name in ("now", "today", "Yesterday"):
        for give in (catalog.tag, catalog.pin):
            with pytest.raises(InvalidName, match="it is a time"):
                give(name)


def test_a_tag_that_is_called_like_a_time_already_can_be_read_and_dropped(world: World) -> None:
    then = world.snapshot(timestamp="3d")
    maintainer = world.writer("maintainer-m")
    maintainer.commit(Commit(operation="tag", tag=TagEntry("yesterday", then.cut)))
    assert world.snapshot(version="yesterday").version == then.version != world.snapshot(timestamp="yesterday").version
    assert maintainer.drop_tag("yesterday").dropped


def test_tags_and_pins_are_given_to_times(world: World) -> None:
    version = world.snapshot(timestamp="yesterday").version
    maintainer = world.writer("maintainer-m")
    assert maintainer.tag("t", timestamp="yesterday").version == maintainer.pin("p", timestamp="1d12h").version == version


def test_clones_and_restores_are_of_times() -> None:
    catalog = Catalog(MemoryStore())
    with catalog.writer("w") as held, held.transaction() as tx:
        tx.put("objects", obj("a"))
    assert "w@0" in catalog.tag("t", timestamp="now").version in catalog.pin("p", timestamp="0s ago").version
    assert catalog.restore("objects", timestamp="yesterday", dry_run=True).deleted == 1
    assert catalog.clone(MemoryStore(), timestamp="now").rows == 1


CONDITIONS: list[tuple[Any, list[str]]] = [
    (between("yesterday", None), ["of 0", "of 1"]),
    (between("YESTERDAY", "today"), ["of 1"]),
    (between(None, "2d"), ["of 2", "of 3"]),
    (between(time_at(MIDNIGHT).date(), None), ["of 0"]),
    (between("2023-11-14", "now"), ["of 0"]),
    (["1h ago", "1d1h"], ["of 0", "of 1"]),
    ("1 hour", ["of 0"]),
    (time_at(MIDNIGHT + 11 * HOUR), ["of 0"]),
]


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize(("condition", "found"), CONDITIONS, ids=str)
def test_conditions_on_columns_of_times_take_them(world: World, condition: Any, found: list[str], checkpoint: bool) -> None:
    if checkpoint:
        world.writer("compactor-c").checkpoint(scope="all")
    assert names(world.snapshot().scan("objects", where={"modified": condition})) == found


def test_so_do_those_on_what_is_shown_on_request_and_on_tables_about_the_catalog(world: World) -> None:
    snapshot = world.snapshot()
    assert names(snapshot.scan("deleted_objects", where={"deleted_at": between("yesterday", "today")})) == ["of 4"]
    assert names(snapshot.scan("deleted_objects", where={"deleted_at": between("today")})) == []
    recent = snapshot.scan("log", columns=["revision"], where={"commit_timestamp": between("yesterday")})
    assert recent.to_arrow()["revision"].to_pylist() == [3, 4, 5]
    stamps = snapshot.scan("objects", columns=["name"], where={"_commit_timestamp": between("2 days ago")}).to_arrow()
    assert len(stamps) == 2


def same(times: pa.Array) -> pa.Array:
    return times


def test_so_do_those_of_views(world: World) -> None:
    columns = {"what": "name", "when": "modified", "again": Computed(pa.timestamp("us", "UTC"), ("modified",), same)}
    snapshot = world.snapshot()
    views = Views("own", {"recent": View("recent", "objects", columns, {"modified": between("2d", None)})}, {}, lambda _: True)
    for column in ("when", "again"):
        read = views.read(snapshot, "recent", None, {column: between(None, "today")})
        assert read is not None
        (task,) = read.tasks(1 << 20)
        sent = pickle.dumps(task)
        world.clock.tick(30 * DAY)
        for found in (read.to_arrow(), pa.concat_tables(pickle.loads(sent).read(world.store))):
            assert found["what"].to_pylist() == ["of 1"]
        world.clock.tick(-30 * DAY)
    tables: dict[str, Table] = {"objects": snapshot.table("objects")}
    assert View("v", "objects", columns, {"modified": between("2d", None)}).problem(tables) is None
    problem = View("v", "objects", columns, {"modified": between("2 fortnights", None)}).problem(tables)
    assert problem is not None and "is not a time" in str(problem)


def test_text_on_other_columns_is_text(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("now", content_type="24h")))
    assert names(world.snapshot().scan("objects", where={"name": "now", "content_type": "24h"})) == ["now"]


@pytest.mark.parametrize(
    "condition", ["1 fortnight", between("2024"), ["now", "x"], between(None, "999999w"), "\u0662h"], ids=ascii
)
@pytest.mark.parametrize("table", ["objects", "log"])
def test_a_condition_that_is_no_time_is_refused(world: World, table: str, condition: Any) -> None:
    column = {"objects": "modified", "log": "commit_timestamp"}[table]
    with pytest.raises(
        InvalidOption, match=f"The condition on column '{column}' of '{table}' does not fit: .*(is not a time|years 1)"
    ):
        world.snapshot().scan(table, where={column: condition})


def of_tasks(world: World, tasks: list[ReadTask]) -> list[str]:
    parts = [rows for task in tasks for rows in pickle.loads(pickle.dumps(task)).read(world.store)]
    return sorted(name for rows in parts for name in rows["name"].to_pylist())


def test_a_scan_sees_the_same_rows_wherever_and_whenever_it_is_read(world: World) -> None:
    world.writer("compactor-c").checkpoint(scope="all")
    scan = world.snapshot().scan("objects", where={"modified": between("yesterday", None)})
    sent = [pickle.dumps(task) for task in scan.tasks(1)]
    world.clock.tick(30 * DAY)
    assert of_tasks(world, [pickle.loads(task) for task in sent]) == ["of 0", "of 1"]
    assert of_tasks(world, scan.tasks(1)) == names(scan) == names(scan.only(["name"])) == ["of 0", "of 1"]


def test_all_conditions_of_a_scan_count_from_one_now(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ticking = iter(range(MIDNIGHT - 1, MIDNIGHT + 1_000))
    monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: next(ticking))
    scan: Any = world.snapshot().scan("objects", where={"modified": between("now"), "_commit_timestamp": between("0s")})
    low, also = (condition.low for _, condition in scan.task.where)
    assert low == also


@pytest.fixture
def visits(world: World) -> Catalog:
    """Visits by their time, a day between them."""
    catalog = world.catalog()
    catalog.register(list(messages(proto(VISIT)).values()))
    with world.writer("v", catalog=catalog) as writer:
        for day in range(4):
            world.commit(writer, ("put", "own.visits", {"at": time_at(MIDNIGHT - day * DAY + HOUR), "who": f"of {day}"}))
    return catalog


@pytest.mark.parametrize("read", [Catalog.changes, Catalog.diff])
def test_changes_and_differences_see_the_same_keys_wherever_and_whenever_they_are_read(
    world: World, visits: Catalog, read: Callable[..., Any]
) -> None:
    found = read(visits, table="own.visits", where={"at": between("yesterday", "today")})
    sent = pickle.dumps(found.tasks(1))
    world.clock.tick(30 * DAY)
    assert found.to_arrow()["who"].to_pylist() == ["of 1"]
    assert [who for task in pickle.loads(sent) for rows in task.read(world.store) for who in rows["who"].to_pylist()] == ["of 1"]


@pytest.fixture
def both(world: World) -> Any:
    """The catalog twice, with a name each."""
    return Catalog({"north": world.store, "south": Wrapped(world.store)})


def test_changes_and_differences_of_several_catalogs_lie_between_times(world: World, both: Any) -> None:
    expected = both.changes(start=both.snapshot(timestamp="yesterday").version).to_arrow()
    assert expected["name"].to_pylist() == ["of 1", "of 4", "of 0"] * 2
    for start in ("yesterday", "1d12h", time_at(MIDNIGHT - DAY)):
        assert both.changes(start=start, end="now").to_arrow() == expected
        assert len(both.diff(start=start, end="now").to_arrow()) == 6
    with pytest.raises(InvalidOption, match="The start lies after the end"):
        both.changes(start="now", end="yesterday")
    for version in ("yesterday", "24h"):
        with pytest.raises(InvalidVersion, match="timestamp="):
            both.snapshot(version=version)


def test_all_of_several_catalogs_are_read_at_one_time(both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    days = iter(range(MIDNIGHT + 12 * HOUR, MIDNIGHT - 4 * DAY, -DAY))
    monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: next(days, 0))
    north, south = both.snapshot(timestamp="yesterday").members.values()
    assert north.version == south.version


def test_conditions_are_the_same_in_several_catalogs(both: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = both.snapshot()
    days = iter(range(MIDNIGHT + 12 * HOUR, MIDNIGHT - 4 * DAY, -DAY))
    monkeypatch.setattr("bucketcatalog.clock.now_us", lambda: next(days, 0))
    assert names(snapshots.scan("objects", where={"modified": between("yesterday")})) == ["of 0", "of 0", "of 1", "of 1"]


def test_a_time_that_has_not_come_is_an_error_all_the_same(world: World) -> None:
    world.clock.now -= 30 * DAY
    with pytest.raises(InvalidTime):
        world.snapshot(timestamp=time_at(MIDNIGHT + DAY))
