"""Tables with as many columns, and as deep ones, as anybody reads are written and read; what is more is refused where it is declared."""

from __future__ import annotations

from typing import Any

import pytest

from bucketcatalog import IncompatibleTable, limits
from bucketcatalog.format.definitions import parse_definition, tables_of
from bucketcatalog.format.evolution import merge
from bucketcatalog.format.footers import Layout
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.format.segments import RunRows
from bucketcatalog.model.tables import Table
from bucketcatalog.v1 import log_pb2

from ...kit.storing import contents, facts_with, through_block, written
from ...kit.world import World, declaring, messages, proto

OPTION = 'option (table) = { name: "lab.large" key: "k" }; int64 k = 1;'


def table_with(fields: str, *more: str) -> Table:
    """A table with these fields beside its key, and messages beside it."""
    (table,) = tables_of(messages(proto(f"message Row {{ {OPTION} {fields} }}", *more))["Row"])
    return table


def numbers(count: int, first: int = 2) -> str:
    return "".join(f"optional int64 f{n} = {n};" for n in range(first, first + count))


WIDE = f"message Wide {{ {numbers(4_999)} }}"
"""A message that is 5,000 columns, itself among them; of one with more than 8,000 fields protobuf's own library makes no class."""


def wide(count: int) -> str:
    """Fields that are so many columns with the key."""
    return "Wide a = 2; Wide b = 3; Wide c = 4;" + numbers(count - 15_001, 5)


def layout_of(table: Table, row: dict[str, Any], block_class: BlockClass) -> Layout:
    """What the footer of a segment of a row says, once that is what was read of it, as of a block."""
    given = facts_with(table, [row], block_class)
    segment = written(RunRows(given, table, block_class))
    (found,) = segment.facts(table)
    assert contents(found, table) == contents(given, table) == contents(through_block(given, table, block_class), table)
    return segment.groups[0].footer.layout


class TestColumns:
    def test_as_many_as_a_table_may_have_are_written_and_read(self) -> None:
        table = table_with(wide(limits.TABLE_COLUMNS), WIDE)
        layout = layout_of(table, {"1": 1, "2": {"2": 2}, "4": {"4999": 3}, "5": 4}, BlockClass.STUBS)
        assert limits.TABLE_COLUMNS < len(layout.leaves) + 3 < limits.COLUMNS

    def test_one_more_is_refused(self) -> None:
        with pytest.raises(IncompatibleTable, match=r"'lab\.large' cannot be declared so: it has 16001 columns .* 16000"):
            table_with(wide(limits.TABLE_COLUMNS + 1), WIDE)

    @pytest.mark.parametrize(
        ("fields", "count"),
        [
            ("Inner of = 2;", 4),
            ("repeated Inner of = 2;", 6),
            ("map<string, Inner> of = 2;", 7),
            ("map<string, int64> of = 2;", 4),
            ("repeated int64 of = 2;", 3),
            ("Nothing of = 2;", 2),
            ("repeated Nothing of = 2;", 4),
        ],
    )
    def test_what_lies_in_them_counts_as_the_file_has_it(self, fields: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        more = ("message Inner { optional int64 a = 1; optional string b = 2; optional double c = 3; }", "message Nothing {}")
        table = table_with(fields, *more)
        layout = layout_of(table, {"1": 1}, BlockClass.LIVE)
        of = [layout.metadata.schema.column(n) for n in range(len(layout.leaves))]
        paths = {
            ".".join(c.path.split(".")[: depth + 1]) for c in of for depth in range(len(c.path.split("."))) if c.path[:2] == "of"
        }
        assert len(paths) == count
        parse_definition.cache_clear()
        monkeypatch.setattr(limits, "TABLE_COLUMNS", count)
        with pytest.raises(IncompatibleTable, match=f"it has {count + 1} columns"):
            parse_definition(table.definition)
        monkeypatch.setattr(limits, "TABLE_COLUMNS", count + 1)
        assert parse_definition(table.definition) == table

    def test_definitions_that_come_to_more_together_are_refused(self) -> None:
        older, newer = (table_with(fields, WIDE) for fields in ("Wide a = 2; Wide b = 3;", "Wide c = 4; Wide d = 5;"))
        with pytest.raises(IncompatibleTable, match="it has 20001 columns"):
            merge(older, newer)

    def test_a_few_messages_that_come_to_very_many_are_refused_at_once(self) -> None:
        more = [f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}" for n in range(50)]
        with pytest.raises(IncompatibleTable, match=r"it has \d{16} columns"):
            table_with("M0 of = 2;", *more, "message M50 { optional int64 a = 1; }")

    def test_whoever_registers_such_a_table_is_told(self) -> None:
        catalog = World().catalog()
        with pytest.raises(IncompatibleTable, match=r"lab\.large"):
            catalog.register(declaring(f"message Row {{ {OPTION} {wide(limits.TABLE_COLUMNS + 1)} }}", WIDE))


def nested(levels: int, kind: str) -> tuple[str, ...]:
    """A field with so many levels, and the messages that it takes: these, or lists or maps of them, in each other around a number."""
    label, own = {"messages": ("M%d of = 2;", 1), "lists": ("repeated M%d of = 2;", 2), "maps": ("map<string, M%d> of = 2;", 3)}[
        kind
    ]
    count, left = divmod(levels - 1, own)
    leaf = {0: "optional int64 of = 2;", 1: "repeated int64 of = 2;", 2: "map<string, int64> of = 2;"}[left]
    return label % 0, *(f"message M{n} {{ {label % (n + 1)} }}" for n in range(count - 1)), f"message M{count - 1} {{ {leaf} }}"


def a_value(table: Table) -> Any:
    """One in the deepest column."""

    def within(columns: Any) -> dict[str, Any]:
        (column,) = columns
        item: Any = within(column.children) if column.type.value == "message" and column.shape.value != "map" else 7
        if column.shape.value == "map":
            of = column.children[1]
            return {column.field_name: [("a", within(of.children) if of.children else 7)]}
        return {column.field_name: [item] if column.shape.value == "list" else item}

    return within([column for column in table.columns if column.name != "k"])


class TestLevels:
    @pytest.mark.parametrize("kind", ["messages", "lists", "maps"])
    def test_as_many_as_a_table_may_have_are_written_and_read(self, kind: str) -> None:
        table = table_with(*nested(limits.LEVELS, kind))
        layout_of(table, {"1": 1, **a_value(table)}, BlockClass.LIVE)

    @pytest.mark.parametrize("kind", ["messages", "lists", "maps"])
    @pytest.mark.parametrize("levels", [limits.LEVELS + 1, 3_000])
    def test_one_more_is_refused_and_however_many(self, levels: int, kind: str) -> None:
        with pytest.raises(IncompatibleTable, match="a column of it has more than 64 levels"):
            table_with(*nested(levels, kind))

    def test_a_message_within_itself_and_one_that_is_not_there_are_refused_as_that(self) -> None:
        with pytest.raises(IncompatibleTable, match=r"the message 'test\.M' lies within itself"):
            table_with("M of = 2;", "message M { repeated N n = 1; } message N { map<string, M> m = 1; }")
        table = table_with("M of = 2;", "message M { optional int64 a = 1; }")
        definition = log_pb2.TableDefinition.FromString(table.definition)
        del definition.files.file[0].message_type[-1]
        with pytest.raises(IncompatibleTable, match=r"nothing says what the message 'test\.M' is"):
            parse_definition(definition.SerializeToString())
