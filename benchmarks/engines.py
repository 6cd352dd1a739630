"""DuckDB and Polars: a sum by group of objects, merged and after overwrites, against the same engine on plain Parquet of the same rows.

Each engine runs in a process of its own and holds what it reads, ours and plain, as a relation or lazy frame. The plain files are one of
pyarrow and one of the engine's own writer, both with zstd and otherwise all defaults, of the catalog's rows in their order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow.parquet as pq

from bucketcatalog import Catalog

from . import dataset
from .fresh import run_fresh
from .measuring import fastest, in_turns
from .native_states import MERGED, TENTH, State, catalog, read_natively
from .results import Goal, Group, Measure, Sample
from .world import World

WARM_UP, RUNS = 2, 9
GROUP, SUMMED = "content_type", "content_length"
STATES = (MERGED, TENTH)
WRITTEN_BY = {"pyarrow": "Parquet of pyarrow", "itself": "Parquet of its own"}


@dataclass(frozen=True)
class Engine:
    """What an engine does: hold a read or a Parquet file, sum up what it holds, and write a Parquet file's rows to another one."""

    hold: Callable[[Any], Any]
    hold_file: Callable[[str], Any]
    sums: Callable[[Any], dict[str, int]]
    rewrite: Callable[[str, str], object]


def run(world: World) -> Group:
    """The group."""
    parts = max(world.scale.native_parts // 2, 1)
    rows = parts * world.scale.native_part_rows
    measures: list[Measure] = []
    for state in STATES:
        path = catalog(world, state, parts)
        plain = world.empty("engines-plain")
        run_fresh("engines", "write_plain", path=str(path), target=str(plain))
        for engine in ENGINES:
            found = run_fresh("engines", "sum_in_turns", engine=engine, path=str(path), plain=str(plain))
            measures += measures_of(engine, state, found, rows, read_natively(path))
    settings = {
        "query": f"sum of {SUMMED} by {GROUP}",
        "ours": "scan('objects').to_duckdb(connection) and scan('objects').to_polars(), made once",
        "reference": "the engine on one Parquet file, of pyarrow and of its own writer, zstd and else all defaults: the faster one",
        "planning": "Catalog(path) to the relation or lazy frame, the first of a process",
        "runs": f"{WARM_UP} to warm up, median of {RUNS}, in turns, in a process for each engine",
    }
    return Group(measures, settings)


def measures_of(engine: str, state: State, found: Mapping[str, Any], rows: int, details: Mapping[str, Any]) -> Iterator[Measure]:
    """The measures of an engine and a state, from what ``sum_in_turns`` found."""
    samples = {name: Sample(tuple(seconds)) for name, seconds in found["seconds"].items()}
    best = fastest({name: samples[name] for name in WRITTEN_BY})
    each = {f"{name}, seconds": samples[name].document() for name in WRITTEN_BY}
    goal = Goal("ours / other", "at most", 1.1) if state is MERGED else None
    name = f"{engine} sum of {SUMMED} by {GROUP}, {rows:,} objects, {state.shown}"
    yield Measure(name, samples["ours"], samples[best], WRITTEN_BY[best], goal, each)
    name = f"{engine}, what it reads {rows:,} objects by, {state.shown}"
    yield Measure(name, Sample.one(found["planning"], "s"), details=dict(details), compares="ours")


def write_plain(path: str, target: str) -> dict[str, Any]:
    """The objects of a catalog as Parquet, a file of each writer."""
    files = {name: f"{target}/{name}.parquet" for name in ("pyarrow", *ENGINES)}
    Path(target).mkdir()
    scan = Catalog(path).snapshot().scan("objects", columns=list(dataset.COLUMNS))
    with pq.ParquetWriter(files["pyarrow"], scan.schema, compression="zstd") as writer:
        for batch in scan.to_batches():
            writer.write_batch(batch)
    for name, engine in ENGINES.items():
        engine.rewrite(files["pyarrow"], files[name])
    return {}


def sum_in_turns(engine: str, path: str, plain: str) -> dict[str, Any]:
    """Seconds of the same sums of the catalog's objects and of the plain files, in turns, and of what comes before ours."""
    of = ENGINES[engine]
    start = time.perf_counter()
    held = {"ours": of.hold(Catalog(path).snapshot().scan("objects"))}
    planning = time.perf_counter() - start
    held |= {"pyarrow": of.hold_file(f"{plain}/pyarrow.parquet"), "itself": of.hold_file(f"{plain}/{engine}.parquet")}
    answers = {name: of.sums(one) for name, one in held.items()}
    if not answers["ours"] or any(answer != answers["ours"] for answer in answers.values()):
        raise ValueError(f"{engine} gives other sums of the same rows: {answers}")
    subjects = {name: partial(_sum_up, of, one) for name, one in held.items()}
    in_turns(subjects, WARM_UP)
    return {"seconds": {name: sample.values for name, sample in in_turns(subjects, RUNS).items()}, "planning": planning}


def _sum_up(engine: Engine, held: Any) -> None:
    engine.sums(held)


def _with_duckdb(connection: duckdb.DuckDBPyConnection) -> Engine:
    return Engine(
        lambda read: read.to_duckdb(connection),
        connection.read_parquet,
        lambda held: dict(held.aggregate(f"{GROUP}, sum({SUMMED})", GROUP).fetchall()),
        lambda path, target: connection.read_parquet(path).write_parquet(target, compression="zstd"),
    )


def _with_polars() -> Engine:
    return Engine(
        lambda read: read.to_polars(),
        pl.scan_parquet,
        lambda held: dict(held.group_by(GROUP).agg(pl.col(SUMMED).sum()).collect().rows()),
        lambda path, target: pl.scan_parquet(path).sink_parquet(target, compression="zstd"),
    )


ENGINES: Mapping[str, Engine] = {"DuckDB": _with_duckdb(duckdb.connect()), "Polars": _with_polars()}
