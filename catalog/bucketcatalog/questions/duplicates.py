"""``dups``: objects of one content, as far as checksums tell, and what the copies waste.

Checksums and sizes are read twice: at first eight bytes are kept of what each object is compared by, then the objects of which these are
not the only ones, with their names. So memory grows with the copies, and with eight bytes for each object.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..log.versions import Version
from ..model.arrays import EXACT, Mask, hexadecimal, one_chunk
from ..model.sizes import Size, parse_size
from ..model.tables import TIMESTAMP
from ..model.times import Time
from ..where.conditions import between
from .asking import BUCKET, BUCKET_ID, FILE, FILE_TYPE, MODIFIED, NAME, OWNER, SIZE, Asked, Owner, Source, asked, whole_number
from .grouping import narrow

KIND, ALGORITHM, HASH = "kind", "algorithm", "hash"
COPIES, WASTED, EXAMPLES = "copies", "wasted_bytes", "examples"
_KEY = (KIND, ALGORITHM, HASH, SIZE)
_HASHES = ("checksum_algorithm", "checksum", "content_md5", "etag")
_PLAIN_ETAG = r"\A[0-9a-fA-F]{32}\z"
"""The MD5 of what was uploaded at once; that of an upload in parts has their number behind it, and other stores' are versions."""
WEAK = ("CRC32", "CRC32C")
"""What 32 bits tell apart is too little: among 65,000 objects of one size two of different content have the same, more likely than not."""
_EXAMPLE = pa.struct([pa.field(OWNER, pa.string()), pa.field(BUCKET, pa.string()), pa.field(NAME, pa.string())])
_AT, _GROUP = "at", "group"
KINDS = ("checksum", "md5", "etag")
_INODE = "inode"
_OF_FILES = (_INODE, MODIFIED)
_PLACE = (OWNER, BUCKET_ID, NAME)
_MD5_BYTES, _END_BYTES = 16, 16
_FACTORS = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93, 0xFF51AFD7ED558CCD], np.uint64
)
"""Odd numbers, whose products in 64 bits differ where what they are of differs."""
_BITS = 16
"""Places of the table of bits for each fingerprint in it."""
Fingerprints = npt.NDArray[np.uint64]
_ROWS = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in _PLACE),
        pa.field(KIND, pa.int8()),
        pa.field(ALGORITHM, pa.string()),
        pa.field(HASH, pa.binary()),
        pa.field(SIZE, pa.int64()),
        pa.field(_INODE, pa.uint64()),
        pa.field(MODIFIED, TIMESTAMP),
    ]
)


@dataclass(frozen=True)
class Duplicates:
    """Groups of objects of one content, those first that waste the most, and what nothing can be said of.

    ``groups`` has the columns kind (``checksum``, ``md5`` or ``etag``), algorithm, hash, content_length, copies, wasted_bytes, and
    examples: the owner, bucket and name of a few copies each. ``without_hash`` objects have nothing to be compared by, ``empty`` ones
    have no content, and ``unsized`` ones no known size. ``all_groups`` and ``all_wasted_bytes`` count the groups that are not shown, too.
    """

    groups: pa.Table = field(repr=False)
    all_groups: int
    all_wasted_bytes: int
    without_hash: int
    empty: int
    unsized: int


def dups(
    source: Source,
    *,
    larger: Size | None = None,
    limit: int | None = None,
    examples: int = 3,
    bucket: str | None = None,
    owner: Owner = None,
    prefix: str | None = None,
    as_of: Time | Version | None = None,
    database: str | None = None,
    ignore_corruption: bool = False,
) -> Duplicates:
    """The objects of one size that have the same checksum of one algorithm; else the same MD5; else the same ETag that is one.

    Each object is compared by the first of these that it has, and never with one that is compared by another. A CRC of 32 bits proves
    nothing, and is not compared. ``larger`` leaves out what is not larger than a size. At most ``limit`` groups are shown, with at most so
    many ``examples`` each.
    """
    least = 0 if larger is None else parse_size(larger)
    most = None if limit is None else whole_number("limit", limit, 1)
    few = whole_number("examples", examples, 0)
    about = asked(
        source, as_of=as_of, database=database, bucket=bucket, owner=owner, prefix=prefix, ignore_corruption=ignore_corruption
    )
    seen = _Seen.read(about, least)
    compared = _Compared.read(about, least, seen.repeated)
    groups = compared.groups()
    shown = groups if most is None else groups.slice(0, most)
    return Duplicates(
        _told(compared.with_examples(shown, few, about)),
        len(groups),
        int(pc.sum(groups[WASTED].cast(EXACT), min_count=0).as_py()),
        seen.without_hash,
        seen.empty,
        seen.unsized,
    )


@dataclass(frozen=True)
class _Seen:
    """The fingerprints that several objects above the least size have, and how many have none, no size, or size 0."""

    repeated: Fingerprints
    without_hash: int
    empty: int
    unsized: int

    @classmethod
    def read(cls, about: Asked, least: int) -> _Seen:
        parts: list[Fingerprints] = [np.empty(0, np.uint64)]
        without = empty = unsized = 0
        for batch in about.scan([SIZE, *_HASHES, FILE_TYPE]).in_any_order().to_batches():
            batch = _files(batch)
            sizes = batch[SIZE]
            unsized += sizes.null_count
            empty += pc.sum(pc.equal(sizes, 0)).as_py() or 0
            keys = _keys(batch.filter(pc.greater(sizes, least)))
            known = keys.filter(keys[HASH].is_valid())
            without += len(keys) - len(known)
            parts.append(_fingerprints(known))
        every = np.concatenate(parts)
        every.sort()
        return cls(np.unique(every[1:][every[1:] == every[:-1]]), without, empty, unsized)


@dataclass(frozen=True)
class _Compared:
    """The objects that may have copies, in the order of their keys, with what they are compared by.

    Names of one file count once: further names of an inode are left out, in other buckets too.
    """

    rows: pa.Table

    @classmethod
    def read(cls, about: Asked, least: int, repeated: Fingerprints) -> _Compared:
        """Those whose fingerprints are ``repeated``."""
        parts, repeats = [_ROWS.empty_table()], _Repeats(repeated)
        scan = about.scan([*_PLACE, SIZE, *_HASHES, *_OF_FILES, FILE_TYPE], _larger(least))
        for batch in scan.to_batches() if len(repeated) else ():
            batch = _files(batch)
            keys = _keys(batch)
            kept = pc.and_(keys[HASH].is_valid(), pa.array(repeats.among(_fingerprints(keys))))
            batch, keys = batch.filter(kept), keys.filter(kept)
            columns = {name: batch[name] for name in (*_PLACE, *_OF_FILES)} | dict(zip(_KEY, keys.columns, strict=True))
            parts.append(pa.table(columns).select(_ROWS.names).cast(_ROWS))
        rows = _each_file_once(pa.concat_tables(parts))
        return cls(rows.append_column(_AT, pa.array(np.arange(len(rows)))))

    def groups(self) -> pa.Table:
        """The keys that several rows have, with copies and what these waste, in the order in which they are shown."""
        counted = self.rows.group_by(list(_KEY)).aggregate([(_AT, "count"), (_AT, "min")])
        found = counted.filter(pc.greater(counted[f"{_AT}_count"], 1))
        sizes, copies = (one_chunk(found[name]).cast(pa.decimal128(19, 0)) for name in (SIZE, f"{_AT}_count"))
        wasted = pc.multiply(sizes, pc.subtract(copies, pa.scalar(1, pa.decimal128(1, 0))).cast(pa.decimal128(18, 0)))
        table = found.select(list(_KEY)).append_column(COPIES, found[f"{_AT}_count"]).append_column(WASTED, wasted.cast(EXACT))
        order = pc.sort_indices(
            table.append_column(_AT, found[f"{_AT}_min"]), sort_keys=[(WASTED, "descending"), (_AT, "ascending")]
        )
        return narrow(table.take(order), [WASTED])

    def with_examples(self, groups: pa.Table, few: int, about: Asked) -> pa.Table:
        """The groups with the names of their first copies, at most so many each."""
        numbered = groups.select(list(_KEY)).append_column(_GROUP, pa.array(np.arange(len(groups))))
        # A join takes null for no value; here it is one.
        rows = _filled(self.rows.select([*_KEY, _AT])).join(_filled(numbered), keys=list(_KEY), join_type="inner")
        rows = rows.select([_GROUP, _AT]).sort_by([(_GROUP, "ascending"), (_AT, "ascending")])
        numbers = np.asarray(one_chunk(rows[_GROUP]))
        begins = np.flatnonzero(np.diff(numbers, prepend=-1))
        rank = np.arange(len(numbers)) - np.repeat(begins, np.diff(np.append(begins, len(numbers))))
        first = rows.filter(pa.array(rank < few))
        named = self.rows.select(list(_PLACE)).take(first[_AT])
        columns = [named[OWNER], about.names(named[BUCKET_ID]), named[NAME]]
        structs = pa.StructArray.from_arrays([one_chunk(column) for column in columns], fields=list(_EXAMPLE))
        offsets = np.searchsorted(np.asarray(one_chunk(first[_GROUP])), np.arange(len(groups) + 1)).astype(np.int32)
        return groups.append_column(EXAMPLES, pa.ListArray.from_arrays(pa.array(offsets), structs))


class _Repeats:
    """Some fingerprints, among which many others are looked for: nearly all that are none of them a table of bits tells apart."""

    def __init__(self, sorted_ones: Fingerprints) -> None:
        self._sorted = sorted_ones
        self._shift = np.uint64(64 - max(len(sorted_ones) * _BITS, 2).bit_length())
        self._may_be = np.zeros(1 << int(64 - self._shift), dtype=bool)
        self._may_be[sorted_ones >> self._shift] = True

    def among(self, fingerprints: Fingerprints) -> Mask:
        """Which of these are among them."""
        found: Mask = self._may_be[fingerprints >> self._shift]
        at = np.flatnonzero(found)
        place = np.minimum(np.searchsorted(self._sorted, fingerprints[at]), len(self._sorted) - 1)
        found[at] = self._sorted[place] == fingerprints[at] if len(self._sorted) else False
        return found


def _each_file_once(rows: pa.Table) -> pa.Table:
    """The rows without those of the file of an earlier one: of the same inode, content and time.

    Nothing tells on which machine and disk an inode is, but a copy there has another one, or was written at another time.
    """
    of_file = rows[_INODE].is_valid()
    if not pc.any(of_file, min_count=0).as_py():
        return rows
    rows = rows.append_column(_AT, pa.array(np.arange(len(rows))))
    first = rows.filter(of_file).group_by([*_OF_FILES, *_KEY]).aggregate([(_AT, "min")])[f"{_AT}_min"]
    return rows.filter(pc.or_(pc.invert(of_file), pc.is_in(rows[_AT], value_set=one_chunk(first)))).drop_columns([_AT])


def _larger(least: int) -> dict[str, object]:
    return {SIZE: between(least, None, inclusive="right")}


def _filled(rows: pa.Table) -> pa.Table:
    at = rows.column_names.index(ALGORITHM)
    return rows.set_column(at, ALGORITHM, pc.fill_null(rows[ALGORITHM], ""))


def _files(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows of objects and files: links, pipes and devices have no content."""
    return batch.filter(pc.fill_null(pc.equal(batch[FILE_TYPE], FILE), True))


def _keys(batch: pa.RecordBatch) -> pa.Table:
    """By what each row is compared; the hash is null where it has nothing. An MD5 is 16 bytes, other hashes are text."""
    algorithms = pc.utf8_upper(batch["checksum_algorithm"])
    weak = pc.fill_null(pc.is_in(algorithms, value_set=pa.array(WEAK)), False)
    checksum = pc.if_else(pc.or_(weak, pc.fill_null(pc.equal(batch["checksum"], ""), False)), None, batch["checksum"])
    md5 = batch["content_md5"]
    md5 = pc.if_else(pc.equal(pc.binary_length(md5), _MD5_BYTES), md5, None)
    plain = pc.fill_null(pc.match_substring_regex(batch["etag"], _PLAIN_ETAG), False)
    etag = pc.if_else(plain, pc.utf8_lower(batch["etag"]), None)
    hashes = [values.cast(pa.binary()) for values in (checksum, md5, etag)]
    kinds = [pc.if_else(values.is_valid(), pa.scalar(kind, pa.int8()), None) for kind, values in enumerate(hashes)]
    algorithm = pc.if_else(checksum.is_valid(), algorithms, None)
    return pa.table([pc.coalesce(*kinds), algorithm, pc.coalesce(*hashes), batch[SIZE]], names=list(_KEY))


def _fingerprints(keys: pa.Table) -> Fingerprints:
    """Eight bytes of the size and of the ends of the hash of each row: the same for the same, and rarely for others."""
    hashes, count = one_chunk(keys[HASH]), len(keys)
    if not count:
        return np.empty(0, np.uint64)
    offsets = np.frombuffer(hashes.buffers()[1], np.int32, count + 1, 4 * hashes.offset)
    data = np.frombuffer(hashes.buffers()[2] or b"\0", np.uint8)
    lengths = np.diff(offsets)
    if (lengths == lengths[0]).all() and lengths[0] >= _END_BYTES:
        last = int(offsets[0] + lengths[0] - _END_BYTES)
        ends = [np.ndarray((count, 2), "<u8", data, at, (int(lengths[0]), 8)) for at in (int(offsets[0]), last)]
    else:
        at = np.arange(_END_BYTES)
        first = offsets[:-1, None] + at, at < lengths[:, None]
        final = offsets[1:, None] - _END_BYTES + at, at >= _END_BYTES - lengths[:, None]
        read = [np.where(within, data[np.clip(places, 0, len(data) - 1)], 0) for places, within in (first, final)]
        ends = [each.astype(np.uint8).view("<u8") for each in read]
    parts = [*ends[0].T, *ends[1].T, np.asarray(keys[SIZE])]
    mixed: Fingerprints = np.bitwise_xor.reduce([p.astype(np.uint64) * factor for p, factor in zip(parts, _FACTORS, strict=True)])
    return mixed


def _told(groups: pa.Table) -> pa.Table:
    """The groups with kinds by name and hashes as text."""
    kinds, hashes = one_chunk(groups[KIND]), one_chunk(groups[HASH])
    is_md5 = pc.equal(kinds, KINDS.index("md5"))
    digits = hexadecimal(pc.if_else(is_md5, hashes, b""))
    text = pc.if_else(is_md5, digits, pc.if_else(is_md5, b"", hashes).cast(pa.string()))
    named = groups.set_column(_KEY.index(KIND), KIND, pa.array(KINDS).take(kinds))
    return named.set_column(_KEY.index(HASH), HASH, text)
