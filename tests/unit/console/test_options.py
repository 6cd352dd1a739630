"""Options of stores on command lines, and where their values come from."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from bucketcatalog import CatalogWarning, InvalidOption
from bucketcatalog.cli import run
from bucketcatalog.console.options import parse_options

CANARY = "canary-7f3a"


def parsed(*given: str) -> dict[str, str]:
    """What the options are, where none of them gives a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return parse_options(given, "storage")


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (b"canary", "canary"),
        (b"canary\n", "canary"),
        (b"canary\r\n", "canary"),
        (b"two\nlines\n", "two\nlines"),
        (b" canary== \n\n", " canary== \n"),
        ("\u00e9".encode(), "\u00e9"),
        (b"@other", "@other"),
        (b"", ""),
    ],
)
def test_a_value_comes_from_a_file_without_the_end_of_its_last_line(tmp_path: Path, said: bytes, value: str) -> None:
    (tmp_path / "a secret").write_bytes(said)
    assert parsed(f"secret=@{tmp_path}/a secret", "region=x") == {"secret": value, "region": "x"}


def test_a_value_comes_from_the_environment_as_it_stands_there(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (CANARY, "@file", "$OTHER", "with space\n", ""):
        monkeypatch.setenv("LAKE_SECRET", value)
        assert parsed("secret=$LAKE_SECRET") == {"secret": value}


@pytest.mark.parametrize("value", ["@", "@nowhere", "@.", f"@{CANARY}", "@no\0name", "@/dev/zero", "@binary"])
def test_what_is_no_file_is_refused_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidOption, match="The file that the storage option secret names cannot be read") as caught:
        parsed(f"secret={value}")
    assert CANARY not in str(caught.value) and "secret=@FILE" in str(caught.value)


@pytest.mark.parametrize("value", ["$", "$NOT_SET_ANYWHERE", f"${CANARY}", "${HOME}", "$1", "$HOME/x", "$H\u00c9"])
def test_what_is_no_variable_is_refused_and_not_shown(value: str) -> None:
    with pytest.raises(InvalidOption, match="variable that the storage option secret names is not set") as caught:
        parsed(f"secret={value}")
    assert CANARY not in str(caught.value) and "secret='$VARIABLE'" in str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        *(
            "key",
            "secret",
            "token",
            "password",
            "SECRET",
            "aws_secret_access_key",
            "account_key",
            "sas_token",
            "connection_string",
        ),
        *("passphrase", "api_key", "credential", "auth"),
    ],
)
def test_a_secret_on_the_command_line_gives_a_warning_that_names_the_two_ways(key: str) -> None:
    with pytest.warns(CatalogWarning) as told:
        assert parse_options([f"{key}={CANARY}"], "source") == {key: CANARY}
    (text,) = (str(each.message) for each in told)
    assert f"{key}=@FILE" in text and f"{key}='$VARIABLE'" in text and CANARY not in text


@pytest.mark.parametrize(
    "option",
    [
        "region=eu",
        "endpoint_url=http://x",
        "anon=true",
        "sse_kms_key_id=k",
        "key_filename=/k",
        "account_name=a",
        "keys=1",
        "secret=",
    ],
)
def test_what_is_no_secret_gives_none(option: str) -> None:
    assert list(parsed(option)) == [option.partition("=")[0]]


def test_a_command_says_so_once_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "secret").write_text("secret")
    for given, code, warned in (
        (CANARY, 2, True),
        (f"@{tmp_path}/secret", 2, False),
        ("@nowhere", 2, False),
        ("$NOT_SET", 2, False),
    ):
        assert run(["ls", str(tmp_path), "--storage-option", f"secret={given}"]) == code  # a local path takes no options
        told = capsys.readouterr()
        assert (
            told.err.count("warning: The storage option secret stands on the command line") == warned and CANARY not in told.err
        )
        assert "[INVALID_OPTION]" in told.err and told.out == ""


def test_a_value_from_elsewhere_is_on_no_command_line(tmp_path: Path) -> None:
    """What the machine's other users see of a command while it runs, by the process's own entry in /proc."""
    (tmp_path / "secret").write_text(CANARY)
    shown = "from pathlib import Path; import sys; from bucketcatalog.console.options import parse_options; "
    shown += (
        "print(*parse_options(sys.argv[1:], 'storage').values(), Path('/proc/self/cmdline').read_text().replace(chr(0), ' '))"
    )
    options = [f"secret=@{tmp_path}/secret", "token=$LAKE_TOKEN"]
    environment = os.environ | {"LAKE_TOKEN": f"{CANARY}-2"}
    ran = subprocess.run([sys.executable, "-c", shown, *options], env=environment, capture_output=True, text=True, check=True)
    values, line = ran.stdout.split(sys.executable.rpartition("/")[2], 1)
    assert values.startswith(f"{CANARY} {CANARY}-2") and CANARY not in line and ran.stderr == ""
