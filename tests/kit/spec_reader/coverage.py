"""Which transactions a checkpoint covers (spec/checkpoints.md, "Coverage")."""

from __future__ import annotations

from typing import Any

from .cuts import Ref


def covers(checkpoint: Any, ref: Ref, transactions: dict[Ref, Any]) -> bool:
    """Whether the checkpoint covers a transaction."""
    writer, revision, uuid = ref
    heads = {(w.writer, head.revision, head.uuid) for w in checkpoint.cut.writers for head in w.heads}
    newest = max((head[1] for head in heads if head[0] == writer), default=-1)
    coverage = next((entry for entry in checkpoint.coverage if entry.writer == writer), None)
    if coverage is None or revision > newest:
        return False
    said = {(head.revision, head.uuid) for head in (*coverage.recent, *coverage.branches)}
    if (revision, uuid) in said or ref in heads:
        return True
    if revision >= coverage.list_from or any(head.revision == revision for head in coverage.branches):
        return False
    if sum(1 for other in transactions if other[:2] == (writer, revision)) == 1:
        return True
    children = [
        t for other, t in transactions.items() if other[:2] == (writer, revision + 1) and covers(checkpoint, other, transactions)
    ]
    return any(link.uuid == uuid for child in children for link in child.parents)
