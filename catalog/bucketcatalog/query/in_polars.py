"""A read as a LazyFrame: Polars reads the native files by itself, whenever the frame is collected, and what lies over them beside.

Of the files it reads the columns and row groups that a query needs. Rows that are left out it knows by their numbers, which run through all
files of a scan. Conditions of the read are expressions before all that is asked of the frame, so that they are pushed down with it.

What lies over the files is read when the frame is made, and kept, where it is at most 8 MiB. Where it is more, or no file is native, this
package reads it anew whenever the frame is collected, with the columns that this needs: that can be as often as one likes, and nothing is
held.

Polars opens files in a directory, and on S3 by a client of its own: what signs its requests it asks the store for when it makes them, and
no plan of a query holds it, nor a LazyFrame that is written down. Of any other store, and of an S3 that its client cannot reach as this
package does, this package reads all rows.

It checks neither the checksums of pages nor any other: that each file is there, with its size and its footer, was checked when the frame
was made, and what is damaged since or within may go unnoticed, where a scan says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from itertools import accumulate
from operator import and_
from typing import Any

import numpy as np
import pyarrow as pa

from ..format.shown import Shown
from ..store.base import Store
from ..store.elsewhere import for_object_store, local_path
from ..where.conditions import Between, Prefix
from .files import Asked, Files, NativeFile, Streamed, alike, at_hand, engine, stand_in

_ROW, _OF = "__row", "__of"  # no column of a file is called so
_log = logging.getLogger("bucketcatalog")
_MOST_ROWS = (1 << 32) - 2
"""Rows that are numbered in one scan: numbers of rows have 32 bits in most builds of Polars."""


def polars_frame(rows: Streamed) -> Any:
    """Rows that this package reads, as a LazyFrame; ``UsageError`` where Polars is not installed."""
    return _streamed(engine("polars"), rows)


def native_frame(files: Files, rows: Streamed, store: Store) -> Any:
    """``rows`` of a store as a LazyFrame: read from ``files``, which say the same, where Polars can read these. Errors as above."""
    polars = engine("polars")
    options = _options(store)
    if files.why is not None or options is None:
        return _streamed(polars, rows)
    try:
        native = _Natively(polars, store, options).scans(files.native)
    except (polars.exceptions.PolarsError, OSError) as error:  # of the file system, or the store
        _log.warning("Polars does not read the files itself: %s", error)
        return _streamed(polars, rows)
    return polars.concat([*native, _streamed(polars, files.overlay)])


def renamed_frame(frame: Any, names: Mapping[str, str]) -> Any:
    """A LazyFrame whose columns are those of another, by their new names."""
    column = engine("polars").col
    return frame.select([column(source).alias(name) for name, source in names.items()])


def joined_frame(frame: Any, tables: Sequence[pa.Table], names: Sequence[str]) -> Any:
    """Columns of a LazyFrame and of tables whose first column says of which of its rows they are; null of those that no row is of."""
    polars = engine("polars")
    for table in tables:
        key, *others = table.column_names
        other = polars.from_arrow(table.rename_columns([_OF, *others])).lazy()
        frame = frame.join(other, left_on=key, right_on=_OF, how="left")
    return frame.select(list(names))


def _options(store: Store) -> Mapping[str, Any] | None:
    """What Polars has to be told to read the store's objects; None where it cannot."""
    root = local_path(store, "")
    if root is not None:
        return {"credential_provider": None} if _is_text(root) else None
    found = for_object_store(store)
    return None if found is None else {"storage_options": found.options, "credential_provider": found.credentials}


def _is_text(path: str) -> bool:
    """Whether a path is text, which others' libraries take alone; on disks it can be any bytes."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _streamed(polars: Any, rows: Streamed) -> Any:
    """Rows that this package reads."""
    table = at_hand(rows.to_batches(), rows.schema)
    if table is not None:
        return polars.from_arrow(table).lazy()

    def read(columns: list[str] | None, predicate: Any, most: int | None, _batch_rows: int | None) -> Iterator[Any]:
        for batch in (rows if columns is None else rows.only(columns)).to_batches():
            frame = polars.from_arrow(batch)
            frame = frame if columns is None else frame.select(columns)
            frame = frame if predicate is None else frame.filter(predicate)
            frame = frame if most is None else frame.head(most)
            yield frame
            if most is not None and (most := most - len(frame)) <= 0:
                return

    return import_module("polars.io.plugins").register_io_source(read, schema=_kinds(polars, rows.schema))


def _kinds(polars: Any, schema: pa.Schema) -> dict[str, Any]:
    """The types that Polars gives to these columns."""
    return dict(polars.from_arrow(schema.empty_table()).schema)


@dataclass(frozen=True)
class _Natively:
    """Files of a store, read by Polars."""

    polars: Any
    store: Store
    options: Mapping[str, Any] = field(repr=False)

    def scans(self, files: Sequence[NativeFile]) -> list[Any]:
        """The rows of the files that meet the conditions and are not left out; an error where Polars does not read the first file."""
        if not files:
            return []
        found = self._parquet(files[:1]).select(self.polars.len()).collect().item()
        if found != files[0].rows:
            raise ValueError(f"{files[0].name} has {found} rows, and not {files[0].rows}")
        return [self._scan(some) for each in alike(files) for some in _numbered(each)]

    def _scan(self, files: Sequence[NativeFile]) -> Any:
        asked, stored = files[0].asked, _kinds(self.polars, pa.schema(list(files[0].stored_fields)))
        left_out = _left_out(files)
        rows = self._parquet(files, schema=stored, extra_columns="ignore", row_index_name=_ROW if len(left_out) else None)
        if len(left_out):
            numbers = self.polars.Series(left_out, dtype=self.polars.get_index_type())
            rows = rows.filter(~self.polars.col(_ROW).is_in(numbers.implode()))
        made = _Made(self.polars, asked, stored)
        for name in asked.where:
            rows = rows.filter(made.meets(name, files[0].columns[name]))
        kinds = _kinds(self.polars, asked.schema)
        shown = [made.column(files[0].columns[name], kinds[name]).alias(name) for name in asked.schema.names]
        # A column may be a constant, of which one row would be left where nothing else is selected.
        return rows.with_columns(shown).select(asked.schema.names)

    def _parquet(self, files: Sequence[NativeFile], **options: Any) -> Any:
        paths = [local_path(self.store, file.name) or file.url for file in files]
        return self.polars.scan_parquet(paths, glob=False, hive_partitioning=False, **self.options, **options)


def _numbered(files: Sequence[NativeFile]) -> Iterator[list[NativeFile]]:
    """The files in scans of as many rows as can be numbered."""
    together: list[NativeFile] = []
    for file in files:
        if together and sum(other.rows for other in together) + file.rows > _MOST_ROWS:
            yield together
            together = []
        together.append(file)
    yield together


def _left_out(files: Sequence[NativeFile]) -> Any:
    """The numbers in a scan of the files of the rows that are left out."""
    starts = accumulate((file.rows for file in files), initial=0)
    return np.concatenate([np.asarray(file.left_out) + start for file, start in zip(files, starts, strict=False)])


@dataclass(frozen=True)
class _Made:
    """What is asked of a read, made of columns that are ``stored`` with these types."""

    polars: Any
    asked: Asked
    stored: Mapping[str, Any]

    def column(self, made: Shown, kind: Any) -> Any:
        """A column as people see it, of that type."""
        polars, columns = self.polars, list(map(self.polars.col, made.stored))
        if made.is_joined:
            return polars.concat_str(columns, separator=":")
        if made.otherwise is not None:
            columns.append(polars.lit(stand_in(made), dtype=polars.Int32 if made.symbols else kind))
        value = polars.coalesce(columns) if len(columns) > 1 else columns[0] if columns else polars.lit(None)
        if made.symbols:
            numbers, symbols = zip(*made.symbols, strict=True)
            return value.replace_strict(numbers, symbols, default=value.cast(polars.String), return_dtype=polars.String)
        is_so = [self.stored[name] for name in made.stored] == [kind] and made.otherwise is None
        return value if is_so else value.cast(kind)

    def meets(self, name: str, made: Shown) -> Any:
        """Whether the condition on a column holds."""
        condition, kind = self.asked.where[name], self.asked.tested.field(name).type
        shown = self.column(made, _kinds(self.polars, self.asked.tested)[name])
        if condition is None:
            return shown.is_null()
        if isinstance(condition, Prefix):
            text = condition.text if pa.types.is_string(kind) or isinstance(condition.text, bytes) else condition.text.encode()
            return (shown.str if pa.types.is_string(kind) else shown.bin).starts_with(self.polars.lit(text))
        values = self.asked.compared[name]
        if isinstance(condition, Between):
            low, high = (self.polars.lit(self.polars.from_arrow(values[at : at + 1]).first()) for at in (0, 1))
            ends = [] if not values[0].is_valid else [shown > low if condition.above else shown >= low]
            ends += [] if not values[1].is_valid else [shown < high if condition.below else shown <= high]
            return reduce(and_, ends, shown.is_not_null())
        found = shown.is_in(self.polars.from_arrow(values.drop_null()).implode())
        return found | shown.is_null() if values.null_count else found
