"""The lowest level's files as any other program reads them: Parquet and nothing else, against what the rows should be."""

from __future__ import annotations

import io
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq

from bucketcatalog.errors import ObjectNotFound
from bucketcatalog.store.base import Store
from bucketcatalog.v1 import log_pb2

from ..reference.model import Key
from .columns import COLUMNS, DATABASE, KEYS
from .comparing import check, shown
from .onlooker import plain_rows
from .world import World


class LowestLevels:
    """Looks at each checkpoint once, as soon as it is there: files are never changed."""

    def __init__(self, world: World, store: Store) -> None:
        self._world = world
        self._store = store
        self._seen: set[str] = set()
        self.files = 0

    def look(self) -> None:
        """Read the rows of the lowest level of every new checkpoint: the live ones are those of its cut, and all are in order."""
        for writer in self._store.list_prefixes(""):
            for found in self._store.list(f"{writer}{DATABASE}/transactions/"):
                if found.name.endswith(".ckpt") and found.name not in self._seen:
                    self._seen.add(found.name)
                    self._look_at(log_pb2.Checkpoint.FromString(self._store.get(found.name)))

    def _look_at(self, checkpoint: Any) -> None:
        runs = [reference for reference in checkpoint.segments if _is_lowest(reference.run)]
        inline = {run.run.table for run in checkpoint.runs if _is_lowest(run.run) and _is_live(run.run)}
        tables = [reference.run.table for reference in runs if _is_live(reference.run)]
        for reference in runs:
            table, name = reference.run.table, f"{reference.writer}/{DATABASE}/segments/{UUID(bytes=reference.uuid)}.parquet"
            try:
                data = self._store.get(name)
            except ObjectNotFound:
                continue  # it has been pruned since
            keys = [_key(row, table) for row in plain_rows(pq.read_table(io.BytesIO(data), columns=list(KEYS[table])))]
            check(f"the order of {name}", sorted(keys, key=lambda key: [part.encode() for part in key]), keys)
            if _is_live(reference.run):
                self._compare(reference, data, name, is_whole=table not in inline and tables.count(table) == 1)

    def _compare(self, reference: Any, data: bytes, name: str, *, is_whole: bool) -> None:
        table = reference.run.table
        index = log_pb2.SegmentIndex.FromString(data[reference.index_offset :][: reference.index_length])
        heads = [str(UUID(bytes=head.uuid)) for writer in index.cut.writers for head in writer.heads]
        live = self._world.state(self._world.timelines.ancestors(heads)).live(table)
        expected = {key: (version.name, shown(version)) for key, version in live.items()}
        found = _rows(data, table)
        if not is_whole:
            expected = {key: row for key, row in expected.items() if min(found) <= key <= max(found)}
        check(f"live {table} as {name} has them", expected, found)
        self.files += 1


def _is_lowest(run: Any) -> bool:
    return run.level == 0 and run.table in COLUMNS and run.purpose <= log_pb2.RUN_PURPOSE_ROWS


def _is_live(run: Any) -> bool:
    return bool(getattr(run, "class") == log_pb2.BLOCK_CLASS_LIVE)


def _key(row: dict[str, Any], table: str) -> Key:
    return tuple(row[column] for column in KEYS[table])


def _rows(data: bytes, table: str) -> dict[Key, tuple[str, dict[str, Any]]]:
    """The rows of a Parquet file by key, each with the name of its version."""
    rows = plain_rows(pq.read_table(io.BytesIO(data)))
    return {
        _key(row, table): (f"{row['_uuid']}:{row['_seq']}", {column: row[column] for column in COLUMNS[table]}) for row in rows
    }
