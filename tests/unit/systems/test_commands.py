"""What the help and the commands of the program say of systems that cannot be used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bucketcatalog.cli import run

from ...kit.installing import installed

SYSTEM = "from bucketcatalog.registry import System\nSYSTEM = System({!r}, commands={!r})\n"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["do"], ["do", "--help"], ["--json", "x"]], ids=" ".join)
@pytest.mark.parametrize(
    ("name", "commands", "why"),
    [
        ("unnamed", "7", "its field commands is '7', and has to be"),
        ("unfound", "nowhere_at_all:APP", "its field commands names 'nowhere_at_all:APP', which cannot be imported"),
        ("no_app", "sys:argv", "sys:argv is a list, and has to be a typer app"),
    ],
)
def test_a_broken_system_says_so_whatever_is_asked_of_it(
    name: str,
    commands: str,
    why: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path, name, f"cli_{name}:SYSTEM", SYSTEM.format(name, commands)))
    assert run([name, *arguments]) == 1
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 1
    assert told.err.startswith(f"[BROKEN_SYSTEM] The system {name!r} cannot be used: ") and why in told.err


def test_the_help_imports_no_system_and_tells_what_it_knows_without(tmp_path: Path) -> None:
    folders = [installed(tmp_path / "loud", "loud", "cli_loud:SYSTEM", "raise RuntimeError('imported')")]
    folders += [installed(tmp_path / "ls", "ls", "cli_ls:SYSTEM", "raise RuntimeError('imported')")]
    for which in ("p", "q"):
        folder = installed(tmp_path / which, "twice", f"cli_{which}:SYSTEM")
        info = folder / "bucketcatalog_twice-1.0.0.dist-info"
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: twice-{which}\nVersion: 1\n")
        info.rename(folder / f"twice_{which}-1.dist-info")
        folders.append(folder)
    environment = os.environ | {"PYTHONPATH": ":".join([*map(str, folders), *sys.path]), "COLUMNS": "200"}
    command = [sys.executable, "-W", "error", "-m", "bucketcatalog", "--help"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.startswith("  ") and line.strip()}
    assert "Commands of the system loud." in lines["loud"]
    assert "The system 'twice' cannot be used" in lines["twice"]
    assert "List buckets" in lines["ls"], lines["ls"]
