"""Commands over a catalog in which a segment is forged with right checksums: they name it, or go on without it, and no process ends."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bucketcatalog.cli import run
from bucketcatalog.format.runs import known_segments, segment_message
from bucketcatalog.format.sealing import seal, unseal
from bucketcatalog.v1 import log_pb2

from ...kit import forging as f
from ...kit.corrupting import specimen
from ...kit.forging import Forgery, raw, run_of
from ...kit.limited import MEBI, Limited
from ...kit.spec_reading import copied
from ...kit.thrift import LIST, STRUCT, List, Struct, Value, binary, i64, write_struct
from ...kit.world import BUCKET, OWNER

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="what a process takes is asked of Linux")
ROWS = 73
TEXT, ALL = b"\2\0\0\0\xc3(", run_of(ROWS, 1)


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    code: int
    said: str


def command(*arguments: str) -> Ran:
    """Run a command of the program."""
    printed = io.TextIOWrapper(io.BytesIO(), write_through=True)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = run(list(arguments))
    assert isinstance(printed.buffer, io.BytesIO)
    return Ran(code, printed.buffer.getvalue().decode())


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    root = copied(specimen().world, tmp_path_factory.mktemp("sound"))
    with Limited() as limited:
        for arguments in commands(root).values():
            limited.prepare(command, *arguments)
        yield limited


def commands(root: Path) -> dict[str, tuple[str, ...]]:
    """What people call to read a catalog."""
    return {
        "ls": ("ls", str(root), BUCKET, "--owner", OWNER),
        "export": ("export", str(root), "objects", str(root.with_suffix(".parquet"))),
        "checkpoint": ("checkpoint", str(root), "--writer", "w", "--full"),
        "verify": ("verify", str(root), "--deep"),
    }


def forged(root: Path, forge: Callable[[Forgery], object]) -> Path:
    """Forge the segment of a catalog's checkpoint, and let that refer to what it is now; gives the segment."""
    copied(specimen().world, root)
    (checkpoint,) = root.glob("w/default/transactions/*/*.ckpt")
    message = log_pb2.Checkpoint.FromString(unseal(checkpoint.read_bytes(), "a checkpoint", "one"))
    (segment,) = root.glob("w/default/segments/*.parquet")
    forgery = Forgery.of(segment.read_bytes(), *known_segments(message.segments, "a checkpoint"))
    forge(forgery)
    data, reference = forgery.sealed()
    segment.write_bytes(data)
    message.segments[0].CopyFrom(segment_message(reference))
    message.ClearField("checksum")
    checkpoint.write_bytes(seal(message.SerializeToString(deterministic=True)))
    return segment


def wrong_text(one: Forgery) -> None:
    chunk = one.chunk("name")
    chunk.pages = [chunk.data_page]
    chunk.data_page.hold_values(ALL, TEXT * ROWS, encoding=f.PLAIN)


def row_groups(one: Forgery) -> None:
    empty = raw(write_struct(Struct({f.COLUMNS: Value(LIST, List(STRUCT)), 2: i64(0), f.GROUP_ROWS: i64(0)})))
    one.last.append(lambda: one.groups.extend([empty] * 999_999))


def statistics(one: Forgery) -> None:
    """Of a wrong length in the footer, for which Arrow's library ends the process; and a column without its values."""
    one.chunk("_revision").said.put(f.STATISTICS, STRUCT, Struct({f.NULLS: i64(0), f.HIGH: binary(b"a"), f.LOW: binary(b"a")}))
    one.chunk("name").data_page.hold_values(ALL, b"")


def numbers(one: Forgery) -> None:
    one.element("name").put(f.FIELD_ID, f.I32, 77)


FORGED: dict[str, Callable[[Forgery], object]] = {
    "a page of 1 GiB": lambda one: one.chunk("name").data_page.hold_values(ALL, bytes(1 << 30)),
    "text that is none": wrong_text,
    "a million row groups": row_groups,
    "statistics of a wrong length": statistics,
    "no column of the key": numbers,
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_whoever_reads_it_is_told_which_file_it_is(limited: Limited, tmp_path: Path, forge: Callable[[Forgery], object]) -> None:
    root = tmp_path / "catalog"
    name = forged(root, forge).relative_to(root).as_posix()
    for called, arguments in commands(root).items():
        outcome = limited.call(command, *arguments)
        assert isinstance(outcome.value, Ran), (called, outcome)
        assert outcome.value.code == 1, (called, outcome)
        assert name in outcome.value.said and "Traceback" not in outcome.value.said, (called, outcome)
        assert outcome.grown < 512 * MEBI, (called, outcome)


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_who_reads_past_damage_is_shown_what_is_left_and_dump_what_is_wrong(
    limited: Limited, tmp_path: Path, forge: Callable[[Forgery], object]
) -> None:
    root = tmp_path / "catalog"
    segment = forged(root, forge)
    listed = limited.call(command, "ls", str(root), BUCKET, "--owner", OWNER, "--ignore-corruption")
    assert isinstance(listed.value, Ran) and listed.value.code == 0, listed
    assert "d00" in listed.value.said and "b00" in listed.value.said, listed  # of which the transactions are there
    dumped = limited.call(command, "dump", str(segment), "--rows", "3")
    assert isinstance(dumped.value, Ran) and dumped.value.code == 0, dumped
    assert "DAMAGED" in dumped.value.said and "problem: " in dumped.value.said, dumped
