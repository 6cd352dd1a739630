"""The questions as commands: what they print is what the functions give, in three forms."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog
from bucketcatalog.console.output import plain
from bucketcatalog.questions import age, cost, du, dups, find, growth, top, who

from ...kit.world import OTHER, OWNER
from .conftest import Cli

PRICES = ["--price", "STANDARD=0.5", "--price", "default=1"]
NAMES = ["2023/a", "2023/b", "2024/a", 'new\nline,"quoted"', "\x1b[31m"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two owners with a bucket of one name, of which one has lost objects."""
    place = tmp_path_factory.mktemp("questions") / "lake"
    catalog = Catalog(place)
    with catalog.writer("w") as writer:
        with writer.transaction() as tx:
            tx.put(
                "buckets", [{"owner": owner, "name": name} for owner, name in ((OWNER, "pets"), (OTHER, "pets"), (OTHER, "x"))]
            )
        ids = {(row["owner"], row["name"]): row["id"] for row in catalog.snapshot().scan("buckets").to_arrow().to_pylist()}
        of = [{"owner": owner, "bucket_id": ids[owner, "pets"]} for owner in (OWNER, OTHER)]
        with writer.transaction(operation="upload") as tx:
            tx.put(
                "objects",
                [
                    {**place, "name": name, "content_length": 1000 * size, "etag": f"{size:032x}", "storage_class": "STANDARD"}
                    for place in of
                    for size, name in enumerate(NAMES)
                ],
            )
        with writer.transaction(operation="expire") as tx:
            tx.delete("objects", {**of[0], "name": "2023/b"})
        with writer.transaction() as tx:
            tx.put("objects", {**of[0], "name": "2024/a", "content_length": 7_000_000_000, "tags": {"team": "a"}})
    return place


COMMANDS: list[tuple[list[str], Any]] = [
    (["du"], du),
    (["du", "--depth", "1"], lambda cat: du(cat, depth=1)),
    (["du", "pets", "2023/", "--owner", OWNER], lambda cat: du(cat, bucket="pets", owner=OWNER, prefix="2023/")),
    (["top", "-n", "3"], lambda cat: top(cat, n=3)),
    (["top", "--by", "newest"], lambda cat: top(cat, "newest")),
    (["find"], find),
    (["find", "--name", "a", "--tag", "team=a", "--larger", "1GB"], lambda cat: find(cat, name="a", tag="team=a", larger="1GB")),
    (["find", "--deleted", "--newer", "1d"], lambda cat: find(cat, deleted=True, newer="1d")),
    (["find", "--smaller", "1kB", "--storage-class", "STANDARD"], lambda cat: find(cat, smaller=1000, storage_class="STANDARD")),
    (["find", "--older", "1d", "--content-type", "x/*", "--file-type", "file"], lambda cat: find(cat, older="1d")),
    (["growth", "--every", "1d"], lambda cat: growth(cat, every="1d", end=cat.snapshot().version)),
    (["who"], who),
    (["who", "--by", "object"], lambda cat: who(cat, by="object")),
    (["who", "pets", "--owner", OWNER, "--name", "2023/b"], lambda cat: who(cat, bucket="pets", owner=OWNER, name="2023/b")),
    (["who", "--since", "1h", "--until", "now"], who),
    (["age", "--edge", "1h", "--edge", "2d"], lambda cat: age(cat, edges=["1h", "2d"])),
    (["cost", *PRICES], lambda cat: cost(cat, {"STANDARD": "0.5", "default": 1})),
    (["cost", *PRICES, "--depth", "1"], lambda cat: cost(cat, {"STANDARD": "0.5", "default": 1}, depth=1)),
]


def expected(lake: Path, ask: Any) -> tuple[list[str], list[dict[str, Any]]]:
    found = ask(Catalog(lake))
    table = found if not hasattr(found, "to_arrow") else found.to_arrow()
    kinds = {field.name: field.type for field in table.schema}
    return table.column_names, [{name: plain(v, kinds[name]) for name, v in row.items()} for row in table.to_pylist()]


def in_csv(value: Any) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def of_command(lake: Path, command: list[str]) -> list[str]:
    first, *rest = command
    at = Catalog(lake).snapshot().version
    return [first, str(lake), *rest, "--to" if first == "growth" else "--as-of", at]


@pytest.mark.parametrize(("command", "ask"), COMMANDS, ids=[" ".join(command) for command, _ in COMMANDS])
def test_json_and_csv_have_every_row_and_column_that_the_function_gives(
    cli: Cli, lake: Path, command: list[str], ask: Any
) -> None:
    names, rows = expected(lake, ask)
    assert cli(*of_command(lake, command), "--json").lines == rows
    head, *lines = csv.reader(io.StringIO(cli(*of_command(lake, command), "--csv").out, newline=""))
    assert head == names
    assert lines == [["" if value is None else in_csv(value) for value in row.values()] for row in rows]


def test_people_are_shown_sizes_places_and_a_last_line(cli: Cli, lake: Path) -> None:
    shown = cli("du", lake).out.splitlines()
    assert shown[0].split() == ["OBJECTS", "BYTES", "BUCKET", "OWNER"]
    assert "7.0 GB" in shown[1] and OWNER in shown[1] and shown[-1] == "9 objects, 7.0 GB"
    assert "OWNER" not in cli("du", lake, "pets", "--owner", OWNER).out
    assert cli("du", lake, "x").out.splitlines()[1].split() == ["0", "0", "B", "x"]
    assert r"\x1b[31m" in cli("find", lake).out and "\x1b" not in cli("find", lake).out
    assert cli("find", lake, "--larger", "1TB").out == "No object.\n"
    assert cli("who", lake).out.count("expire") == 1
    assert cli("cost", lake, *PRICES).out.splitlines()[-1] == "3.26 a month"


def test_prices_of_a_file_have_a_currency(cli: Cli, lake: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('currency = "EUR"\ndefault = 1\n')
    assert cli("cost", lake, "--prices", tmp_path / "prices.toml").out.endswith(" EUR a month\n")


def test_copies_are_told_with_what_nothing_can_be_said_of(cli: Cli, lake: Path) -> None:
    found = dups(Catalog(lake))
    shown = cli("dups", lake, "-n", "1").out.splitlines()
    assert shown[0].split() == ["WASTED_BYTES", "COPIES", "CONTENT_LENGTH", "KIND", "EXAMPLES"] and len(shown) == 3
    assert "4.0 kB" in shown[1] and r"pets: \x1b[31m, pets: \x1b[31m" in shown[1]
    assert shown[2] == "2 groups, 7.0 kB wasted; 1 object without a hash, 2 empty, 0 of unknown size"
    *groups, summary = cli("dups", lake, "--json").lines
    assert summary == {"section": "summary", "groups": 2, "wasted_bytes": 7000, "without_hash": 1, "empty": 2, "unsized": 0}
    assert [{"section": "group", **row} for row in found.groups.to_pylist()] == groups
    assert len(list(csv.reader(io.StringIO(cli("dups", lake, "--csv").out)))) == 3
    nothing = cli("dups", lake, "--larger", "1GB").out.splitlines()
    assert nothing[0] == "No copy." and nothing[1].startswith("0 groups")


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"]])
def test_as_many_lines_are_printed_as_are_asked_for(cli: Cli, lake: Path, form: list[str]) -> None:
    more = 0 if form == ["--json"] else 1
    for command in (["find"], ["who", "--by", "object"], ["du", "--depth", "1"], ["cost", *PRICES, "--depth", "1"]):
        lines = cli(command[0], lake, *command[1:], "--limit", "1", *form).out.splitlines()
        last = not form and command[0] in ("du", "cost")
        assert len(lines) == 1 + more + last, command


def test_the_past_is_asked_with_a_time_or_a_version(cli: Cli, lake: Path) -> None:
    assert [row["objects"] for row in cli("du", lake, "--as-of", "w@1", "--json").lines] == [5, 5, 0]
    assert cli("du", lake, "--as-of", "1999-01-01").out == "No object.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["du", "--json", "--csv"], 2, "--json and --csv are two forms"),
        (["du", "pets"], 2, "2 owners have a bucket 'pets'"),
        (["du", "dogs"], 1, "There is no bucket 'dogs'"),
        (["du", "--as-of", "never"], 2, "There is no tag 'never'"),
        (["top", "--by", "best"], 2, "cannot be ordered by 'best'"),
        (["find", "--larger", "10M"], 2, "'10M' is not a size"),
        (["find", "--older", "old"], 2, "'old' is not a time"),
        (["find", "--tag", "=v"], 2, "names no tag"),
        (["growth", "--every", "0s"], 2, "Every 0s there is no next time"),
        (["who", "--by", "moon"], 2, "cannot be told by 'moon'"),
        (["age", "--edge", "2d", "--edge", "1d"], 2, "do not ascend"),
        (["cost"], 2, "The prices come from a file or from options"),
        (["cost", "--prices", "x", "--price", "a=1"], 2, "The prices come from a file or from options"),
        (["cost", "--price", "free"], 2, "'free' is no price"),
        (["cost", "--price", "GLACIER=1"], 2, "There is no price of the storage class STANDARD"),
        (["cost", "--prices", "no.toml"], 2, "'no.toml' cannot be read"),
    ],
)
def test_bad_input_is_one_line_with_the_next_step(cli: Cli, lake: Path, arguments: list[str], code: int, told: str) -> None:
    ran = cli(arguments[0], lake, *arguments[1:])
    assert (ran.code, ran.err.count("\n")) == (code, 1)
    assert told in ran.err and " Next: " in ran.err
