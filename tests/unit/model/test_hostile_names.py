"""Hostile names through the Python interface: byte-equal, or refused with a typed error. ``kit/hostile.py`` says which."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidName, InvalidOption, InvalidRows, prefix
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.store import Store
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.memory import MemoryStore

from ...kit.hostile import GOOD, HOSTILE, IN_ORDER, REFUSED, TAKEN, Hostile
from ...kit.world import BUCKET, OWNER, bucket, names, obj, rows

CASES = [pytest.param(case, id=case.label) for case in HOSTILE]
TYPED = (InvalidRows, InvalidName, InvalidOption)
FILLER = [f"filler{n:03}" for n in range(70)]


def fill(store: Store, form: str) -> None:
    """Every good name as an object and as a bucket, one way or another."""
    objects, buckets = [obj(name, etag=name) for name in GOOD], [bucket(name, region=name) for name in GOOD]
    with Catalog(store).writer("w") as writer:
        with writer.transaction() as tx:
            if form == "arrow":
                tx.put("objects", pa.Table.from_pylist(objects))
                tx.put("buckets", pa.Table.from_pylist(buckets))
            else:
                tx.put("objects", objects + ([obj(name) for name in FILLER] if form == "block" else []))
                tx.put("buckets", buckets)
        if form == "checkpoint":
            writer.checkpoint()


@pytest.fixture(scope="module", params=["inline", "block", "arrow", "checkpoint", "local"])
def each(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    store: Store = LocalStore(tmp_path_factory.mktemp("names")) if request.param == "local" else MemoryStore()
    fill(store, request.param)
    return Catalog(store).snapshot()


@pytest.fixture(scope="module", params=["block", "checkpoint"])
def snapshot(request: pytest.FixtureRequest) -> Snapshot:
    store = MemoryStore()
    fill(store, request.param)
    return Catalog(store).snapshot()


def shown(snapshot: Snapshot, **options: Any) -> list[str]:
    return [name for name in snapshot.scan("objects", **options).to_arrow()["name"].to_pylist() if name not in FILLER]


def test_the_table_holds_what_it_promises() -> None:
    assert len({case.name for case in HOSTILE}) == len({case.label for case in HOSTILE}) == len(HOSTILE)
    assert len({unicodedata.normalize("NFKC", name).casefold() for name in GOOD}) < len(GOOD)
    by_utf16 = sorted(GOOD, key=lambda name: name.encode("utf-16-be"))
    assert by_utf16 != IN_ORDER
    for case in HOSTILE:
        if case.as_name == TAKEN:
            assert len(case.name.encode()) <= 1024


def test_all_names_come_back_byte_equal_in_byte_order(each: Snapshot) -> None:
    assert shown(each) == IN_ORDER
    assert names(each, "buckets") == IN_ORDER
    assert [row["etag"] for row in rows(each) if row["name"] not in FILLER] == IN_ORDER
    assert [row["region"] for row in rows(each, "buckets")] == IN_ORDER


def test_buckets_of_all_names_have_ids_of_their_own(each: Snapshot) -> None:
    assert len({row["id"] for row in rows(each, "buckets")}) == len(GOOD)


@pytest.mark.parametrize("case", CASES)
def test_get_finds_exactly_its_name(snapshot: Snapshot, case: Hostile) -> None:
    if case.as_name == TAKEN:
        found, its_bucket = snapshot.get("objects", **obj(case.name)), snapshot.get("buckets", **bucket(case.name))
        assert found is not None and found["name"] == found["etag"] == case.name
        assert its_bucket is not None and its_bucket["region"] == case.name
    else:
        for table, key in (("objects", obj(case.name)), ("buckets", bucket(case.name))):
            with pytest.raises(TYPED):
                snapshot.get(table, **key)


@pytest.mark.parametrize("case", CASES)
def test_conditions_match_exactly_their_name(snapshot: Snapshot, case: Hostile) -> None:
    conditions = [{"name": case.name}, {"owner": OWNER, "bucket_id": BUCKET, "name": [case.name]}]
    for where in conditions:
        if case.as_marker == TAKEN:  # what no row may be called is the name of none
            assert shown(snapshot, where=where) == ([case.name] if case.as_name == TAKEN else [])
        else:
            with pytest.raises(TYPED):
                snapshot.scan("objects", where=where).to_arrow()
    if case.as_name == TAKEN:
        assert shown(snapshot, where={"etag": case.name}) == [case.name]


@pytest.mark.parametrize("case", CASES)
def test_prefix_conditions_match_what_begins_with_the_bytes(snapshot: Snapshot, case: Hostile) -> None:
    for column, leading in (("name", {"owner": OWNER, "bucket_id": BUCKET}), ("name", {}), ("etag", {})):
        where = {**leading, column: prefix(case.name)}
        if case.as_marker == TAKEN:
            assert shown(snapshot, where=where) == [n for n in IN_ORDER if n.encode().startswith(case.name.encode())]
        else:
            with pytest.raises(TYPED):
                snapshot.scan("objects", where=where).to_arrow()


def pages(snapshot: Snapshot, **options: Any) -> Iterator[tuple[list[str], list[str]]]:
    marker = None
    while True:
        page = snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, marker=marker, **options)
        yield page.rows["name"].to_pylist(), page.groups
        marker = page.next_marker
        if marker is None:
            return


@pytest.mark.parametrize("case", CASES)
def test_listings_below_a_prefix_hold_what_begins_with_the_bytes(snapshot: Snapshot, case: Hostile) -> None:
    if case.as_marker == REFUSED:
        with pytest.raises(TYPED):
            snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, prefix=case.name)
        return
    wanted = [n for n in IN_ORDER if n.encode().startswith(case.name.encode())]
    for limit in (7, 1000):
        found = [name for page, _ in pages(snapshot, prefix=case.name, limit=limit) for name in page if name not in FILLER]
        assert found == wanted


@pytest.mark.parametrize("case", CASES)
def test_listings_after_a_marker_hold_what_sorts_behind_its_bytes(snapshot: Snapshot, case: Hostile) -> None:
    def after(marker: str) -> list[str]:
        page = snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, marker=marker)
        return [name for name in page.rows["name"].to_pylist() if name not in FILLER]

    if case.as_marker == REFUSED:
        with pytest.raises(TYPED):
            after(case.name)
    else:
        assert after(case.name) == [n for n in IN_ORDER if n.encode() > case.name.encode()]


@pytest.mark.parametrize("case", CASES)
def test_listings_group_at_a_delimiters_bytes(snapshot: Snapshot, case: Hostile) -> None:
    if case.as_delimiter == REFUSED:
        with pytest.raises(TYPED):
            snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, delimiter=case.name)
        return
    raw = case.name.encode()
    heads = {n: n.encode().partition(raw) for n in IN_ORDER}
    groups = sorted({before + found for before, found, _ in heads.values() if found})
    plain = [n for n, (_, found, _) in heads.items() if not found]
    for limit in (5, 1000):
        found = list(pages(snapshot, delimiter=case.name, limit=limit))
        assert [name for page, _ in found for name in page if name not in FILLER] == plain
        assert [group.encode() for _, page in found for group in page if group not in FILLER] == groups


REFUSALS = [case for case in HOSTILE if case.as_name == REFUSED]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.label) for case in REFUSALS])
@pytest.mark.parametrize("count", [1, 70])
@pytest.mark.parametrize("table", ["objects", "buckets"])
def test_what_cannot_be_a_name_is_refused_and_nothing_is_written(table: str, count: int, case: Hostile) -> None:
    store = MemoryStore()
    make: Callable[..., dict[str, Any]] = obj if table == "objects" else bucket
    given = [make(str(n)) for n in range(count - 1)] + [make(case.name)]
    for method in ("put", "delete"):
        with Catalog(store).writer("w") as writer, pytest.raises(InvalidRows, match="name") as error, writer.transaction() as tx:
            getattr(tx, method)(table, given)
        str(error.value).encode()
        assert len(str(error.value)) < 1000
    assert list(store.list("")) == []


@pytest.mark.parametrize("case", CASES)
def test_every_event_reaches_exactly_its_name(case: Hostile) -> None:
    if case.as_name == REFUSED:
        return
    store = MemoryStore()
    fill(store, "inline")
    with Catalog(store).writer("w") as writer:
        with writer.transaction() as tx:
            tx.delete("objects", obj(case.name))
            tx.put("buckets", bucket(case.name, region="new"))
        for _ in range(2):
            found = Catalog(store).snapshot()
            assert names(found) == [name for name in IN_ORDER if name != case.name]
            assert names(found, "deleted_objects") == [case.name]
            assert [row["name"] for row in rows(found, "buckets") if row["region"] == "new"] == [case.name]
            writer.checkpoint()


def test_no_name_of_a_row_becomes_a_part_of_a_path(tmp_path: Any) -> None:
    fill(LocalStore(tmp_path / "catalog"), "checkpoint")

    assert [path.name for path in tmp_path.iterdir()] == ["catalog"]
    for info in LocalStore(tmp_path / "catalog").list(""):
        assert info.name.startswith("w/default/")
