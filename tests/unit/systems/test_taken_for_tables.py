"""Names of views where a table is meant: what the name is, whose, and what can be done with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bucketcatalog import Catalog, UnknownTable
from bucketcatalog.cli import run

from ...kit.world import World

pytestmark = pytest.mark.usefixtures("with_boxes")


@pytest.fixture
def world() -> World:
    world = World()
    world.commit(world.writer(), ("put", "boxes.boxes", {"name": "a", "label": "L-a", "grams": 500}))
    return world


ASKED: dict[str, Callable[[World, str], object]] = {
    "get": lambda world, name: world.snapshot().get(name, box="a"),
    "list": lambda world, name: world.snapshot().list(name),
    "table": lambda world, name: world.snapshot().table(name),
    "put": lambda world, name: world.commit(world.writer("v"), ("put", name, {"box": "a"})),
    "delete": lambda world, name: world.commit(world.writer("v"), ("delete", name, {"box": "a"})),
    "changes": lambda world, name: world.catalog().changes(table=name),
    "diff": lambda world, name: world.catalog().diff(table=name),
    "restore": lambda world, name: world.catalog().restore(name, version="w@0", dry_run=True),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize(
    ("name", "what", "step"),
    [
        (
            "box_weights",
            "'box_weights' is no table: it is the view of 'boxes.boxes' that the system 'boxes' shows.",
            "Scan it, export it, or read it in Spark; for anything else take 'boxes.boxes'.",
        ),
        ("lost_boxes", "it is the view of 'deleted_boxes.boxes' that the system 'boxes' shows.", "take 'boxes.boxes'."),
        (
            "box_sizes",
            "'box_sizes' is a view that the system 'boxes' writes in SQL: it is there in Spark alone.",
            "Show it by attach(spark, CATALOG, systems=['boxes']), and read it by spark.table('box_sizes').",
        ),
    ],
)
def test_who_takes_a_view_for_a_table_is_told_what_it_is(world: World, asked: str, name: str, what: str, step: str) -> None:
    with pytest.raises(UnknownTable) as caught:
        ASKED[asked](world, name)
    assert what in caught.value.message and step in caught.value.next_step


def test_a_view_that_is_there_in_spark_alone_is_not_scanned(world: World) -> None:
    with pytest.raises(UnknownTable, match=re.escape("'box_sizes' is a view that the system 'boxes' writes in SQL")):
        world.snapshot().scan("box_sizes")


@pytest.mark.parametrize(
    "command", ["export {} box_sizes {}.parquet", "changes {} --table box_weights", "diff {} --table box_weights"]
)
def test_a_command_says_so_in_one_line(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Catalog(tmp_path / "c").writer("w") as writer, writer.transaction() as tx:
        tx.put("boxes.boxes", {"name": "a", "grams": 500})
    arguments = command.replace("{}", str(tmp_path / "c")).split()
    assert run([*arguments, *(["--from", "w@0"] if "--table" in arguments else [])]) == 2
    said = capsys.readouterr().err
    assert said.startswith("[UNKNOWN_TABLE] 'box_") and said.count("\n") == 1


@pytest.mark.parametrize(
    "name", ["nothing", "deleted_nothing", "deleted_boxes.nothing", "deleted_deleted_objects", "boxes.nothing"]
)
def test_what_is_nothing_is_named_as_it_was_asked_for(world: World, name: str) -> None:
    for asked in (lambda: world.snapshot().scan(name), lambda: ASKED["get"](world, name), lambda: ASKED["changes"](world, name)):
        with pytest.raises(UnknownTable, match=re.escape(f"There is no table {name!r} in database 'default'.")):
            asked()
