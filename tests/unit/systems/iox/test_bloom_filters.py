"""Bloom filters of data tables: files and row groups are skipped by them, and no row that is looked for ever is, whatever was damaged."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog, InvalidOption, between, prefix
from bucketcatalog.cli import run
from bucketcatalog.store import Store
from bucketcatalog.store.local import LocalStore
from bucketcatalog.systems.iox import bloom_filters, files, plan
from bucketcatalog.systems.iox.files import FILES
from bucketcatalog.systems.iox.statistics import TABLE as STATISTICS

from ....kit.data_tables import Lake, of
from .lost import copy_of, errors, kept, named, rebuilt, replace, without_log

FIRST, LAST = "a", "z"
HOSTS = ("mia-é-1", "mia-é-2", "mia-é-3", "mia-é-4")


@pytest.fixture
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROW_GROUP_ROWS", 3)


def with_hosts(lake: Lake | None = None, **options: Any) -> Lake:
    """A file for each host, which lies between two that all files have: ends rule nothing out."""
    found = Lake() if lake is None else lake
    for host in HOSTS:
        found.append_table(of([FIRST, host, LAST], pa.string()), **{"bloom_filters": ["v"], **options})
    return found


def together() -> pa.Table:
    """The same as one file of a row group each."""
    return of([value for host in HOSTS for value in (FIRST, host, LAST)], pa.string())


def read_of(lake: Lake, condition: Any) -> tuple[int, int]:
    """How many files and row groups are read for a condition."""
    found = lake.scan(where={"v": condition}).plan
    return len(found.parts), found.read_groups


def told(lake: Lake) -> list[list[bytes] | None]:
    """The filters that the catalog has of the column, file by file as they were added."""
    rows = lake.look().scan(STATISTICS, where={"table": "t", "column": "v"}).to_arrow().to_pylist()
    return [row["bloom_filters"] or None for row in sorted(rows, key=lambda row: row["chunk"])]


def offsets(data: bytes) -> list[tuple[int, int]]:
    """Where the filters of a file of one column lie, and their lengths."""
    metadata = pq.read_metadata(pa.BufferReader(data))
    chunks = [metadata.row_group(number).column(0) for number in range(metadata.num_row_groups)]
    return [(each.bloom_filter_offset, each.bloom_filter_length) for each in chunks if each.bloom_filter_offset is not None]


@pytest.mark.parametrize(
    ("condition", "read"),
    [
        ("mia-é-2", 1),
        (["mia-é-2"], 1),
        (["mia-é-2", "mia-é-4", "none"], 2),
        ("none", 0),
        (["mia-é-9", "none"], 0),
        (FIRST, 4),
        (prefix("mia-é-2"), 4),
        (between("mia-é-2", "mia-é-2"), 4),
        (["mia-é-2", None], 4),
    ],
    ids=str,
)
def test_what_ends_cannot_rule_out_filters_do(condition: Any, read: int, small_row_groups: None) -> None:
    without, apart, one = with_hosts(bloom_filters=None), with_hosts(), Lake()
    one.append_table(together(), bloom_filters=["v"])
    assert read_of(without, condition) == (4, 4)
    assert read_of(apart, condition) == (read, read)
    assert read_of(one, condition) == (min(1, read), read)
    assert apart.values(where={"v": condition}) == without.values(where={"v": condition}) == one.values(where={"v": condition})


def test_more_values_than_filters_are_asked_for_are_found_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bloom_filters, "MOST_VALUES", 2)
    lake = with_hosts()
    assert read_of(lake, ["mia-é-2", "none"]) == (1, 1)
    assert read_of(lake, ["mia-é-2", "none", "nobody"]) == (4, 4)


def test_a_deletion_names_the_files_alone_that_may_have_such_rows() -> None:
    lake = with_hosts()
    assert lake.table().delete_where({"v": "none"}) is None
    lake.table().delete_where({"v": "mia-é-3"})
    assert [each["chunks"] for each in lake.predicates()] == [[sorted(lake.chunks())[2]]]
    assert "mia-é-3" not in lake.values()


def test_many_files_are_planned_at_once_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = with_hosts()
    monkeypatch.setattr(plan, "_FEW_FILES", 0)
    assert read_of(lake, "mia-é-2") == (1, 1)
    assert read_of(lake, "none") == (0, 0)


def test_a_table_without_filters_of_a_column_is_planned_without_a_look_at_any(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake()
    lake.append_table(pa.table({"v": [1, 9], "w": ["a", "b"]}), bloom_filters=["w"])
    monkeypatch.delattr(plan, "groups_without")
    assert read_of(lake, 3) == (1, 1)
    with pytest.raises(NameError):
        lake.scan(where={"w": "a"})


def text(chance: random.Random) -> str:
    return "".join(chance.choices("ab\x00é\uffff🦆", k=chance.choice([0, 1, 5, 40])))


def whole(kind: pa.DataType) -> Callable[[random.Random], int]:
    bits = kind.bit_width
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if pa.types.is_signed_integer(kind) else (0, (1 << bits) - 1)
    return lambda chance: chance.choice([low, high, chance.randint(low, high), max(low, chance.randint(-9, 99))])


INTEGERS = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
DRAWN: dict[pa.DataType, Callable[[random.Random], Any]] = {
    **{kind: whole(kind) for kind in INTEGERS},
    pa.string(): text,
    pa.binary(): lambda chance: chance.randbytes(chance.choice([0, 1, 4, 33])),
    pa.binary(4): lambda chance: chance.randbytes(4),
    pa.large_string(): text,
    pa.dictionary(pa.int8(), pa.string()): text,
}


@pytest.mark.parametrize("kind", DRAWN, ids=str)
def test_a_value_that_is_there_is_never_ruled_out(kind: pa.DataType, small_row_groups: None) -> None:
    chance = random.Random(str(kind))
    lake, every, read = Lake(), list[Any](), 0
    for _ in range(6):
        values = [None if chance.random() < 0.1 else DRAWN[kind](chance) for _ in range(chance.randint(1, 10))]
        every += values
        lake.append_table(of(values, kind), bloom_filters=["v"])
    for value in {*every, *(DRAWN[kind](chance) for _ in range(12))} - {None}:
        found = lake.scan(where={"v": value})
        assert found.to_arrow()["v"].to_pylist() == [value] * every.count(value)
        read += found.plan.read_groups - len({*found.to_arrow()["v"].to_pylist()})
    several = chance.choices([value for value in every if value is not None], k=3)
    assert lake.values(where={"v": several}) == sorted(value for value in every if value in several)
    assert read < 40


@pytest.mark.parametrize(
    "kinds",
    [
        [pa.int32(), pa.int64()],
        [pa.int8(), pa.uint8(), pa.uint32(), pa.int64()],
        [pa.uint16(), pa.uint64()],
        [pa.int32(), pa.float64()],
        [pa.binary(2), pa.binary(4), pa.binary()],
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(4))
def test_files_of_different_types_lose_no_row(
    kinds: list[pa.DataType], seed: int, small_row_groups: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    lake, every = Lake(), list[Any]()
    draw = {**DRAWN, pa.float64(): lambda drawn: drawn.choice([0.5, -0.0, 3.0, float(drawn.randint(-9, 9))])}
    draw[pa.binary(2)] = lambda drawn: drawn.randbytes(2)
    for kind in [*kinds, *kinds]:
        values = [draw[kind](chance) for _ in range(5)]
        every += values
        lake.append_table(of(values, kind), bloom_filters=[] if pa.types.is_floating(kind) else ["v"])
    for value in every:
        assert lake.values(where={"v": value}) == [value] * every.count(value)
    read = sum(read_of(lake, value)[1] for value in every)
    monkeypatch.setattr(bloom_filters, "MOST_VALUES", 0)
    by_ends = sum(read_of(lake, value)[1] for value in every)
    assert read == by_ends if pa.types.is_floating(kinds[-1]) else read < by_ends


def test_a_column_within_another_is_not_taken_for_one_that_is_called_so() -> None:
    lake = Lake()
    lake.append_table(pa.table({"s": [{"a": "x"}], "s.a": ["y"]}))
    lake.append_table(pa.table({"s.a": ["z"]}), bloom_filters=["s.a"])
    assert [lake.rows(columns=["s.a"], where={"s.a": value}) for value in "xyz"] == [[], [{"s.a": "y"}], [{"s.a": "z"}]]
    assert [row["bloom_filters"] for row in lake.files()] == [None, ["s.a"]]


def test_a_file_has_its_filters_as_parquet_does(tmp_path: Path) -> None:
    lake = with_hosts(Lake(LocalStore(tmp_path)))
    (path,) = (tmp_path / row["path"] for row in lake.files()[1:2])
    with duckdb.connect() as connection:
        probe = f"SELECT bloom_filter_excludes FROM parquet_bloom_probe('{path}', 'v', ?)"
        assert [connection.execute(probe, [host]).fetchall() for host in HOSTS] == [[(True,)], [(False,)], [(True,)], [(True,)]]
        assert connection.execute(f"SELECT v FROM '{path}' WHERE v = 'mia-é-2'").fetchall() == [("mia-é-2",)]
    assert pq.read_table(path, filters=[("v", "=", "mia-é-2")])["v"].to_pylist() == ["mia-é-2"]
    assert lake.scan(where={"v": "mia-é-2"}).to_duckdb(duckdb.connect()).fetchall() == [("mia-é-2",)]


def test_a_filter_that_is_large_is_in_the_file_alone(monkeypatch: pytest.MonkeyPatch, small_row_groups: None) -> None:
    monkeypatch.setattr(files, "ROW_GROUP_ROWS", 2_000)
    monkeypatch.setattr(bloom_filters, "LARGEST", 512)
    lake = Lake()
    rows = of([*map(str, range(2_000)), *["5-same"] * 2_000], pa.string())
    lake.append_table(rows, bloom_filters=["v"])
    (filters,) = told(lake)
    assert filters is not None and [len(each) for each in filters] == [0, 32]
    assert [length > 2_000 for _, length in offsets(lake.store.get(lake.files()[0]["path"]))] == [True, False]
    assert read_of(lake, "77") == (1, 1) and read_of(lake, "5-same") == (1, 2)
    monkeypatch.setattr(bloom_filters, "LARGEST_OF_COLUMN", 60)
    both = Lake()
    both.append_table(pa.concat_tables([rows.slice(2_000)] * 2), bloom_filters=["v"])
    assert [[len(each) for each in found or ()] for found in told(both)] == [[32, 0]]
    assert errors(both.store) == []


def test_files_that_are_written_anew_keep_their_filters_unless_others_are_named(tmp_path: Path) -> None:
    options: dict[str, Any] = {"ndv": 10, "fpp": 0.01}
    one, two = tmp_path / "1.parquet", tmp_path / "2.parquet"
    rows = pa.table({"v": ["a", "b"], "w": [1, 2], "t": pa.array([1, 2], pa.timestamp("us"))})
    pq.write_table(rows, one, bloom_filter_options={"v": options, "t": options})
    pq.write_table(rows.drop_columns(["v"]), two, bloom_filter_options={"w": options})
    for given, named_, expected in (
        (one, None, [["v"]]),
        ([one], ["w"], [["w"]]),
        ([one], [], [[]]),
        ([one, two], None, [["v", "w"], ["w"]]),
    ):
        lake = Lake()
        lake.table().append(given, bloom_filters=named_)
        assert sorted((row["bloom_filters"] or [] for row in lake.files()), reverse=False) == sorted(expected)
    with pytest.raises(InvalidOption, match="no column 'v'"):
        Lake().table().append([one, two], bloom_filters=["v"])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["none"], "no column 'none'"),
        (["_partition"], "no column '_partition'"),
        (["f"], "of the type double"),
        (["t"], r"of the type timestamp\[us\]"),
        (["l"], "of the type list"),
        (["s.a"], "no column 's.a'"),
        (["b.a"], "is called as one within another"),
        ([1], "are not a list of names"),
    ],
    ids=str,
)
def test_columns_without_filters_are_refused(columns: Any, message: str) -> None:
    rows = {"v": ["a"], "f": [0.5], "t": pa.array([1], pa.timestamp("us")), "l": [[1]], "s": [{"a": 1}]}
    rows |= {"b": [{"a": 1}], "b.a": ["x"]}
    lake = Lake()
    with pytest.raises(InvalidOption, match=message) as caught:
        lake.table().append(pa.table(rows), bloom_filters=columns)
    assert caught.value.next_step
    assert lake.files() == []


def test_the_command_takes_columns_and_refuses_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, lake = tmp_path / "rows.parquet", tmp_path / "lake"
    pq.write_table(pa.table({"v": ["a", "b"], "w": [1, 2], "f": [0.5, 1.5]}), source)
    add = ["iox", "add", str(lake), "cpu", str(source)]
    assert run([*add, "--bloom-filter", "v", "--bloom-filter", "w"]) == 0
    assert [row["bloom_filters"] for row in Catalog(lake).data("cpu").files().to_pylist()] == [["v", "w"]]
    capsys.readouterr()
    assert run([*add, "--bloom-filter", "f"]) == 2
    assert "of the type double" in capsys.readouterr().err


def test_compaction_makes_filters_of_the_columns_of_which_any_file_had_some() -> None:
    lake = with_hosts()
    lake.append_table(of(["mia-é-5"], pa.string()))
    assert lake.compact().made == 1
    assert [row["bloom_filters"] for row in lake.files()] == [["v"]]
    assert read_of(lake, "none") == (0, 0)
    assert lake.values(where={"v": "mia-é-5"}) == ["mia-é-5"]
    plain = with_hosts(bloom_filters=None)
    plain.compact()
    assert read_of(plain, "none") == (1, 1)


def test_a_restore_has_them_again() -> None:
    lake = with_hosts()
    before, version = told(lake), lake.look().version
    lake.compact()
    lake.table().restore(version=version, dry_run=False)
    assert told(lake) == before and read_of(lake, "mia-é-2") == (1, 1)


def test_a_rebuild_gets_them_back_from_the_files(small_row_groups: None) -> None:
    store = with_hosts().store
    Catalog(store).data("t", writer="w").append(together(), bloom_filters=["v"])
    again = without_log(store)
    assert rebuilt(again).files == 5
    for table in (STATISTICS, FILES):
        assert kept(again, table) == kept(store, table)
    assert errors(again) == errors(store) == []


def zigzag(number: int) -> bytes:
    """As Thrift has it in a footer."""
    rest, found = number << 1 ^ number >> 63, bytearray()
    while rest > 127:
        found.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*found, rest])


def with_offset(data: bytes, old: int, new: int) -> bytes:
    """The file whose footer says that a filter lies elsewhere."""
    before = zigzag(old)
    assert len(zigzag(new)) == len(before) and data.count(before) == 1
    return data.replace(before, zigzag(new))


def with_bytes(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


DAMAGE: dict[str, Callable[[bytes, int, int], bytes]] = {
    "no bits": lambda data, at, length: with_bytes(data, at + length - 32, bytes(32)),
    "a word": lambda data, at, length: with_bytes(data, at + length - 32, bytes(4)),
    "no header": lambda data, at, length: with_bytes(data, at, bytes(8)),
    "endless header": lambda data, at, length: with_bytes(data, at, b"\xff" * 15),
    "another size": lambda data, at, length: with_bytes(data, at, b"\x15\x7e"),
    "another algorithm": lambda data, at, length: with_bytes(data, at + 2, b"\x1c\x2c"),
    "of another row group": lambda data, at, length: with_offset(data, at, at + length),
    "amid another": lambda data, at, length: with_offset(data, at, at + 20),
    "behind the end": lambda data, at, length: with_offset(data, at, len(data) - 10),
    "before the beginning": lambda data, at, length: with_offset(data, at, -at),
    "in the pages": lambda data, at, length: with_offset(data, at, at - 70),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_filter_is_none_and_verify_tells(damage: str, small_row_groups: None) -> None:
    lake = Lake()
    lake.append_table(of([1, 5, 9, 2, 6, 8], pa.int64()), bloom_filters=["v"])
    store, (name,) = lake.store, named(lake.store, ending=".parquet")
    data = store.get(name)
    (at, length), _ = offsets(data)
    spoilt = copy_of(store, changed={name: DAMAGE[damage](data, at, length)})
    assert [line.partition(":")[0].split()[-1] for line in errors(spoilt)] != []
    again = without_log(spoilt)
    assert rebuilt(again).files == 1
    found = Lake(again)
    assert told(found) == [[b"", (told(lake)[0] or [])[1]]]
    for value in (1, 5, 9, 2, 6, 8):
        assert found.values(where={"v": value}) == [value]


@pytest.mark.parametrize(
    "filters",
    [[b"xyz", b"xyz"], [b"", b""], [bytes(33), bytes(33)], [bytes(32)], [bytes(32)] * 3, []],
    ids=lambda filters: str([len(each) for each in filters]),
)
def test_what_are_no_filters_in_the_catalog_rule_nothing_out(filters: list[bytes], small_row_groups: None) -> None:
    lake = Lake()
    lake.append_table(of([1, 5, 9, 2, 6, 8], pa.int64()), bloom_filters=["v"])
    say_of(lake.store, filters)
    assert Lake(lake.store).values(where={"v": 5}) == [5]
    assert len(errors(lake.store)) == 1


def say_of(store: Store, filters: list[bytes]) -> None:
    """Make the catalog say that these are the filters of the only file."""
    (row,) = Catalog(store).snapshot().scan(STATISTICS).to_arrow().to_pylist()
    with Catalog(store).writer("maintainer-9") as writer, writer.transaction() as tx:
        tx.put(STATISTICS, [{**row, "bloom_filters": filters}])


def test_verify_compares_filters_and_the_columns_that_have_any() -> None:
    store = with_hosts().store
    row = kept(store, FILES)[0]
    with Catalog(store).writer("maintainer-9") as writer, writer.transaction() as tx:
        tx.put(FILES, [{**row, "bloom_filters": []}])
    (line,) = errors(store)
    assert "differ in bloom_filters" in line
    lake = with_hosts()
    name = named(lake.store, ending=".parquet")[0]
    data = lake.store.get(name)
    ((at, length),) = offsets(data)
    flipped = data[at + length - 1] ^ 1
    replace(lake.store, name, with_bytes(data, at + length - 1, bytes([flipped])))
    (line,) = errors(lake.store)
    assert "Its statistics are not those" in line
