"""``create``, ``get``, ``update``, ``delete`` and ``list``: the operations on buckets and objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from .... import clock
from ....catalog import Catalog
from ....console.options import CatalogArgument, Database, Json, StorageOption
from ....console.output import plain, print_facts, print_rows
from ....errors import InvalidOption
from ..names import MOST
from ..operations import Manta
from .opening import BucketOrNone, Owner, WriterOption, node, place_of, plain_rows, reading, refuse_given

BucketArgument = Annotated[str, typer.Argument(metavar="BUCKET", help="The bucket's name.", show_default=False)]
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


_OF_A_BUCKET = "of a bucket, and no object's NAME was given"


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
    if name is None:
        described = {"content_length": content_length, "content_md5": content_md5, "content_type": content_type}
        kept = {"header": header, "shark": shark, "properties": properties}
        refuse_given(_OF_A_BUCKET, id=id, **described, **kept, **{"if": condition})
    with node(catalog, storage_option, database, writer) as (opened, manta):
        if name is None:
            if owner is None:
                raise InvalidOption("A new bucket has an owner.", next_step="Give --owner UUID.")
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
    if name is None:
        refuse_given(_OF_A_BUCKET, **{"if": condition})
    opened, manta = reading(catalog, storage_option, database)
    if name is None:
        _show(_bucket(opened, manta, bucket, owner, database), as_json=as_json)
        return
    place = _below(opened, bucket, owner, database)
    _show(manta.getobject(**place, name=name, conditions=_conditions(condition)), as_json=as_json)


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
    """Replace what describes an object: type, headers and properties, all of them; what is not given is none.

    Example: bucketcatalog manta update ./catalog photos cat.jpg --content-type image/jpeg --header m-by=ann
    """
    if content_type is None and not header and properties is None:
        raise InvalidOption(
            "Nothing says what the object is to be described by.", next_step="Give --content-type, --header or --properties."
        )
    with node(catalog, storage_option, database, writer) as (opened, manta):
        row = manta.updateobject(
            **_below(opened, bucket, owner, database),
            name=name,
            content_type=content_type,
            headers=_pairs(header, "--header"),
            properties=properties,
            conditions=_conditions(condition),
        )
        _show(row, as_json=as_json)


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
    if name is None:
        refuse_given(_OF_A_BUCKET, **{"if": condition})
    else:
        refuse_given("of an object", with_objects=with_objects)
    with node(catalog, storage_option, database, writer) as (opened, manta):
        if name is None:
            found = _bucket(opened, manta, bucket, owner, database)
            manta.deletebucket(owner=found["owner"], name=bucket, only_empty=not with_objects)
            _show(found, as_json=as_json)
            return
        place = _below(opened, bucket, owner, database)
        (row,) = manta.deleteobject(**place, name=name, conditions=_conditions(condition))
        _show(row, as_json=as_json)


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
    opened, manta = reading(catalog, storage_option, database)
    if bucket is None:
        refuse_given("of buckets", delimiter=delimiter)
        if owner is None:
            raise InvalidOption(
                "Buckets are listed by owner.",
                next_step=f"Give --owner UUID, or name a bucket; bucketcatalog ls {catalog} lists all.",
            )
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
    print_rows(plain_rows(rows), columns, as_json=as_json, nothing="Nothing.")


def _bucket(catalog: Catalog, manta: Manta, name: str, owner: str | None, database: str | None) -> dict[str, Any]:
    """The bucket of a name, of the owner that is named or the only one who has such a one."""
    place = place_of(catalog.snapshot(database=database), name, owner)
    return manta.getbucket(owner=place["owner"], name=name)


def _below(catalog: Catalog, bucket: str, owner: str | None, database: str | None) -> dict[str, str]:
    return place_of(catalog.snapshot(database=database), bucket, owner)


def _pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in given or ()]
    if not all(equals and name for name, equals, _ in pairs):
        raise InvalidOption(f"A value of {option} is not of the form K=V.", next_step="Write K=V.")
    return {name: value for name, _, value in pairs}


def _conditions(given: Sequence[str] | None) -> dict[str, str]:
    return {f"if-{name.removeprefix('if-')}": value for name, value in _pairs(given, "--if").items()}


def _show(row: Mapping[str, Any], *, as_json: bool) -> None:
    print_facts({name: plain(value) for name, value in row.items()}, as_json=as_json)
