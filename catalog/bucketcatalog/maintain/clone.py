"""Cloning: the state of one cut in another store, where writers go on from there, and none of the history before.

What is written, in this order: segments, those that are copied with the transactions that name them too; a maintainer's transaction that
publishes the cut as the horizon of the clone and names its one checkpoint; a copy of the last transaction of each timeline; the checkpoint.
Until the last of these is there every reader of the place misses the checkpoint that the horizon names, so that a clone that was broken off
is no database, and never half of one.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from .. import clock
from ..checkpoint.merge import MergeTask, merge_parts, run_task
from ..checkpoint.plan import INLINE_BYTES, outside_reads
from ..checkpoint.publish import totals_of
from ..errors import (
    CatalogWarning,
    CorruptionError,
    HistoryPruned,
    InvalidOption,
    MissingObject,
    ObjectNotFound,
    TagExists,
    TargetNotEmpty,
)
from ..format.checkpoints import Checkpoint, Coverage, encode_checkpoint
from ..format.records import Boundary, CheckpointLink
from ..format.runs import SegmentReference
from ..format.sealing import digest
from ..format.segments import Origin
from ..limits import DEFAULT_LIMITS
from ..log.entries import boundaries_of, latest_results, tags_of
from ..log.files import LogFiles
from ..log.horizon import floors_of
from ..log.pruned import CLONE
from ..log.segments import read_index
from ..log.versions import Version
from ..log.view import LogView
from ..log.witnesses import definitions_of, unwitnessed, witnessed_in
from ..model import paths
from ..model.cuts import Cut, Ref
from ..model.names import MAINTAINER_PREFIX, writer_id
from ..model.times import Time
from ..query.database import Database, has_timeline
from ..state.contents import Contents
from ..store.base import Store
from ..store.retry import put_retrying
from ..write.commit import Commit
from ..write.tags import giving
from ..write.writer import Writer


@dataclass(frozen=True, slots=True)
class Cloned:
    """A clone: where it is, of which version, and the tag that pins the data of this version at the source.

    ``rows``, ``segments`` and ``transactions`` were written, in so many ``bytes``; nothing where it was there already.
    """

    target: str
    database: str
    version: str
    tag: str
    rows: int = 0
    segments: int = 0
    transactions: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    """What a target holds of the database: a clone of ``cut``, complete or not; without a cut nothing."""

    cut: Cut | None = None
    checkpoint: CheckpointLink | None = None
    is_complete: bool = False


def clone(
    source: Database,
    maintainer: Writer,
    target: Store,
    timestamp: Time | None,
    version: Version | None,
    *,
    now: Callable[[], int] = clock.now_us,
) -> Cloned:
    """Clone the database's cut of now, of a time, or of a version; one that was interrupted is finished, of the cut that it was of.

    ``maintainer`` pins the cut at the source by a tag. ``TargetNotEmpty`` where the database is at the target, other than as this clone;
    ``InvalidOption`` where the target lies within the source.
    """
    _refuse_within(source.files.store, target)
    name = _name_of(target)
    place = _Target(LogFiles(target, source.name), writer_id(f"{MAINTAINER_PREFIX}{name}"))
    found = place.look()
    is_now = timestamp is None and version is None
    if is_now and found.cut is not None and not found.is_complete:
        version = str(found.cut)
    snapshot = source.snapshot(timestamp, version, strict=False)
    if not snapshot.cut.heads:
        raise InvalidOption("There is nothing to clone at that time or version.", next_step="Choose a later one.")
    cut = found.cut if is_now and _is_still(source, maintainer.id, name, found) else snapshot.cut
    if found.cut is not None and found.cut != cut:
        raise _other_clone(target, source.name, found.cut)
    lost = {} if found.is_complete else _lost_segments(source.files, snapshot.view)
    for text in lost.values():
        warnings.warn(
            f"The clone goes without a segment of events, whose rows a checkpoint holds: {text}", CatalogWarning, stacklevel=3
        )
    maintainer.tag(name, version=str(cut), replace=True)
    cloned = Cloned(target.url, source.name, str(cut), name)
    if found.checkpoint is not None and found.is_complete:
        place.mark(found.checkpoint)
        return cloned
    return _Clone(source.files, place, snapshot.view, lost, now).write(cloned)


def _refuse_within(source: Store, target: Store) -> None:
    """``InvalidOption`` where the clone would lie in a folder of its source; in the source's own place the database is there already."""
    outer, inner = _address(source), _address(target)
    if inner != outer and inner.startswith(outer):
        raise InvalidOption(
            f"{target.url} lies within the catalog {source.url}, where every folder is a writer's.",
            next_step="Clone to a place outside of it.",
        )


def _lost_segments(files: LogFiles, view: LogView) -> dict[bytes, str]:
    """The segments that heads of the cut name and that cannot be read, and why; an error where the clone cannot do without them.

    It can where a checkpoint covers the head. ``HistoryPruned`` where of the cut a tag's checkpoint is all that was kept: a clone goes on
    from the newest transactions. All of it is looked for in the store: what this process has read may be gone by now.
    """
    heads, tail = list(view.cut.refs()), {t.ref for t in view.tail}
    try:
        found = files.map(lambda files, ref: _unread_of(files, ref, is_covered=ref not in tail), heads)
    except MissingObject:
        if view.horizon is None or all(head.revision >= view.horizon.floor(writer) for writer, head in heads):
            raise
        raise HistoryPruned(
            f"A checkpoint of the version {view.cut} is kept for a tag, but the transactions that a clone goes on from were pruned.",
            next_step=f"Clone a version from {view.horizon.cut} on, or export the tables of this one.",
        ) from None
    return {uuid: text for lost in found for uuid, text in lost.items()}


def _unread_of(files: LogFiles, ref: Ref, *, is_covered: bool) -> dict[bytes, str]:
    """The segments of a transaction that cannot be read, an error unless it is covered; an error where it cannot be copied itself."""
    lost = {}
    for reference in files.stored_transaction(*ref)[0].segments:
        try:
            read_index(files.store, files.database, reference)
        except CorruptionError as error:
            if not is_covered:
                raise
            lost[reference.uuid] = error.message
    return lost


def _address(store: Store) -> str:
    """The place of a store, as it can be compared with others."""
    place = store.url if "://" in store.url else os.path.realpath(store.url)
    return f"{place.rstrip('/')}/"


def _name_of(target: Store) -> str:
    return f"clone-{hashlib.sha256(target.url.encode()).hexdigest()[:12]}"


def _is_still(source: Database, maintainer: str, name: str, found: _Found) -> bool:
    """Whether a complete clone is of the state of now: nothing but transactions without events has been committed since."""
    if not found.is_complete:
        return False
    try:
        return not giving(source, maintainer, name, None, None, replace=False).is_new
    except TagExists:
        return False


def _other_clone(target: Store, database: str, cut: Cut) -> TargetNotEmpty:
    return TargetNotEmpty(
        f"{target.url} holds a clone of database {database!r} already, of the version {cut}.",
        next_step="Clone to another place, or that version.",
    )


class _Target:
    """The place that a database is cloned to. ``maintainer`` is who publishes the clone's horizon there, and nothing else."""

    def __init__(self, files: LogFiles, maintainer: str) -> None:
        self.files = files
        self.store = files.store
        self.maintainer = maintainer

    def look(self) -> _Found:
        """What is there; ``TargetNotEmpty`` where it is no clone that this one could be. Segments without a timeline are nothing."""
        writers = {name for name in self.files.writers() if has_timeline(self.store, name, self.files.database)}
        if not writers:
            return _Found()
        newest = max(self.files.transactions(self.maintainer), default=None) if self.maintainer in writers else None
        boundary = self.files.transaction(self.maintainer, newest).boundary if newest is not None else None
        if boundary is None or boundary.checkpoint is None:
            raise TargetNotEmpty(
                f"{self.store.url} has a database {self.files.database!r} already.", next_step="Clone to another place."
            )
        return _Found(boundary.horizon, boundary.checkpoint, self._has(boundary.checkpoint))

    def _has(self, link: CheckpointLink) -> bool:
        try:
            self.store.head(paths.checkpoint(link.writer, self.files.database, link.head))
        except ObjectNotFound:
            return False
        return True

    def mark(self, link: CheckpointLink) -> None:
        """Put the marker of the checkpoint, which makes opening the clone cheap."""
        put_retrying(self.store, paths.newest_marker(link.writer, self.files.database, link.head), b"")


class _Clone:
    """One run: what the view holds, written to the target, without the segments of events that are ``lost``."""

    def __init__(self, files: LogFiles, place: _Target, view: LogView, lost: Collection[bytes], now: Callable[[], int]) -> None:
        self._files = files
        self._place = place
        self._view = view
        self._lost = lost
        self._now = now
        self._bytes = 0

    def write(self, cloned: Cloned) -> Cloned:
        """Everything, the file that makes it a database last but for the marker."""
        checkpoint = self._checkpoint()
        data = encode_checkpoint(checkpoint)
        link = CheckpointLink(checkpoint.writer, checkpoint.revision, checkpoint.uuid, digest(data))
        heads = list(self._view.cut.refs())
        segments = [segment for ref in heads for segment in self._files.transaction(*ref).segments]
        named = [segment for segment in segments if segment.uuid not in self._lost]
        for segment in named:
            self._copy_segment(segment)
        self._publish(link, floors_of(checkpoint, {}))
        self._files.map(self._copy, heads)
        put_retrying(self._place.store, paths.checkpoint(link.writer, self._files.database, link.head), data)
        self._place.mark(link)
        return replace(
            cloned,
            rows=sum(totals.live + totals.tombstones + totals.stubs for totals in checkpoint.totals.values()),
            segments=len(checkpoint.segments) + len(named),
            transactions=len(heads),
            bytes=len(data) + sum(segment.size for segment in [*checkpoint.segments, *named]),
        )

    def _checkpoint(self) -> Checkpoint:
        """The checkpoint of exactly the cut, whose segments are put; beside the transaction that is going to publish its horizon."""
        view, contents, writer = self._view, Contents(self._files, self._view), self._place.maintainer
        began = self._place.store.now_us(paths.transactions_prefix(writer, self._files.database))
        uuid = clock.uuid7(view.newest_commit_time).bytes
        (parts,) = merge_parts(map(contents.state, contents.names), set(contents.names), 1) or [()]
        task = MergeTask(writer, self._files.database, view.cut, began, parts, Origin(uuid, tasks=1), INLINE_BYTES)
        merged = run_task(self._files.store, task, into=self._place.store)
        boundary = boundaries_of(view).data
        return Checkpoint(
            writer=writer,
            database=self._files.database,
            revision=0,
            uuid=uuid,
            cut=view.cut,
            coverage={name: _coverage(view, name) for name in view.cut.heads},
            created=clock.now_us(),
            lateness_bound=view.lateness_bound,
            definitions=contents.definitions.stamped,
            totals=totals_of(part.run for part in merged.parts),
            applications=tuple(result for _, result in sorted(latest_results(view).items())),
            segments=merged.segments,
            inline=merged.inline,
            tags=tuple(entry for tag in tags_of(view).values() for entry in tag.entries),
            voids=tuple(view.voids.values()),
            asides=tuple(view.asides.values()),
            boundaries=() if boundary is None else (replace(boundary, horizon=Cut(), checkpoint=None, first=Cut(), floors={}),),
            witnessed=witnessed_in(view),
            reads=outside_reads(self._files, view),
        )

    def _publish(self, link: CheckpointLink, floors: Mapping[str, int]) -> None:
        """The transaction by which nothing before the cut can be read in the clone, and which witnesses what the cut defines."""
        read = unwitnessed(definitions_of(self._view), self._view.newest_commit_time)
        database = Database(self._place.store, self._files.database)
        database.remember(self._view.cut)
        with Writer(database, self._place.maintainer, self._now, DEFAULT_LIMITS) as writer:
            metadata = {"source": self._files.store.url, "version": str(self._view.cut)}
            boundary = Boundary(horizon=self._view.cut, checkpoint=link, floors=floors)
            writer.commit(Commit(operation=CLONE, metadata=metadata, boundary=boundary, witnessed=read))

    def _copy(self, files: LogFiles, ref: Ref) -> None:
        """The transaction byte for byte, once it was found to be whole."""
        writer, head = ref
        _, data = files.stored_transaction(writer, head)
        put_retrying(self._place.store, paths.transaction(writer, files.database, head), data)

    def _copy_segment(self, reference: SegmentReference) -> None:
        """A segment of events byte for byte, and no more of it than its reference says; one at a time, for they are large.

        What is wrong in a block of it stays so.
        """
        name = paths.segment(reference.writer, self._files.database, reference.uuid)
        put_retrying(self._place.store, name, self._files.store.get(name, most=reference.size))


def _coverage(view: LogView, writer: str) -> Coverage:
    """Of a timeline the clone has the heads alone, and nothing can arrive before the last of them."""
    heads = view.cut.of_writer(writer)
    before = max((c.coverage[writer].transactions for c in view.checkpoints if writer in c.coverage), default=0)
    newest = max(heads)
    return Coverage(
        list_from=newest.revision,
        recent=frozenset(head for head in heads if head.revision == newest.revision),
        branches=frozenset(head for head in heads if head.revision < newest.revision),
        newest_commit_time=max(head.commit_time for head in heads),
        transactions=before + sum(1 for t in view.tail if t.writer == writer),
    )
