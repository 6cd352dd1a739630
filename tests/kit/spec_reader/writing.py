"""Files as a writer puts them who knows docs/spec alone: transactions, blocks of folded facts, segments, checkpoints."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

from .facts import BLIND, NAMED, Fact
from .sealing import message, seal
from .stamps import uuid_time
from .tables import Column, Table, encoded_key

_SCALARS: dict[str, pa.DataType] = {
    "string": pa.utf8(),
    "bytes": pa.binary(),
    "uuid": pa.binary(16),
    "timestamp": pa.timestamp("us", "UTC"),
    "bool": pa.bool_(),
    "float": pa.float32(),
    "double": pa.float64(),
    "enum": pa.int32(),
} | {name: getattr(pa, name)() for name in ("int32", "int64", "uint32", "uint64")}
_NUMBERS = {
    "_kind": pa.uint8(),
    "_end_kind": pa.uint8(),
    "_expects": pa.uint8(),
    "_end_expects": pa.uint8(),
    "_purged": pa.bool_(),
}
_UUIDS = ("_name_uuid", "_expects_uuid", "_end_expects_uuid")


def uuid_at(time: int, number: int) -> bytes:
    """A version 7 uuid that holds the time; ``number`` stands where others are random (spec/stamps.md)."""
    return (time // 1000 << 80 | 7 << 76 | time % 1000 << 64 | 2 << 62 | number).to_bytes(16, "big")


def new_transaction(writer: str, revision: int, time: int, number: int = 0) -> Any:
    """A transaction that follows nothing and says nothing yet (spec/transactions.md)."""
    known = {"format_version": 1, "writer": writer, "database": "default", "lateness_bound": 360_000_000}
    return message("Transaction")(**known, revision=revision, uuid=uuid_at(time, number), commit_time=time)


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


def arrow_type(column: Column, *, flags: bool = False) -> pa.DataType:
    """The type of a column in blocks (spec/tables.md); with ``flags`` it says that lists and maps hold no nulls."""
    if column.shape == "map":
        key, item = (arrow_type(child, flags=flags) for child in column.children)
        return pa.map_(key, pa.field("value", item, not flags))
    if column.type == "message":
        one = pa.struct([(str(child.number), arrow_type(child, flags=flags)) for child in column.children])
    else:
        one = _SCALARS[column.type]
    return pa.list_(pa.field("element", one, not flags)) if column.shape == "list" else one


def _value(column: Column, value: Any) -> Any:
    if value is None:
        return None
    if column.shape == "map":
        return [(_one(column.children[0], key), _one(column.children[1], item)) for key, item in value]
    return [_one(column, item) for item in value] if column.shape == "list" else _one(column, value)


def _one(column: Column, value: Any) -> Any:
    if column.type != "message":
        return value
    return {str(child.number): _value(child, value.get(child.number)) for child in column.children}


def stream(columns: dict[str, pa.Array], *, flags: bool) -> bytes:
    """An Arrow IPC stream of one record batch; with ``flags`` columns without nulls are declared to be so."""
    fields = [pa.field(name, array.type, not flags or array.null_count > 0) for name, array in columns.items()]
    sink = pa.BufferOutputStream()
    batch = pa.record_batch(list(columns.values()), schema=pa.schema(fields))
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def block_of(table: Table, block_class: int, facts: Sequence[Fact], *, flags: bool = False) -> tuple[Any, bytes]:
    """Header and bytes of a block of folded facts about one table, in their order (spec/segments.md, spec/facts.md)."""
    stamps = sorted({stamp[:4] for fact in facts for stamp in (fact.stamp, fact.row_stamp, fact.end) if stamp})
    position = {stamp: number for number, stamp in enumerate(stamps)}
    columns: dict[str, list[Any]] = {}
    for number, fact in enumerate(facts):
        for name, value in _columns_of(fact, position).items():
            columns.setdefault(name, [None] * len(facts))[number] = value
    arrays = {name: pa.array(values, _type_of(name)) for name, values in columns.items()}
    for column in table.columns:
        values = [_value(column, fact.row.get(column.number)) for fact in facts]
        if column in table.key or any(value is not None for value in values):
            arrays[str(column.number)] = pa.array(values, arrow_type(column, flags=flags))
    keys = [encoded_key(table, fact.row) for fact in facts]
    times = [stamp[0] for stamp in stamps] + [uuid_time(fact.name[0]) for fact in facts if fact.name]
    header = message("BlockHeader")(
        **{"class": block_class},
        table=table.name,
        rows=len(facts),
        first_key=keys[0],
        last_key=keys[-1],
        oldest=min(times),
        newest=max(times),
        expectations=sum(1 for fact in facts if fact.expects or fact.end_expects),
        late_updates=sum(1 for f in facts if f.kind not in (BLIND, NAMED) and f.end and f.row_stamp and f.row_stamp > f.end),
    )
    listed = list(zip(*stamps, strict=True)) or [()] * 4
    kinds = (pa.int64(), pa.utf8(), pa.int64(), pa.binary(16))
    names = ("commit_time", "writer", "revision", "uuid")
    transactions = {name: pa.array(values, kind) for name, values, kind in zip(names, listed, kinds, strict=True)}
    return header, sealed_block(header, stream(transactions, flags=flags), stream(arrays, flags=flags)).SerializeToString()


def sealed_block(header: Any, transactions: bytes, rows: bytes) -> Any:
    """A block with its checksum (spec/sealing.md)."""
    body = message("Block")(header=header, transactions=transactions, rows=rows).SerializeToString()
    return message("Block").FromString(body + b"\xfd\x7f" + zlib.crc32(body).to_bytes(4, "little"))


def _type_of(name: str) -> pa.DataType:
    return _NUMBERS.get(name) or (pa.binary(16) if name in _UUIDS else pa.int32())


def _columns_of(fact: Fact, position: dict[Any, int]) -> dict[str, Any]:
    """What the columns beside the row's say of a fact, those that say nothing left out (spec/facts.md)."""
    found: dict[str, Any] = {"_kind": fact.kind} if fact.kind else {}
    for what, stamp in (("", fact.stamp), ("row_", fact.row_stamp), ("end_", fact.end)):
        if stamp is not None:
            found |= {f"_{what}txn": position[stamp[:4]], f"_{what}seq": stamp[4]}
    if fact.end is not None:
        found["_end_kind"] = fact.end_kind
    if fact.name is not None:
        found |= {"_name_uuid": fact.name[0], "_name_seq": fact.name[1]}
    for what, expects in (("", fact.expects), ("end_", fact.end_expects)):
        if expects == "absent":
            found[f"_{what}expects"] = 1
        elif expects is not None:
            found |= {f"_{what}expects": 2, f"_{what}expects_uuid": expects[0], f"_{what}expects_seq": expects[1]}
    return found | ({"_purged": True} if fact.purged else {})


def run_of(header: Any, level: int) -> Any:
    """The run that one block makes (spec/segments.md)."""
    return message("RunSummary")(
        **{"class": getattr(header, "class")},
        table=header.table,
        rows=header.rows,
        blocks=1,
        first_key=header.first_key,
        last_key=header.last_key,
        oldest=header.oldest,
        newest=header.newest,
        level=level,
    )


def put_segment(
    root: Path, writer: str, uuid: bytes, cut: Any, tables: Iterable[Any], run: Any, header: Any, block: bytes
) -> Any:
    """Put a segment of a run of this block; gives the reference to it (spec/segments.md)."""
    index = message("SegmentIndex")(format_version=1, writer=writer, database="default", uuid=uuid, cut=cut, tables=tables)
    index.run.CopyFrom(run)
    index.run.level = 0
    data = b"\x0a" + _varint(len(block))
    index.entries.add(offset=len(data), length=len(block), header=header, checksum=int.from_bytes(block[-4:], "little"))
    data += block
    sealed, at = seal(index.SerializeToString()), len(data)
    data += b"\x12" + _varint(len(sealed))
    reference = message("SegmentReference")(writer=writer, uuid=uuid, index_offset=len(data), index_length=len(sealed), run=run)
    data += sealed + b"\x19" + at.to_bytes(8, "little")
    reference.size, reference.index_digest = len(data), sealed[-32:]
    assert hashlib.sha256(sealed[:-35]).digest() == sealed[-32:]
    put(root, f"{writer}/default/segments/{UUID(bytes=uuid)}.seg", data)
    return reference


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])
