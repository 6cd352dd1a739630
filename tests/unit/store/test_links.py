"""Symbolic links in a local store: nobody who can plant one below the root reaches anything outside of it."""

from __future__ import annotations

import errno
import os
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bucketcatalog.errors import AccessDenied, CorruptionError, ObjectNotFound, StoreUnavailable
from bucketcatalog.store import LocalStore
from bucketcatalog.store.base import UnfinishedPut
from bucketcatalog.store.obstacles import Obstacles, PastObstacles

from ...kit.store_contract import names_of

_LINKED = "is a symbolic link, and below a store's root none to a directory is followed"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the root with files of somebody else's, one of which looks like what a dead put has left."""
    place = tmp_path / "outside"
    (place / "deep").mkdir(parents=True)
    for name in ("x", "deep/y", ".put-old"):
        (place / name).write_bytes(b"theirs")
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    LocalStore(place).put("w/db/own", b"own")
    return place


def everything(place: Path) -> dict[str, bytes]:
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_a_root_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    store = LocalStore(tmp_path / "link")
    store.put("w/db/more", b"x")
    assert names_of(store.list("")) == ["w/db/more", "w/db/own"] and store.list_prefixes("") == ["w"]
    store.delete("w/db/more")
    assert everything(root) == {"w/db/own": b"own"}


@pytest.mark.parametrize("link", ["w/linked", "w/db/linked", "linked"])
def test_a_listing_that_comes_to_a_linked_directory_says_so(root: Path, outside: Path, link: str) -> None:
    (root / link).symlink_to(outside)
    store = LocalStore(root)
    for prefix in ("", f"{link}/", f"{link}/deep/"):
        with pytest.raises(AccessDenied, match=_LINKED) as caught:
            list(store.list(prefix))
        assert str(root / link) in caught.value.message and caught.value.next_step.startswith("Remove the link")
    with pytest.raises(AccessDenied, match=_LINKED):
        store.list_prefixes(f"{link}/")
    with pytest.raises(AccessDenied, match=_LINKED):
        store.list_prefixes("" if "/" not in link else link.rpartition("/")[0] + "/")
    assert names_of(store.list("w/db/", after="w/db/linked0")) == ["w/db/own"], "nothing else is kept from anybody"


@pytest.mark.parametrize("name", ["w/linked/x", "w/linked/deep/y", "w/linked/none", "w/linked/deep"])
def test_delete_goes_through_no_linked_directory(root: Path, outside: Path, name: str) -> None:
    (root / "w" / "linked").symlink_to(outside)
    with pytest.raises(AccessDenied, match=_LINKED):
        LocalStore(root).delete(name)
    assert everything(outside) == {"x": b"theirs", "deep/y": b"theirs", ".put-old": b"theirs"} and (outside / "deep").is_dir()
    assert (root / "w" / "linked").is_symlink()


@pytest.mark.parametrize("target", ["outside", "nowhere", "root/w/db", "root/w/linked"])
def test_put_goes_through_no_linked_directory(root: Path, outside: Path, tmp_path: Path, target: str) -> None:
    (root / "w" / "linked").symlink_to(tmp_path / target)
    for name in ("w/linked/new", "w/linked/deep/new"):
        with pytest.raises(AccessDenied, match=_LINKED):
            LocalStore(root).put(name, b"new")
    assert everything(outside) == {"x": b"theirs", "deep/y": b"theirs", ".put-old": b"theirs"}
    assert everything(root / "w" / "db") == {"own": b"own"} and not (tmp_path / "nowhere").exists()


def test_a_store_that_has_put_there_before_sees_a_link_that_came_since(root: Path, outside: Path) -> None:
    store = LocalStore(root)
    store.put("w/db/one", b"1")
    store.put("w/db/two", b"2")
    (root / "w" / "db").rename(root / "w" / "away")
    (root / "w" / "db").symlink_to(root / "w" / "away")
    with pytest.raises(AccessDenied, match=_LINKED):
        store.put("w/db/three", b"3")
    with pytest.raises(AccessDenied, match=_LINKED):
        store.delete("w/db/one")
    assert sorted(everything(root / "w" / "away")) == ["one", "own", "two"]


def test_a_linked_file_is_read_as_what_it_leads_to_and_deleted_or_replaced_itself(root: Path, outside: Path) -> None:
    store = LocalStore(root)
    for name in ("one", "two"):
        (root / "w" / name).symlink_to(outside / "x")
    assert (store.get("w/one"), store.head("w/one").size, store.get_range("w/one", 1, 2)) == (b"theirs", 6, b"he")
    assert names_of(store.list("w/")) == ["w/db/own", "w/one", "w/two"]
    store.delete("w/one")
    store.put("w/two", b"mine")
    assert (outside / "x").read_bytes() == b"theirs"
    assert everything(root) == {"w/db/own": b"own", "w/two": b"mine"} and not (root / "w" / "two").is_symlink()


def test_a_place_for_data_shows_nothing_that_is_a_link(root: Path, outside: Path) -> None:
    (root / "w" / "linked").symlink_to(outside)
    (root / "w" / "file").symlink_to(outside / "x")
    store = LocalStore(root).leaving_links()
    for each in (store, pickle.loads(pickle.dumps(store))):
        assert names_of(each.list("")) == ["w/db/own"] and each.list_prefixes("") == ["w"]
        with pytest.raises(AccessDenied, match=_LINKED):
            each.delete("w/linked/x")
        with pytest.raises(AccessDenied, match=_LINKED):
            list(each.list("w/linked/"))
    assert (outside / "x").exists()


def test_what_dead_puts_have_left_is_neither_looked_for_nor_removed_through_links(root: Path, outside: Path) -> None:
    (root / "w" / "linked").symlink_to(outside)
    (root / "w" / ".put-link").symlink_to(outside / "x")
    store = LocalStore(root)
    (left,) = store.unfinished_puts()
    assert left.name == "w/.put-link"
    store.discard(left)
    with pytest.raises(AccessDenied, match=_LINKED):
        store.discard(UnfinishedPut("w/linked/.put-old", 0))
    assert everything(outside) == {"x": b"theirs", "deep/y": b"theirs", ".put-old": b"theirs"}
    assert not (root / "w" / ".put-link").is_symlink()


def test_a_link_put_there_between_the_look_and_the_deed_is_not_followed(
    root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is swapped for a link once it has been opened: what is deleted is what was opened."""
    (root / "w" / "deep").mkdir()
    (root / "w" / "deep" / "y").write_bytes(b"own")
    unlink = os.unlink

    def swapped(path: bytes, *, dir_fd: int) -> None:
        (root / "w").rename(root / "v")
        (root / "w").symlink_to(outside)
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", swapped)
    LocalStore(root).delete("w/deep/y")
    assert (outside / "deep" / "y").read_bytes() == b"theirs" and not (root / "v" / "deep").exists()


def test_links_that_lead_nowhere_are_no_objects_and_one_to_itself_is_named(root: Path) -> None:
    (root / "w" / "dangling").symlink_to(root / "nowhere")
    assert names_of(LocalStore(root).list("")) == ["w/db/own"]
    (root / "w" / "itself").symlink_to("itself")
    with pytest.raises(StoreUnavailable, match="leads back to itself"):
        list(LocalStore(root).list(""))
    assert names_of(LocalStore(root).leaving_links().list("")) == ["w/db/own"]


@pytest.mark.parametrize("target", ["a" * 256, "a" * 300, "../w/db/" + "a" * 300, "a" * 4_095])
def test_a_link_to_too_long_a_path_is_named_and_gone_past(root: Path, target: str) -> None:
    """No more than 4,095 bytes can be a link's."""
    (root / "w" / "long").symlink_to(target)
    plain, obstacles = LocalStore(root), Obstacles()
    store = PastObstacles(plain, obstacles.add)
    for call in (
        lambda: [*plain.list("")],
        lambda: plain.list_prefixes("w/"),
        lambda: plain.get("w/long"),
        lambda: plain.head("w/long"),
    ):
        with pytest.raises(
            StoreUnavailable, match=r"Cannot \w+ 'w/long' in .*'.*/w/long' is a symbolic link to a path that is too long"
        ) as caught:
            call()
        assert caught.value.in_the_way.rstrip("/") == "w/long" and caught.value.next_step.startswith("Remove the link")
    assert names_of(store.list("")) == ["w/db/own"] and store.list_prefixes("w/") == ["db"]
    assert [name for name, _ in obstacles.untold()] == ["w/long"]
    with pytest.raises(CorruptionError, match="'w/long'"):
        store.get("w/long")
    with pytest.raises(ObjectNotFound):
        store.head("w/long")
    assert names_of(plain.leaving_links().list("")) == ["w/db/own"]
    with pytest.raises(AccessDenied, match=_LINKED):
        plain.put("w/long/x", b"x")
    plain.put("w/long", b"mine")
    assert plain.get("w/long") == b"mine"


def test_a_link_that_cannot_be_followed_for_any_other_reason_is_gone_past_too(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one to where a file system was whose server is gone."""
    (root / "w" / "away").symlink_to("anywhere")

    class Entry:
        def __init__(self, entry: os.DirEntry[bytes]) -> None:
            self._entry, self.name, self.path = entry, entry.name, entry.path

        def __getattr__(self, name: str) -> object:
            return getattr(self._entry, name)

        def is_dir(self) -> bool:
            if self.name == b"away":
                raise OSError(errno.ENOTCONN, "Transport endpoint is not connected", self.path)
            return self._entry.is_dir()

    scandir = os.scandir

    @contextmanager
    def entries(path: bytes) -> Iterator[list[Entry]]:
        with scandir(path) as found:
            yield [Entry(entry) for entry in found]

    monkeypatch.setattr(os, "scandir", entries)
    with pytest.raises(StoreUnavailable, match=r"Cannot list 'w/away' in .*: Transport endpoint is not connected"):
        list(LocalStore(root).list(""))
    obstacles = Obstacles()
    assert names_of(PastObstacles(LocalStore(root), obstacles.add).list("")) == ["w/db/own"]
    assert [name for name, _ in obstacles.untold()] == ["w/away"]


def test_nothing_is_looked_at_below_what_begins_otherwise(root: Path, outside: Path) -> None:
    store = LocalStore(root)
    store.put("v/x", b"x")
    (root / "w" / "db" / "own").unlink()
    (root / "w" / "linked").symlink_to(outside)
    assert store.list_prefixes("", begin="v") == ["v"]
    obstacles = Obstacles()
    assert PastObstacles(store, obstacles.add).list_prefixes("", begin="v") == ["v"] and obstacles.untold() == []
    for begin in ("", "w"):
        with pytest.raises(AccessDenied, match=_LINKED):
            store.list_prefixes("", begin=begin)
    assert PastObstacles(store, obstacles.add).list_prefixes("", begin="w") == []
    assert [name for name, _ in obstacles.untold()] == ["w/linked"]
