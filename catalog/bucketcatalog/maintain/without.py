"""What can be read of a database without the checkpoints that cannot be trusted.

Mostly that is found as ever. Where the horizon's own checkpoint is among them, and no other reaches it, what it was made from may still be
there: what a boundary allows is deleted after its grace period, and not at all without its checkpoint. Then an earlier boundary's
checkpoint, or the beginning, and all transactions since say the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from ..errors import UNREADABLE
from ..format.checkpoints import Checkpoint
from ..format.records import Boundary
from ..log.coverage import Covered
from ..log.discovery import whole_view
from ..log.files import ChosenFiles, FilesWithout
from ..log.horizon import Horizon
from ..log.view import LogView
from ..model.cuts import Ref
from ..store.base import Store
from .verify.walk import Walk


class FilesSince(ChosenFiles):
    """The log as it was while ``boundary`` was the last one: with its checkpoint alone, or with None from the beginning and without any.

    No other checkpoint is used: of what one covers by revision alone a later boundary may have let a transaction go, and then another one
    stands there alone.
    """

    def __init__(self, store: Store, database: str, boundary: Boundary | None) -> None:
        link = boundary.checkpoint if boundary is not None else None
        super().__init__(store, database, lambda ref: link is not None and ref == link.ref)
        self._boundary = boundary

    def heeds(self, boundary: Boundary) -> bool:
        """Whether it is that boundary, or was published before it."""
        return self._boundary is not None and boundary.stamp <= self._boundary.stamp


@dataclass(frozen=True, slots=True)
class Remains:
    """What is left, by its ``files``, and the newest ``view`` of it, if there is any.

    ``instead`` is what a checkpoint is to be made from, and no other, that readers, who heed the newest boundary, need before they can read
    anything; None where they need none. An ``obstacle`` says why the view does not hold all that the broken checkpoints covered.
    """

    files: ChosenFiles
    view: LogView | None
    instead: tuple[Checkpoint, ...] | None = None
    obstacle: str = ""


def remains(walk: Walk, without: FilesWithout, broken: Collection[Ref]) -> Remains:
    """What there is ``without`` the ``broken`` checkpoints."""
    found = _read(without, walk, broken)
    if not found.obstacle or walk.horizon is None:
        return found
    for boundary in (*_earlier(walk, walk.horizon.boundary, broken), None):
        replayed = _read(FilesSince(without.store, without.database, boundary), walk, broken)
        if replayed.view is not None and not replayed.obstacle and _holds_horizon(replayed.files, replayed.view, walk.horizon):
            return replace(replayed, instead=replayed.view.checkpoints)
    return found


def _read(files: ChosenFiles, walk: Walk, broken: Collection[Ref]) -> Remains:
    """What these files say, and if it does not hold all that the broken checkpoints covered why not."""
    try:
        view = whole_view(files)
    except UNREADABLE as error:
        return Remains(files, None, obstacle=f"What it covers is not all there without it: {error.message}")
    for checkpoint in walk.checkpoints:
        if checkpoint.ref in broken:
            for writer, heads in checkpoint.cut.heads.items():
                if max(heads).revision > view.cut.newest_revision(writer):
                    return Remains(files, view, obstacle=f"It covers revision {max(heads).revision} of {writer}, which is gone.")
    return Remains(files, view)


def _earlier(walk: Walk, newest: Boundary, broken: Collection[Ref]) -> Iterator[Boundary]:
    """The boundaries before the newest whose checkpoints are there and can be trusted, newest first."""
    boundaries = [t.boundary for t in walk.log.values() if t.boundary is not None]
    boundaries += [boundary for checkpoint in walk.checkpoints for boundary in checkpoint.boundaries]
    trusted = {checkpoint.ref for checkpoint in walk.checkpoints} - set(broken)
    by_stamp = {boundary.stamp: boundary for boundary in boundaries if boundary.stamp < newest.stamp}
    for stamp in sorted(by_stamp, reverse=True):
        link = by_stamp[stamp].checkpoint
        if link is not None and link.ref in trusted:
            yield by_stamp[stamp]


def _holds_horizon(files: ChosenFiles, view: LogView, horizon: Horizon) -> bool:
    """Whether each head of the horizon's cut is there: heads are never deleted, and what follows one leads to it and all before it."""
    tail = {t.ref for t in view.tail}
    covered = Covered(files, view.checkpoints, view.horizon)
    return all(ref in tail or covered.holds(*ref) for ref in horizon.cut.refs())
