"""Compaction: small files of a partition become one, without what was deleted and without rows that newer ones have replaced.

Each new file is written by a task, wherever that runs; one commit names all of them and ends what they were made of. Others may append,
delete, remove and compact meanwhile: ``live`` says why every row counts as before. Source: persistence document, section 1.2, "Compact".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...clock import now_us
from ...errors import InvalidOption, UnknownTable
from ...model.arrays import one_chunk
from ...model.names import COMPACTOR_PREFIX
from ...model.widening import cast
from ...parallel import in_order
from ...query.snapshot import Snapshot
from ...registry import Job, JobTask
from ...store.base import Store
from ...write.writer import Writer
from .bloom_filters import can_be_filtered
from .files import CHUNK, CLOCK, FILES, About, Written, add_files, new_id, put_file
from .live import Live
from .plan import parts_of
from .predicates import PREDICATES
from .reading import DataAsked, FilePart

TARGET_BYTES = 128 << 20
LEAST_FILES = 2


@dataclass(frozen=True)
class Compacted:
    """What a compaction has come to: files that it ended and made, in one commit, and predicates that nothing needs any more."""

    table: str
    ended: int
    made: int
    rows: int
    bytes: int
    predicates_ended: int
    version: str | None


@dataclass(frozen=True)
class MakeFile:
    """Makes one file of several."""

    asked: DataAsked
    parts: Sequence[FilePart] = field(repr=False)
    about: About
    schema: pa.Schema = field(repr=False)
    bloom_filters: tuple[str, ...] = ()

    def run(self, store: Store) -> Written | None:
        """See ``JobTask``; None where none of their rows counts."""
        keyed = bool(self.asked.key_columns)
        names = [*self.schema.names, CHUNK, *([CLOCK] if keyed else [])]

        def read(part: FilePart) -> list[pa.Table]:
            return [rows.select(names) for rows in self.asked.read(store, part, to_merge=keyed)]

        rows = pa.concat_tables(rows for of_part in in_order(read, self.parts) for rows in of_part).combine_chunks()
        if keyed:
            rows = self.asked.newest(rows)
        if not len(rows):
            return None
        columns = [cast(rows[each.name], each.type) for each in self.schema]
        told = [rows[name] for name in names[len(self.schema) :]]
        fields = [*self.schema, pa.field(CHUNK, pa.string()), *([pa.field(CLOCK, pa.int64())] if keyed else [])]
        return put_file(store, pa.table([*columns, *told], schema=pa.schema(fields)), self.about, self.bloom_filters)


@dataclass
class _Group:
    """Files that are to become one, if they are at least so many or have rows that do not count."""

    least: int
    files: list[int] = field(default_factory=list)
    size: int = 0
    is_touched: bool = False

    def add(self, at: int, part: FilePart) -> None:
        """Add a file by its position."""
        self.files.append(at)
        self.size += part.size
        self.is_touched |= not part.is_whole

    @property
    def is_worth_it(self) -> bool:
        """Whether something comes of it."""
        return bool(self.files) and (len(self.files) >= self.least or self.is_touched)


class Compaction:
    """A compaction of a data table, planned: see ``Planned``.

    Files smaller than half of ``target_bytes``, and those with rows that do not count, become files of about that size, if that makes at
    least ``least`` into one or leaves rows out. Only files with the same columns come together, so no reader sees other ones after it. A
    file has Bloom filters of the columns of which one of those that it is made of has any.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        writer: Writer,
        *,
        table: str,
        partition: str | None = None,
        target_bytes: int = TARGET_BYTES,
        least: int = LEAST_FILES,
    ) -> None:
        if not all(isinstance(number, int) and number >= 1 for number in (target_bytes, least)):
            raise InvalidOption("A file has at least a byte and is made of a file.", next_step="Give larger numbers.")
        live = Live.of(snapshot, table)
        if live is None:
            raise UnknownTable(
                f"Database {snapshot.database!r} has no data table {table!r}.", next_step="See the snapshot's tables."
            )
        self._live, self._writer, self._snapshot = live, writer, snapshot
        self._groups = list(self._grouped(partition, target_bytes, least))
        write = new_id(now_us())
        self.tasks: Sequence[JobTask] = [self._task(group, write) for group in self._groups]

    @cached_property
    def _known(self) -> pa.Array:
        """The chunks of which anything is known still, be it that they have ended."""
        ended = self._snapshot.scan(f"deleted_{FILES}", columns=["chunk"], where={"table": self._live.table}).to_arrow()
        return pc.unique(pa.concat_arrays([one_chunk(self._live.files["chunk"]), one_chunk(ended["chunk"])]))

    @cached_property
    def _parts(self) -> dict[int, FilePart]:
        """What is read of each file of which rows count, by its position."""
        return dict(zip(self._live.left.tolist(), parts_of(self._live, self._live.left), strict=True))

    def _grouped(self, partition: str | None, target: int, least: int) -> Iterator[list[int]]:
        """The positions of files that become one."""
        table = self._live.files.select(["partition", "schema", "first_clock", "chunk"])
        table = table.append_column("at", pa.array(np.arange(len(table)))).take(pa.array(self._live.left))
        if partition is not None:
            table = table.filter(pc.equal(table["partition"], partition))
        ordered = table.sort_by([(name, "ascending") for name in table.column_names])
        group = _Group(least)
        of: tuple[str, str] | None = None
        for place, schema, at in zip(*(ordered[name].to_pylist() for name in ("partition", "schema", "at")), strict=True):
            part = self._parts[at]
            if part.size * 2 > target and part.is_whole:
                continue
            if of != (place, schema) or group.size + part.size > target:
                if group.is_worth_it:
                    yield group.files
                group = _Group(least)
            of = place, schema
            group.add(at, part)
        if group.is_worth_it:
            yield group.files

    def _task(self, group: Sequence[int], write: str) -> MakeFile:
        live, files = self._live, self._live.files.take(pa.array(group))
        first = {name: files[name][0].as_py() for name in ("partition", "schema")}
        schema = live.schema(first["schema"], files["path"][0].as_py())
        parts = [self._parts[at] for at in group]
        about = About(
            write,
            self._writer.id,
            self._writer.database,
            live.table,
            first["partition"],
            new_id(now_us()),
            pc.min(files["first_clock"]).as_py(),
            pc.max(files["last_clock"]).as_py(),
            live.key_columns,
            tuple(sorted({chunk for at in group for chunk in live.counted[at]})),
            tuple(sorted({id_ for at in group for id_ in live.spoken_of.get(at, ())})),
        )
        shape = live.merged("skip")
        columns = schema if first["schema"] in shape.skipped else shape.schema
        shown = pa.schema([*(columns.field(name) for name in schema.names), pa.field(CHUNK, pa.string())])
        asked = DataAsked(live.table, shown, (), columns, live.key_columns, live.conditions)
        filtered = can_be_filtered(schema, pc.list_flatten(one_chunk(files["bloom_filters"])).to_pylist())
        return MakeFile(asked, parts, about, schema, filtered)

    def _over(self) -> list[str]:
        """The predicates that speak of files of which nothing is known any more, and have been applied to all that was made of them."""
        gone = (p for p in self._live.predicates if not _any_of(p.chunks, self._known))
        return [p.id for p in gone if not len(self._live.concerned_by(p))]

    def finish(self, outcomes: Sequence[Written | None]) -> Compacted:
        """Commit what the tasks have made; nothing where there is nothing to do."""
        live, made = self._live, [written for written in outcomes if written is not None]
        dead = np.flatnonzero(~live.is_left).tolist()
        ended, over = [*dead, *(at for group in self._groups for at in group)], self._over()
        if not ended and not over:
            return Compacted(live.table, 0, 0, 0, 0, 0, None)
        with self._writer.transaction(operation="compact") as tx:
            add_files(tx, made, frozenset(live.by_schema))
            live.end(tx, live.files.take(pa.array(ended, pa.int64())))
            if over:
                tx.delete(PREDICATES, [{"table": live.table, "id": each} for each in over])
        committed = tx.committed
        rows: Mapping[str, Any] = {name: sum(each.row[name] for each in made) for name in ("rows", "size")}
        version = None if committed is None else committed.version
        return Compacted(live.table, len(ended), len(made), rows["rows"], rows["size"], len(over), version)


def _any_of(chunks: Sequence[str], found: pa.Array) -> bool:
    """Whether any of the chunks is among those that were found."""
    return bool(pc.any(pc.is_in(pa.array(chunks, pa.string()), value_set=found), min_count=0).as_py())


JOBS = {"compact": Job(Compaction, role=COMPACTOR_PREFIX)}
