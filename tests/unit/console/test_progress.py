"""Progress: one line below the cell of a notebook or on a terminal, nothing where nobody watches."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest
from nbclient.exceptions import CellExecutionError

from bucketcatalog.checkpoint import merge
from bucketcatalog.console.progress import progress_line
from bucketcatalog.harvest import Harvested

from ...kit.notebooks import displayed, notebook_of, printed, run
from ...kit.world import World, obj

CELLS = (
    """
from bucketcatalog.console.progress import progress_line
with progress_line("wor\\x1b[31mking") as tell:
    for number in range(2_000):
        tell(number)
""",
    """
try:
    with progress_line("failing") as tell:
        tell("half\\nway")
        raise ValueError
except ValueError:
    print("as before")
""",
)


def test_a_notebook_shows_one_line_a_cell_that_stays_and_tells_what_was_told_last(tmp_path: Path) -> None:
    done = run(notebook_of(*CELLS), tmp_path)
    lines = [line.rpartition("  ")[0] for line in displayed(done, "text/plain")]
    assert lines == [r"wor\x1b[31mking  1,999", r"failing  half\nway"]
    assert printed(done) == "as before\n"


def test_a_cell_of_a_notebook_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run(notebook_of("1 / 0"), tmp_path)


class Terminal(io.StringIO):
    """Standard error of somebody who watches."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress_line("veri\nfying") as tell:
        tell("a\x1b]file")
    written = terminal.getvalue()
    assert r"veri\nfying" in written and r"a\x1b]file" in written


def test_nobody_is_shown_anything(capfd: pytest.CaptureFixture[str]) -> None:
    with progress_line("working") as tell:
        tell("half")
    assert capfd.readouterr() == ("", "")


def test_a_harvest_says_in_a_line_how_far_it_is() -> None:
    begun = Harvested("s", "b", "id", "o", "d", "w", dry_run=False)
    assert str(begun) == "0 seen: nothing changed"
    done = Harvested("s", "b", "id", "o", "d", "w", dry_run=False, entries=1_200, created=1_000, deleted=2)
    assert str(done) == "1,200 seen: 1,000 created, 2 deleted"


def test_a_checkpoint_tells_how_many_rows_it_has_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "MERGE_SLICE_ROWS", 4_096)
    told, world = list[int](), World()
    with world.writer() as writer:
        for half in (0, 1):
            world.commit(writer, ("put", "objects", pa.Table.from_pylist([obj(f"{n:05}") for n in range(half, 20_000, 2)])))
        done = writer.checkpoint(full=True, progress=told.append)

    assert done is not None and done.rows == 20_000 == told[-1]
    assert len(told) > 1 and told == sorted(told)
