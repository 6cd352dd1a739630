"""Whatever a file says it is a typed error, and with ``ignore_corruption`` the rest is read: each kind of error, forged into one file."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, CatalogWarning, CorruptionError, UnsupportedFormat
from bucketcatalog.cli import run
from bucketcatalog.errors import BucketCatalogError, UnknownTable
from bucketcatalog.format.sealing import seal, unseal
from bucketcatalog.model.times import LAST_TIME
from bucketcatalog.v1 import log_pb2

from ...kit.claiming import UUID, transaction
from ...kit.fuzzing.parts import closed, opened
from ...kit.mallory import Mallory, link
from ...kit.spec_reader import new_transaction
from ...kit.world import DAY, World, bucket


def place(world: World) -> tuple[str, log_pb2.Transaction]:
    """A transaction of somebody else's beside those of a writer that is sound: its name, and what it says."""
    world.commit(world.writer("w"), ("put", "buckets", bucket("ours")))
    world.commit(world.writer("evil"), ("put", "buckets", bucket("theirs")))
    (name,) = (info.name for info in world.store.list("evil/") if info.name.endswith(".txn"))
    return name, log_pb2.Transaction.FromString(unseal(world.store.get(name), name, "it"))


def undefined(message: Any) -> None:
    message.tables.add(name="lab.t", message="nowhere.Row")


def unusable(message: Any) -> None:
    """The definition of a table of which no message class can be made."""
    file = message.tables[0].files.file[0]
    file.message_type.add().CopyFrom(file.message_type[0])


READ_PAST: dict[str, tuple[Callable[[Any], object], type[BucketCatalogError]]] = {
    "a name that is none": (lambda m: m.reads.add(writer="a/b").heads.add(uuid=UUID), CorruptionError),
    "a segment of a name that is none": (
        lambda m: m.segments.add(writer="a/b", uuid=UUID, run=transaction().segments[0].run),
        CorruptionError,
    ),
    "a table without a message": (undefined, CorruptionError),
    "a table that protobuf refuses": (unusable, CorruptionError),
    "a feature of a later release": (lambda m: m.required_features.append("time machine"), UnsupportedFormat),
    "a later version": (lambda m: setattr(m, "format_version", 2), UnsupportedFormat),
    "an event of a kind that is not known": (lambda m: setattr(m.actions[0], "kind", 99), UnsupportedFormat),
    "a row that is none": (lambda m: setattr(m.actions[0], "row", b"\xff\xff"), CorruptionError),
    "a year after all": (lambda m: setattr(m, "commit_time", LAST_TIME + 1), CorruptionError),
    "a lateness bound": (lambda m: setattr(m, "lateness_bound", (1 << 63) - 1), CorruptionError),
    "a message that is none": (lambda m: m.SerializeToString() + b"\x72\x02\xff\xff", CorruptionError),
}


@pytest.mark.parametrize(("change", "kind"), READ_PAST.values(), ids=READ_PAST)
def test_whatever_a_file_says_it_is_a_typed_error_and_read_past(
    world: World, change: Callable[[Any], object], kind: type[BucketCatalogError]
) -> None:
    name, message = place(world)
    message.ClearField("checksum")
    changed = change(message)
    world.store.delete(name)
    world.store.put(name, seal(changed if isinstance(changed, bytes) else message.SerializeToString(deterministic=True)))
    with pytest.raises(kind, match=name):
        world.snapshot().scan("buckets").to_arrow()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", CatalogWarning)
        snapshot = world.snapshot(ignore_corruption=True)
        assert snapshot.scan("buckets").to_arrow()["name"].to_pylist() == ["ours"]
    assert [name in str(warning.message) for warning in told] == [True]
    assert [loss.file for loss in snapshot.missing] == [name]


def test_a_command_reads_past_it_too(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    for who, name in (("w", "ours"), ("evil", "theirs")):
        with Catalog(str(tmp_path)).writer(who) as writer, writer.transaction() as tx:
            tx.put("buckets", bucket(name))
    (file,) = tmp_path.glob("evil/*/transactions/*/*.txn")
    message = log_pb2.Transaction.FromString(unseal(file.read_bytes(), "it", "it"))
    message.lateness_bound = (1 << 63) - 1
    file.write_bytes(seal(message.SerializeToString(deterministic=True)))
    assert run(["ls", str(tmp_path)]) == 1
    assert (
        capsysbinary.readouterr()[1]
        .decode()
        .startswith(f"[CORRUPT] {file.relative_to(tmp_path)} is not a transaction: it claims")
    )
    assert run(["ls", str(tmp_path), "--ignore-corruption"]) == 0
    shown, said = (text.decode() for text in capsysbinary.readouterr())
    assert "ours" in shown and "theirs" not in shown and str(file.relative_to(tmp_path)) in said


def test_a_transaction_of_the_future_and_of_a_later_release_is_read_past(world: World) -> None:
    world.commit(world.writer("w"), ("put", "buckets", bucket("ours")))
    world.commit(world.writer("mallory"), ("put", "buckets", bucket("theirs")))
    mallory = Mallory(world.store)
    ahead = new_transaction("mallory", 1, world.clock.now + 2 * DAY)
    ahead.parents.add(**link(mallory.last("mallory")))
    ahead.required_features.append("time machine")
    name = mallory.put(ahead)
    with pytest.raises(UnsupportedFormat, match=name):
        world.snapshot()
    with pytest.warns(CatalogWarning) as told:
        past = world.snapshot(ignore_corruption=True)
    assert any(name in str(each.message) for each in told)
    assert {row["name"] for row in past.scan("buckets").to_arrow().to_pylist()} == {"ours", "theirs"}


@pytest.mark.parametrize("table", ["", "{path}", "lab.things"])
def test_events_of_no_table_stop_who_asks_for_every_table_by_the_name_of_their_file(world: World, table: str) -> None:
    world.commit(world.writer("w"), ("put", "buckets", bucket("ours")))
    world.commit(world.writer("mallory"), ("put", "buckets", bucket("theirs")))
    mallory = Mallory(world.store)
    forged = mallory.next()
    forged.actions.add(table=table, kind=log_pb2.EVENT_KIND_PUT, row=b"")
    name = mallory.put(forged)
    assert len(world.snapshot().scan("buckets").to_arrow()) == 2
    with pytest.raises(UnknownTable, match=f"which nothing defines, in {name}") as stopped:
        world.catalog().collect(older_than="1d", writer="maintainer-1", clock=world.clock)
    assert "set that file aside" in stopped.value.next_step


def test_a_block_of_no_table_is_in_the_list_of_damage(world: World) -> None:
    world.commit(world.writer("w"), ("put", "buckets", [bucket(f"b{number}") for number in range(200)]))
    (name,) = (info.name for info in world.store.list("w/") if info.name.endswith(".txn"))
    message = opened(name, world.store.get(name))
    message.blocks[0].header.table = "../../x"
    world.store.delete(name)
    world.store.put(name, closed(message))
    found = world.snapshot(ignore_corruption=True).scan("damage").to_arrow().to_pylist()
    assert [(row["file"], row["code"], row["table"], row["rows"]) for row in found] == [(name, "UNKNOWN_TABLE", "../../x", 200)]
