"""What a reader may answer to a forged file: what it answered without, as far as that is others', or a typed error that names the forger.

What the forger's events say of others' keys is allowed, for it is legal: rows of keys that stand in her events are not compared. Those in a
checkpoint are events of hers only where no stamp beside them is another's.
"""

from __future__ import annotations

import re
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from bucketcatalog import limits
from bucketcatalog.errors import BucketCatalogError
from bucketcatalog.v1 import log_pb2

from . import streams
from .base import FORGER, OTHERS, VICTIM
from .forge import Case
from .parts import opened
from .readers import Answer, Failed, Rows

_KEY = re.compile(VICTIM.encode() + rb"-[a-z]+(?:-[0-9]{4})?")
_FRAME = re.compile(r'File "([^"]*/(?:bucketcatalog|tests)/[^"]*)", line (\d+), in (\S+)')
_LEFT_OUT = {"_row_number"}


@dataclass(frozen=True)
class Finding:
    """What a reader did that it may not: ``kind`` says what, worst first in ``KINDS``, ``place`` where in the code, if it is known.

    ``sound`` is what goes wrong where nothing was forged.
    """

    kind: str
    reader: str
    what: str
    place: str = ""


KINDS = ("sound", "signal", "memory", "time", "traceback", "rows", "deletes", "blames", "refused")


def touched(case: Case) -> frozenset[str]:
    """The names of others' rows that stand in her events."""
    found: set[bytes] = set()
    for name, data in case.files.items():
        if not data:
            continue
        if name.endswith(".txn"):
            found |= _in_transaction(name, data)
        elif name.endswith(".ckpt"):
            found |= _in_checkpoint(name, data)
    return frozenset(each.decode() for each in found)


def _in_transaction(name: str, data: bytes) -> set[bytes]:
    found = set(_KEY.findall(data))
    try:
        message = opened(name, data)
    except Exception:
        return found
    for block in message.blocks:
        found |= _names(_texts(block.rows))
    return found


def _in_checkpoint(name: str, data: bytes) -> set[bytes]:
    found: set[bytes] = set()
    try:
        blocks = [log_pb2.Block.FromString(each) for run in opened(name, data).runs for each in run.blocks]
    except Exception:
        return found
    for block in blocks:
        texts = _texts(block.rows)
        if not texts & set(OTHERS):
            found |= _names(texts)
    return found


def _texts(stream: bytes) -> set[str]:
    rows = streams.read(stream)
    found: set[str] = set()
    for column in rows.slice(0, limits.BLOCK_ROWS).columns if rows is not None else ():  # a block of more is refused
        kind = column.type
        if pa.types.is_struct(kind) or pa.types.is_dictionary(kind) or pa.types.is_string(kind):
            found |= set(re.findall(r"[\w.-]+", str(column.to_pylist())))
    return found


def _names(texts: set[str]) -> set[bytes]:
    return {key for text in texts for key in _KEY.findall(text.encode())}


def judge(
    reader: str,
    sound: Answer,
    found: Answer,
    allowed: frozenset[str],
    base_files: frozenset[str],
    hers: frozenset[str] = frozenset(),
) -> list[Finding]:
    """What is wrong with an answer, by that without the forged files; names in ``allowed`` are not looked at.

    Data that is ``hers``, for rows that she alone has written name it, may go: she may take these rows back.
    """
    wrong = []
    for table, rows in sound.rows.items():
        before, after = _others(table, rows, allowed), _others(table, found.rows.get(table, []), allowed, like=rows)
        if before != after:
            lost, new = before - after, after - before
            sample = (*[f"-{each}" for each in [*lost][:1]], *[f"+{each}" for each in [*new][:1]])
            wrong.append(
                Finding("rows", reader, f"{table}: {lost.total()} lost, {new.total()} new, such as {sample}"[:600], table)
            )
    more = [name for name in found.files if name not in sound.files and name not in hers and not name.startswith(f"{FORGER}/")]
    if more := [name for name in more if name in base_files or not name.count("/transactions/")]:
        wrong.append(Finding("deletes", reader, f"{len(more)}, such as {more[0]}"))
    blamed = [each for each in found.findings if each not in sound.findings and FORGER not in each]
    if blamed:
        wrong.append(
            Finding(
                "blames", reader, f"{len(blamed)}, such as {blamed[0]}"[:400], re.sub(r"[0-9a-f-]{8,}|\d+", "N", blamed[0])[:80]
            )
        )
    return wrong


def _others(table: str, rows: Rows, allowed: frozenset[str], like: Rows | None = None) -> Counter[str]:
    """The rows that are not hers, as text."""
    columns = [name for name in (like or rows or [{}])[0] if name not in _LEFT_OUT]
    return Counter(repr([row.get(name) for name in columns]) for row in rows if _is_others(table, row, allowed))


def _is_others(table: str, row: dict[str, Any], allowed: frozenset[str]) -> bool:
    if table.startswith("about "):
        return bool(row["writer"] != FORGER)
    if row["name"] in allowed:
        return False
    return str(row["name"]).startswith(VICTIM) or row.get("_writer", FORGER) != FORGER


def judge_error(reader: str, error: BaseException, allowed: frozenset[str]) -> Finding | None:
    """What is wrong with a reader that raised this; None where it may."""
    if isinstance(error, Failed):
        return _judge_command(reader, error, allowed)
    if isinstance(error, MemoryError):
        return Finding("memory", reader, "MemoryError", _place(error))
    if not isinstance(error, BucketCatalogError):
        return Finding("traceback", reader, f"{type(error).__name__}: {str(error)[:300]}", _place(error))
    return _judge_text(reader, str(error), allowed, _place(error))


def _judge_command(reader: str, error: Failed, allowed: frozenset[str]) -> Finding | None:
    frames = _FRAME.findall(error.said)
    place = _shown(frames[-1]) if frames else ""
    last = error.said.strip().rpartition("\n")[2]
    if "[INTERNAL]" in error.said or "[OS]" in error.said or "[BROKEN_SYSTEM]" in error.said:
        return Finding("memory" if "MemoryError" in last else "traceback", reader, last[:300], place)
    said = " ".join(line for line in error.said.splitlines() if not line.startswith("warning: "))
    return _judge_text(reader, said, allowed, place)


def _judge_text(reader: str, said: str, allowed: frozenset[str], place: str) -> Finding | None:
    if "verify" in reader and re.search(r"\[CORRUPT\] \d+ errors? in ", said):
        return None  # the errors that it has listed; others look at these
    if allowed and "NOT_FOUND]" in said:
        return None
    if FORGER not in said.replace(f"{FORGER}.things", ""):
        return Finding("blames", reader, f"nobody is named: {said[:400]}", place or said[:30])
    if "past damage" in reader:
        return Finding("refused", reader, said[:400], place or said[:30])
    return None


def _place(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/bucketcatalog/" in f.filename]
    return _shown((frames[-1].filename, str(frames[-1].lineno), frames[-1].name)) if frames else ""


def _shown(frame: tuple[str, str, str]) -> str:
    file, line, name = frame
    return f"{Path(file).as_posix().rpartition('/bucketcatalog/')[2]}:{line} {name}"
