"""What transactions say of the catalog itself, and which of it counts: voids, boundaries, tags, versions of applications.

A void counts in every cut that it is in, so what was read before it stays as it was. What it names stays in its timeline and in cuts, where
others follow it; it has no events there, and its commit time binds nobody.

Maintainers who do not see each other may publish data boundaries in any order; whoever deletes goes by one of them, so that whoever names
existing data has to keep out of the reach of all.

What a view knows of a name is a function of the transactions in its cut. A checkpoint holds two entries of a name, which is enough to
tell the same of any union of checkpoints and transactions: the latest one, and the latest that names another cut than this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Protocol

from .. import limits
from ..format.checkpoints import ApplicationResult, Checkpoint
from ..format.records import Boundary, Link, TagEntry, Void
from ..format.transactions import Transaction
from ..model.cuts import Ref
from ..model.names import is_maintainer
from .trust import is_trusted


class Carrier(Protocol):
    """What is asked of a transaction to know what it voids."""

    @property
    def writer(self) -> str: ...

    @property
    def voids(self) -> tuple[Void, ...]: ...


class Entries(Protocol):
    """What entries are read from, such as a view: checkpoints, and the transactions that they do not cover."""

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]: ...

    @property
    def tail(self) -> tuple[Transaction, ...]: ...


def voids_of(transactions: Iterable[Carrier], checkpoints: Iterable[Checkpoint]) -> dict[Ref, Void]:
    """What maintainers among these have voided, sorted; a void counts even where the transaction that carries it is voided itself."""
    found = [void for checkpoint in checkpoints if is_trusted(checkpoint.writer) for void in checkpoint.voids]
    found += [void for t in transactions if is_maintainer(t.writer) for void in t.voids]
    return {void.ref: void for void in sorted(found, key=lambda void: void.ref)}


def overtaken(transactions: Mapping[Ref, Transaction]) -> dict[Ref, Void]:
    """The transactions that a later one of their timeline does not come after, though it had read a maintainer: so they were voided."""
    found: dict[Ref, Void] = {}
    pending = [(t.commit_time, t) for t in transactions.values() if any(map(is_maintainer, t.reads.heads))]
    while pending:
        time, t = pending.pop()
        for link in t.parents:
            void = Void(t.writer, link)
            if void.ref.head.commit_time >= time and void.ref not in found:
                found[void.ref] = void
                parent = transactions.get(void.ref)
                pending += [] if parent is None else [(time, parent)]
    return found


def without_events(transaction: Transaction) -> Transaction:
    """A voided transaction as readers take it: its links, and its definitions of tables, which its writer does not repeat."""
    return replace(transaction, actions=(), blocks=(), segments=(), tags=(), pin=None, application=None, voided=True)


def without_voided(transactions: Iterable[Transaction], voids: Set[Ref] | Mapping[Ref, Void]) -> Iterator[Transaction]:
    """The transactions that are not voided."""
    return (t for t in transactions if t.ref not in voids)


@dataclass(frozen=True, slots=True)
class Boundaries:
    """The newest boundary of the history and the one of data that reaches farthest, which may be one, as far as there are any."""

    history: Boundary | None = None
    data: Boundary | None = None

    @property
    def entries(self) -> tuple[Boundary, ...]:
        """What a checkpoint has to hold of them, each once, by stamp."""
        found = {boundary.stamp: boundary for boundary in (self.history, self.data) if boundary is not None}
        return tuple(found[stamp] for stamp in sorted(found))


def boundaries_of(view: Entries) -> Boundaries:
    """The boundaries that count among those of the view's transactions."""
    carried = [boundary for checkpoint in view.checkpoints for boundary in checkpoint.boundaries]
    return newest_of([*carried, *(t.boundary for t in view.tail if t.boundary is not None)])


def newest_of(boundaries: Iterable[Boundary]) -> Boundaries:
    """Those that count among these."""
    ranked = sorted(boundaries, key=lambda boundary: boundary.stamp, reverse=True)
    return Boundaries(
        history=next((boundary for boundary in ranked if boundary.horizon.heads), None),
        data=max(
            (boundary for boundary in ranked if boundary.data), key=lambda boundary: (boundary.data, boundary.stamp), default=None
        ),
    )


@dataclass(frozen=True, slots=True)
class TagState:
    """The entry of a name that counts, and the latest one before it that names another cut: what it replaced."""

    latest: TagEntry
    replaced: TagEntry | None = None

    @property
    def entries(self) -> tuple[TagEntry, ...]:
        """What a checkpoint has to hold of the name."""
        return (self.latest,) if self.replaced is None else (self.replaced, self.latest)


def tags_of(view: Entries) -> dict[str, TagState]:
    """Every name that was ever given to a cut, dropped ones included, sorted."""
    entries = [entry for checkpoint in view.checkpoints for entry in checkpoint.tags]
    return states_of([*entries, *(entry for transaction in view.tail for entry in transaction.tags)])


def states_of(entries: Iterable[TagEntry]) -> dict[str, TagState]:
    """What these entries say of each name, sorted."""
    by_name: dict[str, list[TagEntry]] = {}
    for entry in entries:
        by_name.setdefault(entry.name, []).append(entry)
    return {name: _state(by_name[name]) for name in sorted(by_name)}


def _state(entries: Collection[TagEntry]) -> TagState:
    """A name that a maintainer has given, or dropped, is the maintainers'."""
    maintained = [entry for entry in entries if is_maintainer(entry.stamp.writer)]
    *earlier, latest = sorted(maintained or entries, key=lambda entry: entry.stamp)
    return TagState(latest, next((entry for entry in reversed(earlier) if entry.cut != latest.cut), None))


def tags_that_hold(tags: Iterable[TagState], now: int, longest: int = limits.PLAIN_PIN_AGE) -> list[TagEntry]:
    """The tags that hold what their cuts need, by name: every one that a maintainer gave, and of each other writer its latest ones.

    These are at most ``PLAIN_PINS`` that it gave within the ``longest`` time before ``now``, in microseconds. A name that holds nothing any
    more can be read while what it names is there.
    """
    given = [tag.latest for tag in tags if not tag.latest.dropped]
    pins = [entry for entry in given if is_maintainer(entry.stamp.writer)]
    by_writer: dict[str, list[TagEntry]] = {}
    for entry in sorted(given, key=lambda entry: entry.stamp, reverse=True):
        if not is_maintainer(entry.stamp.writer) and now - longest <= entry.stamp.commit_time <= now + limits.MAX_CLOCK_SKEW:
            by_writer.setdefault(entry.stamp.writer, []).append(entry)
    pins += [entry for each in by_writer.values() for entry in each[: limits.PLAIN_PINS]]
    return sorted(pins, key=lambda entry: entry.name)


def latest_results(view: Entries) -> dict[tuple[str, str], ApplicationResult]:
    """By writer and application id the result with the largest version in the view."""
    known = [result for checkpoint in view.checkpoints for result in checkpoint.applications]
    return latest_of([*known, *(result for t in view.tail if (result := result_of(t)) is not None)])


def result_of(t: Transaction) -> ApplicationResult | None:
    """What the transaction has committed for an application, if it did for one."""
    if t.application is None:
        return None
    link = Link(t.revision, t.uuid, t.digest)
    return ApplicationResult(t.writer, t.application.id, t.application.version, link, t.commit_time)


def latest_of(results: Iterable[ApplicationResult]) -> dict[tuple[str, str], ApplicationResult]:
    """By writer and application id the one with the largest version."""
    return {(r.writer, r.id): r for r in sorted(results, key=lambda r: (r.version, r.commit_time))}
