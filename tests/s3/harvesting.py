"""What the tests of harvests of buckets share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bucketcatalog import Catalog
from bucketcatalog.harvest import Harvested, harvest


def fill(s3: Any, bucket: str, keys: Iterable[str], body: bytes = b"x") -> None:
    """Put an object under each key."""
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=body)


def rows(catalog: Catalog, table: str = "objects") -> list[dict[str, Any]]:
    """A table's rows, in the order of their keys."""
    return catalog.snapshot().scan(table).to_arrow().to_pylist()


def names(catalog: Catalog, table: str = "objects") -> list[str]:
    """The names in a table."""
    return [row["name"] for row in rows(catalog, table)]


def counts(result: Harvested) -> tuple[int, int, int, int, int]:
    """What became of objects."""
    return result.created, result.overwritten, result.updated, result.deleted, result.unchanged


def listed_versions(s3: Any, bucket: str, key: str) -> list[dict[str, Any]]:
    """The versions and delete markers of one key, newest first (no two of them at one time)."""
    found = s3.list_object_versions(Bucket=bucket, Prefix=key)
    every = [*found.get("Versions", []), *({**marker, "marker": True} for marker in found.get("DeleteMarkers", []))]
    return sorted((one for one in every if one["Key"] == key), key=lambda one: one["LastModified"], reverse=True)


def assert_nothing_new(catalog: Catalog, source: str, **options: Any) -> None:
    """Another harvest commits nothing."""
    before = catalog.snapshot().version
    again = harvest(catalog, source, **options)
    assert (again.transactions, again.changes, again.version_changes) == ((), 0, 0)
    assert catalog.snapshot().version == before
