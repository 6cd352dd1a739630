"""Checkpoints: the state at a cut, written as segments, so that readers need not replay what led there.

A checkpoint is only an optimisation: whatever checkpoints exist, every answer equals the one from the transactions alone. Its cost follows
what has changed: it writes what is new over the checkpoint before as a level of its own, or merged with some of its levels (``tiers``), and
refers to the others' segments again. The order of the writes is the segments, the checkpoint, its marker under ``newest/``: until the
marker is there nothing refers to what was written before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from . import clock, paths
from .codec.blocks import BlockClass, EncodedBlock
from .codec.checkpoints import Checkpoint, Coverage, Totals, encode_checkpoint
from .codec.seal import RUNS, VOIDS
from .codec.segments import SegmentBuilder, SegmentReference
from .contents import Contents
from .cut import Cut, Head
from .log.ancestry import without_ancestors
from .log.applications import latest_results
from .log.coverage import Covered
from .log.files import LogFiles
from .log.looking import newest_own, newest_view
from .log.owner import LOOK_WITHIN, MAX_CLOCK_SKEW, OwnTimeline
from .log.tags import tags_of
from .log.view import View
from .merging import merged_blocks
from .store.persist import for_seconds, put_persistently
from .tiers import lowest_merged

TARGET_SEGMENT_BYTES = 64 << 20
_PATIENCE = 60.0
"""Seconds for which a file of a checkpoint is put again; whoever has waited longer had better look at the store."""


@dataclass(frozen=True, slots=True)
class CheckpointResult:
    """What a checkpoint made: its name, the version that it covers, the rows and segments of that state, and what was written for it.

    ``bytes`` were written; ``reused_bytes`` are the size of segments of the checkpoint before, referred to again.
    """

    name: str
    version: str
    revision: int
    rows: int
    bytes: int
    segments: int
    reused_bytes: int = 0


def write_checkpoint(files: LogFiles, timeline: OwnTimeline, note: Callable[[Cut], Head] | None) -> CheckpointResult | None:
    """A checkpoint of the timeline, or with ``note`` of every writer's; None where there is nothing new to cover.

    ``note`` commits a transaction without events that has read the cut; the checkpoint then lies beside it.
    """
    writer = timeline.writer
    limit = files.store.now_us() + timeline.limits.clock_skew
    parent = newest_own(files, writer, limit, alone=note is None)
    only = writer if note is None else None
    view = newest_view(files, everything=True, ahead_of=limit, only=only, using=parent)
    if parent is not None and parent.uuid not in {checkpoint.uuid for checkpoint in view.checkpoints}:
        parent = None  # it covers what was voided since
    if not view.tail and (len(view.checkpoints) == 0 or any(c.cut == view.cut for c in view.checkpoints)):
        return None
    if note is None:
        return _write(files, timeline, view, max(view.cut.of_writer(writer)), parent)
    followed = {(writer, Head(link.revision, link.uuid)) for link in timeline.parents}
    head = note(view.cut)
    kept = [(name, other) for name, heads in view.cut.heads.items() for other in heads if (name, other) not in followed]
    return _write(files, timeline, replace(view, cut=Cut.of([(writer, head), *kept])), head, parent)


def _write(files: LogFiles, timeline: OwnTimeline, view: View, head: Head, parent: Checkpoint | None) -> CheckpointResult:
    """The checkpoint of the view's cut, beside the transaction ``head``, from ``parent``, the one that the view was read from."""
    writer = timeline.writer
    contents = Contents(files, view)
    kept, written = _state(files, writer, view, contents, parent)
    totals = _totals([*kept, *written])
    bound = max(view.lateness_bound, timeline.limits.lateness_bound)
    checkpoint = Checkpoint(
        writer=writer,
        database=files.database,
        revision=head.revision,
        uuid=clock.uuid7(view.newest_commit_time).bytes,
        cut=view.cut,
        coverage=_coverages(files, view, view.observed - 2 * bound),
        created=clock.now_us(),
        lateness_bound=bound,
        definitions=contents.definitions.given,
        totals=totals,
        applications=tuple(result for _, result in sorted(latest_results(view).items())),
        segments=(*kept, *written),
        tags=tuple(entry for tag in tags_of(view).values() for entry in tag.entries),
        voids=tuple(view.voids.values()),
        reads=_outside_reads(files, view),
        features=frozenset(({RUNS} if kept else set()) | ({VOIDS} if view.voids else set())),
    )
    data = encode_checkpoint(checkpoint)
    name = paths.checkpoint(writer, files.database, checkpoint.revision, checkpoint.uuid)
    _put(files, name, data)
    _put(files, paths.newest_marker(writer, files.database, checkpoint.revision, checkpoint.uuid), b"")
    rows = sum(t.live + t.tombstones + t.stubs for t in totals.values())
    size = len(data) + sum(segment.size for segment in written)
    reused = sum(segment.size for segment in kept)
    return CheckpointResult(name, str(view.cut), checkpoint.revision, rows, size, len(kept) + len(written), reused)


def _put(files: LogFiles, name: str, data: bytes) -> None:
    """Put a file of a checkpoint; a lost response is met with the same bytes again."""
    put_persistently(files.store, name, data, for_seconds(_PATIENCE))


class _Segments:
    """Collects blocks into segments of a checkpoint, and puts each when it is full."""

    def __init__(self, files: LogFiles, writer: str, view: View, contents: Contents) -> None:
        self.written: list[SegmentReference] = []
        self._files = files
        self._writer = writer
        self._view = view
        self._contents = contents
        self._builder = SegmentBuilder()
        self._names: set[str] = set()

    def add(self, block: EncodedBlock) -> None:
        """Add a block of a run; blocks of a run come one after the other."""
        self._builder.add(block)
        self._names.add(block.header.table)
        if self._builder.size >= TARGET_SEGMENT_BYTES:
            self.flush()

    def flush(self) -> None:
        """Put what was collected."""
        if self._builder.size:
            uuid = clock.uuid7(self._view.newest_commit_time).bytes
            tables = [self._contents.table(name) for name in sorted(self._names)]
            data, reference = self._builder.finish(
                writer=self._writer, database=self._files.database, uuid=uuid, cut=self._view.cut, tables=tables
            )
            _put(self._files, paths.segment(self._writer, self._files.database, uuid), data)
            self.written.append(reference)
        self._builder, self._names = SegmentBuilder(), set()


def _state(
    files: LogFiles, writer: str, view: View, contents: Contents, parent: Checkpoint | None
) -> tuple[list[SegmentReference], list[SegmentReference]]:
    """The segments that hold the state: those of ``parent`` that are used again, and those that were written.

    Without a parent everything is written. With one a table that has nothing new stays as it is, and of the others the levels that
    ``tiers`` says are merged with what is new.
    """
    segments = _Segments(files, writer, view, contents)
    merged: dict[str, int] = {}
    for name in contents.names:
        base = contents.base(name)
        if parent is None:
            merged[name] = 0
        elif base.new_rows:
            merged[name] = lowest_merged(base.level_rows, base.new_rows)
        if name in merged:
            for block in merged_blocks(base.above(merged[name]) if merged[name] else base):
                segments.add(block)
    segments.flush()
    written = [segment.with_levels(merged) for segment in segments.written]
    kept = [segment.below(merged) for segment in (parent.segments if parent is not None else ())]
    return [segment for segment in kept if segment.runs], written


def _totals(segments: Iterable[SegmentReference]) -> dict[str, Totals]:
    """How many rows of each sort the segments hold, by table."""
    counts: dict[str, Counter[BlockClass]] = {}
    for segment in segments:
        for run in segment.runs:
            counts.setdefault(run.table, Counter())[run.block_class] += run.rows
    return {name: Totals(of[BlockClass.LIVE], of[BlockClass.ENDED], of[BlockClass.STUBS]) for name, of in counts.items()}


def _coverages(files: LogFiles, view: View, oldest: int) -> dict[str, Coverage]:
    """For each writer the transactions that may still be joined by late ones, by name, and the branches before these."""
    coverages = {}
    long_ago = oldest - LOOK_WITHIN - MAX_CLOCK_SKEW
    earlier = Covered(files, [checkpoint for checkpoint in view.checkpoints if checkpoint.created < long_ago])
    for writer in view.cut.heads:
        known = _known(files, view, writer)
        several = _several(known)
        recent = [head for head in known if head.commit_time >= oldest and (writer, head) not in view.voids]
        # A head may have arrived a moment ago, however old it is: then another process that has not seen it may be about to publish
        # a transaction of the same revision. What has followers or was covered long ago had arrived long ago.
        unsure = [head for head in view.cut.of_writer(writer) if not earlier.holds(writer, head)]
        list_from = min((head.revision for head in (*recent, *unsure)), default=view.cut.newest_revision(writer) + 1)
        coverages[writer] = Coverage(
            list_from=list_from,
            recent=frozenset(head for head in known if head.revision >= list_from),
            branches=frozenset(head for head in known if head.revision < list_from and head.revision in several),
            newest_commit_time=max((h.commit_time for h in known if (writer, h) not in view.voids), default=0),
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
