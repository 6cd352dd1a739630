"""Runs a command and turns whatever ends it into an exit code: 0, 1 for a failed operation, 2 for wrong usage."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, TextIO

import typer

from ..errors import BucketCatalogError, CatalogWarning, UsageError
from . import about, files, harvesting, history, information, objects, writing
from .output import PipeClosed, visible

_TRACEBACK = "BUCKETCATALOG_TRACEBACK"

app = typer.Typer(
    name="bucketcatalog",
    help="The inventory, history and catalog of any object store or file tree, kept in an object store and nowhere else.",
    epilog="A time is ISO 8601 (without zone: UTC) or @ and microseconds since the epoch. A version is a snapshot's version, "
    "WRITER@REVISION, or a revision where there is one writer.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        try:
            found = version("bucketcatalog")
        except PackageNotFoundError:
            found = "unknown"
        typer.echo(f"bucketcatalog {found}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """The inventory, history and catalog of any object store or file tree, kept in an object store and nowhere else."""


for _group in (harvesting, information, objects, about, history, writing, files):
    for _name, _command in _group.COMMANDS.items():
        app.command(_name)(_command)


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code, and raises nothing."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        warnings.simplefilter("always", CatalogWarning)
        try:
            app(args=list(arguments), prog_name="bucketcatalog")
            return 0
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except PipeClosed:
            return _quietly()
        except BucketCatalogError as error:
            _say(str(error))
            return 2 if isinstance(error, UsageError) else 1
        except Exception as error:
            if os.environ.get(_TRACEBACK):
                traceback.print_exc()
            _say(_unexpected(error))
            return 1


def main() -> None:
    """The entry point of the program ``bucketcatalog``."""
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _quietly()
    sys.exit(code)


def _unexpected(error: Exception) -> str:
    if isinstance(error, OSError):
        what = f"{error.strerror or error}{f': {error.filename!r}' if error.filename else ''}"
        return f"[OS] {what}. Next: Check the path and its permissions."
    return f"[INTERNAL] {type(error).__name__}: {error}. Next: Report this, with what {_TRACEBACK}=1 prints."


def _say(line: str) -> None:
    try:
        sys.stderr.write(visible(line) + "\n")
    except (BrokenPipeError, ValueError):
        return


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    _say(f"warning: {message}")


def _quietly() -> int:
    """Whoever reads the output has had enough; keep the interpreter from complaining when it ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return 0
    return 0
