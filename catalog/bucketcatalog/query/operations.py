"""What the log says of events and rows do not hold: which operation a transaction was, and its metadata.

That stands in the transactions alone. A row knows which one it is of; each is read once, however many rows it has written or ended. Of one
that was pruned, or cannot be read, nobody knows any more, and the columns are null.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..cache import LruCache
from ..errors import UNREADABLE
from ..log.files import LogFiles
from ..model.arrays import one_chunk
from ..model.cuts import Head, Ref
from ..model.render import uuids_of_versions
from ..model.uuids import uuid_bytes
from ..store.base import Store
from ..where.conditions import Where

_MAP = pa.map_(pa.string(), pa.string())
_KEPT_BYTES = 4 << 20


class Said(NamedTuple):
    """What a transaction says of itself."""

    operation: str | None
    metadata: list[tuple[str, str]] | None


def _size(said: Said | None) -> int:
    return 64 + (0 if said is None else sum(len(key) + len(value) for key, value in said.metadata or ()))


@dataclass(frozen=True)
class Operations:
    """The columns ``<prefix>operation`` and ``<prefix>metadata``.

    They follow from three columns: ``writer`` and ``revision`` of a transaction, and ``event``, which names one of its events.
    """

    database: str
    prefix: str
    writer: str
    revision: str
    event: str
    _known: LruCache[Ref, Said | None] = field(default_factory=partial(LruCache, _KEPT_BYTES, _size), compare=False, repr=False)

    @classmethod
    def of_ends(cls, database: str) -> Operations:
        """Those of the events that ended tombstones."""
        return cls(database, "_end_", "_end_writer", "_end_revision", "_end_version")

    @classmethod
    def of_events(cls, database: str) -> Operations:
        """Those of events."""
        return cls(database, "_", "_writer", "_revision", "_stamp")

    @property
    def of(self) -> tuple[str, ...]:
        """See ``Lookup``."""
        return self.writer, self.revision, self.event

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """See ``Lookup``."""
        return pa.field(f"{self.prefix}operation", pa.string()), pa.field(f"{self.prefix}metadata", _MAP)

    def made(self, rows: pa.Table, store: Store) -> list[pa.Array]:
        """See ``Lookup``: a request for each transaction that was not met before."""
        uuids = uuids_of_versions(one_chunk(rows[self.event]))
        named = pa.table({"writer": rows[self.writer], "revision": rows[self.revision], "uuid": uuids})
        distinct = named.group_by(named.column_names).aggregate([])
        refs = [Ref(row["writer"], Head(row["revision"], uuid_bytes(row["uuid"]))) for row in distinct.to_pylist()]
        said = self._said(refs, store)
        at = pc.index_in(uuids, value_set=one_chunk(distinct["uuid"]))
        operations = pa.array([each and each.operation for each in said], pa.string())
        return [operations.take(at), pa.array([each and each.metadata for each in said], _MAP).take(at)]

    def table(self) -> None:
        """See ``Lookup``: there is none."""

    def below(self, where: Where) -> tuple[dict[str, Any], dict[str, Any]]:
        """See ``Lookup``: nothing can be said of other columns."""
        return {}, dict(where)

    def _said(self, refs: Sequence[Ref], store: Store) -> list[Said | None]:
        # What is kept may be less than what is asked for at once.
        found = {ref: self._known.get(ref) for ref in refs if ref in self._known}
        new = [ref for ref in refs if ref not in found]
        for ref, said in zip(new, LogFiles(store, self.database).map(_said_by, new), strict=True):
            self._known.put(ref, said)
            found[ref] = said
        return [found[ref] for ref in refs]


def _said_by(files: LogFiles, ref: Ref) -> Said | None:
    try:
        found = files.transaction(*ref)
    except UNREADABLE:
        return None
    return Said(found.operation or None, sorted(found.metadata.items()) or None)
