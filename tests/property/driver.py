"""The engine as the histories use it: the only module here that knows its interface.

Everything comes back in the model's words: keys are tuples, times are microseconds, versions are their names, and rows are dicts of the
columns that the histories use.
"""

from __future__ import annotations

import datetime
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from bucketcatalog import Catalog, InvalidOption, between, restoring
from bucketcatalog.errors import CommitUnknown, DataCollected, ForeignBranch, OutcomeUnknown, ParentEnded, StoreUnavailable
from bucketcatalog.store.base import Store
from bucketcatalog.store.faults import SimulatedCrash
from bucketcatalog.writer import Writer

from .model import Change, ConflictKind, Key, ListRequest, Op, Page
from .steps import Fault
from .stores import Published, View
from .timelines import Application, Draft

DATABASE = "db"
KEYS = {"objects": ("owner", "bucket_id", "name"), "buckets": ("owner", "name"), "harvest_errors": ("source", "path")}
"""The key columns of the tables that the histories use."""

PINNED = {
    "objects": ("owner", "bucket_id", "name", "id"),
    "buckets": ("owner", "name", "id"),
    "harvest_errors": ("source", "path"),
}
"""The columns that an UPDATE does not change: key, id and data reference."""

DROPPING = frozenset({"harvest_errors"})
"""The tables that keep no tombstones."""

CREATED = {"objects": "created", "buckets": "created"}
"""The column that holds the commit time of the version's PUT where its row lacks it, by table."""

MODIFIED = {"objects": "modified", "harvest_errors": "seen"}
"""The column that holds the commit time of whatever wrote the row where that lacks it, by table."""

COLUMNS = {
    "objects": ("owner", "bucket_id", "name", "id", "content_length", "content_type", "created", "modified"),
    "buckets": ("owner", "name", "id", "region", "created"),
    "harvest_errors": ("source", "path", "code", "message", "seen"),
}
_TIME = pa.timestamp("us", tz="UTC")
_TIMES = {*CREATED.values(), *MODIFIED.values()}
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_CONFLICTS = {"late_update": ConflictKind.LATE_UPDATE, "expectation": ConflictKind.EXPECTATION}


Told = tuple[int, str, int]
"""What a writer tells of its commit: revision, uuid and commit time."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a commit or a checkpoint: the transactions put meanwhile, what the writer told, and what ended it early.

    ``refused``: the store did, or the engine since data may be gone or a parent has ended; nothing was changed, and the process goes
    on. ``stopped``: it met a foreign branch of its own timeline. ``lost``: it crashed, or cannot tell what became of what it put; either
    way it has to be opened anew.
    """

    published: list[Published]
    told: Told | None = None
    refused: bool = False
    stopped: bool = False
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Addressed:
    """A draft as the engine is given it: with ``id`` it names the live version by that, and the engine has to look it up.

    With ``derived`` it is a bucket without its id, which the engine has to derive. ``data_of`` is the key and version of another row whose
    data it names.
    """

    draft: Draft
    id: str | None = None
    derived: bool = False
    data_of: tuple[Key, str] | None = None


class NeedsRepair(Exception):
    """The writer cannot be opened, because its timeline is forked in a way that only ``repair`` joins."""


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row as the engine shows it, with the name of its version."""

    version: str
    row: dict[str, Any]


def transact(writer: Writer, addressed: list[Addressed], application: Application | None = None) -> Told | None:
    """One transaction, neighbouring events of one kind in one call; None where it was an application's older version."""
    app_id, app_version = application or (None, None)
    with writer.transaction(operation="test", app_id=app_id, app_version=app_version) as tx:
        for _, alike in groupby(addressed, key=_kind):
            _add(tx, list(alike))
    if tx.committed is None:
        assert application is not None, "only an application's older version commits nothing"
        return None
    return tx.committed.revision, tx.committed.uuid, tx.committed.commit_time


class EngineProcess:
    """One process: a catalog of its own on its own view of the store, and a writer that it holds open."""

    def __init__(self, store: Store, writer: str, *, now: Callable[[], int], clock: Callable[[], int]) -> None:
        self.view = View(store, now)
        self._catalog = Catalog(self.view)
        try:
            self._writer = self._catalog.writer(writer, database=DATABASE, clock=clock)
        except ForeignBranch as error:
            raise NeedsRepair from error

    def commit(self, addressed: list[Addressed], fault: Fault, application: Application | None = None) -> Outcome:
        """One transaction, neighbouring events of one kind in one call."""

        return self._attempt(lambda: transact(self._writer, addressed, application), fault)

    def checkpoint(self, *, everyone: bool, fault: Fault, after: int) -> Outcome:
        """A checkpoint of the writer's own timeline or of everyone's; the fault strikes after so many PUTs."""

        def checkpoint() -> None:
            self._writer.checkpoint(scope="all" if everyone else "own")

        return self._attempt(checkpoint, fault, after=after)

    def restore(self, table: str, version: str, *, fault: Fault, after: int) -> Outcome:
        """Make a table what it was, but for rows whose data may be gone; the fault strikes after so many PUTs."""

        def restore() -> Told | None:
            database = self._catalog.database(DATABASE)
            done = restoring.restore(database, self._writer, table, None, version, skip_collected=True)
            assert done.committed is None or done.put + done.updated + done.deleted > 0
            return None

        return self._attempt(restore, fault, after=after)

    def _attempt(self, action: Callable[[], Told | None], fault: Fault, *, after: int = 0) -> Outcome:
        refused = stopped = lost = False
        told = None
        self.view.arm(fault, after=after)
        try:
            told = action()
        except (StoreUnavailable, DataCollected, ParentEnded):
            refused = True
        except ForeignBranch:
            stopped = True
        except (SimulatedCrash, CommitUnknown, OutcomeUnknown):
            lost = True
        finally:
            published = self.view.disarm()
        return Outcome(published, told, refused=refused, stopped=stopped, lost=lost)

    def read(self, *, timestamp: int | None = None, version: str | None = None) -> str:
        """Take a snapshot; whatever is committed from now on comes after it. Returns its version."""
        return str(_snapshot(self._catalog, timestamp, version).version)

    def close(self) -> None:
        """End in good order."""
        self._writer.close()


class EngineReader:
    """An onlooker: a catalog that is only read."""

    def __init__(self, store: Store, *, now: Callable[[], int]) -> None:
        self._catalog = Catalog(View(store, now))

    def snapshot(self, *, timestamp: int | None = None, version: str | None = None) -> EngineSnapshot:
        """The newest snapshot, or that of a time or of a version."""
        return EngineSnapshot(_snapshot(self._catalog, timestamp, version))

    def changes(self, table: str, start: str | None, end: str) -> list[tuple[Op, Key, str | None, str]]:
        """The raw events of one table between two versions: what, which key, which version, and the event's own name.

        None where the end is the earlier of the two, which the catalog refuses.
        """
        try:
            found = self._catalog.changes(database=DATABASE, table=table, start=start, end=end).to_arrow()
        except InvalidOption:
            return []
        return [(Op(row["_change_type"]), _key(table, row), row["_version"], row["_stamp"]) for row in _rows(found)]

    def diff(self, table: str, start: str | None, end: str) -> dict[Key, Change]:
        """The net difference of one table between two versions."""
        found = self._catalog.diff(database=DATABASE, table=table, start=start, end=end).to_arrow()
        rows = [(_key(table, row), Change(row["_change_type"])) for row in _rows(found)]
        assert len(dict(rows)) == len(rows), "the net difference has at most one row a key"
        return dict(rows)


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
        rows = _rows(self._scan(table, COLUMNS[table]))
        keys = [_key(table, row) for row in rows]
        assert len(set(keys)) == len(keys), "a key has at most one live version"
        return {key: _found(table, row) for key, row in zip(keys, rows, strict=True)}

    def tombstones(self, table: str, ended: tuple[int, int] | None = None) -> dict[str, tuple[Key, int, FoundRow]]:
        """Key, deleted_at and row of the tombstones, or of those that ended from a time up to another, by version."""
        where = {} if ended is None else {"deleted_at": between(*(_EPOCH + time * _MICROSECOND for time in ended))}
        rows = _rows(self._scan(f"deleted_{table}", (*COLUMNS[table], "deleted_at"), where))
        assert len({row["_version"] for row in rows}) == len(rows), "a version has at most one tombstone"
        return {row["_version"]: (_key(table, row), row["deleted_at"], _found(table, row)) for row in rows}

    def sums(self) -> dict[tuple[str, Key], int]:
        """The sums over objects, by name and bucket."""
        rows = _rows(self._snapshot.scan("sums", where={"table": "objects"}).to_arrow())
        found = {(row["name"], tuple(dict(row["group"]).values())): row["value"] for row in rows}
        assert len(found) == len(rows), "a group has each sum once"
        return found

    def conflicts(self) -> set[tuple[ConflictKind, str, str | None, str, str | None, str | None]]:
        """Kind, table, version, event, what was expected and what was found."""
        rows = _rows(self._snapshot.scan("conflicts").to_arrow())
        found = [
            (_CONFLICTS[row["kind"]], row["table"], row["version"], row["event"], row["expected"], row["found"]) for row in rows
        ]
        assert len(set(found)) == len(found), "a conflict is shown once"
        return set(found)

    def forks(self) -> set[tuple[str, int, frozenset[str], bool]]:
        """Writer, revision, the transactions there, and whether nothing has joined them yet."""
        rows = _rows(self._snapshot.scan("forks").to_arrow())
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
        names = [row[KEYS[table][-1]] for row in _rows(page.rows)]
        return Page(names, list(page.groups), page.next_marker)

    def _scan(self, table: str, columns: tuple[str, ...], where: Mapping[str, Any] | None = None) -> pa.Table:
        return self._snapshot.scan(table, columns=[*columns, "_version"], where=where).to_arrow()


def heads_of(version: str) -> frozenset[str]:
    """The uuids of the transactions that a version names."""
    parts = [] if version == ":" else version.split(",")
    return frozenset(str(uuid.UUID(part.rpartition(":")[2])) for part in parts)


@contextmanager
def quiet() -> Iterator[None]:
    """Forks are what these histories are about, so the warnings about them are not errors here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _snapshot(catalog: Catalog, timestamp: int | None, version: str | None) -> Any:
    if timestamp is not None:
        return catalog.snapshot(database=DATABASE, timestamp=f"@{timestamp}")
    if version is not None:
        return catalog.snapshot(database=DATABASE, version=version)
    return catalog.snapshot(database=DATABASE)


def _kind(addressed: Addressed) -> tuple[Any, ...]:
    """What neighbouring events must have in common to be given to the engine in one call."""
    draft = addressed.draft
    return draft.op, draft.table, draft.expect, draft.moved, draft.version is None, addressed.id is None, addressed.data_of


def _add(tx: Any, alike: list[Addressed]) -> None:
    """Give events of one kind to a transaction: one as a dict, two as an Arrow table, more as a list."""
    first = alike[0].draft
    rows = [_given(it) for it in alike]
    expect = {} if first.expect is None else {"expect": first.expect}
    if first.op is Op.PUT and alike[0].data_of is not None:
        key, version = alike[0].data_of
        tx.put(first.table, _several(rows), data_of={**dict(zip(KEYS[first.table], key, strict=True)), "_version": version})
    elif first.op is Op.PUT:
        tx.put(first.table, _several(rows), **expect)
    elif first.op is Op.UPDATE:
        tx.update(first.table, _several(rows))
    elif first.op is Op.PURGE:
        tx.purge(first.table, _several(rows))
    else:
        tx.delete(first.table, _several(rows), **expect, **({"moved": True} if first.moved else {}))


def _given(addressed: Addressed) -> dict[str, Any]:
    draft = addressed.draft
    named = {} if draft.version is None else {"_version": draft.version}
    key = dict(zip(KEYS[draft.table], draft.key, strict=True))
    given = {**key, **(draft.row or {}), **(named if addressed.id is None else {"id": addressed.id})}
    if addressed.derived:
        del given["id"]
    return given


def _several(rows: list[dict[str, Any]]) -> Any:
    if len(rows) == 1:
        return rows[0]
    if len(rows) > 2:
        return rows
    columns = {name: [row.get(name) for row in rows] for row in rows for name in row}
    return pa.table({name: pa.array(values, _TIME if name in _TIMES else None) for name, values in columns.items()})


def _rows(table: pa.Table) -> list[dict[str, Any]]:
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
    return (value - _EPOCH) // _MICROSECOND if isinstance(value, datetime.datetime) else value
