"""The suite of the real catalog (parquet_catalog at 2d8656e2e), case by case, for data tables or the log below them, by its names.

What has no meaning here, and why:

- ``create_twice``, ``load_from_empty_store`` as an error of ``new_empty``: a catalog is not created; its first commit is its beginning.
- ``wrong_transaction_link_start``: a first transaction has no parents, and with some it is the missing-transaction case.
- ``missing_encoding``, ``broken_encoding``: transactions and checkpoints are two messages, and none says of itself which it is; a file of
  the other kind is ``wrong_encoding_in_...`` below.
- ``missing_start_timestamp``, ``broken_start_timestamp``, ``datetime_broken``: a commit time is a number, which the uuid repeats; that both
  agree is ``broken_start_timestamp`` below.
- ``transaction_handle_debug``, ``handle_revision_counter``, ``handle_uuid``: there is no handle of an open transaction; what a commit has
  made says them, as the two tests below see.
- ``inmem_commit_semantics``: whether a transaction that was dropped leaves state in memory; state is read from the store alone.
- ``wipe_*``: nothing wipes a catalog, for nobody may delete what another writer has written; a broken one is repaired or rebuilt.
- ``dump``: ``bucketcatalog dump`` is tested with the command line; ``rebuild``: beside this file, ``cleanup``: with collection
  (tests/unit/maintain/gc/test_orphans.py), of which the rules that concern data tables are below.
- paths ``from_absolute``, ``relative``: paths are of the store's names, which are relative; parsing them is test_names.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bucketcatalog import CatalogWarning, ForkDetected
from bucketcatalog.errors import BucketCatalogError, CatalogNotFound, CorruptionError
from bucketcatalog.format.sealing import seal, unseal
from bucketcatalog.v1 import log_pb2

from ....kit.data_tables import Lake
from ....kit.pruning import checkpoint, keep_time, prune, put
from ....kit.world import DAY, HOUR, World, stored


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
    one, other = (lake.catalog().writer("w") for _ in range(2))
    for writer in (one, other):
        with writer.transaction(operation="fork", metadata={"by": str(id(writer))}):
            pass
    with pytest.warns(CatalogWarning, match="'w' is forked at revision 3"):
        assert Lake(lake.store).values() == [0, 1, 2]
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


def test_find_last_transaction_timestamp_ok(lake: Lake) -> None:
    committed = lake.table().append([{"v": 5}])
    (writer,) = (
        lake.look()
        .scan("writers", columns=["last_commit_timestamp"])
        .to_arrow()["last_commit_timestamp"]
        .cast("int64")
        .to_pylist()
    )
    assert writer == committed.commit_time


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
