"""The data set of all benchmarks: objects with the fourteen columns of RFD 149.

Names have 40 characters and end in 8 random hex digits; they lie in a tree of 10,000 directories (100 of 100). Ids and md5 sums are
random, created is random to the microsecond within a year and in no relation to the order of names, modified equals created, and two
distinct sharks of six hold each object. Content lengths are spread evenly over the orders of magnitude up to 1 GiB. What RFD 149 leaves
empty as a rule (creator, headers, roles, properties) is empty. The same seed gives the same rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

DIRECTORIES = 10_000
NAME_LENGTH = 40
OWNER = bytes.fromhex("6f1a5d1e8c5b4d0c9f2e7a3b4c5d6e7f")
BUCKET = bytes.fromhex("0d4f7c2ab1e34f5d8a9b0c1d2e3f4a5b")
COLUMNS = (
    "id",
    "name",
    "owner",
    "bucket_id",
    "created",
    "modified",
    "creator",
    "content_length",
    "content_md5",
    "content_type",
    "headers",
    "roles",
    "sharks",
    "properties",
)
_TYPES = ("application/octet-stream", "application/json", "image/jpeg", "text/plain", "video/mp4", "application/x-parquet")
_SHARKS = ("us-east-1:1.stor", "us-east-1:2.stor", "us-east-2:3.stor", "us-east-2:4.stor", "us-east-3:5.stor", "us-east-3:6.stor")
_FIRST_CREATED = 1_735_689_600_000_000
_YEAR = 365 * 86_400 * 1_000_000
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_ORDERS_OF_TWO = 30
Bytes = npt.NDArray[np.uint8]


def objects(count: int, *, seed: int = 1) -> pa.Table:
    """``count`` new objects in order of creation, not of names; another seed gives other names. Uuids are 16 bytes."""
    random = np.random.default_rng(seed)
    created = _times(np.sort(random.integers(0, _YEAR, count)))
    columns = {
        "id": _fixed(random.integers(0, 256, (count, 16), dtype=np.uint8)),
        "name": _names(random, count),
        "owner": _repeated(OWNER, count),
        "bucket_id": _repeated(BUCKET, count),
        "created": created,
        "modified": created,
        "creator": pa.nulls(count, pa.binary(16)),
        "content_length": pa.array(np.exp2(random.uniform(0, _ORDERS_OF_TWO, count)).astype(np.int64)),
        "content_md5": _fixed(random.integers(0, 256, (count, 16), dtype=np.uint8)).cast(pa.binary()),
        "content_type": pa.array(_TYPES).take(pa.array(random.integers(0, len(_TYPES), count))),
        "headers": pa.nulls(count, pa.map_(pa.string(), pa.string())),
        "roles": pa.nulls(count, pa.list_(pa.binary(16))),
        "sharks": _sharks(random, count),
        "properties": pa.nulls(count, pa.string()),
    }
    return pa.table(columns)


def upserts(existing: pa.Table, count: int, *, seed: int = 2) -> pa.Table:
    """``count`` objects, half of them under names that exist, spread evenly over all names, half under new ones."""
    random = np.random.default_rng(seed)
    rows = objects(count, seed=seed)
    taken = pa.array(np.sort(random.choice(len(existing), count // 2, replace=False)))
    names = pa.concat_arrays([existing["name"].combine_chunks().take(taken), rows["name"].combine_chunks()[count // 2 :]])
    return rows.set_column(rows.column_names.index("name"), "name", names)


def as_text(rows: pa.Table) -> pa.Table:
    """The rows with uuids as text, as the catalog shows them."""
    for name in ("id", "owner", "bucket_id"):
        rows = rows.set_column(rows.column_names.index(name), name, uuid_text(rows[name].combine_chunks()))
    nulls = {"creator": pa.string(), "roles": pa.list_(pa.string())}
    for name, kind in nulls.items():
        rows = rows.set_column(rows.column_names.index(name), name, pa.nulls(len(rows), kind))
    return rows


def uuid_text(values: pa.FixedSizeBinaryArray) -> pa.Array:
    """Uuids of 16 bytes as their 36 characters."""
    raw = np.frombuffer(values.buffers()[1], dtype=np.uint8, offset=16 * values.offset, count=16 * len(values))
    digits = _digits(raw.reshape(-1, 16))
    text = np.full((len(values), 36), ord("-"), dtype=np.uint8)
    for start, stop, at in ((0, 8, 0), (8, 12, 9), (12, 16, 14), (16, 20, 19), (20, 32, 24)):
        text[:, at : at + stop - start] = digits[:, start:stop]
    return _strings(text)


def _names(random: np.random.Generator, count: int) -> pa.Array:
    """``projects/NN/datasets/NN/picture-xxxxxxxx``: all of 40 characters, no two alike."""
    directory = random.integers(0, DIRECTORIES, count)
    text = np.empty((count, NAME_LENGTH), dtype=np.uint8)
    text[:] = np.frombuffer(b"projects/00/datasets/00/picture-xxxxxxxx", dtype=np.uint8)
    for at, number in ((9, directory // 100), (21, directory % 100)):
        text[:, at] += (number // 10).astype(np.uint8)
        text[:, at + 1] += (number % 10).astype(np.uint8)
    suffix = _distinct(random, directory, count)
    text[:, NAME_LENGTH - 8 :] = _digits(suffix.astype(">u4").view(np.uint8).reshape(count, 4))
    return _strings(text)


def _distinct(random: np.random.Generator, directory: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Random numbers of 32 bits, drawn again where a directory has one twice."""
    suffix = random.integers(0, 1 << 32, count)
    while True:
        _, first = np.unique(directory << 32 | suffix, return_index=True)
        if len(first) == count:
            return suffix
        again = np.ones(count, dtype=bool)
        again[first] = False
        suffix[again] = random.integers(0, 1 << 32, int(again.sum()))


def _digits(raw: Bytes) -> Bytes:
    digits = np.empty((raw.shape[0], 2 * raw.shape[1]), dtype=np.uint8)
    digits[:, 0::2], digits[:, 1::2] = _HEX[raw >> 4], _HEX[raw & 15]
    return digits


def _strings(text: Bytes) -> pa.Array:
    count, width = text.shape
    offsets = np.arange(0, (count + 1) * width, width, dtype=np.int32) if width else np.zeros(count + 1, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text)))


def _fixed(raw: Bytes) -> pa.Array:
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(raw.shape[1]), raw.shape[0], [None, pa.py_buffer(raw)])


def _repeated(value: bytes, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.binary(16)), count)


def _times(offsets: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array(_FIRST_CREATED + offsets).cast(pa.timestamp("us", tz="UTC"))


def _sharks(random: np.random.Generator, count: int) -> pa.Array:
    first = random.integers(0, len(_SHARKS), count)
    second = (first + random.integers(1, len(_SHARKS), count)) % len(_SHARKS)
    both: Any = np.stack([first, second], axis=1).reshape(-1)
    offsets = pa.array(np.arange(0, 2 * count + 1, 2, dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(_SHARKS).take(pa.array(both)))
