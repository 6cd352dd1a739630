"""Memory: the peak of a fresh process that scans millions of objects batch by batch."""

from __future__ import annotations

from .fresh import run_fresh
from .results import Goal, Group, Measure, Sample
from .world import World

LIMIT_MB = 600
RUNS = 3


def run(world: World) -> Group:
    """The group."""
    scale = world.scale
    path = world.empty("memory-catalog")
    run_fresh("ours", "build_seeded", path=str(path), parts=scale.memory_parts, rows=scale.memory_part_rows)
    rows = scale.memory_parts * scale.memory_part_rows
    found = [run_fresh("ours", "scan_batches", path=str(path)) for _ in range(min(RUNS, scale.rounds))]
    if any(one["rows"] != rows for one in found):
        raise ValueError(f"{[one['rows'] for one in found]} rows were scanned of {rows}")
    idle = run_fresh("ours", "import_only")["peak"]
    peak = Sample(tuple(one["peak"] / 1e6 for one in found), "MB")
    measures = [
        Measure(
            f"peak memory of scanning {rows:,} objects as batches",
            peak,
            Sample.one(idle / 1e6, "MB"),
            "the imports alone",
            Goal("ours", "at most", LIMIT_MB),
            {"seconds": Sample(tuple(one["seconds"] for one in found)).document()},
        )
    ]
    settings = {
        "ours": "all columns; VmHWM of a fresh process at its end",
        "catalog": f"{scale.memory_parts} transactions, one checkpoint",
    }
    return Group(measures, settings)
