from bucketcatalog.v1 import options_pb2 as _options_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Box(_message.Message):
    __slots__ = ("name", "label", "grams", "packed")
    NAME_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    GRAMS_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    name: str
    label: str
    grams: int
    packed: int
    def __init__(self, name: _Optional[str] = ..., label: _Optional[str] = ..., grams: _Optional[int] = ..., packed: _Optional[int] = ...) -> None: ...

class Part(_message.Message):
    __slots__ = ("box", "path", "rows")
    BOX_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    box: str
    path: str
    rows: int
    def __init__(self, box: _Optional[str] = ..., path: _Optional[str] = ..., rows: _Optional[int] = ...) -> None: ...
