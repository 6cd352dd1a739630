"""``dups``: objects of one content, as far as checksums tell, and what the copies waste.

Sizes are read first: only of those that several objects have checksums matter. These are read then, and of the groups that are shown the
names of a few copies. No pass holds rows, but for the checksums and places of objects that share their size with another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..log.versions import Version
from ..model.arrays import EXACT, hexadecimal, one_chunk
from ..model.sizes import Size, parse_size
from ..model.times import Time
from ..where.conditions import between
from .asking import BUCKET, BUCKET_ID, NAME, OWNER, SIZE, Asked, Owner, Source, asked, whole_number
from .grouping import Numbers, narrow

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
    sizes = _Sizes.read(about, least)
    compared = _Compared.read(about, least, sizes.repeated)
    groups = compared.groups()
    shown = groups if most is None else groups.slice(0, most)
    return Duplicates(
        _with_examples(about, shown, compared, least, few),
        len(groups),
        int(pc.sum(groups[WASTED].cast(EXACT), min_count=0).as_py()),
        compared.without_hash,
        sizes.empty,
        sizes.unsized,
    )


@dataclass(frozen=True)
class _Sizes:
    """The sizes above the least that several objects have, and how many have none, or 0."""

    repeated: pa.Array
    empty: int
    unsized: int

    @classmethod
    def read(cls, about: Asked, least: int) -> _Sizes:
        parts: list[Numbers] = []
        empty = unsized = 0
        for batch in about.scan([SIZE]).in_any_order().to_batches():
            values = batch[SIZE]
            unsized += values.null_count
            known = np.asarray(values.drop_null())
            empty += int(np.count_nonzero(known == 0))
            parts.append(known[known > least])
        distinct, counts = np.unique(np.concatenate([np.empty(0, np.int64), *parts]), return_counts=True)
        return cls(pa.array(distinct[counts > 1]), empty, unsized)


@dataclass(frozen=True)
class _Compared:
    """The keys of the objects that may have copies, in which place of the read each stands, and how many objects have no key."""

    rows: pa.Table
    without_hash: int

    @classmethod
    def read(cls, about: Asked, least: int, sizes: pa.Array) -> _Compared:
        parts: list[pa.Table] = []
        seen = without = 0
        for batch in about.scan([SIZE, *_HASHES], _larger(least)).to_batches():
            keys = _keys(batch)
            known = keys[HASH].is_valid()
            without += len(batch) - (pc.sum(known).as_py() or 0)
            at = pa.array(np.arange(seen, seen + len(batch)))
            seen += len(batch)
            parts.append(keys.append_column(_AT, at).filter(pc.and_(known, pc.is_in(keys[SIZE], value_set=sizes))))
        text = [pa.field(name, pa.string()) for name in (KIND, ALGORITHM, HASH)]
        schema = pa.schema([*text, pa.field(SIZE, pa.int64()), pa.field(_AT, pa.int64())])
        return cls(pa.concat_tables([schema.empty_table(), *(part.cast(schema) for part in parts)]), without)

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

    def first_of(self, groups: pa.Table, few: int) -> pa.Table:
        """For each group the places of its first rows, at most so many, with the number of the group; in the order of the read."""
        numbered = groups.select(list(_KEY)).append_column(_GROUP, pa.array(np.arange(len(groups))))
        # A join takes null for no value; here it is one.
        rows = _filled(self.rows).join(_filled(numbered), keys=list(_KEY), join_type="inner").select([_GROUP, _AT])
        rows = rows.sort_by([(_GROUP, "ascending"), (_AT, "ascending")])
        numbers = np.asarray(one_chunk(rows[_GROUP]))
        begins = np.flatnonzero(np.diff(numbers, prepend=-1))
        rank = np.arange(len(numbers)) - np.repeat(begins, np.diff(np.append(begins, len(numbers))))
        return rows.filter(pa.array(rank < few)).sort_by(_AT)


def _larger(least: int) -> dict[str, object]:
    return {SIZE: between(least, None, inclusive="right")}


def _filled(rows: pa.Table) -> pa.Table:
    at = rows.column_names.index(ALGORITHM)
    return rows.set_column(at, ALGORITHM, pc.fill_null(rows[ALGORITHM], ""))


def _keys(batch: pa.RecordBatch) -> pa.Table:
    """By what each row is compared; null where it has nothing."""
    algorithms = pc.utf8_upper(batch["checksum_algorithm"])
    weak = pc.fill_null(pc.is_in(algorithms, value_set=pa.array(WEAK)), False)
    checksum = pc.if_else(pc.or_(weak, pc.fill_null(pc.equal(batch["checksum"], ""), False)), None, batch["checksum"])
    md5 = batch["content_md5"]
    md5 = pc.if_else(pc.equal(pc.binary_length(md5), 16), hexadecimal(md5), None)
    plain = pc.fill_null(pc.match_substring_regex(batch["etag"], _PLAIN_ETAG), False)
    etag = pc.if_else(plain, pc.utf8_lower(batch["etag"]), None)
    kinds = [pc.if_else(values.is_valid(), kind, None) for kind, values in (("checksum", checksum), ("md5", md5), ("etag", etag))]
    return pa.table(
        {
            KIND: pc.coalesce(*kinds),
            ALGORITHM: pc.if_else(checksum.is_valid(), algorithms, None),
            HASH: pc.coalesce(checksum, md5, etag),
            SIZE: batch[SIZE],
        }
    )


def _with_examples(about: Asked, groups: pa.Table, compared: _Compared, least: int, few: int) -> pa.Table:
    """The groups with the names of their first copies, which are read for these alone."""
    wanted = compared.first_of(groups, few)
    places = np.asarray(one_chunk(wanted[_AT]))
    named = pa.concat_tables([_NAMES.empty_table(), *_rows_at(about, least, places)])
    named = pa.table({OWNER: named[OWNER], BUCKET: about.names(named[BUCKET_ID]), NAME: named[NAME]})
    structs = pa.StructArray.from_arrays([one_chunk(named[f.name]).cast(f.type) for f in _EXAMPLE], fields=list(_EXAMPLE))
    numbers = np.asarray(one_chunk(wanted[_GROUP]))
    order = np.argsort(numbers, kind="stable")
    offsets = np.searchsorted(numbers[order], np.arange(len(groups) + 1)).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), structs.take(pa.array(order)))
    return groups.append_column(EXAMPLES, lists)


_NAMES = pa.schema([pa.field(name, pa.string()) for name in (OWNER, BUCKET_ID, NAME)])


def _rows_at(about: Asked, least: int, places: Numbers) -> Iterator[pa.Table]:
    """The rows that stand in these places, which ascend, of what is compared."""
    if not len(places):
        return
    seen = 0
    for batch in about.scan([*_NAMES.names, SIZE], _larger(least)).to_batches():
        within = places[np.searchsorted(places, seen) : np.searchsorted(places, seen + len(batch))] - seen
        seen += len(batch)
        if len(within):
            yield pa.Table.from_batches([batch.take(pa.array(within))]).select(_NAMES.names).cast(_NAMES)
        if seen > places[-1]:
            return
