"""Commands that are done in a moment start without what they have no use for."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec

import pytest

from bucketcatalog.cli import run
from bucketcatalog.cli.commands import GROUPS

from .conftest import Cli, Past

UNUSED = {
    "asyncio",
    "boto3",
    "botocore",
    "bucketcatalog.checkpoint",
    "bucketcatalog.exports",
    "bucketcatalog.federation",
    "bucketcatalog.harvest",
    "bucketcatalog.maintain",
    "bucketcatalog.query.changes",
    "bucketcatalog.query.difference",
    "bucketcatalog.query.side_by_side",
    "bucketcatalog.query.views",
    "bucketcatalog.registry.own_code",
    "bucketcatalog.registry.system",
    "bucketcatalog.systems",
    "bucketcatalog.write",
    "fsspec",
    "importlib.metadata",
    "pandas",
    "pyarrow.csv",
    "pyarrow.dataset",
    "pyarrow.pandas_compat",
    "pyarrow.parquet",
    "pydantic",
    "pyspark",
    "rich.console",
    "tenacity",
}
"""What ``ls`` and the like have no use for, and what takes long to import: pandas as long as all the rest."""
NOT_FOR_THE_VERSION = {
    "bucketcatalog.catalog",
    "bucketcatalog.cli.commands",
    "bucketcatalog.registry",
    "bucketcatalog.store",
    "bucketcatalog.v1",
    "google.protobuf",
    "numpy",
    "pyarrow",
    "rich",
    "typer",
}
"""What stands between a process and the first word that it says, unless it is left out."""
FROM_THE_SCRIPT = "from bucketcatalog.cli import main; main()"
AS_A_MODULE = "import runpy; runpy.run_module('bucketcatalog', run_name='__main__')"
LISTED = """
import sys
try:
    {}
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


def imported(*arguments: object, start: str = FROM_THE_SCRIPT) -> set[str]:
    """The modules that a command has imported by its end, in a process of its own."""
    command = [sys.executable, "-c", LISTED.format(start), *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
    return set(ran.stderr.split())


def told(code: str, *arguments: object, **environment: str) -> str:
    """What code prints to standard error, in a process of its own."""
    command, inherited = [sys.executable, "-c", code, *map(str, arguments)], {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=inherited).stderr


@pytest.mark.parametrize(
    "arguments",
    [("ls",), ("ls", "pets"), ("stat", "pets", "a/b"), ("stat", "pets", "a/b", "--history"), ("info",), ("log",)],
    ids=" ".join,
)
def test_commands_of_a_moment_import_only_what_they_need(past: Past, arguments: tuple[str, ...]) -> None:
    assert find_spec("pandas") is not None, "without it this test sees nothing"
    command, *rest = arguments
    found = imported(command, past.path, *rest)
    assert found & UNUSED == set()
    others = {f"bucketcatalog.cli.{group}" for group, names in GROUPS.items() if command not in names}
    assert found & others == set()


@pytest.mark.parametrize("start", [FROM_THE_SCRIPT, AS_A_MODULE])
def test_the_version_is_told_before_anything_is_imported_that_takes_long(start: str) -> None:
    assert imported("--version", start=start) & (NOT_FOR_THE_VERSION | UNUSED) - {"importlib.metadata"} == set()


def test_the_version_is_the_same_with_other_arguments_behind_it(cli: Cli) -> None:
    assert cli("--version").out == cli("--version", "ls").out == f"bucketcatalog {version('bucketcatalog')}\n"


def test_the_version_and_what_nobody_knows_is_wrong_usage() -> None:
    assert run(["--version", "--bogus"]) == 2


def test_the_package_itself_imports_no_arrow_before_it_is_asked_for_a_catalog() -> None:
    code = "import sys; {}; print(*sys.modules, file=sys.stderr)"
    nothing_of = {"numpy", "pyarrow", "bucketcatalog.catalog", "bucketcatalog.store"}
    assert set(told(code.format("import bucketcatalog")).split()) & (nothing_of | UNUSED) == set()
    with_it = set(told(code.format("from bucketcatalog import Catalog")).split())
    assert with_it >= nothing_of and with_it & UNUSED == set()


@pytest.mark.parametrize("name", ["bucketcatalog", "bucketcatalog.registry"])
def test_what_a_package_imports_later_is_there_for_whoever_asks(name: str) -> None:
    package = import_module(name)
    assert set(package.__all__) <= {*dir(package)}
    assert all(getattr(package, each) is getattr(package, each) for each in package.__all__)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = package.nothing


THREADS = "OPENBLAS_NUM_THREADS"
AFTERWARDS = f"""
import gc, os, sys
from pathlib import Path
from bucketcatalog.cli import main
try:
    main()
finally:
    threads = [(task / "comm").read_text() for task in Path("/proc/self/task").iterdir()]
    own = threads.count(Path("/proc/self/comm").read_text())  # Arrow's allocator has one that is called otherwise
    print(os.environ.get("{THREADS}"), gc.isenabled(), own, file=sys.stderr)
"""


def test_a_start_leaves_the_environment_as_it_was_and_starts_no_threads() -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv(THREADS, raising=False)
        assert told(AFTERWARDS, "ls", "--help") == "None True 1\n"
    assert told(AFTERWARDS, "ls", "--help", **{THREADS: "1"}) == "1 True 1\n"


def test_pandas_is_there_for_whoever_asks_for_it_in_the_program() -> None:
    code = """
import sys
sys.argv = ["bucketcatalog", "--version"]
from bucketcatalog.cli import main
try:
    main()
except SystemExit:
    pass
import pyarrow as pa
assert "pandas" not in sys.modules
assert pa.table({"a": [1]}).to_pandas()["a"].tolist() == [1]
import pandas
assert pa.array(pandas.Series([1, 2])).to_pylist() == [1, 2]
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_command_is_found_in_its_module() -> None:
    assert {group: tuple(import_module(f"bucketcatalog.cli.{group}").COMMANDS) for group in GROUPS} == GROUPS
