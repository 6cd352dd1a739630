"""``pin``: keeps what is committed after a version, is moved, dropped and listed; ``prune`` and ``info`` tell of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bucketcatalog import Catalog
from bucketcatalog.clock import host_name

from .conftest import Cli, Past

PRUNE = ("--older-than", "0s", "--grace", "0s", "--force")


def test_a_pin_is_given_moved_listed_and_dropped(cli: Cli, catalog: Path, past: Past) -> None:
    assert cli("pin", catalog).out == "No pin.\n" and cli("pin", catalog, "--json").out == ""
    made = cli("pin", catalog, "export", past.first, "--json").document
    assert (made["name"], made["version"], made["dropped"], made["revision"]) == ("export", past.first, False, 0)
    assert made["writer"].startswith("maintainer-") and host_name()[:4] in made["writer"] and "commit_time" not in made
    moved = cli("pin", catalog, "export", "--writer", made["writer"]).out
    assert moved.startswith(f"export of {made['writer']} keeps what is committed after ") and past.first not in moved.split()
    (row,) = cli("pin", catalog, "--json").lines
    assert (row["name"], row["holds"], row["until"], row["revision"]) == ("export", True, None, 1)
    assert cli("pin", catalog).out.split()[:6] == ["NAME", "WRITER", "COMMIT_TIMESTAMP", "UNTIL", "HOLDS", "VERSION"]
    assert cli("pin", catalog, "export", "--drop").out == f"export of {made['writer']} keeps nothing any more\n"
    assert cli("pin", catalog).out == "No pin.\n"
    ran = cli("pin", catalog, "export", "--drop")
    assert ran.code == 1 and ran.err.startswith("[NOT_FOUND] ")


def test_a_time_can_be_given(cli: Cli, catalog: Path, past: Past) -> None:
    assert cli("pin", catalog, "x", past.between, "--json").document["version"] == past.first


@pytest.mark.parametrize("arguments", [["--drop"], ["x", "2024-01-01", "--drop"]])
def test_what_does_not_go_together_is_refused(cli: Cli, catalog: Path, arguments: list[str]) -> None:
    ran = cli("pin", catalog, *arguments)
    assert ran.code == 2 and "--drop" in ran.err


def test_info_and_prune_tell_which_pin_keeps_what(cli: Cli, catalog: Path, past: Past) -> None:
    assert " pin" not in cli("info", catalog).out and cli("info", catalog, "--json").document["databases"][0]["pins"] == 0
    cli("checkpoint", catalog, "--all-writers", "--writer", "compactor-1")
    with Catalog(catalog).writer("stream") as writer:
        pin = writer.pin("changes", version=":")
    assert "1 pin: a prune leaves what was committed after it" in cli("info", catalog).out
    assert cli("info", catalog, "--json").document["databases"][0]["pins"] == 1
    told = cli("prune", catalog, *PRUNE)
    assert "before what a pin needs to be there" in told.out and "The pin 'changes' of 'stream', given last at " in told.out
    document = cli("prune", catalog, *PRUNE, "--yes", "--json").document
    assert [(kept["by"]) for kept in document["kept"]] == ["pin"] and document["horizon"] is None
    assert [(each["name"], each["writer"], each["version"]) for each in document["pins"]] == [("changes", "stream", pin.version)]
    assert cli("prune", catalog, *PRUNE, "--pin-age", "0s", "--json").document["pins"] == []
