"""Views over databases that know their tables otherwise than who declares the views: of older and newer releases, or contradictory ones."""

from __future__ import annotations

import pytest

from bucketcatalog import Catalog, IncompatibleTable, between
from bucketcatalog.model.tables import Table
from bucketcatalog.query.database import declared
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.query.views import View, Views
from bucketcatalog.store.wrappers import Counting

from ...kit.world import World, messages, proto

ROW = 'message Box {{ option (table) = {{ name: "crates.boxes" key: "name" }}; string name = 1; {} }}'
PART = 'message Part {{ option (table) = {{ name: "crates.parts" key: "k" }}; string k = 1; {} v = 2; }}'
GRAMS, WEIGHT = ROW.format("optional int64 grams = 3;"), ROW.format("optional int64 weight = 3;")
LATER = ROW.format("optional int64 mass = 3; optional string weight = 4;")


def knowing(world: World, *bodies: str) -> Catalog:
    catalog = world.catalog()
    catalog.register(list(messages(proto(*bodies)).values()))
    return catalog


def tables(*bodies: str) -> dict[str, Table]:
    return {table.name: table for table in declared(list(messages(proto(*bodies)).values()), {})}


def shown(snapshot: Snapshot, view: View, *bodies: str, where: object = None) -> list[dict[str, object]]:
    """The rows of a view as a system shows them whose tables are declared so."""
    conditions = {} if where is None else {"weight": where}
    views = Views("crates", {view.name: view}, tables(*bodies), lambda snapshot: True)
    read = views.read(snapshot, view.name, None, conditions)
    assert read is not None
    found: list[dict[str, object]] = read.to_arrow().to_pylist()
    return found


HEAVY = View("heavy", "crates.boxes", {"box": "name", "weight": "weight"})
LOST = View("lost", "deleted_crates.boxes", {"box": "name", "weight": "weight"})


@pytest.fixture
def world() -> World:
    """Two boxes of an older release, which calls the column otherwise; one is lost."""
    world = World()
    writer = world.writer(catalog=knowing(world, GRAMS))
    world.commit(writer, ("put", "crates.boxes", [{"name": "a", "grams": 5}, {"name": "b", "grams": 7}]))
    world.commit(writer, ("delete", "crates.boxes", {"name": "b"}))
    return world


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_view_has_its_systems_names_over_rows_of_a_release_that_had_others(world: World, checkpoint: bool) -> None:
    if checkpoint:
        world.writer("compactor-1").checkpoint(scope="all")
    snapshot = world.snapshot()
    assert shown(snapshot, HEAVY, WEIGHT) == [{"box": "a", "weight": 5}]
    assert shown(snapshot, LOST, WEIGHT) == [{"box": "b", "weight": 7}]
    assert shown(snapshot, HEAVY, WEIGHT, where=between(6, None)) == []
    assert snapshot.scan("crates.boxes").schema.names == ["name", "grams"]


def test_a_view_has_its_systems_names_over_rows_of_a_later_release_too(world: World) -> None:
    writer = world.writer("maintainer-v", catalog=knowing(world, LATER))
    world.commit(writer, ("put", "crates.boxes", {"name": "c", "mass": 6, "weight": "heavy"}))
    assert shown(world.snapshot(), HEAVY, WEIGHT) == [{"box": "a", "weight": 5}, {"box": "c", "weight": 6}]
    later = View("later", "crates.boxes", {"box": "name", "said": "weight"})
    assert shown(world.snapshot(), later, LATER) == [{"box": "a", "said": None}, {"box": "c", "said": "heavy"}]


def test_a_view_of_a_table_that_has_changed_is_read_twice_without_its_indexes(world: World) -> None:
    writer = world.writer("maintainer-v", catalog=knowing(world, WEIGHT))
    world.commit(writer, ("put", "crates.boxes", [{"name": f"{number:04}", "weight": number} for number in range(300)]))
    world.writer("compactor-1").checkpoint(scope="all")
    store = Counting(world.store)
    snapshot = Catalog(store).snapshot()
    shown(snapshot, HEAVY, WEIGHT)
    before = store.requests["get_range"]
    shown(snapshot, HEAVY, WEIGHT)
    assert store.requests["get_range"] - before == 1


def test_a_view_is_read_where_another_table_of_its_system_is_contradictory(world: World) -> None:
    one = world.writer("one", catalog=knowing(world, PART.format("int64")))
    two = world.writer("two", catalog=knowing(world, PART.format("string")))
    with two.transaction() as tx:
        tx.put("crates.parts", {"k": "x", "v": "s"})
        world.commit(one, ("put", "crates.parts", {"k": "x", "v": 1}))
    declarations = WEIGHT, PART.format("int64")
    assert shown(world.snapshot(), HEAVY, *declarations) == [{"box": "a", "weight": 5}]
    with pytest.raises(IncompatibleTable, match=r"crates\.parts"):
        shown(world.snapshot(), View("parts", "crates.parts", {"weight": "v"}), *declarations)


def test_a_view_whose_system_contradicts_what_the_database_holds_is_an_error_that_names_the_table(world: World) -> None:
    with pytest.raises(IncompatibleTable, match=r"crates\.boxes"):
        shown(world.snapshot(), HEAVY, ROW.format("optional string weight = 3;"))
