"""Rows in any order are those in the order of keys, and conditions are met by the same rows wherever they are looked at."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, Writer
from bucketcatalog.state import plan

from ...kit.world import SECOND, World, obj

COLUMNS = ["name", "content_length", "_version"]
CONDITIONS: list[Any] = [None, {"content_length": [1, 2, 10]}, "content_length > 4 AND name > 'n05'"]


def meets(number: int, row: dict[str, Any]) -> bool:
    length = row["content_length"]
    return [True, length in (1, 2, 10), length is not None and length > 4 and row["name"] > "n05"][number]


def step(chance: random.Random, catalog: Catalog, writer: Writer) -> None:
    """Puts, blind deletes, and what names a version that lives or has ended."""
    live = chance.choice(["objects", "deleted_objects"])
    known = catalog.snapshot().scan(live, columns=["owner", "bucket_id", "name", "_version"]).to_arrow().to_pylist()
    some = chance.sample(known, min(len(known), 4))
    names = sorted({f"n{chance.randrange(40):02}" for _ in range(chance.choice([1, 4, 30]))})
    with writer.transaction() as tx:
        kind = chance.choice(["put", "put", "delete", "end", "update", "purge"])
        if kind == "put":
            tx.put("objects", [obj(name, content_length=chance.choice([None, *range(9)])) for name in names])
        elif kind == "delete":
            tx.delete("objects", [obj(name) for name in names])
        elif kind == "end" and some:
            tx.delete("objects", some)
        elif kind == "update" and some:
            tx.update("objects", [{**row, "content_length": 10} for row in some])
        elif kind == "purge" and some:
            tx.purge("objects", some)


def counted(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(map(str, row.values())) for row in rows)


@pytest.mark.parametrize("seed", range(12))
def test_the_order_and_the_place_of_conditions_change_no_row(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "SLICE_ROWS", 8)
    chance, world = random.Random(seed), World()
    late = world.catalog().writer("late", clock=lambda: world.clock() - 30 * SECOND)
    writers = [world.writer("a"), world.writer("b"), late]
    with world.writer("compactor-1") as compactor:
        world.commit(writers[0], ("put", "objects", [obj(f"n{number:02}", content_length=1) for number in range(0, 40, 3)]))
        for _ in range(8):
            world.clock.tick()
            step(chance, world.catalog(), chance.choice(writers))
            if chance.random() < 0.4:
                compactor.checkpoint(scope="all", full=chance.random() < 0.3)
            for table in ("objects", "deleted_objects"):
                whole = world.snapshot().scan(table, columns=COLUMNS).to_arrow().to_pylist()
                for number, where in enumerate(CONDITIONS):
                    scan = world.snapshot().scan(table, columns=COLUMNS, where=where)
                    expected = [row for row in whole if meets(number, row)]
                    assert scan.to_arrow().to_pylist() == expected
                    free = pa.Table.from_batches(scan.in_any_order().to_batches(), scan.schema)
                    assert counted(free.to_pylist()) == counted(expected)
                    assert scan.count() == len(expected)
