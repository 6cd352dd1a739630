"""Code blocks of the documentation, and how they are run.

The word after the fence says what becomes of a block:

=================  ==============================================================================================
python             run in order, all of one file in one namespace
python spark       the same, in tests/spark, with a session ``spark``
bash spark         the same as bash, in tests/spark
python s3, bash s3 the same as without s3, in tests/s3, with the environment that ``make minio`` says to export
bash postgres      the same as bash, beside a PostgreSQL server, which variables name
bash               run by bash in the same folder, with the commands ``bucketcatalog`` and ``python``
proto NAME.proto   written to a file of that name in the folder, and so with ``python NAME.py`` and ``toml NAME.toml``
text               shown only
=================  ==============================================================================================
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), *ROOT.glob("minio/*.md")])
KINDS = {"python", "python spark", "python s3", "bash", "bash s3", "bash spark", "bash postgres", "text"}
_FILE = re.compile(r"(?P<kind>proto|python|toml) (?P<name>[\w/]+\.(proto|py|toml))")
_FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMANDS = {"bucketcatalog": "-W error -m bucketcatalog", "python": ""}


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, what its fence says, and its text."""

    file: Path
    line: int
    kind: str
    text: str


def blocks_of(file: Path) -> list[Block]:
    """The fenced blocks of a file, in order."""
    text = file.read_text()
    return [Block(file, text.count("\n", 0, m.start()) + 1, m["kind"].strip(), m["body"]) for m in _FENCE.finditer(text)]


def files_with(*kinds: str) -> list[Path]:
    """The files that have a block of one of the kinds."""
    return [file for file in FILES if any(block.kind in kinds or block.kind.split()[0] in kinds for block in blocks_of(file))]


def is_known(kind: str) -> bool:
    """Whether the word after a fence says what becomes of the block."""
    return kind in KINDS or _FILE.fullmatch(kind) is not None


def run_blocks(blocks: Iterable[Block], folder: Path, names: Mapping[str, Any], skip: frozenset[str]) -> None:
    """Run the blocks in ``folder``, with ``names`` defined; an error tells the file and line."""
    namespace: dict[str, Any] = {"__name__": "__docs__", **names}
    with _at_home(folder) as environment:
        for block in blocks:
            if block.kind in skip or block.kind == "text":
                continue
            if written := _FILE.fullmatch(block.kind):
                path = folder / written["name"]
                path.parent.mkdir(exist_ok=True)
                path.write_text(block.text)
            elif block.kind.startswith("bash"):
                _bash(block, folder, environment)
            else:
                # Lines are counted from the top of the file, so that a traceback points into it.
                exec(compile("\n" * block.line + block.text, str(block.file), "exec"), namespace)


def _bash(block: Block, folder: Path, environment: Mapping[str, str]) -> None:
    command = ["bash", "-euo", "pipefail", "-c", block.text]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{block.file}:{block.line} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"


@contextmanager
def _at_home(folder: Path) -> Iterator[dict[str, str]]:
    """The folder as working directory and first place of modules; gives the environment that commands run in."""
    before, path, modules = Path.cwd(), list(sys.path), set(sys.modules)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        with warnings.catch_warnings():
            yield _environment(folder / ".bin")
    finally:
        os.chdir(before)
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if getattr(sys.modules[name], "__file__", None) and str(sys.modules[name].__file__).startswith(str(folder)):
                del sys.modules[name]


def _environment(bin_: Path) -> dict[str, str]:
    """The environment of commands: this interpreter's packages, and the commands that documents use."""
    bin_.mkdir()
    for command, arguments in _COMMANDS.items():
        script = bin_ / command
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
    tools = [str(Path(sys.prefix) / "protoc")] if (Path(sys.prefix) / "protoc").is_dir() else []
    path = os.pathsep.join([*(entry for entry in sys.path if entry), *tools])
    return os.environ | {"PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path}
