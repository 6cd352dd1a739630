"""Objects of a store as files of others: ranges of bytes and no more, and how a client of their own reaches a bucket."""

from __future__ import annotations

import io
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import clock
from bucketcatalog.errors import ObjectNotFound, TruncatedObject
from bucketcatalog.store import LocalStore, MemoryStore
from bucketcatalog.store.elsewhere import as_files, for_object_store, local_path, path_of
from bucketcatalog.store.s3.store import S3Store
from bucketcatalog.store.wrappers import Counting

from ...kit.world import without_aws

NAME = "w/db/segments/a [b]*?.parquet"


@pytest.fixture
def store() -> Counting:
    inner = MemoryStore()
    inner.put(NAME, b"0123456789")
    return Counting(inner)


def test_a_file_is_read_by_the_ranges_that_are_asked_for_and_its_size_is_what_its_path_says(store: Counting) -> None:
    files, path = as_files(store, "ours1"), path_of("ours1", NAME, 10)
    assert files.info(path)["size"] == 10 and files.glob(path) == [path] and files.modified(path) == files.modified(path)
    with files.open(path) as file:
        assert store.requests == {} and file.readable() and file.seekable() and not file.writable()
        assert (file.seek(-3, io.SEEK_END), file.read(2), file.tell(), file.read(), file.read(5)) == (7, b"78", 9, b"9", b"")
        assert (file.seek(2), file.seek(3, io.SEEK_CUR), file.read(1)) == (2, 5, b"5")
    assert store.requests == {"get_range": 3} and store.bytes_read == 4


def test_threads_that_share_a_file_each_read_from_where_they_themselves_stand(store: Counting) -> None:
    all_have_sought = threading.Barrier(8)
    with as_files(store, "ours4").open(path_of("ours4", NAME, 10)) as file, ThreadPoolExecutor(8) as pool:

        def read(at: int) -> tuple[bytes, int]:
            file.seek(at)
            all_have_sought.wait(60)
            return file.read(2), file.tell()

        assert list(pool.map(read, range(8))) == [(b"%d%d" % (at, at + 1), at + 2) for at in range(8)]


def test_what_is_not_there_or_shorter_than_was_said_is_the_stores_error(store: Counting) -> None:
    files = as_files(store, "ours2")
    with files.open(path_of("ours2", "nothing", 4)) as file, pytest.raises(ObjectNotFound):
        file.read()
    with files.open(path_of("ours2", NAME, 11)) as file, pytest.raises(TruncatedObject):
        file.read()


@pytest.mark.parametrize("mode", ["wb", "ab", "xb", "r+b"])
def test_nothing_is_written_through_files(store: Counting, mode: str) -> None:
    with pytest.raises(PermissionError, match="can only be read"):
        as_files(store, "ours3").open(path_of("ours3", NAME, 10), mode)
    with pytest.raises(NotImplementedError):
        as_files(store, "ours3").rm_file(path_of("ours3", NAME, 10))
    assert store.requests == {}


def test_only_an_object_in_a_directory_has_a_path(tmp_path: Path, store: Counting) -> None:
    assert (
        local_path(LocalStore(tmp_path / "lake"), "w/a") == f"{tmp_path}/lake/w/a"
        and local_path(LocalStore("/"), "w/a") == "/w/a"
    )
    assert local_path(store, "w/a") is None and local_path(S3Store("s3://bucket/lake"), "w/a") is None


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    without_aws(monkeypatch, tmp_path)
    return monkeypatch


GIVEN = {"key": "k", "secret": "hidden-secret", "region": "eu-west-1"}


def test_another_client_is_told_of_a_bucket_what_this_packages_knows(aws: pytest.MonkeyPatch) -> None:
    found = for_object_store(S3Store("s3://bucket/lake", {**GIVEN, "token": "hidden-token"}))
    assert found is not None and found.credentials is not None and "hidden" not in repr(found)
    assert found.options == {
        "aws_endpoint_url": "https://s3.eu-west-1.amazonaws.com",
        "aws_region": "eu-west-1",
        "aws_virtual_hosted_style_request": "false",
        "aws_skip_signature": "false",
        "aws_allow_http": "false",
        "aws_allow_invalid_certificates": "false",
    }
    given = {"aws_access_key_id": "k", "aws_secret_access_key": "hidden-secret", "aws_session_token": "hidden-token"}
    assert found.credentials() == (given, None)
    pickled = pickle.dumps(found.credentials)
    assert b"hidden" not in pickled and pickle.loads(pickled)() == (given, None)


def test_credentials_of_the_usual_chain_are_asked_for_again_in_time(aws: pytest.MonkeyPatch) -> None:
    aws.setenv("AWS_ACCESS_KEY_ID", "k")
    aws.setenv("AWS_SECRET_ACCESS_KEY", "first")
    aws.setattr(clock, "now_us", lambda: 1_700_000_000_000_000)
    found = for_object_store(S3Store("s3://bucket/lake", {"region": "eu-west-1"}))

    assert found is not None and found.credentials is not None
    assert found.credentials() == ({"aws_access_key_id": "k", "aws_secret_access_key": "first"}, 1_700_000_300)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"endpoint_url": "http://127.0.0.1:9000"}, {"aws_endpoint_url": "http://127.0.0.1:9000", "aws_allow_http": "true"}),
        ({"verify": "false"}, {"aws_allow_invalid_certificates": "true"}),
        ({"path_style": True}, {"aws_virtual_hosted_style_request": "false"}),
        ({"verify": __file__}, None),
        ({"path_style": False}, None),
    ],
    ids=str,
)
def test_what_another_client_cannot_do_alike_is_not_asked_of_it(
    aws: pytest.MonkeyPatch, options: dict[str, Any], told: dict[str, str] | None
) -> None:
    found = for_object_store(S3Store("s3://bucket/lake", {**GIVEN, **options}))

    assert (found is None) is (told is None)
    assert found is None or told is None or found.options.items() >= told.items()


def test_who_signs_nothing_gives_no_credentials(aws: pytest.MonkeyPatch) -> None:
    found = for_object_store(S3Store("s3://bucket/lake", {"anon": True, "region": "eu-west-1"}))

    assert found is not None and found.credentials is None and found.options["aws_skip_signature"] == "true"
