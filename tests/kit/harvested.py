"""Workers of a harvest within a test, which are as unkind as those of a cluster may be, and what two catalogs have to have in common."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bucketcatalog import Catalog
from bucketcatalog.harvest import Harvested
from bucketcatalog.harvest.sections import Done, HarvestTask, Section
from bucketcatalog.store import Store
from bucketcatalog.store.tickets import carried

TABLES = ("buckets", "objects", "object_versions", "harvest_errors", "deleted_objects", "deleted_object_versions")
_OF_A_COMMIT = {"created", "modified", "seen"}


@dataclass
class Workers:
    """Each section is done twice by copies of the task, in no order, and one of the outcomes is lost."""

    store: Store
    parts: int = 5
    rounds: list[list[Section]] = field(default_factory=list)

    def run(self, task: HarvestTask, sections: Sequence[Section]) -> list[Done]:
        """See ``HarvestWorkers``."""
        self.rounds.append(list(sections))
        found = [self._twice(task, section) for section in sections]
        random.Random(len(found)).shuffle(found)
        return found

    def _twice(self, task: HarvestTask, section: Section) -> Done:
        with carried():
            packed = pickle.dumps((task, section))
        for _ in range(2):
            copied, part = pickle.loads(packed)
            done = copied.run(part, self.store)
        return pickle.loads(pickle.dumps(done))


def everything(catalog: Catalog) -> dict[str, list[dict[str, Any]]]:
    """All rows of a harvest, but for the times at which they were committed."""
    snapshot = catalog.snapshot()
    found = {}
    for name in TABLES:
        rows = snapshot.scan(name).to_arrow()
        left_out = {"deleted_at"} | (_OF_A_COMMIT if name in ("buckets", "harvest_errors") else set())
        found[name] = rows.select([column for column in rows.column_names if column not in left_out]).to_pylist()
    return found


def counted(result: Harvested) -> Harvested:
    """What a harvest says but for who committed when."""
    return replace(result, writer="", transactions=(), seconds=0.0)
