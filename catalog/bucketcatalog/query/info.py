"""What a database is, how large and how old it is, how well it is kept, and what needs doing: numbers, and the commands to type."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ..errors import UNREADABLE
from ..format.checkpoints import Checkpoint
from ..format.headers import TOMBSTONES, BlockClass
from ..log.entries import boundaries_of, tags_of
from ..log.files import LogFiles
from ..log.pins import pins_in, pins_that_hold
from ..log.pruned import KeptCheckpoints
from ..model.arrays import exact_sum
from ..model.cuts import Ref
from ..model.paths import FileKind, database_prefix, kind_of, parse_segment, segments_prefix
from ..model.tables import Table
from ..model.times import datetime_of
from ..state.sums import kept_totals, sum_runs
from .metadata import stored_checkpoints
from .snapshot import DELETED_PREFIX, Snapshot

MANY_EVENTS, MANY_TRANSACTIONS, MANY_BYTES = 1_000_000, 1_000, 256 << 20
"""What is not covered by a checkpoint is read by everybody: from so much on a checkpoint is worth its cost."""
MANY_TOMBSTONES = 100_000
"""From so many on, if they are more than the live rows, tombstones are worth collecting."""
MANY_TIMES, MUCH_HISTORY, _LONG = 4, 64 << 20, 30 * 86_400 * 1_000_000
"""Files of more than so many times the bytes that are read now, and so many bytes beside, are worth pruning after 30 days."""
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class LevelInformation:
    """One level of a table in the checkpoints that are read from: rows of all classes, blocks, and the bytes of their files.

    Of what a checkpoint holds itself they are those of the blocks.
    """

    level: int
    rows: int
    blocks: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TableInformation:
    """A table's rows: live ones, tombstones, and all that are stored in levels or as uncovered events.

    ``sums`` are what the sums over columns that it declares come to, over all groups together, by name. Those that no checkpoint could keep
    are left out: to know them takes reading all rows.
    """

    table: str
    live: int
    tombstones: int
    stored: int
    uncovered_events: int
    levels: tuple[LevelInformation, ...]
    sums: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def space_amplification(self) -> float | None:
        """How many rows are stored for each live one; None where none is live."""
        return self.stored / self.live if self.live else None


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a database, in bytes but for ``count``. Segments that no checkpoint names, a tag's neither, count as changes.

    ``oldest`` is when the first of them was written, microseconds by the store's clock.
    """

    count: int = 0
    bytes: int = 0
    changes: int = 0
    checkpoints: int = 0
    oldest: int = 0


@dataclass(frozen=True, slots=True)
class Advice:
    """Something that needs doing: why, and the command."""

    why: str
    command: str


@dataclass(frozen=True, slots=True)
class Information:
    """A database at one cut, and its files.

    ``tables`` are those that have rows. ``checkpoints`` are read from, ``stored_checkpoints`` are there. ``horizon`` is the oldest version
    whose history is still there, where the rest was pruned; ``pins`` are those that hold some of it. ``forked`` are the writers whose
    timelines have several ends.
    """

    database: str
    version: str
    newest_commit: datetime.datetime | None
    watermark: datetime.datetime
    writers: int
    tables: tuple[TableInformation, ...]
    files: Files
    checkpoints: int
    stored_checkpoints: int
    newest_checkpoint: datetime.datetime | None
    uncovered_transactions: int
    uncovered_events: int
    uncovered_bytes: int
    tags: int
    pins: int
    horizon: str | None
    horizon_time: datetime.datetime | None
    conflicts: int
    open_forks: int
    forked: tuple[str, ...]
    to_do: tuple[Advice, ...] = ()

    def table(self, name: str) -> TableInformation:
        """What is known of a table's rows."""
        return next((found for found in self.tables if found.table == name), TableInformation(name, 0, 0, 0, 0, ()))

    @property
    def write_amplification(self) -> float | None:
        """Bytes that checkpoints wrote for each byte of changes, of what is still there; None without changes."""
        return self.files.checkpoints / self.files.changes if self.files.changes else None


def describe(snapshot: Snapshot, place: str, progress: Progress = lambda _: None) -> Information:
    """Look at a database: its listing, its indexes, and those of its rows that no index can count.

    ``place`` is how commands name the catalog; ``progress`` is told how many rows were counted.
    """
    counted = _Counted(snapshot, progress)
    tables = tuple(counted.table(table) for table in snapshot.usable())
    view, horizon = snapshot.view, boundaries_of(snapshot.view).history
    stored = list(stored_checkpoints(snapshot))
    found = Information(
        database=snapshot.database,
        version=snapshot.version,
        newest_commit=_time(view.cut.newest_commit_time),
        watermark=snapshot.watermark,
        writers=len(view.cut.heads),
        tables=tuple(table for table in tables if table.stored),
        files=_files(snapshot, {s.place for checkpoint in (*stored, *_of_tags(snapshot)) for s in checkpoint.segments}),
        checkpoints=len(view.checkpoints),
        stored_checkpoints=len(stored),
        newest_checkpoint=_time(max((checkpoint.created for checkpoint in view.checkpoints), default=0)),
        uncovered_transactions=len(view.tail),
        uncovered_events=sum(transaction.events for transaction in view.tail),
        uncovered_bytes=sum(t.size + sum(segment.size for segment in t.segments) for t in view.tail),
        tags=sum(1 for tag in tags_of(view).values() if not tag.latest.dropped),
        pins=len(pins_that_hold(pins_in(view).values(), view.observed)),
        horizon=None if horizon is None else str(horizon.horizon),
        horizon_time=None if horizon is None else _time(horizon.horizon.newest_commit_time),
        conflicts=sum(map(len, snapshot.scan("conflicts").to_batches())),
        open_forks=sum(1 for fork in view.forks if fork.open),
        forked=tuple(sorted({fork.writer for fork in view.forks if fork.open})),
    )
    return replace(found, to_do=tuple(_to_do(found, chosen(place, snapshot.database))))


def chosen(place: str, database: str) -> str:
    """How commands name a database of the catalog at ``place``."""
    return f"{shlex.quote(place)} --database {database}"


def _time(micros: int) -> datetime.datetime | None:
    return datetime_of(micros) if micros else None


def _of_tags(snapshot: Snapshot) -> list[Checkpoint]:
    """The checkpoints that are kept for tags; what is wrong with one is said by ``verify``."""

    def read(files: LogFiles, ref: Ref) -> Checkpoint | None:
        try:
            return files.checkpoint(*ref)
        except UNREADABLE:
            return None

    found = snapshot.files.map(read, KeptCheckpoints.listed(snapshot.files).refs)
    return [checkpoint for checkpoint in found if checkpoint is not None]


def _files(snapshot: Snapshot, of_checkpoints: set[tuple[str, bytes]]) -> Files:
    """The database's files; ``of_checkpoints`` are the segments that checkpoints name, by writer and uuid."""
    found = Files()
    for writer in snapshot.cut.heads:
        segments = segments_prefix(writer, snapshot.database)
        for info in snapshot.files.store.list(database_prefix(writer, snapshot.database)):
            kind = kind_of(info.name)
            is_checkpoint = kind is FileKind.CHECKPOINT or (writer, parse_segment(segments, info.name)) in of_checkpoints
            is_change = kind is not None and not is_checkpoint
            found = Files(
                count=found.count + 1,
                bytes=found.bytes + info.size,
                changes=found.changes + info.size * is_change,
                checkpoints=found.checkpoints + info.size * is_checkpoint,
                oldest=min(found.oldest or info.modified_us, info.modified_us),
            )
    return found


class _Counted:
    """Counts the rows of tables, from indexes where these say it all."""

    def __init__(self, snapshot: Snapshot, progress: Progress) -> None:
        self._snapshot = snapshot
        self._progress = progress
        self._rows = 0

    def table(self, table: Table) -> TableInformation:
        """The rows of a table."""
        state = self._snapshot.state(table.name)
        levels = tuple(
            LevelInformation(number, sum(p.run.rows for p in parts), sum(p.run.blocks for p in parts), sum(p.size for p in parts))
            for number, parts in enumerate(state.parts_by_level())
        )
        stored = sum(level.rows for level in levels) + state.new_rows
        if not stored:
            return TableInformation(table.name, 0, 0, 0, 0, ())
        live, sums = self._live(table)
        ended = self._count(table, f"{DELETED_PREFIX}{table.name}", TOMBSTONES) if table.keeps_tombstones else 0
        return TableInformation(table.name, live, ended, stored, state.new_rows, levels, sums)

    def _live(self, table: Table) -> tuple[int, dict[str, int]]:
        """How many rows are live, and what the table's sums come to."""
        wanted = {run.total.name: run.total.column for run in sum_runs(table) if run.total.column}
        if not wanted:
            return self._count(table, table.name, frozenset({BlockClass.LIVE})), {}
        kept = kept_totals(self._snapshot.state(table.name))
        if kept is not None and wanted.keys() <= kept[1].keys():
            return kept[0], {name: kept[1][name] for name in wanted}
        count, sums = 0, dict.fromkeys(wanted, 0)
        for batch in self._read(table.name, dict.fromkeys(wanted.values())):
            count += len(batch)
            for name, column in wanted.items():
                sums[name] += exact_sum(batch.column(column))
        return count, sums

    def _count(self, table: Table, scanned: str, classes: Collection[BlockClass]) -> int:
        known = self._snapshot.state(table.name).folded_rows(classes)
        return sum(map(len, self._read(scanned, [table.key[-1]]))) if known is None else known

    def _read(self, scanned: str, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
        for batch in self._snapshot.scan(scanned, columns=list(columns)).to_batches():
            self._rows += len(batch)
            self._progress(self._rows)
            yield batch


def _to_do(found: Information, where: str) -> Iterator[Advice]:
    """What needs doing; ``where`` names catalog and database in commands."""
    for writer in found.forked:
        yield Advice(f"two processes wrote as {writer}", f"bucketcatalog repair {where} --join {writer}")
    too_much = (
        found.uncovered_events >= MANY_EVENTS
        or found.uncovered_transactions >= MANY_TRANSACTIONS
        or found.uncovered_bytes >= MANY_BYTES
    )
    if too_much:
        waiting = f"readers replay {_counted(found.uncovered_transactions, 'transaction')}"
        yield Advice(waiting, f"bucketcatalog checkpoint {where} --all-writers")
    current = found.uncovered_bytes + sum(level.bytes for table in found.tables for level in table.levels)
    is_old = found.files.oldest < found.watermark.timestamp() * 1e6 - _LONG
    if is_old and found.files.changes + found.files.checkpoints > MUCH_HISTORY + MANY_TIMES * current:
        yield Advice(
            f"the history is more than {MANY_TIMES} times what is read now", f"bucketcatalog prune {where} --older-than 30d"
        )
    for table in found.tables:
        if table.tombstones >= MANY_TOMBSTONES and table.tombstones > table.live:
            ended = f"{_counted(table.tombstones, 'tombstone')} of {table.table}, more than live rows"
            yield Advice(ended, f"bucketcatalog gc {where} --data")
    if found.conflicts:
        yield Advice(_counted(found.conflicts, "conflict"), f"bucketcatalog conflicts {where}")


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
