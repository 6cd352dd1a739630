"""``gc``, ``placement`` and ``usage``: what an operator of the nodes asks and says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from ....console.options import AsOf, CatalogArgument, Database, Json, StorageOption, moment, open_catalog, snapshot_at
from ....console.output import plain, print_facts, print_rows, rows_of
from ....errors import InvalidOption
from ....query.snapshot import Snapshot
from ..accounting import BY, growth, usage
from ..garbage import OF, TABLE
from ..names import MOST
from .opening import BucketOrNone, Owner, WriterOption, node, place_of, plain_rows, reading

Age = Annotated[str, typer.Option("--older-than", metavar="AGE", help="Of what was deleted so long ago at least.")]


def gc(
    catalog: CatalogArgument,
    buckets: Annotated[bool, typer.Option("--buckets", help="Deleted buckets, instead of objects.")] = False,
    older_than: Age = "24h",
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help=f"At most so many, up to {MOST:,}.  [default: 100]")
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="The batch of all nodes, the same until it is deleted.")] = False,
    delete: Annotated[
        str | None, typer.Option("--delete", metavar="ID", help="Remove that batch's records: their space was freed.")
    ] = None,
    writer: WriterOption = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """What was deleted first, for who frees the space, and the removal of its records: of --delete it is told how many those were.

    Example: bucketcatalog manta gc ./catalog --batch --json
    """
    columns = ["deleted_at", "content_length", "sharks", "bucket_id", "name"]
    if batch or delete is not None:
        if buckets or limit is not None or (batch and delete is not None):
            raise InvalidOption(
                "The batch of all nodes is of objects, and has a limit of its own.",
                next_step="Give --batch or --delete ID alone.",
            )
        with node(catalog, storage_option, database, writer, grace=older_than) as (opened, manta):
            if delete is not None:
                records = _records_of(opened.snapshot(database=database), delete)
                print_facts({"answer": manta.deletegcbatch(batch_id=delete), "records": records}, as_json=as_json)
                return
            told = manta.getgcbatch()
        if as_json:
            print_facts(plain(told), as_json=True)
        else:
            print_rows(plain_rows(told["garbage"]), columns, as_json=False, nothing="No garbage.")
            if told["batch_id"] is not None:
                print_facts({"batch_id": told["batch_id"]}, as_json=False)
        return
    _, manta = reading(catalog, storage_option, database)
    most = 100 if limit is None else limit
    if buckets:
        rows, columns = manta.deletedbuckets(older_than=older_than, limit=most), ["deleted_at", "owner", "id", "name"]
    else:
        rows = manta.deletedobjects(older_than=older_than, limit=most)
    print_rows(plain_rows(rows), columns, as_json=as_json, nothing="No garbage.")


def _records_of(snapshot: Snapshot, batch_id: str) -> int:
    """How many records the batch of that id has: none where it is not the batch, or not any more."""
    rows = snapshot.get_all(TABLE, [{"of": OF}], columns=["id", "records"]) if TABLE in snapshot.definitions else [None]
    return int(rows[0]["records"]) if rows[0] is not None and rows[0]["id"] == batch_id.lower() else 0


def placement(
    catalog: CatalogArgument,
    nodes: Annotated[int | None, typer.Option("--nodes", metavar="N", help="Divide the names among so many nodes.")] = None,
    on: Annotated[list[str] | None, typer.Option("--on", metavar="W", help="Whose the nodes are, in turn; repeat it.")] = None,
    give: Annotated[int | None, typer.Option("--give", metavar="NODE", help="Give a node of this writer's away.")] = None,
    to: Annotated[str | None, typer.Option("--to", metavar="W", help="Who is to take it over.")] = None,
    take: Annotated[int | None, typer.Option("--take", metavar="NODE", help="Take over a node that was given.")] = None,
    writer: WriterOption = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Which writer commits which names; or place them, and move nodes: --give by the one, then --take by the other.

    Example: bucketcatalog manta placement ./catalog --give 3 --to node-2 --writer node-1
    """
    if (give is None) != (to is None) or (nodes is None) != (not on):
        raise InvalidOption("--give goes with --to, and --nodes with --on.", next_step="Give both, or neither.")
    if sum(each is not None for each in (nodes, give, take)) > 1:
        raise InvalidOption("One thing at a time.", next_step="Give one of --nodes, --give and --take.")
    if nodes is None and give is None and take is None:
        rows: Sequence[Mapping[str, Any]] = reading(catalog, storage_option, database)[1].placement.rows()
    else:
        with node(catalog, storage_option, database, writer) as (_, manta):
            if nodes is not None:
                manta.placement.place(nodes, on or ())
            elif give is not None and to is not None:
                manta.placement.give(give, to)
            elif take is not None:
                manta.placement.take(take)
            rows = manta.placement.rows()
    print_rows(
        plain_rows(rows),
        ["node", "writer", "given_to"],
        as_json=as_json,
        nothing="Nothing is placed: any writer commits any name.",
    )


def usage_(
    catalog: CatalogArgument,
    bucket: BucketOrNone = None,
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="What the names begin with.", show_default=False)] = "",
    by: Annotated[str, typer.Option("--by", metavar="WHAT", help=f"One of {', '.join(BY)}.")] = "owner",
    deleted: Annotated[bool, typer.Option("--deleted", help="What collection will free, instead of what is used.")] = False,
    since: Annotated[str | None, typer.Option("--since", metavar="T|V", help="And how that has grown since.")] = None,
    owner: Owner = None,
    as_of: AsOf = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Objects and bytes by owner, bucket, content type or shark; what a deletion of them would free is the same.

    Example: bucketcatalog manta usage ./catalog --by shark --deleted
    """
    opened = open_catalog(catalog, storage_option)
    snapshot = snapshot_at(opened, database, as_of)
    columns = [*BY.get(by, ()), "objects", "bytes"]
    if since is not None:
        if deleted or bucket is not None or owner is not None:
            raise InvalidOption("Growth is that of everything.", next_step="Leave out --deleted, --owner and the bucket.")
        counts = growth(opened.snapshot(database=snapshot.database, **moment(since)), snapshot, by)
        columns += ["objects_grown", "bytes_grown"]
    else:
        place = {"owner": owner} if bucket is None else place_of(snapshot, bucket, owner)
        counts = usage(snapshot, by, deleted=deleted, prefix=prefix, **place)
    print_rows(rows_of(counts.to_batches()), columns, as_json=as_json, nothing="Nothing.")
