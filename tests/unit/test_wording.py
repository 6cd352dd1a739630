"""Users are told what to do in the words of what they use: Python, or commands and their flags."""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bucketcatalog
from bucketcatalog import BucketCatalogError, Catalog
from bucketcatalog.cli import run
from bucketcatalog.maintain.verdict import Keeper
from bucketcatalog.maintain.verify import findings
from bucketcatalog.systems.iox import findings as of_data
from bucketcatalog.wording import either, how_to_set_aside, words_of_commands

ROOT = Path(bucketcatalog.__file__).parent
OF_COMMANDS = re.compile(r"(cli|console|systems/\w+/cli|v1)/")
"""What only commands read, and what is generated."""
FLAG = re.compile(r"--[a-z]")
COMMAND = re.compile(r"bucketcatalog [a-z]+ CATALOG|on a command line")
NO_FLAGS_OF_OURS = {
    ("format/compiled.py", "Make one with protoc --include_imports --descriptor_set_out=FILE, or with buf build -o FILE.binpb."),
    ("harvest/sources/s3.py", "--x-s3"),
}
ADVICE = "query/info.py"
"""What there is to do is a command there, to copy and run: ``Advice.command``."""


def test_words_are_those_of_python_unless_a_command_is_run() -> None:
    assert either("p", "c") == "p"
    with words_of_commands():
        assert either("p", "c") == "c"
        with words_of_commands():
            assert either("p", "c") == "c"
        assert either("p", "c") == "c"
    assert either("p", "c") == "p"
    with pytest.raises(ValueError, match="over"), words_of_commands():
        raise ValueError("over")
    assert either("p", "c") == "p"


def test_threads_of_a_command_speak_as_it_does() -> None:
    said: list[str] = []
    with words_of_commands():
        thread = threading.Thread(target=lambda: said.append(either("p", "c")))
        thread.start()
        thread.join()
    assert said == ["c"]


def test_what_is_forced_says_so_in_both() -> None:
    assert how_to_set_aside("w@1", force=True) == "catalog.repair(set_aside=['w@1'], force=True, dry_run=False)"
    with words_of_commands():
        assert how_to_set_aside("w@1") == "bucketcatalog repair CATALOG --set-aside w@1 --yes"
        assert how_to_set_aside("w@1", force=True) == "bucketcatalog repair CATALOG --set-aside w@1 --force --yes"


def texts(code: ast.Module) -> Iterator[str]:
    """The texts of a module, but for docstrings and what is said to either."""
    left_out: set[int] = set()
    for node in ast.walk(code):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_either = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "either"
        if is_docstring or is_either:
            left_out |= set(map(id, ast.walk(node)))
    for node in ast.walk(code):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


def test_no_message_of_the_engine_speaks_of_flags_or_commands_to_who_writes_python() -> None:
    modules = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    found = {
        (name, text)
        for name, code in modules.items()
        if not OF_COMMANDS.match(name) and name != ADVICE
        for text in texts(code)
        if FLAG.search(text) or COMMAND.search(text)
    }
    assert found == NO_FLAGS_OF_OURS


def test_remedies_of_findings_are_in_the_words_of_who_reads() -> None:
    for sorts in (findings.sorts, of_data.sorts):
        python = sorts()
        with words_of_commands():
            commands = sorts()
        assert python.keys() == commands.keys() and [*map(str, python)] == [*map(str, commands)]
        for code, sort in python.items():
            said = sort.remedy + getattr(sort, "when_lost", "")
            assert not FLAG.search(said) and not re.search(r"bucketcatalog [a-z]+ ", said), code
            assert not re.search(r"\bcatalog\.\w|=", commands[code].remedy), code
            assert sort.severity == commands[code].severity


def test_why_files_stay_is_in_the_words_of_who_reads() -> None:
    for keeper, python, command in (
        (Keeper.AGE, "as old as older_than asks", "--older-than"),
        (Keeper.KEEP, "as keep keeps", "--keep"),
    ):
        assert python in keeper.why
        with words_of_commands():
            assert command in keeper.why and python not in keeper.why


@pytest.fixture
def lake(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path / "lake")
    for database in ("one", "two"):
        with catalog.writer("node-1", database=database) as writer, writer.transaction() as tx:
            tx.put("buckets", {"owner": "8f3f1d6e-6a53-4b0c-9d3c-0d9a8d2b7c11", "name": "cats"})
    return catalog


SITUATIONS: dict[str, tuple[Callable[[Catalog], object], list[str], str, str]] = {
    "no catalog": (
        lambda lake: Catalog(f"{lake.url}/none").snapshot(),
        ["info", "{}/none"],
        "harvest(catalog, source).",
        "bucketcatalog harvest SOURCE CATALOG.",
    ),
    "several databases": (lambda lake: lake.snapshot(), ["writers", "{}"], "database='NAME'", "--database NAME."),
    "too young": (
        lambda lake: lake.prune("1s", database="one", dry_run=False),
        ["prune", "{}", "--older-than", "1s", "--database", "one", "--yes"],
        "or force=True where",
        "or --force where",
    ),
    "keep nothing": (
        lambda lake: lake.prune("7d", keep=0, database="one"),
        ["prune", "{}", "--older-than", "7d", "--keep", "0", "--database", "one"],
        "Give keep=1 or more",
        "--keep",
    ),
    "no tag": (
        lambda lake: lake.drop_tag("v1", database="one"),
        ["tag", "{}", "v1", "--drop", "--database", "one"],
        "See snapshot.scan('tags') for",
        "See bucketcatalog tag CATALOG for",
    ),
    "no version": (
        lambda lake: lake.snapshot(version="v1", database="one"),
        ["ls", "{}", "--as-of", "v1", "--database", "one"],
        "See snapshot.scan('tags') for",
        "See bucketcatalog tag CATALOG for",
    ),
    "no writer": (
        lambda lake: lake.retire("node-9", database="one"),
        ["retire", "{}", "node-9", "--database", "one"],
        "See snapshot.scan('writers') for",
        "See bucketcatalog writers CATALOG for",
    ),
    "young garbage": (
        lambda lake: lake.collect(database="one", older_than="1s"),
        ["gc", "{}", "--data", "--older-than", "1s", "--database", "one"],
        "or force=True where",
        "or --force where",
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_one_situation_is_told_in_python_and_in_a_command(
    lake: Catalog, situation: str, capfd: pytest.CaptureFixture[str]
) -> None:
    do, command, python, flags = SITUATIONS[situation]
    with pytest.raises(BucketCatalogError) as error:
        do(lake)
    assert run([part.format(lake.url) for part in command]) != 0
    told = capfd.readouterr().err
    assert python in str(error.value) and flags in told
    assert not FLAG.search(str(error.value)) and python not in told


def test_damage_is_told_in_python_and_in_a_command(lake: Catalog, capfd: pytest.CaptureFixture[str]) -> None:
    (file,) = Path(lake.url).glob("node-1/one/transactions/**/*.txn")
    file.write_bytes(file.read_bytes()[:-9] + b"nonsense!")
    with pytest.raises(BucketCatalogError) as error:
        lake.snapshot(database="one").scan("buckets").to_arrow()
    (finding,) = lake.verify(database="one")
    assert run(["ls", lake.url, "--database", "one"]) == 1
    told = capfd.readouterr().err
    assert run(["verify", lake.url, "--database", "one"]) == 1
    told += capfd.readouterr().out
    for python, flags in (
        ("catalog.repair(", "bucketcatalog repair CATALOG"),
        ("set_aside=['node-1/one/", "--set-aside node-1/one/"),
    ):
        assert python in str(error.value) and flags in told and python not in told
    assert "else catalog.repair() says" in finding.remedy and not FLAG.search(str(finding))
