"""Voided transactions: those that a maintainer has said, in a transaction of its own, every reader treats as absent.

A void counts in every cut that it is in, so what was read before it stays as it was. What it names stays in its timeline and in cuts, where
others follow it; it has no events there, and its commit time binds nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Protocol

from ..format.checkpoints import Checkpoint
from ..format.transactions import Transaction, Void
from ..model.cuts import Head
from ..model.names import MAINTAINER_PREFIX

Ref = tuple[str, Head]


class Carrier(Protocol):
    """What is asked of a transaction to know what it voids."""

    @property
    def writer(self) -> str: ...

    @property
    def voids(self) -> tuple[Void, ...]: ...


def voids_of(transactions: Iterable[Carrier], checkpoints: Iterable[Checkpoint]) -> dict[Ref, Void]:
    """What maintainers among these have voided, sorted; a void counts even where the transaction that carries it is voided itself."""
    found = [void for checkpoint in checkpoints for void in checkpoint.voids]
    found += [void for t in transactions if t.writer.startswith(MAINTAINER_PREFIX) for void in t.voids]
    return {void.ref: void for void in sorted(found, key=lambda void: (void.writer, void.link.revision, void.link.uuid))}


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


def emptied(transaction: Transaction) -> Transaction:
    """A voided transaction as readers take it: its links, and its definitions of tables, which its writer does not repeat."""
    return replace(transaction, actions=(), blocks=(), segments=(), tags=(), application=None, voided=True)


def without_voided(transactions: Iterable[Transaction], voids: Set[Ref] | Mapping[Ref, Void]) -> Iterator[Transaction]:
    """The transactions that are not voided."""
    return (t for t in transactions if (t.writer, t.head) not in voids)
