"""What mallory writes below her own prefix: each forgery with what of it counts, which is a transaction without it or nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from bucketcatalog.clock import uuid7
from bucketcatalog.format.checkpoints import Checkpoint, Coverage, decode_checkpoint, encode_checkpoint
from bucketcatalog.format.definitions import table_of
from bucketcatalog.format.sealing import digest, seal
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Cut, Head
from bucketcatalog.model.uuids import writer_mark
from bucketcatalog.v1 import log_pb2

from ..spoiling import NOWHERE
from ..world import DAY, HOUR, messages, proto

FORGER = "mallory"
PREFIX = f"{FORGER}/"
FAR = 10**15 - 2
"""About the largest revision that a file can name."""
Files = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Forgery:
    """Files that she puts, and those that are what counts of them. The name of one that ``stops`` readers.

    One that ``spoils`` says that what she had committed before is something else, so that reading past it leaves that out too; after one
    that ``misfits`` a table her own events of that have no definition.
    """

    put: Files
    counts: Files
    stops: str = ""
    spoils: bool = False
    misfits: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What she sees: the files of the catalog, those that count of her own, what of hers is set aside, and the time."""

    files: Files
    counts: Files
    aside: frozenset[str]
    now: int

    def heads(self, writer: str) -> list[Head]:
        """The newest transactions of a writer, of the largest revision."""
        found = [file.log_file.head for name in self.files if (file := paths.parse(name)) and _is_of(file, writer)]
        last = max((head.revision for head in found), default=-1)
        return sorted(head for head in found if head.revision == last)

    def checkpoint(self, writer: str) -> Checkpoint | None:
        """The newest checkpoint below a prefix; her own are those that count."""
        files = self.counts if writer == FORGER else self.files
        names = [name for name in files if name.startswith(f"{writer}") and name.endswith(".ckpt")]
        return max(
            (decode_checkpoint(files[name], name) for name in names), key=lambda each: (each.head, each.created), default=None
        )


def _is_of(file: Any, writer: str) -> bool:
    return bool(file.writer == writer and file.log_file is not None and file.log_file.is_transaction)


def next_transaction(seen: Seen, *, fork: bool = False) -> Callable[[Files], Any]:
    """Her next transaction, without events, which follows what a set of files has of her; with ``fork`` beside her last one."""
    heads = seen.heads(FORGER)
    revision = heads[0].revision if heads else -1
    before = heads
    if fork and revision > 0:
        at = [f.log_file.head for name in seen.files if (f := paths.parse(name)) and _is_of(f, FORGER)]
        earlier = [head for head in at if head.revision == revision - 1]
        before, revision = (earlier, revision - 1) if len(earlier) == 1 else (heads, revision)
    time = max([seen.now, *(head.commit_time + 1 for head in heads)])
    uuid = uuid7(time, writer_mark(FORGER)).bytes

    def made(files: Files) -> Any:
        message = log_pb2.Transaction(
            format_version=1,
            writer=FORGER,
            database="default",
            revision=revision + 1,
            uuid=uuid,
            commit_time=time,
            lateness_bound=360_000_000,
        )
        for head in before:
            name = paths.transaction(FORGER, "default", head)
            message.parents.add(
                writer=FORGER, revision=head.revision, uuid=head.uuid, digest=b"" if name in seen.aside else digest(files[name])
            )
        return message

    return made


def sealed(message: Any) -> bytes:
    """The bytes of a file that holds a message."""
    return seal(message.SerializeToString(deterministic=True))


def _transaction(
    change: Callable[[Any, Seen], bool], *, stops: bool = False, fork: bool = False
) -> Callable[[Seen], Forgery | None]:
    """Her next transaction after a change, which says whether there was something to say; all of it counts but that."""

    def forge(seen: Seen) -> Forgery | None:
        made = next_transaction(seen, fork=fork)
        forged, fair = made(seen.files), made(seen.counts)
        if not change(forged, seen):
            return None
        name = paths.transaction(FORGER, "default", Head(fair.revision, fair.uuid))
        return Forgery(
            {name: sealed(forged)}, {name: sealed(fair)}, name if stops else "", change is _digest, bool(forged.tables)
        )

    return forge


def _boundary(made: Any, seen: Seen) -> bool:
    for writer in ("alice", "bob", FORGER):
        for head in seen.heads(writer):
            made.boundary.horizon.writers.add(writer=writer).heads.add(revision=head.revision, uuid=head.uuid)
    made.boundary.data = made.boundary.settled = made.commit_time
    made.required_features.append("boundary")
    return True


def _voids(made: Any, seen: Seen) -> bool:
    for head in seen.heads("alice"):
        digest_of = digest(seen.files[paths.transaction("alice", "default", head)])
        made.voids.add(writer="alice", revision=head.revision, uuid=head.uuid, digest=digest_of)
    made.required_features.append("voids")
    return True


def _asides(made: Any, seen: Seen) -> bool:
    for head in seen.heads("alice"):
        made.asides.add(writer="alice", revision=head.revision, uuid=head.uuid)
    made.required_features.append("asides")
    return True


def _witness(made: Any, seen: Seen) -> bool:
    _another_table(made, seen)
    definition = made.tables[-1].SerializeToString(deterministic=True)
    witness = made.witnessed.add(table="objects", definition=hashlib.sha256(definition).digest())
    for name in ("commit_time", "writer", "revision", "uuid"):
        setattr(witness.defined_by, name, getattr(made, name))
    return True


def _tag(made: Any, seen: Seen, *, dropped: bool = False) -> bool:
    heads = seen.heads(FORGER)
    entry = made.tags.add(name="release", created=made.commit_time, dropped=dropped)
    for head in heads:
        entry.cut.writers.add(writer=FORGER).heads.add(revision=head.revision, uuid=head.uuid)
    return len(heads) == 1


def _drop(made: Any, seen: Seen) -> bool:
    return _tag(made, seen, dropped=True)


@cache
def _misfit(options: str, fields: str) -> Any:
    body = f'message R {{ option (table) = {{ name: "objects" {options} }}; {fields} }}'
    return log_pb2.TableDefinition.FromString(table_of(messages(proto(body))["R"]).definition)


def _another_table(made: Any, seen: Seen) -> bool:
    made.tables.append(_misfit('key: "name"', "string name = 1; optional int64 owner = 2;"))
    return True


def _short_retention(made: Any, seen: Seen) -> bool:
    made.tables.append(_misfit('key: "name" tombstone_retention_seconds: 1', "string name = 3;"))
    return True


def _reads_nothing(made: Any, seen: Seen) -> bool:
    made.reads.add(writer="nobody").heads.add(revision=7, uuid=NOWHERE)
    return True


def _reads_the_future(made: Any, seen: Seen) -> bool:
    made.reads.add(writer="alice").heads.add(revision=10**6, uuid=uuid7(made.commit_time + DAY, writer_mark("alice")).bytes)
    return True


def _reads_what_is_later(made: Any, seen: Seen) -> bool:
    """As if she had committed before what she had read: it stands there."""
    (head,) = seen.heads("alice")[:1]
    made.reads.add(writer="alice").heads.add(revision=head.revision, uuid=head.uuid)
    return head.commit_time >= made.commit_time


def _feature(made: Any, seen: Seen) -> bool:
    made.required_features.append("tomorrow")
    return True


def _digest(made: Any, seen: Seen) -> bool:
    if not all(link.digest for link in made.parents):
        return False  # what is set aside is compared with nothing
    for link in made.parents:
        link.digest = bytes(32)
    return len(made.parents) > 0


def _alices_segment(made: Any, seen: Seen) -> bool:
    made.segments.add(writer="alice", uuid=NOWHERE, size=1_000, index_offset=500, index_length=100, index_digest=bytes(32))
    made.segments[0].run.CopyFrom(log_pb2.RunSummary(table="objects", rows=1, blocks=1, **{"class": 1}))
    return True


def _nothing(made: Any, seen: Seen) -> bool:
    return True


def _checkpoint(make: Callable[[Checkpoint, Seen], Checkpoint], donor: str = FORGER) -> Callable[[Seen], Forgery | None]:
    """A checkpoint of hers, made from one that there is; nothing of it counts."""

    def forge(seen: Seen) -> Forgery | None:
        given = seen.checkpoint(donor)
        if given is None:
            return None
        forged = replace(make(given, seen), writer=FORGER)
        name = paths.checkpoint(FORGER, "default", forged.head)
        if name in seen.files:
            return None
        return Forgery({name: encode_checkpoint(forged), paths.newest_marker(FORGER, "default", forged.head): b""}, {})

    return forge


def _everybody(given: Checkpoint, seen: Seen) -> Checkpoint:
    cut = Cut({writer: tuple(heads) for writer in ("alice", "bob", FORGER) if (heads := seen.heads(writer))})
    coverage = {
        writer: Coverage(heads[0].revision + 1, frozenset(heads), newest_commit_time=heads[0].commit_time, transactions=FAR)
        for writer, heads in cut.heads.items()
    }
    last = max(head.commit_time for heads in cut.heads.values() for head in heads)
    made = replace(given, cut=cut, coverage=coverage, segments=(), inline=(), totals={}, tags=(), uuid=uuid7(last).bytes)
    return replace(made, revision=max((head.revision for head in seen.heads(FORGER)), default=0))


def _everybody_of_that_name(given: Checkpoint, seen: Seen) -> Checkpoint:
    return replace(_everybody(given, seen), uuid=given.uuid, revision=given.revision)


def _as_hers(given: Checkpoint, seen: Seen) -> Checkpoint:
    return given


def _far(given: Checkpoint, seen: Seen) -> Checkpoint:
    head = Head(FAR, bytes.fromhex("018bcfe568007000800000000000") + b"al")
    cut = Cut({**given.cut.heads, "alice": (head,)})
    return replace(
        given, cut=cut, coverage={**given.coverage, "alice": Coverage(FAR + 1, frozenset(), transactions=FAR)}, uuid=_other(given)
    )


def _future(given: Checkpoint, seen: Seen) -> Checkpoint:
    head = Head(FAR, uuid7(seen.now + 300 * DAY, writer_mark(FORGER)).bytes)
    coverage = {FORGER: Coverage(0, frozenset({head}), newest_commit_time=head.commit_time, transactions=1)}
    made = replace(given, cut=Cut({FORGER: (head,)}), coverage=coverage, segments=(), inline=(), totals={}, applications={})
    return replace(made, revision=FAR, uuid=uuid7(head.commit_time).bytes)


def _forgets(given: Checkpoint, seen: Seen) -> Checkpoint:
    return replace(given, forgotten_before=seen.now, uuid=_other(given))


def _other(given: Checkpoint) -> bytes:
    """Another uuid of the same time."""
    return given.uuid[:8] + uuid7(0).bytes[8:]


def _segments(seen: Seen) -> Forgery | None:
    """Segments that are called as those of others."""
    names = [file.rpartition("/")[2] for file in seen.files if file.endswith(".parquet") and not file.startswith(PREFIX)]
    forged = {name: b"PAR1" for end in names if (name := f"{PREFIX}default/segments/{end}") not in seen.files}
    return Forgery(forged, {}) if forged else None


def _marker(seen: Seen) -> Forgery:
    """Markers that lead nowhere."""
    heads = [Head(FAR, uuid7(seen.now).bytes), Head(0, uuid7(seen.now - HOUR).bytes)]
    files = {paths.newest_marker(FORGER, "default", head): b"" for head in heads}
    return Forgery(files, {}, paths.checkpoint(FORGER, "default", heads[0]))


IGNORED: dict[str, Callable[[Seen], Forgery | None]] = {
    "a boundary": _transaction(_boundary),
    "a void": _transaction(_voids),
    "what is set aside": _transaction(_asides),
    "a witness of a definition that misfits": _transaction(_witness),
    "a maintainer's tag": _transaction(_tag),
    "a maintainer's tag, dropped": _transaction(_drop),
    "a definition that misfits": _transaction(_another_table),
    "a definition's options": _transaction(_short_retention),
    "a fork": _transaction(_nothing, fork=True),
    "everybody": _checkpoint(_everybody),
    "everybody, by the name of a compactor's": _checkpoint(_everybody_of_that_name, "compactor-1"),
    "everybody, by the name of a maintainer's": _checkpoint(_everybody_of_that_name, "maintainer-"),
    "a compactor's": _checkpoint(_as_hers, "compactor-1"),
    "alice's future": _checkpoint(_far),
    "the future": _checkpoint(_future),
    "what is forgotten": _checkpoint(_forgets),
    "segments of others' names": _segments,
}
STOPPING: dict[str, Callable[[Seen], Forgery | None]] = {
    "markers": _marker,
    "reads of nothing": _transaction(_reads_nothing, stops=True),
    "reads of the future": _transaction(_reads_the_future, stops=True),
    "reads of what is later": _transaction(_reads_what_is_later, stops=True),
    "an unknown feature": _transaction(_feature, stops=True),
    "another parent's digest": _transaction(_digest, stops=True),
    "alice's segment": _transaction(_alices_segment, stops=True),
}


def a_byte(seen: Seen) -> Forgery | None:
    """A transaction of which there is one byte."""
    found = STOPPING["an unknown feature"](seen)
    return found and replace(found, put={found.stops: b"\x0a"})


STOPPING["a byte"] = a_byte
FORGERIES = {**IGNORED, **STOPPING}


def any_forgery(number: int) -> Callable[[Seen], Forgery | None]:
    """One of them by any number."""
    return list(FORGERIES.values())[number % len(FORGERIES)]
