"""Lists a tree of directories the way an object store lists a flat name space: by full names, lazily, from a name on.

Byte order of full names is not the order of directory entries: ``a-b`` sorts before ``a/b``, which sorts before ``a0``. It is the order
of entries in which directories carry their ``/``. Python compares strings by code points, which is the order of their UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from typing import TypeVar

from .base import ObjectInfo

Entry = TypeVar("Entry")


def walk(
    prefix: str,
    after: str,
    entries: Callable[[str], Iterable[tuple[str, Entry]]],
    info: Callable[[str, Entry], ObjectInfo | None],
) -> Iterator[ObjectInfo]:
    """Every object below ``prefix`` that sorts after ``after``, in byte order of names.

    ``entries(prefix)`` gives what lies directly below a prefix, directories with a ``/`` at the end, nothing where there is none;
    ``info(name, entry)`` is asked as late as can be and gives None for what is gone by then. A directory is opened when the listing
    gets to it, and only if it can hold a name that is wanted.
    """
    wanted = []
    for part, entry in entries(prefix):
        name = prefix + part
        if name > after or (part.endswith("/") and after.startswith(name)):
            wanted.append((name, entry))
    wanted.sort(key=itemgetter(0))
    for name, entry in wanted:
        if name.endswith("/"):
            yield from walk(name, after, entries, info)
        elif (found := info(name, entry)) is not None:
            yield found


def holds_objects(prefix: str, entries: Callable[[str], Iterable[tuple[str, Entry]]]) -> bool:
    """Whether any object lies below ``prefix``; empty directories are none."""
    for part, _ in sorted(entries(prefix), key=lambda item: item[0].endswith("/")):
        if not part.endswith("/") or holds_objects(prefix + part, entries):
            return True
    return False
