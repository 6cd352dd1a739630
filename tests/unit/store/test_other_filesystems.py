"""The local store on file systems that answer otherwise than a local one: the whole contract, and what only they do."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, clock
from bucketcatalog.cli import run
from bucketcatalog.errors import AccessDenied, ClockSkew, InvalidOption, ObjectNotFound, StoreUnavailable
from bucketcatalog.store import LocalStore, Store, filesystem, local

from ...kit.filesystems import FUSE, NFS, SMB, FileSystem, Kind
from ...kit.store_contract import AT_ONCE_US, StoreContract, names_of
from ...kit.world import messages, proto

HOUR = 3_600_000_000
OWNER = "00000000-0000-4000-8000-000000000001"
WITHOUT_UNNAMED = [NFS, SMB, FUSE]


def mounted(kind: Kind, **options: Any) -> Any:
    return FileSystem(kind, **options).used_by(local, filesystem)


class OnAnotherFileSystem(StoreContract):
    kind: Kind

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with mounted(self.kind, ahead_ns=self.ahead_us * 1_000):
            yield LocalStore(tmp_path / "root")


class TestOnNfs(OnAnotherFileSystem):
    kind = NFS
    ahead_us = 24 * HOUR


class TestOnSmb(OnAnotherFileSystem):
    kind = SMB
    ahead_us = -24 * HOUR


class TestOnFuse(OnAnotherFileSystem):
    kind = FUSE


def commit(root: Path, writer: str, name: str) -> None:
    with Catalog(root).writer(writer) as held, held.transaction() as tx:
        tx.put("buckets", {"owner": OWNER, "name": name})


def everything(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("hours", [-24, 24])
@pytest.mark.parametrize("kind", WITHOUT_UNNAMED, ids=str)
def test_the_first_commit_of_a_process_by_a_wrong_clock_is_refused(tmp_path: Path, kind: Kind, hours: int) -> None:
    with mounted(kind):
        commit(tmp_path, "other", "b")
        before = everything(tmp_path)
    with mounted(kind, ahead_ns=hours * HOUR * 1_000), pytest.raises(ClockSkew, match="This machine's clock is"):
        commit(tmp_path, "w", "c")
    assert everything(tmp_path) == before


@pytest.mark.parametrize("kind", WITHOUT_UNNAMED, ids=str)
def test_a_commit_long_after_the_last_put_asks_for_the_time_again(
    tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [100.0]
    monkeypatch.setattr(clock, "monotonic", lambda: seconds[0])
    with mounted(kind) as system, Catalog(tmp_path).writer("w") as writer:
        with writer.transaction() as tx:
            tx.put("buckets", {"owner": OWNER, "name": "b"})
        system.ahead_ns = 24 * HOUR * 1_000
        seconds[0] += 31
        with pytest.raises(ClockSkew), writer.transaction() as tx:
            tx.put("buckets", {"owner": OWNER, "name": "c"})


@pytest.mark.parametrize("kind", WITHOUT_UNNAMED, ids=str)
def test_a_reader_makes_nothing_and_what_it_is_told_holds_for_no_writer(tmp_path: Path, kind: Kind) -> None:
    with mounted(kind, ahead_ns=24 * HOUR * 1_000):
        store = LocalStore(tmp_path / "lake")
        assert abs(store.now_us() - clock.now_us()) < AT_ONCE_US
        assert [*tmp_path.iterdir()] == []
        for below in ("w/db/", None):
            assert abs(store.now_us(below) - clock.now_us() - 24 * HOUR) < 3_000_000


def test_the_time_is_asked_for_below_the_writers_own_prefix_alone(tmp_path: Path) -> None:
    made: list[str] = []

    def before(call: str, about: Any) -> None:
        if call == "unlink":
            made.extend(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))

    with mounted(NFS, before=before):
        LocalStore(tmp_path / "lake").now_us("w/db/transactions/")
    *directories_made, asked = sorted(made)
    assert directories_made == ["lake", "lake/w", "lake/w/db", "lake/w/db/transactions"]
    assert asked.startswith("lake/w/db/transactions/.put-")


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.EIO])
def test_a_writer_that_cannot_learn_the_time_is_refused(tmp_path: Path, code: int) -> None:
    def before(call: str, about: Any) -> None:
        if call == "open" and isinstance(about, bytes) and about.startswith(b".put-"):
            raise OSError(code, os.strerror(code))

    expected = AccessDenied if code in (errno.EACCES, errno.EROFS) else StoreUnavailable
    with mounted(NFS, before=before), pytest.raises(expected, match=r"Cannot put 'w/.*/\.put-'"):
        commit(tmp_path, "w", "c")
    assert everything(tmp_path) == []


def test_one_who_dies_while_it_asks_leaves_a_temporary_file(tmp_path: Path) -> None:
    class Died(BaseException):
        pass

    def before(call: str, about: Any) -> None:
        if call == "unlink":
            raise Died

    store = LocalStore(tmp_path)
    with mounted(NFS, before=before), pytest.raises(Died):
        store.now_us("w/db/transactions/")
    (left,) = store.unfinished_puts()
    assert left.name.startswith("w/db/transactions/.put-")
    assert names_of(store.list("")) == []
    store.discard(left)
    assert [*store.unfinished_puts()] == []


def test_what_is_kept_of_a_deleted_file_while_it_is_open_is_no_object(tmp_path: Path) -> None:
    with mounted(NFS) as system:
        store = LocalStore(tmp_path)
        store.put("t/0/x", b"x")
        fd = system.open(tmp_path / "t" / "0" / "x", os.O_RDONLY)
        store.delete("t/0/x")
        assert [path.name[:4] for path in (tmp_path / "t" / "0").iterdir()] == [".nfs"]
        assert names_of(store.list("")) == store.list_prefixes("") == []
        system.close(fd)
        assert [*(tmp_path / "t" / "0").iterdir()] == []


@pytest.mark.parametrize("offset", [None, 0, -4])
def test_an_object_that_another_machine_replaces_is_read_again(tmp_path: Path, offset: int | None) -> None:
    replaced: list[str] = []

    def before(call: str, about: Any) -> None:
        if call == "pread" and not replaced:
            replaced.append(call)
            (tmp_path / "again").write_bytes(b"same")
            (tmp_path / "again").rename(tmp_path / "a")

    LocalStore(tmp_path).put("a", b"same")
    with mounted(NFS, before=before):
        store = LocalStore(tmp_path)
        assert (store.get("a") if offset is None else store.get_range("a", offset, 4)) == b"same"
    assert replaced


def test_an_object_that_another_machine_deletes_while_it_is_read_is_not_found(tmp_path: Path) -> None:
    def before(call: str, about: Any) -> None:
        if call == "pread":
            (tmp_path / "a").unlink(missing_ok=True)

    LocalStore(tmp_path).put("a", b"x")
    with mounted(NFS, before=before), pytest.raises(ObjectNotFound):
        LocalStore(tmp_path).get("a")


def test_a_put_over_a_file_that_is_open_is_done_if_that_holds_the_same(tmp_path: Path) -> None:
    with mounted(SMB) as system:
        store = LocalStore(tmp_path)
        store.put("a", b"same")
        fd = system.open(tmp_path / "a", os.O_RDONLY)
        store.put("a", b"same")
        with pytest.raises(AccessDenied):
            store.put("a", b"other")
        system.close(fd)
        store.put("a", b"other")
        assert store.get("a") == b"other"
        assert everything(tmp_path) == ["a"]


FILES = """message File {
  option (table) = {name: "iox.file" key: "chunk" data_reference: "path"};
  string chunk = 1;
  optional string path = 2;
}"""


def with_orphan(lake: Path) -> Path:
    """A catalog of the writer ``a`` with a file two days old that no version names."""
    catalog = Catalog(lake)
    catalog.register(messages(proto(FILES))["File"])
    with catalog.writer("a") as held, held.transaction() as tx:
        tx.put("iox.file", {"chunk": "c", "path": "a/default/data/c"})
    orphan = lake / "a/default/data/orphan"
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"x")
    os.utime(orphan, (time.time() - 2 * 86_400,) * 2)
    return orphan


@pytest.mark.parametrize("url", [None, "{lake}/a/default/data/{{path}}"])
def test_who_deletes_orphans_in_the_catalog_asks_for_the_time_below_its_own_prefix(tmp_path: Path, url: str | None) -> None:
    orphan = with_orphan(tmp_path)
    made: list[str] = []

    def before(call: str, about: Any) -> None:
        if call == "unlink":
            made.extend(str(path.relative_to(tmp_path)) for path in tmp_path.rglob(".put-*"))

    with mounted(NFS, before=before):
        place = None if url is None else url.format(lake=tmp_path)
        (found,) = Catalog(tmp_path).orphans(dry_run=False, data_url=place, writer="maintainer-1")
    assert found.deleted and not orphan.exists()
    assert made and {name.split("/")[0] for name in made} == {"maintainer-1"}


def test_who_deletes_orphans_elsewhere_asks_for_the_time_at_the_root_of_that_place(tmp_path: Path) -> None:
    with_orphan(tmp_path / "lake")
    with Catalog(tmp_path / "lake").writer("a") as held, held.transaction() as tx:
        tx.put("iox.file", {"chunk": "d", "path": "deep/named"})
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "orphan").write_bytes(b"x")
    made: list[str] = []

    def before(call: str, about: Any) -> None:
        if call == "unlink":
            made.extend(str(path.relative_to(tmp_path)) for path in tmp_path.rglob(".put-*"))

    with mounted(NFS, before=before, ahead_ns=48 * HOUR * 1_000):
        (found,) = Catalog(tmp_path / "lake").orphans(dry_run=False, data_url=f"{tmp_path}/data/{{path}}")
    assert found.deleted  # by the time of the place, which is two days ahead
    assert made and all(name.startswith("data/.put-") for name in made)


def test_nobody_but_a_maintainer_deletes_orphans(tmp_path: Path) -> None:
    orphan = with_orphan(tmp_path)
    with pytest.raises(InvalidOption, match="'a' is not a maintainer"):
        Catalog(tmp_path).orphans(dry_run=False, writer="a")
    assert orphan.exists()


def put_under_way(lake: Path) -> Path:
    """What a put of the writer ``w`` has written so far, just now."""
    commit(lake, "w", "b")
    left = lake / "w/default/segments/.put-underway"
    left.parent.mkdir()
    left.write_bytes(b"x")
    return left


@pytest.mark.parametrize("kind", WITHOUT_UNNAMED, ids=str)
def test_a_put_under_way_is_kept_by_a_machine_whose_clock_is_ahead(
    tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, real = put_under_way(tmp_path), clock.now_us
    monkeypatch.setattr(clock, "now_us", lambda: real() + 25 * HOUR)
    with mounted(kind):
        assert run(["gc", str(tmp_path), "--yes", "--writer", "maintainer-1"]) == 0
        assert left.exists()
    assert [path.name for path in tmp_path.rglob(".put-*")] == [left.name]


def test_where_the_time_cannot_be_learnt_no_put_is_thrown_away(tmp_path: Path) -> None:
    left = put_under_way(tmp_path)
    os.utime(left, (time.time() - 2 * 86_400,) * 2)

    def before(call: str, about: Any) -> None:
        if call == "open" and isinstance(about, bytes) and about.startswith(b".put-"):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with mounted(NFS, before=before):
        assert run(["gc", str(tmp_path), "--yes"]) == 1
        assert left.exists()
        assert run(["gc", str(tmp_path)]) == 0  # who only looks may go by the machine's


@pytest.mark.parametrize("kind", WITHOUT_UNNAMED, ids=str)
def test_repair_voids_by_the_stores_time_and_not_the_machines(
    tmp_path: Path, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tmp_path, "w", "b")
    real = clock.now_us
    monkeypatch.setattr(clock, "now_us", lambda: real() - 25 * HOUR)
    with mounted(kind), pytest.raises(InvalidOption, match="is not a transaction from the future"):
        Catalog(tmp_path).repair(void=["w@0"], dry_run=False)
