"""What a transaction follows, and cuts as text (spec/cuts.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Ref = tuple[str, int, bytes]
"""Names a transaction or a checkpoint: writer, revision, uuid."""


def cut_text(cut: Any) -> str:
    """A cut as text (spec/cuts.md)."""
    heads = [
        (writer.writer, head)
        for writer in sorted(cut.writers, key=lambda writer: writer.writer.encode())
        for head in sorted(writer.heads, key=lambda head: (head.revision, head.uuid))
    ]
    return ",".join(f"{writer}@{head.revision}:{head.uuid.hex()}" for writer, head in heads) or ":"


def reads_of(ref: Ref, transaction: Any) -> Iterator[Ref]:
    """The parents of a transaction, and what it had read of others."""
    for link in transaction.parents:
        yield ref[0], link.revision, link.uuid
    for writer in transaction.reads:
        for head in writer.heads:
            yield writer.writer, head.revision, head.uuid
