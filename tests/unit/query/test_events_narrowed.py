"""Events and differences narrowed by key and by column: what else there is is not fetched, and conditions on other columns are refused."""

from __future__ import annotations

from secrets import token_hex
from typing import Any

import pyarrow as pa
import pytest
from pyarrow.compute import field

from bucketcatalog import Catalog, InvalidOption, between, prefix
from bucketcatalog.query.changes import Changes
from bucketcatalog.query.difference import Diff
from bucketcatalog.store.faults import Counting

from ...kit.world import BUCKET, OWNER, World, bucket, obj

ASKED = ["owner", "bucket_id", "name", "etag", "_change_type", "_version"]
COUNT = 100_000
"""Objects of one transaction: segments of seven row groups, read in parts."""


@pytest.fixture(scope="module")
def world() -> World:
    """A large transaction whose rows are mostly etags, a smaller one, one of a few blocks and one of single events."""
    found = World.counting()
    with found.writer() as writer:
        found.commit(writer, ("put", "buckets", bucket("b", id=BUCKET)))
        found.commit(writer, ("put", "objects", wide(0, COUNT)))
        found.commit(writer, ("put", "objects", wide(COUNT, 30_000)))
        found.commit(writer, ("delete", "objects", wide(0, 9_000).select(["owner", "bucket_id", "name"])))
        found.commit(writer, ("put", "objects", [obj("zz"), obj("0000007")]))
    return found


def wide(first: int, count: int) -> pa.Table:
    """Rows with names in order and etags at random."""
    columns = {"owner": pa.repeat(OWNER, count), "bucket_id": pa.repeat(BUCKET, count)}
    names, etags = ([f"{n:07}" for n in range(first, first + count)], [token_hex(16) for _ in range(count)])
    return pa.table({**columns, "name": pa.array(names), "etag": pa.array(etags)})


def read(world: World, what: str, **options: Any) -> Changes | Diff:
    found = getattr(Catalog(world.store), what)(**options)
    assert isinstance(found, Changes | Diff)
    return found


@pytest.mark.parametrize("what", ["changes", "diff"])
@pytest.mark.parametrize(
    "where",
    [
        {"name": "0000007"},
        {"name": [f"{n * 311:07}" for n in range(300)]},
        {"owner": OWNER, "bucket_id": BUCKET, "name": prefix("0050")},
        {"owner": OWNER, "bucket_id": BUCKET, "name": between("0008990", "0009010")},
        {"owner": OWNER, "bucket_id": BUCKET, "name": [f"{n * 311:07}" for n in range(300)]},
        {"owner": OWNER, "bucket_id": BUCKET, "name": "nothing"},
        {"bucket_id": OWNER},
        {"name": []},
        {"name": None},
        {},
    ],
    ids=str,
)
def test_narrowed_by_key_it_is_what_is_left_of_everything(world: World, what: str, where: dict[str, Any]) -> None:
    everything = read(world, what).only(ASKED).to_arrow().to_pylist()
    left = [row for row in everything if all(_meets(value, row[name]) for name, value in where.items())]

    found = read(world, what, where=where).only(ASKED)
    assert found.to_arrow().to_pylist() == left
    tasks = found.tasks(1)
    assert [row for task in tasks for rows in task.read(world.store) for row in rows.to_pylist()] == left
    assert sum(task.rows for task in tasks) >= len(left)


def _meets(condition: Any, value: str) -> bool:
    if isinstance(condition, list):
        return value in condition
    if hasattr(condition, "text"):
        return value.startswith(condition.text)
    if hasattr(condition, "low"):
        return bool(condition.low <= value <= condition.high)
    return bool(value == condition)


def fetched(world: World, made: Changes | Diff) -> tuple[int, int]:
    """The requests for ranges that reading it all makes, and their bytes."""
    counted = counting(world)
    made.to_arrow()
    return counted.requests["get_range"], counted.bytes_read


def counting(world: World) -> Counting:
    """The store, whose counts begin anew."""
    assert isinstance(world.store, Counting)
    world.store.reset()
    return world.store


@pytest.mark.parametrize("what", ["changes", "diff"])
def test_blocks_of_other_keys_are_not_fetched(world: World, what: str) -> None:
    _, everything = fetched(world, read(world, what))
    where = {"owner": OWNER, "bucket_id": BUCKET, "name": prefix("01000")}
    requests, few = fetched(world, read(world, what, where=where))

    assert everything > COUNT * 16
    assert few < everything / 6 and requests <= 6


def test_segments_of_other_keys_are_not_opened(world: World) -> None:
    where = {"owner": OWNER, "bucket_id": BUCKET, "name": prefix("zz")}
    assert fetched(world, read(world, "changes", where=where)) == (0, 0)
    assert read(world, "changes", where=where).to_arrow()["name"].to_pylist() == ["zz"]


@pytest.mark.parametrize("what", ["changes", "diff"])
def test_other_columns_are_not_fetched(world: World, what: str) -> None:
    made = read(world, what)
    _, everything = fetched(world, made)
    _, few = fetched(world, read(world, what).only(["name", "_change_type"]))

    assert few < everything / 3


@pytest.mark.parametrize("what", ["changes", "diff"])
def test_planning_tasks_of_events_fetches_nothing_and_of_a_difference_indexes_alone(world: World, what: str) -> None:
    made = read(world, what)
    counted = counting(world)
    tasks = made.tasks(1)
    assert len(tasks) > 1
    assert counted.bytes_read < 100_000 and (what == "diff" or counted.bytes_read == 0)


@pytest.mark.parametrize("what", ["changes", "diff"])
@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"etag": "x"}, "'etag' is not one of the key of table 'objects'.*Next: Give conditions on owner, bucket_id, name"),
        ({"_change_type": "put"}, "'_change_type' is not one of the key"),
        ({"_version": None}, "'_version' is not one of the key"),
        ({"bucket": "cats"}, r"cannot be on 'bucket' here.*Next: Give the name as bucket=\.\.\., in Spark as the option bucket"),
        ("bucket = 'cats' and name = 'a'", "cannot be on 'bucket' here"),
        (field("bucket") == "cats", "cannot be on 'bucket' here"),
        ({"nome": "a"}, "Table 'objects' has no column 'nome'"),
        ({"name": 7}, "The condition on column 'name' of table 'objects' does not fit"),
        ({"owner": "me"}, "The condition on column 'owner'"),
        (["name"], r"\['name'\] is not a condition"),
    ],
)
def test_conditions_on_anything_else_are_refused(world: World, what: str, where: Any, message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        read(world, what, where=where)


@pytest.mark.parametrize("what", ["changes", "diff"])
def test_columns_that_there_are_not_are_refused(world: World, what: str) -> None:
    for columns, message in ((["nome"], "has no column 'nome'"), (["name", "name"], "asked for twice")):
        with pytest.raises(InvalidOption, match=message):
            read(world, what).only(columns)
