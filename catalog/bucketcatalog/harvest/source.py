"""The seam between a harvest and what it takes the inventory of: few members, so that any file system or store can be a source.

A source is listed, never changed. What comes out of it are Arrow batches of entries in byte order of their names, which is the order of
the catalog's keys, so that the two can be merged as streams.

Saying that an entry cannot be catalogued: what counts as an error of the source, and what is only somebody else at work.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

import pyarrow as pa

from ..errors import BucketCatalogError, InvalidOption
from ..model.tables import TIMESTAMP
from .ranges import ALL_NAMES, NameRange
from .scope import Scope

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]
BATCH_ROWS = 16_384
MAX_NAME_BYTES = 1_024
ENTRY_SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), False),
        pa.field("identity", pa.binary(), False),
        pa.field("content_length", pa.int64()),
        pa.field("modified", TIMESTAMP),
        pa.field("content_type", pa.string()),
        pa.field("file_type", pa.string()),
        pa.field("link_target", pa.string()),
        pa.field("uid", pa.int64()),
        pa.field("gid", pa.int64()),
        pa.field("mode", pa.int32()),
        pa.field("inode", pa.uint64()),
        pa.field("links", pa.int64()),
    ]
)
"""What batches have; up to ``modified`` every one. ``identity`` is what beside the name tells one version of an object from another: a
version id, an etag, or size and modification time; it holds no NUL. A source may add any other column of the table ``objects``."""


@dataclass(frozen=True, slots=True)
class EntryError:
    """An entry that cannot be catalogued.

    ``path`` is its name as people see it (``escaped``), with ``/`` at its end where everything below is out of reach too. ``raw`` is the
    same as bytes. ``unreadable``: the entry may well be there, so what the catalog knows of it stays. ``below``: it may be a directory,
    so what the catalog knows below it stays too.
    """

    raw: bytes
    code: str
    message: str
    unreadable: bool = True
    below: bool = False

    @property
    def path(self) -> str:
        """The name as ``harvest_errors`` shows it."""
        return escaped(self.raw)


def escaped(raw: bytes) -> str:
    r"""Bytes as text, one to one: what is not UTF-8 as ``\xNN``, and a backslash as two."""
    return raw.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")


def own_source(url: str, *, whole: bool) -> InvalidOption:
    """The source is the catalog, the ``whole`` of it or a part: a harvest would record its own commits, each time more of them."""
    return InvalidOption(
        f"The source {url!r} is {'the catalog itself' if whole else 'a part of the catalog'}.",
        next_step="Harvest something else, or what the catalog lies in.",
    )


def entry_error(raw: bytes, why: OSError | BucketCatalogError, *, below: bool = False, unreadable: bool = True) -> EntryError:
    """What a call that failed says of an entry."""
    if isinstance(why, BucketCatalogError):
        return EntryError(raw, why.code, why.message, unreadable, below)
    return EntryError(raw, errno.errorcode.get(why.errno or 0, "EIO"), why.strerror or "it cannot be read", unreadable, below)


Report = Callable[[EntryError], None]


class Source(Protocol):
    """Something that has entries with names."""

    @property
    def url(self) -> str:
        """Names the source the same way from every machine; never holds credentials."""
        ...

    @property
    def name(self) -> str:
        """The name of the source's bucket, where the user gives none."""
        ...

    @property
    def authority(self) -> str:
        """Who the names belong to: a host, an endpoint. The bucket's owner is derived from it."""
        ...

    def entries(self, scope: Scope, report: Report) -> Iterator[pa.RecordBatch]:
        """The entries in scope, in byte order of their names, in batches of ``ENTRY_SCHEMA``; none is empty.

        An entry that cannot be read is reported before any batch that holds a later name, and left out. What vanishes meanwhile is
        no error. Raises ``SourceNotFound`` where there is nothing to list at all, ``StoreError`` where listing breaks off: what has
        not been listed must never look deleted.
        """
        ...


class ComparedSource(Source, Protocol):
    """A source of which the listing may show a version changed without another one coming to be."""

    @property
    def compared(self) -> tuple[str, ...]:
        """The columns that are compared with what the catalog has of the same version; each batch has all of them."""
        ...


class StoreSource(ComparedSource, Protocol):
    """A source that may keep versions, and tell more of single entries than it lists.

    Where ``versioning`` gives a text, ``entries`` are all versions and have the columns of ``object_versions`` too: those of one name
    are in one batch, sorted by version id.
    """

    def versioning(self) -> str | None:
        """``Enabled`` or ``Suspended``; empty where versions never were kept; None where that is not known. Asks the source once."""
        ...

    @property
    def version_rights(self) -> str:
        """What it takes to be told ``versioning`` and versions; empty where nobody is told, for there is nothing to ask."""
        ...

    def look(self, entries: pa.RecordBatch, known: pa.RecordBatch | None) -> pa.RecordBatch:
        """The entries with the columns that have to be asked for one by one; ``known`` is as for ``compare.Look``."""
        ...


class ReadSource(Source, Protocol):
    """A source of which the entries can be read, by several threads at once."""

    @property
    def readers(self) -> int:
        """How many threads may read."""
        ...

    def pieces(self, entry: Mapping[str, Any]) -> Iterator[bytes]:
        """What a plain file holds, in pieces of a few MiB at most.

        ``entry`` is what was listed: ``name``, ``identity``, ``content_length``, ``modified`` in microseconds, and ``etag`` where the
        source has any. ``Changed`` where it is no more what was listed, before or after it was read, ``OSError`` or ``StoreError`` where
        it cannot be read or is gone.
        """
        ...


class Changed(Exception):
    """An entry is another one than was listed."""


class DividedSource(Source, Protocol):
    """A source of which several processes can each list a part. It pickles, as configuration."""

    def entries(self, scope: Scope, report: Report, within: NameRange = ALL_NAMES) -> Iterator[pa.RecordBatch]:
        """See ``Source``: the entries whose names are in a range. What keeps them all from being read is reported for each range."""
        ...

    def divide(self, within: NameRange, parts: int) -> list[bytes]:
        """Names that divide a range into about so many parts, in order; fewer, or none, where nothing is seen to divide.

        It costs a few listings, however much there is. Any names will do: they need not be there, and parts may be empty.
        """
        ...


def is_divided(source: Source) -> TypeGuard[DividedSource]:
    """Whether it is a ``DividedSource``."""
    return hasattr(source, "divide")


def is_compared(source: Source) -> TypeGuard[ComparedSource]:
    """Whether it is a ``ComparedSource``."""
    return hasattr(source, "compared")


def is_read(source: Source) -> TypeGuard[ReadSource]:
    """Whether it is a ``ReadSource``."""
    return hasattr(source, "pieces")


def is_of_a_store(source: Source) -> TypeGuard[StoreSource]:
    """Whether it is a ``StoreSource``, by what only these have: not every source can be asked for its ``name``."""
    return hasattr(source, "versioning")


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
            error = entry_error(raw, why, below=below)
        else:
            error = EntryError(raw, why.code, why.message, unreadable=why.unreadable, below=below)
        if self.scope.covers(error.path):
            self.report(error)
        elif below:
            self(raw + b"/", why)
