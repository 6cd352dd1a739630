"""Segments with right checksums that are forged: each is refused by name, within bounded memory and time, and none ends the process."""

from __future__ import annotations

import base64
import re
import struct
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial

import pyarrow as pa
import pytest

from bucketcatalog.errors import BucketCatalogError, CorruptionError, UnsupportedFormat
from bucketcatalog.format.definitions import tables_of
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.format.runs import SegmentReference
from bucketcatalog.format.segments import RunRows
from bucketcatalog.log.blocks import read_block, read_blocks, side_by_side
from bucketcatalog.log.segments import read_index, read_segment_file
from bucketcatalog.model import paths
from bucketcatalog.model.facts import Facts
from bucketcatalog.model.tables import Table
from bucketcatalog.store.memory import MemoryStore

from ...kit import forging as f
from ...kit.forging import Forgery, delta_of, raw, run_of
from ...kit.limited import MEBI, Limited
from ...kit.storing import START, UUID, facts_with, written
from ...kit.thrift import BINARY, I32, I64, LIST, STRUCT, List, Struct, Value, binary, i32, i64, varint, write_struct
from ...kit.world import messages, proto

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what a process takes is asked of Linux")

THING = proto(
    """message Thing {
      option (table) = { name: "my.thing" key: "k" };
      int64 k = 1;
      optional string text = 2;
      optional string word = 3;
      repeated int64 numbers = 4;
      map<string, string> tags = 5;
      optional int64 time = 6 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
      repeated string words = 7;
      optional double ratio = 8;
    }"""
)
ROWS = 1_000
ALL, HUGE = run_of(ROWS, 1), 2**31 - 1
FILE = paths.segment("w", "db", UUID)
TAKEN = 512 * MEBI
"""What a process may grow by when it refuses a file."""


@cache
def things() -> tuple[Table, bytes, SegmentReference]:
    """A table, and a segment of it."""
    (table,) = tables_of(messages(THING)["Thing"])
    rows = [
        {
            "1": n,
            "2": f"text {n}",
            "3": f"w{n % 5}",
            "4": [n],
            "5": [("a", f"v{n % 3}")],
            "6": START + n,
            "7": [f"x{n % 4}"] * 2,
            "8": n / 3,
        }
        for n in range(ROWS)
    ]
    segment = written(RunRows(facts_with(table, rows), table, BlockClass.LIVE))
    return table, segment.data, segment.reference


def read(data: bytes, reference: SegmentReference, table: Table) -> list[Facts]:
    """All rows, as scans read them, and then as ``verify`` does; with the index as it is found by itself."""
    store = MemoryStore()
    store.put(FILE, data)
    read_segment_file(store, FILE, len(data))
    places = read_index(store, "db", reference)
    found = [read_blocks(store, together, table) for together in side_by_side(places)]
    for place in places:
        read_block(store, place, table, {"3"})
        read_block(store, place, table, whole=True)
    return found


@pytest.fixture(scope="module")
def limited() -> Iterator[Limited]:
    table, data, reference = things()
    with Limited() as limited:
        limited.prepare(read, data, reference, table)
        yield limited


def refused(limited: Limited, forge: Callable[[Forgery], object], kind: type[BucketCatalogError] = CorruptionError) -> str:
    """What the error says with which a forged segment is refused."""
    table, data, reference = things()
    forgery = Forgery.of(data, reference)
    forge(forgery)
    outcome = limited.call(read, *forgery.sealed(), table)
    assert isinstance(outcome.error, kind), outcome
    assert outcome.error.message.startswith(FILE), outcome.error
    assert outcome.grown < TAKEN and outcome.seconds < 10, outcome
    return outcome.error.message


def test_a_segment_that_was_taken_apart_and_put_together_is_the_same_and_is_read(limited: Limited) -> None:
    table, data, reference = things()
    assert Forgery.of(data, reference).sealed() == (data, reference)
    outcome = limited.call(read, data, reference, table)
    assert outcome.error is None and [len(facts) for facts in outcome.value] == [ROWS]


def page_says(name: str, field: int, value: int, one: Forgery) -> None:
    one.chunk(name).data_page.header.put(field, I32, value)


def page_holds(name: str, definition: bytes, content: bytes, one: Forgery, **said: int) -> None:
    one.chunk(name).data_page.hold_values(definition, content, **said)


def bomb(size: int, times: int, one: Forgery) -> None:
    """Pages that are so large without compression, and a few kilobytes with it."""
    chunk = one.chunk("text")
    page = chunk.data_page
    page.hold_values(ALL, bytes(size))
    chunk.pages = [page] * times


def bomb_that_claims_little(one: Forgery) -> None:
    page = one.chunk("text").data_page
    page.hold_values(ALL, bytes(1 << 29))
    page.header.put(f.PAGE_UNCOMPRESSED, I32, 8_000)


def dictionary_holds(content: bytes, count: int, one: Forgery) -> None:
    page = one.chunk("word").dictionary
    page.hold(content)
    page.of_kind.put(f.PAGE_VALUES, I32, count)


def dictionary_that_expands(name: str, definition: bytes, repetition: bytes, one: Forgery) -> None:
    """One value of 16 MiB, in every row."""
    large = 16 * MEBI
    chunk = one.chunk(name)
    chunk.dictionary.hold(large.to_bytes(4, "little") + bytes(large))
    chunk.dictionary.of_kind.put(f.PAGE_VALUES, I32, 1)
    chunk.data_page.hold_values(definition, b"\0" + varint(ROWS << 1), repetition)


def prefixes_that_expand(one: Forgery) -> None:
    """A text of 8 MiB, of which each further row has the whole as its prefix."""
    large = 8 * MEBI
    prefixes = varint(128) + varint(4) + varint(ROWS) + b"\0" + _steps([large] + [0] * (ROWS - 2))
    lengths = varint(128) + varint(4) + varint(ROWS) + varint(large << 1) + _steps([-large] + [0] * (ROWS - 2))
    page_holds("text", ALL, prefixes + lengths + bytes(large), one, encoding=f.DELTA_STRINGS)


def _steps(differences: list[int]) -> bytes:
    """Blocks of 128 differences in DELTA_BINARY_PACKED, packed in 32 bits each."""
    out = []
    for start in range(0, len(differences), 128):
        part = differences[start : start + 128]
        least = min(part)
        packed = struct.pack("<128I", *[value - least for value in part], *[0] * (128 - len(part)))
        out.append(varint(least << 1 if least >= 0 else (-least << 1) - 1) + bytes([32] * 4) + packed)
    return b"".join(out)


def many_nulls(count: int, one: Forgery) -> None:
    """A list of so many nulls in the first row, in a few bytes."""
    chunk = one.chunk("numbers.list.element")
    chunk.data_page.hold_values(
        run_of(count, 2), b"", run_of(1, 0) + run_of(count - ROWS, 1) + run_of(ROWS - 1, 0), values=count, nulls=count, rows=ROWS
    )
    chunk.data_page.of_kind.put(4, I32, f.PLAIN)
    chunk.said.put(f.VALUES, I64, count)


PAGES: dict[str, Callable[[Forgery], object]] = {
    **{
        f"a page that claims {n} bytes": partial(page_says, "text", f.PAGE_UNCOMPRESSED, n)
        for n in (HUGE, 1 << 30, -1, 0, 1 << 33)
    },
    **{f"a page that claims {n} stored bytes": partial(page_says, "text", f.PAGE_COMPRESSED, n) for n in (HUGE, -1, 0, 1 << 33)},
    **{f"a page of type {n}": partial(page_says, "text", f.PAGE_TYPE, n) for n in (0, 1, 2, 9, -1)},
    "a page header without end": lambda one: setattr(one.chunk("text").pages[0], "header", raw(b"\x15\x06\x15" + b"\xff" * 200)),
    "a page header of structs in structs": lambda one: setattr(one.chunk("text").pages[0], "header", raw(b"\x1c" * MEBI)),
    "a page header of 20 MB": lambda one: one.chunk("text").pages[0].header.put(20, BINARY, bytes(20 << 20)),
    "a page header with a long list": lambda one: one.chunk("text").pages[0].header.put(9, LIST, List(I32, [0] * MEBI)),
    "1 GiB of zeros": partial(bomb, 1 << 30, 1),
    "100 times 200 MiB of zeros": partial(bomb, 200 * MEBI, 100),
    "512 MiB of zeros in a page that claims 8 kB": bomb_that_claims_little,
    "a dictionary of 1 GiB": lambda one: dictionary_holds((1 << 30).to_bytes(4, "little") + bytes(1 << 30), 1, one),
    "a dictionary that claims 2^31 values": lambda one: one.chunk("word").dictionary.of_kind.put(f.PAGE_VALUES, I32, HUGE),
    "a dictionary that claims fewer than none": lambda one: one.chunk("word").dictionary.of_kind.put(f.PAGE_VALUES, I32, -1),
    "a dictionary of 2^31 numbers": lambda one: one.chunk("_revision").dictionary.of_kind.put(f.PAGE_VALUES, I32, HUGE),
    "a dictionary that is not there": lambda one: one.chunk("word").pages.pop(0),
    "two dictionaries": lambda one: one.chunk("word").pages.insert(0, one.chunk("word").pages[0]),
    "a dictionary with values that expand": partial(dictionary_that_expands, "word", ALL, b""),
    "the same within maps": partial(dictionary_that_expands, "tags.key_value.value", run_of(ROWS, 3), run_of(ROWS, 0)),
    "indices beyond the dictionary": partial(page_holds, "word", ALL, b"\x08" + varint(ROWS << 1) + b"\xff"),
    "indices of 255 bits": partial(page_holds, "word", ALL, b"\xff" + varint(ROWS << 1) + bytes(40)),
    "prefixes that expand": prefixes_that_expand,
    "a page of 2^31 values": lambda one: one.chunk("text").data_page.of_kind.put(f.PAGE_VALUES, I32, HUGE),
    "a page of fewer values than none": lambda one: one.chunk("text").data_page.of_kind.put(f.PAGE_VALUES, I32, -1),
    "a page of one value less": lambda one: one.chunk("text").data_page.of_kind.put(f.PAGE_VALUES, I32, ROWS - 1),
    "levels of 2 GiB": lambda one: one.chunk("text").data_page.of_kind.put(5, I32, HUGE),
    "levels of less than no bytes": lambda one: one.chunk("text").data_page.of_kind.put(5, I32, -3),
    "a run of 2^31 nulls": partial(page_holds, "text", run_of(HUGE, 0), b"", values=HUGE, rows=HUGE, nulls=HUGE),
    "a list of 2^31 nulls": partial(many_nulls, HUGE),
    "a list of 2^28 nulls": partial(many_nulls, 1 << 28),
    "lists of which the first goes on": lambda one: one.chunk("words.list.element").data_page.hold_values(
        run_of(2 * ROWS, 3), b"\0" + varint(ROWS << 2), run_of(2 * ROWS, 1)
    ),
    "fewer lists than rows": lambda one: one.chunk("words.list.element").data_page.hold_values(
        run_of(2 * ROWS, 3), b"\0" + varint(ROWS << 2), run_of(1, 0) + run_of(2 * ROWS - 1, 1)
    ),
    "levels that there are not": lambda one: one.chunk("words.list.element").data_page.hold_values(
        run_of(2 * ROWS, 7), b"\0" + varint(ROWS << 2), run_of(2 * ROWS, 3)
    ),
    **{f"the encoding {n}": partial(page_holds, "text", ALL, bytes(8), encoding=n) for n in (1, 4, 7, 9, 10, 99, -1)},
    "deltas in blocks of 2^32": partial(page_holds, "k", ALL, delta_of(ROWS, 5, block=2**32 - 128, parts=1, body=b"\0\1")),
    "deltas in no parts": partial(page_holds, "k", ALL, delta_of(ROWS, 5, parts=0)),
    "deltas in 2^26 parts": partial(page_holds, "k", ALL, delta_of(ROWS, 5, block=2**31, parts=2**26)),
    "deltas of 255 bits": partial(page_holds, "k", ALL, delta_of(ROWS, 5, body=b"\0" + b"\xff" * 4 + bytes(2_000))),
    "2^32 deltas": partial(page_holds, "k", ALL, delta_of(2**32 - 1, 5, body=bytes(20))),
    "texts of less than no bytes": partial(page_holds, "text", ALL, delta_of(ROWS, -5) + b"abc"),
    "texts of 2 GiB each": partial(page_holds, "text", ALL, delta_of(ROWS, HUGE) + b"abc"),
    "texts that come to 2^32 bytes": partial(page_holds, "text", ALL, delta_of(ROWS, 2**22 + 300) + b"abc"),
    "a text that ends beyond the page": partial(page_holds, "text", ALL, b"\xff\xff\xff\x7fabc", encoding=f.PLAIN),
}


@pytest.mark.parametrize("forge", PAGES.values(), ids=PAGES)
def test_pages_are_refused(limited: Limited, forge: Callable[[Forgery], object]) -> None:
    assert "1000 rows of my.thing" in refused(limited, forge)


def test_text_that_is_no_utf8_is_refused_also_in_dictionaries_and_in_lists(limited: Limited) -> None:
    wrong = (2).to_bytes(4, "little") + b"\xc3("
    plain = refused(limited, partial(page_holds, "text", ALL, wrong * ROWS, encoding=f.PLAIN))
    in_dictionary = refused(limited, partial(dictionary_holds, wrong * 5, 5))
    in_list = refused(limited, lambda one: one.chunk("words.list.element").dictionary.hold(wrong * 4))
    assert [text.partition("read: ")[2] for text in (plain, in_dictionary, in_list)] == [
        f"{name} has text that is no UTF-8." for name in ("text", "word", "words")
    ]


def at_last(change: Callable[[Forgery], object], one: Forgery) -> None:
    """Change it when all else is in its place."""
    one.last.append(lambda: change(one))


def chunk_says(field: int, value: int, one: Forgery) -> None:
    one.last.append(lambda: one.chunk("text").said.put(field, I64, value))


def metadata(pairs: list[Struct], one: Forgery) -> None:
    one.last.append(lambda: one.footer.put(f.METADATA, LIST, List(STRUCT, pairs)))


def nested(depth: int, repetition: int, one: Forgery) -> None:
    """A column in groups in groups."""

    def change() -> None:
        groups = [Struct({f.REPETITION: i32(repetition), f.NAME: binary(b"n"), f.CHILDREN: i32(1)}) for _ in range(depth)]
        one.schema.extend([*groups, Struct({f.PHYSICAL: i32(6), f.REPETITION: i32(1), f.NAME: binary(b"deep")})])
        one.schema[0].put(f.CHILDREN, I32, one.schema[0].get_value(f.CHILDREN) + 1)
        orders = one.footer.get_value(f.ORDERS)
        orders.append(orders[0])

    one.last.append(change)


def wide(count: int, one: Forgery) -> None:
    """So many columns more in the schema."""

    def change() -> None:
        one.schema.extend(Struct({f.PHYSICAL: i32(6), f.REPETITION: i32(1), f.NAME: binary(b"x%d" % n)}) for n in range(count))
        one.schema[0].put(f.CHILDREN, I32, one.schema[0].get_value(f.CHILDREN) + count)
        orders = one.footer.get_value(f.ORDERS)
        orders.extend([orders[0]] * count)

    one.last.append(change)


def children(count: int, one: Forgery) -> None:
    one.schema[0].put(f.CHILDREN, I32, count)


def row_groups(count: int, chunks: int, one: Forgery) -> None:
    """So many row groups more, each of chunks of which nothing is said."""
    chunk = raw(write_struct(Struct({2: i64(0)})))
    group = raw(write_struct(Struct({f.COLUMNS: Value(LIST, List(STRUCT, [chunk] * chunks)), 2: i64(0), f.GROUP_ROWS: i64(0)})))
    one.last.append(lambda: one.groups.extend([group] * count))


ARROW = pa.schema([pa.field("k", pa.int64()), pa.field("text", pa.dictionary(pa.int8(), pa.string()))])
FOOTERS: dict[str, Callable[[Forgery], object]] = {
    "a million row groups": partial(row_groups, 1_000_000, 0),
    "a million row groups that are claimed": lambda one: setattr(one.groups, "claims", 1_000_000),
    "a million columns that are claimed": partial(
        at_last, lambda one: setattr(one.group.get_value(f.COLUMNS), "claims", 1_000_000)
    ),
    "many row groups of many columns": partial(row_groups, 10, 100_000),
    "no row group": partial(at_last, lambda one: one.groups.clear()),
    "a column less in a row group": partial(at_last, lambda one: one.group.get_value(f.COLUMNS).pop()),
    "nothing of a chunk": partial(at_last, lambda one: one.group.get_value(f.COLUMNS)[1].pop(f.OF_COLUMN)),
    "a chunk that is encrypted": partial(at_last, lambda one: one.group.get_value(f.COLUMNS)[1].put(8, STRUCT, raw(b"\x1c\0\0"))),
    **{
        f"{n} rows in a row group": lambda one, n=n: one.group.put(f.GROUP_ROWS, I64, n)
        for n in (10**9, 1 << 62, 0, -1, ROWS - 1, ROWS + 1)
    },
    "1,000 levels": partial(nested, 1_000, 1),
    "90,000 levels of lists": partial(nested, 90_000, 2),
    "15,000 columns": partial(wide, 15_000),
    "100,000 columns": partial(wide, 100_000),
    **{f"{n} children": partial(children, n) for n in (HUGE, -1, 0, 1, 1_000)},
    "no schema": lambda one: one.schema.clear(),
    "structs in structs": partial(at_last, lambda one: setattr(one.footer, "raw", b"\x1c" * (2 << 20))),
    "lists in lists": partial(at_last, lambda one: setattr(one.footer, "raw", b"\xf9" + b"\x19" * (2 << 20))),
    "metadata of 40 MB": lambda one: metadata([Struct({1: binary(b"k"), 2: binary(bytes(40 << 20))})], one),
    "300,000 pairs of metadata": partial(metadata, [raw(b"\x18\1k\0")] * 300_000),
    "a text that claims 2 GiB": partial(metadata, [raw(b"\x18" + varint(HUGE) + b"abc\0")]),
    "an Arrow schema": partial(
        metadata, [Struct({1: binary(b"ARROW:schema"), 2: binary(base64.b64encode(ARROW.serialize().to_pybytes()))})]
    ),
    "an Arrow schema that is none": partial(metadata, [Struct({1: binary(b"ARROW:schema"), 2: binary(b"nonsense")})]),
    "a name that is no UTF-8": lambda one: one.element("word").put(f.NAME, BINARY, b"\xff\xfe"),
    **{f"a chunk at {n}": partial(chunk_says, f.DATA_AT, n) for n in (-1, 0, 5, 10**12, 2**63 - 1)},
    **{f"a chunk of {n} bytes": partial(chunk_says, f.COMPRESSED, n) for n in (-1, 0, 5, 10**12, 2**63 - 1)},
    "a chunk that is another": partial(
        at_last, lambda one: one.chunk("text").said.put(f.DATA_AT, I64, one.chunk("word").said.get_value(f.DICTIONARY_AT))
    ),
    "a chunk of fewer values than none": lambda one: one.chunk("text").said.put(f.VALUES, I64, -5),
    **{f"the codec {n}": lambda one, n=n: one.chunk("text").said.put(f.CODEC, I32, n) for n in (0, 1, 2, 3, 4, 5, 7, 99, -1)},
    "a type that the pages do not have": lambda one: one.element("text").put(f.PHYSICAL, I32, 2),
    "no type that there is": lambda one: one.element("text").put(f.PHYSICAL, I32, 77),
    "lists of two columns": lambda one: one.element("list").put(f.CHILDREN, I32, 2),
    "a list in place of a value": lambda one: one.element("text").put(f.REPETITION, I32, 2),
    "what is never null in place of what may be": lambda one: one.element("text").put(f.REPETITION, I32, 0),
}


@pytest.mark.parametrize("forge", FOOTERS.values(), ids=FOOTERS)
def test_footers_are_refused(limited: Limited, forge: Callable[[Forgery], object]) -> None:
    refused(limited, forge)


def as_number(one: Forgery) -> None:
    """Numbers in the place of text, as a whole."""
    text, time = one.element("text"), one.element("time")
    kept = {number: text[number] for number in (f.NAME, f.FIELD_ID)}
    text.clear()
    text.update(dict(sorted((time | kept).items())))
    one.chunk("text").pages = one.chunk("time").pages
    one.chunk("text").said.put(f.TYPE, I32, 2)
    for field in (f.STATISTICS, f.SIZES):
        one.chunk("text").said.pop(field, None)


def renamed(name: str, to: str, one: Forgery) -> None:
    one.element(name).put(f.NAME, BINARY, to.encode())
    one.chunk(name).said.put(f.PATH, LIST, List(BINARY, [to.encode()]))


def without_stamps(one: Forgery) -> None:
    for name in ("_commit_time", "_writer", "_revision", "_uuid"):
        renamed(name, "no" + name, one)


COLUMNS: dict[str, tuple[Callable[[Forgery], object], str]] = {
    "numbers in place of text": (as_number, r"whose column 'text' is timestamp"),
    "two columns of one number": (lambda one: one.element("ratio").put(f.FIELD_ID, I32, 3), "two columns are 'ratio'"),
    "a name twice": (partial(renamed, "word", "text"), "several of its columns have one name"),
    "a number twice": (lambda one: one.element("word").put(f.FIELD_ID, I32, 2), "two columns are 'word'"),
    "no column of the key": (lambda one: one.element("k").put(f.FIELD_ID, I32, 77), "without the column 'k'"),
    "no commit times": (partial(renamed, "_commit_time", "nobody"), "stamps without commit_time"),
    "no stamps": (without_stamps, "has versions without a stamp"),
    "stamps that are not whole": (
        lambda one: one.chunk("_writer").data_page.hold_values(run_of(ROWS, 0), b"\0", nulls=ROWS),
        "has stamps that are not whole",
    ),
    "stamps of no calendar": (
        lambda one: one.chunk("_commit_time").dictionary.hold((1 << 62).to_bytes(8, "little") * 3),
        "has stamps with times that no calendar has",
    ),
    "stamps in a block of events": (
        lambda one: one.say(BlockClass.EVENTS),
        "holds events of table 'my.thing' with stamps, which are their transaction's to give",
    ),
    "versions without a number": (
        lambda one: one.chunk("_seq").data_page.hold_values(run_of(ROWS, 0), b"\0", nulls=ROWS),
        "has versions without a stamp",
    ),
    "rows without a key": (
        lambda one: one.chunk("k").data_page.hold_values(run_of(ROWS, 0), delta_of(0, 0, body=b""), nulls=ROWS),
        "has rows without 'k'",
    ),
    "numbers below 0": (lambda one: one.chunk("_seq").dictionary.hold(b"\xff" * 12), "has numbers below 0 in the column '_seq'"),
}


@pytest.mark.parametrize(("forge", "says"), COLUMNS.values(), ids=COLUMNS)
def test_columns_that_are_not_a_tables_are_refused(limited: Limited, forge: Callable[[Forgery], object], says: str) -> None:
    said = refused(limited, forge)
    assert re.search(says, said), said


def test_what_no_release_knows_yet_asks_for_a_newer_one(limited: Limited) -> None:
    unknown = (200).to_bytes(4, "little")
    said = refused(limited, lambda one: one.chunk("_kind").dictionary.hold(unknown), UnsupportedFormat)
    assert "200 in the column '_kind'" in said
    said = refused(limited, partial(renamed, "ratio", "_ratio"), UnsupportedFormat)
    assert "unknown column '_ratio'" in said


def entries(change: Callable[[Forgery], object], one: Forgery) -> None:
    one.last.append(lambda: change(one))


INDEXES: dict[str, Callable[[Forgery], object]] = {
    "chunks of 2^40 bytes": lambda one: one.index.entries[0].lengths.__setitem__(0, 1 << 40),
    "chunks beyond the file": lambda one: one.index.entries[0].lengths.__setitem__(-1, 1 << 20),
    "a row group before the file": lambda one: setattr(one.index.entries[0], "offset", 0),
    "a row group at the end of numbers": lambda one: setattr(one.index.entries[0], "offset", (1 << 64) - 1),
    "more row groups than the footer": lambda one: one.index.entries.add().CopyFrom(one.index.entries[0]),
    "20,000 row groups": lambda one: one.index.entries.extend([one.index.entries[0]] * 20_000),
    "a million chunks": lambda one: one.index.entries[0].lengths.extend([0] * 1_000_000),
    "an index of 64 MB": lambda one: setattr(one.index, "writer", "x" * (64 << 20)),
    "16 million row groups of nothing": lambda one: one.index.MergeFromString(b"\x4a\0" * (8 << 20)),
    "fewer chunks": lambda one: (one.index.entries[0].lengths.pop(), one.index.entries[0].checksums.pop()),
    "fewer checksums": lambda one: one.index.entries[0].checksums.pop(),
    "other rows in a header": lambda one: setattr(one.index.entries[0].header, "rows", ROWS + 1),
    "a class that there is not": lambda one: setattr(one.index.entries[0].header, "class", 99),
}


@pytest.mark.parametrize("forge", INDEXES.values(), ids=INDEXES)
def test_indexes_are_refused(limited: Limited, forge: Callable[[Forgery], object]) -> None:
    refused(limited, partial(at_last, forge))


LIES: dict[str, Callable[[Forgery], object]] = {
    "nulls": lambda one: setattr(one.statistics("text"), "nulls", ROWS),
    "one value": lambda one: one.statistics("text").MergeFrom(type(one.statistics("text"))(low=b"a", high=b"a")),
    "a bound": lambda one: setattr(one.statistics("time"), "high", bytes(8)),
    "a text that is none": lambda one: one.statistics("text").MergeFrom(type(one.statistics("text"))(low=b"\xff", high=b"\xff")),
}


@pytest.mark.parametrize("forge", LIES.values(), ids=LIES)
def test_statistics_that_lie_are_found_by_who_reads_the_whole(limited: Limited, forge: Callable[[Forgery], object]) -> None:
    assert "has statistics of the column" in refused(limited, forge)


def of_one_text(size: int, one: Forgery) -> None:
    one.statistics("text").MergeFrom(type(one.statistics("text"))(low=b"x" * size, high=b"x" * size))


def test_a_long_text_of_statistics_is_not_copied_for_every_row(limited: Limited) -> None:
    assert "has statistics of the column" in refused(limited, partial(of_one_text, 4 << 20))


@pytest.mark.parametrize("bound", [b"", b"a", bytes(7), bytes(9), bytes(4000)])
@pytest.mark.parametrize("column", ["k", "time", "ratio", "_seq", "_uuid"])
def test_statistics_of_the_footer_are_nobodys_to_read(limited: Limited, column: str, bound: bytes) -> None:
    """Arrow's library ends the process when it is asked for a bound that has not the length of its type."""
    table, data, reference = things()
    forgery = Forgery.of(data, reference)
    forgery.chunk(column).said.put(f.STATISTICS, STRUCT, Struct({f.NULLS: i64(0), f.HIGH: binary(bound), f.LOW: binary(bound)}))
    forgery.chunk(column).said.put(f.TYPE, I32, forgery.chunk(column).said.get_value(f.TYPE))
    outcome = limited.call(read, *forgery.sealed(), table)
    assert outcome.error is None or isinstance(outcome.error, CorruptionError), outcome


HARMLESS: dict[str, Callable[[Forgery], object]] = {
    "values that a footer claims": lambda one: one.chunk("text").said.put(f.VALUES, I64, 1 << 40),
    "bytes that a footer claims": partial(chunk_says, f.UNCOMPRESSED, 1 << 62),
    "rows that a page claims": lambda one: one.chunk("text").data_page.of_kind.put(3, I32, HUGE),
    "nulls that a page claims": lambda one: one.chunk("text").data_page.of_kind.put(2, I32, HUGE),
    "another file": lambda one: one.group.get_value(f.COLUMNS)[1].put(1, BINARY, b"/etc/passwd"),
    "another path": lambda one: one.chunk("text").said.put(f.PATH, LIST, List(BINARY, [b"word"])),
    "unknown fields": lambda one: one.footer.put(15, BINARY, b"x"),
}


@pytest.mark.parametrize("forge", HARMLESS.values(), ids=HARMLESS)
def test_what_says_nothing_changes_no_row(limited: Limited, forge: Callable[[Forgery], object]) -> None:
    table, data, reference = things()
    forgery = Forgery.of(data, reference)
    forge(forgery)
    outcome = limited.call(read, *forgery.sealed(), table)
    (expected,) = limited.call(read, data, reference, table).value
    assert outcome.error is None, outcome
    assert outcome.value[0].rows.equals(expected.rows) and outcome.value[0].transactions.equals(expected.transactions)
