"""Garbage: batches by age, the service's batch on several nodes, what is never handed out, and how records are removed."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog import InvalidOption
from bucketcatalog.systems.manta import garbage
from bucketcatalog.systems.manta.errors import BucketNotEmpty, LimitConstraintError
from bucketcatalog.systems.manta.garbage import BATCH
from bucketcatalog.systems.manta.operations import Manta

from ....kit.manta.nodes import ID_3, MD5, after_a_second, node_of, tombstones
from ....kit.pruning import GRACE, checkpoint, keep_time, prune
from ....kit.world import BUCKET, DAY, HOUR, ID_1, ID_2, MINUTE, OTHER, OWNER, SECOND, World, bucket, obj, rows, time_at

NONE: dict[str, Any] = {"batch_id": None, "garbage": []}
PHOTOS = bucket("photos")


def end(world: World, node: Manta, *names: str, bucket_id: str = BUCKET, **more: Any) -> None:
    """Objects that are created and deleted, each a second after the other."""
    for name in names:
        key = {**obj(name), "bucket_id": bucket_id}
        after_a_second(world, node.createobject, **{"id": ID_1, "content_length": 1, **more, **key})
        after_a_second(world, node.deleteobject, **key)


def named(found: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in found]


def records(world: World) -> list[str]:
    """The names of what is recorded as deleted, in the order of its end."""
    return [name for (name,) in tombstones(world, "name")]


def batch_row(world: World) -> dict[str, Any]:
    (row,) = rows(world.snapshot(), "manta.garbage_batch")
    return row


def stale(world: World, name: str = "node-9", **options: Any) -> Manta:
    """A node that goes on with what it sees now, until it commits itself."""
    node = node_of(world, name, fresh=3600, **options)
    node.deletedobjects()
    return node


class TestByAge:
    def test_what_ended_first_comes_first_whatever_it_is_called(self, world: World, node: Manta) -> None:
        for name in ("b", "c", "a"):
            node.createobject(**obj(name, id=ID_1))
        for name in ("c", "a", "b"):
            after_a_second(world, node.deleteobject, **obj(name))
        world.clock.tick()
        assert named(node.deletedobjects(older_than="0s")) == ["c", "a", "b"]
        assert [named(node.deletedobjects(older_than="0s", limit=limit)) for limit in (1, 2)] == [["c"], ["c", "a"]]

    def test_a_record_is_the_object_as_it_was_and_when_it_ended(self, world: World, node: Manta) -> None:
        created = node.createobject(**obj("a", id=ID_1, content_length=5, content_md5=MD5, headers={"h": "1"}, sharks=["d:s"]))
        after_a_second(world, node.deleteobject, **obj("a"))
        deleted_at = time_at(world.clock.now)
        world.clock.tick()
        assert node.deletedobjects(older_than="0s") == [created | {"deleted_at": deleted_at}]

    def test_overwriting_leaves_a_record_as_deleting_does(self, world: World, node: Manta) -> None:
        for id_ in (ID_1, ID_2, ID_3):
            after_a_second(world, node.createobject, **obj("a", id=id_))
        world.clock.tick()
        assert [row["id"] for row in node.deletedobjects(older_than="0s")] == [ID_1, ID_2]

    def test_what_ended_as_long_ago_as_is_asked_for_is_too_young_by_nothing(self, world: World, node: Manta) -> None:
        end(world, node, "a")
        world.clock.tick(HOUR)
        assert node.deletedobjects(older_than="1h") == []
        world.clock.tick(1)
        assert named(node.deletedobjects(older_than="1h")) == ["a"] and node.deletedobjects(older_than="61m") == []

    def test_a_day_is_the_age_unless_another_is_given(self, world: World, node: Manta) -> None:
        end(world, node, "a")
        node.createbucket(**PHOTOS)
        after_a_second(world, node.deletebucket, **PHOTOS)
        world.clock.tick(DAY - MINUTE)
        assert node.deletedobjects() == node.deletedbuckets() == []
        world.clock.tick(2 * MINUTE)
        assert named(node.deletedobjects()) == ["a"] and named(node.deletedbuckets()) == ["photos"]

    def test_a_hundred_objects_and_25_buckets_are_a_batch_unless_it_is_said_otherwise(self, world: World, node: Manta) -> None:
        writer = world.writer("other")
        objects, buckets = ([make(f"{number:03}") for number in range(130)] for make in (obj, bucket))
        for method in ("put", "delete"):
            world.commit(writer, (method, "objects", objects), (method, "buckets", buckets))
        world.clock.tick()
        assert [len(node.deletedobjects(older_than="0s")), len(node.deletedbuckets(older_than="0s"))] == [100, 25]
        assert [len(node.deletedobjects(older_than="0s", limit=n)) for n in (1, 130, 1024)] == [1, 130, 130]
        assert [len(node.deletedbuckets(older_than="0s", limit=n)) for n in (1, 130, 1024)] == [1, 130, 130]

    @pytest.mark.parametrize("limit", [0, -1, 1025, True, "7", None, 1.0])
    def test_a_limit_that_no_page_has_is_refused(self, node: Manta, limit: Any) -> None:
        for ask in (node.deletedobjects, node.deletedbuckets):
            with pytest.raises(LimitConstraintError):
                ask(limit=limit)

    @pytest.mark.parametrize("age", ["yesterday", "-1h"])
    def test_what_is_no_age_is_refused(self, world: World, node: Manta, age: str) -> None:
        for ask in (node.deletedobjects, node.deletedbuckets):
            with pytest.raises(InvalidOption):
                ask(older_than=age)
        with pytest.raises(InvalidOption):
            node_of(world, "node-2", grace=age)

    def test_deleted_buckets_come_in_the_order_of_their_end_with_what_they_were(self, world: World, node: Manta) -> None:
        made = {name: node.createbucket(**bucket(name)) for name in ("aaa", "bbb")}
        ends = {}
        for name in ("bbb", "aaa"):
            after_a_second(world, node.deletebucket, **bucket(name))
            ends[name] = time_at(world.clock.now)
        world.clock.tick()
        assert node.deletedbuckets(older_than="0s") == [made[name] | {"deleted_at": ends[name]} for name in ("bbb", "aaa")]

    @pytest.mark.parametrize(("keeps", "recorded"), [(True, ["a", "b"]), (False, ["b"])])
    def test_objects_without_content_are_garbage_where_they_are_recorded(
        self, world: World, keeps: bool, recorded: list[str]
    ) -> None:
        node = node_of(world, zero_byte_tombstones=keeps)
        end(world, node, "a", content_length=0)
        end(world, node, "b", content_length=7)
        world.clock.tick(DAY + SECOND)
        assert named(node.deletedobjects()) == named(node.getgcbatch()["garbage"]) == recorded


class TestServiceBatch:
    """The service's own cases, and what several nodes make of them."""

    @pytest.fixture
    def other(self, world: World) -> Manta:
        return node_of(world, "node-2")

    @pytest.fixture
    def first(self, world: World, node: Manta) -> dict[str, Any]:
        """A batch of two, of which another was deleted too late."""
        end(world, node, "b", "a")
        world.clock.tick(DAY + SECOND)
        end(world, node, "young")
        return node.getgcbatch()

    def test_where_nothing_is_old_enough_there_is_none(self, world: World, node: Manta) -> None:
        assert node.getgcbatch() == NONE
        end(world, node, "a")
        world.clock.tick(DAY)
        assert node.getgcbatch() == NONE and rows(world.snapshot(), "manta.garbage_batch") == []
        world.clock.tick()
        assert named(node.getgcbatch()["garbage"]) == ["a"]

    def test_it_has_an_id_and_what_ended_before_the_grace_period_in_order(self, node: Manta, first: dict[str, Any]) -> None:
        assert isinstance(first["batch_id"], str) and named(first["garbage"]) == ["b", "a"]
        assert first["garbage"] == node.deletedobjects(limit=2)

    def test_its_row_says_where_it_was_put_together_and_how_large_it_is(self, world: World, first: dict[str, Any]) -> None:
        row = batch_row(world)
        assert (row["of"], row["id"], row["records"]) == ("objects", first["batch_id"], 2)
        then = world.snapshot(version=row["cut"])
        assert len(rows(then, "deleted_objects")) == 3 and "manta.garbage_batch" in then.definitions

    def test_it_is_the_same_when_it_is_asked_for_again_also_of_another_node(
        self, world: World, node: Manta, other: Manta, first: dict[str, Any]
    ) -> None:
        assert node.getgcbatch() == other.getgcbatch() == node_of(world, "node-3").getgcbatch() == first

    def test_it_is_the_same_after_more_was_deleted_removed_and_created(
        self, world: World, node: Manta, other: Manta, first: dict[str, Any]
    ) -> None:
        end(world, other, "c")
        world.clock.tick(2 * DAY)
        assert other.removedeletedobject(**obj("young"), id=ID_1) == other.removedeletedobject(**obj("a"), id=ID_1) == 1
        after_a_second(world, other.createobject, **obj("b", id=ID_2))
        assert node.getgcbatch() == other.getgcbatch() == node_of(world, "node-3").getgcbatch() == first

    @pytest.mark.parametrize("wrong", [ID_1, "", "no uuid", None])
    def test_deleting_another_id_answers_ok_and_the_batch_stays(
        self, world: World, node: Manta, first: dict[str, Any], wrong: Any
    ) -> None:
        assert node.deletegcbatch(batch_id=wrong) == "ok"
        assert records(world) == ["b", "a", "young"] and node.getgcbatch() == first

    def test_deleting_where_there_is_none_answers_ok(self, world: World, node: Manta) -> None:
        end(world, node, "a")
        assert node.deletegcbatch(batch_id=ID_1) == "ok" and records(world) == ["a"]

    @pytest.mark.parametrize("who", ["node-1", "node-2"])
    def test_deleting_its_id_removes_its_records_and_no_others_whoever_does(
        self, world: World, node: Manta, other: Manta, first: dict[str, Any], who: str
    ) -> None:
        by = {"node-1": node, "node-2": other}[who]
        assert after_a_second(world, by.deletegcbatch, batch_id=first["batch_id"]) == "ok"
        assert records(world) == ["young"] and rows(world.snapshot(), "manta.garbage_batch") == []
        assert node.getgcbatch() == other.getgcbatch() == NONE

    def test_after_it_was_deleted_the_next_has_another_id(self, world: World, node: Manta, first: dict[str, Any]) -> None:
        node.deletegcbatch(batch_id=first["batch_id"])
        world.clock.tick(2 * DAY)
        second = node.getgcbatch()
        assert named(second["garbage"]) == ["young"] and second["batch_id"] not in (None, first["batch_id"])
        assert node.deletegcbatch(batch_id=first["batch_id"]) == "ok" and node.getgcbatch() == second

    def test_what_lives_under_a_name_of_the_batch_stays(self, world: World, node: Manta, first: dict[str, Any]) -> None:
        again = after_a_second(world, node.createobject, **obj("a", id=ID_1))
        node.deletegcbatch(batch_id=first["batch_id"])
        assert node.getobject(**obj("a")) == again and records(world) == ["young"]

    def test_it_has_a_thousand_records_at_most_and_the_next_the_rest(self, world: World, node: Manta) -> None:
        given = [obj(f"{number:04}") for number in range(BATCH + 1)]
        writer = world.writer("other")
        for method in ("put", "delete"):
            world.commit(writer, (method, "objects", given))
        world.clock.tick(DAY + SECOND)
        batch = node.getgcbatch()
        assert named(batch["garbage"]) == [row["name"] for row in given[:1000]] and batch_row(world)["records"] == 1000
        node.deletegcbatch(batch_id=batch["batch_id"])
        assert named(node.getgcbatch()["garbage"]) == records(world) == ["1000"]

    @pytest.mark.parametrize("most", [1, 1_000_000])
    def test_it_is_as_large_as_it_was_made_also_where_a_node_makes_others(
        self, world: World, other: Manta, first: dict[str, Any], monkeypatch: pytest.MonkeyPatch, most: int
    ) -> None:
        monkeypatch.setattr(garbage, "BATCH", most)
        assert other.getgcbatch() == first

    def test_nodes_of_different_grace_share_a_batch(self, world: World, node: Manta) -> None:
        hasty = node_of(world, "node-2", grace="0s")
        end(world, node, "a")
        world.clock.tick()
        assert node.getgcbatch() == NONE
        batch = hasty.getgcbatch()
        assert named(batch["garbage"]) == ["a"] and node.getgcbatch() == batch


class TestRacing:
    def test_of_two_that_are_made_at_once_the_later_counts_and_the_id_of_the_other_deletes_nothing(
        self, world: World, node: Manta
    ) -> None:
        end(world, node, "a", "b")
        world.clock.tick(DAY + SECOND)
        behind = stale(world)
        first = node.getgcbatch()
        end(world, node, "c")
        second = after_a_second(world, behind.getgcbatch)
        assert first["garbage"] == second["garbage"] and first["batch_id"] != second["batch_id"] == batch_row(world)["id"]
        (conflict,) = rows(world.snapshot(), "conflicts")
        assert (conflict["table"], conflict["writer"], conflict["expected"]) == ("manta.garbage_batch", "node-9", "absent")
        for by in (node, behind, node_of(world, "node-3")):
            assert by.deletegcbatch(batch_id=first["batch_id"]) == "ok" and records(world) == ["a", "b", "c"]
            assert by.getgcbatch() == second
        node.deletegcbatch(batch_id=second["batch_id"])
        assert records(world) == ["c"]

    def test_two_that_delete_one_at_once_remove_it_once(self, world: World, node: Manta) -> None:
        end(world, node, "a")
        world.clock.tick(DAY + SECOND)
        id_ = node.getgcbatch()["batch_id"]
        behind = stale(world)
        end(world, node, "b")
        assert [after_a_second(world, by.deletegcbatch, batch_id=id_) for by in (node, behind)] == ["ok", "ok"]
        assert records(world) == ["b"] and rows(world.snapshot(), "manta.garbage_batch") == []
        assert rows(world.snapshot(), "conflicts") == [] and node.getgcbatch() == behind.getgcbatch() == NONE

    def test_deleting_one_late_leaves_the_batch_that_was_made_after_it(self, world: World, node: Manta) -> None:
        end(world, node, "a")
        world.clock.tick(DAY + SECOND)
        id_ = node.getgcbatch()["batch_id"]
        behind = stale(world)
        end(world, node, "b")
        node.deletegcbatch(batch_id=id_)
        world.clock.tick(20 * MINUTE)
        next_ = node_of(world, "node-2", grace="0s").getgcbatch()
        assert after_a_second(world, behind.deletegcbatch, batch_id=id_) == "ok"
        assert records(world) == named(next_["garbage"]) == ["b"] and node.getgcbatch() == next_


class TestPruned:
    def test_a_batch_whose_cut_was_pruned_is_made_anew(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        keep_time(world, monkeypatch)
        node = node_of(world)
        end(world, node, "a")
        world.clock.tick(DAY + SECOND)
        first = node.getgcbatch()
        end(world, node, "b")
        world.clock.tick(HOUR)
        checkpoint(world)
        world.clock.tick(2 * DAY)
        node.close()
        prune(world)
        world.clock.tick(GRACE)
        assert prune(world).files

        fresh = node_of(world, "node-2")
        assert fresh.deletegcbatch(batch_id=first["batch_id"]) == "ok" and records(world) == ["a", "b"]
        second = fresh.getgcbatch()
        assert named(second["garbage"]) == ["a", "b"] and second["batch_id"] != first["batch_id"]
        assert second == node_of(world, "node-3").getgcbatch() and batch_row(world)["id"] == second["batch_id"]
        fresh.deletegcbatch(batch_id=second["batch_id"])
        assert records(world) == []


class TestTags:
    @staticmethod
    def tagged(world: World, node: Manta) -> None:
        """Of five objects that have ended, one had before the tag, and one had not begun."""
        end(world, node, "before")
        for name in ("kept", "overwritten", "updated"):
            after_a_second(world, node.createobject, **obj(name, id=ID_1))
        world.clock.tick()
        world.writer("maintainer-1").tag("x")
        after_a_second(world, node.updateobject, **obj("updated", content_type="new", headers={}))
        after_a_second(world, node.createobject, **obj("overwritten", id=ID_2))
        for name in ("kept", "overwritten", "updated"):
            after_a_second(world, node.deleteobject, **obj(name))
        end(world, node, "after")
        world.clock.tick(DAY + SECOND)

    def test_what_lives_at_a_tag_is_not_handed_out_and_everything_else_is(self, world: World, node: Manta) -> None:
        self.tagged(world, node)
        found = [(row["name"], row["id"]) for row in node.deletedobjects()]
        assert found == [("before", ID_1), ("overwritten", ID_2), ("after", ID_1)]
        batch = node.getgcbatch()
        assert batch["garbage"] == node.deletedobjects()
        assert node_of(world, "node-2").getgcbatch() == batch
        node.deletegcbatch(batch_id=batch["batch_id"])
        assert tombstones(world, "name", "id") == [("overwritten", ID_1), ("kept", ID_1), ("updated", ID_1)]
        assert node.getgcbatch() == NONE

    def test_once_the_tag_is_dropped_it_is(self, world: World, node: Manta) -> None:
        self.tagged(world, node)
        world.writer("maintainer-1").drop_tag("x")
        assert len(node.deletedobjects()) == len(node.getgcbatch()["garbage"]) == len(records(world)) == 6

    def test_every_tag_counts(self, world: World, node: Manta) -> None:
        tagger = world.writer("maintainer-1")
        for name in ("a", "b", "c"):
            after_a_second(world, node.createobject, **obj(name, id=ID_1))
            world.clock.tick()
            tagger.tag(name)
            after_a_second(world, node.deleteobject, **obj(name))
        end(world, node, "d")
        world.clock.tick(DAY + SECOND)
        assert named(node.deletedobjects()) == ["d"]
        tagger.drop_tag("b")
        assert named(node.deletedobjects()) == ["b", "d"]

    @pytest.mark.parametrize("limit", [1, 2, 3])
    def test_more_records_than_a_page_that_a_tag_holds_in_front_hide_none(self, world: World, node: Manta, limit: int) -> None:
        given = [obj(f"{number:03}") for number in range(70)]
        writer = world.writer("other")
        world.commit(writer, ("put", "objects", given))
        world.writer("maintainer-1").tag("x")
        world.commit(writer, ("delete", "objects", given))
        end(world, node, "y", "z")
        world.clock.tick(DAY + SECOND)
        assert named(node.deletedobjects(limit=limit)) == ["y", "z"][:limit]


class TestOthers:
    def test_objects_of_an_external_bucket_are_not_handed_out_while_it_lives_and_afterwards(
        self, world: World, node: Manta
    ) -> None:
        given = bucket("photos", id=ID_3, external=True, source="s3://photos")
        writer = world.writer("other")
        world.commit(writer, ("put", "buckets", given))
        end(world, node, "theirs", bucket_id=ID_3)
        end(world, node, "ours")
        world.clock.tick(DAY + SECOND)
        assert named(node.deletedobjects()) == named(node.getgcbatch()["garbage"]) == ["ours"]
        world.commit(writer, ("delete", "buckets", bucket("photos")))
        end(world, node, "theirs too", bucket_id=ID_3)
        world.clock.tick(DAY + SECOND)
        assert named(node.deletedobjects()) == ["ours"]

    def test_the_record_of_a_bucket_that_lost_a_create_race_is_handed_out_once_none_lives_with_its_id(self, world: World) -> None:
        node, behind = node_of(world), stale(world)
        made = [after_a_second(world, by.createbucket, **PHOTOS)["id"] for by in (node, behind)]
        node.createbucket(**bucket("gone"))
        after_a_second(world, node.deletebucket, **bucket("gone"))
        world.clock.tick()
        assert made[0] == made[1] and len(rows(world.snapshot(), "deleted_buckets")) == 2
        assert [named(node.deletedbuckets(older_than="0s", limit=limit)) for limit in (1, 2)] == [["gone"], ["gone"]]
        node.deletebucket(**PHOTOS)
        world.clock.tick()
        found = node.deletedbuckets(older_than="0s")
        assert sorted((row["name"], row["id"]) for row in found if row["name"] == "photos") == [("photos", made[0])] * 2
        assert node.removedeletedbucket(**PHOTOS, id=made[0]) == 2

    def test_a_bucket_that_lives_again_holds_no_record_of_its_past(self, world: World, node: Manta) -> None:
        first = node.createbucket(**PHOTOS)["id"]
        after_a_second(world, node.deletebucket, **PHOTOS)
        second = after_a_second(world, node.createbucket, **PHOTOS)["id"]
        world.clock.tick()
        assert [row["id"] for row in node.deletedbuckets(older_than="0s")] == [first] != [second]


class TestRemoving:
    def test_all_records_of_a_name_and_id_are_removed_and_no_others(self, world: World, node: Manta) -> None:
        for id_ in (ID_1, ID_2, ID_1):
            end(world, node, "a", id=id_)
        end(world, node, "b")
        end(world, node, "a", bucket_id=ID_3)
        live = after_a_second(world, node.createobject, **obj("a", id=ID_1))
        assert node.removedeletedobject(**obj("a"), id=ID_1) == 2
        left = [("a", BUCKET, ID_2), ("b", BUCKET, ID_1), ("a", ID_3, ID_1)]
        assert tombstones(world, "name", "bucket_id", "id") == left and node.getobject(**obj("a")) == live
        assert node.removedeletedobject(**obj("a"), id=ID_1) == 0 and tombstones(world, "name", "bucket_id", "id") == left

    @pytest.mark.parametrize("change", [{"owner": OTHER}, {"bucket_id": ID_3}, {"name": "aa"}, {"id": ID_2}])
    def test_nothing_is_removed_by_another_key_or_id(self, world: World, node: Manta, change: dict[str, str]) -> None:
        end(world, node, "a")
        assert node.removedeletedobject(**{**obj("a", id=ID_1), **change}) == 0 and records(world) == ["a"]

    def test_an_object_that_lives_is_not_removed(self, world: World, node: Manta) -> None:
        created = node.createobject(**obj("a", id=ID_1))
        assert node.removedeletedobject(**obj("a"), id=ID_1) == 0 and node.getobject(**obj("a")) == created

    def test_the_record_of_a_bucket_goes_after_its_objects_and_their_records(self, world: World, node: Manta) -> None:
        id_ = node.createbucket(**PHOTOS)["id"]
        key = {"owner": OWNER, "bucket_id": id_, "name": "a"}
        node.createobject(**key, id=ID_1)
        end(world, node, "elsewhere")
        after_a_second(world, node.deletebucket, **PHOTOS, only_empty=False)
        remove = {**PHOTOS, "id": id_}
        with pytest.raises(BucketNotEmpty, match="'photos'"):
            after_a_second(world, node.removedeletedbucket, **remove)
        after_a_second(world, node.deleteobject, **key)
        with pytest.raises(BucketNotEmpty):
            node.removedeletedbucket(**remove)
        assert [row["id"] for row in rows(world.snapshot(), "deleted_buckets")] == [id_]
        assert node.removedeletedobject(**key, id=ID_1) == 1
        assert after_a_second(world, node.removedeletedbucket, **remove) == 1
        assert rows(world.snapshot(), "deleted_buckets") == [] and node.removedeletedbucket(**remove) == 0

    def test_a_bucket_is_removed_by_its_id_alone_of_all_that_had_its_name(self, world: World, node: Manta) -> None:
        ids = []
        for _ in range(3):
            ids.append(after_a_second(world, node.createbucket, **PHOTOS)["id"])
            after_a_second(world, node.deletebucket, **PHOTOS)
        live = after_a_second(world, node.createbucket, **PHOTOS)
        assert node.removedeletedbucket(**PHOTOS, id=ids[1]) == 1
        assert {row["id"] for row in rows(world.snapshot(), "deleted_buckets")} == {ids[0], ids[2]}
        assert node.removedeletedbucket(owner=OTHER, name="photos", id=ids[0]) == 0
        place = {"owner": OWNER, "bucket_id": live["id"], "name": "a"}
        after_a_second(world, node.createobject, **place, id=ID_1)
        assert node.removedeletedbucket(**PHOTOS, id=live["id"]) == 0 and node.getbucket(**PHOTOS) == live
