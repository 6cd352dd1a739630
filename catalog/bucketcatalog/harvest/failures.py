"""What could not be catalogued, as the table ``harvest_errors`` is to show it: what is wrong now, and nothing that is over."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ..format.definitions import core_tables
from ..query.snapshot import Snapshot
from .scope import Scope
from .source import EntryError

ERRORS = core_tables()["harvest_errors"]
_COLUMNS = ("path", "code", "message")
_FEW = 10


@dataclass(frozen=True, slots=True)
class Failed:
    """An entry that cannot be catalogued, as ``harvest_errors`` shows it."""

    path: str
    code: str
    message: str


class Failures:
    """The errors of one run. They are held in memory, unlike the entries."""

    def __init__(self) -> None:
        self._found: dict[str, EntryError] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, error: EntryError) -> None:
        """Take note of an error."""
        self._found[error.path] = error

    @property
    def found(self) -> tuple[EntryError, ...]:
        """All of them."""
        return tuple(self._found.values())

    def first(self) -> tuple[Failed, ...]:
        """Some of them, in the order of their paths."""
        return tuple(Failed(path, self._found[path].code, self._found[path].message) for path in sorted(self._found)[:_FEW])

    def changes(self, snapshot: Snapshot, source: str, scope: Scope) -> tuple[pa.Table, pa.Table]:
        """Rows to put, for errors that are new or other than known, and keys to delete, for those in scope that are over."""
        columns = [*_COLUMNS, "_version"]
        known = snapshot.scan("harvest_errors", columns=columns, where={"source": source}).to_arrow().combine_chunks()
        found = pa.table(
            {
                "path": pa.array(list(self._found), pa.string()),
                "code": pa.array([error.code for error in self._found.values()], pa.string()),
                "message": pa.array([error.message for error in self._found.values()], pa.string()),
            }
        )
        new = found.filter(pc.invert(_among(found, known)))
        over = known.filter(pc.invert(pc.is_in(known.column("path"), value_set=found.column("path"))))
        in_scope = pa.array([scope.covers(path) for path in over.column("path").to_pylist()], pa.bool_())
        over = over.filter(in_scope).select(["path", "_version"])
        return _with_source(new, source), _with_source(over, source)


def _among(found: pa.Table, known: pa.Table) -> pa.Array:
    """Which rows of ``found`` are in ``known`` with all their columns."""
    at = pc.index_in(found.column("path"), value_set=known.column("path"))
    same = at.is_valid()
    for name in _COLUMNS[1:]:
        same = pc.and_(same, pc.fill_null(pc.equal(known.column(name).take(at), found.column(name)), False))
    return same


def _with_source(rows: pa.Table, source: str) -> pa.Table:
    return rows.add_column(0, "source", pa.repeat(pa.scalar(source), len(rows)))
