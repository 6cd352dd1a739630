"""Tables about the catalog itself: what it consists of, who wrote it, and what is odd about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..format.checkpoints import Checkpoint
from ..format.runs import SegmentReference, StoredPart
from ..log.entries import tags_of
from ..log.pins import holds_until, pins_in, pins_that_hold
from ..log.pruned import telling_of_prunes
from ..model import paths
from ..model.arrays import one_chunk
from ..model.cuts import Ref
from ..model.names import role_of
from ..model.parents import name_column
from ..model.render import chosen
from ..model.tables import TIMESTAMP, Table
from ..model.uuids import uuid_text
from ..state.conflicts import CONFLICTS, conflicts
from ..state.contents import Contents
from ..state.plan import Part
from ..state.read import read_slice
from ..state.sums import SUMS, sums_of
from ..where.conditions import Where, allowed_values, check, matching
from ..where.timed import settled
from .commits import LOG, commits
from .damage import DAMAGE, damage
from .in_html import Plan, read_html, rows_html
from .named import Names
from .reads import InBatches

_BUCKET = pa.field("bucket", pa.string())
"""The name of what the rows belong to that a row is about."""
SCHEMAS = {
    "log": LOG,
    "writers": pa.schema(
        [
            pa.field("writer", pa.string(), False),
            pa.field("role", pa.string(), False),
            pa.field("revision", pa.int64(), False),
            pa.field("heads", pa.int64(), False),
            pa.field("last_commit_timestamp", TIMESTAMP, False),
            pa.field("uncovered", pa.int64(), False),
            pa.field("retired", pa.bool_(), False),
        ]
    ),
    "checkpoints": pa.schema(
        [
            pa.field("writer", pa.string(), False),
            pa.field("revision", pa.int64(), False),
            pa.field("uuid", pa.string(), False),
            pa.field("as_of", TIMESTAMP, False),
            pa.field("created", TIMESTAMP, False),
            pa.field("writers", pa.int64(), False),
            pa.field("rows", pa.int64(), False),
            pa.field("bytes", pa.int64(), False),
            pa.field("bytes_written", pa.int64(), False),
            pa.field("bytes_reused", pa.int64(), False),
            pa.field("segments", pa.int64(), False),
            pa.field("in_use", pa.bool_(), False),
            pa.field("version", pa.string(), False),
        ]
    ),
    "segments": pa.schema(
        [
            pa.field("checkpoint", pa.string(), False),
            pa.field("name", pa.string(), False),
            pa.field("table", pa.string(), False),
            pa.field("class", pa.string(), False),
            pa.field("purpose", pa.string(), False),
            pa.field("run", pa.string()),
            pa.field("level", pa.int64(), False),
            pa.field("rows", pa.int64(), False),
            pa.field("blocks", pa.int64(), False),
            pa.field("bytes", pa.int64()),
        ]
    ),
    "conflicts": CONFLICTS.append(_BUCKET),
    "sums": SUMS.append(_BUCKET),
    "forks": pa.schema(
        [
            pa.field("writer", pa.string(), False),
            pa.field("revision", pa.int64(), False),
            pa.field("uuids", pa.list_(pa.string()), False),
            pa.field("open", pa.bool_(), False),
        ]
    ),
    "tables": pa.schema(
        [
            pa.field("table", pa.string(), False),
            pa.field("key", pa.list_(pa.string())),
            pa.field("id", pa.string()),
            pa.field("data_reference", pa.list_(pa.string())),
            pa.field("parent", pa.string()),
            pa.field("columns", pa.list_(pa.string())),
            pa.field("tombstones", pa.bool_()),
            pa.field("contradiction", pa.string()),
        ]
    ),
    "tags": pa.schema(
        [
            pa.field("name", pa.string(), False),
            pa.field("version", pa.string(), False),
            pa.field("created", TIMESTAMP, False),
            pa.field("dropped", pa.bool_(), False),
            pa.field("commit_timestamp", TIMESTAMP, False),
            pa.field("writer", pa.string(), False),
            pa.field("revision", pa.int64(), False),
            pa.field("replaced_version", pa.string()),
            pa.field("replaced_commit_timestamp", TIMESTAMP),
            pa.field("replaced_writer", pa.string()),
        ]
    ),
    "pins": pa.schema(
        [
            pa.field("name", pa.string(), False),
            pa.field("writer", pa.string(), False),
            pa.field("version", pa.string(), False),
            pa.field("commit_timestamp", TIMESTAMP, False),
            pa.field("revision", pa.int64(), False),
            pa.field("until", TIMESTAMP),
            pa.field("holds", pa.bool_(), False),
        ]
    ),
    "damage": DAMAGE,
}
METADATA_TABLES = frozenset(SCHEMAS)
_AT_HAND = frozenset({"forks", "pins", "tables", "tags", "writers"})
"""What an open snapshot has read already, but for indexes."""


def metadata_schema(name: str) -> pa.Schema:
    """The columns of a table about the catalog."""
    return SCHEMAS[name]


class MetadataScan(InBatches):
    """A read of a table about the catalog, with the methods of ``Scan``."""

    def __init__(self, contents: Contents, name: str, *, columns: Sequence[str] | None, where: Where) -> None:
        self._contents = contents
        self._name = name
        self._shape = Table(name, (), ())
        every = SCHEMAS[name]
        self._where = settled(where, every, name)
        check(self._shape, self._where, every)
        self._schema = chosen(name, every, every.names if columns is None else columns)

    def _of_what(self) -> str:
        return f"{self._name!r}, "

    @property
    def schema(self) -> pa.Schema:
        """The columns that were asked for."""
        return self._schema

    def to_arrow(self) -> pa.Table:
        """All rows as one table."""
        with telling_of_prunes(self._contents.files.store):
            rows = _READERS[self._name](self._contents)
        self._contents.files.on_damage.tell()
        if self._where:
            rows = rows.filter(matching(rows, self._where, allowed_values(self._shape, self._where, rows.schema)))
        return rows.select(self.schema.names)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches."""
        yield from self.to_arrow().to_batches()

    def explain(self) -> str:
        """What the scan reads."""
        return Plan(f"table {self._name}: derived from the log and the checkpoints")

    def _repr_html_(self) -> str:
        """For notebooks: the rows, where an open snapshot has them, else the columns."""
        return rows_html(self._name, self.to_arrow) if self._name in _AT_HAND else read_html(self.schema, self.explain)


def _table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMAS[name])


def _writers(contents: Contents) -> pa.Table:
    tail = [t.writer for t in contents.view.tail]
    rows = [
        {
            "writer": writer,
            "role": role_of(writer),
            "revision": max(head.revision for head in heads),
            "heads": len(heads),
            "last_commit_timestamp": max(head.commit_time for head in heads),
            "uncovered": tail.count(writer),
            "retired": writer in contents.view.retired,
        }
        for writer, heads in contents.cut.heads.items()
    ]
    return _table("writers", rows)


def stored_checkpoints(contents: Contents) -> Iterator[Checkpoint]:
    """The checkpoints that lie within the contents's time, whether or not they are read from."""
    for writer in contents.cut.heads:
        for head in contents.files.checkpoints(writer):
            if head.commit_time <= contents.cut.newest_commit_time:
                checkpoint = contents.files.usable_checkpoint(writer, head)
                if checkpoint is not None:
                    yield checkpoint


def _checkpoints(contents: Contents) -> pa.Table:
    used = {c.ref for c in contents.view.checkpoints}
    stored = list(stored_checkpoints(contents))
    maker: dict[tuple[str, bytes], Ref] = {}
    for checkpoint in sorted(stored, key=lambda c: (c.created, c.ref)):
        for segment in checkpoint.segments:
            maker.setdefault(segment.place, checkpoint.ref)  # whoever names a segment first has written it
    rows = [
        {
            "writer": c.writer,
            "revision": c.revision,
            "uuid": uuid_text(c.uuid),
            "as_of": c.as_of,
            "created": c.created,
            "writers": len(c.cut.heads),
            "rows": sum(t.live + t.tombstones + t.stubs for t in c.totals.values()),
            "bytes": c.size + sum(segment.size for segment in c.segments),
            "bytes_written": c.size + sum(s.size for s in c.segments if maker[s.place] == c.ref),
            "bytes_reused": sum(s.size for s in c.segments if maker[s.place] != c.ref),
            "segments": len(c.segments),
            "in_use": c.ref in used,
            "version": str(c.cut),
        }
        for c in stored
    ]
    return _table("checkpoints", rows)


def _segments(contents: Contents) -> pa.Table:
    rows = [
        {
            "checkpoint": uuid_text(c.uuid),
            "name": _file_of(contents, c, part),
            "table": part.run.table,
            "class": part.run.block_class.name.lower(),
            "purpose": part.run.purpose.name.lower(),
            "run": part.run.name or None,
            "level": part.run.level,
            "rows": part.run.rows,
            "blocks": part.run.blocks,
            "bytes": part.size,
        }
        for c in stored_checkpoints(contents)
        for part in c.parts
    ]
    return _table("segments", rows)


def _file_of(contents: Contents, checkpoint: Checkpoint, part: StoredPart) -> str:
    """The file that a run of the checkpoint lies in."""
    if isinstance(part, SegmentReference):
        return paths.segment(part.writer, contents.database, part.uuid)
    return paths.checkpoint(checkpoint.writer, contents.database, checkpoint.head)


def _conflicts(contents: Contents) -> pa.Table:
    found = [SCHEMAS["conflicts"].empty_table()]
    for table in contents.usable():
        state = contents.state(table.name)
        rows = [CONFLICTS.empty_table()]
        for slice_ in state.plan():
            places = (*slice_.live, *slice_.rest)
            if not slice_.settled or any(p.header.expectations or p.header.late_updates for p in places):
                rows.append(conflicts(read_slice(state.blocks, table, slice_, Part.EVERYTHING), table))
        found.append(_with_bucket(contents, table, pa.concat_tables(rows), "key"))
    return pa.concat_tables(found)


def _sums(contents: Contents) -> pa.Table:
    found = (_with_bucket(contents, table, sums_of(contents.state(table.name)), "group") for table in contents.usable())
    return pa.concat_tables([SCHEMAS["sums"].empty_table(), *found])


def _with_bucket(contents: Contents, table: Table, rows: pa.Table, ids: str) -> pa.Table:
    """Rows about a table with the names of what they belong to, whose ids stand among the texts of a map column; null where none does."""
    names = pa.nulls(len(rows), _BUCKET.type)
    if len(rows) and name_column(table) is not None and table.parent is not None and table.parent.table in contents.definitions:
        values = pc.map_lookup(one_chunk(rows[ids]), pa.scalar(table.parent.column), "first")
        known = Names.read(contents, table)
        names = known.names.cast(_BUCKET.type).take(pc.index_in(values, value_set=known.ids.cast(pa.string())))
    return rows.append_column(_BUCKET, names)


def _forks(contents: Contents) -> pa.Table:
    rows = [
        {"writer": f.writer, "revision": f.revision, "uuids": [uuid_text(u) for u in f.uuids], "open": f.open}
        for f in contents.view.forks
    ]
    return _table("forks", rows)


def _tables(contents: Contents) -> pa.Table:
    definitions = contents.definitions
    rows = [
        {
            "table": table.name,
            "key": list(table.key),
            "id": table.id,
            "data_reference": list(table.data_reference),
            "parent": table.parent.table if table.parent else None,
            "columns": [column.name for column in table.shown_columns],
            "tombstones": table.keeps_tombstones,
        }
        for table in contents.usable()
    ]
    rows += [{"table": name, "contradiction": why} for name in sorted(definitions) if (why := contents.contradiction(name))]
    return _table("tables", rows)


def _tags(contents: Contents) -> pa.Table:
    rows = [
        {
            "name": name,
            "version": str(tag.latest.cut),
            "created": tag.latest.created,
            "dropped": tag.latest.dropped,
            "commit_timestamp": tag.latest.stamp.commit_time,
            "writer": tag.latest.stamp[1],
            "revision": tag.latest.stamp[2],
            "replaced_version": str(tag.replaced.cut) if tag.replaced else None,
            "replaced_commit_timestamp": tag.replaced.stamp.commit_time if tag.replaced else None,
            "replaced_writer": tag.replaced.stamp[1] if tag.replaced else None,
        }
        for name, tag in tags_of(contents.view).items()
    ]
    return _table("tags", rows)


def _pins(contents: Contents) -> pa.Table:
    pins = pins_in(contents.view).values()
    holding = {pin.key for pin in pins_that_hold(pins, contents.view.observed)}
    rows = [
        {
            "name": pin.name,
            "writer": pin.stamp.writer,
            "version": str(pin.cut),
            "commit_timestamp": pin.stamp.commit_time,
            "revision": pin.stamp.revision,
            "until": holds_until(pin),
            "holds": pin.key in holding,
        }
        for pin in pins
        if not pin.dropped
    ]
    return _table("pins", rows)


_READERS: dict[str, Callable[[Contents], pa.Table]] = {
    "log": commits,
    "writers": _writers,
    "checkpoints": _checkpoints,
    "segments": _segments,
    "conflicts": _conflicts,
    "sums": _sums,
    "forks": _forks,
    "tables": _tables,
    "tags": _tags,
    "pins": _pins,
    "damage": damage,
}
