"""What data tables and partitions are called, and the paths of their files: every path says which name it is of."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog.errors import InvalidName
from bucketcatalog.model.paths import FOLDERS, data_prefix
from bucketcatalog.store import Store
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.systems.iox.names import escaped, file_path, marker_path, parsed, table_of, unescaped

CHUNK = "0190b0b0-0000-7000-8000-000000000000"
ODD = [
    "/",
    "..",
    ".",
    "...",
    "a/b",
    "a//b/",
    "\\",
    "%2F",
    "%",
    "a%2e",
    "_partition",
    ".deleted",
    "_",
    "\x00",
    "\x7f",
    "\n",
    "é",
    "e\u0301",
    "Cpu",
    "cpu",
    "cpu ",
    " cpu",
    "日本語",
    "🦆",
    "\u202e",
    "a:b",
    "*?[]{}<>|#\"'",
    "CON",
    "x" * 240,
    "é" * 120,
    *sorted(FOLDERS),
]


@pytest.mark.parametrize("name", ODD)
def test_a_name_comes_back_unchanged_from_one_part_of_a_path(name: str) -> None:
    part = escaped(name, "data table")
    assert unescaped(part) == name
    assert "/" not in part
    assert part not in (".", "..", *FOLDERS)
    assert not part.startswith((".", "_"))


@given(st.text(min_size=1, max_size=60).filter(lambda name: not any("\ud800" <= c <= "\udfff" for c in name)))
def test_any_text_comes_back_unchanged(name: str) -> None:
    assert unescaped(escaped(name, "data table")) == name


def test_names_that_are_not_the_same_never_share_a_part() -> None:
    assert len({escaped(name, "data table") for name in ODD}) == len({*ODD})


def test_plain_names_are_shown_as_they_are() -> None:
    plain = string.ascii_letters + string.digits + "-_.=+,;@!$&'()~^` "
    assert escaped(plain, "partition") == plain


@pytest.mark.parametrize("name", ["", None, 5, b"cpu", ("a",)])
def test_what_is_no_text_is_refused(name: str) -> None:
    with pytest.raises(InvalidName, match="Give text of at least one character"):
        escaped(name, "data table")


def test_what_is_no_unicode_is_refused() -> None:
    with pytest.raises(InvalidName, match="it is not Unicode"):
        escaped("a\ud800", "partition")


@pytest.mark.parametrize("name", ["x" * 241, "é" * 121, "/" * 81, "🦆" * 61])
def test_what_takes_too_many_bytes_in_a_path_is_refused(name: str) -> None:
    with pytest.raises(InvalidName, match=r"it takes 24\d bytes in a path"):
        escaped(name, "data table")


def test_a_data_table_is_called_after_data_and_a_dot() -> None:
    assert [table_of(name) for name in ("data.cpu", "data.data.x", "data. ", "data.", "data", "cpu", "Data.x", "iox.data.x")] == [
        "cpu",
        "data.x",
        " ",
        None,
        None,
        None,
        None,
        None,
    ]


@pytest.mark.parametrize("table", ["cpu", "../..", "data"])
@pytest.mark.parametrize("partition", ["default", "2024/01", ".deleted"])
def test_the_path_of_a_file_says_what_it_is(partition: str, table: str) -> None:
    path = file_path("w", "default", partition, table, CHUNK)
    assert path.startswith(prefix := data_prefix("w", "default"))
    assert path.count("/") == prefix.count("/") + 2
    assert parsed(prefix, path) == (partition, table, CHUNK)


@pytest.mark.parametrize(
    "path",
    [
        f"x/default/data/default/cpu/{CHUNK}.parquet",
        f"w/default/data/default/{CHUNK}.parquet",
        f"w/default/data/a/b/c/{CHUNK}.parquet",
        f"w/default/data/default/cpu/{CHUNK}",
        f"w/default/data/default/cpu/{CHUNK.upper()}.parquet".replace("0190B0B0", "0190B0BA"),
        f"w/default/data/default/cpu/x{CHUNK}.parquet",
        f"w/default/data/default/cpu/{CHUNK}.parquet.tmp",
        "w/default/data/default/cpu/a.parquet",
        f"w/default/data/.deleted/cpu/{CHUNK}.json",
    ],
)
def test_no_other_path_is_taken_for_a_file_s(path: str) -> None:
    assert parsed("w/default/data/", path) is None


def test_a_marker_lies_where_no_partition_does() -> None:
    marker = marker_path("w", "default", "a/b", CHUNK)
    assert marker == f"w/default/data/.deleted/a%2Fb/{CHUNK}.json"
    assert file_path("w", "default", ".deleted", "a/b", CHUNK).rpartition("/")[0] != marker.rpartition("/")[0]


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("name", [*ODD[:12], "é" * 120, *sorted(FOLDERS)])
def test_every_store_takes_a_file_of_any_name(name: str, local: bool, tmp_path: str) -> None:
    store: Store = LocalStore(tmp_path) if local else MemoryStore()
    path = file_path("w", "default", name, name, CHUNK)
    store.put(path, b"x")
    assert store.get(path) == b"x"
    assert [parsed("w/default/data/", info.name) for info in store.list("w/default/data/")] == [(name, name, CHUNK)]
