"""``restore``: says what it would do, does it with ``--yes``, and says what it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Cli, Past


def live(cli: Cli, catalog: Path, *more: object) -> str:
    return cli("ls", catalog, "pets", "--json", *more).out


def test_without_yes_it_counts_and_shows_and_writes_nothing(cli: Cli, catalog: Path, past: Past) -> None:
    before, files = live(cli, catalog), sorted(catalog.rglob("*"))
    head, columns, *keys = cli("restore", catalog, "objects", past.first).out.splitlines()
    assert head == "3 rows of objects: 2 put again, 0 updated, 1 deleted (with --yes)"
    assert columns.split() == ["ACTION", "OWNER", "BUCKET_ID", "NAME"]
    assert [(line.split()[0], line.split()[-1]) for line in keys] == [("put", "a/c"), ("put", "z"), ("delete", "added")]
    told = cli("restore", catalog, "objects", past.first, "--json").document
    assert (told["put"], told["updated"], told["deleted"], told["committed"], told["dry_run"]) == (2, 0, 1, None, True)
    assert [row["name"] for row in told["sample"]] == ["a/c", "z", "added"]
    assert live(cli, catalog) == before and sorted(catalog.rglob("*")) == files


@pytest.mark.parametrize("moment", ["first", "between"])
def test_with_yes_the_table_is_what_it_was(cli: Cli, catalog: Path, past: Past, moment: str) -> None:
    told = cli("restore", catalog, "objects", getattr(past, moment), "--yes", "--json").document
    assert told["committed"].startswith("maintainer-") and told["version"] == past.first and told["dry_run"] is False
    assert live(cli, catalog) == live(cli, catalog, "--as-of", past.first)
    (entry,) = [row for row in cli("log", catalog, "--json").lines if row["operation"] == "restore"]
    assert entry["metadata"] == {"table": "objects", "version": past.first} and entry["version"] == told["committed"]
    assert cli("restore", catalog, "objects", past.first, "--yes").out == "objects is what it was then: nothing to do.\n"


def test_a_bucket_or_what_lies_below_a_prefix_of_it_comes_back_alone(cli: Cli, catalog: Path, past: Past) -> None:
    head, _, key = cli("restore", catalog, "objects", past.first, "pets", "a/").out.splitlines()
    assert head == "1 row of objects: 1 put again, 0 updated, 0 deleted (with --yes)" and key.split()[-1] == "a/c"
    told = cli("restore", catalog, "objects", past.first, "pets", "a/", "--yes", "--json").document
    assert told["put"] == 1 and told["committed"]
    again = cli("restore", catalog, "objects", past.first, "pets", "a/", "--yes").out
    assert again == "objects of pets/a/ is what it was then: nothing to do.\n"
    failed = cli("restore", catalog, "objects", past.first, "pest", "--yes")
    assert failed.code == 1 and "There is no bucket 'pest'" in failed.err


def test_the_writer_can_be_named(cli: Cli, catalog: Path, past: Past) -> None:
    out = cli("restore", catalog, "objects", past.first, "--yes", "--writer", "maintainer-me").out
    assert out.splitlines() == ["3 rows of objects: 2 put again, 0 updated, 1 deleted", "committed maintainer-me@0"]


def test_a_table_whose_parent_has_ended_says_which_to_restore_first(cli: Cli, catalog: Path, past: Past) -> None:
    assert cli("restore", catalog, "objects", ":", "--yes").code == 0
    assert cli("restore", catalog, "buckets", ":", "--yes").code == 0
    assert "restore buckets first: 1 row of it" in cli("restore", catalog, "objects", past.first).out
    ran = cli("restore", catalog, "objects", past.first, "--yes")
    assert ran.code == 1 and ran.err.startswith("[PARENT_ENDED] ") and "Restore 'buckets'" in ran.err
    assert cli("restore", catalog, "buckets", past.first, "--yes").code == 0
    assert cli("restore", catalog, "objects", past.first, "--yes", "--skip-collected").code == 0
    assert live(cli, catalog) == live(cli, catalog, "--as-of", past.first)


def test_what_cannot_be_restored_to_is_wrong_usage(cli: Cli, catalog: Path) -> None:
    assert cli("restore", catalog, "objects", "2999-01-01").code == 2
    assert cli("restore", catalog, "log", ":").code == 2
    assert cli("restore", catalog, "objects").code == 2
