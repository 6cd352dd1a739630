"""Filters over keys: a few bits a key that tell which keys a run certainly does not hold, so that none of its blocks is asked for them.

A filter is a split block Bloom filter as Parquet defines it ("Bloom Filter" in its format specification), over the XXH64 hashes (seed 0)
of encoded keys: 256-bit blocks of eight 32-bit words, of which each key sets one bit in every word of one block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import Mask

Hashes = npt.NDArray[np.uint64]
BITS_PER_KEY = 12
"""One absent key in about two hundred passes."""
_BLOCK_BYTES = 32
_SALTS = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], dtype=np.uint32
)
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261)
)
_SEEDS = tuple(np.uint64(seed % (1 << 64)) for seed in (int(_P1) + int(_P2), int(_P2), 0, -int(_P1)))
_NO_HASHES = np.empty(0, dtype=np.uint64)
_STRIPE = 32
_AT_ONCE = 1 << 14
"""Hashes of which the bits are set together: what is made of them on the way stays in the processor's cache."""


@dataclass(frozen=True)
class KeyFilter:
    """The bits of some keys, in blocks of eight words."""

    words: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, hashes: Hashes) -> Self:
        """The filter of the keys with these hashes, at least one."""
        count = -(-len(hashes) * BITS_PER_KEY // (8 * _BLOCK_BYTES))
        flags = np.zeros(count * 8 * _BLOCK_BYTES, dtype=np.bool_)
        for start in range(0, len(hashes), _AT_ONCE):
            some = hashes[start : start + _AT_ONCE]
            block, low = _blocks(some, count) * (8 * _BLOCK_BYTES), some.astype(np.uint32)
            for word, salt in enumerate(_SALTS):
                flags[block + ((low * salt >> np.uint32(27)) + np.uint32(32 * word))] = True
        return cls(np.packbits(flags, bitorder="little").view("<u4").reshape(-1, 8))

    @classmethod
    def parse(cls, data: bytes) -> Self:
        """The filter whose words these bytes are; ``ValueError`` where they are not whole blocks."""
        if not data or len(data) % _BLOCK_BYTES:
            raise ValueError(f"{len(data)} bytes are not blocks of a filter")
        return cls(np.frombuffer(data, dtype="<u4").reshape(-1, 8))

    @property
    def data(self) -> bytes:
        """The words, little-endian."""
        return self.words.astype("<u4").tobytes()

    def may_hold(self, hashes: Hashes) -> Mask:
        """For each key whether it can be among those that the filter was made of; false is certain."""
        bits = _bits(hashes)
        found: Mask = ((self.words[_blocks(hashes, len(self.words))] & bits) == bits).all(axis=1)
        return found


def may_hold_any(filters: pa.Array, hashes: Hashes) -> Mask:
    """For each of many filters, as the bytes of their words, whether it may hold one of the keys; what is no filter may hold any."""
    found = np.ones(len(filters), dtype=np.bool_)
    sizes = np.asarray(pc.fill_null(pc.binary_length(filters), 0))
    whole = np.flatnonzero((sizes > 0) & (sizes % _BLOCK_BYTES == 0))
    if not len(whole) or not len(hashes):
        found[whole] = False
        return found
    packed = filters.take(pa.array(whole))
    offsets = np.frombuffer(packed.buffers()[1], dtype=np.int32, count=len(packed) + 1, offset=4 * packed.offset).astype(np.int64)
    words = np.frombuffer(packed.buffers()[2], dtype="<u4", count=int(offsets[-1] - offsets[0]) // 4, offset=int(offsets[0]))
    blocks, first, bits = words.reshape(-1, 8), (offsets[:-1] - offsets[0]) // _BLOCK_BYTES, _bits(hashes)
    counts = np.diff(offsets) // _BLOCK_BYTES
    step = max(1, _AT_ONCE // len(hashes))
    for start in range(0, len(whole), step):
        some = slice(start, start + step)
        at = first[some, None] + _blocks(hashes, counts[some, None])
        found[whole[some]] = ((blocks[at] & bits) == bits).all(axis=2).any(axis=1)
    return found


def _bits(hashes: Hashes) -> npt.NDArray[np.uint32]:
    """For each hash the bit of each word of its block."""
    found: npt.NDArray[np.uint32] = np.uint32(1) << (hashes.astype(np.uint32)[:, None] * _SALTS >> np.uint32(27))
    return found


def _blocks(hashes: Hashes, count: int | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each hash its block of ``count``, or of each of several counts."""
    return (((hashes >> np.uint64(32)) * np.asarray(count, dtype=np.uint64)) >> np.uint64(32)).astype(np.int64)


def hash_keys(keys: pa.Array) -> Hashes:
    """The XXH64 hash, with seed 0, of each of the binary values, none of them null."""
    if not len(keys):
        return _NO_HASHES
    offsets = np.frombuffer(keys.buffers()[1], dtype=np.int32, count=len(keys) + 1, offset=4 * keys.offset).astype(np.int64)
    data = np.zeros(offsets[-1] + 8, dtype=np.uint8)  # a word may be read where fewer bytes are left
    if keys.buffers()[2] is not None:
        data[:-8] = np.frombuffer(keys.buffers()[2], dtype=np.uint8, count=offsets[-1])
    words: Hashes = np.ndarray(len(data) - 7, dtype="<u8", buffer=data, strides=(1,))
    start, length = offsets[:-1], np.diff(offsets)
    hashes = _stripes(words, start, length) + length.astype(np.uint64)
    start, length = start + length // _STRIPE * _STRIPE, length % _STRIPE
    hashes = _rest(hashes, words, start, length)
    for shift, prime in ((33, _P2), (29, _P3)):
        hashes = (hashes ^ hashes >> np.uint64(shift)) * prime
    return hashes ^ hashes >> np.uint64(32)


def _stripes(words: Hashes, start: npt.NDArray[np.int64], length: npt.NDArray[np.int64]) -> Hashes:
    """What the whole stripes of 32 bytes come to."""
    hashes = np.full(len(start), _P5)
    at = np.flatnonzero(length >= _STRIPE)
    if not len(at):
        return hashes
    lanes, first, size = [np.full(len(at), seed) for seed in _SEEDS], start[at], length[at]
    of_all = int(size.min()) // _STRIPE * _STRIPE
    for done in range(0, of_all, _STRIPE):
        for number, lane in enumerate(lanes):
            lanes[number] = _round(lane, words[done + 8 * number :][first])
    for done in range(of_all, int(size.max()) // _STRIPE * _STRIPE, _STRIPE):
        more = np.flatnonzero(size >= done + _STRIPE)
        for number, lane in enumerate(lanes):
            lane[more] = _round(lane[more], words[first[more] + done + 8 * number])
    mixed = sum(
        (_turned(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)), np.zeros(len(at), dtype=np.uint64)
    )
    for lane in lanes:
        mixed = (mixed ^ _round(np.zeros_like(lane), lane)) * _P1 + _P4
    hashes[at] = mixed
    return hashes


def _rest(hashes: Hashes, words: Hashes, start: npt.NDArray[np.int64], length: npt.NDArray[np.int64]) -> Hashes:
    """``hashes`` with what is left behind the stripes mixed in: words of eight bytes, one of four, single bytes."""
    for done in range(0, _STRIPE - 8, 8):
        at = np.flatnonzero(length >= done + 8)
        hashes[at] = _turned(hashes[at] ^ _round(np.zeros(len(at), dtype=np.uint64), words[start[at] + done]), 27) * _P1 + _P4
    start, length = start + length // 8 * 8, length % 8
    at = np.flatnonzero(length >= 4)
    hashes[at] = _turned(hashes[at] ^ (words[start[at]] & np.uint64(0xFFFFFFFF)) * _P1, 23) * _P2 + _P3
    start, length = start + length // 4 * 4, length % 4
    for done in range(3):
        at = np.flatnonzero(length > done)
        hashes[at] = _turned(hashes[at] ^ (words[start[at] + done] & np.uint64(0xFF)) * _P5, 11) * _P1
    return hashes


def _round(lane: Hashes, words: Hashes) -> Hashes:
    return _turned(lane + words * _P2, 31) * _P1


def _turned(values: Hashes, bits: int) -> Hashes:
    """The values with their bits rotated to the left."""
    return values << np.uint64(bits) | values >> np.uint64(64 - bits)
