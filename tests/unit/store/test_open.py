"""Which store a path or URL opens, and what opens none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bucketcatalog.errors import InvalidOption, UnsupportedStore
from bucketcatalog.store import FsspecStore, LocalStore, MemoryStore, open_store


def test_every_spelling_of_a_path_opens_the_same_local_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "cat log"
    spellings: list[str | Path] = [
        path,
        str(path),
        f"file://{path}",
        f"file:{path}",
        f"file://localhost{path}",
        "cat log",
        "./cat log",
        "~/cat log",
    ]
    for spelling in spellings:
        store = open_store(spelling)
        assert isinstance(store, LocalStore)
        assert store.url == str(path), spelling
    assert not path.exists()


def test_url_of_a_store_opens_it_again(tmp_path: Path) -> None:
    for store in (LocalStore(tmp_path), MemoryStore("test-again"), FsspecStore(f"local://{tmp_path}")):
        again = open_store(store.url)
        assert (type(again), again.url) == (type(store), store.url)


def test_protocol_decides_the_kind_of_store(tmp_path: Path) -> None:
    assert isinstance(open_store("memory://test-kind"), MemoryStore)
    assert isinstance(open_store(f"local://{tmp_path}", {"auto_mkdir": False}), FsspecStore)


def test_unknown_protocol_is_unsupported() -> None:
    with pytest.raises(UnsupportedStore, match=r"nosuch:// is unknown. Next: Use a path, or a url with a protocol of fsspec"):
        open_store("nosuch://bucket/catalog")


@pytest.mark.parametrize(
    ("url", "module", "package"), [("sftp://host/x", "paramiko", "paramiko"), ("gs://bucket/x", "gcsfs", "gcsfs")]
)
def test_missing_package_is_named_with_how_to_install_it(
    url: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # so that it is missing wherever it is installed
    with pytest.raises(UnsupportedStore, match=f"not installed. Next: pip install '{package}'"):
        open_store(url)


@pytest.mark.parametrize("url", ["", "s3:/bucket/x", "s3:bucket/x", "GS:bucket", "zip::s3:/x"])
def test_what_is_neither_path_nor_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidOption):
        open_store(url)


@pytest.mark.parametrize("url", ["/some/path", "file:///some/path", "memory://x"])
def test_options_where_there_is_nothing_to_set_are_refused_by_name(url: str) -> None:
    with pytest.raises(InvalidOption, match=r"takes no storage options, but was given key, secret. Next: Leave them out"):
        open_store(url, {"secret": "hunter2", "key": "id"})
