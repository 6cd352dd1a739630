"""Objects over their lives: what an overwrite records, an update leaves, a deletion ends, and what becomes of two nodes' on one name."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog.errors import UsageError
from bucketcatalog.systems.manta.errors import ObjectNotFound, PreconditionFailedError
from bucketcatalog.systems.manta.operations import Manta
from bucketcatalog.systems.manta.payloads import OBJECT

from ....kit.manta.nodes import ID_3, ID_4, MD5, after_a_second, node_of, tombstones
from ....kit.world import DAY, ID_1, ID_2, SECOND, World, obj, rows, time_at, version

FULL = obj(
    "a",
    id=ID_1,
    creator=ID_3,
    content_length=5,
    content_md5=MD5,
    content_type="text/plain",
    headers={"m-a": "1", "m-\u00e9": ""},
    roles=[ID_4, ID_3, ID_4],
    sharks=["dc2:s9", "dc1:s1", "dc2:s9"],
    properties='{"k":[1,null]}',
)
BESIDE = {
    "etag": "E",
    "version_id": "v7",
    "storage_class": "cold",
    "checksum_algorithm": "crc32c",
    "checksum": "c",
    "encryption": "e",
    "encryption_key": "k",
    "replication_status": "done",
    "lock_mode": "governance",
    "lock_retain_until": time_at(0),
    "legal_hold": False,
    "tags": {"a": "b", "": "c"},
    "user_metadata": {"u": "m"},
    "parts": 3,
    "file_type": "symlink",
    "link_target": "b",
    "uid": 1,
    "gid": 2,
    "mode": 0o600,
    "inode": (1 << 64) - 1,
    "links": 3,
}
"""What the engine's table has beside the columns of the RFD."""


def live(world: World, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in rows(world.snapshot(), "objects", list(columns))]


def conflicts(world: World) -> list[tuple[Any, ...]]:
    """The kind of each conflict, whose event it is, what it expected and what was there."""
    found = rows(world.snapshot(), "conflicts")
    return [tuple(row[name] for name in ("kind", "table", "writer", "expected", "found")) for row in found]


class Racing:
    """Two nodes, of which the first does not look at what the second commits after it has created the object ``a`` with ``ID_1``."""

    def __init__(self, **options: Any) -> None:
        self.world = World()
        self.other = node_of(self.world, "node-2")
        self.node = node_of(self.world, "node-1", fresh=3600, **options)
        with pytest.raises(ObjectNotFound):
            self.node.getobject(**obj("a"))

    def create(self, node: Manta, id_: str, content_length: int = 1, **more: Any) -> str:
        """Create ``a``, a second later; gives the version."""
        row = obj("a", id=id_, content_length=content_length)
        after_a_second(self.world, node.createobject, **row, **more)
        return version(row, self.world.snapshot())


class TestOverwriting:
    def test_it_leaves_a_tombstone_with_the_whole_row_of_what_was_overwritten(self, world: World, node: Manta) -> None:
        node.createobject(**FULL)
        (old,) = rows(world.snapshot(), "manta_bucket_object")
        after_a_second(world, node.createobject, **obj("a", id=ID_2))
        assert rows(world.snapshot(), "manta_bucket_deleted_object") == [old | {"deleted_at": time_at(world.clock.now)}]

    def test_it_begins_anew_with_nothing_of_what_was_overwritten(self, world: World, node: Manta) -> None:
        node.createobject(**FULL)
        created = after_a_second(world, node.createobject, **obj("a", id=ID_2))
        now = time_at(world.clock.now)
        empty = dict.fromkeys(OBJECT) | {"headers": {}, "roles": [], "sharks": []}
        assert created == empty | obj("a", id=ID_2, created=now, modified=now)
        assert node.getobject(**obj("a")) == created

    def test_each_leaves_a_tombstone_of_its_own(self, world: World, node: Manta) -> None:
        for number, id_ in enumerate([ID_1, ID_2, ID_3, ID_4]):
            after_a_second(world, node.createobject, **obj("a", id=id_, content_length=number))
        assert tombstones(world, "id", "content_length") == [(ID_1, 0), (ID_2, 1), (ID_3, 2)]
        assert live(world, "id") == [(ID_4,)]

    def test_what_was_refused_leaves_no_tombstone(self, world: World, node: Manta) -> None:
        node.createobject(**FULL)
        with pytest.raises(PreconditionFailedError):
            node.createobject(**obj("a", id=ID_2), conditions={"if-none-match": "*"})
        assert tombstones(world, "id") == [] and live(world, "id") == [(ID_1,)]

    def test_a_version_that_was_updated_is_recorded_as_it_was_last(self, world: World, node: Manta) -> None:
        node.createobject(**FULL)
        after_a_second(world, node.updateobject, **obj("a", content_type="new", headers={}))
        modified = time_at(world.clock.now)
        after_a_second(world, node.createobject, **obj("a", id=ID_2))
        assert tombstones(world, "id", "content_type", "modified") == [(ID_1, "new", modified)]


class TestUpdating:
    def test_it_changes_what_describes_the_object_and_its_time_alone(self, world: World, node: Manta) -> None:
        created = node.createobject(**FULL)
        new = {"content_type": "new", "headers": {"n": "1"}, "properties": "[1]"}
        updated = after_a_second(world, node.updateobject, **obj("a"), **new)
        assert updated == created | new | {"modified": time_at(world.clock.now)}
        assert node.getobject(**obj("a")) == updated and tombstones(world, "id") == []

    def test_it_keeps_what_another_program_has_written_beside_the_rfds_columns(self, world: World, node: Manta) -> None:
        world.commit(world.writer("other"), ("put", "objects", FULL | BESIDE | {"content_md5": b"x" * 16}))
        (before,) = rows(world.snapshot())
        assert None not in before.values()
        after_a_second(world, node.updateobject, **obj("a", content_type="new", headers={"n": "1"}))
        (after,) = rows(world.snapshot())
        changed = {"content_type": "new", "headers": [("n", "1")], "properties": None, "modified": time_at(world.clock.now)}
        assert after == before | changed

    def test_it_keeps_what_another_program_has_changed_since_this_node_created_the_object(
        self, world: World, node: Manta
    ) -> None:
        node.createobject(**FULL)
        (before,) = rows(world.snapshot(), columns=[*FULL, "_version"])
        world.commit(world.writer("other"), ("update", "objects", before | {"tags": {"a": "b"}}))
        after_a_second(world, node.updateobject, **obj("a", content_type="new", headers={}))
        assert live(world, "id", "content_type", "tags") == [(ID_1, "new", [("a", "b")])]

    def test_it_forgets_headers_and_properties_that_are_not_given_again(self, world: World, node: Manta) -> None:
        node.createobject(**FULL)
        updated = after_a_second(world, node.updateobject, **obj("a", content_type=None, headers=None))
        assert (updated["content_type"], updated["headers"], updated["properties"]) == (None, {}, None)
        assert node.getobject(**obj("a")) == updated

    def test_its_tag_stays_so_that_conditions_on_it_hold_again_and_again(self, world: World, node: Manta) -> None:
        node.createobject(**FULL)
        for number in range(3):
            payload = obj("a", content_type=str(number), headers={}, conditions={"if-match": ID_1})
            assert after_a_second(world, node.updateobject, **payload)["id"] == ID_1

    def test_conditions_of_time_are_about_the_last_update(self, world: World, node: Manta) -> None:
        created = node.createobject(**FULL)
        after_a_second(world, node.updateobject, **obj("a", content_type="new", headers={}))
        with pytest.raises(PreconditionFailedError):
            node.getobject(**obj("a"), conditions={"if-unmodified-since": created["modified"]})
        assert node.getobject(**obj("a"), conditions={"if-modified-since": created["modified"]})["created"] == created["created"]


class TestIdsThatAreNotUnique:
    def test_objects_of_different_names_may_have_one_id(self, world: World, node: Manta) -> None:
        for name in ("a", "b"):
            node.createobject(**obj(name, id=ID_1, content_type=name))
        after_a_second(world, node.updateobject, **obj("b", content_type="new", headers={}))
        assert live(world, "name", "id", "content_type") == [("a", ID_1, "a"), ("b", ID_1, "new")]
        after_a_second(world, node.deleteobject, **obj("b"), conditions={"if-match": ID_1})
        assert live(world, "name", "id") == [("a", ID_1)] and tombstones(world, "name", "id") == [("b", ID_1)]

    def test_objects_of_different_buckets_may_have_one_id(self, world: World, node: Manta) -> None:
        for bucket_id in (ID_3, ID_4):
            node.createobject(**obj("a", id=ID_1) | {"bucket_id": bucket_id})
        node.deleteobject(**obj("a") | {"bucket_id": ID_3})
        assert live(world, "bucket_id", "id") == [(ID_4, ID_1)]

    def test_tombstones_of_one_name_may_have_one_id(self, world: World, node: Manta) -> None:
        for number in range(3):
            after_a_second(world, node.createobject, **obj("a", id=ID_1, content_length=number))
        after_a_second(world, node.deleteobject, **obj("a"))
        assert tombstones(world, "id", "content_length") == [(ID_1, 0), (ID_1, 1), (ID_1, 2)]
        assert live(world, "id") == []

    def test_an_update_means_what_is_live_of_those_with_its_id(self, world: World, node: Manta) -> None:
        for number in range(2):
            after_a_second(world, node.createobject, **obj("a", id=ID_1, content_length=number, content_type="old"))
        after_a_second(world, node.updateobject, **obj("a", content_type="new", headers={}))
        assert live(world, "content_length", "content_type") == [(1, "new")]
        assert tombstones(world, "content_length", "content_type") == [(0, "old")]


class TestObjectsWithoutContent:
    @pytest.mark.parametrize(("keeps", "recorded"), [(True, [0, 5, 0]), (False, [5])])
    def test_their_overwriting_and_deleting_is_recorded_or_not(self, world: World, keeps: bool, recorded: list[int]) -> None:
        node = node_of(world, zero_byte_tombstones=keeps)
        for number, length in enumerate([0, 5, 0]):
            after_a_second(world, node.createobject, **obj("a", id=[ID_1, ID_2, ID_3][number], content_length=length))
        deleted = after_a_second(world, node.deleteobject, **obj("a"))
        assert [row["content_length"] for row in deleted] == [0]
        assert [length for (length,) in tombstones(world, "content_length")] == recorded
        assert live(world, "id") == [] and conflicts(world) == []

    def test_the_rfd_is_followed_unless_it_is_said_otherwise(self, world: World, node: Manta) -> None:
        node.createobject(**obj("a", id=ID_1, content_length=0))
        node.deleteobject(**obj("a"))
        assert tombstones(world, "id") == [(ID_1,)]

    def test_they_are_forgotten_under_conditions_too(self, world: World) -> None:
        node = node_of(world, zero_byte_tombstones=False)
        node.createobject(**obj("a", id=ID_1, content_length=0), conditions={"if-none-match": "*"})
        after_a_second(world, node.createobject, **obj("a", id=ID_2, content_length=0), conditions={"if-match": ID_1})
        after_a_second(world, node.deleteobject, **obj("a"), conditions={"if-match": ID_2})
        assert tombstones(world, "id") == [] and live(world, "id") == []

    def test_what_another_node_has_put_in_their_place_is_recorded(self) -> None:
        racing = Racing(zero_byte_tombstones=False)
        racing.create(racing.node, ID_1, 0)
        racing.create(racing.other, ID_2, 7)
        after_a_second(racing.world, racing.node.deleteobject, **obj("a"))
        assert live(racing.world, "id") == [] and tombstones(racing.world, "id", "content_length") == [(ID_2, 7)]

    def test_being_updated_forgets_nothing(self, world: World) -> None:
        node = node_of(world, zero_byte_tombstones=False)
        node.createobject(**obj("a", id=ID_1, content_length=0))
        after_a_second(world, node.updateobject, **obj("a", content_type="new", headers={}))
        assert live(world, "id", "content_type") == [(ID_1, "new")]


class TestRaces:
    def test_what_lost_is_a_tombstone_and_a_conflict_where_both_expected_nothing(self) -> None:
        racing = Racing()
        first = racing.create(racing.other, ID_2, conditions={"if-none-match": "*"})
        racing.create(racing.node, ID_1, conditions={"if-none-match": "*"})
        assert live(racing.world, "id") == [(ID_1,)] and tombstones(racing.world, "id") == [(ID_2,)]
        assert conflicts(racing.world) == [("expectation", "objects", "node-1", "absent", first)]

    def test_what_lost_is_a_tombstone_and_a_conflict_where_both_expected_one_version(self) -> None:
        racing = Racing()
        read = racing.create(racing.node, ID_1)
        first = racing.create(racing.other, ID_2, conditions={"if-match": ID_1})
        racing.create(racing.node, ID_3, conditions={"if-match": ID_1})
        assert live(racing.world, "id") == [(ID_3,)] and tombstones(racing.world, "id") == [(ID_1,), (ID_2,)]
        assert conflicts(racing.world) == [("expectation", "objects", "node-1", read, first)]

    def test_overwriting_without_conditions_expects_nothing_and_is_no_conflict(self) -> None:
        racing = Racing()
        racing.create(racing.other, ID_2)
        racing.create(racing.node, ID_1)
        assert live(racing.world, "id") == [(ID_1,)] and tombstones(racing.world, "id") == [(ID_2,)]
        assert conflicts(racing.world) == []

    def test_an_update_of_what_another_node_has_overwritten_changes_what_it_had_read(self) -> None:
        racing = Racing()
        racing.create(racing.node, ID_1)
        racing.create(racing.other, ID_2)
        after_a_second(racing.world, racing.node.updateobject, **obj("a", content_type="new", headers={}))
        assert live(racing.world, "id", "content_type") == [(ID_2, None)]
        assert [found[:3] for found in conflicts(racing.world)] == [("late_update", "objects", "node-1")]

    def test_an_update_of_what_another_node_has_deleted_brings_nothing_back(self) -> None:
        racing = Racing()
        racing.create(racing.node, ID_1)
        after_a_second(racing.world, racing.other.deleteobject, **obj("a"))
        after_a_second(racing.world, racing.node.updateobject, **obj("a", content_type="new", headers={}))
        assert live(racing.world, "id") == [] and tombstones(racing.world, "id") == [(ID_1,)]
        assert [found[:3] for found in conflicts(racing.world)] == [("late_update", "objects", "node-1")]

    def test_an_unconditional_delete_ends_what_another_node_has_put_there_meanwhile(self) -> None:
        racing = Racing()
        read = racing.create(racing.node, ID_1)
        found = racing.create(racing.other, ID_2)
        after_a_second(racing.world, racing.node.deleteobject, **obj("a"))
        assert live(racing.world, "id") == [] and tombstones(racing.world, "id") == [(ID_1,), (ID_2,)]
        assert conflicts(racing.world) == [("expectation", "objects", "node-1", read, found)]

    def test_a_delete_on_condition_of_a_tag_ends_the_version_that_had_it_alone(self) -> None:
        racing = Racing()
        racing.create(racing.node, ID_1)
        racing.create(racing.other, ID_2)
        after_a_second(racing.world, racing.node.deleteobject, **obj("a"), conditions={"if-match": ID_1})
        assert live(racing.world, "id") == [(ID_2,)] and tombstones(racing.world, "id") == [(ID_1,)]

    def test_deleting_what_another_node_has_deleted_is_a_conflict_and_one_tombstone(self) -> None:
        racing = Racing()
        read = racing.create(racing.node, ID_1)
        after_a_second(racing.world, racing.other.deleteobject, **obj("a"))
        assert len(after_a_second(racing.world, racing.node.deleteobject, **obj("a"))) == 1
        assert tombstones(racing.world, "id") == [(ID_1,)]
        assert conflicts(racing.world) == [("expectation", "objects", "node-1", read, "absent")]


def test_times_of_an_object_are_those_of_its_commits_also_a_day_apart(world: World, node: Manta) -> None:
    start = world.clock.now
    node.createobject(**FULL)
    world.clock.tick(DAY - SECOND)
    updated = after_a_second(world, node.updateobject, **obj("a", content_type="new", headers={}))
    assert (updated["created"], updated["modified"]) == (time_at(start), time_at(start + DAY))


def test_an_answer_is_what_is_stored_however_it_was_given(world: World) -> None:
    node, other = node_of(world, fresh=3600), node_of(world, "node-2")
    given = {"creator": ID_1.upper(), "roles": [ID_2.upper()], "properties": {"b": 1, "a": 2}}
    created = node.createobject(**obj("a", id=ID_1.upper()), **given)
    assert (created["id"], created["creator"], created["roles"]) == (ID_1, ID_1, [ID_2])
    assert created == node.getobject(**obj("a")) == other.getobject(**obj("a"))
    updated = node.updateobject(**obj("a"), content_type=None, headers=None, properties={"d": 1, "c": 2})
    assert updated == node.getobject(**obj("a")) == other.getobject(**obj("a"))


@pytest.mark.parametrize(
    ("wrong", "what"),
    [({"catalog": "lake"}, "is no catalog"), ({"writer": "a/b"}, "a/b"), ({"fresh": -1}, "fresh"), ({"fresh": "x"}, "fresh")],
)
def test_a_node_that_cannot_be_is_refused_before_it_is_asked_anything(world: World, wrong: dict[str, Any], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        Manta(**{"catalog": world.catalog(), "writer": "node-1"} | wrong)
