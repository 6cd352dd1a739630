"""The command line of this package: the program ``bucketcatalog``, after all else and imported by nothing.

::

    changes       ``changes`` and ``diff``
    checkpoint    ``checkpoint``
    dump          ``dump`` and ``export``
    gc            ``gc``
    harvest       ``harvest``
    info          ``info``
    ls            ``ls`` and ``stat``
    metadata      the tables about the catalog itself, a command each
    pin           ``pin``
    prune         ``prune``
    restore       ``restore`` and ``clone``
    spark         ``spark``
    compiling     users' ``.proto`` files, compiled
    tables        ``tables``
    tag           ``tag``
    verify        ``verify`` and ``repair``
    commands      puts them together

Exit codes: 0, 1 (the operation failed; one line on standard error with the error's code and the next step), 2 (wrong usage). With
``--json`` standard output has one JSON document or JSON lines and nothing else.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

import pyarrow as pa

__all__ = ["main", "run"]


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code, and raises nothing."""
    from ..console.app import run as run_program
    from .commands import NAME, app, whose

    return run_program(app(arguments), arguments, name=NAME, whose=whose)


def main() -> None:
    """The entry point of the program ``bucketcatalog``."""
    try:
        # Imported here: it takes a while, in which people change their minds.
        _without_pandas()
        from ..console.app import main as run_program
        from .commands import NAME, app, whose

        program = app(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(128 + signal.SIGINT)  # as shells have it
    run_program(program, name=NAME, whose=whose)


def _without_pandas() -> None:
    """Answer Arrow's question, which it asks once, whether there is pandas with no.

    Where it is installed Arrow imports it with the first array that is made, which takes longer than most commands do, only to see that
    nothing is pandas' own. Whoever imports it, or calls ``to_pandas``, gets it as ever.
    """
    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas(MetaPathFinder):
    """Finds everything but pandas, which is not there."""

    @classmethod
    def find_spec(cls, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """None, which asks the next finder."""
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
