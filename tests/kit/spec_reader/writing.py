"""Files as a writer puts them who knows docs/spec alone: transactions, blocks of folded facts, segments, checkpoints."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from .facts import BLIND, END, NAMED, Fact
from .sealing import message, seal
from .segments import ENDED, EVENTS, SUPERSEDED, chunks_of
from .stamps import uuid_time
from .tables import Column, Table, encoded_key
from .trust import mark

_SCALARS: dict[str, pa.DataType] = {
    "string": pa.utf8(),
    "bytes": pa.binary(),
    "uuid": pa.utf8(),
    "timestamp": pa.timestamp("us", "UTC"),
    "bool": pa.bool_(),
    "float": pa.float32(),
    "double": pa.float64(),
    "enum": pa.int32(),
} | {name: getattr(pa, name)() for name in ("int32", "int64", "uint32", "uint64")}
_STAMP = {
    "commit_time": pa.timestamp("us", "UTC"),
    "writer": pa.utf8(),
    "revision": pa.int64(),
    "uuid": pa.utf8(),
    "seq": pa.int32(),
}
_EXPECTS = {"expects": pa.uint8(), "expects_uuid": pa.utf8(), "expects_seq": pa.int32()}
_COLUMNS = {"_kind": pa.uint8(), "_purged": pa.bool_(), "_end_kind": pa.uint8(), "_name_uuid": pa.utf8(), "_name_seq": pa.int32()}
_STAMPS = {f"_{what}{part}": kind for what in ("", "row_", "end_") for part, kind in _STAMP.items()}
_COLUMNS |= _STAMPS | {f"_{what}{part}": kind for what in ("", "end_") for part, kind in _EXPECTS.items()}
_DELETED_AT = pa.field("deleted_at", _STAMP["commit_time"], metadata={"PARQUET:field_id": str(END)})
_PACKED = {"compression": "zstd", "data_page_version": "2.0", "write_page_checksum": True}
_PLAIN = {"compression": "none", "use_dictionary": False, "write_statistics": False, "write_page_index": True}


@dataclass(frozen=True)
class Style:
    """What a compactor may do one way or another: in how many ``levels`` it writes, whether it declares columns without nulls to be so,
    whether a VERSION says whose its row is where that is its own, whether it has the class SUPERSEDED, whether runs are ``inline``,
    whether Parquet's values are ``plain``, whether ``every_column`` is there, and in another order, and how many rows a block has."""

    levels: int = 1
    flags: bool = False
    own_row_stamps: bool = False
    superseded: bool = True
    inline: bool = False
    plain: bool = False
    every_column: bool = False
    block_rows: int = 16_384


USUAL = Style()


def uuid_at(time: int, number: int) -> bytes:
    """A version 7 uuid that holds the time; ``number`` stands where others are random (spec/stamps.md)."""
    return (time // 1000 << 80 | 7 << 76 | time % 1000 << 64 | 2 << 62 | number).to_bytes(16, "big")


def transaction_uuid(writer: str, time: int, number: int = 0) -> bytes:
    """The same of a transaction: it ends in its writer's mark (spec/stamps.md)."""
    return uuid_at(time, number << 32 | int.from_bytes(mark(writer), "big"))


def new_transaction(writer: str, revision: int, time: int, number: int = 0) -> Any:
    """A transaction that follows nothing and says nothing yet (spec/transactions.md)."""
    known = {"format_version": 1, "writer": writer, "database": "default", "lateness_bound": 360_000_000}
    return message("Transaction")(**known, revision=revision, uuid=transaction_uuid(writer, time, number), commit_time=time)


def name_of_file(file: Any, ending: str) -> str:
    """The name of a transaction or checkpoint (spec/layout.md)."""
    return f"{file.writer}/{file.database}/transactions/{file.revision:020}/{UUID(bytes=file.uuid)}.{ending}"


def put(root: Path, name: str, data: bytes) -> bytes:
    """Put a file; gives its last 32 bytes, which are its digest where it is sealed."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return data[-32:]


def put_transaction(root: Path, transaction: Any) -> bytes:
    """Put a transaction; gives its digest."""
    return put(root, name_of_file(transaction, "txn"), seal(transaction.SerializeToString()))


def put_checkpoint(root: Path, checkpoint: Any) -> None:
    """Put a checkpoint, and its marker behind it (spec/layout.md)."""
    put(root, name_of_file(checkpoint, "ckpt"), seal(checkpoint.SerializeToString()))
    countdown = 10**20 - 1 - checkpoint.revision
    put(root, f"{checkpoint.writer}/{checkpoint.database}/newest/{countdown:020}-{UUID(bytes=checkpoint.uuid)}", b"")


def arrow_field(column: Column, *, flags: bool = False) -> pa.Field:
    """A column as it is stored (spec/tables.md); with ``flags`` it says that lists and maps hold no nulls."""
    return pa.field(column.name, _arrow_type(column, flags=flags), metadata={"PARQUET:field_id": str(column.number)})


def _arrow_type(column: Column, *, flags: bool) -> pa.DataType:
    if column.type == "map":
        key, item = (_arrow_type(child, flags=flags) for child in column.children)
        return pa.map_(key, pa.field("value", item, not flags))
    if column.type == "list":
        return pa.list_(pa.field("element", _arrow_type(column.children[0], flags=flags), not flags))
    if column.type == "message":
        return pa.struct([arrow_field(child, flags=flags) for child in column.children] or [pa.field("_", pa.bool_())])
    return _SCALARS[column.type]


def _value(column: Column, value: Any) -> Any:
    if value is None:
        return None
    if column.type == "map":
        return [tuple(map(_value, column.children, pair)) for pair in value]
    if column.type == "list":
        return [_value(column.children[0], item) for item in value]
    if column.type == "message":
        return {child.name: _value(child, value.get(child.number)) for child in column.children}
    return value


def rows_of(table: Table, block_class: int, facts: Sequence[Fact], style: Style = USUAL) -> pa.Table:
    """Facts about one table as the rows of blocks (spec/facts.md)."""
    said = [_columns_of(fact) for fact in facts]
    names = {n: kind for n, kind in _COLUMNS.items() if block_class != EVENTS or n not in _STAMPS or n.endswith("_seq")}
    columns = [(arrow_field(c, flags=style.flags), [_value(c, fact.row.get(c.number)) for fact in facts]) for c in table.columns]
    names_of_ends = {} if style.every_column or block_class not in (ENDED, SUPERSEDED) else {"_end_commit_time": _DELETED_AT}
    columns += [(names_of_ends.get(name, pa.field(name, kind)), [row.get(name) for row in said]) for name, kind in names.items()]
    key, kept = {column.name for column in table.key}, []
    for field, values in reversed(columns) if style.every_column else columns:
        if style.every_column or field.name in key or any(value is not None for value in values):
            kept.append((field.with_nullable(not style.flags or None in values), pa.array(values, field.type)))
    return pa.table([values for _, values in kept], schema=pa.schema([field for field, _ in kept]))


def _columns_of(fact: Fact) -> dict[str, Any]:
    """What the columns beside the row's say of a fact, those that say nothing left out (spec/facts.md)."""
    found: dict[str, Any] = {"_kind": fact.kind} if fact.kind else {}
    for what, stamp in (("", fact.stamp), ("row_", fact.row_stamp), ("end_", fact.end)):
        if stamp is not None:
            found |= zip((f"_{what}{part}" for part in _STAMP), stamp, strict=True)
    if fact.end is not None:
        found["_end_kind"] = fact.end_kind
    if fact.name is not None:
        found |= {"_name_uuid": fact.name[0], "_name_seq": fact.name[1]}
    for what, expects in (("", fact.expects), ("end_", fact.end_expects)):
        if expects == "absent":
            found[f"_{what}expects"] = 1
        elif expects is not None:
            found |= {f"_{what}expects": 2, f"_{what}expects_uuid": expects[0], f"_{what}expects_seq": expects[1]}
    found |= {name: str(UUID(bytes=value)) for name, value in found.items() if name.endswith("_uuid")}
    return found | ({"_purged": True} if fact.purged else {})


def header_of(table: Table, block_class: int, facts: Sequence[Fact]) -> Any:
    """The header of a block of these facts (spec/segments.md)."""
    keys = [encoded_key(table, fact.row) for fact in facts]
    times = [stamp[0] for fact in facts for stamp in (fact.stamp, fact.row_stamp, fact.end) if stamp]
    times += [uuid_time(fact.name[0]) for fact in facts if fact.name]
    return message("BlockHeader")(
        **{"class": block_class},
        table=table.name,
        rows=len(facts),
        first_key=keys[0],
        last_key=keys[-1],
        oldest=0 if block_class == EVENTS else min(times),
        newest=0 if block_class == EVENTS else max(times),
        expectations=sum(1 for fact in facts if fact.expects or fact.end_expects),
        late_updates=sum(1 for f in facts if f.kind not in (BLIND, NAMED) and f.end and f.row_stamp and f.row_stamp > f.end),
    )


def run_of(headers: Sequence[Any], level: int) -> Any:
    """The run that blocks make (spec/segments.md)."""
    return message("RunSummary")(
        **{"class": getattr(headers[0], "class")},
        table=headers[0].table,
        rows=sum(header.rows for header in headers),
        blocks=len(headers),
        first_key=headers[0].first_key,
        last_key=headers[-1].last_key,
        oldest=min(header.oldest for header in headers),
        newest=max(header.newest for header in headers),
        level=level,
    )


def block_of(header: Any, rows: pa.Table) -> Any:
    """A block for a message, with its checksum (spec/segments.md, spec/sealing.md)."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows.to_batches()[0])
    body = message("Block")(header=header, rows=sink.getvalue().to_pybytes()).SerializeToString()
    return message("Block").FromString(body + b"\xfd\x7f" + zlib.crc32(body).to_bytes(4, "little"))


def inline_run(table: Table, block_class: int, facts: Sequence[Fact], level: int, style: Style) -> Any:
    """A run that a checkpoint holds itself (spec/checkpoints.md)."""
    parts = [facts[at : at + style.block_rows] for at in range(0, len(facts), style.block_rows)]
    blocks = [block_of(header_of(table, block_class, part), rows_of(table, block_class, part, style)) for part in parts]
    run = run_of([block.header for block in blocks], level)
    return message("InlineRun")(run=run, blocks=[block.SerializeToString() for block in blocks])


def put_segment(
    root: Path,
    index: Any,
    table: Table,
    block_class: int,
    facts: Sequence[Fact],
    *,
    level: int = 0,
    style: Style = USUAL,
    change: Callable[[Any], None] = lambda index: None,
) -> Any:
    """Put a segment of these facts, of which ``index`` says whose it is and what they cover; gives the reference to it (spec/segments.md).

    ``change`` is given the index before it is sealed.
    """
    parts = [facts[at : at + style.block_rows] for at in range(0, len(facts), style.block_rows)]
    headers = [header_of(table, block_class, part) for part in parts]
    rows, sink = rows_of(table, block_class, facts, style), pa.BufferOutputStream()
    with pq.ParquetWriter(sink, rows.schema, store_schema=False, **(_PLAIN if style.plain else _PACKED)) as writer:
        for at, header in zip(accumulate((h.rows for h in headers), initial=0), headers, strict=False):
            writer.write_table(rows.slice(at, header.rows))
    file = sink.getvalue().to_pybytes()
    end = len(file) - 8 - int.from_bytes(file[-8:-4], "little")
    groups = pq.read_metadata(pa.BufferReader(file))
    for number, header in enumerate(headers):
        chunks = list(chunks_of(groups.row_group(number)))
        checksums = [zlib.crc32(file[start : start + length]) for start, length in chunks]
        index.entries.add(offset=chunks[0][0], header=header, lengths=[length for _, length in chunks], checksums=checksums)
    index.run.CopyFrom(run_of(headers, 0))
    index.footer_digest = hashlib.sha256(file[end:]).digest()
    change(index)
    sealed = seal(index.SerializeToString())
    data = file[:end] + sealed + len(sealed).to_bytes(4, "little") + file[end:]
    put(root, f"{index.writer}/{index.database}/segments/{UUID(bytes=index.uuid)}.parquet", data)
    place = {"writer": index.writer, "uuid": index.uuid, "size": len(data), "index_offset": end, "index_length": len(sealed)}
    return message("SegmentReference")(**place, index_digest=sealed[-32:], run=run_of(headers, level))
