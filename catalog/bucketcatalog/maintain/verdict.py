"""Which files go behind a horizon, and what keeps the others, by a listing of all and a view of now.

Nothing goes that was not seen covered, nothing from where readers list a timeline, no head of a timeline, and nothing that cannot be read.
What a checkpoint names is freed by it only where that is its writer's own, or it is a compactor's or a maintainer's: what stands below any
other prefix may say anything. Segments that hold events stay while a transaction of their writer that stays names them, whoever frees them.

Nothing is written or deleted here; checkpoints are read for what they refer to, and of segments that nothing refers to whose they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from .. import limits
from ..clock import uuid7_time
from ..errors import UNREADABLE
from ..format.checkpoints import Checkpoint
from ..format.headers import BlockClass
from ..log.coverage import Covered
from ..log.entries import TagState, tags_of, tags_that_hold
from ..log.files import LogFiles
from ..log.horizon import floors_of
from ..log.segments import read_segment_file
from ..log.trust import counts, is_trusted
from ..log.view import LogView
from ..model.cuts import Cut, Head, Ref
from ..model.names import is_maintainer
from ..store.base import ObjectInfo
from ..wording import either
from .retention import Retention, StoredFiles

_NEVER = 1 << 62


class StoredKind(Enum):
    """The kinds of files, in the order in which they go: each before what it leads to or is made from."""

    MARKER = "marker"
    CHECKPOINT = "checkpoint"
    TRANSACTION = "transaction"
    SEGMENT = "segment"


class Keeper(Enum):
    """What keeps a file that does not go; the first four say what lets nothing later be the horizon: the policy, or a pin."""

    AGE = "age"
    KEEP = "keep"
    CHECKPOINT = "checkpoint"
    PIN = "pin"
    NEWER = "newer"
    HORIZON = "horizon"
    TAG = "tag"
    HEAD = "head"
    LISTED = "listed"
    GRACE = "grace"
    UNREADABLE = "unreadable"

    @property
    def why(self) -> str:
        """The same in words, of several files."""
        if self is Keeper.AGE:
            asks = either("older_than", "--older-than")
            return f"no checkpoint of every writer that covers them is as old as {asks} asks"
        if self is Keeper.KEEP:
            return f"only the newest checkpoints of every writer cover them, as many as {either('keep', '--keep')} keeps"
        return _WHYS[self]


_WHYS = {
    Keeper.CHECKPOINT: "no later checkpoint of every writer covers them",
    Keeper.PIN: "no checkpoint of every writer that is old enough lies before what a pin needs to be there",
    Keeper.NEWER: "the horizon's checkpoint does not cover them",
    Keeper.HORIZON: "they belong to the horizon's checkpoint",
    Keeper.TAG: "they belong to the checkpoint of a version that a tag names",
    Keeper.HEAD: "they are the newest of their timelines, which the next commits follow",
    Keeper.LISTED: "they were so young when the horizon's checkpoint was written that readers still list them",
    Keeper.GRACE: "they were put, or freed by a tag, so short a time ago that something under way may need them",
    Keeper.UNREADABLE: "they cannot be read, so that nobody knows what they hold",
}


@dataclass(frozen=True, slots=True)
class Prunable:
    """A file that goes: its name, its size, and why. ``writer`` and ``head`` are those of a file on a timeline."""

    name: str
    kind: StoredKind
    bytes: int
    why: str
    writer: str = ""
    head: Head | None = None


@dataclass(frozen=True, slots=True)
class Staying:
    """Files that one ``keeper`` keeps: how many, and their size."""

    keeper: Keeper
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The files that go, in the order in which they are deleted, and what keeps the others."""

    going: tuple[Prunable, ...]
    staying: tuple[Staying, ...]


_Fate = Prunable | Staying


def judged(stored: StoredFiles, view: LogView, horizon: Checkpoint, *, now: int, policy: Retention) -> Verdict:
    """Which files go when ``horizon`` is the horizon, and what keeps the others; ``view`` is of now."""
    before = now - max(policy.grace, limits.UNFINISHED_PUT_AGE)
    left = min(before, now - limits.LEFT_BEHIND)
    covered = Covered(stored.files, [horizon], view.horizon)
    for writer in stored.timelines:
        covered.know(writer, (head for head, _ in stored.transactions(writer)))
    tags = _Tags(tags_of(view).values(), now, policy.pins)
    keepers = {key: _keeper(stored, tags, covered, key, before) for key in stored.checkpoints}
    found = [*_checkpoints(stored, keepers, before), *_transactions(stored, view, covered)]
    gone = {file.name for file in found if isinstance(file, Prunable)}
    found += _Segments(stored, _Named.by(stored, keepers), gone, before, left).fates()
    return Verdict(tuple(fate for fate in found if isinstance(fate, Prunable)), _summed(found))


def all_staying(stored: StoredFiles, keeper: Keeper) -> tuple[Staying, ...]:
    """What is said where one keeper keeps every file, for nothing can be the horizon."""
    timelines = [info for files in stored.timelines.values() for _, info in files]
    segments = [info for files in stored.segments.values() for _, info in files]
    markers = [info for files in stored.markers.values() for info in files.values()]
    every = [*timelines, *segments, *markers]
    return (Staying(keeper, len(every), sum(info.size for info in every)),) if every else ()


def _summed(fates: Iterable[_Fate]) -> tuple[Staying, ...]:
    """The files that stay, by keeper."""
    sizes: dict[Keeper, list[int]] = {}
    for fate in fates:
        if isinstance(fate, Staying):
            sizes.setdefault(fate.keeper, []).append(fate.bytes)
    return tuple(Staying(keeper, len(sizes[keeper]), sum(sizes[keeper])) for keeper in Keeper if keeper in sizes)


_Keepers = Mapping[Ref, Keeper | None]
"""What keeps each checkpoint; None where it goes."""


def _keeper(stored: StoredFiles, tags: _Tags, covered: Covered, key: Ref, before: int) -> Keeper | None:
    """What keeps a checkpoint: the horizon's own stays, each that holds what that does not, and what a tag needs; None where it goes."""
    checkpoint, info = stored.checkpoints[key]
    if checkpoint.uuid == covered.checkpoints[0].uuid:
        return Keeper.HORIZON
    is_marked, is_of_tags = stored.is_marked(*key), stored.is_of_tags(*key)
    placed = info.modified_us + (0 if is_marked else limits.MARKER_DELAY)  # a marker under way must not come to lead nowhere
    if not counts(checkpoint):
        return Keeper.GRACE if placed > before else None
    if (is_marked or not is_of_tags) and not all(covered.holds(writer, head) for writer, head in checkpoint.cut.refs()):
        return Keeper.NEWER
    free = tags.free_since(checkpoint.cut) if is_of_tags else 0
    if free == _NEVER:
        return Keeper.TAG
    return Keeper.GRACE if max(placed, free) > before else None


def _checkpoints(stored: StoredFiles, keepers: _Keepers, before: int) -> Iterator[_Fate]:
    """Markers, and the checkpoints that they lead to. Where a tag alone needs one its marker goes: who reads that tag looks without."""
    for writer, markers in stored.markers.items():
        for head, info in markers.items():
            keeper = keepers.get(Ref(writer, head), Keeper.UNREADABLE)
            why = "it leads to a checkpoint that goes"
            if keeper is Keeper.TAG:
                why = "it leads to a checkpoint that only a tag needs"
                keeper = Keeper.GRACE if info.modified_us > before else None
            yield Staying(keeper, 1, info.size) if keeper else Prunable(info.name, StoredKind.MARKER, info.size, why)
    for key, (checkpoint, info) in stored.checkpoints.items():
        keeper = keepers[key]
        was_kept = stored.is_of_tags(*key) and not stored.is_marked(*key)
        why = "no tag names its version any more" if was_kept else "it is older than the horizon"
        why = why if counts(checkpoint) else "it is of others' timelines, and no compactor's or maintainer's"
        yield Staying(keeper, 1, info.size) if keeper else Prunable(info.name, StoredKind.CHECKPOINT, info.size, why)


class _Tags:
    """The tags there are ``now``, and which cuts they hold; those of who is no maintainer do for the ``longest`` time."""

    def __init__(self, tags: Iterable[TagState], now: int, longest: int) -> None:
        self._tags = list(tags)
        self._longest = longest
        self._held = {pin.cut for pin in tags_that_hold(self._tags, now, longest)}
        self._ahead = now + limits.MAX_CLOCK_SKEW

    def free_since(self, cut: Cut) -> int:
        """Since when none of them holds the cut: a time in the future where one does, and never before what is known of it."""
        since = _NEVER if cut in self._held else 0
        for tag in self._tags:
            latest, replaced = tag.latest, tag.replaced
            names = cut in (latest.cut, replaced and replaced.cut)
            if is_maintainer(latest.stamp.writer):
                since = max(since, latest.stamp.commit_time if names else 0, replaced.stamp.commit_time if replaced else 0)
            elif names and latest.stamp.commit_time <= self._ahead:
                held = self._longest if latest.cut == cut and not latest.dropped else 0
                since = max(since, latest.stamp.commit_time + held)
        return since


def _transactions(stored: StoredFiles, view: LogView, covered: Covered) -> Iterator[_Fate]:
    """The covered transactions before the floors, in order of revision; heads stay, for they tell the next revision and what it follows."""
    horizon = covered.checkpoints[0]
    floors = floors_of(horizon, view.horizon.boundary.floors if view.horizon is not None else {})
    for writer in stored.timelines:
        heads, floor = {*view.cut.of_writer(writer)}, floors.get(writer, 0)
        for head, info in stored.transactions(writer):
            keeper = Keeper.HEAD if head in heads else Keeper.LISTED if head.revision >= floor else Keeper.NEWER
            if head.revision > horizon.cut.newest_revision(writer):
                keeper = Keeper.NEWER
            if head.revision < floor and head not in heads and covered.holds(writer, head):
                why = "the horizon's checkpoint covers it"
                yield Prunable(info.name, StoredKind.TRANSACTION, info.size, why, writer, head)
            else:
                yield Staying(keeper, 1, info.size)


_Place = tuple[str, bytes]
"""Whose segment, and its uuid."""


@dataclass(frozen=True, slots=True)
class _Named:
    """What checkpoints say of segments, as far as it counts.

    ``kept`` by which keeper of a checkpoint that stays, ``freed`` by one that goes; of these what ``is_state``, for a compactor or
    maintainer that merged it says so, is no transaction's.
    """

    kept: Mapping[_Place, Keeper]
    freed: Collection[_Place]
    is_state: Collection[_Place]

    @classmethod
    def by(cls, stored: StoredFiles, keepers: _Keepers) -> _Named:
        """What the checkpoints that there are say: of others' segments only what those of compactors and maintainers do."""
        kept: dict[_Place, Keeper] = {}
        freed, is_state = set[_Place](), set[_Place]()
        for key, (checkpoint, _) in stored.checkpoints.items():
            for reference in checkpoint.segments:
                place, keeper = (reference.writer, reference.uuid), keepers[key]
                if reference.writer != checkpoint.writer and not is_trusted(checkpoint.writer):
                    continue
                if keeper is not None:
                    kept[place] = keeper if kept.get(place) is not Keeper.HORIZON else Keeper.HORIZON
                    continue
                freed.add(place)
                if is_trusted(reference.writer) and reference.run.block_class is not BlockClass.EVENTS:
                    is_state.add(place)
        return cls(kept, freed, is_state)


@dataclass(frozen=True, slots=True)
class _Segments:
    """What becomes of the segments: those that were freed go from one age on, those that were left behind from a larger one on."""

    stored: StoredFiles
    named: _Named
    going: Collection[str]
    freed_before: int
    left_before: int

    def fates(self) -> Iterator[_Fate]:
        """What becomes of each."""
        for writer, segments in self.stored.segments.items():
            asked = []
            for uuid, info in segments:
                is_freed = (writer, uuid) in self.named.freed
                if (writer, uuid) in self.named.kept:
                    yield Staying(self.named.kept[writer, uuid], 1, info.size)
                elif max(info.modified_us, uuid7_time(uuid)) > (self.freed_before if is_freed else self.left_before):
                    yield Staying(Keeper.GRACE, 1, info.size)
                elif (writer, uuid) in self.named.is_state:
                    yield Prunable(info.name, StoredKind.SEGMENT, info.size, _FREED)
                else:
                    asked.append((uuid, info))
            yield from self._asked(writer, asked)

    def _asked(self, writer: str, segments: Sequence[tuple[bytes, ObjectInfo]]) -> Iterator[_Fate]:
        """What becomes of segments of a writer that are no transaction's only if they say so, or none of its transactions names them."""
        said = self.stored.files.map(_has_events, [info for _, info in segments])
        is_asked = any(has_events is not False for has_events in said)
        events = _named_by_transactions(self.stored, writer, self.going) if is_asked else set()
        for (uuid, info), has_events in zip(segments, said, strict=True):
            is_freed = (writer, uuid) in self.named.freed
            if has_events is not False and (events is None or uuid in events):
                yield Staying(Keeper.UNREADABLE if events is None else Keeper.NEWER, 1, info.size)
            elif has_events is None and not is_freed:
                yield Staying(Keeper.UNREADABLE, 1, info.size)
            else:
                yield Prunable(info.name, StoredKind.SEGMENT, info.size, _FREED if is_freed else "nothing refers to it")


_FREED = "no checkpoint that stays refers to it"


def _has_events(files: LogFiles, info: ObjectInfo) -> bool | None:
    """Whether a segment says that its rows are events of a transaction; None where it cannot be read."""
    try:
        return not read_segment_file(files.store, info.name, info.size).cut.heads
    except UNREADABLE:
        return None


def _named_by_transactions(stored: StoredFiles, writer: str, going: Collection[str]) -> set[bytes] | None:
    """The segments whose rows are events of the writer's transactions that stay; None where one of these cannot be read."""
    refs = [Ref(writer, head) for head, info in stored.transactions(writer) if info.name not in going]
    found: set[bytes] = set()
    try:
        for at in range(0, len(refs), _AT_ONCE):
            # also of those that are set aside, which may be taken in again
            read = stored.files.map(lambda files, ref: files.as_stored(*ref), refs[at : at + _AT_ONCE])
            found |= {segment.uuid for t in read for segment in t.segments}
    except UNREADABLE:
        return None
    return found


_AT_ONCE = 256
