"""``prune``: a dry run tells what would go, ``--yes`` does it, and ages that somebody may need are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from bucketcatalog import Catalog

from .conftest import Cli, Past


def files(catalog: Path) -> set[str]:
    return {str(path.relative_to(catalog)) for path in catalog.rglob("*") if path.is_file()}


def test_a_dry_run_changes_nothing_and_says_how_to_do_it(cli: Cli, catalog: Path) -> None:
    before = files(catalog)
    told = cli("prune", catalog, "--older-than", "7d").out
    assert "Nothing was written or deleted; --yes does it." in told
    document = cli("prune", catalog, "--older-than", "7d", "--json").document
    assert (document["done"], document["files"], document["needs_checkpoint"]) == (False, [], True)
    assert files(catalog) == before
    assert [(kept["by"], kept["files"]) for kept in document["kept"]] == [("checkpoint", len(before))]
    assert (
        f"Nothing is to be deleted. What keeps the files:\n{len(before)} files, " in told and document["kept"][0]["why"] in told
    )


def test_yes_publishes_and_a_later_run_deletes(cli: Cli, catalog: Path, past: Past) -> None:
    shown = cli("ls", catalog, "pets", "--json").out
    options = ["--older-than", "0s", "--grace", "0s", "--force", "--yes", "--writer", "maintainer-1"]
    assert "History stays from" in cli("prune", catalog, *options).out
    document = cli("prune", catalog, *options, "--json").document
    assert document["done"] and document["published"] == document["due"] and document["horizon"]
    assert cli("ls", catalog, "pets", "--json").out == shown
    refused = cli("ls", catalog, "pets", "--as-of", past.first)
    assert refused.code == 1 and refused.err.startswith("[PRUNED]") and document["horizon"] in refused.err
    for command, start in (("changes", []), ("changes", ["--from", ":"]), ("diff", ["--from", ":"])):
        assert cli(command, catalog, *start).err.startswith("[PRUNED] ")
    assert len(cli("diff", catalog, "--json").lines) == len(shown.splitlines())
    assert Catalog(catalog).snapshot(version=document["horizon"]).version == document["horizon"]


@pytest.mark.parametrize("options", [["--older-than", "1m"], ["--older-than", "7d", "--grace", "1h"]])
def test_ages_that_somebody_may_need_need_force(cli: Cli, catalog: Path, options: list[str]) -> None:
    refused = cli("prune", catalog, *options)
    assert refused.code == 2 and "--force" in refused.err
    assert cli("prune", catalog, *options, "--force").code == 0


def test_only_a_maintainer_prunes(cli: Cli, catalog: Path) -> None:
    refused = cli("prune", catalog, "--older-than", "7d", "--yes", "--writer", "node-1")
    assert refused.code == 2 and "maintainer-NAME" in refused.err
