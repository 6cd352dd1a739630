"""Uuids as their 16 bytes, as which transactions are named and keys hold them, and as text of 36 characters, as which rows have them."""

from __future__ import annotations

import hashlib
import re
import uuid
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import is_constant

MARK_BYTES = 4
_is_text = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
"""Whether text is that of a uuid as rows have it: nearly all that is given is."""


def uuid_text(raw: bytes) -> str:
    """The 36 characters of 16 bytes."""
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


@cache
def writer_mark(writer: str) -> bytes:
    """What the uuids of a writer's transactions end in: versions are named by these alone, so that no two writers may have one."""
    return hashlib.sha256(writer.encode()).digest()[:MARK_BYTES]


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of a uuid's text, with or without dashes."""
    return bytes.fromhex(text.replace("-", ""))


def is_uuid_text(value: Any) -> bool:
    """Whether it is text that a uuid can be written as."""
    try:
        return isinstance(value, str) and bool(uuid_value(value))
    except ValueError:
        return False


def uuid_value(value: Any) -> str:
    """A uuid given as ``uuid.UUID``, text or 16 bytes as its text; ``ValueError`` or ``TypeError`` for anything else."""
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, str):
        if _is_text(value):
            return value
        try:
            return str(uuid.UUID(value))
        except ValueError:
            raise ValueError(f"{value!r} is not a uuid") from None
    raw = bytes(value) if isinstance(value, (bytes, bytearray, memoryview)) else None
    if raw is None or len(raw) != 16:
        raise TypeError("a uuid is a uuid.UUID, its text, or 16 bytes")
    return uuid_text(raw)


_BYTES, _DIGITS, _TEXT, _WORD = 16, 32, 36, 4
_BAD = 0xFF
_NIBBLES = np.full(256, _BAD, dtype=np.uint8)
for _digit in range(16):
    _NIBBLES[ord(f"{_digit:x}")] = _NIBBLES[ord(f"{_digit:X}")] = _digit
_SAMPLE = 64
_FEW = 8
"""So few are looked at one by one: blocks have no more owners and buckets, as a rule."""
_NIL = "00000000-0000-0000-0000-000000000000"
_DASHES = (8, 13, 18, 23)
_PLACES = (0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34)
"""Where in the text the two digits of each byte stand."""


@cache
def _words() -> list[tuple[int, npt.NDArray[np.uint32]]]:
    """For each four characters of a uuid's text the first of the two bytes that they are made of, and the four by those two."""
    two = np.arange(1 << 16, dtype=np.uint16).view(np.uint8)
    digits = np.frombuffer(b"0123456789abcdef-", dtype=np.uint8)
    first, second = two[0::2], two[1::2]
    dash = np.full(len(first), 16, dtype=np.uint8)
    nibbles = {"a": first >> 4, "b": first & 15, "c": second >> 4, "d": second & 15, "-": dash}
    shapes = ["abcd", "-abc", "b-cd", "ab-c", "bcd-"]
    whole, *parted = [digits[np.stack([nibbles[c] for c in shape], axis=1)].view(np.uint32).ravel() for shape in shapes]
    places = [(0, whole), (2, whole), *zip((4, 5, 7, 8), parted, strict=True)]
    return [*places, (10, whole), (12, whole), (14, whole)]


def to_text(values: pa.Array) -> pa.Array:
    """``fixed_size_binary[16]`` as strings of 36 characters; nulls stay null.

    Keys repeat their uuids for many rows, so an array of one value is formatted once, and one whose first values repeat by its distinct
    values.
    """
    if values.null_count == len(values):
        return pa.nulls(len(values), pa.string())
    if values.null_count == 0 and is_constant(values):
        return pa.repeat(_format(values[:1])[0], len(values))
    repeating = _repeating(values)
    return _format(values) if repeating is None else _format(repeating.dictionary).take(repeating.indices)


def _repeating(values: pa.Array) -> pa.DictionaryArray | None:
    """The values as a dictionary of the distinct ones, where the first repeat and at most half of all are distinct."""
    if len(values) <= _SAMPLE or len(pc.unique(values[:_SAMPLE])) > _SAMPLE // 2:
        return None
    encoded = values.dictionary_encode()
    return encoded if len(encoded.dictionary) <= len(values) // 2 else None


def _format(values: pa.Array) -> pa.Array:
    count = len(values)
    text = np.empty((count, _TEXT // _WORD), dtype=np.uint32)
    for number, (place, words) in enumerate(_words() if count else ()):
        two = np.ndarray((count,), np.uint16, values.buffers()[1], values.offset * _BYTES + place, (_BYTES,))
        text[:, number] = np.take(words, two)
    offsets = np.arange(0, (count + 1) * _TEXT, _TEXT, dtype=np.int32)
    formatted = pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))
    return formatted if values.null_count == 0 else pc.if_else(values.is_valid(), formatted, None)


def from_text(values: pa.Array) -> pa.Array:
    """Strings, with or without dashes, as ``fixed_size_binary[16]``; ``ValueError`` names the first that is no uuid."""
    if not len(values) or values.null_count == len(values):
        return pa.nulls(len(values), pa.binary(_BYTES))
    if len(values) <= _FEW:
        few = values.to_pylist()
        if all(text is None or _is_text(text) for text in few):
            return pa.array([None if text is None else uuid_bytes(text) for text in few], pa.binary(_BYTES))
    if len(values) > 1 and is_constant(values):
        return pa.repeat(from_text(values[:1])[0], len(values))
    if (repeating := _repeating(values)) is not None:
        with suppress(ValueError):  # which row is wrong the values tell
            return from_text(repeating.dictionary).take(repeating.indices)
    text = pc.fill_null(values, _NIL) if values.null_count else values
    packed = _packed_as_shown(text)
    packed = _packed(text, values) if packed is None else packed
    parsed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_BYTES), len(values), [None, pa.py_buffer(packed)])
    return parsed if values.null_count == 0 else pc.if_else(values.is_valid(), parsed, pa.scalar(None, pa.binary(_BYTES)))


def are_shown(values: pa.Array) -> bool:
    """Whether strings, none of them null, are uuids as ``to_text`` spells them."""
    if len(values) <= _FEW:
        return all(map(_is_text, values.to_pylist()))
    if len(values) > 1 and is_constant(values):
        return are_shown(values[:1])
    if (repeating := _repeating(values)) is not None:
        return are_shown(repeating.dictionary)
    try:
        return bool(to_text(from_text(values)).equals(values))
    except ValueError:
        return False


def may_be_text(values: pa.Array) -> bool:
    """The same, as far as lengths tell, which costs next to nothing."""
    return not len(values) or pc.min_max(pc.binary_length(values)).as_py() == {"min": _TEXT, "max": _TEXT}


@cache
def _pairs() -> npt.NDArray[np.int16]:
    """What two digits are together, by the two characters as one number; -1 where they are none."""
    first, second = _NIBBLES.astype(np.int16)[None, :], _NIBBLES.astype(np.int16)[:, None]
    return np.where((first == _BAD) | (second == _BAD), -1, first << 4 | second).astype(np.int16).ravel()


def _packed_as_shown(text: pa.Array) -> npt.NDArray[np.uint8] | None:
    """The bytes of uuids that are spelled as ``to_text`` does, in capitals or not; None where any is not."""
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int32, count=len(text) + 1, offset=4 * text.offset)
    if not pa.types.is_string(text.type) or (np.diff(offsets) != _TEXT).any():
        return None
    packed = np.empty((len(text), _BYTES), dtype=np.int16)
    for number, place in enumerate(_PLACES):
        two = np.ndarray((len(text),), np.uint16, text.buffers()[2], int(offsets[0]) + place, (_TEXT,))
        np.take(_pairs(), two, out=packed[:, number])
    dashes = (np.ndarray((len(text),), np.uint8, text.buffers()[2], int(offsets[0]) + place, (_TEXT,)) for place in _DASHES)
    if (packed < 0).any() or not all((dash == ord("-")).all() for dash in dashes):
        return None
    return packed.astype(np.uint8)


def _packed(text: pa.Array, values: pa.Array) -> npt.NDArray[np.uint8]:
    """The bytes of uuids that are spelled in any way; ``ValueError`` names the first of the ``values`` that is none."""
    plain = pc.replace_substring(text.cast(pa.string()), "-", "")
    wrong = pc.not_equal(pc.binary_length(plain), _DIGITS)
    if not pc.any(wrong, min_count=0).as_py():
        digits = _digits(plain.cast(pa.binary(_DIGITS)))
        bad = (digits == _BAD).any(axis=1)
        if not bad.any():
            return np.ascontiguousarray(digits[:, 0::2] << 4 | digits[:, 1::2])
        wrong = pa.array(bad)
    first = pc.index(wrong, True).as_py()
    raise ValueError(f"row {first}: {values[first].as_py()!r} is not a uuid")


def _digits(values: pa.Array) -> npt.NDArray[np.uint8]:
    raw = np.frombuffer(values.buffers()[1], dtype=np.uint8, offset=values.offset * _DIGITS, count=len(values) * _DIGITS)
    return _NIBBLES[raw].reshape(len(values), _DIGITS)
