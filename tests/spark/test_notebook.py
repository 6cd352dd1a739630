"""The notebook, as a user runs it: from a clone, in a working directory of their own, in a kernel that starts Spark itself."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import nbformat
import pytest

from ..kit.notebooks import displayed, printed, run

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "time_travel.ipynb"
pytestmark = [pytest.mark.once, pytest.mark.long]


def test_the_notebook_is_stored_without_outputs_and_its_cells_keep_their_names() -> None:
    notebook = nbformat.read(NOTEBOOK, nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert len({*ids}) == len(ids) and ids[:2] == ["title", "setup"]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all((cell.outputs, cell.execution_count, dict(cell.metadata)) == ([], None, {}) for cell in code)
    assert "PNG" not in NOTEBOOK.read_text()


def test_every_cell_runs_and_says_what_is_true(tmp_path: Path) -> None:
    done = run(nbformat.read(NOTEBOOK, nbformat.NO_CONVERT), tmp_path, seconds=240)

    months = range(1, 9)
    created = sum(30 + 5 * month + 12 for month in months)
    overwritten = sum(-(-(30 + 5 * month) // 5) for month in months[:-1])
    cleaned_up = 18 + 20
    deleted = 12 * len(months[:-1]) + cleaned_up
    counts = f"{created} created, {overwritten} overwritten, {deleted} deleted"
    lines = printed(done).splitlines()
    assert f"8 harvests: {counts}" in lines and f"churn: {counts}" in lines
    assert [line for line in lines if "pictures of January" in line] == [
        *(f"{how}: 35 pictures of January" for how in ("by version", "by tag", "by time")),
        "now: 17 pictures of January",
    ]
    assert f"the clean-up took {cleaned_up} pictures of 146 MB" in lines
    live = sum(30 + 5 * month for month in months) + 12 - cleaned_up
    assert [line for line in lines if line.startswith("live now: ")] == [f"live now: {live} objects, 1807 MB"]
    spark, python = (line.partition(": ")[2] for line in lines if "after the fifth harvest" in line)
    assert spark == python == f"{sum(30 + 5 * month for month in months[:5]) + 12} objects, 1145 MB"
    assert lines[-1].startswith("requests: ") and "table objects, live: 1 slices" in lines
    assert any(line.startswith("natively: 1 files, 237 rows") for line in lines)

    html = displayed(done, "text/html")
    for caption in ("tag before-clean-up", "database default", "table objects", "table tags", "plan: table objects, live"):
        assert any(f"<caption><b>{caption}</b></caption>" in shown for shown in html), caption
    said = displayed(done, "text/plain")
    assert any(line.startswith(f"harvesting  {live} seen: 82 created") for line in said)
    assert any(line.startswith("writing a checkpoint  ") for line in said)
    figures = [base64.b64decode(image) for image in displayed(done, "image/png")]
    assert len(figures) == 3
    for figure in figures:
        width, height = struct.unpack(">II", figure[16:24])
        assert figure.startswith(b"\x89PNG") and width > 400 and height > 200 and len(figure) > 5_000

    (written,) = (tmp_path / "tmpdir").glob("time-travel-*")
    assert lines[0] == f"catalog: {written / 'lake'}" and {path.name for path in written.iterdir()} == {"lake", "photos"}
    assert [*(tmp_path / "work").iterdir()] == []
