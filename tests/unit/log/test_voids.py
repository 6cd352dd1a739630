"""Voided transactions: every reader of a cut with the void treats them as absent, and they bind nobody's clock any more."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Literal

import pytest

from bucketcatalog import CatalogWarning, ClockSkew, InvalidOption, UnsupportedFormat
from bucketcatalog.format.checkpoints import encode_checkpoint
from bucketcatalog.format.records import Link, Void
from bucketcatalog.format.transactions import decode_transaction, encode_transaction
from bucketcatalog.log.files import LogFiles
from bucketcatalog.maintain.clone import clone
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model import paths
from bucketcatalog.store.memory import MemoryStore

from ...kit.world import HOUR, World, bucket, messages, names, obj, proto, rows

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


@pytest.fixture
def world() -> World:
    """Writer ``w`` has committed ``base``, and then ``future`` a day ahead of the store; ``v`` is right."""
    world = World()
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", [obj("base"), obj("kept")]))
        world.clock.tick(24 * HOUR)
        world.commit(writer, ("put", "objects", obj("future")), ("delete", "objects", obj("base")), app_id="job", app_version=1)
        world.clock.tick(-24 * HOUR)
    world.commit(world.writer("v"), ("put", "objects", obj("other")))
    return world


def void(world: World, writer: str = "w") -> Void:
    """The void of the newest transaction of a writer."""
    files = LogFiles(world.store, "default")
    head = max(files.transactions(writer))
    t = files.transaction(writer, head)
    return Void(writer, Link(t.revision, t.uuid, t.digest))


def voided(world: World) -> World:
    world.clock.tick()
    with world.writer("maintainer-1") as maintainer:
        maintainer.void([void(world)])
    return world


def errors(world: World) -> list[str]:
    return [str(f) for f in world.catalog().verify(deep=True) if f.severity is not Severity.INFO]


def test_what_is_voided_is_absent_from_then_on_and_only_then(world: World) -> None:
    before = world.snapshot()
    assert names(before) == ["future", "kept", "other"]
    voided(world)
    after = world.snapshot()
    assert names(after) == ["base", "kept", "other"] and rows(after, "deleted_objects") == []
    assert names(world.snapshot(version=before.version)) == ["future", "kept", "other"]
    assert names(world.snapshot(version=after.version)) == ["base", "kept", "other"]
    assert names(world.snapshot(timestamp=f"@{world.clock.now}")) == ["base", "kept", "other"]
    assert errors(world) == []


def test_nobody_is_warned_of_a_voided_transaction(world: World) -> None:
    with pytest.warns(CatalogWarning, match="future"):
        world.snapshot()
    voided(world)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world.snapshot(strict=True)


def test_its_writer_goes_on_with_times_of_now_and_links_to_it(world: World) -> None:
    with world.writer("w") as writer, pytest.raises(ClockSkew, match="voided"):
        world.commit(writer, ("put", "objects", obj("late")))
    voided(world)
    with world.writer("w") as writer:
        committed = world.commit(writer, ("put", "objects", obj("now")), app_id="job", app_version=1)
        again = world.commit(writer, ("put", "objects", obj("again")))
    assert (committed.revision, committed.commit_time) == (2, world.clock.now - 1_000_000)
    assert again.commit_time == world.clock.now
    snapshot = world.snapshot()
    assert names(snapshot) == ["again", "base", "kept", "now", "other"] and snapshot.cut.newest_revision("w") == 3
    with world.writer("w") as writer:
        assert world.commit(writer, ("put", "objects", obj("reopened"))).revision == 4
    for options in ({"version": "w@3"}, {"timestamp": f"@{again.commit_time}"}, {"version": snapshot.version}):
        assert "future" not in names(world.snapshot(**options))
    assert errors(world) == []


def test_what_a_timeline_holds_before_a_commit_from_the_future_counts_as_read(world: World) -> None:
    expected = world.snapshot(version="w@0").cut.heads["w"]
    with world.writer("other") as other:
        other._database.look()
        committed = world.commit(other, ("put", "objects", obj("later")))
    snapshot = world.snapshot(version=committed.version)
    assert snapshot.cut.heads["w"] == expected and "base" in names(snapshot)


def test_a_compactor_goes_on_where_its_clock_was_wrong_for_a_while() -> None:
    world = World()
    world.commit(world.writer("w"), ("put", "objects", obj("base")))
    with world.writer("compactor-1") as compactor:
        world.clock.tick(24 * HOUR)
        world.commit(compactor, ("put", "objects", obj("future")))
        world.clock.tick(-24 * HOUR)
    with world.writer("maintainer-1") as maintainer:
        maintainer.void([void(world, "compactor-1")])
    with world.writer("compactor-1") as compactor:
        made = compactor.checkpoint(scope="all")
        assert made is not None and made.version == world.snapshot().version
        assert world.commit(compactor, ("put", "objects", obj("now"))).commit_time <= world.clock.now
    assert names(world.snapshot()) == ["base", "now"] and errors(world) == []


def test_the_same_process_goes_on_where_its_clock_was_wrong_for_a_while() -> None:
    world = World()
    catalog = world.catalog()
    body = 'message Thing { option (table) = {name: "t.thing" key: "k"}; string k = 1; }'
    catalog.register(messages(proto(body))["Thing"])
    writer = world.writer("w", catalog=catalog)
    world.commit(writer, ("put", "objects", obj("base")))
    world.clock.tick(24 * HOUR)
    world.commit(writer, ("put", "t.thing", {"k": "future"}), app_id="job", app_version=1)
    world.clock.tick(-24 * HOUR)
    voided(world)
    world.commit(writer, ("put", "t.thing", {"k": "now"}), app_id="job", app_version=1)
    assert [row["k"] for row in rows(world.snapshot(), "t.thing")] == ["now"]
    world.commit(writer, ("put", "t.thing", {"k": "again"}))
    assert writer.checkpoint() is not None
    assert [row["k"] for row in rows(world.snapshot(), "t.thing")] == ["again", "now"] and errors(world) == []


def test_changes_do_not_tell_of_it(world: World) -> None:
    voided(world)
    changes = world.catalog().changes(table="objects")
    found = changes.to_arrow()["name"].to_pylist()
    assert sorted(found) == ["base", "kept", "other"]
    assert [name for task in changes.tasks(1) for read in task.read(world.store) for name in read["name"].to_pylist()] == found


@pytest.mark.parametrize("scope", ["own", "all"])
def test_checkpoints_cover_it_and_what_follows_it(world: World, scope: Literal["own", "all"]) -> None:
    voided(world)
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", obj("now")), ("put", "buckets", bucket("b")))
    world.clock.tick()
    with world.writer("w" if scope == "own" else "compactor-1") as writer:
        made = writer.checkpoint(scope=scope)
    assert made is not None
    snapshot = world.snapshot()
    assert len(snapshot.view.checkpoints) == 1 and snapshot.view.checkpoints[0].features >= {"voids"}
    assert {t.writer for t in snapshot.view.tail} == (set() if scope == "all" else {"v", "maintainer-1"})
    assert names(snapshot) == ["base", "kept", "now", "other"]
    assert errors(world) == []
    world.clock.tick(HOUR)
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", obj("later")))
        assert writer.checkpoint() is not None
    assert names(world.snapshot()) == ["base", "kept", "later", "now", "other"]
    coverage = world.snapshot().view.checkpoints[0].coverage["w"]
    assert coverage.newest_commit_time <= world.clock.now
    world.clock.tick(48 * HOUR)
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", obj("much later")))
        writer.checkpoint()
    assert "future" not in names(world.snapshot()) and errors(world) == []


def test_a_checkpoint_that_does_not_know_of_a_void_is_not_used_with_it(world: World) -> None:
    world.clock.tick(25 * HOUR)  # its time has come, and somebody covers it before the void arrives
    with world.writer("compactor-1") as compactor:
        assert compactor.checkpoint(scope="all") is not None
    seen = world.catalog()
    before = seen.snapshot()
    assert names(before) == ["future", "kept", "other"] and len(before.view.checkpoints) == 1
    voided(world)
    for catalog in (seen, world.catalog()):
        for _ in range(2):
            snapshot = catalog.snapshot()
            assert names(snapshot) == ["base", "kept", "other"] and len(snapshot.view.checkpoints) == 0
    assert names(world.snapshot(timestamp=f"@{world.clock.now}")) == ["base", "kept", "other"]
    assert names(world.snapshot(version=world.snapshot().version)) == ["base", "kept", "other"]
    assert names(world.snapshot(version=before.version)) == ["future", "kept", "other"]
    world.clock.tick()
    with world.writer("compactor-1") as compactor:
        assert compactor.checkpoint(scope="all") is not None
    snapshot = seen.snapshot()
    assert names(snapshot) == ["base", "kept", "other"] and len(snapshot.view.checkpoints) == 1


def test_only_a_maintainer_can_void_and_only_a_maintainers_voids_count(world: World) -> None:
    with pytest.raises(InvalidOption, match="maintainer-"):
        world.writer("v").void([void(world)])
    voided(world)
    assert names(world.snapshot()) == ["base", "kept", "other"]
    forged = World(MemoryStore(clock=world.clock))
    forged.clock = world.clock
    for info in world.store.list(""):
        if not info.name.startswith("maintainer-"):
            forged.store.put(info.name, world.store.get(info.name))
    name = next(info.name for info in forged.store.list("v/"))
    t = decode_transaction(forged.store.get(name), name)
    forged.store.put(name, encode_transaction(replace(t, voids=(void(world),)), t.actions, ()))
    assert names(forged.snapshot()) == ["future", "kept", "other"]


def test_an_older_release_refuses_what_is_voided(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    voided(world)
    monkeypatch.setattr("bucketcatalog.format.sealing.KNOWN_FEATURES", frozenset({"runs"}))
    with pytest.raises(UnsupportedFormat, match="'voids'"):
        world.snapshot()


def with_voided(count: int) -> World:
    """A commit of now, and so many of one writer from the future, all of them voided."""
    world = World()
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", obj("base")))
    commit_ahead_and_void(world, count)
    return world


def commit_ahead_and_void(world: World, count: int = 1) -> None:
    """So many commits of ``w`` from the future, which are voided."""
    files = LogFiles(world.store, "default")
    first = max(files.transactions("w")).revision + 1
    world.clock.tick(24 * HOUR)
    with world.writer("w") as writer:
        for n in range(count):
            world.commit(writer, ("put", "objects", obj(f"future{n}")))
    world.clock.tick(-24 * HOUR)
    ahead = [files.transaction("w", head) for head in files.transactions("w", first)]
    world.clock.tick()
    with world.writer("maintainer-1") as maintainer:
        maintainer.void([Void("w", Link(t.revision, t.uuid, t.digest)) for t in ahead])


def test_a_chain_of_transactions_from_the_future_can_be_voided_together() -> None:
    world = with_voided(3)
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", obj("now")))
        assert writer.checkpoint() is not None
    snapshot = world.snapshot()
    assert names(snapshot) == ["base", "now"] and {t.writer for t in snapshot.view.tail} == {"maintainer-1"}
    assert len(snapshot.view.checkpoints[0].voids) == 3 and errors(world) == []


def test_a_void_that_lies_in_the_future_itself_frees_nobody_before_its_time(world: World) -> None:
    """Nobody's commit says that it has read what lies in the future, and so not the void in it."""
    world.clock.tick(12 * HOUR)
    voided(world)
    world.clock.tick(-12 * HOUR)
    with world.writer("w") as writer, pytest.raises(ClockSkew):
        world.commit(writer, ("put", "objects", obj("now")))
    world.clock.tick(12 * HOUR)
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", obj("now")))
    assert names(world.snapshot()) == ["base", "kept", "now", "other"] and errors(world) == []


@pytest.mark.parametrize("how", ["pruned", "cloned"])
def test_a_writer_goes_on_behind_voided_transactions_of_which_the_earlier_is_gone(how: str) -> None:
    world = with_voided(2)
    if how == "pruned":
        world.clock.tick(48 * HOUR)
        world.catalog().prune("0s", grace="0s", dry_run=False, force=True, writer="maintainer-1", clock=world.clock)
    else:
        target = MemoryStore(clock=world.clock)
        with world.writer("maintainer-1") as maintainer:
            clone(world.catalog().database("default"), maintainer, target, None, None, now=world.clock)
        world.store = target
    assert [head.revision for head in LogFiles(world.store, "default").transactions("w")] == [2]
    catalog = world.catalog()
    catalog.snapshot()
    with world.writer("w", catalog=catalog) as writer:
        world.commit(writer, ("put", "objects", obj("now")))
    assert names(world.snapshot()) == ["base", "now"] and errors(world) == []


def test_a_writer_goes_on_behind_a_voided_transaction_where_what_that_follows_was_read_and_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    monkeypatch.setattr("bucketcatalog.clock.now_us", world.clock)
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", obj("base")))
    with world.writer("maintainer-1") as maintainer:
        maintainer.checkpoint(scope="all")  # so that the next one finds it covered long ago
    world.clock.tick(48 * HOUR)
    commit_ahead_and_void(world)
    world.catalog().prune("0s", grace="0s", dry_run=False, force=True, writer="maintainer-1", clock=world.clock)
    assert [head.revision for head in LogFiles(world.store, "default").transactions("w")] == [1]
    catalog = world.catalog()
    catalog.snapshot()  # what lies in the future does not count as read, but what it follows does
    with world.writer("w", catalog=catalog) as writer:
        world.commit(writer, ("put", "objects", obj("now")))
        world.commit(writer, ("put", "objects", obj("then")))
    assert names(world.snapshot()) == ["base", "now", "then"] and errors(world) == []


def test_a_checkpoint_that_voids_what_its_transactions_do_not_is_found_by_verify(world: World) -> None:
    with world.writer("v") as writer:
        world.commit(writer, ("put", "objects", obj("x")))
        writer.checkpoint()
    (checkpoint,) = world.snapshot().view.checkpoints
    name = paths.checkpoint("v", "default", checkpoint.head)
    world.store.put(name, encode_checkpoint(replace(checkpoint, voids=(void(world, "v"),), features=frozenset({"voids"}))))
    assert [f.code for f in world.catalog().verify(deep=True) if f.file == name] == ["DIFFERENT_STATE"]
