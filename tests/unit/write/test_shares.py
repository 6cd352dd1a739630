"""Shares: several processes write the rows of one transaction, and one commit names them; nothing else is any different."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import CorruptionError, IncompatibleTable, InvalidRows
from bucketcatalog.format.sealing import SEQUENCES
from bucketcatalog.format.transactions import decode_transaction
from bucketcatalog.model.events import EventKind
from bucketcatalog.v1 import log_pb2
from bucketcatalog.write import shares
from bucketcatalog.write.shares import ShareTask, share_task
from bucketcatalog.write.staging import WrittenShare

from ...kit.world import OWNER, World, bucket, names, obj, rows, stored


def begun(world: World, kind: EventKind = EventKind.PUT, table: str = "objects") -> ShareTask:
    """A task as another process gets it."""
    task: ShareTask = pickle.loads(pickle.dumps(share_task(world.catalog().database("default"), "w", table, kind)))
    return task


def written(world: World, task: ShareTask, given: list[dict[str, Any]], size: int = 100) -> WrittenShare:
    """A share of these rows, which come in batches."""
    batches = pa.Table.from_pylist(given).to_batches(max_chunksize=size)
    share: WrittenShare = pickle.loads(pickle.dumps(task.write(world.store, batches)))
    return share


def commit(world: World, *done: WrittenShare) -> None:
    """One commit of them, a second later, as ``World.commit`` makes one."""
    world.clock.tick()
    with world.writer().transaction() as tx:
        tx.adopt(done)


def objects(*numbers: int, **columns: Any) -> list[dict[str, Any]]:
    return [obj(f"{number:05}", **columns) for number in numbers]


def test_rows_of_several_processes_are_one_transaction() -> None:
    world, alone = World(), World()
    task = begun(world)
    given = [objects(*range(part, 3_000, 3), content_length=part) for part in range(3)]
    commit(world, *(written(world, task, part) for part in given))
    alone.commit(alone.writer(), ("put", "objects", [row for part in given for row in part]))

    assert world.snapshot().scan("log").to_arrow().num_rows == 1
    assert rows(world.snapshot(), "objects") == rows(alone.snapshot(), "objects")
    versions = world.snapshot().scan("objects", columns=["_version"]).to_arrow()["_version"].to_pylist()
    assert {int(version.partition(":")[2]) for version in versions} == set(range(3_000))
    before = rows(world.snapshot(), "objects", columns=["name", "_version"])
    events = world.catalog().changes().to_arrow().select(["name", "_version", "_change_type"]).to_pylist()
    with world.writer("compactor-x") as compactor:
        compactor.checkpoint(scope="all", full=True)
    assert rows(world.snapshot(), "objects", columns=["name", "_version"]) == before
    assert {(event["name"], event["_version"]) for event in events} == {(row["name"], row["_version"]) for row in before}
    assert not list(world.catalog().verify(deep=True))


@pytest.mark.parametrize("together", [False, True], ids=["in two transactions", "in one"])
def test_a_share_that_is_committed_twice_is_put_twice(together: bool) -> None:
    world = World()
    share = written(world, begun(world), objects(*range(3), content_length=1))
    for done in ([share, share],) if together else ([share], [share]):
        commit(world, *done)
    changes = world.catalog().changes().to_arrow()
    assert len(changes) == 6
    columns = ["name", "_version", "_revision", "created"]
    for _ in range(2):
        live = rows(world.snapshot(), "objects", columns=columns)
        assert [row["_version"] for row in live] == changes["_version"].to_pylist()[3:]
        assert world.snapshot().scan("deleted_objects").count() == 3
        asked = [{key: row[key] for key in ("owner", "bucket_id", "name")} for row in objects(*range(3))]
        assert world.snapshot().get_all("objects", asked, columns=columns) == live
        with world.writer("compactor-x") as compactor:
            compactor.checkpoint(scope="all", full=True)


def test_events_of_the_transaction_itself_come_first_and_shares_in_their_order() -> None:
    world = World()
    task = begun(world)
    first, second = (written(world, task, objects(1, 2, content_length=length)) for length in (10, 20))
    with world.writer().transaction() as tx:
        tx.put("objects", objects(1, 3, content_length=5))
        tx.adopt([second, first])

    assert {row["name"]: row["content_length"] for row in rows(world.snapshot(), "objects")} == {
        "00001": 10,
        "00002": 10,
        "00003": 5,
    }
    (name,) = stored(world, ".txn")
    transaction = decode_transaction(world.store.get(name), name)
    assert not transaction.actions and len(transaction.blocks) == 1
    assert [segment.first_sequence for segment in transaction.segments] == [2, 4]
    assert transaction.events == 6


def test_an_older_reader_refuses_it_by_the_name_of_the_feature() -> None:
    world = World()
    task = begun(world)
    commit(world, written(world, task, objects(1)), written(world, task, objects(2)))
    (name,) = stored(world, ".txn")

    assert list(log_pb2.Transaction.FromString(world.store.get(name)).required_features) == [SEQUENCES]


def test_rows_in_any_order_are_sorted_portion_by_portion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "PORTION_ROWS", 300)
    world = World()
    done = written(world, begun(world), objects(*reversed(range(1_000))))
    commit(world, done)

    assert len(done.segments) == 4 and done.events == 1_000
    assert names(world.snapshot()) == [f"{number:05}" for number in range(1_000)]


def test_what_no_commit_names_is_part_of_nothing() -> None:
    world = World()
    task = begun(world)
    twice = [written(world, task, objects(1, 2)) for _ in range(2)]
    written(world, task, objects(9))
    commit(world, twice[1])

    assert names(world.snapshot()) == ["00001", "00002"] and len(stored(world, ".parquet")) == 3
    assert {finding.code for finding in world.catalog().verify()} <= {"UNREFERENCED_SEGMENT"}


@pytest.mark.parametrize("kind", [EventKind.UPDATE, EventKind.DELETE, EventKind.PURGE])
def test_shares_mean_versions_as_calls_do(kind: EventKind) -> None:
    world, alone = World(), World()
    for each in (world, alone):
        each.commit(each.writer(), ("put", "objects", objects(*range(20))))
        if kind is EventKind.PURGE:
            each.commit(
                each.writer(),
                ("delete", "objects", [{k: row[k] for k in ("owner", "bucket_id", "name")} for row in objects(1, 5)]),
            )

    def wanted(each: World) -> list[dict[str, Any]]:
        table = "deleted_objects" if kind is EventKind.PURGE else "objects"
        read = each.snapshot().scan(table, columns=["owner", "bucket_id", "name", "_version"]).to_arrow().to_pylist()
        found = [row for row in read if row["name"] in ("00001", "00005")]
        return [row | {"content_length": 7} for row in found] if kind is EventKind.UPDATE else found

    task = begun(world, kind)
    commit(world, *(written(world, task, [row]) for row in wanted(world)))
    alone.commit(alone.writer(), (kind.name.lower(), "objects", wanted(alone)))

    for table in ("objects", "deleted_objects"):
        assert rows(world.snapshot(), table) == rows(alone.snapshot(), table)


def test_ids_that_are_derived_are_looked_up_in_the_cut_in_which_the_task_was_made() -> None:
    world = World()
    row = bucket("b")
    world.commit(world.writer(), ("put", "buckets", row))
    world.commit(world.writer(), ("delete", "buckets", {"owner": OWNER, "name": "b"}))
    task = begun(world, table="buckets")
    commit(world, written(world, task, [{"owner": OWNER, "name": "b"}]))
    alone = World()
    alone.commit(alone.writer(), ("put", "buckets", row))
    alone.commit(alone.writer(), ("delete", "buckets", {"owner": OWNER, "name": "b"}))
    alone.commit(alone.writer(), ("put", "buckets", {"owner": OWNER, "name": "b"}))

    assert [row["id"] for row in rows(world.snapshot(), "buckets")] == [row["id"] for row in rows(alone.snapshot(), "buckets")]


def test_rows_that_do_not_fit_are_refused_where_they_are_written() -> None:
    world = World()
    with pytest.raises(InvalidRows, match="nope"):
        written(world, begun(world), [obj("a") | {"nope": 1}])
    assert not stored(world, ".parquet")


def test_a_table_that_was_declared_otherwise_meanwhile_is_refused() -> None:
    world = World()
    done = written(world, begun(world), objects(1))
    other = replace(done, table=replace(done.table, definition=done.table.definition + b"\x00"))
    with pytest.raises(IncompatibleTable, match="declared otherwise while rows were written"), world.writer().transaction() as tx:
        tx.adopt([other])
    assert not stored(world, ".txn")


def test_numbers_beyond_what_there_are_make_no_transaction() -> None:
    world = World()
    task = begun(world)
    done = written(world, task, objects(1))
    with pytest.raises(InvalidRows, match="2\\^31 events"):
        commit(world, replace(done, events=(1 << 31) - 1), done)
    claims = replace(done, segments=tuple(replace(each, first_sequence=0) for each in done.segments))
    with world.writer().transaction() as tx:
        tx.adopt([replace(done, events=(1 << 31) - 2), claims])
    assert names(world.snapshot()) == ["00001"]


def test_a_segment_whose_numbers_are_no_numbers_when_shifted_is_corrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    done = written(world, begun(world), objects(1, 2))
    monkeypatch.setattr("bucketcatalog.format.bounds.limits.RUN_ROWS", 1 << 32)
    with world.writer().transaction() as tx:
        tx.adopt([replace(done, events=(1 << 31) - 1, segments=()), replace(done, events=0)])

    with pytest.raises(CorruptionError, match="numbered from 2,147,483,647 on have numbers beyond 2,147,483,647"):
        rows(world.snapshot(), "objects", columns=["_version"])
