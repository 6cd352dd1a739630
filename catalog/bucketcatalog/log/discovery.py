"""Looking at a database as it is now, or was at a time: what is there is found by listing.

A first look asks twice for each writer: for its newest checkpoint, and for its timeline from where that says. Whoever looks again knows
the checkpoints and what no checkpoint covers, and asks once for each writer: its timeline, where a new checkpoint shows too. For one whose
timeline is sealed by a checkpoint that is read nothing is asked; who deletes, or looks at the past, asks for it all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from ..errors import MissingObject
from ..format.checkpoints import Checkpoint
from ..format.transactions import Transaction
from ..model.cuts import Head, Ref
from ..model.names import is_maintainer
from ..model.paths import LogFile
from .aside import Asides, counting
from .awareness import aware_of
from .coverage import Covered, choose
from .entries import newest_of
from .files import LogFiles
from .horizon import Horizon
from .trust import is_ahead, is_trusted
from .view import Gathering, LogView, view_of


@dataclass(frozen=True, slots=True)
class Markers:
    """What a writer's ``newest/`` said: the checkpoint to use, and the names of all at the same revision, and of those passed over."""

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
    avoided: frozenset[Ref] = frozenset()
    tail: Mapping[Ref, Transaction] = field(default_factory=dict)
    newest: Mapping[str, int] = field(default_factory=dict)
    horizon: Horizon | None = None
    asides: Asides = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Which transactions a view is looked for among.

    With a ``limit`` none with a later commit time is taken but by name, as those that are ``named`` are; where the view has to be
    ``founded`` what builds on such a one is left out too, however far removed. Of an ``own`` timeline, one writer's, the view is closed
    under parents, not under reads. ``whole`` timelines are listed from their start, so that strays below the checkpoints are found. Where
    it is of the ``past`` the files know what is set aside, for that is told by later transactions.
    """

    limit: int | None = None
    named: Set[Head] = frozenset()
    founded: bool = False
    own: bool = False
    whole: bool = False
    past: bool = False

    @property
    def is_now(self) -> bool:
        """Whether it is what readers look at: everything, as far as a checkpoint need not be read for it."""
        return self == _Scope()


Timelines = dict[str, tuple[int, list[LogFile]]]
"""For each writer the revision that its timeline was listed from, and its files from there."""


def look(files: LogFiles, known: LastLook) -> tuple[LogView, LastLook]:
    """The view of now, and what the next look may start from.

    A checkpoint appears in the listing of its timeline before its marker is there: it is a reason to ask for the markers again, and
    used only when they name it. Where something is gone, as while somebody prunes, everything is asked for anew, once.
    """
    try:
        return _look(files, known)
    except MissingObject:
        return _look(files, LastLook())


def horizon_of(files: LogFiles) -> Horizon | None:
    """The horizon of now. Only maintainers publish one: a database without them has none, which one request tells."""
    return informed(files)[1]


def informed(files: LogFiles) -> tuple[LogFiles, Horizon | None]:
    """The same log as it knows by now what is set aside, and the horizon of now; one request tells where there are no maintainers."""
    if not any(map(is_maintainer, files.writers())):
        return files, None
    view = look(files, LastLook())[0]
    return files.aware(view.asides), view.horizon


def newest_view(files: LogFiles, *, ahead_of: int | None = None, horizon: Horizon | None = None) -> LogView:
    """The view of now.

    With ``ahead_of`` each timeline stops before its first transaction with a later commit time, and so does what has read such a one.
    """
    return _view(files, None, _Scope(ahead_of, founded=True), horizon=horizon)


def view_at(files: LogFiles, time: int, observed: int, *, horizon: Horizon | None, writers: Sequence[str]) -> LogView:
    """The view of every transaction whose commit time is at most ``time``, of the ``writers``, who were listed after ``observed``.

    The horizon is given: it is told by later transactions, as is what the files have to know of what was set aside.
    """
    return _view(files, writers, _Scope(time, past=True), horizon=horizon, observed=observed)


def whole_view(
    files: LogFiles,
    *,
    using: Sequence[Checkpoint] = (),
    ahead_of: int | None = None,
    naming: Iterable[Head] = (),
    horizon: Horizon | None = None,
) -> LogView:
    """The view of now with every timeline listed from its start, so that strays below the checkpoints are found.

    Where there are any in ``using`` no other checkpoint is looked for, but for those among them that do not know what is voided; one of
    them reaches the ``horizon``. ``ahead_of`` is as for ``newest_view``, but for transactions that are voided and that the caller is
    ``naming``, since it follows them.
    """
    return _view(files, None, _Scope(ahead_of, frozenset(naming), founded=True, whole=True), using=using, horizon=horizon)


def own_view(files: LogFiles, writer: str, *, using: Sequence[Checkpoint], ahead_of: int, horizon: Horizon | None) -> LogView:
    """The view of one writer's whole timeline beside what ``using`` covers, and no other checkpoint.

    It is closed under parents, not under reads. ``ahead_of`` is as for ``newest_view``.
    """
    return _view(files, [writer], _Scope(ahead_of, founded=True, own=True, whole=True), using=using, horizon=horizon)


def newest_own(files: LogFiles, writer: str, limit: int, *, alone: bool) -> Checkpoint | None:
    """The writer's newest checkpoint of its own timeline ``alone``, or of others' too, whose whole cut lies at or before the limit."""
    return _newest_markers(files, writer, limit, lambda checkpoint: (set(checkpoint.cut.heads) == {writer}) is alone).checkpoint


def _look(files: LogFiles, known: LastLook) -> tuple[LogView, LastLook]:
    while True:
        observed = files.store.now_us()
        files = files.aware(counting([*files.asides.values(), *known.asides.values()]))
        search = _Search(files, files.writers(), _Scope(), known, observed)
        markers = _markers(search)
        gathering = search.gathered(_used(markers.values()), known.horizon)
        if known.avoided and gathering.files.asides != known.asides:
            known = LastLook(asides=gathering.files.asides)  # what was avoided may be what can be read by now
            continue
        unaware = {checkpoint.ref for checkpoint in gathering.unaware()}
        if not unaware:
            view = view_of(files, gathering, observed)
            revisions = {writer: max(view.cut.newest_revision(writer), 0) for writer in search.listed}
            return view, LastLook(markers, known.avoided, gathering.found, revisions, view.horizon, view.asides)
        others, avoided = search.without(unaware, markers, gathering)
        asides = gathering.files.asides
        known = LastLook(others, avoided, gathering.found, horizon=gathering.covered.horizon, asides=asides)


def _view(
    files: LogFiles,
    writers: Sequence[str] | None,
    scope: _Scope,
    *,
    using: Sequence[Checkpoint] = (),
    horizon: Horizon | None,
    observed: int | None = None,
) -> LogView:
    """The view of a scope, of all writers where none are given. Checkpoints that do not know what is voided are done without."""
    observed = files.store.now_us() if observed is None else observed
    writers = files.writers() if writers is None else writers
    avoided: frozenset[Ref] = frozenset()
    markers: dict[str, Markers] = {}
    while True:
        using = [checkpoint for checkpoint in using if checkpoint.ref not in avoided]
        search = _Search(files, writers, scope, LastLook(avoided=avoided), observed)
        if using or scope.own:
            gathering = search.gathered(using, horizon, given=True)
        else:
            asked = [writer for writer in writers if writer not in markers]
            markers |= zip(asked, files.map(search.newest_markers, asked), strict=True)
            gathering = search.gathered(_used(markers.values()), horizon)
        unaware = {checkpoint.ref for checkpoint in gathering.unaware()}
        if not unaware:
            return view_of(files, gathering, observed)
        markers, avoided = search.without(unaware, markers, gathering)
        files = gathering.files


class _Search:
    """One search for a view of these writers: the timelines that were listed for it, and what is gathered from them.

    Invariant: no timeline is listed twice from the same revision on. What is ``known`` of an earlier search is not asked for.
    """

    def __init__(self, files: LogFiles, writers: Sequence[str], scope: _Scope, known: LastLook, observed: int) -> None:
        self.files = files
        self.observed = observed
        self.writers = writers
        self.scope = scope
        self.known = known
        self.listed: Timelines = {}

    def newest_markers(self, files: LogFiles, writer: str) -> Markers:
        """What the writer's ``newest/`` says of checkpoints in the scope, but for those that are avoided."""
        return _newest_markers(files, writer, self.scope.limit, self._is_usable, self.known.avoided)

    def _is_usable(self, checkpoint: Checkpoint) -> bool:
        return not is_ahead(checkpoint, self.observed)

    def without(
        self, unaware: Set[Ref], markers: Mapping[str, Markers], gathering: Gathering
    ) -> tuple[dict[str, Markers], frozenset[Ref]]:
        """The markers to go on with where these checkpoints are done without, of some writers none; and all that is avoided from now on.

        A plain writer's further ones are judged at once beside what was gathered, however many would be done without one after the other.
        """
        used = {writer: said.checkpoint.ref for writer, said in markers.items() if said.checkpoint is not None}
        others = {writer: said for writer, said in markers.items() if used.get(writer) not in unaware}
        is_aware, avoided = gathering.aware_ones(), {*self.known.avoided, *unaware}

        def is_usable(checkpoint: Checkpoint) -> bool:
            if self._is_usable(checkpoint) and not is_aware(checkpoint):
                avoided.add(checkpoint.ref)
            return self._is_usable(checkpoint) and checkpoint.ref not in avoided

        for writer in (writer for writer in markers if writer not in others and not is_trusted(writer)):
            others[writer] = _newest_markers(self.files, writer, self.scope.limit, is_usable, frozenset(avoided))
        return others, frozenset(avoided)

    def list_beside(self, covered: Covered) -> None:
        """List each timeline from the revision on that has to be looked at beside these checkpoints, unless that was done."""
        everyone = sorted({*self.writers, *(() if self.scope.own else covered.writers())} - self.passed_over(covered))
        firsts = {writer: self._first(covered, writer) for writer in everyone}
        asked = [(w, first) for w, first in firsts.items() if w not in self.listed or first < self.listed[w][0]]
        found = self.files.map(lambda files, item: list(files.timeline(*item)), asked)
        self.listed |= {writer: (first, timeline) for (writer, first), timeline in zip(asked, found, strict=True)}

    def passed_over(self, covered: Covered) -> Set[str]:
        """The writers that are not asked for beside these checkpoints."""
        return covered.sealed if self.scope.is_now and not self.files.is_of_trusted else frozenset()

    def _first(self, covered: Covered, writer: str) -> int:
        """Where to list a timeline from: not behind what was known of it, since a new checkpoint may lie beside its last transaction."""
        first = 0 if self.scope.whole else covered.list_from(writer)
        return min(first, self.known.newest.get(writer, first))

    def gathered(self, candidates: Sequence[Checkpoint], known: Horizon | None, *, given: bool = False) -> Gathering:
        """All that a view is made of, beside those of the candidates that are worth reading, or all where they are ``given``.

        The horizon that counts may be told by what is gathered. The checkpoint of the ``known`` one may be gone. Then it is found without
        one what has been published since.
        """
        horizon, gone = _newest_horizon(self.files, known, candidates), None
        while True:
            try:
                gathering = self._beside(self._aware(candidates, given=given, horizon=horizon))
            except MissingObject:
                if horizon in (None, gone):
                    raise
                gone, horizon = horizon, None
                continue
            newest = _newest_horizon(self.files, horizon or gone, candidates, gathering.found.values())
            if newest == horizon:
                return self._completed(gathering)
            horizon = newest

    def _aware(self, candidates: Sequence[Checkpoint], *, given: bool, horizon: Horizon | None) -> Covered:
        """What is covered by the candidates that are worth reading, once the timelines beside are listed, by files that know asides."""
        covered = Covered(self.files, candidates if given else choose(candidates, horizon), horizon)
        self.list_beside(covered)
        return covered if self.scope.past else aware_of(covered, candidates, self.listed)

    def _beside(self, covered: Covered) -> Gathering:
        """What the timelines have in the scope that is not covered."""
        limit = self.scope.limit
        gathering = Gathering(
            covered.files,
            covered,
            lambda head: limit is None or head.commit_time <= limit or head in self.scope.named,
            closed_reads=not self.scope.own,
            known=self.known.tail,
        )
        gathering.take(self.listed)
        return gathering

    def _completed(self, gathering: Gathering) -> Gathering:
        """With what is referred to, and founded where it has to be; not where a checkpoint, with what it had read, is done without next."""
        if gathering.unaware():
            return gathering
        if self.scope.limit is not None and self.scope.founded:
            _drop_unfounded(gathering, self.scope.limit, gathering.voids().keys())
        gathering.complete()
        return gathering


def _markers(search: _Search) -> dict[str, Markers]:
    """What the markers of each writer say: asked for where that is not known, and where its timeline tells of more.

    Where all cannot be asked at once those are asked first who can say of others that nothing of them is to come.
    """
    markers = {writer: search.known.markers[writer] for writer in search.writers if writer in search.known.markers}
    unknown, asked = [writer for writer in search.writers if writer not in markers], set[str]()
    hinted = unknown if len(unknown) <= search.files.concurrency else list(filter(is_trusted, unknown))
    while True:
        markers |= zip(hinted, search.files.map(search.newest_markers, hinted), strict=True)
        asked |= set(hinted)
        covered = Covered(search.files, choose(_used(markers.values())))
        here = [writer for writer in search.writers if writer not in search.passed_over(covered)]
        hinted = [writer for writer in here if writer not in markers]
        if not hinted:
            search.list_beside(covered)
            hinted = [w for w in here if w not in asked and _tells_of_more(w, search.listed[w][1], markers[w])]
        if not hinted:
            return markers


def _used(markers: Iterable[Markers]) -> list[Checkpoint]:
    """The checkpoints that markers say to use."""
    return [each.checkpoint for each in markers if each.checkpoint is not None]


def _tells_of_more(writer: str, found: Iterable[LogFile], markers: Markers) -> bool:
    """Whether there is a checkpoint beside a timeline of which the markers told nothing.

    Those at a maintainer's first revision may be of tags, and have none.
    """
    first = 1 if is_maintainer(writer) else 0
    heads = (file.head for file in found if not file.is_transaction and file.revision >= first)
    return any(not markers.tell_of(head) for head in heads)


def _newest_horizon(
    files: LogFiles, known: Horizon | None, checkpoints: Iterable[Checkpoint], transactions: Iterable[Transaction] = ()
) -> Horizon | None:
    """The horizon that counts of the one that is known and those that checkpoints carry on or transactions have published."""
    boundaries = [boundary for checkpoint in checkpoints for boundary in checkpoint.boundaries]
    boundaries += [transaction.boundary for transaction in transactions if transaction.boundary is not None]
    boundaries = [boundary for boundary in boundaries if files.heeds(boundary)]
    newest = newest_of(boundaries if known is None else [known.boundary, *boundaries]).history
    return known if newest is None or (known is not None and newest == known.boundary) else Horizon(newest, files)


def _drop_unfounded(gathering: Gathering, limit: int, voided: Set[Ref]) -> None:
    """Leave out what builds on a transaction that was left out, however far removed; what is voided binds nobody."""

    def latest(transaction: Transaction) -> int:
        return max((ref.head.commit_time for ref in transaction.built_on if ref not in voided), default=0)

    for after, ref in sorted(((latest(t), ref) for ref, t in gathering.found.items()), reverse=True):
        if after <= limit:
            break
        del gathering.found[ref]
        limit = min(limit, ref.head.commit_time - 1)


def _newest_markers(
    files: LogFiles, writer: str, limit: int | None, usable: Callable[[Checkpoint], bool], avoided: Set[Ref] = frozenset()
) -> Markers:
    """The writer's newest usable checkpoint whose whole cut lies at or before the limit, as its uuid tells; ``avoided`` ones are not read.

    Of several checkpoints beside one transaction it is the one that covers most: it was written when more had arrived. Where several
    cover as much it is the one that was made last: it has the fewest levels.
    """
    found: dict[Head, Checkpoint] = {}
    met: set[Head] = set()
    for head in files.checkpoints(writer):
        if found and head.revision < max(found).revision:
            break
        met.add(head)
        is_within = limit is None or head.commit_time <= limit
        checkpoint = files.usable_checkpoint(writer, head) if is_within and (writer, head) not in avoided else None
        if checkpoint is not None and usable(checkpoint):
            found[head] = checkpoint
    most = max(found.values(), key=_covered_and_made, default=None)
    return Markers(most, frozenset(met))


def _covered_and_made(checkpoint: Checkpoint) -> tuple[int, int, bytes]:
    return sum(coverage.transactions for coverage in checkpoint.coverage.values()), checkpoint.created, checkpoint.uuid
