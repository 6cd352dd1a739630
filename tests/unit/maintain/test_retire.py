"""Retired writers: they commit no more, and once their timelines are sealed nothing is asked for them, and nothing of theirs is lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bucketcatalog import Catalog, InvalidOption, NotFound, WriterRetired, limits
from bucketcatalog.format.checkpoints import decode_checkpoint, encode_checkpoint
from bucketcatalog.format.records import Retirement
from bucketcatalog.log.timeline import Timeline
from bucketcatalog.maintain.retire import Retired
from bucketcatalog.query.database import Database
from bucketcatalog.query.following import Follower, Portion
from bucketcatalog.store import ObjectInfo
from bucketcatalog.store.wrappers import Counting, Wrapped
from bucketcatalog.write.writer import Writer

from ...kit.pruning import keep_time
from ...kit.world import HOUR, MINUTE, SECOND, World, names, obj, rows

COMPACTOR, OTHER, MAINTAINER = "compactor-1", "compactor-2", "maintainer-1"
ALL = ["new-a", "new-b", "old-a", "old-b"]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Two writers that committed an hour ago, each of which has a checkpoint of its own."""
    world = World.counting()
    keep_time(world, monkeypatch)
    for name in ("old", "new"):
        writer = world.writer(name)
        world.commit(writer, ("put", "objects", obj(f"{name}-a")))
        world.commit(writer, ("put", "objects", obj(f"{name}-b")))
        writer.checkpoint()
        writer.close()
    world.clock.tick(HOUR)
    return world


def retire(world: World, *writers: str, by: str = COMPACTOR) -> Retired:
    return world.catalog().retire(writers, writer=by, dry_run=False, clock=world.clock)


def seal(world: World, *writers: str) -> None:
    retire(world, *writers)
    world.clock.tick(limits.SEALED_AFTER)
    assert all(each.sealed for each in retire(world, *writers).writers)


def asked_for(world: World, writer: str, catalog: Catalog | None = None) -> int:
    """How many requests below a writer's prefix a snapshot of now takes, of a process that has read nothing unless one is given."""
    assert isinstance(world.store, Counting)
    before = world.store.names.copy()
    (catalog or world.catalog()).snapshot(database="default")
    return sum(count for (_, name), count in (world.store.names - before).items() if name.startswith(f"{writer}/"))


def is_retired(world: World, writer: str) -> bool:
    (found,) = (row["retired"] for row in rows(world.snapshot(), "writers") if row["writer"] == writer)
    return bool(found)


def of_another_release(world: World, monkeypatch: pytest.MonkeyPatch, catalog: Catalog | None = None) -> Writer:
    """The writer that is retired, opened before, by a release that does not look whether it was."""
    opened = world.writer("old", catalog=catalog)
    monkeypatch.setattr(Timeline, "_refuse_retired", lambda self, makers: None)
    return opened


def test_nothing_is_asked_for_a_sealed_writer_and_its_rows_are_there(world: World) -> None:
    follower = world.catalog()
    follower.snapshot()
    assert asked_for(world, "old") == 3 and asked_for(world, "old", follower) == 1
    seal(world, "old")
    assert asked_for(world, "new") > 0 and asked_for(world, "old") == 0
    assert names(world.snapshot()) == ALL
    follower.snapshot()  # which finds the checkpoint
    assert asked_for(world, "old", follower) == 0 and asked_for(world, "new", follower) == 1
    assert is_retired(world, "old") and not is_retired(world, "new")


def test_until_it_is_sealed_a_writer_is_asked_for(world: World) -> None:
    found = retire(world, "old")
    assert [(each.retired, each.sealed) for each in found.writers] == [(True, False)]
    assert found.seals_at is not None and abs(found.seals_at - world.clock.now - limits.SEALED_AFTER) < MINUTE
    assert asked_for(world, "old") == 3 and is_retired(world, "old")
    world.clock.tick(limits.SEALED_AFTER - MINUTE)
    assert [each.sealed for each in retire(world, "old").writers] == [False]
    world.clock.tick(MINUTE)
    assert [each.sealed for each in retire(world, "old").writers] == [True]


def test_without_a_yes_nothing_is_written(world: World) -> None:
    before = [info.name for info in world.store.list("")]
    found = world.catalog().retire("old")
    assert [(each.writer, each.revision, each.retired) for each in found.writers] == [("old", 1, False)]
    assert found.checkpoint is None and [info.name for info in world.store.list("")] == before


def test_of_one_that_is_sealed_nothing_is_written_again(world: World) -> None:
    seal(world, "old")
    before = [info.name for info in world.store.list("")]
    found = retire(world, "old")
    assert found.writers[0].sealed and found.seals_at is None and [info.name for info in world.store.list("")] == before


@pytest.mark.parametrize("makers", [(COMPACTOR, OTHER, COMPACTOR), (MAINTAINER, OTHER), (OTHER, MAINTAINER)])
def test_later_checkpoints_of_everybody_seal_it_and_go_on_saying_so_whoever_makes_them(
    world: World, makers: tuple[str, ...]
) -> None:
    retire(world, "old")
    world.clock.tick(limits.SEALED_AFTER)
    for maker in makers:
        world.commit(world.writer("new"), ("put", "objects", obj(f"after-{maker}")))
        world.writer(maker).checkpoint(scope="all")
        assert asked_for(world, "old") == 0 and is_retired(world, "old"), maker
        with pytest.raises(WriterRetired):
            world.writer("old")


def test_who_opens_a_retired_writer_is_told(world: World) -> None:
    retire(world, "old")
    with pytest.raises(WriterRetired, match="another writer id") as told:
        world.writer("old")
    assert told.value.code == "WRITER_RETIRED"
    world.writer("old-2").close()


def test_who_has_one_open_is_told_within_half_a_minute_although_it_reads_nothing(world: World) -> None:
    opened = world.writer("old")
    retire(world, "old")
    world.clock.tick(limits.LOOK_WITHIN)  # and the second that the commit itself takes
    with pytest.raises(WriterRetired):
        world.commit(opened, ("put", "objects", obj("late")))
    assert names(world.snapshot()) == ALL


def test_who_has_one_open_and_has_looked_since_is_told_at_its_next_commit(world: World) -> None:
    catalog = world.catalog()
    opened = world.writer("old", catalog=catalog)
    retire(world, "old")
    catalog.snapshot()
    with pytest.raises(WriterRetired):
        world.commit(opened, ("put", "objects", obj("late")))


def test_what_was_committed_while_it_was_retired_is_covered_before_it_is_sealed(world: World) -> None:
    opened = world.writer("old")
    retire(world, "old")
    world.commit(opened, ("put", "objects", obj("late")))
    assert names(world.snapshot()) == sorted([*ALL, "late"])
    world.clock.tick(limits.SEALED_AFTER)
    world.writer(OTHER).checkpoint(scope="all")
    assert asked_for(world, "old") == 0 and names(world.snapshot()) == sorted([*ALL, "late"])


def test_a_commit_from_the_future_keeps_a_timeline_from_being_sealed(world: World) -> None:
    opened = world.writer("old")
    retire(world, "old")
    ahead = World(world.store)
    ahead.clock.now = world.clock.now + 50 * SECOND
    ahead.commit(opened, ("put", "objects", obj("late")))
    world.clock.tick(limits.SEALED_AFTER)
    retire(world, "old")
    assert names(world.snapshot()) == sorted([*ALL, "late"])


def test_what_another_release_commits_all_the_same_comes_to_light(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = of_another_release(world, monkeypatch)
    seal(world, "old")
    committed = world.commit(opened, ("put", "objects", obj("late")))
    assert names(world.snapshot()) == ALL
    world.clock.tick()
    assert "late" in names(world.snapshot(timestamp=f"@{committed.commit_time}"))
    assert "late" in names(world.snapshot(version=f"old@{committed.revision}"))
    assert "late" in names(world.catalog().database("default").of_trusted().look())  # as who deletes sees it
    (told,) = [finding for finding in world.catalog().verify() if finding.code == "BEHIND_A_SEAL"]
    assert told.file.startswith("old/default/transactions/") and "checkpoint(scope='all')" in told.remedy
    start = world.snapshot().cut
    world.writer(COMPACTOR).checkpoint(scope="all")
    assert not [finding for finding in world.catalog().verify() if finding.code == "BEHIND_A_SEAL"]
    assert names(world.snapshot()) == sorted([*ALL, "late"])
    database = Database(world.store, "default")
    by = Follower(database, database.look().table("objects"))
    met = [t.writer for t in by.transactions(start, by.end_of(start, Portion(transactions=100)))]
    assert met.count("old") == 1


def test_what_a_process_has_read_of_it_it_does_not_forget(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = of_another_release(world, monkeypatch)
    seal(world, "old")
    committed = world.commit(opened, ("put", "objects", obj("late")))
    catalog = world.catalog()
    catalog.snapshot(version=f"old@{committed.revision}")
    catalog.snapshot()
    assert catalog.database("default").seen.newest_revision("old") == committed.revision
    world.commit(world.writer("new", catalog=catalog), ("put", "objects", obj("made of it")))
    assert names(world.snapshot()) == sorted([*ALL, "late", "made of it"])


def test_a_time_before_a_writer_was_retired_shows_what_it_had_then(world: World) -> None:
    then = f"@{world.clock.now}"
    seal(world, "old")
    assert names(world.snapshot(timestamp=then)) == ALL


def test_a_writer_that_has_committed_lately_is_not_retired(world: World) -> None:
    world.commit(world.writer("old"), ("put", "objects", obj("c")))
    world.clock.tick(12 * MINUTE)
    with pytest.raises(InvalidOption, match="has committed 12m ago"):
        retire(world, "new", "old")
    assert not is_retired(world, "new")
    world.clock.tick(MINUTE)
    retire(world, "new", "old")
    assert is_retired(world, "old") and is_retired(world, "new")


@pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")
def test_a_forked_writer_has_to_be_joined_first(world: World) -> None:
    one, two = world.writer("old"), world.writer("old")
    for writer, name in ((one, "c"), (two, "d")):
        world.commit(writer, ("put", "objects", obj(name)))
    world.clock.tick(HOUR)
    with pytest.raises(InvalidOption, match="is forked") as told:
        retire(world, "old")
    assert "join=[" in told.value.next_step


def test_who_is_not_there_and_who_speaks_for_others_are_refused_by_name(world: World) -> None:
    world.writer(OTHER).checkpoint(scope="all")
    world.clock.tick(HOUR)
    with pytest.raises(NotFound, match="No writer 'none'"):
        retire(world, "old", "none")
    with pytest.raises(InvalidOption, match=OTHER):
        retire(world, OTHER)
    with pytest.raises(InvalidOption, match="compactor-"):
        world.writer(MAINTAINER).checkpoint(scope="all", retire=["old"])
    with pytest.raises(InvalidOption, match="are not a list"):
        world.catalog().retire([7])  # type: ignore[list-item]
    assert not is_retired(world, "old")


def test_a_plain_writer_retires_nobody(world: World) -> None:
    writer = world.writer("new")
    world.commit(writer, ("put", "objects", obj("c")))
    made = writer.checkpoint()
    assert made is not None
    claims = (Retirement("new", 1, sealed=True), Retirement("old", 1, sealed=True))
    world.store.put(
        made.name, encode_checkpoint(replace(decode_checkpoint(world.store.get(made.name), made.name), retired=claims))
    )
    assert not is_retired(world, "old") and not is_retired(world, "new")
    world.writer("new").close()


def test_history_behind_a_retired_writer_is_pruned_and_its_rows_stay(world: World) -> None:
    seal(world, "old")
    world.clock.tick(48 * HOUR)
    world.commit(world.writer("new"), ("put", "objects", obj("c")))
    world.clock.tick(HOUR)
    for _ in range(3):
        world.catalog().prune("1h", writer=MAINTAINER, dry_run=False, clock=world.clock)
        world.clock.tick(48 * HOUR)
    assert not list(world.store.list("old/default/transactions/00000000000000000000/"))
    assert names(world.snapshot()) == sorted([*ALL, "c"]) and asked_for(world, "old") == 0
    with pytest.raises(WriterRetired):
        world.writer("old")


@pytest.mark.parametrize("maker", [OTHER, MAINTAINER])
def test_a_damaged_checkpoint_of_somebody_else_keeps_nobody_from_committing(world: World, maker: str) -> None:
    opened = world.writer("new")
    made = world.writer(maker).checkpoint(scope="all")
    assert made is not None
    world.store.put(made.name, b"x" * 100)
    world.clock.tick(HOUR)
    committed = world.commit(opened, ("put", "objects", obj("c")))
    assert committed.revision == 2


def test_a_damaged_checkpoint_of_a_maintainer_keeps_nobody_from_opening_a_writer(world: World) -> None:
    made = world.writer(MAINTAINER).checkpoint(scope="all")
    assert made is not None
    world.store.put(made.name, b"x" * 100)
    world.commit(world.writer("new"), ("put", "objects", obj("c")))


@pytest.mark.parametrize("maker", [COMPACTOR, OTHER])
def test_a_checkpoint_of_its_own_timeline_alone_does_not_hide_whom_a_compactor_retired(world: World, maker: str) -> None:
    opened = world.writer("old")
    retire(world, "old")
    with world.writer(maker) as compactor:
        world.commit(compactor, ("put", "objects", obj("of its own")))
        compactor.checkpoint()
    world.clock.tick(MINUTE)
    with pytest.raises(WriterRetired):
        world.commit(opened, ("put", "objects", obj("late")))
    with pytest.raises(WriterRetired):
        world.writer("old")


def test_who_could_not_read_that_it_is_retired_is_not_sealed_while_it_commits(world: World) -> None:
    opened = world.writer("old")
    made = retire(world, "old").checkpoint
    assert made is not None
    data = world.store.get(made.name)
    world.store.put(made.name, b"x" * 100)
    world.clock.tick(limits.SEALED_AFTER)
    world.commit(opened, ("put", "objects", obj("late")))
    world.store.put(made.name, data)
    world.commit(world.writer("new"), ("put", "objects", obj("c")))
    world.writer(OTHER).checkpoint(scope="all")
    assert asked_for(world, "old") > 0
    world.commit(opened, ("put", "objects", obj("later")))  # within half a minute of its last look
    assert {"late", "later"} <= {*names(world.snapshot())}
    world.clock.tick(limits.SEALED_AFTER)
    with pytest.raises(WriterRetired):
        world.commit(opened, ("put", "objects", obj("too late")))
    assert retire(world, "old").writers[0].sealed


def test_a_look_is_as_old_as_its_beginning(world: World) -> None:
    class Slow(Wrapped):
        """Opening a writer takes half a minute between the look at what is retired and the listing of its timeline."""

        def list(self, prefix: str, *, after: str = "", limit: int | None = None) -> Iterator[ObjectInfo]:
            if prefix == "old/default/transactions/":
                world.clock.tick(limits.LOOK_WITHIN)
                retire(world, "old")
            return self.inner.list(prefix, after=after, limit=limit)

    opened = Catalog(Slow(world.store)).writer("old", clock=world.clock)
    with pytest.raises(WriterRetired):
        world.commit(opened, ("put", "objects", obj("late")))


def test_a_machine_that_has_slept_looks_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = world.writer("old")
    stopped = world.clock.now / SECOND
    monkeypatch.setattr("bucketcatalog.clock.monotonic", lambda: stopped)
    retire(world, "old")
    world.clock.tick(HOUR)
    with pytest.raises(WriterRetired):
        world.commit(opened, ("put", "objects", obj("late")))


@pytest.mark.parametrize("given", [[7], b"old", None])
def test_what_names_no_writers_is_refused(world: World, given: Any) -> None:
    with pytest.raises(InvalidOption):
        world.writer(COMPACTOR).checkpoint(scope="all", retire=given)
