"""What a writer may declare of a table that is there: anybody columns, its first definer and maintainers names and options."""

from __future__ import annotations

import pytest

from bucketcatalog import Catalog, CatalogWarning, IncompatibleTable, InvalidRows
from bucketcatalog.model.events import EventKind
from bucketcatalog.write.intake import checked, checked_rows

from ...kit.world import World, messages, proto, rows

ROW = 'message R {{ option (table) = {{ name: "lab.r" key: "k" {} }}; string k = 1; optional string {} = 2; {} }}'
OLD, MORE = ROW.format("", "a", ""), ROW.format("", "a", "optional int64 more = 3;")
RENAMED = ROW.format("tombstone_retention_seconds: 60", "b", "optional int64 more = 3;")
MISFIT = ROW.format("", "a", "repeated string more = 3;")


def knowing(world: World, source: str) -> Catalog:
    catalog = world.catalog()
    catalog.register(messages(proto(source))["R"])
    return catalog


@pytest.fixture
def world() -> World:
    world = World()
    world.commit(world.writer("one", catalog=knowing(world, OLD)), ("put", "lab.r", {"k": "1", "a": "x"}))
    return world


def test_anybody_adds_columns_without_a_word(world: World) -> None:
    world.commit(world.writer("two", catalog=knowing(world, MORE)), ("put", "lab.r", {"k": "2", "a": "y", "more": 2}))
    assert rows(world.snapshot(), "lab.r") == [{"k": "1", "a": "x", "more": None}, {"k": "2", "a": "y", "more": 2}]


def test_who_is_not_the_first_definer_is_told_who_says_names_and_options(world: World) -> None:
    writer = world.writer("two", catalog=knowing(world, RENAMED))
    with pytest.warns(CatalogWarning, match=r"'lab\.r'.*: b, tombstone_retention_seconds are for 'one'.*maintainer") as caught:
        world.commit(writer, ("put", "lab.r", {"k": "2", "b": "y", "more": 2}))
    assert len(caught) == 1
    world.commit(writer, ("put", "lab.r", {"k": "3", "b": "z"}))  # told once
    found = rows(world.snapshot(), "lab.r")
    assert [(row["a"], row["more"]) for row in found] == [("x", None), ("y", 2), ("z", None)]
    assert world.snapshot().table("lab.r").tombstone_retention_seconds == 0


@pytest.mark.parametrize("writer", ["one", "maintainer-1"])
def test_the_first_definer_and_maintainers_say_them(world: World, writer: str) -> None:
    world.commit(world.writer(writer, catalog=knowing(world, RENAMED)), ("put", "lab.r", {"k": "2", "b": "y"}))
    table = world.snapshot().table("lab.r")
    assert [row["b"] for row in rows(world.snapshot(), "lab.r")] == ["x", "y"]
    assert table.tombstone_retention_seconds == 60 and table.is_maintained == (writer == "maintainer-1")
    world.commit(world.writer("old", catalog=knowing(world, OLD)), ("put", "lab.r", {"k": "3", "a": "z"}))  # of an older release
    assert [row["b"] for row in rows(world.snapshot(), "lab.r")] == ["x", "y", "z"]


def test_rows_that_were_checked_ahead_are_put_as_the_table_is_by_then(world: World) -> None:
    table = world.snapshot().table("lab.r")
    ahead = [checked_rows(table, [{"k": key, "a": "checked"}]) for key in "23"]
    writer = world.writer("one", catalog=knowing(world, RENAMED))
    with writer.transaction() as tx:
        tx.put("lab.r", ahead[0])
        assert checked(table, EventKind.PUT, ahead[1]) is ahead[1]
        tx.put("lab.r", ahead[1], expect="absent")
    assert [(row["k"], row["b"], row["more"]) for row in rows(world.snapshot(), "lab.r")] == [
        ("1", "x", None),
        ("2", "checked", None),
        ("3", "checked", None),
    ]
    with pytest.raises(InvalidRows, match="column 'more'"):
        checked_rows(table, [{"k": "4", "more": 1}])


def test_they_are_rows_to_be_put_and_end_or_change_nothing(world: World) -> None:
    ahead = checked_rows(world.snapshot().table("lab.r"), [{"k": "1", "a": "x"}])
    for kind in (EventKind.UPDATE, EventKind.DELETE, EventKind.PURGE):
        with pytest.raises(InvalidRows, match="no row"):
            checked(ahead.table, kind, ahead)


def test_messages_in_them_are_put_by_the_names_of_a_later_definition_too() -> None:
    inner = "message I { int64 n = 1; optional string t = 2; }"
    source = (
        "%s message R { option (table) = { name: 'lab.r' key: 'k' };"
        " string k = 1; optional I one = 2; repeated I many = 3; map<string, I> by = 4; %s }"
    )
    world = World()
    given = {"one": {"n": 1, "t": "a"}, "many": [{"n": 2}, {"n": 3, "t": "b"}], "by": {"x": {"n": 4}}}
    catalog = knowing(world, source % (inner, ""))
    world.commit(world.writer("one", catalog=catalog), ("put", "lab.r", {"k": "1", **given}))
    ahead = checked_rows(world.snapshot().table("lab.r"), [{"k": "2", **given}])
    later = knowing(world, source % (inner.replace(" t ", " u "), "optional int64 more = 5;"))
    with world.writer("one", catalog=later) as writer, writer.transaction() as tx:
        tx.put("lab.r", ahead)
    first, second = (row | {"k": None} for row in rows(world.snapshot(), "lab.r"))
    assert first == second


def test_a_maintainer_that_uses_a_table_as_it_has_read_it_says_nothing_of_it(world: World) -> None:
    world.commit(world.writer("maintainer-1"), ("put", "lab.r", {"k": "2", "a": "y"}))
    assert not world.snapshot().table("lab.r").is_maintained
    world.commit(world.writer("one", catalog=knowing(world, RENAMED)), ("put", "lab.r", {"k": "3", "b": "z"}))
    assert [row["b"] for row in rows(world.snapshot(), "lab.r")] == ["x", "y", "z"]


def test_who_has_declared_what_does_not_fit_is_told_before_it_writes_more(world: World) -> None:
    world.commit(world.writer("two", catalog=knowing(world, MORE)), ("put", "lab.r", {"k": "2", "more": 2}))
    declared = messages(proto(MISFIT))["R"]
    world.commit_unasked(world.writer("three"), [declared], ("put", "lab.r", {"k": "3", "more": ["x"]}))
    before = [info.name for info in world.store.list("")]
    for catalog in (world.catalog(), knowing(world, OLD)):
        writer = world.writer("three", catalog=catalog)
        with pytest.raises(IncompatibleTable, match="'three'") as caught:
            world.commit(writer, ("put", "lab.r", {"k": "3", "a": "x"}))
        assert "another writer id" in caught.value.next_step
    assert [info.name for info in world.store.list("")] == before
