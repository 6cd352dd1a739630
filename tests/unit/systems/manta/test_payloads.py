"""What operations answer goes through JSON and back: the service sends it so, and what it had of a caller comes to the same again."""

from __future__ import annotations

import base64
import datetime
import json
import random
import uuid
from typing import Any

import pytest

from bucketcatalog.console.output import plain
from bucketcatalog.systems.manta.operations import Manta

from ....kit.world import BUCKET, OTHER, OWNER

TEXTS = ["", "a", "é", "\U0001f600", "\uffff", 'q"q', "back\\slash", "new\nline", "a_b%c", " ", "x" * 300]
TOLD = ("created", "modified", "deleted_at")


def through_json(payload: Any) -> Any:
    return json.loads(json.dumps(plain(payload)))


def with_times(payload: dict[str, Any]) -> dict[str, Any]:
    """What JSON says, with its times as times."""
    return {name: datetime.datetime.fromisoformat(value) if name in TOLD else value for name, value in payload.items()}


def given(chance: random.Random) -> dict[str, Any]:
    """What a caller creates an object with."""

    def some(make: Any) -> Any:
        return make() if chance.random() < 0.7 else None

    return {
        "name": f"{chance.choice(TEXTS)}{chance.randrange(10**9)}",
        "id": str(uuid.UUID(int=chance.getrandbits(128))),
        "creator": some(lambda: OTHER),
        "content_length": some(lambda: chance.choice([0, 1, 2**53 + 1, 2**63 - 1])),
        "content_md5": some(lambda: base64.b64encode(chance.randbytes(16)).decode()),
        "content_type": some(lambda: chance.choice(TEXTS)),
        "headers": {chance.choice(TEXTS): chance.choice(TEXTS) for _ in range(chance.randrange(4))},
        "roles": [str(uuid.UUID(int=chance.getrandbits(128))) for _ in range(chance.randrange(3))],
        "sharks": [{"datacenter": f"dc{n}", "manta_storage_id": chance.choice(TEXTS)} for n in range(chance.randrange(4))],
        "properties": some(lambda: chance.choice(['{"a":[1,null]}', "[]", '"text"', "1.5"])),
    }


@pytest.mark.parametrize("seed", range(20))
def test_an_object_comes_back_from_json_and_creates_the_same_again(node: Manta, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        row = given(chance)
        created = node.createobject(owner=OWNER, bucket_id=BUCKET, **row)
        sent = through_json(created)
        assert with_times(sent) == created == node.getobject(owner=OWNER, bucket_id=BUCKET, name=row["name"])
        again = node.createobject(**{name: value for name, value in sent.items() if name not in TOLD} | {"bucket_id": OTHER})
        changed = ("bucket_id", *TOLD)
        assert {n: v for n, v in again.items() if n not in changed} == {n: v for n, v in created.items() if n not in changed}


@pytest.mark.parametrize("seed", range(3))
def test_listings_buckets_and_garbage_come_back_from_json(node: Manta, seed: int) -> None:
    chance = random.Random(seed)
    bucket = node.createbucket(owner=OWNER, name="photos")
    assert with_times(through_json(bucket)) == bucket
    rows = [given(chance) for _ in range(20)]
    for row in rows:
        node.createobject(owner=OWNER, bucket_id=bucket["id"], **row)
    page = node.listobjects(owner=OWNER, bucket_id=bucket["id"], limit=20)
    assert [with_times(row) for row in through_json(page.rows)] == page.rows and len(page.rows) == 20
    page = node.listbuckets(owner=OWNER)
    assert [with_times(row) for row in through_json(page.rows)] == page.rows == [bucket]
    (deleted,) = node.deleteobject(owner=OWNER, bucket_id=bucket["id"], name=rows[0]["name"])
    assert through_json([deleted]) == [deleted]
    (gone,) = node.deletedobjects(older_than="0s")
    assert with_times(through_json(gone)) == gone
