"""Footers that Arrow's library aborts the process for once it is asked for a column: each is an error or a finding, and no signal.

Whatever could end the process runs in a child, by itself or with many others.
"""

from __future__ import annotations

import decimal
import faulthandler
import io
import os
import random
import signal
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog, InvalidRows
from bucketcatalog.errors import CorruptionError
from bucketcatalog.format.thrift import BINARY, I32, I64, LIST, STRUCT, read_list
from bucketcatalog.query.parquet_footers import check_footer, read_metadata
from bucketcatalog.store import Store
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.systems.iox import files as iox_files
from bucketcatalog.systems.iox.findings import Finding
from bucketcatalog.systems.iox.footers import Stored, stored_file
from bucketcatalog.systems.iox.verify import verify
from bucketcatalog.systems.iox.write import filtered_in

from .lost import by_file, copy_of, named, rebuilt, replace, without_log

_TYPE, _REPETITION, _CHILDREN = 1, 3, 5
_STATISTICS, _SIZES = 12, 16
_MOST_SECONDS = 25
Field = tuple[int, Any]
"""The type of a field and its value; a list's is the type of its items and these."""
Struct = dict[int, Field]


def decoded(data: bytes, at: int) -> tuple[Struct, int]:
    """Any struct, so that it is the same bytes again once it is encoded."""
    found, number = Struct(), 0
    while head := data[at]:
        assert head > 15
        number += head >> 4
        value, at = _decoded(data, at + 1, head & 15)
        found[number] = (head & 15, value)
    return found, at + 1


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def _decoded(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return None, at
    if kind in (4, 5, 6):
        value, at = _number(data, at)
        return value >> 1 ^ -(value & 1), at
    if kind == BINARY:
        length, start = _number(data, at)
        return data[start : start + length], start + length
    if kind == STRUCT:
        return decoded(data, at)
    assert kind == LIST, kind
    of, count, at = read_list(data, at)
    items = [None] * count
    for place in range(count):
        items[place], at = _decoded(data, at, of)
    return (of, items), at


def encoded(struct: Struct) -> bytes:
    found, last = bytearray(), 0
    for number, (kind, value) in sorted(struct.items()):
        if 0 < number - last < 16:
            found.append((number - last) << 4 | kind)
        else:
            found += bytes([kind]) + _varint(number << 1)
        found += _encoded(kind, value)
        last = number
    return bytes(found) + b"\0"


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _encoded(kind: int, value: Any) -> bytes:
    if kind in (1, 2):
        return b""
    if kind in (4, 5, 6):
        return _varint(value << 1 if value >= 0 else -value * 2 - 1)
    if kind == BINARY:
        return _varint(len(value)) + bytes(value)
    if kind == STRUCT:
        return encoded(value)
    of, items = value
    head = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([0xF0 | of]) + _varint(len(items))
    return head + b"".join(_encoded(of, each) for each in items)


def footer_of(data: bytes) -> bytes:
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


def with_footer(data: bytes, footer: bytes) -> bytes:
    return data[: -8 - len(footer_of(data))] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


Where = Callable[[Struct], Struct]
Change = Callable[[Struct], None]


def columns(said: Struct) -> list[Struct]:
    """Those of the first row group."""
    found: list[Struct] = said[4][1][1][0][1][1][1]
    return found


def chunk(column: int) -> Where:
    return lambda said: columns(said)[column]


def element(place: int) -> Where:
    return lambda said: said[2][1][1][place]  # type: ignore[no-any-return]


def within(where: Where, number: int) -> Where:
    """A struct within another; it is made where there is none."""
    return lambda said: where(said).setdefault(number, (STRUCT, {}))[1]


def metadata(column: int) -> Where:
    return within(chunk(column), 3)


def put(where: Where, number: int, kind: int, value: Any) -> Change:
    def change(said: Struct) -> None:
        where(said)[number] = (kind, value)

    return change


def levels(number: int, count: int, column: int) -> Change:
    return put(within(metadata(column), _SIZES), number, LIST, (I64, [1] * count))


def ends(column: int, value: bytes) -> Change:
    def change(said: Struct) -> None:
        within(metadata(column), _STATISTICS)(said).update(dict.fromkeys((1, 2, 5, 6), (BINARY, value)))

    return change


def deep(said: Struct) -> None:
    """So deep that going down it needs more stack than there is."""
    names = [{_REPETITION: (I32, 0), 4: (BINARY, b"d"), _CHILDREN: (I32, 1)} for _ in range(100_000)]
    found = said[2][1][1]
    found[0][_CHILDREN] = (I32, found[0][_CHILDREN][1] + 1)
    said[2] = (LIST, (STRUCT, [*found, *names, {_TYPE: (I32, 1), _REPETITION: (I32, 0), 4: (BINARY, b"d")}]))


NUMBER, TEXT, FIXED, TRUTH = range(4)
BAD: dict[str, tuple[Change, str]] = {
    "more definition levels": (levels(3, 3, NUMBER), "counts 3 definition levels, not 2"),
    "fewer definition levels": (levels(3, 1, TEXT), "counts 1 definition levels, not 2"),
    "more repetition levels": (levels(2, 2, NUMBER), "counts 2 repetition levels, not 1"),
    "bytes of numbers": (put(within(metadata(NUMBER), _SIZES), 1, I64, 5), "values that are no bytes"),
    "another type": (put(metadata(NUMBER), _TYPE, I32, 1), "has the physical type 1, and in the schema 2"),
    "a type that is none": (put(metadata(TEXT), _TYPE, I32, 77), "has the physical type 77, and in the schema 6"),
    "a type below all": (put(metadata(TEXT), _TYPE, I32, -1), "has the physical type -1"),
    "a schema of another type": (put(element(1), _TYPE, I32, 6), "has the physical type 2, and in the schema 6"),
    "a column that cannot be null": (put(element(1), _REPETITION, I32, 0), "counts 2 definition levels, not 1"),
    "a column that is nothing": (put(element(1), _REPETITION, I32, 3), "neither required nor optional nor repeated"),
    "an encrypted column": (put(within(chunk(0), 8), 2, STRUCT, {1: (LIST, (BINARY, [b"n"]))}), "is encrypted"),
    "a column that says nothing": (lambda said: chunk(0)(said).clear(), "has the physical type None"),
    "a column too many": (lambda said: columns(said).append(columns(said)[0]), "has 7 columns, and the schema 6"),
    "a column too few": (lambda said: columns(said).clear(), "has 0 columns, and the schema 6"),
    "a group without its columns": (put(element(1), _CHILDREN, I32, 90), "its schema lacks columns"),
    "a list that is none": (put(metadata(NUMBER), 2, LIST, (BINARY, [b"\x08\x16\x00"])), "items of another type"),
    "a deep schema": (deep, "more than 200 levels"),
}
"""What no file says, whoever wrote it, and what is said of it."""
SHORT: dict[str, tuple[Change, str]] = {
    "a short number": (ends(NUMBER, b"\1\2"), "value of 2 bytes, not 8"),
    "a short value of fixed length": (ends(FIXED, b"\1"), "value of 1 bytes, not 4"),
    "no value of fixed length": (ends(FIXED, b""), "value of 0 bytes, not 4"),
    "no truth": (ends(TRUTH, b""), "value of 0 bytes, not 1"),
}
"""What cannot be decoded. Other writers may shorten values of fixed length, and nobody decodes these when a file is added."""


def flat(n: int = 50) -> pa.Table:
    return pa.table(
        {
            "n": range(n),
            "s": [f"v{number % 7}" for number in range(n)],
            "x": pa.array([bytes([number] * 4) for number in range(n)], pa.binary(4)),
            "b": [number % 3 == 0 for number in range(n)],
            "d": pa.array([decimal.Decimal(number) / 4 for number in range(n)], pa.decimal128(30, 2)),
            "t": pa.array(range(n), pa.timestamp("us", "UTC")),
        }
    )


def nested(n: int = 50) -> pa.Table:
    return pa.table(
        {
            "l": pa.array([None if number % 4 == 0 else list(range(number % 3)) for number in range(n)], pa.list_(pa.int32())),
            "st": [{"a": number, "b": str(number), "c": {"e": [number]}} for number in range(n)],
            "m": pa.array([[("k", number)] for number in range(n)], pa.map_(pa.string(), pa.int64())),
        }
    )


def parquet(rows: pa.Table, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **options)
    return bytes(sink.getvalue())


def changed(data: bytes, change: Change) -> bytes:
    said, _ = decoded(footer_of(data), 0)
    change(said)
    return with_footer(data, encoded(said))


def in_child(work: Callable[[], str]) -> str:
    """What ``work`` says, in a process of its own; the name of the signal by which that ended, if it did."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        os.close(reads)
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(_MOST_SECONDS)
        try:
            said = work()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writes, said.encode()[:60_000])
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as answer:
        said = answer.read().decode()
    status = os.waitpid(child, 0)[1]
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else said


def appended(path: Path) -> str:
    """What comes of adding a file to a table."""
    try:
        Catalog(MemoryStore()).data("m").append(path)
    except InvalidRows as error:
        return f"{error}" if str(path) in str(error) else f"not named: {error}"
    return "added"


@pytest.fixture(scope="module")
def lake() -> Store:
    """Two files, of the first of which footers are damaged."""
    store = MemoryStore()
    table = Catalog(store).data("m")
    for _ in range(2):
        table.append(flat(), bloom_filters=["s"])
    return store


def found_in(lake: Store, data: bytes) -> str:
    """What rebuilding, verifying, and verifying where the size is right say of the first file once it holds ``data``."""
    name = named(lake, ending=".parquet")[0]
    lost, verified = without_log(lake), copy_of(lake)
    replace(lost, name, data)
    replace(verified, name, data)
    (info,) = [info for info in verified.list("") if info.name == name]
    deep = {each.file: each.code for each in verify(Catalog(verified), deep=True)}
    read = stored_file(verified, info, filters=True)
    assert isinstance(read, Finding)
    return f"{by_file(rebuilt(lost).findings)[name]}, {deep[name]}, {read.code}: {read.message}"


class TestNoFooterEndsTheProcess:
    def test_what_is_encoded_is_what_was_decoded(self) -> None:
        for rows in (flat(), nested()):
            assert changed(parquet(rows), lambda said: None) == parquet(rows)

    def test_the_library_does_so_as_it_is(self) -> None:
        """Otherwise nothing here would have to be checked, and no test here could fail."""
        data = changed(parquet(flat()), BAD["more definition levels"][0])
        read = pq.read_metadata(pa.BufferReader(data))
        assert in_child(lambda: str(read.row_group(0).column(0))) == "SIGABRT"

    @pytest.mark.parametrize(("change", "why"), BAD.values(), ids=BAD)
    def test_such_a_file_is_not_added(self, change: Change, why: str, tmp_path: Path) -> None:
        path = tmp_path / "bad.parquet"
        path.write_bytes(changed(parquet(flat()), change))
        said = in_child(lambda: appended(path))
        assert said.startswith("[INVALID_ROWS]") and why in said

    @pytest.mark.parametrize("name", SHORT)
    def test_short_values_are_not_asked_for_when_a_file_is_added(self, name: str, tmp_path: Path) -> None:
        path = tmp_path / "short.parquet"
        path.write_bytes(changed(parquet(flat()), SHORT[name][0]))
        said = in_child(lambda: appended(path))
        assert said == "added" if "fixed" in name else "Unexpected end of stream" in said

    @pytest.mark.parametrize(("change", "why"), {**BAD, **SHORT}.values(), ids={**BAD, **SHORT})
    def test_rebuild_and_verify_find_it(self, lake: Store, change: Change, why: str) -> None:
        good = lake.get(named(lake, ending=".parquet")[0])
        data = changed(good, change)
        said = in_child(lambda: found_in(lake, data))
        verified = "UNREADABLE" if len(data) == len(good) else "WRONG_SIZE"
        assert said.startswith(f"UNREADABLE, {verified}, UNREADABLE: Its footer cannot be read: ") and why in said

    def test_a_scale_that_takes_forever(self) -> None:
        read = pq.read_metadata(pa.BufferReader(parquet(pa.table({"d": [decimal.Decimal(1)]}))))
        place = dict.fromkeys(("table", "partition", "chunk"), "")
        said = in_child(lambda: str(iox_files.statistics_of(read, pa.schema({"d": pa.decimal128(9, 1 << 30)}), place, {})))
        assert said.startswith("ValueError: there is no decimal number of the scale")


def flips(data: bytes, seed: int, count: int) -> list[bytes]:
    """The file with one to three bytes of its footer changed, or with bytes taken out of it or put in twice."""
    chance, found = random.Random(seed), []
    for number in range(count):
        footer = bytearray(footer_of(data))
        for _ in range(chance.randint(1, 3)):
            at, other, length = chance.randrange(len(footer)), chance.randrange(len(footer)), chance.randint(1, 9)
            if number % 3:
                footer[at] = footer[at] ^ 1 << chance.randrange(8) if chance.random() < 0.5 else chance.randrange(256)
            elif chance.random() < 0.5:
                footer[at:at] = footer[other : other + length]
            else:
                del footer[at : at + length]
        found.append(with_footer(data, bytes(footer)))
    return found


class TestRandomDamage:
    """All of a test in one child: whichever ends it, ends it."""

    @pytest.mark.parametrize("rows", [flat(), nested()], ids=["flat", "nested"])
    def test_of_a_file_that_is_added(self, rows: pa.Table, tmp_path: Path) -> None:
        path = tmp_path / "bad.parquet"

        def work() -> str:
            found = set()
            for data in flips(parquet(rows, row_group_size=20), 7, 200):
                path.write_bytes(data)
                found.add(appended(path).split()[0])
            return ", ".join(sorted(found))

        assert in_child(work) == "[INVALID_ROWS], added"

    @pytest.mark.parametrize("rows", [flat(), nested()], ids=["flat", "nested"])
    def test_of_a_file_of_a_table(self, rows: pa.Table, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(iox_files, "ROW_GROUP_ROWS", 20)
        store = MemoryStore()
        Catalog(store).data("m").append(rows, bloom_filters=[name for name in ("n", "s") if name in rows.column_names])
        (name,) = named(store, ending=".parquet")
        good = store.get(name)

        def work() -> str:
            found = set()
            for data in flips(good, 8, 800):
                one = MemoryStore()
                one.put(name, data)
                (info,) = one.list("")
                read = stored_file(one, info, filters=True)
                found.add("whole" if isinstance(read, Stored) else read.code)
            return ", ".join(sorted(found))

        assert in_child(work) == "CLAIMS_ANOTHER_PATH, UNREADABLE, whole"

    def test_every_footer_that_is_let_through_can_be_asked_for_all(self) -> None:
        def work() -> str:
            count = 0
            for rows in (flat(), nested()):
                for data in flips(parquet(rows, row_group_size=20, write_page_index=True), 9, 3_000):
                    try:
                        read = read_metadata(lambda at, n, data=data: data[at : at + n], len(data), "it", decoded=True)  # type: ignore[misc]
                    except (pa.ArrowException, OSError, ValueError, IndexError, CorruptionError):
                        continue
                    for number in range(read.num_row_groups):
                        group = read.row_group(number)
                        for place in range(group.num_columns):
                            said = group.column(place).statistics
                            count += said is not None and said.has_min_max and said.min_raw is not None
            return f"{count > 1_000}"

        assert in_child(work) == "True"


def by_polars() -> bytes:
    polars, sink = pytest.importorskip("polars"), io.BytesIO()
    polars.from_arrow(pa.concat_tables([flat(), flat()])).write_parquet(sink, row_group_size=20)
    return sink.getvalue()


def by_duckdb() -> bytes:
    duckdb = pytest.importorskip("duckdb")
    asked = "range i, 's' || range s, [range] l, {'a': range} st, map {'k': range} m, range::decimal(9, 2) d, uuid() u"
    with tempfile.TemporaryDirectory() as folder:
        duckdb.sql(f"copy (select {asked} from range(50)) to '{folder}/it.parquet'")
        return Path(folder, "it.parquet").read_bytes()


def far_fields(data: bytes) -> bytes:
    """With what later releases of the format may add: fields that say their numbers, and a logical type that does."""

    def change(said: Struct) -> None:
        element(2)(said)[10] = (STRUCT, {17: (STRUCT, {1: (BINARY, b"crs")})})
        for where in (lambda said: said, element(1), chunk(0), metadata(0)):
            where(said)[32767] = (BINARY, b"more")

    return changed(data, change)


def without(data: bytes, *numbers: int) -> bytes:
    def change(said: Struct) -> None:
        for column in columns(said):
            for number in numbers:
                column[3][1].pop(number, None)

    return changed(data, change)


VALID: dict[str, Callable[[], bytes]] = {
    "flat": lambda: parquet(flat(), row_group_size=7),
    "nested": lambda: parquet(nested()),
    "no rows": lambda: parquet(flat().slice(0, 0)),
    "nulls alone": lambda: parquet(pa.table({"n": pa.nulls(3), "m": pa.array([None] * 3, pa.binary(4))})),
    "page index": lambda: parquet(nested(), write_page_index=True),
    "no statistics": lambda: parquet(flat(), write_statistics=False),
    "no sizes, as before they were known": lambda: without(parquet(flat()), _SIZES),
    "nothing optional": lambda: without(parquet(flat(), use_dictionary=False), 8, 11, 12, 13, 16),
    "version 1.0": lambda: parquet(nested(), version="1.0", use_compliant_nested_type=False, store_schema=False),
    "moments of 96 bits": lambda: parquet(flat(), use_deprecated_int96_timestamps=True),
    "sorted": lambda: parquet(flat(), sorting_columns=[pq.SortingColumn(0)]),
    "Bloom filters": lambda: parquet(flat(), bloom_filter_options={"n": {"ndv": 50, "fpp": 0.01}}),
    "pages of version 2": lambda: parquet(flat(), data_page_version="2.0"),
    "later fields": lambda: far_fields(parquet(flat())),
    "polars": by_polars,
    "duckdb": by_duckdb,
}


class TestFilesThatAreWhole:
    @pytest.mark.parametrize("make", VALID.values(), ids=VALID)
    def test_are_added(self, make: Callable[[], bytes], tmp_path: Path) -> None:
        data = make()
        check_footer(footer_of(data), decoded=True)
        path = tmp_path / "whole.parquet"
        path.write_bytes(data)
        filtered_in(path)
        assert in_child(lambda: appended(path)) == "added"

    def test_a_footer_that_is_larger_than_what_is_read_at_once(self, tmp_path: Path) -> None:
        path, asked = tmp_path / "wide.parquet", list[Sequence[int]]()
        data = parquet(pa.table({f"column {number}": [number] for number in range(1_000)}))
        path.write_bytes(data)

        def fetch(at: int, length: int) -> bytes:
            asked.append((at, length))
            return data[at : at + length]

        assert read_metadata(fetch, len(data), "it", decoded=True).num_columns == 1_000
        assert len(asked) == 2 and sum(length for _, length in asked) == len(footer_of(data)) + 8
        assert filtered_in(path) == []


class TestWhatIsWrongIsSaid:
    @pytest.mark.parametrize("data", [b"", b"PAR1", b"no file", b"PAR1" + b"\xff" * 40 + b"\x28\0\0\0PAR1"], ids=str)
    def test_nothing_like_a_file(self, data: bytes, tmp_path: Path) -> None:
        path = tmp_path / "bad.parquet"
        path.write_bytes(data)
        with pytest.raises(InvalidRows, match="is no Parquet file that can be read"):
            filtered_in(path)

    def test_text_that_is_none_is_no_matter_of_opening(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.parquet"
        path.write_bytes(changed(parquet(flat(), store_schema=False), put(element(1), 4, BINARY, b"\xff")))
        with pytest.raises(InvalidRows, match="utf-8"):
            filtered_in(path)
