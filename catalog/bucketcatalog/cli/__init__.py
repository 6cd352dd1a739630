"""The command line. ``app`` runs commands and turns errors into exit codes; each group of commands has a module; ``output`` alone prints.

Exit codes: 0, 1 (the operation failed; one line on standard error with the error's code and the next step), 2 (wrong usage). With
``--json`` standard output has one JSON document or JSON lines and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..console.codes import INTERRUPTED

__all__ = ["main", "run"]


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code, and raises nothing."""
    from .app import run as run_command

    return run_command(arguments)


def main() -> None:
    """The entry point of the program ``bucketcatalog``."""
    try:
        # Imported here: it takes a second, in which people change their minds.
        from .app import main as run_program
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(INTERRUPTED)
    run_program()
