"""Where generated inputs come from: one set of seeds for each release, or random ones for ``make explore``.

``make test`` is the same run everywhere, so what it says of a change it says to everybody; with each release its cases are others. Chance
searches in ``make explore``, which sets ``BUCKETCATALOG_SEED`` for each batch and has it counted, by ``BUCKETCATALOG_COUNTS``, what ran.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, seed, settings

ROOT = Path(__file__).resolve().parent.parent.parent
RELEASE: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

Test = TypeVar("Test", bound=Callable[..., Any])

ANY_SPEED = settings(
    deadline=None,
    database=None,  # what has failed here before must not make this run another than everybody's
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)


@dataclass(frozen=True, slots=True)
class Search:
    """Generated cases of one kind: so many in a batch of ``make explore``, a third of them or ``fewer`` in ``make test``, in so many tests.

    Where they need a ``server``, ``make explore`` leaves them out unless it is asked for them.
    """

    test: str
    cases: int
    shares: int = 1
    server: bool = False
    fewer: int | None = None

    @property
    def cases_of_a_test(self) -> int:
        """How many each of its tests takes here."""
        if "BUCKETCATALOG_SEED" in os.environ:
            return math.ceil(self.cases / self.shares)
        return math.ceil(self.cases / self.shares / 3) if self.fewer is None else self.fewer


SEARCHES = {
    "everything": Search("tests/property/test_everything.py::test_answers_never_change_except_behind_the_horizon", 48, 2),
    "maintenance": Search(
        "tests/property/test_everything.py::test_nothing_is_lost_where_much_is_damaged_repaired_and_pruned", 16, 2
    ),
    "histories": Search("tests/property/test_histories.py::test_histories_in_memory_end_as_the_model_says", 96, 4),
    "disk": Search("tests/property/test_histories.py::test_histories_on_disk_end_as_the_model_says", 16),
    "late": Search("tests/property/test_latecomers.py", 24),
    "foreign": Search(
        "tests/property/test_foreign_compactor.py::test_every_checkpoint_of_a_random_history_is_what_its_transactions_say", 24
    ),
    "pruning": Search("tests/property/test_pruning.py", 24),
    "tags": Search("tests/property/test_tags.py::test_tags_are_what_the_entries_that_have_arrived_make_them", 100),
    "aside": Search("tests/property/test_aside.py", 60),
    "forger": Search("tests/property/test_forger.py", 48),
    "damage": Search("tests/property/test_damage.py", 16),
    "collection": Search("tests/property/test_collection_histories.py", 20),
    "tables": Search("tests/property/test_declared_tables.py", 14, 2),
    "conditions": Search("tests/property/test_conditions.py", 18),
    "predicates": Search(
        "tests/property/test_predicates.py::test_a_predicate_is_true_of_the_rows_of_a_scan_and_of_no_others", 24
    ),
    "predicates of changes": Search(
        "tests/property/test_predicates.py::test_a_predicate_on_keys_is_true_of_the_events_and_differences_that_are_shown", 18
    ),
    "changes": Search("tests/property/test_changes.py::test_what_has_changed_is_the_same_however_it_is_asked_for", 18),
    "changes before": Search(
        "tests/property/test_changes.py::test_what_was_before_an_event_is_the_same_from_wherever_events_are_read", 18
    ),
    "manta": Search("tests/property/test_manta_postgres.py::test_traces_end_as_on_postgres", 200, 2, fewer=15),
    "data tables": Search("tests/property/test_data_tables.py::test_rows_count_as_the_model_says_whatever_races", 60, 2),
    "data tables with keys": Search(
        "tests/property/test_data_tables.py::test_the_newest_rows_of_their_keys_count_whatever_races", 30
    ),
    "fuzz": Search("tests/property/test_fuzz.py", 900),
    "questions": Search("tests/spark/test_questions.py", 2, 2),
    "natively": Search("tests/spark/test_native_histories.py", 60),
    "streams": Search("tests/spark/test_stream_kills.py", 50, fewer=3),
    "changes in Spark": Search("tests/spark/test_changes.py", 18),
    "s3": Search("tests/s3/test_histories_s3.py", 24, 2, server=True),
}
"""What ``make explore`` searches in, by name."""


def seed_of(name: str) -> int:
    """The seed of the cases called ``name``: of this release, or of the batch."""
    drawn = os.environ.get("BUCKETCATALOG_SEED", RELEASE)
    return int.from_bytes(hashlib.sha256(f"{drawn} {name}".encode()).digest()[:16])


def searching(name: str, share: int = 0, **more: Any) -> Callable[[Test], Test]:
    """What makes a test with ``@given`` one of the tests that share the cases of a search; ``more`` are settings of its own."""
    cases = SEARCHES[name].cases_of_a_test

    def decorate(test: Test) -> Test:
        inner = test.hypothesis  # type: ignore[attr-defined]
        inner.inner_test = _counted(name, inner.inner_test)
        found: Test = settings(ANY_SPEED, max_examples=cases, **more)(seed(seed_of(f"{name} {share}"))(test))
        return found

    return decorate


def count(name: str) -> None:
    """Note that one case of a search has ended well, for whoever explores."""
    if "BUCKETCATALOG_COUNTS" in os.environ:
        with Path(os.environ["BUCKETCATALOG_COUNTS"]).open("a") as counts:
            counts.write(f"{name}\n")


def _counted(name: str, test: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **options: Any) -> None:
        test(*args, **options)
        count(name)

    return run
