from bucketcatalog.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class MantaPlacement(_message.Message):
    __slots__ = ("node", "nodes", "writer", "given_to", "until", "taken_from", "before")
    class BeforeEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    GIVEN_TO_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FROM_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    node: int
    nodes: int
    writer: str
    given_to: str
    until: str
    taken_from: str
    before: _containers.ScalarMap[str, int]
    def __init__(self, node: _Optional[int] = ..., nodes: _Optional[int] = ..., writer: _Optional[str] = ..., given_to: _Optional[str] = ..., until: _Optional[str] = ..., taken_from: _Optional[str] = ..., before: _Optional[_Mapping[str, int]] = ...) -> None: ...

class MantaGarbageBatch(_message.Message):
    __slots__ = ("of", "id", "cut", "before", "records")
    OF_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    of: str
    id: bytes
    cut: str
    before: int
    records: int
    def __init__(self, of: _Optional[str] = ..., id: _Optional[bytes] = ..., cut: _Optional[str] = ..., before: _Optional[int] = ..., records: _Optional[int] = ...) -> None: ...
