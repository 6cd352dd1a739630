"""``clone``: a version as a catalog of its own, which the commands read as any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Cli, Past


@pytest.mark.parametrize("moment", [None, "first", "between"])
def test_a_clone_shows_what_the_catalog_shows(cli: Cli, catalog: Path, past: Past, tmp_path: Path, moment: str | None) -> None:
    as_of = ["--as-of", getattr(past, moment)] if moment else []
    made = cli("clone", catalog, tmp_path / "copy", *as_of, "--json").document
    assert made["target"].endswith("/copy") and made["bytes"] > 0 and made["database"] == "default"
    assert moment is None or made["version"] == past.first
    for command in (["ls", "pets"], ["ls"], ["ls", "pets", "--deleted"], ["stat", "pets", "z"]):
        name, *rest = command
        of_copy = cli(name, tmp_path / "copy", *rest, "--json").out
        assert of_copy == cli(name, catalog, *rest, "--json", "--as-of", made["version"]).out


def test_it_says_what_it_made_and_which_tag_keeps_the_data(cli: Cli, catalog: Path, past: Past, tmp_path: Path) -> None:
    first, second = cli("clone", catalog, tmp_path / "copy", "--as-of", past.first).out.splitlines()
    assert " rows in 1 segment, " in first and first.endswith("/copy")
    (tag,) = cli("tag", catalog, "--json").lines
    assert second.startswith(f"of version {past.first}, whose data the tag {tag['name']} of ")
    again = cli("clone", catalog, tmp_path / "copy", "--as-of", past.first, "--json").document
    assert (again["bytes"], again["version"], again["tag"]) == (0, past.first, tag["name"])
    assert "is a clone of this version already" in cli("clone", catalog, tmp_path / "copy", "--as-of", past.first).out


def test_a_place_that_is_taken_or_cannot_be_written_is_refused(cli: Cli, catalog: Path, past: Past, tmp_path: Path) -> None:
    ran = cli("clone", catalog, catalog)
    assert ran.code == 1 and ran.err.startswith("[TARGET_NOT_EMPTY] ")
    assert cli("clone", catalog, "http://example.org/x").code != 0
    assert cli("clone", catalog, tmp_path / "copy", "--as-of", ":").code == 2 and not (tmp_path / "copy").exists()
