"""Directories so deep in each other that nothing which calls itself for each of them gets to the end, and no path may be long enough."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

DEEP = 1_500
"""Levels: more than Python lets a function call itself, with parts of one letter fewer than make a path too long."""


@contextmanager
def nested(directory: Path, levels: int = DEEP, *, part: str = "a", file: str = "f") -> Iterator[str]:
    """As many directories called ``part`` below one, each in the one before, the last with a file; gives what that is called below it.

    Each is made within the one above, so that the path of the whole may be longer than any call of the system takes.
    """
    above = os.open(directory, os.O_RDONLY)
    try:
        for _ in range(levels):
            os.mkdir(part, dir_fd=above)
            below = os.open(part, os.O_RDONLY, dir_fd=above)
            os.close(above)
            above = below
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, dir_fd=above))
    finally:
        os.close(above)
    try:
        yield f"{part}/" * levels + file
    finally:
        _cut(directory, part, levels)


def _cut(directory: Path, part: str, levels: int) -> None:
    """Lay the directories beside each other, some hundred levels each: who removes what tests have left calls itself for each level."""
    at_once = min(100, 2_000 // len(f"{part}/"))
    within = os.open(directory, os.O_RDONLY)
    try:
        with suppress(FileNotFoundError):
            for number in range(levels // at_once):
                os.rename(f"{part}/" * at_once + part, ".rest", src_dir_fd=within, dst_dir_fd=within)
                os.rename(part, f".{number}", src_dir_fd=within, dst_dir_fd=within)
                os.rename(".rest", part, src_dir_fd=within, dst_dir_fd=within)
    finally:
        os.close(within)
