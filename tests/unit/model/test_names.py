"""Names of writers, databases and tags cannot leave their prefix, whatever they are."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bucketcatalog import Catalog, InvalidName
from bucketcatalog.model.names import database_name, is_data_writer, is_name, role_of, tag_name, writer_id
from bucketcatalog.store.memory import MemoryStore

GOOD = ["a", "Z9", "0", "_", "-", "a.b", "a..b", "a.", "node-1", "etl_2024.05", "x" * 128]
BAD = [
    "",
    ".",
    "..",
    ".hidden",
    "a/b",
    "/a",
    "a/",
    "../a",
    "a\\b",
    "a\x00",
    "\x00",
    "a b",
    " a",
    "a\n",
    "a\r",
    "é",
    "e\u0301",
    "\u212a",  # the Kelvin sign, which folds to k
    "٣",
    "😀",
    "\ud800",
    "a%2fb",
    "a:b",
    "a@b",
    "a,b",
    "*",
    "x" * 129,
]


@pytest.mark.parametrize("name", GOOD)
def test_ordinary_names_are_taken_as_they_are(name: str) -> None:
    assert writer_id(name) == database_name(name) == name
    assert is_name(name)


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("kind", [writer_id, database_name, tag_name])
def test_names_that_could_leave_their_prefix_are_refused(kind: Callable[[str], str], name: str) -> None:
    with pytest.raises(InvalidName) as error:
        kind(name)
    assert repr(name) in error.value.message and error.value.next_step
    str(error.value).encode()


@pytest.mark.parametrize("name", [None, 5, b"a", ["a"]])
def test_what_is_no_text_is_no_name(name: object) -> None:
    with pytest.raises(InvalidName):
        writer_id(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["1a", "_a", "-a", "@1"])
def test_tags_begin_with_a_letter(name: str) -> None:
    with pytest.raises(InvalidName):
        tag_name(name)
    assert tag_name("a1") == "a1"


@pytest.mark.parametrize("name", BAD)
def test_nothing_is_written_or_read_under_a_refused_name(name: str) -> None:
    store = MemoryStore()
    catalog = Catalog(store)

    for attempt in (
        lambda: catalog.writer(name),
        lambda: catalog.writer("w", database=name),
        lambda: catalog.snapshot(database=name),
        lambda: catalog.changes(database=name),
        lambda: catalog.diff(database=name),
    ):
        with pytest.raises(InvalidName):
            attempt()
    assert list(store.list("")) == []


def test_strange_folders_in_the_store_are_nobodys_writers() -> None:
    store = MemoryStore()
    with Catalog(store).writer("w") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": bytes(16), "name": "b"})
    for name in ("a b/default/transactions/x", "é/default/transactions/x", "w/a b/transactions/x", "stray"):
        store.put(name, b"?")

    assert Catalog(store).databases() == ["default"]
    assert Catalog(store).snapshot().scan("writers").to_arrow()["writer"].to_pylist() == ["w"]


def test_compactors_and_maintainers_are_no_data_writers() -> None:
    assert [is_data_writer(name) for name in ("w", "compactor-1", "maintainer-x", "compactor", "maintainerx")] == [
        True,
        False,
        False,
        True,
        True,
    ]


def test_a_writers_name_tells_its_role() -> None:
    names = ("w", "compactor-1", "maintainer-x", "compactor", "maintainerx", "my-compactor-1")
    assert [role_of(name) for name in names] == ["writer", "compactor", "maintainer", "writer", "writer", "writer"]
