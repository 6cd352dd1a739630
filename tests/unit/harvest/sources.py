"""A source that is a list: for what no directory does on command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from bucketcatalog.harvest import ENTRY_SCHEMA, EntryError
from bucketcatalog.harvest.scope import Scope
from bucketcatalog.harvest.source import Report

Listed = tuple[str, str] | EntryError | Callable[[], None]


class ListSource:
    """Entries as (name, identity), errors, and things to do meanwhile, in the order given; one batch an entry, or ``batch`` of them."""

    url, name, authority = "list://here/bucket", "bucket", "here"

    def __init__(self, listed: Sequence[Listed], batch: int = 1) -> None:
        self.listed = listed
        self.batch = batch

    def entries(self, scope: Scope, report: Report) -> Iterator[pa.RecordBatch]:
        """See ``Source``."""
        found: list[tuple[str, str]] = []
        for item in self.listed:
            if isinstance(item, EntryError):
                report(item)
            elif isinstance(item, tuple):
                found += [item] if scope.holds(item[0]) else []
                if len(found) == self.batch:
                    yield entries(found)
                    found = []
            else:
                item()
        if found:
            yield entries(found)


def entries(found: Sequence[tuple[str, str]]) -> pa.RecordBatch:
    """Entries as a batch; the length of each is that of its identity."""
    rows = [
        {"name": name, "identity": identity.encode(), "content_length": len(identity), "modified": 1_000_000 * len(identity)}
        for name, identity in found
    ]
    return pa.RecordBatch.from_pylist(rows, schema=ENTRY_SCHEMA)
