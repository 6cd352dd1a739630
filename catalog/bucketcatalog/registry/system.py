"""What a system is: values that it declares, and names of its code, which is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from ..errors import BrokenSystem, IncompatibleTable
from ..format.definitions import core_tables
from ..model.tables import DataType, Table
from ..query.database import declared
from ..query.metadata import METADATA_TABLES
from ..query.snapshot import DELETED_PREFIX
from ..query.views import SqlView, View

GROUP = "bucketcatalog.systems"
ONE_OF_TWO = "Uninstall one of the two."
IN_CATALOG = "path"
"""That what a table's references name is a path in the catalog, below some writer's ``data/``."""


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

    @cached_property
    def tables(self) -> dict[str, Table]:
        """Its tables by name."""
        return {} if self.declarations is None else {table.name: table for table in declared(self.declarations, {})}

    def check(self) -> None:
        """``BrokenSystem`` where something has a name that is not the system's to give, or names what is not there."""
        self._check_names()
        try:
            tables = self.tables
        except IncompatibleTable as error:
            raise broken(self.name, error.message) from None
        for table in tables:
            if not table.startswith(f"{self.name}."):
                raise broken(self.name, f"its table {table!r} is not called {self.name}.TABLE")
        taken = {*METADATA_TABLES, *core_tables()}
        for view in self.views:
            if not view.name.isidentifier() or view.name in taken or view.name.startswith(DELETED_PREFIX):
                raise broken(self.name, f"no view, or no second one, can be called {view.name!r}")
            taken.add(view.name)
            problem = view.problem({**core_tables(), **tables}) if isinstance(view, View) else view.problem()
            if problem:
                raise broken(self.name, f"its view {view.name!r} {problem}")
        for name, how in self.collects.items():
            if name not in tables:
                raise broken(self.name, f"it says how data of {name!r} is deleted, which is no table of its own")
            named = [tables[name].by_name[column] for column in tables[name].data_reference]
            if how == IN_CATALOG and [column.type for column in named] != [DataType.STRING]:
                raise broken(self.name, f"the data reference of {name!r} is not one string, so it is not a path in the catalog")

    def _check_names(self) -> None:
        for name in (self.name, *self.names):
            if not name.replace("-", "_").isidentifier() or name.startswith(DELETED_PREFIX):
                raise broken(self.name, f"{name!r} cannot stand before the dot of a name")
        for name in sorted({*self.names} & {*system_names()} - {self.name}):
            raise broken(self.name, f"{name!r} is the name of another system", ONE_OF_TWO)

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


def broken(name: str, why: str, next_step: str = "Install a release of its package that fits this one.") -> BrokenSystem:
    """The error of a system that cannot be used."""
    return BrokenSystem(f"The system {name!r} cannot be used: {why.removesuffix('.')}.", next_step=next_step)


def system_names() -> list[str]:
    """The names of the systems that are installed, sorted; none is imported."""
    return sorted({point.name for point in entry_points(group=GROUP)})
