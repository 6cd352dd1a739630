"""What was there, worked out of what files and markers say of a data table: a function of values.

A file that somebody added was there, unless a marker says that it was removed, or a compacted file has its rows. A compacted file was
there, unless the rows that it has left are all in ones that were made later. What the catalog names already stays as it names it: a
compaction of files of which it knows never committed, and a file of a write that has committed with one like it is an attempt that lost.

Whether a file was ever committed no file says: ``PERHAPS_UNCOMMITTED``, ``PERHAPS_NOT_DELETED`` and ``SEVERAL_ATTEMPTS`` are said of those
of which it matters.
Source: persistence document, sections 1.3 ("Rebuildability", "Eventual Preservation") and 2.6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ...store.base import ObjectInfo
from .findings import Finding
from .footers import Marker, Stored

Attempt = tuple[str, str, int, str]
"""What attempts of one write have in common: write, partition, rows and schema."""


@dataclass(frozen=True)
class Known:
    """What the catalog names of a data table, live or ended: the chunks of its files, what they were made of, and what was deleted, by id.

    ``removals`` has the chunks of each deletion that says that files were removed.
    """

    chunks: frozenset[str] = frozenset()
    claimed: frozenset[str] = frozenset()
    removals: Mapping[str, Sequence[str]] = field(default_factory=dict)
    predicates: frozenset[str] = frozenset()
    attempts: frozenset[Attempt] = frozenset()
    key_columns: tuple[str, ...] | None = None

    @cached_property
    def named(self) -> frozenset[str]:
        """Every chunk of which it knows anything."""
        return self.chunks | self.claimed


NOTHING = Known()


@dataclass(frozen=True)
class Recovered:
    """What of a data table is taken in: files that count, files that have ended, what was deleted; and what is said of files."""

    table: str
    taken: Sequence[Stored] = field(repr=False)
    ended: Sequence[Stored] = field(repr=False)
    markers: Sequence[Marker] = field(repr=False)
    findings: Sequence[Finding] = field(repr=False)


def recovered(
    table: str, files: Sequence[Stored], markers: Sequence[Marker], known: Known | None, is_young: Callable[[ObjectInfo], bool]
) -> Recovered:
    """What was there of a table, given its whole files and markers that the catalog does not name.

    ``known`` is None where there is no catalog at all: then nothing is left alone for being young.
    """
    findings: list[Finding] = []
    there = known or NOTHING
    ripe = _Ripe(findings, is_young if known is not None else lambda _: False)
    young = {each.about.write for each in files if ripe.is_young(each.info)}
    sound = [each for each in _one_of_each(files, there, findings) if ripe.has(each.info, among=each.about.write in young)]
    told = [each for each in markers if each.predicate.id not in there.predicates and ripe.has(each.info)]
    sound = [each for each in sound if not _is_undone(each, there, findings) and not _has_lost(each, there, findings)]
    # What may be under way removes what nobody has taken in yet, as well: it would come back else.
    removals = {each.predicate.id: each.predicate.chunks for each in markers if each.predicate.is_removal}
    left, ended = _divided(sound, there, _Removed({**there.removals, **removals}), findings)
    taken = list(_of_one_key(left, there, findings))
    concerned = there.named.union(*(each.claims for each in sound), (each.about.chunk for each in sound))
    about = [each for each in told if not concerned.isdisjoint(each.predicate.chunks)]
    if known is None:
        findings += _young(taken, about, is_young)
    else:
        about = _deleting(about, there, findings)
        findings += [Finding("PERHAPS_UNCOMMITTED", each.info.name, _NEVER_NAMED) for each in taken]
        findings += [Finding("PERHAPS_NOT_DELETED", each.info.name, _NEVER_NAMED) for each in about]
    findings += _alike(taken)
    return Recovered(table, taken, ended, about, findings)


_NEVER_NAMED = "No commit names it: its writer has died before it could, or what had named it is lost."


def _deleting(markers: Iterable[Marker], known: Known, findings: list[Finding]) -> list[Marker]:
    """The markers without those that say of files which the catalog names that they were removed, for a restore says so too, of its own."""
    kept = []
    for each in markers:
        if each.predicate.is_removal and not known.named.isdisjoint(each.predicate.chunks):
            findings.append(
                Finding("PERHAPS_REMOVED", each.info.name, f"{_NEVER_NAMED} It says that files were removed that are there.")
            )
        else:
            kept.append(each)
    return kept


@dataclass(frozen=True)
class _Ripe:
    """Who is old enough for no commit to name it any more; what is not, is said to be under way."""

    findings: list[Finding]
    is_young: Callable[[ObjectInfo], bool]

    def has(self, info: ObjectInfo, *, among: bool = False) -> bool:
        """Whether it is; what is written ``among`` what is young is as young."""
        if among or self.is_young(info):
            self.findings.append(Finding("UNDER_WAY", info.name, "It is so young that a commit may name it yet."))
            return False
        return True


def _one_of_each(files: Iterable[Stored], known: Known, findings: list[Finding]) -> Iterator[Stored]:
    """The files, of those that say that they are one chunk the oldest."""
    first: dict[str, str] = {}
    for each in sorted(files, key=lambda each: (each.info.modified_us, each.info.name)):
        chunk = each.about.chunk
        if chunk in known.chunks or chunk in first:
            other = first.get(chunk, "a file that the catalog names")
            findings.append(Finding("CHUNK_TAKEN", each.info.name, f"It has the chunk of {other}."))
            continue
        first[chunk] = each.info.name
        yield each


def _of_one_key(files: Iterable[Stored], known: Known, findings: list[Finding]) -> Iterator[Stored]:
    """The files with the table's key, which the one that was added first says where the catalog does not."""
    key = known.key_columns
    for each in sorted(files, key=_age):
        if key is None:
            key = each.about.key_columns
        if each.about.key_columns == key:
            yield each
        else:
            said = ", ".join(each.about.key_columns) or "none"
            findings.append(
                Finding(
                    "KEY_CONFLICT",
                    each.info.name,
                    f"It says that the table's key is {said}, and it is {', '.join(key) or 'none'}.",
                )
            )


def _is_undone(file: Stored, known: Known, findings: list[Finding]) -> bool:
    """Whether it was made of files that the catalog names, and not committed with their end."""
    if not file.is_compacted or known.named.isdisjoint(file.claims):
        return False
    findings.append(Finding("UNDONE_COMPACTION", file.info.name, "The catalog names files that it was made of, and not it."))
    return True


def _has_lost(file: Stored, known: Known, findings: list[Finding]) -> bool:
    """Whether its write was committed with another file like it."""
    if file.is_compacted or _attempt(file) not in known.attempts:
        return False
    findings.append(
        Finding("SEVERAL_ATTEMPTS", file.info.name, "Its write was committed without it, and with a file of as many rows.")
    )
    return True


def _attempt(file: Stored) -> Attempt:
    return file.about.write, file.about.partition, file.row["rows"], file.row["schema"]


class _Removed:
    """Which rows of a file do not count since files were removed: those that it has of these, unless it was made in knowledge of that."""

    def __init__(self, removals: Mapping[str, Iterable[str]]) -> None:
        self._by: dict[str, set[str]] = {}
        for id_, chunks in removals.items():
            for chunk in chunks:
                self._by.setdefault(chunk, set()).add(id_)

    def by(self, file: Stored, chunk: str) -> set[str]:
        """The ids of the removals that say so of rows that were added in a chunk; none while they count."""
        return self._by.get(chunk, set()).difference(file.about.applied)


def _divided(
    files: Sequence[Stored], known: Known, removed: _Removed, findings: list[Finding]
) -> tuple[list[Stored], list[Stored]]:
    """Which files count, and which have ended; the latest compaction first, which has the rows of earlier ones."""
    taken, ended = list[Stored](), list[Stored]()
    covered = dict.fromkeys(known.claimed, "a file that the catalog names")
    newest_first = sorted(files, key=_age, reverse=True)
    for each in sorted(newest_first, key=lambda each: not each.is_compacted):
        left = [chunk for chunk in each.claims if not removed.by(each, chunk)]
        by = removed.by(each, each.about.chunk) or (removed.by(each, each.claims[0]) if not left else set())
        if by:
            findings.append(Finding("REMOVED", each.info.name, f"The deletion {min(by)} says that it was removed."))
            ended.append(each)
        elif all(chunk in covered for chunk in left):
            findings.append(Finding("REPLACED", each.info.name, f"Its rows are in {covered[left[0]]}."))
            ended.append(each)
        else:
            taken.append(each)
            if each.is_compacted:
                covered |= dict.fromkeys(each.claims, each.info.name)
    return sorted(taken, key=_age), sorted(ended, key=_age)


def _age(file: Stored) -> tuple[int, str]:
    return file.added, file.about.chunk


def _young(files: Iterable[Stored], markers: Sequence[Marker], is_young: Callable[[ObjectInfo], bool]) -> Iterator[Finding]:
    """What was written so lately that it may not have been committed, of what nothing else names."""
    named = frozenset[str]().union(*(each.predicate.chunks for each in markers))
    why = "It is so young that what nobody has committed would not have been collected yet."
    for each in files:
        if not each.is_compacted and each.about.chunk not in named and is_young(each.info):
            yield Finding("PERHAPS_UNCOMMITTED", each.info.name, why)
    yield from (Finding("PERHAPS_NOT_DELETED", each.info.name, why) for each in markers if is_young(each.info))


def _alike(files: Iterable[Stored]) -> Iterator[Finding]:
    """Files of one write and partition with as many rows and the same statistics: the same rows twice, or not."""
    groups: dict[Attempt, list[Stored]] = {}
    for each in files:
        if not each.is_compacted:
            groups.setdefault(_attempt(each), []).append(each)
    for group in groups.values():
        first: dict[str, str] = {}
        for each in group if len(group) > 1 else ():
            said = str(each.statistics.drop_columns(["chunk"]).to_pylist())
            if said in first:
                yield Finding(
                    "SEVERAL_ATTEMPTS",
                    each.info.name,
                    f"Write, rows and statistics are those of {first[said]}.",
                )
            first.setdefault(said, each.info.name)
