"""Histories: lists of small steps that several processes take, and the strategy that invents them.

A step refers to keys, versions, cuts and processes by small numbers that are taken modulo what there is when it runs. So every step can
run after every other one, and Hypothesis may leave out whichever it likes while it looks for the shortest history that fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from hypothesis import strategies as st

PROCESSES = {"alpha": "alpha", "alpha-twin": "alpha", "beta": "beta", "gamma": "gamma", "compactor": "compactor-1"}
"""The processes by name, with the writer that each holds open. The twin runs with the same id as alpha, which it must not."""

OBJECT_NAMES = (
    ("a/b", "a/c/d", "a0", "a/b", "é"),
    ("a", "a/", "/a", "a//", "e\u0301"),
    ("\ufffd", "\U0001f600", "\ue000", "\U0001f600/\ufffd", "\U0001f600/"),
    ("", "\0", "..", "\0", "a\0b"),
    ("x" * 1024, "\U0001f600" * 256, "x", "%", "_"),
)
"""Names of the objects of a history: three in the first bucket, two in the second."""

BUCKET_NAMES = ("cats", "cats/2024")
KEYS = 7
"""Objects and then buckets of a history, counted together."""


class Fault(Enum):
    """What becomes of a PUT of the store. A crash ends the process, and so does silence, since only opening anew tells what is."""

    NONE = "none"
    LOST_RESPONSE = "lands, but the response is lost"
    LOST_REQUEST = "does not land, and nobody is told"
    REFUSED = "does not land, and the process is told so"
    SILENCE_AFTER = "lands, but however often it is retried no response comes"
    SILENCE_BEFORE = "never lands, and however often it is retried no response comes"
    SILENCE_LATE = "is under way until later, and however often it is retried no response comes"
    LATE = "is under way until later"
    CRASH_BEFORE = "crash before it"
    CRASH_AFTER = "crash after it"
    CRASH_LATE = "crash while it is under way until later"

    def __repr__(self) -> str:
        return f"Fault.{self.name}"


@dataclass(frozen=True, slots=True)
class Put:
    """PUT of a key. ``expect``: None, ``absent``, or how many versions of the key back the expected one is."""

    key: int
    expect: int | str | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """UPDATE of the version that is so many back, counted over all keys; with another id if asked, which has no effect."""

    version: int
    other_id: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Blind DELETE of a key; ``expect`` as in Put."""

    key: int
    expect: int | str | None = None


@dataclass(frozen=True, slots=True)
class DeleteVersion:
    """DELETE of the version that is so many back."""

    version: int
    moved: bool = False


@dataclass(frozen=True, slots=True)
class UpdateLive:
    """UPDATE of the live version of a key, which is read first and then called by its id."""

    key: int


@dataclass(frozen=True, slots=True)
class DeleteLive:
    """DELETE of the live version of a key, which is read first and then called by its id."""

    key: int


@dataclass(frozen=True, slots=True)
class Purge:
    """PURGE of the version that is so many back."""

    version: int


Action = Put | Update | Delete | DeleteVersion | UpdateLive | DeleteLive | Purge


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction. ``bulk`` repeats its actions until they no longer fit inline."""

    process: str
    actions: tuple[Action, ...]
    fault: Fault = Fault.NONE
    bulk: bool = False


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint; the fault strikes after so many PUTs."""

    process: str
    everyone: bool = False
    fault: Fault = Fault.NONE
    after: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """The process reads: the newest state, or the past cut of that number, and commits after it from then on."""

    process: str
    past: int | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """The process ends, in good order or not. Its next step opens it again."""

    process: str
    crash: bool = False


@dataclass(frozen=True, slots=True)
class Deliver:
    """What is under way for one process reaches the store."""

    which: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """Time passes."""

    microseconds: int


@dataclass(frozen=True, slots=True)
class Remember:
    """An onlooker notes down the version that it sees."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing, page by page. Prefix and marker are cut from the history's own names."""

    bucket: int
    prefix: tuple[int, int]
    delimiter: str | None
    marker: int | None
    limit: int


@dataclass(frozen=True, slots=True)
class LookUp:
    """The row of one key."""

    key: int


class Part(Enum):
    """What is compared of a state."""

    OBJECTS = "live objects"
    DELETED_OBJECTS = "their tombstones"
    BUCKETS = "live buckets and their tombstones"
    CONFLICTS = "conflicts"

    def __repr__(self) -> str:
        return f"Part.{self.name}"


@dataclass(frozen=True, slots=True)
class Now:
    """A part of the newest state."""

    part: Part


@dataclass(frozen=True, slots=True)
class AtTime:
    """A part of the state at the commit time of some transaction, or just before it."""

    number: int
    just_before: bool
    part: Part


@dataclass(frozen=True, slots=True)
class AtVersion:
    """A part of the state at a version that was noted down."""

    number: int
    part: Part


@dataclass(frozen=True, slots=True)
class AtCommit:
    """A part of what some transaction had seen and done."""

    number: int
    part: Part


@dataclass(frozen=True, slots=True)
class Kept:
    """A part of a snapshot that has been open since a version was noted down."""

    number: int
    part: Part


@dataclass(frozen=True, slots=True)
class Forks:
    """The forks of the newest state."""


@dataclass(frozen=True, slots=True)
class Between:
    """What happened to a table between two versions that were noted down."""

    start: int
    end: int
    table: int


Look = Now | Listing | LookUp | AtTime | AtVersion | AtCommit | Kept | Forks | Between


@dataclass(frozen=True, slots=True)
class Compare:
    """What the engine shows is compared; ``fresh`` in a catalog opened just for that. The newest version is noted down.

    Comparing is what takes most of the time, so only the comparison at the end looks everywhere.
    """

    fresh: bool
    looks: tuple[Look, ...]


Step = Commit | Checkpoint | Read | Leave | Deliver | Wait | Remember | Compare

PAUSE = Wait(1)
"""The step that every other one shrinks to."""


@dataclass(frozen=True, slots=True, repr=False)
class History:
    """What happens: which names are used, how far off each process's clock is, the steps, and the comparison at the end."""

    names: int
    clocks: dict[str, int]
    steps: list[Step]
    end: Compare

    def __repr__(self) -> str:
        """On several lines, without the steps in which nothing happens but time."""
        told = [step for step in self.steps if step != PAUSE]
        lines = [
            f"names={self.names},",
            f"clocks={self.clocks},",
            "steps=[",
            *(f"    {step}," for step in told),
            "],",
            f"end={self.end},",
        ]
        return "\n".join(["History(", *(f"    {line}" for line in lines), ")"])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The same where Hypothesis prints it."""
        printer.text(repr(self))


_SMALL = st.integers(0, 7)
_KEY = st.integers(0, KEYS - 1)
_OFTEN_NONE = st.sampled_from((None, None, None, "absent", "absent", 0, 0, 1))
_CLOCK = st.sampled_from((0, 0, 1, -1, 20_000_000, -20_000_000))
_WAIT = st.sampled_from((1, 1, 1_000, 1_000_000, 40_000_000, 240_000_000))
_WHO = st.sampled_from(("alpha",) * 7 + ("beta",) * 6 + ("gamma",) * 4 + ("compactor",) + ("alpha-twin",) * 1)
_CHECKPOINTER = st.sampled_from(("compactor", "compactor", "alpha", "beta", "gamma"))
_COMMIT_FAULT = st.sampled_from(
    (Fault.NONE,) * 14 + (Fault.LATE,) * 6 + (Fault.LOST_RESPONSE, Fault.LOST_REQUEST, Fault.REFUSED)
    + (Fault.SILENCE_AFTER, Fault.SILENCE_BEFORE, Fault.SILENCE_LATE)
    + (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.CRASH_LATE, Fault.CRASH_LATE)
)  # fmt: skip
_CHECKPOINT_FAULT = st.sampled_from((Fault.NONE,) * 12 + tuple(Fault))
_DELIMITER = st.sampled_from((None, "/", "/", "//", "\0", "a"))

_ACTION: st.SearchStrategy[Action] = st.one_of(
    st.builds(Put, _KEY, _OFTEN_NONE),
    st.builds(Put, _KEY),
    st.builds(Put, _KEY),
    st.builds(Delete, _KEY, _OFTEN_NONE),
    st.builds(Update, _SMALL, st.booleans()),
    st.builds(Update, _SMALL),
    st.builds(DeleteVersion, _SMALL, st.booleans()),
    st.builds(Purge, _SMALL),
    st.builds(UpdateLive, _KEY),
    st.builds(DeleteLive, _KEY),
)
_FIRST_THREE = st.permutations(("alpha", "beta", "gamma"))
_PUT = st.builds(Put, _KEY)
_ACTIONS = st.lists(_ACTION, min_size=1, max_size=4).map(tuple)
_LISTING = st.builds(
    Listing,
    bucket=st.integers(0, 2),
    prefix=st.tuples(_KEY, st.integers(0, 3)),
    delimiter=_DELIMITER,
    marker=st.none() | _KEY,
    limit=st.sampled_from((1, 2, 1000)),
)
_PART = st.sampled_from(tuple(Part))
_PAST = (
    st.builds(AtTime, st.integers(0, 20), st.booleans(), _PART),
    st.builds(AtVersion, _SMALL, _PART),
    st.builds(AtCommit, st.integers(0, 20), _PART),
    st.builds(Kept, _SMALL, _PART),
)
_BETWEEN = st.builds(Between, _SMALL, _SMALL, st.integers(0, 1))
_LOOK_UP = st.builds(LookUp, _KEY)
_LOOK = st.one_of(st.builds(Now, _PART), *_PAST, _BETWEEN, _LISTING, _LOOK_UP)
_COMPARE = st.builds(Compare, st.booleans(), st.tuples(st.builds(Now, _PART), _LOOK))
_COMPARE_ALL = st.builds(
    Compare,
    st.booleans(),
    st.tuples(*(st.just(Now(part)) for part in Part), *_PAST, _BETWEEN, _LISTING, _LOOK_UP, st.just(Forks())),
)
_COMMIT = st.builds(
    Commit,
    process=_WHO,
    actions=_ACTIONS,
    fault=_COMMIT_FAULT,
    bulk=st.sampled_from((False,) * 30 + (True,)),
)
_CHECKPOINT = st.builds(
    Checkpoint, process=_CHECKPOINTER, everyone=st.booleans(), fault=_CHECKPOINT_FAULT, after=st.integers(0, 3)
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
    """Histories of at least so many steps by three writers and more, compared in part at two random steps and in all at the end."""
    taken: list[Any] = [Commit(process, (draw(_PUT), *draw(_ACTIONS))) for process in draw(_FIRST_THREE)]
    taken += [draw(_STEPS[draw(_STEP)]) for _ in range(steps - len(taken) + draw(_MORE))]
    for _ in range(2):
        taken.insert(draw(st.integers(3, len(taken))), draw(_COMPARE))
    return History(
        names=draw(st.integers(0, len(OBJECT_NAMES) - 1)),
        clocks={process: draw(_CLOCK) for process in PROCESSES},
        steps=taken,
        end=draw(_COMPARE_ALL),
    )
