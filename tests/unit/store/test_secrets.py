"""Passwords that hold what ends a password elsewhere."""

from __future__ import annotations

import traceback

import pytest

from bucketcatalog.errors import InvalidOption
from bucketcatalog.store.open import open_store
from bucketcatalog.store.remote_files import RemoteFiles
from bucketcatalog.store.secrets import Secrets


@pytest.mark.parametrize(
    ("url", "public", "password"),
    [
        ("http://bob:p@ssword1@host/pub", "http://bob@host/pub", "p@ssword1"),
        ("http://bob:p@ssw:rd1@host:80/a@b", "http://bob@host:80/a@b", "p@ssw:rd1"),
        ("ftp://bob@firm.org:hunter22@host/pub", "ftp://bob@firm.org@host/pub", "hunter22"),
        ("ftp://bob:@@@@@host/pub", "ftp://bob@host/pub", "@@@@"),
        ("zip://in/side::http://bob:p@ssword1@host/x", "zip://in/side::http://bob@host/x", "p@ssword1"),
        ("sftp://bob:hunter22@[::1]:22/x@y", "sftp://bob@[::1]:22/x@y", "hunter22"),
        ("sftp://bob:hunter%2F22@host/pub", "sftp://bob@host/pub", "hunter/22"),
    ],
)
def test_the_whole_password_is_hidden(url: str, public: str, password: str) -> None:
    secrets = Secrets(url, {})
    assert secrets.public_url == public
    assert secrets.hide(f"the password is {password}.") == "the password is ***."
    assert password not in secrets.hide(f"no answer from {url}")


def test_a_password_is_hidden_as_clients_write_it_too() -> None:
    assert Secrets("http://bob:p@ssword1@host/pub", {}).hide("http://bob:p%40ssword1@host/pub") == "http://bob:***@host/pub"


@pytest.mark.parametrize(
    "url",
    [
        "http://host:8080/users/bob@host",
        "http://host:/bob@host",
        "http://host/a:b@c",
        "http://[::1]:8080/bob@host",
        "abfs://container@account/a:b@c",
        "zip://file.txt::http://host/a@b",
        "sftp://bob@host:22/a@b",
        "gs://bucket/a@b",
    ],
)
def test_what_is_no_password_is_left_as_it_is(url: str) -> None:
    assert Secrets(url, {}).public_url == url


SPLIT = [
    "sftp://bob:hunter/22@host/x",
    "http://bob:hunter?22@host/x",
    "http://bob:hunter#22@host/x",
    "http://bob:1234567/8@host/x",
    "ftp://bob@firm.org:hunter/22@host/x",
    "simplecache::http://bob:hunter/22@host/x",
    "s3://AKIAX:hunter/22@bucket/x",
]


@pytest.mark.parametrize("url", SPLIT)
def test_a_password_that_seems_to_end_too_early_is_refused_unseen(url: str) -> None:
    """Nobody can say where it ends, and what were shown of it would stay in catalogs for ever."""
    opens = [open_store] if url.startswith("s3:") else [open_store, RemoteFiles]
    for opened in opens:
        with pytest.raises(InvalidOption, match=r"Next: .*(percent-encoded|as options)") as caught:
            opened(url)
        shown = "".join(traceback.format_exception(caught.value))
        assert not any(part in shown for part in ("hunter", "22@", "1234567", "8@"))


def test_the_arn_of_an_access_point_is_no_password() -> None:
    url = "s3://arn:aws:s3:eu-west-1:123456789012:accesspoint/name/a@b"
    assert open_store(url).url == url
