"""Jobs of systems: work that grows with the data, planned and committed in one place, its tasks done by whoever can."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Protocol

from .. import limits
from ..errors import InvalidOption, StaleRead
from ..model.names import MAINTAINER_PREFIX
from ..model.times import shown_age
from ..query.snapshot import Snapshot
from ..store.base import Store
from ..write.writer import Writer


class JobTask(Protocol):
    """A part of a job that one process does by itself, wherever it runs: picklable. What it returns is picklable too."""

    def run(self, store: Store) -> Any:
        """Do it; it may be done twice, or done and not told of."""
        ...


class Planned(Protocol):
    """A job that has been planned: tasks for whoever does them, and what is committed of what they have come to."""

    tasks: Sequence[JobTask]

    def finish(self, outcomes: Sequence[Any]) -> Any:
        """Commit what the tasks have come to, in any order; what it returns is what the job's user gets."""
        ...


RunTasks = Callable[[Sequence[JobTask], Store], Sequence[Any]]


def in_turn(tasks: Sequence[JobTask], store: Store) -> list[Any]:
    """What the tasks come to, done one after the other by this process."""
    return [task.run(store) for task in tasks]


@dataclass(frozen=True)
class Job:
    """Work that grows with the data: planned and finished by one process, done by many.

    ``plan`` is called with a snapshot of now, the writer that is to commit, and the job's options; ``InvalidOption`` for those that it
    does not take. ``role`` is what the writer is called by default: ``compactor-`` or ``maintainer-`` and the machine's name.
    """

    plan: Callable[..., Planned]
    role: str = MAINTAINER_PREFIX

    def done(self, name: str, snapshot: Snapshot, writer: Writer, run: RunTasks, options: Mapping[str, Any]) -> Any:
        """What the job called so comes to: planned, its tasks done by ``run``, finished.

        ``InvalidOption`` for an option that it does not take; ``StaleRead`` where its tasks took so long that what they wrote may be gone.
        """
        takes = signature(self.plan)
        try:
            takes.bind(None, None, **options)
        except TypeError as error:
            known = ", ".join(list(takes.parameters)[2:]) or "none"
            raise InvalidOption(f"The job {name!r} cannot be run so: {error}.", next_step=f"Its options are {known}.") from None
        planned, store = self.plan(snapshot, writer, **options), snapshot.files.store
        outcomes = run(planned.tasks, store)
        took = store.now_us() - snapshot.view.observed
        if took > limits.MAX_SNAPSHOT_AGE:
            raise StaleRead(
                f"The job {name!r} took {shown_age(took)}, and what it has read and written may be gone.",
                next_step=f"Run it again, so that it takes less than {shown_age(limits.MAX_SNAPSHOT_AGE)}.",
            )
        return planned.finish(outcomes)
