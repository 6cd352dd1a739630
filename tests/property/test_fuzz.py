"""Whatever stands below one writer's prefix: everybody gets the others' rows, or a typed error that names the file.

``make explore`` goes on with other seeds, and lets more readers see each case.
"""

from __future__ import annotations

import os

from ..kit.chance import SEARCHES, count, seed_of
from ..kit.fuzzing.running import Watched, told

READERS = 3 if "BUCKETCATALOG_SEED" in os.environ else 1
_SHOWN = 20


def test_forged_files_of_one_writer_change_nothing_of_the_others() -> None:
    seed, found = seed_of("fuzz") >> 96, list[str]()
    with Watched() as watched:
        for number in range(SEARCHES["fuzz"].cases_of_a_test):
            result = watched.run(seed, number, count=READERS)
            found += [told(seed, result, each) for each in result.found]
            if not result.found:
                count("fuzz")
    assert not found, "\n".join([f"{len(found)} findings:", *found[:_SHOWN]])
