"""``dump``: a file of the catalog for people to look at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from .. import limits
from ..console.options import Json, StorageOption, open_catalog
from ..console.output import finish, plain, print_facts, size, to_json, visible, write
from ..errors import ObjectNotFound, next_step_for
from ..format.dump import Inspection, inspect
from ..format.footers import MAGIC
from ..model.paths import FileKind, is_of_a_log, kind_of, parse
from ..store.filesystem import open_file

_LONGEST = 200
_FIRST = limits.LOG_FILE_BYTES + 1
"""What is read of any file first: all of a transaction or checkpoint, or enough to see that it is none."""
_KEYS = frozenset({"first_key", "last_key", "shown"})


def dump(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A .txn, .ckpt or segment, by path or URL.", show_default=False)],
    rows: Annotated[int, typer.Option("--rows", metavar="N", min=0, help="Show the first N rows of each block.")] = 0,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Show what a file of a catalog holds, and what is wrong with it.

    A damaged file is no error: what can be read is shown, with a list of problems.

    Example: bucketcatalog dump ./catalog/w/default/transactions/00000000000000000000/*.txn
    """
    data, length = _read(file, storage_option)
    found = inspect(data, file, rows=rows)
    known = _is_of_a_catalog(file, data, found)
    facts = {
        "file": file,
        "kind": found.kind if known else None,
        "bytes": length,
        "intact": not found.problems,
        "problems": found.problems,
        "notes": found.notes,
    }
    if as_json:
        print_facts({**facts, "content": plain(found.content)}, as_json=True)
        return
    if not known:
        what = "a Parquet file of another program, " if found.is_foreign else ""
        write(f"{visible(file)}: {what}no file of a catalog, {size(length)}")
        finish()
        return
    write(f"{visible(file)}: {found.kind}, {size(length)}, {'intact' if not found.problems else 'DAMAGED'}")
    for problem in found.problems:
        write(f"problem: {visible(problem)}")
    if found.problems:
        write(f"next: {visible(next_step_for(_named(file)))}")
    for note in found.notes:
        write(f"note: {visible(note)}")
    for name, value in found.content.items():
        _show(name, value)
    finish()


def _is_of_a_catalog(file: str, data: bytes, found: Inspection) -> bool:
    """Whether a file has the name of one, or, under any other name, something in it that makes one.

    Not every Parquet file is a segment; one that is cut short can be.
    """
    place = file if "://" in file else str(Path(file).absolute())
    named = is_of_a_log(place) or kind_of(file) not in (None, FileKind.SEGMENT)
    begins = data.startswith(MAGIC) and not found.is_foreign
    return named or begins or not found.problems or not found.content.keys().isdisjoint({"writer", "database", "index", "blocks"})


def _named(file: str) -> str:
    """The name that a file has in its catalog, where it lies as one of a catalog does."""
    parts = file.split("/")
    names = ("/".join(parts[-length:]) for length in (5, 4))
    return next((name for name in names if parse(name) is not None), file)


def _read(file: str, storage_option: list[str] | None) -> tuple[bytes, int]:
    """The bytes of a file and how many it has; of one that is larger than any of its kind the beginning alone."""
    if "://" not in file:
        with _opened(file) as opened:
            data = opened.read(_FIRST)
            length = max(len(data), os.fstat(opened.fileno()).st_size)
            if len(data) == _FIRST and _is_segment(file, data, length):
                data += opened.read(limits.SEGMENT_BYTES + 1 - _FIRST)
        return data, max(len(data), length)
    folder, _, name = file.rpartition("/")
    store = open_catalog(folder, storage_option).store
    data = store.get(name, most=_FIRST)
    length = len(data) if len(data) < _FIRST else store.head(name).size
    if len(data) == _FIRST and _is_segment(file, data, length):
        data = store.get(name, most=limits.SEGMENT_BYTES + 1)
    return data, max(len(data), length)


def _opened(file: str) -> BinaryIO:
    """A file of this machine. A pipe of any name is read to its end, but for one that is named as a file of a catalog.

    Such a one is none to readers either, and whoever can write below a writer's prefix would keep one waiting by it.
    """
    if kind_of(file) is None and not is_of_a_log(str(Path(file).absolute())):
        return Path(file).open("rb")
    try:
        return os.fdopen(open_file(os.fsencode(file)), "rb")
    except FileNotFoundError as error:
        if Path(file).exists():
            raise ObjectNotFound(
                f"{file!r} is a pipe, a device or a directory, which is no file of a catalog.",
                next_step="Remove it, where it lies in a catalog: readers pass it over.",
            ) from None
        raise FileNotFoundError(error.errno, error.strerror, file) from None
    except OSError as error:  # which names the file in bytes
        raise OSError(error.errno, error.strerror, file) from None


def _is_segment(file: str, beginning: bytes, length: int) -> bool:
    """Whether a file that is too large for any other kind can be a segment: by its name, or by what it begins with."""
    kind = kind_of(file)
    return length <= limits.SEGMENT_BYTES and (kind is FileKind.SEGMENT or (kind is None and beginning.startswith(MAGIC)))


def _show(name: str, value: Any) -> None:
    """A line for a value, or for each of several; below a block the rows that were asked for, each whole."""
    for item in value if isinstance(value, list) else [value]:
        rows = item.pop("first_rows", []) if isinstance(item, dict) else []
        keys: list[str] = []
        item = _without_keys(item, keys)
        line = to_json(item) if isinstance(item, (dict, list, bool)) else str(item)
        write(f"{name}: {visible(line if len(line) <= _LONGEST else line[:_LONGEST] + ' ...')}")
        for each in keys:
            write(f"  keys: {visible(each)}")
        for row in rows:
            write(f"  row: {visible(to_json(row))}")


def _without_keys(value: Any, keys: list[str]) -> Any:
    """The same without first and last keys that can be shown, wherever in it they stand: as that they become ``keys``."""
    if isinstance(value, list):
        return [_without_keys(each, keys) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() >= _KEYS:
        first, last = value["shown"]
        keys.append(f"({first}) to ({last})")
        value = {name: each for name, each in value.items() if name not in _KEYS}
    return {name: _without_keys(each, keys) for name, each in value.items()}


COMMANDS = {"dump": dump}
