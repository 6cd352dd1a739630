"""Boundaries of data: how far they reach, when they may be gone by, and which ends of versions each has seen.

Commit times are what writers say. So a boundary frees nothing that was not there when it was published, whatever commit time that has: an
end counts if the cut that the boundary's transaction had read has it. What arrives later waits for the next boundary, and its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ... import limits
from ...errors import BucketCatalogError, InvalidOption
from ...format.records import Boundary
from ...log.ancestry import version_view
from ...log.coverage import Covered
from ...log.files import LogFiles
from ...log.view import LogView
from ...model.cuts import Cut, Head, Ref
from ...model.tables import Table
from ...model.times import shown_age
from ...query.snapshot import Snapshot
from ...wording import either
from ...write.writer import Writer
from .judge import Ends, Forked, Held


@dataclass(frozen=True, slots=True)
class DataBoundary:
    """A boundary that a look has shown: how far it reaches, and when it was published. Both 0 where there is none.

    A boundary B says that data may be deleted of which every version ended at or before B. From the moment it can be seen no writer takes
    that data for a new version, and what was taken before has landed a maximum snapshot age later: then nothing that is not seen can name
    that data. ``held`` is what its transaction had read, where that is asked for: an end that is not there does not count.
    """

    data: int = 0
    published: int = 0
    held: Held | None = None

    @property
    def usable_from(self) -> int:
        """The store's time from which data may be deleted by it: it can be seen by then, and whoever had not seen it has landed."""
        return self.published + limits.BOUNDARY_WAIT if self.data else 0

    def is_usable(self, now: int) -> bool:
        """Whether data may be deleted by it at a time of the store."""
        return self.data > 0 and now >= self.usable_from

    def ends(self, limit: int) -> Ends:
        """The ends that count by it, up to a limit of its user's own; none where it is not known what it had read."""
        return Ends(min(limit, self.data), self.held) if self.held is not None else Ends(-1)


@dataclass(frozen=True, slots=True)
class KnownBoundaries:
    """The boundaries of data that a look has shown, those that reach farthest first."""

    entries: tuple[Boundary, ...]
    observed: int

    @classmethod
    def of(cls, view: LogView) -> KnownBoundaries:
        """All that the view knows, which may be fewer than there are: checkpoints carry only the one that reaches farthest."""
        carried = [boundary for checkpoint in view.checkpoints for boundary in checkpoint.boundaries]
        found = [*carried, *(t.boundary for t in view.tail if t.boundary is not None and not t.voided)]
        by_stamp = {boundary.stamp: boundary for boundary in found if boundary.data}
        ranked = sorted(by_stamp.values(), key=lambda boundary: (boundary.data, boundary.stamp), reverse=True)
        return cls(tuple(ranked), view.observed)

    @property
    def farthest(self) -> DataBoundary:
        """The one that binds whoever names existing data."""
        return next(map(_plain, self.entries), DataBoundary())

    @property
    def waits(self) -> bool:
        """Whether one of them is still to be waited out."""
        return any(not _plain(boundary).is_usable(self.observed) for boundary in self.entries)

    def can_be_used(self, *, waited: bool) -> bool:
        """Whether there is one that was ``waited`` out, or one at all."""
        return bool(self._usable(waited=waited))

    def used(self, snapshot: Snapshot, *, waited: bool) -> DataBoundary:
        """The one to go by: of those that were ``waited`` out, or of all, the farthest of which it is known what it had read; or none.

        The snapshot is of the same look or a later one.
        """
        for boundary in self._usable(waited=waited):
            cut = _had_read(snapshot.files, boundary)
            if cut is not None:
                return DataBoundary(boundary.data, boundary.stamp.commit_time, held_at(snapshot, cut))
        return DataBoundary()

    def _usable(self, *, waited: bool) -> list[Boundary]:
        return [boundary for boundary in self.entries if not waited or _plain(boundary).is_usable(self.observed)]


def _plain(boundary: Boundary) -> DataBoundary:
    return DataBoundary(boundary.data, boundary.stamp.commit_time)


def known_boundary(view: LogView) -> DataBoundary:
    """The boundary that reaches farthest of all that the view knows."""
    return KnownBoundaries.of(view).farthest


def _had_read(files: LogFiles, boundary: Boundary) -> Cut | None:
    """What the transaction of a boundary names as read, and itself; None where it cannot be read any more, or says something else."""
    _, writer, revision, uuid = boundary.stamp
    try:
        transaction = files.transaction(writer, Head(revision, uuid))
    except BucketCatalogError:
        return None
    if transaction.boundary != boundary:
        return None
    return transaction.reads.joined(Cut.of([(writer, transaction.head)]))


def held_at(snapshot: Snapshot, cut: Cut) -> Held:
    """What an earlier cut holds of what the snapshot does.

    Of what lies at a forked revision its heads do not tell. That is looked up, if there is any that the cut may have; where the cut lies
    behind the horizon by now, none of it counts.
    """
    view, forked = snapshot.view, Forked.of(snapshot.view)
    unsure = [ref for ref in _at(view, forked) if ref.head.revision <= cut.newest_revision(ref.writer)]
    return Held(cut, forked, frozenset(ref.head.uuid for ref in _those_in(snapshot.files, cut, unsure, view)))


def _at(view: LogView, forked: Forked) -> Iterator[Ref]:
    """What is known to lie at forked revisions."""
    covered = [(writer, coverage) for checkpoint in view.checkpoints for writer, coverage in checkpoint.coverage.items()]
    named = {Ref(writer, head) for writer, coverage in covered for head in coverage.recent | coverage.branches}
    return (ref for ref in named | {t.ref for t in view.tail} if (ref.writer, ref.head.revision) in forked.places)


def _those_in(files: LogFiles, cut: Cut, refs: Iterable[Ref], view: LogView) -> Iterator[Ref]:
    """Those of the transactions that are certainly in the cut."""
    heads = set(cut.refs())
    asked = sorted(ref for ref in refs if ref not in heads)
    if not asked:
        return
    try:
        then = version_view(files, cut, view.horizon)
        covered, tail = Covered(files, then.checkpoints, then.horizon), {t.ref for t in then.tail}
        yield from [ref for ref in asked if ref in tail or covered.holds(*ref)]
    except BucketCatalogError:
        return  # what cannot be told does not count


def settled(view: LogView) -> int:
    """Nothing with an earlier commit time, or this one, can still arrive."""
    return view.observed - max(view.lateness_bound, limits.LATENESS_BOUND) - 1


def next_boundary(view: LogView, grace: int) -> int:
    """How far a boundary may reach that is published now."""
    return min(settled(view), view.observed - grace)


def grace_of(table: Table, grace: int) -> int:
    """For how long the table's tombstones are kept at least: what its definition asks for, where that is longer than the run's."""
    return max(table.tombstone_retention_seconds * 1_000_000, grace)


def check_grace(grace: int, *, force: bool) -> None:
    """``InvalidOption`` for a grace period that readers and writers may need, unless forced."""
    if grace < limits.SAFE_COLLECTION_GRACE and not force:
        safe = shown_age(limits.SAFE_COLLECTION_GRACE)
        raise InvalidOption(
            f"What ended {shown_age(grace)} ago may be in use: readers and writers count on {safe}.",
            next_step=f"Give an age of {safe} or more, or {either('force=True', '--force')} where nobody reads or writes.",
        )


def limits_of(snapshot: Snapshot, grace: int, boundary: int) -> dict[str, int]:
    """For each table up to when its versions must have ended; an error where a table is not defined, for it may name any data."""
    tables = [snapshot.whole(name) for name in snapshot.names]
    return {table.name: max(min(boundary, snapshot.view.observed - grace_of(table, grace)), 0) for table in tables}


def publish(writer: Writer, operation: str, view: LogView, reach: int) -> DataBoundary:
    """Publish how far collection will reach: as far at least as any boundary that is known, for the one that reaches farthest binds."""
    reach = max(reach, known_boundary(view).data)
    published = writer.bound(operation, Boundary(data=reach, settled=settled(view)), seen=view.cut)
    return DataBoundary(reach, published.stamp.commit_time)
