"""Where data lies, and who deletes it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidOption, StoreUnavailable
from bucketcatalog.maintain.gc.data import DataPlace, Deleting, Template
from bucketcatalog.store.faults import Failing
from bucketcatalog.store.memory import MemoryStore

from ....kit.collecting import URL, Yard, an_id, dead
from ....kit.world import BUCKET, OWNER, obj


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s3://data/all", "names no column"),
        ("s3://{owner}/{id}", "in which folder or bucket"),
        ("{owner}/{id}", "in which folder or bucket"),
        ("/data/{owner}{id}", "not separated"),
        ("/data/{owner}-{id}", "not separated"),
        ("/data/{id}/{id}", "twice"),
        ("/data/{}", "is not a column"),
        ("/data/{id!r}", "is not a column"),
        ("/data/{id:>9}", "is not a column"),
        ("/data/{id", "cannot be read"),
    ],
)
def test_what_does_not_say_where_data_lies_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidOption, match=why):
        Template.parse(text)


def test_no_two_references_have_one_name() -> None:
    template = Template.parse("s3://data/all/{a}/{b}.bin")
    assert (template.root, template.columns) == ("s3://data/all", ("a", "b"))
    batch = pa.table({"a": ["x/y", "x", "x%2Fy"], "b": ["z", "y/z", "z"]})
    assert template.names(batch).to_pylist() == ["x%2Fy/z.bin", "x/y%2Fz.bin", "x%252Fy/z.bin"]
    assert Template.parse("/data/p-{path}").names(pa.table({"path": ["a/b"]})).to_pylist() == ["p-a/b"]


def test_data_at_a_url_is_deleted_and_what_is_not_there_is_gone(tmp_path: Path) -> None:
    yard = Yard()
    dead(yard, "a", "b", "c")
    folder = tmp_path / OWNER / BUCKET
    folder.mkdir(parents=True)
    for name in ("a", "b", "live"):
        (folder / an_id(name)).write_text(name)
    done = yard.collected(deleter=None, data_url=f"{tmp_path}/{URL}")
    assert (done.purged, done.deleted, done.failed) == (3, 3, 0)
    assert [file.name for file in folder.iterdir()] == [an_id("live")]


def test_what_a_store_does_not_delete_is_left_for_the_next_run() -> None:
    store = Failing(MemoryStore(), at=1, error=StoreUnavailable("The store is away."), methods=("delete",))
    place = DataPlace(Template.parse(f"/x/{URL}"), "memory://elsewhere", given=store)
    batch = pa.table({"owner": ["o", "o", "o"], "bucket_id": ["b"] * 3, "id": ["1", "2", "3"]})
    told = Deleting(place).delete(batch)
    assert told.gone.tolist() == [True, False, True] and told.problems == ("The store is away.",)


def test_no_template_reaches_the_log_of_the_catalog(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "lake")
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", obj("a"))
    logged = [str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.txn")]
    for root, names in ((tmp_path, logged), (tmp_path / "lake", [name.removeprefix("lake/") for name in logged])):
        place = DataPlace.open(f"{root}/{{path}}", None, catalog.store)
        told = Deleting(place).delete(pa.table({"path": [*names, "lake/../lake/x", "", "other/x"]}))
        assert told.gone.tolist() == [False] * (len(names) + 2) + [root == tmp_path]
    assert len(list(tmp_path.rglob("*.txn"))) == 1
    inside = DataPlace.open(f"{tmp_path}/lake/w/default/data/{{path}}", None, catalog.store)
    assert Deleting(inside).delete(pa.table({"path": ["p/x"]})).gone.all()


def test_a_place_pickles_as_what_it_was_opened_with_and_shows_no_secret(tmp_path: Path) -> None:
    place = DataPlace.open(f"{tmp_path}/{URL}", None, MemoryStore())
    assert place.store.url == str(tmp_path)
    assert pickle.loads(pickle.dumps(place)) == place
    secret = DataPlace.open(f"s3://data/{URL}", {"key": "a-key", "secret": "the-secret"}, MemoryStore())
    assert "the-secret" not in repr(Deleting(secret)) and pickle.loads(pickle.dumps(secret)).options["secret"] == "the-secret"
    assert secret.store.url == pickle.loads(pickle.dumps(secret)).store.url == "s3://data"
