"""What a walk over a database has found about single transactions, put in order once, for however many of them are asked about.

Whether one is there, covered, followed, what is wrong with it, and what its timeline ended in before it: what setting aside is decided by.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from ..format.transactions import Transaction
from ..log.coverage import Covered
from ..log.files import LogFiles
from ..model import paths
from ..model.cuts import Head, Ref
from .verify.events import events_of_one
from .verify.findings import Finding, Severity
from .verify.timelines import TransactionSummary
from .verify.walk import Walk


class Evidence:
    """What is known of the transactions of a database after a ``walk`` and by its ``findings``."""

    def __init__(self, walk: Walk, findings: Sequence[Finding]) -> None:
        self.walk = walk
        self.findings = findings

    @cached_property
    def _errors(self) -> Mapping[str, Sequence[Finding]]:
        """What is wrong with each file."""
        found: dict[str, list[Finding]] = {}
        for finding in self.findings:
            if finding.severity is Severity.ERROR:
                found.setdefault(finding.file, []).append(finding)
        return found

    @cached_property
    def _segments(self) -> Mapping[str, Sequence[str]]:
        """The segments that each file refers to."""
        found: dict[str, list[str]] = {}
        for (writer, uuid), references in self.walk.segments.items():
            for by in references.by:
                found.setdefault(by, []).append(paths.segment(writer, self.walk.files.database, uuid))
        return found

    @cached_property
    def followers(self) -> Mapping[Ref, Sequence[tuple[TransactionSummary, bytes]]]:
        """Who follows each transaction on its timeline, and the digest that it says that one to have."""
        found: dict[Ref, list[tuple[TransactionSummary, bytes]]] = {}
        for t in self.walk.log.values():
            for link in t.parents:
                found.setdefault(Ref(t.writer, link.head), []).append((t, link.digest))
        return found

    @cached_property
    def _refer_to_gone(self) -> Mapping[Ref, set[Ref]]:
        """Of each transaction that was not read, who refers to it."""
        found: dict[Ref, set[Ref]] = {}
        for t in self.walk.log.values():
            for other in t.built_on:
                if other not in self.walk.log:
                    found.setdefault(other, set()).add(t.ref)
        return found

    @cached_property
    def _places(self) -> Mapping[tuple[str, int], set[Head]]:
        """What is known to stand, or to have stood, at a revision of a timeline."""
        listed = (Ref(writer, head) for writer, below in self.walk.found.items() for head in below.transactions)
        found: dict[tuple[str, int], set[Head]] = {}
        for writer, head in (*listed, *self.walk.files.asides):
            found.setdefault((writer, head.revision), set()).add(head)
        return found

    @cached_property
    def _covered(self) -> Covered:
        return self.walk.covered_by(self.walk.checkpoints, self.walk.horizon)

    def at(self, writer: str, revision: int) -> Collection[Head]:
        """The transactions that are known of a revision."""
        return self._places.get((writer, revision), ())

    def of_timeline(self, writer: str) -> Iterator[Ref]:
        """The transactions of a writer that are there, or that something is found of."""
        below = self.walk.found.get(writer)
        yield from (Ref(writer, head) for head in (below.transactions if below is not None else ()))
        for name in self._errors:
            found = paths.parse(name)
            if found is not None and found.log_file is not None and found.log_file.is_transaction and found.writer == writer:
                yield Ref(writer, found.log_file.head)

    def is_there(self, ref: Ref) -> bool:
        """Whether its file is."""
        return ref.writer in self.walk.found and ref.head in self.walk.found[ref.writer].transactions

    def is_covered(self, ref: Ref) -> bool:
        """Whether a checkpoint has its rows."""
        return self._covered.holds(*ref)

    def is_followed(self, ref: Ref) -> bool:
        """Whether a transaction that is there follows it on its timeline."""
        return any(t.head.revision > ref.head.revision for t, _ in self.followers.get(ref, ()))

    def counts(self, ref: Ref, taken: Collection[Ref] = ()) -> bool:
        """Whether what is referred to is not missing: it is there, set aside or about to be ``taken`` so, or may have been pruned."""
        return self.is_there(ref) or ref in taken or self.walk.files.is_aside(*ref) or not self.walk.kept.has(*ref)

    def why_bad(self, ref: Ref, taken: Collection[Ref] = (), *, itself: bool = False) -> Iterator[str]:
        """What is wrong with a transaction, as far as somebody is told of it who reads, once those others are ``taken`` for set aside.

        With the file ``itself``: that its rows do not fit a table may be the fault of who has defined that.
        """
        name = self.walk.name_of_transaction(ref)
        for file in (name, *self._segments.get(name, ())):
            yield from (each.message for each in self._errors.get(file, ()) if not itself or each.code != "MISFIT_EVENTS")
        t = self.walk.log.get(ref)
        if t is None:
            return
        for other in t.built_on:
            if not self.counts(other, taken):
                yield f"It refers to {self.walk.name_of_transaction(other)}, which is gone."
        for link in t.parents:
            parent = self.walk.log.get(Ref(t.writer, link.head))
            if parent is None or parent.ref in taken:
                continue
            if parent.digest and link.digest and parent.digest != link.digest:
                yield f"It was written after another transaction than {self.walk.name_of_transaction(parent.ref)}: the digest differs."

    def of_events(self, files: LogFiles, transactions: Sequence[Transaction]) -> Iterator[list[Finding]]:
        """What is wrong with the events that each of these holds itself, which need not be among those that were found."""
        definitions = self.walk.definitions_with(definition for t in transactions for definition in t.definitions)
        return (events_of_one(files, definitions, t.ref) for t in transactions)

    def blamed(self, finding: Finding) -> set[Ref]:
        """The transactions that refer to something that is gone, or is another than they say."""
        found = paths.parse(finding.file)
        if found is None or found.log_file is None or finding.code not in ("MISSING_TRANSACTION", "BROKEN_CHAIN"):
            return set()
        ref = Ref(found.writer, found.log_file.head)
        of = self.walk.log.get(ref)
        if of is None:
            return self._refer_to_gone.get(ref, set())
        return {t.ref for t, digest in self.followers.get(ref, ()) if digest not in (b"", of.digest)}


class Ends:
    """What a timeline ends in before places on it, which are asked for in their order, so that each transaction is met once.

    ``follows`` gives what a transaction follows, None where nobody can tell: it counts as following all that lies before it. What is not
    ``known`` when a place behind it is asked for is left out.
    """

    def __init__(
        self, heads: Iterable[Head], follows: Callable[[Head], Collection[Head] | None], known: Callable[[Head], bool]
    ) -> None:
        self._heads = sorted(heads)
        self._follows = follows
        self._known = known
        self._met = 0
        self._ends: set[Head] = set()

    def before(self, place: Head) -> list[Head]:
        """The heads of what has a smaller revision and an earlier commit time, sorted."""
        while self._met < len(self._heads) and self._heads[self._met].revision < place.revision:
            self._follow(self._ends, self._heads[self._met])
            self._met += 1
        if all(end.commit_time < place.commit_time for end in self._ends):
            return sorted(self._ends)
        ends: set[Head] = set()
        for head in self._heads[: self._met]:  # times that do not rise along it
            if precedes(head, place):
                self._follow(ends, head)
        return sorted(ends)

    def _follow(self, ends: set[Head], head: Head) -> None:
        """Put a transaction in the place of those that it follows."""
        if not self._known(head):
            return
        followed = self._follows(head)
        ends.difference_update([end for end in ends if precedes(end, head)] if followed is None else followed)
        ends.add(head)


def precedes(head: Head, other: Head) -> bool:
    """Whether a transaction of a timeline may be one that another follows."""
    return head.revision < other.revision and head.commit_time < other.commit_time
