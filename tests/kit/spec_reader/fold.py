"""The state of a key, and its conflicts (spec/fold.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .facts import BLIND, BY_BLIND, NAMED, Fact
from .stamps import Name, Stamp, name_of, text_of, uuid_time
from .tables import Table


@dataclass
class Version:
    """What the fold makes of one version of a key."""

    stamp: Stamp
    row: dict[int, Any]
    row_stamp: Stamp
    expects: Any
    end: Stamp | None = None
    purged: bool = False


@dataclass
class State:
    """The state of one key: its versions by stamp, and every blind delete with what it expected."""

    versions: list[Version]
    deletes: dict[Stamp, Any]


def comes_after(stamp: Stamp, name: Name) -> bool:
    """Whether an event with this stamp can have an effect on the version with this name (spec/fold.md)."""
    return stamp[4] > name[1] if stamp[3] == name[0] else stamp[0] > uuid_time(name[0])


def fold(facts: Iterable[Fact], table: Table) -> State:
    """The state that facts about one key make (spec/fold.md)."""
    versions: dict[Name, Version] = {}
    ends: dict[Name, list[Stamp]] = {}
    deletes: dict[Stamp, Any] = {}
    for fact in sorted(facts, key=lambda fact: fact.kind):  # those that name versions are the last
        if fact.kind == NAMED:
            assert fact.name is not None
            if fact.name in versions:
                ends.setdefault(fact.name, []).extend(_named(versions[fact.name], fact, fact.name, table))
            continue
        assert fact.stamp is not None
        if fact.kind == BLIND:
            deletes[fact.stamp] = fact.expects
            continue
        name = name_of(fact.stamp)
        new = Version(fact.stamp, fact.row, fact.row_stamp or fact.stamp, fact.expects)
        known = versions.setdefault(name, new)
        if new.row_stamp > known.row_stamp:
            known.row, known.row_stamp = new.row, new.row_stamp
        known.purged = known.purged or fact.purged
        if fact.end is not None:
            ends.setdefault(name, []).append(fact.end)
            if fact.end_kind == BY_BLIND:
                deletes[fact.end] = fact.end_expects
    ordered = sorted(versions.values(), key=lambda version: version.stamp)
    for version in ordered:
        after = [stamp for stamp in (*deletes, *(other.stamp for other in ordered)) if stamp > version.stamp]
        version.end = min(ends.get(name_of(version.stamp), []) + after, default=None)
        version.purged = version.purged or (table.drops_tombstones and version.end is not None)
    return State(ordered, deletes)


def _named(version: Version, fact: Fact, name: Name, table: Table) -> Iterator[Stamp]:
    """What a fact says of the version that it names; gives its end, if it is one."""
    version.purged = version.purged or fact.purged
    if fact.end is not None and comes_after(fact.end, name):
        yield fact.end
    if fact.row_stamp is not None and comes_after(fact.row_stamp, name) and fact.row_stamp > version.row_stamp:
        fixed = {number: value for number, value in version.row.items() if number in table.fixed}
        version.row = {n: v for n, v in fact.row.items() if n not in table.fixed} | fixed
        version.row_stamp = fact.row_stamp


def conflicts(state: State) -> Iterator[tuple[Any, ...]]:
    """Kind, version, event, expected and found of every conflict (spec/fold.md)."""
    replaced = {version.end: name_of(version.stamp) for version in state.versions if version.end is not None}
    for version in state.versions:
        if version.end is not None and version.row_stamp > version.end:
            yield "late_update", text_of(name_of(version.stamp)), version.row_stamp, None, None
    expecting = [(text_of(name_of(version.stamp)), version.stamp, version.expects) for version in state.versions]
    for name, stamp, expects in (*expecting, *((None, *delete) for delete in state.deletes.items())):
        found = replaced.get(stamp, "absent")
        if expects is not None and expects != found:
            yield "expectation", name, stamp, _said(expects), _said(found)


def _said(what: Any) -> str:
    return what if isinstance(what, str) else text_of(what)
