"""Listings that go past what cannot be looked into: nothing else is missing, and each obstacle is told, once and by its name."""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bucketcatalog.errors import AccessDenied, CorruptionError, ObjectNotFound, StoreError, StoreUnavailable
from bucketcatalog.store import LocalStore, MemoryStore, Store
from bucketcatalog.store.faults import Counting, Failing
from bucketcatalog.store.obstacles import Obstacles, PastObstacles

from ...kit.store_contract import byte_order, names_of

NOBODY = 65534
NAMES = ["a/b", "w/db/one", "w/odd", "w/odd-x", "w/odd.x", "w/odd0", "w/odd0x", "w/odd1/y", "w/z", "x/y/z"]
"""Around what is going to be in the way, ``w/odd``; the object of that name itself is not put."""


@pytest.fixture
def root() -> Iterator[Path]:
    """A store that anybody may read, and a folder beside it."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        place = Path(directory) / "root"
        for name in NAMES:
            if name != "w/odd":
                LocalStore(place).put(name, name.encode())
        (Path(directory) / "outside" / "deep").mkdir(parents=True)
        (Path(directory) / "outside" / "deep" / "x").write_bytes(b"theirs")
        yield place


@pytest.fixture
def as_nobody() -> Iterator[Callable[[], None]]:
    """Lets this process have only the rights of nobody in particular, who is refused what root would not be."""
    was = os.geteuid()

    def become() -> None:
        if was == 0:
            os.seteuid(NOBODY)

    yield become
    os.seteuid(was)


def to_a_directory(root: Path, name: str) -> None:
    (root / name).symlink_to(root.parent / "outside")


def to_itself(root: Path, name: str) -> None:
    (root / name).symlink_to((root / name).name)


def closed(root: Path, name: str) -> None:
    (root / name / "deep").mkdir(parents=True)
    (root / name / "deep" / "x").write_bytes(b"x")
    (root / name).chmod(0)


def past(store: Store) -> tuple[PastObstacles, Obstacles]:
    obstacles = Obstacles()
    return PastObstacles(store, obstacles.add), obstacles


@pytest.mark.parametrize("wrap", [lambda store: store, Counting], ids=["itself", "Counting"])
@pytest.mark.parametrize("make", [to_a_directory, to_itself, closed])
def test_everything_else_is_listed_from_any_name_on(
    root: Path, make: Callable[[Path, str], None], wrap: Callable[[Store], Store], as_nobody: Callable[[], None]
) -> None:
    make(root, "w/odd")
    as_nobody()
    there = byte_order([name for name in NAMES if name != "w/odd"])
    store, obstacles = past(wrap(LocalStore(root)))
    for prefix in ("", "w/", "w/odd/", "w/odd/deep/", "x/"):
        below = [name for name in there if name.startswith(prefix)]
        for after in ("", *NAMES, "w/odd/", "w/odd/x", "w/odd/zzz", "w/oddz"):
            rest = [name for name in below if name.encode() > after.encode()]
            assert names_of(store.list(prefix, after=after)) == rest, (prefix, after)
            for limit in range(len(rest) + 2):
                assert names_of(store.list(prefix, after=after, limit=limit)) == rest[:limit], (prefix, after, limit)
    assert store.list_prefixes("") == ["a", "w", "x"] and store.list_prefixes("w/") == ["db", "odd1"]
    assert store.list_prefixes("w/odd/") == []
    (name, error), *others = obstacles.untold()
    assert name == "w/odd" and "w/odd" in error.message and isinstance(error, (AccessDenied, StoreUnavailable))
    assert [name for name, _ in others] == (["w/odd/deep"] if make is closed else []), "what is asked for itself is named itself"
    assert obstacles.untold() == []
    assert (root.parent / "outside" / "deep" / "x").read_bytes() == b"theirs"


def test_several_obstacles_are_told_each(root: Path) -> None:
    for name in ("w/db/a", "w/db/b", "q", "x/y/r"):
        to_a_directory(root, name)
    store, obstacles = past(LocalStore(root))
    assert names_of(store.list("")) == byte_order([name for name in NAMES if name != "w/odd"])
    assert store.list_prefixes("") == ["a", "w", "x"]
    assert {name for name, _ in obstacles.untold()} == {"w/db/a", "w/db/b", "q", "x/y/r"}


def test_a_directory_full_of_obstacles_is_gone_past_itself_and_named(root: Path) -> None:
    count = 300
    (root / "w" / "full").mkdir()
    (root / "w" / "full" / "zz").write_bytes(b"x")
    for number in range(count):
        to_a_directory(root, f"w/full/{number:03}")
    counting = Counting(LocalStore(root))
    store, obstacles = past(counting)
    assert names_of(store.list("")) == byte_order([name for name in NAMES if name != "w/odd"])
    told = [name for name, _ in obstacles.untold()]
    assert "w/full" in told and told[0] == "w/full/000" and len(told) < 100
    assert counting.requests["list"] < 100
    assert names_of(store.list("w/full/")) == [] and names_of(store.list("w/odd1/")) == names_of(LocalStore(root).list("w/odd1/"))


def test_a_writer_of_whom_nothing_else_is_there_is_none(root: Path) -> None:
    (root / "only").mkdir()
    to_a_directory(root, "only/db")
    store, obstacles = past(LocalStore(root))
    assert store.list_prefixes("") == ["a", "w", "x"] and names_of(store.list("only/")) == []
    assert [name for name, _ in obstacles.untold()] == ["only/db"]


def test_what_may_not_be_read_is_damaged_and_the_rest_is_read(root: Path, as_nobody: Callable[[], None]) -> None:
    closed(root, "w/odd")
    (root / "w/z").chmod(0)
    as_nobody()
    plain = LocalStore(root)
    store, _ = past(plain)
    for name in ("w/z", "w/odd/deep/x"):
        for read in (lambda s, n: s.get(n), lambda s, n: s.get(n, most=3), lambda s, n: s.get_range(n, 0, 1)):
            with pytest.raises(AccessDenied, match=f"'{name}'.*Permission denied"):
                read(plain, name)
            with pytest.raises(CorruptionError, match=f"'{name}'.*Permission denied") as caught:
                read(store, name)
            assert caught.value.next_step.startswith("Give this user the permission")
    with pytest.raises(AccessDenied):
        plain.head("w/odd/deep/x")
    with pytest.raises(ObjectNotFound):
        store.head("w/odd/deep/x")
    assert store.head("w/z").size == 3 and store.get("a/b") == b"a/b"


@pytest.mark.parametrize("call", ["get", "get_range", "head", "list", "list_prefixes"])
def test_an_error_that_is_not_about_one_name_stops_as_ever(call: str) -> None:
    store, obstacles = past(Failing(MemoryStore(), at=0, error=StoreUnavailable("the store is away")))
    calls = {
        "get": lambda: store.get("a"),
        "get_range": lambda: store.get_range("a", 0, 1),
        "head": lambda: store.head("a"),
        "list": lambda: list(store.list("")),
        "list_prefixes": lambda: store.list_prefixes(""),
    }
    with pytest.raises(StoreUnavailable, match="the store is away"):
        calls[call]()
    assert obstacles.untold() == []


def test_a_root_that_cannot_be_listed_is_no_obstacle_to_go_past(root: Path, as_nobody: Callable[[], None]) -> None:
    root.chmod(0)
    as_nobody()
    store, _ = past(LocalStore(root))
    for call in (lambda: list(store.list("")), lambda: store.list_prefixes("")):
        with pytest.raises(AccessDenied):
            call()


def test_writes_stop_at_a_link_here_too(root: Path) -> None:
    to_a_directory(root, "w/odd")
    store, obstacles = past(LocalStore(root))
    for call in (lambda: store.put("w/odd/x", b"x"), lambda: store.delete("w/odd/deep/x")):
        with pytest.raises(StoreError, match="is a symbolic link"):
            call()
    assert obstacles.untold() == [] and (root.parent / "outside" / "deep" / "x").exists()


def test_a_pickle_goes_past_obstacles_too(root: Path) -> None:
    to_a_directory(root, "w/odd")
    store, obstacles = past(LocalStore(root))
    copy = pickle.loads(pickle.dumps(store))
    assert names_of(copy.list("w/db/")) == names_of(store.list("w/db/")) == ["w/db/one"]
    assert copy.list_prefixes("w/") == ["db", "odd1"] and obstacles.untold() == []
