"""What goes wrong is one line with its code and the next step, and an exit code; whatever output, terminal or signal is."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bucketcatalog import Catalog
from bucketcatalog.cli import commands, harvest, run

from .conftest import Cli, Past

COMMANDS = sorted(info.name for info in commands.app().registered_commands if info.name)
ROOT = Path(__file__).parents[3]


def program(*arguments: object) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "bucketcatalog", *(str(argument) for argument in arguments)]


@pytest.mark.parametrize("more", [["--nope"], ["--limit", "0"], ["b", "prefix", "too much"]])
def test_a_command_line_that_cannot_be_read_is_told_how_to_write_it_without_a_code(
    past: Past, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    assert run(["ls", str(past.path), *more]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("Usage: bucketcatalog ls ")
    assert shown.err.splitlines()[-1].startswith("Error: ")


def test_every_command_of_this_release_is_there() -> None:
    assert COMMANDS == [
        "age",
        "changes",
        "checkpoint",
        "checkpoints",
        "clone",
        "conflicts",
        "cost",
        "diff",
        "du",
        "dump",
        "dups",
        "export",
        "find",
        "forks",
        "gc",
        "growth",
        "harvest",
        "info",
        "log",
        "ls",
        "pin",
        "prune",
        "repair",
        "restore",
        "retire",
        "spark",
        "stat",
        "sums",
        "tables",
        "tag",
        "top",
        "verify",
        "who",
        "writers",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_json(cli: Cli, command: str) -> None:
    shown = cli(command, "--help").out
    assert f"Example: bucketcatalog {command} " in " ".join(shown.split())
    if command != "spark":  # whose jobs have options of their own
        assert "--json" in shown and "--storage-option" in shown
        assert "--database" in shown or command in ("dump", "gc")


def test_version_and_help_end_well(cli: Cli) -> None:
    assert cli("--version").out.startswith("bucketcatalog ")
    assert "harvest" in cli("--help").out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nothing"],
        ["ls"],
        ["ls", "c", "--nothing"],
        ["ls", "c", "b", "--limit", "0"],
        ["stat", "c"],
        ["harvest", "only-a-source"],
        ["ls", "c", "--storage-option", "novalue"],
        ["ls", "c", "--storage-option", "key=value"],
        ["harvest", ".", "c", "--writer", "../x"],
        ["harvest", ".", "c", "--owner", "me", "--dry-run"],
    ],
)
def test_wrong_usage_ends_with_2(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cli(*arguments)
    assert ran.code == 2 and ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("word", ["wJalrXUtnFEMIK7MDENG", "wJalrXUtnFEMI/K7MDENG+bPxRfiCY==", "=wJalrXUtnFEMI"])
@pytest.mark.parametrize("kind", ["storage", "source"])
def test_an_option_that_is_none_is_named_by_its_place_and_not_shown(cli: Cli, tmp_path: Path, kind: str, word: str) -> None:
    """Who forgets the name may have given a secret alone."""
    options = [f"--{kind}-option", "region=x", f"--{kind}-option", word]
    ran = cli("harvest", tmp_path, tmp_path / "new", *options)
    assert ran.code == 2 and "wJalr" not in ran.err
    assert f"Number 2 of the {kind} options is not of the form KEY=VALUE." in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "name"),
    [
        (["ls", "{}/nothing"], 1, "CATALOG_NOT_FOUND"),
        (["info", "{}/nothing"], 1, "CATALOG_NOT_FOUND"),
        (["log", "{c}", "--database", "other"], 1, "DATABASE_NOT_FOUND"),
        (["harvest", "{}/nothing", "{}/new"], 1, "SOURCE_NOT_FOUND"),
        (["harvest", "nonsense://bucket", "{}/new"], 1, "UNSUPPORTED_STORE"),
        (["harvest", "{}", "{}/new", "--source-option", "k=v"], 2, "INVALID_OPTION"),
        (["harvest", "{}", "{}/new", "--source-option", "k"], 2, "INVALID_OPTION"),
        (["harvest", "{}", "{}/new", "--tags"], 2, "INVALID_OPTION"),
        (["ls", "{c}", "nobody"], 1, "NOT_FOUND"),
        (["stat", "{c}", "pets", "nothing"], 1, "NOT_FOUND"),
        (["ls", "{c}", "--as-of", "2999-01-01"], 2, "INVALID_TIME"),
        (["ls", "{c}", "--as-of", "2024-13-45"], 2, "INVALID_TIME"),
        (["ls", "{c}", "--as-of", "no-tag"], 2, "INVALID_VERSION"),
        (["ls", "{c}", "--as-of", "w@99"], 2, "INVALID_VERSION"),
        (["tag", "{}/nothing", "x"], 1, "CATALOG_NOT_FOUND"),
        (["tag", "{c}", "x", "--database", "other"], 1, "DATABASE_NOT_FOUND"),
        (["tag", "{c}", "1x"], 2, "INVALID_NAME"),
        (["tag", "{c}", "2024-05-01"], 2, "INVALID_NAME"),
        (["tag", "{c}", "x", "no-tag"], 2, "INVALID_VERSION"),
        (["tag", "{c}", "x", "2999-01-01"], 2, "INVALID_TIME"),
        (["tag", "{c}", "x", "--writer", "../x"], 2, "INVALID_NAME"),
        (["tag", "{c}", "x", "--drop"], 1, "NOT_FOUND"),
        (["tag", "{c}", "x", "0", "--drop"], 2, "INVALID_OPTION"),
        (["tag", "{c}", "x", "--drop", "--replace"], 2, "INVALID_OPTION"),
        (["tag", "{c}", "--drop"], 2, "INVALID_OPTION"),
        (["tag", "{c}", "--replace"], 2, "INVALID_OPTION"),
        (["export", "{c}", "nothing", "{}/x.parquet"], 2, "UNKNOWN_TABLE"),
        (["export", "{c}", "objects", "{}/no/dir/x.parquet"], 1, "OS"),
        (["export", "{c}", "objects", "{}"], 2, "INVALID_OPTION"),
        (["export", "{c}", "objects", "."], 2, "INVALID_OPTION"),
        (["export", "{c}", "objects", ""], 2, "INVALID_OPTION"),
        (["export", "{c}", "objects", "/"], 2, "INVALID_OPTION"),
        (["export", "{c}", "objects", "{}/missing/"], 2, "INVALID_OPTION"),
        (["ls", "{c}", "pets", "--delimiter", ""], 2, "INVALID_OPTION"),
        (["dump", "{}/nothing.txn"], 1, "OS"),
        (["dump", "{}"], 1, "OS"),
        (["dump", "file://{}/nothing.txn"], 1, "OBJECT_NOT_FOUND"),
        (["ls", "nonsense://x/y"], 1, "UNSUPPORTED_STORE"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_failure_is_one_line_with_its_code_and_the_next_step(
    cli: Cli, past: Past, tmp_path: Path, arguments: list[str], code: int, name: str, as_json: bool
) -> None:
    filled = [argument.replace("{c}", str(past.path)).replace("{}", str(tmp_path)) for argument in arguments]
    ran = cli(*filled, *(["--json"] if as_json else []))
    assert (ran.code, ran.err.count("\n")) == (code, 1)
    assert ran.err.startswith(f"[{name}] ")
    assert " Next: " in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["info", "ls", "log"])
def test_directories_of_any_other_kind_are_no_catalog(cli: Cli, past: Past, tmp_path: Path, command: str) -> None:
    (tmp_path / "perl" / "App" / "Prove").mkdir(parents=True)
    (tmp_path / "perl" / "App" / "Prove" / "State.pm").write_text("")
    (tmp_path / "x" / "transactions").mkdir(parents=True)
    (tmp_path / "x" / "transactions" / "y").write_text("")
    for place in (tmp_path, past.path / "w"):
        ran = cli(command, place)
        assert (ran.code, ran.err[:20]) == (1, "[CATALOG_NOT_FOUND] "), (place, ran)


@pytest.mark.parametrize(
    ("file", "why"),
    [("no/x.parquet", "No such file or directory"), ("file/x.parquet", "Not a directory"), ("n" * 300 + ".parquet", "too long")],
)
def test_a_file_that_cannot_be_exported_to_is_named_as_given(
    cli: Cli, past: Past, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    ran = cli("export", past.path, "objects", file)
    assert ran.code == 1 and why in ran.err and f": {file!r}. Next: " in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_time_before_the_first_commit_is_empty(cli: Cli, past: Past) -> None:
    assert cli("ls", past.path, "--as-of", "1999-01-01").out == "No bucket.\n"


def test_a_damaged_file_is_one_line_that_names_it(cli: Cli, tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "c")
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": "11111111-1111-4111-8111-111111111111", "name": "b"})
    (file,) = (tmp_path / "c").rglob("*.txn")
    file.write_bytes(file.read_bytes()[:-1])
    ran = cli("ls", tmp_path / "c")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert ran.err.startswith("[CORRUPT] ") and file.name in ran.err


def test_what_nobody_foresaw_is_one_line_too(cli: Cli, past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(self: Catalog) -> list[str]:
        raise ZeroDivisionError("a\nbug")

    monkeypatch.setattr(Catalog, "databases", breaks)
    ran = cli("info", past.path)
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert ran.err.startswith(r"[INTERNAL] ZeroDivisionError: a\nbug. Next: ")


@pytest.mark.parametrize("command", ["info", "harvest"])
def test_an_interrupt_is_one_line_that_says_how_to_go_on(
    cli: Cli, past: Past, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Catalog, "databases", interrupted)
    monkeypatch.setattr(harvest, "run_harvest", interrupted)
    harvests = [past.source, past.path, "--bucket", "two words"]
    ran = cli(command, *(harvests if command == "harvest" else [past.path]))
    assert (ran.code, ran.err.count("\n")) == (130, 1)
    assert ran.err.startswith("Interrupted.") and f"Next: Run it again: bucketcatalog {command} " in ran.err
    assert ("the next run does the rest" in ran.err and "'two words'" in ran.err) is (command == "harvest")


def test_an_interrupt_shows_no_secret_of_the_command(cli: Cli, past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(harvest, "run_harvest", interrupted)
    secrets = ["--storage-option", "key=hunter20", "--storage-option", "secret=hunter21", "--source-option=password=hunter22"]
    ran = cli("harvest", "sftp://me:hunter24@host/a", "s3://lake/a", "--include", "a?b", *secrets)
    assert ran.code == 130 and "hunter" not in ran.err
    assert "--storage-option secret=... --source-option=password=..." in ran.err
    assert "sftp://me@host/a" in ran.err and "'a?b'" in ran.err
    cut = cli("harvest", "sftp://me:hunter/24@host/a", "s3://lake/a", *secrets)
    assert (cut.code, cut.err.count("\n")) == (130, 4) and "hunter" not in cut.err  # a warning for each secret


def test_an_interrupt_of_the_start_is_one_line_too() -> None:
    code = (
        "import sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'bucketcatalog.cli.commands': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from bucketcatalog.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


def test_a_fork_is_told_once_in_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        with Catalog(tmp_path / name).writer("w") as writer, writer.transaction() as tx:
            tx.put("buckets", {"owner": "11111111-1111-4111-8111-111111111111", "name": name})
    shutil.copytree(tmp_path / "one", tmp_path / "two", dirs_exist_ok=True)
    for _ in range(2):
        assert run(["changes", str(tmp_path / "two"), "--from", ":", "--table", "buckets"]) == 0
        assert capsys.readouterr().err.count("warning: The timeline of writer 'w' is forked") == 1


@pytest.mark.parametrize("arguments", [["changes", "--from", ":"], ["ls", "--json"], ["info"], ["--version"]])
@pytest.mark.parametrize("stream", [1, 2])
def test_a_stream_that_was_closed_before_is_no_error(past: Past, arguments: list[str], stream: int) -> None:
    command = [*arguments[:1], past.path, *arguments[1:]] if arguments != ["--version"] else arguments
    shell = ["bash", "-c", f'exec "$@" {stream}>&-', "-", *program(*command)]
    ran = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr, ran.stdout == "") == (0, "", stream == 1)


def test_a_full_disk_behind_standard_output_is_one_line_with_what_to_do(past: Past) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(program("ls", past.path), cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (
        1,
        "[OS] No space left on device. Next: Free some space on the file system, then try again.\n",
    )


def test_a_link_that_leads_to_itself_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "c" / "w").mkdir(parents=True)
    (tmp_path / "c" / "w" / "default").symlink_to("default")
    ran = cli("ls", tmp_path / "c")
    assert ran.code == 1 and f"('{tmp_path}/c/w/default' leads back to itself)" in ran.err, ran


def test_several_databases_have_to_be_chosen_from(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    for database in ("one", "two"):
        cli("harvest", tmp_path / "s", tmp_path / "c", "--database", database)
    ran = cli("ls", tmp_path / "c")
    assert ran.code == 1 and "one, two" in ran.err
    assert len(cli("info", tmp_path / "c", "--json").document["databases"]) == 2
    assert cli("info", tmp_path / "c", "--database", "two").out.count("database ") == 1


def test_a_reader_that_has_had_enough_is_no_error(tmp_path: Path) -> None:
    source = tmp_path / "s"
    source.mkdir()
    for at in range(3_000):
        (source / f"{at:05}{'x' * 200}").touch()
    catalog = tmp_path / "c"
    subprocess.run(program("harvest", source, catalog, "--bucket", "b"), cwd=ROOT, check=True, capture_output=True)
    for extra in ([], ["--json"]):
        with subprocess.Popen(
            program("ls", catalog, "b", *extra), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as ran:
            assert ran.stdout is not None and ran.stderr is not None
            ran.stdout.readline()
            ran.stdout.close()
            assert ran.stderr.read() == ""
        assert ran.returncode == 0


def test_progress_is_shown_to_a_terminal_only(tmp_path: Path) -> None:
    source = tmp_path / "s"
    source.mkdir()
    command = program("harvest", source, tmp_path / "c", "--json")
    quiet = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert quiet.stderr == b""
    ours, theirs = pty.openpty()
    try:
        watched = subprocess.run(
            command, cwd=ROOT, check=True, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"}
        )
        os.set_blocking(ours, False)
        assert b"harvesting" in os.read(ours, 65_536)
    finally:
        os.close(ours)
        os.close(theirs)
    assert watched.stdout.count(b"\n") == 1


def test_output_is_utf8_whatever_the_locale_is(past: Past) -> None:
    ran = subprocess.run(
        program("ls", past.path, "pets", "d"),
        cwd=ROOT,
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert "d\u00e9".encode() in ran.stdout
