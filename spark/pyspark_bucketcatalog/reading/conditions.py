"""The options ``bucket``, ``owner``, ``prefix`` and ``where`` as conditions on columns: of a table, of a view, or of what has changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bucketcatalog import InvalidOption
from bucketcatalog.query.changes import changed_table
from bucketcatalog.query.looked_up import LookedUp
from bucketcatalog.query.named import Place, narrowed
from bucketcatalog.query.scan import Scan
from bucketcatalog.query.snapshot import DELETED_PREFIX, Snapshot
from bucketcatalog.query.views import View, ViewScan
from bucketcatalog.where.conditions import Where
from bucketcatalog.where.given import Predicate

from ..options import ReadOptions

_OF_ROWS = {"bucket": "bucket", "owner": "owner", "prefix": "prefix", "where": "where", "on_schema_conflict": "onSchemaConflict"}


def conditions(snapshot: Snapshot, asked: ReadOptions) -> Where | Predicate:
    """What the options demand of rows; ``NotFound`` where there is no such bucket, ``InvalidOption`` where an option does not fit."""
    if not _place(asked):
        return asked.where
    read = snapshot.scan(asked.table)
    if isinstance(read, ViewScan):
        below: Any = _of_table(snapshot, replace(asked, table=read.view.of), {})
        shown = {_shown(read.view, column): condition for column, condition in below.items()}
        if isinstance(asked.where, Predicate):
            return asked.where.also(shown)
        if both := shown.keys() & asked.where.keys():
            raise InvalidOption(
                f"What {min(both)!r} has to be is said twice.", next_step="Leave it out of where, or the other option out."
            )
        return {**shown, **asked.where}
    if not isinstance(read, Scan | LookedUp):
        raise InvalidOption(
            f"{asked.table!r} is no table of the catalog.", next_step="Leave the options bucket, owner and prefix out."
        )
    return _of_table(snapshot, asked, asked.where)


def conditions_between(start: Snapshot | None, end: Snapshot, asked: ReadOptions) -> Where | Predicate:
    """The same of what lies between two snapshots: a bucket is also one that only the start has, or that has ended."""
    others = () if start is None else (Snapshot(end.files, start.view, end.definitions),)
    return narrowed([end, *others], changed_table(end, asked.table), _place(asked), asked.where, ended=True)


def _place(asked: ReadOptions) -> Place:
    return Place(asked.bucket, asked.owner, asked.prefix)


def _of_table(snapshot: Snapshot, asked: ReadOptions, where: Where | Predicate) -> Where | Predicate:
    tombstones = asked.table not in snapshot.definitions
    table = snapshot.table(asked.table.removeprefix(DELETED_PREFIX) if tombstones else asked.table)
    return narrowed([snapshot], table, _place(asked), where, ended=tombstones)


def _shown(view: View, column: str) -> str:
    name = view.shown_as(column)
    if name is None:
        raise InvalidOption(
            f"The view {view.name!r} does not show {column!r} of {view.of!r}.",
            next_step="Leave the options bucket, owner and prefix out, and filter what it shows.",
        )
    return name


def refuse_conditions(asked: ReadOptions) -> None:
    """``InvalidOption`` where options are given that a table about the catalog has no columns for."""
    for name, option in _OF_ROWS.items():
        if getattr(asked, name) not in (None, {}):
            raise InvalidOption(
                f"Table {asked.table!r} is about the catalog itself.", next_step=f"Leave the option {option} out."
            )
