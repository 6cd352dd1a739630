"""Which files can be set aside, or taken in again, and what is said of them; decided from a walk over the database.

A file is set aside that keeps others from reading: one that is no transaction, or that refers to what is not there. What it followed and
had read is kept where its file tells that, as far as it is there; else it follows all that its timeline ended in before it.

It is named, or its writer is: then all are set aside that are bad, in the order of their places, so that what refers to one of them alone
stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .. import limits
from ..errors import InvalidOption
from ..format.records import Link, SetAside
from ..format.transactions import Transaction
from ..model import paths
from ..model.cuts import Cut, Head, Ref
from ..model.names import is_maintainer
from ..model.paths import FileKind
from ..model.times import parse_causal
from ..wording import either, how_to_verify
from .evidence import Ends, Evidence, precedes
from .verify.findings import Finding


@dataclass(frozen=True, slots=True)
class Said:
    """What is to be said of one file: its name, the entry, and why."""

    name: str
    entry: SetAside
    why: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A bad file of a writer that cannot be set aside: its name, what is wrong with it, and what stands against it."""

    name: str
    why: str
    obstacle: str


def set_aside(evidence: Evidence, named: Collection[str], *, force: bool) -> tuple[list[Said], list[Refused]]:
    """What to say of the files that are named by their names, as ``writer@revision``, or all at once by their writer's name.

    In order of their places. ``InvalidOption`` where one that is named itself is no transaction's, is a maintainer's, rests in the horizon,
    is set aside already, or, unless forced, is not bad; and where a writer has none that is bad.
    """
    writers = {text for text in named if text in evidence.walk.found}
    asked = {_named(evidence, text): text for text in named if text not in writers}
    timelines = {ref for writer in writers for ref in evidence.of_timeline(writer)}
    taken = _Taken(evidence, asked)
    said: list[Said] = []
    refused: list[Refused] = []
    for ref in sorted(asked.keys() | timelines):
        name = evidence.walk.name_of_transaction(ref)
        try:
            if ref in asked:
                said.append(taken.decided(ref, asked[ref], next(evidence.why_bad(ref), ""), force=force))
            elif not evidence.walk.files.is_aside(*ref) and (why := next(evidence.why_bad(ref, taken.entries, itself=True), "")):
                said.append(taken.decided(ref, name, why, force=force))
        except InvalidOption as error:
            if ref in asked:
                raise
            refused.append(Refused(name, why, f"{error.message} {error.next_step}"))
    for writer in sorted(writers - {ref.writer for ref in taken.entries} - {paths.writer_of(each.name) for each in refused}):
        raise InvalidOption(f"Nothing of the writer {writer!r} is bad.", next_step="There is nothing left to do.")
    return said, refused


class _Taken:
    """What is set aside so far, each after what lies before it on its timeline; ``asked`` are those that may be named and gone."""

    def __init__(self, evidence: Evidence, asked: Iterable[Ref]) -> None:
        self.entries: dict[Ref, SetAside] = {}
        self._evidence = evidence
        self._asked = set(asked)
        self._ends: dict[str, Ends] = {}

    def decided(self, ref: Ref, text: str, why: str, *, force: bool) -> Said:
        """What to say of a transaction, which a user knows by this ``text``; ``InvalidOption`` where nothing is to be said."""
        evidence = self._evidence
        _refuse(evidence, ref, text)
        if evidence.walk.files.is_aside(*ref):
            raise InvalidOption(f"{text!r} is set aside already.", next_step="There is nothing left to do.")
        if not evidence.is_there(ref) and not evidence.is_followed(ref):
            raise InvalidOption(
                f"{text!r} is gone, and nothing on its timeline follows it: its writer would give the revision again.",
                next_step="Restore it from a copy of the store, or set aside what had read it.",
            )
        if not why and not force:
            raise InvalidOption(
                f"{text!r} can be read, and so can what it refers to.",
                next_step=f"Give {either('force=True', '--force')} where it is to be set aside all the same; "
                "its rows can be ended by deletes, too.",
            )
        entry = self._stand_in(ref)
        before = Head(ref.head.revision - 1, b"")
        is_gap = all(link.revision < before.revision for link in entry.parents) and evidence.walk.kept.has(ref.writer, before)
        if evidence.is_there(ref) and evidence.at(ref.writer, before.revision):  # whose time may be no earlier than its own
            is_gap = False
        if ref.head.revision > 0 and is_gap and not force:
            raise InvalidOption(
                f"{text!r} follows something at revision {before.revision}, which is gone, and of which nothing tells what it was called.",
                next_step=f"Restore that from a copy of the store, or give {either('force=True', '--force')} to go on without both.",
            )
        if evidence.is_covered(ref):
            why = f"{why} Checkpoints have its rows, and are not used any more."
        self.entries[ref] = entry
        return Said(evidence.walk.name_of_transaction(ref), entry, why.strip())

    def _stand_in(self, ref: Ref) -> SetAside:
        """What stands in for a transaction: the links that its file tells and that are there, else what its timeline ended in before it."""
        t, time, counts = self._evidence.walk.log.get(ref), ref.head.commit_time, self._evidence.counts
        heads: list[Head] = []
        reads = Cut()
        if t is not None:
            heads = [link.head for link in t.parents if precedes(link.head, ref.head)]
            heads = [head for head in heads if counts(Ref(ref.writer, head), self.entries)]
            there = [each for each in t.reads.refs() if each.head.commit_time < time and counts(each, self.entries)]
            reads = Cut.of(each for each in there if each.writer != ref.writer)
        if not heads and ref.head.revision > 0:
            heads = self._before(ref)[-limits.FOLLOWED :]  # the others stay ends
        parents = tuple(Link(head.revision, head.uuid, b"") for head in sorted(heads))
        return SetAside(ref.writer, ref.head.revision, ref.head.uuid, parents=parents, reads=reads)

    def _before(self, ref: Ref) -> list[Head]:
        """What the timeline of a transaction ended in before it."""
        walk, writer = self._evidence.walk, ref.writer

        def follows(head: Head) -> Collection[Head] | None:
            at = Ref(writer, head)
            t = self.entries.get(at) or walk.log.get(at) or walk.files.asides.get(at)
            return None if t is None else [link.head for link in t.parents]

        def is_known(head: Head) -> bool:
            at = Ref(writer, head)
            return self._evidence.is_there(at) or at in walk.files.asides or at in self.entries

        if writer not in self._ends:
            listed = set(walk.found[writer].transactions) if writer in walk.found else set()
            named = {each.head for each in (*walk.files.asides, *self._asked) if each.writer == writer}
            self._ends[writer] = Ends(listed | named, follows, is_known)
        return self._ends[writer].before(ref.head)


def taken_in(evidence: Evidence, named: Collection[str]) -> list[Said]:
    """What to say of the files that are named and are whole again; ``InvalidOption`` where one is not set aside.

    The error of one that cannot be read, or that refers to what cannot.
    """
    walk = evidence.walk
    asked = {_named(evidence, text): text for text in named}
    for ref, text in sorted(asked.items()):
        _refuse(evidence, ref, text)
        if not walk.files.is_aside(*ref):
            raise InvalidOption(f"{text!r} is not set aside.", next_step=f"See {how_to_verify()} for what is.")
    files = walk.files.aware({ref: entry for ref, entry in walk.files.asides.items() if ref not in asked})
    read = [files.stored_transaction(*ref)[0] for ref in sorted(asked)]
    digests = {t.ref: t.digest for t in read}
    for t, events in zip(read, evidence.of_events(files, read), strict=True):
        unread = files.unreadable_segment(t)
        problems = [*_wrong_links(evidence, t, digests), *(finding.message for finding in events)]
        problems += [] if unread is None else [unread.message]
        if problems:
            raise InvalidOption(f"{asked[t.ref]!r} is not whole. {problems[0]}", next_step="Restore what is missing first.")
    return [
        Said(
            walk.name_of_transaction(ref),
            SetAside(ref.writer, ref.head.revision, ref.head.uuid, taken_in=True),
            "It is whole, and counts again.",
        )
        for ref in sorted(asked)
    ]


def _wrong_links(evidence: Evidence, t: Transaction, digests: dict[Ref, bytes]) -> Iterator[str]:
    """What does not fit of the links of a transaction, or of those to it; ``digests`` are of those that are taken in with it."""
    walk = evidence.walk
    for other in t.built_on:
        if not evidence.counts(other):
            yield f"It refers to {walk.name_of_transaction(other)}, which is gone."
    for link in t.parents:
        ref = Ref(t.writer, link.head)
        known = digests.get(ref) or (walk.log[ref].digest if ref in walk.log else b"")
        if known and link.digest and known != link.digest:
            yield f"It was written after another {walk.name_of_transaction(ref)}."
    for follower, digest in evidence.followers.get(t.ref, ()):
        if digest not in (b"", t.digest):
            yield f"{walk.name_of_transaction(follower.ref)} was written after another one."


def mended(evidence: Evidence, findings: Iterable[Finding], said: Collection[Said]) -> set[str]:
    """The files of findings that are none any more once this is said: these files, and of which nothing else says anything wrong."""
    refs = {each.entry.ref for each in said}
    return {each.name for each in said} | {f.file for f in findings if refs and (by := evidence.blamed(f)) and by <= refs}


def said_before(evidence: Evidence, said: Sequence[Said]) -> int:
    """The commit time after which this has to be said, so that it counts."""
    known = (evidence.walk.files.asides.get(each.entry.ref) for each in said)
    return max((entry.stamp.commit_time for entry in known if entry is not None), default=0)


def _named(evidence: Evidence, text: str) -> Ref:
    """The transaction of the database that a file's name, or ``writer@revision``, stands for."""
    database = evidence.walk.files.database
    found = paths.parse(text)
    if found is not None and found.log_file is not None and found.log_file.kind is FileKind.TRANSACTION:
        if found.database == database:
            return Ref(found.writer, found.log_file.head)
    elif (place := parse_causal(text)) is not None and (writer := place[0]) is not None:
        known = evidence.at(writer, place[1])
        if len(known) == 1:
            return Ref(writer, *known)
        raise InvalidOption(
            f"{text!r} has {'several commits' if known else 'no commit'}.",
            next_step="Give the name of its file, as errors print it.",
        )
    raise InvalidOption(
        f"{text!r} is not the name of a transaction of the database {database!r}, nor of a writer.",
        next_step="Give a .txn file, as errors print it, WRITER@REVISION, or WRITER for all that is bad of it. Damaged checkpoints are "
        "dropped without being asked.",
    )


def _refuse(evidence: Evidence, ref: Ref, text: str) -> None:
    if is_maintainer(ref.writer):
        raise InvalidOption(
            f"{text!r} is a maintainer's: what it says of the catalog, of which nobody can tell, has nothing that stands in for it.",
            next_step="Restore it from a copy of the store.",
        )
    if evidence.walk.rests_in_horizon(ref):
        raise InvalidOption(
            f"{text!r} lies in the horizon's checkpoint, which the database rests on: there it stays what it was.",
            next_step="Nothing is to be done for readers of what came after the horizon.",
        )
