"""Parents that cannot be meant: refused before their definition is in the log, where it would stay for ever; what is there goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor

from bucketcatalog import Catalog, IncompatibleTable
from bucketcatalog.model.tables import Parent

from ...kit.installing import boxes
from ...kit.world import BUCKET, World, messages, names, proto, stored

UUID = "[(column) = {type: LOGICAL_TYPE_UUID}]"
TIME = "[(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}]"
JSON = "[(column) = {type: LOGICAL_TYPE_JSON}]"
TEXT = "optional string NAME = 2;"


def declared(name: str, options: str, field: str) -> Descriptor:
    """A table with a name as its key, these options, and this field."""
    head = f'option (table) = {{ name: "own.{name.lower()}" key: "name" {options} }}; string name = 1;'
    return messages(proto("enum Kind { KIND_NONE = 0; }", f"message {name} {{ {head} {field} }}"))[name]


def holders(field: str = TEXT, *, has_id: bool = True) -> Descriptor:
    """A table with such an id, or with such a column and no id."""
    return declared("Holder", 'id: "id"' if has_id else "", field.replace("NAME", "id"))


def files(field: str = TEXT, *, parent: str = "own.holder") -> Descriptor:
    """A table whose rows say with such a field whose they are; without a parent they say nothing by it."""
    options = f'parent: {{ table: "{parent}" field: "holder" }}' if parent else ""
    return declared("File", options, field.replace("NAME", "holder"))


def knowing(world: World, *declared: Descriptor) -> Catalog:
    catalog = world.catalog()
    catalog.register(list(declared))
    return catalog


@pytest.fixture
def world() -> World:
    return World()


A_ROW = ("put", "own.file", {"name": "a"})
UNLIKE = [
    (TEXT, f"optional bytes NAME = 2 {UUID};", "string", "uuid"),
    (f"optional bytes NAME = 2 {UUID};", TEXT, "uuid", "string"),
    (TEXT, "optional int64 NAME = 2;", "string", "int64"),
    (f"optional int64 NAME = 2 {TIME};", "optional int64 NAME = 2;", "timestamp", "int64"),
    (f"optional bytes NAME = 2 {UUID};", f"optional int64 NAME = 2 {TIME};", "uuid", "timestamp"),
    ("optional double NAME = 2;", "optional double NAME = 2;", "double", "double"),
    ("optional double NAME = 2;", "optional int64 NAME = 2;", "double", "int64"),
    ("optional bool NAME = 2;", "optional bool NAME = 2;", "bool", "bool"),
    ("repeated string NAME = 2;", TEXT, "list of string", "string"),
    (TEXT, "repeated string NAME = 2;", "string", "list of string"),
    ("map<string, string> NAME = 2;", TEXT, "map", "string"),
    ("message M { string x = 1; } optional M NAME = 2;", TEXT, "message", "string"),
]
"""Fields of a file and ids of a holder that never equal each other, and what they are called."""


@pytest.mark.parametrize(("field", "id_", "one", "other"), UNLIKE)
@pytest.mark.parametrize("is_there", [False, True], ids=["registered", "in the log"])
def test_a_field_that_never_equals_the_id_of_the_parent_is_refused(
    world: World, field: str, id_: str, one: str, other: str, is_there: bool
) -> None:
    tables = [files(field), holders(id_)]
    if is_there:
        world.commit(world.writer("v", catalog=knowing(world, tables[1])), ("put", "own.holder", {"name": "h"}))
    before = stored(world)
    with pytest.raises(IncompatibleTable) as caught, world.writer(catalog=knowing(world, *tables)).transaction() as tx:
        tx.put("own.file", {"name": "a"})
    for said in ("Table 'own.file' cannot have the parent 'own.holder'", "'holder'", one, "'id'", other):
        assert said in caught.value.message
    assert caught.value.message.endswith(".") and caught.value.next_step.endswith(".")
    assert stored(world) == before


ALIKE = [
    (TEXT, TEXT),
    (TEXT, "optional bytes NAME = 2;"),
    (TEXT, f"optional string NAME = 2 {JSON};"),
    ("optional bytes NAME = 2;", f"optional bytes NAME = 2 {UUID};"),
    (f"optional bytes NAME = 2 {UUID};", f"optional bytes NAME = 2 {UUID};"),
    ("optional int32 NAME = 2;", "optional uint64 NAME = 2;"),
    ("optional Kind NAME = 2;", "optional int32 NAME = 2;"),
    (f"optional int64 NAME = 2 {TIME};", f"optional int64 NAME = 2 {TIME};"),
]


@pytest.mark.parametrize(("field", "id_"), ALIKE)
@pytest.mark.parametrize("order", [1, -1], ids=["parent first", "child first"])
@pytest.mark.parametrize("commits", [1, 2])
def test_a_parent_and_its_children_come_in_either_order(world: World, field: str, id_: str, order: int, commits: int) -> None:
    calls = [("put", "own.holder", {"name": "h"}), A_ROW][::order]
    with world.writer(catalog=knowing(world, files(field), holders(id_))) as writer:
        for some in [calls] if commits == 1 else [[call] for call in calls]:
            world.commit(writer, *some)
    assert world.snapshot().table("own.file").parent == Parent("own.holder", "holder")


@pytest.mark.parametrize("parent", ["own.holdr", "log", "deleted_own.holder", "nobody.knows"])
def test_a_parent_that_is_not_there_is_refused(world: World, parent: str) -> None:
    catalog = knowing(world, files(parent=parent), holders())
    why = rf"Table 'own\.file' cannot have the parent '{parent}': nobody has written or registered the table that its field 'holder' names"
    with pytest.raises(IncompatibleTable, match=why) as caught, world.writer(catalog=catalog).transaction() as tx:
        tx.put("own.file", {"name": "a"})
    assert caught.value.next_step.startswith("Register both") and stored(world) == []


def test_a_parent_without_an_id_is_refused(world: World) -> None:
    catalog = knowing(world, files(), holders(has_id=False))
    why = r"Table 'own\.file' cannot have the parent 'own\.holder': 'own\.holder' has no id that the field 'holder' could equal\."
    with pytest.raises(IncompatibleTable, match=why), world.writer(catalog=catalog).transaction() as tx:
        tx.put("own.file", {"name": "a"})


def test_what_was_refused_goes_on_once_the_parent_is_known(world: World) -> None:
    catalog = knowing(world, files())
    with world.writer(catalog=catalog).transaction() as tx:
        with pytest.raises(IncompatibleTable, match=r"own\.holder"):
            tx.put("own.file", {"name": "a"})
        catalog.register(holders())
        tx.put("own.file", {"name": "a"})
    assert names(world.snapshot(), "own.file") == ["a"]


OF_ITSELF = 'id: "name" parent: { table: "own.file" field: "within" }'


@pytest.mark.parametrize(
    "table",
    [files(f"optional bytes NAME = 2 {UUID};", parent="buckets"), declared("File", OF_ITSELF, "optional string within = 2;")],
    ids=["of the core", "the table itself"],
)
def test_a_parent_need_not_be_registered_to_be_known(world: World, table: Descriptor) -> None:
    world.commit(world.writer(catalog=knowing(world, table)), A_ROW)
    assert names(world.snapshot(), "own.file") == ["a"]


def test_a_parent_can_be_a_table_that_the_database_alone_has(world: World) -> None:
    world.commit(world.writer("v", catalog=knowing(world, holders())), ("put", "own.holder", {"name": "h"}))
    world.commit(world.writer(catalog=knowing(world, files())), A_ROW)
    assert names(world.snapshot(), "own.file") == ["a"]


def test_a_parent_can_be_a_table_that_a_system_declares(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in boxes(tmp_path):
        monkeypatch.syspath_prepend(folder)
    world.commit(world.writer(catalog=knowing(world, files(parent="boxes.boxes"))), A_ROW)
    with pytest.raises(IncompatibleTable, match=r"'boxes\.parts' has no id"):
        world.commit(world.writer("v", catalog=knowing(World(), files(parent="boxes.parts"))), A_ROW)


def test_a_parent_that_is_declared_later_is_looked_at_too(world: World) -> None:
    world.commit(world.writer("v", catalog=knowing(world, files(parent=""))), A_ROW)
    with (
        pytest.raises(IncompatibleTable, match="nobody has written or registered"),
        world.writer(catalog=knowing(world, files())).transaction() as tx,
    ):
        tx.put("own.file", {"name": "b"})
    world.commit(world.writer(catalog=knowing(world, files(), holders())), ("put", "own.file", {"name": "b"}))
    assert world.snapshot().table("own.file").parent == Parent("own.holder", "holder")


WRONG = {
    "not there": (files(parent="own.holdr"), holders()),
    "unlike": (files(), holders(f"optional bytes NAME = 2 {UUID};")),
    "no id": (files(), holders(has_id=False)),
    "fractions": (files("optional double NAME = 2;"), holders("optional double NAME = 2;")),
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("registers", [False, True])
def test_whoever_writes_a_table_that_has_such_a_parent_goes_on(world: World, what: str, registers: bool) -> None:
    with world.writer("v") as old:
        world.commit_unasked(old, WRONG[what], ("put", "own.file", {"name": "a"}), ("put", "own.holder", {"name": "h"}))
        old.checkpoint()
    catalog = knowing(world, *WRONG[what]) if registers else world.catalog()
    with world.writer(catalog=catalog) as writer:
        puts = [("put", "own.file", {"name": "b"}), ("put", "own.holder", {"name": "i"})]
        world.commit(writer, *puts, ("delete", "own.file", {"name": "a"}))
        writer.checkpoint()
    snapshot = world.snapshot()
    assert names(snapshot, "own.file") == ["b"] and names(snapshot, "own.holder") == ["h", "i"]


@pytest.mark.parametrize(("field", "id_", "one", "other"), UNLIKE)
def test_a_table_that_others_name_as_their_parent_has_an_id_that_theirs_can_equal(
    world: World, field: str, id_: str, one: str, other: str
) -> None:
    world.commit_unasked(world.writer("v"), [files(field)], ("put", "own.file", {"name": "a"}))
    for table, said in ((holders(id_), (one, other)), (holders(has_id=False), ("has no id",))):
        with pytest.raises(IncompatibleTable) as caught, world.writer(catalog=knowing(world, table)).transaction() as tx:
            tx.put("own.holder", {"name": "h"})
        for word in ("Table 'own.holder' cannot be the parent of 'own.file'", "'holder'", *said):
            assert word in caught.value.message


def test_a_table_that_is_there_is_not_asked_whose_parent_it_is(world: World) -> None:
    table = holders(f"optional bytes NAME = 2 {UUID};")
    world.commit(world.writer("v", catalog=knowing(world, table)), ("put", "own.holder", {"name": "h"}))
    world.commit_unasked(world.writer("u"), [files()], A_ROW)
    world.commit(world.writer(catalog=knowing(world, table)), ("put", "own.holder", {"name": "i", "id": BUCKET}))
    assert names(world.snapshot(), "own.holder") == ["h", "i"]
