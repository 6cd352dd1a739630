"""``export``: a table of the catalog, or what has changed in one, for other programs to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..catalog import Catalog
from ..console.options import (
    AsOf,
    CatalogArgument,
    Database,
    IgnoreCorruption,
    Json,
    Owner,
    StorageOption,
    moment,
    open_catalog,
    parse_options,
    snapshot_at,
)
from ..console.output import finish, number, print_facts, size, visible, write
from ..console.progress import Tell, progress_line
from ..errors import InvalidOption
from ..query.in_files import CSV, FILE_FORMATS, JSON_LINES, PARQUET, write_file
from ..query.snapshot import Snapshot

_INVENTORIES = {"s3-inventory": "parquet", "s3-inventory-csv": "csv"}
_ENDINGS = {".parquet": PARQUET, ".csv": CSV, ".csv.gz": CSV, ".jsonl": JSON_LINES, ".jsonl.gz": JSON_LINES}
_VERSIONS = {"objects": False, "object_versions": True}
"""The tables that an S3 Inventory can show, and whether it then has all versions."""


def export(
    catalog: CatalogArgument,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table, deleted_..., or a table about the catalog.")],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The file to write, .parquet, .csv or .jsonl, these two also .gz; one that is there is replaced."
        ),
    ],
    as_of: AsOf = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="T|V", help="Only what has changed since, with _change_type, as diff has it.")
    ] = None,
    events: Annotated[bool, typer.Option("--events", help="Every event, as changes has them, and not the sum of them.")] = False,
    columns: Annotated[
        list[str] | None, typer.Option("--columns", metavar="NAMES", help="These alone, with commas between; bucket is one, too.")
    ] = None,
    bucket: Annotated[
        str | None, typer.Option("--bucket", metavar="NAME", help="Of this bucket alone, by its name or id.")
    ] = None,
    prefix: Annotated[str | None, typer.Option("--prefix", metavar="PREFIX", help="Of names that begin so.")] = None,
    owner: Owner = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            "--partition-by", metavar="NAMES", help="FILE is a new directory, with one for each value of these columns."
        ),
    ] = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="F",
            help="parquet, csv, jsonl, s3-inventory or s3-inventory-csv.  [default: by FILE's ending; of partitions parquet]",
        ),
    ] = None,
    ignore_corruption: IgnoreCorruption = False,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Write a table, in the order of its keys, as a file; or a bucket as an S3 Inventory below FILE, a directory or a URL.

    Example: bucketcatalog export ./catalog objects cats.parquet --bucket cats --as-of 2024-05-01
    """
    chosen = _format(file, file_format, is_folder=bool(partition_by))
    opened = open_catalog(catalog, storage_option)
    snapshot = snapshot_at(opened, database, as_of, ignore_corruption=ignore_corruption)
    place = {"bucket": bucket, "prefix": prefix, "owner": owner}
    facts: dict[str, Any] = {"file": file, "table": table, "format": chosen}
    with progress_line(f"exporting {visible(table)}") as tell:
        if chosen in _INVENTORIES:
            given = {"--columns": columns, "--partition-by": partition_by, "--since": since, "--events": events}
            _refuse(next((option for option, value in given.items() if value), None), table)
            facts |= _inventory(snapshot, table, chosen, file, place, storage_option, tell)
        else:
            read = partial(_rows, opened, snapshot, table, since, events, place, ignore_corruption)
            parts = _names(partition_by)
            rows = _with_columns(read, _names(columns), parts or [])
            count = write_file(rows, file, chosen, partition_by=parts, tell=lambda done: tell(number(done, "row")))
            facts |= {"rows": count, "bytes": _bytes(Path(file))}
    if as_json:
        print_facts({**facts, "version": snapshot.version}, as_json=True)
        return
    write(f"{number(facts['rows'], 'row')}, {size(facts['bytes'])}: {visible(facts.get('manifest', file))}")
    finish()


def _format(file: str, given: str | None, *, is_folder: bool) -> str:
    """The format that is asked for, else that of the ending; of a directory of partitions Parquet. ``InvalidOption`` where none is said."""
    if file == "-":
        raise InvalidOption(
            "An export is a file, which is there whole or not at all: it does not go to standard output.",
            next_step="Name a file (./- is one of that name); ls, find, changes and diff print rows with --json.",
        )
    if given is not None:
        if given not in (known := [*FILE_FORMATS, *_INVENTORIES]):
            raise InvalidOption(f"There is no format {given!r}.", next_step=f"Take one of {', '.join(known)}.")
        return given
    found = next((kind for ending, kind in _ENDINGS.items() if file.endswith(ending)), None)
    if found is None and not is_folder and "://" not in file:
        ending = Path(file).suffix
        raise InvalidOption(
            f"No format ends in {ending!r}." if ending else f"{file!r} does not end in a format.",
            next_step=f"Take {', '.join(_ENDINGS)}, or name one: --format {PARQUET}.",
        )
    return found or PARQUET


def _names(given: Sequence[str] | None) -> list[str] | None:
    """Names with commas between, in one option or several."""
    return [name.strip() for some in given for name in some.split(",")] if given else None


def _with_columns(read: Callable[[list[str] | None], Any], columns: list[str] | None, parts: list[str]) -> Any:
    """What is to be written, and the columns that it is to be parted by, such as ``bucket``, which is there on request alone."""
    found = read(columns)
    missing = [name for name in parts if name not in found.schema.names]
    return read([*found.schema.names, *missing]) if missing else found


def _rows(
    catalog: Catalog,
    snapshot: Snapshot,
    table: str,
    since: str | None,
    events: bool,
    place: dict[str, Any],
    ignore_corruption: bool,
    columns: list[str] | None,
) -> Any:
    """What is to be written, planned but not read."""
    if since is None and not events:
        return snapshot.scan(table, columns=columns, **place)
    moment(since)
    read = catalog.changes if events else catalog.diff
    return read(
        database=snapshot.database,
        table=table,
        start=since,
        end=snapshot.version,
        columns=columns,
        ignore_corruption=ignore_corruption,
        **place,
    )


def _refuse(option: str | None, table: str) -> None:
    if option is not None:
        raise InvalidOption(f"An S3 Inventory has no {option}.", next_step="Leave it out, or take another format.")
    if table not in _VERSIONS:
        raise InvalidOption(
            f"The table {table!r} has no S3 Inventory.", next_step=f"Take {' or '.join(_VERSIONS)}, which has all versions."
        )


def _inventory(
    snapshot: Snapshot, table: str, kind: str, place: str, of: dict[str, Any], storage_option: list[str] | None, tell: Tell
) -> dict[str, Any]:
    """What was written, as facts. The options of the catalog's store are those of the other one too, where that is one."""
    from ..exports import s3_inventory

    options = parse_options(storage_option, "storage") if "://" in place else {}
    found = s3_inventory(
        snapshot,
        place,
        versions=_VERSIONS[table],
        file_format=_INVENTORIES[kind],
        storage_options=options or None,
        tell=lambda done: tell(number(done, "row")),
        **of,
    )
    return {
        "rows": found.rows,
        "bytes": found.bytes,
        "files": len(found.files),
        "manifest": f"{place.rstrip('/')}/{found.manifest}",
    }


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


COMMANDS = {"export": export}
