"""Saying that an entry cannot be catalogued: what counts as an error of the source, and what is only somebody else at work."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from .scope import Scope
from .source import MAX_NAME_BYTES, EntryError, Report


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an entry is left out that no call failed for: ``code`` and ``message`` of its row in ``harvest_errors``.

    ``unreadable``: what it is now was not read, so what the catalog has of it stays.
    """

    code: str
    message: str
    unreadable: bool = False


NOT_UTF8 = Refusal("NOT_UTF8", "the name is not UTF-8")
TARGET_NOT_UTF8 = Refusal("TARGET_NOT_UTF8", "the target of the link is not UTF-8")
NAME_TOO_LONG = Refusal("NAME_TOO_LONG", f"the path below the source has more than {MAX_NAME_BYTES} bytes")
REPLACED = Refusal("REPLACED", "it was moved, or something else put in its place, while the tree was read", unreadable=True)


@dataclass(frozen=True, slots=True)
class Reporter:
    """Reports the entries that are in scope, and only those."""

    scope: Scope
    report: Report

    def __call__(self, raw: bytes, why: OSError | Refusal, *, below: bool = False) -> None:
        """Report an entry; a path that ends in ``/`` stands for everything below, with ``below`` any path for what is below it too."""
        if isinstance(why, OSError):
            code, message = errno.errorcode.get(why.errno or 0, "EIO"), why.strerror or "it cannot be read"
            error = EntryError(raw, code, message, below=below)
        else:
            error = EntryError(raw, why.code, why.message, unreadable=why.unreadable, below=below)
        if self.scope.covers(error.path):
            self.report(error)
        elif below:
            self(raw + b"/", why)
