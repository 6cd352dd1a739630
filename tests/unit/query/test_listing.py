"""Listings against brute force: every prefix, marker, delimiter and limit, over names that are not kind."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from bucketcatalog import InvalidOption, UnknownTable
from bucketcatalog.query.listing import Page
from bucketcatalog.query.snapshot import Snapshot

from ...kit.world import BUCKET, OTHER, OWNER, World, messages, names, obj, proto

NAMES = [
    "",
    "/",
    "//",
    "a",
    "a/",
    "a//b",
    "a/b",
    "a/b/c",
    "a/b/d",
    "a0",
    "aé/b",
    "b",
    "b/",
    "c/é/x",
    "c/é/y",
    "c/ë",
    "\x00/",
    "é",
    "é/",
    "😀/a",
    "~",
]
PREFIXES = ["", "/", "a", "a/", "a/b", "a/b/", "c/", "c/é", "é", "zz", "\x00", "😀", "b/"]
DELIMITERS = [None, "/", "//", "é", "/b", "😀/", "a"]
MARKERS = [None, "", "/", "a", "a/", "a/a", "a0", "c/é/", "c/é/x", "é/", "zzz", "\U0010ffff"]


def wanted(prefix: str, delimiter: str | None, marker: str | None, limit: int) -> tuple[list[str], list[str], str | None]:
    """One page by brute force. A name in a group is shown as that; what is shown comes after the marker."""
    shown = set()
    for name in NAMES:
        if name.startswith(prefix):
            head, found, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
            shown.add((prefix + head + found, True) if found else (name, False))
    items = sorted(shown, key=lambda item: item[0].encode())
    if marker is not None:
        items = [item for item in items if item[0].encode() > marker.encode()]
    page = items[:limit]
    more = page[-1][0] if len(items) > limit else None
    return [name for name, group in page if not group], [name for name, group in page if group], more


def parts(page: Page) -> tuple[list[str], list[str], str | None]:
    return page.rows["name"].to_pylist(), page.groups, page.next_marker


@pytest.fixture(scope="module", params=["log", "checkpoint", "both", "blocks"])
def snapshot(request: pytest.FixtureRequest) -> Snapshot:
    world = World()
    writer = world.writer()
    strangers = [{"owner": OTHER, "bucket_id": BUCKET, "name": name} for name in ("a", "a/b", "zz/x")]
    strangers += [{"owner": OWNER, "bucket_id": OTHER, "name": name} for name in ("a", "a/b", "zz/x")]
    world.commit(writer, ("put", "objects", strangers), ("put", "objects", [obj("a/gone"), obj("gone/x")]))
    if request.param == "blocks":
        world.commit(writer, ("put", "objects", [obj(name) for name in NAMES] + [obj(f"gone/{n}") for n in range(70)]))
        world.commit(writer, ("delete", "objects", [obj(f"gone/{n}") for n in range(70)]))
    for number, name in enumerate(NAMES):
        world.commit(writer, ("put", "objects", obj(name)))
        if number == len(NAMES) // 2 and request.param == "both":
            writer.checkpoint()
    world.commit(writer, ("delete", "objects", [obj("a/gone"), obj("gone/x")]))
    if request.param == "checkpoint":
        writer.checkpoint()
    return world.snapshot()


@pytest.mark.parametrize("delimiter", DELIMITERS)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_every_page_is_that_of_brute_force(snapshot: Snapshot, prefix: str, delimiter: str | None) -> None:
    for marker, limit in itertools.product(MARKERS, (1, 1000)):
        page = snapshot.list(
            "objects", owner=OWNER, bucket_id=BUCKET, prefix=prefix, delimiter=delimiter, marker=marker, limit=limit
        )
        if marker is not None and delimiter is not None and _within_a_group(prefix, delimiter, marker):
            continue
        assert parts(page) == wanted(prefix, delimiter, marker, limit), (marker, limit)


def _within_a_group(prefix: str, delimiter: str, marker: str) -> bool:
    """Whether a marker lies inside of a group, so that what follows may show the rest of it: no page gives such markers."""
    at = marker.find(delimiter, len(prefix)) if marker.startswith(prefix) else -1
    return at >= 0 and len(marker) > at + len(delimiter)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_pages_one_after_another_show_everything_once(snapshot: Snapshot, delimiter: str | None, limit: int) -> None:
    rows, groups, pages, marker = [], [], 0, None
    while True:
        page = snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, delimiter=delimiter, marker=marker, limit=limit)
        more_rows, more_groups, marker = parts(page)
        assert len(more_rows) + len(more_groups) <= limit
        rows, groups, pages = rows + more_rows, groups + more_groups, pages + 1
        if marker is None:
            break
    assert (rows, groups, None) == wanted("", delimiter, None, 1000)
    assert pages == max(1, -(-(len(rows) + len(groups)) // limit))


def test_pages_across_many_blocks_show_everything_once() -> None:
    world = World()
    given = [f"{n % 7}/{n:05}" for n in range(20_000)]
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(name) for name in given]))
        writer.checkpoint()
    snapshot = world.snapshot()
    found, marker = [], None
    while True:
        page = snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, marker=marker, limit=3_000)
        found += page.rows["name"].to_pylist()
        marker = page.next_marker
        if marker is None:
            break
    assert found == sorted(given)
    assert snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, delimiter="/").groups == [f"{n}/" for n in range(7)]
    page = snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, prefix="3/", marker="3/10000", limit=2)
    assert page.rows["name"].to_pylist() == [n for n in sorted(given) if n.startswith("3/") and n > "3/10000"][:2]


@pytest.mark.parametrize(
    "options",
    [
        {"limit": 0},
        {"limit": -1},
        {"limit": "5"},
        {"limit": 1.5},
        {"delimiter": ""},
        {"delimiter": 5},
        {"prefix": 5},
        {"prefix": b"a"},
        {"marker": 5},
        {"owner": "x"},
        {"owner": None},
        {"name": "a"},
        {"strange": 1},
    ],
    ids=str,
)
def test_listings_that_cannot_be_are_refused(snapshot: Snapshot, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption):
        snapshot.list("objects", **({"owner": OWNER, "bucket_id": BUCKET} | options))


def test_listings_need_the_leading_key_and_a_table_of_names(snapshot: Snapshot) -> None:
    with pytest.raises(InvalidOption, match="owner, bucket_id"):
        snapshot.list("objects")
    with pytest.raises(UnknownTable):
        snapshot.list("nothing")
    assert snapshot.list("buckets", owner=OWNER).rows.num_rows == 0


def test_tables_keyed_by_bytes_are_listed_in_bytes() -> None:
    source = proto('message Row { option (table) = { name: "my.blobs" key: "k" }; bytes k = 1; }')
    keys = [b"", b"\x00", b"a", b"a\xff", b"a\xff\xff", b"b/\xff", b"b/\xfe", b"\xff", b"\xff\xff"]
    world = World()
    catalog = world.catalog()
    catalog.register(messages(source)["Row"])
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "my.blobs", [{"k": key} for key in keys]))
    snapshot = world.snapshot()

    for limit in (1, 2, 100):
        found: list[bytes] = []
        marker: Any = None
        while True:
            page = snapshot.list("my.blobs", marker=marker, limit=limit)
            found += page.rows["k"].to_pylist()
            marker = page.next_marker
            if marker is None:
                break
        assert found == sorted(keys)
    assert snapshot.list("my.blobs", prefix=b"a\xff").rows["k"].to_pylist() == [b"a\xff", b"a\xff\xff"]
    page = snapshot.list("my.blobs", delimiter=b"\xff")
    assert (page.rows["k"].to_pylist(), page.groups) == ([b"", b"\x00", b"a", b"b/\xfe"], [b"a\xff", b"b/\xff", b"\xff"])


def test_tables_keyed_by_numbers_are_not_listed() -> None:
    source = proto('message Row { option (table) = { name: "my.numbers" key: "k" }; int64 k = 1; }')
    world = World()
    catalog = world.catalog()
    catalog.register(messages(source)["Row"])
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "my.numbers", {"k": 1}))
    with pytest.raises(InvalidOption):
        world.snapshot().list("my.numbers")


def test_a_key_column_may_be_called_as_a_parameter_is() -> None:
    source = proto(
        'message Row { option (table) = { name: "my.files" key: "table" key: "prefix" }; string table = 1; string prefix = 2; }'
    )
    world = World()
    catalog = world.catalog()
    catalog.register(messages(source)["Row"])
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "my.files", {"table": "t", "prefix": "p"}))
    snapshot = world.snapshot()
    assert snapshot.get("my.files", table="t", prefix="p") == {"table": "t", "prefix": "p"}
    assert snapshot.list("my.files", table="t").rows.num_rows == 1


def test_the_names_of_the_test_are_what_it_needs(snapshot: Snapshot) -> None:
    listed = [name for name in names(snapshot) if name in NAMES]
    assert set(listed) == set(NAMES)
