"""Timelines: what follows what, what is referred to and gone, and whether commit times rise along it.

Of each transaction only what others refer to is kept, so that memory grows with the number of transactions and not with their events.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from ... import limits
from ...errors import UNREADABLE, BucketCatalogError
from ...format.authority import Definition
from ...format.checkpoints import ApplicationResult, Checkpoint
from ...format.held import revision, shown_heads
from ...format.records import Boundary, Link, Linked, PinEntry, TagEntry, Void, Witness
from ...format.runs import SegmentReference
from ...format.transactions import Transaction
from ...log.entries import result_of
from ...log.files import LogFiles
from ...model.cuts import Cut, Head, Ref
from ...model.paths import transaction as transaction_path
from ...model.times import shown_time
from ...parallel import in_order
from .files import Kept, WriterFiles
from .findings import Finding, unreadable


@dataclass(frozen=True, slots=True)
class TransactionSummary(Linked):
    """What is kept of a transaction: its links, its time, and what it defines."""

    writer: str
    revision: int
    uuid: bytes
    lateness_bound: int
    parents: tuple[Link, ...]
    reads: Cut
    digest: bytes
    events: int
    definitions: tuple[Definition, ...]
    segments: tuple[SegmentReference, ...]
    voids: tuple[Void, ...]
    boundary: Boundary | None
    witnessed: tuple[Witness, ...]
    tags: tuple[TagEntry, ...]
    pin: PinEntry | None
    result: ApplicationResult | None
    ignored: tuple[str, ...] = ()


def summary_of(t: Transaction) -> TransactionSummary:
    """What is kept of a transaction."""
    return TransactionSummary(
        writer=t.writer,
        revision=t.revision,
        uuid=t.uuid,
        lateness_bound=t.lateness_bound,
        parents=t.parents,
        reads=t.reads,
        digest=t.digest,
        events=t.events,
        definitions=t.definitions,
        segments=t.segments,
        voids=t.voids,
        boundary=t.boundary,
        witnessed=t.witnessed,
        tags=t.tags,
        pin=t.pin,
        result=result_of(t),
        ignored=t.ignored,
    )


def read_timelines(files: LogFiles, found: Iterable[WriterFiles]) -> Iterator[TransactionSummary | Finding]:
    """Every transaction that can be read, and a finding for each that cannot."""
    refs = [Ref(writer.writer, head) for writer in found for head in sorted(writer.transactions)]

    def read(ref: Ref) -> TransactionSummary | Finding:
        try:
            return summary_of(files.transaction(*ref))
        except UNREADABLE as error:
            return unreadable(error, "TRANSACTION", _name(files, ref), revision(ref.writer, ref.head.revision))
        except BucketCatalogError as error:  # of a definition that it carries: the rest may be whole
            return Finding("DAMAGED_TRANSACTION", _name(files, ref), error.message, (revision(ref.writer, ref.head.revision),))

    return in_order(read, refs, threads=files.concurrency)


def _name(files: LogFiles, ref: Ref) -> str:
    return transaction_path(ref.writer, files.database, ref.head)


def check_said(files: LogFiles, log: Mapping[Ref, TransactionSummary]) -> Iterator[Finding]:
    """Transactions that say what their writers cannot."""
    for ref, t in log.items():
        if t.ignored:
            text = f"It has {' and '.join(t.ignored)}, that do not count from {t.writer!r}."
            yield Finding("IGNORED_FIELDS", _name(files, ref), text)


def check_links(files: LogFiles, log: Mapping[Ref, TransactionSummary], voided: Set[Ref]) -> Iterator[Finding]:
    """Transactions whose parents are other ones than they say, or that do not come after what they follow and have read."""
    for ref, t in log.items():
        name = _name(files, ref)
        expected = max((link.revision for link in t.parents), default=-1) + 1
        if t.head.revision != expected and not files.is_aside(*ref):
            text = f"It stands at revision {t.head.revision}, and its parents say {expected}."
            yield Finding("BROKEN_CHAIN", name, text, (revision(ref.writer, ref.head.revision),))
        for link in t.parents:
            parent = log.get(Ref(t.writer, link.head))
            if parent is not None and parent.digest and link.digest and parent.digest != link.digest:
                text = f"It is not the transaction that {name} was written after: its digest differs."
                yield Finding("BROKEN_CHAIN", _name(files, parent.ref), text, (revision(parent.writer, parent.head.revision),))
        later = [other for other in t.built_on if other.head.commit_time >= t.head.commit_time and other not in voided]
        if later:
            writer, head = later[0]
            text = f"Its commit time is not later than that of revision {head.revision} of {writer}, which it comes after."
            yield Finding("TIME_ORDER", name, text, (revision(ref.writer, ref.head.revision),))


def check_references(
    files: LogFiles, found: Mapping[str, WriterFiles], named: Mapping[Ref, str], kept: Kept
) -> Iterator[Finding]:
    """Transactions that are referred to and gone, each with those before it that are not there either.

    ``named`` says for each who refers to it, ``kept`` which have to be there.
    """
    reported, last = ("", 0), 0
    known = {writer: sorted(head.revision for head in below.transactions) for writer, below in found.items()}
    for ref in sorted(named, reverse=True):
        writer, head = ref
        listed = found[writer].transactions if writer in found else {}
        if head in listed or not kept.has(writer, head) or files.is_aside(writer, head):
            continue
        if reported[0] == writer and reported[1] <= head.revision < last:
            continue
        revisions = known.get(writer, [])
        at = bisect_left(revisions, head.revision)
        before = revisions[at - 1] if at else -1
        first, last = max(before + 1, min(kept.first(writer), head.revision)), head.revision
        reported = writer, first
        held = revision(writer, last, first)
        yield Finding("MISSING_TRANSACTION", _name(files, ref), f"It is gone; {named[ref]} refers to it.", (held,))


def named_transactions(log: Mapping[Ref, TransactionSummary], files: LogFiles) -> dict[Ref, str]:
    """For each transaction that others build on the name of one of these."""
    named: dict[Ref, str] = {}
    for ref, t in log.items():
        name = _name(files, ref)
        for other in t.built_on:
            named.setdefault(other, name)
    return named


def check_forks(log: Mapping[Ref, TransactionSummary], files: LogFiles) -> Iterator[Finding]:
    """Timelines that end in several transactions; what ends before some that cannot be read may have been followed by these."""
    followed = {ref for t in log.values() for ref in t.parent_refs}
    gone, known = _revisions(followed - log.keys()), _revisions(log)
    heads: dict[str, list[Head]] = {}
    for writer, head in log.keys() - followed:
        next_gone = _next(gone.get(writer, []), head.revision)
        if next_gone is None or next_gone > (_next(known[writer], head.revision) or next_gone):
            heads.setdefault(writer, []).append(head)
    for writer, ends in sorted(heads.items()):
        if len(ends) > 1:
            name = _name(files, Ref(writer, max(ends)))
            yield Finding("OPEN_FORK", name, f"The timeline of {writer} ends in {shown_heads(ends)}. All branches are read.")


def _revisions(refs: Iterable[Ref]) -> dict[str, list[int]]:
    """The revisions of each writer, sorted."""
    found: dict[str, list[int]] = {}
    for writer, head in sorted(refs):
        found.setdefault(writer, []).append(head.revision)
    return found


def _next(revisions: list[int], after: int) -> int | None:
    """The smallest of sorted revisions that is larger."""
    at = bisect_right(revisions, after)
    return revisions[at] if at < len(revisions) else None


def check_seals(found: Mapping[str, WriterFiles], checkpoints: Iterable[Checkpoint]) -> Iterator[Finding]:
    """What stands in sealed timelines beyond all that checkpoints that seal them cover: no reader of now looks for it."""
    covered: dict[str, int] = {}
    for checkpoint in checkpoints:
        for writer in checkpoint.sealed:
            covered[writer] = max(covered.get(writer, -1), checkpoint.cut.newest_revision(writer))
    for writer, last in sorted(covered.items()):
        for head, info in sorted(found[writer].transactions.items()) if writer in found else ():
            if head.revision > last:
                text = f"{writer!r} was retired, and its timeline sealed. It counts from the next checkpoint of everybody on."
                yield Finding("BEHIND_A_SEAL", info.name, text, (revision(writer, head.revision),))


def check_clocks(
    files: LogFiles, found: Mapping[str, WriterFiles], log: Mapping[Ref, TransactionSummary], voided: Set[Ref], kept: Kept
) -> Iterator[Finding]:
    """Transactions from the future, and, one line a writer, those that the store's times say arrived too late or too early.

    When those arrived that a horizon ``kept`` of a timeline as its end is no matter, and in a clone they are copies.
    """
    limit = files.store.now_us() + limits.MAX_CLOCK_SKEW
    for writer, below in sorted(found.items()):
        late, ahead = [], []
        for head, info in sorted(below.transactions.items()):
            t = log.get(Ref(writer, head))
            if t is None or t.ref in voided:
                continue
            if head.commit_time > limit:
                text = f"Its commit time, {shown_time(head.commit_time)}, lies in the future. It is read, and in no checkpoint."
                yield Finding("FUTURE_TRANSACTION", info.name, text, (revision(writer, head.revision),))
            elif info.modified_us > head.commit_time + t.lateness_bound and not kept.as_end(writer, head):
                late.append(info)
            elif head.commit_time > info.modified_us + limits.MAX_CLOCK_SKEW:
                ahead.append(info)
        if late:
            text = f"{_count(len(late))} of {writer}, this one first, reached the store later than promised."
            yield Finding("LATE_ARRIVAL", late[0].name, text)
        if ahead:
            text = f"{_count(len(ahead))} of {writer}, this one first, reached the store before the commit time."
            yield Finding("CLOCK_AHEAD", ahead[0].name, text)


def _count(number: int) -> str:
    return "1 transaction" if number == 1 else f"{number} transactions"
