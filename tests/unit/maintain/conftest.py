"""What tests of maintenance begin with beside a world: one clock for all, and a world with data in it."""

from __future__ import annotations

import pytest

from ...kit.collecting import Yard
from ...kit.pruning import keep_time
from ...kit.world import World


@pytest.fixture
def one_clock(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever asks for the time is told the world's."""
    keep_time(world, monkeypatch)


@pytest.fixture
def yard() -> Yard:
    return Yard()
