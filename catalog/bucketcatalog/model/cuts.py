"""Cuts: what a reader, a checkpoint or a version string names.

A cut is, for each writer, the heads of its timeline, with all their ancestors. It has one head a writer, and several only while that
timeline is forked. As text: ``writer@revision:uuid`` for each head, joined by commas, writers in byte order; the empty cut is ``:``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from ..clock import uuid7_time
from ..errors import InvalidVersion
from .names import NAME

_PART = re.compile(rf"(?P<writer>{NAME})@(?P<revision>[0-9]{{1,20}}):(?P<uuid>[0-9a-f]{{32}})", re.ASCII)
_EMPTY = ":"
_FEW = 3


@dataclass(frozen=True, slots=True, order=True)
class Head:
    """A transaction's place on its timeline: its revision and its 16-byte uuid."""

    revision: int
    uuid: bytes

    @property
    def commit_time(self) -> int:
        """The transaction's commit time in microseconds, which its uuid holds."""
        return uuid7_time(self.uuid)


class Ref(NamedTuple):
    """A transaction or checkpoint of any timeline: whose it is, and where it stands there."""

    writer: str
    head: Head


class OnTimeline:
    """What a timeline has at a place that its own fields tell, or names it so."""

    __slots__ = ()
    revision: int
    uuid: bytes

    @property
    def head(self) -> Head:
        """Its place on the timeline."""
        return Head(self.revision, self.uuid)


class OnTimelineOf(OnTimeline):
    """The same where it also tells whose timeline that is."""

    __slots__ = ()
    writer: str

    @property
    def ref(self) -> Ref:
        """Whose it is, and where it stands."""
        return Ref(self.writer, self.head)


class Stamp(NamedTuple):
    """What the stamps of a transaction's events begin with. Stamps order as tuples; ``commit_time`` is in microseconds."""

    commit_time: int
    writer: str
    revision: int
    uuid: bytes


UNPUBLISHED = Stamp(0, "", 0, b"")
"""Of what no transaction has carried yet."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Immutable. Invariants: no writer without a head; heads of a writer are sorted and distinct."""

    heads: Mapping[str, tuple[Head, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, heads: Iterable[tuple[str, Head]]) -> Cut:
        """The cut with these heads."""
        collected: dict[str, set[Head]] = {}
        for writer, head in heads:
            collected.setdefault(writer, set()).add(head)
        return cls({writer: tuple(sorted(collected[writer])) for writer in sorted(collected)})

    @classmethod
    def parse(cls, text: str) -> Cut:
        """The cut that ``str(cut)`` gave, or ``InvalidVersion``."""
        if text == _EMPTY:
            return cls()
        heads = []
        for part in text.split(","):
            match = _PART.fullmatch(part)
            if match is None:
                raise InvalidVersion(
                    f"{part[:80]!r} is not part of a version.",
                    next_step="Use a snapshot's version, WRITER@REVISION, a revision or a tag; "
                    "or, where a time may stand, one such as 2026-11-26 or 24h.",
                )
            heads.append((match["writer"], Head(int(match["revision"]), bytes.fromhex(match["uuid"]))))
        return cls.of(heads)

    def __str__(self) -> str:
        parts = (f"{writer}@{head.revision}:{head.uuid.hex()}" for writer, head in self.refs())
        return ",".join(parts) or _EMPTY

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def short(self) -> str:
        """The cut for people, on one line: the writers' revisions where these are few, which need not name it for ever."""
        heads = [f"{ref.writer}@{ref.head.revision}" for ref in self.refs()]
        return ", ".join(heads) if 0 < len(heads) <= _FEW else f"{len(self.heads):,} writers" if heads else "nothing"

    def refs(self) -> Iterator[Ref]:
        """Every head with its writer, writers in order."""
        return (Ref(writer, head) for writer, heads in self.heads.items() for head in heads)

    def of_writer(self, writer: str) -> tuple[Head, ...]:
        """The writer's heads, none where the cut has nothing of it."""
        return self.heads.get(writer, ())

    def newest_revision(self, writer: str) -> int:
        """The largest revision of the writer in the cut, -1 where there is none."""
        heads = self.heads.get(writer)
        return heads[-1].revision if heads else -1

    def has(self, writer: str, head: Head) -> bool:
        """Whether it is one of the writer's heads, of which a forked timeline may have many."""
        heads = self.of_writer(writer)
        at = bisect_left(heads, head)
        return at < len(heads) and heads[at] == head

    @property
    def newest_commit_time(self) -> int:
        """The largest commit time in the cut, 0 for the empty cut."""
        return max((head.commit_time for _, head in self.refs()), default=0)

    def changed_since(self, earlier: Cut) -> Cut:
        """The writers whose heads differ from those in ``earlier``."""
        return Cut({writer: heads for writer, heads in self.heads.items() if earlier.of_writer(writer) != heads})

    def joined(self, other: Cut) -> Cut:
        """The heads of both; some may be ancestors of others."""
        return Cut.of(chain(self.refs(), other.refs()))
