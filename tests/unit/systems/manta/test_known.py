"""What a node knows: of others as much as ``fresh`` says, of itself everything that it has committed."""

from __future__ import annotations

import time
from typing import Any

import pytest

from bucketcatalog.store.faults import Counting
from bucketcatalog.systems.manta import known
from bucketcatalog.systems.manta.errors import (
    BucketAlreadyExists,
    BucketNotEmpty,
    BucketNotFound,
    ObjectNotFound,
    PreconditionFailedError,
)
from bucketcatalog.systems.manta.operations import Manta

from ....kit.manta.nodes import ID_3, after_a_second, listed, node_of
from ....kit.world import ID_1, ID_2, OWNER, World, bucket, obj

UPDATE = {"content_type": "new", "headers": {}}


@pytest.fixture
def other(world: World) -> Manta:
    return node_of(world, "node-2")


def looked(world: World, fresh: float) -> Manta:
    """A node that has looked at the world as it is."""
    node = node_of(world, fresh=fresh)
    with pytest.raises(ObjectNotFound):
        node.getobject(**obj("nothing"))
    return node


class TestAlwaysFresh:
    def test_the_next_question_sees_what_another_node_has_committed(self, world: World, other: Manta) -> None:
        node = looked(world, 0)
        created = other.createobject(**obj("a", id=ID_1))
        assert node.getobject(**obj("a")) == created and listed(node) == ["a"]
        updated = after_a_second(world, other.updateobject, **obj("a"), **UPDATE)
        assert node.getobject(**obj("a")) == updated
        after_a_second(world, other.deleteobject, **obj("a"))
        assert listed(node) == []
        with pytest.raises(ObjectNotFound):
            node.getobject(**obj("a"))

    def test_the_next_condition_sees_it_too(self, world: World, other: Manta) -> None:
        node = looked(world, 0)
        other.createobject(**obj("a", id=ID_1))
        with pytest.raises(PreconditionFailedError):
            node.createobject(**obj("a", id=ID_2), conditions={"if-none-match": "*"})
        assert after_a_second(world, node.updateobject, **obj("a"), **UPDATE)["id"] == ID_1
        after_a_second(world, other.createobject, **obj("a", id=ID_3))
        with pytest.raises(PreconditionFailedError):
            node.deleteobject(**obj("a"), conditions={"if-match": ID_1})

    def test_what_another_node_overwrites_is_not_taken_for_what_this_one_has_committed(self, world: World, other: Manta) -> None:
        node = looked(world, 0)
        node.createobject(**obj("a", id=ID_1))
        after_a_second(world, other.createobject, **obj("a", id=ID_2))
        assert node.getobject(**obj("a"))["id"] == ID_2
        after_a_second(world, node.deleteobject, **obj("a"))
        after_a_second(world, other.createobject, **obj("a", id=ID_3))
        assert node.getobject(**obj("a"))["id"] == ID_3

    def test_buckets_are_seen_as_well(self, world: World, other: Manta) -> None:
        node = looked(world, 0)
        created = other.createbucket(**bucket("photos"))
        assert node.getbucket(**bucket("photos")) == created and node.listbuckets(owner=OWNER).rows == [created]
        with pytest.raises(BucketAlreadyExists):
            node.createbucket(**bucket("photos"))
        after_a_second(world, other.deletebucket, **bucket("photos"))
        with pytest.raises(BucketNotFound):
            node.deletebucket(**bucket("photos"))


class TestOneHour:
    def test_what_another_node_commits_is_not_seen(self, world: World, other: Manta) -> None:
        node = looked(world, 3600)
        other.createobject(**obj("a", id=ID_1))
        other.createbucket(**bucket("photos"))
        assert listed(node) == [] and node.listbuckets(owner=OWNER).rows == []
        with pytest.raises(ObjectNotFound):
            node.getobject(**obj("a"))
        with pytest.raises(BucketNotFound):
            node.getbucket(**bucket("photos"))
        with pytest.raises(PreconditionFailedError):
            node.createobject(**obj("a", id=ID_2), conditions={"if-match": "*"})

    def test_what_was_there_at_the_first_look_is_seen(self, world: World, other: Manta) -> None:
        created = other.createobject(**obj("a", id=ID_1))
        node = looked(world, 3600)
        after_a_second(world, other.deleteobject, **obj("a"))
        assert node.getobject(**obj("a")) == created and listed(node) == ["a"]

    def test_what_the_node_has_committed_is_seen_by_questions_and_conditions(self, world: World) -> None:
        node = looked(world, 3600)
        created = node.createobject(**obj("a", id=ID_1, content_length=1, headers={"h": "1"}, sharks=["d:s"]))
        assert node.getobject(**obj("a")) == created
        with pytest.raises(PreconditionFailedError):
            node.createobject(**obj("a", id=ID_2), conditions={"if-none-match": "*"})
        updated = after_a_second(world, node.updateobject, **obj("a"), **UPDATE)
        assert node.getobject(**obj("a")) == updated == looked(world, 0).getobject(**obj("a"))
        assert after_a_second(world, node.createobject, **obj("a", id=ID_2), conditions={"if-match": ID_1})["id"] == ID_2
        assert [row["id"] for row in after_a_second(world, node.deleteobject, **obj("a"))] == [ID_2]
        with pytest.raises(ObjectNotFound):
            node.getobject(**obj("a"))
        assert node.createobject(**obj("a", id=ID_3), conditions={"if-none-match": "*"})["id"] == ID_3

    def test_what_the_node_has_committed_is_seen_by_listings(self, world: World) -> None:
        node = looked(world, 3600)
        for name in "ba":
            node.createobject(**obj(name, id=ID_1))
            assert listed(node)[0] == name
        updated = after_a_second(world, node.updateobject, **obj("a"), **UPDATE)
        page = node.listobjects(owner=OWNER, bucket_id=obj("a")["bucket_id"])
        assert page.rows[0] == updated
        after_a_second(world, node.deleteobject, **obj("a"))
        assert listed(node) == ["b"]

    def test_buckets_that_the_node_has_committed_are_seen(self, world: World) -> None:
        node = looked(world, 3600)
        created = node.createbucket(**bucket("photos"))
        assert node.getbucket(**bucket("photos")) == created and node.listbuckets(owner=OWNER).rows == [created]
        with pytest.raises(BucketAlreadyExists):
            node.createbucket(**bucket("photos"))
        node.createobject(owner=OWNER, bucket_id=created["id"], name="a", id=ID_1)
        with pytest.raises(BucketNotEmpty):
            node.deletebucket(**bucket("photos"))
        node.deleteobject(owner=OWNER, bucket_id=created["id"], name="a")
        assert after_a_second(world, node.deletebucket, **bucket("photos")) == 1
        with pytest.raises(BucketNotFound):
            node.getbucket(**bucket("photos"))

    def test_what_the_node_has_committed_is_seen_also_where_it_is_more_than_is_remembered(
        self, world: World, other: Manta, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(known, "MOST_KEPT", 3)
        node = looked(world, 3600)
        for name in "abcdef":
            created = node.createobject(**obj(name, id=ID_1))
            assert node.getobject(**obj(name)) == created and node.getobject(**obj("a"))["name"] == "a"
        assert listed(node) == list("abcdef")
        other.createobject(**obj("g", id=ID_1))
        assert listed(node) == list("abcdef")

    def test_another_database_is_another_thing(self, world: World) -> None:
        node, elsewhere = looked(world, 3600), node_of(world, "node-2", database="elsewhere")
        node.createobject(**obj("a", id=ID_1))
        elsewhere.createobject(**obj("b", id=ID_2))
        assert (listed(node), listed(elsewhere)) == (["a"], ["b"])


class TestSomeTime:
    def test_what_another_node_commits_is_seen_once_that_time_is_over(self, world: World, other: Manta) -> None:
        node = looked(world, 0.05)
        other.createobject(**obj("a", id=ID_1))
        time.sleep(0.06)
        assert listed(node) == ["a"] and node.getobject(**obj("a"))["id"] == ID_1


class TestLooks:
    def asked(self, fresh: float, call: Any) -> Counting:
        """What is asked of the store for a call of a node that has looked and has created ``a``."""
        world = World.counting()
        store = world.store
        assert isinstance(store, Counting)
        node = looked(world, fresh)
        node.createobject(**obj("a", id=ID_1))
        store.reset()
        call(node)
        return store

    def test_creating_without_conditions_is_one_put_and_no_look(self) -> None:
        assert self.asked(0, lambda node: node.createobject(**obj("b", id=ID_1))).requests == {"put": 1}

    @pytest.mark.parametrize(
        "call",
        [
            lambda node: node.createobject(**obj("a", id=ID_2), conditions={"if-match": ID_1}),
            lambda node: node.createobject(**obj("b", id=ID_2), conditions={"if-none-match": "*"}),
            lambda node: node.updateobject(**obj("a"), **UPDATE),
            lambda node: node.deleteobject(**obj("a")),
        ],
    )
    def test_conditions_on_what_is_known_need_no_look_as_long_as_that_is_fresh(self, call: Any) -> None:
        assert self.asked(3600, call).requests == {"put": 1}
        assert self.asked(0, call).requests.total() > 1

    def test_questions_about_what_is_known_ask_the_store_nothing_as_long_as_that_is_fresh(self) -> None:
        assert self.asked(3600, lambda node: node.getobject(**obj("a"))).requests.total() == 0
        assert self.asked(0, lambda node: node.getobject(**obj("a"))).requests.total() > 0


def test_a_node_that_is_opened_again_knows_what_it_had_committed(world: World) -> None:
    with node_of(world, fresh=3600) as node:
        created = node.createobject(**obj("a", id=ID_1))
    assert node_of(world, fresh=3600).getobject(**obj("a")) == created
