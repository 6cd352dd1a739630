"""A repair, what it has done, and what is wrong and stored after it."""

from __future__ import annotations

from typing import Any

from bucketcatalog.maintain.repair import Repair
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.store import Store

from .world import World


def repair(world: World, **options: Any) -> Repair:
    world.clock.tick()
    return world.catalog().repair(writer="maintainer-1", clock=world.clock, **options)


def done(made: Repair) -> list[tuple[str, str]]:
    return [(action.what, action.subject) for action in made.actions if action.done]


def errors(world: World) -> list[str]:
    return [str(f) for f in world.catalog().verify(deep=True) if f.severity is Severity.ERROR]


def listed(store: Store) -> dict[str, bytes]:
    return {info.name: store.get(info.name) for info in store.list("")}
