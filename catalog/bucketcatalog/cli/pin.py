"""``pin``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ..console.options import CatalogArgument, Database, IgnoreCorruption, Json, Maintainer, StorageOption, moment, open_catalog
from ..console.output import finish, print_facts, print_rows, rows_of, visible, write
from ..console.progress import progress_line
from ..errors import InvalidOption
from ..model.times import shown_time
from ..write.pins import Pin


def pin(
    catalog: CatalogArgument,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The pin; without one all are listed.", show_default=False)
    ] = None,
    after: Annotated[
        str | None,
        typer.Argument(
            metavar="T|V", help="The time or version after which history is kept, instead of now.", show_default=False
        ),
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Need it no more.")] = False,
    writer: Maintainer = None,
    ignore_corruption: IgnoreCorruption = False,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Keep what is committed after a version from being pruned, until the pin is dropped; move it; or list the pins there are.

    Example: bucketcatalog pin ./catalog nightly-export
    """
    opened = open_catalog(catalog, storage_option)
    if drop and (name is None or after is not None):
        raise InvalidOption(
            "--drop does not go with this.",
            next_step="Write pin CATALOG NAME [T|V], pin CATALOG NAME --drop, or pin CATALOG.",
        )
    if name is not None and ignore_corruption:
        raise InvalidOption(
            "--ignore-corruption is for who lists pins: nobody gives one past damage.",
            next_step="Leave it out, or leave out the name.",
        )
    if name is None:
        rows = rows_of([opened.snapshot(database=database, ignore_corruption=ignore_corruption).scan("pins").to_arrow()])
        print_rows(rows, ["name", "writer", "commit_timestamp", "until", "holds", "version"], as_json=as_json, nothing="No pin.")
        return
    at = moment(after)
    with progress_line(f"{'dropping' if drop else 'writing'} a pin"):
        done = (
            opened.unpin(name, database=database, writer=writer)
            if drop
            else opened.pin(name, database=database, writer=writer, **at)
        )
    _say(done, as_json=as_json)


def _say(pin: Pin, *, as_json: bool) -> None:
    if as_json:
        facts = {**asdict(pin), "commit_timestamp": shown_time(pin.commit_time)}
        del facts["commit_time"]
        print_facts(facts, as_json=True)
        return
    kept = "keeps nothing any more" if pin.dropped else f"keeps what is committed after {visible(pin.version)}"
    write(f"{pin.name} of {pin.writer} {kept}")
    finish()


COMMANDS = {"pin": pin}
