"""Checkpoints and what they refer to: each file for itself, and against the names that there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...errors import CorruptionError, UnsupportedFormat
from ...format.checkpoints import Checkpoint, Coverage
from ...format.losses import Held, held_in_segment, revision
from ...format.sealing import RUNS
from ...format.segment_refs import SegmentReference, runs_of
from ...format.segments import BlockPlace
from ...log.files import LogFiles
from ...log.segments import read_index_and_filters
from ...model import paths
from ...parallel import in_order
from ...state.indexes import runs_by_table
from .findings import Finding, unreadable
from .inventory import Inventory
from .timelines import Ref


def read_checkpoints(files: LogFiles, refs: Sequence[Ref]) -> Iterator[Checkpoint | Finding]:
    """Every one of these checkpoints that can be read, and a finding for each that cannot."""

    def read(ref: Ref) -> Checkpoint | Finding:
        try:
            return files.checkpoint(*ref)
        except (CorruptionError, UnsupportedFormat) as error:
            name = paths.checkpoint(ref[0], files.database, ref[1].revision, ref[1].uuid)
            return unreadable(error, "CHECKPOINT", name, Held(writer=ref[0], last_revision=ref[1].revision))

    return in_order(read, refs, threads=files.concurrency)


def check_checkpoint(checkpoint: Checkpoint, name: str, *, kept: bool) -> Iterator[Finding]:
    """Whether a checkpoint agrees with itself; where one that is ``kept`` for a tag lies says nothing."""
    held = tuple(revision(w, h.revision, 0) for w, heads in checkpoint.cut.heads.items() for h in heads)
    for problem in _problems(checkpoint, kept=kept):
        yield Finding("WRONG_CHECKPOINT", name, f"{problem}.", held)


def _problems(checkpoint: Checkpoint, *, kept: bool) -> Iterator[str]:
    cut, voided = checkpoint.cut, {void.ref for void in checkpoint.voids}
    times = [head.commit_time for writer, heads in cut.heads.items() for head in heads if (writer, head) not in voided]
    newest = max(times, default=0)
    if checkpoint.as_of < newest or (checkpoint.as_of != newest and not voided):
        yield "Its uuid has another time than the newest transaction that it covers"
    if set(checkpoint.coverage) != set(cut.heads):
        yield "It does not say of each writer in its cut how it covers it"
    if not kept and checkpoint.revision > cut.newest_revision(checkpoint.writer):
        yield "It lies beside a transaction that it does not cover"
    for writer, coverage in sorted(checkpoint.coverage.items()):
        yield from _of_coverage(writer, coverage, cut.newest_revision(writer))
    if any(run.level for s in checkpoint.segments for run in s.runs) and RUNS not in checkpoint.features:
        yield f"It has levels and does not require the feature {RUNS!r}"
    yield from _of_totals(checkpoint)


def _of_coverage(writer: str, coverage: Coverage, newest: int) -> Iterator[str]:
    if any(not coverage.list_from <= head.revision <= newest for head in coverage.recent):
        yield f"Of {writer} it names recent transactions that are not between {coverage.list_from} and {newest}"
    if any(head.revision >= coverage.list_from for head in coverage.branches):
        yield f"Of {writer} it names branches at or after revision {coverage.list_from}"
    if coverage.list_from > newest + 1:
        yield f"Of {writer} it lists from revision {coverage.list_from}, behind all that it covers"


def _of_totals(checkpoint: Checkpoint) -> Iterator[str]:
    defined = {definition.table.name for definition in checkpoint.definitions}
    rows: Counter[str] = Counter()
    for segment in checkpoint.segments:
        for run in segment.rows_runs:
            rows[run.table] += run.rows
    for table, totals in checkpoint.totals.items():
        if rows.pop(table, 0) != totals.live + totals.tombstones + totals.stubs:
            yield f"Its totals of table {table!r} are not those of its segments"
    for table in sorted(rows):
        yield f"It has rows of table {table!r} and no totals of it"
    strange = {run.table for s in checkpoint.segments for run in s.runs} - defined
    for table in sorted(strange):
        yield f"It has rows of table {table!r}, which it does not define"


@dataclass
class References:
    """A segment as those who refer to it describe it, and who they are; levels and what is listed may differ among them."""

    by: list[str] = field(default_factory=list)
    described: list[SegmentReference] = field(default_factory=list)


def check_segment(
    files: LogFiles, references: References, found: Mapping[str, Inventory]
) -> tuple[list[BlockPlace], list[Finding]]:
    """The blocks of a segment that have to be read, and what is wrong with its index or with those who refer to it."""
    reference = references.described[0]
    name = paths.segment(reference.writer, files.database, reference.uuid)
    held = held_in_segment(reference)
    info = found[reference.writer].segments.get(reference.uuid) if reference.writer in found else None
    if info is None:
        return [], [Finding("MISSING_SEGMENT", name, f"It is gone; {references.by[0]} refers to it.", held)]
    try:
        places, _ = read_index_and_filters(files.store, files.database, reference)
        runs_by_table(places)
    except (CorruptionError, UnsupportedFormat) as error:
        return [], [unreadable(error, "SEGMENT", name, *held)]
    wrong = [f for by, d in zip(references.by, references.described, strict=True) for f in _against(by, d, places, name)]
    if info.size != reference.size:
        wrong.append(Finding("DAMAGED_SEGMENT", name, f"It has {info.size} bytes and should have {reference.size}.", held))
    return list(places), wrong


def _against(by: str, reference: SegmentReference, places: tuple[BlockPlace, ...], name: str) -> Iterator[Finding]:
    """What somebody who refers to a segment says of it that its index denies."""
    there = {(run.table, run.block_class): run for run in runs_of((place.header, None) for place in places)}
    for run in reference.runs:
        own = there.get((run.block_table, run.block_class))
        said = (run.rows, run.blocks, run.first_key, run.last_key, run.oldest, run.newest)
        if own is None or said != (own.rows, own.blocks, own.first_key, own.last_key, own.oldest, own.newest):
            held = Held(run.table, run.rows, run.first_key, run.last_key)
            text = f"It says of {run.block_class.name.lower()} rows of {run.table} in {name} what the index there denies."
            yield Finding("WRONG_CHECKPOINT", by, text, (held,))
