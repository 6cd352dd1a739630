"""What a writer can put below its prefix on a local disk for no listing to get through: others commit blindly, and read past it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from bucketcatalog import Catalog, CatalogWarning, StoreError
from bucketcatalog.cli import run
from bucketcatalog.store.faults import Counting

from ...kit.deep import nested
from ...kit.world import bucket, obj

Make = Callable[[Path], AbstractContextManager[object]]
PLACES = ["x", "x/default", "x/default/transactions", "x/default/newest"]


@contextmanager
def linked(directory: Path) -> Iterator[None]:
    (directory / "odd").symlink_to(directory.parents[len(directory.parents) - 2])
    yield


@contextmanager
def long_link(directory: Path) -> Iterator[None]:
    (directory / "odd").symlink_to("a" * 300)
    yield


def deep(directory: Path) -> AbstractContextManager[str]:
    return nested(directory)


def too_deep(directory: Path) -> AbstractContextManager[str]:
    return nested(directory, 30, part="b" * 255)


CODES: dict[Make, str] = {linked: "ACCESS_DENIED", long_link: "STORE_UNAVAILABLE", too_deep: "STORE_UNAVAILABLE"}
"""By default these stop who gets there, with this error; ``deep`` directories stop nobody."""
OBSTACLES = [*CODES]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A catalog of the writers w and x."""
    for name in ("w", "x"):
        with Catalog(tmp_path / "catalog").writer(name) as writer, writer.transaction() as tx:
            tx.put("buckets", bucket(f"of {name}"))
    (tmp_path / "catalog" / "x/default/newest").mkdir()
    return tmp_path / "catalog"


def names(catalog: Catalog, **options: bool) -> set[str]:
    return {*catalog.snapshot(**options).scan("buckets").to_arrow()["name"].to_pylist()}


def commit_blindly(place: Path) -> None:
    with Catalog(place).writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", obj("blind"))


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("make", [*OBSTACLES, deep])
def test_a_commit_that_looks_nothing_up_goes_on(place: Path, make: Make, where: str) -> None:
    with make(place / where):
        commit_blindly(place)
    assert len([*(place / "w").rglob("*.txn")]) == 2


@pytest.mark.parametrize("make", OBSTACLES)
def test_a_commit_stops_where_a_checkpoint_of_its_timeline_may_be(place: Path, make: Make) -> None:
    """Else it would give revisions that a compactor's checkpoint covers a second time."""
    with Catalog(place).writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    with make(place / "compactor-1/default/newest"), pytest.raises(StoreError, match="compactor-1/default/newest/"):
        commit_blindly(place)
    assert len([*(place / "w").rglob("*.txn")]) == 1


def test_who_opens_a_timeline_asks_for_those_alone_who_speak_for_others(place: Path) -> None:
    store = Counting(Catalog(place).store)
    with Catalog(store).writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", obj("blind"))
    assert store.requests["list_prefixes"] == 2 and not [name for _, name in store.names if name.startswith("x/")]


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("make", OBSTACLES)
def test_who_gets_there_is_stopped_by_its_name_and_goes_past_it_where_that_is_asked_for(
    place: Path, make: Make, where: str
) -> None:
    begin = f"{where}/odd" if make is not too_deep else f"{where}/bbb"
    with make(place / where):
        with pytest.raises(StoreError, match=begin) as caught:
            Catalog(place).snapshot()
        assert caught.value.code == CODES[make]
        with pytest.warns(CatalogWarning, match=begin):
            snapshot = Catalog(place).snapshot(ignore_corruption=True)
        assert {*snapshot.scan("buckets").to_arrow()["name"].to_pylist()} == {"of w", "of x"}
        met = begin < "x/default/"  # whether there is anything of the writer's before it decides who looks who there is
        lost = [(begin, CODES[make])] if met or where != "x" else []
        assert [(loss.file[: len(begin)], loss.code) for loss in snapshot.missing] == lost
        assert [(f.code, f.file[: len(begin)]) for f in Catalog(place).verify()] == [("NOT_LISTED", begin)]
        (bad,) = (place / "w/default/transactions").rglob("*.txn")
        bad.write_bytes(b"spoilt")
        file = bad.relative_to(place).as_posix()
        made = Catalog(place).repair(dry_run=False, writer="maintainer-1", set_aside=[file])
        assert [(action.what, action.done) for action in made.actions] == [("set aside", True)]
        assert [(f.code, f.file[: len(begin)]) for f in made.lost] == [("NOT_LISTED", begin)]


@pytest.mark.parametrize("where", PLACES)
def test_deep_directories_stop_nobody(place: Path, where: str) -> None:
    with deep(place / where) as below:
        assert names(Catalog(place)) == names(Catalog(place), ignore_corruption=True) == {"of w", "of x"}
        unknown = f"{where}/{below}" if where.count("/") == 2 else "x/default/a/"
        found = [(f.code, f.file) for f in Catalog(place).verify()]
        assert found == ([] if where == "x" else [("UNKNOWN_FILE", unknown)])
        made = Catalog(place).repair()
        assert (made.actions, made.lost) == ((), ())
        Catalog(place).collect(older_than="7h")
        with Catalog(place).writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        assert run(["info", str(place)]) == 0
