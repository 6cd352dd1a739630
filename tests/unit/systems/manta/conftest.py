"""A node of the service in an empty world."""

from __future__ import annotations

import pytest

from bucketcatalog.systems.manta.operations import Manta

from ....kit.manta.nodes import node_of
from ....kit.world import World


@pytest.fixture
def node(world: World) -> Manta:
    return node_of(world)
