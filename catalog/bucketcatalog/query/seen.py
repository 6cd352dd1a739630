"""What a process has read of a database: what its commits come after, and what its next look need not ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from .. import limits
from ..clock import uuid7_time
from ..errors import UNREADABLE
from ..format.records import Void
from ..log.discovery import LastLook
from ..log.files import LogFiles
from ..log.view import LogView
from ..model.cuts import Cut, Head, Ref
from ..model.names import is_maintainer


@dataclass(frozen=True, slots=True)
class Seen:
    """All that one process has read of a database, as one value: who looks begins with it, and makes another of it when it ends.

    Several threads look at once and end in any order; that what they make of it follows each other is up to the caller. Invariants:

    - Nothing that was read is forgotten. A look's cut takes the place of ``cut`` where nothing has been read since the look began; what
      somebody has read meanwhile may not be in it, and the two are joined.
    - No head of ``cut`` lies in the future, for nobody's clock follows one. What such a head follows has been read all the same.
    - ``voids`` were read from what lies in the cut: who counts on one says that it has read it.
    - ``observed``, in microseconds, never falls: what arrived in the store before then has been listed.
    - ``retired`` are the writers of whom the last look has found that they are.
    - ``tail`` are the uuids of transactions in the cut that no checkpoint covers, of the last look.
    - ``known`` is what a look has found. Of those that began with the same it is the first one to end that tells: where the next starts
      from decides what it asks for, never what it finds.
    """

    cut: Cut = field(default_factory=Cut)
    voids: Mapping[Ref, Void] = field(default_factory=dict)
    observed: int = 0
    tail: frozenset[bytes] = frozenset()
    retired: frozenset[str] = frozenset()
    known: LastLook = field(default_factory=LastLook)

    def has(self, transaction: bytes) -> bool:
        """Whether a transaction has certainly been read, which its uuid names."""
        return transaction in self.tail or self.has_all_of(uuid7_time(transaction))

    def has_all_of(self, commit_time: int) -> bool:
        """Whether every transaction of that commit time has certainly been listed."""
        return commit_time + limits.LATENESS_BOUND < self.observed

    def after_look(self, began: Seen, view: LogView, found: LastLook, files: LogFiles) -> Seen:
        """What is seen after a look that ``began`` with an earlier value, and gave this."""
        limit = files.store.now_us() + limits.MAX_CLOCK_SKEW
        holds_all = self is began and not view.retired  # of these a look may pass over what was read by its name
        seen = self._with(view.cut if holds_all else self.cut.joined(view.cut), files, limit)
        is_settled = not _voids_ahead(view, view.observed + limits.MAX_CLOCK_SKEW)
        return replace(
            seen,
            voids={**self.voids, **view.voids} if is_settled else self.voids,
            observed=max(self.observed, view.observed),
            tail=frozenset(
                t.uuid for t in view.tail if t.commit_time <= limit and seen.cut.newest_revision(t.writer) >= t.revision
            ),
            retired=view.retired,
            known=found if self.known is began.known else self.known,
        )

    def after_reading(self, cut: Cut, files: LogFiles) -> Seen:
        """What is seen after ``cut`` was read by its name."""
        return self._with(self.cut.joined(cut), files, files.store.now_us() + limits.MAX_CLOCK_SKEW)

    def _with(self, cut: Cut, files: LogFiles, limit: int) -> Seen:
        """The value with ``cut``, which holds all that was seen of its writers, up to the ``limit``."""
        settled = {writer: heads for writer in cut.heads if (heads := _heads_until(limit, writer, cut, files))}
        return replace(self, cut=Cut(dict(sorted({**self.cut.heads, **settled}.items()))))


def _voids_ahead(view: LogView, limit: int) -> bool:
    """Whether some of the view's voids may stand in what lies in the future, which no cut of what was read holds."""
    ahead = {ref for ref in view.cut.refs() if is_maintainer(ref.writer) and ref.head.commit_time > limit}
    writers = {ref.writer for ref in ahead}
    told = any(t.voids and t.writer in writers and t.commit_time > limit for t in view.tail)
    return told or any(checkpoint.voids and not ahead.isdisjoint(checkpoint.cut.refs()) for checkpoint in view.checkpoints)


def _heads_until(limit: int, writer: str, cut: Cut, files: LogFiles) -> tuple[Head, ...]:
    """The writer's heads up to a time; none where nobody can say what those behind it follow."""
    found, pending = set(), list(cut.of_writer(writer))
    while pending:
        head = pending.pop()
        if head.commit_time <= limit:
            found.add(head)
            continue
        try:
            parents = files.transaction(writer, head).parents
        except UNREADABLE:
            return ()
        pending += [link.head for link in parents]
    return tuple(sorted(found))
