"""Reads of five million objects to Arrow, all columns and one, against the fastest way of a peer: the first in a process, and later ones.

Every subject is read in processes of its own that use all cores; files are in the page cache.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from . import dataset, ours, peer
from .fresh import run_fresh
from .measuring import fastest, in_turns
from .results import Goal, Group, Measure, Sample
from .world import World

COLUMN = "content_length"
RUNS, LATER = 3, 3
WIDTHS: dict[str, list[str]] = {"all columns": list(dataset.COLUMNS), "one column": [COLUMN]}


def run(world: World) -> Group:
    """The group."""
    scale = world.scale
    parts = max(scale.large_parts // 2, 1)
    rows = parts * scale.large_part_rows
    path, table = world.empty("large-reads"), world.empty("large-reads-peer")
    made = {"parts": parts, "rows": scale.large_part_rows}
    run_fresh("ours", "build_seeded", path=str(path), **made)
    run_fresh("large_reads", "build_peer", path=str(table), **made)
    ways: dict[str, Any] = {}
    measures = [one for width in WIDTHS for one in _read(path, table, rows, width, ways)]
    settings = {
        "ours": "Catalog(path).snapshot().scan('objects', columns=...).to_arrow()",
        "peer": "inventory sorted by name, all defaults; DeltaTable(path) and the fastest of its ways to a pyarrow Table",
        "peer, each way": ways,
        "one column": COLUMN,
        "later": f"the {LATER} reads after the first one of a process",
        "files": "in the page cache",
    }
    return Group(measures, settings)


def build_peer(path: str, parts: int, rows: int) -> dict[str, Any]:
    """The peer's table of the rows of ``ours.build_seeded``."""
    every = pa.concat_tables(dataset.objects(rows, seed=ours.FIRST_SEED + part) for part in range(parts))
    peer.build(path, every)
    return {}


def _read(path: Path, table: Path, rows: int, width: str, ways: dict[str, Any]) -> list[Measure]:
    first: dict[str, list[float]] = {}
    later: dict[str, list[float]] = {}

    def once(name: str, arguments: dict[str, Any]) -> None:
        found = run_fresh(function="read", columns=WIDTHS[width], repeats=1 + LATER, **arguments)
        if found["rows"] != rows:
            raise ValueError(f"{found['rows']} rows were read of {rows}")
        first.setdefault(name, []).append(found["seconds"][0])
        later.setdefault(name, []).extend(found["seconds"][1:])

    subjects = {"ours": {"module": "ours", "path": str(path)}}
    subjects |= {way: {"module": "peer", "path": str(table), "way": way} for way in peer.READS}
    in_turns({name: partial(once, name, given) for name, given in subjects.items()}, RUNS)
    goal, name = Goal("ours / other", "at most", 1.0), f"read of {rows:,} objects, {width}"
    measures = []
    for what, seconds in ((f"{name}, the first of a process", first), (f"{name}, later ones", later)):
        samples = {of: Sample(tuple(values)) for of, values in seconds.items()}
        ways[what] = {way: samples[way].document() for way in peer.READS}
        best = fastest({way: samples[way] for way in peer.READS})
        measures.append(Measure(what, samples["ours"], samples[best], f"deltalake {best}", goal))
    return measures
