"""What to say of a file that is gone: that it was pruned, where a boundary explains it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..clock import uuid7_time
from ..errors import BucketCatalogError, HistoryPruned, MissingObject
from ..format.records import TagEntry
from ..model import paths
from ..store.base import Store
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
    writer, database, *_ = name.split("/")
    try:
        horizon = horizon_of(LogFiles(store, database))
        explains = horizon is not None and _may_be_deleted(horizon, writer, database, name)
    except BucketCatalogError:
        return None  # a reader is told what it misses, not what else is wrong
    return horizon.refusal(f"{name}, which is gone,") if horizon is not None and explains else None


def _may_be_deleted(horizon: Horizon, writer: str, database: str, name: str) -> bool:
    segment = paths.parse_segment(paths.segments_prefix(writer, database), name)
    if segment is not None:
        return uuid7_time(segment) <= horizon.time and segment not in {kept.uuid for kept in horizon.checkpoint.segments}
    file = paths.parse_log_file(paths.transactions_prefix(writer, database), name)
    return file is not None and file.is_transaction and file.revision < horizon.floor(writer)


def kept_is_gone(files: LogFiles, tag: TagEntry, horizon: Horizon) -> MissingObject:
    """The error for a tag's cut whose transactions were pruned, and of which no checkpoint is there; nothing tells what that was called."""
    place = paths.revision_start(horizon.boundary.stamp[1], files.database, 0)
    return MissingObject(
        f"{place} has no checkpoint of the version that the tag {tag.name!r} names, nor has the first revision of another maintainer: what "
        f"was kept for the tag is gone. Without it the tag can only be dropped: bucketcatalog tag CATALOG {tag.name} --drop.",
        next_step="Restore the file from a copy of the store.",
    )
