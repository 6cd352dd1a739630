"""Which transactions count: what they follow and have read, cuts as text, what checkpoints cover, what is voided and what is set aside.

See spec/cuts.md, spec/checkpoints.md ("Coverage"), spec/voids.md and spec/aside.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Ref = tuple[str, int, bytes]
"""Names a transaction or a checkpoint: writer, revision, uuid."""


def refs_of(writers: Iterable[Any]) -> list[Ref]:
    """The heads that a cut, or what was read, names of each writer."""
    return [(writer.writer, head.revision, head.uuid) for writer in writers for head in writer.heads]


def parents_of(transaction: Any) -> list[Ref]:
    """The transactions of its own timeline that a transaction follows."""
    return [(transaction.writer, link.revision, link.uuid) for link in transaction.parents]


def reads_of(transaction: Any) -> list[Ref]:
    """The parents of a transaction, and what it had read of others."""
    return parents_of(transaction) + refs_of(transaction.reads)


def heads_of(transactions: dict[Ref, Any]) -> list[Ref]:
    """The transactions that no other follows."""
    return sorted(transactions.keys() - {ref for transaction in transactions.values() for ref in parents_of(transaction)})


def cut_text(heads: Iterable[Ref]) -> str:
    """Heads as text."""
    ordered = sorted(heads, key=lambda head: (head[0].encode(), *head[1:]))
    return ",".join(f"{writer}@{revision}:{uuid.hex()}" for writer, revision, uuid in ordered) or ":"


def heads_named(text: str, known: Iterable[Ref]) -> Iterator[Ref]:
    """The heads that a cut as text names, or ``writer@N``."""
    for part in () if text == ":" else text.split(","):
        writer, _, place = part.rpartition("@")
        revision, _, uuid = place.partition(":")
        if uuid:
            yield writer, int(revision), bytes.fromhex(uuid)
        else:
            (one,) = (ref for ref in known if ref[:2] == (writer, int(revision)))
            yield one


def covers(checkpoint: Any, ref: Ref, transactions: dict[Ref, Any]) -> bool:
    """Whether the checkpoint covers a transaction."""
    writer, revision, uuid = ref
    heads = refs_of(checkpoint.cut.writers)
    coverage = next((entry for entry in checkpoint.coverage if entry.writer == writer), None)
    if coverage is None or revision > max((head[1] for head in heads if head[0] == writer), default=-1):
        return False
    if ref in heads or any((head.revision, head.uuid) == (revision, uuid) for head in (*coverage.recent, *coverage.branches)):
        return True
    if not coverage.first_revision <= revision < coverage.list_from or any(h.revision == revision for h in coverage.branches):
        return False
    if sum(other[:2] == (writer, revision) for other in transactions) == 1:
        return True
    children = [other for other, t in transactions.items() if other[:2] == (writer, revision + 1) and ref in parents_of(t)]
    return any(covers(checkpoint, child, transactions) for child in children)


def known_voids(files: Iterable[Any]) -> set[Ref]:
    """What files say that is voided."""
    return {(link.writer, link.revision, link.uuid) for file in files for link in file.voids}


def entries_of_asides(transactions: Iterable[Any], checkpoints: Iterable[Any]) -> dict[Ref, Any]:
    """Of each transaction that was ever set aside the entry that counts: the latest that a maintainer says or a checkpoint carries on."""
    said = []
    for t in transactions:
        if t.writer.startswith("maintainer-"):
            said += [((t.commit_time, t.writer, t.revision, t.uuid), entry) for entry in t.asides]
    for checkpoint in checkpoints:
        if checkpoint.writer.startswith(("maintainer-", "compactor-")):
            by = [(entry.carried_by, entry) for entry in checkpoint.asides if entry.carried_by.writer.startswith("maintainer-")]
            said += [((stamp.commit_time, stamp.writer, stamp.revision, stamp.uuid), entry) for stamp, entry in by]
    ordered = sorted(said, key=lambda each: each[0])
    return {
        (entry.writer, entry.revision, entry.uuid): entry for _, entry in ordered if not entry.writer.startswith("maintainer-")
    }


def set_aside(entries: Iterable[Any]) -> set[Ref]:
    """The transactions that entries say to be set aside."""
    return {(entry.writer, entry.revision, entry.uuid) for entry in entries if not entry.taken_in}
