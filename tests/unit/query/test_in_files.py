"""Reads as files: whole or not at all, in the words of the command line, and in directories that other programs take for partitions."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog, InvalidOption, TargetNotEmpty
from bucketcatalog.console.output import rows_of, to_json
from bucketcatalog.query import in_files
from bucketcatalog.query.reads import InBatches

from ...kit.world import BUCKET, OTHER, OWNER, World

CLASSES = ["STANDARD", "GLACIER", None]


class Given(InBatches):
    """Batches that a test gives, of which one may fail."""

    def __init__(self, *batches: pa.RecordBatch, error: Exception | None = None) -> None:
        self._batches, self._error = batches, error

    @property
    def schema(self) -> pa.Schema:
        return self._batches[0].schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._batches
        if self._error is not None:
            raise self._error


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def every_kind() -> pa.RecordBatch:
    """A column of each kind that reads have, with nulls, what is empty, and what has to be escaped."""
    inner = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])
    return batch(
        text=["a", None, 'q"\\', "\u202ex\x7f\n,", "", "\U0001f600\u00e9"],
        number=[1, None, -3, 4, 5, 6],
        unsigned=pa.array([2**64 - 1, 0, None, 1, 2, 3], pa.uint64()),
        fraction=[1.5, None, float("nan"), float("inf"), 1e20, -0.0],
        yes=[True, None, False, True, True, False],
        time=pa.array([0, -1, None, -62135596800000000, 253402300799999999, 5], pa.timestamp("us", "UTC")),
        bytes=[b"\x00\xff", None, b"", b"a", b"b", b"c"],
        tags=pa.array([[("a", "b"), ("c", None)], None, [], [('q"', '"')], [], [("z", "")]], pa.map_(pa.string(), pa.string())),
        by_number=pa.array([[(1, True)], None, [], [(2, None)], [], []], pa.map_(pa.int32(), pa.bool_())),
        some=pa.array([[1, None], None, [], [2], [3], [4]], pa.list_(pa.int32())),
        message=pa.array([{"x": 1, "y": ["a"]}, None, {"x": None, "y": None}, {"x": 2, "y": []}, None, None], inner),
        nothing=pa.array([{}, None, {}, {}, {}, {}], pa.struct([])),
        sum=pa.array([12345678901234567890123, None, 0, -1, 1, 2], pa.decimal128(38, 0)),
        word=pa.array(["x", "y", None] * 2).dictionary_encode(),
        unknown=pa.nulls(6),
    )


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def catalog() -> Catalog:
    world = World()
    with world.writer() as writer, writer.transaction() as tx:
        tx.put("buckets", [{"owner": OWNER, "name": name, "id": id_} for name, id_ in (("cats", BUCKET), ("dogs", OTHER))])
        of = [BUCKET, OTHER]
        rows = [
            {"owner": OWNER, "bucket_id": of[n % 2], "name": f"a/{n}", "content_length": n, "storage_class": CLASSES[n % 3]}
            for n in range(12)
        ]
        tx.put("objects", rows)
    return world.catalog()


def test_a_scan_is_a_parquet_file_in_the_order_of_its_keys(catalog: Catalog, tmp_path: Path) -> None:
    scan = catalog.snapshot().scan("objects")
    assert scan.to_parquet(tmp_path / "objects.parquet") == 12
    assert pq.read_table(tmp_path / "objects.parquet").equals(scan.to_arrow())
    assert scan.to_parquet(str(tmp_path / "objects.parquet"), compression="snappy") == 12
    assert pq.ParquetFile(tmp_path / "objects.parquet").metadata.row_group(0).column(0).compression == "SNAPPY"
    assert left_in(tmp_path) == ["objects.parquet"]


def test_lines_of_json_are_those_of_the_command_line(tmp_path: Path) -> None:
    rows = every_kind()
    parts = [rows, rows.slice(2, 3), rows.slice(5), rows.slice(0, 0)]
    assert Given(*parts).to_jsonl(tmp_path / "x.jsonl") == 10
    assert (tmp_path / "x.jsonl").read_text() == "".join(to_json(row) + "\n" for row in rows_of(parts))


def test_csv_has_the_words_of_json_and_tells_null_from_empty(tmp_path: Path) -> None:
    rows = every_kind()
    assert Given(rows, rows.slice(1, 2)).to_csv(tmp_path / "x.csv") == 8
    raw = (tmp_path / "x.csv").read_text()
    assert raw.startswith('"text","number",')
    assert '\n"a",1,18446744073709551615,1.5,true,"1970-01-01T00:00:00.000000Z","00ff","{""a"":""b"",""c"":null}",' in raw
    read = list(csv.DictReader(raw.splitlines(keepends=True)))
    assert [row["text"] for row in read[:6]] == [text or "" for text in rows["text"].to_pylist()]
    wanted = list(rows_of([rows]))
    for name in ("tags", "by_number", "some", "message", "nothing"):
        found = [json.loads(row[name]) if row[name] else None for row in read[:6]]
        assert found == [row[name] for row in wanted], name
    told = duckdb.execute(
        f"SELECT text, tags FROM read_csv('{tmp_path / 'x.csv'}', all_varchar=true, allow_quoted_nulls=false)"
    ).fetchall()
    assert told[1] == (None, None) and told[4] == ("", "{}")


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_text_is_zipped_by_its_ending_and_the_same_rows_are_the_same_bytes(tmp_path: Path, compression: str | None) -> None:
    rows = Given(every_kind())
    for name, write in (("x.csv", rows.to_csv), ("x.jsonl", rows.to_jsonl)):
        write(tmp_path / name)
        write(tmp_path / f"{name}.gz", compression=compression)
        zipped = (tmp_path / f"{name}.gz").read_bytes()
        assert gzip.decompress(zipped) == (tmp_path / name).read_bytes()
        write(tmp_path / f"{name}.gz")
        assert (tmp_path / f"{name}.gz").read_bytes() == zipped


def test_partitions_are_directories_that_other_readers_know(catalog: Catalog, tmp_path: Path) -> None:
    scan = catalog.snapshot().scan("objects", columns=["bucket", "name", "content_length", "storage_class"])
    assert scan.to_parquet(tmp_path / "out", partition_by=["bucket", "storage_class"]) == 12
    assert left_in(tmp_path) == ["out"] and left_in(tmp_path / "out") == ["bucket=cats", "bucket=dogs"]
    assert left_in(tmp_path / "out" / "bucket=cats") == [
        "storage_class=GLACIER",
        "storage_class=STANDARD",
        "storage_class=__HIVE_DEFAULT_PARTITION__",
    ]
    (file,) = (tmp_path / "out" / "bucket=cats" / "storage_class=GLACIER").iterdir()
    assert file.name == "part-00000.parquet" and pq.ParquetFile(file).schema_arrow.names == ["name", "content_length"]
    wanted = sorted(
        (row["bucket"], row["name"], row["content_length"], row["storage_class"]) for row in scan.to_arrow().to_pylist()
    )
    names = "bucket, name, content_length, storage_class"
    told = duckdb.execute(f"SELECT {names} FROM read_parquet('{tmp_path}/out/**/*.parquet', hive_partitioning=true)").fetchall()
    assert sorted(told) == wanted
    read = pq.read_table(tmp_path / "out").to_pylist()
    assert sorted(tuple(row[name] for name in names.split(", ")) for row in read) == wanted


def test_values_of_partitions_are_exact_whatever_they_are(tmp_path: Path) -> None:
    words = ["a b/c+", "", "%41", "d\u00e9", "..", None, "x=y", "nul\x00"]
    rows = batch(word=words, copy=words, time=pa.array([0] * 8, pa.timestamp("us", "UTC")), yes=[True] * 8)
    assert Given(rows).to_parquet(tmp_path / "out", partition_by=["word", "time", "yes"]) == 8
    assert (tmp_path / "out" / "word=a%20b%2Fc%2B" / "time=1970-01-01T00%3A00%3A00.000000Z" / "yes=true").is_dir()
    read = pq.read_table(tmp_path / "out").to_pylist()
    assert len(read) == 8 and all(row["word"] == row["copy"] for row in read)


@pytest.mark.parametrize(("write", "ending"), [("to_csv", "csv"), ("to_jsonl", "jsonl")])
def test_partitions_are_of_any_format(tmp_path: Path, write: str, ending: str) -> None:
    rows = Given(batch(kind=["a", "b", "a"], n=[1, 2, 3]))
    assert getattr(rows, write)(tmp_path / "out", partition_by=["kind"], compression="gzip") == 3
    texts = {path.parent.name: gzip.decompress(path.read_bytes()).decode() for path in tmp_path.rglob(f"part-00000.{ending}.gz")}
    wanted = {"to_csv": ('"n"\n1\n3\n', '"n"\n2\n'), "to_jsonl": ('{"n":1}\n{"n":3}\n', '{"n":2}\n')}[write]
    assert texts == {"kind=a": wanted[0], "kind=b": wanted[1]}


def test_partitions_hold_few_rows_and_files_at_a_time_and_keep_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_files, "_MOST_OPEN", 2)
    monkeypatch.setattr(in_files, "_GATHERED_BYTES", 2_000)
    monkeypatch.setattr(in_files, "_GROUP_ROWS", 3)
    batches = [batch(part=[n % 5 for n in range(at, at + 10)], n=list(range(at, at + 10))) for at in range(0, 100, 10)]
    most = 0
    opened: set[object] = set()
    real_open = in_files._open

    def counted(*arguments: Any) -> Any:
        nonlocal most
        sink = real_open(*arguments)
        opened.add(sink)
        close = sink.close
        sink.close = lambda: (opened.discard(sink), close())  # type: ignore[method-assign, assignment, func-returns-value]
        most = max(most, len(opened))
        return sink

    monkeypatch.setattr(in_files, "_open", counted)
    assert Given(*batches).to_parquet(tmp_path / "out", partition_by=["part"]) == 100
    assert most == 2 and not opened
    for part in range(5):
        files = sorted((tmp_path / "out" / f"part={part}").iterdir())
        assert len(files) > 1 and files[1].name == "part-00001.parquet"
        numbers = [n for file in files for n in pq.ParquetFile(file).read()["n"].to_pylist()]
        assert numbers == list(range(part, 100, 5))


@pytest.mark.parametrize("error", [RuntimeError("no more"), OSError(28, "No space left on device")])
def test_what_fails_leaves_nothing_and_replaces_nothing(tmp_path: Path, error: Exception) -> None:
    rows = Given(batch(a=[1], b=[2]), error=error)
    (tmp_path / "there").write_text("kept")
    for write in (rows.to_parquet, rows.to_csv, rows.to_jsonl):
        of_two: list[dict[str, Any]] = [{}, {"partition_by": "a"}]
        for options in of_two:
            target = tmp_path / ("new" if options else "there")
            with pytest.raises(type(error)) as raised:
                write(target, **options)
            if isinstance(error, OSError):
                assert raised.value.filename == str(target)  # type: ignore[attr-defined]
            assert left_in(tmp_path) == ["there"] and (tmp_path / "there").read_text() == "kept"


def test_a_directory_is_never_mixed_with_what_is_there(tmp_path: Path) -> None:
    rows = Given(batch(a=[1], b=[2]))
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert rows.to_parquet(tmp_path / "empty", partition_by=["a"]) == 1
    for name in ("empty", "file"):
        with pytest.raises(TargetNotEmpty, match="is there already"):
            rows.to_parquet(tmp_path / name, partition_by=["a"])
    assert left_in(tmp_path) == ["empty", "file"]


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("s3://lake/x.parquet", {}, "is not a file of this machine"),
        ("", {}, "is not the name of a file"),
        ("x/", {}, "is not the name of a file"),
        ("nul\0", {}, "is no path"),
        (7, {}, "is no path"),
        (b"x", {}, "is no path"),
        ("x", {"compression": "rar"}, "not compressed by 'rar'"),
        ("x", {"partition_by": [7]}, "partition_by"),
        ("x", {"partition_by": ["c"]}, "no column 'c'"),
        ("x", {"partition_by": ["l"]}, "list<item: int64>"),
        ("x", {"partition_by": ["f"]}, "double"),
        ("x", {"partition_by": ["a", "a"]}, "named twice"),
        ("x", {"partition_by": []}, "at least one column"),
        ("..", {"partition_by": ["a"]}, "not the name of a new directory"),
    ],
)
def test_what_cannot_be_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any, options: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidOption, match=message):
        Given(batch(a=[1], l=[[1]], f=[1.5])).to_parquet(path, **options)
    assert left_in(tmp_path) == []


def test_one_column_is_left_and_text_is_zipped_or_plain(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="one is left"):
        Given(batch(a=[1])).to_csv(tmp_path / "x", partition_by=["a"])
    with pytest.raises(InvalidOption, match="Text is not compressed by 'zstd'"):
        Given(batch(a=[1])).to_jsonl(tmp_path / "x", compression="zstd")
