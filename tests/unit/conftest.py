"""What most tests of the engine begin with: an empty world, a writer of it, a maintainer."""

from __future__ import annotations

import pytest

from bucketcatalog.write.writer import Writer

from ..kit.world import World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def writer(world: World) -> Writer:
    return world.writer()


@pytest.fixture
def maintainer(world: World) -> Writer:
    return world.writer("maintainer-1")
