"""The suite of the real catalog (parquet_catalog at 2d8656e2e), case by case, for data tables or the log below them, by its names.

What has no meaning here, and why:

- ``create_twice``: a catalog is not created; its first commit is its beginning.
- ``inmem_commit_semantics``: whether a transaction that was dropped leaves state in memory; state is read from the store alone.
- ``wrong_transaction_link_start``: a first transaction has no parents, and with some it is the missing-transaction case.
- ``transaction_handle_debug``: there is no handle of an open transaction; what a commit has made says what ``handle_revision_counter`` and
  ``handle_uuid`` ask.
- ``missing_encoding``, ``broken_encoding``: transactions and checkpoints are two messages, and none says of itself which it is; a file of
  the other kind is ``wrong_encoding_in_...`` below.
- ``missing_start_timestamp``, ``find_last_transaction_timestamp_datetime_broken``: a commit time is a number, which the name repeats; that
  both agree is ``broken_start_timestamp`` below.
- ``wipe_nothing``, ``wipe_normal``, ``wipe_broken_catalog``: nothing wipes a catalog, for nobody may delete what another writer has
  written; a broken one is repaired or rebuilt.
- paths ``from_absolute``, ``relative``: paths are of the store's names, which are relative.

What is elsewhere: ``dump`` ``default_options`` and ``show_parsed_data`` in tests/unit/cli, for any catalog; paths ``is_checkpoint`` and
deserialization errors in tests/unit/model/test_paths.py and test_names.py; the torture test of states, beyond its short histories, in
tests/property/test_data_tables.py.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from bucketcatalog import Catalog, CatalogWarning, ForkDetected, StaleRead
from bucketcatalog.errors import BucketCatalogError, CatalogNotFound, CorruptionError
from bucketcatalog.format.sealing import seal, unseal
from bucketcatalog.store.wrappers import Wrapped
from bucketcatalog.systems.iox.rebuild import rebuild
from bucketcatalog.v1 import log_pb2

from ....kit.data_tables import Lake
from ....kit.pruning import checkpoint, keep_time, prune, put
from ....kit.world import DAY, HOUR, Intervening, World, bucket, stored
from .lost import copy_of


@pytest.fixture
def lake() -> Lake:
    """Three files in three transactions."""
    lake = Lake()
    for value in range(3):
        lake.append(value)
    return lake


def named(lake: Lake, ending: str = ".txn") -> list[str]:
    """The names of log files, by revision."""
    return sorted(info.name for info in lake.store.list("") if info.name.endswith(ending))


def edit(lake: Lake, name: str, change: Callable[[Any], Any]) -> None:
    """Another transaction under its name, whole and with the right checksum."""
    message = log_pb2.Transaction.FromString(unseal(lake.store.get(name), name, "a transaction"))
    change(message)
    lake.store.put(name, seal(message.SerializeToString()))


def refuses(lake: Lake, name: str) -> None:
    """A reader who has read nothing is told of the file, and reads no rows."""
    with pytest.raises(CorruptionError) as caught:
        Lake(lake.store).values()
    assert name.rpartition("/")[2][:36] in caught.value.message or name in caught.value.message


def test_create_empty() -> None:
    lake = Lake()
    with pytest.raises(CatalogNotFound):
        lake.values()
    assert [*lake.store.list("")] == []


def test_store_roundtrip(lake: Lake) -> None:
    before = lake.files()
    assert Lake(lake.store).files() == before
    assert Lake(lake.store).values() == [0, 1, 2]


def test_load_from_empty_store() -> None:
    assert Lake().catalog().databases() == []


def test_missing_transaction(lake: Lake) -> None:
    _, middle, _ = named(lake)
    lake.store.delete(middle)
    with pytest.raises(BucketCatalogError, match=r"w/default/transactions/0*1/|'w'.* 1"):
        Lake(lake.store).values()


def test_transaction_version_mismatch(lake: Lake) -> None:
    name = named(lake)[1]
    edit(lake, name, lambda message: setattr(message, "format_version", 99))
    with pytest.raises(BucketCatalogError, match="99"):
        Lake(lake.store).values()


def test_unsupported_upgrade(lake: Lake) -> None:
    edit(lake, named(lake)[2], lambda message: message.required_features.append("data-tables-2"))
    with pytest.raises(BucketCatalogError, match="data-tables-2"):
        Lake(lake.store).values()


def test_wrong_transaction_revision(lake: Lake) -> None:
    edit(lake, name := named(lake)[0], lambda message: setattr(message, "revision", 42))
    refuses(lake, name)


def test_wrong_transaction_uuid(lake: Lake) -> None:
    other = log_pb2.Transaction.FromString(unseal(lake.store.get(named(lake)[1]), "x", "x")).uuid
    edit(lake, name := named(lake)[0], lambda message: setattr(message, "uuid", other))
    refuses(lake, name)


def test_missing_transaction_uuid(lake: Lake) -> None:
    edit(lake, name := named(lake)[0], lambda message: message.ClearField("uuid"))
    refuses(lake, name)


def test_broken_transaction_uuid(lake: Lake) -> None:
    edit(lake, name := named(lake)[0], lambda message: setattr(message, "uuid", b"foo"))
    refuses(lake, name)


def test_broken_start_timestamp(lake: Lake) -> None:
    edit(lake, name := named(lake)[0], lambda message: setattr(message, "commit_time", message.commit_time + 1))
    refuses(lake, name)


def test_wrong_transaction_link_middle(lake: Lake) -> None:
    edit(lake, named(lake)[1], lambda message: message.ClearField("operation"))
    with pytest.raises(CorruptionError):  # its child names the content that it had
        Lake(lake.store).values()


def test_wrong_transaction_link_broken(lake: Lake) -> None:
    edit(lake, name := named(lake)[2], lambda message: setattr(message.parents[0], "uuid", b"foo"))
    refuses(lake, name)


def test_broken_protobuf(lake: Lake) -> None:
    lake.store.put(name := named(lake)[0], b"foo")
    refuses(lake, name)


def test_wrong_encoding_in_transaction_file(lake: Lake) -> None:
    with lake.catalog().writer("compactor-c") as writer:
        writer.checkpoint(scope="all")
    (kept,) = named(lake, ".ckpt")
    data = lake.store.get(kept)
    for name in named(lake, ".ckpt") + [info.name for info in lake.store.list("compactor-c/default/newest/")]:
        lake.store.delete(name)
    name = next(name for name in named(lake) if name.startswith("w/"))
    lake.store.put(name, data)
    refuses(lake, name)


def test_wrong_encoding_in_checkpoint_file(lake: Lake) -> None:
    with lake.catalog().writer("compactor-c") as writer:
        writer.checkpoint(scope="all")
    (name,) = named(lake, ".ckpt")
    lake.store.put(name, lake.store.get(named(lake)[-1]))
    refuses(lake, name)


def test_fork_transaction(lake: Lake) -> None:
    """Two processes of one id, which see nothing of each other, commit."""
    for side in [Lake(copy_of(lake.store)) for _ in range(2)]:
        with side.catalog().writer("w") as writer, writer.transaction(operation="fork") as tx:
            tx.put("buckets", bucket("x"))
        for info in side.store.list(""):
            lake.store.put(info.name, side.store.get(info.name))
    with pytest.warns(CatalogWarning, match="'w' is forked at revision 3"):
        assert Lake(lake.store).values() == [0, 1, 2]
    with pytest.raises(ForkDetected):
        lake.catalog().snapshot(strict=True)


def test_fork_checkpoint(lake: Lake) -> None:
    """Two processes of one id, which see nothing of each other, commit and write a checkpoint each, of the same revision."""
    sides = [Lake(copy_of(lake.store)) for _ in range(2)]
    for value, side in zip((10, 11), sides, strict=True):
        side.append(value)
        with side.catalog().writer("w") as writer:
            writer.checkpoint()
        for info in side.store.list(""):
            lake.store.put(info.name, side.store.get(info.name))
    assert [int(name.split("/")[3]) for name in named(lake, ".ckpt")] == [3, 3]
    with pytest.warns(CatalogWarning, match="'w' is forked at revision 3"):
        assert Lake(lake.store).values() == [0, 1, 2, 10, 11]
    with pytest.raises(ForkDetected):
        lake.catalog().snapshot(strict=True)


def test_checkpoint(lake: Lake) -> None:
    """Old transactions may be gone where a checkpoint covers them, and what was committed since is read after it."""
    with lake.catalog().writer("compactor-c") as writer:
        writer.checkpoint(scope="all")
    lake.append(3)
    for name in named(lake)[1:3]:
        if name.startswith("w/"):
            lake.store.delete(name)
    assert Lake(lake.store).values() == [0, 1, 2, 3]
    assert len(Lake(lake.store).files()) == 4


def test_delete_predicates(lake: Lake) -> None:
    lake.table().delete_where([("v", "=", 0), ("v", "<", 5)])
    lake.table().delete_where([("v", "!=", 1)])
    with lake.catalog().writer("compactor-c") as writer:
        writer.checkpoint(scope="all")
    fresh = Lake(lake.store)
    assert fresh.values() == [1]
    assert fresh.predicates() == lake.predicates()
    fresh.append(0)
    assert fresh.values() == [0, 1]


def test_handle_revision_counter(lake: Lake) -> None:
    committed = lake.table().append([{"v": 5}])
    assert (committed.revision, committed.version) == (3, "w@3")


def test_handle_uuid(lake: Lake) -> None:
    committed = lake.table().append([{"v": 5}])
    assert named(lake)[-1] == f"w/default/transactions/{3:020}/{committed.uuid}.txn"


def last_commit_time(lake: Lake, **options: Any) -> int:
    """When anybody has committed last, in microseconds."""
    snapshot = Lake(lake.store).catalog().snapshot(**options)
    found = snapshot.scan("writers", columns=["last_commit_timestamp"]).to_arrow()["last_commit_timestamp"]
    return max(found.cast("int64").to_pylist())


def test_find_last_transaction_timestamp_ok(lake: Lake) -> None:
    committed = lake.table().append([{"v": 5}])
    assert last_commit_time(lake) == committed.commit_time


def test_find_last_transaction_timestamp_empty() -> None:
    with pytest.raises(CatalogNotFound):
        last_commit_time(Lake())


def test_find_last_transaction_timestamp_protobuf_broken(lake: Lake) -> None:
    """A transaction's name has its time, which is told where the rest of it is lost."""
    committed = lake.table().append([{"v": 5}])
    lake.store.put(name := named(lake)[-1], b"foo")
    with pytest.raises(CorruptionError, match=str(committed.uuid)):
        last_commit_time(lake)
    with pytest.warns(CatalogWarning, match=f"{name} .* Left out: revision 3 of w"):
        assert last_commit_time(lake, ignore_corruption=True) == committed.commit_time


def test_find_last_transaction_timestamp_checkpoints_only(lake: Lake) -> None:
    committed = lake.table().append([{"v": 5}])
    with lake.catalog().writer("w") as writer:
        writer.checkpoint()
    for name in named(lake):
        lake.store.delete(name)
    assert last_commit_time(lake) == committed.commit_time
    assert Lake(lake.store).values() == [0, 1, 2, 5]


def test_exists_considers_checkpoints(lake: Lake) -> None:
    with lake.catalog().writer("compactor-c") as writer:
        writer.checkpoint(scope="all")
    for name in named(lake):
        lake.store.delete(name)
    assert Lake(lake.store).catalog().databases() == ["default"]


def test_state_add_remove_and_duplicates(lake: Lake) -> None:
    """The short histories of the state torture test; the long ones are tests/property/test_data_tables.py."""
    one = lake.chunks()[0]
    lake.table().remove([one])
    with pytest.raises(BucketCatalogError, match=one):
        lake.table().remove([one])
    with pytest.raises(BucketCatalogError, match="unknown"):
        lake.table().remove(["unknown"])
    assert len(lake.values()) == 2
    lake.append(7)
    assert len(lake.values()) == 3


class TestCleanup:
    def test_empty(self, lake: Lake) -> None:
        assert [*lake.catalog().orphans(older_than="6h", force=True)] == []

    def test_rules(self, lake: Lake) -> None:
        """What a transaction names stays, also when it was removed since; what none names goes, and what is called otherwise stays."""
        (row, removed, _) = lake.files()
        unnamed = row["path"].replace(row["chunk"][:8], "00000000")
        for name in (unnamed, "w/default/data/default/t/other.txt"):
            lake.store.put(name, b"x")
        lake.table().remove([removed["chunk"]])
        found = {orphan.name for orphan in lake.catalog().orphans(older_than="0s", force=True)}
        assert row["path"] not in found and removed["path"] not in found

    def test_with_parallel_transaction(self, lake: Lake) -> None:
        """Who cleans up between the put of a file and its commit leaves it; only what is older than any commit may be late is nobody's."""
        found: list[tuple[int, list[Any]]] = []

        def clean_up() -> None:
            there = len([*lake.store.list("w/default/data/")])
            found.append((there, [*lake.catalog().orphans(dry_run=False, writer="maintainer-1")]))

        Catalog(Intervening(lake.store, "w/default/transactions/", clean_up)).data("t", writer="w").append([{"v": 3}])
        assert found == [(4, [])] and Lake(lake.store).values() == [0, 1, 2, 3]

    def test_with_parallel_transaction_that_is_too_late(self, world: World) -> None:
        """Where the file had become old enough to go the commit is refused: none ever names a file that is not there."""
        table = world.catalog().data("t", writer="w", database="default", clock=world.clock)
        table.append([{"v": 0}])

        class Slow(Wrapped):
            def put(self, name: str, data: bytes) -> None:
                super().put(name, data)
                if "/data/" in name:
                    world.clock.tick(2 * DAY)
                    assert [each.name for each in world.catalog().orphans(dry_run=False, writer="maintainer-1")] == [name]

        late = Catalog(Slow(world.store)).data("t", writer="w", database="default", clock=world.clock)
        with pytest.raises(StaleRead):
            late.append([{"v": 1}])
        assert Lake(world.store).values() == [0]

    def test_max_files(self, lake: Lake) -> None:
        """There is no such number: files are deleted as they are told, so who takes so many has deleted so many, and goes on later."""
        (row, *_) = lake.files()
        names = {row["path"].replace(row["chunk"][:8], f"0000000{number}") for number in range(5)}
        for name in names:
            lake.store.put(name, b"x")
        for left in (3, 1, 0):
            orphans = lake.catalog().orphans(older_than="0s", force=True, dry_run=False)
            assert {orphan.name for orphan in islice(orphans, 2)} <= names
            assert len(names.intersection(info.name for info in lake.store.list(""))) == left
        assert lake.values() == [0, 1, 2]


class TestRebuild:
    """Whatever else rebuilding has to do with is in test_rebuild.py and test_rebuild_bad_files.py."""

    def lost(self, lake: Lake) -> Lake:
        """The same without its log."""
        return Lake(copy_of(lake.store, without=lambda name: "/data/" not in name))

    def test_successful(self, lake: Lake) -> None:
        found = self.lost(lake)
        assert rebuild(found.catalog(), dry_run=False).files == 3
        assert (found.values(), sorted(found.chunks())) == ([0, 1, 2], sorted(lake.chunks()))

    def test_empty(self) -> None:
        with pytest.raises(CatalogNotFound):
            rebuild(Lake().catalog(), dry_run=False)

    def test_no_metadata(self, lake: Lake) -> None:
        found = self.lost(lake)
        bad = lake.files()[0]["path"]
        found.store.put(bad, b"PAR1 no metadata")
        report = rebuild(found.catalog(), dry_run=False)
        assert [finding.code for finding in report.findings if finding.file == bad] == ["UNREADABLE"]
        assert report.files == 2 and len(found.values()) == 2

    def test_creates_no_checkpoint(self, lake: Lake) -> None:
        found = self.lost(lake)
        rebuild(found.catalog(), dry_run=False)
        assert (len(named(found)), named(found, ".ckpt")) == (1, [])


class TestPrune:
    """The last transaction of a writer that the oldest kept checkpoint covers is kept too: the next one names it."""

    @pytest.fixture
    def history(self, world: World, monkeypatch: pytest.MonkeyPatch) -> World:
        """Transactions 0 to 2, a checkpoint, a day, 3 to 5, a checkpoint, a day, 6."""
        keep_time(world, monkeypatch)
        writer = world.writer("a")
        for number in range(7):
            put(world, writer, f"{number}")
            if number in (2, 5):
                world.clock.tick(HOUR)
                checkpoint(world)
                world.clock.tick(DAY)
        writer.close()
        return world

    def kept(self, world: World, older_than: str) -> tuple[list[int], int]:
        """Which transactions of the writer are left, and how many of the compactor's checkpoints."""
        for _ in range(2):
            prune(world, older_than, grace="0s", force=True)
        revisions = [int(name.split("/")[3]) for name in stored(world, ".txn") if name.startswith("a/")]
        return sorted(revisions), len([name for name in stored(world, ".ckpt") if name.startswith("compactor-1/")])

    def test_empty_store(self, world: World) -> None:
        with pytest.raises(CatalogNotFound):
            prune(world)

    def test_do_delete_wipe_last_checkpoint(self, history: World) -> None:
        checkpoint(history)
        history.clock.tick(DAY)
        assert self.kept(history, "0s") == ([6], 1)

    def test_complex_1(self, history: World) -> None:
        assert self.kept(history, "1h") == ([5, 6], 1)

    def test_complex_2(self, history: World) -> None:
        """[(2, ckpt), (3), (4), (5), (5, ckpt), (6)] is what the real one keeps, and (2) is kept here, where the checkpoint ends."""
        assert self.kept(history, "25h") == ([2, 3, 4, 5, 6], 2)

    def test_keep_all(self, history: World) -> None:
        assert self.kept(history, "30d") == ([*range(7)], 2)
