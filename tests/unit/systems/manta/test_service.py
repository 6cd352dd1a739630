"""The service's own test of its operations, from the first missing bucket to the last listing: each step by itself on a fresh catalog."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog.systems.manta.errors import (
    BucketAlreadyExists,
    BucketNotFound,
    ContentMd5Error,
    LimitConstraintError,
    ObjectNotFound,
    PreconditionFailedError,
)
from bucketcatalog.systems.manta.operations import Manta
from bucketcatalog.systems.manta.payloads import BUCKET as BUCKET_COLUMNS
from bucketcatalog.systems.manta.payloads import OBJECT as OBJECT_COLUMNS

from ....kit.manta.nodes import MD5, after_a_second
from ....kit.world import BUCKET, ID_1, ID_2, OTHER, OWNER, World, bucket, obj, rows, time_at

SHARKS = [
    {"datacenter": "us-east-1", "manta_storage_id": "1.stor.us-east.example.com"},
    {"datacenter": "us-east-2", "manta_storage_id": "3.stor.us-east.example.com"},
]
NAMED, OBJECT = bucket("testbucket"), obj("testobject")
CREATE = OBJECT | {
    "id": ID_1,
    "content_length": 5,
    "content_md5": MD5,
    "content_type": "text/plain",
    "headers": {},
    "sharks": SHARKS,
    "properties": None,
}
HEADERS = {"m-custom-header1": "customheaderval1", "m-custom-header2": "customheaderval2"}
UPDATE = OBJECT | {"content_type": "text/html", "headers": HEADERS, "properties": None}


class TestBuckets:
    def test_a_missing_bucket_is_not_found(self, node: Manta) -> None:
        with pytest.raises(BucketNotFound):
            node.getbucket(**NAMED)

    def test_creating_a_bucket_answers_the_bucket(self, world: World, node: Manta) -> None:
        found = node.createbucket(**NAMED)
        assert tuple(found) == BUCKET_COLUMNS
        assert (found["owner"], found["name"], found["created"]) == (OWNER, "testbucket", time_at(world.clock.now))
        assert rows(world.snapshot(), "buckets", list(BUCKET_COLUMNS)) == [found]

    def test_a_bucket_that_was_created_is_found(self, node: Manta) -> None:
        created = node.createbucket(**NAMED)
        assert node.getbucket(**NAMED) == created

    def test_creating_a_bucket_twice_says_that_it_exists(self, world: World, node: Manta) -> None:
        created = node.createbucket(**NAMED)
        with pytest.raises(BucketAlreadyExists):
            after_a_second(world, node.createbucket, **NAMED)
        assert node.getbucket(**NAMED) == created

    def test_deleting_a_bucket_answers_one(self, node: Manta) -> None:
        node.createbucket(**NAMED)
        assert node.deletebucket(**NAMED) == 1

    def test_a_bucket_that_was_deleted_is_not_found(self, node: Manta) -> None:
        node.createbucket(**NAMED)
        node.deletebucket(**NAMED)
        with pytest.raises(BucketNotFound):
            node.getbucket(**NAMED)

    def test_deleting_a_bucket_twice_does_not_find_it(self, node: Manta) -> None:
        node.createbucket(**NAMED)
        node.deletebucket(**NAMED)
        with pytest.raises(BucketNotFound):
            node.deletebucket(**NAMED)

    def test_deleting_a_missing_bucket_does_not_find_it(self, node: Manta) -> None:
        with pytest.raises(BucketNotFound):
            node.deletebucket(**NAMED)


class TestObjects:
    def test_a_missing_object_is_not_found(self, node: Manta) -> None:
        with pytest.raises(ObjectNotFound):
            node.getobject(**OBJECT)

    def test_updating_a_missing_object_does_not_find_it(self, node: Manta) -> None:
        with pytest.raises(ObjectNotFound):
            node.updateobject(**UPDATE)

    def test_creating_a_missing_object_on_condition_of_its_tag_does_not_find_it(self, node: Manta) -> None:
        with pytest.raises(ObjectNotFound):
            node.createobject(**CREATE, conditions={"if-match": [ID_2]})
        with pytest.raises(ObjectNotFound):
            node.getobject(**OBJECT)

    def test_creating_a_missing_object_on_condition_of_any_fails_it(self, node: Manta) -> None:
        with pytest.raises(PreconditionFailedError):
            node.createobject(**CREATE, conditions={"if-match": ["*"]})
        with pytest.raises(ObjectNotFound):
            node.getobject(**OBJECT)

    def test_an_object_is_created_on_condition_that_there_is_none(self, node: Manta) -> None:
        assert node.createobject(**CREATE, conditions={"if-none-match": ["*"]})["id"] == ID_1

    def test_an_object_is_not_created_again_on_condition_that_there_is_none(self, node: Manta) -> None:
        node.createobject(**CREATE)
        with pytest.raises(PreconditionFailedError):
            node.createobject(**CREATE | {"id": ID_2}, conditions={"if-none-match": ["*"]})
        assert node.getobject(**OBJECT)["id"] == ID_1

    def test_creating_an_object_answers_its_row(self, world: World, node: Manta) -> None:
        found = node.createobject(**CREATE)
        now = time_at(world.clock.now)
        assert tuple(found) == OBJECT_COLUMNS
        assert found == CREATE | {"created": now, "modified": now, "creator": None, "roles": []}

    def test_overwriting_on_condition_of_another_tag_fails(self, node: Manta) -> None:
        node.createobject(**CREATE)
        with pytest.raises(PreconditionFailedError):
            node.createobject(**CREATE, conditions={"if-match": [ID_2]})

    def test_overwriting_on_condition_of_its_tag_succeeds(self, node: Manta) -> None:
        node.createobject(**CREATE)
        node.createobject(**CREATE | {"id": ID_2}, conditions={"if-match": [ID_1]})
        assert node.getobject(**OBJECT)["id"] == ID_2

    def test_creating_with_an_md5_that_is_none_is_refused(self, node: Manta) -> None:
        with pytest.raises(ContentMd5Error):
            node.createobject(**CREATE | {"content_md5": "not base64"})

    def test_an_object_that_was_created_is_found(self, node: Manta) -> None:
        created = node.createobject(**CREATE)
        found = node.getobject(**OBJECT)
        assert found == created and found["content_type"] == "text/plain" and found["sharks"] == SHARKS

    def test_updating_an_object_answers_its_row(self, world: World, node: Manta) -> None:
        created = node.createobject(**CREATE)
        updated = after_a_second(world, node.updateobject, **UPDATE)
        assert updated == created | {"content_type": "text/html", "headers": HEADERS, "modified": time_at(world.clock.now)}

    def test_an_object_that_was_updated_is_found_so(self, world: World, node: Manta) -> None:
        node.createobject(**CREATE)
        updated = after_a_second(world, node.updateobject, **UPDATE)
        assert node.getobject(**OBJECT) == updated

    def test_an_object_is_found_on_condition_of_its_tag(self, node: Manta) -> None:
        node.createobject(**CREATE)
        assert node.getobject(**OBJECT, conditions={"if-match": [ID_1]})["id"] == ID_1

    def test_an_object_is_not_found_on_condition_of_another_tag(self, node: Manta) -> None:
        node.createobject(**CREATE)
        with pytest.raises(PreconditionFailedError):
            node.getobject(**OBJECT, conditions={"if-match": [ID_2]})

    def test_deleting_an_object_answers_what_it_was(self, node: Manta) -> None:
        node.createobject(**CREATE)
        assert node.deleteobject(**OBJECT) == [OBJECT | {"id": ID_1, "content_length": 5, "shark_count": 2}]

    def test_an_object_that_was_deleted_is_not_found(self, node: Manta) -> None:
        node.createobject(**CREATE)
        node.deleteobject(**OBJECT)
        with pytest.raises(ObjectNotFound):
            node.getobject(**OBJECT)

    def test_deleting_an_object_twice_does_not_find_it(self, node: Manta) -> None:
        node.createobject(**CREATE)
        node.deleteobject(**OBJECT)
        with pytest.raises(ObjectNotFound):
            node.deleteobject(**OBJECT)

    def test_deleting_a_missing_object_does_not_find_it(self, node: Manta) -> None:
        with pytest.raises(ObjectNotFound):
            node.deleteobject(**OBJECT)


class TestListings:
    def test_no_buckets_are_listed_where_there_are_none(self, node: Manta) -> None:
        page = node.listbuckets(owner=OWNER, prefix="testbucket", limit=1000)
        assert (page.rows, page.groups, page.next_marker) == ([], [], None)

    def test_no_buckets_are_listed_of_another_owner(self, node: Manta) -> None:
        node.createbucket(owner=OTHER, name="testbucket")
        assert node.listbuckets(owner=OWNER).rows == []

    def test_a_bucket_is_listed_as_it_is_found(self, node: Manta) -> None:
        created = node.createbucket(**NAMED)
        page = node.listbuckets(owner=OWNER, prefix="testbucket", limit=1000)
        assert (page.rows, page.groups, page.next_marker) == ([created], [], None)

    def test_no_objects_are_listed_where_there_are_none(self, node: Manta) -> None:
        page = node.listobjects(owner=OWNER, bucket_id=BUCKET, prefix="testobject", limit=1000)
        assert (page.rows, page.groups, page.next_marker) == ([], [], None)

    def test_an_object_is_listed_as_it_is_found(self, node: Manta) -> None:
        created = node.createobject(**CREATE)
        page = node.listobjects(owner=OWNER, bucket_id=BUCKET, prefix="testobject", limit=1000)
        assert (page.rows, page.groups, page.next_marker) == ([created], [], None)

    @pytest.mark.parametrize("limit", [0, 1025])
    def test_a_page_of_too_few_or_too_many_is_refused(self, node: Manta, limit: Any) -> None:
        with pytest.raises(LimitConstraintError):
            node.listbuckets(owner=OWNER, limit=limit)
        with pytest.raises(LimitConstraintError):
            node.listobjects(owner=OWNER, bucket_id=BUCKET, limit=limit)
