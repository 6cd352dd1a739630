"""What a transaction follows, and cuts as text (spec/cuts.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Ref = tuple[str, int, bytes]
"""Names a transaction or a checkpoint: writer, revision, uuid."""


def cut_text(cut: Any) -> str:
    """A cut as text (spec/cuts.md)."""
    return text_of_heads((writer.writer, head.revision, head.uuid) for writer in cut.writers for head in writer.heads)


def text_of_heads(heads: Iterable[Ref]) -> str:
    """Heads as text (spec/cuts.md)."""
    ordered = sorted(heads, key=lambda head: (head[0].encode(), *head[1:]))
    return ",".join(f"{writer}@{revision}:{uuid.hex()}" for writer, revision, uuid in ordered) or ":"


def heads_named(text: str, known: Iterable[Ref]) -> Iterator[Ref]:
    """The heads that a cut as text names, or ``writer@N`` (spec/cuts.md)."""
    for part in () if text == ":" else text.split(","):
        writer, _, place = part.rpartition("@")
        revision, _, uuid = place.partition(":")
        if uuid:
            yield writer, int(revision), bytes.fromhex(uuid)
        else:
            (one,) = (ref for ref in known if ref[:2] == (writer, int(revision)))
            yield one


def reads_of(ref: Ref, transaction: Any) -> Iterator[Ref]:
    """The parents of a transaction, and what it had read of others."""
    for link in transaction.parents:
        yield ref[0], link.revision, link.uuid
    for writer in transaction.reads:
        for head in writer.heads:
            yield writer.writer, head.revision, head.uuid
