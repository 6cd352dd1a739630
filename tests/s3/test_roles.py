"""The engine with the rights of each role, as the shipped policies give them: what it can do, and what it says of what it cannot.

And nowhere does anything show the credentials it was given.
"""

from __future__ import annotations

import io
import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.cli import run
from bucketcatalog.errors import AccessDenied
from bucketcatalog.store import retry
from bucketcatalog.store.s3 import uploads
from bucketcatalog.store.s3.store import S3Store
from minio.process import Server

from ..kit.store_contract import AT_ONCE_US
from ..kit.world import BUCKET, OWNER, names, obj
from .conftest import ROOT
from .proxy import Fault, Proxy

DATABASE = "photos"


@pytest.fixture
def filled(url: str, storage_options: dict[str, str]) -> str:
    """The catalog's url, with commits of w1 and w10, and a checkpoint of w1's."""
    catalog = Catalog(url, storage_options=storage_options)
    for name in ("w1", "w10"):
        with catalog.writer(name, database=DATABASE) as writer:
            put(writer, f"{name}/first")
            if name == "w1":
                writer.checkpoint()
            put(writer, f"{name}/second")
    return url


ROWS = ["w1/first", "w1/second", "w10/first", "w10/second"]


def put(writer: Any, *found: str) -> str:
    with writer.transaction() as tx:
        tx.put("objects", [obj(name) for name in found])
    return str(tx.committed.version)


def everything(url: str, options: dict[str, str]) -> dict[str, bytes]:
    store = S3Store(url, options)
    return {info.name: store.get(info.name) for info in store.list("")}


def denied(call: Callable[[], object], *, needs: str, about: str = "") -> None:
    """The call is refused with an error that names the role to use."""
    with pytest.raises(AccessDenied) as caught:
        call()
    assert caught.value.code == "ACCESS_DENIED"
    assert f"Use credentials that have the role {needs}" in caught.value.next_step
    assert about in caught.value.message


class TestReader:
    def test_reads_all_there_is(self, filled: str, role: Callable[..., dict[str, str]]) -> None:
        catalog = Catalog(filled, storage_options=role("reader"))
        snapshot = catalog.snapshot()
        assert names(snapshot) == ROWS
        assert snapshot.get("objects", **obj("w1/first")) is not None
        assert snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, delimiter="/").groups == ["w1/", "w10/"]
        assert snapshot.scan("writers").to_arrow()["writer"].to_pylist() == ["w1", "w10"]
        assert catalog.changes(database=DATABASE, start="w1@0").to_arrow().num_rows == 3
        assert catalog.databases() == [DATABASE]
        assert names(catalog.snapshot(version=snapshot.version)) == ROWS
        assert catalog.snapshot(database=DATABASE, timestamp="@0").scan("objects").to_arrow().num_rows == 0

    def test_reads_on_the_command_line(
        self, filled: str, role: Callable[..., dict[str, str]], capsys: pytest.CaptureFixture[str]
    ) -> None:
        options = [text for name, value in role("reader").items() for text in ("--storage-option", f"{name}={value}")]

        def lines(*arguments: str) -> list[Any]:
            assert run([*arguments, "--json", *options]) == 0
            return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

        (told,) = lines("info", filled)
        assert [each["database"] for each in told["databases"]] == [DATABASE]
        assert len(lines("log", filled)) == 4
        assert len(lines("writers", filled)) == 2
        assert len(lines("changes", filled, "--from", "w1@0")) == 3

    def test_commits_and_checkpoints_nothing(
        self, filled: str, role: Callable[..., dict[str, str]], storage_options: dict[str, str]
    ) -> None:
        before = everything(filled, storage_options)
        catalog = Catalog(filled, storage_options=role("reader"))
        for name in ("w1", "new"):
            with catalog.writer(name, database=DATABASE) as writer:
                denied(
                    lambda writer=writer: put(writer, "x"), needs=f"writer for '{name}'", about=f"{name}/{DATABASE}/transactions/"
                )
        with catalog.writer("w1", database=DATABASE) as writer:
            denied(writer.checkpoint, needs="writer for 'w1'", about="/segments/")
        with catalog.writer("compactor-1", database=DATABASE) as writer:
            denied(lambda: writer.checkpoint(scope="all"), needs="compactor for 'compactor-1'")
        store = catalog.store
        denied(lambda: store.delete(next(iter(before))), needs="maintainer")
        denied(lambda: [*store.unfinished_puts()], needs="maintainer")
        assert everything(filled, storage_options) == before

    def test_is_told_on_the_command_line(
        self, filled: str, role: Callable[..., dict[str, str]], capsys: pytest.CaptureFixture[str]
    ) -> None:
        given = role("reader")
        options = [text for name, value in given.items() for text in ("--storage-option", f"{name}={value}")]
        assert run(["checkpoint", filled, "--writer", "w1", *options]) == 1
        printed = capsys.readouterr()
        assert "[ACCESS_DENIED]" in printed.err and "writer for 'w1'" in printed.err
        assert not any(given[name] in printed.err + printed.out for name in ("key", "secret", "token"))

    def test_sees_no_other_root(self, filled: str, bucket: str, role: Callable[..., dict[str, str]]) -> None:
        for elsewhere in (f"s3://{bucket}/lake", f"s3://{bucket}/lake/inventor", f"s3://{bucket}"):
            with pytest.raises(AccessDenied):
                Catalog(elsewhere, storage_options=role("reader")).snapshot()

    def test_learns_the_time_although_it_may_not_ask_for_the_bucket(
        self, filled: str, role: Callable[..., dict[str, str]], storage_options: dict[str, str]
    ) -> None:
        store = S3Store(filled, role("reader"))
        assert abs(store.now_us() - S3Store(filled, storage_options).now_us()) < AT_ONCE_US


class TestWriter:
    def test_opens_commits_and_checkpoints(self, filled: str, role: Callable[..., dict[str, str]]) -> None:
        catalog = Catalog(filled, storage_options=role("writer", "w1"))
        with catalog.writer("w1", database=DATABASE) as writer:
            assert put(writer, "w1/third") == "w1@2"
            result = writer.checkpoint()
            assert result is not None and result.revision == 2
        assert names(catalog.snapshot()) == sorted([*ROWS, "w1/third"])

    def test_puts_large_objects(self, filled: str, role: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(uploads, "THRESHOLD_BYTES", 0)
        with Catalog(filled, storage_options=role("writer", "w1")).writer("w1", database=DATABASE) as writer:
            put(writer, "w1/third")
            writer.checkpoint()
        with Catalog(filled, storage_options=role("writer", "w1")).writer("w10", database=DATABASE) as other:
            denied(lambda: put(other, "x"), needs="writer for 'w10'")

    @pytest.mark.parametrize("other", ["w10", "w2", "w", "W1"])
    def test_commits_under_no_other_id(
        self, filled: str, role: Callable[..., dict[str, str]], storage_options: dict[str, str], other: str
    ) -> None:
        before = everything(filled, storage_options)
        with Catalog(filled, storage_options=role("writer", "w1")).writer(other, database=DATABASE) as writer:
            needs = f"writer for {other!r}; a writer puts below its own id only, so name the one that"
            denied(lambda: put(writer, "x"), needs=needs, about=f"'{other}/{DATABASE}/transactions/")
            denied(lambda: put(writer, "x"), needs=needs)  # nothing was put, so it is as open as before
        assert everything(filled, storage_options) == before

    def test_deletes_nothing(self, filled: str, role: Callable[..., dict[str, str]], storage_options: dict[str, str]) -> None:
        before = everything(filled, storage_options)
        store = S3Store(filled, role("writer", "w1"))
        for name in before:
            denied(lambda name=name: store.delete(name), needs="maintainer", about=name)
        denied(lambda: [*store.unfinished_puts()], needs="maintainer")
        assert everything(filled, storage_options) == before


class TestCompactor:
    def test_checkpoints_everything_below_its_own_id(
        self, filled: str, role: Callable[..., dict[str, str]], storage_options: dict[str, str]
    ) -> None:
        before = everything(filled, storage_options)
        catalog = Catalog(filled, storage_options=role("compactor", "compactor-1"))
        with catalog.writer("compactor-1", database=DATABASE) as compactor:
            result = compactor.checkpoint(scope="all")
        assert result is not None and result.rows == 4
        after = everything(filled, storage_options)
        assert {name.partition("/")[0] for name in after.keys() - before.keys()} == {"compactor-1"}
        assert {name: after[name] for name in before} == before
        snapshot = Catalog(filled, storage_options=role("reader")).snapshot()
        assert names(snapshot) == ROWS
        assert [checkpoint.writer for checkpoint in snapshot.view.checkpoints] == ["compactor-1"]
        with catalog.writer("w1", database=DATABASE) as writer:
            denied(lambda: put(writer, "x"), needs="writer for 'w1'")


class TestMaintainer:
    def test_finds_and_throws_away_what_was_left_and_deletes_anything(
        self, filled: str, role: Callable[..., dict[str, str]], storage_options: dict[str, str], s3: Any, bucket: str
    ) -> None:
        for key in (f"{ROOT}/w1/{DATABASE}/segments/a", f"{ROOT}-old/a"):
            s3.create_multipart_upload(Bucket=bucket, Key=key)
        store = S3Store(filled, role("maintainer", "maintainer-1"))
        (left,) = store.unfinished_puts()
        assert left.name == f"w1/{DATABASE}/segments/a"
        for other in (S3Store(filled, role("writer", "w1")), S3Store(filled, role("reader"))):
            denied(lambda other=other: other.discard(left), needs="maintainer", about=left.name)
        store.discard(left)
        store.discard(left)
        assert [*store.unfinished_puts()] == []
        assert len([*S3Store(f"s3://{bucket}", storage_options).unfinished_puts()]) == 1
        for name in everything(filled, storage_options):
            store.delete(name)
        assert everything(filled, storage_options) == {}

    def test_commits_below_its_own_id_only(self, filled: str, role: Callable[..., dict[str, str]]) -> None:
        catalog = Catalog(filled, storage_options=role("maintainer", "maintainer-1"))
        with catalog.writer("maintainer-1", database=DATABASE) as maintainer:
            assert put(maintainer, "x") == "maintainer-1@0"
        for name, needs in (("w1", "writer for 'w1'"), ("maintainer-10", "maintainer for 'maintainer-10'")):
            with catalog.writer(name, database=DATABASE) as writer:
                denied(lambda writer=writer: put(writer, "x"), needs=needs)


# Nobody is shown the credentials.


@contextmanager
def logging_everything() -> Iterator[io.StringIO]:
    """All that anything logs meanwhile, botocore included."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield text
    root.setLevel(level)
    root.removeHandler(handler)


def errors_of(options: dict[str, str], filled: str, proxy: Proxy) -> Iterator[BaseException]:
    """Errors of every kind that a store with these credentials can raise."""
    calls: list[Callable[[S3Store], Any]] = [
        lambda store: store.get("missing"),
        lambda store: store.put("w2/a", b"x"),
        lambda store: store.get_range(next(store.list("")).name, 1 << 30, 1),
        lambda store: [*store.unfinished_puts()],
        lambda store: store.put("../a", b"x"),
    ]
    broken: list[dict[str, Any]] = [
        {},
        {"endpoint_url": "http://127.0.0.1:1"},
        {"secret": options["secret"][::-1]},
        {"token": options["token"] + "x"},
        {"profile": "no-such-profile"},
        {"verify": "/no/such/file", "endpoint_url": "https://127.0.0.1:1"},
    ]
    for change in broken:
        for call in calls:
            try:
                call(S3Store(filled, {**options, **change, "retry_timeout": 0.1}))
            except Exception as error:
                yield error
    for fault in (Fault.DROP, Fault.CUT_ANSWER, Fault.CORRUPT_REQUEST):
        proxy.inject(fault, times=None)
        try:
            S3Store(filled, {**options, "endpoint_url": proxy.endpoint_url, "retry_timeout": 0.1}).put("w1/a", b"x")
        except Exception as error:
            yield error
        proxy.heal()
    for wrong in ({"key": options["key"]}, {"secrets": options["secret"]}, {"sse": options["token"]}):
        with suppress(AccessDenied):
            try:
                S3Store(filled, {**wrong})
            except Exception as error:
                if "sse" not in wrong:  # whoever gives a token for something else has it repeated to them
                    yield error


def test_no_credential_is_shown_by_anything(
    filled: str, server: Server, role: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "_MOMENT", 0.0)  # so that who waits is told each time
    options = role("writer", "w1")
    with logging_everything() as logged:
        shown, pickled = everything_that_shows(filled, server, options)
    hidden = {options["key"], options["secret"], options["token"]}
    for text in shown:
        assert not any(each in text for each in hidden), text
    assert len(pickled) > 25
    for data in pickled:
        assert not any(each.encode() in data for each in hidden)
    own = [line for line in logged.getvalue().splitlines() if line.startswith("bucketcatalog")]
    assert own and not any(each in line for each in hidden for line in own)
    assert "PutObject" in logged.getvalue() and options["secret"] not in logged.getvalue()


def everything_that_shows(filled: str, server: Server, options: dict[str, str]) -> tuple[list[str], list[bytes]]:
    """Texts and pickles of all that somebody gets to hold who works with a catalog, errors included."""
    catalog = Catalog(filled, storage_options=options)
    snapshot = catalog.snapshot()
    scan = snapshot.scan("objects")
    scan.to_arrow()
    writer = catalog.writer("w1", database=DATABASE)
    put(writer, "w1/third")
    with Proxy(server.endpoint_url) as proxy:
        errors = [*errors_of(options, filled, proxy)]
    assert len({type(error) for error in errors}) >= 6 and len(errors) > 25
    shown = [str(scan.explain())]
    for each in (catalog, snapshot, scan, writer, catalog.store, snapshot.scan("objects").explain()):
        shown += [repr(each), str(each)]
    for error in errors:
        shown += [repr(error), str(error), repr(vars(error)), "".join(traceback.format_exception(error))]
        seen: BaseException | None = error
        while seen is not None:
            shown += [repr(seen), str(seen)]
            seen = seen.__cause__
    return shown, [pickle.dumps(each) for each in (catalog.store, catalog, snapshot, scan, *errors)]


def test_a_secret_that_the_server_repeats_is_hidden(filled: str, server: Server, role: Callable[..., dict[str, str]]) -> None:
    """As some servers do with a key or a token that they do not know."""
    options = role("writer", "w1")
    with Proxy(server.endpoint_url) as proxy:
        store = S3Store(filled, {**options, "endpoint_url": proxy.endpoint_url})
        proxy.page = 403, f"<Error><Code>InvalidToken</Code><Message>{options['token']} is none</Message></Error>".encode()
        with pytest.raises(AccessDenied, match=r"\*\*\* is none") as caught:
            store.put("w1/a", b"x")
    assert options["token"] not in "".join(traceback.format_exception(caught.value))
