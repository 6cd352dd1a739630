"""Runs the benchmarks:  python -m benchmarks.run [--only NAME] [--scale small]

It prints a table, writes ``benchmarks/results.json`` and, at full scale, the table of docs/guide/benchmarks.md.

What is written holds medians, smallest and largest values, run counts, settings, the machine and its load. With ``--only`` the other
groups of an earlier run at the same scale are kept: every ratio is of things measured together, in one group. A missed goal is no
failure; the exit code is 1 only where a group could not be measured.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import machine, page
from benchmarks.results import table
from benchmarks.world import FULL, SMALL, Scale, World

ROOT = Path(__file__).resolve().parent.parent
OF_S3 = ("s3_commits", "s3_writers", "s3_opening", "s3_harvest", "s3_iox")
GROUPS = (
    "commits",
    "upserts",
    "reads",
    "large_reads",
    "spark_reads",
    "native_reads",
    "uncovered_reads",
    "first_queries",
    "engines",
    "harvest",
    "memory",
    "commands",
    "checkpoints",
    "spark_checkpoints",
    "spark_harvest",
    "spark_streams",
    "spark_appends",
    "spark_deletes",
    "levels",
    "questions",
    "manta",
    "iox",
    "spark_iox",
    *OF_S3,
)
SCALES = {scale.name: scale for scale in (SMALL, FULL)}
PAGE = ROOT / "docs" / "guide" / "benchmarks.md"
RESULTS = {"full": ROOT / "benchmarks" / "results.json", "small": ROOT / "build" / "bench-small.json"}


def run_groups(names: list[str], scale: Scale, directory: Path, tree: Path, console: Console) -> dict[str, dict[str, Any]]:
    """The documents of the groups by name; one that fails says why under ``error``."""
    world = World(directory, scale, tree)
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        console.print(f"{name} ...", style="dim")
        began, load, start = datetime.now(UTC), machine.load(), time.monotonic()
        try:
            document = importlib.import_module(f"benchmarks.{name}").run(world).document()
        except Exception as error:
            console.print(traceback.format_exc(), style="red", markup=False)
            document = {"error": f"{type(error).__name__}: {error}".replace(str(directory), "WORKDIR").replace(str(ROOT), "ROOT")}
        found[name] = {
            "began": began.isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - start, 1),
            "load": {"before": load, "after": machine.load()},
            **document,
        }
    return found


def main(arguments: list[str]) -> int:
    """Run what the arguments ask for and return the exit code."""
    asked = _arguments(arguments)
    scale = SCALES[asked.scale]
    output = Path(asked.output) if asked.output else RESULTS[scale.name]
    above = Path(asked.workdir) if asked.workdir else ROOT / "build"
    above.mkdir(parents=True, exist_ok=True)
    console = Console(width=None if sys.stdout.isatty() else 200)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=above) as directory:
        facts = machine.facts(Path(directory))
        groups = run_groups(asked.only or list(GROUPS), scale, Path(directory), Path(asked.tree), console)
    document = {
        "scale": scale.name,
        "machine": facts,
        "versions": machine.versions(),
        "groups": _kept(output, scale.name) | groups,
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(document, indent=2) + "\n")
    if output == RESULTS["full"]:
        page.update(PAGE, document)
    console.print(table(groups))
    console.print(_last_line(groups))
    return 1 if any("error" in group for group in groups.values()) else 0


def _arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Benchmarks against the peers, in one run.")
    parser.add_argument("--only", action="append", choices=GROUPS, metavar="NAME", help=f"one of {', '.join(GROUPS)}; repeatable")
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--workdir", help="where temporary data goes, and is removed from; by default build/")
    parser.add_argument("--tree", default="/usr", help="the file tree to harvest; by default /usr")
    parser.add_argument("--output", help="the JSON file to write")
    return parser.parse_args(arguments)


def _kept(output: Path, scale: str) -> dict[str, dict[str, Any]]:
    """The groups of an earlier run at the same scale."""
    try:
        earlier = json.loads(output.read_text())
    except (FileNotFoundError, ValueError):
        return {}
    groups: dict[str, dict[str, Any]] = earlier["groups"] if earlier.get("scale") == scale else {}
    return groups


def _last_line(groups: dict[str, dict[str, Any]]) -> str:
    outcomes = [
        measure["met"] for group in groups.values() for measure in group.get("measures", []) if measure["met"] is not None
    ]
    return f"{sum(outcomes)} of {len(outcomes)} goals met"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
