"""``dups`` against the same grouped in Python."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.questions import Duplicates, dups

from ...kit.world import DAY, OTHER, World, as_arrow, obj
from .conftest import NAME_OF, Key, Past, Row, made, objects_of

Group = tuple[str, str | None, str, int]


def hash_of(row: Row) -> tuple[str, str | None, str] | None:
    algorithm, etag = row.get("checksum_algorithm"), row.get("etag")
    if row.get("checksum") and algorithm not in ("CRC32", "CRC32C"):
        return "checksum", algorithm, row["checksum"]
    if row.get("content_md5"):
        return "md5", None, row["content_md5"].hex()
    if etag and re.fullmatch("[0-9a-fA-F]{32}", etag):
        return "etag", None, etag.lower()
    return None


def files(rows: dict[Key, Row]) -> dict[Key, Row]:
    return {key: row for key, row in rows.items() if row.get("file_type") in (None, "file")}


def grouped(rows: dict[Key, Row], least: int = 0) -> dict[Group, list[Key]]:
    found: dict[Group, list[Key]] = defaultdict(list)
    for key, row in sorted(rows.items(), key=lambda each: (each[0][0], each[0][1], each[0][2].encode())):
        said = hash_of(row)
        if said is not None and (row["content_length"] or 0) > least:
            found[(*said, row["content_length"])].append(key)
    return {group: keys for group, keys in found.items() if len(keys) > 1}


def told(found: Duplicates) -> list[tuple[Group, int, int, list[tuple[str, str, str]]]]:
    return [
        (
            (row["kind"], row["algorithm"], row["hash"], row["content_length"]),
            row["copies"],
            row["wasted_bytes"],
            [tuple(each.values()) for each in row["examples"]],
        )
        for row in found.groups.to_pylist()
    ]


@pytest.mark.parametrize("place", [{}, {"bucket": "pets", "owner": OTHER}, {"prefix": "a"}], ids=str)
@pytest.mark.parametrize("larger", [None, "7B"])
@pytest.mark.parametrize("ago", [None, 4 * DAY])
def test_groups_are_objects_of_one_size_and_hash_and_the_most_wasteful_come_first(
    past: Past, place: dict[str, str], larger: str | None, ago: int | None
) -> None:
    at = None if ago is None else past.world.clock() - ago
    rows = files(objects_of(past.state(at)[0], **place))
    expected = grouped(rows, 0 if larger is None else 7)
    found = dups(past.snapshot(at), larger=larger, **place)
    assert {group: (copies, wasted, some) for group, copies, wasted, some in told(found)} == {
        group: (len(keys), group[3] * (len(keys) - 1), [(key[0], NAME_OF[key[1]], key[2]) for key in keys[:3]])
        for group, keys in expected.items()
    }
    wasted = found.groups["wasted_bytes"].to_pylist()
    assert wasted == sorted(wasted, reverse=True)
    assert (found.all_groups, found.all_wasted_bytes) == (len(expected), sum(wasted))
    least = 0 if larger is None else 7
    assert found.without_hash == sum(hash_of(row) is None and (row["content_length"] or 0) > least for row in rows.values())
    assert found.empty == sum(row["content_length"] == 0 for row in rows.values())
    assert found.unsized == sum(row["content_length"] is None for row in rows.values())


def test_the_catalogs_at_random_have_groups_of_every_kind() -> None:
    kinds = {group[0] for seed, merged in ((1, False), (2, True), (3, True)) for group in grouped(files(made(seed, merged).live))}
    assert kinds == {"checksum", "md5", "etag"}


def test_as_many_groups_and_examples_are_shown_as_are_asked_for(past: Past) -> None:
    whole = told(dups(past.catalog))
    found = dups(past.catalog, limit=2, examples=1)
    assert told(found) == [(group, copies, wasted, some[:1]) for group, copies, wasted, some in whole[:2]]
    assert found.all_groups == len(whole) > 2
    assert found.all_wasted_bytes == sum(wasted for _, _, wasted, _ in whole)
    assert all(not some for *_, some in told(dups(past.catalog, examples=0)))
    assert told(dups(past.catalog, bucket="empty")) == []


def of(*rows: dict[str, Any]) -> Catalog:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", as_arrow([obj(str(number), **row) for number, row in enumerate(rows)])))
    return world.catalog()


MD5, ETAG = {"content_md5": b"1" * 16}, {"etag": (b"1" * 16).hex()}
SHA, SHA1 = {"checksum": "x", "checksum_algorithm": "SHA256"}, {"checksum": "x", "checksum_algorithm": "SHA1"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (MD5, ETAG),
        (SHA, SHA1),
        (SHA, {"checksum": "y", "checksum_algorithm": "SHA256"}),
        (SHA | ETAG, ETAG),
        (SHA, {"checksum": "x"}),
    ],
)
def test_what_is_compared_by_something_else_is_no_copy(one: dict[str, Any], other: dict[str, Any]) -> None:
    found = dups(of({"content_length": 5, **one}, {"content_length": 5, **other}))
    assert (found.groups.num_rows, found.without_hash) == (0, 0)
    assert dups(of({"content_length": 5, **one}, {"content_length": 5, **one})).groups["copies"].to_pylist() == [2]
    assert dups(of({"content_length": 5, **one}, {"content_length": 6, **one})).groups.num_rows == 0


@pytest.mark.parametrize(
    "hashes",
    [
        {},
        {"checksum": "", "checksum_algorithm": "SHA256"},
        {"checksum": "x", "checksum_algorithm": "crc32c"},
        {"checksum_algorithm": "SHA256"},
        {"content_md5": b"short"},
        {"etag": "1" * 32 + "-2"},
        {"etag": "0x8DC0FFEE"},
    ],
)
def test_what_proves_nothing_is_no_hash(hashes: dict[str, Any]) -> None:
    found = dups(of(*[{"content_length": 5, **hashes}] * 2))
    assert (found.groups.num_rows, found.without_hash) == (0, 2)


def test_hexadecimal_digits_are_the_same_in_capitals_and_equal_waste_comes_in_the_order_of_keys() -> None:
    etags = ["F" * 32, "0" * 32, "f" * 32, "0" * 32, "9" * 32, "9" * 32]
    found = dups(of(*[{"content_length": 5, "etag": etag} for etag in etags]))
    assert [[each["name"] for each in row] for row in found.groups["examples"].to_pylist()] == [
        ["0", "2"],
        ["1", "3"],
        ["4", "5"],
    ]


def test_waste_is_exact() -> None:
    found = dups(of(*[{"content_length": (1 << 63) - 1, **SHA}] * 3))
    assert found.groups["wasted_bytes"].to_pylist() == [2 * ((1 << 63) - 1)]
    assert found.all_wasted_bytes == 2 * ((1 << 63) - 1)
    assert dups(of(*[{"content_length": 9, **SHA}] * 3)).groups.schema.field("wasted_bytes").type == pa.int64()


@pytest.mark.parametrize(("options", "message"), [({"limit": 0}, "limit is 0"), ({"examples": -1}, "examples is -1")])
def test_what_is_no_number_is_refused(past: Past, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        dups(past.catalog, **options)


def test_names_of_one_inode_are_one_file_and_waste_nothing() -> None:
    file = {"content_length": 5, "inode": 7, "modified": 1_000, **SHA}
    assert dups(of(file, file)).groups.num_rows == 0
    assert dups(of(file, {**file, "bucket_id": OTHER})).groups.num_rows == 0
    found = dups(of(file, {**file, "inode": 8}, file, {**file, "modified": 2_000}, {**file, "inode": None}))
    assert found.groups["copies"].to_pylist() == [4]
    assert [each["name"] for each in found.groups["examples"][0].as_py()] == ["0", "1", "3"]
    assert dups(of(file, {**file, "content_length": 6}, {**file, "checksum": "y"})).groups.num_rows == 0


def test_what_is_no_file_has_no_content_and_is_not_empty() -> None:
    found = dups(
        of({"content_length": 0}, {"content_length": 0, "file_type": "fifo"}, {"content_length": 3, "file_type": "symlink"})
    )
    assert (found.empty, found.without_hash, found.unsized) == (1, 0, 0)


def test_hashes_of_any_length_and_of_bytes_beyond_ascii_are_compared_whole() -> None:
    hashes = ["é" * 20, "é" * 20, "é" * 19 + "e", "a" * 16 + "b", "a" * 16 + "c", "x", "x"]
    found = dups(of(*[{"content_length": 5, "checksum": each, "checksum_algorithm": "SHA256"} for each in hashes]))
    assert sorted(found.groups["hash"].to_pylist()) == ["x", "é" * 20]
