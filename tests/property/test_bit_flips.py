"""Every bit of a transaction, a checkpoint and a segment flipped, and each cut at every length, read through the public interface.

The outcome is the right answer or a typed error that names the file: never a wrong answer, a hang or a foreign exception. All cases are
enumerated. Of what is read by range every cut and some flipped bit of every byte are met by a read: those that are given the byte take
turns, and all of them meet the damage at either end of what one of them is given.

What a read does depends on nothing but the bytes that it is given, so a read is left out where it was not given the damaged byte; which
bytes a read is given is recorded, not assumed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from bucketcatalog import BucketCatalogError, Catalog, CorruptionError, MissingObject
from bucketcatalog.checkpoint.merge import Alone
from bucketcatalog.format.checkpoints import Checkpoint
from bucketcatalog.format.headers import BlockClass, Purpose
from bucketcatalog.format.runs import SegmentReference
from bucketcatalog.log.discovery import newest_view
from bucketcatalog.log.files import LogFiles
from bucketcatalog.log.segments import read_segment_file
from bucketcatalog.maintain.verify.checkpoints import check_blocks
from bucketcatalog.model.cuts import Cut
from bucketcatalog.model.paths import segment
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.store import Store
from bucketcatalog.store.faults import Wrapped
from bucketcatalog.store.memory import MemoryStore

OWNER, BUCKET = "11111111-1111-4111-8111-111111111111", "33333333-3333-4333-8333-333333333333"
DATABASE = "db"
Read = Callable[[Snapshot], Any]
Spans = list[tuple[int, int]]


def obj(name: str, **more: Any) -> dict[str, Any]:
    return {"owner": OWNER, "bucket_id": BUCKET, "name": name, **more}


def scan(table: str, **options: Any) -> Read:
    return lambda snapshot: snapshot.scan(table, **options).to_arrow().to_pylist()


READS: dict[str, Read] = {
    "objects": scan("objects"),
    "one column": scan("objects", columns=["content_length"]),
    "tombstones": scan("deleted_objects"),
    "buckets": scan("buckets"),
    "deleted buckets": scan("deleted_buckets"),
    "conflicts": scan("conflicts"),
    "get": lambda snapshot: snapshot.get("objects", **obj("a/x")),
    "list": lambda snapshot: (
        (page := snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, prefix="a/")).rows.to_pylist(),
        page.groups,
    ),
}


class Recording(Wrapped):
    """Remembers which bytes of which objects were given out."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.given: dict[str, Spans] = {}

    def get(self, name: str, *, most: int | None = None) -> bytes:
        data = self.inner.get(name, most=most)
        self.given.setdefault(name, []).append((0, len(data)))
        return data

    def get_range(self, name: str, offset: int, length: int) -> bytes:
        data = self.inner.get_range(name, offset, length)
        start = offset if offset >= 0 else max(0, self.inner.head(name).size + offset)
        self.given.setdefault(name, []).append((start, start + len(data)))
        return data


class Specimen:
    """A small catalog: an inline and a columnar transaction of two tables, and, if wanted, a checkpoint of three runs."""

    def __init__(self, *, checkpoint: bool) -> None:
        self.store = MemoryStore()
        with Catalog(self.store).writer("w", database=DATABASE) as writer:
            with writer.transaction() as tx:
                tx.put("objects", [obj("a/x", content_length=1), obj("a/y"), obj("b")])
                tx.put("buckets", {"owner": OWNER, "name": "bucket"})
            with writer.transaction() as tx:
                tx.put("objects", self.columns())
                tx.delete("objects", obj("b"))
            if checkpoint:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr("bucketcatalog.write.writer.Alone", Alone)  # one task, so that each run is one block
                    patch.setattr("bucketcatalog.checkpoint.plan.INLINE_BYTES", 0)  # each in a segment of its own
                    writer.checkpoint()
        self.files = {info.name: self.store.get(info.name) for info in self.store.list("")}
        self.expected = {name: read(self.snapshot()) for name, read in READS.items()}

    @staticmethod
    def columns() -> Any:
        source = Catalog(MemoryStore())
        with source.writer("x") as writer, writer.transaction() as tx:
            tx.put("objects", [obj("a/y", content_length=2), obj("c", content_length=3)])
        return source.snapshot().scan("objects", columns=["owner", "bucket_id", "name", "content_length"]).to_arrow()

    def name(self, ending: str, number: int = 0) -> str:
        return [name for name in self.files if name.endswith(ending)][number]

    def snapshot(self) -> Snapshot:
        return Catalog(self.store).snapshot(database=DATABASE)

    def readers(self, name: str, *, opened: bool = False) -> dict[str, Spans]:
        """For each read the bytes of the file that it is given; with ``opened`` those that it is given after the snapshot is taken."""
        found = {}
        for read_name, read in READS.items():
            recording = Recording(self.store)
            snapshot = Catalog(recording).snapshot(database=DATABASE)
            if opened:
                recording.given.clear()
            read(snapshot)
            found[read_name] = recording.given.get(name, [])
        return found


@pytest.fixture(scope="module", autouse=True)
def nothing_is_read_along() -> Iterator[None]:
    """Between two chunks that are needed none is read that is not, so that every byte that is read is needed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("bucketcatalog.format.parquet._NEIGHBOURS", 0)
        yield


@pytest.fixture(scope="module")
def logged() -> Specimen:
    return Specimen(checkpoint=False)


@pytest.fixture(scope="module")
def checkpointed() -> Specimen:
    return Specimen(checkpoint=True)


def flips(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each byte's place and the data with one of its bits flipped."""
    damaged = bytearray(data)
    for place in range(len(data)):
        for bit in range(8):
            damaged[place] ^= 1 << bit
            yield place, bytes(damaged)
            damaged[place] ^= 1 << bit


def cuts(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The data cut at every length."""
    for length in range(len(data)):
        yield length, data[:length]


DAMAGES = {"flips": flips, "cuts": cuts}


def a_flip_a_byte(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each byte's place and the data with one of its bits flipped, from byte to byte another."""
    damaged = bytearray(data)
    for place in range(len(data)):
        damaged[place] ^= 1 << place % 8
        yield place, bytes(damaged)
        damaged[place] ^= 1 << place % 8


BY_RANGE = {"flips": a_flip_a_byte, "cuts": cuts}
"""Of what is read in parts, which the same checksums cover whichever bit it is: a file is read anew for each."""


def attempt(name: str, read: Callable[[], Any], expected: Any) -> bool:
    """Whether the damage was noticed; fails where the outcome is neither a typed error that names the file nor the right answer."""
    try:
        found = read()
    except BucketCatalogError as error:
        told = str(error)
    else:
        assert found == expected
        return False
    assert name in told, f"{told} does not name {name}"
    return True


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("number", [0, 1], ids=["inline", "columnar"])
def test_a_damaged_transaction_is_named(logged: Specimen, number: int, damage: str) -> None:
    name = logged.name(".txn", number)
    assert all(logged.readers(name).values())
    noticed = cases = 0
    for _, data in DAMAGES[damage](logged.files[name]):
        logged.store.put(name, data)
        noticed += attempt(name, logged.snapshot, None)
        cases += 1
    logged.store.put(name, logged.files[name])
    assert noticed == cases > 0


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_named(checkpointed: Specimen, damage: str) -> None:
    name = checkpointed.name(".ckpt")
    assert all(checkpointed.readers(name).values())
    noticed = cases = 0
    for _, data in DAMAGES[damage](checkpointed.files[name]):
        checkpointed.store.put(name, data)
        noticed += attempt(name, checkpointed.snapshot, None)
        cases += 1
    checkpointed.store.put(name, checkpointed.files[name])
    assert noticed == cases > 0


@pytest.mark.parametrize("damage", BY_RANGE)
@pytest.mark.parametrize("what", ["segment", "columnar transaction"])
def test_damage_that_is_read_by_range_is_named_and_stops_nobody_else(
    logged: Specimen, checkpointed: Specimen, what: str, damage: str
) -> None:
    specimen = checkpointed if what == "segment" else logged
    names = [name for name in specimen.files if name.endswith(".parquet")] if what == "segment" else [specimen.name(".txn", 1)]
    pieces = {name: {span for spans in specimen.readers(name, opened=True).values() for span in spans} for name in names}
    read = [name for name in names if pieces[name]]
    if what == "segment":
        assert len(read) >= 3 and all(len(pieces[name]) >= 2 for name in read), "an index and a block are read on their own"
    else:
        assert read
    for name in read:
        check_all_damage(specimen, name, damage)


def check_all_damage(specimen: Specimen, name: str, damage: str) -> None:
    """Each damage to the file is noticed by whoever reads what it hits, and by nobody else."""
    readers = specimen.readers(name, opened=True)
    pieces = {span for spans in readers.values() for span in spans}
    # The view of the log was read while all was well. A snapshot made of it has read nothing by range yet.
    files = LogFiles(specimen.store, DATABASE)
    view = newest_view(files)
    whole = len(specimen.files[name])
    # Who refers to a segment says how long its index is: what the file says of that is for those who find it without a reference.
    footer = whole - 8 - int.from_bytes(specimen.files[name][-8:-4], "little")
    unread = range(footer - 4, footer) if name.endswith(".parquet") else range(0)
    ends = {end + by for piece in pieces for end in piece for by in (-1, 0, 1)}
    noticed = cases = given = 0
    for place, data in BY_RANGE[damage](specimen.files[name]):
        specimen.store.put(name, data)
        gone = (place, place + 1) if damage == "flips" else (place, whole)
        concerned = [r for r, spans in readers.items() if any(start < gone[1] and gone[0] < stop for start, stop in spans)]
        if place not in ends and concerned:
            concerned = [concerned[(cases + cases // 8) % len(concerned)]]  # not always the same bit for one of them
        snapshot = Snapshot(files, view)
        hits = [attempt(name, lambda s=snapshot, r=read: READS[r](s), specimen.expected[read]) for read in concerned]
        if damage == "flips" and place in unread:
            assert not any(hits)
            continue
        assert all(hits)
        noticed += bool(hits)
        given += any(start < gone[1] and gone[0] < stop for start, stop in pieces)
        cases += 1
    specimen.store.put(name, specimen.files[name])
    assert 0 < noticed == given <= cases


def parts_of(data: bytes, reference: SegmentReference) -> dict[str, range]:
    """Which bytes of a segment are what, by what refers to it."""
    index = reference.index_offset + reference.index_length
    rows = reference.filters_offset or reference.index_offset
    ends = {"magic": 4, "rows": rows, "filters": reference.index_offset, "index": index, "length": index + 4, "footer": len(data)}
    starts = (0, *ends.values())
    return {name: range(start, stop) for start, (name, stop) in zip(starts, ends.items(), strict=False)}


NOTHING_RESTS_ON = {"magic", "length"}
"""What any Parquet file begins with, and what a segment says of its index to who knows nothing else of it."""
SAID_OF_ITSELF = {"index", "footer"}
"""What is read of a segment that nothing refers to; where its length is damaged the index is looked for."""


def test_each_byte_of_a_segment_is_checked_by_who_reads_it_whole_or_nothing_rests_on_it(checkpointed: Specimen) -> None:
    files = LogFiles(checkpointed.store, DATABASE)
    (checkpoint,) = newest_view(files).checkpoints
    runs = {(reference.run.table, reference.run.block_class, reference.run.purpose) for reference in checkpoint.segments}
    assert {("objects", BlockClass.LIVE, Purpose.ROWS), ("objects", BlockClass.ENDED, Purpose.ROWS)} < runs
    assert {purpose for *_, purpose in runs} == {*Purpose}
    for reference in checkpoint.segments:
        check_each_byte(checkpointed.store, files, replace(checkpoint, segments=(reference,), inline=()))


def check_each_byte(store: Store, files: LogFiles, checkpoint: Checkpoint) -> None:
    """Each byte of the one segment of a checkpoint, flipped, is noticed by those who read it, by what the byte is of."""
    (reference,) = checkpoint.segments
    name = segment("w", DATABASE, reference.uuid)
    data, right = store.get(name), reference.index_digest
    parts = parts_of(data, reference)
    assert bool(parts["filters"]) == reference.run.is_of_rows and all(parts[part] for part in parts if part != "filters")
    assert sum(map(len, parts.values())) == len(data) == reference.size and list(check_blocks(files, checkpoint)) == []
    of = [part for part, places in parts.items() for _ in places]
    found = {part: Counter[tuple[bool, bool]]() for part in parts}
    for place, damaged in a_flip_a_byte(data):
        store.put(name, damaged)
        told = {finding.file for finding in check_blocks(files, checkpoint)}
        assert told in ({name}, set())
        alone = attempt(name, lambda: read_segment_file(store, name, len(data)).reference.index_digest, right)
        found[of[place]][bool(told), alone] += 1
    store.put(name, data)
    for part, places in parts.items():
        expected = (part not in NOTHING_RESTS_ON, part in SAID_OF_ITSELF)
        assert found[part] == (Counter({expected: len(places)}) if places else Counter()), part


@pytest.mark.parametrize("part", sorted(NOTHING_RESTS_ON))
def test_damage_to_what_nothing_rests_on_changes_no_answer(checkpointed: Specimen, part: str) -> None:
    files = LogFiles(checkpointed.store, DATABASE)
    (checkpoint,) = newest_view(files).checkpoints
    names = {segment("w", DATABASE, reference.uuid): reference for reference in checkpoint.segments}
    for name, reference in names.items():
        data = bytearray(checkpointed.files[name])
        for place in parts_of(bytes(data), reference)[part]:
            data[place] ^= 0xFF
        checkpointed.store.put(name, bytes(data))
    found = {read_name: read(checkpointed.snapshot()) for read_name, read in READS.items()}
    for name in names:
        checkpointed.store.put(name, checkpointed.files[name])
    assert found == checkpointed.expected


def test_whoever_opens_a_writer_on_a_damaged_log_is_told_the_file(logged: Specimen, checkpointed: Specimen) -> None:
    for specimen, ending, number in ((logged, ".txn", 1), (checkpointed, ".ckpt", 0)):
        name = specimen.name(ending, number)
        for damage in (flips, cuts):
            for _, data in damage(specimen.files[name]):
                specimen.store.put(name, data)
                assert attempt(name, lambda s=specimen: Catalog(s.store).writer("w", database=DATABASE), None)
        specimen.store.put(name, specimen.files[name])


def test_changes_name_the_damaged_transaction_that_a_checkpoint_hides(checkpointed: Specimen) -> None:
    name = checkpointed.name(".txn")
    checkpointed.store.put(name, checkpointed.files[name][:-1])
    try:
        assert READS["objects"](checkpointed.snapshot()) == checkpointed.expected["objects"]
        with pytest.raises(CorruptionError, match="transactions/0"):
            Catalog(checkpointed.store).changes(database=DATABASE).to_arrow()
    finally:
        checkpointed.store.put(name, checkpointed.files[name])


class TestSwapped:
    """A file that is whole, but another one."""

    @pytest.fixture
    def store(self) -> MemoryStore:
        store = MemoryStore()
        catalog = Catalog(store)
        for database in (DATABASE, "other"):
            for writer_name in ("w", "v"):
                with catalog.writer(writer_name, database=database) as writer:
                    for n in range(2):
                        with writer.transaction() as tx:
                            tx.put("objects", obj(f"{database}-{writer_name}-{n}"))
                        writer.checkpoint()
                    with writer.transaction() as tx:
                        tx.put("objects", obj(f"{database}-{writer_name}-tail"))
                        tx.put("buckets", {"owner": OWNER, "name": "b"})
        return store

    @pytest.mark.parametrize("ending", [".txn", ".ckpt", ".parquet"])
    def test_any_file_in_the_place_of_another_of_its_kind_is_named(self, store: MemoryStore, ending: str) -> None:
        files = {info.name: store.get(info.name) for info in store.list("") if info.name.endswith(ending)}
        snapshot = Catalog(store).snapshot(database=DATABASE)
        expected = snapshot.scan("objects").to_arrow()
        segments = {s.uuid for c in snapshot.view.checkpoints for s in c.segments if s.run.table == "objects"}
        noticed = 0
        for name in files:
            for other, data in files.items():
                if other == name:
                    continue
                store.put(name, data)
                noticed += attempt(name, lambda: Catalog(store).snapshot(database=DATABASE).scan("objects").to_arrow(), expected)
            store.put(name, files[name])
        # Of the database that is read: the tails, the newest checkpoints and their segments are read; older ones are not.
        assert noticed == (len(segments) if ending == ".parquet" else 2) * (len(files) - 1)

    @pytest.mark.parametrize("ending", [".txn", ".ckpt", ".parquet"])
    def test_a_file_of_another_kind_is_named(self, store: MemoryStore, ending: str) -> None:
        every = {info.name: store.get(info.name) for info in store.list(f"w/{DATABASE}/")}
        name = max(n for n in every if n.endswith(ending))
        for other, data in every.items():
            if not other.endswith(ending):
                store.put(name, data)
                assert attempt(name, lambda: Catalog(store).snapshot(database=DATABASE).scan("objects").to_arrow(), None)


class TestMissing:
    def test_every_file_that_another_one_names_is_missed_by_name(self, checkpointed: Specimen) -> None:
        outcomes: dict[str, bool] = {}  # of several segments, whether one is missed
        for name in checkpointed.files:
            checkpointed.store.delete(name)
            try:
                noticed = attempt(name, lambda: READS["objects"](checkpointed.snapshot()), checkpointed.expected["objects"])
                outcomes[name.rpartition(".")[2]] = noticed or outcomes.get(name.rpartition(".")[2], False)
            finally:
                checkpointed.store.put(name, checkpointed.files[name])
        kinds = {kind if kind in ("txn", "ckpt", "parquet") else "marker": noticed for kind, noticed in outcomes.items()}
        assert kinds == {"txn": False, "ckpt": True, "parquet": True, "marker": False}

    def test_a_gap_in_a_timeline_is_missed_by_name(self, logged: Specimen) -> None:
        name = logged.name(".txn", 0)
        logged.store.delete(name)
        try:
            for read in (
                logged.snapshot,
                lambda: Catalog(logged.store).snapshot(database=DATABASE, version="w@1"),
                lambda: Catalog(logged.store).changes(database=DATABASE),
            ):
                with pytest.raises(MissingObject, match=name):
                    read()
        finally:
            logged.store.put(name, logged.files[name])

    def test_what_another_writer_had_read_is_missed_by_name(self) -> None:
        store = MemoryStore()
        with Catalog(store).writer("a") as writer, writer.transaction() as tx:
            tx.put("objects", obj("x"))
        gone = next(store.list("a/")).name
        catalog = Catalog(store)
        catalog.snapshot()
        with catalog.writer("b") as writer, writer.transaction() as tx:
            tx.put("objects", obj("y"))
        assert Catalog(store).snapshot().cut != Cut()
        store.delete(gone)
        with pytest.raises(MissingObject, match=gone):
            Catalog(store).snapshot()
