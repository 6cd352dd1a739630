"""Whose fault it was: what is wrong with a system, and what its code raises, is that system's error.

Code of systems runs in the middle of the engine: it computes columns of views, reads, writes, does jobs. Who meets a defect of it has
not written it, and is told which system and which part of it that is; who has written it finds what was raised as the error's cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

from ..errors import BrokenSystem, BucketCatalogError
from ..wording import either

TRACEBACK = "BUCKETCATALOG_TRACEBACK"
"""The variable that makes a command line print where an error was raised."""
_LONGEST = 60


class Problem(NamedTuple):
    """What is wrong with a part of a system, and what its author does about it; sentences without a full stop."""

    why: str
    mend: str


def broken(system: str, why: str, mend: str) -> BrokenSystem:
    """The error of a system that cannot be used, with what its author does about it, as a sentence without its full stop."""
    return BrokenSystem(
        f"The system {system!r} cannot be used: {why.removesuffix('.')}.",
        next_step=f"{mend.removesuffix('.')}. Or install another release of its package.",
    )


def failed(system: str, part: str, why: str | Exception) -> BrokenSystem:
    """The error of a system of which a part has raised something, or has given what it must not."""
    what, how = why, ""
    if isinstance(why, Exception):
        what, how = said(why), f", with the traceback{either('', f', which {TRACEBACK}=1 prints')}"
    return BrokenSystem(
        f"The system {system!r} failed at {part}: {what}.", next_step=f"Report it to the authors of its package{how}."
    )


@contextmanager
def blaming(system: str, part: str) -> Iterator[None]:
    """What a part of a system raises within is the system's error, but for errors of this package, which are raised on purpose."""
    try:
        yield
    except BucketCatalogError:
        raise
    except Exception as error:  # whatever somebody else's code raises
        raise failed(system, part, error) from error


def said(error: Exception) -> str:
    """What was raised, on one line and without a full stop."""
    text = " ".join(str(error).split()).removesuffix(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shown(value: Any) -> str:
    """A value in few words: itself where it is short, else what it is."""
    if value is None or isinstance(value, str | int | float):
        text = repr(value)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    if isinstance(value, type | ModuleType) or (callable(value) and hasattr(value, "__qualname__")):
        what = "class" if isinstance(value, type) else "module" if isinstance(value, ModuleType) else "function"
        return f"the {what} {getattr(value, '__qualname__', value.__name__)}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name}"
