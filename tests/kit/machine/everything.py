"""Histories in which everything happens: what writers do, and what maintainers do to a catalog at any moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from bucketcatalog import Catalog
from bucketcatalog.maintain.verify.findings import Severity

from .cloning import Clone, Cloning
from .collecting import Collect, Collecting, NameAgain, Reap
from .columns import DATABASE
from .comparing import check
from .histories import STATED_ACTION, histories
from .pruning import ANEW, LongWait, Pin, Prune, Tag
from .repairing import FromTheFuture, Repair, Repairing
from .restores import Restore, Restoring
from .steps import PROCESSES, TABLES, Checkpoint, Commit, Compare, Delete, Fault, History, Put
from .world import Remembered

_SMALL = st.integers(0, 7)
_MAINTAINER = st.integers(0, 1)
_PROCESS = st.sampled_from(tuple(PROCESSES))
_BUCKET = st.integers(5, 6)
_ANY_FAULT = st.sampled_from((Fault.NONE,) * 12 + tuple(Fault))
_MAINTAINERS_FAULT = st.sampled_from(
    (Fault.NONE,) * 8
    + (Fault.LOST_RESPONSE, Fault.LOST_REQUEST, Fault.REFUSED, Fault.SILENCE_AFTER, Fault.SILENCE_BEFORE)
    + (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
)
PRUNE = st.builds(
    Prune,
    who=_MAINTAINER,
    older_than=st.sampled_from((0, 0, 0, 60, 900)),
    grace=st.sampled_from((0, 0, 0, 60, 700)),
    keep=st.sampled_from((1, 1, 2)),
    dies_at=st.none() | st.integers(0, 12),
    after=st.booleans(),
)
_TAG = st.builds(Tag, name=st.sampled_from(("x", "y")), number=_SMALL, drop=st.booleans(), who=_MAINTAINER)
_PIN = st.builds(Pin, number=_SMALL, drop=st.sampled_from((False, False, True)), who=_MAINTAINER)
_CLONE = st.builds(Clone, _MAINTAINER, _SMALL)
_LONG_WAIT = st.builds(LongWait, st.sampled_from((800_000_000, 4_000_000_000, 25_200_000_000)))
_RESTORE = st.builds(
    Restore,
    _PROCESS,
    past=_SMALL,
    table=st.integers(0, len(TABLES) - 1),
    fault=_ANY_FAULT,
    after=st.integers(0, 1),
    by_tag=st.booleans(),
)
_COLLECT = st.builds(
    Collect,
    who=_MAINTAINER,
    hours=st.sampled_from(((7, 7), (7, 7), (7, 1), (0,))),
    refuses=st.sampled_from((0, 0, 2)),
    dies_at=st.sampled_from((None, None, None, 0, 1, 2)),
    fault=_MAINTAINERS_FAULT,
    after=st.integers(0, 2),
)
_REAP = st.builds(Reap, _MAINTAINER, _MAINTAINERS_FAULT)
_NAME_AGAIN = st.builds(NameAgain, _PROCESS, st.integers(0, 11), st.integers(0, 2), st.booleans(), _ANY_FAULT)
_OF_BUCKETS = st.builds(
    Commit,
    _PROCESS,
    st.lists(st.one_of(st.builds(Delete, _BUCKET), st.builds(Put, _BUCKET, derived=st.just(True))), min_size=1, max_size=2).map(
        tuple
    ),
)
_REPAIR = st.builds(Repair, _MAINTAINER, st.integers(0, 999), st.sampled_from((0, 1, 1, 2)), st.sampled_from((True, True, False)))
_FROM_THE_FUTURE = st.builds(FromTheFuture, _MAINTAINER, _PROCESS, st.lists(STATED_ACTION, min_size=1, max_size=3).map(tuple))
_ADDED: tuple[st.SearchStrategy[Any], ...] = (
    *(PRUNE,) * 3,
    *(_TAG,) * 2,
    *(_PIN,) * 2,
    *(_LONG_WAIT,) * 2,
    *(_RESTORE,) * 3,
    *(_COLLECT,) * 4,
    *(_REAP,) * 2,
    *(_NAME_AGAIN,) * 3,
    *(_OF_BUCKETS,) * 2,
    *(_REPAIR,) * 2,
    *(_CLONE,) * 2,
    _FROM_THE_FUTURE,
)


_CHECKPOINT = st.one_of(st.builds(Checkpoint, _PROCESS), st.just(Checkpoint("compactor", everyone=True)))
_DAMAGE = st.builds(Repair, _MAINTAINER, st.integers(0, 999), st.sampled_from((1, 1, 2)), st.sampled_from((True, True, False)))
_MAINTENANCE: tuple[st.SearchStrategy[Any], ...] = (
    *(PRUNE,) * 4,
    *(_DAMAGE,) * 4,
    *(_CHECKPOINT,) * 2,
    *(_TAG,) * 2,
    *(_PIN,) * 2,
    *(_LONG_WAIT,) * 2,
    _RESTORE,
    _CLONE,
    _OF_BUCKETS,
)


@st.composite
def everything(draw: st.DrawFn) -> History:
    """Histories as everywhere, in buckets that are there, with more of everything between their steps, and compared more often."""
    return _with(draw, draw(histories(steps=12)), _ADDED, 12, first=4)


@st.composite
def maintenance(draw: st.DrawFn) -> History:
    """Histories of few commits, in which much is damaged and repaired, and pruned before and after."""
    return _with(draw, draw(histories(steps=5)), _MAINTENANCE, 9, first=2)


def _with(draw: st.DrawFn, history: History, added: Sequence[st.SearchStrategy[Any]], most: int, *, first: int) -> History:
    """The history in buckets that are there, with at least four steps more, of those that are ``added``, and a comparison."""
    steps: list[Any] = [Commit("beta", (Put(5, derived=True), Put(6, derived=True))), *history.steps]
    any_added = st.integers(0, len(added) - 1).flatmap(lambda number: added[number])
    for step in draw(st.lists(any_added, min_size=4, max_size=most)):
        steps.insert(draw(st.integers(min(first, len(steps)), len(steps))), step)
    steps.insert(draw(st.integers(min(first, len(steps)), len(steps))), Compare(draw(st.booleans()), history.end.looks))
    return History(names=history.names, clocks=history.clocks, steps=steps, end=history.end)


class Everything(Repairing, Collecting, Restoring, Cloning):
    """The machine that takes every kind of step. In the end everything is verified, and cloned."""

    def run(self) -> None:
        """Take every step, then verify, and clone by a process that has read nothing before."""
        super().run()
        if not self._timelines.visible():
            return
        findings = [it for it in Catalog(self._store).verify(database=DATABASE, deep=True) if it.severity is not Severity.INFO]
        check("findings in the end", [], [str(it) for it in findings if it.code != "OPEN_FORK"])
        self._clone(Clone(ANEW, 0))

    def _name_of(self, past: Remembered) -> str | None:
        names = [name for name, version in self._maintenance.horizon.tags.items() if version == past.version]
        return names[0] if names else past.version
