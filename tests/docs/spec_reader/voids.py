"""What maintainers have voided (spec/voids.md), and what timelines have lost (spec/losses.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .cuts import Ref
from .sealing import message
from .stamps import uuid_time


def voided_by(tail: Iterable[Any], checkpoints: Iterable[Any]) -> set[Ref]:
    """What counts as absent in a cut."""
    tail = list(tail)
    links = [loss.transaction for transaction in tail for loss in transaction.losses]
    links += [link for transaction in tail if transaction.writer.startswith("maintainer-") for link in transaction.voids]
    links += [link for checkpoint in checkpoints for link in checkpoint.voids]
    return set(map(_ref_of, links))


def _ref_of(link: Any) -> Ref:
    return link.writer, link.revision, link.uuid


def losses_of(transactions: Mapping[Ref, Any]) -> dict[Ref, Any]:
    """What transactions say that their own timelines have lost."""
    losses = [(ref[0], loss) for ref, transaction in transactions.items() for loss in transaction.losses]
    return {_ref_of(loss.transaction): loss for writer, loss in losses if loss.transaction.writer == writer}


def stand_in(loss: Any) -> Any:
    """What counts in the place of a transaction that is lost: its name, and what it follows."""
    link = loss.transaction
    return message("Transaction")(
        writer=link.writer, revision=link.revision, uuid=link.uuid, commit_time=uuid_time(link.uuid), parents=loss.follows
    )


def emptied(transaction: Any) -> Any:
    """A voided transaction, of which only its definitions count."""
    left = type(transaction).FromString(transaction.SerializeToString())
    for field_name in ("actions", "blocks", "segments", "tags"):
        left.ClearField(field_name)
    return left
