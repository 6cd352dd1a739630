"""Directories however deep in each other: listed like any other, and where no path can be long enough for them, gone past by their name."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bucketcatalog.errors import InvalidName, StoreUnavailable
from bucketcatalog.store import LocalStore, Store
from bucketcatalog.store.obstacles import Obstacles, PastObstacles
from bucketcatalog.store.remote import FsspecStore

from ...kit.deep import DEEP, nested
from ...kit.store_contract import names_of

STORES: list[Callable[[Path], Store]] = [LocalStore, lambda root: FsspecStore(f"file://{root}")]
TOO_LONG = [(30, "b" * 200), (30, "b" * 255), (2_500, "b")]
"""Levels and parts that make paths of more than the 4,095 bytes that a call of the system takes."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a/b", "w/0", "w/x", "z/y"):
        LocalStore(tmp_path).put(name, b"x")
    return tmp_path


@pytest.mark.parametrize("opened", STORES, ids=["local", "fsspec"])
def test_an_object_is_listed_however_deep_it_lies(root: Path, opened: Callable[[Path], Store]) -> None:
    store = opened(root)
    with nested(root / "w") as below:
        deep = f"w/{below}"
        assert names_of(store.list("")) == ["a/b", "w/0", deep, "w/x", "z/y"]
        assert names_of(store.list("w/", after="w/0", limit=2)) == [deep, "w/x"]
        assert names_of(store.list("w/", after=deep)) == ["w/x"]
        assert names_of(store.list("", after=deep[:-1])) == [deep, "w/x", "z/y"]
        assert store.list_prefixes("") == ["a", "w", "z"] and store.list_prefixes("w/") == ["a"]


@pytest.mark.parametrize("opened", STORES, ids=["local", "fsspec"])
def test_empty_directories_hold_nothing_however_many_there_are(root: Path, opened: Callable[[Path], Store]) -> None:
    (root / "v").mkdir()
    with nested(root / "v", file=".put-x"):
        assert opened(root).list_prefixes("") == ["a", "w", "z"] and names_of(opened(root).list("v/")) == []


@pytest.mark.parametrize(("levels", "part"), TOO_LONG)
def test_directories_deeper_than_a_path_can_be_long_are_named_and_gone_past(root: Path, levels: int, part: str) -> None:
    plain, obstacles = LocalStore(root), Obstacles()
    store = PastObstacles(plain, obstacles.add)
    with nested(root / "w", levels, part=part):
        for call in (lambda: [*plain.list("")], lambda: [*plain.list("w/")], lambda: plain.list_prefixes("w/")):
            with pytest.raises(StoreUnavailable, match="File name too long") as caught:
                call()
            assert caught.value.in_the_way.startswith(f"w/{part}/{part}/") and caught.value.in_the_way in caught.value.message
            assert "directories that lie so deep" in caught.value.next_step
        assert names_of(plain.list("", after=f"w/{part}0")) == ["w/x", "z/y"], "nothing else is kept from anybody"
        assert names_of(store.list("")) == ["a/b", "w/0", "w/x", "z/y"]
        assert names_of(store.list("w/", after="w/0", limit=1)) == ["w/x"]
        assert store.list_prefixes("") == ["a", "w", "z"] and store.list_prefixes("w/") == []
        ((name, _),) = obstacles.untold()
        assert name == caught.value.in_the_way.rstrip("/") and len(str(root / name)) > 3_800


def test_an_object_whose_own_path_is_too_long_is_gone_past_too(root: Path) -> None:
    """Its directory can be listed, and it not be looked at."""
    levels = (4_090 - len(f"{root}/w/")) // 2
    plain, obstacles = LocalStore(root), Obstacles()
    with nested(root / "w", levels, file="f" * 20) as below:
        with pytest.raises(StoreUnavailable, match="File name too long"):
            list(plain.list("w/"))
        assert names_of(PastObstacles(plain, obstacles.add).list("w/")) == ["w/0", "w/x"]
        assert [name for name, _ in obstacles.untold()] == [f"w/{below}"]


def test_what_is_asked_for_by_too_long_a_name_is_no_obstacle(root: Path) -> None:
    for name in ("x" * 256, "w/" + "x/" * 2_500 + "x"):
        for call in (lambda s, n: s.get(n), lambda s, n: s.head(n), lambda s, n: [*s.list(f"{n}/")]):
            for store in (LocalStore(root), PastObstacles(LocalStore(root), pytest.fail)):
                with pytest.raises(InvalidName, match="at most 255 bytes"):
                    call(store, name)


@contextmanager
def few_open_files() -> Iterator[None]:
    """Far fewer files may be open here than there are directories in each other."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_delete_takes_all_that_it_leaves_empty_and_holds_few_of_them_open(root: Path) -> None:
    store = LocalStore(root)
    beside = "w/" + "a/" * 700 + "beside"
    with nested(root / "w") as below, few_open_files():
        (root / beside).write_bytes(b"x")
        store.delete(f"w/{below}")
        assert sorted(path.name for path in (root / beside).parent.iterdir()) == ["beside"]
        store.delete(beside)
        assert sorted(path.name for path in (root / "w").iterdir()) == ["0", "x"]


@pytest.mark.parametrize("levels", [1, 62, 63, 64, 65, 127, 128, 129])
def test_delete_takes_what_it_leaves_empty_at_any_depth(root: Path, levels: int) -> None:
    store, name = LocalStore(root), "v/" + "a/" * levels + "f"
    store.put(name, b"x")
    store.delete(name.replace("f", "g"))
    assert names_of(store.list("v/")) == [name]
    store.delete(name)
    assert sorted(path.name for path in root.iterdir()) == ["a", "w", "z"]


def test_what_a_dead_put_has_left_is_found_and_removed_however_deep(root: Path) -> None:
    store = LocalStore(root)
    with nested(root / "w", file=".put-x") as below, few_open_files():
        (left,) = store.unfinished_puts()
        assert left.name == f"w/{below}" and left.begun_us > 0
        store.discard(left)
        assert [*store.unfinished_puts()] == [] and not (root / "w" / "a").exists()


@pytest.mark.parametrize(("levels", "part"), TOO_LONG)
def test_who_looks_for_dead_puts_goes_past_what_no_path_leads_to(root: Path, levels: int, part: str) -> None:
    (root / "z" / ".put-y").write_bytes(b"")
    with nested(root / "w", levels, part=part, file=".put-x"):
        assert [put.name for put in LocalStore(root).unfinished_puts()] == ["z/.put-y"]


def test_levels_are_more_than_a_function_may_call_itself() -> None:
    def depth(left: int) -> int:
        return 1 + depth(left - 1) if left else 0

    with pytest.raises(RecursionError):
        depth(DEEP)
