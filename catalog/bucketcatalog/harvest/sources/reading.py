"""What a file below a directory holds, as long as it is the one that was listed: read without following a link, or opening what is no file.

Size and time of last modification tell, as they do between two harvests: they are looked at before and after.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from ..source import Changed

PIECE = 1 << 20
_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BELOW = _ROOT | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_REPLACED = (errno.ENOTDIR, errno.ELOOP, errno.ENXIO)


def pieces_of(root: bytes, name: bytes, identity: bytes) -> Iterator[bytes]:
    """The bytes of the file ``name`` below ``root``; see ``ReadSource``."""
    try:
        with _folder(root, name) as (folder, last):
            _checked(os.stat(last, dir_fd=folder, follow_symlinks=False), identity)
            file = os.open(last, _FILE, dir_fd=folder)
    except OSError as error:
        raise (Changed(name) if error.errno in _REPLACED else error) from None
    try:
        left = _checked(os.fstat(file), identity)
        while piece := os.read(file, min(PIECE, left + 1)):
            left -= len(piece)
            if left < 0:
                break  # it may never end, as some files of /proc do not
            yield piece
        if left:
            raise Changed(name)
        _checked(os.fstat(file), identity)
    finally:
        os.close(file)


def _checked(now: os.stat_result, identity: bytes) -> int:
    """The size of a file that still is what was listed."""
    if not stat.S_ISREG(now.st_mode) or b"%d %d" % (now.st_size, now.st_mtime_ns) != identity:
        raise Changed
    return now.st_size


@contextmanager
def _folder(root: bytes, name: bytes) -> Iterator[tuple[int, bytes]]:
    """The open directory that a name is in, and its last part."""
    *above, last = name.split(b"/")
    folder = os.open(root, _ROOT)
    try:
        for part in above:
            below = os.open(part, _BELOW, dir_fd=folder)
            os.close(folder)
            folder = below
        yield folder, last
    finally:
        os.close(folder)
