"""A page of the tombstones that ended first is what sorting all of them gives, whatever lies over what."""

from __future__ import annotations

import random
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bucketcatalog import Catalog, InvalidOption
from bucketcatalog.state import earliest
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore

from ...kit.world import BUCKET, HOUR, OWNER, Clock, World, messages, time_at

COLUMNS = ["name", "deleted_at", "_version", "content_length"]
READINGS = """
syntax = "proto3";
import "bucketcatalog/v1/options.proto";
message Reading {
  option (bucketcatalog.v1.table) = {
    name: "lab.readings" key: "room" key: "at"
    orders: {name: "by number" fields: "deleted_at" fields: "at" of_tombstones: true}
  };
  string room = 1;
  uint32 at = 2;
}
"""


def rows(names: list[str], **values: Any) -> list[dict[str, Any]]:
    return [{"owner": OWNER, "bucket_id": BUCKET, "name": name, **values} for name in names]


def assert_first(catalog: Catalog, limit: int, *, late: bool) -> None:
    """The page is the first of all tombstones that are there, or of those from before the time of one in the middle."""
    snapshot = catalog.snapshot()
    every = snapshot.scan("deleted_objects", columns=COLUMNS).to_arrow()
    every = every.sort_by([("deleted_at", "ascending"), ("name", "ascending")])
    before = every["deleted_at"][len(every) // 2].as_py() if late and len(every) else None
    if before is not None:
        every = every.filter(pc.less(every["deleted_at"], pa.scalar(before, every["deleted_at"].type)))
    found = snapshot.ended("objects", before=before, limit=limit, columns=COLUMNS)
    assert found.select(COLUMNS[:2]).equals(every.slice(0, limit).select(COLUMNS[:2]).cast(found.select(COLUMNS[:2]).schema))
    lengths, of = (dict(zip(*(rows[name].to_pylist() for name in COLUMNS[2:]), strict=True)) for rows in (found, every))
    assert len(lengths) == len(found) and lengths.items() <= of.items()


def assert_pages(catalog: Catalog, limit: int) -> None:
    """Page after page is all there is, in order; what has one key and one end may share a place, and is on one page or left behind."""
    snapshot, key = catalog.snapshot(), ["deleted_at", "owner", "bucket_id", "name"]
    whole = snapshot.ended("objects", limit=100_000, columns=key).to_pylist()
    found: list[dict[str, Any]] = []
    while page := snapshot.ended("objects", after=found[-1] if found else None, limit=limit, columns=key).to_pylist():
        found += page
    places = [tuple(row.values()) for row in found]
    assert places == sorted(places) and {*places} == {tuple(row.values()) for row in whole}


@pytest.mark.parametrize("seed", range(12))
def test_a_page_is_the_first_of_all_that_have_ended_after_any_history(seed: int) -> None:
    chance = random.Random(seed)
    clock = Clock()
    catalog = Catalog(MemoryStore(clock=clock))
    with catalog.writer("compactor-1", clock=clock) as writer:
        with writer.transaction() as tx:
            tx.put("objects", rows(["n00", "n01"], content_length=1))
        for _ in range(14):
            clock.now += chance.choice([0, 1, 10_000_000])
            names = [f"n{chance.randrange(60):02d}" for _ in range(chance.choice([1, 5, 40, 90]))]
            with writer.transaction() as tx:
                kind = chance.random()
                if kind < 0.5:
                    id_ = str(uuid.UUID(int=chance.getrandbits(128)))
                    tx.put("objects", rows(names, id=id_, content_length=chance.randrange(9)))
                elif kind < 0.7:
                    tx.delete("objects", rows(names))
                else:
                    snapshot, columns = catalog.snapshot(database="default"), ["owner", "bucket_id", "name", "_version"]
                    ended = snapshot.ended("objects", limit=7, columns=columns)
                    if kind < 0.85:
                        some = ended.to_pylist()
                        strangers = [row | {"name": f"n{chance.randrange(60):02d}"} for row in some[:2]]  # versions of other keys
                        tx.purge("objects", [*some, *strangers])
                    elif kind < 0.95:
                        tx.update("objects", [{**row, "content_length": 10} for row in ended.to_pylist()])
                    else:
                        live = snapshot.scan("objects", columns=columns).to_arrow()
                        tx.delete("objects", live.slice(0, 3))
            if chance.random() < 0.3:
                writer.checkpoint(scope="all", full=chance.random() < 0.5)
            for limit in (1, 4, 33, 10_000):
                assert_first(catalog, limit, late=chance.random() < 0.5)
            assert_pages(catalog, chance.choice([7, 19]))


@pytest.mark.parametrize("seed", range(4))
def test_so_it_is_of_several_writers_one_of_whom_is_late_and_with_their_own_checkpoints(seed: int) -> None:
    chance = random.Random(seed)
    clock = Clock()
    catalog = Catalog(MemoryStore(clock=clock))
    late = [
        catalog.writer(name, clock=lambda behind=behind: clock.now - behind) for name, behind in (("a", 0), ("b", 30_000_000))
    ]
    writers = [catalog.writer("compactor-1", clock=clock), *late]
    with writers[0].transaction() as tx:
        tx.put("objects", rows(["n00", "n01"], content_length=1))
    for _ in range(10):
        clock.now += chance.choice([0, 1, 5_000_000])
        names = sorted({f"n{chance.randrange(20):02d}" for _ in range(chance.choice([1, 4, 9]))})
        columns = ["owner", "bucket_id", "name", "_version"]
        some = catalog.snapshot().scan(chance.choice(["objects", "deleted_objects"]), columns=columns).to_arrow().to_pylist()
        some = chance.sample(some, min(len(some), 4))
        with chance.choice(writers).transaction() as tx:
            match chance.randrange(5):
                case 0 | 1:
                    tx.put("objects", rows(names, content_length=chance.randrange(9)))
                case 2:
                    tx.delete("objects", rows(names))
                case 3:
                    tx.purge("objects", some)
                case 4:
                    tx.update("objects", [{**row, "content_length": 10} for row in some])
        if chance.random() < 0.4:
            writers[0].checkpoint(scope="all", full=chance.random() < 0.5)
        elif chance.random() < 0.2:
            chance.choice(writers).checkpoint()
        for limit in (1, 5, 10_000):
            assert_first(catalog, limit, late=chance.random() < 0.5)
    for writer in writers:
        writer.close()


def test_what_a_kept_order_names_later_is_not_read() -> None:
    world = World.counting()
    names = [f"n{number:05d}" for number in range(60_000)]
    with world.writer("compactor-1") as writer:
        world.commit(writer, ("put", "objects", pa.Table.from_pylist(rows(names))))
        for start in range(0, len(names), 5_000):
            world.commit(writer, ("delete", "objects", pa.Table.from_pylist(rows(names[start : start + 5_000]))))
        writer.checkpoint(scope="all", full=True)
    first, every = (bytes_read(world, limit) for limit in (10, 60_000))
    assert world.snapshot().ended("objects", limit=10)["name"].to_pylist() == names[:10]
    assert first * 3 < every * 2


def test_of_an_order_with_whole_rows_nothing_is_looked_up_but_what_something_lies_over(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    names = [f"n{number:03d}" for number in range(300)]
    with world.writer("compactor-1") as writer:
        world.commit(writer, ("put", "objects", rows(names, content_length=7, headers={"a": "b"})))
        for name in reversed(names):
            world.commit(writer, ("delete", "objects", rows([name])))
        writer.checkpoint(scope="all", full=True)
    read: list[tuple[str, int]] = []
    honest = earliest.read_slice

    def noted(blocks: Any, table: Any, slice_: Any, *more: Any) -> Any:
        read.append((table.name, len(slice_.wanted)))
        return honest(blocks, table, slice_, *more)

    monkeypatch.setattr(earliest, "read_slice", noted)
    every = world.snapshot().scan("deleted_objects").to_arrow().sort_by("deleted_at")
    assert world.snapshot().ended("objects", limit=1_000).equals(every) and read == []
    with world.writer("node-1") as writer:
        world.commit(writer, ("put", "objects", rows(["n299", "other"])))
        second = world.snapshot().scan(
            "deleted_objects", columns=["owner", "bucket_id", "name", "_version"], where={"name": "n298"}
        )
        world.commit(writer, ("purge", "objects", second.to_arrow()))
    assert world.snapshot().ended("objects", limit=1_000)["name"].to_pylist() == [names[-1], *reversed(names[:-2])]
    assert sum(keys for _, keys in read) == 2  # those that were put: of the one that was purged the order has all there is


def test_a_purge_of_a_version_under_another_key_takes_away_nothing() -> None:
    world = World()
    with world.writer("compactor-1") as writer:
        world.commit(writer, ("put", "objects", rows(["a", "b"])))
        world.commit(writer, ("delete", "objects", rows(["a", "b"])))
        writer.checkpoint(scope="all", full=True)
    version = (
        world.snapshot().scan("deleted_objects", columns=["_version"], where={"name": "b"}).to_arrow()["_version"][0].as_py()
    )
    with world.writer("node-1") as writer:
        world.commit(writer, ("purge", "objects", rows(["a"], _version=version)))
    assert sorted(world.snapshot().ended("objects", limit=9)["name"].to_pylist()) == ["a", "b"]


def test_a_page_holds_few_blocks_however_many_were_purged_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.format.segments.ROW_GROUP_ROWS", 100)
    monkeypatch.setattr("bucketcatalog.log.segments.ROW_GROUP_ROWS", 100)
    monkeypatch.setattr("bucketcatalog.checkpoint.plan.INLINE_BYTES", 0)
    world = World()
    names = [f"n{number:05d}" for number in range(6_000)]
    with world.writer("compactor-1") as writer:
        world.commit(writer, ("put", "objects", pa.Table.from_pylist(rows(names))))
        for start in range(0, len(names), 500):
            world.commit(writer, ("delete", "objects", pa.Table.from_pylist(rows(names[start : start + 500]))))
        writer.checkpoint(scope="all", full=True)
        first = world.snapshot().ended("objects", limit=5_000, columns=["owner", "bucket_id", "name", "_version"])
        world.commit(writer, ("purge", "objects", first))
    most = 0
    honest = earliest._Page.first

    def noted(page: Any, parts: Any, *more: Any) -> Any:
        nonlocal most
        parts = list(parts)
        most = max(most, sum(map(len, parts)))
        return honest(page, parts, *more)

    monkeypatch.setattr(earliest._Page, "first", noted)
    assert world.snapshot().ended("objects", limit=50)["name"].to_pylist() == names[5_000:5_050]
    assert 0 < most <= 500


def test_an_order_that_an_older_declaration_has_kept_is_none_of_a_covering_one() -> None:
    covering = READINGS.replace("of_tombstones: true", "of_tombstones: true covering: true").replace(' fields: "at"', "")
    clock = Clock()
    catalog = Catalog(MemoryStore(clock=clock))
    found = []
    for number, source in enumerate((READINGS.replace(' fields: "at"', ""), covering, covering)):
        catalog = Catalog(catalog.store)
        catalog.register(messages(source)["Reading"])
        with catalog.writer("maintainer-1", clock=clock) as writer:
            with writer.transaction() as tx:
                tx.put("lab.readings", {"room": "r", "at": number})
            with writer.transaction() as tx:
                tx.delete("lab.readings", {"room": "r", "at": number})
            ended = catalog.snapshot().ended("lab.readings", limit=9)["at"].to_pylist()
            writer.checkpoint(scope="all", full=number != 1)
        found.append((ended, catalog.snapshot().ended("lab.readings", limit=9)["at"].to_pylist()))
    assert found == [([*range(n + 1)], [*range(n + 1)]) for n in range(3)]


def bytes_read(world: World, limit: int) -> int:
    """What a page takes of a snapshot that was opened before."""
    snapshot = world.snapshot()
    assert isinstance(world.store, Counting)
    world.store.reset()
    assert len(snapshot.ended("objects", limit=limit)) == limit
    return world.store.bytes_read


def test_what_ended_too_late_is_not_read() -> None:
    world = World.counting()
    names = [f"n{number:05d}" for number in range(50_000)]
    with world.writer("compactor-1") as writer:
        world.commit(writer, ("put", "objects", pa.Table.from_pylist(rows(names))))
        world.commit(writer, ("delete", "objects", rows(names[:5])))
        limit = time_at(world.clock.tick(HOUR))
        world.commit(writer, ("delete", "objects", pa.Table.from_pylist(rows(names[5:]))))
        writer.checkpoint(scope="all", full=True)
    snapshot = world.snapshot()
    assert isinstance(world.store, Counting)
    world.store.reset()
    assert len(snapshot.ended("objects", before=limit, limit=1_000)) == 5
    few, snapshot = world.store.bytes_read, world.snapshot()
    world.store.reset()
    assert len(snapshot.ended("objects", limit=50_000)) == 50_000
    assert few * 3 < world.store.bytes_read * 2


def test_an_order_by_more_than_the_end_does_not_change_the_page() -> None:
    catalog = Catalog(MemoryStore(clock=(clock := Clock())))
    catalog.register(messages(READINGS)["Reading"])
    found = []
    with catalog.writer("compactor-1", clock=clock) as writer:
        keys = [{"room": room, "at": number} for number, room in enumerate("DCBADCBA")]
        for key in keys:
            with writer.transaction() as tx:
                tx.put("lab.readings", key)
        with writer.transaction() as tx:
            tx.delete("lab.readings", keys)
        for _ in range(2):
            found.append(catalog.snapshot().ended("lab.readings", limit=4).select(["room", "at"]).to_pylist())
            writer.checkpoint(scope="all", full=True)
    assert found[0] == found[1] == sorted(keys, key=lambda key: (key["room"], key["at"]))[:4]


def test_a_page_of_nothing_is_refused() -> None:
    catalog = Catalog(MemoryStore())
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", rows(["a"]))
    with pytest.raises(InvalidOption):
        catalog.snapshot().ended("objects", limit=0)
    assert len(catalog.snapshot().ended("objects")) == 0
