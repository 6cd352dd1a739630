"""Checkpoints that are lost, from the segments that were written for them.

A segment says for which checkpoint it was written, which one of how many it is, and what else that checkpoint refers to. Where all of
these are there and whole, their rows are the state at its cut, whatever levels they were: folding a row twice changes nothing. What only
the checkpoint itself held, its tags, voids, boundaries and results of applications, is not in them: that is what the transactions that
are still there tell of it, and the checkpoints before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from .. import limits
from ..clock import uuid7_time
from ..errors import UNREADABLE, IncompatibleTable
from ..format.authority import Definition, Definitions
from ..format.checkpoints import Checkpoint, Coverage
from ..format.definitions import core_tables
from ..format.held import Held, revision
from ..format.records import Witness
from ..format.segments import SegmentFile
from ..log.coverage import Covered
from ..log.discovery import whole_view
from ..log.entries import latest_of, newest_of, states_of, voids_of
from ..log.files import LogFiles
from ..log.pins import latest_pins
from ..log.segments import read_segment_file
from ..log.trust import is_trusted
from ..log.witnesses import counting, first_of
from ..model.cuts import Cut, Head, Ref
from .verify.checkpoints import check_block
from .verify.walk import Walk

_UNUSABLE = (*UNREADABLE, IncompatibleTable)


@dataclass(frozen=True)
class Rebuilt:
    """A checkpoint that can be made again: its uuid and cut, and what it is read from, as checkpoints of one run each.

    ``lost_entries`` are the transactions, by writer, whose tags, voids, boundaries and results are lost.
    """

    uuid: bytes
    cut: Cut
    parts: tuple[Checkpoint, ...]
    lost_entries: tuple[Held, ...]


def rebuilt(files: LogFiles, walk: Walk, now: int) -> Rebuilt | None:
    """The lost checkpoint that covers most and can be made again so that nothing is missing any more; None where there is none.

    ``now`` is the store's time, ``files`` have no checkpoint that cannot be trusted.
    """
    by_maker: dict[str, dict[bytes, SegmentFile]] = {}
    for segment in _readable(files, walk):
        writer = segment.reference.writer
        by_maker.setdefault("" if is_trusted(writer) else writer, {})[segment.reference.uuid] = segment
    whole = [(found, segments) for segments in by_maker.values() for found in _complete(segments)]
    for found, segments in sorted(whole, key=lambda each: _weight(each[0]), reverse=True):
        needed = {s.reference.uuid: s for s in found} | {
            uuid: segments[uuid] for s in found if s.origin for uuid in s.origin.kept
        }
        if all(_is_whole(files, segment, needed.values()) for segment in needed.values()):
            made = _made(files, walk, found, list(needed.values()), now)
            if _suffices(files, made):
                return made
    return None


def _readable(files: LogFiles, walk: Walk) -> Iterator[SegmentFile]:
    """Every segment of the database that says of itself what it is, and that a checkpoint which counts may have referred to.

    A plain writer's is of its own timeline, and its rows count if all of them are; over a horizon nobody could tell which part of it.
    """
    for writer, below in walk.found.items():
        for uuid, info in below.segments.items():
            try:
                segment = read_segment_file(files.store, info.name, info.size)
            except _UNUSABLE:
                continue
            reference = segment.reference
            if (reference.writer, segment.database, reference.uuid) != (writer, files.database, uuid):
                continue
            if is_trusted(writer):
                yield segment
            elif set(segment.cut.heads) == {writer} and walk.horizon is None:
                yield _only_own(segment, writer)


def _only_own(segment: SegmentFile, writer: str) -> SegmentFile:
    origin = segment.origin
    return segment._replace(
        reference=replace(segment.reference, only_of=writer),
        places=tuple(replace(place, only_of=writer) for place in segment.places),
        origin=None if origin is None else replace(origin, runs=tuple(run.only_of(writer) for run in origin.runs)),
    )


def _complete(segments: Mapping[bytes, SegmentFile]) -> Iterator[list[SegmentFile]]:
    """The segments of each checkpoint of which all are there."""
    by_checkpoint: dict[bytes, list[SegmentFile]] = {}
    for segment in segments.values():
        if segment.origin is not None:
            by_checkpoint.setdefault(segment.origin.checkpoint, []).append(segment)
    return (found for found in by_checkpoint.values() if _is_complete(found, segments))


def _is_complete(found: Sequence[SegmentFile], segments: Mapping[bytes, SegmentFile]) -> bool:
    """Whether every segment that the checkpoint referred to is among these."""
    origins = [segment.origin for segment in found if segment.origin is not None]
    parts: dict[int, set[int]] = {}
    for origin in origins:
        parts.setdefault(origin.task, set()).add(origin.part)
    ends = {origin.task: origin.part for origin in origins if origin.last}
    return all(task in ends and parts[task] >= set(range(ends[task] + 1)) for task in range(origins[0].tasks)) and all(
        uuid in segments for origin in origins for uuid in origin.kept
    )


def _weight(found: Sequence[SegmentFile]) -> tuple[int, bytes]:
    """How much a checkpoint covers."""
    cut = found[0].cut
    return sum(cut.newest_revision(writer) + 1 for writer in cut.heads), found[0].reference.uuid


def _is_whole(files: LogFiles, segment: SegmentFile, among: Iterable[SegmentFile]) -> bool:
    """Whether each block can be read and is what its header says."""
    definitions = Definitions(core_tables().values(), [d for each in among for d in _definitions(each)])
    runs = segment.origin.runs if segment.origin is not None else ()
    places = (*segment.places, *(place for run in runs for place in run.blocks))
    return not any(finding for place in places for finding in check_block(files.store, place, definitions))


def _definitions(segment: SegmentFile) -> list[Definition]:
    """The segment's definitions of tables; when each was given is lost, so that the time of its cut stands for it."""
    stamp = (segment.cut.newest_commit_time, segment.reference.writer, 0, segment.reference.uuid)
    return [Definition(stamp, table) for table in segment.tables]


def _made(files: LogFiles, walk: Walk, own: Sequence[SegmentFile], segments: Sequence[SegmentFile], now: int) -> Rebuilt:
    """What reads as the lost checkpoint did: one part a run, of which the first says what is covered; ``own`` segments have inline ones."""
    first = own[0]
    assert first.origin is not None
    parts = [
        Checkpoint(
            writer=segment.reference.writer,
            database=files.database,
            revision=0,
            uuid=segment.reference.uuid,
            cut=Cut(),
            coverage={},
            created=now,  # when what it covers had arrived is not known
            lateness_bound=limits.LATENESS_BOUND,
            definitions=tuple(_definitions(segment)),
            segments=(segment.reference,),
        )
        for segment in segments
    ]
    inline = [(segment, run) for segment in own if segment.origin is not None for run in segment.origin.runs]
    parts += [
        replace(
            parts[0],
            uuid=segment.reference.uuid,
            definitions=tuple(_definitions(segment)),
            segments=(),
            inline=(run.at_level(0),),
        )
        for segment, run in inline
    ]
    coverage = {writer: _coverage(walk, writer, heads, now) for writer, heads in first.cut.heads.items()}
    whole = replace(parts[0], uuid=first.origin.checkpoint, cut=first.cut, coverage=coverage)
    before = [c for c in walk.checkpoints if all(c.cut.newest_revision(w) <= first.cut.newest_revision(w) for w in c.cut.heads)]
    whole = _with_entries(files, walk, whole, before)
    made = [_as_witnessed(part, counting(whole.witnessed, files.asides)) for part in (whole, *parts[1:])]
    return Rebuilt(first.origin.checkpoint, first.cut, tuple(made), tuple(_lost_entries(walk, first.cut, before)))


def _as_witnessed(part: Checkpoint, witnessed: Iterable[Witness]) -> Checkpoint:
    """A part whose definitions are those of who is known to have been first: else whoever is dated back would be."""
    firsts: dict[str, Witness] = {}
    for witness in witnessed:
        firsts.setdefault(witness.table, witness)
    given = (
        replace(each, stamp=first.defined_by, first=first.defined_by) if (first := firsts.get(each.table.name)) else each
        for each in part.definitions
    )
    return replace(part, definitions=tuple(given))


def _with_entries(files: LogFiles, walk: Walk, whole: Checkpoint, before: Sequence[Checkpoint]) -> Checkpoint:
    """The checkpoint with what the transactions that it covers say of the catalog itself, and the checkpoints ``before`` it."""
    covered = Covered(files, [whole])
    for writer, below in walk.found.items():
        covered.know(writer, below.transactions)
    there = [t for ref, t in walk.log.items() if covered.holds(*ref)]
    voids = voids_of(there, before)
    bound = [t for t in there if t.ref not in voids]
    tags = [*(entry for c in before for entry in c.tags), *(entry for t in bound for entry in t.tags)]
    pins = [*(entry for c in before for entry in c.pins), *(t.pin for t in bound if t.pin is not None)]
    boundaries = [*(b for c in before for b in c.boundaries), *(t.boundary for t in there if t.boundary is not None)]
    witnessed = [*(w for c in before for w in c.witnessed), *(w for t in there for w in t.witnessed)]
    results = [*(r for c in before for r in c.applications), *(t.result for t in bound if t.result is not None)]
    return replace(
        whole,
        applications=tuple(result for _, result in sorted(latest_of(results).items())),
        tags=tuple(entry for tag in states_of(tags).values() for entry in tag.entries),
        pins=tuple(latest_pins(pins).values()),
        voids=tuple(voids.values()),
        boundaries=newest_of(boundaries).entries,
        witnessed=first_of(witnessed),
    )


def _lost_entries(walk: Walk, cut: Cut, before: Sequence[Checkpoint]) -> Iterator[Held]:
    """The transactions in a cut that are gone and in none of the checkpoints ``before`` it, as far as what is there leads to them."""
    for writer, heads in cut.heads.items():
        known = max((c.cut.newest_revision(writer) for c in before), default=-1)
        gone = [h.revision for h in _ancestors(walk, writer, heads) if h.revision > known and Ref(writer, h) not in walk.log]
        if gone:
            yield revision(writer, max(gone), known + 1)


def _coverage(walk: Walk, writer: str, heads: tuple[Head, ...], now: int) -> Coverage:
    """How a cut covers what is left of a timeline. What may not be covered counts as if it were not: reading it twice changes nothing."""
    newest = max(head.revision for head in heads)
    listed = {head for head in walk.found[writer].transactions if head.revision <= newest} if writer in walk.found else set()
    reached = _ancestors(walk, writer, heads)
    forked = {revision for revision, count in Counter(h.revision for h in listed | set(heads)).items() if count > 1}
    known = {head for head in listed | set(heads) if head in reached or head.revision not in forked}
    oldest = now - 2 * limits.LATENESS_BOUND
    unsure = [head.revision for head in listed if head not in known or head.commit_time >= oldest]
    list_from = min(unsure, default=newest + 1)
    return Coverage(
        list_from=list_from,
        recent=frozenset(head for head in known if head.revision >= list_from),
        branches=frozenset(head for head in known if head.revision < list_from and head.revision in forked),
        newest_commit_time=max(uuid7_time(head.uuid) for head in heads),
        transactions=newest + 1,
    )


def _ancestors(walk: Walk, writer: str, heads: tuple[Head, ...]) -> set[Head]:
    """The heads and what they follow, as far as it is there."""
    reached: set[Head] = set()
    pending = list(heads)
    while pending:
        head = pending.pop()
        if head not in reached:
            reached.add(head)
            t = walk.log.get(Ref(writer, head))
            pending += [link.head for link in t.parents] if t is not None else []
    return reached


def _suffices(files: LogFiles, made: Rebuilt) -> bool:
    """Whether a reader that has it misses nothing."""
    try:
        whole_view(files, using=made.parts)
    except _UNUSABLE:
        return False
    return True
