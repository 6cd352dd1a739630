"""Rows that name a version by its id: what they mean beside other events of the transaction, and what finding them costs."""

from __future__ import annotations

import datetime
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidRows
from bucketcatalog.model import events
from bucketcatalog.store.faults import Counting
from bucketcatalog.write import given as given_rows

from ...kit.world import World, bucket, messages, names, obj, proto, rows, version

Call = tuple[Any, ...]


def id_of(name: str) -> str:
    return str(uuid5(NAMESPACE_DNS, name))


ONE, TWO = id_of("one"), id_of("two")


def as_rows(form: str, *given: dict[str, Any]) -> Any:
    return list(given) if form == "dicts" else pa.Table.from_pylist(list(given))


@pytest.mark.parametrize("form", ["dicts", "arrow"])
class TestWithinOneTransaction:
    @pytest.mark.parametrize("put_form", ["dicts", "arrow"])
    def test_a_delete_by_id_ends_what_the_transaction_put(self, form: str, put_form: str) -> None:
        world = World()
        writer = world.writer()
        world.commit(
            writer,
            ("put", "objects", as_rows(put_form, obj("a", id=ONE), obj("b", id=ONE), obj("c", id=ONE))),
            ("delete", "objects", as_rows(form, obj("a", id=ONE), obj("b", id=TWO))),
        )
        snapshot = world.snapshot()
        assert names(snapshot) == ["b", "c"]
        assert names(snapshot, "deleted_objects") == ["a"]

    def test_a_delete_by_the_id_of_what_the_transaction_replaced_does_nothing(self, form: str) -> None:
        world = World()
        writer = world.writer()
        world.commit(writer, ("put", "objects", [obj("a", id=ONE), obj("b", id=ONE)]))
        world.commit(
            writer,
            ("put", "objects", obj("a", id=TWO)),
            ("delete", "objects", obj("b")),
            ("delete", "objects", as_rows(form, obj("a", id=ONE), obj("b", id=ONE))),
        )
        assert {row["name"]: row["id"] for row in rows(world.snapshot())} == {"a": TWO}

    def test_an_update_of_what_the_transaction_put_is_refused(self, form: str) -> None:
        world = World()
        writer = world.writer()
        world.commit(writer, ("put", "objects", obj("a", id=ONE)))
        update = as_rows(form, obj("a", id=ONE, etag="x"), obj("b", id=TWO, etag="x"))
        with pytest.raises(InvalidRows, match=r"Row 1 .* puts") as error:
            world.commit(writer, ("put", "objects", obj("b", id=TWO)), ("update", "objects", update))
        assert "Put the whole row" in error.value.next_step

    def test_an_id_that_is_none_is_refused(self, form: str) -> None:
        world = World()
        writer = world.writer()
        world.commit(writer, ("put", "objects", obj("a", id=ONE)))
        for method in ("delete", "update"):
            with pytest.raises(InvalidRows), writer.transaction() as tx:
                getattr(tx, method)("objects", as_rows(form, obj("a", id="not-a-uuid")))
        assert names(world.snapshot()) == ["a"]

    def test_of_several_rows_each_means_its_own_version(self, form: str) -> None:
        world = World()
        writer = world.writer()
        world.commit(writer, ("put", "objects", [obj(f"{n:02}", id=id_of(str(n))) for n in range(20)]))
        keys = [obj(f"{n:02}", id=id_of(str(n if n % 3 else n + 1))) for n in range(20)]
        world.commit(writer, ("delete", "objects", as_rows(form, *keys)))
        assert names(world.snapshot()) == [f"{n:02}" for n in range(0, 20, 3)]


@pytest.mark.parametrize("form", ["dicts", "arrow"])
class TestWhatIsNull:
    """What is null is not given, so each row of a call names its version in its own way, or names none."""

    @pytest.fixture
    def world(self) -> World:
        world = World()
        world.commit(world.writer(), ("put", "objects", [obj("a", id=ONE), obj("b", id=ONE), obj("c", id=ONE), obj("d")]))
        return world

    def test_a_delete_is_by_version_by_id_or_blind_row_by_row(self, world: World, form: str) -> None:
        replaced = version(obj("a"), world.snapshot())
        world.commit(world.writer("v"), ("put", "objects", obj("a", id=ONE)))
        keys = [
            obj("a", id=ONE, _version=replaced),
            obj("b", id=TWO, _version=None),
            obj("c", id=ONE, _version=None),
            obj("d", id=None, _version=None),
        ]
        world.commit(world.writer("v"), ("delete", "objects", as_rows(form, *keys)))
        assert names(world.snapshot()) == ["a", "b"]

    def test_an_update_is_by_version_or_by_id_row_by_row(self, world: World, form: str) -> None:
        ended = version(obj("a"), world.snapshot())
        world.commit(world.writer("v"), ("delete", "objects", obj("a")))
        given = [obj("a", id=ONE, _version=ended, etag="x"), obj("b", id=ONE, _version=None, etag="y")]
        world.commit(world.writer("v"), ("update", "objects", as_rows(form, *given)))
        snapshot = world.snapshot()
        assert rows(snapshot, "objects", ["name", "etag"])[0] == {"name": "b", "etag": "y"}
        assert rows(snapshot, "deleted_objects", ["name", "etag"]) == [{"name": "a", "etag": "x"}]

    @pytest.mark.parametrize(("method", "wanted"), [("update", "_version, or the live one's id"), ("purge", "_version")])
    def test_a_row_that_has_to_name_a_version_and_does_not_is_refused(
        self, world: World, form: str, method: str, wanted: str
    ) -> None:
        one = version(obj("a"), world.snapshot())
        given = as_rows(form, obj("a", id=ONE, _version=one), obj("b", id=None, _version=None))
        with pytest.raises(InvalidRows, match=r"Row 1 .* does not say which version") as error:
            world.commit(world.writer("v"), (method, "objects", given))
        assert error.value.next_step == f"Give its {wanted}."

    def test_what_expects_a_version_names_none(self, world: World, form: str) -> None:
        writer = world.writer("v")
        for named in ({"id": ONE}, {"id": TWO}, {"_version": version(obj("b"), world.snapshot())}):
            given = as_rows(form, *({**dict.fromkeys(named), **row} for row in (obj("a"), obj("b", **named))))
            with pytest.raises(InvalidRows, match="names a version and expects one too"):
                world.commit(writer, ("delete", "objects", given, {"expect": "absent"}))
        given = as_rows(form, obj("a", id=None, _version=None), obj("b", id=None, _version=None))
        world.commit(writer, ("delete", "objects", given, {"expect": "absent"}))
        assert names(world.snapshot()) == ["c", "d"]


@pytest.mark.parametrize("form", ["dicts", "arrow"])
class TestRefused:
    def test_an_update_of_what_the_transaction_has_deleted_is_refused(self, form: str) -> None:
        world = World()
        writer = world.writer()
        world.commit(writer, ("put", "objects", obj("a", id=ONE)))
        update = as_rows(form, obj("a", id=ONE, etag="x"))
        with pytest.raises(InvalidRows, match=r"Row 0 .* names no live version by its id"):
            world.commit(writer, ("delete", "objects", obj("a")), ("update", "objects", update))

    def test_what_was_refused_ends_no_incarnation(self, form: str) -> None:
        world = World()
        writer = world.writer()
        world.commit(writer, ("put", "buckets", [bucket("a"), bucket("b")]))
        before = rows(world.snapshot(), "buckets", ["name", "id"])
        keys = as_rows(form, bucket("a", _version=None), bucket("b", _version=version(bucket("b"), world.snapshot(), "buckets")))
        world.clock.tick()
        with writer.transaction() as tx:
            with pytest.raises(InvalidRows):
                tx.delete("buckets", keys, expect="absent")
            tx.put("buckets", [bucket("a"), bucket("b")])
        assert rows(world.snapshot(), "buckets", ["name", "id"]) == before


@pytest.mark.parametrize("name", ["_version", "id"])
def test_columns_that_name_versions_twice_are_refused(name: str) -> None:
    world = World()
    given = pa.Table.from_pylist([obj("a", **{name: ONE})])
    for method in ("delete", "update", "purge"):
        with pytest.raises(InvalidRows, match=f"column '{name}' twice"), world.writer("v").transaction() as tx:
            getattr(tx, method)("objects", given.append_column(name, given[name]))


def test_rows_of_one_transaction_are_found_at_one_cut_with_the_requests_of_one_snapshot() -> None:
    world = World()
    for writer in range(4):
        world.commit(world.writer(f"w{writer}"), ("put", "objects", [obj(f"{writer}-{n:02}", id=ONE) for n in range(25)]))
    store = Counting(world.store)
    mine = Catalog(store).writer("mine", clock=world.clock)
    store.reset()
    world.commit(
        mine,
        ("delete", "objects", [obj(f"{writer}-{n:02}", id=ONE) for writer in range(4) for n in range(20)]),
        ("put", "buckets", [bucket(f"b{n:02}") for n in range(20)]),
    )
    assert store.requests["list"] + store.requests["list_prefixes"] <= 2 * (1 + 2 * 4)
    assert len(names(world.snapshot())) == 20


@pytest.mark.parametrize("kind", ["update", "delete"])
def test_each_call_looks_at_what_it_adds_and_not_at_all_before_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted are rows of which a key is encoded, and events of which facts are made, in calls and in the commit."""
    count, world, looked = 40, World(), 0
    given = [obj(f"{n:02}", id=id_of(f"{n}")) for n in range(count)]
    writer = world.writer()
    world.commit(writer, ("put", "objects", given))

    def counting(module: Any, name: str) -> None:
        real = getattr(module, name)

        def counted(*arguments: Any) -> Any:
            nonlocal looked
            looked += 1
            return real(*arguments)

        monkeypatch.setattr(module, name, counted)

    counting(events, "_fact")
    counting(given_rows, "encode_key")
    world.commit(writer, *((kind, "objects", row) for row in given))
    assert count <= looked <= 6 * count


@pytest.mark.parametrize("form", ["dicts", "arrow"])
@pytest.mark.parametrize(
    ("field", "of", "ids"),
    [
        ("int64", "type: LOGICAL_TYPE_TIMESTAMP_MICROS", (0, datetime.datetime.fromtimestamp(7, datetime.UTC))),
        ("int32", "max_bytes: 0", (0, 7)),
        ("bytes", "type: LOGICAL_TYPE_UUID", (id_of("0"), ONE)),
        ("string", "max_bytes: 0", ("x", "y")),
    ],
)
def test_an_id_of_any_type_ends_what_the_transaction_put(form: str, field: str, of: str, ids: tuple[Any, Any]) -> None:
    world = World()
    body = f"string k = 1; optional {field} i = 2 [(column) = {{ {of} }}];"
    body = f'message R {{ option (table) = {{ name: "t.r" key: "k" id: "i" }}; {body} }}'
    catalog = world.catalog()
    catalog.register(messages(proto(body)).values())
    put = [{"k": f"{n}", "i": id_} for n, id_ in enumerate(ids)]
    crossed = [{"k": "0", "i": ids[1]}, {"k": "1", "i": ids[1]}]
    with catalog.writer("w", database="default", clock=world.clock) as writer, writer.transaction() as tx:
        tx.put("t.r", put[:1])
        tx.put("t.r", pa.Table.from_pylist(put[1:]))
        tx.delete("t.r", as_rows(form, *crossed))
    assert [row["k"] for row in rows(world.snapshot(), "t.r")] == ["0"]


def test_a_list_of_buckets_gets_the_ids_that_its_rows_would_get_one_by_one() -> None:
    given = [bucket("a"), bucket("b", id=ONE), bucket("a"), bucket("b"), bucket("c")]
    together, apart = World(), World()
    together.commit(together.writer(), ("put", "buckets", given))
    apart.commit(apart.writer(), *(("put", "buckets", row) for row in given))
    assert [(r["name"], r["id"]) for r in rows(together.snapshot(), "buckets")] == [
        (r["name"], r["id"]) for r in rows(apart.snapshot(), "buckets")
    ]
    assert {r["name"]: r["id"] for r in rows(together.snapshot(), "buckets")}["b"] == ONE
