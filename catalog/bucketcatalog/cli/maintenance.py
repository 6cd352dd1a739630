"""``gc``."""

from __future__ import annotations

from typing import Annotated

import typer

from ..abandoned import abandoned
from ..times import parse_age, shown_time
from .options import CatalogArgument, Json, StorageOption, open_catalog
from .output import number, print_rows
from .progress import progress_line


def gc(
    catalog: CatalogArgument,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Only what is older, such as 90m, 24h or 7d.")
    ] = "24h",
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it only says what would be done.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Take an age that writers may need.")] = False,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Throw away what puts have left that nobody finished: parts of multipart uploads, temporary files.

    Example: bucketcatalog gc s3://lake/inventory --older-than 24h --yes
    """
    opened = open_catalog(catalog, storage_option)
    opened.require()
    store = opened.store
    rows = []
    with progress_line("looking for unfinished puts") as tell:
        for put in list(abandoned(store, parse_age(older_than), force=force)):
            if yes:
                store.discard(put)
            rows.append({"name": put.name, "begun": shown_time(put.begun_us), "discarded": yes})
            tell(number(len(rows), "put"))
    print_rows(
        rows, ["begun", "discarded", "name"], as_json=as_json, nothing=f"No put is unfinished for longer than {older_than}."
    )


COMMANDS = {"gc": gc}
