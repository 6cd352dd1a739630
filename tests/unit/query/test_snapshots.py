"""Snapshots: which cut each way of asking names, and what is said where there is none."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import (
    Catalog,
    CatalogNotFound,
    DatabaseNotFound,
    InvalidOption,
    InvalidRows,
    InvalidTime,
    InvalidVersion,
    UnknownTable,
    clock,
    prefix,
)
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.writer import Writer

from ...kit.world import BEYOND, BUCKET, MINUTE, OWNER, SECOND, START, World, bucket, names, obj, rows, time_at


def put(world: World, writer: Writer, name: str) -> Any:
    return world.commit(writer, ("put", "objects", obj(name)))


class TestNothingThere:
    def test_a_store_without_a_catalog_is_an_error_that_says_so(self, world: World, tmp_path: Path) -> None:
        for catalog in (world.catalog(), Catalog(LocalStore(tmp_path / "none")), Catalog(tmp_path)):
            for options in ({}, {"database": "default"}, {"timestamp": "@0"}):
                with pytest.raises(CatalogNotFound) as error:
                    catalog.snapshot(**options)
                assert catalog.url in error.value.message and error.value.next_step

    def test_opening_a_catalog_or_a_writer_writes_nothing(self, tmp_path: Path) -> None:
        Catalog(tmp_path / "x").writer("w").close()
        assert list(tmp_path.iterdir()) == []

    def test_another_database_is_an_error_that_lists_those_there_are(self, world: World) -> None:
        for name in ("one", "two"):
            put(world, world.writer(database=name), "a")
        for options in ({"database": "three"}, {}, {"database": "three", "timestamp": "@0"}):
            with pytest.raises(DatabaseNotFound, match="one, two"):
                world.snapshot(**options)

    def test_the_only_database_needs_no_name(self, world: World) -> None:
        put(world, world.writer(database="photos"), "a")
        assert world.snapshot().database == "photos"
        assert names(world.catalog().snapshot(database="photos")) == ["a"]

    def test_of_several_databases_one_is_named_wherever_one_asks(self, world: World) -> None:
        for name in ("photos", "songs"):
            put(world, world.writer(database=name), "a")
        with pytest.raises(DatabaseNotFound, match=r"several databases: photos, songs\.") as caught:
            world.snapshot()
        for how in (
            "database='NAME'",
            "in Spark option('database', 'NAME')",
        ):
            assert how in caught.value.next_step

    def test_databases_do_not_see_each_other(self, world: World) -> None:
        for name in ("one", "two"):
            put(world, world.writer(database=name), name)
        assert {name: names(world.snapshot(database=name)) for name in ("one", "two")} == {"one": ["one"], "two": ["two"]}
        assert world.catalog().databases() == ["one", "two"]


class TestTimes:
    def test_every_form_of_a_time_names_the_commits_up_to_it(self, world: World, writer: Writer) -> None:
        first = put(world, writer, "a").commit_time
        put(world, writer, "b")
        moment = time_at(first)
        forms = [
            moment,
            moment.replace(tzinfo=None),
            moment.astimezone(datetime.timezone(datetime.timedelta(hours=5))),
            moment.isoformat(),
            moment.replace(tzinfo=None).isoformat(),
            moment.isoformat().replace("+00:00", "Z"),
            moment.replace(tzinfo=None).isoformat(" "),
            f"@{first}",
            f" @{first} ",
        ]
        for form in forms:
            assert names(world.snapshot(timestamp=form)) == ["a"], form
        assert names(world.snapshot(timestamp=f"@{first - 1}")) == []
        assert names(world.snapshot(timestamp=f"@{first + 1}")) == ["a"]

    def test_a_time_before_the_first_commit_is_empty(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        for time in ("@0", "1970-01-01", "@-5", "0001-01-01", f"@{START}"):
            snapshot = world.snapshot(timestamp=time)
            assert names(snapshot) == [] and snapshot.version == ":"

    def test_a_time_after_now_and_the_newest_commit_is_an_error(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        world.snapshot(timestamp=f"@{world.clock.now}")
        for time in (f"@{world.clock.now + 1}", "9999-12-31", f"@{10**17}", f"@{10**18 - 1}"):
            with pytest.raises(InvalidTime):
                world.snapshot(timestamp=time)

    @pytest.mark.parametrize(
        "time", ["", "tomorrow", "1 fortnight", "@", "@x", "@1.5", "2024-13-01", "\ud800", "@" + "9" * 19, 5, 1.5, b"2024"]
    )
    def test_what_is_no_time_is_refused(self, world: World, writer: Writer, time: Any) -> None:
        put(world, writer, "a")
        with pytest.raises(InvalidTime):
            world.snapshot(timestamp=time)

    def test_a_time_that_its_zone_takes_out_of_the_calendar_is_none(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        for time in BEYOND:
            with pytest.raises(InvalidTime, match="lies outside of the years 1 to 9999"):
                world.snapshot(timestamp=time)

    def test_a_time_and_a_version_together_are_refused(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        with pytest.raises(InvalidOption):
            world.snapshot(timestamp="@0", version=":")

    def test_the_watermark_lies_a_lateness_bound_behind_the_stores_time(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        assert world.snapshot().watermark == time_at(world.clock.now - 6 * 60 * 1_000_000)

    @pytest.mark.parametrize("asked", ["timestamp", "version"])
    def test_what_a_look_has_missed_is_not_behind_its_watermark(self, world: World, writer: Writer, asked: str) -> None:
        put(world, writer, "a")
        put(world, world.writer("maintainer-m"), "m")  # so that it is asked first what was pruned
        late = world.commit(world.writer("new"), ("put", "objects", obj("late")))
        held = {info.name: world.store.get(info.name) for info in world.store.list("new/")}
        for name in held:
            world.store.delete(name)
        world.clock.tick(5 * MINUTE)
        given = "maintainer-m@0" if asked == "version" else time_at(world.clock.now)
        slow = Catalog(_Arriving(world, held)).snapshot(**{asked: given})

        assert "late" not in names(slow)
        assert slow.watermark <= time_at(late.commit_time)


class _Arriving(Wrapped):
    """A store in which objects appear, and minutes pass, right after it was listed who writes there.

    The first two listings say which database there is, and who has committed to it.
    """

    def __init__(self, world: World, objects: dict[str, bytes]) -> None:
        super().__init__(world.store)
        self._world, self._objects, self._listings = world, objects, 0

    def list_prefixes(self, prefix: str, *, begin: str = "") -> list[str]:
        found = super().list_prefixes(prefix, begin=begin)
        self._listings += prefix == ""
        if prefix == "" and self._listings == 3:
            for name, data in self._objects.items():
                self.put(name, data)
            self._world.clock.tick(2 * MINUTE)
        return found


def test_as_of_now_right_after_a_commit_on_disk_is_not_the_future(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    with catalog.writer("w") as writer:
        for number in range(20):
            with writer.transaction() as tx:
                tx.put("objects", obj(f"o{number:02}"))
            now = datetime.datetime.now(datetime.UTC)
            assert len(names(catalog.snapshot(timestamp=now))) == number + 1


@pytest.mark.parametrize(("behind", "is_future"), [(1, False), (50, False), (70, True)])
def test_as_of_now_by_a_machine_that_is_ahead_of_the_store_is_not_the_future_within_the_allowed_skew(
    behind: int, is_future: bool
) -> None:
    store = MemoryStore(clock=lambda: clock.now_us() - behind * SECOND)
    with Catalog(store).writer("w", clock=store.now_us) as writer, writer.transaction() as tx:
        tx.put("objects", obj("a"))
    now = datetime.datetime.now(datetime.UTC)
    if is_future:
        with pytest.raises(InvalidTime, match="lies after now"):
            Catalog(store).snapshot(timestamp=now)
    else:
        assert names(Catalog(store).snapshot(timestamp=now)) == ["a"]


class TestVersions:
    def test_a_version_reads_the_same_for_good(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        version = world.snapshot().version
        put(world, writer, "b")
        writer.checkpoint()
        put(world, world.writer("v"), "c")
        world.writer("compactor-1").checkpoint(scope="all")

        again = world.snapshot(version=version)
        assert (names(again), again.version) == (["a"], version)
        assert names(world.snapshot(version=":")) == []

    def test_a_snapshot_that_is_held_does_not_move(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        held = world.snapshot()
        put(world, writer, "b")
        writer.checkpoint()
        assert names(held) == ["a"] and held.get("objects", **obj("b")) is None
        assert held.list("objects", owner=OWNER, bucket_id=BUCKET).rows["name"].to_pylist() == ["a"]

    def test_a_revision_is_enough_where_one_writer_holds_data(self, world: World, writer: Writer) -> None:
        put(world, writer, "a")
        put(world, writer, "b")
        world.writer("compactor-1").checkpoint(scope="all")
        for version in (0, "0", "w@0"):
            assert names(world.snapshot(version=version)) == ["a"]
        put(world, world.writer("v"), "c")
        with pytest.raises(InvalidVersion, match=r"v, w|w, v"):
            world.snapshot(version=0)

    def test_a_causal_version_holds_what_its_commit_had_read(self, world: World) -> None:
        one, two = world.catalog(), world.catalog()
        first, second = world.writer("one", catalog=one), world.writer("two", catalog=two)
        put(world, first, "a")
        put(world, second, "b")
        two.snapshot()
        put(world, first, "c")
        put(world, second, "d")
        assert names(world.snapshot(version="two@0")) == ["b"]
        assert names(world.snapshot(version="two@1")) == ["a", "b", "d"]
        assert names(world.snapshot(version="one@1")) == ["a", "c"]

    def test_a_compactors_commit_names_every_writers_cut(self, world: World) -> None:
        for name in ("one", "two"):
            put(world, world.writer(name), name)
        compactor = world.writer("compactor-1")
        compactor.checkpoint(scope="all")
        put(world, world.writer("one"), "later")
        assert names(world.snapshot(version="compactor-1@0")) == ["one", "two"]

    @pytest.mark.parametrize(
        "version",
        [
            "w@2",
            "nobody@0",
            2,
            -1,
            "-1",
            "",
            "tag",
            "w@",
            "@",
            f"w@0:{'0' * 32}",
            "w@x",
            "w@99999999999999999999",
            "w@0 ",
            "\ud800",
            1.5,
            True,
        ],
    )
    def test_what_names_no_version_is_refused(self, world: World, writer: Writer, version: Any) -> None:
        put(world, writer, "a")
        put(world, writer, "b")
        with pytest.raises(InvalidVersion):
            world.snapshot(version=version)


class TestReading:
    @pytest.fixture(params=["log", "checkpoint"])
    def snapshot(self, request: pytest.FixtureRequest, world: World, writer: Writer) -> Any:
        world.commit(
            writer,
            (
                "put",
                "objects",
                [obj(f"{d}/{n}", content_length=n, etag=d, sharks=["s"], tags={"k": d}) for d in "ab" for n in range(5)],
            ),
            ("put", "buckets", [bucket("x"), bucket("y", region="r")]),
            ("delete", "objects", obj("a/0")),
        )
        if request.param == "checkpoint":
            writer.checkpoint()
        return world.snapshot()

    def test_conditions_choose_rows(self, snapshot: Any) -> None:
        for where, expected in (
            ({"name": "a/1"}, ["a/1"]),
            ({"name": ["a/1", "b/0", "c"]}, ["a/1", "b/0"]),
            ({"name": []}, []),
            ({"name": prefix("b/")}, [f"b/{n}" for n in range(5)]),
            ({"owner": OWNER, "bucket_id": BUCKET, "name": prefix("a/")}, [f"a/{n}" for n in range(1, 5)]),
            ({"content_length": 3}, ["a/3", "b/3"]),
            ({"content_length": [3, 4], "etag": "b"}, ["b/3", "b/4"]),
            ({"etag": prefix("a")}, [f"a/{n}" for n in range(1, 5)]),
            ({"id": None}, [f"a/{n}" for n in range(1, 5)] + [f"b/{n}" for n in range(5)]),
            ({"etag": None}, []),
            ({"owner": "22222222-2222-4222-8222-222222222222"}, []),
            (
                {"name": [f"{d}/{n}" for d in "ab" for n in range(400)]},
                [f"a/{n}" for n in range(1, 5)] + [f"b/{n}" for n in range(5)],
            ),
            ({"_writer": "w", "name": "a/1"}, ["a/1"]),
            ({"_revision": 0, "name": "a/1"}, ["a/1"]),
            ({"_revision": 1}, []),
        ):
            assert names_where(snapshot, where) == expected, where

    def test_columns_are_those_asked_for_in_that_order(self, snapshot: Any) -> None:
        for columns in (["name", "etag"], ["etag", "name"], ["etag"], ["_revision", "content_length", "_version"], ["modified"]):
            found = snapshot.scan("objects", columns=columns).to_arrow()
            assert found.column_names == columns and found.num_rows == 9
        with_condition = snapshot.scan("objects", columns=["etag"], where={"name": "a/1"}).to_arrow()
        assert with_condition.to_pylist() == [{"etag": "a"}]

    def test_scans_agree_with_each_other_in_every_shape(self, snapshot: Any) -> None:
        scan = snapshot.scan("objects")
        whole = scan.to_arrow()
        assert whole.schema == scan.schema
        assert [row for batch in scan.to_batches() for row in batch.to_pylist()] == whole.to_pylist()
        assert scan.to_pandas()["name"].tolist() == whole["name"].to_pylist()
        assert "objects" in scan.explain()
        assert snapshot.scan("deleted_objects").to_arrow()["name"].to_pylist() == ["a/0"]

    @pytest.mark.parametrize(
        "options",
        [
            {"columns": ["strange"]},
            {"columns": ["deleted_at"]},
            {"columns": ["name", "name"]},
            {"where": {"strange": 1}},
            {"where": {"deleted_at": None}},
            {"where": {"content_length": "x"}},
            {"where": {"content_length": prefix("x")}},
            {"where": {"name": prefix(5)}},
            {"where": {"name": prefix(b"\xff")}},
            {"where": {"owner": "x"}},
            {"where": {"sharks": ["s"]}},
            {"where": {"sharks": [["s"]]}},
            {"where": {"tags": {"k": "a"}}},
            {"where": {"_revision": "x"}},
            {"where": {"_commit_timestamp": "x"}},
            {"where": {"_version": 5}},
            {"where": {"_version": prefix("\ud800")}},
            {"where": {"_revision": prefix("0")}},
            {"where": "name"},
        ],
        ids=str,
    )
    def test_what_cannot_be_read_is_refused(self, snapshot: Any, options: dict[str, Any]) -> None:
        with pytest.raises(InvalidOption):
            snapshot.scan("objects", **options).to_arrow()

    def test_get_takes_exactly_the_key(self, snapshot: Any) -> None:
        assert snapshot.get("objects", **obj("a/1"))["content_length"] == 1
        assert snapshot.get("objects", **obj("a/0")) is None and snapshot.get("objects", **obj("z")) is None
        for key in (
            {"owner": OWNER, "name": "a/1"},
            obj("a/1", etag="a"),
            obj("a/1", strange=1),
            {},
            obj("a/1") | {"owner": "x"},
        ):
            with pytest.raises(InvalidRows):
                snapshot.get("objects", **key)

    def test_unknown_tables_are_refused_with_those_there_are(self, snapshot: Any) -> None:
        for attempt in (
            lambda: snapshot.scan("strange"),
            lambda: snapshot.scan("deleted_strange"),
            lambda: snapshot.scan("deleted_log"),
            lambda: snapshot.get("strange", name="x"),
            lambda: snapshot.list("strange"),
            lambda: snapshot.get("log", name="x"),
        ):
            with pytest.raises(UnknownTable, match=r"strange|log"):
                attempt()

    def test_every_table_that_is_listed_can_be_scanned(self, snapshot: Any) -> None:
        for table in snapshot.tables:
            scan = snapshot.scan(table)
            assert scan.to_arrow().schema == scan.schema
            scan.explain()
        assert {"objects", "buckets", "deleted_objects", "log", "writers", "conflicts", "forks", "tables"} <= set(snapshot.tables)
        assert "deleted_harvest_errors" not in snapshot.tables


def names_where(snapshot: Any, where: dict[str, Any]) -> list[str]:
    return list(snapshot.scan("objects", where=where).to_arrow()["name"].to_pylist())


def test_an_empty_table_has_its_schema(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "buckets", bucket("empty")))
    found = world.snapshot().scan("objects").to_arrow()
    assert found.num_rows == 0 and found.schema == world.snapshot().scan("objects").schema
    assert rows(world.snapshot(), "deleted_objects") == []
