"""Rebuild: the catalog of data tables made anew from their files, or from what of them a catalog does not name."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, CatalogNotFound, DatabaseNotFound, InvalidOption, StaleRead
from bucketcatalog.clock import uuid7_time
from bucketcatalog.errors import BucketCatalogError
from bucketcatalog.model.uuids import uuid_bytes
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Failing, SimulatedCrash
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.systems.iox.files import FILES, SCHEMAS, add_files
from bucketcatalog.systems.iox.predicates import PREDICATES
from bucketcatalog.systems.iox.rebuild import rebuild
from bucketcatalog.systems.iox.statistics import TABLE as STATISTICS

from ....kit.world import Intervening
from .lost import (
    ALL,
    NOW,
    PASTS,
    Compactor,
    by_file,
    codes,
    compacted,
    copy_of,
    deleted,
    errors,
    made,
    named,
    of_two_generations,
    plain,
    rebuilt,
    removed,
    rows,
    shown,
    without_log,
    written,
)
from .lost import kept as of_table


class TestAllCatalogFilesGone:
    @pytest.mark.parametrize("past", PASTS.values(), ids=PASTS)
    def test_the_rows_are_what_they_were(self, past: Callable[[Catalog], None]) -> None:
        store = made(past)
        found = without_log(store)
        report = rebuilt(found)
        assert report.whole and report.version is not None and report.listed == len(named(store, ending=".parquet"))
        assert shown(found) == shown(store)
        assert errors(found) == []
        assert not {"UNREADABLE", "MARKER_UNREADABLE"} & {*codes(report.findings)}

    @pytest.mark.parametrize("past", [plain, deleted, removed, compacted, of_two_generations])
    def test_the_catalog_says_of_files_what_it_said(self, past: Callable[[Catalog], None]) -> None:
        store = made(past)
        found = without_log(store)
        rebuilt(found)
        for table in (FILES, STATISTICS, SCHEMAS, f"deleted_{FILES}", *([PREDICATES] if past is not plain else [])):
            old, new = of_table(store, table), of_table(found, table)
            without = "deleted_at"
            assert [{k: v for k, v in row.items() if k != without} for row in new] == [
                {k: v for k, v in row.items() if k != without} for row in old
            ]

    @pytest.mark.parametrize("past", PASTS.values(), ids=PASTS)
    def test_a_second_run_finds_nothing_left_to_do(self, past: Callable[[Catalog], None]) -> None:
        found = without_log(made(past))
        rebuilt(found)
        before = named(found, data=False)
        again = rebuilt(found, adopt=True)
        assert (again.whole, again.version, again.files, again.findings) == (False, None, 0, [])
        assert named(found, data=False) == before

    @pytest.mark.parametrize("past", PASTS.values(), ids=PASTS)
    def test_work_goes_on_as_before(self, past: Callable[[Catalog], None]) -> None:
        store = made(past)
        found = without_log(store)
        rebuilt(found)
        for each in (store, found):
            catalog = Catalog(each)
            catalog.run_job("iox.compact", table="cpu", least=1)
            catalog.data("cpu", writer="bob").delete_where({"v": 1})
            catalog.run_job("iox.compact", table="cpu", least=1)
        assert [row["v"] for row in shown(found)["data.cpu"]] == [row["v"] for row in shown(store)["data.cpu"]]
        assert errors(found) == []

    def test_a_dry_run_says_the_same_and_writes_nothing(self) -> None:
        found = without_log(made(deleted))
        before = [info.name for info in found.list("")]
        said = rebuild(Catalog(found), **NOW)
        assert [info.name for info in found.list("")] == before
        done = rebuilt(found)
        assert (said.files, said.rows, said.bytes, said.deletions, said.tables) == (5, 9, done.bytes, 2, ["cpu", "mem/.."])
        assert (said.version, said.findings) == (None, done.findings)
        assert (said.files, said.rows, said.ended) == (done.files, done.rows, done.ended)

    def test_a_file_was_added_when_its_write_began(self) -> None:
        found = without_log(made(plain))
        rebuilt(found)
        for row in Catalog(found).snapshot().scan(FILES, columns=["added", "write"]).to_arrow().to_pylist():
            assert row["added"].timestamp() * 1e6 == pytest.approx(uuid7_time(uuid_bytes(row["write"])), abs=1)

    def test_what_was_written_lately_is_said_to_be_perhaps_uncommitted(self, tmp_path: Path) -> None:
        catalog = Catalog(tmp_path)
        plain(catalog)
        catalog.data("cpu", writer="alice").delete_where({"v": 1})
        for folder in ("transactions", "newest", "segments"):
            for file in tmp_path.glob(f"*/default/{folder}/**/*"):
                if file.is_file():
                    file.unlink()
        report = rebuild(Catalog(tmp_path))
        # Of those of which a deletion speaks it is known that somebody had read them.
        assert codes(report.findings) == ["PERHAPS_NOT_DELETED", "PERHAPS_UNCOMMITTED", "PERHAPS_UNCOMMITTED"]
        for file in tmp_path.glob("*/default/data/**/*"):
            os.utime(file, (0, 0))
        assert rebuild(Catalog(tmp_path)).findings == []

    def test_attempts_of_one_write_are_all_taken_in_and_told(self) -> None:
        store = made(plain)
        catalog = Catalog(store)
        lost = written(catalog, rows(8), times=2)
        found = without_log(store)
        report = rebuilt(found)
        assert by_file(report.findings)[max(each.row["path"] for each in lost)] == "SEVERAL_ATTEMPTS"
        assert [row["v"] for row in shown(found)["data.cpu"]].count(8) == 2
        assert codes(report.findings) == ["SEVERAL_ATTEMPTS"]

    def test_a_file_of_another_write_with_equal_rows_is_no_attempt(self) -> None:
        store = MemoryStore()
        for _ in range(2):
            Catalog(store).data("cpu", writer="alice").append(rows(1))
        assert rebuilt(without_log(store)).findings == []

    def test_what_a_dead_compaction_has_made_replaces_what_it_was_made_of(self) -> None:
        store = made(deleted)
        Compactor(Catalog(store), "compactor-1")
        found = without_log(store)
        report = rebuilt(found)
        assert codes(report.findings) == ["REPLACED", "REPLACED", "REPLACED"]
        assert shown(found) == shown(store)

    def test_what_has_ended_is_collected_as_it_would_have_been(self) -> None:
        found = without_log(made(removed))
        rebuilt(found)
        ended = Catalog(found).snapshot().scan(f"deleted_{FILES}", columns=["path"]).to_arrow()["path"].to_pylist()
        assert len(ended) == 1 and ended[0] in named(found)
        assert [*Catalog(found).orphans(older_than="0s", force=True)] == []

    def test_other_databases_and_other_files_are_left_alone(self) -> None:
        store = made(plain)
        Catalog(store).data("cpu", database="other", writer="alice").append(rows(1))
        found = without_log(store)
        for name in (
            "alice/default/data/notes.txt",
            "alice/default/data/a/b/c/d.parquet",
            "alice/default/data/.deleted/cpu/x.json",
        ):
            found.put(name, b"?")
        report = rebuilt(found, database="default")
        assert (report.files, report.findings) == (4, [])
        assert Catalog(found).databases() == ["default"]
        assert rebuilt(found, database="other").files == 1

    def test_it_is_a_transaction_of_a_maintainer(self) -> None:
        found = without_log(made(plain))
        assert rebuilt(found, writer="maintainer-7").version == "maintainer-7@0"
        assert [name.split("/")[0] for name in named(found, data=False, ending=".txn")] == ["maintainer-7"]

    def test_in_several_threads_it_is_the_same(self) -> None:
        class Remote(Intervening):
            concurrency = 8

        store = made(compacted)
        found = without_log(store)
        said: list[str] = []
        rebuilt(Remote(found, "nobody", lambda: None), progress=said.append)
        assert shown(found) == shown(store)


class TestRefused:
    def test_where_there_is_nothing(self) -> None:
        for database in (None, "default"):
            with pytest.raises(CatalogNotFound):
                rebuilt(MemoryStore(), database=database)

    def test_without_a_name_where_there_are_several(self) -> None:
        store = made(plain)
        Catalog(store).data("cpu", database="other", writer="alice").append(rows(1))
        with pytest.raises(DatabaseNotFound, match="default, other"):
            rebuilt(without_log(store))

    def test_an_age_at_which_writers_may_be_under_way(self) -> None:
        with pytest.raises(InvalidOption, match="60m ago may be committed yet"):
            rebuild(Catalog(made(plain)), older_than="1h")

    def test_by_who_is_no_maintainer(self) -> None:
        with pytest.raises(InvalidOption, match="not a maintainer"):
            rebuilt(made(plain), writer="alice")

    def test_where_somebody_has_begun_to_commit_meanwhile(self) -> None:
        found = without_log(made(plain))
        listing = _Listing(found, lambda: Catalog(found).data("cpu", writer="bob").append(rows(9)))
        with pytest.raises(StaleRead, match="begun to commit"):
            rebuild(Catalog(listing), **ALL)
        assert rebuilt(found, adopt=True).files == 4
        assert len(shown(found)["data.cpu"]) == 6


class _Listing(Intervening):
    """Something happens once, after the first footer was read."""

    def __init__(self, inner: Any, act: Callable[[], Any]) -> None:
        super().__init__(inner, "nobody", lambda: None)
        self._after: Callable[[], Any] | None = act

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        found: bytes = super().get_range(name, offset, length)
        if self._after is not None:
            act, self._after = self._after, None
            act()
        return found


class TestKilled:
    @pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize("adopt", [False, True], ids=["whole", "adopt"])
    def test_at_any_step_it_runs_again_to_the_same_result(self, *, late: bool, adopt: bool) -> None:
        store = made(of_two_generations)
        written(Catalog(store), rows(77))
        origin = copy_of(store) if adopt else without_log(store)
        counting = Failing(copy_of(origin))
        rebuild(Catalog(counting), **ALL, adopt=adopt)
        expected = shown(counting.inner)
        seen: set[frozenset[str]] = set()
        for at in range(len(counting.calls)):
            found = copy_of(origin)
            with pytest.raises(SimulatedCrash):
                rebuild(Catalog(Failing(found, at=at, after=late)), **ALL, adopt=adopt)
            there = frozenset(info.name.rsplit("/", 1)[0] for info in found.list(""))
            if there in seen:  # what comes next depends on nothing but what is in the store
                continue
            seen.add(there)
            if adopt:
                assert shown(found) in (shown(origin), expected)
            rebuild(Catalog(found), **ALL, adopt=adopt)
            assert shown(found) == expected, (at, counting.calls[at])
            assert rebuild(Catalog(found), **ALL, adopt=True).version is None
        assert len(seen) == (2 if late else 1)


class TestPartialLoss:
    @pytest.mark.parametrize("how", ["lost", "damaged"])
    @pytest.mark.parametrize("past", [removed, of_two_generations], ids=lambda past: past.__name__)
    def test_of_any_one_catalog_file_costs_nothing_that_the_files_tell(self, past: Callable[[Catalog], None], how: str) -> None:
        store = made(past)
        with Catalog(store).writer("compactor-9") as compactor:
            compactor.checkpoint(scope="all")
        expected = shown(store)
        removal = [each for each in named(store, data=False, ending=".txn") if each.startswith("bob")][2]
        gone = Catalog(store).snapshot().scan(f"deleted_{FILES}", columns=["chunk"]).to_arrow()["chunk"].to_pylist()
        for name in named(store, data=False):
            if how == "lost":
                found = copy_of(store, without=lambda each, name=name: each == name)
            else:
                found = copy_of(store, changed={name: store.get(name)[:-9] or b"?"})
            for writer in ("alice", "bob", "compactor-2", "compactor-9"):  # nobody gets by with what a checkpoint has
                for checkpoint in [each for each in named(found, data=False) if not each.endswith(".txn")]:
                    if checkpoint.startswith(writer):
                        found.delete(checkpoint)
            aside = {name, *self._mended(found)}
            got = shown(found)
            if past is removed and removal in aside:  # it alone held that files were removed
                got["data.cpu"] = [row for row in got["data.cpu"] if row["_chunk"] not in gone]
            assert got == expected, name
            assert errors(found) == [], name

    @staticmethod
    def _mended(found: Store) -> set[str]:
        """What an operator does: what errors say, until the log can be read, and then take in what is not named; what was set aside."""
        aside = set()
        while (wrong := _wrong_with_log(found)) is not None:
            said = re.search(r"set_aside=\['(\S+\.txn)'\]", wrong.next_step)
            assert said is not None, wrong
            Catalog(found).repair(set_aside=[said[1]], dry_run=False, force=True)
            aside.add(said[1])
        rebuilt(found, adopt=True)
        return aside


def _wrong_with_log(found: Store) -> BucketCatalogError | None:
    try:
        snapshot = Catalog(found).snapshot()
        for table in (FILES, PREDICATES):
            if table in snapshot.definitions:
                snapshot.scan(table).to_arrow()
    except BucketCatalogError as error:
        return error
    return None


class TestAdopting:
    def test_what_a_dead_writer_has_never_committed(self) -> None:
        store = made(plain)
        before = shown(store)
        (lost,) = written(Catalog(store), rows(8))
        report = rebuilt(store)
        assert (report.files, report.version, report.whole) == (0, None, False)
        assert by_file(report.findings) == {lost.row["path"]: "PERHAPS_UNCOMMITTED"}
        assert shown(store) == before
        assert rebuild(Catalog(store), adopt=True, **NOW).files == 1
        assert shown(store) == before
        report = rebuilt(store, adopt=True)
        assert (report.files, report.rows, report.tables) == (1, 1, ["cpu"])
        assert [row["v"] for row in shown(store)["data.cpu"]].count(8) == 1
        assert errors(store) == []
        assert rebuilt(store, adopt=True).version is None

    def test_into_a_table_that_nobody_has_committed_to(self) -> None:
        store = made(plain)
        written(Catalog(store), rows(8), table="new")
        rebuilt(store, adopt=True)
        assert [row["v"] for row in shown(store)["data.new"]] == [8]

    def test_only_what_no_commit_can_name_any_more(self, tmp_path: Path) -> None:
        catalog = Catalog(tmp_path)
        plain(catalog)
        young, old = (written(catalog, rows(value))[0].row["path"] for value in (8, 9))
        day = datetime.datetime.now(tz=datetime.UTC).timestamp() - 25 * 3600
        os.utime(tmp_path / old, (day, day))
        report = rebuild(Catalog(tmp_path), adopt=True, dry_run=False)
        assert by_file(report.findings) == {young: "UNDER_WAY", old: "PERHAPS_UNCOMMITTED"}
        assert sorted(row["v"] for row in shown(Catalog(tmp_path).store)["data.cpu"]) == [1, 1, 2, 2, 3, 9]

    def test_no_attempt_of_a_write_that_was_committed_by_another(self) -> None:
        store = made(plain)
        catalog = Catalog(store)
        files = written(catalog, rows(8), writer="alice", times=2)
        with catalog.writer("alice") as writer, writer.transaction() as tx:
            add_files(tx, files[:1], ())
        report = rebuilt(store, adopt=True)
        assert by_file(report.findings) == {files[1].row["path"]: "SEVERAL_ATTEMPTS"}
        assert report.version is None

    def test_no_compaction_of_files_that_the_catalog_names(self) -> None:
        store = made(deleted)
        before = shown(store)
        Compactor(Catalog(store), "compactor-1")
        report = rebuilt(store, adopt=True)
        assert codes(report.findings) == ["UNDONE_COMPACTION"] * 2
        assert (report.version, shown(store)) == (None, before)

    def test_nothing_that_compaction_has_replaced_since(self) -> None:
        store = made(compacted)
        before = shown(store)
        names = [each for each in named(store, data=False, ending=".txn") if each.startswith("alice")]
        found = copy_of(store, without=lambda name: name in names[:1])
        Catalog(found).repair(set_aside=names[:1], dry_run=False)
        report = rebuilt(found, adopt=True)
        assert "PERHAPS_UNCOMMITTED" not in codes(report.findings)
        assert shown(found) == before

    def test_deletions_of_rows_whose_commits_are_lost(self) -> None:
        store = made(deleted)
        found = self._without_last_but_one(store)
        assert shown(found) != shown(store)
        assert codes(rebuilt(found).findings) == ["PERHAPS_NOT_DELETED"]
        assert shown(found) != shown(store)
        assert rebuilt(found, adopt=True).deletions == 1
        assert shown(found) == shown(store)

    def test_no_removal_of_files_that_the_catalog_names(self) -> None:
        """Nobody can tell it from what a restore that died has said of files that stay."""
        store = made(removed)
        found = self._without_last_but_one(store)
        before = shown(found)
        report = rebuilt(found, adopt=True)
        assert (codes(report.findings), report.version) == (["PERHAPS_REMOVED"], None)
        assert shown(found) == before

    @staticmethod
    def _without_last_but_one(store: Store) -> Store:
        """The third commit of bob's is damaged, and set aside."""
        lost = [each for each in named(store, data=False, ending=".txn") if each.startswith("bob")][2]
        found = copy_of(store, changed={lost: store.get(lost)[:-9]})
        Catalog(found).repair(set_aside=[lost], dry_run=False)
        return found

    def test_a_tables_key_is_the_catalogs(self) -> None:
        store = made(PASTS["keyed"])
        before = shown(store)
        (lost,) = written(Catalog(store), rows(8))
        report = rebuilt(store, adopt=True)
        assert by_file(report.findings) == {lost.row["path"]: "KEY_CONFLICT"}
        assert shown(store) == before

    def test_a_write_is_adopted_as_a_whole_once_its_youngest_file_is_old_enough(self, tmp_path: Path) -> None:
        catalog = Catalog(tmp_path)
        plain(catalog)
        made_of = [{"host": "a", "v": value, "_partition": partition} for value, partition in ((8, "p"), (9, "q"))]
        paths = [each.row["path"] for each in written(catalog, made_of)]
        assert len(paths) == 2
        hour = datetime.datetime.now(tz=datetime.UTC).timestamp() - 3600
        os.utime(tmp_path / paths[0], (hour - 30 * 3600,) * 2)
        assert {*by_file(rebuild(Catalog(tmp_path), adopt=True, dry_run=False).findings).values()} == {"UNDER_WAY"}
        os.utime(tmp_path / paths[1], (hour - 24 * 3600,) * 2)
        assert rebuild(Catalog(tmp_path), adopt=True, dry_run=False).files == 2


def test_the_key_is_that_of_files_that_count(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    table = catalog.data("t", writer="w")
    table.append([{"a": 1, "b": 1}], key=["a"])
    table.remove(partition="default")
    table.append([{"a": 2, "b": 2}], key=["b"])
    store = without_log(catalog.store)
    assert rebuilt(store).files == 1
    assert [row["a"] for row in shown(store)["data.t"]] == [2]
