"""What counts from whom: of each file what its writer may say, as whoever reads the log takes it (docs/spec/trust.md).

A store's policies keep writers out of each other's prefixes; what stands below a writer's own prefix may be anything. So what a file
says counts by whose it is. Events count from everybody. What is about more than its writer's own timeline counts from compactors and
maintainers, whose names policies guard: a checkpoint of others' timelines, a boundary, what is voided. A plain writer's checkpoint says
what its own transactions say, and who merges for everybody, or deletes, reads the transactions themselves.

The files of the log come through here once they are decoded, before anything is made of them. What does not count is taken out, and
named in ``ignored``, which is for who looks into files and not for who reads rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from .. import limits
from ..errors import CorruptionError
from ..format.checkpoints import Checkpoint
from ..format.transactions import Transaction
from ..model.names import is_compactor, is_maintainer
from ..model.uuids import writer_mark

File = TypeVar("File", Transaction, Checkpoint)


def is_trusted(writer: str) -> bool:
    """Whether what the writer says of others' timelines counts: a compactor's or a maintainer's name is guarded by policies."""
    return is_compactor(writer) or is_maintainer(writer)


def says(writer: str, of: str) -> bool:
    """Whether a checkpoint of the writer can tell what a transaction ``of`` somebody said: anybody's, or a plain writer's its own."""
    return is_trusted(writer) or writer == of


def as_counted(transaction: Transaction, name: str) -> Transaction:
    """The transaction of file ``name`` with what counts of it; ``CorruptionError`` where its uuid, or a segment, is another's."""
    if transaction.segments and (foreign := {reference.writer for reference in transaction.segments} - {transaction.writer}):
        raise CorruptionError(f"{name} has its events in segments of {min(foreign)!r}: a writer's own lie below its own prefix.")
    if not transaction.uuid.endswith(writer_mark(transaction.writer)):
        raise CorruptionError(
            f"{name} has a uuid that none of {transaction.writer!r} can have: versions are named by uuids alone."
        )
    more = transaction.boundary is not None or transaction.voids or transaction.asides or transaction.witnessed
    if not more or is_maintainer(transaction.writer):  # as mostly
        return transaction
    witnessed = transaction.witnessed if is_trusted(transaction.writer) else ()
    return _with(transaction, boundary=None, voids=(), asides=(), witnessed=witnessed)


def checkpoint_as_counted(checkpoint: Checkpoint) -> Checkpoint:
    """A checkpoint with what counts of it, if anything of it ``counts``."""
    if is_trusted(checkpoint.writer):
        published = tuple(boundary for boundary in checkpoint.boundaries if is_maintainer(boundary.stamp.writer))
        said = tuple(entry for entry in checkpoint.asides if is_maintainer(entry.stamp.writer))
        witnessed = tuple(witness for witness in checkpoint.witnessed if is_trusted(witness.stamp.writer))
        retired = tuple(each for each in checkpoint.retired if each.writer in checkpoint.coverage and not is_trusted(each.writer))
        return _with(checkpoint, boundaries=published, asides=said, witnessed=witnessed, retired=retired)
    writer = checkpoint.writer
    own = _with(
        checkpoint,
        boundaries=(),
        witnessed=(),
        retired=(),
        voids=tuple(void for void in checkpoint.voids if says(writer, void.writer)),
        asides=tuple(entry for entry in checkpoint.asides if says(writer, entry.writer)),
        tags=tuple(entry for entry in checkpoint.tags if says(writer, entry.stamp.writer)),
        pins=tuple(entry for entry in checkpoint.pins if says(writer, entry.stamp.writer)),
        definitions=tuple(definition for definition in checkpoint.definitions if says(writer, definition.stamp[1])),
        applications=tuple(result for result in checkpoint.applications if says(writer, result.writer)),
    )
    segments = tuple(replace(reference, only_of=writer) for reference in own.segments)
    return replace(own, segments=segments, inline=tuple(inline.only_of(writer) for inline in own.inline))


def counts(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint can be read: a plain writer's is of its own timeline and segments, others' of no plain writer's segments."""
    return not objection(checkpoint)


def objection(checkpoint: Checkpoint) -> str:
    """What a checkpoint says that its writer cannot, so that readers pass it over, as a sentence; empty where there is nothing.

    What stands below a plain writer's prefix may be another file tomorrow, of the same size and checksums. Its time is that of what it
    covers, and it has forgotten nothing.
    """
    writer = checkpoint.writer
    makers = {reference.writer for reference in checkpoint.segments}
    if is_trusted(writer):
        plain = sorted(maker for maker in makers if not is_trusted(maker))
        return f"It names segments of {plain[0]!r}, which may be other files tomorrow" if plain else ""
    if others := sorted({*checkpoint.cut.heads, *checkpoint.coverage} - {writer}):
        return f"It covers transactions of {others[0]!r}, for whom only compactors and maintainers can speak"
    if others := sorted(makers - {writer}):
        return f"It names segments of {others[0]!r}"
    if checkpoint.forgotten_before:
        return "It says that it has forgotten something"
    if {*checkpoint.cut.heads, *checkpoint.coverage} != {writer}:
        return "It covers nothing"
    voided = {void.ref.head for void in checkpoint.voids}
    times = [head.commit_time for head in checkpoint.cut.of_writer(writer) if head not in voided]
    if not max(times, default=0) <= checkpoint.as_of <= checkpoint.cut.newest_commit_time:
        return "Its uuid has another time than what it covers"
    return ""


def is_ahead(checkpoint: Checkpoint, now: int) -> bool:
    """Whether a plain writer's checkpoint speaks of the future, which it may say to bind those who come after what they have read."""
    return not is_trusted(checkpoint.writer) and checkpoint.cut.newest_commit_time > now + limits.MAX_CLOCK_SKEW


def _with(file: File, **counted: Any) -> File:
    """The file with what is ``counted`` of some fields, and in ``ignored`` those of which more stands in it."""
    more = tuple(name for name, value in counted.items() if getattr(file, name) != value)
    return replace(file, **counted, ignored=more) if more else file
