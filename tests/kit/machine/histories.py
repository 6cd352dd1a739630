"""The strategy that invents histories: how often each step is taken, and what is compared when."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from .steps import (
    KEYS,
    OBJECT_NAMES,
    PROCESSES,
    TABLES,
    Action,
    Application,
    AtCommit,
    AtTime,
    AtVersion,
    Between,
    Checkpoint,
    Commit,
    Compare,
    Delete,
    DeleteLive,
    DeleteVersion,
    Deliver,
    Fault,
    Forks,
    History,
    Kept,
    Leave,
    Listing,
    LookUp,
    Now,
    Part,
    Purge,
    Put,
    Read,
    Remember,
    Step,
    Update,
    UpdateLive,
    Wait,
)

_SMALL = st.integers(0, 7)
_KEY = st.integers(0, KEYS - 1)
_OFTEN_NONE = st.sampled_from((None, None, None, "absent", "absent", 0, 0, 1))
_CLOCK = st.sampled_from((0, 0, 1, -1, 20_000_000, -20_000_000))
_WAIT = st.sampled_from((1, 1, 1_000, 1_000_000, 40_000_000, 240_000_000))
_WHO = st.sampled_from(("alpha",) * 7 + ("beta",) * 6 + ("gamma",) * 4 + ("compactor",) + ("alpha-twin",) * 1)
_CHECKPOINTS = st.sampled_from(
    (*(("compactor", True),) * 5, *((name, False) for name in ("compactor", "alpha", "beta", "gamma")))
)
_COMMIT_FAULT = st.sampled_from(
    (Fault.NONE,) * 14 + (Fault.LATE,) * 6 + (Fault.LOST_RESPONSE, Fault.LOST_REQUEST, Fault.REFUSED)
    + (Fault.SILENCE_AFTER, Fault.SILENCE_BEFORE, Fault.SILENCE_LATE)
    + (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.CRASH_LATE, Fault.CRASH_LATE)
)  # fmt: skip
_CHECKPOINT_FAULT = st.sampled_from((Fault.NONE,) * 12 + tuple(Fault))
_DELIMITER = st.sampled_from((None, "/", "/", "//", "\0", "a"))

STATED_ACTION: st.SearchStrategy[Action] = st.one_of(
    st.builds(Put, _KEY, _OFTEN_NONE),
    st.builds(Put, _KEY),
    st.builds(Delete, _KEY, _OFTEN_NONE),
    st.builds(Update, _SMALL, st.booleans()),
    st.builds(Update, _SMALL),
    st.builds(DeleteVersion, _SMALL, st.booleans()),
    st.builds(Purge, _SMALL),
)
"""What says all by itself, so that nobody has to look anything up for it."""

_ACTION: st.SearchStrategy[Action] = st.one_of(
    STATED_ACTION,
    st.builds(Put, _KEY, derived=st.booleans()),
    st.builds(UpdateLive, _KEY),
    st.builds(DeleteLive, _KEY),
)
_FIRST_THREE = st.permutations(("alpha", "beta", "gamma"))
_PUT = st.builds(Put, _KEY)
_ACTIONS = st.lists(_ACTION, min_size=1, max_size=4).map(tuple)
_LISTING = st.builds(
    Listing,
    bucket=st.integers(0, 3),
    prefix=st.tuples(_KEY, st.integers(0, 3)),
    delimiter=_DELIMITER,
    marker=st.none() | _KEY,
    limit=st.sampled_from((1, 2, 1000)),
)
_PART = st.sampled_from(tuple(Part))
AT_TIME = st.builds(AtTime, st.integers(0, 20), st.booleans(), _PART)
AT_VERSION = st.builds(AtVersion, _SMALL, _PART)
KEPT = st.builds(Kept, _SMALL, _PART)
_PAST = (AT_TIME, AT_VERSION, st.builds(AtCommit, st.integers(0, 20), _PART), KEPT)
BETWEEN = st.builds(Between, _SMALL, _SMALL, st.integers(0, len(TABLES) - 1))
_LOOK_UP = st.builds(LookUp, _KEY)
_LOOKS = (*(st.just(Now(part)) for part in Part), BETWEEN, _LISTING, _LOOK_UP, _LOOK_UP, st.just(Forks()))
_COMPARE = st.builds(Compare, st.booleans(), st.tuples(*_LOOKS, st.one_of(_PAST[:2]), st.one_of(_PAST[2:])))
_COMPARE_AT_THE_END = st.builds(Compare, st.booleans(), st.tuples(*_LOOKS, *_PAST))
_APPLICATION = st.builds(Application, st.integers(0, 1), st.sampled_from((1, 1, 1, 0, 0, -1, 2)))
_COMMIT = st.builds(
    Commit,
    process=_WHO,
    actions=_ACTIONS,
    fault=_COMMIT_FAULT,
    bulk=st.sampled_from((False,) * 30 + (True,)),
    application=st.sampled_from((None,) * 3 + (True,)).flatmap(lambda has: _APPLICATION if has else st.none()),
)
_CHECKPOINT = st.builds(
    lambda which, fault, after: Checkpoint(*which, fault=fault, after=after), _CHECKPOINTS, _CHECKPOINT_FAULT, st.integers(0, 3)
)
_STEPS: tuple[st.SearchStrategy[Step], ...] = (
    *(st.builds(Wait, _WAIT),) * 2,
    *(_COMMIT,) * 9,
    *(_CHECKPOINT,) * 3,
    st.builds(Read, _WHO),
    st.builds(Read, _WHO, st.none() | _SMALL),
    st.builds(Leave, _WHO, st.booleans()),
    st.builds(Deliver, _SMALL),
    st.builds(Remember),
)
_STEP = st.integers(0, len(_STEPS) - 1)
_MORE = st.integers(0, 4)


@st.composite
def histories(draw: st.DrawFn, *, steps: int = 20) -> History:
    """Histories of at least so many steps by three writers and more, compared at two random steps and at the end.

    Each time everything is looked at: the newest state, look-ups, listings, what happened between two versions, the forks, and the
    past, to which there are four ways. The end takes all of these, a random step two.
    """
    taken: list[Any] = [Commit(process, (draw(_PUT), *draw(_ACTIONS))) for process in draw(_FIRST_THREE)]
    taken += [draw(_STEPS[draw(_STEP)]) for _ in range(steps - len(taken) + draw(_MORE))]
    for _ in range(2):
        taken.insert(draw(st.integers(3, len(taken))), draw(_COMPARE))
    return History(
        names=draw(st.integers(0, len(OBJECT_NAMES) - 1)),
        clocks={process: draw(_CLOCK) for process in PROCESSES},
        steps=taken,
        end=draw(_COMPARE_AT_THE_END),
    )
