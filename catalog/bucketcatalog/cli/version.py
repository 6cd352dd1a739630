"""``--version``: what is installed. It is told before anything is imported that takes long, for whoever asks for nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..console.output import finish, write

NAME = "bucketcatalog"
"""The program, and the distribution that it comes in."""
OPTION = "--version"


def is_all_of(arguments: Sequence[str]) -> bool:
    """Whether these arguments ask for the version and nothing else, not even for wrong usage to be told."""
    return list(arguments) == [OPTION]


def print_version(**_: Any) -> None:
    """The version; it can stand in place of the commands, for a program that was asked for nothing but that."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version(NAME)
    except PackageNotFoundError:
        found = "unknown"
    write(f"{NAME} {found}")
    finish()
