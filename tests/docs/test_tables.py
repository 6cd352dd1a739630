"""Tables of the guide say what the code says: names, stores, errors, commands and their options, modules."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
import typer

import bucketcatalog
from bucketcatalog import errors
from bucketcatalog.cli.commands import app
from bucketcatalog.errors import BucketCatalogError
from bucketcatalog.maintain.verify.findings import sorts
from bucketcatalog.query.info import MANY_BYTES, MANY_EVENTS, MANY_TIMES, MANY_TOMBSTONES, MANY_TRANSACTIONS, MUCH_HISTORY
from bucketcatalog.store import remote
from bucketcatalog.store.open import WRITABLE

from ..kit.blocks import ROOT
from ..kit.engines import DIFFERENCES
from ..kit.hostile import HOSTILE
from ..kit.importing import Package
from .guide import GUIDE, table_rows


def name_rows() -> list[list[str]]:
    """The table of hostile names as the guide has to show it."""
    rows = []
    for case in HOSTILE:
        shown = ascii(case.name) if len(case.name) <= 60 else f"{len(case.name):,} of {case.name[0]!a}"
        rows.append([case.label, f"`` {shown} ``", case.as_name, case.as_marker, case.as_delimiter])
    return rows


def kinds(base: type[BucketCatalogError] = BucketCatalogError) -> list[type[BucketCatalogError]]:
    """Every error, those that have others below them included."""
    return [base] + [found for kind in base.__subclasses__() if kind.__module__ == errors.__name__ for found in kinds(kind)]


def test_names_are_those_that_the_tests_use() -> None:
    assert table_rows(GUIDE / "names.md", "## Names of objects and buckets") == name_rows()


def test_what_other_engines_show_otherwise_is_what_the_tests_find() -> None:
    assert table_rows(GUIDE / "engines.md", "## What differs") == [list(difference) for difference in DIFFERENCES]


def test_every_error_has_its_next_step() -> None:
    rows = table_rows(GUIDE / "errors.md", "## Codes")
    documented = {(row[0].strip("`"), row[1].strip("`")) for row in rows}

    assert documented == {(kind.code, kind.__name__) for kind in kinds()}
    assert len(rows) == len(documented)
    assert all(len(row[2]) > 10 and len(row[3]) > 10 for row in rows)


def test_every_finding_is_documented_with_its_severity() -> None:
    rows = table_rows(GUIDE / "verify.md", "## Codes")

    assert [(row[0].strip("`"), row[1]) for row in rows] == [(code, sort.severity.value) for code, sort in sorts().items()]
    assert all(len(row[2]) > 10 and row[3] for row in rows)


def test_what_info_advises_is_documented_with_when_it_does() -> None:
    rows = dict(table_rows(GUIDE / "commands.md", "### What needs doing"))
    large = f"{MANY_TRANSACTIONS:,} transactions, {MANY_EVENTS:,} events or {MANY_BYTES >> 20} MiB "
    assert rows["`checkpoint --all-writers`"].startswith(large)
    assert (
        f"{MUCH_HISTORY >> 20} MiB more than {['', '', 'two', 'three', 'four'][MANY_TIMES]} times"
        in rows["`prune --older-than 30d`"]
    )
    assert f"{MANY_TOMBSTONES:,} tombstones" in rows["`gc --data`"]


def test_every_error_but_the_bases_is_part_of_the_package() -> None:
    assert {kind.__name__ for kind in kinds()} <= set(bucketcatalog.__all__)


def test_stores_are_those_that_can_be_written() -> None:
    rows = table_rows(GUIDE / "stores.md", "## Which can be written")
    by_protocol = {name: row[1] for row in rows for name in re.findall(r"`(\w+)://", row[0])}

    assert {name for name, writes in by_protocol.items() if writes == "yes"} == WRITABLE
    for line in re.findall(r"^([a-z0-9, ]+?) {2,}no ", inspect.getdoc(remote) or "", re.MULTILINE):
        for name in line.split(", "):
            assert by_protocol.get(name) == "no" or name in ("file", "local", "zip", "tar and caches")


GROUP = typer.main.get_command(app())
assert isinstance(GROUP, typer.core.TyperGroup)
COMMANDS = GROUP.commands


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_documented_with_its_options(name: str) -> None:
    text = (GUIDE / "commands.md").read_text()
    (section,) = re.findall(rf"^## `{name}[ `].*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL) or [""]
    shared = text.partition("\n## ")[0]

    for parameter in COMMANDS[name].params:
        if parameter.param_type_name == "option":
            assert f"`{parameter.opts[0]}" in section + shared, parameter.opts


def test_no_other_command_is_documented() -> None:
    assert set(re.findall(r"^## `(\w+)", (GUIDE / "commands.md").read_text(), re.MULTILINE)) == set(COMMANDS)


def modules() -> list[str]:
    """The modules that the architecture names, in its order."""
    return re.findall(r"^\| `([\w/]+\.py)`", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)


PACKAGES = [
    Package("bucketcatalog", ROOT / "catalog" / "bucketcatalog"),
    Package("pyspark_bucketcatalog", ROOT / "spark" / "pyspark_bucketcatalog"),
]


def imported(module: str) -> set[str]:
    """What a module imports of these packages, also for type checkers alone, by the names of the architecture."""
    package = PACKAGES[module.startswith("pyspark_bucketcatalog/")]
    name = f"{package.name}.{module.removeprefix(f'{package.name}/').removesuffix('.py').replace('/', '.')}"
    found = package.imports(name, others=PACKAGES[0].modules)
    return {f"{each.removeprefix('bucketcatalog.').replace('.', '/')}.py" for each in found} & set(modules())


def test_arrows_point_one_way() -> None:
    order = {module: place for place, module in enumerate(modules())}
    wrong = [f"{module} imports {other}" for module in order for other in imported(module) if order[other] >= order[module]]

    assert wrong == []
    assert imported("catalog/opened.py") >= {"query/database.py", "clock.py"}
    assert imported("log/view.py") >= {"log/coverage.py", "model/cuts.py"}
    assert imported("pyspark_bucketcatalog/reading/relation.py") >= {"model/cuts.py", "pyspark_bucketcatalog/options.py"}


def test_the_architecture_names_every_module_and_no_other() -> None:
    named = set(modules())
    packages = [ROOT / "catalog" / "bucketcatalog", ROOT / "spark" / "pyspark_bucketcatalog"]
    there = {
        str(path.relative_to(package if package.name == "bucketcatalog" else package.parent))
        for package in packages
        for path in package.rglob("*.py")
        if not path.name.startswith("__") and path.parent not in (package / "v1", package / "cli")
    }

    assert named == there


def packages() -> list[Path]:
    """Every package of the engine that has modules to tell of."""
    root = ROOT / "catalog" / "bucketcatalog"
    return [path.parent for path in sorted(root.rglob("__init__.py")) if path.parent not in (root, root / "v1", root / "cli")]


@pytest.mark.parametrize("package", packages(), ids=lambda package: package.name)
def test_a_package_says_what_its_modules_are_in_the_order_of_the_architecture(package: Path) -> None:
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    told = re.findall(r"^    (\w+/?)  ", text, re.MULTILINE)
    below = str(package.relative_to(ROOT / "catalog" / "bucketcatalog"))
    known = [Path(name).stem for name in modules() if str(Path(name).parent) == below]
    inner = sorted(f"{path.parent.name}/" for path in package.glob("*/__init__.py"))

    assert told == [*known, *inner]
