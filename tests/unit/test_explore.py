"""``make explore``: what it counts, keeps, and prints of a case that failed."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from ..explore import ENGINE, engine_digest, explore, explored, run_batch, summary, to_paste
from ..kit import chance
from ..kit.chance import SEARCHES, Search, seed_of

_TEST = """
import sys
sys.path.insert(0, {root!r})
from hypothesis import given, strategies as st
from tests.kit.chance import searching

@searching("tags")
@given(number=st.integers(0, 10**9))
def test_numbers(number):
    assert number < {limit}
"""


def batches(number: int) -> Callable[[], bool]:
    """Says that it is enough after so many batches."""
    asked = count()
    return lambda: next(asked) >= number


@pytest.fixture(scope="module")
def engine() -> str:
    return engine_digest()


def search(folder: Path, limit: int) -> Search:
    path = folder / "test_numbers.py"
    path.write_text(_TEST.format(root=str(chance.ROOT), limit=limit))
    return Search(str(path), SEARCHES["tags"].cases)


def test_two_batches_have_seeds_of_their_own_and_are_counted_together(tmp_path: Path, engine: str) -> None:
    kept, said = tmp_path / "build" / "explored.jsonl", list[str]()
    failed = explore({"tags": search(tmp_path, 10**10)}, until=batches(2), jobs=2, kept=kept, tell=said.append)
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    assert failed == 0
    assert [line["cases"] for line in lines] == [SEARCHES["tags"].cases] * 2
    assert len({line["seed"] for line in lines}) == 2
    assert explored(kept, engine) == {"tags": (2 * SEARCHES["tags"].cases, 0)}
    assert f"{2 * SEARCHES['tags'].cases} cases, 0 batches failed" in summary(explored(kept, engine), ["tags"])
    assert explored(kept, "another engine") == {}
    assert all("cases in" in line for line in said)


def test_case_that_fails_is_kept_and_printed_to_be_pasted_and_run_again(tmp_path: Path, engine: str) -> None:
    kept, said = tmp_path / "explored.jsonl", list[str]()
    wrong = search(tmp_path, 1000)
    assert explore({"tags": wrong}, until=batches(1), jobs=1, kept=kept, tell=said.append) == 1
    assert json.loads(kept.read_text())["cases"] > 0
    assert explored(kept, engine)["tags"] == (0, 1), "attempts to make a failing case smaller explore nothing"
    seed = json.loads(kept.read_text())["seed"]
    assert f"BUCKETCATALOG_SEED={seed} scripts/run pytest {wrong.test}" in said[0]
    pasted = "@example(\n    number=1000,\n)"
    assert said[0].endswith(pasted)


def test_batch_of_no_cases_has_failed(tmp_path: Path) -> None:
    assert run_batch("tags", Search(str(tmp_path / "test_nothing.py"), 1), "1", "engine").failure


def test_failing_case_of_nested_lines_is_printed_whole() -> None:
    lines = [
        "AssertionError: wrong",
        "Failing test case: search(",
        "    history=History(",
        "    names=0,",
        "),",
        ")",
        "What happened:",
    ]
    output = "\n".join(f"E     {line}" for line in lines)
    assert to_paste(output) == ["@example(\n    history=History(\n    names=0,\n),\n)"]


def test_seeds_are_the_releases_own_unless_one_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUCKETCATALOG_SEED", raising=False)
    ours = seed_of("tags 0")
    assert seed_of("tags 0") == ours != seed_of("tags 1")
    monkeypatch.setattr(chance, "RELEASE", "77.0")
    assert seed_of("tags 0") != ours
    monkeypatch.setenv("BUCKETCATALOG_SEED", "abc")
    assert seed_of("tags 0") != ours


def test_engine_is_another_after_a_change_of_code_and_not_of_words(tmp_path: Path) -> None:
    module = tmp_path / "log" / "files.py"
    module.parent.mkdir()
    module.write_text('"""What it is."""\n\nNUMBER = 1\n')
    before = engine_digest(tmp_path)
    module.write_text('"""Something else."""\n\nNUMBER  =  1  # a word\n')
    assert engine_digest(tmp_path) == before
    module.write_text('"""What it is."""\n\nNUMBER = 2\n')
    assert engine_digest(tmp_path) != before


def test_engine_is_another_after_a_change_of_what_spark_reads_by() -> None:
    folders = {path.name for path in ENGINE}
    assert folders == {"bucketcatalog", "pyspark_bucketcatalog"} and all([*path.rglob("*.py")] for path in ENGINE)


def test_engine_of_two_folders_is_another_after_a_change_in_either(tmp_path: Path) -> None:
    digests = set()
    for one, two in ((1, 1), (2, 1), (1, 2)):
        for name, number in (("one", one), ("two", two)):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "files.py").write_text(f"NUMBER = {number}\n")
        digests.add(engine_digest(tmp_path / "one", tmp_path / "two"))
    assert len(digests) == 3


def test_every_search_names_tests_that_are_there() -> None:
    for name, each in SEARCHES.items():
        path, _, test = each.test.partition("::")
        text = (chance.ROOT / path).read_text()
        assert f'"{name}"' in text and test in text, name
