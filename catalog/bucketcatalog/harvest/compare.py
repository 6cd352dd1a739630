"""What a source has against what the catalog has: two streams in the order of names, merged into what has to change.

Neither side is ever in memory as a whole: from each there is one batch, and a step takes both up to the smaller of their last names.

Columns of entries beside columns that the catalog has of the same versions: which differ, and what is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.arrays import exact_sum, same_values
from ..model.keys import lower_bound
from ..model.render import version_names
from .source import EntryError


def with_unsaid(entries: pa.RecordBatch, known: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
    """The entries, with what is known where they leave one of the columns unset."""
    for name in columns:
        values = entries.column(name)
        if values.null_count:
            filled = pc.coalesce(values, known.column(name).cast(values.type))
            entries = entries.set_column(entries.schema.get_field_index(name), name, filled)
    return entries


def differing(entries: pa.RecordBatch, known: pa.RecordBatch, columns: Sequence[str]) -> pa.Array:
    """Which rows differ in one of the columns."""
    found = np.zeros(len(entries), dtype=bool)
    for name in columns:
        mine, theirs = entries.column(name), known.column(name)
        found |= ~same_values(mine, theirs if pa.types.is_nested(mine.type) else theirs.cast(mine.type))
    return pa.array(found)


@dataclass(frozen=True)
class NamedRows:
    """One side of the merge: ``names`` (as bytes, sorted, distinct), ``ids``, and the ``rows`` that they belong to, all of one length.

    Where a table has several rows of one name, ``names`` are what tells them apart too: the end of their keys, encoded. Rows that have
    not all of their columns have a ``place`` in those that ``whole`` reads.
    """

    names: pa.Array
    ids: pa.Array
    rows: pa.RecordBatch
    whole: Callable[[], pa.RecordBatch] | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def last(self) -> bytes:
        """The largest name."""
        name: bytes = self.names[-1].as_py()
        return name

    def split(self, name: bytes) -> tuple[NamedRows, NamedRows]:
        """What is up to ``name``, and what comes after."""
        return self.parted(name + b"\x00")

    def parted(self, name: bytes) -> tuple[NamedRows, NamedRows]:
        """What comes before ``name``, and what from there on."""
        at = len(self) if self.last < name else lower_bound(self.names, name)
        return self._slice(0, at), self._slice(at, len(self) - at)

    def _slice(self, start: int, count: int) -> NamedRows:
        return replace(
            self,
            names=self.names.slice(start, count),
            ids=self.ids.slice(start, count),
            rows=self.rows.slice(start, count),
        )


@dataclass(frozen=True)
class Step:
    """What has to change in a range of names.

    ``put`` holds entries with their ``ids`` that are new or another version than the catalog has, of which ``created`` are new.
    ``gone`` are names that the source has no more, with the ``versions`` seen and the catalog's rows, ``lost``. ``update`` holds entries
    of versions that the catalog has with other columns, ``known`` the rows that it has of them. ``unchanged`` counts the rest. Bytes are
    content lengths in sum, as far as the rows tell any: ``replaced_bytes`` of the catalog's versions in place of which others are put.
    """

    put: pa.RecordBatch | None
    ids: pa.Array
    created: int
    gone: pa.Array
    versions: pa.Array
    unchanged: int
    lost: pa.RecordBatch | None = None
    update: pa.RecordBatch | None = None
    known: pa.RecordBatch | None = None
    created_bytes: int = 0
    replaced_bytes: int = 0
    unchanged_bytes: int = 0

    @property
    def updated(self) -> int:
        """How many versions have other columns."""
        return 0 if self.update is None else len(self.update)


def bytes_in(rows: pa.RecordBatch | None, at: pa.Array | None = None) -> int:
    """The content lengths of rows, or of those ``at`` some positions, in sum; 0 where there are none."""
    if rows is None or "content_length" not in rows.schema.names:
        return 0
    lengths = rows.column("content_length")
    return exact_sum(lengths if at is None else lengths.take(at))


Look = Callable[[pa.RecordBatch, pa.RecordBatch | None], pa.RecordBatch]
"""Entries, and the catalog's rows of the same versions (null where it has none; None where it has none of all), to the entries with
further columns."""


class Merger:
    """Merges the catalog's rows with a source's that are given bit by bit, in order of names.

    ``compared`` are columns that may differ between rows of one id; without any the catalog's rows need no columns of their own. What a
    source leaves unset of them it does not know: the catalog keeps what it has. ``look`` adds columns, which are compared too.
    """

    def __init__(self, live: Iterator[NamedRows], *, compared: Sequence[str] = (), look: Look | None = None) -> None:
        self._live = live
        self._known = next(live, None)
        self._compared = tuple(compared)
        self._look = look

    def take(self, mine: NamedRows) -> Iterator[Step]:
        """What has to change up to the last name of these rows."""
        while len(mine) and self._known is not None:
            upto = min(mine.last, self._known.last)
            now, mine = mine.split(upto)
            theirs, left = self._known.split(upto)
            yield self._compare(now, theirs)
            self._known = left if len(left) else next(self._live, None)
            if not len(mine):
                return
        if len(mine):
            rows = mine.rows if self._look is None else self._look(mine.rows, None)
            yield Step(rows, mine.ids, len(mine), _NO_NAMES, _NO_VERSIONS, 0, created_bytes=bytes_in(rows))

    def rest(self, before: bytes | None = None) -> Iterator[Step]:
        """What has to change after the last name of the source; what has a name from ``before`` on is left to somebody else."""
        while self._known is not None:
            known, left = (self._known, None) if before is None else self._known.parted(before)
            if len(known):
                yield Step(None, _NO_IDS, 0, known.names, _versions(known.rows), 0, known.rows)
            if left:
                return
            self._known = next(self._live, None)

    def _compare(self, mine: NamedRows, theirs: NamedRows) -> Step:
        if self._look is None and mine.names.equals(theirs.names) and mine.ids.equals(theirs.ids):
            differs = differing(with_unsaid(mine.rows, theirs.rows, self._compared), theirs.rows, self._compared)
            if not differs.true_count:
                return Step(None, _NO_IDS, 0, _NO_NAMES, _NO_VERSIONS, len(mine), unchanged_bytes=bytes_in(mine.rows))
        at = pc.index_in(mine.names, value_set=theirs.names)
        same = pc.fill_null(pc.equal(theirs.ids.take(at), mine.ids), False)
        changed = pc.invert(same)
        gone = pc.invert(pc.is_in(theirs.names, value_set=mine.names))
        lost = theirs.rows.filter(gone)
        rows, update, known = mine.rows, None, None
        if self._compared or self._look is not None:
            rows, differs, known = self._settled(mine.rows, theirs.rows.take(pc.if_else(same, at, None)))
            update, known = rows.filter(differs), known.filter(differs)
            if len(known) and theirs.whole is not None:
                known = theirs.whole().take(known.column("place"))
        put = rows.filter(changed)
        updated = 0 if update is None else len(update)
        return Step(
            put if len(put) else None,
            mine.ids.filter(changed),
            at.null_count,
            theirs.names.filter(gone),
            _versions(lost),
            len(mine) - len(put) - updated,
            lost,
            update if updated else None,
            known if updated else None,
            created_bytes=bytes_in(rows, pc.indices_nonzero(at.is_null())),
            replaced_bytes=bytes_in(theirs.rows, at.filter(pc.and_(changed, at.is_valid()))),
            unchanged_bytes=bytes_in(rows) - bytes_in(put) - bytes_in(update),
        )

    def _settled(self, entries: pa.RecordBatch, known: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array, pa.RecordBatch]:
        """The entries with all their columns, which of them differ from what is known of the same version, and what is known."""
        rows = with_unsaid(entries, known, self._compared)
        compared = self._compared
        if self._look is not None:
            rows = self._look(rows, known)
            compared = (*compared, *(name for name in rows.schema.names if name not in entries.schema.names))
        return rows, pc.and_(known.column("uuid").is_valid(), differing(rows, known, compared)), known


_NO_NAMES, _NO_IDS, _NO_VERSIONS = pa.array([], pa.binary()), pa.array([], pa.string()), pa.array([], pa.string())


def _versions(rows: pa.RecordBatch) -> pa.Array:
    return version_names(rows.column("uuid"), rows.column("sequence"))


class OutOfReach:
    """The entries that were reported as unreadable: what the catalog has of them, or below them, is not to be deleted."""

    def __init__(self) -> None:
        self._paths: list[bytes] = []

    def add(self, error: EntryError) -> None:
        """Take note of an error."""
        if error.unreadable:
            self._paths += [error.raw, error.raw + b"/"] if error.below else [error.raw]

    def spare(self, step: Step) -> Step:
        """The step without deletions of what could not be read."""
        if not self._paths or not len(step.gone):
            return step
        first, last = step.gone[0].as_py(), step.gone[-1].as_py()
        masks = [_under(step.gone, path) for path in self._paths if path <= last and (path >= first or first.startswith(path))]
        if not masks:
            return step
        kept = _none_of(masks)
        lost = None if step.lost is None else step.lost.filter(kept)
        return replace(step, gone=step.gone.filter(kept), versions=step.versions.filter(kept), lost=lost)


def _under(names: pa.Array, path: bytes) -> pa.Array:
    return pc.starts_with(names, pattern=path) if path.endswith(b"/") else pc.equal(names, path)


def _none_of(masks: Sequence[pa.Array]) -> pa.Array:
    found = masks[0]
    for mask in masks[1:]:
        found = pc.or_(found, mask)
    return pc.invert(found)
