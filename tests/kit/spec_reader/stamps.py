"""When and where events happened, and how versions are called (spec/stamps.md)."""

from __future__ import annotations

import datetime
from typing import Any
from uuid import UUID

Stamp = tuple[int, str, int, bytes, int]
"""Commit time, writer, revision, uuid, sequence number: compares as stamps do."""
Name = tuple[bytes, int]
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)


def name_of(stamp: Stamp) -> Name:
    """The name of the version or event with this stamp."""
    return stamp[3], stamp[4]


def text_of(name: Name) -> str:
    """A version's name as people see it."""
    return f"{UUID(bytes=name[0])}:{name[1]}"


def uuid_time(uuid: bytes) -> int:
    """The microseconds that a version 7 uuid holds."""
    return int.from_bytes(uuid[:6], "big") * 1000 + (int.from_bytes(uuid[6:8], "big") & 0xFFF)


def stamp_of(message: Any) -> tuple[int, str, int, bytes]:
    """What the stamps of a transaction's events begin with."""
    return message.commit_time, message.writer, message.revision, message.uuid


def time_of(micros: int) -> datetime.datetime:
    """The time that so many microseconds are."""
    return EPOCH + micros * MICROSECOND
