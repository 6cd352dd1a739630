"""Buckets as sources, where the listing is what a test says; tests/s3 has the same with a real server."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog import Catalog
from bucketcatalog.errors import AccessDenied, InvalidOption, SourceNotFound, UnsupportedStore
from bucketcatalog.harvest import EntryError, harvest
from bucketcatalog.harvest.scope import Scope
from bucketcatalog.harvest.sources.s3 import S3Source
from bucketcatalog.harvest.sources.s3_pages import whole_names, with_ordinals
from bucketcatalog.harvest.sources.s3_parts import spans
from bucketcatalog.parallel import ahead
from bucketcatalog.store.memory import MemoryStore

from .inventories import ListInventory, listed, time, version

KEYS = st.lists(st.text(alphabet="ab/-\u00e9 %", min_size=1, max_size=5), unique=True, max_size=40)


def names(source: S3Source, errors: list[EntryError] | None = None) -> list[str]:
    found = source.entries(Scope(), (errors if errors is not None else []).append)
    return [name for batch in found for name in batch.column("name").to_pylist()]


def rows(catalog: Catalog, table: str = "object_versions") -> list[dict[str, Any]]:
    return catalog.snapshot().scan(table).to_arrow().to_pylist()


@given(KEYS, st.integers(1, 5), st.data())
def test_parts_together_are_the_whole_in_order(keys: list[str], threads: int, data: st.DataObject) -> None:
    ordered = sorted(keys, key=str.encode)
    inventory = ListInventory([listed(key) for key in ordered], page=2)
    after = data.draw(st.sampled_from([None, *ordered]))
    parts = spans(inventory, threads, after=after, pages=data.draw(st.integers(0, 9)))
    found = []
    for part in parts:
        inside = [key for key in ordered if _within(key, part.after, part.upto)]
        assert all(key.startswith(part.prefix) for key in inside)
        found += inside
    assert found == [key for key in ordered if after is None or key > after] and len(parts) <= 16 * threads + 1


def _within(key: str, after: str, upto: str | None) -> bool:
    return key.encode() > after.encode() and (upto is None or key.encode() <= upto.encode())


def test_a_large_bucket_is_listed_in_parts_and_a_small_one_without_a_look_at_prefixes() -> None:
    keys = [f"{a}/{b}/{c:04}" for a in "abcdefgh" for b in range(6) for c in range(600)]
    inventory = ListInventory([listed(key) for key in keys], page=1_000)
    assert names(S3Source(inventory)) == keys
    assert inventory.asked[0] == "" and 29 < inventory.pages < 45
    small = ListInventory([listed(key) for key in keys[:7_999]], page=1_000)
    assert names(S3Source(small)) == keys[:7_999]
    assert (small.pages, small.asked) == (8, [])


def test_versions_of_the_key_where_listing_divides_are_all_there(catalog: Catalog) -> None:
    found = [version(f"k{at // 3:05}", f"v{at}", 3 - at % 3, latest=at % 3 == 0) for at in range(30_000)]
    source = S3Source(ListInventory(found, status="Enabled", page=1_000))
    assert harvest(catalog, source).versions == 30_000
    one = [version("k", f"v{at:05}", 0, latest=not at) for at in range(9_500)] + [version("l", "v", 0, latest=True)]
    assert [len(batch) for batch in _batches(one)] == [9_501]


def _batches(found: list[dict[str, Any]]) -> Any:
    return S3Source(ListInventory(found, status="Enabled", page=1_000)).entries(Scope(), lambda error: None)


def test_keys_that_no_directory_can_hold_are_objects_and_what_is_no_utf8_is_reported() -> None:
    keys = [b"\xff", b"a//b", b"a/", b"a/../b", b"a\\b", b"/x", "\u00e9 +%".encode(), b"z" * 1_024]
    errors: list[EntryError] = []
    found = names(S3Source(ListInventory([listed(key) for key in sorted(keys)])), errors)
    assert found == [key.decode() for key in sorted(keys) if key != b"\xff"]
    assert [(error.raw, error.code) for error in errors] == [(b"\xff", "NOT_UTF8")]


@pytest.mark.parametrize("page", [1, 2, 5])
@pytest.mark.parametrize("keys", [["a", "c", "b"], ["a", "a", "b"]])
def test_a_short_listing_out_of_order_stops_the_harvest_before_anything_is_deleted(
    catalog: Catalog, keys: list[str], page: int
) -> None:
    harvest(catalog, S3Source(ListInventory([listed(key) for key in "abc"])))
    with pytest.raises(UnsupportedStore, match=r"lists its keys out of order.*in the order of the keys' bytes"):
        harvest(catalog, S3Source(ListInventory([listed(key) for key in keys], page=page)))
    assert [row["name"] for row in rows(catalog, "objects")] == ["a", "b", "c"]


def test_a_long_listing_out_of_order_commits_nothing_from_where_that_shows(catalog: Catalog) -> None:
    keys = [f"a{number:06}" for number in range(40_000)]
    harvest(catalog, S3Source(ListInventory([listed(key) for key in keys], page=1_000)))
    late = ListInventory([listed(key) for key in keys[::2] + keys[1::2]], page=1_000)
    with pytest.raises(UnsupportedStore, match="What was committed before this point stays"):
        harvest(catalog, S3Source(late, threads=1), chunk_events=4_096)
    left, gone = ({row["name"] for row in rows(catalog, table)} for table in ("objects", "deleted_objects"))
    assert left | gone == set(keys) and gone <= set(keys[1::2]) and left >= set(keys[::2])
    assert harvest(catalog, S3Source(ListInventory([listed(key) for key in keys], page=1_000))).created == len(gone)
    assert {row["name"] for row in rows(catalog, "objects")} == set(keys)


def test_a_directory_bucket_is_refused_before_it_is_listed(catalog: Catalog) -> None:
    inventory = ListInventory([listed("b"), listed("a")], bucket="photos--use1-az4--x-s3")
    with pytest.raises(UnsupportedStore, match="is a directory bucket"):
        harvest(catalog, S3Source(inventory))
    assert inventory.pages == 0 and catalog.databases() == []


@pytest.mark.parametrize("status", ["Enabled", "Suspended"])
def test_a_bucket_that_was_versioned_and_may_not_be_asked_any_more_is_left_as_it_is(catalog: Catalog, status: str) -> None:
    found = [version("a", "v2", 2, latest=True), version("a", "v1", 1)]
    harvest(catalog, S3Source(ListInventory(found, status=status)))
    before = rows(catalog), rows(catalog, "objects")
    for dry_run in (True, False):
        with pytest.raises(AccessDenied, match=rf"versions \({status}\).*Next: .*s3:GetBucketVersioning"):
            harvest(catalog, S3Source(ListInventory([listed("a")], status=None)), dry_run=dry_run)
    assert (rows(catalog), rows(catalog, "objects")) == before
    assert harvest(catalog, S3Source(ListInventory(found, status=status))).transactions == ()
    harvest(catalog, S3Source(ListInventory([listed("a")], status="")))
    assert rows(catalog) == [] and rows(catalog, "buckets")[0]["versioning"] is None
    assert harvest(catalog, S3Source(ListInventory([listed("a")], status=None))).transactions == ()


def test_ordinals_are_stable_rise_with_age_and_survive_deletions(catalog: Catalog) -> None:
    every = [version("k", f"v{at}", 7, latest=at == 5) for at in (5, 4, 3, 2, 1)]
    assert harvest(catalog, S3Source(ListInventory(every, status="Enabled"))).version_changes == 5
    first = _ordinals(catalog)
    assert sorted(first, key=first.__getitem__) == ["v1", "v2", "v3", "v4", "v5"]
    assert harvest(catalog, S3Source(ListInventory(every, status="Enabled"))).transactions == ()
    newer = [version("k", "v6", 7, latest=True), version("k", "v5", 7), *every[1:]]
    assert harvest(catalog, S3Source(ListInventory(newer, status="Enabled"))).version_changes == 2
    assert {name: at for name, at in _ordinals(catalog).items() if name != "v6"} == first
    left = [one for one in newer if one["VersionId"] not in ("v1", "v3")]
    harvest(catalog, S3Source(ListInventory(left, status="Enabled")))
    after = _ordinals(catalog)
    assert sorted(after, key=after.__getitem__) == ["v2", "v4", "v5", "v6"]
    assert harvest(catalog, S3Source(ListInventory(left, status="Enabled"))).transactions == ()
    assert {row["version_id"] for row in rows(catalog, "deleted_object_versions")} == {"v1", "v3"}


def _ordinals(catalog: Catalog) -> dict[str, int]:
    return {row["version_id"]: row["ordinal"] for row in rows(catalog)}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=30))
def test_each_ordinal_is_the_time_or_one_more_than_the_one_before(found: list[tuple[int, int]]) -> None:
    found.sort(key=lambda item: item[0])
    keys, times = [f"k{key}".encode() for key, _ in found], [time for _, time in found]
    batch = pa.record_batch({"key": pa.array(keys, pa.binary()), "modified": pa.array(times, pa.timestamp("us", "UTC"))})
    ordinals = with_ordinals(batch).column("ordinal").to_pylist()
    for at in range(len(found)):
        older = ordinals[at + 1] + 1 if at + 1 < len(found) and keys[at + 1] == keys[at] else 0
        assert ordinals[at] == max(times[at], older)


@given(st.lists(st.integers(0, 6), max_size=40), st.integers(1, 6))
def test_no_name_is_in_two_batches_and_no_more_is_held_than_a_page_and_one_name(numbers: list[int], page: int) -> None:
    keys = [b"k%d" % number for number in sorted(numbers)]
    read = 0

    def pages() -> Any:
        nonlocal read
        for at in range(0, len(keys), page):
            part = keys[at : at + page]
            read += len(part)
            yield pa.record_batch({"key": pa.array(part, pa.binary())})

    given_out: list[bytes] = []
    for batch in whole_names(pages()):
        here = batch.column("key").to_pylist()
        assert not set(here) & set(given_out)
        given_out += here
        most = max(map(keys.count, keys))
        assert read - len(given_out) + len(here) <= page + 2 * most
    assert given_out == keys


def test_what_is_listed_ahead_is_bounded_and_ends_with_the_reader() -> None:
    taken = [0, 0, 0]

    def stream(number: int) -> Any:
        for at in range(1_000):
            taken[number] += 1
            yield number, at

    found = ahead([lambda n=n: stream(n) for n in range(3)], threads=2, depth=5)
    assert [next(found) for _ in range(10)] == [(0, at) for at in range(10)]
    found.close()
    assert taken[0] <= 10 + 5 + 2 and taken[1] <= 5 + 1 and taken[2] <= 5 + 1


def test_streams_that_end_soon_do_not_let_the_others_run_away() -> None:
    taken = [0] * 60

    def stream(number: int) -> Any:
        for at in range(4):
            taken[number] += 1
            yield number, at

    found = ahead([lambda n=n: stream(n) for n in range(60)], threads=3, depth=5)
    given = [next(found)]
    threading.Event().wait(0.5)
    assert sum(taken) <= 3 * 4
    given += found
    assert given == [(number, at) for number in range(60) for at in range(4)]


def test_a_harvest_that_breaks_off_leaves_no_thread_behind(catalog: Catalog) -> None:
    keys = [f"{a}/{b:05}" for a in "abcdefgh" for b in range(20_000)]
    source = S3Source(ListInventory([listed(key) for key in keys], page=1_000))

    def enough(state: Any) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough") as kept:
        harvest(catalog, source, progress=enough)
    assert kept.value and not [t for t in threading.enumerate() if t.name.startswith("harvest")]


def test_names_whose_every_version_is_hidden_have_no_object(catalog: Catalog) -> None:
    found = [
        version(key, id_, at, latest=marker, marker=marker)
        for key in "ab"
        for id_, at, marker in (("m", 2, True), ("v", 1, False))
    ]
    result = harvest(catalog, S3Source(ListInventory(found, status="Enabled")))
    assert (result.entries, result.versions) == (0, 4) and rows(catalog, "objects") == []
    assert harvest(catalog, S3Source(ListInventory(found, status="Enabled"))).transactions == ()


def test_a_bucket_of_delete_markers_that_is_emptied_deletes_nothing_unasked(catalog: Catalog) -> None:
    found = [version("a", "m", 2, latest=True, marker=True), version("a", "v", 1)]
    harvest(catalog, S3Source(ListInventory(found, status="Enabled")))
    with pytest.raises(SourceNotFound, match="Nothing at all"):
        harvest(catalog, S3Source(ListInventory([], status="Enabled")))
    assert len(rows(catalog)) == 2
    harvest(catalog, S3Source(ListInventory([], status="Enabled")), allow_empty=True)
    assert rows(catalog) == []


def test_an_error_of_one_stream_comes_where_its_items_would() -> None:
    def breaks() -> Any:
        yield 2
        raise UnsupportedStore("broken")

    found = ahead([lambda: iter([1]), breaks, lambda: iter([3])], threads=3, depth=1)
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(UnsupportedStore, match="broken"):
        next(found)


def test_headers_are_asked_for_once_a_version_also_where_two_tables_want_them(catalog: Catalog) -> None:
    found = [version("a", "v2", 2, latest=True), version("a", "v1", 1), version("b", "m", 3, latest=True, marker=True)]
    inventory = ListInventory(found, status="Enabled")
    harvest(catalog, S3Source(inventory, metadata=True, tags=True))
    assert inventory.heads == 2
    assert [(row["content_type"], row["tags"]) for row in rows(catalog)] == [("text/plain", [("key", "a")])] * 2 + [(None, None)]
    assert harvest(catalog, S3Source(inventory, metadata=True, tags=True)).transactions == ()
    assert inventory.heads == 2


def test_headers_of_the_same_bytes_put_again_are_asked_for_again(catalog: Catalog) -> None:
    inventory = ListInventory([listed("a"), listed("b")], headers={"ContentType": "text/plain", "Metadata": {"k": "old"}})
    harvest(catalog, S3Source(inventory, metadata=True))
    inventory.entries = [listed("a", LastModified=time(9)), listed("b")]
    inventory.headers = {"ContentType": "text/html"}
    result = harvest(catalog, S3Source(inventory, metadata=True))
    assert (result.updated, result.unchanged, inventory.heads) == (1, 1, 3)
    found = [(row["content_type"], row["user_metadata"]) for row in rows(catalog, "objects")]
    assert found == [("text/html", None), ("text/plain", [("k", "old")])]
    assert harvest(catalog, S3Source(inventory, metadata=True)).transactions == () and inventory.heads == 3


def test_a_version_that_only_looks_newer_is_not_asked_again(catalog: Catalog) -> None:
    inventory = ListInventory([version("a", "v", 1, latest=True)], status="Enabled")
    harvest(catalog, S3Source(inventory, metadata=True))
    inventory.entries = [version("a", "v", 2, latest=True)]
    assert harvest(catalog, S3Source(inventory, metadata=True)).updated == 1 and inventory.heads == 1


@pytest.mark.parametrize(("root", "folder"), [("", ""), ("", "w1/"), ("lake/", "lake/"), ("lake/", "lake/w1/")])
def test_the_catalog_and_what_lies_in_it_is_no_source(root: str, folder: str) -> None:
    what = "the catalog itself" if root == folder else "a part of the catalog"
    with pytest.raises(InvalidOption, match=f"The source .* is {what}"):
        S3Source(ListInventory([], root=root, folder=folder), beside=MemoryStore())


@pytest.mark.parametrize(("root", "folder"), [("lake/", ""), ("a/lake/", "a/"), ("lake/", "lakes/"), (None, "lake/")])
def test_what_the_catalog_lies_in_or_beside_is_one(root: str | None, folder: str) -> None:
    keys = [folder + "a", *([root + "head"] if root and root.startswith(folder) else [])]
    assert names(S3Source(ListInventory([listed(key) for key in keys], root=root, folder=folder), beside=MemoryStore())) == ["a"]
