"""Puts, updates, deletes and purges: which versions they name, what they expect, and what they do in their order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import InvalidRows, InvalidVersion
from bucketcatalog.write.writer import Writer

from ...kit.world import ID_1, ID_2, World, as_arrow, names, obj, rows, time_at, version

PAST = "018bcfe5-6800-7000-8000-000000000001"  # version 7, and older than the clock


class TestEvents:
    def test_several_events_of_a_key_apply_in_their_order(self, world: World, writer: Writer) -> None:
        for filler in (0, 70):
            name = f"k{filler}"
            extra = [("put", "objects", [obj(f"f{n}") for n in range(filler)])]
            world.commit(
                writer,
                *extra,
                ("put", "objects", obj(name, content_length=1)),
                ("delete", "objects", obj(name)),
                ("put", "objects", obj(name, content_length=2)),
                ("put", "objects", obj(name, content_length=3)),
            )
            for _ in range(2):
                snapshot = world.snapshot()
                found = snapshot.get("objects", **obj(name))
                ended = snapshot.scan("deleted_objects", where={"name": name}).to_arrow()["content_length"].to_pylist()
                assert found is not None and found["content_length"] == 3 and ended == [1, 2]
                writer.checkpoint()

    def test_a_delete_after_a_put_in_one_transaction_leaves_nothing_live(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "objects", obj("a")), ("delete", "objects", obj("a")))

        assert names(world.snapshot()) == [] and names(world.snapshot(), "deleted_objects") == ["a"]

    def test_expecting_the_right_version_is_no_conflict(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "objects", obj("a"), {"expect": "absent"}))
        before = version(obj("a"), world.snapshot())
        world.commit(writer, ("put", "objects", obj("a"), {"expect": before}))
        after = version(obj("a"), world.snapshot())
        world.commit(writer, ("delete", "objects", obj("a"), {"expect": after}))
        world.commit(writer, ("delete", "objects", obj("a"), {"expect": "absent"}))

        for _ in range(2):
            assert rows(world.snapshot(), "conflicts") == []
            writer.checkpoint()

    @pytest.mark.parametrize("form", ["dict", "arrow"])
    def test_expecting_something_else_is_a_conflict_and_takes_effect(self, world: World, writer: Writer, form: str) -> None:
        def shape(row: dict[str, Any]) -> Any:
            return row if form == "dict" else as_arrow([row])

        world.commit(writer, ("put", "objects", shape(obj("a"))))
        first = version(obj("a"), world.snapshot())
        world.commit(writer, ("put", "objects", shape(obj("a")), {"expect": "absent"}))
        second = version(obj("a"), world.snapshot())
        world.commit(writer, ("delete", "objects", shape(obj("a")), {"expect": first}))
        world.commit(writer, ("delete", "objects", shape(obj("a")), {"expect": second}))

        for step in ("log", "checkpoint"):
            found = world.snapshot().scan("conflicts").to_arrow().to_pylist()
            assert [(c["kind"], c["expected"], c["found"]) for c in found] == [
                ("expectation", "absent", first),
                ("expectation", second, "absent"),
                ("expectation", first, second),
            ] or sorted((c["kind"], c["expected"], c["found"]) for c in found) == sorted(
                [("expectation", "absent", first), ("expectation", first, second), ("expectation", second, "absent")]
            ), step
            assert names(world.snapshot()) == []
            writer.checkpoint()

    @pytest.mark.parametrize(
        "expect", ["nonsense", "", "present", f"{PAST}", f"{PAST}:", f"{PAST}:-1", f"{PAST}:x", 5, f"{PAST}:{2**40}"]
    )
    def test_an_expectation_that_names_nothing_is_refused(self, world: World, writer: Writer, expect: Any) -> None:
        said = 'names no version of a row. Next: Expect "absent", or a value of the column _version'
        for given in (obj("a"), as_arrow([obj("a")])):
            with pytest.raises(InvalidVersion, match=said), writer.transaction() as tx:
                tx.put("objects", given, expect=expect)
        assert list(world.store.list("")) == []

    @pytest.mark.parametrize("form", ["dict", "arrow"])
    def test_update_by_id_replaces_the_whole_row_but_not_key_and_id(self, world: World, writer: Writer, form: str) -> None:
        world.commit(writer, ("put", "objects", obj("a", id=ID_1, content_length=1, etag="x")))
        put = version(obj("a"), world.snapshot())
        put_at = world.clock.now
        row = obj("a", id=ID_1, content_length=2)
        world.commit(writer, ("update", "objects", row if form == "dict" else as_arrow([row])))

        for _ in range(2):
            (found,) = rows(world.snapshot(), "objects", ["id", "content_length", "etag", "created", "modified", "_version"])
            assert found == {
                "id": ID_1,
                "content_length": 2,
                "etag": None,
                "created": time_at(put_at),
                "modified": time_at(world.clock.now),
                "_version": put,
            }
            assert world.snapshot().scan("deleted_objects").to_arrow().num_rows == 0
            writer.checkpoint()

    @pytest.mark.parametrize("form", ["dict", "arrow"])
    def test_update_by_version_reaches_ended_versions_too(self, world: World, writer: Writer, form: str) -> None:
        world.commit(writer, ("put", "objects", obj("a", id=ID_1, content_length=1)))
        first = version(obj("a"), world.snapshot())
        world.commit(writer, ("put", "objects", obj("a", id=ID_2, content_length=5)))
        row = obj("a", id=ID_2, content_length=2, _version=first)
        world.commit(writer, ("update", "objects", row if form == "dict" else as_arrow([row])))

        for _ in range(2):
            snapshot = world.snapshot()
            assert rows(snapshot, "objects", ["id", "content_length"]) == [{"id": ID_2, "content_length": 5}]
            assert rows(snapshot, "deleted_objects", ["id", "content_length"]) == [{"id": ID_1, "content_length": 2}]
            (conflict,) = rows(snapshot, "conflicts")
            assert (conflict["kind"], conflict["version"]) == ("late_update", first)
            writer.checkpoint()

    def test_updates_that_name_nothing_live_are_refused(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "objects", obj("a", id=ID_1)))
        for row in (obj("a"), obj("a", id=ID_2), obj("b", id=ID_1), obj("a", id="x"), obj("a", _version=None)):
            for given in (row, as_arrow([row])):
                with pytest.raises(InvalidRows), writer.transaction() as tx:
                    tx.update("objects", given)
        assert len(rows(world.snapshot(), "log")) == 1

    @pytest.mark.parametrize(
        "name",
        ["nonsense", "", f"{PAST}", f"{PAST}:x", f"{PAST}:-1", f"{PAST}:{2**31}", f"{PAST}:{2**40}", f"x{PAST}:0", f"{PAST}:0 "],
    )
    def test_versions_that_are_none_are_refused(self, world: World, writer: Writer, name: str) -> None:
        row = obj("a", _version=name)
        for method in ("update", "delete", "purge"):
            for given in (row, as_arrow([row])):
                with pytest.raises(InvalidVersion), writer.transaction() as tx:
                    getattr(tx, method)("objects", given)
        assert list(world.store.list("")) == []

    def test_versions_that_are_no_text_are_refused(self, world: World, writer: Writer) -> None:
        for given in (
            obj("a", _version=5),
            as_arrow([obj("a", _version=5)]),
            obj("a", _version=b"x"),
            as_arrow([obj("a", _version=b"x")]),
        ):
            with pytest.raises(InvalidVersion), writer.transaction() as tx:
                tx.delete("objects", given)

    @pytest.mark.parametrize("form", ["dict", "arrow"])
    def test_delete_by_id_or_version_ends_only_that_one(self, world: World, writer: Writer, form: str) -> None:
        def shape(row: dict[str, Any]) -> Any:
            return row if form == "dict" else as_arrow([row])

        world.commit(writer, ("put", "objects", [obj("a", id=ID_1), obj("b", id=ID_1), obj("c", id=ID_1)]))
        old = {name: version(obj(name), world.snapshot()) for name in "abc"}
        world.commit(writer, ("put", "objects", obj("a", id=ID_2)))
        world.commit(writer, ("delete", "objects", shape(obj("a", id=ID_1))), ("delete", "objects", shape(obj("b", id=ID_1))))
        world.commit(
            writer,
            ("delete", "objects", shape(obj("a", _version=old["a"]))),
            ("delete", "objects", shape(obj("c", _version=old["c"]))),
        )

        for _ in range(2):
            assert rows(world.snapshot(), "objects", ["name", "id"]) == [{"name": "a", "id": ID_2}]
            assert names(world.snapshot(), "deleted_objects") == ["a", "b", "c"]
            assert rows(world.snapshot(), "conflicts") == []
            writer.checkpoint()

    @pytest.mark.parametrize("form", ["dict", "arrow"])
    def test_a_naming_delete_may_be_half_of_a_move(self, world: World, writer: Writer, form: str) -> None:
        world.commit(writer, ("put", "objects", obj("a", id=ID_1, content_length=3)))
        row = obj("a", id=ID_1)
        world.commit(
            writer,
            ("put", "objects", obj("b", id=ID_1, content_length=3)),
            ("delete", "objects", row if form == "dict" else as_arrow([row]), {"moved": True}),
        )

        assert names(world.snapshot()) == ["b"] and names(world.snapshot(), "deleted_objects") == ["a"]

    def test_a_naming_delete_cannot_expect_a_version_too(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "objects", obj("a", id=ID_1)))
        for given in (obj("a", id=ID_1), as_arrow([obj("a", id=ID_1)])):
            with pytest.raises(InvalidRows), writer.transaction() as tx:
                tx.delete("objects", given, expect="absent")

    @pytest.mark.parametrize("form", ["dict", "arrow"])
    def test_purge_forgets_the_named_version_only(self, world: World, writer: Writer, form: str) -> None:
        for length in (1, 2, 3):
            world.commit(writer, ("put", "objects", obj("a", content_length=length)))
        (first, second) = rows(world.snapshot(), "deleted_objects", ["_version", "content_length"])
        row = obj("a", _version=first["_version"])
        world.commit(writer, ("purge", "objects", row if form == "dict" else as_arrow([row])))

        for _ in range(2):
            assert rows(world.snapshot(), "deleted_objects", ["content_length"]) == [{"content_length": second["content_length"]}]
            assert rows(world.snapshot(), "objects", ["content_length"]) == [{"content_length": 3}]
            writer.checkpoint()

    def test_purge_needs_versions(self, world: World, writer: Writer) -> None:
        for row in (obj("a"), obj("a", id=ID_1)):
            for given in (row, as_arrow([row])):
                with pytest.raises(InvalidRows), writer.transaction() as tx:
                    tx.purge("objects", given)

    def test_tables_without_ids_are_updated_by_key(self, world: World, writer: Writer) -> None:
        key = {"source": "s", "path": "p"}
        world.commit(writer, ("put", "harvest_errors", key | {"code": "a"}))
        world.commit(writer, ("update", "harvest_errors", key | {"code": "b"}))
        assert rows(world.snapshot(), "harvest_errors", ["code"]) == [{"code": "b"}]

        table = pa.table({"source": ["s"], "path": ["p"], "code": ["c"]})
        world.commit(writer, ("update", "harvest_errors", table))
        assert rows(world.snapshot(), "harvest_errors", ["code"]) == [{"code": "c"}]
        with pytest.raises(InvalidRows), writer.transaction() as tx:
            tx.update("harvest_errors", {"source": "s", "path": "q"})

    def test_more_than_64_events_of_all_kinds_do_as_few_do(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "objects", [obj(f"{n:03}", id=ID_1, content_length=n) for n in range(100)]))
        snapshot = world.snapshot()
        old = {n: version(obj(f"{n:03}"), snapshot) for n in (0, 1, 2)}
        world.commit(writer, ("put", "objects", [obj(f"{n:03}", id=ID_2, content_length=7 * n) for n in range(3)]))
        world.commit(
            writer,
            ("put", "objects", [obj(f"n{n:03}") for n in range(70)]),
            ("update", "objects", [obj(f"{n:03}", id=ID_1, content_length=1000 + n) for n in range(3, 50)]),
            ("delete", "objects", [obj(f"{n:03}") for n in range(50, 90)]),
            ("delete", "objects", [obj(f"{n:03}", id=ID_1) for n in range(90, 100)]),
            ("purge", "objects", [obj(f"{n:03}", _version=old[n]) for n in (0, 1)]),
        )
        for _ in range(2):
            snapshot = world.snapshot()
            live = {r["name"]: r["content_length"] for r in rows(snapshot, "objects", ["name", "content_length"])}
            assert live == {
                **{f"{n:03}": 7 * n for n in range(3)},
                **{f"{n:03}": 1000 + n for n in range(3, 50)},
                **{f"n{n:03}": None for n in range(70)},
            }
            assert names(snapshot, "deleted_objects") == ["002", *(f"{n:03}" for n in range(50, 100))]
            writer.checkpoint()
