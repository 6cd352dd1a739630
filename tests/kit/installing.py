"""Systems as packages of their own, installed for a test: the one in ``tests/kit/boxes``, and others that are made up."""

from __future__ import annotations

import tomllib
from pathlib import Path

BOXES = Path(__file__).resolve().parent / "boxes"


def installed(folder: Path, name: str, value: str, source: str | None = None) -> Path:
    """A folder for ``sys.path`` in which the distribution of a system is: its entry point, and its module where a source is given."""
    info = folder / f"bucketcatalog_{name}-1.0.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: bucketcatalog-{name}\nVersion: 1.0.0\n")
    (info / "entry_points.txt").write_text(f"[bucketcatalog.systems]\n{name} = {value}\n")
    if source is not None:
        (folder / f"{value.partition(':')[0]}.py").write_text(source)
    return folder


def boxes(folder: Path) -> list[Path]:
    """What makes the system of boxes installed, as its ``pyproject.toml`` says, where these stand on ``sys.path``."""
    said = tomllib.loads((BOXES / "pyproject.toml").read_text())["project"]["entry-points"]["bucketcatalog.systems"]
    ((name, value),) = said.items()
    return [installed(folder / "boxes-installed", name, value), BOXES]
