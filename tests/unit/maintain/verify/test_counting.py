"""What does not count from its writer is told, and what a plain writer's checkpoint says is compared with its own transactions alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bucketcatalog.format.checkpoints import Checkpoint, encode_checkpoint
from bucketcatalog.format.records import Boundary, Link, Void
from bucketcatalog.format.sealing import digest
from bucketcatalog.format.transactions import encode_transaction
from bucketcatalog.log.files import LogFiles
from bucketcatalog.maintain.verify.findings import Finding, Severity
from bucketcatalog.model import paths

from ....kit.fuzzing.parts import closed, opened
from ....kit.repairing import done, errors, repair
from ....kit.world import DAY, HOUR, MINUTE, World, names, obj, stored

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


@pytest.fixture
def world() -> World:
    """Two writers, with 300 rows each and some more, and a compactor's checkpoint between these."""
    world = World()
    for number in range(2):
        for name in ("v", "w"):
            with world.writer(name) as writer:
                world.commit(writer, ("put", "objects", [obj(f"{name}{number} {n:03}") for n in range(300)]))
                world.commit(writer, ("put", "objects", obj(f"{name}{number} more")))
        if not number:
            with world.writer("compactor-1") as compactor:
                compactor.checkpoint(scope="all")
    return world


def told(world: World, **options: Any) -> list[Finding]:
    return list(world.catalog().verify(**options))


def newest(world: World, writer: str) -> Checkpoint:
    files = LogFiles(world.store, "default")
    return files.checkpoint(writer, next(files.checkpoints(writer)))


def put(world: World, checkpoint: Checkpoint) -> str:
    name = paths.checkpoint(checkpoint.writer, "default", checkpoint.head)
    marker = paths.newest_marker(checkpoint.writer, "default", checkpoint.head)
    for of in {name, marker} & set(stored(world)):
        world.store.delete(of)
    world.store.put(name, encode_checkpoint(checkpoint))
    world.store.put(marker, b"")
    return name


def test_a_boundary_and_voids_of_a_plain_writer_are_a_warning(world: World) -> None:
    expected = names(world.snapshot())
    files = LogFiles(world.store, "default")
    *_, before, head = files.transactions("w")
    t, of_v = files.transaction("w", head), files.transaction("v", next(files.transactions("v")))
    name = paths.transaction("w", "default", head)
    forged = replace(
        t,
        boundary=Boundary(horizon=world.snapshot().cut, data=world.clock.now),
        voids=(Void("v", Link(of_v.revision, of_v.uuid, of_v.digest)),),
    )
    world.store.delete(name)
    world.store.put(name, encode_transaction(forged, t.actions, ()))
    assert before.revision == head.revision - 1
    (finding,) = told(world, deep=True)
    assert (finding.code, finding.file, finding.severity) == ("IGNORED_FIELDS", name, Severity.WARNING)
    assert "boundary and voids" in finding.message and "'w'" in finding.message and finding.remedy
    assert names(world.snapshot()) == expected and world.snapshot().view.horizon is None


def test_a_checkpoint_of_everybody_that_names_a_plain_writers_segment_is_passed_over_and_told(world: World) -> None:
    expected = names(world.snapshot())
    with world.writer("w") as writer:
        writer.checkpoint()
    of_w, of_all = newest(world, "w"), newest(world, "compactor-1")
    name = put(world, replace(of_all, segments=(*of_all.segments, *of_w.segments)))
    assert [(f.code, f.file) for f in told(world) if f.severity is Severity.ERROR] == [("FORGED_CHECKPOINT", name)]
    assert names(world.snapshot()) == expected
    assert {c.writer for c in world.snapshot().view.checkpoints} == {"w"}
    world.clock.tick(HOUR)
    assert ("drop", name) in done(repair(world, dry_run=False)) and errors(world) == []
    assert names(world.snapshot()) == expected


def test_who_describes_a_segment_otherwise_than_it_is_is_named_and_the_others_are_not(world: World) -> None:
    for number in range(2):
        with world.writer("w") as w, world.writer("compactor-1") as compactor:
            world.commit(w, ("put", "objects", obj(f"few {number}")))
            compactor.checkpoint(scope="all")
    files = LogFiles(world.store, "default")
    second, first, *_ = (files.checkpoint("compactor-1", head) for head in files.checkpoints("compactor-1"))
    shared = {s.place for s in first.segments} & {s.place for s in second.segments}
    assert shared, "levels go along"
    segments = tuple(replace(s, index_digest=bytes(32)) if s.place in shared else s for s in second.segments)
    name = put(world, replace(second, segments=segments))
    assert {(f.code, f.file) for f in told(world)} == {("WRONG_CHECKPOINT", name)}


def test_a_broken_checkpoint_hides_none_of_the_same_name_of_another_writer(world: World) -> None:
    expected = names(world.snapshot())
    with world.writer("w") as writer:
        writer.checkpoint()
    of_all = newest(world, "compactor-1")
    forged = put(world, replace(newest(world, "w"), uuid=of_all.uuid, revision=of_all.revision, cut=of_all.cut))
    world.clock.tick(HOUR)
    made = repair(world, dry_run=False)
    assert [subject for what, subject in done(made) if what == "drop"] == [forged]
    assert LogFiles(world.store, "default").is_marked("compactor-1", of_all.head)
    assert names(world.snapshot()) == expected and errors(world) == []


def test_a_writers_checkpoints_behind_a_horizon_are_compared_with_what_they_cover(world: World) -> None:
    world.clock.tick(3 * HOUR)
    for number in range(3):
        world.catalog().prune("1h", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
        for name in ("v", "w"):
            with world.writer(name) as writer:
                world.commit(
                    writer, ("put", "objects", obj(f"later {name} {number}")), ("delete", "objects", obj(f"{name}0 00{number}"))
                )
                assert writer.checkpoint() is not None
                world.commit(writer, ("put", "objects", obj(f"again {name} {number}")), app_id="job", app_version=number)
                world.clock.tick(10 * MINUTE)
                assert writer.checkpoint() is not None
        assert told(world, deep=True) == []
        world.clock.tick(3 * HOUR)
    assert [f.code for f in left_out(world)] == ["NOT_COMPARED"], "what transactions that were pruned say nobody knows"
    rest = [c for c in world.snapshot().view.checkpoints if c.coverage[c.writer].first_revision]
    assert {c.writer for c in rest} == {"v", "w"}


def left_out(world: World) -> list[Finding]:
    told: list[Finding] = []
    list(world.catalog().verify(deep=True, left_out=told.append))
    return told


def test_one_behind_a_horizon_that_says_less_is_found(world: World) -> None:
    world.clock.tick(3 * HOUR)
    world.catalog().prune("1h", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", obj("later")), ("delete", "objects", obj("w0 000")))
        assert writer.checkpoint() is not None
    made = newest(world, "w")
    assert made.coverage["w"].first_revision and told(world, deep=True) == [] and left_out(world) == []
    less = {"objects": replace(made.totals["objects"], live=0, tombstones=0, stubs=0)}
    parts = [part for part in made.parts if not (part.run.is_of_rows and part.run.table == "objects")]
    segments = tuple(part for part in parts if part in made.segments)
    inline = tuple(part for part in parts if part in made.inline)
    name = put(world, replace(made, segments=segments, inline=inline, totals={**made.totals, **less}))
    assert ("DIFFERENT_STATE", name) in {(f.code, f.file) for f in told(world, deep=True)}


def test_one_behind_a_horizon_may_know_of_voids_and_says_so_of_what_it_covers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketcatalog.clock.now_us", world.clock)
    world.clock.tick(3 * HOUR)
    world.clock.tick(DAY)
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", obj("future")))
    world.clock.tick(-DAY)
    files = LogFiles(world.store, "default")
    t = files.transaction("w", max(files.transactions("w")))
    with world.writer("maintainer-1") as maintainer:
        maintainer.void([Void("w", Link(t.revision, t.uuid, t.digest))])
    world.catalog().prune("1h", grace="0s", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    for number in range(3):
        world.clock.tick(MINUTE)
        with world.writer("w") as writer:
            world.commit(writer, ("put", "objects", obj(f"now {number}")))
            assert writer.checkpoint() is not None
        assert told(world, deep=True) == []
    assert "future" not in names(world.snapshot()) and "now 2" in names(world.snapshot())
    assert newest(world, "w").ref in {c.ref for c in world.snapshot().view.checkpoints}
    world.clock.tick(2 * DAY)
    with world.writer("w") as writer:
        world.commit(writer, ("put", "objects", obj("much later")))
        assert writer.checkpoint() is not None
    assert told(world, deep=True) == [] and "future" not in names(world.snapshot())


def test_whose_events_differ_is_told_where_a_writer_has_replaced_its_files(world: World) -> None:
    before: bytes | None = None
    for head in list(LogFiles(world.store, "default").transactions("w")):
        name = paths.transaction("w", "default", head)
        message = opened(name, world.store.get(name))
        if before is None:
            del message.blocks[:]
        for link in message.parents if before is not None else ():
            link.digest = before
        data = closed(message)
        before = digest(data)
        world.store.delete(name)
        world.store.put(name, data)
    texts = [finding.message for finding in told(world, deep=True) if finding.code == "DIFFERENT_STATE"]
    assert texts and all("in 300 keys, with events of 'w'." in text for text in texts)


def test_a_checkpoint_with_rows_of_no_table_stops_no_comparison_of_others(world: World) -> None:
    with world.writer("w") as writer:
        writer.checkpoint()
    name = paths.checkpoint("w", "default", newest(world, "w").head)
    message = opened(name, world.store.get(name))
    message.runs[0].run.table = ""
    world.store.delete(name)
    world.store.put(name, closed(message))
    found = told(world, deep=True)
    assert {finding.file for finding in found if finding.severity is Severity.ERROR} == {name}
