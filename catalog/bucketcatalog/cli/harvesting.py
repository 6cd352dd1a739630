"""``harvest``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ..catalog import DEFAULT_DATABASE
from ..harvest import Harvested
from ..harvest import harvest as run_harvest
from .options import CatalogArgument, Json, StorageOption, WrittenDatabase, open_catalog
from .output import finish, number, plain, print_facts, size, visible_name, write
from .progress import progress_line

Globs = list[str] | None


def harvest(
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A directory, by path or file:// URL.", show_default=False)],
    catalog: CatalogArgument,
    database: WrittenDatabase = DEFAULT_DATABASE,
    writer: Annotated[
        str | None, typer.Option("--writer", "-w", metavar="W", help="The writer id.  [default: harvest-HOST-..., one a source]")
    ] = None,
    bucket: Annotated[str | None, typer.Option("--bucket", metavar="B", help="The bucket.  [default: the source's path]")] = None,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="UUID", help="The bucket's owner.  [default: derived from the host]")
    ] = None,
    include: Annotated[Globs, typer.Option("--include", metavar="GLOB", help="Only paths that match; repeat it.")] = None,
    exclude: Annotated[
        Globs, typer.Option("--exclude", metavar="GLOB", help="Leave alone what matches, here and in the catalog; repeat it.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Say what would change; write nothing.")] = False,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Bring the inventory of a directory up to date.

    The first run adds everything, a later one only what is new, overwritten or deleted. A run that was interrupted is completed by the
    next. Globs match the whole path below the source, * matches / too.

    Example: bucketcatalog harvest /usr ./catalog --exclude 'share/doc/*'
    """
    opened = open_catalog(catalog, storage_option)
    with progress_line(f"harvesting {visible_name(source)}") as tell:
        result = run_harvest(
            opened,
            source,
            database=database,
            writer=writer,
            bucket=bucket,
            owner=owner,
            include=include or (),
            exclude=exclude or (),
            dry_run=dry_run,
            progress=lambda state: tell(f"{number(state.entries, 'entry', 'entries')}, {number(state.changes, 'change')}"),
        )
    if as_json:
        print_facts(plain(asdict(result)), as_json=True)
    else:
        _say(result)


def _say(result: Harvested) -> None:
    would = "would be " if result.dry_run else ""
    write(
        f"{number(result.entries, 'entry', 'entries')}: {result.created:,} {would}created, {result.overwritten:,} {would}overwritten, "
        f"{result.deleted:,} {would}deleted, {result.unchanged:,} unchanged; {size(result.bytes)} changed"
    )
    if result.errors:
        write(f"{number(result.errors, 'entry', 'entries')} could not be catalogued: see the table harvest_errors")
    if not result.dry_run:
        write(f"{number(len(result.transactions), 'commit')} by {result.writer} in {result.seconds:.1f} s")
    finish()


COMMANDS = {"harvest": harvest}
