"""Stored rows: what any program sees of them in a segment, and what comes back of them, bit for bit, by the numbers of their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bucketcatalog import CorruptionError, UnsupportedFormat
from bucketcatalog.format.blocks import decode_block, encode_blocks, stream_of, stream_schema
from bucketcatalog.format.columns import columns_to_read, facts_of
from bucketcatalog.format.definitions import core_tables, tables_of
from bucketcatalog.format.headers import BlockClass, Purpose, Side
from bucketcatalog.format.sealing import seal_block
from bucketcatalog.format.segments import RunRows, side_rows
from bucketcatalog.model.facts import NEVER, NO_TRANSACTIONS, TRANSACTIONS, Facts
from bucketcatalog.model.keys import EVERYTHING, KeyRange, encode_keys
from bucketcatalog.model.tables import END_TIME, Column, DataType, SecondaryOrder, Shape, Table, side_table
from bucketcatalog.model.times import FIRST_TIME, LAST_TIME
from bucketcatalog.state.orders import OrderRun, order_entries
from bucketcatalog.v1 import log_pb2

from ...kit.storing import (
    VALUES,
    bits,
    contents,
    everything,
    facts_with,
    rows_of,
    through_block,
    through_segment,
    written,
)
from ...kit.world import START, messages, proto

Through = Callable[..., Facts]
STORED = pytest.mark.parametrize("through", [through_segment, through_block])
CLASSES = pytest.mark.parametrize("block_class", list(BlockClass), ids=lambda block_class: block_class.name)
ALL = everything()
ROWS = rows_of(ALL, 24)


class TestBack:
    def test_the_rows_hold_every_value_of_every_type_at_every_level(self) -> None:
        def found(column: Column, values: list[Any]) -> Iterator[tuple[DataType, list[Any]]]:
            """The types of the single values that lie in a column, each with all values of it."""
            if column.shape is Shape.MAP:
                entries = [pair for value in values for pair in value or ()]
                for place, child in enumerate(column.children):
                    yield from found(child, [pair[place] for pair in entries])
            elif column.shape is Shape.LIST:
                yield from found(column.one, [item for value in values for item in value or ()])
            elif column.type is DataType.MESSAGE:
                for child in column.children:
                    yield from found(child, [value.get(child.field_name) for value in values if value is not None])
            else:
                yield column.type, values

        columns = [each for c in ALL.columns if c.name not in ALL.key for each in found(c, [row[c.field_name] for row in ROWS])]
        assert len(columns) > 200
        for kind, values in columns:
            assert {repr(bits(value)) for value in VALUES[kind]} <= {repr(bits(value)) for value in values}
        for column in ALL.columns:
            if column.name not in ALL.key:
                values = [row[column.field_name] for row in ROWS]
                assert None in values and (column.shape is Shape.ONE or [] in values)

    @STORED
    @CLASSES
    def test_everything_comes_back_bit_for_bit(self, through: Through, block_class: BlockClass) -> None:
        given = facts_with(ALL, ROWS, block_class)
        found = through(given, ALL, block_class)
        assert contents(found, ALL) == contents(given, ALL)
        assert found.transactions.column("uuid").to_pylist() == sorted(set(found.transactions.column("uuid").to_pylist()))

    @STORED
    def test_so_do_rows_cut_from_others(self, through: Through) -> None:
        given = facts_with(ALL, ROWS, BlockClass.STUBS)
        for start, stop in ((0, 5), (3, 20), (23, 24)):
            part = given.slice(start, stop)
            assert contents(through(part, ALL, BlockClass.STUBS), ALL) == contents(part, ALL)

    @STORED
    @pytest.mark.parametrize("name", [c.name for c in ALL.columns if c.type is DataType.MESSAGE and c.shape is not Shape.MAP])
    def test_a_message_is_told_from_one_with_nothing_in_it_and_from_none(self, through: Through, name: str) -> None:
        number = ALL.by_name[name].field_name
        values = [None, {}, {"1": {}}, {"2": [None, {}], "3": [(0, None), (1, {})]}]
        values = [[], *([value] for value in values), values] if ALL.by_name[name].shape is Shape.LIST else values
        rows = [{"2001": n, "2000": "", number: value} for n, value in enumerate(values)]
        given = facts_with(ALL, rows)
        assert len({repr(value) for value in given.rows[number].to_pylist()}) == len(values)
        assert contents(through(given, ALL, BlockClass.LIVE), ALL) == contents(given, ALL)

    @STORED
    def test_times_come_back_up_to_the_ends_of_the_calendar_and_beyond_are_refused_by_column(self, through: Through) -> None:
        (table,) = tables_of(messages(TIMES)["Time"])

        def found(times: list[int | None]) -> Any:
            given = facts_with(table, [{"1": n, "2": time} for n, time in enumerate(times)])
            return through(given, table, BlockClass.LIVE).rows["2"].cast(pa.int64()).to_pylist()

        for times in ([LAST_TIME, 0], [FIRST_TIME, None], [LAST_TIME, LAST_TIME]):
            assert found(times) == times
        for times in ([2**63 - 1, 0], [-(2**63), None], [2**62, 2**62], [LAST_TIME + 1, None], [0, FIRST_TIME - 1]):
            with pytest.raises(CorruptionError, match=r"outside of the years 1 to 9999 in the column 'at'"):
                found(times)

    def test_a_side_run_has_rows_alone_and_its_key_in_its_order(self) -> None:
        table = core_tables()["harvest_errors"]
        side = Side(table.name, Purpose.ORDER, "by_time(deleted_at,2)")
        columns = (END_TIME, *(table.by_name[name] for name in ("path", "source")))
        shape = Table(side_table(table.name, side.name), columns, ("deleted_at", "path", "source"))
        rows = pa.table(
            {
                END_TIME.field_name: pa.array([START, -5, START], END_TIME.storage_type),
                "2": ["b", "a\x00", "a"],
                "1": ["s", "s", "s"],
            }
        )
        given = side_rows(Facts(NO_TRANSACTIONS, rows), table, shape, side)
        segment = written(given)
        assert segment.reference.run.purpose is Purpose.ORDER and segment.reference.filters_length == 0
        assert plain(segment.data).column_names == ["deleted_at", "path", "source"]
        (found,) = segment.facts(shape)
        assert found.rows["2"].to_pylist() == ["a\x00", "a", "b"] and found.rows.column_names == ["536870909", "2", "1"]
        assert contents(found, shape) == contents(given.facts, shape)

    @STORED
    def test_whole_tombstones_beside_others_have_their_end_once_and_come_back_bit_for_bit(self, through: Through) -> None:
        run = OrderRun(ALL, SecondaryOrder("when", ("deleted_at",), of_tombstones=True, covering=True))
        tombstones = facts_with(ALL, ROWS, BlockClass.ENDED)
        tombstones = tombstones.filter(pa.array(tombstones.end_times() < NEVER))
        assert len(tombstones) > 5
        given = side_rows(order_entries(run, tombstones), ALL, run.shape, run.side, run.block_class)
        assert given.facts.end_times().tolist() == sorted(tombstones.end_times().tolist())
        found = through(given.facts, run.shape, run.block_class)
        assert contents(found, run.shape) == contents(given.facts, run.shape)
        by_key = found.take(pc.sort_indices(encode_keys(ALL, found.rows)))
        assert contents(replace(by_key, rows=by_key.rows.drop_columns([END_TIME.field_name])), ALL) == contents(tombstones, ALL)


TIMES = proto(
    """message Time {
      option (table) = { name: "my.times" key: "k" };
      int64 k = 1;
      optional int64 at = 2 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
    }"""
)


def plain(data: bytes) -> pa.Table:
    """A segment as a program that knows nothing of catalogs reads it."""
    return pq.read_table(pa.BufferReader(data))


OWN = ["_kind", "_commit_time", "_writer", "_revision", "_uuid", "_seq"]
OF_ROWS = ["_row_commit_time", "_row_writer", "_row_revision", "_row_uuid", "_row_seq"]
EXPECTED = ["_expects", "_expects_uuid", "_expects_seq"]
END_EXPECTED = ["_end_expects", "_end_expects_uuid", "_end_expects_seq"]
ENDED = ["deleted_at", "_end_writer", "_end_revision", "_end_uuid", "_end_seq", "_end_kind"]
NAMES = ["_name_uuid", "_name_seq"]
OF_ENGINE = {
    BlockClass.EVENTS: ["_kind", "_seq", "_row_seq", "_end_seq", "_end_kind", *NAMES, *EXPECTED, *END_EXPECTED, "_purged"],
    BlockClass.LIVE: [*OWN, *OF_ROWS, *EXPECTED, "_purged"],
    BlockClass.ENDED: [*OWN, *OF_ROWS, *ENDED, *EXPECTED, *END_EXPECTED, "_purged"],
    BlockClass.SUPERSEDED: [*OWN, *OF_ROWS, *ENDED, *EXPECTED, *END_EXPECTED, "_purged"],
    BlockClass.STUBS: [*OWN, *OF_ROWS, "_end_commit_time", *ENDED[1:], *NAMES, *EXPECTED, *END_EXPECTED, "_purged"],
}


def numbers_of(columns: tuple[Column, ...]) -> dict[str, Any]:
    """The numbers of fields by name, with those of the fields of messages below."""
    found = {}
    for column in columns:
        below = column.children[1].children if column.shape is Shape.MAP else column.children
        found[column.name] = (column.field_name, numbers_of(below))
    return found


def ids_of(fields: Any) -> dict[str, Any]:
    """What Arrow fields say of that, those that have no id left out."""
    found = {}
    for field in fields:
        kind = field.type
        kind = kind.item_type if pa.types.is_map(kind) else kind.value_type if pa.types.is_list(kind) else kind
        below = ids_of(kind.fields) if pa.types.is_struct(kind) else {}
        if field.metadata is not None and b"PARQUET:field_id" in field.metadata:
            found[field.name] = (field.metadata[b"PARQUET:field_id"].decode(), below)
    return found


class TestForAnybody:
    @CLASSES
    def test_columns_have_the_names_of_the_table_and_the_numbers_of_their_fields_at_every_level(
        self, block_class: BlockClass
    ) -> None:
        given = facts_with(ALL, ROWS, block_class)
        expected = numbers_of(ALL.columns)
        assert expected["inner"][1]["deep"] == ("1", {"ratios": ("2", {}), "text": ("9", {})})
        if "deleted_at" in OF_ENGINE[block_class]:
            expected["deleted_at"] = ("536870909", {})

        schema = plain(written(RunRows(given, ALL, block_class)).data).schema
        assert schema.names == [c.name for c in ALL.columns] + OF_ENGINE[block_class]
        assert ids_of(schema) == expected

        (block,) = encode_blocks(given, ALL, block_class)
        stream = stream_schema(log_pb2.Block.FromString(block.data).rows)
        assert set(stream.names) <= set(schema.names)
        assert ids_of(stream) == {name: expected[name] for name in stream.names if not name.startswith("_")}

    def test_any_reader_of_parquet_sees_the_values(self) -> None:
        given = facts_with(ALL, ROWS, BlockClass.ENDED)
        found = plain(written(RunRows(given, ALL, BlockClass.ENDED)).data)
        assert found.num_rows == len(given)
        for column in ALL.columns:
            if numbers_of((column,))[column.name][1]:
                continue  # what lies in messages is called by name here
            assert bits(found[column.name].to_pylist()) == bits(given.stored_column(column).to_pylist()), column.name
        inner = found["inner"].to_pylist()
        for child in ALL.by_name["inner"].children:
            if not numbers_of((child,))[child.name][1]:
                expected = [None if value is None else value[child.field_name] for value in given.rows["3"].to_pylist()]
                assert bits([None if value is None else value[child.name] for value in inner]) == bits(expected), child.name
        times = given.transactions.column("commit_time").to_pylist()
        ends = [None if at is None else times[at] for at in given.column("_end_txn").to_pylist()]
        assert found["deleted_at"].cast(pa.int64()).to_pylist() == ends
        assert found["deleted_at"].type == found["_commit_time"].type == pa.timestamp("us", tz="UTC")

    def test_a_database_asks_a_segment_by_its_names(self, tmp_path: Path) -> None:
        given = facts_with(ALL, ROWS)
        file = tmp_path / "segment.parquet"
        file.write_bytes(written(RunRows(given, ALL, BlockClass.LIVE)).data)
        told = ["number", "name", "a_uint64", "a_uint32", "a_double", "a_string", "a_bytes", "several_int64", "several_float"]
        asked = duckdb.sql(f"select {', '.join(told)} from read_parquet('{file}')").fetchall()
        expected = [given.stored_column(ALL.by_name[name]).to_pylist() for name in told]
        assert bits(asked) == bits(list(zip(*expected, strict=True)))
        deep = f"select count(*) from read_parquet('{file}') where \"inner\".deep.text = ?"
        ((found,),) = duckdb.sql(deep, params=["\U0001f4a9"]).fetchall()
        assert found == sum(
            bool(value and value["1"] and value["1"]["9"] == "\U0001f4a9") for value in given.rows["3"].to_pylist()
        )
        assert found


BEFORE = proto(
    """message Row {
      option (table) = { name: "my.rows" key: "k" };
      string k = 1;
      optional string a = 2;
      optional string b = 3;
      optional int32 n = 4;
      optional string gone = 5;
      message Inner {
        optional string x = 1;
        optional uint32 n = 2;
        optional string gone = 3;
        message Deep { optional string d = 1; optional string gone = 2; }
        optional Deep deep = 4;
      }
      optional Inner inner = 6;
      repeated Inner inners = 7;
      map<string, Inner> by_name = 8;
      optional Inner lost = 9;
    }"""
)
AFTER = proto(
    """message Row {
      option (table) = { name: "my.rows" key: "key" };
      string key = 1;
      optional string b = 2;
      optional string a = 3;
      optional int64 n = 4;
      optional string added = 10;
      message Inside {
        optional string gone = 1;
        optional uint64 wide = 2;
        optional string x = 30;
        message Deep { optional string renamed = 1; optional string added = 3; }
        optional Deep deep = 4;
      }
      optional Inside inner = 6;
      repeated Inside inners = 7;
      map<string, Inside> by_name = 8;
      optional Inside gone = 11;
    }"""
)
INNER = {"1": "x", "2": 2**32 - 1, "3": "gone", "4": {"1": "d", "2": "gone"}}
INSIDE = {"1": "x", "2": 2**32 - 1, "4": {"1": "d", "3": None}, "30": None}
GIVEN = {"2": "a", "3": "b", "4": -1, "5": "gone", "9": INNER}
KEPT = {"2": "a", "3": "b", "4": -1, "10": None, "11": None}


class TestOtherDefinitions:
    """Columns are found by their numbers, whatever they, or others, are called by then."""

    @STORED
    def test_columns_that_were_renamed_added_dropped_and_widened_are_found_by_number(self, through: Through) -> None:
        (before,), (after,) = (tables_of(messages(source)["Row"]) for source in (BEFORE, AFTER))
        rows = [
            {"1": "1", **GIVEN, "6": INNER, "7": [INNER, None, {}], "8": [("i", INNER), ("j", None)]},
            {"1": "2", **GIVEN, "6": {"4": {}}, "7": [], "8": []},
            {"1": "3"},
        ]
        bare = dict.fromkeys(INSIDE)
        expected = [
            {"1": "1", **KEPT, "6": INSIDE, "7": [INSIDE, None, bare], "8": [("i", INSIDE), ("j", None)]},
            {"1": "2", **KEPT, "6": bare | {"4": {"1": None, "3": None}}, "7": [], "8": []},
            {"1": "3", **dict.fromkeys([*KEPT, "6", "7", "8"])},
        ]
        found = through(facts_with(before, rows), before, BlockClass.LIVE, after)
        assert "5" not in found.rows.column_names and "9" not in found.rows.column_names
        seen = {column.field_name: found.stored_column(column) for column in after.columns}
        assert [
            dict(zip(seen, row, strict=True)) for row in zip(*(v.to_pylist() for v in seen.values()), strict=True)
        ] == expected
        assert all(values.type == after.storage_schema.field(name).type for name, values in seen.items())

    @STORED
    def test_a_message_of_which_nothing_is_known_any_more_is_still_there(self, through: Through) -> None:
        source = 'message Row {{ option (table) = {{ name: "my.rows" key: "k" }}; string k = 1; {} }}'
        (before,) = tables_of(messages(proto(source.format("message In { optional string a = 1; } optional In in = 2;")))["Row"])
        (after,) = tables_of(messages(proto(source.format("message In { optional int64 b = 2; } optional In in = 2;")))["Row"])
        given = facts_with(before, [{"1": "1", "2": {"1": "a"}}, {"1": "2", "2": {}}, {"1": "3"}])
        found = through(given, before, BlockClass.LIVE, after)
        assert found.stored_column(after.by_name["in"]).to_pylist() == [{"2": None}, {"2": None}, None]


class TestColumnsAsked:
    def test_asked_columns_alone_are_read(self) -> None:
        given = facts_with(ALL, ROWS)
        segment = written(RunRows(given, ALL, BlockClass.LIVE))
        (block,) = encode_blocks(given, ALL, BlockClass.LIVE)
        for column in ALL.columns:
            for wanted in ({column.field_name}, {column.field_name, "_seq"}):
                for found in (*segment.facts(ALL, wanted), decode_block(block.data, ALL, "file", wanted)):
                    assert set(found.rows.column_names) == wanted
                    assert contents(found, ALL, wanted) == contents(given, ALL, wanted)

    @STORED
    def test_a_stamp_is_read_whole(self, through: Through) -> None:
        given = facts_with(ALL, ROWS, BlockClass.STUBS)
        rows = plain(written(RunRows(given, ALL, BlockClass.STUBS)).data)
        assert columns_to_read(rows.schema, ALL, BlockClass.STUBS, {"_end_txn"}, "file") == [
            "_end_commit_time",
            "_end_writer",
            "_end_revision",
            "_end_uuid",
        ]
        for name in ("_commit_time", "_row_writer", "_end_revision", "_uuid"):
            with pytest.raises(ValueError, match="stamps without"):
                facts_of(rows.drop([name]), ALL)
        assert through(given, ALL, BlockClass.STUBS).transactions.schema == TRANSACTIONS

    def test_a_block_leaves_out_what_is_null_throughout(self) -> None:
        given = facts_with(ALL, [{"2001": 0, "2000": ""}])
        rows = given.rows.select(["2001", "2000", "_txn", "_seq"])
        (block,) = encode_blocks(Facts(given.transactions, rows), ALL, BlockClass.LIVE)
        names = stream_schema(log_pb2.Block.FromString(block.data).rows).names
        assert names == ["name", "number", "_commit_time", "_writer", "_revision", "_uuid", "_seq"]

    def test_a_column_of_the_engine_that_is_not_known_is_from_the_future(self) -> None:
        with pytest.raises(UnsupportedFormat, match=r"file.*'_new'"):
            decode_block(with_column(pa.field("_new", pa.int32())), ALL, "file")
        with pytest.raises(UnsupportedFormat, match=r"file.*'_txn'"):  # positions are what facts have, and nothing that is stored
            decode_block(with_column(pa.field("_txn", pa.int32())), ALL, "file", {"_seq"})

    @pytest.mark.parametrize("number", [None, b"99999", b"a_string"], ids=str)
    def test_a_column_whose_number_the_table_has_not_is_left_out(self, number: bytes | None) -> None:
        """Also where it is called as one of the table's."""
        field = pa.field("a_int64", pa.int32(), metadata=None if number is None else {b"PARQUET:field_id": number})
        found = decode_block(with_column(field), ALL, "file")
        assert contents(found, ALL) == contents(facts_with(ALL, [{"2001": 1, "2000": ""}]), ALL)

    def test_a_column_of_another_type_is_damage(self) -> None:
        field = pa.field("a_uuid", pa.int32(), metadata={b"PARQUET:field_id": ALL.by_name["a_uuid"].field_name.encode()})
        with pytest.raises(CorruptionError, match="file"):
            decode_block(with_column(field), ALL, "file")

    @pytest.mark.parametrize("values", [[None] * 3, [None, 7, None], [7] * 3], ids=str)
    @pytest.mark.parametrize("name", ["_commit_time", "_row_revision", "_end_revision"])
    def test_stamps_of_events_are_refused_whichever_rows_are_asked_for(self, name: str, values: list[int | None]) -> None:
        kind = pa.timestamp("us", tz="UTC") if name == "_commit_time" else pa.int64()
        block = with_column(pa.field(name, kind), values, BlockClass.EVENTS)
        keys = encode_keys(ALL, pa.table({"2001": [1, 2, 3], "2000": [""] * 3})).to_pylist()
        ranges = [EVERYTHING, *(KeyRange.closed(key, key) for key in keys), KeyRange.closed(keys[0] + b"x", keys[0] + b"y")]
        for wanted in ranges:
            for columns in (None, {"2001"}, {"_seq"}):
                with pytest.raises(CorruptionError, match=r"file holds events of table 'all\.types' with stamps"):
                    decode_block(block, ALL, "file", columns, wanted)


def with_column(field: pa.Field, values: Sequence[int | None] = (7,), block_class: BlockClass = BlockClass.LIVE) -> bytes:
    """A sealed block that has a column more, and a row for each of its values."""
    rows = [{"2001": n + 1, "2000": ""} for n in range(len(values))]
    (block,) = encode_blocks(facts_with(ALL, rows, block_class), ALL, block_class)
    message = log_pb2.Block.FromString(block.data)
    with pa.ipc.open_stream(message.rows) as stream:
        message.rows = stream_of(stream.read_all().append_column(field, pa.array(values, field.type)))
    message.ClearField("checksum")
    return seal_block(message.SerializeToString(deterministic=True))[0]
