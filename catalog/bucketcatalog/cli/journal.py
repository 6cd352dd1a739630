"""``growth`` and ``who``: how much there was at other times, and who ended what is no more."""

from __future__ import annotations

from typing import Annotated

import typer

from ..console.answers import Form, places_of, print_answer
from ..console.options import (
    AsOf,
    BucketArgument,
    CatalogArgument,
    Csv,
    Database,
    Depth,
    IgnoreCorruption,
    Json,
    Limit,
    Owner,
    PrefixArgument,
    StorageOption,
    open_catalog,
    time_or_version,
)
from ..questions import growth as growth_of
from ..questions import who as who_ended


def growth(
    catalog: CatalogArgument,
    bucket: BucketArgument = None,
    prefix: PrefixArgument = None,
    every: Annotated[str, typer.Option("--every", metavar="AGE", help="How far times lie apart.")] = "1d",
    start: Annotated[
        str | None, typer.Option("--from", metavar="T", help="The first time, instead of that of the first commit.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="T|V", help="Up to this time or version, instead of now.")] = None,
    depth: Depth = None,
    ignore_corruption: IgnoreCorruption = False,
    limit: Limit = None,
    owner: Owner = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """How many objects and bytes there were at regular times, by bucket or by prefix, from the journal.

    Example: bucketcatalog growth ./catalog photos --every 7d --from 2024-01-01
    """
    form = Form(as_json, as_csv, limit)
    found = growth_of(
        open_catalog(catalog, storage_option),
        every=every,
        start=start,
        end=time_or_version(end),
        bucket=bucket,
        owner=owner,
        prefix=prefix,
        depth=depth,
        database=database,
        ignore_corruption=ignore_corruption,
    )
    shown = ["time", "objects", "bytes", *places_of(found)]
    print_answer(found, shown, form, nothing="No object at any time.")


def who(
    catalog: CatalogArgument,
    bucket: BucketArgument = None,
    prefix: PrefixArgument = None,
    since: Annotated[str | None, typer.Option("--since", metavar="T", help="Ended from then on, such as yesterday.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="T", help="Ended up to then.")] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="WHAT", help="writer, or object: each version.  [default: writer]")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="GLOB",
            help="Each version of objects of such names: what stands behind the last /, or with a / all.",
        ),
    ] = None,
    as_of: AsOf = None,
    ignore_corruption: IgnoreCorruption = False,
    limit: Limit = None,
    owner: Owner = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Who has deleted and overwritten objects, by writer and operation, or object by object.

    Example: bucketcatalog who ./catalog photos --since yesterday
    """
    form = Form(as_json, as_csv, limit)
    found = who_ended(
        open_catalog(catalog, storage_option),
        since=since,
        until=until,
        by=by,
        name=name,
        bucket=bucket,
        owner=owner,
        prefix=prefix,
        as_of=time_or_version(as_of),
        database=database,
        ignore_corruption=ignore_corruption,
    )
    of_writers = ["last", "first", "did", "objects", "bytes", "operation", "writer"]
    of_objects = ["deleted_at", "did", "content_length", "operation", "writer", "revision", "bucket", "name"]
    print_answer(found, of_writers if "objects" in found.column_names else of_objects, form, nothing="Nobody has ended anything.")


COMMANDS = {"growth": growth, "who": who}
