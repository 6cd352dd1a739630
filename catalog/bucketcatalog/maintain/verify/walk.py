"""``verify``: everything of a database, read and compared, one finding after the other.

Names first, then transactions and checkpoints, what they say of one another, and last every block. Requests go out several at a time;
what is kept grows with the number of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from operator import itemgetter

import pyarrow as pa

from ...errors import UNREADABLE, BucketCatalogError, MissingObject
from ...format.authority import Definition, Definitions
from ...format.checkpoints import Checkpoint
from ...format.definitions import core_tables
from ...format.headers import BlockPlace
from ...format.held import revision
from ...format.records import TagEntry
from ...format.runs import SegmentReference
from ...log.ancestry import version_view
from ...log.aside import set_aside
from ...log.coverage import Covered
from ...log.entries import newest_of, voids_of
from ...log.files import FilesWithout, LogFiles
from ...log.horizon import Horizon
from ...log.pruned import may_be_dropped
from ...log.salvage import asides_of
from ...log.trust import is_ahead, objection
from ...log.witnesses import counting, first_of
from ...model import paths
from ...model.cuts import Cut, Ref
from ...model.times import shown_time
from ...parallel import in_order
from ...store.obstacles import Obstacles
from .checkpoints import References, check_blocks, check_checkpoint, check_segment, forged, read_checkpoints
from .closure import check_reads, read_of_nothing
from .events import events_of_one
from .files import Kept, WriterFiles, gone_of_tag, is_reached, may_be_of_tag, tagged_cuts, writer_files
from .findings import Finding, unreadable, with_keys
from .misfits import AsKnown
from .timelines import (
    TransactionSummary,
    check_clocks,
    check_forks,
    check_links,
    check_references,
    check_said,
    check_seals,
    named_transactions,
    read_timelines,
)

Tell = Callable[[str], None]


class Walk:
    """One walk over a database. What it has found of the log stays with it, for whoever mends what is wrong."""

    def __init__(self, files: LogFiles, tell: Tell = lambda _: None, obstacles: Obstacles | None = None) -> None:
        """``obstacles`` come to have what the files' store goes past meanwhile, where it does."""
        self.files = files
        self.found: dict[str, WriterFiles] = {}
        self.log: dict[Ref, TransactionSummary] = {}
        self.checkpoints: list[Checkpoint] = []
        self.segments: dict[tuple[str, bytes], References] = {}
        self.definitions = Definitions(core_tables().values(), ())
        self.voided: frozenset[Ref] = frozenset()
        self.horizon: Horizon | None = None
        self.tagged: dict[Cut, TagEntry] = {}
        self.kept = Kept()
        self._obstacles = obstacles or Obstacles()
        self._tell = tell

    def findings(self) -> Iterator[Finding]:
        """Everything that is wrong or worth knowing."""
        self._tell("names")
        self.files = self.files.aware(asides_of(self.files.store, self.files.database))
        listed = self.files.map(writer_files, self.files.writers())
        self.found = {below.writer: below for below in listed}
        yield from self._in_the_way()
        for below in listed:
            for name in below.unknown:
                yield Finding("UNKNOWN_FILE", name, "The catalog gives no file such a name.")
        yield from self._read_log()
        self.kept = kept = self._kept()
        yield from self._set_aside()
        for ref, gone in self._unclosed.items():
            text = (
                f"It says that its writer had read {self.name_of_transaction(gone[0])}, which is not there. Readers pass it over."
            )
            yield Finding("WRONG_CHECKPOINT", self.name_of(ref), text)
        named = named_transactions(self.log, self.files) | self._named_by_checkpoints()
        yield from check_references(self.files, self.found, named, kept)
        yield from check_said(self.files, self.log)
        yield from check_links(self.files, self.log, self.voided)
        yield from check_reads(self.files, self.log, self.voided, self.horizon)
        yield from check_forks(self.log, self.files)
        yield from check_seals(self.found, self.checkpoints)
        yield from check_clocks(self.files, self.found, self.log, self.voided, kept)
        self.definitions = definitions = self.definitions_with()
        for name in sorted(definitions):
            if (why := definitions.contradiction(name)) is not None:
                yield Finding("CONTRADICTING_TABLE", name, why)
        as_known = AsKnown(self.files, definitions, self.checkpoints)
        yield from as_known.folded_otherwise()
        yield from self._read_events(definitions)
        yield from self._read_segments(definitions, as_known)
        yield from self._in_the_way()

    def _in_the_way(self) -> Iterator[Finding]:
        """Name what listings went past, each once."""
        for name, error in sorted(self._obstacles.untold(), key=itemgetter(0)):
            yield Finding("NOT_LISTED", name, f"Nobody sees what lies below. {error.message}")

    def _read_log(self) -> Iterator[Finding]:
        """Read every transaction and checkpoint, and keep what the rest of the walk needs."""
        count = sum(len(below.transactions) for below in self.found.values())
        for number, item in enumerate(read_timelines(self.files, self.found.values()), 1):
            if isinstance(item, Finding):
                yield item
            else:
                self.log[item.ref] = item
                for reference in item.segments:
                    self._refer(paths.transaction(item.writer, self.files.database, item.head), reference)
            self._tell(f"transactions: {number:,} of {count:,}")
        marked = [Ref(writer, head) for writer, below in sorted(self.found.items()) for head in sorted(below.markers)]
        for read in read_checkpoints(self.files, marked):
            if isinstance(read, Finding):
                yield read
            elif why := objection(read):
                yield forged(read, self.name_of(read.ref), why)
            else:
                yield from self._take(read)
        self.voided = frozenset(voids_of(self.log.values(), self.checkpoints))
        published = [t.boundary for t in self.log.values() if t.boundary is not None]
        newest = newest_of([*published, *(boundary for c in self.checkpoints for boundary in c.boundaries)])
        self.horizon = Horizon(newest.history, self.files) if newest.history is not None else None
        yield from self._read_unmarked()

    def _take(self, checkpoint: Checkpoint, *, kept: bool = False) -> Iterator[Finding]:
        """Keep a checkpoint that somebody may use, and say what is wrong with it."""
        name = self.name_of(checkpoint.ref)
        self.checkpoints.append(checkpoint)
        for reference in checkpoint.segments:
            self._refer(name, reference)
        yield from check_checkpoint(checkpoint, name, stands_alone=kept or checkpoint.ref in self._published)
        if is_ahead(checkpoint, self.files.store.now_us()):
            text = f"It covers what was committed at {shown_time(checkpoint.cut.newest_commit_time)}, which lies in the future."
            yield Finding("FUTURE_CHECKPOINT", name, text)

    @cached_property
    def _published(self) -> set[Ref]:
        """The checkpoints that lie beside the transaction that makes them a horizon's, which they cannot cover, as that of a clone does."""
        links = ((t, t.boundary.checkpoint) for t in self.log.values() if t.boundary is not None)
        return {link.ref for t, link in links if link is not None and (link.writer, link.revision) == (t.writer, t.revision)}

    def _read_unmarked(self) -> Iterator[Finding]:
        """Name the checkpoints that no marker leads to, and look at those of them that the horizon or tags rest on."""
        unmarked = {
            Ref(below.writer, head): below.checkpoints[head]
            for below in self.found.values()
            for head in sorted(below.checkpoints.keys() - below.markers.keys())
        }
        for finding in self._read_horizons_own():
            unmarked = {ref: info for ref, info in unmarked.items() if info.name != finding.file}
            yield finding
        entries = [entry for t in self.log.values() for entry in t.tags]
        self.tagged = tagged = tagged_cuts([*entries, *(entry for checkpoint in self.checkpoints for entry in checkpoint.tags)])
        unread: dict[Ref, Finding] = {}
        without: dict[Ref, Checkpoint] = {}  # of which segments alone cannot be read
        taken: dict[Cut, Checkpoint] = {}  # of several who reads a tag takes the one that was made last
        for ref in sorted(ref for ref in unmarked if may_be_of_tag(ref, tagged)):
            (read,) = read_checkpoints(self.files, [ref])
            if isinstance(read, Finding):
                unread[ref] = replace(read, message=f"{read.message} A tag may need it.", held=())  # where it lies says nothing
            elif read.cut in tagged and self.files.unreadable_segment(read) is not None:
                without[ref] = read
            elif read.cut in tagged and not self._is_dropped(read):
                taken[read.cut] = max(read, taken.get(read.cut, read), key=lambda checkpoint: checkpoint.created)
        for kept in taken.values():
            yield from self._take(kept, kept=True)
            del unmarked[kept.ref]
        there = {checkpoint.cut for checkpoint in self.checkpoints}
        needed: set[Ref] = set()
        broken = {*unread, *without}
        files = FilesWithout(self.files.store, self.files.database, broken).aware(self.files.asides) if broken else self.files
        for tag, error in self.gone_of_tags(files, [tag for cut, tag in tagged.items() if cut not in there]):
            candidates = {ref for ref in unread if may_be_of_tag(ref, [tag.cut])}
            candidates |= {ref for ref, checkpoint in without.items() if checkpoint.cut == tag.cut}
            for ref in sorted(candidates - needed):
                yield from [unread[ref]] if ref in unread else self._take(without[ref], kept=True)
            needed |= candidates
            if not candidates and self.horizon is not None:
                place = paths.revision_start(self.horizon.boundary.stamp[1], self.files.database, 0)
                yield unreadable(error, "CHECKPOINT", place)
        for ref, info in unmarked.items():
            if ref not in needed:
                yield Finding("UNMARKED_CHECKPOINT", info.name, "No marker below newest/ leads to it.")

    def _is_dropped(self, checkpoint: Checkpoint) -> bool:
        """Whether one of a tag's cut is damaged and needed by nobody, for the tag can be read without it: so ``repair`` leaves them."""
        if not may_be_dropped(checkpoint) or not any(check_blocks(self.files, checkpoint)):
            return False
        try:
            without = FilesWithout(self.files.store, self.files.database, {checkpoint.ref}).aware(self.files.asides)
            version_view(without, checkpoint.cut, self.horizon)
        except BucketCatalogError:
            return False
        return True

    def gone_of_tags(self, files: LogFiles, tags: Iterable[TagEntry]) -> Iterator[tuple[TagEntry, MissingObject]]:
        """Those of these tags that these files have no checkpoint of and no transactions either, and what who reads one is told."""
        if self.horizon is None:
            return
        newest = Cut.of((writer, max(below.transactions)) for writer, below in self.found.items() if below.transactions)
        horizon = Horizon(self.horizon.boundary, files)
        for tag in tags:
            if (error := gone_of_tag(files, tag, horizon, newest)) is not None:
                yield tag, error

    def _read_horizons_own(self) -> Iterator[Finding]:
        """What is wrong with the checkpoint that the horizon names, which others may not need, and nobody has to find by a marker."""
        link = self.horizon.boundary.checkpoint if self.horizon is not None else None
        if self.horizon is None or link is None:
            return
        name = self.name_of(link.ref)
        is_marked = self.is_marked(link.ref)
        if is_marked and link.ref not in {checkpoint.ref for checkpoint in self.checkpoints}:
            return  # it cannot be read, which was said
        is_needed = is_marked or not is_reached(self.horizon, self.checkpoints)
        try:
            own = self.horizon.checkpoint
        except UNREADABLE as error:
            if is_needed:
                yield unreadable(error, "CHECKPOINT", name, *(revision(w, h.revision, 0) for w, h in self.horizon.cut.refs()))
            else:
                yield Finding(
                    "UNREADABLE_HISTORY", name, f"Versions between the horizon and a later checkpoint need it: {error.message}"
                )
            return
        if not is_marked and is_needed:
            yield Finding("UNMARKED_CHECKPOINT", name, "No marker below newest/ leads to it, and the horizon rests on it.")
            yield from self._take(own)

    def name_of(self, checkpoint: Ref) -> str:
        """The name of a checkpoint's file."""
        return paths.checkpoint(checkpoint.writer, self.files.database, checkpoint.head)

    def is_marked(self, checkpoint: Ref) -> bool:
        """Whether a marker leads readers to it."""
        return checkpoint.writer in self.found and checkpoint.head in self.found[checkpoint.writer].markers

    def _kept(self) -> Kept:
        """What has to be there. What cannot be read counts as following whatever lies before it."""
        if self.horizon is None:
            return Kept()
        followed = {ref for t in self.log.values() for ref in t.parent_refs}
        unread = {
            (w, head.revision) for w, below in self.found.items() for head in below.transactions if (w, head) not in self.log
        }
        followed |= {Ref(w, head) for w, head in self.horizon.cut.refs() if (w, head.revision + 1) in unread}
        return Kept(self.horizon, followed)

    def name_of_transaction(self, ref: Ref) -> str:
        """The name of a transaction's file."""
        return paths.transaction(ref.writer, self.files.database, ref.head)

    def rests_in_horizon(self, ref: Ref) -> bool:
        """Whether the horizon's checkpoint covers a transaction, which is for good what that says."""
        return self._resting is not None and self._resting.holds(*ref)

    @cached_property
    def _resting(self) -> Covered | None:
        """What the horizon's checkpoint covers, where that can be read."""
        if self.horizon is None or not self.horizon.is_readable:
            return None
        return self.covered_by([self.horizon.checkpoint], self.horizon)

    def covered_by(self, checkpoints: Sequence[Checkpoint], horizon: Horizon | None = None) -> Covered:
        """What these cover, which asks the store for no timeline: all were listed."""
        covered = Covered(self.files, checkpoints, horizon)
        for writer, below in self.found.items():
            covered.know(writer, below.transactions)
        return covered

    def _set_aside(self) -> Iterator[Finding]:
        """Name what is set aside, but for what was pruned."""
        for ref in sorted(set_aside(self.files.asides.values())):
            if self.kept.has(*ref) or (ref.writer in self.found and ref.head in self.found[ref.writer].transactions):
                _, maintainer, *_ = self.files.asides[ref].stamp
                text = f"{maintainer} has set it aside: it counts as a transaction without events, and nobody reads it."
                yield Finding("SET_ASIDE", self.name_of_transaction(ref), text, (revision(ref.writer, ref.head.revision),))

    @cached_property
    def _unclosed(self) -> Mapping[Ref, Sequence[Ref]]:
        """What plain writers' checkpoints name as read and is not there."""

        def is_there(ref: Ref) -> bool:
            listed = ref.writer in self.found and ref.head in self.found[ref.writer].transactions
            return listed or self.files.is_aside(*ref) or not self.kept.has(*ref)

        return read_of_nothing(self._agreeing, self.log, is_there)

    @cached_property
    def _agreeing(self) -> list[Checkpoint]:
        """The checkpoints that readers do not pass over for what is set aside."""
        passed_over = {checkpoint.ref for checkpoint in self.covered_by(self.checkpoints, self.horizon).disagreeing()}
        return [checkpoint for checkpoint in self.checkpoints if checkpoint.ref not in passed_over]

    def _refer(self, name: str, reference: SegmentReference) -> None:
        known = self.segments.setdefault(reference.place, References())
        known.by.append(name)
        known.described.append(reference)

    def _named_by_checkpoints(self) -> dict[Ref, str]:
        named: dict[Ref, str] = {}
        if self.horizon is not None and (link := self.horizon.boundary.checkpoint) is not None:
            name = self.name_of(link.ref)
            named |= dict.fromkeys(self.horizon.cut.refs(), name)
        for checkpoint in self._agreeing:
            name = self.name_of(checkpoint.ref)
            nowhere = frozenset(self._unclosed.get(checkpoint.ref, ()))
            refs = [*checkpoint.cut.refs(), *(ref for ref in checkpoint.reads.refs() if ref not in nowhere)]
            named |= dict.fromkeys(refs, name)
            for writer, coverage in checkpoint.coverage.items():
                named |= dict.fromkeys([Ref(writer, head) for head in coverage.recent | coverage.branches], name)
        return named

    def definitions_with(self, more: Iterable[Definition] = ()) -> Definitions:
        """What the tables are, by what was found and more."""
        given = [*more, *(definition for t in self.log.values() for definition in t.definitions)]
        given += [definition for checkpoint in self.checkpoints for definition in checkpoint.definitions]
        carried = [witness for checkpoint in self.checkpoints for witness in checkpoint.witnessed]
        witnessed = first_of([*carried, *(witness for t in self.log.values() for witness in t.witnessed)])
        return Definitions(core_tables().values(), given, witnessed=counting(witnessed, self.files.asides))

    def _read_events(self, definitions: Definitions) -> Iterator[Finding]:
        """Decode every event that transactions hold themselves."""
        refs = sorted(ref for ref, t in self.log.items() if t.events)
        check = partial(events_of_one, self.files, definitions)
        for number, found in enumerate(in_order(check, refs, threads=self._threads), 1):
            yield from found
            self._tell(f"events: {number:,} of {len(refs):,} transactions")

    def _read_segments(self, definitions: Definitions, as_known: AsKnown) -> Iterator[Finding]:
        """Read every run that a checkpoint holds, and every segment that is referred to, block by block; name the other segments."""
        order = sorted(self.segments)
        held: dict[tuple[bytes | None, str], list[tuple[BlockPlace, Checkpoint]]] = {}
        for checkpoint in self.checkpoints:
            for place in (place for inline in checkpoint.inline for place in inline.blocks):
                held.setdefault((place.data, place.only_of), []).append((place, checkpoint))

        def check_held(placed: Sequence[tuple[BlockPlace, Checkpoint]]) -> list[Finding]:
            by = [self.name_of(checkpoint.ref) for _, checkpoint in placed]
            return as_known.check(placed[0][0], by)

        for placed, wrong in zip(held.values(), in_order(check_held, [*held.values()], threads=self._threads), strict=True):
            yield from wrong
            for at in range(1, len(placed) if wrong else 0):  # whoever holds it again is told by its own name
                yield from check_held(placed[at:])
        for number, named in enumerate(order, 1):
            places, wrong = check_segment(self.files, self.segments[named], self.found)
            yield from (with_keys(finding, definitions) for finding in wrong)
            check = partial(as_known.check, by=self.segments[named].by)
            for found in in_order(check, places, threads=self._threads):
                yield from found
            self._tell(f"segments: {number:,} of {len(order):,}")
        for below in self.found.values():
            for uuid, info in sorted(below.segments.items()):
                if (below.writer, uuid) not in self.segments:
                    yield Finding(
                        "UNREFERENCED_SEGMENT", info.name, f"Nothing that readers go by refers to its {info.size:,} bytes."
                    )

    @property
    def _threads(self) -> int:
        """As many as pay for the store and for decoding."""
        return max(self.files.concurrency, int(pa.cpu_count()))
