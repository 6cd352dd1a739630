"""A bucket that is a list: for keys, pages and orders that no server gives on command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

from bucketcatalog.store import Store
from bucketcatalog.store.inventory import IS_DELETE_MARKER, ListedPage, Span

START = 1_700_000_000


@dataclass
class ListInventory:
    """Entries as S3 lists them, with keys as bytes, in the order given; ``pages`` counts the pages that were asked for."""

    entries: Sequence[Mapping[str, Any]]
    folder: str = ""
    status: str | None = ""
    page: int = 3
    concurrency: int = 4
    pages: int = 0
    heads: int = 0
    bucket: str = "bucket"
    authority: str = "here:1"
    headers: Mapping[str, Any] = field(default_factory=lambda: {"ContentType": "text/plain"})
    root: str | None = None
    asked: list[str] = field(default_factory=list)

    def versioning(self) -> str | None:
        """See ``Inventory``."""
        return self.status

    def objects(self, span: Span) -> Iterator[ListedPage]:
        """See ``Inventory``."""
        after, upto = span.after.encode(), None if span.upto is None else span.upto.encode()
        found = [e for e in self.entries if e["Key"].startswith(span.prefix.encode()) and e["Key"] > after]
        for part in [found[at : at + self.page] for at in range(0, max(len(found), 1), self.page)]:
            self.pages += 1
            yield ListedPage([{**entry, "Key": quote_from_bytes(entry["Key"]).replace("%20", "+")} for entry in part], True)
            if upto is not None and part and part[-1]["Key"] > upto:
                return

    versions = objects

    def prefixes(self, prefix: str, pages: int) -> list[str]:
        """See ``Inventory``."""
        self.asked.append(prefix)
        raw = prefix.encode()
        below = [e["Key"][len(raw) :] for e in self.entries if e["Key"].startswith(raw)]
        return sorted({prefix + key.split(b"/")[0].decode() + "/" for key in below if b"/" in key}, key=str.encode)

    def first(self, span: Span) -> str | None:
        """See ``Inventory``."""
        self.asked.append(f"first of {span.prefix} behind {span.after}")
        page = next(self.objects(span))
        raw = unquote_to_bytes(page.entries[0]["Key"].replace("+", " ")) if page.entries else None
        return None if raw is None or (span.upto is not None and raw > span.upto.encode()) else raw.decode()

    def head(self, key: str, version: str | None) -> Mapping[str, Any] | None:
        """See ``Inventory``."""
        self.heads += 1
        return self.headers

    def tags(self, key: str, version: str | None) -> dict[str, str] | None:
        """See ``Inventory``."""
        return {"key": key}

    def own(self, store: Store) -> str | None:
        """See ``Inventory``."""
        return self.root


def listed(key: bytes | str, **more: Any) -> dict[str, Any]:
    """An object as a listing shows it."""
    raw = key.encode() if isinstance(key, str) else key
    return {"Key": raw, "LastModified": time(0), "ETag": '"e1"', "Size": 1, "StorageClass": "STANDARD"} | more


def version(key: str, id_: str, second: int, *, latest: bool = False, marker: bool = False) -> dict[str, Any]:
    """A version, or a delete marker, as a listing shows it."""
    entry = listed(key, VersionId=id_, IsLatest=latest, LastModified=time(second))
    if marker:
        entry = {name: entry[name] for name in ("Key", "VersionId", "IsLatest", "LastModified")} | {IS_DELETE_MARKER: True}
    return entry


def time(second: int) -> str:
    """So many seconds after a moment, as S3 writes it."""
    return f"2024-01-01T00:{second // 60:02}:{second % 60:02}.000Z"
