"""``gc``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from .. import limits
from ..catalog import Catalog
from ..console.options import CatalogArgument, Database, Json, Maintainer, StorageOption, Yes, open_catalog, parse_options
from ..console.output import Row, finish, number, print_facts, print_rows, write
from ..console.progress import progress_line
from ..errors import StoreError
from ..maintain.gc.boundaries import check_grace
from ..maintain.gc.collect import Collected
from ..maintain.gc.data import DataPlace
from ..maintain.gc.orphans import abandoned
from ..maintain.gc.reap import Reaped
from ..model.names import maintainer_id
from ..model.paths import transactions_prefix
from ..model.times import parse_age, shown_age, shown_time

GRACE = shown_age(limits.COLLECTION_GRACE)
"""The default of ``--older-than``."""
OlderThan = Annotated[str, typer.Option("--older-than", metavar="AGE", help="Only what is older, such as 90m, 24h or 7d.")]
DataUrl = Annotated[
    str | None,
    typer.Option("--data-url", metavar="TEMPLATE", help="Where data lies, such as s3://data/{owner}/{bucket_id}/{id}."),
]
DataOption = Annotated[
    list[str] | None, typer.Option("--data-option", metavar="K=V", help="An option of the store that data lies in; repeat it.")
]
PIN_AGE = shown_age(limits.PLAIN_PIN_AGE)
"""The default of ``--pin-age``."""
PinAge = Annotated[
    str, typer.Option("--pin-age", metavar="AGE", help="How long a tag of who is no maintainer holds what it names.")
]
Force = Annotated[bool, typer.Option("--force", help="Take an age that readers and writers may need, and wait for nobody.")]


def gc(
    catalog: CatalogArgument,
    older_than: OlderThan = GRACE,
    data: Annotated[
        bool, typer.Option("--data", help="Forget tombstones too, and delete their data where nothing needs it.")
    ] = False,
    reap: Annotated[
        bool, typer.Option("--reap", help="End the rows whose parent has ended too: objects of deleted buckets.")
    ] = False,
    orphans: Annotated[bool, typer.Option("--orphans", help="Delete data that no version names too.")] = False,
    data_url: DataUrl = None,
    data_option: DataOption = None,
    pin_age: PinAge = PIN_AGE,
    yes: Yes = False,
    force: Force = False,
    writer: Maintainer = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Throw away what puts have left that nobody finished; with --data, --reap and --orphans also what a database has no use for.

    Example: bucketcatalog gc s3://lake/inventory --older-than 24h --yes
    """
    opened = open_catalog(catalog, storage_option)
    opened.require()
    place: dict[str, Any] = {"data_url": data_url, "data_options": parse_options(data_option, "data") or None}
    found = DataPlace.given_by(data_url, place["data_options"], opened.store)
    if found is not None and orphans:
        found.require()
    data = data or (data_url is not None and not orphans)
    if data or reap or orphans:
        check_grace(parse_age(older_than), force=force)
    below = transactions_prefix(maintainer_id(writer), opened.databases()[0]) if yes else None
    _puts(opened, older_than, below, force=force, as_json=as_json)
    common: dict[str, Any] = {"database": database, "older_than": older_than, "dry_run": not yes, "force": force}
    problems: list[str] = []
    if reap:
        with progress_line("looking for rows whose parent has ended"):
            reaped = opened.reap(**common, writer=writer)
        _say("reap", {**asdict(reaped), **boundary_times(reaped)}, as_json=as_json)
    if data:
        with progress_line("collecting"):
            done = opened.collect(**common, **place, pin_age=pin_age, writer=writer)
        _say("data", collected_facts(done), as_json=as_json)
        problems += done.problems
    if orphans:
        problems += _orphans(opened, {**common, **place, "writer": writer}, older_than, as_json=as_json)
    refuse_problems(problems)


def _puts(opened: Catalog, older_than: str, below: str | None, *, force: bool, as_json: bool) -> None:
    """Throw away unfinished puts as the maintainer whose prefix is ``below``; without it only list them."""
    store = opened.store
    rows: list[Row] = []
    with progress_line("looking for unfinished puts") as tell:
        for put in list(abandoned(store, parse_age(older_than), below=below, force=force)):
            if below is not None:
                store.discard(put)
            rows.append({"name": put.name, "begun": shown_time(put.begun_us), "discarded": below is not None})
            tell(number(len(rows), "put"))
    print_rows(
        rows, ["begun", "discarded", "name"], as_json=as_json, nothing=f"No put is unfinished for longer than {older_than}."
    )


def _orphans(opened: Catalog, options: dict[str, Any], older_than: str, *, as_json: bool) -> list[str]:
    """Delete orphans, and print each; what went wrong."""
    problems: list[str] = []

    def rows() -> Iterator[Row]:
        for orphan in opened.orphans(**options):
            problems.extend([orphan.problem] if orphan.problem else [])
            shown = {
                "name": orphan.name,
                "bytes": orphan.bytes,
                "modified": shown_time(orphan.modified),
                "deleted": orphan.deleted,
            }
            yield {"section": "orphan", **shown} if as_json else shown

    if not as_json:
        write("orphans")
    columns = ["modified", "bytes", "deleted", "name"]
    print_rows(rows(), columns, as_json=as_json, nothing=f"All data older than {older_than} has a name in the catalog.")
    return problems[:10]


def refuse_problems(problems: Sequence[str]) -> None:
    """``StoreError`` where some data was not deleted."""
    if problems:
        raise StoreError(
            f"Some data was not deleted: {problems[0].removesuffix('.')}.",
            next_step="Remove the cause and run it again; nothing is lost.",
        )


def collected_facts(done: Collected) -> dict[str, Any]:
    """What a run did, as it is printed."""
    said = {"problems": list(done.problems), "why_left": list(done.why_left)}
    return {**asdict(done), **boundary_times(done), **said}


def boundary_times(done: Collected | Reaped) -> dict[str, str | None]:
    """The times of the boundaries that a run knows, as they are printed."""
    names = ("boundary", "published", "usable_from")
    return {name: shown_time(at) if (at := getattr(done, name)) else None for name in names}


def _say(section: str, facts: dict[str, Any], *, as_json: bool) -> None:
    if not as_json:
        write(section)
    print_facts({"section": section, **facts} if as_json else facts, as_json=as_json)
    if not as_json and facts["dry_run"]:
        write("This is what would be done with --yes.")
    finish()


COMMANDS = {"gc": gc}
