"""``bucketcatalog manta``: the service on a command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog

from ...kit.postgres import Postgres
from ...kit.postgres import postgres as postgres
from ...kit.world import BUCKET, ID_1, ID_2, OTHER, OWNER
from .conftest import Cli

COMMANDS = ["create", "get", "update", "delete", "list", "gc", "placement", "usage", "import", "export"]


@pytest.fixture
def path(cli: Cli, tmp_path: Path) -> Path:
    """A bucket with two objects."""
    path = tmp_path / "lake"
    manta(cli, "create", path, "photos", "--owner", OWNER)
    for name, length in (("2024/cat.jpg", 14917), ("dog.jpg", 0)):
        manta(cli, "create", path, "photos", name, "--content-length", length, "--shark", "dc1:1.stor", "--shark", "dc2:2.stor")
    return path


def manta(cli: Cli, command: str, *arguments: object) -> Any:
    ran = cli("manta", command, *arguments, "--json")
    assert ran.code == 0, ran.err
    return ran.document


def refused(cli: Cli, command: str, *arguments: object) -> str:
    """The code of the error, of a command that ends with 1 or 2."""
    ran = cli("manta", command, *arguments)
    assert ran.code in (1, 2) and ran.err.startswith("[")
    return ran.err[1:].partition("]")[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_json(cli: Cli, command: str) -> None:
    shown = cli("manta", command, "--help").out
    assert f"Example: bucketcatalog manta {command} " in " ".join(shown.split())
    assert "--json" in shown and "--storage-option" in shown and "--database" in shown


def test_a_bucket_is_created_shown_and_deleted(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "lake"
    made = manta(cli, "create", path, "photos", "--owner", OWNER)
    assert manta(cli, "get", path, "photos") == made
    assert refused(cli, "create", path, "photos", "--owner", OWNER) == "MANTA_BUCKET_ALREADY_EXISTS"
    assert refused(cli, "create", path, "No", "--owner", OWNER) == "MANTA_INVALID_BUCKET_NAME"
    assert refused(cli, "create", path, "more") == "INVALID_OPTION"
    assert manta(cli, "delete", path, "photos")["id"] == made["id"]
    assert refused(cli, "get", path, "photos") == "MANTA_BUCKET_NOT_FOUND"
    again = manta(cli, "create", path, "photos", "--owner", OWNER)
    assert again["id"] != made["id"]


def test_an_object_is_created_updated_and_deleted(cli: Cli, path: Path) -> None:
    given = ["--id", ID_1, "--content-md5", "AAAAAAAAAAAAAAAAAAAAAA==", "--header", "a=b=c", "--properties", '{"x":1}']
    made = manta(cli, "create", path, "photos", "new", *given, "--content-type", "text/plain")
    assert (made["id"], made["headers"], made["properties"]) == (ID_1, {"a": "b=c"}, '{"x":1}')
    assert manta(cli, "get", path, "photos", "new") == made
    updated = manta(cli, "update", path, "photos", "new", "--content-type", "text/html", "--if", f"match={ID_1}")
    assert (updated["content_type"], updated["headers"], updated["properties"]) == ("text/html", {}, None)
    assert refused(cli, "delete", path, "photos", "new", "--if", f"match={ID_2}") == "MANTA_PRECONDITION_FAILED"
    assert manta(cli, "delete", path, "photos", "new", "--if", f"if-match={ID_1}")["shark_count"] == 0
    assert refused(cli, "get", path, "photos", "new") == "MANTA_OBJECT_NOT_FOUND"
    assert refused(cli, "create", path, "photos", "x", "--content-md5", "no") == "MANTA_CONTENT_MD5"
    assert refused(cli, "create", path, "photos", "x", "--header", "no") == "INVALID_OPTION"
    assert refused(cli, "get", path, "photos", "dog.jpg", "--if", "sometimes=7") == "INVALID_OPTION"


@pytest.mark.parametrize(
    "command",
    [
        ["create", "new", "--owner", OWNER, "--if", "none-match=*"],
        ["create", "new", "--owner", OWNER, "--content-length", 5, "--shark", "dc1:1"],
        ["get", "photos", "--if", "match=x"],
        ["delete", "photos", "--with-objects", "--if", "match=x"],
        ["delete", "photos", "dog.jpg", "--with-objects"],
        ["list", "--owner", OWNER, "--delimiter", "/"],
        ["update", "photos", "dog.jpg"],
        ["create", "new"],
    ],
    ids=lambda command: " ".join(map(str, command)),
)
def test_no_option_is_passed_over_where_it_means_nothing(cli: Cli, path: Path, command: list[Any]) -> None:
    before = Catalog(path).snapshot().version
    assert refused(cli, command[0], path, *command[1:]) == "INVALID_OPTION"
    assert Catalog(path).snapshot().version == before


def test_a_bucket_with_objects_is_deleted_where_that_is_said(cli: Cli, path: Path) -> None:
    assert refused(cli, "delete", path, "photos") == "MANTA_BUCKET_NOT_EMPTY"
    manta(cli, "delete", path, "photos", "--with-objects")
    assert len(Catalog(path).snapshot().scan("manta_bucket_object").to_arrow()) == 2


def test_pages_say_where_the_next_begins(cli: Cli, path: Path) -> None:
    first, marker = cli("manta", "list", path, "photos", "--limit", 1, "--json").lines
    assert (first["name"], marker) == ("2024/cat.jpg", {"next_marker": "2024/cat.jpg"})
    (second,) = cli("manta", "list", path, "photos", "--limit", 1, "--marker", marker["next_marker"], "--json").lines
    assert second["name"] == "dog.jpg"
    group, row = cli("manta", "list", path, "photos", "--delimiter", "/", "--json").lines
    assert (group, row["name"]) == ({"name": "2024/", "type": "group", "nextMarker": "2024/"}, "dog.jpg")
    assert "--marker 2024/cat.jpg" in cli("manta", "list", path, "photos", "--limit", 1).out
    assert [row["name"] for row in cli("manta", "list", path, "--owner", OWNER, "--json").lines] == ["photos"]
    assert cli("manta", "list", path, "photos", "nothing").out == "Nothing.\n"
    assert refused(cli, "list", path) == "INVALID_OPTION"
    assert refused(cli, "list", path, "photos", "--limit", 1025) == "MANTA_LIMIT_CONSTRAINT"


def test_a_name_that_several_have_asks_for_the_owner(cli: Cli, path: Path) -> None:
    manta(cli, "create", path, "photos", "--owner", OTHER)
    ran = cli("manta", "get", path, "photos")
    assert ran.code == 2 and OWNER in ran.err and OTHER in ran.err
    assert manta(cli, "get", path, "photos", "--owner", OTHER)["owner"] == OTHER
    assert refused(cli, "get", path, "photos", "--owner", BUCKET) == "MANTA_BUCKET_NOT_FOUND"
    assert "begin one: bucketcatalog manta create" in cli("manta", "get", path / "nowhere", "photos").err


def test_garbage_is_told_by_age_and_as_one_batch(cli: Cli, path: Path) -> None:
    manta(cli, "delete", path, "photos", "2024/cat.jpg")
    assert cli("manta", "gc", path, "--json").lines == []
    (row,) = cli("manta", "gc", path, "--older-than", "0s", "--json").lines
    assert row["name"] == "2024/cat.jpg" and row["sharks"][0] == {"datacenter": "dc1", "manta_storage_id": "1.stor"}
    batch = manta(cli, "gc", path, "--older-than", "0s", "--batch")
    assert batch["garbage"] == [row] and batch == manta(cli, "gc", path, "--older-than", "0s", "--batch")
    assert manta(cli, "gc", path, "--older-than", "0s", "--delete", ID_1) == {"answer": "ok", "records": 0}
    assert batch["batch_id"] in cli("manta", "gc", path, "--older-than", "0s", "--batch").out
    assert manta(cli, "gc", path, "--older-than", "0s", "--delete", batch["batch_id"]) == {"answer": "ok", "records": 1}
    assert manta(cli, "gc", path, "--older-than", "0s", "--batch") == {"batch_id": None, "garbage": []}
    for mixed in (["--batch", "--buckets"], ["--batch", "--delete", ID_1], ["--delete", ID_1, "--limit", 5]):
        assert refused(cli, "gc", path, *mixed) == "INVALID_OPTION"
    manta(cli, "delete", path, "photos", "--with-objects")
    (bucket,) = cli("manta", "gc", path, "--buckets", "--older-than", "0s", "--json").lines
    assert bucket["name"] == "photos"


def test_nodes_are_placed_and_moved(cli: Cli, path: Path) -> None:
    assert cli("manta", "placement", path).out == "Nothing is placed: any writer commits any name.\n"
    placed = cli("manta", "placement", path, "--nodes", 4, "--on", "node-1", "--on", "node-2", "--json").lines
    assert [(row["node"], row["writer"]) for row in placed] == [(0, "node-1"), (1, "node-2"), (2, "node-1"), (3, "node-2")]
    assert refused(cli, "create", path, "photos", "x") == "MANTA_NOT_PLACED_HERE"
    assert refused(cli, "placement", path, "--give", 0, "--to", "node-2", "--writer", "node-2") == "MANTA_NOT_PLACED_HERE"
    given = cli("manta", "placement", path, "--give", 0, "--to", "node-2", "--writer", "node-1", "--json").lines[0]
    assert (given["writer"], given["given_to"]) == ("node-1", "node-2")
    taken = cli("manta", "placement", path, "--take", 0, "--writer", "node-2", "--json").lines[0]
    assert (taken["writer"], taken["given_to"]) == ("node-2", None) and "node-1" in taken["before"]
    assert refused(cli, "placement", path, "--give", 0) == "INVALID_OPTION"
    assert refused(cli, "placement", path, "--take", 9, "--writer", "node-2") == "INVALID_OPTION"


def test_usage_is_told_by_what_is_asked(cli: Cli, path: Path) -> None:
    begin = Catalog(path).snapshot().version
    manta(cli, "create", path, "photos", "more", "--content-length", 3, "--shark", "dc1:1.stor")
    assert cli("manta", "usage", path, "--json").lines == [{"owner": OWNER, "objects": 3, "bytes": 14920}]
    by_shark = cli("manta", "usage", path, "photos", "2024/", "--by", "shark", "--json").lines
    assert by_shark == [{"shark": s, "objects": 1, "bytes": 14917} for s in ("dc1:1.stor", "dc2:2.stor")]
    assert cli("manta", "usage", path, "--deleted", "--json").lines == []
    (grown,) = cli("manta", "usage", path, "--since", begin, "--json").lines
    assert (grown["objects_grown"], grown["bytes_grown"]) == (1, 3)
    assert refused(cli, "usage", path, "--by", "colour") == "INVALID_OPTION"
    assert refused(cli, "usage", path, "--since", begin, "--deleted") == "INVALID_OPTION"
    assert refused(cli, "usage", path, "nothing") == "MANTA_BUCKET_NOT_FOUND"


def test_reading_commits_nothing_and_needs_a_catalog(cli: Cli, path: Path, tmp_path: Path) -> None:
    before = Catalog(path).snapshot().version
    for command in (
        ["get", path, "photos", "dog.jpg"],
        ["list", path, "photos"],
        ["gc", path],
        ["placement", path],
        ["usage", path],
    ):
        assert cli("manta", *command).code == 0
    assert Catalog(path).snapshot().version == before
    assert refused(cli, "get", tmp_path / "none", "photos") == "CATALOG_NOT_FOUND"
    assert not (tmp_path / "none").exists()


def test_a_catalog_goes_to_postgres_and_comes_back(
    cli: Cli, path: Path, tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_DSN", postgres.dsn)
    manta(cli, "delete", path, "photos", "dog.jpg")
    with postgres.schema() as schema:
        (name,) = schema.connection.execute("SELECT current_schema()").fetchone() or ("",)
        told = manta(cli, "export", path, "$THE_DSN", "--schema", name)
        assert (told["manta_bucket"], told["manta_bucket_object"], told["manta_bucket_deleted_object"]) == (1, 1, 1)
        assert refused(cli, "export", path, "$THE_DSN", "--schema", name) == "INVALID_OPTION"
        back = manta(cli, "import", tmp_path / "back", postgres.dsn, "--schema", name, "--batch", 1)
        assert (back["manta_bucket_object"], back["batches"], back["resumed"]) == (1, 3, False)
        again = manta(cli, "import", tmp_path / "back", postgres.dsn, "--schema", name)
        assert (again["batches"], again["resumed"]) == (0, True)
    columns = ["name", "id", "content_length", "sharks", "created"]
    ours, theirs = (
        Catalog(each).snapshot().scan("manta_bucket_object", columns=columns).to_arrow() for each in (path, tmp_path / "back")
    )
    assert ours.equals(theirs)


def test_a_server_that_is_not_there_is_told_without_its_password(cli: Cli, path: Path, tmp_path: Path) -> None:
    dsn = "host=127.0.0.1 port=1 user=me password=very-secret dbname=x"
    for command, at in (("import", tmp_path / "new"), ("export", path)):
        ran = cli("manta", command, at, dsn)
        assert ran.code == 1 and ran.err.startswith("[STORE_UNAVAILABLE]") and "very-secret" not in ran.err
    assert refused(cli, "import", tmp_path / "new", "$NO_SUCH_VARIABLE") == "INVALID_OPTION"
