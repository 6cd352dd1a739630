"""Who a store is when it asks: options, environment, profile, web identity; and what comes of credentials that do not suffice."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog.errors import AccessDenied, InvalidOption
from bucketcatalog.store.s3.store import S3Store
from minio.clients import client
from minio.process import Server

from ..kit.roles import credentials
from ..kit.world import without_aws
from .identities import Identities, TrustingServer
from .proxy import Proxy, Refusal


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's own configuration is found."""
    without_aws(monkeypatch, tmp_path)


def reads_and_writes(store: S3Store) -> None:
    store.put("w/a", b"x")
    assert store.get("w/a") == b"x"
    assert [info.name for info in store.list("")] == ["w/a"]


def in_another_process(code: str, *arguments: str) -> str:
    """What Python prints for the code."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_environment(bucket: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    given = credentials(server, "writer", bucket, "", "w")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint_url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", given["key"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", given["secret"])
    monkeypatch.setenv("AWS_SESSION_TOKEN", given["token"])
    store = S3Store(f"s3://{bucket}")
    reads_and_writes(store)
    with pytest.raises(AccessDenied):
        store.put("v/a", b"x")


def test_endpoint_of_s3_alone_and_region_of_the_environment(bucket: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with Proxy(server.endpoint_url) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint_url)
        monkeypatch.setenv("AWS_REGION", "eu-south-2")
        reads_and_writes(S3Store(f"s3://{bucket}", {"key": server.access_key, "secret": server.secret_key, "path_style": "true"}))
        assert {request.headers["Authorization"].split("/")[2] for request in proxy.take()} == {"eu-south-2"}


def test_profile(bucket: str, server: Server, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(f"[profile lake]\nregion = eu-north-1\nendpoint_url = {server.endpoint_url}\n")
    keys = f"aws_access_key_id = {server.access_key}\naws_secret_access_key = {server.secret_key}\n"
    (tmp_path / "credentials").write_text(f"[lake]\n{keys}")
    reads_and_writes(S3Store(f"s3://{bucket}", {"profile": "lake"}))
    with pytest.raises(InvalidOption, match="sea"):
        S3Store(f"s3://{bucket}", {"profile": "sea"}).get("a")
    with pytest.raises(AccessDenied, match="Unable to locate credentials"):
        S3Store(f"s3://{bucket}", {"endpoint_url": server.endpoint_url}).get("a")


@pytest.fixture(scope="module")
def identities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Identities]:
    with Identities(tmp_path_factory.mktemp("identities")) as running:
        yield running


@pytest.fixture(scope="module")
def trusting(identities: Identities) -> Iterator[TrustingServer]:
    server = TrustingServer()
    server.identities = identities.url
    with server:
        root = client(server.storage_options)
        root.create_bucket(Bucket="some")
        root.close()
        yield server


def test_web_identity(identities: Identities, trusting: TrustingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a pod of Kubernetes has it: a token in a file, exchanged for credentials that last an hour."""
    (tmp_path / "token").write_text(identities.token("somebody"))
    monkeypatch.setenv("AWS_ROLE_ARN", trusting.role)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", trusting.endpoint_url)
    reads_and_writes(S3Store("s3://some/inventory", {"endpoint_url": trusting.endpoint_url, "region": "us-east-1"}))


def test_web_identity_that_is_not_believed_is_denied_at_once(
    identities: Identities, trusting: TrustingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ROLE_ARN", trusting.role)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", trusting.endpoint_url)
    token = identities.token("somebody")
    forged = token[:-9] + ("AAAA" if token[-9:-5] != "AAAA" else "BBBB") + token[-5:]
    for token in (identities.token("somebody", lasts=-60), forged, "nonsense"):
        (tmp_path / "token").write_text(token)
        store = S3Store("s3://some/inventory", {"endpoint_url": trusting.endpoint_url, "region": "us-east-1"})
        began = time.monotonic()
        for call in (lambda store=store: store.get("a"), lambda store=store: store.put("a", b"x")):
            with pytest.raises(AccessDenied) as caught:
                call()
            assert token not in str(caught.value)
        assert time.monotonic() - began < 10


def test_options_come_before_the_environment(bucket: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "somebody's")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "and a token that is not to be mixed with other credentials")
    reads_and_writes(S3Store(f"s3://{bucket}", server.storage_options))


def test_without_any_credentials_it_is_said_how_to_give_them(bucket: str, server: Server) -> None:
    store = S3Store(f"s3://{bucket}", {"endpoint_url": server.endpoint_url})
    with pytest.raises(AccessDenied, match=r"Next: Give key and secret as options, a profile"):
        store.put("a", b"x")


def test_an_anonymous_store_may_do_what_everybody_may(bucket: str, server: Server, s3: Any) -> None:
    store = S3Store(f"s3://{bucket}", {"endpoint_url": server.endpoint_url, "anon": "true"})
    S3Store(f"s3://{bucket}", server.storage_options).put("a/b", b"x")
    with pytest.raises(AccessDenied):
        store.get("a/b")
    allowed = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{bucket}/*"}
    s3.put_bucket_policy(Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": [allowed]}))
    assert store.get("a/b") == b"x"
    with pytest.raises(AccessDenied):
        store.put("a/b", b"y")


@pytest.mark.parametrize("wrong", ["key", "secret", "token"])
def test_wrong_credentials_are_denied_at_the_first_request(bucket: str, server: Server, wrong: str) -> None:
    given = credentials(server, "writer", bucket, "", "w") | {wrong: "wrong" * 4}
    with Proxy(server.endpoint_url) as proxy:
        store = S3Store(f"s3://{bucket}", given | {"endpoint_url": proxy.endpoint_url})
        for call in (
            lambda: store.put("w/a", b"x"),
            lambda: store.get("w/a"),
            lambda: [*store.list("w/")],
            lambda: store.head("w/a"),
        ):
            with pytest.raises(AccessDenied, match="Next: ") as caught:
                call()
            assert len(proxy.take()) == 1
            assert not any(given[name] in str(caught.value) for name in ("secret", "token"))


@pytest.mark.parametrize(
    ("answer", "next_step"),
    [
        (Refusal(400, "ExpiredToken"), "Check the credentials"),
        (Refusal(403, "ExpiredToken"), "Check the credentials"),
        (Refusal(400, "InvalidToken"), "Check the credentials"),
        (Refusal(403, "RequestTimeTooSkewed"), "Set this machine's clock right"),
        (Refusal(403, "AccessDenied"), "the role"),
    ],
)
def test_what_the_server_never_grants_is_asked_for_once(bucket: str, server: Server, answer: Refusal, next_step: str) -> None:
    """Credentials that run out while a store is open, among others: MinIO's live for 15 minutes at least, so its answer is given here."""
    with Proxy(server.endpoint_url) as proxy:
        store = S3Store(f"s3://{bucket}", server.storage_options | {"endpoint_url": proxy.endpoint_url})
        reads_and_writes(store)
        proxy.take()
        proxy.inject(answer, times=None)
        for call in (lambda: store.put("w/a", b"x"), lambda: store.get("w/a"), lambda: [*store.list("w/")]):
            with pytest.raises(AccessDenied, match=f"Next: .*{next_step}"):
                call()
            assert len(proxy.take()) == 1


# Other processes.

_USE = """
import pickle, sys
store = pickle.load(open(sys.argv[1], "rb"))
try:
    print(store.get("w/a").decode())
except Exception as error:
    print(error)
"""

_FORK = """
import os, sys
from bucketcatalog.store.s3.store import S3Store
store = S3Store(sys.argv[1], dict(zip(sys.argv[2::2], sys.argv[3::2])))
store.put("w/first", b"x")
children = []
for number in range(4):
    child = os.fork()
    if not child:
        try:
            for turn in range(20):
                store.put(f"w/{number}/{turn}", b"%d" % turn)
                assert store.get(f"w/{number}/{turn}") == b"%d" % turn
            os._exit(0)
        finally:
            os._exit(1)
    children.append(child)
for turn in range(20):
    store.put(f"w/parent/{turn}", b"x")
print(*(os.waitpid(child, 0)[1] for child in children), len(list(store.list(""))))
"""


def test_a_pickle_holds_no_credentials_and_says_so_elsewhere(bucket: str, server: Server, tmp_path: Path) -> None:
    given = credentials(server, "writer", bucket, "", "w")
    store = S3Store(f"s3://{bucket}", given)
    store.put("w/a", b"found")
    data = pickle.dumps(store)
    assert not any(given[name].encode() in data for name in ("key", "secret", "token"))
    assert pickle.loads(data).get("w/a") == b"found"
    (tmp_path / "store").write_bytes(data)
    assert "ACCESS_DENIED" in (said := in_another_process(_USE, str(tmp_path / "store")))
    assert "pickles do not hold them" in said


def test_a_pickle_works_elsewhere_where_the_environment_gives_the_credentials(
    bucket: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", server.secret_key)
    store = S3Store(f"s3://{bucket}", {"endpoint_url": server.endpoint_url})
    store.put("w/a", b"found")
    (tmp_path / "store").write_bytes(pickle.dumps(store))
    assert in_another_process(_USE, str(tmp_path / "store")) == "found"


def test_forked_children_use_a_store_that_their_parent_has_opened_and_used(bucket: str, server: Server) -> None:
    """Each on connections of its own, or they would read one another's answers."""
    options = [text for pair in server.storage_options.items() for text in pair]
    assert in_another_process(_FORK, f"s3://{bucket}/inventory", *options) == "0 0 0 0 101"
