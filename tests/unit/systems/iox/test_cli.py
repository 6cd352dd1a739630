"""``bucketcatalog iox``: data tables on a command line."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog
from bucketcatalog.errors import UsageError
from bucketcatalog.query.row_tests import COMPARISONS, Comparison
from bucketcatalog.systems.iox.cli.conditions import condition, in_range

from ...cli.conftest import Cli
from ...cli.conftest import cli as cli

COMMANDS = ("add", "remove", "delete", "compact", "files", "rebuild", "verify")
NEW_YEAR = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
ROWS = [{"host": f"h{n % 2}", "time": NEW_YEAR + datetime.timedelta(hours=n), "v": n} for n in range(6)]
COLUMNS = pa.schema(
    [
        ("host", pa.string()),
        ("CPU usage", pa.float64()),
        ("v", pa.int8()),
        ("ok", pa.bool_()),
        ("price", pa.decimal128(9, 2)),
        ("time", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("at", pa.time64("us")),
        ("raw", pa.binary()),
        ("inner", pa.struct([("x", pa.int64())])),
        ("is", pa.string()),
        ("is not", pa.string()),
    ]
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Six rows of two hosts, an hour apart."""
    return parquet(tmp_path / "rows.parquet", ROWS)


@pytest.fixture
def lake(cli: Cli, tmp_path: Path, file: Path) -> Path:
    """A table of two partitions, a file of six rows in each."""
    for partition in ("a", "b"):
        iox(cli, "add", tmp_path / "lake", "cpu", file, "--partition", partition)
    return tmp_path / "lake"


def parquet(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path, **options)
    return path


def iox(cli: Cli, command: str, *arguments: object) -> Any:
    ran = cli("iox", command, *arguments, "--json")
    assert ran.code == 0, ran.err
    return ran.document


def refused(cli: Cli, command: str, *arguments: object) -> str:
    """The error of a command that ends with 1 or 2."""
    ran = cli("iox", command, *arguments)
    assert ran.code in (1, 2) and ran.err.startswith("[") and ran.err.count("\n") == 1
    return ran.err


def values(path: Path, name: str = "cpu", **moment: Any) -> list[int]:
    found: list[int] = Catalog(path).data(name).scan(columns=["v"], **moment).to_arrow()["v"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_json(cli: Cli, command: str) -> None:
    shown = cli("iox", command, "--help").out
    assert f"Example: bucketcatalog iox {command} " in " ".join(shown.split())
    assert "--json" in shown and "--storage-option" in shown and "--database" in shown


def test_files_are_added_and_listed(cli: Cli, tmp_path: Path, file: Path) -> None:
    lake = tmp_path / "lake"
    more = parquet(tmp_path / "more.parquet", [{"v": 7, "_partition": "x/y"}, {"v": 8, "_partition": None}])
    added = iox(cli, "add", lake, "cpu", file, more, "--partition", "p", "--writer", "etl", "--clock", 7)
    size = sum(path.stat().st_size for path in lake.rglob("data/*/cpu/*.parquet"))
    assert added == {
        "table": "cpu",
        "files": 3,
        "rows": 8,
        "bytes": size,
        "partitions": ["p", "x/y"],
        "version": "etl@0",
    }
    assert values(lake) == [0, 1, 2, 3, 4, 5, 7, 8]
    listed = cli("iox", "files", lake, "cpu", "--json").lines
    assert [(each["partition"], each["rows"], each["first_clock"]) for each in listed] == [
        ("p", 6, 7),
        ("p", 1, 7),
        ("x/y", 1, 7),
    ]
    assert cli("iox", "files", lake, "--json").lines == listed
    assert cli("iox", "files", lake, "--partition", "x/y", "--json").lines == listed[2:]
    assert cli("iox", "files", lake, "--limit", 1, "--json").lines == listed[:1]
    shown = cli("iox", "files", lake).out.splitlines()
    assert shown[0].split() == ["TABLE", "ADDED", "PARTITION", "ROWS", "SIZE", "CHUNK"]
    assert [line.split()[-1] for line in shown[1:]] == [each["chunk"] for each in listed]
    iox(cli, "add", lake, "cpu", file, "--writer", "etl")
    assert len(cli("iox", "files", lake, "cpu", "--json").lines) == 4
    assert cli("iox", "files", lake, "cpu", "--as-of", "etl@0", "--json").lines == listed


def test_a_catalog_without_data_tables_has_no_files(cli: Cli, tmp_path: Path) -> None:
    with Catalog(tmp_path).writer("w") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": "8f3f1d6e-6a53-4b0c-9d3c-0d9a8d2b7c11", "name": "cats"})
    assert cli("iox", "files", tmp_path, "--json").lines == []
    assert cli("iox", "files", tmp_path).out == "No file.\n"
    assert "It has none yet." in refused(cli, "files", tmp_path, "cpu")


def test_a_key_is_given_once_and_the_newest_row_counts(cli: Cli, tmp_path: Path) -> None:
    lake, one = tmp_path / "lake", parquet(tmp_path / "one.parquet", [{"host": "a", "v": 1}])
    other = parquet(tmp_path / "other.parquet", [{"host": "a", "v": 2}])
    iox(cli, "add", lake, "cpu", one, "--key", "host")
    iox(cli, "add", lake, "cpu", other)
    assert values(lake) == [2]
    assert refused(cli, "add", lake, "cpu", other, "--key", "v").startswith(
        "[INVALID_OPTION] The key of data table 'cpu' is host"
    )
    assert refused(cli, "add", lake, "mem", other, "--key", "nothing").startswith("[INVALID_ROWS]")
    for options in ([], ["--yes"]):
        told = refused(cli, "delete", lake, "cpu", "--where", "v = 2", *options)
        assert told.startswith("[INVALID_OPTION] Rows of data table 'cpu' are told apart by host")
    assert iox(cli, "delete", lake, "cpu", "--where", "host = a")["rows"] == 1


def test_of_files_that_cannot_all_be_added_none_is(cli: Cli, tmp_path: Path, file: Path) -> None:
    lake, text = tmp_path / "lake", tmp_path / "text"
    text.write_text("no Parquet")
    assert refused(cli, "add", lake, "cpu", file, text).startswith("[INVALID_ROWS]")
    assert refused(cli, "add", lake, "cpu", file, tmp_path / "nowhere").startswith("[SOURCE_NOT_FOUND]")
    assert refused(cli, "add", lake, "cpu", file, parquet(tmp_path / "x", [{"_chunk": "c"}])).startswith("[INVALID_ROWS]")
    assert not lake.exists()


def test_of_several_files_none_is_added_where_one_turns_out_damaged(cli: Cli, tmp_path: Path, file: Path) -> None:
    lake, damaged = tmp_path / "lake", tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"v": range(300_000)}), damaged, compression="zstd", row_group_size=150_000)
    start = pq.read_metadata(damaged).row_group(1).column(0).data_page_offset
    raw = bytearray(damaged.read_bytes())
    raw[start : start + 4_000] = bytes(4_000)
    damaged.write_bytes(raw)
    told = refused(cli, "add", lake, "cpu", file, damaged)
    assert told.startswith(f"[INVALID_ROWS] {damaged} is no Parquet file")
    assert Catalog(lake).databases() == []


def test_an_empty_file_adds_nothing(cli: Cli, tmp_path: Path) -> None:
    empty = tmp_path / "empty.parquet"
    pq.write_table(pa.table({"v": pa.array([], pa.int64())}), empty)
    added = iox(cli, "add", tmp_path / "lake", "cpu", empty)
    assert added == {"table": "cpu", "files": 0, "rows": 0, "bytes": 0, "partitions": [], "version": None}


def test_files_are_removed_by_partition_chunk_and_path_once_that_is_confirmed(cli: Cli, lake: Path, file: Path) -> None:
    told = iox(cli, "remove", lake, "cpu", "--partition", "a")
    assert (told["dry_run"], told["version"], told["rows"], len(told["files"])) == (True, None, 6, 1)
    assert len(values(lake)) == 12
    done = iox(cli, "remove", lake, "cpu", "--partition", "a", "--yes")
    assert done == {**told, "dry_run": False, "version": done["version"]} and done["version"] is not None
    assert len(values(lake)) == 6
    for column in ("chunk", "path"):
        (one,) = cli("iox", "files", lake, "cpu", "--json").lines
        shown = cli("iox", "remove", lake, "cpu", one[column]).out
        assert one["chunk"] in shown and "\n1 file, 6 rows, " in shown
        assert shown.splitlines()[-1] == "This is what would be done with --yes."
        assert cli("iox", "remove", lake, "cpu", one[column], "--yes").out.splitlines()[-1].startswith("committed data-")
        assert values(lake) == []
        iox(cli, "add", lake, "cpu", file)


def test_what_is_not_there_is_not_removed(cli: Cli, lake: Path) -> None:
    (one, _) = cli("iox", "files", lake, "cpu", "--json").lines
    assert refused(cli, "remove", lake, "cpu", one["chunk"], "other", "--yes").startswith("[NOT_FOUND]")
    assert refused(cli, "remove", lake, "cpu", "--partition", "c", "--yes").startswith("[NOT_FOUND]")
    assert refused(cli, "remove", lake, "cpu").startswith("[INVALID_OPTION]")
    assert refused(cli, "remove", lake, "cpu", one["chunk"], "--partition", "a").startswith("[INVALID_OPTION]")
    assert len(values(lake)) == 12


def test_rows_are_counted_and_then_deleted(cli: Cli, lake: Path) -> None:
    asked = ["--where", "host = 'h0'", "--where", "v>=2", "--where", "v != 4"]
    assert iox(cli, "delete", lake, "cpu", *asked) == {"table": "cpu", "files": 2, "rows": 2, "version": None, "dry_run": True}
    assert len(values(lake)) == 12
    before = Catalog(lake).snapshot().version
    done = iox(cli, "delete", lake, "cpu", *asked, "--yes")
    assert (done["files"], done["rows"], done["dry_run"]) == (2, None, False) and done["version"].startswith("data-")
    assert values(lake) == [0, 0, 1, 1, 3, 3, 4, 4, 5, 5]
    assert len(values(lake, version=before)) == 12
    shown = cli("iox", "delete", lake, "cpu", *asked).out
    assert shown.endswith("No row is such a one.\n")
    assert cli("iox", "delete", lake, "cpu", "--where", "v = 3").out.endswith("with --yes.\n")
    assert cli("iox", "delete", lake, "cpu", "--where", "v = 99", "--yes").out.endswith("No row is such a one.\n")
    assert cli("iox", "delete", lake, "cpu", "--where", "v = 3", "--yes").out.endswith("from now on.\n")


def test_rows_of_a_time_are_deleted(cli: Cli, lake: Path) -> None:
    assert iox(cli, "delete", lake, "cpu", "--from", "2026-01-01T02:00", "--to", "2026-01-01T04:00Z")["rows"] == 4
    assert iox(cli, "delete", lake, "cpu", "--to", "2026-01-01T01:00", "--time-column", "time", "--yes")["version"]
    assert iox(cli, "delete", lake, "cpu", "--from", "4", "--time-column", "v", "--where", "host = h0", "--yes")["version"]
    assert values(lake) == [1, 1, 2, 2, 3, 3, 5, 5]
    for wrong in (["--time-column", "time"], [], ["--from", "0", "--time-column", "when"], ["--from", "noon"]):
        assert refused(cli, "delete", lake, "cpu", *wrong).startswith("[INVALID_")


def test_what_was_deleted_is_gone_once_files_are_compacted(cli: Cli, lake: Path, file: Path) -> None:
    iox(cli, "add", lake, "cpu", file, "--partition", "a")
    iox(cli, "delete", lake, "cpu", "--where", "host = h0", "--yes")
    of_a = iox(cli, "compact", lake, "cpu", "--partition", "a")
    assert (of_a["ended"], of_a["made"], of_a["rows"]) == (2, 1, 6) and of_a["version"].startswith("compactor-")
    assert [each["rows"] for each in cli("iox", "files", lake, "cpu", "--json").lines] == [6, 6]
    shown = cli("iox", "compact", lake, "cpu", "--writer", "compactor-x").out
    assert "version" in shown and "compactor-x@0" in shown
    assert cli("iox", "compact", lake, "cpu").out == "Nothing is to be compacted.\n"
    assert iox(cli, "compact", lake, "cpu", "--target-size", 1)["version"] is None
    assert values(lake) == [1, 1, 1, 3, 3, 3, 5, 5, 5]
    assert refused(cli, "compact", lake, "cpu", "--writer", "etl").startswith("[INVALID_OPTION]")


@pytest.mark.parametrize("command", [["remove", "x"], ["delete", "--where", "v = 1"], ["compact"], ["files"]])
def test_a_table_that_is_not_there_is_an_error_that_names_those_that_are(cli: Cli, lake: Path, command: list[str]) -> None:
    name, *rest = command
    told = refused(cli, name, lake, "data.cpu", *rest)
    assert told.startswith("[UNKNOWN_TABLE]") and "It has cpu." in told
    assert refused(cli, name, lake.parent / "nowhere", "cpu", *rest).startswith("[CATALOG_NOT_FOUND]")
    assert refused(cli, name, lake, "cpu", *rest, "--database", "other").startswith("[DATABASE_NOT_FOUND]")


def test_the_only_database_need_not_be_named(cli: Cli, tmp_path: Path, file: Path) -> None:
    lake = tmp_path / "lake"
    iox(cli, "add", lake, "cpu", file, "--database", "metrics")
    iox(cli, "delete", lake, "cpu", "--where", "v = 1", "--yes")
    iox(cli, "compact", lake, "cpu")
    assert iox(cli, "remove", lake, "cpu", "--partition", "default", "--yes")["version"]
    assert Catalog(lake).databases() == ["metrics"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host = 'it''s \"a\"'", Comparison("host", "=", 'it\'s "a"')),
        ('host="a b"', Comparison("host", "=", "a b")),
        ("host = web-1.example/x=y", Comparison("host", "=", "web-1.example/x=y")),
        ("host = ''", Comparison("host", "=", "")),
        (" host  NOT  IN ( 'a,b' , c,'d' ) ", Comparison("host", "not in", ["a,b", "c", "d"])),
        ("v in 1, 2", Comparison("v", "in", [1, 2])),
        ("v in(7)", Comparison("v", "in", [7])),
        ("host Starts With 'we'", Comparison("host", "starts with", "we")),
        ("CPU usage<=5", Comparison("CPU usage", "<=", 5.0)),
        ("v > -5", Comparison("v", ">", -5)),
        ("v is null", Comparison("v", "is null")),
        ("inner is not null", Comparison("inner", "is not null")),
        ("ok = TRUE", Comparison("ok", "=", True)),
        ("price < 9.99", Comparison("price", "<", Decimal("9.99"))),
        ("time >= 2026-01-01 00:00:00", Comparison("time", ">=", NEW_YEAR)),
        ("time != '@1767225600000000'", Comparison("time", "!=", NEW_YEAR)),
        ("day = 2026-01-01", Comparison("day", "=", NEW_YEAR.date())),
        ("at < 12:30", Comparison("at", "<", datetime.time(12, 30))),
        ("raw = 00ff", Comparison("raw", "=", b"\x00\xff")),
        ("is is not null", Comparison("is", "is not null")),
    ],
)
def test_conditions_are_what_columns_make_of_them(text: str, expected: Comparison) -> None:
    found = condition(text, "cpu", COLUMNS)
    assert found == expected and type(found.value) is type(expected.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "host",
        "host =",
        "host like 'a'",
        "hosts = a",
        "host == a",
        "host <> 'a'",
        "host = a b",
        "host != a and v < 5",
        "host != 'a' and v < 5",
        "host != 'a",
        "host = a,b",
        "host = NULL",
        "host in",
        "host in ()",
        "host in (a, b c)",
        "host in ('a' 'b')",
        "host is null x",
        "v = 1.5",
        "v = 300",
        "v in (1, x)",
        "v starts with 1",
        "ok = 1",
        "price < cheap",
        "time > tomorrow",
        "day = 2026-13-01",
        "at < noon",
        "raw = xyz",
        "raw starts with 00",
        "inner = 1",
    ],
)
def test_what_no_column_can_be_compared_with_is_no_condition(text: str) -> None:
    with pytest.raises(UsageError) as error:
        condition(text, "cpu", COLUMNS)
    assert error.value.next_step


@pytest.mark.parametrize(("text", "names"), [("a = b = 'c'", "'a' and 'a = b'"), ("host in in ('a')", "'host' and 'host in'")])
def test_what_can_be_read_in_two_ways_is_no_condition(text: str, names: str) -> None:
    columns = pa.schema([(name, pa.string()) for name in ("a", "a = b", "host", "host in")])
    with pytest.raises(UsageError, match=names):
        condition(text, "cpu", columns)


def test_a_range_has_its_first_moment_and_not_its_last() -> None:
    found = in_range("time", "2026-01-01", "2026-01-02", "cpu", COLUMNS)
    assert found == [Comparison("time", ">=", NEW_YEAR), Comparison("time", "<", NEW_YEAR + datetime.timedelta(days=1))]
    assert in_range("v", None, "9", "cpu", COLUMNS) == [Comparison("v", "<", 9)]


def test_every_comparison_can_be_typed() -> None:
    for each in COMPARISONS:
        value = "" if "null" in each else "('a')" if each.endswith("in") else "'a'"
        assert condition(f"host {each} {value}", "cpu", COLUMNS).comparison == each
