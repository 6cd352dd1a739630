from bucketcatalog.v1 import options_pb2 as _options_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class Bucket(_message.Message):
    __slots__ = ("owner", "name", "id", "created", "region", "versioning", "object_lock", "tags", "properties", "external", "source")
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    OWNER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    VERSIONING_FIELD_NUMBER: _ClassVar[int]
    OBJECT_LOCK_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    owner: bytes
    name: str
    id: bytes
    created: int
    region: str
    versioning: str
    object_lock: bool
    tags: _containers.ScalarMap[str, str]
    properties: str
    external: bool
    source: str
    def __init__(self, owner: _Optional[bytes] = ..., name: _Optional[str] = ..., id: _Optional[bytes] = ..., created: _Optional[int] = ..., region: _Optional[str] = ..., versioning: _Optional[str] = ..., object_lock: bool = ..., tags: _Optional[_Mapping[str, str]] = ..., properties: _Optional[str] = ..., external: bool = ..., source: _Optional[str] = ...) -> None: ...

class Object(_message.Message):
    __slots__ = ("owner", "bucket_id", "name", "id", "created", "modified", "creator", "content_length", "content_md5", "content_type", "headers", "roles", "sharks", "properties", "etag", "version_id", "storage_class", "checksum_algorithm", "checksum", "encryption", "encryption_key", "replication_status", "lock_mode", "lock_retain_until", "legal_hold", "tags", "user_metadata", "parts", "file_type", "link_target", "uid", "gid", "mode", "inode", "links")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class UserMetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    OWNER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_FIELD_NUMBER: _ClassVar[int]
    CREATOR_FIELD_NUMBER: _ClassVar[int]
    CONTENT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_MD5_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    SHARKS_FIELD_NUMBER: _ClassVar[int]
    PROPERTIES_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    VERSION_ID_FIELD_NUMBER: _ClassVar[int]
    STORAGE_CLASS_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_KEY_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_STATUS_FIELD_NUMBER: _ClassVar[int]
    LOCK_MODE_FIELD_NUMBER: _ClassVar[int]
    LOCK_RETAIN_UNTIL_FIELD_NUMBER: _ClassVar[int]
    LEGAL_HOLD_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    USER_METADATA_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    FILE_TYPE_FIELD_NUMBER: _ClassVar[int]
    LINK_TARGET_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    GID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    INODE_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    owner: bytes
    bucket_id: bytes
    name: str
    id: bytes
    created: int
    modified: int
    creator: bytes
    content_length: int
    content_md5: bytes
    content_type: str
    headers: _containers.ScalarMap[str, str]
    roles: _containers.RepeatedScalarFieldContainer[bytes]
    sharks: _containers.RepeatedScalarFieldContainer[str]
    properties: str
    etag: str
    version_id: str
    storage_class: str
    checksum_algorithm: str
    checksum: str
    encryption: str
    encryption_key: str
    replication_status: str
    lock_mode: str
    lock_retain_until: int
    legal_hold: bool
    tags: _containers.ScalarMap[str, str]
    user_metadata: _containers.ScalarMap[str, str]
    parts: int
    file_type: str
    link_target: str
    uid: int
    gid: int
    mode: int
    inode: int
    links: int
    def __init__(self, owner: _Optional[bytes] = ..., bucket_id: _Optional[bytes] = ..., name: _Optional[str] = ..., id: _Optional[bytes] = ..., created: _Optional[int] = ..., modified: _Optional[int] = ..., creator: _Optional[bytes] = ..., content_length: _Optional[int] = ..., content_md5: _Optional[bytes] = ..., content_type: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., roles: _Optional[_Iterable[bytes]] = ..., sharks: _Optional[_Iterable[str]] = ..., properties: _Optional[str] = ..., etag: _Optional[str] = ..., version_id: _Optional[str] = ..., storage_class: _Optional[str] = ..., checksum_algorithm: _Optional[str] = ..., checksum: _Optional[str] = ..., encryption: _Optional[str] = ..., encryption_key: _Optional[str] = ..., replication_status: _Optional[str] = ..., lock_mode: _Optional[str] = ..., lock_retain_until: _Optional[int] = ..., legal_hold: bool = ..., tags: _Optional[_Mapping[str, str]] = ..., user_metadata: _Optional[_Mapping[str, str]] = ..., parts: _Optional[int] = ..., file_type: _Optional[str] = ..., link_target: _Optional[str] = ..., uid: _Optional[int] = ..., gid: _Optional[int] = ..., mode: _Optional[int] = ..., inode: _Optional[int] = ..., links: _Optional[int] = ...) -> None: ...

class ObjectVersion(_message.Message):
    __slots__ = ("owner", "bucket_id", "name", "version_id", "id", "ordinal", "is_latest", "is_delete_marker", "created", "modified", "content_length", "content_md5", "content_type", "headers", "etag", "storage_class", "checksum_algorithm", "checksum", "encryption", "encryption_key", "replication_status", "lock_mode", "lock_retain_until", "legal_hold", "tags", "user_metadata", "parts")
    class HeadersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class TagsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class UserMetadataEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    OWNER_FIELD_NUMBER: _ClassVar[int]
    BUCKET_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_ID_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    IS_LATEST_FIELD_NUMBER: _ClassVar[int]
    IS_DELETE_MARKER_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    MODIFIED_FIELD_NUMBER: _ClassVar[int]
    CONTENT_LENGTH_FIELD_NUMBER: _ClassVar[int]
    CONTENT_MD5_FIELD_NUMBER: _ClassVar[int]
    CONTENT_TYPE_FIELD_NUMBER: _ClassVar[int]
    HEADERS_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    STORAGE_CLASS_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    CHECKSUM_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_FIELD_NUMBER: _ClassVar[int]
    ENCRYPTION_KEY_FIELD_NUMBER: _ClassVar[int]
    REPLICATION_STATUS_FIELD_NUMBER: _ClassVar[int]
    LOCK_MODE_FIELD_NUMBER: _ClassVar[int]
    LOCK_RETAIN_UNTIL_FIELD_NUMBER: _ClassVar[int]
    LEGAL_HOLD_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    USER_METADATA_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    owner: bytes
    bucket_id: bytes
    name: str
    version_id: str
    id: bytes
    ordinal: int
    is_latest: bool
    is_delete_marker: bool
    created: int
    modified: int
    content_length: int
    content_md5: bytes
    content_type: str
    headers: _containers.ScalarMap[str, str]
    etag: str
    storage_class: str
    checksum_algorithm: str
    checksum: str
    encryption: str
    encryption_key: str
    replication_status: str
    lock_mode: str
    lock_retain_until: int
    legal_hold: bool
    tags: _containers.ScalarMap[str, str]
    user_metadata: _containers.ScalarMap[str, str]
    parts: int
    def __init__(self, owner: _Optional[bytes] = ..., bucket_id: _Optional[bytes] = ..., name: _Optional[str] = ..., version_id: _Optional[str] = ..., id: _Optional[bytes] = ..., ordinal: _Optional[int] = ..., is_latest: bool = ..., is_delete_marker: bool = ..., created: _Optional[int] = ..., modified: _Optional[int] = ..., content_length: _Optional[int] = ..., content_md5: _Optional[bytes] = ..., content_type: _Optional[str] = ..., headers: _Optional[_Mapping[str, str]] = ..., etag: _Optional[str] = ..., storage_class: _Optional[str] = ..., checksum_algorithm: _Optional[str] = ..., checksum: _Optional[str] = ..., encryption: _Optional[str] = ..., encryption_key: _Optional[str] = ..., replication_status: _Optional[str] = ..., lock_mode: _Optional[str] = ..., lock_retain_until: _Optional[int] = ..., legal_hold: bool = ..., tags: _Optional[_Mapping[str, str]] = ..., user_metadata: _Optional[_Mapping[str, str]] = ..., parts: _Optional[int] = ...) -> None: ...

class HarvestError(_message.Message):
    __slots__ = ("source", "path", "code", "message", "seen")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    source: str
    path: str
    code: str
    message: str
    seen: int
    def __init__(self, source: _Optional[str] = ..., path: _Optional[str] = ..., code: _Optional[str] = ..., message: _Optional[str] = ..., seen: _Optional[int] = ...) -> None: ...
