"""What a read is of: one table at one cut, or the events of a table, or what differs in it, between two.

A relation is opened from options at ``load()``, where its cuts are fixed. It pickles as what it was opened from, with the cuts; a copy
opens the store anew and reads the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from bucketcatalog import Catalog, clock
from bucketcatalog.model.cuts import Cut
from bucketcatalog.model.render import chosen
from bucketcatalog.model.times import Moment, refuse_reversed_times
from bucketcatalog.query.changes import Changes
from bucketcatalog.query.database import MetadataTask
from bucketcatalog.query.difference import Diff
from bucketcatalog.query.looked_up import LookedUp
from bucketcatalog.query.metadata import METADATA_TABLES, metadata_schema
from bucketcatalog.query.reads import Read, ReadTask
from bucketcatalog.query.scan import Scan
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.query.views import Projection, ViewScan
from bucketcatalog.where.conditions import Where
from bucketcatalog.where.given import Predicate
from bucketcatalog.where.timed import settled

from ..options import ReadOptions, settled_options
from .conditions import conditions, conditions_between, refuse_conditions


@dataclass(frozen=True)
class Pinned:
    """Options with everything resolved that could change: the database, the cuts, the bucket's ids, times in conditions."""

    options: ReadOptions
    database: str
    version: str
    start: str
    where: Where | Predicate


class Relation(ABC):
    """The base of what can be read. ``where`` are the conditions that the options set."""

    def __init__(self, pinned: Pinned) -> None:
        self.options = pinned.options
        self.where = pinned.where
        self._pinned = pinned

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._pinned,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.options.table!r}, {self._pinned.version!r})"

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog, opened in this process."""
        return Catalog(self.options.path, storage_options=self.options.storage)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The cut that was pinned."""
        pinned = self._pinned
        return self.catalog.snapshot(
            database=pinned.database, version=pinned.version, ignore_corruption=self.options.ignore_corruption
        )

    @property
    def schema(self) -> pa.Schema:
        """The columns that the options ask for, else those that are shown without being asked for."""
        if self.options.columns is None:
            return self.shown
        return chosen(self.options.table, self.available, self.options.columns)

    @property
    @abstractmethod
    def shown(self) -> pa.Schema:
        """The columns that are shown without being asked for."""

    @property
    def available(self) -> pa.Schema:
        """The columns that can be asked for."""
        return self.shown

    def check(self) -> None:
        """An error where there is no such table, or it does not take what is asked of it."""
        refuse_conditions(self.options)

    @abstractmethod
    def tasks(self, columns: Sequence[str]) -> list[ReadTask]:
        """What Spark's tasks read of these columns, each by itself."""

    def of_table(self, table: str) -> Relation:
        """Another table, with the same options, at the same cut."""
        return self._with(table=table)

    def of_columns(self, columns: Sequence[str]) -> Relation:
        """These columns of the same."""
        return self._with(columns=tuple(columns))

    def _with(self, **options: Any) -> Relation:
        pinned = replace(self._pinned, options=replace(self.options, **options))
        return _opened(pinned, self.catalog, self.snapshot)


@dataclass(frozen=True)
class Joined:
    """What a read looks up: tables to be joined by their first columns, and the columns that it has then."""

    tables: list[pa.Table]
    schema: pa.Schema


class TableRelation(Relation):
    """Live rows or tombstones, of a table, a view, or what a system reads by itself."""

    @property
    def shown(self) -> pa.Schema:
        """The columns that are shown without being asked for, with ``deleted_at`` of tombstones."""
        return self._whole.schema

    @property
    def available(self) -> pa.Schema:
        """What is shown on request, too."""
        return self._whole.available

    def tasks(self, columns: Sequence[str]) -> list[ReadTask]:
        """Key ranges, planned from indexes."""
        return self._read(columns, self.where).tasks(self.options.max_partition_rows)

    @property
    def lies_in_files(self) -> bool:
        """Whether its rows are those of a table, and not something that a system makes when it is read."""
        return self._whole.lies_in_files

    def in_files(self) -> tuple[Read, Projection | Joined | None]:
        """The read whose ``files`` hold the columns that are asked for, and what is made of that: of a view, and of what is looked up."""
        read = self._read(self.schema.names, self.where)
        if isinstance(read, LookedUp) and isinstance(read.source, Scan) and (tables := read.joins()) is not None:
            return read.source, Joined(tables, read.schema)
        if isinstance(read, ViewScan) and not read.projection.checks_rows:
            return read.source, read.projection
        return read, None

    def check(self) -> None:
        """An error where there is no such table, or a condition does not fit it."""
        self._read(self.options.columns, self.where)

    @cached_property
    def _whole(self) -> Read:
        """All of it, for what it says of itself."""
        return self._read(None, {})

    def _read(self, columns: Sequence[str] | None, where: Where | Predicate) -> Read:
        read = self.snapshot.scan(self.options.table, columns=columns, where=where, **self.options.of_read)
        assert isinstance(read, Read)
        return read


class MetadataRelation(Relation):
    """A table about the catalog."""

    @property
    def shown(self) -> pa.Schema:
        """The table's columns."""
        return metadata_schema(self.options.table)

    def tasks(self, columns: Sequence[str]) -> list[ReadTask]:
        """One: these tables are small."""
        pinned, asked = self._pinned, self.options
        return [MetadataTask(pinned.database, pinned.version, asked.table, tuple(columns), asked.ignore_corruption)]


class ChangesRelation(Relation):
    """The events of a table after ``start`` and up to the version."""

    def check(self) -> None:
        """An error where there is no such table, or none that changes, or the end lies before the start."""
        refuse_reversed_times(self.options.start, self.options.at)
        _ = self._changes

    @property
    def shown(self) -> pa.Schema:
        """What tells of the event, then the table's columns."""
        return self._changes.schema

    @property
    def available(self) -> pa.Schema:
        """What is looked up on request, too."""
        return self._changes.available

    def tasks(self, columns: Sequence[str]) -> list[ReadTask]:
        """Groups of transactions, and parts of large ones."""
        return self._changes.only(columns).tasks(self.options.max_partition_rows)

    @cached_property
    def _changes(self) -> Changes | LookedUp:
        pinned = self._pinned
        return self.catalog.changes(
            database=pinned.database,
            table=self.options.table,
            start=pinned.start,
            end=pinned.version,
            where=self.where,
            pre_images=self.options.pre_images,
            ignore_corruption=self.options.ignore_corruption,
        )


class DifferenceRelation(Relation):
    """What differs in a table between ``start`` and the version, which may be the earlier one."""

    def check(self) -> None:
        """An error where there is no such table, or none that changes."""
        _ = self._difference

    @property
    def shown(self) -> pa.Schema:
        """How each row differs, the table's columns, the versions before and after."""
        return self._difference.schema

    @property
    def available(self) -> pa.Schema:
        """What is looked up on request, too."""
        return self._difference.available

    def tasks(self, columns: Sequence[str]) -> list[ReadTask]:
        """Ranges of keys, planned from the indexes of both cuts."""
        return self._difference.only(columns).tasks(self.options.max_partition_rows)

    @cached_property
    def _difference(self) -> Diff | LookedUp:
        pinned = self._pinned
        return self.catalog.diff(
            database=pinned.database,
            table=self.options.table,
            start=pinned.start if self.options.start.given else None,
            end=pinned.version,
            where=self.where,
            pre_images=self.options.pre_images,
            ignore_corruption=self.options.ignore_corruption,
        )


def open_relation(options: Mapping[str, str], now: int | None = None, predicate: Predicate | None = None) -> Relation:
    """The relation that options ask for, with its cuts fixed now; a typed error where there is no such thing.

    Times that count from ``now``, by default the clock's, are fixed too. A ``predicate`` is what rows have to meet in place of ``where``.
    """
    now = clock.now_us() if now is None else now
    asked = ReadOptions.parse(settled_options(options, now))
    given = asked.where if predicate is None else predicate
    asked = replace(asked, where=given.at(now)) if isinstance(given, Predicate) else asked
    catalog = Catalog(asked.path, storage_options=asked.storage)
    database = catalog.resolve_database(asked.database, ignore_corruption=asked.ignore_corruption)
    # The start is read first: what is committed meanwhile must not look as if the start lay after the end.
    start = _snapshot(catalog, asked, asked.start, database) if asked.start.given else None
    snapshot = _snapshot(catalog, asked, asked.at, database)
    if asked.changes or asked.difference:
        where = conditions_between(start, snapshot, asked)
    else:
        where = {} if asked.table in METADATA_TABLES else conditions(snapshot, asked)
    pinned = Pinned(asked, database, snapshot.version, str(Cut() if start is None else start.cut), where)
    if asked.where and not isinstance(where, Predicate):
        shown = _made(pinned, catalog, snapshot).available
        pinned = replace(pinned, where=settled(where, shown, asked.table, now))
    return _opened(pinned, catalog, snapshot)


def _opened(pinned: Pinned, catalog: Catalog, snapshot: Snapshot) -> Relation:
    """The relation of a catalog and a snapshot that this process has just read; only copies have to open them again."""
    relation = _made(pinned, catalog, snapshot)
    relation.check()
    return relation


def _made(pinned: Pinned, catalog: Catalog, snapshot: Snapshot) -> Relation:
    relation = _kind(pinned.options)(pinned)
    relation.catalog, relation.snapshot = catalog, snapshot
    return relation


def _kind(asked: ReadOptions) -> type[Relation]:
    if asked.changes:
        return ChangesRelation
    if asked.difference:
        return DifferenceRelation
    return MetadataRelation if asked.table in METADATA_TABLES else TableRelation


def _snapshot(catalog: Catalog, asked: ReadOptions, at: Moment, database: str) -> Snapshot:
    found = catalog.snapshot(
        database=database,
        timestamp=at.timestamp,
        version=at.version,
        strict=asked.strict,
        ignore_corruption=asked.ignore_corruption,
    )
    if not found.cut.heads:
        # Nothing at that time, or nothing at all? The latter is an error.
        catalog.snapshot(database=found.database, ignore_corruption=asked.ignore_corruption)
    return found
