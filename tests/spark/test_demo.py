"""The demo, on a small tree: every step of it works, and what it leaves can be used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo.sh"


def _tree(root: Path) -> None:
    for top in ("bin", "lib", "share"):
        for number in range(40):
            file = root / top / f"part-{number % 4}" / f"file-{number}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{top} {number}\n")


@pytest.mark.once
def test_demo_on_a_small_tree_shows_every_step_and_leaves_its_catalog(tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "demo"
    _tree(source)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "DEMO_SOURCE": str(source),
        "DEMO_DIR": str(folder),
        "PYSPARK_PYTHON": sys.executable,
    }
    done = subprocess.run([str(DEMO)], env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    titles = [line for line in done.stdout.splitlines() if line.startswith("== ")]
    assert len(titles) == 6, done.stdout
    assert "added-by-the-demo" in done.stdout
    assert "Done in" in done.stdout
    listed = subprocess.run(
        [sys.executable, "-m", "bucketcatalog", "ls", str(folder / "catalog"), "copy", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "added-by-the-demo" in listed.stdout
