"""Expressions of pyarrow as conditions: evaluated by Arrow alone, and read only as far as it takes to read less.

What an expression says Arrow does not tell, but writes down where it is pickled: a tree in the metadata of an Arrow file, whose values are
its columns. That form is Arrow's own. Whatever is not recognised in it, some day perhaps all of it, narrows nothing and stays right, for
the rows are tested by the expression itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from .implied import Implied, implied_by, of_every, of_some
from .phrases import FLIPPED, OPPOSITE
from .truth import Among, Compared, Matches, Missing, Some, Term, Test, sort_of

_OPS = {"equal": "=", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_IS_OR = {"and_kleene": False, "and": False, "or_kleene": True, "or": True}
_METADATA = "-- schema metadata --\n"
_NOTHING = Implied()
"""What is demanded by what is not recognised."""


class Node(NamedTuple):
    """A part of an expression: a ``field``, a ``literal``, or a call of the function that it is called by."""

    kind: str
    value: Any = None
    arguments: tuple[Node, ...] = ()
    options: Any = None

    def option(self, name: str) -> Any:
        """An option of the call as Python has it; None without it."""
        return None if self.options is None or name not in self.options else self.options[name].as_py()


def read_expression(expression: Any) -> Node | None:
    """What an expression says; None where that is not understood."""
    try:
        _, (buffer,) = expression.__reduce__()
        batch = pa.ipc.open_file(buffer).get_batch(0)
        said = _said(batch.schema)
        return None if said is None else _node(iter(said), batch)
    except (pa.ArrowException, ValueError, TypeError, KeyError, IndexError, StopIteration, AttributeError):
        return None


def _said(schema: pa.Schema) -> list[tuple[str, str]] | None:
    """All pairs of the metadata in their order, of which Arrow's mapping has the first of each key alone."""
    text = schema.to_string(show_schema_metadata=True, show_field_metadata=False, truncate_metadata=False)
    _, found, told = text.partition(_METADATA)
    pairs = [(key, value[1:-1]) for key, _, value in (line.partition(": ") for line in told.split("\n"))]
    again = schema.with_metadata(pa.KeyValueMetadata(pairs))
    return pairs if found and again.equals(schema, check_metadata=True) else None


def _node(said: Iterator[tuple[str, str]], batch: pa.RecordBatch) -> Node:
    return _rest_of(*next(said), said, batch)


def _rest_of(key: str, value: str, said: Iterator[tuple[str, str]], batch: pa.RecordBatch) -> Node:
    if key == "field_ref":
        return Node("field", value)
    if key == "nested_field_ref":
        names = [next(said) for _ in range(int(value))]
        if any(kind != "field_ref" for kind, _ in names):
            raise ValueError("no names")
        return Node("nested field", names[0][1])
    if key == "literal":
        return Node("literal", batch.column(int(value))[0])
    if key != "call":
        raise ValueError(key)
    arguments: list[Node] = []
    options = None
    for kind, said_of_it in said:
        if kind == "end":
            return Node(value, None, tuple(arguments), options)
        if kind == "options":
            options = batch.column(int(said_of_it))[0]
        else:
            arguments.append(_rest_of(kind, said_of_it, said, batch))
    raise ValueError("no end")


def columns_of(node: Node) -> tuple[str, ...]:
    """The columns that an expression is about, each once."""
    if node.kind in ("field", "nested field"):
        return (node.value,)
    return tuple(dict.fromkeys(name for each in node.arguments for name in columns_of(each)))


def recognised(node: Node, schema: pa.Schema, *, is_negative: bool = False) -> Implied:
    """What an expression, or where ``is_negative`` its opposite, demands of single columns, by what is recognised of it."""
    if node.kind == "invert":
        return recognised(node.arguments[0], schema, is_negative=not is_negative)
    is_or = _IS_OR.get(node.kind)
    if is_or is not None:
        parts = [recognised(each, schema, is_negative=is_negative) for each in node.arguments]
        return of_some(parts) if is_or != is_negative else of_every(parts)  # as De Morgan has it
    if node.kind == "field":
        term = _term(node, schema)
        is_truth = term is not None and sort_of(term.kind) == "true or false"
        return implied_by(Compared(term, "=", not is_negative)) if term is not None and is_truth else _NOTHING
    make = _RECOGNISED.get("compare" if node.kind in _OPS else node.kind)
    return _NOTHING if make is None else make(node, schema, is_negative)


def _term(node: Node, schema: pa.Schema) -> Term | None:
    at = schema.get_field_index(node.value) if node.kind == "field" else -1
    return Term(node.value, schema.field(at).type) if at >= 0 else None


def _compared(node: Node, schema: pa.Schema, is_negative: bool) -> Implied:
    left, right = node.arguments
    op = _OPS[node.kind]
    if left.kind == "literal":
        left, right, op = right, left, FLIPPED.get(op, op)
    term = _term(left, schema)
    if term is None or right.kind != "literal" or not (values := _values([right.value], term.kind)):
        return _NOTHING
    # NaN is neither less nor greater to Arrow, and takes the side that nothing else takes.
    if is_negative and sort_of(term.kind) == "numbers":
        return _NOTHING
    return _demanded(Compared(term, OPPOSITE[op] if is_negative else op, values[0]), term)


def _among(node: Node, schema: pa.Schema, is_negative: bool) -> Implied:
    term = _term(node.arguments[0], schema)
    given = getattr(node.options["value_set"], "values", None) if node.options is not None else None
    if is_negative or term is None or not isinstance(given, pa.Array):
        return _NOTHING
    has_null = given.null_count > 0 and node.option("null_matching_behavior") == 0
    values = _values(list(given.drop_null()), term.kind)
    if values is None:
        return _NOTHING
    found: Test = Among(term, tuple(values))
    return _demanded(Some((found, Missing(term.column))) if has_null else found, term)


def _demanded(test: Test, term: Term) -> Implied:
    """What a test of a term demands, which of numbers that may be NaN is not all that the expression does."""
    found = implied_by(test)
    return replace(found, is_exact=False) if sort_of(term.kind) == "numbers" else found


def _null(node: Node, schema: pa.Schema, is_negative: bool) -> Implied:
    term = _term(node.arguments[0], schema)
    if term is None or node.option("nan_is_null"):
        return _NOTHING
    return implied_by(Missing(term.column, None, is_negative != (node.kind == "is_valid")))


def _beginning(node: Node, schema: pa.Schema, is_negative: bool) -> Implied:
    term, text = _term(node.arguments[0], schema), node.option("pattern")
    if is_negative or term is None or sort_of(term.kind) != "text" or node.option("ignore_case") is not False:
        return _NOTHING
    return implied_by(Matches(term, (text, None))) if isinstance(text, str) and text else _NOTHING


def _values(scalars: Sequence[pa.Scalar], kind: pa.DataType) -> list[Any] | None:
    """Values of a column's type that are what Arrow would compare its values with; None where one is none of these."""
    found = [_value(scalar, kind) for scalar in scalars]
    return None if any(value is None for value in found) else found


def _value(scalar: pa.Scalar, kind: pa.DataType) -> Any:
    if not scalar.is_valid:
        return None
    given = scalar.type
    if pa.types.is_timestamp(kind):
        if not pa.types.is_timestamp(given) or (given.tz is None) != (kind.tz is None):
            return None
        return _cast(scalar, pa.timestamp("us", None if kind.tz is None else "UTC"))
    if pa.types.is_integer(kind):
        return _cast(scalar, kind) if pa.types.is_integer(given) else None
    if pa.types.is_floating(kind):
        is_number = pa.types.is_integer(given) or pa.types.is_floating(given)
        return float(_cast(scalar, kind)) if is_number and _cast(scalar, kind) == scalar.as_py() else None
    both = sort_of(given), sort_of(kind)
    return scalar.as_py() if both in (("text", "text"), ("bytes", "bytes"), ("true or false",) * 2, ("dates", "dates")) else None


def _cast(scalar: pa.Scalar, kind: pa.DataType) -> Any:
    """The same value of another type in Python; None where it has none that is the same."""
    try:
        return scalar.cast(kind).as_py()
    except (pa.ArrowException, ValueError, OverflowError):
        return None


_RECOGNISED: dict[str, Callable[[Node, pa.Schema, bool], Implied]] = {
    "compare": _compared,
    "is_in": _among,
    "is_null": _null,
    "is_valid": _null,
    "starts_with": _beginning,
}
