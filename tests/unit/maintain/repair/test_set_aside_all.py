"""All that is bad of one writer is set aside by its name, in one run that does the rest of a repair too, however many files that are."""

from __future__ import annotations

import time

import pytest

from bucketcatalog import Catalog, CorruptionError, InvalidOption, limits
from bucketcatalog.clock import uuid7
from bucketcatalog.log.files import LogFiles
from bucketcatalog.maintain.evidence import Ends, precedes
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head

from ....kit.aside import errors
from ....kit.repairing import done, listed, repair
from ....kit.spec_reader import new_transaction
from ....kit.spec_reader.writing import name_of_file
from ....kit.spoiling import SPOILT, newest, resealed, restore, spoil
from ....kit.world import HOUR, START, World, names, obj

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


@pytest.fixture
def world() -> World:
    """Alice has committed ``a``; mallory ``m0`` to ``m3``."""
    world = World()
    with world.writer("alice") as alice:
        world.commit(alice, ("put", "objects", obj("a")))
    with world.writer("mallory") as mallory:
        for n in range(4):
            world.commit(mallory, ("put", "objects", obj(f"m{n}")))
    return world


def put_bytes(world: World, count: int, *, forked: bool) -> list[str]:
    """So many transactions of mallory's of one byte, one after the other or all at one revision."""
    made = []
    last = max(LogFiles(world.store, "default").transactions("mallory"))
    for n in range(count):
        revision = last.revision + 1 + (0 if forked else n)
        message = new_transaction("mallory", revision, world.clock.now + n + 1)
        message.database = "default"
        made.append(name_of_file(message, "txn"))
        world.store.put(made[-1], b"\n")
    world.clock.tick(count + 1)
    return made


@pytest.mark.parametrize("kind", SPOILT)
def test_whatever_is_bad_is_set_aside_by_its_writers_name(world: World, kind: str) -> None:
    name = newest(world, "mallory")
    spoil(world, name, kind)
    made = repair(world, set_aside=["mallory"], dry_run=False)
    # who is wrong of two that do not fit, nobody can tell: the first is
    assert done(made) == [("set aside", newest(world, "mallory", 1) if kind == "another parent's digest" else name)]
    assert made.lost == () and errors(world) == [] and {"a", "m0", "m1"} <= set(names(world.snapshot()))


@pytest.mark.parametrize("forked", [False, True])
def test_thousands_are_set_aside_and_read_past_in_seconds(world: World, forked: bool) -> None:
    count = 1_000
    made = put_bytes(world, count, forked=forked)
    began = time.process_time()
    repaired = repair(world, set_aside=["mallory"], dry_run=False)
    assert [name for what, name in done(repaired) if what == "set aside"] == made and repaired.lost == ()
    assert names(world.snapshot()) == ["a", "m0", "m1", "m2", "m3"] and not errors(world)[forked:]
    if not forked:
        with world.writer("mallory") as mallory:
            world.commit(mallory, ("put", "objects", obj("again")))
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    assert "m3" in names(world.snapshot()) and repair(world, dry_run=False).lost == ()
    assert time.process_time() - began < 10


def test_what_stands_behind_many_ends_follows_the_last_few_of_them(world: World) -> None:
    count = limits.FOLLOWED + 20
    first = put_bytes(world, count, forked=True)
    second = put_bytes(world, 2, forked=True)
    repair(world, set_aside=["mallory"], dry_run=False)
    asides = {paths.transaction(ref.writer, "default", ref.head): entry for ref, entry in world.snapshot().view.asides.items()}
    assert asides.keys() == {*first, *second}
    for name in second:
        followed = [paths.transaction("mallory", "default", link.head) for link in asides[name].parents]
        assert followed == sorted(first)[-limits.FOLLOWED :]
    assert names(world.snapshot()) == ["a", "m0", "m1", "m2", "m3"]


def test_what_lies_before_one_that_is_set_aside_and_has_an_earlier_time_is_joined(world: World) -> None:
    """Such a one follows nothing, though each revision has one transaction."""
    message = new_transaction("mallory", 4, START - HOUR)
    message.database = "default"
    world.store.put(name_of_file(message, "txn"), b"x")
    repair(world, set_aside=["mallory"], dry_run=False)
    assert any("OPEN_FORK" in found for found in errors(world))
    world.clock.tick(HOUR)
    made = repair(world, join=["mallory"], dry_run=False)
    assert done(made) == [("join", "mallory")] and errors(world) == []
    with world.writer("mallory") as mallory:
        world.commit(mallory, ("put", "objects", obj("m4")))
    assert names(world.snapshot()) == ["a", "m0", "m1", "m2", "m3", "m4"]


def test_each_that_is_named_by_its_file_is_set_aside_as_quickly(world: World) -> None:
    made = put_bytes(world, 500, forked=False)
    began = time.process_time()
    assert done(repair(world, set_aside=made, dry_run=False)) == [("set aside", name) for name in made]
    assert time.process_time() - began < 5
    files = LogFiles(world.store, "default")
    (entries,) = (files.transaction("maintainer-1", head).asides for head in files.transactions("maintainer-1"))
    assert [[link.revision for link in entry.parents] for entry in entries] == [[n] for n in range(3, 503)]


def test_what_follows_something_that_is_gone_stays_once_that_is_set_aside(world: World) -> None:
    gone = newest(world, "mallory", 1)
    world.store.delete(gone)
    assert done(repair(world, set_aside=["mallory"], dry_run=False)) == [("set aside", gone)]
    assert names(world.snapshot()) == ["a", "m0", "m1", "m3"] and errors(world) == []


def test_others_and_what_is_whole_stay(world: World) -> None:
    of_alice = newest(world, "alice")
    spoil(world, of_alice)
    first, last = newest(world, "mallory", 2), newest(world, "mallory")
    for name in (first, last):
        spoil(world, name)
    made = repair(world, set_aside=["mallory"], dry_run=False)
    assert done(made) == [("set aside", first), ("set aside", last)] and [f.file for f in made.lost] == [of_alice]
    with pytest.raises(CorruptionError, match=of_alice):
        names(world.snapshot())
    assert done(repair(world, set_aside=["alice"], dry_run=False)) == [("set aside", of_alice)]
    assert names(world.snapshot()) == ["m0", "m2"]


def test_a_writer_of_whom_nothing_is_bad_or_who_is_none_is_refused(world: World) -> None:
    name = newest(world, "mallory")
    spoil(world, name)
    before = listed(world.store)
    for text, why in {"alice": "Nothing of the writer 'alice' is bad", "nobody": "nor of a writer"}.items():
        with pytest.raises(InvalidOption, match=why):
            repair(world, set_aside=[text], dry_run=False)
        with pytest.raises(InvalidOption, match=why):
            repair(world, set_aside=["mallory", text], dry_run=False)
    assert listed(world.store) == before
    assert done(repair(world, set_aside=["mallory", name], dry_run=False)) == [("set aside", name)]
    with pytest.raises(InvalidOption, match="Nothing of the writer 'mallory' is bad"):
        repair(world, set_aside=["mallory"], dry_run=False)


def test_what_cannot_be_set_aside_is_told_and_the_others_are(world: World) -> None:
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    world.clock.tick(3 * HOUR)
    world.catalog().prune("1h", grace="1h", writer="maintainer-1", dry_run=False, force=True, clock=world.clock)
    resting = newest(world, "mallory")
    (bad,) = put_bytes(world, 1, forked=False)
    spoil(world, resting)
    dry = repair(world, set_aside=["mallory"])
    made = repair(world, set_aside=["mallory"], dry_run=False)
    for each in (dry, made):
        by_name = {action.subject: action for action in each.actions}
        assert set(by_name) == {resting, bad} and "horizon" in by_name[resting].obstacle and not by_name[bad].obstacle
    assert done(made) == [("set aside", bad)]
    assert [f.file for f in made.lost] == [resting] and "A checkpoint covers it" in made.lost[0].message
    assert names(world.snapshot()) == ["a", "m0", "m1", "m2", "m3"]


def test_one_run_does_the_rest_of_a_repair_too(world: World) -> None:
    """With a damaged checkpoint and a bad file nothing can be read, and what is left of the checkpoint is known without the file only."""
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    with world.writer("mallory") as mallory:
        world.commit(mallory, ("put", "objects", obj("m4")))
    (checkpoint,) = (name for name in listed(world.store) if name.endswith(".ckpt"))
    bad = newest(world, "mallory")
    spoil(world, bad)
    restore(world, checkpoint, b"\n")
    alone = repair(world)
    assert not alone.undecided and [action.what for action in alone.actions if not action.obstacle] == []
    dry = repair(world, set_aside=["mallory"])
    assert dry.undecided and [(action.what, action.subject) for action in dry.actions] == [("set aside", bad)]
    made = repair(world, set_aside=["mallory"], dry_run=False)
    assert done(made) == [("set aside", bad), ("drop", checkpoint), ("checkpoint", "default")]
    assert made.lost == () and not made.undecided and errors(world) == []
    assert names(world.snapshot()) == ["a", "m0", "m1", "m2", "m3"]


def test_other_things_that_are_named_are_done_in_the_same_run(world: World) -> None:
    bad = newest(world, "mallory")
    spoil(world, bad)
    for name in ("x", "y"):
        forked = Catalog(world.store).writer("forked", clock=world.clock)
        with forked, forked.transaction() as tx:
            world.clock.tick()
            tx.put("objects", obj(name))
    first, second = (Catalog(world.store).writer("forked", clock=world.clock) for _ in range(2))
    for writer, name in ((first, "l"), (second, "r")):
        world.clock.tick()
        with writer, writer.transaction() as tx:
            tx.put("objects", obj(name))
    world.clock.tick(2 * HOUR)
    dry = repair(world, set_aside=["mallory"], join=["forked"])
    assert [action.what for action in dry.actions] == ["set aside", "join"] and dry.undecided
    made = repair(world, set_aside=["mallory"], join=["forked"], dry_run=False)
    assert done(made) == [("set aside", bad), ("join", "forked")] and errors(world) == []


def test_two_that_do_not_fit_each_other_are_not_taken_in_together(world: World) -> None:
    parent, child = newest(world, "mallory", 1), newest(world, "mallory")
    data = {name: spoil(world, name) for name in (parent, child)}
    assert len(done(repair(world, set_aside=["mallory"], dry_run=False))) == 2
    restore(world, parent, resealed(data[parent], lambda message: message.operation.metadata.update(x="y")))
    restore(world, child, data[child])
    with pytest.raises(InvalidOption, match="was written after another"):
        repair(world, take_in=[parent, child], dry_run=False)
    restore(world, parent, data[parent])
    assert done(repair(world, take_in=[parent, child], dry_run=False)) == [("take in", parent), ("take in", child)]
    assert names(world.snapshot()) == ["a", "m0", "m1", "m2", "m3"] and errors(world) == []


def head(revision: int, at: int) -> Head:
    return Head(revision, uuid7(at).bytes)


def test_a_timeline_ends_in_what_nothing_follows_before_a_place() -> None:
    root, left, right, late = head(0, 1), head(1, 2), head(1, 3), head(2, 9)
    follows = {root: [], left: [root], right: [root], late: [left]}
    ends = Ends(follows, follows.get, lambda _: True)
    assert [ends.before(place) for place in (head(1, 5), head(2, 5), head(3, 10))] == [[root], [left, right], [right, late]]
    # what lies before it by its revision and not by its time did not end there
    assert ends.before(head(3, 5)) == [left, right] and ends.before(head(3, 1)) == []


def test_what_nobody_can_read_follows_all_that_lies_before_it() -> None:
    root, left, right, unread, gone = head(0, 1), head(1, 2), head(1, 3), head(2, 4), head(2, 5)
    follows = {root: [], left: [root], right: [root]}
    ends = Ends([*follows, unread, gone], follows.get, lambda at: at != gone)
    assert ends.before(head(3, 9)) == [unread]
    assert precedes(root, left) and not precedes(left, right) and not precedes(head(0, 9), left)


def test_the_name_of_a_file_is_no_writers(world: World) -> None:
    assert paths.parse(newest(world, "mallory")) is not None
    with pytest.raises(InvalidOption, match="nor of a writer"):
        repair(world, set_aside=[newest(world, "mallory").rpartition("/")[2]], dry_run=False)


def test_what_a_writers_own_checkpoint_covers_is_told_from_what_one_of_everybody_does(world: World) -> None:
    name = newest(world, "mallory", 1)
    with world.writer("mallory") as mallory:
        mallory.checkpoint()
    world.clock.tick(HOUR)
    spoil(world, name, "a byte")
    (lost,) = repair(world).lost
    assert lost.file == name and "It is its writer's own" in lost.message
    assert names(world.snapshot()) == ["a", "m0", "m1", "m2", "m3"], "readers have its rows"
