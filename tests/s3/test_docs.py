"""The blocks of the documentation that need an S3 server run, on one that was filled as ``make minio`` fills it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from bucketcatalog.store.s3.options import S3Options
from minio.process import Server
from minio.seed import seed

from ..kit.blocks import ROOT, blocks_of, files_with, run_blocks

OTHER = frozenset({"bash", "python", "bash spark", "python spark"})


@pytest.fixture(scope="module")
def seeded() -> Iterator[Server]:
    with Server() as running:
        seed(running.storage_options)
        yield running


@pytest.fixture
def environment(seeded: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``make minio`` says to export."""
    given = {"ENDPOINT_URL": "endpoint_url", "ACCESS_KEY_ID": "key", "SECRET_ACCESS_KEY": "secret", "REGION": "region"}
    for name, option in given.items():
        monkeypatch.setenv(f"AWS_{name}", seeded.storage_options[option])


@pytest.mark.parametrize("file", files_with("bash s3", "python s3"), ids=lambda file: str(file.relative_to(ROOT)))
def test_s3_blocks_run(file: Path, tmp_path: Path, environment: None) -> None:
    run_blocks(blocks_of(file), tmp_path, {}, skip=OTHER)


def test_there_is_something_to_run() -> None:
    assert files_with("bash s3") and files_with("python s3")


def test_the_guide_has_every_option() -> None:
    text = (ROOT / "docs" / "guide" / "s3.md").read_text()
    documented = {line.split("|")[1] for line in text.splitlines() if line.startswith("| `")}
    names = [name.strip(" `") for cell in documented for name in cell.split(",")]

    assert sorted(names) == sorted(option.name for option in fields(S3Options))
