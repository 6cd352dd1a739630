"""``repair``: says what it would do, and does it with ``--yes``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bucketcatalog import Catalog
from bucketcatalog.cli import run

from ...kit.world import obj
from .conftest import Cli


@pytest.fixture
def catalog(catalog: Path) -> Path:
    """One with a checkpoint, to be damaged."""
    with Catalog(catalog).writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    return catalog


def test_nothing_is_done_about_a_whole_catalog(cli: Cli, catalog: Path) -> None:
    assert cli("repair", catalog, "--yes").out == "Nothing is wrong.\n"
    assert cli("repair", catalog, "--json").document == {"database": "default", "actions": [], "lost": [], "undecided": False}


def test_a_dry_run_says_what_yes_does(cli: Cli, catalog: Path) -> None:
    before = cli("ls", catalog, "pets", "--json").out
    (damaged,) = catalog.glob("compactor-1/*/transactions/*/*.ckpt")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    name = str(damaged.relative_to(catalog))
    assert cli("ls", catalog, "pets").code == 1
    drop, write = cli("repair", catalog).out.splitlines()
    assert drop.startswith(f"drop {name}: ") and "--yes" in drop and write.startswith("checkpoint default: ")
    assert cli("ls", catalog, "pets").code == 1
    made = cli("repair", catalog, "--yes", "--writer", "maintainer-me", "--json").document
    assert [(a["what"], a["subject"], a["done"]) for a in made["actions"]] == [
        ("drop", name, True),
        ("checkpoint", "default", True),
    ]
    assert made["lost"] == [] and cli("ls", catalog, "pets", "--json").out == before
    assert damaged.exists() and (catalog / "maintainer-me").is_dir()
    assert cli("verify", catalog, "--deep").code == 0


def test_what_is_lost_is_listed_and_a_failure_of_who_wanted_it_mended(
    cli: Cli, catalog: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    damaged = min(catalog.glob("*/*/transactions/*/*.txn"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    dry = cli("repair", catalog)
    assert dry.code == 0
    (line,) = dry.out.splitlines()
    assert line.startswith("lost: error DAMAGED_TRANSACTION ") and damaged.name in line and "revision 0 of" in line
    assert (
        line.count("bucketcatalog repair") == 1
        and f"--set-aside {damaged.relative_to(catalog)} --yes" in line
        and "copy of the store" in line
        and "--ignore-corruption" in line
    )
    document = cli("repair", catalog, "--json").out
    for options, expected in (([], dry.out), (["--json"], document)):
        assert run(["repair", str(catalog), "--yes", *options]) == 1
        out, err = (text.decode() for text in capsysbinary.readouterr())
        assert out == expected
        assert err.startswith("[CORRUPT] ") and err.count("\n") == 1 and "lost" in err and " Next: " in err


def test_what_was_asked_for_and_not_done_is_a_failure(
    catalog: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    opened = Catalog(catalog)
    for writer in [opened.writer("forked") for _ in range(2)]:
        with writer, writer.transaction() as tx:
            tx.put("objects", obj("a"))
    for asked, code in (([], 0), (["--join", "forked"], 1)):
        for options in ([], ["--json"]):
            assert run(["repair", str(catalog), *asked, *options]) == 0
            assert run(["repair", str(catalog), *asked, *options, "--yes", "--writer", "maintainer-1"]) == code
            dry, made = capsysbinary.readouterr().out.decode().splitlines()
            assert ("Wait for" in made) == bool(asked) and '"done":true' not in made
            assert len({re.sub(r"Wait for \w+", "Wait", line) for line in (dry, made)}) == 1  # which shrinks meanwhile
    assert run(["repair", str(catalog), "--join", "forked", "--yes", "--writer", "maintainer-1"]) == 1
    err = capsysbinary.readouterr().err.decode()
    assert err.startswith("[FORK] The timeline of 'forked' was not joined: ") and "Wait for" in err and " Next: " in err


def test_a_bad_file_is_set_aside_and_taken_in_again(cli: Cli, catalog: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    with Catalog(catalog).writer("node") as writer, writer.transaction() as tx:
        tx.put("objects", obj("a"))
    before = cli("ls", catalog, "--json").out
    (bad,) = catalog.glob("node/*/transactions/*/*.txn")
    name, data = str(bad.relative_to(catalog)), bad.read_bytes()
    bad.write_bytes(data[:1])
    assert cli("changes", catalog).code == 1 and name in cli("changes", catalog).err
    dry = cli("repair", catalog, "--set-aside", name).out
    assert dry.startswith(f"set aside {name}: ") and "--yes" in dry
    assert cli("repair", catalog, "--set-aside", name, "--yes", "--writer", "maintainer-me").code == 0
    assert cli("ls", catalog, "--json").code == 0
    assert [row["file"] for row in Catalog(catalog).snapshot().scan("damage").to_arrow().to_pylist()] == [name]
    assert "info SET_ASIDE" in cli("verify", catalog).out and "(set aside)" in cli("log", catalog).out
    assert "[SET_ASIDE]" in cli("changes", catalog).err and cli("changes", catalog, "--ignore-set-aside").code == 0
    assert cli("repair", catalog, "--take-in", name, "--yes").code == 1
    bad.write_bytes(data)
    assert cli("repair", catalog, "--take-in", name, "--yes", "--writer", "maintainer-me").out.startswith(f"take in {name}: ")
    assert cli("ls", catalog, "--json").out == before and cli("changes", catalog).code == 0


@pytest.mark.parametrize(
    "wrong", [["--set-aside", "x"], ["--take-in", "x@1"], ["--join", "x"], ["--void", "x@1"], ["--writer", "x"]]
)
def test_what_cannot_be_is_wrong_usage(cli: Cli, catalog: Path, wrong: list[str]) -> None:
    assert cli("repair", catalog, *wrong).code == 2
