"""``du`` and ``cost`` against the same counted in Python; and what is read for it."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidOption, NotFound
from bucketcatalog.questions import cost, du
from bucketcatalog.questions.grouping import last_components, prefixes

from ...kit.world import BUCKET, DAY, OTHER, OWNER, World, bucket, obj
from .conftest import BUCKETS, NAME_OF, Key, Past, Row, objects_of, prefix_of

PLACES = [
    {},
    {"owner": OWNER},
    {"bucket": "logs"},
    {"bucket": "pets", "owner": OTHER},
    {"bucket": BUCKETS[OWNER, "pets"]},
]


def in_place(rows: dict[Key, Row], place: dict[str, Any], prefix: str = "") -> dict[Key, Row]:
    by_id = {**place, "bucket": NAME_OF.get(place.get("bucket", ""), place.get("bucket"))}
    owner = OWNER if place.get("bucket") in NAME_OF else place.get("owner")
    return objects_of(rows, bucket=by_id["bucket"], owner=owner, prefix=prefix)


def counted(rows: dict[Key, Row], group: Any) -> list[tuple[Any, ...]]:
    objects: Counter[Any] = Counter()
    sizes: Counter[Any] = Counter()
    for key, row in rows.items():
        objects[group(key, row)] += 1
        sizes[group(key, row)] += row["content_length"] or 0
    return sorted((*found, objects[found], sizes[found]) for found in objects)


def told(found: pa.Table, *columns: str) -> list[tuple[Any, ...]]:
    rows = found.select([*columns, "objects", "bytes"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows if row["objects"])


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("ago", [None, 4 * DAY])
def test_buckets_have_the_objects_and_bytes_that_are_counted(past: Past, place: dict[str, Any], ago: int | None) -> None:
    at = None if ago is None else past.world.clock() - ago
    rows = in_place(past.state(at)[0], place)
    expected = counted(rows, lambda key, row: (key[0], NAME_OF[key[1]], key[1]))
    assert told(du(past.snapshot(at), **place), "owner", "bucket", "bucket_id") == expected
    as_of = None if at is None else f"@{at}"
    assert told(du(past.catalog, as_of=as_of, **place), "owner", "bucket", "bucket_id") == expected


def test_buckets_without_any_object_are_there_with_nothing(past: Past) -> None:
    rows = du(past.catalog, owner=OWNER).to_pylist()
    assert [(row["objects"], row["bytes"]) for row in rows if row["bucket"] == "empty"] == [(0, 0)]
    assert [row["bucket"] for row in rows] == sorted(row["bucket"] for row in rows)
    assert du(past.catalog, bucket="empty")["objects"].to_pylist() == [0]


@pytest.mark.parametrize("depth", [None, 0, 1, 2, 5])
@pytest.mark.parametrize("prefix", [None, "a", "a/", "ä", "nothing"])
def test_prefixes_have_what_lies_below_them(past: Past, depth: int | None, prefix: str | None) -> None:
    if depth is None and prefix is None:
        return
    for place in ({}, {"bucket": "logs"}):
        rows = in_place(past.live, place, prefix or "")
        expected = counted(rows, lambda key, row: (key[0], key[1], prefix_of(key[2], prefix or "", depth or 0)))
        found = du(past.catalog, prefix=prefix, depth=depth, **place)
        assert told(found, "owner", "bucket_id", "prefix") == expected
        assert sum(found["objects"].to_pylist()) == len(rows)


def test_names_are_cut_where_their_delimiters_are() -> None:
    names = pa.array(["x", "a/b/c", "a/b/", "/", "//", "", "ä/ö", "a/b/c"]).slice(1)
    assert prefixes(names, 0, 1).to_pylist() == ["a/", "a/", "/", "/", "", "ä/", "a/"]
    assert prefixes(names, 0, 2).to_pylist() == ["a/b/", "a/b/", "/", "//", "", "ä/", "a/b/"]
    assert prefixes(names.slice(0, 2), 2, 1).to_pylist() == ["a/b/", "a/b/"]
    assert last_components(names).to_pylist() == ["c", "", "", "", "", "ö", "c"]
    assert last_components(pa.array(["x", "yz"])).to_pylist() == ["x", "yz"]
    assert last_components(names.slice(0, 0)).to_pylist() == prefixes(names.slice(0, 0), 0, 1).to_pylist() == []


def of_two_sizes(sizes: list[int]) -> Catalog:
    world = World()
    with world.writer() as writer:
        rows = [obj(f"a/{number}", content_length=size) for number, size in enumerate(sizes)]
        world.commit(writer, ("put", "buckets", bucket("b", id=BUCKET)), ("put", "objects", rows))
    return world.catalog()


@pytest.mark.parametrize("options", [{}, {"depth": 1}, {"prefix": "a/"}])
def test_sums_that_64_bits_do_not_hold_are_exact(options: dict[str, Any]) -> None:
    largest = (1 << 63) - 1
    assert du(of_two_sizes([largest, 1]), **options)["bytes"].to_pylist() == [Decimal(1 << 63)]
    whole = du(of_two_sizes([largest]), **options)["bytes"]
    assert (whole.type, whole.to_pylist()) == (pa.int64(), [largest])


def test_where_sums_are_kept_no_row_is_read(fresh: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    before = du(fresh.catalog)
    fresh.checkpoint()
    snapshot = fresh.snapshot()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("rows are read")

    monkeypatch.setattr("bucketcatalog.state.sums.read_slice", refuse)
    monkeypatch.setattr("bucketcatalog.questions.asking.Asked.scan", refuse)
    assert du(snapshot).equals(before)
    with pytest.raises(AssertionError, match="rows are read"):
        du(snapshot, depth=1)


def test_a_bucket_that_has_no_row_is_told_of_by_its_id() -> None:
    world = World()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("a", content_length=3)))
    (row,) = du(world.catalog()).to_pylist()
    assert row == {"owner": OWNER, "bucket": None, "bucket_id": BUCKET, "objects": 1, "bytes": 3}


def test_what_cannot_be_asked_is_an_error_that_says_what_can(past: Past) -> None:
    with pytest.raises(InvalidOption, match="2 owners have a bucket 'pets'"):
        du(past.catalog, bucket="pets")
    with pytest.raises(NotFound, match="There is no bucket 'dogs'"):
        du(past.catalog, bucket="dogs")
    with pytest.raises(InvalidOption, match="depth is -1"):
        du(past.catalog, depth=-1)
    with pytest.raises(InvalidOption, match=r"A snapshot is of one moment .* as_of and database .* Next: Leave that out"):
        du(past.snapshot(), as_of="yesterday", database="default")
    with pytest.raises(InvalidOption, match="cannot be asked of a str"):
        du("lake")  # type: ignore[arg-type]


PRICES = {
    "STANDARD": 0.023,
    "GLACIER": {"gib_month": "0.004", "thousand_objects": 0.05, "minimum_size": "128KiB"},
    "currency": "EUR",
}


def of_class(row: Row) -> str:
    return row["storage_class"] or "STANDARD"


def priced(rows: list[Row]) -> float:
    """What rows of one class cost."""
    sizes = [row["content_length"] or 0 for row in rows]
    if of_class(rows[0]) == "STANDARD":
        return sum(sizes) / 2**30 * 0.023
    return sum(max(size, 131_072) for size in sizes) / 2**30 * 0.004 + len(sizes) * 0.05 / 1000


@pytest.mark.parametrize("depth", [None, 1])
def test_each_class_of_each_group_costs_what_its_price_says(past: Past, depth: int | None) -> None:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for key, row in past.live.items():
        prefix = () if depth is None else (prefix_of(key[2], "", depth),)
        groups.setdefault((*key[:2], *prefix, of_class(row)), []).append(row)
    found = cost(past.catalog, PRICES, depth=depth)
    names = ["owner", "bucket_id", *(["prefix"] if depth else []), "storage_class"]
    rows = {tuple(row[name] for name in names): row for row in found.to_pylist()}
    assert rows.keys() == groups.keys()
    for key, row in rows.items():
        assert row["cost"] == pytest.approx(priced(groups[key]), abs=1e-6)
        assert (row["objects"], row["currency"]) == (len(groups[key]), "EUR")
        assert row["bytes"] == sum(each["content_length"] or 0 for each in groups[key])


def test_prices_are_read_from_files(past: Past, tmp_path: Path) -> None:
    expected = cost(past.catalog, PRICES)
    (tmp_path / "p.json").write_text(json.dumps(PRICES))
    (tmp_path / "p.toml").write_text(
        'currency = "EUR"\nSTANDARD = 0.023\n[GLACIER]\ngib_month = 0.004\nthousand_objects = 0.05\nminimum_size = "128KiB"\n'
    )
    assert expected.equals(cost(past.catalog, tmp_path / "p.json"))
    assert expected.equals(cost(past.catalog, str(tmp_path / "p.toml")))


def test_a_class_without_a_price_is_named_unless_there_is_a_default(past: Past) -> None:
    with pytest.raises(InvalidOption, match=r"no price of the storage class GLACIER. Next: Add one, or a default"):
        cost(past.catalog, {"STANDARD": 1})
    with pytest.raises(InvalidOption, match="classes GLACIER, STANDARD"):
        cost(past.catalog, {"OTHER": 1})
    assert sum(cost(past.catalog, {"default": 1})["cost"].to_pylist()) == pytest.approx(
        sum(row["content_length"] or 0 for row in past.live.values()) / 2**30, abs=1e-4
    )


@pytest.mark.parametrize(
    ("prices", "message"),
    [
        ({}, "There is no price"),
        ({"currency": "USD"}, "There is no price"),
        ({"currency": 5, "STANDARD": 1}, "The currency 5 is no text"),
        ({"STANDARD": "much"}, "The price of STANDARD is 'much', which is no number"),
        ({"STANDARD": True}, "is True, which is no number"),
        ({"STANDARD": -1}, "is -1. Next: Give one from 0 on"),
        ({"STANDARD": float("nan")}, "The price of STANDARD is nan"),
        ({"STANDARD": {}}, "has no gib_month"),
        ({"STANDARD": {"gib_month": 1, "per_mile": 2}}, "has a 'per_mile' that nobody knows"),
        ({"STANDARD": {"gib_month": 1, "minimum_size": "wide"}}, "'wide' is not a size"),
        (5, "The prices are a int"),
        ("missing.toml", "'missing.toml' cannot be read: No such file"),
    ],
)
def test_what_is_no_price_list_is_refused(past: Past, prices: Any, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        cost(past.catalog, prices)


def test_files_that_hold_no_prices_are_refused(past: Past, tmp_path: Path) -> None:
    for name, text, message in (("a.toml", "= 5", "cannot be read"), ("b.json", "[1]", "has no table of prices")):
        (tmp_path / name).write_text(text)
        with pytest.raises(InvalidOption, match=message):
            cost(past.catalog, tmp_path / name)
