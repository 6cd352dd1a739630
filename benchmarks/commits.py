"""Commits of one action: against one durable PUT of the same bytes, and against the peer appending one file's metadata.

Ours are measured at a low and at a high revision and beside the PUT in one loop, in turns, so that each meets the same disk. The PUT goes
to a store of its own on the same file system, under a name of the same shape. The peer is measured in a loop of its own right after, for
it does not sync, and what it leaves unwritten would be written by whoever syncs next.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from bucketcatalog import Catalog
from bucketcatalog.clock import uuid7
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.paths import transaction
from bucketcatalog.store import LocalStore

from . import dataset, ours, peer
from .measuring import fastest, in_turns
from .results import Comparison, Goal, Group, Measure, Sample
from .world import World

PUT, LOW, HIGH = "put", "low", "high"
DATABASE = "default"
FASTER: Comparison = "other / ours"
DURABLE = ", then synced"


class Committer:
    """A writer that is open at some revision and commits one object at a time."""

    def __init__(self, path: Path, revision: int) -> None:
        self.path = path
        self.writer = Catalog(path).writer(ours.WRITER)
        self.revision = -1
        self._id = uuid.UUID(int=7)
        while self.revision < revision - 1:
            self.commit()

    def commit(self) -> None:
        """One transaction of one action."""
        row = {
            "owner": dataset.OWNER,
            "bucket_id": dataset.BUCKET,
            "name": f"projects/00/datasets/00/picture-{self.revision + 1:08x}",
            "id": self._id,
            "content_length": 4_096,
            "content_md5": self._id.bytes,
            "content_type": "image/jpeg",
            "sharks": ["us-east-1:1.stor", "us-east-2:3.stor"],
        }
        with self.writer.transaction(operation="upload") as tx:
            tx.put("objects", row)
        assert tx.committed is not None
        self.revision = tx.committed.revision

    def last_bytes(self) -> bytes:
        """What the last commit has put."""
        directory = self.path / ours.WRITER / DATABASE / "transactions" / f"{self.revision:020}"
        (file,) = directory.iterdir()
        return file.read_bytes()


class Putter:
    """Puts the same bytes again and again, each time under a name of the shape that transactions have."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._store = LocalStore(path)
        self._data = data
        self._count = 0

    def put(self) -> None:
        """One durable PUT."""
        self._count += 1
        head = Head(self._count, uuid7(1_700_000_000_000_000 + self._count).bytes)
        name = transaction(ours.WRITER, DATABASE, head)
        self._store.put(name, self._data)


def run(world: World) -> Group:
    """The group."""
    scale = world.scale
    samples, size = _ours(world)
    measures = [
        _against_put(samples, LOW, f"commit of one action at revision {scale.shallow:,}"),
        _against_put(samples, HIGH, f"commit of one action at revision {scale.deep:,}"),
        Measure(
            f"commit at revision {scale.deep:,} against {scale.shallow:,}",
            samples[HIGH],
            samples[LOW],
            f"at revision {scale.shallow:,}",
            Goal("ours / other", "at most", 1.1),
        ),
    ]
    ways = {}
    for depth, mine in zip(scale.peer_depths, (LOW, HIGH), strict=True):
        appended = _peers(world, depth)
        ways[f"depth {depth}"] = {way: sample.document() for way, sample in appended.items()}
        best = fastest({way: appended[way] for way in peer.APPENDS})
        name = f"commit of one action, and the peer's at depth {depth}"
        durable = peer.APPENDS[0] + DURABLE
        measures += [
            Measure(name, samples[mine], appended[best], f"deltalake, {best}", Goal(FASTER, "at least", 10)),
            Measure(f"{name}, synced as ours is", samples[mine], appended[durable], f"deltalake, {durable}", compares=FASTER),
            Measure(
                f"{name}, by path", samples[mine], appended[peer.APPENDS[2]], f"deltalake, {peer.APPENDS[2]}", compares=FASTER
            ),
        ]
    settings = {
        "bytes of a commit": size,
        "ours": "Writer held open; every commit durable: file and directories synced",
        "put": "LocalStore.put, durable alike, of the bytes of a commit",
        "peer": "the fastest of three ways, all defaults (a checkpoint every 100 commits); it syncs nothing",
        "peer, each way": ways,
    }
    return Group(measures, settings)


def _against_put(samples: dict[str, Sample], which: str, name: str) -> Measure:
    return Measure(name, samples[which], samples[PUT], "durable PUT", Goal("ours / other", "at most", 1.5))


def _ours(world: World) -> tuple[dict[str, Sample], int]:
    """PUT, low and high in turns; a new catalog every round keeps the low revision low."""
    scale = world.scale
    high = Committer(world.empty("commits-high"), scale.deep)
    data = high.last_bytes()
    putter = Putter(world.empty("puts"), data)
    for _ in range(scale.shallow):
        putter.put()
    found: dict[str, list[float]] = {PUT: [], LOW: [], HIGH: []}
    for _ in range(scale.commit_rounds):
        low = Committer(world.empty("commits-low"), scale.shallow)
        turns = in_turns({PUT: putter.put, LOW: low.commit, HIGH: high.commit}, scale.commits_a_round)
        for name, sample in turns.items():
            found[name] += sample.values
    return {name: Sample(tuple(values)) for name, values in found.items()}, len(data)


def _peers(world: World, depth: int) -> dict[str, Sample]:
    """The peer's ways in turns; a new copy of a table of that depth every round keeps them there."""
    template = world.empty("delta-log")
    peer.make_log(template, depth)
    found: dict[str, list[float]] = {}
    for _ in range(world.scale.peer_rounds):
        appenders = {way: peer.Appender(world.copy(template), way) for way in peer.APPENDS}
        appenders |= {f"{way}{DURABLE}": peer.Appender(world.copy(template), way, durable=True) for way in peer.APPENDS[:1]}
        turns = in_turns({way: appender.append for way, appender in appenders.items()}, world.scale.commits_a_round)
        for way, sample in turns.items():
            found.setdefault(way, []).extend(sample.values)
    return {way: Sample(tuple(values)) for way, values in found.items()}
