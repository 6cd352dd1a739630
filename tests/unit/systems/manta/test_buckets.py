"""Buckets over their lives: incarnations and their objects, and which buckets may be deleted."""

from __future__ import annotations

import uuid

import pytest

from bucketcatalog.systems.manta.errors import BucketAlreadyExists, BucketNotEmpty, BucketNotFound
from bucketcatalog.systems.manta.operations import Manta

from ....kit.manta.nodes import after_a_second, listed, node_of
from ....kit.world import ID_1, ID_2, OTHER, OWNER, World, bucket, rows, time_at

NAMED = bucket("photos")


def put(node: Manta, bucket_id: str, name: str, id_: str = ID_1) -> None:
    node.createobject(owner=OWNER, bucket_id=bucket_id, name=name, id=id_)


class TestIncarnations:
    def test_each_has_an_id_of_its_own(self, world: World, node: Manta) -> None:
        ids = []
        for _ in range(4):
            ids.append(after_a_second(world, node.createbucket, **NAMED)["id"])
            after_a_second(world, node.deletebucket, **NAMED)
        assert len({*ids}) == 4 and all(uuid.UUID(id_).version == 5 for id_ in ids)
        found = sorted(rows(world.snapshot(), "manta_bucket_deleted_bucket"), key=lambda row: row["deleted_at"])
        assert [row["id"] for row in found] == ids

    def test_each_is_recorded_with_its_times_when_it_is_deleted(self, world: World, node: Manta) -> None:
        created = after_a_second(world, node.createbucket, **NAMED)
        after_a_second(world, node.deletebucket, **NAMED)
        deleted_at = time_at(world.clock.now)
        again = after_a_second(world, node.createbucket, **NAMED)
        assert rows(world.snapshot(), "manta_bucket_deleted_bucket") == [created | {"deleted_at": deleted_at}]
        assert rows(world.snapshot(), "manta_bucket") == [again]
        assert again["created"] == time_at(world.clock.now) and again["id"] != created["id"]

    def test_objects_of_one_are_none_of_the_next_and_still_listed_by_its_id(self, world: World, node: Manta) -> None:
        first = node.createbucket(**NAMED)["id"]
        put(node, first, "a")
        after_a_second(world, node.deletebucket, **NAMED, only_empty=False)
        second = after_a_second(world, node.createbucket, **NAMED)["id"]
        put(node, second, "b", ID_2)
        assert (listed(node, first), listed(node, second)) == (["a"], ["b"])
        assert node.getobject(owner=OWNER, bucket_id=first, name="a")["id"] == ID_1

    def test_two_nodes_that_create_one_bucket_at_a_time_give_it_one_id(self, world: World) -> None:
        node, other = node_of(world, fresh=3600), node_of(world, "node-2")
        assert node.listbuckets(owner=OWNER).rows == []
        theirs = after_a_second(world, other.createbucket, **NAMED)
        ours = after_a_second(world, node.createbucket, **NAMED)
        assert ours["id"] == theirs["id"] and [row["id"] for row in rows(world.snapshot(), "buckets")] == [ours["id"]]
        (conflict,) = rows(world.snapshot(), "conflicts")
        assert (conflict["table"], conflict["writer"], conflict["expected"]) == ("buckets", "node-1", "absent")

    def test_owners_may_have_buckets_of_one_name(self, node: Manta) -> None:
        first, second = (node.createbucket(owner=owner, name="photos") for owner in (OWNER, OTHER))
        assert first["id"] != second["id"]
        node.deletebucket(owner=OTHER, name="photos")
        assert node.getbucket(**NAMED) == first
        with pytest.raises(BucketNotFound):
            node.getbucket(owner=OTHER, name="photos")

    def test_one_that_another_node_has_created_exists(self, world: World, node: Manta) -> None:
        created = node_of(world, "node-2").createbucket(**NAMED)
        assert node.getbucket(**NAMED) == created
        with pytest.raises(BucketAlreadyExists, match="'photos'"):
            node.createbucket(**NAMED)

    def test_an_owner_in_capitals_is_the_same_owner(self, node: Manta) -> None:
        owner = ID_1
        created = node.createbucket(owner=owner.upper(), name="photos")
        assert created["owner"] == owner and node.getbucket(owner=owner, name="photos") == created
        with pytest.raises(BucketAlreadyExists):
            node.createbucket(owner=owner, name="photos")
        assert node.deletebucket(owner=uuid.UUID(owner).hex, name="photos") == 1


class TestDeleting:
    def test_one_with_objects_is_refused_and_stays(self, node: Manta) -> None:
        created = node.createbucket(**NAMED)
        put(node, created["id"], "a")
        with pytest.raises(BucketNotEmpty, match="'photos'"):
            node.deletebucket(**NAMED)
        assert node.getbucket(**NAMED) == created and listed(node, created["id"]) == ["a"]

    def test_one_with_an_object_of_another_node_is_refused(self, world: World, node: Manta) -> None:
        created = node.createbucket(**NAMED)
        put(node_of(world, "node-2"), created["id"], "a")
        with pytest.raises(BucketNotEmpty):
            node.deletebucket(**NAMED)

    def test_one_whose_objects_are_gone_is_deleted(self, world: World, node: Manta) -> None:
        id_ = node.createbucket(**NAMED)["id"]
        put(node, id_, "a")
        after_a_second(world, node.deleteobject, owner=OWNER, bucket_id=id_, name="a")
        assert node.deletebucket(**NAMED) == 1

    def test_objects_of_another_incarnation_do_not_count(self, world: World, node: Manta) -> None:
        put(node, node.createbucket(**NAMED)["id"], "a")
        after_a_second(world, node.deletebucket, **NAMED, only_empty=False)
        after_a_second(world, node.createbucket, **NAMED)
        assert after_a_second(world, node.deletebucket, **NAMED) == 1

    def test_objects_below_its_id_of_another_owner_do_not_count(self, node: Manta) -> None:
        id_ = node.createbucket(**NAMED)["id"]
        node.createobject(owner=OTHER, bucket_id=id_, name="a", id=ID_1)
        assert node.deletebucket(**NAMED) == 1

    def test_it_may_be_asked_for_whatever_is_in_it(self, world: World, node: Manta) -> None:
        id_ = node.createbucket(**NAMED)["id"]
        for name in ("a", "b"):
            put(node, id_, name)
        assert after_a_second(world, node.deletebucket, **NAMED, only_empty=False) == 1
        assert rows(world.snapshot(), "manta_bucket") == [] and listed(node, id_) == ["a", "b"]
        assert rows(world.snapshot(), "manta_bucket_deleted_object") == []

    @pytest.mark.parametrize("only_empty", [True, False])
    def test_a_missing_one_is_not_found_either_way(self, node: Manta, only_empty: bool) -> None:
        with pytest.raises(BucketNotFound, match="'photos'"):
            node.deletebucket(**NAMED, only_empty=only_empty)

    def test_two_nodes_that_delete_one_bucket_leave_one_record(self, world: World) -> None:
        node, other = node_of(world, fresh=3600), node_of(world, "node-2")
        node.createbucket(**NAMED)
        node.getbucket(**NAMED)
        after_a_second(world, other.deletebucket, **NAMED)
        assert after_a_second(world, node.deletebucket, **NAMED) == 1
        assert len(rows(world.snapshot(), "manta_bucket_deleted_bucket")) == 1
        assert rows(world.snapshot(), "conflicts") == []


def test_objects_are_created_below_an_id_that_no_bucket_has(node: Manta) -> None:
    put(node, ID_2, "a")
    assert listed(node, ID_2) == ["a"]


class TestCreatingLate:
    """A node that looked before others created, deleted and created the bucket, and commits after them."""

    def test_a_bucket_that_is_there_by_then_stays_with_its_objects(self, world: World) -> None:
        late, node = node_of(world, fresh=3600), node_of(world, "node-2")
        late.listbuckets(owner=OWNER)
        first = node.createbucket(**NAMED)
        after_a_second(world, node.deletebucket, **NAMED)
        second = after_a_second(world, node.createbucket, **NAMED)
        put(node, second["id"], "a")
        with pytest.raises(BucketAlreadyExists):
            after_a_second(world, late.createbucket, **NAMED)
        assert first["id"] != second["id"] == node.getbucket(**NAMED)["id"] == late.getbucket(**NAMED)["id"]
        assert listed(late, second["id"]) == ["a"]

    def test_a_bucket_that_was_deleted_by_then_does_not_come_back(self, world: World) -> None:
        late, node = node_of(world, fresh=3600), node_of(world, "node-2")
        late.listbuckets(owner=OWNER)
        first = node.createbucket(**NAMED)
        put(node, first["id"], "a")
        after_a_second(world, node.deletebucket, **NAMED, only_empty=False)
        second = after_a_second(world, late.createbucket, **NAMED)
        assert second["id"] != first["id"] and second["id"] == node.getbucket(**NAMED)["id"]
        assert (listed(node, second["id"]), listed(node, first["id"])) == ([], ["a"])

    def test_several_that_are_late_make_one_bucket(self, world: World) -> None:
        nodes = [node_of(world, f"node-{number}", fresh=3600) for number in range(4)]
        for node in nodes:
            node.listbuckets(owner=OWNER)
        made = [after_a_second(world, node.createbucket, **NAMED) for node in nodes]
        assert {row["id"] for row in made} == {node_of(world, "node-9").getbucket(**NAMED)["id"]}
