"""``ls`` and ``stat``: buckets, objects, tombstones, and all versions of one object."""

from __future__ import annotations

import uuid
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
    StorageOption,
    open_catalog,
    snapshot_at,
)
from ..console.output import print_facts, print_rows, rows_of
from ..errors import InvalidOption, NotFound
from ..model.names import owner_id
from ..query.snapshot import Snapshot
from ..state.conditions import prefix as begins_with

_PAGE = 1_000
_STAMPS = ["_version", "_commit_timestamp", "_writer", "_revision"]


def _owner(given: str | None) -> str | None:
    return None if given is None else owner_id(given)


Owner = Annotated[
    str | None,
    typer.Option(
        "--owner",
        metavar="UUID",
        callback=_owner,
        help="Whose bucket, where several have one of that name; without a bucket, whose buckets.",
    ),
]
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
        of_owner = {"owner": owner} if owner is not None else {}
        rows = rows_of(snapshot.scan("deleted_buckets" if deleted else "buckets", columns=read, where=of_owner).to_batches())
        print_rows(islice(rows, limit), shown, as_json=as_json, nothing="No bucket.")
        return
    found = bucket_named(snapshot, bucket, owner, also_deleted=deleted, as_of=as_of)
    if deleted and delimiter is not None:
        raise InvalidOption("Tombstones are not grouped.", next_step="Leave out --delimiter or --deleted.")
    rows = _tombstones(snapshot, found, prefix, read) if deleted else _listing(snapshot, found, prefix, delimiter, limit, read)
    print_rows(islice(rows, limit), shown, as_json=as_json, nothing="No object.")


def _tombstones(
    snapshot: Snapshot, bucket: dict[str, Any], prefix: str, columns: Sequence[str] | None
) -> Iterator[dict[str, Any]]:
    where = {"owner": bucket["owner"], "bucket_id": bucket["id"], "name": begins_with(prefix)}
    return rows_of(snapshot.scan("deleted_objects", columns=columns, where=where).to_batches())


def _listing(
    snapshot: Snapshot,
    bucket: dict[str, Any],
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
            owner=bucket["owner"],
            bucket_id=bucket["id"],
        )
        yield from _merged(rows_of([page.rows], columns), ({"name": group, "is_prefix": True} for group in page.groups))
        marker = page.next_marker
        if marker is None:
            return


def _merged(rows: Iterable[dict[str, Any]], groups: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted([*rows, *groups], key=lambda row: row["name"].encode())


def bucket_named(
    snapshot: Snapshot, bucket: str, owner: str | None, *, also_deleted: bool = False, as_of: str | None = None
) -> dict[str, Any]:
    """The bucket of that name or id; of several with one name it takes the owner's. By its id, also one that has only objects."""
    of_owner, of = ({}, "") if owner is None else ({"owner": owner}, f" of owner {owner}")
    sought = [("name", table) for table in (["buckets", "deleted_buckets"] if also_deleted else ["buckets"])]
    if _is_uuid(bucket):
        sought += [("id", "buckets"), ("id", "deleted_buckets")]
    for column, table in sought:
        rows = snapshot.scan(table, columns=["owner", "id", "name"], where={column: bucket} | of_owner).to_arrow().to_pylist()
        distinct = {row["id"]: row for row in rows}
        if len(distinct) == 1:
            return dict(next(iter(distinct.values())))
        if distinct:
            raise _ambiguous(f"{bucket!r}{of}", distinct)
    found = _unregistered(snapshot, {"bucket_id": bucket} | of_owner) if _is_uuid(bucket) else None
    if found is not None:
        return found
    when, option = ("", "") if as_of is None else (f" as of {as_of}", f" --as-of {as_of}")
    raise NotFound(
        f"There is no bucket {bucket!r}{of} in database {snapshot.database!r}{when}.",
        next_step=f"See bucketcatalog ls CATALOG{option}; with --deleted it shows those that have ended, and their ids.",
    )


def _ambiguous(called: str, buckets: Mapping[str, dict[str, Any]]) -> InvalidOption:
    """The error that says of several buckets, by id, what tells them apart: an owner does where they have more than one."""
    owned = len({row["owner"] for row in buckets.values()}) > 1
    each = (f"{id_} of owner {buckets[id_]['owner']}" if owned else id_ for id_ in sorted(buckets))
    return InvalidOption(
        f"There are {len(buckets)} buckets {called}: {', '.join(each)}.",
        next_step="Give the id of one, or --owner." if owned else "Give the id of one.",
    )


def _unregistered(snapshot: Snapshot, where: dict[str, Any]) -> dict[str, Any] | None:
    """A bucket that no row tells of, from its objects; without an owner this may read them all."""
    for table in ("objects", "deleted_objects"):
        for batch in snapshot.scan(table, columns=["owner", "bucket_id"], where=where).to_batches():
            if len(batch):
                return {"owner": batch["owner"][0].as_py(), "id": batch["bucket_id"][0].as_py(), "name": where["bucket_id"]}
    return None


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


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
    found = bucket_named(snapshot, bucket, owner, also_deleted=history, as_of=as_of)
    where = {"owner": found["owner"], "bucket_id": found["id"], "name": name}
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


def _versions(snapshot: Snapshot, table: str, where: dict[str, Any]) -> Iterator[dict[str, Any]]:
    names = snapshot.scan(table).schema.names
    return rows_of(snapshot.scan(table, columns=[*names, *_STAMPS], where=where).to_batches())


COMMANDS = {"ls": ls, "stat": stat}
