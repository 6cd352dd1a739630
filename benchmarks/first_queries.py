"""Spark: what a new session waits for before its first answer, beyond Spark's own start and what Parquet files would cost.

Each runs in a process and a session of its own; its time begins when the session is there, and has the imports of our packages in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from .fresh import run_fresh
from .measuring import Timed, in_turns
from .native_states import MERGED, TENTH, State, catalog, parquet
from .results import Goal, Group, Measure, Sample
from .spark_reads import GROUP, SUMMED
from .world import World

RUNS = 5
STATES = (MERGED, TENTH)


def run(world: World) -> Group:
    """The group."""
    parts = world.scale.native_parts
    subjects: dict[str, Timed] = {}
    for state in STATES:
        path, plain = catalog(world, state, parts), parquet(world, state, parts) / "objects"
        asked = {"group": GROUP, "summed": SUMMED}
        subjects |= {
            f"attach, {state.name}": partial(_seconds, world, "first_attach", path),
            f"sum, {state.name}": partial(_seconds, world, "first_sum", path, native=False, **asked),
            f"native sum, {state.name}": partial(_seconds, world, "first_sum", plain, native=True, **asked),
        }
    samples = in_turns(subjects, min(RUNS, world.scale.rounds))
    rows = parts * world.scale.native_part_rows
    settings = {
        "attach": "import of pyspark_bucketcatalog and bcs.attach(spark, path), once the session is there",
        "first query": f"the same import, bcs.read(spark, path) and a sum of {SUMMED} by {GROUP}, once the session is there",
        "reference": "spark.read.parquet(path) and the same sum; ours is the difference of the two in each round",
        "runs": f"median of {RUNS}, in turns, each a fresh process",
    }
    return Group([measure for state in STATES for measure in measures_of(state, samples, rows)], settings)


def measures_of(state: State, samples: Mapping[str, Sample], rows: int) -> list[Measure]:
    """The measures of a state, from the samples by subject."""
    ours, native = samples[f"sum, {state.name}"], samples[f"native sum, {state.name}"]
    beyond = Sample(tuple(mine - other for mine, other in zip(ours.values, native.values, strict=True)))
    is_goal = state is MERGED
    return [
        Measure(
            f"attach in a new Spark session, {rows:,} objects, {state.shown}",
            samples[f"attach, {state.name}"],
            goal=Goal("ours", "at most", 2.0) if is_goal else None,
            compares="ours",
        ),
        Measure(
            f"first query of a new Spark session, beyond native Parquet's, {rows:,} objects, {state.shown}",
            beyond,
            native,
            "native Parquet's",
            Goal("ours", "at most", 1.0) if is_goal else None,
            {"ours, whole": ours.document()},
            compares="ours",
        ),
    ]


def _seconds(world: World, function: str, path: Path, **arguments: Any) -> float:
    found = run_fresh("sessions", function, directory=str(world.directory), path=str(path), **arguments)
    return float(found["seconds"])
