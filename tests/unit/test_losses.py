"""A transaction that nobody can read stops everybody until its loss is accepted, by name; then it counts nowhere, whatever is put back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest

from bucketcatalog import CorruptionError, ForeignBranch, InvalidOption, UnsupportedFormat
from bucketcatalog.checking.findings import Severity
from bucketcatalog.cloning import clone
from bucketcatalog.codec.transactions import decode_transaction, encode_transaction
from bucketcatalog.repairing.run import Repair
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.writer import Writer

from .helpers import MINUTE, World, names, obj, rows

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")
HOUR = 60 * MINUTE
DAMAGES = ["flipped", "truncated", "empty"]


@pytest.fixture
def world() -> World:
    """``w`` has put a, b and lost, one after the other, the last an hour ago; ``v`` has put other before and after."""
    world = World()
    v = world.writer("v")
    world.commit(v, ("put", "objects", obj("other")))
    with world.writer("w") as w:
        for name in ("a", "b"):
            world.commit(w, ("put", "objects", obj(name)))
        world.commit(w, ("put", "objects", obj("lost")), ("delete", "objects", obj("a")))
    world.commit(v, ("put", "objects", obj("more")))
    world.clock.tick(HOUR)
    return world


def file_of(world: World, version: str) -> str:
    writer, _, revision = version.partition("@")
    (name,) = (i.name for i in world.store.list(f"{writer}/default/transactions/{int(revision):020}/") if i.name.endswith(".txn"))
    return name


def damage(world: World, version: str, how: str = "flipped") -> bytes:
    """Damage a transaction; returns the bytes that it had."""
    name = file_of(world, version)
    before = world.store.get(name)
    after = {"truncated": before[:-20], "flipped": before[:60] + bytes([before[60] ^ 1]) + before[61:], "empty": b""}
    if how == "missing":
        world.store.delete(name)
    else:
        world.store.put(name, after[how])
    return before


def repair(world: World, *accepted: str, dry_run: bool = False, **options: Any) -> Repair:
    world.clock.tick()
    catalog = world.catalog()
    return catalog.repair(writer="maintainer-1", clock=world.clock, accept_loss=accepted, dry_run=dry_run, **options)


def accept(world: World, *versions: str) -> None:
    made = repair(world, *versions)
    assert [(action.what, action.subject, action.done) for action in made.actions] == [
        ("accept", each, True) for each in versions
    ]


def found(world: World) -> list[str]:
    return [finding.code for finding in world.catalog().verify(deep=True) if finding.severity is not Severity.INFO]


@pytest.mark.parametrize("how", DAMAGES)
def test_what_cannot_be_read_stops_everybody_until_its_loss_is_accepted_by_name(world: World, how: str) -> None:
    damage(world, "w@2", how)
    before = {info.name: world.store.get(info.name) for info in world.store.list("")}
    with pytest.raises(CorruptionError, match=file_of(world, "w@2")):
        world.snapshot()
    with pytest.raises(CorruptionError):
        world.writer("w")
    for options in ({"dry_run": True}, {}):
        made = repair(world, **options)
        (lost,) = made.lost
        assert made.actions == () and (lost.code, lost.file) == ("DAMAGED_TRANSACTION", file_of(world, "w@2"))
        assert "--accept-loss w@2" in lost.message and f"{len(before[lost.file]):,} bytes" in lost.message
        assert [str(held) for held in lost.held] == ["revision 2 of w"]
    (action,) = repair(world, "w@2", dry_run=True).actions
    assert (action.what, action.subject, action.done, action.obstacle) == ("accept", "w@2", False, "")
    assert {info.name: world.store.get(info.name) for info in world.store.list("")} == before
    accept(world, "w@2")
    after = {info.name: world.store.get(info.name) for info in world.store.list("")}
    (added,) = after.keys() - before.keys()
    assert added == file_of(world, "w@3") and {name: after[name] for name in before} == before
    assert names(world.snapshot()) == ["a", "b", "more", "other"]
    assert found(world) == ["ACCEPTED_LOSS"] and repair(world).actions == ()
    with world.writer("w") as w:
        assert world.commit(w, ("put", "objects", obj("next"))).revision == 4
    assert names(world.snapshot(strict=True)) == ["a", "b", "more", "next", "other"] and found(world) == ["ACCEPTED_LOSS"]


@pytest.mark.parametrize("checkpoint", [None, "own", "all"])
def test_what_is_put_back_stays_lost(world: World, checkpoint: Literal["own", "all"] | None) -> None:
    before = damage(world, "w@2")
    accept(world, "w@2")
    with world.writer("w") as w:
        later = world.commit(w, ("put", "objects", obj("next")))
        if checkpoint is not None:
            world.clock.tick()
            assert w.checkpoint(scope=checkpoint) is not None
    told = {version: names(world.snapshot(version=version)) for version in (later.version, "w@3", world.snapshot().version)}
    assert told[later.version] == ["a", "b", "next"] and told["w@3"] == ["a", "b"]
    seen = world.catalog()
    assert "lost" not in names(seen.snapshot())
    world.store.put(file_of(world, "w@2"), before)
    for catalog in (seen, world.catalog()):
        assert {version: names(catalog.snapshot(version=version)) for version in told} == told
        assert names(catalog.snapshot()) == ["a", "b", "more", "next", "other"]
        assert names(catalog.snapshot(timestamp=f"@{world.clock.now}")) == ["a", "b", "more", "next", "other"]
    assert found(world) == ["ACCEPTED_LOSS"]
    assert names(world.snapshot(version="w@2")) == ["b", "lost"]  # what was read before is what it was
    with world.writer("w") as w:
        world.commit(w, ("put", "objects", obj("again")))
    assert names(world.snapshot()) == ["a", "again", "b", "more", "next", "other"]


def test_only_versions_and_times_without_the_acceptance_that_need_it_cannot_be_read(world: World) -> None:
    at = world.snapshot().version
    moment = world.clock.now
    damage(world, "w@2")
    accept(world, "w@2")
    assert names(world.snapshot(version="w@1")) == ["a", "b"]
    assert names(world.snapshot(version="w@3")) == ["a", "b"]
    for options in ({"version": at}, {"version": "w@2"}, {"timestamp": f"@{moment}"}):
        with pytest.raises(CorruptionError, match=file_of(world, "w@2")):
            world.snapshot(**options)
    salvaged = world.snapshot(timestamp=f"@{moment}", ignore_corruption=True)
    assert names(salvaged) == ["a", "b", "more", "other"]
    assert [loss.file for loss in salvaged.missing] == [file_of(world, "w@2")]
    assert world.snapshot(ignore_corruption=True).missing == ()


@pytest.mark.parametrize("scope", ["own", "all"])
@pytest.mark.parametrize("how", [*DAMAGES, "missing"])
def test_checkpoints_cover_it_and_then_nobody_needs_the_file(world: World, scope: Literal["own", "all"], how: str) -> None:
    damage(world, "w@2", "flipped")
    accept(world, "w@2")
    for number in range(3):
        with world.writer("w") as w:
            world.commit(w, ("put", "objects", obj(f"c{number}")))
        with world.writer("w" if scope == "own" else "compactor-1") as writer:
            world.clock.tick()
            assert writer.checkpoint(scope=scope) is not None
        if number == 0 and how == "missing":
            damage(world, "w@2", how)
        world.clock.tick(number * 24 * HOUR)
    snapshot = world.snapshot(strict=True)
    assert names(snapshot) == ["a", "b", "c0", "c1", "c2", "more", "other"]
    assert not {t.writer for t in snapshot.view.tail} & {"w"} and snapshot.cut.newest_revision("w") == 6
    with world.writer("v") as v:
        v._database.look()
        world.commit(v, ("put", "objects", obj("last")))
    assert names(world.snapshot(version="v@2")) == ["a", "b", "c0", "c1", "c2", "last", "more", "other"]
    assert found(world) == ["ACCEPTED_LOSS"] and repair(world).actions == ()


def test_a_loss_in_the_midst_of_a_timeline_is_accepted_whether_its_file_is_damaged_or_gone(world: World) -> None:
    for how in ("flipped", "missing"):
        damage(world, "w@1", how)
        with pytest.raises(CorruptionError, match=file_of(world, "w@1") if how == "flipped" else "is gone"):
            world.snapshot()
    (lost,) = repair(world).lost
    assert lost.code == "MISSING_TRANSACTION" and "--accept-loss w@1" in lost.message
    accept(world, "w@1")
    assert names(world.snapshot()) == ["lost", "more", "other"] and found(world) == ["ACCEPTED_LOSS"]
    for scope in ("own", "all"):
        with world.writer("w") as w:
            world.commit(w, ("put", "objects", obj(scope)))
            assert w.checkpoint(scope=scope) is not None
            world.commit(w, ("put", "objects", obj(f"after {scope}")))
    assert names(world.snapshot(version="w@5")) == ["after own", "lost", "own"]
    assert names(world.snapshot()) == ["after all", "after own", "all", "lost", "more", "other", "own"]
    assert found(world) == ["ACCEPTED_LOSS"]


def test_those_of_one_timeline_are_accepted_together(world: World) -> None:
    damage(world, "w@1")
    damage(world, "w@2", "truncated")
    for one, other in (("w@1", "w@2"), ("w@2", "w@1")):
        made = repair(world, one)
        assert not any(action.done for action in made.actions)
        assert any(action.subject == one and f"--accept-loss {other} too" in action.obstacle for action in made.actions)
    accept(world, "w@1", "w@2")
    assert names(world.snapshot()) == ["a", "more", "other"] and found(world) == ["ACCEPTED_LOSS"] * 2


def test_who_has_read_it_goes_on(world: World) -> None:
    with world.writer("v") as v:
        v._database.look()
        world.commit(v, ("put", "objects", obj("after it")))
    before = damage(world, "w@2")
    world.clock.tick(HOUR)
    accept(world, "w@2")
    assert names(world.snapshot()) == ["a", "after it", "b", "more", "other"]
    with pytest.raises(CorruptionError):
        world.snapshot(version="v@2")
    with world.writer("v") as v:
        v._database.look()
        later = world.commit(v, ("put", "objects", obj("and again")))
    assert names(world.snapshot(version=later.version)) == ["a", "after it", "and again", "b", "more", "other"]
    world.store.put(file_of(world, "w@2"), before)
    assert names(world.snapshot(version=later.version)) == ["a", "after it", "and again", "b", "more", "other"]
    assert names(world.snapshot(version="v@2")) == ["after it", "b", "lost", "more", "other"]


def test_a_process_that_holds_the_writer_is_stopped_and_loses_nothing(world: World) -> None:
    holding: Writer = world.writer("w")
    world.commit(holding, ("put", "objects", obj("held")))
    world.clock.tick(HOUR)
    damage(world, "w@3")
    accept(world, "w@3")
    with pytest.raises(ForeignBranch):
        holding.check()
    with world.writer("w") as w:
        assert world.commit(w, ("put", "objects", obj("now"))).revision == 5
    assert names(world.snapshot(strict=True)) == ["b", "lost", "more", "now", "other"]


def test_a_branch_of_a_process_that_did_not_look_is_kept_and_joined(world: World) -> None:
    holding = world.writer("w")
    world.commit(holding, ("put", "objects", obj("held")))
    world.clock.tick(HOUR)
    damage(world, "w@3")
    accept(world, "w@3")
    world.commit(holding, ("put", "objects", obj("branch")))
    expected = ["b", "branch", "lost", "more", "other"]
    assert names(world.snapshot()) == expected
    world.clock.tick(HOUR)
    made = repair(world, join=["w"])
    assert [(action.what, action.done) for action in made.actions] == [("join", True)]
    assert names(world.snapshot(strict=True)) == expected and names(world.snapshot(version="w@5")) == ["b", "branch", "lost"]
    with world.writer("w") as w:
        world.commit(w, ("put", "objects", obj("z")))
        assert w.checkpoint() is not None
    assert names(world.snapshot(strict=True)) == [*expected, "z"] and found(world) == ["ACCEPTED_LOSS"]


def test_changes_and_the_log_go_past_it(world: World) -> None:
    damage(world, "w@2")
    accept(world, "w@2")
    assert sorted(world.catalog().changes(table="objects").to_arrow()["name"].to_pylist()) == ["a", "b", "more", "other"]
    assert [row["events"] for row in rows(world.snapshot(), "log") if row["writer"] == "w"] == [1, 1, 0, 0]


def test_what_readers_do_not_need_cannot_be_accepted(world: World) -> None:
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    damage(world, "w@2")
    for name in ("w@2", "w@1", "w", "x@0"):
        with pytest.raises(InvalidOption, match="cannot read"):
            repair(world, name)
    assert names(world.snapshot()) == ["b", "lost", "more", "other"]


def test_what_is_young_or_a_maintainers_or_without_what_came_before_is_left(world: World) -> None:
    with world.writer("w") as w:
        world.commit(w, ("put", "objects", obj("young")))
    damage(world, "w@3")
    (action,) = repair(world, "w@3").actions
    assert not action.done and "too young" in action.obstacle
    world.clock.tick(HOUR)
    damage(world, "w@2", "missing")
    (action,) = repair(world, "w@3").actions
    assert not action.done and "Revision 2 is gone too" in action.obstacle
    other = World()
    other.commit(other.writer("w"), ("put", "objects", obj("a")))
    with other.writer("maintainer-2") as maintainer:
        other.clock.tick()
        maintainer.tag("t")
    other.clock.tick(HOUR)
    damage(other, "maintainer-2@0")
    (action,) = repair(other, "maintainer-2@0").actions
    assert not action.done and "maintainer's" in action.obstacle


def test_one_in_whose_place_another_lies_is_lost_too(world: World) -> None:
    name = file_of(world, "w@1")
    t = decode_transaction(world.store.get(name), name)
    world.store.put(name, encode_transaction(replace(t, operation="forged"), t.actions, ()))
    with pytest.raises(CorruptionError, match="digest"):
        world.snapshot()
    assert found(world) == ["BROKEN_CHAIN"]
    accept(world, "w@1")
    assert names(world.snapshot()) == ["lost", "more", "other"] and found(world) == ["ACCEPTED_LOSS"]


@pytest.mark.parametrize("how", [*DAMAGES, "missing"])
def test_a_clone_and_a_prune_go_past_it(world: World, how: str) -> None:
    damage(world, "w@2")
    accept(world, "w@2")
    if how == "missing":
        damage(world, "w@2", how)
    with world.writer("w") as w:
        world.commit(w, ("put", "objects", obj("next")))
    expected = ["a", "b", "more", "next", "other"]
    copy = World(MemoryStore(clock=world.clock))
    copy.clock = world.clock
    catalog = world.catalog()
    with world.writer("maintainer-1", catalog=catalog) as maintainer:
        clone(catalog.database("default"), maintainer, copy.store, None, None, now=world.clock)
    assert names(copy.snapshot()) == expected and found(copy) == []
    for each in (world, copy):
        with each.writer("w") as w:
            each.commit(w, ("put", "objects", obj("on")))
        with each.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
    world.clock.tick(2 * HOUR)
    for _ in range(2):
        world.catalog().prune("0s", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
        world.clock.tick(2 * HOUR)
    assert list(world.store.list(f"w/default/transactions/{2:020}/")) == []
    assert names(world.snapshot()) == names(copy.snapshot()) == sorted([*expected, "on"])
    assert found(world) == found(copy) == []
    with world.writer("w") as w:
        world.commit(w, ("put", "objects", obj("last")))
        assert w.checkpoint() is not None
    assert names(world.snapshot()) == sorted([*expected, "last", "on"]) and found(world) == []


def test_a_release_that_does_not_know_of_losses_refuses(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    damage(world, "w@2")
    accept(world, "w@2")
    monkeypatch.setattr("bucketcatalog.codec.seal.KNOWN_FEATURES", frozenset({"runs", "voids", "boundary"}))
    with pytest.raises((UnsupportedFormat, CorruptionError)):
        world.snapshot()
    with pytest.raises(UnsupportedFormat, match="'losses'"):
        world.writer("w")
