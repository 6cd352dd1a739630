"""Random histories beside somebody who forges what she can write: others see what they would see without, or what file stops them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..kit.chance import searching
from ..kit.machine.driver import quiet
from ..kit.machine.forgeries import FORGERIES
from ..kit.machine.forging import (
    Checkpoint,
    Clone,
    Collect,
    Commit,
    During,
    Forge,
    Forging,
    Fork,
    Join,
    Prune,
    Restore,
    Step,
    Tag,
    Wait,
)
from ..kit.machine.running import narrated

pytestmark = pytest.mark.long

_SMALL = st.integers(0, 5)
_WHO = st.integers(0, 2)
_ANY = st.integers(0, len(FORGERIES) - 1)
_COMMIT = st.builds(Commit, _WHO, _SMALL, st.none() | _SMALL, st.booleans())
_TAKEN = st.one_of(
    *(_COMMIT,) * 5,
    *(st.builds(Checkpoint, st.sampled_from((0, 2, 2, 3, 3, 3))),) * 3,
    *(st.builds(Prune, st.booleans()),) * 2,
    st.builds(Fork, _WHO),
    st.just(Join()),
    st.just(Tag()),
    *(st.just(Collect()),) * 2,
    st.just(Clone()),
    st.builds(Restore, _SMALL),
)
_STEP: st.SearchStrategy[Step] = st.one_of(
    *(_TAKEN,) * 4,
    *(st.builds(Forge, _ANY),) * 2,
    *(st.builds(During, _ANY, st.integers(0, 40), _TAKEN),) * 2,
    st.builds(Wait, st.sampled_from((1, 3, 30))),
)


@searching("forger")
@given(st.lists(_STEP, min_size=4, max_size=14))
def test_what_she_forges_changes_nothing_for_others(steps: list[Step]) -> None:
    history = Forging()
    with narrated(history.trace), quiet():
        history.run(steps)
