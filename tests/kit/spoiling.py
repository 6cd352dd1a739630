"""Bad files: a transaction that is spoilt in every way in which one writer's file can keep others from reading, checksums made right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bucketcatalog.format.sealing import seal, unseal
from bucketcatalog.log.files import LogFiles
from bucketcatalog.model import paths
from bucketcatalog.v1 import log_pb2

from .world import World, obj

NOWHERE = bytes.fromhex("018bcfe5687b70008fff000000000000")
"""The uuid of nothing, of a time before everything."""


def resealed(data: bytes, change: Callable[[Any], object]) -> bytes:
    """The bytes of a transaction after a change to its message, with a right checksum."""
    message = log_pb2.Transaction.FromString(unseal(data, "file", "a transaction"))
    change(message)
    return seal(message.SerializeToString(deterministic=True))


def _reads(message: Any) -> None:
    message.reads.add(writer="nobody").heads.add(revision=7, uuid=NOWHERE)


def _parents(message: Any) -> None:
    message.parents[0].uuid = NOWHERE


def _digest(message: Any) -> None:
    message.parents[0].digest = bytes(32)


def _event_kind(message: Any) -> None:
    message.actions[0].kind = 99


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "a byte": lambda data: data[:1],
    "reads of nothing": lambda data: resealed(data, _reads),
    "an unknown feature": lambda data: resealed(data, lambda message: message.required_features.append("tomorrow")),
    "an unknown event": lambda data: resealed(data, _event_kind),
    "parents that are not there": lambda data: resealed(data, _parents),
    "another parent's digest": lambda data: resealed(data, _digest),
}
"""What a writer's last transaction can be made, by what is wrong with it then."""


def in_turns() -> World:
    """Alice has committed ``a0`` to ``a2``, mallory ``m0`` to ``m2``, one after the other."""
    world = World()
    for n in range(3):
        for name in ("alice", "mallory"):
            with world.writer(name) as writer:
                world.commit(writer, ("put", "objects", obj(f"{name[0]}{n}")))
    return world


def newest(world: World, writer: str, back: int = 0) -> str:
    """The name of a writer's last transaction, or of one so many before it."""
    heads = sorted(LogFiles(world.store, "default").transactions(writer))
    return paths.transaction(writer, "default", heads[-1 - back])


def spoil(world: World, name: str, kind: str = "a byte") -> bytes:
    """Make a file bad; returns what it was."""
    data = world.store.get(name)
    world.store.delete(name)
    world.store.put(name, SPOILT[kind](data))
    return data


def restore(world: World, name: str, data: bytes) -> None:
    """Bring a file back as from a copy."""
    world.store.delete(name)
    world.store.put(name, data)
