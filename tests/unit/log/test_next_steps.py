"""What an error says to do next is a command that helps: without each file that it offers to set aside, alone, readers come past damage."""

from __future__ import annotations

import re

import pytest

from bucketcatalog import BucketCatalogError, CatalogWarning, CorruptionError, InvalidOption, MissingObject
from bucketcatalog.model import paths

from ...kit.repairing import done, repair
from ...kit.spoiling import SPOILT, in_turns, newest, spoil
from ...kit.world import World, names, obj

_OFFERED = re.compile(r"catalog\.repair\(set_aside=\['(\S+?)'\], dry_run=False\)")


def said(world: World) -> BucketCatalogError:
    with pytest.raises(BucketCatalogError) as raised:
        names(world.snapshot())
    return raised.value


@pytest.mark.parametrize("kind", [kind for kind in SPOILT if kind != "an unknown feature"])
def test_what_is_offered_to_be_set_aside_helps(kind: str) -> None:
    offered: list[str] = []
    for nth in range(2):
        world = in_turns()
        spoil(world, newest(world, "mallory"), kind)
        offered = _OFFERED.findall(said(world).next_step) or offered
        if nth == 0 and kind == "parents that are not there":
            with pytest.raises(InvalidOption, match="gone"):  # what never was has nothing before it either
                repair(world, set_aside=[offered[nth]], dry_run=False)
        elif nth < len(offered):
            made = repair(world, set_aside=[offered[nth]], dry_run=False)
            assert done(made) == [("set aside", offered[nth])] and made.lost == ()
            assert {"a0", "a1", "a2", "m0"} <= set(names(world.snapshot()))
    assert bool(offered) == (kind != "an unknown event")  # which only a newer release may know


def test_a_link_that_does_not_fit_names_both_files_and_either_can_be_set_aside() -> None:
    world = in_turns()
    follower, parent = newest(world, "mallory"), newest(world, "mallory", 1)
    spoil(world, follower, "another parent's digest")
    error = said(world)
    assert isinstance(error, CorruptionError) and error.message.startswith(parent) and follower in error.message
    assert _OFFERED.findall(error.next_step) == [parent, follower]
    (finding,) = world.catalog().verify()
    assert (finding.code, finding.file) == ("BROKEN_CHAIN", parent) and follower in finding.message


def test_something_that_is_gone_is_set_aside_where_its_timeline_goes_on_else_what_had_read_it() -> None:
    world = in_turns()
    gone, follower = newest(world, "mallory", 1), newest(world, "mallory")
    world.store.delete(gone)
    error = said(world)
    assert isinstance(error, MissingObject) and follower in error.message
    assert _OFFERED.findall(error.next_step) == [gone, follower]
    world = in_turns()
    reader = newest(world, "mallory")
    spoil(world, reader, "reads of nothing")
    error = said(world)
    assert error.message.startswith("nobody/") and reader in error.message and _OFFERED.findall(error.next_step) == [reader]


def test_nothing_is_offered_to_be_set_aside_of_a_checkpoint_or_a_segment() -> None:
    world = in_turns()
    with world.writer("compactor-1") as compactor:
        world.commit(compactor, ("put", "objects", [obj(f"k {n:05}") for n in range(20_000)]))
        compactor.checkpoint(scope="all")
    (checkpoint,) = world.snapshot().view.checkpoints
    segment = next(each.uuid for each in checkpoint.segments if each.run.table == "objects" and each.run.is_of_rows)
    for name in (paths.segment("compactor-1", "default", segment), paths.checkpoint("compactor-1", "default", checkpoint.head)):
        world.store.delete(name)
        world.store.put(name, b"\n")
        error = said(world)
        assert name in error.message and "set_aside" not in error.next_step and "catalog.repair()" in error.next_step
    with pytest.warns(CatalogWarning):
        assert "m2" in names(world.snapshot(ignore_corruption=True))
