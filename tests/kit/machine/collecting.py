"""Histories in which data is collected and rows are reaped, with a real deleter: what may be gone and what must be, by the model.

Every object's data is a file in the catalog's own store, there from the transaction on that names it first; nothing brings it back. The
model judges versions by their puts, their ends and the tags, and knows of a boundary that it was published, when, and what had been read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bucketcatalog.errors import CommitUnknown, OutcomeUnknown, StoreUnavailable
from bucketcatalog.store.base import Store
from bucketcatalog.store.faults import SimulatedCrash

from ..reference.model import Key, Op, State, Version, VersionName
from ..reference.timelines import Cut, Draft, Uuid
from .cloning import Clone
from .columns import DATABASE
from .comparing import check
from .driver import Addressed
from .machine import NEVER_LANDS
from .onlooker import EngineReader, heads_of
from .pruning import MAINTAINERS, Pruning, Tag
from .restores import usable
from .steps import TABLES, Compare, Fault
from .stores import View

HOUR = 3_600_000_000
GRACE = WAITED = 6 * HOUR
"""How long ago what is collected has ended, and how long a boundary is waited out, beside the lateness bound."""
LATENESS = 360_000_000
Data = tuple[str, str]
"""A bucket's id and an object's, which say where data lies."""


@dataclass(frozen=True, slots=True)
class Collect:
    """A maintainer collects, each time after so many hours more. ``refuses``: the deleter fails at each so-manieth file.

    ``dies_at`` is the file at which its process dies, ``fault`` what becomes of a PUT, after so many, in the last run.
    """

    who: int
    hours: tuple[int, ...]
    refuses: int = 0
    dies_at: int | None = None
    fault: Fault = Fault.NONE
    after: int = 0


@dataclass(frozen=True, slots=True)
class Reap:
    """A maintainer ends the rows whose parent has ended."""

    who: int
    fault: Fault = Fault.NONE


@dataclass(frozen=True, slots=True)
class NameAgain:
    """The process puts a key of the bucket of the version that is so many back, with the data of that; ``moves`` ends that version."""

    process: str
    version: int
    key: int
    moves: bool
    fault: Fault = Fault.NONE


@dataclass(slots=True)
class Deleter:
    """Deletes data files, until its process dies, but for those that it fails to."""

    store: Store
    dies_at: int | None
    refuses: int
    asked: int = 0
    refused: int = 0

    def __call__(self, batch: pa.Table) -> list[bool]:
        """For each reference whether its data is gone."""
        return [self._delete((row["bucket_id"], row["id"])) for row in batch.to_pylist()]

    def _delete(self, data: Data) -> bool:
        if self.asked == self.dies_at:
            raise SimulatedCrash(file_of(data))
        self.asked += 1
        if self.refuses and self.asked % self.refuses == 0:
            self.refused += 1
            return False
        self.store.delete(file_of(data))
        return True


def file_of(data: Data) -> str:
    """Where data lies."""
    return f"alpha/{DATABASE}/data/{data[0]}/{data[1]}"


def data_of(version: Version) -> Data:
    """The data that a version of an object names."""
    return version.key[1], str(version.row["id"])


@dataclass(frozen=True)
class Judgement:
    """What a collection may do to a state, and what it must if nothing goes wrong: versions that it purges, data that it deletes.

    The two differ where a version may be live at a tag's cut as far as heads tell, and is not.
    """

    may_purge: frozenset[VersionName]
    must_purge: frozenset[VersionName]
    may_delete: frozenset[Data]
    must_delete: frozenset[Data]


def judge(state: State, limit: int, held: Cut, *, surely: frozenset[VersionName], perhaps: frozenset[VersionName]) -> Judgement:
    """By the versions that ended at or before ``limit`` in what the boundary had ``held``.

    Those that tags need ``surely`` are among those that they need ``perhaps``.
    """
    every = [it for versions in state.versions.values() for it in versions]
    objects = [it for it in every if it.table == "objects"]
    ended = [it for it in every if it.end is not None and it.deleted_at <= limit]
    old = {it.name for it in ended if it.end is not None and {it.end.uuid, it.stamp.uuid} <= held}
    live_buckets = {it.row["id"] for it in state.live("buckets").values()}
    owners = {it.key[1] for it in objects if not it.purged} - live_buckets

    def chosen(pinned: frozenset[VersionName]) -> frozenset[VersionName]:
        found = [it for it in every if it.tombstone and it.name in old and it.name not in pinned]
        return frozenset(it.name for it in found if it.table != "buckets" or it.row["id"] not in owners)

    def garbage(named_by: frozenset[VersionName], pinned: frozenset[VersionName]) -> frozenset[Data]:
        needed = {data_of(it) for it in objects if it.name not in old or it.name in pinned}
        return frozenset({data_of(it) for it in objects if it.name in named_by} - needed)

    most, least = chosen(surely), chosen(perhaps)
    return Judgement(most, least, garbage(most, surely), garbage(least, perhaps))


class Collecting(Pruning):
    """Takes collections, reapings, and whatever names existing data, and watches the data."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._ever: set[Data] = set()
        self._gone_before: dict[str, frozenset[Data]] = {}

    def _take(self, step: Any) -> None:
        match step:
            case Collect():
                for hours in step.hours:
                    if hours:
                        self._wait_long(hours * HOUR)
                    self._collect(step)
            case Reap():
                self._reap(step)
            case NameAgain():
                self._name_again(step)
            case _:
                super()._take(step)
        self._place_data()
        if isinstance(step, Tag | Clone):
            self._note_tags()
        if isinstance(step, Compare | Collect):
            self._check_data()

    def _data_boundary(self) -> int:
        return max((boundary.data for boundary in self._maintenance.horizon.data), default=0)

    # Data.

    def _place_data(self) -> None:
        """The data of new objects is there, once, before anything else happens."""
        puts = [event for event in self._world.puts if event.table == "objects"]
        named = [(event.key[1], str(event.row["id"])) for event in puts if event.row is not None]
        for data in named:
            if data not in self._ever:
                self._ever.add(data)
                self._store.put(file_of(data), b"data")

    def _there(self) -> set[Data]:
        """The data whose files are there."""
        prefix = f"alpha/{DATABASE}/data/"
        names = [info.name.removeprefix(prefix).partition("/") for info in self._store.list(prefix)]
        return {(bucket, its_id) for bucket, _, its_id in names}

    def _note_tags(self) -> None:
        """A tag that is given to a past cut brings nothing back that is gone."""
        tags = set(self._maintenance.horizon.tags.values())
        there = self._there()
        known = {version: gone for version, gone in self._gone_before.items() if version in tags}
        self._gone_before = {version: known.get(version, self._named_at(version) - there) for version in tags}

    def _named_at(self, version: str) -> frozenset[Data]:
        return frozenset(data_of(it) for it in self._tagged(version).live("objects").values())

    def _tagged(self, version: str) -> State:
        return self._world.state(self._timelines.ancestors(heads_of(version)))

    def _check_data(self) -> None:
        """What is live has its data, and what a tag has live, as far as it was there when the tag was given."""
        there = self._there()
        live = frozenset(data_of(it) for it in self._world.newest().live("objects").values())
        check("data of live objects that is gone", set(), set(live - there))
        for name, version in self._maintenance.horizon.tags.items():
            gone = self._named_at(version) - self._gone_before[version] - there
            check(f"data of objects at the tag {name} that is gone", set(), set(gone))

    # Collecting.

    def _collect(self, step: Collect) -> None:
        if not self._timelines.arrived:
            return
        now, before, state = self._world.time.now(), self._there(), self._world.newest()
        known = self._maintenance.horizon.data
        usable = {boundary.data: boundary for boundary in known if now >= boundary.published + LATENESS + WAITED}
        pins = {"surely": self._pinned(), "perhaps": self._perhaps_pinned()}
        deleter = Deleter(self._store, step.dies_at, step.refuses)
        done, uuids = self._maintain(
            step.who, step.fault, step.after, lambda catalog, **rest: catalog.collect(deleter=deleter, older_than="6h", **rest)
        )
        purged = {event.version for uuid in uuids for event in self._timelines.transactions[uuid].events}
        gone = before - self._there()
        boundary = max(usable, default=0) if done is None else done.boundary
        self._say(f"    boundary {boundary} of {sorted(usable)}, {len(purged)} purged, {len(gone)} files deleted")
        if not boundary:
            assert not gone and not purged, "no boundary was waited out"
            assert done is None or not usable or self._maintenance.horizon.cut, "one is gone by"
            return
        judged = judge(state, min(boundary, now - GRACE), usable[boundary].held, **pins)
        check("versions that are purged and may not be", set(), purged - judged.may_purge)
        check("data that is deleted and may not be", set(), gone - judged.may_delete)
        named = {
            data_of(it) for versions in state.versions.values() for it in versions if it.name in purged and it.table == "objects"
        }
        check("data of purged versions that is there and nothing needs", set(), named & judged.must_delete & self._there())
        if done is not None and done.boundary and not deleter.refused:
            check("versions that are not purged", set(), judged.must_purge - purged)
            check("data that is not deleted", set(), judged.must_delete & self._there())

    def _pinned(self) -> frozenset[VersionName]:
        """The versions that are live at a tag's cut."""
        tagged = [self._tagged(version) for version in self._maintenance.horizon.tags.values()]
        return frozenset(it.name for state in tagged for table in TABLES for it in state.live(table).values())

    def _perhaps_pinned(self) -> frozenset[VersionName]:
        """The versions that may be, as far as can be told from the heads of the cut and the end that the state knows.

        Behind the horizon an end may lie beside one that was deleted, as far as anybody knows.
        """
        found = set(self._pinned())
        forked = self._timelines.forks(self._timelines.visible())
        behind = {(it.writer, it.revision) for it in (self._timelines.transactions[u] for u in self._maintenance.horizon.cut)}
        every = [it for versions in self._world.newest().versions.values() for it in versions]
        for version in self._maintenance.horizon.tags.values():
            cut = self._timelines.ancestors(heads_of(version))
            newest = {(it.writer, it.revision) for it in (self._timelines.transactions[uuid] for uuid in cut)}
            for it in every:
                may_have = any(writer == it.stamp.writer and revision >= it.stamp.revision for writer, revision in newest)
                unsure = it.end is None or it.end.uuid not in cut or (it.end.writer, it.end.revision) in {*forked, *behind}
                found |= {it.name} if may_have and unsure else set()
        return frozenset(found)

    # Reaping.

    def _reap(self, step: Reap) -> None:
        if not self._timelines.arrived:
            return
        state, limit = self._world.newest(), self._world.time.now() - LATENESS - 1
        expected = self._reaped(state, limit)
        done, uuids = self._maintain(
            step.who, step.fault, 1, lambda catalog, **rest: catalog.reap(older_than="0s", force=True, **rest)
        )
        events = [event for uuid in uuids for event in self._timelines.transactions[uuid].events]
        found = {(event.key, event.version) for event in events}
        assert all(event.op is Op.DELETE and event.table == "objects" for event in events)
        check("objects that are reaped, and none beside these", set(), found - expected)
        if done is not None:
            check("objects that are not reaped", set(), expected - found)

    def _reaped(self, state: State, limit: int) -> set[tuple[Key, VersionName]]:
        """Keys and versions of the live objects whose bucket has ended, all of it, at or before the limit."""
        buckets = [it for (table, _), versions in state.versions.items() if table == "buckets" for it in versions]
        lasting = {it.row["id"] for it in buckets if it.end is None or it.deleted_at > limit}
        ended = {it.row["id"] for it in buckets} - lasting
        return {(key, it.name) for key, it in state.live("objects").items() if key[1] in ended}

    def _maintain(self, who: int, fault: Fault, after: int, work: Callable[..., Any]) -> tuple[Any, list[Uuid]]:
        """Have a maintainer do something, and note what it has committed; None where it died or gave up."""
        now = self._world.time.now
        reader = EngineReader(self._store, now=now)
        start = reader.snapshot().version
        view = View(self._store, now)
        view.arm(fault, after=after)
        done = None
        try:
            done = work(
                self._maintenance.processes.catalog(who, view),
                database=DATABASE,
                writer=MAINTAINERS[who],
                dry_run=False,
                clock=now,
            )
        except (SimulatedCrash, CommitUnknown, OutcomeUnknown, StoreUnavailable) as error:
            self._say(f"    dies: {error}")
            self._maintenance.processes.dies(who)
        return done, self._maintenance.note(view, self._events_since(start))

    def _events_since(self, start: str) -> dict[Uuid, list[Draft]]:
        """The events that have come since a version, by transaction, as the catalog tells them."""
        reader = EngineReader(self._store, now=self._world.time.now)
        end = reader.snapshot().version
        found: dict[Uuid, dict[int, Draft]] = {}
        for table in TABLES:
            for op, key, version, name in reader.changes(table, start, end):
                uuid, _, seq = name.rpartition(":")
                found.setdefault(uuid, {})[int(seq)] = Draft(op=op, table=table, key=key, version=version)
        for events in found.values():
            assert sorted(events) == list(range(len(events))), "the feed has every event of a transaction"
        return {uuid: [events[seq] for seq in sorted(events)] for uuid, events in found.items()}

    # Naming data that is there.

    def _name_again(self, step: NameAgain) -> None:
        running, visible = self._process(step.process), self._timelines.visible()
        objects = [event for event in self._world.puts if event.table == "objects"]
        if running is None or not visible or not objects:
            return
        self._read(running)
        of = objects[-1 - step.version % len(objects)]
        keys = [key for table, key in self._world.places if table == "objects" and key[1] == of.key[1]]
        key = keys[step.key % len(keys)]
        assert of.row is not None
        put = Draft(op=Op.PUT, table="objects", key=key, row={**of.row, "name": key[2]})
        addressed = [Addressed(put, data_of=(of.key, of.stamp.name))]
        if step.moves:
            addressed.append(Addressed(Draft(op=Op.DELETE, table="objects", key=of.key, version=of.stamp.name, moved=True)))
        allowed = of.stamp.name in usable(self._world.newest(), "objects", self._data_boundary())
        outcome = running.engine.commit(addressed, step.fault)
        assert allowed or (outcome.refused and not outcome.published), f"the data of {of.stamp.name} may be gone"
        self._settle(running, outcome, addressed, None, must_commit=allowed and step.fault not in NEVER_LANDS)
