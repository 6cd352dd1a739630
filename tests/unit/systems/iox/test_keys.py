"""What tells rows of a data table apart: what can be in a key, and whose word it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidOption, InvalidRows, NotFound, SourceNotFound
from bucketcatalog.systems.iox.table import DataTable

from ....kit.data_tables import Lake


@pytest.fixture
def table(tmp_path: Path) -> DataTable:
    found = Catalog(tmp_path).data("t", writer="w")
    assert isinstance(found, DataTable)
    return found


def rows(table: DataTable) -> list[dict[str, Any]]:
    return list(table.scan().to_arrow().to_pylist())


def test_a_key_of_nothing_but_nulls_is_one_key(table: DataTable) -> None:
    for value in (1, 2):
        table.append([{"k": None, "v": value}, {"k": None, "v": 10 * value}], key=["k"])
    assert rows(table) == [{"k": None, "v": 20}]
    table.append([{"k": "a", "v": 3}])
    assert sorted(row["v"] for row in rows(table)) == [3, 20]


@pytest.mark.parametrize("kind", [pa.month_day_nano_interval(), pa.list_(pa.int64()), pa.struct([("a", pa.int64())])])
def test_what_has_no_order_is_in_no_key(table: DataTable, kind: pa.DataType) -> None:
    with pytest.raises(InvalidRows, match="cannot be in its key"):
        table.append(pa.table({"k": pa.nulls(1, kind), "v": [1]}), key=["k"])


def test_a_key_that_was_never_committed_is_nobodys(table: DataTable) -> None:
    with pytest.raises(InvalidRows, match="lack the column 'typo' of its key"):
        table.append({"k": 1}, key=["typo"])
    table.append({"k": 1}, key=["k"])
    with pytest.raises(InvalidOption, match="The key of data table 't' is k, and not v"):
        table.append({"k": 1, "v": 1}, key=["v"])
    table.remove(partition="default")
    table.append({"k": 1, "v": 1}, key=["v"])
    assert rows(table) == [{"k": 1, "v": 1}]


@pytest.mark.parametrize("condition", [("s", "=", {"a": 1}), ("l", "in", [[1]])])
def test_what_lies_within_is_compared_with_no_value(table: DataTable, condition: tuple[str, str, Any]) -> None:
    table.append(pa.table({"s": [{"a": 1}], "l": [[1]], "v": [1]}))
    with pytest.raises(InvalidOption, match="cannot be compared with a value"):
        table.delete_where([condition])
    with pytest.raises(InvalidOption, match="cannot be compared with a value"):
        table.scan(where={"s": {"a": 1}})
    assert len(rows(table)) == 1


def test_a_file_that_another_has_the_rows_of_is_removed_without_them() -> None:
    lake = Lake()
    lake.append(1)
    lake.append(2)
    one, other = lake.plan("one"), lake.plan("other")
    one.finish()
    other.finish()
    counting = {part.chunk for part in lake.scan().plan.parts}
    (idle,) = {*lake.chunks()} - counting
    lake.table().remove([idle])
    assert lake.values() == [1, 2]


@pytest.mark.parametrize(
    ("source", "message"),
    [("nowhere.parquet", "There is no file"), ("foo://x", "cannot be opened"), ("s3://", "cannot be opened")],
)
def test_a_source_that_cannot_be_opened_is_told_by_name(table: DataTable, source: str, message: str) -> None:
    with pytest.raises(SourceNotFound, match=message):
        table.append(source)


def test_a_file_that_is_not_there_cannot_be_removed(table: DataTable) -> None:
    table.append({"v": 1})
    with pytest.raises(NotFound, match="has no file 'nothing' now"):
        table.remove([table.files()["chunk"][0].as_py(), "nothing"])
    assert len(rows(table)) == 1


def test_a_transaction_of_several_tables_names_each_write(tmp_path: Path) -> None:
    cat = Catalog(tmp_path)
    with cat.writer("w") as writer, writer.transaction() as tx:
        tx.put("data.a", [{"v": 1}])
        tx.put("data.b", [{"v": 1}])
    (metadata,) = cat.snapshot().scan("log").to_arrow()["metadata"].to_pylist()
    said = dict(metadata)["write"].split()
    files = cat.snapshot().scan("iox.parquet_files").to_arrow()
    assert sorted(said) == sorted(files["write"].to_pylist())
