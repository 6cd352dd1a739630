"""Placement: names are hashed to virtual nodes, and each node is one writer's, who alone commits what lies there.

Nobody needs it to be right: all writers' commits make one state, whoever wrote where. It keeps two services from racing for one key. A
table, ``manta.placement``, says whose each node is, by its latest row. What another writes there shows in the view ``manta_misplaced``.

A node moves in two commits. Its owner gives it, and says up to which cut it wrote there; from then on it commits nothing more there. Who it
is given to takes it over from a cut that has all of that. In between nobody commits there, and whoever gave it may take it back. A process
that commits there all the same, since it does not know, loses nothing: its rows are misplaced, and live.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ...clock import monotonic
from ...errors import InvalidOption
from ...model.names import names_given, writer_id
from ...query.snapshot import Snapshot
from ...wording import either
from .commits import Commits, Decision, Event, Operation
from .errors import NotPlacedHere
from .known import Known, Row

TABLE = "manta.placement"
MOST_NODES = 1 << 19
DIGITS = 11
"""So many hexadecimal digits of a hash count: times the number of nodes they fit 64 bits, in whichever engine."""
_LOOK_WITHIN = 30.0
"""Seconds after which it is asked again whether names have been placed meanwhile."""
_COLUMNS = ("node", "nodes", "writer", "given_to", "until", "taken_from", "before", "_version")
Result = TypeVar("Result")


def node_of_bucket(owner: str, name: str, nodes: int) -> int:
    """The node of a bucket: of its owner and name."""
    return _node(f"{owner}:{name}", nodes)


def node_of_object(owner: str, bucket_id: str, name: str, nodes: int) -> int:
    """The node of an object: of its owner, its bucket's id, and the MD5 of its name."""
    digest = hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()
    return _node(f"{owner}:{bucket_id}:{digest}", nodes)


def _node(text: str, nodes: int) -> int:
    """Of the nodes, which divide the hashes into ranges of one length, the one that the text's SHA-256 lies in."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:DIGITS], 16) * nodes >> 4 * DIGITS


class Placement:
    """Whose nodes are, as the writer ``me`` knows; what it has given and taken itself it knows at once."""

    def __init__(self, me: str, known: Known, commits: Commits) -> None:
        self._me = me
        self._known = known
        self._commits = commits
        self._rows: dict[int, Row] | None = None
        self._looked_at = 0.0

    def rows(self) -> list[Row]:
        """Every node's row, in order; none where nothing is placed."""
        found = _rows_of(self._known.snapshot()).values()
        return [
            {name: row[name] for name in _COLUMNS if name != "_version"} | {"before": dict(row["before"] or ())} for row in found
        ]

    def check(self, node_of: Callable[[int], int]) -> None:
        """``NotPlacedHere`` where a node, of so many, is another writer's, or on its way."""
        is_recent = self._rows is not None and monotonic() - self._looked_at < _LOOK_WITHIN
        rows = self._rows if is_recent and self._rows is not None else self._look(self._known.snapshot())
        if rows and not self._is_mine(_row_of(rows, node_of)):
            row = _row_of(self._look(self._known.snapshot()), node_of)  # it may have been taken back
            if not self._is_mine(row):
                raise _elsewhere(row, self._me)

    def place(self, nodes: int, writers: Sequence[str]) -> list[Row]:
        """Divide the names among so many nodes, and these among writers in turn; ``InvalidOption`` where they are placed already."""
        if not isinstance(nodes, int) or isinstance(nodes, bool) or not 1 <= nodes <= MOST_NODES:
            raise InvalidOption(f"There cannot be {nodes!r} nodes.", next_step=f"Give 1 to {MOST_NODES:,}.")
        ids = [writer_id(name) for name in names_given(writers, "writers", "writers=['node-1']")]
        if not ids:
            raise InvalidOption("Nodes are placed on no writer.", next_step="Give the ids of the writers.")

        def decide(since: float) -> Decision[list[Row]]:
            snapshot = self._known.snapshot(since)
            if self._look(snapshot):
                raise InvalidOption("The names are placed already.", next_step="Move nodes, by giving and taking them.")
            before = {writer: snapshot.cut.newest_revision(writer) for writer in snapshot.cut.heads}
            owners = [ids[node % len(ids)] for node in range(nodes)]
            placed: list[Row] = [
                {"node": node, "nodes": nodes, "writer": owner, "taken_from": snapshot.version, "before": _without(owner, before)}
                for node, owner in enumerate(owners)
            ]
            return Decision([Event("put", TABLE, placed, expect="absent")], lambda commit: placed)

        return self._run("placenodes", decide)

    def give(self, node: int, to: str) -> Row:
        """Give a node away: from this commit on nothing is committed there by this writer; ``NotPlacedHere`` where it has it not."""
        to = writer_id(to)

        def decide(since: float) -> Decision[Row]:
            snapshot = self._known.snapshot(since)
            row = self._row(snapshot, node)
            if not self._is_mine(row):
                raise _elsewhere(row, self._me)
            if to == self._me:
                raise InvalidOption(f"{to!r} has node {node} already.", next_step="Give it to another writer, or leave it.")
            before = {**dict(row["before"] or ()), self._me: snapshot.cut.newest_revision(self._me)}
            return _put({**row, "given_to": to, "until": snapshot.version, "before": before})

        return self._run("givenode", decide)

    def take(self, node: int) -> Row:
        """Take a node over that was given to this writer, or back that this one gave; ``NotPlacedHere`` where it was neither."""

        def decide(since: float) -> Decision[Row]:
            snapshot = self._known.snapshot(since)
            row = self._row(snapshot, node)
            if self._is_mine(row):
                raise InvalidOption(f"{self._me!r} has node {node} already.", next_step="There is nothing to take.")
            if row["given_to"] is None or self._me not in (row["given_to"], row["writer"]):
                raise _elsewhere(row, self._me)
            before = _without(self._me, dict(row["before"] or ()))
            taken = {"writer": self._me, "given_to": None, "until": None, "taken_from": snapshot.version, "before": before}
            return _put({**row, **taken})

        return self._run("takenode", decide)

    def _row(self, snapshot: Snapshot, node: int) -> Row:
        rows = self._look(snapshot)
        if not isinstance(node, int) or isinstance(node, bool) or node not in rows:
            raise InvalidOption(f"There is no node {node!r}.", next_step=f"There are {len(rows)}: give one from 0 on.")
        return dict(rows[node])

    def _is_mine(self, row: Mapping[str, Any]) -> bool:
        return row["writer"] == self._me and row["given_to"] is None

    def _look(self, snapshot: Snapshot) -> dict[int, Row]:
        self._rows, self._looked_at = _rows_of(snapshot), monotonic()
        return self._rows

    def _run(self, name: str, decide: Callable[[float], Decision[Result]]) -> Result:
        """Commit a change of the rows; whatever is decided after it, in whichever thread, looks at them again."""

        def decided(since: float) -> Decision[Result]:
            decision = decide(since)
            self._rows = None  # whatever becomes of the commit
            return decision

        return self._commits.run(Operation(name, frozenset(), decided, alone=True))


def _rows_of(snapshot: Snapshot) -> dict[int, Row]:
    found = snapshot.scan(TABLE, columns=list(_COLUMNS)).to_arrow().to_pylist() if TABLE in snapshot.definitions else []
    return {row["node"]: row for row in found}


def _row_of(rows: Mapping[int, Row], node_of: Callable[[int], int]) -> Row:
    """The row of a name; ``NotPlacedHere`` where somebody has deleted it."""
    nodes = max(row["nodes"] for row in rows.values())
    node = node_of(nodes)
    if node not in rows:
        raise NotPlacedHere(
            f"Node {node} of {nodes} has no row in {TABLE}: nobody has it.", next_step=f"Put the row of {TABLE} back."
        )
    return rows[node]


def _without(owner: str, before: Mapping[str, int]) -> dict[str, int]:
    """What others than a node's owner may have there: its own rows are where they belong."""
    return {writer: revision for writer, revision in before.items() if writer != owner}


def _put(row: Row) -> Decision[Row]:
    expect = row.pop("_version")
    return Decision([Event("put", TABLE, row, expect=expect)], lambda commit: row)


def _elsewhere(row: Mapping[str, Any], me: str) -> NotPlacedHere:
    if row["given_to"] is not None:
        return NotPlacedHere(
            f"Node {row['node']} is on its way from {row['writer']!r} to {row['given_to']!r}.",
            next_step=f"Let {row['given_to']!r} take it, or {row['writer']!r} take it back.",
        )
    writer = row["writer"]
    return NotPlacedHere(
        f"Node {row['node']} belongs to {writer!r}, not to {me!r}.",
        next_step=f"Ask the node that commits as {writer!r}{either('', f': --writer {writer}')}.",
    )
