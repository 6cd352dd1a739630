"""Lanes stand side by side: what several share is in the kit, which knows none of them, and nobody imports a test. No file is long."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

import pytest

from ..kit.importing import Package, circles, imported

TESTS = Package("tests", Path(__file__).parents[1])
EXPLORE = "tests.explore"
"""No lane, and not shared: a program that runs lanes, and has a test."""


def folder(module: str) -> str:
    """The lane that a module is in, or the kit."""
    return ".".join(module.split(".")[:2])


def astray(module: str, found: Iterable[str]) -> set[str]:
    """Which of these modules a module of the tests must not import."""
    ours = {name for name in found if name.split(".")[0] == "tests"}
    allowed = {"tests.kit"} if folder(module) == "tests.kit" else {"tests.kit", folder(module), EXPLORE}
    return {name for name in ours if folder(name) not in allowed or name.rpartition(".")[2].startswith("test_")}


def test_no_lane_imports_another_the_kit_imports_none_and_nobody_imports_a_test() -> None:
    wrong = {module: found for module in TESTS.modules if (found := astray(module, TESTS.imports(module)))}
    assert wrong == {}


def test_no_file_of_the_tests_is_longer_than_what_one_reads_at_once() -> None:
    assert {module for module, path in TESTS.modules.items() if len(path.read_text().splitlines()) > 500} == set()


def test_no_import_of_the_tests_goes_round_in_a_circle() -> None:
    assert circles({module: TESTS.imports(module) - {module} for module in TESTS.modules}) == []


@pytest.mark.parametrize(
    ("module", "line", "wrong"),
    [
        ("tests.s3.test_new", "from ..property.racing import key", "tests.property.racing"),
        ("tests.s3.test_new", "from ..property import racing", "tests.property.racing"),
        ("tests.s3.test_new", "import tests.property.racing", "tests.property.racing"),
        ("tests.s3.test_new", "from tests.unit.conftest import world", "tests.unit.conftest"),
        ("tests.s3.test_new", "from .test_docs import seeded", "tests.s3.test_docs"),
        ("tests.s3.test_new", "from . import test_docs", "tests.s3.test_docs"),
        ("tests.kit.new", "from ..docs.guide import GUIDE", "tests.docs.guide"),
        ("tests.kit.new", "from .. import explore", "tests.explore"),
    ],
)
def test_what_is_astray_is_found_in_whatever_words_it_is_imported(module: str, line: str, wrong: str) -> None:
    fine = "from ..kit.world import World\nfrom ..kit import chance\nimport minio\n"
    found = imported(ast.parse(f"{fine}{line}\n"), folder(module), TESTS.modules)
    assert astray(module, found) == {wrong}
