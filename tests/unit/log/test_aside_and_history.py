"""What is set aside beside all that moves on meanwhile: checkpoints under way, horizons, kept checkpoints of tags, clones, forks."""

from __future__ import annotations

import pytest

from bucketcatalog import BucketCatalogError, InvalidOption, SetAsideError
from bucketcatalog.checkpoint.merge import run_task
from bucketcatalog.checkpoint.plan import prepare
from bucketcatalog.checkpoint.publish import publish
from bucketcatalog.format.records import SetAside
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model import paths
from bucketcatalog.store.memory import MemoryStore

from ...kit.aside import errors, set_aside, take_in
from ...kit.cloning import at, clone
from ...kit.pruning import EVERYTHING, GRACE, checkpoint, keep_time, old_history, prune, put
from ...kit.spoiling import newest, restore, spoil
from ...kit.world import DAY, HOUR, World, names, obj


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    keep_time(world, monkeypatch)
    return world


def test_prune_and_checkpoints_stop_by_name_and_go_on_once_it_is_set_aside(world: World) -> None:
    old_history(world)
    prune(world)
    with world.writer("a") as a:
        put(world, a, "bad")
    name = newest(world, "a")
    data = spoil(world, name)
    world.clock.tick(GRACE)
    for ask in (lambda: prune(world), lambda: checkpoint(world)):
        with pytest.raises(BucketCatalogError) as caught:
            ask()
        assert name in str(caught.value)
    set_aside(world, name)
    assert prune(world).files and names(world.snapshot(strict=True)) == EVERYTHING
    checkpoint(world)
    assert names(world.snapshot(strict=True)) == EVERYTHING and errors(world) == []
    restore(world, name, data)
    take_in(world, name)
    assert names(world.snapshot(strict=True)) == sorted([*EVERYTHING, "bad"]) and errors(world) == []


def test_what_the_horizon_holds_is_neither_set_aside_nor_taken_in(world: World) -> None:
    with world.writer("a") as a:
        put(world, a, "x")
        put(world, a, "bad")
        put(world, a, "y")
    name, earlier = newest(world, "a", 1), newest(world, "a", 2)
    data = spoil(world, name)
    set_aside(world, name)
    world.clock.tick(HOUR)
    checkpoint(world)
    world.clock.tick(2 * DAY)
    prune(world)
    restore(world, name, data)
    for options in ({"set_aside": [earlier], "force": True}, {"take_in": [name]}):
        with pytest.raises(InvalidOption, match="horizon"):
            world.catalog().repair(writer="maintainer-1", clock=world.clock, dry_run=False, **options)
    world.clock.tick(GRACE)
    assert prune(world).files and names(world.snapshot(strict=True)) == ["x", "y"] and errors(world) == []
    with world.writer("a") as a:
        put(world, a, "z")
    checkpoint(world)
    assert names(world.snapshot()) == ["x", "y", "z"] and errors(world) == []


def test_a_record_that_a_boundary_has_overtaken_counts_for_nobody(world: World) -> None:
    with world.writer("a") as a:
        put(world, a, "x")
        put(world, a, "y")
        put(world, a, "z")
    name = newest(world, "a", 1)
    world.clock.tick(HOUR)
    checkpoint(world)
    world.clock.tick(2 * DAY)
    with world.writer("maintainer-2") as other:  # whose look was before the boundary
        prune(world)
        head = LogFiles(world.store, "default").at_revision("a", 1)[0]
        other.set_aside([SetAside("a", 1, head.uuid)])
    assert names(world.snapshot()) == ["x", "y", "z"]
    spoil(world, name)
    world.clock.tick(GRACE)
    prune(world)
    checkpoint(world)
    assert names(world.snapshot()) == ["x", "y", "z"] and names(world.catalog().snapshot()) == ["x", "y", "z"]


def test_a_checkpoint_under_way_that_did_not_know_is_not_used(world: World) -> None:
    with world.writer("a") as a:
        put(world, a, "x")
        put(world, a, "bad")
    name = newest(world, "a")
    with world.writer("compactor-1") as compactor:
        files = compactor._database.files
        prepared = prepare(files, compactor._open_timeline(), compactor._note)
        assert prepared is not None
        data = spoil(world, name)
        set_aside(world, name)
        publish(files, prepared, [run_task(world.store, task) for task in prepared.tasks])
    assert names(world.snapshot()) == ["x"]
    restore(world, name, data)
    take_in(world, name)
    snapshot = world.snapshot()
    assert names(snapshot) == ["bad", "x"] and [c.writer for c in snapshot.view.checkpoints] == ["compactor-1"]


def test_knowledge_outlives_the_transaction_that_said_it(world: World) -> None:
    with world.writer("a") as a:
        put(world, a, "x")
        world.clock.tick(HOUR)
        checkpoint(world)
        put(world, a, "bad")
    name = newest(world, "a")
    spoil(world, name)
    set_aside(world, name)
    with world.writer("maintainer-1") as maintainer:
        maintainer.tag("later")
    world.clock.tick(HOUR)
    checkpoint(world)
    world.clock.tick(2 * DAY)
    prune(world)
    world.clock.tick(GRACE)
    gone = {file.name for file in prune(world).files}
    assert any(name.startswith("maintainer-1/") and name.endswith(".txn") for name in gone)
    snapshot = world.snapshot()
    assert names(snapshot) == ["x"] and [entry.revision for entry in snapshot.view.asides.values()] == [1]
    with world.writer("a") as again:
        put(world, again, "y")
    assert names(world.snapshot()) == ["x", "y"] and errors(world) == []


def test_a_tag_behind_the_horizon_whose_checkpoint_did_not_know_is_refused_until_it_is_taken_in(world: World) -> None:
    with world.writer("a") as a, world.writer("b") as b:
        put(world, a, "x")
        put(world, b, "b0")
        early = world.snapshot().version
        put(world, a, "y")
        world.clock.tick(HOUR)
        checkpoint(world)
        put(world, b, "late")
        head_of_b = world.snapshot().cut.of_writer("b")[0]
    version = ",".join([early.split(",")[0], f"b@1:{head_of_b.uuid.hex()}"])
    with world.writer("maintainer-2") as tagger:
        world.clock.tick()
        tagger.tag("odd", version=version)
    before = names(world.snapshot(version="odd"))
    assert before == ["b0", "late", "x"]
    world.clock.tick(2 * DAY)
    prune(world)
    world.clock.tick(GRACE)
    assert prune(world).files
    name = paths.transaction("b", "default", head_of_b)
    data = spoil(world, name)
    set_aside(world, name)
    assert names(world.snapshot()) == ["b0", "x", "y"]
    with pytest.raises(SetAsideError, match="was made before"):
        world.snapshot(version="odd")
    restore(world, name, data)
    take_in(world, name)
    assert names(world.snapshot(version="odd")) == before


def test_a_clone_knows_what_is_set_aside(world: World) -> None:
    with world.writer("a") as a, world.writer("b") as b:
        put(world, a, "x")
        put(world, a, "bad")
        put(world, b, "y")
    spoil(world, newest(world, "a"))
    set_aside(world, newest(world, "a"))
    target = MemoryStore(clock=world.clock)
    clone(world, target)
    other = at(world, target)
    assert names(other.snapshot(strict=True)) == ["x", "y"]
    with other.writer("a") as again:
        put(other, again, "z")
    assert names(other.snapshot(strict=True)) == ["x", "y", "z"]
    assert not any("/a/" in f"/{error}" for error in errors(other))


def test_a_join_of_which_nothing_is_known_follows_every_end_before_it(world: World) -> None:
    put(world, world.writer("w"), "base")
    branches = [world.writer("w") for _ in range(2)]
    for writer, count in zip(branches, (1, 3), strict=True):
        for number in range(count):
            put(world, writer, f"{count}-{number}")
    world.clock.tick(HOUR)
    world.catalog().repair(writer="maintainer-1", clock=world.clock, join=["w"], dry_run=False)
    name = newest(world, "w")
    whole = names(world.snapshot(strict=True))
    spoil(world, name)
    set_aside(world, name)
    assert names(world.snapshot(strict=True)) == whole and names(world.snapshot(version="w@4")) == whole
    with world.writer("w") as w:
        put(world, w, "end")
    assert names(world.snapshot(strict=True)) == sorted([*whole, "end"]) and errors(world) == []


@pytest.mark.filterwarnings("ignore:Writer 'w' has committed with a time in the future")
def test_what_lies_in_the_future_can_be_set_aside_and_voided(world: World) -> None:
    with world.writer("w") as w:
        put(world, w, "base")
        world.clock.tick(DAY)
        put(world, w, "future")
        world.clock.tick(-DAY)
    name = newest(world, "w")
    spoil(world, name)
    set_aside(world, name)
    assert names(world.snapshot()) == ["base"]
    world.clock.tick()
    world.catalog().repair(writer="maintainer-1", clock=world.clock, void=["w@1"], dry_run=False)
    with world.writer("w") as w:
        put(world, w, "now")
    checkpoint(world)
    assert names(world.snapshot()) == ["base", "now"] and errors(world) == []


def test_who_reads_past_damage_takes_what_is_set_aside_for_no_loss(world: World) -> None:
    with world.writer("w") as w, world.writer("v") as v:
        put(world, w, "base")
        put(world, w, "bad")
        put(world, v, "lost")
    spoil(world, newest(world, "w"))
    set_aside(world, newest(world, "w"))
    spoil(world, newest(world, "v"))
    with pytest.warns(match=newest(world, "v")):
        snapshot = world.snapshot(ignore_corruption=True)
    assert names(snapshot) == ["base"] and {loss.file for loss in snapshot.missing} == {newest(world, "v")}
    codes = dict(zip(*snapshot.scan("damage", columns=["file", "code"]).to_arrow().to_pydict().values(), strict=True))
    assert codes == {newest(world, "v"): "TRUNCATED", newest(world, "w"): "SET_ASIDE"}
    assert obj("base")["name"] in names(snapshot)
