"""Systems: what one is, and how those that are installed are found.

A system is a package of tables, views, commands and more on top of the engine, which knows none of them: it is found by an entry point of
the group ``bucketcatalog.systems``, whose name is the system's, and which leads to a ``System``. What a system declares are values; its
code is named, as ``module:name``, and imported when it is needed. Nothing is imported before a name is asked for that the engine has not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from .errors import BrokenSystem, CatalogWarning, IncompatibleTable, InvalidOption
from .format.definitions import core_tables
from .model.names import MAINTAINER_PREFIX
from .model.tables import Table
from .query.database import Beside, declared
from .query.metadata import METADATA_TABLES
from .query.snapshot import DELETED_PREFIX, Snapshot
from .query.views import Reads, SqlView, View, Views
from .store.base import Store
from .write.parts import Writes

if TYPE_CHECKING:
    from .maintain.gc.data import Deleter, Deletions

GROUP = "bucketcatalog.systems"
IN_CATALOG = "path"
"""That what a table's references name is a path in the catalog, below some writer's ``data/``."""


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


@dataclass(frozen=True)
class Job:
    """Work that grows with the data: planned and finished by one process, done by many.

    ``plan`` is called with a snapshot of now, the writer that is to commit, and the job's options; ``InvalidOption`` for those that it
    does not take. ``role`` is what the writer is called by default: ``compactor-`` or ``maintainer-`` and the machine's name.
    """

    plan: Callable[..., Planned]
    role: str = MAINTAINER_PREFIX


RunTasks = Callable[[Sequence[JobTask], Store], Sequence[Any]]


def in_turn(tasks: Sequence[JobTask], store: Store) -> list[Any]:
    """What the tasks come to, done one after the other by this process."""
    return [task.run(store) for task in tasks]


@dataclass(frozen=True)
class System:
    """What a system consists of; whatever it has not is left out. Its tables are called ``NAME.TABLE``.

    ``declarations`` is the module of a compiled ``.proto``. ``names`` are what may stand before the dot of names that it reads or takes
    rows for, beside its own. ``collects`` says how data of its tables is deleted: ``IN_CATALOG`` where references are paths below writers'
    ``data/``, else a function of the catalog's store that gives a callable such as ``Catalog.collect`` takes.

    Code is named as ``module:name``: the functions of ``collects``; ``commands``, a typer app, which is ``bucketcatalog NAME ...``;
    ``reads`` and ``writes``, who answers and takes rows for names that are no tables (``Reads``, ``Writes``); ``jobs``, a mapping of
    names to ``Job``.
    """

    name: str
    declarations: ModuleType | None = None
    names: tuple[str, ...] = ()
    views: tuple[View | SqlView, ...] = ()
    commands: str = ""
    reads: str = ""
    writes: str = ""
    jobs: str = ""
    collects: Mapping[str, str] = field(default_factory=dict)

    @property
    def tables(self) -> dict[str, Table]:
        """Its tables by name."""
        return {} if self.declarations is None else {table.name: table for table in declared(self.declarations, {})}

    def check(self) -> None:
        """``BrokenSystem`` where something has a name that is not the system's to give."""
        try:
            tables = self.tables
        except IncompatibleTable as error:
            raise broken(self.name, error.message) from None
        for table in tables:
            if not table.startswith(f"{self.name}."):
                raise broken(self.name, f"its table {table!r} is not called {self.name}.TABLE")
        for view in self.views:
            if (
                not view.name.isidentifier()
                or view.name in {*METADATA_TABLES, *core_tables()}
                or view.name.startswith(DELETED_PREFIX)
            ):
                raise broken(self.name, f"no view can be called {view.name!r}")
        for name in self.collects:
            if name not in tables:
                raise broken(self.name, f"it says how data of {name!r} is deleted, which is no table of its own")

    def part(self, name: str) -> Any:
        """One of the parts that are named as code, imported; None where the system has none of these."""
        text: str = getattr(self, name)
        return imported(self.name, text) if text else None


def imported(system: str, text: str) -> Any:
    """What ``module:name`` names; ``BrokenSystem`` where that cannot be imported."""
    module, _, name = text.partition(":")
    try:
        return getattr(import_module(module), name)
    except Exception as error:  # whatever somebody else's module raises
        raise broken(system, f"{text} cannot be imported: {type(error).__name__}: {error}") from None


def broken(name: str, why: str) -> BrokenSystem:
    """The error of a system that cannot be used."""
    return BrokenSystem(
        f"The system {name!r} cannot be used: {why}.", next_step="Install a release of its package that fits this one."
    )


def system_names() -> list[str]:
    """The names of the systems that are installed, sorted; none is imported."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def system(name: str) -> System | None:
    """The installed system of a name; None without one, ``BrokenSystem`` where it cannot be used."""
    found = sorted(entry_points(group=GROUP, name=name), key=lambda point: point.value)
    if len({point.value for point in found}) > 1:
        raise broken(name, f"several packages are called so: {', '.join(point.value for point in found)}")
    return _loaded(found[0]) if found else None


def _loaded(point: EntryPoint) -> System:
    try:
        loaded = point.load()
    except Exception as error:  # whatever somebody else's package raises
        raise broken(point.name, f"{point.value} cannot be imported: {type(error).__name__}: {error}") from None
    if not isinstance(loaded, System) or loaded.name != point.name:
        raise broken(point.name, f"{point.value} is no System of that name")
    loaded.check()
    return loaded


class Registry:
    """What a catalog knows beside what it holds: tables that its user has registered, and the systems that are installed."""

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_tables": self._tables}  # another process may have other systems

    @cached_property
    def systems(self) -> list[System]:
        """Every installed system that can be used, by name; a warning for each that cannot."""
        found: list[System] = []
        for name in system_names():
            try:
                loaded = system(name)
            except BrokenSystem as error:
                warnings.warn(str(error), CatalogWarning, stacklevel=2)
            else:
                found += [loaded] if loaded is not None else []
        return found

    def register(self, tables: Any) -> list[str]:
        """See ``Catalog.register``."""
        added = declared(tables, self._tables)
        self._tables.update((table.name, table) for table in added)
        return [table.name for table in added]

    @property
    def beside(self) -> Beside:
        """What databases are opened with."""
        return Beside(self.table, self.reads)

    def table(self, name: str) -> Table | None:
        """The definition of a table that was registered, or that a system declares."""
        if name in self._tables:
            return self._tables[name]
        owner = system(name.partition(".")[0]) if "." in name else None
        return owner.tables.get(name) if owner is not None else None

    def reads(self) -> list[Reads]:
        """Who answers for names that are no tables: views, and what systems read themselves."""
        return [reads for each in self.systems for reads in _reads(each)]

    def writes(self, name: str) -> Writes | None:
        """Who takes rows for a name that is no table, if anybody does; decided by what stands before the dot."""
        before, dot, _ = name.partition(".")
        for each in self.systems if dot else ():
            if each.writes and before in (each.name, *each.names):
                writes: Writes = each.part("writes")
                if writes.takes(name):
                    return writes
        return None

    def view_names(self, snapshot: Snapshot, systems: Collection[str]) -> list[str]:
        """The views of these systems whose tables are there, whether or not the snapshot shows them; ``InvalidOption`` for no system."""
        return [v.name for each in self._named(systems) for v in each.views if isinstance(v, View) and v.of in snapshot.rows]

    def sql_views(self, snapshot: Snapshot, systems: Collection[str]) -> list[SqlView]:
        """The views that SQL says of these systems, and of those that the database has a table of, as far as what they name is there."""
        shown = [each for each in self.systems if each.name in systems or is_used(each, snapshot)]
        there = {*snapshot.tables, *self.view_names(snapshot, systems)}
        return [v for each in shown for v in each.views if isinstance(v, SqlView) and there.issuperset(v.of)]

    def _named(self, systems: Collection[str]) -> list[System]:
        for name in systems:
            if name not in system_names():
                raise InvalidOption(
                    f"No system {name!r} is installed.", next_step=f"Choose of {', '.join(system_names()) or 'none'}."
                )
        return [each for each in self.systems if each.name in systems]

    def job(self, name: str) -> Job:
        """The job called ``SYSTEM.JOB``; ``InvalidOption`` where there is none."""
        owner, _, job = name.partition(".")
        found = system(owner)
        jobs: Mapping[str, Job] = (found.part("jobs") if found is not None else None) or {}
        if job not in jobs:
            known = ", ".join(f"{owner}.{each}" for each in sorted(jobs)) or "SYSTEM.JOB of a system that is installed"
            raise InvalidOption(f"There is no job {name!r}.", next_step=f"Choose one of {known}.")
        return jobs[job]

    def deleters(self, store: Store, database: str) -> dict[str, Deleter]:
        """Who deletes the data of systems' tables, by table."""
        from .maintain.gc.data import InCatalog  # who only reads has no use for it

        return {
            table: InCatalog(store, database) if how == IN_CATALOG else Imported(each.name, how, store)
            for each in self.systems
            for table, how in each.collects.items()
        }


@dataclass(frozen=True)
class Imported:
    """Asks a system's own callable, imported in the process that deletes."""

    system: str
    text: str
    store: Store

    def delete(self, batch: pa.Table) -> Deletions:
        """See ``Deleter``."""
        from .maintain.gc.data import Calling

        return Calling(imported(self.system, self.text)(self.store)).delete(batch)


def is_used(each: System, snapshot: Snapshot) -> bool:
    """Whether the database has a table of the system."""
    return any(name in snapshot.definitions for name in each.tables)


def _reads(each: System) -> list[Reads]:
    views = {view.name: view for view in each.views if isinstance(view, View)}
    own: Reads | None = each.part("reads")
    return [
        *([Views(views, tuple(each.tables.values()), partial(is_used, each))] if views else []),
        *([own] if own is not None else []),
    ]
