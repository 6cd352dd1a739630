"""One case: some of the forger's files made wrong by chance, and all that names them made to fit, as far as she could write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

from google.protobuf.message import DecodeError

from bucketcatalog.clock import uuid7_time
from bucketcatalog.format.checkpoints import decode_checkpoint
from bucketcatalog.format.runs import SegmentReference
from bucketcatalog.format.sealing import digest
from bucketcatalog.format.transactions import decode_transaction
from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head
from bucketcatalog.v1 import log_pb2

from ..forging import Forgery
from ..world import DAY, HOUR, SECOND
from .base import DATABASE, FORGER, OTHERS, Base
from .fields import Pool, change, flipped
from .parts import change_block, change_segment, closed, collect, opened

_IDENTITY = ("format_version", "writer", "database", "revision", "uuid")
_ODD_NAMES = (
    *OTHERS,
    FORGER,
    "nobody",
    "compactor-mallory",
    "maintainer-mallory",
    *("objects", "buckets", "lab.things", "sums", "app"),
)


@dataclass
class Case:
    """The objects that are other than in the base, None where one is gone; what was done, for people."""

    files: dict[str, bytes | None] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)


class Forger:
    """Makes cases of a base. The case of a seed and a number is always the same."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.names = base.of(FORGER)

    @cached_property
    def pool(self) -> Pool:
        """What there is to put in the place of something else: of all writers."""
        pool = Pool(list(_ODD_NAMES), [], {})
        for name, data in self.base.files.items():
            if name.endswith((".txn", ".ckpt")):
                collect(opened(name, data), pool)
        return pool

    @cached_property
    def references(self) -> dict[str, SegmentReference]:
        """What refers to each segment, by its name."""
        found: dict[str, SegmentReference] = {}
        for name, data in self.base.files.items():
            if name.endswith((".txn", ".ckpt")):
                file: Any = decode_transaction(data, name) if name.endswith(".txn") else decode_checkpoint(data, name)
                found |= {paths.segment(each.writer, DATABASE, each.uuid): each for each in file.segments}
        return found

    @cached_property
    def heads(self) -> dict[str, list[Head]]:
        """The newest transactions of each writer."""
        found: dict[str, list[Head]] = {}
        for name in self.base.files:
            parsed = paths.parse(name)
            if parsed is not None and parsed.log_file is not None and name.endswith(".txn"):
                known = found.setdefault(parsed.writer, [])
                if known and known[0].revision < parsed.log_file.revision:
                    known.clear()
                known.append(parsed.log_file.head)
        return found

    def case(self, seed: int, number: int) -> Case:
        """The case of that number."""
        random, case = Random(f"{seed} {number}"), Case()
        ways: list[tuple[int, Callable[[Case, Random], None]]] = [
            (26, self._transaction),
            (22, self._checkpoint),
            (22, self._segment),
            (12, self._adopted_transaction),
            (12, self._adopted_checkpoint),
            (4, self._name),
            (2, self._raw),
        ]
        weights, made = [weight for weight, _ in ways], [make for _, make in ways]
        for _ in range(random.choice([1, 1, 1, 1, 2])):
            (make,) = random.choices(made, weights)
            make(case, random)
        if random.random() < 0.9:
            self._fit(case)
        return case

    def _now(self, case: Case, name: str) -> bytes | None:
        return case.files[name] if name in case.files else self.base.files.get(name)

    def _log(self, case: Case, ending: str) -> list[str]:
        """Her log files as they are in the case."""
        every = {*self.names, *(name for name in case.files if name.startswith(f"{FORGER}/"))}
        return sorted(name for name in every if name.endswith(ending) and self._now(case, name))

    def _transaction(self, case: Case, random: Random) -> None:
        self._change(case, random.choice(self.base.of(FORGER, ".txn")), random)

    def _checkpoint(self, case: Case, random: Random) -> None:
        self._change(case, random.choice(self.base.of(FORGER, ".ckpt")[-3:]), random)

    def _change(self, case: Case, name: str, random: Random) -> None:
        data = self._now(case, name)
        if not data:
            return
        message = _opened(name, data)
        if message is None:
            return
        before = {each: getattr(message, each) for each in _IDENTITY}
        case.said.append(f"{name}: {self._changed(message, random)}")
        if random.random() < 0.85:
            for each, value in before.items():
                setattr(message, each, value)
            if name.endswith(".txn") and random.random() < 0.9:
                message.commit_time = uuid7_time(message.uuid)
        case.files[name] = closed(message)

    def _changed(self, message: Any, random: Random) -> str:
        said = []
        for _ in range(random.choice([1, 1, 1, 2, 4])):
            what = change_block(message, random, self.pool) if random.random() < 0.35 else None
            said.append(what or change(message, random, self.pool))
        return ", ".join(said)

    def _segment(self, case: Case, random: Random) -> None:
        name = random.choice([each for each in self.base.of(FORGER, ".parquet") if each in self.references])
        forgery = Forgery.of(self.base.files[name], self.references[name])
        said = [change_segment(forgery, random, self.pool) for _ in range(random.choice([1, 1, 2]))]
        try:
            data, reference = forgery.sealed()
        except (OverflowError, ValueError, KeyError, TypeError, AttributeError, AssertionError, IndexError):
            data, reference = flipped(self.base.files[name], random), self.references[name]
            said = ["a byte"]
        case.said.append(f"{name}: {', '.join(said)}")
        case.files[name] = data
        self._refer(case, name, reference)

    def _refer(self, case: Case, segment: str, reference: SegmentReference) -> None:
        """Let all of her files that refer to a segment refer to it as it is."""
        for name in self._log(case, ".txn") + self._log(case, ".ckpt"):
            message = _opened(name, self._now(case, name))
            found = (
                []
                if message is None
                else [each for each in message.segments if each.uuid == reference.uuid and each.writer == FORGER]
            )
            for each in found:
                each.size, each.index_offset, each.index_length = reference.size, reference.index_offset, reference.index_length
                each.index_digest, each.filters_offset = reference.index_digest, reference.filters_offset
                each.filters_length = reference.filters_length
            if found:
                case.files[name] = closed(message)

    def _adopted_transaction(self, case: Case, random: Random) -> None:
        """Somebody's transaction, at times that of a maintainer, as her newest one."""
        donor = random.choice([name for name in self.base.files if name.endswith(".txn")])
        message = opened(donor, self.base.files[donor])
        heads = self.heads[FORGER] if random.random() < 0.7 else self.heads[FORGER][:1]
        time = self.base.now + random.choice([SECOND, SECOND, HOUR, 30 * DAY, 10_000 * DAY])
        revision = heads[0].revision + 1
        message.writer, message.database, message.revision = FORGER, DATABASE, revision
        message.uuid, message.commit_time = _uuid7(time, random), time
        del message.parents[:]
        for head in heads:
            data = self._now(case, paths.transaction(FORGER, DATABASE, head)) or bytes(32)
            message.parents.add(writer=FORGER, revision=head.revision, uuid=head.uuid, digest=digest(data))
        if random.random() < 0.5:
            del message.reads[:]
        if random.random() < 0.5:
            self._take_segments(case, message)
        said = f"as hers: {donor}"
        if message.HasField("boundary") and random.random() < 0.5:
            message.boundary.data = message.boundary.settled = self.base.now + 1000 * DAY
            said += ", its boundary now"
        if random.random() < 0.6:
            keep = {each: getattr(message, each) for each in (*_IDENTITY, "commit_time")}
            said += f", {self._changed(message, random)}"
            for each, value in keep.items():
                setattr(message, each, value)
        case.said.append(said)
        case.files[paths.transaction(FORGER, DATABASE, Head(revision, message.uuid))] = closed(message)

    def _take_segments(self, case: Case, message: Any) -> None:
        """Let what it refers to of others lie below her prefix."""
        for each in message.segments:
            data = self.base.files.get(paths.segment(each.writer, DATABASE, each.uuid))
            if data is not None and each.writer != FORGER:
                each.writer = FORGER
                case.files[paths.segment(FORGER, DATABASE, each.uuid)] = data

    def _adopted_checkpoint(self, case: Case, random: Random) -> None:
        """Somebody's checkpoint as hers, which may claim to cover more than it does."""
        donor = random.choice([name for name in self.base.files if name.endswith(".ckpt")])
        message = opened(donor, self.base.files[donor])
        revision = random.choice([10, 10, 9, 8, 0])
        message.writer, message.database, message.revision = FORGER, DATABASE, revision
        message.uuid = _uuid7(random.choice([uuid7_time(message.uuid), self.base.now]), random)
        message.created = self.base.now - random.choice([0, 10 * DAY])
        said = f"as hers: {donor}"
        claims = random.choice(["everyone", "everyone", "far", "own", ""])
        if claims:
            self._claim(message, claims)
            said += f", claims {claims}"
        if random.random() < 0.3:
            self._take_segments(case, message)
            said += ", its segments too"
        if random.random() < 0.3:
            del message.runs[:], message.segments[:]
            said += ", without rows"
        if random.random() < 0.5:
            said += f", {self._changed(message, random)}"
        message.writer, message.database, message.revision = FORGER, DATABASE, revision
        case.said.append(said)
        head = Head(revision, message.uuid if len(message.uuid) == 16 else bytes(16))
        case.files[paths.checkpoint(FORGER, DATABASE, head)] = closed(message)
        case.files[paths.newest_marker(FORGER, DATABASE, head)] = b""

    def _claim(self, message: Any, what: str) -> None:
        heads = {FORGER: self.heads[FORGER]} if what == "own" else dict(self.heads)
        if what == "far":
            heads["alice"] = [Head(10**18, self.heads["alice"][0].uuid)]
        del message.cut.writers[:], message.coverage[:]
        for writer, each in sorted(heads.items()):
            shown = [log_pb2.Head(revision=head.revision, uuid=head.uuid) for head in each]
            message.cut.writers.add(writer=writer, heads=shown)
            message.coverage.add(
                writer=writer,
                list_from=each[0].revision,
                newest_commit_time=each[0].commit_time,
                transactions=each[0].revision + 1,
                recent=shown,
            )

    def _name(self, case: Case, random: Random) -> None:
        """Files under other names, gone, or none of the log's; markers that lead anywhere."""
        name = random.choice(self.names)
        data = self._now(case, name) or b""
        parsed = paths.parse(name)
        way = random.randrange(5)
        if way == 0:
            case.files[name] = None
            case.said.append(f"{name}: gone")
        elif way == 1 and parsed is not None and parsed.log_file is not None:
            head = Head(random.choice([11, 12, 10**6, 10**18, 10**20 - 1]), parsed.log_file.uuid)
            other = paths.transaction(FORGER, DATABASE, head)
            case.files[other] = data
            case.said.append(f"{name}: also at {head.revision}")
        elif way == 2:
            head = Head(random.choice([0, 11, 10**18, 10**20 - 1]), _uuid7(self.base.now, random))
            case.files[paths.newest_marker(FORGER, DATABASE, head)] = random.choice([b"", b"x"])
            case.said.append(f"a marker of nothing at {head.revision}")
        elif way == 3:
            odd = random.choice(
                ["x", "transactions/x.txn", "transactions/00000000000000000011/.txn", "data/a/b", "newest/x", "segments/x"]
            )
            case.files[f"{FORGER}/{DATABASE}/{odd}"] = data
            case.said.append(f"{name}: as {odd}")
        else:
            other = random.choice([each for each in self.base.files if each.rpartition(".")[2] == name.rpartition(".")[2]])
            case.files[name] = self.base.files[other]
            case.said.append(f"{name}: what is {other}")

    def _raw(self, case: Case, random: Random) -> None:
        name = random.choice([name for name in self.names if self.base.files[name]])
        data = self.base.files[name]
        case.files[name] = random.choice([b"", b"x", data[:-1], data * 2, flipped(data, random), random.randbytes(2000)])
        case.said.append(f"{name}: {len(case.files[name] or b'')} bytes")

    def _fit(self, case: Case) -> None:
        """Let what follows a transaction of hers have its digest."""
        known: dict[bytes, bytes] = {}
        for name in self._log(case, ".txn"):
            data = self._now(case, name) or b""
            parsed = paths.parse(name)
            if parsed is None or parsed.log_file is None:
                continue
            if known and (message := _opened(name, data)) is not None:
                wrong = [link for link in message.parents if known.get(link.uuid, link.digest) != link.digest]
                for link in wrong:
                    link.digest = known[link.uuid]
                if wrong:
                    data = closed(message)
                    case.files[name] = data
            if name in case.files:
                known[parsed.log_file.uuid] = digest(data)
        for name in self._log(case, ".ckpt") if known else []:
            message = _opened(name, self._now(case, name))
            wrong = (
                [] if message is None else [each.transaction for each in message.applications if each.transaction.uuid in known]
            )
            for link in wrong:
                link.digest = known[link.uuid]
            if wrong:
                case.files[name] = closed(message)


def _opened(name: str, data: bytes | None) -> Any:
    """What a file holds; None where it is no message any more."""
    try:
        return opened(name, data or b"")
    except DecodeError:
        return None


def _uuid7(time: int, random: Random) -> bytes:
    millis, micros = divmod(time, 1_000)
    return (millis << 80 | 0x7 << 76 | micros << 64 | 0b10 << 62 | random.getrandbits(62)).to_bytes(16, "big")


def shown(case: Case) -> str:
    """A case in a few lines."""
    changed = ", ".join(f"{name} {'gone' if data is None else len(data)}" for name, data in case.files.items())
    return "; ".join(case.said) + f" [{changed}]"
