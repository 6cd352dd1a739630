"""The measured table in ``docs/guide/benchmarks.md``, made from what a run at full scale found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .results import line

BEGIN, END = "<!-- begin of the measured table -->", "<!-- end of the measured table -->"


def markdown(document: dict[str, Any]) -> str:
    """The goals and what was measured, with the machine and the versions."""
    machine, versions = document["machine"], document["versions"]
    peers = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()) if name != "bucketcatalog")
    rows = ["| measure | ours | peer or reference | ratio | goal | met |", "|---|---|---|---|---|---|"]
    for group in document["groups"].values():
        for measure in group.get("measures", []):
            if measure["goal"] is not None:
                met = {True: "yes", False: "**no**", None: "not comparable"}[measure["met"]]
                rows.append(f"| {' | '.join((*line(measure)[:5], met))} |")
    place = f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gb']} GB, {machine['file_system']}"
    return "\n".join([f"Measured on {place}, with {peers}.", "", *rows])


def update(page: Path, document: dict[str, Any]) -> None:
    """Put the table into the page, between its two marks."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{markdown(document)}\n\n{END}{after}")
