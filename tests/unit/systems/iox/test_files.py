"""Files of a data table: what they say of themselves, what becomes of every type and name, and what is said of files that are damaged."""

from __future__ import annotations

import datetime
import json
import unicodedata
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog.clock import uuid7_time
from bucketcatalog.errors import BucketCatalogError, CorruptionError, InvalidName, InvalidRows, SourceNotFound, StoreError
from bucketcatalog.model.uuids import uuid_bytes
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.systems.iox import files, write
from bucketcatalog.systems.iox.errors import DataMissing
from bucketcatalog.systems.iox.files import FILES, SAYS, About

from ....kit.data_tables import TABLE, Lake

KINDS: list[tuple[pa.Array, pa.DataType]] = [
    (pa.array(["a", "b", None, "a"]).dictionary_encode(), pa.string()),
    (pa.array([1, 2, None]).dictionary_encode(), pa.int64()),
    (pa.array(["a", None], pa.large_string()), pa.string()),
    (pa.array(["a", None], pa.string_view()), pa.string()),
    (pa.array([b"a", None], pa.large_binary()), pa.binary()),
    (pa.array([b"a", None], pa.binary_view()), pa.binary()),
    (pa.array([[1], None], pa.large_list(pa.int8())), pa.list_(pa.int8())),
    (pa.array([[1], None], pa.list_view(pa.int8())), pa.list_(pa.int8())),
    (pa.array([[1], None], pa.large_list_view(pa.int8())), pa.list_(pa.int8())),
    (pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), pa.list_(pa.int8(), 2)),
    (pa.array([["a"], None], pa.list_(pa.large_string())), pa.list_(pa.string())),
    (pa.array([["a"], None], pa.list_(pa.string_view())), pa.list_(pa.string())),
    (pa.array([{"a": "x"}, None], pa.struct([("a", pa.large_string())])), pa.struct([("a", pa.string())])),
    (pa.array([[("a", "x")], None], pa.map_(pa.large_string(), pa.large_string())), pa.map_(pa.string(), pa.string())),
    (pa.StructArray.from_arrays([pa.array(["x", "y"]).dictionary_encode()], ["a"]), pa.struct([("a", pa.string())])),
    (pa.RunEndEncodedArray.from_arrays([2, 3], ["a", None]), pa.string()),
    (pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16))), pa.binary(16)),
    (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None])), pa.string()),
    (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())), pa.int8()),
    (pa.array([1.5, None], pa.float16()), pa.float16()),
    (pa.array([Decimal("1.5"), None], pa.decimal32(3, 1)), pa.decimal32(3, 1)),
    (pa.array([Decimal("1.5"), None], pa.decimal64(3, 1)), pa.decimal64(3, 1)),
    (pa.array([datetime.timedelta(1), None], pa.duration("ns")), pa.duration("ns")),
    (pa.array([0, None], pa.timestamp("s", "Europe/Amsterdam")), pa.timestamp("s", "Europe/Amsterdam")),
    (pa.array([datetime.date(1, 1, 1), None], pa.date64()), pa.date64()),
    (pa.nulls(2), pa.null()),
]
CANNOT = [
    pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
    pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    pa.StructArray.from_buffers(pa.struct([]), 1, [None]),
]
NAMES = ["a", "A", "é", unicodedata.normalize("NFD", "é"), "a.b", "a b", "`", "\x00", "🦆", " ", "%", "x" * 500, "id", "_id"]


@pytest.fixture
def lake() -> Lake:
    return Lake()


class NoCommits(Wrapped):
    """A store in which no commit lands."""

    def put(self, name: str, data: bytes) -> None:
        if "/transactions/" in name:
            raise StoreError("no commit lands", next_step="Give up.")
        super().put(name, data)


def put(lake: Lake, rows: pa.Table, about: bytes | None, row: dict[str, Any]) -> None:
    """Put another file in place of one, which says of itself what is given, in one row group."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows.replace_schema_metadata({} if about is None else {SAYS: about}), sink)
    data = sink.getvalue().to_pybytes()
    lake.store.put(row["path"], data)
    correct(lake, row, size=len(data))


def correct(lake: Lake, row: dict[str, Any], **said: Any) -> None:
    """Say something else of a file in the catalog."""
    (was,) = lake.look().scan(FILES, columns=["table", "partition", "chunk", "_version"]).to_arrow().to_pylist()
    with lake.catalog().writer("w") as writer, writer.transaction() as tx:
        tx.put(FILES, [{**row, **said}], data_of=[was])


def test_a_file_says_what_it_is_before_anything_is_committed() -> None:
    lake = Lake(NoCommits(MemoryStore()))
    with pytest.raises(StoreError, match="no commit lands"):
        lake.table("me").append([{"v": 1}, {"v": 2}], partition="p/..", key=["v"], clock=7)
    assert lake.files() == []
    (path,) = [info.name for info in lake.store.list("me/default/data/")]
    about = About.parse(pq.read_metadata(pa.BufferReader(lake.store.get(path))).metadata, path)
    assert about.path == path
    assert (about.writer, about.database, about.table, about.partition) == ("me", "default", TABLE, "p/..")
    assert (about.first_clock, about.last_clock, about.key_columns) == (7, 7, ("v",))
    assert uuid7_time(uuid_bytes(about.write)) <= uuid7_time(uuid_bytes(about.chunk))


def test_the_catalog_says_of_a_file_what_the_file_says(lake: Lake) -> None:
    lake.append(1, 2, clock=5)
    (row,) = lake.files()
    footer = pq.read_metadata(pa.BufferReader(lake.store.get(row["path"])))
    about = About.parse(footer.metadata, row["path"])
    for name in ("table", "partition", "chunk", "path", "first_clock", "last_clock", "write"):
        assert row[name] == getattr(about, name), name
    assert row["rows"] == footer.num_rows
    assert row["row_groups"] == footer.num_row_groups
    assert row["size"] == len(lake.store.get(row["path"]))
    assert (row["key_columns"], row["origins"], row["applied"]) == (None, None, None)


def test_a_compacted_file_says_what_it_was_made_of(lake: Lake) -> None:
    chunks = [lake.append(1, 2, clock=5), lake.append(3, clock=9)]
    lake.table().delete_where([("v", "=", 1)])
    lake.compact()
    (row,) = lake.files()
    about = About.parse(pq.read_metadata(pa.BufferReader(lake.store.get(row["path"]))).metadata, row["path"])
    assert row["path"].startswith("compactor-z/default/data/default/t/")
    assert (about.origins, list(about.applied)) == (tuple(sorted(chunks)), [each["id"] for each in lake.predicates()])
    assert (about.first_clock, about.last_clock) == (5, 9)
    assert lake.stored(row).to_pylist() == [{"v": 2, "_chunk": chunks[0]}, {"v": 3, "_chunk": chunks[1]}]


@pytest.mark.parametrize(("values", "kind"), KINDS, ids=lambda each: str(each.type if isinstance(each, pa.Array) else each))
def test_every_type_is_stored_as_what_its_values_are(lake: Lake, values: pa.Array, kind: pa.DataType) -> None:
    shown = values.to_pylist() if not isinstance(values, pa.ExtensionArray) else values.storage.to_pylist()
    lake.append_table(pa.table({"v": pa.chunked_array([values, values.slice(1)])}))
    found = lake.scan().to_arrow()
    assert found.schema.field("v").type == kind
    assert found["v"].to_pylist() == [*shown, *shown[1:]]
    lake.append_table(pa.table({"v": values}))
    assert lake.compact().made == 1
    assert lake.scan().to_arrow()["v"].to_pylist() == [*shown, *shown[1:], *shown]


@pytest.mark.parametrize("values", CANNOT, ids=lambda each: str(each.type))
def test_what_parquet_cannot_have_is_refused(lake: Lake, values: pa.Array) -> None:
    with pytest.raises(InvalidRows, match="'t'"):
        lake.table().append(pa.table({"v": values}))
    assert lake.files() == []


def test_names_that_differ_in_case_or_normal_form_alone_arrive_unchanged(lake: Lake) -> None:
    rows = pa.table([[number] for number in range(len(NAMES))], names=NAMES)
    lake.append_table(rows)
    lake.append_table(rows)
    lake.compact()
    found = lake.scan().to_arrow()
    assert found.column_names == NAMES
    for number, name in enumerate(NAMES):
        assert lake.rows(columns=[name], where={name: number}) == [{name: number}] * 2
        assert lake.rows(columns=[name], where={name: number + 1}) == []


@pytest.mark.parametrize("name", ["_chunk", "_clock", "_path", ""])
def test_names_that_are_taken_are_refused(lake: Lake, name: str) -> None:
    with pytest.raises(InvalidRows, match="can be called"):
        lake.table().append(pa.table({name: [1]}))


def test_two_columns_of_one_name_are_refused(lake: Lake) -> None:
    with pytest.raises(InvalidRows, match="column 'v'"):
        lake.table().append(pa.table([[1], [2]], names=["v", "v"]))


def test_rows_of_no_columns_are_refused(lake: Lake) -> None:
    for rows in (pa.table({"_partition": ["a"]}), [{}]):
        with pytest.raises(InvalidRows, match="no columns"):
            lake.table().append(rows)


def test_rows_go_to_the_partition_that_they_name(lake: Lake) -> None:
    names = ["b", None, "a/..", "b", "é"]
    lake.table().append(pa.table({"v": range(5), "_partition": pa.array(names).dictionary_encode()}), partition="rest")
    found = [(row["_partition"], row["v"]) for row in lake.rows(columns=["_partition", "v"])]
    assert sorted(found) == [("a/..", 2), ("b", 0), ("b", 3), ("rest", 1), ("é", 4)]
    assert {row["partition"] for row in lake.files()} == {"a/..", "b", "rest", "é"}
    assert "_partition" not in lake.scan().schema.names
    assert lake.values(where={"_partition": ["b", "rest"]}) == [0, 1, 3]


@pytest.mark.parametrize("partition", [5, b"\xff"])
def test_what_names_no_partition_is_refused(lake: Lake, partition: Any) -> None:
    with pytest.raises((InvalidRows, InvalidName)):
        lake.table().append(pa.table({"v": [1], "_partition": [[partition]]}))
    with pytest.raises(InvalidName):
        lake.table().append(pa.table({"v": [1], "_partition": [""]}))
    assert [*lake.store.list("w/default/data/")] == []


def test_an_existing_file_is_written_anew(lake: Lake, tmp_path: Path) -> None:
    pq.write_table(pa.table({"v": range(10)}), tmp_path / "in.parquet", row_group_size=3)
    lake.table().append(tmp_path / "in.parquet")
    lake.table().append(str(tmp_path / "in.parquet"))
    assert lake.values() == sorted([*range(10)] * 2)
    pq.write_table(pa.table({"v": pa.array([], pa.int8())}), tmp_path / "empty.parquet")
    lake.table().append(tmp_path / "empty.parquet")
    assert len(lake.files()) == 2


def test_what_is_no_parquet_file_is_refused(lake: Lake, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1 no PAR1")
    with pytest.raises(InvalidRows, match=r"x\.parquet is no Parquet file"):
        lake.table().append(tmp_path / "x.parquet")
    with pytest.raises(SourceNotFound):
        lake.table().append(tmp_path / "missing.parquet")
    with pytest.raises(BucketCatalogError):
        lake.table().append(tmp_path)


def damaged(data: bytes, how: str) -> bytes:
    """A Parquet file that is one no more."""
    size = int.from_bytes(data[-8:-4], "little")
    return {
        "empty": b"",
        "no magic": data[:-4] + b"XXXX",
        "truncated": data[:-20],
        "half": data[: len(data) // 2],
        "no length": data[:-8] + b"\xff\xff\xff\x7f" + data[-4:],
        "footer": data[: -8 - size] + b"\xff" * size + data[-8:],
        "page": data[:10] + bytes(byte ^ 0x55 for byte in data[10:60]) + data[60:],
        "other": b"no Parquet file at all, but long enough to have a footer",
    }[how]


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("how", ["empty", "no magic", "truncated", "half", "no length", "footer", "page", "other"])
def test_a_damaged_file_is_one_error_that_names_it(how: str, local: bool, tmp_path: Path) -> None:
    lake = Lake(LocalStore(tmp_path) if local else None)
    lake.append_table(pa.table({"v": range(1_000), "s": [f"{n:>20}" for n in range(1_000)]}))
    (row,) = lake.files()
    lake.store.put(row["path"], damaged(lake.store.get(row["path"]), how))
    with pytest.raises(CorruptionError) as caught:
        lake.rows()
    assert row["path"] in caught.value.message
    with pytest.raises(CorruptionError):
        lake.compact(least=1, target_bytes=1 << 30)
    lake.table().remove([row["path"]])
    assert lake.rows() == []


@pytest.mark.parametrize("local", [False, True])
def test_a_deleted_file_is_one_error_that_names_it(local: bool, tmp_path: Path) -> None:
    lake = Lake(LocalStore(tmp_path) if local else None)
    lake.append(1)
    lake.append(2)
    gone = lake.files()[0]
    lake.store.delete(gone["path"])
    with pytest.raises(DataMissing, match=gone["chunk"]):
        lake.rows()
    with pytest.raises(DataMissing, match=gone["chunk"]):
        lake.compact()
    assert len(lake.rows(where={"_partition": "elsewhere"})) == 0


@pytest.mark.parametrize(
    "said",
    [
        {"table": "u"},
        {"partition": "p"},
        {"chunk": "0190b0b0-0000-7000-8000-000000000000"},
        {"table": ""},
        {"table": None},
        {"chunk": 5},
        {"version": 2},
        {"more": 1},
    ],
)
def test_a_file_that_claims_to_be_another_is_not_read(lake: Lake, said: dict[str, Any]) -> None:
    lake.append(1)
    (row,) = lake.files()
    about = json.loads(pq.read_metadata(pa.BufferReader(lake.store.get(row["path"]))).metadata[SAYS])
    put(lake, pa.table({"v": [666]}), json.dumps({**about, **said}).encode(), row)
    with pytest.raises(CorruptionError, match=row["chunk"]):
        lake.rows()


@pytest.mark.parametrize("about", [None, b"", b"{", b"[]", b"5", b"null", b"\xff", b'{"version": 1}', b"[" * 100_000])
def test_a_file_that_does_not_say_what_it_is_is_not_read(lake: Lake, about: bytes | None) -> None:
    lake.append(1)
    (row,) = lake.files()
    put(lake, pa.table({"v": [666]}), about, row)
    with pytest.raises(CorruptionError, match="does not say which file of a data table it is"):
        lake.rows()


@pytest.mark.parametrize("said", [{"rows": 2}, {"rows": 0}, {"row_groups": 1}, {"row_groups": 4}])
def test_a_file_of_which_the_catalog_says_something_else_is_not_read(
    lake: Lake, said: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "ROW_GROUP_ROWS", 1)
    lake.append(1, 2, 3)
    (row,) = lake.files()
    correct(lake, row, **said)
    with pytest.raises(CorruptionError, match=row["chunk"]):
        lake.rows()


def test_values_of_another_type_than_the_catalog_says_are_damage(lake: Lake) -> None:
    lake.append(1)
    (row,) = lake.files()
    about = pq.read_metadata(pa.BufferReader(lake.store.get(row["path"]))).metadata[SAYS]
    put(lake, pa.table({"v": ["no number"]}), about, row)
    with pytest.raises(CorruptionError, match=row["chunk"]):
        lake.rows()


def test_files_that_no_transaction_names_are_never_read(lake: Lake) -> None:
    lake.append(1)
    (row,) = lake.files()
    lake.store.put(row["path"].replace(row["chunk"][:8], "00000000"), lake.store.get(row["path"]))
    assert lake.values() == [1]


def test_nothing_is_added_where_there_are_no_rows(lake: Lake) -> None:
    assert lake.table().append(pa.table({"v": pa.array([], pa.int64())})) is None
    assert lake.files() == []
    assert [*lake.store.list("w/default/data/")] == []


def test_large_rows_become_several_files_of_one_write(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "FILE_BYTES", 64)
    batches = [pa.record_batch({"v": [number] * 5}) for number in range(4)]
    lake.table().append(pa.Table.from_batches(batches))
    assert len(lake.files()) == 2
    assert len({row["write"] for row in lake.files()}) == 1
    assert lake.values() == sorted([*range(4)] * 5)
