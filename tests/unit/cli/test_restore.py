"""``restore``: says what it would do, does it with ``--yes``, and says what it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from bucketcatalog import Catalog

from ...kit.world import BUCKET, OTHER, OWNER
from .conftest import Cli, Past


def live(cli: Cli, catalog: Path, *more: object) -> str:
    return cli("ls", catalog, "pets", "--json", *more).out


def test_without_yes_it_counts_and_shows_and_writes_nothing(cli: Cli, catalog: Path, past: Past) -> None:
    before, files = live(cli, catalog), sorted(catalog.rglob("*"))
    head, columns, *keys = cli("restore", catalog, "objects", past.first).out.splitlines()
    assert head == "3 rows of objects: 2 put again, 0 updated, 1 deleted (with --yes)"
    assert columns.split() == ["ACTION", "BUCKET", "NAME"]
    assert [tuple(line.split()) for line in keys] == [("put", "pets", "a/c"), ("put", "pets", "z"), ("delete", "pets", "added")]
    told = cli("restore", catalog, "objects", past.first, "--json").document
    assert (told["put"], told["updated"], told["deleted"], told["committed"], told["dry_run"]) == (2, 0, 1, None, True)
    assert [(row["bucket"], row["name"]) for row in told["sample"]] == [("pets", "a/c"), ("pets", "z"), ("pets", "added")]
    assert all({*row} == {"action", "bucket", "owner", "bucket_id", "name"} for row in told["sample"])
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


def test_what_would_happen_names_owners_where_there_are_several_and_buckets_without_a_name_by_their_id(
    cli: Cli, tmp_path: Path
) -> None:
    catalog = Catalog(tmp_path / "c")
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": OWNER, "name": "cats"})
        tx.put("objects", [{"bucket": "cats", "name": "a"}, {"owner": OTHER, "bucket_id": BUCKET, "name": "b"}])
    _, columns, *keys = cli("restore", tmp_path / "c", "objects", ":").out.splitlines()
    assert columns.split() == ["ACTION", "BUCKET", "OWNER", "NAME"]
    assert sorted(key.split()[1:] for key in keys) == sorted([["cats", OWNER, "a"], [BUCKET, OTHER, "b"]])
    assert cli("restore", tmp_path / "c", "buckets", ":").out.splitlines()[1].split() == ["ACTION", "OWNER", "NAME"]


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
    for table, why in (("log", "Next: Restore one of buckets, "), ("deleted_objects", "Next: Restore 'objects'")):
        ran = cli("restore", catalog, table, ":")
        assert ran.code == 2 and why in ran.err and "changes" not in ran.err
    assert cli("restore", catalog, "objects").code == 2
