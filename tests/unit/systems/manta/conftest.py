"""A node of the service in an empty world."""

from __future__ import annotations

import pytest

from bucketcatalog.systems.manta.operations import Manta

from ....kit.world import World
from .nodes import node_of


@pytest.fixture
def node(world: World) -> Manta:
    return node_of(world)
