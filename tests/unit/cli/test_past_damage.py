"""``--ignore-corruption`` of every command that reads: what is damaged is left out and named, and the rest is shown."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bucketcatalog import Catalog
from bucketcatalog.cli import run
from bucketcatalog.cli.commands import app

from ...kit.world import BUCKET, bucket, obj
from .conftest import Cli, Ran

READING = [
    ["log"],
    ["writers"],
    ["tables"],
    ["checkpoints"],
    ["forks"],
    ["conflicts"],
    ["sums"],
    ["tag"],
    ["pin"],
    ["changes"],
    ["diff"],
    ["ls", "pets"],
    ["du"],
    ["du", "--depth", "1"],
    ["top"],
    ["find", "--name", "*"],
    ["dups"],
    ["growth"],
    ["who"],
    ["age"],
    ["cost", "--price", "default=1"],
    ["export", "objects", "{out}"],
]
WRITES = {"harvest", "checkpoint", "prune", "gc", "restore", "clone", "repair", "retire", "spark"}
LOOKS_ITSELF = {"info", "verify", "dump"}


@pytest.fixture
def damaged(tmp_path: Path) -> tuple[Path, str]:
    """A catalog of two writers, and the name of the damaged file of one."""
    place = tmp_path / "lake"
    for who in ("node", "mallory"):
        with Catalog(place).writer(who) as writer:
            for name in ("a", "b"):
                with writer.transaction() as tx:
                    tx.put("buckets", bucket("pets"))
                    tx.put("objects", obj(f"{who} {name}"))
    file = max(place.glob("mallory/*/transactions/*/*.txn"))
    file.write_bytes(b"\n")
    return place, str(file.relative_to(place))


ANOTHERS = "mallory/x"
"""Where another database may lie, of which nothing is missing in the one that is named."""
LINKS = ["mallory", ANOTHERS, "mallory/default/transactions"]


def linked(place: Path, name: str) -> None:
    """What lies at a name of a catalog lies elsewhere from now on, behind a link."""
    elsewhere = place.parent / "elsewhere"
    if (place / name).exists():
        (place / name).rename(elsewhere)
    else:
        elsewhere.mkdir()
    (place / name).symlink_to(elsewhere)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A catalog of two writers without damage."""
    place = tmp_path / "lake"
    for who in ("node", "mallory"):
        with Catalog(place).writer(who) as writer, writer.transaction() as tx:
            tx.put("buckets", bucket("pets"))
            tx.put("objects", obj(f"{who} a"))
    return place


@pytest.fixture
def past(capsysbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """Runs one command that warns."""

    def call(*arguments: object) -> Ran:
        code = run([str(argument) for argument in arguments])
        return Ran(code, *(text.decode() for text in capsysbinary.readouterr()))

    return call


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_command_stops_at_damage_and_reads_past_it_where_that_is_asked_for(
    cli: Cli, past: Cli, damaged: tuple[Path, str], tmp_path: Path, command: list[str]
) -> None:
    place, name = damaged
    first, *rest = (part.format(out=tmp_path / "out.parquet") for part in command)
    stopped = cli(first, place, *rest)
    assert stopped.code == 1 and stopped.err.startswith("[") and name in stopped.err
    read_on = past(first, place, *rest, "--ignore-corruption")
    assert read_on.code == 0
    (warning,) = read_on.err.splitlines()
    assert warning.startswith("warning: ") and name in warning


@pytest.mark.parametrize(
    ("link", "named"),
    [*((link, []) for link in LINKS), *((link, ["--database", "default"]) for link in LINKS if link != ANOTHERS)],
)
@pytest.mark.parametrize("command", [*READING, ["stat", BUCKET, "node a"]], ids=" ".join)
def test_a_command_stops_at_a_linked_directory_and_reads_past_it_where_that_is_asked_for(
    cli: Cli, past: Cli, whole: Path, link: str, named: list[str], command: list[str]
) -> None:
    linked(whole, link)
    first, *rest = (part.format(out=whole.parent / "out.parquet") for part in command)
    stopped = cli(first, whole, *rest, *named)
    assert stopped.code == 1 and stopped.err.startswith("[ACCESS_DENIED]") and repr(link) in stopped.err
    read_on = past(first, whole, *rest, *named, "--ignore-corruption")
    assert read_on.code == 0 and read_on.out
    (warning,) = read_on.err.splitlines()
    assert warning.startswith("warning: ") and repr(link) in warning


@pytest.mark.parametrize("link", LINKS)
def test_info_tells_of_what_lies_beside_a_linked_directory_by_itself(past: Cli, whole: Path, link: str) -> None:
    before = past("info", whole, "--json")
    assert before.code == 0 and before.document["databases"][0]["objects"] == 2
    linked(whole, link)
    for named in ([], ["--database", "default"]):
        found = past("info", whole, *named, "--json")
        (database,) = found.document["databases"]
        assert database["objects"] == (2 if link == ANOTHERS else 1)
        if named and link == ANOTHERS:  # what lies beside the database that was asked for is not looked at
            assert found.code == 0 and not found.err
        else:
            assert found.code == 1 and f"[ACCESS_DENIED] Cannot list {link!r}" in found.err


def test_info_says_what_is_wrong_where_a_linked_directory_is_all_there_is(past: Cli, whole: Path) -> None:
    shutil.rmtree(whole / "node")
    linked(whole, "mallory")
    found = past("info", whole)
    assert found.code == 1 and "[ACCESS_DENIED] Cannot list 'mallory'" in found.err


def test_the_log_and_the_changes_show_what_is_whole(past: Cli, damaged: tuple[Path, str]) -> None:
    place, _ = damaged
    log = past("log", place, "--ignore-corruption", "--json").lines
    assert sorted((row["writer"], row["revision"], row["events"], row["operation"]) for row in log) == [
        ("mallory", 0, 2, None),
        ("mallory", 1, 0, "(cannot be read)"),
        ("node", 0, 2, None),
        ("node", 1, 2, None),
    ]
    changed = past("changes", place, "--ignore-corruption", "--json").lines
    assert [row["name"] for row in changed] == ["node a", "node b", "mallory a"]
    between = past("diff", place, "--from", "node@0", "--ignore-corruption", "--json").lines
    assert sorted(row["name"] for row in between) == ["mallory a", "node b"]


@pytest.mark.parametrize("what", ["tag", "pin"])
def test_neither_a_tag_nor_a_pin_is_given_past_damage(cli: Cli, damaged: tuple[Path, str], what: str) -> None:
    assert cli(what, damaged[0], "t", "--ignore-corruption").code == 2


def test_every_command_that_reads_has_the_option() -> None:
    commands = {command.name for command in app([]).registered_commands}
    assert {*(command[0] for command in READING), "stat", *WRITES, *LOOKS_ITSELF} == commands
