"""Looking at a database as it is now, or was at a time: what is there is found by listing.

A first look asks twice for each writer: for its newest checkpoint, and for its timeline from where that says. Whoever looks again knows
the checkpoints and what no checkpoint covers, and asks once for each writer: its timeline, where a new checkpoint shows too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..codec.checkpoints import Checkpoint
from ..codec.transactions import Transaction
from ..cut import Head
from ..errors import MissingObject
from ..names import is_maintainer
from ..paths import LogFile
from .boundaries import newest_of
from .coverage import Covered, choose
from .files import LogFiles
from .gathering import Gathering, Ref
from .horizon import Horizon
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
    """What a look found and the next one need not ask for: markers, what no checkpoint covers, and each timeline's last revision."""

    markers: Mapping[str, Markers] = field(default_factory=dict)
    tail: Mapping[Ref, Transaction] = field(default_factory=dict)
    newest: Mapping[str, int] = field(default_factory=dict)
    horizon: Horizon | None = None


Timelines = dict[str, tuple[int, list[LogFile]]]
"""For each writer the revision that its timeline was listed from, and its files from there."""


def look(files: LogFiles, known: Known) -> tuple[View, Known]:
    """The view of now, and what the next look may start from.

    A checkpoint appears in the listing of its timeline before its marker is there: it is a reason to ask for the markers again, and
    used only when they name it. Where something is gone, as while somebody prunes, everything is asked for anew, once.
    """
    try:
        return _look(files, known)
    except MissingObject:
        return _look(files, Known())


def _look(files: LogFiles, known: Known) -> tuple[View, Known]:
    observed = files.store.now_us()
    writers = files.writers()
    markers = {writer: known.markers[writer] for writer in writers if writer in known.markers}
    asked: set[str] = set()
    hinted = [writer for writer in writers if writer not in markers]
    listed: Timelines = {}

    def more(covered: Covered) -> None:
        firsts = {writer: _first(covered, known, writer) for writer in sorted({*writers, *covered.writers()})}
        listed.update(_timelines(files, {w: first for w, first in firsts.items() if w not in listed or first < listed[w][0]}))

    while True:
        markers |= zip(hinted, files.several(_newest_markers, hinted), strict=True)
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
    view = view_of(files, gathering, observed)
    newest = {writer: max(view.cut.newest_revision(writer), 0) for writer in listed}
    return view, Known(markers, gathering.found, newest, view.horizon)


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
    newest = newest_of(boundaries if known is None else [known.boundary, *boundaries]).history
    return known if newest is None or (known is not None and newest == known.boundary) else Horizon(newest, files)


def horizon_of(files: LogFiles) -> Horizon | None:
    """The horizon of now. Only maintainers publish one: a database without them has none, which one request tells."""
    return look(files, Known())[0].horizon if any(map(is_maintainer, files.writers())) else None


def _first(covered: Covered, known: Known, writer: str) -> int:
    """Where to list a timeline from: not behind what was known of it, since a new checkpoint may lie beside its last transaction."""
    first = covered.list_from(writer)
    return min(first, known.newest.get(writer, first))


def _timelines(files: LogFiles, firsts: Mapping[str, int]) -> Timelines:
    listed = files.several(lambda files, item: list(files.timeline(*item)), [*firsts.items()])
    return {writer: (first, found) for (writer, first), found in zip(firsts.items(), listed, strict=True)}


def _tells_of_more(writer: str, found: Iterable[LogFile], markers: Markers) -> bool:
    """Whether there is a checkpoint beside a timeline of which the markers told nothing.

    Those at a maintainer's first revision may be of tags, and have none.
    """
    first = 1 if is_maintainer(writer) else 0
    heads = (Head(file.revision, file.uuid) for file in found if not file.is_transaction and file.revision >= first)
    return any(not markers.tell_of(head) for head in heads)


def newest_view(
    files: LogFiles,
    *,
    everything: bool = False,
    ahead_of: int | None = None,
    before: int | None = None,
    only: str | None = None,
    using: Checkpoint | None = None,
    horizon: Horizon | None = None,
    writers: Sequence[str] | None = None,
) -> View:
    """The view of now, or with ``before`` that of every transaction whose commit time is at most that.

    With ``everything`` timelines are listed from their start, so that strays below the checkpoints are found too. With ``ahead_of``
    each timeline stops before its first transaction with a later commit time, and so does what has read such a one. With ``only`` the
    view is of one writer's own timeline, beside what ``using`` covers: closed under parents, not under reads.
    With ``using`` no other checkpoint is looked for; it reaches the ``horizon``. Of a view of an earlier time the horizon is given: it is
    told by later transactions. ``writers`` are those that were just listed.
    """
    observed = files.store.now_us()
    limit = before if before is not None else ahead_of
    writers = ([*writers] if writers is not None else files.writers()) if only is None else [only]
    candidates = [using] if using is not None else []
    if using is None and only is None:
        found = files.several(lambda files, writer: _newest_markers(files, writer, limit), writers)
        candidates = [markers.checkpoint for markers in found if markers.checkpoint is not None]
    listed: Timelines = {}

    def attempt(horizon: Horizon | None) -> Gathering:
        chosen = candidates if using is not None or only is not None else choose(candidates, horizon)
        covered = Covered(files, chosen, horizon)
        everyone = sorted({*writers, *(covered.writers() if only is None else ())})
        firsts = {writer: 0 if everything else covered.list_from(writer) for writer in everyone}
        listed.update(_timelines(files, {w: first for w, first in firsts.items() if w not in listed or first < listed[w][0]}))
        gathering = Gathering(files, covered, lambda head: limit is None or head.commit_time <= limit, closed_reads=only is None)
        gathering.take(listed)
        return gathering

    gathering = _with_horizon(files, horizon, candidates, attempt)
    if ahead_of is not None:
        _drop_unfounded(gathering, ahead_of)
    gathering.complete()
    return view_of(files, gathering, observed)


def _drop_unfounded(gathering: Gathering, limit: int) -> None:
    """Leave out what builds on a transaction that was left out, however far removed."""
    while late := [ref for ref, t in gathering.found.items() if any(head.commit_time > limit for head in _builds_on(t))]:
        for ref in late:
            del gathering.found[ref]
        limit = min(limit, *(head.commit_time - 1 for _, head in late))


def _builds_on(transaction: Transaction) -> Iterator[Head]:
    yield from (Head(link.revision, link.uuid) for link in transaction.parents)
    for heads in transaction.reads.heads.values():
        yield from heads


def newest_own(files: LogFiles, writer: str, limit: int, *, alone: bool) -> Checkpoint | None:
    """The writer's newest checkpoint of its own timeline ``alone``, or of others' too, whose whole cut lies at or before the limit."""
    return _newest_markers(files, writer, limit, lambda checkpoint: (set(checkpoint.cut.heads) == {writer}) is alone).checkpoint


def _newest_markers(
    files: LogFiles, writer: str, limit: int | None = None, usable: Callable[[Checkpoint], bool] = lambda _: True
) -> Markers:
    """The writer's newest usable checkpoint whose whole cut lies at or before the limit; its uuid tells.

    Of several checkpoints beside one transaction it is the one that covers most: it was written when more had arrived.
    """
    found: dict[Head, Checkpoint] = {}
    for head in files.checkpoints(writer):
        if found and head.revision < max(found).revision:
            break
        if (limit is None or head.commit_time <= limit) and usable(checkpoint := files.checkpoint(writer, head)):
            found[head] = checkpoint
    most = max(
        found.values(), key=lambda c: (sum(coverage.transactions for coverage in c.coverage.values()), c.uuid), default=None
    )
    return Markers(most, frozenset(found))
