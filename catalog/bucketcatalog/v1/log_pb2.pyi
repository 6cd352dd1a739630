from google.protobuf import descriptor_pb2 as _descriptor_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_KIND_UNSPECIFIED: _ClassVar[EventKind]
    EVENT_KIND_PUT: _ClassVar[EventKind]
    EVENT_KIND_UPDATE: _ClassVar[EventKind]
    EVENT_KIND_DELETE: _ClassVar[EventKind]
    EVENT_KIND_PURGE: _ClassVar[EventKind]

class RunPurpose(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RUN_PURPOSE_UNSPECIFIED: _ClassVar[RunPurpose]
    RUN_PURPOSE_ROWS: _ClassVar[RunPurpose]
    RUN_PURPOSE_ORDER: _ClassVar[RunPurpose]
    RUN_PURPOSE_SUMS: _ClassVar[RunPurpose]
    RUN_PURPOSE_FILTER: _ClassVar[RunPurpose]

class BlockClass(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BLOCK_CLASS_UNSPECIFIED: _ClassVar[BlockClass]
    BLOCK_CLASS_EVENTS: _ClassVar[BlockClass]
    BLOCK_CLASS_LIVE: _ClassVar[BlockClass]
    BLOCK_CLASS_ENDED: _ClassVar[BlockClass]
    BLOCK_CLASS_STUBS: _ClassVar[BlockClass]
    BLOCK_CLASS_SUPERSEDED: _ClassVar[BlockClass]
EVENT_KIND_UNSPECIFIED: EventKind
EVENT_KIND_PUT: EventKind
EVENT_KIND_UPDATE: EventKind
EVENT_KIND_DELETE: EventKind
EVENT_KIND_PURGE: EventKind
RUN_PURPOSE_UNSPECIFIED: RunPurpose
RUN_PURPOSE_ROWS: RunPurpose
RUN_PURPOSE_ORDER: RunPurpose
RUN_PURPOSE_SUMS: RunPurpose
RUN_PURPOSE_FILTER: RunPurpose
BLOCK_CLASS_UNSPECIFIED: BlockClass
BLOCK_CLASS_EVENTS: BlockClass
BLOCK_CLASS_LIVE: BlockClass
BLOCK_CLASS_ENDED: BlockClass
BLOCK_CLASS_STUBS: BlockClass
BLOCK_CLASS_SUPERSEDED: BlockClass

class Transaction(_message.Message):
    __slots__ = ("format_version", "required_features", "writer", "database", "revision", "uuid", "parents", "commit_time", "lateness_bound", "operation", "application", "reads", "tables", "actions", "blocks", "segments", "voids", "boundary", "tags", "asides", "witnessed", "pin", "checksum")
    FORMAT_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FEATURES_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIME_FIELD_NUMBER: _ClassVar[int]
    LATENESS_BOUND_FIELD_NUMBER: _ClassVar[int]
    OPERATION_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    VOIDS_FIELD_NUMBER: _ClassVar[int]
    BOUNDARY_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    ASIDES_FIELD_NUMBER: _ClassVar[int]
    WITNESSED_FIELD_NUMBER: _ClassVar[int]
    PIN_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    format_version: int
    required_features: _containers.RepeatedScalarFieldContainer[str]
    writer: str
    database: str
    revision: int
    uuid: bytes
    parents: _containers.RepeatedCompositeFieldContainer[TransactionLink]
    commit_time: int
    lateness_bound: int
    operation: Operation
    application: ApplicationVersion
    reads: _containers.RepeatedCompositeFieldContainer[WriterHeads]
    tables: _containers.RepeatedCompositeFieldContainer[TableDefinition]
    actions: _containers.RepeatedCompositeFieldContainer[Action]
    blocks: _containers.RepeatedCompositeFieldContainer[Block]
    segments: _containers.RepeatedCompositeFieldContainer[SegmentReference]
    voids: _containers.RepeatedCompositeFieldContainer[TransactionLink]
    boundary: Boundary
    tags: _containers.RepeatedCompositeFieldContainer[Tag]
    asides: _containers.RepeatedCompositeFieldContainer[SetAside]
    witnessed: _containers.RepeatedCompositeFieldContainer[Witness]
    pin: Pin
    checksum: bytes
    def __init__(self, format_version: _Optional[int] = ..., required_features: _Optional[_Iterable[str]] = ..., writer: _Optional[str] = ..., database: _Optional[str] = ..., revision: _Optional[int] = ..., uuid: _Optional[bytes] = ..., parents: _Optional[_Iterable[_Union[TransactionLink, _Mapping]]] = ..., commit_time: _Optional[int] = ..., lateness_bound: _Optional[int] = ..., operation: _Optional[_Union[Operation, _Mapping]] = ..., application: _Optional[_Union[ApplicationVersion, _Mapping]] = ..., reads: _Optional[_Iterable[_Union[WriterHeads, _Mapping]]] = ..., tables: _Optional[_Iterable[_Union[TableDefinition, _Mapping]]] = ..., actions: _Optional[_Iterable[_Union[Action, _Mapping]]] = ..., blocks: _Optional[_Iterable[_Union[Block, _Mapping]]] = ..., segments: _Optional[_Iterable[_Union[SegmentReference, _Mapping]]] = ..., voids: _Optional[_Iterable[_Union[TransactionLink, _Mapping]]] = ..., boundary: _Optional[_Union[Boundary, _Mapping]] = ..., tags: _Optional[_Iterable[_Union[Tag, _Mapping]]] = ..., asides: _Optional[_Iterable[_Union[SetAside, _Mapping]]] = ..., witnessed: _Optional[_Iterable[_Union[Witness, _Mapping]]] = ..., pin: _Optional[_Union[Pin, _Mapping]] = ..., checksum: _Optional[bytes] = ...) -> None: ...

class TransactionLink(_message.Message):
    __slots__ = ("writer", "revision", "uuid", "digest")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    writer: str
    revision: int
    uuid: bytes
    digest: bytes
    def __init__(self, writer: _Optional[str] = ..., revision: _Optional[int] = ..., uuid: _Optional[bytes] = ..., digest: _Optional[bytes] = ...) -> None: ...

class SetAside(_message.Message):
    __slots__ = ("writer", "revision", "uuid", "parents", "reads", "taken_in", "carried_by")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    PARENTS_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    TAKEN_IN_FIELD_NUMBER: _ClassVar[int]
    CARRIED_BY_FIELD_NUMBER: _ClassVar[int]
    writer: str
    revision: int
    uuid: bytes
    parents: _containers.RepeatedCompositeFieldContainer[TransactionLink]
    reads: _containers.RepeatedCompositeFieldContainer[WriterHeads]
    taken_in: bool
    carried_by: TransactionStamp
    def __init__(self, writer: _Optional[str] = ..., revision: _Optional[int] = ..., uuid: _Optional[bytes] = ..., parents: _Optional[_Iterable[_Union[TransactionLink, _Mapping]]] = ..., reads: _Optional[_Iterable[_Union[WriterHeads, _Mapping]]] = ..., taken_in: bool = ..., carried_by: _Optional[_Union[TransactionStamp, _Mapping]] = ...) -> None: ...

class Witness(_message.Message):
    __slots__ = ("table", "definition", "defined_by", "carried_by")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    DEFINITION_FIELD_NUMBER: _ClassVar[int]
    DEFINED_BY_FIELD_NUMBER: _ClassVar[int]
    CARRIED_BY_FIELD_NUMBER: _ClassVar[int]
    table: str
    definition: bytes
    defined_by: TransactionStamp
    carried_by: TransactionStamp
    def __init__(self, table: _Optional[str] = ..., definition: _Optional[bytes] = ..., defined_by: _Optional[_Union[TransactionStamp, _Mapping]] = ..., carried_by: _Optional[_Union[TransactionStamp, _Mapping]] = ...) -> None: ...

class Operation(_message.Message):
    __slots__ = ("name", "metadata", "metrics")
    class MetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class MetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    METADATA_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    name: str
    metadata: _containers.ScalarMap[str, str]
    metrics: _containers.ScalarMap[str, int]
    def __init__(self, name: _Optional[str] = ..., metadata: _Optional[_Mapping[str, str]] = ..., metrics: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ApplicationVersion(_message.Message):
    __slots__ = ("id", "version")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    id: str
    version: int
    def __init__(self, id: _Optional[str] = ..., version: _Optional[int] = ...) -> None: ...

class TableDefinition(_message.Message):
    __slots__ = ("name", "message", "files", "defined_by", "definers", "declared")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    DEFINED_BY_FIELD_NUMBER: _ClassVar[int]
    DEFINERS_FIELD_NUMBER: _ClassVar[int]
    DECLARED_FIELD_NUMBER: _ClassVar[int]
    name: str
    message: str
    files: _descriptor_pb2.FileDescriptorSet
    defined_by: TransactionStamp
    definers: _containers.RepeatedCompositeFieldContainer[Definer]
    declared: bool
    def __init__(self, name: _Optional[str] = ..., message: _Optional[str] = ..., files: _Optional[_Union[_descriptor_pb2.FileDescriptorSet, _Mapping]] = ..., defined_by: _Optional[_Union[TransactionStamp, _Mapping]] = ..., definers: _Optional[_Iterable[_Union[Definer, _Mapping]]] = ..., declared: bool = ...) -> None: ...

class Definer(_message.Message):
    __slots__ = ("first", "latest", "declared")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LATEST_FIELD_NUMBER: _ClassVar[int]
    DECLARED_FIELD_NUMBER: _ClassVar[int]
    first: TransactionStamp
    latest: TransactionStamp
    declared: bool
    def __init__(self, first: _Optional[_Union[TransactionStamp, _Mapping]] = ..., latest: _Optional[_Union[TransactionStamp, _Mapping]] = ..., declared: bool = ...) -> None: ...

class Action(_message.Message):
    __slots__ = ("table", "kind", "row", "version", "expects", "moved")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPECTS_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    table: str
    kind: EventKind
    row: bytes
    version: VersionName
    expects: Expectation
    moved: bool
    def __init__(self, table: _Optional[str] = ..., kind: _Optional[_Union[EventKind, str]] = ..., row: _Optional[bytes] = ..., version: _Optional[_Union[VersionName, _Mapping]] = ..., expects: _Optional[_Union[Expectation, _Mapping]] = ..., moved: bool = ...) -> None: ...

class VersionName(_message.Message):
    __slots__ = ("uuid", "sequence")
    UUID_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    uuid: bytes
    sequence: int
    def __init__(self, uuid: _Optional[bytes] = ..., sequence: _Optional[int] = ...) -> None: ...

class Expectation(_message.Message):
    __slots__ = ("absent", "version")
    ABSENT_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    absent: bool
    version: VersionName
    def __init__(self, absent: bool = ..., version: _Optional[_Union[VersionName, _Mapping]] = ...) -> None: ...

class Cut(_message.Message):
    __slots__ = ("writers",)
    WRITERS_FIELD_NUMBER: _ClassVar[int]
    writers: _containers.RepeatedCompositeFieldContainer[WriterHeads]
    def __init__(self, writers: _Optional[_Iterable[_Union[WriterHeads, _Mapping]]] = ...) -> None: ...

class WriterHeads(_message.Message):
    __slots__ = ("writer", "heads")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    HEADS_FIELD_NUMBER: _ClassVar[int]
    writer: str
    heads: _containers.RepeatedCompositeFieldContainer[Head]
    def __init__(self, writer: _Optional[str] = ..., heads: _Optional[_Iterable[_Union[Head, _Mapping]]] = ...) -> None: ...

class Head(_message.Message):
    __slots__ = ("revision", "uuid")
    REVISION_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    revision: int
    uuid: bytes
    def __init__(self, revision: _Optional[int] = ..., uuid: _Optional[bytes] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("format_version", "required_features", "writer", "database", "revision", "uuid", "cut", "coverage", "created", "lateness_bound", "tables", "totals", "applications", "segments", "forgotten_before", "voids", "tags", "reads", "boundaries", "runs", "asides", "witnessed", "pins", "retired", "checksum")
    FORMAT_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FEATURES_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    LATENESS_BOUND_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    FORGOTTEN_BEFORE_FIELD_NUMBER: _ClassVar[int]
    VOIDS_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    READS_FIELD_NUMBER: _ClassVar[int]
    BOUNDARIES_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    ASIDES_FIELD_NUMBER: _ClassVar[int]
    WITNESSED_FIELD_NUMBER: _ClassVar[int]
    PINS_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    format_version: int
    required_features: _containers.RepeatedScalarFieldContainer[str]
    writer: str
    database: str
    revision: int
    uuid: bytes
    cut: Cut
    coverage: _containers.RepeatedCompositeFieldContainer[TimelineCoverage]
    created: int
    lateness_bound: int
    tables: _containers.RepeatedCompositeFieldContainer[TableDefinition]
    totals: _containers.RepeatedCompositeFieldContainer[TableTotals]
    applications: _containers.RepeatedCompositeFieldContainer[ApplicationResult]
    segments: _containers.RepeatedCompositeFieldContainer[SegmentReference]
    forgotten_before: int
    voids: _containers.RepeatedCompositeFieldContainer[TransactionLink]
    tags: _containers.RepeatedCompositeFieldContainer[Tag]
    reads: Cut
    boundaries: _containers.RepeatedCompositeFieldContainer[Boundary]
    runs: _containers.RepeatedCompositeFieldContainer[InlineRun]
    asides: _containers.RepeatedCompositeFieldContainer[SetAside]
    witnessed: _containers.RepeatedCompositeFieldContainer[Witness]
    pins: _containers.RepeatedCompositeFieldContainer[Pin]
    retired: _containers.RepeatedCompositeFieldContainer[Retirement]
    checksum: bytes
    def __init__(self, format_version: _Optional[int] = ..., required_features: _Optional[_Iterable[str]] = ..., writer: _Optional[str] = ..., database: _Optional[str] = ..., revision: _Optional[int] = ..., uuid: _Optional[bytes] = ..., cut: _Optional[_Union[Cut, _Mapping]] = ..., coverage: _Optional[_Iterable[_Union[TimelineCoverage, _Mapping]]] = ..., created: _Optional[int] = ..., lateness_bound: _Optional[int] = ..., tables: _Optional[_Iterable[_Union[TableDefinition, _Mapping]]] = ..., totals: _Optional[_Iterable[_Union[TableTotals, _Mapping]]] = ..., applications: _Optional[_Iterable[_Union[ApplicationResult, _Mapping]]] = ..., segments: _Optional[_Iterable[_Union[SegmentReference, _Mapping]]] = ..., forgotten_before: _Optional[int] = ..., voids: _Optional[_Iterable[_Union[TransactionLink, _Mapping]]] = ..., tags: _Optional[_Iterable[_Union[Tag, _Mapping]]] = ..., reads: _Optional[_Union[Cut, _Mapping]] = ..., boundaries: _Optional[_Iterable[_Union[Boundary, _Mapping]]] = ..., runs: _Optional[_Iterable[_Union[InlineRun, _Mapping]]] = ..., asides: _Optional[_Iterable[_Union[SetAside, _Mapping]]] = ..., witnessed: _Optional[_Iterable[_Union[Witness, _Mapping]]] = ..., pins: _Optional[_Iterable[_Union[Pin, _Mapping]]] = ..., retired: _Optional[_Iterable[_Union[Retirement, _Mapping]]] = ..., checksum: _Optional[bytes] = ...) -> None: ...

class Retirement(_message.Message):
    __slots__ = ("writer", "since", "sealed")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    writer: str
    since: int
    sealed: bool
    def __init__(self, writer: _Optional[str] = ..., since: _Optional[int] = ..., sealed: bool = ...) -> None: ...

class TimelineCoverage(_message.Message):
    __slots__ = ("writer", "branches", "list_from", "newest_commit_time", "transactions", "recent", "first_revision")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    BRANCHES_FIELD_NUMBER: _ClassVar[int]
    LIST_FROM_FIELD_NUMBER: _ClassVar[int]
    NEWEST_COMMIT_TIME_FIELD_NUMBER: _ClassVar[int]
    TRANSACTIONS_FIELD_NUMBER: _ClassVar[int]
    RECENT_FIELD_NUMBER: _ClassVar[int]
    FIRST_REVISION_FIELD_NUMBER: _ClassVar[int]
    writer: str
    branches: _containers.RepeatedCompositeFieldContainer[Head]
    list_from: int
    newest_commit_time: int
    transactions: int
    recent: _containers.RepeatedCompositeFieldContainer[Head]
    first_revision: int
    def __init__(self, writer: _Optional[str] = ..., branches: _Optional[_Iterable[_Union[Head, _Mapping]]] = ..., list_from: _Optional[int] = ..., newest_commit_time: _Optional[int] = ..., transactions: _Optional[int] = ..., recent: _Optional[_Iterable[_Union[Head, _Mapping]]] = ..., first_revision: _Optional[int] = ...) -> None: ...

class TableTotals(_message.Message):
    __slots__ = ("table", "live", "tombstones", "stubs", "sums")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    TOMBSTONES_FIELD_NUMBER: _ClassVar[int]
    STUBS_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    table: str
    live: int
    tombstones: int
    stubs: int
    sums: _containers.RepeatedCompositeFieldContainer[PartialSum]
    def __init__(self, table: _Optional[str] = ..., live: _Optional[int] = ..., tombstones: _Optional[int] = ..., stubs: _Optional[int] = ..., sums: _Optional[_Iterable[_Union[PartialSum, _Mapping]]] = ...) -> None: ...

class PartialSum(_message.Message):
    __slots__ = ("name", "group", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    group: bytes
    value: int
    def __init__(self, name: _Optional[str] = ..., group: _Optional[bytes] = ..., value: _Optional[int] = ...) -> None: ...

class ApplicationResult(_message.Message):
    __slots__ = ("writer", "id", "version", "transaction", "commit_time")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    COMMIT_TIME_FIELD_NUMBER: _ClassVar[int]
    writer: str
    id: str
    version: int
    transaction: TransactionLink
    commit_time: int
    def __init__(self, writer: _Optional[str] = ..., id: _Optional[str] = ..., version: _Optional[int] = ..., transaction: _Optional[_Union[TransactionLink, _Mapping]] = ..., commit_time: _Optional[int] = ...) -> None: ...

class Tag(_message.Message):
    __slots__ = ("name", "cut", "dropped", "created", "carried_by")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    CARRIED_BY_FIELD_NUMBER: _ClassVar[int]
    name: str
    cut: Cut
    dropped: bool
    created: int
    carried_by: TransactionStamp
    def __init__(self, name: _Optional[str] = ..., cut: _Optional[_Union[Cut, _Mapping]] = ..., dropped: bool = ..., created: _Optional[int] = ..., carried_by: _Optional[_Union[TransactionStamp, _Mapping]] = ...) -> None: ...

class Pin(_message.Message):
    __slots__ = ("name", "cut", "dropped", "carried_by")
    NAME_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    CARRIED_BY_FIELD_NUMBER: _ClassVar[int]
    name: str
    cut: Cut
    dropped: bool
    carried_by: TransactionStamp
    def __init__(self, name: _Optional[str] = ..., cut: _Optional[_Union[Cut, _Mapping]] = ..., dropped: bool = ..., carried_by: _Optional[_Union[TransactionStamp, _Mapping]] = ...) -> None: ...

class Boundary(_message.Message):
    __slots__ = ("horizon", "checkpoint", "data", "settled", "carried_by", "first", "floors")
    HORIZON_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    CARRIED_BY_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    FLOORS_FIELD_NUMBER: _ClassVar[int]
    horizon: Cut
    checkpoint: TransactionLink
    data: int
    settled: int
    carried_by: TransactionStamp
    first: Cut
    floors: _containers.RepeatedCompositeFieldContainer[TimelineFloor]
    def __init__(self, horizon: _Optional[_Union[Cut, _Mapping]] = ..., checkpoint: _Optional[_Union[TransactionLink, _Mapping]] = ..., data: _Optional[int] = ..., settled: _Optional[int] = ..., carried_by: _Optional[_Union[TransactionStamp, _Mapping]] = ..., first: _Optional[_Union[Cut, _Mapping]] = ..., floors: _Optional[_Iterable[_Union[TimelineFloor, _Mapping]]] = ...) -> None: ...

class TimelineFloor(_message.Message):
    __slots__ = ("writer", "revision")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    writer: str
    revision: int
    def __init__(self, writer: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class SegmentReference(_message.Message):
    __slots__ = ("writer", "uuid", "size", "index_offset", "index_length", "index_digest", "run", "events_of", "first_sequence", "filters_offset", "filters_length")
    WRITER_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    INDEX_OFFSET_FIELD_NUMBER: _ClassVar[int]
    INDEX_LENGTH_FIELD_NUMBER: _ClassVar[int]
    INDEX_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    EVENTS_OF_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    FILTERS_OFFSET_FIELD_NUMBER: _ClassVar[int]
    FILTERS_LENGTH_FIELD_NUMBER: _ClassVar[int]
    writer: str
    uuid: bytes
    size: int
    index_offset: int
    index_length: int
    index_digest: bytes
    run: RunSummary
    events_of: TransactionStamp
    first_sequence: int
    filters_offset: int
    filters_length: int
    def __init__(self, writer: _Optional[str] = ..., uuid: _Optional[bytes] = ..., size: _Optional[int] = ..., index_offset: _Optional[int] = ..., index_length: _Optional[int] = ..., index_digest: _Optional[bytes] = ..., run: _Optional[_Union[RunSummary, _Mapping]] = ..., events_of: _Optional[_Union[TransactionStamp, _Mapping]] = ..., first_sequence: _Optional[int] = ..., filters_offset: _Optional[int] = ..., filters_length: _Optional[int] = ...) -> None: ...

class TransactionStamp(_message.Message):
    __slots__ = ("commit_time", "writer", "revision", "uuid")
    COMMIT_TIME_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    commit_time: int
    writer: str
    revision: int
    uuid: bytes
    def __init__(self, commit_time: _Optional[int] = ..., writer: _Optional[str] = ..., revision: _Optional[int] = ..., uuid: _Optional[bytes] = ...) -> None: ...

class InlineRun(_message.Message):
    __slots__ = ("run", "blocks")
    RUN_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    run: RunSummary
    blocks: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, run: _Optional[_Union[RunSummary, _Mapping]] = ..., blocks: _Optional[_Iterable[bytes]] = ...) -> None: ...

class RunSummary(_message.Message):
    __slots__ = ("table", "rows", "blocks", "first_key", "last_key", "oldest", "newest", "level", "purpose", "name")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    CLASS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BLOCKS_FIELD_NUMBER: _ClassVar[int]
    FIRST_KEY_FIELD_NUMBER: _ClassVar[int]
    LAST_KEY_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    table: str
    rows: int
    blocks: int
    first_key: bytes
    last_key: bytes
    oldest: int
    newest: int
    level: int
    purpose: RunPurpose
    name: str
    def __init__(self, table: _Optional[str] = ..., rows: _Optional[int] = ..., blocks: _Optional[int] = ..., first_key: _Optional[bytes] = ..., last_key: _Optional[bytes] = ..., oldest: _Optional[int] = ..., newest: _Optional[int] = ..., level: _Optional[int] = ..., purpose: _Optional[_Union[RunPurpose, str]] = ..., name: _Optional[str] = ..., **kwargs) -> None: ...

class SegmentIndex(_message.Message):
    __slots__ = ("format_version", "required_features", "writer", "database", "uuid", "cut", "replaces", "tables", "entries", "filters_digest", "origin", "run", "footer_digest", "checksum")
    FORMAT_VERSION_FIELD_NUMBER: _ClassVar[int]
    REQUIRED_FEATURES_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    DATABASE_FIELD_NUMBER: _ClassVar[int]
    UUID_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    REPLACES_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    FILTERS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    FOOTER_DIGEST_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    format_version: int
    required_features: _containers.RepeatedScalarFieldContainer[str]
    writer: str
    database: str
    uuid: bytes
    cut: Cut
    replaces: _containers.RepeatedScalarFieldContainer[bytes]
    tables: _containers.RepeatedCompositeFieldContainer[TableDefinition]
    entries: _containers.RepeatedCompositeFieldContainer[BlockEntry]
    filters_digest: bytes
    origin: SegmentOrigin
    run: RunSummary
    footer_digest: bytes
    checksum: bytes
    def __init__(self, format_version: _Optional[int] = ..., required_features: _Optional[_Iterable[str]] = ..., writer: _Optional[str] = ..., database: _Optional[str] = ..., uuid: _Optional[bytes] = ..., cut: _Optional[_Union[Cut, _Mapping]] = ..., replaces: _Optional[_Iterable[bytes]] = ..., tables: _Optional[_Iterable[_Union[TableDefinition, _Mapping]]] = ..., entries: _Optional[_Iterable[_Union[BlockEntry, _Mapping]]] = ..., filters_digest: _Optional[bytes] = ..., origin: _Optional[_Union[SegmentOrigin, _Mapping]] = ..., run: _Optional[_Union[RunSummary, _Mapping]] = ..., footer_digest: _Optional[bytes] = ..., checksum: _Optional[bytes] = ...) -> None: ...

class KeyFilters(_message.Message):
    __slots__ = ("filters", "checksum")
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    filters: _containers.RepeatedCompositeFieldContainer[KeyFilter]
    checksum: bytes
    def __init__(self, filters: _Optional[_Iterable[_Union[KeyFilter, _Mapping]]] = ..., checksum: _Optional[bytes] = ...) -> None: ...

class KeyFilter(_message.Message):
    __slots__ = ("table", "words")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    CLASS_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    table: str
    words: bytes
    def __init__(self, table: _Optional[str] = ..., words: _Optional[bytes] = ..., **kwargs) -> None: ...

class SegmentOrigin(_message.Message):
    __slots__ = ("checkpoint", "tasks", "task", "part", "last", "kept", "runs")
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    checkpoint: bytes
    tasks: int
    task: int
    part: int
    last: bool
    kept: _containers.RepeatedScalarFieldContainer[bytes]
    runs: _containers.RepeatedCompositeFieldContainer[InlineRun]
    def __init__(self, checkpoint: _Optional[bytes] = ..., tasks: _Optional[int] = ..., task: _Optional[int] = ..., part: _Optional[int] = ..., last: bool = ..., kept: _Optional[_Iterable[bytes]] = ..., runs: _Optional[_Iterable[_Union[InlineRun, _Mapping]]] = ...) -> None: ...

class BlockEntry(_message.Message):
    __slots__ = ("offset", "header", "lengths", "checksums", "statistics")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    HEADER_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    CHECKSUMS_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    header: BlockHeader
    lengths: _containers.RepeatedScalarFieldContainer[int]
    checksums: _containers.RepeatedScalarFieldContainer[int]
    statistics: RowGroupStatistics
    def __init__(self, offset: _Optional[int] = ..., header: _Optional[_Union[BlockHeader, _Mapping]] = ..., lengths: _Optional[_Iterable[int]] = ..., checksums: _Optional[_Iterable[int]] = ..., statistics: _Optional[_Union[RowGroupStatistics, _Mapping]] = ...) -> None: ...

class RowGroupStatistics(_message.Message):
    __slots__ = ("chunks",)
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    chunks: _containers.RepeatedCompositeFieldContainer[ChunkStatistics]
    def __init__(self, chunks: _Optional[_Iterable[_Union[ChunkStatistics, _Mapping]]] = ...) -> None: ...

class ChunkStatistics(_message.Message):
    __slots__ = ("nulls", "low", "high")
    NULLS_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    nulls: int
    low: bytes
    high: bytes
    def __init__(self, nulls: _Optional[int] = ..., low: _Optional[bytes] = ..., high: _Optional[bytes] = ...) -> None: ...

class BlockHeader(_message.Message):
    __slots__ = ("table", "rows", "first_key", "last_key", "oldest", "newest", "expectations", "late_updates")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    CLASS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    FIRST_KEY_FIELD_NUMBER: _ClassVar[int]
    LAST_KEY_FIELD_NUMBER: _ClassVar[int]
    OLDEST_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    EXPECTATIONS_FIELD_NUMBER: _ClassVar[int]
    LATE_UPDATES_FIELD_NUMBER: _ClassVar[int]
    table: str
    rows: int
    first_key: bytes
    last_key: bytes
    oldest: int
    newest: int
    expectations: int
    late_updates: int
    def __init__(self, table: _Optional[str] = ..., rows: _Optional[int] = ..., first_key: _Optional[bytes] = ..., last_key: _Optional[bytes] = ..., oldest: _Optional[int] = ..., newest: _Optional[int] = ..., expectations: _Optional[int] = ..., late_updates: _Optional[int] = ..., **kwargs) -> None: ...

class Block(_message.Message):
    __slots__ = ("header", "rows", "checksum")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    header: BlockHeader
    rows: bytes
    checksum: int
    def __init__(self, header: _Optional[_Union[BlockHeader, _Mapping]] = ..., rows: _Optional[bytes] = ..., checksum: _Optional[int] = ...) -> None: ...
