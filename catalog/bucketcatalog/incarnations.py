"""Ids that are derived, not drawn: a bucket's id is a version 5 uuid of its key and of the id of its previous incarnation.

Two writers that create the same bucket at the same time so make the same id, and no object is orphaned by the race. Putting a bucket
that is live keeps its id; a bucket that was deleted and is created again is another incarnation and gets another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .clock import uuid5
from .facts import NO_STAMP, Facts, Kind, one_chunk
from .keys import encode_key, encode_keys
from .reading import Part
from .snapshot import Snapshot
from .tables import UUID_STORAGE, Column, Default, Table

NAMESPACE = uuid5(bytes.fromhex("6ba7b8119dad11d180b400c04fd430c8"), b"urn:bucketcatalog:incarnation:v1")
"""In the namespace for URLs (RFC 9562, 6.6)."""


class Incarnations:
    """Fills the derived column of rows that leave it unset; looks at the catalog only then."""

    def __init__(self, table: Table, look: Callable[[], Snapshot]) -> None:
        self._table = table
        self._look = look
        self._column: Column | None = next((c for c in table.columns if c.default is Default.INCARNATION), None)

    def fill(self, stored: dict[str, Any]) -> None:
        """Give a row (in storage form) its id."""
        if self._column is None or stored.get(self._column.field_name) is not None:
            return
        key = encode_key(self._table, {c.name: stored[c.field_name] for c in self._table.key_columns})
        stored[self._column.field_name] = self._ids(pa.array([key], pa.binary()))[0]

    def fill_columns(self, stored: pa.Table, keys: pa.Array) -> pa.Table:
        """Give rows (in storage form, with their encoded keys) the ids that they lack."""
        if self._column is None:
            return stored
        name = self._column.field_name
        given = one_chunk(stored.column(name)) if name in stored.column_names else pa.nulls(len(stored), UUID_STORAGE)
        lacking = np.flatnonzero(np.asarray(given.is_null()))
        if not len(lacking):
            return stored
        derived: list[bytes | None] = [None] * len(stored)
        for at, value in zip(lacking, self._ids(one_chunk(keys).take(pa.array(lacking))), strict=True):
            derived[at] = value
        filled = pc.coalesce(given, pa.array(derived, UUID_STORAGE))
        return stored.drop_columns([name] if name in stored.column_names else []).append_column(name, filled)

    def _ids(self, keys: pa.Array) -> list[bytes]:
        """The ids of the current or next incarnations under these keys."""
        assert self._column is not None
        state = self._look().find(self._table.name, keys, Part.EVERYTHING)
        last = _latest_by_key(state, self._table, self._column)
        ids = []
        for key in keys.to_pylist():
            id_, is_live = last.get(key, (None, False))
            ids.append(id_ if is_live and id_ is not None else uuid5(NAMESPACE, key, id_ or b""))
        return ids


def _latest_by_key(state: Facts, table: Table, column: Column) -> dict[bytes, tuple[bytes | None, bool]]:
    """For each key the id of its latest version, and whether that is live."""
    if not len(state) or column.field_name not in state.rows.column_names:
        return {}
    versions = np.flatnonzero(state.numbers("_kind") == Kind.VERSION)
    order = versions[np.argsort(state.stamps()[versions], kind="stable")]
    keys = one_chunk(encode_keys(table, state.rows)).take(pa.array(order)).to_pylist()
    ids = one_chunk(state.rows.column(column.field_name)).take(pa.array(order)).to_pylist()
    live = (state.stamps("end")[order] == NO_STAMP).tolist()
    return {key: (id_, is_live) for key, id_, is_live in zip(keys, ids, live, strict=True)}
