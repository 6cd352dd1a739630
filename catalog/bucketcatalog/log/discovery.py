"""Looking at a database as it is now, or was at a time: what is there is found by listing.

A first look asks twice for each writer: for its newest checkpoint, and for its timeline from where that says. Whoever looks again knows
the checkpoints and what no checkpoint covers, and asks once for each writer: its timeline, where a new checkpoint shows too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial

from ..errors import MissingObject
from ..format.checkpoints import Checkpoint
from ..format.transactions import Transaction
from ..model.cuts import Head, Ref
from ..model.names import is_maintainer
from ..model.paths import LogFile
from .coverage import Covered, choose
from .entries import newest_of
from .files import LogFiles
from .horizon import Horizon
from .view import Gathering, View, view_of


@dataclass(frozen=True, slots=True)
class Markers:
    """What a writer's ``newest/`` said: the checkpoint to use, and the names of all at the same revision."""

    checkpoint: Checkpoint | None = None
    heads: frozenset[Head] = frozenset()

    def tell_of(self, head: Head) -> bool:
        """Whether a checkpoint found beside the timeline is one of these, or older."""
        return head in self.heads or any(head.revision < known.revision for known in self.heads)


@dataclass(frozen=True, slots=True)
class LastLook:
    """What a look found and the next one need not ask for: markers, what no checkpoint covers, and each timeline's last revision.

    Checkpoints in ``avoided`` cover what is voided and do not know it.
    """

    markers: Mapping[str, Markers] = field(default_factory=dict)
    avoided: frozenset[bytes] = frozenset()
    tail: Mapping[Ref, Transaction] = field(default_factory=dict)
    newest: Mapping[str, int] = field(default_factory=dict)
    horizon: Horizon | None = None


Timelines = dict[str, tuple[int, list[LogFile]]]
"""For each writer the revision that its timeline was listed from, and its files from there."""


def look(files: LogFiles, known: LastLook) -> tuple[View, LastLook]:
    """The view of now, and what the next look may start from.

    A checkpoint appears in the listing of its timeline before its marker is there: it is a reason to ask for the markers again, and
    used only when they name it. Where something is gone, as while somebody prunes, everything is asked for anew, once.
    """
    try:
        return _look(files, known)
    except MissingObject:
        return _look(files, LastLook())


def _look(files: LogFiles, known: LastLook) -> tuple[View, LastLook]:
    observed = files.store.now_us()
    writers = files.writers()
    markers = {writer: known.markers[writer] for writer in writers if writer in known.markers}
    asked: set[str] = set()
    hinted = [writer for writer in writers if writer not in markers]
    newest = partial(_newest_markers, usable=lambda checkpoint: checkpoint.uuid not in known.avoided)
    listed: Timelines = {}

    def more(covered: Covered) -> None:
        firsts = {writer: _first(covered, known, writer) for writer in sorted({*writers, *covered.writers()})}
        listed.update(_timelines(files, {w: first for w, first in firsts.items() if w not in listed or first < listed[w][0]}))

    while True:
        markers |= zip(hinted, files.map(newest, hinted), strict=True)
        asked |= set(hinted)
        more(Covered(files, choose(m.checkpoint for m in markers.values() if m.checkpoint is not None)))
        hinted = [w for w in writers if w not in asked and _tells_of_more(w, listed[w][1], markers[w])]
        if not hinted:
            break
    candidates = [m.checkpoint for m in markers.values() if m.checkpoint is not None]

    def attempt(horizon: Horizon | None) -> Gathering:
        covered = Covered(files, choose(candidates, horizon), horizon)
        more(covered)
        gathering = Gathering(files, covered, known=known.tail)
        gathering.take(listed)
        return gathering

    gathering = _with_horizon(files, known.horizon, candidates, attempt)
    gathering.complete()
    if unaware := {checkpoint.uuid for checkpoint in gathering.unaware()}:
        others = {w: m for w, m in markers.items() if m.checkpoint is None or m.checkpoint.uuid not in unaware}
        return _look(files, LastLook(others, known.avoided | unaware, gathering.found, horizon=gathering.covered.horizon))
    view = view_of(files, gathering, observed)
    revisions = {writer: max(view.cut.newest_revision(writer), 0) for writer in listed}
    return view, LastLook(markers, known.avoided, gathering.found, revisions, view.horizon)


def _with_horizon(
    files: LogFiles, known: Horizon | None, candidates: Sequence[Checkpoint], attempt: Callable[[Horizon | None], Gathering]
) -> Gathering:
    """What ``attempt`` gathers with the horizon that counts, which may be told by what is gathered.

    The checkpoint of an earlier one may be gone. Then it is found without one what has been published since.
    """
    horizon, gone = newest_horizon(files, known, candidates), None
    while True:
        try:
            gathering = attempt(horizon)
        except MissingObject:
            if horizon in (None, gone):
                raise
            gone, horizon = horizon, None
            continue
        newest = newest_horizon(files, horizon or gone, candidates, gathering.found.values())
        if newest == horizon:
            return gathering
        horizon = newest


def newest_horizon(
    files: LogFiles, known: Horizon | None, checkpoints: Iterable[Checkpoint], transactions: Iterable[Transaction] = ()
) -> Horizon | None:
    """The horizon that counts of the one that is known and those that checkpoints carry on or transactions have published."""
    boundaries = [boundary for checkpoint in checkpoints for boundary in checkpoint.boundaries]
    boundaries += [transaction.boundary for transaction in transactions if transaction.boundary is not None]
    boundaries = [boundary for boundary in boundaries if files.heeds(boundary)]
    newest = newest_of(boundaries if known is None else [known.boundary, *boundaries]).history
    return known if newest is None or (known is not None and newest == known.boundary) else Horizon(newest, files)


def horizon_of(files: LogFiles) -> Horizon | None:
    """The horizon of now. Only maintainers publish one: a database without them has none, which one request tells."""
    return look(files, LastLook())[0].horizon if any(map(is_maintainer, files.writers())) else None


def _first(covered: Covered, known: LastLook, writer: str) -> int:
    """Where to list a timeline from: not behind what was known of it, since a new checkpoint may lie beside its last transaction."""
    first = covered.list_from(writer)
    return min(first, known.newest.get(writer, first))


def _timelines(files: LogFiles, firsts: Mapping[str, int]) -> Timelines:
    listed = files.map(lambda files, item: list(files.timeline(*item)), [*firsts.items()])
    return {writer: (first, found) for (writer, first), found in zip(firsts.items(), listed, strict=True)}


def _tells_of_more(writer: str, found: Iterable[LogFile], markers: Markers) -> bool:
    """Whether there is a checkpoint beside a timeline of which the markers told nothing.

    Those at a maintainer's first revision may be of tags, and have none.
    """
    first = 1 if is_maintainer(writer) else 0
    heads = (file.head for file in found if not file.is_transaction and file.revision >= first)
    return any(not markers.tell_of(head) for head in heads)


def newest_view(
    files: LogFiles,
    *,
    everything: bool = False,
    ahead_of: int | None = None,
    before: int | None = None,
    only: str | None = None,
    using: Sequence[Checkpoint] = (),
    horizon: Horizon | None = None,
    writers: Sequence[str] | None = None,
) -> View:
    """The view of now, or with ``before`` that of every transaction whose commit time is at most that.

    With ``everything`` timelines are listed from their start, so that strays below the checkpoints are found too. With ``ahead_of``
    each timeline stops before its first transaction with a later commit time, and so does what has read such a one. With ``only`` the
    view is of one writer's own timeline, beside what ``using`` covers: closed under parents, not under reads.
    Where there are any in ``using`` no other checkpoint is looked for, but for those among them that do not know what is voided; one of
    them reaches the ``horizon``. Of a view of an earlier time the horizon is given: it is told by later transactions. ``writers`` are
    those that were just listed.
    """
    observed = files.store.now_us()
    listed = ([*writers] if writers is not None else files.writers()) if only is None else [only]
    wanted = _Wanted(everything, ahead_of, before, only, horizon)
    avoided: frozenset[bytes] = frozenset()
    while True:
        using = [checkpoint for checkpoint in using if checkpoint.uuid not in avoided]
        gathering = _gathered(files, listed, wanted, using, avoided)
        unaware = {checkpoint.uuid for checkpoint in gathering.unaware()}
        if not unaware:
            return view_of(files, gathering, observed)
        avoided |= unaware


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What ``newest_view`` was asked for."""

    everything: bool
    ahead_of: int | None
    before: int | None
    only: str | None
    horizon: Horizon | None


def _gathered(
    files: LogFiles, writers: Sequence[str], wanted: _Wanted, using: Sequence[Checkpoint], avoided: frozenset[bytes]
) -> Gathering:
    """What ``newest_view`` is made from where these checkpoints are avoided."""
    ahead_of, only = wanted.ahead_of, wanted.only
    limit = wanted.before if wanted.before is not None else ahead_of
    candidates = [*using]
    if not using and only is None:
        newest = partial(_newest_markers, limit=limit, usable=lambda checkpoint: checkpoint.uuid not in avoided)
        found = files.map(newest, writers)
        candidates = [markers.checkpoint for markers in found if markers.checkpoint is not None]
    listed: Timelines = {}

    def attempt(horizon: Horizon | None) -> Gathering:
        chosen = candidates if using or only is not None else choose(candidates, horizon)
        covered = Covered(files, chosen, horizon)
        everyone = sorted({*writers, *(covered.writers() if only is None else ())})
        firsts = {writer: 0 if wanted.everything else covered.list_from(writer) for writer in everyone}
        listed.update(_timelines(files, {w: first for w, first in firsts.items() if w not in listed or first < listed[w][0]}))
        gathering = Gathering(files, covered, lambda head: limit is None or head.commit_time <= limit, closed_reads=only is None)
        gathering.take(listed)
        return gathering

    gathering = _with_horizon(files, wanted.horizon, candidates, attempt)
    if ahead_of is not None:
        _drop_unfounded(gathering, ahead_of, gathering.voids().keys())
    gathering.complete()
    return gathering


def _drop_unfounded(gathering: Gathering, limit: int, voided: Set[Ref]) -> None:
    """Leave out what builds on a transaction that was left out, however far removed; what is voided binds nobody."""

    def is_late(transaction: Transaction) -> bool:
        return any(ref.head.commit_time > limit and ref not in voided for ref in _builds_on(transaction))

    while late := [ref for ref, t in gathering.found.items() if is_late(t)]:
        for ref in late:
            del gathering.found[ref]
        limit = min(limit, *(head.commit_time - 1 for _, head in late))


def _builds_on(transaction: Transaction) -> Iterator[Ref]:
    yield from (Ref(transaction.writer, link.head) for link in transaction.parents)
    for writer, heads in transaction.reads.heads.items():
        yield from (Ref(writer, head) for head in heads)


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
