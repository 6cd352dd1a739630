"""The job ``boxes.repack``: the files of each box that has several become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bucketcatalog import InvalidOption
from bucketcatalog.model.names import COMPACTOR_PREFIX
from bucketcatalog.model.paths import data_prefix
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.registry import Job, JobTask
from bucketcatalog.store.base import Store
from bucketcatalog.write.writer import Writer

from .packed import PackTask


@dataclass(frozen=True)
class Repack:
    """One box: what its files hold, in one."""

    box: str
    paths: tuple[str, ...]
    prefix: str

    def run(self, store: Store) -> dict[str, Any]:
        """The new part."""
        rows = pa.concat_tables([pq.read_table(pa.BufferReader(store.get(path))) for path in self.paths])
        return {"box": self.box, **PackTask(self.prefix, rows.schema).write(store, rows.to_batches())}


class Repacking:
    """All boxes that have several files, at one cut."""

    def __init__(self, snapshot: Snapshot, writer: Writer, *, least: int = 2) -> None:
        if least < 2:
            raise InvalidOption(f"A box of {least} files need not be repacked.", next_step="Give 2 or more.")
        self._writer = writer
        found = snapshot.scan("boxes.parts", columns=["box", "path"]).to_arrow()
        paths: dict[str, list[str]] = {}
        for box, path in zip(found["box"].to_pylist(), found["path"].to_pylist(), strict=True):
            paths.setdefault(box, []).append(path)
        prefix = data_prefix(writer.id, writer.database)
        self._paths = {box: tuple(some) for box, some in paths.items() if len(some) >= least}
        self.tasks: Sequence[JobTask] = [Repack(box, some, prefix) for box, some in self._paths.items()]

    def finish(self, outcomes: Sequence[Any]) -> int:
        """Put the new parts and delete the old ones, in one transaction; how many boxes there are; nothing where there is none."""
        if not outcomes:
            return 0
        with self._writer.transaction(operation="repack") as tx:
            tx.put("boxes.parts", list(outcomes))
            tx.delete("boxes.parts", [{"box": box, "path": path} for box, some in self._paths.items() for path in some])
        return len(outcomes)


JOBS = {"repack": Job(Repacking, role=COMPACTOR_PREFIX)}
