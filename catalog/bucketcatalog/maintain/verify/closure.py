"""Whether what transactions had read is closed: with a transaction of another writer also what that one had read, and so on.

Readers complete every cut, so that no answer depends on it. A writer that leaves something out had not shown its user what it says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from graphlib import CycleError, TopologicalSorter

from ...format.checkpoints import Checkpoint
from ...log.files import LogFiles
from ...log.horizon import Horizon
from ...log.trust import is_trusted
from ...model import paths
from ...model.cuts import Cut, Head, Ref
from .findings import Finding
from .timelines import TransactionSummary

Heads = dict[str, tuple[Head, ...]]
"""For each other writer the heads of what a transaction and its ancestors had read, closed."""


def check_reads(
    files: LogFiles, log: Mapping[Ref, TransactionSummary], voided: Set[Ref], horizon: Horizon | None
) -> Iterator[Finding]:
    """Transactions that had read another without what that one had read."""
    graph = {ref: [other for other in t.built_on if other in log] for ref, t in log.items()}
    try:
        order = [*TopologicalSorter(graph).static_order()]
    except CycleError:
        return  # whose commit times cannot rise, which is a finding of its own
    closing = _Closing(log, voided, horizon)
    waiting = Counter(other for others in graph.values() for other in others)
    known: dict[Ref, Heads] = {}
    for ref in order:
        own, missing = closing.known(log[ref], known)
        if missing and ref not in voided:
            writer, head = min(missing)
            name = paths.transaction(ref.writer, files.database, ref.head)
            text = f"It had read what had read revision {head.revision} of {writer}, and does not name that among its reads."
            yield Finding("UNCLOSED_READS", name, text)
        if waiting[ref]:
            known[ref] = own
        for other in graph[ref]:
            waiting[other] -= 1
            if not waiting[other]:
                known.pop(other)  # nobody else asks for it


def read_of_nothing(
    checkpoints: Iterable[Checkpoint], log: Mapping[Ref, TransactionSummary], is_there: Callable[[Ref], bool]
) -> dict[Ref, list[Ref]]:
    """The checkpoints of plain writers that name what is not there as read, and what; not where a transaction of the writer says so too.

    Then something is lost that was there, and the checkpoint is right.
    """
    said: dict[str, set[Ref]] = {}
    for t in log.values():
        said.setdefault(t.writer, set()).update(t.reads.refs())
    found: dict[Ref, list[Ref]] = {}
    for checkpoint in checkpoints:
        gone = [ref for ref in checkpoint.reads.refs() if not is_trusted(checkpoint.writer) and not is_there(ref)]
        gone = [ref for ref in gone if ref not in said.get(checkpoint.writer, ())]
        if gone:
            found[checkpoint.ref] = gone
    return found


class _Closing:
    """What transactions had read, completed."""

    def __init__(self, log: Mapping[Ref, TransactionSummary], voided: Set[Ref], horizon: Horizon | None) -> None:
        self._log = log
        self._voided = voided
        self._horizon = horizon
        places = Counter((writer, head.revision) for writer, head in log)
        self._forked = {writer for (writer, _), count in places.items() if count > 1}

    def known(self, t: TransactionSummary, known: Mapping[Ref, Heads]) -> tuple[Heads, list[Ref]]:
        """What a transaction had read, and what of it neither it nor its ancestors say."""
        parents = [known[ref] for ref in t.parent_refs if ref in known]
        before = parents[0] if len(parents) == 1 else self._joined({}, (ref for each in parents for ref in Cut(each).refs()))
        if not t.reads.heads:
            return before, []
        own, missing = self._joined(before, t.reads.refs()), list[Ref]()

        def miss(ref: Ref) -> bool:
            if ref.writer == t.writer or self._holds(own, ref):  # of its own timeline nobody can say more than parents
                return False
            self._add(own, ref)
            missing.append(ref)
            return True

        newest = max((ref for ref in t.reads.refs() if ref in known), key=lambda ref: ref.head.commit_time, default=None)
        closed = before if newest is None else self._joined(known[newest], [newest])
        for writer, heads in closed.items():
            for head in heads if heads != own.get(writer) else ():
                miss(Ref(writer, head))
        pending = [*t.reads.refs()]
        while pending:
            for read in self._back(pending.pop(), before, closed):
                pending += [ref for ref in read.reads.refs() if miss(ref)]
        return own, missing

    def _joined(self, known: Heads, refs: Iterable[Ref]) -> Heads:
        """The heads of all."""
        found, more = dict(known), dict[str, set[Head]]()
        for writer, head in refs:
            more.setdefault(writer, set()).add(head)
        for writer, heads in more.items():
            found[writer] = self._ends(writer, heads.union(known.get(writer, ())))
        return found

    def _ends(self, writer: str, heads: Set[Head]) -> tuple[Head, ...]:
        """Those of these heads that none of the others follows, met at once: they may be many where a timeline is forked."""
        first, last = min(heads).revision, max(heads).revision
        if first == last:
            return tuple(sorted(heads))
        if writer not in self._forked:
            return (max(heads),)
        followed: set[Head] = set()
        pending = [head for head in heads if head.revision > first]
        while pending:
            t = self._log.get(Ref(writer, pending.pop()))
            new = {link.head for link in (t.parents if t is not None else ()) if link.revision >= first} - followed
            followed |= new
            pending += new
        return tuple(sorted(heads - followed))

    def _add(self, known: Heads, ref: Ref) -> None:
        """Put a transaction to these heads, in the place of those that it follows."""
        writer, head = ref
        heads = known.get(writer, ())
        if not self._is_among(heads, ref):
            known[writer] = self._ends(writer, {*heads, head})

    def _back(self, ref: Ref, *closed: Heads) -> Iterator[TransactionSummary]:
        """A transaction and its ancestors that are in none of these."""
        pending, done = [ref], set[Ref]()
        while pending:
            at = pending.pop()
            if at in done or at not in self._log or any(self._holds(each, at) for each in closed):
                continue
            done.add(at)
            yield self._log[at]
            pending += self._log[at].parent_refs

    def _holds(self, known: Heads, ref: Ref) -> bool:
        """Whether a transaction is among these heads and their ancestors, or nobody asks for it: it is voided, or before the horizon."""
        writer, head = ref
        is_history = self._horizon is not None and head.revision <= self._horizon.cut.newest_revision(writer)
        return is_history or ref in self._voided or self._is_among(known.get(writer, ()), ref)

    def _is_among(self, heads: Collection[Head], ref: Ref) -> bool:
        """Whether a transaction is one of these heads of its timeline, or an ancestor of one."""
        writer, head = ref
        if head in heads:
            return True
        later = {other for other in heads if other.revision > head.revision}
        if writer not in self._forked:
            return bool(later)
        while later:
            parents = (link for at in later if (t := self._log.get(Ref(writer, at))) is not None for link in t.parents)
            later = {link.head for link in parents if link.revision >= head.revision}
            if head in later:
                return True
        return False
