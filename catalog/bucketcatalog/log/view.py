"""Views: a cut of the log, the checkpoints that cover part of it, and the transactions that they do not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..format.checkpoints import Checkpoint
from ..format.transactions import Transaction, Void
from ..model.cuts import Cut, Head
from .entries import emptied
from .files import LogFiles
from .gathering import Gathering
from .horizon import Horizon

DEFAULT_LATENESS_BOUND = 6 * 60 * 1_000_000
"""Five minutes of commit delay and one of clock skew, in microseconds."""


@dataclass(frozen=True, slots=True)
class Fork:
    """A revision at which a timeline has several transactions; ``open`` while no later one has joined the branches."""

    writer: str
    revision: int
    uuids: tuple[bytes, ...]
    open: bool


@dataclass(frozen=True)
class View:
    """A cut and what it is made from.

    Invariants: ``cut`` is closed under parents and reads; every transaction in it is covered by ``checkpoints`` or in ``tail``, which is
    sorted by stamp; what ``voids`` names has no events there. ``observed`` is the store's time before the first listing. With a ``horizon``
    the cut contains that, or the view is of a cut behind it that a tag names: then one checkpoint holds all of it.
    """

    database: str
    cut: Cut
    checkpoints: tuple[Checkpoint, ...]
    tail: tuple[Transaction, ...]
    forks: tuple[Fork, ...]
    observed: int
    lateness_bound: int = field(default=DEFAULT_LATENESS_BOUND)
    horizon: Horizon | None = None
    voids: Mapping[tuple[str, Head], Void] = field(default_factory=dict)

    @property
    def newest_commit_time(self) -> int:
        """The largest commit time in the cut of what is not voided, 0 where there is none."""
        heads = [head for writer, heads in self.cut.heads.items() for head in heads if (writer, head) not in self.voids]
        below = [*(t.commit_time for t in self.tail if not t.voided), *(checkpoint.as_of for checkpoint in self.checkpoints)]
        return max((*(head.commit_time for head in heads), *below), default=0)

    @property
    def watermark(self) -> int:
        """Microseconds: no transaction with an earlier commit time can still arrive."""
        return self.observed - self.lateness_bound


def view_of(files: LogFiles, gathering: Gathering, observed: int, cut: Cut | None = None) -> View:
    """The view of what was gathered, of exactly ``cut`` where one is given; ``CorruptionError`` where links do not fit."""
    _check_links(gathering)
    voided = gathering.voids()
    found = [emptied(t) if ref in voided else t for ref, t in gathering.found.items()]
    tail = sorted(found, key=lambda transaction: transaction.stamp)
    checkpoints = gathering.covered.checkpoints
    bounds = [t.lateness_bound for t in tail] + [c.lateness_bound for c in checkpoints]
    cut = gathering.cut() if cut is None else cut
    return View(
        database=files.database,
        cut=cut,
        checkpoints=checkpoints,
        tail=tuple(tail),
        forks=_forks(gathering, cut),
        observed=observed,
        lateness_bound=max(bounds, default=DEFAULT_LATENESS_BOUND),
        horizon=gathering.covered.horizon,
        voids=voided,
    )


def _check_links(gathering: Gathering) -> None:
    """``CorruptionError`` where a transaction is not the one that its child was written after."""
    for (writer, _), transaction in list(gathering.found.items()):
        for link in () if transaction.lost else transaction.parents:
            parent = gathering.found.get((writer, Head(link.revision, link.uuid)))
            if parent is not None and not parent.lost and parent.digest != link.digest:
                why = f"is not the transaction that revision {transaction.revision} was written after: its digest differs."
                gathering.found[writer, parent.head] = gathering.files.refuse(parent, why)


def _forks(gathering: Gathering, cut: Cut) -> tuple[Fork, ...]:
    known: dict[tuple[str, int], set[bytes]] = {}
    for writer, head in gathering.found:
        known.setdefault((writer, head.revision), set()).add(head.uuid)
    for checkpoint in gathering.covered.checkpoints:
        for writer, coverage in checkpoint.coverage.items():
            for head in coverage.recent | coverage.branches:
                known.setdefault((writer, head.revision), set()).add(head.uuid)
    several = sorted((writer, revision, uuids) for (writer, revision), uuids in known.items() if len(uuids) > 1)
    several = [
        (w, r, uuids) for w, r, uuids in several if _can_be_told(gathering, cut.of_writer(w), Fork(w, r, tuple(uuids), False))
    ]
    return tuple(Fork(w, r, tuple(sorted(us)), open=not _joined(gathering, cut.of_writer(w), r, (w, us))) for w, r, us in several)


def _can_be_told(gathering: Gathering, heads: tuple[Head, ...], fork: Fork) -> bool:
    """Whether what became of a fork can be told: one before the floor of the horizon is history, unless a branch still ends there."""
    horizon = gathering.covered.horizon
    if horizon is None or fork.revision >= horizon.floor(fork.writer):
        return True
    return any(head.revision == fork.revision and head.uuid in fork.uuids for head in heads)


def _joined(gathering: Gathering, heads: tuple[Head, ...], revision: int, branches: tuple[str, set[bytes]]) -> bool:
    """Whether one transaction follows all that lie at the revision."""
    writer, uuids = branches
    if len(heads) > 1 and any(head.revision == revision and head.uuid in uuids for head in heads):
        return False  # nothing follows a head
    return len(heads) == 1 or any(uuids <= _followed(gathering, writer, head, revision) for head in heads)


def _followed(gathering: Gathering, writer: str, head: Head, revision: int) -> set[bytes]:
    """The transactions at a revision that ``head`` follows."""
    pending, reached = [head], set()
    while pending:
        at = pending.pop()
        if at in reached or at.revision < revision:
            continue
        reached.add(at)
        if at.revision > revision:
            transaction = gathering.found.get((writer, at)) or gathering.files.transaction(writer, at)
            pending += [Head(link.revision, link.uuid) for link in transaction.parents]
    return {at.uuid for at in reached if at.revision == revision}
