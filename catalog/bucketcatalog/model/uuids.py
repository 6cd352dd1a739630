"""Uuids between their 16 bytes and their 36 characters, a whole array at a time."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_BYTES, _DIGITS, _TEXT, _WORD = 16, 32, 36, 4
_BAD = 0xFF
_NIBBLES = np.full(256, _BAD, dtype=np.uint8)
for _digit in range(16):
    _NIBBLES[ord(f"{_digit:x}")] = _NIBBLES[ord(f"{_digit:X}")] = _digit
_SAMPLE = 64


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
    if values.null_count == 0 and _is_constant(values):
        return pa.repeat(_format(values[:1])[0], len(values))
    if len(values) > _SAMPLE and len(pc.unique(values[:_SAMPLE])) <= _SAMPLE // 2:
        encoded = values.dictionary_encode()
        if len(encoded.dictionary) <= len(values) // 2:
            return _format(encoded.dictionary).take(encoded.indices)
    return _format(values)


def _is_constant(values: pa.Array) -> bool:
    halves = np.frombuffer(values.buffers()[1], dtype=np.uint64, offset=values.offset * _BYTES, count=len(values) * 2).reshape(
        -1, 2
    )
    return bool((halves[-1] == halves[0]).all() and (halves == halves[0]).all())


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
    filled = pc.replace_substring(pc.fill_null(values.cast(pa.string()), "0" * _DIGITS), "-", "")
    wrong = pc.not_equal(pc.binary_length(filled), _DIGITS)
    if not pc.any(wrong, min_count=0).as_py():
        joined = filled.cast(pa.binary(_DIGITS)) if len(filled) else pa.array([], pa.binary(_DIGITS))
        digits = _digits(joined)
        bad = (digits == _BAD).any(axis=1)
        if not bad.any():
            packed = np.ascontiguousarray(digits[:, 0::2] << 4 | digits[:, 1::2])
            parsed = pa.FixedSizeBinaryArray.from_buffers(pa.binary(_BYTES), len(values), [None, pa.py_buffer(packed)])
            return parsed if values.null_count == 0 else pc.if_else(values.is_valid(), parsed, pa.scalar(None, pa.binary(_BYTES)))
        wrong = pa.array(bad)
    first = pc.index(wrong, True).as_py()
    raise ValueError(f"row {first}: {values[first].as_py()!r} is not a uuid")


def _digits(values: pa.Array) -> npt.NDArray[np.uint8]:
    if not len(values):
        return np.empty((0, _DIGITS), np.uint8)
    raw = np.frombuffer(values.buffers()[1], dtype=np.uint8, offset=values.offset * _DIGITS, count=len(values) * _DIGITS)
    return _NIBBLES[raw].reshape(len(values), _DIGITS)
