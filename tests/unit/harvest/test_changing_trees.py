# ruff: noqa: PTH104, PTH108, PTH114, PTH115, PTH118, PTH211
"""A tree that changes under a walk, at every call that the walk makes of the system.

Whatever is changed, and at whichever call: what the walk gives was in the tree before or after the change, and is what it was then;
nothing comes from outside of the tree; what was there before and after is not taken for deleted.
Half of it is tried: ``BUCKETCATALOG_MORE=1`` tries every change in every place on every kind of file system, and batches of one row too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog
from bucketcatalog.errors import SourceNotFound
from bucketcatalog.harvest import EntryError, harvest
from bucketcatalog.harvest.compare import OutOfReach, Step
from bucketcatalog.harvest.scope import Scope
from bucketcatalog.harvest.sources import descent, local
from bucketcatalog.harvest.sources.local import LocalSource
from bucketcatalog.store.memory import MemoryStore

from ...kit.filesystems import KINDS, LOCAL, XFS, Counted, FileSystem, Kind
from ...kit.trees import in_catalog, make_tree

MORE = os.environ.get("BUCKETCATALOG_MORE") == "1"
NAMES = [b"a", b"d/e/f", b"d/h", b"d-i", b"k/e/f"]
State = dict[str, tuple[str | None, int | str]]
"""By name: the type, and the size of a file or the target of a link."""
Change = Callable[[str], None]


def built(folder: Path) -> str:
    """The tree, beside what is outside of it, where everything has the names that the tree has and others too."""
    shutil.rmtree(folder / "tree", ignore_errors=True)
    shutil.rmtree(folder / "moved", ignore_errors=True)
    (folder / "moved").unlink(missing_ok=True)
    make_tree(folder / "tree", NAMES)
    os.symlink("h", folder / "tree" / "d" / "link")
    if not (folder / "outside").exists():
        make_tree(folder / "outside", [*NAMES, b"e/f", b"f", b"h", b"secret", b"e/secret", b"d/e/secret"])
    return str(folder / "tree")


def removed(path: str) -> None:
    if os.path.islink(path) or Path(path).is_file():
        os.unlink(path)
    else:
        shutil.rmtree(path)


def moved_out(path: str) -> None:
    os.rename(path, os.path.join(path.partition("/tree")[0], "moved"))


def moved_within(path: str) -> None:
    os.rename(path, path + "-moved")


def made_a_file(path: str) -> None:
    moved_out(path)
    Path(path).write_text("a file now")


def made_a_directory(path: str) -> None:
    """Of another identity, with names that the old one had: all that is below the old one is gone."""
    removed(path)
    make_tree(Path(path), [b"e/f", b"f", b"h", b"new"])


def made_a_link_out(path: str) -> None:
    moved_out(path)
    os.symlink(os.path.join(path.partition("/tree")[0], "outside"), path)


def made_a_link_within(path: str) -> None:
    removed(path)
    os.symlink(os.path.join(path.partition("/tree")[0], "tree", "k"), path)


def made_beside(path: str) -> None:
    make_tree(Path(path).parent, [b"0/new", b"new", b"zz/new"])


CHANGES = [removed, moved_out, moved_within, made_a_file, made_a_directory, made_a_link_out, made_a_link_within, made_beside]
PLACES = ["d", "d/e", "d/e/f", "d/link"]
EVERY = [(kind, place, change) for kind in [*KINDS, LOCAL] for place in PLACES for change in CHANGES]
SOME = [
    (kind, place, change)
    for kind, places in [(XFS, PLACES[1::2]), (LOCAL, PLACES[::2])]
    for place in places
    for change in CHANGES
    if change not in (moved_out, made_a_link_within)
]


def state(root: str) -> State:
    """What is in the tree, found by another way than the walk under test."""
    found: State = {}
    for folder, directories, files in os.walk(root):
        for name in [*files, *directories]:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                found[os.path.relpath(path, root)] = ("symlink", os.readlink(path))
            elif name in files:
                found[os.path.relpath(path, root)] = (None, os.lstat(path).st_size)
    return found


def walked(root: str, kind: Kind, before: Callable[[str, Any], None], batch_rows: int) -> tuple[State, list[EntryError]]:
    errors: list[EntryError] = []
    found: State = {}
    with FileSystem(kind, before=before).used_by(local, descent):
        for batch in LocalSource(root, batch_rows=batch_rows).entries(Scope(), errors.append):
            found |= {row["name"]: (row["file_type"], row["link_target"] or row["content_length"]) for row in batch.to_pylist()}
    return found, errors


def taken_for_deleted(known: State, found: State, errors: list[EntryError]) -> set[str]:
    """What a harvest would delete of what the catalog knows."""
    out_of_reach = OutOfReach()
    for error in errors:
        out_of_reach.add(error)
    gone = pa.array(sorted(name.encode() for name in known.keys() - found.keys()), pa.binary())
    step = Step(None, pa.array([], pa.binary(16)), 0, gone, pa.repeat(pa.scalar(""), len(gone)), 0)
    return {name.decode() for name in out_of_reach.spare(step).gone.to_pylist()}


@pytest.mark.parametrize(("kind", "place", "change"), EVERY if MORE else SOME, ids=lambda one: getattr(one, "__name__", str(one)))
def test_a_change_at_any_call_brings_nothing_in_and_deletes_nothing_that_was_there(
    tmp_path: Path, kind: Kind, place: str, change: Change
) -> None:
    for batch_rows in (1, 16_384) if MORE else (16_384,):
        root = built(tmp_path)
        calls = Counted()
        before, _ = walked(root, kind, calls, batch_rows)
        assert before == state(root)
        for at in range(calls.calls):
            root = built(tmp_path)
            found, errors = walked(root, kind, Counted(at, lambda: change(os.path.join(root, place))), batch_rows)  # noqa: B023
            after = state(root)
            where = (at, errors)
            assert all(one in (before.get(name), after.get(name)) for name, one in found.items()), where
            assert not taken_for_deleted(before, found, errors) & after.keys(), where


@pytest.mark.parametrize("kind", [XFS, LOCAL], ids=str)
def test_a_directory_swapped_for_a_link_is_an_error_and_keeps_what_was_known(tmp_path: Path, kind: Kind) -> None:
    root, catalog = built(tmp_path), Catalog(MemoryStore())
    harvest(catalog, root)
    known = [*in_catalog(catalog)]

    def swap(call: str, about: Any) -> None:
        if call == "open" and about == "d":
            made_a_link_out(os.path.join(root, "d"))

    with FileSystem(kind, before=swap).used_by(local, descent):
        result = harvest(catalog, root)
    assert [(one.path, one.code) for one in result.failed] == [("d", "REPLACED")]
    assert [*in_catalog(catalog)] == known
    assert "d/e/f" not in harvest(catalog, root).failed
    assert [*in_catalog(catalog)] == ["a", "d", "d-i", "k/e/f"]


def test_a_file_that_became_a_directory_is_an_error_and_no_object(tmp_path: Path) -> None:
    root, catalog = built(tmp_path), Catalog(MemoryStore())
    harvest(catalog, root)
    known = in_catalog(catalog)
    swapped: list[str] = []

    def swap(call: str, about: Any) -> None:
        if call == "stat" and about == "a" and not swapped:
            swapped.append("a")
            made_a_directory(os.path.join(root, "a"))

    with FileSystem(LOCAL, before=swap).used_by(local, descent):
        result = harvest(catalog, root)
    assert [(one.path, one.code) for one in result.failed] == [("a", "REPLACED")]
    assert in_catalog(catalog) == known
    assert harvest(catalog, root).errors == 0
    assert "a/e/f" in in_catalog(catalog) and "a" not in in_catalog(catalog)


def test_a_root_that_is_replaced_while_its_files_vanish_ends_the_harvest(tmp_path: Path) -> None:
    root, catalog = built(tmp_path), Catalog(MemoryStore())
    harvest(catalog, root)
    known = in_catalog(catalog)

    def swap(call: str, about: Any) -> None:
        if call == "stat" and about == "a":
            shutil.copytree(root, tmp_path / "copy", symlinks=True)
            removed(root)
            os.rename(tmp_path / "copy", root)

    with (
        FileSystem(LOCAL, before=swap).used_by(local, descent),
        pytest.raises(SourceNotFound, match="was replaced while it was read"),
    ):
        harvest(catalog, root)
    assert in_catalog(catalog) == known
