"""What somebody forges below one writer's prefix deletes nothing of anybody else, keeps nothing of theirs, and becomes no horizon."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bucketcatalog import MissingObject, clock
from bucketcatalog.format.checkpoints import Checkpoint, Coverage, encode_checkpoint
from bucketcatalog.format.runs import SegmentReference
from bucketcatalog.log.files import LogFiles
from bucketcatalog.maintain.prune import PruneResult
from bucketcatalog.maintain.verdict import Keeper
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Cut, Head

from ....kit.pruning import EVERYTHING, GRACE, checkpoint, old_history, prune, put
from ....kit.repairing import errors, repair
from ....kit.spec_reader import message, new_transaction, seal
from ....kit.spec_reader.writing import name_of_file
from ....kit.world import DAY, HOUR, World, as_arrow, bucket, names, obj, stored

pytestmark = pytest.mark.usefixtures("one_clock")


def forge(world: World, name: str, checkpoint: Checkpoint) -> str:
    """Put a checkpoint, and its marker, as who may write below a writer's prefix can; returns what it is called."""
    forged = replace(checkpoint, writer=name)
    head = Head(forged.revision, forged.uuid)
    place = paths.checkpoint(name, "default", head)
    world.store.put(place, encode_checkpoint(forged))
    world.store.put(paths.newest_marker(name, "default", head), b"")
    return place


def naming(world: World, name: str, *segments: SegmentReference) -> Checkpoint:
    """A checkpoint of a writer's own first transaction that names these segments."""
    head = next(LogFiles(world.store, "default").transactions(name))
    coverage = Coverage(0, frozenset([head]), newest_commit_time=head.commit_time, transactions=1)
    return Checkpoint(
        writer=name,
        database="default",
        revision=head.revision,
        uuid=clock.uuid7(head.commit_time).bytes,
        cut=Cut.of([(name, head)]),
        coverage={name: coverage},
        created=world.clock(),
        lateness_bound=0,
        segments=segments,
    )


def load(world: World, name: str, at: int = 17_000) -> SegmentReference:
    """A commit of a writer that is so large that its events are in a segment; what refers to that."""
    with world.writer(name) as writer:
        world.commit(writer, ("put", "objects", as_arrow([obj(f"{name}{number:06}") for number in range(at)])))
    files = LogFiles(world.store, "default")
    (reference,) = files.transaction(name, list(files.transactions(name))[-1]).segments
    return reference


def told(world: World) -> list[tuple[str, str]]:
    """What a prune says of the files of everybody but mallory: the names of those that go, with why."""
    found = prune(world, dry_run=True)
    return sorted((file.name, file.why) for file in found.waiting + found.files if not file.name.startswith("mallory/"))


def segments(world: World, name: str) -> list[str]:
    return [file for file in stored(world, ".parquet") if file.startswith(f"{name}/")]


def mallory(world: World) -> None:
    with world.writer("mallory") as writer:
        put(world, writer, "m")
        world.clock.tick()
        put(world, writer, "n")


def pruned(world: World) -> PruneResult:
    prune(world)
    world.clock.tick(GRACE)
    return prune(world)


def test_a_forged_checkpoint_frees_no_segment_of_another_writer(world: World) -> None:
    mallory(world)
    old_history(world)
    reference = load(world, "alice")
    world.clock.tick(2 * DAY)
    before = told(world)
    forged = forge(world, "mallory", naming(world, "mallory", reference))
    world.clock.tick(2 * DAY)
    assert told(world) == before
    done = pruned(world)
    assert forged in {file.name for file in done.files} and segments(world, "alice")
    assert len(names(world.snapshot())) == len(EVERYTHING) + 2 + 17_000


def test_a_forged_checkpoint_keeps_no_segment_of_another_writer(world: World) -> None:
    mallory(world)
    with world.writer("a") as writer:
        world.commit(writer, ("put", "buckets", bucket("b")))
        put(world, writer, *(f"{n:05}" for n in range(60)))
        for number in range(4):
            put(world, writer, f"x{number}")
            checkpoint(world)
            world.clock.tick(HOUR)
    world.clock.tick(2 * DAY)
    before, files = told(world), LogFiles(world.store, "default")
    named = [
        reference for head in files.checkpoints("compactor-1") for reference in files.checkpoint("compactor-1", head).segments
    ]
    going = {name for name, _ in before}
    freed = [reference for reference in named if paths.segment("compactor-1", "default", reference.uuid) in going]
    assert freed
    beyond = naming(world, "mallory", *freed)
    ahead = Head(9, clock.uuid7(world.clock()).bytes)  # which the horizon does not cover
    forge(world, "mallory", replace(beyond, revision=9, uuid=ahead.uuid, cut=Cut.of([("mallory", ahead)])))
    assert told(world) == before


def test_what_a_plain_writer_says_of_everybody_becomes_no_horizon_and_goes_when_nothing_under_way_may_need_it(
    world: World,
) -> None:
    mallory(world)
    horizon = old_history(world)
    files = LogFiles(world.store, "default")
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    newest = files.checkpoint("compactor-1", next(files.checkpoints("compactor-1")))
    for name in [name for name in stored(world) if newest.uuid.hex() in name.replace("-", "")]:
        world.store.delete(name)
    own = next(files.transactions("mallory", 1))
    forged = forge(world, "mallory", replace(newest, revision=own.revision))
    world.clock.tick(2 * DAY)
    plan = prune(world, dry_run=True)
    assert plan.horizon == horizon and plan.needs_checkpoint, "only a compactor's or a maintainer's can be the next"
    done = pruned(world)
    assert {forged} <= {file.name for file in done.files} and done.horizon == horizon
    assert names(world.snapshot()) == sorted([*EVERYTHING, "m", "n"])


def test_a_segment_that_a_transaction_names_which_stays_stays_whoever_frees_it(world: World) -> None:
    mallory(world)
    old_history(world)
    reference = load(world, "mallory")
    world.clock.tick(2 * DAY)
    forged = forge(world, "mallory", naming(world, "mallory", reference))
    assert forged in {file.name for file in pruned(world).files}
    assert segments(world, "mallory") and len(names(world.snapshot())) == len(EVERYTHING) + 2 + 17_000


def test_a_young_segment_stays_though_the_checkpoint_that_names_it_goes(world: World) -> None:
    mallory(world)
    old_history(world)
    own = load(world, "mallory")
    forged = forge(world, "mallory", naming(world, "mallory", own))
    (name,) = segments(world, "mallory")
    prune(world)
    world.clock.tick(GRACE)
    world.store.put(name, world.store.get(name))
    done = prune(world)
    assert forged in {file.name for file in done.files} and segments(world, "mallory") == [name]
    assert [staying.files for staying in done.kept if staying.keeper is Keeper.GRACE] == [1]


def test_a_horizon_whose_segment_is_gone_stops_the_prune_before_anything_is_deleted(world: World) -> None:
    old_history(world)
    prune(world)
    world.clock.tick(GRACE)
    (lost,) = segments(world, "compactor-1")
    world.store.delete(lost)
    before = stored(world)
    with pytest.raises(MissingObject, match=lost):
        prune(world)
    assert stored(world) == before


@pytest.mark.parametrize("is_later", [False, True], ids=["first", "behind a horizon"])
@pytest.mark.parametrize("kind", ["of nobody", "of nothing", "not closed"])
def test_a_tag_of_what_is_no_version_keeps_nobody_from_pruning(world: World, kind: str, is_later: bool) -> None:
    mallory(world)
    old_history(world)
    if is_later:
        pruned(world)
    before = last(world, "mallory")
    made = new_transaction("mallory", before.revision + 1, world.clock.tick())
    made.parents.add(writer="mallory", revision=before.revision, uuid=before.uuid, digest=before.checksum)
    named = made.tags.add(name="evil", created=made.commit_time).cut.writers
    if kind == "not closed":
        read = last(world, "a")
        made.reads.add(writer="a").heads.add(revision=read.revision, uuid=read.uuid)
        named.add(writer="mallory").heads.add(revision=made.revision, uuid=made.uuid)
    else:
        named.add(writer="nobody" if kind == "of nobody" else "a").heads.add(
            revision=3, uuid=clock.uuid7(before.commit_time).bytes
        )
    world.store.put(name_of_file(made, "txn"), seal(made.SerializeToString()))
    world.clock.tick(HOUR)
    checkpoint(world)
    world.clock.tick(2 * DAY)
    with world.writer("a") as writer:
        put(world, writer, "a-newest")
    found = [prune(world, dry_run=True), prune(world)]
    world.clock.tick(GRACE)
    found.append(prune(world))
    assert [result.unreadable for result in found] == [("evil",)] * 3 and found[-1].files
    assert names(world.snapshot()) == sorted([*EVERYTHING, "a-newest", "m", "n"])


def last(world: World, writer: str) -> Any:
    name = [name for name in stored(world, ".txn") if name.startswith(f"{writer}/")][-1]
    return message("Transaction").FromString(world.store.get(name))


def test_an_unmarked_checkpoint_of_a_plain_writer_that_nobody_can_read_keeps_nobody_from_pruning(world: World) -> None:
    mallory(world)
    old_history(world)
    made = message("Checkpoint")(format_version=99, writer="mallory", database="default")
    place = paths.checkpoint("mallory", "default", Head(0, clock.uuid7(world.clock()).bytes))
    world.store.put(place, seal(made.SerializeToString()))
    before = told(world)
    done = pruned(world)
    assert place in stored(world) and before
    assert {name for name, _ in before} <= {file.name for file in done.files}


def test_a_prune_trusts_for_good_what_a_compactors_checkpoint_says(world: World) -> None:
    """While the transactions are there they contradict it; once they are gone nothing does."""
    horizon = old_history(world)
    files = LogFiles(world.store, "default")
    honest = files.checkpoint("compactor-1", next(files.checkpoints("compactor-1")))
    (name,) = stored(world, ".ckpt")
    totals = {table: replace(of, live=0) if table == "objects" else of for table, of in honest.totals.items()}
    kept = tuple(segment for segment in honest.segments if segment.run.table != "objects")
    inline = tuple(run for run in honest.inline if run.run.table != "objects")
    world.store.delete(name)
    world.store.put(name, encode_checkpoint(replace(honest, segments=kept, inline=inline, totals=totals)))
    assert names(world.snapshot()) == ["a-new", "b-new"]
    (finding,) = errors(world)
    assert "DIFFERENT_STATE" in finding and name in finding
    assert [action.subject for action in repair(world, deep=True).actions if action.what == "drop"] == [name]
    made = pruned(world)
    assert made.horizon == horizon and made.files
    assert names(world.snapshot()) == ["a-new", "b-new"] and errors(world) == []
