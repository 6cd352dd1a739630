"""Packed columns: fewer bytes, the same values, through blocks and catalogs."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog import CorruptionError, UnsupportedFormat, prefix
from bucketcatalog.format.blocks import BlockClass, decode_block, encode_blocks
from bucketcatalog.format.columns import packed
from bucketcatalog.format.definitions import core_tables
from bucketcatalog.format.sealing import seal_block
from bucketcatalog.model.arrays import convert_list, convert_map
from bucketcatalog.model.events import Event, EventKind, facts_of_events
from bucketcatalog.model.facts import transaction_table
from bucketcatalog.v1 import log_pb2

from ...kit.world import BUCKET, OWNER, START, World, obj, rows

MANY = 2_048
WORDS = ("", "a", "ä\x00", "word" * 9)
UUID = st.binary(min_size=16, max_size=16)
KINDS = [
    (pa.string(), st.sampled_from(WORDS)),
    (pa.string(), st.text(max_size=3)),
    (pa.string(), st.text(alphabet="xyz", min_size=3, max_size=3)),
    (pa.binary(), st.binary(min_size=4, max_size=4)),
    (pa.binary(), st.binary(max_size=5)),
    (pa.binary(16), UUID),
    (pa.int64(), st.integers(-5, 5)),
    (pa.list_(pa.string()), st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)),
    (pa.list_(pa.binary(16)), st.lists(st.just(b"u" * 16), min_size=1, max_size=2)),
    (
        pa.map_(pa.string(), pa.string()),
        st.dictionaries(st.sampled_from(WORDS), st.sampled_from(WORDS)).map(lambda d: list(d.items())),
    ),
    (
        pa.struct([("1", pa.string()), ("2", pa.list_(pa.binary()))]),
        st.fixed_dictionaries({"1": st.sampled_from(WORDS), "2": st.lists(st.binary(min_size=2, max_size=2))}),
    ),
]


def through_ipc(values: pa.Array) -> pa.Array:
    sink = pa.BufferOutputStream()
    table = pa.table({"x": values})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()["x"].combine_chunks()


@given(st.data())
def test_any_values_come_back_by_a_cast(data: st.DataObject) -> None:
    kind, strategy = data.draw(st.sampled_from(KINDS))
    few = data.draw(st.lists(st.none() | strategy, min_size=1, max_size=40))
    start = data.draw(st.integers(0, 50))
    values = pa.array((few * (MANY // len(few) + 2))[: MANY + start], kind).slice(start)

    found = through_ipc(packed(values))
    assert found.cast(kind).equals(values)


def test_what_repeats_becomes_a_dictionary_and_what_has_one_width_loses_its_offsets() -> None:
    noise = random.Random(1)
    sums = pa.array([noise.randbytes(16) for _ in range(MANY)], pa.binary())
    etags = pa.array([value.hex() for value in sums.to_pylist()])
    types = pa.array(["text/plain", "image/png", None, "video/mp4"] * (MANY // 4))
    lists = pa.array([["s1", "s2"], None] * (MANY // 2))

    assert packed(sums).type == pa.binary(16)
    assert packed(etags).type == pa.binary(32)
    assert packed(types).type == pa.dictionary(pa.int8(), pa.string())
    assert packed(lists).type.value_type == pa.dictionary(pa.int8(), pa.string())
    assert packed(types[:100]) is not None and packed(types[:100]).type == pa.string()


@pytest.mark.parametrize("start", [0, 1, 3])
def test_slices_of_lists_and_maps_keep_their_own_entries(start: int) -> None:
    lists = pa.array([["a"], None, ["b", "c"], [], ["d"]]).slice(start)
    maps = pa.array([[("k", 1)], None, [("l", 2), ("m", 3)], [], [("n", 4)]], pa.map_(pa.string(), pa.int64())).slice(start)
    seen: list[int] = []

    def count(values: pa.Array) -> pa.Array:
        seen.append(len(values))
        return values

    assert convert_list(lists, count).to_pylist() == lists.to_pylist()
    assert convert_map(maps, count, count).to_pylist() == maps.to_pylist()
    assert seen == [sum(len(entry or ()) for entry in values.to_pylist()) for values in (lists, maps, maps)]


OBJECTS = core_tables()["objects"]
ROLE = "44444444-4444-4444-8444-444444444444"


def block_of(count: int) -> Any:
    stamps = transaction_table([(START, "w", 0, b"u" * 16)])
    events = [
        (0, n, Event("objects", EventKind.PUT, {"1": b"o" * 16, "2": b"b" * 16, "3": f"{n:06}", "10": "text/plain"}))
        for n in range(count)
    ]
    (block,) = encode_blocks(facts_of_events(OBJECTS, events, stamps), OBJECTS, BlockClass.LIVE)
    return block


def with_rows(block: Any, rows: pa.Table) -> bytes:
    """The block with other rows, sealed as if they were its own."""
    message = log_pb2.Block.FromString(block.data)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    message.rows = sink.getvalue().to_pybytes()
    message.ClearField("checksum")
    return seal_block(message.SerializeToString(deterministic=True))[0]


def test_a_block_is_read_in_the_types_of_its_table() -> None:
    block = block_of(MANY)
    stored = pa.ipc.open_stream(log_pb2.Block.FromString(block.data).rows).read_all()
    found = decode_block(block.data, OBJECTS, "file").rows

    assert pa.types.is_dictionary(stored.schema.field("1").type) and stored.schema.field("3").type == pa.binary(6)
    assert all(found.schema.field(n).type == OBJECTS.storage_schema.field(n).type for n in ("1", "2", "3", "10"))
    assert found["10"].to_pylist() == ["text/plain"] * MANY


def test_values_that_are_none_of_the_columns_type_are_named() -> None:
    block = block_of(MANY)
    stored = pa.ipc.open_stream(log_pb2.Block.FromString(block.data).rows).read_all()
    for values in (pa.array([b"\xff"] * MANY, pa.binary(1)), pa.array([[1]] * MANY)):
        broken = stored.set_column(stored.schema.get_field_index("3"), "3", values)
        with pytest.raises(CorruptionError, match="file"):
            decode_block(with_rows(block, broken), OBJECTS, "file")


@pytest.mark.parametrize("columns", [None, {"3"}, {"3", "_strange"}])
def test_a_fact_column_of_the_future_is_refused_also_where_nobody_asks_for_it(columns: set[str] | None) -> None:
    block = block_of(MANY)
    stored = pa.ipc.open_stream(log_pb2.Block.FromString(block.data).rows).read_all()
    newer = stored.append_column("_strange", pa.array([1] * MANY))
    with pytest.raises(UnsupportedFormat, match="_strange"):
        decode_block(with_rows(block, newer), OBJECTS, "file", columns)


@pytest.fixture(scope="module")
def world() -> World:
    """3,000 objects in a checkpoint: some lists and maps empty, some not, all of few values."""
    world = World()
    writer = world.writer()
    given = [
        obj(
            f"n{n:05}",
            content_length=n,
            content_md5=bytes([n % 256, n // 256]) * 8,
            content_type=["text/plain", "image/png", None][n % 3],
            roles=[ROLE] * (n % 3) or None,
            sharks=["s1", "s2"][: n % 3] or None,
            headers={"a": str(n % 4)} if n % 5 else None,
        )
        for n in range(3_000)
    ]
    world.commit(writer, ("put", "objects", given))
    writer.checkpoint()
    world.commit(writer, ("put", "objects", obj("n00007", roles=[ROLE])))
    return world


def test_one_object_of_a_block_is_shown_as_all_of_them_are(world: World) -> None:
    snapshot = world.snapshot()
    every = {row["name"]: row for row in rows(snapshot)}
    for name in ("n00000", "n00001", "n00006", "n00007", "n00008", "n02999"):
        found = snapshot.get("objects", owner=OWNER, bucket_id=BUCKET, name=name)
        assert found is not None and {key: found[key] for key in every[name]} == every[name]
    page = snapshot.list("objects", owner=OWNER, bucket_id=BUCKET, prefix="n0000").rows
    assert page.to_pylist() == [every[f"n0000{n}"] for n in range(10)]
    assert snapshot.scan("objects", where={"name": prefix("n0001")}).to_arrow().to_pylist() == [
        every[f"n0001{n}"] for n in range(10)
    ]
