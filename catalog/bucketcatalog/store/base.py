"""The seam between the catalog and an object store: few methods, each with its guarantee.

Names are relative to the store's root: ``/``-separated, no leading or trailing ``/``, no empty, ``.`` or ``..`` parts. Everything above
this seam knows no file system and no SDK; everything below knows no log. A store pickles as its configuration and opens its own
clients where it is unpickled.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ..errors import StoreUnavailable, TruncatedObject


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What a listing or a head tells of an object: its name, size in bytes and the store's time of its last write (microseconds)."""

    name: str
    size: int
    modified_us: int


@dataclass(frozen=True, slots=True)
class UnfinishedPut:
    """A put that may be under way, or whose process has died: only its age says which.

    ``name`` is that of the object, or of the temporary file; ``token`` tells several puts of a name apart.
    """

    name: str
    begun_us: int
    token: str = ""


def truncated(url: str, name: str, end: int) -> TruncatedObject:
    """What to raise where an object ends before ``end``, however long it is."""
    return TruncatedObject(f"{name!r} in {url} has fewer than the {end} bytes that are read from it.")


def time_unknown(url: str, why: str) -> StoreUnavailable:
    """The error of one who writes and cannot learn the store's time: by another clock nothing may be committed or deleted."""
    return StoreUnavailable(
        f"The time of {url} cannot be learnt: {why}.", next_step="See that the store says when an object was written."
    )


class Store(Protocol):
    """An object store with strong read-after-write consistency and no conditional writes needed."""

    @property
    def url(self) -> str:
        """How a user names this store; never holds credentials."""
        ...

    @property
    def concurrency(self) -> int:
        """How many requests it pays to have under way at once, where many are needed; 1 where waiting is not what takes the time."""
        ...

    def put(self, name: str, data: bytes) -> None:
        """Atomic and durable on return: a reader sees all of ``data`` or no object, also after a crash.

        Putting the same bytes under the same name again is allowed: it is how a lost response is retried. Raises
        ``OutcomeUnknown`` where the object may or may not be there, any other ``StoreError`` where it is not.
        """
        ...

    def get(self, name: str, *, most: int | None = None) -> bytes:
        """All bytes of the object, or of a larger one its first ``most``; ``ObjectNotFound`` where there is none.

        One request, and what is behind the first ``most`` is neither taken into memory nor fetched, however large the object is.
        """
        ...

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset``, or ``TruncatedObject``; ``ObjectNotFound`` where there is no object.

        A negative ``offset`` counts from the end: ``-length`` reads the last ``length`` bytes, or the whole object where it is
        shorter.
        """
        ...

    def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
        """Every object whose name begins with ``prefix`` and sorts after ``after``, in byte order of names, at most ``limit``.

        ``prefix`` is empty or ends in ``/``; ``after`` is a full name, of an object or not. An object put before the call began is
        in it, one that is put meanwhile may be. Nothing below ``prefix`` is an empty listing, not an error.
        """
        ...

    def list_prefixes(self, prefix: str, *, begin: str = "") -> builtins.list[str]:
        """The distinct next parts of the names below ``prefix`` that have something below them, in byte order, without ``/``.

        With ``begin`` those that begin so: what lies below any other is not looked at, whatever is in the way there.
        """
        ...

    def head(self, name: str) -> ObjectInfo:
        """Size and time of the object, or ``ObjectNotFound``."""
        ...

    def delete(self, name: str) -> None:
        """The object is gone on return, whether or not it was there; a crash of the machine may bring it back."""
        ...

    def unfinished_puts(self) -> Iterator[UnfinishedPut]:
        """What puts have left that were not finished, or not yet, as far as the store tells. No listing shows any of it."""
        ...

    def discard(self, put: UnfinishedPut) -> None:
        """Throw away what is left of a put; one that is still under way fails. Nothing happens where nothing is left."""
        ...

    def now_us(self, below: str | None = None) -> int:
        """The store's own time in microseconds, learnt from a response at most 30 s old and since this machine's clock was set last.

        Who gives ``below``, a prefix that it may write below, never gets another clock's: where only a put tells the time something is
        put there and removed, which no listing shows, and where that fails so does this. Without it the machine's may be all there is.
        """
        ...
