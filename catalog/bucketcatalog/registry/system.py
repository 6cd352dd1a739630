"""What a system is: values that it declares, and names of its code, which is imported when it is used."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..errors import IncompatibleTable
from ..format.definitions import core_tables, tables_of
from ..model.tables import DataType, Table
from ..query.blame import Problem, broken, said
from ..query.database import declared
from ..query.metadata import METADATA_TABLES
from ..query.snapshot import DELETED_PREFIX
from ..query.views import Computed, SqlView, View
from .fields import DELETER, IN_CATALOG, PARTS, SYSTEM, Requirement

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "bucketcatalog.systems"
# fmt: off
OF_THE_PROGRAM = frozenset({
    "age", "changes", "checkpoint", "checkpoints", "clone", "conflicts", "cost", "diff", "du", "dump", "dups", "export", "find",
    "forks", "gc", "growth", "harvest", "info", "log", "ls", "pin", "prune", "repair", "restore", "retire", "spark", "stat",
    "sums", "tables", "tag", "top", "verify", "who", "writers",
})
# fmt: on
"""The commands of the program ``bucketcatalog``: a system that is called so has none of its own."""


@dataclass(frozen=True)
class System:
    """What a system consists of; whatever it has not is left out. Its tables are called ``NAME.TABLE``.

    ``declarations`` is the module of a compiled ``.proto``. ``names`` are what may stand before the dot of names that it reads or takes
    rows for, beside its own. ``collects`` says how data of its tables is deleted: ``IN_CATALOG`` where references are paths below writers'
    ``data/``, else a function of the catalog's store that gives a callable such as ``Catalog.collect`` takes. ``restored_by`` says of
    tables that mean nothing without each other what restores them together: of themselves they are not.

    Code is named as ``module:name``: the functions of ``collects``; ``commands``, a typer app, which is ``bucketcatalog NAME ...``;
    ``reads`` and ``writes``, who answers and takes rows for names that are no tables (``Reads``, ``Writes``); ``opens``, what is called
    with a catalog, the name after the dot, a database, a writer and a clock for such a name (``Catalog.data``); ``jobs``, a mapping of
    names to ``Job``.
    """

    name: str
    declarations: ModuleType | None = None
    names: tuple[str, ...] = ()
    views: tuple[View | SqlView, ...] = ()
    commands: str = ""
    reads: str = ""
    writes: str = ""
    opens: str = ""
    jobs: str = ""
    collects: Mapping[str, str] = field(default_factory=dict)
    restored_by: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def tables(self) -> dict[str, Table]:
        """Its tables by name."""
        return {} if self.declarations is None else {table.name: table for table in declared(self.declarations, {})}

    def check(self) -> None:
        """For its author, in a test: ``BrokenSystem`` for all that would be refused where it is asked for. What it names is imported."""
        self.check_values()
        for part in PARTS:
            self.part(part)
        for table, how in self.collects.items():
            if how != IN_CATALOG:
                imported(self.name, f"collects[{table!r}]", how, DELETER)
        for problem in self._problems_of_use():
            raise broken(self.name, *problem)

    def check_values(self) -> None:
        """``BrokenSystem`` where a field is something else, or something has a name that is not the system's to give, or is not there."""
        for problem in self._problems():  # the first: what comes after it may stumble over the same
            raise broken(self.name, *problem)

    def _problems(self) -> Iterator[Problem]:
        misfits = (required.misfit(f"its field {name}", getattr(self, name)) for name, required in SYSTEM.items())
        yield from (misfit for misfit in misfits if misfit is not None)
        yield from self._problems_of_names()
        yield from self._problems_of_tables()
        yield from self._problems_of_views()
        yield from self._problems_of_collects()

    def _problems_of_names(self) -> Iterator[Problem]:
        for name in (self.name, *self.names):
            if not name.replace("-", "_").isidentifier() or name.startswith(DELETED_PREFIX):
                yield Problem(
                    f"{name!r} cannot stand before the dot of a name",
                    f"Use letters, digits, - and _, no digit first, and not {DELETED_PREFIX} first",
                )
        for name in sorted({*self.names} & {*core_tables(), *METADATA_TABLES}):
            yield Problem(
                f"{name!r} in its names is a table of every catalog, and nothing that stands before a dot",
                "Write what stands before the dot of the names that it reads or takes rows for",
            )
        if self.name in self.names:
            yield Problem(f"{self.name!r} stands among its names, and is its own already", "Leave it out of names")
        for name in sorted({*self.names} & {*system_names()} - {self.name}):
            yield Problem(f"{name!r} is the name of another system", "Leave it out of names, or uninstall one of the two")

    def _problems_of_tables(self) -> Iterator[Problem]:
        try:
            names = [] if self.declarations is None else [table.name for table in tables_of(self.declarations)]
            for name in names:
                if not name.startswith(f"{self.name}."):
                    own = f"{self.name}.{name.rpartition('.')[2]}"
                    yield Problem(f"its table {name!r} is not called {self.name}.TABLE", f'Write name: "{own}" in its message')
                if names.count(name) > 1:
                    yield Problem(
                        f"{names.count(name)} of its messages are the table {name!r}", "Give each message a table of its own name"
                    )
            _ = self.tables
        except IncompatibleTable as error:
            yield Problem(error.message, error.next_step)

    def _problems_of_views(self) -> Iterator[Problem]:
        taken: dict[str, str] = dict.fromkeys([*METADATA_TABLES, *core_tables()], "a table of every catalog")
        tables = {**core_tables(), **self.tables}
        own = {view.name: view for view in self.views}
        for view in self.views:
            if view.name in taken:
                yield Problem(f"a view of it is called {view.name!r}, as {taken[view.name]} is", "Call it otherwise")
            if not view.name.isidentifier() or view.name.startswith(DELETED_PREFIX):
                yield Problem(
                    f"no view can be called {view.name!r}",
                    f"Use letters, digits and _, no digit first, and not {DELETED_PREFIX} first",
                )
            taken[view.name] = "another view of the system"
            problem = view.problem(tables, own) if isinstance(view, View) else view.problem(own) or self._unfounded(view)
            if problem is not None:
                yield Problem(f"its view {view.name!r} {problem.why}", problem.mend)

    def _unfounded(self, view: SqlView) -> Problem | None:
        """What is wrong where SQL names what would be a table of the system, which has no such table and reads nothing else."""
        shown = {*self.tables, *(f"{DELETED_PREFIX}{name}" for name, table in self.tables.items() if table.keeps_tombstones)}
        unknown = [
            name
            for name in view.of
            if name not in shown and name.removeprefix(DELETED_PREFIX).startswith(f"{self.name}.") and not self.reads
        ]
        there = ", ".join(sorted(shown)) or "the tables that declarations declare"
        return Problem(f"reads {unknown[0]!r}, which is no table of the system", f"Read one of {there}") if unknown else None

    def _problems_of_collects(self) -> Iterator[Problem]:
        for name, how in self.collects.items():
            told = f"its field collects says how data of {name!r} is deleted, which"
            if name not in self.tables:
                own = ", ".join(sorted(self.tables)) or "the tables that declarations declare"
                yield Problem(f"{told} is no table of its own", f"Name one of {own}")
            named = [self.tables[name].by_name[column].type for column in self.tables[name].data_reference]
            if not named:
                yield Problem(
                    f"{told} has no data reference", "Declare a data_reference in its message, or leave the table out of collects"
                )
            if how == IN_CATALOG and named != [DataType.STRING]:
                yield Problem(
                    f"the data reference of {name!r} is not one string, so it is not a path in the catalog",
                    'Name a function that says how its data is deleted, as "module:name", instead of IN_CATALOG',
                )

    def _problems_of_use(self) -> Iterator[Problem]:
        """What is wrong only where the system is used in a certain way, so that nobody else is kept from it."""
        computed = (
            (view.name, name, column.compute)
            for view in self.views
            if isinstance(view, View)
            for name, column in view.columns.items()
            if isinstance(column, Computed)
        )
        for view_name, name, compute in computed:
            if "<" in getattr(compute, "__qualname__", ""):
                yield Problem(
                    f"its view {view_name!r} computes {name!r} by a function that no other process can find by its name",
                    "Compute it by a function of a module, and not by a lambda or by one within another function",
                )
        if self.commands and self.name in OF_THE_PROGRAM:
            yield Problem(
                f"{self.name!r} is a command of the program, so nobody can type those of the system",
                "Give the system another name, or no commands",
            )

    def part(self, name: str) -> Any:
        """One of the parts that are named as code, imported; None where the system has none of these."""
        text: str = getattr(self, name)
        return imported(self.name, name, text, PARTS[name]) if text else None


def imported(system: str, where: str, text: str, required: Requirement) -> Any:
    """What ``module:name`` names in a field of a system; ``BrokenSystem`` where that cannot be imported, or is something else."""
    module, _, name = text.partition(":")
    try:
        found = getattr(import_module(module), name)
    except Exception as error:  # whatever somebody else's module raises
        raise broken(
            system,
            f"its field {where} names {text!r}, which cannot be imported: {said(error)}",
            f"See how it fails: python -c 'from {module} import {name}'",
        ) from error
    misfit = required.misfit(text, found)
    if misfit is not None:
        raise broken(system, f"its field {where} names what it must not: {misfit.why}", misfit.mend)
    return found


def system_names() -> list[str]:
    """The names of the systems that are installed, sorted; none is imported."""
    return sorted({point.name for point in installed_points()})


def installed_points() -> tuple[EntryPoint, ...]:
    """The entry points of systems that are installed now. Nothing is looked for again while no folder of packages has changed."""
    return _points_in(tuple((folder, _changed(folder)) for folder in sys.path))


@lru_cache(maxsize=4)
def _points_in(_: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # reads mail, which the metadata of packages are

    return tuple(entry_points(group=GROUP))


def _changed(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0
