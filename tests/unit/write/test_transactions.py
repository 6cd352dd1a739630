"""Transactions: what they take and refuse, and that whatever is refused or interrupted commits nothing."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import (
    BucketCatalogError,
    ClosedWriter,
    InvalidOption,
    InvalidRows,
    InvalidVersion,
    StoreUnavailable,
    UnknownTable,
)
from bucketcatalog.model.names import writer_id
from bucketcatalog.store.faults import Counting, Failing, LostResponses
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write.transaction import WriteTransaction
from bucketcatalog.write.writer import Writer

from ...kit.world import BUCKET, OTHER, OWNER, Clock, World, bucket, names, obj, rows, time_at, version

PAST = "018bcfe5-6800-7000-8000-000000000001"  # version 7, and older than the clock
ID_1, ID_2 = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def writer(world: World) -> Writer:
    return world.writer()


class TestCommitting:
    def test_first_commit_is_revision_zero_and_one_put(self, world: World) -> None:
        store = Counting(world.store)
        writer = World(store).catalog().writer("w", clock=world.clock)
        store.reset()
        with writer.transaction() as tx:
            tx.put("objects", obj("a"))

        assert store.requests == {"put": 1}
        assert tx.committed is not None and (tx.committed.revision, tx.committed.version) == (0, "w@0")
        assert uuid.UUID(tx.committed.uuid).version == 7 and tx.committed.commit_time == world.clock.now

    def test_later_commits_are_one_put_each_also_after_reopening(self, world: World, writer: Writer) -> None:
        for n in range(3):
            assert world.commit(writer, ("put", "objects", obj(str(n)))).revision == n
        writer.close()
        again = world.writer()
        assert world.commit(again, ("put", "objects", obj("3"))).revision == 3
        assert names(world.snapshot()) == ["0", "1", "2", "3"]

    def test_commit_times_rise_while_the_clock_stands_still(self, world: World, writer: Writer) -> None:
        times = []
        for n in range(5):
            with writer.transaction() as tx:
                tx.put("objects", obj(str(n)))
            assert tx.committed is not None
            times.append(tx.committed.commit_time)

        assert times == [world.clock.now + n for n in range(5)]

    def test_a_transaction_without_events_is_a_commit(self, world: World, writer: Writer) -> None:
        assert world.commit(writer).revision == 0
        assert world.commit(writer, ("put", "objects", [])).revision == 1
        assert world.snapshot().scan("objects").to_arrow().num_rows == 0
        assert world.snapshot().scan("log").to_arrow()["events"].to_pylist() == [0, 0]

    def test_an_empty_arrow_table_is_no_event(self, world: World, writer: Writer) -> None:
        nothing = pa.table(
            {"owner": pa.array([], pa.string()), "bucket_id": pa.array([], pa.string()), "name": pa.array([], pa.string())}
        )
        for method in ("put", "delete"):
            world.commit(writer, (method, "objects", nothing))

        assert world.snapshot().scan("log").to_arrow()["events"].to_pylist() == [0, 0]
        assert names(world.snapshot()) == []

    def test_an_exception_in_the_block_commits_nothing(self, world: World, writer: Writer) -> None:
        def fail() -> None:
            with writer.transaction() as tx:
                transactions.append(tx)
                tx.put("objects", obj("a"))
                raise ZeroDivisionError

        transactions: list[WriteTransaction] = []
        with pytest.raises(ZeroDivisionError):
            fail()
        (tx,) = transactions
        assert tx.committed is None and list(world.store.list("")) == []
        assert world.commit(writer, ("put", "objects", obj("b"))).revision == 0
        assert names(world.snapshot()) == ["b"]

    def test_rows_that_were_refused_leave_the_others_of_the_transaction_alone(self, world: World, writer: Writer) -> None:
        with writer.transaction() as tx:
            tx.put("objects", obj("a"))
            with pytest.raises(InvalidRows):
                tx.put("objects", [obj("b"), obj("c", strange=1)])
            tx.put("objects", obj("d"))

        assert names(world.snapshot()) == ["a", "d"]

    def test_operation_metadata_and_metrics_are_kept(self, world: World, writer: Writer) -> None:
        with writer.transaction(operation="upload", metadata={"job": "7", "é": ""}) as tx:
            tx.put("objects", obj("a"))
            tx.metrics["rows"] = 1

        (entry,) = rows(world.snapshot(), "log")
        assert entry["operation"] == "upload" and entry["metadata"] == [("job", "7"), ("é", "")]

    @pytest.mark.parametrize(
        "options",
        [
            {"operation": 5},
            {"operation": "\ud800"},
            {"metadata": {"a": 1}},
            {"metadata": {1: "a"}},
            {"metadata": {"a": "\udfff"}},
            {"metadata": "text"},
            {"app_id": "x"},
            {"app_version": 1},
            {"app_id": 5, "app_version": 1},
            {"app_id": "x", "app_version": "1"},
            {"app_id": "x", "app_version": 2**63},
            {"app_id": "\ud800", "app_version": 1},
        ],
        ids=str,
    )
    def test_options_that_do_not_fit_are_refused(self, world: World, writer: Writer, options: dict[str, Any]) -> None:
        with pytest.raises(InvalidOption), writer.transaction(**options) as tx:
            tx.put("objects", obj("a"))
        assert list(world.store.list("")) == []


class TestClosed:
    def test_a_closed_writer_takes_nothing(self, world: World, writer: Writer) -> None:
        writer.close()
        writer.close()

        for attempt in (writer.transaction, writer.checkpoint):
            with pytest.raises(ClosedWriter):
                attempt()

    def test_a_transaction_open_when_its_writer_closes_commits_nothing(self, world: World, writer: Writer) -> None:
        tx = writer.transaction()
        tx.__enter__()
        tx.put("objects", obj("a"))
        writer.close()
        with pytest.raises(ClosedWriter):
            tx.__exit__(None, None, None)
        assert list(world.store.list("")) == []

    def test_a_transaction_outside_of_with_takes_nothing(self, world: World, writer: Writer) -> None:
        tx = writer.transaction()
        for method in (tx.put, tx.update, tx.delete, tx.purge):
            with pytest.raises(ClosedWriter) as error:
                method("objects", obj("a"))
            assert "with writer.transaction()" in error.value.next_step

    def test_a_transaction_is_entered_once(self, world: World, writer: Writer) -> None:
        with writer.transaction() as tx:
            tx.put("objects", obj("a"))
            with pytest.raises(ClosedWriter):
                tx.__enter__()
            tx.put("objects", obj("b"))
        with pytest.raises(ClosedWriter):
            tx.__enter__()
        assert names(world.snapshot()) == ["a", "b"]
        assert world.snapshot().scan("log").to_arrow().num_rows == 1

    def test_an_ended_transaction_takes_nothing(self, world: World, writer: Writer) -> None:
        with writer.transaction() as tx:
            pass
        for method in (tx.put, tx.update, tx.delete, tx.purge):
            with pytest.raises(ClosedWriter):
                method("objects", obj("a"))

    def test_a_commit_that_the_store_refused_may_be_tried_again(self, world: World) -> None:
        failing = Failing(world.store, at=0, error=StoreUnavailable("down"), methods=("put",))
        writer = World(failing).catalog().writer("w", clock=world.clock)
        with pytest.raises(StoreUnavailable), writer.transaction() as tx:
            tx.put("objects", obj("a"))
        assert tx.committed is None and list(world.store.list("")) == []
        assert world.commit(writer, ("put", "objects", obj("b"))).revision == 0
        assert names(world.snapshot()) == ["b"]

    @pytest.mark.parametrize("landed", [False, True])
    def test_a_lost_response_is_met_with_the_same_bytes_again(
        self, world: World, landed: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("bucketcatalog.clock.sleep", lambda _: None)
        store = Counting(LostResponses(world.store, landed=landed, puts=[0, 1]))
        writer = World(store).catalog().writer("w", clock=world.clock)
        committed = world.commit(writer, ("put", "objects", obj("a")))

        assert committed.revision == 0 and store.requests["put"] == 3
        assert len({name for method, name in store.names if method == "put"}) == 1
        assert names(world.snapshot()) == ["a"] and len(rows(world.snapshot(), "log")) == 1


def as_arrow(given: list[dict[str, Any]]) -> pa.Table:
    types = {"headers": pa.map_(pa.string(), pa.string()), "tags": pa.map_(pa.string(), pa.string())}
    columns = list(dict.fromkeys(name for row in given for name in row))
    data = {}
    for name in columns:
        values = [sorted(v.items()) if isinstance(v := row.get(name), dict) and name in types else v for row in given]
        data[name] = pa.array(values, types.get(name))
    return pa.table(data)


FULL = {
    "id": ID_1,
    "created": datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC),
    "content_length": 5,
    "content_md5": b"\x00\xff",
    "content_type": "",
    "headers": {"a": "", "b": "é"},
    "roles": [OWNER, OTHER],
    "sharks": ["x:1", ""],
    "properties": '{"a":1}',
    "legal_hold": False,
    "tags": {},
    "parts": -1,
}


class TestInputs:
    """The same rows give the same state, however they are given and however many they are."""

    @pytest.mark.parametrize("count", [1, 2, 64, 65, 200])
    @pytest.mark.parametrize("form", ["dicts", "arrow", "batch", "singles", "mixed", "tuple", "generator"])
    def test_every_form_gives_the_same_state(self, form: str, count: int) -> None:
        given = [obj(f"{n:03}", **(FULL if n % 2 else {})) for n in range(count)]
        more = [obj("~")] if form == "mixed" else []
        world = World()
        writer = world.writer()
        with writer.transaction() as tx:
            match form:
                case "dicts":
                    tx.put("objects", given)
                case "arrow":
                    tx.put("objects", as_arrow(given))
                case "batch":
                    tx.put("objects", as_arrow(given).combine_chunks().to_batches()[0])
                case "singles":
                    for row in given:
                        tx.put("objects", row)
                case "mixed":
                    tx.put("objects", given[:1])
                    tx.put("objects", as_arrow(given[1:] + more))
                case "tuple":
                    tx.put("objects", tuple(given))
                case _:
                    tx.put("objects", (row for row in given))  # type: ignore[arg-type]
        for step in ("log", "checkpoint"):
            found = rows(world.snapshot(), "objects")
            assert len(found) == count + len(more), step
            for n in range(count):
                expected = (
                    dict.fromkeys(found[n])
                    | obj(f"{n:03}")
                    | {"created": time_at(world.clock.now), "modified": time_at(world.clock.now)}
                )
                if n % 2:
                    expected |= FULL | {"headers": [("a", ""), ("b", "é")], "tags": None}
                assert found[n] == expected, step
            writer.checkpoint()

    @pytest.mark.parametrize("count", [1, 65])
    def test_empty_lists_and_maps_read_as_unset(self, world: World, writer: Writer, count: int) -> None:
        given = [obj(f"{n}", sharks=[], headers={}, tags=None) for n in range(count)]
        arrow = as_arrow([obj(f"a{n}") for n in range(count)])
        arrow = arrow.append_column("sharks", pa.array([[]] * count, pa.list_(pa.string())))
        arrow = arrow.append_column("headers", pa.array([[]] * count, pa.map_(pa.string(), pa.string())))
        world.commit(writer, ("put", "objects", given))
        world.commit(writer, ("put", "objects", arrow))

        found = rows(world.snapshot(), "objects", ["sharks", "headers", "tags"])
        assert found == [{"sharks": None, "headers": None, "tags": None}] * (2 * count)

    @pytest.mark.parametrize("count", [1, 65])
    def test_a_key_twice_in_a_map_is_refused_or_counts_once(self, world: World, writer: Writer, count: int) -> None:
        pairs = [("a", "1"), ("a", "2")]
        results = []
        for name, given in (
            ("d", [obj(f"d{n}", headers=pairs) for n in range(count)]),
            (
                "a",
                as_arrow([obj(f"a{n}") for n in range(count)]).append_column(
                    "headers", pa.array([pairs] * count, pa.map_(pa.string(), pa.string()))
                ),
            ),
        ):
            try:
                world.commit(writer, ("put", "objects", given))
            except InvalidRows:
                results.append("refused")
            else:
                results.append(world.snapshot().get("objects", **obj(f"{name}0"))["headers"])  # type: ignore[index]
        assert results[0] == results[1] and results[0] in ("refused", [("a", "2")])

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("name", pa.array(["x"], pa.large_string())),
            ("name", pa.array(["x"], pa.string_view())),
            ("name", pa.array(["x"]).dictionary_encode()),
            ("name", pa.chunked_array([["x"], []], pa.string())),
            ("owner", pa.array([uuid.UUID(OWNER).bytes], pa.binary())),
            ("owner", pa.array([uuid.UUID(OWNER).bytes], pa.binary(16))),
            ("owner", pa.array([uuid.UUID(OWNER).bytes], pa.uuid())),
            ("owner", pa.array([OWNER.upper()])),
            ("owner", pa.array([OWNER]).dictionary_encode()),
            ("content_length", pa.array([5], pa.int8())),
            ("content_length", pa.array([5], pa.uint64())),
            ("created", pa.array([5_000], pa.timestamp("ms"))),
            ("created", pa.array([5_000_000], pa.timestamp("us", tz="Europe/Berlin"))),
            ("content_md5", pa.array([b"x"], pa.large_binary())),
            ("sharks", pa.array([["x"]], pa.large_list(pa.string()))),
            ("roles", pa.array([[OWNER]])),
            ("roles", pa.array([[uuid.UUID(OWNER).bytes]], pa.list_(pa.binary(16)))),
            ("content_type", pa.nulls(1)),
            ("legal_hold", pa.array([None], pa.bool_())),
        ],
        ids=lambda value: value if isinstance(value, str) else str(value.type),
    )
    def test_arrow_types_that_hold_the_same_values_are_taken(self, world: World, writer: Writer, name: str, values: Any) -> None:
        table = as_arrow(
            [
                obj(
                    "x",
                    content_length=5,
                    content_md5=b"x",
                    sharks=["x"],
                    roles=[OWNER],
                    created=datetime.datetime.fromtimestamp(5, datetime.UTC),
                )
            ]
        )
        table = table.drop_columns([name] if name in table.column_names else []).append_column(name, values)
        world.commit(writer, ("put", "objects", table))

        found = world.snapshot().get("objects", **obj("x"))
        assert found is not None
        assert (found["content_length"], found["sharks"], found["roles"]) == (5, ["x"], [OWNER])
        assert (found["content_md5"], found["created"]) == (b"x", datetime.datetime.fromtimestamp(5, datetime.UTC))

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("name", pa.array([5])),
            ("name", pa.array([True])),
            ("name", pa.array([b"\xff"])),
            ("name", pa.array([b"\xff"]).cast(pa.binary()).view(pa.string())),
            ("name", pa.array(["x" * 1025])),
            ("name", pa.array([None], pa.string())),
            ("name", pa.nulls(1)),
            ("owner", pa.array(["x"])),
            ("owner", pa.array([b"x"])),
            ("owner", pa.array([5])),
            ("content_length", pa.array(["5"])),
            ("content_length", pa.array([5.5])),
            ("content_length", pa.array([True])),
            ("content_length", pa.array([2**63], pa.uint64())),
            ("parts", pa.array([2**31])),
            ("legal_hold", pa.array([1])),
            ("legal_hold", pa.array(["true"])),
            ("created", pa.array(["2024-01-01"])),
            ("created", pa.array([2**62])),
            ("created", pa.array([1.5])),
            ("created", pa.array([1], pa.timestamp("ns"))),
            ("content_md5", pa.array(["x"])),
            ("content_md5", pa.array([5])),
            ("sharks", pa.array(["x"])),
            ("sharks", pa.array([[5]])),
            ("sharks", pa.array([["x", None]])),
            ("roles", pa.array([["x"]])),
            ("roles", pa.array([[None]], pa.list_(pa.binary(16)))),
            ("headers", pa.array([[("a", None)]], pa.map_(pa.string(), pa.string()))),
            ("headers", pa.array([["a"]])),
            ("properties", pa.array(["{"])),
            ("properties", pa.array([5])),
        ],
        ids=lambda value: value if isinstance(value, str) else str(value.type),
    )
    def test_arrow_values_that_do_not_fit_are_refused(self, world: World, writer: Writer, name: str, values: Any) -> None:
        table = as_arrow([obj("x")])
        table = table.drop_columns([name] if name in table.column_names else []).append_column(name, values)
        with pytest.raises(InvalidRows, match=name), writer.transaction() as tx:
            tx.put("objects", table)
        assert list(world.store.list("")) == []

    @pytest.mark.parametrize(
        ("given", "what"),
        [
            ({"owner": OWNER, "bucket_id": BUCKET}, "name"),
            ({**obj("x"), "name": None}, "name"),
            (obj("x", strange=1), "strange"),
            (obj("x", _version="x"), "_version"),
            (obj("x", deleted_at=1), "deleted_at"),
            ({1: "x"}, "1"),
            (obj("x", content_length="5"), "content_length"),
            (obj("x", content_length=True), "content_length"),
            (obj("x", content_length=5.0), "content_length"),
            (obj("x", content_length=2**63), "content_length"),
            (obj("x", parts=2**31), "parts"),
            (obj("x", legal_hold=1), "legal_hold"),
            (obj("x", created=2**63), "created"),
            (obj("x", created=2**62), "created"),
            (obj("x", created=1.5), "created"),
            (obj("x", created="2024-01-01"), "created"),
            (obj("x", content_md5="x"), "content_md5"),
            (obj("x", sharks="x"), "sharks"),
            (obj("x", sharks=[None]), "sharks"),
            (obj("x", sharks=5), "sharks"),
            (obj("x", roles=["x"]), "roles"),
            (obj("x", headers={"a": None}), "headers"),
            (obj("x", headers={"a": 1}), "headers"),
            (obj("x", headers=["a"]), "headers"),
            (obj("x", headers=5), "headers"),
            (obj("x", properties="{"), "properties"),
            (obj("x", properties="[" * 100_000), "properties"),
            (obj("x", properties=object()), "properties"),
            (obj("x", owner="x"), "owner"),
            (obj("x", owner=b"x"), "owner"),
            (obj("x", owner=5), "owner"),
            (obj("x" * 1025), "name"),
            (obj("é" * 513), "name"),
            (obj(b"x"), "name"),  # type: ignore[arg-type]
            (obj("\ud800"), "name"),
            (obj("x", content_type="\ud800"), "content_type"),
        ],
        ids=lambda value: str(value)[:60] if isinstance(value, str) else None,
    )
    def test_rows_that_do_not_fit_are_refused(self, world: World, writer: Writer, given: dict[str, Any], what: str) -> None:
        for number in (0, 70):
            with pytest.raises(InvalidRows, match=what) as error, writer.transaction() as tx:
                tx.put("objects", [obj(str(n)) for n in range(number)] + [given])
            assert f"Row {number}" in error.value.message
        assert list(world.store.list("")) == []

    @pytest.mark.parametrize("given", [None, 5, "text", ["text"], [None], [[]], pytest.param(object(), id="object")], ids=str)
    def test_what_is_no_row_is_refused(self, world: World, writer: Writer, given: Any) -> None:
        with pytest.raises(InvalidRows), writer.transaction() as tx:
            tx.put("objects", given)
        assert list(world.store.list("")) == []

    def test_arrow_columns_of_one_name_are_refused(self, world: World, writer: Writer) -> None:
        table = as_arrow([obj("x")])
        with pytest.raises(InvalidRows, match="name"), writer.transaction() as tx:
            tx.put("objects", table.append_column("name", table["name"]))

    def test_arrow_lacking_or_inventing_columns_is_refused(self, world: World, writer: Writer) -> None:
        table = as_arrow([obj("x")])
        for wrong, what in ((table.drop_columns(["name"]), "name"), (table.append_column("strange", pa.array([1])), "strange")):
            with pytest.raises(InvalidRows, match=what), writer.transaction() as tx:
                tx.put("objects", wrong)

    def test_keys_with_more_than_key_columns_are_refused(self, world: World, writer: Writer) -> None:
        for given in (obj("x", content_length=5), as_arrow([obj("x", content_length=5)])):
            with pytest.raises(InvalidRows, match="content_length"), writer.transaction() as tx:
                tx.delete("objects", given)

    def test_rows_of_no_table_are_refused(self, world: World, writer: Writer) -> None:
        for table in ("nothing", "", "log", "deleted_objects", None, 5):
            with pytest.raises(BucketCatalogError) as error, writer.transaction() as tx:
                tx.put(table, obj("x"))  # type: ignore[arg-type]
            assert isinstance(error.value, UnknownTable)

    def test_the_largest_values_come_back(self, world: World, writer: Writer) -> None:
        row = obj(
            "é" * 512,
            content_length=2**63 - 1,
            parts=-(2**31),
            content_type="x" * 100_000,
            properties="[" + "1," * 600_000 + "1]",
        )
        for count in (1, 65):
            given = (
                [row | {"name": f"{n:02}" + row["name"][1:]} for n in range(count)]
                if count < 2
                else [row] + [obj(str(n)) for n in range(count)]
            )
            world.commit(writer, ("put", "objects", given))
        writer.checkpoint()
        found = world.snapshot().get("objects", **obj("é" * 512))
        assert found is not None and {name: found[name] for name in row} == row


class TestEvents:
    def test_several_events_of_a_key_apply_in_their_order(self, world: World, writer: Writer) -> None:
        for filler in (0, 70):
            name = f"k{filler}"
            extra = [("put", "objects", [obj(f"f{n}") for n in range(filler)])]
            world.commit(
                writer,
                *extra,
                ("put", "objects", obj(name, content_length=1)),
                ("delete", "objects", obj(name)),
                ("put", "objects", obj(name, content_length=2)),
                ("put", "objects", obj(name, content_length=3)),
            )
            for _ in range(2):
                snapshot = world.snapshot()
                found = snapshot.get("objects", **obj(name))
                ended = snapshot.scan("deleted_objects", where={"name": name}).to_arrow()["content_length"].to_pylist()
                assert found is not None and found["content_length"] == 3 and ended == [1, 2]
                writer.checkpoint()

    def test_a_delete_after_a_put_in_one_transaction_leaves_nothing_live(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "objects", obj("a")), ("delete", "objects", obj("a")))

        assert names(world.snapshot()) == [] and names(world.snapshot(), "deleted_objects") == ["a"]

    def test_expecting_the_right_version_is_no_conflict(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "objects", obj("a"), {"expect": "absent"}))
        before = version(obj("a"), world.snapshot())
        world.commit(writer, ("put", "objects", obj("a"), {"expect": before}))
        after = version(obj("a"), world.snapshot())
        world.commit(writer, ("delete", "objects", obj("a"), {"expect": after}))
        world.commit(writer, ("delete", "objects", obj("a"), {"expect": "absent"}))

        for _ in range(2):
            assert rows(world.snapshot(), "conflicts") == []
            writer.checkpoint()

    @pytest.mark.parametrize("form", ["dict", "arrow"])
    def test_expecting_something_else_is_a_conflict_and_takes_effect(self, world: World, writer: Writer, form: str) -> None:
        def shape(row: dict[str, Any]) -> Any:
            return row if form == "dict" else as_arrow([row])

        world.commit(writer, ("put", "objects", shape(obj("a"))))
        first = version(obj("a"), world.snapshot())
        world.commit(writer, ("put", "objects", shape(obj("a")), {"expect": "absent"}))
        second = version(obj("a"), world.snapshot())
        world.commit(writer, ("delete", "objects", shape(obj("a")), {"expect": first}))
        world.commit(writer, ("delete", "objects", shape(obj("a")), {"expect": second}))

        for step in ("log", "checkpoint"):
            found = world.snapshot().scan("conflicts").to_arrow().to_pylist()
            assert [(c["kind"], c["expected"], c["found"]) for c in found] == [
                ("expectation", "absent", first),
                ("expectation", second, "absent"),
                ("expectation", first, second),
            ] or sorted((c["kind"], c["expected"], c["found"]) for c in found) == sorted(
                [("expectation", "absent", first), ("expectation", first, second), ("expectation", second, "absent")]
            ), step
            assert names(world.snapshot()) == []
            writer.checkpoint()

    @pytest.mark.parametrize(
        "expect", ["nonsense", "", "present", f"{PAST}", f"{PAST}:", f"{PAST}:-1", f"{PAST}:x", 5, f"{PAST}:{2**40}"]
    )
    def test_an_expectation_that_names_nothing_is_refused(self, world: World, writer: Writer, expect: Any) -> None:
        for given in (obj("a"), as_arrow([obj("a")])):
            with pytest.raises(InvalidVersion), writer.transaction() as tx:
                tx.put("objects", given, expect=expect)
        assert list(world.store.list("")) == []

    @pytest.mark.parametrize("form", ["dict", "arrow"])
    def test_update_by_id_replaces_the_whole_row_but_not_key_and_id(self, world: World, writer: Writer, form: str) -> None:
        world.commit(writer, ("put", "objects", obj("a", id=ID_1, content_length=1, etag="x")))
        put = version(obj("a"), world.snapshot())
        put_at = world.clock.now
        row = obj("a", id=ID_1, content_length=2)
        world.commit(writer, ("update", "objects", row if form == "dict" else as_arrow([row])))

        for _ in range(2):
            (found,) = rows(world.snapshot(), "objects", ["id", "content_length", "etag", "created", "modified", "_version"])
            assert found == {
                "id": ID_1,
                "content_length": 2,
                "etag": None,
                "created": time_at(put_at),
                "modified": time_at(world.clock.now),
                "_version": put,
            }
            assert world.snapshot().scan("deleted_objects").to_arrow().num_rows == 0
            writer.checkpoint()

    @pytest.mark.parametrize("form", ["dict", "arrow"])
    def test_update_by_version_reaches_ended_versions_too(self, world: World, writer: Writer, form: str) -> None:
        world.commit(writer, ("put", "objects", obj("a", id=ID_1, content_length=1)))
        first = version(obj("a"), world.snapshot())
        world.commit(writer, ("put", "objects", obj("a", id=ID_2, content_length=5)))
        row = obj("a", id=ID_2, content_length=2, _version=first)
        world.commit(writer, ("update", "objects", row if form == "dict" else as_arrow([row])))

        for _ in range(2):
            snapshot = world.snapshot()
            assert rows(snapshot, "objects", ["id", "content_length"]) == [{"id": ID_2, "content_length": 5}]
            assert rows(snapshot, "deleted_objects", ["id", "content_length"]) == [{"id": ID_1, "content_length": 2}]
            (conflict,) = rows(snapshot, "conflicts")
            assert (conflict["kind"], conflict["version"]) == ("late_update", first)
            writer.checkpoint()

    def test_updates_that_name_nothing_live_are_refused(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "objects", obj("a", id=ID_1)))
        for row in (obj("a"), obj("a", id=ID_2), obj("b", id=ID_1), obj("a", id="x"), obj("a", _version=None)):
            for given in (row, as_arrow([row])):
                with pytest.raises(InvalidRows), writer.transaction() as tx:
                    tx.update("objects", given)
        assert len(rows(world.snapshot(), "log")) == 1

    @pytest.mark.parametrize(
        "name",
        ["nonsense", "", f"{PAST}", f"{PAST}:x", f"{PAST}:-1", f"{PAST}:{2**31}", f"{PAST}:{2**40}", f"x{PAST}:0", f"{PAST}:0 "],
    )
    def test_versions_that_are_none_are_refused(self, world: World, writer: Writer, name: str) -> None:
        row = obj("a", _version=name)
        for method in ("update", "delete", "purge"):
            for given in (row, as_arrow([row])):
                with pytest.raises(InvalidVersion), writer.transaction() as tx:
                    getattr(tx, method)("objects", given)
        assert list(world.store.list("")) == []

    def test_versions_that_are_no_text_are_refused(self, world: World, writer: Writer) -> None:
        for given in (
            obj("a", _version=5),
            as_arrow([obj("a", _version=5)]),
            obj("a", _version=b"x"),
            as_arrow([obj("a", _version=b"x")]),
        ):
            with pytest.raises(InvalidVersion), writer.transaction() as tx:
                tx.delete("objects", given)

    @pytest.mark.parametrize("form", ["dict", "arrow"])
    def test_delete_by_id_or_version_ends_only_that_one(self, world: World, writer: Writer, form: str) -> None:
        def shape(row: dict[str, Any]) -> Any:
            return row if form == "dict" else as_arrow([row])

        world.commit(writer, ("put", "objects", [obj("a", id=ID_1), obj("b", id=ID_1), obj("c", id=ID_1)]))
        old = {name: version(obj(name), world.snapshot()) for name in "abc"}
        world.commit(writer, ("put", "objects", obj("a", id=ID_2)))
        world.commit(writer, ("delete", "objects", shape(obj("a", id=ID_1))), ("delete", "objects", shape(obj("b", id=ID_1))))
        world.commit(
            writer,
            ("delete", "objects", shape(obj("a", _version=old["a"]))),
            ("delete", "objects", shape(obj("c", _version=old["c"]))),
        )

        for _ in range(2):
            assert rows(world.snapshot(), "objects", ["name", "id"]) == [{"name": "a", "id": ID_2}]
            assert names(world.snapshot(), "deleted_objects") == ["a", "b", "c"]
            assert rows(world.snapshot(), "conflicts") == []
            writer.checkpoint()

    @pytest.mark.parametrize("form", ["dict", "arrow"])
    def test_a_naming_delete_may_be_half_of_a_move(self, world: World, writer: Writer, form: str) -> None:
        world.commit(writer, ("put", "objects", obj("a", id=ID_1, content_length=3)))
        row = obj("a", id=ID_1)
        world.commit(
            writer,
            ("put", "objects", obj("b", id=ID_1, content_length=3)),
            ("delete", "objects", row if form == "dict" else as_arrow([row]), {"moved": True}),
        )

        assert names(world.snapshot()) == ["b"] and names(world.snapshot(), "deleted_objects") == ["a"]

    def test_a_naming_delete_cannot_expect_a_version_too(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "objects", obj("a", id=ID_1)))
        for given in (obj("a", id=ID_1), as_arrow([obj("a", id=ID_1)])):
            with pytest.raises(InvalidRows), writer.transaction() as tx:
                tx.delete("objects", given, expect="absent")

    @pytest.mark.parametrize("form", ["dict", "arrow"])
    def test_purge_forgets_the_named_version_only(self, world: World, writer: Writer, form: str) -> None:
        for length in (1, 2, 3):
            world.commit(writer, ("put", "objects", obj("a", content_length=length)))
        (first, second) = rows(world.snapshot(), "deleted_objects", ["_version", "content_length"])
        row = obj("a", _version=first["_version"])
        world.commit(writer, ("purge", "objects", row if form == "dict" else as_arrow([row])))

        for _ in range(2):
            assert rows(world.snapshot(), "deleted_objects", ["content_length"]) == [{"content_length": second["content_length"]}]
            assert rows(world.snapshot(), "objects", ["content_length"]) == [{"content_length": 3}]
            writer.checkpoint()

    def test_purge_needs_versions(self, world: World, writer: Writer) -> None:
        for row in (obj("a"), obj("a", id=ID_1)):
            for given in (row, as_arrow([row])):
                with pytest.raises(InvalidRows), writer.transaction() as tx:
                    tx.purge("objects", given)

    def test_tables_without_ids_are_updated_by_key(self, world: World, writer: Writer) -> None:
        key = {"source": "s", "path": "p"}
        world.commit(writer, ("put", "harvest_errors", key | {"code": "a"}))
        world.commit(writer, ("update", "harvest_errors", key | {"code": "b"}))
        assert rows(world.snapshot(), "harvest_errors", ["code"]) == [{"code": "b"}]

        table = pa.table({"source": ["s"], "path": ["p"], "code": ["c"]})
        world.commit(writer, ("update", "harvest_errors", table))
        assert rows(world.snapshot(), "harvest_errors", ["code"]) == [{"code": "c"}]
        with pytest.raises(InvalidRows), writer.transaction() as tx:
            tx.update("harvest_errors", {"source": "s", "path": "q"})

    def test_more_than_64_events_of_all_kinds_do_as_few_do(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "objects", [obj(f"{n:03}", id=ID_1, content_length=n) for n in range(100)]))
        snapshot = world.snapshot()
        old = {n: version(obj(f"{n:03}"), snapshot) for n in (0, 1, 2)}
        world.commit(writer, ("put", "objects", [obj(f"{n:03}", id=ID_2, content_length=7 * n) for n in range(3)]))
        world.commit(
            writer,
            ("put", "objects", [obj(f"n{n:03}") for n in range(70)]),
            ("update", "objects", [obj(f"{n:03}", id=ID_1, content_length=1000 + n) for n in range(3, 50)]),
            ("delete", "objects", [obj(f"{n:03}") for n in range(50, 90)]),
            ("delete", "objects", [obj(f"{n:03}", id=ID_1) for n in range(90, 100)]),
            ("purge", "objects", [obj(f"{n:03}", _version=old[n]) for n in (0, 1)]),
        )
        for _ in range(2):
            snapshot = world.snapshot()
            live = {r["name"]: r["content_length"] for r in rows(snapshot, "objects", ["name", "content_length"])}
            assert live == {
                **{f"{n:03}": 7 * n for n in range(3)},
                **{f"{n:03}": 1000 + n for n in range(3, 50)},
                **{f"n{n:03}": None for n in range(70)},
            }
            assert names(snapshot, "deleted_objects") == ["002", *(f"{n:03}" for n in range(50, 100))]
            writer.checkpoint()


class TestApplications:
    def commit(self, world: World, writer: Writer, name: str, number: int, app: str = "job") -> Any:
        world.clock.tick()
        with writer.transaction(app_id=app, app_version=number) as tx:
            tx.put("objects", obj(name))
        return tx.committed

    def test_the_last_version_repeated_is_answered_from_the_log(self, world: World) -> None:
        first = self.commit(world, world.writer(), "a", 7)
        same = self.commit(world, world.writer(), "b", 7)
        with world.writer() as writer:
            again = self.commit(world, writer, "c", 7)

        assert first == same == again
        assert names(world.snapshot()) == ["a"] and len(rows(world.snapshot(), "log")) == 1

    def test_an_older_version_does_nothing(self, world: World, writer: Writer) -> None:
        self.commit(world, writer, "a", 7)
        assert self.commit(world, writer, "b", 6) is None
        assert self.commit(world, world.writer(), "b", 6) is None
        assert names(world.snapshot()) == ["a"]

    def test_newer_versions_and_other_applications_commit(self, world: World, writer: Writer) -> None:
        self.commit(world, writer, "a", 7)
        assert self.commit(world, writer, "b", 8).revision == 1
        assert self.commit(world, writer, "c", 7, "other").revision == 2
        assert self.commit(world, writer, "d", 7).__class__ is type(None)

    def test_results_survive_checkpoints(self, world: World, writer: Writer) -> None:
        first = self.commit(world, writer, "a", 7)
        writer.checkpoint()
        for _ in range(2):
            world.commit(writer, ("put", "objects", obj("x")))
            writer.checkpoint()
        compactor = world.writer("compactor-1")
        compactor.checkpoint(scope="all")
        writer.close()

        assert self.commit(world, world.writer(), "b", 7) == first
        assert self.commit(world, world.writer(), "b", 6) is None

    def test_versions_are_those_of_one_writer(self, world: World) -> None:
        self.commit(world, world.writer("one"), "a", 7)
        other = self.commit(world, world.writer("two"), "b", 7)

        assert other is not None and other.version == "two@0"

    def test_a_failed_commit_does_not_count(self, world: World) -> None:
        failing = Failing(world.store, at=0, error=StoreUnavailable("down"), methods=("put",))
        writer = World(failing).catalog().writer("w", clock=world.clock)
        with pytest.raises(StoreUnavailable):
            self.commit(world, writer, "a", 7)
        assert self.commit(world, writer, "b", 7).revision == 0


class TestIncarnations:
    def test_a_bucket_has_the_same_id_whoever_makes_it(self) -> None:
        ids = set()
        for count in (1, 65):
            for arrow in (False, True):
                world = World()
                given = [bucket("b")] + [bucket(f"x{n}") for n in range(count - 1)]
                world.commit(world.writer(f"w{count}"), ("put", "buckets", as_arrow(given) if arrow else given))
                ids.add(world.snapshot().get("buckets", **bucket("b"))["id"])  # type: ignore[index]
        assert len(ids) == 1 and uuid.UUID(ids.pop()).version == 5

    def test_a_bucket_that_is_put_again_keeps_its_id_and_one_made_anew_gets_another(self, world: World, writer: Writer) -> None:
        def current() -> str:
            return str(world.snapshot().get("buckets", **bucket("b"))["id"])  # type: ignore[index]

        world.commit(writer, ("put", "buckets", bucket("b")))
        first = current()
        world.commit(writer, ("put", "buckets", bucket("b", region="x")))
        assert current() == first
        seen = {first}
        for step in range(3):
            world.commit(writer, ("delete", "buckets", bucket("b")))
            if step == 1:
                writer.checkpoint()
            world.commit(writer, ("put", "buckets", bucket("b")))
            assert current() not in seen
            seen.add(current())

    def test_the_id_changes_within_one_transaction_too(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "buckets", bucket("b")))
        first = world.snapshot().get("buckets", **bucket("b"))
        world.commit(writer, ("delete", "buckets", bucket("b")), ("put", "buckets", bucket("b")))
        second = world.snapshot().get("buckets", **bucket("b"))

        assert first is not None and second is not None and first["id"] != second["id"]

    def test_purged_buckets_keep_their_id_for_the_next_incarnation(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "buckets", bucket("b")))
        first = world.snapshot().get("buckets", **bucket("b"))
        name = version(bucket("b"), world.snapshot(), "buckets")
        world.commit(writer, ("delete", "buckets", bucket("b")))
        world.commit(writer, ("purge", "buckets", bucket("b", _version=name)))
        writer.checkpoint()
        world.commit(writer, ("put", "buckets", bucket("b")))
        second = world.snapshot().get("buckets", **bucket("b"))

        assert first is not None and second is not None and first["id"] != second["id"]

    def test_given_ids_are_kept(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "buckets", [bucket("a", id=ID_1), bucket("b")]))

        assert world.snapshot().get("buckets", **bucket("a"))["id"] == ID_1  # type: ignore[index]


def test_writers_keep_their_name_and_clock() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    world = World(store)
    world.clock = clock
    with world.writer("node-1") as writer:
        assert writer.id == writer_id("node-1")
        assert world.commit(writer, ("put", "objects", obj("a"))).commit_time == clock.now
