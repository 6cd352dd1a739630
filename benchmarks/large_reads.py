"""Reads of five million objects to Arrow, all columns and one, against the fastest way of a peer: the first in a process, and later ones.

Every subject is read in processes of its own that use all cores; files are in the page cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    path = world.empty("large-reads")
    tables = {form: world.empty(f"large-reads-peer-{form}") for form in ("text", "bytes")}
    made = {"parts": parts, "rows": scale.large_part_rows}
    run_fresh("ours", "build_seeded", path=str(path), **made)
    for form, table in tables.items():
        run_fresh("large_reads", "build_peer", path=str(table), text=form == "text", **made)
    ways: dict[str, Any] = {}
    measures = [one for width in WIDTHS for one in _read(path, tables, rows, width, ways)]
    settings = {
        "ours": "Catalog(path).snapshot().scan('objects', columns=...).to_arrow()",
        "peer": "inventory sorted by name, all defaults; DeltaTable(path) and the fastest of its ways to a pyarrow Table",
        "peer, each way": ways,
        "one column": COLUMN,
        "later": f"the {LATER} reads after the first one of a process",
        "files": "in the page cache",
    }
    return Group(measures, settings)


def build_peer(path: str, parts: int, rows: int, text: bool) -> dict[str, Any]:
    """The peer's table of the rows of ``ours.build_seeded``: with uuids as text, as the catalog shows them, or as bytes."""
    every = pa.concat_tables(dataset.objects(rows, seed=ours.FIRST_SEED + part) for part in range(parts))
    peer.build(path, dataset.as_text(every) if text else every)
    return {}


def _read(path: Path, tables: Mapping[str, Path], rows: int, width: str, ways: dict[str, Any]) -> Iterator[Measure]:
    first: dict[str, list[float]] = {}
    later: dict[str, list[float]] = {}

    def once(name: str, arguments: dict[str, Any]) -> None:
        found = run_fresh(function="read", columns=WIDTHS[width], repeats=1 + LATER, **arguments)
        if found["rows"] != rows:
            raise ValueError(f"{found['rows']} rows were read of {rows}")
        first.setdefault(name, []).append(found["seconds"][0])
        later.setdefault(name, []).extend(found["seconds"][1:])

    subjects = {"ours": {"module": "ours", "path": str(path)}}
    for form, table in tables.items():
        subjects |= {f"{way}, {form}": {"module": "peer", "path": str(table), "way": way} for way in peer.READS}
    in_turns({name: partial(once, name, given) for name, given in subjects.items()}, RUNS)
    name = f"read of {rows:,} objects, {width}"
    for what, seconds in ((f"{name}, the first of a process", first), (f"{name}, later ones", later)):
        samples = {of: Sample(tuple(values)) for of, values in seconds.items()}
        ways[what] = {of: sample.document() for of, sample in samples.items() if of != "ours"}
        for form in tables:
            best = fastest({way: samples[f"{way}, {form}"] for way in peer.READS})
            same = form == "text"
            yield Measure(
                what if same else f"{what}, the peer with uuids as bytes",
                samples["ours"],
                samples[f"{best}, {form}"],
                f"deltalake {best}",
                Goal("ours / other", "at most", 1.0) if same else None,
            )
