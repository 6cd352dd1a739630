"""The guide's tables."""

from __future__ import annotations

import re
from pathlib import Path

from ..kit.blocks import ROOT

GUIDE = ROOT / "docs" / "guide"


def table_rows(file: Path, heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    text = file.read_text().partition(f"\n{heading}\n")[2]
    found: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("|"):
            found.append([cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif found:
            break
    return found[2:]
