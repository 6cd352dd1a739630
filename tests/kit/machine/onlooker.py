"""The engine's answers as the histories compare them: snapshots, and what lies between two."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bucketcatalog import Catalog, InvalidOption, between
from bucketcatalog.errors import ObjectNotFound
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.facts import Expects, Kind
from bucketcatalog.model.render import output_schema, render, version_names
from bucketcatalog.state.tail import every_event
from bucketcatalog.store.base import Store

from ..natively import in_some_order, put_together
from ..reference.differences import Change
from ..reference.model import ABSENT, ConflictKind, Key, Op, VersionName
from ..reference.pages import ListRequest, Page
from .columns import COLUMNS, DATABASE, EPOCH, KEYS, MICROSECOND
from .stores import Published, View

_CONFLICTS = {"late_update": ConflictKind.LATE_UPDATE, "expectation": ConflictKind.EXPECTATION}


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row as the engine shows it, with the name of its version."""

    version: str
    row: dict[str, Any]


class EngineReader:
    """An onlooker: a catalog that is only read."""

    def __init__(self, store: Store, *, now: Callable[[], int]) -> None:
        self._catalog = Catalog(View(store, now))

    def snapshot(self, *, timestamp: int | None = None, version: str | None = None) -> EngineSnapshot:
        """The newest snapshot, or that of a time or of a version."""
        return EngineSnapshot(snapshot_of(self._catalog, timestamp, version))

    def changes(self, table: str, start: str | None, end: str) -> list[tuple[Op, Key, str | None, str]]:
        """The raw events of one table between two versions: what, which key, which version, and the event's own name.

        None where the end is the earlier of the two, which the catalog refuses.
        """
        try:
            found = self._catalog.changes(database=DATABASE, table=table, start=start, end=end).to_arrow()
        except InvalidOption:
            return []
        return [(Op(row["_change_type"]), _key(table, row), row["_version"], row["_stamp"]) for row in plain_rows(found)]

    def diff(self, table: str, start: str | None, end: str) -> dict[Key, Change]:
        """The net difference of one table between two versions."""
        found = self._catalog.diff(database=DATABASE, table=table, start=start, end=end).to_arrow()
        rows = [(_key(table, row), Change(row["_change_type"])) for row in plain_rows(found)]
        assert len(dict(rows)) == len(rows), "the net difference has at most one row a key"
        return dict(rows)

    def expectations(self, table: str, transaction: Published) -> dict[Key, VersionName | None]:
        """What the PUTs of one table in a transaction, at most one a key, say that they replace: a version, nothing at all, or None."""
        definition = self._catalog.database(DATABASE).definition(table, transaction.writer)
        files = LogFiles(self._catalog.store, DATABASE)
        read = files.transaction(transaction.writer, Head(transaction.revision, uuid.UUID(transaction.uuid).bytes))
        facts = every_event(files.store, [read], definition)
        if facts is None:
            return {}
        puts = facts.take(pa.array(np.flatnonzero(facts.numbers("_kind") == Kind.VERSION)))
        names = version_names(puts.column("_expects_uuid"), puts.column("_expects_seq")).to_pylist()
        said = {Expects.VERSION: lambda name: name, Expects.ABSENT: lambda _: ABSENT, Expects.NOTHING_SAID: lambda _: None}
        told = [said[Expects(it)](name) for it, name in zip(puts.numbers("_expects"), names, strict=True)]
        keys = [_key(table, row) for row in render(puts, definition, output_schema(definition)).to_pylist()]
        assert len(set(keys)) == len(keys), "a restore puts a key once"
        return dict(zip(keys, told, strict=True))


class EngineSnapshot:
    """A snapshot, all of which is asked through the same cut."""

    def __init__(self, snapshot: Any) -> None:
        self._snapshot = snapshot

    @property
    def version(self) -> str:
        """The string that names its cut."""
        return str(self._snapshot.version)

    @property
    def heads(self) -> frozenset[str]:
        """The uuids of the transactions that the version names; with all that they follow they are its cut."""
        return heads_of(self.version)

    def live(self, table: str) -> dict[Key, FoundRow]:
        """The live rows by key."""
        rows = plain_rows(self._scan(table, COLUMNS[table]))
        keys = [_key(table, row) for row in rows]
        assert len(set(keys)) == len(keys), "a key has at most one live version"
        return {key: _found(table, row) for key, row in zip(keys, rows, strict=True)}

    def tombstones(self, table: str, ended: tuple[int, int] | None = None) -> dict[str, tuple[Key, int, FoundRow]]:
        """Key, deleted_at and row of the tombstones, or of those that ended from a time up to another, by version."""
        where = {} if ended is None else {"deleted_at": between(*(EPOCH + time * MICROSECOND for time in ended))}
        rows = plain_rows(self._scan(f"deleted_{table}", (*COLUMNS[table], "deleted_at"), where))
        assert len({row["_version"] for row in rows}) == len(rows), "a version has at most one tombstone"
        return {row["_version"]: (_key(table, row), row["deleted_at"], _found(table, row)) for row in rows}

    def sums(self) -> dict[tuple[str, Key], int]:
        """The sums over objects, by name and bucket."""
        rows = plain_rows(self._snapshot.scan("sums", where={"table": "objects"}).to_arrow())
        found = {(row["name"], tuple(dict(row["group"]).values())): row["value"] for row in rows}
        assert len(found) == len(rows), "a group has each sum once"
        return found

    def conflicts(self) -> set[tuple[ConflictKind, str, str | None, str, str | None, str | None]]:
        """Kind, table, version, event, what was expected and what was found."""
        rows = plain_rows(self._snapshot.scan("conflicts").to_arrow())
        found = [
            (_CONFLICTS[row["kind"]], row["table"], row["version"], row["event"], row["expected"], row["found"]) for row in rows
        ]
        assert len(set(found)) == len(found), "a conflict is shown once"
        return set(found)

    def forks(self) -> set[tuple[str, int, frozenset[str], bool]]:
        """Writer, revision, the transactions there, and whether nothing has joined them yet."""
        rows = plain_rows(self._snapshot.scan("forks").to_arrow())
        found = [(row["writer"], row["revision"], frozenset(row["uuids"]), row["open"]) for row in rows]
        assert len(set(found)) == len(found), "a fork is shown once"
        return set(found)

    def get(self, table: str, key: Key) -> dict[str, Any] | None:
        """The live row of one key, as far as the histories use its columns."""
        row = self._snapshot.get(table, **dict(zip(KEYS[table], key, strict=True)))
        return None if row is None else {column: _plain(row[column]) for column in COLUMNS[table]}

    def list(self, table: str, parent: Key, request: ListRequest) -> Page:
        """One page of a listing."""
        page = self._snapshot.list(
            table,
            **dict(zip(KEYS[table], parent, strict=False)),
            prefix=request.prefix,
            delimiter=request.delimiter,
            marker=request.marker,
            limit=request.limit,
        )
        names = [row[KEYS[table][-1]] for row in plain_rows(page.rows)]
        return Page(names, list(page.groups), page.next_marker)

    def _scan(self, table: str, columns: tuple[str, ...], where: Mapping[str, Any] | None = None) -> pa.Table:
        scan = self._snapshot.scan(table, columns=[*columns, "_version"], where=where)
        rows = scan.to_arrow()
        with suppress(ObjectNotFound):  # what this snapshot has read and kept may have been pruned since
            found = put_together(scan, self._snapshot.files.store)
            assert in_some_order(found) == in_some_order(rows), f"{table} as its files say differs from what the engine reads"
        return rows


def heads_of(version: str) -> frozenset[str]:
    """The uuids of the transactions that a version names."""
    parts = [] if version == ":" else version.split(",")
    return frozenset(str(uuid.UUID(part.rpartition(":")[2])) for part in parts)


def snapshot_of(catalog: Catalog, timestamp: int | None, version: str | None) -> Any:
    """The engine's own snapshot: the newest, or that of a time or of a version."""
    if timestamp is not None:
        return catalog.snapshot(database=DATABASE, timestamp=f"@{timestamp}")
    if version is not None:
        return catalog.snapshot(database=DATABASE, version=version)
    return catalog.snapshot(database=DATABASE)


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows one by one, times as microseconds."""
    columns = [
        column.cast(pa.int64()) if pa.types.is_timestamp(field.type) else column
        for field, column in zip(table.schema, table.columns, strict=True)
    ]
    rows: list[dict[str, Any]] = pa.table(columns, names=table.column_names).to_pylist()
    return rows


def _key(table: str, row: Mapping[str, Any]) -> Key:
    return tuple(row[column] for column in KEYS[table])


def _found(table: str, row: Mapping[str, Any]) -> FoundRow:
    return FoundRow(row["_version"], {column: row[column] for column in COLUMNS[table]})


def _plain(value: Any) -> Any:
    return (value - EPOCH) // MICROSECOND if isinstance(value, datetime.datetime) else value
