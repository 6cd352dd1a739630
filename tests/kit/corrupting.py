"""Catalogs to damage, a small one with a file of each kind and one with levels, and each way in which a file can be wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bucketcatalog.format.checkpoints import Checkpoint
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.format.runs import SegmentReference
from bucketcatalog.format.sealing import FORMAT_VERSION, seal
from bucketcatalog.format.segments import RunBuilder, RunRows
from bucketcatalog.format.transactions import Transaction, decode_transaction, encode_transaction
from bucketcatalog.log.blocks import read_block
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model import paths
from bucketcatalog.model.facts import concat
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.store import Store
from bucketcatalog.v1 import log_pb2

from .world import World, bucket, names, obj

INLINE = [f"a{n}" for n in range(3)]
COLUMNAR = [f"b{n:02}" for n in range(70)]
TAIL = ["c"]
OF_SEGMENT = [f"d{n:02}" for n in range(70)]
EVERYTHING = [*INLINE, *COLUMNAR, *TAIL, *OF_SEGMENT]


def of_segment(world: World, name: str) -> None:
    """Turn the columnar transaction ``name`` into one whose events lie in a segment, as bulk loads do."""
    writer = name.split("/")[0]
    t = decode_transaction(world.store.get(name), name)
    table = world.snapshot().table("objects")
    events = concat([read_block(world.store, place, table) for place in t.blocks])
    builder = RunBuilder(RunRows(events, table, BlockClass.EVENTS))
    data, reference = builder.segment(writer=writer, database=t.database, uuid=t.uuid)
    world.store.put(paths.segment(writer, t.database, t.uuid), data)
    world.store.put(name, encode_transaction(_referring(t, reference), (), ()))


def _referring(t: Transaction, reference: SegmentReference) -> Transaction:
    return replace(t, blocks=(), segments=(reference,))


@dataclass(frozen=True)
class Specimen:
    """The catalog, and the name of one file of each kind."""

    world: World
    files: dict[str, str]

    @property
    def store(self) -> Store:
        return self.world.store

    def read(self, **options: Any) -> tuple[list[str], Snapshot]:
        snapshot = self.world.catalog().snapshot(**options)
        return names(snapshot), snapshot


def specimen(world: World | None = None) -> Specimen:
    """Writer ``w``: two transactions, a checkpoint of them, another; writer ``v``: a transaction whose events lie in a segment."""
    world = world or World()
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", [obj(name) for name in INLINE]))
        world.commit(writer, ("put", "objects", [obj(name) for name in COLUMNAR]))
        made = writer.checkpoint()
        world.commit(writer, ("put", "objects", [obj(name) for name in TAIL]))
    with world.writer("v") as writer:
        world.commit(writer, ("put", "objects", [obj(name) for name in OF_SEGMENT]))
    listed = [info.name for info in world.store.list("")]
    of_v = next(name for name in listed if name.startswith("v/"))
    of_segment(world, of_v)
    assert made is not None
    transactions = [name for name in listed if name.startswith("w/") and name.endswith(".txn")]
    files = {
        "covered transaction": transactions[0],
        "columnar transaction": transactions[1],
        "transaction": transactions[2],
        "checkpoint": made.name,
        "marker": next(name for name in listed if "/newest/" in name),
        "segment": next(name for name in listed if name.endswith(".parquet")),
        "segment of events": next(info.name for info in world.store.list("v/default/segments/")),
    }
    return Specimen(world, files)


def filled(world: World) -> World:
    """Two writers and a compactor: inline and columnar transactions, tombstones, updates, checkpoints of levels."""
    one, two = world.writer("a"), world.writer("b")
    world.commit(one, ("put", "objects", [obj(f"x{n:03}") for n in range(2000)]))
    world.commit(one, ("delete", "objects", obj("x001")), ("put", "buckets", bucket("q")))
    one.checkpoint()
    world.commit(two, ("put", "objects", obj("x002", content_length=2)))
    compactor = world.writer("compactor-1")
    compactor.checkpoint(scope="all")
    for n in range(2):
        world.commit(one, ("put", "objects", [obj(f"y{n}")]))
        compactor.checkpoint(scope="all")
    world.commit(two, ("put", "objects", obj("tail")))
    return world


def last_checkpoint(world: World) -> tuple[str, Checkpoint]:
    files = LogFiles(world.store, "default")
    head = next(files.checkpoints("compactor-1"))
    return paths.checkpoint("compactor-1", "default", head), files.checkpoint("compactor-1", head)


def missing(one: Specimen, name: str) -> None:
    one.store.delete(name)


def truncated(one: Specimen, name: str) -> None:
    one.store.put(name, one.store.get(name)[:-20])


def flipped(one: Specimen, name: str) -> None:
    """In a segment this is a bit of the names in its first row group, which everybody reads."""
    data = bytearray(one.store.get(name))
    data[chunk_of(bytes(data), "name") if name.endswith(".parquet") else 60] ^= 1
    one.store.put(name, bytes(data))


def chunk_of(data: bytes, column: str | None = None) -> int:
    """A byte in the middle of what a segment's first row group has of a column, or of the one that has the most bytes there."""
    group = pq.read_metadata(pa.BufferReader(data)).row_group(0)
    chunks = [group.column(at) for at in range(group.num_columns) if column in (None, group.column(at).path_in_schema)]
    chunk = max(chunks, key=lambda chunk: chunk.total_compressed_size)
    return int(chunk.data_page_offset) + chunk.total_compressed_size // 2


def index_of(data: bytes) -> Any:
    """The index of a segment."""
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    length = int.from_bytes(data[footer - 4 : footer], "little")
    return log_pb2.SegmentIndex.FromString(data[footer - 4 - length : footer - 4])


def index_flipped(one: Specimen, name: str) -> None:
    """In a segment this is a bit of its index, in all else one of the checksum."""
    data = bytearray(one.store.get(name))
    at = -40
    if name.endswith(".parquet"):
        at = len(data) - 8 - int.from_bytes(data[-8:-4], "little") - 4 - 40
    data[at] ^= 1
    one.store.put(name, bytes(data))


def swapped(one: Specimen, name: str) -> None:
    """Another file of the kind, or where there is no other the one of a catalog that was made alike."""
    ending = name.rpartition(".")[2]
    others = [info.name for info in one.store.list("") if info.name.endswith(f".{ending}") and info.name != name]
    if others:
        one.store.put(name, one.store.get(others[0]))
    else:
        foreign(one, name)


def foreign(one: Specimen, name: str) -> None:
    other = specimen()
    kind = next(kind for kind, own in one.files.items() if own == name)
    one.store.put(name, other.store.get(other.files[kind]))


def newer(one: Specimen, name: str) -> None:
    """The file as a later release would write it: a transaction or checkpoint with a larger format version."""
    data = one.store.get(name)
    assert data[:2] == bytes([0x08, FORMAT_VERSION])
    one.store.put(name, seal(b"\x08\x63" + data[2:-35]))


DAMAGES: dict[str, Callable[[Specimen, str], None]] = {
    "missing": missing,
    "truncated": truncated,
    "flipped": flipped,
    "index flipped": index_flipped,
    "swapped": swapped,
    "foreign": foreign,
    "newer": newer,
}
