"""``retire``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ..console.options import CatalogArgument, Database, Json, StorageOption, Yes, open_catalog
from ..console.output import finish, print_facts, write
from ..maintain.retire import RetiredWriter
from ..model.times import shown_time


def retire(
    catalog: CatalogArgument,
    writers: Annotated[list[str], typer.Argument(metavar="WRITER...", help="Writers whose processes have ended for good.")],
    yes: Yes = False,
    writer: Annotated[
        str | None, typer.Option("--writer", "-w", metavar="W", help="The compactor that writes.  [default: compactor-HOST]")
    ] = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Retire writers for good: a checkpoint takes over what they committed, and in the end readers ask nothing for them any more.

    Example: bucketcatalog retire s3://lake/inventory node-7 --yes
    """
    result = open_catalog(catalog, storage_option).retire(writers, database=database, writer=writer, dry_run=not yes)
    if as_json:
        print_facts({"done": yes, **asdict(result)}, as_json=True)
        return
    for each in result.writers:
        write(f"{each.writer}, last commit {each.revision} of {shown_time(each.commit_time)}: {_told(each)}")
    if result.seals_at is not None:
        write(
            f"A checkpoint of everybody seals what is not yet from {shown_time(result.seals_at)} on, as this command does again."
        )
    finish()


def _told(each: RetiredWriter) -> str:
    if each.sealed:
        return "retired and sealed"
    return "retired: it commits no more" if each.retired else "would be retired, for good; --yes does it"


COMMANDS = {"retire": retire}
