"""Pruning: history that no retained cut needs is deleted, always in the same order.

A maintainer publishes the boundary, which names the horizon and its checkpoint; from then on readers refuse cuts that do not contain it.
Once the grace period is over it looks again, gives every tag behind the horizon a checkpoint of its own, and deletes what was allowed.
A pin whose cut does not contain a checkpoint keeps that from being the horizon: what was committed after the pin can be read on.
It can die at any moment: whoever prunes next finds what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial

from .. import limits
from ..checkpoint.merge import run_task
from ..checkpoint.plan import prepare_kept, view_to_keep
from ..checkpoint.publish import publish
from ..errors import BucketCatalogError, HistoryPruned, InvalidVersion, MissingObject
from ..format.checkpoints import Checkpoint
from ..format.records import Boundary, CheckpointLink, PinEntry
from ..log.ancestry import lies_within, version_view
from ..log.between import refuse_pruned, rests_on_what_is_gone
from ..log.coverage import Covered
from ..log.entries import tags_of, tags_that_hold
from ..log.files import FilesWithout, LogFiles
from ..log.horizon import Horizon, floors_of
from ..log.pins import pins_in, pins_that_hold
from ..log.pruned import KeptCheckpoints, may_be_dropped
from ..log.trust import is_trusted
from ..log.view import LogView
from ..model.cuts import Cut, Ref
from ..model.names import is_data_writer, is_maintainer
from ..query.database import Database
from ..store.retry import for_seconds, retry
from ..write.pins import Pin
from ..write.writer import Writer
from .retention import Retention, StoredFiles, of_everyone, possible_horizons
from .verdict import Keeper, Prunable, Staying, StoredKind, Verdict, all_staying, judged
from .verify.checkpoints import check_blocks


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What a prune has done, or without ``done`` what it would do; times are in microseconds.

    ``files`` are deleted by this run, those that are published by it too where there is no grace period. ``waiting`` go when the boundary
    that was ``published`` is old enough, from ``due`` on, or when one was published. ``horizon`` is the version from which on history
    stays, ``horizon_time`` its newest commit time. ``needs_checkpoint``: nobody has written a newer checkpoint of every writer's cut, so
    this run does. ``kept`` is what keeps the other files, and how many; ``pins`` are those that keep history which the ages would let go.
    ``tags`` are the versions of tags that get a checkpoint.
    ``unreadable`` are the tags that can get none, for what they name is not there, as in a clone what the tags of its source name, or is no
    version, as a plain writer may say.
    """

    done: bool
    files: tuple[Prunable, ...] = ()
    waiting: tuple[Prunable, ...] = ()
    horizon: str | None = None
    horizon_time: int | None = None
    published: int | None = None
    due: int | None = None
    needs_checkpoint: bool = False
    kept: tuple[Staying, ...] = ()
    pins: tuple[Pin, ...] = ()
    tags: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """The size of ``files``."""
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The next horizon, if there is one, and else what keeps what lies after the last one.

    ``needs_checkpoint``: there is no younger checkpoint that could become one later. ``held`` are the pins without which it would be later.
    """

    horizon: Checkpoint | None
    needs_checkpoint: bool
    keeper: Keeper
    held: tuple[PinEntry, ...] = ()


class Pruning:
    """One run over a database. Without a ``writer``, a maintainer's, it is a dry one."""

    def __init__(
        self, database: Database, policy: Retention, writer: Writer | None, tell: Callable[[int], None] = lambda _: None
    ) -> None:
        self._database = database
        self._policy = policy
        self._writer = writer
        self._tell = tell
        self._deleted = 0
        self._lost: set[Cut] = set()
        self._damaged: set[Ref] = set()
        self._follows: dict[Cut, bool] = {}

    @property
    def _files(self) -> LogFiles:
        """The log, as far as it is known by now what is set aside."""
        return self._database.files

    def run(self, *, force: bool) -> PruneResult:
        """Delete what was allowed long enough ago, and publish what the policy allows from now on."""
        view = self._database.view()
        self._policy.check(view.lateness_bound, force=force)
        result = PruneResult(done=self._writer is not None)
        if view.horizon is not None:
            result = self._within(result, view, view.horizon)
            if not self._is_due(view.horizon):
                return result
        result = self._advance(result)
        entries = [tag.latest for tag in tags_of(view).values() if not tag.latest.dropped]
        return replace(result, unreadable=tuple(entry.name for entry in entries if entry.cut in self._lost))

    def _now(self) -> int:
        """The store's time; who deletes goes by no other."""
        return self._files.store.now_us() if self._writer is None else self._files.time_for(self._writer.id)

    def _within(self, result: PruneResult, view: LogView, horizon: Horizon) -> PruneResult:
        """What the published boundary allows: deleted if it is old enough, else waiting."""
        result = replace(
            result,
            horizon=str(horizon.cut),
            horizon_time=horizon.time,
            published=horizon.boundary.stamp.commit_time,
            due=horizon.boundary.stamp.commit_time + self._policy.grace,
        )
        if not horizon.is_readable or self._is_damaged(horizon):
            return result  # by this one nothing goes any more, and the next one needs it for nothing
        is_due = self._is_due(horizon)  # asked first: what others have published until then, made of what goes, is listed
        kept = self._keep_tags(view, horizon.checkpoint) if is_due else ()
        stored = StoredFiles.listed(self._files)
        verdict = self._judged(stored, view, horizon.checkpoint)
        result = replace(result, kept=verdict.staying)
        if not is_due:
            return replace(result, waiting=verdict.going)
        going = tuple(_in_turn(verdict.going, stored, horizon))
        if going and horizon.is_marked and (error := self._files.unreadable_segment(horizon.checkpoint)) is not None:
            raise error  # what goes may be all that it can be replaced by
        self._delete(going)
        return replace(result, files=result.files + going, tags=result.tags + kept)

    def _advance(self, result: PruneResult) -> PruneResult:
        """Publish the next horizon that the policy allows, if there is one; with no grace period also delete."""
        stored, view = StoredFiles.listed(self._files), self._database.view()
        choice = self._choose(stored, view)
        result = replace(result, needs_checkpoint=choice.needs_checkpoint)
        if choice.needs_checkpoint and self._writer is not None and self._writer.checkpoint(scope="all") is not None:
            stored, view = StoredFiles.listed(self._files), self._database.view()
            choice = self._choose(stored, view)
        chosen, result = choice.horizon, replace(result, pins=tuple(map(Pin.of, choice.held)))
        if chosen is None:
            return replace(result, kept=_by_policy(result.kept, choice.keeper, stored, view.horizon))
        verdict = self._judged(stored, view, chosen)
        going = verdict.going
        tags = self._keep_tags(view, chosen)
        if self._writer is None:
            deleted = {file.name for file in result.files}
            more = tuple(file for file in going if file.name not in deleted)
            at_once = not self._policy.grace  # as the run does that publishes it
            result = replace(result, files=result.files + more) if at_once else replace(result, waiting=more)
            result = replace(result, kept=verdict.staying, tags=tags, published=None, due=None)
            return replace(result, horizon=str(chosen.cut), horizon_time=chosen.as_of)
        link = CheckpointLink(chosen.writer, chosen.revision, chosen.uuid, chosen.digest)
        floors = floors_of(chosen, view.horizon.boundary.floors if view.horizon is not None else {})
        self._writer.bound("prune", Boundary(horizon=chosen.cut, checkpoint=link, first=_first(going), floors=floors))
        view = self._database.view()
        assert view.horizon is not None
        return self._within(replace(result, tags=result.tags + tags), view, view.horizon)

    def _choose(self, stored: StoredFiles, view: LogView) -> _Choice:
        """The next horizon, if there is one: a compactor's or a maintainer's, for what a plain writer says of others counts for nobody.

        None without a marker can be: nobody reads it, and ``repair`` may have dropped it since its segments are damaged.
        """
        every = [c for (writer, head), (c, _) in stored.checkpoints.items() if head in stored.markers.get(writer, {})]
        alone = ((c, Covered(self._files, [c], view.horizon)) for c in every if is_trusted(c.writer))
        checkpoints = [c for c, covered in alone if not covered.unaware(view.voids) and not covered.disagreeing()]
        firsts = ((writer, next(stored.transactions(writer), None)) for writer in stored.timelines if is_data_writer(writer))
        began = {writer: first[0].commit_time for writer, first in firsts if first is not None}
        horizon, covering = view.horizon, of_everyone(checkpoints, began)
        chosen, held = self._held_back(possible_horizons(checkpoints, began, self._now(), self._policy), view)
        newest = covering[-1] if covering else None
        is_used = newest is not None and newest.cut in {c.cut for c in (chosen, horizon) if c is not None}
        later = [horizon is None or c.as_of > horizon.time for c in covering]
        may_go = later[: len(later) - (self._policy.keep - 1)]
        keeper = Keeper.AGE if any(may_go) else Keeper.KEEP if any(later) else Keeper.CHECKPOINT
        keeper = Keeper.PIN if held else keeper
        return _Choice(chosen, newest is None or (is_used and _is_beyond(view, newest)), keeper, held)

    def _held_back(self, possible: list[Checkpoint], view: LogView) -> tuple[Checkpoint | None, tuple[PinEntry, ...]]:
        """The newest that no pin keeps from being the next horizon, if there is one, and the pins that keep newer ones from it."""
        holding, held = pins_that_hold(pins_in(view).values(), self._now(), self._policy.pins), tuple[PinEntry, ...]()
        last, reaching = view.horizon, Covered(self._files, (), view.horizon)
        for checkpoint in possible:
            if last is not None and (checkpoint.cut == last.cut or not reaching.reaches(checkpoint)):
                break
            keeping = tuple(pin for pin in holding if self._keeps(pin, checkpoint, view))
            if not keeping:
                return checkpoint, held
            held = held or keeping
        return None, held

    def _keeps(self, pin: PinEntry, checkpoint: Checkpoint, view: LogView) -> bool:
        """Whether what a pin holds could not be read any more with the checkpoint as the horizon."""
        try:
            if lies_within(self._files, checkpoint, pin.cut, view.horizon):
                return False
        except MissingObject:
            pass  # nobody can tell
        if pin.cut not in self._follows:
            self._follows[pin.cut] = self._can_be_followed(pin, view.horizon)
        return self._follows[pin.cut]

    def _can_be_followed(self, pin: PinEntry, horizon: Horizon | None) -> bool:
        """Whether what was committed after a pin's cut can be read now: where it cannot, a pin helps nobody.

        But what is missing and was not pruned may be put back, and a maintainer's pin holds for as long.
        """
        try:
            refuse_pruned(self._files, version_view(self._files, pin.cut, horizon))
        except HistoryPruned:
            return False
        except (InvalidVersion, MissingObject):
            return is_maintainer(pin.stamp.writer)
        return True

    def _judged(self, stored: StoredFiles, view: LogView, horizon: Checkpoint) -> Verdict:
        return judged(stored, view, horizon, now=self._now(), policy=self._policy)

    def _is_due(self, horizon: Horizon) -> bool:
        grace = self._policy.grace
        return not grace or self._now() >= horizon.boundary.stamp.commit_time + grace

    def _keep_tags(self, view: LogView, horizon: Checkpoint) -> tuple[str, ...]:
        """Give what each tag holds that may lie behind the horizon a checkpoint of exactly its cut; returns the versions that had none."""
        pins = tags_that_hold(tags_of(view).values(), self._now(), self._policy.pins)
        maintained = {pin.cut for pin in pins if is_maintainer(pin.stamp.writer)}
        behind = [cut for cut in sorted({pin.cut for pin in pins}, key=str) if not _contains(cut, horizon, view)]
        if not behind:
            return ()
        kept = KeptCheckpoints.listed(self._files)
        lacking = [cut for cut in behind if not self._is_kept(kept, cut, view)]
        files, sound = self._without(self._damaged, view.horizon)
        asked = (cut for cut in lacking if cut not in self._lost)
        self._lost |= {cut for cut in asked if self._is_lost(files, cut, sound, is_maintained=cut in maintained)}
        lacking = [cut for cut in lacking if cut not in self._lost]
        if self._writer is not None:
            for cut in lacking:
                prepared = prepare_kept(files, self._writer.id, cut, sound)
                publish(self._files, prepared, [run_task(self._files.store, task) for task in prepared.tasks])
        return tuple(map(str, lacking))

    def _is_damaged(self, horizon: Horizon) -> bool:
        """Whether ``repair`` has dropped the horizon's own checkpoint, which is looked at whole then, and it can be read but in part."""
        if (
            horizon.checkpoint.ref not in self._damaged
            and not horizon.is_marked
            and any(check_blocks(self._files, horizon.checkpoint))
        ):
            self._damaged.add(horizon.checkpoint.ref)
        return horizon.checkpoint.ref in self._damaged

    def _without(self, damaged: Collection[Ref], horizon: Horizon | None) -> tuple[LogFiles, Horizon | None]:
        """The log without these checkpoints, and the horizon, which has none of them for its own."""
        if not damaged:
            return self._files, horizon
        files = FilesWithout(self._files.store, self._files.database, damaged).aware(self._files.asides)
        return files, None if horizon is None else Horizon(horizon.boundary, files)

    def _is_kept(self, kept: KeptCheckpoints, cut: Cut, view: LogView) -> bool:
        """Whether there is a checkpoint of exactly this cut; the error of one that may be it, and without which the cut cannot be read.

        One that ``repair`` may have dropped is looked at whole: what is deleted next may be all that it can be replaced by.
        """
        found = kept.of(cut)
        if found is not None and not (may_be_dropped(found) and any(check_blocks(self._files, found))):
            return True
        files, horizon = self._without(self._damaged | ({found.ref} if found is not None else set()), view.horizon)
        damaged = (kept if found is None else KeptCheckpoints(files, kept.refs)).unread_of(cut)
        if damaged is not None:
            try:
                view_to_keep(files, cut, horizon)
            except BucketCatalogError:
                raise damaged from None
        if found is not None:
            self._damaged.add(found.ref)
        return False

    def _is_lost(self, files: LogFiles, cut: Cut, horizon: Horizon | None, *, is_maintained: bool) -> bool:
        """Whether the cut cannot be read for what was deleted; where something else is missing too, it may yet be put back.

        What no maintainer has named may be anything: where something of it is not there, or it is not closed, it keeps nobody from pruning.
        """
        if horizon is None and is_maintained:
            return False
        try:
            found = view_to_keep(files, cut, horizon)
        except (InvalidVersion, MissingObject):
            return not is_maintained or (horizon is not None and rests_on_what_is_gone(files, cut, horizon))
        return not is_maintained and found.cut != cut

    def _delete(self, going: tuple[Prunable, ...]) -> None:
        """Delete the files, those of one kind before those of the next; of each timeline one transaction after the other."""
        if self._writer is None:
            return
        for kind in StoredKind:
            of_kind = [file for file in going if file.kind is kind]
            batches = [[file for file in of_kind if file.writer == w] for w in dict.fromkeys(file.writer for file in of_kind)]
            if kind is not StoredKind.TRANSACTION:
                batches = [[file] for file in of_kind]
            self._files.map(self._delete_in_turn, batches)

    def _delete_in_turn(self, files: LogFiles, batch: list[Prunable]) -> None:
        for file in batch:
            retry(partial(files.store.delete, file.name), for_seconds(limits.PATIENCE_SECONDS))
            self._deleted += 1
            self._tell(self._deleted)


def _by_policy(kept: tuple[Staying, ...], keeper: Keeper, stored: StoredFiles, horizon: Horizon | None) -> tuple[Staying, ...]:
    """What keeps the files where nothing later can be the horizon: what is newer is kept by that."""
    if horizon is None:
        return all_staying(stored, keeper)
    return tuple(replace(each, keeper=keeper) if each.keeper is Keeper.NEWER else each for each in kept)


def _is_beyond(view: LogView, checkpoint: Checkpoint) -> bool:
    """Whether anything but what is about the catalog itself has been committed after the checkpoint."""
    newest = checkpoint.cut.newest_revision
    by_writers = any(view.cut.newest_revision(w) > newest(w) for w in view.cut.heads if is_data_writer(w))
    return by_writers or any(t.events for t in view.tail)


def _in_turn(going: tuple[Prunable, ...], stored: StoredFiles, horizon: Horizon) -> Iterator[Prunable]:
    """Those that may go now. That deletion has begun is seen by the first transactions: where they would stay, all of the timeline does."""
    there = {(writer, head) for writer in stored.timelines for head, _ in stored.transactions(writer)}
    gone = {(file.writer, file.head) for file in going}
    first = set(horizon.boundary.first.refs())
    staying = {writer for writer, head in (first & there) - gone} - {writer for writer, head in first - there}
    return (file for file in going if file.kind is not StoredKind.TRANSACTION or file.writer not in staying)


def _first(going: tuple[Prunable, ...]) -> Cut:
    """For each timeline the transactions with the lowest revision that go."""
    heads = [(file.writer, file.head) for file in going if file.kind is StoredKind.TRANSACTION and file.head is not None]
    lowest: dict[str, int] = {}
    for writer, head in heads:
        lowest[writer] = min(head.revision, lowest.get(writer, head.revision))
    return Cut.of((writer, head) for writer, head in heads if head.revision == lowest[writer])


def _contains(cut: Cut, horizon: Checkpoint, view: LogView) -> bool:
    """Whether the cut certainly contains the checkpoint's: of timelines without forks the later head has all that the earlier has."""
    forked = {fork.writer for fork in view.forks} | {writer for writer, c in horizon.coverage.items() if c.branches}
    for writer, heads in horizon.cut.heads.items():
        own = cut.of_writer(writer)
        if own != heads and (len(own) != 1 or len(heads) != 1 or writer in forked or own[0].revision <= heads[0].revision):
            return False
    return True
