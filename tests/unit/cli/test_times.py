"""Times as they are typed, wherever a command takes a time or a version."""

from __future__ import annotations

from pathlib import Path

import pytest

from bucketcatalog.cli import run

from .conftest import Cli, Past

EMPTY = ["yesterday", "24h", "1h30m", "2 days ago", "3 weeks", "1 Hour Ago"]
NEWEST = ["now", "0s", "0 seconds ago"]


@pytest.mark.parametrize("command", [["ls", "--json"], ["writers", "--json"], ["checkpoints", "--json"]])
def test_the_state_of_a_time_that_counts_from_now(cli: Cli, past: Past, command: list[str]) -> None:
    name, *more = command
    for time in NEWEST:
        assert cli(name, past.path, *more, "--as-of", time).out == cli(name, past.path, *more).out
    for time in EMPTY:
        assert cli(name, past.path, *more, "--as-of", time).out == ""


def test_events_and_differences_between_times_that_count_from_now(cli: Cli, past: Past) -> None:
    for command in ("changes", "diff"):
        everything = cli(command, past.path, "--json").out
        for start in EMPTY:
            assert cli(command, past.path, "--from", start, "--to", "now", "--json").out == everything != ""
        assert cli(command, past.path, "--from", "now", "--json").out == ""


@pytest.mark.parametrize(("start", "end"), [("now", "yesterday"), ("1h", "2h"), ("1d", "2024-05-01"), ("2999-01-01", "now")])
def test_events_between_reversed_times_are_refused(cli: Cli, past: Past, start: str, end: str) -> None:
    ran = cli("changes", past.path, "--from", start, "--to", end)
    assert ran.code == 2 and ran.err.startswith("[INVALID_OPTION] The start lies after the end: ")


def test_equal_times_that_count_from_now_are_equal(cli: Cli, past: Past) -> None:
    for _ in range(20):
        assert cli("changes", past.path, "--from", "0s", "--to", "now").out == "No change.\n"


def test_tags_pins_restores_and_clones_of_times_that_count_from_now(cli: Cli, catalog: Path, past: Past, tmp_path: Path) -> None:
    newest = cli("tag", catalog, "t", "now", "--json").document["version"]
    assert cli("pin", catalog, "p", "0s ago", "--json").document["name"] == "p"
    assert cli("restore", catalog, "objects", "1 hour ago", "--json").document["deleted"] > 0
    assert cli("clone", catalog, tmp_path / "clone", "--as-of", "t", "--json").document["version"] == newest
    assert cli("export", catalog, "objects", tmp_path / "x.parquet", "--as-of", "yesterday", "--json").document["rows"] == 0


@pytest.mark.parametrize("time", ["1 fortnight ago", "2024-13-01", "@x", "9999999d", "999999w"])
def test_what_is_no_time_is_refused_with_what_is_one(cli: Cli, past: Past, time: str) -> None:
    ran = cli("ls", past.path, "--as-of", time)
    assert ran.code == 2 and ran.err.startswith("[INVALID_TIME] ")


def test_a_name_that_is_neither_is_told_both(cli: Cli, past: Past) -> None:
    ran = cli("ls", past.path, "--as-of", "tomorrow")
    assert ran.code == 2 and "a time is ISO 8601" in ran.err and "yesterday" in ran.err


@pytest.mark.parametrize("name", ["now", "Today", "yesterday"])
def test_no_tag_is_called_like_a_time(cli: Cli, past: Past, name: str) -> None:
    assert cli("tag", past.path, name).err.startswith("[INVALID_NAME] ")


@pytest.mark.parametrize("age", ["2 days", "1h30m", "1 week", "90 minutes"])
def test_ages_are_typed_by_the_same_rules(cli: Cli, past: Past, age: str) -> None:
    assert cli("prune", past.path, "--older-than", age, "--force").code == 0


def test_the_help_says_what_a_time_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert "2 days ago" in " ".join(capsys.readouterr().out.split())
