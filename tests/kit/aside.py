"""Files that are set aside and taken in by a maintainer, and what is wrong with a catalog then."""

from __future__ import annotations

from typing import Any

from bucketcatalog.maintain.verify.findings import Severity

from .world import World


def repaired(world: World, **options: Any) -> list[str]:
    """What a repair has done, by which nothing stays lost."""
    world.clock.tick()
    made = world.catalog().repair(writer="maintainer-1", clock=world.clock, dry_run=False, **options)
    assert made.lost == ()
    return [f"{action.what} {action.subject}" for action in made.actions if action.done]


def set_aside(world: World, name: str, **options: Any) -> None:
    world.clock.tick()
    made = world.catalog().repair(writer="maintainer-1", clock=world.clock, dry_run=False, set_aside=[name], **options)
    assert [f"{action.what} {action.subject}" for action in made.actions if action.done] == [f"set aside {name}"]
    assert name not in {finding.file for finding in made.lost}


def take_in(world: World, name: str) -> None:
    assert repaired(world, take_in=[name]) == [f"take in {name}"]


def errors(world: World) -> list[str]:
    """What ``verify`` says that is more than a remark."""
    return [str(f) for f in world.catalog().verify(deep=True) if f.severity is not Severity.INFO]
