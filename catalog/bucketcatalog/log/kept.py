"""What is there for tags behind the horizon: the checkpoints that maintainers keep for them."""

from __future__ import annotations

from dataclasses import dataclass

from ..codec.checkpoints import Checkpoint
from ..cut import Cut
from ..names import is_maintainer
from .files import LogFiles
from .gathering import Ref


@dataclass(frozen=True, slots=True)
class KeptCheckpoints:
    """Where the checkpoints lie that may be kept for tags, listed once; they are read when they are asked for.

    They lie at a maintainer's first revision, without a marker: who looks for the newest state does not meet them.
    """

    files: LogFiles
    refs: tuple[Ref, ...]

    @classmethod
    def listed(cls, files: LogFiles) -> KeptCheckpoints:
        """Those of all maintainers."""
        maintainers = filter(is_maintainer, files.writers())
        return cls(files, tuple((writer, head) for writer in maintainers for head in files.checkpoints_at(writer, 0)))

    def of(self, cut: Cut) -> Checkpoint | None:
        """The checkpoint of exactly this cut, if there is one."""
        refs = [ref for ref in self.refs if ref[1].commit_time <= cut.newest_commit_time]
        for ref in sorted(refs, key=lambda ref: -ref[1].commit_time):  # older than the cut only where something in it is voided
            if (found := self.files.checkpoint(*ref)).cut == cut:
                return found
        return None
