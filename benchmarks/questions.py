"""The questions that people ask of an inventory, in a process that is warm, against the best peer on the same rows.

Each answer is made from the catalog as it is opened anew, once with upserts over its checkpoint and once with all of them in it; the peers
have files that were written for this, of what is live, or a table that has merged each upsert. What they answer is the same before anything
is timed.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from bucketcatalog import Catalog
from bucketcatalog.harvest import harvest
from bucketcatalog.questions import age, cost, du, dups, find, growth, top, who

from . import questions_data
from .fresh import run_fresh
from .measuring import Timed, fastest, in_turns
from .questions_peers import DEPTH, EDGES, EXAMPLES, GLOB, GROUPS, LARGER, PRICES, TOP, Peers
from .results import Goal, Group, Measure, Sample
from .world import World

OURS_OVER, OURS_COVERED = "ours and upserts", "ours, covered"
WARM_UP, RUNS, TRIES = 1, 5, 5
KEPT = Goal("other / ours", "at least", 10)
READ = Goal("ours / other", "at most", 2.0)
Rows = list[tuple[Any, ...]]
SHOWN = {
    "du": "du(cat)",
    "du, depth": f"du(cat, depth={DEPTH})",
    "top": f'top(cat, "largest", {TOP})',
    "find, size": f"find(cat, larger={LARGER:_}).to_arrow()",
    "find, glob": f'find(cat, name="{GLOB}").to_arrow()',
    "dups": f"dups(cat, limit={GROUPS})",
    "growth": 'growth(cat.snapshot(), every="1d")',
    "who": "who(cat)",
    "age": "age(cat)",
    "cost": "cost(cat, prices)",
}
QUESTIONS: Mapping[str, Callable[[Catalog], Any]] = {
    "du": du,
    "du, depth": partial(du, depth=DEPTH),
    "top": partial(top, by="largest", n=TOP),
    "find, size": lambda cat: find(cat, larger=LARGER).to_arrow(),
    "find, glob": lambda cat: find(cat, name=GLOB).to_arrow(),
    "dups": partial(dups, limit=GROUPS, examples=EXAMPLES),
    "growth": lambda cat: growth(cat.snapshot(), every="1d"),
    "who": who,
    "age": age,
    "cost": lambda cat: cost(cat, PRICES),
}


def run(world: World) -> Group:
    """The group."""
    lake, covered, plain, delta = questions_data.catalog(world)
    found = run_fresh("questions", "ask_in_turns", lake=str(lake), covered=str(covered), plain=str(plain), delta=str(delta))
    count, each = world.scale.questions_objects, world.scale.questions_upserts
    measures = [
        measure_of(question, found["seconds"][question], count, asked_of)
        for question in QUESTIONS
        for asked_of in (OURS_OVER, OURS_COVERED)
    ]
    settings = {
        "catalog": f"{count:,} objects in {questions_data.BUCKETS} buckets under a checkpoint, "
        f"{questions_data.UPSERTS} upserts of {each:,} above it, half of them over objects that are there",
        OURS_COVERED: "the same after a full checkpoint, as the peers' files and tables have merged the upserts",
        "ours": "Catalog(path) anew each time, in a process that is warm",
        "DuckDB": "one Parquet file of the live objects and one of the tombstones, sorted by key, zstd, of pyarrow and of DuckDB",
        "deltalake": "the same rows, each upsert a MERGE; with its change data feed",
        "runs": f"{WARM_UP} to warm up, median of {RUNS}, in turns; the fastest peer of each question, the others under details",
    }
    return Group([*measures, _of_a_tree(world)], settings)


def measure_of(question: str, seconds: Mapping[str, list[float]], count: int, asked_of: str) -> Measure:
    """The measure of a question to one of the two catalogs, from the seconds of each who has answered it."""
    samples = {name: Sample(tuple(found)) for name, found in seconds.items()}
    mine = {name: samples.pop(name) for name in (OURS_OVER, OURS_COVERED)}[asked_of]
    best = fastest(samples)
    each = {f"{name}, seconds": sample.document() for name, sample in samples.items()}
    goal = KEPT if question == "du" else READ
    return Measure(f"{SHOWN[question]}, {count:,} objects{asked_of.removeprefix('ours')}", mine, samples[best], best, goal, each)


def ask_in_turns(lake: str, covered: str, plain: str, delta: str) -> dict[str, Any]:
    """Seconds of each question by who answers it; ``ValueError`` where the answers differ."""
    seconds: dict[str, dict[str, list[float]]] = {}
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'UTC'")
        for question, ask in QUESTIONS.items():
            ours = {name: partial(_asked, ask, path) for name, path in ((OURS_OVER, lake), (OURS_COVERED, covered))}
            ways = _agreeing(question, ours, Path(plain), Path(delta), connection)
            subjects: dict[str, Timed] = {name: partial(_forget, way) for name, way in ways.items()}
            in_turns(subjects, WARM_UP)
            seconds[question] = {name: list(sample.values) for name, sample in in_turns(subjects, RUNS).items()}
    return {"seconds": seconds}


def _asked(ask: Callable[[Catalog], Any], path: str) -> Any:
    return ask(Catalog(path))


def _forget(answer: Callable[[], object]) -> None:
    answer()


def _agreeing(
    question: str, ours: Mapping[str, Callable[[], Any]], plain: Path, delta: Path, connection: duckdb.DuckDBPyConnection
) -> dict[str, Callable[[], object]]:
    """Who answers a question, and how, after all have said the same of it. An age may pass an edge while they are asked: then again."""
    for _ in range(TRIES):
        now = time.time_ns() // 1_000
        ways: dict[str, Callable[[], object]] = {**ours, **Peers(plain, delta, now, connection).ways(question)}
        answers = {name: OURS[question](answer()) if name in ours else _rows(answer()) for name, answer in ways.items()}
        mine = answers[OURS_OVER]
        differing = [name for name, rows in answers.items() if rows != mine]
        if not differing and mine:
            return ways
    raise ValueError(f"{question}: {differing} say otherwise: {mine[:3]}, {[answers[n][:3] for n in differing]}")


def _rows(answer: Any) -> Rows:
    """The rows of an answer of SQL, in order, with numbers as of one kind."""
    return sorted((tuple(map(_plain, row.values())) for row in answer.to_pylist()), key=repr)


def _plain(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else int(value) if type(value).__name__ == "Decimal" else value


def _shown(*columns: str) -> Callable[[pa.Table], Rows]:
    return lambda found: _rows(found.select(list(columns)))


def _copies(found: Any) -> Rows:
    all_of = found.all_groups, found.all_wasted_bytes
    return sorted(
        (
            (group["content_length"], group["copies"], group["wasted_bytes"], *all_of, example["name"])
            for group in found.groups.to_pylist()
            for example in group["examples"]
        ),
        key=repr,
    )


def _over_time(found: pa.Table) -> Rows:
    return sorted(
        (
            (row["bucket"], int(row["time"].timestamp()) * 1_000_000, row["objects"], row["bytes"])
            for row in found.to_pylist()
            if row["objects"]
        ),
        key=repr,
    )


def _by_age(found: pa.Table) -> Rows:
    names = [f"{days}d" for days in EDGES]
    at = {name: number for number, name in enumerate([*names, None])}
    rows = [row for row in found.to_pylist() if row["objects"]]
    return sorted(((row["storage_class"], at[row["below_age"]], row["objects"], row["bytes"]) for row in rows), key=repr)


def _ended(found: pa.Table) -> Rows:
    return sorted(((row["writer"], row["operation"], "put", row["objects"], row["bytes"]) for row in found.to_pylist()), key=repr)


OURS: Mapping[str, Callable[[Any], Rows]] = {
    "du": _shown("bucket", "objects", "bytes"),
    "du, depth": _shown("bucket", "prefix", "objects", "bytes"),
    "top": _shown("bucket", "name", "content_length", "modified", "storage_class", "owner"),
    "find, size": lambda found: _found(found),
    "find, glob": lambda found: _found(found),
    "dups": _copies,
    "growth": _over_time,
    "who": _ended,
    "age": _by_age,
    "cost": _shown("bucket", "storage_class", "objects", "bytes", "cost"),
}


def _found(rows: pa.Table) -> Rows:
    return _rows(rows.select(["bucket", "name", "content_length", "modified", "storage_class", "owner", "content_type"]))


def _of_a_tree(world: World) -> Measure:
    """``du`` of a harvested tree against ``du`` of the tree itself, which the system has at hand."""
    files = world.scale.questions_files
    tree = world.once("questions-tree", partial(questions_data.make_tree, files=files))
    lake = world.empty("questions-harvested")
    harvest(Catalog(lake), str(tree))
    subjects: dict[str, Timed] = {
        "ours": lambda: _forget(partial(du, Catalog(lake), depth=1)),
        "du": lambda: _forget(partial(subprocess.run, ["du", "-d", "1", str(tree)], check=True, capture_output=True)),
    }
    in_turns(subjects, WARM_UP)
    samples = in_turns(subjects, RUNS)
    return Measure(f"du(cat, depth=1), {files:,} harvested files", samples["ours"], samples["du"], "du -d 1", READ)
