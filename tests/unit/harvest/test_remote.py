"""Sources that fsspec reaches: its memory file system, and a web server of this process."""

from __future__ import annotations

import functools
import http.server
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

from bucketcatalog import Catalog
from bucketcatalog.errors import AccessDenied, InvalidOption, SourceNotFound, StoreUnavailable, UnsupportedStore
from bucketcatalog.harvest import harvest, open_source
from bucketcatalog.harvest.sources.remote import RemoteSource
from bucketcatalog.store import FsspecStore
from bucketcatalog.store.remote_files import RemoteFiles

from ...kit.trees import make_tree


@pytest.fixture
def folder() -> Iterator[str]:
    files, name = fsspec.filesystem("memory"), f"f{uuid.uuid4().hex}"
    yield name
    if files.exists(f"/{name}"):
        files.rm(f"/{name}", recursive=True)


def fill(folder: str, *names: str, body: bytes = b"x") -> None:
    files = fsspec.filesystem("memory")
    for name in names:
        files.pipe_file(f"/{folder}/{name}", body)


def rows(catalog: Catalog, table: str = "objects") -> list[dict[str, Any]]:
    return catalog.snapshot().scan(table).to_arrow().to_pylist()


NAMES = ["a b", "a+b", "a-b", "a.txt", "a/b", "a/c/d", "a0", "é/ü", "\U0001f600", "%20"]


def test_every_file_is_in_the_catalog_and_a_second_harvest_commits_nothing(catalog: Catalog, folder: str) -> None:
    fill(folder, *NAMES)
    result = harvest(catalog, f"memory://{folder}")
    found = rows(catalog)
    assert [row["name"] for row in found] == sorted(NAMES, key=str.encode)
    assert (result.source, result.bucket, result.errors) == (f"memory://{folder}", folder, 0)
    assert {row["content_length"] for row in found} == {1} and all(row["modified"] for row in found)
    again = harvest(catalog, f"memory://{folder}/")
    assert (again.transactions, again.unchanged) == ((), len(NAMES))


def test_a_second_harvest_commits_what_changed_and_nothing_else(catalog: Catalog, folder: str) -> None:
    fill(folder, *NAMES)
    harvest(catalog, f"memory://{folder}")
    fill(folder, "a/b", "new", body=b"other")
    fsspec.filesystem("memory").rm_file(f"/{folder}/a0")
    result = harvest(catalog, f"memory://{folder}")
    assert (result.created, result.overwritten, result.updated, result.deleted) == (1, 1, 0, 1)


def test_globs_hold_and_small_batches_change_nothing(catalog: Catalog, folder: str) -> None:
    fill(folder, *NAMES)
    harvest(catalog, f"memory://{folder}", exclude=["a/*"])
    assert "a/b" not in {row["name"] for row in rows(catalog)}
    for batch_rows in (1, 2, 3):
        harvest(catalog, RemoteSource(RemoteFiles(f"memory://{folder}"), batch_rows=batch_rows))
        assert [row["name"] for row in rows(catalog)] == sorted(NAMES, key=str.encode)


def test_names_that_no_catalog_can_hold_are_reported(catalog: Catalog, folder: str) -> None:
    long = "n" * 1_025
    fill(folder, "good", "bad\udcff", long)
    assert harvest(catalog, f"memory://{folder}").errors == 2
    assert [row["name"] for row in rows(catalog)] == ["good"]
    assert {(row["path"], row["code"]) for row in rows(catalog, "harvest_errors")} == {
        ("bad\\xff", "NOT_UTF8"),
        (long, "NAME_TOO_LONG"),
    }
    assert harvest(catalog, f"memory://{folder}").transactions == ()


def test_a_source_that_is_not_there_or_is_a_file_says_so(catalog: Catalog, folder: str) -> None:
    fill(folder, "file")
    for url in (f"memory://{folder}/nothing", f"memory://{folder}/file"):
        with pytest.raises(SourceNotFound, match="not a directory that can be listed"):
            harvest(catalog, url)
    with pytest.raises(UnsupportedStore, match="nonsense:// is unknown"):
        open_source("nonsense://x")
    with pytest.raises(InvalidOption, match="no metadata or tags"):
        harvest(catalog, f"memory://{folder}", tags=True)


def test_what_cannot_be_listed_is_reported_and_not_taken_for_deleted(
    catalog: Catalog, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder, *NAMES)
    harvest(catalog, f"memory://{folder}")
    listed = RemoteFiles.below

    def refuse(self: RemoteFiles, prefix: str) -> Any:
        if prefix == "a/":
            raise AccessDenied("no")
        return listed(self, prefix)

    monkeypatch.setattr(RemoteFiles, "below", refuse)
    result = harvest(catalog, f"memory://{folder}")
    assert (result.deleted, result.errors, len(rows(catalog))) == (0, 1, len(NAMES))
    assert [(row["path"], row["code"]) for row in rows(catalog, "harvest_errors")] == [("a/", "ACCESS_DENIED")]
    monkeypatch.undo()
    assert harvest(catalog, f"memory://{folder}").errors == 0 and rows(catalog, "harvest_errors") == []


def test_passwords_and_queries_are_not_in_the_name_of_a_source(folder: str) -> None:
    source = open_source(f"memory://someone:verysecret@{folder}?signature=abcdef")
    assert (source.url, source.name, source.authority) == (f"memory://someone@{folder}", folder, "memory")


def test_the_catalogs_own_files_are_left_out(folder: str) -> None:
    fill(folder, "a", "lake.txt", "lakes/b")
    catalog = Catalog(FsspecStore(f"memory://{folder}/lake"))
    harvest(catalog, f"memory://{folder}")
    assert [row["name"] for row in rows(catalog)] == ["a", "lake.txt", "lakes/b"]
    assert harvest(catalog, f"memory://{folder}").transactions == ()
    for below, what in (("lake", "the catalog itself"), ("lake/", "the catalog itself"), ("lake/w1", "a part of the catalog")):
        with pytest.raises(InvalidOption, match=f"The source .* is {what}"):
            harvest(catalog, f"memory://{folder}/{below}", allow_empty=True)


def test_etags_tell_versions_apart_and_what_changes_behind_one_is_an_update(
    catalog: Catalog, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder, "a")
    told = {"etag": '"e1"', "md5Hash": "XrY7u+Ae7tCTyyK7j1rNww==", "storageClass": "STANDARD", "contentType": "text/plain"}
    monkeypatch.setattr(RemoteFiles, "_with_size", lambda self, info: {**info, **told})
    result = harvest(catalog, f"memory://{folder}")
    (row,) = rows(catalog)
    assert (row["etag"], row["storage_class"], row["content_type"]) == ("e1", "STANDARD", "text/plain")
    assert row["content_md5"] == bytes.fromhex("5eb63bbbe01eeed093cb22bb8f5acdc3")
    assert row["id"] == str(uuid.uuid5(uuid.UUID(result.bucket_id), "a\0e1"))
    told["storageClass"] = "COLDLINE"
    assert harvest(catalog, f"memory://{folder}").updated == 1
    told["etag"] = '"e2"'
    assert harvest(catalog, f"memory://{folder}").overwritten == 1
    assert rows(catalog)[0]["storage_class"] == "COLDLINE" and len(rows(catalog, "deleted_objects")) == 1


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files of a directory, with pages that list them."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def test_a_web_servers_directories_are_harvested(catalog: Catalog, tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    make_tree(tmp_path / "web", [b"a-b", b"a/b.txt", b"a/c/d", b"a0"])
    handler = functools.partial(Quiet, directory=str(tmp_path / "web"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        result = harvest(catalog, url)
        assert [row["name"] for row in rows(catalog)] == ["a-b", "a/b.txt", "a/c/d", "a0"]
        assert result.bytes == sum(map(len, ["a-b", "a/b.txt", "a/c/d", "a0"])) and harvest(catalog, url).transactions == ()
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "deleted", "errors"), [(404, 1, 0), (410, 1, 0), (403, 0, 1), (401, 0, 1), (500, None, None), (405, None, None)]
)
def test_a_file_that_a_web_server_lists_and_does_not_give_is_one_file(
    catalog: Catalog, tmp_path: Path, status: int, deleted: int | None, errors: int | None
) -> None:
    pytest.importorskip("aiohttp")
    make_tree(tmp_path / "web", [b"a", b"d/a", b"d/b", b"d/c"])
    refused: set[str] = set()

    class Refusing(Quiet):
        def send_head(self) -> Any:
            return self.send_error(status) if self.path in refused else super().send_head()

    handler = functools.partial(Refusing, directory=str(tmp_path / "web"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        harvest(catalog, url)
        for path in ("/d/b", "/a"):
            refused = {path}
            if deleted is None:
                with pytest.raises(StoreUnavailable):
                    harvest(catalog, url)
            else:
                result = harvest(catalog, url)
                assert (result.deleted, result.errors) == (deleted, errors)
            left = {"a", "d/a", "d/b", "d/c"} - ({path[1:]} if deleted else set())
            assert {row["name"] for row in rows(catalog)} == left
            refused = set()
            assert harvest(catalog, url).errors == 0 and len(rows(catalog)) == 4
        server.shutdown()
