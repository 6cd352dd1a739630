"""Merges in tasks: disjoint, complete and bounded; whoever does them, however often, the checkpoint says the same and nothing is lost."""

from __future__ import annotations

import itertools
import pickle
import random
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import CheckpointTooLate, ClosedWriter, OutcomeUnknown, StoreError
from bucketcatalog.checkpoint import merge, plan
from bucketcatalog.checkpoint.merge import Merged, MergeTask, run_task
from bucketcatalog.format.checkpoints import decode_checkpoint
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.format.sealing import RUNS
from bucketcatalog.format.segments import ROW_GROUP_ROWS
from bucketcatalog.log import segments
from bucketcatalog.log.blocks import read_block
from bucketcatalog.model.keys import KeyRange
from bucketcatalog.state.contents import Contents
from bucketcatalog.state.plan import SLICE_ROWS, Part, Slice
from bucketcatalog.state.read import read_slice
from bucketcatalog.store import Store
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.write.writer import Writer

from ...kit.world import BUCKET, HOUR, OWNER, World, bucket, names, obj, rows, version


@dataclass
class Elsewhere:
    """Does tasks as executors do: each from its pickle, in any order, ``times`` times over."""

    store: Store
    most: int = 8
    times: int = 1
    tasks: list[MergeTask] = field(default_factory=list)

    def run(self, tasks: Sequence[MergeTask]) -> list[Merged]:
        self.tasks = list(tasks)
        shuffled = random.Random(1).sample(self.tasks, len(self.tasks))
        for _ in range(self.times - 1):
            for task in shuffled:
                run_task(self.store, pickle.loads(pickle.dumps(task)))
        return [pickle.loads(pickle.dumps(run_task(self.store, pickle.loads(pickle.dumps(task))))) for task in shuffled]


def table(numbers: Sequence[int], length: int = 0) -> pa.Table:
    count = len(numbers)
    return pa.table(
        {
            "owner": [OWNER] * count,
            "bucket_id": [BUCKET] * count,
            "name": [f"{number:09}" for number in numbers],
            "content_length": [number + length for number in numbers],
        }
    )


def filled(world: World, writer: Writer, many: int = 40_000) -> None:
    """Live rows, tombstones, stubs and a second table, in blocks of events and inline."""
    world.commit(writer, ("put", "objects", table(range(many))), ("put", "buckets", bucket("b")))
    world.commit(writer, ("put", "objects", table(range(0, many, 3), 1)))
    world.commit(writer, ("delete", "objects", table(range(0, 2 * many, 7)).select(["owner", "bucket_id", "name"])))
    world.commit(
        writer, ("put", "objects", [obj(f"{number:09}", content_length=1 << 40) for number in range(0, many, many // 50)])
    )
    world.commit(writer, ("delete", "buckets", bucket("none")))


def answers(world: World) -> list[Any]:
    snapshot = world.snapshot()
    return [rows(snapshot, name) for name in ("objects", "deleted_objects", "buckets", "conflicts", "sums")]


def contents(world: World) -> Contents:
    snapshot = world.snapshot()
    return Contents(snapshot.files, snapshot.view)


def ranges(task: MergeTask) -> Iterator[tuple[str, Slice]]:
    for part in task.parts:
        for packed in part.share.slices:
            yield part.table.name, packed.slice


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks and slices of a few thousand rows, as larger tables have larger ones."""
    monkeypatch.setattr(merge, "MERGE_SLICE_ROWS", 4_096)
    monkeypatch.setattr(merge, "FEWEST_ROWS", 4_096)


def test_tasks_cover_every_key_once_in_pieces_of_bounded_size(world: World, small_tasks: None) -> None:
    with world.writer() as writer:
        filled(world, writer, 200_000)
        workers = Elsewhere(world.store, most=5)
        writer.checkpoint(workers=workers)

    assert len(workers.tasks) == 5
    by_table: dict[str, list[KeyRange]] = {}
    for task in workers.tasks:
        for name, slice_ in ranges(task):
            by_table.setdefault(name, []).append(slice_.keys)
            assert slice_.rows <= 3 * ROW_GROUP_ROWS  # a block of each large transaction
    for found in by_table.values():
        assert found[0].start == b"" and found[-1].stop is None
        assert all(one.stop == two.start for one, two in itertools.pairwise(found))
    weights = [task.rows for task in workers.tasks]
    assert max(weights) < 2 * sum(weights) / len(weights)


@pytest.mark.parametrize("most", [1, 3, 64])
def test_however_many_tasks_the_state_is_the_same(world: World, small_tasks: None, most: int) -> None:
    with world.writer() as writer:
        filled(world, writer)
        before = answers(world)
        workers = Elsewhere(world.store, most=most)
        result = writer.checkpoint(workers=workers)

    assert result is not None and result.tasks == len(workers.tasks)
    assert (len(workers.tasks) > 1) == (most > 1)
    assert world.snapshot().view.tail == ()
    assert answers(world) == before


def test_blocks_of_a_class_are_in_order_over_the_segments_and_do_not_overlap(world: World, small_tasks: None) -> None:
    with world.writer() as writer:
        filled(world, writer)
        writer.checkpoint(workers=Elsewhere(world.store))
    (levels,) = contents(world).state("objects").levels()

    assert not levels.upper and len(levels.lowest) > 6
    for kind in {run.block_class for run in levels.lowest}:
        runs = sorted((run for run in levels.lowest if run.block_class is kind), key=lambda run: run.places[0].header.first_key)
        places = [place for run in runs for place in run.places]
        assert all(one.header.last_key < two.header.first_key for one, two in itertools.pairwise(places))


def test_few_rows_of_several_tables_are_one_task_and_one_segment(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("a")), ("put", "buckets", bucket("b")))
        workers = Elsewhere(world.store)
        result = writer.checkpoint(workers=workers)

    assert result is not None and (result.tasks, result.segments) == (1, 1)
    assert [part.table.name for part in workers.tasks[0].parts] == ["buckets", "objects"]


def test_a_task_carries_no_rows_of_the_tail_but_its_own(world: World, small_tasks: None) -> None:
    with world.writer() as writer:
        for start in range(0, 30_000, 5_000):
            world.commit(writer, ("put", "objects", table(range(start, start + 5_000))))
        for start in range(0, 30_000, 300):
            etags = ((number, random.Random(number).randbytes(200).hex()) for number in range(start, start + 60))
            world.commit(writer, ("put", "objects", [obj(f"{number:09}", etag=etag) for number, etag in etags]))
        workers = Elsewhere(world.store, most=5)
        writer.checkpoint(workers=workers)
    sizes = [len(pickle.dumps(task)) for task in workers.tasks]

    assert len(sizes) == 5
    assert max(sizes) < sum(sizes) / 2


def test_tasks_that_run_twice_leave_segments_that_nothing_refers_to(world: World, small_tasks: None) -> None:
    with world.writer() as writer:
        filled(world, writer)
        before = answers(world)
        result = writer.checkpoint(workers=Elsewhere(world.store, times=2))

    assert result is not None
    segments = [info.name for info in world.store.list("w/default/segments/")]
    referred = {reference.uuid for c in world.snapshot().view.checkpoints for reference in c.segments}
    assert len(segments) == 2 * len(referred) + 1  # that of the first transaction's events
    assert answers(world) == before


def test_a_task_that_dies_leaves_everything_as_it_was(world: World, small_tasks: None) -> None:
    with world.writer() as writer:
        filled(world, writer)
    before = answers(world)

    class Dying(Elsewhere):
        def run(self, tasks: Sequence[MergeTask]) -> list[Merged]:
            run_task(self.store, tasks[0])
            raise RuntimeError("the executor is gone")

    with world.writer() as writer:
        with pytest.raises(RuntimeError, match="executor"):
            writer.checkpoint(workers=Dying(world.store))
        assert world.snapshot().view.checkpoints == ()
        assert answers(world) == before
        assert writer.checkpoint() is not None
    assert answers(world) == before


class Gate(Wrapped):
    """Lets a put of a segment wait until it is opened."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.reached, self.open = threading.Event(), threading.Event()

    def put(self, name: str, data: bytes) -> None:
        if "/segments/" in name:
            self.reached.set()
            assert self.open.wait(30)
        self.inner.put(name, data)


def checkpoint_behind(gate: Gate, writer: Writer, **options: Any) -> tuple[threading.Thread, list[Any]]:
    """A thread that writes a checkpoint and has reached the gate; and what will become of it."""
    outcome: list[Any] = []

    def work() -> None:
        try:
            outcome.append(writer.checkpoint(**options))
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert gate.reached.wait(30)
    return thread, outcome


@pytest.mark.parametrize(("name", "scope"), [("w", "own"), ("compactor-1", "all")])
def test_others_commit_while_a_checkpoint_merges(name: str, scope: Any) -> None:
    world = World()
    gate = Gate(world.store)
    writer = World(gate).writer(name, catalog=None)
    world.commit(writer, ("put", "objects", obj("before")))
    thread, outcome = checkpoint_behind(gate, writer, scope=scope)
    meanwhile = world.commit(writer, ("put", "objects", obj("meanwhile")))
    gate.open.set()
    thread.join()

    (result,) = outcome
    assert result.revision == meanwhile.revision - 1
    assert names(world.snapshot()) == ["before", "meanwhile"]
    assert [t.revision for t in world.snapshot().view.tail] == [meanwhile.revision]
    assert writer.checkpoint(scope=scope).revision >= meanwhile.revision
    assert world.snapshot().view.tail == ()


def test_a_writer_that_is_closed_while_it_merges_publishes_nothing() -> None:
    world = World()
    gate = Gate(world.store)
    writer = World(gate).writer()
    world.commit(writer, ("put", "objects", obj("a")))
    thread, outcome = checkpoint_behind(gate, writer)
    writer.close()
    gate.open.set()
    thread.join()

    assert isinstance(outcome[0], ClosedWriter)
    assert world.snapshot().view.checkpoints == ()
    assert not list(world.store.list("w/default/newest/"))


def test_a_merge_in_this_process_ends_at_the_next_slice_once_its_writer_is_closed(world: World) -> None:
    with world.writer() as writer:
        filled(world, writer)
        workers = Elsewhere(world.store)
        writer.checkpoint(workers=workers)
    before = len(list(world.store.list("")))
    with pytest.raises(ClosedWriter, match="while it wrote a checkpoint"):
        run_task(world.store, workers.tasks[0], stopped=lambda: True)
    assert len(list(world.store.list(""))) == before


def test_a_put_of_a_segment_is_not_tried_again_once_its_writer_is_closed(world: World) -> None:
    class Away(Wrapped):
        tries = 0

        def put(self, name: str, data: bytes) -> None:
            self.tries += 1
            raise OutcomeUnknown(f"{name}: no answer.")

    with world.writer() as writer:
        filled(world, writer, 10_000)
        workers = Elsewhere(world.store)
        writer.checkpoint(workers=workers)
    away = Away(world.store)
    answered = iter([False] * sum(len(part.share.slices) for part in workers.tasks[0].parts))
    with pytest.raises(StoreError):
        run_task(away, workers.tasks[0], stopped=lambda: next(answered, True))
    assert away.tries == 1


@pytest.mark.parametrize("hours", [5, 7])
def test_a_checkpoint_that_took_longer_than_what_it_needs_is_kept_is_not_published(world: World, hours: int) -> None:
    class Slow(Elsewhere):
        def run(self, tasks: Sequence[MergeTask]) -> list[Merged]:
            world.clock.tick(hours * HOUR)
            return super().run(tasks)

    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("a")))
        if hours < 6:
            assert writer.checkpoint(workers=Slow(world.store)) is not None
            return
        with pytest.raises(CheckpointTooLate, match="took 7"):
            writer.checkpoint(workers=Slow(world.store))
        assert world.snapshot().view.checkpoints == ()
        assert writer.checkpoint() is not None


def test_the_name_of_a_segment_tells_when_its_merge_began(world: World) -> None:
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", obj("a")))
        began = world.clock.tick(3 * HOUR)
        writer.checkpoint()
    (reference,) = world.snapshot().view.checkpoints[0].segments

    assert int.from_bytes(reference.uuid[:6]) == began // 1_000


def test_a_full_checkpoint_refers_to_its_own_segments_only(world: World) -> None:
    with world.writer() as writer:
        filled(world, writer)
        writer.checkpoint()
        world.commit(writer, ("put", "objects", obj("new")))
        step = writer.checkpoint()
        assert step is not None and step.reused_bytes
        before = answers(world)
        full = writer.checkpoint(full=True)
        assert full is not None and (full.reused_bytes, full.revision) == (0, step.revision)
        (read,) = world.snapshot().view.checkpoints
        assert RUNS not in read.features and {run.level for run in read.runs} == {0}
        assert decode_checkpoint(world.store.get(full.name), full.name) == read
        assert answers(world) == before
        assert writer.checkpoint(full=True) is None


@pytest.mark.parametrize("attempt", range(4))
def test_of_two_checkpoints_that_cover_the_same_the_later_is_read(world: World, attempt: int) -> None:
    with world.writer() as writer:
        filled(world, writer, 10_000)
        writer.checkpoint()
        world.commit(writer, ("put", "objects", obj(f"new{attempt}")))
        writer.checkpoint()
        full = writer.checkpoint(full=True)
    assert full is not None
    assert {run.level for run in world.snapshot().view.checkpoints[0].runs} == {0}


def test_two_compactors_at_once_harm_nothing(world: World, small_tasks: None) -> None:
    with world.writer() as writer:
        filled(world, writer)
    before = answers(world)
    other = world.writer("compactor-2")

    class Meanwhile(Elsewhere):
        def run(self, tasks: Sequence[MergeTask]) -> list[Merged]:
            merged = super().run(tasks)
            other.checkpoint(scope="all", workers=Elsewhere(self.store))
            return merged

    with world.writer("compactor-1") as one, world.writer() as writer:
        assert one.checkpoint(scope="all", workers=Meanwhile(world.store)) is not None
        assert answers(world) == before
        world.commit(writer, ("put", "objects", obj("after")))
        after = answers(world)
        assert one.checkpoint(scope="all") is not None and other.checkpoint(scope="all") is not None
    assert answers(world) == after and len(after[0]) == len(before[0]) + 1


def test_two_threads_do_not_merge_the_same_twice() -> None:
    world = World()
    gate = Gate(world.store)
    writer = World(gate).writer()
    world.commit(writer, ("put", "objects", obj("a")))
    first, outcome = checkpoint_behind(gate, writer)
    second: list[Any] = []
    thread = threading.Thread(target=lambda: second.append(writer.checkpoint()))
    thread.start()
    gate.open.set()
    first.join()
    thread.join()

    assert outcome[0] is not None and second == [None]


def test_segments_are_cut_at_their_size(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "TARGET_SEGMENT_BYTES", 50_000)
    with world.writer() as writer:
        filled(world, writer)
        before = answers(world)
        result = writer.checkpoint()
    assert result is not None and result.segments > 3
    assert answers(world) == before


def test_ended_versions_lie_with_others_of_live_keys_only_where_the_whole_key_is_one(world: World) -> None:
    other = {"owner": BUCKET, "bucket_id": OWNER}
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj("a"), obj("b"), obj("a") | other, obj("b") | {"owner": BUCKET}]))
        writer.checkpoint()
        world.commit(writer, ("put", "objects", [obj("b"), obj("c")]))
        world.commit(writer, ("delete", "objects", [obj("a"), obj("b") | {"owner": BUCKET}]))
        assert writer.checkpoint(full=True) is not None
    state = contents(world).state("objects")
    (levels,), name = state.levels(), state.table.by_name["name"].field_name
    places = [place for run in levels.lowest for place in run.places]
    found = {place.header.block_class: read_block(world.store, place, state.table).rows[name].to_pylist() for place in places}
    assert not levels.upper and found == {
        BlockClass.LIVE: ["b", "c", "a"],
        BlockClass.ENDED: ["a", "b"],
        BlockClass.SUPERSEDED: ["b"],
    }


def test_a_heap_of_blocks_over_the_same_keys_is_cut_by_a_sample_of_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty transactions from one end to the other, none covered: by first and last keys all rows would lie in one slice."""
    monkeypatch.setattr(merge, "MERGE_SLICE_ROWS", 1_000)
    monkeypatch.setattr(merge, "FEWEST_ROWS", 4_000)
    with world.writer() as writer:
        for number in range(60):
            world.commit(writer, ("put", "objects", table(range(number, 24_000, 80))))
        before = answers(world)
        workers = Elsewhere(world.store)
        writer.checkpoint(workers=workers)

    state = contents(world).state("objects")
    slices = [slice_ for task in workers.tasks for _, slice_ in ranges(task)]
    counts = [len(read_slice(state.blocks, state.table, slice_, Part.EVERYTHING)) for slice_ in slices]
    assert sum(counts) == 18_000 and max(counts) < 6_000
    assert len(workers.tasks) == 4
    assert answers(world) == before


def test_wide_rows_make_small_pieces(world: World) -> None:
    with world.writer() as writer:
        for start in range(0, 2_000, 500):
            wide = [random.Random(start + n).randbytes(3_000).hex() for n in range(500)]
            names_ = [f"{start + n:09}" for n in range(500)]
            rows_ = pa.table({"owner": [OWNER] * 500, "bucket_id": [BUCKET] * 500, "name": names_, "etag": wide})
            world.commit(writer, ("put", "objects", rows_))
        writer.checkpoint()
    for slice_ in contents(world).state("objects").plan(target=16_384):
        assert sum(place.length for place in slice_.places) <= 6 << 20


def test_blocks_that_span_many_others_weigh_where_their_keys_are(world: World) -> None:
    """Each transaction has keys from one end to the other: cuts by first keys alone would put nearly all of them into one slice."""
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", table(range(0, 400_000, 4))))
        for number in range(40):
            world.commit(writer, ("put", "objects", table(range(number, 400_000, 100))))
    state = contents(world).state("objects")
    counts = [len(read_slice(state.blocks, state.table, slice_, Part.EVERYTHING)) for slice_ in state.plan()]
    assert sum(counts) == 260_000
    assert max(counts) < 1.5 * SLICE_ROWS


def test_a_full_merge_of_anothers_levels_is_written_though_nothing_is_new(world: World) -> None:
    with world.writer("w") as writer:
        for number in range(2):
            world.commit(writer, ("put", "objects", [obj(f"{number}/{n:05}") for n in range(3_000 if not number else 300)]))
            with world.writer("compactor-1") as compactor:
                compactor.checkpoint(scope="all")
    assert len(world.snapshot().state("objects").level_rows) == 2
    for expected in (True, False):
        with world.writer("compactor-2") as other:
            assert (other.checkpoint(scope="all", full=True) is not None) is expected
        assert world.snapshot().state("objects").level_rows == [3_300]


@pytest.mark.parametrize("is_late", [False, True])
def test_levels_that_are_merged_keep_what_ends_a_version_below_them_or_one_that_comes_late(
    is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "lowest_merged", lambda levels, new: min(1, len(levels)))
    world = World()
    world.commit(world.writer("w"), ("put", "objects", obj("kept")))
    world.commit(world.writer("v"), ("put", "objects", obj("ended")))
    ended = obj("ended", _version=version(obj("ended"), world.snapshot()))
    (name,) = [info.name for info in world.store.list("v/") if info.name.endswith(".txn")]
    data = world.store.get(name)
    if is_late:
        world.store.delete(name)
    end = ("delete", "objects", ended)
    for number, events in enumerate(([], [end], [])):
        world.commit(world.writer("w"), ("put", "objects", obj(f"more{number}")), *events)
        with world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        (made,) = world.snapshot().view.checkpoints
        assert {run.level for run in made.runs if run.is_of_rows} == ({0, 1} if number else {0})
    if is_late:
        world.store.put(name, data)
    assert names(world.snapshot()) == ["kept", "more0", "more1", "more2"]
