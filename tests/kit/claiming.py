"""A transaction's message that says something of everything that is a link, a name or a time, so that each can be forged."""

from __future__ import annotations

from bucketcatalog import clock
from bucketcatalog.v1 import log_pb2

from .world import START

UUID = clock.uuid7(START).bytes


def transaction() -> log_pb2.Transaction:
    """A sound one, of the writer ``evil``."""
    message = log_pb2.Transaction(
        format_version=1, writer="evil", database="default", revision=5, uuid=UUID, commit_time=START, lateness_bound=1
    )
    message.parents.add(writer="evil", revision=4, uuid=UUID, digest=bytes(32))
    message.reads.add(writer="w").heads.add(revision=1, uuid=UUID)
    tag = message.tags.add(name="t", created=START)
    tag.cut.writers.add(writer="w").heads.add(revision=1, uuid=UUID)
    message.voids.add(writer="w", revision=1, uuid=UUID, digest=bytes(32))
    message.segments.add(writer="evil", uuid=UUID, size=1_000, index_offset=500, index_length=100, index_digest=bytes(32))
    message.segments[0].run.CopyFrom(log_pb2.RunSummary(table="buckets", rows=1, blocks=1, **{"class": 1}))  # type: ignore[arg-type]
    witness = message.witnessed.add(table="lab.r", definition=bytes(32))
    witness.defined_by.CopyFrom(log_pb2.TransactionStamp(commit_time=START, writer="w", revision=1, uuid=UUID))
    bound = message.boundary
    bound.horizon.writers.add(writer="w").heads.add(revision=1, uuid=UUID)
    bound.checkpoint.CopyFrom(log_pb2.TransactionLink(writer="w", revision=1, uuid=UUID, digest=bytes(32)))
    bound.floors.add(writer="w", revision=1)
    return message
