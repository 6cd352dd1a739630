"""Which files can be set aside, or taken in again, and what is said of them; decided from a walk over the database.

A file is set aside that keeps others from reading: one that is no transaction, or that refers to what is not there. What it followed and
had read is kept where its file tells that, as far as it is there; else it follows all that its timeline ended in before it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import UNREADABLE, InvalidOption
from ..format.records import Link, SetAside
from ..log.ancestry import without_ancestors
from ..log.coverage import Covered
from ..model import paths
from ..model.cuts import Cut, Head, Ref
from ..model.names import is_maintainer
from ..model.paths import FileKind
from ..model.times import parse_causal
from .verify.findings import Finding, Severity
from .verify.walk import Walk


@dataclass(frozen=True, slots=True)
class Said:
    """What is to be said of one file: its name, the entry, and why."""

    name: str
    entry: SetAside
    why: str


def set_aside(walk: Walk, findings: Sequence[Finding], named: Collection[str], *, force: bool) -> list[Said]:
    """What to say of the files that are named by their names or as ``writer@revision``, in order of their places.

    ``InvalidOption`` where one is no transaction's, is a maintainer's, rests in the horizon, is set aside already, or, unless forced, is
    not bad.
    """
    said: list[Said] = []
    for ref, text in sorted({_named(walk, text): text for text in named}.items()):
        _refuse(walk, ref, text)
        if walk.files.is_aside(*ref):
            raise InvalidOption(f"{text!r} is set aside already.", next_step="There is nothing left to do.")
        if not _is_there(walk, ref) and not _is_followed(walk, ref):
            raise InvalidOption(
                f"{text!r} is gone, and nothing on its timeline follows it: its writer would give the revision again.",
                next_step="Restore it from a copy of the store, or set aside what had read it.",
            )
        why = next(_why_bad(walk, findings, ref), "")
        if not why and not force:
            raise InvalidOption(
                f"{text!r} can be read, and so can what it refers to.",
                next_step="Give --force where it is to be set aside all the same; its rows can be ended by deletes, too.",
            )
        entry = _taken_for(walk, ref, {each.entry.ref for each in said})
        before = Head(ref.head.revision - 1, b"")
        is_gap = all(link.revision < before.revision for link in entry.parents) and walk.kept.has(ref.writer, before)
        if ref.head.revision > 0 and is_gap and not force:
            raise InvalidOption(
                f"{text!r} follows something at revision {before.revision}, which is gone, and of which nothing tells what it was called.",
                next_step="Restore that from a copy of the store, or give --force to go on without both.",
            )
        if _is_covered(walk, ref):
            why = f"{why} Checkpoints have its rows, and are not used any more."
        said.append(Said(walk.name_of_transaction(ref), entry, why.strip()))
    return said


def taken_in(walk: Walk, named: Collection[str]) -> list[Said]:
    """What to say of the files that are named likewise and are whole again; ``InvalidOption`` where one is not set aside.

    The error of one that cannot be read, or that refers to what cannot.
    """
    said = []
    for ref, text in sorted({_named(walk, text): text for text in named}.items()):
        _refuse(walk, ref, text)
        if not walk.files.is_aside(*ref):
            raise InvalidOption(f"{text!r} is not set aside.", next_step="See bucketcatalog verify CATALOG for what is.")
        _refuse_bad(walk, ref, text)
        entry = SetAside(ref.writer, ref.head.revision, ref.head.uuid, taken_in=True)
        said.append(Said(walk.name_of_transaction(ref), entry, "It is whole, and counts again."))
    return said


def mended(walk: Walk, findings: Iterable[Finding], said: Collection[Said]) -> set[str]:
    """The files of findings that are none any more once this is said: these files, and of which nothing else says anything wrong."""
    refs = {each.entry.ref for each in said}
    return {each.name for each in said} | {f.file for f in findings if refs and (by := _blamed(walk, f)) and by <= refs}


def _blamed(walk: Walk, finding: Finding) -> set[Ref]:
    """The transactions that refer to something that is gone, or is another than they say."""
    found = paths.parse(finding.file)
    if found is None or found.log_file is None or finding.code not in ("MISSING_TRANSACTION", "BROKEN_CHAIN"):
        return set()
    ref = Ref(found.writer, found.log_file.head)
    of = walk.log.get(ref)
    if of is None:
        return {t.ref for t in walk.log.values() if ref in t.built_on}
    return {
        t.ref
        for t in walk.log.values()
        for link in t.parents
        if Ref(t.writer, link.head) == ref and link.digest not in (b"", of.digest)
    }


def said_before(walk: Walk, said: Iterable[Said]) -> int:
    """The commit time after which this has to be said, so that it counts."""
    known = (walk.files.asides.get(each.entry.ref) for each in said)
    return max((entry.stamp.commit_time for entry in known if entry is not None), default=0)


def _named(walk: Walk, text: str) -> Ref:
    """The transaction of the database that a file's name, or ``writer@revision``, stands for."""
    found = paths.parse(text)
    if found is not None and found.log_file is not None and found.log_file.kind is FileKind.TRANSACTION:
        if found.database == walk.files.database:
            return Ref(found.writer, found.log_file.head)
    elif (place := parse_causal(text)) is not None and (writer := place[0]) is not None:
        revision = place[1]
        listed = walk.found[writer].transactions if writer in walk.found else {}
        known = {head for head in listed if head.revision == revision}
        known |= {ref.head for ref in walk.files.asides if ref.writer == writer and ref.head.revision == revision}
        if len(known) == 1:
            return Ref(writer, *known)
        raise InvalidOption(
            f"{text!r} has {'several commits' if known else 'no commit'}.",
            next_step="Give the name of its file, as errors print it.",
        )
    raise InvalidOption(
        f"{text!r} is not the name of a transaction of the database {walk.files.database!r}.",
        next_step="Give a .txn file, as errors print it, or WRITER@REVISION. Damaged checkpoints are dropped without being asked.",
    )


def _refuse(walk: Walk, ref: Ref, text: str) -> None:
    if is_maintainer(ref.writer):
        raise InvalidOption(
            f"{text!r} is a maintainer's: what it says of the catalog, of which nobody can tell, has nothing that stands in for it.",
            next_step="Restore it from a copy of the store.",
        )
    if walk.rests_in_horizon(ref):
        raise InvalidOption(
            f"{text!r} lies in the horizon's checkpoint, which the database rests on: there it stays what it was.",
            next_step="Nothing is to be done for readers of what came after the horizon.",
        )


def _is_there(walk: Walk, ref: Ref) -> bool:
    return ref.writer in walk.found and ref.head in walk.found[ref.writer].transactions


def _is_followed(walk: Walk, ref: Ref) -> bool:
    """Whether a transaction that is there follows this one on its timeline."""
    return any(t.writer == ref.writer and ref in t.parent_refs for t in walk.log.values() if t.head.revision > ref.head.revision)


def _is_covered(walk: Walk, ref: Ref) -> bool:
    return Covered(walk.files, walk.checkpoints, walk.horizon).holds(*ref)


def _counts(walk: Walk, ref: Ref) -> bool:
    """Whether a transaction that is referred to is not missing: it is there, was set aside, or may have been pruned."""
    return _is_there(walk, ref) or walk.files.is_aside(*ref) or not walk.kept.has(*ref)


def _why_bad(walk: Walk, findings: Iterable[Finding], ref: Ref) -> Iterator[str]:
    """What is wrong with a transaction, as far as somebody is told of it who reads."""
    name = walk.name_of_transaction(ref)
    segments = {paths.segment(writer, walk.files.database, uuid) for (writer, uuid), r in walk.segments.items() if name in r.by}
    yield from (f.message for f in findings if f.severity is Severity.ERROR and f.file in {name, *segments})
    t = walk.log.get(ref)
    if t is None:
        return
    for other in t.built_on:
        if not _counts(walk, other):
            yield f"It refers to {walk.name_of_transaction(other)}, which is gone."
    for link in t.parents:
        parent = walk.log.get(Ref(t.writer, link.head))
        if parent is not None and parent.digest and link.digest and parent.digest != link.digest:
            yield f"It was written after another transaction than {walk.name_of_transaction(parent.ref)}: the digest differs."


def _taken_for(walk: Walk, ref: Ref, also: Collection[Ref]) -> SetAside:
    """What stands in for a transaction: the links that its file tells and that are there, else what its timeline ended in before it."""
    t, time = walk.log.get(ref), ref.head.commit_time
    heads: list[Head] = []
    reads = Cut()
    if t is not None:
        heads = [link.head for link in t.parents if _precedes(link.head, ref.head) and _counts(walk, Ref(ref.writer, link.head))]
        there = [each for each in t.reads.refs() if each.head.commit_time < time and _counts(walk, each)]
        reads = Cut.of(each for each in there if each.writer != ref.writer)
    if not heads and ref.head.revision > 0:
        heads = _ended_in(walk, ref, also)
    parents = tuple(Link(head.revision, head.uuid, b"") for head in sorted(heads))
    return SetAside(ref.writer, ref.head.revision, ref.head.uuid, parents=parents, reads=reads)


def _precedes(head: Head, other: Head) -> bool:
    return head.revision < other.revision and head.commit_time < other.commit_time


def _ended_in(walk: Walk, ref: Ref, also: Collection[Ref]) -> list[Head]:
    """The transactions that the timeline ended in before this one; where nobody can tell, those at the largest revision before it."""
    writer = ref.writer
    listed = set(walk.found[writer].transactions) if writer in walk.found else set()
    listed |= {each.head for each in (*walk.files.asides, *also) if each.writer == writer}
    before = {head for head in listed if _precedes(head, ref.head)}
    try:
        return list(without_ancestors(walk.files, Cut.of((writer, head) for head in before)).of_writer(writer))
    except UNREADABLE:
        last = max((head.revision for head in before), default=-1)
        return [head for head in before if head.revision == last]


def _refuse_bad(walk: Walk, ref: Ref, text: str) -> None:
    """The error of a transaction that is not whole, or ``InvalidOption`` where its links or those to it do not fit."""
    files = walk.files.aware({other: entry for other, entry in walk.files.asides.items() if other != ref})
    t, _ = files.stored_transaction(*ref)
    parents = {other: walk.log[other].digest for other in t.parent_refs if other in walk.log}
    written_after = {
        other.ref: link.digest for other in walk.log.values() for link in other.parents if Ref(other.writer, link.head) == ref
    }
    unread = files.unreadable_segment(t)
    problems = [
        *(f"It refers to {walk.name_of_transaction(other)}, which is gone." for other in t.built_on if not _counts(walk, other)),
        *(
            f"It was written after another {walk.name_of_transaction(Ref(t.writer, link.head))}."
            for link in t.parents
            if parents.get(Ref(t.writer, link.head), b"") not in (b"", link.digest) and link.digest
        ),
        *(
            f"{walk.name_of_transaction(other)} was written after another one."
            for other, d in written_after.items()
            if d not in (b"", t.digest)
        ),
        *(finding.message for finding in walk.check_events(files, t)),
        *([] if unread is None else [unread.message]),
    ]
    if problems:
        raise InvalidOption(f"{text!r} is not whole. {problems[0]}", next_step="Restore what is missing first.")
