"""What levels cost who reads: after overwrites, in the past, key by key; and the same work as a peer's maintenance.

Overwrites replace every tenth object of all that there are, each time the same ones, with a checkpoint after each round. The peer's
maintenance is what makes its reads fast again and its old files go: optimize and vacuum after its MERGEs.
"""

from __future__ import annotations

import random
import time
from functools import partial
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa

from bucketcatalog import Catalog
from bucketcatalog.log.blocks import Blocks
from bucketcatalog.store import open_store
from bucketcatalog.store.faults import Counting

from . import dataset, inventories, ours, peer
from .fresh import run_fresh
from .measuring import in_turns
from .results import Goal, Group, Measure, Sample
from .world import World, stored_bytes

COLUMNS = list(dataset.COLUMNS)
EVERY = 10
UPSERTS = 20
KEYS = 20


def run(world: World) -> Group:
    """The group."""
    measures = [*_overwritten(world), *_requests(world), *_maintenance(world)]
    settings = {
        "overwritten": f"every tenth object, by one transaction and one checkpoint a round, {world.scale.overwrites} rounds",
        "look-ups": f"{KEYS} random keys of a catalog whose last checkpoint added a level; cold: a snapshot opened just before",
        "ours, maintenance": f"{UPSERTS} transactions, then one checkpoint",
        "peer, maintenance": f"{UPSERTS} MERGEs, then optimize.compact and vacuum with no retention",
    }
    return Group(measures, settings)


def _overwritten(world: World) -> list[Measure]:
    """Reads of everything by fresh processes: after overwrites, the same live rows freshly written, and as of the oldest checkpoint."""
    scale = world.scale
    parts = max(scale.large_parts // 2, 1)
    made = {"parts": parts, "rows": scale.large_part_rows}
    name = f"read of {parts * scale.large_part_rows:,} objects"
    measures = []
    for rounds in scale.overwrites:
        path = world.empty("overwritten")
        run_fresh("ours", "build_seeded", path=str(path), **made)
        oldest = Catalog(path).snapshot().version
        found = run_fresh("ours", "overwrite_seeded", path=str(path), every=EVERY, rounds=rounds, **made)
        fresh = world.empty("rewritten")
        run_fresh("ours", "rewrite", path=str(path), target=str(fresh))
        subjects = {"overwritten": path, "rewritten": fresh}
        samples = in_turns({of: partial(_cold, of_path) for of, of_path in subjects.items()}, min(scale.rounds, 5))
        text = f"{name} after every tenth was overwritten {'once' if rounds == 1 else f'{rounds} times'}"
        goal = Goal("ours / other", "at most", 1.2)
        now = Measure(text, samples["overwritten"], samples["rewritten"], "the same rows freshly written", goal, found)
        measures.append(now)
    versions = {"now": None, "oldest": oldest}
    turns = run_fresh("ours", "read_in_turns", path=str(path), versions=versions, columns=COLUMNS, rounds=min(scale.rounds, 5))
    past, now_again = (Sample(tuple(turns[of]["seconds"])) for of in ("oldest", "now"))
    measures.append(
        Measure(f"{name} as of the oldest retained cut", past, now_again, "read of now", Goal("ours / other", "at most", 1.1))
    )
    return measures


def _cold(path: Path) -> float:
    return float(run_fresh("ours", "read", path=str(path), columns=COLUMNS)["seconds"][0])


def _requests(world: World) -> list[Measure]:
    """Requests to the store for look-ups of keys that are there and of some that are not, counted one by one."""
    path = world.copy(world.large)
    existing = dataset.objects(world.scale.large_part_rows, seed=ours.FIRST_SEED)
    with Catalog(path).writer(ours.WRITER) as writer:
        with writer.transaction(operation="upsert") as tx:
            tx.put("objects", dataset.upserts(existing, world.scale.upserts, seed=77))
        writer.checkpoint()
    store = Counting(open_store(path))
    catalog = Catalog(store)
    levels = len(catalog.snapshot().state("objects").level_rows)
    names = random.Random(7).sample(existing["name"].to_pylist(), min(KEYS, len(existing)))
    total = world.scale.large_parts * world.scale.large_part_rows
    measures = []
    for what, suffix, warm_goal in (("present", "", 1), ("absent", "x", 0)):
        keys = [{"owner": dataset.OWNER, "bucket_id": dataset.BUCKET, "name": name + suffix} for name in names]
        cold = [_counted(store, partial(catalog.snapshot().get, "objects", **key)) for key in keys]
        known = catalog.snapshot()
        for key in keys:
            known.get("objects", **key)
        warm = []
        for key in keys:
            known.state("objects").blocks = Blocks(store)  # the indexes alone are warm
            warm.append(_counted(store, partial(known.get, "objects", **key)))
        text = f"requests for a look-up of a key that is {what}, {total:,} objects in {levels} levels"
        measures += [
            Measure(f"{text}, cold", Sample(tuple(cold), "requests"), goal=Goal("ours", "at most", 4)),
            Measure(f"{text}, warm", Sample(tuple(warm), "requests"), goal=Goal("ours", "at most", warm_goal)),
        ]
    return measures


def _counted(store: Counting, call: Any) -> float:
    store.reset()
    call()
    return float(sum(store.requests.values()))


def _maintenance(world: World) -> list[Measure]:
    """Upserts and whatever makes reading fast again, each side once: its seconds and the bytes that it wrote."""
    changes = [dataset.upserts(world.rows, world.scale.upserts, seed=3_000 + number) for number in range(UPSERTS)]
    mine, my_bytes = _ours(world, changes)
    theirs, their_bytes = _peers(world, [dataset.as_text(rows) for rows in changes])
    name = f"{UPSERTS} upserts of {world.scale.upserts:,} into {world.scale.objects:,}, and maintenance"
    other = "deltalake: MERGE, optimize, vacuum"
    return [
        Measure(name, Sample.one(mine, "s"), Sample.one(theirs, "s"), other, Goal("other / ours", "at least", 10)),
        Measure(
            f"{name}, bytes written",
            Sample.one(my_bytes, "bytes"),
            Sample.one(their_bytes, "bytes"),
            other,
            Goal("other / ours", "at least", 20),
        ),
    ]


def _ours(world: World, changes: list[pa.Table]) -> tuple[float, float]:
    path = world.copy(world.catalog)
    before, start = stored_bytes(path), time.perf_counter()
    with Catalog(path).writer(ours.WRITER) as writer:
        for rows in changes:
            with writer.transaction(operation="upsert") as tx:
                tx.put("objects", rows)
        writer.checkpoint()
    return time.perf_counter() - start, float(stored_bytes(path) - before)


def _peers(world: World, changes: list[pa.Table]) -> tuple[float, float]:
    """The peer's files are counted before its vacuum removes them."""
    path = world.copy(inventories.as_text(world))
    table = deltalake.DeltaTable(path)
    before, start = stored_bytes(path), time.perf_counter()
    for rows in changes:
        peer.merge(table, rows)
    table.optimize.compact()
    spent = time.perf_counter() - start
    written = stored_bytes(path) - before
    start = time.perf_counter()
    table.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    return spent + time.perf_counter() - start, float(written)
