"""Owner, permissions, inode and links of entries of a tree: columns of ``objects`` that follow the file and make no version of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.harvest import harvest
from bucketcatalog.harvest.sources.local import LocalSource
from bucketcatalog.store.memory import MemoryStore

from ...kit.harvested import Workers, everything
from ...kit.trees import make_tree, touch
from .sources import ListSource

NUMBERS = ("uid", "gid", "mode", "inode", "links")


def rows(catalog: Catalog) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in catalog.snapshot().scan("objects").to_arrow().to_pylist()}


def numbers(catalog: Catalog) -> dict[str, tuple[Any, ...]]:
    return {name: tuple(row[column] for column in NUMBERS) for name, row in rows(catalog).items()}


def told(root: Path) -> dict[str, tuple[int, ...]]:
    """The same as ``lstat`` says it."""
    found = {}
    for path in root.rglob("*"):
        one = path.lstat()
        if not stat.S_ISDIR(one.st_mode):
            found[str(path.relative_to(root))] = (
                one.st_uid,
                one.st_gid,
                stat.S_IMODE(one.st_mode),
                one.st_ino,
                one.st_nlink,
            )
    return found


def test_they_are_those_of_lstat_also_of_links_and_pipes(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"d/b", b"d/c", b"suid"])
    (root / "link").symlink_to("a")
    os.mkfifo(root / "pipe", 0o600)
    os.link(root / "a", root / "d" / "a too")
    (root / "d" / "b").chmod(0o400)
    (root / "suid").chmod(0o4711)
    harvest(catalog, root)
    assert numbers(catalog) == told(root)
    assert numbers(catalog)["suid"][2] == 0o4711 and numbers(catalog)["a"][4] == 2
    assert [str(catalog.snapshot().scan("objects").schema.field(name).type) for name in NUMBERS] == [
        "int64",
        "int64",
        "int32",
        "uint64",
        "int64",
    ]


def test_what_is_out_of_scope_takes_none_of_them_along(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"%02d" % at for at in range(20)])
    for at in range(20):
        (root / f"{at:02}").chmod(0o600 + at)
    (root / "bad").symlink_to(os.fsdecode(b"\xff"))
    harvest(catalog, root, exclude=["*[02468]"])
    assert {name: row[2] for name, row in numbers(catalog).items()} == {f"{at:02}": 0o600 + at for at in range(1, 20, 2)}


def test_a_change_of_permissions_owner_or_links_updates_the_version(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"b", b"c", b"d"])
    harvest(catalog, root)
    before = rows(catalog)
    (root / "a").chmod(0o700)
    os.link(root / "b", tmp_path / "elsewhere")
    if os.geteuid() == 0:
        os.chown(root / "c", 12_345, 4_000_000_000)
    result = harvest(catalog, root)
    assert (result.created, result.overwritten, result.updated) == (0, 0, 3 if os.geteuid() == 0 else 2)
    assert numbers(catalog) == told(root)
    after = rows(catalog)
    for name in before:
        assert {k: v for k, v in after[name].items() if k not in NUMBERS} == {
            k: v for k, v in before[name].items() if k not in NUMBERS
        }
    assert harvest(catalog, root).transactions == ()
    assert len(catalog.snapshot().scan("deleted_objects").to_arrow()) == 0


def test_an_update_keeps_what_the_catalog_has_in_other_columns(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"b"])
    harvest(catalog, root)
    (row,) = catalog.snapshot().scan("objects", where={"name": "a"}, columns=None).to_arrow().to_pylist()
    key = {name: row[name] for name in ("owner", "bucket_id", "name")}
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.update("objects", {**row, "tags": {"kept": "yes"}, "etag": "kept"})
    (root / "a").chmod(0o711)
    assert harvest(catalog, root).updated == 1
    found = catalog.snapshot().get("objects", **key)
    assert found is not None and (dict(found["tags"]), found["etag"], found["mode"]) == ({"kept": "yes"}, "kept", 0o711)


def test_other_inodes_alone_change_nothing(catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"b"])
    harvest(catalog, root)
    before = numbers(catalog)
    for name in ("a", "b"):
        one = (root / name).stat()
        (root / "new").write_bytes((root / name).read_bytes())
        os.utime(root / "new", ns=(0, one.st_mtime_ns))
        (root / "new").chmod(stat.S_IMODE(one.st_mode))
        (root / "new").rename(root / name)
    assert told(root) != before
    assert harvest(catalog, root).transactions == ()
    (root / "a").chmod(0o700)
    assert harvest(catalog, root).updated == 1
    assert numbers(catalog)["a"] == told(root)["a"] and numbers(catalog)["b"] == before["b"]


class Before(LocalSource):
    """A tree as it was listed before there were these columns."""

    def entries(self, *given: Any, **options: Any) -> Any:
        """See ``Source``."""
        for batch in super().entries(*given, **options):
            yield batch.drop_columns(list(NUMBERS))

    compared = ()  # type: ignore[assignment]


@pytest.mark.parametrize("divided", [False, True])
def test_a_catalog_that_was_harvested_before_gets_them_once(tmp_path: Path, divided: bool) -> None:
    root = make_tree(tmp_path / "tree", [b"%03d" % at for at in range(50)])
    store = MemoryStore()
    catalog = Catalog(store)
    harvest(catalog, Before(root))
    assert set(numbers(catalog).values()) == {(None,) * 5}
    ids = {name: row["id"] for name, row in rows(catalog).items()}
    touch(root / "007", "other")
    (root / "008").unlink()
    more = {"workers": Workers(store)} if divided else {}
    result = harvest(catalog, root, **more)
    assert (result.updated, result.overwritten, result.deleted) == (48, 1, 1)
    assert numbers(catalog) == told(root)
    assert {name for name, row in rows(catalog).items() if ids[name] != row["id"]} == {"007"}
    assert harvest(catalog, root).transactions == ()


def test_workers_and_batches_see_the_same(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"%d/%02d" % (at % 7, at) for at in range(60)])
    store = MemoryStore()
    divided, alone = Catalog(store), Catalog(MemoryStore())
    for mode in (0o600, 0o640):
        for path in list(root.glob("*/*"))[::3]:
            path.chmod(mode)
        harvest(divided, LocalSource(root, batch_rows=7), workers=Workers(store))
        harvest(alone, LocalSource(root, batch_rows=3))
        assert everything(divided) == everything(alone) and numbers(alone) == told(root)


def test_sources_that_do_not_tell_them_leave_them_unset(catalog: Catalog) -> None:
    harvest(catalog, ListSource([("a", "1"), ("b", "22")]))
    assert set(numbers(catalog).values()) == {(None,) * 5}
    assert harvest(catalog, ListSource([("a", "1"), ("b", "22")])).transactions == ()
    assert rows(catalog)["a"]["content_length"] == 1
