"""``tables``: those of a database, and the user's own made known to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..catalog import DEFAULT_DATABASE, Catalog
from ..console.options import (
    AsOf,
    CatalogArgument,
    Database,
    IgnoreCorruption,
    Json,
    Limit,
    Maintainer,
    StorageOption,
    open_catalog,
    refuse_unwritable,
)
from ..console.output import finish, number, print_facts, visible_name, write
from ..console.progress import progress_line
from ..errors import InvalidOption
from ..format.compiled import include_path, tables_in
from ..format.definitions import table_of
from ..model.tables import Table
from ..write.commit import Committed
from .compiling import descriptors_of
from .metadata import show


def _print_include(asked: bool) -> None:
    if asked:
        write(str(include_path()))
        finish()
        raise typer.Exit


def tables(
    catalog: CatalogArgument,
    register: Annotated[
        Path | None,
        typer.Option(
            "--register",
            metavar="FILE",
            help="Make the tables known that a .proto declares, or a descriptor set that one was compiled to.",
        ),
    ] = None,
    proto_path: Annotated[
        list[Path] | None, typer.Option("--proto-path", metavar="DIR", help="Where a .proto's imports are, too; repeat it.")
    ] = None,
    include: Annotated[
        bool,
        typer.Option(
            "--include",
            is_eager=True,
            callback=_print_include,
            help="Print the folder in which compilers find bucketcatalog/v1/options.proto, and do nothing else.",
        ),
    ] = False,
    writer: Maintainer = None,
    database: Database = None,
    as_of: AsOf = None,
    limit: Limit = None,
    ignore_corruption: IgnoreCorruption = False,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """The tables of a database, their keys and columns; or declare your own, so that every reader of the database knows them.

    Example: bucketcatalog tables ./catalog --register runs.proto
    """
    if register is None:
        if proto_path or writer is not None:
            raise InvalidOption("There is nothing to register.", next_step="Give --register FILE, or leave the option out.")
        show("tables", catalog, database, as_of, limit, ignore_corruption, storage_option, as_json=as_json, nothing="No table.")
        return
    if as_of is not None or limit is not None or ignore_corruption:
        raise InvalidOption(
            "--as-of, --limit and --ignore-corruption are for who lists tables.", next_step="Leave them out, or --register."
        )
    refuse_unwritable(catalog)
    declared = tables_in(descriptors_of(register, proto_path or ()), str(register))
    opened = open_catalog(catalog, storage_option)
    opened.register(declared)
    name = _written_database(opened, database)
    found = [table_of(each) for each in declared]
    with progress_line("declaring tables"):
        committed = opened.declare([table.name for table in found], database=name, writer=writer)
    _say(found, name, committed, as_json=as_json)


def _written_database(catalog: Catalog, database: str | None) -> str:
    """The one that is named, else the only one there is, else the one that writing begins with."""
    if database is None and not catalog.databases():
        return DEFAULT_DATABASE
    return catalog.resolve_database(database)


def _say(found: list[Table], database: str, committed: Committed | None, *, as_json: bool) -> None:
    if as_json:
        tables = [{"table": t.name, "key": list(t.key), "columns": [column.name for column in t.columns]} for t in found]
        print_facts({"database": database, "version": committed.version if committed else None, "tables": tables}, as_json=True)
        return
    for table in found:
        write(f"{visible_name(table.name)}: {number(len(table.columns), 'column')}, key {', '.join(table.key)}")
    write(f"Declared by {committed.version}." if committed else "The database has them so already.")
    finish()


COMMANDS = {"tables": tables}
