"""Which strings can name an object, checked before any backend sees them.

The same rules hold for every store, so that a catalog can be copied from any one to any other.
"""

from __future__ import annotations

import re

from ..errors import InvalidName

TEMPORARY = ".put-"
"""How the names of half-written files begin; no object is named so and no listing shows one."""

_REMOVED = r"\.nfs[0-9a-f]{24}"
_UNUSABLE = re.compile(rf"\x00|(?:^|/)(?:\.{{0,2}}(?:/|\Z)|\.put-|{_REMOVED}(?:/|\Z))")
_HIDDEN = re.compile(rf"\.put-|{_REMOVED}\Z")
_NEXT_STEP = (
    "name objects by parts joined with '/': none empty, '.', '..', beginning with '.put-', or '.nfs' and 24 digits; no NUL."
)


def is_hidden(part: str) -> bool:
    """Whether the last part of a name is that of no object: of a half-written file, or of one that NFS keeps while it is open somewhere."""
    return part.startswith(".") and _HIDDEN.match(part) is not None


def check_name(name: str) -> None:
    """Raise ``InvalidName`` unless ``name`` can name an object: nothing that leaves the root, is ambiguous, or is not Unicode."""
    if _UNUSABLE.search(name) or not (name.isascii() or is_unicode(name)):
        raise InvalidName(f"{name!r} cannot name an object.", next_step=_NEXT_STEP)


def check_prefix(prefix: str) -> None:
    """Raise ``InvalidName`` unless ``prefix`` is empty or a name followed by ``/``."""
    if not prefix:
        return
    if not prefix.endswith("/"):
        raise InvalidName(f"{prefix!r} cannot be listed.", next_step="end the prefix with '/'.")
    check_name(prefix[:-1])


def check_range(length: int) -> None:
    """Raise ``ValueError`` for a negative ``length``."""
    if length < 0:
        raise ValueError(f"the length of a range cannot be negative: {length}")


def is_unicode(name: str) -> bool:
    """Whether the name has a UTF-8 form; a file system may hold names that have none."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
