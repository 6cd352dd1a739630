"""What every question is asked of: one cut of a database, some of its objects, and the moment from which ages count.

A catalog means now, or the moment that is asked for; a snapshot is a moment already. Buckets are named, and what they are called is read
once. Ages count back from now, and of a moment in the past from then.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from .. import clock
from ..catalog import Catalog
from ..errors import InvalidOption
from ..log.versions import Version
from ..model.arrays import one_chunk
from ..model.times import Moment, Time, parse_time
from ..query.named import NamesOf, Place, narrowed
from ..query.reads import InBatches
from ..query.snapshot import DELETED_PREFIX, Snapshot
from ..where.conditions import Where

OBJECTS, BUCKETS = "objects", "buckets"
OWNER, BUCKET, BUCKET_ID, NAME = "owner", "bucket", "bucket_id", "name"
SIZE, MODIFIED, CLASS = "content_length", "modified", "storage_class"
FILE_TYPE, FILE = "file_type", "file"
Source = Catalog | Snapshot
Owner = str | uuid.UUID | None


@dataclass(frozen=True)
class Asked:
    """The objects of a snapshot that are meant, and the time, in microseconds, from which ages count.

    Whoever looks back names buckets that have ended, too.
    """

    snapshot: Snapshot
    place: Place
    now: int
    looks_back: bool = False

    @cached_property
    def where(self) -> Where:
        """The conditions of the place on rows of objects."""
        return self._narrowed(ended=self.looks_back)

    @cached_property
    def where_ended(self) -> Where:
        """The same on tombstones, of buckets that have ended too."""
        return self._narrowed(ended=True)

    def _narrowed(self, *, ended: bool) -> Where:
        return narrowed([self.snapshot], self.snapshot.table(OBJECTS), self.place, {}, ended=ended) or {}

    def scan(self, columns: Sequence[str], where: Mapping[str, Any] | None = None, *, ended: bool = False) -> InBatches:
        """A read of the objects that are meant, or of their tombstones, and of them those that meet further conditions."""
        conditions = {**(self.where_ended if ended else self.where), **(where or {})}
        return self.snapshot.scan(f"{DELETED_PREFIX if ended else ''}{OBJECTS}", columns=columns, where=conditions)

    def with_names(self, rows: pa.Table) -> pa.Table:
        """Rows that have the id of a bucket, with what it is called before it; null where nothing tells."""
        at = rows.column_names.index(BUCKET_ID)
        return rows.add_column(at, pa.field(BUCKET, pa.string()), self.names(rows[BUCKET_ID]))

    def names(self, ids: pa.Array | pa.ChunkedArray) -> pa.Array:
        """What the buckets of these ids are called."""
        rows = pa.table({BUCKET_ID: one_chunk(ids)})
        return one_chunk(self._names.made(rows, self.snapshot.files.store)[0])

    @cached_property
    def _names(self) -> NamesOf:
        return NamesOf(self.snapshot, self.snapshot.table(OBJECTS))


def asked(
    source: Source,
    *,
    as_of: Time | Version | None = None,
    database: str | None = None,
    bucket: str | None = None,
    owner: Owner = None,
    prefix: str | None = None,
    ignore_corruption: bool = False,
    now: int | None = None,
) -> Asked:
    """What a question is about; ``InvalidOption`` for what is no source, and for a moment of a snapshot, which is one.

    Whoever asks for several things gives the ``now`` that all of them count from.
    """
    place, now = Place(bucket, owner, prefix), clock.now_us() if now is None else now
    if isinstance(source, Snapshot):
        given = {"as_of": as_of, "database": database, "ignore_corruption": ignore_corruption or None}
        if extra := [name for name, value in given.items() if value is not None]:
            raise InvalidOption(
                f"A snapshot is of one moment of one database, whatever {' and '.join(extra)} may say.",
                next_step="Leave that out, or give the catalog in place of the snapshot.",
            )
        return Asked(source, place, now)
    if not isinstance(source, Catalog):
        raise InvalidOption(
            f"A question cannot be asked of a {type(source).__name__}.",
            next_step="Give a catalog or a snapshot; of a federation ask each catalog.",
        )
    moment = Moment.of(as_of, now)
    snapshot = source.snapshot(database=database, ignore_corruption=ignore_corruption, **moment.asked)
    if moment.timestamp is not None:
        now = parse_time(moment.timestamp, now)
    elif moment.version is not None:
        now = snapshot.cut.newest_commit_time
    return Asked(snapshot, place, now)


def whole_number(name: str, value: Any, least: int) -> int:
    """The number itself; ``InvalidOption`` for what is none, or too small."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidOption(f"{name} is {value!r}.", next_step=f"Give a whole number from {least} on.")
    return value


def texts(name: str, given: str | Sequence[str] | None) -> tuple[str, ...]:
    """One text or several as several; ``InvalidOption`` for anything else."""
    if given is None:
        return ()
    found = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, (list, tuple)) else None
    if found is None or not all(isinstance(each, str) for each in found):
        raise InvalidOption(f"{name} is {given!r}, which is no text.", next_step="Give text, or a list of texts.")
    return found
