"""The blocks of the documentation that need Spark run, and so do the examples."""

from __future__ import annotations

import re
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from ..kit.blocks import ROOT, blocks_of, files_with, run_blocks

pytestmark = pytest.mark.once

EXAMPLES = [
    path for path in sorted(ROOT.glob("examples/*.py")) if "pyspark" in path.read_text() and not path.name.startswith("demo")
]
FOLDERS = re.compile(r"""(["'])(lake|incoming|received|state/\w+)\1""")
"""What the documents call the folders of their examples."""


@pytest.mark.parametrize("file", files_with("python spark", "bash spark"), ids=lambda file: str(file.relative_to(ROOT)))
def test_spark_blocks_run(file: Path, tmp_path: Path, spark: SparkSession) -> None:
    # The session runs in another folder, so what the documents name has to be said in full.
    blocks = [replace(b, text=FOLDERS.sub(rf"\1{tmp_path}/\2\1", b.text)) for b in blocks_of(file)]
    try:
        run_blocks(blocks, tmp_path, {"spark": spark}, skip=frozenset({"bash postgres"}))
    finally:
        for table in spark.catalog.listTables():
            kind = "VIEW" if table.isTemporary else "TABLE"
            spark.sql(f"DROP {kind} IF EXISTS `{table.name}`")


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_spark_examples_run(
    file: Path, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(file), str(tmp_path / "lake")])
    runpy.run_path(str(file), run_name="__main__")

    assert capsys.readouterr().out


def test_there_is_something_to_run() -> None:
    assert EXAMPLES
    assert files_with("python spark")
