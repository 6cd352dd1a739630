"""The program ``bucketcatalog``. It stands outside of the package so that an interrupt while that is being loaded has its answer too."""

from __future__ import annotations

import sys

_INTERRUPTED = 130


def main() -> None:
    """Load the command line and run it."""
    try:
        from bucketcatalog.cli import main as command_line

        command_line()
    except KeyboardInterrupt:
        if sys.stderr is not None:
            sys.stderr.write("Interrupted. Next: Run it again.\n")
        sys.exit(_INTERRUPTED)
