"""The command line of this package: the program ``bucketcatalog``. ``commands`` puts it together; each group of commands has a module.

Exit codes: 0, 1 (the operation failed; one line on standard error with the error's code and the next step), 2 (wrong usage). With
``--json`` standard output has one JSON document or JSON lines and nothing else.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

__all__ = ["main", "run"]


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code, and raises nothing."""
    from ..console.app import run as run_program
    from .commands import NAME, app

    return run_program(app, arguments, name=NAME)


def main() -> None:
    """The entry point of the program ``bucketcatalog``."""
    try:
        # Imported here: it takes a second, in which people change their minds.
        from ..console.app import main as run_program
        from .commands import NAME, app
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(128 + signal.SIGINT)  # as shells have it
    run_program(app, name=NAME)
