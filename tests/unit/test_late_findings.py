"""Cases at the seams of several modules: each once gave a wrong answer, or an error that was not the package's own."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from bucketcatalog import Catalog, CorruptionError, IncompatibleTable, UnsupportedFormat
from bucketcatalog.format.checkpoints import decode_checkpoint
from bucketcatalog.format.sealing import seal, unseal
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.paths import uuid_bytes
from bucketcatalog.v1 import log_pb2

from ..kit.world import MINUTE, World, messages, names, obj, proto


def test_transaction_rewritten_under_its_name_is_not_the_parent_that_its_child_names() -> None:
    world = World()
    with world.writer() as writer:
        first = world.commit(writer, ("put", "objects", obj("a")))
        world.commit(writer, ("put", "objects", obj("b")))
    name = paths.transaction("w", "default", Head(0, uuid_bytes(first.uuid)))
    message = log_pb2.Transaction.FromString(unseal(world.store.get(name), name, "a transaction"))
    del message.actions[:]
    world.store.put(name, seal(message.SerializeToString(deterministic=True)))
    with pytest.raises(CorruptionError, match="digest") as error:
        world.snapshot()
    assert name in error.value.message


@pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")
@pytest.mark.parametrize("attempt", range(8))
def test_of_two_checkpoints_at_one_revision_the_one_that_covers_more_is_read(attempt: int) -> None:
    """Their names differ in random bits only, so one attempt could be right by luck."""
    world = World()
    world.commit(world.writer(), ("put", "objects", obj("base")))
    one, two = world.writer(), world.writer()
    stray = world.commit(two, ("put", "objects", obj(f"stray{attempt}")))
    name = paths.transaction("w", "default", Head(stray.revision, uuid_bytes(stray.uuid)))
    under_way = world.store.get(name)
    world.store.delete(name)
    for number in range(2):
        world.commit(one, ("put", "objects", obj(f"one{number}")))
    world.clock.tick(60 * MINUTE)
    assert one.checkpoint() is not None
    world.store.put(name, under_way)
    assert names(world.snapshot()) == ["base", "one0", "one1"], "too late for the first checkpoint"
    assert world.writer().checkpoint() is not None
    assert names(world.snapshot()) == ["base", "one0", "one1", f"stray{attempt}"]


def test_as_of_now_right_after_a_commit_on_disk_is_not_the_future(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    with catalog.writer("w") as writer:
        for number in range(20):
            with writer.transaction() as tx:
                tx.put("objects", obj(f"o{number:02}"))
            now = datetime.datetime.now(datetime.UTC)
            assert len(names(catalog.snapshot(timestamp=now))) == number + 1


def test_table_called_as_one_about_the_catalog_is_refused() -> None:
    row = messages(proto('message Tag { option (table) = {name: "tags" key: "k"}; string k = 1; }'))["Tag"]
    with pytest.raises(IncompatibleTable, match="tags"):
        World().catalog().register(row)


@pytest.mark.parametrize(
    ("before", "after"), [("int32", "sint32"), ("sint64", "int64"), ("float", "double"), ("fixed32", "uint32")]
)
def test_definition_that_reads_the_same_bytes_otherwise_is_refused(before: str, after: str) -> None:
    body = 'message Row { option (table) = {name: "t.rows" key: "k"}; string k = 1; optional %s n = 2; }'
    older, newer = (messages(proto(body % kind))["Row"] for kind in (before, after))
    catalog = World().catalog()
    catalog.register(older)
    with pytest.raises(IncompatibleTable, match="n"):
        catalog.register(newer)


def test_checkpoint_that_speaks_of_an_unknown_class_of_rows_is_refused_by_name() -> None:
    message = log_pb2.Checkpoint(format_version=1, writer="w", database="default", uuid=bytes(16))
    message.segments.add(writer="w", uuid=bytes(16)).runs.add(table="objects", **{"class": 99})
    with pytest.raises(UnsupportedFormat, match=r"w/x\.ckpt"):
        decode_checkpoint(seal(message.SerializeToString()), "w/x.ckpt")
