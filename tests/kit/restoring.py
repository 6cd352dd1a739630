"""A restore by a world's clock, and objects with values in columns of every shape."""

from __future__ import annotations

from typing import Any

from bucketcatalog.maintain.restore import Restored, plan_restore
from bucketcatalog.maintain.restore import restore as restore_table
from bucketcatalog.query.named import ANYWHERE, Place

from .world import OWNER, World, obj

ID = "44444444-4444-4444-8444-44444444444{}"
MAINTAINER = "maintainer-test"


def restore(
    world: World,
    to: str | int,
    table: str = "objects",
    *,
    place: Place = ANYWHERE,
    dry_run: bool = False,
    skip: bool = False,
    with_purged: bool = False,
) -> Restored:
    """What ``Catalog.restore`` does, by the world's clock; ``to`` is a version, or a time in microseconds."""
    world.clock.tick()
    timestamp, version = (f"@{to}", None) if isinstance(to, int) else (None, to)
    catalog = world.catalog()
    database = catalog.database("default")
    if dry_run:
        return plan_restore(database, table, timestamp, version, place=place, with_purged=with_purged)
    with world.writer(MAINTAINER, catalog=catalog) as held:
        return restore_table(database, held, table, timestamp, version, place=place, skip_collected=skip, with_purged=with_purged)


def full(name: str, number: int, **more: Any) -> dict[str, Any]:
    return obj(name, id=ID.format(number), content_length=number, tags={"a": "b"}, roles=[OWNER], headers={"x": "y"}, **more)
