"""How a source's entries become rows of the catalog.

One bucket a source, named by the source or the user, external, owned by the version 5 uuid of the source's authority (in the namespace
for DNS names) unless the user says who. An object's name is the path below the source and its id the version 5 uuid, in the bucket's id
as the namespace, of its name, a NUL and its identity: the same file always has the same id, whoever harvests it and however often. Both
``created`` and ``modified`` are the source's time of last modification: a version of an object is made at once and never changed, as in
object stores, and no portable call tells when a file came to be.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..clock import uuid5
from ..codec.descriptors import core_tables
from ..errors import InvalidName, InvalidOption
from ..incarnations import Incarnations
from ..keys import KeyRange, prefix_range
from ..snapshot import Snapshot
from ..surface import storage_row
from ..tables import UUID_STORAGE
from .source import Source

OBJECTS = core_tables()["objects"]
BUCKETS = core_tables()["buckets"]
_UUID_BYTES = 16


@dataclass(frozen=True, slots=True)
class Bucket:
    """The bucket that a source's entries go to. ``row`` is what has to be put first, None where the catalog has it already."""

    owner: str
    name: str
    id: bytes
    source: str
    row: dict[str, Any] | None

    @property
    def keys(self) -> KeyRange:
        """The keys of the bucket's objects."""
        return prefix_range(OBJECTS, [uuid.UUID(self.owner).bytes, self.id])


def owner_of(source: Source, owner: str | None) -> str:
    """The bucket's owner as text: the one given, else the authority's. ``InvalidOption`` for what is no uuid."""
    if owner is None:
        return str(uuid.UUID(bytes=uuid5(uuid.NAMESPACE_DNS.bytes, source.authority.encode())))
    try:
        return str(uuid.UUID(owner))
    except ValueError:
        raise InvalidOption(f"The owner {owner!r} is no uuid.", next_step="Give one, or leave it out.") from None


def find_bucket(snapshot: Snapshot, source: Source, name: str | None, owner: str | None) -> Bucket:
    """The source's bucket as the snapshot has it, or as it is to be.

    ``InvalidOption`` where a bucket of that name is not this source's: its objects would all look deleted.
    """
    key = {"owner": owner_of(source, owner), "name": source.name if name is None else _checked(name)}
    live = snapshot.get("buckets", **key)
    wanted = {**key, "external": True, "source": source.url}
    if live is None:
        stored = storage_row(BUCKETS, wanted)
        Incarnations(BUCKETS, lambda: snapshot).fill([stored])
        id_: bytes = stored[BUCKETS.by_name["id"].field_name]
        return Bucket(**key, id=id_, source=source.url, row={**wanted, "id": str(uuid.UUID(bytes=id_))})
    if not live["external"] or not _same_place(live["source"], source.url):
        holds = f"an inventory of {live['source']!r}" if live["external"] else "objects of its own"
        raise InvalidOption(
            f"The bucket {key['name']!r} holds {holds}, not an inventory of {source.url!r}.",
            next_step="Name another bucket with --bucket.",
        )
    row = {**live, **wanted} if live["source"] != source.url else None
    return Bucket(**key, id=uuid.UUID(live["id"]).bytes, source=source.url, row=row)


def _checked(name: str) -> str:
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        length = 0
    if not 0 < length <= BUCKETS.by_name["name"].max_bytes:
        raise InvalidName(f"{name!r} cannot be the name of a bucket.", next_step="Give 1 to 1024 bytes of UTF-8.")
    return name


def _same_place(known: str | None, url: str) -> bool:
    """Whether two urls of sources name the same place; a directory stays the same where its machine is called otherwise."""
    if known is None or known == url:
        return known is not None
    return known.startswith("file://") and url.startswith("file://") and known[7:].partition("/")[2] == url[7:].partition("/")[2]


def object_ids(bucket: Bucket, entries: pa.RecordBatch) -> pa.Array:
    """The ids of entries, as 16 bytes."""
    names = entries.column("name").cast(pa.binary())
    told = pc.binary_join_element_wise(bucket.id, names, b"\x00", entries.column("identity"), b"")
    sha1 = hashlib.sha1
    digests = b"".join([sha1(entry, usedforsecurity=False).digest() for entry in told.to_pylist()])
    ids = np.frombuffer(digests, np.uint8).reshape(len(entries), 20)[:, :_UUID_BYTES].copy()
    ids[:, 6] = ids[:, 6] & 0x0F | 0x50
    ids[:, 8] = ids[:, 8] & 0x3F | 0x80
    return pa.FixedSizeBinaryArray.from_buffers(UUID_STORAGE, len(entries), [None, pa.py_buffer(ids)])


def object_rows(bucket: Bucket, entries: pa.RecordBatch, ids: pa.Array) -> pa.Table:
    """Entries as rows of the table ``objects``."""
    owner = pa.repeat(pa.scalar(uuid.UUID(bucket.owner).bytes, UUID_STORAGE), len(entries))
    bucket_ids = pa.repeat(pa.scalar(bucket.id, UUID_STORAGE), len(entries))
    columns = {name: entries.column(name) for name in entries.schema.names if name != "identity"}
    return pa.table({"owner": owner, "bucket_id": bucket_ids, "id": ids, "created": columns["modified"], **columns})


def deleted_keys(bucket: Bucket, names: pa.Array, versions: pa.Array) -> pa.Table:
    """The keys of objects, each with the version that is to end."""
    owner = pa.repeat(pa.scalar(uuid.UUID(bucket.owner).bytes, UUID_STORAGE), len(names))
    bucket_ids = pa.repeat(pa.scalar(bucket.id, UUID_STORAGE), len(names))
    return pa.table({"owner": owner, "bucket_id": bucket_ids, "name": names.cast(pa.string()), "_version": versions})
