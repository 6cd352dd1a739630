"""What maintainers have voided (spec/voids.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .cuts import Ref


def voided_by(tail: Iterable[Any], checkpoints: Iterable[Any]) -> set[Ref]:
    """What maintainers have voided (spec/voids.md)."""
    links = [link for transaction in tail if transaction.writer.startswith("maintainer-") for link in transaction.voids]
    links += [link for checkpoint in checkpoints for link in checkpoint.voids]
    return {(link.writer, link.revision, link.uuid) for link in links}


def emptied(transaction: Any) -> Any:
    """A voided transaction, of which only its definitions count."""
    left = type(transaction).FromString(transaction.SerializeToString())
    for field_name in ("actions", "blocks", "segments", "tags"):
        left.ClearField(field_name)
    return left
