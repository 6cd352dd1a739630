"""What the Parquet statistics of files say, as rows of ``iox.statistics``, and which row groups may hold what somebody looks for.

A value stands there as one of three types, whatever the type of its column, so that a table of its own can be asked for it and files of
different schemas can be compared: whole numbers, fractions, or bytes. Moments and times of day are microseconds. What is rounded, is so
outwards: no row group is left out that has what is looked for. Source: persistence document, section 1.1, "Statistics".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...model.arrays import Mask, one_chunk
from ...query.row_tests import Wanted

TABLE = "iox.statistics"
INT, DOUBLE, BYTES = "int", "double", "bytes"
_TYPES = {INT: pa.int64(), DOUBLE: pa.float64(), BYTES: pa.binary()}
_MICROS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_LARGEST = (1 << 63) - 1
_MOST_DIGITS = 76
_ENDS = [(f"{end}_{name}", kind) for name, kind in _TYPES.items() for end in ("min", "max")]
_SAID = [("rows", pa.int64()), ("nulls", pa.int64()), *_ENDS]
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("table", "column", "partition", "chunk")),
        *_SAID,
        ("row_groups", pa.list_(pa.struct(_SAID))),
        ("bloom_filters", pa.list_(pa.binary())),
    ]
)
"""The columns of the table that are filled here."""
Said = dict[str, Any]


def kind_of(kind: pa.DataType) -> str | None:
    """Which of the three a column's values stand as; None for a column of which only nulls are counted."""
    if pa.types.is_decimal(kind) or kind in (pa.float32(), pa.float64()):
        return DOUBLE
    if pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return BYTES
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return INT
    return INT if pa.types.is_timestamp(kind) else None


def statistics_of(metadata: Any, schema: pa.Schema, place: Mapping[str, str], filters: Mapping[str, Sequence[bytes]]) -> pa.Table:
    """The rows about a file that its footer's ``metadata`` gives, whose columns are ``schema``: one for each column.

    ``place`` says its table, partition and chunk; ``filters`` has the Bloom filters of its row groups, by column. Columns within others are
    called with a dot between; where that is another's name, or within a list or a map, there is no row.
    """
    groups: dict[str, list[Said]] = {}
    for number in range(metadata.num_row_groups):
        for column, said in _columns_of(metadata.row_group(number), schema):
            groups.setdefault(column, []).append(said)
    rows = [
        {
            **place,
            "column": column,
            **_together(said),
            "row_groups": said if len(said) > 1 else None,
            "bloom_filters": filters.get(column),
        }
        for column, said in groups.items()
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def _together(groups: Sequence[Said]) -> Said:
    """What is true of all row groups: an end or a count that one of them does not tell nobody knows."""
    if len(groups) == 1:
        return groups[0]
    nulls = [said["nulls"] for said in groups]
    found: Said = {"rows": sum(said["rows"] for said in groups), "nulls": None if None in nulls else sum(nulls)}
    valued = [said for said in groups if said["nulls"] != said["rows"]]
    for name, _ in _ENDS:
        ends = [said[name] for said in valued if name in said]
        if ends and len(ends) == len(valued):
            found[name] = (min if name.startswith("min") else max)(ends)
    return found


def columns_of(schema: pa.Schema) -> dict[str, tuple[int, pa.DataType]]:
    """By the name under which it stands here the place and the type of each column that there may be a row about."""
    leaves = [leaf for field in schema for leaf in _leaves(field.name, field.type)]
    times = Counter(name for name, _ in leaves)
    return {
        name: (at, kind) for at, (name, kind) in enumerate(leaves) if name and times[name] == 1 and not pa.types.is_null(kind)
    }


def _columns_of(group: Any, schema: pa.Schema) -> Iterator[tuple[str, Said]]:
    for name, (at, kind) in columns_of(schema).items():
        found = group.column(at).statistics
        nulls = found.null_count if found is not None and found.has_null_count else None
        yield name, {"rows": group.num_rows, "nulls": nulls, **_ends(kind, found)}


def _leaves(name: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The columns that Parquet makes of one, in its order; those within lists and maps have no name."""
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{name}.{field.name}" if name else "", field.type)
    elif pa.types.is_map(kind):
        yield from (*_leaves("", kind.key_type), *_leaves("", kind.item_type))
    elif pa.types.is_nested(kind):
        if not pa.types.is_union(kind):  # which no file has
            yield from _leaves("", kind.value_type)
    else:
        yield name, kind


def _ends(kind: pa.DataType, found: Any) -> dict[str, Any]:
    """The least and the greatest value, where the file says them and they can stand here."""
    stands_as = kind_of(kind)
    if found is None or stands_as is None or not found.has_min_max:
        return {}
    low, high = (_stored(kind, raw, up=up) for raw, up in ((found.min_raw, False), (found.max_raw, True)))
    return {} if low is None or high is None else {f"min_{stands_as}": low, f"max_{stands_as}": high}


def _stored(kind: pa.DataType, raw: Any, *, up: bool) -> Any:
    """A value as Parquet stores it, as it stands here."""
    if pa.types.is_decimal(kind):
        if abs(kind.scale) > _MOST_DIGITS:
            raise ValueError(f"there is no decimal number of the scale {kind.scale}")
        number = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        return _outwards(number / 10**kind.scale, up=up)
    if pa.types.is_unsigned_integer(kind):
        number = raw & ((1 << kind.bit_width) - 1)
        return number if number <= _LARGEST else None
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        times, per = _MICROS["ms" if kind.unit == "s" else kind.unit]
        return _in_range(-(-raw * times // per) if up else raw * times // per)
    return int(raw) if isinstance(raw, bool) else raw


def _in_range(number: int) -> int | None:
    return number if -_LARGEST <= number <= _LARGEST else None


def _outwards(number: float, *, up: bool) -> float:
    return float(np.nextafter(number, np.inf if up else -np.inf))


@dataclass(frozen=True)
class Sought:
    """What is looked for in a column, as values stand here: files may have the column with any of the types that it is widened from."""

    column: str
    wanted: Wanted
    kind: pa.DataType

    @property
    def is_comparable(self) -> bool:
        """Whether statistics can tell anything of it but whether there are nulls."""
        return kind_of(self.kind) is not None

    def may_have(self, statistics: pa.Table) -> Mask:
        """For each row about the column whether its row group may have a row that is looked for."""
        nulls = pc.fill_null(statistics["nulls"], 1)
        only_nulls = np.asarray(pc.fill_null(pc.equal(statistics["nulls"], statistics["rows"]), False))
        found: Mask = ~only_nulls
        if (stands_as := kind_of(self.kind)) is not None:
            found &= self._may_lie(statistics, stands_as)
        if self.wanted.nothing:
            found |= np.asarray(pc.greater(nulls, 0))
        return found

    def _may_lie(self, statistics: pa.Table, stands_as: str) -> Mask:
        low, high = (one_chunk(statistics[f"{end}_{stands_as}"]) for end in ("min", "max"))
        if stands_as == DOUBLE:  # a file may have whole numbers there
            low, high = (
                pc.coalesce(ends, one_chunk(statistics[f"{end}_{INT}"]).cast(pa.float64(), safe=False))
                for end, ends in (("min", low), ("max", high))
            )
        return self._as_here().may_lie(low, high)

    def _as_here(self) -> Wanted:
        """The same with values as they stand here."""
        convert = _conversion(self.kind)
        wanted = self.wanted
        if wanted.values is not None:
            return Wanted(convert(wanted.values), nothing=wanted.nothing)
        low, high = (None if end is None else convert(pa.repeat(end, 1))[0] for end in (wanted.low, wanted.high))
        is_exact = not (pa.types.is_decimal(self.kind) or pa.types.is_uint64(self.kind) or _is_of_nanoseconds(self.kind))
        return Wanted(None, low, high, above=wanted.above and is_exact, below=wanted.below and is_exact)


def _is_of_nanoseconds(kind: pa.DataType) -> bool:
    return bool((pa.types.is_timestamp(kind) or pa.types.is_time(kind)) and kind.unit == "ns")


def _conversion(kind: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    """Makes values of a column what they stand as here."""
    if pa.types.is_timestamp(kind):
        return lambda values: values.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    if pa.types.is_time(kind):
        return lambda values: values.cast(pa.time64("us"), safe=False).cast(pa.int64())
    if pa.types.is_date(kind):
        return lambda values: values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    if pa.types.is_unsigned_integer(kind):  # those that are too large stand in no row
        return lambda values: pc.min_element_wise(values.cast(pa.uint64()), pa.scalar(_LARGEST, pa.uint64())).cast(pa.int64())
    if pa.types.is_decimal(kind):  # what Arrow rounds it to may be off by more than what is said is rounded outwards
        return lambda values: pa.array([None if value is None else float(value) for value in values.to_pylist()], pa.float64())
    stands_as = kind_of(kind)
    assert stands_as is not None
    return lambda values: values.cast(_TYPES[stands_as], safe=False)


def files_out(statistics: pa.Table, sought: Sought) -> pa.Array:
    """The chunks of the files that the rows about a column rule out."""
    return one_chunk(statistics["chunk"]).filter(pa.array(~sought.may_have(statistics)))


def groups_out(statistics: pa.Table, sought: Sought) -> pa.Table:
    """The row groups that what the rows about a column say of them rules out: ``chunk`` and ``row_group``."""
    of_groups = statistics.filter(statistics["row_groups"].is_valid())
    lists = one_chunk(of_groups["row_groups"])
    said = pc.list_flatten(lists)
    groups = pa.Table.from_struct_array(said) if len(said) else pa.table({name: pa.array([], kind) for name, kind in _SAID})
    return numbered(of_groups["chunk"], lists).filter(pa.array(~sought.may_have(groups)))


def numbered(chunks: Any, lists: pa.Array) -> pa.Table:
    """``chunk`` and ``row_group`` of each item of lists, none of them null, that have one for each row group of a file."""
    parents = pc.list_parent_indices(lists)
    starts = np.asarray(lists.offsets)[:-1] - lists.offsets[0].as_py() if len(lists) else np.empty(0, dtype=np.int32)
    numbers = np.arange(len(parents)) - starts[np.asarray(parents)]
    return pa.table({"chunk": one_chunk(chunks).take(parents), "row_group": pa.array(numbers, pa.int64())})
