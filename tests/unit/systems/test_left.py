"""Data in the catalog that rows name by paths which nobody can delete: it is left, the rest is collected, and nothing has failed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, StoreUnavailable
from bucketcatalog.cli import run
from bucketcatalog.maintain.gc.collect import Collected
from bucketcatalog.store.faults import Failing
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.wrappers import Wrapped

from ...kit.world import HOUR, World, messages, proto, rows, stored
from .parts import ELSEWHERE, PART, knowing, part


@pytest.fixture
def world() -> World:
    return World()


def ended(world: World, *paths: str) -> None:
    """Parts that somebody without the system has put and deleted two days ago."""
    with world.writer("v", catalog=knowing(world, PART)) as writer:
        world.commit(writer, ("put", "boxes.parts", [part(path) for path in paths]))
        world.commit(writer, ("delete", "boxes.parts", [{"box": "a", "path": path} for path in paths]))
    world.clock.tick(48 * HOUR)


def collected(world: World, **options: Any) -> Collected:
    asked = {"writer": "maintainer-m", "force": True, "dry_run": False, **options}
    return world.catalog().collect(clock=world.clock, **asked)


def test_what_lies_elsewhere_is_left_and_the_rest_is_collected(world: World, install_boxes: Callable[[], None]) -> None:
    world.store.put("x/b.bin", b"mine")
    world.store.put("v/default/data/x", b"data")
    ended(world, "v/default/data/x", *ELSEWHERE)
    install_boxes()
    for dry_run in (True, False, False):
        done = collected(world, dry_run=dry_run)
        there = int(dry_run or done.deleted)
        assert (done.garbage, done.deleted, done.left, done.failed) == (len(ELSEWHERE) + there, there, len(ELSEWHERE), 0)
        assert (done.purged, done.problems) == (there, ()) and len(done.why_left) <= 10
        assert "'../..' lies outside of WRITER/default/data/, and nothing else is deleted as data" in done.why_left
    assert world.store.get("x/b.bin") == b"mine" and not stored(world, "/data/x")
    assert len(rows(world.snapshot(), "deleted_boxes.parts")) == len(ELSEWHERE)


def test_a_deleter_of_the_users_own_can_say_that_what_lies_elsewhere_is_gone(
    world: World, install_boxes: Callable[[], None]
) -> None:
    ended(world, *ELSEWHERE)
    install_boxes()
    assert collected(world).left == len(ELSEWHERE)
    done = collected(world, deleter=lambda batch: [True] * len(batch))
    assert (done.purged, done.left, done.why_left) == (len(ELSEWHERE), 0, ())
    assert rows(world.snapshot(), "deleted_boxes.parts") == []


class Earlier(Wrapped):
    """A store two days ago."""

    def now_us(self, below: str | None = None) -> int:
        return time.time_ns() // 1_000 - 48 * HOUR


def test_gc_ends_well_and_says_why_where_data_lies_elsewhere(
    tmp_path: Path, install_boxes: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    store = Earlier(LocalStore(tmp_path / "c"))
    catalog = Catalog(store)
    catalog.register(messages(proto(PART)).values())
    with catalog.writer("v", clock=store.now_us) as writer:
        for method, row in (("put", part("../..")), ("delete", {"box": "a", "path": "../.."})):
            with writer.transaction() as tx:
                getattr(tx, method)("boxes.parts", row)
    install_boxes()
    for _ in range(2):
        assert run(["gc", str(tmp_path / "c"), "--data", "--force", "--yes"]) == 0
        shown = capsys.readouterr()
        assert "'../..' lies outside of WRITER/default/data/" in shown.out and shown.err == ""


@pytest.mark.parametrize("data_url", ["data/{path}", None])
def test_what_has_no_deleter_is_left_with_the_reason(world: World, data_url: str | None) -> None:
    ended(world, "x", "../x", "")
    for dry_run in (True, False):
        done = collected(world, data_url=data_url, dry_run=dry_run)
        if data_url is None:
            assert (done.left, done.deleted, done.purged) == (3, 0, 0)
            assert done.why_left == ("nothing says how data of 'boxes.parts' is deleted: a data URL or a deleter would",)
        else:
            assert (done.left, done.deleted, done.failed, done.purged) == (2, 1, 0, 1)
            assert done.why_left == ("'' cannot name an object", "'../x' cannot name an object") and not done.problems
    assert len(rows(world.snapshot(), "deleted_boxes.parts")) == done.left


def test_what_the_store_refuses_is_no_matter_of_where_it_lies(world: World, install_boxes: Callable[[], None]) -> None:
    ended(world, "v/default/data/x", "x")
    install_boxes()
    world.store = Failing(world.store, at=0, error=StoreUnavailable("The store is away."), methods=("delete",))
    done = collected(world)
    assert (done.failed, done.left, done.purged, done.problems) == (1, 1, 0, ("The store is away.",))
