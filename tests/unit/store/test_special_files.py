"""What is no plain file under an object's name on a local disk: no call waits for it or reads of it, and all calls agree on it."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from bucketcatalog.errors import ObjectNotFound, StoreUnavailable
from bucketcatalog.store import LocalStore

from ...kit.store_contract import names_of

NAME = "w/db/transactions/0/odd"
SOUND = "w/db/transactions/0/sound"


def linked(to: Callable[[Path], object] | str) -> Callable[[Path], None]:
    """A symbolic link to a path, or to what this makes beside the root."""

    def make(path: Path) -> None:
        target = path.parents[5] / "elsewhere"
        if isinstance(to, str):
            target = Path(to)
        else:
            to(target)
        path.symlink_to(target)

    return make


def directory(path: Path) -> None:
    path.mkdir()


SPECIAL: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "directory": directory,
    "link to a pipe": linked(os.mkfifo),
    "link to a socket": linked(lambda path: os.mknod(path, stat.S_IFSOCK | 0o600)),
    "link to /dev/zero": linked("/dev/zero"),
    "link to /dev/null": linked("/dev/null"),
    "link to a terminal": linked("/dev/tty"),
    "link to nothing": linked("/nowhere/at/all"),
    "link through a file": linked("/dev/null/x"),
}


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    """A call that waits for somebody fails."""

    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    LocalStore(place).put(SOUND, b"sound")
    return place


@pytest.mark.parametrize("make", SPECIAL.values(), ids=SPECIAL)
def test_what_is_no_plain_file_is_no_object_for_any_call(root: Path, make: Callable[[Path], object]) -> None:
    make(root / NAME)
    store = LocalStore(root)
    for read in (
        store.get,
        lambda name: store.get(name, most=10),
        lambda name: store.get_range(name, 0, 1),
        lambda name: store.get_range(name, -8, 8),
        store.head,
    ):
        with pytest.raises(ObjectNotFound, match=NAME):
            read(NAME)
    assert names_of(store.list("")) == names_of(store.list("w/db/transactions/0/")) == [SOUND]
    assert store.list_prefixes("") == ["w"] and store.list_prefixes("w/db/transactions/0/") == []
    assert store.get(SOUND) == b"sound", "nothing else is kept from anybody"


@pytest.mark.parametrize("what", [what for what in SPECIAL if what != "directory"])
def test_a_put_takes_its_place_and_a_delete_removes_it(root: Path, what: str) -> None:
    for act in ("put", "delete"):
        (root.parent / "elsewhere").unlink(missing_ok=True)
        SPECIAL[what](root / NAME)
        store = LocalStore(root)
        if act == "put":
            store.put(NAME, b"now")
            assert store.get(NAME) == b"now" and (root / NAME).is_file()
        store.delete(NAME)
        assert not os.path.lexists(root / NAME)
        assert store.get(SOUND) == b"sound"


def test_a_put_does_not_take_the_place_of_a_directory(root: Path) -> None:
    (root / NAME).mkdir()
    with pytest.raises(StoreUnavailable, match=f"Cannot put '{NAME}'.*Is a directory"):
        LocalStore(root).put(NAME, b"now")


def test_a_link_to_a_plain_file_is_that_file(root: Path) -> None:
    (root / NAME).symlink_to(root / SOUND)
    store = LocalStore(root)
    assert store.get(NAME) == store.get(NAME, most=5) == store.get_range(NAME, 0, 5) == b"sound"
    assert names_of(store.list("")) == [NAME, SOUND] and store.head(NAME).size == 5


@pytest.mark.parametrize("make", [SPECIAL["pipe"], SPECIAL["link to /dev/zero"], None], ids=["pipe", "device", "plain"])
def test_a_file_that_somebody_has_leased_is_waited_for_only_where_it_is_plain(
    root: Path, make: Callable[[Path], object] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a kernel says of a file that a server of a network file system has a lease on: to open it at once would block."""
    if make is not None:
        make(root / NAME)
    opened = os.open

    def leased(path: bytes, flags: int, *arguments: int, dir_fd: int | None = None) -> int:
        if flags & os.O_NONBLOCK:
            raise BlockingIOError
        return opened(path, flags, *arguments, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", leased)
    store = LocalStore(root)
    assert store.get(SOUND) == b"sound"
    if make is not None:
        with pytest.raises(ObjectNotFound):
            store.get(NAME)


def test_no_descriptor_is_left_open_by_what_is_refused(root: Path) -> None:
    for make in SPECIAL.values():
        (root.parent / "elsewhere").unlink(missing_ok=True)
        make(root / NAME)
        before = len([*Path("/proc/self/fd").iterdir()])
        with pytest.raises(ObjectNotFound):
            LocalStore(root).get(NAME)
        assert len([*Path("/proc/self/fd").iterdir()]) == before
        (root / NAME).rmdir() if (root / NAME).is_dir() else (root / NAME).unlink()
