"""Which columns an Arrow schema makes, which it cannot, and what their ``.proto`` compiles to."""

from __future__ import annotations

import datetime
import uuid
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bucketcatalog import Catalog, IncompatibleTable, InvalidName, InvalidOption
from bucketcatalog.format.compiled import tables_in
from bucketcatalog.format.definitions import table_of
from bucketcatalog.model.tables import Table

from ...kit.world import compiled

EVERY = pa.schema(
    [
        ("k", pa.large_string()),
        ("text", pa.string()),
        ("viewed", pa.string_view()),
        ("word", pa.dictionary(pa.int8(), pa.string())),
        ("raw", pa.large_binary()),
        ("digest", pa.binary(4)),
        ("uid", pa.uuid()),
        ("said", pa.json_(pa.string())),
        ("at", pa.timestamp("ns", "Europe/Berlin")),
        ("naive", pa.timestamp("s")),
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int32()),
        ("large", pa.int64()),
        ("byte", pa.uint8()),
        ("count", pa.uint32()),
        ("huge", pa.uint64()),
        ("half", pa.float16()),
        ("ratio", pa.float32()),
        ("exact", pa.float64()),
        ("words", pa.list_(pa.string())),
        ("three", pa.list_(pa.int64(), 3)),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("by_number", pa.map_(pa.int32(), pa.struct([("x", pa.float64()), ("uid", pa.uuid())]))),
        ("config", pa.struct([("depth", pa.int32()), ("steps", pa.large_list(pa.struct([("name", pa.string())])))])),
        pa.field("never_null", pa.int64(), nullable=False),
        ("message", pa.string()),
    ]
)
TYPES = {
    **dict.fromkeys(("k", "text", "viewed", "word", "message"), "string"),
    **dict.fromkeys(("raw", "digest"), "bytes"),
    **dict.fromkeys(("at", "naive"), "timestamp"),
    **dict.fromkeys(("tiny", "small"), "int32"),
    **dict.fromkeys(("large", "never_null"), "int64"),
    **dict.fromkeys(("byte", "count"), "uint32"),
    **dict.fromkeys(("half", "ratio"), "float"),
    "uid": "uuid",
    "said": "json",
    "flag": "bool",
    "huge": "uint64",
    "exact": "double",
    "words": "list of string",
    "three": "list of int64",
    "counts": "map of string to int64",
    "by_number": "map of int32 to message",
    "config": "message",
}
NOON = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
ROW: dict[str, Any] = {
    "k": "a",
    "text": "t",
    "viewed": "v",
    "word": "w",
    "raw": b"\x00r",
    "digest": b"1234",
    "uid": uuid.UUID(int=7),
    "said": '{"a":1}',
    "at": NOON,
    "naive": NOON.replace(tzinfo=None),
    "flag": True,
    "tiny": -1,
    "small": -2,
    "large": 1 << 40,
    "byte": 200,
    "count": 1 << 31,
    "huge": 1 << 63,
    "half": 0.5,
    "ratio": 1.5,
    "exact": 0.1,
    "words": ["x", "y"],
    "three": [1, 2, 3],
    "counts": [("one", 1)],
    "by_number": [(3, {"x": 0.5, "uid": uuid.UUID(int=8)})],
    "config": {"depth": 1, "steps": [{"name": "begin"}, {"name": "end"}]},
    "never_null": 0,
    "message": "m",
}


def table_in(catalog: Catalog, name: str) -> Table:
    """A table as the database defines it."""
    return Catalog(catalog.store).database("default").look().table(name)


def given(schema: pa.Schema, row: dict[str, Any]) -> pa.Table:
    """A row as Arrow data of that schema; what Python cannot make there is cast."""
    columns = []
    for field in schema:
        if field.name in ("uid", "said", "by_number"):
            columns.append(pa.array([_stored(row[field.name])], _storage(field.type)))
        else:
            columns.append(
                pa.array([row[field.name]]).cast(field.type) if field.name == "word" else pa.array([row[field.name]], field.type)
            )
    return pa.table(dict(zip(schema.names, columns, strict=True)))


def _stored(value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return value.bytes
    return [(key, {"x": item["x"], "uid": item["uid"].bytes}) for key, item in value] if isinstance(value, list) else value


def _storage(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(pa.int32(), pa.struct([("x", pa.float64()), ("uid", pa.binary(16))]))
    return kind.storage_type


def test_every_type_that_has_a_column_makes_it_and_its_rows_are_taken(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_table("lab.every", EVERY, key=["k"])
    table = table_in(catalog, "lab.every")
    assert {column.name: column.type_name for column in table.columns} == TYPES
    assert [column.number for column in table.columns] == [*range(1, len(EVERY) + 1)]
    assert [column.name for column in table.columns if column.implicit] == ["never_null"]

    elsewhere = Catalog(tmp_path)
    data = given(EVERY.remove(EVERY.get_field_index("viewed")), ROW)
    with elsewhere.writer("w") as writer, writer.transaction() as tx:
        tx.put("lab.every", data)
    (found,) = elsewhere.snapshot().scan("lab.every").to_arrow().to_pylist()
    expected = ROW | {
        "uid": str(ROW["uid"]),
        "naive": NOON,
        "viewed": None,
        "by_number": [(3, {"x": 0.5, "uid": str(uuid.UUID(int=8))})],
    }
    assert found == expected


def test_the_proto_compiles_to_the_same_definition(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "lake")
    catalog.create_table("lab.every", EVERY, key=["k"], id="uid", keep_tombstones=False)
    changed = EVERY.remove(3).remove(1).append(pa.field("added", pa.map_(pa.string(), pa.bool_())))
    for schema, removed in ((EVERY, []), (changed, ["text", "word"])):
        made = catalog.create_table("lab.every", schema, key=["k"], tombstone_retention="90m", remove=removed)
        text, held = made.proto, catalog.registry.table("lab.every")
        (descriptor,) = tables_in(compiled(text, made.file), "compiled")
        assert held is not None and table_of(descriptor) == held
        assert table_of(descriptor).definition == held.definition, "byte by byte"
        assert made.file == "lab/every.proto" and made.name == "lab.every"
        assert made.write_proto(tmp_path / "protos") == tmp_path / "protos" / "lab" / "every.proto"
        assert (tmp_path / "protos" / "lab" / "every.proto").read_text() == text
    assert "reserved 2, 4;" in text and 'reserved "text", "word";' in text


def test_who_registers_what_the_proto_compiles_to_says_nothing_new(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    made = catalog.create_table("lab.every", EVERY, key=["k"])
    elsewhere = Catalog(tmp_path)
    assert elsewhere.register(tables_in(compiled(made.proto), "compiled")) == ["lab.every"]
    assert elsewhere.declare(["lab.every"]) is None


@pytest.mark.parametrize(
    ("kind", "instead"),
    [
        (pa.date32(), "timestamp"),
        (pa.decimal128(10, 2), "string"),
        (pa.null(), "type"),
        (pa.time64("us"), "int64"),
        (pa.duration("s"), "int64"),
        (pa.month_day_nano_interval(), "int64"),
        (pa.list_(pa.list_(pa.int8())), "struct"),
        (pa.map_(pa.string(), pa.list_(pa.int8())), "struct"),
        (pa.map_(pa.float64(), pa.int8()), "keys"),
        (pa.list_(pa.date32()), "timestamp"),
        (pa.struct([("x", pa.struct([("y", pa.date32())]))]), "timestamp"),
        (pa.dense_union([pa.field("a", pa.int8())]), "string"),
    ],
    ids=str,
)
def test_a_type_that_no_column_has_is_an_error_that_says_what_to_use_instead(
    tmp_path: Path, kind: pa.DataType, instead: str
) -> None:
    with pytest.raises(IncompatibleTable, match=r"Column '(bad|bad\.x\.y)' for table 'lab\.t'") as caught:
        Catalog(tmp_path).create_table("lab.t", {"k": pa.int64(), "bad": kind}, key=["k"])
    assert instead in caught.value.next_step and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name", ["", "runs", "jobs.", ".runs", "jobs..runs", "1.a", "jobs.r-1", "google.x", "bucketcatalog.v1.x", "a" * 127 + ".b", 3]
)
def test_a_name_that_no_proto_can_have_is_refused(tmp_path: Path, name: Any) -> None:
    with pytest.raises(InvalidName) as caught:
        Catalog(tmp_path).create_table(name, {"k": pa.int64()}, key=["k"])
    assert "jobs.runs" in caught.value.next_step


@pytest.mark.parametrize(
    ("columns", "error", "says"),
    [
        ([("k", pa.int64()), ("Run ID", pa.int64())], InvalidName, "'Run ID'"),
        ([("k", pa.int64()), ("_hidden", pa.int64())], InvalidName, "'_hidden'"),
        ([("k", pa.int64()), ("s", pa.struct([("é", pa.int8())]))], InvalidName, "'s.é'"),
        ([("k", pa.int64()), ("run_id", pa.int64()), ("runId", pa.int64())], InvalidName, "'run_id' and 'runId'"),
        ([("k", pa.int64()), ("k", pa.int64())], InvalidName, "'k' and 'k'"),
        ([("k", pa.int64()), ("deleted_at", pa.int64())], IncompatibleTable, "'deleted_at'"),
        ([("k", pa.int64()), ("MEntry", pa.int64()), ("m", pa.map_(pa.string(), pa.string()))], InvalidName, "'MEntry'"),
        ([("k", pa.int64()), ("S3", pa.int64()), ("s", pa.struct([]))], InvalidName, "'S3'"),
        ([("k", pa.int64()), *((name, pa.map_(pa.string(), pa.string())) for name in "mM")], InvalidName, "'MEntry'"),
        ([("k", pa.float64())], IncompatibleTable, "'k' has no order"),
        ([("x", pa.int64())], IncompatibleTable, "'k' for its key"),
        ([], IncompatibleTable, "'k' for its key"),
    ],
    ids=str,
)
def test_columns_that_cannot_be_are_refused(tmp_path: Path, columns: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        Catalog(tmp_path).create_table("lab.t", pa.schema(columns), key=["k"])
    assert says in str(caught.value) and not list(tmp_path.iterdir())


FRAME = {"k": [1], "name": ["x"], "at": [NOON]}


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("k", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", "UTC"))]),
        {"k": pa.int64(), "name": pa.string(), "at": pa.timestamp("us", "UTC")},
        pa.table(FRAME),
        pa.RecordBatch.from_pydict(FRAME),
        pd.DataFrame(FRAME),
        pl.DataFrame(FRAME),
        pl.DataFrame(FRAME).schema,
    ],
    ids=lambda given: f"{type(given).__module__}.{type(given).__name__}",
)
def test_whatever_has_a_schema_of_arrows_can_be_given(tmp_path: Path, schema: Any) -> None:
    catalog = Catalog(tmp_path)
    catalog.create_table("lab.t", schema, key=["k"])
    assert [(c.name, c.type.value) for c in table_in(catalog, "lab.t").columns] == [
        ("k", "int64"),
        ("name", "string"),
        ("at", "timestamp"),
    ]


@pytest.mark.parametrize(
    ("schema", "options"),
    [
        (3, {}),
        (["k"], {}),
        ({"k": "no type"}, {}),
        ({"k": pa.int64()}, {"key": b"k"}),
        ({"k": pa.int64()}, {"rename": ["k"]}),
        ({"k": pa.int64()}, {"tombstone_retention": "soon"}),
    ],
    ids=str,
)
def test_what_is_no_schema_or_option_is_refused(tmp_path: Path, schema: Any, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption) as caught:
        Catalog(tmp_path).create_table("lab.t", schema, **{"key": ["k"], **options})
    assert caught.value.next_step and not list(tmp_path.iterdir())
