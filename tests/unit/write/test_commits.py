"""Commits: one put each, with what was said of it; and whatever is refused, closed or lost commits nothing or once."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import ClosedWriter, InvalidOption, InvalidRows, StoreUnavailable
from bucketcatalog.model.names import writer_id
from bucketcatalog.store.faults import Counting, Failing, LostResponses
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write.transaction import WriteTransaction
from bucketcatalog.write.writer import Writer

from ...kit.world import Clock, World, names, obj, rows


class TestCommitting:
    def test_first_commit_is_revision_zero_and_one_put(self, world: World) -> None:
        store = Counting(world.store)
        writer = World(store).catalog().writer("w", clock=world.clock)
        store.reset()
        with writer.transaction() as tx:
            tx.put("objects", obj("a"))

        assert store.requests == {"put": 1}
        assert tx.committed is not None and (tx.committed.revision, tx.committed.version) == (0, "w@0")
        assert uuid.UUID(tx.committed.uuid).version == 7 and tx.committed.commit_time == world.clock.now

    def test_later_commits_are_one_put_each_also_after_reopening(self, world: World, writer: Writer) -> None:
        for n in range(3):
            assert world.commit(writer, ("put", "objects", obj(str(n)))).revision == n
        writer.close()
        again = world.writer()
        assert world.commit(again, ("put", "objects", obj("3"))).revision == 3
        assert names(world.snapshot()) == ["0", "1", "2", "3"]

    def test_commit_times_rise_while_the_clock_stands_still(self, world: World, writer: Writer) -> None:
        times = []
        for n in range(5):
            with writer.transaction() as tx:
                tx.put("objects", obj(str(n)))
            assert tx.committed is not None
            times.append(tx.committed.commit_time)

        assert times == [world.clock.now + n for n in range(5)]

    def test_a_transaction_without_events_commits_nothing_unless_an_application_numbers_it(
        self, world: World, writer: Writer
    ) -> None:
        kept = [info.name for info in world.store.list("")]
        nothing = pa.table({name: pa.array([], pa.string()) for name in ("owner", "bucket_id", "name")})
        for calls in ([], [("put", [])], [("put", nothing), ("delete", nothing)]):
            with writer.transaction(operation="upload", metadata={"by": "me"}) as tx:
                for method, rows in calls:
                    getattr(tx, method)("objects", rows)
            assert tx.committed is None
        assert [info.name for info in world.store.list("")] == kept

        for revision, version in enumerate((1, 2)):
            assert world.commit(writer, app_id="job", app_version=version).revision == revision
        assert world.snapshot().scan("log").to_arrow()["events"].to_pylist() == [0, 0]
        with writer.transaction(app_id="job", app_version=1) as tx:
            pass
        assert tx.committed is None

    def test_an_exception_in_the_block_commits_nothing(self, world: World, writer: Writer) -> None:
        def fail() -> None:
            with writer.transaction() as tx:
                transactions.append(tx)
                tx.put("objects", obj("a"))
                raise ZeroDivisionError

        transactions: list[WriteTransaction] = []
        with pytest.raises(ZeroDivisionError):
            fail()
        (tx,) = transactions
        assert tx.committed is None and list(world.store.list("")) == []
        assert world.commit(writer, ("put", "objects", obj("b"))).revision == 0
        assert names(world.snapshot()) == ["b"]

    def test_rows_that_were_refused_leave_the_others_of_the_transaction_alone(self, world: World, writer: Writer) -> None:
        with writer.transaction() as tx:
            tx.put("objects", obj("a"))
            with pytest.raises(InvalidRows):
                tx.put("objects", [obj("b"), obj("c", strange=1)])
            tx.put("objects", obj("d"))

        assert names(world.snapshot()) == ["a", "d"]

    def test_operation_metadata_and_metrics_are_kept(self, world: World, writer: Writer) -> None:
        with writer.transaction(operation="upload", metadata={"job": "7", "é": ""}) as tx:
            tx.put("objects", obj("a"))
            tx.metrics["rows"] = 1

        (entry,) = rows(world.snapshot(), "log")
        assert entry["operation"] == "upload" and entry["metadata"] == [("job", "7"), ("é", "")]

    @pytest.mark.parametrize(
        "options",
        [
            {"operation": 5},
            {"operation": "\ud800"},
            {"metadata": {"a": 1}},
            {"metadata": {1: "a"}},
            {"metadata": {"a": "\udfff"}},
            {"metadata": "text"},
            {"app_id": "x"},
            {"app_version": 1},
            {"app_id": 5, "app_version": 1},
            {"app_id": "x", "app_version": "1"},
            {"app_id": "x", "app_version": 2**63},
            {"app_id": "\ud800", "app_version": 1},
        ],
        ids=str,
    )
    def test_options_that_do_not_fit_are_refused(self, world: World, writer: Writer, options: dict[str, Any]) -> None:
        with pytest.raises(InvalidOption), writer.transaction(**options) as tx:
            tx.put("objects", obj("a"))
        assert list(world.store.list("")) == []


class TestClosed:
    def test_a_closed_writer_takes_nothing(self, world: World, writer: Writer) -> None:
        writer.close()
        writer.close()

        for attempt in (writer.transaction, writer.checkpoint):
            with pytest.raises(ClosedWriter):
                attempt()

    def test_a_transaction_open_when_its_writer_closes_commits_nothing(self, world: World, writer: Writer) -> None:
        tx = writer.transaction()
        tx.__enter__()
        tx.put("objects", obj("a"))
        writer.close()
        with pytest.raises(ClosedWriter):
            tx.__exit__(None, None, None)
        assert list(world.store.list("")) == []

    def test_a_transaction_outside_of_with_takes_nothing(self, world: World, writer: Writer) -> None:
        tx = writer.transaction()
        for method in (tx.put, tx.update, tx.delete, tx.purge):
            with pytest.raises(ClosedWriter) as error:
                method("objects", obj("a"))
            assert "with writer.transaction()" in error.value.next_step

    def test_a_transaction_is_entered_once(self, world: World, writer: Writer) -> None:
        with writer.transaction() as tx:
            tx.put("objects", obj("a"))
            with pytest.raises(ClosedWriter):
                tx.__enter__()
            tx.put("objects", obj("b"))
        with pytest.raises(ClosedWriter):
            tx.__enter__()
        assert names(world.snapshot()) == ["a", "b"]
        assert world.snapshot().scan("log").to_arrow().num_rows == 1

    def test_an_ended_transaction_takes_nothing(self, world: World, writer: Writer) -> None:
        with writer.transaction() as tx:
            pass
        for method in (tx.put, tx.update, tx.delete, tx.purge):
            with pytest.raises(ClosedWriter):
                method("objects", obj("a"))

    def test_a_commit_that_the_store_refused_may_be_tried_again(self, world: World) -> None:
        failing = Failing(world.store, at=0, error=StoreUnavailable("down"), methods=("put",))
        writer = World(failing).catalog().writer("w", clock=world.clock)
        with pytest.raises(StoreUnavailable), writer.transaction() as tx:
            tx.put("objects", obj("a"))
        assert tx.committed is None and list(world.store.list("")) == []
        assert world.commit(writer, ("put", "objects", obj("b"))).revision == 0
        assert names(world.snapshot()) == ["b"]

    @pytest.mark.parametrize("landed", [False, True])
    def test_a_lost_response_is_met_with_the_same_bytes_again(
        self, world: World, landed: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("bucketcatalog.clock.sleep", lambda _: None)
        store = Counting(LostResponses(world.store, landed=landed, puts=[0, 1]))
        writer = World(store).catalog().writer("w", clock=world.clock)
        committed = world.commit(writer, ("put", "objects", obj("a")))

        assert committed.revision == 0 and store.requests["put"] == 3
        assert len({name for method, name in store.names if method == "put"}) == 1
        assert names(world.snapshot()) == ["a"] and len(rows(world.snapshot(), "log")) == 1


def test_writers_keep_their_name_and_clock() -> None:
    clock = Clock()
    store = MemoryStore(clock=clock)
    world = World(store)
    world.clock = clock
    with world.writer("node-1") as writer:
        assert writer.id == writer_id("node-1")
        assert world.commit(writer, ("put", "objects", obj("a"))).commit_time == clock.now
