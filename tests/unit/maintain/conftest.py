"""What tests of maintenance begin with beside a world: one with data in it."""

from __future__ import annotations

import pytest

from ...kit.collecting import Yard


@pytest.fixture
def yard() -> Yard:
    return Yard()
