"""The definition of a catalog's state, as plainly as it can be said: lists, loops and comparisons over a set of events.

Nothing here is shared with the engine. Every function is written straight from the rules and tries to be obvious, not fast; where
the engine and this page disagree, one of the two is wrong. What follows is, in order: events, the state that a set of them gives, and
look-ups in a state. Ordered listings are in ``pages.py``, what happened between two states is in ``differences.py``, and writers, their
timelines and cuts are in ``timelines.py``.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from .pages import ListRequest, Page, page

Key = tuple[str, ...]
Row = Mapping[str, Any]
Place = tuple[str, Key]
"""A table and a key in it."""

VersionName = str
"""How a version is named: ``<uuid of the transaction>:<seq>`` of its PUT."""

INCARNATIONS = uuid.uuid5(uuid.NAMESPACE_URL, "urn:bucketcatalog:incarnation:v1")
"""The namespace of the ids of buckets that are put without one."""

ABSENT = "absent"
"""The expectation that a key has no live version, and what is found where it has none."""


class Op(Enum):
    """What an event does; the value is how the change feed calls it."""

    PUT = "put"
    UPDATE = "update"
    DELETE = "delete"
    PURGE = "purge"


class EndKind(Enum):
    """What ended a version."""

    PUT = "put"
    BLIND_DELETE = "blind delete"
    NAMED_DELETE = "named delete"
    MOVE = "move"


class ConflictKind(Enum):
    """The two ways in which events can contradict each other."""

    LATE_UPDATE = "late update"
    EXPECTATION = "expectation"


class Stamp(NamedTuple):
    """When and where an event happened. Stamps are compared field by field, so all events have one order.

    ``uuid`` has its 36 characters in lower case, which sort like the 16 bytes. ``commit_time`` counts microseconds.
    """

    commit_time: int
    writer: str
    revision: int
    uuid: str
    seq: int

    @property
    def name(self) -> VersionName:
        """What the version that a PUT with this stamp begins is called."""
        return f"{self.uuid}:{self.seq}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One fact. ``version`` is what an UPDATE, PURGE or naming DELETE names; a DELETE without it is blind.

    ``row`` is there for PUT and UPDATE; ``expect`` (a version's name or ``ABSENT``) can be there for PUT and blind DELETE;
    ``moved`` marks a naming DELETE as one half of a rename.
    """

    stamp: Stamp
    op: Op
    table: str
    key: Key
    row: Row | None = None
    version: VersionName | None = None
    expect: VersionName | None = None
    moved: bool = False

    def __post_init__(self) -> None:
        assert (self.row is not None) == (self.op in (Op.PUT, Op.UPDATE)), "PUT and UPDATE have a row"
        assert self.version is None or self.op is not Op.PUT, "a PUT names nothing"
        assert self.version is not None or self.op not in (Op.UPDATE, Op.PURGE), "UPDATE and PURGE name a version"
        assert self.expect is None or self.replaces, "only PUT and blind DELETE replace what they may not have seen"
        assert not self.moved or (self.op is Op.DELETE and self.version is not None), "a move ends the version it names"

    @property
    def place(self) -> Place:
        """The table and key that the event is about."""
        return self.table, self.key

    @property
    def replaces(self) -> bool:
        """Whether the event ends whatever version is current: a PUT or a blind DELETE."""
        return self.op is Op.PUT or (self.op is Op.DELETE and self.version is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of one key, as a set of events leaves it."""

    table: str
    key: Key
    stamp: Stamp
    row: Row
    row_stamp: Stamp
    end: Stamp | None
    end_kind: EndKind | None
    purged: bool

    @property
    def name(self) -> VersionName:
        """How events name this version."""
        return self.stamp.name

    @property
    def live(self) -> bool:
        """Whether nothing has ended it."""
        return self.end is None

    @property
    def tombstone(self) -> bool:
        """Whether it has ended and nobody purged it."""
        return self.end is not None and not self.purged

    @property
    def deleted_at(self) -> int:
        """The commit time of its end."""
        assert self.end is not None
        return self.end.commit_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Two events that contradict each other. ``event`` is the one that lost or was surprised.

    A late UPDATE: ``version`` is the one that it wanted to change after its end; ``expected`` and ``found`` are none. An
    expectation: ``version`` is the PUT's own, or none for a DELETE; ``expected`` is what it said, ``found`` what it replaced.
    """

    kind: ConflictKind
    table: str
    key: Key
    version: VersionName | None
    event: Stamp
    expected: VersionName | None = None
    found: VersionName | None = None


def versions_of_key(events: list[Event], pinned: Iterable[str], *, keeps_tombstones: bool = True) -> list[Version]:
    """Every version of one key, oldest first; ``events`` are all of that key, in any order.

    ``pinned`` are the columns that stay the PUT's whatever later UPDATEs say: key, id and data reference. Where tombstones are not
    kept, whatever ends is purged at once.
    """
    versions = []
    for put in sorted((event for event in events if event.op is Op.PUT), key=lambda event: event.stamp):
        name = put.stamp.name
        later = [event for event in events if event.stamp > put.stamp]
        naming = [event for event in later if event.version == name]
        ends = [event for event in later if event.replaces] + [event for event in naming if event.op is Op.DELETE]
        end = min(ends, key=lambda event: event.stamp, default=None)
        writes = [put, *(event for event in naming if event.op is Op.UPDATE)]
        latest = max(writes, key=lambda event: event.stamp)
        versions.append(
            Version(
                table=put.table,
                key=put.key,
                stamp=put.stamp,
                row=_row(put, latest, pinned),
                row_stamp=latest.stamp,
                end=end.stamp if end else None,
                end_kind=_end_kind(end) if end else None,
                purged=not keeps_tombstones or any(event.op is Op.PURGE and event.version == name for event in events),
            )
        )
    return versions


def _row(put: Event, latest: Event, pinned: Iterable[str]) -> Row:
    assert put.row is not None and latest.row is not None
    return {**latest.row, **{column: put.row[column] for column in pinned if column in put.row}}


def _end_kind(end: Event) -> EndKind:
    if end.op is Op.PUT:
        return EndKind.PUT
    if end.version is None:
        return EndKind.BLIND_DELETE
    return EndKind.MOVE if end.moved else EndKind.NAMED_DELETE


def conflicts_of_key(events: list[Event], versions: list[Version]) -> list[Conflict]:
    """Every conflict of one key; ``versions`` are what ``versions_of_key`` makes of the same events."""
    conflicts = [
        Conflict(kind=ConflictKind.LATE_UPDATE, table=it.table, key=it.key, version=it.name, event=it.row_stamp)
        for it in versions
        if it.end is not None and it.row_stamp > it.end
    ]
    ended_by = {version.end: version.name for version in versions if version.end is not None}
    for event in events:
        found = ended_by.get(event.stamp, ABSENT)
        if event.expect is not None and event.expect != found:
            conflicts.append(
                Conflict(
                    kind=ConflictKind.EXPECTATION,
                    table=event.table,
                    key=event.key,
                    version=event.stamp.name if event.op is Op.PUT else None,
                    event=event.stamp,
                    expected=event.expect,
                    found=found,
                )
            )
    return sorted(conflicts, key=lambda conflict: (conflict.event, conflict.kind.value))


@dataclass(frozen=True, slots=True)
class State:
    """What a set of events amounts to: every version of every key, and the conflicts."""

    versions: dict[Place, list[Version]] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)

    def live(self, table: str) -> dict[Key, Version]:
        """The live version of each key that has one."""
        found = {}
        for (its_table, key), versions in self.versions.items():
            living = [version for version in versions if version.live]
            assert len(living) <= 1, "the next PUT ends a version, so at most the last one lives"
            if its_table == table and living:
                found[key] = living[0]
        return found

    def tombstones(self, table: str) -> dict[VersionName, Version]:
        """The ended versions that nobody purged, by name."""
        ended = [version for versions in self.versions.values() for version in versions if version.tombstone]
        return {version.name: version for version in ended if version.table == table}

    def get(self, table: str, key: Key) -> Version | None:
        """The live version of a key, if it has one."""
        return self.live(table).get(key)

    def list(self, table: str, parent: Key, request: ListRequest) -> Page:
        """One page of the live keys that are ``parent`` and a name, in byte order of the names."""
        return page([key[-1] for key in self.live(table) if key[:-1] == parent], request)


def state(events: Iterable[Event], pinned: Mapping[str, Iterable[str]] | None = None, dropping: Collection[str] = ()) -> State:
    """The state that a set of events gives; their order means nothing.

    ``pinned`` maps tables to their pinned columns; the tables in ``dropping`` keep no tombstones.
    """
    by_place: dict[Place, list[Event]] = {}
    for event in events:
        by_place.setdefault(event.place, []).append(event)
    result = State()
    for place, its_events in by_place.items():
        columns, keeps = (pinned or {}).get(place[0], ()), place[0] not in dropping
        versions = versions_of_key(its_events, columns, keeps_tombstones=keeps)
        result.versions[place] = versions
        result.conflicts.extend(conflicts_of_key(its_events, versions))
    return result


def incarnation(versions: list[Version], key: Key) -> str:
    """The id that a bucket gets which is put without one; ``versions`` are those of its key, oldest first (docs/spec/ids.md)."""
    for version in versions:
        if version.live:
            return str(version.row["id"])
    owner, name = key
    had = {str(version.row["id"]) for version in versions}
    previous = uuid.UUID(versions[-1].row["id"]).bytes if versions else b""
    while True:
        digest = hashlib.sha1(INCARNATIONS.bytes + uuid.UUID(owner).bytes + name.encode() + previous).digest()
        found = uuid.UUID(bytes=digest[:16], version=5)
        if str(found) not in had:
            return str(found)
        previous = found.bytes
