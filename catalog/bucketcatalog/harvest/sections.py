"""Sections of a source, each compared with the catalog and written by whoever is given it, in this process or another.

A section is a range of names with what the catalog has live there. Who does one puts segments for what differs, which are part of nothing
before the commit that names them: doing a section twice, or half, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from ..log.blocks import Blocks
from ..model.events import EventKind
from ..model.tables import Table
from ..query.snapshot import Snapshot
from ..state.plan import Part
from ..state.shares import PackedSlice, Share
from ..store import Store
from ..write.shares import ShareTask, ShareWriter
from ..write.staging import WrittenShare
from .account import Counts
from .checksums import Checksums
from .commit import Said, said_of
from .compare import OutOfReach, Step
from .difference import Difference, LiveRows, Portion
from .failures import Failures
from .mapping import OBJECTS, Bucket
from .ranges import NameRange
from .scope import Scope
from .source import DividedSource, EntryError, is_read

PORTION_EVENTS, PORTION_BYTES = 65_536, 64 << 20
"""Events that are sorted at once, and bytes of them in memory."""
_READERS = 2
"""How many files a section reads at once: there are others at the same time."""
CARRIED_EVENTS, CARRIED_BYTES = 1_024, 256 << 10
"""As little as this is no file of its own: the driver commits it with what others have found."""


@dataclass(frozen=True)
class Section:
    """A range of names, and of each table the slices that hold what is live there: picklable.

    Where there are more than about ``most`` entries the rest of the range is left.
    """

    within: NameRange
    known: Mapping[str, Share]
    most: int | None = None


def live_share(snapshot: Snapshot, bucket: Bucket, table: Table, within: NameRange) -> Share:
    """What a snapshot shows of a table in a range of names, for whoever reads it; planned from indexes alone."""
    live = LiveRows.of(snapshot, bucket, table, within)
    packed = (PackedSlice.of(slice_, live.stored_as, Part.LIVE) for slice_ in live.slices)
    return Share(live.stored_as, Part.LIVE, tuple(one for one in packed if one.rows))


@dataclass(frozen=True)
class Done:
    """What became of a section: counts, the entries that cannot be catalogued, and what is to be committed.

    ``found`` says whether the source has anything there; ``rest`` is what was left, in ranges to be divided further.
    """

    counts: Counts
    failures: tuple[EntryError, ...]
    found: bool
    shares: tuple[WrittenShare, ...] = ()
    said: tuple[Said, ...] = ()
    rest: tuple[NameRange, ...] = ()


@dataclass(frozen=True)
class HarvestTask:
    """What is the same for all sections of a harvest; picklable where its source is.

    ``writes`` says how shares of each table are written; None: nothing is, for it is a dry run. With ``checksum`` files are read.
    """

    source: DividedSource
    bucket: Bucket
    scope: Scope
    writes: Mapping[str, ShareTask] | None
    checksum: bool = False

    def run(self, section: Section, store: Store) -> Done:
        """Compare a section, and put what differs into the catalog's store."""
        failures, out_of_reach, written = Failures(), OutOfReach(), _Written(self, store)

        def report(error: EntryError) -> None:
            failures.add(error)
            out_of_reach.add(error)

        def known(table: Table) -> LiveRows:
            share = section.known[table.name]
            return LiveRows(Blocks(store), share.table, share.unpacked())

        entries = Portion(self.source.entries(self.scope, report, section.within), section.most)
        checksums = Checksums(self.source, report, threads=_READERS) if self.checksum and is_read(self.source) else None
        counts = Counts()
        for table, found in Difference(self.bucket, self.scope, self.source, known, checksums).changes(entries):
            step = out_of_reach.spare(found) if table is OBJECTS else found
            counts = counts.with_step(table, step)
            written.add(table, step)
        shares, said = written.finish()
        began, ended = entries.began, entries.ended
        rest = () if began is None or ended is None else tuple(section.within.behind(began, ended))
        if checksums is not None:
            counts = replace(counts, hashed=checksums.files, hashed_bytes=checksums.bytes)
        return Done(counts, failures.found, bool(entries.seen), shares, said, rest)


class _Written:
    """What a section has to say, put into segments as soon as it is more than a little."""

    def __init__(self, task: HarvestTask, store: Store) -> None:
        self._task = task
        self._store = store
        self._waiting: list[Said] = []
        self._events = self._bytes = 0
        self._open: dict[str, ShareWriter] = {}

    def add(self, table: Table, step: Step) -> None:
        if self._task.writes is None:
            return
        for one in said_of(self._task.bucket, table, step):
            self._waiting.append(one)
            self._events += len(one[2])
            self._bytes += one[2].nbytes
        if self._events >= PORTION_EVENTS or self._bytes >= PORTION_BYTES:
            self._put(self._task.writes)

    def _put(self, writes: Mapping[str, ShareTask]) -> None:
        for name in dict.fromkeys(table.name for _, table, _ in self._waiting):
            if name not in self._open:
                self._open[name] = writes[name].begin(self._store)
            self._open[name].add((EventKind[kind.upper()], rows) for kind, table, rows in self._waiting if table.name == name)
        self._waiting, self._events, self._bytes = [], 0, 0

    def finish(self) -> tuple[tuple[WrittenShare, ...], tuple[Said, ...]]:
        """The shares, and what is too little for one."""
        if self._task.writes is not None and (self._open or self._events > CARRIED_EVENTS or self._bytes > CARRIED_BYTES):
            self._put(self._task.writes)
        return tuple(writer.finish() for writer in self._open.values()), tuple(joined(self._waiting))


def joined(said: Iterable[Said]) -> Iterator[Said]:
    """The same in as few tables of rows as there are kinds of them; no two are of one key, so their order says nothing."""
    found: dict[tuple[str, str], list[Said]] = {}
    for one in said:
        found.setdefault((one[0], one[1].name), []).append(one)
    for (kind, _), some in found.items():
        tables = [rows for _, _, rows in some]
        yield kind, some[0][1], pa.concat_tables(tables, promote_options="permissive").combine_chunks()


class HarvestWorkers(Protocol):
    """Who does the sections of a harvest."""

    @property
    def parts(self) -> int:
        """About how many sections they want at once."""
        ...

    def run(self, task: HarvestTask, sections: Sequence[Section]) -> Iterable[Done]:
        """What becomes of each, in any order."""
        ...
