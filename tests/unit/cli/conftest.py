"""Runs commands in this process, on a small catalog with a past."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.cli import run
from bucketcatalog.harvest import harvest

NAMES = ["a/b", "a/c", "a-", "new\nline", "esc\x1b[31m", "\u202etxt.exe", "back\\slash", "nul", "d\u00e9", "z"]


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed where."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output, which is one JSON document and nothing else."""
        (line,) = self.out.splitlines()
        return json.loads(line)

    @property
    def lines(self) -> list[Any]:
        """Standard output, which is JSON lines and nothing else."""
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Ran]


@pytest.fixture
def cli(capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Runs one command; a successful one says nothing on standard error, a failed one exactly one line and nothing on standard output."""

    def call(*arguments: object) -> Ran:
        code = run([str(argument) for argument in arguments])
        out, err = (text.decode() for text in capsysbinary.readouterr())
        assert "Traceback" not in err
        if code == 0:
            assert err == ""
        else:
            assert out == ""
        return Ran(code, out, err)

    return call


@dataclass(frozen=True)
class Past:
    """A catalog of one source that was harvested, changed and harvested again: ``first`` is the version between."""

    path: Path
    source: Path
    first: str
    between: str


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    folder = tmp_path_factory.mktemp("cli")
    source, path = folder / "source", folder / "catalog"
    for name in NAMES:
        file = source / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    (source / "link").symlink_to("z")
    (Path(os.fsdecode(os.fsencode(source) + b"/bad\xff"))).write_text("")
    catalog = Catalog(path)
    harvest(catalog, source, bucket="pets", writer="w")
    first = catalog.snapshot().version
    time.sleep(0.002)
    between = f"@{time.time_ns() // 1_000}"
    time.sleep(0.002)
    (source / "z").write_text("longer than before")
    (source / "a" / "c").unlink()
    (source / "added").write_text("")
    harvest(catalog, source, bucket="pets", writer="w")
    return Past(path, source, first, between)


@pytest.fixture
def catalog(past: Past, tmp_path: Path) -> Path:
    """A copy of the catalog, to be changed or damaged."""
    return Path(shutil.copytree(past.path, tmp_path / "catalog"))
