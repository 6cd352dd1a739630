"""Files of writers that are not ours: what docs/spec allows is read, what it does not is refused by name, and never ends in a raw error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, CorruptionError
from bucketcatalog.log.segments import read_segment_file
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.query.snapshot import Snapshot

from ...kit.spec_reader import PUT, SpecReader, Style, compact, message, new_transaction, put_transaction, seal, table_of
from ...kit.spec_reader import writing as by_hand
from ...kit.spec_reading import Script, compare, copied
from ...kit.world import World, messages, names, obj, proto, rows

UPDATE, PURGE = 2, 4
SHORT = b"fifteen bytes.."


class Foreign:
    """A catalog in a directory with one live object, and a transaction that somebody else writes after it."""

    def __init__(self, root: Path) -> None:
        world = World()
        world.commit(world.writer("node-1"), ("put", "objects", obj("a", etag="x")))
        self.root = copied(world, root)
        ((self.ref, first),) = SpecReader(root).transactions.items()
        self.transaction = new_transaction("by-hand", 0, first.commit_time + 1)
        self.transaction.tables.extend(first.tables)
        self.action = self.transaction.actions.add(table="objects", kind=UPDATE, row=first.actions[0].row)
        self.action.version.uuid = first.uuid

    @property
    def file(self) -> str:
        return by_hand.name_of_file(self.transaction, "txn")

    def written(self) -> Snapshot:
        put_transaction(self.root, self.transaction)
        return Catalog(self.root).snapshot()


@pytest.fixture
def foreign(tmp_path: Path) -> Foreign:
    return Foreign(tmp_path)


def test_an_update_that_names_a_version_is_read(foreign: Foreign) -> None:
    assert rows(foreign.written(), columns=["etag"]) == [{"etag": "x"}]


@pytest.mark.parametrize("kind", [UPDATE, PURGE])
def test_an_update_or_a_purge_without_a_version_is_refused_and_ends_no_row(foreign: Foreign, kind: int) -> None:
    foreign.action.kind = kind
    foreign.action.ClearField("version")
    snapshot = foreign.written()

    with pytest.raises(CorruptionError, match=f"{foreign.file} holds an? (update|purge) that names no version"):
        rows(snapshot)
    (finding,) = [f for f in Catalog(foreign.root).verify() if f.severity is Severity.ERROR]
    assert (finding.code, finding.file) == ("DAMAGED_EVENTS", foreign.file)
    skipping = Catalog(foreign.root).snapshot(ignore_corruption=True)
    assert names(skipping) == ["a"]
    assert {row["file"] for row in rows(skipping, "damage")} == {foreign.file}


def test_a_fact_that_names_no_version_is_refused_in_a_block_too(foreign: Foreign) -> None:
    table = table_of(foreign.transaction.tables[0])
    row = table.row.FromString(foreign.action.row)
    del foreign.transaction.actions[:]
    columns = {
        "_kind": pa.array([2], pa.uint8()),
        "_seq": pa.array([0], pa.int32()),
        "_purged": pa.array([True]),
        "1": pa.array([row.owner], pa.binary(16)),
        "2": pa.array([row.bucket_id], pa.binary(16)),
        "3": pa.array([row.name]),
    }
    key = row.owner + b"" + row.bucket_id + row.name.encode()
    header = message("BlockHeader")(**{"class": 1}, table="objects", rows=1, first_key=key, last_key=key)
    foreign.transaction.blocks.append(by_hand.sealed_block(header, b"", by_hand.stream(columns, flags=False)))

    with pytest.raises(CorruptionError, match=f"{foreign.file} holds a block with a fact that names no version"):
        rows(foreign.written())


@pytest.mark.parametrize("field", ["version", "expects"])
@pytest.mark.parametrize(("uuid", "sequence"), [(SHORT, 0), (b"", 0), (bytes(17), 0), (None, 1 << 31)])
def test_a_name_that_is_none_is_refused_by_file(foreign: Foreign, field: str, uuid: bytes | None, sequence: int) -> None:
    if field == "expects":
        foreign.action.kind = PUT
        foreign.action.ClearField("version")
    meant = foreign.action.version if field == "version" else foreign.action.expects.version
    meant.uuid, meant.sequence = foreign.ref[2] if uuid is None else uuid, sequence

    with pytest.raises(CorruptionError, match=foreign.file):
        rows(foreign.written())


WRONG_UUIDS: dict[str, Callable[[Any], Any]] = {
    "reads": lambda t: t.reads.add(writer="node-1").heads.add(uuid=SHORT),
    "parents": lambda t: t.parents.add(writer="by-hand", uuid=SHORT),
    "voids": lambda t: t.voids.add(writer="node-1", uuid=SHORT),
    "tag": lambda t: t.tags.add(name="t").cut.writers.add(writer="node-1").heads.add(uuid=SHORT),
    "horizon": lambda t: t.boundary.horizon.writers.add(writer="node-1").heads.add(uuid=SHORT),
    "checkpoint": lambda t: t.boundary.checkpoint.MergeFrom(message("TransactionLink")(writer="node-1", uuid=SHORT)),
    "segment": lambda t: t.segments.add(writer="by-hand", uuid=SHORT),
}


@pytest.mark.parametrize("where", WRONG_UUIDS)
def test_a_reference_whose_uuid_is_none_is_refused_by_file(foreign: Foreign, where: str) -> None:
    WRONG_UUIDS[where](foreign.transaction)

    with pytest.raises(CorruptionError, match=foreign.file):
        foreign.written()
    (finding,) = [f for f in Catalog(foreign.root).verify() if f.severity is Severity.ERROR]
    assert (finding.code, finding.file) == ("DAMAGED_TRANSACTION", foreign.file)


def test_a_row_whose_uuid_is_none_is_refused_by_file(foreign: Foreign) -> None:
    table = table_of(foreign.transaction.tables[0])
    row = table.row.FromString(foreign.action.row)
    row.id = SHORT
    foreign.action.row = row.SerializeToString()

    with pytest.raises(CorruptionError, match=foreign.file):
        rows(foreign.written())


def compacted() -> tuple[World, str, str]:
    """A catalog with a tag and a checkpoint, and the names of that and of a segment of it."""
    world = World()
    world.commit(world.writer("node-1"), ("put", "objects", obj("a")))
    with world.writer("maintainer-1") as maintainer:
        maintainer.tag("then")
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    files = [info.name for info in world.store.list("compactor-1/")]
    return world, *(next(name for name in files if name.endswith(ending)) for ending in (".ckpt", ".seg"))


STAMPS: dict[str, Callable[[Any], Any]] = {"carried": lambda c: c.tags[0].carried_by, "defined": lambda c: c.tables[0].defined_by}


@pytest.mark.parametrize("what", STAMPS)
def test_a_stamp_of_a_checkpoint_whose_uuid_is_none_is_refused_by_file(what: str) -> None:
    world, name, _ = compacted()
    checkpoint = message("Checkpoint").FromString(world.store.get(name))
    STAMPS[what](checkpoint).uuid = SHORT
    checkpoint.ClearField("checksum")
    world.store.put(name, seal(checkpoint.SerializeToString()))

    with pytest.raises(CorruptionError, match=name):
        names(world.snapshot())


FOOTERS: dict[str, Callable[[Any], Any]] = {
    "its own": lambda index: index,
    "the cut's": lambda index: index.cut.writers[0].heads[0],
}


@pytest.mark.parametrize("whose", FOOTERS)
def test_a_segment_that_names_something_by_no_uuid_is_refused_by_file(whose: str) -> None:
    world, _, name = compacted()
    data = world.store.get(name)
    reference = read_segment_file(world.store, name, len(data)).reference
    place = slice(reference.index_offset, reference.index_offset + reference.index_length)
    index = message("SegmentIndex").FromString(data[place])
    index.ClearField("checksum")
    FOOTERS[whose](index).uuid = SHORT
    sealed = seal(index.SerializeToString())
    assert len(sealed) < 1 << 14 and len(data[place]) < 1 << 14  # so that lengths take two bytes in both
    changed = data[: place.start - 2] + bytes([len(sealed) & 0x7F | 0x80, len(sealed) >> 7]) + sealed + data[place.stop :]
    world.store.put(name, changed)

    with pytest.raises(CorruptionError, match=name):
        read_segment_file(world.store, name, len(changed))


@pytest.mark.parametrize("flags", [False, True])
def test_whether_columns_without_nulls_are_declared_to_have_none_says_nothing(tmp_path: Path, flags: bool) -> None:
    world = World()
    script = Script(world)
    script.begin()
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    script.arrive_late()
    reader = SpecReader(copied(world, tmp_path))
    ref = compact(reader, "foreign", Style(flags=flags))
    later = new_transaction("later", 0, max(t.commit_time for t in reader.transactions.values()) + 1)
    sample = next(t for t in reader.transactions.values() if any(d.name == "objects" for d in t.tables))
    later.tables.extend(d for d in sample.tables if d.name == "objects")
    action = next(a for a in sample.actions if a.table == "objects")
    later.actions.add(table="objects", kind=1, row=action.row)
    put_transaction(tmp_path, later)

    snapshot = Catalog(tmp_path).snapshot()
    assert ref[0] in {checkpoint.writer for checkpoint in snapshot.view.checkpoints}
    assert compare(SpecReader(tmp_path).from_transactions(), snapshot) > 100


LISTS = proto(
    """
    message Inner { optional int32 a = 1; repeated string b = 2; }
    message Row {
      option (table) = { name: "test.rows" key: "k" };
      int32 k = 1;
      repeated Inner inner = 2;
      map<string, Inner> named = 3;
    }
    """
)


def test_flags_within_lists_maps_and_messages_say_nothing_either(tmp_path: Path) -> None:
    world = World()
    catalog = world.catalog()
    catalog.register(messages(LISTS)["Row"])
    inner = {"a": 1, "b": ["x", "y"]}
    with world.writer("node-1", catalog=catalog) as writer:
        world.commit(writer, ("put", "test.rows", [{"k": n, "inner": [inner], "named": {"n": inner}} for n in range(3)]))
    compact(SpecReader(copied(world, tmp_path)), "foreign", Style(flags=True))

    assert rows(Catalog(tmp_path).snapshot(), "test.rows") == rows(world.snapshot(), "test.rows")
