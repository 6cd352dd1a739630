"""The torture test of data tables: writers, late compactions, removals and deletions in any order, with Parquet files on disk.

The model is a list of rows, each with the file in which it was added. What a compaction does is no part of it: it may be planned long
before it ends. Where a history fails, the shortest that does is printed as its steps.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog.store.local import LocalStore
from bucketcatalog.systems.iox import files
from bucketcatalog.systems.iox.files import FILES

from ..kit.chance import searching
from ..kit.data_tables import TABLE, Lake, Planned

Row = dict[str, Any]
Step = tuple[Any, ...]
COLUMNS = ("i", "k", "v", "x")
SCHEMAS = [
    pa.schema([("i", pa.int64()), ("k", pa.string()), ("v", pa.int16())]),
    pa.schema([("x", pa.string()), ("i", pa.int64()), ("k", pa.string()), ("v", pa.int32())]),
    pa.schema([("i", pa.int64()), ("k", pa.string()), ("v", pa.float64()), ("x", pa.string())]),
]
PARTITIONS = ("p", "q/..")
TARGETS = (1, 2_000, 5_000, 1 << 20)
WRITERS, COMPACTORS = 3, 4
MEETS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": lambda value, given: value == given,
    "!=": lambda value, given: value != given,
    "<": lambda value, given: value < given,
    "<=": lambda value, given: value <= given,
    ">": lambda value, given: value > given,
    ">=": lambda value, given: value >= given,
    "in": lambda value, given: value in given,
    "not in": lambda value, given: value not in given,
    "starts with": lambda value, given: value.startswith(given),
}

numbers = st.integers(0, 4)
fractions = numbers | st.sampled_from([0.5, 1.5, 2.5])
texts = st.sampled_from(["", "a", "ab", "b"])


def conditions(columns: str) -> st.SearchStrategy[tuple[str, str, Any]]:
    """Conditions on some of the columns."""
    ordered = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    of_column = {
        "v": st.tuples(st.just("v"), ordered, numbers)
        | st.tuples(st.just("v"), st.sampled_from(["in", "not in"]), st.lists(numbers, min_size=1, max_size=2))
        | st.tuples(st.just("v"), st.sampled_from(["is null", "is not null"]), st.none()),
        "x": st.tuples(st.just("x"), ordered | st.just("starts with"), texts)
        | st.tuples(st.just("x"), st.sampled_from(["is null", "is not null"]), st.none()),
        "k": st.tuples(st.just("k"), ordered | st.just("starts with"), texts),
    }
    return st.one_of([of_column[column] for column in columns])


def steps(deletable: str) -> st.SearchStrategy[Step]:
    """Anything that somebody may do; which of several is meant by a number, of as many as there are then."""
    row = st.tuples(texts, st.none() | fractions, st.none() | texts)
    which = st.integers(0, 11)
    append = st.tuples(st.just("append"), which, which, which, st.integers(0, 3), st.lists(row, min_size=1, max_size=4))
    return st.one_of(
        *[append] * 3,
        st.tuples(st.just("remove"), which, which),
        st.tuples(st.just("empty"), which, which),
        st.tuples(st.just("delete"), which, st.lists(conditions(deletable), min_size=1, max_size=2)),
        st.tuples(st.just("delete"), which, st.lists(conditions(deletable), min_size=1, max_size=2)),
        *[st.tuples(st.just("compact"), which, which)] * 7,
        st.tuples(st.just("checkpoint")),
        st.tuples(st.just("forget")),
        st.tuples(st.just("look back"), which),
    )


class Torture:
    """A history, taken in a store and in the model."""

    def __init__(self, folder: str, *, keyed: bool) -> None:
        self.lake = Lake(LocalStore(folder))
        self.keyed = keyed
        self.rows: list[Row] = []
        self.number = 0
        self.plans: dict[int, tuple[Planned, set[str]]] = {}
        self.past: list[tuple[str, list[Row]]] = []

    def take(self, step: Step) -> None:
        name, *arguments = step
        getattr(self, name.replace(" ", "_"))(*arguments)
        if name in ("look back", "forget", "checkpoint") or not self.number:
            return
        assert self.seen() == self.counting(), step
        self.past.append((self.lake.look().version, self.counting()))

    def counting(self) -> list[Row]:
        """The rows of the model: all, or where they have a key the newest of each in a partition."""
        found: Iterator[Row] | list[Row] = self.rows
        if self.keyed:
            by_age = sorted(self.rows, key=lambda row: (row["clock"], row["i"]))
            newest = {(row["partition"], row["k"]): row for row in by_age}
            found = list(newest.values())
        return sorted(({name: row[name] for name in COLUMNS} for row in found), key=lambda row: row["i"])

    def seen(self, **options: Any) -> list[Row]:
        """The rows of the engine."""
        if not self.number:
            return []
        found = [{name: row.get(name) for name in COLUMNS} for row in self.lake.rows(**options)]
        return sorted(found, key=lambda row: row["i"])

    def append(self, writer: int, schema: int, partition: int, clock: int, given: list[tuple[str, Any, Any]]) -> None:
        """One file of these rows; numbers with a fraction only where its column can have them."""
        shape, place = SCHEMAS[schema % len(SCHEMAS)], PARTITIONS[partition % len(PARTITIONS)]
        rows: list[Row] = []
        for key, value, text in given:
            self.number += 1
            is_number = value is not None and not pa.types.is_floating(shape.field("v").type)
            row = {"i": self.number, "k": key, "v": int(value) if is_number else value, "x": text}
            rows.append({name: row[name] if name in shape.names else None for name in COLUMNS})
        options: dict[str, Any] = {"key": ["k"], "clock": clock} if self.keyed else {}
        filtered = [field.name for field in shape if not pa.types.is_floating(field.type)]
        options["bloom_filters"] = filtered if writer % 2 else None
        table = pa.Table.from_pylist([{name: row[name] for name in shape.names} for row in rows], shape)
        chunk = self.lake.append_table(table, by=f"w{writer % WRITERS}", partition=place, **options)
        self.rows += [{**row, "chunk": chunk, "partition": place, "clock": clock} for row in rows]

    def remove(self, writer: int, which: int) -> None:
        """A file goes, with the rows that it says it has, wherever else they are.

        Not where there is a key: what its rows have replaced in a compaction under way would not come back.
        """
        there = sorted(self.lake.files(), key=lambda row: row["chunk"])
        if there and not self.keyed:
            file = there[which % len(there)]
            self.lake.table(f"w{writer % WRITERS}").remove([file["chunk"]])
            self.forget_rows(lambda row: row["chunk"] in {file["chunk"], *(file["origins"] or ())})

    def empty(self, writer: int, partition: int) -> None:
        """All files of a partition go."""
        place = PARTITIONS[partition % len(PARTITIONS)]
        if self.number:
            self.lake.table(f"w{writer % WRITERS}").remove(partition=place)
            self.forget_rows(lambda row: row["partition"] == place)

    def delete(self, writer: int, where: list[tuple[str, str, Any]]) -> None:
        """Rows go that meet the conditions, of all that there are."""
        has = self.lake.live().merged("cast").schema.names if self.number else []
        if all(column in has for column, _, _ in where):
            self.lake.table(f"w{writer % WRITERS}").delete_where(where)
            self.forget_rows(lambda row: all(is_met(row, each) for each in where))

    def compact(self, which: int, target: int) -> None:
        """Plan a compaction, or end the one that this compactor has planned."""
        name = which % COMPACTORS
        if name in self.plans:
            plan, _ = self.plans.pop(name)
            plan.finish()
        elif self.number:
            ended = {row["chunk"] for row in self.ended()}
            options = {"target_bytes": TARGETS[target % len(TARGETS)], "least": 1 + target // 4}
            self.plans[name] = self.lake.plan(f"c{name}", **options), ended

    def checkpoint(self) -> None:
        """A checkpoint of every writer."""
        with self.lake.catalog().writer("compactor-checkpoints") as writer:
            writer.checkpoint(scope="all")

    def forget(self) -> None:
        """Tombstones go that are older than every compaction which has not ended."""
        before = [ended for _, ended in self.plans.values()]
        old = [row for row in self.ended() if all(row["chunk"] in ended for ended in before)]
        if old:
            with self.lake.catalog().writer("maintainer-1") as writer, writer.transaction() as tx:
                tx.purge(FILES, old)

    def look_back(self, which: int) -> None:
        """What there was is there as it was."""
        if self.past:
            version, rows = self.past[which % len(self.past)]
            assert self.seen(version=version) == rows

    def ended(self) -> list[Row]:
        now = self.lake.look()
        if FILES not in now.definitions:
            return []
        columns = ["table", "partition", "chunk", "_version"]
        found: list[Row] = now.scan(f"deleted_{FILES}", columns=columns, where={"table": TABLE}).to_arrow().to_pylist()
        return found

    def forget_rows(self, gone: Callable[[Row], bool]) -> None:
        self.rows = [row for row in self.rows if not gone(row)]

    def end(self) -> None:
        """Every compaction ends, then one more; nothing is left to do, and every file has rows that count."""
        for name in [*self.plans]:
            self.take(("compact", name, 0))
        if self.number:
            self.lake.compact()
            assert self.seen() == self.counting()
            assert self.lake.compact().version is None
            assert len(self.lake.live().left) == len(self.lake.files())


def is_met(row: Row, condition: tuple[str, str, Any]) -> bool:
    column, comparison, given = condition
    value = row[column]
    if comparison == "is null":
        return value is None
    return value is not None and (comparison == "is not null" or MEETS[comparison](value, given))


def torture(history: list[Step], *, keyed: bool) -> tuple[list[Row], list[Row]]:
    """The rows that are read at the end of a history, and those of the model; they are compared after each step too."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Torture(folder, keyed=keyed)
        for step in history:
            machine.take(step)
        machine.end()
        return machine.seen(), machine.counting()


@pytest.mark.parametrize("share", range(2))
def test_rows_count_as_the_model_says_whatever_races(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In every other share row groups are of two rows."""
    if share % 2:
        monkeypatch.setattr(files, "ROW_GROUP_ROWS", 2)

    @searching("data tables", share)
    @given(st.lists(steps("vx"), min_size=16, max_size=32))
    def search(history: list[Step]) -> None:
        seen, counting = torture(history, keyed=False)
        assert seen == counting

    search()


@searching("data tables with keys")
@given(st.lists(steps("k"), min_size=16, max_size=32))
def test_the_newest_rows_of_their_keys_count_whatever_races(history: list[Step]) -> None:
    seen, counting = torture(history, keyed=True)
    assert seen == counting
