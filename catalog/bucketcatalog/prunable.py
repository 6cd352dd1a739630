"""Which files of a database go when a checkpoint is the horizon: what no cut that contains it, and no tag, needs.

Nothing goes that was not seen covered, nothing from where readers list a timeline, no head of a timeline, and nothing that cannot be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from . import paths
from .abandoned import SAFE_AGE
from .codec.checkpoints import Checkpoint
from .cut import Cut, Head
from .errors import CorruptionError
from .fetch import read_segment_file
from .log.coverage import Covered
from .log.files import LogFiles
from .log.horizon import floors_of
from .log.tags import TagState, tags_of
from .log.view import View
from .names import is_maintainer
from .paths import LogFile
from .publishing import PUBLISH_WITHIN
from .retention import SAFE_GRACE
from .store.base import ObjectInfo

_LEFT_BEHIND = max(PUBLISH_WITHIN, SAFE_GRACE)
"""Microseconds after which nobody who has put a segment can still come to refer to it."""
_MARKER_DELAY = 7 * 24 * 3_600_000_000
"""Microseconds after which no marker of a checkpoint can still arrive: who puts one gives up after a minute."""


class Kind(Enum):
    """The kinds of files, in the order in which they go: each before what it leads to or is made from."""

    MARKER = "marker"
    CHECKPOINT = "checkpoint"
    TRANSACTION = "transaction"
    SEGMENT = "segment"


@dataclass(frozen=True, slots=True)
class Prunable:
    """A file that goes: its name, its size, and why. ``writer`` and ``head`` are those of a file on a timeline."""

    name: str
    kind: Kind
    bytes: int
    why: str
    writer: str = ""
    head: Head | None = None


@dataclass(frozen=True)
class Stored:
    """What a database has in the store, listed once, timelines from their beginning."""

    files: LogFiles
    timelines: dict[str, list[tuple[LogFile, ObjectInfo]]] = field(default_factory=dict)
    segments: dict[str, list[tuple[bytes, ObjectInfo]]] = field(default_factory=dict)
    markers: dict[str, dict[Head, ObjectInfo]] = field(default_factory=dict)

    @classmethod
    def listed(cls, files: LogFiles) -> Stored:
        """What is there now."""
        writers = files.writers()
        found = cls(files)
        every = zip(writers, files.several(_list_writer, writers), strict=True)
        for writer, (timeline, segments, markers) in every:
            found.timelines[writer], found.segments[writer], found.markers[writer] = timeline, segments, markers
        return found

    def transactions(self, writer: str) -> Iterator[tuple[Head, ObjectInfo]]:
        """The transactions of the writer's timeline, in order of revision."""
        return ((Head(file.revision, file.uuid), info) for file, info in self.timelines.get(writer, ()) if file.is_transaction)

    @cached_property
    def checkpoints(self) -> dict[tuple[str, Head], tuple[Checkpoint, ObjectInfo]]:
        """Every checkpoint by where it lies; ``CorruptionError`` where one cannot be read, for then nobody knows what it needs.

        One without a marker, as ``repair`` leaves what is damaged, is needed by nobody, unless a tag may have it.
        """
        places = [
            (writer, Head(file.revision, file.uuid), info)
            for writer, timeline in self.timelines.items()
            for file, info in timeline
            if not file.is_transaction
        ]
        read = self.files.several(lambda files, place: self._read(files, place[0], place[1]), places)
        found = zip(places, read, strict=True)
        return {(writer, head): (checkpoint, info) for (writer, head, info), checkpoint in found if checkpoint is not None}

    def _read(self, files: LogFiles, writer: str, head: Head) -> Checkpoint | None:
        try:
            return files.checkpoint(writer, head)
        except CorruptionError:
            if head in self.markers.get(writer, {}) or self.is_kept(writer, head):
                raise
            return None

    def is_kept(self, writer: str, head: Head) -> bool:
        """Whether a checkpoint was made for a tag: those have no marker."""
        return is_maintainer(writer) and head.revision == 0 and head not in self.markers.get(writer, {})


def _list_writer(
    files: LogFiles, writer: str
) -> tuple[list[tuple[LogFile, ObjectInfo]], list[tuple[bytes, ObjectInfo]], dict[Head, ObjectInfo]]:
    prefix = paths.transactions_prefix(writer, files.database)
    timeline = [(file, info) for info in files.store.list(prefix) if (file := paths.parse_log_file(prefix, info.name))]
    prefix = paths.segments_prefix(writer, files.database)
    segments = [(uuid, info) for info in files.store.list(prefix) if (uuid := paths.parse_segment(prefix, info.name))]
    prefix = paths.newest_prefix(writer, files.database)
    found = ((paths.parse_newest_marker(prefix, info.name), info) for info in files.store.list(prefix))
    return timeline, segments, {Head(file.revision, file.uuid): info for file, info in found if file is not None}


def prunable(stored: Stored, view: View, horizon: Checkpoint, *, now: int, grace: int) -> list[Prunable]:
    """The files that go when ``horizon`` is the horizon; ``view`` is of now. In the order in which they are deleted."""
    before = now - max(grace, SAFE_AGE)
    covered = Covered(stored.files, [horizon], view.horizon)
    for writer in stored.timelines:
        covered.know(writer, (head for head, _ in stored.transactions(writer)))
    going = {key: why for key in stored.checkpoints if (why := _why(stored, view, covered, key, before))}
    staying = [c for key, (c, _) in stored.checkpoints.items() if key not in going]
    found = [
        Prunable(info.name, Kind.MARKER, info.size, "leads to a checkpoint that goes")
        for writer, markers in stored.markers.items()
        for head, info in markers.items()
        if (writer, head) in going
    ]
    found += [
        Prunable(info.name, Kind.CHECKPOINT, info.size, going[key])
        for key, (_, info) in stored.checkpoints.items()
        if key in going
    ]
    found += _transactions(stored, view, covered)
    used = {segment.uuid for c in staying for segment in c.segments}
    freed = {segment.uuid for key, (c, _) in stored.checkpoints.items() if key in going for segment in c.segments} - used
    gone = {file.name for file in found}
    return [*found, *_segments(stored, used, freed, gone, min(before, now - _LEFT_BEHIND))]


def _why(stored: Stored, view: View, covered: Covered, key: tuple[str, Head], before: int) -> str:
    """Why a checkpoint goes; empty where it stays, as the horizon's own does and each that holds what that does not."""
    checkpoint, info = stored.checkpoints[key]
    is_marked = key[1] in stored.markers.get(key[0], {})
    if checkpoint.uuid == covered.checkpoints[0].uuid or info.modified_us > before - (0 if is_marked else _MARKER_DELAY):
        return ""  # its marker may still be under way, which must not come to lead nowhere
    if stored.is_kept(*key):
        is_free = _free_since(tags_of(view).values(), checkpoint.cut) <= before
        return "no tag names its version any more" if is_free else ""
    within = all(covered.holds(writer, head) for writer, heads in checkpoint.cut.heads.items() for head in heads)
    return "older than the horizon" if within else ""


def _free_since(tags: Iterable[TagState], cut: Cut) -> int:
    """Since when no tag names the cut: a time in the future where one does, and never before what is known of it."""
    since = 0
    for tag in tags:
        if tag.latest.cut == cut and not tag.latest.dropped:
            return 1 << 62
        since = max(since, tag.latest.stamp[0] if cut in (tag.latest.cut, tag.replaced and tag.replaced.cut) else 0)
        since = max(since, tag.replaced.stamp[0] if tag.replaced else 0)
    return since


def _transactions(stored: Stored, view: View, covered: Covered) -> Iterator[Prunable]:
    """The covered transactions before the floors, in order of revision; heads stay, for they tell the next revision and what it follows."""
    horizon = covered.checkpoints[0]
    floors = floors_of(horizon, view.horizon.boundary.floors if view.horizon is not None else {})
    for writer, floor in floors.items():
        heads = {*view.cut.of_writer(writer)}
        for head, info in stored.transactions(writer):
            if head.revision < floor and head not in heads and covered.holds(writer, head):
                why = "covered by the checkpoint of the horizon"
                yield Prunable(info.name, Kind.TRANSACTION, info.size, why, writer, head)


def _segments(stored: Stored, used: set[bytes], freed: set[bytes], going: Collection[str], before: int) -> Iterator[Prunable]:
    """The segments that nothing refers to: those of checkpoints that go, and those that were left behind long ago."""
    for writer, segments in stored.segments.items():
        named: set[bytes] | None = None
        for uuid, info in segments:
            if uuid in freed:
                yield Prunable(info.name, Kind.SEGMENT, info.size, "no remaining checkpoint refers to it")
            elif uuid not in used and info.modified_us < before:
                try:
                    is_events = not read_segment_file(stored.files.store, info.name, info.size).cut.heads
                except CorruptionError:
                    continue  # nobody knows what it is
                if is_events and named is None:
                    named = _named_by_transactions(stored, writer, going)
                if not (is_events and named and uuid in named):
                    yield Prunable(info.name, Kind.SEGMENT, info.size, "nothing refers to it")


def _named_by_transactions(stored: Stored, writer: str, going: Collection[str]) -> set[bytes]:
    """The segments whose rows are events of the writer's transactions that stay."""
    refs = [(writer, head) for head, info in stored.transactions(writer) if info.name not in going]
    found: set[bytes] = set()
    for at in range(0, len(refs), _AT_ONCE):
        found |= {segment.uuid for t in stored.files.fetched(refs[at : at + _AT_ONCE]) for segment in t.segments}
    return found


_AT_ONCE = 256
