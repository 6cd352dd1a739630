"""Which version an update, a delete or a purge is about: named by ``_version``, or the live one with the row's id."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows, InvalidVersion
from ..model import arrays
from ..model.arrays import one_chunk
from ..model.coerce import storage_array, storage_value
from ..model.events import EventKind, VersionName
from ..model.keys import encode_key, encode_keys
from ..model.tables import Table
from ..query.snapshot import Snapshot
from ..state.plan import Part
from .staging import Left, StagedEvents

VERSION_COLUMN = "_version"
_VERSION = "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}:(0|[1-9][0-9]*)$"
Named = tuple[str, Any] | None
"""How a row says which version it means: the column that says so and its value, or nothing."""


class Targets:
    """Resolves what the rows of one call mean; looks at the catalog only where an id has to be found."""

    def __init__(self, table: Table, kind: EventKind, look: Callable[[], Snapshot], own: StagedEvents) -> None:
        self._table = table
        self._kind = kind
        self._look = look
        self._own = own

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

    def versions(self, rows: Sequence[tuple[Named, Mapping[str, Any]]]) -> Iterator[tuple[VersionName | None, bool]]:
        """For each row (in storage form, with what names its version) the version that it means, and whether it is an event at all.

        A DELETE by an id that is not live is none. ``InvalidRows`` where a row has to mean a version and does not.
        """
        searched = [self._key(stored) for named, stored in rows if self._has_to_search(named)]
        keys = pa.array(searched, pa.binary())
        live = self._live_by_key(keys) if searched else {}
        left = self._own.left(self._table, keys) if searched else None
        for number, (named, stored) in enumerate(rows):
            if self._kind is EventKind.PUT:
                yield None, True
            elif named is not None and named[0] == VERSION_COLUMN:
                yield VersionName.parse(named[1]), True
            elif self._kind is EventKind.PURGE or (
                named is None and self._kind is EventKind.UPDATE and self._table.id is not None
            ):
                raise self._nameless(number)
            elif named is None and self._kind is EventKind.DELETE:
                yield None, True
            else:
                yield self._found(stored, named, number, live, left)

    def _has_to_search(self, named: Named) -> bool:
        if self._kind is EventKind.UPDATE:
            return named is None or named[0] != VERSION_COLUMN
        return self._kind is EventKind.DELETE and named is not None and named[0] != VERSION_COLUMN

    def _found(
        self,
        stored: Mapping[str, Any],
        named: Named,
        number: int,
        live: Mapping[bytes, tuple[VersionName, Any]],
        left: Left | None,
    ) -> tuple[VersionName | None, bool]:
        key = self._key(stored)
        own = left.of(key) if left is not None else None
        if own is not None and own[0] and self._kind is EventKind.UPDATE:
            raise self._put_just_now(number)
        wanted = self._wanted_id(named, number)
        if own is not None:
            return None, self._kind is EventKind.DELETE and own[0] and own[1] == wanted
        version, id_ = live.get(key, (None, None))
        if version is not None and (named is None or id_ == wanted):
            return version, True
        if self._kind is EventKind.UPDATE:
            raise InvalidRows(
                f"Row {number} for table {self._table.name!r} names no live version by its {named[0] if named else 'key'}.",
                next_step=f"Read the row again and update what is live, or give its {VERSION_COLUMN}.",
            )
        return None, False

    def _wanted_id(self, named: Named, number: int) -> Any:
        if named is None:
            return None
        column = self._table.by_name[named[0]]
        try:
            return storage_value(column, named[1])
        except (TypeError, ValueError) as error:
            raise InvalidRows(
                f"Row {number} for table {self._table.name!r}, column {column.name!r}: {error}.",
                next_step=f"Give it a {column.type.value}.",
            ) from None

    def _live_by_key(self, keys: pa.Array) -> dict[bytes, tuple[VersionName, Any]]:
        """The live versions of these keys, and the ids of their rows."""
        facts = self._look().find(self._table.name, keys, Part.LIVE)
        names = zip(*(names.to_pylist() for names in facts.own_names()), strict=True)
        id_column = self._table.by_name[self._table.id] if self._table.id is not None else None
        ids = facts.stored_column(id_column).to_pylist() if id_column is not None else [None] * len(facts)
        found = one_chunk(encode_keys(self._table, facts.rows)).to_pylist()
        return {key: (VersionName(*name), id_) for key, name, id_ in zip(found, names, ids, strict=True)}

    def _key(self, stored: Mapping[str, Any]) -> bytes:
        return encode_key(self._table, {c.name: stored[c.field_name] for c in self._table.key_columns})

    def _put_just_now(self, number: int) -> InvalidRows:
        return InvalidRows(
            f"Row {number} for table {self._table.name!r} updates what this very transaction puts.",
            next_step="Put the whole row instead.",
        )

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
        wanted = None
        if named is not None:
            column = self._table.by_name[named[0]]
            wanted = storage_array(self._table, column, named[1])
            fits = pc.and_(fits, _same(facts.stored_column(column).take(at), wanted))
        left = self._own.left(self._table, keys)
        if left is not None:
            own = pc.index_in(keys, value_set=left.keys)
            again = pc.fill_null(left.live.take(own), False)
            just_now = pc.index(again, True).as_py()
            if just_now >= 0 and self._kind is EventKind.UPDATE:
                raise self._put_just_now(just_now)
            at = pc.if_else(own.is_valid(), pa.scalar(None, at.type), at)
            again = again if wanted is None else pc.and_(again, _same(left.ids.take(own), wanted))
            fits = pc.if_else(own.is_valid(), again, fits)
        missing = pc.index(fits, False).as_py()
        if missing >= 0 and self._kind is EventKind.UPDATE:
            raise InvalidRows(
                f"Row {missing} for table {self._table.name!r} names no live version.",
                next_step=f"Read the rows again, or give their {VERSION_COLUMN}.",
            )
        position = facts.column("_txn").take(at)
        return facts.uuids.take(position), facts.column("_seq").take(at), None if missing < 0 else fits


def _same(values: pa.Array, wanted: pa.Array) -> pa.Array:
    """Where two storage arrays hold the same value, and not where one holds none."""
    return pc.fill_null(pc.equal(values.cast(wanted.type), wanted), False)


def parse_versions(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Uuids and sequence numbers of ``_version`` values; ``InvalidVersion`` names the first that is none."""
    try:
        values = values.cast(pa.string()) if pa.types.is_null(values.type) else values
        text = pc.utf8_slice_codeunits(values, 0, 36)
        number = pc.utf8_slice_codeunits(values, 37)
        if not pc.all(pc.match_substring_regex(values, _VERSION), min_count=0).as_py():
            raise ValueError("a version is a uuid, a colon and a number")
        return arrays.from_text(text), number.cast(pa.int32())
    except (ValueError, pa.ArrowException) as error:
        raise InvalidVersion(
            f"The column {VERSION_COLUMN} holds what names no version: {error}.", next_step="Give values of that column."
        ) from None
