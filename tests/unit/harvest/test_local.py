# ruff: noqa: PTH211
"""The walk of a directory: every entry exactly once, in byte order, and whatever cannot be read is reported."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog.errors import AccessDenied, InvalidName, InvalidOption, SourceNotFound
from bucketcatalog.harvest import EntryError, open_source
from bucketcatalog.harvest.scope import Scope
from bucketcatalog.harvest.source import ENTRY_SCHEMA, escaped
from bucketcatalog.harvest.sources.local import LocalSource
from bucketcatalog.harvest.sources.stats import Numbers, entry_batch

from ...kit.trees import HOSTILE, locked, make_tree, on_disk, open_folder

pytestmark = pytest.mark.usefixtures("file_system")

Walked = tuple[list[dict[str, Any]], list[EntryError]]


def walk(root: Path, scope: Scope | None = None, **options: Any) -> Walked:
    errors: list[EntryError] = []
    rows = []
    for batch in LocalSource(root, **options).entries(scope or Scope(), errors.append):
        assert len(batch) > 0
        assert batch.schema == ENTRY_SCHEMA
        rows += batch.to_pylist()
    return rows, errors


def names(walked: Walked) -> list[str]:
    return [row["name"] for row in walked[0]]


@pytest.mark.parametrize("batch_rows", [1, 2, 7, 16_384])
def test_hostile_names_come_out_exact_and_in_byte_order(tmp_path: Path, batch_rows: int) -> None:
    root = make_tree(tmp_path / "tree", HOSTILE)
    walked = walk(root, batch_rows=batch_rows)
    assert [name.encode() for name in names(walked)] == sorted(HOSTILE)
    assert walked[1] == []


def test_sizes_and_times_are_those_of_lstat(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", HOSTILE)
    os.utime(root / "a0", ns=(0, -5_000_000_001))
    rows, _ = walk(root)
    told = {row["name"]: (row["content_length"], row["identity"].decode()) for row in rows}
    assert told == {name: (size, f"{size} {time}") for name, (size, time) in on_disk(root).items()}
    (before_1970,) = [row["modified"] for row in rows if row["name"] == "a0"]
    assert (before_1970.year, before_1970.microsecond) == (1969, 999_999)


def test_a_name_that_sorts_between_a_directory_and_what_is_in_it_comes_first(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a/z", b"a-b", b"a!", b"a.d/y", b"a0", b"ab/x"])
    assert names(walk(root)) == ["a!", "a-b", "a.d/y", "a/z", "a0", "ab/x"]


def test_names_that_are_not_utf8_are_reported_and_skipped(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"good", b"bad\xff", b"dir\xfe/below", b"dir/bad\xed\xa0\x80", b"dir/good"])
    os.symlink(b"to\xff", os.fsencode(root / "link"))
    walked = walk(root)
    assert names(walked) == ["dir/good", "good"]
    assert sorted((e.path, e.code) for e in walked[1]) == [
        (r"bad\xff", "NOT_UTF8"),
        (r"dir/bad\xed\xa0\x80", "NOT_UTF8"),
        (r"dir\xfe/", "NOT_UTF8"),
        ("link", "TARGET_NOT_UTF8"),
    ]


def test_escaped_names_are_one_to_one() -> None:
    assert escaped(b"a\xffb") == r"a\xffb"
    assert escaped(rb"a\xffb") == r"a\\xffb"
    assert escaped("é\n".encode()) == "é\n"


def test_links_are_recorded_and_not_followed_also_where_they_loop(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"dir/file"])
    (root / "dir" / "self").symlink_to(".")
    (root / "up").symlink_to("..")
    (root / "loop").symlink_to("loop")
    (root / "gone").symlink_to("no/where")
    rows, errors = walk(root)
    assert errors == []
    assert {row["name"]: (row["file_type"], row["link_target"]) for row in rows} == {
        "dir/file": (None, None),
        "dir/self": ("symlink", "."),
        "gone": ("symlink", "no/where"),
        "loop": ("symlink", "loop"),
        "up": ("symlink", ".."),
    }


def test_special_files_are_recorded_without_being_opened(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"file"])
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "sock"))
        rows, _ = walk(root)
    assert {row["name"]: row["file_type"] for row in rows} == {"file": None, "pipe": "fifo", "sock": "socket"}


def test_an_empty_directory_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "tree" / "empty" / "emptier").mkdir(parents=True)
    assert walk(tmp_path / "tree") == ([], [])


def test_a_huge_directory_comes_in_batches(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"f%05d" % at for at in range(5_000)] + [b"f01000-dir/x"])
    batches = list(LocalSource(root, batch_rows=1_000).entries(Scope(), pytest.fail))
    assert len(batches) == 5
    assert max(len(batch) for batch in batches) < 2_000
    found = [name for batch in batches for name in batch.column("name").to_pylist()]
    assert found == sorted(on_disk(root))


def test_a_tree_deeper_than_the_recursion_limit_is_walked(tmp_path: Path) -> None:
    depth = 400
    root = make_tree(tmp_path / "tree", [b"/".join([b"d"] * depth) + b"/file"])
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(350)
    try:
        assert names(walk(root)) == ["d/" * depth + "file"]
    finally:
        sys.setrecursionlimit(limit)


def test_names_over_the_limit_are_reported(tmp_path: Path) -> None:
    prefix = b"/".join([b"d" * 200] * 5)
    root = make_tree(tmp_path / "tree", [prefix + b"/" + b"f" * 19, prefix + b"/" + b"f" * 20])
    walked = walk(root)
    assert [len(name) for name in names(walked)] == [1_024]
    assert [(len(e.path), e.code) for e in walked[1]] == [(1_025, "NAME_TOO_LONG")]


def test_a_directory_in_which_every_name_is_too_long_is_reported_once_and_not_opened(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"ok"])
    at = os.open(root, os.O_RDONLY)
    for _ in range(20):
        os.mkdir(b"d" * 255, dir_fd=at)
        at, above = os.open(b"d" * 255, os.O_RDONLY, dir_fd=at), at
        os.close(above)
    os.close(at)
    walked = walk(root)
    assert names(walked) == ["ok"]
    assert [(e.code, e.path) for e in walked[1]] == [("NAME_TOO_LONG", ("d" * 255 + "/") * 4)]


def test_what_cannot_be_read_is_reported_and_the_rest_goes_on() -> None:
    with open_folder() as folder:
        root = make_tree(folder / "tree", [b"a", b"no/list", b"no-stat/file", b"z"])
        with locked(root / "no"):
            walked = walk(root)
            assert names(walked) == ["a", "no-stat/file", "z"]
            assert [(e.path, e.code, e.unreadable) for e in walked[1]] == [("no/", "EACCES", True)]
        (root / "no-stat").chmod(0o444)
        with locked():
            walked = walk(root)
            assert names(walked) == ["a", "no/list", "z"]
            assert [(e.path, e.code, e.unreadable) for e in walked[1]] == [("no-stat/file", "EACCES", True)]
            with locked():
                assert walk(root, Scope(exclude=("no-stat/*",)))[1] == []


def test_what_vanishes_during_the_walk_is_no_error(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"b/c", b"b/d", b"e/f", b"g"])
    walked = LocalSource(root, batch_rows=1).entries(Scope(), pytest.fail)
    assert next(walked).column("name").to_pylist() == ["a"]
    (root / "e" / "f").unlink()
    (root / "e").rmdir()
    (root / "b" / "c").unlink()
    (root / "g").unlink()
    assert [name for batch in walked for name in batch.column("name").to_pylist()] == ["b/d"]


def test_the_source_may_be_a_link_and_keeps_its_name(tmp_path: Path) -> None:
    make_tree(tmp_path / "v2", [b"x"])
    (tmp_path / "current").symlink_to("v2")
    source = LocalSource(tmp_path / "current")
    assert source.name == str(tmp_path / "current")
    assert names(walk(tmp_path / "current")) == ["x"]


@pytest.mark.parametrize("missing", ["nothing", "file", "file/below", "\x01"])
def test_a_source_that_is_no_directory_is_an_error(tmp_path: Path, missing: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceNotFound, match="SOURCE_NOT_FOUND"):
        walk(tmp_path / missing)


def test_a_source_that_may_not_be_listed_is_an_error() -> None:
    with open_folder() as folder:
        root = make_tree(folder / "tree", [b"a"])
        with locked(root), pytest.raises(AccessDenied):
            walk(root)


def test_directories_left_out_are_not_looked_at(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"catalog/x", b"catalog2/y", b"sub/catalog/z"])
    (tmp_path / "other").symlink_to("tree")
    assert names(walk(root, leave_out=[tmp_path / "other" / "catalog"])) == ["a", "catalog2/y", "sub/catalog/z"]
    for below, what in (("catalog", "the catalog itself"), ("catalog/x", "a part of the catalog")):
        with pytest.raises(InvalidOption, match=f"The source .* is {what}"):
            walk(tmp_path / "other" / below, leave_out=[root / "catalog"])


def test_urls_and_paths_name_the_same_source(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "t r%ee", [b"a"])
    by_path = open_source(root)
    assert by_path.url.startswith("file://") and by_path.url.endswith("/t%20r%25ee")
    assert open_source(by_path.url).name == by_path.name == str(root)


def test_a_path_that_is_not_utf8_cannot_name_its_bucket(tmp_path: Path) -> None:
    source = LocalSource(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    assert source.url.endswith("/%FF")
    with pytest.raises(InvalidName):
        print(source.name)


def test_types_follow_the_ending_and_only_files_have_one(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a.html", b"b.PNG", b"c.tar.gz", b"d", b"e.nothing-known", b"html", b"f.d/none"])
    (root / "link.html").symlink_to("a.html")
    rows, _ = walk(root)
    assert {row["name"]: row["content_type"] for row in rows if row["content_type"]} == {
        "a.html": "text/html",
        "b.PNG": "image/png",
        "c.tar.gz": "application/gzip",
    }


def test_times_beyond_what_a_timestamp_holds_are_shown_as_the_nearest(tmp_path: Path) -> None:
    class Stats:  # what lstat gives where a file system keeps such times, which none at hand does
        st_size, st_mode, st_uid, st_gid, st_ino, st_nlink = 7, 0o100644, 1 << 31, 2, (1 << 64) - 1, 3

        def __init__(self, time: int) -> None:
            self.st_mtime_ns = time

    far = [10**21, -(10**21), 0]
    numbers = Numbers()
    numbers.add([Stats(time) for time in far])
    batch = entry_batch(pa.array(["a", "b", "c"]), numbers, [None] * 3)
    assert [time.year for time in batch.column("modified").to_pylist()] == [9999, 1, 1970]
    assert batch.column("identity").to_pylist() == [b"7 %d" % time for time in far]
    assert [batch.column(name)[0].as_py() for name in ("uid", "inode", "mode")] == [1 << 31, (1 << 64) - 1, 0o644]
