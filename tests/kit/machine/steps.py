"""Histories: lists of small steps that several processes take. ``histories.py`` invents them.

A step refers to keys, versions, cuts and processes by small numbers that are taken modulo what there is when it runs. So every step can
run after every other one, and Hypothesis may leave out whichever it likes while it looks for the shortest history that fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

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

TABLES = ("objects", "buckets", "harvest_errors")
"""The tables that histories use; the last drops its tombstones."""

BUCKET_NAMES = ("cats", "cats/2024")
ERROR_PATHS = (("disk", "a/b"), ("disk/2", "a/b"))
"""Keys in the core's table ``harvest_errors``, which drops its tombstones."""

KEYS = 9
"""Objects, then buckets, then harvest errors of a history, counted together."""


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
    """PUT of a key. ``expect``: None, ``absent``, or how many versions of the key back the expected one is.

    ``derived`` leaves the id of a bucket to the writer.
    """

    key: int
    expect: int | str | None = None
    derived: bool = False


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
class Application:
    """An application's transaction: which one it is, and how far ahead of its last version on the writer's timeline."""

    number: int
    ahead: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction. ``bulk`` repeats its actions until they no longer fit inline."""

    process: str
    actions: tuple[Action, ...]
    fault: Fault = Fault.NONE
    bulk: bool = False
    application: Application | None = None


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint, of ``everyone``'s timeline where a compactor makes it; the fault strikes after so many PUTs."""

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
    """A listing, page by page: of a bucket, and after these of the buckets and of the harvest errors of one source.

    Prefix and marker are cut from the history's own names.
    """

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
    ERRORS = "live harvest errors, whose table drops its tombstones"
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
    """What the engine shows is compared; ``fresh`` in a catalog opened just for that. The newest version is noted down."""

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
