# ruff: noqa: PTH108, PTH110
"""A harvest may die at any call of its store, or anywhere else: the next run loses nothing and doubles nothing.

Puts come from one thread, so their enumeration is the same each time, and what is in the store after so many of them; reads for the
comparison run beside them.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bucketcatalog import Catalog
from bucketcatalog.harvest import Harvested, harvest
from bucketcatalog.harvest.sources.local import LocalSource
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Failing, LostResponses, SimulatedCrash
from bucketcatalog.store.memory import MemoryStore

from ...kit.trees import assert_same, make_tree, on_disk, touch

NAMES = [b"d%d/f%02d" % (at % 3, at) for at in range(18)] + [b"bad\xff"]


def run(store: Store, root: Path) -> Harvested:
    """A harvest of many small steps, checkpoints among them."""
    return harvest(Catalog(store), LocalSource(root, batch_rows=4), chunk_events=6, checkpoint_events=12)


def first_harvest(tmp_path: Path) -> tuple[Path, Callable[[], MemoryStore]]:
    """A tree that no catalog has seen."""
    return make_tree(tmp_path / "tree", NAMES), MemoryStore


def second_harvest(tmp_path: Path) -> tuple[Path, Callable[[], MemoryStore]]:
    """A tree that has changed since it was harvested."""
    root = make_tree(tmp_path / "tree", NAMES)
    harvested = MemoryStore()
    run(harvested, root)
    for at in range(0, 18, 3):
        touch(root / f"d{at % 3}" / f"f{at:02}", "other")
        touch(root / f"new{at}", "new")
        (root / f"d{(at + 1) % 3}" / f"f{at + 1:02}").unlink()
    os.unlink(os.fsencode(root) + b"/bad\xff")

    def copy() -> MemoryStore:
        store = MemoryStore()
        for info in harvested.list(""):
            store.put(info.name, harvested.get(info.name))
        return store

    return root, copy


def assert_nothing_lost_or_doubled(store: Store, root: Path) -> None:
    """The catalog is what is on disk, each version was put once, nothing remains to be done, and what is gone was deleted once."""
    assert_same(Catalog(store), root)
    assert run(store, root).transactions == ()
    changes = Catalog(store).changes().to_arrow()
    puts = [row for row in changes.to_pylist() if row["_change_type"] == "put"]
    assert max(Counter((row["name"], row["id"]) for row in puts).values()) == 1
    assert {row["name"] for row in puts} >= on_disk(root).keys()
    ended = [row["_version"] for row in changes.to_pylist() if row["_change_type"] == "delete"]
    assert len(ended) == len(set(ended))
    errors = Catalog(store).snapshot().scan("harvest_errors").to_arrow().column("path").to_pylist()
    assert errors == ([r"bad\xff"] if os.path.exists(os.fsencode(root) + b"/bad\xff") else [])
    assert Catalog(store).snapshot().scan("conflicts").to_arrow().num_rows == 0


@pytest.mark.parametrize("scenario", [first_harvest, second_harvest])
@pytest.mark.parametrize(
    "methods", [("put",), ("put", "get", "get_range", "list", "list_prefixes", "head")], ids=["puts", "calls"]
)
def test_dying_at_any_call_of_the_store_loses_and_doubles_nothing(
    tmp_path: Path, scenario: Callable[[Path], tuple[Path, Callable[[], MemoryStore]]], methods: tuple[str, ...]
) -> None:
    """Before a put and after the one before it are the same to whoever goes on, which depends on what is in the store alone."""
    root, fresh = scenario(tmp_path)
    undisturbed = Failing(fresh(), methods=methods)
    run(undisturbed, root)
    puts = [method for method, _ in undisturbed.calls].count("put")
    assert puts >= 6
    crashes, before = 0, len([*fresh().list("")])
    resumed: set[int] = set()
    for at, after in itertools.product(range(len(undisturbed.calls)), (False, True)):
        store = fresh()
        try:
            run(Failing(store, at=at, after=after, methods=methods), root)
        except SimulatedCrash:
            crashes += 1
            done = len([*store.list("")]) - before
            if done not in resumed:
                resumed.add(done)
                run(store, root)
                assert_nothing_lost_or_doubled(store, root)
    assert crashes > 1.6 * len(undisturbed.calls)
    assert methods != ("put",) or resumed == {*range(puts + 1)}


@pytest.mark.parametrize("scenario", [first_harvest, second_harvest])
@pytest.mark.parametrize("landed", [False, True])
def test_lost_responses_are_overcome_in_the_same_run(
    tmp_path: Path, scenario: Callable[[Path], tuple[Path, Callable[[], MemoryStore]]], landed: bool
) -> None:
    root, fresh = scenario(tmp_path)
    store = fresh()
    run(LostResponses(store, landed=landed, puts=range(0, 40, 2)), root)
    assert_nothing_lost_or_doubled(store, root)


@pytest.mark.parametrize("lines", [0, 1, 3, 6, 9, 12])
def test_a_process_killed_at_any_step_is_resumed(tmp_path: Path, lines: int) -> None:
    root = make_tree(tmp_path / "tree", [b"d%d/f%03d" % (at % 7, at) for at in range(140)])
    command = [sys.executable, "-m", "tests.unit.harvest.crash_child", str(root), str(tmp_path / "catalog")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as child:
        assert child.stdout is not None
        for _ in range(lines):
            child.stdout.readline()
        child.kill()
    catalog = Catalog(tmp_path / "catalog")
    harvest(catalog, root)
    assert_nothing_lost_or_doubled(catalog.store, root)
