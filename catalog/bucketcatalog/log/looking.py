"""Looking at a database as it is now, or was at a time: what is there is found by listing.

A first look asks twice for each writer: for its newest checkpoint, and for its timeline from where that says. Whoever looks again knows
the checkpoints and what no checkpoint covers, and asks once for each writer: its timeline, where a new checkpoint shows too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial

from ..codec.checkpoints import Checkpoint
from ..codec.transactions import Transaction
from ..cut import Head
from ..errors import MissingObject
from ..paths import LogFile
from .coverage import Covered, choose
from .files import LogFiles
from .gathering import Gathering, Ref
from .view import View, view_of


@dataclass(frozen=True, slots=True)
class Markers:
    """What a writer's ``newest/`` said: the checkpoint to use, and the names of all at the same revision."""

    checkpoint: Checkpoint | None = None
    heads: frozenset[Head] = frozenset()

    def tell_of(self, head: Head) -> bool:
        """Whether a checkpoint found beside the timeline is one of these, or older."""
        return head in self.heads or any(head.revision < known.revision for known in self.heads)


@dataclass(frozen=True, slots=True)
class Known:
    """What a look found and the next one need not ask for: markers, what no checkpoint covers, and each timeline's last revision.

    Checkpoints in ``avoided`` cover what is voided and do not know it.
    """

    markers: Mapping[str, Markers] = field(default_factory=dict)
    avoided: frozenset[bytes] = frozenset()
    tail: Mapping[Ref, Transaction] = field(default_factory=dict)
    newest: Mapping[str, int] = field(default_factory=dict)


Timelines = dict[str, tuple[int, list[LogFile]]]
"""For each writer the revision that its timeline was listed from, and its files from there."""


def look(files: LogFiles, known: Known) -> tuple[View, Known]:
    """The view of now, and what the next look may start from.

    A checkpoint appears in the listing of its timeline before its marker is there: it is a reason to ask for the markers again, and
    used only when they name it. Where something that was known is gone, as after pruning, everything is asked for anew.
    """
    try:
        return _look(files, known)
    except MissingObject:
        if not known.markers:
            raise
        return _look(files, Known())


def _look(files: LogFiles, known: Known) -> tuple[View, Known]:
    observed = files.store.now_us()
    writers = files.writers()
    markers = {writer: known.markers[writer] for writer in writers if writer in known.markers}
    asked: set[str] = set()
    hinted = [writer for writer in writers if writer not in markers]
    newest = partial(_newest_markers, usable=lambda checkpoint: checkpoint.uuid not in known.avoided)
    listed: Timelines = {}
    while hinted or not listed:
        markers |= zip(hinted, files.several(newest, hinted), strict=True)
        asked |= set(hinted)
        covered = Covered(files, choose(m.checkpoint for m in markers.values() if m.checkpoint is not None))
        firsts = {writer: _first(covered, known, writer) for writer in sorted({*writers, *covered.writers()})}
        listed |= _timelines(files, {w: first for w, first in firsts.items() if w not in listed or first < listed[w][0]})
        if not firsts:
            break
        hinted = [
            w for w in writers if w not in asked and any(not markers[w].tell_of(head) for head in _checkpoints(listed[w][1]))
        ]
    gathering = Gathering(files, covered, known=known.tail)
    gathering.take(listed)
    gathering.complete()
    if unaware := {checkpoint.uuid for checkpoint in covered.unaware(gathering.voids())}:
        others = {w: m for w, m in markers.items() if m.checkpoint is None or m.checkpoint.uuid not in unaware}
        return _look(files, Known(others, known.avoided | unaware, gathering.found))
    view = view_of(files, gathering, observed)
    revisions = {writer: max(view.cut.newest_revision(writer), 0) for writer in listed}
    return view, Known(markers, known.avoided, gathering.found, revisions)


def _first(covered: Covered, known: Known, writer: str) -> int:
    """Where to list a timeline from: not behind what was known of it, since a new checkpoint may lie beside its last transaction."""
    first = covered.list_from(writer)
    return min(first, known.newest.get(writer, first))


def _timelines(files: LogFiles, firsts: Mapping[str, int]) -> Timelines:
    listed = files.several(lambda files, item: list(files.timeline(*item)), [*firsts.items()])
    return {writer: (first, found) for (writer, first), found in zip(firsts.items(), listed, strict=True)}


def _checkpoints(found: Iterable[LogFile]) -> Iterator[Head]:
    return (Head(file.revision, file.uuid) for file in found if not file.is_transaction)


def newest_view(
    files: LogFiles,
    *,
    everything: bool = False,
    ahead_of: int | None = None,
    before: int | None = None,
    only: str | None = None,
    using: Sequence[Checkpoint] = (),
) -> View:
    """The view of now, or with ``before`` that of every transaction whose commit time is at most that.

    With ``everything`` timelines are listed from their start, so that strays below the checkpoints are found too. With ``ahead_of``
    each timeline stops before its first transaction with a later commit time, and so does what has read such a one. With ``only`` the
    view is of one writer's own timeline: closed under parents, not under reads.
    Where there are any in ``using`` no other checkpoint is looked for, but for those among them that do not know what is voided.
    """
    observed = files.store.now_us()
    avoided: frozenset[bytes] = frozenset()
    while True:
        using = [checkpoint for checkpoint in using if checkpoint.uuid not in avoided]
        gathering = _gathered(files, everything, ahead_of, before, only, using, avoided)
        unaware = {checkpoint.uuid for checkpoint in gathering.covered.unaware(gathering.voids())}
        if not unaware:
            return view_of(files, gathering, observed)
        avoided |= unaware


def _gathered(
    files: LogFiles,
    everything: bool,
    ahead_of: int | None,
    before: int | None,
    only: str | None,
    using: Sequence[Checkpoint],
    avoided: frozenset[bytes],
) -> Gathering:
    """What ``newest_view`` is made from where these checkpoints are avoided."""
    limit = before if before is not None else ahead_of
    writers = files.writers() if only is None else [only]
    if not using and only is None:
        newest = partial(_newest_markers, limit=limit, usable=lambda checkpoint: checkpoint.uuid not in avoided)
        found = files.several(newest, writers)
        covered = Covered(files, choose(markers.checkpoint for markers in found if markers.checkpoint is not None))
    else:
        covered = Covered(files, using)
    gathering = Gathering(files, covered, lambda head: limit is None or head.commit_time <= limit, closed_reads=only is None)
    everyone = sorted({*writers, *covered.writers()})
    gathering.take(_timelines(files, {writer: 0 if everything else covered.list_from(writer) for writer in everyone}))
    if ahead_of is not None:
        _drop_unfounded(gathering, ahead_of, gathering.voids().keys())
    gathering.complete()
    return gathering


def _drop_unfounded(gathering: Gathering, limit: int, voided: Set[Ref]) -> None:
    """Leave out what builds on a transaction that was left out, however far removed; what is voided binds nobody."""

    def is_late(transaction: Transaction) -> bool:
        return any(ref[1].commit_time > limit and ref not in voided for ref in _builds_on(transaction))

    while late := [ref for ref, t in gathering.found.items() if is_late(t)]:
        for ref in late:
            del gathering.found[ref]
        limit = min(limit, *(head.commit_time - 1 for _, head in late))


def _builds_on(transaction: Transaction) -> Iterator[Ref]:
    yield from ((transaction.writer, Head(link.revision, link.uuid)) for link in transaction.parents)
    for writer, heads in transaction.reads.heads.items():
        yield from ((writer, head) for head in heads)


def newest_own(files: LogFiles, writer: str, limit: int, *, alone: bool) -> Checkpoint | None:
    """The writer's newest checkpoint of its own timeline ``alone``, or of others' too, whose whole cut lies at or before the limit."""
    return _newest_markers(files, writer, limit, lambda checkpoint: (set(checkpoint.cut.heads) == {writer}) is alone).checkpoint


def _newest_markers(
    files: LogFiles, writer: str, limit: int | None = None, usable: Callable[[Checkpoint], bool] = lambda _: True
) -> Markers:
    """The writer's newest usable checkpoint whose whole cut lies at or before the limit; its uuid tells.

    Of several checkpoints beside one transaction it is the one that covers most: it was written when more had arrived. Where several
    cover as much it is the one that was made last: it has the fewest levels.
    """
    found: dict[Head, Checkpoint] = {}
    for head in files.checkpoints(writer):
        if found and head.revision < max(found).revision:
            break
        checkpoint = files.usable_checkpoint(writer, head) if limit is None or head.commit_time <= limit else None
        if checkpoint is not None and usable(checkpoint):
            found[head] = checkpoint
    most = max(found.values(), key=_covered_and_made, default=None)
    return Markers(most, frozenset(found))


def _covered_and_made(checkpoint: Checkpoint) -> tuple[int, int, bytes]:
    return sum(coverage.transactions for coverage in checkpoint.coverage.values()), checkpoint.created, checkpoint.uuid
