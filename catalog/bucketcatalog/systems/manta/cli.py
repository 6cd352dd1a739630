"""``bucketcatalog manta``: the service's operations, garbage, placement, accounts, and the ways from and to PostgreSQL.

A command that changes something commits by a writer of this machine's, ``manta-HOST``, unless another is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Annotated, Any

import typer

from ... import clock
from ...catalog import DEFAULT_DATABASE, Catalog
from ...console.app import program
from ...console.options import AsOf, CatalogArgument, Database, Json, StorageOption, moment, open_catalog, snapshot_at
from ...console.output import plain, print_facts, print_rows, rows_of
from ...console.progress import progress_line
from ...errors import InvalidOption
from ...model.names import host_writer, owner_id
from ...query.snapshot import Snapshot
from ...write.host_turn import host_turn
from .accounting import BY, growth, usage
from .errors import BucketNotFound
from .from_postgres import import_database
from .names import MOST
from .operations import Manta
from .to_postgres import export_database

app = program(help="Buckets and objects as Manta's metadata service has them (RFD 149).")


@app.callback()
def _root() -> None:
    """Buckets and objects as Manta's metadata service has them (RFD 149)."""


def _owner(given: str | None) -> str | None:
    return None if given is None else owner_id(given)


Owner = Annotated[
    str | None,
    typer.Option("--owner", metavar="UUID", callback=_owner, help="Whose it is; not needed where one owner has such a bucket."),
]
WriterOption = Annotated[str | None, typer.Option("--writer", "-w", metavar="W", help="Who commits.  [default: manta-HOST]")]
BucketArgument = Annotated[str, typer.Argument(metavar="BUCKET", help="The bucket's name.", show_default=False)]
BucketOrNone = Annotated[str | None, typer.Argument(metavar="BUCKET", help="The bucket's name.", show_default=False)]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The object's name.", show_default=False)]
NameOrNone = Annotated[
    str | None, typer.Argument(metavar="NAME", help="The object's name; without one it is the bucket.", show_default=False)
]
ContentType = Annotated[str | None, typer.Option("--content-type", metavar="T", help="What it is, such as text/plain.")]
Header = Annotated[list[str] | None, typer.Option("--header", metavar="K=V", help="A header to keep; repeat it.")]
Properties = Annotated[str | None, typer.Option("--properties", metavar="JSON", help="Anything else, as JSON.")]
Condition = Annotated[
    list[str] | None,
    typer.Option("--if", metavar="C=V", help="match=ID, none-match=*, modified-since=T or unmodified-since=T; repeat it."),
]
Age = Annotated[str, typer.Option("--older-than", metavar="AGE", help="Of what was deleted so long ago at least.")]


@app.command()
def create(
    catalog: CatalogArgument,
    bucket: BucketArgument,
    name: NameOrNone = None,
    owner: Owner = None,
    id: Annotated[str | None, typer.Option("--id", metavar="UUID", help="The object's id.  [default: a new one]")] = None,
    content_length: Annotated[int | None, typer.Option("--content-length", metavar="N", help="How many bytes it has.")] = None,
    content_md5: Annotated[str | None, typer.Option("--content-md5", metavar="B64", help="Their MD5, as base64.")] = None,
    content_type: ContentType = None,
    header: Header = None,
    shark: Annotated[list[str] | None, typer.Option("--shark", metavar="DC:ID", help="Where a copy lies; repeat it.")] = None,
    properties: Properties = None,
    condition: Condition = None,
    writer: WriterOption = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Create a bucket, or the record of an object in one, which overwrites what has its name.

    Example: bucketcatalog manta create ./catalog photos cat.jpg --content-length 14917 --shark dc1:1.stor
    """
    with _node(catalog, storage_option, database, writer) as (opened, manta):
        if name is None:
            if owner is None:
                raise InvalidOption("A bucket is somebody's.", next_step="Give --owner UUID.")
            _show(manta.createbucket(owner=owner, name=bucket), as_json=as_json)
            return
        row = manta.createobject(
            **_below(opened, bucket, owner, database),
            name=name,
            id=id or str(clock.random_uuid()),
            content_length=content_length,
            content_md5=content_md5,
            content_type=content_type,
            headers=_pairs(header, "--header"),
            sharks=shark,
            properties=properties,
            conditions=_conditions(condition),
        )
        _show(row, as_json=as_json)


@app.command()
def get(
    catalog: CatalogArgument,
    bucket: BucketArgument,
    name: NameOrNone = None,
    owner: Owner = None,
    condition: Condition = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Show a bucket, or an object in one.

    Example: bucketcatalog manta get ./catalog photos cat.jpg --json
    """
    opened, manta = _reading(catalog, storage_option, database)
    if name is None:
        _show(_bucket(opened, manta, bucket, owner, database), as_json=as_json)
        return
    place = _below(opened, bucket, owner, database)
    _show(manta.getobject(**place, name=name, conditions=_conditions(condition)), as_json=as_json)


@app.command()
def update(
    catalog: CatalogArgument,
    bucket: BucketArgument,
    name: NameArgument,
    owner: Owner = None,
    content_type: ContentType = None,
    header: Header = None,
    properties: Properties = None,
    condition: Condition = None,
    writer: WriterOption = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Replace what describes an object: type, headers and properties, all of them.

    Example: bucketcatalog manta update ./catalog photos cat.jpg --content-type image/jpeg --header m-by=ann
    """
    with _node(catalog, storage_option, database, writer) as (opened, manta):
        row = manta.updateobject(
            **_below(opened, bucket, owner, database),
            name=name,
            content_type=content_type,
            headers=_pairs(header, "--header"),
            properties=properties,
            conditions=_conditions(condition),
        )
        _show(row, as_json=as_json)


@app.command()
def delete(
    catalog: CatalogArgument,
    bucket: BucketArgument,
    name: NameOrNone = None,
    owner: Owner = None,
    condition: Condition = None,
    with_objects: Annotated[
        bool, typer.Option("--with-objects", help="Delete the bucket though it has objects; they are reaped later.")
    ] = False,
    writer: WriterOption = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Delete a bucket, or an object in one; what it was stays as a record until it is collected.

    Example: bucketcatalog manta delete ./catalog photos cat.jpg
    """
    with _node(catalog, storage_option, database, writer) as (opened, manta):
        if name is None:
            found = _bucket(opened, manta, bucket, owner, database)
            manta.deletebucket(owner=found["owner"], name=bucket, only_empty=not with_objects)
            _show(found, as_json=as_json)
            return
        place = _below(opened, bucket, owner, database)
        (row,) = manta.deleteobject(**place, name=name, conditions=_conditions(condition))
        _show(row, as_json=as_json)


@app.command(name="list")
def list_(
    catalog: CatalogArgument,
    bucket: BucketOrNone = None,
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="What the names begin with.", show_default=False)] = "",
    owner: Owner = None,
    marker: Annotated[str | None, typer.Option("--marker", metavar="NAME", help="Only what comes after it.")] = None,
    delimiter: Annotated[str | None, typer.Option("--delimiter", metavar="C", help="Show as one what is equal up to it.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help=f"The page's size, up to {MOST:,}.")] = 1000,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """A page of an owner's buckets, or of a bucket's objects; with --json its last line is the marker of the next page, if there is one.

    Example: bucketcatalog manta list ./catalog photos 2024/ --delimiter /
    """
    opened, manta = _reading(catalog, storage_option, database)
    if bucket is None:
        if owner is None:
            raise InvalidOption("Buckets are listed by owner.", next_step="Give --owner UUID, or name a bucket.")
        page = manta.listbuckets(owner=owner, prefix=prefix, marker=marker, limit=limit)
        columns = ["created", "id", "name"]
    else:
        place = _below(opened, bucket, owner, database)
        page = manta.listobjects(**place, prefix=prefix, marker=marker, delimiter=delimiter, limit=limit)
        columns = ["modified", "content_length", "name"]
    rows = sorted([*page.rows, *page.groups], key=lambda row: str(row["name"]).encode())
    if page.next_marker is not None:
        rows.append(
            {"name" if not as_json else "next_marker": page.next_marker if as_json else f"... --marker {page.next_marker}"}
        )
    print_rows(_plain(rows), columns, as_json=as_json, nothing="Nothing.")


@app.command()
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
    """What was deleted first, for who frees the space, and the removal of its records.

    Example: bucketcatalog manta gc ./catalog --batch --json
    """
    columns = ["deleted_at", "content_length", "sharks", "bucket_id", "name"]
    if batch or delete is not None:
        if buckets or limit is not None or (batch and delete is not None):
            raise InvalidOption(
                "The batch of all nodes is of objects, and has a limit of its own.",
                next_step="Give --batch or --delete ID alone.",
            )
        with _node(catalog, storage_option, database, writer, grace=older_than) as (_, manta):
            if delete is not None:
                print_facts({"answer": manta.deletegcbatch(batch_id=delete)}, as_json=as_json)
                return
            told = manta.getgcbatch()
        if as_json:
            print_facts(plain(told), as_json=True)
        else:
            print_rows(_plain(told["garbage"]), columns, as_json=False, nothing="No garbage.")
            if told["batch_id"] is not None:
                print_facts({"batch_id": told["batch_id"]}, as_json=False)
        return
    _, manta = _reading(catalog, storage_option, database)
    most = 100 if limit is None else limit
    if buckets:
        rows, columns = manta.deletedbuckets(older_than=older_than, limit=most), ["deleted_at", "owner", "id", "name"]
    else:
        rows = manta.deletedobjects(older_than=older_than, limit=most)
    print_rows(_plain(rows), columns, as_json=as_json, nothing="No garbage.")


@app.command()
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
        rows: Sequence[Mapping[str, Any]] = _reading(catalog, storage_option, database)[1].placement.rows()
    else:
        with _node(catalog, storage_option, database, writer) as (_, manta):
            if nodes is not None:
                manta.placement.place(nodes, on or ())
            elif give is not None and to is not None:
                manta.placement.give(give, to)
            elif take is not None:
                manta.placement.take(take)
            rows = manta.placement.rows()
    print_rows(
        _plain(rows), ["node", "writer", "given_to"], as_json=as_json, nothing="Nothing is placed: any writer commits any name."
    )


@app.command(name="usage")
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
        place = {"owner": owner} if bucket is None else _place(snapshot, bucket, owner)
        counts = usage(snapshot, by, deleted=deleted, prefix=prefix, **place)
    print_rows(rows_of(counts.to_batches()), columns, as_json=as_json, nothing="Nothing.")


Dsn = Annotated[
    str,
    typer.Argument(
        metavar="DSN", help="The server, such as 'host=db dbname=manta user=me'; $VARIABLE reads it there.", show_default=False
    ),
]
Schema = Annotated[str, typer.Option("--schema", metavar="S", help="The schema of the four tables.")]


@app.command(name="import")
def import_(
    catalog: CatalogArgument,
    dsn: Dsn,
    schema: Schema = "public",
    batch: Annotated[int, typer.Option("--batch", metavar="N", help="So many rows a commit.")] = 10_000,
    empty_nulls: Annotated[bool, typer.Option("--empty-nulls", help="Take NULL values of headers for empty ones.")] = False,
    writer: WriterOption = None,
    database: Annotated[
        str, typer.Option("--database", "-d", metavar="D", help="The database to write to, of its own.")
    ] = "default",
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Import the RFD's four tables from PostgreSQL. Where it was interrupted the same command goes on.

    Example: bucketcatalog manta import ./catalog 'host=db dbname=manta' --schema manta_bucket_0
    """
    opened = open_catalog(catalog, storage_option)
    with (
        host_turn(opened.store, database, named=writer, default=host_writer("manta-")) as chosen,
        progress_line("importing rows") as tell,
    ):
        done = import_database(
            opened,
            _dsn(dsn),
            database=database,
            writer=chosen,
            schema=schema,
            batch=batch,
            hstore_nulls="empty" if empty_nulls else "refuse",
            progress=tell,
        )
    print_facts({**done.rows, "batches": done.batches, "resumed": done.resumed, "mapped": dict(done.mapped)}, as_json=as_json)


@app.command()
def export(
    catalog: CatalogArgument,
    dsn: Dsn,
    schema: Schema = "public",
    as_of: AsOf = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Export to PostgreSQL, into the RFD's four tables, which are made where there are none and have to be empty.

    Example: bucketcatalog manta export ./catalog 'host=db dbname=manta' --as-of 2026-01-01
    """
    opened = open_catalog(catalog, storage_option)
    opened.require()
    with progress_line("exporting rows") as tell:
        name = opened.resolve_database(database)
        done = export_database(opened, _dsn(dsn), database=name, schema=schema, progress=tell, **moment(as_of))
    print_facts({**done.rows, "hstore": done.hstore, "mapped": dict(done.mapped)}, as_json=as_json)


def _dsn(given: str) -> str:
    """A DSN may hold a password, which a command line shows to everybody on the machine."""
    if not given.startswith("$"):
        return given
    found = os.environ.get(given[1:])
    if found is None:
        raise InvalidOption(
            f"The variable {given[1:]} that the DSN is to be read from is not set.", next_step="Set it, or give the DSN."
        )
    return found


@contextmanager
def _node(
    catalog: str, storage_option: Sequence[str] | None, database: str | None, writer: str | None, **options: Any
) -> Iterator[tuple[Catalog, Manta]]:
    """A node that commits: by this machine's writer, in its turn, or by the one that is named."""
    opened = open_catalog(catalog, storage_option)
    name = DEFAULT_DATABASE if database is None and not opened.databases() else opened.resolve_database(database)
    with (
        host_turn(opened.store, name, named=writer, default=host_writer("manta-")) as chosen,
        Manta(opened, writer=chosen, database=name, **options) as manta,
    ):
        yield opened, manta


def _reading(catalog: str, storage_option: Sequence[str] | None, database: str | None) -> tuple[Catalog, Manta]:
    """A node that commits nothing."""
    opened = open_catalog(catalog, storage_option)
    opened.require()
    return opened, Manta(opened, writer=host_writer("manta-"), database=opened.resolve_database(database))


def _bucket(catalog: Catalog, manta: Manta, name: str, owner: str | None, database: str | None) -> dict[str, Any]:
    """The bucket of a name, of the owner that is named or the only one who has such a one."""
    place = _place(catalog.snapshot(database=database), name, owner)
    return manta.getbucket(owner=place["owner"], name=name)


def _below(catalog: Catalog, bucket: str, owner: str | None, database: str | None) -> dict[str, str]:
    return _place(catalog.snapshot(database=database), bucket, owner)


def _place(snapshot: Snapshot, name: str, owner: str | None) -> dict[str, str]:
    """What the objects of the bucket of a name begin their keys with."""
    where = {"name": name, **({} if owner is None else {"owner": owner})}
    found = snapshot.scan("buckets", columns=["owner", "id"], where=where).to_arrow().to_pylist()
    if not found:
        raise BucketNotFound(f"There is no bucket {name!r}.", next_step="Create it by bucketcatalog manta create.")
    if len(found) > 1:
        owners = ", ".join(row["owner"] for row in islice(found, 5))
        raise InvalidOption(f"{len(found)} owners have a bucket {name!r}.", next_step=f"Give --owner, such as one of {owners}.")
    return {"owner": found[0]["owner"], "bucket_id": found[0]["id"]}


def _pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in given or ()]
    if not all(equals and name for name, equals, _ in pairs):
        raise InvalidOption(f"A value of {option} is not of the form K=V.", next_step="Write K=V.")
    return {name: value for name, _, value in pairs}


def _conditions(given: Sequence[str] | None) -> dict[str, str]:
    return {f"if-{name.removeprefix('if-')}": value for name, value in _pairs(given, "--if").items()}


def _plain(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    return ({name: plain(value) for name, value in row.items()} for row in rows)


def _show(row: Mapping[str, Any], *, as_json: bool) -> None:
    print_facts({name: plain(value) for name, value in row.items()}, as_json=as_json)
