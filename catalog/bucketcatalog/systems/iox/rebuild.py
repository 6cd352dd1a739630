"""Rebuild: the catalog of data tables made anew from what the files below the writers' folders of data say.

1. Of a database that has no log left, all that is whole is taken in. Files that were removed, and those whose rows a compacted file has,
   are taken in as ended, so that they are collected as they would have been.
2. Of a database that is there, only what it does not name, neither live nor ended, and what is so old that no commit can name it any more:
   that is reported, and with ``adopt`` taken in, files and deletions of rows alike. What the catalog names is never ended for it.

Footers are read, and Bloom filters, never rows. Everything is one commit of a maintainer's, so who dies leaves nothing half done, and
another run finds what is left to do. Source: persistence document, section 1.3; facts 4.3 have what the real one lost, which is why
markers are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from ... import limits
from ...catalog import Catalog
from ...errors import CatalogNotFound, InvalidOption, StaleRead
from ...model.names import MAINTAINER_PREFIX, database_name, host_writer, is_name, maintainer_id
from ...model.paths import data_prefix, writer_prefix
from ...model.times import Age, age_micros, datetime_of, shown_age
from ...parallel import in_order
from ...query.database import has_timeline, require
from ...query.snapshot import Snapshot
from ...store.base import ObjectInfo, Store
from ...write.host_turn import host_turn
from ...write.transaction import WriteTransaction
from ...write.writer import Writer
from .files import FILES, SCHEMAS, Written, add_files, schema_row
from .findings import Finding
from .footers import Listed, Marker, Stored, Tell, listed, marker, read_each, stored_file
from .live import Live
from .named import NOTHING_NAMED, Untold, named_by
from .predicates import PREDICATES
from .recovery import NOTHING, Recovered, recovered

_AT_ONCE = 4_096
"""Files that are described in memory, as Arrow has it, at a time."""


@dataclass(frozen=True)
class Rebuilt:
    """What a rebuild has found and done, or would do: ``version`` is that of its commit, None where there was none.

    ``whole`` says that the database had no log. ``files``, ``rows`` and ``bytes`` are what is taken in as live, ``ended`` files that are
    taken in as ended, ``deletions`` the markers that are, ``schemas`` what is said anew of the columns of files that the catalog names
    already; ``listed`` is how many files there were.
    """

    database: str
    whole: bool
    listed: int
    files: int
    rows: int
    bytes: int
    ended: int
    deletions: int
    schemas: int
    tables: Sequence[str]
    findings: Sequence[Finding] = field(repr=False)
    version: str | None = None


def rebuild(
    catalog: Catalog,
    *,
    database: str | None = None,
    writer: str | None = None,
    dry_run: bool = True,
    adopt: bool = False,
    older_than: Age = limits.COLLECTION_GRACE,
    force: bool = False,
    progress: Tell = lambda _: None,
) -> Rebuilt:
    """Take in what the data files and markers say and the catalog does not; see above. Nothing is written in a ``dry_run``.

    It is committed by a maintainer, by default this machine's. ``adopt`` takes in what a database that has a log does not name, if it is
    ``older_than`` that by the store's time; nobody should collect orphans meanwhile. ``progress`` is told how far it is.
    ``CatalogNotFound`` where there is nothing, ``InvalidOption`` for an age at which writers may be under way, unless forced.
    """
    age, by = age_micros(older_than), maintainer_id(writer)
    if age < limits.SAFE_COLLECTION_GRACE and not force:
        raise InvalidOption(
            f"What was written {shown_age(age)} ago may be committed yet.",
            next_step=f"Give an age of {shown_age(limits.SAFE_COLLECTION_GRACE)} or more, or force where no writer runs.",
        )
    store, name = catalog.store, _database(catalog, database)
    found = _Work(store, name, age, None if dry_run else by, progress)
    made = found.planned(catalog.database(name).of_trusted().look if _has_log(store, name) else None)
    counted, schemas = (made, found.schemas) if adopt or found.snapshot is None else ([], [])
    is_done = not dry_run and (bool(schemas) or not all(map(_is_empty, counted)))
    version = _committed(catalog, found, made, writer) if is_done else None
    files = [each for table in counted for each in table.taken]
    return Rebuilt(
        name,
        found.snapshot is None,
        found.listed,
        len(files),
        sum(each.row["rows"] for each in files),
        sum(each.info.size for each in files),
        sum(len(each.ended) for each in counted),
        sum(len(each.markers) for each in counted),
        len(schemas),
        sorted({*(each.table for each in counted if not _is_empty(each)), *(row["table"] for row in schemas)}),
        sorted([*found.findings, *(said for each in made for said in each.findings)], key=lambda said: (said.file, said.code)),
        version,
    )


def _is_empty(made: Recovered) -> bool:
    return not (made.taken or made.ended or made.markers)


def _database(catalog: Catalog, database: str | None) -> str:
    """The database that was named, else the only one that has a log or data; ``CatalogNotFound`` where nothing has."""
    if database is not None:
        return database_name(database)
    store = catalog.store
    writers = [writer for writer in store.list_prefixes("") if is_name(writer)]
    every = {(writer, name) for writer in writers for name in store.list_prefixes(writer_prefix(writer)) if is_name(name)}
    has_data = {name for writer, name in every if any(store.list(data_prefix(writer, name), limit=1))}
    names = sorted(has_data.union(catalog.databases()))
    if len(names) != 1:
        require(catalog.url, names, None)
    return names[0]


def _has_log(store: Store, database: str) -> bool:
    return any(has_timeline(store, writer, database) for writer in store.list_prefixes("") if is_name(writer))


class _Work:
    """One run over a database: what there is, and what is said of it. ``snapshot`` is None of one that has no log."""

    def __init__(self, store: Store, database: str, age: int, maintainer: str | None, tell: Tell) -> None:
        self.store, self.database, self._tell = store, database, tell
        self._before = store.now_us(None if maintainer is None else writer_prefix(maintainer)) - age
        self.snapshot: Snapshot | None = None
        self.listed = 0
        self.findings: list[Finding] = []
        self.schemas: list[dict[str, Any]] = []

    def planned(self, look: Callable[[], Snapshot] | None) -> list[Recovered]:
        """What is to be taken in, by data table. Files are listed first: what was committed before that is seen."""
        there = listed(self.store, self.database)
        self.listed = len(there.files)
        self.snapshot = snapshot = None if look is None else look()
        if snapshot is None and not there.files and not there.markers:
            raise CatalogNotFound(
                f"{self.store.url} has neither a log nor data tables of a database {self.database!r}.",
                next_step="Check the path and the name: data lies below WRITER/DATABASE/data/.",
            )
        named = NOTHING_NAMED if snapshot is None else named_by(snapshot)
        self.schemas = [row for untold in named.untold if (row := self._schema(untold, there)) is not None]
        files = self._files([info for name, info in there.files.items() if name not in named.paths])
        markers = self._markers([*there.markers.values()])
        nothing = None if snapshot is None else NOTHING
        return [
            recovered(table, files.get(table, []), markers.get(table, []), named.tables.get(table, nothing), self._is_young)
            for table in sorted({*files, *markers})
        ]

    def _schema(self, untold: Untold, there: Listed) -> dict[str, Any] | None:
        """The row about a schema that the catalog does not tell, by the first file that has it and is whole."""
        for info in (there.files[path] for path in untold.paths if path in there.files):
            found = stored_file(self.store, info)
            if isinstance(found, Stored):
                self.findings.append(Finding("SCHEMA_MISSING", info.name, "No row says what its columns are, and it does."))
                return {**schema_row(untold.table, found.schema), "schema": untold.schema}
            self.findings.append(found)
        return None

    def _files(self, infos: Sequence[ObjectInfo]) -> dict[str, list[Stored]]:
        found: dict[str, list[Stored]] = {}
        schemas: dict[str, pa.Schema] = {}
        for each in read_each(stored_file, self.store, infos, "files", self._tell):
            if isinstance(each, Finding):
                self.findings.append(each)
            else:
                same = schemas.setdefault(each.row["schema"], each.schema)
                found.setdefault(each.about.table, []).append(replace(each, schema=same))
        return found

    def _markers(self, infos: Sequence[ObjectInfo]) -> dict[str, list[Marker]]:
        found: dict[str, list[Marker]] = {}
        for each in read_each(marker, self.store, infos, "markers", self._tell):
            if isinstance(each, Finding):
                self.findings.append(each)
            else:
                found.setdefault(each.table, []).append(each)
        return found

    def _is_young(self, info: ObjectInfo) -> bool:
        return info.modified_us > self._before


def _committed(catalog: Catalog, work: _Work, made: Iterable[Recovered], writer: str | None) -> str:
    """Commit what was there; ``StaleRead`` where a database that had no log has one by now."""
    with (
        host_turn(catalog.store, work.database, named=writer, default=host_writer(MAINTAINER_PREFIX)) as chosen,
        catalog.writer(chosen, database=work.database) as held,
    ):
        if work.snapshot is None and _has_log(catalog.store, work.database):
            raise StaleRead(
                f"Somebody has begun to commit to database {work.database!r} of {catalog.url} meanwhile.",
                next_step="Run it again: with adopt it takes in what that has left out.",
            )
        return _commit(held, work, made)


def _commit(held: Writer, work: _Work, made: Iterable[Recovered]) -> str:
    snapshot = work.snapshot
    with held.transaction(operation="rebuild") as tx:
        if snapshot is not None:
            tx.rests_on(snapshot)
        if work.schemas:
            tx.put(SCHEMAS, work.schemas)
        for each in made:
            live = None if snapshot is None else Live.of(snapshot, each.table)
            _add(tx, work.store, each, frozenset() if live is None else frozenset(live.by_schema))
    assert tx.committed is not None
    return tx.committed.version


def _add(tx: WriteTransaction, store: Store, made: Recovered, known: frozenset[str]) -> None:
    """Put what was there, with the times at which it was written; of what ends at once there are no statistics."""
    for start in range(0, len(made.taken), _AT_ONCE):
        whole = in_order(partial(_with_filters, store), made.taken[start : start + _AT_ONCE], threads=store.concurrency)
        some = [Written(_row(each), each.statistics, each.schema) for each in whole]
        add_files(tx, some, known)
        known = known.union(each.row["schema"] for each in some)
    ended = [_row(each) for each in made.ended]
    if ended:
        schemas = {each.row["schema"]: each.schema for each in made.ended}
        if new := [schema_row(made.table, schema) for name, schema in schemas.items() if name not in known]:
            tx.put(SCHEMAS, new)  # a table of which no file is left has their columns
        tx.put(FILES, ended)
        tx.delete(FILES, [{name: row[name] for name in ("table", "partition", "chunk")} for row in ended])
    rows: list[dict[str, Any]] = [{**each.predicate.row(each.table), "added": datetime_of(each.added)} for each in made.markers]
    if rows:
        tx.put(PREDICATES, rows)


def _with_filters(store: Store, file: Stored) -> Stored:
    """The file with its Bloom filters, which nothing is decided by; without them where it cannot be read any more."""
    found = stored_file(store, file.info, filters=True) if file.row["bloom_filters"] else file
    return found if isinstance(found, Stored) else file


def _row(file: Stored) -> dict[str, Any]:
    return {**file.row, "added": datetime_of(file.added)}
