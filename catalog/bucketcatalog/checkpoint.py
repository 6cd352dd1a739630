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
from .codec.checkpoints import Checkpoint, Totals, encode_checkpoint
from .codec.seal import RUNS
from .codec.segments import SegmentBuilder, SegmentReference
from .contents import Contents
from .cut import Cut, Head
from .errors import HistoryPruned
from .log.ancestry import without_ancestors
from .log.applications import latest_results
from .log.boundaries import boundaries_of
from .log.coverage import Covered
from .log.covering import coverages
from .log.files import LogFiles
from .log.horizon import Horizon
from .log.looking import horizon_of, newest_own, newest_view
from .log.owner import OwnTimeline
from .log.tags import tags_of
from .log.view import View
from .log.walking import version_view
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
    writer, bound = timeline.writer, timeline.limits.lateness_bound
    limit = files.store.now_us() + timeline.limits.clock_skew
    horizon = horizon_of(files)
    parent = _parent(files, writer, limit, horizon, alone=note is None)
    only = writer if note is None else None
    view = newest_view(files, everything=True, ahead_of=limit, only=only, using=parent, horizon=horizon)
    if not view.tail and (len(view.checkpoints) == 0 or any(c.cut == view.cut for c in view.checkpoints)):
        return None
    if note is None:
        return _written(files, _Place(writer, max(view.cut.of_writer(writer)).revision, bound), view, parent)
    followed = {(writer, Head(link.revision, link.uuid)) for link in timeline.parents}
    head = note(view.cut)
    kept = [(name, other) for name, heads in view.cut.heads.items() for other in heads if (name, other) not in followed]
    return _written(files, _Place(writer, head.revision, bound), replace(view, cut=Cut.of([(writer, head), *kept])), parent)


def write_kept(files: LogFiles, writer: str, cut: Cut, horizon: Horizon | None) -> CheckpointResult:
    """A checkpoint of a past cut in the writer's namespace, which keeps the cut readable when what it is made from is pruned.

    It lies at the first revision and has no marker, so that only who asks for this very cut meets it.
    """
    try:
        view = version_view(files, cut, horizon)
    except HistoryPruned:
        view = version_view(files, cut)  # nothing that it needs may go before it has this checkpoint
    parent = view.checkpoints[0] if len(view.checkpoints) == 1 else None
    return _written(files, _Place(writer, 0, view.lateness_bound, marked=False), view, parent)


def _parent(files: LogFiles, writer: str, limit: int, horizon: Horizon | None, *, alone: bool) -> Checkpoint | None:
    """The checkpoint to start from: the writer's newest of its own timeline ``alone``, or of others' too.

    What it does not cover has to be there: from before the horizon it is gone. Then it is one that reaches the horizon, or is its own.
    """
    own = newest_own(files, writer, limit, alone=alone)
    if horizon is None:
        return own
    reaching = Covered(files, [own] if own is not None else [], horizon)
    if all(reaching.holds(writer, head) for head in horizon.cut.of_writer(writer)) if alone else own and reaching.reaches(own):
        return own
    others = newest_own(files, writer, limit, alone=False)
    return others if others is not None and reaching.reaches(others) else horizon.checkpoint


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a checkpoint lies, the lateness bound that its maker promises, and whether a marker leads to it."""

    writer: str
    revision: int
    lateness_bound: int
    marked: bool = True


def _written(files: LogFiles, place: _Place, view: View, parent: Checkpoint | None) -> CheckpointResult:
    """Write the checkpoint of the view's cut from ``parent``, the only one that the view was read from."""
    contents = Contents(files, view)
    kept, written = _state(files, place.writer, view.cut, contents, parent)
    totals = _totals([*kept, *written])
    bound = max(view.lateness_bound, place.lateness_bound)
    checkpoint = Checkpoint(
        writer=place.writer,
        database=files.database,
        revision=place.revision,
        uuid=clock.uuid7(view.cut.newest_commit_time).bytes,
        cut=view.cut,
        coverage=coverages(files, view, view.observed - 2 * bound),
        created=clock.now_us(),
        lateness_bound=bound,
        definitions=contents.definitions.given,
        totals=totals,
        applications=tuple(result for _, result in sorted(latest_results(view).items())),
        segments=(*kept, *written),
        tags=tuple(entry for tag in tags_of(view).values() for entry in tag.entries),
        boundaries=boundaries_of(view).entries,
        reads=_outside_reads(files, view),
        features=frozenset({RUNS} if kept else ()),
    )
    data = encode_checkpoint(checkpoint)
    name = paths.checkpoint(place.writer, files.database, checkpoint.revision, checkpoint.uuid)
    _put(files, name, data)
    if place.marked:
        _put(files, paths.newest_marker(place.writer, files.database, checkpoint.revision, checkpoint.uuid), b"")
    rows = sum(t.live + t.tombstones + t.stubs for t in totals.values())
    size = len(data) + sum(segment.size for segment in written)
    reused = sum(segment.size for segment in kept)
    return CheckpointResult(name, str(view.cut), checkpoint.revision, rows, size, len(kept) + len(written), reused)


def _put(files: LogFiles, name: str, data: bytes) -> None:
    """Put a file of a checkpoint; a lost response is met with the same bytes again."""
    put_persistently(files.store, name, data, for_seconds(_PATIENCE))


class _Segments:
    """Collects blocks into segments of a checkpoint, and puts each when it is full."""

    def __init__(self, files: LogFiles, writer: str, cut: Cut, contents: Contents) -> None:
        self.written: list[SegmentReference] = []
        self._files = files
        self._writer = writer
        self._cut = cut
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
            uuid = clock.uuid7(self._cut.newest_commit_time).bytes
            tables = [self._contents.table(name) for name in sorted(self._names)]
            data, reference = self._builder.finish(
                writer=self._writer, database=self._files.database, uuid=uuid, cut=self._cut, tables=tables
            )
            _put(self._files, paths.segment(self._writer, self._files.database, uuid), data)
            self.written.append(reference)
        self._builder, self._names = SegmentBuilder(), set()


def _state(
    files: LogFiles, writer: str, cut: Cut, contents: Contents, parent: Checkpoint | None
) -> tuple[list[SegmentReference], list[SegmentReference]]:
    """The segments that hold the state: those of ``parent`` that are used again, and those that were written.

    Without a parent everything is written. With one a table that has nothing new stays as it is, and of the others the levels that
    ``tiers`` says are merged with what is new.
    """
    segments = _Segments(files, writer, cut, contents)
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


def _outside_reads(files: LogFiles, view: View) -> Cut:
    """What the covered transactions had read of writers that the cut does not cover as far."""
    reads = Cut()
    for cut in (*(c.reads for c in view.checkpoints), *(t.reads for t in view.tail)):
        reads = reads.joined(cut)
    outside = {w: heads for w, heads in reads.heads.items() if reads.newest_revision(w) > view.cut.newest_revision(w)}
    return without_ancestors(files, Cut(outside))
