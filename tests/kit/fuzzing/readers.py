"""Every command and call that reads, and those that say what they would delete: what each gives, as values that can be compared.

A reader is called with the catalog's folder, opens it as a process of its own would, and gives what the oracle looks at: rows by table,
names of files, or nothing, where it only must not fail in a way of its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bucketcatalog import Catalog
from bucketcatalog.cli import run
from bucketcatalog.query.blame import TRACEBACK
from bucketcatalog.query.snapshot import Snapshot

from ..world import BUCKET, OWNER
from .base import TABLES, VICTIM
from .decoding import decode

Rows = list[dict[str, Any]]
_STAMPS = ("_writer", "_revision", "_version")
_COMMANDS = {
    "ls": ["ls"],
    "ls of a bucket": ["ls", f"{VICTIM}-bucket"],
    "ls --deleted": ["ls", f"{VICTIM}-bucket", "--deleted"],
    "ls --delimiter": ["ls", f"{VICTIM}-bucket", "--delimiter", "-"],
    "stat": ["stat", f"{VICTIM}-bucket", f"{VICTIM}-a-0020"],
    "stat --history": ["stat", f"{VICTIM}-bucket", f"{VICTIM}-a-0001", "--history"],
    "info": ["info"],
    **{name: [name] for name in ("log", "writers", "tables", "checkpoints", "forks", "conflicts", "sums", "tag")},
    "changes": ["changes", "--from", "recent", "--table", "lab.things"],
    "changes of objects": ["changes", "--from", "recent"],
    "diff": ["diff", "--from", "recent"],
    "verify": ["verify"],
    "verify --deep": ["verify", "--deep"],
    "repair": ["repair"],
    "restore": ["restore", "objects", "first"],
}
"""Those whose answers nobody compares: they must end, with a typed error or none."""
_PAST_DAMAGE = ("ls", "ls of a bucket", "stat")


@dataclass
class Answer:
    """What a reader gave: ``rows`` by table, the names of ``files`` that it would delete, ``findings`` of others' files."""

    rows: dict[str, Rows] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Failed(Exception):
    """A command that ended with a code other than 0."""

    code: int
    said: str


def readers(changed: Sequence[str] = ()) -> dict[str, Callable[[Path], Answer]]:
    """All of them by name; the files that were ``changed`` are dumped."""
    found: dict[str, Callable[[Path], Answer]] = {"scan at a tag": partial(_scan, TABLES, version="first")}
    for tables in (("objects",), ("lab.things",), ("buckets", "mallory.things")):
        found[f"scan of {tables[0]}"] = partial(_scan, tables)
        found[f"scan of {tables[0]} past damage"] = partial(_scan, tables, ignore_corruption=True)
    found |= {
        "scan by order and key": _looked_up,
        "tables about the catalog": partial(_about, ignore_corruption=False),
        "tables about the catalog past damage": partial(_about, ignore_corruption=True),
        "changes in rows": _changes,
        "diff in rows": _diff,
        "prune": _prune,
        "gc": _gc,
        "verify in findings": partial(_verify, deep=False),
        "verify deep in findings": partial(_verify, deep=True),
        "export": _export,
    }
    for name, arguments in _COMMANDS.items():
        found[f"command {name}"] = partial(_command, arguments)
        if name in _PAST_DAMAGE:
            found[f"command {name} past damage"] = partial(_command, [*arguments, "--ignore-corruption"])
    found["dump in blocks"] = partial(_decoded, changed)
    for number, name in enumerate(changed[:3]):
        for more in ([], ["--rows", "3", "--json"]):
            found[f"dump {number} {' '.join(more)}".strip()] = partial(_dump, name, more)
    return found


def data_of(row: dict[str, Any]) -> str:
    """The name of an object's data."""
    return f"{row['owner']}/{row['bucket_id']}/{row['id']}"


def lay_data(folder: Path, rows: Rows) -> None:
    """Lay the data of objects beside the catalog, and some that nobody names."""
    for name in [*(data_of(row) for row in rows if row["id"]), f"{OWNER}/{BUCKET}/{BUCKET}"]:
        path = folder.with_name("data") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def _snapshot(folder: Path, **options: Any) -> Snapshot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Catalog(folder).snapshot(**options)


def _rows(snapshot: Snapshot, table: str, **options: Any) -> Rows:
    scan = snapshot.scan(table)
    names = [*scan.schema.names, *(name for name in _STAMPS if name not in scan.schema.names)]
    found: Rows = snapshot.scan(table, columns=names, **options).to_arrow().to_pylist()
    return found


def _scan(tables: Sequence[str], folder: Path, **options: Any) -> Answer:
    snapshot = _snapshot(folder, **options)
    there = set(snapshot.tables)
    found = [name for each in tables for name in (each, f"deleted_{each}") if name in there]
    return Answer({table: _rows(snapshot, table) for table in found})


def _looked_up(folder: Path) -> Answer:
    snapshot = _snapshot(folder)
    key = {"owner": OWNER, "bucket_id": BUCKET, "name": f"{VICTIM}-a-0020"}
    found = snapshot.get("objects", **key)
    page = snapshot.list("objects", prefix=VICTIM, limit=50, owner=OWNER, bucket_id=BUCKET)
    some = _rows(snapshot, "lab.things", where={"name": [f"{VICTIM}-b-{n:04}" for n in range(0, 70, 7)]})
    return Answer({"got": [found] if found else [], "page": page.rows.to_pylist(), "some": some})


def _about(folder: Path, **options: Any) -> Answer:
    snapshot = _snapshot(folder, **options)
    names = ("log", "writers", "tables", "checkpoints", "forks", "conflicts", "sums", "tags", "damage")
    found = {name: snapshot.scan(name).to_arrow().to_pylist() for name in names}
    return Answer({f"about {name}": rows for name, rows in found.items() if name in ("log", "tags")})


def _changes(folder: Path) -> Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Catalog(folder).changes(table="objects", start="recent").to_arrow()
    return Answer({"changes": found.to_pylist()})


def _diff(folder: Path) -> Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Catalog(folder).diff(table="lab.things", start="recent").to_arrow()
    return Answer({"diff": found.to_pylist()})


def _prune(folder: Path) -> Answer:
    ages = ["--older-than", "0s", "--grace", "0s", "--force", "--json"]
    said = json.loads(_run(["prune", str(folder), *ages]))
    return Answer(files=[each["name"] for each in (*said["files"], *said["waiting"])])


def _gc(folder: Path) -> Answer:
    where = f"{folder.with_name('data')}/{{owner}}/{{bucket_id}}/{{id}}"
    what = ["--data", "--reap", "--orphans", "--data-url", where, "--older-than", "0s", "--force", "--json"]
    lines = [json.loads(line) for line in _run(["gc", str(folder), *what]).splitlines()]
    return Answer(files=[each["name"] for each in lines if each.get("section") == "orphan"])


def _verify(folder: Path, *, deep: bool) -> Answer:
    found = Catalog(folder).verify(deep=deep)
    return Answer(findings=[f"{each.file}: {each.code} {each.message}" for each in found if each.severity.value == "error"])


def _export(folder: Path) -> Answer:
    _run(["export", str(folder), "lab.things", str(folder.with_name("exported.parquet"))])
    return Answer()


def _command(arguments: list[str], folder: Path) -> Answer:
    _run([arguments[0], str(folder), *arguments[1:]])
    return Answer()


def _dump(name: str, more: list[str], folder: Path) -> Answer:
    if (folder / name).exists() and name.endswith((".txn", ".ckpt", ".parquet")):
        _run(["dump", str(folder / name), *more])
    return Answer()


def _decoded(changed: Sequence[str], folder: Path) -> Answer:
    decode(changed, folder)
    return Answer()


def _run(arguments: list[str]) -> str:
    """What a command prints; ``Failed`` with what it says on standard error where it ends with an error."""
    out, error = io.StringIO(), io.StringIO()
    os.environ[TRACEBACK] = "1"
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = run(arguments)
    if code:
        raise Failed(code, error.getvalue())
    return out.getvalue()
