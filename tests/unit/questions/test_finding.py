"""``top`` and ``find`` against the same chosen in Python."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from bucketcatalog import InvalidOption, UsageError
from bucketcatalog.model.sizes import parse_size
from bucketcatalog.query.filtered import FilteredRows
from bucketcatalog.questions import du, find, growth, top

from ...kit.world import DAY, OTHER, time_at
from .conftest import NAME_OF, Key, Past, Row, made, objects_of

ORDERS: dict[str, Callable[[tuple[Key, Row]], Any]] = {
    "largest": lambda each: -(each[1]["content_length"] or 0),
    "oldest": lambda each: each[1]["modified"],
    "newest": lambda each: time_at(0) - each[1]["modified"],
}


def by_key(rows: dict[Key, Row]) -> list[tuple[Key, Row]]:
    return sorted(rows.items(), key=lambda each: (each[0][0], each[0][1], each[0][2].encode()))


@pytest.mark.parametrize("by", ORDERS)
@pytest.mark.parametrize("n", [1, 4, 10, 1000])
@pytest.mark.parametrize("place", [{}, {"bucket": "pets", "owner": OTHER}, {"prefix": "a"}], ids=str)
def test_the_first_are_those_that_sorting_puts_first_and_equal_ones_come_by_key(
    past: Past, by: str, n: int, place: dict[str, str]
) -> None:
    rows = objects_of(past.live, **place)
    if by == "largest":
        rows = {key: row for key, row in rows.items() if row["content_length"] is not None}
    expected = [(key, row["content_length"], row["modified"]) for key, row in sorted(by_key(rows), key=ORDERS[by])[:n]]
    found = top(past.catalog, by, n, columns=["owner", "bucket_id", "name", "content_length", "modified"], **place).to_pylist()
    told = [((row["owner"], row["bucket_id"], row["name"]), row["content_length"], row["modified"]) for row in found]
    assert told == expected


def test_the_past_had_other_first_ones_and_columns_are_those_that_are_asked_for(past: Past) -> None:
    at = past.world.clock() - 5 * DAY
    rows = past.state(at)[0]
    oldest = min(row["modified"] for row in rows.values())
    (row,) = top(past.catalog, "oldest", 1, as_of=f"@{at}", columns=["modified"]).to_pylist()
    assert row == {"modified": oldest}
    assert top(past.catalog).column_names == ["bucket", "name", "content_length", "modified", "storage_class", "owner"]
    assert top(past.catalog, bucket="empty").num_rows == 0
    assert top(past.catalog, bucket="empty").column_names == top(past.catalog).column_names


@pytest.mark.parametrize(
    ("options", "message"), [({"by": "best"}, "ordered by 'best'"), ({"n": 0}, "n is 0"), ({"n": True}, "n is True")]
)
def test_what_is_no_order_or_number_is_refused(past: Past, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        top(past.catalog, **options)


Meets = Callable[[Past, Key, Row], bool]
CASES: list[tuple[dict[str, Any], Meets]] = [
    ({}, lambda past, key, row: True),
    ({"larger": 7}, lambda past, key, row: (row["content_length"] or 0) > 7),
    ({"larger": "7B"}, lambda past, key, row: (row["content_length"] or 0) > 7),
    ({"smaller": "1MiB"}, lambda past, key, row: row["content_length"] is not None and row["content_length"] < 1 << 20),
    ({"larger": 0, "smaller": "1MB"}, lambda past, key, row: 0 < (row["content_length"] or 0) < 10**6),
    ({"older": "60d"}, lambda past, key, row: row["modified"] < time_at(past.world.clock() - 60 * DAY)),
    ({"newer": "60 days ago"}, lambda past, key, row: row["modified"] > time_at(past.world.clock() - 60 * DAY)),
    (
        {"older": "5d", "newer": "60d"},
        lambda past, key, row: time_at(past.world.clock() - 60 * DAY) < row["modified"] < time_at(past.world.clock() - 5 * DAY),
    ),
    ({"name": "*.jpg"}, lambda past, key, row: key[2].rpartition("/")[2].endswith(".jpg")),
    ({"name": "?"}, lambda past, key, row: len(key[2].rpartition("/")[2]) == 1),
    ({"name": "[!a]"}, lambda past, key, row: key[2].rpartition("/")[2] in ("b", "ä")),
    ({"name": "b/*"}, lambda past, key, row: fnmatch.fnmatchcase(key[2], "b/*")),
    ({"name": "b/*", "prefix": "b"}, lambda past, key, row: fnmatch.fnmatchcase(key[2], "b/*")),
    ({"name": "*/c.jpg", "prefix": "a"}, lambda past, key, row: key[2].startswith("a") and key[2].endswith("/c.jpg")),
    ({"name": "b/a", "prefix": "a"}, lambda past, key, row: False),
    ({"name": "a/b"}, lambda past, key, row: key[2] == "a/b"),
    ({"content_type": "image/png"}, lambda past, key, row: row["content_type"] == "image/png"),
    ({"content_type": "image/*g"}, lambda past, key, row: (row["content_type"] or "").startswith("image/")),
    ({"content_type": "*/p*"}, lambda past, key, row: row["content_type"] in ("image/png", "text/plain")),
    ({"storage_class": "GLACIER"}, lambda past, key, row: row["storage_class"] == "GLACIER"),
    ({"file_type": "file"}, lambda past, key, row: row["file_type"] in (None, "file")),
    ({"file_type": "symlink"}, lambda past, key, row: row["file_type"] == "symlink"),
    ({"tag": "team"}, lambda past, key, row: "team" in row["tags"]),
    ({"tag": "team=b"}, lambda past, key, row: row["tags"].get("team") == "b"),
    ({"tag": ["team=b", "x"]}, lambda past, key, row: False),
    (
        {"tag": "team=a", "larger": 1, "name": "*a*"},
        lambda past, key, row: (
            row["tags"] == {"team": "a"} and (row["content_length"] or 0) > 1 and "a" in key[2].rpartition("/")[2]
        ),
    ),
]


@pytest.mark.parametrize(("options", "meets"), CASES, ids=[str(options) for options, _ in CASES])
def test_what_is_found_is_what_meets_the_conditions(past: Past, options: dict[str, Any], meets: Meets) -> None:
    columns = ["owner", "bucket_id", "name"]
    expected = [key for key, row in by_key(past.live) if meets(past, key, row)]
    found = find(past.catalog, columns=columns, **options)
    assert found.schema.names == columns
    assert [tuple(row.values()) for row in found.to_arrow().to_pylist()] == expected
    assert found.count() == len(expected)
    gone = [(*each.key, each.row["content_length"]) for each in past.ended if meets(past, each.key, each.row)]
    ended = find(past.catalog, columns=[*columns, "content_length"], deleted=True, **options).to_arrow().to_pylist()
    assert sorted((tuple(row.values()) for row in ended), key=str) == sorted(gone, key=str)


def test_each_condition_meets_some_of_the_objects_and_not_all() -> None:
    pasts = [made(1, False), made(2, True), made(3, True)]
    rows = [(past, key, row) for past in pasts for key, row in past.live.items()]
    for options, meets in CASES[1:]:
        met = sum(meets(*each) for each in rows)
        assert met < len(rows), options
        assert met or options in ({"name": "b/a", "prefix": "a"}, {"tag": ["team=b", "x"]}), options


def test_what_statistics_know_is_a_condition_of_the_scan_and_the_rest_is_told(past: Past) -> None:
    pushed = find(past.catalog, larger=5, older="1d", storage_class="GLACIER", content_type="image/png")
    assert not isinstance(pushed, FilteredRows)
    checked = find(past.catalog, name="a/*", tag="team", columns=["name"])
    assert isinstance(checked, FilteredRows)
    assert checked.explain().endswith("checked on the rows: name, tags")
    assert checked.only(["content_length"]).schema.names == ["content_length"]
    assert checked.only(["content_length"]).to_arrow().num_rows == checked.to_arrow().num_rows


def test_a_past_moment_counts_ages_from_then(past: Past) -> None:
    at = past.world.clock() - 6 * DAY
    expected = [key[2] for key, row in by_key(past.state(at)[0]) if row["modified"] < time_at(at - 12 * DAY)]
    assert find(past.catalog, older="12d", as_of=f"@{at}", columns=["name"]).to_arrow()["name"].to_pylist() == expected
    assert {"bucket", "deleted_at"} <= {*find(past.catalog, deleted=True).schema.names}
    assert {*find(past.catalog).to_arrow()["bucket"].to_pylist()} == {*NAME_OF.values()}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"larger": "big"}, "'big' is not a size. Next: Write bytes"),
        ({"larger": "10K"}, "'10K' is not a size"),
        ({"larger": -1}, "No object has a size of -1"),
        ({"smaller": 1.5}, "1.5 is not a size"),
        ({"larger": 5, "smaller": 5}, "Nothing is both larger than 5 and smaller than 5"),
        ({"older": "1d", "newer": "1h"}, "Nothing is both newer than .* and older than"),
        ({"older": "long"}, "'long' is not a time"),
        ({"tag": "=x"}, "'=x' names no tag"),
        ({"tag": 5}, "tag is 5, which is no text"),
        ({"name": "[z-a]"}, r"'\[z-a\]' cannot be matched"),
        ({"name": 5}, "name is 5, which is no text"),
        ({"columns": ["name", "bucket", "name"]}, "The column 'name' is asked for twice"),
        ({"columns": ["name", "bucket", "name"], "name": "a*", "tag": "team"}, "The column 'name' is asked for twice"),
        ({"columns": ["*", "_version"]}, "asked for by name, and '[*]' is none. Next: Leave columns out"),
    ],
)
def test_what_is_no_condition_is_refused_before_anything_is_read(past: Past, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find(past.catalog, **options)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        (" 12 ", 12),
        ("7 B", 7),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("1.5 MB", 1_500_000),
        ("2gib", 2 << 30),
        ("0.5TiB", 1 << 39),
    ],
)
def test_sizes_are_numbers_and_units(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "-1", "1.", ".5", "1 kilo", "1e3", "10M", True, None, 9 << 60, "9EiB"])
def test_what_is_no_size_is_refused(text: Any) -> None:
    with pytest.raises(InvalidOption, match="size"):
        parse_size(text)


def test_ages_are_given_as_timedeltas_too(past: Past) -> None:
    same = [find(past.catalog, older=age, columns=["bucket_id", "name"]).to_arrow() for age in ("30d", timedelta(days=30))]
    assert len(same[0]) and same[0].equals(same[1])


@pytest.mark.parametrize(
    "asked", [{"prefix": 5}, {"prefix": b"a"}, {"prefix": "\udcff"}, {"bucket": ["cats"]}, {"owner": 7}], ids=str
)
def test_a_place_is_told_in_text(past: Past, asked: dict[str, Any]) -> None:
    for question in (du, growth, find):
        with pytest.raises(InvalidOption, match=f"{next(iter(asked))} cannot be|is not a uuid"):
            question(past.catalog, **asked)
