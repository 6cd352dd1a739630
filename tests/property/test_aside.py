"""Random histories in which files go bad, are set aside and come back: answers are those without their events, or errors that name them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ..kit.chance import searching
from ..kit.machine.driver import quiet
from ..kit.machine.running import narrated
from ..kit.machine.setting_aside import Checkpoint, Commit, Compare, Prune, SetAside, SettingAside, Spoil, Step, TakeIn

_SMALL = st.integers(0, 5)
_WHO = st.integers(0, 1)
_COMMIT = st.builds(Commit, _WHO, _SMALL, st.none() | _SMALL, st.booleans())
_STEP: st.SearchStrategy[Step] = st.one_of(
    *(_COMMIT,) * 6,
    *(st.builds(Checkpoint, _SMALL),) * 2,
    *(st.builds(Spoil, _WHO, st.sampled_from((0, 0, 0, 1, 2)), _SMALL),) * 3,
    *(st.builds(SetAside, _SMALL, _WHO, st.booleans()),) * 3,
    *(st.builds(TakeIn, _SMALL, _WHO),) * 2,
    st.builds(Prune, _WHO),
    *(st.builds(Compare, st.booleans()),) * 2,
)


@searching("aside")
@given(st.lists(_STEP, min_size=8, max_size=28))
def test_what_is_set_aside_is_in_no_answer_until_it_is_taken_in(steps: list[Step]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        history = SettingAside()
        patch.setattr("bucketcatalog.clock.now_us", history.world.clock)
        with narrated(history.trace), quiet():
            history.run(steps)
