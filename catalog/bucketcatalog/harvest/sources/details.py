"""What no listing shows: headers, user metadata and tags of single objects, asked for one by one, several at a time.

Headers belong to a version and never change, so they are asked for once: of what is new, and of what the catalog has without a content
type, which every object has. Without a version id the same bytes put again look like the same version with another time, so then they are
asked for again. Tags do change, so they are asked for each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...parallel import in_order
from ...store.inventory import Inventory
from ..mapping import OBJECTS

_HEADERS = ("CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage", "Expires")
_HYPHENS = {name: "".join(f"-{c}" if c.isupper() else c for c in name).lstrip("-").lower() for name in _HEADERS}
_CHECKSUMS = ("CRC64NVME", "CRC32C", "CRC32", "SHA256", "SHA1")
_TIME = "lock_retain_until"
HEAD_COLUMNS = (
    "content_type",
    "headers",
    "user_metadata",
    "encryption",
    "checksum",
    "replication_status",
    "lock_mode",
    _TIME,
    "legal_hold",
)
Answer = Mapping[str, Any] | None
Ask = Callable[[str, str | None, str | None], Answer]


class Details:
    """Asks for headers (``metadata``) and ``tags`` of entries, and adds them as columns."""

    def __init__(self, inventory: Inventory, *, metadata: bool, tags: bool) -> None:
        self._inventory = inventory
        self._asked: list[tuple[tuple[str, ...], Ask, bool]] = []
        if metadata:
            self._asked.append((HEAD_COLUMNS, self._head, False))
        if tags:
            self._asked.append((("tags",), self._tags, True))
        self._answers: dict[tuple[str, str, str | None], Answer] = {}

    def forget(self) -> None:
        """Let go of answers: they are kept for the rows of another table about the same entries."""
        self._answers.clear()

    def __call__(self, entries: pa.RecordBatch, known: pa.RecordBatch | None) -> pa.RecordBatch:
        """See ``compare.Look``. What cannot be asked for, because it has gone or is encrypted with the client's key, stays as it is."""
        for columns, ask, each_time in self._asked:
            wanted = _wanted(entries, known, each_time=each_time)
            rows = entries.take(pa.array(wanted)).select(["name", "version_id", "etag"]).to_pylist()
            answers = list(in_order(partial(self._answer, columns[0], ask), rows, threads=self._inventory.concurrency))
            said = [at for at, answer in enumerate(answers) if answer is not None]
            places = np.arange(len(entries))
            places[wanted[said]] = len(entries) + np.arange(len(said))
            for name in columns:
                kind = OBJECTS.by_name[name].storage_type
                before = pa.nulls(len(entries), kind) if known is None else known.column(name).cast(kind)
                values = _values(name, [(answers[at] or {}).get(name) for at in said], kind)
                entries = entries.append_column(name, pa.concat_arrays([before, values]).take(pa.array(places)))
        return entries

    def _answer(self, what: str, ask: Ask, row: Mapping[str, Any]) -> Answer:
        key = (what, row["name"], row["version_id"])
        if key not in self._answers:
            self._answers[key] = ask(self._inventory.folder + row["name"], row["version_id"], row["etag"])
        return self._answers[key]

    def _head(self, key: str, version: str | None, etag: str | None) -> Answer:
        found = self._inventory.head(key, version)
        if found is None or str(found.get("ETag") or etag).strip('"') != str(etag):
            return None  # it was replaced since it was listed, and the next harvest will see by what
        return head_columns(found)

    def _tags(self, key: str, version: str | None, etag: str | None) -> Answer:
        found = self._inventory.tags(key, version)
        return None if found is None else {"tags": found}


def head_columns(found: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that an object's headers fill."""
    checksums = [found[f"Checksum{kind}"] for kind in _CHECKSUMS if found.get(f"Checksum{kind}")]
    hold = found.get("ObjectLockLegalHoldStatus")
    return {
        "content_type": found.get("ContentType"),
        "headers": {_HYPHENS[name]: str(found[name]) for name in _HEADERS if found.get(name)},
        "user_metadata": found.get("Metadata"),
        "encryption": found.get("ServerSideEncryption"),
        "checksum": checksums[0] if checksums else None,
        "replication_status": found.get("ReplicationStatus"),
        "lock_mode": found.get("ObjectLockMode"),
        _TIME: found.get("ObjectLockRetainUntilDate"),
        "legal_hold": None if hold is None else hold == "ON",
    }


def _wanted(entries: pa.RecordBatch, known: pa.RecordBatch | None, *, each_time: bool) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Positions of the entries that are to be asked for; delete markers have nothing."""
    wanted = np.ones(len(entries), bool)
    if "is_delete_marker" in entries.schema.names:
        wanted &= ~np.asarray(entries.column("is_delete_marker"))
    if known is not None and not each_time:
        modified = entries.column("modified")
        put_again = pc.and_(
            entries.column("version_id").is_null(), pc.not_equal(modified, known.column("modified").cast(modified.type))
        )
        wanted &= np.asarray(pc.or_(known.column("content_type").is_null(), pc.fill_null(put_again, False)))
    return np.flatnonzero(wanted)


def _values(name: str, found: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_map(kind):
        return pa.array([sorted(value.items()) if value else None for value in found], kind)
    if name == _TIME:
        return pc.cast(pa.array(found, pa.string()), kind)
    return pa.array(found, kind)
