"""Pages of a bucket, as S3 gives them: names in the order of their UTF-8 bytes, at most 1,000 a request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bucketcatalog.store.s3.calls import Calls

PAGE = 1_000


def pages(calls: Calls, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[list[dict[str, Any]]]:
    """The entries (``Contents``) whose keys begin with ``prefix`` and sort after ``after``, at most ``limit``, page by page.

    Each request begins behind the last key of the one before, so that any one can be repeated.
    """
    left = limit
    while left is None or left > 0:
        wanted = {"Bucket": calls.bucket, "Prefix": prefix, "MaxKeys": PAGE if left is None else min(left, PAGE)}
        if after:
            wanted["StartAfter"] = after
        page = calls.listed("list", prefix, lambda c: c.list_objects_v2(**wanted))  # noqa: B023
        entries = page.get("Contents", [])
        if entries:
            yield entries
            after = entries[-1]["Key"]
        if not page.get("IsTruncated") or not entries:
            return
        left = None if left is None else left - len(entries)


def level(calls: Calls, prefix: str) -> Iterator[tuple[list[dict[str, Any]], list[str]]]:
    """What lies directly below ``prefix``, page by page: entries, and prefixes that end in ``/``."""
    marker: dict[str, str] = {}
    while True:
        page = calls.listed(
            "list",
            prefix,
            lambda c: c.list_objects_v2(Bucket=calls.bucket, Prefix=prefix, Delimiter="/", **marker),  # noqa: B023
        )
        yield page.get("Contents", []), [found["Prefix"] for found in page.get("CommonPrefixes", ())]
        if not page.get("IsTruncated"):
            return
        marker = {"ContinuationToken": page["NextContinuationToken"]}
