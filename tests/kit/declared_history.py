"""A short history of a table that a seed has declared: rows of it put, updated, deleted, and put too late, over some checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.format import segments as format_segments
from bucketcatalog.log import segments
from bucketcatalog.query.snapshot import Snapshot

from .machine.declaring import NAME, Declared
from .world import SECOND, World


@contextmanager
def in_small_blocks() -> Iterator[None]:
    """Row groups of three rows, and none within checkpoints, where they would have no statistics."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (format_segments, segments):
            patch.setattr(module, "ROW_GROUP_ROWS", 3)
        patch.setattr("bucketcatalog.checkpoint.plan.INLINE_BYTES", 0)
        yield


def history(table: Declared, random: Random) -> World:
    """A catalog of the table with some levels and often a tail, in which rows were put, updated, deleted, and put too late."""
    world = World()
    catalog = Catalog(world.store)
    catalog.register(table.descriptors)
    keys = table.keys(random, 24)
    serials = iter(range(1_000_000))
    with world.writer(catalog=catalog) as writer, world.writer("late", catalog=catalog) as late:
        world.commit(writer, ("put", NAME, [table.row(random, key, next(serials)) for key in keys]))
        writer.checkpoint()
        for _ in range(random.randint(2, 4)):
            live = live_keys(world.snapshot(), table)
            do = random.choice(("put", "update", "update", "delete"))
            chosen = [key for key in keys if random.random() < 0.3 and (do != "update" or table.order(key) in live)]
            rows = chosen if do == "delete" else [table.row(random, key, next(serials)) for key in chosen]
            if rows:
                world.commit(writer, (do, NAME, rows))
            if random.random() < 0.3:
                world.clock.now, now = world.clock.now - 3 * SECOND, world.clock.now
                world.commit(late, ("put", NAME, table.row(random, random.choice(keys), next(serials))))
                world.clock.now = now
            if random.random() < 0.4:
                writer.checkpoint()
    return world


def live_keys(snapshot: Snapshot, table: Declared) -> set[Any]:
    columns = [column.name for column in table.key]
    return {table.order(row) for row in snapshot.scan(NAME, columns=columns).to_arrow().to_pylist()}
