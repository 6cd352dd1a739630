"""The program ``bucketcatalog``: its commands, each from the module of its group.

A command is imported when it is asked for, and the others when somebody asks what there is: what only a harvest needs would make ``ls``
slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from ..console.app import program
from ..errors import BrokenSystem

NAME = "bucketcatalog"
GROUPS = {
    "harvest": ("harvest",),
    "info": ("info",),
    "ls": ("ls", "stat"),
    "metadata": ("log", "writers", "tables", "checkpoints", "forks", "conflicts", "sums"),
    "changes": ("changes", "diff"),
    "checkpoint": ("checkpoint",),
    "tag": ("tag",),
    "restore": ("restore", "clone"),
    "verify": ("verify", "repair"),
    "gc": ("gc",),
    "prune": ("prune",),
    "dump": ("dump", "export"),
}
"""The commands of each module, in the order of the help."""


def app(arguments: Sequence[str] = ()) -> typer.Typer:
    """The program with what it takes to run these arguments: the command that they begin with, else every one there is."""
    made = program(
        name=NAME,
        help="The inventory, history and catalog of any object store or file tree, kept in an object store and nowhere else.",
        epilog="A time is ISO 8601 (without zone: UTC) or @ and microseconds since the epoch. A version is a snapshot's version, "
        "WRITER@REVISION, a tag, or a revision where there is one writer.",
    )
    made.callback()(_root)
    asked = arguments[0] if arguments else ""
    own = [group for group, names in GROUPS.items() if asked in names]
    if not own and _add_systems(made, asked):
        return made
    for group in own or GROUPS:
        for name, command in import_module(f".{group}", __package__).COMMANDS.items():
            made.command(name)(command)
    return made


def _add_systems(made: typer.Typer, asked: str) -> bool:
    """The commands of the installed system that is asked for, else that there are systems; whether it was one that is asked for."""
    from ..registry.installed import system
    from ..registry.system import broken, system_names

    try:
        found = system(asked)
        commands = found.part("commands") if found is not None else None
        if not isinstance(commands, typer.Typer | None):
            raise broken(asked, "its commands are no typer app")
    except BrokenSystem as error:
        made.command(asked, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(_failing(error))
        return True
    if found is not None:
        made.add_typer(commands or program(help=f"The system {asked} has no commands."), name=asked)
        return True
    for name in system_names():
        made.add_typer(program(help=f"Commands of the system {name}."), name=name)
    return False


def _failing(error: BrokenSystem) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            found = version("bucketcatalog")
        except PackageNotFoundError:
            found = "unknown"
        typer.echo(f"bucketcatalog {found}")
        raise typer.Exit


def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The inventory, history and catalog of any object store or file tree, kept in an object store and nowhere else."""
