"""The seam to a bucket whose inventory is taken: everything that its listings and its objects' headers say, page by page.

``Store`` shows names, sizes and times, which is all that a catalog needs of the store that it lies in. An inventory wants the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .base import Store

IS_DELETE_MARKER = "IsDeleteMarker"
"""What an entry that is a delete marker has beside the columns of S3."""


@dataclass(frozen=True, slots=True)
class Span:
    """The keys after ``after`` and up to ``upto`` (without one: to the end) that begin with ``prefix``."""

    prefix: str = ""
    after: str = ""
    upto: str | None = None


@dataclass(frozen=True, slots=True)
class ListedPage:
    """Entries as S3 names their columns, in the order of the answer; times are text. ``is_encoded``: keys are percent-encoded."""

    entries: Sequence[Mapping[str, Any]]
    is_encoded: bool


class Inventory(Protocol):
    """What a bucket tells about itself. Threads may share it."""

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        ...

    @property
    def folder(self) -> str:
        """What all keys begin with: empty, or a path that ends in ``/``."""
        ...

    @property
    def authority(self) -> str:
        """Host and port of the server; one name for all of AWS, where a bucket's name is taken once."""
        ...

    @property
    def concurrency(self) -> int:
        """How many requests may be under way at once."""
        ...

    def versioning(self) -> str | None:
        """``Enabled``, ``Suspended``, empty where the bucket never kept versions, None where that cannot be asked for."""
        ...

    def objects(self, span: Span) -> Iterator[ListedPage]:
        """The current objects, a request a page. A page may go beyond ``upto``; none follows one that does."""
        ...

    def versions(self, span: Span) -> Iterator[ListedPage]:
        """All versions, delete markers too, in the order of the answers: by key, the newest of a key first."""
        ...

    def prefixes(self, prefix: str, pages: int) -> list[str]:
        """What keys below ``prefix`` begin with up to the next ``/``, in order, as far as the first pages show it."""
        ...

    def first(self, span: Span) -> str | None:
        """The first key of a current object in the span; None where there is none, or none that is text. One request."""
        ...

    def head(self, key: str, version: str | None) -> Mapping[str, Any] | None:
        """An object's headers as S3 names them; None where there is none, or none that can be asked for."""
        ...

    def tags(self, key: str, version: str | None) -> dict[str, str] | None:
        """An object's tags; None where there is no such object."""
        ...

    def own(self, store: Store) -> str | None:
        """Where in the bucket ``store`` lies: what its keys begin with, or None where it lies elsewhere."""
        ...
