"""``repair`` sets bad transactions aside, where it is told to, and takes them in again once they are whole; everything else it refuses."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from bucketcatalog import CorruptionError, InvalidOption, MissingObject, SetAsideError
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head

from ....kit.aside import errors, set_aside, take_in
from ....kit.repairing import done, listed, repair
from ....kit.spoiling import NOWHERE, newest, resealed, restore, spoil
from ....kit.world import World, names, obj, rows


@pytest.fixture
def world() -> World:
    """``w`` has committed ``base``, ``bad`` and ``end``."""
    world = World()
    with world.writer("w") as w:
        for name in ("base", "bad", "end"):
            world.commit(w, ("put", "objects", obj(name)))
    return world


def changed_names(world: World, **options: Any) -> list[str]:
    """The objects whose events are read, at once and by tasks."""
    changes = world.catalog().changes(**options)
    found: list[str] = changes.to_arrow()["name"].to_pylist()
    assert [name for task in changes.tasks(1) for read in task.read(world.store) for name in read["name"].to_pylist()] == found
    return found


def test_a_dry_run_says_what_would_be_done_and_writes_nothing(world: World) -> None:
    name = newest(world, "w", 1)
    spoil(world, name)
    before = listed(world.store)
    (lost,) = repair(world, dry_run=False).lost
    assert lost.file == name and f"catalog.repair(set_aside=[{name!r}], dry_run=False)" in lost.remedy
    (action,) = repair(world, set_aside=[name]).actions
    assert (action.what, action.subject, action.obstacle, action.done) == ("set aside", name, "", False) and action.why
    assert listed(world.store) == before


@pytest.mark.parametrize("by", ["file", "place"])
def test_a_file_is_named_as_errors_print_it_or_by_its_place(world: World, by: str) -> None:
    name = newest(world, "w", 1)
    spoil(world, name)
    made = repair(world, set_aside=[name if by == "file" else "w@1"], dry_run=False)
    assert done(made) == [("set aside", name)] and made.lost == ()
    assert names(world.snapshot()) == ["base", "end"]


def test_what_cannot_be_set_aside_is_refused(world: World) -> None:
    with world.writer("maintainer-2") as maintainer:
        maintainer.tag("t")
    name, gone = newest(world, "w", 1), paths.transaction("w", "default", Head(9, NOWHERE))
    checkpoint = newest(world, "w").replace(".txn", ".ckpt")
    refused = {
        "w@7": "no commit",
        "nobody@0": "no commit",
        "rubbish": "not the name",
        checkpoint: "not the name",
        name.replace("/default/", "/other/"): "not the name",
        newest(world, "maintainer-2"): "maintainer's",
        gone: "nothing on its timeline follows it",
        name: "can be read",
    }
    before = listed(world.store)
    for text, why in refused.items():
        with pytest.raises(InvalidOption, match=why):
            repair(world, set_aside=[text], dry_run=False)
    assert listed(world.store) == before
    set_aside(world, name, force=True)
    with pytest.raises(InvalidOption, match="already"):
        repair(world, set_aside=[name], dry_run=False)
    assert names(world.snapshot()) == ["base", "end"]


def test_what_is_lost_without_a_name_is_not_given_up_unseen(world: World) -> None:
    name = newest(world, "w")
    world.store.delete(newest(world, "w", 1))
    spoil(world, name)
    with pytest.raises(InvalidOption, match="revision 1, which is gone"):
        repair(world, set_aside=[name], dry_run=False)
    set_aside(world, name, force=True)
    assert names(world.snapshot()) == ["base"]


def test_several_are_set_aside_at_once_and_one_by_one(world: World) -> None:
    first, second = newest(world, "w", 1), newest(world, "w")
    data = {name: spoil(world, name) for name in (first, second)}
    made = repair(world, set_aside=[second], dry_run=False)
    assert done(made) == [("set aside", second)] and [f.file for f in made.lost] == [first]
    set_aside(world, first)
    assert names(world.snapshot()) == ["base"] and errors(world) == []
    for name in (second, first):
        restore(world, name, data[name])
        take_in(world, name)
    assert names(world.snapshot(strict=True)) == ["bad", "base", "end"] and errors(world) == []


def test_what_is_not_whole_is_not_taken_in(world: World) -> None:
    name = newest(world, "w", 1)
    data = spoil(world, name)
    set_aside(world, name)
    with pytest.raises(InvalidOption, match="not set aside"):
        repair(world, take_in=["w@0"], dry_run=False)
    with pytest.raises(CorruptionError, match=name):
        repair(world, take_in=[name], dry_run=False)
    other = resealed(data, lambda message: message.operation.metadata.update(x="y"))
    restore(world, name, other)
    with pytest.raises(InvalidOption, match="was written after another one"):
        repair(world, take_in=[name], dry_run=False)
    for change, why in (
        (lambda m: m.reads.add(writer="n").heads.add(revision=1, uuid=NOWHERE), "is gone"),
        (lambda m: setattr(m.parents[0], "digest", bytes(32)), "after another"),
    ):
        restore(world, name, resealed(data, change))
        with pytest.raises(InvalidOption, match=why):
            repair(world, take_in=[name], dry_run=False)
    world.store.delete(name)
    with pytest.raises(MissingObject, match=name):
        repair(world, take_in=[name], dry_run=False)
    restore(world, name, data)
    take_in(world, name)
    assert names(world.snapshot()) == ["bad", "base", "end"]


def test_what_is_still_bad_is_not_taken_in(world: World) -> None:
    name = newest(world, "w")
    spoil(world, name, "an unknown event")
    set_aside(world, name)
    with pytest.raises(InvalidOption, match="unknown kind"):
        repair(world, take_in=[name], dry_run=False)


def test_events_in_segments_come_back_with_it(world: World) -> None:
    with world.writer("w") as w:
        world.commit(w, ("put", "objects", [obj(f"{n:05}") for n in range(20_000)]))
    name = newest(world, "w")
    data = spoil(world, name)
    set_aside(world, name)
    assert len(names(world.snapshot())) == 3
    restore(world, name, data)
    segment = next(info.name for info in world.store.list("w/default/segments/"))
    rest = world.store.get(segment)
    world.store.delete(segment)
    with pytest.raises(InvalidOption, match=segment):
        repair(world, take_in=[name], dry_run=False)
    world.store.put(segment, rest)
    take_in(world, name)
    assert len(names(world.snapshot())) == 20_003


def test_what_refers_to_something_that_is_gone_is_named_and_can_be_set_aside(world: World) -> None:
    name = newest(world, "w")
    spoil(world, name, "reads of nothing")
    with pytest.raises(MissingObject, match=name):
        names(world.snapshot())
    (lost,) = repair(world).lost
    assert lost.code == "MISSING_TRANSACTION" and name in lost.message and "what refers to it" in lost.remedy
    set_aside(world, name)
    assert names(world.snapshot()) == ["bad", "base"] and errors(world) == []


def test_changes_stop_at_what_is_set_aside_unless_it_is_ignored(world: World) -> None:
    start = world.snapshot(version="w@0").version
    name = newest(world, "w", 1)
    data = spoil(world, name)
    set_aside(world, name)
    with pytest.raises(SetAsideError, match=name):
        world.catalog().changes(start=start)
    assert changed_names(world, start=start, ignore_set_aside=True) == ["end"]
    assert changed_names(world, start="w@1") == ["end"]
    assert world.catalog().diff(start=start).to_arrow()["name"].to_pylist() == ["end"]
    restore(world, name, data)
    take_in(world, name)
    assert changed_names(world, start=start) == ["bad", "end"]


def test_it_is_listed_by_damage_by_verify_and_in_the_log(world: World) -> None:
    name = newest(world, "w", 1)
    before = world.snapshot(version="w@0").version
    spoil(world, name)
    set_aside(world, name)
    (row,) = rows(world.snapshot(), "damage")
    assert (row["file"], row["code"], row["writer"]) == (name, "SET_ASIDE", "w") and row["first_revision"] == 1
    assert rows(world.snapshot(version=before), "damage") == []
    assert [f.file for f in world.catalog().verify() if f.code == "SET_ASIDE"] == [name]
    log = {(row["writer"], row["revision"]): row["operation"] for row in rows(world.snapshot(), "log")}
    assert log["w", 1] == "(set aside)" and log["maintainer-1", 0] == "set aside"
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    assert [row["file"] for row in rows(world.snapshot(), "damage")] == [name]


def test_a_checkpoint_that_has_its_rows_is_said_to_be_given_up(world: World) -> None:
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    name = newest(world, "w", 1)
    spoil(world, name)
    (action,) = repair(world, set_aside=[name]).actions
    assert "Checkpoints have its rows" in action.why
    set_aside(world, name)
    assert names(world.snapshot()) == ["base", "end"] and errors(world) == []


def test_files_that_are_pickled_know_what_is_set_aside(world: World) -> None:
    name = newest(world, "w", 1)
    spoil(world, name)
    set_aside(world, name)
    files = world.snapshot().files
    head = LogFiles(world.store, "default").at_revision("w", 1)[0]
    assert pickle.loads(pickle.dumps(files)).transaction("w", head).set_aside
