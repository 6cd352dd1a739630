"""``tag``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ..console.options import CatalogArgument, Database, IgnoreCorruption, Json, Maintainer, StorageOption, moment, open_catalog
from ..console.output import finish, print_facts, print_rows, rows_of, visible, write
from ..console.progress import progress_line
from ..errors import InvalidOption
from ..model.times import shown_time
from ..write.tags import Tag


def tag(
    catalog: CatalogArgument,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The tag; without one all are listed.", show_default=False)
    ] = None,
    named: Annotated[
        str | None, typer.Argument(metavar="T|V", help="The time or version to name, instead of now.", show_default=False)
    ] = None,
    drop: Annotated[bool, typer.Option("--drop", help="Take the name back.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Give it the name though another version has or had it.")] = False,
    writer: Maintainer = None,
    ignore_corruption: IgnoreCorruption = False,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Give a name to a version, which can be used wherever a version can; take it back; or list the names there are.

    Example: bucketcatalog tag ./catalog before-cleanup 2024-05-01
    """
    opened = open_catalog(catalog, storage_option)
    if (drop and (named is not None or replace)) or (name is None and (drop or replace)):
        raise InvalidOption(
            f"{'--drop' if drop else '--replace'} does not go with this.",
            next_step="Write tag CATALOG NAME [T|V] [--replace], tag CATALOG NAME --drop, or tag CATALOG.",
        )
    if name is not None and ignore_corruption:
        raise InvalidOption(
            "--ignore-corruption is for who lists tags: nobody gives one past damage.",
            next_step="Leave it out, or leave out the name.",
        )
    if name is None:
        rows = rows_of([opened.snapshot(database=database, ignore_corruption=ignore_corruption).scan("tags").to_arrow()])
        shown = ["name", "created", "writer", "dropped", "replaced_writer", "replaced_commit_timestamp", "version"]
        print_rows(rows, shown, as_json=as_json, nothing="No tag.")
        return
    at = moment(named)
    with progress_line(f"{'dropping' if drop else 'writing'} a tag"):
        if drop:
            done = opened.drop_tag(name, database=database, writer=writer)
        else:
            done = opened.tag(name, database=database, writer=writer, replace=replace, **at)
    _say(done, as_json=as_json)


def _say(tag: Tag, *, as_json: bool) -> None:
    if as_json:
        facts = {**asdict(tag), "created": shown_time(tag.created), "commit_timestamp": shown_time(tag.commit_time)}
        del facts["commit_time"]
        print_facts(facts, as_json=True)
        return
    write(f"{tag.name} {'no longer names' if tag.dropped else 'names'} {visible(tag.version)}")
    finish()


COMMANDS = {"tag": tag}
