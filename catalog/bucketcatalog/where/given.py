"""Conditions as users give them: a mapping of columns, a text, or an expression of pyarrow.

The last two are ``Predicate``s. Once it is known which columns there are, such a one becomes two things: conditions on single columns, as
a mapping has them, by which less is read; and a test of rows, where these do not say all of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import clock
from ..errors import InvalidOption
from ..model.arrays import one_chunk
from ..model.names import WORDS_OF_TIME
from . import expressions, phrases
from .binding import Binding
from .conditions import Where
from .grammar import parse
from .implied import Implied, implied_by
from .truth import Test


class RowsTest(Protocol):
    """What tests rows, and which columns it is about: picklable."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it takes."""
        ...

    def met_by(self, rows: pa.Table) -> pa.Table:
        """The rows, in their order, that meet the condition."""
        ...


@dataclass(frozen=True)
class Bound:
    """A condition on known columns: every row that meets it meets ``pushed`` and ``beside``, and these say all of it where ``is_exact``.

    Nothing is lost where a condition of ``pushed`` is left out, as long as the ``test`` is made.
    """

    pushed: Where
    beside: Where
    test: RowsTest
    is_exact: bool

    @property
    def where(self) -> dict[str, Any]:
        """All conditions; of a column that both have one on that beside it."""
        return {**self.pushed, **self.beside}


@dataclass(frozen=True)
class Predicate(ABC):
    """A condition that is no mapping: picklable. Rows have to meet the conditions ``beside`` it too."""

    beside: Where = field(default_factory=dict, kw_only=True)

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...] | None:
        """The columns that it is about; None where nobody knows."""

    @abstractmethod
    def _bound(self, name: str, schema: pa.Schema, uuids: Collection[str]) -> tuple[Implied, RowsTest]:
        """What it demands of single columns, and what tests rows."""

    def _hint(self, column: str) -> str:
        """What may have been meant by a column that there is not, if anything."""
        return ""

    @abstractmethod
    def split(self, column: str) -> tuple[Self | None, Self | None]:
        """What it says of one column alone, and the rest; ``InvalidOption`` where the two cannot be taken apart."""

    def at(self, now: int) -> Self:
        """The same, with times that count from ``now``."""
        return self

    def also(self, where: Where) -> Self:
        """Both this and conditions of a mapping."""
        return replace(self, beside={**self.beside, **where})

    def bound(self, name: str, schema: pa.Schema, known: Sequence[str] | None = None, uuids: Collection[str] = ()) -> Bound:
        """The condition on the columns of a ``schema``, which are of ``name``; ``InvalidOption`` where it does not fit them.

        ``known`` are all columns that there are, if there are more; ``uuids`` are those whose text is that of uuids.
        """
        for column in self.columns or ():
            if schema.get_field_index(column) < 0:
                raise InvalidOption(
                    f"Table {name!r} has no column {column!r} to filter by.",
                    next_step=f"{self._hint(column)}Its columns are {', '.join(schema.names if known is None else known)}.",
                )
        implied, test = self._bound(name, schema, uuids)
        is_exact = implied.is_exact and self.beside.keys().isdisjoint(implied.where)
        return Bound(implied.conditions, self.beside, test, is_exact)


@dataclass(frozen=True)
class InText(Predicate):
    """A condition that was written as text; times that count from now count from ``now``, which is when it was given."""

    text: str
    phrase: phrases.Phrase = field(repr=False)
    now: int = field(repr=False)

    def __str__(self) -> str:
        return self.text

    def at(self, now: int) -> InText:
        """See ``Predicate``."""
        return replace(self, now=now)

    @property
    def columns(self) -> tuple[str, ...]:
        """See ``Predicate``."""
        return phrases.columns_of(self.phrase)

    def _hint(self, column: str) -> str:
        is_meant_as_text = f'"{column}"' in self.text or column.lower() in WORDS_OF_TIME
        return f"A value stands in single quotes: '{column}'. " if is_meant_as_text else ""

    def split(self, column: str) -> tuple[InText | None, InText | None]:
        """See ``Predicate``: what AND joins can be taken apart."""
        parts = phrases.conjuncts(self.phrase)
        about = tuple(part for part in parts if phrases.columns_of(part) == (column,))
        rest = tuple(part for part in parts if part not in about)
        if any(column in phrases.columns_of(part) for part in rest):
            raise InvalidOption(
                f"The condition {self.text!r:.200} compares {column!r} and others in one breath.",
                next_step=f"Join what is said of {column} and the rest by AND.",
            )
        return tuple(replace(self, phrase=phrases.Joined(some)) if some else None for some in (about, rest))  # type: ignore[return-value]

    def _bound(self, name: str, schema: pa.Schema, uuids: Collection[str]) -> tuple[Implied, RowsTest]:
        test = Binding(name, schema, self.now, uuids).test(self.phrase)
        found = _Tested(self.text, self.columns, test)
        _ = found.met_by(_nothing(schema, self.columns))
        return implied_by(test), found


@dataclass(frozen=True)
class _Tested:
    """Rows tested by Arrow's kernels."""

    text: str
    columns: tuple[str, ...]
    test: Test = field(repr=False)

    def __str__(self) -> str:
        return self.text

    def met_by(self, rows: pa.Table) -> pa.Table:
        """See ``RowsTest``."""
        with _evaluating(self):
            return rows.filter(self.test.of(rows)) if len(rows) else rows


@dataclass(frozen=True, eq=False)
class InArrow(Predicate):
    """An expression of pyarrow."""

    expression: Any

    def __str__(self) -> str:
        return str(self.expression)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """See ``Predicate``."""
        read = expressions.read_expression(self.expression)
        return None if read is None else expressions.columns_of(read)

    def split(self, column: str) -> tuple[InArrow | None, InArrow | None]:
        """See ``Predicate``: an expression is about that column alone, or not about it."""
        if self.columns == (column,):
            return self, None
        if column in (self.columns or (column,)):
            raise InvalidOption(
                f"The expression {self} is about {column!r} and others, and cannot be taken apart.",
                next_step="Give it as text, or as a mapping.",
            )
        return None, self

    def _bound(self, name: str, schema: pa.Schema, uuids: Collection[str]) -> tuple[Implied, RowsTest]:
        """Arrow compares text, that of uuids too."""
        read = expressions.read_expression(self.expression)
        columns = tuple(schema.names) if read is None else expressions.columns_of(read)
        try:
            _ = _nothing(schema, columns).filter(self.expression)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InvalidOption(
                f"The expression {self} does not fit the columns of {name!r}: {str(error).splitlines()[0]}.",
                next_step="Compare columns with values of their types: "
                f"{', '.join(f'{column} is {schema.field(column).type}' for column in columns[:8])}.",
            ) from None
        implied = Implied() if read is None else expressions.recognised(read, schema)
        return implied, _Expressed(self.expression, columns)


@dataclass(frozen=True)
class _Expressed:
    """Rows tested by Arrow's engine, which evaluates expressions."""

    expression: Any
    columns: tuple[str, ...]

    def __str__(self) -> str:
        return str(self.expression)

    def met_by(self, rows: pa.Table) -> pa.Table:
        """See ``RowsTest``."""
        with _evaluating(self):
            return rows.filter(self.expression)


def _nothing(schema: pa.Schema, columns: Sequence[str]) -> pa.Table:
    """A row in which all of these columns are null: of no row Arrow would evaluate nothing."""
    return pa.table({column: pa.nulls(1, schema.field(column).type) for column in columns})


@contextmanager
def _evaluating(test: RowsTest) -> Iterator[None]:
    """What a condition makes of values that it cannot be evaluated of, as an error of whoever has given it."""
    try:
        yield
    except pa.ArrowException as error:
        raise InvalidOption(
            f"The condition {str(test)!r:.200} cannot be evaluated: {str(error).splitlines()[0]}.",
            next_step="Change it, or filter the rows that are read.",
        ) from None


Condition: TypeAlias = Where | str | Predicate | pc.Expression
"""Whatever a read takes as ``where``."""


def understood(where: Any) -> Where | Predicate:
    """A mapping as it is, and anything else that is a condition as a predicate; ``InvalidOption`` for what is none."""
    if isinstance(where, Mapping | Predicate):
        return where
    if where is None:
        return {}
    if isinstance(where, str):
        return _about_columns(InText(where, parse(where), clock.now_us()))
    if isinstance(where, pc.Expression):
        try:
            where.__reduce__()
        except pa.ArrowException as error:
            raise InvalidOption(
                f"The expression {where} cannot be handed on: {str(error).splitlines()[0]}.",
                next_step="Name columns by their names.",
            ) from None
        return _about_columns(InArrow(where))
    raise InvalidOption(
        f"{where!r} is not a condition.",
        next_step="Map columns to values, lists of values, prefix(...) or between(...); or give text such as "
        "\"content_length > 100 and name like 'a%'\", or an expression of pyarrow.compute.",
    )


def _about_columns(predicate: Predicate) -> Predicate:
    if predicate.columns == ():
        raise InvalidOption(f"The condition {str(predicate)!r:.200} is about no column.", next_step="Name one, or leave it out.")
    return predicate


def positions_met(test: RowsTest, rows: pa.Table) -> pa.Array:
    """The places of the rows that meet a condition."""
    numbered = rows.append_column("", pa.array(np.arange(len(rows))))
    return one_chunk(test.met_by(numbered).column(""))
