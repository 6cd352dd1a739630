"""Rows that checkpoints have folded by a definition that is left out now: they are whole, and no checkpoint is dropped for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bucketcatalog import Catalog, IncompatibleTable, InvalidOption
from bucketcatalog.format.authority import Definitions
from bucketcatalog.format.headers import BlockPlace
from bucketcatalog.format.sealing import seal, unseal
from bucketcatalog.maintain.repair import Repair
from bucketcatalog.maintain.verify import misfits
from bucketcatalog.maintain.verify.checkpoints import check_block
from bucketcatalog.maintain.verify.findings import Finding, Severity
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.uuids import uuid_bytes
from bucketcatalog.store.base import Store
from bucketcatalog.v1 import log_pb2

from ....kit.pruning import keep_time
from ....kit.world import HOUR, World, messages, names, obj, proto, rows, stored

ROW = 'message R {{ option (table) = {{ name: "lab.r" key: "k" }}; string k = 1; optional {} n = 2; }}'
FITS, MISFIT = ROW.format("int64"), ROW.format("string")
SEVERAL = 17_000
"""Rows of a transaction whose events lie in a segment."""


def declared(source: str) -> list[Any]:
    return list(messages(proto(source)).values())


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Rows of alice's in a table and in another, of which a compactor has a checkpoint that says nothing of who was first."""
    world = World()
    keep_time(world, monkeypatch)
    monkeypatch.setattr("bucketcatalog.checkpoint.plan.unwitnessed", lambda definitions, newest: ())
    committed = world.commit_unasked(world.writer("mallory"), declared(MISFIT), ("put", "lab.r", {"k": "m", "n": "x"}))
    name = paths.transaction("mallory", "default", Head(committed.revision, uuid_bytes(committed.uuid)))
    message = log_pb2.Transaction.FromString(unseal(world.store.get(name), name, "a transaction"))
    del message.actions[:]
    world.store.delete(name)
    alice = world.writer("alice")
    given = [{"k": f"{number:05}", "n": number} for number in range(SEVERAL)]
    world.commit_unasked(alice, declared(FITS), ("put", "lab.r", given))
    world.commit(alice, ("put", "objects", [obj(f"{number:05}") for number in range(3_000)]))
    world.clock.tick(HOUR)
    world.writer("compactor-1").checkpoint(scope="all")
    world.store.put(name, seal(message.SerializeToString(deterministic=True)))
    return world


def errors(world: World) -> list[Finding]:
    return [finding for finding in world.catalog().verify(deep=True) if finding.severity is Severity.ERROR]


def repaired(world: World, **options: Any) -> Repair:
    world.clock.tick(HOUR)
    return world.catalog().repair(writer="maintainer-1", clock=world.clock, dry_run=False, **options)


def segment_of(world: World, table: str) -> str:
    (name,) = {
        paths.segment(segment.writer, "default", segment.uuid)
        for checkpoint in world.snapshot().view.checkpoints
        for segment in checkpoint.segments
        if segment.run.table == table and segment.run.is_of_rows
    }
    return name


def damage(world: World, name: str) -> None:
    data = bytearray(world.store.get(name))
    data[100] ^= 255
    world.store.delete(name)
    world.store.put(name, bytes(data))


def markers(world: World) -> list[str]:
    return [name for name in stored(world) if "/newest/" in name]


def test_verify_says_so_of_the_table_and_calls_nothing_damaged(world: World) -> None:
    found = errors(world)
    assert {finding.code for finding in found} == {"MISFIT_EVENTS", "MISFIT_ROWS"}
    (finding,) = [finding for finding in found if finding.code == "MISFIT_ROWS"]
    assert (
        finding.file == "lab.r" and "compactor-1/" in finding.message and "as mallory@0 has defined it first" in finding.message
    )
    assert "set_aside=" in finding.remedy


def test_repair_drops_no_checkpoint_and_setting_the_definition_aside_mends_it(world: World) -> None:
    before = markers(world)
    made = repaired(world)
    assert made.actions == () and {finding.code for finding in made.lost} == {"MISFIT_EVENTS", "MISFIT_ROWS"}
    assert markers(world) == before
    with pytest.raises(IncompatibleTable, match="as mallory@0 has defined it first"):
        rows(world.snapshot(), "lab.r")
    repaired(world, set_aside=["mallory@0"], force=True)
    assert errors(world) == [] and len(rows(world.snapshot(), "lab.r")) == SEVERAL


def test_what_somebody_knew_is_merged_once_for_all_blocks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    given = [{"k": f"more {number:05}", "n": 1} for number in range(SEVERAL)]
    world.commit_unasked(world.writer("alice"), declared(FITS), ("put", "lab.r", given))
    wrong: list[str] = []
    merged: list[object] = []

    def checked(store: Store, place: BlockPlace, definitions: Definitions) -> Iterator[Finding]:
        found = list(check_block(store, place, definitions))
        wrong.extend([place.name] if found else [])
        return iter(found)

    def noted(make: Callable[..., Definitions]) -> Callable[..., Definitions]:
        return lambda *given: merged.append(make) or make(*given)

    monkeypatch.setattr(misfits, "check_block", checked)
    monkeypatch.setattr(misfits, "definitions_within", noted(misfits.definitions_within))
    monkeypatch.setattr(misfits, "Definitions", noted(Definitions))
    assert {finding.code for finding in errors(world)} == {"MISFIT_EVENTS", "MISFIT_ROWS"}
    assert [*Counter(wrong).values()] == [2, 2, 2]  # blocks, of two segments of alice's and one of the compactor's
    assert len(merged) == len({*merged}) == 2  # what she knew, and what the compactor did


def test_what_is_damaged_is_called_so_all_the_same(world: World) -> None:
    name = segment_of(world, "lab.r")
    damage(world, name)
    assert ("DAMAGED_BLOCK", name) in {(finding.code, finding.file) for finding in errors(world)}


def test_where_something_is_damaged_too_repair_says_that_no_checkpoint_can_be_written_instead(world: World) -> None:
    expected, before = names(world.snapshot()), markers(world)
    damage(world, segment_of(world, "objects"))
    (action,) = repaired(world).actions
    assert action.what == "drop" and not action.done and markers(world) == before
    assert "No checkpoint of everybody can be written" in action.obstacle and "mallory@0" in action.obstacle
    made = repaired(world, set_aside=["mallory@0"], force=True)
    assert [action.what for action in made.actions if action.done] == ["set aside", "drop", "checkpoint"]
    assert errors(world) == [] and names(Catalog(world.store).snapshot()) == expected


def test_whose_rows_do_not_fit_is_told_who_defined_the_table_and_is_not_set_aside_as_a_writer(world: World) -> None:
    """It may be the definition that is bad; a single file can be set aside all the same."""
    with pytest.raises(IncompatibleTable) as stopped:
        rows(world.snapshot(), "lab.r")
    assert "catalog.repair(set_aside=['mallory@0'], force=True, dry_run=False)" in stopped.value.next_step
    (name,) = {finding.file for finding in errors(world) if finding.code == "MISFIT_EVENTS"}
    with pytest.raises(InvalidOption, match="Nothing of the writer 'alice' is bad"):
        repaired(world, set_aside=[paths.writer_of(name)])
    assert [action.what for action in repaired(world, set_aside=[name]).actions if action.done][:1] == ["set aside"]
