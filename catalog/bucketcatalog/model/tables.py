"""Tables as values: what the options of a ``.proto`` declare, in the words that the engine uses, and what they must not declare.

``format.definitions`` reads these from descriptors; everything after it knows tables only as they stand here. A column's *storage* type is
how blocks hold it, its *surface* type is how people see it: an enumeration is its number in storage and its name at the surface.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import pyarrow as pa

from .html import html_table
from .misfits import Misfit

UUID_BYTES = pa.binary(16)
"""How transactions are named. The uuids of rows are text of 36 characters, lower case, in storage as at the surface."""
TIMESTAMP = pa.timestamp("us", tz="UTC")


class DataType(Enum):
    """What a value is, beyond how protobuf carries it."""

    STRING = "string"
    BYTES = "bytes"
    UUID = "uuid"
    TIMESTAMP = "timestamp"
    JSON = "json"
    CUT = "cut"
    BOOL = "bool"
    INT32 = "int32"
    INT64 = "int64"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT = "float"
    DOUBLE = "double"
    ENUM = "enum"
    MESSAGE = "message"


class Default(Enum):
    """What a PUT that leaves a column unset means; see ColumnDefault in options.proto."""

    NONE = "none"
    CREATED = "created"
    MODIFIED = "modified"
    INCARNATION = "incarnation"

    @property
    def is_of_a_stamp(self) -> bool:
        """Whether it stands for a time of the row's events, which states hold."""
        return self in (Default.CREATED, Default.MODIFIED)


class Shape(Enum):
    """How many values a column has in a row."""

    ONE = "one"
    LIST = "list"
    MAP = "map"


_STORAGE = {
    DataType.STRING: pa.string(),
    DataType.BYTES: pa.binary(),
    DataType.UUID: pa.string(),
    DataType.TIMESTAMP: TIMESTAMP,
    DataType.JSON: pa.string(),
    DataType.CUT: pa.string(),
    DataType.BOOL: pa.bool_(),
    DataType.INT32: pa.int32(),
    DataType.INT64: pa.int64(),
    DataType.UINT32: pa.uint32(),
    DataType.UINT64: pa.uint64(),
    DataType.FLOAT: pa.float32(),
    DataType.DOUBLE: pa.float64(),
    DataType.ENUM: pa.int32(),
}
_ZERO: dict[DataType, object] = {
    DataType.STRING: "",
    DataType.JSON: "",
    DataType.CUT: "",
    DataType.BYTES: b"",
    DataType.UUID: "00000000-0000-0000-0000-000000000000",
    DataType.BOOL: False,
}
KEY_TYPES = frozenset(_STORAGE) - {DataType.FLOAT, DataType.DOUBLE, DataType.BOOL, DataType.ENUM, DataType.JSON, DataType.CUT}


@dataclass(frozen=True)
class Column:
    """One field of a row.

    ``number`` is the protobuf field number, which is what columns are matched by. ``implicit`` is a field without presence: unset, it
    reads as its type's zero. ``wire_type`` is the protobuf type's number: what the bytes of a row mean.
    ``max_bytes`` and ``minimum`` bind writers alone. Where a column that is ``external`` is true the data of the row's children is
    somebody else's.
    ``children`` are the fields of a message, or key and value of a map; ``symbols`` are an enumeration's names by number.
    """

    number: int
    name: str
    type: DataType
    shape: Shape = Shape.ONE
    implicit: bool = False
    wire_type: int = 0
    default: Default = Default.NONE
    sensitive: bool = False
    max_bytes: int = 0
    minimum: int | None = None
    external: bool = False
    children: tuple[Column, ...] = ()
    symbols: tuple[tuple[int, str], ...] = ()

    @cached_property
    def field_name(self) -> str:
        """The column's name in storage: its field number in decimal."""
        return str(self.number)

    @property
    def zero(self) -> object:
        """What a field without presence holds that is unset, or not on the wire, in storage form."""
        return _ZERO.get(self.type, 0)

    @cached_property
    def has_zeros(self) -> bool:
        """Whether it, or what lies in its messages, is a zero where it is unset."""
        return self.implicit or any(child.has_zeros for child in self.children)

    @property
    def type_name(self) -> str:
        """What its type is called, such as ``int64``, ``list of uuid`` or ``map of string to int64``."""
        if self.shape is Shape.MAP:
            key, item = self.children
            return f"map of {key.type_name} to {item.type_name}"
        return f"list of {self.type.value}" if self.shape is Shape.LIST else self.type.value

    @cached_property
    def storage_type(self) -> pa.DataType:
        """How blocks hold the column."""
        if self.shape is Shape.MAP:
            key, item = self.children
            return pa.map_(key.storage_type, item.storage_type)
        return pa.list_(self.item_type) if self.shape is Shape.LIST else self.item_type

    @cached_property
    def surface_type(self) -> pa.DataType:
        """How people see the column."""
        if self.shape is Shape.MAP:
            key, item = self.children
            return pa.map_(key.surface_type, item.surface_type)
        return pa.list_(self._surface_value()) if self.shape is Shape.LIST else self._surface_value()

    @property
    def one(self) -> Column:
        """What a list holds many of, as a column that holds one."""
        return Column(self.number, self.name, self.type, children=self.children, symbols=self.symbols)

    @property
    def item_type(self) -> pa.DataType:
        """How blocks hold a value, or one of those in a list."""
        if self.type is DataType.MESSAGE:
            return pa.struct([pa.field(child.field_name, child.storage_type) for child in self.children])
        return _STORAGE[self.type]

    def _surface_value(self) -> pa.DataType:
        if self.type is DataType.MESSAGE:
            return pa.struct([pa.field(child.name, child.surface_type) for child in self.children])
        if self.type is DataType.ENUM:
            return pa.string()
        return _STORAGE[self.type]


FIRST_OF_ENGINE = 536_870_900
"""Numbers of fields from here on are for what is kept beside a table; no table's own field has one."""
END_TIME = Column(536_870_909, "deleted_at", DataType.TIMESTAMP)
"""When a version ended: a column of tombstones that no row has."""


@dataclass(frozen=True)
class Sum:
    """A sum of ``column`` (without one: the number of rows) over the live rows of each ``group``."""

    name: str
    column: str | None
    group: tuple[str, ...]


@dataclass(frozen=True)
class SecondaryOrder:
    """A further order of the rows, or of the tombstones."""

    name: str
    columns: tuple[str, ...]
    of_tombstones: bool


@dataclass(frozen=True)
class Parent:
    """The table whose rows own these, and the column that holds the owner's id."""

    table: str
    column: str


@dataclass(frozen=True)
class Table:
    """A table's declaration.

    Invariants: ``key`` names columns of a key type; ``id`` and ``data_reference`` name columns; numbers and names of columns are distinct.
    ``definition`` is the serialised TableDefinition. It takes no part in comparisons, nor does what else a database says of the table:
    whose definitions are left out, and whether a maintainer, or the release, decides its options.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    id: str | None = None
    data_reference: tuple[str, ...] = ()
    parent: Parent | None = None
    sums: tuple[Sum, ...] = ()
    orders: tuple[SecondaryOrder, ...] = ()
    keeps_tombstones: bool = True
    tombstone_retention_seconds: int = 0
    definition: bytes = field(default=b"", compare=False, repr=False)
    misfits: tuple[Misfit, ...] = field(default=(), compare=False, repr=False)
    is_maintained: bool = field(default=False, compare=False, repr=False)

    def __hash__(self) -> int:
        """Of little: tables are looked up with every commit and block, and few of one name differ."""
        return hash((self.name, self.key, len(self.columns)))

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The columns by the names that people use."""
        return {column.name: column for column in self.columns}

    @cached_property
    def by_number(self) -> dict[str, Column]:
        """The columns by their names in storage."""
        return {column.field_name: column for column in self.columns}

    @cached_property
    def key_columns(self) -> tuple[Column, ...]:
        """The columns of the key, in the key's order."""
        return tuple(self.by_name[name] for name in self.key)

    @cached_property
    def fixed_columns(self) -> frozenset[str]:
        """The storage names of what no UPDATE changes: key, id and data reference (docs/spec/fold.md: they stay the PUT's)."""
        names = {*self.key, *self.data_reference, *([self.id] if self.id else [])}
        return frozenset(self.by_name[name].field_name for name in names)

    @cached_property
    def external_columns(self) -> tuple[Column, ...]:
        """The columns of which any that is true says that the data of a row's children is somebody else's."""
        return tuple(column for column in self.columns if column.external)

    @cached_property
    def storage_schema(self) -> pa.Schema:
        """The row columns as blocks hold them, named by field number."""
        return pa.schema([pa.field(column.field_name, column.storage_type) for column in self.columns])

    @cached_property
    def surface_schema(self) -> pa.Schema:
        """The row columns as people see them. Keys are never null."""
        return pa.schema([pa.field(column.name, column.surface_type, column.name not in self.key) for column in self.columns])

    def _repr_html_(self) -> str:
        """Its columns, for notebooks."""
        of = {"key": self.key, "id": [self.id], "data reference": self.data_reference}
        rows = [(c.number, c.name, c.type_name, [at for at in of if c.name in of[at]], c.default.value) for c in self.columns]
        return html_table(f"table {self.name}", ("number", "column", "type", "part of", "default"), rows)


_DEFAULT_TYPES = {Default.CREATED: DataType.TIMESTAMP, Default.MODIFIED: DataType.TIMESTAMP, Default.INCARNATION: DataType.UUID}
_INTEGERS = {DataType.INT32, DataType.INT64, DataType.UINT32, DataType.UINT64}
_LARGEST = {DataType.INT32: (1 << 31) - 1, DataType.UINT32: (1 << 32) - 1}
_NO_GROUPS = {DataType.MESSAGE, DataType.FLOAT, DataType.DOUBLE}
_BESIDE = "#"


def side_table(table: str, run: str) -> str:
    """What blocks of a side run of that name, which lies beside a table's rows, have as their table."""
    return f"{table}{_BESIDE}{run}"


def split_side(block_table: str) -> tuple[str, str | None]:
    """The table that blocks belong to, and which of its side runs they are of; None where they are of its rows."""
    table, is_side, run = block_table.partition(_BESIDE)
    return table, run if is_side else None


def problems(table: Table) -> Iterator[str]:
    """What contradicts itself in a declaration, each as the end of a sentence about the table."""
    if _BESIDE in table.name:
        yield f"its name holds a {_BESIDE!r}, which stands between a table and the name of what is kept beside it"
    if not table.key:
        yield "it has no key"
    if len(set(table.key)) < len(table.key):
        yield "its key has a field twice"
    yield from (f"it names a field {name!r} that it has not" for name in _named(table) if name not in table.by_name)
    if table.parent is not None and not table.parent.column:
        yield f"no field of it has the id of its parent in {table.parent.table!r}"
    for name in table.key:
        column = table.by_name.get(name)
        if column is not None and (column.type not in KEY_TYPES or column.shape is not Shape.ONE):
            yield f"its key field {name!r} has no order"
    for name in table.data_reference:
        column = table.by_name.get(name)
        if column is not None and (column.type not in KEY_TYPES or column.shape is not Shape.ONE):
            yield f"the field {name!r} of its data reference cannot be compared"
    yield from _of_sums(table)
    yield from _of_orders(table)
    done: set[int] = set()
    for column in table.columns:
        yield from _of_column(column, done)


def unfillable(table: Table) -> Iterator[str]:
    """What a writer could not fill in as a declaration says, in the same words. Tables that a log has are read and written all the same."""
    derived = [column for column in table.columns if column.default is Default.INCARNATION]
    for column in derived:
        if column.field_name not in table.fixed_columns:  # the next one is derived from the last, which a purge would forget
            yield f"its field {column.name!r} has the default INCARNATION, and is neither its id nor of its data reference"
    if len(derived) > 1:
        yield f"the default INCARNATION is for one field, and {', '.join(repr(column.name) for column in derived)} have it"


def _of_sums(table: Table) -> Iterator[str]:
    names = [total.name for total in table.sums]
    yield from (f"it has two sums {name!r}" for name in sorted(set(names)) if names.count(name) > 1)
    for total in table.sums:
        column = table.by_name.get(total.column) if total.column else None
        if column is not None and (column.type not in _INTEGERS or column.shape is not Shape.ONE):
            yield f"its sum {total.name!r} is over the field {total.column!r}, which is not an integer"
        for name in total.group:
            grouping = table.by_name.get(name)
            if grouping is not None and (grouping.type in _NO_GROUPS or grouping.shape is not Shape.ONE):
                yield f"its sum {total.name!r} is grouped by the field {name!r}, which is not a single text, number, uuid or time"


def _of_orders(table: Table) -> Iterator[str]:
    names = [order.name for order in table.orders]
    yield from (f"it has two orders {name!r}" for name in sorted(set(names)) if names.count(name) > 1)
    for order in table.orders:
        if not order.columns:
            yield f"its order {order.name!r} is by no field"
        if len(set(order.columns)) < len(order.columns):
            yield f"its order {order.name!r} has a field twice"
        if END_TIME.name in order.columns and not order.of_tombstones:
            yield f"its order {order.name!r} is by {END_TIME.name}, which only tombstones have"
        for name in order.columns:
            column = table.by_name.get(name)
            if column is not None and (column.type not in KEY_TYPES or column.shape is not Shape.ONE):
                yield f"the field {name!r} of its order {order.name!r} has no order"


def _named(table: Table) -> Iterator[str]:
    yield from (*table.key, *table.data_reference)
    yield from (name for name in (table.id, table.parent.column if table.parent else None) if name)
    yield from (name for total in table.sums for name in (*total.group, *filter(None, [total.column])))
    yield from (name for order in table.orders for name in order.columns if name != END_TIME.name)


def _of_column(column: Column, done: set[int]) -> Iterator[str]:
    if column.name.startswith("_") or column.name == END_TIME.name:
        yield f"a column cannot be called {column.name!r}"
    if column.number >= FIRST_OF_ENGINE:
        yield f"the number of its field {column.name!r} is not below {FIRST_OF_ENGINE}, and those are for what stands beside a table"
    wanted = _DEFAULT_TYPES.get(column.default)
    if wanted is not None and (column.type is not wanted or column.shape is not Shape.ONE):
        yield f"the default of its field {column.name!r} is for a {wanted.value}"
    if wanted is not None and column.implicit:
        yield f"its field {column.name!r} has a default, and cannot tell unset from zero: make it optional"
    if column.external and (column.type is not DataType.BOOL or column.shape is not Shape.ONE):
        yield f"its field {column.name!r} is external and not a single bool"
    if any(child.external for child in column.children):
        yield f"a field within {column.name!r} is external, and only a row's own can be"
    yield from _of_minimum(column, done)


def _of_minimum(column: Column, done: set[int]) -> Iterator[str]:
    """Messages that lie in others in many places are ``done`` once they were looked at."""
    if id(column.children) not in done:
        done.add(id(column.children))
        for child in column.children:
            yield from _of_minimum(child, done)
    if column.minimum is None:
        return
    if column.type not in _INTEGERS or column.shape is Shape.MAP:
        yield f"the minimum of its field {column.name!r} is for an integer"
    elif column.minimum > _LARGEST.get(column.type, column.minimum):
        yield f"no {column.type.value} reaches the minimum of its field {column.name!r}"
    elif column.implicit and column.minimum > 0:
        yield f"its field {column.name!r} reads as 0 where it is unset, which is below its minimum: make it optional"
