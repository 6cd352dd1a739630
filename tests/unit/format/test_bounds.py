"""Transactions and checkpoints that claim too much, or name what can be none: refused by the file that says it, with its checksum right.

Each is forged from one that is sound, and is read past like any other damage: rows of others are what they were.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import CorruptionError, InvalidOption, limits
from bucketcatalog.format.checkpoints import decode_checkpoint, encode_checkpoint
from bucketcatalog.format.records import Link
from bucketcatalog.format.sealing import seal
from bucketcatalog.format.transactions import Transaction, decode_transaction, encode_transaction
from bucketcatalog.model.times import LAST_TIME
from bucketcatalog.v1 import log_pb2

from ...kit.claiming import UUID, transaction
from ...kit.world import START, World, bucket

SPEC = Path(__file__).parents[3] / "docs" / "spec" / "bounds.md"
LONG_AGO = bytes.fromhex("018bcfe56800400089abcdef01234567")
"""Of version 4."""
AFTER_ALL = (LAST_TIME // 1_000 + 1).to_bytes(6, "big") + UUID[6:]
"""Of the year 10000."""
MICROS = UUID[:6] + bytes.fromhex("73e8") + UUID[8:]
"""With a microsecond more than a millisecond has."""


def checkpoint() -> log_pb2.Checkpoint:
    message = log_pb2.Checkpoint(format_version=1, writer="evil", database="default", revision=5, uuid=UUID, created=START)
    message.cut.writers.add(writer="w").heads.add(revision=1, uuid=UUID)
    message.coverage.add(writer="w", list_from=1, newest_commit_time=START, transactions=1).recent.add(revision=1, uuid=UUID)
    message.applications.add(writer="w", id="a", commit_time=START).transaction.CopyFrom(message_link())
    message.totals.add(table="buckets", live=1)
    message.reads.writers.add(writer="w").heads.add(revision=1, uuid=UUID)
    return message


def message_link() -> log_pb2.TransactionLink:
    return log_pb2.TransactionLink(writer="w", revision=1, uuid=UUID, digest=bytes(32))


def refused(message: Any) -> str:
    """What is said of the message as a file; it is said at once."""
    data, began = seal(message.SerializeToString(deterministic=True)), time.monotonic()
    decode: Any = decode_transaction if isinstance(message, log_pb2.Transaction) else decode_checkpoint
    with pytest.raises(
        CorruptionError, match=r"^\[CORRUPT\] evil/x has|^\[CORRUPT\] evil/x is not a (transaction|checkpoint): "
    ) as caught:
        decode(data, "evil/x")
    assert time.monotonic() - began < 5
    return caught.value.message


def block(rows: int, **said: Any) -> log_pb2.Block:
    return log_pb2.Block(header=log_pb2.BlockHeader(table="buckets", rows=rows, **{"class": 1, **said}))


def every(number: int) -> Callable[[Any], object]:
    return lambda m: m.blocks.extend([block(limits.BLOCK_ROWS)] * number)


OF_BOTH: dict[str, Callable[[Any], object]] = {
    "a revision": lambda m: setattr(m, "revision", limits.REVISIONS),
    "a uuid of another version": lambda m: setattr(m, "uuid", LONG_AGO),
    "a uuid of the year 10000": lambda m: setattr(m, "uuid", AFTER_ALL),
    "a uuid with too many microseconds": lambda m: setattr(m, "uuid", MICROS),
    "a short uuid": lambda m: setattr(m, "uuid", b"x"),
    "a writer's name": lambda m: setattr(m, "writer", "../w"),
    "an empty name": lambda m: setattr(m, "writer", ""),
    "a database's name": lambda m: setattr(m, "database", "a/b"),
    "a lateness bound": lambda m: setattr(m, "lateness_bound", limits.MAX_LATENESS_BOUND + 1),
    "a lateness bound of everything": lambda m: setattr(m, "lateness_bound", (1 << 63) - 1),
    "a lateness bound below 0": lambda m: setattr(m, "lateness_bound", -1),
    "definitions": lambda m: m.tables.extend([log_pb2.TableDefinition()] * (limits.DEFINITIONS + 1)),
    "bytes of definitions": lambda m: m.tables.add(name="x" * limits.DEFINITION_BYTES),
}
OF_TRANSACTIONS: dict[str, Callable[[Any], object]] = {
    "a commit time": lambda m: setattr(m, "commit_time", LAST_TIME + 1),
    "a commit time before the year 1": lambda m: setattr(m, "commit_time", -(1 << 62)),
    "parents": lambda m: m.parents.extend([log_pb2.TransactionLink(writer="evil", uuid=UUID)] * limits.PARENTS),
    "a parent that comes later": lambda m: setattr(m.parents[0], "revision", 5),
    "a parent's digest": lambda m: setattr(m.parents[0], "digest", b"x"),
    "a parent's uuid": lambda m: setattr(m.parents[0], "uuid", LONG_AGO),
    "events one by one": lambda m: m.actions.extend([log_pb2.Action()] * (limits.ACTIONS + 1)),
    "rows of a block": lambda m: m.blocks.append(block(10_000_000)),
    "a block of no rows": lambda m: m.blocks.append(block(0)),
    "rows of all blocks": every(2),
    "a block of another class": lambda m: m.blocks.append(block(1, **{"class": 2})),
    "a writer that it had read": lambda m: setattr(m.reads[0], "writer", "w/../v"),
    "a revision that it had read": lambda m: setattr(m.reads[0].heads[0], "revision", (1 << 64) - 1),
    "heads of a fork": lambda m: m.reads[0].heads.extend([log_pb2.Head(uuid=UUID)] * limits.HEADS),
    "a tag's name": lambda m: setattr(m.tags[0], "name", "1/2"),
    "a tag's time": lambda m: setattr(m.tags[0], "created", LAST_TIME + 1),
    "a tag's cut": lambda m: setattr(m.tags[0].cut.writers[0], "writer", "."),
    "a void's writer": lambda m: setattr(m.voids[0], "writer", "a b"),
    "a void's revision": lambda m: setattr(m.voids[0], "revision", limits.REVISIONS),
    "a horizon": lambda m: setattr(m.boundary.horizon.writers[0], "writer", "a b"),
    "a boundary's checkpoint": lambda m: setattr(m.boundary.checkpoint, "writer", "a b"),
    "a boundary's data": lambda m: setattr(m.boundary, "data", LAST_TIME + 1),
    "what is settled": lambda m: setattr(m.boundary, "settled", LAST_TIME + 1),
    "a floor": lambda m: setattr(m.boundary.floors[0], "revision", limits.REVISIONS),
    "a floor's writer": lambda m: setattr(m.boundary.floors[0], "writer", "\x00"),
    "a witness's definition": lambda m: setattr(m.witnessed[0], "definition", b"x"),
    "a witness without a definition": lambda m: setattr(m.witnessed[0], "definition", b""),
    "who has defined what": lambda m: setattr(m.witnessed[0].defined_by, "writer", "a/b"),
    "the revision of a definition": lambda m: setattr(m.witnessed[0].defined_by, "revision", limits.REVISIONS),
    "the time of a definition": lambda m: setattr(m.witnessed[0].defined_by, "commit_time", LAST_TIME + 1),
    "the uuid of a definition": lambda m: setattr(m.witnessed[0].defined_by, "uuid", LONG_AGO),
    "a segment's writer": lambda m: setattr(m.segments[0], "writer", "../../x"),
    "a segment's uuid": lambda m: setattr(m.segments[0], "uuid", LONG_AGO),
    "a segment's size": lambda m: setattr(m.segments[0], "size", limits.SEGMENT_BYTES + 1),
    "an index": lambda m: setattr(m.segments[0], "index_length", limits.INDEX_BYTES + 1),
    "an index beyond the file": lambda m: setattr(m.segments[0], "index_offset", 999),
    "filters": lambda m: setattr(m.segments[0], "filters_length", limits.FILTER_BYTES + 1),
    "filters that lie elsewhere": lambda m: setattr(m.segments[0], "filters_length", 7),
    "rows of a segment": lambda m: setattr(m.segments[0].run, "rows", 1 << 63),
    "blocks of a segment": lambda m: setattr(m.segments[0].run, "blocks", limits.ROW_GROUPS + 1),
    "a level": lambda m: setattr(m.segments[0].run, "level", limits.RUN_LEVELS),
    "when a run ends": lambda m: setattr(m.segments[0].run, "newest", LAST_TIME + 1),
    "a segment that is not of events": lambda m: setattr(m.segments[0].run, "class", 2),
    "bytes": lambda m: setattr(m.operation, "name", "x" * limits.LOG_FILE_BYTES),
}
STAMP = log_pb2.TransactionStamp(commit_time=START, writer="w", revision=1, uuid=UUID)
OF_CHECKPOINTS: dict[str, Callable[[Any], object]] = {
    "when it was made": lambda m: setattr(m, "created", LAST_TIME + 1),
    "what it has forgotten": lambda m: setattr(m, "forgotten_before", LAST_TIME + 1),
    "a writer in the cut": lambda m: setattr(m.cut.writers[0], "writer", "/"),
    "a head": lambda m: setattr(m.cut.writers[0].heads[0], "revision", 10**18),
    "a head's uuid": lambda m: setattr(m.cut.writers[0].heads[0], "uuid", AFTER_ALL),
    "a covered writer": lambda m: setattr(m.coverage[0], "writer", "../w"),
    "where to list from": lambda m: setattr(m.coverage[0], "list_from", 10**19),
    "a covered transaction": lambda m: setattr(m.coverage[0].recent[0], "revision", 10**19),
    "a branch": lambda m: m.coverage[0].branches.add(revision=1, uuid=LONG_AGO),
    "when the newest was committed": lambda m: setattr(m.coverage[0], "newest_commit_time", LAST_TIME + 1),
    "how many are covered": lambda m: setattr(m.coverage[0], "transactions", (1 << 64) - 1),
    "totals": lambda m: setattr(m.totals[0], "live", 1 << 63),
    "who an application is of": lambda m: setattr(m.applications[0], "writer", "a/b"),
    "when an application has committed": lambda m: setattr(m.applications[0], "commit_time", -(1 << 63)),
    "what was read": lambda m: setattr(m.reads.writers[0], "writer", "a/b"),
    "who witnesses something": lambda m: m.witnessed.add(
        table="lab.r", definition=bytes(32), defined_by=STAMP, carried_by=log_pb2.TransactionStamp(writer="a/b", uuid=UUID)
    ),
    "a witness that nobody is": lambda m: m.witnessed.add(table="lab.r", definition=bytes(32), defined_by=STAMP),
    "rows in itself": lambda m: m.runs.add().run.CopyFrom(log_pb2.RunSummary(rows=limits.CHECKPOINT_ROWS + 1, **{"class": 2})),  # type: ignore[arg-type]
    "rows of a run that it has not": lambda m: m.runs.add().run.CopyFrom(log_pb2.RunSummary(rows=1, **{"class": 2})),  # type: ignore[arg-type]
}
FORGED = [
    *((f"{kind.__name__}: {what}", kind, change) for kind in (transaction, checkpoint) for what, change in OF_BOTH.items()),
    *((f"transaction: {what}", transaction, change) for what, change in OF_TRANSACTIONS.items()),
    *((f"checkpoint: {what}", checkpoint, change) for what, change in OF_CHECKPOINTS.items()),
]


def test_what_is_forged_from_is_sound() -> None:
    assert decode_transaction(seal(transaction().SerializeToString()), "evil/x").revision == 5
    assert decode_checkpoint(seal(checkpoint().SerializeToString()), "evil/x").revision == 5


@pytest.mark.parametrize(("kind", "change"), [case[1:] for case in FORGED], ids=[case[0] for case in FORGED])
def test_what_says_too_much_is_refused_by_name(kind: Callable[[], Any], change: Callable[[Any], object]) -> None:
    message = kind()
    change(message)
    assert refused(message)


def test_a_name_that_could_not_be_a_path_is_told_by_the_file_that_says_it() -> None:
    message = transaction()
    message.segments[0].writer = "../../x"
    assert refused(message) == "evil/x is not a transaction: '../../x' cannot be the name of a writer or a database."


class TestWriters:
    def test_nobody_publishes_a_transaction_that_nobody_would_read(self, world: World) -> None:
        writer = world.writer("w")
        before = [info.name for info in world.store.list("")]
        with pytest.raises(InvalidOption, match=r"No reader would take this transaction of 'w': it has \d+ bytes"):
            world.commit(writer, ("put", "buckets", bucket("a")), metadata={"a": "x" * limits.LOG_FILE_BYTES})
        assert [info.name for info in world.store.list("")] == before
        world.commit(writer, ("put", "buckets", bucket("a")))

    def test_as_many_parents_as_a_transaction_has_are_written_and_one_more_is_not(self) -> None:
        link = Link(0, UUID, b"")
        given = Transaction("w", "default", 1, UUID, START, 0, parents=(link,) * limits.PARENTS)
        assert len(decode_transaction(encode_transaction(given, (), ()), "x").parents) == limits.PARENTS
        given = Transaction("w", "default", 1, UUID, START, 0, parents=(link,) * (limits.PARENTS + 1))
        with pytest.raises(InvalidOption, match=f"it has {limits.PARENTS + 1} parents, and none has more than {limits.PARENTS}"):
            encode_transaction(given, (), ())

    def test_nor_a_checkpoint(self) -> None:
        message = decode_checkpoint(seal(checkpoint().SerializeToString()), "x")
        object.__setattr__(message, "lateness_bound", limits.MAX_LATENESS_BOUND + 1)
        with pytest.raises(InvalidOption, match="No reader would take this checkpoint of 'evil': it claims a lateness bound"):
            encode_checkpoint(message)


def shown(value: int) -> set[str]:
    """How the page may say a number."""
    units = {f"{value >> 10 * at} {unit}" for at, unit in ((2, "MiB"), (3, "GiB")) if not value % (1 << 10 * at)}
    powers = {"10^15"} if value == 10**15 else {"2^31"} if value == 1 << 31 else set[str]()
    return {f"{value:,}", f"{value // limits.HOUR} h", *units, *powers}


def test_the_page_of_the_specification_says_what_the_limits_are() -> None:
    found = re.findall(r"^\| .* \| (.*) \| (`[A-Z_`, ]+`) \|$", SPEC.read_text(), re.MULTILINE)
    assert len(found) > 15
    for said, names in found:
        for name in re.findall(r"[A-Z_]+", names):
            assert any(number in said for number in shown(getattr(limits, name))), (name, said)
