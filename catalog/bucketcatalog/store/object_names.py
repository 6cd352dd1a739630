"""Which strings can name an object, checked before any backend sees them, and their order over a tree of directories.

The same rules hold for every store, so that a catalog can be copied from any one to any other.

Byte order of full names is not the order of directory entries: ``a-b`` sorts before ``a/b``, which sorts before ``a0``. It is the order
of entries in which directories carry their ``/``. Python compares strings by code points, which is the order of their UTF-8 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import TypeVar

from ..errors import InvalidName
from .base import ObjectInfo

TEMPORARY = ".put-"
"""How the names of half-written files begin; no object is named so and no listing shows one."""

_REMOVED = r"\.nfs[0-9a-f]{24}"
_UNUSABLE = re.compile(rf"\x00|(?:^|/)(?:\.{{0,2}}(?:/|\Z)|\.put-|{_REMOVED}(?:/|\Z))")
_HIDDEN = re.compile(rf"\.put-|{_REMOVED}\Z")
_NEXT_STEP = (
    "Name objects by parts joined with '/': none empty, '.', '..', beginning with '.put-', or '.nfs' and 24 digits; no NUL."
)


def is_hidden(part: str) -> bool:
    """Whether the last part of a name is that of no object: of a half-written file, or of one that NFS keeps while it is open somewhere."""
    return part.startswith(".") and _HIDDEN.match(part) is not None


def can_name(name: str) -> bool:
    """Whether ``name`` can name an object: nothing that leaves the root, is ambiguous, or is not Unicode."""
    return _UNUSABLE.search(name) is None and (name.isascii() or is_unicode(name))


def check_name(name: str) -> None:
    """Raise ``InvalidName`` unless ``name`` can name an object."""
    if not can_name(name):
        raise InvalidName(f"{name!r} cannot name an object.", next_step=_NEXT_STEP)


def check_prefix(prefix: str) -> None:
    """Raise ``InvalidName`` unless ``prefix`` is empty or a name followed by ``/``."""
    if not prefix:
        return
    if not prefix.endswith("/"):
        raise InvalidName(f"{prefix!r} cannot be listed.", next_step="End the prefix with '/'.")
    check_name(prefix[:-1])


def check_range(length: int) -> None:
    """Raise ``ValueError`` for a negative ``length``."""
    if length < 0:
        raise ValueError(f"the length of a range cannot be negative: {length}")


def check_most(most: int | None) -> None:
    """Raise ``ValueError`` for a negative bound."""
    if most is not None and most < 0:
        raise ValueError(f"no object has fewer than no bytes: {most}")


def is_unicode(name: str) -> bool:
    """Whether the name has a UTF-8 form; a file system may hold names that have none."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


Listed = TypeVar("Listed")


def walk(
    prefix: str,
    after: str,
    entries: Callable[[str], Iterable[tuple[str, Listed]]],
    info: Callable[[str, Listed], ObjectInfo | None],
) -> Iterator[ObjectInfo]:
    """Every object below ``prefix`` that sorts after ``after``, in byte order of names.

    ``entries(prefix)`` gives what lies directly below a prefix, directories with a ``/`` at the end, nothing where there is none;
    ``info(name, entry)`` is asked as late as can be and gives None for what is gone by then. A directory is opened when the listing
    gets to it, and only if it can hold a name that is wanted; how deep they lie in each other is for whoever made them.
    """
    levels = [iter(_wanted(prefix, after, entries))]
    while levels:
        for name, entry in levels[-1]:
            if name.endswith("/"):
                levels.append(iter(_wanted(name, after, entries)))
                break
            if (found := info(name, entry)) is not None:
                yield found
        else:
            levels.pop()


def _wanted(prefix: str, after: str, entries: Callable[[str], Iterable[tuple[str, Listed]]]) -> list[tuple[str, Listed]]:
    """What lies directly below a prefix and can be, or hold, a name after ``after``, in byte order of names."""
    wanted = []
    for part, entry in entries(prefix):
        name = prefix + part
        if name > after or (part.endswith("/") and after.startswith(name)):
            wanted.append((name, entry))
    wanted.sort(key=itemgetter(0))
    return wanted


def holds_objects(prefix: str, entries: Callable[[str], Iterable[tuple[str, Listed]]]) -> bool:
    """Whether any object lies below ``prefix``; empty directories are none."""
    unseen = [prefix]
    while unseen:
        below = unseen.pop()
        parts = [part for part, _ in entries(below)]
        if not all(part.endswith("/") for part in parts):
            return True
        unseen += [below + part for part in sorted(parts, reverse=True)]
    return False
