"""Which definitions of tables had been read, and by when: what keeps one that is dated back from coming before them.

A stamp is its writer's word. But what a compactor or a maintainer had read when it wrote a checkpoint of everybody it says in the log, in
the transaction beside that, and it says of each definition so once. Of what nobody had read by then nobody believes that it came before.

What counts of it is a function of the transactions in a cut and of what is set aside, as everything else is. A checkpoint holds of each
definition, and of each transaction that was named with it, what was said first, which is enough to tell the same of any union of
checkpoints and transactions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from ..format.authority import Definitions, digest_of_definition
from ..format.checkpoints import Checkpoint
from ..format.definitions import core_tables
from ..format.records import Witness
from ..model.cuts import Stamp
from .aside import Asides, set_aside
from .entries import Entries


class Defining(Entries, Protocol):
    """What tables are read from, such as a view: checkpoints, the transactions that they do not cover, and what is set aside."""

    @property
    def asides(self) -> Asides: ...


def witnessed_in(view: Entries) -> tuple[Witness, ...]:
    """What the view's transactions say of definitions, as far as a checkpoint has to hold it."""
    carried = [witness for checkpoint in view.checkpoints for witness in checkpoint.witnessed]
    return first_of([*carried, *(witness for transaction in view.tail for witness in transaction.witnessed)])


def first_of(witnesses: Iterable[Witness]) -> tuple[Witness, ...]:
    """Of each definition and transaction that carries it the first of these, in the order of their stamps."""
    found: dict[tuple[str, bytes, object], Witness] = {}
    for witness in sorted(witnesses, key=lambda witness: (witness.stamp, witness.defined_by, witness.table, witness.digest)):
        found.setdefault((witness.table, witness.digest, witness.of), witness)
    return tuple(found.values())


def counting(witnesses: Iterable[Witness], asides: Asides) -> tuple[Witness, ...]:
    """Those of them that count: a transaction that is set aside defines nothing, also where its writer defines the same again."""
    without = set_aside(asides.values())
    return tuple(witness for witness in witnesses if witness.of not in without)


def definitions_of(view: Defining) -> Definitions:
    """The core's tables and those that the view's transactions define."""
    given = [definition for checkpoint in view.checkpoints for definition in checkpoint.definitions]
    given += [definition for transaction in view.tail for definition in transaction.definitions]
    return Definitions(core_tables().values(), given, witnessed=counting(witnessed_in(view), view.asides))


def definitions_within(checkpoint: Checkpoint) -> Definitions:
    """The same of what a checkpoint covers, as its maker knew it."""
    asides = {entry.ref: entry for entry in checkpoint.asides}
    return Definitions(core_tables().values(), checkpoint.definitions, witnessed=counting(checkpoint.witnessed, asides))


def unwitnessed(definitions: Definitions, newest: int) -> tuple[Witness, ...]:
    """What is to be said by who has read these definitions, and comes after the commit time ``newest``: what nobody has said.

    Nothing of a table of which something was said at a later time, by a transaction that was voided: this would come before it.
    """
    said: dict[str, set[bytes]] = {}
    ahead = set()
    for witness in definitions.witnessed:
        said.setdefault(witness.table, set()).add(witness.digest)
        ahead |= {witness.table} if witness.stamp.commit_time > newest else set()
    found: dict[tuple[str, bytes], Witness] = {}
    for definition in sorted(definitions.stamped, key=lambda definition: definition.first):
        name, shape = definition.table.name, definition.table.definition
        if name in ahead or definitions.is_of_release(definition.table):
            continue
        digest = digest_of_definition(shape)
        if digest not in said.get(name, ()):
            found.setdefault((name, digest), Witness(name, digest, Stamp(*definition.first)))
    return tuple(sorted(found.values(), key=lambda witness: (witness.defined_by, witness.table, witness.digest)))
