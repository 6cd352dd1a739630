"""Checksums of files: made once of each version, by the bytes that belong to it, and never at the price of the harvest."""

from __future__ import annotations

import base64
import functools
import hashlib
import http.server
import os
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from bucketcatalog import Catalog
from bucketcatalog.errors import InvalidOption, StoreUnavailable
from bucketcatalog.harvest import Harvested, checksums, harvest
from bucketcatalog.harvest.checksums import Checksums
from bucketcatalog.harvest.source import Changed, is_read
from bucketcatalog.harvest.sources import reading
from bucketcatalog.harvest.sources.local import LocalSource
from bucketcatalog.harvest.sources.s3 import S3Source
from bucketcatalog.store.memory import MemoryStore

from ...kit.harvested import Workers, counted, everything
from ...kit.trees import HOSTILE, locked, make_tree, open_folder, touch
from .inventories import ListInventory, listed
from .sources import ListSource


def rows(catalog: Catalog, table: str = "objects") -> dict[str, dict[str, Any]]:
    found = catalog.snapshot().scan(table).to_arrow().to_pylist()
    return {row["name" if table == "objects" else "path"]: row for row in found}


def told(catalog: Catalog) -> dict[str, str | None]:
    found = rows(catalog)
    assert {row["checksum_algorithm"] for row in found.values() if row["checksum"]} <= {"SHA256"}
    assert {row["checksum_algorithm"] for row in found.values() if not row["checksum"]} <= {None}
    return {name: row["checksum"] for name, row in found.items()}


def sha256(content: bytes) -> str:
    return base64.b64encode(hashlib.sha256(content).digest()).decode()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The names that are read."""
    names: list[bytes] = []

    def noted(root: bytes, name: bytes, identity: bytes) -> Iterator[bytes]:
        names.append(name)
        return real(root, name, identity)

    real = reading.pieces_of
    monkeypatch.setattr("bucketcatalog.harvest.sources.local.pieces_of", noted)
    return names


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_they_are_the_sha256_of_the_content(
    catalog: Catalog, tmp_path: Path, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PIECE", piece)
    root = make_tree(tmp_path / "tree", HOSTILE)
    (root / "empty").touch()
    result = harvest(catalog, root, checksum=True)
    assert told(catalog) == {name.decode(): sha256(name) for name in HOSTILE} | {"empty": sha256(b"")}
    assert (result.hashed, result.hashed_bytes) == (len(HOSTILE) + 1, sum(map(len, HOSTILE)))
    assert f"{result.hashed} read" in str(result)
    (row,) = catalog.snapshot().scan("log").to_arrow().to_pylist()
    assert dict(row["metrics"])["hashed"] == result.hashed and row["created"] == result.hashed


def test_what_has_not_changed_is_not_read_again(catalog: Catalog, tmp_path: Path, opened: list[bytes]) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"b", b"c"])
    harvest(catalog, root, checksum=True)
    opened.clear()
    assert harvest(catalog, root, checksum=True).transactions == () and opened == []
    touch(root / "b", "other")
    (root / "c").chmod(0o700)
    make_tree(root, [b"d"])
    result = harvest(catalog, root, checksum=True)
    assert sorted(opened) == [b"b", b"d"] and (result.overwritten, result.updated, result.created, result.hashed) == (1, 1, 1, 2)
    assert told(catalog) == {"a": sha256(b"a"), "b": sha256(b"other"), "c": sha256(b"c"), "d": sha256(b"d")}


def test_a_catalog_without_them_gets_them_as_updates_and_a_run_without_keeps_them(
    catalog: Catalog, tmp_path: Path, opened: list[bytes]
) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"b"])
    harvest(catalog, root)
    assert opened == [] and set(told(catalog).values()) == {None}
    before = {name: row["id"] for name, row in rows(catalog).items()}
    result = harvest(catalog, root, checksum=True)
    assert (result.updated, result.unchanged) == (2, 0)
    (root / "a").chmod(0o700)
    assert harvest(catalog, root).updated == 1
    assert told(catalog) == {"a": sha256(b"a"), "b": sha256(b"b")}
    assert {name: row["id"] for name, row in rows(catalog).items()} == before
    touch(root / "a", "new")
    harvest(catalog, root)
    assert told(catalog) == {"a": None, "b": sha256(b"b")}


def test_links_and_pipes_are_not_read(catalog: Catalog, tmp_path: Path, opened: list[bytes]) -> None:
    root = make_tree(tmp_path / "tree", [b"a"])
    (root / "link").symlink_to("a")
    os.mkfifo(root / "pipe")
    harvest(catalog, root, checksum=True)
    assert opened == [b"a"] and told(catalog) == {"a": sha256(b"a"), "link": None, "pipe": None}
    assert harvest(catalog, root, checksum=True).transactions == ()


def test_what_may_not_be_read_is_catalogued_and_reported() -> None:
    with open_folder() as folder:
        root = make_tree(folder / "tree", [b"a", b"no", b"z"])
        catalog = Catalog(MemoryStore())
        (root / "no").chmod(0)
        with locked():
            result = harvest(catalog, root, checksum=True)
            assert (result.created, result.errors, result.hashed) == (3, 1, 2)
            assert told(catalog) == {"a": sha256(b"a"), "no": None, "z": sha256(b"z")}
            assert {path: row["code"] for path, row in rows(catalog, "harvest_errors").items()} == {"no": "EACCES"}
            assert harvest(catalog, root, checksum=True).transactions == ()
        (root / "no").chmod(0o644)
        result = harvest(catalog, root, checksum=True)
        assert (result.updated, result.errors) == (1, 0) and told(catalog)["no"] == sha256(b"no")
        assert rows(catalog, "harvest_errors") == {}
        (root / "no").chmod(0)
        (root / "no").unlink()
        assert harvest(catalog, root, checksum=True).deleted == 1


class Meanwhile(LocalSource):
    """A tree in which something happens to an entry before it is read, or between its pieces."""

    happens: Any = None
    after: int = 0

    def pieces(self, entry: Mapping[str, Any]) -> Iterator[bytes]:
        """See ``ReadSource``."""
        found = super().pieces(entry)
        if entry["name"] != "d/x":
            yield from found
            return
        for at, piece in enumerate(found if self.after else self._done(found)):
            yield piece
            if at + 1 == self.after:
                self.happens()

    def _done(self, found: Iterator[bytes]) -> Iterator[bytes]:
        self.happens()
        yield from found


def replaced_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("../a")


def folder_replaced_by_link(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.symlink_to("moved")


def replaced_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replaced_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def rewritten(path: Path) -> None:
    path.write_bytes(b"D/X")
    os.utime(path, ns=(0, 1))


@pytest.mark.parametrize(
    "what",
    [
        Path.unlink,
        replaced_by_link,
        folder_replaced_by_link,
        replaced_by_pipe,
        replaced_by_folder,
        grown,
        rewritten,
        lambda path: os.truncate(path, 1),
    ],
)
def test_what_is_another_by_now_has_no_checksum_and_is_no_error(catalog: Catalog, tmp_path: Path, what: Any) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"d/x", b"z"])
    source = Meanwhile(root)
    source.happens = lambda: what(root / "d" / "x")
    result = harvest(catalog, source, checksum=True)
    assert told(catalog) == {"a": sha256(b"a"), "d/x": None, "z": sha256(b"z")}
    assert (result.errors, result.hashed) == (0, 2)


@pytest.mark.parametrize("what", [grown, rewritten, lambda path: os.truncate(path, 1)])
def test_a_file_that_changes_while_it_is_read_has_none_this_time(
    catalog: Catalog, tmp_path: Path, what: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PIECE", 1)
    root = make_tree(tmp_path / "tree", [b"a", b"d/x"])
    source = Meanwhile(root)
    source.happens, source.after = lambda: what(root / "d" / "x"), 1
    assert harvest(catalog, source, checksum=True).errors == 0
    assert told(catalog) == {"a": sha256(b"a"), "d/x": None}
    result = harvest(catalog, root, checksum=True)
    assert result.overwritten == 1 and told(catalog)["d/x"] == sha256((root / "d" / "x").read_bytes())


def test_a_file_that_claims_to_be_empty_and_is_not_has_none() -> None:
    one = Path("/proc/self/status").stat()
    with pytest.raises(Changed):
        list(reading.pieces_of(b"/proc/self", b"status", b"%d %d" % (one.st_size, one.st_mtime_ns)))


def test_a_dry_run_reads_nothing(catalog: Catalog, tmp_path: Path, opened: list[bytes]) -> None:
    root = make_tree(tmp_path / "tree", [b"a"])
    assert harvest(catalog, root, checksum=True, dry_run=True).created == 1 and opened == []


def test_sources_that_are_not_read_refuse(catalog: Catalog) -> None:
    bucket = S3Source(ListInventory([listed("a")]))
    for source, dry_run in ((bucket, False), (bucket, True), (ListSource([("a", "1")]), False)):
        assert not is_read(source)
        with pytest.raises(InvalidOption, match=r"is not read for checksums.*store's own checksums come with metadata=True"):
            harvest(catalog, source, checksum=True, dry_run=dry_run)
    assert catalog.databases() == []


def test_workers_make_the_same(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"%d/%03d" % (at % 7, at) for at in range(60)])
    store = MemoryStore()
    divided, alone = Catalog(store), Catalog(MemoryStore())
    for _ in range(2):
        result = harvest(divided, root, checksum=True, workers=Workers(store))
        assert counted(result) == counted(harvest(alone, root, checksum=True))
        assert everything(divided) == everything(alone)
        touch(root / "1" / "001", "other")
    assert set(told(alone)) == {f"{at % 7}/{at:03}" for at in range(60)} and None not in told(alone).values()
    assert harvest(divided, root, checksum=True, dry_run=True, workers=Workers(store)).hashed == 0


@pytest.fixture
def folder() -> Iterator[str]:
    files, name = fsspec.filesystem("memory"), f"f{uuid.uuid4().hex}"
    yield name
    files.rm(f"/{name}", recursive=True)


def test_any_other_url_is_read_file_by_file(catalog: Catalog, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = fsspec.filesystem("memory")
    for name in ("a", "b/c", "b/d"):
        files.pipe_file(f"/{folder}/{name}", name.encode() * 1_000)
    result = harvest(catalog, f"memory://{folder}", checksum=True)
    assert told(catalog) == {name: sha256(name.encode() * 1_000) for name in ("a", "b/c", "b/d")} and result.hashed == 3
    assert harvest(catalog, f"memory://{folder}", checksum=True).transactions == ()
    files.pipe_file(f"/{folder}/a", b"other")
    opened = type(files).open

    def changing(self: Any, path: str, *more: Any, **options: Any) -> Any:
        file = opened(self, path, *more, **options)
        files.pipe_file(f"/{folder}/a", b"and another")
        return file

    monkeypatch.setattr(type(files), "open", changing)
    assert harvest(catalog, f"memory://{folder}", checksum=True).overwritten == 1
    assert told(catalog)["a"] is None
    monkeypatch.setattr(type(files), "open", lambda *_, **__: (_ for _ in ()).throw(PermissionError("no")))
    result = harvest(catalog, f"memory://{folder}", checksum=True)
    assert (result.errors, result.overwritten) == (1, 1)
    assert rows(catalog, "harvest_errors")["a"]["code"] == "ACCESS_DENIED"


def test_a_web_servers_files_are_read(catalog: Catalog, tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    make_tree(tmp_path / "web", [b"a", b"d/b c", b"d/e"])

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    handler = functools.partial(Quiet, directory=str(tmp_path / "web"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        harvest(catalog, f"http://127.0.0.1:{server.server_port}/", checksum=True)
        server.shutdown()
    assert set(told(catalog).values()) == {sha256(name) for name in (b"a", b"d/b c", b"d/e")}


class Slow:
    """A source whose entries are read until somebody lets them end."""

    readers = 4

    def __init__(self) -> None:
        self.at_once = self.most = 0
        self.lock = threading.Lock()
        self.fails: Exception | BaseException | None = None

    def pieces(self, entry: Mapping[str, Any]) -> Iterator[bytes]:
        """See ``ReadSource``."""
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        for _ in range(3):
            time.sleep(0.005)
            yield b"x"
        if self.fails is not None:
            raise self.fails
        with self.lock:
            self.at_once -= 1


def batch(count: int, length: int = 1 << 30) -> pa.RecordBatch:
    names = [f"{at:05}" for at in range(count)]
    return pa.record_batch(
        {
            "name": names,
            "identity": pa.array([b"i"] * count),
            "content_length": pa.array([length] * count, pa.int64()),
            "modified": pa.array([1] * count, pa.timestamp("us", "UTC")),
        }
    )


def test_several_files_are_read_at_once_and_no_more_than_that() -> None:
    source: Any = Slow()
    found = Checksums(source, pytest.fail)(batch(20), None)
    assert set(found.column("checksum").to_pylist()) == {sha256(b"xxx")} and 2 <= source.most <= 4


def test_how_far_it_is_is_told_while_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "_TELL_S", 0.001)
    seen: list[int] = []
    source: Any = Slow()
    reader = Checksums(source, pytest.fail, threads=1, tell=lambda: seen.append(reader.files))
    reader(batch(8), None)
    assert seen == sorted(seen) and len(set(seen)) > 3 and (reader.files, reader.bytes) == (8, 24)


def test_progress_of_a_harvest_tells_what_was_read(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"b"])
    seen: list[Harvested] = []
    harvest(catalog, root, checksum=True, progress=seen.append)
    assert seen[-1].hashed == 2 and len(seen) >= 3


def test_who_interrupts_it_does_not_wait_for_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksums, "_TELL_S", 0.001)
    source: Any = Slow()

    def interrupt() -> None:
        raise KeyboardInterrupt

    reader = Checksums(source, pytest.fail, tell=interrupt)
    with pytest.raises(KeyboardInterrupt):
        reader(batch(1_000), None)
    assert reader.files < 100


def test_a_store_that_is_away_costs_checksums_and_no_harvest() -> None:
    source: Any = Slow()
    source.fails = StoreUnavailable("away")
    reported: list[Any] = []
    found = Checksums(source, reported.append)(batch(3), None)
    assert found.column("checksum").null_count == 3 and {one.code for one in reported} == {"STORE_UNAVAILABLE"}
    assert not any(one.unreadable for one in reported)


def test_parts_end_after_so_many_entries_or_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Checksums(Slow(), pytest.fail)  # type: ignore[arg-type]
    assert [len(part) for part in reader.parts(batch(9_000, 1))] == [4_096, 4_096, 808]
    assert [len(part) for part in reader.parts(batch(40))] == [16, 16, 8]
    assert [len(part) for part in reader.parts(batch(3, 1 << 62))] == [1, 1, 1]
    assert [name for part in reader.parts(batch(40)) for name in part.column("name").to_pylist()] == [
        f"{at:05}" for at in range(40)
    ]
    assert list(reader.parts(batch(0))) == []
