"""``rebuild`` and ``verify``: the catalog of data tables made anew from their files, and whether these are what it says."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from .... import limits
from ....console.findings import finding_facts, print_findings
from ....console.options import CatalogArgument, Database, Json, Maintainer, StorageOption, Yes, open_catalog
from ....console.output import finish, number, print_facts, size, visible, write
from ....console.progress import progress_line
from ....model.times import shown_age
from ..rebuild import Rebuilt, rebuild
from ..verify import verify

_GRACE = shown_age(limits.COLLECTION_GRACE)


def rebuild_(
    catalog: CatalogArgument,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Take in what a database that is there does not name, and what was deleted of it.")
    ] = False,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Adopt only what is older: what is younger may be committed yet.")
    ] = _GRACE,
    force: Annotated[bool, typer.Option("--force", help="Take an age at which writers may be under way.")] = False,
    yes: Yes = False,
    writer: Maintainer = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Make the catalog of data tables anew from their files, where nothing of it is left. A dry run unless --yes.

    It says what cannot be known. Of a catalog that is there it says which files no commit names, and with --adopt takes these in.

    Example: bucketcatalog iox rebuild s3://lake/metrics --yes
    """
    opened = open_catalog(catalog, storage_option)
    with progress_line("rebuilding") as tell:
        made = rebuild(
            opened,
            database=database,
            writer=writer,
            dry_run=not yes,
            adopt=adopt,
            older_than=older_than,
            force=force,
            progress=tell,
        )
    if as_json:
        print_facts(_document(made), as_json=True)
        return
    for finding in made.findings:
        write(visible(str(finding)))
    write(_outcome(made, adopt=adopt, yes=yes))
    finish()


def verify_(
    catalog: CatalogArgument,
    deep: Annotated[bool, typer.Option("--deep", help="Compare what every file says of itself with the catalog, too.")] = False,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Say which files of data tables are missing or are not what the catalog says; ends with 1 if there is an error among it.

    Example: bucketcatalog iox verify s3://lake/metrics --deep
    """
    opened = open_catalog(catalog, storage_option)
    with progress_line("verifying") as tell:
        found = verify(opened, database=database, deep=deep, progress=tell)
        print_findings(found, what=f"data tables of {opened.url}", as_json=as_json)


def _outcome(made: Rebuilt, *, adopt: bool, yes: bool) -> str:
    """One line of what was done, or would be, and with which options."""
    parts = [
        number(made.files, "file") + f" with {number(made.rows, 'row')}, {size(made.bytes)}" if made.files else "",
        f"{number(made.ended, 'file')} that had ended" if made.ended else "",
        number(made.deletions, "deletion") if made.deletions else "",
        f"the columns of {number(made.schemas, 'kind')} of file" if made.schemas else "",
    ]
    what = "; ".join(part for part in parts if part)
    if what:
        return f"Taken in: {what}." if made.version is not None else f"With --yes it takes in: {what}."
    waits = not made.whole and not adopt and any(finding.code == "PERHAPS_UNCOMMITTED" for finding in made.findings)
    return f"Nothing is taken in without --adopt{'' if yes else ' and --yes'}." if waits else "There is nothing to take in."


def _document(made: Rebuilt) -> dict[str, Any]:
    names = ("database", "whole", "listed", "files", "rows", "bytes", "ended", "deletions", "schemas", "tables", "version")
    return {**{name: getattr(made, name) for name in names}, "findings": [finding_facts(finding) for finding in made.findings]}
