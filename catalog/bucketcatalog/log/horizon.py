"""The horizon: the cut before which history may have been deleted, and the checkpoint that holds its state.

A cut that contains the horizon's reads as ever: what was deleted is covered by the horizon's checkpoint. Of any other nobody can tell what
is missing, so it is refused. What a maintainer's newest boundary says counts from its publication on, long before anything is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..errors import CorruptionError, HistoryPruned
from ..format.checkpoints import Checkpoint
from ..format.records import Boundary
from ..model.cuts import Cut
from ..model.paths import checkpoint as checkpoint_path
from ..model.times import shown_time
from ..wording import either
from .files import LogFiles
from .trust import counts, is_trusted

FROM_THEN_ON = "Read a time from then on, or a version that contains that one."
"""What always helps who asks for something that lies before the horizon."""


def begin_anew() -> str:
    """What helps who asks for changes of which some lie before it."""
    return (
        "Begin anew from a time or a version from then on, with its state where that is wanted, and follow the changes from there. "
        f"A pin keeps them for who is slow: {either('Writer.pin', 'bucketcatalog pin CATALOG NAME')}."
    )


def floors_of(checkpoint: Checkpoint, earlier: Mapping[str, int]) -> dict[str, int]:
    """The revisions before which a checkpoint as the horizon allows transactions to be deleted, or an ``earlier`` boundary did.

    A checkpoint may list a timeline from an earlier revision than the one before it did, where a transaction arrived late.
    """
    return {writer: max(coverage.list_from, earlier.get(writer, 0)) for writer, coverage in checkpoint.coverage.items()}


@dataclass(frozen=True)
class Horizon:
    """The boundary of the history that counts; its checkpoint is read when something is asked that the boundary does not say."""

    boundary: Boundary
    files: LogFiles = field(compare=False, repr=False)

    @property
    def cut(self) -> Cut:
        """What may have been deleted lies in this cut."""
        return self.boundary.horizon

    @property
    def time(self) -> int:
        """Microseconds: the newest commit time in the cut of what is not voided. States of this time and later ones can be read.

        Where the checkpoint, which knows what is voided, cannot be read, the newest of all.
        """
        return self.checkpoint.as_of if self.is_readable else self.cut.newest_commit_time

    @property
    def is_readable(self) -> bool:
        """Whether its own checkpoint can be read; where another one reaches it, nothing else needs that."""
        try:
            return self.checkpoint is not None
        except CorruptionError:
            return False

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint of the cut; ``CorruptionError`` where it is not the one that the boundary names."""
        link = self.boundary.checkpoint
        found = None if link is None else self.files.checkpoint(*link.ref)
        is_it = found is not None and is_trusted(found.writer) and counts(found) and found.cut == self.cut
        if link is None or found is None or not is_it or found.digest != link.digest:
            name = "The checkpoint" if link is None else checkpoint_path(link.writer, self.files.database, link.head)
            raise CorruptionError(
                f"{name} is not the checkpoint that the boundary of {shown_time(self.boundary.stamp.commit_time)} names.",
            )
        return found

    @property
    def is_marked(self) -> bool:
        """Whether a marker leads to its own checkpoint: where none does ``repair`` has dropped it, and another one reaches it."""
        link = self.boundary.checkpoint
        return link is not None and self.files.is_marked(*link.ref)

    def is_own(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint is the horizon's own, which need not be there any more to be known."""
        link = self.boundary.checkpoint
        return link is not None and checkpoint.ref == link.ref

    def floor(self, writer: str) -> int:
        """The writer's first revision that was kept whatever it was by this boundary and all before it."""
        return self.boundary.floors.get(writer, 0)

    def refusal(self, what: str, next_step: str = FROM_THEN_ON) -> HistoryPruned:
        """The error for something that lies before the horizon."""
        return HistoryPruned(
            f"{what} lies before {shown_time(self.time)}: the history before then was pruned by {self.boundary.stamp[1]!r}, "
            f"up to the version {self.cut}.",
            next_step=next_step,
        )
