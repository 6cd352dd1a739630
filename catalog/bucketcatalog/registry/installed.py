"""The systems that are installed: how they are found, and what a catalog has of them.

A system is found by an entry point of the group ``bucketcatalog.systems``, whose name is the system's, and which leads to a ``System``.
None is imported before somebody asks for a name that the engine has not, for the tables of a snapshot, or for data to be collected.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..errors import BrokenSystem, BucketCatalogError, CatalogWarning, InvalidOption
from ..model.tables import Table
from ..query.database import Beside, declared
from ..query.scan import Read
from ..query.snapshot import Reads, Snapshot
from ..query.views import SqlView, View, Views
from ..state.conditions import Where
from ..store.base import Store
from ..write.parts import Writes
from .jobs import Job
from .system import GROUP, IN_CATALOG, ONE_OF_TWO, System, broken, imported, system_names

if TYPE_CHECKING:
    from ..maintain.gc.data import Deleter, Deletions


def system(name: str) -> System | None:
    """The installed system of a name; None without one, ``BrokenSystem`` where it cannot be used."""
    found = sorted(entry_points(group=GROUP, name=name), key=lambda point: point.value)
    if len({point.value for point in found}) > 1:
        packages = ", ".join(point.value for point in found)
        raise broken(name, f"several packages have one of that name: {packages}", "Uninstall all but one of them.")
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
    """What a catalog knows beside what it holds: tables that its user has registered, and the systems that are installed.

    What was found once is not looked for again.
    """

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}
        self._found: dict[str, System | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_tables": self._tables, "_found": {}}  # another process may have other systems

    def system(self, name: str) -> System | None:
        """The installed system of a name; None without one, ``BrokenSystem`` where it cannot be used."""
        if name not in self._found:
            self._found[name] = system(name)
        return self._found[name]

    @cached_property
    def systems(self) -> list[System]:
        """Every installed system that can be used, by name; a warning for each that cannot."""
        found: list[System] = []
        for name in system_names():
            try:
                loaded = self.system(name)
            except BrokenSystem as error:
                warnings.warn(str(error), CatalogWarning, stacklevel=3)
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
        owner = self.system(name.partition(".")[0]) if "." in name else None
        return owner.tables.get(name) if owner is not None else None

    def reads(self) -> list[Reads]:
        """Who answers for names that are no tables: views, and what systems read themselves; a warning for whom that cannot be asked."""
        return self._reads

    @cached_property
    def _reads(self) -> list[Reads]:
        found: list[Reads] = []
        known: dict[str, str] = {}
        for each in self.systems:
            views = {view.name: view for view in each.views if isinstance(view, View)}
            for name in [name for name in views if known.setdefault(name, each.name) != each.name]:
                _warn(broken(each.name, f"its view {name!r} is one of the system {known[name]!r}", ONE_OF_TWO))
                del views[name]
            found += [OfSystem(each.name, Views(views, each.tables, partial(is_used, each)))] if views else []
            try:
                own: Reads | None = each.part("reads")
            except BrokenSystem as error:
                _warn(error)
            else:
                found += [OfSystem(each.name, own)] if own is not None else []
        return found

    def writes(self, name: str) -> Writes | None:
        """Who takes rows for a name that is no table here, if anybody does; decided by what stands before the dot."""
        before, dot, _ = name.partition(".")
        if not dot or self.table(name) is not None:
            return None
        claiming = [each for each in self.systems if each.writes and before in (each.name, *each.names)]
        if len(claiming) > 1:
            both = f"it takes names that begin with {before!r}, and so does the system {claiming[0].name!r}"
            raise broken(claiming[1].name, both, ONE_OF_TWO)
        writes: Writes | None = claiming[0].part("writes") if claiming else None
        return writes if writes is not None and writes.takes(name) else None

    def view_names(self, snapshot: Snapshot, systems: Collection[str]) -> list[str]:
        """The views of these systems whose tables are there, whether or not the snapshot shows them; ``InvalidOption`` for no system."""
        return [v.name for name in systems for v in self._named(name).views if isinstance(v, View) and v.of in snapshot.rows]

    def sql_views(self, snapshot: Snapshot, systems: Collection[str]) -> list[SqlView]:
        """The views that SQL says of these systems, and of those that the database has a table of, as far as what they name is there."""
        shown = [each for each in self.systems if each.name in systems or is_used(each, snapshot)]
        there = {*snapshot.tables, *self.view_names(snapshot, systems)}
        return [v for each in shown for v in each.views if isinstance(v, SqlView) and there.issuperset(v.of)]

    def _named(self, name: str) -> System:
        found = self.system(name)
        if found is None:
            raise InvalidOption(
                f"No system {name!r} is installed.", next_step=f"Choose of {', '.join(system_names()) or 'none'}."
            )
        return found

    def job(self, name: str) -> Job:
        """The job called ``SYSTEM.JOB``; ``InvalidOption`` where there is none."""
        owner, _, job = name.partition(".")
        found = self.system(owner)
        jobs: Mapping[str, Job] = (found.part("jobs") if found is not None else None) or {}
        if job not in jobs:
            known = ", ".join(f"{owner}.{each}" for each in sorted(jobs)) or "SYSTEM.JOB of a system that is installed"
            raise InvalidOption(f"There is no job {name!r}.", next_step=f"Choose one of {known}.")
        return jobs[job]

    def deleters(self, store: Store, database: str) -> dict[str, Deleter]:
        """Who deletes the data of systems' tables, by table."""
        from ..maintain.gc.data import InCatalog  # who only reads has no use for it

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
        from ..maintain.gc.data import Calling

        return Calling(imported(self.system, self.text)(self.store)).delete(batch)


def is_used(each: System, snapshot: Snapshot) -> bool:
    """Whether the database has a table of the system."""
    return any(name in snapshot.definitions for name in each.tables)


@dataclass(frozen=True)
class OfSystem:
    """What a system reads, on whose code nobody else depends: what it raises is its own error, and a warning where all are looked at."""

    system: str
    reads: Reads

    def names(self, snapshot: Snapshot) -> Iterable[str]:
        """See ``Reads``; none where they cannot be had."""
        try:
            return list(self.reads.names(snapshot))
        except Exception as error:  # whatever somebody else's code raises
            _warn(error if isinstance(error, BucketCatalogError) else self._broken(error))
            return []

    def read(self, snapshot: Snapshot, name: str, columns: Sequence[str] | None, where: Where) -> Read | None:
        """See ``Reads``; ``BrokenSystem`` where the system fails at it."""
        try:
            return self.reads.read(snapshot, name, columns, where)
        except BucketCatalogError:
            raise
        except Exception as error:  # as above
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> BrokenSystem:
        return broken(self.system, f"it raised {type(error).__name__}: {error}")


def _warn(error: BucketCatalogError) -> None:
    warnings.warn(str(error), CatalogWarning, stacklevel=4)
