"""Who decides what a table is: a function of who has defined it and when, in whatever order and from whatever files that is read."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest

from bucketcatalog import IncompatibleTable
from bucketcatalog.clock import uuid7
from bucketcatalog.format.authority import Definition, Definitions, digest_of_definition
from bucketcatalog.format.checkpoints import Checkpoint, decode_checkpoint, encode_checkpoint
from bucketcatalog.format.definitions import core_tables, table_of
from bucketcatalog.format.records import Stamp, Witness
from bucketcatalog.model.cuts import Cut
from bucketcatalog.model.misfits import misfit_at
from bucketcatalog.model.tables import DataType, Table

from ...kit.spec_reader import transaction_uuid
from ...kit.world import START, messages, proto

KEY = 'name: "lab.r" key: "k"'
NUMBER, TEXT = "optional int64 n = 9;", "optional string n = 9;"
MAINTAINER = "maintainer-m"


def table(fields: str = "", options: str = "", *more: str) -> Table:
    return table_of(
        messages(proto(f"message R {{ option (table) = {{ {KEY} {options} }}; string k = 1; {fields} }}", *more))["R"]
    )


def said(writer: str, at: int, given: Table, *, declared: bool = False) -> Definition:
    """What a writer said of a table ``at`` a second."""
    time = START + at * 1_000_000
    return Definition((time, writer, at, transaction_uuid(writer, time, at)), given, declared=declared)


def merged(*definitions: Definition) -> Table:
    """The table that these make, in any order."""
    found = [Definitions(core_tables().values(), order)["lab.r"] for order in permutations(definitions)]
    assert all(each == found[0] and each.misfits == found[0].misfits for each in found)
    assert len({each.definition for each in found}) == 1
    return found[0]


A, B = table("optional string a = 2;"), table("optional string b = 2;", "tombstone_retention_seconds: 60")


class TestWhoDecides:
    def test_the_first_definer_names_columns_and_says_the_options(self) -> None:
        found = merged(said("one", 1, A), said("two", 2, B))
        assert [column.name for column in found.columns] == ["k", "a"] and not found.misfits
        assert found.tombstone_retention_seconds == 0 and not found.is_maintained

    def test_of_what_it_says_the_latest_counts(self) -> None:
        found = merged(said("one", 1, A), said("two", 2, A), said("one", 3, B))
        assert found.by_name["b"].number == 2 and found.tombstone_retention_seconds == 60
        assert merged(said("one", 1, A), said("one", 2, B), said("one", 3, A)).columns[1].name == "a"

    def test_others_add_columns_with_the_messages_that_these_need(self) -> None:
        inner = "message In { optional int64 x = 1; } optional In more = 5;"
        found = merged(said("one", 1, A), said("two", 2, table(f"optional string b = 2; {inner}")))
        assert [column.name for column in found.columns] == ["k", "a", "more"]
        assert found.by_name["more"].children[0].name == "x"

    def test_a_maintainer_overrides_by_what_it_declares_and_not_by_what_it_has_read(self) -> None:
        both = said("one", 1, A), said(MAINTAINER, 2, B)
        assert merged(*both).columns[1].name == "a"
        for at in (0, 2):  # also from before the first definer: then that decides no more
            found = merged(said("one", 1, A), said(MAINTAINER, at, B, declared=True), said("one", 3, A))
            assert found.columns[1].name == "b" and found.is_maintained and found.tombstone_retention_seconds == 60

    def test_a_maintainer_that_was_first_decides_as_any_first_definer(self) -> None:
        found = merged(said(MAINTAINER, 1, A), said("two", 2, B))
        assert found.columns[1].name == "a" and not found.is_maintained

    def test_the_release_decides_the_cores_tables_with_maintainers(self) -> None:
        core, fields = A, "optional string b = 2; optional string more = 3;"
        for writer, name in (("w", "a"), (MAINTAINER, "b")):
            definition = said(writer, 1, table(fields), declared=writer == MAINTAINER)
            found = Definitions([core], [definition])["lab.r"]
            assert [column.name for column in found.columns] == ["k", name, "more"] and found.is_maintained
        assert [m.writer for m in Definitions([core], [said("w", 1, table("optional int64 a = 2;"))])["lab.r"].misfits] == ["w"]

    @pytest.mark.parametrize("back", [False, True])
    def test_a_parent_and_what_is_external_stay_whoever_says_so(self, back: bool) -> None:
        external, parent = "[(column) = { external: true }]", 'parent: { table: "lab.b" field: "box" }'
        plain = table("optional string box = 2; bool mine = 3;")
        more = table(f"optional string box = 2; bool mine = 3 {external};", parent)
        found = merged(said("one", 1, more if back else plain), said("two", 2, plain if back else more))
        assert found.parent is not None and [c.name for c in found.external_columns] == ["mine"] and not found.misfits


OTHERS = {
    "another type": table("optional int64 a = 2;"),
    "another key": table_of(messages(proto('message R { option (table) = { name: "lab.r" key: "a" }; string a = 2; }'))["R"]),
    "an id": table("optional string a = 2;", 'id: "a"'),
    "a reference": table("optional string a = 2;", 'data_reference: "a"'),
    "no tombstones": table("optional string a = 2;", "tombstones: TOMBSTONES_DROPPED"),
}


class TestWhatDoesNotFit:
    @pytest.mark.parametrize("what", OTHERS)
    def test_it_is_left_out_from_its_first_stamp_on(self, what: str) -> None:
        misfit = said("two", 2, OTHERS[what])
        found = merged(said("one", 1, A), misfit, said("two", 4, OTHERS[what]), said("three", 3, A))
        assert found.columns == A.columns and found.id is None and not found.data_reference and found.keeps_tombstones
        (left_out,) = found.misfits
        assert (left_out.writer, left_out.since) == ("two", misfit.stamp) and "lab.r" in left_out.why
        assert misfit_at(found.misfits, misfit.stamp) == left_out == misfit_at(found.misfits, said("two", 9, A).stamp)
        assert misfit_at(found.misfits, said("two", 1, A).stamp) is None is misfit_at(found.misfits, said("one", 9, A).stamp)

    def test_of_two_that_add_a_column_the_one_that_came_first_stays(self) -> None:
        found = merged(said("one", 1, A), said("two", 2, table(NUMBER)), said("three", 3, table(TEXT)))
        assert found.by_name["n"].type is DataType.INT64 and [m.writer for m in found.misfits] == ["three"]
        found = merged(said("one", 1, A), said("two", 2, table(NUMBER)), said("one", 3, table(TEXT)))
        assert found.by_name["n"].type is DataType.STRING and [m.writer for m in found.misfits] == ["two"]

    def test_what_was_witnessed_stays_whatever_the_first_definer_of_a_maintainers_table_adds_later(self) -> None:
        column, other = table(f"optional string a = 2; {NUMBER}"), table(f"optional string a = 2; {TEXT}")
        given = [
            said("mallory", 1, A),
            said(MAINTAINER, 2, A, declared=True),
            said("alice", 3, column),
            said("mallory", 9, other),
        ]
        compactor = Stamp(START + 5_000_000, "compactor-1", 0, transaction_uuid("compactor-1", START + 5_000_000))
        witness = Witness("lab.r", digest_of_definition(column.definition), Stamp(*given[2].stamp), compactor)
        found = Definitions(core_tables().values(), given, witnessed=[witness])["lab.r"]
        assert found.by_number["9"].type is DataType.INT64 and [misfit.writer for misfit in found.misfits] == ["mallory"]
        unwitnessed = Definitions(core_tables().values(), given)["lab.r"]
        assert [misfit.writer for misfit in unwitnessed.misfits] == ["alice"], "it is the first definer's otherwise"

    def test_they_who_decide_contradict_each_other_for_everybody(self) -> None:
        number, text = table(NUMBER), table(TEXT)
        for both in (
            [said("one", 1, number), said("one", 2, text)],
            [said("maintainer-1", 1, number, declared=True), said("maintainer-2", 2, text, declared=True)],
        ):
            definitions = Definitions(core_tables().values(), [*both, said("two", 3, number)])
            assert "two ways" in str(definitions.contradiction("lab.r"))
            with pytest.raises(IncompatibleTable):
                definitions["lab.r"]

    def test_a_definition_dated_back_leaves_a_maintainers_table_as_it_is(self) -> None:
        """Without a maintainer's word, or a witness, it decides: nobody can tell it from one that arrived late."""
        number, text = said("one", 5, table(NUMBER)), said("mallory", 1, table(TEXT))
        assert [m.writer for m in merged(number, text).misfits] == ["one"]
        declared = said(MAINTAINER, 6, table(NUMBER), declared=True)
        assert [m.writer for m in merged(number, text, declared).misfits] == ["mallory"]

    def test_a_message_that_means_another_thing_under_the_same_name_does_not_fit(self) -> None:
        inner = "message In {{ optional {} x = 1; }} optional In {} = {};"
        found = merged(
            said("one", 1, table(inner.format("int64", "a", 5))), said("two", 2, table(inner.format("string", "b", 6)))
        )
        assert [m.writer for m in found.misfits] == ["two"] and "b" not in found.by_name

    @pytest.mark.parametrize("back", [False, True])
    def test_nor_does_a_message_where_the_other_has_an_enumeration_of_that_name(self, back: bool) -> None:
        kinds = ["message T { optional int64 x = 1; } optional T a = 5;", "enum T { ZERO = 0; } optional T b = 6;"]
        first, second = map(table, reversed(kinds) if back else kinds)
        found = merged(said("one", 1, first), said("two", 2, second))
        assert found.columns == first.columns and [m.writer for m in found.misfits] == ["two"]


def stored(definitions: list[Definition]) -> tuple[Definition, ...]:
    """What a checkpoint keeps of them."""
    kept = Definitions(core_tables().values(), definitions).stamped
    checkpoint = Checkpoint("w", "d", 0, uuid7(START).bytes, Cut(), {}, START, 0, definitions=kept)
    return decode_checkpoint(encode_checkpoint(checkpoint), "x.ckpt").definitions


@pytest.mark.parametrize("seed", range(60))
def test_any_union_of_checkpoints_and_transactions_says_what_the_transactions_say(seed: int) -> None:
    random = Random(seed)
    tables = [A, B, table(NUMBER), table(TEXT), table(NUMBER, "tombstones: TOMBSTONES_DROPPED"), table("optional string c = 4;")]
    writers = ["one", "two", "three", MAINTAINER]
    every = []
    for at in random.sample(range(40), random.randint(1, 9)):
        writer = random.choice(writers)
        declared = writer == MAINTAINER and random.random() < 0.5
        every.append(said(writer, at, random.choice(tables), declared=declared))
    expected = Definitions(core_tables().values(), every)
    for _ in range(4):
        parts = [random.sample(every, random.randint(1, len(every))) for _ in range(random.randint(1, 3))]
        read = [*(d for part in parts for d in stored([*stored(part[:1]), *part])), *every[:: random.randint(1, 2)]]
        read += [definition for definition in every if not any(definition in part for part in parts)]
        random.shuffle(read)
        found = Definitions(core_tables().values(), read)
        assert found.stamped == expected.stamped
        assert found.contradiction("lab.r") == expected.contradiction("lab.r")
        if found.contradiction("lab.r") is None:
            one, other = found["lab.r"], expected["lab.r"]
            assert (one, one.definition, one.misfits) == (other, other.definition, other.misfits)
            assert one.is_maintained == other.is_maintained


def test_a_checkpoint_keeps_a_definition_once_however_many_have_made_it() -> None:
    few, many = (len(encode_checkpoint(_of(count))) for count in (1, 51))
    assert (many - few) / 50 < 60


def _of(writers: int) -> Checkpoint:
    definitions = tuple(said(f"w{number}", number, A) for number in range(writers))
    return Checkpoint("w", "d", 0, uuid7(START).bytes, Cut(), {}, START, 0, definitions=definitions)
