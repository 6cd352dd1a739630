"""From a bucket that was deleted to its last record, and what is in use as long as something live says so."""

from __future__ import annotations

import pytest

from bucketcatalog.systems.manta.errors import BucketNotEmpty

from ....kit.collecting import reaped
from ....kit.manta.nodes import after_a_second, listed, node_of
from ....kit.world import BUCKET, DAY, ID_1, ID_2, OTHER, OWNER, World, bucket, rows


def test_a_deleted_bucket_goes_after_its_objects_were_reaped_told_and_removed(world: World) -> None:
    """The RFD's condition: the storage of a bucket's objects is released before the bucket's record is discarded."""
    node = node_of(world)
    deleted = node.createbucket(**bucket("photos"))
    place = {"owner": OWNER, "bucket_id": deleted["id"], "name": "a"}
    after_a_second(world, node.createobject, **place, id=ID_1, content_length=7, sharks=["dc1:1.stor"])
    after_a_second(world, node.deletebucket, **bucket("photos"), only_empty=False)
    assert listed(node, deleted["id"]) == ["a"], "kept for the grace period, and listed by the bucket's id"

    def remove() -> int:
        return node.removedeletedbucket(**bucket("photos"), id=deleted["id"])

    with pytest.raises(BucketNotEmpty):
        remove()
    world.clock.tick(2 * DAY)
    assert reaped(world).rows["objects"] == 1 and listed(node, deleted["id"]) == []
    with pytest.raises(BucketNotEmpty):
        remove()
    assert [row["name"] for row in node.deletedbuckets()] == ["photos"] and node.getgcbatch()["garbage"] == []
    world.clock.tick(2 * DAY)
    batch = node.getgcbatch()
    assert [(row["name"], row["sharks"][0]["manta_storage_id"]) for row in batch["garbage"]] == [("a", "1.stor")]
    assert node.deletegcbatch(batch_id=batch["batch_id"]) == "ok" and remove() == 1
    assert (node.deletedbuckets(), node.deletedobjects()) == ([], [])


def test_of_two_live_buckets_with_one_id_no_object_is_reaped_before_both_have_gone(world: World) -> None:
    """An import can bring such: whose an object is follows from its bucket's id alone."""
    two = [bucket("photos") | {"id": ID_1}, {"owner": OTHER, "name": "films", "id": ID_1}]
    world.commit(world.writer(), ("put", "buckets", two))
    node = node_of(world)
    for owner in (OWNER, OTHER):
        after_a_second(world, node.createobject, owner=owner, bucket_id=ID_1, name="a", id=ID_1)
    for name, left in ((two[0], 2), (two[1], 0)):
        after_a_second(world, node.deletebucket, owner=name["owner"], name=name["name"], only_empty=False)
        world.clock.tick(2 * DAY)
        reaped(world)
        assert len(rows(world.snapshot())) == left


def test_no_record_of_an_object_that_is_live_by_its_id_is_handed_out_before_that_has_gone(world: World) -> None:
    """A client that did not hear the answer creates its object again: what was overwritten is that object."""
    node = node_of(world, grace="0s")
    place = {"owner": OWNER, "bucket_id": BUCKET}
    for name, ids in (("again", (ID_1, ID_1, ID_1)), ("other", (ID_1, ID_2)), ("gone", (ID_1,))):
        for id_ in ids:
            after_a_second(world, node.createobject, **place, name=name, id=id_, content_length=7)
    after_a_second(world, node.deleteobject, **place, name="gone")

    def told() -> list[tuple[str, str]]:
        found = node.deletedobjects(older_than="0s")
        return [(row["name"], row["id"]) for row in found]

    assert told() == [("other", ID_1), ("gone", ID_1)]
    batch = node.getgcbatch()
    assert [(row["name"], row["id"]) for row in batch["garbage"]] == told()
    assert node.deletegcbatch(batch_id=batch["batch_id"]) == "ok" and node.getgcbatch()["garbage"] == []
    after_a_second(world, node.deleteobject, **place, name="again")
    assert told() == [("again", ID_1)] * 3
