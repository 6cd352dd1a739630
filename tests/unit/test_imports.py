"""Arrows point one way: each module imports only what stands before it, and each outside thing has one door."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import bucketcatalog
from bucketcatalog.format.definitions import core_tables

from ..kit.importing import Package, circles, imported

ROOT = Path(bucketcatalog.__file__).parent

# A module imports from earlier entries of this list, or from its own package without a circle.
ORDER = [
    "wording",
    "errors",
    "clock",
    "limits",
    "cache",
    "parallel",
    "model",
    "v1",
    "store",
    "format",
    "log",
    "where",
    "state",
    "checkpoint",
    "query",
    "write",
    "maintain",
    "registry",
    "federation",
    "catalog",
    "compaction",
    "questions",
    "harvest",
    "exports",
    "console",
    "systems",
    "cli",
    "__main__",
]
"""The packages, and the modules that everybody uses, in the order of a byte's way; then what runs the last of them."""

PACKAGE = Package("bucketcatalog", ROOT)
MODULES = [name.removeprefix("bucketcatalog.") for name in PACKAGE.modules if name != "bucketcatalog"]
"""Every module of the package, called as below it."""

TEXTS = {module: PACKAGE.modules[f"bucketcatalog.{module}"].read_text() for module in MODULES}
parsed = functools.cache(lambda module: PACKAGE.code(f"bucketcatalog.{module}"))


def below(found: Iterable[str]) -> frozenset[str]:
    """Those that are of the package, called as below it; the package itself, which shows what stands before and in ``catalog``, as that."""
    of_ours = (name for name in found if name.split(".")[0] == "bucketcatalog")
    return frozenset(name.partition(".")[2] or "catalog" for name in of_ours)


@functools.cache
def imports(module: str) -> frozenset[str]:
    """The package's modules that a module imports, also those for type checkers alone."""
    return below(PACKAGE.imports(f"bucketcatalog.{module}")) - {module}


def outside(module: str) -> set[str]:
    """The top-level names of other packages that a module imports."""
    return {name.split(".")[0] for name in PACKAGE.imports(f"bucketcatalog.{module}")} - {"bucketcatalog"}


def later(module: str, found: Iterable[str]) -> set[str]:
    """Which of these modules a module must not import, since they stand after it."""
    return {name for name in found if ORDER.index(name.split(".")[0]) > ORDER.index(module.split(".")[0])}


ENGINE = set(ORDER[: ORDER.index("catalog")]) - {"v1"}


def test_every_module_has_its_place_in_the_order() -> None:
    assert {name.split(".")[0] for name in MODULES} == set(ORDER)
    assert len(set(ORDER)) == len(ORDER)


def test_a_module_is_one_idea_and_not_long() -> None:
    assert [module for module, text in TEXTS.items() if not module.startswith("v1.") and len(text.splitlines()) > 400] == []


def test_the_architecture_tells_the_rule_of_imports() -> None:
    rule = re.search(r"rule of imports: ([\w,\s]+)\.", (ROOT.parent.parent / "docs" / "architecture.md").read_text())
    assert rule is not None and rule[1].replace("\n", " ").replace(",", " ").split() == ORDER[:-1]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_stands_before_it(module: str) -> None:
    assert later(module, imports(module)) == set()


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("import bucketcatalog.catalog", "catalog"),
        ("import bucketcatalog.store.base as base", "store.base"),
        ("import os, bucketcatalog.store.base", "store.base"),
        ("from bucketcatalog import maintain", "maintain"),
        ("from bucketcatalog import clock, maintain", "maintain"),
        ("from bucketcatalog import Catalog", "catalog"),
        ("from bucketcatalog.maintain import gc", "maintain.gc"),
        ("from bucketcatalog.log.files import LogFiles", "log.files"),
        ("from .. import Catalog", "catalog"),
        ("from .. import store", "store"),
        ("from ..store import base", "store.base"),
        ("from ..store.base import Store", "store.base"),
        ("if TYPE_CHECKING:\n    from ..store.base import Store", "store.base"),
        ("def late():\n    import bucketcatalog.catalog", "catalog"),
    ],
)
def test_what_stands_after_a_module_is_found_in_whatever_words_it_imports_that(line: str, wrong: str) -> None:
    found = below(imported(ast.parse(f"from . import arrays\n{line}\n"), "bucketcatalog.model", PACKAGE.modules))
    assert later("model.bloom", found) == {wrong}


def test_no_import_goes_round_in_a_circle() -> None:
    assert circles({module: imports(module) for module in MODULES}) == []
    assert circles({"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset("db"), "d": frozenset()}) == ["b -> c -> b"]


@pytest.mark.parametrize("module", MODULES)
def test_imports_stand_at_the_top(module: str) -> None:
    tree = parsed(module)
    inner = [
        n
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef)
        for n in ast.walk(f)
        if isinstance(n, ast.Import | ast.ImportFrom)
    ]
    if module.split(".")[0] not in ("cli", "console", "store", "registry", "catalog"):
        assert [ast.unparse(node) for node in inner] == []


def test_only_the_format_and_what_declares_a_system_import_generated_protobuf() -> None:
    users = {module for module in MODULES if any(n.split(".")[0] == "v1" for n in imports(module))}
    assert users and {name.split(".")[0] for name in users} <= {"format", "v1", "systems"}
    assert {name.count(".") for name in users if name.startswith("systems.")} == {1}
    runtime = {module for module in MODULES if "google" in outside(module)}
    assert {name.split(".")[0] for name in runtime} <= {"format", "v1"}


def test_only_one_module_reads_clocks_and_makes_chance() -> None:
    users = {module for module in MODULES if outside(module) & {"time", "random", "secrets"}}
    assert users == {"clock"}
    assert "urandom" not in "".join(TEXTS[m] for m in MODULES if m != "clock")
    for call in ("datetime.now", "utcnow(", "uuid4(", "uuid1("):
        assert not [m for m in MODULES if call in TEXTS[m]], call


def test_values_and_formats_do_no_io() -> None:
    users = {m for m in MODULES if any(n.split(".")[0] == "store" for n in imports(m))}
    assert users and not {m for m in users if m.split(".")[0] in ("model", "format")}


@pytest.mark.parametrize("module", MODULES)
def test_no_name_that_is_private_is_imported_from_another_module(module: str) -> None:
    tree = parsed(module)
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module != "__future__"]
    assert [alias.name for node in froms for alias in node.names if alias.name.startswith("_")] == []


def test_only_what_users_name_is_exported_by_a_package() -> None:
    packages = [m for m in MODULES if PACKAGE.modules[f"bucketcatalog.{m}"].name == "__init__.py" and m != "v1"]
    systems = {m for m in packages if m.startswith("systems.")}
    assert {m for m in packages if len(parsed(m).body) > 1} == {
        "store",
        "catalog",
        "questions",
        "harvest",
        "exports",
        "registry",
        "cli",
        *systems,
    }
    assert all(ast.get_docstring(parsed(m)) for m in packages)


def test_no_import_of_the_benchmarks_goes_round_in_a_circle() -> None:
    benchmarks = Package("benchmarks", ROOT.parent.parent / "benchmarks")
    found = {module: benchmarks.imports(module) - {module} for module in benchmarks.modules}
    assert circles(found) == []
    assert found["benchmarks.world"] >= {"benchmarks.dataset", "benchmarks.ours"}


def test_the_engine_knows_neither_spark_nor_an_object_stores_client() -> None:
    every = {name: outside(name) for name in MODULES}
    assert not [m for m, found in every.items() if found & {"pyspark", "pyspark_bucketcatalog"}]
    clients = {m for m, found in every.items() if found & {"boto3", "botocore", "s3fs", "urllib3"}}
    assert clients and all(m.startswith("store.s3.") for m in clients)
    assert {m.split(".")[0] for m, found in every.items() if "fsspec" in found} <= {"store"}
    assert {m.split(".")[0] for m, found in every.items() if found & {"typer", "rich", "click"}} <= {"cli", "console", "systems"}


@pytest.mark.parametrize("module", [name for name in MODULES if name.split(".")[0] in ENGINE])
def test_the_engine_knows_no_table_by_its_name(module: str) -> None:
    core = core_tables()
    known = {*core, "owner", "bucket_id", "content_length", "external"}
    assert known <= {*core, *(column.name for table in core.values() for column in table.columns)}
    if module == "format.definitions":
        known -= {"external"}  # by which definitions that lack the option go
    said = {node.value for node in ast.walk(parsed(module)) if isinstance(node, ast.Constant)}
    assert not known & said


A_SYSTEM_MAY_IMPORT = {"wording", "errors", "clock", "limits", "parallel", "model", "query", "write", "registry", "catalog", "v1"}
THE_STORES_SEAM = {"store.base", "store.elsewhere", "store.retry"}
SYSTEMS = [
    *(Package(f"bucketcatalog.systems.{init.parent.name}", init.parent) for init in sorted(ROOT.glob("systems/*/__init__.py"))),
    Package("boxes", ROOT.parent.parent / "tests" / "kit" / "boxes" / "boxes"),
]


def not_for_systems(system: str, module: str, found: Iterable[str]) -> set[str]:
    """Which of these modules a module of a system must not import: others of this package than are meant for systems, and Spark."""
    allowed = A_SYSTEM_MAY_IMPORT | ({"console"} if f"{module}.".startswith(f"{system}.cli.") else set())
    others = {name for name in found if name != system and not name.startswith(f"{system}.")}
    ours = {name for name in below(others) - THE_STORES_SEAM if name.split(".")[0] not in allowed}
    return ours | {name for name in others if name.split(".")[0] in ("pyspark", "pyspark_bucketcatalog")}


@pytest.mark.parametrize(
    ("system", "module"),
    [pytest.param(package, module, id=module) for package in SYSTEMS for module in package.modules],
)
def test_a_system_stands_on_what_is_meant_for_systems(system: Package, module: str) -> None:
    assert not_for_systems(system.name, module, system.imports(module, others=PACKAGE.modules)) == set()


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("from ...log.files import LogFiles", "log.files"),
        ("from ...maintain.gc.data import Deleter", "maintain.gc.data"),
        ("from ... import maintain", "maintain"),
        ("from bucketcatalog import maintain", "maintain"),
        ("from bucketcatalog import Catalog, format", "format"),
        ("import bucketcatalog.state.fold", "state.fold"),
        ("from ...store import memory", "store.memory"),
        ("from ...store import Store", "store"),
        ("from ...console.output import print_facts", "console.output"),
        ("from ..rgw.tables import TABLES", "systems.rgw.tables"),
        ("def late():\n    from pyspark.sql import SparkSession", "pyspark.sql"),
        ("import pyspark_bucketcatalog as bcs", "pyspark_bucketcatalog"),
    ],
)
def test_what_is_not_meant_for_systems_is_found_in_whatever_words_one_imports_it(line: str, wrong: str) -> None:
    fine = "from ... import Catalog, clock\nfrom ...store import base\nfrom ...query.reads import Read\nfrom . import tables\n"
    own = "bucketcatalog.systems.manta"
    known = {*PACKAGE.modules, f"{own}.tables"}
    found = imported(ast.parse(f"{fine}from ..manta.tables import TABLES\n{line}\n"), own, known)
    assert not_for_systems(own, f"{own}.garbage", found) == {wrong}
    for module in (f"{own}.cli", f"{own}.cli.objects"):
        assert not_for_systems(own, module, found) == {wrong} - {"console.output"}


def test_an_object_stores_client_is_imported_only_when_one_is_opened() -> None:
    code = "import sys, bucketcatalog, bucketcatalog.cli; sys.exit(bool({'boto3', 'botocore', 's3fs'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_from_the_store_is_unpickled() -> None:
    assert not [m for m in MODULES if outside(m) & {"pickle", "marshal", "shelve", "cloudpickle"}]


def test_the_surface_is_sorted_and_complete() -> None:
    assert list(bucketcatalog.__all__) == sorted(bucketcatalog.__all__)
    assert set(bucketcatalog.__all__) == SURFACE
    for name in bucketcatalog.__all__:
        assert getattr(bucketcatalog, name).__doc__
    for name in ("AccessDenied", "StoreUnavailable"):
        assert issubclass(getattr(bucketcatalog, name), bucketcatalog.BucketCatalogError)


SURFACE = {
    "AccessDenied",
    "BrokenSystem",
    "BucketCatalogError",
    "Catalog",
    "CatalogNotFound",
    "CatalogWarning",
    "Changes",
    "CheckpointTooLate",
    "ClockSkew",
    "ClosedWriter",
    "CommitError",
    "CommitUnknown",
    "CorruptionError",
    "DataCollected",
    "DatabaseNotFound",
    "Diff",
    "ForeignBranch",
    "ForkDetected",
    "HistoryPruned",
    "IncompatibleTable",
    "InvalidName",
    "InvalidOption",
    "InvalidRows",
    "InvalidTime",
    "InvalidVersion",
    "MissingObject",
    "NotFound",
    "ObjectNotFound",
    "OutcomeUnknown",
    "ParentEnded",
    "Scan",
    "SetAsideError",
    "Snapshot",
    "SourceNotFound",
    "StaleBatch",
    "StaleRead",
    "StoreError",
    "StoreNotFound",
    "StoreUnavailable",
    "StoreUnreachable",
    "TagExists",
    "TargetNotEmpty",
    "Transaction",
    "TruncatedObject",
    "UnknownTable",
    "UnsupportedFormat",
    "UnsupportedStore",
    "UsageError",
    "Writer",
    "WriterBusy",
    "WriterRetired",
    "between",
    "prefix",
}
