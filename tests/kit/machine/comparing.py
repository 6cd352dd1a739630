"""Asks the engine everything that the model can answer, and compares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bucketcatalog.store.base import Store

from ..reference.differences import changes, diff
from ..reference.model import Event, Key, Op, Version, VersionName
from ..reference.pages import ListRequest
from ..reference.timelines import Cut, Transaction
from .columns import COLUMNS, CREATED, MODIFIED
from .onlooker import EngineReader, EngineSnapshot
from .steps import TABLES, AtCommit, AtTime, AtVersion, Between, Compare, Forks, Kept, Listing, LookUp, Now, Part
from .world import BUCKETS, OWNER, START, World


class Comparer:
    """Compares through a catalog opened just for that, or through one that has been open all the time."""

    def __init__(self, world: World, store: Store) -> None:
        self._world = world
        self._store = store
        self._follower = EngineReader(store, now=world.time.now)

    def remember(self) -> None:
        """Note down the version that the catalog shows now."""
        self._world.remember(self._follower.snapshot())

    def compare(self, step: Compare) -> None:
        """Take every look that the step asks for."""
        reader = EngineReader(self._store, now=self._world.time.now) if step.fresh else self._follower
        newest = reader.snapshot()
        self._world.remember(newest)
        visible = self._world.timelines.visible()
        self._check_cut("now", newest, visible)
        if step.fresh:
            self._check_cut("now, to who has followed from the beginning", self._follower.snapshot(), visible)
        for look in step.looks:
            match look:
                case Now(part):
                    self.part("now", part, newest, visible)
                case Listing():
                    self._listing(newest, look)
                case LookUp(number):
                    self.look_up(newest, visible, number)
                case AtTime():
                    self._at_time(reader, look)
                case AtVersion():
                    self.at_version(reader, look)
                case AtCommit():
                    self._at_commit(reader, look)
                case Kept(number, part):
                    self.kept(number, part)
                case Forks():
                    self.forks(newest, visible)
                case Between():
                    self.between(reader, look)

    def _check_cut(self, what: str, snapshot: EngineSnapshot, cut: Cut) -> None:
        """What a cut voids can be in it, without effect, or not."""
        found, voided = self._cut(snapshot), self._world.timelines.voided(cut)
        check(f"transactions in the version {snapshot.version}, {what}", set(cut - voided), set(found - voided))

    def _cut(self, snapshot: EngineSnapshot) -> Cut:
        return self._world.timelines.ancestors(snapshot.heads)

    def part(self, what: str, part: Part, snapshot: EngineSnapshot, cut: Cut) -> None:
        """Compare a part of what a snapshot shows with the state at a cut."""
        state = self._world.state(cut)
        if part is Part.CONFLICTS:
            conflicts = {(it.kind, it.table, it.version, it.event.name, it.expected, it.found) for it in state.conflicts}
            check(f"conflicts {what}", conflicts, snapshot.conflicts())
            return
        table = {Part.BUCKETS: "buckets", Part.ERRORS: "harvest_errors"}.get(part, "objects")
        if part is not Part.DELETED_OBJECTS:
            live = {key: (it.name, shown(it)) for key, it in state.live(table).items()}
            found = {key: (it.version, it.row) for key, it in snapshot.live(table).items()}
            check(f"live {table} {what}", live, found)
        if part is Part.OBJECTS:
            check(f"sums {what}", _sums(state.live("objects").values()), snapshot.sums())
        else:
            ended = {name: (it.key, it.deleted_at, shown(it)) for name, it in state.tombstones(table).items()}
            gone = {name: (key, deleted_at, it.row) for name, (key, deleted_at, it) in snapshot.tombstones(table).items()}
            check(f"tombstones of {table} {what}", ended, gone)
            times = sorted(deleted_at for _, deleted_at, _ in ended.values()) or [START]
            for first, last in ((0, len(times) // 2), (len(times) // 3, -1)):
                low, high = times[first], times[last]
                within = {name: one for name, one in ended.items() if low <= one[1] <= high}
                some = {name: (key, at, it.row) for name, (key, at, it) in snapshot.tombstones(table, (low, high)).items()}
                check(f"tombstones of {table} that ended from {low - START:+} to {high - START:+} {what}", within, some)

    def look_up(self, snapshot: EngineSnapshot, cut: Cut, number: int) -> None:
        """Compare the row of one key."""
        table, key = self._world.places[number]
        live = self._world.state(cut).get(table, key)
        check(f"{table} at {key}", shown(live) if live else None, snapshot.get(table, key))

    def _listing(self, snapshot: EngineSnapshot, listing: Listing) -> None:
        """Page after page: each side continues from its own marker, so the engine is free in how it writes them."""
        listed = [*(("objects", (OWNER, bucket)) for bucket in BUCKETS), ("buckets", (OWNER,)), ("harvest_errors", ("disk",))]
        table, parent = listed[listing.bucket]
        place, length = listing.prefix
        request: dict[str, Any] = {"prefix": self._name(place)[:length], "delimiter": listing.delimiter, "limit": listing.limit}
        mine = theirs = None if listing.marker is None else self._name(listing.marker)
        for _ in range(len(self._world.places) + 1):
            expected = self._world.newest().list(table, parent, ListRequest(**request, marker=mine))
            found = snapshot.list(table, parent, ListRequest(**request, marker=theirs))
            what = f"listing of {table} {request} after {theirs!r}"
            check(what, (expected.names, expected.groups), (found.names, found.groups))
            check(f"whether nothing follows the {what}", expected.next_marker is None, found.next_marker is None)
            mine, theirs = expected.next_marker, found.next_marker
            if mine is None:
                return
        raise AssertionError("a listing has more pages than names")

    def _name(self, place: int) -> str:
        return self._world.places[place][1][-1]

    def _at_time(self, reader: EngineReader, look: AtTime) -> None:
        timelines, times = self._world.timelines, self._world.times()
        time = times[look.number % len(times)] - look.just_before
        snapshot, cut, what = reader.snapshot(timestamp=time), timelines.at(time), f"as of the time {time - START:+}"
        self._check_cut(what, snapshot, cut)
        self.part(what, look.part, snapshot, cut)

    def at_version(self, reader: EngineReader, look: AtVersion) -> None:
        """Compare what a version shows now with the state that it showed when it was noted down."""
        past = self._world.past(look.number)
        if past.version is not None:
            snapshot, what = reader.snapshot(version=past.version), f"as of the version {past.version}"
            self._check_cut(what, snapshot, past.cut)
            self.part(what, look.part, snapshot, past.cut)

    def kept(self, number: int, part: Part) -> None:
        """Compare what an old snapshot shows now with the state when it was taken."""
        past = self._world.past(number)
        if past.snapshot is not None:
            self.part(f"in the snapshot that is open since {past.version}", part, past.snapshot, past.cut)

    def forks(self, snapshot: EngineSnapshot, cut: Cut) -> None:
        """Compare the forks."""
        timelines = self._world.timelines
        forks = timelines.forks(cut).items()
        expected = {(writer, revision, uuids, not timelines.is_joined(uuids, cut)) for (writer, revision), uuids in forks}
        check("forks now", expected, snapshot.forks())

    def commit_of(self, look: AtCommit) -> Transaction:
        """The commit that is looked at: any that has arrived, by number."""
        transactions = self._world.timelines.transactions
        commits = sorted(self._world.timelines.arrived, key=lambda uuid: transactions[uuid].stamp(0))
        return transactions[commits[look.number % len(commits)]]

    def _at_commit(self, reader: EngineReader, look: AtCommit) -> None:
        """As of some commit, where writer and revision name one.

        What the process had read is known from below; it may have read more than it needed, and its transaction says so.
        """
        timelines, commit = self._world.timelines, self.commit_of(look)
        if commit.revision in timelines.branches(commit.writer):
            return
        name = f"{commit.writer}@{commit.revision}"
        snapshot = reader.snapshot(version=name)
        cut = self._cut(snapshot)
        least, most = timelines.causal(commit.uuid), self._world.visible_to(commit.uuid)
        lacks = least - timelines.voided(least) - cut
        check(f"transactions that {name} had read and its version {snapshot.version} lacks", set(), set(lacks))
        check(f"transactions that {name} cannot have read, in its version {snapshot.version}", set(), set(cut - most))
        missing = timelines.causal(*cut) - cut - timelines.voided(cut)
        check(f"transactions that those in {snapshot.version} follow or had read, and it lacks", set(), set(missing))
        self.part(f"as of {name}", look.part, snapshot, cut)

    def between(self, reader: EngineReader, look: Between) -> None:
        """Compare the events between two versions, and the net difference."""
        start, end = self._world.past(look.start), self._world.past(look.end)
        if end.version is None:
            end = self._world.remembered[-1]
        assert end.version is not None
        table, what = TABLES[look.table], f"between {start.version} and {end.version}"
        events = changes(self._world.timelines.events(start.cut), self._world.timelines.events(end.cut))
        expected = [_feed(event) for event in events if event.table == table]
        check(f"changes of {table} {what}", expected, reader.changes(table, start.version, end.version))
        net = diff(self._world.state(start.cut), self._world.state(end.cut), table)
        check(f"difference of {table} {what}", net, reader.diff(table, start.version, end.version))


def check(what: str, expected: object, found: object) -> None:
    """Fail with the differences only, if there are any."""
    if expected == found:
        return
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        keys: Iterable[Any] = expected.keys() | found.keys()
        different = [key for key in keys if expected.get(key) != found.get(key)]
        lines = [line for key in different for line in (f"  {key}", *_both(expected.get(key), found.get(key)))]
    elif isinstance(expected, set) and isinstance(found, set):
        lines = [f"  expected {it}" for it in expected - found] + [f"  found    {it}" for it in found - expected]
    else:
        lines = _both(expected, found)
    raise AssertionError("\n".join([what, *lines]))


def _both(expected: object, found: object) -> list[str]:
    return [f"    expected {expected}", f"    found    {found}"]


def _sums(live: Iterable[Version]) -> dict[tuple[str, Key], int]:
    """How many objects each bucket has, and how many bytes."""
    found: dict[tuple[str, Key], int] = {}
    for version in live:
        group = version.key[:2]
        for name, value in (("objects", 1), ("bytes", version.row["content_length"] or 0)):
            found[name, group] = found.get((name, group), 0) + value
    return found


def shown(version: Version) -> dict[str, Any]:
    """A version's row as readers are shown it."""
    row = {column: version.row.get(column) for column in COLUMNS[version.table]}
    defaults = {CREATED.get(version.table): version.stamp.commit_time, MODIFIED.get(version.table): version.row_stamp.commit_time}
    return {column: defaults.get(column) if value is None else value for column, value in row.items()}


def _feed(event: Event) -> tuple[Op, Key, VersionName | None, str]:
    version = event.stamp.name if event.op is Op.PUT else event.version
    return event.op, event.key, version, event.stamp.name
