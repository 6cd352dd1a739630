"""What counts from whom (spec/trust.md, spec/stamps.md)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pyarrow as pa

from .cuts import Ref, known_voids, reads_of, refs_of
from .stamps import uuid_time


def is_maintainer(writer: str) -> bool:
    """Whether boundaries and voids of the writer count."""
    return writer.startswith("maintainer-")


def is_trusted(writer: str) -> bool:
    """Whether checkpoints of the writer count for others' timelines."""
    return is_maintainer(writer) or writer.startswith("compactor-")


def voided_by(tail: Iterable[Any], checkpoints: Iterable[Any]) -> set[Ref]:
    """What maintainers have voided, and what these or compactors say that they have."""
    saying = [transaction for transaction in tail if is_maintainer(transaction.writer)]
    return known_voids([*saying, *(checkpoint for checkpoint in checkpoints if is_trusted(checkpoint.writer))])


def mark(writer: str) -> bytes:
    """What the uuids of the writer's transactions end in."""
    return hashlib.sha256(writer.encode()).digest()[:4]


def check_transaction(transaction: Any, voided: set[Ref]) -> None:
    """What a reader refuses a transaction for."""
    assert transaction.uuid.endswith(mark(transaction.writer))
    assert {reference.writer for reference in transaction.segments} <= {transaction.writer}
    for ref in reads_of(transaction):
        assert ref in voided or uuid_time(ref[2]) < transaction.commit_time


def counts(checkpoint: Any) -> bool:
    """Whether a checkpoint is to be read, or else to be passed over."""
    makers = {reference.writer for reference in checkpoint.segments}
    if is_trusted(checkpoint.writer):
        return all(map(is_trusted, makers))
    covered = {entry.writer for entry in (*checkpoint.cut.writers, *checkpoint.coverage)}
    heads, voided = refs_of(checkpoint.cut.writers), known_voids([checkpoint])
    times = [uuid_time(uuid) for _, _, uuid in heads]
    living = [uuid_time(ref[2]) for ref in heads if ref not in voided]
    return (
        {*makers, *covered} == {checkpoint.writer}
        and max(living, default=0) <= uuid_time(checkpoint.uuid) <= max(times)
        and not checkpoint.forgotten_before
    )


def own(checkpoint: Any) -> Any:
    """A checkpoint with what its writer can say: a plain one's names its own transactions alone, voids and witnesses nothing."""
    if is_trusted(checkpoint.writer):
        return checkpoint
    counted, writer = type(checkpoint).FromString(checkpoint.SerializeToString()), checkpoint.writer
    said: dict[str, list[Any]] = {
        "witnessed": [],
        "tables": [entry for entry in checkpoint.tables if entry.defined_by.writer == writer],
        "tags": [entry for entry in checkpoint.tags if entry.carried_by.writer == writer],
        "pins": [entry for entry in checkpoint.pins if entry.carried_by.writer == writer],
        "applications": [entry for entry in checkpoint.applications if entry.writer == writer],
    }
    for name, entries in said.items():
        counted.ClearField(name)
        getattr(counted, name).extend(entries)
    return counted


def check_rows(checkpoint: Any, rows: pa.Table) -> None:
    """What a reader refuses a block for: in a plain writer's checkpoint every stamp is its own."""
    for stamp in ("", "row_", "end_") if not is_trusted(checkpoint.writer) else ():
        if f"_{stamp}writer" in rows.column_names:
            assert set(rows[f"_{stamp}writer"].to_pylist()) <= {checkpoint.writer, None}
            uuids = [uuid for uuid in rows[f"_{stamp}uuid"].to_pylist() if uuid is not None]
            assert all(UUID(uuid).bytes.endswith(mark(checkpoint.writer)) for uuid in uuids)
