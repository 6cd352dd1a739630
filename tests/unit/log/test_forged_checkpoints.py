"""Checkpoints forged by who can write below one plain writer's prefix: others' rows are those without them, and verify tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bucketcatalog import BucketCatalogError
from bucketcatalog.format.authority import Definition
from bucketcatalog.format.checkpoints import Checkpoint, Coverage, encode_checkpoint
from bucketcatalog.format.records import Boundary
from bucketcatalog.format.runs import SegmentReference
from bucketcatalog.log.files import LogFiles
from bucketcatalog.maintain.verify.findings import Finding, Severity
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Cut, Head
from bucketcatalog.model.uuids import writer_mark

from ...kit.world import DAY, HOUR, World, bucket, names, obj, rows, stored

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")
FAR = 10**15 - 2
"""About the largest number that a file can name; what names a larger one is refused before it is decoded."""


@pytest.fixture
def world() -> World:
    """Alice and bob have committed rows; mallory too, and has a checkpoint of her own; a compactor has one of everybody."""
    world = World()
    for name in ("alice", "bob", "mallory"):
        with world.writer(name) as writer:
            world.commit(writer, ("put", "objects", [obj(f"{name} {n:04}") for n in range(300)]))
            world.commit(writer, ("put", "objects", obj(f"{name} next")), ("put", "buckets", bucket(name)))
    world.clock.tick(HOUR)
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    for name in ("alice", "bob", "mallory"):
        with world.writer(name) as writer:
            for _ in range(3 if name == "mallory" else 1):  # so many that a checkpoint of them is read rather than they
                world.commit(writer, ("put", "objects", obj(f"{name} later")), ("delete", "objects", obj(f"{name} 0000")))
            if name == "mallory":
                writer.checkpoint()
    return world


def checkpoint_of(world: World, writer: str) -> Checkpoint:
    files = LogFiles(world.store, "default")
    return files.checkpoint(writer, next(files.checkpoints(writer)))


def put(world: World, checkpoint: Checkpoint) -> str:
    """Put a checkpoint and its marker, and return its name."""
    name = paths.checkpoint(checkpoint.writer, "default", checkpoint.head)
    for of in (name, paths.newest_marker(checkpoint.writer, "default", checkpoint.head)):
        if of in stored(world):
            world.store.delete(of)
    world.store.put(name, encode_checkpoint(checkpoint))
    world.store.put(paths.newest_marker(checkpoint.writer, "default", checkpoint.head), b"")
    return name


def of_others(world: World) -> tuple[list[str], list[str], list[dict[str, Any]]]:
    """What alice's and bob's rows and tombstones are, and the tags."""
    snapshot = world.snapshot()
    ended = rows(snapshot, "deleted_objects", ["name"])
    others = [name for name in names(snapshot) if not name.startswith("mallory")]
    return others, [row["name"] for row in ended if not row["name"].startswith("mallory")], rows(snapshot, "tags")


def told(world: World, name: str, **options: Any) -> list[Finding]:
    return [finding for finding in world.catalog().verify(**options) if finding.file == name]


def everybody(world: World, own: Checkpoint) -> Checkpoint:
    """A checkpoint of everybody that holds nothing."""
    of_all = checkpoint_of(world, "compactor-1")
    cut = world.snapshot().cut
    coverage = {w: Coverage(cut.newest_revision(w) + 1, frozenset(), transactions=FAR) for w in cut.heads}
    return replace(own, cut=cut, coverage=coverage, segments=(), inline=(), totals={}, definitions=of_all.definitions)


def with_uuid(writer: str) -> Callable[[World, Checkpoint], Checkpoint]:
    def forge(world: World, own: Checkpoint) -> Checkpoint:
        return replace(everybody(world, own), uuid=checkpoint_of(world, writer).uuid)

    return forge


def claiming(*heads: Head) -> Callable[[World, Checkpoint], Checkpoint]:
    def forge(world: World, own: Checkpoint) -> Checkpoint:
        cut = Cut({**own.cut.heads, "alice": heads})
        alice = Coverage(heads[0].revision + 1, frozenset(), transactions=heads[0].revision)
        return replace(own, cut=cut, coverage={**own.coverage, "alice": alice})

    return forge


def only_coverage_of_alice(world: World, own: Checkpoint) -> Checkpoint:
    return replace(own, coverage={**own.coverage, "alice": Coverage(FAR, frozenset(), transactions=FAR)})


def naming_a_compactors_segment(world: World, own: Checkpoint) -> Checkpoint:
    return replace(own, segments=checkpoint_of(world, "compactor-1").segments, inline=(), totals={})


def forgetting(world: World, own: Checkpoint) -> Checkpoint:
    return replace(own, forgotten_before=world.clock.now)


def of_another_time(world: World, own: Checkpoint) -> Checkpoint:
    return replace(own, uuid=_later(own.uuid, 300 * DAY))


def _later(uuid: bytes, by: int) -> bytes:
    return (int.from_bytes(uuid[:6], "big") + by // 1000).to_bytes(6, "big") + uuid[6:]


FORGED = {
    "everybody": everybody,
    "everybody, with the uuid of a compactor's": with_uuid("compactor-1"),
    "a revision of alice that is far away": claiming(Head(FAR, bytes.fromhex("018bcfe568007000800000000000") + b"al")),
    "coverage of alice alone": only_coverage_of_alice,
    "a compactor's segment": naming_a_compactors_segment,
    "something forgotten": forgetting,
    "another time": of_another_time,
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=list(FORGED))
def test_one_that_says_what_its_writer_cannot_counts_for_nobody(world: World, forge: Callable[..., Checkpoint]) -> None:
    expected = of_others(world)
    name = put(world, forge(world, checkpoint_of(world, "mallory")))
    assert of_others(world) == expected
    for deep in (False, True):
        (finding,) = told(world, name, deep=deep)
        assert (finding.code, finding.severity) == ("FORGED_CHECKPOINT", Severity.ERROR) and "mallory" in str(finding)
    with world.writer("alice") as alice:
        again = world.commit(alice, ("put", "objects", obj("alice again")))
    assert again.revision == 3 and "alice again" in of_others(world)[0]
    assert of_others(world)[0] == sorted([*expected[0], "alice again"])


@pytest.mark.parametrize("forge", FORGED.values(), ids=list(FORGED))
def test_who_prunes_and_repairs_does_so_without_it(world: World, forge: Callable[..., Checkpoint]) -> None:
    expected, before = of_others(world), set(stored(world))
    name = put(world, forge(world, checkpoint_of(world, "mallory")))
    world.clock.tick(3 * HOUR)
    for _ in range(2):
        world.catalog().prune("1h", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
        world.clock.tick(3 * HOUR)
        assert of_others(world) == expected
    assert before - set(stored(world)), "something was pruned"
    world.catalog().repair(writer="maintainer-1", dry_run=False, clock=world.clock)
    assert of_others(world) == expected and [f for f in world.catalog().verify() if f.severity is Severity.ERROR] == []
    assert not any(
        name.rpartition("/")[2].removesuffix(".ckpt") in other for other in stored(world) if "mallory/default/newest" in other
    )


def test_one_with_the_name_of_the_horizons_is_not_the_horizons(world: World) -> None:
    world.clock.tick(3 * HOUR)
    world.catalog().prune("1h", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    expected, horizon = of_others(world), world.snapshot().view.horizon
    assert horizon is not None
    made = replace(
        everybody(world, checkpoint_of(world, "mallory")), uuid=horizon.checkpoint.uuid, revision=horizon.checkpoint.revision
    )
    name = put(world, made)
    assert of_others(world) == expected and [f.code for f in told(world, name)] == ["FORGED_CHECKPOINT"]
    own = replace(made, cut=Cut({"mallory": made.cut.of_writer("mallory")}), coverage={"mallory": made.coverage["mallory"]})
    put(world, own)
    assert of_others(world) == expected
    world.clock.tick(3 * HOUR)
    world.catalog().prune("1h", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    assert of_others(world) == expected and horizon.checkpoint.head in LogFiles(world.store, "default").checkpoints("compactor-1")


def own_segment(world: World, own: Checkpoint, uuid: bytes) -> SegmentReference:
    """A segment of mallory's under that uuid, as a copy of one that she has."""
    reference = next(segment for segment in own.segments if segment.run.is_of_rows)
    data = world.store.get(paths.segment("mallory", "default", reference.uuid))
    if uuid != reference.uuid:
        world.store.put(paths.segment("mallory", "default", uuid), data)
    return replace(reference, uuid=uuid)


def test_a_segment_of_ones_own_that_is_called_as_a_compactors_is_another(world: World) -> None:
    expected, whole = of_others(world), names(world.snapshot())
    own, uuid = checkpoint_of(world, "mallory"), checkpoint_of(world, "compactor-1").segments[0].uuid
    same = own_segment(world, own, uuid)
    others = tuple(segment for segment in own.segments if segment.run != same.run)
    name = put(world, replace(own, segments=(same, *others)))
    for options in ({}, {"version": world.snapshot().version}):
        assert names(world.snapshot(**options)) == whole
    assert told(world, name, deep=True) == [] and of_others(world) == expected
    snapshot = world.snapshot()
    assert len(snapshot.scan("damage").to_arrow()) == 0 and len(snapshot.scan("checkpoints").to_arrow()) == 2
    world.store.delete(paths.segment("mallory", "default", uuid))
    findings = [f for f in world.catalog().verify() if f.code == "MISSING_SEGMENT"]
    assert [f.file for f in findings] == [paths.segment("mallory", "default", uuid)], "and not the compactor's"
    world.clock.tick(3 * HOUR)
    world.catalog().prune("1h", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    assert of_others(world) == expected


def test_what_it_says_of_other_things_than_events_is_left_out_and_told(world: World) -> None:
    with world.writer("maintainer-1") as maintainer:
        maintainer.tag("theirs")
    expected = of_others(world)
    own, of_all = checkpoint_of(world, "mallory"), checkpoint_of(world, "compactor-1")
    (tag,) = world.snapshot().view.tail[-1].tags
    assert tag.name == "theirs"
    forged = replace(
        own,
        tags=(replace(tag, dropped=True), replace(tag, name="more")),
        definitions=(*own.definitions, *(Definition((d.stamp[0], "alice", *d.stamp[2:]), d.table) for d in own.definitions)),
        boundaries=(replace(_boundary(world), horizon=of_all.cut),),
        features=own.features | {"boundary"},
    )
    name = put(world, forged)
    assert of_others(world) == expected and world.snapshot().view.horizon is None
    found = told(world, name)
    assert {(f.code, f.severity) for f in found} == {("IGNORED_FIELDS", Severity.WARNING)}
    assert "boundaries" in found[0].message and "tags" in found[0].message and "definitions" in found[0].message


def _boundary(world: World) -> Boundary:
    stamp = world.snapshot().view.tail[-1].stamp
    return Boundary(data=world.clock.now + HOUR, settled=world.clock.now, stamp=stamp)


def test_one_that_claims_to_cover_very_many_of_ones_own_changes_nothing_for_others(world: World) -> None:
    expected = of_others(world)
    own = checkpoint_of(world, "mallory")
    coverage = {"mallory": replace(own.coverage["mallory"], transactions=FAR)}
    name = put(world, replace(own, coverage=coverage))
    assert of_others(world) == expected
    (finding,) = told(world, name)
    assert finding.code == "WRONG_CHECKPOINT" and f"covers {FAR} transactions" in finding.message


def test_one_of_the_future_is_passed_over_until_then(world: World) -> None:
    expected = of_others(world)
    own = checkpoint_of(world, "mallory")
    (head,) = own.cut.of_writer("mallory")
    ahead = Head(head.revision, _later(head.uuid[:12] + writer_mark("mallory"), 300 * DAY))
    coverage = {"mallory": Coverage(0, frozenset({ahead}), transactions=1)}
    made = replace(own, cut=Cut({"mallory": (ahead,)}), coverage=coverage, uuid=_later(own.uuid, 300 * DAY))
    name = put(world, made)
    assert of_others(world) == expected and made.ref not in {c.ref for c in world.snapshot().view.checkpoints}
    assert "FUTURE_CHECKPOINT" in {f.code for f in told(world, name)}
    with world.writer("alice") as alice:
        world.commit(alice, ("put", "objects", obj("alice again")))


@pytest.mark.parametrize("inline", [True, False])
def test_rows_with_stamps_of_others_are_refused_and_the_others_are_read_on_without_it(world: World, inline: bool) -> None:
    expected = of_others(world)
    own = checkpoint_of(world, "mallory")
    stolen = with_rows_of_everybody(world, own, inline=inline)
    name = put(world, stolen)
    with pytest.raises(BucketCatalogError, match=r"mallory/.*stamps of others than 'mallory'"):
        world.snapshot().scan("buckets" if inline else "objects").to_arrow()
    snapshot = world.snapshot(ignore_corruption=True)
    assert [row for row in names(snapshot) if not row.startswith("mallory")] == expected[0]
    broken = {f.file for f in world.catalog().verify() if f.code == "DAMAGED_BLOCK"}
    assert broken == ({name} if inline else {paths.segment("mallory", "default", s.uuid) for s in stolen.segments})
    world.clock.tick(HOUR)
    world.catalog().repair(writer="maintainer-1", dry_run=False, clock=world.clock)
    assert of_others(world) == expected


def with_rows_of_everybody(world: World, own: Checkpoint, *, inline: bool) -> Checkpoint:
    """Mallory's checkpoint with the compactor's rows in the place of her own: stamps are alice's and bob's too."""
    of_all = checkpoint_of(world, "compactor-1")
    if not inline:
        segments = []
        for reference in of_all.segments:
            data = world.store.get(paths.segment(reference.writer, "default", reference.uuid))
            name = paths.segment("mallory", "default", reference.uuid)
            world.store.put(name, data)
            segments.append(replace(reference, writer="mallory"))
        return replace(own, segments=tuple(segments), inline=(), totals=of_all.totals)
    stolen = tuple(run for run in of_all.inline if run.run.is_of_rows)
    kept = tuple(run for run in own.inline if run.run.table != "buckets")
    return replace(own, inline=(*stolen, *kept), totals={**own.totals, "buckets": of_all.totals["buckets"]})
