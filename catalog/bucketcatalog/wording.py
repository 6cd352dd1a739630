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
