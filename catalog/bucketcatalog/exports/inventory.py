"""A bucket at a moment as an S3 Inventory, for whatever reads inventories: Athena, DuckDB, lakeFS, S3 Batch Operations.

What lies where, and what a manifest says, is as in "Locating your inventory list" (Amazon S3 User Guide,
docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html)::

    DESTINATION/BUCKET/CONFIG/data/UUID.parquet, or .csv.gz
    DESTINATION/BUCKET/CONFIG/hive/dt=YYYY-MM-DD-HH-MM/symlink.txt      the data files by their URLs, for Hive and Athena
    DESTINATION/BUCKET/CONFIG/YYYY-MM-DDTHH-MMZ/manifest.json
    DESTINATION/BUCKET/CONFIG/YYYY-MM-DDTHH-MMZ/manifest.checksum       the MD5 of the manifest, and last

The time is that of the snapshot's newest commit, and a data file is named by what is in it: the same state is the same files, however
often it is exported. One data file at a time is made in memory, of at most a million rows or about 64 MiB.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import csv, parquet

from ..errors import InvalidOption, NotFound
from ..model.times import datetime_of
from ..model.uuids import is_uuid_text
from ..query.snapshot import Snapshot
from ..store.base import Store
from ..store.open import is_inventory_url, store_at
from ..wording import either
from .columns import (
    CSV,
    PARQUET,
    InventoryColumn,
    csv_texts,
    file_schema,
    inventory_columns,
    inventory_rows,
    parquet_schema,
    scanned,
)

_FORMATS = {"csv": CSV, "parquet": PARQUET}
_ENDINGS = {CSV: "csv.gz", PARQUET: "parquet"}
_VERSION = "2016-11-30"
_ROWS, _BYTES = 1_000_000, 64 << 20
_ARN = "arn:aws:s3:::"


@dataclass(frozen=True)
class Inventory:
    """What was written: the manifest's name below the destination, the data files' names there, rows and bytes of all of these."""

    manifest: str
    files: tuple[str, ...]
    rows: int
    bytes: int


def s3_inventory(
    snapshot: Snapshot,
    destination: str | os.PathLike[str] | Store,
    *,
    bucket: str | None = None,
    owner: str | uuid.UUID | None = None,
    prefix: str | None = None,
    versions: bool | None = None,
    file_format: str = "parquet",
    config: str = "bucketcatalog",
    destination_bucket: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    tell: Callable[[int], object] = lambda _: None,
) -> Inventory:
    """Write what a bucket of the snapshot holds below a path or URL, as an S3 Inventory; it is complete once its checksum is there.

    ``bucket`` is by name, or the only one; ``prefix`` leaves out other names. ``versions``: all of them with delete markers, or the
    current ones alone; without it all where the bucket keeps versions. ``file_format`` is ``parquet`` or ``csv``. Keys in the manifest are
    those that the files have in ``destination_bucket``, which is what an ``s3://`` URL says, else called as the last directory of the
    destination: copy that there as it is. A bucket that was harvested from S3 is called as it is there, with the keys that it has there.

    ``tell`` is told how many rows are written. ``NotFound`` where there is no such bucket, ``InvalidOption`` where several are meant, and
    for any other argument that is none.
    """
    if not isinstance(file_format, str) or file_format not in _FORMATS:
        raise InvalidOption(f"No inventory has the format {file_format!r}.", next_step="Take parquet or csv.")
    if not isinstance(config, str) or config.strip(".") == "" or quote(config, safe="") != config:
        raise InvalidOption(
            f"{config!r} cannot be the id of an inventory.", next_step="Use letters, digits, dots, dashes and underscores."
        )
    name, row = _bucket(snapshot, bucket, owner)
    of_versions = bool(row.get("versioning")) if versions is None else versions
    columns = inventory_columns(versions=of_versions)
    table = "object_versions" if of_versions else "objects"
    scan = snapshot.scan(table, columns=scanned(columns), bucket=name if bucket is None else bucket, owner=owner, prefix=prefix)
    source, folder = _in_s3(row.get("source")) or (name, "")
    place = _Place.of(store_at(destination, storage_options), source, config, destination_bucket)
    batches = (inventory_rows(batch, columns, source, folder) for batch in scan.to_batches())
    return _write(place, _data_files(batches, columns, _FORMATS[file_format], tell), snapshot, columns, _FORMATS[file_format])


def _bucket(snapshot: Snapshot, bucket: str | None, owner: str | uuid.UUID | None) -> tuple[str, Mapping[str, Any]]:
    """What the bucket is called, and its row; an empty one where only its objects are known, or not even these."""
    asked = ["name", "versioning", "source"]
    rows = snapshot.scan("buckets", columns=asked, bucket=bucket, owner=owner).to_arrow().to_pylist()
    if bucket is not None:
        if not rows and is_uuid_text(bucket):
            rows = snapshot.scan("buckets", columns=asked, where={"id": bucket}, owner=owner).to_arrow().to_pylist()
        return (rows[0]["name"], rows[0]) if rows else (bucket, {})
    if len(rows) == 1:
        return rows[0]["name"], rows[0]
    if not rows:
        raise NotFound(
            f"There is no bucket in database {snapshot.database!r}.", next_step="Harvest one, or name another database."
        )
    raise InvalidOption(
        f"An inventory is of one bucket, and there are {len(rows):,}.",
        next_step=f"Name one, such as {rows[0]['name']!r}: {either('bucket=NAME', '--bucket NAME')}.",
    )


def _in_s3(source: str | None) -> tuple[str, str] | None:
    """The bucket of S3 that was harvested, and what the keys of its objects begin with there."""
    if source is None or not is_inventory_url(source):
        return None
    bucket, _, folder = source.partition("://")[2].partition("/")
    return bucket, f"{folder.rstrip('/')}/" if folder.strip("/") else ""


@dataclass(frozen=True)
class _Place:
    """Where an inventory goes: below ``folder`` in a store, which in the bucket ``bucket`` lies below ``before``."""

    store: Store
    folder: str
    source: str
    bucket: str
    before: str

    @classmethod
    def of(cls, store: Store, source: str, config: str, bucket: str | None) -> _Place:
        called = quote(source, safe="")
        folder = f"{called.replace('.', '%2E') if called.strip('.') == '' else called}/{config}"
        in_s3 = _in_s3(store.url)
        if in_s3 is not None:
            return cls(store, folder, source, bucket or in_s3[0], in_s3[1])
        return cls(store, folder, source, bucket or PurePosixPath(store.url).name or "inventory", "")

    def key(self, name: str) -> str:
        """The key of an object there."""
        return f"{self.before}{name}"


def _write(
    place: _Place, files: Iterator[tuple[bytes, int]], snapshot: Snapshot, columns: Sequence[InventoryColumn], file_format: str
) -> Inventory:
    """The data files, then what names them, the checksum last."""
    told: list[dict[str, Any]] = []
    names: list[str] = []
    rows = 0
    for data, count in files:
        digest = hashlib.md5(data, usedforsecurity=False)
        name = f"{place.folder}/data/{uuid.UUID(bytes=digest.digest())}.{_ENDINGS[file_format]}"
        place.store.put(name, data)
        names.append(name)
        told.append({"key": place.key(name), "size": len(data), "MD5checksum": digest.hexdigest()})
        rows += count
    micros = snapshot.cut.newest_commit_time
    time = datetime_of(micros)
    manifest = {
        "sourceBucket": place.source,
        "destinationBucket": f"{_ARN}{place.bucket}",
        "version": _VERSION,
        "creationTimestamp": str(micros // 1_000),
        "fileFormat": file_format,
        "fileSchema": file_schema(columns, file_format),
        "files": told,
    }
    text = json.dumps(manifest, indent=2).encode()
    links = "".join(f"s3://{place.bucket}/{place.key(name)}\n" for name in names)
    place.store.put(f"{place.folder}/hive/dt={time:%Y-%m-%d-%H-%M}/symlink.txt", links.encode())
    folder = f"{place.folder}/{time:%Y-%m-%dT%H-%MZ}"
    place.store.put(f"{folder}/manifest.json", text)
    place.store.put(f"{folder}/manifest.checksum", hashlib.md5(text, usedforsecurity=False).hexdigest().encode())
    return Inventory(f"{folder}/manifest.json", tuple(names), rows, sum(each["size"] for each in told))


def _data_files(
    batches: Iterator[pa.RecordBatch], columns: Sequence[InventoryColumn], file_format: str, tell: Callable[[int], object]
) -> Iterator[tuple[bytes, int]]:
    """The bytes of each data file, and how many rows it has; at least one file, which may have none."""
    file, done, files = _DataFile(columns, file_format), 0, 0
    for batch in batches:
        file.write(batch)
        done += len(batch)
        tell(done)
        if file.is_full:
            yield file.closed()
            file, files = _DataFile(columns, file_format), files + 1
    if file.rows or not files:
        yield file.closed()


class _DataFile:
    """A data file that is being made."""

    def __init__(self, columns: Sequence[InventoryColumn], file_format: str) -> None:
        self.rows = 0
        self._data = io.BytesIO()
        self._zipped: gzip.GzipFile | None = None
        schema = parquet_schema(columns)
        if file_format == CSV:
            self._zipped = gzip.GzipFile("", "wb", 6, self._data, mtime=0)
            options = csv.WriteOptions(include_header=False, quoting_style="all_valid")
            texts = pa.schema([(name, pa.string()) for name in schema.names])
            self._writer: Any = csv.CSVWriter(self._zipped, texts, write_options=options)
        else:
            self._writer = parquet.ParquetWriter(self._data, schema, compression="snappy")

    @property
    def is_full(self) -> bool:
        """Whether the next rows go to another one."""
        return self.rows >= _ROWS or self._data.tell() >= _BYTES

    def write(self, rows: pa.RecordBatch) -> None:
        """More rows."""
        self.rows += len(rows)
        if self._zipped is not None:
            self._writer.write_batch(csv_texts(rows))
        else:
            self._writer.write_table(pa.Table.from_batches([rows]))

    def closed(self) -> tuple[bytes, int]:
        """Its bytes, and how many rows it has."""
        self._writer.close()
        if self._zipped is not None:
            self._zipped.close()
        return self._data.getvalue(), self.rows
