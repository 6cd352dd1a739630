"""Commands that are done in a moment start without what they have no use for."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from bucketcatalog.cli.commands import GROUPS

from .conftest import Past

UNUSED = {
    "asyncio",
    "boto3",
    "botocore",
    "bucketcatalog.checkpoint",
    "bucketcatalog.harvest",
    "bucketcatalog.maintain",
    "bucketcatalog.write",
    "fsspec",
    "pandas",
    "pyarrow.dataset",
    "pyarrow.pandas_compat",
    "pydantic",
    "pyspark",
    "rich.console",
    "tenacity",
}
"""What ``ls`` and the like have no use for, and what takes long to import: pandas as long as all the rest."""
LISTED = """
import sys
from bucketcatalog.cli import main
try:
    main()
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""


def imported(*arguments: object) -> set[str]:
    """The modules that a command has imported by its end, in a process of its own."""
    command = [sys.executable, "-c", LISTED, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout
    return set(ran.stderr.split())


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


def test_the_package_itself_imports_none_of_it_either() -> None:
    code = "import sys, bucketcatalog; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) & UNUSED == set()


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
