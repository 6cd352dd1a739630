"""What a message may say at most, and which names, revisions, times and uuids are any: looked at before anything is made of it.

A right checksum says that a file is what its writer meant, not that its writer means well. So each quantity is compared with ``limits``
before memory is taken for it, and what is none is refused by the file that says it, not later by whoever builds a path or a date of it.
What is wrong is a ``ValueError`` with the end of a sentence about the file, which the decoders make a ``CorruptionError``; a single value
that is right is given back. Writers look at what they have encoded in the same way, so that nobody publishes what nobody reads. Source:
docs/spec/bounds.md.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from .. import limits
from ..errors import CorruptionError, IncompatibleTable, InvalidOption
from ..model.names import is_name, is_tag_name
from ..model.times import FIRST_TIME, LAST_TIME, is_uuid7
from ..v1 import log_pb2

UNDECODABLE: tuple[type[Exception], ...] = (
    DecodeError,
    pa.ArrowException,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    NotImplementedError,
    RecursionError,
    OSError,
    struct.error,
    zlib.error,
    IncompatibleTable,
)
"""What libraries, and our own code over what they give, raise for bytes that are not what they should be; and a definition of no table."""
_DIGEST = 32


def why(error: Exception) -> str:
    """What an error says, as the end of a sentence."""
    return (error.message if isinstance(error, IncompatibleTable) else f"{error}").rstrip(".")


def check_size(size: int, name: str, holds: str) -> None:
    """``CorruptionError`` where a file of that size is larger than any transaction or checkpoint is; it may be larger than was read."""
    if size > limits.LOG_FILE_BYTES:
        raise CorruptionError(f"{name} has more than {limits.LOG_FILE_BYTES} bytes: it is not {holds}, none has so many.")


@lru_cache(maxsize=4_096)
def name_of(text: str) -> str:
    """The name of a writer or a database."""
    if not is_name(text):
        raise ValueError(f"{text[:80]!r} cannot be the name of a writer or a database")
    return text


def tag_name_of(text: str) -> str:
    """The name of a tag."""
    if not is_tag_name(text):
        raise ValueError(f"{text[:80]!r} cannot be the name of a tag")
    return text


def revision_of(revision: int) -> int:
    """A place on a timeline."""
    if revision >= limits.REVISIONS:
        raise ValueError(f"it names the revision {revision}, and all are below {limits.REVISIONS}")
    return revision


def count_of(count: int) -> int:
    """Of rows or of transactions."""
    if count > limits.COUNTS:
        raise ValueError(f"it counts {count} of something, and nobody counts more than {limits.COUNTS}")
    return count


def time_of(time: int) -> int:
    """A time that anybody can show."""
    if not FIRST_TIME <= time <= LAST_TIME:
        raise ValueError(f"it names the time {time}, which lies outside of the years 1 to 9999")
    return time


def uuid_of(message: Any) -> bytes:
    """The uuid of a message that is about a file: version 7, of a time that anybody can show."""
    uuid: bytes = message.uuid
    if not is_uuid7(uuid):
        raise ValueError(
            f"it names something by {len(uuid)} bytes where a uuid has 16"
            if len(uuid) != 16
            else f"it names something by {uuid.hex()}, which is no uuid of version 7 of a time before the year 10000"
        )
    return uuid


def digest_of(digest: bytes) -> bytes:
    """The digest of a file; none is one of what nobody could read."""
    if len(digest) not in (_DIGEST, 0):
        raise ValueError(f"it names something by a digest of {len(digest)} bytes")
    return digest


def heads_of(entry: Any) -> Any:
    """The messages of one timeline's heads."""
    _refuse_many(len(entry.heads), limits.HEADS, "heads of one timeline")
    return entry.heads


def check_run(run: Any) -> None:
    """What a run comes to."""
    if run.rows > limits.RUN_ROWS or run.blocks > limits.ROW_GROUPS or run.level >= limits.RUN_LEVELS:
        raise ValueError(
            f"it names a run of {run.rows} rows in {run.blocks} blocks on level {run.level}, and none has more than {limits.RUN_ROWS} in "
            f"{limits.ROW_GROUPS}, or lies on level {limits.RUN_LEVELS}"
        )
    if not FIRST_TIME <= run.oldest <= LAST_TIME or not FIRST_TIME <= run.newest <= LAST_TIME:
        raise ValueError(f"it names a run of the times {run.oldest} to {run.newest}, which lie outside of the years 1 to 9999")


def check_segment(segment: Any) -> None:
    """A reference to a segment: what is read of one has to lie in it, and is read at once."""
    size, index, length = segment.size, segment.index_offset, segment.index_length
    filters, filters_length = segment.filters_offset, segment.filters_length
    if size > limits.SEGMENT_BYTES or length > limits.INDEX_BYTES or filters_length > limits.FILTER_BYTES:
        raise ValueError(
            f"it names a segment of {size} bytes with {length} of index and {filters_length} of filters: none is so large"
        )
    if index + length > size or (filters_length and filters + filters_length != index):
        raise ValueError(f"it names a segment of {size} bytes whose index or filters lie elsewhere")


def check_transaction(message: Any) -> None:
    """What a transaction says of itself, and how much of what."""
    _check_own(message)
    time_of(message.commit_time)
    parents, actions = message.parents, message.actions
    _refuse_many(len(parents), limits.PARENTS, "parents")
    after = max((link.revision for link in parents), default=-1)
    if message.revision != after + 1:  # else what lies between could come later, and count as read
        raise ValueError(f"it has revision {message.revision} and follows {f'revision {after}' if parents else 'nothing'}")
    _refuse_many(len(actions), limits.ACTIONS, "events one by one")
    if message.blocks:
        _check_blocks((block.header for block in message.blocks), limits.BLOCK_ROWS, log_pb2.BLOCK_CLASS_EVENTS)
    if message.segments:
        _check_events(message.segments)


def _check_events(segments: Any) -> None:
    rows = sum(segment.run.rows for segment in segments)
    if rows > limits.RUN_ROWS:
        raise ValueError(f"it names {rows} events in segments, and none has more than {limits.RUN_ROWS}")
    of_rows = (log_pb2.RUN_PURPOSE_UNSPECIFIED, log_pb2.RUN_PURPOSE_ROWS)
    if any(segment.first_sequence + segment.run.rows > limits.RUN_ROWS for segment in segments):
        raise ValueError(f"it numbers events in a segment beyond {limits.RUN_ROWS}")
    if any(getattr(s.run, "class") != log_pb2.BLOCK_CLASS_EVENTS or s.run.purpose not in of_rows for s in segments):
        raise ValueError("it names a segment that is not of events")


def check_checkpoint(message: Any) -> None:
    """The same of a checkpoint."""
    _check_own(message)
    for time in (message.created, message.forgotten_before):
        time_of(time)
    rows = sum(inline.run.rows for inline in message.runs)
    if rows > limits.CHECKPOINT_ROWS:
        raise ValueError(f"it claims {rows} rows in itself, and none has more than {limits.CHECKPOINT_ROWS}")


def check_inline(run: Any, headers: Iterable[Any]) -> None:
    """The blocks of a run that a message holds itself: as many rows as that says, of its class."""
    rows = _check_blocks(headers, limits.CHECKPOINT_ROWS, getattr(run, "class"))
    if rows != run.rows:
        raise ValueError(f"it holds a run of {rows} rows that claims {run.rows}")


def check_definitions(definitions: Any, most: int = limits.DEFINITIONS, most_bytes: int = limits.DEFINITION_BYTES) -> None:
    """How many definitions of tables a file has, and their bytes."""
    _refuse_many(len(definitions), most, "definitions of tables")
    size = sum(definition.ByteSize() for definition in definitions)
    if size > most_bytes:
        raise ValueError(f"its definitions of tables have {size} bytes, and those of a file have at most {most_bytes}")


def refuse_unreadable(message: Any, read: Callable[[], object], size: int) -> None:
    """``InvalidOption`` where no reader would take what is about to be published, which ``read`` reads as one would."""
    try:
        read()
        if size > limits.LOG_FILE_BYTES:
            raise ValueError(f"it has {size} bytes, and none has more than {limits.LOG_FILE_BYTES}")
    except UNDECODABLE as error:
        kind = type(message).__name__.lower()
        raise InvalidOption(
            f"No reader would take this {kind} of {message.writer!r}: {why(error)}.",
            next_step="Say less at once; nothing was published.",
        ) from None


def _check_own(message: Any) -> None:
    """What transactions and checkpoints both say of themselves."""
    name_of(message.writer)
    name_of(message.database)
    revision_of(message.revision)
    uuid_of(message)
    if not 0 <= message.lateness_bound <= limits.MAX_LATENESS_BOUND:
        raise ValueError(
            f"it claims a lateness bound of {message.lateness_bound} microseconds, and none is below 0 or above {limits.MAX_LATENESS_BOUND}"
        )


def _check_blocks(headers: Iterable[Any], most: int, block_class: int) -> int:
    rows = 0
    for header in headers:
        if not 0 < header.rows <= limits.BLOCK_ROWS:
            raise ValueError(f"it holds a block of {header.rows} rows, and each has 1 to {limits.BLOCK_ROWS}")
        if getattr(header, "class") != block_class:
            raise ValueError(f"it holds a block of class {getattr(header, 'class')} where one of class {block_class} should be")
        rows += header.rows
        if rows > most:
            raise ValueError(f"it holds blocks of more than {most} rows")
    return rows


def _refuse_many(count: int, most: int, what: str) -> None:
    if count > most:
        raise ValueError(f"it has {count} {what}, and none has more than {most}")
