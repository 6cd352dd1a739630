"""Commands that are done in a moment: a process of the program, from its start to its end.

The catalog is small, so what they take is Python, what they import and a few reads. The first run of each, which may have to compile what
it imports, does not count.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial

from bucketcatalog import Catalog

from . import dataset, ours
from .measuring import in_turns
from .results import Goal, Group, Measure, Sample
from .world import World

AT_ONCE = Goal("ours", "at most", 0.4)
BEFORE_ANYTHING = Goal("ours", "at most", 0.15)
OBJECTS = 1_000
BUCKET = "photos"
NOTHING = "Python that does nothing"
IMPORTS = "Python that imports Arrow"


def run(world: World) -> Group:
    """The group."""
    rows = dataset.objects(OBJECTS)
    path = world.empty("of_a_moment")
    with Catalog(path).writer(ours.WRITER) as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": dataset.OWNER, "name": BUCKET, "id": dataset.BUCKET})
        tx.put("objects", rows)
    commands = {"ls": [BUCKET], "stat": [BUCKET, rows["name"][0].as_py()], "info": [], "log": []}
    program = [sys.executable, "-m", "bucketcatalog"]
    started = {name: [*program, name, str(path), *arguments] for name, arguments in commands.items()}
    started["--version"] = [*program, "--version"]
    started["import"] = [sys.executable, "-c", "from bucketcatalog import Catalog"]
    started[NOTHING] = [sys.executable, "-c", "pass"]
    started[IMPORTS] = [sys.executable, "-c", "import pyarrow.compute"]
    spent: dict[str, list[float]] = {name: [] for name in started}
    subjects = {name: partial(_end, command, spent[name]) for name, command in started.items()}
    in_turns(subjects, 1)
    for each in spent.values():
        each.clear()
    samples = in_turns(subjects, world.scale.rounds)
    of_processors = {name: Sample(tuple(each)) for name, each in spent.items()}
    return Group(
        measures_of(list(commands), samples, of_processors),
        {
            "catalog": f"{OBJECTS:,} objects in one transaction",
            "import": started["import"][-1],
            "modules": "compiled before",
            "processor time": "of all threads of the process, user's and the system's",
        },
    )


def measures_of(commands: Sequence[str], samples: Mapping[str, Sample], spent: Mapping[str, Sample]) -> list[Measure]:
    """The measures, from the samples of wall and processor time by subject."""

    def measure(name: str, subject: str, other: str, goal: Goal | None) -> Measure:
        details = {"processor time": spent[subject].document(), f"processor time, {other}": spent[other].document()}
        return Measure(name, samples[subject], samples[other], other, goal, details)

    return [
        measure("--version, its whole process", "--version", NOTHING, BEFORE_ANYTHING),
        *(measure(f"{name}, its whole process", name, IMPORTS, AT_ONCE) for name in commands),
        measure("import of Catalog, its whole process", "import", IMPORTS, None),
    ]


def _end(command: Sequence[str], spent: list[float]) -> None:
    """Run a command to its end, and note what it has ``spent``: seconds of processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
