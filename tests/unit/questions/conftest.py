"""A catalog with a past at random, and the same as Python values."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.query.snapshot import Snapshot

from ...kit.pruning import keep_time
from ...kit.world import DAY, HOUR, OTHER, OWNER, SECOND, World, time_at

BUCKETS = {
    (OWNER, "pets"): "33333333-3333-4333-8333-000000000001",
    (OWNER, "logs"): "33333333-3333-4333-8333-000000000002",
    (OTHER, "pets"): "33333333-3333-4333-8333-000000000003",
}
NAME_OF = {id_: name for (_, name), id_ in BUCKETS.items()}
COMPONENTS = ["a", "b", "a b", "ä", "", "c.jpg"]
SIZES = [None, 0, 1, 7, 7, 1_000, 1_048_576, (1 << 40) + 1]
CLASSES = [None, "STANDARD", "GLACIER"]
Key = tuple[str, str, str]
Row = dict[str, Any]


@dataclass
class Ended:
    """A version that is no more."""

    key: Key
    row: Row
    at: int
    writer: str
    operation: str | None
    did: str


@dataclass
class Past:
    """A catalog, and what it holds: the live rows after each commit, and what has ended."""

    world: World
    seed: int
    live: dict[Key, Row] = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)
    states: list[tuple[int, dict[Key, Row], list[Ended]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.writers = [self.world.writer(name) for name in ("w", "x")]
        rows = [{"owner": owner, "name": name, "id": id_} for (owner, name), id_ in BUCKETS.items()]
        rows.append({"owner": OWNER, "name": "empty", "id": "33333333-3333-4333-8333-000000000004"})
        self.world.commit(self.writers[0], ("put", "buckets", rows))
        self._note()

    @property
    def catalog(self) -> Catalog:
        return self.world.catalog()

    def snapshot(self, at: int | None = None) -> Snapshot:
        return self.catalog.snapshot() if at is None else self.catalog.snapshot(timestamp=time_at(at))

    def state(self, at: int | None = None) -> tuple[dict[Key, Row], list[Ended]]:
        """The live rows and what had ended, now or at a time."""
        if at is None:
            return self.live, self.ended
        return next(((live, ended) for time, live, ended in reversed(self.states) if time <= at), ({}, []))

    def go_on(self, commits: int, most: int = 8) -> Past:
        """Commit so much more."""
        for _ in range(commits):
            self.world.clock.tick(self.chance.choice([HOUR, DAY, 3 * HOUR]) + self.chance.randrange(SECOND))
            self._commit(self.chance.randrange(1, most))
        return self

    def checkpoint(self) -> Past:
        self.world.clock.tick()
        with self.world.writer("compactor-1") as compactor:
            compactor.checkpoint(scope="all")
        return self

    def _commit(self, events: int) -> None:
        writer, operation = self.chance.choice(self.writers), self.chance.choice([None, "upload", "expire"])
        keys = sorted({self._key() for _ in range(events)} | set(self.chance.sample(sorted(self.live), min(len(self.live), 3))))
        calls: list[tuple[Any, ...]] = []
        then: list[tuple[str, Key, Row]] = []
        for key in keys:
            row, fields = self._row(), dict(zip(("owner", "bucket_id", "name"), key, strict=True))
            kind = self.chance.choice(["put", "put", "delete", "update"])
            if kind == "update" and key not in self.live:
                kind = "put"
            if kind == "update":
                row = {**self.live[key], "content_length": row["content_length"], "tags": row["tags"]}
                found = self.world.catalog().snapshot().get_all("objects", [fields], columns=["_version"])[0]
                assert found is not None
                calls.append(("update", "objects", {**fields, **row, "_version": found["_version"]}))
            else:
                calls.append((kind, "objects", {**fields, **row} if kind == "put" else fields))
            then.append((kind, key, row))
        options = {} if operation is None else {"operation": operation}
        committed = self.world.commit(writer, *calls, **options)
        at = committed.commit_time
        for kind, key, row in then:
            if key in self.live and kind != "update":
                did = "overwrote" if kind == "put" else "deleted"
                self.ended.append(Ended(key, self.live[key], at, writer.id, operation, did))
            if kind == "delete":
                self.live.pop(key, None)
            else:
                self.live[key] = row
        self._note(at)

    def _note(self, at: int | None = None) -> None:
        self.states.append((self.world.clock() if at is None else at, dict(self.live), list(self.ended)))

    def _key(self) -> Key:
        (owner, _), id_ = self.chance.choice(list(BUCKETS.items()))
        return owner, id_, "/".join(self.chance.choices(COMPONENTS, k=self.chance.randrange(1, 4)))

    def _row(self) -> Row:
        choose, size = self.chance.choice, self.chance.choice(SIZES)
        row: Row = {
            "content_length": size,
            "modified": time_at(self.world.clock() - choose([0, HOUR, DAY, 30 * DAY, 30 * DAY + 1, 1000 * DAY])),
            "storage_class": choose(CLASSES),
            "content_type": choose([None, "image/png", "image/jpeg", "text/plain"]),
            "file_type": choose([None, "file", "symlink"]),
            "tags": choose([{}, {"team": "a"}, {"team": "b", "x=y": "z"}]),
        }
        hashes = [
            {},
            {"checksum": choose("pq") * 4, "checksum_algorithm": choose(["SHA256", "CRC32", "CRC64NVME"])},
            {"content_md5": choose([b"1" * 16, b"2" * 16])},
            {"etag": choose(["0" * 32, "A" * 32, "a" * 32, "0" * 32 + "-2", "x"])},
        ]
        for some in self.chance.sample(hashes, 2):
            row |= some
        return row


def objects_of(rows: dict[Key, Row], *, bucket: str | None = None, owner: str | None = None, prefix: str = "") -> dict[Key, Row]:
    """Those of the rows that a place names."""
    return {
        key: row
        for key, row in rows.items()
        if (bucket is None or NAME_OF[key[1]] == bucket) and owner in (None, key[0]) and key[2].startswith(prefix)
    }


@cache
def made(seed: int, merged: bool) -> Past:
    """A past of 30 commits, with a checkpoint after 20 of them or none."""
    world = World()
    with pytest.MonkeyPatch.context() as patch:
        keep_time(world, patch)
        found = Past(world, seed).go_on(20)
        if merged:
            found.checkpoint()
        return found.go_on(10)


@pytest.fixture(params=[(1, False), (2, True), (3, True)], ids=["seed 1", "seed 2, checkpoint", "seed 3, checkpoint"])
def past(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Past:
    """One of three pasts, which is read only."""
    found = made(*request.param)
    keep_time(found.world, monkeypatch)
    return found


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Past:
    """A past of its own, to go on with."""
    world = World()
    keep_time(world, monkeypatch)
    return Past(world, 4).go_on(12)


def prefix_of(name: str, start: str, depth: int) -> str:
    *directories, _ = name[len(start) :].split("/")
    return start + "".join(f"{each}/" for each in directories[:depth])
