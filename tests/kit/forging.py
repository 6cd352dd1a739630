"""Segments that are not what they say, with every digest, checksum, place and length right: as one who may write below its prefix can make.

A segment is taken apart into the pages of its chunks, its footer and its index; any of these is changed, and all is put together again with
new checksums, so that a reader gets as far as its decoder.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from bucketcatalog.format.footers import MAGIC, footer_digest, footer_start
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.format.runs import SegmentReference
from bucketcatalog.format.sealing import digest, seal, unseal
from bucketcatalog.format.segments import index_span
from bucketcatalog.v1 import log_pb2

from .thrift import FALSE, I32, I64, TRUE, List, Struct, read_struct, varint, write_struct, zigzag

SCHEMA, GROUPS, METADATA, ORDERS = 2, 4, 5, 7
"""Fields of a footer."""
PHYSICAL, LENGTH, REPETITION, NAME, CHILDREN, CONVERTED, FIELD_ID, LOGICAL = 1, 2, 3, 4, 5, 6, 9, 10
"""Of an element of a schema."""
COLUMNS, GROUP_ROWS = 1, 3
"""Of a row group."""
OF_COLUMN = 3
"""Of a chunk."""
TYPE, PATH, CODEC, VALUES, UNCOMPRESSED, COMPRESSED, DATA_AT, DICTIONARY_AT, STATISTICS, SIZES = 1, 3, 4, 5, 6, 7, 9, 11, 12, 16
"""Of what a footer says of a chunk."""
NULLS, HIGH, LOW = 3, 5, 6
"""Of statistics."""
PAGE_TYPE, PAGE_UNCOMPRESSED, PAGE_COMPRESSED, PAGE_CRC = 1, 2, 3, 4
_OF_KIND = (5, 7, 8)
"""Of a page header, the last ones of which each kind of page has one."""
PAGE_VALUES = 1
"""Of what pages of any kind have."""
_V2 = {"values": 1, "nulls": 2, "rows": 3, "encoding": 4}
_DEFINITION, _REPETITION, _COMPRESSED = 5, 6, 7
PLAIN, DELTA, DELTA_LENGTH, DELTA_STRINGS, DICTIONARY = 0, 5, 6, 7, 8
"""Encodings."""


@dataclass
class Page:
    """A page: its header, and its bytes as they are stored."""

    header: Struct
    data: bytes

    @property
    def is_dictionary(self) -> bool:
        return bool(self.header.get_value(PAGE_TYPE) == 2)

    @property
    def of_kind(self) -> Struct:
        """The part of the header that pages of its kind have."""
        found = next(self.header[n].value for n in _OF_KIND if n in self.header)
        assert isinstance(found, Struct)
        return found

    def hold(self, content: bytes) -> None:
        """Let it hold these bytes, compressed, where there are no levels."""
        self._stored(bytes(pa.compress(content, "zstd", asbytes=True)), len(content))

    def hold_values(self, definition: bytes, content: bytes, repetition: bytes = b"", **said: int) -> None:
        """Let a page of version 2 hold these levels and values, and say this of them."""
        packed = bytes(pa.compress(content, "zstd", asbytes=True)) if content else b""
        self._stored(repetition + definition + packed, len(repetition) + len(definition) + len(content))
        for number, value in {_DEFINITION: len(definition), _REPETITION: len(repetition)}.items():
            self.of_kind.put(number, I32, value)
        self.of_kind.put(_COMPRESSED, TRUE if content else FALSE, None)
        for name, value in said.items():
            self.of_kind.put(_V2[name], I32, value)

    def _stored(self, data: bytes, uncompressed: int) -> None:
        self.data = data
        self.header.put(PAGE_UNCOMPRESSED, I32, uncompressed)
        self.header.put(PAGE_COMPRESSED, I32, len(data))
        self.header.pop(PAGE_CRC, None)

    def bytes(self) -> bytes:
        return write_struct(self.header) + self.data


@dataclass
class ForgedChunk:
    """A chunk: what the footer says of it, and its pages."""

    said: Struct
    pages: list[Page]

    @property
    def name(self) -> str:
        return ".".join(part.decode() for part in self.said.get_value(PATH))

    @property
    def data_page(self) -> Page:
        return next(page for page in self.pages if not page.is_dictionary)

    @property
    def dictionary(self) -> Page:
        return next(page for page in self.pages if page.is_dictionary)

    def bytes(self) -> bytes:
        return b"".join(page.bytes() for page in self.pages)


@dataclass
class Forgery:
    """A segment taken apart. ``last`` is what is changed when everything is in its place, so that it stays changed."""

    footer: Struct
    chunks: list[list[ForgedChunk]]
    index: Any
    filters: bytes
    reference: SegmentReference
    last: list[Callable[[], object]] = field(default_factory=list)

    @classmethod
    def of(cls, data: bytes, reference: SegmentReference) -> Forgery:
        start = footer_start(data[-8:], len(data), "a segment")
        at, stop = index_span(data[start - 4 : start], start, "a segment")
        footer, _ = read_struct(data, start)
        index = log_pb2.SegmentIndex.FromString(unseal(data[at:stop], "a segment", "an index"))
        groups = footer.get_value(GROUPS)
        chunks = [[_chunk(data, column.get_value(OF_COLUMN)) for column in group.get_value(COLUMNS)] for group in groups]
        filters = data[reference.filters_offset : at] if reference.filters_length else b""
        return cls(footer, chunks, index, filters, reference)

    def chunk(self, name: str) -> ForgedChunk:
        """The chunk of a column in the first row group, by its path."""
        return next(chunk for chunk in self.chunks[0] if chunk.name == name)

    def statistics(self, name: str) -> Any:
        """What the index says of that chunk."""
        return self.index.entries[0].statistics.chunks[[chunk.name for chunk in self.chunks[0]].index(name)]

    @property
    def group(self) -> Struct:
        """What the footer says of the first row group."""
        found = self.groups[0]
        assert isinstance(found, Struct)
        return found

    @property
    def groups(self) -> List:
        """What the footer says of the row groups."""
        found = self.footer.get_value(GROUPS)
        assert isinstance(found, List)
        return found

    @property
    def schema(self) -> List:
        """The elements of the footer's schema."""
        found = self.footer.get_value(SCHEMA)
        assert isinstance(found, List)
        return found

    def element(self, name: str) -> Struct:
        """The element of the schema of that name."""
        return next(element for element in self.schema if element.get_value(NAME) == name.encode())

    def say(self, block_class: BlockClass) -> None:
        """What the blocks are, wherever it is said."""
        for said in (self.index.run, *(entry.header for entry in self.index.entries)):
            setattr(said, "class", block_class)
        self.reference = replace(self.reference, run=replace(self.reference.run, block_class=block_class))

    def sealed(self) -> tuple[bytes, SegmentReference]:
        """The bytes of the segment, and what refers to it."""
        out, at = [MAGIC], len(MAGIC)
        for entry, chunks in zip(self.index.entries, self.chunks, strict=False):
            entry.offset = at
            del entry.lengths[:]
            del entry.checksums[:]
            for chunk in chunks:
                data = chunk.bytes()
                _place(chunk, at, len(data))
                entry.lengths.append(len(data))
                entry.checksums.append(zlib.crc32(data))
                out.append(data)
                at += len(data)
        for change in self.last:
            change()
        footer = write_struct(self.footer)
        footer += len(footer).to_bytes(4, "little") + MAGIC
        self.index.footer_digest = footer_digest(footer)
        sealed = seal(self.index.SerializeToString(deterministic=True))
        whole = b"".join([*out, self.filters, sealed, len(sealed).to_bytes(4, "little"), footer])
        reference = replace(
            self.reference,
            size=len(whole),
            index_offset=at + len(self.filters),
            index_length=len(sealed),
            index_digest=digest(sealed),
            filters_offset=at if self.filters else 0,
        )
        return whole, reference


def _place(chunk: ForgedChunk, at: int, length: int) -> None:
    chunk.said.pop(DICTIONARY_AT, None)
    chunk.said.put(DATA_AT, I64, at)
    if len(chunk.pages) > 1 and chunk.pages[0].is_dictionary:
        chunk.said.put(DICTIONARY_AT, I64, at)
        chunk.said.put(DATA_AT, I64, at + len(chunk.pages[0].bytes()))
    chunk.said.put(COMPRESSED, I64, length)


def _chunk(data: bytes, said: Struct) -> ForgedChunk:
    start = said.get_value(DICTIONARY_AT) or said.get_value(DATA_AT)
    stop = start + said.get_value(COMPRESSED)
    pages = []
    while start < stop:
        header, start = read_struct(data, start)
        length = header.get_value(PAGE_COMPRESSED)
        pages.append(Page(header, data[start : start + length]))
        start += length
    return ForgedChunk(said, pages)


def run_of(count: int, level: int) -> bytes:
    """So many levels, or indices of a dictionary, that are all the same."""
    return varint(count << 1) + bytes([level])


def delta_of(count: int, first: int, *, block: int = 128, parts: int = 4, body: bytes | None = None) -> bytes:
    """So many numbers in DELTA_BINARY_PACKED that are all the same; ``body`` is what stands where their differences should."""
    blocks = (count + 126) // 128
    return varint(block) + varint(parts) + varint(count) + zigzag(first) + (bytes(5 * blocks) if body is None else body)


def raw(data: bytes) -> Struct:
    """A struct that is these bytes."""
    struct = Struct()
    struct.raw = data
    return struct
