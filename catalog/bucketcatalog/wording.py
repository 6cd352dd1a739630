"""In whose words users are told what to do: those of Python, unless a command line is being run.

A message that names an argument, or says what to call, names the flag and the command instead where whoever reads it has typed one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

_of_commands = False


def either(python: str, command: str) -> str:
    """What to tell who writes Python, or who has typed a command."""
    return command if _of_commands else python


@contextmanager
def words_of_commands() -> Iterator[None]:
    """Within it, in whatever thread, users are told what to type."""
    global _of_commands
    before, _of_commands = _of_commands, True
    try:
        yield
    finally:
        _of_commands = before


# What several messages tell users to do. CATALOG and catalog stand for the one at hand.


def how_to_verify() -> str:
    """What says which files are damaged, and what is lost with them."""
    return either("catalog.verify()", "bucketcatalog verify CATALOG")


def how_to_repair() -> str:
    """What says what can be done about that."""
    return either("catalog.repair()", "bucketcatalog repair CATALOG")


def how_to_list(table: str, command: str) -> str:
    """What shows a table about the catalog."""
    return either(f"snapshot.scan({table!r})", f"bucketcatalog {command} CATALOG")


def how_to_set_aside(file: str, *, force: bool = False) -> str:
    """What goes on without the events of a transaction."""
    return either(
        f"catalog.repair(set_aside=[{file!r}], {'force=True, ' * force}dry_run=False)",
        f"bucketcatalog repair CATALOG --set-aside {file} {'--force ' * force}--yes",
    )


def how_to_take_in(file: str) -> str:
    """What takes a file in again that was set aside, once it is whole."""
    return either(f"catalog.repair(take_in=[{file!r}], dry_run=False)", f"bucketcatalog repair CATALOG --take-in {file} --yes")


def how_to_join(writer: str) -> str:
    """What joins the branches of a writer's timeline."""
    return either(f"catalog.repair(join=[{writer!r}], dry_run=False)", f"bucketcatalog repair CATALOG --join {writer} --yes")


def how_to_void(commit: str) -> str:
    """What voids a commit from the future, which is named as ``WRITER@REVISION``."""
    return either(f"catalog.repair(void=[{commit!r}], dry_run=False)", f"bucketcatalog repair CATALOG --void {commit} --yes")


def how_to_drop(tag: str) -> str:
    """What drops a tag."""
    return either(f"catalog.drop_tag({tag!r})", f"bucketcatalog tag CATALOG {tag} --drop")
