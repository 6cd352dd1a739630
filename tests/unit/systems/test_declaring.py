"""What an author can say wrongly of a system, and that ``System.check`` says which field it is and how it is mended."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
import typer

from bucketcatalog import BrokenSystem, Catalog
from bucketcatalog.cli import commands
from bucketcatalog.query.views import Computed, SqlView, View
from bucketcatalog.registry import IN_CATALOG, Job, System
from bucketcatalog.registry.fields import FIELDS, SYSTEM
from bucketcatalog.registry.installed import system
from bucketcatalog.registry.jobs import NOT_OPTIONS
from bucketcatalog.registry.system import OF_THE_PROGRAM

from ...kit.installing import installed
from ...kit.world import declaring

CRATE = """message Crate {
  option (table) = { name: "crates.crates" key: "name" };
  string name = 1; optional int64 grams = 2;
}"""
PART = """message Part {
  option (table) = { name: "crates.parts" key: "crate" key: "path" data_reference: "path" };
  string crate = 1; string path = 2;
}"""
DROPPED = 'message Lid { option (table) = { name: "crates.lids" key: "k" tombstones: TOMBSTONES_DROPPED }; string k = 1; }'
CODE = f"{__name__}:"
CRATES = "crates.crates"


@cache
def declarations() -> ModuleType:
    return declaring(CRATE, PART, DROPPED)


def tenfold(grams: pa.Array) -> pa.Array:
    return grams


def plan(snapshot: object, writer: object, *, least: int = 2) -> None:
    """The plan of a job."""


def plan_of_nothing() -> None:
    """No plan of a job."""


def plan_for(snapshot: object, writer: object, *, database: str = "") -> None:
    """The plan of a job with an option that nobody can give."""


class Reading:
    """Has what a system needs in order to read and to take rows."""

    def names(self, snapshot: object) -> list[str]:
        return []

    def read(self, *_: object) -> None:
        return None

    def takes(self, name: str) -> bool:
        return False

    def begin(self, *_: object) -> None:
        return None


APP = typer.Typer()
READS = WRITES = Reading()
JOBS = {"repack": Job(plan)}
LIST = [Job(plan)]
FUNCTION = {"repack": plan}
SHADOWING = {"repack": Job(plan_for)}
UNPLANNED = {"repack": Job(plan_of_nothing)}
UNPLANNABLE = {"repack": Job("plan")}  # type: ignore[arg-type]
ROLE = {"repack": Job(plan, role="sweeper-")}
NUMBERED = {7: Job(plan)}


def view(columns: Any, of: Any = CRATES, **more: Any) -> dict[str, Any]:
    return {"views": (View("v", of, columns, **more),)}


def computed(type_: Any = pa.int64(), of: Any = ("grams",), compute: Any = tenfold, **more: Any) -> dict[str, Any]:  # noqa: B008
    return view({"a": Computed(type_, of, compute, **more)})


def sql(text: Any) -> dict[str, Any]:
    return {"views": (SqlView("v", text),)}


def of_a_lambda() -> dict[str, Any]:
    return computed(compute=lambda grams: grams)


VIEW = View("v", CRATES, {"a": "name"})
FINE: dict[str, Mapping[str, Any]] = {
    "nothing": {"declarations": None},
    "code": {"commands": f"{CODE}APP", "reads": f"{CODE}READS", "writes": f"{CODE}WRITES", "jobs": f"{CODE}JOBS"},
    "deleted": {"collects": {"crates.parts": IN_CATALOG}},
    "deleter": {"collects": {"crates.parts": f"{CODE}plan_of_nothing"}},
    "names": {"names": ("packed", "crates-of")},
    "lists": {"names": ["packed"], "views": [VIEW]},
    "computed": computed(),
    "tombstones": view({"a": "name", "d": "deleted_at"}, "deleted_crates.crates"),
    "sql": {"views": (VIEW, SqlView("w", "SELECT * FROM {v} JOIN {crates.parts} JOIN {deleted_crates.parts} JOIN {theirs}"))},
    "read": {**sql("SELECT * FROM {crates.read}"), "reads": f"{CODE}READS"},
}
WRONG: dict[str, tuple[Mapping[str, Any], str, str]] = {
    "no name": ({"name": None}, "name is None, and has to be text", 'name="crates"'),
    "name": ({"name": "Crates Ü"}, "'Crates Ü' cannot stand before the dot", "Use letters"),
    "declarations": (
        {"declarations": "crates_pb2"},
        "declarations is 'crates_pb2', and has to be the module",
        "Import the module",
    ),
    "a module": ({"declarations": typer}, "declarations is the module typer, and has to be the module that protoc", "Import the"),
    "names": ({"names": "packed"}, "names is 'packed', and has to be a tuple of names", 'names=("packed",)'),
    "named 7": ({"names": ("a", 7)}, "names[1] is 7, and has to be a name", 'names=("packed",)'),
    "a table's": ({"names": ("objects",)}, "'objects' in its names is a table of every catalog", "what stands before the dot"),
    "about": ({"names": ("log",)}, "'log' in its names is a table of every catalog", "what stands before the dot"),
    "its own": ({"names": ("crates",)}, "'crates' stands among its names, and is its own", "Leave it out of names"),
    "a view": ({"views": VIEW}, "views is a View, and has to be a tuple of View or SqlView", "views=(View(...),)"),
    "views": ({"views": "v"}, "views is 'v', and has to be", "views=(View(...),)"),
    "text": ({"views": (VIEW, "v")}, "views[1] is 'v', and has to be View or SqlView", "views=(View(...),)"),
    "columns": (view(["name"]), "views[0].columns is a list, and has to be a mapping of names", 'columns={"crate": "name"}'),
    "column": (view({"a": 3}), "views[0].columns['a'] is 3, and has to be the name of a column", "Computed(...)"),
    "key": (view({3: "name"}), "views[0].columns is a mapping with the key 3", 'columns={"crate": "name"}'),
    "of": (view({"a": "name"}, VIEW), "views[0].of is a View, and has to be the name of a table", 'of="crates.crates"'),
    "where": (view({"a": "name"}, where=["name"]), "views[0].where is a list, and has to be a mapping", "between(1000)"),
    "type": (computed("int64"), "columns['a'].type is 'int64', and has to be a type of Arrow", "type=pa.float64()"),
    "class": (computed(pa.Int64Array), "columns['a'].type is the class Int64Array", "type=pa.float64()"),
    "grams": (computed(of="grams"), "columns['a'].of is 'grams', and has to be a tuple of names", 'of=("grams",)'),
    "of none": (computed(of=()), "computes 'a' of no column", "Compute it of a column of the key"),
    "compute": (
        computed(compute="tenfold"),
        "columns['a'].compute is 'tenfold', and has to be a function",
        "the function itself",
    ),
    "nullable": (computed(nullable="no"), "columns['a'].nullable is 'no', and has to be True or False", "nullable=False"),
    "lambda": (of_a_lambda(), "computes 'a' by a function that no other process can find", "a function of a module"),
    "unknown": (view({"a": "weight"}), "view 'v' has no column 'weight' in 'crates.crates'", "Its columns are name, grams"),
    "no table": (view({"a": "name"}, "crates.crate"), "shows 'crates.crate', which is no table", "crates.crates, crates.lids"),
    "dropped": (
        view({"a": "k"}, "deleted_crates.lids"),
        "shows 'deleted_crates.lids', which is no table",
        "that keeps tombstones",
    ),
    "stacked": (
        {"views": (VIEW, View("w", "v", {"b": "a"}))},
        "its view 'w' shows 'v', which is a view itself",
        "Let it show the table, or write it as an SqlView of {v}",
    ),
    "twice": ({"views": (VIEW, VIEW)}, "called 'v', as another view of the system is", "Call it otherwise"),
    "taken": (
        {"views": (View("log", CRATES, {"a": "name"}),)},
        "called 'log', as a table of every catalog is",
        "Call it otherwise",
    ),
    "dotted": ({"views": (View(CRATES, CRATES, {"a": "name"}),)}, "no view can be called 'crates.crates'", "Use letters"),
    "query": (sql(7), "views[0].sql is 7, and has to be a query", "sql="),
    "no sql": (sql(" \n"), "its view 'v' has no SQL", "in braces: SELECT"),
    "open": (sql("SELECT * FROM {crates.parts"), "has a brace that has no other half", "{table}"),
    "closed": (sql("SELECT '}' FROM {crates.parts}"), "has a brace that has no other half", "char(125)"),
    "no braces": (sql("SELECT * FROM crates.parts"), "its view 'v' names no table", "in braces: FROM {objects}"),
    "spaced": (sql("SELECT * FROM {crates parts}"), "has 'crates parts' in braces", "only names"),
    "unfounded": (sql("SELECT * FROM {crates.part}"), "reads 'crates.part', which is no table of the system", "crates.parts"),
    "gone": (
        sql("SELECT * FROM {deleted_crates.lids}"),
        "reads 'deleted_crates.lids', which is no table",
        "deleted_crates.parts",
    ),
    "of itself": (sql("SELECT * FROM {v}"), "reads 'v', which is an SqlView", "Write out what that one reads"),
    "app": ({"commands": APP}, 'commands is a Typer, and has to be "module:name" of a typer app', 'commands="crates.cli:app"'),
    "no colon": (
        {"commands": "crates.cli"},
        "commands is 'crates.cli', and has to be \"module:name\"",
        'commands="crates.cli:app"',
    ),
    "object": ({"reads": object()}, 'reads is an object, and has to be "module:name"', 'reads="crates.packed:READS"'),
    "none": ({"writes": None}, 'writes is None, and has to be "module:name"', 'writes="crates.packed:WRITES"'),
    "jobs": ({"jobs": JOBS}, 'jobs is a dict, and has to be "module:name" of a mapping', 'jobs="crates.jobs:JOBS"'),
    "module": ({"jobs": "nowhere_at_all:X"}, "jobs names 'nowhere_at_all:X', which cannot be imported: ModuleNot", "python -c"),
    "lacking": (
        {"reads": f"{CODE}NOTHING"},
        f"reads names '{CODE}NOTHING', which cannot be imported: AttributeError",
        "python -c",
    ),
    "no app": ({"commands": f"{CODE}plan"}, f"{CODE}plan is the function plan, and has to be a typer app", "typer.Typer()"),
    "no reads": ({"reads": f"{CODE}APP"}, f"{CODE}APP is a Typer, and has to be an object with names and read", "such as READS"),
    "reads": ({"reads": f"{CODE}Reading"}, f"{CODE}Reading is the class Reading, and has to be an object", "such as READS"),
    "writes": (
        {"writes": f"{CODE}JOBS"},
        f"{CODE}JOBS is a dict, and has to be an object with takes and begin",
        "such as WRITES",
    ),
    "list": ({"jobs": f"{CODE}LIST"}, f"{CODE}LIST is a list, and has to be a mapping of names to Job", "JOBS = {"),
    "number": ({"jobs": f"{CODE}NUMBERED"}, f"{CODE}NUMBERED is a mapping with the key 7", "JOBS = {"),
    "function": ({"jobs": f"{CODE}FUNCTION"}, f"{CODE}FUNCTION['repack'] is the function plan, and has to be a Job", "Job(plan)"),
    "option": ({"jobs": f"{CODE}SHADOWING"}, "['repack'].plan is a function with an option 'database'", "least=2"),
    "planned": ({"jobs": f"{CODE}UNPLANNED"}, "plan is the function plan_of_nothing, which cannot be called so", "least=2"),
    "plan": ({"jobs": f"{CODE}UNPLANNABLE"}, "['repack'].plan is 'plan', and has to be a function of a snapshot", "least=2"),
    "role": ({"jobs": f"{CODE}ROLE"}, "['repack'].role is 'sweeper-', and has to be 'compactor-' or 'maintainer-'", "_PREFIX"),
    "collects": ({"collects": ("crates.parts",)}, "collects is a tuple, and has to be a mapping of tables", "IN_CATALOG}"),
    "in_catalog": (
        {"collects": {"crates.parts": "in_catalog"}},
        "collects['crates.parts'] is 'in_catalog', and has to be \"module:name\" of a function, or IN_CATALOG",
        "Write IN_CATALOG, or ",
    ),
    "peeler": ({"collects": {"crates.parts": tenfold}}, "collects['crates.parts'] is the function tenfold", "IN_CATALOG, or "),
    "no deleter": (
        {"collects": {"crates.parts": f"{CODE}JOBS"}},
        f"collects['crates.parts'] names what it must not: {CODE}JOBS is a dict, and has to be a function of the catalog's store",
        "def peeler(store)",
    ),
    "elsewhere": (
        {"collects": {"objects": IN_CATALOG}},
        "data of 'objects' is deleted, which is no table of its own",
        "crates.parts",
    ),
    "dataless": (
        {"collects": {CRATES: IN_CATALOG}},
        "data of 'crates.crates' is deleted, which has no data reference",
        "in its message",
    ),
    "renamed": ({"name": "boxes"}, "its table 'crates.crates' is not called boxes.TABLE", 'name: "boxes.crates" in its message'),
    "command": (
        {"name": "ls", "declarations": None, "commands": f"{CODE}APP"},
        "'ls' is a command of the program",
        "Give the system another name, or no commands",
    ),
}


@pytest.mark.parametrize("fields", FINE.values(), ids=FINE)
def test_what_is_right_passes(fields: dict[str, Any]) -> None:
    System(**{"name": "crates", "declarations": declarations(), **fields}).check()


@pytest.mark.parametrize(("fields", "why", "mend"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_by_its_field_with_what_mends_it(fields: dict[str, Any], why: str, mend: str) -> None:
    given = {"name": "crates", "declarations": declarations(), **fields}
    with pytest.raises(BrokenSystem, match=re.escape(f"The system {given['name']!r} cannot be used: ")) as caught:
        System(**given).check()
    assert why in caught.value.message and mend in caught.value.next_step
    assert "\n" not in str(caught.value) and caught.value.next_step.endswith("Or install another release of its package.")


@pytest.mark.parametrize(
    ("bodies", "why", "mend"),
    [
        (
            ['message A { option (table) = { name: "objects" key: "k" }; string k = 1; }'],
            "'objects' is not called",
            "crates.objects",
        ),
        (
            [CRATE, CRATE.replace("Crate", "Other")],
            "2 of its messages are the table 'crates.crates'",
            "Give each message a table",
        ),
        ([CRATE.replace('name: "crates.crates"', "")], "'test.Crate' is a table without a name", "Give it a name and a key"),
        ([CRATE.replace('key: "name"', "")], "Table 'crates.crates' cannot be declared so", "Change its declaration"),
    ],
    ids=["core", "two", "nameless", "keyless"],
)
def test_a_declaration_that_is_wrong_is_named_with_what_mends_it(bodies: list[str], why: str, mend: str) -> None:
    with pytest.raises(BrokenSystem) as caught:
        System("crates", declaring(*bodies)).check()
    assert why in caught.value.message and mend in caught.value.next_step


def test_every_field_has_its_kind() -> None:
    for declared, fields in {System: SYSTEM, **FIELDS}.items():
        assert {field.name for field in dataclasses.fields(declared)} == set(fields), declared


def test_what_is_the_programs_own_is_known() -> None:
    assert commands.OWN == OF_THE_PROGRAM
    given = {name for name, each in signature(Catalog.run_job).parameters.items() if each.kind is not each.VAR_KEYWORD}
    assert given <= NOT_OPTIONS


def test_what_an_author_has_named_is_the_cause_of_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raising_reads.py").write_text("raise RuntimeError('two\\nlines.')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BrokenSystem, match=r"cannot be imported: RuntimeError: two lines\. Next") as caught:
        System("crates", reads="raising_reads:READS").check()
    assert isinstance(caught.value.__cause__, RuntimeError)


NAMED = "from bucketcatalog.registry import System\nSYSTEM = System('{0}', {1})\n"


@pytest.mark.parametrize(
    ("source", "why", "mend"),
    [
        (
            "raise RuntimeError('no')",
            "loaded_x:SYSTEM cannot be imported: RuntimeError: no",
            "python -c 'from loaded_x import SYSTEM'",
        ),
        ("SYSTEM = 7", "leads to loaded_x:SYSTEM, which is 7 and no System", "such as x = loaded_x:SYSTEM"),
        (NAMED.format("y", ""), "which is a System of another name, 'y'", "Call both alike: y = loaded_x:SYSTEM"),
        (NAMED.format("x", "views='v'"), "its field views is 'v'", "views=(View(...),)"),
        (NAMED.format("x", "reads='loaded_x'"), "its field reads is 'loaded_x'", "reads="),
    ],
)
def test_what_leads_to_no_system_is_told_to_its_author(
    source: str, why: str, mend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "loaded_x", raising=False)
    monkeypatch.syspath_prepend(installed(tmp_path, "x", "loaded_x:SYSTEM", source))
    with pytest.raises(BrokenSystem) as caught:
        system("x")
    assert why in caught.value.message and mend in caught.value.next_step
    assert (caught.value.__cause__ is None) == ("raise" not in source)


def test_what_a_system_names_is_not_imported_before_it_is_used(tmp_path: Path) -> None:
    parts = ", ".join(f"{part}='quiet_x:X'" for part in ("commands", "reads", "writes", "jobs"))
    folder = installed(tmp_path, "quiet", "quiet:SYSTEM", NAMED.format("quiet", parts))
    (folder / "quiet_x.py").write_text("raise RuntimeError('imported')")
    code = "import sys\nfrom bucketcatalog.registry.installed import system\nassert system('quiet')\nsys.exit('quiet_x' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": ":".join([str(folder), *sys.path])}, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
