"""The systems that are installed: how they are found, and what a catalog has of them.

A system is found by an entry point of the group ``bucketcatalog.systems``, whose name is the system's, and which leads to a ``System``.
None is imported before somebody asks for a name that the engine has not, for the tables of a snapshot, or for data to be collected;
nor is what only who has a system needs, for every catalog has a ``Registry``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ..errors import BrokenSystem, BucketCatalogError, CatalogWarning, IncompatibleTable, InvalidOption
from ..model.tables import Table
from ..query.blame import blaming, broken, said, shown
from ..query.database import Beside, declared
from ..query.snapshot import Reads, Shows, Snapshot
from ..store.base import Store

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from ..maintain.gc.data import Deleter
    from ..query.views import SqlView
    from ..write.parts import Writes
    from .jobs import Job
    from .system import System


def system(name: str, among: Iterable[EntryPoint] | None = None) -> System | None:
    """The installed system of a name; None without one, ``BrokenSystem`` where it cannot be used. See ``entry_point``."""
    point = entry_point(name, among)
    return _loaded(point) if point is not None else None


def entry_point(name: str, among: Iterable[EntryPoint] | None = None) -> EntryPoint | None:
    """What leads to the installed system of a name; None without one, ``BrokenSystem`` where there are several. Nothing is imported.

    It is looked for ``among`` these, else among what is installed now.
    """
    from .system import installed_points

    points = installed_points() if among is None else among
    found = sorted((point for point in points if point.name == name), key=lambda point: point.value)
    if len({point.value for point in found}) > 1:
        packages = ", ".join(point.value for point in found)
        raise broken(name, f"several packages have one of that name: {packages}", "Uninstall all but one of them")
    return found[0] if found else None


def _loaded(point: EntryPoint) -> System:
    from .system import System

    name, value = point.name, point.value
    try:
        loaded = point.load()
    except Exception as error:  # whatever somebody else's package raises
        module, _, what = value.partition(":")
        step = f"See how it fails: python -c 'from {module} import {what or 'SYSTEM'}'"
        raise broken(name, f"{value} cannot be imported: {said(error)}", step) from error
    if not isinstance(loaded, System):
        step = f"Let the entry point lead to a System, such as {name} = {value.partition(':')[0]}:SYSTEM"
        raise broken(name, f"its entry point leads to {value}, which is {shown(loaded)} and no System", step)
    if loaded.name != name:
        called = loaded.name if isinstance(loaded.name, str) else name
        step = f"Call both alike: {called} = {value} among the entry points, and System({called!r}, ...)"
        raise broken(name, f"its entry point leads to {value}, which is a System of another name, {shown(loaded.name)}", step)
    with blaming(name, "what it declares"):
        loaded.check_values()
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
            self._found[name] = system(name, self._points)
        return self._found[name]

    @cached_property
    def _points(self) -> tuple[EntryPoint, ...]:
        from .system import installed_points

        return installed_points()

    @cached_property
    def systems(self) -> list[System]:
        """Every installed system that can be used, by name; a warning for each that cannot."""
        return list(self._usable(lambda error: warnings.warn(str(error), CatalogWarning, stacklevel=3)))

    def _usable(self, tell: Callable[[BrokenSystem], None]) -> Iterator[System]:
        for name in sorted({point.name for point in self._points}):
            try:
                loaded = self.system(name)
            except BrokenSystem as error:
                tell(error)
            else:
                if loaded is not None:
                    yield loaded

    def register(self, tables: Any) -> list[str]:
        """See ``Catalog.register``."""
        added = declared(tables, self._tables)
        for table in added:
            self._refuse_reserved(table.name)
        self._tables.update((table.name, table) for table in added)
        return [table.name for table in added]

    def know(self, table: Table) -> None:
        """Know a table as it is declared now, whatever was registered of it before."""
        self._tables[table.name] = table

    def refuse_owned(self, name: str) -> None:
        """``IncompatibleTable`` for the table of an installed system, which says itself what that is, and for names that one reserves."""
        before, dot, _ = name.partition(".") if isinstance(name, str) else ("", "", "")
        owner = self.system(before) if dot else None
        if owner is not None and name in owner.tables:
            raise IncompatibleTable(
                f"The table {name!r} is the system {owner.name!r}'s, which declares it.", next_step="Give yours another name."
            )
        self._refuse_reserved(name)

    def _refuse_reserved(self, name: str) -> None:
        """``IncompatibleTable`` for a name that begins as those do for which a system answers or takes rows: no table hides these."""
        before, dot, _ = name.partition(".") if isinstance(name, str) else ("", "", "")
        owner = next((each for each in self._usable(lambda _: None) if before in each.names), None) if dot else None
        if owner is not None:
            raise IncompatibleTable(
                f"No table can be called {name!r}: names that begin with {before + '.'!r} are the system {owner.name!r}'s.",
                next_step="Give yours another name. What the system keeps under such a name is there once rows are put to it.",
            )

    def refuse_alone(self, name: str) -> None:
        """``InvalidOption`` for restoring a table that means nothing without others of its system."""
        owner = self.system(name.partition(".")[0]) if isinstance(name, str) and "." in name else None
        if owner is not None and name in owner.restored_by:
            raise InvalidOption(
                f"The table {name!r} means nothing without others, which have to be restored with it.",
                next_step=f"Use {owner.restored_by[name]}.",
            )

    @property
    def beside(self) -> Beside:
        """What databases are opened with."""
        return Beside(self.table, self.reads, self.keeps_data)

    def table(self, name: str) -> Table | None:
        """The definition of a table that was registered, or that a system declares."""
        if name in self._tables:
            return self._tables[name]
        owner = self.system(name.partition(".")[0]) if "." in name else None
        return owner.tables.get(name) if owner is not None else None

    def keeps_data(self, table: str) -> bool:
        """Whether a system says of its table that data is named by paths in the catalog; one that cannot be used says nothing."""
        from .fields import IN_CATALOG

        before, dot, _ = table.partition(".")
        try:
            owner = self.system(before) if dot else None
        except BrokenSystem:
            return False
        return owner is not None and owner.collects.get(table) == IN_CATALOG

    def reads(self) -> list[Shows]:
        """Who answers for names that are no tables: views, and what systems read themselves; a warning for whom that cannot be asked."""
        return self._reads

    @cached_property
    def _reads(self) -> list[Shows]:
        from ..query.views import SqlView, View, Views
        from .own_code import OwnReads

        found: list[Shows] = []
        known: dict[str, str] = {}
        for each in self.systems:
            views = {view.name: view for view in each.views if isinstance(view, View)}
            for name in [name for name in views if known.setdefault(name, each.name) != each.name]:
                _warn(_left_out(name, each.name, known[name]))
                del views[name]
            in_sql = [view.name for view in each.views if isinstance(view, SqlView)]
            found += [Views(each.name, views, each.tables, partial(is_used, each), in_sql)] if each.views else []
            try:
                own: Reads | None = each.part("reads")
            except BrokenSystem as error:
                _warn(error)
            else:
                found += [OwnReads(each.name, own)] if own is not None else []
        return found

    def writes(self, name: str) -> Writes | None:
        """Who takes rows for a name that is no table here, if anybody does; decided by what stands before the dot."""
        from .own_code import OwnWrites

        before, dot, _ = name.partition(".")
        if not dot or self.table(name) is not None:
            return None
        claiming = [each for each in self.systems if each.writes and before in (each.name, *each.names)]
        if len(claiming) > 1:
            both = f"it takes names that begin with {before!r}, and so does the system {claiming[0].name!r}"
            raise broken(claiming[1].name, both, "Uninstall one of the two")
        if not claiming:
            return None
        writes = OwnWrites(claiming[0].name, claiming[0].part("writes"))
        return writes if writes.takes(name) else None

    def opens(self, before: str) -> Callable[..., Any]:
        """What opens names that begin so for Python; ``InvalidOption`` where no installed system does."""
        found = next((each for each in self.systems if each.opens and before in (each.name, *each.names)), None)
        if found is None:
            raise InvalidOption(f"No installed system opens {before}.NAME.", next_step=_choose())
        opened: Callable[..., Any] = found.part("opens")
        return opened

    def view_names(self, snapshot: Snapshot, systems: Collection[str]) -> list[str]:
        """The views of these systems whose tables are there, whether or not the snapshot shows them; ``InvalidOption`` for no system."""
        from ..query.views import View

        return [v.name for name in systems for v in self._named(name).views if isinstance(v, View) and v.of in snapshot.rows]

    def sql_views(self, snapshot: Snapshot, systems: Collection[str]) -> list[SqlView]:
        """The views that SQL says of these systems, and of those that the database has a table of, as far as what they name is there."""
        from ..query.views import SqlView

        shown = [each for each in self.systems if each.name in systems or is_used(each, snapshot)]
        there = {*snapshot.tables, *self.view_names(snapshot, systems)}
        return [v for each in shown for v in each.views if isinstance(v, SqlView) and there.issuperset(v.of)]

    def _named(self, name: str) -> System:
        found = self.system(name)
        if found is None:
            raise InvalidOption(f"No system {name!r} is installed.", next_step=_choose())
        return found

    def job(self, name: str) -> Job:
        """The job called ``SYSTEM.JOB``; ``InvalidOption`` where there is none."""
        owner, _, job = name.partition(".") if isinstance(name, str) else ("", "", "")
        found = self.system(owner)
        jobs: Mapping[str, Job] = (found.part("jobs") if found is not None else None) or {}
        if job not in jobs:
            known = ", ".join(f"{owner}.{each}" for each in sorted(jobs)) or "SYSTEM.JOB of a system that is installed"
            raise InvalidOption(f"There is no job {name!r}.", next_step=f"Choose one of {known}.")
        return jobs[job]

    def deleters(self, store: Store, database: str) -> dict[str, Deleter]:
        """Who deletes the data of systems' tables, by table."""
        from ..maintain.gc.data import InCatalog
        from .fields import IN_CATALOG
        from .own_code import OwnDeleter

        return {
            table: InCatalog(store, database) if how == IN_CATALOG else OwnDeleter(each.name, how, store)
            for each in self.systems
            for table, how in each.collects.items()
        }


def is_used(each: System, snapshot: Snapshot) -> bool:
    """Whether the database has a table of the system."""
    return any(name in snapshot.definitions for name in each.tables)


def _choose() -> str:
    """The next step of who has named a system that is not there."""
    from .system import system_names

    return f"Choose of {', '.join(system_names()) or 'none'}."


def _left_out(view: str, of: str, other: str) -> BrokenSystem:
    return BrokenSystem(
        f"The view {view!r} of the system {of!r} is left out, and nothing else of that system: {view!r} is the view of {other!r}.",
        next_step=f"Uninstall one of the two systems to read the other's {view!r}.",
    )


def _warn(error: BucketCatalogError) -> None:
    warnings.warn(str(error), CatalogWarning, stacklevel=4)
