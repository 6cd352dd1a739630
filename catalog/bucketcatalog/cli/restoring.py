"""``restore``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ..restoring import Restored
from .options import CatalogArgument, Database, Json, StorageOption, moment, open_catalog
from .output import finish, number, plain, print_facts, print_rows, visible_name, write
from .progress import progress_line

MaintainerOption = Annotated[
    str | None, typer.Option("--writer", "-w", metavar="W", help="Who writes.  [default: maintainer-HOST]")
]


def restore(
    catalog: CatalogArgument,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table, such as objects.", show_default=False)],
    to: Annotated[str, typer.Argument(metavar="T|V", help="The time or version that it is to be as.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it only says what would be done.")] = False,
    skip_collected: Annotated[
        bool, typer.Option("--skip-collected", help="Leave out rows whose data may be gone, instead of doing nothing.")
    ] = False,
    writer: MaintainerOption = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Make a table what it was at a time or version, in one transaction; what was committed since stays in the history.

    Example: bucketcatalog restore ./catalog objects before-cleanup --yes
    """
    opened = open_catalog(catalog, storage_option)
    at = moment(to)
    with progress_line(f"comparing {visible_name(table)} with what it was"):
        found = opened.restore(table, database=database, writer=writer, dry_run=not yes, skip_collected=skip_collected, **at)
    if as_json:
        print_facts({**asdict(found), "sample": [plain(row) for row in found.sample], "dry_run": not yes}, as_json=True)
        return
    _say(found, yes=yes)


def _say(found: Restored, *, yes: bool) -> None:
    total = found.put + found.updated + found.deleted
    if not total:
        write(f"{visible_name(found.table)} is what it was then: nothing to do.")
    else:
        done = f"{found.put:,} put again, {found.updated:,} updated, {found.deleted:,} deleted"
        write(f"{number(total, 'row')} of {visible_name(found.table)}: {done}{'' if yes else ' (with --yes)'}")
    if found.skipped:
        write(f"{number(found.skipped, 'row')} left out: their data may be gone{'' if yes else ' (with --skip-collected)'}")
    if found.ended_parents:
        ended = number(found.ended_parents, "row")
        write(f"first restore {found.parent}: {ended} of it that own some of these have ended")
    if found.committed is not None:
        write(f"committed {found.committed}")
    if total and not yes:
        print_rows((plain(row) for row in found.sample), list(found.sample[0]), as_json=False, nothing="")
        if len(found.sample) < total:
            write(f"and {total - len(found.sample):,} more")
    finish()


COMMANDS = {"restore": restore}
