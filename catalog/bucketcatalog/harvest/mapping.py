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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..clock import uuid5
from ..errors import InvalidName, InvalidOption
from ..format.definitions import core_tables
from ..model.events import EventKind
from ..model.keys import KeyRange, encode_array, prefix_range, without_leading
from ..model.names import owner_id
from ..model.render import version_names
from ..model.tables import UUID_BYTES, Table
from ..model.uuids import to_text, uuid_bytes, uuid_text
from ..query.snapshot import Snapshot
from ..wording import either
from ..write.derived_ids import Incarnations
from ..write.intake import checked
from .ranges import ALL_NAMES, NameRange
from .source import Source

OBJECTS = core_tables()["objects"]
OBJECT_VERSIONS = core_tables()["object_versions"]
BUCKETS = core_tables()["buckets"]
_BUCKETS_KEY = ("owner", "bucket_id")


@dataclass(frozen=True, slots=True)
class Bucket:
    """The bucket that a source's entries go to.

    ``row`` is what has to be put first, or replaces the row of a bucket that ``is_known``; None where the catalog has it so already.
    ``versioning`` is what the catalog says so far.
    """

    owner: str
    name: str
    id: str
    source: str
    row: dict[str, Any] | None
    is_known: bool = False
    versioning: str | None = None

    @property
    def keys(self) -> KeyRange:
        """The keys of the bucket's objects."""
        return keys_of(self, OBJECTS)


def keys_of(bucket: Bucket, table: Table, within: NameRange = ALL_NAMES) -> KeyRange:
    """The keys of a bucket's rows with names in a range, in a table whose key begins with owner and bucket, and then the name."""
    whole, place = prefix_range(table, [bucket.owner, bucket.id]), [bucket.owner, bucket.id]
    behind = prefix_range(table, [*place, within.after]).stop if within.after else whole.start
    return KeyRange(behind or whole.start, whole.stop if within.upto is None else prefix_range(table, [*place, within.upto]).stop)


def names_upto(table: Table, name: bytes) -> bytes:
    """What comes, in the order of ``names_of``, right after all that a bucket has of the names up to this one."""
    stop = prefix_range(without_leading(table, len(_BUCKETS_KEY)), [name]).stop
    assert stop is not None  # a name ends with what is not the last of all bytes
    return stop


def owner_of(source: Source, owner: str | uuid.UUID | None) -> str:
    """The bucket's owner as text: the one given, else the authority's. ``InvalidOption`` for what is no uuid."""
    if owner is None:
        return uuid_text(uuid5(uuid.NAMESPACE_DNS.bytes, source.authority.encode()))
    return owner_id(owner)


def find_bucket(
    snapshot: Snapshot, source: Source, name: str | None, owner: str | uuid.UUID | None, more: Mapping[str, Any] | None = None
) -> Bucket:
    """The source's bucket as the snapshot has it, or as it is to be. ``more`` are further columns that the source knows.

    ``InvalidOption`` where a bucket of that name is not this source's: its objects would all look deleted.
    """
    key = {"owner": owner_of(source, owner), "name": source.name if name is None else _checked(name)}
    live = snapshot.get("buckets", **key)
    wanted = {**key, "external": True, "source": source.url, **(more or {})}
    if live is None:
        filled = Incarnations(BUCKETS, lambda: snapshot).fill(checked(BUCKETS, EventKind.PUT, wanted))
        id_: str = filled.values(BUCKETS.by_name["id"])[0]
        return Bucket(key["owner"], key["name"], id_, source.url, {**wanted, "id": id_})
    if not live["external"] or not _same_place(live["source"], source.url):
        holds = f"an inventory of {live['source']!r}" if live["external"] else "objects of its own"
        raise InvalidOption(
            f"The bucket {key['name']!r} holds {holds}, not an inventory of {source.url!r}.",
            next_step=f"Name another bucket with {either('bucket=', '--bucket')}.",
        )
    row = {**live, **wanted} if any(live[name] != value for name, value in wanted.items()) else None
    return Bucket(key["owner"], key["name"], live["id"], source.url, row, is_known=True, versioning=live["versioning"])


def _checked(name: str) -> str:
    try:
        length = len(name.encode()) if isinstance(name, str) else 0
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


def names_of(table: Table, columns: Mapping[str, pa.Array] | pa.RecordBatch) -> pa.Array:
    """What tells a bucket's rows apart, as bytes in the order of their keys: the name, and in ``object_versions`` the version too."""
    last = [table.by_name[name] for name in table.key if name not in _BUCKETS_KEY]
    parts = [encode_array(column, columns[column.name], last=column is last[-1]) for column in last]
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, b"")


def object_ids(bucket: Bucket, entries: pa.RecordBatch) -> pa.Array:
    """The ids of entries."""
    names = entries.column("name").cast(pa.binary())
    identities = pc.binary_join_element_wise(uuid_bytes(bucket.id), names, b"\x00", entries.column("identity"), b"")
    sha1 = hashlib.sha1
    digests = b"".join([sha1(entry, usedforsecurity=False).digest() for entry in identities.to_pylist()])
    ids = np.frombuffer(digests, np.uint8).reshape(len(entries), 20)[:, : UUID_BYTES.byte_width].copy()
    ids[:, 6] = ids[:, 6] & 0x0F | 0x50
    ids[:, 8] = ids[:, 8] & 0x3F | 0x80
    return to_text(pa.FixedSizeBinaryArray.from_buffers(UUID_BYTES, len(entries), [None, pa.py_buffer(ids)]))


def entry_rows(bucket: Bucket, entries: pa.RecordBatch, ids: pa.Array) -> pa.Table:
    """Entries as rows of their table."""
    columns = {name: entries.column(name) for name in entries.schema.names if name != "identity"}
    return pa.table({**_of_bucket(bucket, len(entries)), "id": ids, "created": columns["modified"], **columns})


def updated_rows(table: Table, entries: pa.RecordBatch, known: pa.RecordBatch) -> pa.Table:
    """The rows that the catalog has of these entries, with the entries' columns in place of its own, each naming its version."""
    own = set(entries.schema.names)
    columns = {c.name: entries.column(c.name) if c.name in own else known.column(c.name) for c in table.columns}
    return pa.table({**columns, "_version": version_names(known.column("uuid"), known.column("sequence"))})


def deleted_keys(bucket: Bucket, names: pa.Array, versions: pa.Array) -> pa.Table:
    """The keys of objects, each with the version that is to end."""
    return pa.table({**_of_bucket(bucket, len(names)), "name": names.cast(pa.string()), "_version": versions})


def lost_keys(table: Table, lost: pa.RecordBatch, versions: pa.Array) -> pa.Table:
    """The keys of rows of the catalog, each with the version that is to end."""
    return pa.table({**{name: lost.column(name) for name in table.key}, "_version": versions})


def _of_bucket(bucket: Bucket, count: int) -> dict[str, pa.Array]:
    return {"owner": pa.repeat(bucket.owner, count), "bucket_id": pa.repeat(bucket.id, count)}
