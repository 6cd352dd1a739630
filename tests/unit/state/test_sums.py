"""Sums over live rows by group: what they are after any event, what they cost, and what tables may declare."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, between
from bucketcatalog.cli import run
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.log.blocks import read_block
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.state.side_runs import shape_of_blocks
from bucketcatalog.state.sums import SumRun, sum_runs
from bucketcatalog.v1 import log_pb2

from ...kit.fuzzing import streams
from ...kit.fuzzing.parts import block_bytes, closed, opened
from ...kit.world import BUCKET, OWNER, World, counted, messages, obj, rows

TABLE = """
syntax = "proto3";
import "bucketcatalog/v1/options.proto";
message Reading {
  option (bucketcatalog.v1.table) = {
    name: "lab.readings" key: "room" key: "at"
    sums: {name: "readings"}
    sums: {name: "per room" field: "count" group: "room"}
    sums: {name: "per kind" field: "count" group: "kind"}
  };
  bytes room = 1;
  uint32 at = 2;
  optional int32 count = 3;
  string kind = 4;
}
"""


def sums(snapshot: Snapshot, table: str = "objects") -> dict[tuple[str, ...], int]:
    found = snapshot.scan("sums", where={"table": table}).to_arrow().to_pylist()
    return {(row["name"], *dict(row["group"]).values()): row["value"] for row in found}


@pytest.fixture
def world() -> World:
    return World.counting()


def test_sums_follow_every_event_and_every_checkpoint(world: World) -> None:
    with world.writer() as writer:
        steps: list[tuple[Any, ...]] = [
            ("put", "objects", [obj(f"n{n:04}", content_length=n) for n in range(3_000)]),
            ("put", "objects", [obj(f"n{n:04}", content_length=0) for n in range(0, 3_000, 100)]),
            ("delete", "objects", [obj(f"n{n:04}") for n in range(50, 3_000, 100)]),
            ("put", "objects", [obj("n0050", content_length=7), obj("new")]),
        ]
        for step in steps:
            world.commit(writer, step)
            for _ in range(2):
                snapshot = world.snapshot()
                lengths = [row["content_length"] or 0 for row in rows(snapshot)]
                group = (OWNER, BUCKET)
                assert sums(snapshot) == {("objects", *group): len(lengths), ("bytes", *group): sum(lengths)}
                writer.checkpoint()
        world.commit(
            writer, ("delete", "objects", [{k: row[k] for k in ("owner", "bucket_id", "name")} for row in rows(snapshot)])
        )
        assert sums(world.snapshot()) == {}


def test_kept_sums_are_read_instead_of_rows(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", pa.Table.from_pylist([obj(f"n{n:06}", content_length=1) for n in range(60_000)])))
        before, found = counted(world, lambda: sums(world.snapshot()))
        writer.checkpoint()
        after, same = counted(world, lambda: sums(world.snapshot()))
        assert found == same == {("objects", OWNER, BUCKET): 60_000, ("bytes", OWNER, BUCKET): 60_000}
        assert before == 5  # the index of a segment of events, and its four blocks
        assert after == 0  # the sums lie in the checkpoint, and nothing over its rows

        world.commit(writer, ("put", "objects", [obj(f"n{n:06}", content_length=3) for n in range(10)]))
        writer.checkpoint()
        near, found = counted(world, lambda: sums(world.snapshot()))
        assert found["bytes", OWNER, BUCKET] == 60_020
        assert near < 12  # only the blocks of keys that something lies over


def test_sums_of_users_tables_have_groups_of_any_kind(world: World) -> None:
    catalog = Catalog(world.store)
    catalog.register(messages(TABLE)["Reading"])
    given = [
        {"room": b"\x00\xff", "at": 1, "count": 5, "kind": "a"},
        {"room": b"\x00\xff", "at": 2, "count": -7},
        {"room": b"", "at": 3, "kind": "a"},
    ]
    expected = {
        ("readings",): 3,
        ("per room", ""): 0,
        ("per room", "00ff"): -2,
        ("per kind", ""): -7,
        ("per kind", "a"): 5,
    }
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "lab.readings", given))
        assert sums(world.snapshot(), "lab.readings") == expected
        writer.checkpoint()
        assert sums(world.snapshot(), "lab.readings") == expected
        world.commit(writer, ("delete", "lab.readings", {"room": b"", "at": 3}))
        del expected["per room", ""]
        assert sums(world.snapshot(), "lab.readings") == expected | {("readings",): 2}


def test_a_group_may_be_called_like_what_is_kept_beside_it(world: World) -> None:
    catalog = Catalog(world.store)
    declared = TABLE.replace("bytes room", "bytes rows").replace("uint32 at", "uint32 value")
    declared = declared.replace('"room"', '"rows"').replace('"at"', '"value"')
    catalog.register(messages(declared.replace('group: "rows"', 'group: "rows" group: "value"'))["Reading"])
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "lab.readings", [{"rows": b"a", "value": n % 2, "count": n} for n in range(4)]))
        before = sums(world.snapshot(), "lab.readings")
        assert before["per room", "61", "1"] == 3
        writer.checkpoint()
        writer.checkpoint(full=True)

    assert sums(world.snapshot(), "lab.readings") == before


def test_a_sum_that_is_declared_anew_is_not_answered_from_what_was_kept(world: World) -> None:
    catalog = Catalog(world.store)
    catalog.register(messages(TABLE)["Reading"])
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "lab.readings", [{"room": b"a", "at": n, "count": n} for n in range(4)]))
        writer.checkpoint()
    other = Catalog(world.store)
    other.register(messages(TABLE.replace('field: "count" group: "room"', 'field: "at" group: "room" group: "at"'))["Reading"])
    with world.writer("maintainer-1", catalog=other) as writer:
        world.commit(writer, ("put", "lab.readings", {"room": b"b", "at": 9, "count": 1}))
    found = sums(world.snapshot(), "lab.readings")
    assert {key: value for key, value in found.items() if key[0] == "per room"} == {
        **{("per room", "61", str(n)): n for n in range(4)},
        ("per room", "62", "9"): 9,
    }


def test_sums_of_several_writers_checkpoints_count_each_row_once(world: World) -> None:
    with world.writer("a") as one, world.writer("b") as two:
        for writer in (one, two):
            world.commit(writer, ("put", "objects", [obj(f"n{n:03}", content_length=1) for n in range(2_000)]))
            writer.checkpoint()
    assert sums(world.snapshot()) == {("objects", OWNER, BUCKET): 1_000 * 2, ("bytes", OWNER, BUCKET): 2_000}


EXTREME = """
syntax = "proto3";
import "bucketcatalog/v1/options.proto";
message Extreme {
  option (bucketcatalog.v1.table) = {
    name: "lab.extremes" key: "room" key: "at"
    SUMS
  };
  string room = 1;
  uint32 at = 2;
  COLUMNS
}
"""
INTEGERS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), (-(1 << 31), -1, 0, 1, (1 << 31) - 1)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), (-(1 << 63), -1, 0, 1, (1 << 63) - 1)),
    **dict.fromkeys(("uint32", "fixed32"), (0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)),
    **dict.fromkeys(("uint64", "fixed64"), (0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)),
}


def extremes(store: World) -> Catalog:
    """A catalog with a table that sums every kind of integer, with and without presence, by room and over all."""
    kinds = [(f"{presence}{kind}", f"{presence} {kind}") for kind in INTEGERS for presence in ("", "optional")]
    columns = [f"{kind} c_{name} = {number};" for number, (name, kind) in enumerate(kinds, start=3)]
    sums = [
        f'sums: {{name: "{name}" field: "c_{name}"}} sums: {{name: "room {name}" field: "c_{name}" group: "room"}}'
        for name, _ in kinds
    ]
    found = Catalog(store.store)
    found.register(messages(EXTREME.replace("COLUMNS", "\n".join(columns)).replace("SUMS", "\n".join(sums)))["Extreme"])
    return found


def expected_sums(kept: list[dict[str, Any]]) -> dict[tuple[str, ...], int]:
    found: dict[tuple[str, ...], int] = defaultdict(int)
    for row in kept:
        for name in (name for kind in INTEGERS for name in (kind, f"optional{kind}")):
            value = row.get(f"c_{name}") or 0
            found[(name,)] += value
            found[(f"room {name}", row["room"])] += value
    return dict(found)


def test_sums_of_any_integers_are_exact_whatever_they_add_up_to(world: World) -> None:
    with world.writer(catalog=extremes(world)) as writer:
        kept: dict[tuple[str, int], dict[str, Any]] = {}
        for at in range(40):
            values = {
                f"c_{p}{kind}": of[(at + step) % 5] for step, p in enumerate(("", "optional")) for kind, of in INTEGERS.items()
            }
            kept["ab"[at % 2], at] = {"room": "ab"[at % 2], "at": at, **values}
        for at in range(40, 60):  # what only grows, and what only shrinks
            kept["c", at] = {
                "room": "c",
                "at": at,
                **{f"c_{p}{kind}": of[-1] for p in ("", "optional") for kind, of in INTEGERS.items()},
            }
            kept["d", at] = {
                "room": "d",
                "at": at,
                **{f"c_{p}{kind}": of[0] for p in ("", "optional") for kind, of in INTEGERS.items()},
            }
        world.commit(writer, ("put", "lab.extremes", list(kept.values())))
        for at in (0, 41, 43):
            expected = expected_sums(list(kept.values()))
            assert any(abs(value) >= 1 << 64 for value in expected.values())
            assert sums(world.snapshot(), "lab.extremes") == expected
            writer.checkpoint()
            assert sums(world.snapshot(), "lab.extremes") == expected
            over = {"room": "c", "at": at + 1, "c_uint64": (1 << 64) - 2, "c_optionalint64": -(1 << 63)}
            gone = next(key for key in kept if key[1] == at)
            del kept[gone]
            kept["c", at + 1] = over
            gone_row = {"room": gone[0], "at": gone[1]}
            world.commit(writer, ("delete", "lab.extremes", gone_row), ("put", "lab.extremes", over))
        assert sums(world.snapshot(), "lab.extremes") == expected_sums(list(kept.values()))
    assert [f for f in world.catalog().verify(deep=True) if f.severity.value == "error"] == []


def test_a_database_with_a_sum_beyond_64_bits_is_maintained_and_copied(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "lake")
    catalog.register(messages(EXTREME.replace("COLUMNS", "uint64 n = 3;").replace("SUMS", SUMS))["Extreme"])
    with catalog.writer("w") as writer:
        for at in range(3):
            with writer.transaction() as tx:
                tx.put("lab.extremes", {"room": "a", "at": at, "n": (1 << 64) - 1})
        writer.checkpoint()
    catalog.prune("0s", grace="0s", dry_run=False, force=True)
    catalog.clone(tmp_path / "copy")
    for url in (tmp_path / "lake", tmp_path / "copy"):
        found = Catalog(url).snapshot()
        assert sums(found, "lab.extremes") == {("n", "a"): 3 * ((1 << 64) - 1)}
        assert found.scan("sums", where={"value": between(1 << 65)}).to_arrow().num_rows == 1
        assert [f for f in Catalog(url).verify(deep=True) if f.severity.value == "error"] == []


SUMS = 'sums: {name: "n" field: "n" group: "room"}'


@pytest.mark.parametrize("value", [0, 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_blocks_hold_a_sum_as_the_specification_says(world: World, value: int) -> None:
    catalog = Catalog(world.store)
    columns = "optional uint64 n = 3; optional int64 m = 4;"
    declared = SUMS + ' sums: {name: "m" field: "m" group: "room"}'
    catalog.register(messages(EXTREME.replace("COLUMNS", columns).replace("SUMS", declared))["Extreme"])
    with world.writer(catalog=catalog) as writer:
        for _ in range(2):
            rows = [{"room": "a", "at": at, "n": value, "m": -min(value, 1 << 63)} for at in range(3)]
            world.commit(writer, ("put", "lab.extremes", rows))
            writer.checkpoint(full=True)
    state = world.snapshot().state("lab.extremes")
    for total, expected in zip(state.table.sums, (3 * value, -3 * min(value, 1 << 63)), strict=True):
        (run,) = state.beside(SumRun(state.table, total).side)
        (place,) = run.places
        shape = shape_of_blocks(state.table, place.header.table)
        assert shape is not None
        block = read_block(world.store, place, shape).rows
        halves = [block[name].to_pylist() if name in block.column_names else [None] for name in ("536870911", "536870908")]
        assert halves[0][0] + ((halves[1][0] or 0) << 64) == expected
        assert (halves[1] == [None]) is (-(1 << 63) <= expected < 1 << 63)


def test_commands_show_a_sum_as_the_exact_integer(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with Catalog(tmp_path).writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", [obj(f"n{n}", content_length=(1 << 63) - 1) for n in range(3)])
    total = str(3 * ((1 << 63) - 1)).encode()
    for command in (["sums", str(tmp_path), "--json"], ["sums", str(tmp_path)], ["info", str(tmp_path), "--json"]):
        assert run(command) == 0
        assert total in capsysbinary.readouterr().out


def test_a_group_without_presence_is_one_group_whether_its_zero_is_said_or_not(world: World) -> None:
    catalog = Catalog(world.store)
    catalog.register(messages(TABLE)["Reading"])
    with world.writer(catalog=catalog) as writer:
        said = pa.table({"room": [b"a"], "at": pa.array([1], pa.uint32()), "count": pa.array([5], pa.int32()), "kind": [""]})
        world.commit(writer, ("put", "lab.readings", said))
        world.commit(writer, ("put", "lab.readings", {"room": b"a", "at": 2, "count": 6}))
        found = world.snapshot().scan("sums", where={"name": "per kind"}).to_arrow()["value"].to_pylist()
        assert found == [11]


def test_rows_without_a_value_make_a_group_of_their_own(world: World) -> None:
    columns = "optional bytes raw = 3; optional string text = 4; optional int32 n = 5;"
    groups = [f'sums: {{name: "{name}" group: "{name}"}}' for name in ("raw", "text", "n")]
    catalog = Catalog(world.store)
    catalog.register(messages(EXTREME.replace("COLUMNS", columns).replace("SUMS", " ".join(groups)))["Extreme"])
    with world.writer(catalog=catalog) as writer:
        given = [
            {"room": "a", "at": 0},
            {"room": "a", "at": 1, "raw": b"", "text": "", "n": 0},
            {"room": "a", "at": 2, "raw": b"\x0f"},
        ]
        world.commit(writer, ("put", "lab.extremes", given))
        expected: dict[Any, int] = {("raw", None): 1, ("raw", ""): 1, ("raw", "0f"): 1}
        expected |= {("text", None): 2, ("text", ""): 1, ("n", None): 2, ("n", "0"): 1}
        assert sums(world.snapshot(), "lab.extremes") == expected


def test_bytes_of_objects_beyond_64_bits_are_told_exactly(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(f"n{n}", content_length=(1 << 63) - 1) for n in range(3)]))
        for _ in range(2):
            assert world.catalog().info().table("objects").sums["bytes"] == 3 * ((1 << 63) - 1)
            writer.checkpoint()


def test_summing_up_keeps_nothing_of_the_rows(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(f"{n:05}", content_length=n) for n in range(2_000)]))
        writer.checkpoint()
    state = world.snapshot().state("objects")
    (place,) = state.lowest_places({BlockClass.LIVE})
    facts = read_block(state.blocks.store, place, state.table)
    for each in sum_runs(state.table):
        keeping = each.keeping()
        list(keeping.add(facts))
        kept = sum(part.get_total_buffer_size() for part in keeping._sum._parts)
        assert 0 < kept < 1_000


@pytest.mark.parametrize("number", ["#rows", "#value"])
def test_sums_that_lack_a_number_are_no_sums_and_told(world: World, number: str) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(f"n{n}", content_length=n) for n in range(300)]))
        writer.checkpoint()
    expected = sums(world.snapshot())
    (name,) = (info.name for info in world.store.list("w/") if info.name.endswith(".ckpt"))
    message = opened(name, world.store.get(name))
    for kept in (kept for kept in message.runs if kept.run.purpose == log_pb2.RUN_PURPOSE_SUMS):
        block = log_pb2.Block.FromString(kept.blocks[0])
        lacking = streams.read(block.rows)
        assert lacking is not None
        nothing = pa.nulls(len(lacking), lacking.schema.field(number).type)
        block.rows = streams.written(lacking.set_column(lacking.column_names.index(number), number, nothing), "zstd")
        kept.blocks[0] = block_bytes(block)
    world.store.delete(name)
    world.store.put(name, closed(message))
    assert sums(world.snapshot()) == expected, "what is not kept is found in the rows"
    told = [finding for finding in world.catalog().verify(deep=True) if finding.severity is Severity.ERROR]
    assert told and {(finding.code, finding.file) for finding in told} <= {("DIFFERENT_STATE", name), ("WRONG_BLOCK", name)}
