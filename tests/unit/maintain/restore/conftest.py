"""What tests of restoring begin with: a table with a past."""

from __future__ import annotations

import pytest

from bucketcatalog.write.commit import Committed

from ....kit.restoring import full
from ....kit.world import World, obj


@pytest.fixture
def past(world: World) -> Committed:
    """Five objects; since then one was deleted, one overwritten, one updated, one left alone, one deleted and put again; and one is new."""
    with world.writer() as w:
        world.commit(
            w, ("put", "objects", [full(name, at) for at, name in enumerate(["again", "gone", "kept", "new row", "over"])])
        )
        first = world.commit(w, ("update", "objects", full("over", 4, etag="e")))
        world.commit(w, ("delete", "objects", [obj("gone"), obj("again")]), ("put", "objects", full("over", 9)))
        world.commit(w, ("put", "objects", [full("fresh", 8), full("again", 7)]))
        world.commit(w, ("update", "objects", full("new row", 3, etag="other")))
    return first
