"""Verify: whether the files of data tables are there, and are what the catalog says of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog, CatalogNotFound
from bucketcatalog.cli import run
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Counting
from bucketcatalog.systems.iox.files import FILES, SAYS, SCHEMAS
from bucketcatalog.systems.iox.findings import Finding, Severity, sorts
from bucketcatalog.systems.iox.predicates import PREDICATES
from bucketcatalog.systems.iox.statistics import TABLE as STATISTICS
from bucketcatalog.systems.iox.verify import verify

from .lost import PASTS, by_file, deleted, made, named, of_two_generations, plain, removed, rows, written


def found_in(store: Store, *, deep: bool = False) -> list[Finding]:
    return [*verify(Catalog(store), deep=deep)]


@pytest.fixture
def store() -> Store:
    return made(deleted)


@pytest.fixture
def name(store: Store) -> str:
    return named(store, ending=".parquet")[0]


def replace(store: Store, name: str, data: bytes) -> None:
    store.delete(name)
    store.put(name, data)


def say_in_catalog(store: Store, table: str, change: Callable[[dict[str, Any]], dict[str, Any]], **where: Any) -> None:
    """Make the first row of a table another one."""
    row = Catalog(store).snapshot().scan(table, where=where).to_arrow().to_pylist()[0]
    with Catalog(store).writer("maintainer-9") as writer, writer.transaction() as tx:
        tx.put(table, [change(row)])


@pytest.mark.parametrize("deep", [False, True], ids=["flat", "deep"])
@pytest.mark.parametrize("past", [past for name, past in PASTS.items() if name != "never_committed"])
def test_of_a_whole_catalog_there_is_nothing_to_say(past: Callable[[Catalog], None], *, deep: bool) -> None:
    assert found_in(made(past), deep=deep) == []


def test_of_a_catalog_without_data_tables_there_is_nothing_to_say() -> None:
    store = made(plain)
    with Catalog(store).writer("w", database="other") as writer, writer.transaction() as tx:
        tx.put("buckets", [{"owner": "11111111-1111-4111-8111-111111111111", "name": "b"}])
    assert [*verify(Catalog(store), database="other", deep=True)] == []


def test_where_there_is_no_catalog_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(CatalogNotFound):
        [*verify(Catalog(tmp_path))]


@pytest.mark.parametrize("deep", [False, True], ids=["flat", "deep"])
def test_a_file_that_is_gone(store: Store, name: str, *, deep: bool) -> None:
    store.delete(name)
    (finding,) = found_in(store, deep=deep)
    assert (finding.code, finding.file, finding.severity) == ("MISSING", name, Severity.ERROR)


def test_a_file_of_another_size(store: Store, name: str) -> None:
    replace(store, name, store.get(name)[:-1])
    (finding,) = found_in(store, deep=True)
    assert (finding.code, finding.file) == ("WRONG_SIZE", name)
    assert f"{len(store.get(name)):,} bytes" in finding.message


def test_a_footer_that_cannot_be_read_is_found_by_who_looks(store: Store, name: str) -> None:
    data = store.get(name)
    replace(store, name, data[:-4] + b"????")
    assert found_in(store) == []
    assert by_file(found_in(store, deep=True)) == {name: "UNREADABLE"}


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("first_clock", "SAYS_OTHERWISE"),
        ("write", "SAYS_OTHERWISE"),
        ("writer", "CLAIMS_ANOTHER_PATH"),
        ("table", "CLAIMS_ANOTHER_PATH"),
    ],
)
def test_a_file_that_says_something_else(store: Store, name: str, said: str, code: str) -> None:
    table = pq.read_table(pa.BufferReader(store.get(name)))
    about = json.loads(table.schema.metadata[SAYS])
    about[said] = about["chunk"] if said == "write" else 1 if said == "first_clock" else "x" * len(about[said])
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, SAYS: json.dumps(about).encode()}), sink)
    replace(store, name, sink.getvalue().to_pybytes())
    size = len(store.get(name))
    say_in_catalog(store, FILES, lambda row: {**row, "size": size}, path=name)
    assert by_file(found_in(store, deep=True))[name] == code


@pytest.mark.parametrize("what", ["rows", "row_groups", "key_columns", "last_clock", "origins"])
def test_a_catalog_that_says_something_else_of_a_file(store: Store, name: str, what: str) -> None:
    other: Any = {"key_columns": ["v"], "origins": ["x"]}.get(what, 7)
    say_in_catalog(store, FILES, lambda row: {**row, what: other}, path=name)
    (finding,) = found_in(store, deep=True)
    assert (finding.code, finding.file) == ("SAYS_OTHERWISE", name) and what in finding.message


def test_a_catalog_that_has_lost_what_was_applied_to_a_file() -> None:
    store = made(of_two_generations)
    rows = Catalog(store).snapshot().scan(FILES).to_arrow().to_pylist()
    name = next(row["path"] for row in rows if row["applied"])
    more = [*next(row["applied"] for row in rows if row["path"] == name), "11111111-1111-4111-8111-111111111111"]
    say_in_catalog(store, FILES, lambda row: {**row, "applied": more}, path=name)
    assert found_in(store, deep=True) == []
    say_in_catalog(store, FILES, lambda row: {**row, "applied": more[1:]}, path=name)
    (finding,) = found_in(store, deep=True)
    assert (finding.code, finding.file) == ("SAYS_OTHERWISE", name) and "applied" in finding.message


def test_columns_that_are_not_those_of_the_catalog(store: Store, name: str) -> None:
    schemas = Catalog(store).snapshot().scan(SCHEMAS, where={"table": "cpu"}).to_arrow().to_pylist()
    row = Catalog(store).snapshot().scan(FILES, where={"path": name}).to_arrow().to_pylist()[0]
    other = next(each["schema"] for each in schemas if each["schema"] != row["schema"])
    say_in_catalog(store, FILES, lambda row: {**row, "schema": other}, path=name)
    assert by_file(found_in(store, deep=True)) == {name: "SAYS_OTHERWISE"}


@pytest.mark.parametrize("deep", [False, True], ids=["flat", "deep"])
def test_columns_of_which_nothing_is_said(store: Store, *, deep: bool) -> None:
    (row,) = Catalog(store).snapshot().scan(SCHEMAS, where={"table": "mem/.."}).to_arrow().to_pylist()[:1]
    with Catalog(store).writer("maintainer-9") as writer, writer.transaction() as tx:
        tx.delete(SCHEMAS, [{"table": row["table"], "schema": row["schema"]}])
    found = found_in(store, deep=deep)
    assert {finding.code for finding in found} == {"SCHEMA_MISSING"} and "/mem%2F../" in found[0].file


def test_statistics_that_are_not_those_of_the_file(store: Store, name: str) -> None:
    chunk = name.split("/")[-1].removesuffix(".parquet")
    say_in_catalog(store, STATISTICS, lambda row: {**row, "min_int": 2}, chunk=chunk, column="v")
    assert by_file(found_in(store, deep=True)) == {name: "WRONG_STATISTICS"}


def test_statistics_that_are_lost(store: Store, name: str) -> None:
    chunk = name.split("/")[-1].removesuffix(".parquet")
    (row,) = Catalog(store).snapshot().scan(STATISTICS, where={"chunk": chunk, "column": "v"}).to_arrow().to_pylist()
    with Catalog(store).writer("maintainer-9") as writer, writer.transaction() as tx:
        tx.delete(STATISTICS, [{key: row[key] for key in ("table", "column", "partition", "chunk")}])
    assert by_file(found_in(store, deep=True)) == {name: "WRONG_STATISTICS"}


def test_statistics_of_several_row_groups_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.systems.iox.files.ROW_GROUP_ROWS", 2)
    store = made(lambda catalog: catalog.data("cpu", writer="alice").append([*rows(1, 2, 3), {"host": None, "v": None}]))
    assert found_in(store, deep=True) == []
    name = named(store, ending=".parquet")[0]
    say_in_catalog(store, STATISTICS, lambda row: {**row, "row_groups": row["row_groups"][:1]}, column="v")
    assert by_file(found_in(store, deep=True)) == {name: "WRONG_STATISTICS"}


def test_markers(store: Store) -> None:
    gone, other = named(store, ending=".json")
    store.delete(gone)
    said = json.loads(store.get(other))
    replace(store, other, json.dumps({**said, "chunks": said["chunks"][:1]}).encode())
    assert by_file(found_in(store)) == {gone: "MARKER_MISSING"}
    assert by_file(found_in(store, deep=True)) == {gone: "MARKER_MISSING", other: "MARKER_SAYS_OTHERWISE"}
    replace(store, other, b"{")
    assert by_file(found_in(store, deep=True)) == {gone: "MARKER_MISSING", other: "MARKER_UNREADABLE"}


def test_what_no_row_names_is_shown_with_its_age(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    plain(catalog)
    name = written(catalog, rows(8))[0].row["path"]
    was = (tmp_path / name).stat().st_mtime - 3 * 3600
    os.utime(tmp_path / name, (was, was))
    (finding,) = verify(Catalog(tmp_path))
    assert (finding.code, finding.file, finding.severity) == ("UNNAMED", name, Severity.INFO)
    assert finding.message == "No row names it; it was written 3h ago."


def test_what_has_ended_is_named_and_may_be_gone() -> None:
    store = made(removed)
    assert found_in(store) == []
    ended = Catalog(store).snapshot().scan(f"deleted_{FILES}", columns=["path"]).to_arrow()["path"].to_pylist()
    for name in ended:
        store.delete(name)
    assert found_in(store, deep=True) == []


def test_nothing_is_written_and_without_deep_no_file_is_opened() -> None:
    counting = Counting(made(of_two_generations))
    before = [info.name for info in counting.list("")]
    counting.reset()
    assert [*verify(Catalog(counting))] == []
    flat = counting.requests["get_range"]
    counting.reset()
    assert [*verify(Catalog(counting), deep=True)] == []
    assert counting.requests["get_range"] > flat
    assert [info.name for info in counting.list("")] == before


def test_every_finding_says_what_to_do() -> None:
    for code, sort in sorts().items():
        assert sort.remedy.endswith(".") and str(Finding(code, "f", "M.")).startswith(f"{sort.severity.value} {code} f: M. ")


class TestCommands:
    @pytest.fixture
    def lake(self, tmp_path: Path) -> Path:
        catalog = Catalog(tmp_path)
        plain(catalog)
        catalog.data("cpu", writer="alice").delete_where({"v": 1})
        return tmp_path

    def test_verify_ends_with_1_where_something_is_wrong(self, lake: Path, capfd: pytest.CaptureFixture[str]) -> None:
        assert run(["iox", "verify", str(lake)]) == 0
        assert capfd.readouterr().out == "Nothing is wrong.\n"
        gone = next(lake.glob("alice/default/data/default/cpu/*.parquet"))
        gone.unlink()
        assert run(["iox", "verify", str(lake), "--json"]) == 1
        (line,) = capfd.readouterr().out.splitlines()
        assert (json.loads(line)["code"], json.loads(line)["severity"]) == ("MISSING", "error")
        assert run(["iox", "verify", str(lake), "--deep"]) == 1
        assert capfd.readouterr().out.splitlines()[-1] == "1 error."

    def test_rebuild_says_what_it_would_do_and_does_it(self, lake: Path, capfd: pytest.CaptureFixture[str]) -> None:
        for file in lake.glob("*/default/transactions/**/*.txn"):
            file.unlink()
        assert run(["iox", "rebuild", str(lake)]) == 0
        assert "With --yes it takes in: 4 files with 7 rows, " in capfd.readouterr().out
        assert run(["iox", "rebuild", str(lake), "--yes", "--json"]) == 0
        told = json.loads(capfd.readouterr().out)
        assert (told["files"], told["rows"], told["deletions"], told["whole"]) == (4, 7, 1, True)
        assert {finding["code"] for finding in told["findings"]} == {"PERHAPS_UNCOMMITTED", "PERHAPS_NOT_DELETED"}
        assert run(["iox", "rebuild", str(lake)]) == 0
        assert capfd.readouterr().out == "There is nothing to take in.\n"
        assert run(["iox", "verify", str(lake), "--deep"]) == 0

    def test_adopting_is_asked_for(self, lake: Path, capfd: pytest.CaptureFixture[str]) -> None:
        written(Catalog(lake), rows(8))
        now = ["--older-than", "0s", "--force"]
        assert run(["iox", "rebuild", str(lake), *now]) == 0
        assert capfd.readouterr().out.splitlines()[-1] == "Nothing is taken in without --adopt and --yes."
        assert run(["iox", "rebuild", str(lake), *now, "--adopt", "--yes"]) == 0
        assert capfd.readouterr().out.splitlines()[-1].startswith("Taken in: 1 file with 1 row, ")
        assert run(["iox", "rebuild", str(lake), "--older-than", "0s"]) != 0


def test_predicates_of_older_releases_name_no_marker(store: Store) -> None:
    say_in_catalog(store, PREDICATES, lambda row: {**row, "path": None})
    assert [finding.code for finding in found_in(store, deep=True)] == []
