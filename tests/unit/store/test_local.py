"""The local store: the contract, what its files are, what it syncs, and what others do to the directory."""

from __future__ import annotations

import errno
import gc
import multiprocessing
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import clock
from bucketcatalog.errors import AccessDenied, InvalidName, ObjectNotFound, OutcomeUnknown, StoreError, StoreUnavailable
from bucketcatalog.store import LocalStore, Store

from ...kit.store_contract import StoreContract, names_of

OPENED_DIRECTORIES: list[str] = []
"""Paths given to ``os.scandir`` while the fixture ``scanned`` is in use; audit hooks cannot be removed, so one serves all tests."""


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "os.scandir" and isinstance(arguments[0], bytes):
        OPENED_DIRECTORIES.append(os.fsdecode(arguments[0]))


sys.addaudithook(_audit)


class TestLocalStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return LocalStore(tmp_path / "not" / "made" / "yet")


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that are synced from here on; ``fsync`` still does its work."""
    paths: list[str] = []
    fsync = os.fsync

    def recording(fd: int) -> None:
        paths.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", recording)
    return paths


@pytest.fixture
def failing_sync(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Lets the sync numbered ``at`` from now on fail."""
    plan = {"at": -1}
    fsync = os.fsync

    def failing(fd: int) -> None:
        plan["at"] -= 1
        if plan["at"] == -1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", failing)
    return plan


def files_below(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_opening_and_reading_make_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "root")
    assert names_of(store.list("")) == store.list_prefixes("") == []
    with pytest.raises(ObjectNotFound):
        store.get("a")
    store.delete("a/b")
    assert not (tmp_path / "root").exists()


def test_objects_are_plain_files_that_others_may_read(tmp_path: Path) -> None:
    umask = os.umask(0o022)
    try:
        LocalStore(tmp_path).put("a/b", b"x")
    finally:
        os.umask(umask)
    assert (tmp_path / "a" / "b").read_bytes() == b"x"
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


def test_relative_root_stays_where_it_was_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = LocalStore("root")
    store.put("a", b"x")
    pickled = pickle.dumps(store)
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert store.get("a") == pickle.loads(pickled).get("a") == b"x"
    assert store.url == str(tmp_path / "root")


def test_stray_temporary_file_is_invisible(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("w/t/0/x", b"x")
    (tmp_path / "w" / "t" / "1").mkdir()
    (tmp_path / "v" / "t").mkdir(parents=True)
    for stray in ["w/t/1/.put-0011223344556677", "w/t/0/.put-0011223344556677", "v/t/.put-0", ".put-1"]:
        (tmp_path / stray).write_bytes(b"half")
    assert names_of(store.list("")) == ["w/t/0/x"]
    assert store.list_prefixes("") == ["w"]
    assert store.list_prefixes("w/t/") == ["0"]


def test_temporary_files_are_gone_after_every_put(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for number in range(5):
        store.put(f"t/{number % 2}/x{number}", b"x")
    assert files_below(tmp_path) == names_of(store.list(""))


def test_put_over_a_directory_fails_and_leaves_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("a/b/c", b"x")
    with pytest.raises(StoreUnavailable, match=r"Cannot put 'a/b' .* Is a directory. Next: Move away the directory"):
        store.put("a/b", b"y")
    assert files_below(tmp_path) == ["a/b/c"]


def test_put_below_an_object_fails_and_leaves_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("a/b", b"x")
    with pytest.raises(StoreUnavailable, match="Move away the file that stands where a directory is needed"):
        store.put("a/b/c/d", b"y")
    assert files_below(tmp_path) == ["a/b"]


def test_name_that_the_file_system_cannot_hold_is_invalid(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for call in (lambda: store.put("a/" + "é" * 128, b"x"), lambda: store.get("x" * 256), lambda: store.delete("x" * 256)):
        with pytest.raises(InvalidName, match="at most 255 bytes"):
            call()


@pytest.mark.parametrize("number", range(2))
def test_failed_sync_before_the_rename_leaves_nothing(tmp_path: Path, failing_sync: dict[str, int], number: int) -> None:
    store = LocalStore(tmp_path / "root")
    failing_sync["at"] = number  # of the directory above the root, of the file
    with pytest.raises(StoreUnavailable, match="Input/output error"):
        store.put("a/b", b"x")
    assert files_below(tmp_path) == []
    store.put("a/b", b"x")
    assert store.get("a/b") == b"x"


@pytest.mark.parametrize("number", range(2, 4))
def test_failed_sync_after_the_rename_is_an_unknown_outcome(tmp_path: Path, failing_sync: dict[str, int], number: int) -> None:
    store = LocalStore(tmp_path / "root")
    failing_sync["at"] = number
    with pytest.raises(OutcomeUnknown, match="'a/b'"):
        store.put("a/b", b"x")
    failing_sync["at"] = 2  # nothing above was remembered as durable: the retry syncs it all again, and fails again
    with pytest.raises(OutcomeUnknown):
        store.put("a/b", b"x")
    store.put("a/b", b"x")
    assert files_below(tmp_path / "root") == ["a/b"]


def test_new_directories_are_synced_into_their_parents_up_to_what_was_there(tmp_path: Path, synced: list[str]) -> None:
    store = LocalStore(tmp_path / "above" / "root")
    store.put("w/t/0/x", b"x")
    root = tmp_path / "above" / "root"
    expected = [tmp_path, root.parent, root, root / "w", root / "w" / "t", root / "w" / "t" / "0"]
    assert {path for path in synced if ".put-" not in path} == set(map(str, expected))


def test_put_into_a_new_directory_syncs_three_times(tmp_path: Path, synced: list[str]) -> None:
    store = LocalStore(tmp_path)
    store.put("w/t/0/x", b"x")
    synced.clear()
    store.put("w/t/1/x", b"x")
    assert [Path(path).name[:5] for path in synced] == [".put-", "1", "t"]


def test_put_into_a_known_directory_syncs_twice(tmp_path: Path, synced: list[str]) -> None:
    store = LocalStore(tmp_path)
    for number in range(3):
        synced.clear()
        store.put(f"segments/{number}", b"x")
    assert [Path(path).name[:8] for path in synced] == [synced[0].rpartition("/")[2][:8], "segments"]


def test_directory_made_by_somebody_else_is_synced_before_it_is_trusted(tmp_path: Path, synced: list[str]) -> None:
    (tmp_path / "w" / "t" / "0").mkdir(parents=True)
    LocalStore(tmp_path).put("w/t/0/x", b"x")
    assert {str(tmp_path / path) for path in ["", "w", "w/t", "w/t/0"]} <= set(synced)


def test_directory_replaced_by_another_is_synced_again(tmp_path: Path, synced: list[str]) -> None:
    store = LocalStore(tmp_path)
    for number in range(2):
        store.put(f"w/segments/{number}", b"x")
    shutil.rmtree(tmp_path / "w")
    (tmp_path / "w" / "segments").mkdir(parents=True)
    synced.clear()
    store.put("w/segments/2", b"x")
    assert {str(tmp_path), str(tmp_path / "w"), str(tmp_path / "w" / "segments")} <= set(synced)
    assert names_of(store.list("")) == ["w/segments/2"]


@pytest.mark.parametrize("gone", ["root", "root/w", "root/w/t", "root/w/t/0"])
def test_put_makes_again_what_somebody_removed(tmp_path: Path, gone: str) -> None:
    store = LocalStore(tmp_path / "root")
    for number in range(3):
        store.put(f"w/t/0/{number}", b"x")
    shutil.rmtree(tmp_path / gone)
    store.put("w/t/0/3", b"x")
    assert names_of(store.list("")) == ["w/t/0/3"]


def test_put_follows_a_root_that_was_moved_away(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "root")
    for number in range(3):
        store.put(f"w/{number}", b"x")
    (tmp_path / "root").rename(tmp_path / "old")
    store.put("w/3", b"x")
    assert files_below(tmp_path / "root") == ["w/3"]
    assert files_below(tmp_path / "old") == ["w/0", "w/1", "w/2"]


def test_delete_takes_empty_directories_along_but_not_the_root(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "root")
    for name in ["w/t/0/x", "w/t/1/x"]:
        store.put(name, b"x")
    store.delete("w/t/0/x")
    assert sorted(path.name for path in (tmp_path / "root/w/t").iterdir()) == ["1"]
    store.delete("w/t/1/x")
    assert [*tmp_path.rglob("*")] == [tmp_path / "root"]


def test_delete_again_takes_along_what_a_crash_left_empty(tmp_path: Path) -> None:
    (tmp_path / "w" / "t").mkdir(parents=True)
    LocalStore(tmp_path).delete("w/t/0/x")
    assert [*tmp_path.iterdir()] == []


def test_what_cannot_be_an_object_is_not_listed(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.put("a/b", b"x")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/a/\xff\xfe")).write_bytes(b"x")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).mkdir()
    os.mkfifo(tmp_path / "a" / "fifo")
    (tmp_path / "a" / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "empty" / "directories").mkdir(parents=True)
    assert names_of(store.list("")) == ["a/b"]
    assert store.list_prefixes("") == ["a"]


def test_listing_opens_only_directories_that_can_hold_later_names(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for number in range(50):
        store.put(f"t/{number:020}/x", b"x")
    OPENED_DIRECTORIES.clear()
    assert names_of(store.list("t/", after=f"t/{46:020}/x")) == [f"t/{number:020}/x" for number in range(47, 50)]
    assert [Path(path).name for path in OPENED_DIRECTORIES] == ["t", *(f"{number:020}" for number in range(46, 50))]
    OPENED_DIRECTORIES.clear()
    assert names_of(store.list("t/", limit=2)) == [f"t/{number:020}/x" for number in range(2)]
    assert [Path(path).name for path in OPENED_DIRECTORIES] == ["t", f"{0:020}", f"{1:020}"]
    OPENED_DIRECTORIES.clear()
    assert names_of(store.list("t/", after="u")) == []
    assert OPENED_DIRECTORIES == []


def test_time_is_learnt_from_the_file_system_for_thirty_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, passed, ahead = clock.now_us, [0], [3_600_000_000]
    monkeypatch.setattr(clock, "now_us", lambda: real() + ahead[0] + passed[0] * 1_000_000)
    monkeypatch.setattr(clock, "monotonic", lambda: 100.0 + passed[0])
    store = LocalStore(tmp_path / "not" / "there" / "yet")
    assert abs(store.now_us() - real()) < 1_000_000  # asked before anything was put
    assert list(tmp_path.iterdir()) == []
    passed[0] = 30
    assert abs(store.now_us() - real() - 30_000_000) < 1_000_000  # what was learnt still holds
    passed[0] = 31
    assert abs(store.now_us() - real()) < 1_000_000
    ahead[0] *= 2
    store.put("a", b"x")
    assert abs(store.now_us() - real()) < 1_000_000


def test_where_no_file_can_be_made_the_time_is_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    real = clock.now_us
    monkeypatch.setattr(clock, "now_us", lambda: real() + 3_600_000_000)
    assert abs(LocalStore("/proc/nowhere").now_us() - clock.now_us()) < 1_000_000


def test_a_root_that_cannot_be_made_is_refused() -> None:
    with pytest.raises(StoreError, match="/proc"):
        LocalStore("/proc/nowhere/at/all").put("a", b"x")


def _report(root: str, call: str, user: int, largest: int, answers: Any) -> None:
    """In a process of its own: give up rights, then make the call and send the error that it raises."""
    if largest:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    if user and os.geteuid() == 0:
        os.setuid(user)
    store = LocalStore(root)
    calls = {
        "put": lambda: store.put("a/c", b"x" * 100_000),
        "get": lambda: store.get("a/b"),
        "list": lambda: list(store.list("")),
        "list_prefixes": lambda: store.list_prefixes(""),
        "delete": lambda: store.delete("a/b"),
    }
    try:
        calls[call]()
    except StoreError as error:
        answers.send(error)
    else:
        answers.send(None)


def error_of(root: Path, call: str, *, user: int = 0, largest: int = 0) -> StoreError | None:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_report, args=(str(root), call, user, largest, sender))
    process.start()
    sender.close()
    try:
        answer: StoreError | None = receiver.recv()
    finally:
        process.join()
        receiver.close()
        process.close()
    return answer


@pytest.fixture
def locked() -> Iterator[Path]:
    """A root with an object, in a directory that only the superuser can use; pytest's own are closed to others altogether."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        LocalStore(root).put("a/b", b"x")
        root.chmod(0o755)
        (root / "a").chmod(0)
        yield root
        (root / "a").chmod(0o755)


@pytest.mark.parametrize("call", ["put", "get", "list", "list_prefixes", "delete"])
def test_forbidden_call_is_access_denied(locked: Path, call: str) -> None:
    error = error_of(locked, call, user=65534)
    assert isinstance(error, AccessDenied)
    assert "Permission denied. Next: Give this user the permission" in str(error)
    if call.startswith("list"):
        assert f"Cannot list 'a/' in {locked}: " in str(error)


def test_a_root_that_cannot_be_listed_is_called_by_its_path(locked: Path) -> None:
    error = error_of(locked / "a", "list", user=65534)
    assert f"Cannot list {locked}/a: Permission denied" in str(error)


def test_put_that_does_not_fit_is_unavailable_and_leaves_nothing(tmp_path: Path) -> None:
    error = error_of(tmp_path, "put", largest=50_000)
    assert type(error) is StoreUnavailable
    assert "File too large" in str(error)
    assert files_below(tmp_path) == []


def test_many_processes_put_into_one_new_root_at_once(tmp_path: Path) -> None:
    script = (
        "import sys; from bucketcatalog.store import LocalStore; store = LocalStore(sys.argv[1])\n"
        "for number in range(30): store.put(f't/{number}/{sys.argv[2]}', b'x'); store.delete(f't/{number}/{sys.argv[2]}')\n"
        "store.put(f't/last/{sys.argv[2]}', b'x')"
    )
    environment = {"PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-W", "error", "-c", script, str(tmp_path / "root")]
    processes = [subprocess.Popen([*command, str(number)], env=environment) for number in range(4)]
    assert [process.wait() for process in processes] == [0, 0, 0, 0]
    assert names_of(LocalStore(tmp_path / "root").list("")) == [f"t/last/{number}" for number in range(4)]


def test_open_files_do_not_pile_up(tmp_path: Path) -> None:
    def open_files() -> int:
        return len([*Path("/proc/self/fd").iterdir()])

    gc.collect()  # what other tests have left
    store, before = LocalStore(tmp_path), open_files()
    for number in range(200):
        store.put(f"data/{number % 100}/x", b"x")
        store.get(f"data/{number % 100}/x")
    assert open_files() <= before + 33
    del store
    assert open_files() == before
