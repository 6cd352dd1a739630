"""A harvest on executors in which something dies: ``harvest_child.py SOURCE CATALOG WHAT``; prints the result as JSON.

``tasks``: each dies the first time, after it has put its segments. ``executors``: two are killed, soon after the first segments were put.
``before``, ``during``, ``after``: the driver is killed before its commit is put, when it has landed and nobody knows, or when it is known.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import SparkSession

from bucketcatalog import Catalog
from bucketcatalog.harvest import harvest, rounds
from bucketcatalog.harvest.sections import Done, HarvestTask, Section
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.wrappers import Wrapped
from pyspark_bucketcatalog.executors import CatalogPlace, on_executors
from pyspark_bucketcatalog.jobs.harvesting import HarvestOnExecutors

SOURCE, PATH, WHAT = sys.argv[1:]
DRIVER = os.getpid()


class FlakyTasks(HarvestOnExecutors):
    """Executors that die once for each section."""

    def run(self, task: HarvestTask, sections: Sequence[Section]) -> Iterable[Done]:
        """See ``HarvestWorkers``."""

        def do(section: Section) -> Done:
            done = task.run(section, Catalog(PATH).store)
            mark = Path(f"{PATH}.marks") / f"{section.within.after.hex()[-200:]}-{section.most}"
            if not mark.exists():
                mark.touch()
                raise RuntimeError("the executor is gone")
            return done

        Path(f"{PATH}.marks").mkdir(exist_ok=True)
        return on_executors(self.spark, do, sections)


class Dying(Wrapped):
    """A store whose user is killed at a put of a transaction."""

    def put(self, name: str, data: bytes) -> None:
        """As the inner store, for a while."""
        if not name.endswith(".txn") or os.getpid() != DRIVER:
            super().put(name, data)
            return
        if WHAT == "before":
            os.kill(DRIVER, signal.SIGKILL)
        super().put(name, data)
        if WHAT == "during":
            os.kill(DRIVER, signal.SIGKILL)


def executors(application: str) -> list[int]:
    """The processes of executors that this process's Spark has started."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_text()
            except OSError:
                continue
            if "CoarseGrainedExecutorBackend" in command and application in command:
                found.append(int(process.name))
    return found


def kill_when_there_are(application: str, *segments: int) -> None:
    """End an executor, without a word, each time that so many segments have been put."""
    for wanted in segments:
        while len(list(Path(PATH).glob("*/*/segments/*.parquet"))) < wanted:
            time.sleep(0.005)
        os.kill(executors(application)[0], signal.SIGKILL)
        print(f"killed after {wanted}", file=sys.stderr)


if __name__ == "__main__":
    master = {"executors": "local-cluster[2,1,1024]", "tasks": "local[2,3]"}.get(WHAT, "local[2]")
    session = (
        SparkSession.builder.master(master)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    rounds.FIRST_ENTRIES = 4_000
    if WHAT == "executors":
        threading.Thread(target=kill_when_there_are, args=(session.sparkContext.applicationId, 1, 3), daemon=True).start()
    workers = (FlakyTasks if WHAT == "tasks" else HarvestOnExecutors)(
        session, CatalogPlace(PATH), 6 if WHAT == "executors" else 4
    )
    result = harvest(Catalog(Dying(LocalStore(Path(PATH)))), SOURCE, bucket="tree", workers=workers)
    if WHAT == "after":
        os.kill(DRIVER, signal.SIGKILL)
    print(json.dumps(asdict(result)))
    session.stop()
