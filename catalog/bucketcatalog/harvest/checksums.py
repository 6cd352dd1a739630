"""Checksums of what files hold, made once of each version: what the catalog has one of is not read again.

Several threads read while the merge waits for them, each a piece of one file at a time. What changes while it is read has no checksum
this time; what cannot be read is catalogued without one, and reported.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from threading import Event, Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import BucketCatalogError, NotFound
from .source import Changed, EntryError, ReadSource, Report, entry_error

ALGORITHM = "SHA256"
"""As S3 calls it."""
PART_ROWS, PART_BYTES = 4_096, 16 << 30
"""After how many entries, or bytes of them, what was found is handed on, so that it can be committed."""
_RUN_ROWS, _RUN_BYTES = 64, 16 << 20
"""What a thread does at a time: many small files, or one large one."""
_TELL_S = 0.5
_ENTRY = ("name", "identity", "content_length", "modified", "etag")
_TEXT = pa.string()

Entry = Mapping[str, Any]
Found = str | EntryError | None


class Checksums:
    """Adds the columns ``checksum`` and ``checksum_algorithm`` to entries of a source; see ``compare.Look``.

    At most ``threads`` files are read at once, and of each a piece is in memory. ``tell`` is called now and then meanwhile.
    """

    def __init__(
        self, source: ReadSource, report: Report, *, threads: int | None = None, tell: Callable[[], None] | None = None
    ) -> None:
        self._source = source
        self._report = report
        self._threads = min(source.readers, threads or source.readers)
        self._tell = tell
        self._stop, self._lock = Event(), Lock()
        self.files = self.bytes = 0

    def parts(self, entries: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Entries in parts that do not take too long."""
        return (entries.slice(start, end - start) for start, end in _portions(_lengths(entries), PART_ROWS, PART_BYTES))

    def __call__(self, entries: pa.RecordBatch, known: pa.RecordBatch | None) -> pa.RecordBatch:
        """The entries with what the catalog has of the same versions, and where that is nothing with what they hold."""
        before = pa.nulls(len(entries), _TEXT) if known is None else known.column("checksum").cast(_TEXT)
        named = pa.nulls(len(entries), _TEXT) if known is None else known.column("checksum_algorithm").cast(_TEXT)
        wanted = np.flatnonzero(np.asarray(pc.and_(before.is_null(), _plain(entries))))
        made = self._made(entries.take(pa.array(wanted)))
        places = np.arange(len(entries))
        places[wanted] = len(entries) + np.arange(len(wanted))
        checksums = pa.concat_arrays([before, made]).take(pa.array(places))
        said = pc.if_else(pc.and_(before.is_null(), checksums.is_valid()), ALGORITHM, named)
        return entries.append_column("checksum", checksums).append_column("checksum_algorithm", said)

    def _made(self, entries: pa.RecordBatch) -> pa.Array:
        if not len(entries):
            return pa.nulls(0, _TEXT)
        columns = {name: entries.column(name) for name in _ENTRY if name in entries.schema.names}
        columns["modified"] = columns["modified"].cast(pa.int64())
        rows = pa.record_batch(columns).to_pylist()
        runs = [rows[start:end] for start, end in _portions(_lengths(entries), _RUN_ROWS, _RUN_BYTES)]
        found = [one for run in self._read(runs) for one in run]
        for one in found:
            if isinstance(one, EntryError):
                self._report(one)
        return pa.array([one if isinstance(one, str) else None for one in found], _TEXT)

    def _read(self, runs: Sequence[Sequence[Entry]]) -> list[list[Found]]:
        """What becomes of each run. Whoever interrupts it does not wait until a large file has been read."""
        with ThreadPoolExecutor(min(self._threads, len(runs)), thread_name_prefix="harvest-read") as pool:
            try:
                waiting = [pool.submit(self._run, run) for run in runs]
                left = set(waiting)
                while left:
                    _, left = wait(left, timeout=_TELL_S, return_when=FIRST_EXCEPTION)
                    if self._tell is not None:
                        self._tell()
                return [one.result() for one in waiting]
            except BaseException:
                self._stop.set()
                raise

    def _run(self, run: Sequence[Entry]) -> list[Found]:
        return [None if self._stop.is_set() else self._one(entry) for entry in run]

    def _one(self, entry: Entry) -> Found:
        try:
            made, size = hashlib.sha256(), 0
            for piece in self._source.pieces(entry):
                made.update(piece)
                size += len(piece)
                with self._lock:
                    self.bytes += len(piece)
                if self._stop.is_set():
                    return None
        except (Changed, NotFound, FileNotFoundError):
            return None  # what is gone, or another version by now, the next harvest sees
        except (OSError, BucketCatalogError) as error:
            return entry_error(entry["name"].encode(), error, unreadable=False)
        with self._lock:
            self.files += 1
        return b64encode(made.digest()).decode()


def _plain(entries: pa.RecordBatch) -> pa.Array:
    """Which of the entries are files."""
    if "file_type" not in entries.schema.names:
        return pa.repeat(True, len(entries))
    return entries.column("file_type").is_null()


def _lengths(entries: pa.RecordBatch) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.asarray(pc.fill_null(entries.column("content_length"), 0), np.int64)


def _portions(lengths: np.ndarray[Any, np.dtype[np.int64]], rows: int, size: int) -> Iterator[tuple[int, int]]:
    """Where to cut: each portion has at most so many rows, and but for its last one less than so many bytes."""
    ends = np.cumsum(np.minimum(lengths, size), dtype=np.float64)
    start, before = 0, 0.0
    while start < len(lengths):
        end = min(start + rows, int(np.searchsorted(ends, before + size)) + 1, len(lengths))
        yield start, end
        start, before = end, float(ends[end - 1])
