"""Rows put under a name that a system takes: what is written, when it can still be committed, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bucketcatalog import StaleRead
from bucketcatalog.limits import LATENESS_BOUND, MAX_SNAPSHOT_AGE
from bucketcatalog.write.writer import Writer

from ...kit.installing import boxes
from ...kit.world import HOUR, Intervening, World, rows, stored


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in boxes(tmp_path):
        monkeypatch.syspath_prepend(folder)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def writer(world: World) -> Writer:
    return world.writer()


def test_parts_that_may_be_deleted_as_orphans_are_not_committed(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "boxes.boxes", {"name": "a", "grams": 1}))
    transaction = writer.transaction()
    transaction.__enter__().put("packed.a", {"size": 1})
    world.clock.tick(48 * HOUR)
    (orphan,) = world.catalog().orphans(dry_run=False, writer="maintainer-m")
    assert orphan.deleted
    with pytest.raises(StaleRead):
        transaction.__exit__(None, None, None)
    assert "packed.a" not in world.snapshot().tables


def test_a_transaction_is_as_old_as_the_first_thing_that_it_has_written_or_looked_up(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "boxes.boxes", {"name": "a", "label": "L-a", "grams": 1}))

    def half_the_time() -> None:
        world.clock.tick((MAX_SNAPSHOT_AGE - LATENESS_BOUND) // 2 + 1)

    for first, second in [("packed", "boxes"), ("boxes", "packed"), ("packed", "packed")]:
        tx = writer.transaction().__enter__()
        for what in (first, second):
            if what == "packed":
                tx.put("packed.a", {"size": 1})
            else:
                tx.delete("boxes.boxes", {"name": "a", "label": "L-a"})
            half_the_time()
        with pytest.raises(StaleRead):
            tx.__exit__(None, None, None)
    with writer.transaction() as tx:
        tx.put("packed.a", [])
        half_the_time()
        tx.put("packed.a", {"size": 2})
        half_the_time()
    assert rows(world.snapshot(), "packed.a") == [{"size": 2}]
    assert [row["name"] for row in rows(world.snapshot(), "boxes.boxes")] == ["a"]
    assert len(stored(world, ".parquet")) == 5


def test_a_part_counts_from_before_it_was_written(world: World) -> None:
    slow = World(Intervening(world.store, "w/default/data/", lambda: world.clock.tick(MAX_SNAPSHOT_AGE)))
    slow.clock = world.clock
    with pytest.raises(StaleRead), slow.writer().transaction() as tx:
        tx.put("packed.a", {"size": 1})
