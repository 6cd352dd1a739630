"""Log views: a closed cut, the checkpoints that cover part of it, and the transactions that they do not.

A raw listing taken while others commit is not causally closed: a transaction may be listed whose parent, or what it had read of
another writer, is not. So it is completed until nothing that it refers to is missing (docs/spec/cuts.md, "Closure").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from heapq import heapify, heappop, heappush
from operator import and_

from .. import limits
from ..errors import MissingObject, next_step_between, next_step_for
from ..format.checkpoints import Checkpoint
from ..format.records import SetAside, Void
from ..format.transactions import Transaction
from ..model import paths
from ..model.cuts import Cut, Head, Ref
from ..model.paths import LogFile
from ..wording import how_to_set_aside
from .coverage import Covered
from .entries import overtaken, voids_of, without_events
from .files import LogFiles
from .horizon import Horizon
from .trust import is_trusted


@dataclass(frozen=True, slots=True)
class Fork:
    """A revision at which a timeline has several transactions; ``open`` while no later one has joined the branches."""

    writer: str
    revision: int
    uuids: tuple[bytes, ...]
    open: bool


@dataclass(frozen=True)
class LogView:
    """A cut and what it is made from.

    Invariants: ``cut`` is closed under parents and reads; every transaction in it is covered by ``checkpoints`` or in ``tail``, which is
    sorted by stamp; what ``voids`` names has no events there, nor has what is set aside by ``asides``, which are all that are known, be
    they of the cut or not. ``observed`` is the store's time before the first listing. With a ``horizon`` the cut contains that, or the view
    is of a cut behind it that a tag names: then one checkpoint holds all of it, or nothing that it needs is gone.
    """

    database: str
    cut: Cut
    checkpoints: tuple[Checkpoint, ...]
    tail: tuple[Transaction, ...]
    forks: tuple[Fork, ...]
    observed: int
    lateness_bound: int = field(default=limits.LATENESS_BOUND)
    horizon: Horizon | None = None
    voids: Mapping[Ref, Void] = field(default_factory=dict)
    asides: Mapping[Ref, SetAside] = field(default_factory=dict)

    @property
    def newest_commit_time(self) -> int:
        """The largest commit time in the cut of what is not voided, 0 where there is none."""
        heads = [head for writer, head in self.cut.refs() if (writer, head) not in self.voids]
        below = [*(t.commit_time for t in self.tail if not t.voided), *(checkpoint.as_of for checkpoint in self.checkpoints)]
        return max((*(head.commit_time for head in heads), *below), default=0)

    @property
    def retired(self) -> frozenset[str]:
        """The writers of whom a checkpoint says that they commit no more."""
        return frozenset(each.writer for checkpoint in self.checkpoints for each in checkpoint.retired)

    @property
    def sealed(self) -> frozenset[str]:
        """Those of them of whom nothing can arrive any more."""
        return frozenset[str]().union(*(checkpoint.sealed for checkpoint in self.checkpoints))

    @property
    def watermark(self) -> int:
        """Microseconds: no transaction with an earlier commit time can still arrive."""
        return self.observed - self.lateness_bound


def view_of(files: LogFiles, gathering: Gathering, observed: int, cut: Cut | None = None) -> LogView:
    """The view of what was gathered, of exactly ``cut`` where one is given; ``CorruptionError`` where links do not fit."""
    _check_links(gathering)
    voided = gathering.voids()
    _check_times(gathering, voided)
    found = [without_events(t) if ref in voided else t for ref, t in gathering.found.items()]
    tail = sorted(found, key=lambda transaction: transaction.stamp)
    checkpoints = gathering.covered.checkpoints
    lateness = [t.lateness_bound for t in tail] + [c.lateness_bound for c in checkpoints]
    cut = gathering.cut() if cut is None else cut
    return LogView(
        database=files.database,
        cut=cut,
        checkpoints=checkpoints,
        tail=tuple(tail),
        forks=_forks(gathering, cut),
        observed=observed,
        lateness_bound=max(lateness, default=limits.LATENESS_BOUND),
        horizon=gathering.covered.horizon,
        voids=voided,
        asides=gathering.files.asides,
    )


def missed(error: MissingObject, found: Mapping[Ref, Transaction], checkpoints: Iterable[Checkpoint] = ()) -> MissingObject:
    """The error for what is gone, with who among these builds on it, or what it covers had: that may be what is bad."""
    of = paths.parse(error.name)
    gone = None if of is None or of.log_file is None else Ref(of.writer, of.log_file.head)
    if gone is None:
        return error
    followers = [t for _, t in sorted(found.items()) if gone in t.parent_refs]  # who had read it comes after who follows it
    builders = [*followers, *(t for _, t in sorted(found.items()) if gone in t.built_on)]
    by = [paths.transaction(t.writer, t.database, t.head) for t in builders]
    by += [paths.checkpoint(c.writer, c.database, c.head) for c in checkpoints if gone in set(c.reads.refs())]
    if not by:
        return error
    step = next_step_for(by[0])
    if followers:
        step = f"{error.next_step} Or without what follows it: {how_to_set_aside(by[0])}."
    told = MissingObject(f"{error.message} {by[0]} builds on it.", next_step=step)
    told.name = error.name
    return told


def _check_links(gathering: Gathering) -> None:
    """``CorruptionError`` where a transaction is not the one that its child was written after."""
    for (writer, _), transaction in list(gathering.found.items()):
        for link in transaction.parents:
            parent = gathering.found.get(Ref(writer, link.head))
            if parent is not None and parent.digest and link.digest and parent.digest != link.digest:
                name, follower = (paths.transaction(t.writer, t.database, t.head) for t in (parent, transaction))
                why = f"is not the transaction that {follower} was written after: its digest differs."
                gathering.found[parent.ref] = gathering.files.refuse(parent, why, next_step=next_step_between(name, follower))


_TIME_BYTES = 8
"""What a version 7 uuid begins with: its time to the microsecond, in the order of times."""


def _may_be_later(transaction: Transaction) -> bool:
    """Whether a transaction may name something of its own time or later; asked of every one, by the uuids as they are."""
    own = transaction.uuid[:_TIME_BYTES]
    if any(link.uuid[:_TIME_BYTES] >= own for link in transaction.parents):
        return True
    return any(head.uuid[:_TIME_BYTES] >= own for heads in transaction.reads.heads.values() for head in heads)


def _check_times(gathering: Gathering, voided: Mapping[Ref, Void]) -> None:
    """``CorruptionError`` where a transaction does not come after what it says that it had read; what is voided binds nobody."""
    for ref, transaction in list(gathering.found.items()):
        if not _may_be_later(transaction):
            continue
        later = [of for of in transaction.built_on if of.head.commit_time >= transaction.commit_time and of not in voided]
        if later and not transaction.lost:
            why = f"says that it had read revision {later[0].head.revision} of {later[0].writer!r}, which was committed after it."
            gathering.found[ref] = gathering.files.refuse(transaction, why)


_TOLD_APART = 4_096
"""With more heads than so many every fork of a timeline counts as open: which of them follows what would take too much memory."""


def _forks(gathering: Gathering, cut: Cut) -> tuple[Fork, ...]:
    """The revisions at which several transactions are known, but for those of which nobody can know what became of them.

    Before the floor of the horizon a fork is history, unless a branch still ends there.
    """
    known: dict[str, dict[int, set[bytes]]] = {}
    for writer, head in gathering.found:
        known.setdefault(writer, {}).setdefault(head.revision, set()).add(head.uuid)
    for checkpoint in gathering.covered.checkpoints:
        for writer, coverage in checkpoint.coverage.items():
            for head in coverage.recent | coverage.branches:
                known.setdefault(writer, {}).setdefault(head.revision, set()).add(head.uuid)
    horizon, found = gathering.covered.horizon, list[Fork]()
    for writer in sorted(known):
        heads = set(cut.of_writer(writer))
        forked = {revision: uuids for revision, uuids in known[writer].items() if len(uuids) > 1}
        ends = {revision for revision, uuids in forked.items() if any(Head(revision, uuid) in heads for uuid in uuids)}
        floor = 0 if horizon is None else horizon.floor(writer)
        forked = {revision: forked[revision] for revision in sorted(forked) if revision >= floor or revision in ends}
        still_open = _open(gathering, writer, heads, forked, ends) if len(heads) > 1 else set()
        found += [Fork(writer, revision, tuple(sorted(uuids)), revision in still_open) for revision, uuids in forked.items()]
    return tuple(found)


def _open(gathering: Gathering, writer: str, heads: set[Head], forked: Mapping[int, set[bytes]], ends: set[int]) -> set[int]:
    """Those of the ``forked`` revisions of a timeline of which no head follows all transactions: nothing follows one of the ``ends``.

    Each transaction is met once however many forks there are: it passes on to those that it follows which heads it is followed by.
    """
    asked = sorted(forked.keys() - ends)
    if not asked or len(heads) > _TOLD_APART:
        return set(forked)
    below: dict[int, dict[Head, int]] = {}
    for number, head in enumerate(heads):
        below.setdefault(head.revision, {})[head] = 1 << number
    pending, still_open = [-revision for revision in below], set(forked)
    heapify(pending)
    while pending and -pending[0] >= asked[0]:
        revision = -heappop(pending)
        level = below.pop(revision)
        uuids = forked.get(revision, ()) if revision not in ends else ()
        if uuids and reduce(and_, (level.get(Head(revision, uuid), 0) for uuid in uuids)):
            still_open.remove(revision)
        for at, followers in level.items() if revision > asked[0] else ():
            transaction = gathering.found.get(Ref(writer, at)) or gathering.files.transaction(writer, at)
            for parent in (link.head for link in transaction.parents if link.revision < revision):
                if parent.revision not in below:
                    below[parent.revision] = {}
                    heappush(pending, -parent.revision)
                others = below[parent.revision]
                others[parent] = others.get(parent, 0) | followers
    return still_open


class Gathering:
    """The transactions found so far that no chosen checkpoint covers. Those in ``known`` need not be fetched.

    Files are listed and fetched several at once, as many as pay for the store; what comes of it depends on no order.
    """

    def __init__(
        self,
        files: LogFiles,
        covered: Covered,
        wanted: Callable[[Head], bool] = lambda _: True,
        *,
        closed_reads: bool = True,
        known: Mapping[Ref, Transaction] | None = None,
    ) -> None:
        self.files = files
        self.covered = covered
        self.found: dict[Ref, Transaction] = {}
        self._wanted = wanted
        self._closed_reads = closed_reads
        self._closed: dict[Ref, bool] = {}
        self._known = known or {}

    def take(self, timelines: Mapping[str, tuple[int, Iterable[LogFile]]]) -> None:
        """Fetch what timelines, each listed from a revision on, hold beyond the checkpoints."""
        wanted: list[Ref] = []
        for writer, (first, files) in sorted(timelines.items()):
            heads = [file.head for file in files if file.is_transaction]
            self.covered.know(writer, heads, first)
            wanted += [Ref(writer, head) for head in heads if self._wanted(head)]
        self.fetch(ref for ref in wanted if not self.covered.holds(*ref))

    def fetch(self, refs: Iterable[Ref]) -> None:
        """Fetch transactions by name, whether or not they are covered."""
        missing = [ref for ref in refs if ref not in self.found]
        self.found |= {ref: t for ref in missing if (t := self._known.get(ref)) and t.set_aside is self.files.is_aside(*ref)}
        rest = [ref for ref in missing if ref not in self.found]
        self.found |= zip(rest, self.files.fetched(rest), strict=True)

    def complete(self) -> None:
        """Fetch what is referred to and missing, until nothing is; ``MissingObject`` names what is gone.

        It is fetched by name: what somebody has read may lie below where readers list from. That is for where no checkpoint is ``unaware``,
        as one is that names what is gone.
        """
        missing = self.missing()
        while missing:
            try:
                self.fetch(missing)
            except MissingObject as error:
                raise missed(error, self.found, self.covered.checkpoints) from None
            missing = self._not_found(self._referred_to(self.found[ref] for ref in missing))  # a long chain comes one by one

    def missing(self, *, of_covered: bool = True) -> list[Ref]:
        """What is neither found nor covered, and what was found refers to, or, with ``of_covered``, what is covered had read."""
        refs = self._referred_to(self.found.values())
        for checkpoint in self.covered.checkpoints if self._closed_reads and of_covered else ():
            refs |= set(checkpoint.reads.refs())
        return self._not_found(refs)

    def _unclosed(self, checkpoints: Iterable[Checkpoint]) -> list[Checkpoint]:
        """Those of plain writers that name something as read that is not there, nor is covered: their transactions say what they had read.

        Each is asked about up to the first such thing, however many it names.
        """
        plain = [checkpoint for checkpoint in checkpoints if self._closed_reads and not is_trusted(checkpoint.writer)]
        return [checkpoint for checkpoint in plain if not all(map(self._is_closed, checkpoint.reads.refs()))]

    def _is_closed(self, ref: Ref) -> bool:
        """Whether what a checkpoint names as read is found, covered or there; the store is asked once."""
        if ref in self.found:
            return True
        if ref not in self._closed:
            self._closed[ref] = self.covered.holds(*ref) or self.files.is_aside(*ref) or self.files.may_be_named(*ref)
        return self._closed[ref]

    def _referred_to(self, transactions: Iterable[Transaction]) -> set[Ref]:
        return {ref for t in transactions for ref in (t.built_on if self._closed_reads else t.parent_refs)}

    def _not_found(self, refs: set[Ref]) -> list[Ref]:
        return sorted(ref for ref in refs if ref not in self.found and not self.covered.holds(*ref))

    def voids(self) -> dict[Ref, Void]:
        """What is voided by what was found, and by what the checkpoints cover; of one timeline alone, what its own transactions tell.

        A checkpoint of that tells it of those that it covers: what it was made without.
        """
        voided = voids_of(self.found.values(), self.covered.checkpoints)
        if not self._closed_reads:
            voided |= {void.ref: void for checkpoint in self.covered.checkpoints for void in checkpoint.voids}
            voided |= overtaken(self.found)
        return voided

    def unaware(self) -> list[Checkpoint]:
        """The checkpoints that cover what is voided and do not know it, or what is set aside likewise or is not any more, or are unclosed.

        Not so the horizon's own: there is nothing to read instead.
        """
        return self._unaware(self.covered, self.voids())

    def aware_ones(self) -> Callable[[Checkpoint], bool]:
        """Whether another checkpoint would not be ``unaware`` either, were it read in the place of its writer's."""
        voided = self.voids()
        return lambda checkpoint: not self._unaware(self.covered.of_another(checkpoint), voided)

    def _unaware(self, covered: Covered, voided: Mapping[Ref, Void]) -> list[Checkpoint]:
        horizon = covered.horizon
        unaware = [*covered.unaware(voided), *covered.disagreeing(), *self._unclosed(covered.checkpoints)]
        return [c for c in unaware if horizon is None or not horizon.is_own(c)]

    def cut(self) -> Cut:
        """The heads of everything covered and found."""
        followed = {ref for t in self.found.values() for ref in t.parent_refs}
        covered = {(writer, head) for writer in self.covered.writers() for head in self.covered.heads(writer)}
        return Cut.of((covered | set(self.found)) - followed)
