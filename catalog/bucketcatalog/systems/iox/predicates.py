"""Delete predicates: which rows somebody has deleted of files that were there, kept until no file has any of them left.

A predicate names the files that it is about, and for those that compaction has made also the files whose rows they had: so whatever becomes
of these rows, also by a compaction that knew nothing of it, they are found by where they were added. One without conditions says that files
were removed. Of a file that was there and may have had such rows it says so, and of no other: what is added later, or was not read, stays.
Source: persistence document, sections 1.1 ("Tombstone Records") and 1.2 ("Soft Delete").
"""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...errors import CorruptionError, InvalidOption
from ...model.arrays import EXACT
from ...model.times import datetime_of, iso, kept_time
from ...model.widening import widened
from ...query.row_tests import COMPARISONS, Comparison
from ...query.snapshot import Snapshot
from ...store.base import Store
from ...store.retry import put_retrying
from ...write.transaction import WriteTransaction
from .files import new_id
from .names import marker_path

PREDICATES = "iox.delete_predicates"
MOST_CHUNKS = 8_192
"""Files that one row names: what is about more of them is several rows."""


@dataclass(frozen=True)
class Predicate:
    """What is deleted of the files ``chunks``: rows that meet every condition, all where there is none."""

    id: str
    conditions: tuple[Comparison, ...]
    chunks: tuple[str, ...] = field(repr=False)
    path: str | None = None

    @property
    def is_removal(self) -> bool:
        """Whether it says that the files were removed."""
        return not self.conditions

    def of(self, table: str, rows: pa.Table) -> pa.ChunkedArray | pa.Array:
        """For each row of one of the files whether it is deleted; columns have the table's types."""
        found: Any = pa.repeat(pa.scalar(True), len(rows))
        for each in self.conditions:
            if each.column in rows.column_names and not pa.types.is_null(rows[each.column].type):
                found = pc.and_(found, _met(each, table, rows[each.column]))
            elif each.comparison != "is null" and not (each.comparison == "in" and None in each.value):  # no row has a value
                return pa.repeat(pa.scalar(False), len(rows))
        return found

    def row(self, table: str) -> dict[str, Any]:
        """As ``iox.delete_predicates`` has it."""
        return {
            "table": table,
            "id": self.id,
            "chunks": list(self.chunks),
            "conditions": [
                {"column": each.column, "comparison": each.comparison, "value": _as_json(each.value)} for each in self.conditions
            ],
            "path": self.path,
        }

    @classmethod
    def parse(cls, row: Mapping[str, Any]) -> Predicate:
        """What a row says; ``CorruptionError`` for a comparison that there is not."""
        conditions = tuple(
            Comparison(each["column"], each["comparison"], None if each["value"] is None else json.loads(each["value"]))
            for each in row["conditions"] or ()
        )
        unknown = [each.comparison for each in conditions if each.comparison not in COMPARISONS]
        if unknown:
            raise CorruptionError(
                f"The delete predicate {row['id']} compares by {unknown[0]!r}, which this release does not know."
            )
        return cls(row["id"], conditions, tuple(row["chunks"] or ()), row["path"])


def predicates_of(snapshot: Snapshot, table: str) -> list[Predicate]:
    """Those of a data table, in the order of their ids."""
    if PREDICATES not in snapshot.definitions:
        return []
    columns = ["id", "chunks", "conditions", "path"]
    return [
        Predicate.parse(row) for row in snapshot.scan(PREDICATES, columns=columns, where={"table": table}).to_arrow().to_pylist()
    ]


def delete_rows(
    transaction: WriteTransaction,
    store: Store,
    place: tuple[str, str],
    table: str,
    chunks: Sequence[str],
    conditions: Iterable[Comparison] = (),
    *,
    time: int,
    is_told: bool = True,
) -> list[str]:
    """Say in a transaction of ``place``, a writer in a database, what is deleted of files; returns the ids of the predicates.

    Each is put below the writer's data first, for who has nothing but files, unless such are not to be told.
    """
    said, made = tuple(conditions), list[str]()
    for start in range(0, len(chunks), MOST_CHUNKS):
        id_ = new_id(time)
        path = marker_path(*place, table, id_) if is_told else None
        predicate = Predicate(id_, said, tuple(chunks[start : start + MOST_CHUNKS]), path)
        row = predicate.row(table)
        if path is not None:
            put_retrying(store, path, json.dumps({"version": 1, **row}, ensure_ascii=False, sort_keys=True).encode())
        transaction.put(PREDICATES, [row])
        made.append(id_)
    return made


def settled(condition: Comparison, table: str, columns: pa.Schema, now: int) -> Comparison:
    """The condition with its values as its column has them, so that it says the same whatever the column's type becomes, and whenever.

    Times that count from now count from ``now``.

    ``InvalidOption`` for a column that the table does not have, or a value that does not fit it.
    """
    tested = condition.as_tested(table, columns, now)
    if tested.value is None or tested.comparison == "starts with":
        return tested
    kind = columns.field(condition.column).type
    several = isinstance(tested.value, list)
    given = tested.value if several else [tested.value]
    try:
        values = pa.array(given, kind)
        found = (values.cast(_of_microseconds(kind)) if _has_unit(kind) else values).to_pylist()
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise InvalidOption(
            f"The condition on column {condition.column!r} of {table!r} does not fit: {error}.",
            next_step="Name times to the microsecond, and text as text.",
        ) from None
    return replace(tested, value=found if several else found[0])


def _as_json(value: Any) -> str | None:
    return None if value is None else json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A value as JSON has it; ``_value`` makes it what it was, given the column's type."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in value]
    if isinstance(value, datetime.datetime):
        return iso(value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC))
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(microseconds=1)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, Decimal) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value


def _met(condition: Comparison, table: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """For each value of the column whether it meets the condition, whose value is as JSON has it."""
    value = condition.value
    several = isinstance(value, (list, tuple))
    named = [_value(each, values.type) for each in (value if several else [value])]
    kind = _compared(values.type, [each for each in named if each is not None])
    rows = pa.table({condition.column: values.cast(kind, safe=False)})
    return Comparison(condition.column, condition.comparison, named if several else named[0]).of(table, rows)


def _compared(kind: pa.DataType, values: Sequence[Any]) -> pa.DataType:
    """The type in which values of a column are compared with these, which may be finer or larger than it has them by now."""
    if pa.types.is_integer(kind):
        if any(isinstance(value, float) for value in values):
            return pa.float64()
        return kind if _fit(values, kind) else EXACT
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_decimal(kind):
        for value in values:
            kind = widened(kind, pa.scalar(value).type) or kind
        return kind
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return _of_microseconds(kind) if _has_unit(kind) and not _fit(values, kind) else kind


def _fit(values: Sequence[Any], kind: pa.DataType) -> bool:
    """Whether a type has exactly these values."""
    try:
        pa.array(values, _of_microseconds(kind)).cast(kind) if _has_unit(kind) else pa.array(values, kind)
    except (pa.ArrowException, ValueError, OverflowError):
        return False
    return True


def _has_unit(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind))


def _of_microseconds(kind: pa.DataType) -> pa.DataType:
    """Moments, times of day or durations of that kind in microseconds."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.time64("us") if pa.types.is_time(kind) else pa.duration("us")


def _value(value: Any, kind: pa.DataType) -> Any:
    """A value of a column of that kind, from what JSON has."""
    if pa.types.is_duration(kind) and isinstance(value, int):
        return datetime.timedelta(microseconds=value)
    if not isinstance(value, str):
        return value
    if pa.types.is_timestamp(kind):
        moment = datetime_of(kept_time(value))
        return moment if kind.tz is not None else moment.replace(tzinfo=None)
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return base64.b64decode(value)
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_date(kind):
        return datetime.date.fromisoformat(value)
    return datetime.time.fromisoformat(value) if pa.types.is_time(kind) else value
