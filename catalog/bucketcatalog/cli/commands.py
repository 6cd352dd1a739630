"""The program ``bucketcatalog``: its commands, each from the module of its group.

A command is imported when it is asked for, and the others when somebody asks what there is: what only a harvest needs would make ``ls``
slower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Annotated

import typer

from ..console.app import program
from ..errors import BrokenSystem
from .version import NAME, OPTION, print_version

GROUPS = {
    "harvest": ("harvest",),
    "info": ("info",),
    "ls": ("ls", "stat"),
    "metadata": ("log", "writers", "checkpoints", "forks", "conflicts", "sums"),
    "tables": ("tables",),
    "changes": ("changes", "diff"),
    "questions": ("du", "top", "find", "dups", "age", "cost"),
    "journal": ("growth", "who"),
    "checkpoint": ("checkpoint",),
    "tag": ("tag",),
    "pin": ("pin",),
    "restore": ("restore", "clone"),
    "verify": ("verify", "repair"),
    "gc": ("gc",),
    "prune": ("prune",),
    "retire": ("retire",),
    "export": ("export",),
    "dump": ("dump",),
    "spark": ("spark",),
}
"""The commands of each module, in the order of the help."""
COMPLETES = f"_{NAME.upper()}_COMPLETE"
"""What the environment has where a shell asks how a command line can go on."""
OWN = frozenset(name for names in GROUPS.values() for name in names)
"""The commands of the program itself, which come before those of a system that is called so."""


def app(arguments: Sequence[str] = ()) -> typer.Typer:
    """The program with what it takes to run these arguments: the command that they begin with, else every one there is."""
    made = program(
        name=NAME,
        help="The inventory, history and catalog of any object store or file tree, kept in an object store and nowhere else.",
        epilog="A time T is ISO 8601 (without zone: UTC), what counts from now (24h, 2 days ago, now, today, yesterday), or @ and "
        "microseconds since the epoch. A version V is a snapshot's version, WRITER@REVISION, a tag, or a revision where there is one "
        "writer.",
        completes=True,
    )
    made.callback()(_root)
    asked = arguments[0] if arguments else ""
    own = [group for group, names in GROUPS.items() if asked in names]
    if not own and _add_systems(made, asked):
        return made
    for group in own or GROUPS:
        module = import_module(f".{group}", __package__)
        for name, command in module.COMMANDS.items():
            made.command(name, context_settings=getattr(module, "SETTINGS", {}).get(name))(command)
    return made


def to_complete(environment: Mapping[str, str]) -> list[str]:
    """The command that a shell wants the rest of, which it says in the environment of a program without arguments; else nothing."""
    line = environment.get("_TYPER_COMPLETE_ARGS") or environment.get("COMP_WORDS", "")
    if COMPLETES not in environment or environment.get("COMP_CWORD") == "1":
        return []
    words = line.split()
    return words[1:2] if len(words) > 2 or line[-1:].isspace() else []


def _add_systems(made: typer.Typer, asked: str) -> bool:
    """The commands of the installed system that is asked for, else that there are systems; whether it was one that is asked for."""
    from ..registry.installed import system
    from ..registry.system import system_names

    try:
        found = system(asked)
        commands: typer.Typer | None = found.part("commands") if found is not None else None
    except BrokenSystem as error:
        settings = {"allow_extra_args": True, "ignore_unknown_options": True}
        made.command(asked, context_settings=settings, add_help_option=False)(_failing(error))
        return True
    if found is not None:
        made.add_typer(commands or program(help=f"The system {asked} has no commands."), name=asked)
        return True
    for name in system_names():
        if name not in OWN:
            made.add_typer(program(help=_told(name)), name=name)
    return False


def _told(name: str) -> str:
    """What the help says of a system, which is not imported for it."""
    from ..registry.installed import entry_point

    try:
        entry_point(name)
    except BrokenSystem as error:
        return error.message
    return f"Commands of the system {name}."


def whose(arguments: Sequence[str]) -> tuple[str, str] | None:
    """The installed system whose command these arguments run, and what to call that; None for a command of the program itself."""
    from ..registry.system import system_names

    asked, *rest = [*arguments[:2], ""]
    if asked in OWN or asked not in system_names():
        return None
    return asked, "its commands" if rest[0][:1] in ("", "-") else f"its command {rest[0]!r}"


def _failing(error: BrokenSystem) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def _print_version(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


def _root(
    _: Annotated[bool, typer.Option(OPTION, callback=_print_version, is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    """The inventory, history and catalog of any object store or file tree, kept in an object store and nowhere else."""
