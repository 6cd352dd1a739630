"""``verify``: a line for each finding, and an exit code that scripts can use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bucketcatalog.cli import run

from .conftest import Cli


def test_a_whole_catalog_ends_with_0(cli: Cli, catalog: Path) -> None:
    ran = cli("verify", catalog, "--deep")
    assert (ran.code, ran.err) == (0, "") and "error" not in ran.out
    assert {line["severity"] for line in cli("verify", catalog, "--deep", "--json").lines} <= {"info"}


def test_an_error_ends_with_1_and_has_a_line_of_its_own(capsysbinary: pytest.CaptureFixture[bytes], catalog: Path) -> None:
    damaged = sorted(catalog.glob("*/*/transactions/*/*.txn"))[0]
    damaged.write_bytes(damaged.read_bytes()[:-1])
    name = str(damaged.relative_to(catalog))
    assert run(["verify", str(catalog)]) == 1
    out, err = (text.decode() for text in capsysbinary.readouterr())
    assert f"error DAMAGED_TRANSACTION {name}: " in out and "1 error" in out.splitlines()[-1]
    assert err.startswith("[CORRUPT] 1 error in ") and err.count("\n") == 1
    assert run(["verify", str(catalog), "--json"]) == 1
    lines = [json.loads(line) for line in capsysbinary.readouterr()[0].decode().splitlines()]
    (line,) = [line for line in lines if line["severity"] == "error"]
    assert (line["code"], line["file"]) == ("DAMAGED_TRANSACTION", name)
    assert line["held"][0]["first_revision"] == 0 and line["remedy"]


def test_info_tells_what_it_can_of_a_damaged_catalog_and_fails(capsysbinary: pytest.CaptureFixture[bytes], catalog: Path) -> None:
    for marker in catalog.glob("*/*/newest/*"):
        marker.unlink()
    assert run(["info", str(catalog), "--json"]) == 0
    whole = json.loads(capsysbinary.readouterr()[0])["databases"][0]
    damaged = max(catalog.glob("*/*/transactions/*/*.txn"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert run(["info", str(catalog), "--json"]) == 1
    out, err = (text.decode() for text in capsysbinary.readouterr())
    (rest,) = json.loads(out)["databases"]
    assert rest["version"] == whole["version"] and rest["files"] == whole["files"]
    assert rest["to_do"][0].endswith(f"bucketcatalog verify {catalog} --database default") and rest["to_do"][1:] == whole["to_do"]
    warned, failed = err.splitlines()
    assert warned.startswith("warning: ") and "Left out: revision" in warned and damaged.name in warned
    assert failed.startswith("[CORRUPT] ") and damaged.name in failed
    assert run(["info", str(catalog)]) == 1
    assert "to do: something is damaged" in capsysbinary.readouterr()[0].decode()


def test_what_is_no_catalog_is_said(cli: Cli, tmp_path: Path) -> None:
    assert cli("verify", tmp_path).code == 1


@pytest.mark.parametrize("command", [["ls", "pets"], ["stat", "pets", "z"], ["export", "objects"]])
def test_reading_past_damage_is_asked_for_and_says_what_is_left_out(
    capsysbinary: pytest.CaptureFixture[bytes], catalog: Path, tmp_path: Path, command: list[str]
) -> None:
    for marker in catalog.glob("*/*/newest/*"):
        marker.unlink()
    damaged = max(catalog.glob("*/*/transactions/*/*.txn"))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    name, *rest = command
    arguments = [name, str(catalog), *rest, *([str(tmp_path / "x.parquet")] if name == "export" else [])]
    assert run(arguments) == 1
    error = capsysbinary.readouterr()[1].decode()
    assert damaged.name in error
    assert "Restore the file" in error and "bucketcatalog verify CATALOG" in error and "bucketcatalog repair CATALOG" in error
    assert run([*arguments, "--ignore-corruption"]) == 0
    out, err = (text.decode() for text in capsysbinary.readouterr())
    assert out and damaged.name in err and err.startswith("warning: ") and "Left out: revision" in err


@pytest.mark.parametrize(
    "command",
    [
        ["info"],
        ["log"],
        ["changes", "--from", ":"],
        ["diff", "--from", ":"],
        ["sums"],
        ["checkpoint", "--all-writers"],
        ["tag", "t"],
        ["clone", "copy"],
    ],
)
@pytest.mark.parametrize("how", ["damaged", "gone"])
def test_commands_that_meet_damage_lead_to_what_finds_and_mends_it(
    capsysbinary: pytest.CaptureFixture[bytes], catalog: Path, tmp_path: Path, command: list[str], how: str
) -> None:
    for marker in catalog.glob("*/*/newest/*"):
        marker.unlink()
    broken = sorted(catalog.glob("w/*/transactions/*/*.txn"))[0 if how == "gone" else -1]
    if how == "gone":
        broken.unlink()
    else:
        broken.write_bytes(broken.read_bytes()[:-1])
    name, *rest = (str(tmp_path / part) if part == "copy" else part for part in command)
    assert run([name, str(catalog), *rest]) == 1
    *warned, error = capsysbinary.readouterr()[1].decode().splitlines()
    assert len(warned) == (name == "info")  # which tells of the rest
    assert error.startswith("[CORRUPT] " if how == "damaged" else "[MISSING] ") and broken.name in error
    assert "bucketcatalog verify CATALOG" in error and "bucketcatalog repair CATALOG" in error


def test_what_was_not_compared_is_named_at_the_end(cli: Cli, catalog: Path) -> None:
    assert cli("checkpoint", catalog, "--all-writers", "--writer", "compactor-1").code == 0
    line = cli("verify", catalog, "--json").lines[-1]
    assert (line["severity"], line["code"], line["file"]) == ("info", "NOT_COMPARED", "default")
    assert "checkpoint" in line["message"] and " rows, and " in line["message"] and "--deep" in line["remedy"]
    out = cli("verify", catalog).out.splitlines()
    assert out[-2].startswith("info NOT_COMPARED default: ") and out[-1].startswith("Nothing is wrong")
    assert "NOT_COMPARED" not in cli("verify", catalog, "--deep").out
