"""The seam between a harvest and what it takes the inventory of: few members, so that any file system or store can be a source.

A source is listed, never changed. What comes out of it are Arrow batches of entries in byte order of their names, which is the order of
the catalog's keys, so that the two can be merged as streams.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeGuard

import pyarrow as pa

from ..errors import InvalidOption
from ..model.tables import TIMESTAMP
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


def itself(url: str) -> InvalidOption:
    """The source is the catalog, or lies in it: a harvest would record its own commits, each time more of them."""
    return InvalidOption(
        f"{url!r} is the catalog itself, or a part of it.", next_step="Harvest something else, or what it lies in."
    )


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


class StoreSource(Source, Protocol):
    """A source of which the listing may show a version changed without another one coming to be.

    Where ``versioning`` gives a text, ``entries`` are all versions and have the columns of ``object_versions`` too: those of one name
    are in one batch, sorted by version id.
    """

    @property
    def compared(self) -> tuple[str, ...]:
        """The columns that are compared with what the catalog has of the same version; each batch has all of them."""
        ...

    def versioning(self) -> str | None:
        """``Enabled`` or ``Suspended``; empty where versions never were kept; None where that is not known. Asks the source once."""
        ...

    def look(self, entries: pa.RecordBatch, known: pa.RecordBatch | None) -> pa.RecordBatch:
        """The entries with the columns that have to be asked for one by one; ``known`` is as for ``compare.Look``."""
        ...


def is_of_a_store(source: Source) -> TypeGuard[StoreSource]:
    """Whether it is a ``StoreSource``, by what only these have: not every source can be asked for its ``name``."""
    return hasattr(source, "versioning")
