"""``make explore``: the generated histories with random seeds, for as long as one likes.

A batch is twice what ``make test`` runs of one search, with a seed of its own; batches of all searches take turns. Each is kept as a line
of ``build/explored.jsonl``: its seed, how many cases ended well, and what failed. What has been explored of the engine as it is now is told
at the end, by all runs together: a change of the engine's code starts the count anew, one of its comments does not.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path

from .kit.chance import ROOT, SEARCHES, Search

ENGINE = (ROOT / "catalog" / "bucketcatalog", ROOT / "spark" / "pyspark_bucketcatalog")
KEPT = ROOT / "build" / "explored.jsonl"
_FAILED = "Failing test case: "
_PYTEST = (sys.executable, "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--tb=short")


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch came to: with ``failure`` what pytest printed of it."""

    search: str
    seed: str
    engine: str
    cases: int
    seconds: float
    failure: str = ""


def engine_digest(*folders: Path) -> str:
    """What tells one state of the engine's code from another, whatever its comments and docstrings say."""
    digest = hashlib.sha256()
    for folder in folders or ENGINE:
        for path in sorted(folder.rglob("*.py")):
            name = f"{folder.name}/{path.relative_to(folder)}"
            digest.update(f"{name}\n{ast.dump(_without_docstrings(ast.parse(path.read_text())))}\n".encode())
    return digest.hexdigest()[:16]


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:]
    return tree


def run_batch(name: str, search: Search, seed: str, engine: str) -> Batch:
    """Run the tests of a search with this seed, in a process of their own."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "counts"
        counts.touch()
        environment = os.environ | {"BUCKETCATALOG_SEED": seed, "BUCKETCATALOG_COUNTS": str(counts)}
        done = subprocess.run([*_PYTEST, search.test], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        cases = len(counts.read_text().splitlines())
    failure = "" if done.returncode == 0 and cases else f"{done.stdout}{done.stderr}"
    return Batch(name, seed, engine, cases, round(time.monotonic() - began, 1), failure)


def to_paste(output: str) -> list[str]:
    """The failing cases of pytest's output, each as a decorator for the test that it failed in."""
    lines = output.splitlines()
    found: list[str] = []
    for at, line in enumerate(lines):
        margin = line.find(_FAILED)
        if margin < 0:
            continue
        case = [each[margin:] for each in lines[at:]]
        last = next((n for n, each in enumerate(case) if each == ")" or (n == 0 and each.endswith(")"))), 0)
        found.append("@example(" + "\n".join(case[: last + 1]).partition("(")[2])
    return list(dict.fromkeys(found))


def explored(kept: Path, engine: str) -> Mapping[str, tuple[int, int]]:
    """By search how many cases ended well with this engine, and how many batches failed, in all runs that were kept.

    Those of a batch that failed do not count: most are attempts to make its failing case smaller.
    """
    cases: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    for line in kept.read_text().splitlines() if kept.exists() else ():
        batch = Batch(**json.loads(line))
        if batch.engine == engine:
            cases[batch.search] += 0 if batch.failure else batch.cases
            failures[batch.search] += bool(batch.failure)
    return {name: (cases[name], failures[name]) for name in cases | failures}


def explore(
    searches: Mapping[str, Search], *, until: Callable[[], bool], jobs: int, kept: Path, tell: Callable[[str], None] = print
) -> int:
    """Run batches until it is enough, and keep what they came to; returns how many failed."""
    chance, failed = random.SystemRandom(), 0
    before = explored(kept, engine_digest())
    begun = Counter({name: before.get(name, (0, 0))[0] // search.cases for name, search in searches.items()})
    kept.parent.mkdir(parents=True, exist_ok=True)
    running: set[Future[Batch]] = set()
    with ThreadPoolExecutor(jobs) as pool:
        while True:
            while len(running) < jobs and not until():
                name = min(searches, key=lambda each: begun[each])
                begun[name] += 1
                seed, engine = f"{chance.getrandbits(64):016x}", engine_digest()  # which may be changed while others run
                running.add(pool.submit(run_batch, name, searches[name], seed, engine))
            if not running:
                return failed
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for batch in (future.result() for future in done):
                with kept.open("a") as lines:
                    lines.write(f"{json.dumps(asdict(batch))}\n")
                tell(told(batch, searches[batch.search]))
                failed += bool(batch.failure)


def told(batch: Batch, search: Search) -> str:
    """A batch in a line; one that failed with what came out, how to run it again, and what to paste."""
    line = f"{batch.search:12} {batch.cases:5} cases in {batch.seconds:6.1f} s"
    if not batch.failure:
        return line
    again = f"BUCKETCATALOG_SEED={batch.seed} scripts/run pytest {search.test}"
    return "\n".join(
        [f"{line}: FAILED", batch.failure, f"Again: {again}", "To paste above its @given:", *to_paste(batch.failure)]
    )


def summary(found: Mapping[str, tuple[int, int]], searches: Iterable[str]) -> str:
    """What has been explored of the engine as it is, a line a search."""
    rows = [f"{name:12} {found.get(name, (0, 0))[0]:7} cases, {found.get(name, (0, 0))[1]} batches failed" for name in searches]
    return "\n".join(["With the engine as it is now, in all runs:", *rows])


def main(arguments: list[str] | None = None) -> int:
    """Explore as the command line says; 1 where something failed."""
    parser = argparse.ArgumentParser(prog="make explore", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, help="how long new batches begin; by default until it is interrupted")
    parser.add_argument("--only", choices=sorted(SEARCHES), action="append", help="this search, and others that are named so")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many batches at a time")
    parser.add_argument("--counts", action="store_true", help="only tell what has been explored")
    asked = parser.parse_args(arguments)
    searches = chosen(asked.only)
    end = float("inf") if asked.minutes is None else time.monotonic() + asked.minutes * 60
    failed = 0
    try:
        if not asked.counts:
            failed = explore(searches, until=lambda: time.monotonic() >= end, jobs=asked.jobs, kept=KEPT)
    except KeyboardInterrupt:
        print("interrupted; batches under way are not counted", file=sys.stderr)
    print(summary(explored(KEPT, engine_digest()), searches))
    return 1 if failed else 0


def chosen(names: Collection[str] | None) -> Mapping[str, Search]:
    """The searches of these names; without any, all that need no server."""
    return {name: search for name, search in SEARCHES.items() if (name in names if names else not search.server)}


if __name__ == "__main__":
    sys.exit(main())
