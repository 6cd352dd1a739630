"""Arrows point one way: each module imports only what stands before it, and each outside thing has one door."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest

import bucketcatalog
from bucketcatalog.format.definitions import core_tables

ROOT = Path(bucketcatalog.__file__).parent

# A module imports from earlier entries of this list, or from its own package without a circle.
ORDER = [
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
    "state",
    "checkpoint",
    "query",
    "write",
    "maintain",
    "registry",
    "catalog",
    "compaction",
    "harvest",
    "console",
    "cli",
]
"""The packages, and the modules that everybody uses, in the order of a byte's way."""


def sources() -> dict[str, Path]:
    """Every module of the package by its dotted name below it."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


SOURCES = sources()


@functools.cache
def parsed(module: str) -> ast.Module:
    """A module's code."""
    return ast.parse(SOURCES[module].read_text())


@functools.cache
def imports(module: str, *, typing: bool = False) -> frozenset[str]:
    """The package's modules that a module imports when it runs; with ``typing`` those for type checkers too."""
    path = SOURCES[module]
    tree = parsed(module)
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not typing:
            skipped |= {id(inner) for inner in ast.walk(node)}
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and id(node) not in skipped:
            if node.level:
                base = package.split(".") if package else []
                base = base[: len(base) - node.level + 1]
                target = ".".join([*base, *([node.module] if node.module else [])])
            elif node.module and node.module.split(".")[0] == "bucketcatalog":
                target = ".".join(node.module.split(".")[1:])
            else:
                continue
            for alias in node.names:
                full = f"{target}.{alias.name}" if target else alias.name
                found.add(full if full in SOURCES else target)
    return frozenset(name for name in found if name and name != module)


def outside(module: str) -> set[str]:
    """The top-level names of other packages that a module imports."""
    found = set()
    for node in ast.walk(parsed(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return found


MODULES = [name for name in SOURCES if name]


ENGINE = set(ORDER[: ORDER.index("catalog")]) - {"v1"}


def test_every_module_has_its_place_in_the_order() -> None:
    assert {name.split(".")[0] for name in MODULES} == set(ORDER)
    assert len(set(ORDER)) == len(ORDER)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_stands_before_it(module: str) -> None:
    place = ORDER.index(module.split(".")[0])
    later = {name for name in imports(module) if ORDER.index(name.split(".")[0]) > place}
    assert later == set()


def test_no_import_goes_round_in_a_circle() -> None:
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path, module))
        if module not in done:
            for name in imports(module):
                visit(name, (*path, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())


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


def test_only_the_format_imports_generated_protobuf() -> None:
    users = {module for module in MODULES if any(n.split(".")[0] == "v1" for n in imports(module, typing=True))}
    assert users and {name.split(".")[0] for name in users} <= {"format", "v1"}
    runtime = {module for module in MODULES if "google" in outside(module)}
    assert {name.split(".")[0] for name in runtime} <= {"format", "v1"}


def test_only_one_module_reads_clocks_and_makes_chance() -> None:
    users = {module for module in MODULES if outside(module) & {"time", "random", "secrets"}}
    assert users == {"clock"}
    assert "urandom" not in "".join(SOURCES[m].read_text() for m in MODULES if m != "clock")
    for call in ("datetime.now", "utcnow(", "uuid4(", "uuid1("):
        assert not [m for m in MODULES if call in SOURCES[m].read_text()], call


def test_values_and_formats_do_no_io() -> None:
    users = {m for m in MODULES if any(n.split(".")[0] == "store" for n in imports(m, typing=True))}
    assert users and not {m for m in users if m.split(".")[0] in ("model", "format")}


@pytest.mark.parametrize("module", MODULES)
def test_no_name_that_is_private_is_imported_from_another_module(module: str) -> None:
    tree = parsed(module)
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module != "__future__"]
    assert [alias.name for node in froms for alias in node.names if alias.name.startswith("_")] == []


def test_only_what_users_name_is_exported_by_a_package() -> None:
    packages = {name: path for name, path in SOURCES.items() if path.name == "__init__.py" and name not in ("", "v1")}
    exporting = {name for name, path in packages.items() if len(ast.parse(path.read_text()).body) > 1}
    assert exporting == {"store", "harvest", "cli"}
    assert all(ast.get_docstring(ast.parse(path.read_text())) for path in packages.values())


def test_no_import_of_the_benchmarks_goes_round_in_a_circle() -> None:
    folder = ROOT.parent.parent / "benchmarks"
    found: dict[str, set[str]] = {}
    for path in folder.glob("*.py"):
        nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom) and node.level == 1]
        found[path.stem] = {name for node in nodes for name in ([node.module] if node.module else [a.name for a in node.names])}
    circles = [path for start in found for path in _circles(found, start, ())]
    assert circles == []
    assert found["world"] >= {"dataset", "ours"}


def _circles(found: dict[str, set[str]], module: str, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    if module in path:
        return [(*path, module)]
    return [circle for name in sorted(found.get(module, ())) for circle in _circles(found, name, (*path, module))]


def test_the_engine_knows_neither_spark_nor_an_object_stores_client() -> None:
    every = {name: outside(name) for name in MODULES}
    assert not [m for m, found in every.items() if found & {"pyspark", "pyspark_bucketcatalog"}]
    clients = {m for m, found in every.items() if found & {"boto3", "botocore", "s3fs", "urllib3"}}
    assert clients and all(m.startswith("store.s3.") for m in clients)
    assert {m.split(".")[0] for m, found in every.items() if "fsspec" in found} <= {"store"}
    assert {m.split(".")[0] for m, found in every.items() if found & {"typer", "rich", "click"}} <= {"cli", "console"}


@pytest.mark.parametrize("module", [name for name in MODULES if name.split(".")[0] in ENGINE])
def test_the_engine_knows_no_table_by_its_name(module: str) -> None:
    core = core_tables()
    known = {*core, "owner", "bucket_id", "content_length", "external"}
    assert known <= {*core, *(column.name for table in core.values() for column in table.columns)}
    if module == "format.definitions":
        known -= {"external"}  # by which definitions that lack the option go
    said = {node.value for node in ast.walk(ast.parse(SOURCES[module].read_text())) if isinstance(node, ast.Constant)}
    assert not known & said


A_SYSTEM_MAY_IMPORT = {"errors", "clock", "limits", "parallel", "model", "query", "write", "registry", "catalog", "v1"}
SYSTEMS = [path for path in (ROOT / "systems", ROOT.parent.parent / "tests" / "kit" / "boxes" / "boxes") if path.is_dir()]


@pytest.mark.parametrize(
    "path", [path for folder in SYSTEMS for path in sorted(folder.rglob("*.py"))], ids=lambda path: path.stem
)
def test_a_system_stands_on_what_is_meant_for_systems(path: Path) -> None:
    tree = ast.parse(path.read_text())
    named = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    named |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    of_ours = {name.split(".", 1)[1] for name in named if name.startswith("bucketcatalog.")}
    seam = {"store.base", "store.retry"}
    allowed = A_SYSTEM_MAY_IMPORT | ({"console"} if path.stem == "cli" else set())
    assert {name for name in of_ours - seam if name.split(".")[0] not in allowed} == set()
    assert not {name.split(".")[0] for name in named} & {"pyspark", "pyspark_bucketcatalog"}


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
    "CheckpointTooLate",
    "ClockSkew",
    "ClosedWriter",
    "CommitError",
    "CommitUnknown",
    "CorruptionError",
    "DataCollected",
    "DatabaseNotFound",
    "ForeignBranch",
    "ForkDetected",
    "IncompatibleTable",
    "HistoryPruned",
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
    "SourceNotFound",
    "StaleRead",
    "StoreError",
    "StoreNotFound",
    "StoreUnavailable",
    "StoreUnreachable",
    "TagExists",
    "TargetNotEmpty",
    "TruncatedObject",
    "UnknownTable",
    "UnsupportedFormat",
    "UnsupportedStore",
    "UsageError",
    "WriterBusy",
    "between",
    "prefix",
}
