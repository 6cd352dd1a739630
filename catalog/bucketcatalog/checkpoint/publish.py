"""Publishing a checkpoint: what was decided before the merge and what its tasks wrote become files of the catalog.

The order of the writes is the segments, the checkpoint, its marker under ``newest/``: until the marker is there nothing refers to what was
written before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from .. import clock, limits
from ..errors import CheckpointTooLate
from ..format.checkpoints import Totals, encode_checkpoint
from ..format.headers import TOMBSTONES, BlockClass
from ..format.runs import InlineRun, Run, SegmentReference
from ..log.coverage import may_be_deleted
from ..log.discovery import horizon_of
from ..log.files import LogFiles
from ..model import paths
from ..model.times import shown_age
from ..store.retry import put_retrying
from .merge import Merged
from .plan import Prepared


@dataclass(frozen=True, slots=True)
class CheckpointResult:
    """What a checkpoint made: its name, the version that it covers, the rows and segments of that state, and what was written for it.

    ``bytes`` were written, by so many ``tasks``, in so many ``seconds`` from the look on; ``reused_bytes`` are the size of segments of the
    checkpoint before, referred to again.
    """

    name: str
    version: str
    revision: int
    rows: int
    bytes: int
    segments: int
    reused_bytes: int = 0
    tasks: int = 1
    seconds: float = 0.0


def publish(files: LogFiles, prepared: Prepared, merged: Iterable[Merged]) -> CheckpointResult:
    """Put the checkpoint that refers to what its tasks wrote, one result a task.

    ``CheckpointTooLate`` where that has taken so long that what it refers to may be pruned as something that nothing refers to, or where
    the checkpoint whose segments it refers to again may go by now.
    """
    made = [part.at_level(prepared.levels[part.run.table]) for one in merged for part in one.parts]
    kept = prepared.draft.segments
    written = [part for part in made if isinstance(part, SegmentReference)]
    inline = (*prepared.draft.inline, *(part for part in made if isinstance(part, InlineRun)))
    checkpoint = replace(
        prepared.draft, created=max(clock.now_us(), prepared.after + 1), segments=(*kept, *written), inline=inline
    )
    checkpoint = replace(checkpoint, totals=totals_of(checkpoint.runs))
    data = encode_checkpoint(checkpoint)
    name = paths.checkpoint(checkpoint.writer, files.database, checkpoint.head)
    _refuse_late(files, prepared, name)
    _refuse_pruned(files, prepared, name)
    put_retrying(files.store, name, data)
    if prepared.marked:
        put_retrying(files.store, paths.newest_marker(checkpoint.writer, files.database, checkpoint.head), b"")
    return CheckpointResult(
        name=name,
        version=str(checkpoint.cut),
        revision=checkpoint.revision,
        rows=sum(t.live + t.tombstones + t.stubs for t in checkpoint.totals.values()),
        bytes=len(data) + sum(segment.size for segment in written),
        segments=len(kept) + len(written),
        reused_bytes=sum(segment.size for segment in kept),
        tasks=len(prepared.tasks),
        seconds=round(clock.monotonic() - prepared.started, 3),
    )


def _refuse_late(files: LogFiles, prepared: Prepared, name: str) -> None:
    took = files.time_for(prepared.draft.writer) - prepared.began
    if took > limits.PUBLISH_WITHIN:
        raise CheckpointTooLate(
            f"{name} was not published: its merge took {shown_age(took)}, and what it wrote may have been pruned meanwhile.",
            next_step=f"Merge it on more cores, in less than {shown_age(limits.PUBLISH_WITHIN)}.",
        )


def _refuse_pruned(files: LogFiles, prepared: Prepared, name: str) -> None:
    """One that is kept for a tag is made of what goes, by who deletes it afterwards, or by others who find this one or make their own."""
    if (
        prepared.marked
        and prepared.parent is not None
        and prepared.draft.segments
        and may_be_deleted(prepared.parent, horizon_of(files))
    ):
        raise CheckpointTooLate(
            f"{name} was not published: prune may delete what it refers to, by a horizon that was published meanwhile.",
            next_step="Write it again: it then starts from the horizon.",
        )


def totals_of(runs: Iterable[Run]) -> dict[str, Totals]:
    """How many rows of each sort the runs hold, by table."""
    counts: dict[str, Counter[BlockClass]] = {}
    for run in runs:
        if run.is_of_rows:
            counts.setdefault(run.table, Counter())[run.block_class] += run.rows
    return {
        name: Totals(of[BlockClass.LIVE], sum(of[each] for each in TOMBSTONES), of[BlockClass.STUBS])
        for name, of in counts.items()
    }
