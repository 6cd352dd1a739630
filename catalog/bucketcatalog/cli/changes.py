"""``changes`` and ``diff``: what happened between two moments, event by event or in sum."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer

from ..console.options import (
    CatalogArgument,
    Database,
    IgnoreCorruption,
    Json,
    Limit,
    Owner,
    StorageOption,
    asked_at,
    open_catalog,
)
from ..console.output import print_rows, rows_of
from ..model.parents import name_column
from ..model.times import span_of
from ..query.changes import Changes
from ..query.difference import Diff
from ..query.looked_up import LookedUp

From = Annotated[str | None, typer.Option("--from", metavar="T|V", help="After this time or version, instead of all there is.")]
To = Annotated[str | None, typer.Option("--to", metavar="T|V", help="Up to this time or version, instead of now.")]
Table = Annotated[str, typer.Option("--table", "-t", metavar="TABLE", help="The table.")]
Bucket = Annotated[str | None, typer.Option("--bucket", metavar="NAME", help="Of this bucket alone; it may have ended.")]
Prefix = Annotated[str | None, typer.Option("--prefix", metavar="PREFIX", help="Of names that begin so.")]
PreImages = Annotated[bool, typer.Option("--pre-images", help="Show what was there before, too.")]
_BEFORE, _SIZE = "_before", "content_length"


def changes(
    catalog: CatalogArgument,
    start: From = None,
    end: To = None,
    table: Table = "objects",
    bucket: Bucket = None,
    prefix: Prefix = None,
    owner: Owner = None,
    pre_images: PreImages = False,
    database: Database = None,
    limit: Limit = None,
    ignore_set_aside: Annotated[
        bool, typer.Option("--ignore-set-aside", help="Leave out the events of files that were set aside.")
    ] = False,
    ignore_corruption: IgnoreCorruption = False,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Every event between two moments: put, update, delete, purge, in the order in which they happened.

    Example: bucketcatalog changes ./catalog --from 2024-05-01 --to 2024-05-02T12:00:00Z
    """
    opened = open_catalog(catalog, storage_option)
    found = opened.changes(
        **_between(database, table, start, end, bucket=bucket, owner=owner, prefix=prefix, pre_images=pre_images),
        ignore_set_aside=ignore_set_aside,
        ignore_corruption=ignore_corruption,
    )
    shown = ["_commit_timestamp", "_change_type", *_identity(found), "_writer", "_revision"]
    _print(found, shown, pre_images, limit, as_json=as_json, nothing="No change.")


def diff(
    catalog: CatalogArgument,
    start: From = None,
    end: To = None,
    table: Table = "objects",
    bucket: Bucket = None,
    prefix: Prefix = None,
    owner: Owner = None,
    pre_images: PreImages = False,
    database: Database = None,
    limit: Limit = None,
    ignore_corruption: IgnoreCorruption = False,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """How the state at one moment differs from the state at another: created, overwritten, modified, deleted.

    Example: bucketcatalog diff ./catalog --from @1714550400000000
    """
    opened = open_catalog(catalog, storage_option)
    found = opened.diff(
        **_between(database, table, start, end, bucket=bucket, owner=owner, prefix=prefix, pre_images=pre_images),
        ignore_corruption=ignore_corruption,
    )
    sizes = [_SIZE] if _SIZE in found.table.by_name else []
    _print(found, ["_change_type", *sizes, *_identity(found)], pre_images, limit, as_json=as_json, nothing="No difference.")


def _between(database: str | None, table: str, start: str | None, end: str | None, **narrowed: Any) -> dict[str, Any]:
    """What is asked of a catalog, with the moments that were typed: one that looks like seconds is told of."""
    for moment in span_of(start, end):
        asked_at(moment)
    return {"database": database, "table": table, "start": start, "end": end, **narrowed}


def _print(
    found: Changes | Diff | LookedUp, shown: list[str], pre_images: bool, limit: int | None, *, as_json: bool, nothing: str
) -> None:
    """The rows, for people those of the columns that are shown, and what was before with its size alone."""
    if as_json:
        print_rows(islice(rows_of(found.to_batches()), limit), shown, as_json=True, nothing=nothing)
        return
    with_before = pre_images and _SIZE in found.table.by_name
    read = found.only([*shown, *([_BEFORE] if with_before else [])])
    rows = rows_of(read.to_batches())
    if with_before:
        shown = [*shown, "before"]
        rows = ({**row, "before": (row[_BEFORE] or {}).get(_SIZE)} for row in rows)
    print_rows(islice(rows, limit), shown, as_json=False, nothing=nothing)


def _identity(found: Changes | Diff | LookedUp) -> list[str]:
    """The columns that name a row for people: an object's owner and bucket id say less than the bucket's name."""
    key, bucket = list(found.table.key), name_column(found.table)
    return key if bucket is None else [bucket, *key[2:]]


COMMANDS = {"changes": changes, "diff": diff}
