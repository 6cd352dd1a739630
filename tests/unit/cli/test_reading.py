"""Commands that read: exact in JSON, safe for people, at any time, and refused where nothing can be said."""

from __future__ import annotations

from pathlib import Path

import pytest

from bucketcatalog import Catalog
from bucketcatalog.cli import run

from ...kit.world import BUCKET, OTHER, messages, proto
from .conftest import NAMES, Cli, Past

NOW = sorted([*NAMES, "added", "link"], key=str.encode)
NOW.remove("a/c")
OWNER = "11111111-1111-4111-8111-111111111111"
UNREGISTERED, ENDED = "3333aaaa-3333-4333-8333-333333333333", "44444444-4444-4444-8444-444444444444"


def test_ls_lists_buckets(cli: Cli, past: Past) -> None:
    (bucket,) = cli("ls", past.path, "--json").lines
    assert (bucket["name"], bucket["external"]) == ("pets", True)
    head, line = cli("ls", past.path).out.splitlines()
    assert head.split() == ["CREATED", "OWNER", "ID", "NAME"]
    assert line.endswith("  pets")
    assert cli("ls", past.path, "--deleted").out == "No bucket.\n"


def test_ls_lists_the_buckets_of_an_owner_alone(cli: Cli, past: Past) -> None:
    (bucket,) = cli("ls", past.path, "--json").lines
    assert cli("ls", past.path, "--owner", bucket["owner"], "--json").lines == [bucket]
    assert cli("ls", past.path, "--owner", OWNER).out == "No bucket.\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--owner", "zz"], "[INVALID_OPTION] The owner 'zz' is not a uuid. Next: Give one, or leave it out."),
        (["--delimiter", "/"], "Buckets are not grouped"),
    ],
)
def test_ls_of_buckets_refuses_what_says_nothing_of_them(
    past: Past, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert run(["ls", str(past.path), *options]) == 2
    assert message in capsys.readouterr().err


def test_ls_lists_names_exactly_in_json_and_safely_for_people(cli: Cli, past: Past) -> None:
    assert [row["name"] for row in cli("ls", past.path, "pets", "--json").lines] == NOW
    shown = cli("ls", past.path, "pets").out
    assert len(shown.splitlines()) == len(NOW) + 1
    assert "\x1b" not in shown and "\u202e" not in shown
    assert r"new\nline" in shown and r"esc\x1b[31m" in shown and r"back\\slash" in shown and r"\u202etxt.exe" in shown
    raw = cli("ls", past.path, "pets", "--json").out
    assert "\x1b" not in raw and "\u202e" not in raw and "d\u00e9" in raw


def test_ls_groups_at_a_delimiter_below_a_prefix(cli: Cli, past: Path | Past) -> None:
    assert isinstance(past, Past)
    rows = cli("ls", past.path, "pets", "a", "--delimiter", "/", "--json").lines
    assert [row["name"] for row in rows] == ["a-", "a/", "added"]
    assert [row.get("is_prefix") for row in rows] == [None, True, None]
    assert [row["name"] for row in cli("ls", past.path, "pets", "a/", "--json").lines] == ["a/b"]


def test_ls_stops_at_a_limit_and_takes_ids(cli: Cli, past: Past) -> None:
    (bucket,) = cli("ls", past.path, "--json").lines
    assert [row["name"] for row in cli("ls", past.path, bucket["id"], "--limit", 2, "--json").lines] == NOW[:2]
    assert cli("ls", past.path, "pets", "nothing-here").out == "No object.\n"
    assert cli("ls", past.path, "pets", "nothing-here", "--json").out == ""


@pytest.mark.parametrize("moment", ["first", "between", "0", "w@0"])
def test_ls_shows_the_past(cli: Cli, past: Past, moment: str) -> None:
    chosen = getattr(past, moment, moment)
    found = [row["name"] for row in cli("ls", past.path, "pets", "--as-of", chosen, "--json").lines]
    assert found == sorted([*NAMES, "link"], key=str.encode)


def test_ls_shows_tombstones(cli: Cli, past: Past) -> None:
    rows = cli("ls", past.path, "pets", "--deleted", "--json").lines
    assert [row["name"] for row in rows] == ["a/c", "z"]
    assert all(row["deleted_at"].endswith("Z") for row in rows)
    assert "DELETED_AT" in cli("ls", past.path, "pets", "--deleted").out
    refused = cli("ls", past.path, "pets", "--deleted", "--delimiter", "/")
    assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_stat_shows_everything_about_an_object(cli: Cli, past: Past) -> None:
    document = cli("stat", past.path, "pets", "new\nline", "--json").document
    assert document["name"] == "new\nline"
    assert document["_writer"] == "w"
    facts = dict(line.split("  ", 1) for line in cli("stat", past.path, "pets", "link").out.splitlines())
    assert facts["file type"].strip() == "symlink"
    assert facts["link target"].strip() == "z"


def test_stat_shows_the_history(cli: Cli, past: Past) -> None:
    rows = cli("stat", past.path, "pets", "z", "--history", "--json").lines
    assert [row["content_length"] for row in rows] == [1, 18]
    assert rows[0]["deleted_at"] == rows[1]["_commit_timestamp"] and rows[1]["deleted_at"] is None
    assert len(cli("stat", past.path, "pets", "a/c", "--history").out.splitlines()) == 2
    gone = cli("stat", past.path, "pets", "a/c")
    assert gone.code == 1 and "[NOT_FOUND]" in gone.err and "--history" in gone.err
    assert cli("stat", past.path, "pets", "a/c", "--as-of", past.first, "--json").document["content_length"] == 3


def test_log_is_newest_first(cli: Cli, past: Past) -> None:
    rows = cli("log", past.path, "--json").lines
    assert [row["version"] for row in rows] == ["w@1", "w@0"]
    assert rows[0]["operation"] == "harvest"
    assert rows[0]["metadata"]["bucket"] == "pets"
    assert [row["revision"] for row in cli("log", past.path, "--limit", 1, "--json").lines] == [1]
    assert cli("log", past.path).out.splitlines()[1].split()[1] == "w@1"


@pytest.mark.parametrize(
    ("command", "count", "first"),
    [("writers", 1, "WRITER"), ("tables", 4, "TABLE"), ("checkpoints", 0, ""), ("forks", 0, ""), ("conflicts", 0, "")],
)
def test_tables_about_the_catalog_are_shown(cli: Cli, past: Past, command: str, count: int, first: str) -> None:
    assert len(cli(command, past.path, "--json").lines) == count
    lines = cli(command, past.path).out.splitlines()
    assert lines[0].startswith(first)
    assert len(lines) == count + 1


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    """A catalog of objects whose buckets were never registered, two of them put where none was expected."""
    writers = [Catalog(tmp_path / "c").writer(name) for name in ("one", "two")]
    for writer in writers:
        with writer.transaction() as tx:
            tx.put("objects", {"owner": OWNER, "bucket_id": UNREGISTERED, "name": "a\nb"}, expect="absent")
    with writers[0].transaction() as tx:
        tx.put("objects", {"owner": OWNER, "bucket_id": ENDED, "name": "gone"})
    with writers[0].transaction() as tx:
        tx.delete("objects", {"owner": OWNER, "bucket_id": ENDED, "name": "gone"})
    return tmp_path / "c"


def test_conflicts_show_their_keys_readably(cli: Cli, alone: Path) -> None:
    (row,) = cli("conflicts", alone, "--json").lines
    assert row["key"] == {"owner": OWNER, "bucket_id": UNREGISTERED, "name": "a\nb"}
    head, line = cli("conflicts", alone).out.splitlines()
    assert head.split()[-3:] == ["TABLE", "BUCKET", "KEY"]
    assert line.endswith(f'{{"owner":"{OWNER}","bucket_id":"{UNREGISTERED}","name":"a\\nb"}}')


def test_objects_without_a_bucket_are_listed_by_its_id(cli: Cli, alone: Path) -> None:
    for more in ([], ["--owner", OWNER]):
        assert [row["name"] for row in cli("ls", alone, UNREGISTERED, *more, "--json").lines] == ["a\nb"]
    assert cli("stat", alone, UNREGISTERED.upper(), "a\nb", "--json").document["name"] == "a\nb"
    assert cli("ls", alone, ENDED).out == "No object.\n"
    assert [row["name"] for row in cli("ls", alone, ENDED, "--deleted", "--json").lines] == ["gone"]
    for bucket, more in ((OWNER, []), (UNREGISTERED, ["--owner", ENDED])):
        assert cli("ls", alone, bucket, *more).err.startswith("[NOT_FOUND] ")


def test_objects_left_in_an_ended_bucket_are_listed_by_its_id(cli: Cli, tmp_path: Path) -> None:
    with Catalog(tmp_path).writer("w") as writer:
        with writer.transaction() as tx:
            tx.put("buckets", {"owner": OWNER, "name": "b", "id": ENDED})
            tx.put("objects", {"owner": OWNER, "bucket_id": ENDED, "name": "left"})
        with writer.transaction() as tx:
            tx.delete("buckets", {"owner": OWNER, "name": "b"})
    assert "--deleted" in cli("ls", tmp_path, "b").err
    assert [row["name"] for row in cli("ls", tmp_path, ENDED, "--json").lines] == ["left"]


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """A catalog in which one owner's bucket was made and ended twice, and another owner's of the same name once."""
    with Catalog(tmp_path).writer("w") as writer:
        for owner in (OWNER, OWNER, ENDED):
            with writer.transaction() as tx:
                tx.put("buckets", {"owner": owner, "name": "b"})
            with writer.transaction() as tx:
                tx.delete("buckets", {"owner": owner, "name": "b"})
    return tmp_path


def test_several_owners_of_a_bucket_are_told_and_one_that_came_again_is_one(cli: Cli, twice: Path) -> None:
    buckets = cli("ls", twice, "--deleted", "--json").lines
    said = cli("ls", twice, "b", "--deleted").err
    assert said == f"[INVALID_OPTION] 2 owners have a bucket 'b': {OWNER}; {ENDED}. Next: Say whose it is: --owner UUID.\n"
    mine = sorted(row["id"] for row in buckets if row["owner"] == OWNER)
    assert len(mine) == 2
    with Catalog(twice).writer("w") as writer:
        for id_ in mine:
            with writer.transaction() as tx:
                tx.put("objects", {"owner": OWNER, "bucket_id": id_, "name": "x"})
            with writer.transaction() as tx:
                tx.delete("objects", {"owner": OWNER, "bucket_id": id_, "name": "x"})
    for which, count in (("b", 2), (mine[0], 1), (mine[1], 1)):
        assert len(cli("ls", twice, which, "--deleted", "--owner", OWNER, "--json").lines) == count
        assert len(cli("stat", twice, which, "x", "--history", "--owner", OWNER, "--json").lines) == count


def test_an_owner_that_is_none_is_refused_by_every_command_alike(cli: Cli, past: Past) -> None:
    for command in (["ls", past.path, "pets"], ["stat", past.path, "pets", "z"], ["harvest", past.source, past.path]):
        ran = cli(*command, "--owner", "zz")
        assert (ran.code, ran.err) == (2, "[INVALID_OPTION] The owner 'zz' is not a uuid. Next: Give one, or leave it out.\n")


def test_a_bucket_that_another_owner_has_is_not_this_owners(cli: Cli, past: Past) -> None:
    said = cli("ls", past.path, "pets", "--owner", OWNER).err
    assert f"There is no bucket 'pets' of owner {OWNER} in database 'default' at this version." in said


def test_a_bucket_that_was_not_there_yet_is_said_not_to_be_there_then(cli: Cli, past: Past) -> None:
    ran = cli("ls", past.path, "pets", "--as-of", "2001-01-01")
    assert "There is no bucket 'pets' in database 'default' at this version. Next: There are none at this version" in ran.err
    assert " as of 0." in cli("stat", past.path, "pets", "added", "--as-of", "0").err


def test_a_word_for_a_time_is_answered_with_what_a_time_looks_like(cli: Cli, past: Past) -> None:
    assert "a time is ISO 8601, such as 2024-05-01T12:00:00Z" in cli("ls", past.path, "--as-of", "tomorrow").err


def test_seconds_after_the_at_sign_are_pointed_out(past: Past, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ls", str(past.path), "--as-of", "@1700000000", "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == "warning: @1700000000 is 1970-01-01T00:28:20.000000Z: @ takes microseconds since the epoch.\n"
    assert shown.out == ""


def test_help_of_ls_shows_its_arguments_as_they_are(cli: Cli) -> None:
    shown = cli("ls", "--help").out
    assert "[BUCKET] [PREFIX]" in shown and "\n  BUCKET  " in shown and "\n  PREFIX  " in shown


def test_info_says_what_it_is_and_what_needs_doing(cli: Cli, past: Past) -> None:
    document = cli("info", past.path, "--json").document
    (database,) = document["databases"]
    assert (database["database"], database["objects"], database["buckets"], database["deleted_objects"]) == (
        "default",
        len(NOW),
        1,
        2,
    )
    assert (database["harvest_errors"], database["uncovered_transactions"], database["files"]) == (1, 2, 2)
    assert database["version"] == Catalog(past.path).snapshot().version
    shown = cli("info", past.path).out
    assert f"{len(NOW)} objects" in shown and "to do: 1 entry could not be harvested" in shown
    assert "in 1 bucket, 2 tombstones of objects\n" in shown
    (line,) = database["to_do"]
    where = f"{past.path} --database default"
    assert line == f"1 entry could not be harvested: bucketcatalog export {where} harvest_errors errors.parquet"
    assert f"  to do: {line}\n" in shown


def test_info_says_how_many_entries_could_not_be_harvested(cli: Cli, tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "a b")
    with catalog.writer("w") as w, w.transaction() as tx:
        tx.put("harvest_errors", [{"source": "s", "path": path} for path in "pq"])
    (database,) = cli("info", tmp_path / "a b", "--json").document["databases"]
    where = f"'{tmp_path / 'a b'}' --database default"
    assert database["to_do"] == [f"2 entries could not be harvested: bucketcatalog export {where} harvest_errors errors.parquet"]


def test_info_shows_the_sums_of_other_tables_and_those_of_objects_in_words_of_their_own(cli: Cli, tmp_path: Path) -> None:
    declared = """message Row {
      option (table) = { name: "my.rows" key: "team" key: "n" sums: {name: "points" field: "points" group: "team"} };
      string team = 1;
      int32 n = 2;
      optional int64 points = 3;
    }"""
    catalog = Catalog(tmp_path / "lake")
    catalog.register(messages(proto(declared))["Row"])
    with catalog.writer("w") as w, w.transaction() as tx:
        tx.put("my.rows", [{"team": "a", "n": n, "points": 1_000} for n in range(3)])
        tx.put("objects", {"owner": OWNER, "bucket_id": OTHER, "name": "x", "id": BUCKET, "content_length": 5})
    (database,) = cli("info", tmp_path / "lake", "--json").document["databases"]
    tables = {table["table"]: table for table in database["tables"]}
    assert tables["my.rows"]["sums"] == {"points": 3_000} and "sums" not in tables["objects"]
    assert database["content_length"] == 5
    shown = cli("info", tmp_path / "lake").out
    assert "  my.rows: 3 rows, points 3,000\n" in shown and "objects: " not in shown


def test_info_shows_the_rows_of_tables_of_ones_own_with_a_checkpoint_and_without(cli: Cli, tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "lake")
    catalog.register(messages(proto('message Row { option (table) = { name: "my.rows" key: "n" }; int32 n = 1; }'))["Row"])
    with catalog.writer("w") as w:
        with w.transaction() as tx:
            tx.put("my.rows", [{"n": n} for n in range(2_000)])
            tx.put("buckets", {"owner": OWNER, "name": "b"})
        with w.transaction() as tx:
            tx.delete("my.rows", {"n": 0})
        for _ in range(2):
            shown = cli("info", tmp_path / "lake").out
            assert "  my.rows: 1,999 rows, 1 tombstone\n" in shown and "buckets: " not in shown
            w.checkpoint()
    assert "  my.rows, level 0: 2,000 rows, " in shown


def test_changes_are_events_and_diff_is_the_net(cli: Cli, past: Past) -> None:
    events = cli("changes", past.path, "--from", past.first, "--json").lines
    assert sorted((row["_change_type"], row["name"]) for row in events) == [("delete", "a/c"), ("put", "added"), ("put", "z")]
    net = cli("diff", past.path, "--from", past.between, "--json").lines
    assert [(row["_change_type"], row["name"]) for row in net] == [("deleted", "a/c"), ("created", "added"), ("overwritten", "z")]
    assert [line.split()[0] for line in cli("diff", past.path, "--from", past.first).out.splitlines()] == [
        "CHANGE_TYPE",
        "deleted",
        "created",
        "overwritten",
    ]
    assert "pets" in cli("changes", past.path, "--from", past.first).out
    assert len(cli("diff", past.path, "--from", ":", "--to", past.first, "--json").lines) == len(NAMES) + 1
    assert cli("diff", past.path, "--from", past.first, "--to", past.first).out == "No difference.\n"
    assert cli("changes", past.path, "--from", "w@1").out == "No change.\n"
    assert len(cli("changes", past.path, "--from", ":", "--table", "harvest_errors", "--json").lines) == 1


def test_changes_and_differences_without_a_start_are_all_that_there_is(cli: Cli, past: Past) -> None:
    for command in ("changes", "diff"):
        for more in ([], ["--to", past.first], ["--to", past.between]):
            since = cli(command, past.path, *more, "--json").lines
            assert since and since == cli(command, past.path, "--from", ":", *more, "--json").lines


def test_changes_whose_start_lies_after_their_end_are_refused_and_differences_are_not(cli: Cli, past: Past) -> None:
    reversed_ = [("1", "0"), ("w@1", past.first), ("1", ":"), ("2024-05-02", "2024-05-01"), ("1", past.between)]
    for start, end in reversed_:
        ran = cli("changes", past.path, "--from", start, "--to", end)
        assert ran.code == 2 and ran.err.startswith("[INVALID_OPTION] The start lies after the end: "), (start, end, ran)
    assert len(cli("diff", past.path, "--from", "1", "--to", "0", "--json").lines) == 3
    assert cli("changes", past.path, "--from", "2024-05-01", "--to", "2024-05-02").out == "No change.\n"


def test_changes_between_versions_of_which_neither_is_earlier_are_what_the_end_has_more(cli: Cli, alone: Path) -> None:
    assert [row["_writer"] for row in cli("changes", alone, "--from", "one@2", "--to", "two@0", "--json").lines] == ["two"]
    assert cli("changes", alone, "--from", "one@2", "--to", "one@0").code == 2


def test_changes_are_those_of_a_bucket_and_a_prefix(cli: Cli, past: Past) -> None:
    for command in ("changes", "diff"):
        everything = cli(command, past.path, "--json").lines
        assert cli(command, past.path, "--bucket", "pets", "--json").lines == everything
        some = [row for row in everything if row["name"].startswith(NAMES[0][:2])]
        assert cli(command, past.path, "--prefix", NAMES[0][:2], "--json").lines == some
        assert cli(command, past.path, "--bucket", "pets", "--prefix", NAMES[0][:2], "--json").lines == some
        assert 0 < len(some) < len(everything)
        assert [row["name"] for row in cli(command, past.path, "-t", "buckets", "--bucket", "pets", "--json").lines] == ["pets"]
        ran = cli(command, past.path, "--bucket", "cows")
        assert ran.code == 1 and ran.err.startswith("[NOT_FOUND] There is no bucket 'cows'")


def test_only_tables_of_rows_have_changes(cli: Cli, past: Past) -> None:
    for command in ("changes", "diff"):
        for table, hint in (
            ("log", "buckets, harvest_errors, object_versions, objects"),
            ("deleted_objects", "those of objects."),
        ):
            ran = cli(command, past.path, "--from", ":", "--table", table)
            assert ran.code == 2 and ran.err.startswith(f"[INVALID_OPTION] The table '{table}' "), ran
            assert hint in ran.err
        assert cli(command, past.path, "--from", ":", "--table", "deleted_cows").err.startswith("[UNKNOWN_TABLE] ")
