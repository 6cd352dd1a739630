"""Objects and versions of objects as the columns of an S3 Inventory, in its order and its words.

The columns, their names in CSV and in Parquet, and what stands in them are those of "Amazon S3 Inventory list" (Amazon S3 User Guide,
docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory.html), the forms of ``fileSchema`` those of "Locating your inventory list"
(storage-inventory-location.html there). An inventory has the optional columns that it was configured with: of those that a catalog cannot
know (access tier, bucket key, access control list, expiration by a lifecycle) ours was configured without. What it does not know of one
object is null, and an empty field of CSV.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import hexadecimal

CSV, PARQUET = "CSV", "Parquet"
_TEXT, _YES, _NUMBER, _TIME = pa.string(), pa.bool_(), pa.int64(), pa.timestamp("ms", "UTC")
_IN_SCHEMAS = {_TEXT: "binary {} (UTF8)", _YES: "boolean {}", _NUMBER: "int64 {}", _TIME: "int64 {} (TIMESTAMP_MILLIS)"}
_ENCRYPTIONS = {"AES256": "SSE-S3", "aws:kms": "SSE-KMS", "aws:kms:dsse": "DSSE-KMS"}
"""What S3 says of an object, and what its inventories call that."""
_MD5 = "^[0-9a-f]{32}$"
_UNRESERVED = np.zeros(256, np.bool_)
_UNRESERVED[list(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~/")] = True
_DIGITS = np.frombuffer(b"0123456789ABCDEF", np.uint8)


class InventoryColumn(NamedTuple):
    """A column of inventories: what CSV and Parquet call it, its type, of which columns of ours it is made, and how, if not as it is."""

    in_csv: str
    name: str
    kind: pa.DataType
    of: tuple[str, ...]
    made: Callable[..., pa.Array] | None = None


def _version_id(ids: pa.Array) -> pa.Array:
    """The version that an object has of a time without versions is called null, and has no id in an inventory."""
    return pc.if_else(pc.equal(ids, "null"), pa.scalar(None, _TEXT), ids)


def _etag(etags: pa.Array, md5: pa.Array) -> pa.Array:
    """Where nobody told an etag, what S3 would make it: the MD5 of the content."""
    return pc.coalesce(etags, hexadecimal(md5))


def _is_multipart(parts: pa.Array, etags: pa.Array) -> pa.Array:
    """An etag that is the MD5 of the content was not put in parts; what other stores call an etag says neither."""
    plain = pc.if_else(pc.fill_null(pc.match_substring_regex(etags, _MD5), False), False, pa.scalar(None, _YES))
    return pc.if_else(parts.is_valid(), True, plain)


def _encryption(told: pa.Array) -> pa.Array:
    for said, called in _ENCRYPTIONS.items():
        told = pc.if_else(pc.equal(told, said), called, told)
    return told


def _hold(holds: pa.Array) -> pa.Array:
    return pc.if_else(holds, "On", "Off")


_OF_ALL = (
    InventoryColumn("Bucket", "bucket", _TEXT, ()),
    InventoryColumn("Key", "key", _TEXT, ("name",)),
    InventoryColumn("VersionId", "version_id", _TEXT, ("version_id",), _version_id),
    InventoryColumn("IsLatest", "is_latest", _YES, ("is_latest",)),
    InventoryColumn("IsDeleteMarker", "is_delete_marker", _YES, ("is_delete_marker",)),
    InventoryColumn("Size", "size", _NUMBER, ("content_length",)),
    InventoryColumn("LastModifiedDate", "last_modified_date", _TIME, ("modified",)),
    InventoryColumn("ETag", "e_tag", _TEXT, ("etag", "content_md5"), _etag),
    InventoryColumn("StorageClass", "storage_class", _TEXT, ("storage_class",)),
    InventoryColumn("IsMultipartUploaded", "is_multipart_uploaded", _YES, ("parts", "etag"), _is_multipart),
    InventoryColumn("ReplicationStatus", "replication_status", _TEXT, ("replication_status",)),
    InventoryColumn("EncryptionStatus", "encryption_status", _TEXT, ("encryption",), _encryption),
    InventoryColumn("ObjectLockRetainUntilDate", "object_lock_retain_until_date", _TIME, ("lock_retain_until",)),
    InventoryColumn("ObjectLockMode", "object_lock_mode", _TEXT, ("lock_mode",)),
    InventoryColumn("ObjectLockLegalHoldStatus", "object_lock_legal_hold_status", _TEXT, ("legal_hold",), _hold),
    InventoryColumn("ChecksumAlgorithm", "checksum_algorithm", _TEXT, ("checksum_algorithm",)),
    InventoryColumn("ObjectOwner", "object_owner", _TEXT, ("owner",)),
)
_OF_VERSIONS = ("version_id", "is_latest", "is_delete_marker")


def inventory_columns(*, versions: bool) -> list[InventoryColumn]:
    """The columns of an inventory of all versions, or of the current ones."""
    return [column for column in _OF_ALL if versions or column.name not in _OF_VERSIONS]


def scanned(columns: Sequence[InventoryColumn]) -> list[str]:
    """The columns of ours that these are made of."""
    return sorted({name for column in columns for name in column.of})


def inventory_rows(rows: pa.RecordBatch, columns: Sequence[InventoryColumn], bucket: str, folder: str) -> pa.RecordBatch:
    """Rows of ours as those of an inventory of ``bucket``, where the keys are the names below ``folder``."""
    made = []
    for column in columns:
        values = [rows.column(name) for name in column.of]
        if column.name == "bucket":
            found: pa.Array = pa.repeat(pa.scalar(bucket), len(rows))
        elif column.name == "key":
            found = pc.binary_join_element_wise(folder, *values, "")
        else:
            found = column.made(*values) if column.made is not None else values[0]
        made.append(found.cast(column.kind, safe=False))
    return pa.RecordBatch.from_arrays(made, schema=parquet_schema(columns))


def parquet_schema(columns: Sequence[InventoryColumn]) -> pa.Schema:
    """The schema of data files in Parquet."""
    return pa.schema([pa.field(column.name, column.kind, column.name not in ("bucket", "key")) for column in columns])


def file_schema(columns: Sequence[InventoryColumn], file_format: str) -> str:
    """What a manifest says of the columns of its files."""
    if file_format == CSV:
        return ", ".join(column.in_csv for column in columns)
    fields = [
        f"{'optional' if field.nullable else 'required'} {_IN_SCHEMAS[field.type].format(field.name)};"
        for field in parquet_schema(columns)
    ]
    return f"message s3.inventory {{ {' '.join(fields)} }}"


def csv_texts(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of an inventory as the text of CSV: keys as in URLs, times to the millisecond, nothing where nothing is known."""
    texts = []
    for field, values in zip(rows.schema, rows.columns, strict=True):
        found = url_encoded(values) if field.name == "key" else values.cast(_TEXT)
        if pa.types.is_timestamp(field.type):
            found = pc.replace_substring(found, " ", "T", max_replacements=1)
        texts.append(pc.fill_null(found, ""))
    return pa.RecordBatch.from_arrays(texts, rows.schema.names)


def url_encoded(texts: pa.Array) -> pa.Array:
    """Text without nulls as in URLs, with ``/`` as it is: the same whether who decodes it takes ``+`` for a blank or not."""
    raw = texts.cast(pa.binary())
    offsets = np.frombuffer(raw.buffers()[1], np.int32)[raw.offset : raw.offset + len(raw) + 1]
    data = np.frombuffer(raw.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    plain = _UNRESERVED[data]
    starts = np.concatenate([[0], np.cumsum(np.where(plain, 1, 3))]).astype(np.int32)
    encoded = np.empty(starts[-1], np.uint8)
    encoded[starts[:-1]] = np.where(plain, data, ord("%"))
    at, escaped = starts[:-1][~plain], data[~plain]
    encoded[at + 1], encoded[at + 2] = _DIGITS[escaped >> 4], _DIGITS[escaped & 15]
    return pa.StringArray.from_buffers(len(raw), pa.py_buffer(starts[offsets - offsets[0]]), pa.py_buffer(encoded))
