"""What goes wrong before a request can be signed: nothing was sent, so a put did not happen, and no second try mends a file."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bucketcatalog.errors import AccessDenied, BucketCatalogError, InvalidOption, ObjectNotFound, StoreUnreachable
from bucketcatalog.store.s3.inventory import S3Inventory
from bucketcatalog.store.s3.store import S3Store
from bucketcatalog.store.tickets import redeemed, ticket_for

from ...kit.answering import Answering, answering, refusal
from ...kit.world import without_aws


@pytest.fixture(autouse=True)
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of this test alone that configures the AWS SDKs; nothing of this machine's own is found."""
    without_aws(monkeypatch, tmp_path)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    return tmp_path / "config"


def store(server: Answering) -> S3Store:
    """One that has no credentials of its own, and would try again for longer than a test takes."""
    return S3Store("s3://bucket", {"endpoint_url": server.url, "region": "us-east-1", "retry_timeout": 60})


def refused(opened: S3Store) -> BucketCatalogError:
    """How a read and a put of the store are refused, which is the same way."""
    began = time.monotonic()
    with pytest.raises(BucketCatalogError) as read:
        opened.get("w/a")
    assert time.monotonic() - began < 10
    with pytest.raises(BucketCatalogError) as put:
        opened.put("w/a", b"x")
    assert str(read.value) == str(put.value)
    return put.value


def program(folder: Path, code: str) -> str:
    """A line of configuration that makes a Python program give the credentials."""
    (folder / "program.py").write_text(code)
    return f"[default]\ncredential_process = {sys.executable} {folder / 'program.py'}\n"


@pytest.mark.parametrize(
    "text",
    [
        "no section = 1",
        "[default]\ncredential_process = /no/such/program",
        "[default]\ncredential_process = '",
        "[default]\nregion = \xff",
    ],
    ids=["not a configuration", "a program that is not there", "half a command", "not UTF-8"],
)
def test_a_configuration_that_cannot_be_followed_is_told_at_once(config: Path, text: str) -> None:
    config.write_bytes(text.encode("latin-1"))
    with answering(lambda _: refusal(404, "NoSuchKey")) as server:
        error = refused(store(server))
        assert type(error) is InvalidOption and "AWS configuration files" in error.next_step
        assert server.asked == []


@pytest.mark.parametrize("code", ["print('no json')", "print('[]')"])
def test_a_program_that_prints_no_credentials_is_told_at_once(config: Path, code: str) -> None:
    config.write_text(program(config.parent, code))
    with answering(lambda _: refusal(404, "NoSuchKey")) as server:
        assert type(refused(store(server))) is InvalidOption
        assert server.asked == []


def test_a_program_that_gives_no_credentials_denies_access(config: Path) -> None:
    config.write_text(program(config.parent, "raise SystemExit('not today')"))
    with answering(lambda _: refusal(404, "NoSuchKey")) as server:
        error = refused(store(server))
        assert type(error) is AccessDenied and "not today" in error.message
        assert server.asked == []


def test_credentials_are_fetched_again_when_they_run_out(config: Path) -> None:
    """Those that last for five minutes are fetched for every request. A program that is gone by then has sent nothing either."""
    count = config.parent / "count"
    count.write_text("x")
    given = {"Version": 1, "SecretAccessKey": "secret", "Expiration": _iso(time.time() + 300)}
    code = f"import json; f = open({str(count)!r}, 'r+'); n = len(f.read()); f.write('x'); g = {given!r}"
    config.write_text(program(config.parent, f"{code}; print(json.dumps(dict(g, AccessKeyId='key%d' % n)))"))
    with answering(lambda _: refusal(404, "NoSuchKey")) as server:
        opened = store(server)
        for _ in range(2):
            with pytest.raises(ObjectNotFound):
                opened.get("w/a")
        used = [asked.headers["Authorization"].split("Credential=")[1].split("/")[0] for asked in server.asked]
        assert len(set(used)) == 2
        (config.parent / "program.py").unlink()
        assert type(refused(opened)) is AccessDenied
        assert len(server.asked) == 2


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [(503, "ServiceUnavailable", StoreUnreachable), (400, "Throttling", StoreUnreachable), (403, "AccessDenied", AccessDenied)],
)
def test_a_put_whose_credentials_cannot_be_fetched_did_not_happen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, code: str, expected: type[BucketCatalogError]
) -> None:
    body = f"<ErrorResponse><Error><Code>{code}</Code><Message>m</Message></Error></ErrorResponse>".encode()
    with answering(lambda _: (status, body)) as giver, answering(lambda _: refusal(404, "NoSuchKey")) as server:
        _fetch_from(giver.url, tmp_path, monkeypatch)
        with pytest.raises(BucketCatalogError, match=code) as caught:
            store(server).put("w/a", b"x")
        assert type(caught.value) is expected
        assert giver.asked and server.asked == []


def test_a_put_whose_credentials_come_from_nowhere_did_not_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fetch_from("http://127.0.0.1:1", tmp_path, monkeypatch)
    with answering(lambda _: refusal(404, "NoSuchKey")) as server:
        with pytest.raises(StoreUnreachable, match=r"127\.0\.0\.1:1.*Next: .*credentials"):
            store(server).put("w/a", b"x")
        assert server.asked == []


def test_opening_an_inventory_fetches_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering(lambda _: refusal(403, "AccessDenied")) as giver:
        _fetch_from(giver.url, tmp_path, monkeypatch)
        inventory = S3Inventory("s3://bucket", {"endpoint_url": "http://127.0.0.1:1", "region": "us-east-1"})
        assert inventory.authority == "127.0.0.1:1"
        assert giver.asked == []


def _fetch_from(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token in a file is exchanged for credentials by the service at ``url``."""
    (folder / "token").write_text(json.dumps("token"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/some")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(folder / "token"))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", url)


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns as often as they can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("hasty")
def test_threads_that_pickle_stores_at_once_get_tickets_for_their_credentials() -> None:
    """Those of one thread alone, and those that all of them have, which have one ticket."""
    threads, turns = 8, 200
    start = threading.Barrier(threads)
    found: dict[int, list[tuple[str, dict[str, str]]]] = {}

    def work(number: int) -> None:
        start.wait()
        mine = [{"key": f"{number}-{turn}", "secret": "some"} for turn in range(turns)]
        shared = [{"key": f"all-{turn}", "secret": "some"} for turn in range(turns)]
        each = [given for pair in zip(shared, mine, strict=True) for given in pair]
        found[number] = [(ticket_for(given), given) for given in each]

    working = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join()
    assert len(found) == threads, "a thread failed"
    assert all(redeemed(ticket) == given for pairs in found.values() for ticket, given in pairs)
    assert len({ticket for pairs in found.values() for ticket, _ in pairs}) == turns * (threads + 1)
