"""What a history is about as the model sees it: the time, the keys, the transactions so far, and the versions that people know of."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from ..reference.model import Event, Key, Op, Place, State, incarnation
from ..reference.timelines import EMPTY, Cut, Timelines, Transaction, Uuid
from .columns import DROPPING, PINNED
from .onlooker import EngineSnapshot
from .steps import BUCKET_NAMES, ERROR_PATHS, OBJECT_NAMES

START = 1_700_000_000_000_000
OWNER = str(uuid.uuid5(uuid.NAMESPACE_URL, "owner"))
BUCKETS = tuple(incarnation([], (OWNER, name)) for name in BUCKET_NAMES)
"""The ids of the buckets that objects lie in: those that buckets get which are put without one for the first time."""


class Time:
    """The true time, which passes only when it is told to."""

    def __init__(self) -> None:
        self._now = START

    def now(self) -> int:
        """Microseconds since the epoch."""
        return self._now

    def pass_by(self, microseconds: int) -> None:
        """Let time pass."""
        self._now += microseconds


@dataclass(frozen=True, slots=True)
class Remembered:
    """What somebody saw at some moment: the version as the engine writes it, the cut that it was, and the snapshot, still open."""

    version: str | None = None
    cut: Cut = EMPTY
    snapshot: EngineSnapshot | None = None


class World:
    """The model's side of a history.

    ``places`` are the tables and keys by number, ``puts`` the PUTs whose versions can be named, arrived or not, oldest first, and
    ``remembered`` what the engine showed at some moments; the first is the time before there was anything.
    """

    def __init__(self, time: Time, *, names: int) -> None:
        self.time = time
        self.timelines = Timelines()
        self.puts: list[Event] = []
        self.remembered: list[Remembered] = [Remembered()]
        self._states: dict[Cut, State] = {}
        self._visible_to: dict[Uuid, Cut] = {}
        objects: list[tuple[str, Key]] = [
            ("objects", (OWNER, BUCKETS[number // 3], name)) for number, name in enumerate(OBJECT_NAMES[names])
        ]
        buckets: list[tuple[str, Key]] = [("buckets", (OWNER, name)) for name in BUCKET_NAMES]
        errors: list[tuple[str, Key]] = [("harvest_errors", key) for key in ERROR_PATHS]
        self.places: list[Place] = objects + buckets + errors

    def state(self, cut: Cut) -> State:
        """The state at a cut, which never changes and so is worked out once."""
        if cut not in self._states:
            self._states[cut] = self.timelines.state(cut, PINNED, DROPPING)
        return self._states[cut]

    def newest(self) -> State:
        """The state that a reader sees who looks now."""
        return self.state(self.timelines.visible())

    def times(self) -> list[int]:
        """The commit times of all that has arrived and counts, in their order."""
        arrived = self.timelines.visible()
        return sorted({self.timelines.transactions[uuid].commit_time for uuid in arrived - self.timelines.voided(arrived)})

    def note(self, transaction: Transaction) -> None:
        """A transaction has been committed: its versions can be named from now on."""
        self.puts += [event for event in transaction.events if event.op is Op.PUT]
        self._visible_to[transaction.uuid] = self.timelines.visible() | {transaction.uuid}

    def visible_to(self, uuid: Uuid) -> Cut:
        """The most that the process can have read when it committed the transaction, and the transaction itself."""
        return self._visible_to[uuid]

    def remember(self, snapshot: EngineSnapshot) -> None:
        """Somebody notes down, and keeps open, the snapshot that the engine gives of what is visible now."""
        self.remembered.append(Remembered(snapshot.version, self.timelines.visible(), snapshot))

    def past(self, number: int) -> Remembered:
        """Something remembered, by any number."""
        return self.remembered[number % len(self.remembered)]
