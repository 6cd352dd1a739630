"""What operations take: names, limits, delimiters, MD5s, copies and uuids, to the last one that is taken and the first that is not."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from bucketcatalog import InvalidOption
from bucketcatalog.systems.manta.errors import (
    ContentMd5Error,
    InvalidBucketNameError,
    InvalidBucketObjectNameError,
    LimitConstraintError,
    MantaError,
)
from bucketcatalog.systems.manta.names import (
    bucket_name,
    md5_bytes,
    md5_text,
    object_name,
    page_delimiter,
    page_limit,
    shark_pairs,
    shark_texts,
    uuid_text,
)
from bucketcatalog.systems.manta.operations import Manta

from ....kit.hostile import HOSTILE, TAKEN
from ....kit.manta.nodes import MD5, events
from ....kit.world import BUCKET, ID_1, OWNER, World, obj

TAKEN_NAMES = [case.name for case in HOSTILE if case.as_name == TAKEN and case.name and "\0" not in case.name]
PAIR = {"datacenter": "us-east-1", "manta_storage_id": "1.stor.example.com"}

BUCKETS = {
    "of three characters": "abc",
    "of digits": "123",
    "of letters and digits": "a1b",
    "of a digit first": "1ab",
    "with a hyphen": "a-b",
    "with hyphens together": "a---b",
    "of two labels": "a.b",
    "of labels with hyphens": "a-1.b-2.c-3",
    "of two numbers": "1.2",
    "of three numbers": "1.2.3",
    "of five numbers": "1.2.3.4.5",
    "of four numbers with a letter": "1.2.3.4a",
    "of four numbers with a hyphen": "1.2.3.4-4",
    "of four numbers, one of four digits": "172.25.1234.1",
    "of four numbers, the first of four digits": "1234.5.6.7",
    "of four numbers, the last of four digits": "1.2.3.4567",
    "of 63 characters": "a" * 63,
    "of 63 characters in labels": "a." * 31 + "a",
}
NO_BUCKETS: dict[str, Any] = {
    "empty": "",
    "of one character": "a",
    "of two characters": "ab",
    "of 64 characters": "a" * 64,
    "of 64 characters in labels": "a" * 31 + "." + "a" * 32,
    "with a capital letter": "aBc",
    "of capital letters": "ABC",
    "with an underscore": "a_b",
    "with a slash": "a/b",
    "with a blank": "a b",
    "with a blank in front": " abc",
    "with a line break at the end": "abc\n",
    "with a hyphen in front": "-ab",
    "with a hyphen at the end": "ab-",
    "of hyphens": "---",
    "with a hyphen at the start of a label": "a.-bb.c",
    "with a hyphen at the end of a label": "a.bb-.c",
    "with a dot in front": ".ab",
    "with a dot at the end": "ab.",
    "with two dots": "a..b",
    "of dots": "...",
    "like an address": "1.2.3.4",
    "like an address of three digits": "127.100.200.255",
    "like an address that is none": "999.999.999.999",
    "like an address with zeros": "000.000.000.000",
    "with NUL": "a\0b",
    "with NUL at the end": "abc\0",
    "with letters that are not ASCII": "b\u00fccher",
    "with digits that are not ASCII": "\u0661\u0662\u0663",
    "with a letter that folds to ASCII": "\u212abc",
    "with a lone surrogate": "ab\ud800",
    "of bytes": b"abc",
    "of a number": 123,
    "None": None,
}


@pytest.mark.parametrize("name", BUCKETS.values(), ids=BUCKETS)
def test_bucket_names_that_are_taken(name: str) -> None:
    assert bucket_name(name) == name


@pytest.mark.parametrize("name", NO_BUCKETS.values(), ids=NO_BUCKETS)
def test_bucket_names_that_are_refused(name: Any) -> None:
    with pytest.raises(InvalidBucketNameError):
        bucket_name(name)


@pytest.mark.parametrize("name", TAKEN_NAMES, ids=ascii)
def test_object_names_come_back_byte_for_byte(node: Manta, name: str) -> None:
    assert object_name(name) == name
    assert node.createobject(**obj(name, id=ID_1))["name"] == name
    assert node.getobject(**obj(name))["name"] == name


@pytest.mark.parametrize(
    "name",
    [*(case.name for case in HOSTILE if case.as_name != TAKEN), "", "\0", "a\0", "\0a", "a\0b", b"a", 7, None, ["a"]],
    ids=lambda name: ascii(name)[:20],
)
def test_object_names_that_are_refused_in_every_operation_and_change_nothing(world: World, node: Manta, name: Any) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: object_name(name),
        lambda: node.createobject(**obj(name, id=ID_1)),
        lambda: node.getobject(**obj(name)),
        lambda: node.updateobject(**obj(name, content_type=None, headers=None)),
        lambda: node.deleteobject(**obj(name)),
    ]
    for call in calls:
        with pytest.raises(InvalidBucketObjectNameError):
            call()
    assert events(world) == []


@pytest.mark.parametrize("character", ["x", "\u00e9", "\uffff", "\U0001f600"], ids=ascii)
def test_an_object_name_is_measured_in_bytes(character: str) -> None:
    size = len(character.encode())
    longest = character * (1024 // size) + "x" * (1024 % size)
    assert object_name(longest) == longest
    with pytest.raises(InvalidBucketObjectNameError):
        object_name(longest + "x")


def test_a_refused_bucket_name_creates_nothing(world: World, node: Manta) -> None:
    with pytest.raises(InvalidBucketNameError, match="'-no'"):
        node.createbucket(owner=OWNER, name="-no")
    assert events(world) == []


@pytest.mark.parametrize("limit", [1, 2, 1023, 1024])
def test_limits_that_are_taken(limit: int) -> None:
    assert page_limit(limit) == limit


@pytest.mark.parametrize("limit", [0, -1, 1025, 1 << 70, True, False, 1.0, "1", None])
def test_limits_that_are_refused_by_both_listings(node: Manta, limit: Any) -> None:
    for call in (
        lambda: page_limit(limit),
        lambda: node.listbuckets(owner=OWNER, limit=limit),
        lambda: node.listobjects(owner=OWNER, bucket_id=BUCKET, limit=limit),
    ):
        with pytest.raises(LimitConstraintError):
            call()


@pytest.mark.parametrize("delimiter", [None, "/", "a", "%", "\u00e9", "\U0001f600"], ids=ascii)
def test_delimiters_that_are_taken(delimiter: str | None) -> None:
    assert page_delimiter(delimiter) == delimiter


@pytest.mark.parametrize("delimiter", ["", "//", "ab", "e\u0301", "\0", b"/", 7], ids=ascii)
def test_delimiters_that_are_refused(node: Manta, delimiter: Any) -> None:
    for call in (
        lambda: page_delimiter(delimiter),
        lambda: node.listobjects(owner=OWNER, bucket_id=BUCKET, delimiter=delimiter),
    ):
        with pytest.raises(InvalidOption, match="is no delimiter"):
            call()


def test_md5s_are_sixteen_bytes_as_base64_both_ways() -> None:
    raw = bytes.fromhex("c736398c96d1f6b72b3118657268bff2")
    assert md5_bytes(MD5) == raw and md5_text(raw) == MD5
    assert md5_bytes(None) is None and md5_text(None) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "=",
        "xzY5jJbR9rcrMRhlcmi/8g",
        "xzY5jJbR9rcrMRhlcmi/8g=",
        "xzY5jJbR9rcrMRhlcmi_8g==",
        " xzY5jJbR9rcrMRhlcmi/8g==",
        "xzY5jJbR9rcrMRhlcmi/8g==\n",
        "xzY5jJbR9rcrMRhlcmi/",
        "xzY5jJbR9rcrMRhlcmi/8vI=",
        "c736398c96d1f6b72b3118657268bff2",
        "\u00e9" * 24,
        b"xzY5jJbR9rcrMRhlcmi/8g==",
        bytes(16),
        7,
    ],
    ids=ascii,
)
def test_md5s_that_are_refused_and_create_nothing(world: World, node: Manta, text: Any) -> None:
    with pytest.raises(ContentMd5Error):
        node.createobject(**obj("a", id=ID_1, content_md5=text))
    assert events(world) == []


@pytest.mark.parametrize(
    ("given", "texts", "pairs"),
    [
        (None, [], []),
        ([], [], []),
        ([PAIR], ["us-east-1:1.stor.example.com"], [PAIR]),
        (["us-east-1:1.stor.example.com"], ["us-east-1:1.stor.example.com"], [PAIR]),
        ((PAIR, PAIR), ["us-east-1:1.stor.example.com"] * 2, [PAIR, PAIR]),
        (["b:1", "a:2", "b:1"], ["b:1", "a:2", "b:1"], [{"datacenter": d, "manta_storage_id": s} for d, s in ("b1", "a2", "b1")]),
        (["a:b:c"], ["a:b:c"], [{"datacenter": "a", "manta_storage_id": "b:c"}]),
        ([{"datacenter": "a", "manta_storage_id": "b:c"}], ["a:b:c"], [{"datacenter": "a", "manta_storage_id": "b:c"}]),
    ],
)
def test_copies_are_texts_in_the_tables_and_pairs_in_payloads_in_their_order(given: Any, texts: Any, pairs: Any) -> None:
    assert shark_texts(given) == texts
    assert shark_pairs(texts) == pairs
    assert shark_texts(shark_pairs(texts)) == texts


@pytest.mark.parametrize(
    "given",
    [
        "a:b",
        b"a:b",
        7,
        PAIR,
        ["ab"],
        ["a:b", "ab"],
        [None],
        [["a", "b"]],
        [{"datacenter": "a"}],
        [{**PAIR, "more": "x"}],
        [{"datacenter": "a", "manta_storage_id": 1}],
        [{"datacenter": None, "manta_storage_id": "b"}],
        [{"datacenter": "a:b", "manta_storage_id": "c"}],
    ],
    ids=str,
)
def test_copies_that_are_refused(node: Manta, given: Any) -> None:
    with pytest.raises(InvalidOption, match="are no copies"):
        node.createobject(**obj("a", id=ID_1, sharks=given))


@pytest.mark.parametrize("given", [ID_1, ID_1.upper(), ID_1.replace("-", ""), uuid.UUID(ID_1), uuid.UUID(ID_1).bytes])
def test_uuids_are_one_text_however_they_are_given(node: Manta, given: Any) -> None:
    assert uuid_text("id", given) == ID_1
    node.createobject(owner=given, bucket_id=given, name="a", id=given)
    found = node.getobject(owner=ID_1, bucket_id=ID_1, name="a")
    assert (found["owner"], found["bucket_id"], found["id"]) == (ID_1, ID_1, ID_1)


@pytest.mark.parametrize("given", ["", "a", ID_1[:-1], ID_1 + "0", "g" * 32, bytes(15), 7, None])
@pytest.mark.parametrize("what", ["owner", "bucket_id", "id"])
def test_uuids_that_are_refused_by_name_of_what_they_are(world: World, node: Manta, what: str, given: Any) -> None:
    with pytest.raises(InvalidOption, match=f"is no uuid, as {what} is"):
        node.createobject(**obj("a", id=ID_1) | {what: given})
    assert events(world) == []


def test_an_error_tells_what_the_service_sends() -> None:
    with pytest.raises(MantaError) as found:
        page_limit(0)
    error = found.value
    assert error.name == "LimitConstraintError" and error.code == "MANTA_LIMIT_CONSTRAINT"
    assert error.payload() == {"error": {"name": "LimitConstraintError", "message": "A page cannot have the limit 0."}}
