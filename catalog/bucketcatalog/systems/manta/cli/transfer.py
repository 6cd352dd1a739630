"""``import`` and ``export``: the ways from and to PostgreSQL."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ....console.options import AsOf, CatalogArgument, Database, Json, StorageOption, moment, open_catalog
from ....console.output import print_facts
from ....console.progress import progress_line
from ....errors import InvalidOption
from ....model.names import host_writer
from ....write.host_turn import host_turn
from ..from_postgres import import_database
from ..to_postgres import export_database
from .opening import WriterOption

Dsn = Annotated[
    str,
    typer.Argument(
        metavar="DSN", help="The server, such as 'host=db dbname=manta user=me'; $VARIABLE reads it there.", show_default=False
    ),
]
Schema = Annotated[str, typer.Option("--schema", metavar="S", help="The schema of the four tables.")]


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
