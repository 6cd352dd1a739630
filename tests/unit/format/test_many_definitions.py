"""Definitions of one table by many, or by one again and again: together they are what they are one after the other, for what they say."""

from __future__ import annotations

from random import Random
from time import perf_counter

import pytest

from bucketcatalog import IncompatibleTable, limits
from bucketcatalog.errors import BucketCatalogError
from bucketcatalog.format.authority import Definition, Definitions
from bucketcatalog.format.definitions import core_tables, parse_definition, row_class, table_of
from bucketcatalog.format.evolution import merge, merge_all
from bucketcatalog.format.rows import decode_row, encode_row
from bucketcatalog.model.tables import Table
from bucketcatalog.v1 import log_pb2, options_pb2

from ...kit.mallory import Mallory
from ...kit.spec_reader import transaction_uuid
from ...kit.world import START, World, messages, names, obj, proto


def table(fields: str, options: str = "") -> Table:
    source = f'message R {{ option (table) = {{ name: "lab.r" key: "k" {options} }}; string k = 1; {fields} }}'
    return table_of(messages(proto(source))["R"])


def said(writer: str, at: int, given: Table, *, declared: bool = False) -> Definition:
    time = START + at * 1_000_000
    return Definition((time, writer, at, transaction_uuid(writer, time, at)), given, declared=declared)


def with_column(given: Table, number: int, name: str = "") -> Table:
    """The same with one column more, without a compiler, for thousands of them."""
    definition = log_pb2.TableDefinition.FromString(given.definition)
    (row,) = (each for file in definition.files.file for each in file.message_type if each.name == "R")
    added = row.field.add(name=name or f"x{number}", number=number, label=1, type=9, proto3_optional=True)
    added.oneof_index = len(row.oneof_decl)
    row.oneof_decl.add(name=f"_{added.name}")
    return parse_definition(definition.SerializeToString(deterministic=True))


_FIELDS = (
    "",
    "optional string a = 2;",
    "optional int32 a = 2;",
    "optional int64 a = 2;",
    "optional string b = 2;",
    "optional string a = 3;",
    "optional string a_3 = 4;",
    "optional string a = 4;",
    "message In { optional int64 x = 1; } optional In more = 5;",
    "message In { optional int64 y = 2; message Deep { optional string z = 1; } optional Deep d = 3; } optional In more = 5;",
    "message In { optional string x = 1; } repeated In many = 6;",
    "enum Kind { NONE = 0; SOME = 1; } optional Kind kind = 7;",
    "enum Kind { NONE = 0; MANY = 2; } repeated Kind kinds = 8;",
    "optional string z = 9; optional string a = 3; optional string a_3 = 4;",
    "optional string a = 10; message In { optional int64 x = 1; } optional In a_5 = 11;",
)


@pytest.fixture(scope="module")
def tables() -> list[Table]:
    return [table(fields) for fields in _FIELDS]


def one_after_the_other(decided: Table, others: list[Definition]) -> tuple[Table, dict[bytes, str]]:
    """What is merged in turn, as the specification has it: what does not fit is left out, and what its writer says later."""
    left_out: dict[bytes, str] = {}
    since: dict[str, Definition] = {}
    for each in others:
        text = each.table.definition
        if text in left_out or (each.writer in since and each.first > since[each.writer].first):
            continue
        try:
            decided = merge(each.table, decided)
        except BucketCatalogError as error:
            left_out[text] = error.message
            for same in (other for other in others if other.table.definition == text):
                since[same.writer] = min(since.get(same.writer, same), same, key=lambda one: one.first)
    return decided, left_out


@pytest.mark.parametrize("seed", range(300))
def test_merged_together_they_are_what_they_are_one_after_the_other(tables: list[Table], seed: int) -> None:
    random = Random(seed)
    first = random.choice(tables)
    others = [said(random.choice("pqr"), 2 + at, random.choice(tables)) for at in range(random.randint(2, 9))]
    found = Definitions(core_tables().values(), [said("one", 1, first), *others])
    expected, left_out = one_after_the_other(first, [each for each in others if each.table.definition != first.definition])
    assert found["lab.r"].columns == expected.columns
    assert set(found.left_out("lab.r")) == set(left_out)
    assert row_class(found["lab.r"].definition) is not None


def test_a_column_with_a_message_that_lies_in_the_row_leaves_the_table_usable() -> None:
    """Its type goes into the message of the row that is there: with a second one of that name nobody could read a row any more."""
    inner = table("optional string b = 2; message In { optional int64 x = 1; } optional In more = 5;")
    found = Definitions(core_tables().values(), [said("one", 1, table("optional string a = 2;")), said("two", 2, inner)])["lab.r"]
    row = {"1": "k", "2": "x", "5": {"1": 3}}
    assert decode_row(found, encode_row(found, row), "it") == row and not found.misfits


def test_columns_of_one_name_get_others_until_they_are_told_apart() -> None:
    first, other = table("optional string a = 2;"), table("optional string a_3 = 4; optional string a = 3;")
    found = Definitions(core_tables().values(), [said("one", 1, first), said("two", 2, other)])["lab.r"]
    assert {column.number: column.name for column in found.columns} == {1: "k", 2: "a", 3: "a_3_3", 4: "a_3"}
    row = {"1": "k", "2": "x", "3": "y", "4": "z"}
    assert decode_row(found, encode_row(found, row), "it") == row


@pytest.mark.parametrize("writers", [1, 400])
@pytest.mark.parametrize("is_bad", [False, True], ids=["all fit", "one does not"])
def test_thousands_of_definitions_cost_by_what_they_say(writers: int, is_bad: bool) -> None:
    def seconds(count: int) -> float:
        first, bad = table("optional string a = 2;"), table("optional int64 a = 2;")
        given = [said("one", 1, first)]
        given += [said(f"maintainer-{at % writers}", 2 + at, with_column(first, 100 + at)) for at in range(count)]
        given += [said("maintainer-0", 2 + count // 2, bad)] if is_bad else []
        began = perf_counter()
        found = Definitions(core_tables().values(), given)["lab.r"]
        took = perf_counter() - began
        assert bool(found.misfits) is is_bad and len(found.columns) > count // 2
        return took

    few, many = (min(seconds(count) for _ in range(3)) for count in (400, 3_200))
    assert many < 24 * few + 1, (few, many)  # it was sixty-four times as long


def test_of_a_writer_that_is_left_out_no_more_is_looked_at() -> None:
    first = table("optional string a = 2;")
    bad = [said("two", 3 + at, with_column(table("optional int64 a = 2;"), 100 + at)) for at in range(300)]
    later = said("two", 500, with_column(first, 99))
    found = Definitions(core_tables().values(), [said("one", 1, first), *bad, later])
    assert [column.number for column in found["lab.r"].columns] == [1, 2] and len(found.left_out("lab.r")) == 1
    (misfit,) = found["lab.r"].misfits
    assert misfit.since == bad[0].first
    same = said("three", 501, with_column(first, 99))
    again = Definitions(core_tables().values(), [said("one", 1, first), *bad, later, same])["lab.r"]
    assert [column.number for column in again.columns] == [1, 2, 99], "what another one says counts, in the same words too"


def test_merging_many_is_refused_where_two_of_them_contradict() -> None:
    first, one, other = table(""), table("optional string a = 2;"), table("optional int64 a = 2;")
    with pytest.raises(BucketCatalogError, match="is defined in two ways"):
        merge_all([one, other], first)


def with_types(given: Table, number: int, *, chain: int = 0, files: int = 0) -> Table:
    """The same with a column of a message in which one lies that nothing uses: it leads to ``chain`` messages, or to ``files``."""
    definition = log_pb2.TableDefinition.FromString(given.definition)
    *others, file = definition.files.file
    (row,) = (each for each in file.message_type if each.name == "R")
    outer = file.message_type.add(name="M")
    outer.field.add(name="x", number=1, label=1, type=3)
    unused = outer.nested_type.add(name="N")
    for at in range(chain):
        link = file.message_type.add(name=f"A{at}")
        link.field.add(name="x", number=1, label=1, type=3)
        if at + 1 < chain:
            link.field.add(name="next", number=2, label=1, type=11, type_name=f".{file.package}.A{at + 1}")
    if chain:
        unused.field.add(name="first", number=1, label=1, type=11, type_name=f".{file.package}.A0")
    added = []
    for at in range(files):
        other = type(file)(name=f"f{at}.proto", package=f"p{at}", syntax="proto3")
        other.message_type.add(name="Z").field.add(name="x", number=1, label=1, type=3)
        if at:
            other.dependency.append(f"f{at - 1}.proto")
            other.message_type[0].field.add(name="next", number=2, label=1, type=11, type_name=f".p{at - 1}.Z")
        added.append(other)
    if files:
        unused.field.add(name="last", number=1, label=1, type=11, type_name=f".p{files - 1}.Z")
        file.dependency.append(f"f{files - 1}.proto")
    row.field.add(name=f"more{number}", number=number, label=1, type=11, type_name=f".{file.package}.M")
    row_file = type(file).FromString(file.SerializeToString())
    del definition.files.file[len(others) :]
    definition.files.file.extend([*added, row_file])
    return parse_definition(definition.SerializeToString(deterministic=True))


def test_types_that_lead_to_each_other_without_end_are_merged_all_the_same() -> None:
    first = table("optional string a = 2;")
    given = [
        said("one", 1, first),
        said("two", 2, with_types(first, 9, chain=3_000)),
        said("three", 3, with_types(first, 9, chain=3_001)),
    ]
    found = Definitions(core_tables().values(), given)["lab.r"]
    assert [column.number for column in found.columns] == [1, 2, 9]
    row = {"1": "k", "2": "x", "9": {"1": 3}}
    assert decode_row(found, encode_row(found, row), "it") == row


def test_thousands_of_files_of_a_definition_cost_by_their_number() -> None:
    def seconds(count: int) -> float:
        first = table("optional string a = 2;")
        given = [said("one", 1, first), said("two", 2, with_types(first, 9, files=count))]
        began = perf_counter()
        assert len(Definitions(core_tables().values(), given)["lab.r"].columns) == 3
        return perf_counter() - began

    few, many = min(seconds(500) for _ in range(3)), seconds(4_000)
    assert many < 24 * few + 1, (few, many)  # it was sixty-four times as long


class TestHowManyCount:
    """What one plain writer can define in all, so that everybody's definitions go into a checkpoint."""

    def others(self, count: int, writer: str = "mallory", at: int = 10) -> list[Definition]:
        first = table("")
        return [said(writer, at + number, with_column(first, 100 + number)) for number in range(count)]

    def test_the_first_ones_of_a_plain_writer(self) -> None:
        given = [said("one", 1, table("optional string a = 2;")), *self.others(limits.PLAIN_DEFINITIONS + 5)]
        found = Definitions(core_tables().values(), given)
        numbers = [column.number for column in found["lab.r"].columns]
        assert numbers == [1, 2, *range(100, 100 + limits.PLAIN_DEFINITIONS)] and not found["lab.r"].misfits
        assert not found.has_room(table("optional string c = 3;"), "mallory")
        assert found.has_room(table("optional string c = 3;"), "one") and found.has_room(given[1].table, "mallory")

    @pytest.mark.parametrize("writer", ["compactor-1", "maintainer-1"])
    def test_all_of_those_who_are_trusted(self, writer: str) -> None:
        found = Definitions(core_tables().values(), self.others(limits.PLAIN_DEFINITIONS + 5, writer))
        assert len(found["lab.r"].columns) == 1 + limits.PLAIN_DEFINITIONS + 5

    def test_what_a_checkpoint_left_out_stays_out_when_more_arrives(self) -> None:
        """It counts no more than before, whatever comes late."""
        given, late = self.others(limits.PLAIN_DEFINITIONS + 5), self.others(3, at=1)
        carried = Definitions(core_tables().values(), given).stamped
        assert Definitions((), [*carried, *late]).stamped == Definitions((), [*given, *late]).stamped

    def test_no_writer_keeps_others_from_writing_a_checkpoint_of_everybody(self) -> None:
        world = World()
        with world.writer("alice") as alice:
            world.commit(alice, ("put", "objects", obj("a")))
        mallory = Mallory(world.store)
        with world.writer("mallory") as writer:
            world.commit(writer, ("put", "objects", obj("m")))
        forged = mallory.next()
        base = log_pb2.TableDefinition.FromString(table("").definition)
        for number in range(limits.DEFINITIONS):
            defined = log_pb2.TableDefinition()
            defined.CopyFrom(base)
            defined.name = f"lab.t{number}"
            (row,) = (each for file in defined.files.file for each in file.message_type if each.name == "R")
            row.options.Extensions[options_pb2.table].name = defined.name
            forged.tables.add().MergeFromString(defined.SerializeToString())
        mallory.put(forged)
        with world.writer("compactor-1") as compactor:
            assert compactor.checkpoint(scope="all") is not None
        assert names(world.snapshot()) == ["a", "m"]
        catalog = world.catalog()
        catalog.register(
            messages(proto('message Mine { option (table) = { name: "lab.mine" key: "k" }; string k = 1; }'))["Mine"]
        )
        with (
            pytest.raises(IncompatibleTable, match="no more count"),
            world.writer("mallory", catalog=catalog) as writer,
            writer.transaction() as tx,
        ):
            tx.put("lab.mine", {"k": "a"})
