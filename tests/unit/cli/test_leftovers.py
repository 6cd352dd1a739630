"""``gc`` of what puts have left: lists what is old enough, and removes it when told to."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from .conftest import Cli, Past

HOUR = 3_600


@pytest.fixture
def leftovers(past: Past) -> list[Path]:
    """Temporary files beside objects: one of yesterday, one of two hours ago, one of now."""
    folder = past.path / "w" / "default" / "transactions"
    made = []
    for name, age in (("yesterday", 30 * HOUR), ("earlier", 2 * HOUR), ("now", 0)):
        file = folder / f".put-{name}"
        file.write_bytes(b"half")
        os.utime(file, (time.time() - age,) * 2)
        made.append(file)
    return made


def test_gc_lists_old_leftovers_and_removes_them_when_told_to(cli: Cli, past: Past, leftovers: list[Path]) -> None:
    before = cli("ls", past.path, "pets").out
    (found,) = cli("gc", past.path, "--json").lines
    assert (found["name"], found["discarded"]) == ("w/default/transactions/.put-yesterday", False)
    assert all(file.exists() for file in leftovers)
    assert len(cli("gc", past.path, "--older-than", "90m", "--yes", "--json").lines) == 2
    assert [file.name for file in leftovers if file.exists()] == [".put-now"]
    assert cli("gc", past.path, "--older-than", "1w").out == "No put is unfinished for longer than 1w.\n"
    assert cli("ls", past.path, "pets").out == before
    assert len(cli("gc", past.path, "--older-than", "0s", "--force", "--yes", "--json").lines) == 1
    assert not any(file.exists() for file in leftovers)


@pytest.mark.parametrize("age", ["5m", "0s", "59m"])
def test_gc_refuses_an_age_that_a_put_under_way_may_have(cli: Cli, past: Past, age: str) -> None:
    refused = cli("gc", past.path, "--older-than", age, "--yes")
    assert refused.code == 2 and "INVALID_OPTION" in refused.err and "--force" in refused.err


@pytest.mark.parametrize("age", ["", "24", "h", "-1h", "1.5h", "1y", "٣h"])
def test_gc_refuses_what_is_no_age(cli: Cli, past: Past, age: str) -> None:
    assert "is not an age" in cli("gc", past.path, f"--older-than={age}").err


def test_gc_of_what_is_no_catalog_is_refused(cli: Cli, tmp_path: Path) -> None:
    assert "CATALOG_NOT_FOUND" in cli("gc", tmp_path, "--yes").err
