"""Files of writers that are not ours: what docs/spec allows is read, what it does not is refused by name, and never ends in a raw error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog, CatalogWarning, CorruptionError, limits
from bucketcatalog.log.segments import read_segment_file
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model.times import micros
from bucketcatalog.model.uuids import uuid_text
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.store.faults import Counting

from ...kit.spec_reader import PUT, SpecReader, Style, compact, message, new_transaction, put_transaction, seal, table_of
from ...kit.spec_reader import writing as by_hand
from ...kit.spec_reader.facts import NAMED, Fact
from ...kit.spec_reader.segments import EVENTS, LIVE
from ...kit.spec_reader.tables import Table
from ...kit.spec_reading import Script, compare, copied
from ...kit.world import DAY, World, messages, names, obj, proto, rows, time_at

UPDATE, PURGE = 2, 4
SHORT = b"fifteen bytes.."
PAIRS = Style(block_rows=2)


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
    with pytest.warns(CatalogWarning, match=f"{foreign.file} holds an? (update|purge) that names no version"):
        assert names(skipping) == ["a"]
    assert {row["file"] for row in rows(skipping, "damage")} == {foreign.file}


def test_a_fact_that_names_no_version_is_refused_in_a_block_too(foreign: Foreign) -> None:
    table = table_of(foreign.transaction.tables[0])
    row = table.row.FromString(foreign.action.row)
    del foreign.transaction.actions[:]
    fact = Fact(
        NAMED, {1: uuid_text(row.owner), 2: uuid_text(row.bucket_id), 3: row.name}, stamp=(0, "", 0, bytes(16), 0), purged=True
    )
    header = by_hand.header_of(table, EVENTS, [fact])
    foreign.transaction.blocks.append(by_hand.block_of(header, by_hand.rows_of(table, EVENTS, [fact])))

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
    return world, *(next(name for name in files if name.endswith(ending)) for ending in (".ckpt", ".parquet"))


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
    changed = data[: place.start] + sealed + len(sealed).to_bytes(4, "little") + data[place.stop + 4 :]
    world.store.put(name, changed)

    with pytest.raises(CorruptionError, match=name):
        read_segment_file(world.store, name, len(changed))


def test_a_segment_larger_than_any_is_refused_by_file_without_being_read() -> None:
    world, _, name = compacted()
    store = Counting(world.store)
    with pytest.raises(CorruptionError, match=f"{name} has {limits.SEGMENT_BYTES + 1} bytes: it is not a segment"):
        read_segment_file(store, name, limits.SEGMENT_BYTES + 1)
    assert not store.requests


@dataclass
class Segment:
    """A segment that somebody else writes, with a checkpoint that has nothing else."""

    root: Path
    checkpoint: Any
    table: Table
    facts: list[Fact]
    before: Snapshot

    @classmethod
    def of(cls, root: Path, given: list[dict[str, Any]]) -> Segment:
        """One with these rows of the table ``test.numbers``."""
        world = World()
        catalog = world.catalog()
        catalog.register(messages(NUMBERS)["Row"])
        with world.writer("node-1", catalog=catalog) as writer:
            world.commit(writer, ("put", "test.numbers", given))
        reader = SpecReader(copied(world, root))
        _, revision, uuid = compact(reader, "compactor-foreign")
        checkpoint = SpecReader(root).checkpoints["compactor-foreign", revision, uuid]
        tables, facts = reader.facts(reader.transactions.values(), reader.transactions.values())
        found = [fact for _, about in sorted(facts["test.numbers"].items()) for fact in about]
        return cls(root, checkpoint, tables["test.numbers"], found, world.snapshot())

    @property
    def file(self) -> str:
        (reference,) = self.checkpoint.segments
        return f"compactor-foreign/default/segments/{UUID(bytes=reference.uuid)}.parquet"

    def put(self, change: Callable[[Any], None] = lambda index: None, style: Style = PAIRS) -> None:
        """Put it, and the checkpoint again: ``change`` is given the index before that is sealed."""
        (old,) = self.checkpoint.segments
        index = message("SegmentIndex")(format_version=1, writer="compactor-foreign", database="default", uuid=old.uuid)
        index.cut.CopyFrom(self.checkpoint.cut)
        index.tables.extend(self.checkpoint.tables)
        reference = by_hand.put_segment(self.root, index, self.table, LIVE, self.facts, style=style, change=change)
        old.CopyFrom(reference)
        self.checkpoint.ClearField("checksum")
        by_hand.put_checkpoint(self.root, self.checkpoint)

    def read(self) -> list[dict[str, Any]]:
        """What the engine reads, by the checkpoint alone."""
        snapshot = Catalog(self.root).snapshot()
        assert {checkpoint.writer for checkpoint in snapshot.view.checkpoints} == {"compactor-foreign"}
        return rows(snapshot, "test.numbers")


NUMBERS = proto(
    """
    message Nothing {}
    message Moment { optional int64 at = 1 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}]; }
    message Row {
      option (table) = { name: "test.numbers" key: "k" };
      int32 k = 1;
      optional double x = 2;
      Nothing nothing = 3;
      repeated Nothing some = 4;
      optional int64 at = 5 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
      repeated int64 times = 6 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
      Moment moment = 7;
      map<string, Moment> moments = 8;
    }
    """
)


def test_numbers_of_which_bounds_leave_some_out_are_read_and_not_their_bounds(tmp_path: Path) -> None:
    given = [1.0, math.nan, -0.0, 0.0, 2.0, 2.0]
    segment = Segment.of(tmp_path, [{"k": k, "x": x} for k, x in enumerate(given)])
    segment.put()
    statistics = [pq.read_metadata(tmp_path / segment.file).row_group(number).column(1).statistics for number in range(3)]
    assert [(said.min, said.max) for said in statistics] == [(1.0, 1.0), (0.0, 0.0), (2.0, 2.0)]

    assert [math.copysign(1, row["x"]) if row["x"] == 0 else str(row["x"]) for row in segment.read()] == [
        "1.0",
        "nan",
        -1,
        1,
        "2.0",
        "2.0",
    ]


TIMES: dict[str, tuple[int, Callable[[int], Any]]] = {
    "at": (5, lambda time: time),
    "times": (6, lambda time: [0, time]),
    "moment": (7, lambda time: {1: time}),
    "moments": (8, lambda time: [("a", {1: 0}), ("b", {1: time})]),
}


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("beyond", [micros(time_at(0).replace(9999, 12, 31)) + DAY, micros(time_at(0).replace(1)) - 1])
def test_a_time_that_nobody_can_show_is_refused_by_file_and_column(tmp_path: Path, name: str, beyond: int) -> None:
    segment = Segment.of(tmp_path, [{"k": k} for k in range(3)])
    number, holding = TIMES[name]
    segment.facts[1].row[number] = holding(beyond + (1 if beyond < 0 else -1))
    segment.put()
    assert len(segment.read()) == 3

    segment.facts[1].row[number] = holding(beyond)
    segment.put()
    said = f"{segment.file} holds .* outside of the years 1 to 9999 in the column '{name}'"
    with pytest.raises(CorruptionError, match=said):
        segment.read()
    assert [row["k"] for row in rows(Catalog(tmp_path).snapshot(), "test.numbers", columns=["k"])] == [0, 1, 2]


def test_an_event_with_a_time_that_nobody_can_show_is_refused_by_file_and_column(foreign: Foreign) -> None:
    table = table_of(foreign.transaction.tables[0])
    row = table.row.FromString(foreign.action.row)
    row.created = 1 << 60
    foreign.action.row = row.SerializeToString()

    with pytest.raises(CorruptionError, match=f"{foreign.file} holds .*its created, {1 << 60}, lies outside of the years"):
        rows(foreign.written())
    (finding,) = [f for f in Catalog(foreign.root).verify() if f.severity is Severity.ERROR]
    assert (finding.code, finding.file) == ("DAMAGED_EVENTS", foreign.file)


@pytest.mark.parametrize("style", [Style(), Style(inline=True), Style(flags=True, every_column=True)])
def test_messages_without_fields_are_there_or_not(tmp_path: Path, style: Style) -> None:
    world = World()
    catalog = world.catalog()
    catalog.register(messages(NUMBERS)["Row"])
    given = [{"k": 0, "nothing": {}}, {"k": 1}, {"k": 2, "some": [{}, {}]}]
    with world.writer("node-1", catalog=catalog) as writer:
        world.commit(writer, ("put", "test.numbers", given))
        world.commit(writer, ("put", "test.numbers", [{"k": k, "nothing": {}} for k in range(10, 90)]))
        world.commit(writer, ("put", "test.numbers", [{"k": k} for k in range(90, 99)]))
    there = [({}, None), (None, None), (None, [{}, {}]), *[({}, None)] * 80, *[(None, None)] * 9]

    def said() -> list[Any]:
        return [(row["nothing"], row["some"]) for row in rows(Catalog(tmp_path).snapshot(), "test.numbers")]

    assert [(row["nothing"], row["some"]) for row in rows(world.snapshot(), "test.numbers")] == there
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    reader = SpecReader(copied(world, tmp_path))
    assert said() == there
    compare(reader.from_transactions(), Catalog(tmp_path).snapshot())
    (ours,) = reader.checkpoints
    compare(reader.from_checkpoints(ours), Catalog(tmp_path).snapshot())
    compact(reader, "compactor-foreign", style)
    assert said() == there


def one_length_less(index: Any) -> None:
    del index.entries[1].lengths[-1]


def one_chunk_less(index: Any) -> None:
    one_length_less(index)
    del index.entries[1].checksums[-1]


def one_group_more(index: Any) -> None:
    index.entries.add().CopyFrom(index.entries[1])


def elsewhere(index: Any) -> None:
    index.entries[1].offset = index.entries[0].offset
    index.entries[1].checksums[:] = index.entries[0].checksums
    index.entries[1].lengths[:] = index.entries[0].lengths


def another_count(index: Any) -> None:
    index.entries[1].header.rows = 1


def another_footer(index: Any) -> None:
    index.footer_digest = bytes(32)


def another_checksum(index: Any) -> None:
    index.entries[1].checksums[0] ^= 1


WRONG_INDEXES = [one_length_less, one_chunk_less, one_group_more, elsewhere, another_count, another_footer, another_checksum]


@pytest.mark.parametrize("change", WRONG_INDEXES)
def test_an_index_that_is_not_of_its_footer_is_refused_by_file(tmp_path: Path, change: Callable[[Any], None]) -> None:
    segment = Segment.of(tmp_path, [{"k": k, "x": k / 3} for k in range(4)])
    segment.put()
    assert len(segment.read()) == 4
    segment.put(change)

    with pytest.raises(CorruptionError, match=segment.file):
        segment.read()
    findings = [f for f in Catalog(tmp_path).verify(deep=True) if f.severity is Severity.ERROR]
    assert segment.file in {finding.file for finding in findings}


@pytest.mark.parametrize("style", [Style(), Style(flags=True, plain=True, every_column=True, block_rows=3)])
def test_events_in_a_segment_are_read(tmp_path: Path, style: Style) -> None:
    foreign = Foreign(tmp_path)
    reader = SpecReader(tmp_path)
    foreign.transaction.actions[0].kind = PUT
    foreign.transaction.actions[0].ClearField("version")
    table = table_of(foreign.transaction.tables[0])
    for number in range(9):
        row = table.row.FromString(foreign.action.row)
        row.name = f"b{number}"
        foreign.transaction.actions.add(table="objects", kind=PUT, row=row.SerializeToString())
    _, facts = reader.facts([foreign.transaction], reader.transactions.values())
    events = [fact for _, about in sorted(facts["objects"].items()) for fact in about]
    del foreign.transaction.actions[:]
    index = message("SegmentIndex")(format_version=1, writer="by-hand", database="default", uuid=foreign.transaction.uuid)
    index.tables.extend(foreign.transaction.tables)
    foreign.transaction.segments.append(by_hand.put_segment(tmp_path, index, table, EVENTS, events, style=style))
    snapshot = foreign.written()

    assert names(snapshot) == ["a", *(f"b{number}" for number in range(9))]
    compare(SpecReader(tmp_path).from_transactions(), snapshot)


@pytest.mark.parametrize("flags", [False, True])
def test_whether_columns_without_nulls_are_declared_to_have_none_says_nothing(tmp_path: Path, flags: bool) -> None:
    world = World()
    script = Script(world)
    script.begin()
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    script.arrive_late()
    reader = SpecReader(copied(world, tmp_path))
    ref = compact(reader, "compactor-foreign", Style(flags=flags))
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
    compact(SpecReader(copied(world, tmp_path)), "compactor-foreign", Style(flags=True))

    assert rows(Catalog(tmp_path).snapshot(), "test.rows") == rows(world.snapshot(), "test.rows")
