"""Exports: what a scan, a difference or the events are, in a file of any format; and a bucket as an S3 Inventory."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog

from ...kit.world import messages, proto
from .conftest import NAMES, Cli, Past

NOW = sorted({*NAMES, "added", "link"} - {"a/c"}, key=str.encode)


def test_export_writes_what_a_scan_reads(cli: Cli, past: Past, tmp_path: Path) -> None:
    file = tmp_path / "objects.parquet"
    assert cli("export", past.path, "objects", file, "--json").document["rows"] == len(NOW)
    assert pq.read_table(file).equals(Catalog(past.path).snapshot().scan("objects").to_arrow())
    assert f"{len(NAMES) + 1} rows" in cli("export", past.path, "objects", file, "--as-of", past.first).out
    assert pq.read_table(file).num_rows == len(NAMES) + 1
    for table, rows in (("deleted_objects", 2), ("log", 2), ("conflicts", 0), ("object_versions", 0)):
        assert cli("export", past.path, table, file, "--json").document["rows"] == rows
        assert pq.read_table(file).num_rows == rows
    assert [path.name for path in tmp_path.iterdir()] == ["objects.parquet"]


def test_export_writes_messages_without_fields_with_the_child_that_segments_give_them(cli: Cli, tmp_path: Path) -> None:
    nothing, part = "message Nothing {}", "message Part { Nothing nothing = 1; optional int32 n = 2; }"
    row = """
    message Row {
      option (table) = { name: "test.rows" key: "k" };
      int32 k = 1;
      Nothing nothing = 2;
      repeated Nothing some = 3;
      map<string, Nothing> by_name = 4;
      Part part = 5;
    }
    """
    catalog = Catalog(tmp_path / "c")
    catalog.register(messages(proto(nothing, part, row))["Row"])
    there = [
        {"k": 0, "nothing": {}, "some": [{}, {}], "by_name": {"a": {}}, "part": {"nothing": {}, "n": 1}},
        {"k": 1, "part": {}},
        {"k": 2},
    ]
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("test.rows", there)

    file = tmp_path / "rows.parquet"
    assert cli("export", tmp_path / "c", "test.rows", file, "--json").document["rows"] == 3
    child = {"_": None}
    assert pq.read_table(file).to_pylist() == [
        {"k": 0, "nothing": child, "some": [child] * 2, "by_name": [("a", child)], "part": {"nothing": child, "n": 1}},
        {"k": 1, "nothing": None, "some": None, "by_name": None, "part": {"nothing": None, "n": None}},
        {"k": 2, "nothing": None, "some": None, "by_name": None, "part": None},
    ]


def test_the_ending_says_the_format_and_the_option_says_it_better(cli: Cli, past: Past, tmp_path: Path) -> None:
    lines = Catalog(past.path).snapshot().scan("objects").to_arrow()["name"].to_pylist()
    assert cli("export", past.path, "objects", tmp_path / "x.jsonl", "--json").document["format"] == "jsonl"
    listed = cli("ls", past.path, "pets", "--json").out
    assert (tmp_path / "x.jsonl").read_text() == listed and lines == NOW
    for name, options in (("x.jsonl.gz", []), ("x.gz", ["--format", "jsonl"])):
        assert cli("export", past.path, "objects", tmp_path / name, *options).code == 0
        assert gzip.decompress((tmp_path / name).read_bytes()).decode() == listed
    for name, options in (("x.csv", []), ("x.any", ["--format", "csv"])):
        assert cli("export", past.path, "objects", tmp_path / name, *options, "--columns", "bucket, content_length").code == 0
        assert (tmp_path / name).read_text().splitlines()[:2] == ['"bucket","content_length"', '"pets",2']
    assert cli("export", past.path, "objects", tmp_path / "x", "--format", "parquet", "--json").document["format"] == "parquet"


def test_an_export_is_of_the_columns_the_bucket_and_the_names_that_are_asked_for(cli: Cli, past: Past, tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    (bucket,) = cli("ls", past.path, "--json").lines
    narrowed = ["--bucket", "pets", "--prefix", "a", "--owner", bucket["owner"]]
    assert cli("export", past.path, "objects", file, *narrowed, "--columns", "name,bucket", "--columns", "etag").code == 0
    assert pq.read_table(file).column_names == ["name", "bucket", "etag"]
    assert pq.read_table(file)["name"].to_pylist() == [name for name in NOW if name.startswith("a")]
    ran = cli("export", past.path, "objects", file, "--bucket", "mice")
    assert ran.code == 1 and ran.err.startswith("[NOT_FOUND] ")
    assert cli("export", past.path, "log", file, "--bucket", "pets").err.startswith(
        "[INVALID_OPTION] 'log' has no rows of buckets"
    )


def test_partitions_are_a_new_directory(cli: Cli, past: Past, tmp_path: Path) -> None:
    asked = ["export", past.path, "objects", tmp_path / "out", "--partition-by", "bucket,file_type"]
    asked += ["--columns", "name", "--json"]
    told = cli(*asked).document
    files = sorted((tmp_path / "out").rglob("*.parquet"))
    assert [str(file.relative_to(tmp_path)) for file in files] == [
        f"out/bucket=pets/file_type={kind}/part-00000.parquet" for kind in ("__HIVE_DEFAULT_PARTITION__", "symlink")
    ]
    assert pq.ParquetFile(files[0]).schema_arrow.names == ["name"]
    assert (told["rows"], told["bytes"]) == (len(NOW), sum(file.stat().st_size for file in files))
    again = cli(*asked)
    assert again.code == 1 and again.err.startswith("[TARGET_NOT_EMPTY] ")


def test_what_has_changed_since_is_the_difference_and_events_are_the_changes(cli: Cli, past: Past, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    for since in (past.first, past.between):
        cli("export", past.path, "objects", file, "--since", since)
        assert [json.loads(line) for line in file.read_text().splitlines()] == cli(
            "diff", past.path, "--from", since, "--json"
        ).lines
    columns = ["--columns", "_change_type,bucket,name"]
    cli("export", past.path, "objects", file, "--since", past.first, *columns)
    assert [tuple(json.loads(line).values()) for line in file.read_text().splitlines()] == [
        ("deleted", "pets", "a/c"),
        ("created", "pets", "added"),
        ("overwritten", "pets", "z"),
    ]
    cli("export", past.path, "objects", file, "--since", past.first, "--prefix", "a/", "--bucket", "pets", *columns)
    assert [json.loads(line)["name"] for line in file.read_text().splitlines()] == ["a/c"]
    for options in (["--since", past.first], []):
        cli("export", past.path, "objects", file, "--events", *options)
        told = cli("changes", past.path, "--json", *(["--from", past.first] if options else [])).lines
        assert [json.loads(line) for line in file.read_text().splitlines()] == told
    assert cli("export", past.path, "objects", file, "--since", past.first, "--as-of", past.first, "--json").document["rows"] == 0
    assert cli("export", past.path, "deleted_objects", file, "--since", "24h").err.startswith("[INVALID_OPTION] ")


def test_an_inventory_is_written_below_a_directory_or_a_url(cli: Cli, past: Past, tmp_path: Path) -> None:
    asked = ["export", past.path, "objects", tmp_path / "out", "--format", "s3-inventory"]
    told = cli(*asked, "--json").document
    manifest = json.loads(Path(told["manifest"]).read_bytes())
    (file,) = manifest["files"]
    assert (manifest["sourceBucket"], told["rows"], told["bytes"], told["files"]) == ("pets", len(NOW), file["size"], 1)
    assert pq.read_table(tmp_path / "out" / file["key"])["key"].to_pylist() == NOW
    assert cli(*asked).out.endswith(f": {told['manifest']}\n")
    past_one = cli(*asked, "--as-of", past.first, "--prefix", "a/", "--bucket", "pets", "--json").document
    assert past_one["rows"] == 2
    assert cli("export", past.path, "object_versions", tmp_path / "v", "--format", "s3-inventory", "--json").document["rows"] == 0
    in_csv = cli("export", past.path, "objects", tmp_path / "csv", "--format", "s3-inventory-csv", "--json").document
    assert json.loads(Path(in_csv["manifest"]).read_bytes())["fileFormat"] == "CSV" and in_csv["rows"] == len(NOW)
    assert cli("export", past.path, "objects", "memory://reports/x", "--format", "s3-inventory", "--json").document[
        "rows"
    ] == len(NOW)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["objects", "x.json"], "No format ends in '.json'"),
        (["objects", "x"], "'x' does not end in a format. Next: Take .parquet, .csv"),
        (["objects", "-"], "it does not go to standard output. Next: Name a file"),
        (["objects", "-", "--format", "csv"], "it does not go to standard output"),
        (["objects", "x", "--format", "orc"], "There is no format 'orc'"),
        (["objects", "s3://lake/x.parquet"], "is not a file of this machine"),
        (["buckets", "x", "--format", "s3-inventory"], "The table 'buckets' has no S3 Inventory"),
        (["objects", "x", "--format", "s3-inventory", "--columns", "name"], "An S3 Inventory has no --columns"),
        (["objects", "x", "--format", "s3-inventory", "--partition-by", "name"], "An S3 Inventory has no --partition-by"),
        (["objects", "x", "--format", "s3-inventory", "--since", "24h"], "An S3 Inventory has no --since"),
        (["objects", "x", "--format", "s3-inventory", "--events"], "An S3 Inventory has no --events"),
        (["objects", "x.csv", "--columns", "nothing"], "nothing"),
        (["objects", "x", "--partition-by", "nothing"], "nothing"),
        (["objects", "x", "--partition-by", "tags"], "which name no directory"),
    ],
)
def test_what_cannot_be_exported_is_wrong_usage(
    cli: Cli, past: Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cli("export", past.path, *arguments)
    assert ran.code == 2 and ran.err.startswith("[INVALID_OPTION] ") and message in ran.err, ran.err
    assert list(tmp_path.iterdir()) == []
