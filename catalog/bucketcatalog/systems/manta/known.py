"""What this process knows of a database: a snapshot, and what it has committed itself since.

Conditions are checked against this, as a catalog without coordination checks everything. By default a look precedes every question; what
this process commits it knows without one, also where what it knows of others may be some seconds old.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...clock import monotonic
from ...query.snapshot import Snapshot

Key = tuple[str, ...]
"""The values of a row's key columns."""
Row = dict[str, Any]
MOST_KEPT = 4_096
"""Of so many keys it is remembered what was committed of them; of more the database is looked at again."""


class Known:
    """Look-ups of live rows of one table by key, and snapshots, none of them more than ``fresh`` seconds older than is asked for.

    Invariant: whatever this process has committed is in the snapshot, or among ``_own``. Threads may share it.
    """

    def __init__(self, look: Callable[[], Snapshot], table: str, key: Sequence[str], fresh: float) -> None:
        self._look = look
        self._table = table
        self._key = tuple(key)
        self._fresh = fresh
        self._snapshot: Snapshot | None = None
        self._looked_at = 0.0
        self._own: dict[Key, tuple[Row | None]] = {}
        self._commits = 0
        self._seen = 0
        self._lock = threading.Lock()

    def snapshot(self, since: float | None = None) -> Snapshot:
        """A snapshot with all that this process has committed, and of others at least what they had by ``since``, else by now."""
        since = monotonic() if since is None else since
        with self._lock:
            if self._snapshot is not None and self._seen == self._commits and self._is_fresh(since):
                return self._snapshot
            return self._look_again()

    def rows(self, keys: Sequence[Key], since: float | None = None) -> list[Row | None]:
        """The live rows under keys, with ``_version``, as of such a snapshot; None where there is none."""
        since = monotonic() if since is None else since
        with self._lock:
            is_fresh = self._snapshot is not None and self._is_fresh(since)
            snapshot = self._snapshot if is_fresh and self._snapshot is not None else self._look_again()
            own = [self._own.get(key) for key in keys]
        asked = [key for key, found in zip(keys, own, strict=True) if found is None]
        names = [dict(zip(self._key, key, strict=True)) for key in asked]
        columns = [*snapshot.table(self._table).surface_schema.names, "_version"]
        looked_up = iter(snapshot.get_all(self._table, names, columns=columns) if names else ())
        return [next(looked_up) if found is None else found[0] for found in own]

    def took(self, rows: Iterable[tuple[Key, Row | None]]) -> None:
        """What a commit of this process has made of keys: the row that is live now, or none. Without any it changed other tables alone."""
        with self._lock:
            self._commits += 1
            self._own |= {key: (row,) for key, row in rows}
            if len(self._own) > MOST_KEPT:
                self._snapshot, self._own = None, {}

    def forget(self) -> None:
        """Nobody knows whether this process has committed something: the next question looks."""
        with self._lock:
            self._snapshot, self._own = None, {}

    def _is_fresh(self, since: float) -> bool:
        return self._looked_at >= since - self._fresh

    def _look_again(self) -> Snapshot:
        """What was committed before the look is in it; what is committed meanwhile waits for the lock, and stays among what is own."""
        began = monotonic()
        self._snapshot = self._look()
        self._looked_at, self._seen = began, self._commits
        self._own = {}
        return self._snapshot
