"""Pages of a bucket, as S3 gives them: names in the order of their UTF-8 bytes, at most 1,000 a request."""

from __future__ import annotations

from collections.abc import Iterator
from operator import methodcaller
from typing import Any

from ...errors import UnsupportedStore
from .calls import Calls

PAGE = 1_000
_TOKEN = "NextContinuationToken"


def pages(calls: Calls, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[list[dict[str, Any]]]:
    """The entries (``Contents``) whose keys begin with ``prefix`` and sort after ``after``, at most ``limit``, page by page.

    Each request begins behind the last key of the one before, so that any one can be repeated; behind a page without entries, which S3
    may give, it begins by the page's token. ``UnsupportedStore`` where the server gives other keys than those behind ``after``.
    """
    left = limit
    start = {"StartAfter": after} if after else {}
    while left is None or left > 0:
        wanted = {"Bucket": calls.bucket, "Prefix": prefix, "MaxKeys": PAGE if left is None else min(left, PAGE), **start}
        page = calls.listed("list", prefix, methodcaller("list_objects_v2", **wanted), "Contents", _TOKEN)
        entries = page.get("Contents", [])
        if entries:
            _must_follow(after, entries, calls.place)
            yield entries
            after = entries[-1]["Key"]
        if not page["IsTruncated"]:
            return
        start = {"StartAfter": after} if entries else {"ContinuationToken": page[_TOKEN]}
        left = None if left is None else left - len(entries)


def _must_follow(after: str, entries: list[dict[str, Any]], place: str) -> None:
    """Its first and its last key tell, so that every page leads further and the listing ends."""
    if not after.encode() < entries[0]["Key"].encode() <= entries[-1]["Key"].encode():
        raise UnsupportedStore(
            f"Asked for the keys behind {after!r} in {place}, the server lists others, or lists them out of order.",
            next_step="Use a server that lists keys in the order of their bytes and knows start-after.",
        )


def level(calls: Calls, prefix: str) -> Iterator[tuple[list[dict[str, Any]], list[str]]]:
    """What lies directly below ``prefix``, page by page: entries, and prefixes that end in ``/``."""
    marker: dict[str, str] = {}
    while True:
        request = methodcaller("list_objects_v2", Bucket=calls.bucket, Prefix=prefix, Delimiter="/", **marker)
        page = calls.listed("list", prefix, request, _TOKEN)
        yield page.get("Contents", []), [found["Prefix"] for found in page.get("CommonPrefixes", ())]
        if not page.get("IsTruncated"):
            return
        marker = {"ContinuationToken": page[_TOKEN]}
