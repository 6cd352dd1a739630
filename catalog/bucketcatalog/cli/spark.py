"""``spark``: submits the jobs of ``pyspark_bucketcatalog``, which this package does not import: it may lie beside, or not be there.

``spark-submit`` mixes what a job writes to standard output and to standard error. So the job writes its results to a file that the
environment names, and all else goes to standard error. Signals and the exit code go through.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidOption, NotFound

OUTPUT = "BUCKETCATALOG_JOB_OUTPUT"
"""The variable that names the file for what a job writes to standard output."""
JOBS = ("checkpoint", "gc", "harvest", "reap")
_FLAGS = frozenset({"--help", "--supervise", "--verbose", "--version", "-h", "-v"})
"""Options of ``spark-submit`` that take no value."""
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_INSTALL = "pip install bucketcatalog"


def spark(
    arguments: Annotated[
        list[str],
        typer.Argument(metavar="JOB", help="Options of spark-submit, a job, and what the job is given.", show_default=False),
    ],
) -> None:
    """Submit a job to Spark: harvest, checkpoint, gc or reap.

    Options before the job are those of spark-submit (--master, --deploy-mode, --conf K=V, --py-files, ...), and --submit PATH, which says
    which spark-submit it is. [default: that of SPARK_HOME, of PATH, or of PySpark as installed here]
    What comes after the job goes to it; JOB --help shows what it takes.

    Example: bucketcatalog spark --master 'local[4]' harvest /data ./catalog
    """
    submit, options, job = _taken_apart(arguments)
    command = [str(_submit(submit)), *options, str(_program()), *job]
    with tempfile.NamedTemporaryFile(prefix="bucketcatalog-") as output:
        code = _ended(command, _environment(os.environ, options) | {OUTPUT: output.name})
        shutil.copyfileobj(output, sys.stdout.buffer)
    raise typer.Exit(code)


def _ended(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit code of a command that has been run; it gets the signals that would end this process."""
    process = subprocess.Popen(command, env=environment, stdout=2)
    before = {number: signal.signal(number, lambda number, _: process.send_signal(number)) for number in _ENDING}
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code  # as shells have it


def _taken_apart(arguments: Sequence[str]) -> tuple[str | None, list[str], list[str]]:
    """The path of ``--submit``, the options of spark-submit, and the job with what it is given."""
    submit: str | None = None
    options: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-"):
            return submit, options, [_job(argument), *rest]
        if argument == "--submit" or argument.startswith("--submit="):
            submit = argument.partition("=")[2] if "=" in argument else _value(argument, rest)
        elif argument in _FLAGS or "=" in argument.partition(" ")[0]:
            options.append(argument)
        else:
            options += [argument, _value(argument, rest)]
    raise _no_job("No job is named.")


def _value(option: str, rest: Iterator[str]) -> str:
    value = next(rest, None)
    if value is None:
        raise InvalidOption(f"The option {option} has no value.", next_step="Give it one, and then the job.")
    return value


def _job(name: str) -> str:
    if name not in JOBS:
        raise _no_job(f"There is no job {name!r}.")
    return name


def _no_job(message: str) -> InvalidOption:
    return InvalidOption(message, next_step=f"Name one of {', '.join(JOBS)}, after the options of spark-submit.")


def _submit(given: str | None) -> Path:
    """The program ``spark-submit``."""
    if given is not None:
        if not os.access(given, os.X_OK):
            raise InvalidOption(f"{given!r} cannot be run.", next_step="Give the path of spark-submit with --submit.")
        return Path(given)
    places = [Path(home) / "bin" / "spark-submit" for home in (os.environ.get("SPARK_HOME"),) if home]
    places += [Path(path) for path in (shutil.which("spark-submit"),) if path]
    places += [Path(at) / "bin" / "spark-submit" for at in _locations("pyspark")]
    for place in places:
        if os.access(place, os.X_OK):
            return place
    raise NotFound(
        "There is no spark-submit on this machine: neither SPARK_HOME nor PATH leads to one, and PySpark is not installed.",
        next_step=f"Run {_INSTALL}, or say where it is with --submit PATH.",
    )


def _program() -> Path:
    """The jobs as a file that ``spark-submit`` runs."""
    for at in _locations("pyspark_bucketcatalog"):
        return Path(at) / "jobs" / "__main__.py"
    raise NotFound("The package pyspark_bucketcatalog is not installed beside this one.", next_step=f"Run {_INSTALL}.")


def _locations(package: str) -> Sequence[str]:
    """The directories of a package, which is not imported."""
    found = find_spec(package)
    return [] if found is None else found.submodule_search_locations or []


def _environment(given: Mapping[str, str], options: Sequence[str]) -> dict[str, str]:
    """With this Python for the driver, and for executors that are on this machine, where nobody says otherwise."""
    masters = [option.partition("=")[2] for option in options if option.startswith("--master=")]
    masters += [value for option, value in pairwise(options) if option == "--master"]
    here = {"PYSPARK_DRIVER_PYTHON": sys.executable}
    if all(master.startswith("local") for master in masters):
        here["PYSPARK_PYTHON"] = sys.executable
    return {**here, **given}


COMMANDS = {"spark": spark}
SETTINGS = {"spark": {"ignore_unknown_options": True, "allow_interspersed_args": False}}
"""What comes before and after the job is for others to understand."""
