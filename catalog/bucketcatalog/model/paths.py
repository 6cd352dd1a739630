"""Builds and parses every object name of a catalog; no other module knows how names are put together.

::

    <writer>/<database>/transactions/<revision:020>/<uuid>.txn
    <writer>/<database>/transactions/<revision:020>/<uuid>.ckpt
    <writer>/<database>/newest/<99999999999999999999 - revision:020>-<checkpoint uuid>
    <writer>/<database>/segments/<uuid>.parquet
    <writer>/<database>/data/...

Numbers are padded so that names sort as the numbers do; ``newest/`` counts down, so that the newest checkpoint sorts first. Names that
do not parse are not the catalog's and are ignored. Source: IOx catalog persistence, 4.3, with full-width numbers and uuids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from .. import limits
from .cuts import Head, OnTimeline
from .names import is_name
from .times import is_uuid7
from .uuids import uuid_bytes, uuid_text

_LAST = 10**20 - 1
_DATA = "data"
TIMELINE_FOLDERS = frozenset({"transactions", "newest"})
"""Where one of these is, a writer has committed, or written a checkpoint."""
FOLDERS = TIMELINE_FOLDERS | {"segments", _DATA}
"""All that a writer has in a database."""
_UUID = r"(?P<uuid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
_LOG_FILE = re.compile(rf"(?P<revision>[0-9]{{20}})/{_UUID}\.(?P<kind>txn|ckpt)", re.ASCII)
_NEWEST = re.compile(rf"(?P<countdown>[0-9]{{20}})-{_UUID}", re.ASCII)
_SEGMENT = re.compile(rf"{_UUID}\.parquet", re.ASCII)
_OF_A_LOG = re.compile(
    rf"(?:.*/)?(?:transactions/{_LOG_FILE.pattern}|newest/{_NEWEST.pattern}|segments/{_SEGMENT.pattern})".replace(
        "?P<uuid>", "?:"
    ),
    re.ASCII | re.DOTALL,
)


class FileKind(Enum):
    """The kinds of files that have content, by the ending of their names; the first two lie on timelines."""

    TRANSACTION = "txn"
    CHECKPOINT = "ckpt"
    SEGMENT = "parquet"


_ENDINGS = frozenset(kind.value for kind in FileKind)


@dataclass(frozen=True, slots=True, order=True)
class LogFile(OnTimeline):
    """A transaction or checkpoint as its name tells it: where it stands on its timeline, and its 16-byte uuid."""

    revision: int
    uuid: bytes
    kind: FileKind

    @property
    def is_transaction(self) -> bool:
        """Whether it is a transaction; else it is a checkpoint."""
        return self.kind is FileKind.TRANSACTION


@dataclass(frozen=True, slots=True)
class Parsed:
    """The name of a file, taken apart: whose it is, in which database, and either the ``log_file`` or the uuid of the ``segment``."""

    writer: str
    database: str
    log_file: LogFile | None = None
    segment: bytes | None = None


def writer_prefix(writer: str) -> str:
    """All that a writer has in a catalog."""
    return f"{writer}/"


def database_prefix(writer: str, database: str) -> str:
    """All that a writer has in a database, in ``FOLDERS``."""
    return f"{writer}/{database}/"


def transactions_prefix(writer: str, database: str) -> str:
    """The writer's timeline."""
    return f"{database_prefix(writer, database)}transactions/"


def newest_prefix(writer: str, database: str) -> str:
    """The markers of the writer's checkpoints, newest first."""
    return f"{database_prefix(writer, database)}newest/"


def segments_prefix(writer: str, database: str) -> str:
    """The writer's segments."""
    return f"{database_prefix(writer, database)}segments/"


def revision_start(writer: str, database: str, revision: int) -> str:
    """A name that sorts before every file at or after ``revision`` and after every earlier one."""
    return f"{transactions_prefix(writer, database)}{revision:020}"


def revision_prefix(writer: str, database: str, revision: int) -> str:
    """All that lies at a revision of the writer's timeline."""
    return f"{revision_start(writer, database, revision)}/"


def transaction(writer: str, database: str, head: Head) -> str:
    """The name of a transaction."""
    return f"{revision_prefix(writer, database, head.revision)}{uuid_text(head.uuid)}.txn"


def checkpoint(writer: str, database: str, head: Head) -> str:
    """The name of a checkpoint."""
    return f"{revision_prefix(writer, database, head.revision)}{uuid_text(head.uuid)}.ckpt"


def newest_marker(writer: str, database: str, head: Head) -> str:
    """The name of the empty object that leads to a checkpoint."""
    return f"{newest_prefix(writer, database)}{_LAST - head.revision:020}-{uuid_text(head.uuid)}"


def segment(writer: str, database: str, uuid: bytes) -> str:
    """The name of a segment."""
    return f"{segments_prefix(writer, database)}{uuid_text(uuid)}.parquet"


def data_prefix(writer: str, database: str) -> str:
    """The writer's data."""
    return f"{database_prefix(writer, database)}{_DATA}/"


def is_of_a_catalog(name: str) -> bool:
    """Whether a name lies where a catalog puts objects: ``<writer>/<database>/`` and one of its folders."""
    return _folder(name) in FOLDERS


def is_data_of_a_catalog(name: str) -> bool:
    """Whether a name lies where a catalog puts data: ``<writer>/<database>/data/``."""
    return _folder(name) == _DATA


def _folder(name: str) -> str:
    """In which folder of a writer's in a database a name lies; empty where it lies in none."""
    parts = name.split("/")
    return parts[2] if len(parts) > 3 and is_name(parts[0]) and is_name(parts[1]) else ""


def is_of_a_log(name: str) -> bool:
    """Whether a name ends as that of a transaction, checkpoint, marker or segment does, wherever it lies."""
    return _OF_A_LOG.fullmatch(name) is not None


def writer_of(name: str) -> str:
    """Whose namespace a name lies in."""
    return name.partition("/")[0]


def kind_of(name: str) -> FileKind | None:
    """What a file is by the ending of its name, wherever it lies; None where that is no ending of a catalog's."""
    ending = name.rpartition(".")[2]
    return FileKind(ending) if ending in _ENDINGS else None


def parse(name: str) -> Parsed | None:
    """What the name of a transaction, a checkpoint or a segment stands for, None for any other."""
    writer, _, below = name.partition("/")
    database = below.partition("/")[0]
    log_file = parse_log_file(transactions_prefix(writer, database), name)
    segment = parse_segment(segments_prefix(writer, database), name)
    is_one = is_name(writer) and is_name(database) and (log_file is not None or segment is not None)
    return Parsed(writer, database, log_file, segment) if is_one else None


def parse_log_file(prefix: str, name: str) -> LogFile | None:
    """What a name below ``transactions_prefix`` stands for, or None for a file that is not the log's."""
    match = _LOG_FILE.fullmatch(name, len(prefix)) if name.startswith(prefix) else None
    if match is None:
        return None
    return _log_file(int(match["revision"]), match["uuid"], FileKind(match["kind"]))


def parse_newest_marker(prefix: str, name: str) -> LogFile | None:
    """The checkpoint that a name below ``newest_prefix`` leads to, or None."""
    match = _NEWEST.fullmatch(name, len(prefix)) if name.startswith(prefix) else None
    if match is None:
        return None
    return _log_file(_LAST - int(match["countdown"]), match["uuid"], FileKind.CHECKPOINT)


def _log_file(revision: int, uuid: str, kind: FileKind) -> LogFile | None:
    """The file of a revision and uuid, or None where there can be none: nobody could say anything of it, such as that it is set aside."""
    raw = uuid_bytes(uuid)
    return LogFile(revision, raw, kind) if revision < limits.REVISIONS and is_uuid7(raw) else None


def parse_segment(prefix: str, name: str) -> bytes | None:
    """The uuid of the segment that a name below ``segments_prefix`` names, or None."""
    match = _SEGMENT.fullmatch(name, len(prefix)) if name.startswith(prefix) else None
    return uuid_bytes(match["uuid"]) if match else None
