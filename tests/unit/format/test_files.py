"""Files to values and back, and what a reader says of files from the future."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bucketcatalog import CorruptionError, TruncatedObject, UnsupportedFormat, clock, limits
from bucketcatalog.format.blocks import MAX_BYTES, decode_block, encode_blocks
from bucketcatalog.format.checkpoints import (
    ApplicationResult,
    Checkpoint,
    Coverage,
    Definition,
    Totals,
    decode_checkpoint,
    encode_checkpoint,
)
from bucketcatalog.format.definitions import core_tables
from bucketcatalog.format.footers import footer_start
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.format.records import Link
from bucketcatalog.format.sealing import digest, seal, seal_block, unseal
from bucketcatalog.format.segments import RunBuilder, RunRows, index_span
from bucketcatalog.format.transactions import (
    Application,
    Transaction,
    action_of,
    decode_transaction,
    encode_transaction,
    event_of,
)
from bucketcatalog.log.blocks import read_block
from bucketcatalog.log.segments import read_index
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Cut, Head
from bucketcatalog.model.events import Event, EventKind, VersionName, facts_of_events
from bucketcatalog.model.facts import Facts, transaction_table
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.v1 import log_pb2

from ...kit.corrupting import index_of
from ...kit.world import BUCKET, OWNER, START, World, names, obj

WORDS = core_tables()["harvest_errors"]
UUIDS = [clock.uuid7(START + n).bytes for n in range(4)]
HEADS = [Head(n, uuid) for n, uuid in enumerate(UUIDS)]


def facts(count: int, size: int = 1) -> Facts:
    """Facts of ``harvest_errors``, sorted, of two transactions."""
    stamps = transaction_table([(START, "w", 0, UUIDS[0]), (START + 1, "v", 0, UUIDS[1])])
    events = [
        (n % 2, n, Event(WORDS.name, EventKind.PUT, {"1": "s", "2": f"{n:06}", "4": "x" * size if n % 3 else None}))
        for n in range(count)
    ]
    return facts_of_events(WORDS, events, stamps)


def put(path: str) -> Event:
    return Event(WORDS.name, EventKind.PUT, {"1": "s", "2": path})


class TestTransactions:
    def test_everything_of_a_transaction_comes_back(self) -> None:
        events = [
            put("a"),
            Event(WORDS.name, EventKind.UPDATE, {"1": "s", "2": "a", "4": "é"}, VersionName(UUIDS[0], 0)),
            Event(WORDS.name, EventKind.DELETE, {"1": "s", "2": "a"}),
            Event(WORDS.name, EventKind.DELETE, {"1": "s", "2": "a"}, VersionName(UUIDS[0], 7), moved=True),
            Event(WORDS.name, EventKind.PURGE, {"1": "s", "2": "a"}, VersionName(UUIDS[0], 7)),
            Event(WORDS.name, EventKind.PUT, {"1": "s", "2": "b"}, has_expectation=True),
            Event(WORDS.name, EventKind.PUT, {"1": "", "2": ""}, has_expectation=True, expects=VersionName(UUIDS[1], 2**31 - 1)),
        ]
        given = Transaction(
            writer="w",
            database="db",
            revision=limits.REVISIONS - 1,
            uuid=UUIDS[0],
            commit_time=START,
            lateness_bound=5,
            parents=(Link(1, UUIDS[1], bytes(32)), Link(limits.REVISIONS - 2, UUIDS[2], b"\x01" * 32)),
            operation="op",
            metadata={"a": "b"},
            metrics={"n": -1},
            application=Application("app", -5),
            reads=Cut.of([("v", HEADS[0]), ("v", HEADS[1]), ("u", HEADS[2])]),
            tables=(WORDS,),
        )
        data = encode_transaction(given, [action_of(event, WORDS) for event in events], [])
        found = decode_transaction(data, "file")

        for name in ("writer", "database", "revision", "uuid", "commit_time", "lateness_bound", "parents", "operation", "reads"):
            assert getattr(found, name) == getattr(given, name), name
        assert (found.metadata, found.metrics, found.application) == (given.metadata, given.metrics, given.application)
        assert found.tables == (WORDS,) and found.digest == digest(data) and found.size == len(data)
        assert [event_of(action, WORDS, "file") for action in found.actions] == events

    def test_equal_transactions_have_equal_bytes(self) -> None:
        given = Transaction("w", "db", 0, UUIDS[0], START, 5, metadata={"b": "1", "a": "2"})
        other = Transaction("w", "db", 0, UUIDS[0], START, 5, metadata={"a": "2", "b": "1"})

        assert encode_transaction(given, [], []) == encode_transaction(other, [], [])

    def test_an_event_of_an_unknown_kind_is_from_the_future(self) -> None:
        action = action_of(put("a"), WORDS)
        action.kind = 99
        with pytest.raises(UnsupportedFormat, match="file"):
            event_of(action, WORDS, "file")

    def test_a_row_that_is_none_is_named(self) -> None:
        action = action_of(put("a"), WORDS)
        action.row = b"\xff\xff\xff"
        with pytest.raises(CorruptionError, match="file"):
            event_of(action, WORDS, "file")


class TestCheckpoints:
    def test_everything_of_a_checkpoint_comes_back(self) -> None:
        store = MemoryStore()
        builder = RunBuilder(RunRows(facts(10), WORDS, BlockClass.LIVE))
        _, reference = builder.segment(writer="w", database="db", uuid=UUIDS[3])
        given = Checkpoint(
            writer="w",
            database="db",
            revision=7,
            uuid=UUIDS[0],
            cut=Cut.of([("w", HEADS[0]), ("v", HEADS[1])]),
            coverage={
                "v": Coverage(1, frozenset(HEADS[1:3]), frozenset(HEADS[:1]), 5, 9),
                "w": Coverage(0, frozenset(), frozenset(), 0, 0),
            },
            created=START,
            lateness_bound=6,
            definitions=(Definition((START, "w", 3, UUIDS[1]), WORDS),),
            totals={WORDS.name: Totals(1, 2, 3)},
            applications=(ApplicationResult("w", "app", -1, Link(3, UUIDS[1], bytes(32)), START),),
            segments=(reference,),
            reads=Cut.of([("u", HEADS[2])]),
            forgotten_before=4,
        )
        data = encode_checkpoint(given)
        found = decode_checkpoint(data, "file")

        assert found == Checkpoint(
            **{f: getattr(given, f) for f in given.__dataclass_fields__} | {"digest": digest(data), "size": len(data)}
        )
        assert list(store.list("")) == []


class TestBlocks:
    @pytest.mark.parametrize("count", [1, 2, 100])
    @pytest.mark.parametrize("kind", [BlockClass.LIVE, BlockClass.ENDED, BlockClass.STUBS])
    def test_facts_come_back(self, count: int, kind: BlockClass) -> None:
        given = facts(count)
        (block,) = encode_blocks(given, WORDS, kind)
        found = decode_block(block.data, WORDS, "file")

        assert block.header.rows == len(found) == count
        assert (block.header.first_key, block.header.last_key) == (b"s\x00\x01000000", f"s\x00\x01{count - 1:06}".encode())
        assert (block.header.oldest, block.header.newest) == (START, START + min(count, 2) - 1)
        for name in ("1", "2", "_seq"):
            assert found.rows[name].to_pylist() == given.rows[name].to_pylist()
        shown = [found.uuids[position].as_py() for position in found.rows["_txn"].to_pylist()]
        assert shown == [UUIDS[n % 2] for n in range(count)]

    def test_only_the_wanted_columns_are_read_and_of_no_columns_the_first_of_the_key(self) -> None:
        given = facts(10)
        (block,) = encode_blocks(given, WORDS, BlockClass.LIVE)
        for wanted in ({"4"}, {"2", "4"}, {"2"}, set[str](), {"3"}):
            found = decode_block(block.data, WORDS, "file", wanted)
            kept = wanted & set(given.rows.column_names) or {"1"}
            assert (len(found), set(found.rows.column_names)) == (10, kept)
            for name in kept:
                assert found.rows[name].to_pylist() == given.rows[name].to_pylist()

    def test_blocks_are_at_most_a_mebibyte_unless_one_row_is_more(self) -> None:
        import random

        noise = random.Random(1)
        stamps = transaction_table([(START, "w", 0, UUIDS[0])])
        sizes = [300_000] * 20 + [3_000_000] + [10] * 20
        events = [
            (0, n, Event(WORDS.name, EventKind.PUT, {"1": "s", "2": f"{n:03}", "4": noise.randbytes(size // 2).hex()}))
            for n, size in enumerate(sizes)
        ]
        blocks = list(encode_blocks(facts_of_events(WORDS, events, stamps), WORDS, BlockClass.LIVE))

        assert sum(block.header.rows for block in blocks) == len(sizes)
        assert all(len(block.data) <= MAX_BYTES or block.header.rows == 1 for block in blocks)
        keys = [key for block in blocks for key in (block.header.first_key, block.header.last_key)]
        assert keys == sorted(keys)

    def test_the_header_counts_what_may_be_a_conflict(self) -> None:
        stamps = transaction_table([(START, "w", 0, UUIDS[0])])
        events = [(0, n, Event(WORDS.name, EventKind.PUT, {"1": "s", "2": str(n)}, has_expectation=n > 0)) for n in range(3)]
        (block,) = encode_blocks(facts_of_events(WORDS, events, stamps), WORDS, BlockClass.LIVE)

        assert (block.header.expectations, block.header.late_updates) == (2, 0)

    def test_a_block_that_claims_other_rows_is_named(self) -> None:
        (block,) = encode_blocks(facts(3), WORDS, BlockClass.LIVE)
        message = log_pb2.Block.FromString(block.data)
        message.header.rows = 4
        message.ClearField("checksum")
        data, _ = seal_block(message.SerializeToString(deterministic=True))
        with pytest.raises(CorruptionError, match=r"file.*3 rows, and not 4"):
            decode_block(data, WORDS, "file")

    def test_arrow_data_that_is_none_is_named(self) -> None:
        (block,) = encode_blocks(facts(3), WORDS, BlockClass.LIVE)
        whole = log_pb2.Block.FromString(block.data).rows
        for length in range(len(whole)):
            message = log_pb2.Block.FromString(block.data)
            message.rows = whole[:length]
            message.ClearField("checksum")
            data, _ = seal_block(message.SerializeToString(deterministic=True))
            try:
                found = decode_block(data, WORDS, "file")
            except CorruptionError as error:
                assert "file" in str(error)  # noqa: PT017
            else:
                assert found.rows["2"].to_pylist() == ["000000", "000001", "000002"]


class TestSegments:
    def test_any_parquet_library_reads_the_rows_and_any_protobuf_library_the_index(self) -> None:
        builder = RunBuilder(RunRows(facts(10), WORDS, BlockClass.LIVE))
        data, reference = builder.segment(writer="w", database="db", uuid=UUIDS[0], cut=Cut.of([("w", HEADS[0])]))

        assert pq.read_table(pa.BufferReader(data)).select(WORDS.key).to_pylist() == [
            {WORDS.key[0]: "s", WORDS.key[1]: f"{n:06}"} for n in range(10)
        ]
        index = index_of(data)
        assert (index.writer, index.database, index.uuid) == ("w", "db", UUIDS[0])
        assert [h.uuid for w in index.cut.writers for h in w.heads] == [UUIDS[0]]
        sealed = data[reference.index_offset :][: reference.index_length]
        assert log_pb2.SegmentIndex.FromString(sealed) == index and digest(sealed) == reference.index_digest
        assert reference.size == len(data)
        run = reference.run
        assert (run.table, run.block_class, run.rows, run.blocks) == (WORDS.name, BlockClass.LIVE, 10, 1)

    def test_row_groups_are_read_by_range_through_the_index(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("bucketcatalog.format.segments.ROW_GROUP_ROWS", 4)
        store = MemoryStore()
        builder = RunBuilder(RunRows(facts(10), WORDS, BlockClass.LIVE))
        data, reference = builder.segment(writer="w", database="db", uuid=UUIDS[0])
        store.put(paths.segment("w", "db", UUIDS[0]), data)

        places = read_index(store, "db", reference)
        found = [read_block(store, place, WORDS).rows["2"].to_pylist() for place in places]
        assert found == [[f"{n:06}" for n in part] for part in (range(4), range(4, 8), range(8, 10))]


class TestSeals:
    def test_a_sealed_message_reads_back(self) -> None:
        assert unseal(seal(b"body"), "file", "a transaction") == b"body"
        assert unseal(seal(b""), "file", "a transaction") == b""

    def test_a_seal_is_the_last_field_of_its_message(self) -> None:
        sealed = seal(log_pb2.Transaction(writer="w").SerializeToString())

        assert log_pb2.Transaction.FromString(sealed).checksum == digest(sealed)

    @pytest.mark.parametrize("data", [b"", b"x", seal(b"body")[:-1], seal(b"body")[1:], seal(b"body") + b"\x00"])
    def test_what_is_not_sealed_is_named(self, data: bytes) -> None:
        with pytest.raises((CorruptionError, TruncatedObject), match=r"file.*a transaction"):
            unseal(data, "file", "a transaction")

    @pytest.mark.parametrize("decode", [decode_transaction, decode_checkpoint])
    def test_a_rightly_sealed_message_of_nonsense_is_named(self, decode: Callable[[bytes, str], Any]) -> None:
        for body in (b"\xff\xff", b"\x0a\xff", bytes(100)):
            with pytest.raises(CorruptionError, match="file"):
                decode(seal(body), "file")


def resealed(data: bytes, kind: Any, change: Callable[[Any], None]) -> bytes:
    """A sealed file with something changed, and a right seal."""
    message = kind.FromString(data)
    message.ClearField("checksum")
    change(message)
    return seal(message.SerializeToString(deterministic=True))


def need(message: Any) -> None:
    message.required_features.extend(["a-feature", "b-feature"])


def be_newer(message: Any) -> None:
    message.format_version = 2


FUTURES = {"a-feature": need, "version 2": be_newer}


class TestFilesFromTheFuture:
    """Refused by name, never misread."""

    @pytest.fixture
    def world(self) -> World:
        world = World()
        with world.writer() as writer:
            world.commit(writer, ("put", "objects", [obj("a"), obj("b")]))
            writer.checkpoint()
            world.commit(writer, ("put", "objects", obj("c")))
        return world

    @pytest.mark.parametrize("what", FUTURES)
    @pytest.mark.parametrize(("ending", "kind"), [(".txn", log_pb2.Transaction), (".ckpt", log_pb2.Checkpoint)])
    def test_readers_and_writers_refuse_it(self, world: World, ending: str, kind: Any, what: str) -> None:
        name = max(info.name for info in world.store.list("") if info.name.endswith(ending))
        world.store.put(name, resealed(world.store.get(name), kind, FUTURES[what]))

        for attempt in (world.snapshot, world.writer, lambda: world.catalog().changes().to_arrow()):
            with pytest.raises(UnsupportedFormat, match=what) as error:
                attempt()
            assert name in error.value.message and "newer release" in error.value.next_step

    @pytest.mark.parametrize("what", FUTURES)
    def test_readers_of_segments_refuse_it(self, world: World, what: str) -> None:
        (segment,) = (info.name for info in world.store.list("") if info.name.endswith(".parquet"))
        data = world.store.get(segment)
        footer = footer_start(data[-8:], len(data), segment)
        start, stop = index_span(data[footer - 4 : footer], footer, segment)
        index = resealed(data[start:stop], log_pb2.SegmentIndex, FUTURES[what])
        changed = data[:start] + index + len(index).to_bytes(4, "little") + data[footer:]
        world.store.put(segment, changed)

        def refer(checkpoint: Any) -> None:
            (reference,) = checkpoint.segments
            reference.size, reference.index_length, reference.index_digest = len(changed), len(index), digest(index)

        (name,) = (info.name for info in world.store.list("") if info.name.endswith(".ckpt"))
        world.store.put(name, resealed(world.store.get(name), log_pb2.Checkpoint, refer))

        with pytest.raises(UnsupportedFormat, match=what) as error:
            names(world.snapshot())
        assert segment in error.value.message

    def test_a_feature_of_a_transaction_that_nobody_reads_stops_nobody(self, world: World) -> None:
        name = min(info.name for info in world.store.list("") if info.name.endswith(".txn"))
        world.store.put(name, resealed(world.store.get(name), log_pb2.Transaction, need))

        assert names(world.snapshot()) == ["a", "b", "c"]

    def test_fields_that_this_release_does_not_know_are_passed_over(self, world: World) -> None:
        for name in [info.name for info in world.store.list("") if info.name.endswith((".txn", ".ckpt"))]:
            body = unseal(world.store.get(name), name, "a file")
            world.store.put(name, seal(body + b"\xfa\x3e\x03new"))  # field 1007

        assert names(world.snapshot()) == ["a", "b", "c"]


def test_types_of_every_column_survive_a_block() -> None:
    table = core_tables()["objects"]
    row = {"1": OWNER, "2": BUCKET, "3": "x", "11": [("a", "b")], "12": [BUCKET], "13": ["s"], "25": True, "28": 5}
    given = facts_of_events(table, [(0, 0, Event("objects", EventKind.PUT, row))], transaction_table([(START, "w", 0, UUIDS[0])]))
    (block,) = encode_blocks(given, table, BlockClass.LIVE)
    found = decode_block(block.data, table, "file")

    for name, value in row.items():
        assert found.rows[name].to_pylist() == [value]
        assert found.rows[name].type == table.storage_schema.field(name).type
    assert found.rows["11"].type == pa.map_(pa.string(), pa.string())


def test_a_required_feature_is_named_before_anything_else_is_judged() -> None:
    block = log_pb2.Block(header=log_pb2.BlockHeader(table="t", rows=1, **{"class": 77}))
    message = log_pb2.Transaction(format_version=1, required_features=["zebra"])
    message.blocks.add().MergeFromString(seal_block(block.SerializeToString())[0])
    with pytest.raises(UnsupportedFormat, match="zebra"):
        decode_transaction(seal(message.SerializeToString()), "file")


@pytest.mark.parametrize("column", ["_kind", "_end_kind", "_expects", "_end_expects"])
def test_facts_of_an_unknown_kind_are_from_the_future(column: str) -> None:
    given = facts(3)
    strange = Facts(given.transactions, given.rows.append_column(column, pa.array([0, 9, None], pa.uint8())))
    if column in given.rows.column_names:
        place = given.rows.column_names.index(column)
        strange = Facts(given.transactions, given.rows.set_column(place, column, pa.array([0, 9, 0], pa.uint8())))
    (block,) = encode_blocks(strange, WORDS, BlockClass.STUBS)
    with pytest.raises(UnsupportedFormat, match=f"9 in the column '{column}'"):
        decode_block(block.data, WORDS, "file")


@pytest.mark.parametrize("purpose", [4, 9])
def test_a_run_that_is_no_rows_is_from_the_future(purpose: int) -> None:
    message = log_pb2.Checkpoint(format_version=1, writer="w", database="default", uuid=UUIDS[0])
    run = log_pb2.RunSummary(table="t", rows=1, purpose=purpose, **{"class": 2})  # type: ignore[arg-type]
    message.segments.add(writer="w", uuid=UUIDS[1], run=run)
    with pytest.raises(UnsupportedFormat, match=f"{purpose} is not a known purpose"):
        decode_checkpoint(seal(message.SerializeToString()), "file")


def test_checkpoint_that_speaks_of_an_unknown_class_of_rows_is_refused_by_name() -> None:
    message = log_pb2.Checkpoint(format_version=1, writer="w", database="default", uuid=UUIDS[0])
    message.segments.add(writer="w", uuid=UUIDS[1], run=log_pb2.RunSummary(table="objects", **{"class": 99}))
    with pytest.raises(UnsupportedFormat, match=r"w/x\.ckpt"):
        decode_checkpoint(seal(message.SerializeToString()), "w/x.ckpt")
