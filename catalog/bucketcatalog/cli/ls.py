"""``ls`` and ``stat``: buckets, objects, tombstones, and all versions of one object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any

import typer

from ..console.options import (
    AsOf,
    CatalogArgument,
    Database,
    IgnoreCorruption,
    Json,
    Limit,
    Owner,
    StorageOption,
    open_catalog,
    snapshot_at,
)
from ..console.output import print_facts, print_rows, rows_of
from ..errors import InvalidOption, NotFound
from ..query.named import Place, narrowed
from ..query.snapshot import Snapshot
from ..where.conditions import Where

_PAGE = 1_000
_STAMPS = ["_version", "_commit_timestamp", "_writer", "_revision"]
BucketArgument = Annotated[str, typer.Argument(metavar="BUCKET", help="The bucket's name or id.", show_default=False)]


def ls(
    catalog: CatalogArgument,
    bucket: Annotated[str | None, typer.Argument(metavar="BUCKET", help="The bucket's name or id.", show_default=False)] = None,
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="What the names begin with.", show_default=False)] = "",
    delimiter: Annotated[str | None, typer.Option("--delimiter", metavar="C", help="Show as one what is equal up to it.")] = None,
    as_of: AsOf = None,
    ignore_corruption: IgnoreCorruption = False,
    deleted: Annotated[bool, typer.Option("--deleted", help="List tombstones: what was there.")] = False,
    limit: Limit = None,
    owner: Owner = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """List buckets, or the objects of a bucket, in byte order of their names.

    Example: bucketcatalog ls ./catalog /usr share/ --delimiter /
    """
    snapshot = snapshot_at(open_catalog(catalog, storage_option), database, as_of, ignore_corruption=ignore_corruption)
    own = ["created", "owner", "id", "name"] if bucket is None else ["modified", "content_length", "name"]
    shown = ["deleted_at", *own] if deleted else own
    read = None if as_json else shown
    if bucket is None:
        if delimiter is not None:
            raise InvalidOption("Buckets are not grouped.", next_step="Leave out --delimiter, or name a bucket.")
        rows = rows_of(snapshot.scan("deleted_buckets" if deleted else "buckets", columns=read, owner=owner).to_batches())
        print_rows(islice(rows, limit), shown, as_json=as_json, nothing="No bucket.")
        return
    if deleted and delimiter is not None:
        raise InvalidOption("Tombstones are not grouped.", next_step="Leave out --delimiter or --deleted.")
    if deleted:
        rows = rows_of(snapshot.scan("deleted_objects", columns=read, bucket=bucket, owner=owner, prefix=prefix).to_batches())
    else:
        rows = _listing(snapshot, _key(snapshot, bucket, owner), prefix, delimiter, limit, read)
    print_rows(islice(rows, limit), shown, as_json=as_json, nothing="No object.")


def _key(snapshot: Snapshot, bucket: str, owner: str | None) -> Mapping[str, Any]:
    """The columns of an object's key that a bucket's name, or id, stands for."""
    return snapshot.with_ids(snapshot.table("objects"), {"bucket": bucket, **({} if owner is None else {"owner": owner})})


def _listing(
    snapshot: Snapshot,
    key: Mapping[str, Any],
    prefix: str,
    delimiter: str | None,
    limit: int | None,
    columns: Sequence[str] | None,
) -> Iterator[dict[str, Any]]:
    """Objects, and groups as rows with only a name, page by page; a group's name ends in the delimiter and has no id."""
    marker: Any = None
    while True:
        page = snapshot.list(
            "objects",
            prefix=prefix,
            delimiter=delimiter,
            marker=marker,
            limit=min(limit or _PAGE, _PAGE),
            **key,
        )
        yield from _merged(rows_of([page.rows], columns), ({"name": group, "is_prefix": True} for group in page.groups))
        marker = page.next_marker
        if marker is None:
            return


def _merged(rows: Iterable[dict[str, Any]], groups: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted([*rows, *groups], key=lambda row: row["name"].encode())


def stat(
    catalog: CatalogArgument,
    bucket: BucketArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The object's name.", show_default=False)],
    as_of: AsOf = None,
    ignore_corruption: IgnoreCorruption = False,
    history: Annotated[bool, typer.Option("--history", help="Every version that the catalog saw, oldest first.")] = False,
    owner: Owner = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Everything about one object, or about all of its versions.

    The versions that a bucket itself keeps are rows of the table object_versions, and what was changed of a version shows in changes.

    Example: bucketcatalog stat ./catalog /usr bin/env --history
    """
    snapshot = snapshot_at(open_catalog(catalog, storage_option), database, as_of, ignore_corruption=ignore_corruption)
    where = narrowed([snapshot], snapshot.table("objects"), Place(bucket, owner), {"name": name}, ended=history) or {}
    live = list(_versions(snapshot, "objects", where))
    ended = list(_versions(snapshot, "deleted_objects", where)) if history else []
    if not live and not ended:
        raise NotFound(
            f"There is no object {name!r} in bucket {bucket!r}{'' if as_of is None else f' as of {as_of}'}.",
            next_step="List what is there: bucketcatalog ls CATALOG BUCKET."
            if history
            else "See its past with --history, or list what is there: bucketcatalog ls CATALOG BUCKET.",
        )
    if not history:
        print_facts(live[0], as_json=as_json)
        return
    rows = sorted([*ended, *live], key=lambda row: (row["_commit_timestamp"], row["_version"]))
    shown = ["_commit_timestamp", "deleted_at", "content_length", "modified", "_writer", "_revision", "_version"]
    print_rows(({"deleted_at": None, **row} for row in rows), shown, as_json=as_json, nothing="")


def _versions(snapshot: Snapshot, table: str, where: Where) -> Iterator[dict[str, Any]]:
    names = snapshot.scan(table).schema.names
    return rows_of(snapshot.scan(table, columns=[*names, *_STAMPS], where=where).to_batches())


COMMANDS = {"ls": ls, "stat": stat}
