"""Changes to an inventory of a million objects: upserts until a fresh process has returned them, and a delete of one.

Half of the upserted names exist and half are new; they are spread evenly over the whole key space, so no block and no file of either
side remains untouched. The process that writes is running and has the catalog or table open; the one that reads is started anew, and
its start and imports count.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from bucketcatalog import Catalog

from . import dataset, inventories, ours, peer
from .fresh import run_fresh
from .measuring import fastest, seconds
from .results import Goal, Group, Measure, Sample
from .world import World, stored_bytes

FASTER = Goal("other / ours", "at least", 10)


@dataclass(frozen=True)
class Upsert:
    """One upsert and what came after: the seconds until it was committed, those until a fresh process had returned
    everything, those without that process's start and imports, and the bytes that were written."""

    committed: float
    returned: float
    without_start: float
    written: int


def run(world: World) -> Group:
    """The group."""
    mine, theirs, followed = _upserts(world)
    way = fastest({way: _sample(upserts, "returned") for way, upserts in theirs.items()})
    count, total = world.scale.upserts, world.scale.objects
    name = f"upsert of {count:,} objects into {total:,}"
    they = theirs[way]
    measures = [
        _compared(f"{name}, until a fresh process has returned them", mine, they, "returned", "deltalake MERGE", FASTER),
        _compared(f"{name}, bytes written", mine, they, "written", "deltalake MERGE", Goal("other / ours", "at least", 50)),
        _compared(f"{name}, without the fresh process's start", mine, they, "without_start", "deltalake MERGE"),
        _compared(f"{name}, until committed", mine, they, "committed", "deltalake MERGE"),
        _compared(f"{name}, read as events since", followed, they, "returned", "deltalake MERGE"),
        *_deletes(world),
    ]
    settings = {
        "ours": "one transaction of Arrow data; the fresh process scans where owner, bucket_id and name (a list) match",
        "peer": "MERGE by the whole key, all defaults; inventory sorted by name, uuids as text, as our reader returns them",
        "peer's fresh process": way,
        "peer, each way": {way: _sample(upserts, "returned").document() for way, upserts in theirs.items()},
        "durability": "ours is synced, the peer's is not",
    }
    return Group(measures, settings)


def _sample(upserts: list[Upsert], what: str) -> Sample:
    return Sample(tuple(float(getattr(one, what)) for one in upserts), "bytes" if what == "written" else "s")


def _compared(name: str, mine: list[Upsert], theirs: list[Upsert], what: str, other: str, goal: Goal | None = None) -> Measure:
    return Measure(name, _sample(mine, what), _sample(theirs, what), other, goal, compares="other / ours")


def _upserts(world: World) -> tuple[list[Upsert], dict[str, list[Upsert]], list[Upsert]]:
    """Ours, the peer's by the way that its fresh process reads, and ours where that process reads events; in turns."""
    mine: list[Upsert] = []
    followed: list[Upsert] = []
    theirs: dict[str, list[Upsert]] = {way: [] for way in peer.FINDS}
    for number in range(world.scale.rounds):
        rows = dataset.upserts(world.rows, world.scale.upserts, seed=1_000 + number)
        names = _names_file(world.empty("names"), rows)
        mine.append(_our_upsert(world, rows, names, follow=False))
        for way, found in theirs.items():
            found.append(_peer_upsert(world, dataset.as_text(rows), names, way))
        followed.append(_our_upsert(world, rows, names, follow=True))
    return mine, theirs, followed


def _names_file(path: Path, rows: pa.Table) -> Path:
    with pa.ipc.new_file(path, rows.select(["name"]).schema) as file:
        file.write_table(rows.select(["name"]))
    return path


def _our_upsert(world: World, rows: pa.Table, names: Path, *, follow: bool) -> Upsert:
    path = world.copy(world.catalog)
    catalog = Catalog(path)
    version, before = catalog.snapshot().version, stored_bytes(path)
    with catalog.writer(ours.WRITER) as writer:
        start = time.perf_counter()
        with writer.transaction(operation="upsert") as tx:
            tx.put("objects", rows)
        committed = time.perf_counter() - start
        found = (
            run_fresh("ours", "follow", path=str(path), version=version)
            if follow
            else run_fresh("ours", "find", path=str(path), names=str(names))
        )
        returned = time.perf_counter() - start
    return _upsert(found, rows, committed, returned, stored_bytes(path) - before)


def _peer_upsert(world: World, rows: pa.Table, names: Path, way: str) -> Upsert:
    path = world.copy(inventories.as_text(world))
    table = deltalake.DeltaTable(path)
    before = stored_bytes(path)
    start = time.perf_counter()
    peer.merge(table, rows)
    committed = time.perf_counter() - start
    found = run_fresh("peer", "find", path=str(path), names=str(names), way=way)
    returned = time.perf_counter() - start
    return _upsert(found, rows, committed, returned, stored_bytes(path) - before)


def _upsert(found: dict[str, Any], rows: pa.Table, committed: float, returned: float, written: int) -> Upsert:
    if found["rows"] != len(rows):
        raise ValueError(f"the fresh process returned {found['rows']} of {len(rows)} objects")
    return Upsert(committed, returned, committed + found["seconds"], written)


def _deletes(world: World) -> list[Measure]:
    """Ours against the peer with its default file size, and with files so small that it writes as little as it can."""
    scale = world.scale
    names = world.rows["name"].to_pylist()[: scale.deletes]
    mine = Sample(tuple(_our_deletes(world, names)))
    name = f"delete of one object among {scale.objects:,}"
    default = Sample(tuple(_peer_deletes(world.copy(inventories.as_text(world)), names[: scale.rounds])))
    small = Sample(tuple(_peer_deletes(world.copy(inventories.in_small_files(world)), names[: scale.rounds])))
    small_name = f"deltalake delete, files of {inventories.SMALL_FILES >> 20} MiB"
    return [
        Measure(name, mine, default, "deltalake delete", Goal("other / ours", "at least", 50)),
        Measure(f"{name}, the peer tuned for it", mine, small, small_name, compares="other / ours"),
    ]


def _our_deletes(world: World, names: list[str]) -> list[float]:
    with Catalog(world.copy(world.catalog)).writer(ours.WRITER) as writer:

        def delete(name: str) -> None:
            with writer.transaction(operation="delete") as tx:
                tx.delete("objects", {"owner": dataset.OWNER, "bucket_id": dataset.BUCKET, "name": name})

        return [seconds(partial(delete, name)) for name in names]


def _peer_deletes(path: Path, names: list[str]) -> list[float]:
    table = deltalake.DeltaTable(path)
    return [seconds(partial(peer.delete, table, name)) for name in names]
