"""What has to be said of tables, if anything, and tables that are made of schemas.

A transaction carries the definitions of its tables, so most tables are declared by the first rows that they have. What is declared here
needs none: the database knows the table while it is empty, and what has changed of it before anybody writes by that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..errors import InvalidOption
from ..format.schemas import make_table
from ..format.wanted import Limits, Wanted
from ..model.names import names_given
from ..model.tables import Table
from ..model.times import Age, age_micros
from ..query.database import Database
from .commit import Commit, Committed

OPERATION = "declare"


@dataclass(frozen=True)
class CreatedTable:
    """A table that was made of a schema.

    ``proto`` is the text of its ``.proto``, from which compilers make the same definition, and ``file`` where that belongs below a
    ``--proto_path``. ``committed`` is None where the database had the table so already. ``added`` and ``removed`` are the columns that the
    table shows and did not show before, and the other way round; one that was renamed is neither.
    """

    name: str
    proto: str
    file: str
    committed: Committed | None
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def write_proto(self, folder: str | Path) -> Path:
        """Write the ``.proto`` below a folder, which is a ``--proto_path`` then, and return where it is."""
        path = Path(folder, self.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.proto)
        return path


class Declares(Protocol):
    """A writer, as far as it says what tables are."""

    def declare(self, tables: Iterable[str | Table]) -> Committed | None: ...


def declaring(database: Database, by: str, tables: Iterable[str | Table]) -> Commit | None:
    """The commit that says what these tables are, those that were made known by their names; None where nothing has to be said."""
    given = [database.made_known(table) if isinstance(table, str) else table for table in tables]
    new = database.to_declare(given, by)
    names = ", ".join(table.name for table in new)
    return Commit(operation=OPERATION, metadata={"tables": names}, declares=new) if new else None


def wanted_table(
    name: str,
    schema: Any,
    *,
    key: Iterable[str],
    id: str | None,
    keep_tombstones: bool | None,
    tombstone_retention: Age | None,
    rename: Mapping[str, str] | None,
    remove: Iterable[str],
    minimum: Mapping[str, int | None] | None = None,
    maximum: Mapping[str, int | None] | None = None,
    allowed: Mapping[str, Iterable[str | int] | None] | None = None,
    parent: tuple[str, str] | None = None,
    parent_must_exist: bool | None = None,
) -> Wanted:
    """What a user wants of a table; ``InvalidOption`` for what is no schema, no key, no age, no limit or no parent."""
    if rename is not None and not isinstance(rename, Mapping):
        raise InvalidOption(f"{rename!r} renames nothing.", next_step='Map old names to new ones: rename={"old": "new"}.')
    seconds = None
    if tombstone_retention is not None:
        seconds = -(-age_micros(tombstone_retention) // 1_000_000)
    return Wanted(
        name=name,
        schema=_schema_of(schema),
        key=names_given(key, "columns of the key", f"key=['{key if isinstance(key, str) else 'id'}']"),
        id=id,
        keep_tombstones=keep_tombstones,
        tombstone_retention_seconds=seconds,
        limits=Limits(
            _by_column("minimum", minimum, 0, _limit),
            _by_column("maximum", maximum, 9, _limit),
            _by_column("allowed", allowed, ["new", "done"], _allowed),
        ),
        parent=None if parent is None else _parent(parent),
        parent_must_exist=parent_must_exist,
        renamed=rename or {},
        removed=names_given(remove, "columns to remove", "remove=['note']"),
    )


def _by_column(option: str, given: Any, example: Any, convert: Callable[[Any], Any]) -> dict[str, Any]:
    """What an option maps columns to, None as it is."""
    example = f"Map columns to what they may hold: {option}={{'state': {example!r}}}, or to None for no limit."
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidOption(f"{option}={given!r:.100} limits no column.", next_step=example)
    try:
        return {column: None if limit is None else convert(limit) for column, limit in given.items()}
    except (TypeError, ValueError) as error:
        raise InvalidOption(f"{option}={given!r:.100} cannot be: {error}.", next_step=example) from None


def _limit(given: Any) -> int:
    if not isinstance(given, (int, np.integer)) or isinstance(given, bool):
        raise TypeError(f"{given!r:.100} is no integer")
    if not -(1 << 63) <= given < 1 << 63:
        raise ValueError(f"{given} has more than 64 bits")
    return int(given)


def _allowed(given: Any) -> list[str]:
    """Values as a declaration has them."""
    values = [] if isinstance(given, (str, bytes)) or not isinstance(given, Iterable) else list(given)
    if not values:
        raise TypeError(f"{given!r:.100} is no list of values")
    return [value if isinstance(value, str) else str(_limit_of_any_size(value)) for value in values]


def _limit_of_any_size(given: Any) -> int:
    if not isinstance(given, (int, np.integer)) or isinstance(given, bool):
        raise TypeError(f"{given!r:.100} is no text and no integer")
    return int(given)


def _parent(given: Any) -> tuple[str, str]:
    """A table, and the column with the id of a row of it."""
    if not isinstance(given, (tuple, list)) or len(given) != 2 or not all(isinstance(name, str) and name for name in given):
        raise InvalidOption(
            f"{given!r:.100} is no parent.",
            next_step='Give its table, and the column with its id: parent=("jobs.runs", "run_id").',
        )
    return given[0], given[1]


def _schema_of(given: Any) -> pa.Schema:
    """A schema, or that of Arrow data or of a frame of pandas or Polars, of which no row is looked at where the frame knows its types."""
    held = getattr(given, "schema", None)
    if isinstance(given, pa.Schema) or isinstance(held, pa.Schema):
        return given if isinstance(given, pa.Schema) else held
    try:
        if hasattr(given, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(given).schema
        return pa.schema(given)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidOption(
            f"{given!r:.200} is no schema of Arrow's: {str(error).splitlines()[0]}.",
            next_step="Give a pyarrow.Schema, pairs of names and types, or a frame; of Spark's use pyspark_bucketcatalog.create_table.",
        ) from None


def create_table(database: Database, writer: Declares, wanted: Wanted) -> tuple[Table, CreatedTable]:
    """Make a table of a schema as the database has it by now, and declare it."""
    known = database.look().definitions.get(wanted.name)
    made = make_table(wanted, known)
    committed = writer.declare([made.table])
    before, now = _shown(known), _shown(made.table)
    added = tuple(name for number, name in now.items() if number not in before)
    removed = tuple(name for number, name in before.items() if number not in now)
    return made.table, CreatedTable(wanted.name, made.proto, made.file, committed, added, removed)


def _shown(table: Table | None) -> dict[int, str]:
    """The columns that a table shows, by their numbers."""
    return {} if table is None else {column.number: column.name for column in table.shown_columns}
