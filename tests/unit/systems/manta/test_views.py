"""The RFD's four tables as views: their columns in its order and of its types, and which rows each has."""

from __future__ import annotations

import pyarrow as pa
import pytest

from bucketcatalog.registry.installed import system
from bucketcatalog.systems.manta import SYSTEM
from bucketcatalog.systems.manta.operations import Manta

from ....kit.manta.nodes import ID_3, MD5, after_a_second
from ....kit.world import ID_1, ID_2, OTHER, OWNER, World, bucket, obj, rows, time_at

UUID = TEXT = JSON = pa.string()
TIME = pa.timestamp("us", "UTC")
BUCKET = {"id": UUID, "name": TEXT, "owner": UUID, "created": TIME}
OBJECT = {
    "id": UUID,
    "name": TEXT,
    "owner": UUID,
    "bucket_id": UUID,
    "created": TIME,
    "modified": TIME,
    "creator": UUID,
    "content_length": pa.int64(),
    "content_md5": pa.binary(),
    "content_type": TEXT,
    "headers": pa.map_(TEXT, TEXT),
    "roles": pa.list_(UUID),
    "sharks": pa.list_(TEXT),
    "properties": JSON,
}
TABLES = {
    "manta_bucket": BUCKET,
    "manta_bucket_object": OBJECT,
    "manta_bucket_deleted_bucket": BUCKET | {"deleted_at": TIME},
    "manta_bucket_deleted_object": OBJECT | {"deleted_at": TIME},
}
NULLABLE = ["creator", "content_length", "content_md5", "content_type", "headers", "roles", "sharks", "properties"]


def test_the_system_is_as_its_author_may_declare_it() -> None:
    SYSTEM.check()


def test_the_system_is_installed_under_its_name() -> None:
    assert system("manta") is SYSTEM


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_those_of_the_rfd_in_its_order_and_of_its_types(world: World, node: Manta, name: str) -> None:
    read = world.snapshot().scan(name)
    for schema in (read.to_arrow().schema, read.schema):
        assert dict(zip(schema.names, schema.types, strict=True)) == TABLES[name]
        assert schema.names == list(TABLES[name])


def test_an_object_with_nothing_said_has_null_where_the_rfd_allows_it_alone(world: World, node: Manta) -> None:
    node.createobject(**obj("a", id=ID_1))
    after_a_second(world, node.createobject, **obj("a", id=ID_1))
    for name in ("manta_bucket_object", "manta_bucket_deleted_object"):
        (row,) = rows(world.snapshot(), name)
        assert [column for column, value in row.items() if value is None] == NULLABLE


def test_values_are_those_of_the_operations_as_the_tables_have_them(world: World, node: Manta) -> None:
    node.createobject(
        **obj("a", id=ID_1, creator=ID_2, content_length=5, content_md5=MD5, content_type="t", headers={"h": "1"}),
        roles=[ID_3, ID_2, ID_3],
        sharks=[{"datacenter": "d", "manta_storage_id": "s"}, "d:s"],
        properties={"b": [1, None], "a": "x"},
    )
    now = time_at(world.clock.now)
    assert rows(world.snapshot(), "manta_bucket_object") == [
        {
            "id": ID_1,
            "name": "a",
            "owner": OWNER,
            "bucket_id": obj("a")["bucket_id"],
            "created": now,
            "modified": now,
            "creator": ID_2,
            "content_length": 5,
            "content_md5": bytes.fromhex("c736398c96d1f6b72b3118657268bff2"),
            "content_type": "t",
            "headers": [("h", "1")],
            "roles": [ID_3, ID_2, ID_3],
            "sharks": ["d:s", "d:s"],
            "properties": '{"a":"x","b":[1,null]}',
        }
    ]


def test_a_bucket_is_in_one_table_while_it_lives_and_in_the_other_afterwards(world: World, node: Manta) -> None:
    photos, videos = (node.createbucket(**bucket(name)) for name in ("photos", "videos"))
    after_a_second(world, node.deletebucket, **bucket("photos"))
    snapshot = world.snapshot()
    assert rows(snapshot, "manta_bucket") == [videos]
    assert rows(snapshot, "manta_bucket_deleted_bucket") == [photos | {"deleted_at": time_at(world.clock.now)}]


def test_an_object_is_in_one_table_while_it_lives_and_in_the_other_once_for_each_end(world: World, node: Manta) -> None:
    ends = []
    for length in (1, 2):
        after_a_second(world, node.createobject, **obj("a", id=ID_1, content_length=length))
        after_a_second(world, node.deleteobject, **obj("a"))
        ends.append((length, time_at(world.clock.now)))
    node.createobject(**obj("a", id=ID_1, content_length=3))
    snapshot = world.snapshot()
    assert [row["content_length"] for row in rows(snapshot, "manta_bucket_object")] == [3]
    found = rows(snapshot, "manta_bucket_deleted_object", ["content_length", "deleted_at"])
    assert sorted((row["content_length"], row["deleted_at"]) for row in found) == ends


def test_rows_of_other_programs_are_in_them_too_and_conditions_narrow_them(world: World, node: Manta) -> None:
    given = [obj(name, id=ID_1, content_length=length) for name, length in [("a", 1), ("b", 2)]]
    given.append(obj("c", id=ID_1) | {"owner": OTHER})
    world.commit(world.writer("other"), ("put", "objects", given))
    snapshot = world.snapshot()
    for where, expected in [({"owner": OWNER}, ["a", "b"]), ({"content_length": 2}, ["b"]), ({"owner": OTHER}, ["c"])]:
        found = snapshot.scan("manta_bucket_object", columns=["name"], where=where).to_arrow()
        assert found["name"].to_pylist() == expected
