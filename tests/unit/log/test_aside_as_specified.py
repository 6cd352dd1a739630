"""A reader that knows docs/spec alone takes for set aside what the engine does, from transactions and from checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest

from bucketcatalog import Catalog

from ...kit.aside import set_aside, take_in
from ...kit.pruning import checkpoint, put
from ...kit.spec_reader import SpecReader
from ...kit.spec_reading import compare, copied
from ...kit.spoiling import newest, restore, spoil
from ...kit.world import World, names


@pytest.mark.parametrize("kind", ["a byte", "reads of nothing", "an unknown feature"])
def test_the_specification_says_what_the_engine_does(kind: str, tmp_path: Path) -> None:
    world = World()
    with world.writer("a") as a, world.writer("b") as b:
        put(world, a, "x", "y")
        put(world, b, "bad")
        name = newest(world, "b")
        data = spoil(world, name, kind)
        set_aside(world, name)
        checkpoint(world)
        put(world, a, "z")
        assert names(world.snapshot()) == ["x", "y", "z"]
        _compare(world, tmp_path / "aside", 3)
        restore(world, name, data)
        take_in(world, name)
        assert names(world.snapshot()) == ["bad", "x", "y", "z"]
        (tmp_path / "back").mkdir()
        root = copied(world, tmp_path / "back")
        reader = SpecReader(root)
        assert compare(reader.from_transactions(), Catalog(root).snapshot()) == 4
        with pytest.raises(AssertionError):
            reader.from_checkpoints(max(reader.checkpoints))


def _compare(world: World, folder: Path, rows: int) -> None:
    folder.mkdir()
    root = copied(world, folder)
    reader, snapshot = SpecReader(root), Catalog(root).snapshot()
    assert compare(reader.from_transactions(), snapshot) == rows
    assert compare(reader.from_checkpoints(max(reader.checkpoints)), snapshot) == rows
