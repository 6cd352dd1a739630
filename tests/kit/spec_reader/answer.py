"""What the facts of a database say: rows as people see them, conflicts, tags, pins (spec/tables.md, fold.md, tags.md, pins.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .cuts import cut_text, refs_of
from .facts import Fact
from .fold import State, Version, conflicts, fold
from .stamps import name_of, stamp_of, text_of, time_of
from .tables import Column, Table, encoded_key, zero
from .trust import is_maintainer

Entry = tuple[tuple[Any, ...], Any]
"""What is said of a tag or a pin, behind the stamp of the transaction that says it."""


def tag_entries(transactions: Iterable[Any], checkpoints: Iterable[Any] = ()) -> list[Entry]:
    """What transactions and checkpoints say of tags (spec/tags.md)."""
    entries = [(stamp_of(transaction), entry) for transaction in transactions for entry in transaction.tags]
    return entries + [(stamp_of(entry.carried_by), entry) for checkpoint in checkpoints for entry in checkpoint.tags]


def tags_of(entries: list[Entry]) -> Iterator[tuple[Entry, Entry | None]]:
    """Of each tag the entry that counts, and the one that it replaced, if there is one (spec/tags.md)."""
    for name in sorted({entry.name for _, entry in entries}):
        about = [one for one in entries if one[1].name == name]
        maintained = [one for one in about if is_maintainer(one[0][1])]
        *before, latest = sorted(maintained or about, key=lambda one: one[0])
        others = [one for one in before if set(refs_of(one[1].cut.writers)) != set(refs_of(latest[1].cut.writers))]
        yield latest, others[-1] if others else None


def pins_of(transactions: Iterable[Any], checkpoints: Iterable[Any] = ()) -> Iterator[Entry]:
    """Of each pin of each writer the entry that counts (spec/pins.md)."""
    entries = [(stamp_of(transaction), transaction.pin) for transaction in transactions if transaction.HasField("pin")]
    entries += [(stamp_of(entry.carried_by), entry) for checkpoint in checkpoints for entry in checkpoint.pins]
    latest = {(stamp[1], entry.name): (stamp, entry) for stamp, entry in sorted(entries, key=lambda one: one[0])}
    rank: dict[str, int] = {}
    for key in sorted(latest, key=lambda key: latest[key][0], reverse=True):
        rank[key[0]] = rank.get(key[0], 0) + 1
        if rank[key[0]] > 64 and not is_maintainer(key[0]):
            del latest[key]
    yield from (latest[key] for key in sorted(latest))


@dataclass
class Answer:
    """What the facts of a database say."""

    tables: dict[str, Table]
    tag_entries: list[Entry] = field(default_factory=list)
    pin_entries: list[Entry] = field(default_factory=list)
    facts: dict[str, dict[bytes, list[Fact]]] = field(init=False)

    def __post_init__(self) -> None:
        self.facts = {name: {} for name in self.tables}

    def add(self, said: Iterable[tuple[str, Fact]]) -> None:
        """Take in facts, each with the name of its table."""
        for name, fact in said:
            self.facts[name].setdefault(encoded_key(self.tables[name], fact.row), []).append(fact)

    def _states(self, name: str) -> Iterator[tuple[bytes, State]]:
        for key, facts in sorted(self.facts[name].items()):
            yield key, fold(facts, self.tables[name])

    def live(self, name: str) -> list[dict[str, Any]]:
        """The live rows."""
        return [shown(self.tables[name], v) for _, state in self._states(name) for v in state.versions if v.end is None]

    def tombstones(self, name: str) -> list[dict[str, Any]]:
        """The tombstones, with ``deleted_at``."""
        versions = (version for _, state in self._states(name) for version in state.versions)
        return [shown(self.tables[name], v) | {"deleted_at": time_of(v.end[0])} for v in versions if v.end and not v.purged]

    def conflicts(self) -> list[dict[str, Any]]:
        """The conflicts of every table."""
        return [
            {
                "kind": kind,
                "table": name,
                "key": key,
                "version": version,
                "event": text_of(name_of(event)),
                "commit_timestamp": time_of(event[0]),
                "writer": event[1],
                "expected": expected,
                "found": found,
            }
            for name in self.tables
            for key, state in self._states(name)
            for kind, version, event, expected, found in conflicts(state)
        ]

    def tags(self) -> list[dict[str, Any]]:
        """Every tag, dropped ones too, with what it replaced (spec/tags.md)."""
        return [
            {
                "name": latest.name,
                "version": cut_text(refs_of(latest.cut.writers)),
                "created": time_of(latest.created),
                "dropped": latest.dropped,
                "commit_timestamp": time_of(time),
                "writer": writer,
                "revision": revision,
                "replaced_version": replaced and cut_text(refs_of(replaced[1].cut.writers)),
                "replaced_commit_timestamp": replaced and time_of(replaced[0][0]),
                "replaced_writer": replaced and replaced[0][1],
            }
            for ((time, writer, revision, _), latest), replaced in tags_of(self.tag_entries)
        ]

    def pins(self) -> list[dict[str, Any]]:
        """Every pin that is not dropped (spec/pins.md)."""
        return [
            {
                "name": entry.name,
                "writer": writer,
                "version": cut_text(refs_of(entry.cut.writers)),
                "commit_timestamp": time_of(time),
                "revision": revision,
            }
            for (time, writer, revision, _), entry in self.pin_entries
            if not entry.dropped
        ]


def shown(table: Table, version: Version) -> dict[str, Any]:
    """A row as people see it (spec/tables.md), with what every table shows on request."""
    commit_time, writer, revision = version.stamp[:3]
    times = {1: commit_time, 2: version.row_stamp[0]}
    row = {column.name: _surface(column, version.row.get(column.number, times.get(column.default))) for column in table.shown}
    return row | {
        "_version": text_of(name_of(version.stamp)),
        "_commit_timestamp": time_of(commit_time),
        "_writer": writer,
        "_revision": revision,
    }


def _surface(column: Column, value: Any) -> Any:
    if value is None and column.implicit:
        value = zero(column)
    if value is None:
        return None
    if column.type == "map":
        return [tuple(map(_surface, column.children, pair)) for pair in value]
    if column.type == "list":
        return [_surface(column.children[0], item) for item in value]
    if column.type == "message":
        return {child.name: _surface(child, value.get(child.number)) for child in column.children}
    if column.type == "enum":
        return column.symbols.get(value, str(value))
    return time_of(value) if column.type == "timestamp" else value
