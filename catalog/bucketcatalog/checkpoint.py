"""Checkpoints: the state at a cut, written as segments, so that readers need not replay what led there.

A checkpoint is only an optimisation: whatever checkpoints exist, every answer equals the one from the transactions alone. This version
rewrites the whole state; it reads it slice by slice, so its memory does not grow with the catalog. The order of the writes is the
segments, the checkpoint, its marker under ``newest/``: until the marker is there nothing refers to what was written before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from . import clock, paths
from .codec.blocks import TARGET_ROWS, BlockClass, EncodedBlock, encode_blocks
from .codec.checkpoints import Checkpoint, Coverage, Totals, encode_checkpoint
from .codec.segments import SegmentBuilder, SegmentReference
from .contents import Contents
from .cut import Cut, Head
from .facts import Facts, Kind, concat
from .log.ancestry import without_ancestors
from .log.applications import latest_results
from .log.coverage import Covered
from .log.files import LogFiles
from .log.looking import newest_view
from .log.owner import LOOK_WITHIN, MAX_CLOCK_SKEW, OwnTimeline
from .log.tags import tags_of
from .log.view import View
from .reading import Part, read_slice
from .store.persist import for_seconds, put_persistently
from .tables import Table

TARGET_SEGMENT_BYTES = 64 << 20
_PATIENCE = 60.0
"""Seconds for which a file of a checkpoint is put again; whoever has waited longer had better look at the store."""


@dataclass(frozen=True, slots=True)
class CheckpointResult:
    """What a checkpoint made: its name, the version that it covers, and what it wrote."""

    name: str
    version: str
    revision: int
    rows: int
    bytes: int
    segments: int


def write_checkpoint(files: LogFiles, timeline: OwnTimeline, note: Callable[[Cut], Head] | None) -> CheckpointResult | None:
    """A checkpoint of the timeline, or with ``note`` of every writer's; None where there is nothing new to cover.

    ``note`` commits a transaction without events that has read the cut; the checkpoint then lies beside it.
    """
    writer = timeline.writer
    limit = files.store.now_us() + timeline.limits.clock_skew
    view = newest_view(files, everything=True, ahead_of=limit, only=writer if note is None else None)
    if not view.tail and (len(view.checkpoints) == 0 or any(c.cut == view.cut for c in view.checkpoints)):
        return None
    if note is None:
        return _write(files, timeline, view, max(view.cut.of_writer(writer)))
    followed = {(writer, Head(link.revision, link.uuid)) for link in timeline.parents}
    head = note(view.cut)
    kept = [(name, other) for name, heads in view.cut.heads.items() for other in heads if (name, other) not in followed]
    return _write(files, timeline, replace(view, cut=Cut.of([(writer, head), *kept])), head)


def _write(files: LogFiles, timeline: OwnTimeline, view: View, head: Head) -> CheckpointResult:
    """The checkpoint of the view's cut, beside the transaction ``head``."""
    writer = timeline.writer
    contents = Contents(files, view)
    segments, totals = _write_segments(files, writer, view.cut, contents)
    bound = max(view.lateness_bound, timeline.limits.lateness_bound)
    checkpoint = Checkpoint(
        writer=writer,
        database=files.database,
        revision=head.revision,
        uuid=clock.uuid7(view.cut.newest_commit_time).bytes,
        cut=view.cut,
        coverage=_coverages(files, view, view.observed - 2 * bound),
        created=clock.now_us(),
        lateness_bound=bound,
        definitions=contents.definitions.given,
        totals=totals,
        applications=tuple(result for _, result in sorted(latest_results(view).items())),
        segments=tuple(segments),
        tags=tuple(entry for tag in tags_of(view).values() for entry in tag.entries),
        reads=_outside_reads(files, view),
    )
    data = encode_checkpoint(checkpoint)
    name = paths.checkpoint(writer, files.database, checkpoint.revision, checkpoint.uuid)
    _put(files, name, data)
    _put(files, paths.newest_marker(writer, files.database, checkpoint.revision, checkpoint.uuid), b"")
    rows = sum(t.live + t.tombstones + t.stubs for t in totals.values())
    size = len(data) + sum(segment.size for segment in segments)
    return CheckpointResult(name, str(view.cut), checkpoint.revision, rows, size, len(segments))


def _put(files: LogFiles, name: str, data: bytes) -> None:
    """Put a file of a checkpoint; a lost response is met with the same bytes again."""
    put_persistently(files.store, name, data, for_seconds(_PATIENCE))


def _write_segments(
    files: LogFiles, writer: str, cut: Cut, contents: Contents
) -> tuple[list[SegmentReference], dict[str, Totals]]:
    references: list[SegmentReference] = []
    totals: dict[str, Totals] = {}
    builder = SegmentBuilder()

    def flush() -> None:
        nonlocal builder
        if builder.size:
            uuid = clock.uuid7(cut.newest_commit_time).bytes
            tables = [contents.table(name) for name in contents.names]
            data, reference = builder.finish(writer=writer, database=files.database, uuid=uuid, cut=cut, tables=tables)
            _put(files, paths.segment(writer, files.database, uuid), data)
            references.append(reference)
        builder = SegmentBuilder()

    for name in contents.names:
        table = contents.table(name)
        counts = dict.fromkeys(_CLASSES, 0)
        for block in _table_blocks(contents, table):
            counts[block.header.block_class] += block.header.rows
            builder.add(block)
            if builder.size >= TARGET_SEGMENT_BYTES:
                flush()
        if any(counts.values()):
            totals[name] = Totals(counts[BlockClass.LIVE], counts[BlockClass.ENDED], counts[BlockClass.STUBS])
    flush()
    return references, totals


_CLASSES = (BlockClass.LIVE, BlockClass.ENDED, BlockClass.STUBS)


def _table_blocks(contents: Contents, table: Table) -> Iterator[EncodedBlock]:
    """The state of a table as blocks; each class is a run of its own, in key order."""
    base = contents.base(table.name)
    waiting: dict[BlockClass, list[Facts]] = {kind: [] for kind in _CLASSES}
    for piece in base.plan():
        state = read_slice(base.store, table, piece, Part.EVERYTHING)
        for kind, rows in _by_class(state):
            yield from _full_blocks(waiting[kind], rows, table, kind)
    for kind in _CLASSES:
        if waiting[kind]:
            yield from encode_blocks(concat(waiting[kind]), table, kind)


def _full_blocks(waiting: list[Facts], rows: Facts, table: Table, kind: BlockClass) -> Iterator[EncodedBlock]:
    """Blocks of what is complete; the rest waits for the next slice."""
    waiting.append(rows)
    if sum(len(part) for part in waiting) < TARGET_ROWS:
        return
    joined = concat(waiting)
    whole = len(joined) - len(joined) % TARGET_ROWS
    yield from encode_blocks(joined.slice(0, whole), table, kind)
    waiting[:] = [joined.slice(whole, len(joined))] if whole < len(joined) else []


def _by_class(state: Facts) -> Iterator[tuple[BlockClass, Facts]]:
    is_version = state.numbers("_kind") == Kind.VERSION
    ended = state.numbers("_end_kind") > 0
    purged = ended & (state.numbers("_purged") > 0)
    masks = {
        BlockClass.LIVE: is_version & ~ended,
        BlockClass.ENDED: is_version & ended & ~purged,
        BlockClass.STUBS: ~is_version | purged,
    }
    for kind, mask in masks.items():
        if np.any(mask):
            yield kind, state.filter(pa.array(mask))


def _coverages(files: LogFiles, view: View, oldest: int) -> dict[str, Coverage]:
    """For each writer the transactions that may still be joined by late ones, by name, and the branches before these."""
    coverages = {}
    long_ago = oldest - LOOK_WITHIN - MAX_CLOCK_SKEW
    earlier = Covered(files, [checkpoint for checkpoint in view.checkpoints if checkpoint.created < long_ago])
    for writer in view.cut.heads:
        known = _known(files, view, writer)
        several = _several(known)
        recent = [head for head in known if head.commit_time >= oldest]
        # A head may have arrived a moment ago, however old it is: then another process that has not seen it may be about to publish
        # a transaction of the same revision. What has followers or was covered long ago had arrived long ago.
        unsure = [head for head in view.cut.of_writer(writer) if not earlier.holds(writer, head)]
        list_from = min((head.revision for head in (*recent, *unsure)), default=view.cut.newest_revision(writer) + 1)
        coverages[writer] = Coverage(
            list_from=list_from,
            recent=frozenset(head for head in known if head.revision >= list_from),
            branches=frozenset(head for head in known if head.revision < list_from and head.revision in several),
            newest_commit_time=max(head.commit_time for head in view.cut.of_writer(writer)),
            transactions=len(known),
        )
    return coverages


def _known(files: LogFiles, view: View, writer: str) -> set[Head]:
    """Every transaction of the writer in the view's cut."""
    covered = Covered(files, view.checkpoints)
    tail = {t.head for t in view.tail if t.writer == writer}
    listed = set(files.transactions(writer))
    covered.know(writer, listed)
    named = {h for c in view.checkpoints if writer in c.coverage for h in c.coverage[writer].recent | c.coverage[writer].branches}
    return tail | named | set(view.cut.of_writer(writer)) | {head for head in listed - tail if covered.holds(writer, head)}


def _several(heads: set[Head]) -> set[int]:
    return {revision for revision, count in Counter(head.revision for head in heads).items() if count > 1}


def _outside_reads(files: LogFiles, view: View) -> Cut:
    """What the covered transactions had read of writers that the cut does not cover as far."""
    reads = Cut()
    for cut in (*(c.reads for c in view.checkpoints), *(t.reads for t in view.tail)):
        reads = reads.joined(cut)
    outside = {w: heads for w, heads in reads.heads.items() if reads.newest_revision(w) > view.cut.newest_revision(w)}
    return without_ancestors(files, Cut(outside))
