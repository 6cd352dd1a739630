"""Which strings can name an object, checked before any backend sees them.

The same rules hold for every store, so that a catalog can be copied from any one to any other.
"""

from __future__ import annotations

import re

from bucketcatalog.errors import InvalidName

TEMPORARY = ".put-"
"""How the names of half-written files begin; no object is named so and no listing shows one."""

_UNUSABLE = re.compile(r"\x00|(?:^|/)(?:\.{0,2}(?:/|\Z)|\.put-)")
_NEXT_STEP = "name objects by parts joined with '/', none of them empty, '.', '..', or beginning with '.put-', and no NUL."


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
