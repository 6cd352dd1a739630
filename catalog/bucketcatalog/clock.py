"""The only module that reads clocks and makes ids; everything else is given them, so that tests can.

Times are microseconds since the epoch. A commit's uuid is version 7 (RFC 9562) with the sub-millisecond microseconds in ``rand_a``,
so the uuid alone tells the commit time to the microsecond.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
import uuid

_MILLIS_BITS = 48


def now_us() -> int:
    """The machine's wall clock, in microseconds since the epoch."""
    return time.time_ns() // 1_000


def monotonic() -> float:
    """Seconds on a clock that never goes back; only differences mean something."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    """Wait; beside the clocks so that tests can make waiting free."""
    time.sleep(seconds)


def uuid7(time_us: int, mark: bytes = b"") -> uuid.UUID:
    """A new version 7 uuid that holds ``time_us`` to the microsecond, and ends in ``mark``, of four bytes at most."""
    millis, micros = divmod(time_us, 1_000)
    if not 0 <= millis < 1 << _MILLIS_BITS:
        raise OverflowError(f"{time_us} microseconds do not fit a version 7 uuid")
    tail = int.from_bytes(os.urandom(8 - len(mark)) + mark, "big") & ((1 << 62) - 1)
    return uuid.UUID(int=millis << 80 | 0x7 << 76 | micros << 64 | 0b10 << 62 | tail)


def uuid7_time(value: bytes) -> int:
    """The microseconds since the epoch that the 16 bytes of a version 7 uuid hold."""
    number = int.from_bytes(value, "big")
    return (number >> 80) * 1_000 + ((number >> 64) & 0xFFF)


def random_token() -> str:
    """Sixteen random hexadecimal digits, for names of temporary files."""
    return os.urandom(8).hex()


def random_uuid() -> uuid.UUID:
    """A uuid of version 4, for ids that say nothing."""
    return uuid.UUID(bytes=os.urandom(16), version=4)


def host_name() -> str:
    """This machine's name, for the default ids of writers."""
    return socket.gethostname()


def uuid5(namespace: bytes, *parts: bytes) -> bytes:
    """The 16 bytes of the version 5 uuid (RFC 9562) of the parts, joined, in a namespace."""
    return uuid5_of_digest(hashlib.sha1(b"".join((namespace, *parts)), usedforsecurity=False).digest())


def uuid5_of_digest(digest: bytes) -> bytes:
    """The version 5 uuid that the SHA-1 ``digest`` of namespace and name makes."""
    return digest[:6] + bytes((digest[6] & 0x0F | 0x50, digest[7], digest[8] & 0x3F | 0x80)) + digest[9:16]
