"""Voided transactions: those that a maintainer has said, in a transaction of its own, every reader treats as absent.

A void counts in every cut that it is in, so what was read before it stays as it was. What it names stays in its timeline and in cuts, where
others follow it; it has no events there, and its commit time binds nobody.

So is a transaction that could not be read, where a later one of its own timeline has accepted the loss: that says what it counts as
following, and it counts as that and no more, whatever is put back in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Protocol

from ..codec.checkpoints import Checkpoint
from ..codec.transactions import Transaction, Void
from ..cut import Head
from ..names import MAINTAINER_PREFIX

Ref = tuple[str, Head]


class Carrier(Protocol):
    """What is asked of a transaction to know what it voids."""

    @property
    def writer(self) -> str: ...

    @property
    def voids(self) -> tuple[Void, ...]: ...

    @property
    def losses(self) -> tuple[Void, ...]: ...


def voids_of(transactions: Iterable[Carrier], checkpoints: Iterable[Checkpoint]) -> dict[Ref, Void]:
    """What maintainers among these have voided, and what these have lost of their own timelines, sorted.

    A void counts even where the transaction that carries it is voided itself.
    """
    found = [void for checkpoint in checkpoints for void in checkpoint.voids]
    for t in transactions:
        found += t.voids if t.writer.startswith(MAINTAINER_PREFIX) else ()
        found += [loss for loss in t.losses if loss.writer == t.writer]
    return {
        void.ref: void for void in sorted(found, key=lambda void: (void.writer, void.link.revision, void.link.uuid, void.is_loss))
    }


def outrun(transactions: Mapping[Ref, Transaction]) -> dict[Ref, Void]:
    """The transactions that a follower does not come after, though it had read a maintainer: so it knew that they are voided."""
    found: dict[Ref, Void] = {}
    pending = [(t.commit_time, t) for t in transactions.values() if any(w.startswith(MAINTAINER_PREFIX) for w in t.reads.heads)]
    while pending:
        time, t = pending.pop()
        for link in t.parents:
            void = Void(t.writer, link)
            if void.ref[1].commit_time >= time and void.ref not in found:
                found[void.ref] = void
                parent = transactions.get(void.ref)
                pending += [] if parent is None else [(time, parent)]
    return found


def stand_in(loss: Void, database: str) -> Transaction:
    """What counts in the place of a transaction whose loss was accepted."""
    return Transaction(
        writer=loss.writer,
        database=database,
        revision=loss.link.revision,
        uuid=loss.link.uuid,
        commit_time=loss.ref[1].commit_time,
        lateness_bound=0,
        parents=loss.follows or (),
        digest=loss.link.digest,
        lost=True,
        accepted=True,
        voided=True,
    )


def emptied(transaction: Transaction, void: Void) -> Transaction:
    """A voided transaction as readers take it: its links, and its definitions of tables, which its writer does not repeat."""
    if void.is_loss:
        return stand_in(void, transaction.database)
    return replace(transaction, actions=(), blocks=(), segments=(), tags=(), application=None, voided=True)


def without_voided(transactions: Iterable[Transaction], voids: Set[Ref] | Mapping[Ref, Void]) -> Iterator[Transaction]:
    """The transactions that are not voided."""
    return (t for t in transactions if (t.writer, t.head) not in voids)
