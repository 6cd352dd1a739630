"""Reads of a million objects: all of them from a checkpoint, on one core, in the past, and one at a time, decoded before or not.

Every cold read happens in a process of its own, after its imports; files are in the page cache. The peer is asked in each of its ways and
compared by its fastest.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from bucketcatalog import Catalog
from bucketcatalog.format.headers import BlockPlace
from bucketcatalog.log.blocks import Blocks, read_block
from bucketcatalog.model.tables import Table
from bucketcatalog.store import Store, open_store
from bucketcatalog.store.faults import Counting

from . import dataset, inventories, ours, peer
from .fresh import run_fresh
from .measuring import fastest, in_turns, seconds
from .results import Goal, Group, Measure, Sample
from .world import World

COLUMNS = list(dataset.COLUMNS)
NOT_SLOWER = Goal("ours / other", "at most", 1.0)
STEADY = 5


def run(world: World) -> Group:
    """The group."""
    ways: dict[str, Any] = {}
    measures = [*_cold(world, ways), *_one_core(world), _size(world), _past(world), *_lookups(world)]
    settings = {
        "ours": "Catalog(path).snapshot().scan('objects', columns=the 14 of the data set).to_arrow()",
        "peer": "inventory sorted by name, all defaults; DeltaTable(path) and the fastest of its ways to a pyarrow Table",
        "peer, each way": ways,
        "files": "in the page cache",
    }
    return Group(measures, settings)


def _cold(world: World, ways: dict[str, Any]) -> list[Measure]:
    """Fresh processes in turns: ours, ours with every column, the peer's ways on text uuids and on binary ones."""
    text_table, binary_table = str(inventories.as_text(world)), str(inventories.as_bytes(world))
    subjects: dict[str, dict[str, Any]] = {
        "ours": {"module": "ours", "path": str(world.catalog), "columns": COLUMNS},
        "ours, all columns": {"module": "ours", "path": str(world.catalog), "columns": None},
    }
    for way in peer.READS:
        subjects[way] = {"module": "peer", "path": text_table, "way": way}
        subjects[f"{way}, binary uuids"] = {"module": "peer", "path": binary_table, "way": way}

    def cold(arguments: dict[str, Any]) -> float:
        found = run_fresh(function="read", **arguments)
        _check_rows(found["rows"], world.scale.objects)
        return float(found["seconds"][0])

    samples = in_turns({name: partial(cold, given) for name, given in subjects.items()}, world.scale.rounds)
    ways |= {name: sample.document() for name, sample in samples.items() if not name.startswith("ours")}
    text = fastest({way: samples[way] for way in peer.READS})
    raw = fastest({way: samples[f"{way}, binary uuids"] for way in peer.READS})
    name = f"cold read of {world.scale.objects:,} objects from a checkpoint to Arrow"
    return [
        Measure(name, samples["ours"], samples[text], f"deltalake {text}", NOT_SLOWER),
        Measure(f"{name}, all our columns", samples["ours, all columns"], samples[text], f"deltalake {text}"),
        Measure(f"{name}, the peer with uuids as bytes", samples["ours"], samples[f"{raw}, binary uuids"], f"deltalake {raw}"),
    ]


def _one_core(world: World) -> list[Measure]:
    cold, steady, others = [], [], []
    for _ in range(world.scale.rounds):
        found = run_fresh("ours", "read", cores=1, path=str(world.catalog), columns=COLUMNS, repeats=1 + STEADY)
        _check_rows(found["rows"], world.scale.objects)
        first, *later = (found["rows"] / seconds for seconds in found["seconds"])
        cold.append(first)
        steady += later
        theirs = run_fresh("peer", "read", cores=1, path=str(inventories.as_text(world)), way="DeltaTable.scan")
        others.append(theirs["rows"] / theirs["seconds"][0])
    goal = Goal("ours", "at least", 3_000_000)
    they = Sample(tuple(others), "rows/s")
    return [
        Measure("the same on one core", Sample(tuple(cold), "rows/s"), they, "deltalake DeltaTable.scan", goal),
        Measure("the same on one core, not the first time in its process", Sample(tuple(steady), "rows/s")),
    ]


def _size(world: World) -> Measure:
    size = world.checkpoint.bytes / world.checkpoint.rows
    parquet = sum(file.stat().st_size for file in inventories.as_text(world).rglob("*.parquet")) / world.scale.objects
    return Measure(
        "bytes an object in a checkpoint",
        Sample.one(size, "bytes"),
        Sample.one(parquet, "bytes"),
        "deltalake's Parquet",
        Goal("ours / other", "at most", 0.6),
    )


def _past(world: World) -> Measure:
    """Now, and the oldest of several checkpointed cuts, each an upsert after the one before; seconds a million rows."""
    path = world.copy(world.catalog)
    oldest = world.checkpoint.version
    with Catalog(path).writer(ours.WRITER) as writer:
        for number in range(world.scale.past_checkpoints):
            with writer.transaction(operation="upsert") as tx:
                tx.put("objects", dataset.upserts(world.rows, world.scale.upserts, seed=2_000 + number))
            writer.checkpoint()
    versions = {"now": None, "oldest": oldest}
    found = run_fresh("ours", "read_in_turns", path=str(path), versions=versions, columns=COLUMNS, rounds=2 * world.scale.rounds)
    samples = {name: Sample(tuple(s * 1e6 / one["rows"] for s in one["seconds"])) for name, one in found.items()}
    return Measure(
        f"read as of the oldest of {world.scale.past_checkpoints + 1} checkpointed cuts, a million rows",
        samples["oldest"],
        samples["now"],
        "read of now",
        Goal("ours / other", "at most", 1.1),
        {"rows": {name: one["rows"] for name, one in found.items()}},
    )


def _lookups(world: World) -> list[Measure]:
    """Look-ups of random objects, each with nothing decoded, in turn with reading and decoding the block that holds it.

    Then the same object again, once another one of its block, the first, has been looked up with nothing decoded.
    """
    store = Counting(open_store(world.catalog))
    snapshot = Catalog(store).snapshot()
    state = snapshot.state("objects")
    places = sorted(
        (place for each in state.levels() for run in each.lowest for place in run.places),
        key=lambda place: place.header.first_key,
    )
    names = random.Random(5).sample(world.rows["name"].to_pylist(), world.scale.lookups)

    def get(name: str) -> None:
        row = snapshot.get("objects", owner=dataset.OWNER, bucket_id=dataset.BUCKET, name=name)
        assert row is not None
        assert row["name"] == name

    get(names[0])
    bucket = dataset.OWNER + dataset.BUCKET
    found: dict[str, list[float]] = {"get": [], "block": [], "decoded": []}
    requests = dict.fromkeys(("get", "decoded"), 0)
    for name in names:
        place = _place_of(places, bucket + name.encode())
        state.blocks = Blocks(store)
        store.reset()
        turns = {"get": partial(get, name), "block": partial(_decode, store, place, state.table)}
        for what, sample in in_turns(turns, 1).items():
            found[what] += sample.values
        requests["get"] += sum(store.requests.values()) - 1
        state.blocks = Blocks(store)
        get(place.header.first_key.removeprefix(bucket).decode())
        store.reset()
        found["decoded"].append(seconds(partial(get, name)))
        requests["decoded"] += sum(store.requests.values())
    count = f"point look-up in {world.scale.objects:,} objects"
    cold, warm = f"{count}, index warm", f"{count}, decoded"
    slower, most = Goal("ours / other", "at most", 1.5), Goal("ours", "at most", 0.001)
    asked = {of: Sample.one(number / len(names), "requests") for of, number in requests.items()}
    return [
        Measure(cold, Sample(tuple(found["get"])), Sample(tuple(found["block"])), "reading and decoding its block", slower),
        Measure(f"{cold}, requests", asked["get"], goal=Goal("ours", "at most", 1)),
        Measure(warm, Sample(tuple(found["decoded"])), goal=most),
        Measure(f"{warm}, requests", asked["decoded"], goal=Goal("ours", "at most", 0)),
    ]


def _decode(store: Store, place: BlockPlace, table: Table) -> None:
    assert len(read_block(store, place, table)) == place.header.rows


def _place_of(places: list[BlockPlace], key: bytes) -> BlockPlace:
    return next(place for place in places if place.header.first_key <= key <= place.header.last_key)


def _check_rows(found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(f"{found} rows were read of {expected}")
