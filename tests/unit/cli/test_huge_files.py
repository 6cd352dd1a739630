"""A file of the log that is far too large: an error names it, within little memory and time, and reading past it gives the rest."""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bucketcatalog import Catalog, CatalogWarning, CorruptionError, limits
from bucketcatalog.cli import run
from bucketcatalog.store import LocalStore

from ...kit.world import bucket

TEBI = 1 << 40
KINDS = {".txn": "a transaction", ".ckpt": "a checkpoint"}


@pytest.fixture(autouse=True)
def _within_bounds() -> Iterator[None]:
    tracemalloc.start()
    began = time.monotonic()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * limits.LOG_FILE_BYTES
    assert time.monotonic() - began < 30


def huge(place: Path, suffix: str, size: int = TEBI) -> str:
    """Makes a file of another writer that long, without taking any room for it; gives its name.

    It is a transaction that no checkpoint covers, or a checkpoint.
    """
    with Catalog(place).writer("x") as writer:
        with writer.transaction() as tx:
            tx.put("buckets", bucket("theirs"))
        if suffix == ".ckpt":
            writer.checkpoint()
    *_, name = (info.name for info in LocalStore(place).list("x/") if info.name.endswith(suffix))
    os.truncate(place / name, size)
    return name


COMMANDS = {
    "ls": ["pets"],
    "stat": ["pets", "z"],
    "log": [],
    "changes": ["--table", "buckets"],
    "diff": ["--table", "buckets"],
    "info": [],
    "verify": [],
    "export": ["buckets", "out.parquet"],
    "checkpoint": ["--all-writers"],
    "prune": ["--older-than", "7d"],
    "gc": ["--data"],
}


def ran(catalog: Path, command: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """How a command ends, and all that it says."""
    code = run([command, str(catalog), *COMMANDS[command]])
    out, err = capsys.readouterr()
    return code, out + err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("_elsewhere")
def test_a_sparse_transaction_of_a_tebibyte_is_an_error_that_names_it(
    catalog: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = huge(catalog, ".txn")
    code, said = ran(catalog, command, capsys)
    assert code == 1, said
    assert name in said
    assert f"more than {limits.LOG_FILE_BYTES} bytes: it is not a transaction, none has so many" in said.replace("It has", "has")
    assert str(TEBI) not in said and str(limits.LOG_FILE_BYTES + 1) not in said, "nobody has seen how large it is"


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("_elsewhere")
def test_a_sparse_checkpoint_of_a_tebibyte_stops_by_its_name_who_needs_it(
    catalog: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever collects for everybody reads no plain writer's checkpoint."""
    name = huge(catalog, ".ckpt")
    code, said = ran(catalog, command, capsys)
    if command == "gc":
        assert (code, name in said) == (0, False), said
        return
    assert code == 1, said
    assert name in said
    assert f"more than {limits.LOG_FILE_BYTES} bytes: it is not a checkpoint, none has so many" in said


@pytest.fixture
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("suffix", "there"), [(".txn", ["pets"]), (".ckpt", ["pets", "theirs"])])
def test_the_others_rows_are_read_past_it(catalog: Path, suffix: str, there: list[str]) -> None:
    name = huge(catalog, suffix)
    if suffix == ".ckpt":
        snapshot = Catalog(catalog).snapshot(ignore_corruption=True)
    else:
        with pytest.warns(CatalogWarning, match=name):
            snapshot = Catalog(catalog).snapshot(ignore_corruption=True)
        assert snapshot.missing[0].file == name
    assert sorted(snapshot.scan("buckets").to_arrow()["name"].to_pylist()) == there


@pytest.mark.parametrize("suffix", KINDS)
def test_dump_makes_nothing_of_it_and_says_how_large_it_is(
    catalog: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = huge(catalog, suffix)
    for file in (str(catalog / name), f"file://{catalog / name}"):
        assert run(["dump", file]) == 0
        out = capsys.readouterr().out
        assert "1.1 TB, DAMAGED" in out and f"it is not {KINDS[suffix]}, none has so many" in out


@pytest.mark.parametrize("file", ["huge", "huge.parquet"])
def test_dump_of_a_huge_file_of_another_name_reads_its_beginning(
    tmp_path: Path, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / file).write_bytes(b"PAR1")
    os.truncate(tmp_path / file, TEBI)
    assert run(["dump", str(tmp_path / file)]) == 0
    assert "1.1 TB" in capsys.readouterr().out


def test_dump_reads_a_pipe_to_its_end(catalog: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (name,) = (info.name for info in LocalStore(catalog).list("w/") if "/00000000000000000000/" in info.name)
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        fed = pool.submit((tmp_path / "pipe").write_bytes, (catalog / name).read_bytes())
        assert run(["dump", str(tmp_path / "pipe")]) == 0
        fed.result()
    assert "pipe: txn, " in (said := capsys.readouterr().out) and "intact" in said


NONE = {"pipe": os.mkfifo, "directory": os.mkdir, "device": lambda path: Path(path).symlink_to("/dev/zero")}


@pytest.mark.parametrize("make", NONE.values(), ids=NONE)
@pytest.mark.parametrize(
    "name", ["x.txn", "x.ckpt", "x.parquet", "newest/99999999999999999999-00000000-0000-7000-8000-000000000000"]
)
def test_dump_waits_for_nothing_that_is_named_as_a_file_of_a_catalog_and_is_none(
    tmp_path: Path, make: Callable[[Path], None], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    make(tmp_path / name)
    assert run(["dump", str(tmp_path / name)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"[OBJECT_NOT_FOUND] {str(tmp_path / name)!r} is a pipe, a device or a directory")


def test_a_file_at_the_bound_is_read_and_one_above_it_is_not(catalog: Path) -> None:
    """What is wrong with the first is its checksum: it was read whole."""
    name = huge(catalog, ".txn", limits.LOG_FILE_BYTES)
    with pytest.raises(CorruptionError) as caught:
        Catalog(catalog).snapshot()
    assert name in caught.value.message and "none has so many" not in caught.value.message
    os.truncate(catalog / name, limits.LOG_FILE_BYTES + 1)
    with pytest.raises(CorruptionError, match="none has so many"):
        Catalog(catalog).snapshot()
