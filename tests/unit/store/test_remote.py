"""Stores that fsspec reaches: the contract, atomicity, errors, options, times and leftovers."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from bucketcatalog import clock
from bucketcatalog.errors import (
    AccessDenied,
    BucketCatalogError,
    InvalidOption,
    ObjectNotFound,
    OutcomeUnknown,
    StoreUnavailable,
    UnsupportedStore,
)
from bucketcatalog.store import FsspecStore, LocalStore, Store
from bucketcatalog.store.base import UnfinishedPut
from bucketcatalog.store.remote_files import modified_us

from ...kit.store_contract import StoreContract, names_of

SECRET = "hunter2-is-my-password"


class CachingFileSystem(MemoryFileSystem):
    """Caches listings, as most remote file systems do unless told otherwise."""

    protocol = "caching"

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        if path not in self.dircache:
            found = super().ls(path, detail=detail, **options)
            self.dircache[path] = found
            return found
        return self.dircache[path]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(MemoryFileSystem._strip_protocol(path.replace("caching://", "memory://")))


class ResponseError(Exception):
    """As the libraries of object stores raise them: of no class that anybody else knows."""


class NoCredentialsError(Exception):
    pass


class FailingFileSystem(MemoryFileSystem):
    """Raises what ``failures`` names for a method, and says in it what it was opened with."""

    protocol = "memory"
    failures: dict[str, type[Exception]] = {}  # noqa: RUF012

    def __init__(self, *, password: str = "", **options: Any) -> None:
        super().__init__(**options)
        self.password = password

    def _fail(self, method: str) -> None:
        if method in self.failures:
            raise self.failures[method](f"could not {method} with password {self.password}") from ValueError(self.password)

    def cat_file(self, path: str, *arguments: Any, **options: Any) -> Any:
        self._fail("get")
        return super().cat_file(path, *arguments, **options)

    def pipe_file(self, path: str, *arguments: Any, **options: Any) -> None:
        self._fail("put")
        super().pipe_file(path, *arguments, **options)

    def ls(self, path: str, *arguments: Any, **options: Any) -> Any:
        self._fail("list")
        return super().ls(path, *arguments, **options)

    def find(self, path: str, *arguments: Any, **options: Any) -> Any:
        self._fail("list")
        return super().find(path, *arguments, **options)

    def rm_file(self, path: str) -> None:
        self._fail("delete")
        super().rm_file(path)


@pytest.fixture
def failing() -> Iterator[FsspecStore]:
    """An opened store of which the test can make any method fail."""
    fsspec.register_implementation("memory", FailingFileSystem, clobber=True)
    try:
        yield FsspecStore(f"memory://{clock.random_token()}", {"password": SECRET})
    finally:
        FailingFileSystem.failures.clear()
        fsspec.register_implementation("memory", MemoryFileSystem, clobber=True)


class TestFsspecMemory(StoreContract):
    @pytest.fixture
    def store(self) -> Iterator[Store]:
        token = clock.random_token()
        yield FsspecStore(f"memory://{token}/catalog")
        for path in [path for path in MemoryFileSystem.store if path.startswith(f"/{token}/")]:
            del MemoryFileSystem.store[path]


class TestFsspecFile(StoreContract):
    """Read over fsspec, written by a local store, since fsspec writes files in place."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return FsspecStore(f"file://{tmp_path}/catalog")

    @pytest.fixture
    def writer(self, tmp_path: Path) -> Store:
        return LocalStore(tmp_path / "catalog")


class TestFsspecCaching(StoreContract):
    """Read through a file system that caches its listings."""

    @pytest.fixture
    def store(self, writer: Store) -> Store:
        fsspec.register_implementation("caching", CachingFileSystem, clobber=True)
        return FsspecStore(writer.url.replace("memory://", "caching://"))

    @pytest.fixture
    def writer(self) -> Store:
        return FsspecStore(f"memory://{clock.random_token()}")


@pytest.mark.parametrize("protocol", ["file", "local", "caching"])
def test_write_to_a_store_that_is_not_known_to_be_atomic_is_refused(tmp_path: Path, protocol: str) -> None:
    fsspec.register_implementation("caching", CachingFileSystem, clobber=True)
    store = FsspecStore(f"{protocol}://{tmp_path}")
    for call in (lambda: store.put("a", b"x"), lambda: store.delete("a")):
        with pytest.raises(
            UnsupportedStore, match=f"{protocol}:// can be seen half done. Next: Write to a local path or an object"
        ):
            call()
    assert [*tmp_path.iterdir()] == []


def test_stray_temporary_file_of_a_local_writer_is_invisible(tmp_path: Path) -> None:
    LocalStore(tmp_path).put("w/t/0", b"x")
    (tmp_path / "w/t/.put-0011223344556677").write_bytes(b"half")
    (tmp_path / "v").mkdir()
    store = FsspecStore(f"file://{tmp_path}")
    assert names_of(store.list("")) == ["w/t/0"]
    assert store.list_prefixes("") == ["w"]


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (PermissionError, AccessDenied),
        (NoCredentialsError, AccessDenied),
        (ConnectionResetError, StoreUnavailable),
        (TimeoutError, StoreUnavailable),
        (ResponseError, StoreUnavailable),
        (NotImplementedError, UnsupportedStore),
    ],
)
@pytest.mark.parametrize("method", ["get", "list", "list_prefixes", "list_after", "delete", "put"])
def test_foreign_errors_become_our_own_and_tell_no_secret(
    failing: FsspecStore, method: str, raised: type[Exception], expected: type[BucketCatalogError]
) -> None:
    failing.put("a/b", b"x")
    FailingFileSystem.failures[method.partition("_")[0]] = raised
    calls = {
        "get": lambda: failing.get("a/b"),
        "list": lambda: list(failing.list("")),
        "list_prefixes": lambda: failing.list_prefixes(""),
        "list_after": lambda: list(failing.list("", after="a/a")),
        "delete": lambda: failing.delete("a/b"),
        "put": lambda: failing.put("a/b", b"x"),
    }
    if method == "put" and expected is StoreUnavailable:
        expected = OutcomeUnknown
    with pytest.raises(expected, match=r"memory://.*[^.]\. Next: ") as caught:
        calls[method]()
    assert type(caught.value) is expected
    assert "***" in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_put_where_there_is_no_bucket_did_not_happen(failing: FsspecStore) -> None:
    FailingFileSystem.failures["put"] = FileNotFoundError
    with pytest.raises(StoreUnavailable, match="Create the bucket"):
        failing.put("a/b", b"x")


def test_failed_range_is_not_taken_for_a_truncated_object(failing: FsspecStore) -> None:
    failing.put("a/b", b"0123456789")
    FailingFileSystem.failures["get"] = ConnectionResetError
    with pytest.raises(StoreUnavailable):
        failing.get_range("a/b", 2, 3)


def test_options_reach_the_file_system_and_are_not_shown(failing: FsspecStore) -> None:
    assert failing._connect()[0].password == SECRET
    assert SECRET not in repr(failing) + failing.url + str(failing)
    copy = pickle.loads(pickle.dumps(failing))
    assert copy._connect()[0].password == SECRET


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"memory://user:{SECRET}@host/path", "memory://user@host/path"),
        (f"memory://host/path?signature={SECRET}", "memory://host/path"),
        ("memory://container@account/path", "memory://container@account/path"),
    ],
)
def test_secrets_in_the_url_are_not_shown(url: str, shown: str) -> None:
    store = FsspecStore(url)
    assert store.url == shown
    assert repr(store) == f"FsspecStore({shown!r})"
    with pytest.raises(ObjectNotFound) as caught:
        store.get("a")
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_option_that_the_file_system_does_not_take_is_refused_without_its_value(tmp_path: Path) -> None:
    class Strict(MemoryFileSystem):
        protocol = "strict"

        def __init__(self, **options: Any) -> None:
            if "typo" in options:
                raise TypeError(f"unexpected option typo={options['typo']}")
            super().__init__(**options)

    fsspec.register_implementation("strict", Strict, clobber=True)
    with pytest.raises(InvalidOption, match=r"typo=\*\*\*"):
        FsspecStore("strict://x", {"typo": SECRET})


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"mtime": 1.5}, 1_500_000),
        ({"mtime": 3}, 3_000_000),
        ({"updated": "1970-01-01T00:00:02.000001Z"}, 2_000_001),
        ({"created": "1970-01-01T00:00:02"}, 2_000_000),
        ({"created": "yesterday"}, 0),
        ({"mtime": None, "size": 3}, 0),
        ({"created": 9.0, "mtime": 4.0}, 4_000_000),
    ],
)
def test_times_are_understood_in_every_form_that_file_systems_give(info: dict[str, Any], expected: int) -> None:
    assert modified_us(info) == expected


def test_time_is_learnt_from_the_last_put_for_thirty_seconds(failing: FsspecStore, monkeypatch: pytest.MonkeyPatch) -> None:
    hour, real, passed = 3_600_000_000, clock.now_us, [0]
    monkeypatch.setattr(clock, "now_us", lambda: real() + hour + passed[0] * 1_000_000)
    monkeypatch.setattr(clock, "monotonic", lambda: 100.0 + passed[0])
    assert abs(failing.now_us() - real() - hour) < 1_000_000
    failing.put("a", b"x")
    assert abs(failing.now_us() - real()) < 1_000_000
    passed[0] = 30
    assert abs(failing.now_us() - real() - 30_000_000) < 1_000_000  # what was learnt still holds
    passed[0] = 31
    assert abs(failing.now_us() - real() - hour - 31_000_000) < 1_000_000


def test_a_writer_is_told_the_stores_time_before_it_has_put_anything(
    failing: FsspecStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour, real = 3_600_000_000, clock.now_us
    monkeypatch.setattr(clock, "now_us", lambda: real() + hour)
    assert abs(failing.now_us() - real() - hour) < 1_000_000
    assert abs(failing.now_us("w/db/transactions/") - real()) < 1_000_000
    assert abs(failing.now_us() - real()) < 1_000_000
    assert [*failing.list("")] == [*failing.unfinished_puts()] == []


def test_where_a_writer_may_not_delete_what_asking_leaves_is_no_object_and_can_be_thrown_away(
    failing: FsspecStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise PermissionError

    with monkeypatch.context() as patch:
        patch.setattr(failing._connect()[0], "rm_file", refused)
        failing.now_us("w/db/transactions/")
    (left,) = failing.unfinished_puts()
    assert left.name.startswith("w/db/transactions/.put-")
    assert [*failing.list("")] == []
    failing.discard(left)
    assert [*failing.unfinished_puts()] == []
    with pytest.raises(ValueError, match="not a temporary object"):
        failing.discard(UnfinishedPut("w/db/transactions/x", 0))


def test_a_store_that_does_not_say_when_it_was_written_refuses_writers(
    failing: FsspecStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs = failing._connect()[0]
    monkeypatch.setattr(fs, "info", lambda path: {"name": path, "type": "file", "size": 0})
    with pytest.raises(StoreUnavailable, match=r"The time of .* cannot be learnt"):
        failing.now_us("w/db/transactions/")
    assert [*failing.unfinished_puts()] == []


def test_what_is_left_is_found_folder_by_folder_and_never_by_a_listing_of_the_whole_store(
    failing: FsspecStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fs, root = failing._connect()
    for name in ("w/db/segments/a.parquet", "w/db/segments/.put-1", ".put-2", "w/db/transactions/0/.put-3", "x/y"):
        fs.pipe_file(f"{root}/{name}", b"")

    whole: list[str] = []
    find = fs.find
    monkeypatch.setattr(fs, "find", lambda path, **options: [whole.append(path[len(root) :]), find(path, **options)][1])
    left = failing.unfinished_puts()
    assert next(left).name == ".put-2" and not whole
    assert next(left).name == "w/db/segments/.put-1" and whole == ["/w/db/segments"]  # no folder is listed before it is needed
    assert [put.name for put in left] == ["w/db/transactions/0/.put-3"]
    assert whole == ["/w/db/segments", "/w/db/transactions"]
