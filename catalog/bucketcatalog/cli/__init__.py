"""The command line of this package: the program ``bucketcatalog``, after all else and imported by nothing.

::

    changes       ``changes`` and ``diff``
    questions     ``du``, ``top``, ``find``, ``dups``, ``age`` and ``cost``
    journal       ``growth`` and ``who``
    checkpoint    ``checkpoint``
    dump          ``dump``
    export        ``export``
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
    version       ``--version``
    commands      puts them together

Exit codes: 0, 1 (the operation failed; one line on standard error with the error's code and the next step), 2 (wrong usage). With
``--json`` standard output has one JSON document or JSON lines and nothing else.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..console.app import Commands, Whose

__all__ = ["main", "run"]

_THREADS = "OPENBLAS_NUM_THREADS"


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code, and raises nothing."""
    from ..console.app import run as run_program
    from .version import NAME

    commands, whose = _asked_for(arguments)
    return run_program(commands, arguments, name=NAME, whose=whose)


def main() -> None:
    """The entry point of the program ``bucketcatalog``."""
    try:
        # Imported here: it takes a while, in which people change their minds.
        from ..console.app import main as run_program
        from ..console.app import starting
        from .version import NAME, is_all_of

        with starting():
            if not is_all_of(sys.argv[1:]):
                _import_arrow()
            commands, whose = _asked_for(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(128 + signal.SIGINT)  # as shells have it
    run_program(commands, name=NAME, whose=whose)


def _asked_for(arguments: Sequence[str]) -> tuple[Commands, Whose]:
    """What runs these arguments, and who says whose command that is."""
    from .version import is_all_of, print_version

    if is_all_of(arguments):
        return print_version, lambda _: None
    from .commands import app, to_complete, whose

    return app(arguments or to_complete(os.environ)), whose


def _import_arrow() -> None:
    """Import Arrow, and NumPy with it, without what takes longer than most commands do and none has a use for.

    NumPy's linear algebra would start a thread for each core; whoever says in the environment how many it is to have gets these. Arrow
    would import pandas with the first array that is made, where it is installed, only to see that nothing is pandas' own: its question,
    which it asks once, is answered with no. Whoever imports pandas, or calls ``to_pandas``, gets it as ever.
    """
    is_said = _THREADS in os.environ
    os.environ.setdefault(_THREADS, "1")
    sys.meta_path.insert(0, _NoPandas)
    try:
        import pyarrow as pa

        pa.array([])
    finally:
        sys.meta_path.remove(_NoPandas)
        if not is_said:
            del os.environ[_THREADS]  # other programs, which are started from here, have a use for them


class _NoPandas:
    """Finds everything but pandas, which is not there."""

    @classmethod
    def find_spec(cls, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """None, which asks the next finder."""
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
