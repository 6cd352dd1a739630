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
    named = []
    for fact in facts:
        if fact.kind == BLIND:
            assert fact.stamp is not None
            deletes[fact.stamp] = fact.expects
        elif fact.kind == NAMED:
            named.append(fact)
        else:
            assert fact.stamp is not None
            name = name_of(fact.stamp)
            new = Version(fact.stamp, fact.row, fact.row_stamp or fact.stamp, fact.expects, purged=fact.purged)
            known = versions.setdefault(name, new)
            if new.row_stamp > known.row_stamp:
                known.row, known.row_stamp = new.row, new.row_stamp
            known.purged = known.purged or new.purged
            if fact.end is not None:
                ends.setdefault(name, []).append(fact.end)
            if fact.end is not None and fact.end_kind == BY_BLIND:
                deletes[fact.end] = fact.end_expects
    for fact in named:
        assert fact.name is not None
        if fact.name in versions:
            ends.setdefault(fact.name, []).extend(_named(versions[fact.name], fact, fact.name, table))
    ordered = sorted(versions.values(), key=lambda version: version.stamp)
    for at, version in enumerate(ordered):
        candidates = ends.get(name_of(version.stamp), []) + [d for d in deletes if d > version.stamp]
        candidates += [ordered[at + 1].stamp] if at + 1 < len(ordered) else []
        version.end = min(candidates, default=None)
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
        name = name_of(version.stamp)
        if version.end is not None and version.row_stamp > version.end:
            yield "late_update", text_of(name), version.row_stamp, None, None
        found = replaced.get(version.stamp, "absent")
        if version.expects is not None and version.expects != found:
            yield "expectation", text_of(name), version.stamp, _said(version.expects), _said(found)
    for stamp, expects in state.deletes.items():
        found = replaced.get(stamp, "absent")
        if expects is not None and expects != found:
            yield "expectation", None, stamp, _said(expects), _said(found)


def _said(what: Any) -> str:
    return what if isinstance(what, str) else text_of(what)
