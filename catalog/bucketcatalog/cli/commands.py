"""The program ``bucketcatalog``: its commands, each from the module of its group."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from ..console.app import program
from . import changes, checkpoint, dump, gc, harvest, info, ls, metadata, prune, restore, tag, verify

NAME = "bucketcatalog"

app = program(
    name=NAME,
    help="The inventory, history and catalog of any object store or file tree, kept in an object store and nowhere else.",
    epilog="A time is ISO 8601 (without zone: UTC) or @ and microseconds since the epoch. A version is a snapshot's version, "
    "WRITER@REVISION, a tag, or a revision where there is one writer.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            found = version("bucketcatalog")
        except PackageNotFoundError:
            found = "unknown"
        typer.echo(f"bucketcatalog {found}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The inventory, history and catalog of any object store or file tree, kept in an object store and nowhere else."""


for _group in (harvest, info, ls, metadata, changes, checkpoint, tag, restore, verify, gc, prune, dump):
    for _name, _command in _group.COMMANDS.items():
        app.command(_name)(_command)
