"""The bytes of a segment's row groups: how rows become them, which of them are read, and that nothing else is read, or believed."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import CorruptionError, TruncatedObject, limits
from bucketcatalog.errors import InvalidRows
from bucketcatalog.format.blocks import decode_block, encode_blocks
from bucketcatalog.format.definitions import core_tables, tables_of
from bucketcatalog.format.footers import Footer, footer_digest
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.format.parquet import check_row_group, column_statistics, ranges_to_read, read_row_groups
from bucketcatalog.format.segments import ROW_GROUP_ROWS, RunBuilder, RunRows
from bucketcatalog.format.sizes import ROW_GROUP_BYTES
from bucketcatalog.format.statistics import Statistics, one_value
from bucketcatalog.log.blocks import read_block
from bucketcatalog.log.segments import RunWriter, read_index
from bucketcatalog.model.facts import Facts, concat
from bucketcatalog.model.tables import DataType, Shape
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.v1 import log_pb2

from ...kit.storing import (
    NAN,
    OTHER_NAN,
    UUID,
    VALUES,
    Written,
    bits,
    contents,
    everything,
    facts_with,
    rows_of,
    written,
)
from ...kit.world import messages, proto

ALL = everything()
WORDS = core_tables()["harvest_errors"]
(NOISE,) = tables_of(
    messages(
        proto(
            """message Noise {
              option (table) = { name: "my.noise" key: "k" };
              optional bytes first = 1;
              optional bytes small = 2;
              optional bytes large = 3;
              optional bytes last = 4;
              int64 k = 5;
              optional double number = 6;
              repeated double numbers = 7;
            }"""
        )
    )["Noise"]
)
SMALL, LARGE = 100, 200_000
"""Less and more than is read along rather than to ask twice."""


def noise(rows: int = 4, seed: int = 1) -> Written:
    """A segment whose columns have chunks of about these sizes and a bit: what nobody can compress."""
    chance = random.Random(seed)
    sizes = {"1": SMALL, "2": SMALL, "3": LARGE, "4": SMALL}
    made = [{"5": n, **{name: chance.randbytes(size // rows) for name, size in sizes.items()}} for n in range(rows)]
    return written(RunRows(facts_with(NOISE, made), NOISE, BlockClass.LIVE))


def chunks(segment: Written, number: int = 0) -> dict[str, tuple[int, int]]:
    """Where each column lies in a row group, from and up to, by the file's own footer."""
    group = pq.read_metadata(pa.BufferReader(segment.data)).row_group(number)
    spans: dict[str, tuple[int, int]] = {}
    for column in map(group.column, range(group.num_columns)):
        start = column.data_page_offset if column.dictionary_page_offset is None else column.dictionary_page_offset
        name = column.path_in_schema.partition(".")[0]
        spans[name] = (spans.get(name, (start,))[0], start + column.total_compressed_size)
    return spans


def words(count: int, size: int = 1) -> Facts:
    """Facts of ``harvest_errors`` in the order of their keys."""
    rows = [{"1": "s", "2": f"{n:06}", "4": f"{n % 7}" * size if n % 3 else None} for n in range(count)]
    return facts_with(WORDS, rows)


class TestRanges:
    def test_only_chunks_that_are_asked_for_are_read_and_those_that_lie_near_each_other_at_once(self) -> None:
        segment = noise()
        at = chunks(segment)
        assert at["large"][1] - at["large"][0] > LARGE and at["small"][1] == at["large"][0] and at["large"][1] == at["last"][0]
        cases = {
            ("first",): [at["first"]],
            ("large",): [at["large"]],
            ("first", "small"): [(at["first"][0], at["small"][1])],
            ("first", "last"): [at["first"], at["last"]],
            ("k", "last", "small"): [at["small"], (at["last"][0], at["k"][1])],
            ("small", "large"): [(at["small"][0], at["large"][1])],
            ("first", "large"): [(at["first"][0], at["large"][1])],
            ("k", "_seq"): [(at["k"][0], at["_seq"][1])],
            (): [],
        }
        whole = pq.read_table(pa.BufferReader(segment.data))
        for columns, expected in cases.items():
            found = segment.read(0, columns)
            assert found.column_names == list(columns)
            assert all(found[name].equals(whole[name]) for name in columns)
            assert segment.was_read() == expected == ranges_to_read(segment.groups[0], columns), columns

    def test_whoever_asks_for_the_whole_reads_every_byte_once(self) -> None:
        segment = noise()
        found = segment.read(0, ["k", "number"], whole=True)
        assert found["number"].null_count == len(found) == 4
        assert segment.was_read() == [(4, segment.reference.filters_offset)]  # from behind PAR1
        check_row_group(segment.groups[0], segment.fetch, lambda: "rows")
        assert segment.was_read() == [(4, segment.reference.filters_offset)]

    def test_each_row_group_has_its_own(self) -> None:
        segment = written(RunRows(words(ROW_GROUP_ROWS + 10), WORDS, BlockClass.LIVE))
        for number in (1, 0):
            found = segment.read(number, ["path"])
            assert segment.was_read() == [chunks(segment, number)["path"]]
            assert (
                found["path"].to_pylist()
                == [f"{n:06}" for n in range(ROW_GROUP_ROWS + 10)][number * ROW_GROUP_ROWS :][: len(found)]
            )

    def test_a_block_that_another_process_reads_takes_one_request_more_for_the_footer(self) -> None:
        segment = noise()
        store = Counting(MemoryStore())
        (place,) = segment.places
        store.put(place.name, segment.data)
        assert len(read_block(store, place, NOISE, {"5"})) == 4 and store.requests["get_range"] == 1
        place = pickle.loads(pickle.dumps(place))
        for requests in (3, 4):
            assert len(read_block(store, place, NOISE, {"5"})) == 4 and store.requests["get_range"] == requests


SINGLE = [c for c in ALL.columns if c.shape is Shape.ONE and c.type is not DataType.MESSAGE and c.name not in ALL.key]
FLOATING = {"a_float", "a_double"}


def of_one(value: int | None) -> Written:
    """A segment in which each column holds one value throughout: that of its type with this number, or None."""
    row = {c.field_name: None if value is None else VALUES[c.type][value % len(VALUES[c.type])] for c in SINGLE}
    keys = [{"2001": n, "2000": "x"} for n in range(3)]
    return written(RunRows(facts_with(ALL, [key | row for key in keys]), ALL, BlockClass.LIVE))


class TestStatistics:
    @pytest.mark.parametrize("value", [None, *range(max(len(VALUES[c.type]) for c in SINGLE))])
    def test_what_is_the_same_throughout_is_not_read_but_for_numbers_with_a_fraction(self, value: int | None) -> None:
        segment = of_one(value)
        at = chunks(segment)
        for column in SINGLE:
            expected = [None if value is None else VALUES[column.type][value % len(VALUES[column.type])]] * 3
            found = segment.read(0, [column.name])
            assert bits(found[column.name].cast(column.storage_type).to_pylist()) == bits(
                pa.array(expected, column.storage_type).to_pylist()
            )
            assert segment.was_read() == ([at[column.name]] if column.name in FLOATING else []), column.name
            assert found.schema.field(0) == pq.read_schema(pa.BufferReader(segment.data)).field(column.name)
        every = [column.name for column in SINGLE]
        (facts,) = segment.facts(ALL, {column.field_name for column in SINGLE})
        whole = segment.read(0, every, whole=True)
        assert segment.read(0, every).schema == whole.schema
        assert bits(segment.read(0, every).to_pylist()) == bits(whole.to_pylist())
        assert bits(facts.stored_column(ALL.by_name["a_double"]).to_pylist()) == bits(whole["a_double"].to_pylist())

    def test_a_column_in_which_one_row_differs_or_lacks_it_is_read(self) -> None:
        for column in SINGLE:
            for other in (None, VALUES[column.type][-1]):
                values = [VALUES[column.type][0], VALUES[column.type][0], other]
                rows = [{"2001": n, "2000": "x", column.field_name: value} for n, value in enumerate(values)]
                given = facts_with(ALL, rows)
                segment = written(RunRows(given, ALL, BlockClass.LIVE))
                found = segment.read(0, [column.name])[column.name]
                assert segment.was_read() == [chunks(segment)[column.name]], column.name
                assert bits(found.to_pylist()) == bits(given.rows[column.field_name].to_pylist())

    def test_each_row_group_has_its_own(self) -> None:
        count = 2 * ROW_GROUP_ROWS
        rows = [{"1": "s" if n < ROW_GROUP_ROWS else f"s{n // 20_000}", "2": f"{n:06}"} for n in range(count)]
        segment = written(RunRows(facts_with(WORDS, rows), WORDS, BlockClass.LIVE))
        first, second = (segment.read(number, ["source"])["source"].to_pylist() for number in range(2))
        assert first + second == [row["1"] for row in rows]
        assert segment.was_read() == [chunks(segment, 1)["source"]]

    @pytest.mark.parametrize(
        "values", [[0.0, -0.0], [-0.0, -0.0], [NAN, NAN], [NAN, OTHER_NAN], [1.0, NAN], [1.0, 1.0], [-0.0, None]]
    )
    def test_numbers_with_a_fraction_are_read_as_they_are(self, values: list[float | None]) -> None:
        rows = [{"5": n, "6": value, "7": [value]} for n, value in enumerate(values)]
        segment = written(RunRows(facts_with(NOISE, rows), NOISE, BlockClass.LIVE))
        at = chunks(segment)
        assert at["number"][1] == at["numbers"][0]
        found = segment.read(0, ["number", "numbers"])
        assert segment.was_read() == [(at["number"][0], at["numbers"][1])]
        assert bits(found["number"].to_pylist()) == bits(values)
        assert bits(found["numbers"].to_pylist()) == bits([[value] for value in values])

    def test_whoever_asks_for_the_whole_is_told_that_statistics_lie(self) -> None:
        one, two = (
            written(RunRows(facts_with(NOISE, [{"5": n, "2": value} for n in range(3)]), NOISE, BlockClass.LIVE))
            for value in (b"abc", b"xyz")
        )
        assert chunks(one)["small"] == chunks(two)["small"]
        lying = replace(one.groups[0], statistics=two.groups[0].statistics)
        assert read_row_groups([lying], ["small"], one.fetch, lambda: "rows")["small"].to_pylist() == [b"xyz"] * 3
        with pytest.raises(CorruptionError, match="statistics of the column 'small' that are not of rows"):
            read_row_groups([lying], ["small"], one.fetch, lambda: "rows", whole=True)
        unsaid = replace(one.groups[0], statistics=Statistics())
        assert read_row_groups([unsaid], ["small"], one.fetch, lambda: "rows")["small"].to_pylist() == [b"abc"] * 3

    def test_they_are_parsed_once_for_each_row_group_and_travel_as_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        parsed: list[bytes] = []

        def parse(message: bytes) -> log_pb2.RowGroupStatistics:
            parsed.append(message)
            return log_pb2.RowGroupStatistics.FromString(message)

        counted = SimpleNamespace(FromString=parse)
        segment = written(RunRows(words(2 * ROW_GROUP_ROWS), WORDS, BlockClass.LIVE))
        monkeypatch.setattr("bucketcatalog.format.statistics.log_pb2", SimpleNamespace(RowGroupStatistics=counted))
        for _ in range(3):
            segment.facts(WORDS)
            for number, group in enumerate(segment.groups):
                segment.read(number, ["path"], whole=True)
                ranges_to_read(group, ["source"])
                assert column_statistics(group, "source") is not None and column_statistics(group, "path") is not None
        assert len(parsed) == len(segment.groups) == 2
        for group in segment.groups:
            sent = pickle.loads(pickle.dumps(group.statistics))
            assert sent.chunks == group.statistics.chunks and len(pickle.dumps(sent)) < len(parsed[0]) + 200

    def test_those_of_more_or_fewer_chunks_than_there_are_are_refused(self) -> None:
        segment = noise()
        (group,) = segment.groups
        message = log_pb2.RowGroupStatistics(chunks=group.statistics.chunks)
        for change in (message.chunks.add, message.chunks.pop, message.chunks.pop):
            change()
            other = replace(group, statistics=Statistics(message.SerializeToString()))
            if len(message.chunks) != len(group.lengths):
                with pytest.raises(CorruptionError, match=r"columns in its footer, and statistics of \d+ in its index"):
                    read_row_groups([other], ["k"], segment.fetch, lambda: "rows")

    @pytest.mark.parametrize("size", [1_024, 1_025])
    def test_the_index_has_no_long_bounds(self, size: int) -> None:
        segment = written(RunRows(facts_with(NOISE, [{"5": 1, "2": b"x" * size}]), NOISE, BlockClass.LIVE))
        assert segment.read(0, ["small"])["small"].to_pylist() == [b"x" * size]
        assert segment.was_read() == ([] if size <= 1_024 else [chunks(segment)["small"]])

    def test_a_long_text_of_which_there_are_no_statistics_is_read(self) -> None:
        rows = [{"5": n, "3": b"x" * 100_000} for n in range(3)]
        segment = written(RunRows(facts_with(NOISE, rows), NOISE, BlockClass.LIVE))
        assert segment.read(0, ["large"])["large"].to_pylist() == [b"x" * 100_000] * 3
        assert segment.was_read() == [chunks(segment)["large"]]


def built(parts: Sequence[Facts]) -> Written:
    """A segment of ``harvest_errors`` to which these are added one after the other."""
    return written(*(RunRows(part, WORDS, BlockClass.LIVE) for part in parts))


class TestRowGroups:
    @pytest.mark.parametrize("count", [1, ROW_GROUP_ROWS - 1, ROW_GROUP_ROWS, ROW_GROUP_ROWS + 1, 2 * ROW_GROUP_ROWS + 5])
    @pytest.mark.parametrize("step", [3_000, 50_000])
    def test_many_rows_become_several_however_they_came(self, count: int, step: int) -> None:
        given = words(count)
        segment = built([given.slice(start, min(start + step, count)) for start in range(0, count, step)])
        sizes = [ROW_GROUP_ROWS] * (count // ROW_GROUP_ROWS) + [left for left in [count % ROW_GROUP_ROWS] if left]
        assert [place.header.rows for place in segment.places] == sizes
        assert (segment.reference.run.rows, segment.reference.run.blocks) == (count, len(sizes))
        metadata = pq.read_metadata(pa.BufferReader(segment.data))
        assert [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)] == sizes
        starts = [sum(sizes[:n]) for n in range(len(sizes))]
        keys = [(f"s\0\1{at:06}".encode(), f"s\0\1{at + rows - 1:06}".encode()) for at, rows in zip(starts, sizes, strict=True)]
        assert [(place.header.first_key, place.header.last_key) for place in segment.places] == keys
        assert contents(concat(segment.facts(WORDS)), WORDS) == contents(given, WORDS)
        assert segment.data == built([given]).data

    def test_wide_rows_become_smaller_ones_and_no_row_is_parted(self) -> None:
        mebi = 1 << 20
        sizes = [mebi] * 20 + [2 * ROW_GROUP_BYTES] + [10] * 30
        rows = [{"1": "s", "2": f"{n:06}", "4": "x" * size} for n, size in enumerate(sizes)]
        segment = built([facts_with(WORDS, rows)])
        counts = [place.header.rows for place in segment.places]
        assert sum(counts) == len(sizes) and len(counts) > 3
        ends = list(accumulate(counts))
        assert all(
            count == 1 or sum(sizes[end - count : end]) <= ROW_GROUP_BYTES for end, count in zip(ends, counts, strict=True)
        )
        texts = [text for facts in segment.facts(WORDS, {"4"}) for text in facts.rows["4"].to_pylist()]
        assert [len(text) for text in texts] == sizes

    def test_they_are_halved_until_none_is_too_large_and_not_more(self) -> None:
        rows = [{"1": "s", "2": f"{n:06}", "4": "x" * (1 << 20)} for n in range(20)]
        assert [place.header.rows for place in built([facts_with(WORDS, rows)]).places] == [5] * 4
        assert [place.header.rows for place in built([facts_with(WORDS, rows[:7])]).places] == [7]

    def test_rows_that_begin_before_the_last_ones_end_are_left_to_another_run(self) -> None:
        given = words(30)
        builder = RunBuilder(RunRows(given.slice(10, 20), WORDS, BlockClass.LIVE))
        assert not builder.add(given.slice(0, 10)) and not builder.add(given.slice(18, 30))
        assert builder.add(given.slice(19, 30))  # the same key may go on
        data, reference = builder.segment(writer="w", database="db", uuid=UUID)
        paths = pq.read_table(pa.BufferReader(data))["path"].to_pylist()
        assert paths == [f"{n:06}" for n in (*range(10, 20), *range(19, 30))] and reference.run.rows == len(paths)

    def test_no_row_is_written_that_nobody_would_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """One that is given is smaller than one that a merge may make."""
        rows = [{"1": "s", "2": f"{n:06}", "4": "x" * (1 << 15)} for n in range(300)]
        for block_class, limit in ((BlockClass.EVENTS, "ROW_BYTES"), (BlockClass.LIVE, "WRITTEN_BYTES")):
            monkeypatch.setattr(limits, limit, 1 << 16)
            rows[150]["4"] = "x" * (1 << 15)
            facts = facts_with(WORDS, rows, block_class)
            assert sum(place.header.rows for place in written(RunRows(facts, WORDS, block_class)).places) == len(rows)
            rows[150]["4"] = "x" * (1 << 16)
            facts = facts_with(WORDS, rows, block_class)
            said = r"The row \(source='s', path='000150'\) of table 'harvest_errors' comes to \d+ bytes .* more than 65536"
            with pytest.raises(InvalidRows, match=said):
                written(RunRows(facts, WORDS, block_class))
            with pytest.raises(InvalidRows, match=said):
                list(encode_blocks(facts, WORDS, block_class))

    def test_a_segment_is_full_before_it_has_more_chunks_than_anybody_would_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given = words(4 * ROW_GROUP_ROWS)
        chunks = len(built([given]).groups[0].lengths)
        monkeypatch.setattr("bucketcatalog.format.segments._FULL", 2 * chunks)
        builder = RunBuilder(RunRows(given.slice(0, ROW_GROUP_ROWS), WORDS, BlockClass.LIVE))
        parts = [given.slice(n * ROW_GROUP_ROWS, (n + 1) * ROW_GROUP_ROWS) for n in (1, 2, 3)]
        assert [builder.add(part) for part in parts] == [True, False, False]
        store = MemoryStore()
        writer = RunWriter(store, "w", "db", cut=None, began=0)
        writer.add(RunRows(given, WORDS, BlockClass.LIVE))
        writer.finish()
        assert [reference.run.blocks for reference in writer.segments] == [2, 2]
        places = [place for reference in writer.segments for place in read_index(store, "db", reference)]
        found = concat([read_block(store, place, WORDS) for place in places])
        assert contents(found, WORDS) == contents(given, WORDS)

    def test_rows_are_cut_where_row_groups_end_so_that_few_are_put_together(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given, added, add = words(4 * 10_000), list[int](), RunBuilder.add
        monkeypatch.setattr(RunBuilder, "add", lambda self, facts: added.append(len(facts)) or add(self, facts))
        store = MemoryStore()
        writer = RunWriter(store, "w", "db", cut=None, began=0)
        for start in range(0, len(given), 10_000):
            writer.add(RunRows(given.slice(start, start + 10_000), WORDS, BlockClass.LIVE))
        writer.finish()
        assert added == [10_000, 6_384, 3_616, 10_000, 2_768, 7_232]
        (reference,) = writer.segments
        places = read_index(store, "db", reference)
        assert [place.header.rows for place in places] == [ROW_GROUP_ROWS, ROW_GROUP_ROWS, 40_000 - 2 * ROW_GROUP_ROWS]
        assert contents(concat([read_block(store, place, WORDS) for place in places]), WORDS) == contents(given, WORDS)

    def test_the_footer_says_what_the_rows_are_sorted_by(self) -> None:
        segment = written(RunRows(facts_with(ALL, rows_of(ALL, 12)), ALL, BlockClass.LIVE))
        metadata = pq.read_metadata(pa.BufferReader(segment.data))
        by = [metadata.schema.column(one.column_index).path for one in metadata.row_group(0).sorting_columns]
        assert by == ["number", "name"] and not any(one.descending for one in metadata.row_group(0).sorting_columns)

    def test_the_same_rows_are_the_same_bytes(self) -> None:
        given = facts_with(ALL, rows_of(ALL, 24), BlockClass.STUBS)
        first = written(RunRows(given, ALL, BlockClass.STUBS))
        again = written(RunRows(facts_with(ALL, rows_of(ALL, 24), BlockClass.STUBS), ALL, BlockClass.STUBS))
        (read,) = first.facts(ALL)
        names = read.rows.column_names
        other = Facts(read.transactions, read.rows.select(names[::-1]))
        assert again.data == first.data
        assert written(RunRows(other, ALL, BlockClass.STUBS)).data == first.data
        parted = [given.slice(start, start + 8) for start in (0, 8, 16)]
        assert written(*(RunRows(part, ALL, BlockClass.STUBS) for part in parted)).data == first.data


FLAGS = tables_of(
    messages(
        proto(
            """message Row { option (table) = { name: "lab.flags" key: "k" }; int64 k = 1; repeated bool flags = 2;
            optional bytes of = 3 [(column) = {type: LOGICAL_TYPE_UUID}]; }"""
        )
    ).values()
)[0]


class TestWhatAnybodyReads:
    def test_rows_that_are_small_in_memory_and_large_to_read_are_several_groups(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A truth is a bit in memory, and takes a reader five bytes."""
        monkeypatch.setattr(limits, "WRITTEN_BYTES", 200_000)
        given = facts_with(FLAGS, [{"1": n, "2": [True, False] * 500} for n in range(400)])
        assert given.rows.nbytes < 200_000
        segment = written(RunRows(given, FLAGS, BlockClass.LIVE))
        monkeypatch.setattr(limits, "GROUP_BYTES", 400_000)
        assert len(segment.groups) > 5
        assert contents(concat(segment.facts(FLAGS)), FLAGS) == contents(given, FLAGS)
        monkeypatch.setattr(limits, "WRITTEN_BYTES", 4_000)
        with pytest.raises(InvalidRows, match=r"lab\.flags"):
            written(RunRows(given, FLAGS, BlockClass.LIVE))

    def test_an_index_that_nobody_would_read_is_not_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "INDEX_BYTES", 100)
        with pytest.raises(InvalidRows, match=r"lab\.flags.* an index of"):
            written(RunRows(facts_with(FLAGS, [{"1": 1}]), FLAGS, BlockClass.LIVE))

    def test_a_bound_alone_is_no_value(self) -> None:
        said = log_pb2.ChunkStatistics(nulls=0, low=b"")
        assert one_value(said, pa.string(), 3) is None
        said.high = b""
        assert one_value(said, pa.string(), 3) == pa.scalar("")

    @pytest.mark.parametrize("text", ["no uuid", "7F3F1D6E6A534B0C9D3C0D9A8D2B7C11"])
    def test_what_is_no_uuid_is_damage(self, text: str) -> None:
        (block,) = encode_blocks(facts_with(FLAGS, [{"1": 1, "3": text}]), FLAGS, BlockClass.LIVE)
        with pytest.raises(CorruptionError, match=r"file holds a block of table 'lab\.flags' that has no uuids"):
            decode_block(block.data, FLAGS, "file")


class TestNothingElse:
    def held(self) -> str:
        return "the rows"

    def test_a_footer_that_points_elsewhere_reads_nothing_there(self) -> None:
        """Somebody who may write a file, and so its digests, cannot have a reader take bytes that the index does not name."""
        one, two = noise(), noise(rows=5, seed=2)
        footer = Footer("file", one.groups[0].footer.offset, one.groups[0].footer.length, footer_digest(two.footer), two.footer)
        assert footer.layout.columns == one.groups[0].footer.layout.columns
        group = replace(one.groups[0], footer=footer, statistics=Statistics())
        at = chunks(one)
        for name in ("small", "large", "last"):
            assert chunks(two)[name] != at[name]
            with pytest.raises(CorruptionError, match=r"file holds the rows, which cannot be read"):
                read_row_groups([group], [name], one.fetch, self.held)
            assert one.was_read() == [at[name]]

    def test_an_index_of_other_columns_than_the_footer_has_reads_nothing(self) -> None:
        segment = noise()
        (group,) = segment.groups
        for wrong in (group.lengths[:-1], (*group.lengths, 1), ()):
            other = replace(group, lengths=wrong, checksums=(group.checksums * 2)[: len(wrong)])
            with pytest.raises(CorruptionError, match="in its footer, and"):
                read_row_groups([other], ["k"], segment.fetch, self.held)
            with pytest.raises(CorruptionError, match="in its footer, and"):
                check_row_group(other, segment.fetch, self.held)
        assert segment.was_read() == []

    def test_a_flipped_bit_is_met_by_those_who_read_the_chunk_and_no_others(self) -> None:
        segment = noise()
        spans = chunks(segment)
        read = ["first", "small", "large", "last", "k", "_seq"]
        for damaged in read:
            for at in (spans[damaged][0], spans[damaged][1] - 1):
                data = bytearray(segment.data)
                data[at] ^= 1
                other = Written(bytes(data), segment.reference, segment.places)
                for name in read:
                    if name == damaged:
                        with pytest.raises(CorruptionError, match="checksum of rows does not match"):
                            other.read(0, [name])
                    else:
                        assert other.read(0, [name]).equals(segment.read(0, [name]))
                with pytest.raises(CorruptionError, match="checksum of the rows does not match"):
                    check_row_group(other.groups[0], other.fetch, self.held)

    def test_a_flipped_bit_in_a_column_that_statistics_tell_is_met_by_those_who_read_the_whole(self) -> None:
        segment = of_one(0)
        data = bytearray(segment.data)
        data[chunks(segment)["a_string"][0]] ^= 1
        other = Written(bytes(data), segment.reference, segment.places)
        assert other.read(0, ["a_string"])["a_string"].to_pylist() == [""] * 3
        with pytest.raises(CorruptionError, match="checksum"):
            other.read(0, ["a_uuid"], whole=True)

    def test_a_file_that_ends_within_a_chunk_is_cut_off(self) -> None:
        segment = noise()
        end = chunks(segment)["large"][1]
        other = Written(segment.data[: end - 1], segment.reference, segment.places)
        assert len(other.read(0, ["small"])) == 4
        with pytest.raises(TruncatedObject, match="ends within rows"):
            other.read(0, ["large"])
