"""The examples run as a user would run them. Those that need Spark run in tests/spark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..kit.blocks import ROOT

EXAMPLES = [p for p in sorted(ROOT.glob("examples/*.py")) if "pyspark" not in p.read_text() and not p.name.startswith("demo")]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_run(example: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(example), str(tmp_path / "lake")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout
    assert f"python examples/{example.name}" in example.read_text()


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
