"""Questions that can be put to Spark, as a DataFrame or as SQL, and to plain Python lists, which know the answer without the engine.

A question is a tree. Its leaves are sources: something that Spark can read, and the rows that it must show. Every node says itself in
three ways: as a frame, as SQL text, and as the rows that Spark has to give. Null is as in SQL: a comparison with it is neither true nor
false, and set operations take two nulls for the same.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr

Value = str | int | bool | None
Row = Mapping[str, Value]
Answer = Counter[tuple[Value, ...]]
"""Rows and how often each is there; their order means nothing."""

TIMES = frozenset({"deleted_at"})
"""Columns of microseconds here, of times in Spark."""
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Source:
    """Something with a name in SQL: what it must show is asked anew for each question. ``frame`` is the one that somebody holds."""

    name: str
    columns: tuple[str, ...]
    rows: Callable[[], Sequence[Row]]
    frame: DataFrame | None = None

    def forget(self, spark: SparkSession) -> None:
        """Drop it, whatever it is."""
        if self.frame is not None:
            self.frame.unpersist()
        kind = "VIEW" if spark.catalog.getTable(self.name).isTemporary else "TABLE"
        spark.sql(f"DROP {kind} {self.name}")


@dataclass(frozen=True)
class Condition:
    """A condition as SQL, and what it makes of a row: True, False, or None where that is unknown."""

    sql: str
    of: Callable[[Row], bool | None]


class Question(ABC):
    """A node of the tree; ``columns`` are those of its rows."""

    columns: tuple[str, ...]

    @abstractmethod
    def frame(self, spark: SparkSession) -> DataFrame:
        """What to collect."""

    @abstractmethod
    def sql(self) -> str:
        """The same as text."""

    @abstractmethod
    def rows(self) -> list[tuple[Value, ...]]:
        """What Spark must answer."""


@dataclass(frozen=True)
class Read(Question):
    """Some columns of a source."""

    source: Source
    columns: tuple[str, ...]

    def frame(self, spark: SparkSession) -> DataFrame:
        held = self.source.frame if self.source.frame is not None else spark.table(self.source.name)
        return held.select(*self.columns)

    def sql(self) -> str:
        return f"SELECT {', '.join(self.columns)} FROM {self.source.name}"

    def rows(self) -> list[tuple[Value, ...]]:
        return [tuple(row[name] for name in self.columns) for row in self.source.rows()]


@dataclass(frozen=True)
class Where(Question):
    """The rows that a condition holds for."""

    of: Question
    condition: Condition

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.of.columns

    def frame(self, spark: SparkSession) -> DataFrame:
        return self.of.frame(spark).where(self.condition.sql)

    def sql(self) -> str:
        return f"SELECT * FROM ({self.of.sql()}) WHERE {self.condition.sql}"

    def rows(self) -> list[tuple[Value, ...]]:
        return [row for row in self.of.rows() if self.condition.of(dict(zip(self.columns, row, strict=True))) is True]


@dataclass(frozen=True)
class Both(Question):
    """Two questions with the same columns, taken together as bags or as sets."""

    way: str
    left: Question
    right: Question

    WAYS = ("UNION ALL", "EXCEPT ALL", "INTERSECT ALL", "UNION", "EXCEPT", "INTERSECT")

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.left.columns

    def frame(self, spark: SparkSession) -> DataFrame:
        left, right = self.left.frame(spark), self.right.frame(spark)
        if self.way == "UNION":
            return left.union(right).distinct()
        names = ("union", "exceptAll", "intersectAll", "", "subtract", "intersect")
        combined: DataFrame = getattr(left, names[self.WAYS.index(self.way)])(right)
        return combined

    def sql(self) -> str:
        return f"({self.left.sql()}) {self.way} ({self.right.sql()})"

    def rows(self) -> list[tuple[Value, ...]]:
        left, right = Counter(self.left.rows()), Counter(self.right.rows())
        kind, _, every = self.way.partition(" ")
        if not every:
            left, right = Counter(set(left)), Counter(set(right))
        both = {"UNION": left | right if not every else left + right, "EXCEPT": left - right, "INTERSECT": left & right}[kind]
        return list(both.elements())


@dataclass(frozen=True)
class Joined(Question):
    """``left`` with the rows of ``right`` of the same name: all pairs, those that have one, or those that have none."""

    way: str
    left: Question
    right: Question

    WAYS = ("INNER", "LEFT SEMI", "LEFT ANTI", "CROSS")

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.left.columns

    def frame(self, spark: SparkSession) -> DataFrame:
        left, right = self.left.frame(spark).alias("l"), self.right.frame(spark).alias("r")
        if self.way == "CROSS":
            return left.crossJoin(right).select("l.*")
        return left.join(right, col("l.name") == col("r.name"), self.way.replace(" ", "_").lower()).select("l.*")

    def sql(self) -> str:
        on = "" if self.way == "CROSS" else " ON l.name = r.name"
        return f"SELECT l.* FROM ({self.left.sql()}) l {self.way} JOIN ({self.right.sql()}) r{on}"

    def rows(self) -> list[tuple[Value, ...]]:
        at = self.columns.index("name")
        names = Counter(row[at] for row in self.right.rows())
        times = {
            "INNER": lambda name: names[name],
            "LEFT SEMI": lambda name: int(names[name] > 0),
            "LEFT ANTI": lambda name: int(names[name] == 0),
            "CROSS": lambda name: names.total(),
        }[self.way]
        return [row for row in self.left.rows() for _ in range(times(row[at]))]


@dataclass(frozen=True)
class Counted(Question):
    """How many rows, how many of them have a length and the sum of these: of all, or by the values of a column."""

    of: Question
    by: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*((self.by,) if self.by else ()), "rows", "lengths", "total")

    def frame(self, spark: SparkSession) -> DataFrame:
        found = self.of.frame(spark)
        wanted = [expr("count(*)"), expr("count(content_length)"), expr("sum(content_length)")]
        return found.groupBy(self.by).agg(*wanted) if self.by else found.agg(*wanted)

    def sql(self) -> str:
        first, last = (f"{self.by}, ", f" GROUP BY {self.by}") if self.by else ("", "")
        return f"SELECT {first}count(*), count(content_length), sum(content_length) FROM ({self.of.sql()}){last}"

    def rows(self) -> list[tuple[Value, ...]]:
        at = self.of.columns.index("content_length")
        groups: dict[tuple[Value, ...], list[tuple[Value, ...]]] = {} if self.by else {(): []}
        for row in self.of.rows():
            groups.setdefault((row[self.of.columns.index(self.by)],) if self.by else (), []).append(row)
        found = []
        for group, rows in groups.items():
            lengths = [int(row[at]) for row in rows if row[at] is not None]  # type: ignore[arg-type]
            found.append((*group, len(rows), len(lengths), sum(lengths) if lengths else None))
        return found


def answer(spark: SparkSession, question: Question, *, sql: bool) -> Answer:
    """What Spark says."""
    asked = spark.sql(question.sql()) if sql else question.frame(spark)
    times = [f"unix_micros({name})" if name in TIMES else f"`{name}`" for name in asked.columns]
    return Counter(tuple(row) for row in asked.selectExpr(*times).collect())


class Asker:
    """Thinks of questions; ``values`` are what it compares each column with."""

    def __init__(self, rng: Random, values: Mapping[str, Sequence[Any]]) -> None:
        self._rng = rng
        self._values = values

    def question(self, sources: Sequence[Source]) -> Question:
        """Any question: of one source, of two, or twice of the same."""
        rng = self._rng
        first = rng.choice(sources)
        second = first if rng.random() < 0.5 else rng.choice(sources)
        both = [name for name in first.columns if name in second.columns]
        columns = tuple(name for name in both if name in ("name", "content_length") or rng.random() < 0.5)
        question = self._part(first, columns)
        if rng.random() < 0.6:
            other = self._part(second, columns)
            way = rng.choice((*Both.WAYS, *Joined.WAYS))
            question = Both(way, question, other) if way in Both.WAYS else Joined(way, question, other)
        if rng.random() < 0.2:
            question = Where(question, self.condition(columns))
        return Counted(question, rng.choice([None, *columns])) if rng.random() < 0.5 else question

    def _part(self, source: Source, columns: tuple[str, ...]) -> Question:
        read = Read(source, columns)
        return Where(read, self.condition(columns)) if self._rng.random() < 0.8 else read

    def condition(self, columns: Sequence[str], depth: int = 2) -> Condition:
        """Any condition on these columns."""
        way = self._rng.random() if depth else 1.0
        if way < 0.15:
            of = self.condition(columns, depth - 1)
            return Condition(f"NOT ({of.sql})", lambda row: _not(of.of(row)))
        if way < 0.5:
            one, other = (self.condition(columns, depth - 1) for _ in range(2))
            both, word = (_and, "AND") if way < 0.4 else (_or, "OR")
            return Condition(f"({one.sql}) {word} ({other.sql})", lambda row: both(one.of(row), other.of(row)))
        return self._simple(self._rng.choice(columns))

    def _simple(self, column: str) -> Condition:
        rng = self._rng
        values = [rng.choice(self._values[column]) for _ in range(3)]
        literals = [_literal(column, value) for value in values]
        low, high = values[:2]
        way = rng.choice(["compare", "compare", "compare", "in", "between", "null", "same", "prefix"])
        if way == "null":
            wanted = rng.random() < 0.5
            return Condition(f"{column} IS {'' if wanted else 'NOT '}NULL", lambda row: (row[column] is None) == wanted)
        if way == "same":
            value = rng.choice([None, low])
            return Condition(f"{column} <=> {_literal(column, value)}", lambda row: row[column] == value)
        if way == "in":
            return Condition(f"{column} IN ({', '.join(literals)})", lambda row: _known(row[column], lambda it: it in values))
        if way == "prefix" and isinstance(low, str):
            start = low[: rng.randint(1, 2)]
            return Condition(f"{column} LIKE '{start}%'", lambda row: _known(row[column], lambda it: it.startswith(start)))
        if way == "between" and not isinstance(low, bool):
            sql = f"{column} BETWEEN {literals[0]} AND {literals[1]}"
            return Condition(sql, lambda row: _known(row[column], lambda it: low <= it <= high))
        sign = rng.choice(list(_COMPARISONS))
        sql = f"{column} {sign} {literals[0]}"
        return Condition(sql, lambda row: _known(row[column], lambda it: _COMPARISONS[sign](it, low)))


def _literal(column: str, value: Any) -> str:
    if value is None:
        return "NULL"
    if column in TIMES:
        return f"timestamp_micros({value})"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _known(value: Any, of: Callable[[Any], bool]) -> bool | None:
    return None if value is None else of(value)


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _and(one: bool | None, other: bool | None) -> bool | None:
    return False if one is False or other is False else None if one is None or other is None else True


def _or(one: bool | None, other: bool | None) -> bool | None:
    return _not(_and(_not(one), _not(other)))
