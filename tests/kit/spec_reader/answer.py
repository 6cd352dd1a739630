"""What the facts of a database say: rows, conflicts, tags (spec/fold.md, spec/tags.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .cuts import cut_text
from .facts import Fact
from .fold import State, conflicts, fold
from .stamps import name_of, stamp_of, text_of, time_of
from .surface import shown
from .tables import Table


def tag_entries(tail: Iterable[Any], checkpoints: Iterable[Any]) -> list[tuple[tuple[Any, ...], Any]]:
    """What transactions and checkpoints say of tags, each with the stamp of its transaction (spec/tags.md)."""
    entries = [(stamp_of(transaction), entry) for transaction in tail for entry in transaction.tags]
    return entries + [(stamp_of(entry.carried_by), entry) for checkpoint in checkpoints for entry in checkpoint.tags]


@dataclass
class Answer:
    """What the facts of a database say."""

    tables: dict[str, Table]
    facts: dict[str, dict[bytes, list[Fact]]]
    tag_entries: list[tuple[tuple[Any, ...], Any]]

    def tags(self) -> list[dict[str, Any]]:
        """Every tag, dropped ones too, with what it replaced (spec/tags.md)."""
        found = []
        for name in sorted({entry.name for _, entry in self.tag_entries}):
            entries = sorted(((s, e) for s, e in self.tag_entries if e.name == name), key=lambda one: one[0])
            (time, writer, revision, _), latest = entries[-1]
            version = cut_text(latest.cut)
            others = [(stamp, cut_text(e.cut)) for stamp, e in entries if cut_text(e.cut) != version]
            replaced = others[-1] if others else None
            found.append(
                {
                    "name": name,
                    "version": version,
                    "created": time_of(latest.created),
                    "dropped": latest.dropped,
                    "commit_timestamp": time_of(time),
                    "writer": writer,
                    "revision": revision,
                    "replaced_version": replaced[1] if replaced else None,
                    "replaced_commit_timestamp": time_of(replaced[0][0]) if replaced else None,
                    "replaced_writer": replaced[0][1] if replaced else None,
                }
            )
        return found

    def _states(self, name: str) -> Iterator[tuple[bytes, State]]:
        for key, facts in sorted(self.facts[name].items()):
            yield key, fold(facts, self.tables[name])

    def live(self, name: str) -> list[dict[str, Any]]:
        """The live rows."""
        table = self.tables[name]
        return [shown(table, v) for _, state in self._states(name) for v in state.versions if v.end is None]

    def tombstones(self, name: str) -> list[dict[str, Any]]:
        """The tombstones, with ``deleted_at``."""
        table = self.tables[name]
        found = (
            []
            if table.drops_tombstones
            else [v for _, state in self._states(name) for v in state.versions if v.end and not v.purged]
        )
        return [shown(table, v) | {"deleted_at": time_of(v.end[0])} for v in found if v.end]

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
