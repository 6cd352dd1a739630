"""Ids that are derived, not drawn: a bucket's id is a version 5 uuid of its key and of the id of its previous incarnation.

Two writers that create the same bucket at the same time so make the same id, and no object is orphaned by the race. Putting a bucket
that is live keeps its id; a bucket that was deleted and is created again is another incarnation and gets another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..clock import uuid5
from ..model.arrays import one_chunk
from ..model.coerce import given_keys
from ..model.events import VersionName, version_list
from ..model.facts import NO_STAMP, Facts, Kind
from ..model.keys import encode_keys
from ..model.tables import Column, Default, Table
from ..model.uuids import uuid_bytes, uuid_text
from ..query.snapshot import Snapshot
from ..state.plan import Part
from .given import Given

NAMESPACE = uuid5(bytes.fromhex("6ba7b8119dad11d180b400c04fd430c8"), b"urn:bucketcatalog:incarnation:v1")
"""In the namespace for URLs (RFC 9562, 6.6)."""


class Incarnations:
    """Fills the derived column of a table's rows in one transaction; looks at the catalog only where a row leaves it unset.

    It follows the transaction's own events: a bucket that the transaction has ended before is another incarnation when it is put again.
    """

    def __init__(self, table: Table, look: Callable[[], Snapshot]) -> None:
        self._table = table
        self._look = look
        self._column: Column | None = next((c for c in table.columns if c.default is Default.INCARNATION), None)
        self._own: dict[bytes, tuple[str | None, bool]] = {}
        self._given: dict[bytes, set[str]] = {}
        self._ended: set[VersionName] = set()

    def fill(self, given: Given) -> Given:
        """Rows that are put, in their order, with the ids that they lack."""
        if self._column is None:
            return given
        return given.filled(self._column, self._filled(given.key_list, given.values(self._column)))

    def _filled(self, keys: Sequence[bytes], given: Sequence[str | None]) -> list[str]:
        """The ids of rows that are put in this order; each may be derived from what the one before left of its key."""
        lacking = [key for key, id_ in zip(keys, given, strict=True) if id_ is None]
        derived = dict(zip(lacking, self.next_ids(pa.array(lacking, pa.binary())), strict=True)) if lacking else {}
        filled = []
        for key, id_ in zip(keys, given, strict=True):
            own, is_live = self._own.get(key, (None, False))
            filled.append(id_ if id_ is not None else own if is_live and own is not None else derived[key])
            self._own[key] = (filled[-1], True)
            self._given.setdefault(key, set()).add(filled[-1])
        return filled

    def end(self, given: Given) -> None:
        """The rows' keys are deleted, or the versions of them that they mean."""
        if self._column is None:
            return
        for key, name in zip(given.key_list, given.version_list, strict=True):
            if name is None:
                self._own[key] = (self._own.get(key, (None, False))[0], False)
            else:
                self._ended.add(name)

    def next_ids(self, keys: pa.Array) -> list[str]:
        """The ids of the live or next incarnations under these keys."""
        assert self._column is not None
        state = self._look().find_of(self._table, keys, Part.EVERYTHING)
        known = _by_key(state, self._table, self._column, self._ended)
        ids = []
        for key in keys.to_pylist():
            id_, is_live, had = known.get(key, (None, False, frozenset()))
            if key in self._own:
                own, is_live = self._own[key]
                id_ = own if own is not None else id_
            ids.append(id_ if is_live and id_ is not None else _next_id(key, id_, had | self._given.get(key, set())))
        return ids


def ids_of(snapshot: Snapshot, table: str, keys: Sequence[Mapping[str, Any]]) -> list[str]:
    """The ids that rows get which are put under these keys after the snapshot, and do not say one themselves."""
    definition = snapshot.table(table)
    return Incarnations(definition, lambda: snapshot).next_ids(pa.array(given_keys(definition, keys), pa.binary()))


def _next_id(key: bytes, previous: str | None, had: Collection[str]) -> str:
    """The id of the incarnation after ``previous``, which no version of the key has had: after a restore the previous one may be old."""
    id_ = uuid5(NAMESPACE, key, uuid_bytes(previous or ""))
    while uuid_text(id_) in had:
        id_ = uuid5(NAMESPACE, key, id_)
    return uuid_text(id_)


def _by_key(
    state: Facts, table: Table, column: Column, ended: Collection[VersionName]
) -> dict[bytes, tuple[str | None, bool, frozenset[str]]]:
    """For each key the id of its latest version, whether that is live and not among ``ended``, and the ids of all its versions."""
    if not len(state) or column.field_name not in state.rows.column_names:
        return {}
    versions = np.flatnonzero(state.numbers("_kind") == Kind.VERSION)
    order = versions[np.argsort(state.stamps()[versions], kind="stable")]
    chosen = state.take(pa.array(order))
    keys = one_chunk(encode_keys(table, chosen.rows)).to_pylist()
    ids = chosen.stored_column(column).to_pylist()
    names = version_list(chosen.own_names())
    live = (chosen.stamps("end") == NO_STAMP).tolist()
    had: dict[bytes, set[str]] = {}
    for key, id_ in zip(keys, ids, strict=True):
        had.setdefault(key, set()).update(() if id_ is None else (id_,))
    found = zip(keys, ids, live, names, strict=True)
    return {key: (id_, is_live and name not in ended, frozenset(had[key])) for key, id_, is_live, name in found}
