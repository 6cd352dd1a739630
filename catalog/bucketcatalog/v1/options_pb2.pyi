from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Tombstones(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOMBSTONES_UNSPECIFIED: _ClassVar[Tombstones]
    TOMBSTONES_KEPT: _ClassVar[Tombstones]
    TOMBSTONES_DROPPED: _ClassVar[Tombstones]

class LogicalType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOGICAL_TYPE_UNSPECIFIED: _ClassVar[LogicalType]
    LOGICAL_TYPE_UUID: _ClassVar[LogicalType]
    LOGICAL_TYPE_TIMESTAMP_MICROS: _ClassVar[LogicalType]
    LOGICAL_TYPE_JSON: _ClassVar[LogicalType]
    LOGICAL_TYPE_CUT: _ClassVar[LogicalType]

class ColumnDefault(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COLUMN_DEFAULT_UNSPECIFIED: _ClassVar[ColumnDefault]
    COLUMN_DEFAULT_CREATED: _ClassVar[ColumnDefault]
    COLUMN_DEFAULT_MODIFIED: _ClassVar[ColumnDefault]
    COLUMN_DEFAULT_INCARNATION: _ClassVar[ColumnDefault]
TOMBSTONES_UNSPECIFIED: Tombstones
TOMBSTONES_KEPT: Tombstones
TOMBSTONES_DROPPED: Tombstones
LOGICAL_TYPE_UNSPECIFIED: LogicalType
LOGICAL_TYPE_UUID: LogicalType
LOGICAL_TYPE_TIMESTAMP_MICROS: LogicalType
LOGICAL_TYPE_JSON: LogicalType
LOGICAL_TYPE_CUT: LogicalType
COLUMN_DEFAULT_UNSPECIFIED: ColumnDefault
COLUMN_DEFAULT_CREATED: ColumnDefault
COLUMN_DEFAULT_MODIFIED: ColumnDefault
COLUMN_DEFAULT_INCARNATION: ColumnDefault
TABLE_FIELD_NUMBER: _ClassVar[int]
table: _descriptor.FieldDescriptor
COLUMN_FIELD_NUMBER: _ClassVar[int]
column: _descriptor.FieldDescriptor

class TableOptions(_message.Message):
    __slots__ = ("name", "key", "id", "data_reference", "parent", "sums", "orders", "tombstones", "tombstone_retention_seconds")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    DATA_REFERENCE_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    ORDERS_FIELD_NUMBER: _ClassVar[int]
    TOMBSTONES_FIELD_NUMBER: _ClassVar[int]
    TOMBSTONE_RETENTION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    key: _containers.RepeatedScalarFieldContainer[str]
    id: str
    data_reference: _containers.RepeatedScalarFieldContainer[str]
    parent: Parent
    sums: _containers.RepeatedCompositeFieldContainer[Sum]
    orders: _containers.RepeatedCompositeFieldContainer[SecondaryOrder]
    tombstones: Tombstones
    tombstone_retention_seconds: int
    def __init__(self, name: _Optional[str] = ..., key: _Optional[_Iterable[str]] = ..., id: _Optional[str] = ..., data_reference: _Optional[_Iterable[str]] = ..., parent: _Optional[_Union[Parent, _Mapping]] = ..., sums: _Optional[_Iterable[_Union[Sum, _Mapping]]] = ..., orders: _Optional[_Iterable[_Union[SecondaryOrder, _Mapping]]] = ..., tombstones: _Optional[_Union[Tombstones, str]] = ..., tombstone_retention_seconds: _Optional[int] = ...) -> None: ...

class Parent(_message.Message):
    __slots__ = ("table", "field", "must_exist")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    MUST_EXIST_FIELD_NUMBER: _ClassVar[int]
    table: str
    field: str
    must_exist: bool
    def __init__(self, table: _Optional[str] = ..., field: _Optional[str] = ..., must_exist: bool = ...) -> None: ...

class Sum(_message.Message):
    __slots__ = ("name", "field", "group")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    name: str
    field: str
    group: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., field: _Optional[str] = ..., group: _Optional[_Iterable[str]] = ...) -> None: ...

class SecondaryOrder(_message.Message):
    __slots__ = ("name", "fields", "of_tombstones", "covering")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    OF_TOMBSTONES_FIELD_NUMBER: _ClassVar[int]
    COVERING_FIELD_NUMBER: _ClassVar[int]
    name: str
    fields: _containers.RepeatedScalarFieldContainer[str]
    of_tombstones: bool
    covering: bool
    def __init__(self, name: _Optional[str] = ..., fields: _Optional[_Iterable[str]] = ..., of_tombstones: bool = ..., covering: bool = ...) -> None: ...

class ColumnOptions(_message.Message):
    __slots__ = ("type", "default", "sensitive", "max_bytes", "minimum", "external", "removed", "maximum", "allowed")
    TYPE_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    SENSITIVE_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_FIELD_NUMBER: _ClassVar[int]
    REMOVED_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    type: LogicalType
    default: ColumnDefault
    sensitive: bool
    max_bytes: int
    minimum: int
    external: bool
    removed: bool
    maximum: int
    allowed: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, type: _Optional[_Union[LogicalType, str]] = ..., default: _Optional[_Union[ColumnDefault, str]] = ..., sensitive: bool = ..., max_bytes: _Optional[int] = ..., minimum: _Optional[int] = ..., external: bool = ..., removed: bool = ..., maximum: _Optional[int] = ..., allowed: _Optional[_Iterable[str]] = ...) -> None: ...
