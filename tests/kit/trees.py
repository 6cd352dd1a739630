# ruff: noqa: PTH103, PTH114, PTH118, PTH120, PTH123
"""Real directory trees for the tests, what is in them as plain ``os`` calls tell it, and what a catalog says is in them."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bucketcatalog import Catalog

NOBODY = 65534
HOSTILE = [
    b"a/b",
    b"a-b/c",
    b"a.txt",
    b"a0",
    b"A.TXT",
    b"new\nline",
    b"tab\there/\x01\x1b[31mred",
    b" ",
    b" lead/ trail ",
    b"-rf",
    b"back\\slash",
    b"quo'te\"",
    b"per%20cent",
    b"*?[x]",
    b"~",
    "\u00e9".encode(),
    "e\u0301".encode(),
    "\u65e5\u672c/\u8a9e".encode(),
    "\uffee".encode(),
    "\U0001f600".encode(),
    b"x" * 255,
    b"/".join([b"y" * 250] * 4),
    b"z/y/x/w/v/u/t.tar.gz",
]


def make_tree(root: Path, names: list[bytes]) -> Path:
    """Files with these names below ``root``; the content of each is its own name."""
    for name in names:
        path = os.path.join(os.fsencode(root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(name)
    root.mkdir(exist_ok=True)
    return root


def on_disk(root: Path) -> dict[str, tuple[int, int]]:
    """Size and modification time in ns of every entry whose name is UTF-8, by name; found by another way than the walk under test."""
    found = {}
    base = os.fsencode(root)
    for folder, directories, files in os.walk(base):
        links = [d for d in directories if os.path.islink(os.path.join(folder, d))]
        for name in (*files, *links):
            path = os.path.join(folder, name)
            one = os.lstat(path)
            try:
                found[os.path.relpath(path, base).decode()] = (one.st_size, one.st_mtime_ns)
            except UnicodeDecodeError:
                continue
    return found


def in_catalog(catalog: Catalog, bucket: str | None = None) -> dict[str, tuple[int, int]]:
    """Size and modification time in microseconds of every live object, by name; a name that is there twice is an error."""
    where: dict[str, Any] = {}
    snapshot = catalog.snapshot()
    if bucket is not None:
        (id_,) = snapshot.scan("buckets", columns=["id"], where={"name": bucket}).to_arrow().column("id").to_pylist()
        where = {"bucket_id": id_}
    rows = snapshot.scan("objects", where=where).to_arrow()
    sizes, times = rows.column("content_length").to_pylist(), rows.column("modified").cast("int64").to_pylist()
    names = rows.column("name").to_pylist()
    assert names == sorted(names, key=str.encode)
    assert len(set(names)) == len(names)
    return {name: (size, time) for name, size, time in zip(names, sizes, times, strict=True)}


def assert_same(catalog: Catalog, root: Path, bucket: str | None = None) -> None:
    """The catalog holds what the tree holds."""
    assert in_catalog(catalog, bucket) == {name: (size, time // 1_000) for name, (size, time) in on_disk(root).items()}


def touch(path: Path, content: str) -> None:
    """Write the file, with a time of modification that differs from the one before, however coarse the clock is."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_text(content)
    if before:
        os.utime(path, ns=(0, before + 1_000_003))


@contextmanager
def open_folder() -> Iterator[Path]:
    """A temporary directory that every user can enter, unlike pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        path.chmod(0o755)
        yield path


@contextmanager
def locked(*paths: Path) -> Iterator[None]:
    """Nobody may list or enter these directories meanwhile: not this process either, which gives up being root if it is."""
    modes = [(path, stat.S_IMODE(path.stat().st_mode)) for path in paths]
    for path in paths:
        path.chmod(0)
    was = os.geteuid()
    if was == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(was)
        for path, mode in modes:
            path.chmod(mode)
