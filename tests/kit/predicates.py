"""Conditions at random as text and as expressions of pyarrow, on tables at random; what a text means is evaluated here row by row.

Nothing of that is shared with the engine: unknown is None, and AND, OR and NOT are written out.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .machine.declaring import KINDS, Column, Declared, single

Row = Mapping[str, Any]
Truth = bool | None
TEXTS = ("string", "json", "cut", "enum", "uuid")
UNORDERED = ("bool",)


@dataclass(frozen=True)
class Said:
    """A condition as text, and what it is of a row."""

    text: str
    of: Callable[[Row], Truth]


@dataclass(frozen=True)
class Value:
    """What can be compared: how it is written, of which kind it is, and what a row has of it."""

    text: str
    kind: str
    of: Callable[[Row], Any]


def said(table: Declared, random: Random, rows: Sequence[Row], depth: int = 2) -> Said:
    """A condition on some columns of a table, whose values are those of rows now and then."""
    word = random.choice(("AND", "OR", "NOT", "", "")) if depth else ""
    if not word:
        return _leaf(table, random, rows)
    parts = [said(table, random, rows, depth - 1) for _ in range(1 if word == "NOT" else random.choice((2, 2, 3)))]
    if word == "NOT":
        return Said(f"NOT ({parts[0].text})", lambda row: _not(parts[0].of(row)))
    join = _and if word == "AND" else _or
    return Said(f" {word} ".join(f"({part.text})" for part in parts), lambda row: join([part.of(row) for part in parts]))


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _and(truths: Sequence[Truth]) -> Truth:
    return False if False in truths else None if None in truths else True


def _or(truths: Sequence[Truth]) -> Truth:
    return True if True in truths else None if None in truths else False


def _leaf(table: Declared, random: Random, rows: Sequence[Row]) -> Said:
    value = _value(table, random)
    if value is None or random.random() < 0.15:
        column = random.choice(table.columns)
        is_null = random.random() < 0.5
        text = f"{column.name} IS {'' if is_null else 'NOT '}NULL"
        return Said(text, lambda row: (row[column.name] is None) == is_null)
    form = random.choice(("compare", "compare", "in", "between", "like", "pair"))
    if form == "like" and value.kind in TEXTS:
        return _like(value, random, rows)
    others = [each for each in (_value(table, random) for _ in range(4)) if each is not None and each.kind == value.kind]
    if form == "pair" and others:
        return _compare(value, others[0], random)
    if form == "in":
        return _among(value, random, rows)
    if form == "between" and value.kind not in UNORDERED:
        low, high = _literal(value, random, rows), _literal(value, random, rows)
        return Said(
            f"{value.text} BETWEEN {low.text} AND {high.text}",
            lambda row: _and([_compared(value.of(row), ">=", low.of(row)), _compared(value.of(row), "<=", high.of(row))]),
        )
    return _compare(value, _literal(value, random, rows), random)


def _compare(left: Value, right: Value, random: Random) -> Said:
    op = random.choice(("=", "!=", "<>") if left.kind in UNORDERED else ("=", "!=", "<", "<=", ">", ">="))
    if random.random() < 0.2:
        left, right = right, left
    return Said(f"{left.text} {op} {right.text}", lambda row: _compared(left.of(row), op, right.of(row)))


def _among(value: Value, random: Random, rows: Sequence[Row]) -> Said:
    literals = [_literal(value, random, rows) for _ in range(random.randint(1, 4))]
    is_negative = random.random() < 0.4

    def of(row: Row) -> Truth:
        found = _or([_compared(value.of(row), "=", each.of(row)) for each in literals])
        return _not(found) if is_negative else found

    return Said(f"{value.text} {'NOT ' if is_negative else ''}IN ({', '.join(each.text for each in literals)})", of)


def _like(value: Value, random: Random, rows: Sequence[Row]) -> Said:
    text = str(_seen(value, random, rows))[:5]
    pattern, regex = "", ""
    for character in text[: random.randint(0, 5)]:
        wild = random.choice(("", "", "", "%", "_"))
        pattern += wild or re.sub("([%_!])", r"!\1", character)
        regex += {"%": ".*", "_": "."}.get(wild, re.escape(character))
    if random.random() < 0.6:
        pattern, regex = f"{pattern}%", f"{regex}.*"
    is_negative = random.random() < 0.3

    def of(row: Row) -> Truth:
        found = value.of(row)
        return None if found is None else (re.fullmatch(regex, found, re.DOTALL) is not None) != is_negative

    return Said(f"{value.text} {'NOT ' if is_negative else ''}LIKE {written(pattern)} ESCAPE '!'", of)


def _value(table: Declared, random: Random) -> Value | None:
    """A column, or what lies in one, that can be compared; None where one was drawn that cannot."""
    column = random.choice(table.columns)
    if column.is_single:
        return Value(column.name, column.kind, lambda row: row[column.name])
    if column.form == "map" and column.map_key != "bool" and column.kind != "message":
        key = random.choice(KINDS[column.map_key].values)
        return Value(f"{column.name}[{written(key)}]", column.kind, lambda row: dict(row[column.name] or ()).get(key))
    children = [child for child in column.children if child.is_single] if column.form in ("plain", "optional") else []
    if not children:
        return None
    child = random.choice(children)
    return Value(f"{column.name}.{child.name}", child.kind, lambda row: (row[column.name] or {}).get(child.name))


def _seen(value: Value, random: Random, rows: Sequence[Row]) -> Any:
    seen = [found for row in rows if (found := value.of(row)) is not None]
    drawn = random.choice(KINDS[value.kind].values)
    return random.choice(seen) if seen and random.random() < 0.7 else str(drawn) if value.kind == "enum" else drawn


def _literal(value: Value, random: Random, rows: Sequence[Row]) -> Value:
    found = None if random.random() < 0.05 else _seen(value, random, rows)
    if isinstance(found, int) and not isinstance(found, bool) and random.random() < 0.1:
        found = random.choice((found + 0.5 if abs(found) < 1 << 50 else found, 1 << 70, -(1 << 70)))
    meant = single(found) if value.kind == "float" and found is not None else found
    return Value(written(found), value.kind, lambda row: meant)


def written(value: Any) -> str:
    """A value as text says it."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime.datetime):
        return f"'{value.isoformat()}'"
    if isinstance(value, float) and not math.isfinite(value):
        return f"'{value}'"
    return repr(value) if isinstance(value, int | float) else "'" + value.replace("'", "''") + "'"


def _compared(left: Any, op: str, right: Any) -> Truth:
    if left is None or right is None:
        return None
    one, other = (
        (math.isnan(each), 0 if math.isnan(each) else each) if isinstance(each, float) else (False, each)
        for each in (left, right)
    )
    return bool(
        {"=": one == other, "!=": one != other, "<>": one != other}[op] if op in ("=", "!=", "<>") else _ordered(one, op, other)
    )


def _ordered(one: Any, op: str, other: Any) -> bool:
    return bool({"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[op])


def expressed(table: Declared, random: Random, rows: pa.Table, depth: int = 2) -> Any:
    """An expression on some columns of a table, whose values are those of rows now and then."""
    word = random.choice(("and", "or", "not", "", "")) if depth else ""
    if word == "not":
        return ~expressed(table, random, rows, depth - 1)
    if word:
        left, right = (expressed(table, random, rows, depth - 1) for _ in range(2))
        return left & right if word == "and" else left | right
    column = random.choice(table.columns)
    field, kind = pc.field(column.name), rows.schema.field(column.name).type
    if not column.is_single or random.random() < 0.15:
        return random.choice((field.is_null(), field.is_valid(), ~field.is_null()))
    value = _scalar(column, kind, random, rows)
    form = random.choice(("compare", "compare", "in", "text"))
    if form == "in":
        return field.isin(pa.array([_scalar(column, kind, random, rows).as_py() for _ in range(3)], kind))
    if form == "text" and pa.types.is_string(kind):
        start = (value.as_py() or "a")[:2]
        return random.choice((pc.starts_with(field, start), pc.match_like(field, f"{start[:1]}%"), pc.ends_with(field, start)))
    if column.kind == "bool":
        return random.choice((field, field == value, field != value))
    return random.choice(
        (field == value, field != value, field < value, field <= value, field > value, field >= value, value < field)
    )


def _scalar(column: Column, kind: pa.DataType, random: Random, rows: pa.Table) -> pa.Scalar:
    seen = [value for value in rows[column.name].to_pylist() if value is not None]
    drawn = random.choice(KINDS[column.kind].values)
    value = random.choice(seen) if seen and random.random() < 0.7 else str(drawn) if column.kind == "enum" else drawn
    if kind == pa.float32() and random.random() < 0.5:
        return pa.scalar(value + 0.1, pa.float64())
    if pa.types.is_integer(kind) and abs(value) < 1 << 31 and random.random() < 0.3:
        return pa.scalar(value, pa.int64())
    return pa.scalar(value, kind)
