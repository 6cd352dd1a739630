"""Reading files of a data table: the rows of each that count, as its table has them; and of rows with equal keys the newest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...errors import AccessDenied, CorruptionError, ObjectNotFound, StoreUnavailable
from ...model.arrays import Mask, comparable, one_chunk
from ...model.widening import cast, widened
from ...query.row_tests import RowTest
from ...store.base import Store
from ...store.elsewhere import ObjectFile, local_path
from ...wording import either
from .errors import DataMissing, SchemaConflict
from .files import CHUNK, CLOCK, About
from .names import BEGINS
from .predicates import Predicate

PARTITION, PATH = "_partition", "_path"
REQUESTED = {PARTITION: pa.string(), CHUNK: pa.string(), CLOCK: pa.int64(), PATH: pa.string()}
"""What every data table shows on request: where a row lies, in which file it was added, and its logical clock."""
_POSITION = "_position"
_SMALL_BYTES = 1 << 20
"""A file that threads would take longer to share than to decode."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """What is read of a file: all of its ``of_groups`` row groups, or some. Rows of the origins ``without`` do not count.

    ``deleted`` are positions of predicates that it has rows of, with the origins that these speak of, None for all.
    """

    path: str
    size: int
    rows: int
    of_groups: int
    partition: str
    chunk: str
    schema: str
    clock: int
    row_groups: tuple[int, ...] | None = None
    without: tuple[str, ...] = ()
    deleted: tuple[tuple[int, tuple[str, ...] | None], ...] = ()

    @property
    def groups(self) -> tuple[int, ...]:
        """The row groups that are read."""
        return tuple(range(self.of_groups)) if self.row_groups is None else self.row_groups

    @property
    def rows_read(self) -> int:
        """About how many rows these have."""
        return self.rows * len(self.groups) // max(1, self.of_groups)

    @property
    def is_whole(self) -> bool:
        """Whether every row of what is read counts."""
        return not self.without and not self.deleted


@dataclass(frozen=True)
class DataAsked:
    """What is asked of a data table: the columns of ``schema``, of rows that meet ``where``. ``columns`` are all that the table has."""

    table: str
    schema: pa.Schema
    where: tuple[tuple[str, Any], ...]
    columns: pa.Schema = field(repr=False)
    key_columns: tuple[str, ...] = ()
    predicates: tuple[Predicate, ...] = field(default=(), repr=False)
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """What the rows are of."""
        return f"{BEGINS}{self.table}"

    def schema_of(self, part: FilePart) -> pa.Schema:
        """The columns that a file has."""
        return self.schemas[part.schema]

    @cached_property
    def test(self) -> RowTest:
        """The conditions."""
        shown = pa.schema([*self.columns, *(pa.field(*each) for each in REQUESTED.items())])
        return RowTest(self.name, dict(self.where), shown)

    def needed(self, part: FilePart, *, to_merge: bool) -> dict[str, None]:
        """The columns that are needed of a file, each once."""
        names = dict.fromkeys([*self.schema.names, *self.test.tested.names])
        if to_merge:
            names |= dict.fromkeys([*self.key_columns, CHUNK, CLOCK])
        if part.without or any(origins is not None for _, origins in part.deleted):
            names[CHUNK] = None
        for position, _ in part.deleted:
            names |= dict.fromkeys(each.column for each in self.predicates[position].conditions)
        return names

    def read(self, store: Store, part: FilePart, *, to_merge: bool) -> Iterator[pa.Table]:
        """The rows of a part of a file that count, a row group at a time; ``to_merge`` with all that merging takes."""
        needed = self.needed(part, to_merge=to_merge)
        for rows in _row_groups(store, part, self, needed):
            kept = rows if part.is_whole else rows.filter(self._counts(part, rows))
            if to_merge:
                yield kept
            else:
                yield self.test.met_by(kept).select(self.schema.names)

    def _counts(self, part: FilePart, rows: pa.Table) -> pa.Array:
        gone: Any = pc.is_in(rows[CHUNK], value_set=pa.array(part.without, pa.string())) if part.without else None
        for position, origins in part.deleted:
            found: Any = self.predicates[position].of(self.table, rows)
            if origins is not None:
                found = pc.and_(found, pc.is_in(rows[CHUNK], value_set=pa.array(origins, pa.string())))
            gone = found if gone is None else pc.or_(gone, found)
        return pc.invert(gone)

    def newest(self, rows: pa.Table) -> pa.Table:
        """Of rows with equal keys the one with the newest clock: then of the last file, and in it the last."""
        return newest(rows, self.key_columns)


@dataclass(frozen=True)
class FilesTask:
    """Files that one process reads, by themselves or, where ``is_merged``, as one."""

    asked: DataAsked
    parts: Sequence[FilePart]
    is_merged: bool = False

    @property
    def rows(self) -> int:
        """An upper bound."""
        return sum(part.rows_read for part in self.parts)

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The rows that are asked for."""
        if not self.is_merged:
            for part in self.parts:
                yield from self.asked.read(store, part, to_merge=False)
            return
        tables = [rows for part in self.parts for rows in self.asked.read(store, part, to_merge=True)]
        if tables:
            found = self.asked.newest(pa.concat_tables([rows.select(tables[0].column_names) for rows in tables]))
            yield self.asked.test.met_by(found).select(self.asked.schema.names)


def newest(rows: pa.Table, key_columns: Sequence[str]) -> pa.Table:
    """Of rows with equal keys the one with the newest ``_clock``, then of the last ``_chunk``, then the last; in the order of the keys."""
    keys = [comparable(one_chunk(rows[name])) for name in key_columns if not pa.types.is_null(rows[name].type)]
    names = [f"{place}" for place in range(len(keys))]
    ranks = [*keys, one_chunk(rows[CLOCK]), one_chunk(rows[CHUNK]), pa.array(np.arange(len(rows)))]
    ranked = pa.table(ranks, names=[*names, CLOCK, CHUNK, _POSITION])
    order = pc.sort_indices(ranked, [(name, "ascending") for name in ranked.column_names])
    is_last = np.ones(len(rows), dtype=bool)
    if len(rows) > 1:
        is_last[:-1] = ~_same_as_next([key.take(order) for key in keys], len(rows) - 1)
    return rows.take(order.filter(pa.array(is_last)))


def _same_as_next(keys: Sequence[pa.Array], count: int) -> Mask:
    same = np.ones(count, dtype=bool)
    for values in keys:
        one, other = values.slice(0, len(values) - 1), values.slice(1)
        equal = pc.fill_null(pc.equal(one, other), False)
        same &= np.asarray(pc.or_(equal, pc.and_(one.is_null(), other.is_null())))
    return same


def _row_groups(store: Store, part: FilePart, asked: DataAsked, needed: Iterable[str]) -> Iterator[pa.Table]:
    """The needed columns of a file's row groups, as the table has them."""
    is_small = part.size < _SMALL_BYTES
    with _reading(part.path), _opened(store, part) as file:
        _check(file, part, asked.table)
        stored = file.schema_arrow
        names = [name for name in needed if stored.get_field_index(name) >= 0] or stored.names[:1]
        for number in part.groups:
            yield _shown(file.read_row_group(number, columns=names, use_threads=not is_small), part, asked, needed)


def _opened(store: Store, part: FilePart) -> Any:
    path = local_path(store, part.path)
    if path is None:
        found = ObjectFile(store, part.path, part.size)
        return pq.ParquetFile(found, page_checksum_verification=True, pre_buffer=True)
    return pq.ParquetFile(pa.memory_map(path), page_checksum_verification=True, pre_buffer=False)  # there is no request to save


def _shown(found: pa.Table, part: FilePart, asked: DataAsked, needed: Iterable[str]) -> pa.Table:
    constants = {PARTITION: part.partition, CHUNK: part.chunk, CLOCK: part.clock, PATH: part.path}
    columns: dict[str, Any] = {}
    for name in needed:
        kind = REQUESTED[name] if name in REQUESTED else _kind(asked.columns, name)
        if kind is None:
            continue
        if found.schema.get_field_index(name) >= 0:
            columns[name] = _cast(found.column(name), kind, name, part.path)
        elif name in constants:
            columns[name] = pa.repeat(pa.scalar(constants[name], kind), len(found))
        else:
            columns[name] = pa.nulls(len(found), kind)
    return pa.table(columns)


def _cast(values: pa.ChunkedArray, kind: pa.DataType, name: str, path: str) -> pa.ChunkedArray:
    try:
        return cast(values, kind)
    except pa.ArrowInvalid as error:
        if widened(values.type, kind) != kind:
            raise  # not what the catalog says of the file
        raise SchemaConflict(
            f"Column {name!r} has values in {path} that {kind}, as which files of its table together have it, does not hold: "
            f"{str(error).splitlines()[0]}.",
            next_step="Write one of the files anew with the other's type.",
        ) from None


def _kind(columns: pa.Schema, name: str) -> pa.DataType | None:
    at = columns.get_field_index(name)
    return columns.field(at).type if at >= 0 else None


def _check(file: Any, part: FilePart, table: str) -> None:
    """``CorruptionError`` for a file that says that it is another."""
    says = About.parse(file.metadata.metadata, part.path)
    is_another = (says.table, says.partition, says.chunk) != (table, part.partition, part.chunk)
    if is_another or (file.metadata.num_rows, file.metadata.num_row_groups) != (part.rows, part.of_groups):
        raise CorruptionError(
            f"{part.path} says that it is chunk {says.chunk!r} in partition {says.partition!r} of data table {says.table!r}, or has other "
            f"numbers of rows and row groups than {part.rows} and {part.of_groups}.",
            next_step=_put_back(),
        )


def _put_back() -> str:
    remove = either("cat.data(TABLE).remove([FILE])", "bucketcatalog iox remove")
    return f"Put back what was there, or remove the file: {remove}."


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """What is wrong with a file, as errors that name it."""
    try:
        yield
    except (FileNotFoundError, ObjectNotFound) as error:
        raise DataMissing(
            f"{path} is not there: it was collected since, or deleted by somebody.",
            next_step="Read a newer version; where it should be there, "
            + either("systems.iox.verify.verify(catalog)", "bucketcatalog iox verify CATALOG")
            + " says what is missing.",
        ) from error
    except MemoryError:
        raise
    except PermissionError as error:
        raise AccessDenied(f"{path} may not be read here.", next_step="Give whoever reads the right to.") from error
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # Arrow's own, of what a file holds, have none
            raise StoreUnavailable(f"{path} cannot be opened: {error.strerror}.", next_step="Read it again.") from error
        raise CorruptionError(
            f"{path} cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}.",
            next_step=_put_back(),
        ) from error
