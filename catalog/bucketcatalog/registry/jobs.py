"""Jobs of systems: work that grows with the data, planned and committed in one place, its tasks done by whoever can."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import InvalidOption
from ..model.names import MAINTAINER_PREFIX
from ..query.blame import blaming, failed, shown
from ..store.base import Store

if TYPE_CHECKING:
    from ..write.writer import Writer

NOT_OPTIONS = frozenset({"catalog", "clock", "database", "job", "run", "self", "spark", "storage_options", "writer"})
"""What ``Catalog.run_job`` and Spark's ``jobs.run`` take themselves: no option of a job can be called so."""


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
class TaskOfSystem:
    """A task of a system's job, whose failures are the system's wherever it runs."""

    system: str
    job: str
    task: JobTask

    def run(self, store: Store) -> Any:
        """See ``JobTask``."""
        with blaming(self.system, f"a task of its job {self.job!r}"):
            return self.task.run(store)


@dataclass(frozen=True)
class Job:
    """Work that grows with the data: planned and finished by one process, done by many.

    ``plan`` is called with a snapshot of now, the writer that is to commit, and the job's options; ``InvalidOption`` for those that it
    does not take. ``role`` is what the writer is called by default: ``compactor-`` or ``maintainer-`` and the machine's name.
    """

    plan: Callable[..., Planned]
    role: str = MAINTAINER_PREFIX

    def done(self, name: str, writer: Writer, run: RunTasks, options: Mapping[str, Any]) -> Any:
        """What the job called ``SYSTEM.JOB`` comes to: planned, its tasks done by ``run``, finished.

        ``InvalidOption`` for an option that it does not take; ``StaleRead`` where it took so long that what it has read, and what its tasks
        wrote, may be gone when a transaction of it lands; ``BrokenSystem`` where the system's code fails.
        """
        takes = signature(self.plan)
        try:
            takes.bind(None, None, **options)
        except TypeError as error:
            known = ", ".join(list(takes.parameters)[2:]) or "none"
            raise InvalidOption(f"The job {name!r} cannot be run so: {error}.", next_step=f"Its options are {known}.") from None
        owner, snapshot = name.partition(".")[0], writer.begin_work()
        with blaming(owner, f"the plan of its job {name!r}"):
            planned = self.plan(snapshot, writer, **options)
            if not hasattr(planned, "tasks") or not callable(getattr(planned, "finish", None)):
                raise failed(
                    owner, f"the plan of its job {name!r}", f"{shown(planned)} came of it, which has no tasks and no finish"
                )
            tasks = [TaskOfSystem(owner, name, task) for task in planned.tasks]
        outcomes = run(tasks, snapshot.files.store)
        with blaming(owner, f"finishing its job {name!r}"):
            return planned.finish(outcomes)
