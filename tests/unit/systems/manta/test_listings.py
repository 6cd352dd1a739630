"""Pages of listings: prefix, marker, delimiter and limit, and walks through everything that meet each name once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bucketcatalog.systems.manta.operations import Manta
from bucketcatalog.systems.manta.payloads import Listing

from ....kit.hostile import GOOD
from ....kit.manta.nodes import after_a_second, listed, node_of, pages
from ....kit.world import BUCKET, ID_1, ID_2, OTHER, OWNER, World, obj

HOSTILE = [name for name in GOOD if name and "\0" not in name]
TREE = ["a", "a/", "a/b", "a/b/c", "a/b/d", "a//", "a0", "b/c", "b/d", "c", "d/e/f"]
ODD = ["_", "%", "a_b", "a%b", "axb", "a\\_b", "a\\%b", "ab", "a", "A_b", "a_", "a_b%", "[a]", "a*", ".*", "a?b"]


@pytest.fixture(scope="module")
def hostile() -> Manta:
    return filled(HOSTILE)


@pytest.fixture(scope="module")
def tree() -> Manta:
    return filled(TREE)


def filled(names: Sequence[str]) -> Manta:
    """A node whose bucket has objects of these names; its neighbours have others."""
    world = World()
    neighbours = [obj("a") | {"bucket_id": ID_1}, obj("b") | {"bucket_id": ID_2}, obj("c") | {"owner": OTHER}]
    world.commit(world.writer("other"), ("put", "objects", [*(obj(name, id=ID_1) for name in names), *neighbours]))
    return node_of(world)


def expected(names: Sequence[str], prefix: str = "", delimiter: str | None = None) -> list[str]:
    """What a listing consists of: names, and groups where names share what lies between the prefix and the next delimiter."""
    found = set()
    for name in names:
        if name.startswith(prefix):
            rest, found_delimiter, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name[len(prefix) :], "", "")
            found.add(prefix + rest + found_delimiter)
    return sorted(found, key=str.encode)


def entries(page: Listing) -> list[str]:
    """Names and groups of a page, in one order."""
    return sorted([*(row["name"] for row in page.rows), *(group["name"] for group in page.groups)], key=str.encode)


def page_of(node: Manta, **options: Any) -> Listing:
    return node.listobjects(owner=OWNER, bucket_id=BUCKET, **options)


class TestPrefixes:
    @pytest.mark.parametrize(
        "prefix", ["", "a", "a_", "a%", "a_b", "a%b", "_", "%", "a\\", "a\\_", "A", "[", ".", "*", "a*", "?", "b"]
    )
    def test_they_are_literal(self, prefix: str) -> None:
        node = filled(ODD)
        assert listed(node, prefix=prefix) == expected(ODD, prefix)

    @pytest.mark.parametrize("prefix", sorted({name[:length] for name in HOSTILE for length in (1, 2)}), ids=ascii)
    def test_those_of_hostile_names_find_what_begins_so(self, hostile: Manta, prefix: str) -> None:
        assert listed(hostile, prefix=prefix) == expected(HOSTILE, prefix)

    def test_one_is_not_folded_nor_composed(self) -> None:
        node = filled(["caf\u00e9s", "cafe\u0301s", "CAF\u00c9S"])
        assert listed(node, prefix="caf\u00e9") == ["caf\u00e9s"]
        assert listed(node, prefix="cafe\u0301") == ["cafe\u0301s"]
        assert listed(node, prefix="cafe") == ["cafe\u0301s"]

    def test_one_that_is_a_name_finds_that_too(self, tree: Manta) -> None:
        assert listed(tree, prefix="a/b") == ["a/b", "a/b/c", "a/b/d"]

    def test_of_buckets_they_are_literal_too(self, node: Manta) -> None:
        for name in ("a-b", "a.b", "axb", "b-a"):
            node.createbucket(owner=OWNER, name=name)
        found = {
            prefix: [row["name"] for row in node.listbuckets(owner=OWNER, prefix=prefix).rows] for prefix in ("a-", "a_", "%")
        }
        assert found == {"a-": ["a-b"], "a_": [], "%": []}


class TestOrder:
    def test_it_is_that_of_the_bytes(self, hostile: Manta) -> None:
        assert listed(hostile) == sorted(HOSTILE, key=str.encode)

    def test_names_above_the_first_plane_come_after_all_of_it(self) -> None:
        names = ["\ud7ff", "\ue000", "\uff5e", "\ufffd", "\uffff", "\U00010000", "\U0001f600", "\U0010ffff"]
        in_utf_16 = sorted(names, key=lambda name: name.encode("utf-16-be"))
        assert listed(filled([*reversed(names)])) == names != in_utf_16

    def test_a_marker_among_them_goes_by_the_same_order(self) -> None:
        node = filled(["\ue000", "\uffff", "\U00010000", "\U0001f600"])
        assert listed(node, marker="\uffff") == ["\U00010000", "\U0001f600"]
        assert listed(node, marker="\U00010000") == ["\U0001f600"]
        assert [entries(page) for page in pages(node, limit=1)] == [["\ue000"], ["\uffff"], ["\U00010000"], ["\U0001f600"]]


class TestMarkers:
    @pytest.mark.parametrize("marker", ["", "a", "a/", "a/b", "a/b/", "a/c", "a0", "Z", "d/e/f", "e", "\U0010ffff"])
    def test_a_page_begins_after_the_marker_whether_that_is_a_name_or_not(self, tree: Manta, marker: str) -> None:
        assert listed(tree, marker=marker) == [name for name in sorted(TREE, key=str.encode) if name.encode() > marker.encode()]

    def test_one_before_the_prefix_changes_nothing_and_one_behind_it_leaves_nothing(self, tree: Manta) -> None:
        assert listed(tree, prefix="b/", marker="a") == ["b/c", "b/d"]
        assert listed(tree, prefix="b/", marker="b/c") == ["b/d"]
        assert listed(tree, prefix="b/", marker="c") == []

    def test_the_last_page_has_none_also_where_it_is_full(self, tree: Manta) -> None:
        assert page_of(tree, limit=len(TREE)).next_marker is None
        assert page_of(tree, limit=len(TREE) - 1).next_marker == "c"
        assert page_of(tree, prefix="b/", limit=2).next_marker is None
        assert page_of(tree, delimiter="/", limit=len(expected(TREE, "", "/"))).next_marker is None

    def test_one_stays_good_when_its_name_is_deleted(self, world: World, node: Manta) -> None:
        for name in "abcd":
            node.createobject(**obj(name, id=ID_1))
        marker = page_of(node, limit=2).next_marker
        after_a_second(world, node.deleteobject, **obj("b"))
        assert marker == "b" and listed(node, marker=marker) == ["c", "d"]

    def test_of_buckets_they_work_the_same(self, node: Manta) -> None:
        names = [f"b{number}.x" for number in range(5)]
        for name in names:
            node.createbucket(owner=OWNER, name=name)
        found, marker = [], None
        while True:
            page = node.listbuckets(owner=OWNER, marker=marker, limit=2)
            found.append([row["name"] for row in page.rows])
            marker = page.next_marker
            if marker is None:
                break
        assert found == [names[:2], names[2:4], names[4:]]


class TestGroups:
    def test_names_that_share_what_lies_before_a_delimiter_are_one_group(self, tree: Manta) -> None:
        page = page_of(tree, delimiter="/")
        assert [row["name"] for row in page.rows] == ["a", "a0", "c"]
        assert [group["name"] for group in page.groups] == ["a/", "b/", "d/"]
        assert all(group["type"] == "group" for group in page.groups)

    def test_a_prefix_that_ends_before_the_delimiter_gives_the_group_itself(self, tree: Manta) -> None:
        assert entries(page_of(tree, prefix="a", delimiter="/")) == ["a", "a/", "a0"]
        assert entries(page_of(tree, prefix="d", delimiter="/")) == ["d/"]

    def test_a_prefix_with_the_delimiter_gives_what_lies_below(self, tree: Manta) -> None:
        page = page_of(tree, prefix="a/", delimiter="/")
        assert [row["name"] for row in page.rows] == ["a/", "a/b"]
        assert [group["name"] for group in page.groups] == ["a//", "a/b/"]

    def test_one_counts_once_against_the_limit_however_many_names_are_in_it(self, tree: Manta) -> None:
        found = [entries(page) for page in pages(tree, delimiter="/", limit=2)]
        assert found == [["a", "a/"], ["a0", "b/"], ["c", "d/"]]

    def test_the_marker_of_one_passes_over_all_that_is_in_it_and_nothing_else(self, tree: Manta) -> None:
        groups = page_of(tree, delimiter="/").groups
        after = [entries(page_of(tree, delimiter="/", marker=group["nextMarker"])) for group in groups]
        assert after == [["a0", "b/", "c", "d/"], ["c", "d/"], []]

    @pytest.mark.parametrize("delimiter", ["%", "_", ".", "*", "\\", "\u00e9", "\U0001f600", "\n"], ids=ascii)
    def test_a_delimiter_is_literal_and_one_character_of_any_size(self, delimiter: str) -> None:
        names = [f"a{delimiter}b", f"a{delimiter}c", "a/b", "aXb", f"{delimiter}a"]
        page = page_of(filled(names), delimiter=delimiter)
        assert [group["name"] for group in page.groups] == sorted([f"a{delimiter}", delimiter], key=str.encode)
        assert [row["name"] for row in page.rows] == ["a/b", "aXb"]

    def test_the_last_character_of_all_is_a_delimiter_too(self) -> None:
        names = ["a", "a\U0010ffff", "a\U0010ffffb", "b"]
        found = [entries(page) for page in pages(filled(names), delimiter="\U0010ffff", limit=1)]
        assert found == [["a"], ["a\U0010ffff"], ["b"]]

    def test_a_page_of_groups_alone_has_no_rows(self) -> None:
        page = page_of(filled([f"{top}/{number}" for top in "ab" for number in range(50)]), delimiter="/", limit=2)
        assert (page.rows, [group["name"] for group in page.groups], page.next_marker) == ([], ["a/", "b/"], None)


@pytest.mark.parametrize("delimiter", [None, "/", ".", "a", "x", "%", "\u00e9", "\U0001f600"], ids=ascii)
@pytest.mark.parametrize("limit", [1, 2, 7, 1024])
def test_pages_walk_through_everything_once_in_order_for_hostile_names(hostile: Manta, limit: int, delimiter: str | None) -> None:
    found = [entries(page) for page in pages(hostile, limit=limit, delimiter=delimiter)]
    everything = expected(HOSTILE, "", delimiter)
    assert [entry for page in found for entry in page] == everything
    assert [len(page) for page in found] == [limit] * (len(everything) // limit) + [len(everything) % limit] * (
        len(everything) % limit > 0
    )


@pytest.mark.parametrize("prefix", ["a", "a/", "a//", "b", "d/", "x"])
@pytest.mark.parametrize("limit", [1, 3])
def test_pages_walk_through_everything_below_a_prefix_once(tree: Manta, prefix: str, limit: int) -> None:
    for delimiter in (None, "/", "b"):
        found = [entry for page in pages(tree, prefix=prefix, delimiter=delimiter, limit=limit) for entry in entries(page)]
        assert found == expected(TREE, prefix, delimiter)


def test_a_page_has_at_most_a_thousand_and_24_of_a_thousand_unless_more_are_asked_for() -> None:
    names = [f"{number:04}" for number in range(1_030)]
    node = filled(names)
    assert listed(node) == names[:1_000] and listed(node, limit=1_024) == names[:1_024]
    assert [len(page.rows) for page in pages(node, limit=1_024)] == [1_024, 6]


def test_rows_of_a_listing_are_those_that_are_found_one_by_one(world: World, node: Manta) -> None:
    for name in "ab":
        after_a_second(world, node.createobject, **obj(name, id=ID_1, headers={"h": name}, sharks=["d:s"], content_length=1))
    after_a_second(world, node.updateobject, **obj("b", content_type="new", headers={}))
    assert page_of(node).rows == [node.getobject(**obj(name)) for name in "ab"]
