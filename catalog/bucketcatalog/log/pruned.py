"""What pruning leaves: what to say of a file that is gone, and which checkpoints stay for tags behind the horizon."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby

from ..clock import uuid7_time
from ..errors import UNREADABLE, BucketCatalogError, HistoryPruned, MissingObject, SetAsideError
from ..format.checkpoints import Checkpoint
from ..format.records import TagEntry
from ..model import paths
from ..model.cuts import Cut, Ref
from ..model.names import is_maintainer
from ..store.base import Store
from ..wording import how_to_drop, how_to_verify
from .coverage import Covered
from .discovery import horizon_of
from .files import LogFiles
from .horizon import Horizon


@contextmanager
def telling_of_prunes(store: Store) -> Iterator[None]:
    """A file that is met to be gone within is ``HistoryPruned`` where it was pruned."""
    try:
        yield
    except MissingObject as error:
        raise (if_pruned(store, error.name) if error.name else None) or error from None


def if_pruned(store: Store, name: str) -> HistoryPruned | None:
    """The error for a file that is gone where the newest boundary allowed it to be deleted, None where it should be there."""
    found = paths.parse(name)
    if found is None:
        return None
    files = LogFiles(store, found.database)
    try:
        horizon = horizon_of(files)
        explains = horizon is not None and _may_be_deleted(files, horizon, found)
    except BucketCatalogError:
        return None  # a reader is told what it misses, not what else is wrong
    return horizon.refusal(f"{name}, which is gone,") if horizon is not None and explains else None


def _may_be_deleted(files: LogFiles, horizon: Horizon, found: paths.Parsed) -> bool:
    segment, file = found.segment, found.log_file
    if segment is not None:
        return uuid7_time(segment) <= horizon.time and not _is_named(files, horizon, found.writer, segment)
    return file is not None and file.is_transaction and file.revision < horizon.floor(found.writer)


def _is_named(files: LogFiles, horizon: Horizon, writer: str, segment: bytes) -> bool:
    """Whether the segment is one of a checkpoint that readers find, or of a transaction of its writer that was not allowed to go.

    It can be older than the horizon all the same: checkpoints go on from earlier ones, a segment is begun before what names it, and what is
    kept for a tag stays while horizons move on. No checkpoint outlives a segment of its own that is pruned, for it goes first.
    """
    place = writer, segment
    if place in {kept.place for kept in horizon.checkpoint.segments}:
        return True
    for name in files.writers():
        found = (files.usable_checkpoint(name, head) for head in files.checkpoints(name))
        if any(place in {kept.place for kept in checkpoint.segments} for checkpoint in found if checkpoint is not None):
            return True
    if any(place in {of.place for of in kept.segments} for kept in KeptCheckpoints.listed(files).there()):
        return True
    later = [Ref(writer, head) for head in files.transactions(writer, horizon.floor(writer))]
    return any(place in {of.place for of in transaction.segments} for transaction in files.fetched(later))


def kept_is_gone(files: LogFiles, tag: TagEntry, horizon: Horizon) -> MissingObject:
    """The error for a tag's cut whose transactions were pruned, and of which no checkpoint is there; nothing tells what that was called."""
    place = paths.revision_start(horizon.boundary.stamp[1], files.database, 0)
    return MissingObject(
        f"{place} has no checkpoint of the version that the tag {tag.name!r} names, nor has the first revision of another maintainer: what "
        f"was kept for the tag is gone. Without it the tag can only be dropped: {how_to_drop(tag.name)}.",
    )


CLONE = "clone"
"""The operation of the transaction that makes a database a clone."""


@dataclass(frozen=True, slots=True)
class KeptCheckpoints:
    """Where the checkpoints lie that may be kept for tags, listed once; they are read when they are asked for.

    They lie at a maintainer's first revision, without a marker: who looks for the newest state does not meet them.
    """

    files: LogFiles
    refs: tuple[Ref, ...]

    @classmethod
    def listed(cls, files: LogFiles) -> KeptCheckpoints:
        """Those of all maintainers."""
        maintainers = filter(is_maintainer, files.writers())
        return cls(files, tuple(Ref(writer, head) for writer in maintainers for head in files.checkpoints_at(writer, 0)))

    def of(self, cut: Cut, *, had_tag: bool = True) -> Checkpoint | None:
        """The checkpoint of exactly this cut, if there is one that can be read; of several the one that was made last.

        None that holds what was set aside since, or lacks what was taken in.
        ``repair`` may have dropped one whose segments are lost: these are looked at where something else can be read instead, another
        checkpoint or the transactions. Else who reads a lost one is told then. Where only blocks are lost, one that replaces it was
        made after it. Of a cut that never ``had_tag`` nobody has kept one: what ``repair`` may have dropped is passed over.
        """
        read = (found for found in self._read_for(cut) if isinstance(found, Checkpoint))
        for _, of_one_time in groupby(read, key=lambda checkpoint: checkpoint.head.commit_time):
            found = [
                c
                for c in of_one_time
                if c.cut == cut
                and (had_tag or self.files.is_marked(*c.ref) or not may_be_dropped(c))
                and not self._was_made_before(c)
            ]
            if found:
                return max(found, key=lambda checkpoint: checkpoint.created)
        return None

    def there(self) -> Iterator[Checkpoint]:
        """All of them that have not gone since they were listed, whatever their cuts."""
        for ref in self.refs:
            with suppress(MissingObject):
                yield self.files.checkpoint(*ref)

    def last_made(self, cut: Cut) -> int:
        """When the last one of exactly this cut was made, in microseconds as its maker says; 0 where none can be read."""
        made = [0]
        for ref in (ref for ref in self.refs if ref.head.commit_time == cut.newest_commit_time):
            with suppress(*UNREADABLE):
                found = self.files.checkpoint(*ref)
                made += [found.created] if found.cut == cut else []
        return max(made)

    def unread_of(self, cut: Cut) -> BucketCatalogError | None:
        """The error of a checkpoint that cannot be read and may be the one of this cut, or that is and cannot be used."""
        found = list(self._read_for(cut))
        return next((error for error in found if not isinstance(error, Checkpoint)), None) or next(
            (
                SetAsideError(
                    f"{paths.checkpoint(c.writer, self.files.database, c.head)}, which was kept of the version {cut}, was made before "
                    "something in it was set aside, or taken in again.",
                    next_step=f"Undo that, or drop the tag: {how_to_verify()} lists what is set aside.",
                )
                for c in found
                if isinstance(c, Checkpoint) and c.cut == cut and self._was_made_before(c)
            ),
            None,
        )

    def _was_made_before(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint does not hold what its cut does by now, by what is known of what was set aside."""
        return bool(Covered(self.files, [checkpoint]).disagreeing())

    def _read_for(self, cut: Cut) -> Iterator[Checkpoint | BucketCatalogError]:
        """What may be of the cut, newest first: what is older than it is only where something in it is voided."""
        refs = [ref for ref in self.refs if ref.head.commit_time <= cut.newest_commit_time]
        for ref in sorted(refs, key=lambda ref: -ref.head.commit_time):
            try:
                found = self.files.checkpoint(*ref)
                is_alone = sum(head.commit_time == ref.head.commit_time for _, head in refs) == 1
                is_taken = found.cut != cut or (is_alone and self._is_gone(cut))
                yield found if is_taken else self.files.unreadable_segment(found) or found
            except UNREADABLE as error:
                yield error

    def _is_gone(self, cut: Cut) -> bool:
        """Whether a transaction that the cut names is gone; the newest are asked for first, for mostly something has followed them."""
        refs = sorted(cut.refs(), key=lambda ref: -ref.head.commit_time)
        return any(not self.files.is_there(*ref) for ref in refs)


def may_be_dropped(checkpoint: Checkpoint) -> bool:
    """Whether ``repair`` may have dropped a checkpoint that has no marker: it covers the transaction that it lies beside.

    One that is kept for a tag does so only where the tag names that transaction.
    """
    return any(head.revision == checkpoint.revision for head in checkpoint.cut.of_writer(checkpoint.writer))


def is_of_source(files: LogFiles, newest: Cut, tag: TagEntry) -> bool:
    """Whether the database is a clone, and the tag one of its source: what that names was not cloned.

    Of a clone's maintainer nothing comes after the transaction that made the clone, so that this is a head of the ``newest`` cut.
    """
    heads = [ref for ref in newest.refs() if is_maintainer(ref.writer)]
    return any(files.transaction(*ref).operation == CLONE for ref in heads if ref.head.commit_time > tag.stamp.commit_time)
