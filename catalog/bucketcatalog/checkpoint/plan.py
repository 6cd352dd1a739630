"""Checkpoints: the state at a cut, written as segments, so that readers need not replay what led there.

A checkpoint is only an optimisation: whatever checkpoints exist, every answer equals the one from the transactions alone. Its cost follows
what has changed: it writes what is new over the checkpoint before as a level of its own, or merged with some of its levels, and refers to
the others' segments again. Here is decided what it starts from and what its tasks merge; ``publish`` puts what comes of it.

Which levels of a table are merged is a function of their sizes alone (``lowest_merged``). Level 0 is the folded state of everything below
it; the others hold what came since, newer ones above older ones. New rows become a level of their own, merged with the levels above the
oldest of about their size or smaller once there are ``FAN_IN`` of these together. So a row is written again about once for each power of
``FAN_IN`` between a checkpoint's size and the base's, and a reader meets at most ``FAN_IN - 1`` levels of each. Once the overlay of the
base is a share of it, everything is merged, which a row pays for ``BASE_SHARE`` times.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from .. import clock
from ..errors import CorruptionError, HistoryPruned, InvalidVersion
from ..format.checkpoints import Checkpoint
from ..format.records import Witness
from ..format.runs import InlineRun, SegmentReference, StoredPart
from ..format.sealing import RUNS
from ..format.segments import Origin
from ..log.ancestry import version_view, without_ancestors
from ..log.aside import carried_by
from ..log.coverage import Covered, is_partial, may_be_deleted
from ..log.discovery import informed, newest_own, newest_view, own_view, whole_view
from ..log.entries import boundaries_of, latest_results, tags_of
from ..log.files import LogFiles
from ..log.horizon import Horizon
from ..log.pins import pins_in
from ..log.pruned import KeptCheckpoints
from ..log.timeline import Timeline
from ..log.trust import says
from ..log.view import LogView
from ..log.witnesses import definitions_of, first_of, unwitnessed, witnessed_in
from ..model.cuts import Cut, Head, Stamp
from ..state.contents import Contents
from ..wording import either
from .covering import coverages
from .merge import MergeTask, merge_parts
from .retiring import refuse_unfit, retired_in

FAN_IN = 4
BASE_SHARE = 4
SMALL_ROWS = 1_024
"""Up to so many rows a table is one level: writing them again costs no more than reading another run."""
INLINE_BYTES = 128 << 10
"""The most of its runs that a checkpoint holds itself, those that it takes over from the one before among them."""


def lowest_merged(levels: Sequence[int], new: int) -> int:
    """The lowest level that is merged with ``new`` rows, by the rows of each level from 0 on; ``len(levels)`` where none is."""
    if not levels or sum(levels) + new <= SMALL_ROWS or (sum(levels[1:]) + new) * BASE_SHARE >= levels[0]:
        return 0
    at, size = len(levels), new
    while True:
        start = at
        while start > 1 and _magnitude(levels[start - 1]) <= _magnitude(size):
            start -= 1
        if at - start < FAN_IN - 1:
            return at
        size += sum(levels[start:at])
        at = start


def _magnitude(rows: int) -> int:
    """The power of ``FAN_IN`` that so many rows reach."""
    power = 0
    while rows >= FAN_IN:
        rows, power = rows // FAN_IN, power + 1
    return power


@dataclass(frozen=True)
class Prepared:
    """A checkpoint that is decided but for what its ``tasks`` write: ``draft`` has the segments that are used again.

    ``levels`` are those of each table that what they write becomes, ``began`` is the store's time before the look, ``started`` the
    process's, ``marked`` says whether a marker leads to it, and ``parent`` is the checkpoint whose segments are used again. Its time of
    making is later than ``after``, that of the one that it is read instead of, whatever another machine's clock said. Whoever has the
    results of the tasks can ``publish`` it, whatever has been committed meanwhile.
    """

    draft: Checkpoint
    levels: Mapping[str, int]
    tasks: tuple[MergeTask, ...]
    began: int
    started: float
    marked: bool = True
    parent: Checkpoint | None = None
    after: int = 0


def prepare(
    files: LogFiles,
    timeline: Timeline,
    note: Callable[[Cut, tuple[Witness, ...]], Stamp] | None,
    *,
    full: bool = False,
    most: int = 1,
    instead: Sequence[Checkpoint] = (),
    retire: Collection[str] = (),
) -> Prepared | None:
    """A checkpoint of the timeline, or with ``note`` of every writer's, as at most ``most`` tasks; None where there is nothing to write.

    One of every writer's rests on what others' transactions say, not on what their checkpoints say of these.

    ``note`` commits a transaction without events that has read the cut, and witnesses those of its definitions that nobody has; the
    checkpoint then lies beside it. With ``full`` everything is
    merged and written again, also where nothing is new but the last checkpoint was not written so. What is read from the checkpoints
    ``instead`` of those in the store is always written, and so is one that has writers to ``retire``.
    """
    started, writer = clock.monotonic(), timeline.writer
    files = files if note is None else files.of_trusted()
    limit = files.time_for(writer) + timeline.limits.clock_skew
    files, horizon = informed(files) if not instead else (files, None)  # whose own checkpoint may be what is lost
    parent, beside = _start(files, writer, limit, horizon, alone=note is None) if not instead else (None, None)
    using = instead or [checkpoint for checkpoint in (parent, beside) if checkpoint is not None]
    if note is None:
        view = own_view(files, writer, using=using, ahead_of=limit, horizon=horizon)
    else:
        # What the transaction of this checkpoint will follow belongs to its cut, also where it is from the future and was voided.
        view = whole_view(files, using=using, ahead_of=limit, naming=[link.head for link in timeline.parents], horizon=horizon)
    if parent is not None and parent.ref not in {checkpoint.ref for checkpoint in view.checkpoints}:
        parent = None  # it covers what was voided since
    elif parent is None and beside is None and not instead:
        parent = _all_that_is_read(view, writer)
    is_known = len(view.checkpoints) == 0 or any(c.cut == view.cut for c in view.checkpoints)
    is_layered = len(view.checkpoints) > 1 or any(RUNS in checkpoint.features for checkpoint in view.checkpoints)
    if not view.tail and (is_known or beside is not None) and not instead and not (full and is_layered) and not retire:
        return None
    refuse_unfit(view, files.database, retire)
    if note is None:
        destination = _Destination(writer, max(view.cut.of_writer(writer)).revision, timeline.limits.lateness_bound)
        return _prepared(files, destination, view, _Merge(parent, full, most, started, beside))
    retired = retired_in(files, view, retire, limit)
    followed = {(writer, link.head) for link in timeline.parents}
    read = unwitnessed(definitions_of(view), view.newest_commit_time)
    stamp = note(view.cut, read)
    head = Head(stamp.revision, stamp.uuid)
    kept = [ref for ref in view.cut.refs() if ref not in followed]
    view = replace(view, cut=Cut.of([(writer, head), *kept]))
    destination = _Destination(writer, head.revision, timeline.limits.lateness_bound)
    prepared = _prepared(files, destination, view, _Merge(parent, full, most, started))
    said = [replace(witness, stamp=stamp) for witness in read]  # in the cut, and not in the view that was taken before
    witnessed = first_of([*prepared.draft.witnessed, *said])
    return replace(prepared, draft=replace(prepared.draft, witnessed=witnessed, retired=retired))


def prepare_kept(files: LogFiles, writer: str, cut: Cut, horizon: Horizon | None, *, reuses: bool = True) -> Prepared:
    """A checkpoint of a past cut in the writer's namespace, which keeps the cut readable when what it is made from is pruned.

    It lies at the first revision and has no marker, so that only who asks for this very cut meets it. Only who prunes itself ``reuses``
    segments of what it is made from: another prune may be deleting these.
    """
    started = clock.monotonic()
    view = view_to_keep(files, cut, horizon)
    if view.cut != cut:
        raise InvalidVersion(
            f"The version {cut} is not closed: to be read it is completed to {view.cut}. No checkpoint can be kept of it.",
            next_step="Give its tag to the version that it is completed to: "
            + either("catalog.tag(NAME, version=VERSION, replace=True).", "bucketcatalog tag CATALOG NAME VERSION --replace."),
        )
    parent = view.checkpoints[0] if reuses and len(view.checkpoints) == 1 else None
    destination = _Destination(writer, 0, view.lateness_bound, marked=False)
    prepared = _prepared(files, destination, view, _Merge(parent, False, 1, started))
    every = LogFiles(files.store, files.database)  # also those that are done without here
    return replace(prepared, after=KeptCheckpoints.listed(every).last_made(cut))


def view_to_keep(files: LogFiles, cut: Cut, horizon: Horizon | None) -> LogView:
    """The view of a past cut, also behind the horizon: nothing that it needs may go before it has a checkpoint of its own."""
    try:
        return version_view(files, cut, horizon)
    except (HistoryPruned, CorruptionError):
        # no checkpoint is kept of it, or none that can be read, or the horizon's own is lost
        return version_view(files, cut)


def _start(
    files: LogFiles, writer: str, limit: int, horizon: Horizon | None, *, alone: bool
) -> tuple[Checkpoint | None, Checkpoint | None]:
    """The checkpoint to start from: the writer's newest of its own timeline ``alone``, or of others' too; and one to go on beside.

    What it does not cover has to be there: from before the horizon it is gone. And it has to stay: segments of one that goes would be
    referred to again. Else it is one that reaches the horizon, or is its own; but a checkpoint of one timeline holds no more than
    that, and is made and read beside the one that does.
    """
    own = newest_own(files, writer, limit, alone=alone)
    if horizon is None:
        return own, None
    kept = None if own is not None and may_be_deleted(own, horizon) else own
    if kept is not None:
        reaching = Covered(files, [kept], horizon)
        if not alone and reaching.reaches(kept):
            return kept, None
        if alone and not is_partial(kept) and all(reaching.holds(writer, head) for head in horizon.cut.of_writer(writer)):
            return kept, None
        kept = kept if alone and is_partial(kept) else None
    reached = _reaching(files, writer, limit, horizon)
    return (kept, reached) if alone else (reached, None)


def _reaching(files: LogFiles, writer: str, limit: int, horizon: Horizon) -> Checkpoint:
    """A checkpoint that holds what the horizon's does, and stays: the writer's own, or the horizon's, or another writer's."""
    own = newest_own(files, writer, limit, alone=False)
    if own is not None and Covered(files, [own], horizon).reaches(own) and not may_be_deleted(own, horizon):
        return own
    if horizon.is_marked:
        try:
            return horizon.checkpoint
        except CorruptionError:
            pass
    reached = newest_view(files, ahead_of=limit, horizon=horizon)
    return reached.checkpoints[0]  # another writer's that reaches it; where nothing does its own, which may yet be read


def _all_that_is_read(view: LogView, writer: str) -> Checkpoint | None:
    """The view's checkpoint where it has just one, and that is the writer's: of its own timeline, as every one is while it is alone."""
    return view.checkpoints[0] if [checkpoint.writer for checkpoint in view.checkpoints] == [writer] else None


@dataclass(frozen=True, slots=True)
class _Destination:
    """Where a checkpoint lies, the lateness bound that its maker promises, and whether a marker leads to it."""

    writer: str
    revision: int
    lateness_bound: int
    marked: bool = True


@dataclass(frozen=True, slots=True)
class _Merge:
    """How a checkpoint is to be made: from which one, all of it or as ``lowest_merged`` says, in how many tasks, and since when.

    What the one ``beside`` holds it does not.
    """

    parent: Checkpoint | None
    full: bool
    most: int
    started: float
    beside: Checkpoint | None = None

    def first_revision(self, writer: str) -> int:
        """Where a checkpoint that is made beside another begins: the same as the one that it goes on from."""
        if self.beside is None:
            return 0
        return self.beside.cut.newest_revision(writer) + 1 if self.parent is None else self.parent.coverage[writer].first_revision

    def levels(self, contents: Contents) -> dict[str, int]:
        """The lowest level of each table that is merged with what is new; tables that stay as they are are absent."""
        levels: dict[str, int] = {}
        for name in contents.names:
            state = contents.state(name)
            if self.parent is None or self.full:
                levels[name] = 0
            elif state.new_rows:
                levels[name] = lowest_merged(state.level_rows, state.new_rows)
        return levels

    @property
    def parts(self) -> tuple[StoredPart, ...]:
        """The runs that there were before."""
        return () if self.parent is None else self.parent.parts

    def kept(self, levels: Mapping[str, int]) -> list[StoredPart]:
        """Those of them that are not merged: they lie below their table's level."""
        return [part for part in self.parts if part.run.level < levels.get(part.run.table, part.run.level + 1)]


def _prepared(files: LogFiles, destination: _Destination, view: LogView, merge: _Merge) -> Prepared:
    """The checkpoint of the view's cut, to be put at its destination."""
    contents = Contents(files, view)
    if merge.beside is not None:
        view = _without(files, merge.beside, view, destination.writer)
        contents = Contents(files, view, contents.definitions)
    levels = merge.levels(contents)
    draft = _draft(files, destination, view, contents, merge, levels)
    tasks = _tasks(draft, view, contents, merge, levels)
    return Prepared(draft, levels, tasks, view.observed, merge.started, destination.marked, merge.parent)


def _draft(
    files: LogFiles, destination: _Destination, view: LogView, contents: Contents, merge: _Merge, levels: Mapping[str, int]
) -> Checkpoint:
    """The checkpoint with what it says of the view, and with the runs of the parent that are not merged."""
    kept = merge.kept(levels)
    bound = max(view.lateness_bound, destination.lateness_bound)
    return Checkpoint(
        writer=destination.writer,
        database=files.database,
        revision=destination.revision,
        uuid=clock.uuid7(view.newest_commit_time).bytes,
        cut=view.cut,
        coverage=coverages(
            files,
            view,
            view.observed - 2 * bound,
            beside=merge.beside,
            first=merge.first_revision(destination.writer),
        ),
        created=0,
        lateness_bound=bound,
        definitions=tuple(each for each in contents.definitions.stamped if says(destination.writer, each.stamp[1])),
        applications=tuple(result for _, result in sorted(latest_results(view).items())),
        segments=tuple(part for part in kept if isinstance(part, SegmentReference)),
        inline=tuple(part for part in kept if isinstance(part, InlineRun)),
        tags=tuple(entry for tag in tags_of(view).values() for entry in tag.entries),
        pins=tuple(pins_in(view).values()),
        voids=tuple(view.voids.values()),
        asides=carried_by(destination.writer, view.asides),
        boundaries=boundaries_of(view).entries,
        witnessed=witnessed_in(view),
        reads=outside_reads(files, view),
        features=frozenset({RUNS} if kept or any(levels.values()) else ()),
    )


def _tasks(
    draft: Checkpoint, view: LogView, contents: Contents, merge: _Merge, levels: Mapping[str, int]
) -> tuple[MergeTask, ...]:
    """What merges and writes the rest, each a part of the keys; the runs that the draft holds itself travel with the first."""
    states = [contents.state(name).above(level) for name, level in levels.items()]
    lowest = {name for name, level in levels.items() if not level}
    every = merge_parts(states, lowest, merge.most)
    reused = {segment.uuid for segment in draft.segments}
    origin = Origin(
        draft.uuid,
        tasks=len(every),
        kept=tuple(segment.uuid for segment in draft.segments),
        replaces=tuple(part.uuid for part in merge.parts if isinstance(part, SegmentReference) and part.uuid not in reused),
    )
    tables = tuple(contents.definitions[name] for name in sorted({run.run.table for run in draft.inline}))
    room = max(INLINE_BYTES - sum(run.size for run in draft.inline), 0)
    return tuple(
        MergeTask(
            draft.writer,
            draft.database,
            view.cut,
            view.observed,
            parts,
            replace(origin, task=number) if number else replace(origin, runs=draft.inline, tables=tables),
            inline_bytes=room // len(every),
        )
        for number, parts in enumerate(every)
    )


def _without(files: LogFiles, beside: Checkpoint, view: LogView, writer: str) -> LogView:
    """The writer's part of a view without what another checkpoint holds of it."""
    held = Covered(files, [beside], view.horizon)
    return replace(
        view,
        cut=Cut({writer: view.cut.of_writer(writer)}),
        checkpoints=tuple(checkpoint for checkpoint in view.checkpoints if checkpoint.ref != beside.ref),
        voids={ref: void for ref, void in view.voids.items() if ref.writer == writer and not held.holds(*ref)},
    )


def outside_reads(files: LogFiles, view: LogView) -> Cut:
    """What the covered transactions had read of writers that the cut does not cover as far."""
    reads = Cut()
    for cut in (*(c.reads for c in view.checkpoints), *(t.reads for t in view.tail)):
        reads = reads.joined(cut)
    outside = {w: heads for w, heads in reads.heads.items() if reads.newest_revision(w) > view.cut.newest_revision(w)}
    return without_ancestors(files, Cut(outside))
