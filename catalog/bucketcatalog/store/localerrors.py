"""What the errors of an operating system mean for a store, and what to do about each."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ..errors import AccessDenied, StoreError, StoreUnavailable

NO_SUCH_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR})
"""A get that fails with one of these names no object."""

REFUSED_RENAME = frozenset(
    {
        errno.EACCES,
        errno.EBUSY,
        errno.EDQUOT,
        errno.EEXIST,
        errno.EISDIR,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOSPC,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
        errno.ETXTBSY,
    }
)
"""A rename that fails with one of these did not happen; with any other it may have."""

_DENIED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NEXT_STEPS = {
    errno.EACCES: "give this user the permission, or run as one that has it.",
    errno.EPERM: "give this user the permission, or run as one that has it.",
    errno.EROFS: "mount the file system for writing, or choose another place.",
    errno.ENOSPC: "free some space on the file system, then try again.",
    errno.EDQUOT: "free some space or raise this user's quota, then try again.",
    errno.EMFILE: "raise the limit of open files (ulimit -n), then try again.",
    errno.ENFILE: "raise the machine's limit of open files, then try again.",
    errno.EEXIST: "move away the file that stands where a directory is needed.",
    errno.ENOTDIR: "move away the file that stands where a directory is needed.",
    errno.EISDIR: "move away the directory that stands where the object is needed.",
    errno.ELOOP: "remove the symbolic link that leads back to itself.",
}
_TRY_AGAIN = "try again; if it stays, check the disk and the system's log."


def next_step(error: OSError) -> str:
    """What a user can do about an error of the system."""
    return _NEXT_STEPS.get(error.errno or 0, _TRY_AGAIN)


def from_os_error(error: OSError, doing: str, what: str) -> StoreError:
    """The store's error for an ``OSError`` that came of ``doing`` something to ``what``, nothing having changed."""
    kind = AccessDenied if error.errno in _DENIED else StoreUnavailable
    link = _looping_link(error) if error.errno == errno.ELOOP else None
    where = f" ({link!r} leads back to itself)" if link else ""
    return kind(f"Cannot {doing} {what}: {error.strerror or error}{where}.", next_step=next_step(error))


def _looping_link(error: OSError) -> str | None:
    """The symbolic link on the path of the error that cannot be followed, where the error tells the whole path."""
    path = os.fsdecode(error.filename or "")
    for part in [*reversed(Path(path).parents), Path(path)] if Path(path).is_absolute() else []:
        try:
            part.stat()
        except OSError as failed:
            return str(part) if failed.errno == errno.ELOOP else None
    return None
