"""Which version an update, a delete or a purge is about: named by ``_version``, or the live one with the row's id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from . import uuids
from .arrays import one_chunk
from .errors import InvalidRows, InvalidVersion
from .events import EventKind, VersionName
from .intake import storage_array
from .keys import encode_key, encode_keys
from .reading import Part
from .render import row_column
from .snapshot import Snapshot
from .surface import storage_value
from .tables import Table

VERSION_COLUMN = "_version"
_VERSION = "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}:(0|[1-9][0-9]*)$"
Named = tuple[str, Any] | None
"""How a row says which version it means: the column that says so and its value, or nothing."""


class Targets:
    """Resolves what the rows of one call mean; looks at the catalog only where an id has to be found."""

    def __init__(self, table: Table, kind: EventKind, look: Callable[[], Snapshot]) -> None:
        self._table = table
        self._kind = kind
        self._look = look

    def split(self, row: Mapping[str, Any]) -> tuple[Named, dict[str, Any]]:
        """How the row names a version, and the row without that where it is not a column of the event."""
        rest = dict(row)
        if self._kind is EventKind.PUT:
            return None, rest
        version = rest.pop(VERSION_COLUMN, None)
        by_id = self._table.id
        named_id = rest.get(by_id) if by_id is not None else None
        if self._kind is not EventKind.UPDATE and by_id is not None and by_id not in self._table.key:
            rest.pop(by_id, None)
        if version is not None:
            return (VERSION_COLUMN, version), rest
        return ((by_id, named_id) if by_id is not None and named_id is not None else None), rest

    def version_of(self, stored: Mapping[str, Any], named: Named, number: int) -> VersionName | None:
        """The version that a row (in storage form) means; ``InvalidRows`` where it has to mean one and does not."""
        if self._kind is EventKind.PUT:
            return None
        if named is not None and named[0] == VERSION_COLUMN:
            return VersionName.parse(named[1])
        if self._kind is EventKind.PURGE or (named is None and self._kind is EventKind.UPDATE and self._table.id is not None):
            raise self._nameless(number)
        if named is None and self._kind is EventKind.DELETE:
            return None
        found = self._live_version(stored, named)
        if found is None and self._kind is EventKind.UPDATE:
            raise InvalidRows(
                f"Row {number} for table {self._table.name!r} names no live version by its {named[0] if named else 'key'}.",
                next_step=f"Read the row again and update what is live, or give its {VERSION_COLUMN}.",
            )
        return found

    def needed_but_gone(self, named: Named) -> bool:
        """Whether a row without a version is to be left out: it named one by id that is not live any more."""
        return self._kind is EventKind.DELETE and named is not None

    def _live_version(self, stored: Mapping[str, Any], named: Named) -> VersionName | None:
        key = encode_key(self._table, {c.name: stored[c.field_name] for c in self._table.key_columns})
        facts = self._look().find(self._table.name, pa.array([key], pa.binary()), Part.LIVE)
        if not len(facts):
            return None
        if named is not None:
            column = self._table.by_name[named[0]]
            try:
                wanted = storage_value(column, named[1])
            except (TypeError, ValueError):
                return None
            if facts.rows.column(column.field_name)[0].as_py() != wanted:
                return None
        position = facts.column("_txn")[0].as_py()
        return VersionName(facts.uuids[position].as_py(), facts.column("_seq")[0].as_py())

    def _nameless(self, number: int) -> InvalidRows:
        return InvalidRows(
            f"Row {number} for table {self._table.name!r} does not say which version it means.",
            next_step=f"Give its {VERSION_COLUMN}"
            + (f", or the live one's {self._table.id}." if self._kind is EventKind.UPDATE else "."),
        )

    def split_columns(self, rows: pa.Table) -> tuple[tuple[str, pa.Array] | None, pa.Table]:
        """``split`` for Arrow data."""
        if self._kind is EventKind.PUT:
            return None, rows
        by_id = self._table.id
        named = None
        if VERSION_COLUMN in rows.column_names:
            named = (VERSION_COLUMN, one_chunk(rows.column(VERSION_COLUMN)))
            rows = rows.drop_columns([VERSION_COLUMN])
        elif by_id is not None and by_id in rows.column_names:
            named = (by_id, one_chunk(rows.column(by_id)))
        if (
            self._kind is not EventKind.UPDATE
            and by_id is not None
            and by_id in rows.column_names
            and by_id not in self._table.key
        ):
            rows = rows.drop_columns([by_id])
        return named, rows

    def versions_of(
        self, stored: pa.Table, keys: pa.Array, named: tuple[str, pa.Array] | None
    ) -> tuple[pa.Array | None, pa.Array | None, pa.Array | None]:
        """Uuids and sequence numbers of the versions that rows mean, and which rows to keep where some are left out."""
        if self._kind is EventKind.PUT or (named is None and self._kind is EventKind.DELETE):
            return None, None, None
        if named is not None and named[0] == VERSION_COLUMN:
            parsed = parse_versions(named[1])
            if self._kind is not EventKind.DELETE and parsed[0].null_count:
                raise self._nameless(pc.index(parsed[0].is_valid(), False).as_py())
            return *parsed, None
        if self._kind is EventKind.PURGE or (named is None and self._table.id is not None):
            raise self._nameless(0)
        return self._live_versions(stored, keys, named)

    def _live_versions(
        self, stored: pa.Table, keys: pa.Array, named: tuple[str, pa.Array] | None
    ) -> tuple[pa.Array, pa.Array, pa.Array | None]:
        keys = one_chunk(keys)
        facts = self._look().find(self._table.name, keys, Part.LIVE)
        at = pc.index_in(keys, value_set=one_chunk(encode_keys(self._table, facts.rows)))
        fits = at.is_valid()
        if named is not None:
            column = self._table.by_name[named[0]]
            live = row_column(facts, column).take(at)
            wanted = storage_array(self._table, column, named[1])
            shown = uuids.to_text(wanted) if wanted.type != column.surface_type else wanted
            fits = pc.and_(fits, pc.fill_null(pc.equal(live, shown), False))
        missing = pc.index(fits, False).as_py()
        if missing >= 0 and self._kind is EventKind.UPDATE:
            raise InvalidRows(
                f"Row {missing} for table {self._table.name!r} names no live version.",
                next_step=f"Read the rows again, or give their {VERSION_COLUMN}.",
            )
        position = facts.column("_txn").take(at)
        return facts.uuids.take(position), facts.column("_seq").take(at), None if missing < 0 else fits


def parse_versions(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Uuids and sequence numbers of ``_version`` values; ``InvalidVersion`` names the first that is none."""
    try:
        values = values.cast(pa.string()) if pa.types.is_null(values.type) else values
        text = pc.utf8_slice_codeunits(values, 0, 36)
        number = pc.utf8_slice_codeunits(values, 37)
        if not pc.all(pc.match_substring_regex(values, _VERSION), min_count=0).as_py():
            raise ValueError("a version is a uuid, a colon and a number")
        return uuids.from_text(text), number.cast(pa.int32())
    except (ValueError, pa.ArrowException) as error:
        raise InvalidVersion(
            f"The column {VERSION_COLUMN} holds what names no version: {error}.", next_step="Give values of that column."
        ) from None
