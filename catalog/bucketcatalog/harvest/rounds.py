"""A harvest by workers: the source is divided into sections, and what is left of those that were too large is divided again.

Nobody knows beforehand how much there is behind a name. So a section ends after so many entries, and what is left of it is divided for
the next round, in which sections may be larger: few prefixes that hold nearly everything end up on all workers. One commit at the end names
what all of them have put; before it nothing of the harvest is part of the catalog.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field, replace

from .. import clock
from ..errors import InvalidRows
from ..model.events import EventKind
from ..model.facts import LAST_SEQUENCE
from ..model.tables import UUID_BYTES, Table
from ..query.database import Database
from ..query.snapshot import Snapshot
from ..wording import either
from ..write.shares import ShareTask, share_task
from ..write.writer import Writer
from .account import Counts, Harvested
from .commit import commit, said_of_bucket, said_of_failures
from .difference import LiveRows, refuse_empty
from .failures import Failures
from .mapping import OBJECT_VERSIONS, OBJECTS, Bucket
from .ranges import ALL_NAMES, NameRange, evenly
from .scope import Scope
from .sections import Done, HarvestTask, HarvestWorkers, Section, joined, live_share
from .source import DividedSource, is_of_a_store

FIRST_ENTRIES, GROWTH = 131_072, 4
"""The most entries of a section in the first round, and how many times as many they are in each that follows."""
_SLICES_A_PART = 2
_PLACE_BYTES = 2 * UUID_BYTES.byte_width
"""What a key begins with: owner and bucket."""


@dataclass
class Rounds:
    """A harvest of a source to a bucket, by workers, since ``started``, in microseconds. Without a ``writer`` it is a dry run."""

    snapshot: Snapshot
    bucket: Bucket
    scope: Scope
    source: DividedSource
    workers: HarvestWorkers
    writer: Writer | None
    database: Database
    started: int
    checksum: bool = False
    done: list[Done] = field(default_factory=list)
    versions: tuple[str, ...] = ()

    def run(self, state: Harvested, *, allow_empty: bool) -> Generator[Harvested, None, None]:
        """Do it all; gives the counts after each round."""
        task = HarvestTask(self.source, self.bucket, self.scope, self._writes(), self.checksum)
        most, ranges = FIRST_ENTRIES, self._divided([ALL_NAMES])
        while ranges:
            sections = [self._section(within, most if is_divided else None) for within, is_divided in ranges]
            found = list(self.workers.run(task, sections))
            self.done += found
            self._refuse_many()
            yield self._counted(state)
            ranges = self._divided(within for one in found for within in one.rest)
            most *= GROWTH
        failures = self._failures()
        if not allow_empty and not len(failures) and not any(one.found for one in self.done):
            refuse_empty(self.snapshot, self.bucket, self.scope, self.source)
        self._commit(failures)
        yield self._counted(state)

    def _writes(self) -> dict[str, ShareTask] | None:
        if self.writer is None:
            return None
        return {table.name: share_task(self.database, self.writer.id, table.name, EventKind.PUT) for table in self._tables}

    @property
    def _tables(self) -> tuple[Table, ...]:
        """The tables that the source has rows of."""
        versioning = self.source.versioning() if is_of_a_store(self.source) else None
        return (OBJECTS,) if versioning is None else (OBJECTS, OBJECT_VERSIONS)

    def _section(self, within: NameRange, most: int | None) -> Section:
        known = {table.name: live_share(self.snapshot, self.bucket, table, within) for table in self._tables}
        return Section(within, known, most)

    def _divided(self, ranges: Iterable[NameRange]) -> list[tuple[NameRange, bool]]:
        """The ranges in about as many parts as the workers want, each with whether it can be divided further."""
        ranges = list(ranges)
        each = -(-self.workers.parts // len(ranges)) if ranges else 0
        found: list[tuple[NameRange, bool]] = []
        for within in ranges:
            parts = within.divided(self._points(within, each)) if each > 1 else [within]
            found += [(part, each <= 1 or len(parts) > 1) for part in parts]
        return found

    def _points(self, within: NameRange, parts: int) -> list[bytes]:
        """Where to divide a range: as the catalog's names are spread where it knows many, else as the source says."""
        table = self._tables[-1]
        slices = list(LiveRows.of(self.snapshot, self.bucket, table, within).slices)
        if len(slices) >= _SLICES_A_PART * parts:
            return evenly([_name_at(table, slice_.keys.start) for slice_ in slices[1:]], parts)
        return self.source.divide(within, parts)

    def _refuse_many(self) -> None:
        if sum(share.events for one in self.done for share in one.shares) > LAST_SEQUENCE:
            raise InvalidRows(
                f"{self.bucket.source} has more changes than one transaction can hold, which are 2^31.",
                next_step=f"Harvest it in parts, each with other globs ({either('include=[...]', '--include')}); what is left out is left "
                "alone.",
            )

    def _failures(self) -> Failures:
        failures = Failures()
        for one in self.done:
            for error in one.failures:
                failures.add(error)
        return failures

    def _counted(self, state: Harvested) -> Harvested:
        failures = self._failures()
        return replace(state.with_counts(self._counts(failures)), failed=failures.first(), transactions=self.versions)

    def _counts(self, failures: Failures) -> Counts:
        return replace(Counts.sum(one.counts for one in self.done), errors=len(failures))

    def _commit(self, failures: Failures) -> None:
        """One transaction with all of it, unless there is nothing to say."""
        if self.writer is None:
            return
        said = [
            *said_of_bucket(self.bucket),
            *joined(one for done in self.done for one in done.said),
            *said_of_failures(*failures.changes(self.snapshot, self.source.url, self.scope)),
        ]
        shares = [share for one in self.done for share in one.shares]
        if not said and not shares:
            return
        metrics = self._counts(failures).metrics(self.started, max(clock.now_us(), self.started))
        committed = commit(self.writer, self.bucket, said, metrics, shares)
        if committed is not None:
            self.versions = (committed.version,)
        self.writer.check()  # commits look only now and then, and success must not be claimed for half of a fork


def _name_at(table: Table, key: bytes) -> bytes:
    """The name that a slice's first key is of, as far as it is text."""
    raw = key[_PLACE_BYTES:]
    if table is OBJECT_VERSIONS:
        raw = raw.partition(b"\x00\x01")[0].replace(b"\x00\xff", b"\x00")
    return raw.decode(errors="ignore").encode()
