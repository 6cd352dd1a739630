"""``tag``: gives names to versions, takes them back, lists them; and every command takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bucketcatalog.clock import host_name

from .conftest import Cli, Past


def test_a_name_can_be_given_wherever_a_version_can(cli: Cli, catalog: Path, past: Past, tmp_path: Path) -> None:
    made = cli("tag", catalog, "v1", past.first, "--json").document
    assert (made["name"], made["version"], made["dropped"], made["revision"]) == ("v1", past.first, False, 0)
    assert made["writer"].startswith("maintainer-") and made["created"] == made["commit_timestamp"]
    for command in (
        ["ls", catalog, "pets", "--json"],
        ["stat", catalog, "pets", "a/b", "--json"],
        ["writers", catalog, "--json"],
    ):
        assert cli(*command, "--as-of", "v1").out == cli(*command, "--as-of", past.first).out != ""
    for command in ("changes", "diff"):
        assert (
            cli(command, catalog, "--from", ":", "--to", "v1", "--json").out
            == cli(command, catalog, "--from", ":", "--to", past.first, "--json").out
        )
        assert cli(command, catalog, "--from", "v1", "--json").out == cli(command, catalog, "--from", past.first, "--json").out
    assert cli("export", catalog, "objects", tmp_path / "x.parquet", "--as-of", "v1", "--json").document["version"] == past.first


@pytest.mark.parametrize("moment", ["first", "between"])
def test_a_version_or_a_time_is_named(cli: Cli, catalog: Path, past: Past, moment: str) -> None:
    assert cli("tag", catalog, "x", getattr(past, moment), "--json").document["version"] == past.first


def test_without_a_name_all_are_listed(cli: Cli, catalog: Path, past: Past) -> None:
    assert cli("tag", catalog).out == "No tag.\n" and cli("tag", catalog, "--json").out == ""
    assert cli("tag", catalog, "one", past.first).out == f"one names {past.first}\n"
    newest = cli("tag", catalog, "two", "--writer", "maintainer-me").out.split()[-1]
    assert cli("tag", catalog, "one", "two", "--replace", "--writer", "maintainer-me").out == f"one names {newest}\n"
    assert cli("tag", catalog, "two", "--drop").out == f"two no longer names {newest}\n"
    one, two = cli("tag", catalog, "--json").lines
    assert (one["name"], one["version"], one["dropped"], one["writer"]) == ("one", newest, False, "maintainer-me")
    assert one["replaced_version"] == past.first and host_name()[:4] in one["replaced_writer"]
    assert (two["name"], two["version"], two["dropped"], two["replaced_version"]) == ("two", newest, True, None)
    head, *lines = cli("tag", catalog).out.splitlines()
    assert head.split() == ["NAME", "CREATED", "WRITER", "DROPPED", "REPLACED_WRITER", "REPLACED_COMMIT_TIMESTAMP", "VERSION"]
    assert [line.split()[0] for line in lines] == ["one", "two"]


def test_the_same_again_is_no_error_and_changes_nothing(cli: Cli, catalog: Path) -> None:
    first = cli("tag", catalog, "x", "--json").document
    files = sorted(catalog.rglob("*.txn"))
    assert cli("tag", catalog, "x", "--json").document == cli("tag", catalog, "x", "--replace", "--json").document == first
    assert sorted(catalog.rglob("*.txn")) == files


def test_a_name_that_is_another_versions_ends_with_1_and_says_which(cli: Cli, catalog: Path, past: Past) -> None:
    cli("tag", catalog, "x", past.first)
    for _ in range(2):
        ran = cli("tag", catalog, "x")
        assert ran.code == 1 and ran.err.startswith("[TAG_EXISTS] ") and past.first in ran.err and "--replace" in ran.err
        cli("tag", catalog, "x", "--drop")
    ran = cli("ls", catalog, "--as-of", "x")
    assert ran.code == 2 and "was dropped" in ran.err and past.first in ran.err
