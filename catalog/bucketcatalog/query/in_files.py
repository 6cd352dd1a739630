"""A read as files of this machine, for programs that know nothing of catalogs: Parquet, CSV or lines of JSON; one file, or one a partition.

What is written appears whole or not at all: under a name of its own beside the place that was asked for, and then renamed. Batches are
written as they are read, so that memory does not grow with their number. Partitions are directories as Hive has them
(``COLUMN=VALUE/COLUMN=VALUE/``), which say what their columns are in place of the files. Their rows are gathered, up to 64 MiB of all
partitions together, and of the files at most 64 are open; who comes again gets another file.

pyarrow.parquet and pyarrow.csv are imported when a file is written, since whoever reads without files does without.
"""

from __future__ import annotations

import gzip
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import clock
from ..errors import InvalidOption, TargetNotEmpty
from ..format.exported import exported_rows, exported_schema
from ..format.texts import csv_rows, csv_schema, json_lines, scalar_texts
from ..model.arrays import plain
from ..model.names import names_given

PARQUET, CSV, JSON_LINES = "parquet", "csv", "jsonl"
FILE_FORMATS = (PARQUET, CSV, JSON_LINES)
_GZIP, _ZSTD = "gzip", "zstd"
_OF_PAGES = (_ZSTD, "snappy", _GZIP, "brotli", "lz4", "none")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_GROUP_ROWS = 131_072
_GATHERED_BYTES = 64 << 20
_MOST_OPEN = 64
_OF_A_COLUMN = 256
"""Bytes that a column of a gathered batch takes beside its values."""
Told = Callable[[int], object]


class Batches(Protocol):
    """Rows that can be read batch by batch."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""
        ...

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows."""
        ...


def write_file(
    rows: Batches,
    path: str | os.PathLike[str],
    file_format: str,
    *,
    partition_by: Iterable[str] | None = None,
    compression: str | None = None,
    tell: Told = lambda _: None,
) -> int:
    """The rows as a file, which replaces one that is there, or as a directory of one a partition; how many they are.

    ``tell`` is told how many are written so far. ``compression`` is that of Parquet's pages, or ``gzip`` of text; without it zstd, and of
    text what the ending ``.gz`` says. ``InvalidOption`` for what is no path of a file, a compression that there is not, and columns that
    no directory can be called by; ``TargetNotEmpty`` where partitions would be written to what is there; ``OSError`` names the path.
    """
    of = None if partition_by is None else names_given(partition_by, "partition_by", "partition_by=['bucket']")
    target = _target(path, is_folder=of is not None)
    made = _Made(file_format, _compression(file_format, compression, target.name), in_groups=of is not None)
    if of is not None:
        _check_partitions(rows.schema, of)
        return _written(rows, target, lambda waiting: _Partitions(waiting, rows.schema, of, made), tell)
    return _written(rows, target, lambda waiting: _open(made, waiting, rows.schema), tell)


class _Sink(Protocol):
    """What takes rows and is closed in the end."""

    def write(self, rows: pa.RecordBatch) -> None: ...

    def close(self) -> None: ...


def _target(path: str | os.PathLike[str], *, is_folder: bool) -> Path:
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise InvalidOption(f"{path!r} is no path.", next_step="Give a path as text, or a pathlib.Path.")
    if "://" in text:
        raise InvalidOption(
            f"{text!r} is not a file of this machine.", next_step="Export to a path, and copy the file from there."
        )
    found = Path(text)
    if "\0" in text:
        raise InvalidOption(f"{text!r} is no path.", next_step="Leave out the NUL.")
    if is_folder:
        if found.name in ("", ".."):
            raise InvalidOption(f"{text!r} is not the name of a new directory.", next_step="Name one to write, such as objects.")
        if found.exists() and not (found.is_dir() and not any(found.iterdir())):
            raise TargetNotEmpty(
                f"{text!r} is there already.", next_step="Remove it, or name another directory: partitions are never mixed."
            )
    elif not text or text.endswith("/") or found.is_dir():
        raise InvalidOption(f"{text!r} is not the name of a file.", next_step="Name a file to write, such as objects.parquet.")
    return found


def _compression(file_format: str, asked: str | None, name: str) -> str | None:
    if file_format not in FILE_FORMATS:
        raise InvalidOption(f"There is no format {file_format!r}.", next_step=f"Take one of {', '.join(FILE_FORMATS)}.")
    if file_format != PARQUET:
        if asked not in (None, _GZIP):
            raise InvalidOption(f"Text is not compressed by {asked!r}.", next_step="Take gzip, or leave it out.")
        return _GZIP if name.endswith(".gz") else asked
    if asked is not None and asked not in _OF_PAGES:
        raise InvalidOption(
            f"Parquet is not compressed by {asked!r}.", next_step=f"Take one of {', '.join(_OF_PAGES)}, or leave it out."
        )
    return asked or _ZSTD


@contextmanager
def _waiting(target: Path) -> Iterator[Path]:
    """A name beside the target, which what is there gets in the end; nothing is left of it where that fails."""
    waiting = target.with_name(f".export-{clock.random_token()}")
    try:
        yield waiting
        waiting.replace(target)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(target)) from error
    finally:
        with suppress(OSError):
            if waiting.is_dir():
                shutil.rmtree(waiting)
            else:
                waiting.unlink(missing_ok=True)


def _written(rows: Batches, target: Path, opened: Callable[[Path], _Sink], tell: Told) -> int:
    count = 0
    with _waiting(target) as waiting:
        sink = opened(waiting)
        try:
            for batch in rows.to_batches():
                sink.write(batch)
                count += len(batch)
                tell(count)
        finally:
            sink.close()
    return count


@dataclass(frozen=True)
class _Made:
    """How files are made; ``in_groups`` where what is written to one of Parquet at once is a row group, and leaves memory."""

    file_format: str
    compression: str | None
    in_groups: bool

    @property
    def ending(self) -> str:
        return f".{self.file_format}" + (".gz" if self.file_format != PARQUET and self.compression == _GZIP else "")


def _open(made: _Made, path: Path, schema: pa.Schema) -> _Sink:
    """A new file for rows of that schema."""
    with ExitStack() as opened:
        file: Any = opened.enter_context(path.open("xb"))
        if made.file_format == PARQUET:
            sink: _Sink = _Parquet(file, exported_schema(schema), made, opened)
        else:
            if made.compression == _GZIP:  # of the same rows the same bytes: no time, no name
                file = opened.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))
            sink = _Csv(file, csv_schema(schema), opened) if made.file_format == CSV else _JsonLines(file, opened)
        opened.pop_all()
    return sink


class _Parquet:
    def __init__(self, file: BinaryIO, schema: pa.Schema, made: _Made, opened: ExitStack) -> None:
        self._writer = import_module("pyarrow.parquet").ParquetWriter(file, schema, compression=made.compression)
        self._schema, self._in_groups = schema, made.in_groups
        self._closing = opened.pop_all()

    def write(self, rows: pa.RecordBatch) -> None:
        batch = exported_rows(rows, self._schema)
        if self._in_groups:
            self._writer.write_table(pa.Table.from_batches([batch]))
        else:
            self._writer.write_batch(batch)

    def close(self) -> None:
        with self._closing:
            self._writer.close()


class _Csv:
    def __init__(self, file: BinaryIO, schema: pa.Schema, opened: ExitStack) -> None:
        self._writer = import_module("pyarrow.csv").CSVWriter(file, schema)
        self._closing = opened.pop_all()

    def write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(csv_rows(rows))

    def close(self) -> None:
        with self._closing:
            self._writer.close()


class _JsonLines:
    def __init__(self, file: BinaryIO, opened: ExitStack) -> None:
        self._file, self._closing = file, opened.pop_all()

    def write(self, rows: pa.RecordBatch) -> None:
        self._file.writelines(json_lines(rows))

    def close(self) -> None:
        self._closing.close()


def _check_partitions(schema: pa.Schema, of: Sequence[str]) -> None:
    """``InvalidOption`` for columns that rows cannot be parted by: there is no such one, or it has no values that are one word."""
    for at, name in enumerate(of):
        if name not in schema.names:
            raise InvalidOption(
                f"What is read has no column {name!r} to part it by.", next_step=f"Take some of {', '.join(schema.names)}."
            )
        kind = schema.field(name).type
        if pa.types.is_nested(kind) or pa.types.is_floating(kind) or name in of[:at]:
            why = "is named twice" if name in of[:at] else f"has values of type {kind}, which name no directory"
            raise InvalidOption(f"The column {name!r} {why}.", next_step="Part rows by text, integers, booleans or times.")
    if not of or len(of) == len(schema):
        raise InvalidOption(
            "Rows are parted by at least one column, and one is left in the files.", next_step="Name fewer, or leave it out."
        )


@dataclass
class _Gathered:
    """The rows of one partition that are not written yet."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0


class _Partitions:
    """A directory of one a partition, in the order of the read within each."""

    def __init__(self, folder: Path, schema: pa.Schema, of: Sequence[str], made: _Made) -> None:
        folder.mkdir()
        self._folder, self._of, self._made = folder, of, made
        self._rest = pa.schema([each for each in schema if each.name not in of])
        self._gathered: dict[str, _Gathered] = {}
        self._bytes = 0
        self._open: OrderedDict[str, _Sink] = OrderedDict()
        self._begun: dict[str, int] = {}

    def write(self, rows: pa.RecordBatch) -> None:
        rest = rows.select(self._rest.names)
        for place, some in _grouped(_places(rows, self._of)):
            part = rest.take(some)
            gathered = self._gathered.setdefault(place, _Gathered())
            gathered.batches.append(part)
            gathered.rows += len(part)
            self._bytes += _taken(part)
            if gathered.rows >= _GROUP_ROWS:
                self._flush(place)
        if self._bytes > _GATHERED_BYTES:
            self._flush_all()

    def close(self) -> None:
        with ExitStack() as every:  # also where one of them fails
            every.callback(self._close_files)
            self._flush_all()

    def _close_files(self) -> None:
        with ExitStack() as every:
            for sink in self._open.values():
                every.callback(sink.close)

    def _flush_all(self) -> None:
        for place in list(self._gathered):
            self._flush(place)

    def _flush(self, place: str) -> None:
        gathered = self._gathered.pop(place)
        self._bytes -= sum(map(_taken, gathered.batches))
        sink = self._sink(place)
        for batch in pa.Table.from_batches(gathered.batches, self._rest).combine_chunks().to_batches():
            sink.write(batch)

    def _sink(self, place: str) -> _Sink:
        """The file of a partition that is open, as the one that was used last."""
        if place not in self._open:
            if len(self._open) >= _MOST_OPEN:
                self._open.popitem(last=False)[1].close()
            number = self._begun[place] = self._begun.get(place, -1) + 1
            folder = self._folder / place
            folder.mkdir(parents=True, exist_ok=True)
            self._open[place] = _open(self._made, folder / f"part-{number:05}{self._made.ending}", self._rest)
        self._open.move_to_end(place)
        return self._open[place]


def _taken(rows: pa.RecordBatch) -> int:
    return int(rows.nbytes + _OF_A_COLUMN * rows.num_columns)


def _places(rows: pa.RecordBatch, of: Sequence[str]) -> pa.DictionaryArray:
    """The directory of each row."""
    levels: list[pa.Array | str] = []
    for name in of:
        texts = scalar_texts(plain(rows.column(name))).dictionary_encode()
        quoted = [f"{name}={quote(text, safe='')}" for text in texts.dictionary.to_pylist()]
        levels.append(pc.fill_null(pa.array(quoted, pa.string()).take(texts.indices), f"{name}={_NO_VALUE}"))
    return pc.binary_join_element_wise(*levels, "/").dictionary_encode()


def _grouped(places: pa.DictionaryArray) -> Iterator[tuple[str, pa.Array]]:
    """Each place, and which rows are there, in their order."""
    codes = places.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(places.dictionary)), side="right")
    for place, begin, end in zip(places.dictionary.to_pylist(), [0, *ends[:-1]], ends, strict=True):
        yield place, pa.array(order[begin:end])
