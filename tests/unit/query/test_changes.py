"""What happened between two cuts: every event in the order of the stamps, and the net difference of a table."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog import InvalidOption, InvalidVersion, UnknownTable
from bucketcatalog.write.writer import Writer

from ...kit.world import World, bucket, messages, obj, proto, rows, time_at, version

ID = "aaaaaaaa-0000-4000-8000-000000000001"


def changes(world: World, **options: Any) -> list[tuple[Any, ...]]:
    found = world.catalog().changes(**options).to_arrow().to_pylist()
    return [(row["_change_type"], row["name"], row["content_length"]) for row in found]


def diff(world: World, **options: Any) -> list[tuple[Any, ...]]:
    found = world.catalog().diff(**options).to_arrow().to_pylist()
    return [(row["_change_type"], row["name"], row["content_length"]) for row in found]


def history(world: World, writer: Writer, *, checkpoints: bool = False) -> list[str]:
    """Five commits of every kind of event; returns the version after each, the empty one first."""
    versions = [":"]

    def commit(*calls: tuple[Any, ...]) -> None:
        world.commit(writer, *calls)
        versions.append(world.snapshot().version)
        if checkpoints:
            writer.checkpoint()

    commit(("put", "objects", [obj("a", id=ID, content_length=1), obj("b", content_length=2), obj("d", content_length=4)]))
    commit(("update", "objects", obj("a", id=ID, content_length=10)), ("put", "objects", obj("c", content_length=3)))
    commit(("delete", "objects", [obj("b"), obj("a", id=ID)]), ("put", "objects", obj("d", content_length=4)))
    ended = world.snapshot().scan("deleted_objects", columns=["_version"], where={"name": "b"}).to_arrow()["_version"][0].as_py()
    commit(
        ("purge", "objects", obj("b", _version=ended)),
        ("put", "objects", obj("b", content_length=20)),
        ("put", "buckets", bucket("x")),
    )
    commit(("put", "objects", [obj(f"n{n:02}", content_length=n) for n in range(70)]), ("delete", "objects", obj("c")))
    return versions


EVENTS = [
    [("put", "a", 1), ("put", "b", 2), ("put", "d", 4)],
    [("update", "a", 10), ("put", "c", 3)],
    [("delete", "b", None), ("delete", "a", None), ("put", "d", 4)],
    [("purge", "b", None), ("put", "b", 20)],
    [*(("put", f"n{n:02}", n) for n in range(70)), ("delete", "c", None)],
]
NET = [
    {},
    {"a": 1, "b": 2, "d": 4},
    {"a": 10, "b": 2, "c": 3, "d": 4},
    {"c": 3, "d": 4},
    {"b": 20, "c": 3, "d": 4},
    {"b": 20, "d": 4} | {f"n{n:02}": n for n in range(70)},
]
OVERWRITTEN = {"b": 4, "d": 3}
"""The commit that put a later version of a key."""


@pytest.mark.parametrize("checkpoints", [False, True])
def test_changes_are_every_event_between_two_cuts_in_order(world: World, writer: Writer, checkpoints: bool) -> None:
    versions = history(world, writer, checkpoints=checkpoints)
    for start in range(6):
        for end in range(start, 6):
            expected = [event for events in EVENTS[start:end] for event in events]
            assert changes(world, start=versions[start], end=versions[end]) == expected
    assert changes(world) == [event for events in EVENTS for event in events]
    assert changes(world, start=versions[4]) == EVENTS[4]


@pytest.mark.parametrize("checkpoints", [False, True])
def test_diffs_are_the_net_difference_by_key(world: World, writer: Writer, checkpoints: bool) -> None:
    versions = history(world, writer, checkpoints=checkpoints)
    for start in range(6):
        for end in range(6):
            before, after = NET[start], NET[end]
            expected = []
            for name in sorted(before.keys() | after.keys()):
                if name not in before:
                    expected.append(("created", name, after[name]))
                elif name not in after:
                    expected.append(("deleted", name, before[name]))
                elif (start >= OVERWRITTEN.get(name, 0)) != (end >= OVERWRITTEN.get(name, 0)):
                    expected.append(("overwritten", name, after[name]))
                elif before[name] != after[name]:
                    expected.append(("modified", name, after[name]))
            assert diff(world, start=versions[start], end=versions[end]) == expected, (start, end)


def test_change_events_name_themselves_and_the_version_they_concern(world: World, writer: Writer) -> None:
    history(world, writer)
    events = world.catalog().changes().to_arrow().to_pylist()
    log = {row["uuid"]: row for row in rows(world.snapshot(), "log")}

    puts = {event["_stamp"] for event in events if event["_change_type"] == "put"}
    for event in events:
        commit = log[event["_stamp"].partition(":")[0]]
        assert (event["_writer"], event["_revision"], event["_commit_timestamp"]) == (
            "w",
            commit["revision"],
            commit["commit_timestamp"],
        )
        assert event["_table"] == "objects"
        if event["_change_type"] == "put":
            assert event["_version"] == event["_stamp"]
        elif event["_change_type"] == "delete" and event["name"] in "bc":
            assert event["_version"] is None
        else:
            assert event["_version"] in puts - {event["_stamp"]}
    assert len({event["_stamp"] for event in events}) == len(events)


PLAIN = proto(
    """
    message Plain {
      option (table) = { name: "test.plain" key: "k" id: "i" };
      int32 k = 1;
      int32 number = 2;
      string text = 3;
      bytes u = 4 [(column) = {type: LOGICAL_TYPE_UUID}];
      optional int64 made = 5 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS default: COLUMN_DEFAULT_CREATED}];
      optional int64 seen = 6 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS default: COLUMN_DEFAULT_MODIFIED}];
      optional string i = 7;
    }
    """
)


@pytest.mark.parametrize("rows_of_each", [1, 70], ids=["one by one", "in columns"])
def test_deletes_and_purges_have_their_key_and_nothing_that_nobody_said(world: World, rows_of_each: int) -> None:
    catalog = world.catalog()
    catalog.register(messages(PLAIN)["Plain"])
    writer = world.writer(catalog=catalog)

    def keys(first: int, named: bool = False) -> list[dict[str, Any]]:
        found = [{"k": first + n} for n in range(rows_of_each)]
        return [key | ({"_version": version(key, world.snapshot(), "test.plain")} if named else {}) for key in found]

    world.commit(writer, ("put", "test.plain", [key | {"number": 7} for key in keys(0) + keys(100)]))
    named = keys(100, named=True)
    start = world.snapshot().version
    world.commit(writer, ("delete", "test.plain", keys(0)))
    world.commit(writer, ("delete", "test.plain", named))
    world.commit(writer, ("purge", "test.plain", named))

    found = world.catalog().changes(table="test.plain", start=start).to_arrow().to_pylist()
    assert [event["_change_type"] for event in found] == [*["delete"] * rows_of_each * 2, *["purge"] * rows_of_each]
    assert [event["k"] for event in found] == [key["k"] for key in keys(0) + named + named]
    nothing = dict.fromkeys(("number", "text", "u", "made", "seen", "i"))
    assert all({name: event[name] for name in nothing} == nothing for event in found)


def test_puts_and_updates_have_the_times_that_their_rows_have(world: World) -> None:
    catalog = world.catalog()
    catalog.register(messages(PLAIN)["Plain"])
    writer = world.writer(catalog=catalog)
    world.commit(writer, ("put", "test.plain", {"k": 1}))
    put, meant = time_at(world.clock.now), version({"k": 1}, world.snapshot(), "test.plain")
    world.commit(writer, ("update", "test.plain", {"k": 1, "text": "x", "_version": meant}))
    update = time_at(world.clock.now)

    first, second = world.catalog().changes(table="test.plain").to_arrow().to_pylist()
    assert (first["number"], first["text"], first["u"]) == (0, "", "00000000-0000-0000-0000-000000000000")
    assert (first["made"], first["seen"]) == (put, put)
    assert (second["made"], second["seen"]) == (put, update)
    (shown,) = rows(world.snapshot(), "test.plain")
    assert shown == {name: second[name] for name in shown}


def test_changes_of_another_table_are_its_own(world: World, writer: Writer) -> None:
    history(world, writer)
    found = world.catalog().changes(table="buckets").to_arrow()
    assert found["name"].to_pylist() == ["x"] and found.schema == world.catalog().changes(table="buckets").schema
    assert world.catalog().diff(table="buckets").to_arrow()["_change_type"].to_pylist() == ["created"]


def test_empty_differences_have_their_schema(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "objects", obj("a")))
    version = world.snapshot().version
    for found in (world.catalog().changes(start=version, end=version), world.catalog().diff(start=version, end=version)):
        assert found.to_arrow().num_rows == 0 and found.to_arrow().schema == found.schema


def test_an_update_in_place_is_modified_also_when_its_row_is_the_same(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "objects", obj("a", id=ID)))
    start = world.snapshot().version
    world.commit(writer, ("update", "objects", obj("a", id=ID)))
    assert diff(world, start=start) == [("modified", "a", None)]


def test_events_of_several_writers_are_in_the_order_of_their_stamps(world: World) -> None:
    one, two = world.writer("one"), world.writer("two")
    for n in range(6):
        world.commit(one if n % 2 else two, ("put", "objects", obj(str(n))))
    found = world.catalog().changes().to_arrow()
    assert found["name"].to_pylist() == [str(n) for n in range(6)]
    assert found["_commit_timestamp"].to_pylist()[-1] == time_at(world.clock.now)


def test_a_difference_from_a_cut_that_is_not_behind_shows_what_the_other_lacks(world: World) -> None:
    one, two = world.writer("one"), world.writer("two")
    world.commit(one, ("put", "objects", obj("a")))
    world.commit(two, ("put", "objects", obj("b")))
    assert changes(world, start="one@0", end="two@0") == [("put", "b", None)]
    assert diff(world, start="one@0", end="two@0") == [("deleted", "a", None), ("created", "b", None)]


def test_what_cannot_be_compared_is_refused(world: World, writer: Writer) -> None:
    world.commit(writer, ("put", "objects", obj("a")))
    for method in ("changes", "diff"):
        for options, error in (
            ({"start": "w@7"}, InvalidVersion),
            ({"end": "nobody@0"}, InvalidVersion),
            ({"table": "strange"}, UnknownTable),
        ):
            with pytest.raises(error):
                getattr(world.catalog(), method)(**options).to_arrow()


def test_changes_from_a_later_cut_to_an_earlier_one_are_refused(world: World, writer: Writer) -> None:
    versions = history(world, writer, checkpoints=False)
    for start, end in ((1, 0), (5, 2)):
        with pytest.raises(InvalidOption, match="The start lies after the end"):
            world.catalog().changes(start=versions[start], end=versions[end])
