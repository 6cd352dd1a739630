"""What the fields of a system take, and of what stands in them: one table, by which whatever is something else is told.

What a field requires says in words what it takes and what an author writes who has given something else, and looks into what it holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from types import ModuleType
from typing import Any

import pyarrow as pa

from ..model.names import COMPACTOR_PREFIX, MAINTAINER_PREFIX
from ..query.blame import Problem, shown
from ..query.views import Computed, SqlView, View
from .jobs import NOT_OPTIONS, Job

IN_CATALOG = "path"
"""That what a table's references name is a path in the catalog, below some writer's ``data/``."""
_CODE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


@dataclass(frozen=True)
class Requirement:
    """What has to stand somewhere, in words, and what mends it where it was given something else.

    ``instead`` says what a value is that does not fit, and nothing of one that does; ``within`` are the values in one that does, each
    with where it stands and what is required there.
    """

    takes: str
    mend: str
    instead: Callable[[Any], str]
    within: Callable[[Any], Iterable[tuple[str, Any, Requirement]]] = lambda value: ()

    def misfit(self, where: str, value: Any) -> Problem | None:
        """What is wrong with the value that stands there, if anything is."""
        if instead := self.instead(value):
            return Problem(f"{where} is {instead}, and has to be {self.takes}", self.mend)
        found = (required.misfit(f"{where}{step}", each) for step, each, required in self.within(value))
        return next((misfit for misfit in found if misfit is not None), None)


def _unless(fits: Callable[[Any], bool]) -> Callable[[Any], str]:
    return lambda value: "" if fits(value) else shown(value)


def _of(takes: str, mend: str, *types: type) -> Requirement:
    return Requirement(takes, mend, _unless(lambda value: isinstance(value, types)))


def _text(takes: str, like: str) -> Requirement:
    return _of(takes, f"Write {like}", str)


def _several(takes: str, like: str, each: Requirement) -> Requirement:
    fits = _unless(lambda value: isinstance(value, tuple | list))
    return Requirement(takes, f"Write {like}", fits, lambda value: ((f"[{at}]", item, each) for at, item in enumerate(value)))


def _by_name(takes: str, mend: str, each: Requirement) -> Requirement:
    def instead(value: Any) -> str:
        if not isinstance(value, Mapping):
            return shown(value)
        return next((f"a mapping with the key {shown(key)}" for key in value if not isinstance(key, str)), "")

    return Requirement(takes, mend, instead, lambda value: ((f"[{name!r}]", item, each) for name, item in value.items()))


def _with_fields(takes: str, mend: str, *types: type) -> Requirement:
    """One of these classes, whose fields the table has."""

    def within(value: Any) -> Iterable[tuple[str, Any, Requirement]]:
        fields = next((fields for each, fields in FIELDS.items() if isinstance(value, each)), {})
        return ((f".{name}", getattr(value, name), required) for name, required in fields.items())

    return Requirement(takes, mend, _unless(lambda value: isinstance(value, types)), within)


def _code(what: str, like: str, *, but: str = "") -> Requirement:
    """Text that names code, or is ``but``."""
    fits = _unless(lambda value: isinstance(value, str) and (value == but or _CODE.fullmatch(value) is not None))
    return Requirement(f'"module:name" of {what}', f"Write {like}", fits)


def _having(takes: str, mend: str, *names: str) -> Requirement:
    return Requirement(
        takes, mend, _unless(lambda value: not isinstance(value, type) and all(callable(getattr(value, n, None)) for n in names))
    )


def _instead_of_plan(plan: Any) -> str:
    if not callable(plan):
        return shown(plan)
    try:
        given = signature(plan)
        given.bind_partial(None, None)
    except (TypeError, ValueError):
        return f"{shown(plan)}, which cannot be called so"
    shadowing = next((name for name in list(given.parameters)[2:] if name in NOT_OPTIONS), None)
    return f"a function with an option {shadowing!r}" if shadowing is not None else ""


def _is_app(value: Any) -> bool:
    """Whether it is an app of typer, which nothing but command lines imports."""
    return any(each.__name__ == "Typer" and each.__module__.partition(".")[0] == "typer" for each in type(value).__mro__)


FIELDS: Mapping[type, Mapping[str, Requirement]] = {
    Computed: {
        "type": _of("a type of Arrow", "Write type=pa.float64()", pa.DataType),
        "of": _several("a tuple of names of columns", 'of=("grams",)', _text("the name of a column", 'of=("grams",)')),
        "compute": Requirement("a function", "Give the function itself, not its name", _unless(callable)),
        "nullable": _of("True or False", "Write nullable=False, or leave it out", bool),
    },
    View: {
        "name": _text("text", 'name="crate_weights"'),
        "of": _text("the name of a table", 'of="crates.crates"'),
        "columns": _by_name(
            "a mapping of names to columns",
            'Write columns={"crate": "name"}',
            _with_fields("the name of a column, or Computed", 'Write "crate": "name", or "crate": Computed(...)', str, Computed),
        ),
        "where": _of("a mapping of columns to conditions", 'Write where={"grams": between(1000)}', Mapping),
    },
    SqlView: {
        "name": _text("text", 'name="crate_sizes"'),
        "sql": _text("a query", 'sql="SELECT crate FROM {crates.parts}"'),
    },
    Job: {
        "plan": Requirement(
            f"a function of a snapshot, a writer and options, none of them called {', '.join(sorted(NOT_OPTIONS))}",
            "Give such a function: def plan(snapshot, writer, *, least=2)",
            _instead_of_plan,
        ),
        "role": Requirement(
            f"{COMPACTOR_PREFIX!r} or {MAINTAINER_PREFIX!r}",
            "Import COMPACTOR_PREFIX or MAINTAINER_PREFIX from bucketcatalog.model.names, or leave it out",
            _unless(lambda value: value in (COMPACTOR_PREFIX, MAINTAINER_PREFIX)),
        ),
    },
}
"""What the fields take of what stands in a system."""

SYSTEM: Mapping[str, Requirement] = {
    "name": _text("text", 'name="crates"'),
    "declarations": Requirement(
        "the module that protoc made, or None",
        "Import the module and give it, not its name: declarations=crates_pb2",
        _unless(lambda value: value is None or (isinstance(value, ModuleType) and hasattr(value, "DESCRIPTOR"))),
    ),
    "names": _several("a tuple of names", 'names=("packed",)', _text("a name", 'names=("packed",)')),
    "views": _several(
        "a tuple of View or SqlView",
        "views=(View(...),)",
        _with_fields("View or SqlView", "Write views=(View(...),)", View, SqlView),
    ),
    "commands": _code("a typer app", 'commands="crates.cli:app"'),
    "reads": _code("a Reads", 'reads="crates.packed:READS"'),
    "writes": _code("a Writes", 'writes="crates.packed:WRITES"'),
    "opens": _code("a function", 'opens="crates.inside:Inside"'),
    "jobs": _code("a mapping of names to Job", 'jobs="crates.jobs:JOBS"'),
    "collects": _by_name(
        "a mapping of tables to who deletes their data",
        'Write collects={"crates.parts": IN_CATALOG}',
        _code("a function, or IN_CATALOG", 'IN_CATALOG, or "crates.labels:peeler"', but=IN_CATALOG),
    ),
    "restored_by": _by_name(
        "a mapping of tables to what restores them",
        'Write restored_by={"crates.parts": "crates.restore"}',
        _text("text", '"crates.restore"'),
    ),
}
"""What the fields of a system itself take."""

PARTS: Mapping[str, Requirement] = {
    "commands": Requirement("a typer app", "Let it name an app = typer.Typer()", _unless(_is_app)),
    "reads": _having("an object with names and read", "Let it name an object, such as READS = PackedReads()", "names", "read"),
    "writes": _having(
        "an object with takes and begin", "Let it name an object, such as WRITES = PackedWrites()", "takes", "begin"
    ),
    "opens": Requirement(
        "a function of a catalog and a name",
        "Let it name a function: def open_inside(catalog, name, *, database, writer, clock)",
        _unless(callable),
    ),
    "jobs": _by_name(
        "a mapping of names to Job",
        'Let it name a mapping, such as JOBS = {"repack": Job(plan)}',
        _with_fields("a Job", 'Write "repack": Job(plan)', Job),
    ),
}
"""What the fields that name code have to lead to."""
DELETER = Requirement("a function of the catalog's store", "Let it name a function: def peeler(store)", _unless(callable))
"""What the code has to be that says how data is deleted."""
