"""Retiring writers: a checkpoint of everybody by a compactor says that they commit no more, and later ones seal their timelines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import limits
from ..checkpoint.publish import CheckpointResult
from ..checkpoint.retiring import last_commit, refuse_unfit
from ..log.view import LogView
from ..query.database import Database
from ..write.writer import Writer


@dataclass(frozen=True, slots=True)
class RetiredWriter:
    """One writer with the last commit of its timeline.

    It is ``retired`` where a checkpoint says that it commits no more, and ``sealed`` where nothing of it can arrive and nobody asks for it.
    """

    writer: str
    revision: int
    commit_time: int
    retired: bool
    sealed: bool


@dataclass(frozen=True, slots=True)
class Retired:
    """What has become of writers, and the checkpoint that was written for it, None where none was.

    ``seals_at``, in microseconds, is when a checkpoint of everybody can seal those that are not yet; None where there are none.
    """

    writers: tuple[RetiredWriter, ...]
    seals_at: int | None = None
    checkpoint: CheckpointResult | None = None


def retire(opened: Database, held: Writer | None, writers: Sequence[str]) -> Retired:
    """Have a checkpoint of everybody, written by the compactor ``held``, say that these writers are retired; without one only look.

    Nothing is written where all of them are sealed. Errors as of ``refuse_unfit``, and then none is retired.
    """
    view = opened.look().view
    refuse_unfit(view, opened.name, writers)
    if held is None or not {*writers} - view.sealed:
        return Retired(_found(view, writers))
    written = held.checkpoint(scope="all", retire=writers)
    after = opened.look().view
    found = _found(after, writers)
    since = [each.since or after.observed for c in after.checkpoints for each in c.retired if not each.sealed]
    seals_at = None if all(each.sealed for each in found) else max(since, default=after.observed) + limits.SEALED_AFTER
    return Retired(found, seals_at, written)


def _found(view: LogView, writers: Sequence[str]) -> tuple[RetiredWriter, ...]:
    last = {writer: last_commit(view, writer) for writer in writers}
    return tuple(
        RetiredWriter(w, head.revision, head.commit_time, w in view.retired, w in view.sealed) for w, head in last.items()
    )
