"""Commands that are done in a moment: a process of the program, from its start to its end.

The catalog is small, so what they take is Python, what they import and a few reads. The first run of each, which may have to compile what
it imports, does not count.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial

from bucketcatalog import Catalog

from . import dataset, ours
from .measuring import in_turns
from .results import Goal, Group, Measure
from .world import World

AT_ONCE = Goal("ours", "at most", 0.4)
OBJECTS = 1_000
BUCKET = "photos"
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
    started[IMPORTS] = [sys.executable, "-c", "import pyarrow.compute"]
    subjects = {name: partial(_end, command) for name, command in started.items()}
    in_turns(subjects, 1)
    samples = in_turns(subjects, world.scale.rounds)
    measures = [Measure(f"{name}, its whole process", samples[name], samples[IMPORTS], IMPORTS, AT_ONCE) for name in commands]
    return Group(measures, {"catalog": f"{OBJECTS:,} objects in one transaction", "modules": "compiled before"})


def _end(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
