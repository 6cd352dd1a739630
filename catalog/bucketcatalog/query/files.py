"""A read as files: those that an engine reads by itself, what of their rows it leaves out, and what lies over them.

Who reads Parquet needs no more than this: the rows of ``native`` files that are not left out, shown as each file says, and the rows of the
``overlay`` beside them are the rows of the read. What checks a file when it is read natively is the engine alone: of ours there is what
was checked when this was planned, its size and its footer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import UsageError
from ..format.shown import Shown, differing_in_case, is_read_alike, shown_columns, unchecked
from ..model.arrays import compared_fractions
from ..model.render import output_schema, symbols_of
from ..model.tables import Table
from ..state.plan import Part
from ..state.untouched import Untouched
from ..where.conditions import Where, allowed_values, matching
from .row_tests import RowTest

AT_HAND_BYTES = 8 << 20
"""So much of what lies over files is read at once, and kept."""


class Streamed(Protocol):
    """Rows that this package reads as often as they are asked for, the same each time."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        ...

    def only(self, columns: Sequence[str]) -> Streamed:
        """The same rows with these of their columns alone, where that makes them cheaper to read; with all of them elsewhere."""
        ...

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """All of them, batch by batch."""
        ...

    def to_reader(self) -> pa.RecordBatchReader:
        """All of them as a stream."""
        ...


class Rows(Streamed, Protocol):
    """Rows that this package reads, as ``query.reads`` has it."""

    def to_arrow(self) -> pa.Table:
        """All of them."""
        ...

    def tasks(self, most_rows: int) -> Sequence[Any]:
        """All of them in parts, for other processes: each a ``ReadTask``."""
        ...


@dataclass(frozen=True)
class Asked:
    """What is asked of rows: the columns of ``schema``, of those that meet ``where``.

    Conditions are about the columns of ``tested``, and allow the values of ``allowed``.
    """

    schema: pa.Schema
    where: Where
    tested: pa.Schema
    allowed: Mapping[str, pa.Array]

    @classmethod
    def of_table(cls, table: Table, part: Part, schema: pa.Schema, where: Where) -> Asked:
        """Of the rows of a table."""
        tested = output_schema(table, tombstones=part is Part.TOMBSTONES, columns=list(where))
        return cls(schema, where, tested, allowed_values(table, where, tested))

    @classmethod
    def of_columns(cls, schema: pa.Schema, test: RowTest) -> Asked:
        """Of rows that no table declares."""
        return cls(schema, test.where, test.tested, test.allowed)

    @cached_property
    def compared(self) -> dict[str, pa.Array]:
        """The same as people see them, for engines that compare as this package does: zeros are equal, and NaN is the largest."""
        fractions = {field.name for field in self.tested if pa.types.is_floating(field.type)}
        return {name: compared_fractions(values) if name in fractions else values for name, values in self.allowed.items()}

    @property
    def every(self) -> pa.Schema:
        """The columns to show and those to check, each once."""
        return pa.schema([*self.schema, *(each for each in self.tested if each.name not in self.schema.names)])


@dataclass(frozen=True)
class NativeFile:
    """A Parquet file with rows of a read: its name in the store, its URL there, its size in bytes and how many rows it has in all.

    Its rows at the positions ``left_out`` (from 0, sorted) are not of the read. ``columns`` says how each column is made of the columns of
    the file, whose ``schema`` is what its footer says.
    """

    name: str
    url: str
    size: int
    rows: int
    left_out: pa.Array = field(repr=False)
    columns: Mapping[str, Shown] = field(repr=False)
    schema: pa.Schema = field(repr=False)
    asked: Asked = field(repr=False)

    @property
    def stored(self) -> list[str]:
        """The columns of the file that are needed; at least one, so that rows can be counted."""
        names = dict.fromkeys(name for made in self.columns.values() for name in made.stored)
        return list(names) or self.schema.names[:1]

    @property
    def stored_fields(self) -> list[pa.Field]:
        """The same with their types."""
        return [self.schema.field(name) for name in self.stored]

    def rows_of(self, stored: pa.Table) -> pa.Table:
        """The rows of the read, given the ``stored`` columns of all rows of the file in their order."""
        if len(self.left_out):
            kept = np.ones(self.rows, dtype=bool)
            kept[self.left_out] = False
            stored = stored.filter(pa.array(kept))
        if self.asked.where:
            tested = self._shown(stored, self.asked.tested)
            stored = stored.filter(matching(tested, self.asked.where, self.asked.allowed))
        return self._shown(stored, self.asked.schema)

    def _shown(self, stored: pa.Table, schema: pa.Schema) -> pa.Table:
        return pa.table([shown_array(self.columns[name], stored) for name in schema.names], schema=schema)


@dataclass(frozen=True)
class Files:
    """A read as native files and an ``overlay``, which is the whole read where there are none; ``why`` says why there are none then.

    Both have the columns of ``schema``, and the overlay's rows are those that meet the conditions. ``touched`` is how many keys have
    their rows in the overlay.
    """

    schema: pa.Schema
    native: tuple[NativeFile, ...]
    overlay: Rows
    touched: int = 0
    why: str | None = None


def native_files(found: Untouched, table: Table, asked: Asked, url: str) -> tuple[NativeFile, ...] | str:
    """The files as natively read ones, or why one of them has to be read by this package; files without columns that are asked for too."""
    native: list[NativeFile] = []
    for file in found.files:
        columns = shown_columns(file.layout.schema, file.may_be_null, table, asked.every)
        if isinstance(columns, str):
            return f"{columns}, in {file.name}"
        stored = {name for made in columns.values() for name in made.stored}
        if why := unchecked(file.layout, stored):
            return f"{file.name} would be read wrongly by engines: {why}"
        place = f"{url.rstrip('/')}/{file.name}"
        native.append(NativeFile(file.name, place, file.size, file.rows, file.left_out, columns, file.layout.schema, asked))
    return tuple(native)


def plain_file(name: str, size: int, rows: int, schema: pa.Schema, asked: Asked, url: str) -> NativeFile | str:
    """A file that is no segment as a natively read one, or why it has to be read by this package.

    Its columns, by their names, are those of the rows, of the same types or of ones that were widened; columns that it lacks are null.
    """
    if alike := next(differing_in_case(schema, {*asked.every.names}), None):
        return f"{alike} are called alike but for case"
    columns: dict[str, Shown] = {}
    for wanted in asked.every:
        at = schema.get_field_index(wanted.name)
        if at >= 0 and not is_read_alike(schema.field(at).type, wanted.type):
            return f"the column {wanted.name!r} is stored as {schema.field(at).type}, which engines read otherwise"
        columns[wanted.name] = Shown(wanted.type, (wanted.name,) if at >= 0 else ())
    return NativeFile(name, f"{url.rstrip('/')}/{name}", size, rows, pa.array([], pa.int64()), columns, schema, asked)


def alike(files: Iterable[NativeFile]) -> list[list[NativeFile]]:
    """The files in groups that a scan of an engine's reads: their columns are made alike, of stored ones that have the same types."""
    found: dict[tuple[Any, ...], list[NativeFile]] = {}
    for file in files:
        found.setdefault((*file.columns.items(), *file.stored_fields), []).append(file)
    return list(found.values())


def at_hand(parts: Iterable[pa.RecordBatch | pa.Table], schema: pa.Schema, most_bytes: int | None = None) -> pa.Table | None:
    """All rows of the parts, read now, where these have at most so many bytes (8 MiB if not said); None where they have more."""
    most = AT_HAND_BYTES if most_bytes is None else most_bytes
    found, size = [schema.empty_table()], 0
    for part in parts:
        size += part.nbytes
        if size > most:
            return None
        found.append(part if isinstance(part, pa.Table) else pa.Table.from_batches([part]))
    return pa.concat_tables(found)


def engine(package: str) -> Any:
    """The package of an engine, which is not installed with this one; ``UsageError`` where it is missing."""
    try:
        return import_module(package)
    except ImportError as error:
        raise UsageError(
            f"What is read cannot be given to {package}, which is not installed here.", next_step=f"pip install {package}"
        ) from error


def stand_in(made: Shown) -> Any:
    """What stands for null in a column, as its values are in Python; None where nothing does."""
    return pa.scalar(made.otherwise, made.type).as_py() if pa.types.is_timestamp(made.type) else made.otherwise


def shown_array(made: Shown, stored: pa.Table) -> pa.ChunkedArray:
    """A column as people see it, made of stored ones."""
    columns = [stored.column(name) for name in made.stored]
    if made.is_joined:
        return pc.binary_join_element_wise(*(column.cast(pa.string()) for column in columns), ":")
    if made.otherwise is not None:
        columns.append(pa.scalar(made.otherwise, columns[0].type if columns else None))
    values = pc.coalesce(*columns) if columns else pa.nulls(len(stored), made.type)
    if isinstance(values, pa.Scalar):
        values = pa.repeat(values, len(stored))
    if made.symbols:
        values = symbols_of(values, made.symbols)
    return values if values.type == made.type else values.cast(made.type)
