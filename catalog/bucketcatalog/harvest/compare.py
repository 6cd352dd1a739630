"""What a source has against what the catalog has: two streams in the order of names, merged into what has to change.

Neither side is ever in memory as a whole: from each there is one batch, and a step takes both up to the smaller of their last names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..arrays import one_chunk
from ..facts import Facts
from ..keys import lower_bound
from ..reading import Part, read_slice
from ..render import version_names
from ..snapshot import Snapshot
from .mapping import OBJECTS, Bucket, object_ids
from .scope import Scope
from .source import EntryError

SLICE_ROWS = 16_384
_NAME, _ID = OBJECTS.by_name["name"].field_name, OBJECTS.by_name["id"].field_name
_COLUMNS = frozenset({*(c.field_name for c in OBJECTS.key_columns), _ID, "_kind", "_txn", "_seq"})


@dataclass(frozen=True)
class Side:
    """One side of the merge: ``names`` (as bytes, sorted, distinct), ``ids``, and the ``rows`` that they belong to, all of one length."""

    names: pa.Array
    ids: pa.Array
    rows: pa.RecordBatch | pa.Array

    def __len__(self) -> int:
        return len(self.names)

    @property
    def last(self) -> bytes:
        """The largest name."""
        name: bytes = self.names[-1].as_py()
        return name

    def split(self, name: bytes) -> tuple[Side, Side]:
        """What is up to ``name``, and what comes after."""
        at = len(self) if self.last <= name else lower_bound(self.names, name + b"\x00")
        return self._slice(0, at), self._slice(at, len(self) - at)

    def _slice(self, start: int, count: int) -> Side:
        return Side(self.names.slice(start, count), self.ids.slice(start, count), self.rows.slice(start, count))


@dataclass(frozen=True)
class Step:
    """What has to change in a range of names.

    ``put`` holds entries with their ``ids`` that are new or another version than the catalog has, of which ``created`` are new.
    ``gone`` are names that the source has no more, with the ``versions`` seen. ``unchanged`` counts the rest.
    """

    put: pa.RecordBatch | None
    ids: pa.Array
    created: int
    gone: pa.Array
    versions: pa.Array
    unchanged: int


def source_sides(bucket: Bucket, batches: Iterable[pa.RecordBatch]) -> Iterator[Side]:
    """The source's batches with their ids."""
    for entries in batches:
        yield Side(entries.column("name").cast(pa.binary()), object_ids(bucket, entries), entries)


def live_sides(snapshot: Snapshot, bucket: Bucket, scope: Scope) -> Iterator[Side]:
    """The bucket's live objects that are in scope, with their versions; reads names and ids alone."""
    base = snapshot.base(OBJECTS.name)
    ranges = [bucket.keys]
    for piece in base.plan(ranges, only_live=True, target=SLICE_ROWS):
        facts = read_slice(base.store, base.table, piece, Part.LIVE, _COLUMNS)
        mask = scope.mask(one_chunk(facts.rows.column(_NAME))) if len(facts) else None
        if mask is not None:
            facts = facts.filter(mask)
        if len(facts):
            yield _live_side(facts)


def _live_side(facts: Facts) -> Side:
    names = one_chunk(facts.rows.column(_NAME)).cast(pa.binary())
    ids = one_chunk(facts.rows.column(_ID))
    version = pa.record_batch([facts.uuids.take(facts.column("_txn")), facts.column("_seq")], names=["uuid", "sequence"])
    return Side(names, ids, version)


def merge(source: Iterator[Side], live: Iterator[Side]) -> Iterator[Step]:
    """What has to change, range by range, in order of names."""
    entries, known = next(source, None), next(live, None)
    while entries is not None and known is not None:
        upto = min(entries.last, known.last)
        mine, entries_left = entries.split(upto)
        theirs, known_left = known.split(upto)
        yield _compared(mine, theirs)
        entries = entries_left if len(entries_left) else next(source, None)
        known = known_left if len(known_left) else next(live, None)
    while entries is not None:
        yield Step(entries.rows, entries.ids, len(entries), _NO_NAMES, _NO_VERSIONS, 0)
        entries = next(source, None)
    while known is not None:
        yield Step(None, _NO_IDS, 0, known.names, _versions(known.rows), 0)
        known = next(live, None)


_NO_NAMES, _NO_IDS, _NO_VERSIONS = pa.array([], pa.binary()), pa.array([], pa.binary(16)), pa.array([], pa.string())


def _versions(rows: pa.RecordBatch) -> pa.Array:
    return version_names(rows.column("uuid"), rows.column("sequence"))


def _compared(mine: Side, theirs: Side) -> Step:
    if mine.names.equals(theirs.names) and mine.ids.equals(theirs.ids):
        return Step(None, _NO_IDS, 0, _NO_NAMES, _NO_VERSIONS, len(mine))
    at = pc.index_in(mine.names, value_set=theirs.names)
    same = pc.fill_null(pc.equal(theirs.ids.take(at), mine.ids), False)
    changed = pc.invert(same)
    gone = pc.invert(pc.is_in(theirs.names, value_set=mine.names))
    put = mine.rows.filter(changed)
    created = pc.sum(pc.and_(changed, at.is_null()), min_count=0).as_py()
    return Step(
        put if len(put) else None,
        mine.ids.filter(changed),
        created,
        theirs.names.filter(gone),
        _versions(theirs.rows.filter(gone)),
        len(mine) - len(put),
    )


class OutOfReach:
    """The entries that were reported as unreadable: what the catalog has of them, or below them, is not to be deleted."""

    def __init__(self) -> None:
        self._paths: list[bytes] = []

    def add(self, error: EntryError) -> None:
        """Take note of an error."""
        if error.unreadable:
            self._paths.append(error.raw)

    def spare(self, step: Step) -> Step:
        """The step without deletions of what could not be read."""
        if not self._paths or not len(step.gone):
            return step
        first, last = step.gone[0].as_py(), step.gone[-1].as_py()
        masks = [_under(step.gone, path) for path in self._paths if path <= last and (path >= first or first.startswith(path))]
        if not masks:
            return step
        kept = _none_of(masks)
        return Step(step.put, step.ids, step.created, step.gone.filter(kept), step.versions.filter(kept), step.unchanged)


def _under(names: pa.Array, path: bytes) -> pa.Array:
    return pc.starts_with(names, pattern=path) if path.endswith(b"/") else pc.equal(names, path)


def _none_of(masks: Sequence[pa.Array]) -> pa.Array:
    found = masks[0]
    for mask in masks[1:]:
        found = pc.or_(found, mask)
    return pc.invert(found)
