"""A definition that is dated back: a transaction of mallory's that is older than all others, and arrives when it is told to."""

from __future__ import annotations

from typing import Any

from bucketcatalog.format.sealing import seal, unseal
from bucketcatalog.maintain.verify.findings import Finding, Severity
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.uuids import uuid_bytes
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.v1 import log_pb2
from bucketcatalog.write.commit import Committed

from .cloning import at
from .world import World, messages, proto, rows, stored

ROW = 'message R {{ option (table) = {{ name: "lab.r" key: "k" {} }}; string k = 1; optional {} n = 2; {} }}'
FITS, MISFIT = ROW.format("", "int64", ""), ROW.format("", "string", "")
NUMBER, TEXT = ROW.format("", "int64", "optional int64 more = 7;"), ROW.format("", "int64", "optional string more = 7;")


def declared(source: str) -> list[Any]:
    return list(messages(proto(source)).values())


class Late:
    """A world in which mallory has committed first, and what she has committed has not arrived; nothing of it can be seen before."""

    def __init__(self, source: str = MISFIT, *, events: bool = False) -> None:
        self.world = World()
        self.mallory = self.world.writer("mallory")
        row = {"k": "m", "n": "x"} if source == MISFIT else {"k": "m", "more": "x"}
        committed = self.world.commit_unasked(self.mallory, declared(source), ("put", "lab.r", row))
        self.name = name_of("mallory", committed)
        message = log_pb2.Transaction.FromString(unseal(self.world.store.get(self.name), self.name, "a transaction"))
        if not events:
            del message.actions[:]
        self.data = seal(message.SerializeToString(deterministic=True))
        self.world.store.delete(self.name)

    def arrive(self) -> None:
        self.world.store.put(self.name, self.data)

    def put(self, writer: str, source: str, *given: dict[str, Any]) -> None:
        self.world.commit_unasked(self.world.writer(writer), declared(source), ("put", "lab.r", list(given)))

    def compact(self, writer: str = "compactor-1", **options: Any) -> None:
        self.world.clock.tick()
        with self.world.writer(writer) as compactor:
            compactor.checkpoint(scope="all", **options)

    def shown(self, **options: Any) -> list[dict[str, Any]]:
        return rows(self.world.snapshot(**options), "lab.r")

    def errors(self, *, deep: bool = True) -> list[Finding]:
        return [f for f in self.world.catalog().verify(deep=deep) if f.severity is Severity.ERROR]


def name_of(writer: str, committed: Committed) -> str:
    return paths.transaction(writer, "default", Head(committed.revision, uuid_bytes(committed.uuid)))


def without_checkpoints(world: World) -> World:
    """The same log without any checkpoint."""
    store = MemoryStore(clock=world.clock)
    for name in stored(world):
        if "/newest/" not in name and not name.endswith(".ckpt"):
            store.put(name, world.store.get(name))
    return at(world, store)
