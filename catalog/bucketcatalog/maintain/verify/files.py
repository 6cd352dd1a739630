"""What lies below a writer's prefix, by the names alone, and what of it a pruned catalog rests on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from ...errors import BucketCatalogError, HistoryPruned, MissingObject
from ...format.checkpoints import Checkpoint
from ...format.records import TagEntry
from ...log.ancestry import version_view
from ...log.between import rests_on_what_is_gone
from ...log.coverage import Covered
from ...log.entries import states_of
from ...log.files import LogFiles
from ...log.horizon import Horizon
from ...log.pruned import is_of_source, kept_is_gone
from ...model import paths
from ...model.cuts import Cut, Head, Ref
from ...model.names import is_maintainer
from ...store.base import ObjectInfo

_Name = TypeVar("_Name")


@dataclass
class WriterFiles:
    """The files of one writer in one database; ``unknown`` are names that no reader knows."""

    writer: str
    transactions: dict[Head, ObjectInfo] = field(default_factory=dict)
    checkpoints: dict[Head, ObjectInfo] = field(default_factory=dict)
    markers: dict[Head, ObjectInfo] = field(default_factory=dict)
    segments: dict[bytes, ObjectInfo] = field(default_factory=dict)
    unknown: list[str] = field(default_factory=list)


def writer_files(files: LogFiles, writer: str) -> WriterFiles:
    """List everything of the writer but its data files: four requests and more where there is much."""
    found = WriterFiles(writer)
    below = paths.database_prefix(writer, files.database)
    found.unknown += [f"{below}{name}/" for name in files.store.list_prefixes(below) if name not in paths.FOLDERS]
    for file, info in _parsed(files, found, paths.transactions_prefix, paths.parse_log_file):
        kind = found.transactions if file.is_transaction else found.checkpoints
        kind[file.head] = info
    for file, info in _parsed(files, found, paths.newest_prefix, paths.parse_newest_marker):
        found.markers[file.head] = info
    found.segments |= _parsed(files, found, paths.segments_prefix, paths.parse_segment)
    return found


def _parsed(
    files: LogFiles, found: WriterFiles, below: Callable[[str, str], str], parse: Callable[[str, str], _Name | None]
) -> Iterator[tuple[_Name, ObjectInfo]]:
    """What lies below one of the writer's prefixes, by what its names say; other names are unknown."""
    prefix = below(found.writer, files.database)
    for info in files.store.list(prefix):
        name = parse(prefix, info.name)
        if name is None:
            found.unknown.append(info.name)
        else:
            yield name, info


@dataclass(frozen=True)
class Kept:
    """Which transactions have to be there: all but those before a floor of the ``horizon``, of which only heads of timelines stay.

    ``followed`` are the transactions that others follow, which are therefore no heads.
    """

    horizon: Horizon | None = None
    followed: Collection[Ref] = field(default=frozenset(), repr=False)

    def has(self, writer: str, head: Head) -> bool:
        """Whether a transaction that is referred to has to be there."""
        if self.horizon is None or head.revision >= self.first(writer):
            return True
        return head in self.horizon.cut.of_writer(writer) and (writer, head) not in self.followed

    def as_end(self, writer: str, head: Head) -> bool:
        """Whether a transaction is all that the horizon has of its timeline, or of a branch of it: nothing is kept between the two."""
        if self.horizon is None or head not in self.horizon.cut.of_writer(writer):
            return False
        return head.revision <= self.horizon.floor(writer)

    def first(self, writer: str) -> int:
        """The first revision of the timeline from which on everything has to be there."""
        if self.horizon is None:
            return 0
        return min(self.horizon.floor(writer), self.horizon.cut.newest_revision(writer) + 1)


def tagged_cuts(entries: Iterable[TagEntry]) -> dict[Cut, TagEntry]:
    """The cuts that tags name which are not dropped, each with the latest tag that does."""
    latest = sorted((state.latest for state in states_of(entries).values()), key=lambda entry: entry.stamp)
    return {entry.cut: entry for entry in latest if not entry.dropped}


def may_be_of_tag(ref: Ref, cuts: Iterable[Cut]) -> bool:
    """Whether who reads one of the cuts meets this checkpoint when no marker leads to it: those that are kept for tags have none."""
    writer, head = ref
    return is_maintainer(writer) and head.revision == 0 and any(head.commit_time <= cut.newest_commit_time for cut in cuts)


def gone_of_tag(files: LogFiles, tag: TagEntry, horizon: Horizon, newest: Cut) -> MissingObject | None:
    """The error that a reader gets of a tag of whose cut no checkpoint is kept; None where it can be read, or there never was one."""
    try:
        version_view(files, tag.cut, horizon)
    except HistoryPruned:
        if rests_on_what_is_gone(files, tag.cut, horizon) and not is_of_source(files, newest, tag):
            return kept_is_gone(files, tag, horizon)
    except BucketCatalogError:
        pass  # of what it misses there is a finding
    return None


def is_reached(horizon: Horizon, checkpoints: Iterable[Checkpoint]) -> bool:
    """Whether one of the checkpoints holds all that the horizon's own does, so that what is newer can be read without that."""
    covered = Covered(horizon.files, (), horizon)
    return any(covered.reaches(c) for c in checkpoints if not horizon.is_own(c))
