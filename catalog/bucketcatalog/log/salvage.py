"""Reading on past damage: the log with stand-ins for what cannot be read.

A transaction that is damaged or gone is stood in for by one without events, which follows whatever lies before it on the timeline, so that
everything else is found as ever. A checkpoint that is damaged, or whose segments cannot be looked into, is passed over: another one or the
transactions themselves say the same, if they are there.
"""

from __future__ import annotations

import threading
import warnings
from bisect import bisect_left
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any

from .. import limits
from ..errors import UNREADABLE, BucketCatalogError, CatalogWarning, CorruptionError, MissingObject
from ..format.checkpoints import Checkpoint
from ..format.held import revision
from ..format.losses import Losses
from ..format.records import Boundary, Link
from ..format.transactions import Transaction
from ..model import paths
from ..model.cuts import Head, Ref
from ..store.base import Store
from ..store.obstacles import PastObstacles
from .aside import Asides
from .discovery import LastLook, horizon_of, look
from .files import LogFiles, made_again
from .horizon import Horizon
from .view import LogView


class SalvagingFiles(LogFiles):
    """The log of a database as far as it can be read; ``on_damage`` has what is missing. Checkpoints in ``avoided`` are passed over.

    Not to ``heed_horizon`` is for where nothing can be read that reaches it: then what was pruned is missing like anything else.
    Checkpoints of plain writers may name so many transactions as read that are gone as are ``forgiven``; ``named`` has these and more.
    With ``past_obstacles`` what cannot be listed is missing too: that is for who only reads, not for who writes after what was found.
    """

    def __init__(
        self,
        store: Store,
        database: str,
        avoided: frozenset[Ref] = frozenset(),
        *,
        heed_horizon: bool = True,
        only_trusted: bool = False,
        past_obstacles: bool = False,
        forgiven: int = 0,
    ) -> None:
        self.on_damage = Losses()
        super().__init__(PastObstacles(store, self.on_damage.add) if past_obstacles else store, database)
        self._place = store
        self._past_obstacles = past_obstacles
        self._heed_horizon = heed_horizon
        self._only_trusted = only_trusted
        self._forgiven = forgiven
        self.named: dict[Ref, bool] = {}
        self.avoided = avoided
        self.passed_over: dict[str, BucketCatalogError] = {}
        self._timelines: dict[str, list[tuple[int, tuple[Head, ...]]]] = {}
        self._listing = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return made_again, (self._how(self._heed_horizon), (self._place, self.database, self.avoided), dict(self.asides))

    def _how(self, heed_horizon: bool) -> Callable[..., SalvagingFiles]:
        """Makes another one that reads on in the same way."""
        return partial(
            SalvagingFiles,
            heed_horizon=heed_horizon,
            only_trusted=self._only_trusted,
            past_obstacles=self._past_obstacles,
            forgiven=self._forgiven,
        )

    def heeds(self, boundary: Boundary) -> bool:
        """Whether the horizon is to be heeded."""
        return self._heed_horizon

    def without(self, checkpoints: Collection[Ref]) -> SalvagingFiles:
        """The same log, where these checkpoints are avoided too."""
        return self._anew(self.avoided.union(checkpoints), heed_horizon=self._heed_horizon)

    def without_horizon(self) -> SalvagingFiles:
        """The same log, where the horizon is not heeded."""
        return self._anew(self.avoided, heed_horizon=False)

    def _anew(self, avoided: frozenset[Ref], *, heed_horizon: bool) -> SalvagingFiles:
        """With losses of its own: what is met by one way of reading may not be by another."""
        return self._how(heed_horizon)(self._place, self.database, avoided)

    def transaction(self, writer: str, head: Head) -> Transaction:
        """The transaction, or what stands in for it."""
        try:
            return super().transaction(writer, head)
        except UNREADABLE as error:
            return self._stand_in(writer, head, error)

    def may_be_named(self, writer: str, head: Head) -> bool:
        """Whether the transaction is there, or it is forgiven that it is not: then another stands in for it."""
        ref = Ref(writer, head)
        if ref not in self.named and not super().may_be_named(writer, head):
            self.named[ref] = len(self.named) < self._forgiven
        return self.named.get(ref, True)

    def refuse(self, transaction: Transaction, why: str, *, next_step: str | None = None) -> Transaction:
        """What stands in for a transaction that is not the one that others refer to."""
        try:
            return super().refuse(transaction, why, next_step=next_step)
        except CorruptionError as error:
            return self._stand_in(transaction.writer, transaction.head, error)

    def usable_checkpoint(self, writer: str, head: Head) -> Checkpoint | None:
        """The checkpoint, or None where it is avoided or cannot be read."""
        if Ref(writer, head) in self.avoided:
            return None
        try:
            return super().usable_checkpoint(writer, head)
        except UNREADABLE as error:
            self.passed_over[paths.checkpoint(writer, self.database, head)] = error
            return None

    def _stand_in(self, writer: str, head: Head, error: BucketCatalogError) -> Transaction:
        """A transaction without events in the place of one that cannot be read, after what lies next before it."""
        before = self._before(writer, head.revision)
        last = before[0].revision if before else -1
        name = paths.transaction(writer, self.database, head)
        first = last + 1 if isinstance(error, MissingObject) else head.revision
        self.on_damage.add(name, error, [revision(writer, head.revision, first)])
        return Transaction(
            writer=writer,
            database=self.database,
            revision=head.revision,
            uuid=head.uuid,
            commit_time=head.commit_time,
            lateness_bound=limits.LATENESS_BOUND,
            parents=tuple(Link(other.revision, other.uuid, b"") for other in before[-limits.FOLLOWED :]),
            lost=True,
        )

    def _before(self, writer: str, revision: int) -> tuple[Head, ...]:
        """What is listed at the last revision before this one; a timeline is asked for once."""
        with self._listing:
            if writer not in self._timelines:
                listed = self.transactions(writer)
                self._timelines[writer] = [(at, tuple(heads)) for at, heads in groupby(listed, key=lambda head: head.revision)]
            timeline = self._timelines[writer]
        place = bisect_left(timeline, revision, key=lambda level: level[0])
        return timeline[place - 1][1] if place else ()


_FORGIVEN = 64
"""What plain writers' checkpoints may name at most that is gone, for anybody can name anything: each is asked for."""


def salvaged(store: Store, database: str, find: Callable[[LogFiles], LogView]) -> tuple[SalvagingFiles, LogView]:
    """The view that ``find`` gives of what can be read, and its files with their losses; a warning for each of these.

    Checkpoints whose segments cannot all be looked into are avoided, unless more transactions are missing without them, or nothing else
    reaches the horizon. So are those of plain writers, a block of which might be damaged, and claim to be of any keys; last those that
    name what is gone as read, which may be lost, or may never have been. Where there is no view, the warnings of what may have had it
    come before the error.
    """
    files, view = _found(SalvagingFiles(store, database, only_trusted=True, past_obstacles=True), find)
    others = files
    for forgiven in (0, _FORGIVEN):
        if _lost(view) and (not forgiven or others.named):
            others, again = _found(SalvagingFiles(store, database, past_obstacles=True, forgiven=forgiven), find)
            files, view = (others, again) if _lost(again) < _lost(view) else (files, view)
    while broken := {
        c.ref: error
        for c in view.checkpoints
        if c.ref not in files.avoided and (error := files.unreadable_segment(c)) is not None
    }:
        others = files.without(broken)
        again = find(others)
        if _lost(again) > _lost(view) or broken.keys() <= {checkpoint.ref for checkpoint in again.checkpoints}:
            break
        others.passed_over |= files.passed_over
        for checkpoint in view.checkpoints:
            if checkpoint.ref in broken:
                name = paths.checkpoint(checkpoint.writer, database, checkpoint.head)
                others.passed_over[name] = broken[checkpoint.ref]
        files, view = others, again
    _tell(files)
    return files, view


def _found(files: SalvagingFiles, find: Callable[[LogFiles], LogView]) -> tuple[SalvagingFiles, LogView]:
    """The view that ``find`` gives of the files, without the horizon where nothing can be read that reaches it."""
    try:
        try:
            return files, find(files)
        except UNREADABLE as damage:  # of the horizon's own checkpoint: all else has a stand-in
            warnings.warn(f"What was pruned is left out: {damage.message}", CatalogWarning, stacklevel=5)
            files = files.without_horizon()
            return files, find(files)
    except BucketCatalogError:
        _tell(files, called_from=6)
        raise


def asides_of(store: Store, database: str) -> Asides:
    """What is set aside, as far as it can be known beside damage; nothing where nobody can tell."""
    for heed_horizon in (True, False):
        with suppress(*UNREADABLE):
            return look(SalvagingFiles(store, database, heed_horizon=heed_horizon), LastLook())[0].asides
    return {}


def horizon_beside_damage(files: LogFiles) -> Horizon | None:
    """The horizon of now, for who asks for one timeline and not for what others have in the way; errors of the horizon's own."""
    try:
        return horizon_of(files)
    except UNREADABLE:
        found = look(SalvagingFiles(files.store, files.database), LastLook())[0].horizon
        return None if found is None else Horizon(found.boundary, files)


def _tell(files: SalvagingFiles, *, called_from: int = 5) -> None:
    """Warn of everything that could not be read, as of the call so many frames above."""
    for name, error in files.passed_over.items():
        warnings.warn(f"The checkpoint {name} is passed over: {error.message}", CatalogWarning, stacklevel=called_from)
    files.on_damage.tell(called_from=called_from)


def _lost(view: LogView) -> int:
    return sum(transaction.lost for transaction in view.tail)
