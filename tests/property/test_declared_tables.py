"""Tables at random with rows of extreme values: every row bit for bit, every condition and every sum as plain Python has them.

A failure shows the seed of its table. Rows are compared before and after checkpoints.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog import Catalog, between
from bucketcatalog.query.snapshot import Snapshot

from ..kit.chance import SEARCHES, searching
from ..kit.machine.conditions import INCLUSIVE, allows, condition
from ..kit.machine.declaring import NAME, Declared, bits, declared
from ..kit.world import World, time_at

Row = dict[str, Any]


@dataclass
class Version:
    """A version: its row as given, when that was put, and when an event last wrote it."""

    row: Row
    created: datetime.datetime
    modified: datetime.datetime


@dataclass
class Model:
    """The live rows of a table by the order of their keys, and its tombstones, as plainly as they can be said."""

    table: Declared
    live: dict[tuple[Any, ...], Version] = field(default_factory=dict)
    ended: list[tuple[Version, datetime.datetime]] = field(default_factory=list)

    def put(self, rows: Iterable[Row], now: datetime.datetime) -> None:
        for row in rows:
            self.delete([row], now)
            self.live[self.table.order(row)] = Version(row, now, now)

    def update(self, rows: Iterable[Row], now: datetime.datetime) -> None:
        for row in rows:
            version = self.live[self.table.order(row)]
            fixed = {column.name: version.row[column.name] for column in self.table.fixed if column.name in version.row}
            free = {name: value for name, value in row.items() if name not in {column.name for column in self.table.fixed}}
            version.row, version.modified = {**free, **fixed}, now

    def delete(self, keys: Iterable[Row], now: datetime.datetime) -> None:
        for key in keys:
            version = self.live.pop(self.table.order(key), None)
            if version is not None:
                self.ended.append((version, now))

    def rows(self) -> list[Row]:
        """The live rows as they are shown, in the order of their keys."""
        return [self._shown(version) for _, version in sorted(self.live.items(), key=lambda item: item[0])]

    def tombstones(self) -> list[Row]:
        """The tombstones as they are shown, by key and end."""
        ended = sorted(self.ended, key=lambda one: (self.table.order(one[0].row), one[1]))
        return [{**self._shown(version), "deleted_at": end} for version, end in ended]

    def _shown(self, version: Version) -> Row:
        return self.table.shown(version.row, version.created, version.modified)

    def sums(self) -> dict[Any, int]:
        """The sums that the live rows make, by name and group."""
        found: dict[Any, int] = defaultdict(int)
        rows = self.rows()
        for total in self.table.sums:
            for row in rows:
                group = tuple(as_text(row[column.name]) for column in total.group)
                found[(total.name, group)] += 1 if total.column is None else row[total.column.name] or 0
        return found


def as_text(value: Any) -> str | None:
    """A value as the group of a sum shows it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ", "microseconds").replace("+00:00", "Z")
    return None if value is None else str(value)


def compare(model: Model, snapshot: Snapshot, random: Random) -> None:
    """Everything that a snapshot answers is what the model says."""
    rows, tombstones = model.rows(), model.tombstones()
    same(found(snapshot, NAME), rows)
    for name, expected in ((NAME, rows), (f"deleted_{NAME}", tombstones))[: 1 + model.table.keeps_tombstones]:
        if name != NAME:
            same(found(snapshot, name), expected)
        for _ in range(6):
            where = conditions(model.table, random, expected)
            columns = random.sample([column.name for column in model.table.columns], min(3, len(model.table.columns)))
            kept = [row for row in expected if all(allows(asked, row[column]) for column, asked in where.items())]
            same(found(snapshot, name, columns, where), [{column: row[column] for column in columns} for row in kept], where)
    for row in random.sample(rows, min(3, len(rows))):
        same([snapshot.get(NAME, **{column.name: row[column.name] for column in model.table.key})], [row])
    sums = snapshot.scan("sums").to_arrow().to_pylist()
    assert {(one["name"], tuple(text for _, text in one["group"])): int(one["value"]) for one in sums} == model.sums()
    assert len(sums) == len(model.sums())


def conditions(table: Declared, random: Random, rows: Sequence[Row]) -> dict[str, Any]:
    """Conditions on some columns, those of the key more often."""
    chosen = random.sample(table.columns, random.choice((1, 1, 2)))
    chosen += [column for column in table.key if random.random() < 0.4 and column not in chosen]
    where = {column.name: condition(column, random, [row[column.name] for row in rows]) for column in chosen}
    ends = [row["deleted_at"] for row in rows if "deleted_at" in row]
    if ends and random.random() < 0.5:
        low, high = (random.choice([None, *ends]) for _ in range(2))
        where["deleted_at"] = random.choice([low, [low, high], between(low, high, inclusive=random.choice(INCLUSIVE))])
    return where


def found(snapshot: Snapshot, name: str, columns: list[str] | None = None, where: Mapping[str, Any] | None = None) -> list[Row]:
    rows = snapshot.scan(name, columns=columns, where=where).to_arrow().to_pylist()
    return list(rows)


def same(rows: Sequence[Any], expected: Sequence[Row], where: Any = None) -> None:
    assert [bits(row) for row in rows] == [bits(row) for row in expected], where


def given_as(rows: list[Row], random: Random, schema: pa.Schema) -> Any:
    """The rows as they are or as Arrow data, of which a part lies before or behind the rows; unnamed symbols have no Arrow form."""
    if random.random() < 0.5:
        return rows
    try:
        whole = pa.Table.from_pylist([*rows[:1], *rows, *rows[:1]], schema)
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return rows
    return whole.slice(1, len(rows))


@pytest.mark.parametrize("share", range(SEARCHES["tables"].shares))
def test_rows_conditions_and_sums_of_any_table_are_what_plain_python_says(share: int) -> None:
    @searching("tables", share)
    @given(seed=st.integers(0, (1 << 32) - 1))
    def search(seed: int) -> None:
        live(seed)

    search()


def live(seed: int) -> None:
    """A few transactions of one table, compared after each."""
    table, random = declared(seed), Random(seed)
    world, model = World(), Model(table)
    catalog = Catalog(world.store)
    catalog.register(table.descriptors)
    keys = table.keys(random, random.choice((3, 8, 8, 90)))
    serials = iter(range(1_000_000))
    with world.writer(catalog=catalog) as writer:
        schema = None
        for _ in range(random.randint(2, 4)):
            chosen = random.sample(keys, random.randint(1, len(keys)))
            known = [key for key in chosen if table.order(key) in model.live]
            do = random.choice(("put", "put", "update", "delete")) if known else "put"
            rows = [table.row(random, key, next(serials)) for key in (known if do == "update" else chosen)]
            rows = chosen if do == "delete" else rows
            given = rows if schema is None or do == "delete" else given_as(rows, random, schema)
            world.commit(writer, (do, NAME, given))
            getattr(model, do)(rows, time_at(world.clock.now))
            schema = world.snapshot().table(NAME).surface_schema
            compare(model, world.snapshot(), random)
            if random.random() < 0.6:
                writer.checkpoint()
                compare(model, world.snapshot(), random)
    assert [finding for finding in world.catalog().verify(deep=True) if finding.severity.value == "error"] == []
