"""Saying that an entry cannot be catalogued: what counts as an error of the source, and what is only somebody else at work."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from .scope import Scope
from .source import MAX_NAME_BYTES, EntryError, Report


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an entry that can be read is left out all the same: ``code`` and ``message`` of its row in ``harvest_errors``."""

    code: str
    message: str


NOT_UTF8 = Refusal("NOT_UTF8", "the name is not UTF-8")
TARGET_NOT_UTF8 = Refusal("TARGET_NOT_UTF8", "the target of the link is not UTF-8")
NAME_TOO_LONG = Refusal("NAME_TOO_LONG", f"the path below the source has more than {MAX_NAME_BYTES} bytes")
_VANISHED = (errno.ENOENT, errno.ENOTDIR, errno.EINVAL)


def has_vanished(error: OSError) -> bool:
    """Whether the entry is no longer there, or no longer what it was listed as (a link that is none is ``EINVAL``)."""
    return error.errno in _VANISHED


@dataclass(frozen=True, slots=True)
class Reporter:
    """Reports the entries that are in scope, and only those."""

    scope: Scope
    report: Report

    def __call__(self, raw: bytes, why: OSError | Refusal) -> None:
        """Report an entry; a path that ends in ``/`` stands for everything below."""
        if isinstance(why, OSError):
            error = EntryError(raw, errno.errorcode.get(why.errno or 0, "EIO"), why.strerror or "it cannot be read")
        else:
            error = EntryError(raw, why.code, why.message, unreadable=False)
        if self.scope.covers(error.path):
            self.report(error)
