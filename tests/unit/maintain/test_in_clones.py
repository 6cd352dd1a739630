"""What goes on in a clone: versions, times, tags, pruning and repair there, and a clone of it; its checkpoint lies at its maintainer's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bucketcatalog import HistoryPruned
from bucketcatalog.format.checkpoints import encode_checkpoint
from bucketcatalog.format.headers import BlockClass
from bucketcatalog.log.files import LogFiles
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model import paths
from bucketcatalog.store.memory import MemoryStore

from ...kit.cloning import MAINTAINER, at, clone, content, copied_world, shown
from ...kit.corrupting import DAMAGES, Specimen
from ...kit.repairing import errors, repair
from ...kit.world import DAY, HOUR, World, names, obj, stored

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


@pytest.fixture
def there() -> World:
    """A clone of a world with two writers."""
    world = copied_world()
    target = MemoryStore(clock=world.clock)
    clone(world, target)
    return at(world, target)


def own_checkpoint(there: World) -> str:
    """The name of the checkpoint that the clone began with."""
    (name,) = [name for name in stored(there, ".ckpt") if name.startswith("maintainer-clone-")]
    return name


def prune(there: World, age: str = "1h") -> None:
    there.catalog().prune(age, grace="0s", writer="maintainer-9", dry_run=False, force=True, clock=there.clock)


def test_a_version_of_the_clone_has_what_its_writer_had_read_before_it_was_made() -> None:
    """What only deleted transactions name as read: whoever has read the one that made the clone has read all of it."""
    world = World()
    world.commit(world.writer("x"), ("put", "objects", obj("x")))
    catalog = world.catalog()
    catalog.snapshot()
    with world.writer("v", catalog=catalog) as v:
        for number in range(3):
            world.commit(v, ("put", "objects", obj(f"v{number}")))
    target = MemoryStore(clock=world.clock)
    clone(world, target)
    there = at(world, target)
    with there.writer("v") as v:
        unaware = there.commit(v, ("put", "objects", obj("unaware"))).version
    with pytest.raises(HistoryPruned):
        there.snapshot(version=unaware)
    catalog = there.catalog()
    catalog.snapshot()
    with there.writer("v", catalog=catalog) as v:
        versions = [there.commit(v, ("put", "objects", obj(f"aware{n}"))).version for n in range(2)]
    expected = ["unaware", "v0", "v1", "v2", "x"]
    assert names(there.snapshot(version=versions[0])) == ["aware0", *expected]
    assert names(there.snapshot(version=versions[1])) == ["aware0", "aware1", *expected]
    with there.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    assert names(there.snapshot(version=versions[0])) == ["aware0", *expected]


def test_times_in_the_clone_show_what_was_there_then(there: World) -> None:
    seen = {there.clock.now: shown(there)}
    for number in range(4):
        there.clock.tick(HOUR)
        with there.writer("w") as w, there.writer("v") as v:
            there.commit(w, ("put", "objects", obj(f"{number}")), ("delete", "objects", obj(f"{number:03}")))
            there.commit(v, ("put", "objects", obj(f"v{number}")))
            if number % 2:
                w.checkpoint()
        seen[there.clock.now] = shown(there)
    with there.writer("compactor-2") as compactor:
        compactor.checkpoint(scope="all")
    for time, expected in seen.items():
        assert shown(there, timestamp=f"@{time}") == expected
    assert errors(there) == []


def test_a_process_that_looked_before_the_marker_was_there_finds_everything_later(there: World) -> None:
    marker = next(name for name in stored(there) if name.startswith("maintainer-clone-") and "/newest/" in name)
    there.store.delete(marker)
    early = there.catalog()
    expected = names(early.snapshot())
    there.store.put(marker, b"")
    with there.writer("w") as w:
        there.commit(w, ("put", "objects", obj("zz")))
    assert names(early.snapshot()) == names(there.snapshot()) == [*expected, "zz"]
    with there.writer("compactor-2") as compactor:
        compactor.checkpoint(scope="all")
        there.commit(compactor, ("put", "objects", obj("zzz")))
    assert names(early.snapshot()) == [*expected, "zz", "zzz"]


def test_its_own_version_is_kept_for_a_tag_when_later_history_is_pruned_and_goes_with_the_tag(there: World) -> None:
    first = own_checkpoint(there)
    version = there.snapshot().view.horizon
    assert version is not None
    with there.writer(MAINTAINER) as held:
        held.tag("began", version=str(version.cut))
    expected = shown(there, version="began")
    for number in range(3):
        there.clock.tick(2 * HOUR)
        with there.writer("w") as w:
            there.commit(w, ("put", "objects", obj(f"later {number}")))
        with there.writer("compactor-2") as compactor:
            compactor.checkpoint(scope="all")
    there.clock.tick(2 * HOUR)
    newest = shown(there)
    for _ in range(2):
        prune(there)
        there.clock.tick(9 * DAY)
        assert shown(there, version="began") == expected and shown(there) == newest
    assert first in stored(there) and errors(there) == []
    with there.writer(MAINTAINER) as held:
        held.drop_tag("began")
    for _ in range(3):
        there.clock.tick(9 * DAY)
        prune(there)
    assert first not in stored(there) and shown(there) == newest and errors(there) == []
    with pytest.raises(HistoryPruned):
        there.snapshot(version=str(version.cut))


def test_tags_that_are_given_in_the_clone_are_kept_by_pruning(there: World) -> None:
    tagged = {}
    for number in range(3):
        there.clock.tick(2 * HOUR)
        with there.writer("w") as w, there.writer(MAINTAINER) as held:
            there.commit(w, ("put", "objects", obj(f"later {number}")))
            held.tag(f"t{number}")
        tagged[f"t{number}"] = shown(there, version=f"t{number}")
    for _ in range(2):
        there.clock.tick(9 * DAY)
        with there.writer("w") as w, there.writer("compactor-2") as compactor:
            there.commit(w, ("put", "objects", obj("newest")))
            compactor.checkpoint(scope="all")
        prune(there)
    assert {name: shown(there, version=name) for name in tagged} == tagged and errors(there) == []


@pytest.mark.parametrize("kind", [".ckpt", "marker"])
def test_a_lost_checkpoint_of_the_clone_is_made_again_from_its_segments(there: World, kind: str) -> None:
    expected = shown(there)
    name = own_checkpoint(there)
    marker = next(name for name in stored(there) if name.startswith("maintainer-clone-") and "/newest/" in name)
    there.store.delete(name if kind == ".ckpt" else marker)
    if kind == "marker":
        assert shown(there) == expected and "UNMARKED_CHECKPOINT" in {f.code for f in there.catalog().verify()}
        return
    there.clock.tick(HOUR)
    made = repair(there, dry_run=False)
    assert "rebuild" in {action.what for action in made.actions if action.done}
    shows = shown(there)
    assert shows["objects"] == expected["objects"] and shows["deleted_objects"] == expected["deleted_objects"]


@pytest.mark.parametrize("damage", ["missing", "truncated", "flipped"])
def test_damage_to_it_is_mended_by_a_later_checkpoint_of_everybody(there: World, damage: str) -> None:
    there.clock.tick(HOUR)
    with there.writer("w") as w:
        there.commit(w, ("put", "objects", obj("later")))
    with there.writer("compactor-2") as compactor:
        compactor.checkpoint(scope="all", full=True)
    expected = shown(there)
    DAMAGES[damage](Specimen(there, {}), own_checkpoint(there))
    repair(there, dry_run=False)
    assert shown(there) == expected and errors(there) == []
    there.clock.tick(2 * HOUR)
    with there.writer("w") as w, there.writer("v") as v:
        there.commit(w, ("put", "objects", obj("latest")))
        assert w.checkpoint() is not None
        there.commit(v, ("put", "objects", obj("latest of v")))
    assert {"latest", "latest of v"} < set(names(there.snapshot())) and errors(there) == []


def test_writers_own_checkpoints_there_hold_what_the_clones_does_not_and_are_compared_with_it(there: World) -> None:
    for number in range(3):
        there.clock.tick(20 * 60 * 1_000_000)
        with there.writer("w") as w:
            there.commit(w, ("put", "objects", obj(f"later {number}")), ("delete", "objects", obj(f"{number:03}")))
            w.checkpoint()
    made = [c for c in there.snapshot().view.checkpoints if c.writer == "w"]
    assert [c.coverage["w"].first_revision for c in made] == [2] and set(made[0].cut.heads) == {"w"}
    assert list(there.catalog().verify(deep=True)) == []
    name = paths.checkpoint("w", "default", made[0].head)
    *kept, dropped = (run for run in made[0].inline if run.run.is_of_rows)
    table, count = dropped.run.table, dropped.run.rows
    totals = {table: replace(made[0].totals[table], **{_SORTS[dropped.run.block_class]: 0})}
    less = replace(made[0], inline=tuple(kept), totals={**made[0].totals, **totals})
    there.store.delete(name)
    there.store.put(name, encode_checkpoint(less))
    (finding,) = [f for f in there.catalog().verify(deep=True) if f.severity is Severity.ERROR]
    assert (finding.code, finding.file, finding.held[0].rows) == ("DIFFERENT_STATE", name, count)


_SORTS = {BlockClass.LIVE: "live", BlockClass.ENDED: "tombstones", BlockClass.SUPERSEDED: "tombstones", BlockClass.STUBS: "stubs"}


def test_a_clone_of_a_clone_goes_on_like_one(there: World) -> None:
    catalog = there.catalog()
    catalog.snapshot()
    with there.writer("w", catalog=catalog) as w:
        there.commit(w, ("put", "objects", obj("in the first")))
    second = MemoryStore(clock=there.clock)
    made = clone(there, second)
    other = at(there, second)
    assert shown(other) == shown(there, version=made.version) and errors(other) == []
    assert len([name for name in content(second) if name.endswith(".ckpt")]) == 1
    catalog = other.catalog()
    catalog.snapshot()
    with other.writer("v", catalog=catalog) as v:
        version = other.commit(v, ("put", "objects", obj("in the second"))).version
    assert {"in the first", "in the second", "new"} < set(names(other.snapshot(version=version)))
    for _ in range(2):
        other.clock.tick(9 * DAY)
        with other.writer("v") as v, other.writer("compactor-2") as compactor:
            other.commit(v, ("put", "objects", obj("newest")))
            compactor.checkpoint(scope="all")
        expected = shown(other)
        prune(other)
        assert shown(other) == expected and errors(other) == []
    assert list(LogFiles(second, "default").transactions("v"))[-1].revision == 4
