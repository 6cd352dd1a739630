"""Harvests of trees on file systems that answer otherwise than a local one: what could not be read is never taken for deleted."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.errors import SourceNotFound
from bucketcatalog.harvest import harvest
from bucketcatalog.harvest.scope import Scope
from bucketcatalog.harvest.sources import descent, local
from bucketcatalog.harvest.sources.local import LocalSource
from bucketcatalog.store.memory import MemoryStore

from ...kit.filesystems import KINDS, LOCAL, XFS, Counted, FileSystem, Kind
from ...kit.trees import in_catalog, make_tree

NAMES = [b"a", b"d/e/f", b"d/g", b"d-h", b"link-d/x", b"z"]
KNOWN = sorted(name.decode() for name in NAMES)


def told(code: int) -> OSError:
    return OSError(code, os.strerror(code))


def failing(call: str, about: str, code: int) -> Callable[[str, Any], None]:
    """Lets such calls fail that are about an entry of that name."""

    def before(called: str, of: Any) -> None:
        if called == call and not isinstance(of, int) and Path(os.fsdecode(of or b"")).name == about:
            raise told(code)

    return before


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES])
@pytest.mark.parametrize("kind", [*KINDS, LOCAL], ids=str)
@pytest.mark.parametrize(
    ("call", "about", "kept"),
    [("stat", "d", "d"), ("open", "d", "d"), ("stat", "e", "d/e"), ("open", "e", "d/e"), ("stat", "g", "d/g")],
)
def test_what_is_below_a_directory_that_cannot_be_asked_about_stays(
    tmp_path: Path, kind: Kind, call: str, about: str, kept: str, code: int
) -> None:
    root, catalog = make_tree(tmp_path / "tree", NAMES), Catalog(MemoryStore())
    harvest(catalog, root)
    (root / "a").unlink()
    with FileSystem(kind, before=failing(call, about, code)).used_by(local, descent):
        result = harvest(catalog, root)
    assert [*in_catalog(catalog)] == KNOWN[1:]
    assert result.deleted == 1
    assert [(one.path.rstrip("/"), one.code) for one in result.failed] == [(kept, errno.errorcode[code])]


@pytest.mark.parametrize("number", range(3))
def test_a_listing_that_breaks_off_half_way_keeps_all_that_was_below(tmp_path: Path, number: int) -> None:
    root, catalog = make_tree(tmp_path / "tree", NAMES), Catalog(MemoryStore())
    harvest(catalog, root)
    (root / "a").unlink()
    (root / "d" / "g").unlink()
    opened = []

    def before(call: str, about: Any) -> None:
        opened.append((call, about))
        reads = [kind for kind, _ in opened[opened.index(("open", "d")) :]] if ("open", "d") in opened else []
        if call == "readdir" and reads.count("readdir") == number + 1:
            raise told(errno.EIO)

    with FileSystem(LOCAL, before=before).used_by(local, descent):
        result = harvest(catalog, root)
    expected = KNOWN[1:] if number < 2 else [name for name in KNOWN[1:] if name != "d/g"]
    assert [*in_catalog(catalog)] == expected
    assert [(one.path, one.code) for one in result.failed] == [("d/" if number < 2 else "d/e/", "EIO")]


def test_a_listing_of_the_root_that_breaks_off_ends_the_harvest(tmp_path: Path) -> None:
    root, catalog = make_tree(tmp_path / "tree", NAMES), Catalog(MemoryStore())
    harvest(catalog, root)
    calls = Counted()

    def before(call: str, about: Any) -> None:
        calls(call, about)
        if calls.kinds["readdir"] == 3:
            raise told(errno.EIO)

    with FileSystem(XFS, before=before).used_by(local, descent), pytest.raises(SourceNotFound, match="Input/output error"):
        harvest(catalog, root)
    assert [*in_catalog(catalog)] == KNOWN


@pytest.mark.parametrize(
    ("scope", "shown"),
    [({"include": ["d/*"]}, "d/"), ({"exclude": ["d/*"]}, "d"), ({"include": ["d"]}, "d"), ({"exclude": ["d"]}, "d/")],
)
def test_an_entry_of_unknown_type_is_reported_as_far_as_it_is_in_scope(
    tmp_path: Path, scope: dict[str, list[str]], shown: str
) -> None:
    root, catalog = make_tree(tmp_path / "tree", NAMES), Catalog(MemoryStore())
    harvest(catalog, root)
    with FileSystem(XFS, before=failing("stat", "d", errno.EIO)).used_by(local, descent):
        result = harvest(catalog, root, allow_empty=True, **scope)
    assert [one.path for one in result.failed] == [shown]
    assert result.deleted == 0
    assert harvest(catalog, root, allow_empty=True, **scope).errors == 0
    assert errors_in(catalog) == []


def errors_in(catalog: Catalog) -> list[Any]:
    return catalog.snapshot().scan("harvest_errors").to_arrow().column("path").to_pylist()


def test_a_tree_deeper_than_the_directories_that_stay_open_is_walked_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    depth = 200
    levels = [b"/".join([b"d"] * level) for level in range(1, depth)]
    names = [one + b"/" + name for one in levels for name in (b"a", b"e/x", b"z")]
    root = make_tree(tmp_path / "tree", names)
    before = open_files()
    source = LocalSource(root, batch_rows=5).entries(Scope(), pytest.fail)
    found, most = [], 0
    for batch in source:
        found += batch.column("name").to_pylist()
        most = max(most, open_files() - before)
    assert found == sorted(name.decode() for name in names)
    assert 60 < most < 75
    assert open_files() == before
    half = LocalSource(root, batch_rows=5).entries(Scope(), pytest.fail)
    next(half)
    half.close()
    assert open_files() == before


def test_a_directory_moved_while_the_walk_is_far_below_it_is_reported(tmp_path: Path) -> None:
    depth = 100
    path = b"/".join([b"d"] * depth)
    root, catalog = make_tree(tmp_path / "tree", [path + b"/x", b"d/d/z", b"d/z", b"z"]), Catalog(MemoryStore())
    harvest(catalog, root)
    known = [*in_catalog(catalog)]

    def before(call: str, about: Any) -> None:
        if call == "stat" and about == "x":
            (root / "d" / "d").rename(root / "d" / "elsewhere")
            make_tree(root, [b"d/d/z"])

    with FileSystem(LOCAL, before=before).used_by(local, descent):
        result = harvest(catalog, root)
    assert [(one.path, one.code) for one in result.failed] == [("d/d/", "REPLACED")]
    assert [*in_catalog(catalog)] == known


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])
