"""A clone shows what the version shows, and writers go on there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, CatalogWarning, CorruptionError, HistoryPruned, InvalidOption, MissingObject, TargetNotEmpty
from bucketcatalog.format.records import Boundary
from bucketcatalog.maintain.restore import restore
from bucketcatalog.model import paths
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.write.commit import Committed

from ...kit.cloning import MAINTAINER, at, clone, content, copied_world, shown
from ...kit.world import HOUR, World, names, obj, rows


@pytest.fixture
def world() -> World:
    return copied_world()


@pytest.fixture
def target(world: World) -> MemoryStore:
    return MemoryStore(clock=world.clock)


def test_a_clone_shows_what_the_version_shows_with_the_same_versions(world: World, target: MemoryStore) -> None:
    version = world.snapshot().version
    made = clone(world, target)
    assert (made.version, made.database, made.target) == (version, "default", target.url)
    assert shown(at(world, target)) == shown(at(world, target), version=version) == shown(world, version=version)
    there = at(world, target).snapshot()
    assert {row["name"] for row in rows(there, "tags")} == {"before"}
    assert set(rows(there, "tables")[0]) and there.definitions.stamped == world.snapshot(version=version).definitions.stamped


def test_a_clone_has_its_own_segments_one_checkpoint_and_the_last_transactions(world: World, target: MemoryStore) -> None:
    made = clone(world, target)
    files = content(target)
    kinds = [name.rpartition(".")[2] for name in files if "/newest/" not in name]
    heads = {name for name in files if name.endswith(".txn") and not name.startswith(f"maintainer-{made.tag}/")}
    assert kinds.count("ckpt") == 1 and kinds.count("parquet") == made.segments == 1
    assert {name: files[name] for name in heads} == {name: world.store.get(name) for name in heads}
    assert {name.split("/")[0] for name in heads} == {"w", "v", "compactor-1", MAINTAINER} and made.transactions == 4
    assert sum(len(data) for name, data in files.items() if not name.endswith(".txn")) == made.bytes
    (said,) = [row for row in rows(at(world, target).snapshot(), "log") if row["operation"] == "clone"]
    assert dict(said["metadata"]) == {"source": world.store.url, "version": made.version}


def test_a_plain_writers_checkpoint_is_not_read_to_make_one(tmp_path: Path) -> None:
    """Not even where it cannot be read: what it says nobody can compare once the transactions are gone."""
    catalog = Catalog(tmp_path / "lake")
    with catalog.writer("v") as v:
        with v.transaction() as tx:
            tx.put("objects", obj("a"))
        made = v.checkpoint()
    assert made is not None
    (tmp_path / "lake" / made.name).write_bytes(b"anything")
    with pytest.raises(CorruptionError, match=made.name):
        Catalog(tmp_path / "lake").snapshot()
    Catalog(tmp_path / "lake").clone(tmp_path / "copy")
    assert names(Catalog(tmp_path / "copy").snapshot()) == ["a"]


@pytest.mark.parametrize("past", [False, True])
def test_the_source_keeps_the_version_by_a_tag(world: World, target: MemoryStore, past: bool) -> None:
    made = clone(world, target, "v@0" if past else None)
    (tag,) = [row for row in rows(world.snapshot(), "tags") if row["name"] == made.tag]
    assert tag["version"] == made.version and made.tag.startswith("clone-")
    assert shown(at(world, target)) == shown(world, version="v@0" if past else made.version)


def test_writers_go_on_with_the_next_revision(world: World, target: MemoryStore) -> None:
    clone(world, target)
    there = at(world, target)
    with there.writer() as w, there.writer("v") as v, there.writer("new") as new:
        made = [there.commit(held, ("put", "objects", obj(f"{held.id} went on"))) for held in (w, v, new)]
        assert [committed.version for committed in made] == ["w@2", "v@2", "new@0"]
        with w.transaction(app_id="job", app_version=3) as again:
            again.put("objects", obj("again"))
        assert again.committed is not None and again.committed.version == "w@0"
    assert {"w went on", "v went on", "new went on"} < set(names(there.snapshot())) and "again" not in names(there.snapshot())
    assert there.snapshot().view.forks == ()


def test_a_commit_that_had_not_read_all_of_the_clones_cut_is_refused_there(world: World, target: MemoryStore) -> None:
    """Also the one that the checkpoint of the cut lies beside, and what follows it."""
    made = clone(world, target)
    there = at(world, target)
    with there.writer() as w:
        there.commit(w, ("put", "objects", obj("unaware")))
    for version in ("w@1", "w@2"):
        with pytest.raises(HistoryPruned, match=version):
            there.snapshot(version=version)
    catalog = there.catalog()
    catalog.snapshot()
    with there.writer("v", catalog=catalog) as v:
        aware = there.commit(v, ("put", "objects", obj("aware"))).version
    assert {"unaware", "aware"} < set(names(there.snapshot(version=aware)))
    assert "w@1:" in made.version


@pytest.mark.parametrize("scope", ["own", "all"])
def test_checkpoints_in_a_clone_change_nothing(world: World, target: MemoryStore, scope: Any) -> None:
    clone(world, target)
    there = at(world, target)
    for number in range(3):
        for name in ("w", "v", "compactor-1"):
            with there.writer(name) as held:
                there.commit(held, ("put", "objects", obj(f"{name} {number}")), ("delete", "objects", obj(f"{number:03}")))
            expected = shown(there)
            with there.writer(name if scope == "own" else "compactor-2") as held:
                assert held.checkpoint(scope=scope) is not None
            assert shown(there) == expected
    assert list(there.catalog().verify(deep=True)) == []


def test_the_history_before_is_behind_the_horizon(world: World, target: MemoryStore) -> None:
    made = clone(world, target)
    there = at(world, target)
    newest = world.snapshot(version=made.version).cut.newest_commit_time
    assert shown(there, timestamp=f"@{newest}") == shown(world, version=made.version)
    for how in ({"timestamp": f"@{newest - 1}"}, {"version": "w@0"}, {"version": "v@0"}, {"version": "before"}, {"version": ":"}):
        with pytest.raises(HistoryPruned):
            there.snapshot(**how)
    with pytest.raises(HistoryPruned):
        there.catalog().changes(start="before")
    assert there.catalog().info().horizon == made.version


def test_verify_says_nothing_of_what_was_copied_long_after_it_was_committed(world: World, target: MemoryStore) -> None:
    world.clock.tick(24 * HOUR)
    clone(world, target)
    copied = at(world, target)
    assert list(copied.catalog().verify(deep=True)) == []
    with copied.writer() as w:
        copied.commit(w, ("put", "objects", obj("new")))
    name = max(info.name for info in target.list("w/") if info.name.endswith(".txn"))
    world.clock.tick(HOUR)
    target.put(name, target.get(name))
    assert [(f.code, f.file) for f in copied.catalog().verify(deep=True)] == [("LATE_ARRIVAL", name)]


@pytest.mark.parametrize("damage", ["gone", "truncated"])
def test_a_lost_segment_of_a_last_transaction_is_left_out_where_a_checkpoint_has_its_rows(
    world: World, target: MemoryStore, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr("bucketcatalog.write.staging.INLINE_ROWS", 0)
    with world.writer(MAINTAINER) as held:
        restore(world.catalog().database("default"), held, "objects", None, "before", skip_collected=False)
    (name,) = [name for name in content(world.store) if name.startswith(f"{MAINTAINER}/") and name.endswith(".parquet")]
    whole = world.store.get(name)

    def lose() -> None:
        if damage == "gone":
            world.store.delete(name)
        else:
            world.store.put(name, whole[: len(whole) // 2])

    lose()
    before = content(world.store)
    with pytest.raises(CorruptionError, match=name):
        clone(world, target)
    assert content(target) == {} and content(world.store) == before
    world.store.put(name, whole)
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    lose()
    expected = shown(world)
    with pytest.warns(CatalogWarning, match=name):
        made = clone(world, target)
    there = at(world, target)
    assert shown(there) == expected and name not in content(target)
    assert made.segments == len([name for name in content(target) if name.endswith(".parquet")]) == 1
    assert [f.file for f in there.catalog().verify() if f.severity.value == "error"] == [name]
    world.catalog().repair(dry_run=False, writer="maintainer-2", clock=world.clock)
    again = MemoryStore(clock=world.clock)
    with pytest.warns(CatalogWarning, match=name):
        clone(world, again, made.version)
    assert shown(at(world, again)) == expected
    with there.writer(MAINTAINER) as held:
        held.tag("goes-on")


def test_segments_that_the_last_transactions_name_go_along(
    world: World, target: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketcatalog.write.staging.INLINE_ROWS", 0)
    with world.writer(MAINTAINER) as held:
        restored = restore(world.catalog().database("default"), held, "objects", None, "before", skip_collected=False)
    assert restored.committed is not None
    (head,) = world.catalog().database("default").files.at_revision(MAINTAINER, int(restored.committed.partition("@")[2]))
    (named,) = world.catalog().database("default").files.transaction(MAINTAINER, head).segments
    name = paths.segment(named.writer, "default", named.uuid)
    whole = world.store.get(name)
    world.store.put(name, whole + bytes(9))
    made = clone(world, target)
    assert content(target)[name] == whole, "as much of it as is referred to"
    assert made.segments == len([name for name in content(target) if name.endswith(".parquet")])
    assert made.bytes == sum(info.size for info in target.list("") if not info.name.endswith(".txn"))
    there = at(world, target)
    assert list(there.catalog().verify(deep=True)) == [] and shown(there) == shown(world, version=made.version)
    world.store.delete(name)
    again = MemoryStore("memory://again", clock=world.clock)
    before = content(world.store)
    with pytest.raises(MissingObject, match=name):
        clone(world, again, made.version)
    assert (content(world.store), content(again)) == (before, {})


def test_a_clone_can_be_cloned(world: World, target: MemoryStore) -> None:
    clone(world, target)
    there = at(world, target)
    with there.writer() as w:
        there.commit(w, ("put", "objects", obj("later")))
    second = MemoryStore(clock=world.clock)
    made = clone(there, second)
    assert shown(at(world, second)) == shown(there, version=made.version) and "later" in names(at(world, second).snapshot())


def test_the_data_boundary_goes_along(world: World, target: MemoryStore) -> None:
    with world.writer(MAINTAINER) as held:
        held.bound("collect", Boundary(data=world.clock.now, settled=world.clock.now))
    clone(world, target)
    there = at(world, target).snapshot()
    assert [(b.data, b.horizon.heads) for c in there.view.checkpoints for b in c.boundaries] == [
        (world.clock.now - 1_000_000, {})
    ]


@pytest.mark.filterwarnings("ignore::bucketcatalog.CatalogWarning")
def test_forked_timelines_are_cloned_and_can_go_on(world: World, target: MemoryStore) -> None:
    first, second = world.writer("u"), world.writer("u")
    for number in range(3):
        world.commit(first, ("put", "objects", obj(f"first {number}")))
    world.commit(second, ("put", "objects", obj("second")))
    made = clone(world, target)
    assert shown(at(world, target)) == shown(world, version=made.version)
    there = at(world, target)
    with there.writer("u") as u:
        there.commit(u, ("put", "objects", obj("went on")))
    assert {"first 2", "second", "went on"} < set(names(there.snapshot()))


# What is there already.


def test_a_place_with_the_database_is_refused_and_left_as_it_is(world: World, target: MemoryStore) -> None:
    with at(world, target).writer("x") as x:
        world.commit(x, ("put", "objects", obj("other")))
    before, source = content(target), content(world.store)
    with pytest.raises(TargetNotEmpty):
        clone(world, target)
    assert content(target) == before and content(world.store) == source
    with pytest.raises(TargetNotEmpty):
        clone(world, world.store)


def test_another_database_is_not_in_the_way(world: World, target: MemoryStore) -> None:
    with at(world, target).writer("w", database="other") as x:
        world.commit(x, ("put", "objects", obj("other")))
    clone(world, target)
    assert names(at(world, target).snapshot(database="other")) == ["other"]
    assert "new" in names(at(world, target).snapshot(database="default"))


def test_the_same_again_changes_nothing_and_another_version_is_refused(world: World, target: MemoryStore) -> None:
    made = clone(world, target)
    files = content(target)
    for version in (None, made.version, made.tag):
        again = clone(world, target, version)
        assert (again.version, again.tag, again.bytes) == (made.version, made.tag, 0)
    assert content(target) == files
    with world.writer() as w:
        world.commit(w, ("put", "objects", obj("later")))
    for version in (None, "w@0"):
        with pytest.raises(TargetNotEmpty, match=made.version.partition("@")[0]):
            clone(world, target, version)
    assert clone(world, target, made.version).bytes == 0 and content(target) == files


def test_nothing_cannot_be_cloned(world: World, target: MemoryStore) -> None:
    with pytest.raises(InvalidOption):
        clone(world, target, ":")
    assert content(target) == {}


def test_a_clone_is_known_again_by_its_version_after_a_prune_at_the_source(
    world: World, target: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bucketcatalog.clock.now_us", world.clock)
    made = clone(world, target)
    with world.writer(MAINTAINER) as held:
        for number in range(4):
            world.clock.tick(HOUR)
            held.tag(f"t{number}")
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    for _ in range(2):
        world.clock.tick(48 * HOUR)
        pruned = world.catalog().prune("24h", dry_run=False, writer="maintainer-2", clock=world.clock)
    assert any(file.name.startswith(f"{MAINTAINER}/") for file in pruned.files)
    with pytest.raises(TargetNotEmpty, match=made.version):
        clone(world, target)
    again = clone(world, target, made.version)
    assert (again.version, again.bytes) == (made.version, 0)


def test_a_clone_whose_source_had_tags_is_pruned_and_says_which_tags_name_nothing_there(
    world: World, target: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one cut a head is not in the clone, of the other one all heads are, and nothing before them."""
    monkeypatch.setattr("bucketcatalog.clock.now_us", world.clock)
    with world.writer("alone") as alone, world.writer(MAINTAINER) as held:
        for number in range(3):
            world.commit(alone, ("put", "objects", obj(f"alone{number}")))
        cut = held.tag("heads", version="alone@2").version
        held.tag("dropped", version="alone@1")
        held.drop_tag("dropped")
    clone(world, target)
    there = at(world, target)
    assert cut.startswith("alone@2:") and "," not in cut
    assert [int(name.split("/")[3]) for name in content(target) if name.startswith("alone/") and name.endswith(".txn")] == [2]
    with there.writer() as w:
        there.commit(w, ("put", "objects", obj("of the clone")))
    with there.writer(MAINTAINER) as held:
        own = held.tag("own").version
    there.clock.tick(HOUR)
    with there.writer() as w, there.writer("compactor-1") as compactor:
        there.commit(w, ("put", "objects", obj("more")))
        compactor.checkpoint(scope="all")
    expected, tagged = shown(there), shown(there, version="own")
    told = []
    there.clock.tick(48 * HOUR)
    for dry_run in (True, False, True, False):
        told.append(there.catalog().prune("24h", dry_run=dry_run, writer="maintainer-2", clock=there.clock))
        there.clock.tick(25 * HOUR if not dry_run else 0)
    assert {pruned.unreadable for pruned in told} == {("before", "heads")}
    assert [pruned.tags for pruned in told] == [(own,), (own,), (), ()]
    assert told[2].files == told[3].files != ()
    assert shown(there) == expected and shown(there, version="own") == tagged
    assert "error" not in {finding.severity.value for finding in there.catalog().verify()}
    with pytest.raises(HistoryPruned) as error:
        there.snapshot(version="before")
    assert "'own'" in error.value.next_step, "the one tag that can be read"


def test_what_a_clone_does_not_have_names_no_tag_of_the_source(world: World, target: MemoryStore) -> None:
    clone(world, target)
    there = at(world, target)
    assert {row["name"] for row in rows(there.snapshot(), "tags")} == {"before"}
    assert "error" not in {finding.severity.value for finding in there.catalog().verify()}
    for version in ("before", "v@0"):
        with pytest.raises(HistoryPruned) as error:
            there.snapshot(version=version)
        assert "tag" not in error.value.next_step


def test_a_tag_of_which_a_file_was_lost_stops_a_prune(world: World) -> None:
    with world.writer("x") as x, world.writer(MAINTAINER) as held:
        for number in range(3):
            world.commit(x, ("put", "objects", obj(f"x{number}")))
        held.tag("lost", version="x@1")
        world.commit(x, ("put", "objects", obj("x3")))
    world.clock.tick(HOUR)
    with world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    (lost,) = [
        name for name in content(world.store) if name.startswith("x/default/transactions/" + "0" * 20) and name.endswith("txn")
    ]
    world.store.delete(lost)
    world.clock.tick(48 * HOUR)
    with pytest.raises(MissingObject, match=lost):
        world.catalog().prune("24h", dry_run=False, writer="maintainer-2", clock=world.clock)


def test_a_place_within_the_source_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    source = Catalog(tmp_path / "lake")
    with source.writer("w") as w, w.transaction() as tx:
        tx.put("objects", obj("a"))
    (tmp_path / "other").symlink_to(tmp_path / "lake")
    before = content(source.store)
    for place in ("lake/copy", "lake/w/copy", "other/copy"):
        with pytest.raises(InvalidOption, match="within the catalog"):
            source.clone(tmp_path / place)
    with pytest.raises(TargetNotEmpty):
        source.clone(tmp_path / "lake")
    assert content(source.store) == before
    assert source.clone(tmp_path / "lakeside").rows == 1


def test_large_tables_and_catalogs_on_disk(tmp_path: Path) -> None:
    source = Catalog(tmp_path / "a")
    with source.writer("w") as w:
        for part in range(3):
            with w.transaction() as tx:
                tx.put("objects", pa.Table.from_pylist([obj(f"{n:06}", content_length=n) for n in range(part * 5_000, 20_000)]))
        w.checkpoint()
        with w.transaction() as tx:
            tx.delete("objects", pa.Table.from_pylist([obj(f"{n:06}") for n in range(0, 20_000, 3)]))
    made = source.clone(tmp_path / "b")
    there = Catalog(tmp_path / "b")
    for table in ("objects", "deleted_objects"):
        assert there.snapshot().scan(table).to_arrow().equals(source.snapshot(version=made.version).scan(table).to_arrow())
    assert source.clone(tmp_path / "b").bytes == 0
    with there.writer("w") as w, w.transaction() as again:
        again.put("objects", obj("more"))
    assert isinstance(again.committed, Committed) and again.committed.revision == 4
