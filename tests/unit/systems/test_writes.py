"""Rows put under a name that a system takes: what is written, when it can still be committed, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, ClosedWriter, IncompatibleTable, InvalidOption, InvalidRows, StaleRead, UnknownTable
from bucketcatalog.format.definitions import tables_of
from bucketcatalog.limits import LATENESS_BOUND, MAX_SNAPSHOT_AGE, Limits
from bucketcatalog.query.database import Database
from bucketcatalog.store.wrappers import Counting
from bucketcatalog.write.parts import WritePlace, Writes
from bucketcatalog.write.writer import Writer

from ...kit.world import HOUR, Intervening, World, bucket, messages, names, proto, rows, stored

pytestmark = pytest.mark.usefixtures("with_boxes")


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def writer(world: World) -> Writer:
    return world.writer()


def test_parts_that_may_be_deleted_as_orphans_are_not_committed(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "boxes.boxes", {"name": "a", "grams": 1}))
    transaction = writer.transaction()
    transaction.__enter__().put("packed.a", {"size": 1})
    world.clock.tick(48 * HOUR)
    (orphan,) = world.catalog().orphans(dry_run=False, writer="maintainer-m")
    assert orphan.deleted
    why = "What the transaction rests on was read, or began to be written, 2d ago, and may be gone. Next: Begin again from the start"
    with pytest.raises(StaleRead, match=why):
        transaction.__exit__(None, None, None)
    assert "packed.a" not in world.snapshot().tables


def test_a_transaction_is_as_old_as_the_first_thing_that_it_has_written_or_looked_up(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "boxes.boxes", {"name": "a", "label": "L-a", "grams": 1}))

    def half_the_time() -> None:
        world.clock.tick((MAX_SNAPSHOT_AGE - LATENESS_BOUND) // 2 + 1)

    for first, second in [("packed", "boxes"), ("boxes", "packed"), ("packed", "packed")]:
        tx = writer.transaction().__enter__()
        for what in (first, second):
            if what == "packed":
                tx.put("packed.a", {"size": 1})
            else:
                tx.delete("boxes.boxes", {"name": "a", "label": "L-a"})
            half_the_time()
        with pytest.raises(StaleRead):
            tx.__exit__(None, None, None)
    with writer.transaction() as tx:
        tx.put("packed.a", [])
        half_the_time()
        tx.put("packed.a", {"size": 2})
        half_the_time()
    assert rows(world.snapshot(), "packed.a") == [{"size": 2}]
    assert [row["name"] for row in rows(world.snapshot(), "boxes.boxes")] == ["a"]
    assert len(stored(world, ".parquet")) == 5


def test_a_part_counts_from_before_it_was_written(world: World) -> None:
    slow = World(Intervening(world.store, "w/default/data/", lambda: world.clock.tick(MAX_SNAPSHOT_AGE)))
    slow.clock = world.clock
    with pytest.raises(StaleRead), slow.writer().transaction() as tx:
        tx.put("packed.a", {"size": 1})


def test_dicts_have_the_columns_that_any_of_them_has(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "packed.a", [{}, {"size": 1}, {"name": "x", "size": None}, {"size": 3, "name": "y"}]))
    assert world.snapshot().scan("packed.a").to_arrow().to_pylist() == [
        {"size": None, "name": None},
        {"size": 1, "name": None},
        {"size": None, "name": "x"},
        {"size": 3, "name": "y"},
    ]


def in_a_stream(rows: list[dict[str, Any]]) -> pa.RecordBatchReader:
    return pa.Table.from_pylist(rows).to_reader()


@pytest.mark.parametrize("form", [list, tuple, iter, pa.Table.from_pylist, pa.RecordBatch.from_pylist, in_a_stream])
def test_rows_of_no_table_are_written_however_they_are_given(world: World, writer: Writer, form: Any) -> None:
    given = [{"size": 1, "name": "x"}, {"size": 2, "name": "y"}]
    world.commit(writer, ("put", "packed.a", form(given)))
    assert rows(world.snapshot(), "packed.a") == given


@pytest.mark.parametrize("given", [[], pa.table({"size": pa.array([], pa.int64())}), pa.table({}), iter([])])
def test_nothing_is_written_for_no_rows(world: World, writer: Writer, given: Any) -> None:
    world.commit(writer, ("put", "buckets", bucket("x")), ("put", "packed.a", given))
    assert stored(world, ".parquet") == [] and "packed.a" not in world.snapshot().tables


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, "1 rows for 'packed.a' have no columns"),
        ([{}, {}], "have no columns"),
        (pa.table({"x": [1]}).select([]), "have no columns"),
        (pa.table([[1], [2]], names=["x", "x"]), "Rows for 'packed.a' have the column 'x' twice. Next: Give it once"),
        (pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]), "have the column 'x' twice"),
        (7, "7 is no row for 'packed.a'."),
        ("abc", "Row 0 for 'packed.a' is no mapping"),
        (b"abc", "Row 0 for 'packed.a' is no mapping"),
        ([{"x": 1}, 7], "Row 1 for 'packed.a' is no mapping"),
        ([{"x": 1}, {2: 1}], "Rows for 'packed.a' have the column 2, which is no name"),
        ([{"x": 1}, {"x": "s"}], "Column 'x' for 'packed.a': "),
        ([{"x": 1 << 70}], "Column 'x' for 'packed.a': "),
        ([{"x": "\ud800"}], "Column 'x' for 'packed.a': "),
        ([{"x": object()}], "Column 'x' for 'packed.a': "),
    ],
)
def test_what_makes_no_columns_is_refused_and_nothing_is_written(world: World, writer: Writer, given: Any, why: str) -> None:
    with pytest.raises(InvalidRows, match=re.escape(why)), writer.transaction() as tx:
        tx.put("packed.a", given)
    assert stored(world) == []


@pytest.mark.parametrize("condition", [{"expect": "absent"}, {"data_of": []}])
def test_rows_that_a_system_keeps_are_put_without_conditions(world: World, writer: Writer, condition: dict[str, Any]) -> None:
    why = "'packed.a' is no table of the catalog: its rows are put, and a transaction cannot put them under conditions."
    with pytest.raises(UnknownTable, match=re.escape(why)), writer.transaction() as tx:
        tx.put("packed.a", {"size": 1}, **condition)
    why = "its rows are put, and a transaction cannot delete them."
    with pytest.raises(UnknownTable, match=re.escape(why)), writer.transaction() as tx:
        tx.delete("packed.a", {"size": 1})
    assert stored(world) == []


def test_a_closed_writer_writes_no_part(world: World, writer: Writer) -> None:
    tx = writer.transaction().__enter__()
    writer.close()
    with pytest.raises(ClosedWriter):
        tx.put("packed.a", {"size": 1})
    assert stored(world) == []


LUNCH = 'message Lunch { option (table) = { name: "packed.lunch" key: "k" }; string k = 1; optional int64 n = 2; }'


def lunch(world: World, body: str = LUNCH) -> Catalog:
    """A catalog that knows the table, as one where no system is installed that keeps the name for itself."""
    catalog = world.catalog()
    (table,) = tables_of(messages(proto(body))["Lunch"])
    catalog.registry.know(table)
    return catalog


def test_rows_of_a_table_of_the_database_go_there_also_where_a_system_takes_such_names(world: World) -> None:
    world.commit(world.writer("v", catalog=lunch(world)), ("put", "packed.lunch", {"k": "a", "n": 1}))
    with world.writer() as writer:  # of a process that has not registered it: its definition is in the log
        world.commit(writer, ("put", "packed.lunch", [{"k": "b"}, {"k": "c"}]), ("put", "packed.dinner", {"size": 1}))
        world.commit(writer, ("delete", "packed.lunch", {"k": "c"}), ("update", "packed.lunch", {"k": "a", "n": 2}))
    snapshot = world.snapshot()
    assert rows(snapshot, "packed.lunch") == [{"k": "a", "n": 2}, {"k": "b", "n": None}]
    assert [row["box"] for row in rows(snapshot, "boxes.parts")] == ["dinner"]


def test_rows_of_a_table_that_cannot_be_read_go_nowhere_else(world: World) -> None:
    one, two = lunch(world), lunch(world, LUNCH.replace("int64", "string"))
    with world.writer("maintainer-v", catalog=one).transaction() as tx:
        tx.put("packed.lunch", {"k": "a", "n": 1})
        world.commit(world.writer("maintainer-u", catalog=two), ("put", "packed.lunch", {"k": "a", "n": "1"}))
    with pytest.raises(IncompatibleTable, match=r"packed\.lunch"), world.writer().transaction() as tx:
        tx.put("packed.lunch", {"k": "b"})
    assert stored(world, ".parquet") == []


def test_a_writer_looks_once_whether_what_a_system_takes_is_a_table(world: World) -> None:
    counted = World(Counting(world.store))
    writer = counted.writer()
    assert isinstance(counted.store, Counting)
    requests = counted.store.requests
    world.commit(writer, ("put", "packed.a", {"size": 1}), ("put", "packed.b", {"size": 1}))
    asked = []
    for names_ in (["packed.a"], ["packed.c", "packed.d"]):
        before = requests.copy()
        world.commit(writer, *(("put", name, {"size": 2}) for name in names_))
        asked.append(dict(requests - before))
    assert asked == [{"put": 2}, {"put": 3}]


def test_nobody_is_asked_for_names_of_the_core(world: World) -> None:
    asked: list[str] = []

    def takes(name: str) -> Writes | None:
        asked.append(name)
        return None

    with Writer(Database(world.store, "default"), "w", world.clock, Limits(), takes=takes) as writer, writer.transaction() as tx:
        tx.put("buckets", bucket("a"))
        tx.delete("buckets", bucket("b"))
        for name in ("nothing", "log", "deleted_objects", "", 5):
            with pytest.raises(UnknownTable):
                tx.put(name, bucket("c"))  # type: ignore[arg-type]
        with pytest.raises(UnknownTable):
            tx.put("packed.a", bucket("c"))
    assert asked == ["packed.a"]
    assert names(world.snapshot(), "buckets") == ["a"]


def test_an_option_that_a_write_does_not_take_is_refused_by_name(world: World) -> None:
    catalog = world.catalog()
    writes = catalog.registry.writes("packed.a")
    assert writes is not None
    place = WritePlace(world.store, "w", "default", catalog.database("default").look)
    with pytest.raises(InvalidOption, match=r"A write of 'packed\.a' takes no option 'bloom_filters'"):
        writes.begin(place, "packed.a", pa.schema([("size", pa.int64())]), bloom_filters=("size",))
