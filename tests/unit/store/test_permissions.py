"""A catalog on a local disk where each writer has a directory of its own: permissions are what policies are in an object store."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bucketcatalog import AccessDenied, Catalog
from bucketcatalog.store import LocalStore

from ...kit.world import bucket

MALLORY = 65534


@pytest.fixture
def place() -> Iterator[Path]:
    """A catalog that all may read; below it alice's directory, which mallory may not write to, and mallory's own."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        root = Path(directory) / "lake"
        for name in ("alice", "mallory"):
            commit(root, name, f"of {name}")
        folders = [path for path in (root, *root.rglob("*")) if path.is_dir()]
        for path in folders:
            if path.is_relative_to(root / "mallory"):
                if os.geteuid() == 0:
                    os.chown(path, MALLORY, -1)
            else:
                path.chmod(0o555)
        yield root
        for path in folders:
            path.chmod(0o755)


@pytest.fixture
def as_mallory() -> Iterator[Callable[[], None]]:
    was = os.geteuid()
    yield lambda: os.seteuid(MALLORY) if was == 0 else None
    os.seteuid(was)


def commit(root: Path, writer: str, name: str) -> None:
    with Catalog(root).writer(writer) as held, held.transaction() as tx:
        tx.put("buckets", bucket(name))


def test_who_may_write_to_its_own_directory_alone_reads_all_and_changes_nothing_of_others(
    place: Path, as_mallory: Callable[[], None]
) -> None:
    store = LocalStore(place)
    of_alice = {info.name: store.get(info.name) for info in store.list("alice/")}
    as_mallory()
    commit(place, "mallory", "more")
    found = Catalog(place).snapshot().scan("buckets").to_arrow()["name"].to_pylist()
    assert found == ["more", "of alice", "of mallory"]
    for writer in ("alice", "compactor-1", "maintainer-1"):
        with pytest.raises(AccessDenied):
            commit(place, writer, "forged")
    for name in of_alice:
        with pytest.raises(AccessDenied):
            LocalStore(place).put(name, b"forged")
        with pytest.raises(AccessDenied):
            LocalStore(place).delete(name)
    assert {info.name: store.get(info.name) for info in store.list("alice/")} == of_alice
