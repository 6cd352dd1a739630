"""What stays readable of a catalog that is pruned: answers compared where there have to be some, and refusals elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bucketcatalog import CorruptionError, HistoryPruned
from bucketcatalog.store.base import Store

from ..reference.differences import diff
from ..reference.timelines import EMPTY, Cut
from .comparing import Comparer, check
from .onlooker import EngineReader, EngineSnapshot
from .steps import TABLES, AtCommit, AtTime, AtVersion, Between, Part
from .world import Remembered, World


@dataclass(frozen=True, slots=True)
class DataBoundary:
    """A data boundary: up to when data must have ended, when that was published, and what its transaction had read."""

    data: int
    published: int
    held: Cut


@dataclass(slots=True)
class Horizon:
    """What the model knows of deleting: the cut that was published last, its newest commit time, the tags' versions, and the pins' too.

    Of a maintainer's pin it is the version and the cut. ``data`` are the data boundaries. ``damaged`` are files that were, and that
    nothing but a snapshot that is still open needs.
    """

    cut: Cut = EMPTY
    time: int = 0
    tags: dict[str, str] = field(default_factory=dict)
    pins: dict[int, tuple[str, Cut]] = field(default_factory=dict)
    data: list[DataBoundary] = field(default_factory=list)
    damaged: set[str] = field(default_factory=set)

    def may_read(self, version: str | None, cut: Cut) -> bool:
        """Whether a version has to be readable."""
        return self.cut <= cut or version in self.tags.values()


class PruningComparer(Comparer):
    """Compares what can be read, and checks that the rest is refused."""

    def __init__(self, world: World, store: Store, horizon: Horizon) -> None:
        super().__init__(world, store)
        self._horizon = horizon

    def _refused(self, what: str, ask: Callable[[], object]) -> None:
        try:
            found = ask()
        except HistoryPruned:
            return
        raise AssertionError(f"{what} lies behind the horizon and was shown: {found}")

    def _at_time(self, reader: EngineReader, look: AtTime) -> None:
        times = self._world.times()
        time = times[look.number % len(times)] - look.just_before
        if time < self._horizon.time:
            self._refused(f"time {time}", lambda: reader.snapshot(timestamp=time).version)
        else:
            super()._at_time(reader, look)

    def at_version(self, reader: EngineReader, look: AtVersion) -> None:
        """Compare; what has to be readable is not refused."""
        past = self._world.past(look.number)
        try:
            super().at_version(reader, look)
        except HistoryPruned:
            assert not self._horizon.may_read(past.version, past.cut)

    def _at_commit(self, reader: EngineReader, look: AtCommit) -> None:
        """Compare; a commit that had certainly read all that the horizon holds is not refused."""
        try:
            super()._at_commit(reader, look)
        except HistoryPruned:
            assert self._horizon.cut, "nothing was pruned"
            commit = self.commit_of(look)
            had_read = self._horizon.cut <= self._world.timelines.causal(commit.uuid)
            assert not had_read, f"{commit.writer}@{commit.revision} had read all that the horizon holds, and is refused"

    def kept(self, number: int, part: Part) -> None:
        """What an old snapshot shows is right, or it says that it was pruned."""
        try:
            super().kept(number, part)
        except HistoryPruned:
            assert self._horizon.cut, "nothing was pruned"
        except CorruptionError as error:
            check("the message names a damaged file", True, any(name in error.message for name in self._horizon.damaged))

    def forks(self, snapshot: EngineSnapshot, cut: Cut) -> None:
        """Forks in what may have been deleted need not be shown; all others are, and each as it is.

        Of one with a voided branch it may not be known whether it was joined.
        """
        timelines = self._world.timelines
        forks = timelines.forks(cut).items()
        expected = {(writer, revision, uuids, not timelines.is_joined(uuids, cut)) for (writer, revision), uuids in forks}
        found, voided = snapshot.forks(), timelines.voided(cut)
        of_voided = {
            (writer, at, uuids, is_open) for writer, at, uuids, _ in expected if uuids & voided for is_open in (True, False)
        }
        check("forks now, none beside those that there are", set(), found - expected - of_voided)
        needed = {fork for fork in expected - of_voided if not fork[2] <= self._horizon.cut}
        check("forks now, all that are needed", set(), needed - found)

    def between(self, reader: EngineReader, look: Between) -> None:
        """Compare where both ends can be read, and see that events from behind the horizon are refused.

        An end behind it may be read all the same, where the checkpoint of exactly that version is still there; then it is right.
        """
        start, end = self._world.past(look.start), self._world.past(look.end)
        end = self._world.remembered[-1] if end.version is None else end
        if self._horizon.cut <= start.cut:
            try:
                super().between(reader, look)
            except HistoryPruned:
                assert not self._horizon.may_read(end.version, end.cut)
            return
        assert end.version is not None
        self._refused(f"events from {start.version}", lambda: reader.changes("objects", start.version, end.version or ""))
        table = TABLES[look.table]
        try:
            net = reader.diff(table, start.version, end.version)
        except HistoryPruned:
            assert not (self._can_differ(start) and self._can_differ(end))
            return
        check("difference", diff(self._world.state(start.cut), self._world.state(end.cut), table), net)

    def _can_differ(self, past: Remembered) -> bool:
        return past.version is None or self._horizon.may_read(past.version, past.cut)
