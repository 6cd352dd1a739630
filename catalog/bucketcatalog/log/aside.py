"""What is set aside: transactions that count as ones without events, whatever their files hold (docs/spec/aside.md).

A maintainer says it, and says what such a transaction is taken for: its parents, and what it had read, as far as that was known. It is
decided before the file is decoded, which may be anything, and in every cut that the transaction is in: unlike a void it mends what cannot
be read, past states too. So it is known from a look at what is there now, whatever cut is read.

Of one transaction the entry counts that has the latest stamp. What the horizon's checkpoint covers is as that says: it rests on it, and
what came later cannot change it any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from .. import limits
from ..format.checkpoints import Checkpoint
from ..format.records import SetAside
from ..format.transactions import Transaction
from ..model.cuts import Ref
from ..model.names import is_maintainer
from .trust import is_trusted

Asides = Mapping[Ref, SetAside]
"""Of each transaction that was ever set aside the entry that counts, sorted."""


def stand_in(entry: SetAside, database: str) -> Transaction:
    """What a transaction is taken for that was set aside: its links alone, without digests."""
    return Transaction(
        writer=entry.writer,
        database=database,
        revision=entry.revision,
        uuid=entry.uuid,
        commit_time=entry.head.commit_time,
        lateness_bound=limits.LATENESS_BOUND,
        parents=entry.parents,
        reads=entry.reads,
        set_aside=True,
    )


def entries_of(transactions: Iterable[Transaction], checkpoints: Iterable[Checkpoint]) -> Iterator[SetAside]:
    """What maintainers among these say, and what checkpoints carry on of it that anybody believes."""
    for checkpoint in checkpoints:
        yield from checkpoint.asides if is_trusted(checkpoint.writer) else ()
    for transaction in transactions:
        yield from transaction.asides if is_maintainer(transaction.writer) else ()


def counting(entries: Iterable[SetAside]) -> dict[Ref, SetAside]:
    """The latest entry of each transaction. Maintainers' own count as they are: what they say of the catalog has no stand-in."""
    found = {entry.ref: entry for entry in sorted(entries, key=lambda entry: entry.stamp) if not is_maintainer(entry.writer)}
    return {ref: found[ref] for ref in sorted(found)}


def set_aside(asides: Iterable[SetAside]) -> set[Ref]:
    """The transactions that are set aside."""
    return {entry.ref for entry in asides if not entry.taken_in}


def carried_by(writer: str, asides: Asides) -> tuple[SetAside, ...]:
    """What a checkpoint of the writer has to hold: everything, or of a plain writer what is about its own timeline."""
    return tuple(entry for ref, entry in asides.items() if is_trusted(writer) or ref.writer == writer)
