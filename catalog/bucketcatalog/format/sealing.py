"""The checksum that ends every stand-alone message, checked before anything is parsed; where such a message lies, and fields within one.

A sealed message is the message's bytes followed by its last field, number 2047: for Transaction, Checkpoint and SegmentIndex the SHA-256
of every byte before the field, for Block the CRC-32. Any protobuf library parses the whole.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any

from .. import limits
from ..errors import CorruptionError, TruncatedObject, UnsupportedFormat

_VARINT, _FIXED64, _LENGTH_DELIMITED, _FIXED32 = 0, 1, 2, 5
_MOST_BITS = 70


def field_spans(message: bytes, number: int) -> Iterator[tuple[int, int]]:
    """Offset and length of the content of every length-delimited top-level field ``number``; ``ValueError`` where it is no message."""
    at, end = 0, len(message)
    while at < end:
        tag, at = varint_at(message, at)
        kind = tag & 7
        if kind == _LENGTH_DELIMITED:
            length, at = varint_at(message, at)
            if tag >> 3 == number:
                yield at, length
            at += length
        elif kind == _VARINT:
            _, at = varint_at(message, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind} at byte {at}")
    if at != end:
        raise ValueError("a field ends beyond the message")


def varint_at(message: bytes, at: int) -> tuple[int, int]:
    """The number at an offset of a message, and where what follows it begins; ``ValueError`` where there is none."""
    value = shift = 0
    while shift < _MOST_BITS and at < len(message):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number ends beyond the message, or beyond ten bytes")


SEAL = b"\xfa\x7f\x20"
"""What the last field of a sealed message begins with, before its 32 bytes."""
SEALED_BYTES = len(SEAL) + 32
_CRC_TAG = b"\xfd\x7f"
_CRC_SIZE = len(_CRC_TAG) + 4
FORMAT_VERSION = 1
PARTIAL = "partial"
"""A checkpoint of one timeline covers only what the horizon's does not."""
RUNS = "runs"
"""Rows of one key may lie in several runs, and have to be folded together."""
VOIDS = "voids"
"""Some transactions are to be treated as absent."""
BOUNDARY = "boundary"
"""Something may have been deleted: cuts that do not contain the horizon are not readable."""
ASIDES = "asides"
"""Some transactions count as ones without events, whatever their files hold."""
SEQUENCES = "sequences"
"""Events in segments have other numbers than their rows say: something is added to these."""
PINS = "pins"
"""Somebody needs the history after a cut: who deletes, or writes a checkpoint, has to know it."""
KNOWN_FEATURES = frozenset({ASIDES, BOUNDARY, PARTIAL, PINS, RUNS, SEQUENCES, VOIDS})


def seal(body: bytes) -> bytes:
    """``body`` with its SHA-256 as the last field."""
    return body + SEAL + hashlib.sha256(body).digest()


def digest(sealed: bytes) -> bytes:
    """The checksum field of sealed bytes; other files name the message by it."""
    return sealed[-32:]


def is_sealed(data: bytes) -> bool:
    """Whether bytes end with the right checksum of all that is before it."""
    body, trailer = data[:-SEALED_BYTES], data[-SEALED_BYTES:]
    return trailer[: len(SEAL)] == SEAL and hashlib.sha256(body).digest() == trailer[len(SEAL) :]


def has_seal(data: bytes) -> bool:
    """Whether bytes end with a checksum, be it that of what is before it or not."""
    return data[-SEALED_BYTES:].startswith(SEAL)


def unseal(sealed: bytes, name: str, holds: str) -> bytes:
    """The bytes of a message whose checksum is right, else ``CorruptionError`` that names the file and what it held."""
    body, trailer = sealed[:-SEALED_BYTES], sealed[-SEALED_BYTES:]
    if len(trailer) < SEALED_BYTES:
        raise TruncatedObject(f"{name} is too short to be {holds}.")
    if not is_sealed(sealed):
        raise CorruptionError(f"{name} is damaged: the checksum of {holds} does not match.")
    return body


_FIRST = b"\x08" + bytes([FORMAT_VERSION])
"""What a message begins with that has its format version first."""
LENGTH_BYTES = 4
"""Behind the index of a segment, they say how long it is."""
_MOST_TRIED = 4_096
"""Places at which a message is looked for in a damaged file."""


def find_sealed(data: bytes) -> tuple[int, int] | None:
    """Where a whole sealed message lies in a file of which the end is damaged, or cut off, from and up to; None where none is found."""
    for start, stop in islice(_sealed_spans(data), _MOST_TRIED):
        if is_sealed(data[start:stop]):
            return start, stop
    return None


def _sealed_spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Where one may lie: up to a checksum, from where the length behind that says, or any place where it looks as it begins."""
    at = data.rfind(SEAL)
    while at >= 0:
        stop = at + SEALED_BYTES
        start = stop - int.from_bytes(data[stop : stop + LENGTH_BYTES], "little")
        if 0 < start < at:
            yield start, stop
        first = max(at - limits.INDEX_BYTES, 0)  # no reader takes a larger one
        start = data.rfind(_FIRST, first, at)
        while start > 0:
            yield start, stop
            start = data.rfind(_FIRST, first, start)
        at = data.rfind(SEAL, 0, at)


def check_format(message: Any, name: str) -> None:
    """``UnsupportedFormat`` where the file needs more than this release knows."""
    needed = message.required_features
    unknown = sorted(set(needed) - KNOWN_FEATURES) if needed else ()
    if unknown:
        raise UnsupportedFormat(
            f"{name} needs the feature {unknown[0]!r}, which this release does not know.",
            next_step="Read it with a newer release of bucketcatalog.",
        )
    if message.format_version > FORMAT_VERSION:
        raise UnsupportedFormat(
            f"{name} has format version {message.format_version}; this release reads up to {FORMAT_VERSION}.",
            next_step="Read it with a newer release of bucketcatalog.",
        )


def seal_block(body: bytes) -> tuple[bytes, int]:
    """``body`` with its CRC-32 as the last field, and the CRC-32."""
    checksum = zlib.crc32(body)
    return body + _CRC_TAG + checksum.to_bytes(4, "little"), checksum


def block_checksum(sealed: bytes | memoryview, name: str, holds: str) -> int:
    """The CRC-32 of a sealed block after checking it, else ``CorruptionError``."""
    if len(sealed) < _CRC_SIZE:
        raise TruncatedObject(f"{name} ends within {holds}.")
    view = memoryview(sealed)
    checksum = zlib.crc32(view[:-_CRC_SIZE])
    if bytes(view[-_CRC_SIZE:]) != _CRC_TAG + checksum.to_bytes(4, "little"):
        raise CorruptionError(f"{name} is damaged: the checksum of {holds} does not match.")
    return checksum
