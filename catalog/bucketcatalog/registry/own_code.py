"""What a system reads, writes and deletes by code of its own, on which nobody else depends: what that raises is the system's error."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import BucketCatalogError, CatalogWarning, InvalidOption, UnknownTable
from ..query.blame import blaming, failed, shown
from ..query.files import Files
from ..query.reads import Read, ReadTask, refuse_options
from ..query.snapshot import Reads, Snapshot
from ..store.base import Store
from ..where.conditions import Where
from .fields import DELETER
from .system import imported

if TYPE_CHECKING:
    from ..maintain.gc.data import Deletions
    from ..write.parts import Parts, PartTask, WritePlace, Writes
    from ..write.transaction import WriteTransaction


@dataclass(frozen=True)
class OwnReads:
    """What a system reads itself: what it raises is its error, and a warning where all are looked at."""

    system: str
    reads: Reads

    def names(self, snapshot: Snapshot) -> Iterable[str]:
        """See ``Reads``; none where they cannot be had."""
        part = "the names of what it reads"
        try:
            with blaming(self.system, part):
                found = self.reads.names(snapshot)
                names = [] if isinstance(found, str) else list(found)
                if isinstance(found, str) or not all(isinstance(name, str) for name in names):
                    raise failed(self.system, part, f"{shown(found)} came of it, and not texts")
                return names
        except BucketCatalogError as error:
            warnings.warn(str(error), CatalogWarning, stacklevel=4)
            return []

    def read(self, snapshot: Snapshot, name: str, columns: Sequence[str] | None, where: Where, **options: Any) -> Read | None:
        """See ``Reads``; ``BrokenSystem`` where the system fails at it, ``InvalidOption`` for an option that it does not take."""
        part = f"its read of {name!r}"
        with blaming(self.system, part):
            taken = options if _takes(self.reads.read, 4, options) else {}
            found = self.reads.read(snapshot, name, columns, where, **taken)
        if found is not None:
            refuse_options(name, {option: value for option, value in options.items() if option not in taken})
        if not isinstance(found, Read | None):
            raise failed(self.system, part, f"{shown(found)} came of it, and not a Read or None")
        return None if found is None else OwnRead(self.system, part, found)

    def no_table(self, name: str) -> UnknownTable | None:
        """See ``Shows``; None where the system has nothing to say."""
        told = getattr(self.reads, "no_table", lambda _: None)
        with blaming(self.system, f"what it says of {name!r}"):
            found = told(name)
        return found if isinstance(found, UnknownTable) else None


def _takes(call: Callable[..., Any], arguments: int, options: Mapping[str, Any]) -> bool:
    """Whether something that takes so many arguments can be called with these options too."""
    try:
        signature(call).bind(*[None] * arguments, **options)
    except (TypeError, ValueError):
        return False
    return True


class OwnRead(Read):
    """A read of what a system reads itself; see ``Read`` for all of it."""

    def __init__(self, system: str, part: str, read: Read) -> None:
        self._system = system
        self._part = part
        self._read = read

    @property
    def schema(self) -> pa.Schema:
        """The columns of what is returned."""
        with blaming(self._system, self._part):
            return self._read.schema

    @property
    def available(self) -> pa.Schema:
        """The columns that can be asked for."""
        with blaming(self._system, self._part):
            return self._read.available

    def tasks(self, most_rows: int) -> list[ReadTask]:
        """The read in parts."""
        with blaming(self._system, self._part):
            return [OwnReadTask(self._system, self._part, task) for task in self._read.tasks(most_rows)]

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in batches."""
        with blaming(self._system, self._part):
            yield from self._read.to_batches()

    def to_arrow(self) -> pa.Table:
        """All rows as one table."""
        with blaming(self._system, self._part):
            return self._read.to_arrow()

    def only(self, columns: Sequence[str]) -> Read:
        """The same rows with fewer columns."""
        with blaming(self._system, self._part):
            found = self._read.only(columns)
            return OwnRead(self._system, self._part, found) if isinstance(found, Read) else self

    @property
    def lies_in_files(self) -> bool:
        """Whether engines may read them."""
        with blaming(self._system, self._part):
            return self._read.lies_in_files

    def files(self) -> Files:
        """The read as files."""
        with blaming(self._system, self._part):
            return self._read.files()

    def to_duckdb(self, connection: Any) -> Any:
        """The rows as a relation of DuckDB's."""
        with blaming(self._system, self._part):
            return self._read.to_duckdb(connection)

    def to_polars(self) -> Any:
        """The rows as a LazyFrame."""
        with blaming(self._system, self._part):
            return self._read.to_polars()

    def explain(self) -> str:
        """What is read and what is skipped."""
        with blaming(self._system, self._part):
            return self._read.explain()


@dataclass(frozen=True)
class OwnReadTask:
    """A part of such a read, wherever it is done."""

    system: str
    part: str
    task: ReadTask

    @property
    def rows(self) -> int:
        """An upper bound."""
        with blaming(self.system, self.part):
            return self.task.rows

    def read(self, store: Store) -> Iterator[pa.Table]:
        """The rows."""
        with blaming(self.system, self.part):
            yield from self.task.read(store)


@dataclass(frozen=True)
class OwnWrites:
    """Who takes rows for names of a system that are no tables."""

    system: str
    writes: Writes

    def takes(self, name: str) -> bool:
        """See ``Writes``."""
        with blaming(self.system, f"its write of {name!r}"):
            return self.writes.takes(name)

    def begin(self, place: WritePlace, name: str, schema: pa.Schema, **options: Any) -> Parts:
        """See ``Writes``; ``BrokenSystem`` where the system fails at it, now or later, ``InvalidOption`` for an option it does not take."""
        from ..write.parts import Parts  # who only reads has no use for it

        part = f"its write of {name!r}"
        with blaming(self.system, part):
            for option in () if _takes(self.writes.begin, 3, options) else options:
                raise InvalidOption(f"A write of {name!r} takes no option {option!r}.", next_step="Leave it out.")
            begun = self.writes.begin(place, name, schema, **options)
        if not isinstance(begun, Parts):
            raise failed(self.system, part, f"{shown(begun)} came of it, and not Parts")

        return Parts(OwnPartTask(self.system, part, begun.task), OwnFinish(self.system, part, begun.finish))


@dataclass(frozen=True)
class OwnFinish:
    """What names parts in a transaction, in whichever process commits it."""

    system: str
    part: str
    finish: Callable[[WriteTransaction, Sequence[Any]], None]

    def __call__(self, transaction: WriteTransaction, written: Sequence[Any]) -> None:
        """See ``Parts``."""
        with blaming(self.system, self.part):
            self.finish(transaction, written)


@dataclass(frozen=True)
class OwnPartTask:
    """How one part is written, wherever that is done."""

    system: str
    part: str
    task: PartTask

    def write(self, store: Store, rows: Iterable[pa.RecordBatch]) -> Any:
        """See ``PartTask``."""
        with blaming(self.system, self.part):
            return self.task.write(store, rows)


@dataclass(frozen=True)
class OwnDeleter:
    """Asks a system's own callable, imported in the process that deletes."""

    system: str
    text: str
    store: Store

    def delete(self, batch: pa.Table, *, dry_run: bool = False) -> Deletions:
        """See ``Deleter``."""
        from ..maintain.gc.data import Calling, Deletions  # who only reads has no use for it

        if dry_run:
            return Deletions.pretended(batch)
        make = imported(self.system, "collects", self.text, DELETER)
        with blaming(self.system, f"its deleter {self.text!r}"):
            call = make(self.store)
        return Calling(call, f"the deleter {self.text!r} of the system {self.system!r}").delete(batch)
