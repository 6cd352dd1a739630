"""Runs a command and turns whatever ends it into an exit code: 0, 1 for a failed operation, 2 for wrong usage.

Every program that has commands is run here: ``bucketcatalog``, and the jobs on Spark. What takes long to import is where it is needed:
not every run comes to have commands, or something to say of a store.
"""

from __future__ import annotations

import errno
import gc
import logging
import os
import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from .. import clock
from ..errors import BrokenSystem, BucketCatalogError, CatalogWarning, UsageError
from ..query.blame import TRACEBACK, failed
from ..wording import words_of_commands
from .output import PipeClosed, visible

if TYPE_CHECKING:
    import typer

INTERRUPTED = 128 + signal.SIGINT
"""As shells have it for a program that Ctrl-C ended."""
_WRONG_PATH = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR)
_BETWEEN_LINES = 10.0
Commands = Callable[..., Any]
"""What a program can do: an app of typer, or whatever else is called as one is, with ``args`` and ``prog_name``."""
Whose = Callable[[Sequence[str]], tuple[str, str] | None]
"""Says of arguments which system's command they run, and what to call that; None for a command of the program itself."""
_SECRET = ("--storage-option", "--source-option", "--data-option", "--target-option")


def program(*, help: str, name: str | None = None, epilog: str | None = None, completes: bool = False) -> typer.Typer:
    """Something to add commands to, which then looks and behaves as all of this package's programs do.

    One that ``completes`` has options that install or show completion for shells.
    """
    import typer

    return typer.Typer(
        name=name,
        help=help,
        epilog=epilog,
        add_completion=completes,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def run(commands: Commands, arguments: Sequence[str], *, name: str, whose: Whose = lambda arguments: None) -> int:
    """Run one of the commands of the program ``name``; returns its exit code, and raises nothing."""
    with words_of_commands(), warnings.catch_warnings(), _telling_of_waits():
        warnings.showwarning = _Warnings().show
        warnings.simplefilter("always", CatalogWarning)
        try:
            commands(args=list(arguments), prog_name=name)
            return 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
            if code == INTERRUPTED:
                _say(_interrupted(arguments, name))
            return code
        except PipeClosed:
            return _quietly()
        except BucketCatalogError as error:
            if isinstance(error, BrokenSystem):
                _print_traceback()
            _say(str(error))
            return 2 if isinstance(error, UsageError) else 1
        except Exception as error:
            _print_traceback()
            _say(_unexpected(error, whose(arguments)))
            return 1


@contextmanager
def starting() -> Iterator[None]:
    """For a program's imports: nobody looks for garbage among what they make meanwhile, nor later, since all of it stays."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def main(commands: Commands, *, name: str, whose: Whose = lambda arguments: None) -> None:
    """The entry point of the program ``name``."""
    _open_standard_streams()
    code = run(commands, sys.argv[1:], name=name, whose=whose)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _quietly()
    except OSError:
        _quietly()  # the command has said so; what it could not write is still waiting
    gc.freeze()  # nobody looks for garbage once more among all that was imported: an eighth of a short command's time
    sys.exit(code)


def _open_standard_streams() -> None:
    """Give a stream that was closed before the program began somewhere to go: Python has None in its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False))


def _interrupted(arguments: Sequence[str], name: str) -> str:
    resumes = " What was committed is kept, and perhaps what was under way; the next run does the rest."
    again = shlex.join(_without_secrets(arguments))
    return f"Interrupted.{resumes if 'harvest' in arguments[:1] else ''} Next: Run it again: {name} {again}"


def _without_secrets(arguments: Sequence[str]) -> Iterator[str]:
    """A command line as it may be shown: of the options of a store and a source, only their names."""
    is_value = False
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if is_value:
            yield f"{option}=..." if equals else "..."
        elif option in _SECRET and equals:
            yield f"{option}={value.partition('=')[0]}=..."
        else:
            yield _public(argument)
        is_value = argument in _SECRET


def _print_traceback() -> None:
    if os.environ.get(TRACEBACK):
        traceback.print_exc()


def _unexpected(error: Exception, whose: tuple[str, str] | None) -> str:
    """What to say of an error that nobody raised on purpose, in a command of the program or of a system and a part of it."""
    if isinstance(error, OSError):
        what = f"{error.strerror or error}{f': {error.filename!r}' if error.filename else ''}"
        from ..store.filesystem import next_step

        step = "Check the path." if error.errno in _WRONG_PATH else next_step(error)
        return f"[OS] {what}. Next: {step}"
    if whose is not None:
        system, part = whose
        return str(failed(system, part, error))
    return f"[INTERNAL] {type(error).__name__}: {error}. Next: Report this, with what {TRACEBACK}=1 prints."


def _say(line: str) -> None:
    try:
        sys.stderr.write(visible(line) + "\n")
    except (OSError, ValueError):
        return


def _public(argument: str) -> str:
    if "://" not in argument:
        return argument
    from ..store.secrets import Secrets, has_cut_password

    return "..." if has_cut_password(argument) else Secrets(argument, {}).public_url


class _Warnings:
    """Shows each warning of one command once: several reads of one catalog find the same."""

    def __init__(self) -> None:
        self._shown: set[str] = set()

    def show(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        """What ``warnings.showwarning`` is called with."""
        if str(message) not in self._shown:
            self._shown.add(str(message))
            _say(f"warning: {message}")


class _Waits(logging.Handler):
    """Tells of requests that are tried again, which may be many at once: a line each ten seconds is enough."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._written = -_BETWEEN_LINES

    def emit(self, record: logging.LogRecord) -> None:
        """See ``logging.Handler``."""
        if (now := clock.monotonic()) - self._written >= _BETWEEN_LINES:
            self._written = now
            _say(f"warning: {record.getMessage()}")


@contextmanager
def _telling_of_waits() -> Iterator[None]:
    handler, logger = _Waits(), logging.getLogger("bucketcatalog")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _quietly() -> int:
    """Whoever reads the output has had enough; keep the interpreter from complaining when it ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return 0
    return 0
