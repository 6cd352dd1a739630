"""Harvest of a real tree against a bare recursive ``os.scandir`` with a stat of every entry, in turns.

The tree is read once before, so both find its directories in the kernel's caches: that is the harder case, for then nobody waits for
the disk.
"""

from __future__ import annotations

import os
from pathlib import Path

from bucketcatalog import Catalog
from bucketcatalog.harvest import harvest

from .measuring import in_turns
from .results import Goal, Group, Measure
from .world import World

RUNS = 5


def run(world: World) -> Group:
    """The group."""
    files = scan(os.fsencode(world.tree))
    again = world.empty("harvest-again")
    harvest(Catalog(again), world.tree)
    samples = in_turns(
        {
            "first": lambda: _harvest(world.empty("harvest"), world.tree),
            "again": lambda: _harvest(again, world.tree),
            "scan": lambda: _scan(world.tree),
        },
        min(RUNS, world.scale.rounds),
    )
    goal = Goal("ours / other", "at most", 3.0)
    measures = [
        Measure(f"harvest of {files:,} files", samples["first"], samples["scan"], "os.scandir with stat", goal),
        Measure(
            f"harvest of {files:,} files again, nothing changed", samples["again"], samples["scan"], "os.scandir with stat", goal
        ),
    ]
    settings = {
        "ours": "harvest(Catalog(path), tree) into an empty catalog, durable commits; and into one that has it all",
        "reference": "recursive os.scandir, entry.stat(follow_symlinks=False) of every entry",
        "tree": f"{files} entries that are no directories",
    }
    return Group(measures, settings)


def _harvest(catalog: Path, tree: Path) -> None:
    harvest(Catalog(catalog), tree)


def _scan(tree: Path) -> None:
    scan(os.fsencode(tree))


def scan(path: bytes) -> int:
    """Stat everything below a directory; the number of entries that are no directories."""
    files = 0
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    files += scan(entry.path)
                else:
                    files += 1
    except OSError:
        pass  # what cannot be read, or is gone by now, costs neither side anything
    return files
