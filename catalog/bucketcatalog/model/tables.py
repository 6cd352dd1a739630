"""Tables as values: what the options of a ``.proto`` declare, in the words that the engine uses.

``format.definitions`` reads these from descriptors; everything after it knows tables only as they stand here. A column's *storage* type is
how blocks hold it, its *surface* type is how people see it: an enumeration is its number in storage and its name at the surface.
"""

from __future__ import annotations

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

    __hash__ = object.__hash__  # of the member itself: every value of every row is converted by its type


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
    ``max_bytes``, ``minimum``, ``maximum`` and ``allowed`` (integers are in decimal there) bind writers alone. Where a column that is
    ``external`` is true the data of the row's children is somebody else's. One that is ``removed`` is kept with the rows that have it,
    and nobody is shown it.
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
    maximum: int | None = None
    allowed: tuple[str, ...] = ()
    external: bool = False
    removed: bool = False
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

    @cached_property
    def is_limited(self) -> bool:
        """Whether it, or what lies in its messages, may have some values alone of those that its type has."""
        limits = self.minimum is not None or self.maximum is not None or bool(self.allowed)
        return limits or any(child.is_limited for child in self.children)

    @cached_property
    def allowed_values(self) -> pa.Array:
        """The values that are ``allowed``, in storage form."""
        return pa.array([value if self.type is DataType.STRING else int(value) for value in self.allowed], self.item_type)

    @cached_property
    def allowed_set(self) -> frozenset[object]:
        """The same, to look one up in."""
        return frozenset(self.allowed_values.to_pylist())

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
    """A further order of the rows, or of the tombstones; one that is ``covering`` has the rows with all of their columns."""

    name: str
    columns: tuple[str, ...]
    of_tombstones: bool
    covering: bool = False


@dataclass(frozen=True)
class Parent:
    """The table whose rows own these, and the column that holds the owner's id. ``must_exist`` binds writers alone: the owner is live."""

    table: str
    column: str
    must_exist: bool = False


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
    def shown_columns(self) -> tuple[Column, ...]:
        """The columns that people see."""
        return tuple(column for column in self.columns if not column.removed)

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The columns by the names that people use."""
        return {column.name: column for column in self.shown_columns}

    @cached_property
    def by_number(self) -> dict[str, Column]:
        """The columns by their names in storage."""
        return {column.field_name: column for column in self.columns}

    @cached_property
    def uuid_columns(self) -> frozenset[str]:
        """The columns of which each value is a uuid, shown as its text."""
        return frozenset(c.name for c in self.shown_columns if c.type is DataType.UUID and c.shape is Shape.ONE)

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
        shown = self.shown_columns
        return pa.schema([pa.field(column.name, column.surface_type, column.name not in self.key) for column in shown])

    def _repr_html_(self) -> str:
        """Its columns, for notebooks."""
        of = {"key": self.key, "id": [self.id], "data reference": self.data_reference}
        columns = self.shown_columns
        rows = [(c.number, c.name, c.type_name, [at for at in of if c.name in of[at]], c.default.value) for c in columns]
        return html_table(f"table {self.name}", ("number", "column", "type", "part of", "default"), rows)


BESIDE = "#"
"""Stands in what blocks have as their table between that and the name of a side run."""


def side_table(table: str, run: str) -> str:
    """What blocks of a side run of that name, which lies beside a table's rows, have as their table."""
    return f"{table}{BESIDE}{run}"


def split_side(block_table: str) -> tuple[str, str | None]:
    """The table that blocks belong to, and which of its side runs they are of; None where they are of its rows."""
    table, is_side, run = block_table.partition(BESIDE)
    return table, run if is_side else None
