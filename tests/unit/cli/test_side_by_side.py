"""Commands at one time on one machine, as cron starts them: they take turns under the machine's own writers, and fork none."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, WriterBusy, clock
from bucketcatalog.cli import run
from bucketcatalog.harvest import default_writer, harvest
from bucketcatalog.harvest.open import open_source
from bucketcatalog.maintain.compactor import Compactor, Policy
from bucketcatalog.model.names import WriterId, host_writer
from bucketcatalog.store import MemoryStore, Store
from bucketcatalog.store.s3.store import S3Store
from bucketcatalog.write import host_turn as turns
from bucketcatalog.write.host_turn import host_turn

from ...kit.installing import boxes

MAINTAINER, COMPACTOR = host_writer("maintainer-"), host_writer("compactor-")
SLOWLY = """
import sys, time
from bucketcatalog.cli import run
from bucketcatalog.store.local import LocalStore
put = LocalStore.put
def slow(self, name, data):
    time.sleep(0.3)
    put(self, name, data)
LocalStore.put = slow
sys.exit(run(sys.argv[1:]))
"""
HOLDING = """
import sys, time
from bucketcatalog.store import open_store
from bucketcatalog.write.host_turn import host_turn
url, writer = sys.argv[1:]
with host_turn(open_store(url), "default", named=None, default=writer):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def lake(tmp_path: Path) -> Catalog:
    """A catalog with an object in it, that nothing else has a lock for."""
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a").write_text("a")
    catalog = Catalog(tmp_path / "lake")
    harvest(catalog, tmp_path / "source", bucket="b", writer="w")
    return catalog


@contextmanager
def held_beside(store: Store, writer: str) -> Iterator[None]:
    """Another thread of this process has the writer open."""
    began, ends = threading.Event(), threading.Event()

    def hold() -> None:
        with host_turn(store, "default", named=None, default=WriterId(writer)):
            began.set()
            ends.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        began.wait()
        yield
    finally:
        ends.set()
        thread.join()


@contextmanager
def held(url: str, writer: str) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that has the writer open; it is killed in the end."""
    with subprocess.Popen([sys.executable, "-c", HOLDING, url, writer], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def at_once(*commands: list[str]) -> list[tuple[str, str]]:
    """What commands print that begin together, each of whose puts takes a while."""
    begun = [
        subprocess.Popen([sys.executable, "-c", SLOWLY, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    printed = [process.communicate(timeout=300) for process in begun]
    assert [process.returncode for process in begun] == [0] * len(begun), printed
    return printed


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waiting takes no time; returns the seconds that were waited."""
    waited: list[float] = []
    monkeypatch.setattr(clock, "monotonic", lambda: sum(waited))
    monkeypatch.setattr(clock, "sleep", waited.append)
    return waited


def test_tags_given_at_once_are_all_given_and_fork_nothing(lake: Catalog) -> None:
    names = [f"t{number}" for number in range(4)]
    printed = at_once(*(["tag", lake.url, name] for name in names))
    assert {row["name"] for row in lake.snapshot(strict=True).scan("tags").to_arrow().to_pylist()} == set(names)
    assert lake.snapshot().scan("forks").to_arrow().num_rows == 0
    told = [line for _, err in printed for line in err.splitlines()]
    assert told and all(MAINTAINER in line and lake.url in line and "process" in line and "Waiting" in line for line in told)


def test_checkpoints_prunes_and_tags_at_once_fork_nothing(lake: Catalog) -> None:
    at_once(
        ["checkpoint", lake.url, "--all-writers"],
        ["checkpoint", lake.url, "--all-writers", "--full"],
        ["prune", lake.url, "--older-than", "0s", "--force", "--yes"],
        ["tag", lake.url, "meanwhile"],
    )
    assert lake.snapshot(strict=True).scan("forks").to_arrow().num_rows == 0
    assert {w for w in lake.snapshot().cut.heads if w != "w"} == {MAINTAINER, COMPACTOR}


def test_harvests_of_a_source_at_once_take_turns(lake: Catalog, tmp_path: Path) -> None:
    at_once(*(["harvest", str(tmp_path / "source"), lake.url, "--bucket", "c"] for _ in range(2)))
    assert lake.snapshot(strict=True).scan("forks").to_arrow().num_rows == 0
    assert len(lake.snapshot().cut.heads[default_writer(open_source(tmp_path / "source"))]) == 1


def test_who_was_killed_keeps_nobody_waiting(lake: Catalog, impatient: list[float]) -> None:
    with held(lake.url, MAINTAINER) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        lake.tag("after")
    assert impatient == []


def test_who_waits_for_too_long_says_for_whom(lake: Catalog, impatient: list[float]) -> None:
    with held(lake.url, MAINTAINER) as process, pytest.raises(WriterBusy) as caught:
        lake.tag("never")
    assert sum(impatient) == pytest.approx(turns.PATIENCE)
    assert caught.value.code == "WRITER_BUSY" and caught.value.next_step
    assert f"process {process.pid} " in str(caught.value) and MAINTAINER in str(caught.value)
    assert lake.snapshot().scan("tags").to_arrow().num_rows == 0


def test_the_command_says_that_it_waits_and_ends_with_1(
    lake: Catalog, impatient: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    with held(lake.url, MAINTAINER) as process:
        assert run(["tag", lake.url, "never"]) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("warning: ") and "Waiting" in told[0] and f"process {process.pid} " in told[0]
    assert told[-1].startswith("[WRITER_BUSY] ")


@pytest.mark.parametrize("call", ["drop", "prune", "repair", "restore", "reap", "collect", "clone", "harvest", "checkpoint"])
def test_everything_that_opens_the_machines_writer_waits_for_it(
    lake: Catalog, tmp_path: Path, impatient: list[float], call: str
) -> None:
    source = tmp_path / "source"
    calls = {
        "drop": lambda: lake.drop_tag("t"),
        "prune": lambda: lake.prune("0s", force=True, dry_run=False),
        "repair": lambda: lake.repair(dry_run=False),
        "restore": lambda: lake.restore("objects", version="w@0", dry_run=False),
        "reap": lambda: lake.reap(dry_run=False),
        "collect": lambda: lake.collect(dry_run=False),
        "clone": lambda: lake.clone(tmp_path / "other"),
        "harvest": lambda: harvest(lake, source, bucket="b"),
        "checkpoint": lambda: run(["checkpoint", lake.url, "--all-writers"]),
    }
    writer = {"harvest": default_writer(open_source(source)), "checkpoint": COMPACTOR}.get(call, MAINTAINER)
    before = [info.name for info in lake.store.list("")]
    with held_beside(lake.store, writer):
        if call == "checkpoint":
            assert calls[call]() == 1
        else:
            with pytest.raises(WriterBusy, match=writer):
                calls[call]()
    assert sum(impatient) == pytest.approx(turns.PATIENCE)
    assert [info.name for info in lake.store.list("")] == before


def test_dry_runs_named_writers_and_other_databases_wait_for_nobody(lake: Catalog, impatient: list[float]) -> None:
    with lake.writer("w", database="other") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": "11111111-1111-4111-8111-111111111111", "name": "x"})
    with host_turn(lake.store, "default", named=None, default=MAINTAINER):
        lake.prune("0s", force=True, database="default")
        lake.repair(database="default")
        lake.tag("named", writer="maintainer-mine", database="default")
        lake.tag("elsewhere", database="other")
    assert impatient == []


def test_a_path_is_one_place_however_it_is_written(lake: Catalog, tmp_path: Path, impatient: list[float]) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    with held_beside(lake.store, MAINTAINER), pytest.raises(WriterBusy):
        Catalog(tmp_path / "link").tag("t")
    assert impatient


def within_a_repair(lake: Catalog, source: Path, nested: Callable[[], object]) -> None:
    lake.repair(dry_run=False, tell=lambda _: nested())


def within_a_harvest(lake: Catalog, source: Path, nested: Callable[[], object]) -> None:
    harvest(lake, source, bucket="b", progress=lambda _: nested())


def within_a_job(lake: Catalog, source: Path, nested: Callable[[], object]) -> None:
    lake.run_job("boxes.repack", writer=None, run=lambda tasks, store: [nested()])


@pytest.mark.parametrize(
    ("call", "nested"),
    [
        (within_a_repair, lambda lake, source: lake.tag("nested")),
        (within_a_harvest, lambda lake, source: harvest(lake, source, bucket="b")),
        (within_a_job, lambda lake, source: lake.run_job("boxes.repack")),
    ],
)
def test_who_would_wait_for_itself_is_told_so_at_once(
    lake: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, impatient: list[float], call: Any, nested: Any
) -> None:
    for folder in boxes(tmp_path):
        monkeypatch.syspath_prepend(folder)
    source = tmp_path / "source"
    (source / "b").write_text("b")
    lake = Catalog(lake.url)
    with lake.writer("w") as writer, writer.transaction() as tx:
        tx.put("packed.a", {"size": 1})
    before = lake.snapshot().cut
    with pytest.raises(WriterBusy, match="this thread, which would wait for itself") as caught:
        call(lake, source, lambda: nested(lake, source))
    assert "within" in str(caught.value.next_step)
    assert impatient == []
    assert lake.snapshot().cut.heads.keys() == before.heads.keys()
    nested(lake, source)
    assert impatient == []


def test_a_thread_that_has_ended_is_not_taken_for_one_that_waits(lake: Catalog, impatient: list[float]) -> None:
    left = ExitStack()
    thread = threading.Thread(target=lambda: left.enter_context(host_turn(lake.store, "default", named=None, default=MAINTAINER)))
    thread.start()
    thread.join()
    with pytest.raises(WriterBusy, match="after 600 s"):
        lake.tag("never")
    assert sum(impatient) == pytest.approx(turns.PATIENCE)
    left.close()
    lake.tag("afterwards")


def test_a_forked_process_waits_for_who_made_it(lake: Catalog, impatient: list[float]) -> None:
    with host_turn(lake.store, "default", named=None, default=MAINTAINER):
        child = os.fork()
        if child == 0:
            try:
                lake.tag("never")
            except WriterBusy as error:
                os._exit(7 if "after 600 s" in str(error) else 8)
            os._exit(9)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_a_compaction_does_without_a_round_while_its_writer_is_open(lake: Catalog, impatient: list[float]) -> None:
    rounds = Compactor(lake, "default", policy=Policy(), every=1).rounds()
    with host_turn(lake.store, "default", named=None, default=COMPACTOR):
        first = next(rounds)
    assert isinstance(first.error, WriterBusy) and first.result is None
    assert next(rounds).result is not None
    with pytest.raises(WriterBusy), host_turn(lake.store, "default", named=None, default=COMPACTOR, patience=0):
        pass
    rounds.close()  # type: ignore[attr-defined]
    with host_turn(lake.store, "default", named=None, default=COMPACTOR, patience=0):
        pass


class TestPlaces:
    """Where a lock can be had, and what happens where none can."""

    def test_a_file_that_was_tidied_away_is_made_again(self, lake: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
        flock = fcntl.flock
        removed: list[Path] = []

        def tidied(file: int, how: int) -> None:
            flock(file, how)
            if not removed:
                removed.append(Path(f"/proc/self/fd/{file}").readlink())
                removed[0].unlink()

        monkeypatch.setattr(fcntl, "flock", tidied)
        with host_turn(lake.store, "default", named=None, default=MAINTAINER):
            assert removed[0].read_text() == f"{os.getpid()}\n"
            with pytest.raises(WriterBusy), host_turn(lake.store, "default", named=None, default=MAINTAINER, patience=0):
                pass

    @pytest.mark.parametrize("what", ["file", "link", "unwritable", "absent"])
    def test_a_command_goes_on_with_a_word_where_no_lock_can_be_had(
        self, lake: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, what: str
    ) -> None:
        root = tmp_path / "root"
        if what != "absent":
            root.mkdir()
        place = root / f"bucketcatalog-{os.getuid()}"
        if what == "file":
            place.write_text("")
        elif what == "link":
            place.symlink_to(tmp_path)
        elif what == "unwritable":
            monkeypatch.setattr(fcntl, "flock", _refusing)
        monkeypatch.setattr(turns, "_ROOT", root)
        with caplog.at_level(logging.WARNING, "bucketcatalog"):
            lake.tag("t")
        (record,) = caplog.records
        assert MAINTAINER in record.getMessage() and "no lock" in record.getMessage()

    def test_the_directory_is_the_users_alone(self, lake: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(turns, "_ROOT", tmp_path)
        lake.tag("t")
        place = tmp_path / f"bucketcatalog-{os.getuid()}"
        assert place.stat().st_mode & 0o777 == 0o700
        assert [file.stat().st_mode & 0o777 for file in place.iterdir()] == [0o600]


def _refusing(file: int, how: int) -> None:
    raise OSError(37, "No locks available")


def test_buckets_of_one_name_at_two_servers_are_two(impatient: list[float]) -> None:
    def store(port: int) -> S3Store:
        return S3Store("s3://side-by-side/lake", {"endpoint_url": f"http://127.0.0.1:{port}", "key": "a", "secret": "b"})

    with host_turn(store(1), "default", named=None, default=MAINTAINER):
        with host_turn(store(2), "default", named=None, default=MAINTAINER):
            assert impatient == []
        with pytest.raises(WriterBusy), host_turn(store(1), "default", named=None, default=MAINTAINER):
            pass


def test_stores_of_one_process_need_no_lock(impatient: list[float]) -> None:
    with (
        host_turn(MemoryStore("lake"), "default", named=None, default=MAINTAINER),
        host_turn(MemoryStore("lake"), "default", named=None, default=MAINTAINER) as second,
    ):
        assert second == MAINTAINER
    assert impatient == []
