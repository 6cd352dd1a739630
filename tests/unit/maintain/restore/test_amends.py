"""What a plain writer can do to rows of others, who is told of it, and how what it did is made good again."""

from __future__ import annotations

import pytest

from bucketcatalog import BucketCatalogError

from ....kit.restoring import full, restore
from ....kit.spoiling import newest
from ....kit.world import World, names, obj, rows, time_at


@pytest.fixture
def attacked(world: World) -> World:
    """Alice's two objects, one of which mallory has deleted and one replaced."""
    with world.writer("alice") as alice:
        world.commit(alice, ("put", "objects", [full("deleted", 1), full("replaced", 2)]))
    with world.writer("mallory") as mallory:
        world.commit(mallory, ("delete", "objects", obj("deleted")), ("put", "objects", full("replaced", 3)))
    return world


def test_anybody_ends_and_replaces_rows_of_others_and_is_named_for_it_until_they_are_restored(attacked: World) -> None:
    when = time_at(attacked.clock.now)
    (commit,) = [row for row in rows(attacked.snapshot(), "log") if row["writer"] == "mallory"]
    assert (commit["commit_timestamp"], commit["events"]) == (when, 2)
    events = attacked.catalog().changes(start="alice@0").to_arrow().to_pylist()
    found = [(event["_change_type"], event["name"], event["_writer"], event["_commit_timestamp"]) for event in events]
    assert sorted(found) == [("delete", "deleted", "mallory", when), ("put", "replaced", "mallory", when)]
    assert [(row["name"], row["content_length"]) for row in rows(attacked.snapshot())] == [("replaced", 3)]
    ended = rows(attacked.snapshot(), "deleted_objects")
    assert [(row["name"], row["content_length"], row["deleted_at"]) for row in ended] == [
        ("deleted", 1, when),
        ("replaced", 2, when),
    ]
    restore(attacked, "alice@0")
    assert [(row["name"], row["content_length"]) for row in rows(attacked.snapshot())] == [("deleted", 1), ("replaced", 2)]


def test_what_cannot_be_read_is_set_aside_before_what_was_ended_is_restored(attacked: World) -> None:
    with attacked.writer("mallory") as mallory:
        attacked.commit(mallory, ("put", "objects", full("more", 4)))
    bad = newest(attacked, "mallory")
    attacked.store.delete(bad)
    attacked.store.put(bad, b"anything")
    with pytest.raises(BucketCatalogError, match=bad):
        restore(attacked, "alice@0")
    attacked.catalog().repair(writer="maintainer-1", clock=attacked.clock, set_aside=[bad], dry_run=False)
    assert names(attacked.snapshot()) == ["replaced"], "what mallory has committed before stays"
    restore(attacked, "alice@0")
    assert [(row["name"], row["content_length"]) for row in rows(attacked.snapshot())] == [("deleted", 1), ("replaced", 2)]
