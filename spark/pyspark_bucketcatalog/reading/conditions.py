"""The options ``bucket``, ``owner`` and ``prefix`` as conditions on the columns of a table.

They mean columns by what the table declares: a bucket is a row of the table's parent (or of the table ``buckets`` itself) called by the
last column of its key; a prefix is one of the first text column of the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from bucketcatalog import InvalidOption, NotFound, prefix
from bucketcatalog.model.names import owner_id
from bucketcatalog.model.tables import DataType, Table
from bucketcatalog.query.changes import changed_table
from bucketcatalog.query.scan import Scan
from bucketcatalog.query.snapshot import DELETED_PREFIX, Snapshot
from bucketcatalog.query.views import View, ViewScan

from ..options import ReadOptions

OWNER = "owner"
_MOST_NAMED = 5
_OF_ROWS = {"bucket": "bucket", OWNER: OWNER, "prefix": "prefix", "where": "where", "on_schema_conflict": "onSchemaConflict"}


def conditions(snapshot: Snapshot, asked: ReadOptions) -> dict[str, Any]:
    """What the options demand of rows; ``NotFound`` where there is no such bucket, ``InvalidOption`` where an option does not fit."""
    if asked.bucket is None and asked.owner is None and asked.prefix is None:
        return dict(asked.where)
    read = snapshot.scan(asked.table)
    if isinstance(read, ViewScan):
        below = _of_table(snapshot, replace(asked, table=read.view.of))
        return _with_where({_shown(read.view, column): condition for column, condition in below.items()}, asked)
    if not isinstance(read, Scan):
        raise InvalidOption(
            f"{asked.table!r} is no table of the catalog.", next_step="Leave the options bucket, owner and prefix out."
        )
    return _with_where(_of_table(snapshot, asked), asked)


def conditions_between(start: Snapshot | None, end: Snapshot, asked: ReadOptions) -> dict[str, Any]:
    """The same of what lies between two snapshots: a bucket is also one that only the start has, or that has ended."""
    table = changed_table(end, asked.table)
    others = () if start is None else (Snapshot(end.files, start.view, end.definitions),)
    return _with_where(_on_columns([end, *others], table, asked, deleted=True), asked)


def _with_where(found: dict[str, Any], asked: ReadOptions) -> dict[str, Any]:
    """The conditions with those of the option ``where``; ``InvalidOption`` for a column that both are about."""
    both = next((column for column in asked.where if column in found), None)
    if both is not None:
        raise InvalidOption(f"The options name {both!r} twice.", next_step="Leave it out of where, or the other option out.")
    return {**found, **asked.where}


def _shown(view: View, column: str) -> str:
    name = view.shown_as(column)
    if name is None:
        raise InvalidOption(
            f"The view {view.name!r} does not show {column!r} of {view.of!r}.",
            next_step="Leave the options bucket, owner and prefix out, and filter what it shows.",
        )
    return name


def _of_table(snapshot: Snapshot, asked: ReadOptions) -> dict[str, Any]:
    tombstones = asked.table not in snapshot.definitions
    table = snapshot.table(asked.table.removeprefix(DELETED_PREFIX) if tombstones else asked.table)
    return _on_columns([snapshot], table, asked, deleted=tombstones)


def _on_columns(snapshots: Sequence[Snapshot], table: Table, asked: ReadOptions, *, deleted: bool) -> dict[str, Any]:
    """The conditions on the columns of a table. Buckets are looked for in all of the snapshots, where ``deleted`` also among tombstones."""
    found: dict[str, Any] = {}
    if asked.owner is not None:
        if OWNER not in table.by_name:
            raise InvalidOption(f"Table {table.name!r} has no owners.", next_step="Leave the option owner out.")
        found[OWNER] = _owner(table, asked.owner)
    if asked.bucket is not None:
        found |= _of_bucket(snapshots, table, asked, deleted=deleted)
    if asked.prefix is not None:
        column = next((c.name for c in table.key_columns if c.type is DataType.STRING and c.name not in found), None)
        if column is None:
            raise InvalidOption(f"The key of table {table.name!r} has no text left.", next_step="Leave the option prefix out.")
        found[column] = prefix(asked.prefix)
    return found


def _owner(table: Table, owner: str) -> str:
    """An owner as the table's column has it: in tables of the core a uuid."""
    return owner_id(owner) if table.by_name[OWNER].type is DataType.UUID else owner


def refuse_conditions(asked: ReadOptions) -> None:
    """``InvalidOption`` where options are given that a table about the catalog has no columns for."""
    for name, option in _OF_ROWS.items():
        if getattr(asked, name) not in (None, {}):
            raise InvalidOption(
                f"Table {asked.table!r} is about the catalog itself.", next_step=f"Leave the option {option} out."
            )


def _of_bucket(snapshots: Sequence[Snapshot], table: Table, asked: ReadOptions, *, deleted: bool) -> dict[str, Any]:
    if table.parent is None:
        if table.name != "buckets":
            raise InvalidOption(f"Table {table.name!r} has no buckets.", next_step="Leave the option bucket out.")
        return {table.key[-1]: asked.bucket}
    parent = snapshots[0].table(table.parent.table)
    rows = _buckets(snapshots, parent, asked, deleted=deleted)
    owners = rows.column(OWNER).unique().to_pylist() if OWNER in parent.by_name else []
    if len(owners) > 1:
        listed = ", ".join(sorted(owners)[:_MOST_NAMED]) + (", ..." if len(owners) > _MOST_NAMED else "")
        raise InvalidOption(
            f"{len(owners)} owners have a bucket {asked.bucket!r}: {listed}.", next_step="Name one of them with the option owner."
        )
    shared = {OWNER: owners[0]} if owners and OWNER in table.by_name else {}
    return {**shared, table.parent.column: rows.column(parent.id or parent.key[-1]).unique().to_pylist()}


def _buckets(snapshots: Sequence[Snapshot], parent: Table, asked: ReadOptions, *, deleted: bool) -> pa.Table:
    """The buckets of that name; where ``deleted`` also those that are gone themselves."""
    where = {parent.key[-1]: asked.bucket} | ({OWNER: _owner(parent, asked.owner)} if asked.owner is not None else {})
    columns = [name for name in dict.fromkeys((*parent.key, parent.id)) if name is not None]
    names = [parent.name, *([f"{DELETED_PREFIX}{parent.name}"] if deleted and parent.keeps_tombstones else [])]
    scans = [snapshot.scan(name, columns=columns, where=where) for snapshot in snapshots for name in names]
    rows = pa.concat_tables([scan.to_arrow() for scan in scans])
    if not len(rows):
        snapshot = snapshots[0]
        of = f" of owner {asked.owner}" if asked.owner is not None else ""
        at = "this version" if len(snapshots) == 1 else "either version"
        raise NotFound(
            f"There is no bucket {asked.bucket!r}{of} in database {snapshot.database!r} at {at}.",
            next_step=f"Use the name of one that there is: {_some(snapshot, parent)}.",
        )
    return rows


def _some(snapshot: Snapshot, parent: Table) -> str:
    """A few names of buckets."""
    first = next(snapshot.scan(parent.name, columns=[parent.key[-1]]).to_batches(), None)
    names = [repr(name) for name in first.column(0).slice(0, _MOST_NAMED).to_pylist()] if first is not None else []
    return ", ".join([*names, "..."] if len(names) == _MOST_NAMED else names) or "at this version there are none"
