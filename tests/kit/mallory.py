"""Files that mallory forges below her own prefix, with every name, checksum and marker right, wherever a store lies.

She has a plain writer's rights, has committed rows and has a checkpoint of her own; so have alice and bob, and a compactor has one of
everybody. Each forgery puts what it needs and returns the name of the file that readers meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from bucketcatalog import Catalog
from bucketcatalog.format.checkpoints import Checkpoint, Coverage, encode_checkpoint
from bucketcatalog.format.headers import BlockClass, Purpose
from bucketcatalog.format.runs import SegmentReference
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head
from bucketcatalog.store import Store
from bucketcatalog.write.writer import Writer

from .earlier import Earlier
from .forging import Forgery
from .spec_reader import message, new_transaction, seal
from .spec_reader.writing import block_of, name_of_file
from .world import bucket, obj

OTHERS = ("alice", "bob")
FAR = 10**15 - 2
"""About the largest number that a file can name."""


def fill(open_store: Callable[[str], Store], database: str = "default", *, count: int = 300) -> None:
    """What has stood there for days before anything is forged; ``open_store`` gives the store with the rights of a writer."""

    @contextmanager
    def writing(name: str, days: int) -> Iterator[Writer]:
        store = Earlier(open_store(name))
        store.days = days
        with Catalog(store).writer(name, database=database, clock=store.now_us) as writer:
            yield writer

    for name in (*OTHERS, "mallory"):
        with writing(name, 3) as writer:
            with writer.transaction() as tx:
                tx.put("buckets", bucket(name))
            with writer.transaction() as tx:
                tx.put("objects", [obj(f"{name} {n:05}", id=id_of(name, n)) for n in range(count)])
    with writing("compactor-1", 2) as compactor:
        compactor.checkpoint(scope="all")
    for name in (*OTHERS, "mallory"):
        with writing(name, 2) as writer:
            with writer.transaction() as tx:
                tx.put("objects", obj(f"{name} later"))
                tx.delete("objects", [obj(f"{name} {n:05}") for n in range(3)])
            if name == "mallory":
                writer.checkpoint()
    with writing("maintainer-1", 2) as maintainer:
        maintainer.tag("release")


def id_of(name: str, number: int) -> str:
    """The id of an object that a writer has put, which names its data."""
    return f"{name.encode().hex()[:8]:0<8}-0000-4000-8000-{number:012}"


@dataclass(frozen=True)
class Mallory:
    """Who forges, with the rights that ``store`` has."""

    store: Store
    database: str = "default"

    @property
    def files(self) -> LogFiles:
        """The log as it is now."""
        return LogFiles(self.store, self.database)

    def last(self, writer: str) -> Any:
        """The message of a writer's last transaction."""
        return self.message(writer, max(self.files.transactions(writer)))

    def message(self, writer: str, head: Head) -> Any:
        """The message of a transaction."""
        return message("Transaction").FromString(self.store.get(paths.transaction(writer, self.database, head)))

    def checkpoint_of(self, writer: str) -> Checkpoint:
        files = self.files
        return files.checkpoint(writer, next(files.checkpoints(writer)))

    def next(self) -> Any:
        """The message of her next transaction, which says nothing yet."""
        before = self.last("mallory")
        made = new_transaction("mallory", before.revision + 1, max(self.store.now_us(), before.commit_time + 1))
        made.database = self.database
        made.parents.add(**link(before))
        return made

    def put(self, transaction: Any) -> str:
        """Puts a transaction; gives its file's name."""
        name = name_of_file(transaction, "txn")
        self.store.put(name, seal(transaction.SerializeToString()))
        return name

    def put_checkpoint(self, checkpoint: Checkpoint) -> str:
        """Puts a checkpoint in the place of the one that her marker leads to; gives its file's name."""
        name = paths.checkpoint("mallory", self.database, checkpoint.head)
        self.store.put(name, encode_checkpoint(checkpoint))
        return name


Forging = Callable[[Mallory], str]


def link(transaction: Any) -> dict[str, Any]:
    """What names a transaction as a parent, or as voided."""
    names = ("writer", "revision", "uuid")
    return {name: getattr(transaction, name) for name in names} | {"digest": transaction.checksum}


# What readers pass over, or leave out of a file.


def everybody(by: Mallory) -> str:
    """A checkpoint that covers all that anybody wrote and ever will, and holds nothing."""
    own, cut = by.checkpoint_of("mallory"), Catalog(by.store).snapshot(database=by.database).cut
    coverage = {writer: Coverage(cut.newest_revision(writer) + 1, frozenset(), transactions=FAR) for writer in cut.heads}
    return by.put_checkpoint(replace(own, cut=cut, coverage=coverage, segments=(), inline=(), totals={}))


def boundary(by: Mallory) -> str:
    """A boundary of the history and of data, which lets go of everything."""
    made = by.next()
    for writer in (*OTHERS, "mallory"):
        read = by.last(writer)
        made.boundary.horizon.writers.add(writer=writer).heads.add(revision=read.revision, uuid=read.uuid)
    made.boundary.data = made.boundary.settled = made.commit_time
    made.required_features.append("boundary")
    return by.put(made)


def voids(by: Mallory) -> str:
    """Alice's and bob's last commits, voided."""
    made = by.next()
    for writer in OTHERS:
        made.voids.add(**link(by.last(writer)))
    made.required_features.append("voids")
    return by.put(made)


def witnesses(by: Mallory) -> str:
    """That a definition of hers of everybody's objects had been read before all others."""
    made = by.next()
    stamp = {name: getattr(made, name) for name in ("commit_time", "writer", "revision", "uuid")}
    made.witnessed.add(table="objects", definition=bytes(32), defined_by=message("TransactionStamp")(**stamp))
    return by.put(made)


def maintainers_tag(by: Mallory) -> str:
    """A maintainer's tag, moved to where mallory alone is."""
    made, read = by.next(), by.last("mallory")
    entry = made.tags.add(name="release", created=made.commit_time)
    entry.cut.writers.add(writer="mallory").heads.add(revision=read.revision, uuid=read.uuid)
    return by.put(made)


def compactors_segment(by: Mallory) -> str:
    """A checkpoint of her own whose segment is called as a compactor's."""
    own, uuid = by.checkpoint_of("mallory"), by.checkpoint_of("compactor-1").segments[0].uuid
    reference = next(segment for segment in own.segments if segment.run.is_of_rows)
    others = tuple(segment for segment in own.segments if segment.run != reference.run)
    return by.put_checkpoint(replace(own, segments=(_copied(by, reference, uuid), *others)))


def _copied(by: Mallory, reference: SegmentReference, uuid: bytes) -> SegmentReference:
    """A segment, put below her own prefix under that uuid."""
    data = by.store.get(paths.segment(reference.writer, by.database, reference.uuid))
    by.store.put(paths.segment("mallory", by.database, uuid), data)
    return replace(reference, uuid=uuid)


PASSED_OVER: dict[str, Forging] = {
    made.__name__: made for made in (boundary, voids, witnesses, maintainers_tag, compactors_segment, everybody)
}


# What stops readers, until it is set aside.


def a_byte(by: Mallory) -> str:
    """A transaction of one byte."""
    name = name_of_file(by.next(), "txn")
    by.store.put(name, b"\n")
    return name


def reads_of_nothing(by: Mallory) -> str:
    """A transaction that has read what is nowhere."""
    made = by.next()
    made.reads.add(writer="alice").heads.add(revision=FAR, uuid=bytes.fromhex("018bcfe5687b7000800000000000") + bytes(2))
    return by.put(made)


def others_segment(by: Mallory) -> str:
    """A transaction that says that a segment of the compactor's is of its own events."""
    made = by.next()
    read = by.files.checkpoint("compactor-1", next(by.files.checkpoints("compactor-1")))
    name = paths.checkpoint("compactor-1", by.database, read.head)
    made.segments.extend(message("Checkpoint").FromString(by.store.get(name)).segments)
    return by.put(made)


# She can go on after each but the last.
REFUSED: dict[str, Forging] = {made.__name__: made for made in (reads_of_nothing, others_segment, a_byte)}


# What stops who reads the rows.


def stolen_rows(by: Mallory) -> str:
    """A checkpoint of her own timeline with segments of the compactor's rows, whose stamps are alice's and bob's too."""
    own, of_all = by.checkpoint_of("mallory"), by.checkpoint_of("compactor-1")
    copies = tuple(replace(_copied(by, reference, reference.uuid), writer="mallory") for reference in of_all.segments)
    by.put_checkpoint(replace(own, segments=copies, inline=(), totals=of_all.totals))
    return paths.segment("mallory", by.database, _of_live_objects(copies).uuid)


_LIVE_OBJECTS = ("objects", Purpose.ROWS, BlockClass.LIVE)


def _of_live_objects(segments: Iterable[SegmentReference]) -> SegmentReference:
    """The segment that whoever reads objects reads first, which need not be the first of a checkpoint's."""
    return next(each for each in segments if (each.run.table, each.run.purpose, each.run.block_class) == _LIVE_OBJECTS)


def broken_page(by: Mallory) -> str:
    """A checkpoint of her own timeline with a segment in which Parquet's values are none, and every checksum right."""
    with Catalog(by.store).writer("mallory", database=by.database) as writer:
        for number in range(3):  # so much that whoever reads takes it from her checkpoint
            with writer.transaction() as tx:
                tx.put("objects", obj(f"mallory more {number}"))
        writer.checkpoint()
    own = by.checkpoint_of("mallory")
    reference = _of_live_objects(own.segments)
    name = paths.segment("mallory", by.database, reference.uuid)
    forged = Forgery.of(by.store.get(name), reference)
    forged.chunk("name").data_page.hold_values(b"", b"\xff" * 64)
    data, made = forged.sealed()
    by.store.put(name, data)
    by.put_checkpoint(replace(own, segments=tuple(made if each is reference else each for each in own.segments)))
    return name


def other_columns(by: Mallory) -> str:
    """A transaction with a block of rows that have no column of those that they must have."""
    made = by.next()
    files = by.files
    blocks = [block for head in files.transactions("mallory") for block in by.message("mallory", head).blocks]
    (block,) = (block for block in blocks if block.header.table == "objects")
    rows = pa.ipc.open_stream(block.rows).read_all()
    made.tables.extend(by.message("mallory", min(files.transactions("mallory"))).tables)
    made.blocks.append(block_of(block.header, rows.rename_columns([f"no {name}" for name in rows.column_names])))
    return by.put(made)


UNREADABLE: dict[str, Forging] = {made.__name__: made for made in (stolen_rows, broken_page, other_columns)}
