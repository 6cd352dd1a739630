"""``gc`` of data, parents and orphans: says what would go, publishes, then deletes, and refuses what readers may need."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from bucketcatalog import AccessDenied, Catalog, StoreError
from bucketcatalog.cli import run
from bucketcatalog.cli.gc import refuse_problems
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.wrappers import Wrapped

from ...kit.collecting import an_id
from .conftest import Cli, Past

OWNER = an_id("owner")
BUCKET = an_id("bucket")
DAY = 86_400_000_000


class Earlier(Wrapped):
    """A store some days ago."""

    days = 3

    def now_us(self, below: str | None = None) -> int:
        return time.time_ns() // 1_000 - self.days * DAY


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A catalog whose objects a and b, and their bucket, ended two days ago; the data of these and of an orphan lies beside it."""
    store = Earlier(LocalStore(tmp_path / "lake"))
    keys = [{"owner": OWNER, "bucket_id": BUCKET, "name": name} for name in "abc"]
    cats = {"owner": OWNER, "name": "cats"}
    with Catalog(store).writer("w", clock=store.now_us) as writer:
        with writer.transaction() as tx:
            tx.put("objects", [{**key, "id": an_id(key["name"])} for key in keys])
            tx.put("buckets", {**cats, "id": BUCKET})
        store.days = 2
        with writer.transaction() as tx:
            tx.delete("objects", keys[:2])
            tx.delete("buckets", cats)
    folder = tmp_path / "data" / OWNER / BUCKET
    folder.mkdir(parents=True)
    for name in ("a", "b", "c", "orphan"):
        (folder / an_id(name)).write_text(name)
        os.utime(folder / an_id(name), (time.time() - 2 * 86_400,) * 2)
    return tmp_path / "lake"


def left(lake: Path) -> list[str]:
    there = {file.name for file in (lake.parent / "data").rglob("*")}
    return [name for name in ("a", "b", "c", "orphan") if an_id(name) in there]


def url(lake: Path) -> str:
    return f"{lake.parent}/data/{{owner}}/{{bucket_id}}/{{id}}"


def test_gc_of_data_says_what_would_go_publishes_then_deletes(cli: Cli, lake: Path) -> None:
    (told,) = cli("gc", lake, "--data-url", url(lake), "--json").lines
    assert (told["section"], told["dry_run"], told["garbage"], told["purged"]) == ("data", True, 2, 2)
    (first,) = cli("gc", lake, "--data-url", url(lake), "--json", "--yes").lines
    assert (first["purged"], first["waiting"]) == (0, 3) and first["usable_from"] > first["published"]
    (second,) = cli("gc", lake, "--data", "--json", "--yes").lines
    assert (second["published"], second["usable_from"]) == (None, first["usable_from"])
    assert left(lake) == ["a", "b", "c", "orphan"]
    (done,) = cli("gc", lake, "--data-url", url(lake), "--json", "--yes", "--force").lines
    assert (done["purged"], done["deleted"], done["owners"]) == (2, 2, 1) and left(lake) == ["c", "orphan"]
    assert Catalog(lake).snapshot().scan("deleted_objects").to_arrow().num_rows == 0


def test_gc_reaps_the_objects_of_deleted_buckets(cli: Cli, lake: Path) -> None:
    (told,) = cli("gc", lake, "--reap", "--json").lines
    assert (told["section"], told["dry_run"], told["rows"], told["parents"]) == (
        "reap",
        True,
        {"object_versions": 0, "objects": 1},
        1,
    )
    assert [row["name"] for row in cli("ls", lake, BUCKET, "--owner", OWNER, "--json").lines] == ["c"]
    (first,) = cli("gc", lake, "--reap", "--json", "--yes").lines
    assert first["rows"]["objects"] == 0 and first["published"] and first["usable_from"] > first["published"]
    for expected in (1, 0):
        assert cli("gc", lake, "--reap", "--json", "--yes", "--force").lines[0]["rows"]["objects"] == expected
    assert Catalog(lake).snapshot().scan("objects").to_arrow().num_rows == 0


def test_gc_finds_orphans(cli: Cli, lake: Path) -> None:
    (orphan,) = cli("gc", lake, "--orphans", "--data-url", url(lake), "--json").lines
    assert (orphan["section"], orphan["deleted"]) == ("orphan", False) and orphan["name"].endswith(an_id("orphan"))
    assert "orphans" in cli("gc", lake, "--orphans", "--data-url", url(lake), "--yes").out
    assert left(lake) == ["a", "b", "c"]
    assert "has a name in the catalog" in cli("gc", lake, "--orphans", "--data-url", url(lake)).out


@pytest.mark.parametrize("flags", [[], ["--data"], ["--orphans"], ["--reap"]])
def test_gc_refuses_options_of_a_store_that_it_is_not_told_of(cli: Cli, lake: Path, flags: list[str]) -> None:
    refused = cli("gc", lake, *flags, "--data-option", "endpoint_url=http://localhost:1", "--yes")
    assert refused.code == 2 and "INVALID_OPTION" in refused.err and "--data-url" in refused.err and refused.out == ""


def test_gc_says_where_there_is_no_folder_to_find_orphans_in(cli: Cli, lake: Path) -> None:
    told = cli("gc", lake, "--orphans", "--data-url", url(lake).replace("/data/", "/date/"))
    assert told.code == 1 and "STORE_NOT_FOUND" in told.err and str(lake.parent / "date") in told.err


def test_gc_for_people_shows_each_section(cli: Cli, lake: Path) -> None:
    shown = cli("gc", lake, "--reap", "--data-url", url(lake), "--data").out.splitlines()
    assert shown[0] == "No put is unfinished for longer than 24h." and {"reap", "data"} <= set(shown)


@pytest.mark.parametrize("problem", ["'x' may not be deleted.", "the deleter raised KeyError: 'x'"])
def test_what_was_not_deleted_is_a_sentence(problem: str) -> None:
    with pytest.raises(StoreError, match=r"Some data was not deleted: .*[^.]\. Next: Remove the cause"):
        refuse_problems([problem])


def test_gc_ends_badly_where_data_was_not_deleted(
    lake: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = LocalStore.delete

    def refused(store: LocalStore, name: str) -> None:
        if name.endswith(an_id("a")):
            raise AccessDenied(f"{name!r} may not be deleted.")
        delete(store, name)

    monkeypatch.setattr(LocalStore, "delete", refused)
    assert run(["gc", str(lake), "--data-url", url(lake), "--yes", "--force", "--json"]) == 1
    out, err = capsysbinary.readouterr()
    assert b'"purged":1,' in out and b'"failed":1,' in out
    assert err.count(b"\n") == 1 and b"may not be deleted. Next: Remove the cause" in err


@pytest.mark.parametrize("problem", ["The store is away.", "the deleter left the data of 1 references"])
def test_what_went_wrong_is_told_as_a_sentence(problem: str) -> None:
    with pytest.raises(StoreError, match=rf"not deleted: {problem.removesuffix('.')}\. Next: Remove the cause"):
        refuse_problems([problem])


@pytest.mark.parametrize("flag", ["--data", "--reap", "--orphans"])
def test_gc_refuses_an_age_that_readers_may_need(cli: Cli, lake: Path, flag: str) -> None:
    refused = cli("gc", lake, "--older-than", "2h", flag, "--yes")
    assert refused.code == 2 and "INVALID_OPTION" in refused.err and "6h or more" in refused.err


def test_gc_without_a_flag_touches_no_row(cli: Cli, past: Past) -> None:
    before = Catalog(past.path).snapshot().version
    assert cli("gc", past.path, "--yes").out.count("\n") == 1
    assert Catalog(past.path).snapshot().version == before
