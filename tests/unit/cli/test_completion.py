"""Completion: what a shell is told of how a command line goes on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bucketcatalog.cli.commands import COMPLETES, GROUPS, to_complete

from .conftest import Cli


def completed(line: str, *, shell: str = "bash") -> list[str]:
    """What there is to choose from at the end of a line."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)} if shell == "bash" else {"_TYPER_COMPLETE_ARGS": line}
    environment = {**os.environ, **asked, COMPLETES: f"complete_{shell}"}
    start = [sys.executable, "-c", "import sys; sys.argv = ['bucketcatalog']; from bucketcatalog.cli import main; main()"]
    ran = subprocess.run(start, capture_output=True, text=True, check=True, env=environment)
    assert ran.stderr == ""
    return ran.stdout.splitlines()


def test_commands_of_the_program_and_of_systems_are_completed() -> None:
    assert {*completed("bucketcatalog ")} >= {*(name for names in GROUPS.values() for name in names), "manta", "iox"}
    assert completed("bucketcatalog fi") == ["find"]
    assert completed("bucketcatalog manta up") == ["update"]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_options_of_a_command_are_completed(shell: str) -> None:
    told = "".join(completed("bucketcatalog find lake --la", shell=shell))
    assert "--larger" in told and "--limit" not in told


@pytest.mark.parametrize(
    ("environment", "asked"),
    [
        ({"COMP_WORDS": "bucketcatalog ls ", "COMP_CWORD": "2"}, []),
        ({COMPLETES: "complete_bash", "COMP_WORDS": "bucketcatalog ls ", "COMP_CWORD": "2"}, ["ls"]),
        ({COMPLETES: "complete_bash", "COMP_WORDS": "bucketcatalog l lake", "COMP_CWORD": "1"}, []),
        ({COMPLETES: "complete_zsh", "_TYPER_COMPLETE_ARGS": "bucketcatalog l"}, []),
        ({COMPLETES: "complete_zsh", "_TYPER_COMPLETE_ARGS": "bucketcatalog ls --l"}, ["ls"]),
        ({COMPLETES: "complete_fish"}, []),
    ],
)
def test_only_the_command_is_imported_whose_rest_is_asked_for(environment: dict[str, str], asked: list[str]) -> None:
    assert to_complete(environment) == asked


def test_what_a_shell_has_to_be_told_is_shown(cli: Cli) -> None:
    ran = cli("--show-completion", "bash")
    assert ran.code == 0 and COMPLETES in ran.out
