"""Pickles, texts and errors of all that is opened with secrets: none holds one, but for the one way in which executors get them."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import BucketCatalogError, Catalog, InvalidOption
from bucketcatalog.harvest import open_source
from bucketcatalog.maintain.gc.data import DataPlace, Deleters, Deleting, InCatalog
from bucketcatalog.maintain.gc.spaces import Places, spaces
from bucketcatalog.store import FsspecStore, MemoryStore, Store
from bucketcatalog.store.open import open_inventory, open_store
from bucketcatalog.store.remote_files import RemoteFiles
from bucketcatalog.store.s3.options import S3Options
from bucketcatalog.store.tickets import carried
from bucketcatalog.store.wrappers import Wrapped

from ...kit.collecting import URL, thing

CANARY = "canary-7f3a91"
S3 = {"key": CANARY, "secret": CANARY, "token": CANARY, "endpoint_url": "http://127.0.0.1:1", "retry_timeout": "0.1"}
WEB = {"headers": {"Authorization": CANARY}}
LOGIN = f"http://me:{CANARY}@127.0.0.1:1"


def stores() -> list[Store]:
    return [
        open_store("s3://lake/inventory", S3),
        open_store("http://127.0.0.1:1/lake", WEB),
        open_store(f"{LOGIN}/lake"),
        open_store(f"http://127.0.0.1:1/lake?signature={CANARY}"),
    ]


def inventories() -> list[Any]:
    return [
        open_inventory("s3://lake/inventory", S3),
        RemoteFiles("http://127.0.0.1:1/lake", WEB),
        RemoteFiles(f"{LOGIN}/lake"),
        RemoteFiles(f"http://127.0.0.1:1/lake?signature={CANARY}"),
    ]


def places() -> list[DataPlace]:
    return [
        DataPlace.open(f"s3://data/{URL}", S3, MemoryStore()),
        DataPlace.open(f"http://127.0.0.1:1/data/{URL}", WEB, MemoryStore()),
        DataPlace.open(f"{LOGIN}/data/{URL}", None, MemoryStore()),
    ]


@pytest.fixture
def everything(tmp_path: Path) -> list[Any]:
    """All that somebody gets to hold who works with a catalog on a store that has a secret, and what tasks are made of."""
    with Catalog(tmp_path).writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", thing("a"))
    options = {"auto_mkdir": False, "secret": CANARY}
    catalog = Catalog(f"local://{tmp_path}", storage_options=options)
    snapshot = catalog.snapshot()
    scan = snapshot.scan("objects")
    found: list[Any] = [catalog, catalog.store, snapshot, scan, *scan.tasks(4), scan.explain(), Wrapped(catalog.store), *stores()]
    found += [snapshot.scan("deleted_objects"), *snapshot.scan("objects").tasks(1), InCatalog(catalog.store, "default")]
    for place in places():
        deleters = Deleters({"objects": InCatalog(catalog.store, "default")}, Deleting(place))
        found += [place, Deleting(place), deleters, place.template]
        found += [*spaces([snapshot.table(name) for name in snapshot.names], deleters)]
    found += [*inventories(), *(open_source(url, options=given) for url, given in (("s3://lake", S3), (f"{LOGIN}/lake", WEB)))]
    inside = DataPlace(places()[2].template, places()[2].store.url, given=places()[2].store)
    return [*found, inside, Places.of(inside)]


def errors() -> Iterator[BaseException]:
    """What stores and places say of requests that fail, and of options that cannot be."""
    for store in (*stores(), *(place.store for place in places())):
        calls = [lambda s=store: s.get("x"), lambda s=store: [*s.list("")], lambda s=store: s.delete("x")]
        for call in [*calls, lambda s=store: s.put("x", b"")]:
            try:
                call()
            except BucketCatalogError as error:
                yield error
    for given in ({"secret": CANARY}, {"key": CANARY, "secrets": CANARY}):
        with pytest.raises(InvalidOption) as caught:
            open_store("s3://lake", given)
        yield caught.value
    with pytest.raises(InvalidOption) as caught:
        DataPlace.open(f"{LOGIN}/data", None, MemoryStore())
    yield caught.value


def test_no_pickle_and_no_text_holds_a_secret(everything: list[Any]) -> None:
    assert len(everything) > 30
    for each in everything:
        assert CANARY.encode() not in pickle.dumps(each), type(each)
        assert CANARY not in repr(each) + str(each), type(each)


def test_no_error_holds_a_secret() -> None:
    found = [*errors()]
    assert len(found) > 15
    for error in found:
        shown = [str(error), repr(error), repr(vars(error)), "".join(traceback.format_exception(error))]
        assert not any(CANARY in text for text in shown) and CANARY.encode() not in pickle.dumps(error), error


def test_what_was_pickled_is_the_same_in_the_process_and_can_be_pickled_again(everything: list[Any]) -> None:
    for each in everything:
        once = pickle.loads(pickle.dumps(each))
        assert type(once) is type(each) and CANARY.encode() not in pickle.dumps(once)
    for place in places():
        copy = pickle.loads(pickle.dumps(place))
        assert (copy, copy.options, copy.template.root) == (place, place.options, place.template.root)
        assert copy.store.url == place.store.url


@pytest.mark.parametrize("what", [*stores(), *inventories(), *map(Deleting, places())])
def test_another_process_is_told_that_the_secret_is_missing_and_guesses_none(what: Any) -> None:
    script = """import pickle, sys, pyarrow as pa
from bucketcatalog import AccessDenied
from bucketcatalog.store.tickets import carried
each = pickle.loads(bytes.fromhex(sys.argv[1]))
for again in (each, pickle.loads(pickle.dumps(each))):
    with carried():
        assert pickle.dumps(again)
    try:
        if hasattr(again, "prefixes"):
            again.prefixes("", 1)
        elif hasattr(again, "is_directory"):
            [*again.below("")]
        elif type(again).__name__ == "Deleting":
            again.delete(pa.table({"owner": ["o"], "bucket_id": ["b"], "id": ["i"]}))
        else:
            again.get("x")
    except AccessDenied as error:
        print(error.message)
"""
    environment = os.environ | {"AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "other"}
    command = [sys.executable, "-c", script, pickle.dumps(what).hex()]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.stdout.count("pickles do not hold them") == 2 and CANARY not in ran.stdout + ran.stderr, ran


def test_the_one_way_carries_them_into_another_process() -> None:
    script = """import pickle, sys
for each in pickle.loads(sys.stdin.buffer.read()):
    url = each.store.url if hasattr(each, "template") else each.url if hasattr(each, "url") else f"s3://{each.bucket}"
    print(url, repr(vars(each)).count("canary") > 0)
"""
    with carried():
        packed = pickle.dumps([*stores(), *inventories(), *places()])
    assert CANARY.encode() in packed
    ran = subprocess.run([sys.executable, "-c", script], input=packed, capture_output=True, check=False)
    lines = ran.stdout.decode().splitlines()
    assert len(lines) == 11 and all("127.0.0.1:1" in line or "s3://" in line for line in lines), ran
    assert CANARY.encode() not in pickle.dumps(stores()[0]), "only what is pickled within"


def test_what_only_one_process_uses_does_not_pickle() -> None:
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(S3Options.parse(S3))


def test_a_store_without_secrets_works_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"found")
    store = FsspecStore(f"local://{tmp_path}")
    script = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1])).get('x'))"
    ran = subprocess.run([sys.executable, "-c", script, pickle.dumps(store).hex()], capture_output=True, text=True, check=True)
    assert ran.stdout == "b'found'\n"
