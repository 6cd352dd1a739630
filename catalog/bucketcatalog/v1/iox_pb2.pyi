from bucketcatalog.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class IoxParquetFile(_message.Message):
    __slots__ = ("table", "partition", "chunk", "path", "size", "rows", "row_groups", "schema", "key_columns", "first_clock", "last_clock", "write", "added", "origins", "applied", "bloom_filters")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ROW_GROUPS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    KEY_COLUMNS_FIELD_NUMBER: _ClassVar[int]
    FIRST_CLOCK_FIELD_NUMBER: _ClassVar[int]
    LAST_CLOCK_FIELD_NUMBER: _ClassVar[int]
    WRITE_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    ORIGINS_FIELD_NUMBER: _ClassVar[int]
    APPLIED_FIELD_NUMBER: _ClassVar[int]
    BLOOM_FILTERS_FIELD_NUMBER: _ClassVar[int]
    table: str
    partition: str
    chunk: str
    path: str
    size: int
    rows: int
    row_groups: int
    schema: str
    key_columns: _containers.RepeatedScalarFieldContainer[str]
    first_clock: int
    last_clock: int
    write: bytes
    added: int
    origins: _containers.RepeatedScalarFieldContainer[str]
    applied: _containers.RepeatedScalarFieldContainer[bytes]
    bloom_filters: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, table: _Optional[str] = ..., partition: _Optional[str] = ..., chunk: _Optional[str] = ..., path: _Optional[str] = ..., size: _Optional[int] = ..., rows: _Optional[int] = ..., row_groups: _Optional[int] = ..., schema: _Optional[str] = ..., key_columns: _Optional[_Iterable[str]] = ..., first_clock: _Optional[int] = ..., last_clock: _Optional[int] = ..., write: _Optional[bytes] = ..., added: _Optional[int] = ..., origins: _Optional[_Iterable[str]] = ..., applied: _Optional[_Iterable[bytes]] = ..., bloom_filters: _Optional[_Iterable[str]] = ...) -> None: ...

class IoxStatistics(_message.Message):
    __slots__ = ("table", "column", "partition", "chunk", "rows", "nulls", "min_int", "max_int", "min_double", "max_double", "min_bytes", "max_bytes", "row_groups", "bloom_filters")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    NULLS_FIELD_NUMBER: _ClassVar[int]
    MIN_INT_FIELD_NUMBER: _ClassVar[int]
    MAX_INT_FIELD_NUMBER: _ClassVar[int]
    MIN_DOUBLE_FIELD_NUMBER: _ClassVar[int]
    MAX_DOUBLE_FIELD_NUMBER: _ClassVar[int]
    MIN_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    ROW_GROUPS_FIELD_NUMBER: _ClassVar[int]
    BLOOM_FILTERS_FIELD_NUMBER: _ClassVar[int]
    table: str
    column: str
    partition: str
    chunk: str
    rows: int
    nulls: int
    min_int: int
    max_int: int
    min_double: float
    max_double: float
    min_bytes: bytes
    max_bytes: bytes
    row_groups: _containers.RepeatedCompositeFieldContainer[IoxRowGroup]
    bloom_filters: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, table: _Optional[str] = ..., column: _Optional[str] = ..., partition: _Optional[str] = ..., chunk: _Optional[str] = ..., rows: _Optional[int] = ..., nulls: _Optional[int] = ..., min_int: _Optional[int] = ..., max_int: _Optional[int] = ..., min_double: _Optional[float] = ..., max_double: _Optional[float] = ..., min_bytes: _Optional[bytes] = ..., max_bytes: _Optional[bytes] = ..., row_groups: _Optional[_Iterable[_Union[IoxRowGroup, _Mapping]]] = ..., bloom_filters: _Optional[_Iterable[bytes]] = ...) -> None: ...

class IoxRowGroup(_message.Message):
    __slots__ = ("rows", "nulls", "min_int", "max_int", "min_double", "max_double", "min_bytes", "max_bytes")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    NULLS_FIELD_NUMBER: _ClassVar[int]
    MIN_INT_FIELD_NUMBER: _ClassVar[int]
    MAX_INT_FIELD_NUMBER: _ClassVar[int]
    MIN_DOUBLE_FIELD_NUMBER: _ClassVar[int]
    MAX_DOUBLE_FIELD_NUMBER: _ClassVar[int]
    MIN_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    rows: int
    nulls: int
    min_int: int
    max_int: int
    min_double: float
    max_double: float
    min_bytes: bytes
    max_bytes: bytes
    def __init__(self, rows: _Optional[int] = ..., nulls: _Optional[int] = ..., min_int: _Optional[int] = ..., max_int: _Optional[int] = ..., min_double: _Optional[float] = ..., max_double: _Optional[float] = ..., min_bytes: _Optional[bytes] = ..., max_bytes: _Optional[bytes] = ...) -> None: ...

class IoxSchema(_message.Message):
    __slots__ = ("table", "schema", "fields", "arrow")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    ARROW_FIELD_NUMBER: _ClassVar[int]
    table: str
    schema: str
    fields: _containers.RepeatedCompositeFieldContainer[IoxField]
    arrow: bytes
    def __init__(self, table: _Optional[str] = ..., schema: _Optional[str] = ..., fields: _Optional[_Iterable[_Union[IoxField, _Mapping]]] = ..., arrow: _Optional[bytes] = ...) -> None: ...

class IoxField(_message.Message):
    __slots__ = ("name", "type", "nullable")
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NULLABLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    nullable: bool
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., nullable: bool = ...) -> None: ...

class IoxDeletePredicate(_message.Message):
    __slots__ = ("table", "id", "chunks", "conditions", "path", "added")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    CONDITIONS_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    ADDED_FIELD_NUMBER: _ClassVar[int]
    table: str
    id: bytes
    chunks: _containers.RepeatedScalarFieldContainer[str]
    conditions: _containers.RepeatedCompositeFieldContainer[IoxCondition]
    path: str
    added: int
    def __init__(self, table: _Optional[str] = ..., id: _Optional[bytes] = ..., chunks: _Optional[_Iterable[str]] = ..., conditions: _Optional[_Iterable[_Union[IoxCondition, _Mapping]]] = ..., path: _Optional[str] = ..., added: _Optional[int] = ...) -> None: ...

class IoxCondition(_message.Message):
    __slots__ = ("column", "comparison", "value")
    COLUMN_FIELD_NUMBER: _ClassVar[int]
    COMPARISON_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    column: str
    comparison: str
    value: str
    def __init__(self, column: _Optional[str] = ..., comparison: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
