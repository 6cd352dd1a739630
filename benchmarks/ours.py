"""What bucketcatalog does in the benchmarks, most of it in fresh processes. Imports nothing of the peer's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from bucketcatalog import Catalog
from bucketcatalog.checkpoint.publish import CheckpointResult
from bucketcatalog.write.writer import Writer

from . import dataset

WRITER = "bench"
FIRST_SEED = 100
_REWRITTEN_AT_ONCE = 1_000_000

pa.array([0])  # Arrow imports pandas when it first converts values of Python: that too is an import, of which nothing is measured


def opened(path: str | Path) -> Writer:
    """The writer of the benchmarks. What only writers need was imported with this module, and so is in none of its times."""
    return Catalog(path).writer(WRITER)


def build(path: str | Path, parts: Iterator[pa.Table]) -> CheckpointResult:
    """A catalog with these objects, a transaction a part, covered by a checkpoint."""
    with opened(path) as writer:
        for rows in parts:
            with writer.transaction() as tx:
                tx.put("objects", rows)
        result = writer.checkpoint()
    assert result is not None
    return result


def build_seeded(path: str, parts: int, rows: int) -> dict[str, Any]:
    """A catalog of so many parts of the data set, each of another seed; so their rows need not be in this process."""
    result = build(path, (dataset.objects(rows, seed=FIRST_SEED + seed) for seed in range(parts)))
    return {"rows": result.rows, "bytes": result.bytes}


def overwrite_seeded(path: str, parts: int, rows: int, every: int, rounds: int) -> dict[str, Any]:
    """Put each ``every``-th object of such a catalog again, a transaction and a checkpoint a round."""
    names = [dataset.objects(rows, seed=FIRST_SEED + seed)["name"].combine_chunks()[::every] for seed in range(parts)]
    taken = pa.concat_arrays(names)
    with opened(path) as writer:
        for number in range(rounds):
            fresh = dataset.objects(len(taken), seed=50_000 + number)
            with writer.transaction(operation="upsert") as tx:
                tx.put("objects", fresh.set_column(fresh.column_names.index("name"), "name", taken))
            writer.checkpoint()
    return {"levels": Catalog(path).snapshot().state("objects").level_rows}


def rewrite(path: str, target: str) -> dict[str, Any]:
    """A catalog of the live objects of another one, and nothing else, checkpointed."""
    batches = Catalog(path).snapshot().scan("objects", columns=list(dataset.COLUMNS)).to_batches()
    result = build(target, _gathered(batches, _REWRITTEN_AT_ONCE))
    return {"rows": result.rows}


def _gathered(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.Table]:
    """The batches as tables of at least so many rows."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(one) for one in waiting) >= rows:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def checkpoint(path: str, full: bool = False) -> dict[str, Any]:
    """Write a checkpoint; ``seconds`` begin after the imports, ``peak`` is the most memory in bytes that the process ever held."""
    start = time.perf_counter()
    with opened(path) as writer:
        result = writer.checkpoint(full=full)
    assert result is not None
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "bytes": result.bytes, "reused": result.reused_bytes, "peak": peak_memory()}


def checkpoints(path: Path, parts: Iterator[pa.Table]) -> dict[str, Any]:
    """A checkpoint after each of the parts, by one writer that is held open: their bytes, and how it ended."""
    written, spent = [], 0.0
    before = _committed(path)
    with opened(path) as writer:
        for rows in parts:
            with writer.transaction() as tx:
                tx.put("objects", rows)
            start = time.perf_counter()
            result = writer.checkpoint()
            spent += time.perf_counter() - start
            assert result is not None
            written.append(result.bytes)
    levels = len(Catalog(path).snapshot().state("objects").level_rows)
    return {"bytes": written, "committed": _committed(path) - before, "seconds": round(spent, 1), "levels": levels}


def _committed(path: Path) -> int:
    """Bytes of all transactions."""
    return sum(file.stat().st_size for file in path.glob("*/*/transactions/*/*.txn"))


def read(path: str, columns: list[str] | None, repeats: int = 1) -> dict[str, Any]:
    """Open the catalog and read all objects as one Arrow table, again and again; the first time is the cold one."""
    return _repeated(lambda: Catalog(path).snapshot().scan("objects", columns=columns).to_arrow(), repeats)


def _repeated(read_all: Callable[[], Any], repeats: int) -> dict[str, Any]:
    times = []
    rows = 0
    for _ in range(repeats):
        start = time.perf_counter()
        table = read_all()
        times.append(time.perf_counter() - start)
        rows = table.num_rows
        del table
    return {"rows": rows, "seconds": times}


def read_in_turns(path: str, versions: dict[str, str | None], columns: list[str], rounds: int) -> dict[str, Any]:
    """Read all objects at each of the versions, in turns; seconds and rows by name."""
    catalog = Catalog(path)
    found: dict[str, Any] = {name: {"rows": 0, "seconds": []} for name in versions}
    for turn in range(rounds + 1):
        for name, version in sorted(versions.items(), reverse=bool(turn % 2)):
            once = _repeated(partial(_read_version, catalog, version, columns), 1)
            found[name]["rows"] = once["rows"]
            found[name]["seconds"] += once["seconds"] if turn else []  # the first round warms up
    return found


def _read_version(catalog: Catalog, version: str | None, columns: list[str]) -> pa.Table:
    return catalog.snapshot(version=version).scan("objects", columns=columns).to_arrow()


def find(path: str, names: str) -> dict[str, Any]:
    """Open the catalog and read the objects whose names an Arrow file holds; ``seconds`` begin after the imports."""
    with pa.ipc.open_file(names) as file:
        wanted = file.read_all()["name"].to_pylist()
    start = time.perf_counter()
    bucket = {"owner": dataset.OWNER, "bucket_id": dataset.BUCKET}
    rows = Catalog(path).snapshot().scan("objects", columns=list(dataset.COLUMNS), where={**bucket, "name": wanted}).to_arrow()
    return {"rows": rows.num_rows, "seconds": time.perf_counter() - start}


def follow(path: str, version: str) -> dict[str, Any]:
    """Open the catalog and read the events since a version that was seen before; ``seconds`` begin after the imports."""
    start = time.perf_counter()
    rows = Catalog(path).changes(start=version).to_arrow()
    return {"rows": rows.num_rows, "seconds": time.perf_counter() - start}


def scan_batches(path: str) -> dict[str, Any]:
    """Read all objects batch by batch, keeping none; ``peak`` is the most memory in bytes that the process ever held."""
    start = time.perf_counter()
    rows = sum(batch.num_rows for batch in Catalog(path).snapshot().scan("objects").to_batches())
    return {"rows": rows, "seconds": time.perf_counter() - start, "peak": peak_memory()}


def harvest_bucket(source: str, catalog: str, options: dict[str, str]) -> dict[str, Any]:
    """Harvest a bucket into a catalog on the same server; ``seconds`` begin after the imports."""
    from bucketcatalog.harvest import harvest  # other measures count what this module imports

    opened = Catalog(catalog, storage_options=options)
    start = time.perf_counter()
    found = harvest(opened, source, source_options=options)
    return {"entries": found.entries, "seconds": time.perf_counter() - start, "peak": peak_memory()}


def import_only() -> dict[str, Any]:
    """The memory of a process that has only imported what ``scan_batches`` needs."""
    return {"peak": peak_memory()}


def peak_memory(process: int | str = "self") -> int:
    """Bytes of a process's largest resident set, by default this one's. ``ru_maxrss`` would not do: it is inherited from who started it."""
    status = Path(f"/proc/{process}/status")
    for line in status.read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise OSError(f"{status} does not tell VmHWM")
