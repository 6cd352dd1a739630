"""What is shown of rows is taken back: as rows, as Arrow data and in conditions, also where nothing is set or a number has no symbol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import InvalidOption, InvalidRows

from ...kit.world import World, messages, obj, proto, rows

TABLE = "test.shown"
SHOWN = proto(
    "enum Color { RED = 0; BLUE = 1; }",
    """
    message Part {
      optional Color color = 1;
      Color plain = 2;
      string facts = 3 [(column) = {type: LOGICAL_TYPE_JSON}];
    }
    """,
    """
    message Row {
      option (table) = { name: "test.shown" key: "k" };
      int32 k = 1;
      optional Color color = 2;
      Color plain = 3;
      repeated Color colors = 4;
      map<string, Color> by_name = 5;
      string facts = 6 [(column) = {type: LOGICAL_TYPE_JSON}];
      optional string notes = 7 [(column) = {type: LOGICAL_TYPE_JSON}];
      Part part = 8;
    }
    """,
)
GIVEN: list[dict[str, Any]] = [
    {"k": 0},
    {"k": 1, "color": 99, "plain": -7, "colors": [99, 1], "by_name": {"a": 99}, "part": {"color": 99, "plain": 99}},
    {"k": 2, "color": "BLUE", "facts": "{}", "part": {"facts": "[]"}},
]


@pytest.fixture
def world() -> World:
    world = World()
    catalog = world.catalog()
    catalog.register(messages(SHOWN)["Row"])
    with world.writer("node-1", catalog=catalog) as writer:
        world.commit(writer, ("put", TABLE, GIVEN))
    return world


FORMS: dict[str, Callable[[pa.Table], Any]] = {"rows": lambda shown: shown.to_pylist(), "arrow": lambda shown: shown}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("what", ["put", "update"])
def test_rows_are_given_back_as_they_were_read(world: World, form: str, what: str) -> None:
    shown = world.snapshot().scan(TABLE).to_arrow()
    assert shown["color"].to_pylist() == [None, "99", "BLUE"]
    assert shown["facts"].to_pylist() == ["", "", "{}"]
    with world.writer("node-1") as writer:
        world.commit(writer, (what, TABLE, FORMS[form](shown)))
    assert rows(world.snapshot(), TABLE) == shown.to_pylist()


def test_an_update_with_what_an_unset_column_reads_as_unsets_it(world: World) -> None:
    with world.writer("node-1") as writer:
        world.commit(writer, ("update", TABLE, {"k": 2, "facts": ""}))
    assert world.snapshot().get(TABLE, k=2)["facts"] == ""  # type: ignore[index]


@pytest.mark.parametrize(("color", "found"), [("99", [1]), (["99", "BLUE"], [1, 2]), ("98", []), (99, [1]), ("1", [2])])
def test_a_number_without_a_symbol_is_compared_as_it_is_shown(world: World, color: Any, found: list[int]) -> None:
    assert world.snapshot().scan(TABLE, where={"color": color}).to_arrow()["k"].to_pylist() == found


@pytest.mark.parametrize("color", ["099", "+99", "9.9", "", "-0", "2147483648", "-2147483649", "99 ", "٩"])
def test_no_other_text_is_a_number_of_an_enumeration(world: World, color: str) -> None:
    with world.writer("node-1") as writer, pytest.raises(InvalidRows, match="is none of RED, BLUE"):
        world.commit(writer, ("put", TABLE, {"k": 5, "color": color}))
    with pytest.raises(InvalidOption, match="is none of RED, BLUE"):
        world.snapshot().scan(TABLE, where={"color": color})


def test_no_text_is_no_json_where_a_column_can_be_unset(world: World) -> None:
    with world.writer("node-1") as writer, pytest.raises(InvalidRows, match="notes"):
        world.commit(writer, ("put", TABLE, {"k": 5, "notes": ""}))


def test_the_largest_values_of_each_type_come_back() -> None:
    world = World()
    row = obj(
        "é" * 512,
        content_length=2**63 - 1,
        parts=-(2**31),
        content_type="x" * 100_000,
        properties="[" + "1," * 600_000 + "1]",
    )
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [row | {"name": "0" + row["name"][1:]}]))
        world.commit(writer, ("put", "objects", [row, *(obj(str(n)) for n in range(65))]))
        writer.checkpoint()
    found = world.snapshot().get("objects", **obj("é" * 512))
    assert found is not None and {name: found[name] for name in row} == row
