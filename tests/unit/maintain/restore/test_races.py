"""What races a restore shows: as a conflict, or because the restore waits for it, or comes too late to be committed."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog import ClockSkew, StaleRead
from bucketcatalog.format.records import Link, Void
from bucketcatalog.limits import MAX_SNAPSHOT_AGE
from bucketcatalog.log.files import LogFiles
from bucketcatalog.query.seen import Seen
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.commit import Committed

from ....kit.restoring import MAINTAINER, full, restore
from ....kit.world import MINUTE, SECOND, Clock, Intervening, World, names, obj, rows


def raced(world: World, past: Committed, *calls: tuple[Any, ...]) -> World:
    """A restore before whose commit, and after whose look, somebody else commits."""

    def act() -> None:
        with world.catalog().writer("racer", clock=Clock(world.clock.now - SECOND // 2)) as racer, racer.transaction() as tx:
            for method, table, given in calls:
                getattr(tx, method)(table, given)

    between = World(Intervening(world.store, f"{MAINTAINER}/", act))
    between.clock = world.clock
    restore(between, past.version)
    return world


def test_what_is_put_meanwhile_is_replaced_and_shows_as_a_conflict(world: World, past: Committed) -> None:
    raced(world, past, ("put", "objects", [full("gone", 5), full("over", 6)]))
    found = world.snapshot().scan("conflicts").to_arrow().to_pylist()
    (gone, over) = sorted(found, key=lambda row: dict(row["key"])["name"])
    assert (gone["kind"], gone["expected"]) == ("expectation", "absent") and gone["found"] != "absent"
    assert over["expected"] != over["found"] and over["writer"] == MAINTAINER
    assert {row["content_length"] for row in rows(world.snapshot()) if row["name"] in ("gone", "over")} == {1, 4}


def test_what_replaces_meanwhile_what_was_to_be_deleted_stays(world: World, past: Committed) -> None:
    raced(world, past, ("put", "objects", [full("fresh", 6), full("another", 5)]))
    assert {"fresh", "another"} <= set(names(world.snapshot()))


def test_a_row_that_is_deleted_before_its_update_shows_as_a_conflict(world: World, past: Committed) -> None:
    raced(world, past, ("delete", "objects", obj("new row")))
    (found,) = world.snapshot().scan("conflicts").to_arrow().to_pylist()
    assert found["kind"] == "late_update" and "new row" not in names(world.snapshot())


def test_late_transactions_show_as_conflicts(world: World, past: Committed) -> None:
    late = Clock(world.clock.now - 10)
    restore(world, past.version)
    with world.catalog().writer("late", clock=late) as w:
        w._database._seen = Seen()  # it has read nothing of what has happened
        with w.transaction() as tx:
            tx.put("objects", full("gone", 5))
    assert tx.committed is not None and tx.committed.commit_time < world.clock.now
    (found,) = world.snapshot().scan("conflicts").to_arrow().to_pylist()
    assert found["expected"] == "absent" and found["found"].startswith(tx.committed.uuid)
    assert [row["content_length"] for row in rows(world.snapshot()) if row["name"] == "gone"] == [1]


def test_a_delete_from_the_future_is_waited_for(world: World, past: Committed) -> None:
    ahead = Clock(world.clock.now + 50 * SECOND)
    with world.catalog().writer("ahead", clock=ahead) as w, w.transaction() as tx:
        tx.delete("objects", obj("gone"))
    world.clock.tick(-20 * SECOND)
    with pytest.raises(ClockSkew):
        restore(world, past.version)
    world.clock.tick(2 * MINUTE)
    restore(world, past.version)
    assert "gone" in names(world.snapshot())


def test_a_voided_transaction_from_the_future_is_not_waited_for(world: World, past: Committed) -> None:
    ahead = Clock(world.clock.now + 50 * SECOND)
    with world.catalog().writer("ahead", clock=ahead) as w, w.transaction() as tx:
        tx.delete("objects", obj("gone"))
    transaction = LogFiles(world.store, "default").transaction(
        "ahead", max(LogFiles(world.store, "default").transactions("ahead"))
    )
    world.clock.tick(-20 * SECOND)
    with world.writer(MAINTAINER) as held:
        held.void([Void("ahead", Link(transaction.revision, transaction.uuid, transaction.digest))])
    restore(world, past.version)
    assert "gone" in names(world.snapshot())


def test_a_comparison_that_took_too_long_is_not_committed(world: World, past: Committed) -> None:
    class Slow(Wrapped):
        def get_range(self, name: str, offset: int, length: int) -> bytes:
            world.clock.tick(MAX_SNAPSHOT_AGE + 1)
            return super().get_range(name, offset, length)

    with world.writer() as w:
        w.checkpoint()
    slow = World(Slow(world.store))
    slow.clock = world.clock
    with pytest.raises(StaleRead):
        restore(slow, past.version)
    assert restore(world, past.version).put == 3
