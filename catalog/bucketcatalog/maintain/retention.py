"""Retention: what a database has in the store, and which of its checkpoints becomes the horizon.

A horizon is a checkpoint of every writer's cut. Everything from its newest commit time on stays readable, so its age is that of its cut.
What pins hold is asked of the log, in ``prune``; which files go once there is one stands in ``verdict``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .. import limits
from ..errors import UNREADABLE, CorruptionError, InvalidOption
from ..format.checkpoints import Checkpoint
from ..log.files import LogFiles
from ..log.trust import is_trusted
from ..model import paths
from ..model.cuts import Head, Ref
from ..model.names import is_maintainer
from ..model.paths import LogFile
from ..model.times import shown_age
from ..store.base import ObjectInfo
from ..wording import either


@dataclass(frozen=True)
class StoredFiles:
    """What a database has in the store, listed once, timelines from their beginning."""

    files: LogFiles
    timelines: dict[str, list[tuple[LogFile, ObjectInfo]]] = field(default_factory=dict)
    segments: dict[str, list[tuple[bytes, ObjectInfo]]] = field(default_factory=dict)
    markers: dict[str, dict[Head, ObjectInfo]] = field(default_factory=dict)

    @classmethod
    def listed(cls, files: LogFiles) -> StoredFiles:
        """What is there now."""
        writers = files.writers()
        found = cls(files)
        every = zip(writers, files.map(_list_writer, writers), strict=True)
        for writer, (timeline, segments, markers) in every:
            found.timelines[writer], found.segments[writer], found.markers[writer] = timeline, segments, markers
        return found

    def transactions(self, writer: str) -> Iterator[tuple[Head, ObjectInfo]]:
        """The transactions of the writer's timeline, in order of revision."""
        return ((file.head, info) for file, info in self.timelines.get(writer, ()) if file.is_transaction)

    @cached_property
    def checkpoints(self) -> dict[Ref, tuple[Checkpoint, ObjectInfo]]:
        """Every checkpoint by where it lies; the error of one that cannot be read, for then nobody knows what it needs.

        One without a marker, as ``repair`` leaves what is damaged, is needed by nobody but a tag of which no other is kept, which may be
        one that a newer release has written.
        """
        places = [
            (writer, file.head, info)
            for writer, timeline in self.timelines.items()
            for file, info in timeline
            if not file.is_transaction
        ]
        read = self.files.map(lambda files, place: self._read(files, place[0], place[1]), places)
        found = zip(places, read, strict=True)
        return {Ref(writer, head): (checkpoint, info) for (writer, head, info), checkpoint in found if checkpoint is not None}

    def _read(self, files: LogFiles, writer: str, head: Head) -> Checkpoint | None:
        try:
            return files.checkpoint(writer, head)
        except UNREADABLE as error:
            is_another_releases = is_trusted(writer) and not isinstance(error, CorruptionError)
            if is_another_releases or self.is_marked(writer, head):
                raise
            return None

    def is_of_tags(self, writer: str, head: Head) -> bool:
        """Whether who reads a tag takes this checkpoint, if it is of its version: made for it, or the first that a maintainer made."""
        return is_maintainer(writer) and head.revision == 0

    def is_marked(self, writer: str, head: Head) -> bool:
        """Whether a marker leads to a checkpoint; to those that were made for tags none does."""
        return head in self.markers.get(writer, {})


def _list_writer(
    files: LogFiles, writer: str
) -> tuple[list[tuple[LogFile, ObjectInfo]], list[tuple[bytes, ObjectInfo]], dict[Head, ObjectInfo]]:
    prefix = paths.transactions_prefix(writer, files.database)
    timeline = [(file, info) for info in files.store.list(prefix) if (file := paths.parse_log_file(prefix, info.name))]
    prefix = paths.segments_prefix(writer, files.database)
    segments = [(uuid, info) for info in files.store.list(prefix) if (uuid := paths.parse_segment(prefix, info.name))]
    prefix = paths.newest_prefix(writer, files.database)
    found = ((paths.parse_newest_marker(prefix, info.name), info) for info in files.store.list(prefix))
    return timeline, segments, {file.head: info for file, info in found if file is not None}


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept: ``keep`` checkpoints of everyone, everything younger than ``older_than``, and what tags and pins hold.

    Those of who is no maintainer do for ``pins``. What may go is deleted ``grace`` after that was published. Times are in microseconds.
    """

    older_than: int
    keep: int = 1
    grace: int = limits.PRUNE_GRACE
    pins: int = limits.PLAIN_PIN_AGE

    def check(self, lateness_bound: int, *, force: bool) -> None:
        """``InvalidOption`` for what cannot be, and unless forced for what writers or readers under way may still need."""
        if not _is_count(self.keep) or min(self.older_than, self.grace, self.pins) < 0:
            raise InvalidOption(
                f"History cannot be pruned with {_keep(repr(self.keep))} and the ages {shown_age(self.older_than)} "
                f"and {shown_age(self.grace)}.",
                next_step=f"Give {_keep('1')} or more, and ages of 0s or more.",
            )
        if not force and self.older_than < lateness_bound:
            raise InvalidOption(
                f"What is {shown_age(self.older_than)} old may still be joined by transactions that are under way.",
                next_step=f"Give an age of {shown_age(lateness_bound)} or more, or {either('force=True', '--force')} where no writer runs.",
            )
        if not force and self.grace < limits.SAFE_PRUNE_GRACE:
            raise InvalidOption(
                f"Readers, and merges under way, may need what they began to read {shown_age(self.grace)} ago.",
                next_step=f"Give a grace period of {shown_age(limits.SAFE_PRUNE_GRACE)} or more, "
                f"or {either('force=True', '--force')} where nobody reads or merges.",
            )


def _keep(count: str) -> str:
    return either(f"keep={count}", f"--keep {count}")


def _is_count(keep: object) -> bool:
    return isinstance(keep, int) and not isinstance(keep, bool) and keep >= 1


def of_everyone(checkpoints: Iterable[Checkpoint], began: Mapping[str, int]) -> list[Checkpoint]:
    """Those that cover every writer that had ``began`` to commit by then, oldest first; of equal cuts one."""
    covering = [c for c in checkpoints if not c.reads.heads and all(w in c.cut.heads or t > _time(c) for w, t in began.items())]
    by_cut = {c.cut: c for c in sorted(covering, key=lambda c: c.uuid, reverse=True)}
    return sorted(by_cut.values(), key=lambda c: (_time(c), c.uuid))


def possible_horizons(
    checkpoints: Iterable[Checkpoint], began: Mapping[str, int], now: int, policy: Retention
) -> list[Checkpoint]:
    """The checkpoints of everyone that are old enough and have ``keep`` less one newer ones, newest first."""
    covering = of_everyone(checkpoints, began)
    eligible = covering[: len(covering) - (policy.keep - 1)]
    return [c for c in reversed(eligible) if not policy.older_than or now - _time(c) >= policy.older_than]


def _time(checkpoint: Checkpoint) -> int:
    return checkpoint.as_of
