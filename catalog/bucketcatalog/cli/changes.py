"""``changes`` and ``diff``: what happened between two moments, event by event or in sum."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Annotated, Any

import typer

from ..catalog import Catalog
from ..console.options import CatalogArgument, Database, IgnoreCorruption, Json, Limit, StorageOption, open_catalog, snapshot_at
from ..console.output import print_rows, rows_of
from ..errors import NotFound
from ..model.times import looks_like_time, refuse_reversed_times
from ..query.snapshot import Snapshot
from ..state.conditions import prefix as begins_with

From = Annotated[str | None, typer.Option("--from", metavar="T|V", help="After this time or version, instead of all there is.")]
To = Annotated[str | None, typer.Option("--to", metavar="T|V", help="Up to this time or version, instead of now.")]
Table = Annotated[str, typer.Option("--table", "-t", metavar="TABLE", help="The table.")]
Bucket = Annotated[str | None, typer.Option("--bucket", metavar="NAME", help="Of this bucket alone; it may have ended.")]
Prefix = Annotated[str | None, typer.Option("--prefix", metavar="PREFIX", help="Of names that begin so.")]


def changes(
    catalog: CatalogArgument,
    start: From = None,
    end: To = None,
    table: Table = "objects",
    bucket: Bucket = None,
    prefix: Prefix = None,
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
    first, last = _moments(opened, database, start, end, ignore_corruption=ignore_corruption)
    if start is not None and end is not None and looks_like_time(start) and looks_like_time(end):
        refuse_reversed_times(start, end)
    name = last.database
    found = opened.changes(
        database=name,
        table=table,
        start=None if first is None else first.version,
        end=last.version,
        where=_narrowed([last, *([] if first is None else [first])], table, bucket, prefix),
        ignore_set_aside=ignore_set_aside,
        ignore_corruption=ignore_corruption,
    )
    shown = ["_commit_timestamp", "_change_type", *_identity(found.table.key), "_writer", "_revision"]
    rows = _with_buckets(opened, name, rows_of(found.to_batches()), as_json, ignore_corruption=ignore_corruption)
    print_rows(islice(rows, limit), shown, as_json=as_json, nothing="No change.")


def diff(
    catalog: CatalogArgument,
    start: From = None,
    end: To = None,
    table: Table = "objects",
    bucket: Bucket = None,
    prefix: Prefix = None,
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
    first, last = _moments(opened, database, start, end, ignore_corruption=ignore_corruption)
    name = last.database
    found = opened.diff(
        database=name,
        table=table,
        start=None if first is None else first.version,
        end=last.version,
        where=_narrowed([last, *([] if first is None else [first])], table, bucket, prefix),
        ignore_corruption=ignore_corruption,
    )
    sizes = ["content_length"] if "content_length" in found.table.by_name else []
    shown = ["_change_type", *sizes, *_identity(found.table.key)]
    rows = _with_buckets(opened, name, rows_of(found.to_batches()), as_json, ignore_corruption=ignore_corruption)
    print_rows(islice(rows, limit), shown, as_json=as_json, nothing="No difference.")


def _moments(
    catalog: Catalog, database: str | None, start: str | None, end: str | None, *, ignore_corruption: bool
) -> tuple[Snapshot | None, Snapshot]:
    """The start, if one is asked for, and the end; the start is read first: nothing is in it that came after the end."""
    name = catalog.resolve_database(database, ignore_corruption=ignore_corruption)
    first = None if start is None else snapshot_at(catalog, name, start, ignore_corruption=ignore_corruption)
    return first, snapshot_at(catalog, name, end, ignore_corruption=ignore_corruption)


def _narrowed(snapshots: Sequence[Snapshot], table: str, bucket: str | None, prefix: str | None) -> dict[str, Any]:
    """The conditions of a bucket, whichever of the snapshots has it, or had it once, and of the beginning of names."""
    of_names = {} if prefix is None else {"name": begins_with(prefix)}
    if bucket is None:
        return of_names
    if table == "buckets":
        return {"name": bucket}
    both = [(snapshot, table) for snapshot in snapshots for table in ("buckets", "deleted_buckets")]
    scans = [snapshot.scan(table, columns=["owner", "id"], where={"name": bucket}) for snapshot, table in both]
    rows = [row for scan in scans for row in scan.to_arrow().to_pylist()]
    if not rows:
        raise NotFound(
            f"There is no bucket {bucket!r} in database {snapshots[0].database!r}, and there was none.",
            next_step="See bucketcatalog ls CATALOG; with --deleted it shows those that have ended.",
        )
    return {"owner": sorted({row["owner"] for row in rows}), "bucket_id": sorted({row["id"] for row in rows}), **of_names}


def _identity(key: Iterable[str]) -> list[str]:
    """The columns that name a row for people: an object's owner and bucket id say less than the bucket's name."""
    names = list(key)
    return ["bucket", *names[2:]] if names[:2] == ["owner", "bucket_id"] else names


def _with_buckets(
    catalog: Catalog, database: str, rows: Iterator[dict[str, Any]], as_json: bool, *, ignore_corruption: bool
) -> Iterator[dict[str, Any]]:
    if as_json:
        yield from rows
        return
    snapshot = catalog.snapshot(database=database, ignore_corruption=ignore_corruption)
    known: dict[str, str] = {}
    for table in ("deleted_buckets", "buckets"):
        found = snapshot.scan(table, columns=["id", "name"]).to_arrow()
        known |= dict(zip(found["id"].to_pylist(), found["name"].to_pylist(), strict=True))
    for row in rows:
        yield {**row, "bucket": known.get(row.get("bucket_id", ""), row.get("bucket_id"))}


COMMANDS = {"changes": changes, "diff": diff}
