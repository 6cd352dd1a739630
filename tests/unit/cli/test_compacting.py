"""``checkpoint --every`` as a process: a line a round, and an end when it is told to."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog

from .conftest import Cli, Past

COMMAND = [sys.executable, "-m", "bucketcatalog", "checkpoint"]


@pytest.fixture
def copied(past: Past, tmp_path: Path) -> Path:
    path = tmp_path / "catalog"
    shutil.copytree(past.path, path)
    return path


@contextmanager
def compacting(path: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """The command, gone at the end whatever happens."""
    command = [*COMMAND, str(path), "--all-writers", "--every", "1s", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_reports_each_round_and_ends_well_when_it_is_told_to(copied: Path, number: signal.Signals) -> None:
    with compacting(copied, "--json", "--writer", "compactor-1", "--min-transactions", "2") as process:
        first = line(process)
        assert (first["round"], first["due"], first["written"], first["waiting_transactions"]) == (1, "transactions", True, 2)
        assert first["bytes"] > 0 and first["rows"] > 0 and first["seconds"] >= 0 and first["writer"] == "compactor-1"
        second = line(process)
        assert (second["round"], second["due"], second["written"], second["waiting_transactions"]) == (2, None, False, 0)
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr is not None and process.stderr.read() == ""
    assert Catalog(copied).snapshot().view.tail == ()


def test_a_line_for_people_says_what_was_written(copied: Path) -> None:
    with compacting(copied, "--min-bytes", "1", "--max-age", "1d") as process:
        assert process.stdout is not None
        text = process.stdout.readline()
        assert "2 transactions of " in text and " written, 0 B used again, in " in text and ".ckpt" in text
        assert "0 transactions of 0 B waiting for 0s; nothing due" in process.stdout.readline()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--every", "30s"], "--all-writers"),
        (["--all-writers", "--every", "30s", "--full"], "leave --full out"),
        (["--all-writers", "--every", "0s"], "at least 1s"),
        (["--all-writers", "--every", "often"], "is not an age"),
        (["--all-writers", "--every", "30s", "--max-age", "0s"], "at 0 age"),
        (["--all-writers", "--min-transactions", "5"], "Add --every"),
    ],
)
def test_options_that_do_not_fit_are_refused(cli: Cli, copied: Path, options: list[str], said: str) -> None:
    refused = cli("checkpoint", copied, *options)
    assert refused.code == 2 and said in refused.err


def test_a_full_checkpoint_can_be_asked_for(cli: Cli, copied: Path) -> None:
    assert cli("checkpoint", copied, "--all-writers", "--json").document["reused_bytes"] == 0
    with Catalog(copied).writer("w") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": "11111111-1111-4111-8111-111111111111", "name": "new"})
    assert cli("checkpoint", copied, "--all-writers", "--json", "--full").document["reused_bytes"] == 0
    assert not cli("checkpoint", copied, "--all-writers", "--json", "--full").document["written"]
