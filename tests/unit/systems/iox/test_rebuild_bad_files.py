"""Rebuild from files and markers of which some are damaged, copied or forged: each is told by name, and the rest is taken in."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog, StoreUnavailable
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Failing
from bucketcatalog.systems.iox.files import SAYS, About
from bucketcatalog.systems.iox.rebuild import rebuild

from .lost import (
    NOW,
    by_file,
    copy_of,
    deleted,
    errors,
    made,
    named,
    plain,
    put_file,
    rebuilt,
    replace,
    say,
    shown,
    without_log,
)

NONSENSE = {
    "nothing": b"",
    "text": b"no file",
    "magic alone": b"PAR1" + bytes(40) + b"PAR1",
    "a footer too long": b"PAR1" + bytes(40) + b"\xff\xff\xff\x7fPAR1",
}


class TestBadFiles:
    @pytest.fixture
    def found(self) -> Store:
        return without_log(made(plain))

    @pytest.fixture
    def name(self, found: Store) -> str:
        return named(found, ending=".parquet")[0]

    @pytest.mark.parametrize("data", NONSENSE.values(), ids=NONSENSE)
    def test_what_is_no_file_is_told_and_left_out(self, found: Store, name: str, data: bytes) -> None:
        replace(found, name, data)
        report = rebuilt(found)
        assert by_file(report.findings) == {name: "UNREADABLE"} and report.files == 3
        assert errors(found) == []

    def test_of_a_footer_with_any_byte_changed_the_rest_is_taken_in(self, found: Store, name: str) -> None:
        data = found.get(name)
        footer = int.from_bytes(data[-8:-4], "little") + 8
        for at in range(len(data) - footer, len(data), 29):
            one = copy_of(found, changed={name: data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]})
            assert rebuilt(one).files >= 3, at

    def test_truncated_ones(self, found: Store, name: str) -> None:
        for length in (1, 8, 100, len(found.get(name)) - 1):
            one = copy_of(found, changed={name: found.get(name)[:length]})
            assert by_file(rebuilt(one).findings) == {name: "UNREADABLE"}

    def test_one_that_says_nothing(self, found: Store, name: str) -> None:
        put_file(found, name, pa.table({"x": [1]}))
        (finding,) = rebuilt(found).findings
        assert (finding.code, finding.file) == ("UNREADABLE", name) and "does not say which file" in finding.message

    def test_one_without_row_groups(self, found: Store, name: str) -> None:
        table = pq.read_table(pa.BufferReader(found.get(name)))
        sink = pa.BufferOutputStream()
        pq.ParquetWriter(sink, table.schema).close()
        replace(found, name, sink.getvalue().to_pybytes())
        assert by_file(rebuilt(found).findings) == {name: "NO_ROW_GROUPS"}

    @pytest.mark.parametrize(
        "change",
        [
            {"table": ""},
            {"write": "mine"},
            {"write": "11111111-1111-4111-8111-111111111111"},
            {"write": None},
            {"first_clock": "1"},
            {"last_clock": -1},
            {"last_clock": True},
            {"key_columns": [1]},
            {"key_columns": "host"},
            {"origins": ["no id"]},
            {"applied": ["no id"]},
            {"version": 2},
            {"more": 1},
        ],
        ids=str,
    )
    def test_one_that_says_what_cannot_be(self, found: Store, name: str, change: dict[str, Any]) -> None:
        say(found, name, **change)
        report = rebuilt(found)
        assert by_file(report.findings) == {name: "UNREADABLE"} and report.files == 3

    @pytest.mark.parametrize("change", [{"table": "mem"}, {"partition": "p"}, {"writer": "bob"}, {"database": "other"}], ids=str)
    def test_one_that_claims_another_path(self, found: Store, name: str, change: dict[str, Any]) -> None:
        say(found, name, **change)
        report = rebuilt(found)
        assert by_file(report.findings) == {name: "CLAIMS_ANOTHER_PATH"} and report.files == 3

    def test_a_copy_elsewhere_claims_another_path(self, found: Store, name: str) -> None:
        copy = name.replace("alice/", "carol/")
        found.put(copy, found.get(name))
        report = rebuilt(found)
        assert by_file(report.findings) == {copy: "CLAIMS_ANOTHER_PATH"} and report.files == 4

    def test_of_two_with_one_chunk_the_older_counts(self, found: Store, name: str) -> None:
        copy = name.replace("alice/", "carol/")
        found.put(copy, found.get(name))
        say(found, copy, writer="carol")
        report = rebuilt(found)
        assert by_file(report.findings) == {copy: "CHUNK_TAKEN"} and report.files == 4
        assert by_file(rebuilt(found, adopt=True).findings) == {copy: "CHUNK_TAKEN"}

    def test_who_is_no_compactor_replaces_nothing(self, found: Store, name: str) -> None:
        other = named(found, ending=".parquet")[1]
        say(found, name, origins=[other.split("/")[-1].removesuffix(".parquet")])
        report = rebuilt(found)
        assert by_file(report.findings) == {name: "NOT_A_COMPACTOR"} and report.files == 3

    def test_of_files_with_different_keys_the_first_says_what_the_key_is(self, found: Store, name: str) -> None:
        other = next(each for each in named(found, ending=".parquet") if "/cpu/" in each and each != name)
        say(found, other, key_columns=["host"])
        assert by_file(rebuilt(found).findings) == {other: "KEY_CONFLICT"}
        assert len(shown(found)["data.cpu"]) == 3

    def test_columns_that_the_footer_alone_tells(self, found: Store, name: str) -> None:
        """Of a file that something else than Arrow has written there is no schema of Arrow's."""
        table = pq.read_table(pa.BufferReader(found.get(name)))
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, table.schema, store_schema=False) as file:
            file.write_table(table)
            file.add_key_value_metadata({SAYS: table.schema.metadata[SAYS]})
        replace(found, name, sink.getvalue().to_pybytes())
        assert rebuilt(found).files == 4
        assert sorted(row["v"] for row in shown(found)["data.cpu"]) == [1, 1, 2, 2, 3]

    def test_a_store_that_fails_is_no_bad_file(self, found: Store) -> None:
        for method in ("get_range", "list"):
            with pytest.raises(StoreUnavailable, match="not now"):
                rebuild(Catalog(Failing(found, at=1, error=StoreUnavailable("not now"), methods=(method,))), **NOW)


class TestBadMarkers:
    @pytest.fixture
    def found(self) -> Store:
        return without_log(made(deleted))

    @pytest.mark.parametrize(
        "change",
        [
            {"version": 2},
            {"chunks": "x"},
            {"chunks": ["no id"]},
            {"conditions": None},
            {"conditions": [1]},
            {"conditions": [{"column": 1, "comparison": "=", "value": "1"}]},
            {"conditions": [{"column": "v", "comparison": "~", "value": "1"}]},
            {"conditions": [{"column": "v", "comparison": "=", "value": "{"}]},
            {"conditions": [{"column": "v"}]},
        ],
        ids=str,
    )
    def test_one_that_says_what_cannot_be_deletes_nothing(self, found: Store, change: dict[str, Any]) -> None:
        name = named(found, ending=".json")[1]
        replace(found, name, json.dumps({**json.loads(found.get(name)), **change}).encode())
        report = rebuilt(found)
        assert by_file(report.findings) == {name: "MARKER_UNREADABLE"} and report.deletions == 1
        assert [row["v"] for row in shown(found)["data.cpu"]].count(2) == 3

    @pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff", b"3"])
    def test_one_that_is_none(self, found: Store, data: bytes) -> None:
        name = named(found, ending=".json")[0]
        replace(found, name, data)
        assert by_file(rebuilt(found).findings) == {name: "MARKER_UNREADABLE"}

    def test_one_that_lies_elsewhere(self, found: Store) -> None:
        name = named(found, ending=".json")[0]
        other = name.replace("/cpu/", "/mem%2F../")
        found.put(other, found.get(name))
        report = rebuilt(found)
        assert by_file(report.findings) == {other: "CLAIMS_ANOTHER_PATH"} and report.deletions == 2

    def test_one_of_files_of_which_nothing_is_there(self, found: Store) -> None:
        for name in named(found, ending=".parquet"):
            if "/cpu/" in name:
                found.delete(name)
        report = rebuilt(found)
        assert (report.deletions, report.tables) == (0, ["mem/.."])


def test_about_is_what_a_file_says_in_bytes_that_it_parses_from() -> None:
    about = About("w", "alice", "d", "t", "p", "c", 1, 2, ("k",), ("o",), ("a",))
    assert About.parse({SAYS: about.encoded()}, "x") == about
