"""Rows that name their bucket where they would have its id: in every form in which rows are given, and by whatever is live then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from bucketcatalog import InvalidOption, InvalidRows, NotFound
from bucketcatalog.store.faults import Counting

from ...kit.world import OTHER, OWNER, World, bucket, obj

Row = dict[str, Any]
FORMS: dict[str, Callable[[list[Row]], Any]] = {
    "dicts": lambda rows: rows,
    "table": pa.Table.from_pylist,
    "batch": pa.RecordBatch.from_pylist,
    "stream": lambda rows: pa.Table.from_pylist(rows).to_reader(),
    "frame": pd.DataFrame,
}


@pytest.fixture
def world() -> World:
    found = World.counting()
    with found.writer() as w:
        found.commit(
            w, ("put", "buckets", [bucket("pets"), bucket("cars"), bucket("shared"), {"owner": OTHER, "name": "shared"}])
        )
    return found


def live(world: World, **asked: Any) -> list[tuple[str, str]]:
    rows = world.snapshot().scan("objects", columns=["bucket", "name"], **asked).to_arrow().to_pylist()
    return sorted((row["bucket"], row["name"]) for row in rows)


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_put_updated_and_deleted_by_the_names_of_their_buckets(world: World, form: str) -> None:
    made = FORMS[form]
    with world.writer() as w:
        world.commit(w, ("put", "objects", made([{"bucket": "pets", "name": "a"}, {"bucket": "cars", "name": "b"}])))
        assert live(world) == [("cars", "b"), ("pets", "a")]
        world.commit(
            w, ("put", "objects", made([{"bucket": "shared", "owner": owner, "name": owner[0]} for owner in (OTHER, OWNER)]))
        )
        assert live(world, owner=OTHER) == [("shared", "2")] and live(world, bucket="shared", owner=OWNER) == [("shared", "1")]
        version = world.snapshot().scan("objects", bucket="pets", columns=["_version"]).to_arrow()["_version"][0].as_py()
        world.commit(w, ("update", "objects", made([{"bucket": "pets", "name": "a", "etag": "x", "_version": version}])))
        found = world.snapshot().get("objects", bucket="pets", name="a")
        assert found is not None and found["etag"] == "x"
        world.commit(w, ("delete", "objects", made([{"bucket": "pets", "name": "a"}])))
        assert live(world, prefix="a") == []


@pytest.mark.parametrize("form", FORMS)
def test_names_that_mean_nothing_certain_are_refused_and_nothing_is_added(world: World, form: str) -> None:
    made = FORMS[form]
    with world.writer() as w, w.transaction() as tx:
        tx.put("objects", {"bucket": "pets", "name": "kept"})
        with pytest.raises(InvalidOption, match=f"2 owners have a bucket 'shared': {OWNER}; {OTHER}"):
            tx.put("objects", made([{"bucket": "pets", "name": "a"}, {"bucket": "shared", "name": "b"}]))
        with pytest.raises(NotFound, match="no bucket 'never'"):
            tx.put("objects", made([{"bucket": "never", "name": "a"}]))
        with pytest.raises(InvalidRows, match=r"says bucket_id '1111.*and the bucket that it names has"):
            tx.put("objects", made([{"bucket": "pets", "bucket_id": OWNER, "name": "a"}]))
        with pytest.raises(InvalidRows, match="column 'bucket', which it does not take"):
            tx.put("buckets", made([{"owner": OWNER, "bucket": "x", "name": "x"}]))
    assert live(world) == [("pets", "kept")]


def test_rows_with_and_without_names_go_together_and_what_says_the_same_is_no_contradiction(world: World) -> None:
    id_ = world.snapshot().scan("buckets", bucket="pets", columns=["id"]).to_arrow()["id"][0].as_py()
    mixed = [
        {"bucket": "pets", "name": "a"},
        obj("b", bucket_id=id_),
        {"bucket": "pets", "bucket_id": id_, "owner": OWNER, "name": "c"},
    ]
    with world.writer() as w:
        world.commit(w, ("put", "objects", mixed))
        columns = dict.fromkeys(("bucket", "owner", "bucket_id"))
        world.commit(w, ("put", "objects", pa.Table.from_pylist([{**columns, **row, "name": row["name"] * 2} for row in mixed])))
    assert live(world) == [("pets", name) for name in ("a", "aa", "b", "bb", "c", "cc")]


def test_what_the_transaction_itself_puts_and_ends_counts(world: World) -> None:
    with world.writer() as w:
        with w.transaction() as tx:
            tx.put("buckets", bucket("new"))
            tx.put("objects", {"bucket": "new", "name": "a"})
            tx.put("buckets", pa.Table.from_pylist([{"owner": OTHER, "name": "pets"}]))
            with pytest.raises(InvalidOption, match="2 owners have a bucket 'pets'"):
                tx.put("objects", {"bucket": "pets", "name": "a"})
            tx.put("objects", {"bucket": "pets", "owner": OTHER, "name": "b"})
            tx.delete("buckets", bucket("cars"))
            with pytest.raises(NotFound, match="'cars' is ended by the same transaction"):
                tx.put("objects", {"bucket": "cars", "name": "a"})
            tx.put("buckets", bucket("cars"))
            tx.put("objects", {"bucket": "cars", "name": "c"})
        again = world.snapshot().scan("buckets", bucket="cars", columns=["id"]).to_arrow()["id"][0].as_py()
        row = world.snapshot().get("objects", bucket="cars", name="c")
        assert row is not None and row["bucket_id"] == again
    assert live(world) == [("cars", "c"), ("new", "a"), ("pets", "b")]


def test_rows_with_ids_cost_no_look_and_names_one_a_transaction(world: World) -> None:
    store = world.store
    assert isinstance(store, Counting)
    with world.writer() as w:
        world.commit(w, ("put", "objects", obj("warm")))
        costs = []
        for rows in (
            [obj("x")],
            [{"bucket": "pets", "name": "a"}],
            [{"bucket": name, "name": f"{n}"} for n in range(50) for name in ("pets", "cars")],
        ):
            store.reset()
            world.commit(w, ("put", "objects", rows))
            costs.append(sum(store.requests.values()))
    assert costs[0] == 1 < costs[2] <= costs[1]
