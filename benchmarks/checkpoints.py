"""Checkpoints whose cost follows change: the same changes on ten million and on a million objects, and against the peer's checkpoint.

Changes are half overwrites, half new objects, spread evenly over the keys; they are committed as one transaction by a process of its own.
A checkpoint is written by a fresh process: its time begins after the imports, its memory is all that the process ever held.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from bucketcatalog import Catalog
from bucketcatalog.store import open_store
from bucketcatalog.store.faults import Counting

from . import dataset, ours, peer
from .fresh import run_fresh
from .measuring import in_turns
from .results import Goal, Group, Measure, Sample
from .world import World, stored_bytes

LIMIT_MB = 512
FEW_CHECKPOINTS, FEW_ROWS = 8, 20


def run(world: World) -> Group:
    """The group."""
    changes = dataset.upserts(dataset.objects(world.scale.large_part_rows, seed=ours.FIRST_SEED), world.scale.upserts)
    measures = [*_on_more_and_on_fewer(world, changes), _amplification(world), _requests(world)]
    settings = {
        "ours": "Writer.checkpoint() of the writer of everything, all defaults",
        "catalogs": f"{world.scale.large_parts} transactions and one of as many objects, a checkpoint each",
        "peer": "DeltaTable.create_checkpoint of a table of as many files as there are objects, after a commit of as many more",
    }
    return Group(measures, settings)


def _on_more_and_on_fewer(world: World, changes: pa.Table) -> list[Measure]:
    scale = world.scale
    many, few = scale.large_parts * scale.large_part_rows, scale.large_part_rows
    found: dict[str, list[dict[str, Any]]] = {"many": [], "few": []}

    def once(name: str, path: Path) -> float:
        copied = world.copy(path)
        _commit(copied, changes)
        found[name].append(run_fresh("ours", "checkpoint", path=str(copied)))
        return float(found[name][-1]["seconds"])

    subjects = {"many": partial(once, "many", world.large), "few": partial(once, "few", _one_part(world))}
    samples = in_turns(subjects, min(scale.rounds, 5))
    written = {name: Sample(tuple(float(one["bytes"]) for one in runs), "bytes") for name, runs in found.items()}
    theirs = Sample.one(_peer_checkpoint(world), "bytes")
    peak = Sample(tuple(one["peak"] / 1e6 for one in found["many"]), "MB")
    idle = Sample.one(run_fresh("ours", "import_only")["peak"] / 1e6, "MB")
    name, other = f"checkpoint of {len(changes):,} changes on {many:,} objects", f"on {few:,}"
    alike = Goal("ours / other", "at most", 1.5)
    return [
        Measure(name, samples["many"], samples["few"], other, alike),
        Measure(f"{name}, bytes written", written["many"], written["few"], other, alike),
        Measure(
            f"checkpoint of {len(changes):,} changes on {few:,} objects, bytes written",
            written["few"],
            theirs,
            "deltalake's checkpoint of as many files",
            Goal("other / ours", "at least", 20),
        ),
        Measure(f"{name}, peak memory", peak, idle, "the imports alone", Goal("ours", "at most", LIMIT_MB)),
        _full_merge(world, changes, many),
    ]


def _full_merge(world: World, changes: pa.Table, many: int) -> Measure:
    """What a merge of everything takes in one process."""
    copied = world.copy(world.large)
    _commit(copied, changes)
    found = run_fresh("ours", "checkpoint", path=str(copied), full=True)
    details = {"seconds": found["seconds"], "bytes": found["bytes"]}
    name = f"full merge of {many:,} objects in one process, peak memory"
    return Measure(name, Sample.one(found["peak"] / 1e6, "MB"), details=details, compares="ours")


def _one_part(world: World) -> Path:
    rows = world.scale.large_part_rows
    return world.once("one-part", lambda path: run_fresh("ours", "build_seeded", path=str(path), parts=1, rows=rows))


def _commit(path: Path, changes: pa.Table) -> None:
    with Catalog(path).writer(ours.WRITER) as writer, writer.transaction(operation="upsert") as tx:
        tx.put("objects", changes)


def _peer_checkpoint(world: World) -> float:
    """Bytes of the checkpoint that the peer writes after as many changes."""
    path = world.empty("delta-files")
    peer.make_files(path, world.scale.large_part_rows)
    peer.add_files(path, world.scale.large_part_rows, world.scale.upserts)
    before = stored_bytes(path)
    peer.checkpoint(path)
    return float(stored_bytes(path) - before)


def _amplification(world: World) -> Measure:
    """All that many small checkpoints write, against the transactions that they cover."""
    scale = world.scale
    path = world.copy(_one_part(world))
    existing = dataset.objects(scale.large_part_rows, seed=ours.FIRST_SEED)
    parts = (dataset.upserts(existing, scale.changes, seed=10_000 + number) for number in range(scale.checkpoints))
    found = ours.checkpoints(path, parts)
    written, changed = Sample.one(float(sum(found["bytes"])), "bytes"), Sample.one(float(found["committed"]), "bytes")
    name = f"bytes written by {scale.checkpoints:,} checkpoints of {scale.changes:,} changes on {scale.large_part_rows:,} objects"
    details = {"most at once": max(found["bytes"]), "levels at the end": found["levels"], "seconds": found["seconds"]}
    goal = Goal("ours / other", "at most", 12)
    return Measure(name, written, changed, "their transactions", goal, details)


def _requests(world: World) -> Measure:
    """What a checkpoint puts that changes a few rows of every table, each with live rows and those of its tombstones that are kept."""
    store = Counting(open_store(world.empty("tables")))
    puts = []
    with Catalog(store).writer(ours.WRITER) as writer:
        for number in range(FEW_CHECKPOINTS):
            names = [f"{number}-{at}" for at in range(FEW_ROWS)]
            key = {"owner": dataset.OWNER, "bucket_id": dataset.BUCKET}
            rows = {
                "buckets": [{"owner": dataset.OWNER, "name": name} for name in names],
                "objects": [{**key, "name": name} for name in names],
                "object_versions": [{**key, "name": name, "version_id": "1"} for name in names],
                "harvest_errors": [{"source": "s", "path": name} for name in names],
            }
            for ended in (False, True):
                with writer.transaction() as tx:
                    for table, given in rows.items():
                        (tx.delete if ended else tx.put)(table, given[: len(given) // 2] if ended else given)
            store.reset()
            writer.checkpoint()
            puts.append(float(store.requests["put"]))
    name = f"PUTs of a checkpoint that changes {len(rows)} tables"
    return Measure(name, Sample(tuple(puts), "requests"), goal=Goal("ours", "at most", 4))
