"""S3 Inventories: what reads those of AWS reads ours, and finds in them what a scan shows."""

from __future__ import annotations

import csv
import datetime
import gzip
import hashlib
import io
import json
import random
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_plus

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import InvalidOption, NotFound
from bucketcatalog.exports import inventory, s3_inventory
from bucketcatalog.exports.columns import url_encoded
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.store.memory import MemoryStore

from ...kit.world import BUCKET, ID_1, OTHER, OWNER, World, time_at

MD5 = "0123456789abcdef0123456789abcdef"
LATER = time_at(1_700_000_123_456_789)
NAMES = ["a b", "a+b", "a/b", 'q",\n', "%41", "d\u00e9", "\U0001f600", "z"]
OF_ALL = (
    "Bucket, Key, VersionId, IsLatest, IsDeleteMarker, Size, LastModifiedDate, ETag, StorageClass, IsMultipartUploaded, "
    "ReplicationStatus, EncryptionStatus, ObjectLockRetainUntilDate, ObjectLockMode, ObjectLockLegalHoldStatus, ChecksumAlgorithm, "
    "ObjectOwner"
)
OF_CURRENT = OF_ALL.replace("VersionId, IsLatest, IsDeleteMarker, ", "")


def row(name: str, **more: Any) -> dict[str, Any]:
    return {"owner": OWNER, "bucket_id": BUCKET, "name": name, "content_length": 3, "modified": LATER, **more}


def world_with(*objects: dict[str, Any], versions: tuple[dict[str, Any], ...] = (), **of_bucket: Any) -> World:
    world = World()
    with world.writer() as writer, writer.transaction() as tx:
        tx.put("buckets", [{"owner": OWNER, "name": "cats", "id": BUCKET, **of_bucket}])
        if objects:
            tx.put("objects", list(objects))
        if versions:
            tx.put("object_versions", list(versions))
    return world


@pytest.fixture
def snapshot() -> Snapshot:
    known = {
        "etag": f"{MD5}-7",
        "parts": 7,
        "storage_class": "STANDARD",
        "replication_status": "COMPLETED",
        "encryption": "aws:kms",
        "lock_mode": "GOVERNANCE",
        "lock_retain_until": LATER,
        "legal_hold": True,
        "checksum_algorithm": "SHA256",
    }
    rows = [row(name, etag=MD5) for name in NAMES]
    return world_with(*rows, row("known", **known), row("md5", content_md5=bytes(16))).catalog().snapshot()


def read_inventory(destination: Path, found: inventory.Inventory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The manifest and the rows, as a reader has them who knows of inventories what AWS has written down, and nothing of us."""
    path = destination / found.manifest
    raw = path.read_bytes()
    assert path.with_name("manifest.checksum").read_text() == hashlib.md5(raw).hexdigest()
    manifest = json.loads(raw)
    rows: list[dict[str, Any]] = []
    for file in manifest["files"]:
        data = (destination / file["key"]).read_bytes()
        assert (len(data), hashlib.md5(data).hexdigest()) == (file["size"], file["MD5checksum"])
        if manifest["fileFormat"] == "Parquet":
            rows += pq.read_table(io.BytesIO(data)).to_pylist()
        else:
            names = manifest["fileSchema"].split(", ")
            lines = csv.reader(io.StringIO(gzip.decompress(data).decode(), newline=""))
            rows += [{**dict(zip(names, line, strict=True)), "Key": unquote(line[1])} for line in lines]
    return manifest, rows


def test_an_inventory_in_parquet_says_what_a_scan_shows(snapshot: Snapshot, tmp_path: Path) -> None:
    told: list[int] = []
    found = s3_inventory(snapshot, tmp_path / "lake", tell=told.append)
    manifest, rows = read_inventory(tmp_path / "lake", found)
    commit = snapshot.cut.newest_commit_time
    time = datetime.datetime.fromtimestamp(commit // 1_000_000, datetime.UTC)
    assert found.manifest == f"cats/bucketcatalog/{time:%Y-%m-%dT%H-%MZ}/manifest.json"
    assert {name: manifest[name] for name in manifest if name not in ("files", "fileSchema")} == {
        "sourceBucket": "cats",
        "destinationBucket": "arn:aws:s3:::lake",
        "version": "2016-11-30",
        "creationTimestamp": str(commit // 1_000),
        "fileFormat": "Parquet",
    }
    assert manifest["fileSchema"].startswith(
        "message s3.inventory { required binary bucket (UTF8); required binary key (UTF8); optional int64 size; "
        "optional int64 last_modified_date (TIMESTAMP_MILLIS); optional binary e_tag (UTF8); "
    )
    scanned = snapshot.scan("objects").to_arrow().to_pylist()
    assert told == [found.rows] == [len(scanned)] and found.bytes == sum(file["size"] for file in manifest["files"])
    assert [(each["bucket"], each["key"], each["size"]) for each in rows] == [("cats", each["name"], 3) for each in scanned]
    by_key = {each["key"]: each for each in rows}
    assert by_key["known"] == {
        "bucket": "cats",
        "key": "known",
        "size": 3,
        "last_modified_date": LATER.replace(microsecond=456_000),
        "e_tag": f"{MD5}-7",
        "storage_class": "STANDARD",
        "is_multipart_uploaded": True,
        "replication_status": "COMPLETED",
        "encryption_status": "SSE-KMS",
        "object_lock_retain_until_date": LATER.replace(microsecond=456_000),
        "object_lock_mode": "GOVERNANCE",
        "object_lock_legal_hold_status": "On",
        "checksum_algorithm": "SHA256",
        "object_owner": OWNER,
    }
    assert (by_key["z"]["e_tag"], by_key["z"]["is_multipart_uploaded"], by_key["z"]["encryption_status"]) == (MD5, False, None)
    assert (by_key["md5"]["e_tag"], by_key["md5"]["is_multipart_uploaded"]) == ("0" * 32, None)
    assert list(by_key["z"]) == [field.split()[2] for field in manifest["fileSchema"].partition("{")[2].split(";")[:-1]]


def test_an_inventory_in_csv_has_no_header_and_every_field_in_quotes(snapshot: Snapshot, tmp_path: Path) -> None:
    manifest, rows = read_inventory(tmp_path, s3_inventory(snapshot, str(tmp_path), bucket="cats", file_format="csv"))
    assert (manifest["fileFormat"], manifest["fileSchema"]) == ("CSV", OF_CURRENT)
    assert sorted(each["Key"] for each in rows) == sorted([*NAMES, "known", "md5"])
    (file,) = manifest["files"]
    assert file["key"].endswith(".csv.gz")
    lines = gzip.decompress((tmp_path / file["key"]).read_bytes()).decode().splitlines()
    time = "2023-11-14T22:15:23.456Z"
    assert f'"cats","a%20b","3","{time}","{MD5}","","false","","","","","","","{OWNER}"' in lines
    known = f'"cats","known","3","{time}","{MD5}-7","STANDARD","true","COMPLETED","SSE-KMS","{time}","GOVERNANCE","On","SHA256"'
    assert f'{known},"{OWNER}"' in lines


def test_all_versions_are_those_of_a_bucket_that_keeps_them(tmp_path: Path) -> None:
    marker = {"version_id": "v2", "ordinal": 2, "is_latest": True, "is_delete_marker": True, "content_length": None}
    rows = (
        row("a", version_id="v1", ordinal=1, is_latest=False, is_delete_marker=False, etag=MD5),
        row("a", **marker),
        row("b", version_id="null", ordinal=1, is_latest=True, is_delete_marker=False, etag=MD5),
    )
    snapshot = world_with(row("b", etag=MD5), versions=rows, versioning="Enabled").catalog().snapshot()
    manifest, found = read_inventory(tmp_path, s3_inventory(snapshot, tmp_path, file_format="csv"))
    assert manifest["fileSchema"] == OF_ALL
    names = ("Key", "VersionId", "IsLatest", "IsDeleteMarker", "Size", "ETag")
    assert sorted(tuple(each[name] for name in names) for each in found) == [
        ("a", "v1", "false", "false", "3", MD5),
        ("a", "v2", "true", "true", "", ""),
        ("b", "", "true", "false", "3", MD5),
    ]
    _, found = read_inventory(tmp_path, s3_inventory(snapshot, tmp_path))
    assert {each["version_id"] for each in found} == {"v1", "v2", None}
    manifest, found = read_inventory(tmp_path, s3_inventory(snapshot, tmp_path, versions=False))
    assert [each["key"] for each in found] == ["b"] and "version_id" not in manifest["fileSchema"]


def test_duckdb_reads_both_forms_and_finds_the_same(snapshot: Snapshot, tmp_path: Path) -> None:
    for file_format in ("csv", "parquet"):
        s3_inventory(snapshot, tmp_path / file_format, file_format=file_format)
    in_parquet = duckdb.execute(
        f"SELECT key, size, epoch_ms(last_modified_date), e_tag FROM read_parquet('{tmp_path}/parquet/cats/*/data/*.parquet')"
    ).fetchall()
    names = [name.strip() for name in OF_CURRENT.split(",")]
    in_csv = duckdb.execute(
        "SELECT url_decode(Key), Size::BIGINT, epoch_ms(LastModifiedDate::TIMESTAMPTZ), ETag FROM "
        f"read_csv('{tmp_path}/csv/cats/*/data/*.csv.gz', header=false, names={names}, all_varchar=true)"
    ).fetchall()
    assert len(in_csv) == len(NAMES) + 2 and sorted(in_csv) == sorted(in_parquet)


def test_symlinks_for_hive_name_the_data_files_by_their_urls(snapshot: Snapshot, tmp_path: Path) -> None:
    found = s3_inventory(snapshot, tmp_path, config="nightly", destination_bucket="reports")
    (links,) = tmp_path.glob("cats/nightly/hive/dt=*/symlink.txt")
    assert links.read_text().splitlines() == [f"s3://reports/{name}" for name in found.files]
    assert json.loads((tmp_path / found.manifest).read_bytes())["destinationBucket"] == "arn:aws:s3:::reports"


def test_the_same_state_is_the_same_files_and_prefixes_leave_out_names(snapshot: Snapshot, tmp_path: Path) -> None:
    found = s3_inventory(snapshot, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert s3_inventory(snapshot, tmp_path) == found
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    _, rows = read_inventory(tmp_path, s3_inventory(snapshot, tmp_path, bucket=BUCKET, owner=OWNER, prefix="a/"))
    assert [(each["bucket"], each["key"]) for each in rows] == [("cats", "a/b")]


def test_a_large_bucket_is_several_files(snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inventory, "_ROWS", 4)
    scan = type(snapshot.scan("objects"))
    whole = scan.to_batches
    monkeypatch.setattr(scan, "to_batches", lambda read: (b.slice(at, 2) for b in whole(read) for at in range(0, len(b), 2)))
    for file_format in ("csv", "parquet"):
        found = s3_inventory(snapshot, tmp_path, file_format=file_format)
        _, rows = read_inventory(tmp_path, found)
        assert len(found.files) == 3 and found.rows == len(rows) == len(NAMES) + 2


def test_an_empty_bucket_has_a_file_without_rows(tmp_path: Path) -> None:
    snapshot = world_with().catalog().snapshot()
    for file_format in ("csv", "parquet"):
        manifest, rows = read_inventory(tmp_path, s3_inventory(snapshot, tmp_path, file_format=file_format))
        assert len(manifest["files"]) == 1 and rows == []


def test_a_bucket_harvested_from_s3_is_called_as_it_is_there(tmp_path: Path) -> None:
    snapshot = world_with(row("a/b"), external=True, source="s3://photos/2024/").catalog().snapshot()
    manifest, rows = read_inventory(tmp_path, s3_inventory(snapshot, tmp_path, bucket="cats"))
    assert manifest["sourceBucket"] == "photos" and manifest["files"][0]["key"].startswith("photos/bucketcatalog/data/")
    assert [(each["bucket"], each["key"]) for each in rows] == [("photos", "2024/a/b")]


def test_a_bucket_that_is_called_like_a_path_stays_one_directory(tmp_path: Path) -> None:
    world = World()
    with world.writer() as writer, writer.transaction() as tx:
        tx.put("buckets", [{"owner": OWNER, "name": name, "id": id_} for name, id_ in (("/usr/lib", BUCKET), ("..", OTHER))])
    for name, folder in (("/usr/lib", "%2Fusr%2Flib"), ("..", "%2E%2E")):
        found = s3_inventory(world.catalog().snapshot(), tmp_path / "out", bucket=name)
        assert found.manifest.startswith(f"{folder}/bucketcatalog/")
        assert read_inventory(tmp_path / "out", found)[0]["sourceBucket"] == name


def test_any_store_takes_one_and_the_checksum_comes_last(snapshot: Snapshot) -> None:
    store = MemoryStore("reports")
    put: list[str] = []
    write = store.put
    store.put = lambda name, data: (put.append(name), write(name, data))[1]  # type: ignore[method-assign, func-returns-value]
    found = s3_inventory(snapshot, store)
    assert put[: len(found.files)] == list(found.files)
    assert put[-2:] == [found.manifest, found.manifest.replace("manifest.json", "manifest.checksum")]
    assert json.loads(store.get(found.manifest))["destinationBucket"] == "arn:aws:s3:::reports"


def test_what_is_no_inventory_of_one_bucket_is_refused(snapshot: Snapshot, tmp_path: Path) -> None:
    two = world_with()
    with two.writer() as writer, writer.transaction() as tx:
        tx.put("buckets", [{"owner": OWNER, "name": "dogs", "id": OTHER}])
    with pytest.raises(InvalidOption, match="of one bucket, and there are 2"):
        s3_inventory(two.catalog().snapshot(), tmp_path)
    none = World()
    with none.writer() as writer, writer.transaction() as tx:
        tx.put("objects", [row("a", id=ID_1)])
    with pytest.raises(NotFound, match="There is no bucket"):
        s3_inventory(none.catalog().snapshot(), tmp_path)
    with pytest.raises(NotFound):
        s3_inventory(snapshot, tmp_path, bucket="mice")
    with pytest.raises(InvalidOption, match="format 'orc'"):
        s3_inventory(snapshot, tmp_path, file_format="orc")
    for config in ("", "..", "a/b", "a b"):
        with pytest.raises(InvalidOption, match="id of an inventory"):
            s3_inventory(snapshot, tmp_path, config=config)
    assert list(tmp_path.iterdir()) == []


def test_keys_are_encoded_so_that_either_way_of_decoding_gives_them_back() -> None:
    chance = random.Random(1)
    texts = ["", *("".join(chance.choices('aZ09-_.~/ +%&=?"\n\x00\u00e9\u20ac\U0001f600', k=9)) for _ in range(200))]
    for values in (pa.array(texts), pa.array(texts).slice(50, 20), pa.array(texts).slice(0, 0)):
        encoded = url_encoded(values).to_pylist()
        assert [unquote(text) for text in encoded] == [unquote_plus(text) for text in encoded] == values.to_pylist()
        assert all(text.isascii() and " " not in text and '"' not in text for text in encoded)
