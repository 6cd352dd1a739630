"""Blocks in which no row can match are not read: which these are, by the statistics of their columns, and that no answer depends on it."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping
from io import BytesIO
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import CatalogWarning, CorruptionError, UnsupportedFormat, between, prefix
from bucketcatalog.format import segments as format_segments
from bucketcatalog.format.columns import columns_to_read
from bucketcatalog.format.definitions import tables_of
from bucketcatalog.format.footers import Footer, footer_digest, footer_start
from bucketcatalog.format.headers import BlockClass, BlockHeader, BlockPlace
from bucketcatalog.format.parquet import RowGroup
from bucketcatalog.format.statistics import Statistics, statistics_of
from bucketcatalog.log import segments
from bucketcatalog.model.keys import EVERYTHING
from bucketcatalog.model.render import REQUESTED, output_schema
from bucketcatalog.model.tables import Table
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.state.plan import Part, Slice
from bucketcatalog.state.skipping import Unmatched
from bucketcatalog.where.conditions import check

from ...kit.world import World, counted, messages, obj, proto, time_at, version

(TABLE,) = tables_of(
    messages(
        proto(
            "enum Mode { MODE_UNSPECIFIED = 0; MODE_FAST = 1; MODE_SLOW = -2; }",
            """message Row {
              option (table) = { name: "my.rows" key: "k" };
              int64 k = 1;
              optional string text = 2;
              string plain_text = 3;
              optional int32 number = 4;
              int64 plain_number = 5;
              optional uint64 large = 6;
              optional bytes raw = 7;
              optional bytes uid = 8 [(column) = {type: LOGICAL_TYPE_UUID}];
              optional int64 at = 9 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
              optional bool flag = 10;
              optional Mode mode = 11;
              optional double ratio = 12;
              repeated string words = 13;
              optional int64 created = 14 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS default: COLUMN_DEFAULT_CREATED}];
            }""",
        )
    )["Row"]
)
ONE, TWO = (str(UUID(int=n)) for n in (1, 2))


def place_of(columns: Mapping[str, pa.Array], *, statistics: bool = True, bound: tuple[bytes, bytes] = (b"", b"")) -> BlockPlace:
    """A block of a LIVE run that has these columns, and of which only the footer is there; ``bound``: what statistics say for what."""
    numbers = {column.name: str(column.number) for column in TABLE.columns}
    columns = {"k": pa.array(range(len(next(iter(columns.values())))), pa.int64()), **columns}
    fields = [
        pa.field(name, values.type, metadata={"PARQUET:field_id": numbers[name]} if name in numbers else None)
        for name, values in columns.items()
    ]
    written = BytesIO()
    given = pa.table(list(columns.values()), schema=pa.schema(fields))
    pq.write_table(given, written, store_schema=False, write_statistics=statistics)
    start = footer_start(written.getvalue()[-8:], len(written.getvalue()), "file")
    end = written.getvalue()[start:]
    written_group = pq.read_metadata(written).row_group(0)
    said = statistics_of(written_group.column(at) for at in range(len(fields)) if statistics).SerializeToString()
    assert bound[0] in said
    said = said.replace(*bound) if bound[0] else said
    group = RowGroup(0, 4, (), (), Footer("file", start, len(end), footer_digest(end), end), Statistics(said))
    return BlockPlace("file", 4, 0, 0, BlockHeader("my.rows", BlockClass.LIVE, len(given), b"", b"", 0, 0), row_group=group)


def is_left_out(place: BlockPlace, where: Mapping[str, Any], table: Table = TABLE) -> bool:
    """Whether nobody reads a block for these conditions."""
    schema = output_schema(table, columns=[*table.by_name, *REQUESTED])
    slice_ = Slice(EVERYTHING, (place,), (), (), (), None)
    return not list(Unmatched(table, where, check(table, where, schema)).left_out_of([slice_], Part.LIVE))


def numbers(*values: int | None) -> pa.Array:
    return pa.array(values, pa.int32())


OF_TYPES: dict[str, tuple[pa.Array, list[Any], list[Any]]] = {
    "text": (
        pa.array(["b", "é"]),
        ["b", "é", "c", prefix("b"), prefix(""), prefix("é"), ["a", "d"], between("a", "b"), between("é"), between(None, "z")],
        ["a", "ê", prefix("a"), prefix("\U0010ffff"), ["a", "ê"], [], None, [None], between("ê")],
    ),
    "number": (
        numbers(-3, 7),
        [-3, 7, 0, [-9, 7], between(7), between(None, -3), between(), between(7, 9, inclusive="left"), between(-5, 5)],
        [-4, 8, [-9, 9], None, between(8), between(7, inclusive="right"), between(None, -3, inclusive="left"), between(8, 7)],
    ),
    "large": (pa.array([2**63, 2**64 - 1], pa.uint64()), [2**63, 2**64 - 1, 2**63 + 1], [0, 2**63 - 1, between(None, 1)]),
    "raw": (
        pa.array([b"\x80", b"\xff"]),
        [b"\x80", b"\xff", b"\x90\0", prefix(b"\xff"), prefix(b"\x80")],
        [b"\x7f", b"\xff\0", prefix(b"\xff\0")],
    ),
    "at": (
        pa.array([-(2**50), 5], pa.timestamp("us", tz="UTC")),
        [0, 5, time_at(5), between(time_at(-9))],
        [6, time_at(6), between(time_at(6)), -(2**50) - 1],
    ),
    "flag": (pa.array([True, True]), [True, [False, True]], [False, None]),
    "mode": (numbers(-2, 0), ["MODE_SLOW", "MODE_UNSPECIFIED", -1, ["MODE_FAST", "MODE_SLOW"]], ["MODE_FAST", 77, None]),
    "k": (pa.array([5, 9], pa.int64()), [5, 7, between(9)], [4, between(10), None]),
}


class TestStatistics:
    @pytest.mark.parametrize("name", OF_TYPES)
    def test_a_block_is_left_out_where_no_value_between_the_bounds_is_allowed(self, name: str) -> None:
        values, may_match, cannot = OF_TYPES[name]
        place = place_of({name: values})
        assert [condition for condition in may_match if is_left_out(place, {name: condition})] == []
        assert [condition for condition in cannot if not is_left_out(place, {name: condition})] == []
        without = place_of({name: values}, statistics=False)
        assert [condition for condition in [*may_match, *cannot] if is_left_out(without, {name: condition})] in ([], [[]])

    def test_uuids_are_compared_as_they_are_stored(self) -> None:
        kind = TABLE.by_name["uid"].storage_type
        text = pa.types.is_string(kind)
        place = place_of({"uid": pa.array([each if text else UUID(each).bytes for each in (ONE, TWO)], kind)})
        assert not any(is_left_out(place, {"uid": asked}) for asked in (ONE, UUID(TWO), between(TWO), [ONE, str(UUID(int=9))]))
        assert all(is_left_out(place, {"uid": asked}) for asked in (str(UUID(int=9)), UUID(int=0), between(UUID(int=3)), None))

    @pytest.mark.parametrize(("values", "is_null"), [([None, None], True), ([None, 5], True), ([5, 5], False)])
    def test_rows_without_a_value_are_asked_for_by_none(self, values: list[int | None], is_null: bool) -> None:
        place = place_of({"number": numbers(*values)})
        assert [is_left_out(place, {"number": asked}) for asked in (None, [None], [None, 9])] == [not is_null] * 3
        has_value = values[1] is not None
        assert [is_left_out(place, {"number": asked}) for asked in (5, between(), [5, None])] == [
            not has_value,
            not has_value,
            False,
        ]

    def test_a_column_that_a_file_has_not_is_null_throughout(self) -> None:
        place = place_of({"k": pa.array([1], pa.int64())})
        assert (
            is_left_out(place, {"number": 5})
            and is_left_out(place, {"ratio": between()})
            and is_left_out(place, {"text": prefix("")})
        )
        assert not is_left_out(place, {"number": None}) and not is_left_out(place, {"words": None})
        assert not is_left_out(place, {"plain_number": 0}) and is_left_out(place, {"plain_number": 1})

    def test_what_a_column_without_presence_has_not_is_its_zero(self) -> None:
        place = place_of({"plain_text": pa.array(["x", None]), "plain_number": pa.array([7, None], pa.int64())})
        allowed: list[dict[str, Any]] = [
            {"plain_text": ""},
            {"plain_text": prefix("")},
            {"plain_number": between(-1, 1)},
            {"plain_number": 0},
        ]
        assert not any(is_left_out(place, where) for where in allowed)
        refused: list[dict[str, Any]] = [
            {"plain_text": None},
            {"plain_text": [None]},
            {"plain_number": None},
            {"plain_number": 1},
        ]
        assert all(is_left_out(place, where) for where in refused)
        full = place_of({"plain_number": pa.array([7, 8], pa.int64())})
        assert is_left_out(full, {"plain_number": 0}) and is_left_out(full, {"plain_number": None})

    def test_a_time_that_a_stamp_stands_for_can_be_any(self) -> None:
        kind = pa.timestamp("us", tz="UTC")
        assert not is_left_out(place_of({"created": pa.array([5, None], kind)}), {"created": time_at(99)})
        assert not is_left_out(place_of({"k": pa.array([1], pa.int64())}), {"created": time_at(99)})
        said = place_of({"created": pa.array([5, 6], kind)})
        assert is_left_out(said, {"created": time_at(99)}) and is_left_out(said, {"created": None})

    @pytest.mark.parametrize("values", [[1.0, math.nan], [1.0, 2.0], [-0.0, 0.0]])
    def test_bounds_of_numbers_with_a_fraction_are_not_believed(self, values: list[float]) -> None:
        place = place_of({"ratio": pa.array(values)})
        assert not any(is_left_out(place, {"ratio": asked}) for asked in (math.nan, 9.0, 0.0, between(9.0), between(math.inf)))
        assert is_left_out(place, {"ratio": None}) and is_left_out(place_of({"ratio": pa.nulls(2, pa.float64())}), {"ratio": 1.0})

    def test_what_is_told_of_the_parts_of_a_value_says_nothing_of_it(self) -> None:
        for words in ([["a"], None], [["a"], ["b"]], [None, None]):
            assert not is_left_out(place_of({"words": pa.array(words, pa.list_(pa.string()))}), {"words": None})

    def test_bounds_may_lie_beyond_the_values(self) -> None:
        """As those of writers do that keep the beginnings of long texts."""
        text = "m" * 40
        exact = place_of({"text": pa.array(["b", text])})
        inexact = place_of({"text": pa.array(["b", text])}, bound=(text.encode(), b"n" + b"m" * 39))
        half_a_letter = place_of({"text": pa.array(["b", text])}, bound=(text.encode(), b"\xc3" + b"m" * 39))
        assert is_left_out(exact, {"text": "n"})
        for place in (inexact, half_a_letter):
            assert not any(is_left_out(place, {"text": asked}) for asked in ("n", text, prefix("m"), between("b", "c")))
            assert is_left_out(place, {"text": "a"}) and is_left_out(place, {"text": "é"})

    def test_a_narrower_number_is_compared_as_a_number(self) -> None:
        narrow = place_of({"plain_number": numbers(5, 6), "large": pa.array([1, 2**32 - 1], pa.uint32())})
        assert is_left_out(narrow, {"plain_number": 7}) and not is_left_out(narrow, {"plain_number": 6})
        assert is_left_out(narrow, {"large": 2**32}) and not is_left_out(narrow, {"large": 2**32 - 1})

    @pytest.mark.parametrize(
        "wrong",
        [
            {"at": pa.array([1, 2], pa.timestamp("ms", tz="UTC"))},
            {"text": pa.array([b"a", b"b"])},
            {"_writer": pa.array([1, 2])},
            {"_new": pa.array([1, 2])},
        ],
        ids=lambda wrong: "".join(wrong),
    )
    def test_a_file_with_columns_that_a_reader_refuses_is_read_so_that_it_is_refused(self, wrong: dict[str, pa.Array]) -> None:
        """Whatever the conditions are: which of its columns a scan shows is not for statistics to know."""
        right = place_of({"number": numbers(5, 6)})
        place = place_of({"number": numbers(5, 6), **wrong})
        for where in ({"number": 7}, {"number": None}, {"k": 99}, {"text": None, "number": 7}):
            assert is_left_out(right, where) and not is_left_out(place, where)
        assert place.row_group is not None
        with pytest.raises((CorruptionError, UnsupportedFormat), match="file holds rows"):
            columns_to_read(place.row_group.footer.layout.schema, TABLE, BlockClass.LIVE, None, "file")

    def test_stamps_are_columns_like_others(self) -> None:
        place = place_of(
            {
                "_commit_time": pa.array([5, 7], pa.timestamp("us", tz="UTC")),
                "_writer": pa.array(["a", "b"]),
                "_revision": pa.array([3, 4], pa.int64()),
            }
        )
        allowed: list[dict[str, Any]] = [
            {"_commit_timestamp": time_at(6)},
            {"_commit_timestamp": between(time_at(7))},
            {"_writer": "a"},
            {"_writer": prefix("b")},
            {"_revision": between(4)},
            {"_version": "x"},
        ]
        assert not any(is_left_out(place, where) for where in allowed)
        refused: list[dict[str, Any]] = [
            {"_commit_timestamp": time_at(8)},
            {"_commit_timestamp": between(None, time_at(4))},
            {"_writer": "c"},
            {"_writer": prefix("c")},
            {"_revision": [1, 9]},
            {"_revision": 3, "_writer": "c"},
        ]
        assert all(is_left_out(place, where) for where in refused)

    def test_two_columns_with_one_number_say_nothing(self) -> None:
        field = pa.field("number", pa.int32(), metadata={"PARQUET:field_id": "4"})
        written = BytesIO()
        pq.write_table(
            pa.table([numbers(1), numbers(9)], schema=pa.schema([field, field.with_name("other")])), written, store_schema=False
        )
        data = written.getvalue()
        end = data[footer_start(data[-8:], len(data), "file") :]
        group = RowGroup(0, 4, (), (), Footer("file", len(data) - len(end), len(end), footer_digest(end), end), Statistics())
        place = BlockPlace("file", 4, 0, 0, BlockHeader("my.rows", BlockClass.LIVE, 1, b"", b"", 0, 0), row_group=group)
        assert not is_left_out(place, {"number": 9}) and not is_left_out(place, {"number": 5})

    def test_a_footer_that_is_not_at_hand_is_not_fetched(self) -> None:
        place = place_of({"number": numbers(1)})
        assert is_left_out(place, {"number": 2}) and not is_left_out(pickle.loads(pickle.dumps(place)), {"number": 2})


COUNT, STEP = 1_000, 100


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (format_segments, segments):
        monkeypatch.setattr(module, "ROW_GROUP_ROWS", STEP)
    monkeypatch.setattr("bucketcatalog.checkpoint.plan.INLINE_BYTES", 0)


@pytest.fixture
def world() -> World:
    """A base of ten blocks of objects, the length of each object being its number."""
    world = World.counting()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", some(range(COUNT))))
        writer.checkpoint()
    return world


def some(which: range, *, more: int = 0) -> list[dict[str, Any]]:
    return [obj(f"{n:04}", content_length=n + more, content_type=f"t/{n // 300}") for n in which]


def asked(snapshot: Snapshot, world: World, where: Mapping[str, Any], table: str = "objects") -> tuple[int, list[str]]:
    """How many ranges are read for a scan of a snapshot that has been planned for before, and the names that it finds."""
    scan = snapshot.scan(table, columns=["name"], where=where)
    scan.plan()
    requests, found = counted(world, scan.to_arrow)
    everything = snapshot.scan(table).to_arrow().to_pylist()
    assert found["name"].to_pylist() == [row["name"] for row in everything if fits(row, where)]
    return requests, found["name"].to_pylist()


def fits(row: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """Whether a row meets conditions that are values or ranges with both ends."""
    return all(
        condition.low <= row[name] <= condition.high if hasattr(condition, "low") else row[name] == condition
        for name, condition in where.items()
    )


class TestReading:
    @pytest.mark.parametrize(
        ("where", "blocks"),
        [
            ({"content_length": 555}, 1),
            ({"content_length": between(250, 320)}, 2),
            ({"content_type": "t/1"}, 3),
            ({"content_type": "t/1", "content_length": between(0, 310)}, 1),
            ({"content_type": "t/9"}, 0),
        ],
        ids=str,
    )
    def test_blocks_in_which_nothing_can_match_are_not_read(self, world: World, where: dict[str, Any], blocks: int) -> None:
        requests, _ = asked(world.snapshot(), world, where)
        assert blocks <= requests <= 2 * blocks  # columns that do not lie together take two
        told = world.snapshot().scan("objects", columns=["name"], where=where).explain()
        assert f"level 0: {blocks} of 10 blocks" in told and f"statistics: {10 - blocks} blocks left out" in told
        assert f"requests: {requests + 1} ({requests} blocks, 1 indexes, each once), {10 - blocks} blocks skipped" in told

    def test_what_is_left_out_is_told_in_bytes(self, world: World) -> None:
        def told(**where: Any) -> dict[str, list[str]]:
            scan = world.snapshot().scan("objects", columns=["name"], where=where)
            return {line.partition(":")[0]: line.replace(",", "").split() for line in scan.explain().splitlines()}

        everything, some_of_it = told(content_length=between(0, COUNT)), told(content_length=between(0, 99))
        assert "statistics" not in everything and "statistics" not in told()
        left_out = int(some_of_it["statistics"][-2])
        assert int(some_of_it["level 0"][-4]) + left_out == int(everything["level 0"][-4])
        assert some_of_it["statistics"] == ["statistics:", "9", "blocks", "left", "out", str(left_out), "bytes"]

    def test_tasks_for_other_processes_are_of_what_is_left(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("bucketcatalog.state.shares._FEWEST_ROWS", 1)
        monkeypatch.setattr("bucketcatalog.state.plan.SLICE_ROWS", STEP)
        scan = world.snapshot().scan("objects", columns=["name"], where={"content_length": between(250, 320)})
        tasks = pickle.loads(pickle.dumps(scan.tasks(1 << 20)))
        assert sum(task.rows for task in tasks) == 2 * STEP
        found = [name for task in tasks for rows in task.read(world.store) for name in rows["name"].to_pylist()]
        assert found == [f"{n:04}" for n in range(250, 321)]
        assert world.snapshot().scan("objects", where={"content_type": "t/9"}).tasks(1) == []

    def test_an_update_that_makes_a_row_match_or_not_is_folded_with_a_block_that_is_left_alone_otherwise(
        self, world: World
    ) -> None:
        with world.writer() as writer:
            for name, length in (("0005", 555), ("0555", 5)):
                row = obj(name, content_length=length, _version=version(obj(name), world.snapshot()))
                world.commit(writer, ("update", "objects", row))
        snapshot = world.snapshot()
        requests, found = asked(snapshot, world, {"content_length": 555})
        assert found == ["0005"] and requests == 2  # the block that matches, and the one that has to be folded
        _, found = asked(snapshot, world, {"content_length": between(0, 5)})
        assert found == ["0000", "0001", "0002", "0003", "0004", "0555"]
        told = snapshot.scan("objects", where={"content_length": 777}).explain()
        assert "statistics: 7 blocks left out" in told and "; 2 more unless a key has to be folded" in told

    @pytest.mark.parametrize("kind", ["events one by one", "a block of events", "a level"])
    def test_whatever_holds_an_update_it_is_folded_with_what_it_is_of(
        self, world: World, kind: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("bucketcatalog.checkpoint.plan.lowest_merged", lambda levels, new: len(levels))
        count = 10 if kind == "events one by one" else 80
        columns = ["owner", "bucket_id", "name", "_version"]
        old = world.snapshot().scan("objects", columns=columns).to_arrow().slice(105, count)
        new = old.append_column("content_length", pa.array(range(count)))
        with world.writer() as writer:
            world.commit(writer, ("update", "objects", new.to_pylist() if kind == "events one by one" else new))
            if kind == "a level":
                writer.checkpoint()
        snapshot = world.snapshot()
        plan = snapshot.scan("objects").plan()
        assert [any(of) for of in zip(*((s.tail, s.events, s.upper) for s in plan), strict=True)] == [
            kind == each for each in ("events one by one", "a block of events", "a level")
        ]
        _, found = asked(snapshot, world, {"content_length": between(3, 5)})
        assert found == ["0003", "0004", "0005", "0108", "0109", "0110"]
        assert asked(snapshot, world, {"content_length": 107})[1] == []

    def test_blocks_below_what_was_put_since_are_not_read_for_keys_that_are_known_without_them(self, world: World) -> None:
        """Every block of the base lies below a level that has a key of each."""
        with world.writer() as writer:
            world.commit(writer, ("put", "objects", some(range(0, COUNT, 50), more=5_000)))
            world.commit(writer, ("delete", "objects", [obj(f"{n:04}") for n in range(25, COUNT, 50)]))
            writer.checkpoint()
        snapshot = world.snapshot()
        assert len(snapshot.state("objects").blocks_by_level()) == 2
        whole, _ = asked(snapshot, world, {"content_length": between(0, 9_999)})
        requests, found = asked(snapshot, world, {"content_length": between(301, 320)})
        assert found == [f"{n:04}" for n in range(301, 321)] and requests <= whole - 9
        requests, found = asked(snapshot, world, {"content_length": between(5_000, 5_100)})
        assert found == ["0000", "0050", "0100"] and requests <= whole - 10
        told = snapshot.scan("objects", columns=["name"], where={"content_length": between(301, 320)}).explain()
        assert "statistics: 0 blocks left out, 0 bytes; 9 more unless a key has to be folded" in told

    def test_a_late_put_is_folded_with_a_block_that_matches_nothing(self, world: World) -> None:
        early = world.clock.now - 1
        with world.writer("late") as late:
            world.clock.now, now = early - 2_000_000, world.clock.now
            world.commit(late, ("put", "objects", obj("0700", content_length=9_000)))
            world.clock.now = now
        assert asked(world.snapshot(), world, {"content_length": 9_000})[1] == []
        assert asked(world.snapshot(), world, {"content_length": 9_000}, "deleted_objects")[1] == ["0700"]

    def test_tombstones_are_left_out_by_their_columns_and_by_when_they_ended(self, world: World) -> None:
        with world.writer() as writer:
            for part in range(0, COUNT, 250):
                last = world.commit(writer, ("delete", "objects", [obj(f"{n:04}") for n in range(part, part + 250)]))
            world.commit(writer, ("put", "objects", some(range(300), more=1)))
            world.commit(writer, ("put", "objects", some(range(300), more=2)))
            writer.checkpoint(full=True)
        snapshot = world.snapshot()
        for where, blocks in (
            ({"content_length": 555}, 1),
            ({"content_length": between(0, 10)}, 1),
            ({"deleted_at": time_at(last.commit_time)}, 9),  # those of objects that were put again hold ends before and after
            ({"deleted_at": time_at(last.commit_time), "content_length": between(300, 2_000)}, 4),
            ({"content_length": 6_000}, 0),
        ):
            _, found = asked(snapshot, world, where, "deleted_objects")
            told = snapshot.scan("deleted_objects", where=where).explain()
            assert f"level 0: {blocks} of 16 blocks" in told and bool(found) == bool(blocks)

    def test_what_has_been_added_since_is_null_in_the_blocks_before(self) -> None:
        earlier, later = (
            messages(proto(f'message Row {{ option (table) = {{ name: "my.rows" key: "k" }}; {columns} }}'))["Row"]
            for columns in (
                "int64 k = 1; optional int32 number = 2;",
                "int64 k = 1; optional int64 number = 2; optional string added = 3; int64 plain = 4;",
            )
        )
        world = World.counting()
        for declared, base in ((earlier, 0), (later, 1_000)):
            catalog = world.catalog()
            catalog.register(declared)
            more = {} if declared is earlier else {"added": "x", "plain": 7}
            with world.writer(catalog=catalog) as writer:
                world.commit(writer, ("put", "my.rows", [{"k": n + base, "number": n, **more} for n in range(300)]))
                writer.checkpoint()
        snapshot = world.snapshot()
        for where, count in (
            ({"added": None}, 300),
            ({"added": "x"}, 300),
            ({"added": prefix("y")}, 0),
            ({"plain": 0}, 300),
            ({"plain": 7, "number": 5}, 1),
            ({"number": 150}, 2),
            ({"number": between(250, 1 << 40)}, 100),
        ):
            plain = snapshot.scan("my.rows", where=where)
            assert len(plain.to_arrow()) == count, where
        assert "level 0: 0 of " in snapshot.scan("my.rows", where={"number": 1 << 40}).explain()

    def test_who_reads_past_damage_asks_every_question_of_the_same_blocks(self, world: World) -> None:
        """Nobody can tell what became of the keys of a lost block: what was put under them since is left out with them, whoever asks."""
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        with world.writer() as writer:
            world.commit(writer, ("put", "objects", obj("0005", content_length=9_000)))
        place = world.snapshot().state("objects").blocks_by_level()[0][0]
        data = bytearray(world.store.get(place.name))
        data[place.offset : place.offset + place.length] = bytes(place.length)
        world.store.delete(place.name)
        world.store.put(place.name, bytes(data))
        with pytest.raises(CorruptionError):
            world.snapshot().scan("objects").to_arrow()
        assert len(world.snapshot().scan("objects", where={"content_length": 9_000}).to_arrow()) == 1
        for where, count in (({}, COUNT - STEP), ({"content_length": 9_000}, 0), ({"content_length": 555}, 1)):
            with pytest.warns(CatalogWarning, match="is damaged"):
                assert len(world.snapshot(ignore_corruption=True).scan("objects", where=where).to_arrow()) == count
